/*
 * counts.h - the lanes' counts, summed up by destination.
 */
#ifndef API_CALL_COUNTS_H
#define API_CALL_COUNTS_H

#include "api/call/call.h"

struct destination_counts {
    struct slice name;
    struct lane_counts counts;
    size_t tenants;
};

struct counts {
    struct destination_counts *items; /* in order of name */
    size_t count;
    struct lane_counts total;
};

/*
 * Every destination that is configured or has jobs, of the tenant that the call may see. All is in the call's memory.
 * False: answered already.
 */
bool counts_read(struct call *call, struct counts *ret_counts);
/* NULL: there is none of that name. */
const struct destination_counts *counts_find(const struct counts *counts, struct slice name);

/*
 * A list of a destination that is misspelt would be empty, and look like an answer. False: it is neither configured nor
 * has jobs from when it was, and another that is has nearly that name; answered already, with that.
 */
bool destination_is_not_misspelt(struct call *call, struct slice name);

/* pending, running, waiting, dead, completed, cancelled. */
void counts_write(struct json_writer *json, const struct lane_counts *counts);

#endif
