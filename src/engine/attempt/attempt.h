/*
 * attempt.h - the way of one attempt: claimed, sent, answered, settled.
 */
#ifndef ENGINE_ATTEMPT_ATTEMPT_H
#define ENGINE_ATTEMPT_ATTEMPT_H

#include "engine/queues/lane.h"
#include "engine/outgoing.h"
#include "engine/settlement.h"
#include "core/outage/gate.h"
#include "transport/transport.h"

struct config;
struct dest;
struct engine;

/* What was asked for with a claim. */
struct claim {
    struct lane_state *lane;
    struct gate *gate;     /* the destination's own or the fallback's; NULL: ahead of a free slot */
    struct gate_pass pass; /* what that gave for all of the claim */
    bool by_turn;          /* by turns over all classes */
    bool lane_looks;       /* the lane is held, and its job is to see whether it must be */
};

/* One claimed job on its way: claim, send, settle. */
struct attempt {
    struct send send; /* first */
    struct engine *engine;
    struct dest *dest;
    struct config *config; /* the one it began with */
    struct batch_memory *claimed; /* what its texts lie in */
    struct job job;
    struct gate *gate; /* the one that it went through; NULL: not yet through any */
    struct gate_pass pass;
    struct lane_state *lane; /* whose share it counts in until it is answered, */
    enum shares_side side;   /* and of what */
    bool by_turn;            /* its slot goes by turns over all classes */
    bool dying;              /* its end is a dead letter */
    struct store_op settle; /* kept until it is durable */
    struct arena memory;    /* of the settlement's texts */
    int stop_tries;
    bool sending;
    struct attempt *next, **link; /* in engine->attempts.first */
    struct attempt *next_settle;  /* in engine->attempts.unsettled */
    struct attempt *next_ahead;   /* in its lane's ahead_first */
    instant ahead_until;          /* likewise: then it is given back */
    bool ends_turn;               /* likewise: the next lane's turn comes after it */
};

/* Those of the engine. */
struct attempts {
    struct attempt *first;
    struct attempt *unsettled;      /* answered, to be recorded in the order in which they were */
    struct attempt *unsettled_last; /* of these, if there are any */
};

void dispatch_claims(struct engine *engine);
/* What a settlement means for the whole destination, or for the tenant: counts, holds, pauses. */
void dest_settled(struct engine *engine, struct dest *dest, const struct job *job, const struct answer *answer,
                  const struct settlement *settlement);
/* What became of an attempt, in a line: who, from which state to which, why, and when again. */
void log_outcome(const struct dest *dest, const struct job *job, const struct op_settle *settle,
                 const struct settlement *settlement);
void settle_answered(struct engine *engine);
/* What keeps a claimed job of the lane from being sent at all, or NULL; not that the lane is held. */
const char *why_unsendable(const struct engine *engine, const struct lane_state *lane);
void attempt_send(struct attempt *attempt);
/* Gives a claimed job back untouched. */
void attempt_release(struct attempt *attempt, const char *why);
/* A job that a worker's claim has leased and nobody may have ends as a dead letter. False: no memory; its lease runs out. */
bool lease_damaged(struct engine *engine, struct lane_state *lane, const struct job *job);
/*
 * Whether a job that was claimed through a gate may go by what counts now. False: it has no gate any more, and is to be
 * given back.
 */
bool attempt_may_go(struct attempt *attempt);

#endif
