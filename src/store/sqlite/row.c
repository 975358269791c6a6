#include "store/sqlite/row.h"

#include "store/sqlite/digest.h"
#include "store/sqlite/held.h"
#include "store/sqlite/seal.h"
#include "store/sqlite/statement.h"

#include <assert.h>
#include <string.h>

static_assert(STATE_PENDING == 1 && STATE_RUNNING == 2 && STATE_WAITING == 3 && STATE_DEAD == 5,
              "the schema's SQL_STATE_... follow core/job.h");

enum { LINK_BEHIND = 1, LINK_GAP = 2 };

static int link_of(const struct job *job)
{
    return (job->behind ? LINK_BEHIND : 0) | (job->gap ? LINK_GAP : 0);
}

/* ---- Reading ---- */

static enum status row_read_texts(sqlite3_stmt *statement, struct arena *memory, struct sqlite_row *row)
{
    const struct {
        enum row_column column;
        struct slice *text;
    } texts[] = {
        { COLUMN_ID, &row->job.id },
        { COLUMN_LAST_CODE, &row->job.last_code },
        { COLUMN_LAST_ERROR, &row->job.last_error },
        { COLUMN_DEAD_CODE, &row->job.dead_code },
        { COLUMN_REFERENCE, &row->job.reference },
        { COLUMN_REDRIVE, &row->job.redrive },
        { COLUMN_LEASE_OWNER, &row->job.lease_owner },
        { COLUMN_CONTENT_TYPE, &row->job.content_type },
        { COLUMN_HEADERS, &row->job.headers },
        { COLUMN_CORRELATION_ID, &row->job.correlation_id },
        { COLUMN_METADATA, &row->job.metadata },
        { COLUMN_ORDER_KEY, &row->job.key },
        { COLUMN_CALLBACK, &row->job.callback },
        { COLUMN_PAYLOAD, &row->job.payload },
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && status == STATUS_OK; i++)
        status = sqlite_column_copy(statement, (int)texts[i].column, memory, texts[i].text);
    return status;
}

static bool in_range(int64_t value, int64_t min, int64_t end)
{
    return value >= min && value < end;
}

static enum status row_read_enums(sqlite3_stmt *statement, struct sqlite_row *row, struct error *err)
{
    int64_t state = sqlite3_column_int64(statement, COLUMN_STATE);
    int64_t priority = sqlite3_column_int64(statement, COLUMN_PRIORITY);
    int64_t step = sqlite3_column_int64(statement, COLUMN_STEP);
    int64_t class = sqlite3_column_int64(statement, COLUMN_LAST_CLASS);
    struct slice digest = sqlite_column_slice(statement, COLUMN_DIGEST);
    if (!in_range(state, STATE_PENDING, STATE_COUNT) || !in_range(priority, 0, PRIORITY_COUNT) ||
        !in_range(step, STEP_SEND, STEP_POLL + 1) || !in_range(class, OUTCOME_NONE, OUTCOME_COUNT) ||
        !sqlite_digest_possible(digest.len))
        return error_set(err, STATUS_CORRUPT, "job %lld has impossible values",
                         (long long)sqlite3_column_int64(statement, COLUMN_SEQ));
    row->job.state = (enum job_state)state;
    row->job.priority = (enum priority)priority;
    row->job.step = (enum job_step)step;
    row->job.last_class = (enum outcome) class;
    memcpy(row->digest, digest.data, digest.len);
    row->digest_len = digest.len;
    return STATUS_OK;
}

