#include "transport/http.h"

#include "transport/address.h"
#include "transport/http_answer.h"
#include "transport/http_request.h"

#include <assert.h>
#include <curl/curl.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    IDLE_HANDLES_MAX = 1024,
    HEADERS_BYTES_MAX = 64 * 1024,
    TEXT_BODY_BYTES_MAX = 8 * 1024, /* how much of a body an error text quotes */
    KEEPALIVE_S = 30,
};

struct http_transport {
    struct transport transport; /* first */
    struct event_base *loop;
    struct http_settings settings;
    CURLM *multi;
    struct event *timer;
    struct exchange *idle; /* handles to be used again */
    size_t idle_count;
    struct exchange *unstarted; /* failed before they began; reported from the loop */
    struct event *unstarted_event;
};

/* One request and its answer. */
struct exchange {
    struct http_transport *http;
    CURL *curl;
    struct send *send;
    struct http_request request;
    struct buffer headers, body;
    bool body_cut;   /* the answer was longer than allowed */
    bool private_address;
    char curl_error[CURL_ERROR_SIZE];
    struct error failure; /* of what failed before it began */
    int64_t started_ns;
    struct exchange *next; /* in idle or unstarted */
};

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- what libcurl calls ------------------------------------------------------------------------ */

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    struct slice line = { data, size * count };
    if (slice_has_prefix(line, SLICE("HTTP/"))) /* 100 Continue and its like come before the last one */
        buffer_clear(&exchange->headers);
    buffer_append(&exchange->headers, line);
    return line.len; /* headers beyond the limit are not kept, the answer goes on */
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    size_t len = size * count;
    size_t room = exchange->body.limit - exchange->body.len;
    buffer_append(&exchange->body, (struct slice){ data, len < room ? len : room });
    if (len <= room)
        return len;
    exchange->body_cut = true;
    return 0; /* ends the transfer: an endless body must not hold a slot */
}

static curl_socket_t on_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct exchange *exchange = context;
    if (purpose == CURLSOCKTYPE_IPCXN && !exchange->send->destination->allow_private && !exchange->send->destination->proxy &&
        address_is_private(&address->addr)) {
        exchange->private_address = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* A connection that another destination opened may be used again: look at its address too, before anything is sent. */
static int on_connected(void *context, char *remote, char *local, int remote_port, int local_port)
{
    struct exchange *exchange = context;
    (void)local;
    (void)remote_port;
    (void)local_port;
    if (exchange->send->destination->allow_private || exchange->send->destination->proxy || !address_text_is_private(remote))
        return CURL_PREREQFUNC_OK;
    exchange->private_address = true;
    return CURL_PREREQFUNC_ABORT;
}

/* --- from what was seen to the answer ---------------------------------------------------------- */

/*
 * Not an answer: when the request was on its way, at least in part, it may have arrived. A handshake, a
 * resolver or a certificate that failed comes before it.
 */
static bool request_went_out(CURL *curl)
{
    long request_bytes = 0;
    curl_off_t uploaded = 0;
    curl_easy_getinfo(curl, CURLINFO_REQUEST_SIZE, &request_bytes);
    curl_easy_getinfo(curl, CURLINFO_SIZE_UPLOAD_T, &uploaded);
    return request_bytes > 0 || uploaded > 0;
}

static void text_of_failure(const struct exchange *exchange, CURLcode result, struct buffer *text)
{
    static const struct { CURLcode code; const char *word; } words[] = {
        { CURLE_OPERATION_TIMEDOUT, "TIMEOUT" },           { CURLE_COULDNT_RESOLVE_HOST, "NETWORK_ERROR" },
        { CURLE_COULDNT_RESOLVE_PROXY, "NETWORK_ERROR" },  { CURLE_COULDNT_CONNECT, "CONNECTION_ERROR" },
        { CURLE_SEND_ERROR, "CONNECTION_ERROR" },          { CURLE_RECV_ERROR, "CONNECTION_ERROR" },
        { CURLE_GOT_NOTHING, "CONNECTION_ERROR" },         { CURLE_PARTIAL_FILE, "CONNECTION_ERROR" },
        { CURLE_SSL_CONNECT_ERROR, "TLS_ERROR" },          { CURLE_PEER_FAILED_VERIFICATION, "TLS_ERROR" },
    };
    const char *word = "TRANSPORT_ERROR";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].code == result)
            word = words[i].word;
    const char *detail = exchange->curl_error[0] ? exchange->curl_error : curl_easy_strerror(result);
    buffer_printf(text, "%s - %s", word, detail);
}

