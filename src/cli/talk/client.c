#include "cli/talk/client.h"

#include "api/http/answer.h"
#include "cli/talk/bar.h"
#include "cli/talk/show.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    URL_BYTES_MAX = 64 << 10,
    CONNECT_TIMEOUT_MS = 10 * 1000,
    STALL_TIMEOUT_S = 60, /* without a byte in either direction */
    AGAIN_S = 15,         /* a look is tried again for so long: by then a dead node's destinations have another owner */
};

/* ---- Addresses ---- */

struct url url_to(const char *path)
{
    struct url url = { .text = buffer_up_to(URL_BYTES_MAX) };
    buffer_append_text(&url.text, path);
    return url;
}

void url_release(struct url *url)
{
    buffer_release(&url->text);
}

static void append_escaped(struct buffer *out, const char *text)
{
    for (; *text; text++) {
        if (ascii_is_alnum(*text) || strchr("-._~", *text))
            buffer_append_byte(out, *text);
        else
            buffer_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

void url_segment(struct url *url, const char *text)
{
    buffer_append_byte(&url->text, '/');
    url->unnamed = url->unnamed || !*text;
    /* A segment of dots alone would be taken for a folder on the way. */
    if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
        buffer_append_text(&url->text, text[1] ? "%2E%2E" : "%2E");
    else
        append_escaped(&url->text, text);
}

void url_query(struct url *url, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    buffer_append_byte(&url->text, url->queried ? '&' : '?');
    url->queried = true;
    buffer_append_text(&url->text, name);
    buffer_append_byte(&url->text, '=');
    append_escaped(&url->text, value);
}

void url_number(struct url *url, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    url_query(url, name, text);
}

/* ---- Opening ---- */

static bool is_loopback(const char *base)
{
    struct slice host = slice_from(strstr(base, "://") + 3);
    host.len = strcspn(host.data, "/");
    size_t colon = slice_find(host, ':');
    if (slice_has_prefix(host, SLICE("[::1]")))
        return true;
    host.len = colon;
    return slice_equal_nocase(host, SLICE("localhost")) || slice_has_prefix(host, SLICE("127."));
}

static int set_base(struct client *client, const char *server)
{
    struct slice text = slice_trim(slice_from(server ? server : CLIENT_SERVER_DEFAULT));
    bool http = slice_has_prefix(text, SLICE("http://"));
    bool https = slice_has_prefix(text, SLICE("https://"));
    if (text.len == 0 || (!http && !https && slice_search(text, SLICE("://")) < text.len))
        return cli_usage(NULL, "--server is an address as %s, not \"%s\"", CLIENT_SERVER_DEFAULT, server);
    while (text.len > 0 && text.data[text.len - 1] == '/')
        text.len--;
    if (asprintf(&client->base, "%s%.*s", http || https ? "" : "http://", SLICE_ARG(text)) < 0) {
        client->base = NULL;
        return cli_fail(EXIT_FAILED, "no memory for the request");
    }
    return EXIT_DONE;
}

static bool add_header(struct client *client, const char *text)
{
    struct curl_slist *grown = curl_slist_append(client->headers, text);
    if (grown)
        client->headers = grown;
    return grown != NULL;
}

static int set_token(struct client *client, const char *token)
{
    char *line = NULL;
    for (const char *c = token; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return cli_usage(NULL, "the token has a space or a control character in it");
    bool added = asprintf(&line, "Authorization: Bearer %s", token) >= 0 && add_header(client, line);
    free(line);
    return added ? EXIT_DONE : cli_fail(EXIT_FAILED, "no memory for the request");
}

int client_open(const struct cli *cli, struct client *ret_client)
{
    *ret_client = (struct client){ .cli = cli };
    int code = set_base(ret_client, cli->server);
    if (code == EXIT_DONE && cli->token)
        code = set_token(ret_client, cli->token);
    if (code != EXIT_DONE)
        return code;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
        return cli_fail(EXIT_FAILED, "cannot set up the HTTP client");
    ret_client->curl = curl_easy_init();
    if (!ret_client->curl || !add_header(ret_client, "Expect:"))
        return cli_fail(EXIT_FAILED, "no memory for the request");
    return EXIT_DONE;
}

void client_close(struct client *client)
{
    curl_easy_cleanup(client->curl);
    curl_slist_free_all(client->headers);
    free(client->base);
    *client = (struct client){ 0 };
}

/* ---- Calling ---- */

/* Where the answer's bytes go. */
struct receiving {
    CURL *curl;
    struct reply *reply;
    const struct request *request;
    bool enough; /* who takes it wants no more */
};

/* Whether a daemon answers: another service, or a proxy before it, does not say so. */
static bool is_ours(CURL *curl)
{
    struct curl_header *header;
    return curl_easy_header(curl, ANSWER_OURS, 0, CURLH_HEADER, -1, &header) == CURLHE_OK;
}

static size_t receive(char *data, size_t size, size_t count, void *context)
{
    struct receiving *receiving = context;
    struct slice bytes = { data, size * count };
    long status = 0;
    curl_easy_getinfo(receiving->curl, CURLINFO_RESPONSE_CODE, &status);
    if (!is_ours(receiving->curl))
        return 0;
    if (receiving->request->take && status / 100 == 2) {
        receiving->enough = !receiving->request->take(receiving->request->context, bytes);
        return receiving->enough ? 0 : bytes.len;
    }
    buffer_append(&receiving->reply->body, bytes);
    return buffer_status(&receiving->reply->body) == STATUS_OK ? bytes.len : 0;
}

/* About once a second, whatever comes. */
static int look_after_reader(void *context, UNUSED curl_off_t all_in, UNUSED curl_off_t in, UNUSED curl_off_t all_out,
                             UNUSED curl_off_t out)
{
    struct receiving *receiving = context;
    receiving->enough = receiving->enough || !cli_reader_waits(0);
    return receiving->enough;
}

static struct curl_slist *request_headers(const struct client *client, const struct request *request)
{
    struct curl_slist *headers = NULL;
    char line[128];
    snprintf(line, sizeof line, "Content-Type: %s", request->content_type ? request->content_type : "application/json");
    for (const struct curl_slist *item = client->headers; item; item = item->next) {
        struct curl_slist *grown = curl_slist_append(headers, item->data);
        if (!grown)
            goto fail;
        headers = grown;
    }
    struct curl_slist *whole = curl_slist_append(headers, line);
    if (whole)
        return whole;
fail:
    curl_slist_free_all(headers);
    return NULL;
}

static void set_options(CURL *curl, const struct client *client, const struct request *request, struct curl_slist *headers,
                        struct receiving *receiving, char *message)
{
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, receiving);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "insist/" INSIST_VERSION);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)STALL_TIMEOUT_S);
    if (request->may_be_quiet) {
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_after_reader);
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, receiving);
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    }
    if (is_loopback(client->base)) /* no proxy knows this machine's own addresses */
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (request->body.data) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body.data);
    }
}

