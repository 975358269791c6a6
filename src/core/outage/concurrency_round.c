#include "core/outage/concurrency_round.h"

#include <assert.h>

enum {
    EXACT = 32,      /* whole milliseconds below this, */
    PARTS_LOG2 = 4,  /* then so many kinds for each doubling, as a power of two */
    FAILED_LESS = 3, /* times */
    DOUBT = 2,       /* failures that are counted although they were not seen */
};

static const double slow_times = 1.7; /* longer than the best */
static const double sooner_times = 1.25;

static size_t kind_of(int64_t ms)
{
    if (ms < EXACT)
        return ms > 0 ? (size_t)ms : 0;
    int shift = 63 - __builtin_clzll((unsigned long long)ms) - PARTS_LOG2; /* leaves 16 to 31 */
    size_t kind = EXACT + ((size_t)(shift - 1) << PARTS_LOG2) + ((size_t)(ms >> shift) - (1 << PARTS_LOG2));
    return kind < ROUND_TIMES ? kind : ROUND_TIMES - 1;
}

/* The middle of a kind. */
static double time_of(size_t kind)
{
    assert(kind < ROUND_TIMES);
    if (kind < EXACT)
        return (double)kind;
    size_t shift = ((kind - EXACT) >> PARTS_LOG2) + 1;
    size_t part = ((kind - EXACT) & ((1 << PARTS_LOG2) - 1)) + (1 << PARTS_LOG2);
    return (double)(part << shift) + (double)((1 << shift) - 1) / 2;
}

void round_begin(struct round *round, int64_t limit)
{
    assert(limit > 0);
    *round = (struct round){ .figures.limit = limit };
}

/* Half a millisecond is what whole ones leave out on average. */
static void answered(struct round *round, int64_t held_ms)
{
    assert(round->figures.failures <= round->figures.answers);
    round->figures.answers++;
    round->figures.held_ms += (double)(held_ms > 0 ? held_ms : 0) + 0.5;
}

void round_good(struct round *round, int64_t latency_ms, int64_t held_ms)
{
    answered(round, held_ms);
    round->times[kind_of(latency_ms)]++;
}

void round_bad(struct round *round, bool asked, int64_t held_ms)
{
    answered(round, held_ms);
    round->figures.failures++;
    round->figures.asked = round->figures.asked || asked;
}

struct round_figures round_read(const struct round *round)
{
    assert(round->figures.failures <= round->figures.answers);
    struct round_figures figures = round->figures;
    int64_t good = figures.answers - figures.failures, below = 0;
    size_t kind = 0;
    if (good == 0)
        return figures;
    while (below + round->times[kind] <= good / 2)
        below += round->times[kind++];
    assert(kind < ROUND_TIMES);
    figures.time_ms = time_of(kind);
    return figures;
}

bool round_fails(const struct round_figures *round)
{
    assert(round->failures <= round->answers);
    return round->failures >= ROUND_FAILURES_MIN &&
           (round->asked || round->failures * ROUND_FAILURES_PART > round->answers);
}

bool round_is_slow(const struct round_figures *round, double best_ms)
{
    return best_ms > 0 && round->time_ms > best_ms * slow_times && round->time_ms >= best_ms + ROUND_TIME_MS;
}

/*
 * How many of the higher round would have failed, had the same part failed as in the lower one. The doubt is with the few:
 * more failures than were seen are counted below.
 */
static double expected(const struct round_figures *low, const struct round_figures *high)
{
    assert(low->answers > 0);
    return (double)(low->failures + DOUBT) / (double)low->answers * (double)high->answers;
}

bool round_may_fail_less(const struct round_figures *low, const struct round_figures *high)
{
    return (double)high->failures > FAILED_LESS * expected(low, high);
}

bool round_failed_less(const struct round_figures *low, const struct round_figures *high)
{
    return round_may_fail_less(low, high) && (double)high->failures >= expected(low, high) + ROUND_FAILURES_MIN;
}

/* A slot that is held all the time delivers one for each so many milliseconds: so many slots deliver as many times that. */
static double delivered(const struct round_figures *round)
{
    assert(round->held_ms > 0);
    return (double)(round->limit * (round->answers - round->failures)) / round->held_ms;
}

bool round_came_sooner(const struct round_figures *low, const struct round_figures *high)
{
    return low->time_ms > 0 && low->time_ms * sooner_times < high->time_ms && low->time_ms + ROUND_TIME_MS <= high->time_ms;
}

bool round_bought_nothing(const struct round_figures *low, const struct round_figures *high)
{
    assert(low->limit > 0 && low->limit < high->limit && low->answers > 0 && high->answers > 0);
    double part = (1 + (double)low->limit / (double)high->limit) / 2;
    return round_fails(high) && delivered(low) >= part * delivered(high);
}
