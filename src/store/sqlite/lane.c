#include "store/sqlite/lane.h"

#include "store/sqlite/statement.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    CAPACITY_FIRST = 64,
    LANES_A_PAGE = 512,
    NAMES_BYTES_MAX = 64 * 1024, /* of one lane: destination and tenant */
};

/* Numbers are never used again, so lanes that stay lie further and further apart: a page is there while it has one. */
struct sqlite_lane_page {
    size_t count;
    struct sqlite_lane *lanes[LANES_A_PAGE];
};

void sqlite_lanes_init(struct sqlite_store *store)
{
    map_init(&store->lanes.by_name, 0);
    map_init(&store->lanes.tenants, 0);
    buffer_init(&store->lanes.key, NAMES_BYTES_MAX + sizeof(uint64_t));
}

/* Both names, the first with its length, so that no two pairs give the same bytes. */
static struct slice lane_key(struct sqlite_store *store, struct slice destination, struct slice tenant)
{
    uint64_t len = destination.len;
    struct buffer *key = &store->lanes.key;
    buffer_clear(key);
    buffer_append(key, (struct slice){ (const char *)&len, sizeof len });
    buffer_append(key, destination);
    buffer_append(key, tenant);
    return buffer_slice(key);
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

/* ---- by number ---- */

/* The page of a number, made if need be; NULL: no memory. */
static struct sqlite_lane_page *page_get(struct sqlite_lanes *lanes, int64_t id)
{
    size_t place = (size_t)id / LANES_A_PAGE;
    if (place >= lanes->page_capacity) {
        size_t capacity = place + place / 2 + CAPACITY_FIRST;
        struct sqlite_lane_page **grown = realloc(lanes->pages, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        memset(grown + lanes->page_capacity, 0, (capacity - lanes->page_capacity) * sizeof *grown);
        lanes->pages = grown;
        lanes->page_capacity = capacity;
    }
    if (!lanes->pages[place])
        lanes->pages[place] = calloc(1, sizeof *lanes->pages[place]);
    return lanes->pages[place];
}

static void page_leave(struct sqlite_lanes *lanes, int64_t id)
{
    struct sqlite_lane_page *page = lanes->pages[(size_t)id / LANES_A_PAGE];
    assert(page && page->count > 0);
    page->lanes[id % LANES_A_PAGE] = NULL;
    if (--page->count > 0)
        return;
    free(page);
    lanes->pages[(size_t)id / LANES_A_PAGE] = NULL;
}

struct sqlite_lane *sqlite_lane_by_id(const struct sqlite_store *store, int64_t id)
{
    size_t place = (size_t)id / LANES_A_PAGE;
    if (id < 1 || place >= store->lanes.page_capacity || !store->lanes.pages[place])
        return NULL;
    return store->lanes.pages[place]->lanes[id % LANES_A_PAGE];
}

/* ---- by tenant ---- */

/* Among its tenant's: the first one stands for the tenant. */
static enum status tenant_link(struct sqlite_store *store, struct sqlite_lane *lane)
{
    assert(!lane->next_of_tenant);
    struct sqlite_lane *first = map_get(&store->lanes.tenants, lane->lane.tenant);
    if (!first) {
        if (map_put(&store->lanes.tenants, lane->lane.tenant, lane) != STATUS_OK)
            return STATUS_NO_MEMORY;
        store->lanes.tenant_count += !slice_equal(lane->lane.tenant, store->settings.own_tenant);
        return STATUS_OK;
    }
    lane->next_of_tenant = first->next_of_tenant;
    first->next_of_tenant = lane;
    return STATUS_OK;
}

/* The tenant's entry is under the first one's name: another that becomes the first takes its place. */
static void tenant_unlink(struct sqlite_store *store, const struct sqlite_lane *lane)
{
    struct slice tenant = lane->lane.tenant;
    struct sqlite_lane *first = map_get(&store->lanes.tenants, tenant), *next = lane->next_of_tenant;
    if (first == lane && next) {
        enum status status = map_put(&store->lanes.tenants, next->lane.tenant, next);
        assert(status == STATUS_OK); /* it replaces the other */
        (void)status;
    } else if (first == lane) {
        map_remove(&store->lanes.tenants, tenant);
        store->lanes.tenant_count -= !slice_equal(tenant, store->settings.own_tenant);
    } else {
        while (first->next_of_tenant != lane)
            first = first->next_of_tenant;
        first->next_of_tenant = next;
    }
}

int64_t sqlite_tenant_waiting(const struct sqlite_store *store, struct slice tenant)
{
    int64_t waiting = 0;
    for (const struct sqlite_lane *lane = map_get(&store->lanes.tenants, tenant); lane; lane = lane->next_of_tenant)
        waiting += lane->lane.counts.pending + lane->lane.counts.waiting;
    return waiting;
}

/* ---- in memory ---- */

/* With what it has ever completed and cancelled, which its destination's counts have already. */
static enum status lane_add(struct sqlite_store *store, int64_t id, struct slice destination, struct slice tenant,
                            const struct lane_counts *counts, struct sqlite_lane **ret_lane)
{
    assert(destination.len > 0 && !sqlite_lane_by_id(store, id));
    struct slice key = lane_key(store, destination, tenant);
    if (buffer_status(&store->lanes.key) != STATUS_OK)
        return STATUS_NO_MEMORY;
    struct sqlite_lane *lane = lane_new(id, key, destination.len);
    if (!lane)
        return STATUS_NO_MEMORY;
    key = (struct slice){ lane->key, lane->key_len };
    lane->lane.counts = lane->shown.committed = *counts;
    struct sqlite_lane_page *page = NULL;
    enum status status = totals_join(&store->totals, lane->lane.destination, &lane->shown);
    if (status == STATUS_OK)
        page = page_get(&store->lanes, id);
    if (status == STATUS_OK)
        status = page ? map_put(&store->lanes.by_name, key, lane) : STATUS_NO_MEMORY;
    if (status == STATUS_OK)
        status = tenant_link(store, lane);
    if (status != STATUS_OK) { /* an empty page is taken by the next */
        map_remove(&store->lanes.by_name, key);
        totals_leave(&store->totals, &lane->shown);
        free(lane);
        return status;
    }
    page->lanes[id % LANES_A_PAGE] = lane;
    page->count++;
    *ret_lane = lane;
    return STATUS_OK;
}

static void lane_remove(struct sqlite_store *store, struct sqlite_lane *lane)
{
    assert(lane->lane.counts.pending + lane->lane.counts.running + lane->lane.counts.waiting + lane->lane.counts.dead == 0);
    tenant_unlink(store, lane);
    totals_leave(&store->totals, &lane->shown);
    page_leave(&store->lanes, lane->lane.id);
    void *removed = map_remove(&store->lanes.by_name, (struct slice){ lane->key, lane->key_len });
    assert(removed == lane);
    free(lane);
}

void sqlite_lanes_release(struct sqlite_store *store)
{
    struct sqlite_lanes *lanes = &store->lanes;
    size_t cursor = 0;
    for (struct map_entry *entry; (entry = map_next(&lanes->by_name, &cursor));)
        free(entry->value);
    for (size_t i = 0; i < lanes->page_capacity; i++)
        free(lanes->pages[i]);
    free(lanes->pages);
    free(lanes->touched);
    totals_release(&store->totals);
    map_release(&lanes->by_name);
    map_release(&lanes->tenants);
    buffer_release(&lanes->key);
}

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
    static const struct lane_counts none = { 0 };
    struct sqlite_lane *lane;
    int64_t id = sqlite3_column_int64(statement, 0);
    if (id < 1)
        return error_set(err, STATUS_CORRUPT, "a lane has the number %lld", (long long)id);
    if (lane_add(store, id, sqlite_column_slice(statement, 1), sqlite_column_slice(statement, 2), &none, &lane) != STATUS_OK)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the lanes");
    lane->lane.counts = counts_read(statement, 3);
    lane->stored = lane->stored_committed = sqlite3_column_int64(statement, 10);
    if (!lane_counts_possible(&lane->lane.counts) || lane->stored < 1)
        return error_set(err, STATUS_CORRUPT, "lane %lld has impossible counters", (long long)lane->lane.id);
    totals_tell(&lane->shown, &lane->lane.counts); /* nobody reads yet */
    store->progress.waiting += lane->lane.counts.pending + lane->lane.counts.waiting;
    store->progress.running += lane->lane.counts.running;
    return STATUS_OK;
}

/* What lanes that are forgotten have left in their destination's counts. */
static enum status gone_load(struct sqlite_store *store, sqlite3_stmt *statement, struct error *err)
{
    struct lane_counts counts = { .completed = sqlite3_column_int64(statement, 1),
                                  .cancelled = sqlite3_column_int64(statement, 2) };
    return totals_begin(&store->totals, sqlite_column_slice(statement, 0), &counts) == STATUS_OK
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

static enum status no_memory(struct sqlite_batch *batch)
{
    return error_set(batch->err, STATUS_NO_MEMORY, "no memory for another lane");
}

/* One that was forgotten, but whose row is there still; *ret_id 0: there is none. */
static enum status lane_find(struct sqlite_batch *batch, struct slice destination, struct slice tenant, int64_t *ret_id,
                             struct lane_counts *ret_counts)
{
    sqlite3_stmt *find = batch->store->statements[STATEMENT_LANE_FIND];
    bool found = false;
    *ret_id = 0;
    *ret_counts = (struct lane_counts){ 0 };
    sqlite_bind_slice(find, 1, destination);
    sqlite_bind_slice(find, 2, tenant);
    enum status status = sqlite_next(batch, STATEMENT_LANE_FIND, &found);
    if (status == STATUS_OK && found) {
        *ret_id = sqlite3_column_int64(find, 0);
        ret_counts->completed = sqlite3_column_int64(find, 1);
        ret_counts->cancelled = sqlite3_column_int64(find, 2);
    }
    sqlite3_reset(find);
    return status;
}

static enum status lane_row_begin(struct sqlite_batch *batch, const struct sqlite_lane *lane, bool known)
{
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
                             struct sqlite_lane **ret_lane)
{
    struct sqlite_store *store = batch->store;
    struct lane_counts counts;
    int64_t id;
    enum status status = lane_find(batch, destination, tenant, &id, &counts);
    if (status != STATUS_OK)
        return status;
    bool known = id > 0;
    if (sqlite_lane_by_id(store, id))
        return error_set(batch->err, STATUS_CORRUPT, "lane %lld has two names", (long long)id);
    if (lane_add(store, known ? id : store->progress.lane_last + 1, destination, tenant, &counts, ret_lane) != STATUS_OK)
        return no_memory(batch);
    if (sqlite_lane_touch(batch, *ret_lane) != STATUS_OK) { /* else the rollback takes the lane out again */
        lane_remove(store, *ret_lane);
        return no_memory(batch);
    }
    (*ret_lane)->fresh = true;
    if (!known)
        store->progress.lane_last++;
    return lane_row_begin(batch, *ret_lane, known);
}

enum status sqlite_lane_get(struct sqlite_batch *batch, struct slice destination, struct slice tenant,
                            struct sqlite_lane **ret_lane)
{
    assert(destination.len > 0);
    struct sqlite_store *store = batch->store;
    struct slice key = lane_key(store, destination, tenant);
    if (buffer_status(&store->lanes.key) != STATUS_OK)
        return no_memory(batch);
    *ret_lane = map_get(&store->lanes.by_name, key);
    return *ret_lane ? STATUS_OK : lane_come(batch, destination, tenant, ret_lane);
}

enum status sqlite_lane_touch(struct sqlite_batch *batch, struct sqlite_lane *lane)
{
    struct sqlite_lanes *lanes = &batch->store->lanes;
    if (lane->touched)
        return STATUS_OK;
    if (lanes->touched_count == lanes->touched_capacity) {
        size_t capacity = lanes->touched_capacity ? lanes->touched_capacity * 2 : CAPACITY_FIRST;
        struct sqlite_lane **grown = realloc(lanes->touched, capacity * sizeof *grown);
        if (!grown)
            return no_memory(batch);
        lanes->touched = grown;
        lanes->touched_capacity = capacity;
    }
    lanes->touched[lanes->touched_count++] = lane;
    lane->touched = true;
    return STATUS_OK;
}

/* A lane without jobs gets no events either: none of its own is newer than the newest of all is now. */
static enum status lane_row_end(struct sqlite_batch *batch, const struct sqlite_lane *lane)
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
        const struct sqlite_lane *touched = store->lanes.touched[i];
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

void sqlite_lanes_commit(struct sqlite_store *store)
{
    struct sqlite_lanes *lanes = &store->lanes;
    assert(store->progress.lane_last >= store->saved.lane_last);
    totals_lock(&store->totals);
    for (size_t i = 0; i < lanes->touched_count; i++) {
        struct sqlite_lane *lane = lanes->touched[i];
        lane->touched = lane->fresh = false;
        lane->stored_committed = lane->stored;
        totals_tell(&lane->shown, &lane->lane.counts);
    }
    totals_unlock(&store->totals);
    for (size_t i = 0; i < lanes->touched_count; i++)
        if (lanes->touched[i]->stored == 0)
            lane_remove(store, lanes->touched[i]);
    lanes->touched_count = 0;
}

void sqlite_lanes_rollback(struct sqlite_store *store)
{
    struct sqlite_lanes *lanes = &store->lanes;
    for (size_t i = 0; i < lanes->touched_count; i++) {
        struct sqlite_lane *lane = lanes->touched[i];
        lane->lane.counts = lane->shown.committed;
        lane->stored = lane->stored_committed;
        lane->touched = false;
        lane->promoted = lane->died = 0;
        if (lane->fresh)
            lane_remove(store, lane);
    }
    lanes->touched_count = 0;
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