static void row_read_numbers(sqlite3_stmt *statement, struct sqlite_row *row)
{
    struct job *job = &row->job;
    instant leaves_at = sqlite_column_instant(statement, COLUMN_EXPIRES_AT);
    row->key = sqlite3_column_int64(statement, COLUMN_KEY);
    row->job.ready = sqlite3_column_int(statement, COLUMN_READY) != 0;
    row->job.forget_at = job->state == STATE_DEAD ? INSTANT_NONE : leaves_at;
    job->expires_at = job->state == STATE_DEAD ? leaves_at : INSTANT_NONE;
    job->seq = sqlite3_column_int64(statement, COLUMN_SEQ);
    job->lane = sqlite3_column_int64(statement, COLUMN_LANE);
    job->rank = sqlite3_column_int64(statement, COLUMN_RANK);
    job->generation = sqlite3_column_int64(statement, COLUMN_GENERATION);
    job->attempts = sqlite3_column_int64(statement, COLUMN_ATTEMPTS);
    job->attempts_total = sqlite3_column_int64(statement, COLUMN_ATTEMPTS_TOTAL);
    job->retry_count = sqlite3_column_int64(statement, COLUMN_RETRY_COUNT);
    job->step_count = sqlite3_column_int64(statement, COLUMN_STEP_COUNT);
    job->redrives_auto = sqlite3_column_int64(statement, COLUMN_REDRIVES_AUTO);
    job->doubted = sqlite3_column_int(statement, COLUMN_DOUBTED) != 0;
    job->created_at = sqlite3_column_int64(statement, COLUMN_CREATED_AT);
    job->first_at = sqlite_column_instant(statement, COLUMN_FIRST_AT);
    job->run_at = sqlite_column_instant(statement, COLUMN_RUN_AT);
    job->deadline = sqlite_column_instant(statement, COLUMN_DEADLINE);
    job->updated_at = sqlite3_column_int64(statement, COLUMN_UPDATED_AT);
    job->dead_at = sqlite_column_instant(statement, COLUMN_DEAD_AT);
    job->last_event = sqlite3_column_int64(statement, COLUMN_LAST_EVENT);
    job->failed_at = sqlite_column_instant(statement, COLUMN_FAILED_AT);
    job->look_failed_at = sqlite_column_instant(statement, COLUMN_LOOK_FAILED_AT);
    int link = sqlite3_column_int(statement, COLUMN_LINK);
    job->chain = sqlite3_column_int64(statement, COLUMN_CHAIN);
    job->behind = job->chain != 0 && (link & LINK_BEHIND) != 0;
    job->gap = (link & LINK_GAP) != 0;
    job->lease_until = INSTANT_NONE;
    job->lease_fenced_at = INSTANT_NONE;
}

/* What the claim has changed stands in the lease. */
static void row_read_lease(sqlite3_stmt *statement, struct job *job)
{
    assert(job->lease_token == 0);
    job->claimed_from = job->state;
    job->state = STATE_RUNNING;
    job->lease_token = sqlite3_column_int64(statement, COLUMN_LEASE_TOKEN);
    job->lease_until = sqlite3_column_int64(statement, COLUMN_LEASE_UNTIL);
    job->updated_at = sqlite3_column_int64(statement, COLUMN_LEASE_AT);
    job->first_at = sqlite3_column_int64(statement, COLUMN_LEASE_FIRST_AT);
    job->attempts = sqlite3_column_int64(statement, COLUMN_LEASE_ATTEMPTS);
    job->attempts_total = sqlite3_column_int64(statement, COLUMN_LEASE_ATTEMPTS_TOTAL);
    job->last_event = sqlite3_column_int64(statement, COLUMN_LEASE_EVENT);
}

enum status sqlite_row_read(sqlite3_stmt *statement, struct arena *memory, struct sqlite_row *ret_row, struct error *err)
{
    struct sqlite_row row = { .job.destination = SLICE(""), .job.tenant = SLICE("") };
    enum status status = row_read_enums(statement, &row, err);
    if (status != STATUS_OK)
        return status;
    row_read_numbers(statement, &row);
    if (sqlite3_column_type(statement, COLUMN_LEASE_TOKEN) != SQLITE_NULL)
        row_read_lease(statement, &row.job);
    if (row_read_texts(statement, memory, &row) != STATUS_OK)
        return error_set(err, STATUS_NO_MEMORY, "no memory for job %lld", (long long)row.job.seq);
    *ret_row = row;
    return STATUS_OK;
}