static enum status explain(const struct client *client, CURLcode result, const struct receiving *receiving,
                           const char *message, struct error *err)
{
    long number = 0, answered = 0;
    curl_easy_getinfo(client->curl, CURLINFO_OS_ERRNO, &number);
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &answered);
    if (answered > 0 && !is_ours(client->curl))
        return error_set(err, STATUS_IO,
                         "%s answered with HTTP status %ld and not as insist does; is it another service, or a proxy before "
                         "the daemon? --server or INSIST_SERVER names the daemon",
                         client->base, answered);
    if (result == CURLE_COULDNT_CONNECT)
        return error_set(err, STATUS_IO, "cannot reach %s: %s; is the daemon running? start it with: insist serve",
                         client->base, number != 0 ? strerror((int)number) : message);
    if (result == CURLE_WRITE_ERROR && buffer_status(&receiving->reply->body) == STATUS_LIMIT)
        return error_set(err, STATUS_LIMIT, "the answer of %s is longer than %d bytes; ask for less with --limit",
                         client->base, CLI_OUTPUT_BYTES_MAX);
    if (result == CURLE_URL_MALFORMAT)
        return error_set(err, STATUS_INVALID, "--server \"%s\" is not an address; it looks like %s", client->base,
                         CLIENT_SERVER_DEFAULT);
    return error_set(err, STATUS_IO, "cannot talk to %s: %s", client->base, *message ? message : curl_easy_strerror(result));
}

enum status client_try(struct client *client, const struct request *request, struct reply *ret_reply, struct error *err)
{
    char message[CURL_ERROR_SIZE] = "";
    CURL *curl = client->curl;
    struct receiving receiving = { .curl = curl, .reply = ret_reply, .request = request };
    *ret_reply = (struct reply){ 0 };
    buffer_init(&ret_reply->body, CLI_OUTPUT_BYTES_MAX);

    struct buffer url = buffer_up_to(URL_BYTES_MAX);
    buffer_append_text(&url, client->base);
    buffer_append(&url, buffer_slice(&request->url->text));
    struct curl_slist *headers = request_headers(client, request);
    enum status status =
        buffer_status(&request->url->text) != STATUS_OK ? buffer_status(&request->url->text) : buffer_status(&url);
    if (request->url->unnamed) {
        status = error_set(err, STATUS_INVALID, "the name is empty");
    } else if (status != STATUS_OK || !headers) {
        status =
            error_set(err, status == STATUS_LIMIT ? STATUS_INVALID : STATUS_NO_MEMORY, "the request's address is too long");
    } else {
        set_options(curl, client, request, headers, &receiving, message);
        curl_easy_setopt(curl, CURLOPT_URL, url.data);
        CURLcode result = curl_easy_perform(curl);
        if ((result != CURLE_OK || !is_ours(curl)) && !receiving.enough)
            status = explain(client, result, &receiving, message, err);
    }
    if (status == STATUS_OK) {
        long code = 0;
        curl_off_t after = 0;
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
        curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &after);
        ret_reply->status = (int)code;
        ret_reply->retry_after_s = after;
    }
    curl_slist_free_all(headers);
    buffer_release(&url);
    return status;
}

