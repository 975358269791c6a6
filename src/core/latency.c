#include "core/latency.h"

#include <stdint.h>

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double distance(double a, double b)
{
    return a < b ? b - a : a - b;
}

static bool speaks(const struct latency *latency)
{
    return latency->seen >= LATENCY_SEEN_MIN;
}

/* The first few are averaged evenly, so that none of them counts for long. */
static void average(double *value, double seen, int64_t count, int64_t memory)
{
    *value += (seen - *value) / (double)(count < memory ? count : memory);
}

void latency_note(struct latency *latency, int64_t latency_ms, bool idle)
{
    double seen = (double)(latency_ms > LATENCY_FLOOR_MS ? latency_ms : LATENCY_FLOOR_MS);
    if (latency->skip > 0) {
        latency->skip--;
        return;
    }
    if (latency->seen < LATENCY_MEMORY)
        latency->seen++;
    if (speaks(latency) && latency->best_ms > 0)
        seen = least(seen, latency->best_ms * LATENCY_TIMES_MAX);
    if (latency->seen == 1) {
        latency->usual_ms = latency->recent_ms = seen;
        latency->deviation_ms = 0;
    }
    average(&latency->deviation_ms, distance(seen, latency->usual_ms), latency->seen, LATENCY_MEMORY);
    average(&latency->usual_ms, seen, latency->seen, LATENCY_MEMORY);
    average(&latency->recent_ms, seen, latency->seen, LATENCY_MEMORY_SHORT);
    if (latency->best_ms <= 0 && speaks(latency))
        latency->best_ms = latency->usual_ms;
    if (latency->best_ms <= 0)
        return;
    if (idle)
        latency->best_ms += (latency->usual_ms - latency->best_ms) / LATENCY_MEMORY;
    latency->best_ms = least(latency->best_ms, latency->usual_ms);
}

double latency_ratio(const struct latency *latency)
{
    return speaks(latency) && latency->best_ms > 0 ? latency->usual_ms / latency->best_ms : 1;
}

/* Beyond what is usual from answer to answer. */
static bool queued(const struct latency *latency, double now_ms, int64_t at_once)
{
    if (!speaks(latency) || latency->best_ms <= 0 || now_ms - latency->best_ms <= latency->deviation_ms)
        return false;
    double waiting = (double)at_once * (1 - latency->best_ms / now_ms);
    return waiting >= LATENCY_QUEUE_MIN && waiting * LATENCY_QUEUE_SHARE >= (double)at_once;
}

bool latency_queues(const struct latency *latency, int64_t at_once)
{
    return queued(latency, latency->usual_ms, at_once);
}

bool latency_begins_to_queue(const struct latency *latency, int64_t at_once)
{
    return queued(latency, latency->recent_ms, at_once);
}

void latency_measure_anew(struct latency *latency, int64_t skip)
{
    latency->best_ms = 0;
    latency->seen = 0;
    latency->skip = skip;
}
