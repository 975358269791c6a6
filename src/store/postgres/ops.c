/* Each operation: its job found among those that the round knows, changed by ../change.c, put back. */
#include "store/postgres/timers.h"
#include "store/postgres/work.h"

#include <assert.h>
#include <string.h>

enum { VALUE_BYTES_MAX = 500000000 };

static enum status refuse(struct store_op *op, enum status status)
{
    assert(status != STATUS_OK);
    op->status = status;
    return STATUS_OK;
}

/* ---- OP_INSERT ---- */

static enum status insert_existing(struct postgres_batch *batch, struct store_op *op, const struct postgres_entry *entry)
{
    enum status status = change_insert_again(&op->insert, &entry->job, entry->digest, batch->memory);
    if (status == STATUS_CONFLICT)
        return refuse(op, STATUS_CONFLICT);
    return status == STATUS_OK ? STATUS_OK : batch_no_memory(batch);
}

/* Its destination was asked for with the round, if it was not known. */
static enum status lane_new(struct postgres_batch *batch, const struct op_insert *insert, struct store_lane **ret_lane)
{
    struct postgres_store *store = batch->store;
    struct postgres_block *ids = &store->ids.lanes;
    const struct postgres_shard *shard = shard_find(store, insert->destination);
    enum status status = STATUS_OK;
    if (!shard) {
        store->link.clashed = true;
        return error_set(batch->err, STATUS_BUSY, "another node makes the same destination known");
    }
    if (ids->left == 0)
        status = numbers_ask(batch, ASK_LANE_BLOCK, ids, LANE_BLOCK);
    if (status != STATUS_OK)
        return status;
    const struct lane lane = { .id = ids->next, .destination = insert->destination, .tenant = insert->tenant };
    if (lane_table_add(&store->lanes, &lane, ret_lane) != STATUS_OK)
        return batch_no_memory(batch);
    ids->next++;
    ids->left--;
    (*ret_lane)->shard = shard->id;
    (*ret_lane)->listed = true; /* by the row that is written here */
    return STATUS_OK;
}

static enum status lane_get(struct postgres_batch *batch, const struct op_insert *insert, struct store_lane **ret_lane)
{
    assert(insert->destination.len > 0);
    struct postgres_store *store = batch->store;
    struct postgres_params *params;
    *ret_lane = lane_table_find(&store->lanes, insert->destination, insert->tenant);
    if (*ret_lane)
        return STATUS_OK;
    enum status status = lane_new(batch, insert, ret_lane);
    if (status != STATUS_OK)
        return status;
    params = batch_params(batch, WRITE_LANES);
    params_int(params, 0, (*ret_lane)->lane.id);
    params_bytes(params, 1, insert->destination);
    params_bytes(params, 2, insert->tenant);
    params_int(params, 3, (*ret_lane)->shard);
    return STATUS_OK;
}

static enum status insert_new(struct postgres_batch *batch, struct store_op *op, int64_t seq, struct slice id)
{
    assert(id.len > 0);
    struct op_insert *insert = &op->insert;
    struct postgres_entry *entry;
    struct store_lane *lane;
    struct job job;
    enum status status = lane_get(batch, insert, &lane);
    if (status == STATUS_OK)
        status = chain_held(batch, lane->lane.id, job_chain(insert->key), &insert->ret_behind);
    if (status != STATUS_OK)
        return status;
    change_insert(insert, batch->now, &job);
    job.seq = seq;
    job.lane = lane->lane.id;
    job.destination = lane->lane.destination;
    job.tenant = lane->lane.tenant;
    job.id = id;
    job.content_type = insert->content_type;
    job.headers = insert->headers;
    job.correlation_id = insert->correlation_id;
    job.metadata = insert->metadata;
    job.key = insert->key;
    job.callback = insert->callback;
    job.payload = insert->payload;
    status = entry_new(batch, &job, insert->id.len == 0, &entry);
    if (status != STATUS_OK)
        return status;
    job_digest_make(insert, entry->digest);
    entry->state_dirty = job.behind;
    status = entry_change(batch, entry, &job, EVENT_TYPE_ACCEPTED, op->data);
    entry->before = entry->job;
    insert->ret_seq = seq;
    insert->ret_lane = job.lane;
    insert->ret_id = id;
    insert->ret_existed = false;
    return status;
}

