#include "store/sqlite/apply.h"

#include "store/sqlite/digest.h"
#include "store/sqlite/erase.h"
#include "store/sqlite/lane.h"
#include "store/sqlite/seal.h"
#include "store/sqlite/statement.h"

#include <assert.h>

enum {
    PROMOTE_STEP = 256,          /* timers looked up at once */
    VALUE_BYTES_MAX = 500000000, /* SQLite refuses a row of twice this */
    TOKENS_RESERVED = 1 << 20,   /* lease tokens given to this process by one write of the meta row */
};

static enum status no_memory(struct sqlite_batch *batch)
{
    return error_set(batch->err, STATUS_NO_MEMORY, "no memory for the results of a batch");
}

static enum status refuse(struct store_op *op, enum status status)
{
    assert(status != STATUS_OK);
    op->status = status;
    return STATUS_OK;
}

/* ---- OP_INSERT ---- */

static enum status insert_existing(struct sqlite_batch *batch, struct store_op *op, struct sqlite_row *row)
{
    assert(op->kind == OP_INSERT);
    enum status status = sqlite_digest_complete(batch, row);
    if (status != STATUS_OK)
        return status;
    status = change_insert_again(&op->insert, &row->job, row->digest, batch->memory);
    if (status == STATUS_CONFLICT)
        return refuse(op, STATUS_CONFLICT);
    return status == STATUS_OK ? STATUS_OK : no_memory(batch);
}

/* Its texts are the caller's. */
static enum status payload_insert(struct sqlite_batch *batch, int64_t seq, const struct op_insert *insert)
{
    assert(seq > 0);
    struct sqlite_value *row = sqlite_rows_add(batch, ROWS_PAYLOAD);
    if (!row)
        return STATUS_NO_MEMORY;
    row[0] = value_int(seq);
    row[1] = value_text(insert->content_type);
    row[2] = value_text(insert->headers);
    row[3] = value_text(insert->correlation_id);
    row[4] = value_text(insert->metadata);
    row[5] = value_blob(insert->payload.data, insert->payload.len);
    row[6] = value_text(insert->key);
    row[7] = value_text(insert->callback);
    return STATUS_OK;
}

/* Whether another of its key has not ended. */
static enum status chain_held(struct sqlite_batch *batch, const struct job *job, bool *ret_held)
{
    int64_t seq = 0;
    enum status status = job->chain != 0 ? sqlite_chain_after(batch, job, 0, &seq) : STATUS_OK;
    *ret_held = seq != 0;
    return status;
}

static enum status insert_new(struct sqlite_batch *batch, struct store_op *op, struct slice id)
{
    assert(id.len > 0);
    struct op_insert *insert = &op->insert;
    struct store_lane *lane;
    enum status status = sqlite_lane_get(batch, insert->destination, insert->tenant, &lane);
    if (status != STATUS_OK)
        return status;
    struct sqlite_row row = { .key = insert->id.len > 0 ? (int64_t)job_key(insert->tenant, id) : 0 };
    const struct job chained = { .lane = lane->lane.id, .chain = job_chain(insert->key) };
    status = chain_held(batch, &chained, &insert->ret_behind);
    if (status != STATUS_OK)
        return status;
    change_insert(insert, batch->now, &row.job);
    row.job.seq = batch->store->progress.seq_last + 1;
    row.job.lane = lane->lane.id;
    row.job.destination = lane->lane.destination;
    row.job.tenant = lane->lane.tenant;
    row.job.id = id;
    sqlite_digest_make(insert, &row);
    batch->store->progress.seq_last = row.job.seq;
    status = sqlite_row_change(batch, NULL, &row, EVENT_TYPE_ACCEPTED, op->data);
    if (status == STATUS_OK)
        status = payload_insert(batch, row.job.seq, insert);
    insert->ret_seq = row.job.seq;
    insert->ret_lane = row.job.lane;
    insert->ret_id = id;
    insert->ret_existed = false;
    return status;
}