enum status sqlite_row_by_seq(struct sqlite_batch *batch, int64_t seq, struct sqlite_row *ret_row, bool *ret_found)
{
    assert(ret_row && ret_found);
    sqlite3_stmt *statement = batch->store->statements[STATEMENT_JOB_BY_SEQ];
    const struct sqlite_row *held = sqlite_held_find(batch->store, seq);
    if (held) {
        *ret_row = *held;
        *ret_found = true;
        return STATUS_OK;
    }
    *ret_found = false;
    if (sqlite_gone_has(batch->store, GONE_JOB, seq))
        return STATUS_OK;
    enum status status = sqlite_seqs_may_have(batch->store, seq) ? sqlite_rows_flush(batch, ROWS_OF_JOB) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    sqlite3_bind_int64(statement, 1, seq);
    status = sqlite_next(batch, STATEMENT_JOB_BY_SEQ, ret_found);
    if (status != STATUS_OK || !*ret_found)
        return status;
    status = sqlite_row_read(statement, &batch->scratch, ret_row, batch->err);
    sqlite3_reset(statement);
    if (status != STATUS_OK)
        return status;
    const struct store_lane *lane = lane_table_by_id(&batch->store->lanes, ret_row->job.lane);
    if (!lane)
        return error_set(batch->err, STATUS_CORRUPT, "job %lld has no lane", (long long)seq);
    ret_row->job.destination = lane->lane.destination;
    ret_row->job.tenant = lane->lane.tenant;
    return STATUS_OK;
}

enum status sqlite_row_by_name(struct sqlite_batch *batch, struct slice tenant, struct slice id, struct sqlite_row *ret_row,
                               bool *ret_found)
{
    int64_t made_seq = change_id_seq(id);
    enum statement which = made_seq > 0 ? STATEMENT_JOB_BY_MADE_ID : STATEMENT_JOB_BY_KEY;
    sqlite3_stmt *statement = batch->store->statements[which];
    int64_t seq = 0, key = (int64_t)job_key(tenant, id);
    bool more;
    bool may_be_new = made_seq > 0 || sqlite_keys_may_have(batch->store, key);
    enum status status = sqlite_rows_flush(batch, (may_be_new ? 1 << ROWS_JOB : 0) | ROWS_GONE);
    if (status != STATUS_OK)
        return status;
    sqlite3_bind_int64(statement, 1, key);
    if (made_seq > 0)
        sqlite3_bind_int64(statement, 2, made_seq);
    status = sqlite_next(batch, which, &more);
    while (status == STATUS_OK && more && seq == 0) {
        const struct store_lane *lane = lane_table_by_id(&batch->store->lanes, sqlite3_column_int64(statement, 1));
        if (lane && slice_equal(lane->lane.tenant, tenant) && slice_equal(sqlite_column_slice(statement, 2), id))
            seq = sqlite3_column_int64(statement, 0);
        else
            status = sqlite_next(batch, which, &more);
    }
    sqlite3_reset(statement);
    *ret_found = false;
    return status == STATUS_OK && seq ? sqlite_row_by_seq(batch, seq, ret_row, ret_found) : status;
}

/* ---- Places and counters ---- */

static enum status ready_add(struct sqlite_batch *batch, const struct job *job)
{
    assert(job->ready && job->lane > 0);
    struct sqlite_value *row = sqlite_rows_add(batch, ROWS_READY);
    if (!row)
        return STATUS_NO_MEMORY;
    row[0] = value_int(job->lane);
    row[1] = value_int(job->rank);
    row[2] = value_int(job->seq);
    sqlite_seqs_note(batch->store, job->seq);
    return STATUS_OK;
}

static enum status ready_remove(struct sqlite_batch *batch, enum statement which, const struct job *job)
{
    assert(job->lane > 0 && job->seq > 0);
    sqlite3_stmt *statement = batch->store->statements[which];
    enum status status = sqlite_rows_flush(batch, 1 << ROWS_READY);
    if (status != STATUS_OK)
        return status;
    sqlite3_bind_int64(statement, 1, job->lane);
    sqlite3_bind_int64(statement, 2, job->rank);
    sqlite3_bind_int64(statement, 3, job->seq);
    return sqlite_run(batch, which);
}

