#include "api/call/call.h"

#include "api/call/relay.h"
#include "api/call/shared.h"
#include "api/http/answer.h"
#include "api/http/client.h"
#include "base/log.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Holds one job with a payload of 64 MB, each byte of which takes six in JSON. */
enum { ANSWER_BYTES_MAX = 512 << 20, DETAIL_BYTES_MAX = 1024 };

struct buffer call_buffer(void)
{
    return buffer_up_to(ANSWER_BYTES_MAX);
}

struct slice call_query(const struct call *call, const char *name)
{
    for (size_t i = 0; i < call->query.count; i++)
        if (strcmp(call->query.items[i].name, name) == 0)
            return call->query.items[i].value;
    return SLICE("");
}

struct slice call_header(const struct call *call, struct slice name)
{
    struct slice value = http_head_find(&call->head, name);
    return value.data ? value : SLICE("");
}

void call_add_header(struct call *call, const char *name, const char *value)
{
    buffer_append_text(&call->answer.headers, name);
    buffer_append_text(&call->answer.headers, ": ");
    buffer_append_text(&call->answer.headers, value);
    buffer_append_text(&call->answer.headers, "\r\n");
    call->answer.cached = call->answer.cached || strcmp(name, "Cache-Control") == 0;
}

bool call_tenant(struct call *call, struct slice asked, struct slice *ret_tenant)
{
    if (!call->tenant_bound.data) {
        *ret_tenant = asked;
        return true;
    }
    if (asked.len > 0 && !slice_equal(asked, call->tenant_bound))
        return call_problem(call, 403, "forbidden_tenant", "this token may act for tenant \"%.*s\" only",
                            SLICE_ARG(call->tenant_bound));
    *ret_tenant = call->tenant_bound;
    return true;
}

void call_free(struct call *call)
{
    struct api *api = call->api;
    if (call->forget)
        call->forget(call);
    batch_free(call->batch);
    json_decref(call->object);
    buffer_release(&call->answer.headers);
    buffer_release(&call->answer.body);
    buffer_release(&call->request);
    arena_release(&call->memory);
    free(call);
    api->calls--;
    api_may_end(api);
}

void call_drop(struct call *call)
{
    struct client *client = call->client;
    if (client) { /* nobody has noticed yet that it is gone */
        client_watch(client, NULL, NULL, NULL);
        client_end(client);
    }
    call_measured(call, 0);
    call_free(call);
}

void call_client_left(struct call *call)
{
    call->request = client_take_input(call->client); /* its slices are still looked at */
    call->client = NULL;
    relay_abandon(call);
}

bool call_client_gone(const struct call *call)
{
    return !call->client || client_has_left(call->client);
}

/* `status` 0: nobody was there to be answered. */
void call_measured(const struct call *call, int status)
{
    request_measured(&call->api->measures, call->route, status, clock_ticks_ns() - call->began_ns);
}

void call_begin_answer(struct call *call, int status, const char *content_type, int64_t length, struct buffer *out)
{
    const struct answer_form form = {
        .status = status,
        .content_type = content_type,
        .headers = buffer_slice(&call->answer.headers),
        .cached = call->answer.cached,
        .closes = client_closes(call->client),
        .old = call->head.old,
        .length = length,
    };
    answer_head_write(&call->api->http, &form, out);
}

void call_send(struct call *call, int status, const char *content_type, struct buffer *body)
{
    struct client *client = call->client;
    struct buffer *head = &call->api->scratch;
    if (!client) { /* it did not wait */
        call_measured(call, 0);
        buffer_release(body);
        call_free(call);
        return;
    }
    if (buffer_status(body) != STATUS_OK) {
        buffer_release(body);
        problem_write(body, 500, "answer_too_large", (struct text_place){ 0 },
                      "the answer is too large; ask for less with limit");
        status = 500;
        content_type = "application/problem+json";
    }
    call_measured(call, status);
    buffer_clear(head);
    call_begin_answer(call, status, content_type, (int64_t)body->len, head);
    if (call->head.method == HTTP_HEAD) /* it gets the length only */
        buffer_release(body);
    client_watch(client, NULL, NULL, NULL);
    client_send(client, buffer_slice(head), body, SLICE(""));
    client_answered(client);
    call_free(call);
}

void call_json(struct call *call, int status, struct buffer *body)
{
    call_send(call, status, "application/json", body);
}

struct json_writer *call_answer(struct call *call)
{
    call->answer.body = call_buffer();
    call->answer.json = json_writer(&call->answer.body);
    json_object_begin(&call->answer.json);
    return &call->answer.json;
}

void call_answer_send(struct call *call, int status)
{
    json_object_end(&call->answer.json);
    call_json(call, status, &call->answer.body);
}

bool call_problem(struct call *call, int status, const char *type, const char *format, ...)
{
    char detail[DETAIL_BYTES_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    return call_problem_at(call, status, type, (struct text_place){ 0 }, detail);
}

bool call_problem_at(struct call *call, int status, const char *type, struct text_place place, const char *detail)
{
    struct buffer body = call_buffer();
    problem_write(&body, status, type, place, detail);
    if (status == 429 || status == 503) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", call->answer.retry_after_s ? call->answer.retry_after_s : RETRY_AFTER_S);
        call_add_header(call, "Retry-After", seconds);
    }
    if (status == 401)
        call_add_header(call, "WWW-Authenticate", "Bearer");
    call_send(call, status, "application/problem+json", &body);
    return false;
}