static enum query_answer query_of(const struct query_config *query, struct slice code)
{
    if (http_code_is(&query->delivered, code))
        return QUERY_DELIVERED;
    if (http_code_is(&query->absent, code))
        return QUERY_ABSENT;
    if (http_code_is(&query->rejected, code))
        return QUERY_REJECTED;
    if (http_code_is(&query->pending, code))
        return QUERY_PENDING;
    return QUERY_UNCLEAR;
}

static void judge_response(const struct exchange *exchange, struct answer *answer, struct buffer *code, struct buffer *text)
{
    const struct destination_config *destination = exchange->send->destination;
    struct http_response response = { .headers = buffer_slice(&exchange->headers), .body = buffer_slice(&exchange->body) };
    const struct query_config *query = exchange->send->job->step == STEP_VERIFY ? &destination->verify : &destination->poll;
    bool asking = exchange->send->job->step != STEP_SEND;
    const struct text_list *places = asking && query->error_code.count > 0 ? &query->error_code : &destination->error_code;
    curl_easy_getinfo(exchange->curl, CURLINFO_RESPONSE_CODE, &response.status);
    http_code_find(places, &response, classifier_namespace(destination->policy.classifier), code);

    struct slice shown = response.body;
    if (shown.len > TEXT_BODY_BYTES_MAX)
        shown.len = TEXT_BODY_BYTES_MAX;
    buffer_printf(text, "HTTP %ld", response.status);
    if (!slice_is_blank(shown)) {
        buffer_append(text, SLICE(": "));
        buffer_append(text, shown);
    }
    answer->retry_after_ms = http_retry_after_ms(http_header(response.headers, SLICE("Retry-After")),
                                                 exchange->http->settings.now(exchange->http->settings.context));
    answer->slow_all = response.status == 429 || response.status == 503;
    if (asking)
        answer->query = query_of(query, buffer_slice(code));
    else if (http_code_is(&destination->success, buffer_slice(code)))
        answer->outcome = OUTCOME_DELIVERED;
}

static void judge_failure(const struct exchange *exchange, CURLcode result, struct answer *answer, struct buffer *code,
                          struct buffer *text)
{
    if (exchange->private_address) {
        answer->outcome = OUTCOME_BLOCKED;
        buffer_append(code, SLICE("insist:private_address"));
        buffer_append(text, SLICE("the destination's address is private; set allow_private: true where that is meant"));
        return;
    }
    buffer_printf(code, "curl:%d", (int)result);
    text_of_failure(exchange, result, text);
    if (result == CURLE_OUT_OF_MEMORY || result == CURLE_FAILED_INIT)
        answer->attempted = false;
    else if (exchange->send->job->step == STEP_SEND && request_went_out(exchange->curl))
        answer->outcome = OUTCOME_IN_DOUBT;
}

static void exchange_reset(struct exchange *exchange)
{
    http_request_release(&exchange->request);
    buffer_release(&exchange->headers);
    buffer_release(&exchange->body);
    exchange->send = NULL;
    exchange->body_cut = exchange->private_address = false;
    exchange->curl_error[0] = '\0';
}

static void exchange_free(struct exchange *exchange)
{
    exchange_reset(exchange);
    curl_easy_cleanup(exchange->curl);
    free(exchange);
}

static void exchange_recycle(struct exchange *exchange)
{
    struct http_transport *http = exchange->http;
    exchange_reset(exchange);
    if (http->idle_count >= IDLE_HANDLES_MAX) {
        exchange_free(exchange);
        return;
    }
    exchange->next = http->idle;
    http->idle = exchange;
    http->idle_count++;
}

static void report(struct exchange *exchange, struct answer *answer, struct buffer *code, struct buffer *text)
{
    struct send *send = exchange->send;
    answer->code = buffer_slice(code);
    answer->text = buffer_slice(text);
    answer->duration_ms = (monotonic_ns() - exchange->started_ns) / 1000000;
    send->transport = NULL;
    send->done(send, answer);
    buffer_release(code);
    buffer_release(text);
    exchange_recycle(exchange);
}

static void exchange_done(struct exchange *exchange, CURLcode result)
{
    struct answer answer = { .attempted = true, .retry_after_ms = -1 };
    struct buffer code, text;
    buffer_init(&code, 256);
    buffer_init(&text, TEXT_BODY_BYTES_MAX + 256);
    if (result == CURLE_OK || exchange->body_cut)
        judge_response(exchange, &answer, &code, &text);
    else
        judge_failure(exchange, result, &answer, &code, &text);
    report(exchange, &answer, &code, &text);
}

