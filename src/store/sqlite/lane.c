#include "store/sqlite/lane.h"

#include "store/sqlite/statement.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_FIRST = 64 };

/* Both names, the first with its length, so that no two pairs give the same bytes. */
static struct slice lane_key(struct sqlite_store *store, struct slice destination, struct slice tenant)
{
    uint64_t len = destination.len;
    buffer_clear(&store->lane_key);
    buffer_append(&store->lane_key, (struct slice){ (const char *)&len, sizeof len });
    buffer_append(&store->lane_key, destination);
    buffer_append(&store->lane_key, tenant);
    return buffer_slice(&store->lane_key);
}

static struct sqlite_lane *lane_new(int64_t id, struct slice key, size_t destination_len)
{
    assert(id > 0 && key.len >= sizeof(uint64_t) + destination_len);
    struct sqlite_lane *lane = calloc(1, sizeof *lane + key.len);
    if (!lane)
        return NULL;
    memcpy(lane->key, key.data, key.len);
    lane->key_len = key.len;
    lane->lane.id = id;
    lane->lane.destination = (struct slice){ lane->key + sizeof(uint64_t), destination_len };
    lane->lane.tenant = slice_from_offset((struct slice){ lane->key, key.len }, sizeof(uint64_t) + destination_len);
    lane->shown.id = id;
    lane->shown.tenant = lane->lane.tenant;
    return lane;
}

/* Room for one more pointer in an array that doubles. */
static enum status array_grow(struct sqlite_lane ***array, size_t count, size_t *capacity)
{
    assert(count <= *capacity);
    if (count < *capacity)
        return STATUS_OK;
    size_t bigger = *capacity ? *capacity * 2 : CAPACITY_FIRST;
    struct sqlite_lane **grown = realloc(*array, bigger * sizeof(struct sqlite_lane *));
    if (!grown)
        return STATUS_NO_MEMORY;
    *array = grown;
    *capacity = bigger;
    return STATUS_OK;
}

/* Among its tenant's: the first one stands for the tenant. */
static enum status tenant_link(struct sqlite_store *store, struct sqlite_lane *lane)
{
    assert(!lane->next_of_tenant);
    struct sqlite_lane *first = map_get(&store->tenant_map, lane->lane.tenant);
    if (!first) {
        if (map_put(&store->tenant_map, lane->lane.tenant, lane) != STATUS_OK)
            return STATUS_NO_MEMORY;
        store->progress.tenant_count += !slice_equal(lane->lane.tenant, store->settings.own_tenant);
        return STATUS_OK;
    }
    lane->next_of_tenant = first->next_of_tenant;
    first->next_of_tenant = lane;
    return STATUS_OK;
}

/* The newest lane: the first of its tenant is the last of them to go. */
static void tenant_unlink(struct sqlite_store *store, const struct sqlite_lane *lane)
{
    struct sqlite_lane *first = map_get(&store->tenant_map, lane->lane.tenant);
    if (first == lane) {
        map_remove(&store->tenant_map, lane->lane.tenant);
        return;
    }
    while (first->next_of_tenant != lane)
        first = first->next_of_tenant;
    first->next_of_tenant = lane->next_of_tenant;
}

int64_t sqlite_tenant_waiting(const struct sqlite_store *store, struct slice tenant)
{
    int64_t waiting = 0;
    for (const struct sqlite_lane *lane = map_get(&store->tenant_map, tenant); lane; lane = lane->next_of_tenant)
        waiting += lane->lane.counts.pending + lane->lane.counts.waiting;
    return waiting;
}

/* Only in memory; its id is the next one. */
static enum status lane_add(struct sqlite_store *store, struct slice destination, struct slice tenant,
                            struct sqlite_lane **ret_lane)
{
    assert(destination.len > 0);
    struct slice key = lane_key(store, destination, tenant);
    if (buffer_status(&store->lane_key) != STATUS_OK)
        return STATUS_NO_MEMORY;
    if (array_grow(&store->lanes, store->progress.lane_count, &store->lanes_capacity) != STATUS_OK)
        return STATUS_NO_MEMORY;
    struct sqlite_lane *lane = lane_new((int64_t)store->progress.lane_count + 1, key, destination.len);
    if (!lane)
        return STATUS_NO_MEMORY;
    key = (struct slice){ lane->key, lane->key_len };
    enum status status = totals_join(&store->totals, lane->lane.destination, &lane->shown);
    if (status == STATUS_OK)
        status = map_put(&store->lane_map, key, lane);
    if (status == STATUS_OK)
        status = tenant_link(store, lane);
    if (status != STATUS_OK) {
        map_remove(&store->lane_map, key);
        totals_leave(&store->totals, &lane->shown);
        free(lane);
        return status;
    }
    store->lanes[store->progress.lane_count++] = lane;
    *ret_lane = lane;
    return STATUS_OK;
}

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
    assert(store->touched_count == 0);
    struct sqlite_lane *lane;
    if (sqlite3_column_int64(statement, 0) != (int64_t)store->progress.lane_count + 1)
        return error_set(err, STATUS_CORRUPT, "the lanes have a gap before %lld",
                         (long long)sqlite3_column_int64(statement, 0));
    if (lane_add(store, sqlite_column_slice(statement, 1), sqlite_column_slice(statement, 2), &lane) != STATUS_OK)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the lanes");
    lane->lane.counts = counts_read(statement, 3);
    if (!lane_counts_possible(&lane->lane.counts))
        return error_set(err, STATUS_CORRUPT, "lane %lld has impossible counters", (long long)lane->lane.id);
    totals_tell(&lane->shown, &lane->lane.counts); /* nobody reads yet */
    store->progress.waiting += lane->lane.counts.pending + lane->lane.counts.waiting;
    store->progress.running += lane->lane.counts.running;
    return STATUS_OK;
}