static enum status insert_apply(struct sqlite_batch *batch, struct store_op *op)
{
    struct op_insert *insert = &op->insert;
    struct slice id = SLICE("");
    if (change_insert_check(insert) != STATUS_OK)
        return refuse(op, STATUS_INVALID);
    if (insert->payload.len > VALUE_BYTES_MAX || insert->headers.len + insert->metadata.len > VALUE_BYTES_MAX / 2)
        return refuse(op, STATUS_LIMIT);
    if (insert->id.len > 0) {
        struct sqlite_row row;
        bool found;
        enum status status = sqlite_row_by_name(batch, insert->tenant, insert->id, &row, &found);
        if (status != STATUS_OK)
            return status;
        if (found)
            return insert_existing(batch, op, &row);
    }
    if (lane_table_full(&batch->store->lanes, &batch->store->settings, insert))
        return refuse(op, STATUS_FULL);
    int64_t seq = batch->store->progress.seq_last + 1;
    if (insert->id.len > 0)
        id = arena_copy(batch->memory, insert->id);
    else if (change_id_make(batch->store->base.seed, batch->now, seq, batch->memory, &id) != STATUS_OK)
        return no_memory(batch);
    return id.data ? insert_new(batch, op, id) : no_memory(batch);
}

/* ---- OP_CLAIM ---- */

/* Numbers are taken from the meta row in blocks, before the first of them is used: they only grow, over crashes too. */
static enum status token_next(struct sqlite_batch *batch, int64_t *ret_token)
{
    assert(batch->store->progress.token_last <= batch->store->progress.token_limit);
    struct sqlite_progress *progress = &batch->store->progress;
    if (progress->token_last == progress->token_limit) {
        enum status status = sqlite_meta_set(batch, "token", progress->token_limit + TOKENS_RESERVED);
        if (status != STATUS_OK)
            return status;
        progress->token_limit += TOKENS_RESERVED;
    }
    *ret_token = ++progress->token_last;
    return STATUS_OK;
}

static enum status claim_one(struct sqlite_batch *batch, const struct store_op *op, const struct sqlite_row *before,
                             struct job *ret_job)
{
    assert(before->job.ready);
    struct sqlite_row after = *before;
    int64_t token;
    enum status status = token_next(batch, &token);
    if (status == STATUS_OK && change_claim(&op->claim, batch->now, token, 0, &after.job) != STATUS_OK)
        status = error_set(batch->err, STATUS_CORRUPT, "job %lld is ready and %s", (long long)before->job.seq,
                           job_state_name(before->job.state));
    if (status == STATUS_OK)
        status = sqlite_row_change(batch, before, &after, EVENT_TYPE_CLAIMED, op->data);
    *ret_job = after.job;
    return status;
}

/*
 * All are read before the first is changed: a statement is not stepped over rows that move. Of `max` rows fewer come only
 * where bytes_max is reached, and *ret_more tells.
 */
static enum status claim_read(struct sqlite_batch *batch, const struct store_lane *lane, size_t max,
                              const struct op_claim *claim, struct sqlite_row *rows, size_t *ret_count, bool *ret_more)
{
    enum statement which = claim->failed_last != 0 ? STATEMENT_JOB_CLAIM_FAILED_LAST : STATEMENT_JOB_CLAIM;
    sqlite3_stmt *statement = batch->store->statements[which];
    size_t count = 0, bytes = 0, bytes_max = claim->bytes_max;
    bool more;
    enum status status = sqlite_rows_flush(batch, 1 << ROWS_JOB | 1 << ROWS_PAYLOAD | 1 << ROWS_READY | ROWS_GONE);
    *ret_count = 0;
    if (status != STATUS_OK)
        return status;
    sqlite3_bind_int64(statement, 1, lane->lane.id);
    sqlite3_bind_int64(statement, 2, (int64_t)max);
    if (claim->failed_last != 0) {
        sqlite3_bind_int64(statement, 3, claim->failed_last);
        sqlite3_bind_int(statement, 5, claim->unfailed_only);
        sqlite3_bind_int64(statement, 4, max > CLAIM_LOOKS_MAX ? (int64_t)max : CLAIM_LOOKS_MAX);
    }
    status = sqlite_next(batch, which, &more);
    while (status == STATUS_OK && more) {
        assert(count < max);
        bytes += (size_t)sqlite3_column_bytes(statement, COLUMN_PAYLOAD);
        if (bytes_max > 0 && count > 0 && bytes > bytes_max)
            break;
        status = sqlite_row_read(statement, batch->memory, &rows[count], batch->err);
        rows[count].job.destination = lane->lane.destination;
        rows[count].job.tenant = lane->lane.tenant;
        rows[count].job.damaged =
            status == STATUS_OK && rows[count].job.step == STEP_SEND && sqlite_digest_differs(&rows[count]);
        count++;
        if (status == STATUS_OK)
            status = sqlite_next(batch, which, &more);
    }
    sqlite3_reset(statement);
    *ret_count = count;
    *ret_more = more;
    return status;
}

