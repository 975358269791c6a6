#include "transport/broker/url.h"

#include "base/buffer.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { URL_BYTES_MAX = 2048 };

/* A copy of a part of the url; NULL: it has none, or memory is out. */
static char *part_of(CURLU *url, CURLUPart which, unsigned flags)
{
    char *text = NULL;
    if (curl_url_get(url, which, &text, flags) != CURLUE_OK)
        return NULL;
    char *copy = strdup(text);
    curl_free(text);
    return copy;
}

/* http:// or https:// and where to, for libcurl. */
static char *plain_url(const char *host, const char *port, bool tls)
{
    struct buffer text = buffer_up_to(URL_BYTES_MAX);
    buffer_printf(&text, "%s://%s:%s/", tls ? "https" : "http", host, port);
    buffer_append_byte(&text, '\0');
    return buffer_take(&text);
}

bool broker_url_read(const struct broker_scheme *scheme, const char *text, const char *username, const char *password,
                     struct broker_url *ret_url)
{
    bool tls = slice_has_prefix(slice_from(text), slice_from(scheme->tls_scheme));
    char standard[16];
    CURLU *url = curl_url();
    bool good = url && curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK;
    *ret_url = (struct broker_url){ 0 };
    if (good) {
        char *host = part_of(url, CURLUPART_HOST, 0), *port = part_of(url, CURLUPART_PORT, 0);
        snprintf(standard, sizeof standard, "%d", tls ? scheme->tls_port : scheme->port);
        ret_url->connect = host ? plain_url(host, port ? port : standard, tls) : NULL;
        ret_url->path = part_of(url, CURLUPART_PATH, CURLU_URLDECODE);
        ret_url->username = part_of(url, CURLUPART_USER, CURLU_URLDECODE);
        ret_url->password = part_of(url, CURLUPART_PASSWORD, CURLU_URLDECODE);
        free(host);
        free(port);
        good = ret_url->connect != NULL;
    }
    if (good && !ret_url->username && username)
        good = (ret_url->username = strdup(username)) != NULL;
    if (good && !ret_url->password && password)
        good = (ret_url->password = strdup(password)) != NULL;
    curl_url_cleanup(url);
    return good;
}

void broker_url_release(struct broker_url *url)
{
    free(url->connect);
    free(url->username);
    free(url->password);
    free(url->path);
    *url = (struct broker_url){ 0 };
}
