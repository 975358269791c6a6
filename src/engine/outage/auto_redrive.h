/*
 * auto_redrive.h - dead letters that go back to work by themselves.
 */
#ifndef ENGINE_OUTAGE_AUTO_REDRIVE_H
#define ENGINE_OUTAGE_AUTO_REDRIVE_H

#include "core/fairness/rate.h"
#include "engine/questions.h"

struct dest;
struct engine;

/* Where the search for them stands at a destination. */
struct auto_redrive {
    struct rate_limiter rate;
    int64_t before_seq; /* the next page; 0: a new pass */
    instant look_at;
    instant next_due; /* of those that this pass has seen and left; INSTANT_NONE: none */
    size_t out;       /* on their way to the store */
    struct redrive_page {
        struct question question; /* first */
        struct dest *dest;
        int64_t before_seq;
        struct job *jobs; /* the answer, */
        size_t count;
        int64_t next_seq;
    } page;
};

void auto_redrive(struct engine *engine);
instant auto_redrive_next(const struct engine *engine, instant now);

#endif
