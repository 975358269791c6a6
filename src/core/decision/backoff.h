/*
 * backoff.h - how long to wait before the next attempt.
 *
 * Pure: no I/O, clock, randomness or allocation. The spread comes from a hash of the seed,
 * the job and the retry, so equal inputs give equal waits and the analysis is idempotent.
 *
 * The wait before retry k is around base x factor^(k-1) x the priority's factor, within
 * [floor, cap], spread by the jitter. Where the bounds meet the spread:
 *     after     the draw is uniform over the part of the spread inside [floor, cap]; nothing
 *               piles up at a bound, no wait is outside
 *     before    the middle is inside, the spread may reach outside
 *     saturate  drawn as with `before`, then cut off at the bounds: waits pile up there
 */
#ifndef CORE_DECISION_BACKOFF_H
#define CORE_DECISION_BACKOFF_H

#include "base/instant.h"
#include "core/decision/policy.h"

/* All possible waits, both ends included. */
struct backoff_range {
    int64_t low_ms;
    int64_t high_ms;
};

/* The middle of the spread before retry `retry` (from 1), inside [floor, cap]. Total: any retry up to INT64_MAX. */
int64_t backoff_nominal_ms(const struct retry_policy *policy, int64_t retry, enum priority priority);
struct backoff_range backoff_range(const struct retry_policy *policy, int64_t retry, enum priority priority);

/* The wait of this job before this retry. Never below 1 ms. */
int64_t backoff_ms(const struct retry_policy *policy, uint64_t seed, struct slice id, int64_t retry, enum priority priority);

/* At least `least_ms`, spread only upwards. */
int64_t backoff_least_ms(const struct retry_policy *policy, uint64_t seed, struct slice id, int64_t retry, int64_t least_ms);

/* A wait that the destination asked for: never earlier, spread only upwards, up to retry_after_max_ms. */
int64_t backoff_after_ms(const struct retry_policy *policy, uint64_t seed, struct slice id, int64_t retry, int64_t asked_ms);

/*
 * ---- Adaptive: longer waits while retries fail, shorter ones while they succeed. ----
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
