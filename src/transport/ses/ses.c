#include "transport/ses/ses.h"

#include "transport/curl_send.h"
#include "transport/ses/request.h"

enum { SIGNING_BYTES_MAX = 256 };

/* The service must be named: libcurl would take it from the host's name, where it is `email`. */
static void prepare(CURL *curl, const struct destination_config *destination, bool *unset)
{
    struct buffer signing;
    buffer_init(&signing, SIGNING_BYTES_MAX);
    buffer_printf(&signing, "aws:amz:%s:ses", destination->ses.region);
    buffer_append_byte(&signing, '\0');
    if (buffer_status(&signing) == STATUS_OK)
        curl_set_text(curl, CURLOPT_AWS_SIGV4, signing.data, unset);
    else
        *unset = true;
    curl_set_text(curl, CURLOPT_USERAGENT, USER_AGENT, unset);
    buffer_release(&signing);
}

static const struct http_dialect dialect = { .make = ses_request_make, .prepare = prepare, .read = ses_answer_read };

enum status ses_transport_new(struct event_base *loop, const struct http_settings *settings,
                              struct transport **ret_transport, struct error *err)
{
    struct http_settings own = *settings;
    own.dialect = &dialect;
    return http_transport_new(loop, &own, ret_transport, err);
}