enum status sqlite_ready_take(struct sqlite_batch *batch, const struct job *last)
{
    return ready_remove(batch, STATEMENT_READY_TAKE, last);
}

static enum status ready_move(struct sqlite_batch *batch, const struct sqlite_row *before, const struct sqlite_row *after)
{
    assert(before || after);
    bool was = before && before->job.ready;
    bool is = after && after->job.ready;
    enum status status = STATUS_OK;
    if (was && is && before->job.rank == after->job.rank)
        return STATUS_OK;
    if (was && !batch->ready_taken)
        status = ready_remove(batch, STATEMENT_READY_DELETE, &before->job);
    if (is && status == STATUS_OK)
        status = ready_add(batch, &after->job);
    return status;
}

static enum status timer_add(struct sqlite_batch *batch, instant at, int64_t seq)
{
    assert(at != INSTANT_NONE && seq > 0);
    struct sqlite_value *row = sqlite_rows_add(batch, ROWS_TIMER);
    if (!row)
        return STATUS_NO_MEMORY;
    row[0] = value_int(at);
    row[1] = value_int(seq);
    return STATUS_OK;
}

static enum status timer_remove(struct sqlite_batch *batch, instant at, int64_t seq)
{
    assert(at != INSTANT_NONE && seq > 0);
    sqlite3_stmt *statement = batch->store->statements[STATEMENT_TIMER_DELETE];
    enum status status = sqlite_rows_flush(batch, 1 << ROWS_TIMER);
    if (status != STATUS_OK)
        return status;
    sqlite3_bind_int64(statement, 1, at);
    sqlite3_bind_int64(statement, 2, seq);
    return sqlite_run(batch, STATEMENT_TIMER_DELETE);
}

static enum status timer_move(struct sqlite_batch *batch, const struct sqlite_row *before, const struct sqlite_row *after)
{
    assert(before || after);
    instant was = before ? job_due(&before->job) : INSTANT_NONE;
    instant is = after ? job_due(&after->job) : INSTANT_NONE;
    enum status status = STATUS_OK;
    if (was == is)
        return STATUS_OK;
    if (was != INSTANT_NONE)
        status = timer_remove(batch, was, before->job.seq);
    if (is != INSTANT_NONE && status == STATUS_OK)
        status = timer_add(batch, is, after->job.seq);
    return status;
}

/* The owner's name is the caller's or a row's own: neither need live until the rows are written. */
static enum status lease_write(struct sqlite_batch *batch, const struct sqlite_row *after)
{
    assert(after->job.state == STATE_RUNNING && after->job.lease_token > 0); /* invariant 3 */
    struct slice owner = arena_copy(&batch->scratch, after->job.lease_owner);
    struct sqlite_value *row = owner.data ? sqlite_rows_add(batch, ROWS_LEASE) : NULL;
    if (!row)
        return error_set(batch->err, STATUS_NO_MEMORY, "no memory for a lease");
    row[0] = value_int(after->job.seq);
    row[1] = value_int(after->job.lease_token);
    row[2] = value_int(after->job.lease_until);
    row[3] = value_text(owner);
    row[4] = value_int(after->job.updated_at);
    row[5] = value_int(after->job.first_at);
    row[6] = value_int(after->job.attempts);
    row[7] = value_int(after->job.attempts_total);
    row[8] = value_int(after->job.last_event);
    sqlite_seqs_note(batch->store, after->job.seq);
    return STATUS_OK;
}

static enum status lease_move(struct sqlite_batch *batch, const struct sqlite_row *before, const struct sqlite_row *after)
{
    bool was = before && before->job.lease_token != 0;
    bool is = after && after->job.lease_token != 0;
    if (is)
        return lease_write(batch, after);
    if (!was)
        return STATUS_OK;
    enum status status = batch->store->rows[ROWS_LEASE].count > 0 ? sqlite_rows_flush(batch, 1 << ROWS_LEASE) : STATUS_OK;
    sqlite_seqs_note(batch->store, before->job.seq);
    return status == STATUS_OK ? sqlite_gone_add(batch, GONE_LEASE, before->job.seq) : status;
}

