#include "store/sqlite/apply.h"

#include "store/sqlite/disk.h"
#include "store/sqlite/erase.h"
#include "store/sqlite/held.h"
#include "store/sqlite/lane.h"
#include "store/sqlite/seal.h"
#include "store/sqlite/statement.h"

#include <assert.h>

static enum status batch_begin(struct sqlite_batch *batch)
{
    assert(sqlite3_get_autocommit(batch->store->db) && batch->store->lanes.touched_count == 0);
    batch->store->saved = batch->store->progress;
    return sqlite_run(batch, STATEMENT_BEGIN);
}

/*
 * A commit that fails for want of space has written no commit record. After any other failure nobody knows
 * whether a crash would bring the batch back: the store stops, and opening it anew finds out.
 */
static enum status batch_commit(struct sqlite_batch *batch)
{
    assert(!sqlite3_get_autocommit(batch->store->db)); /* invariant 1: all of it or nothing */
    struct sqlite_store *store = batch->store;
    int result = sqlite3_step(store->statements[STATEMENT_COMMIT]);
    sqlite3_reset(store->statements[STATEMENT_COMMIT]);
    if (result == SQLITE_DONE) {
        assert(store->progress.lane_last >= store->saved.lane_last);
        lane_table_commit(&store->lanes);
        return STATUS_OK;
    }
    enum status status = sqlite_failure(store->db, result, "commit", batch->err);
    if (status == STATUS_FULL || status == STATUS_BUSY)
        return status;
    return status == STATUS_CORRUPT ? status
                                    : error_set(batch->err, STATUS_IO,
                                                "the commit failed, whether it holds shows "
                                                "when the store is opened anew: %s",
                                                sqlite3_errmsg(store->db));
}

/* What is in memory goes back with what is on disk. */
static void batch_rollback(struct sqlite_batch *batch)
{
    struct sqlite_store *store = batch->store;
    for (int i = 0; i < STATEMENT_COUNT; i++)
        sqlite3_reset(store->statements[i]);
    if (!sqlite3_get_autocommit(store->db)) {
        sqlite3_step(store->statements[STATEMENT_ROLLBACK]);
        sqlite3_reset(store->statements[STATEMENT_ROLLBACK]);
    }
    lane_table_rollback(&store->lanes);
    sqlite_held_clear(store);
    sqlite_rows_clear(store);
    store->progress = store->saved;
    if (!sqlite3_get_autocommit(store->db)) {
        struct error err;
        error_set(&err, STATUS_IO, "a transaction could not be rolled back: %s", sqlite3_errmsg(store->db));
        sqlite_store_fail(store, &err);
    }
}

static enum status batch_run(struct sqlite_batch *batch, struct store_op *ops, size_t count)
{
    assert(count > 0 && count <= STORE_BATCH_OPS_MAX);
    enum status status = batch_begin(batch);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        ops[i].status = STATUS_OK;
        ops[i].ret_released = (struct released){ 0 };
        if (ops[i].data.len > EVENT_DATA_BYTES_MAX)
            ops[i].status = STATUS_LIMIT;
        else
            status = sqlite_op_apply(batch, &ops[i]);
    }
    if (status == STATUS_OK)
        status = sqlite_rows_flush(batch, ROWS_ALL);
    if (status == STATUS_OK)
        status = sqlite_tally_write(batch);
    if (status == STATUS_OK)
        status = sqlite_lanes_write(batch);
    if (status == STATUS_OK)
        status = sqlite_trail_keep(batch, false);
    return status == STATUS_OK ? batch_commit(batch) : status;
}

/*
 * Between batches, so that nobody waits for it who has already committed. A full disk stops a checkpoint
 * without harm: the log still has everything, and the batch will see for itself whether it has room.
 */
static enum status checkpoint_when_long(struct sqlite_store *store, struct error *err)
{
    assert(sqlite3_get_autocommit(store->db));
    if (store->log.pages < store->log.checkpoint_pages)
        return STATUS_OK;
    int result = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    store->log.pages = 0;
    if (result == SQLITE_OK || (result & 0xff) == SQLITE_FULL || (result & 0xff) == SQLITE_BUSY)
        return STATUS_OK;
    return sqlite_failure(store->db, result, "checkpoint", err);
}

enum status sqlite_store_apply(struct store *base, instant now, struct store_op *ops, size_t count, struct arena *memory,
                               struct error *err)
{
    assert(base->ops == &sqlite_store_ops);
    struct sqlite_store *store = (struct sqlite_store *)base;
    struct error ignored;
    struct sqlite_batch batch = { .store = store, .now = now, .memory = memory, .err = err ? err : &ignored };
    if (store->failure.status != STATUS_OK)
        return error_set(err, store->failure.status, "the store failed before and must be opened anew: %.400s",
                         store->failure.text);
    if (count > STORE_BATCH_OPS_MAX)
        return error_set(err, STATUS_LIMIT, "a batch of %zu operations, the limit is %d", count, STORE_BATCH_OPS_MAX);
    if (count == 0)
        return STATUS_OK;

    enum status status = sqlite_watch(store, batch.err);
    if (status == STATUS_OK)
        status = checkpoint_when_long(store, batch.err);
    if (status == STATUS_OK)
        status = sqlite_log_reserve(store, batch.err);
    if (status == STATUS_OK) {
        status = batch_run(&batch, ops, count);
        if (status != STATUS_OK)
            batch_rollback(&batch);
        else /* once more: what went into a file that was gone by then may not be acknowledged */
            status = sqlite_watch_names(store, batch.err);
        sqlite_erase_end(&batch);
        arena_release(&batch.scratch);
    }
    if (status == STATUS_IO || status == STATUS_CORRUPT)
        sqlite_store_fail(store, batch.err);
    for (size_t i = 0; i < count && status != STATUS_OK; i++)
        ops[i].status = status;
    return status;
}
