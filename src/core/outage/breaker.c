#include "core/outage/breaker.h"

#include "core/outage/outage.h"

#include <assert.h>

void breaker_init(struct breaker *breaker, instant now)
{
    *breaker = (struct breaker){ .saved = { .state = BREAKER_CLOSED, .since = now, .until = INSTANT_NONE },
                                 .look_at = INSTANT_NONE, .used_look_at = INSTANT_NONE };
    tally_clear(&breaker->tally);
}

static struct breaker_change none(const struct breaker *breaker)
{
    assert(breaker->saved.state <= BREAKER_HALF_OPEN);
    return (struct breaker_change){ breaker->saved.state, breaker->saved.state, INSTANT_NONE, INSTANT_NONE };
}

static struct breaker_change change_to(struct breaker *breaker, enum breaker_state state, instant until, instant now)
{
    assert(state <= BREAKER_HALF_OPEN);
    struct breaker_change change = { breaker->saved.state, state, now, until };
    breaker->saved.state = state;
    breaker->saved.since = now;
    breaker->saved.until = until;
    breaker->taken = breaker->bad = 0;
    breaker->look_at = breaker->used_look_at = INSTANT_NONE;
    breaker->epoch++;
    tally_clear(&breaker->tally);
    return change;
}

static int64_t open_wait(const struct breaker *breaker, const struct breaker_config *config)
{
    assert(config->open_ms >= 0 && breaker->saved.openings >= 0);
    int64_t wait = config->open_ms;
    int64_t most = config->open_max_ms > config->open_ms ? config->open_max_ms : config->open_ms;
    for (int64_t i = 1; i < breaker->saved.openings && wait < most; i++)
        wait = wait > most / 2 ? most : wait * 2;
    return wait;
}

static struct breaker_change open_up(struct breaker *breaker, const struct breaker_config *config, instant now)
{
    assert(config->enabled);
    if (breaker->saved.openings < INT64_MAX)
        breaker->saved.openings++;
    return change_to(breaker, BREAKER_OPEN, instant_add(now, open_wait(breaker, config)), now);
}

static bool more_than_half(int64_t part, int64_t of)
{
    assert(part >= 0 && part <= of);
    return 2 * part > of;
}

static struct breaker_change note_closed(struct breaker *breaker, const struct breaker_config *config,
                                         const struct breaker_call *call, bool slow, instant now)
{
    assert(breaker->saved.state == BREAKER_CLOSED);
    const struct tally_call counted = { .job = call->job, .tenant = call->tenant, .failed = call->failed, .slow = slow };
    tally_add(&breaker->tally, config->window_ms, &counted, now);
    if (!call->failed && !slow)
        return none(breaker);
    struct tally_sum sum = tally_sum(&breaker->tally, config->failure_rate, config->slow_rate);
    bool failing = call->failed && sum.failed >= BREAKER_JOBS_MIN && more_than_half(sum.tenants_failing, sum.tenants) &&
                   tally_reaches(sum.failed, sum.calls, config->failure_rate);
    bool late = slow && sum.slow >= BREAKER_JOBS_MIN && more_than_half(sum.tenants_slow, sum.tenants) &&
                tally_reaches(sum.slow, sum.calls, config->slow_rate);
    return sum.calls >= config->min_calls && (failing || late) ? open_up(breaker, config, now) : none(breaker);
}

/* Without a look to wait for there is no time limit either. */
static void await_looks(struct breaker *breaker)
{
    assert(breaker->taken >= breaker->bad);
    if (breaker->taken == breaker->bad)
        breaker->saved.until = INSTANT_NONE;
}

static bool looks_failed(const struct breaker *breaker)
{
    assert(breaker->bad >= 0 && breaker->taken >= breaker->bad);
    return breaker->bad > 0 && breaker->taken == breaker->bad;
}

static struct breaker_change note_half_open(struct breaker *breaker, const struct breaker_config *config, bool away,
                                            instant now)
{
    assert(breaker->saved.state == BREAKER_HALF_OPEN);
    int64_t wait = open_wait(breaker, config);
    breaker->bad++;
    await_looks(breaker);
    if (away)
        breaker->looks_soon = 0;
    if (!looks_failed(breaker))
        return none(breaker);
    if (away || breaker->looks_soon >= LOOKS_SOON_MAX)
        return open_up(breaker, config, now);
    if (breaker->used_look_at == INSTANT_NONE)
        breaker->used_look_at = instant_add(now, 2 * wait);
    breaker->looks_soon++;
    breaker->look_at = instant_add(now, looks_soon_ms(wait));
    breaker->taken = breaker->bad = 0;
    return none(breaker);
}

