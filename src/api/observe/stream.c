/*
 * Following the trail: server-sent events.
 *
 * The events are in the store, so nothing is remembered of a client but its place: it is given what comes after that place,
 * one piece at a time, and the next when it has taken the last. Whoever has caught up waits. One timer for all looks
 * whether the writer has made a transaction since; while it has not, the store is not read.
 *
 * Every stream ends with an event `end` that says why, unless the connection broke. The client comes again with the
 * last `id` it saw, as browsers do by themselves, and misses nothing.
 */
#include "api/call/pieces.h"
#include "api/observe/observe.h"
#include "api/observe/events.h"
#include "base/log.h"
#include "store/trail_place.h"

#include <event2/event.h>
#include <inttypes.h>

enum {
    TICK_MS = 250,
    HEARTBEAT_MS = 15 * 1000,
    SLOW_MS = 30 * 1000, /* a piece that was not taken for so long is the last */
    SHARED_EVERY_MS = 1000, /* so often it is looked for what other nodes have written */
    RETRY_MS = 2000,     /* after which a browser comes again */
    EVENTS_AT_ONCE = 64,
    PIECE_BYTES_MAX = 64 * 1024, /* and one event more */
    NEWEST_MAX = 1000,
};

/* A piece of the trail, on its way from the store. */
struct trail_piece {
    bool asked;
    struct trail_place after;   /* it begins there */
    int64_t skipped;      /* so many before it are left out */
    int64_t transactions; /* of the writer, before it was read */
    size_t max, count;
    struct event *events; /* in `memory` */
    struct arena memory;
};

struct follower {
    struct event_filter filter;
    struct trail_place after;   /* behind the last event that was looked at */
    bool from_now;        /* with what is new */
    bool shared;          /* others write too, of whom this daemon does not hear */
    int64_t newest;       /* not further behind than so many events; 0: all are wanted */
    int64_t transactions; /* of the writer, when the store was last read to its end */
    int64_t wrote_ms, read_ms; /* by a clock that never goes back */
    const char *end; /* why it ends; NULL: it does not */
    bool begun;
    bool caught_up; /* and nothing has been written since, as far as the last look at the writer tells */
    struct trail_piece piece;
};

/* --- what is sent --------------------------------------------------------------------------------- */

/* An event of the stream itself, which has no id: it is not of the trail. */
static void write_own(struct buffer *out, const char *name, const char *member, const char *text, int64_t number)
{
    struct json_writer json = json_writer(out);
    buffer_printf(out, "event: %s\ndata: ", name);
    json_object_begin(&json);
    if (text)
        json_member_text(&json, member, text);
    else
        json_member_int(&json, member, number);
    json_object_end(&json);
    buffer_append_text(out, "\n\n");
}

/* A line end within would end the event: JSON has none but as white space. */
static void write_one(struct buffer *out, const struct trail_place *place, const struct event *event)
{
    struct json_writer json = json_writer(out);
    char text[PLACE_BYTES];
    trail_place_format(place, text);
    buffer_printf(out, "id: %s\ndata: ", text);
    size_t from = out->len;
    event_write(&json, event);
    for (size_t i = from; i < out->len; i++)
        if (out->data[i] == '\n' || out->data[i] == '\r')
            out->data[i] = ' ';
    buffer_append_text(out, "\n\n");
}

/* Without data: it is no event, but the client remembers the id, and proxies see that somebody is there. */
static void write_place(struct buffer *out, const struct follower *follower)
{
    char text[PLACE_BYTES];
    trail_place_format(&follower->after, text);
    buffer_printf(out, ":\nid: %s\n\n", text);
}

static void write_beginning(struct buffer *out, const struct follower *follower)
{
    buffer_printf(out, "retry: %d\n", RETRY_MS);
    write_place(out, follower);
}

/* --- what is read --------------------------------------------------------------------------------- */

static enum status read_piece(struct call *call, struct store_reader *reader, struct error *err)
{
    struct follower *follower = call->context;
    struct trail_piece *piece = &follower->piece;
    enum status status = STATUS_OK;
    piece->max = follower->newest > 0 ? (size_t)follower->newest : EVENTS_AT_ONCE;
    if (follower->newest > 0) /* who is further behind hears how many it misses */
        status = trail_place_skip(reader, &piece->after, follower->newest, &piece->skipped, err);
    if (status == STATUS_OK)
        status = trail_place_read(reader, &piece->after, piece->max, &piece->memory, &piece->events, &piece->count, err);
    return status;
}

