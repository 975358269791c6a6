/*
 * lane.h - rows of lanes and their counters, read into the table of lanes and written back.
 *
 * In memory are the lanes that have jobs. One whose last job is deleted is forgotten with the commit. Its row stays, since
 * events have their names from there, until the last of these is trimmed; whoever comes back before that finds it again.
 */
#ifndef STORE_SQLITE_LANE_H
#define STORE_SQLITE_LANE_H

#include "store/sqlite/handle.h"

enum status sqlite_lanes_load(struct sqlite_store *store, struct error *err) MUST_CHECK;
/* Finds or makes it. */
enum status sqlite_lane_get(struct sqlite_batch *batch, struct slice destination, struct slice tenant,
                            struct store_lane **ret_lane) MUST_CHECK;
/* Writes the counters of the touched lanes. */
enum status sqlite_lanes_write(struct sqlite_batch *batch) MUST_CHECK;
/* Deletes the rows of lanes without jobs whose events are trimmed, at most `max`; what they have completed stays counted. */
enum status sqlite_lanes_trim(struct sqlite_batch *batch, size_t max) MUST_CHECK;

#endif
