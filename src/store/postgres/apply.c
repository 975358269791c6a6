#include "store/postgres/claimed.h"
#include "store/postgres/tend.h"

#include <assert.h>

static void fail(struct postgres_store *store, const struct error *err)
{
    if (store->failure.status == STATUS_OK)
        store->failure = *err;
}

static void begin_in_memory(struct postgres_store *store)
{
    assert(!store->in_doubt && store->lanes.touched_count == 0);
    store->saved = store->progress;
    store->batch.waiting_before = store->lanes.waiting;
    buffer_clear(&store->batch.acked);
    for (int i = 0; i < POSTGRES_STATEMENTS; i++)
        store->params[i].types = NULL; /* what a batch that failed has left */
}

static void commit_in_memory(struct postgres_store *store)
{
    if (store->heads.told)
        buffer_clear(&store->heads.note);
    store->heads.told = false;
    atomic_store(&store->term.sealed, store->progress.batch);
    bell_gather(store);
    lane_table_commit(&store->lanes);
    shards_commit(store);
}

static void rollback_in_memory(struct postgres_store *store)
{
    store->heads.told = false;
    lane_table_rollback(&store->lanes);
    shards_rollback(store);
    store->progress = store->saved;
}

/* What waits to be said of the other chains goes with whatever is written next, and waits no more when that is committed. */
static enum status heads_tell(struct postgres_batch *batch)
{
    struct buffer *heads = &batch->store->heads.note;
    if (!batch->wrote || heads->len == 0 || buffer_status(heads) != STATUS_OK)
        return STATUS_OK;
    struct event event = { .type = EVENT_TYPE_NOTE, .destination = SLICE(""), .tenant = SLICE(""), .job = SLICE(""),
                           .data = buffer_slice(heads) };
    batch->store->heads.told = true;
    return event_append(batch, &event, 0);
}

static enum status rounds_run(struct postgres_batch *batch, struct store_op *ops, size_t count)
{
    enum status status = lanes_ask(batch, ops, count);
    for (size_t begin = 0, end; begin < count && status == STATUS_OK; begin = end) {
        end = round_plan(batch, ops, begin, count);
        status = round_init(batch, begin, end);
        if (status == STATUS_OK)
            status = round_ask(batch, ops);
        for (size_t i = begin; i < end && status == STATUS_OK; i++)
            status = op_apply(batch, &ops[i], i - begin);
        if (status == STATUS_OK && end == count)
            status = heads_tell(batch);
        if (status == STATUS_OK)
            status = round_write(batch);
        if (status == STATUS_OK)
            claimed_follow(batch);
        round_release(batch);
    }
    return status;
}

/* A batch that has only looked needs no seal. */
static enum status commit(struct postgres_batch *batch)
{
    struct postgres_link *link = &batch->store->link;
    enum status status = batch->wrote ? batch_seal(batch) : STATUS_OK;
    if (status != STATUS_OK || !batch->begun)
        return status;
    status = link_send(link, WRITE_COMMIT, NULL, batch->err);
    if (status == STATUS_OK)
        status = link_flush(link, true, batch->err);
    return status == STATUS_OK ? link_drain(link, batch->err) : status;
}

/* After a failure: the server's side undone too. What cannot be undone is undone by the end of the connection. */
static enum status undo(struct postgres_batch *batch, enum status status)
{
    struct postgres_store *store = batch->store;
    struct error ignored;
    if (batch->begun && store->link.conn && link_rollback(&store->link, &ignored) != STATUS_OK)
        link_close(&store->link);
    rollback_in_memory(store);
    return status;
}

static enum status batch_run(struct postgres_batch *batch, struct store_op *ops, size_t count)
{
    struct postgres_store *store = batch->store;
    begin_in_memory(store);
    enum status status = rounds_run(batch, ops, count);
    if (status == STATUS_OK)
        status = commit(batch);
    if (status != STATUS_OK)
        claimed_forget(store);
    if (status == STATUS_OK)
        commit_in_memory(store);
    else if (status == STATUS_AWAY)
        store->in_doubt = true; /* what is in memory stays until it is known what became of it */
    else
        status = undo(batch, status);
    return status;
}

