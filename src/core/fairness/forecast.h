/*
 * forecast.h - when a job that waits will be tried, from what is allowed and from what was seen.
 *
 * Two answers of different weight. What the limits allow is certain: earlier than that it cannot go. What
 * the destination managed lately is an estimate, and only where something was seen.
 */
#ifndef CORE_FAIRNESS_FORECAST_H
#define CORE_FAIRNESS_FORECAST_H

#include "core/fairness/rate.h"

/* A limit on the way: `room` more may go at once, `before` go first. */
struct forecast_limit {
    struct rate rate; /* count 0: none */
    int64_t room;
    int64_t before;
};

/* How long the limit keeps a job waiting, at most one interval / count too much; 0 without a limit. */
int64_t forecast_limit_ms(const struct forecast_limit *limit);

/* Likewise where `room` more may go in this cycle, the next one begins after `next_ms`, and each takes `batch`. */
int64_t forecast_cycle_ms(int64_t before, int64_t room, int64_t batch, int64_t every_ms, int64_t next_ms);

/*
 * How long `before` jobs take, `at_once` at a time and `usual_ms` each, of which `free` begin at once; -1: not known,
 * because nothing was seen.
 */
int64_t forecast_work_ms(int64_t before, int64_t free, int64_t at_once, double usual_ms);

/*
 * How many jobs of others go before the job with `ahead` of its own tenant before it: each of its turns, of up to `share`
 * jobs, lets another tenant send as much as `other_share`, or all that it has.
 */
int64_t forecast_others(int64_t ahead, int64_t share, int64_t other_share, int64_t other_ready);

#endif