/* A lane's names live with the store; results live in the caller's memory. */
static enum status names_copy(struct sqlite_batch *batch, struct job *job)
{
    assert(job->destination.data && job->tenant.data);
    job->destination = arena_copy(batch->memory, job->destination);
    job->tenant = arena_copy(batch->memory, job->tenant);
    return job->destination.data && job->tenant.data ? STATUS_OK : no_memory(batch);
}

static enum status claim_apply(struct sqlite_batch *batch, struct store_op *op)
{
    assert(!batch->ready_taken);
    struct op_claim *claim = &op->claim;
    const struct store_lane *lane = lane_table_by_id(&batch->store->lanes, claim->lane);
    claim->ret_jobs = NULL;
    claim->ret_count = claim->ret_left = 0;
    if (!lane)
        return STATUS_OK; /* a lane that never was has nothing ready */
    size_t max = (uint64_t)lane->lane.counts.ready < claim->max ? (size_t)lane->lane.counts.ready : claim->max;
    if (max == 0)
        return STATUS_OK;
    struct sqlite_row *rows = arena_alloc_unset(&batch->scratch, max, sizeof *rows);
    struct job *jobs = arena_alloc_unset(batch->memory, max, sizeof *jobs);
    struct job named = { .destination = lane->lane.destination, .tenant = lane->lane.tenant };
    enum status status = rows && jobs ? names_copy(batch, &named) : no_memory(batch);
    size_t count = 0;
    bool more;
    if (status == STATUS_OK)
        status = claim_read(batch, lane, max, claim, rows, &count, &more);
    if (status == STATUS_OK && count < max && !more && !claim->unfailed_only)
        status =
            error_set(batch->err, STATUS_CORRUPT, "lane %lld counts more ready jobs than it has", (long long)lane->lane.id);
    bool in_order = claim->failed_last == 0; /* else each is taken out for itself */
    if (status == STATUS_OK && in_order)
        status = sqlite_ready_take(batch, &rows[count - 1].job);
    batch->ready_taken = in_order;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = claim_one(batch, op, &rows[i], &jobs[i]);
        jobs[i].destination = named.destination;
        jobs[i].tenant = named.tenant;
    }
    batch->ready_taken = false;
    if (status != STATUS_OK)
        return status;
    claim->ret_jobs = jobs;
    claim->ret_count = count;
    claim->ret_left = max - count;
    return STATUS_OK;
}

/* ---- OP_SETTLE, OP_EXTEND, OP_CANCEL, OP_PRIORITIZE, OP_REDRIVE, OP_UNDO, OP_PURGE, OP_ERASE ---- */

static enum status payload_replace(struct sqlite_batch *batch, struct sqlite_row *row, struct slice payload)
{
    assert(row->job.lease_token == 0);
    sqlite3_stmt *statement = batch->store->statements[STATEMENT_PAYLOAD_UPDATE];
    enum status status = sqlite_digest_complete(batch, row);
    if (status != STATUS_OK)
        return status;
    sqlite3_bind_int64(statement, 1, row->job.seq);
    sqlite3_bind_blob64(statement, 2, payload.len ? payload.data : "", payload.len, SQLITE_STATIC);
    status = sqlite_run(batch, STATEMENT_PAYLOAD_UPDATE);
    return status == STATUS_OK ? sqlite_digest_correct(batch, row) : status;
}

/* What a dead letter becomes is there first; what refuses that is the operation's own status. */
static enum status export_apply(struct sqlite_batch *batch, struct store_op *op)
{
    struct store_op insert = { .kind = OP_INSERT, .insert = *op->job.export };
    enum status status = insert_apply(batch, &insert);
    *op->job.export = insert.insert;
    op->status = insert.status;
    return status;
}

