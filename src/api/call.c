#include "api/call.h"

#include "api/api_private.h"
#include "api/confined.h"
#include "base/log.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Holds one job with a payload of 64 MB, each byte of which takes six in JSON. */
enum { ANSWER_BYTES_MAX = 512 << 20, LIMIT_DEFAULT = 100, DETAIL_BYTES_MAX = 1024 };

struct buffer call_buffer(void)
{
    struct buffer buffer;
    buffer_init(&buffer, ANSWER_BYTES_MAX);
    return buffer;
}

struct slice call_query(const struct call *call, const char *name)
{
    return slice_from(evhttp_find_header(call->query, name));
}

bool call_limit(struct call *call, size_t *ret_limit)
{
    struct slice text = call_query(call, "limit");
    int64_t limit = LIMIT_DEFAULT;
    if (text.len > 0 && (!slice_to_int64(text, &limit) || limit < 1 || limit > STORE_PAGE_MAX)) {
        call_problem(call, 422, "invalid_limit", "limit must be a whole number from 1 to %d", STORE_PAGE_MAX);
        return false;
    }
    *ret_limit = (size_t)limit;
    return true;
}

bool call_tenant(struct call *call, struct slice asked, struct slice *ret_tenant)
{
    if (!call->tenant_bound.data) {
        *ret_tenant = asked;
        return true;
    }
    if (asked.len > 0 && !slice_equal(asked, call->tenant_bound)) {
        call_problem(call, 403, "forbidden_tenant", "this token may act for tenant \"%.*s\" only",
                     SLICE_ARG(call->tenant_bound));
        return false;
    }
    *ret_tenant = call->tenant_bound;
    return true;
}

static void call_free(struct call *call)
{
    struct api *api = call->api;
    if (call->query) {
        evhttp_clear_headers(call->query);
        free(call->query);
    }
    batch_free(call->batch);
    arena_release(&call->memory);
    free(call);
    api->calls--;
    api_may_end(api);
}

void call_drop(struct call *call)
{
    if (call->http) { /* libevent has not noticed yet */
        struct evhttp_connection *connection = evhttp_request_get_connection(call->http);
        client_watch(call->client, NULL, NULL);
        evhttp_connection_free(connection);
    }
    call_free(call);
}

void call_client_left(struct call *call)
{
    struct evhttp_request *http = call->http;
    call->http = NULL;
    call->client = NULL;
    /* A request whose answer was being made is taken off a connection that fails: it is ours then, not the connection's. */
    if (http && !evhttp_request_get_connection(http))
        evhttp_request_free(http);
}

bool call_client_gone(const struct call *call)
{
    char byte;
    if (!call->http)
        return true;
    evutil_socket_t fd = bufferevent_getfd(evhttp_connection_get_bufferevent(evhttp_request_get_connection(call->http)));
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0; /* libevent does not read while an answer is due */
}

static void release_text(const void *data, size_t len, void *context)
{
    (void)len;
    (void)context;
    free((void *)(uintptr_t)data);
}

/* To HEAD only the length is told. */
static void add_body(struct call *call, struct evkeyvalq *headers, struct buffer *body)
{
    char length[24];
    size_t len = body->len;
    struct evbuffer *out = evhttp_request_get_output_buffer(call->http);
    if (evhttp_request_get_command(call->http) == EVHTTP_REQ_HEAD) {
        snprintf(length, sizeof length, "%zu", len);
        evhttp_add_header(headers, "Content-Length", length);
        buffer_release(body);
        return;
    }
    char *text = buffer_take(body);
    if (text && evbuffer_add_reference(out, text, len, release_text, NULL) != 0)
        free(text);
}

void json_member_place(struct json_writer *json, struct text_place place)
{
    if (place.line == 0)
        return;
    json_member_int(json, "line", (int64_t)place.line);
    json_member_int(json, "column", (int64_t)place.column);
}

