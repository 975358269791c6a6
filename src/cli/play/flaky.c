#include "cli/play/flaky.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/hash.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { BODY_BYTES_MAX = 64 << 20, HEADERS_BYTES_MAX = 64 * 1024, METHODS = 0x1ff /* all that libevent knows */ };

/* A request whose fate has not come. */
struct visit {
    struct flaky *flaky;
    struct evhttp_request *request;
    struct event *timer;
    struct event *left; /* libevent's server itself does not look while an answer is due */
    uint64_t number;
    int64_t came_ms;
    enum flaky_fate fate;
    struct visit *previous, *next;
};

struct flaky {
    struct flaky_settings settings;
    struct event_base *loop;
    struct evhttp *http;
    int port;
    int64_t started_ms;
    int64_t first_ms; /* of the first request: an outage counts from there */
    uint64_t count;
    int64_t under_way;
    struct visit *visits;
    void (*seen)(void *context, const struct flaky_event *event);
    void *context;
};

const char *flaky_fate_name(enum flaky_fate fate)
{
    static const char *const names[FLAKY_FATES] = { "answered", "failed", "outage", "limited", "hung", "reset", "gone" };
    return names[fate];
}

/* From 0 up to but not 1; `purpose` keeps the draws of one request apart. */
static double draw(const struct flaky *flaky, uint64_t number, uint64_t purpose)
{
    struct slice bytes = { (const char *)&number, sizeof number };
    return (double)(hash_slice((uint64_t)flaky->settings.seed, purpose, bytes) >> 11) / 9007199254740992.0;
}

static enum flaky_fate choose_fate(const struct flaky *flaky, uint64_t number, int64_t at_ms)
{
    const struct flaky_settings *settings = &flaky->settings;
    if (at_ms >= settings->outage_from_ms && at_ms < settings->outage_until_ms)
        return FLAKY_OUTAGE;
    if (settings->limit > 0 && flaky->under_way >= settings->limit)
        return FLAKY_LIMITED;
    double drawn = draw(flaky, number, 1);
    if (drawn < settings->reset_rate)
        return FLAKY_RESET;
    drawn -= settings->reset_rate;
    if (drawn < settings->hang_rate)
        return FLAKY_HUNG;
    drawn -= settings->hang_rate;
    return drawn < settings->fail_rate ? FLAKY_FAILED : FLAKY_ANSWERED;
}

static const char *method_name(enum evhttp_cmd_type method)
{
    static const struct { enum evhttp_cmd_type method; const char *name; } names[] = {
        { EVHTTP_REQ_GET, "GET" },         { EVHTTP_REQ_POST, "POST" },       { EVHTTP_REQ_HEAD, "HEAD" },
        { EVHTTP_REQ_PUT, "PUT" },         { EVHTTP_REQ_DELETE, "DELETE" },   { EVHTTP_REQ_OPTIONS, "OPTIONS" },
        { EVHTTP_REQ_TRACE, "TRACE" },     { EVHTTP_REQ_CONNECT, "CONNECT" }, { EVHTTP_REQ_PATCH, "PATCH" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].method == method)
            return names[i].name;
    return "?";
}

static void tell(const struct visit *visit, enum flaky_fate fate, int status)
{
    struct flaky *flaky = visit->flaky;
    struct evkeyvalq *headers = evhttp_request_get_input_headers(visit->request);
    struct evbuffer *body = evhttp_request_get_input_buffer(visit->request);
    int64_t now_ms = clock_ticks_ms();
    struct buffer lines = buffer_up_to(HEADERS_BYTES_MAX);
    for (struct evkeyval *header = headers->tqh_first; header; header = header->next.tqe_next)
        buffer_printf(&lines, "%s: %s\n", header->key, header->value);
    size_t len = evbuffer_get_length(body);
    const struct flaky_event event = {
        .number = visit->number,
        .at_ms = visit->came_ms - flaky->started_ms,
        .method = method_name(evhttp_request_get_command(visit->request)),
        .path = slice_from(evhttp_request_get_uri(visit->request)),
        .key = slice_from(evhttp_find_header(headers, "Idempotency-Key")),
        .attempt = slice_from(evhttp_find_header(headers, "Insist-Attempt")),
        .headers = buffer_slice(&lines),
        .body = { len > 0 ? (const char *)evbuffer_pullup(body, -1) : "", len },
        .fate = fate,
        .status = status,
        .took_ms = now_ms - visit->came_ms,
    };
    flaky->seen(flaky->context, &event);
    buffer_release(&lines);
}

static void visit_end(struct visit *visit)
{
    struct flaky *flaky = visit->flaky;
    if (visit->previous)
        visit->previous->next = visit->next;
    else
        flaky->visits = visit->next;
    if (visit->next)
        visit->next->previous = visit->previous;
    flaky->under_way--;
    event_free(visit->timer);
    event_free(visit->left);
    free(visit);
}

static evutil_socket_t fd_of(const struct visit *visit)
{
    return bufferevent_getfd(evhttp_connection_get_bufferevent(evhttp_request_get_connection(visit->request)));
}

/* The connection goes, for whatever reason, and the request with it. */
static void on_gone(UNUSED struct evhttp_connection *connection, void *context)
{
    struct visit *visit = context;
    if (visit->fate != FLAKY_HUNG) /* that was reported when it came */
        tell(visit, FLAKY_GONE, 0);
    visit_end(visit);
}

static void on_left(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct visit *visit = context;
    struct evhttp_connection *connection = evhttp_request_get_connection(visit->request);
    evhttp_connection_set_closecb(connection, NULL, NULL);
    on_gone(connection, visit);
    evhttp_connection_free(connection);
}