static enum status row_count(struct sqlite_batch *batch, const struct sqlite_row *before, const struct sqlite_row *after)
{
    struct lane_table *lanes = &batch->store->lanes;
    struct store_lane *lane = lane_table_by_id(lanes, before ? before->job.lane : after->job.lane);
    assert(lane);
    if (lane_table_count(lanes, lane, before ? &before->job : NULL, after ? &after->job : NULL) != STATUS_OK)
        return error_set(batch->err, STATUS_NO_MEMORY, "no memory for another lane");
    return STATUS_OK;
}

static enum status chain_run(struct sqlite_batch *batch, enum statement which, const struct job *job)
{
    assert(job->chain != 0 && job->seq > 0);
    sqlite3_stmt *statement = batch->store->statements[which];
    sqlite3_bind_int64(statement, 1, job->lane);
    sqlite3_bind_int64(statement, 2, job->chain);
    sqlite3_bind_int64(statement, 3, job->seq);
    return sqlite_run(batch, which);
}

static enum status chain_move(struct sqlite_batch *batch, const struct sqlite_row *before, const struct sqlite_row *after)
{
    bool was = before && job_is_chained(&before->job);
    bool is = after && job_is_chained(&after->job);
    if (was == is)
        return STATUS_OK;
    return was ? chain_run(batch, STATEMENT_CHAIN_REMOVE, &before->job) : chain_run(batch, STATEMENT_CHAIN_ADD, &after->job);
}

static enum status row_place(struct sqlite_batch *batch, const struct sqlite_row *before, const struct sqlite_row *after)
{
    assert(!before || !after || before->job.seq == after->job.seq);
    enum status status = ready_move(batch, before, after);
    if (status == STATUS_OK)
        status = timer_move(batch, before, after);
    if (status == STATUS_OK)
        status = lease_move(batch, before, after);
    if (status == STATUS_OK)
        status = chain_move(batch, before, after);
    return status == STATUS_OK ? row_count(batch, before, after) : status;
}

/* ---- Writing ---- */

/* A new job's row: all else is as the statement says. */
static enum status row_add(struct sqlite_batch *batch, const struct sqlite_row *after)
{
    const struct job *job = &after->job;
    unsigned char *digest = arena_alloc(&batch->scratch, after->digest_len);
    struct sqlite_value *row = digest ? sqlite_rows_add(batch, ROWS_JOB) : NULL;
    assert(job->state == STATE_PENDING && job->step == STEP_SEND && job->generation == 1);
    if (!row)
        return error_set(batch->err, STATUS_NO_MEMORY, "no memory for a new job");
    memcpy(digest, after->digest, after->digest_len);
    row[0] = value_int(job->seq);
    row[1] = value_int(after->key);
    row[2] = value_int(job->lane);
    row[3] = value_text(job->id); /* in the batch's results */
    row[4] = value_blob(digest, after->digest_len);
    row[5] = value_int(job->priority);
    row[6] = value_int(job->rank);
    row[7] = value_int(job->created_at);
    row[8] = value_instant(job->run_at);
    row[9] = value_instant(job->deadline);
    row[10] = value_int(job->last_event);
    row[11] = value_int(job->chain);
    row[12] = value_int(link_of(job));
    sqlite_seqs_note(batch->store, job->seq);
    if (after->key != 0)
        sqlite_keys_note(batch->store, after->key);
    return STATUS_OK;
}

