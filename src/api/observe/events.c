#include "api/observe/events.h"

#include "api/call/query.h"
#include "api/observe/observe.h"
#include "base/units.h"
#include "config/problems.h"
#include "store/trail_place.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void write_hash(struct json_writer *json, const unsigned char hash[EVENT_HASH_BYTES])
{
    char text[EVENT_HASH_BYTES * 2 + 1];
    hex_format(hash, EVENT_HASH_BYTES, text);
    json_member_text(json, "hash", text);
}

void event_write(struct json_writer *json, const struct event *event)
{
    json_object_begin(json);
    json_member_text(json, "id", event_id(event->number).text);
    json_member_instant(json, "at", event->at);
    json_member_text(json, "type", event_type_name(event->type));
    if (event->job.len > 0) {
        json_member_string(json, "job", event->job);
        json_member_string(json, "tenant", event->tenant);
        json_member_text(json, "state", job_state_name(event->state));
        json_member_int(json, "attempt", event->attempt);
    }
    json_member_given(json, "destination", event->destination);
    json_member_raw(json, "data", event->data);
    if (event->previous > 0)
        json_member_text(json, "previous", event_id(event->previous).text);
    write_hash(json, event->hash);
    json_object_end(json);
}

/* --- by the documents' names ---------------------------------------------------------------------- */

static const char *document_event(const char *action, const json_t *code)
{
    static const struct { const char *word, *name; } names[] = {
        { "retry", "SubmissionRetryScheduledEvent" }, { "MAX_RETRIES_EXCEEDED", "MaxRetriesExceededEvent" },
        { "PERMANENT_ERROR", "PermanentErrorDetectedEvent" },
    };
    const char *word = json_is_string(code) ? json_string_value(code) : action;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (word && strcmp(names[i].word, word) == 0)
            return names[i].name;
    return NULL;
}

/* S0-093, S1-024, S1-060: the record of an attempt that failed, or of a decision. False: the event tells of neither. */
static bool event_write_documents(struct json_writer *json, const struct event *event)
{
    static const char *const same[] = { "retryCount", "maxRetries", "errorClassification", "backoffMinutes", "shouldRetry",
                                        "retryReason", "attempt", "policy", "by" };
    json_t *data = json_loadb(event->data.data ? event->data.data : "", event->data.len, 0, NULL);
    if (!json_object_get(data, "shouldRetry")) {
        json_decref(data);
        return false;
    }
    const json_t *error = json_object_get(data, "errorMessage"), *next = json_object_get(data, "nextRetryTime");
    const json_t *claim = json_object_get(data, "claimId"), *code = json_object_get(data, "errorCode");
    const char *name = document_event(json_string_value(json_object_get(data, "action")), code);
    const json_t *took = json_object_get(data, "duration_ms");
    error = error ? error : json_object_get(data, "error");
    next = next ? next : json_object_get(data, "next_at");
    json_object_begin(json);
    json_member_text(json, "id", event_id(event->number).text);
    json_member_instant(json, "timestamp", event->at);
    if (name)
        json_member_text(json, "eventType", name);
    json_member_string(json, "claimId", claim ? slice_from(json_string_value(claim)) : event->job);
    json_member_given(json, "tenant", event->tenant);
    json_member_given(json, "destination", event->destination);
    json_member_given(json, "errorMessage", slice_from(json_string_value(error)));
    json_member_given(json, "error", slice_from(json_string_value(error)));
    json_member_given(json, "submissionError", slice_from(json_string_value(error)));
    json_member_given(json, "nextRetryTime", slice_from(json_string_value(next)));
    json_member_given(json, "errorCode", slice_from(json_string_value(code)));
    if (json_is_integer(took))
        json_member_int(json, "executionTimeMs", json_integer_value(took));
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const json_t *value = json_object_get(data, same[i]);
        char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
        if (!text)
            continue;
        json_member_raw(json, same[i], slice_from(text));
        free(text);
    }
    json_object_end(json);
    json_decref(data);
    return true;
}

/* --- which ---------------------------------------------------------------------------------------- */

_Static_assert(EVENT_TYPE_COUNT <= 32, "a type is a bit of event_filter.types");

static bool read_types(struct call *call, uint32_t *ret_types)
{
    struct slice rest = call_query(call, "type");
    uint32_t types = 0;
    while (rest.len > 0) {
        size_t end = slice_find(rest, ',');
        struct slice name = slice_trim((struct slice){ rest.data, end });
        enum event_type type = event_type_from_name(name);
        if (type == EVENT_TYPE_NONE)
            return call_problem(call, 422, "invalid_type",
                                "there is no type of event \"%s\"; insist help events, or /openapi.json, lists them",
                                quote(name).text);
        types |= UINT32_C(1) << type;
        rest = slice_from_offset(rest, end < rest.len ? end + 1 : end);
    }
    *ret_types = types;
    return true;
}

