/*
 * blocks.h - who is held because answers were refused.
 */
#ifndef ENGINE_QUEUES_BLOCKS_H
#define ENGINE_QUEUES_BLOCKS_H

#include "base/slice.h"
#include "core/outage/block.h"
#include "engine/questions.h"

struct answer;
struct dest;
struct engine;
struct job;
struct lane_state;

/* The search for jobs that are held because they were refused, and are to go again. */
struct block_release {
    bool on;
    int64_t lane;       /* 0: of all */
    int64_t before_seq; /* the next page; 0: the first */
    struct release_page {
        struct question question; /* first */
        struct dest *dest;
        int64_t before_seq;
        bool anew; /* another search has begun meanwhile */
        struct job *jobs; /* the answer, */
        size_t count;
        int64_t next_seq;
    } page;
};

/* Of a destination. */
struct dest_block {
    char *reason; /* why its gate is blocked; NULL: it is not, or nobody knows */
    int64_t lane; /* the only tenant's that there was then; 0: there were others */
    instant alone_until; /* jobs that are held alone are tried again before; INSTANT_NONE: there are none */
    char *alone_reason;  /* the last of them, and why */
    struct block_release release;
};

/* An answer refused us, or nothing could be sent: holds what core/outage/block.h says, and tells it once. */
void dest_refused(struct engine *engine, struct dest *dest, const struct job *job, const struct answer *answer, bool unsent);
void fallback_refused(struct engine *engine, struct dest *dest, const struct job *job, const struct answer *answer,
                      bool unsent);
/* An answer showed that the lane's tenant is let in; NULL: nobody knows whose it was. */
void dest_let_in(struct engine *engine, struct dest *dest, struct lane_state *lane);
/* Somebody is let in at the second address. */
void fallback_let_in(struct engine *engine, struct dest *dest);
/* By an operator: nothing is held any more for refused answers. Whether something was. */
bool blocks_resume(struct engine *engine, struct dest *dest);
/* The same of one lane, which is not held any more. */
void lane_block_resume(struct engine *engine, struct lane_state *lane);
/* Other credentials may be there: it is looked now. */
void blocks_hasten(struct engine *engine);
/* Sends jobs again that were held. */
void blocks_release(struct engine *engine);

#endif