static void settled_bind(sqlite3_stmt *statement, const struct job *job)
{
    sqlite3_bind_int64(statement, COLUMN_SEQ + 1, job->seq);
    sqlite3_bind_int(statement, COLUMN_STATE + 1, (int)(job->state == STATE_RUNNING ? job->claimed_from : job->state));
    sqlite3_bind_int64(statement, COLUMN_ATTEMPTS + 1, job->attempts);
    sqlite3_bind_int64(statement, COLUMN_ATTEMPTS_TOTAL + 1, job->attempts_total);
    sqlite3_bind_int64(statement, COLUMN_RETRY_COUNT + 1, job->retry_count);
    sqlite3_bind_int64(statement, COLUMN_STEP_COUNT + 1, job->step_count);
    sqlite3_bind_int(statement, COLUMN_DOUBTED + 1, job->doubted);
    sqlite_bind_instant(statement, COLUMN_FIRST_AT + 1, job->first_at);
    sqlite3_bind_int64(statement, COLUMN_UPDATED_AT + 1, job->updated_at);
    sqlite_bind_instant(statement, COLUMN_EXPIRES_AT + 1, job->state == STATE_DEAD ? job->expires_at : job->forget_at);
    sqlite3_bind_int(statement, COLUMN_LAST_CLASS + 1, (int)job->last_class);
    sqlite_bind_slice(statement, COLUMN_LAST_CODE + 1, job->last_code);
    sqlite_bind_slice(statement, COLUMN_LAST_ERROR + 1, job->last_error);
    sqlite_bind_slice(statement, COLUMN_REFERENCE + 1, job->reference);
    sqlite3_bind_int64(statement, COLUMN_LAST_EVENT + 1, job->last_event);
}

static void rest_bind(sqlite3_stmt *statement, const struct job *job)
{
    sqlite3_bind_int(statement, COLUMN_PRIORITY + 1, (int)job->priority);
    sqlite3_bind_int(statement, COLUMN_STEP + 1, (int)job->step);
    sqlite3_bind_int64(statement, COLUMN_RANK + 1, job->rank);
    sqlite3_bind_int64(statement, COLUMN_GENERATION + 1, job->generation);
    sqlite3_bind_int64(statement, COLUMN_REDRIVES_AUTO + 1, job->redrives_auto);
    sqlite_bind_instant(statement, COLUMN_RUN_AT + 1, job->run_at);
    sqlite_bind_instant(statement, COLUMN_DEADLINE + 1, job->deadline);
    sqlite_bind_instant(statement, COLUMN_DEAD_AT + 1, job->dead_at);
    sqlite_bind_slice(statement, COLUMN_DEAD_CODE + 1, job->dead_code);
    sqlite_bind_instant(statement, COLUMN_FAILED_AT + 1, job->failed_at);
    sqlite_bind_instant(statement, COLUMN_LOOK_FAILED_AT + 1, job->look_failed_at);
    if (job->redrive.len > 0)
        sqlite_bind_slice(statement, COLUMN_REDRIVE + 1, job->redrive);
    else
        sqlite3_bind_null(statement, COLUMN_REDRIVE + 1); /* it is in no index then */
    sqlite3_bind_int(statement, COLUMN_LINK + 1, link_of(job));
}

/* Of what rest_bind binds. */
static bool rest_is_same(const struct job *a, const struct job *b)
{
    return a->priority == b->priority && a->step == b->step && a->rank == b->rank && a->generation == b->generation &&
           a->redrives_auto == b->redrives_auto && a->run_at == b->run_at && a->deadline == b->deadline &&
           a->dead_at == b->dead_at && slice_equal(a->dead_code, b->dead_code) && a->failed_at == b->failed_at &&
           a->look_failed_at == b->look_failed_at && slice_equal(a->redrive, b->redrive) && link_of(a) == link_of(b);
}

/* A claim, or a longer lease, changes nothing but what the lease's row says. */
static bool is_leased_only(const struct sqlite_row *before, const struct sqlite_row *after)
{
    return after->job.state == STATE_RUNNING && before->job.priority == after->job.priority &&
           before->job.rank == after->job.rank;
}

static enum status row_write(struct sqlite_batch *batch, const struct sqlite_row *before, const struct sqlite_row *after)
{
    assert(after->job.seq > 0 && after->job.last_event > 0);
    if (!before)
        return row_add(batch, after);
    if (is_leased_only(before, after))
        return STATUS_OK;
    enum statement which = rest_is_same(&before->job, &after->job) ? STATEMENT_JOB_SETTLE : STATEMENT_JOB_UPDATE;
    settled_bind(batch->store->statements[which], &after->job);
    if (which == STATEMENT_JOB_UPDATE)
        rest_bind(batch->store->statements[which], &after->job);
    return sqlite_run(batch, which);
}

