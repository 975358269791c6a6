#include "store/sqlite/lane.h"

#include "store/sqlite/statement.h"

#include <assert.h>

/* ---- opening ---- */

static struct lane_counts counts_read(sqlite3_stmt *statement, int column)
{
    assert(column >= 0);
    return (struct lane_counts){
        .pending = sqlite3_column_int64(statement, column),
        .running = sqlite3_column_int64(statement, column + 1),
        .waiting = sqlite3_column_int64(statement, column + 2),
        .completed = sqlite3_column_int64(statement, column + 3),
        .dead = sqlite3_column_int64(statement, column + 4),
        .cancelled = sqlite3_column_int64(statement, column + 5),
        .ready = sqlite3_column_int64(statement, column + 6),
    };
}

static enum status lane_load(struct sqlite_store *store, sqlite3_stmt *statement, struct error *err)
{
    assert(store->lanes.touched_count == 0);
    const struct lane lane = { .id = sqlite3_column_int64(statement, 0),
                               .destination = sqlite_column_slice(statement, 1),
                               .tenant = sqlite_column_slice(statement, 2),
                               .counts = counts_read(statement, 3) };
    if (lane.id < 1)
        return error_set(err, STATUS_CORRUPT, "a lane has the number %lld", (long long)lane.id);
    enum status status = lane_table_load(&store->lanes, &lane, sqlite3_column_int64(statement, 10));
    if (status == STATUS_CORRUPT)
        return error_set(err, STATUS_CORRUPT, "lane %lld has impossible counters", (long long)lane.id);
    return status == STATUS_OK ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory for the lanes");
}

/* What lanes that are forgotten have left in their destination's counts. */
static enum status gone_load(struct sqlite_store *store, sqlite3_stmt *statement, struct error *err)
{
    struct lane_counts counts = { .completed = sqlite3_column_int64(statement, 1),
                                  .cancelled = sqlite3_column_int64(statement, 2) };
    return totals_begin(&store->lanes.totals, sqlite_column_slice(statement, 0), &counts) == STATUS_OK
               ? STATUS_OK
               : error_set(err, STATUS_NO_MEMORY, "no memory for the lanes");
}

static enum status rows_load(struct sqlite_store *store, const char *sql,
                             enum status (*load)(struct sqlite_store *, sqlite3_stmt *, struct error *), struct error *err)
{
    sqlite3_stmt *statement = NULL;
    enum status status = STATUS_OK;
    int result = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    while (result == SQLITE_OK && status == STATUS_OK) {
        result = sqlite3_step(statement);
        if (result == SQLITE_ROW) {
            status = load(store, statement, err);
            result = SQLITE_OK;
        }
    }
    if (status == STATUS_OK && result != SQLITE_DONE)
        status = sqlite_failure(store->db, result, "read the lanes", err);
    sqlite3_finalize(statement);
    return status;
}

enum status sqlite_lanes_load(struct sqlite_store *store, struct error *err)
{
    assert(store->lanes.by_name.count == 0);
    static const char gone[] =
        "SELECT destination, sum(completed), sum(cancelled) FROM (SELECT destination, completed, cancelled FROM gone"
        " UNION ALL SELECT destination, completed, cancelled FROM lane WHERE event > 0) GROUP BY destination";
    static const char lanes[] =
        "SELECT id, destination, tenant, pending, running, waiting, completed, dead, cancelled, ready, stored"
        " FROM lane INDEXED BY lane_used WHERE event = 0 ORDER BY id";
    enum status status = sqlite_query_int64(store->db, "SELECT max(id) FROM lane", 0, &store->progress.lane_last, err);
    if (status == STATUS_OK)
        status = rows_load(store, gone, gone_load, err);
    return status == STATUS_OK ? rows_load(store, lanes, lane_load, err) : status;
}

/* ---- a batch ---- */

/* One that was forgotten, but whose row is there still; its number is 0: there is none. */
static enum status lane_find(struct sqlite_batch *batch, struct lane *lane)
{
    assert(lane->id == 0);
    sqlite3_stmt *find = batch->store->statements[STATEMENT_LANE_FIND];
    bool found = false;
    sqlite_bind_slice(find, 1, lane->destination);
    sqlite_bind_slice(find, 2, lane->tenant);
    enum status status = sqlite_next(batch, STATEMENT_LANE_FIND, &found);
    if (status == STATUS_OK && found) {
        lane->id = sqlite3_column_int64(find, 0);
        lane->counts.completed = sqlite3_column_int64(find, 1);
        lane->counts.cancelled = sqlite3_column_int64(find, 2);
    }
    sqlite3_reset(find);
    return status;
}