static const char *title_of(int status)
{
    static const struct {
        int status;
        const char *title;
    } titles[] = {
        { 400, "Bad Request" },       { 401, "Unauthorized" },           { 403, "Forbidden" },
        { 404, "Not Found" },         { 405, "Method Not Allowed" },     { 409, "Conflict" },
        { 413, "Payload Too Large" }, { 415, "Unsupported Media Type" }, { 422, "Unprocessable Content" },
        { 429, "Too Many Requests" }, { 500, "Internal Server Error" },  { 503, "Service Unavailable" },
    };
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (titles[i].status == status)
            return titles[i].title;
    return NULL;
}

/* evhttp would write it anew for each answer. */
static void add_date(struct api *api, struct evkeyvalq *headers)
{
    struct timeval now;
    event_base_gettimeofday_cached(api->loop, &now);
    if (now.tv_sec != api->date_s && evutil_date_rfc1123(api->date, sizeof api->date, NULL) > 0)
        api->date_s = now.tv_sec;
    evhttp_add_header(headers, "Date", api->date);
}

/* `status` 0: nobody was there to be answered. */
static void call_measured(const struct call *call, int status)
{
    request_measured(&call->api->measures, call->route, status, clock_ticks_ns() - call->began_ns);
}

void call_send(struct call *call, int status, const char *content_type, struct buffer *body)
{
    enum status made = buffer_status(body);
    if (!call->http) { /* the client did not wait */
        call_measured(call, 0);
        buffer_release(body);
        call_free(call);
        return;
    }
    if (made != STATUS_OK) {
        buffer_release(body);
        buffer_append_text(body, "{\"type\":\"answer_too_large\",\"title\":\"Internal Server Error\",\"status\":500,"
                                 "\"detail\":\"the answer is too large; ask for less with limit\"}");
        status = 500;
        content_type = "application/problem+json";
    }
    call_measured(call, status);
    struct evkeyvalq *headers = evhttp_request_get_output_headers(call->http);
    evhttp_add_header(headers, "Content-Type", content_type);
    add_date(call->api, headers);
    add_body(call, headers, body);
    client_watch(call->client, NULL, NULL);
    client_answer_begins(call->client);
    evhttp_send_reply(call->http, status, title_of(status), NULL);
    client_answer_ends(call->client);
    call_free(call);
}

void call_json(struct call *call, int status, struct buffer *body)
{
    call_send(call, status, "application/json", body);
}

void call_problem(struct call *call, int status, const char *type, const char *format, ...)
{
    char detail[DETAIL_BYTES_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    call_problem_at(call, status, type, (struct text_place){ 0 }, detail);
}

void call_problem_at(struct call *call, int status, const char *type, struct text_place place, const char *detail)
{
    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    json_object_begin(&json);
    json_member_text(&json, "type", type);
    json_member_text(&json, "title", title_of(status) ? title_of(status) : "Error");
    json_member_int(&json, "status", status);
    json_member_text(&json, "detail", detail);
    json_member_place(&json, place);
    json_object_end(&json);
    if (call->http && (status == 429 || status == 503)) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", RETRY_AFTER_S);
        evhttp_add_header(evhttp_request_get_output_headers(call->http), "Retry-After", seconds);
    }
    if (call->http && status == 401)
        evhttp_add_header(evhttp_request_get_output_headers(call->http), "WWW-Authenticate", "Bearer");
    call_send(call, status, "application/problem+json", &body);
}

void call_no_memory(struct call *call)
{
    call_problem(call, 503, "no_memory", "no memory for the request; try again");
}

void *call_alloc(struct call *call, size_t size)
{
    void *memory = arena_alloc(&call->memory, size);
    if (!memory)
        call_no_memory(call);
    return memory;
}

