#include "guests/forward_event.h"

#include "base/json.h"
#include "core/decision/classify.h"
#include "core/decision/job.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

/* ---- reading ---- */

static struct slice text_of(const json_t *facts, const char *name, struct arena *memory, bool *complete)
{
    const json_t *value = json_object_get(facts, name);
    if (!json_is_string(value))
        return SLICE("");
    struct slice copy = arena_copy(memory, (struct slice){ json_string_value(value), json_string_length(value) });
    *complete = *complete && copy.data;
    return copy;
}

enum status forward_event_read(const struct event *event, struct arena *memory, struct forward_event *ret_read)
{
    json_t *facts = event->data.len > 0 ? json_loadb(event->data.data, event->data.len, 0, NULL) : NULL;
    bool complete = true;
    *ret_read = (struct forward_event){
        .event = event,
        .facts = json_is_object(facts) ? event->data : SLICE("{}"),
        .code = text_of(facts, "code", memory, &complete),
        .error = text_of(facts, "error", memory, &complete),
        .dead_code = text_of(facts, "dead_code", memory, &complete),
        .class = text_of(facts, "errorClassification", memory, &complete),
        .rule = text_of(facts, "rule", memory, &complete),
        .next_at = text_of(facts, "next_at", memory, &complete),
        .retry_count = json_integer_value(json_object_get(facts, "retryCount")),
        .max_retries = json_integer_value(json_object_get(facts, "maxRetries")),
        .backoff_ms = json_integer_value(json_object_get(facts, "backoffMs")),
        .duration_ms = json_integer_value(json_object_get(facts, "duration_ms")),
        .has_retries = json_is_integer(json_object_get(facts, "retryCount")),
        .has_backoff = json_is_integer(json_object_get(facts, "backoffMs")),
        .should_retry = json_is_true(json_object_get(facts, "shouldRetry")),
    };
    if (event->type == EVENT_TYPE_EXPIRED && ret_read->dead_code.len == 0)
        ret_read->dead_code = SLICE("EXPIRED");
    json_decref(facts);
    return complete ? STATUS_OK : STATUS_NO_MEMORY;
}

bool forward_event_ends(enum event_type type)
{
    return type == EVENT_TYPE_COMPLETED || type == EVENT_TYPE_DEAD || type == EVENT_TYPE_EXPIRED ||
           type == EVENT_TYPE_CANCELLED;
}

/* ---- choosing ---- */

static bool ends_attempt(enum event_type type)
{
    return type == EVENT_TYPE_COMPLETED || type == EVENT_TYPE_RETRY_SCHEDULED || type == EVENT_TYPE_RELEASED ||
           type == EVENT_TYPE_DEAD;
}

static bool is_on(const struct text_list *on, enum event_type type)
{
    for (size_t i = 0; i < on->count; i++) {
        struct slice word = slice_from(on->items[i]);
        if (slice_equal(word, SLICE("all")) || slice_equal(word, slice_from(event_type_name(type))) ||
            (slice_equal(word, SLICE("attempt")) && ends_attempt(type)))
            return true;
    }
    return false;
}

static bool gets_events(const struct config *config, struct slice destination)
{
    for (size_t i = 0; i < config->event_count; i++)
        if (config->events[i].to && slice_equal(slice_from(config->events[i].to), destination))
            return true;
    return false;
}

bool forward_event_wanted(const struct config *config, const struct event_config *entry, const struct forward_event *read)
{
    const struct event *event = read->event;
    if (event->job.len == 0 || !is_on(&entry->on, event->type) || gets_events(config, event->destination))
        return false;
    bool coded = entry->where_code.count == 0, died = entry->where_dead_code.count == 0;
    for (size_t i = 0; i < entry->where_code.count && !coded; i++) {
        struct slice rule = slice_from(entry->where_code.items[i]);
        coded = (read->code.len > 0 && code_matches(rule, read->code)) || slice_equal(rule, read->rule);
    }
    for (size_t i = 0; i < entry->where_dead_code.count && !died; i++)
        died = slice_equal(slice_from(entry->where_dead_code.items[i]), read->dead_code);
    return coded && died;
}

/* ---- writing ---- */

struct slice forward_content_type(enum event_format format)
{
    return format == EVENT_FORMAT_CLOUDEVENTS ? SLICE("application/cloudevents+json") : SLICE("application/json");
}

static void write_cloudevent(struct json_writer *json, const struct forward_event *read, const struct job *job)
{
    const struct event *event = read->event;
    char id[24], type[64];
    snprintf(id, sizeof id, "%" PRId64, event->number);
    snprintf(type, sizeof type, "insist.job.%s", event_type_name(event->type));
    json_member_text(json, "specversion", "1.0");
    json_member_text(json, "id", id);
    json_member_text(json, "source", "insist");
    json_member_text(json, "type", type);
    json_member_string(json, "subject", event->job);
    json_member_instant(json, "time", event->at);
    json_member_text(json, "datacontenttype", "application/json");
    json_member_object(json, "data");
    json_member_string(json, "job", event->job);
    json_member_string(json, "tenant", event->tenant);
    json_member_string(json, "destination", event->destination);
    json_member_text(json, "state", job_state_name(event->state));
    json_member_int(json, "attempt", event->attempt);
    if (job)
        json_member_given(json, "correlation_id", job->correlation_id);
    json_member_raw(json, "facts", read->facts);
    json_object_end(json);
}