static enum status row_delete(struct sqlite_batch *batch, const struct sqlite_row *row, int64_t last_event)
{
    assert(row->job.lease_token == 0);
    struct sqlite_store *store = batch->store;
    enum status status = STATUS_OK;
    if (last_event > store->progress.trimmed_last) {
        struct sqlite_value *archive = sqlite_rows_add(batch, ROWS_ARCHIVE);
        if (!archive)
            return STATUS_NO_MEMORY;
        archive[0] = value_int(last_event);
        archive[1] = value_int((int64_t)job_key(row->job.tenant, row->job.id));
    }
    /* The newest number is read off the newest job when the store opens, so it must not go with it. */
    if (status == STATUS_OK && row->job.seq == store->progress.seq_last)
        status = sqlite_meta_set(batch, "seq", row->job.seq);
    return status == STATUS_OK ? sqlite_gone_add(batch, GONE_JOB, row->job.seq) : status;
}

enum status sqlite_tally_write(struct sqlite_batch *batch)
{
    struct redrive_tally *tally = &batch->tally;
    sqlite3_stmt *statement = batch->store->statements[STATEMENT_TALLY_ADD];
    enum status status = STATUS_OK;
    for (size_t i = 0; i < tally->count && status == STATUS_OK; i++) {
        sqlite_bind_slice(statement, 1, SPACE_TALLY);
        sqlite_bind_slice(statement, 2, slice_from(tally->rows[i].name));
        sqlite3_bind_int64(statement, 3, tally->rows[i].more);
        status = sqlite_run(batch, STATEMENT_TALLY_ADD);
    }
    tally->count = 0;
    return status;
}

/* Counts what the change means for the redrive that has the job. */
static enum status redrive_count(struct sqlite_batch *batch, const struct sqlite_row *before, const struct sqlite_row *after)
{
    if ((!before || before->job.redrive.len == 0) && (!after || after->job.redrive.len == 0))
        return STATUS_OK;
    enum status status = tally_has_room(&batch->tally) ? STATUS_OK : sqlite_tally_write(batch);
    if (status == STATUS_OK)
        tally_note(&batch->tally, before ? &before->job : NULL, after ? &after->job : NULL);
    return status;
}

enum status sqlite_row_change(struct sqlite_batch *batch, const struct sqlite_row *before, struct sqlite_row *after,
                              enum event_type type, struct slice data)
{
    const struct job *job = after ? &after->job : &before->job;
    int64_t last_event = job->last_event;
    assert(job->state != STATE_DEAD || job->last_error.len > 0);
    assert(!after || (after->job.state == STATE_RUNNING) == (after->job.lease_token != 0));
    if (type != EVENT_TYPE_NONE) {
        struct event event = change_event(type, job, data);
        enum status status = sqlite_event_append(batch, &event, job->lane);
        if (status != STATUS_OK)
            return status;
        last_event = event.number;
    }
    if (after)
        after->job.last_event = last_event;
    enum status status = redrive_count(batch, before, after);
    if (status == STATUS_OK)
        status = row_place(batch, before, after);
    if (status == STATUS_OK)
        status = after ? row_write(batch, before, after) : row_delete(batch, before, last_event);
    if (after && after->job.state == STATE_RUNNING)
        sqlite_held_put(batch->store, after);
    else
        sqlite_held_remove(batch->store, job->seq);
    return status;
}

/* ---- Jobs of one key ---- */

enum status sqlite_chain_after(struct sqlite_batch *batch, const struct job *job, int64_t seq, int64_t *ret_seq)
{
    assert(job->chain != 0 && job->lane > 0);
    sqlite3_stmt *statement = batch->store->statements[STATEMENT_CHAIN_AFTER];
    bool found;
    sqlite3_bind_int64(statement, 1, job->lane);
    sqlite3_bind_int64(statement, 2, job->chain);
    sqlite3_bind_int64(statement, 3, seq);
    enum status status = sqlite_next(batch, STATEMENT_CHAIN_AFTER, &found);
    *ret_seq = status == STATUS_OK && found ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_reset(statement);
    return status;
}

