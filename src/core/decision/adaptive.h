/*
 * adaptive.h - longer waits while retries fail, shorter ones while they succeed.
 *
 * Counts, for one destination, the retries that succeeded and those that failed. Both counts lose
 * half of themselves each ADAPTIVE_HALF_LIFE_MS, so that the recent ones weigh most. With
 *     rate = (good + p / 2) / (good + bad + p), p = ADAPTIVE_PRIOR
 * the factor of the waits is
 *     2 - 2 x rate     where at least half failed: 2 when none succeeds
 *     1.5 - rate       where more than half succeeded: down to 0.5 when all do
 * The p imagined retries, half of them good, keep few results from moving it far; with none it is 1.
 *
 * The factor multiplies the wait before the policy's floor, cap and spread are applied: it never
 * makes a wait that the policy does not allow. Pure: equal notes at equal times give equal factors.
 */
#ifndef CORE_DECISION_ADAPTIVE_H
#define CORE_DECISION_ADAPTIVE_H

#include "base/instant.h"

#define ADAPTIVE_FACTOR_MIN 0.5
#define ADAPTIVE_FACTOR_MAX 2.0

enum {
    ADAPTIVE_HALF_LIFE_MS = 10 * 60 * 1000,
    ADAPTIVE_PRIOR = 10,
};

struct adaptive {
    double good, bad; /* as they were at `at` */
    instant at;       /* INSTANT_NONE: nothing was noted */
};

void adaptive_init(struct adaptive *adaptive);
/* A retry was answered. A clock that was set back lets nothing fade meanwhile. */
void adaptive_note(struct adaptive *adaptive, bool succeeded, instant now);
/* ADAPTIVE_FACTOR_MIN to ADAPTIVE_FACTOR_MAX. */
double adaptive_factor(const struct adaptive *adaptive, instant now);

#endif
