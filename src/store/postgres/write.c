/* The second phase: what a round has changed, in one statement a table; then the counters, the seal, the commit. */
#include "store/postgres/timers.h"
#include "store/postgres/work.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    STATEMENT_BYTES_MAX = 256 << 10, /* a statement that has grown so large is sent, and another begun */
    SHARED_MAX = 256,                /* likewise one with so many texts: see params_shared */
    LANES_TENDED = 1000,             /* at once: others wait for a lane that is */
    CLOCKS_APART_MS_MAX = MINUTE_MS, /* of nodes: far more than they are let be */
};

struct postgres_params *batch_params(struct postgres_batch *batch, enum postgres_statement statement)
{
    assert(statement < POSTGRES_STATEMENTS);
    struct postgres_params *params = &batch->store->params[statement];
    if (!params->types)
        params_begin(params, postgres_text(statement)->types);
    return params;
}

enum status batch_send(struct postgres_batch *batch, enum postgres_statement statement)
{
    struct postgres_link *link = &batch->store->link;
    enum status status = STATUS_OK;
    if (!batch->begun) {
        status = link_send(link, WRITE_BEGIN, NULL, batch->err);
        batch->begun = true;
    }
    struct postgres_params *params = &batch->store->params[statement];
    if (status == STATUS_OK)
        status = link_send(link, statement, postgres_text(statement)->types[0] ? params : NULL, batch->err);
    params->types = NULL; /* the next who wants it begins anew */
    return status;
}

/* Sends what has been gathered, if there is any. */
static enum status send_rows(struct postgres_batch *batch, enum postgres_statement statement)
{
    const struct postgres_params *params = &batch->store->params[statement];
    if (!params->types || params_rows(params) == 0)
        return STATUS_OK;
    return batch_send(batch, statement);
}

static enum status send_all(struct postgres_batch *batch, enum postgres_statement first, enum postgres_statement last)
{
    assert(first <= last && last < POSTGRES_STATEMENTS);
    enum status status = STATUS_OK;
    for (enum postgres_statement i = first; i <= last && status == STATUS_OK; i++)
        status = send_rows(batch, i);
    return status;
}

/* ---- what goes ---- */

static void queue_row(struct postgres_params *params, const struct job *job)
{
    assert(job->ready && job->lane > 0);
    params_numbers(params, 0, (const int64_t[]){ job->lane, job->rank, job->seq }, 3);
}

/* A claim has seen where it is; it need not be looked for again. */
static void queue_gone_row(struct postgres_batch *batch, const struct postgres_entry *entry)
{
    if (!entry->claimed) {
        queue_row(batch_params(batch, WRITE_QUEUE_DELETE), &entry->before);
        return;
    }
    struct postgres_params *params = batch_params(batch, WRITE_QUEUE_TAKEN);
    params_bytes(params, 0, (struct slice){ entry->place, sizeof entry->place });
    params_int(params, 1, entry->before.rank);
    params_int(params, 2, entry->before.seq);
}

static void chain_row(struct postgres_params *params, const struct job *job)
{
    assert(job->chain != 0 && job->lane > 0);
    params_numbers(params, 0, (const int64_t[]){ job->lane, job->chain, job->seq }, 3);
}

/* By its last event: a job that another has changed meanwhile is not found. */
static void lease_gone_row(struct postgres_params *params, const struct job *job)
{
    assert(job->lease_token > 0 && job->last_event > 0);
    params_numbers(params, 0, (const int64_t[]){ job->seq, job->last_event }, 2);
}

static bool was_leased(const struct postgres_entry *entry)
{
    return entry->was && entry->before.lease_token != 0;
}

static bool was_chained(const struct postgres_entry *entry)
{
    return entry->was && job_is_chained(&entry->before);
}

static bool is_chained(const struct postgres_entry *entry)
{
    return entry->is && job_is_chained(&entry->job);
}

/*
 * Whether a row that says the same as before may stay. Where others write, what was changed by its name is taken away and
 * put back: who claims or promotes it at the same time touches no other row of it, and one of the two begins anew.
 */
static bool may_stay(const struct postgres_batch *batch, const struct postgres_entry *entry)
{
    return !batch->store->shared || !entry->state_dirty;
}

