#include "core/alerting/readings.h"

#include <assert.h>
#include <string.h>

/* Empties the buckets that time has passed over; all of them when it went back. */
static void share_move(struct share_window *window, instant now)
{
    assert(window->window_ms >= SHARE_BUCKETS);
    int64_t head = now / (window->window_ms / SHARE_BUCKETS);
    int64_t passed = head - window->head;
    if (passed < 0 || passed > SHARE_BUCKETS)
        passed = SHARE_BUCKETS;
    for (int64_t i = 0; i < passed; i++)
        memset(&window->buckets[(head - i) % SHARE_BUCKETS], 0, sizeof *window->buckets);
    window->head = head;
}

struct share_window share_none(void)
{
    return (struct share_window){ .since = INSTANT_NONE };
}

void share_add(struct share_window *window, int64_t window_ms, int64_t ended, int64_t dead, instant now)
{
    assert(now >= 0 && ended >= 0 && dead >= 0 && window_ms >= SHARE_BUCKETS);
    if (window->window_ms != window_ms)
        *window = (struct share_window){ .since = now, .window_ms = window_ms };
    share_move(window, now);
    if (window->since == INSTANT_NONE || window->since > now)
        window->since = now;
    window->buckets[window->head % SHARE_BUCKETS].ended += ended;
    window->buckets[window->head % SHARE_BUCKETS].dead += dead;
}

double share_dead(struct share_window *window, instant now)
{
    assert(window->window_ms >= 0);
    int64_t ended = 0, dead = 0;
    if (window->window_ms == 0)
        return -1;
    share_move(window, now);
    for (int i = 0; i < SHARE_BUCKETS; i++) {
        ended += window->buckets[i].ended;
        dead += window->buckets[i].dead;
    }
    if (ended >= SHARE_LEAST)
        return (double)dead / (double)ended;
    bool whole = window->since != INSTANT_NONE && now - window->since >= window->window_ms;
    return whole ? 0 : -1;
}

void growth_add(struct growth_window *window, int64_t pending, instant now)
{
    assert(window->count <= GROWTH_SAMPLES);
    if (window->count > 0 && window->samples[window->count - 1].at > now)
        window->count = 0; /* the clock was put back */
    if (window->count > 0 && now - window->samples[window->count - 1].at < GROWTH_EVERY_MS)
        return;
    if (window->count == GROWTH_SAMPLES)
        memmove(window->samples, window->samples + 1, --window->count * sizeof *window->samples);
    window->samples[window->count].at = now;
    window->samples[window->count++].pending = pending;
}

double growth_limit(const struct growth_window *window, double times)
{
    assert(window->count <= GROWTH_SAMPLES);
    if (window->count < GROWTH_SAMPLES || times <= 0)
        return 0;
    double then = (double)window->samples[0].pending;
    return then * times > then + GROWTH_LEAST ? then * times : then + GROWTH_LEAST;
}

/* 0.8 at four times what must be free, 0.9 at twice, 1 when it is just that. */
static double disk_share(double free, double least)
{
    assert(free >= 0);
    if (least <= 0)
        return 0;
    if (free < least)
        return STORE_FILL_REFUSES;
    if (free <= 2 * least)
        return 0.9 + 0.1 * (2 * least - free) / least;
    if (free <= 4 * least)
        return 0.8 + 0.1 * (4 * least - free) / (2 * least);
    return 0.8 * 4 * least / free;
}

double store_fill_share(const struct store_fill *fill)
{
    double jobs = fill->pending_max > 0 ? (double)fill->pending / (double)fill->pending_max : 0;
    if (jobs >= 1 && jobs < STORE_FILL_REFUSES)
        jobs = STORE_FILL_REFUSES;
    double disk = fill->disk_free >= 0 ? disk_share((double)fill->disk_free, (double)fill->disk_free_min) : 0;
    return jobs > disk ? jobs : disk;
}