static enum status insert_apply(struct postgres_batch *batch, struct store_op *op, size_t place)
{
    (void)place;
    struct op_insert *insert = &op->insert;
    struct postgres_block *seqs = &batch->store->ids.seqs;
    struct slice id = SLICE("");
    if (change_insert_check(insert) != STATUS_OK)
        return refuse(op, STATUS_INVALID);
    if (insert->payload.len > VALUE_BYTES_MAX || insert->headers.len + insert->metadata.len > VALUE_BYTES_MAX / 2)
        return refuse(op, STATUS_LIMIT);
    const struct postgres_entry *there =
        insert->id.len > 0 ? entry_by_name(&batch->round, insert->tenant, insert->id) : NULL;
    if (there)
        return insert_existing(batch, op, there);
    if (lane_table_full(&batch->store->lanes, &batch->store->settings, insert))
        return refuse(op, STATUS_FULL);
    assert(seqs->left > 0);
    int64_t seq = seqs->next++;
    seqs->left--;
    if (insert->id.len > 0)
        id = arena_copy(batch->memory, insert->id);
    else if (change_id_make(batch->store->base.seed, batch->now, seq, batch->memory, &id) != STATUS_OK)
        return batch_no_memory(batch);
    return id.data ? insert_new(batch, op, seq, id) : batch_no_memory(batch);
}

/* ---- OP_CLAIM ---- */

/* How many of the candidates are taken: as many as bytes_max allows, and only those that are wanted. */
static size_t claim_choose(const struct op_claim *claim, const struct postgres_candidates *candidates)
{
    size_t count = 0, bytes = 0;
    for (; count < candidates->count && count < claim->max; count++) {
        const struct postgres_entry *entry = candidates->entries[count];
        if (claim->failed_last != 0 && claim->unfailed_only && entry->job.look_failed_at >= claim->failed_last)
            break;
        bytes += entry->body_bytes;
        if (claim->bytes_max > 0 && count > 0 && bytes > claim->bytes_max)
            break;
    }
    return count;
}

static enum status claim_one(struct postgres_batch *batch, const struct store_op *op, struct postgres_entry *entry,
                             struct job *ret_job)
{
    assert(entry->job.ready && entry->body_here);
    struct postgres_block *tokens = &batch->store->ids.tokens;
    enum status status = STATUS_OK;
    if (tokens->left == 0)
        status = numbers_ask(batch, ASK_TOKEN_BLOCK, tokens, TOKEN_BLOCK);
    if (status != STATUS_OK)
        return status;
    struct job after = entry->job;
    int64_t session = batch->store->shared ? batch->store->base.session : 0;
    tokens->left--;
    if (change_claim(&op->claim, batch->now, tokens->next++, session, &after) != STATUS_OK)
        return error_set(batch->err, STATUS_CORRUPT, "job %lld is ready and %s", (long long)entry->job.seq,
                         job_state_name(entry->job.state));
    after.damaged = after.step == STEP_SEND && job_check_differs(&after, entry->digest + JOB_DIGEST_BYTES);
    status = entry_change(batch, entry, &after, EVENT_TYPE_CLAIMED, op->data);
    if (status != STATUS_OK)
        return status;
    *ret_job = entry->job;
    return job_texts_copy(ret_job, batch->memory) == STATUS_OK ? STATUS_OK : batch_no_memory(batch);
}