static bool stays_in_queue(const struct postgres_batch *batch, const struct postgres_entry *entry)
{
    return may_stay(batch, entry) && entry->was && entry->before.ready && entry->is && entry->job.ready &&
           entry->before.rank == entry->job.rank;
}

static instant due_before(const struct postgres_entry *entry)
{
    return entry->was ? job_due(&entry->before) : INSTANT_NONE;
}

static instant due_now(const struct postgres_entry *entry)
{
    return entry->is ? job_due(&entry->job) : INSTANT_NONE;
}

static void timer_row(struct postgres_batch *batch, enum postgres_statement which, const struct job *job, instant due)
{
    struct postgres_params *params = batch_params(batch, which);
    struct store_lane *lane = lane_table_by_id(&batch->store->lanes, job->lane);
    assert(lane && due != INSTANT_NONE);
    if (which == WRITE_TIMER) {
        lane->next_at = instant_earlier(lane->next_at, due);
        timers_set(batch->store, due);
    }
    params_numbers(params, 0, (const int64_t[]){ lane->shard, due, job->seq }, 3);
}

/*
 * Whether the row of its state goes by the event that was read in it. Where others write, a job may be tried by its
 * owner, and be back in its place, before an order about it is written: no other row would tell.
 */
static bool state_is_taken(const struct postgres_batch *batch, const struct postgres_entry *entry)
{
    assert(entry->was || entry->is);
    return batch->store->shared && entry->was && !was_leased(entry) && (entry->state_dirty || !entry->is) &&
           !(entry->is && entry->inserted); /* one that somebody else has put there refuses another by itself */
}

static void take_away(struct postgres_batch *batch, const struct postgres_entry *entry)
{
    assert(entry->was);
    const struct job *before = &entry->before;
    instant due = due_before(entry);
    if (before->ready && !stays_in_queue(batch, entry))
        queue_gone_row(batch, entry);
    if (was_leased(entry) && (!entry->is || entry->job.lease_token == 0))
        lease_gone_row(batch_params(batch, WRITE_LEASE_DELETE), before);
    if (due != INSTANT_NONE && (due != due_now(entry) || !may_stay(batch, entry)))
        timer_row(batch, WRITE_TIMER_DELETE, before, due);
    if (was_chained(entry) && !is_chained(entry))
        chain_row(batch_params(batch, WRITE_CHAINED_DELETE), before);
    if (state_is_taken(batch, entry))
        params_numbers(batch_params(batch, WRITE_STATE_TAKEN), 0,
                       (const int64_t[]){ before->seq, entry->inserted ? 0 : before->last_event }, 2);
    else if (!entry->is)
        params_int(batch_params(batch, WRITE_STATE_DELETE), 0, before->seq);
    if (!entry->is)
        params_int(batch_params(batch, WRITE_JOB_DELETE), 0, before->seq);
}

/* ---- what comes ---- */

static struct slice digest_of(const struct postgres_entry *entry)
{
    return (struct slice){ (const char *)entry->digest, JOB_DIGEST_BYTES_MAX };
}

/* Whether the job has nothing but its payload, its place and its names, as most. */
static bool is_bare(const struct job *job)
{
    return job->deadline == INSTANT_NONE && job->chain == 0 && job->headers.len == 0 && job->correlation_id.len == 0 &&
           job->metadata.len == 0 && job->key.len == 0 && job->callback.len == 0;
}

static void key_put(struct postgres_params *params, int column, const struct postgres_entry *entry)
{
    unsigned char key[KEY_BYTES];
    if (entry->made) {
        params_null(params, column);
        return;
    }
    name_key(entry->before.tenant, entry->before.id, key);
    params_bytes(params, column, (struct slice){ (const char *)key, KEY_BYTES });
}

static void job_bare_row(struct postgres_params *params, const struct postgres_entry *entry)
{
    const struct job *job = &entry->before;
    const int64_t numbers[] = { job->seq,        job->created_at, job->run_at,           job->rank,
                                job->last_event, job->lane,       (int64_t)job->priority };
    params_numbers(params, 0, numbers, sizeof numbers / sizeof *numbers);
    key_put(params, 1, entry);
    params_bytes(params, 2, digest_of(entry));
    params_bytes(params, 3, job->id);
    params_bytes(params, 4, job->content_type);
    params_bytes(params, 5, entry->job.payload);
}