/* Of one job that is there; `before` NULL: it is not. */
static enum status one_apply(struct sqlite_batch *batch, struct store_op *op, const struct sqlite_row *before)
{
    assert(!before || before->job.seq > 0);
    struct sqlite_row after;
    struct change change;
    enum status status = STATUS_OK;
    if (before)
        after = *before;
    if (op->kind == OP_REDRIVE)
        op->job.ret_behind = false;
    if (op->kind == OP_REDRIVE && before && !job_is_chained(&before->job))
        status = chain_held(batch, &before->job, &op->job.ret_behind);
    if (status != STATUS_OK)
        return status;
    op->status = change_apply(op, batch->now, before ? &after.job : NULL, &change);
    if (op->status == STATUS_OK && op->kind == OP_PURGE && op->job.export)
        status = export_apply(batch, op);
    if (op->status != STATUS_OK || status != STATUS_OK)
        return status;
    if (op->job.payload_given && (op->kind == OP_REDRIVE || op->kind == OP_UNDO))
        status = payload_replace(batch, &after, op->job.payload);
    if (status == STATUS_OK)
        status = sqlite_row_change(batch, before, change.deleted ? NULL : &after, change.event, op->data);
    return status == STATUS_OK ? sqlite_chain_follow(batch, &before->job, &after.job, &op->ret_released) : status;
}

static enum status leased_apply(struct sqlite_batch *batch, struct store_op *op)
{
    struct sqlite_row row;
    bool found;
    enum status status = sqlite_row_by_seq(batch, op->kind == OP_SETTLE ? op->settle.seq : op->extend.seq, &row, &found);
    return status == STATUS_OK ? one_apply(batch, op, found ? &row : NULL) : status;
}

static enum status named_apply(struct sqlite_batch *batch, struct store_op *op)
{
    struct sqlite_row row;
    bool found;
    if (op->job.payload_given && op->job.payload.len > VALUE_BYTES_MAX)
        return refuse(op, STATUS_LIMIT);
    if (op->kind == OP_ERASE) {
        enum status begun = sqlite_erase_begin(batch);
        if (begun != STATUS_OK)
            return begun;
    }
    enum status status = op->job.seq != 0 ? sqlite_row_by_seq(batch, op->job.seq, &row, &found)
                                          : sqlite_row_by_name(batch, op->job.tenant, op->job.id, &row, &found);
    return status == STATUS_OK ? one_apply(batch, op, found ? &row : NULL) : status;
}

/* ---- OP_PROMOTE ---- */

static enum status correlation_read(struct sqlite_batch *batch, int64_t seq, struct slice *ret_text)
{
    assert(seq > 0);
    sqlite3_stmt *statement = batch->store->statements[STATEMENT_CORRELATION];
    bool found = false;
    *ret_text = SLICE("");
    sqlite3_bind_int64(statement, 1, seq);
    enum status status = sqlite_next(batch, STATEMENT_CORRELATION, &found);
    if (status == STATUS_OK && found && sqlite_column_copy(statement, 0, batch->memory, ret_text) != STATUS_OK)
        status = no_memory(batch);
    sqlite3_reset(statement);
    return status;
}

/* For who wants to know which they were. */
static enum status expired_name(struct sqlite_batch *batch, struct op_promote *promote, const struct job *expired)
{
    assert(promote->ret_expired > 0 && expired->state == STATE_DEAD);
    struct job *named = promote->ret_expired_jobs;
    if (!named)
        named = promote->ret_expired_jobs = arena_alloc_array(batch->memory, promote->max, sizeof *named);
    if (!named)
        return no_memory(batch);
    named += promote->ret_expired - 1;
    *named = *expired;
    struct slice *const texts[] = { &named->id, &named->last_code, &named->last_error, &named->reference };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i] = arena_copy(batch->memory, *texts[i]);
        if (!texts[i]->data)
            return no_memory(batch);
    }
    enum status status = names_copy(batch, named);
    return status == STATUS_OK ? correlation_read(batch, expired->seq, &named->correlation_id) : status;
}

static enum status promote_one(struct sqlite_batch *batch, struct store_op *op, int64_t seq)
{
    assert(op->kind == OP_PROMOTE);
    struct sqlite_row before;
    struct change change;
    bool found;
    enum status status = sqlite_row_by_seq(batch, seq, &before, &found);
    if (status != STATUS_OK)
        return status;
    instant due = found ? job_due(&before.job) : INSTANT_NONE;
    if (due == INSTANT_NONE || due > batch->now)
        return error_set(batch->err, STATUS_CORRUPT, "a timer points to job %lld, which is not there to be timed",
                         (long long)seq);
    struct sqlite_row after = before;
    struct store_lane *lane = lane_table_by_id(&batch->store->lanes, before.job.lane);
    change_due(&op->promote, batch->now, &after.job, &change);
    lane->promoted += change.ready;
    lane->died += change.dead;
    if (change.ready)
        return sqlite_row_make_ready(batch, &before);
    struct released released = { 0 };
    status = sqlite_row_change(batch, &before, change.deleted ? NULL : &after, change.event, op->data);
    if (status == STATUS_OK && !change.deleted)
        status = sqlite_chain_follow(batch, &before.job, &after.job, &released);
    lane->promoted += released.ready;
    bool wanted = op->promote.name_expired && change.event == EVENT_TYPE_EXPIRED;
    return status == STATUS_OK && wanted ? expired_name(batch, &op->promote, &after.job) : status;
}