enum { TRIES_MAX = 10 };

enum status postgres_apply(struct store *base, instant now, struct store_op *ops, size_t count, struct arena *memory,
                           struct error *err)
{
    assert(base->ops == &postgres_store_ops);
    struct postgres_store *store = (struct postgres_store *)base;
    struct error ignored;
    struct postgres_batch batch = { .store = store, .now = now, .memory = memory, .err = err ? err : &ignored };
    assert(!store->in_doubt); /* there is no other transaction before `outcome` has told of the last */
    if (store->failure.status != STATUS_OK)
        return error_set(err, store->failure.status, "the store failed before and must be opened anew: %.400s",
                         store->failure.text);
    if (count > STORE_BATCH_OPS_MAX)
        return error_set(err, STATUS_LIMIT, "a batch of %zu operations, the limit is %d", count, STORE_BATCH_OPS_MAX);
    if (count == 0)
        return STATUS_OK;
    if (store->shared)
        bell_heed(store);
    enum status status = batch_run(&batch, ops, count);
    for (int tries = 1; status == STATUS_BUSY && store->link.clashed && store->link.conn && tries < TRIES_MAX; tries++) {
        batch = (struct postgres_batch){ .store = store, .now = now, .memory = memory, .err = batch.err };
        if (store->link.lane_gone)
            lane_table_forget(&store->lanes);
        status = batch_run(&batch, ops, count); /* another node was quicker; what it has done is seen now */
    }
    if (status == STATUS_BUSY && store->link.clashed && store->link.conn && store->shared)
        status = session_ask(store, status, batch.err); /* who goes on with its chain writes the same numbers */
    if (status == STATUS_FENCED && !store->shared)
        status = error_set(batch.err, STATUS_IO, "another program writes to this store");
    if (status == STATUS_IO || status == STATUS_CORRUPT)
        fail(store, batch.err);
    for (size_t i = 0; i < count && status != STATUS_OK && status != STATUS_AWAY; i++)
        ops[i].status = status;
    return status;
}

/*
 * The new connection has taken the chain over, so whatever the old one still has on its way is refused by its seal. So the
 * number of the last batch that was sealed tells: it is the one in doubt, or the one before.
 */
enum status postgres_outcome(struct store *base, bool *ret_applied, struct error *err)
{
    assert(base->ops == &postgres_store_ops);
    struct postgres_store *store = (struct postgres_store *)base;
    int64_t doubted = store->saved.batch + 1;
    struct postgres_progress progress = store->progress;
    link_close(&store->link);
    enum status status = postgres_connect(store, false, err);
    if (status != STATUS_OK) {
        status = postgres_passes(status, err);
        if (status != STATUS_AWAY)
            fail(store, err);
        if (status == STATUS_FENCED) { /* whether it was done is others' to see; the next session begins with neither */
            rollback_in_memory(store);
            store->in_doubt = false;
        }
        return status;
    }
    int64_t sealed = store->progress.batch, newest = store->progress.event_last; /* as postgres_connect has read it */
    store->progress = progress;
    bool applied = sealed == doubted && progress.batch == doubted;
    if (!applied && sealed != store->saved.batch) {
        status = error_set(err, STATUS_IO,
                           "the store is at batch %lld and event %s, and this daemon left it at batch %lld and event %s: it was"
                           " restored, a standby took over that had not heard of everything, or another program has written"
                           " to it; what was between is missing",
                           (long long)sealed, event_id(newest).text, (long long)store->saved.batch,
                           event_id(store->saved.event_last).text);
        fail(store, err);
        return status;
    }
    if (applied)
        commit_in_memory(store);
    else
        rollback_in_memory(store);
    store->in_doubt = false;
    *ret_applied = applied;
    return STATUS_OK;
}
