/* A job as the server gives it: its own row, what it has become since, and its lease. */
#include "store/postgres/work.h"

#include <assert.h>

static bool in_range(int64_t value, int64_t min, int64_t end)
{
    return value >= min && value < end;
}

/* As change_insert made it. */
static void decode_inserted(const PGresult *answer, int row, struct job *job)
{
    job->state = STATE_PENDING;
    job->priority = (enum priority)value_int(answer, row, JOB_PRIORITY);
    job->step = STEP_SEND;
    job->rank = value_int(answer, row, JOB_RANK);
    job->generation = 1;
    job->run_at = value_int(answer, row, JOB_RUN_AT);
    job->deadline = value_instant(answer, row, JOB_DEADLINE);
    job->updated_at = job->created_at;
    job->first_at = job->failed_at = job->look_failed_at = job->dead_at = INSTANT_NONE;
    job->expires_at = job->forget_at = INSTANT_NONE;
    job->last_code = job->last_error = job->dead_code = job->reference = job->redrive = SLICE("");
    job->last_event = value_int(answer, row, JOB_EVENT);
}

static void decode_state(const PGresult *answer, int row, struct job *job)
{
    instant leaves_at = value_instant(answer, row, STATE_LEAVES_AT);
    job->state = (enum job_state)value_int(answer, row, STATE_STATE);
    job->priority = (enum priority)value_int(answer, row, STATE_PRIORITY);
    job->step = (enum job_step)value_int(answer, row, STATE_STEP);
    job->rank = value_int(answer, row, STATE_RANK);
    job->generation = value_int(answer, row, STATE_GENERATION);
    job->attempts = value_int(answer, row, STATE_ATTEMPTS);
    job->attempts_total = value_int(answer, row, STATE_ATTEMPTS_TOTAL);
    job->retry_count = value_int(answer, row, STATE_RETRY_COUNT);
    job->step_count = value_int(answer, row, STATE_STEP_COUNT);
    job->redrives_auto = value_int(answer, row, STATE_REDRIVES_AUTO);
    job->doubted = value_int(answer, row, STATE_DOUBTED) != 0;
    job->first_at = value_instant(answer, row, STATE_FIRST_AT);
    job->run_at = value_int(answer, row, STATE_RUN_AT);
    job->deadline = value_instant(answer, row, STATE_DEADLINE);
    job->updated_at = value_int(answer, row, STATE_UPDATED_AT);
    job->failed_at = value_instant(answer, row, STATE_FAILED_AT);
    job->look_failed_at = value_instant(answer, row, STATE_LOOK_FAILED_AT);
    job->dead_at = value_instant(answer, row, STATE_DEAD_AT);
    job->expires_at = job->state == STATE_DEAD ? leaves_at : INSTANT_NONE;
    job->forget_at = job->state == STATE_DEAD ? INSTANT_NONE : leaves_at;
    job->last_class = (enum outcome)value_int(answer, row, STATE_LAST_CLASS);
    job->last_code = value_bytes(answer, row, STATE_LAST_CODE);
    job->last_error = value_bytes(answer, row, STATE_LAST_ERROR);
    job->dead_code = value_bytes(answer, row, STATE_DEAD_CODE);
    job->reference = value_bytes(answer, row, STATE_REFERENCE);
    job->redrive = value_bytes(answer, row, STATE_REDRIVE);
    job->last_event = value_int(answer, row, STATE_EVENT);
    int64_t link = value_int(answer, row, STATE_LINK);
    job->behind = (link & LINK_BEHIND) != 0;
    job->gap = (link & LINK_GAP) != 0;
}

/* What the claim has changed stands in the lease. */
static void decode_lease(const PGresult *answer, int row, struct job *job)
{
    assert(job->lease_token == 0);
    job->claimed_from = job->state;
    job->state = STATE_RUNNING;
    job->lease_token = value_int(answer, row, LEASE_TOKEN);
    job->lease_until = value_int(answer, row, LEASE_UNTIL);
    job->lease_owner = value_bytes(answer, row, LEASE_OWNER);
    job->lease_session = value_int(answer, row, LEASE_SESSION);
    job->updated_at = value_int(answer, row, LEASE_AT);
    job->first_at = value_int(answer, row, LEASE_FIRST_AT);
    job->attempts = value_int(answer, row, LEASE_ATTEMPTS);
    job->attempts_total = value_int(answer, row, LEASE_ATTEMPTS_TOTAL);
    job->last_event = value_int(answer, row, LEASE_EVENT);
}

enum status job_decode(const PGresult *answer, int row, struct job *ret_job, struct error *err)
{
    struct job job = {
        .seq = value_int(answer, row, JOB_SEQ),
        .lane = value_int(answer, row, JOB_LANE),
        .destination = SLICE(""),
        .tenant = SLICE(""),
        .id = value_bytes(answer, row, JOB_ID),
        .created_at = value_int(answer, row, JOB_CREATED_AT),
        .lease_until = INSTANT_NONE,
        .lease_fenced_at = INSTANT_NONE,
        .lease_owner = SLICE(""),
        .ready = value_int(answer, row, JOB_READY) != 0,
        .content_type = value_bytes(answer, row, JOB_CONTENT_TYPE),
        .headers = value_bytes(answer, row, JOB_HEADERS),
        .correlation_id = value_bytes(answer, row, JOB_CORRELATION_ID),
        .metadata = value_bytes(answer, row, JOB_METADATA),
        .key = value_bytes(answer, row, JOB_ORDER_KEY),
        .callback = value_bytes(answer, row, JOB_CALLBACK),
        .chain = value_int(answer, row, JOB_CHAIN),
        .payload = value_bytes(answer, row, JOB_BODY),
    };
    if (PQgetisnull(answer, row, STATE_STATE))
        decode_inserted(answer, row, &job);
    else
        decode_state(answer, row, &job);
    if (!in_range(job.state, STATE_PENDING, STATE_COUNT) || !in_range(job.priority, 0, PRIORITY_COUNT) ||
        !in_range(job.step, STEP_SEND, STEP_POLL + 1) || !in_range(job.last_class, OUTCOME_NONE, OUTCOME_COUNT) ||
        job.seq <= 0)
        return error_set(err, STATUS_CORRUPT, "job %lld has impossible values", (long long)job.seq);
    if (!PQgetisnull(answer, row, LEASE_TOKEN))
        decode_lease(answer, row, &job);
    *ret_job = job;
    return STATUS_OK;
}

enum status job_texts_copy(struct job *job, struct arena *memory)
{
    struct slice *const texts[] = {
        &job->destination,    &job->tenant,    &job->id,        &job->lease_owner,  &job->last_code,
        &job->last_error,     &job->dead_code, &job->reference, &job->content_type, &job->headers,
        &job->correlation_id, &job->metadata,  &job->payload,   &job->key,          &job->callback,
        &job->redrive,
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i] = arena_copy(memory, *texts[i]);
        if (!texts[i]->data)
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}