/* As it was inserted; what it has become since is in `state`. */
static void job_row(struct postgres_batch *batch, const struct postgres_entry *entry)
{
    assert(!entry->was && entry->before.last_event > 0);
    const struct job *job = &entry->before;
    if (is_bare(job)) {
        job_bare_row(batch_params(batch, WRITE_JOBS_BARE), entry);
        return;
    }
    struct postgres_params *params = batch_params(batch, WRITE_JOBS);
    params_int(params, 0, job->seq);
    params_int(params, 1, job->created_at);
    params_int(params, 2, job->run_at);
    params_instant(params, 3, job->deadline);
    params_int(params, 4, job->rank);
    params_int(params, 5, job->last_event);
    params_int(params, 6, job->lane);
    params_int(params, 7, (int64_t)job->priority);
    key_put(params, 8, entry);
    params_bytes(params, 9, digest_of(entry));
    params_bytes(params, 10, job->id);
    params_bytes(params, 11, job->content_type);
    params_bytes(params, 12, job->headers);
    params_bytes(params, 13, job->correlation_id);
    params_bytes(params, 14, job->metadata);
    params_bytes(params, 15, entry->job.payload);
    params_int(params, 16, job->chain);
    params_bytes(params, 17, job->key);
    params_bytes(params, 18, job->callback);
}

/* Of a running job: what it will be without its lease, as far as that is known. */
static void state_row(struct postgres_params *params, const struct job *job)
{
    assert(job->seq > 0 && job->state != STATE_NONE);
    enum job_state state = job->state == STATE_RUNNING ? job->claimed_from : job->state;
    const int64_t numbers[] = { job->seq,
                                (int64_t)state,
                                (int64_t)job->priority,
                                (int64_t)job->step,
                                job->rank,
                                job->generation,
                                job->attempts,
                                job->attempts_total,
                                job->retry_count,
                                job->step_count,
                                job->redrives_auto,
                                job->doubted,
                                job->first_at,
                                job->run_at,
                                job->deadline,
                                job->updated_at,
                                job->failed_at,
                                job->look_failed_at,
                                job->dead_at,
                                job->state == STATE_DEAD ? job->expires_at : job->forget_at,
                                (int64_t)job->last_class,
                                job->last_event,
                                (job->behind ? LINK_BEHIND : 0) | (job->gap ? LINK_GAP : 0) };
    const struct slice texts[] = { job->last_code, job->last_error, job->dead_code, job->reference, job->redrive };
    enum { NUMBERS = sizeof numbers / sizeof *numbers, TEXTS = sizeof texts / sizeof *texts };
    for (int i = 0; i < NUMBERS; i++)
        params_instant(params, i, numbers[i]);
    for (int i = 0; i < TEXTS; i++)
        params_bytes(params, NUMBERS + i, texts[i]);
}

/* As WRITE_STATE_DONE says them. */
static_assert(OUTCOME_DELIVERED == 1 && STATE_COMPLETED == 4 && STEP_SEND == 0, "these numbers are stored");

/* Whether all that can be said of it is that it was done at the first attempt, as is said of most. */
static bool is_done_at_once(const struct postgres_entry *entry)
{
    const struct job *job = &entry->job;
    return entry->inserted && job->state == STATE_COMPLETED && job->step == STEP_SEND && job->generation == 1 &&
           job->retry_count == 0 && job->step_count == 0 && job->redrives_auto == 0 && !job->doubted &&
           job->failed_at == INSTANT_NONE && job->look_failed_at == INSTANT_NONE && job->dead_at == INSTANT_NONE &&
           job->last_class == OUTCOME_DELIVERED && !job->behind && !job->gap && job->last_error.len == 0 &&
           job->dead_code.len == 0 && job->reference.len == 0 && job->redrive.len == 0;
}

static void state_done_row(struct postgres_params *params, const struct job *job)
{
    const int64_t numbers[] = { job->seq,       (int64_t)job->priority, job->rank,
                                job->attempts,  job->attempts_total,    job->first_at,
                                job->run_at,    job->deadline,          job->updated_at,
                                job->forget_at, job->last_event,        params_shared(params, 1, job->last_code) };
    params_numbers(params, 0, numbers, sizeof numbers / sizeof *numbers);
}