/* --- the loop ---------------------------------------------------------------------------------- */

static void collect(struct http_transport *http)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(http->multi, &left))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        struct exchange *exchange;
        CURLcode result = message->data.result; /* the message goes with its handle */
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&exchange);
        curl_multi_remove_handle(http->multi, exchange->curl);
        exchange_done(exchange, result);
    }
}

static void on_socket_ready(evutil_socket_t fd, short what, void *context)
{
    struct http_transport *http = context;
    int running;
    int flags = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
    curl_multi_socket_action(http->multi, fd, flags, &running);
    collect(http);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
    struct http_transport *http = context;
    int running;
    (void)fd;
    (void)what;
    curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    collect(http);
}

static int on_multi_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct http_transport *http = context;
    (void)multi;
    if (timeout_ms < 0) {
        event_del(http->timer);
        return 0;
    }
    struct timeval wait = { .tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000 };
    return event_add(http->timer, &wait) == 0 ? 0 : -1;
}

static int on_multi_socket(CURL *curl, curl_socket_t fd, int what, void *context, void *socket_context)
{
    struct http_transport *http = context;
    struct event *event = socket_context;
    (void)curl;
    if (what == CURL_POLL_REMOVE) {
        if (event)
            event_free(event);
        curl_multi_assign(http->multi, fd, NULL);
        return 0;
    }
    short wanted = (short)((what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0) | EV_PERSIST);
    if (!event) {
        event = event_new(http->loop, fd, wanted, on_socket_ready, http);
        if (!event)
            return -1;
        curl_multi_assign(http->multi, fd, event);
    } else {
        event_del(event);
        event_assign(event, http->loop, fd, wanted, on_socket_ready, http);
    }
    return event_add(event, NULL) == 0 ? 0 : -1;
}

/* --- starting ---------------------------------------------------------------------------------- */

static struct exchange *exchange_get(struct http_transport *http)
{
    struct exchange *exchange = http->idle;
    if (exchange) {
        http->idle = exchange->next;
        http->idle_count--;
        curl_easy_reset(exchange->curl);
        return exchange;
    }
    exchange = calloc(1, sizeof *exchange);
    if (!exchange)
        return NULL;
    exchange->http = http;
    exchange->curl = curl_easy_init();
    if (!exchange->curl) {
        free(exchange);
        return NULL;
    }
    return exchange;
}

static void set_tls(CURL *curl, const struct tls_config *tls)
{
    if (tls->ca)
        curl_easy_setopt(curl, CURLOPT_CAINFO, tls->ca);
    if (tls->cert)
        curl_easy_setopt(curl, CURLOPT_SSLCERT, tls->cert);
    if (tls->key)
        curl_easy_setopt(curl, CURLOPT_SSLKEY, tls->key);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, tls->verify ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, tls->verify ? 2L : 0L);
}

static void set_body(CURL *curl, const struct http_request *request)
{
    bool get = slice_equal(request->method, SLICE("GET"));
    bool head = slice_equal(request->method, SLICE("HEAD"));
    if (head)
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    if ((get || head) && request->body.len == 0)
        return;
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body.data ? request->body.data : "");
    if (!slice_equal(request->method, SLICE("POST")))
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method.data); /* terminated: from the configuration */
}

static void set_options(struct exchange *exchange)
{
    CURL *curl = exchange->curl;
    const struct destination_config *destination = exchange->send->destination;
    curl_easy_setopt(curl, CURLOPT_URL, exchange->request.url.data);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, exchange);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, exchange->curl_error);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)destination->timeout_ms);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)destination->connect_timeout_ms);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "insist/" INSIST_VERSION);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, exchange->request.headers);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, exchange);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, exchange);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, exchange);
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, exchange);
    /* An environment variable of the daemon's must not send the jobs elsewhere. */
    curl_easy_setopt(curl, CURLOPT_PROXY, destination->proxy ? destination->proxy : "");
    if (destination->username)
        curl_easy_setopt(curl, CURLOPT_USERNAME, destination->username);
    if (destination->password)
        curl_easy_setopt(curl, CURLOPT_PASSWORD, destination->password);
    set_tls(curl, &destination->tls);
    set_body(curl, &exchange->request);
}

