/*
 * Persons: all that is stored of one, line by line, for who asks for it; and its erasure, which is the engine's.
 *
 * Whoever asks looks at every job and every event, some at a time, so that other calls are answered in between.
 */
#include "api/call/ask.h"
#include "api/call/pieces.h"
#include "api/call/query.h"
#include "api/jobs/job_json.h"
#include "api/jobs/jobs.h"
#include "api/observe/events.h"
#include "base/log.h"
#include "engine/erasures/erasures.h"
#include "store/subject.h"

#include <string.h>

enum {
    JOBS_AT_ONCE = 16, /* with their payloads in memory */
    PAGES_A_PIECE = 8, /* in which nothing was found */
    EVENTS_A_PIECE = 250,
    ERASURES_A_PAGE = 100,
};

/* ---- what is stored of one ---- */

struct found_job {
    struct job job;
    unsigned places;
    struct event *events;
    size_t event_count;
};

struct telling {
    struct subject subject;
    struct slice tenant;
    bool in_events; /* else it is among the jobs */
    int64_t place;
    instant until; /* when it was asked: later events are not looked at */
    bool is_read, over;
    struct arena memory; /* of the piece that was read: */
    struct found_job *jobs;
    struct event *events;
    size_t count;
    int64_t job_count, event_count;
};

static void telling_forget(struct call *call)
{
    struct telling *telling = call->context;
    arena_release(&telling->memory);
}

static enum status jobs_keep(struct telling *telling, struct store_reader *reader, const struct job *jobs, size_t count,
                             struct error *err)
{
    telling->jobs = arena_alloc_array(&telling->memory, count + 1, sizeof *telling->jobs);
    if (!telling->jobs)
        return error_set(err, STATUS_NO_MEMORY, "no memory for what is stored of a subject");
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        unsigned places = subject_in_job(&telling->subject, &jobs[i]);
        if (places == 0)
            continue;
        struct found_job *found = &telling->jobs[telling->count++];
        *found = (struct found_job){ .job = jobs[i], .places = places };
        status = reader->ops->reader_history(reader, jobs[i].tenant, jobs[i].id, STORE_PAGE_MAX, &telling->memory,
                                             &found->events, &found->event_count, err);
    }
    return status;
}

static enum status jobs_read(struct telling *telling, struct store_reader *reader, struct error *err)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < PAGES_A_PIECE && status == STATUS_OK && telling->count == 0 && !telling->in_events; i++) {
        const struct job_filter filter = { .tenant = telling->tenant, .before_seq = telling->place };
        struct job *jobs;
        size_t count;
        arena_release(&telling->memory);
        status = reader->ops->reader_jobs(reader, &filter, JOBS_AT_ONCE, true, &telling->memory, &jobs, &count,
                                          &telling->place, err);
        telling->in_events = status == STATUS_OK && telling->place == 0;
        if (status == STATUS_OK)
            status = jobs_keep(telling, reader, jobs, count, err);
    }
    return status;
}

static enum status events_read(struct telling *telling, struct store_reader *reader, struct error *err)
{
    struct event *events;
    size_t count;
    enum status status = reader->ops->reader_events(reader, telling->place, EVENTS_A_PIECE, &telling->memory, &events,
                                                    &count, err);
    if (status != STATUS_OK)
        return status;
    telling->over = count == 0;
    telling->events = events;
    for (size_t i = 0; i < count; i++) {
        const struct event *event = &events[i];
        bool meant = telling->tenant.len == 0 || slice_equal(event->tenant, telling->tenant);
        telling->place = event->number;
        if (event->at > telling->until) { /* on to the next chain */
            telling->place = ((event->number >> EVENT_CHAIN_SHIFT) + 1) << EVENT_CHAIN_SHIFT;
            break;
        }
        if (meant && (subject_in(&telling->subject, event->data) || subject_in_names(&telling->subject, event)))
            events[telling->count++] = *event;
    }
    return STATUS_OK;
}

