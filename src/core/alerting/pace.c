#include "core/alerting/pace.h"

#include <assert.h>
#include <string.h>

static void note(struct pace_count *ring, int64_t len, int64_t *newest, int64_t slot, bool good)
{
    assert(len > 0 && slot >= 0);
    if (slot - *newest >= len) {
        memset(ring, 0, (size_t)len * sizeof *ring);
        *newest = slot;
    }
    while (*newest < slot)
        ring[++*newest % len] = (struct pace_count){ 0, 0 };
    uint32_t *count = good ? &ring[*newest % len].good : &ring[*newest % len].bad;
    if (*count < UINT32_MAX)
        ++*count;
}

void pace_note(struct pace *pace, instant now, bool good)
{
    assert(now >= 0);
    note(pace->minutes, PACE_MINUTES, &pace->newest_minute, now / MINUTE_MS, good);
    note(pace->seconds, PACE_SECONDS, &pace->newest_second, now / SECOND_MS, good);
}

/* The ring's `age`th slot before the one of `now`. A clock that was put back shows what it had counted. */
static struct pace_count at(const struct pace_count *ring, int64_t len, int64_t newest, int64_t now, int64_t age)
{
    assert(len > 0 && age >= 0 && age < len);
    int64_t slot = (now > newest ? now : newest) - age;
    bool saved = slot >= 0 && slot <= newest && slot > newest - len;
    return saved ? ring[slot % len] : (struct pace_count){ 0, 0 };
}

void pace_read(const struct pace *pace, instant now, struct pace_count ret_minutes[PACE_MINUTES])
{
    assert(now >= 0);
    for (int i = 0; i < PACE_MINUTES; i++)
        ret_minutes[i] = at(pace->minutes, PACE_MINUTES, pace->newest_minute, now / MINUTE_MS, PACE_MINUTES - 1 - i);
}

struct pace_count pace_last_minute(const struct pace *pace, instant now)
{
    assert(now >= 0);
    struct pace_count sum = { 0, 0 };
    for (int i = 0; i < PACE_SECONDS; i++) {
        struct pace_count second = at(pace->seconds, PACE_SECONDS, pace->newest_second, now / SECOND_MS, i);
        sum.good += second.good;
        sum.bad += second.bad;
    }
    return sum;
}