static enum status due_read(struct sqlite_batch *batch, size_t max, int64_t *ret_seqs, size_t *ret_count)
{
    assert(max <= PROMOTE_STEP);
    sqlite3_stmt *statement = batch->store->statements[STATEMENT_TIMER_DUE];
    bool more;
    enum status status = sqlite_rows_flush(batch, ROWS_ALL);
    *ret_count = 0;
    if (status != STATUS_OK)
        return status;
    sqlite3_bind_int64(statement, 1, batch->now);
    sqlite3_bind_int64(statement, 2, (int64_t)max);
    status = sqlite_next(batch, STATEMENT_TIMER_DUE, &more);
    while (status == STATUS_OK && more) {
        ret_seqs[(*ret_count)++] = sqlite3_column_int64(statement, 0);
        status = sqlite_next(batch, STATEMENT_TIMER_DUE, &more);
    }
    return status;
}

static enum status next_read(struct sqlite_batch *batch, instant *ret_at)
{
    sqlite3_stmt *statement = batch->store->statements[STATEMENT_TIMER_NEXT];
    bool row = false;
    enum status status = sqlite_rows_flush(batch, 1 << ROWS_TIMER);
    if (status == STATUS_OK)
        status = sqlite_next(batch, STATEMENT_TIMER_NEXT, &row);
    if (status == STATUS_OK && row)
        *ret_at = sqlite_column_instant(statement, 0);
    sqlite3_reset(statement);
    return status;
}

static enum status promote_apply(struct sqlite_batch *batch, struct store_op *op)
{
    struct op_promote *promote = &op->promote;
    change_due_begin(promote);
    enum status status = STATUS_OK;
    size_t left = promote->max, count = 1;
    while (status == STATUS_OK && left > 0 && count > 0) {
        int64_t seqs[PROMOTE_STEP];
        status = due_read(batch, left < PROMOTE_STEP ? left : PROMOTE_STEP, seqs, &count);
        for (size_t i = 0; i < count && status == STATUS_OK; i++)
            status = promote_one(batch, op, seqs[i]);
        left -= count;
    }
    if (status == STATUS_OK)
        status = lane_table_promoted(&batch->store->lanes, promote, batch->memory);
    if (status == STATUS_NO_MEMORY)
        return no_memory(batch);
    return status == STATUS_OK ? next_read(batch, &promote->ret_next_at) : status;
}

/* ---- OP_ORPHANS, OP_SAVE, OP_DESTINATION, OP_NOTE, OP_TRIM ---- */

static enum status orphan_read(struct sqlite_batch *batch, sqlite3_stmt *statement, struct job *ret_job)
{
    struct sqlite_row row;
    enum status status = sqlite_row_read(statement, batch->memory, &row, batch->err);
    if (status != STATUS_OK)
        return status;
    const struct store_lane *lane = lane_table_by_id(&batch->store->lanes, row.job.lane);
    if (!lane)
        return error_set(batch->err, STATUS_CORRUPT, "job %lld has no lane", (long long)row.job.seq);
    row.job.destination = lane->lane.destination;
    row.job.tenant = lane->lane.tenant;
    *ret_job = row.job;
    return names_copy(batch, ret_job);
}

