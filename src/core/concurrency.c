#include "core/concurrency.h"

#include <assert.h>

void concurrency_init(struct concurrency *concurrency, int64_t max)
{
    assert(max > 0);
    *concurrency =
        (struct concurrency){ .max = max, .limit = max < CONCURRENCY_FIRST ? max : CONCURRENCY_FIRST, .patience = 1 };
}

void concurrency_configure(struct concurrency *concurrency, int64_t max)
{
    assert(max > 0);
    concurrency->max = max;
    if (concurrency->limit > max)
        concurrency->limit = max;
    if (concurrency->ceiling > max)
        concurrency->ceiling = 0;
}

static void lower(struct concurrency *concurrency)
{
    if (concurrency->limit > 1)
        concurrency->limit--;
    concurrency->credit = 0;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/*
 * How much longer than at its best the destination takes to answer. Averages are compared, and one answer can add little
 * to them: jobs differ, and a few slow ones among quick ones say nothing about load.
 */
static double latency_ratio(struct concurrency *concurrency, int64_t latency_ms)
{
    double seen = (double)(latency_ms > CONCURRENCY_LATENCY_FLOOR_MS ? latency_ms : CONCURRENCY_LATENCY_FLOOR_MS);
    if (concurrency->best_ms <= 0)
        concurrency->best_ms = concurrency->usual_ms = seen;
    seen = least(seen, concurrency->best_ms * CONCURRENCY_LATENCY_FALL * 2);
    concurrency->usual_ms += (seen - concurrency->usual_ms) / CONCURRENCY_LATENCY_MEMORY;
    if (concurrency->limit <= CONCURRENCY_FIRST) /* not our load: it has become slower, perhaps for good */
        concurrency->best_ms += (concurrency->usual_ms - concurrency->best_ms) / CONCURRENCY_LATENCY_MEMORY;
    concurrency->best_ms = least(concurrency->best_ms, concurrency->usual_ms);
    return concurrency->usual_ms / concurrency->best_ms;
}

static double gain(const struct concurrency *concurrency, double ratio)
{
    bool slower = ratio > CONCURRENCY_LATENCY_SLOW;
    bool far_below = concurrency->ceiling == 0 || concurrency->limit < concurrency->ceiling / 2;
    double gain = far_below && !slower ? 1 : 1 / (double)concurrency->limit;
    if (concurrency->ceiling > 0 && concurrency->limit + 1 >= concurrency->ceiling)
        gain /= (double)concurrency->patience;
    return slower ? gain / 4 : gain;
}

static void rise(struct concurrency *concurrency)
{
    if (concurrency->limit >= concurrency->ceiling) { /* a whole run at the level where trouble was: it is no ceiling now */
        concurrency->ceiling = concurrency->ceiling > 0 ? concurrency->limit : 0;
        concurrency->patience = 1;
    }
    concurrency->limit++;
    concurrency->since_rise = 0;
}

void concurrency_good(struct concurrency *concurrency, int64_t latency_ms, int64_t under_way)
{
    double ratio = latency_ratio(concurrency, latency_ms);
    concurrency->troubled = false;
    concurrency->since_rise++;
    if (ratio > CONCURRENCY_LATENCY_FALL) {
        /* Once for as many answers as the limit: those under way were sent before it fell. */
        concurrency->credit -= 1 / (double)concurrency->limit;
        if (concurrency->credit <= -1 && concurrency->limit > CONCURRENCY_FIRST) {
            concurrency->ceiling = concurrency->ceiling > 0 ? concurrency->ceiling : concurrency->limit;
            lower(concurrency);
        }
        return;
    }
    concurrency->credit = concurrency->credit > 0 ? concurrency->credit : 0;
    if (under_way * 2 < concurrency->limit || concurrency->limit >= concurrency->max)
        return;
    concurrency->credit += gain(concurrency, ratio);
    if (concurrency->credit >= 1) {
        concurrency->credit -= 1;
        rise(concurrency);
    }
}

/* Whether the last rise brought the trouble, or something that comes and goes. */
static void learn(struct concurrency *concurrency)
{
    bool risen = concurrency->since_rise <= 2 * concurrency->limit;
    if (risen && concurrency->patience < CONCURRENCY_PATIENCE_MAX)
        concurrency->patience *= 2;
    else if (!risen && concurrency->patience > 1)
        concurrency->patience /= 2;
    concurrency->ceiling = concurrency->limit;
}

void concurrency_bad(struct concurrency *concurrency)
{
    concurrency->since_rise++;
    if (!concurrency->troubled) {
        learn(concurrency);
        concurrency->troubled = true;
        concurrency->debt = 1;
        lower(concurrency);
        return;
    }
    concurrency->debt -= 1 / (double)concurrency->limit;
    if (concurrency->debt <= 0) {
        concurrency->debt = 1;
        lower(concurrency);
    }
}