static enum status lane_row_begin(struct sqlite_batch *batch, const struct store_lane *lane, bool known)
{
    assert(lane->touched); /* else nobody would write that it has no jobs, if it gets none */
    enum statement which = known ? STATEMENT_LANE_EVENT : STATEMENT_LANE_INSERT;
    sqlite3_stmt *statement = batch->store->statements[which];
    sqlite3_bind_int64(statement, 1, lane->lane.id);
    if (known) {
        sqlite3_bind_int64(statement, 2, 0);
    } else {
        sqlite_bind_slice(statement, 2, lane->lane.destination);
        sqlite_bind_slice(statement, 3, lane->lane.tenant);
    }
    return sqlite_run(batch, which);
}

static enum status lane_come(struct sqlite_batch *batch, struct slice destination, struct slice tenant,
                             struct store_lane **ret_lane)
{
    struct sqlite_store *store = batch->store;
    struct lane lane = { .destination = destination, .tenant = tenant };
    enum status status = lane_find(batch, &lane);
    if (status != STATUS_OK)
        return status;
    bool known = lane.id > 0;
    if (lane_table_by_id(&store->lanes, lane.id))
        return error_set(batch->err, STATUS_CORRUPT, "lane %lld has two names", (long long)lane.id);
    if (!known)
        lane.id = store->progress.lane_last + 1;
    if (lane_table_add(&store->lanes, &lane, ret_lane) != STATUS_OK ||
        lane_table_touch(&store->lanes, *ret_lane) != STATUS_OK) /* the rollback takes it out again */
        return error_set(batch->err, STATUS_NO_MEMORY, "no memory for another lane");
    if (!known)
        store->progress.lane_last++;
    return lane_row_begin(batch, *ret_lane, known);
}

enum status sqlite_lane_get(struct sqlite_batch *batch, struct slice destination, struct slice tenant,
                            struct store_lane **ret_lane)
{
    assert(destination.len > 0);
    *ret_lane = lane_table_find(&batch->store->lanes, destination, tenant);
    return *ret_lane ? STATUS_OK : lane_come(batch, destination, tenant, ret_lane);
}

/* A lane without jobs gets no events either: none of its own is newer than the newest of all is now. */
static enum status lane_row_end(struct sqlite_batch *batch, const struct store_lane *lane)
{
    assert(lane->stored == 0 && batch->store->progress.event_last > 0);
    sqlite3_stmt *statement = batch->store->statements[STATEMENT_LANE_EVENT];
    sqlite3_bind_int64(statement, 1, lane->lane.id);
    sqlite3_bind_int64(statement, 2, batch->store->progress.event_last);
    return sqlite_run(batch, STATEMENT_LANE_EVENT);
}

enum status sqlite_lanes_write(struct sqlite_batch *batch)
{
    assert(!sqlite3_get_autocommit(batch->store->db));
    struct sqlite_store *store = batch->store;
    sqlite3_stmt *update = store->statements[STATEMENT_LANE_UPDATE];
    enum status status = STATUS_OK;
    for (size_t i = 0; i < store->lanes.touched_count && status == STATUS_OK; i++) {
        const struct store_lane *touched = store->lanes.touched[i];
        const struct lane *lane = &touched->lane;
        sqlite3_bind_int64(update, 1, lane->id);
        sqlite3_bind_int64(update, 2, lane->counts.pending);
        sqlite3_bind_int64(update, 3, lane->counts.running);
        sqlite3_bind_int64(update, 4, lane->counts.waiting);
        sqlite3_bind_int64(update, 5, lane->counts.completed);
        sqlite3_bind_int64(update, 6, lane->counts.dead);
        sqlite3_bind_int64(update, 7, lane->counts.cancelled);
        sqlite3_bind_int64(update, 8, lane->counts.ready);
        sqlite3_bind_int64(update, 9, touched->stored);
        status = sqlite_run(batch, STATEMENT_LANE_UPDATE);
        if (status == STATUS_OK && touched->stored == 0)
            status = lane_row_end(batch, touched);
    }
    return status;
}

enum status sqlite_lanes_trim(struct sqlite_batch *batch, size_t max)
{
    static const enum statement steps[] = { STATEMENT_LANES_COUNT_GONE, STATEMENT_LANES_DELETE_GONE };
    const struct sqlite_progress *progress = &batch->store->progress;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && status == STATUS_OK; i++) {
        sqlite3_stmt *statement = batch->store->statements[steps[i]];
        sqlite3_bind_int64(statement, 1, progress->trimmed_last);
        sqlite3_bind_int64(statement, 2, (int64_t)max);
        sqlite3_bind_int64(statement, 3, progress->lane_last); /* whose number the next one follows: it stays */
        status = sqlite_run(batch, steps[i]);
    }
    return status;
}