static enum status orphans_apply(struct sqlite_batch *batch, struct store_op *op)
{
    assert(batch->store->lanes.running >= 0);
    struct op_orphans *orphans = &op->orphans;
    sqlite3_stmt *statement = batch->store->statements[STATEMENT_JOB_ORPHANS];
    uint64_t running = (uint64_t)batch->store->lanes.running;
    size_t max = running < orphans->max ? (size_t)running : orphans->max;
    bool more = false;
    orphans->ret_count = 0;
    sqlite3_bind_int64(statement, 1, orphans->until);
    sqlite3_bind_int64(statement, 2, orphans->of_ended ? batch->store->base.session : 0);
    sqlite3_bind_int64(statement, 3, (int64_t)max);
    sqlite3_bind_int64(statement, 4, orphans->after_until);
    sqlite3_bind_int64(statement, 5, orphans->after_seq);
    enum status status = sqlite_rows_flush(batch, ROWS_ALL);
    if (status == STATUS_OK)
        status = sqlite_next(batch, STATEMENT_JOB_ORPHANS, &more);
    /* Most often there are none: room for as many as run would be made, and be zeroed, for nothing. */
    orphans->ret_jobs = arena_alloc_array(batch->memory, more ? max : 0, sizeof *orphans->ret_jobs);
    if (status == STATUS_OK && !orphans->ret_jobs)
        status = no_memory(batch);
    while (status == STATUS_OK && more) {
        status = orphan_read(batch, statement, &orphans->ret_jobs[orphans->ret_count++]);
        if (status == STATUS_OK)
            status = sqlite_next(batch, STATEMENT_JOB_ORPHANS, &more);
    }
    sqlite3_reset(statement);
    return status;
}

static enum status keep(struct sqlite_batch *batch, struct slice space, struct slice name, struct slice value)
{
    assert(space.len > 0 && name.len > 0);
    enum statement write = value.len > 0 ? STATEMENT_SAVED_WRITE : STATEMENT_SAVED_DELETE;
    sqlite3_stmt *statement = batch->store->statements[write];
    sqlite_bind_slice(statement, 1, space);
    sqlite_bind_slice(statement, 2, name);
    if (value.len > 0)
        sqlite_bind_slice(statement, 3, value);
    return sqlite_run(batch, write);
}

static enum status keep_apply(struct sqlite_batch *batch, struct store_op *op)
{
    if (op->save.space.len == 0 || op->save.name.len == 0)
        return refuse(op, STATUS_INVALID);
    return keep(batch, op->save.space, op->save.name, op->save.value);
}

static enum status destination_apply(struct sqlite_batch *batch, struct store_op *op)
{
    struct event event = {
        .type = EVENT_TYPE_DESTINATION,
        .destination = op->save.name,
        .tenant = SLICE(""),
        .job = SLICE(""),
        .data = op->data,
    };
    if (op->save.name.len == 0)
        return refuse(op, STATUS_INVALID);
    enum status status = keep(batch, SPACE_DESTINATION, op->save.name, op->save.value);
    return status == STATUS_OK ? sqlite_event_append(batch, &event, 0) : status;
}

static enum status note_apply(struct sqlite_batch *batch, struct store_op *op)
{
    struct event event = {
        .type = EVENT_TYPE_NOTE,
        .destination = SLICE(""),
        .tenant = SLICE(""),
        .job = SLICE(""),
        .data = op->data,
    };
    return sqlite_event_append(batch, &event, 0);
}

/* One node has it all. */
static enum status own_apply(struct sqlite_batch *batch, struct store_op *op)
{
    (void)batch;
    op->own.ret_epoch = 0;
    return STATUS_OK;
}

enum status sqlite_op_apply(struct sqlite_batch *batch, struct store_op *op)
{
    static enum status (*const table[])(struct sqlite_batch *, struct store_op *) = {
        [OP_INSERT] = insert_apply,
        [OP_CLAIM] = claim_apply,
        [OP_SETTLE] = leased_apply,
        [OP_EXTEND] = leased_apply,
        [OP_CANCEL] = named_apply,
        [OP_PRIORITIZE] = named_apply,
        [OP_REDRIVE] = named_apply,
        [OP_PURGE] = named_apply,
        [OP_PROMOTE] = promote_apply,
        [OP_ORPHANS] = orphans_apply,
        [OP_DESTINATION] = destination_apply,
        [OP_SAVE] = keep_apply,
        [OP_NOTE] = note_apply,
        [OP_TRIM] = sqlite_trim_apply,
        [OP_TAKE] = own_apply,
        [OP_GIVE] = own_apply,
        [OP_UNDO] = named_apply,
        [OP_ERASE] = named_apply,
        [OP_ERASE_EVENTS] = sqlite_erase_apply,
    };
    assert((size_t)op->kind < sizeof table / sizeof table[0]);
    return table[op->kind](batch, op);
}