void reply_release(struct reply *reply)
{
    buffer_release(&reply->body);
}

/* ---- Answers ---- */

void reply_append(const struct reply *reply, struct buffer *out)
{
    struct slice body = buffer_slice(&reply->body);
    buffer_append(out, body);
    if (!slice_has_suffix(body, SLICE("\n")))
        buffer_append_byte(out, '\n');
}

/* What a problem document says. */
static void append_reason(const struct reply *reply, struct buffer *out)
{
    struct slice body = buffer_slice(&reply->body);
    json_t *problem = json_loadb(body.data, body.len, JSON_ALLOW_NUL, NULL);
    const json_t *detail = json_object_get(problem, "detail");
    if (!json_is_string(detail))
        detail = json_object_get(problem, "title");
    if (json_is_string(detail))
        plain_append((struct slice){ json_string_value(detail), json_string_length(detail) }, out);
    else
        buffer_printf(out, "the daemon refused, with HTTP status %d", reply->status);
    json_decref(problem);
}

int client_refused(const struct client *client, const struct reply *reply)
{
    bool invalid = reply->status == 400 || reply->status == 413 || reply->status == 422;
    int code = invalid ? EXIT_USAGE : EXIT_FAILED;
    struct buffer text = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    if (reply->status == 401) /* the reason is for who writes requests */
        buffer_printf(&text, client->cli->token ? "%s does not know this token; give another with --token or INSIST_TOKEN"
                                                : "%s wants a token; give one with --token or INSIST_TOKEN", client->base);
    else
        append_reason(reply, &text);
    if (reply->status == 403)
        buffer_append_text(&text, "; another token is given with --token or INSIST_TOKEN");
    if (reply->retry_after_s > 0) {
        bool said = slice_has_suffix(buffer_slice(&text), SLICE("try again"));
        buffer_printf(&text, "%s in %lld s", said ? "" : "; try again", (long long)reply->retry_after_s);
    }
    cli_fail(code, "%s", buffer_status(&text) == STATUS_OK ? text.data : "the daemon refused");
    buffer_release(&text);
    if (!client->cli->json || reply->body.len == 0)
        return code;
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    reply_append(reply, &out);
    return cli_print(&out, code);
}

/* Waits as long as a daemon that cannot say now asks for, and says so the first time. False: that was enough. */
static bool wait_again(const struct reply *reply, int64_t *waited_s)
{
    struct buffer text = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    if (reply->status != 503 || reply->retry_after_s <= 0 || reply->retry_after_s > AGAIN_S - *waited_s)
        return false;
    append_reason(reply, &text);
    if (*waited_s == 0 && buffer_status(&text) == STATUS_OK)
        fprintf(stderr, "insist: %s; trying again for up to %d s\n", text.data, AGAIN_S);
    buffer_release(&text);
    *waited_s += reply->retry_after_s;
    nanosleep(&(struct timespec){ .tv_sec = (time_t)reply->retry_after_s }, NULL);
    return true;
}

int client_call(struct client *client, const struct request *request, struct reply *ret_reply)
{
    struct error err;
    int64_t waited_s = 0;
    enum status status = client_try(client, request, ret_reply, &err);
    while (status == STATUS_OK && strcmp(request->method, "GET") == 0 && wait_again(ret_reply, &waited_s)) {
        reply_release(ret_reply);
        status = client_try(client, request, ret_reply, &err);
    }
    if (status != STATUS_OK)
        return cli_fail(status == STATUS_INVALID ? EXIT_USAGE : EXIT_FAILED, "%s", err.text);
    return ret_reply->status / 100 == 2 ? EXIT_DONE : client_refused(client, ret_reply);
}