static enum status claim_apply(struct postgres_batch *batch, struct store_op *op, size_t place)
{
    assert(place < batch->round.end - batch->round.begin);
    struct op_claim *claim = &op->claim;
    struct store_lane *lane = lane_table_by_id(&batch->store->lanes, claim->lane);
    claim->ret_jobs = NULL;
    claim->ret_count = claim->ret_left = 0;
    if (lane && !store_owns(batch->store, lane->lane.destination))
        return refuse(op, STATUS_CONFLICT);
    struct postgres_candidates *candidates = lane ? &batch->round.claims[lane->claim_place] : NULL;
    if (!candidates || lane->claim_place > place || candidates->lane != claim->lane)
        return STATUS_OK; /* nobody knew of the lane when the round asked */
    struct postgres_entry **entries = candidates->entries;
    size_t count = claim_choose(claim, candidates);
    claim->ret_left = (candidates->count < claim->max ? candidates->count : claim->max) - count;
    candidates->entries += count;
    candidates->count -= count;
    if (count == 0)
        return STATUS_OK;
    claim->ret_jobs = arena_alloc_array(batch->memory, count, sizeof *claim->ret_jobs);
    if (!claim->ret_jobs)
        return batch_no_memory(batch);
    enum status status = bodies_ask(batch, entries, count);
    for (; claim->ret_count < count && status == STATUS_OK; claim->ret_count++)
        status = claim_one(batch, op, entries[claim->ret_count], &claim->ret_jobs[claim->ret_count]);
    if (status != STATUS_OK || claim->failed_last != 0)
        return status;
    const struct job *last = &entries[count - 1]->job;
    lane->low_rank = last->rank;
    lane->low_seq = last->seq;
    lane->low_mark = batch->round.low_mark;
    return STATUS_OK;
}

/* ---- OP_SETTLE, OP_EXTEND, OP_CANCEL, OP_PRIORITIZE, OP_REDRIVE, OP_UNDO, OP_PURGE, OP_ERASE ---- */

/* A corrected payload does not change what OP_INSERT compares with, but what a claim does. */
static void payload_replace(struct postgres_entry *entry, struct job *after, struct slice payload)
{
    assert(entry->is);
    after->payload = payload;
    entry->body_dirty = entry->body_here = true;
    entry->body_bytes = payload.len;
    job_check_make(after, entry->digest + JOB_DIGEST_BYTES);
}

/* What a dead letter becomes is there first; what refuses that is the operation's own status. */
static enum status export_apply(struct postgres_batch *batch, struct store_op *op)
{
    struct store_op insert = { .kind = OP_INSERT, .insert = *op->job.export };
    enum status status = insert_apply(batch, &insert, 0);
    *op->job.export = insert.insert;
    op->status = insert.status;
    return status;
}

/* Texts that change.c put into the job may be the operation's, which lives as long as the batch, or the change's. */
static enum status one_apply(struct postgres_batch *batch, struct store_op *op, struct postgres_entry *entry)
{
    assert(!entry || entry->is);
    struct change change;
    struct job before, after;
    enum status status = STATUS_OK;
    if (entry)
        before = after = entry->job;
    if (op->kind == OP_REDRIVE)
        op->job.ret_behind = false;
    if (op->kind == OP_REDRIVE && entry && !job_is_chained(&entry->job))
        status = chain_held(batch, entry->job.lane, entry->job.chain, &op->job.ret_behind);
    if (status != STATUS_OK)
        return status;
    op->status = change_apply(op, batch->now, entry ? &after : NULL, &change);
    if (op->status == STATUS_OK && op->kind == OP_PURGE && op->job.export)
        status = export_apply(batch, op);
    if (op->status != STATUS_OK || status != STATUS_OK)
        return status;
    if (op->kind == OP_REDRIVE || op->kind == OP_UNDO) {
        after.redrive = arena_copy(&batch->round.memory, after.redrive); /* these may be the change's own */
        after.dead_code = arena_copy(&batch->round.memory, after.dead_code);
        if (!after.redrive.data || !after.dead_code.data)
            return batch_no_memory(batch);
        if (op->job.payload_given)
            payload_replace(entry, &after, op->job.payload);
    }
    entry->state_dirty = entry->state_dirty || op->kind != OP_EXTEND;
    status = entry_change(batch, entry, change.deleted ? NULL : &after, change.event, op->data);
    return status == STATUS_OK ? chain_follow(batch, &before, &after, &op->ret_released) : status;
}