static enum status read_piece(struct call *call, struct store_reader *reader, struct error *err)
{
    struct telling *telling = call->context;
    telling->count = 0;
    telling->jobs = NULL;
    telling->events = NULL;
    return telling->in_events ? events_read(telling, reader, err) : jobs_read(telling, reader, err);
}

static void job_line(struct buffer *out, const struct found_job *found)
{
    const struct job_view view = { .payload = true, .attempts = true, .events = found->events,
                                   .event_count = found->event_count };
    struct json_writer json = json_begin(out);
    json_member_object(&json, "job");
    job_json_members(&json, &found->job, &view);
    json_object_end(&json);
    json_member_array(&json, "found_in");
    for (unsigned place = 1; place <= SUBJECT_IN_TENANT; place <<= 1)
        if (found->places & place)
            json_put_string(&json, slice_from(subject_place_name(place)));
    json_array_end(&json);
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}

static void event_line(struct buffer *out, const struct event *event)
{
    struct json_writer json = json_begin(out);
    json_name(&json, "event");
    event_write(&json, event);
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}

/* Who does not see it has not got all. */
static void last_line(struct buffer *out, const struct telling *telling)
{
    struct json_writer json = json_begin(out);
    json_member_object(&json, "found");
    json_member_int(&json, "jobs", telling->job_count);
    json_member_int(&json, "events", telling->event_count);
    json_object_end(&json);
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}

static enum piece next_piece(struct call *call, struct buffer *out)
{
    struct telling *telling = call->context;
    telling->is_read = !telling->is_read;
    if (telling->is_read)
        return PIECE_READ;
    if (call->reading.status != STATUS_OK) {
        log_event(LOG_ERROR, "subject_failed", FIELD_CSTR("error", call->reading.apart.error.text));
        return PIECE_FAILED;
    }
    for (size_t i = 0; i < telling->count; i++) {
        if (telling->jobs)
            job_line(out, &telling->jobs[i]);
        else
            event_line(out, &telling->events[i]);
    }
    *(telling->jobs ? &telling->job_count : &telling->event_count) += (int64_t)telling->count;
    arena_release(&telling->memory);
    if (telling->over)
        last_line(out, telling);
    return telling->over ? PIECE_LAST : PIECE_MORE;
}

/* False: answered. */
static bool subject_of(struct call *call, struct subject *ret_subject, struct slice *ret_tenant)
{
    struct error error;
    if (subject_init(ret_subject, call->parameters[0], &error) != STATUS_OK)
        return call_problem(call, 422, "invalid_subject", "%s", error.text);
    return call_tenant(call, call_query(call, "tenant"), ret_tenant);
}

void handle_subject_get(struct call *call)
{
    struct telling *telling = call_context(call, sizeof *telling);
    if (!telling || !subject_of(call, &telling->subject, &telling->tenant))
        return;
    telling->until = api_now(call->api);
    call->forget = telling_forget;
    call_stream(call, "application/x-ndjson", read_piece, next_piece);
}

/* ---- its erasure ---- */

struct erasure_order {
    struct slice tenant;
    char id[ERASURE_ID_BYTES];
    struct saved_wait saved;
    enum status status;
    struct error error;
};

static void erasure_begun(struct call *call)
{
    const struct erasure_order *order = call->context;
    if (order->status == STATUS_LIMIT) {
        call_problem(call, 429, "too_many_erasures", "%s", order->error.text);
        return;
    }
    if (order->status != STATUS_OK || order->saved.error.status != STATUS_OK) {
        call_problem(call, 503, "not_begun", "%s",
                     order->status != STATUS_OK ? order->error.text : order->saved.error.text);
        return;
    }
    struct json_writer *json = call_answer(call);
    json_member_text(json, "id", order->id);
    json_member_text(json, "state", "running");
    call_answer_send(call, 202);
}

