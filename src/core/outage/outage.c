#include "core/outage/outage.h"

#include <assert.h>

int64_t looks_soon_ms(int64_t interval_ms)
{
    assert(interval_ms >= 0);
    int64_t part = interval_ms / LOOKS_SOON_PART;
    int64_t least = interval_ms < LOOKS_SOON_LEAST_MS ? interval_ms : LOOKS_SOON_LEAST_MS;
    return part > least ? part : least;
}

void outage_init(struct outage *outage)
{
    *outage = (struct outage){ .since = INSTANT_NONE, .good_at = INSTANT_NONE, .ended_at = INSTANT_NONE };
}

bool outage_lasts(const struct outage *outage)
{
    return outage->since != INSTANT_NONE && outage->ended_at == INSTANT_NONE;
}

void outage_holds(struct outage *outage, int64_t relapse_ms, instant now)
{
    assert(relapse_ms >= 0);
    if (outage_lasts(outage))
        return;
    bool relapse = outage->since != INSTANT_NONE && now < instant_add(outage->ended_at, relapse_ms);
    if (!relapse)
        *outage = (struct outage){ .since = now, .good_at = INSTANT_NONE };
    outage->ended_at = INSTANT_NONE;
}

void outage_ends(struct outage *outage, instant now)
{
    if (outage_lasts(outage))
        outage->ended_at = now;
}

int64_t outage_lasted_ms(const struct outage *outage, instant from, instant now)
{
    if (outage->since == INSTANT_NONE || from == INSTANT_NONE)
        return 0;
    instant begin = outage->since > from ? outage->since : from;
    instant end = outage_lasts(outage) || outage->ended_at > now ? now : outage->ended_at;
    return end > begin ? end - begin : 0;
}

void outage_went_well(struct outage *outage, instant now)
{
    if (outage_lasts(outage))
        outage->good_at = now;
}

bool outage_used(const struct outage *outage, instant look_failed_at)
{
    return outage_lasts(outage) && look_failed_at != INSTANT_NONE && look_failed_at >= outage->since;
}

bool outage_spares(const struct outage *outage, instant look_failed_at, bool away)
{
    if (!outage_used(outage, look_failed_at))
        return true;
    bool well_since = outage->good_at != INSTANT_NONE && look_failed_at <= outage->good_at;
    return away && !well_since;
}
