#include "core/breaker.h"

#include <assert.h>
#include <string.h>

void breaker_init(struct breaker *breaker, instant now)
{
    *breaker =
        (struct breaker){ .kept = { .state = BREAKER_CLOSED, .since = now, .until = INSTANT_NONE }, .head = INT64_MIN };
}

static struct breaker_change none(const struct breaker *breaker)
{
    return (struct breaker_change){ breaker->kept.state, breaker->kept.state, INSTANT_NONE, INSTANT_NONE };
}

static struct breaker_change change_to(struct breaker *breaker, enum breaker_state state, instant until, instant now)
{
    struct breaker_change change = { breaker->kept.state, state, now, until };
    breaker->kept.state = state;
    breaker->kept.since = now;
    breaker->kept.until = until;
    breaker->taken = breaker->good = breaker->bad = breaker->slow = 0;
    breaker->epoch++;
    breaker->head = INT64_MIN;
    return change;
}

static int64_t open_wait(const struct breaker *breaker, const struct breaker_config *config)
{
    int64_t wait = config->open_ms;
    int64_t most = config->open_max_ms > config->open_ms ? config->open_max_ms : config->open_ms;
    for (int64_t i = 1; i < breaker->kept.openings && wait < most; i++)
        wait = wait > most / 2 ? most : wait * 2;
    return wait;
}

static struct breaker_change open_up(struct breaker *breaker, const struct breaker_config *config, instant now)
{
    if (breaker->kept.openings < INT64_MAX)
        breaker->kept.openings++;
    return change_to(breaker, BREAKER_OPEN, instant_add(now, open_wait(breaker, config)), now);
}

static size_t place_of(int64_t number)
{
    return (size_t)((number % BREAKER_BUCKETS + BREAKER_BUCKETS) % BREAKER_BUCKETS);
}

/* The bucket of `now`; those that have left the window are emptied. */
static struct breaker_bucket *bucket_at(struct breaker *breaker, const struct breaker_config *config, instant now)
{
    int64_t width = config->window_ms / BREAKER_BUCKETS > 0 ? config->window_ms / BREAKER_BUCKETS : 1;
    int64_t number = now / width - (now % width < 0);
    bool stale = breaker->head == INT64_MIN || number - breaker->head >= BREAKER_BUCKETS ||
                 breaker->head - number >= BREAKER_BUCKETS; /* a clock that was set back a long way too */
    if (stale) {
        memset(breaker->buckets, 0, sizeof breaker->buckets);
        breaker->head = number;
    }
    while (breaker->head < number) {
        breaker->head++;
        breaker->buckets[place_of(breaker->head)] = (struct breaker_bucket){ 0 };
    }
    return &breaker->buckets[place_of(breaker->head)];
}

static bool too_many(int64_t part, int64_t of, double rate)
{
    return part > 0 && (double)part >= rate * (double)of;
}

static struct breaker_change note_closed(struct breaker *breaker, const struct breaker_config *config, bool failed,
                                         bool slow, instant now)
{
    struct breaker_bucket *bucket = bucket_at(breaker, config, now);
    int64_t calls = 0, bad = 0, late = 0;
    bucket->calls++;
    bucket->failed += failed;
    bucket->slow += slow;
    for (size_t i = 0; i < BREAKER_BUCKETS; i++) {
        calls += breaker->buckets[i].calls;
        bad += breaker->buckets[i].failed;
        late += breaker->buckets[i].slow;
    }
    bool trips = calls >= config->min_calls && ((failed && too_many(bad, calls, config->failure_rate)) ||
                                                (slow && too_many(late, calls, config->slow_rate)));
    return trips ? open_up(breaker, config, now) : none(breaker);
}

/* With no probe to wait for there is no time limit either. */
static void await_probes(struct breaker *breaker)
{
    assert(breaker->taken >= breaker->good);
    if (breaker->taken == breaker->good)
        breaker->kept.until = INSTANT_NONE;
}

static struct breaker_change note_half_open(struct breaker *breaker, const struct breaker_config *config, bool failed,
                                            bool slow, instant now)
{
    breaker->slow += slow;
    if (failed) {
        breaker->bad++;
        breaker->taken--; /* another may take its place */
    } else {
        breaker->good++;
    }
    if (too_many(breaker->bad, config->probes, config->failure_rate) ||
        too_many(breaker->slow, config->probes, config->slow_rate))
        return open_up(breaker, config, now);
    if (breaker->good < config->probes) {
        await_probes(breaker);
        return none(breaker);
    }
    return breaker_reset(breaker, now);
}