/* The engine's copy lives on without the call. */
static bool run_begin(struct call *call, struct engine *engine)
{
    struct erasure_order *order = call->context;
    struct erasure_record record = { .id = "" };
    record.subject = arena_copy(&record.memory, call->parameters[0]);
    record.tenant = arena_copy(&record.memory, order->tenant);
    record.by = arena_copy(&record.memory, call->who);
    order->saved = ask_saved(call);
    if (!record.subject.data || !record.tenant.data || !record.by.data) {
        erasure_record_release(&record);
        order->status = error_set(&order->error, STATUS_NO_MEMORY, "no memory for an erasure");
        return true;
    }
    order->status = engine_erasure_begin(engine, &record, &order->saved, &order->error);
    if (order->status == STATUS_OK)
        memcpy(order->id, record.id, sizeof order->id);
    return order->status != STATUS_OK;
}

void handle_subject_delete(struct call *call)
{
    struct erasure_order *order = call_context(call, sizeof *order);
    struct subject subject;
    if (!order || !subject_of(call, &subject, &order->tenant))
        return;
    ask(call, SLICE(""), run_begin, erasure_begun);
}

/* ---- looking at erasures ---- */

struct erasure_page {
    struct saved *saved;
    size_t count, limit;
    struct slice before;
    struct slice value; /* of one */
};

/* What no daemon can reach is said to who asks. */
static void not_reached_write(struct json_writer *json)
{
    json_member_array(json, "not_reached");
    json_put_string(json, SLICE("backups and copies of the store"));
    json_put_string(json, SLICE("files that dead export and dead purge --archive have written"));
    json_put_string(json, SLICE("what destinations, logs and those who follow events have received"));
    json_array_end(json);
}

/* False: it is not for this call, or no erasure. */
static bool erasure_show(const struct call *call, struct json_writer *json, struct slice value)
{
    struct erasure_record record;
    struct error error;
    if (erasure_record_read(value, &record, &error) != STATUS_OK)
        return false;
    bool seen = !call->tenant_bound.data || slice_equal(record.tenant, call->tenant_bound);
    if (seen) {
        json_object_begin(json);
        erasure_members(json, &record);
        not_reached_write(json);
        json_object_end(json);
    }
    erasure_record_release(&record);
    return seen;
}

static enum status read_page(struct call *call, struct store_reader *reader, struct error *err)
{
    struct erasure_page *page = call->context;
    return reader->ops->reader_saved_list(reader, SPACE_ERASURE, page->before, page->limit, &call->memory, &page->saved,
                                          &page->count, err);
}

static void answer_page(struct call *call)
{
    const struct erasure_page *page = call->context;
    struct json_writer *json = call_answer(call);
    json_member_array(json, "erasures");
    for (size_t i = 0; i < page->count; i++)
        erasure_show(call, json, page->saved[i].value);
    json_array_end(json);
    json_member_or_null(json, "next", page->count == page->limit ? page->saved[page->count - 1].name : SLICE(""));
    call_answer_send(call, 200);
}

void handle_erasures_list(struct call *call)
{
    struct erasure_page *page = call_context(call, sizeof *page);
    if (!page || !call_limit(call, &page->limit))
        return;
    page->limit = page->limit < ERASURES_A_PAGE ? page->limit : ERASURES_A_PAGE;
    page->before = call_query(call, "cursor");
    call_read(call, read_page, answer_page);
}

static enum status read_one(struct call *call, struct store_reader *reader, struct error *err)
{
    struct erasure_page *page = call->context;
    return reader->ops->reader_saved(reader, SPACE_ERASURE, call->parameters[0], &call->memory, &page->value, err);
}

static void answer_one(struct call *call)
{
    const struct erasure_page *page = call->context;
    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    if (call->reading.status == STATUS_OK && erasure_show(call, &json, page->value)) {
        call_json(call, 200, &body);
        return;
    }
    buffer_release(&body);
    call_problem(call, 404, "erasure_not_found",
                 "there is no erasure \"%.*s\"; insist subject erasures lists them",
                 SLICE_ARG(call->parameters[0]));
}

void handle_erasure_get(struct call *call)
{
    if (call_context(call, sizeof(struct erasure_page)))
        call_read(call, read_one, answer_one);
}