struct breaker_change breaker_note(struct breaker *breaker, const struct breaker_config *config,
                                   const struct breaker_call *call, instant now)
{
    bool slow = config->slow_ms > 0 && call->latency_ms >= config->slow_ms;
    assert(call->latency_ms >= 0);
    if (!config->enabled || call->epoch != breaker->epoch || breaker->saved.state == BREAKER_OPEN)
        return none(breaker);
    if (breaker->saved.state == BREAKER_CLOSED)
        return note_closed(breaker, config, call, slow, now);
    if (!call->failed && !slow)
        return breaker_reset(breaker, now);
    return note_half_open(breaker, config, call->away, now);
}

struct breaker_answer breaker_ask(const struct breaker *breaker, const struct breaker_config *config, instant now)
{
    assert(breaker->taken >= 0);
    if (!config->enabled || breaker->saved.state == BREAKER_CLOSED)
        return (struct breaker_answer){ .room = INT64_MAX, .until = INSTANT_NONE };
    if (breaker->saved.state == BREAKER_OPEN)
        return (struct breaker_answer){ .room = 0, .until = breaker->saved.until };
    if (breaker->look_at > now)
        return (struct breaker_answer){ .room = 0, .until = breaker->look_at };
    int64_t room = config->probes - breaker->taken;
    return (struct breaker_answer){ .room = room > 0 ? room : 0, .until = breaker->saved.until };
}

instant breaker_next(const struct breaker *breaker, instant now)
{
    instant next = INSTANT_NONE;
    instant_hasten(&next, breaker->saved.until, now);
    instant_hasten(&next, breaker->look_at, now);
    instant_hasten(&next, breaker->used_look_at, now);
    return next;
}

struct breaker_change breaker_tick(struct breaker *breaker, const struct breaker_config *config, instant now)
{
    if (breaker->saved.state == BREAKER_CLOSED)
        return none(breaker);
    if (!config->enabled) /* a reload took it away */
        return breaker_reset(breaker, now);
    if (breaker->saved.state == BREAKER_OPEN) {
        int64_t wait = open_wait(breaker, config);
        if (breaker->saved.until > instant_add(now, wait)) /* the clock was set back, or a reload made the wait shorter */
            breaker->saved.until = instant_add(now, wait);
        return breaker->saved.until <= now ? change_to(breaker, BREAKER_HALF_OPEN, INSTANT_NONE, now) : none(breaker);
    }
    int64_t wait = open_wait(breaker, config);
    if (breaker->look_at > instant_add(now, wait)) /* the clock was set back */
        breaker->look_at = breaker->used_look_at = now;
    if (looks_failed(breaker)) /* those that were still awaited did not leave */
        return open_up(breaker, config, now);
    if (breaker->saved.until == INSTANT_NONE)
        return none(breaker);
    if (breaker->saved.until > instant_add(now, breaker->limit_ms)) /* the clock was set back */
        breaker->saved.until = instant_add(now, breaker->limit_ms);
    return breaker->saved.until <= now ? open_up(breaker, config, now) : none(breaker);
}

void breaker_take(struct breaker *breaker, int64_t count, int64_t limit_ms, instant now)
{
    assert(count > 0);
    if (breaker->saved.state != BREAKER_HALF_OPEN)
        return;
    breaker->taken += count;
    breaker->limit_ms = limit_ms;
    breaker->saved.until = instant_add(now, limit_ms);
}

void breaker_give_back(struct breaker *breaker, uint32_t epoch, int64_t count)
{
    assert(count >= 0);
    if (breaker->saved.state != BREAKER_HALF_OPEN || epoch != breaker->epoch)
        return;
    breaker->taken -= count;
    await_looks(breaker);
}

struct breaker_change breaker_reset(struct breaker *breaker, instant now)
{
    breaker->saved.openings = 0;
    breaker->looks_soon = 0;
    return change_to(breaker, BREAKER_CLOSED, INSTANT_NONE, now);
}

void breaker_restore(struct breaker *breaker, const struct breaker_config *config, const struct breaker_saved *saved,
                     instant now)
{
    breaker_init(breaker, now);
    if (!config->enabled || saved->state == BREAKER_CLOSED)
        return;
    breaker->saved = *saved;
    breaker->saved.openings = saved->openings > 0 ? saved->openings : 1;
    if (saved->state == BREAKER_HALF_OPEN || saved->until == INSTANT_NONE) {
        breaker->saved.state = BREAKER_OPEN;
        breaker->saved.until = now;
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