/* Who owns the destination counts what pull workers hold. */
static void ack_note(struct postgres_batch *batch, const struct store_op *op, const struct job *leased)
{
    assert(batch->store->shared && op->kind == OP_SETTLE);
    const struct store_lane *lane = lane_table_by_id(&batch->store->lanes, leased->lane);
    if (op->settle.event == EVENT_DELIVER && leased->lease_owner.len > 0 && lane &&
        !store_owns(batch->store, lane->lane.destination))
        buffer_printf(&batch->store->batch.acked, "a %lld %lld\n", (long long)op->settle.seq, (long long)op->settle.token);
}

static enum status leased_apply(struct postgres_batch *batch, struct store_op *op, size_t place)
{
    assert(op->kind == OP_SETTLE || op->kind == OP_EXTEND);
    (void)place;
    struct postgres_entry *entry = entry_by_seq(&batch->round, op->kind == OP_SETTLE ? op->settle.seq : op->extend.seq);
    const struct job before = entry ? entry->job : (struct job){ 0 };
    enum status status = one_apply(batch, op, entry);
    if (status == STATUS_OK && op->status == STATUS_OK && op->kind == OP_SETTLE && batch->store->shared)
        ack_note(batch, op, &before);
    return status;
}

static enum status named_apply(struct postgres_batch *batch, struct store_op *op, size_t place)
{
    (void)place;
    if (op->job.payload_given && op->job.payload.len > VALUE_BYTES_MAX)
        return refuse(op, STATUS_LIMIT);
    return one_apply(batch, op, entry_by_name(&batch->round, op->job.tenant, op->job.id));
}

/* ---- OP_PROMOTE ---- */

static enum status expired_name(struct postgres_batch *batch, struct op_promote *promote, const struct job *expired)
{
    assert(promote->ret_expired > 0 && expired->state == STATE_DEAD);
    struct job *named = promote->ret_expired_jobs;
    if (!named)
        named = promote->ret_expired_jobs = arena_alloc_array(batch->memory, batch->round.due_count, sizeof *named);
    if (!named)
        return batch_no_memory(batch);
    named += promote->ret_expired - 1;
    *named = *expired;
    named->payload = SLICE("");
    return job_texts_copy(named, batch->memory) == STATUS_OK ? STATUS_OK : batch_no_memory(batch);
}

static enum status promote_one(struct postgres_batch *batch, struct store_op *op, struct postgres_entry *entry)
{
    struct store_lane *lane = lane_table_by_id(&batch->store->lanes, entry->job.lane);
    assert(lane);
    const struct job before = entry->job;
    struct job after = entry->job;
    struct released released = { 0 };
    struct change change;
    change_due(&op->promote, batch->now, &after, &change);
    lane->promoted += change.ready;
    lane->died += change.dead;
    if (change.event == EVENT_TYPE_EXPIRED) { /* its error's text may be the change's own */
        after.last_error = arena_copy(&batch->round.memory, after.last_error);
        if (!after.last_error.data)
            return batch_no_memory(batch);
    }
    entry->state_dirty = entry->state_dirty || !change.ready;
    enum status status = entry_change(batch, entry, change.deleted ? NULL : &after, change.event, op->data);
    if (status == STATUS_OK && !change.deleted)
        status = chain_follow(batch, &before, &after, &released);
    if (status != STATUS_OK)
        return status;
    lane->promoted += released.ready;
    if (released.at > batch->now) /* else it is among those that are due */
        op->promote.ret_next_at = instant_earlier(op->promote.ret_next_at, released.at);
    if (entry->is)
        op->promote.ret_next_at = instant_earlier(op->promote.ret_next_at, job_due(&entry->job));
    bool wanted = op->promote.name_expired && change.event == EVENT_TYPE_EXPIRED;
    return wanted ? expired_name(batch, &op->promote, &entry->job) : STATUS_OK;
}