/* C-30: one record under both documents' names. */
static void write_types(struct json_writer *json, const char *first, const char *second)
{
    json_member_text(json, "type", first);
    json_member_array(json, "types");
    json_put_string(json, slice_from(first));
    json_put_string(json, slice_from(second));
    json_array_end(json);
}

/* C-18, C-51: the one error under the names that the records and log lines have for it. */
static void write_retry(struct json_writer *json, const struct forward_event *read)
{
    const struct event *event = read->event;
    write_types(json, "SubmissionRetryScheduledEvent", "RetryScheduledEvent");
    json_member_text(json, "event", "submission_retry_scheduled");
    json_member_text(json, "level", "warn");
    json_member_text(json, "message", "Job failed, scheduling retry");
    json_member_string(json, "submissionError", read->error);
    json_member_string(json, "errorReason", read->error);
    json_member_given(json, "errorCode", read->code);
    json_member_given(json, "errorClassification", read->class);
    json_member_int(json, "retryCount", read->retry_count);
    json_member_int(json, "maxRetries", read->max_retries);
    json_member_int(json, "attempt", event->attempt);
    json_member_int(json, "maxAttempts", read->max_retries + 1);
    if (read->has_backoff) {
        json_member_int(json, "backoffMinutes", (read->backoff_ms + MINUTE_MS / 2) / MINUTE_MS);
        json_member_int(json, "nextRetryDelay", read->backoff_ms);
    }
    json_member_given(json, "nextRetryTime", read->next_at);
    json_member_bool(json, "isRetryable", read->should_retry);
    json_member_int(json, "executionTimeMs", read->duration_ms);
    json_member_instant(json, "scheduledAt", event->at);
}

/* All retries are used up (S0-125, S1-098). */
static void write_exhausted(struct json_writer *json, const struct forward_event *read, const struct job *job)
{
    const struct event *event = read->event;
    write_types(json, "MaxRetriesExceededEvent", "SubmissionRetryExhaustedEvent");
    json_member_string(json, "finalError", read->error);
    json_member_string(json, "lastError", read->error);
    json_member_int(json, "retryCount", read->retry_count);
    json_member_int(json, "totalAttempts", event->attempt);
    if (job)
        json_member_int(json, "totalDuration", event->at - job->created_at);
    json_member_instant(json, "exceededAt", event->at);
    json_member_text(json, "severity", "CRITICAL");
}

/* It will not be tried again (S1-099). */
static void write_permanent(struct json_writer *json, const struct forward_event *read)
{
    json_member_text(json, "type", "PermanentErrorDetectedEvent");
    json_member_string(json, "errorType", read->code.len > 0 ? read->code : read->dead_code);
    json_member_string(json, "errorMessage", read->error);
    json_member_instant(json, "detectedAt", read->event->at);
    json_member_text(json, "severity", "CRITICAL");
}

static void write_document(struct json_writer *json, const struct forward_event *read, const struct job *job)
{
    const struct event *event = read->event;
    if (event->type == EVENT_TYPE_RETRY_SCHEDULED)
        write_retry(json, read);
    else if (event->type == EVENT_TYPE_DEAD && slice_equal(read->dead_code, SLICE("MAX_RETRIES_EXCEEDED")))
        write_exhausted(json, read, job);
    else if (event->type == EVENT_TYPE_DEAD)
        write_permanent(json, read);
    else
        json_member_text(json, "type", event_type_name(event->type));
    json_member_string(json, "claimId", event->job);
    json_member_string(json, "jobId", event->job);
    json_member_string(json, "companyId", event->tenant);
    json_member_string(json, "destination", event->destination);
    json_member_given(json, "deadCode", read->dead_code);
    json_member_int(json, "version", event->number);
    json_member_instant(json, "timestamp", event->at);
}

void forward_event_write(struct buffer *out, enum event_format format, const struct forward_event *read,
                         const struct job *job)
{
    struct json_writer json = json_begin(out);
    if (format == EVENT_FORMAT_CLOUDEVENTS)
        write_cloudevent(&json, read, job);
    else
        write_document(&json, read, job);
    json_object_end(&json);
}

void forward_callback_write(struct buffer *out, const struct forward_event *read, const struct job *job)
{
    assert(forward_event_ends(read->event->type));
    struct json_writer json = json_writer(out);
    char type[32];
    snprintf(type, sizeof type, "job.%s", event_type_name(read->event->type));
    json_object_begin(&json);
    json_member_text(&json, "type", type);
    json_member_instant(&json, "timestamp", read->event->at);
    json_member_object(&json, "data");
    json_member_string(&json, "id", job->id);
    json_member_string(&json, "tenant", job->tenant);
    json_member_string(&json, "destination", job->destination);
    json_member_text(&json, "state", job_state_name(read->event->state));
    json_member_int(&json, "attempts", read->event->attempt);
    json_member_given(&json, "code", read->code);
    json_member_given(&json, "error", read->error);
    json_member_given(&json, "dead_code", read->dead_code);
    json_member_given(&json, "reference", job->reference);
    json_member_given(&json, "correlation_id", job->correlation_id);
    json_member_raw(&json, "metadata", job->metadata);
    json_object_end(&json);
    json_object_end(&json);
}