bool call_no_memory(struct call *call)
{
    return call_problem(call, 503, "no_memory", "no memory for the request; try again");
}

void *call_alloc(struct call *call, size_t size)
{
    void *memory = arena_alloc(&call->memory, size);
    if (!memory)
        call_no_memory(call);
    return memory;
}

void *call_context(struct call *call, size_t size)
{
    return call->context = call_alloc(call, size);
}

/* A page that cannot be read is met again and again; once a minute is enough to be heard. */
static void tell_damage(struct api *api, const struct error *err)
{
    int64_t now_ns = clock_ticks_ns();
    if (api->damage.reported_ns > 0 && now_ns - api->damage.reported_ns < (int64_t)MINUTE_MS * 1000000)
        return;
    api->damage.reported_ns = now_ns;
    api->damage.error = *err;
    log_event(LOG_ERROR, "store_damaged", FIELD_CSTR("error", err->text),
              FIELD_CSTR("advice", "stop the daemon; insist doctor says what is damaged, a backup mends it"));
}

void call_store_problem(struct call *call, enum status status, const struct error *err)
{
    if (status == STATUS_CORRUPT || status == STATUS_IO)
        tell_damage(call->api, err);
    if (status == STATUS_AWAY)
        call_problem(call, 503, "store_away", "the store cannot be reached: %s; nothing was acknowledged", err->text);
    else if (status == STATUS_FULL)
        call_problem(call, 503, "store_full",
                     "%s; nothing was changed; make room there, insist doctor says where", err->text);
    else
        call_problem(call, 503, "store_failed", "the store failed: %s; nothing was acknowledged", err->text);
}

/* What a stream fails with is for its own maker of pieces to tell: the answer has begun. */
static void on_piece(struct call *call)
{
    const struct call_reading *reading = &call->reading;
    bool failed = reading->status != STATUS_OK && reading->status != STATUS_NOT_FOUND;
    bool borne = failed && (call->pieces.stream || (reading->anyway && reading->status == STATUS_AWAY));
    if (failed && !borne)
        call_store_problem(call, reading->status, &reading->apart.error);
    else if (!reading->more || borne)
        reading->done(call);
    else if (call->client && !call->api->stopping)
        rota_add(&call->api->http.rota, &call->reading.turn);
    else /* or nobody is there any more, which the answering takes care of */
        call_problem(call, 503, "stopping", "the daemon is stopping; try again");
}

static struct call *call_of_read(struct store_read *read)
{
    return (struct call *)(void *)((char *)read - offsetof(struct call, reading.apart));
}

/*
 * In the thread that reads. Whatever was asked while it waited for a store that is away is answered with that, or each of
 * many clients would wait for as long again.
 */
static enum status run_apart(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct call *call = call_of_read(read);
    struct api *api = call->api;
    struct call_reading *reading = &call->reading;
    if (reading->asked_ns < api->reader.away_ns)
        reading->status = error_set(err, STATUS_AWAY, "it was not there a moment ago");
    else
        reading->status = reading->read(call, reader, err);
    if (reading->status == STATUS_AWAY)
        api->reader.away_ns = clock_ticks_ns();
    return reading->status;
}

static void on_apart(struct store_read *read)
{
    struct call *call = call_of_read(read);
    struct config *config = call->reading.config;
    on_piece(call); /* the call may be gone */
    config_unref(config);
}

static void read_on(struct call *call)
{
    struct api *api = call->api;
    struct call_reading *reading = &call->reading;
    reading->more = false;
    reading->config = api->config;
    if (!api->reader.apart) {
        reading->status = reading->read(call, api->reader.here, &reading->apart.error);
        on_piece(call);
        return;
    }
    config_ref(reading->config); /* a reload may come meanwhile */
    reading->asked_ns = clock_ticks_ns();
    reading->apart = (struct store_read){ .run = run_apart, .done = on_apart, .reply_to = api->mailbox };
    reads_submit(api->reader.apart, &reading->apart);
}

static void on_read_turn(struct rota_entry *entry)
{
    read_on((struct call *)(void *)((char *)entry - offsetof(struct call, reading.turn)));
}

static void begin_reading(struct call *call, call_reader *read, void (*done)(struct call *call), bool anyway)
{
    assert(!call->reading.turn.link); /* one after the other */
    call->reading = (struct call_reading){ .turn.run = on_read_turn, .read = read, .done = done, .anyway = anyway };
    read_on(call);
}

void call_read(struct call *call, call_reader *read, void (*done)(struct call *call))
{
    begin_reading(call, read, done, false);
}

void call_read_anyway(struct call *call, call_reader *read, void (*done)(struct call *call))
{
    begin_reading(call, read, done, true);
}

static void on_applied(struct batch *batch)
{
    struct call *call = batch->context;
    call->asked.then(call);
}

void call_submit(struct call *call, void (*then)(struct call *call))
{
    call->asked.then = then;
    call->batch->context = call;
    call->batch->done = on_applied;
    call->batch->reply_to = call->api->mailbox;
    writer_submit(call->api->settings.writer, call->batch);
}
