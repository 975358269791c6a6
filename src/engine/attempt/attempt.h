/*
 * attempt.h - the way of one attempt: claimed, sent, answered, settled.
 */
#ifndef ENGINE_ATTEMPT_ATTEMPT_H
#define ENGINE_ATTEMPT_ATTEMPT_H

#include "core/outage/gate.h"
#include "engine/outgoing.h"
#include "engine/queues/lane.h"
#include "engine/settlement.h"
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
    instant at;            /* when it was decided, */
    int64_t put_back;      /* and how often the clock had been put back by then */
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
    struct store_op settle; /* held until it is durable */
    struct arena memory;    /* of the settlement's texts */
    int stop_tries;
    bool sending;
    struct attempt *next, **link; /* in engine->attempts.first */
    struct attempt *next_settle;  /* in engine->attempts.unsettled */
    struct attempt *next_ahead;   /* in its lane's ahead.first */
    instant ahead_until;          /* likewise: then it is given back */
    bool ends_turn;               /* likewise: the next lane's turn comes after it */
};

/* Those of the engine. */
struct attempts {
    struct attempt *first;
    struct attempt *unsettled;      /* answered, to be recorded in the order in which they were */
    struct attempt *unsettled_last; /* of these, if there are any */
};

/* claim.c: asks the store for as many as may go now, and sends what was claimed ahead. */
void dispatch_claims(struct engine *engine);

/* Whose slots an attempt takes that goes through that gate; NULL: it is claimed ahead of one. */
enum shares_side attempt_side(const struct dest *dest, const struct gate *gate);
/* One of the jobs of a claim; NULL: no memory. */
struct attempt *attempt_new(struct engine *engine, const struct claim *claim, const struct job *job);
/* Sends it, lets it wait for a free slot, or gives it back: what was allowed when it was claimed may not be now. */
void attempt_begin(struct attempt *attempt, const struct claim *claim, instant now);
/* What a settlement means for the whole destination, or for the tenant: counts, holds, pauses. */
void dest_settled(struct engine *engine, struct dest *dest, struct lane_state *lane, const struct job *job,
                  const struct answer *answer, const struct settlement *settlement);
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

#endif
