/*
 * lane.h - lanes and their counters, in memory and back.
 *
 * In memory are the lanes that have jobs. One whose last job is deleted is forgotten with the commit. Its row stays, since
 * events have their names from there, until the last of these is trimmed; whoever comes back before that finds it again.
 */
#ifndef STORE_SQLITE_LANE_H
#define STORE_SQLITE_LANE_H

#include "store/sqlite/handle.h"

/* A lane in memory. Counters change here first; those of touched lanes are written before the commit. */
struct sqlite_lane {
    struct totals_lane shown; /* its counters as committed */
    struct lane lane;         /* its names point behind this structure */
    int64_t stored;           /* jobs that have a row, whatever their state */
    int64_t stored_committed;
    bool touched;
    bool fresh;       /* the batch under way has made or found it */
    int64_t promoted; /* made ready by the OP_PROMOTE under way, */
    int64_t died;     /* and dead letters more */
    struct sqlite_lane *next_of_tenant; /* at another destination */
    size_t key_len;
    char key[];
};

void sqlite_lanes_init(struct sqlite_store *store);
enum status sqlite_lanes_load(struct sqlite_store *store, struct error *err) MUST_CHECK;
void sqlite_lanes_release(struct sqlite_store *store);
/* NULL when there is no such lane, or none that has jobs. */
struct sqlite_lane *sqlite_lane_by_id(const struct sqlite_store *store, int64_t id);
/* Finds or makes it. */
enum status sqlite_lane_get(struct sqlite_batch *batch, struct slice destination, struct slice tenant,
                            struct sqlite_lane **ret_lane) MUST_CHECK;
/* Pending and waiting jobs of the tenant, at all destinations. */
int64_t sqlite_tenant_waiting(const struct sqlite_store *store, struct slice tenant);
/* To be called before its counters change. */
enum status sqlite_lane_touch(struct sqlite_batch *batch, struct sqlite_lane *lane) MUST_CHECK;
/* Writes the counters of the touched lanes. */
enum status sqlite_lanes_write(struct sqlite_batch *batch) MUST_CHECK;
/* The counters stay as they are, or go back to what was committed. */
void sqlite_lanes_commit(struct sqlite_store *store);
void sqlite_lanes_rollback(struct sqlite_store *store);
/* Deletes the rows of lanes without jobs whose events are trimmed, at most `max`; what they have completed stays counted. */
enum status sqlite_lanes_trim(struct sqlite_batch *batch, size_t max) MUST_CHECK;

#endif