static enum status promote_apply(struct postgres_batch *batch, struct store_op *op, size_t place)
{
    assert(op->kind == OP_PROMOTE);
    (void)place;
    struct op_promote *promote = &op->promote;
    const struct postgres_round *round = &batch->round;
    size_t count = round->due_count < promote->max ? round->due_count : promote->max;
    change_due_begin(promote);
    promote->ret_next_at = round->next_at;
    if (count < round->due_count)
        promote->ret_next_at = job_due(&round->due[count]->job);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = promote_one(batch, op, round->due[i]);
    timers_promoted(batch, count == round->due_count);
    if (status == STATUS_OK && lane_table_promoted(&batch->store->lanes, promote, batch->memory) != STATUS_OK)
        status = batch_no_memory(batch);
    return status;
}

/* ---- OP_ORPHANS, OP_SAVE, OP_DESTINATION, OP_NOTE, OP_TRIM ---- */

static enum status orphans_apply(struct postgres_batch *batch, struct store_op *op, size_t place)
{
    (void)place;
    struct op_orphans *orphans = &op->orphans;
    const PGresult *answer = batch->round.orphans;
    int rows = PQntuples(answer);
    orphans->ret_count = 0;
    orphans->ret_jobs = arena_alloc_array(batch->memory, (size_t)rows, sizeof *orphans->ret_jobs);
    if (!orphans->ret_jobs)
        return batch_no_memory(batch);
    for (int row = 0; row < rows; row++) {
        struct job *job = &orphans->ret_jobs[orphans->ret_count++];
        enum status status = job_decode(answer, row, job, batch->err);
        if (status != STATUS_OK)
            return status;
        const struct store_lane *lane = lane_table_by_id(&batch->store->lanes, job->lane);
        if (!lane)
            return error_set(batch->err, STATUS_CORRUPT, "job %lld has no lane", (long long)job->seq);
        job->destination = lane->lane.destination;
        job->tenant = lane->lane.tenant;
        if (job_texts_copy(job, batch->memory) != STATUS_OK)
            return batch_no_memory(batch);
        job->lease_fenced_at = value_instant(answer, row, JOB_MORE);
    }
    return STATUS_OK;
}

/* Sent at once, so that of two under one name the second stands. */
static enum status save(struct postgres_batch *batch, struct slice space, struct slice name, struct slice value)
{
    assert(space.len > 0 && name.len > 0);
    enum postgres_statement which = value.len > 0 ? WRITE_SAVED : WRITE_SAVED_DELETE;
    struct postgres_params *params = batch_params(batch, which);
    params_begin(params, postgres_text(which)->types);
    params_bytes(params, 0, space);
    params_bytes(params, 1, name);
    if (value.len > 0)
        params_bytes(params, 2, value);
    batch->wrote = true;
    return batch_send(batch, which);
}

static enum status save_apply(struct postgres_batch *batch, struct store_op *op, size_t place)
{
    (void)place;
    if (op->save.space.len == 0 || op->save.name.len == 0)
        return refuse(op, STATUS_INVALID);
    return save(batch, op->save.space, op->save.name, op->save.value);
}

static enum status note(struct postgres_batch *batch, enum event_type type, struct slice destination, struct slice data)
{
    assert(type == EVENT_TYPE_NOTE || type == EVENT_TYPE_DESTINATION);
    struct event event = { .type = type, .destination = destination, .tenant = SLICE(""), .job = SLICE(""), .data = data };
    return event_append(batch, &event, 0);
}

static enum status destination_apply(struct postgres_batch *batch, struct store_op *op, size_t place)
{
    assert(op->kind == OP_DESTINATION);
    (void)place;
    if (op->save.name.len == 0)
        return refuse(op, STATUS_INVALID);
    enum status status = save(batch, SPACE_DESTINATION, op->save.name, op->save.value);
    return status == STATUS_OK ? note(batch, EVENT_TYPE_DESTINATION, op->save.name, op->data) : status;
}

static enum status note_apply(struct postgres_batch *batch, struct store_op *op, size_t place)
{
    (void)place;
    return note(batch, EVENT_TYPE_NOTE, SLICE(""), op->data);
}

/* Of each chain the newest event to go. */
struct trims {
    struct trail_head newest[TRAIL_CHAINS_MAX];
    size_t count;
};