/* A send that could not begin is still answered from the loop, never from inside start. */
static void on_unstarted(evutil_socket_t fd, short what, void *context)
{
    struct http_transport *http = context;
    (void)fd;
    (void)what;
    while (http->unstarted) {
        struct exchange *exchange = http->unstarted;
        http->unstarted = exchange->next;
        /* A request that cannot be written down is the job's own fault; libcurl's code 43 says so to the rules. */
        bool invalid = exchange->failure.status == STATUS_INVALID || exchange->failure.status == STATUS_LIMIT;
        struct answer answer = { .attempted = invalid, .retry_after_ms = -1,
                                 .outcome = invalid ? OUTCOME_PERMANENT : OUTCOME_NONE };
        struct buffer code, text;
        buffer_init(&code, 256);
        buffer_init(&text, 1024);
        buffer_append(&code, SLICE("curl:43"));
        buffer_printf(&text, "INVALID_REQUEST - %s", exchange->failure.text);
        report(exchange, &answer, &code, &text);
    }
}

static void fail_unstarted(struct exchange *exchange)
{
    struct http_transport *http = exchange->http;
    exchange->next = http->unstarted;
    http->unstarted = exchange;
    event_active(http->unstarted_event, EV_TIMEOUT, 0);
}

static void http_start(struct transport *transport, struct send *send)
{
    struct http_transport *http = (struct http_transport *)transport;
    struct exchange *exchange = exchange_get(http);
    if (!exchange) {
        /* Without memory even for that, the lease is the safety net; say at least that nothing left. */
        const struct answer answer = { .text = SLICE("no memory for a request"), .retry_after_ms = -1 };
        send->done(send, &answer);
        return;
    }
    send->transport = exchange;
    exchange->send = send;
    exchange->started_ns = monotonic_ns();
    buffer_init(&exchange->headers, HEADERS_BYTES_MAX);
    buffer_init(&exchange->body, (size_t)send->destination->response_bytes_max);
    enum status status = http_request_make(send, http->settings.now(http->settings.context), &exchange->request, &exchange->failure);
    if (status != STATUS_OK) {
        fail_unstarted(exchange);
        return;
    }
    set_options(exchange);
    CURLMcode added = curl_multi_add_handle(http->multi, exchange->curl);
    if (added != CURLM_OK) {
        error_set(&exchange->failure, STATUS_NO_MEMORY, "%s", curl_multi_strerror(added));
        fail_unstarted(exchange);
    }
}

static void http_abort(struct transport *transport, struct send *send)
{
    struct http_transport *http = (struct http_transport *)transport;
    struct exchange *exchange = send->transport;
    struct answer answer = { .retry_after_ms = -1 };
    struct buffer code, text;
    for (struct exchange **link = &http->unstarted; *link; link = &(*link)->next)
        if (*link == exchange) {
            *link = exchange->next;
            break;
        }
    bool out = request_went_out(exchange->curl);
    curl_multi_remove_handle(http->multi, exchange->curl);
    answer.attempted = out;
    answer.outcome = out && send->job->step == STEP_SEND ? OUTCOME_IN_DOUBT : OUTCOME_NONE;
    buffer_init(&code, 256);
    buffer_init(&text, 256);
    buffer_append(&code, SLICE("curl:42"));
    buffer_append(&text, SLICE("INTERRUPTED - the daemon was stopped before the answer came"));
    report(exchange, &answer, &code, &text);
}

static void http_free(struct transport *transport)
{
    struct http_transport *http = (struct http_transport *)transport;
    while (http->idle) {
        struct exchange *next = http->idle->next;
        exchange_free(http->idle);
        http->idle = next;
    }
    if (http->multi)
        curl_multi_cleanup(http->multi);
    if (http->timer)
        event_free(http->timer);
    if (http->unstarted_event)
        event_free(http->unstarted_event);
    free(http);
}

static const struct transport_ops http_ops = { .name = "http", .start = http_start, .abort = http_abort, .free = http_free };

enum status http_transport_new(struct event_base *loop, const struct http_settings *settings, struct transport **ret_transport,
                               struct error *err)
{
    struct http_transport *http = calloc(1, sizeof *http);
    if (!http)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the HTTP transport");
    http->transport.ops = &http_ops;
    http->loop = loop;
    http->settings = *settings;
    http->multi = curl_multi_init();
    http->timer = event_new(loop, -1, 0, on_timer, http);
    http->unstarted_event = event_new(loop, -1, 0, on_unstarted, http);
    if (!http->multi || !http->timer || !http->unstarted_event) {
        http_free(&http->transport);
        return error_set(err, STATUS_NO_MEMORY, "no memory for the HTTP transport");
    }
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_multi_socket);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_multi_timer);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, settings->connections_max);
    curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    *ret_transport = &http->transport;
    return STATUS_OK;
}
