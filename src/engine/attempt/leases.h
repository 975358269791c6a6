/*
 * leases.h - pull workers: who waits for jobs, who has some, and what the gate learns from it.
 */
#ifndef ENGINE_ATTEMPT_LEASES_H
#define ENGINE_ATTEMPT_LEASES_H

#include "core/outage/gate.h"
#include "engine/questions.h"
#include "store/store.h"

struct dest;
struct engine;

enum { LEASES_LOOK_MAX = 64 }; /* at once */

/* Leases whose time is over, as far as is known here: whether the store has them still. */
struct leases_look {
    struct question question; /* first */
    instant at;    /* the next part of the walk over all of them, */
    size_t cursor; /* which goes on there */
    struct looked_lease {
        int64_t seq, token;
        bool held;     /* it has; */
        instant until; /* it was prolonged, perhaps */
    } leases[LEASES_LOOK_MAX];
    size_t count;
};

void leases_serve(struct engine *engine, struct dest *dest);
void leases_expire(struct engine *engine);
void leases_end(struct engine *engine);
instant leases_next(const struct engine *engine);
/* Jobs were claimed with a pass for them and for `missing` more. */
void leases_claimed(struct engine *engine, struct dest *dest, struct gate_pass pass, const struct job *jobs, size_t count,
                    size_t missing);
/* Whether a lease was taken to see how the destination is. */
bool lease_is_look(const struct engine *engine, const struct job *job);
/* Nobody ended a lease in its time, and the store knows that. */
void lease_lost(struct engine *engine, const struct job *job);
/* Looks for leases that have ended and nobody said so here: as one acknowledged at another node, unheard. */
void leases_look(struct engine *engine);
/* A running job, when its lane and destination are known: what a worker holds from before counts in its tenant's share. */
enum status lease_restore(struct engine *engine, const struct job *job) MUST_CHECK;
/* The destination is another's: what its workers hold is none of ours. */
void leases_forget(struct engine *engine, const struct dest *dest);
/* Answers, empty, everybody who waits for its jobs. */
void leases_end_of(struct engine *engine, struct dest *dest);
void leased_release(struct engine *engine);

#endif