static struct trail_head *trims_of(struct trims *trims, int64_t number)
{
    assert(trims->count <= TRAIL_CHAINS_MAX);
    for (size_t i = 0; i < trims->count; i++)
        if (trims->newest[i].number >> EVENT_CHAIN_SHIFT == number >> EVENT_CHAIN_SHIFT)
            return &trims->newest[i];
    return trims->count < TRAIL_CHAINS_MAX ? &trims->newest[trims->count++] : NULL;
}

/* `place`: which of the hashes that stand there end to end. */
static enum status head_decode(struct postgres_batch *batch, int64_t number, struct slice hashes, int64_t place,
                               struct trail_head *ret_head)
{
    if (place < 0 || (place + 1) * EVENT_HASH_BYTES > (int64_t)hashes.len)
        return error_set(batch->err, STATUS_CORRUPT, "event %s has no hash", event_id(number).text);
    ret_head->number = number;
    memcpy(ret_head->hash, hashes.data + place * EVENT_HASH_BYTES, EVENT_HASH_BYTES);
    return STATUS_OK;
}

/* Pages come chain by chain, each in its order; all of a page is of one time, and the last may go in part. */
static enum status trim_find(struct postgres_batch *batch, struct op_trim *trim, struct trims *ret_trims)
{
    assert(trim->ret_deleted == 0);
    const PGresult *answer = batch->round.oldest_events;
    int64_t young = -1; /* the chain that has no more old ones */
    enum status status = STATUS_OK;
    ret_trims->count = 0;
    for (int row = 0; row < PQntuples(answer) && trim->ret_deleted < trim->max && status == STATUS_OK; row++) {
        int64_t first = value_int(answer, row, 0), count = value_int(answer, row, 1) - first + 1;
        int64_t chain = first >> EVENT_CHAIN_SHIFT, left = (int64_t)(trim->max - trim->ret_deleted);
        young = value_int(answer, row, 2) >= trim->before ? chain : young;
        struct trail_head *newest = chain != young ? trims_of(ret_trims, first) : NULL;
        if (!newest)
            continue;
        count = count < left ? count : left;
        status = head_decode(batch, first + count - 1, value_bytes(answer, row, 3), count - 1, newest);
        trim->ret_deleted += (size_t)count;
    }
    return status;
}

static enum status trim_delete(struct postgres_batch *batch, const struct trail_head *newest)
{
    assert(newest->number > 0);
    static const enum postgres_statement steps[] = { WRITE_EVENTS_DELETE, WRITE_EVENTS_CUT, WRITE_ARCHIVE_DELETE,
                                                     WRITE_TRIMMED };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == STATUS_OK; i++) {
        struct postgres_params *params = batch_params(batch, steps[i]);
        int column = 0;
        params_begin(params, postgres_text(steps[i])->types);
        if (steps[i] == WRITE_TRIMMED)
            params_int(params, column++, newest->number >> EVENT_CHAIN_SHIFT);
        params_int(params, column++, newest->number);
        if (steps[i] == WRITE_TRIMMED)
            params_bytes(params, column, (struct slice){ (const char *)newest->hash, EVENT_HASH_BYTES });
        status = batch_send(batch, steps[i]);
    }
    return status;
}

/* Those of earlier trims behind those of this one. */
static enum status trims_complete(struct postgres_batch *batch, struct trims *trims)
{
    assert(trims->count > 0);
    PGresult *answer;
    params_begin(batch_params(batch, ASK_TRIMMED), postgres_text(ASK_TRIMMED)->types);
    enum status status = answer_ask(batch, ASK_TRIMMED, &answer);
    size_t now = trims->count;
    for (int row = 0; status == STATUS_OK && row < PQntuples(answer); row++) {
        struct trail_head *newest = trims_of(trims, value_int(answer, row, 0));
        if (newest && newest >= trims->newest + now)
            status = head_decode(batch, value_int(answer, row, 0), value_bytes(answer, row, 1), 0, newest);
    }
    return status;
}

/*
 * What is left still verifies: the hash of the last one that went is kept, and an event tells what was taken, of all chains,
 * since others that told so may go with it.
 */