struct breaker_change breaker_note(struct breaker *breaker, const struct breaker_config *config, uint32_t epoch, bool failed,
                                   int64_t latency_ms, instant now)
{
    bool slow = config->slow_ms > 0 && latency_ms >= config->slow_ms;
    assert(latency_ms >= 0);
    if (!config->enabled || epoch != breaker->epoch)
        return none(breaker);
    switch (breaker->kept.state) {
    case BREAKER_CLOSED:
        return note_closed(breaker, config, failed, slow, now);
    case BREAKER_HALF_OPEN:
        return note_half_open(breaker, config, failed, slow, now);
    case BREAKER_OPEN:
        break;
    }
    return none(breaker);
}

struct breaker_answer breaker_ask(const struct breaker *breaker, const struct breaker_config *config)
{
    if (!config->enabled || breaker->kept.state == BREAKER_CLOSED)
        return (struct breaker_answer){ .room = INT64_MAX, .until = INSTANT_NONE };
    if (breaker->kept.state == BREAKER_OPEN)
        return (struct breaker_answer){ .room = 0, .until = breaker->kept.until };
    int64_t room = config->probes - breaker->taken;
    return (struct breaker_answer){ .room = room > 0 ? room : 0, .until = breaker->kept.until };
}

struct breaker_change breaker_tick(struct breaker *breaker, const struct breaker_config *config, instant now)
{
    if (breaker->kept.state == BREAKER_CLOSED)
        return none(breaker);
    if (!config->enabled) /* a reload took it away */
        return breaker_reset(breaker, now);
    if (breaker->kept.state == BREAKER_OPEN) {
        int64_t wait = open_wait(breaker, config);
        if (breaker->kept.until > instant_add(now, wait)) /* the clock was set back, or a reload made the wait shorter */
            breaker->kept.until = instant_add(now, wait);
        return breaker->kept.until <= now ? change_to(breaker, BREAKER_HALF_OPEN, INSTANT_NONE, now) : none(breaker);
    }
    if (breaker->good >= config->probes) /* a reload asks for fewer: no other is let through that could close it */
        return breaker_reset(breaker, now);
    if (breaker->kept.until == INSTANT_NONE)
        return none(breaker);
    if (breaker->kept.until > instant_add(now, breaker->limit_ms)) /* the clock was set back */
        breaker->kept.until = instant_add(now, breaker->limit_ms);
    return breaker->kept.until <= now ? open_up(breaker, config, now) : none(breaker);
}

void breaker_take(struct breaker *breaker, int64_t count, int64_t limit_ms, instant now)
{
    assert(count > 0);
    if (breaker->kept.state != BREAKER_HALF_OPEN)
        return;
    breaker->taken += count;
    breaker->limit_ms = limit_ms;
    breaker->kept.until = instant_add(now, limit_ms);
}

void breaker_give_back(struct breaker *breaker, uint32_t epoch, int64_t count)
{
    if (breaker->kept.state != BREAKER_HALF_OPEN || epoch != breaker->epoch)
        return;
    breaker->taken -= count;
    await_probes(breaker);
}

struct breaker_change breaker_reset(struct breaker *breaker, instant now)
{
    breaker->kept.openings = 0;
    return change_to(breaker, BREAKER_CLOSED, INSTANT_NONE, now);
}

void breaker_restore(struct breaker *breaker, const struct breaker_config *config, const struct breaker_kept *kept,
                     instant now)
{
    breaker_init(breaker, now);
    if (!config->enabled || kept->state == BREAKER_CLOSED)
        return;
    breaker->kept = *kept;
    breaker->kept.openings = kept->openings > 0 ? kept->openings : 1;
    if (kept->state == BREAKER_HALF_OPEN || kept->until == INSTANT_NONE) {
        breaker->kept.state = BREAKER_OPEN;
        breaker->kept.until = now;
    }
}

const char *breaker_state_name(enum breaker_state state)
{
    static const char *const names[] = {
        [BREAKER_CLOSED] = "closed",
        [BREAKER_OPEN] = "open",
        [BREAKER_HALF_OPEN] = "half_open",
    };
    assert(state <= BREAKER_HALF_OPEN);
    return names[state];
}
