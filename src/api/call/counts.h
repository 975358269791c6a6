/*
 * counts.h - how many jobs each destination has, as the store's writer keeps it.
 */
#ifndef API_CALL_COUNTS_H
#define API_CALL_COUNTS_H

#include "api/call/call.h"

struct counts {
    struct destination_total *items; /* in order of name */
    size_t count;
    struct lane_counts total;
};

/*
 * Every destination that is configured or has or had jobs, each with up to `largest_max` of its tenants, of the tenant that
 * the call may see. No lane is walked: the cost does not grow with tenants. All is in the call's memory.
 */
enum status counts_list(struct call *call, struct store_reader *reader, size_t largest_max, struct counts *ret_counts,
                        struct error *err) MUST_CHECK;
/* NULL: there is none of that name. */
const struct destination_total *counts_find(const struct counts *counts, struct slice name);

/*
 * A list of a destination that is misspelt would be empty, and look like an answer. Goes on with `then`, unless
 * `destination` of the query is neither configured nor has jobs from when it was, and another that is has nearly that
 * name: that is answered.
 */
void destination_check(struct call *call, void (*then)(struct call *call));

/* Writes pending, running, waiting, dead, completed, cancelled. */
void counts_write(struct json_writer *json, const struct lane_counts *counts);

#endif
