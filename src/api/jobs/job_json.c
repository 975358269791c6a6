#include "api/jobs/job_json.h"

#include "api/call/json_text.h"

#include <jansson.h>

/* The documents' own word for the job's state. */
static const char *job_status_word(const struct destination_config *destination, enum job_state state)
{
    static const char *const words[STATE_COUNT] = {
        [STATE_NONE] = "UNKNOWN",        [STATE_PENDING] = "PENDING",     [STATE_RUNNING] = "IN_PROGRESS",
        [STATE_WAITING] = "PENDING",     [STATE_COMPLETED] = "COMPLETED", [STATE_DEAD] = "FAILED",
        [STATE_CANCELLED] = "CANCELLED",
    };
    const char *own = destination ? destination->status_words[state] : NULL;
    return own ? own : words[state];
}

/* A member of an event's data, as it is; left out when it is not there. */
static void copy_member(struct json_writer *json, struct slice data, const char *name)
{
    struct slice value = json_text_member(data, slice_from(name));
    json_member_raw(json, name, value);
}

static bool tells_of_attempt(const struct event *event)
{
    switch (event->type) {
    case EVENT_TYPE_COMPLETED:
    case EVENT_TYPE_RETRY_SCHEDULED:
    case EVENT_TYPE_RELEASED:
    case EVENT_TYPE_DEAD:
    case EVENT_TYPE_EXPIRED:
        return json_text_member(event->data, SLICE("class")).len > 0;
    default:
        return false;
    }
}

static void write_attempt(struct json_writer *json, const struct event *event, instant began_at, int64_t generation)
{
    struct slice duration = json_text_member(event->data, SLICE("duration_ms"));
    struct slice code = json_text_member(event->data, SLICE("code"));
    instant at = began_at != INSTANT_NONE ? began_at : event->at;
    json_object_begin(json);
    json_member_int(json, "attempt", event->attempt);
    json_member_int(json, "generation", generation);
    json_member_instant(json, "at", at);
    json_name(json, "duration_ms");
    if (duration.len > 0)
        json_put_raw(json, duration);
    else
        json_put_int(json, event->at - at);
    copy_member(json, event->data, "class");
    json_member_raw(json, "code", code.len > 0 ? code : SLICE("null"));
    copy_member(json, event->data, "error");
    copy_member(json, event->data, "headers_left_out");
    copy_member(json, event->data, "step");
    copy_member(json, event->data, "action");
    copy_member(json, event->data, "next_at");
    copy_member(json, event->data, "backoff_factor");
    json_object_end(json);
}

/* Of the first event that is still there. */
static int64_t first_generation(const struct job *job, const struct job_view *view)
{
    int64_t generation = job->generation;
    for (size_t i = 0; i < view->event_count; i++)
        generation -= (view->events[i].type == EVENT_TYPE_REDRIVEN) - (view->events[i].type == EVENT_TYPE_UNDONE);
    return generation;
}

static void write_attempts(struct json_writer *json, const struct job *job, const struct job_view *view)
{
    instant claimed_at = INSTANT_NONE;
    int64_t generation = first_generation(job, view);
    json_member_array(json, "attempts");
    for (size_t i = 0; i < view->event_count; i++) {
        const struct event *event = &view->events[i];
        if (event->type == EVENT_TYPE_CLAIMED)
            claimed_at = event->at;
        generation += (event->type == EVENT_TYPE_REDRIVEN) - (event->type == EVENT_TYPE_UNDONE);
        if (!tells_of_attempt(event))
            continue;
        write_attempt(json, event, claimed_at, generation);
        claimed_at = INSTANT_NONE;
    }
    json_array_end(json);
}

static void write_counts(struct json_writer *json, const struct job *job, const struct job_view *view)
{
    json_member_int(json, "attempt_count", job->attempts);
    json_member_int(json, "attempts_total", job->attempts_total);
    json_member_int(json, "retry_count", job->retry_count);
    if (view->destination)
        json_member_int(json, "max_retries", view->destination->policy.retry.retries_max);
    json_member_int(json, "generation", job->generation);
    if (job->step != STEP_SEND)
        json_member_text(json, "step", job->step == STEP_VERIFY ? "verify" : "poll");
}

static void write_times(struct json_writer *json, const struct job *job)
{
    json_member_instant(json, "created_at", job->created_at);
    json_member_instant(json, "updated_at", job->updated_at);
    json_member_instant(json, "run_at", job->run_at);
    bool scheduled = job->state == STATE_PENDING && job->run_at > job->created_at;
    if (job->state == STATE_WAITING || scheduled)
        json_member_instant(json, "next_at", job->run_at);
    json_member_instant(json, "deadline", job->deadline);
    if (job->state == STATE_RUNNING)
        json_member_instant(json, "lease_until", job->lease_until);
    if (job->state == STATE_DEAD) {
        json_member_instant(json, "dead_at", job->dead_at);
        json_member_instant(json, "expires_at", job->expires_at);
    }
}

static void write_texts(struct json_writer *json, const struct job *job)
{
    if (job->last_class != OUTCOME_NONE)
        json_member_text(json, "last_class", outcome_name(job->last_class));
    json_member_given(json, "last_code", job->last_code);
    json_member_given(json, "last_error", job->last_error);
    json_member_given(json, "dead_code", job->dead_code);
    json_member_given(json, "reference", job->reference);
    json_member_given(json, "correlation_id", job->correlation_id);
    json_member_raw(json, "metadata", job->metadata);
    json_member_raw(json, "headers", job->headers);
    json_member_given(json, "content_type", job->content_type);
    json_member_given(json, "key", job->key);
    if (job->gap)
        json_member_bool(json, "gap", true);
    json_member_raw(json, "callback", job->callback);
}

void job_json_members(struct json_writer *json, const struct job *job, const struct job_view *view)
{
    bool can_be_held = job->state == STATE_PENDING || job->state == STATE_WAITING;
    json_member_string(json, "id", job->id);
    json_member_string(json, "tenant", job->tenant);
    json_member_string(json, "destination", job->destination);
    json_member_text(json, "state", job_state_name(job->state));
    json_member_text(json, "status", job_status_word(view->destination, job->state));
    if (can_be_held && view->held_by)
        json_member_text(json, "held_by", view->held_by);
    json_member_text(json, "priority", priority_name(job->priority));
    write_counts(json, job, view);
    write_times(json, job);
    write_texts(json, job);
    if (view->attempts)
        write_attempts(json, job, view);
    if (view->payload)
        json_member_bytes(json, "payload", "payload_base64", job->payload);
}

void job_json_write(struct json_writer *json, const struct job *job, const struct job_view *view)
{
    json_object_begin(json);
    job_json_members(json, job, view);
    json_object_end(json);
}