int reply_json(const struct client *client, const struct reply *reply, json_t **ret_json)
{
    struct slice body = buffer_slice(&reply->body);
    json_t *json = json_loadb(body.data, body.len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    if (!json)
        return cli_fail(EXIT_FAILED, "the answer of %s is not JSON; is it of another version?", client->base);
    *ret_json = json;
    return EXIT_DONE;
}

int client_json(struct client *client, const struct request *request, json_t **ret_json)
{
    struct reply reply = { 0 };
    int code = client_call(client, request, &reply);
    if (code == EXIT_DONE)
        code = reply_json(client, &reply, ret_json);
    reply_release(&reply);
    url_release(request->url);
    return code;
}

int json_print(const json_t *json, int code)
{
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    show_value(json, SHOW_TEXT, &out);
    buffer_append_byte(&out, '\n');
    return cli_print(&out, code);
}

void warning_tell(const json_t *answer)
{
    struct buffer text = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    const char *warning = json_string_value(json_object_get(answer, "warning"));
    if (!warning)
        return;
    plain_append(slice_from(warning), &text);
    if (buffer_status(&text) == STATUS_OK)
        fprintf(stderr, "insist: warning: %s\n", text.data);
    buffer_release(&text);
}

int client_show(const struct cli *cli, const struct request *request,
                int (*show)(const struct cli *cli, json_t *answer, struct buffer *out))
{
    struct client client;
    struct reply reply = { 0 };
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    json_t *json = NULL;
    int code = client_open(cli, &client);
    if (code == EXIT_DONE)
        code = client_call(&client, request, &reply);
    if (code == EXIT_DONE && cli->json) {
        reply_append(&reply, &out);
        code = cli_print(&out, EXIT_DONE);
    } else if (code == EXIT_DONE) {
        code = reply_json(&client, &reply, &json);
        if (code == EXIT_DONE)
            code = cli_print(&out, show(cli, json, &out));
    }
    json_decref(json);
    buffer_release(&out);
    reply_release(&reply);
    client_close(&client);
    url_release(request->url);
    return code;
}

/* An answer of lines on its way to a file. */
struct download {
    int descriptor;
    int failure; /* errno */
    int64_t lines;
    struct bar bar;
};

static bool take_download(void *context, struct slice bytes)
{
    struct download *download = context;
    for (size_t i = 0; i < bytes.len; i++)
        download->lines += bytes.data[i] == '\n';
    if (!isatty(download->descriptor)) /* else it would stand among the lines themselves */
        bar_show(&download->bar, download->lines, 0, "lines");
    if (cli_write(download->descriptor, bytes) == STATUS_OK)
        return true;
    download->failure = errno;
    return false;
}

static int download_to(const struct cli *cli, struct url *url, int descriptor)
{
    struct client client;
    struct reply reply = { 0 };
    struct download download = { .descriptor = descriptor, .bar = bar_begin(false) };
    const struct request request = { .method = "GET", .url = url, .take = take_download, .context = &download };
    int code = client_open(cli, &client);
    if (code == EXIT_DONE)
        code = client_call(&client, &request, &reply);
    bar_end(&download.bar);
    if (code == EXIT_DONE && download.failure != 0)
        code = download.failure == EPIPE /* `insist dead export | head` has all it wanted */
                   ? EXIT_FAILED
                   : cli_fail(EXIT_FAILED, "cannot write the answer: %s", strerror(download.failure));
    reply_release(&reply);
    client_close(&client);
    return code;
}

/* A device or a pipe takes what comes; a name would be taken away from it. */
static int download_into(const struct cli *cli, struct url *url, const char *path)
{
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0)
        return cli_fail(EXIT_USAGE, "cannot write %s: %s", path, strerror(errno));
    int code = download_to(cli, url, descriptor);
    if (close(descriptor) != 0 && code == EXIT_DONE)
        code = cli_fail(EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    return code;
}

static int download_whole(const struct cli *cli, struct url *url, const char *path)
{
    char *part = NULL;
    if (asprintf(&part, "%s.part", path) < 0)
        return cli_fail(EXIT_FAILED, "no memory for the file's name");
    int descriptor = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        int code = cli_fail(EXIT_USAGE, "cannot write %s: %s", part, strerror(errno));
        free(part);
        return code;
    }
    int code = download_to(cli, url, descriptor);
    bool synced = fsync(descriptor) == 0;
    if (close(descriptor) != 0)
        synced = false;
    if (code == EXIT_DONE && (!synced || rename(part, path) != 0))
        code = cli_fail(EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    if (code != EXIT_DONE)
        unlink(part);
    free(part);
    return code;
}

static int download_as(const struct cli *cli, struct url *url, const char *path)
{
    struct stat there;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return download_into(cli, url, path);
    char *meant = realpath(path, NULL); /* what a link leads to is written, and the link stays */
    if (!meant && lstat(path, &there) == 0 && S_ISLNK(there.st_mode))
        return cli_fail(EXIT_USAGE, "cannot write %s: it is a link to what is not there; remove it, or make that", path);
    int code = download_whole(cli, url, meant ? meant : path);
    free(meant);
    return code;
}

int client_download(const struct cli *cli, struct url *url, const char *path)
{
    int code = path ? download_as(cli, url, path) : download_to(cli, url, STDOUT_FILENO);
    url_release(url);
    return code;
}