static void forget_piece(struct call *call)
{
    struct follower *follower = call->context;
    arena_release(&follower->piece.memory);
}

/* As much of what was read as fits; the rest is read again. */
static void write_piece(struct follower *follower, struct buffer *out)
{
    struct trail_piece *piece = &follower->piece;
    size_t i = 0;
    if (piece->skipped > 0)
        write_own(out, "skipped", "events", NULL, piece->skipped);
    follower->after = piece->after;
    for (; i < piece->count && out->len < PIECE_BYTES_MAX; i++) {
        trail_place_advance(&follower->after, piece->events[i].number);
        if (event_filter_takes(&follower->filter, &piece->events[i]))
            write_one(out, &follower->after, &piece->events[i]);
    }
    bool all = i == piece->count && piece->count < piece->max; /* nothing follows what was read */
    follower->transactions = all ? piece->transactions : -1;
    follower->caught_up = all || follower->newest > 0; /* those go on with the next tick */
    arena_release(&piece->memory);
}

static enum piece follow_next(struct call *call, struct buffer *out)
{
    struct api *api = call->api;
    struct follower *follower = call->context;
    struct trail_piece *piece = &follower->piece;
    bool was_read = piece->asked;
    piece->asked = false;
    if (follower->end) {
        write_own(out, "end", "reason", follower->end, 0);
        return PIECE_LAST;
    }
    if (!follower->caught_up && !was_read) {
        /* Asked before the store is read: what is written meanwhile counts as new. */
        *piece = (struct trail_piece){ .asked = true, .after = follower->after,
                                       .transactions = writer_figures(api->settings.writer).transactions };
        follower->read_ms = http_ticks_ms(&api->http);
        return PIECE_READ;
    }
    if (was_read && call->reading.status != STATUS_OK) {
        log_event(LOG_ERROR, "stream_failed", FIELD_CSTR("error", call->reading.apart.error.text));
        write_own(out, "end", "reason", "store_failed", 0);
        return PIECE_LAST;
    }
    if (!follower->begun)
        write_beginning(out, follower);
    follower->begun = true;
    if (was_read)
        write_piece(follower, out);
    int64_t now_ms = http_ticks_ms(&api->http);
    if (out->len == 0 && now_ms >= follower->wrote_ms + HEARTBEAT_MS)
        write_place(out, follower);
    if (out->len > 0)
        follower->wrote_ms = now_ms;
    return follower->caught_up ? PIECE_WAIT : PIECE_MORE;
}

/* --- when ----------------------------------------------------------------------------------------- */

static void look_after(struct call *call, void *context)
{
    struct follower *follower = call->context;
    const int64_t *transactions = context;
    int64_t now_ms = http_ticks_ms(&call->api->http);
    if (call_stream_is_writing(call)) {
        if (now_ms < follower->wrote_ms + SLOW_MS)
            return;
        struct buffer last = call_buffer();
        write_own(&last, "end", "reason", "slow", 0);
        log_event(LOG_WARN, "stream_cut", FIELD_CSTR("reason", "the client does not read"), FIELD_TEXT("token", call->who));
        call_stream_cut(call, &last);
        return;
    }
    if (follower->transactions != *transactions || (follower->shared && now_ms >= follower->read_ms + SHARED_EVERY_MS))
        follower->caught_up = false;
    if (!follower->caught_up || now_ms >= follower->wrote_ms + HEARTBEAT_MS)
        call_stream_wake(call);
}

static void on_tick(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct api *api = context;
    int64_t transactions = writer_figures(api->settings.writer).transactions;
    if (call_streams_visit(api, follow_next, look_after, &transactions) == 0)
        event_del(api->streams.timer);
}

static bool start_timer(struct api *api)
{
    static const struct timeval every = { TICK_MS / 1000, TICK_MS % 1000 * 1000 };
    if (!api->streams.timer)
        api->streams.timer = event_new(api->http.loop, -1, EV_PERSIST, on_tick, api);
    if (!api->streams.timer)
        return false;
    return event_pending(api->streams.timer, EV_TIMEOUT, NULL) || event_add(api->streams.timer, &every) == 0;
}

