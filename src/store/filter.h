/*
 * filter.h - which jobs somebody means: what the stores do not look for themselves, and walking over all of them.
 */
#ifndef STORE_FILTER_H
#define STORE_FILTER_H

#include "store/store.h"

/* Whether a job that a store has found is meant by the rest of the filter, too. */
bool filter_means(const struct job_filter *filter, const struct job *job);
/* Whether that rest says anything. */
bool filter_has_rest(const struct job_filter *filter);

/* All jobs of a filter, and with `ids` only those of these ids, page by page, newest first within an id. */
struct job_walk {
    struct job_filter filter;
    const struct slice *ids;
    size_t id_count;
    size_t id; /* the one that is looked for now */
    bool over;
};

/* Reads the next page, which may be empty although more follow; walk->over tells. Moves nothing unless it is STATUS_OK. */
enum status walk_page(struct store_reader *reader, struct job_walk *walk, size_t max, bool with_payload,
                      struct arena *memory, struct job **ret_jobs, size_t *ret_count, struct error *err) MUST_CHECK;

#endif
