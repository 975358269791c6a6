/*
 * lane_table.h - the lanes of a store and their counters, in the memory of who writes.
 *
 * A batch changes the counters as it goes along; what it has touched is written with it, then told to the totals, or goes
 * back to what was committed last.
 */
#ifndef STORE_LANE_TABLE_H
#define STORE_LANE_TABLE_H

#include "base/buffer.h"
#include "base/map.h"
#include "store/change.h"
#include "store/totals.h"

struct lane_page;

struct store_lane {
    struct totals_lane shown;
    struct lane lane;
    struct store_lane *next_of_tenant; /* at another destination */
    bool touched;
    bool listed;                      /* its row says that it has jobs; the backend's own */
    int64_t stored, stored_committed; /* jobs, whatever their state: with the last one it leaves */
    int64_t promoted, died;           /* by the promotion under way */
    uint64_t mark;                    /* of the last who marked it; the backend's own */
    size_t claim_place;               /* of the first claim of it in the round under way; the backend's own */
    int64_t low_rank, low_seq;        /* nothing up to this place is ready, by low_mark; the backend's own */
    uint64_t low_mark;                /* since when that is so; the backend's own */
    int64_t shard;                    /* of its destination; the backend's own */
    instant next_at;                  /* the earliest time that the batch gave to a job of it; the backend's own */
    size_t key_len;
    char key[];
};

struct lane_table {
    struct map by_name, by_tenant; /* by_tenant: a tenant's first lane */
    struct lane_page **pages;      /* by number */
    size_t page_capacity;
    struct store_lane **touched;
    size_t touched_count, touched_capacity;
    struct store_lane **added; /* since the last commit */
    size_t added_count, added_capacity;
    struct buffer key;
    struct totals totals;
    int64_t tenant_count;     /* but for the daemon's own */
    int64_t waiting, running; /* jobs of all lanes; waiting: with the pending ones */
    struct slice own_tenant;
    /*
     * Others write too: counters are as they were when the lane was read, and what was done here since; they may be
     * anything. Lanes stay while there are not too many. There are no totals.
     */
    bool shared;
};

enum { LANES_KEPT_MAX = 200000 };

enum status lane_table_init(struct lane_table *lanes, uint64_t seed, struct slice own_tenant) MUST_CHECK;
void lane_table_release(struct lane_table *lanes);

/* NULL: there is none. */
struct store_lane *lane_table_find(struct lane_table *lanes, struct slice destination, struct slice tenant);
struct store_lane *lane_table_by_id(const struct lane_table *lanes, int64_t id);
/*
 * Adds one that is not there: a new one, or one that comes back with what it has completed and cancelled. A rollback takes
 * it away again, as does a commit in which it got no job. STATUS_NO_MEMORY.
 */
enum status lane_table_add(struct lane_table *lanes, const struct lane *lane, struct store_lane **ret_lane) MUST_CHECK;
/* Adds one that is there when the store is opened, with so many jobs. STATUS_CORRUPT: its counters cannot be. */
enum status lane_table_load(struct lane_table *lanes, const struct lane *lane, int64_t stored) MUST_CHECK;

/* It is written with the batch, whether or not something is counted. STATUS_NO_MEMORY. */
enum status lane_table_touch(struct lane_table *lanes, struct store_lane *lane) MUST_CHECK;
/* Counts a change: `before` NULL is a new job, `after` NULL a deleted one. STATUS_NO_MEMORY. */
enum status lane_table_count(struct lane_table *lanes, struct store_lane *lane, const struct job *before,
                             const struct job *after) MUST_CHECK;
/* Pending and waiting jobs of the tenant, at all destinations. */
int64_t lane_table_tenant_waiting(const struct lane_table *lanes, struct slice tenant);
/* Whether the queue is full for such a job, or its tenant's share of it is; ret_tenant_full tells which. */
bool lane_table_full(const struct lane_table *lanes, const struct store_settings *settings, struct op_insert *insert);
/* For OP_PROMOTE: the lanes in which time has done something, which are as many as were counted. STATUS_NO_MEMORY. */
enum status lane_table_promoted(struct lane_table *lanes, struct op_promote *promote, struct arena *memory) MUST_CHECK;

void lane_table_commit(struct lane_table *lanes);
/* Between batches, of a table that others write to: lanes are met anew. */
void lane_table_forget(struct lane_table *lanes);
void lane_table_rollback(struct lane_table *lanes);

#endif
