#include "store/totals.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct total {
    struct lane_counts counts;
    int64_t tenants; /* lanes that are listed */
    size_t joined;   /* with those that are not published yet */
    struct heap largest;
    bool gone;       /* lanes that went have left counts here: it is shown although it has none */
    size_t name_len;
    char name[];
};

enum status totals_init(struct totals *totals)
{
    map_init(&totals->by_name, 0);
    return pthread_mutex_init(&totals->mutex, NULL) == 0 ? STATUS_OK : STATUS_NO_MEMORY;
}

void totals_release(struct totals *totals)
{
    size_t cursor = 0;
    for (struct map_entry *entry; (entry = map_next(&totals->by_name, &cursor));) {
        struct total *total = entry->value;
        heap_release(&total->largest);
        free(total);
    }
    map_release(&totals->by_name);
    pthread_mutex_destroy(&totals->mutex);
}

void totals_lock(struct totals *totals)
{
    pthread_mutex_lock(&totals->mutex);
}

void totals_unlock(struct totals *totals)
{
    pthread_mutex_unlock(&totals->mutex);
}

/* The lock is held. It is NULL where there is no memory. */
static struct total *total_get(struct totals *totals, struct slice destination)
{
    assert(destination.len > 0);
    struct total *total = map_get(&totals->by_name, destination);
    if (total)
        return total;
    total = calloc(1, sizeof *total + destination.len + 1);
    if (!total)
        return NULL;
    heap_init(&total->largest);
    memcpy(total->name, destination.data, destination.len);
    total->name_len = destination.len;
    if (map_put(&totals->by_name, (struct slice){ total->name, total->name_len }, total) != STATUS_OK) {
        free(total);
        return NULL;
    }
    return total;
}

enum status totals_begin(struct totals *totals, struct slice destination, const struct lane_counts *gone)
{
    assert(gone->pending + gone->running + gone->waiting + gone->dead == 0);
    totals_lock(totals);
    struct total *total = total_get(totals, destination);
    if (total) {
        lane_counts_add(&total->counts, gone);
        total->gone = true;
    }
    totals_unlock(totals);
    return total ? STATUS_OK : STATUS_NO_MEMORY;
}

enum status totals_join(struct totals *totals, struct slice destination, struct totals_lane *lane)
{
    assert(!lane->total && !lane->listed);
    totals_lock(totals);
    struct total *total = total_get(totals, destination);
    enum status status = total ? heap_reserve(&total->largest, total->joined + 1) : STATUS_NO_MEMORY;
    if (status == STATUS_OK) {
        total->joined++;
        lane->total = total;
    }
    totals_unlock(totals);
    return status;
}

static int64_t jobs_of(const struct lane_counts *counts)
{
    return counts->pending + counts->running + counts->waiting + counts->dead;
}

void totals_leave(struct totals *totals, struct totals_lane *lane)
{
    struct total *total = lane->total;
    if (!total)
        return;
    assert(jobs_of(&lane->committed) == 0 && lane->by_jobs.position == 0);
    totals_lock(totals);
    total->joined--;
    total->tenants -= lane->listed;
    total->gone = total->gone || lane->listed;
    lane->listed = false;
    lane->total = NULL;
    totals_unlock(totals);
}

void totals_tell(struct totals_lane *lane, const struct lane_counts *counts)
{
    struct total *total = lane->total;
    struct lane_counts *sum = &total->counts;
    const struct lane_counts *committed = &lane->committed;
    sum->pending += counts->pending - committed->pending;
    sum->running += counts->running - committed->running;
    sum->waiting += counts->waiting - committed->waiting;
    sum->completed += counts->completed - committed->completed;
    sum->dead += counts->dead - committed->dead;
    sum->cancelled += counts->cancelled - committed->cancelled;
    sum->ready += counts->ready - committed->ready;
    assert(sum->pending >= 0 && sum->running >= 0 && sum->waiting >= 0 && sum->dead >= 0 && sum->ready >= 0);
    lane->committed = *counts;
    total->tenants += !lane->listed;
    lane->listed = true;
    int64_t jobs = jobs_of(counts);
    if (jobs == 0) {
        heap_remove(&total->largest, &lane->by_jobs);
    } else if (lane->by_jobs.position > 0) {
        heap_move(&total->largest, &lane->by_jobs, -jobs, (uint64_t)lane->id);
    } else {
        enum status pushed = heap_push(&total->largest, &lane->by_jobs, -jobs, (uint64_t)lane->id);
        assert(pushed == STATUS_OK); /* the room was made when it joined */
        (void)pushed;
    }
}