bool event_filter_read(struct call *call, struct event_filter *ret_filter)
{
    *ret_filter = (struct event_filter){ .job = call_query(call, "job"), .destination = call_query(call, "destination") };
    return call_tenant(call, call_query(call, "tenant"), &ret_filter->tenant) && read_types(call, &ret_filter->types);
}

bool event_filter_takes(const struct event_filter *filter, const struct event *event)
{
    return (filter->tenant.len == 0 || slice_equal(filter->tenant, event->tenant)) &&
           (filter->destination.len == 0 || slice_equal(filter->destination, event->destination)) &&
           (filter->job.len == 0 || slice_equal(filter->job, event->job)) &&
           (filter->types == 0 || (filter->types >> event->type & 1) != 0);
}

/* --- the list ------------------------------------------------------------------------------------- */

enum {
    EVENTS_LOOKED_AT_MAX = 5 * STORE_PAGE_MAX, /* for one answer, however few are found */
    EVENTS_A_PIECE = 100,
    EVENTS_READ_BYTES_MAX = 64 << 20,
};

struct event_question {
    struct event_filter filter;
    struct trail_place after;
    size_t limit;
    bool documents; /* by the documents' names */
};

/* An answer that grows read by read. */
struct event_page {
    struct event_question question;
    struct trail_place last; /* behind the newest that was looked at */
    size_t taken, looked_at;
    bool more; /* the read before had as many as it may have */
};

static void take_events(struct call *call, const struct event *events, size_t count)
{
    struct event_page *page = call->context;
    const struct event_question *question = &page->question;
    for (size_t i = 0; i < count && page->taken < question->limit; i++) {
        if (events[i].number <= trail_place_last(&question->after, events[i].number))
            continue;
        page->looked_at++;
        trail_place_advance(&page->last, events[i].number);
        if (!event_filter_takes(&question->filter, &events[i]))
            continue;
        if (question->documents && !event_write_documents(&call->answer.json, &events[i]))
            continue;
        if (!question->documents)
            event_write(&call->answer.json, &events[i]);
        page->taken++;
    }
}

static enum status read_page(struct call *call, struct store_reader *reader, struct error *err)
{
    struct event_page *page = call->context;
    const struct event_question *question = &page->question;
    const struct event_filter *filter = &question->filter;
    bool chosen = question->documents || filter->tenant.len > 0 || filter->destination.len > 0 || filter->types != 0;
    size_t wanted = question->limit - page->taken;
    size_t max = filter->job.len > 0 ? STORE_PAGE_MAX : chosen || wanted > EVENTS_A_PIECE ? EVENTS_A_PIECE : wanted;
    struct event *events;
    size_t count;
    enum status status;
    struct arena memory;
    arena_init(&memory, EVENTS_READ_BYTES_MAX);
    if (filter->job.len > 0)
        status = reader->ops->reader_history(reader, filter->tenant, filter->job, max, &memory, &events, &count, err);
    else
        status = trail_place_read(reader, &page->last, max, &memory, &events, &count, err);
    if (status == STATUS_OK) {
        take_events(call, events, count);
        page->more = filter->job.len == 0 && count == max;
    }
    arena_release(&memory);
    call->reading.more = status == STATUS_OK && page->more && page->taken < question->limit &&
                         page->looked_at < EVENTS_LOOKED_AT_MAX;
    return status;
}

static bool read_format(struct call *call, bool *ret_documents)
{
    struct slice format = call_query(call, "format");
    *ret_documents = slice_equal(format, SLICE("documents"));
    if (format.len == 0 || *ret_documents || slice_equal(format, SLICE("insist")))
        return true;
    return call_problem(call, 422, "invalid_parameter", "format must be insist or documents");
}

static void answer_page(struct call *call)
{
    struct event_page *page = call->context;
    char last[PLACE_BYTES];
    trail_place_format(&page->last, last);
    json_array_end(&call->answer.json);
    bool more = page->more || page->taken == page->question.limit;
    json_member_or_null(&call->answer.json, "next", slice_from(more ? last : ""));
    json_member_text(&call->answer.json, "last", last);
    call_answer_send(call, 200);
}

static bool read_place(struct call *call, const char *name, struct trail_place *ret_place)
{
    if (trail_place_parse(call_query(call, name), ret_place))
        return true;
    return call_problem(call, 422, "invalid_cursor", "%s must be what an earlier answer gave", name);
}

void handle_events_list(struct call *call)
{
    const char *from = call_query(call, "cursor").len > 0 ? "cursor" : "after";
    struct event_page *page = call_context(call, sizeof *page);
    struct event_question *question = page ? &page->question : NULL;
    if (!page || !event_filter_read(call, &question->filter) || !read_place(call, from, &question->after) ||
        !call_limit(call, &question->limit) || !read_format(call, &question->documents))
        return;
    page->last = question->after;
    json_member_array(call_answer(call), "events");
    call_read(call, read_page, answer_page);
}
