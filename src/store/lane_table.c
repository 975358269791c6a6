#include "store/lane_table.h"

#include "base/array.h"
#include "store/change.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_FIRST = 64, LANES_A_PAGE = 512 };

/* Numbers are never used again, so lanes that stay lie further and further apart: a page is there while it has one. */
struct lane_page {
    size_t count;
    struct store_lane *lanes[LANES_A_PAGE];
};

enum status lane_table_init(struct lane_table *lanes, uint64_t seed, struct slice own_tenant)
{
    *lanes = (struct lane_table){ .own_tenant = own_tenant };
    map_init(&lanes->by_name, seed);
    map_init(&lanes->by_tenant, seed);
    buffer_init(&lanes->key, SIZE_MAX / 4);
    return totals_init(&lanes->totals);
}

static void forget_all(struct lane_table *lanes)
{
    size_t cursor = 0;
    for (struct map_entry *entry; (entry = map_next(&lanes->by_name, &cursor));)
        free(entry->value);
    for (size_t i = 0; i < lanes->page_capacity; i++)
        free(lanes->pages[i]);
    free(lanes->pages);
    lanes->pages = NULL;
    lanes->page_capacity = 0;
    map_release(&lanes->by_name);
    map_release(&lanes->by_tenant);
    lanes->tenant_count = 0;
}

void lane_table_forget(struct lane_table *lanes)
{
    assert(lanes->shared && lanes->touched_count == 0 && lanes->added_count == 0);
    forget_all(lanes);
}

void lane_table_release(struct lane_table *lanes)
{
    forget_all(lanes);
    free(lanes->touched);
    free(lanes->added);
    totals_release(&lanes->totals);
    buffer_release(&lanes->key);
}

/* Both names, the first with its length, so that no two pairs give the same bytes. */
static struct slice lane_key(struct lane_table *lanes, struct slice destination, struct slice tenant)
{
    uint64_t len = destination.len;
    buffer_clear(&lanes->key);
    buffer_append(&lanes->key, (struct slice){ (const char *)&len, sizeof len });
    buffer_append(&lanes->key, destination);
    buffer_append(&lanes->key, tenant);
    return buffer_slice(&lanes->key);
}

struct store_lane *lane_table_find(struct lane_table *lanes, struct slice destination, struct slice tenant)
{
    struct slice key = lane_key(lanes, destination, tenant);
    return buffer_status(&lanes->key) == STATUS_OK ? map_get(&lanes->by_name, key) : NULL;
}

/* ---- by number ---- */

struct store_lane *lane_table_by_id(const struct lane_table *lanes, int64_t id)
{
    size_t place = (size_t)id / LANES_A_PAGE;
    if (id < 1 || place >= lanes->page_capacity || !lanes->pages[place])
        return NULL;
    return lanes->pages[place]->lanes[id % LANES_A_PAGE];
}

