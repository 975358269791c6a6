/*
 * rates.h - limits of rate, saved over a restart.
 */
#ifndef ENGINE_QUEUES_RATES_H
#define ENGINE_QUEUES_RATES_H

#include "core/fairness/rate.h"
#include "store/store.h"

struct batch;
struct dest;
struct engine;
struct lane_state;

/* A limiter of a destination, or of a tenant at one. */
struct saved_rate {
    struct rate_limiter limiter;
    instant saved; /* what the store has of it; INSTANT_NONE: nothing */
};

enum { RATE_NOTES_MAX = 2 }; /* with one claim */
/* Whether its destination wants nothing of it now. */
bool lane_asked(const struct lane_state *lane, instant now);
/* Writes down what the lane's destination asked of it, if that has changed by a second. */
void asked_keep(struct engine *engine, struct lane_state *lane);
/* A claim was just added to the batch being filled, which has room for RATE_NOTES_MAX more. */
void rates_claimed(struct engine *engine, struct lane_state *lane, instant now);
/* The same for a batch of a pull worker's. */
void rates_leased(struct batch *batch, struct lane_state *lane, instant now);
/* For one job whose claim was paid for long ago: false, and nothing is paid, when no more may go now. */
bool rates_pay(struct engine *engine, struct lane_state *lane, instant now);
/* All of the destination's that a crash would forget, before another has it. False: not all of it, again after the batch. */
bool rates_save(struct engine *engine, struct dest *dest);

/* Of what a note is, by its name. */
struct rate_note {
    struct slice destination; /* .data NULL: of a lane, or of nothing that is known */
    int64_t lane;             /* 0: of none */
    bool asked;               /* how long the lane was asked to wait */
};
struct rate_note rate_note_parse(struct slice name);
/*
 * What the store has of a limiter. Of a lane without jobs, which is not known here, it waits until the lane comes back: to
 * have nothing to send for a moment is no way round a limit.
 */
void rate_restore(struct engine *engine, const struct saved *saved);
/* A lane has become known. */
void rates_place(struct engine *engine, struct lane_state *lane);

#endif
