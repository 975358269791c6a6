/*
 * The trail: events after a number, or those of one job.
 */
#include "api/api_private.h"
#include "api/job_json.h"
#include "api/pages.h"
#include "base/units.h"

static void write_hash(struct json_writer *json, const unsigned char hash[EVENT_HASH_BYTES])
{
    char text[EVENT_HASH_BYTES * 2 + 1];
    hex_format(hash, EVENT_HASH_BYTES, text);
    json_member_text(json, "hash", text);
}

static void write_event(struct json_writer *json, const struct event *event)
{
    json_object_begin(json);
    json_member_int(json, "number", event->number);
    json_member_instant(json, "at", event->at);
    json_member_text(json, "type", event_type_name(event->type));
    if (event->job.len > 0) {
        json_member_string(json, "job", event->job);
        json_member_string(json, "tenant", event->tenant);
        json_member_text(json, "state", job_state_name(event->state));
        json_member_int(json, "attempt", event->attempt);
    }
    json_member_given(json, "destination", event->destination);
    if (event->data.len > 0) {
        json_name(json, "data");
        json_put_raw(json, event->data);
    }
    if (event->previous > 0)
        json_member_int(json, "previous", event->previous);
    write_hash(json, event->hash);
    json_object_end(json);
}

struct event_question {
    struct slice job, tenant;
    int64_t after;
    size_t limit;
};

static enum status read_events(struct call *call, const struct event_question *question, struct event **ret_events,
                               size_t *ret_count, struct error *err)
{
    struct store_reader *reader = call->api->reader;
    if (question->job.len > 0)
        return reader->ops->reader_history(reader, question->tenant, question->job, STORE_PAGE_MAX, &call->memory,
                                           ret_events, ret_count, err);
    return reader->ops->reader_events(reader, question->after, question->limit, &call->memory, ret_events, ret_count, err);
}

static void answer_events(struct call *call, const struct event_question *question, const struct event *events, size_t count)
{
    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    int64_t last = question->after;
    size_t looked_at = 0;
    json_object_begin(&json);
    json_name(&json, "events");
    json_array_begin(&json);
    for (size_t i = 0; i < count && looked_at < question->limit; i++) {
        if (events[i].number <= question->after)
            continue;
        looked_at++;
        last = events[i].number;
        if (question->tenant.len == 0 || slice_equal(events[i].tenant, question->tenant))
            write_event(&json, &events[i]);
    }
    json_array_end(&json);
    json_member_cursor(&json, looked_at == question->limit ? last : 0);
    json_member_int(&json, "last", last);
    json_object_end(&json);
    call_json(call, 200, &body);
}

void handle_events_list(struct call *call)
{
    struct event_question question = { .job = call_query(call, "job") };
    struct error error;
    struct event *events;
    size_t count;
    const char *from = call_query(call, "cursor").len > 0 ? "cursor" : "after";
    if (!call_tenant(call, call_query(call, "tenant"), &question.tenant) || !call_cursor(call, from, &question.after) ||
        !call_limit(call, &question.limit))
        return;
    enum status status = read_events(call, &question, &events, &count, &error);
    if (status != STATUS_OK)
        call_store_problem(call, status, &error);
    else
        answer_events(call, &question, events, count);
}
