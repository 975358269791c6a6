#include "core/capacity.h"

#include <assert.h>

/* A ceiling is learnt from what chance brings once in so many tries, and forgotten when it may well be chance. */
static const double chance_to_learn = 1e-5, chance_to_forget = 1e-3;

static const struct capacity_evidence no_evidence = { .below = 0 };

static void forget(struct capacity *capacity)
{
    capacity->kept = (struct capacity_kept){ .since = INSTANT_NONE };
    capacity->learnt = no_evidence;
    capacity->trouble_below = false;
}

void capacity_init(struct capacity *capacity)
{
    *capacity = (struct capacity){ .waiting_since = INSTANT_NONE };
    forget(capacity);
}

void capacity_restore(struct capacity *capacity, const struct capacity_kept *kept)
{
    if (kept->ceiling <= 0 || kept->since == INSTANT_NONE)
        return;
    capacity->kept = *kept;
    if (kept->hold_ms < CAPACITY_HOLD_MS || kept->hold_ms > CAPACITY_HOLD_MAX_MS)
        capacity->kept.hold_ms = CAPACITY_HOLD_MS;
    capacity->suspect = kept->ceiling;
    capacity->learnt = (struct capacity_evidence){ .below = CAPACITY_BELOW_MIN, .over = CAPACITY_VAIN_MIN,
                                                   .over_bad = CAPACITY_VAIN_MIN };
}

void capacity_configure(struct capacity *capacity, int64_t max)
{
    forget(capacity);
    capacity->vain = capacity->proven = 0;
    if (capacity->suspect > max)
        capacity->suspect = max;
}

static bool waited(const struct capacity *capacity, instant now)
{
    const struct capacity_kept *kept = &capacity->kept;
    instant since = capacity->waiting_since;
    return since != INSTANT_NONE && now - since >= kept->hold_ms && now - kept->since >= kept->hold_ms;
}

bool capacity_allows(const struct capacity *capacity, int64_t level, instant now)
{
    int64_t ceiling = capacity->kept.ceiling;
    return ceiling == 0 || level <= ceiling || (level == ceiling + 1 && waited(capacity, now));
}

instant capacity_tries_at(const struct capacity *capacity)
{
    const struct capacity_kept *kept = &capacity->kept;
    if (kept->ceiling == 0 || capacity->waiting_since == INSTANT_NONE)
        return INSTANT_NONE;
    return instant_add(kept->since > capacity->waiting_since ? kept->since : capacity->waiting_since, kept->hold_ms);
}

/* A clock that was put back must not make the wait longer. */
void capacity_waiting(struct capacity *capacity, bool waiting, instant now)
{
    if (!waiting)
        capacity->waiting_since = INSTANT_NONE;
    else if (capacity->waiting_since == INSTANT_NONE || capacity->waiting_since > now)
        capacity->waiting_since = now;
    if (capacity->kept.since != INSTANT_NONE && capacity->kept.since > now)
        capacity->kept.since = now;
}

static int64_t window_of(int64_t answers)
{
    return answers > CAPACITY_WINDOW_MIN ? answers : CAPACITY_WINDOW_MIN;
}

/* Old answers count less and less. */
static void fade(struct capacity_evidence *evidence)
{
    if (evidence->below < CAPACITY_MEMORY)
        return;
    evidence->below /= 2;
    evidence->below_bad /= 2;
}

/* How likely so many bad ones of so many are when each is bad as often as `rate`, or what bounds it. */
static double chance_of(double bad, double all, double rate)
{
    double chance = 1;
    for (double i = 0; i < bad; i++)
        chance *= (all - i) / (i + 1) * rate;
    return chance;
}

/*
 * How likely the trouble above the level is if it comes there as often as below. The doubt is with the few: one more
 * trouble below is counted than was seen.
 */
static double chance(const struct capacity_evidence *evidence)
{
    double rate = (evidence->below_bad + 1) / (evidence->below + 1);
    double above = chance_of(evidence->above_bad, evidence->above, rate);
    double over = chance_of(evidence->over_bad, evidence->over, rate);
    return above < over ? above : over;
}