/* A page that cannot be read is met again and again; once a minute is enough to be heard. */
static void tell_damage(struct api *api, const struct error *err)
{
    int64_t now_ns = clock_ticks_ns();
    if (api->damage_told_ns > 0 && now_ns - api->damage_told_ns < (int64_t)MINUTE_MS * 1000000)
        return;
    api->damage_told_ns = now_ns;
    log_event(LOG_ERROR, "store_damaged", FIELD_CSTR("error", err->text),
              FIELD_CSTR("advice", "stop the daemon; insist doctor says what is damaged, a backup mends it"));
}

void call_store_problem(struct call *call, enum status status, const struct error *err)
{
    if (status == STATUS_CORRUPT || status == STATUS_IO)
        tell_damage(call->api, err);
    if (status == STATUS_FULL)
        call_problem(call, 503, "store_full", "%s; nothing was changed, try again later", err->text);
    else
        call_problem(call, 503, "store_failed", "the store failed: %s; nothing was acknowledged", err->text);
}

static void on_applied(struct batch *batch)
{
    struct call *call = batch->context;
    call->then(call);
}

void call_submit(struct call *call, void (*then)(struct call *call))
{
    call->then = then;
    call->batch->context = call;
    call->batch->done = on_applied;
    call->batch->reply_to = call->api->mailbox;
    writer_submit(call->api->settings.writer, call->batch);
}

static void on_returned(struct message *message)
{
    struct call *call = (struct call *)message;
    call->then(call);
}

static void on_engine(struct message *message)
{
    struct call *call = (struct call *)message;
    call->run(call, call->api->settings.engine);
}

void call_engine(struct call *call, void (*run)(struct call *call, struct engine *engine), void (*then)(struct call *call))
{
    call->run = run;
    call->then = then;
    call->message.run = on_engine;
    mailbox_post(call->api->settings.engine_mailbox, &call->message);
}

void call_return(struct call *call)
{
    call->message.run = on_returned;
    mailbox_post(call->api->mailbox, &call->message);
}

/* --- the engine's view of destinations ---------------------------------------------------------- */

void call_standing_add(struct call *call, struct slice name)
{
    if (call_standing(call, name))
        return;
    if (call->standing_count == call->standing_capacity) {
        size_t capacity = call->standing_capacity ? call->standing_capacity * 2 : 16;
        struct standing *grown = arena_alloc_array(&call->memory, capacity, sizeof *grown);
        if (!grown)
            return; /* shown as not known */
        if (call->standing_count > 0)
            memcpy(grown, call->standings, call->standing_count * sizeof *grown);
        call->standings = grown;
        call->standing_capacity = capacity;
    }
    call->standings[call->standing_count++] = (struct standing){ .name = name };
}

const struct destination_status *call_standing(const struct call *call, struct slice name)
{
    for (size_t i = 0; i < call->standing_count; i++)
        if (slice_equal(call->standings[i].name, name))
            return &call->standings[i].status;
    return NULL;
}

static struct lane_standing *find_lane(const struct call *call, int64_t lane)
{
    for (size_t i = 0; i < call->lane_count; i++)
        if (call->lanes[i].lane == lane)
            return &call->lanes[i];
    return NULL;
}

void call_lane_add(struct call *call, int64_t lane)
{
    if (find_lane(call, lane))
        return;
    if (call->lane_count == call->lane_capacity) {
        size_t capacity = call->lane_capacity ? call->lane_capacity * 2 : 16;
        struct lane_standing *grown = arena_alloc_array(&call->memory, capacity, sizeof *grown);
        if (!grown)
            return; /* shown as not held */
        if (call->lane_count > 0)
            memcpy(grown, call->lanes, call->lane_count * sizeof *grown);
        call->lanes = grown;
        call->lane_capacity = capacity;
    }
    call->lanes[call->lane_count++] = (struct lane_standing){ .lane = lane };
}

const struct lane_hold *call_lane_hold(const struct call *call, int64_t lane)
{
    const struct lane_standing *found = find_lane(call, lane);
    return found && found->hold.held ? &found->hold : NULL;
}