/* ---- reading ---- */

/* Whether the one at `a` has more jobs than the one at `b`. */
static bool is_larger(const struct heap *heap, size_t a, size_t b)
{
    assert(a < heap->count && b < heap->count);
    const struct heap_node *x = heap->nodes[a], *y = heap->nodes[b];
    return x->key != y->key ? x->key < y->key : x->tie < y->tie;
}

/* The first `max` of a heap in order, without a change of it: each one's children come into question after it. */
static size_t heap_firsts(const struct heap *heap, size_t max, size_t *places, size_t *open)
{
    assert(max == 0 || (places && open));
    size_t count = 0, open_count = 0;
    if (heap->count > 0)
        open[open_count++] = 0;
    while (count < max && open_count > 0) {
        size_t best = 0;
        for (size_t i = 1; i < open_count; i++)
            if (is_larger(heap, open[i], open[best]))
                best = i;
        size_t place = places[count++] = open[best];
        open[best] = open[--open_count];
        for (size_t child = place * 2 + 1; child <= place * 2 + 2; child++)
            if (child < heap->count)
                open[open_count++] = child;
    }
    return count;
}

static enum status total_read(const struct total *total, size_t largest_max, struct arena *memory, size_t *places,
                              struct destination_total *ret_total)
{
    assert(total->tenants >= 0 && (size_t)total->tenants <= total->joined);
    size_t count = heap_firsts(&total->largest, largest_max, places, places + largest_max);
    struct lane *lanes = arena_alloc_array(memory, count, sizeof *lanes);
    *ret_total = (struct destination_total){
        .destination = arena_copy(memory, (struct slice){ total->name, total->name_len }),
        .counts = total->counts,
        .tenants = total->tenants,
        .largest = lanes,
        .largest_count = count,
    };
    if (!lanes || !ret_total->destination.data)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const struct totals_lane *lane = (const struct totals_lane *)(const void *)total->largest.nodes[places[i]];
        lanes[i] = (struct lane){ .id = lane->id, .destination = ret_total->destination,
                                  .tenant = arena_copy(memory, lane->tenant), .counts = lane->committed };
        if (!lanes[i].tenant.data)
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static_assert(offsetof(struct totals_lane, by_jobs) == 0, "a node of the heap is its lane");

static int by_name(const void *a, const void *b)
{
    return slice_compare(((const struct destination_total *)a)->destination,
                         ((const struct destination_total *)b)->destination);
}

enum status totals_read(struct totals *totals, size_t largest_max, struct arena *memory,
                        struct destination_total **ret_totals, size_t *ret_count)
{
    enum status status = STATUS_OK;
    size_t count = 0, cursor = 0;
    totals_lock(totals);
    struct destination_total *list = arena_alloc_array(memory, totals->by_name.count, sizeof *list);
    size_t *places = arena_alloc_array(memory, largest_max * 2 + 2, sizeof *places);
    if (!list || !places)
        status = STATUS_NO_MEMORY;
    for (struct map_entry *entry; status == STATUS_OK && (entry = map_next(&totals->by_name, &cursor));) {
        const struct total *total = entry->value;
        if (total->tenants > 0 || total->gone)
            status = total_read(total, largest_max, memory, places, &list[count++]);
    }
    totals_unlock(totals);
    if (status != STATUS_OK)
        return status;
    if (count > 1)
        qsort(list, count, sizeof *list, by_name);
    *ret_totals = list;
    *ret_count = count;
    return STATUS_OK;
}