/* libevent says goodbye before it closes; dissolving the connection first sends the reset. */
static void reset_connection(struct evhttp_connection *connection, evutil_socket_t fd)
{
    const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
    int saved = connect(fd, &nobody, sizeof nobody);
    (void)saved; /* then the other side sees a plain close */
    evhttp_connection_free(connection);
}

static void reply(const struct visit *visit, int status)
{
    const struct flaky_settings *settings = &visit->flaky->settings;
    struct evkeyvalq *headers = evhttp_request_get_output_headers(visit->request);
    struct evbuffer *out = evbuffer_new();
    char wait[24];
    snprintf(wait, sizeof wait, "%lld", (long long)settings->retry_after_s);
    if (visit->fate != FLAKY_ANSWERED && settings->retry_after_s >= 0)
        evhttp_add_header(headers, "Retry-After", wait);
    if (out && visit->fate == FLAKY_ANSWERED)
        evbuffer_add(out, settings->body.data, settings->body.len);
    evhttp_send_reply(visit->request, status, NULL, out);
    if (out)
        evbuffer_free(out);
}

static void on_fate(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct visit *visit = context;
    const struct flaky_settings *settings = &visit->flaky->settings;
    struct evhttp_connection *connection = evhttp_request_get_connection(visit->request);
    if (visit->fate == FLAKY_HUNG) {
        tell(visit, FLAKY_HUNG, 0);
        return; /* until the sender goes */
    }
    int status = (int)(visit->fate == FLAKY_ANSWERED ? settings->status : settings->fail_status);
    evhttp_connection_set_closecb(connection, NULL, NULL);
    tell(visit, visit->fate, visit->fate == FLAKY_RESET ? 0 : status);
    evutil_socket_t peer = fd_of(visit);
    if (visit->fate != FLAKY_RESET)
        reply(visit, status);
    bool reset = visit->fate == FLAKY_RESET;
    visit_end(visit);
    if (reset)
        reset_connection(connection, peer);
}

static struct visit *visit_new(struct flaky *flaky, struct evhttp_request *request)
{
    struct visit *visit = calloc(1, sizeof *visit);
    if (!visit)
        return NULL;
    visit->flaky = flaky;
    visit->request = request;
    visit->timer = evtimer_new(flaky->loop, on_fate, visit);
    visit->left = event_new(flaky->loop, fd_of(visit), EV_CLOSED, on_left, visit);
    if (visit->timer && visit->left)
        return visit;
    if (visit->timer)
        event_free(visit->timer);
    if (visit->left)
        event_free(visit->left);
    free(visit);
    return NULL;
}

static void on_request(struct evhttp_request *request, void *context)
{
    struct flaky *flaky = context;
    struct visit *visit = visit_new(flaky, request);
    if (!visit) {
        evhttp_send_error(request, HTTP_SERVUNAVAIL, "no memory");
        return;
    }
    visit->number = ++flaky->count;
    visit->came_ms = clock_ticks_ms();
    if (visit->number == 1)
        flaky->first_ms = visit->came_ms;
    visit->fate = choose_fate(flaky, visit->number, visit->came_ms - flaky->first_ms);
    visit->next = flaky->visits;
    if (visit->next)
        visit->next->previous = visit;
    flaky->visits = visit;
    flaky->under_way++;
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_gone, visit);

    int64_t wait_ms = 0;
    if (visit->fate == FLAKY_ANSWERED || visit->fate == FLAKY_FAILED)
        wait_ms = flaky->settings.latency_ms +
                  (int64_t)(draw(flaky, visit->number, 2) * (double)(flaky->settings.jitter_ms + 1));
    struct timeval wait = { .tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000 };
    event_add(visit->left, NULL);
    event_add(visit->timer, &wait);
}

static enum status flaky_bind(struct flaky *flaky, struct error *err)
{
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    uint16_t wanted = (uint16_t)flaky->settings.port;
    struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(flaky->http, "127.0.0.1", wanted);
    if (!bound)
        return error_set(err, STATUS_IO, "cannot listen on 127.0.0.1:%d: %s", (int)flaky->settings.port, strerror(errno));
    if (getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &len) != 0)
        return error_set(err, STATUS_IO, "%s", strerror(errno));
    flaky->port = ntohs(address.sin_port);
    return STATUS_OK;
}

enum status flaky_new(struct event_base *loop, const struct flaky_settings *settings,
                      void (*seen)(void *context, const struct flaky_event *event), void *context, struct flaky **ret_flaky,
                      struct error *err)
{
    struct flaky *flaky = calloc(1, sizeof *flaky);
    if (flaky)
        flaky->http = evhttp_new(loop);
    if (!flaky || !flaky->http) {
        free(flaky);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a receiver");
    }
    flaky->settings = *settings;
    flaky->loop = loop;
    flaky->seen = seen;
    flaky->context = context;
    flaky->started_ms = clock_ticks_ms();
    evhttp_set_allowed_methods(flaky->http, METHODS);
    evhttp_set_max_body_size(flaky->http, BODY_BYTES_MAX);
    evhttp_set_max_headers_size(flaky->http, HEADERS_BYTES_MAX);
    evhttp_set_gencb(flaky->http, on_request, flaky);
    enum status status = flaky_bind(flaky, err);
    if (status != STATUS_OK) {
        flaky_free(flaky);
        return status;
    }
    *ret_flaky = flaky;
    return STATUS_OK;
}

void flaky_free(struct flaky *flaky)
{
    if (!flaky)
        return;
    while (flaky->visits) {
        struct visit *visit = flaky->visits;
        evhttp_connection_set_closecb(evhttp_request_get_connection(visit->request), NULL, NULL);
        visit_end(visit);
    }
    evhttp_free(flaky->http);
    free(flaky);
}

int flaky_port(const struct flaky *flaky)
{
    return flaky->port;
}
