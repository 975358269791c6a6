#include "engine/dead/dead_entry.h"

#include "base/json.h"

#include <assert.h>
#include <jansson.h>

/* The payload as the value it is, on one line: in valid JSON, line ends stand only between tokens. */
static void put_original(struct json_writer *json, struct slice payload)
{
    json_t *value = json_loadb(payload.data ? payload.data : "", payload.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    bool is_json = value != NULL;
    json_decref(value);
    if (!is_json && utf8_is_valid(payload)) {
        json_put_string(json, payload);
        return;
    }
    if (!is_json) {
        json_put_base64(json, payload);
        return;
    }
    json_put_raw(json, SLICE(""));
    for (size_t i = 0; i < payload.len; i++)
        buffer_append_byte(json->out, payload.data[i] == '\n' || payload.data[i] == '\r' ? ' ' : payload.data[i]);
}

/* The schema wants the destination's own code: 550, not smtp:550. */
static struct slice bare_code(struct slice code)
{
    size_t colon = slice_find(code, ':');
    return colon < code.len ? slice_from_offset(code, colon + 1) : code;
}

/* C-38, S2-038: never without one, and one that grew too old says so, whether or not it was ever tried. */
static void write_reason(struct json_writer *json, const struct job *job)
{
    struct buffer reason = buffer_up_to(2 * ERROR_TEXT_STORED_BYTES_MAX);
    if (slice_equal(job->dead_code, SLICE("EXPIRED")))
        buffer_append_text(&reason, job->last_error.len > 0 ? "EXPIRED: " : "EXPIRED");
    buffer_append(&reason, job->last_error);
    json_member_string(json, "lastFailureReason", reason.len > 0 ? buffer_slice(&reason) : job->dead_code);
    buffer_release(&reason);
}

/* The job as POST /v1/jobs takes it, so that what was exported can be added again. A deadline would have passed. */
static void new_job_write(struct json_writer *json, const struct job *job)
{
    json_object_begin(json);
    json_member_string(json, "destination", job->destination);
    json_member_string(json, "id", job->id);
    json_member_given(json, "tenant", job->tenant);
    json_member_text(json, "priority", priority_name(job->priority));
    json_member_given(json, "correlation_id", job->correlation_id);
    json_member_given(json, "content_type", job->content_type);
    json_member_raw(json, "headers", job->headers);
    json_member_raw(json, "metadata", job->metadata);
    json_member_bytes(json, "payload", "payload_base64", job->payload);
    json_object_end(json);
}

void dead_entry_write(struct buffer *out, const struct job *job)
{
    struct json_writer json = json_begin(out);
    assert(job->state == STATE_DEAD && job->dead_at != INSTANT_NONE);
    json_member_string(&json, "jobId", job->id);
    json_member_string(&json, "outboxId", job->id);
    json_member_string(&json, "companyId", job->tenant);
    json_name(&json, "originalData");
    put_original(&json, job->payload);
    json_member_int(&json, "failedAttempts", job->attempts);
    write_reason(&json, job);
    json_member_given(&json, "lastFailureCode", bare_code(job->last_code));
    json_member_instant(&json, "lastFailureTimestamp", job->dead_at);
    json_member_instant(&json, "enqueuedAt", job->created_at);
    json_member_instant(&json, "movedToDLQAt", job->dead_at);
    json_member_int(&json, "ttl", job->expires_at != INSTANT_NONE ? job->expires_at - job->dead_at : 0);
    json_name(&json, "job");
    new_job_write(&json, job);
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}