/* Who is under way is not behind, and can be later than one that was redriven: at most one is passed over. */
static enum status chain_behind(struct sqlite_batch *batch, const struct job *job, int64_t seq, struct sqlite_row *ret_row,
                                bool *ret_found)
{
    int64_t next = seq;
    *ret_found = false;
    for (int i = 0; i < 2 && !*ret_found; i++) {
        bool there = false;
        enum status status = sqlite_chain_after(batch, job, next, &next);
        if (status != STATUS_OK || next == 0)
            return status;
        status = sqlite_row_by_seq(batch, next, ret_row, &there);
        if (status != STATUS_OK)
            return status;
        *ret_found = there && ret_row->job.behind;
    }
    return STATUS_OK;
}

enum status sqlite_chain_follow(struct sqlite_batch *batch, const struct job *before, const struct job *after,
                                struct released *ret_released)
{
    enum chain_news news = change_chain(before, after);
    struct sqlite_row row;
    bool found;
    if (news == CHAIN_SAME)
        return STATUS_OK;
    enum status status = chain_behind(batch, before, news == CHAIN_GAP ? before->seq : 0, &row, &found);
    if (status != STATUS_OK || !found)
        return status;
    struct sqlite_row next = row;
    change_next(news, after->state, batch->now, &next.job, ret_released);
    return sqlite_row_change(batch, &row, &next, EVENT_TYPE_NONE, SLICE(""));
}

enum status sqlite_row_make_ready(struct sqlite_batch *batch, const struct sqlite_row *before)
{
    struct sqlite_row after = *before;
    assert(!before->job.ready && (before->job.state == STATE_PENDING || before->job.state == STATE_WAITING));
    after.job.ready = true;
    return row_place(batch, before, &after);
}

/* The job's name may be that of a row at hand; `data` is the caller's, and so is the name of a destination without a lane.
 */
static enum status event_add(struct sqlite_batch *batch, const struct event *event, int64_t lane)
{
    assert(event->number > 0);
    struct slice job = arena_copy(&batch->scratch, event->job);
    unsigned char *hash = arena_alloc(&batch->scratch, EVENT_HASH_BYTES + EVENT_SALT_BYTES);
    struct sqlite_value *row = job.data && hash ? sqlite_rows_add(batch, ROWS_EVENT) : NULL;
    if (!row)
        return error_set(batch->err, STATUS_NO_MEMORY, "no memory for an event");
    memcpy(hash, event->hash, EVENT_HASH_BYTES);
    memcpy(hash + EVENT_HASH_BYTES, event->salt, EVENT_SALT_BYTES);
    row[0] = value_int(event->number);
    row[1] = value_int(event->at);
    row[2] = lane ? value_int(lane) : (struct sqlite_value){ .type = SQLITE_NULL };
    row[3] = value_text(job);
    row[4] = value_int(event->type);
    row[5] = value_int(event->state);
    row[6] = value_int(event->attempt);
    row[7] = value_int(event->previous);
    row[8] = value_text(lane ? SLICE("") : event->destination); /* a lane has its destination's name */
    row[9] = value_text(event->data);
    row[10] = value_blob(hash, EVENT_HASH_BYTES);
    row[11] = value_int(event->form);
    row[12] = event->data.len ? value_blob(hash + EVENT_HASH_BYTES, EVENT_SALT_BYTES)
                              : (struct sqlite_value){ .type = SQLITE_NULL };
    return STATUS_OK;
}

enum status sqlite_event_append(struct sqlite_batch *batch, struct event *event, int64_t lane)
{
    assert(event->type > EVENT_TYPE_NONE && event->type < EVENT_TYPE_COUNT);
    struct sqlite_progress *progress = &batch->store->progress;
    event->number = progress->event_last + 1;
    event->at = batch->now;
    enum status status = trail_seal(&batch->store->seals, progress->event_hash, event, batch->err);
    if (status == STATUS_OK)
        status = event_add(batch, event, lane);
    if (status != STATUS_OK)
        return status;
    progress->event_last = event->number;
    memcpy(progress->event_hash, event->hash, EVENT_HASH_BYTES);
    return STATUS_OK;
}