/* The trouble is over: it came below the ceiling, as it does now and then, or so often that the ceiling explains nothing. */
static void count_trouble_below(struct capacity *capacity)
{
    struct capacity_evidence *learnt = &capacity->learnt;
    capacity->trouble_below = false;
    learnt->below++;
    learnt->below_bad++;
    if (learnt->below_bad > CAPACITY_VAIN_MIN && chance(learnt) > chance_to_forget)
        forget(capacity);
}

void capacity_good(struct capacity *capacity, int64_t level, int64_t load)
{
    capacity->calm++;
    if (capacity->trouble_below && capacity->calm >= window_of(capacity->kept.ceiling))
        count_trouble_below(capacity);
    if (level <= capacity->kept.ceiling) {
        capacity->learnt.below++;
        fade(&capacity->learnt);
    }
    if (capacity->suspect == 0)
        return;
    if (level > capacity->suspect) {
        capacity->suspected.above++;
        capacity->suspected.over += load > capacity->suspect;
        capacity->proven++;
    } else {
        capacity->suspected.below++;
        fade(&capacity->suspected);
    }
}

static void clear_above(struct capacity_evidence *evidence)
{
    evidence->above = evidence->above_bad = evidence->over = evidence->over_bad = 0;
}

bool capacity_is_proven(const struct capacity *capacity, int64_t limit)
{
    return capacity->proven >= window_of(limit + limit / 2);
}

void capacity_prove(struct capacity *capacity, int64_t limit)
{
    if (capacity->kept.ceiling > 0 && limit > capacity->kept.ceiling)
        forget(capacity);
    capacity->suspect = limit;
    capacity->vain = capacity->proven = 0;
    clear_above(&capacity->suspected);
}

static void learn(struct capacity *capacity, instant now)
{
    capacity->kept = (struct capacity_kept){ .ceiling = capacity->suspect, .since = now, .hold_ms = CAPACITY_HOLD_MS };
    capacity->learnt = capacity->suspected;
    capacity->trouble_below = false;
}

void capacity_bad(struct capacity *capacity)
{
    capacity->calm = 0;
}

void capacity_refute(struct capacity *capacity, int64_t load, instant now)
{
    struct capacity_kept *kept = &capacity->kept;
    struct capacity_evidence *suspected = &capacity->suspected;
    assert(capacity->suspect > 0);
    if (capacity->vain < CAPACITY_VAIN_MAX)
        capacity->vain++;
    capacity->proven = 0;
    suspected->above++;
    suspected->above_bad++;
    suspected->over += load > capacity->suspect;
    suspected->over_bad += load > capacity->suspect;
    if (kept->ceiling > 0 && capacity->suspect >= kept->ceiling) {
        kept->since = now;
        kept->hold_ms = kept->hold_ms * 2 < CAPACITY_HOLD_MAX_MS ? kept->hold_ms * 2 : CAPACITY_HOLD_MAX_MS;
    } else if (capacity->vain >= CAPACITY_VAIN_MIN && suspected->below >= CAPACITY_BELOW_MIN &&
               chance(suspected) < chance_to_learn) {
        learn(capacity, now);
    }
}

void capacity_note_trouble(struct capacity *capacity, int64_t level, bool normal)
{
    if (normal && level <= capacity->kept.ceiling)
        capacity->trouble_below = true;
}

void capacity_suspect(struct capacity *capacity, int64_t level, bool normal)
{
    struct capacity_evidence *suspected = &capacity->suspected;
    capacity_note_trouble(capacity, level, normal);
    if (capacity->suspect > 0) { /* that level had been borne: it may come at any level */
        suspected->below++;
        suspected->below_bad++;
    }
    clear_above(suspected);
    capacity->suspect = level > 1 ? level - 1 : 1;
    capacity->vain = capacity->proven = 0;
}