/* The page of a number, made if need be; NULL: no memory. An empty one is taken by the next. */
static struct lane_page *page_get(struct lane_table *lanes, int64_t id)
{
    assert(id > 0);
    size_t place = (size_t)id / LANES_A_PAGE;
    if (place >= lanes->page_capacity) {
        size_t capacity = place + place / 2 + CAPACITY_FIRST;
        struct lane_page **grown = realloc(lanes->pages, capacity * sizeof *grown);
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

static void page_leave(struct lane_table *lanes, const struct store_lane *lane)
{
    struct lane_page **page = &lanes->pages[(size_t)lane->lane.id / LANES_A_PAGE];
    assert(*page && (*page)->count > 0 && (*page)->lanes[lane->lane.id % LANES_A_PAGE] == lane);
    (*page)->lanes[lane->lane.id % LANES_A_PAGE] = NULL;
    if (--(*page)->count > 0)
        return;
    free(*page);
    *page = NULL;
}

static struct store_lane *lane_new(int64_t id, struct slice key, size_t destination_len)
{
    assert(id > 0 && key.len >= sizeof(uint64_t) + destination_len);
    struct store_lane *lane = calloc(1, sizeof *lane + key.len);
    if (!lane)
        return NULL;
    memcpy(lane->key, key.data, key.len);
    lane->key_len = key.len;
    lane->lane.id = lane->shown.id = id;
    lane->lane.destination = (struct slice){ lane->key + sizeof(uint64_t), destination_len };
    lane->lane.tenant = slice_from_offset((struct slice){ lane->key, key.len }, sizeof(uint64_t) + destination_len);
    lane->shown.tenant = lane->lane.tenant;
    lane->low_rank = lane->low_seq = INT64_MIN;
    lane->next_at = INSTANT_NONE;
    return lane;
}

/* Room for one more. */
static enum status list_grow(struct store_lane ***list, size_t count, size_t *capacity)
{
    assert(count <= *capacity);
    struct store_lane **grown = array_grow(*list, count, capacity, sizeof(struct store_lane *));
    if (!grown)
        return STATUS_NO_MEMORY;
    *list = grown;
    return STATUS_OK;
}

/* Among its tenant's: the first one stands for the tenant. */
static enum status tenant_link(struct lane_table *lanes, struct store_lane *lane)
{
    assert(!lane->next_of_tenant);
    struct store_lane *first = map_get(&lanes->by_tenant, lane->lane.tenant);
    if (!first) {
        if (map_put(&lanes->by_tenant, lane->lane.tenant, lane) != STATUS_OK)
            return STATUS_NO_MEMORY;
        lanes->tenant_count += !slice_equal(lane->lane.tenant, lanes->own_tenant);
        return STATUS_OK;
    }
    lane->next_of_tenant = first->next_of_tenant;
    first->next_of_tenant = lane;
    return STATUS_OK;
}

/* The tenant's entry is under the first one's name: another that becomes the first takes its place. */
static void tenant_unlink(struct lane_table *lanes, const struct store_lane *lane)
{
    struct slice tenant = lane->lane.tenant;
    struct store_lane *first = map_get(&lanes->by_tenant, tenant), *next = lane->next_of_tenant;
    assert(first);
    if (first == lane && next) {
        enum status status = map_put(&lanes->by_tenant, next->lane.tenant, next);
        assert(status == STATUS_OK); /* it replaces the other */
        (void)status;
    } else if (first == lane) {
        map_remove(&lanes->by_tenant, tenant);
        lanes->tenant_count -= !slice_equal(tenant, lanes->own_tenant);
    } else {
        while (first->next_of_tenant != lane)
            first = first->next_of_tenant;
        first->next_of_tenant = next;
    }
}

static void lane_drop(struct lane_table *lanes, struct store_lane *lane)
{
    assert(lane->stored == 0 || lanes->shared);
    tenant_unlink(lanes, lane);
    if (!lanes->shared)
        totals_leave(&lanes->totals, &lane->shown);
    page_leave(lanes, lane);
    map_remove(&lanes->by_name, (struct slice){ lane->key, lane->key_len });
    free(lane);
}

/* Into all indexes, or into none. */
static enum status lane_join(struct lane_table *lanes, struct store_lane *lane)
{
    assert(!lane->touched && !lane->next_of_tenant);
    struct slice key = { lane->key, lane->key_len };
    struct lane_page *page = page_get(lanes, lane->lane.id);
    if (!page || map_put(&lanes->by_name, key, lane) != STATUS_OK)
        return STATUS_NO_MEMORY;
    enum status status =
        lanes->shared ? STATUS_OK : totals_join(&lanes->totals, lane->lane.destination, &lane->shown);
    if (status == STATUS_OK)
        status = tenant_link(lanes, lane);
    if (status != STATUS_OK) {
        if (!lanes->shared)
            totals_leave(&lanes->totals, &lane->shown);
        map_remove(&lanes->by_name, key);
        return status;
    }
    page->lanes[lane->lane.id % LANES_A_PAGE] = lane;
    page->count++;
    return STATUS_OK;
}

enum status lane_table_add(struct lane_table *lanes, const struct lane *from, struct store_lane **ret_lane)
{
    assert(from->destination.len > 0 && !lane_table_by_id(lanes, from->id));
    struct slice key = lane_key(lanes, from->destination, from->tenant);
    assert(!map_get(&lanes->by_name, key));
    if (buffer_status(&lanes->key) != STATUS_OK ||
        list_grow(&lanes->added, lanes->added_count, &lanes->added_capacity) != STATUS_OK)
        return STATUS_NO_MEMORY;
    struct store_lane *lane = lane_new(from->id, key, from->destination.len);
    if (!lane)
        return STATUS_NO_MEMORY;
    lane->lane.counts = lane->shown.committed = from->counts;
    if (lanes->shared)
        lane->low_rank = lane->low_seq = INT64_MAX;
    enum status status = lane_join(lanes, lane);
    if (status != STATUS_OK) {
        free(lane);
        return status;
    }
    lanes->added[lanes->added_count++] = lane;
    *ret_lane = lane;
    return STATUS_OK;
}

enum status lane_table_load(struct lane_table *lanes, const struct lane *from, int64_t stored)
{
    assert(lanes->touched_count == 0);
    struct store_lane *lane;
    const struct lane empty = { .id = from->id, .destination = from->destination, .tenant = from->tenant };
    if (!lane_counts_possible(&from->counts) || stored < 1 || from->destination.len == 0 ||
        lane_table_find(lanes, from->destination, from->tenant))
        return STATUS_CORRUPT;
    enum status status = lane_table_add(lanes, &empty, &lane);
    if (status != STATUS_OK)
        return status;
    lanes->added_count = 0;
    lane->lane.counts = from->counts;
    lane->stored = lane->stored_committed = stored;
    lane->listed = true;
    totals_tell(&lane->shown, &lane->lane.counts); /* nobody reads yet */
    lanes->waiting += from->counts.pending + from->counts.waiting;
    lanes->running += from->counts.running;
    return STATUS_OK;
}

enum status lane_table_touch(struct lane_table *lanes, struct store_lane *lane)
{
    if (lane->touched)
        return STATUS_OK;
    if (list_grow(&lanes->touched, lanes->touched_count, &lanes->touched_capacity) != STATUS_OK)
        return STATUS_NO_MEMORY;
    lanes->touched[lanes->touched_count++] = lane;
    lane->touched = true;
    return STATUS_OK;
}

enum status lane_table_count(struct lane_table *lanes, struct store_lane *lane, const struct job *before,
                             const struct job *after)
{
    assert(before || after);
    /* Which its owner must hear of: also what is put back, since a promotion passes over what an order has. */
    bool moved = lanes->shared && before && after &&
                 (after->ready ? before->rank != after->rank : job_due(after) != INSTANT_NONE);
    if (before && after && before->state == after->state && before->ready == after->ready && !moved)
        return STATUS_OK;
    if (lane_table_touch(lanes, lane) != STATUS_OK)
        return STATUS_NO_MEMORY;
    struct lane_counts *counts = &lane->lane.counts;
    lane->stored += (before == NULL) - (after == NULL);
    assert(lane->stored >= 0 || lanes->shared);
    lanes->waiting -= counts->pending + counts->waiting;
    lanes->running -= counts->running;
    if (lanes->shared)
        lane_counts_shift(counts, before, after);
    else
        lane_counts_change(counts, before, after);
    lanes->waiting += counts->pending + counts->waiting;
    lanes->running += counts->running;
    return STATUS_OK;
}

int64_t lane_table_tenant_waiting(const struct lane_table *lanes, struct slice tenant)
{
    int64_t waiting = 0;
    for (const struct store_lane *lane = map_get(&lanes->by_tenant, tenant); lane; lane = lane->next_of_tenant)
        waiting += lane->lane.counts.pending + lane->lane.counts.waiting;
    return waiting;
}

bool lane_table_full(const struct lane_table *lanes, const struct store_settings *settings, struct op_insert *insert)
{
    assert(lanes->waiting >= 0 || lanes->shared);
    insert->ret_tenant_full = false;
    if (insert->beyond_limit)
        return false;
    if (settings->pending_max > 0 && lanes->waiting >= settings->pending_max)
        return true;
    int64_t share = pending_share(settings, lanes->tenant_count);
    insert->ret_tenant_full =
        share > 0 && lanes->waiting >= share && lane_table_tenant_waiting(lanes, insert->tenant) >= share;
    return insert->ret_tenant_full;
}

enum status lane_table_promoted(struct lane_table *lanes, struct op_promote *promote, struct arena *memory)
{
    assert(lanes->touched_count <= lanes->touched_capacity);
    promote->ret_ready_count = 0;
    promote->ret_ready = arena_alloc_array(memory, lanes->touched_count, sizeof *promote->ret_ready);
    if (!promote->ret_ready)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < lanes->touched_count; i++) {
        struct store_lane *lane = lanes->touched[i];
        if (lane->promoted == 0 && lane->died == 0)
            continue;
        struct lane_ready *ready = &promote->ret_ready[promote->ret_ready_count++];
        *ready = (struct lane_ready){ .lane = lane->lane.id,
                                      .count = lane->promoted,
                                      .dead = lane->died,
                                      .destination = arena_copy(memory, lane->lane.destination),
                                      .tenant = arena_copy(memory, lane->lane.tenant) };
        lane->promoted = lane->died = 0;
        if (!ready->destination.data || !ready->tenant.data)
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static void commit_shared(struct lane_table *lanes)
{
    assert(lanes->shared);
    for (size_t i = 0; i < lanes->touched_count; i++) {
        struct store_lane *lane = lanes->touched[i];
        lane->shown.committed = lane->lane.counts;
        lane->stored_committed = lane->stored;
        lane->listed = true;
        lane->touched = false;
    }
    lanes->touched_count = lanes->added_count = 0;
    if (lanes->by_name.count > LANES_KEPT_MAX)
        lane_table_forget(lanes);
}

void lane_table_commit(struct lane_table *lanes)
{
    if (lanes->shared) {
        commit_shared(lanes);
        return;
    }
    totals_lock(&lanes->totals);
    for (size_t i = 0; i < lanes->touched_count; i++) {
        struct store_lane *lane = lanes->touched[i];
        totals_tell(&lane->shown, &lane->lane.counts);
        lane->stored_committed = lane->stored;
        lane->listed = lane->stored > 0;
    }
    totals_unlock(&lanes->totals);
    for (size_t i = 0; i < lanes->added_count; i++)
        if (!lanes->added[i]->touched)
            lane_drop(lanes, lanes->added[i]); /* nothing came of it */
    for (size_t i = 0; i < lanes->touched_count; i++) {
        lanes->touched[i]->touched = false;
        if (lanes->touched[i]->stored == 0)
            lane_drop(lanes, lanes->touched[i]);
    }
    lanes->touched_count = lanes->added_count = 0;
}

void lane_table_rollback(struct lane_table *lanes)
{
    for (size_t i = 0; i < lanes->touched_count; i++) {
        struct store_lane *lane = lanes->touched[i];
        const struct lane_counts *committed = &lane->shown.committed;
        lanes->waiting += committed->pending + committed->waiting - lane->lane.counts.pending - lane->lane.counts.waiting;
        lanes->running += committed->running - lane->lane.counts.running;
        lane->lane.counts = *committed;
        lane->stored = lane->stored_committed;
        lane->touched = false;
        lane->promoted = lane->died = 0;
        lane->low_rank = lane->low_seq = INT64_MIN;
    }
    lanes->touched_count = 0;
    for (size_t i = lanes->added_count; i-- > 0;)
        lane_drop(lanes, lanes->added[i]);
    lanes->added_count = 0;
}
