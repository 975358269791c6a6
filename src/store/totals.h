/*
 * totals.h - what the lanes of a destination count together, published by who writes.
 *
 * A store has lanes by the hundred thousand and destinations by the dozen. Its writer knows every counter, so it keeps
 * their sums here, and each destination's lanes in order of how many jobs they have: nobody walks the lanes to show them.
 * What is published is committed. Readers ask from threads of their own; a lock stands between, held for a few microseconds.
 */
#ifndef STORE_TOTALS_H
#define STORE_TOTALS_H

#include "base/heap.h"
#include "base/map.h"
#include "store/store.h"

#include <pthread.h>

struct total;

/* Part of a backend's own lane. `tenant` and `id` are set before it joins. */
struct totals_lane {
    struct heap_node by_jobs; /* in its destination's heap while it has jobs that are not done */
    struct total *total;
    struct slice tenant;
    int64_t id;
    bool listed;             /* it has been published */
    struct lane_counts committed; /* as committed */
};

struct totals {
    pthread_mutex_t mutex;
    struct map by_name; /* destination -> struct total */
};

enum status totals_init(struct totals *totals) MUST_CHECK;
/* Says what lanes that are gone have left in a destination's counts: what they ever completed and cancelled. */
enum status totals_begin(struct totals *totals, struct slice destination, const struct lane_counts *gone) MUST_CHECK;
/* The lanes are not released with it. */
void totals_release(struct totals *totals);
/*
 * Gives the lane its destination, and makes room: nothing that follows can fail. It is not listed before it is published.
 * What it has in `committed` is counted already, from when it was here before.
 */
enum status totals_join(struct totals *totals, struct slice destination, struct totals_lane *lane) MUST_CHECK;
/* The lane goes. What it has ever completed and cancelled stays in its destination's counts; it has no jobs. */
void totals_leave(struct totals *totals, struct totals_lane *lane);

/* They are called around all that one commit publishes. */
void totals_lock(struct totals *totals);
void totals_unlock(struct totals *totals);
void totals_tell(struct totals_lane *lane, const struct lane_counts *counts);

/* This is for store_ops.reader_totals. It may be STATUS_NO_MEMORY. */
enum status totals_read(struct totals *totals, size_t largest_max, struct arena *memory,
                        struct destination_total **ret_totals, size_t *ret_count) MUST_CHECK;

#endif