const struct tenant_hold *call_tenant_holds(const struct call *call, size_t *ret_count)
{
    *ret_count = call->standing_count == 1 ? call->standings[0].hold_count : 0;
    return *ret_count > 0 ? call->standings[0].holds : NULL;
}

static const char *keep_text(struct call *call, const char *text)
{
    return text ? arena_copy_text(&call->memory, slice_from(text)) : NULL;
}

static void ask_tenants(struct call *call, const struct engine *engine, struct standing *standing)
{
    size_t max = engine_destination(engine, standing->name).tenants_paused;
    standing->holds = max > 0 ? arena_alloc_array(&call->memory, max, sizeof *standing->holds) : NULL;
    if (!standing->holds)
        return;
    standing->hold_count = engine_tenant_holds(engine, standing->name, standing->holds, max);
    for (size_t i = 0; i < standing->hold_count; i++) {
        standing->holds[i].tenant = keep_text(call, standing->holds[i].tenant);
        standing->holds[i].hold.reason = keep_text(call, standing->holds[i].hold.reason);
    }
    if (call->tenant_bound.data)
        standing->hold_count = holds_confine(standing->holds, standing->hold_count, call->tenant_bound);
}

static void ask_engine(struct call *call, struct engine *engine)
{
    for (size_t i = 0; i < call->lane_count; i++) {
        struct lane_hold hold = engine_lane_hold(engine, call->lanes[i].lane);
        hold.reason = keep_text(call, hold.reason);
        call->lanes[i].hold = hold;
    }
    for (size_t i = 0; i < call->standing_count; i++) {
        struct destination_status status = engine_destination(engine, call->standings[i].name);
        status.pause_reason = keep_text(call, status.pause_reason);
        status.fallback_reason = keep_text(call, status.fallback_reason);
        if (call->tenant_bound.data)
            status_confine(&status);
        call->standings[i].status = status;
    }
    if (call->standing_count == 1)
        ask_tenants(call, engine, &call->standings[0]);
    call->figures = engine_figures(engine);
    call_return(call);
}

void call_standings(struct call *call, void (*then)(struct call *call))
{
    call_engine(call, ask_engine, then);
}

/* --- answers in pieces ------------------------------------------------------------------------- */

struct stream {
    struct call *call;
    piece_maker *next;
    enum piece last; /* what `next` said */
    bool writing;    /* libevent has a piece and will call back, unless the client goes */
    bool waiting;    /* for call_stream_wake */
    struct stream *next_stream, **link; /* of all */
};

static void stream_go_on(struct stream *stream);

static void stream_free(struct stream *stream)
{
    *stream->link = stream->next_stream;
    if (stream->next_stream)
        stream->next_stream->link = stream->link;
    call_free(stream->call); /* the stream is in its memory */
}

static void on_piece_sent(struct evhttp_connection *connection, void *context)
{
    struct stream *stream = context;
    (void)connection;
    stream->writing = false;
    stream_go_on(stream);
}

static void on_stream_turn(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    stream_go_on(context);
}

static void on_stream_gone(void *context)
{
    struct stream *stream = context;
    call_client_left(stream->call);
    if (stream->writing || stream->waiting)
        stream_free(stream);
}

static void stream_end(struct stream *stream)
{
    struct call *call = stream->call;
    struct evhttp_connection *connection = evhttp_request_get_connection(call->http);
    client_watch(call->client, NULL, NULL);
    if (stream->last == PIECE_LAST)
        evhttp_send_reply_end(call->http);
    else
        evhttp_connection_free(connection);
    stream_free(stream);
}

/* False: no memory. */
static bool stream_send(struct stream *stream, struct buffer *piece)
{
    struct evbuffer *out = evbuffer_new();
    size_t len = piece->len;
    char *text = buffer_take(piece);
    if (!out || evbuffer_add_reference(out, text, len, release_text, NULL) != 0) {
        free(text);
        if (out)
            evbuffer_free(out);
        return false;
    }
    stream->writing = true;
    evhttp_send_reply_chunk_with_cb(stream->call->http, out, on_piece_sent, stream);
    evbuffer_free(out);
    return true;
}