static enum status trim_apply(struct postgres_batch *batch, struct store_op *op, size_t place)
{
    (void)place;
    struct trims trims;
    struct buffer data;
    op->trim.ret_deleted = 0;
    if (!store_is_steward(batch->store))
        return refuse(op, STATUS_CONFLICT);
    batch->trimmed = batch->wrote = true;
    enum status status = trim_find(batch, &op->trim, &trims);
    if (status != STATUS_OK)
        return status;
    if (op->trim.ret_deleted < TRIM_LEAST) {
        op->trim.ret_deleted = 0;
        return STATUS_OK;
    }
    size_t count = trims.count;
    status = trims_complete(batch, &trims);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = trim_delete(batch, &trims.newest[i]);
    buffer_init(&data, EVENT_DATA_BYTES_MAX);
    trail_trims_format(trims.newest, trims.count, &data);
    struct slice text = arena_copy(&batch->round.memory, buffer_slice(&data));
    buffer_release(&data);
    if (status == STATUS_OK && !text.data)
        return batch_no_memory(batch);
    return status == STATUS_OK ? note(batch, EVENT_TYPE_NOTE, SLICE(""), text) : status;
}

/* The server makes the digests, of events that are there since an earlier batch, whosever chain they are of. */
static enum status erase_events_apply(struct postgres_batch *batch, struct store_op *op, size_t place)
{
    (void)place;
    struct op_erase *erase = &op->erase;
    struct postgres_params *params = batch_params(batch, ASK_ERASE_EVENTS);
    PGresult *answer;
    erase->ret_erased = erase->ret_left = 0;
    if (erase->count > ERASE_EVENTS_MAX)
        return refuse(op, STATUS_LIMIT);
    params_begin(params, postgres_text(ASK_ERASE_EVENTS)->types);
    for (size_t i = 0; i < erase->count; i++)
        params_int(params, 0, erase->numbers[i]);
    enum status status = answer_ask(batch, ASK_ERASE_EVENTS, &answer);
    if (status != STATUS_OK)
        return status;
    for (int row = 0; row < PQntuples(answer); row++)
        ++*(value_int(answer, row, 0) == EVENT_FORM_PLAIN ? &erase->ret_left : &erase->ret_erased);
    batch->wrote = true;
    return STATUS_OK;
}

/* The server has said already whose it is; a node without a name has it all. */
static enum status own_apply(struct postgres_batch *batch, struct store_op *op, size_t place)
{
    assert(op->kind == OP_TAKE || op->kind == OP_GIVE);
    (void)place;
    struct postgres_store *store = batch->store;
    op->own.ret_epoch = 0;
    if (!store->shared)
        return STATUS_OK;
    const PGresult *answer = batch->round.owned;
    if (PQntuples(answer) == 0)
        return refuse(op, STATUS_CONFLICT);
    struct postgres_shard *shard = shard_learn(store, op->own.destination, value_int(answer, 0, 0));
    if (!shard)
        return batch_no_memory(batch);
    op->own.ret_epoch = value_int(answer, 0, 1);
    shard->owned = op->kind == OP_TAKE;
    store->shards.touched = batch->wrote = true;
    timers_forget(store);
    return STATUS_OK;
}

enum status op_apply(struct postgres_batch *batch, struct store_op *op, size_t place)
{
    static enum status (*const table[])(struct postgres_batch *, struct store_op *, size_t) = {
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
        [OP_SAVE] = save_apply,
        [OP_NOTE] = note_apply,
        [OP_TRIM] = trim_apply,
        [OP_TAKE] = own_apply,
        [OP_GIVE] = own_apply,
        [OP_UNDO] = named_apply,
        [OP_ERASE] = named_apply,
        [OP_ERASE_EVENTS] = erase_events_apply,
    };
    assert((size_t)op->kind < sizeof table / sizeof table[0]);
    op->status = STATUS_OK;
    op->ret_released = (struct released){ 0 };
    if (op->data.len > EVENT_DATA_BYTES_MAX)
        return refuse(op, STATUS_LIMIT);
    return table[op->kind](batch, op, place);
}
