#include "core/fairness/forecast.h"

#include <assert.h>

int64_t forecast_limit_ms(const struct forecast_limit *limit)
{
    assert(limit->before >= 0 && limit->room >= 0);
    int64_t waits = limit->before + 1 - limit->room;
    return waits > 0 ? rate_drain_ms(limit->rate, waits) : 0;
}

int64_t forecast_cycle_ms(int64_t before, int64_t room, int64_t batch, int64_t every_ms, int64_t next_ms)
{
    assert(before >= 0 && room >= 0 && batch > 0 && every_ms > 0 && next_ms >= 0);
    int64_t waits = before - room;
    if (waits < 0)
        return 0;
    int64_t cycles = waits / batch;
    return cycles < (INT64_MAX / 2 - next_ms) / every_ms ? next_ms + cycles * every_ms : INT64_MAX / 2;
}

int64_t forecast_work_ms(int64_t before, int64_t free, int64_t at_once, double usual_ms)
{
    assert(before >= 0 && at_once > 0);
    int64_t waits = before + 1 - free;
    if (waits <= 0)
        return 0;
    if (usual_ms <= 0)
        return -1;
    double ms = (double)waits * usual_ms / (double)at_once;
    return ms < (double)(INT64_MAX / 2) ? (int64_t)ms : INT64_MAX / 2;
}

int64_t forecast_others(int64_t ahead, int64_t share, int64_t other_share, int64_t other_ready)
{
    assert(ahead >= 0 && share > 0 && other_share > 0 && other_ready >= 0);
    int64_t turns = ahead / share + 1;
    return turns > other_ready / other_share ? other_ready : turns * other_share;
}