static void end_one(struct call *call, void *context)
{
    struct follower *follower = call->context;
    follower->end = context;
    call_stream_hurry(call);
}

void event_streams_end(struct api *api, const char *reason)
{
    call_streams_visit(api, follow_next, end_one, (void *)(uintptr_t)reason);
}

/* --- beginning ------------------------------------------------------------------------------------ */

/* It is false where the call was answered. */
static bool read_after(struct call *call, struct follower *follower)
{
    struct slice last = call_header(call, SLICE("Last-Event-ID"));
    struct slice after = last.len > 0 ? last : call_query(call, "after");
    follower->from_now = after.len == 0;
    if (trail_place_parse(after, &follower->after))
        return true;
    return call_problem(call, 422, "invalid_cursor", "after and Last-Event-ID must be the id of an event");
}

/* A place behind the newest event is another store's, or none: there it begins with what is new. */
static enum status find_place(struct call *call, struct store_reader *reader, struct error *err)
{
    struct follower *follower = call->context;
    struct trail_place end;
    enum status status = trail_place_end(reader, 0, &end, err);
    follower->shared = reader->ops->reader_heads != NULL;
    if (status != STATUS_OK)
        return status;
    if (follower->from_now)
        follower->after = end;
    for (size_t i = 0; i < follower->after.count; i++)
        if (follower->after.last[i] > trail_place_last(&end, follower->after.last[i]))
            follower->after.last[i] = trail_place_last(&end, follower->after.last[i]);
    return STATUS_OK;
}

static bool read_newest(struct call *call, struct follower *follower)
{
    struct slice text = call_query(call, "newest");
    if (text.len == 0 ||
        (slice_to_int64(text, &follower->newest) && follower->newest > 0 && follower->newest <= NEWEST_MAX))
        return true;
    return call_problem(call, 422, "invalid_limit", "newest must be a whole number from 1 to %d", NEWEST_MAX);
}

struct token_count {
    struct slice who;
    int64_t count;
};

static void count_own(struct call *call, void *context)
{
    struct token_count *own = context;
    own->count += slice_equal(call->who, own->who);
}

/* It is false where the call was answered. */
static bool may_follow(struct call *call)
{
    const struct config *config = call->api->config;
    struct token_count own = { .who = call->who };
    if (call->api->draining)
        call_problem(call, 503, "stopping", "the daemon is stopping; try again");
    else if ((int64_t)call_streams_visit(call->api, follow_next, count_own, &own) >= config->streams_max)
        call_problem(call, 503, "too_many_streams",
                     "%lld clients follow the events already; use fewer, or look at the events without following",
                     (long long)config->streams_max);
    else if (call->api->tokens && own.count >= config->streams_per_token)
        call_problem(call, 429, "too_many_streams",
                     "%lld clients follow the events with this token already; use fewer, or look at the events without "
                     "following",
                     (long long)config->streams_per_token);
    else
        return true;
    return false;
}

/* While its place was looked for it was none of the streams: others have begun or were ended, and nobody ticked for it. */
static void begin_stream(struct call *call)
{
    struct api *api = call->api;
    struct follower *follower = call->context;
    follower->wrote_ms = http_ticks_ms(&api->http);
    if (call->reading.config != api->config)
        follower->end = "reloaded";
    if (!may_follow(call))
        return;
    if (!start_timer(api)) {
        call_no_memory(call);
        return;
    }
    call->pieces.small = true;
    call_add_header(call, "X-Accel-Buffering", "no"); /* nginx would gather the pieces */
    call_stream(call, "text/event-stream", read_piece, follow_next);
}

void handle_events_stream(struct call *call)
{
    struct follower *follower = call_context(call, sizeof *follower);
    if (!follower)
        return;
    *follower = (struct follower){ 0 };
    if (!may_follow(call) || !event_filter_read(call, &follower->filter) || !read_newest(call, follower) ||
        !read_after(call, follower))
        return;
    call->forget = forget_piece;
    call_read(call, find_place, begin_stream);
}
