#include "core/pace.h"

#include <assert.h>

static size_t slot_of(int64_t minute)
{
    return (size_t)(minute % PACE_MINUTES);
}

void pace_note(struct pace *pace, instant now, bool good)
{
    int64_t minute = now / MINUTE_MS;
    assert(now >= 0);
    if (minute - pace->newest >= PACE_MINUTES)
        *pace = (struct pace){ .newest = minute };
    while (pace->newest < minute)
        pace->ring[slot_of(++pace->newest)] = (struct pace_minute){ 0, 0 };
    struct pace_minute *counts = &pace->ring[slot_of(pace->newest)];
    uint32_t *count = good ? &counts->good : &counts->bad;
    if (*count < UINT32_MAX)
        ++*count;
}

static struct pace_minute minute_at(const struct pace *pace, int64_t minute)
{
    bool kept = minute >= 0 && minute <= pace->newest && minute > pace->newest - PACE_MINUTES;
    return kept ? pace->ring[slot_of(minute)] : (struct pace_minute){ 0, 0 };
}

/* A clock that was put back shows what it had counted. */
static int64_t shown_minute(const struct pace *pace, instant now)
{
    int64_t minute = now / MINUTE_MS;
    return minute > pace->newest ? minute : pace->newest;
}

void pace_read(const struct pace *pace, instant now, struct pace_minute ret_minutes[PACE_MINUTES])
{
    int64_t last = shown_minute(pace, now);
    for (int i = 0; i < PACE_MINUTES; i++)
        ret_minutes[i] = minute_at(pace, last - PACE_MINUTES + 1 + i);
}

static uint32_t part_of(uint32_t count, int64_t ms)
{
    return (uint32_t)(((int64_t)count * ms + MINUTE_MS / 2) / MINUTE_MS);
}

struct pace_minute pace_last_minute(const struct pace *pace, instant now)
{
    int64_t minute = shown_minute(pace, now);
    int64_t covered = minute * MINUTE_MS > now ? 0 : MINUTE_MS - now % MINUTE_MS;
    struct pace_minute present = minute_at(pace, minute), before = minute_at(pace, minute - 1);
    return (struct pace_minute){ .good = present.good + part_of(before.good, covered),
                                 .bad = present.bad + part_of(before.bad, covered) };
}
