/*
 * settlement.h - from what an attempt saw to the operation that records it.
 *
 * Pure: the engine, the pull workers' API and the recovery after a crash all settle through
 * here, so that a job's life is written by one piece of code.
 */
#ifndef ENGINE_SETTLEMENT_H
#define ENGINE_SETTLEMENT_H

#include "core/decision/decide.h"
#include "core/outage/outage.h"
#include "transport/transport.h"

struct settlement_input {
    const struct destination_config *destination;
    const struct job *job; /* as it was claimed */
    const struct answer *answer;
    uint64_t seed;
    instant now;
    int64_t retention_ms; /* of a completed job; 0: for ever */
    const struct outage *outage; /* that the send was to look at: what a failure costs is said there; NULL: none */
    int64_t held_ms;      /* of the time since the job's first attempt that was an outage's: it is no delay of the job's */
    bool spared;          /* a failure that may pass is not the job's: it is held, and no try is spent */
    bool served;          /* others were, since the job was last asked to wait: then that is about the job */
    double backoff_factor; /* of the waits, before the policy's bounds; 0: they do not adapt */
};

struct settlement {
    struct decision decision; /* of an unsuccessful send; else only verdict and outcome are set */
    bool may_pass;            /* the last try failed, but with an error that may pass */
    bool spared;              /* it failed and no try was spent, because of the outage */
    bool blocks;              /* we were refused, or nothing could be sent: see core/outage/block.h */
    bool unsent;              /* of that: nothing could be sent */
    bool over;                /* the destination let us in */
    bool dead;
    const char *dead_code; /* of that: MAX_RETRIES_EXCEEDED, PERMANENT_ERROR...; else NULL */
};

/*
 * Fills `op` (its texts, its event data and the decision's rule are put into `memory`). STATUS_NO_MEMORY only.
 * An empty error text never gets here: transports must give one; should one not, UNKNOWN_ERROR is written.
 */
enum status settlement_make(const struct settlement_input *input, struct arena *memory, struct store_op *op,
                            struct settlement *ret_settlement) MUST_CHECK;

#endif