static void state_write(struct postgres_batch *batch, const struct postgres_entry *entry)
{
    if (is_done_at_once(entry))
        state_done_row(batch_params(batch, WRITE_STATE_DONE), &entry->job);
    else
        state_row(batch_params(batch, entry->inserted || state_is_taken(batch, entry) ? WRITE_STATE_NEW : WRITE_STATE),
                  &entry->job);
}

static void lease_write(struct postgres_batch *batch, const struct postgres_entry *entry)
{
    const struct job *job = &entry->job;
    assert(job->state == STATE_RUNNING && job->lease_token > 0); /* invariant 3 */
    if (was_leased(entry)) {
        const int64_t numbers[] = { job->seq,        job->lease_token, job->lease_until,
                                    job->updated_at, job->last_event,  entry->before.last_event };
        params_numbers(batch_params(batch, WRITE_LEASE), 0, numbers, sizeof numbers / sizeof *numbers);
        return;
    }
    struct postgres_params *params = batch_params(batch, WRITE_LEASE_NEW);
    const int64_t numbers[] = { job->seq,           job->lease_token,
                                job->lease_until,   job->updated_at,
                                job->first_at,      job->last_event,
                                job->attempts,      job->attempts_total,
                                job->lease_session, params_shared(params, 1, job->lease_owner) };
    params_numbers(params, 0, numbers, sizeof numbers / sizeof *numbers);
}

static void body_row(struct postgres_batch *batch, const struct postgres_entry *entry)
{
    assert(entry->body_here);
    struct postgres_params *params = batch_params(batch, WRITE_BODY);
    params_int(params, 0, entry->job.seq);
    params_bytes(params, 1, entry->job.payload);
    params_bytes(params, 2, digest_of(entry));
}

/* Before it has more texts than the server should walk along for each row. */
static enum status send_shared(struct postgres_batch *batch, enum postgres_statement statement)
{
    const struct postgres_params *params = &batch->store->params[statement];
    return params->types && params->rows[1] >= SHARED_MAX ? send_rows(batch, statement) : STATUS_OK;
}

static enum status put_in_place(struct postgres_batch *batch, const struct postgres_entry *entry)
{
    assert(entry->is);
    instant due = due_now(entry);
    if (!entry->was)
        job_row(batch, entry);
    else if (entry->body_dirty)
        body_row(batch, entry);
    if (entry->state_dirty)
        state_write(batch, entry);
    if (entry->job.ready && !stays_in_queue(batch, entry))
        queue_row(batch_params(batch, WRITE_QUEUE), &entry->job);
    if (entry->lease_dirty && entry->job.lease_token != 0)
        lease_write(batch, entry);
    if (due != INSTANT_NONE && (due != due_before(entry) || !may_stay(batch, entry)))
        timer_row(batch, WRITE_TIMER, &entry->job, due);
    if (is_chained(entry) && !was_chained(entry))
        chain_row(batch_params(batch, WRITE_CHAINED), &entry->job);
    enum postgres_statement large = entry->was ? WRITE_BODY : is_bare(&entry->before) ? WRITE_JOBS_BARE : WRITE_JOBS;
    const struct postgres_params *params = &batch->store->params[large];
    enum status status = params->types && params_size(params) > STATEMENT_BYTES_MAX ? send_rows(batch, large) : STATUS_OK;
    if (status == STATUS_OK)
        status = send_shared(batch, WRITE_STATE_DONE);
    return status == STATUS_OK ? send_shared(batch, WRITE_LEASE_NEW) : status;
}

/* A job that came and went in one round was never there, but for its events. */
enum status round_write(struct postgres_batch *batch)
{
    for (const struct postgres_entry *entry = batch->round.first; entry; entry = entry->next)
        if (entry->was)
            take_away(batch, entry);
    enum status status = send_all(batch, WRITE_LANES, WRITE_CHAINED_DELETE);
    for (const struct postgres_entry *entry = batch->round.first; entry && status == STATUS_OK; entry = entry->next)
        if (entry->is)
            status = put_in_place(batch, entry);
    if (status == STATUS_OK)
        status = send_all(batch, WRITE_JOBS, WRITE_CHAINED);
    return status == STATUS_OK ? send_all(batch, WRITE_EVENTS, WRITE_ARCHIVE) : status;
}