static void stream_go_on(struct stream *stream)
{
    static const struct timeval at_once = { 0, 0 };
    struct call *call = stream->call;
    struct buffer piece = call_buffer();
    bool sent = false;
    if (!call->http) {
        stream_free(stream);
        return;
    }
    if (stream->last == PIECE_MORE || stream->last == PIECE_WAIT)
        stream->last = call->api->stopping ? PIECE_FAILED : stream->next(call, &piece);
    if (buffer_status(&piece) != STATUS_OK)
        stream->last = PIECE_FAILED;
    if (stream->last != PIECE_FAILED && piece.len > 0) {
        sent = stream_send(stream, &piece);
        stream->last = sent ? stream->last : PIECE_FAILED;
    }
    buffer_release(&piece);
    if (sent)
        return; /* goes on when it is written */
    stream->waiting = stream->last == PIECE_WAIT;
    if (stream->waiting)
        return;
    if (stream->last == PIECE_MORE &&
        event_base_once(call->api->loop, -1, EV_TIMEOUT, on_stream_turn, stream, &at_once) != 0)
        stream->last = PIECE_FAILED;
    if (stream->last != PIECE_MORE)
        stream_end(stream);
}

void call_stream(struct call *call, const char *content_type, piece_maker *next)
{
    struct api *api = call->api;
    struct buffer nothing = call_buffer();
    struct stream *stream = arena_alloc(&call->memory, sizeof *stream);
    if (!stream) {
        call_no_memory(call);
        return;
    }
    if (!call->http || evhttp_request_get_command(call->http) == EVHTTP_REQ_HEAD) {
        call_send(call, 200, content_type, &nothing);
        return;
    }
    *stream = (struct stream){ .call = call, .next = next, .next_stream = api->streams, .link = &api->streams };
    if (stream->next_stream)
        stream->next_stream->link = &stream->next_stream;
    api->streams = stream;
    call->stream = stream;
    call_measured(call, 200);
    evhttp_add_header(evhttp_request_get_output_headers(call->http), "Content-Type", content_type);
    client_watch(call->client, on_stream_gone, stream);
    evhttp_send_reply_start(call->http, 200, NULL);
    stream_go_on(stream);
}

void call_stream_wake(struct call *call)
{
    struct stream *stream = call->stream;
    if (!stream->waiting)
        return;
    stream->waiting = false;
    stream_go_on(stream);
}

void call_stream_cut(struct call *call, struct buffer *last)
{
    struct stream *stream = call->stream;
    bool sent = buffer_status(last) == STATUS_OK && last->len > 0 && stream_send(stream, last);
    buffer_release(last);
    stream->last = sent ? PIECE_LAST : PIECE_FAILED;
    stream_end(stream);
}

bool call_stream_is_writing(const struct call *call)
{
    return call->stream->writing;
}

size_t call_streams_visit(struct api *api, piece_maker *next, void (*visit)(struct call *call, void *context), void *context)
{
    size_t count = 0;
    struct stream *following;
    for (struct stream *stream = api->streams; stream; stream = following) {
        following = stream->next_stream;
        if (stream->next != next)
            continue;
        count++;
        if (visit)
            visit(stream->call, context);
    }
    return count;
}

void call_streams_end(struct api *api)
{
    struct stream *next;
    for (struct stream *stream = api->streams; stream; stream = next) {
        next = stream->next_stream;
        if (!stream->writing && !stream->waiting)
            continue; /* ends in its next turn */
        if (stream->last != PIECE_LAST) /* else all of it is with libevent already */
            stream->last = PIECE_FAILED;
        stream_end(stream);
    }
}
