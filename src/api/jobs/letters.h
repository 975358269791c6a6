/*
 * letters.h - which jobs a call means: its filter, from the query string or the body, and what it finds, counted.
 */
#ifndef API_JOBS_LETTERS_H
#define API_JOBS_LETTERS_H

#include "api/call/shared.h"
#include "base/map.h"
#include "engine/redrives/redrive_record.h"

#include <jansson.h>

/* Every function that returns false has answered the call. */

/* The filter of the query string, with `state` and `cursor`; of the tenant that the call may see. */
bool query_filter(struct call *call, struct job_walk *ret_walk);
/* The member `filter` of a body, of dead letters; an empty one only with "all": true. */
bool body_filter(struct call *call, struct job_walk *ret_walk);

/* What a filter finds. */
struct letter_counts {
    int64_t matched;
    instant oldest, newest; /* INSTANT_NONE: none */
    struct map by_code, by_tenant; /* -> int64_t, in the call's memory; what is not among the first is in the others */
    int64_t code_others, tenant_others;
};

void letter_counts_init(struct letter_counts *counts, uint64_t seed);
void letter_counts_release(struct letter_counts *counts);
void letter_counts_add(struct call *call, struct letter_counts *counts, const struct job *job);
/* Members of the object that is being written. */
void letter_counts_write(struct json_writer *json, struct letter_counts *counts);

#endif