enum status sqlite_lanes_load(struct sqlite_store *store, struct error *err)
{
    assert(store->progress.lane_count == 0);
    sqlite3_stmt *statement = NULL;
    enum status status = STATUS_OK;
    int result =
        sqlite3_prepare_v2(store->db,
                           "SELECT id, destination, tenant, pending, running, waiting, completed, dead, cancelled, ready"
                           " FROM lane ORDER BY id",
                           -1, &statement, NULL);
    while (result == SQLITE_OK && status == STATUS_OK) {
        result = sqlite3_step(statement);
        if (result == SQLITE_ROW) {
            status = lane_load(store, statement, err);
            result = SQLITE_OK;
        }
    }
    if (status == STATUS_OK && result != SQLITE_DONE)
        status = sqlite_failure(store->db, result, "read the lanes", err);
    sqlite3_finalize(statement);
    return status;
}

void sqlite_lanes_release(struct sqlite_store *store)
{
    for (size_t i = 0; i < store->progress.lane_count; i++)
        free(store->lanes[i]);
    free(store->lanes);
    free(store->touched);
    totals_release(&store->totals);
    map_release(&store->lane_map);
    map_release(&store->tenant_map);
    buffer_release(&store->lane_key);
}

struct sqlite_lane *sqlite_lane_by_id(const struct sqlite_store *store, int64_t id)
{
    return id >= 1 && (uint64_t)id <= store->progress.lane_count ? store->lanes[id - 1] : NULL;
}

static enum status no_memory(struct sqlite_batch *batch)
{
    return error_set(batch->err, STATUS_NO_MEMORY, "no memory for another lane");
}

enum status sqlite_lane_get(struct sqlite_batch *batch, struct slice destination, struct slice tenant,
                            struct sqlite_lane **ret_lane)
{
    assert(destination.len > 0);
    struct sqlite_store *store = batch->store;
    struct slice key = lane_key(store, destination, tenant);
    if (buffer_status(&store->lane_key) != STATUS_OK)
        return no_memory(batch);
    struct sqlite_lane *lane = map_get(&store->lane_map, key);
    if (!lane) {
        sqlite3_stmt *insert = store->statements[STATEMENT_LANE_INSERT];
        if (lane_add(store, destination, tenant, &lane) != STATUS_OK)
            return no_memory(batch);
        sqlite3_bind_int64(insert, 1, lane->lane.id);
        sqlite_bind_slice(insert, 2, destination);
        sqlite_bind_slice(insert, 3, tenant);
        enum status status = sqlite_run(batch, STATEMENT_LANE_INSERT);
        if (status != STATUS_OK)
            return status; /* the rollback takes the lane out again */
    }
    *ret_lane = lane;
    return STATUS_OK;
}

enum status sqlite_lane_touch(struct sqlite_batch *batch, struct sqlite_lane *lane)
{
    struct sqlite_store *store = batch->store;
    if (lane->touched)
        return STATUS_OK;
    if (array_grow(&store->touched, store->touched_count, &store->touched_capacity) != STATUS_OK)
        return no_memory(batch);
    store->touched[store->touched_count++] = lane;
    lane->touched = true;
    return STATUS_OK;
}

enum status sqlite_lanes_write(struct sqlite_batch *batch)
{
    assert(!sqlite3_get_autocommit(batch->store->db));
    struct sqlite_store *store = batch->store;
    sqlite3_stmt *update = store->statements[STATEMENT_LANE_UPDATE];
    enum status status = STATUS_OK;
    for (size_t i = 0; i < store->touched_count && status == STATUS_OK; i++) {
        const struct lane *lane = &store->touched[i]->lane;
        sqlite3_bind_int64(update, 1, lane->id);
        sqlite3_bind_int64(update, 2, lane->counts.pending);
        sqlite3_bind_int64(update, 3, lane->counts.running);
        sqlite3_bind_int64(update, 4, lane->counts.waiting);
        sqlite3_bind_int64(update, 5, lane->counts.completed);
        sqlite3_bind_int64(update, 6, lane->counts.dead);
        sqlite3_bind_int64(update, 7, lane->counts.cancelled);
        sqlite3_bind_int64(update, 8, lane->counts.ready);
        status = sqlite_run(batch, STATEMENT_LANE_UPDATE);
    }
    return status;
}

void sqlite_lanes_commit(struct sqlite_store *store)
{
    assert(store->progress.lane_count >= store->saved.lane_count);
    totals_lock(&store->totals);
    for (size_t i = 0; i < store->touched_count; i++) {
        store->touched[i]->touched = false;
        totals_tell(&store->touched[i]->shown, &store->touched[i]->lane.counts);
    }
    totals_unlock(&store->totals);
    store->touched_count = 0;
}

void sqlite_lanes_rollback(struct sqlite_store *store)
{
    for (size_t i = 0; i < store->touched_count; i++) {
        struct sqlite_lane *lane = store->touched[i];
        lane->lane.counts = lane->shown.committed;
        lane->touched = false;
        lane->promoted = lane->died = 0;
    }
    store->touched_count = 0;
    for (size_t i = store->progress.lane_count; i-- > store->saved.lane_count;) {
        struct sqlite_lane *lane = store->lanes[i];
        tenant_unlink(store, lane);
        totals_leave(&store->totals, &lane->shown);
        void *removed = map_remove(&store->lane_map, (struct slice){ lane->key, lane->key_len });
        assert(removed == lane);
        free(lane);
    }
    store->progress.lane_count = store->saved.lane_count;
}