/* ---- the end ---- */

static void counts_row(struct postgres_params *params, const struct store_lane *lane, int64_t slot)
{
    assert(lane->touched);
    const struct lane_counts *now = &lane->lane.counts, *before = &lane->shown.committed;
    const int64_t numbers[] = { lane->lane.id,
                                slot,
                                now->pending - before->pending,
                                now->running - before->running,
                                now->waiting - before->waiting,
                                now->completed - before->completed,
                                now->dead - before->dead,
                                now->cancelled - before->cancelled,
                                now->ready - before->ready,
                                lane->stored - lane->stored_committed };
    params_numbers(params, 0, numbers, sizeof numbers / sizeof *numbers);
}

static void lane_row(struct postgres_batch *batch, const struct store_lane *lane)
{
    bool live = lane->stored > 0 || batch->store->shared; /* others may be adding to it */
    counts_row(batch_params(batch, WRITE_COUNTS), lane, batch->store->chain);
    if (lane->listed == live)
        return;
    params_int(batch_params(batch, WRITE_LANES_LIVE), 0, lane->lane.id);
    params_int(batch_params(batch, WRITE_LANES_LIVE), 1, live);
}

enum status batch_tally(struct postgres_batch *batch)
{
    char name[TALLY_NAME_BYTES + 24];
    for (size_t i = 0; i < batch->tally.count; i++) { /* a row a writer, so that none waits for another's commit */
        struct postgres_params *params = batch_params(batch, WRITE_TALLY);
        snprintf(name, sizeof name, "%s.%lld", batch->tally.rows[i].name, (long long)batch->store->chain);
        params_bytes(params, 0, SPACE_TALLY);
        params_bytes(params, 1, slice_from(name));
        params_int(params, 2, batch->tally.rows[i].more);
    }
    batch->tally.count = 0;
    return send_rows(batch, WRITE_TALLY);
}

/* When all is counted: a lane that the batch has used is not taken for one without jobs. */
static enum status lanes_tend(struct postgres_batch *batch)
{
    if (!batch->trimmed)
        return STATUS_OK;
    struct postgres_params *params = batch_params(batch, WRITE_LANES_TEND);
    params_int(params, 0, LANES_TENDED);
    params_int(params, 1, batch->now);
    params_int(params, 2, batch->store->shared ? CLOCKS_APART_MS_MAX : 0);
    return batch_send(batch, WRITE_LANES_TEND);
}

enum status batch_seal(struct postgres_batch *batch)
{
    struct postgres_store *store = batch->store;
    assert(store->term.number > 0);
    struct trail_head head = { .number = store->progress.event_last };
    unsigned char mark[EVENT_HASH_BYTES];
    for (size_t i = 0; i < store->lanes.touched_count; i++)
        lane_row(batch, store->lanes.touched[i]);
    enum status status = batch_tally(batch);
    if (status == STATUS_OK)
        status = send_rows(batch, WRITE_COUNTS);
    if (status == STATUS_OK)
        status = send_rows(batch, WRITE_LANES_LIVE);
    if (status == STATUS_OK)
        status = lanes_tend(batch);
    if (status != STATUS_OK)
        return status;
    memcpy(head.hash, store->progress.event_hash, EVENT_HASH_BYTES);
    trail_head_mark(store->seals.key, &head, mark);
    struct postgres_params *params = batch_params(batch, WRITE_SEAL);
    params_int(params, 0, store->chain);
    params_int(params, 1, store->term.number);
    params_int(params, 2, ++store->progress.batch);
    params_int(params, 3, head.number);
    params_bytes(params, 4, (struct slice){ (const char *)head.hash, EVENT_HASH_BYTES });
    params_bytes(params, 5, (struct slice){ (const char *)mark, EVENT_HASH_BYTES });
    params_int(params, 6, store->lanes.waiting - store->batch.waiting_before);
    return batch_send(batch, WRITE_SEAL);
}
