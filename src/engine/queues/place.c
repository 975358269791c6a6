/*
 * How tenants and single jobs stand: for people who ask why.
 */
#include "core/fairness/forecast.h"
#include "engine/loop.h"
#include "engine/outage/modes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum { PLACE_LANES_MAX = 10000 }; /* looked at for one answer; with more, the whole queue counts as before it */

struct tenant_status engine_tenant(const struct engine *engine, int64_t id)
{
    const struct lane_state *lane = lane_find(engine, id);
    if (!lane || !lane->dest->config)
        return (struct tenant_status){ .turns.last_at = INSTANT_NONE, .asked_until = INSTANT_NONE };
    return (struct tenant_status){ .known = true, .turns = turn_figures(&lane->dest->queue.turns, &lane->turn),
                                   .weight = lane->turn.weight, .asked_until = lane->asked.until };
}

struct limit_status limit_status(const struct concurrency *concurrency)
{
    assert(concurrency->limit >= 1 && concurrency->limit <= concurrency->max);
    return (struct limit_status){ .now = concurrency->limit,
                                  .max = concurrency->max,
                                  .reason = concurrency_reason(concurrency),
                                  .sign = concurrency_reason(concurrency) == LIMIT_TRIAL ? concurrency->sign
                                                                                         : concurrency->fell_for,
                                  .fell_from = concurrency->fell_from,
                                  .rises_at = concurrency_rises_at(concurrency) };
}

void limit_words(const struct limit_status *limit, char words[LIMIT_WORDS_BYTES])
{
    bool slow = limit->sign == SIGN_SLOW;
    size_t used = (size_t)snprintf(words, LIMIT_WORDS_BYTES, "%" PRId64 " of %" PRId64 ": ", limit->now, limit->max);
    assert(used < LIMIT_WORDS_BYTES);
    char *rest = words + used;
    size_t room = LIMIT_WORDS_BYTES - used;
    switch (limit->reason) {
    case LIMIT_CONFIGURED:
        snprintf(rest, room, "as configured, it does not adapt");
        break;
    case LIMIT_MAX:
        snprintf(rest, room, "all that is configured");
        break;
    case LIMIT_STARTS:
        snprintf(rest, room, "it starts at %d and doubles while answers are good", CONCURRENCY_FIRST);
        break;
    case LIMIT_BORNE:
        snprintf(rest, room, "with %" PRId64 " at once %s", limit->fell_from, slow ? "answers took longer" : "more failed");
        break;
    case LIMIT_RISES:
        snprintf(rest, room, "it rises step by step while answers are good");
        break;
    case LIMIT_TRIAL:
        snprintf(rest, room, "half is tried, to see whether the load is why %s",
                 slow ? "answers take longer" : "so many fail");
        break;
    case LIMIT_OUTAGE:
        snprintf(rest, room, "no answer was good; with the first good one it starts at %d again", CONCURRENCY_FIRST);
        break;
    }
}

/*
 * Jobs of the other lane that go before the one with `ahead` of its own before it. On the way back from an outage a lane
 * that matters less has its turn of each round after it, as far as it is known what the job's own lane has that matters.
 */
static int64_t other_before(const struct lane_state *lane, int64_t ahead, const struct lane_state *other)
{
    assert(lane->dest == other->dest && ahead >= 0);
    const struct turns *turns = &lane->dest->queue.turns;
    int64_t share = turns_share(turns, &lane->turn), other_share = turns_share(turns, &other->turn);
    bool ordered = lane->dest->queue.order.class != RETURN_UNKNOWN && lane->order.class != RETURN_UNKNOWN &&
                   ahead < lane->order.left;
    /* One that was not looked at yet most likely has what most have. */
    enum return_class class = other->order.class == RETURN_UNKNOWN ? RETURN_HELD : other->order.class;
    bool later = ordered && class > lane->order.class;
    if (later && ahead < share)
        return 0;
    return forecast_others(later ? ahead - share : ahead, share, other_share, other->ready);
}

static int64_t lane_before(const struct lane_state *lane, int64_t ahead, const struct lane_state *other)
{
    return other != lane && other->ready > 0 ? other_before(lane, ahead, other) : 0;
}

static const struct lane_state *lane_of(const struct turn *turn)
{
    return (const struct lane_state *)((const char *)turn - offsetof(struct lane_state, turn));
}

/* Jobs of other tenants that go before the one with `ahead` of its own before it. */
static int64_t others_before(const struct lane_state *lane, int64_t ahead)
{
    const struct dest *dest = lane->dest;
    const struct turns *turns = &dest->queue.turns;
    int64_t rest = dest->queue.ready > lane->ready ? dest->queue.ready - lane->ready : 0;
    int64_t before = 0;
    const struct turn *turn;
    if (!turns->settings.round_robin || turns_count(turns) > PLACE_LANES_MAX)
        return rest;
    for (size_t i = 0; (turn = turns_at(turns, i)); i++)
        before += lane_before(lane, ahead, lane_of(turn));
    for (size_t i = 0; (turn = turns_aside_at(turns, i)); i++)
        before += lane_before(lane, ahead, lane_of(turn));
    for (const struct share *share = dest->queue.shares.passed; share; share = share->next_passed) {
        const struct lane_state *other =
            (const struct lane_state *)((const char *)share - offsetof(struct lane_state, share));
        before += other->turn.parked.position > 0 ? lane_before(lane, ahead, other) : 0;
    }
    assert(before >= 0 && rest >= 0);
    return before < rest ? before : rest;
}

static struct forecast_limit limit_of(const struct rate_limiter *limiter, int64_t before, instant now)
{
    struct rate_limiter copy = *limiter; /* asking changes it when the clock was put back */
    int64_t room = limiter->rate.count > 0 ? rate_ask(&copy, now, limiter->burst).room : 0;
    assert(room >= 0);
    return (struct forecast_limit){ .rate = limiter->rate, .room = room, .before = before };
}

/* The limit that holds it longest. */
static void allow(struct queue_place *place, int64_t ms, struct rate rate, const char *name)
{
    if (ms <= place->allowed_ms)
        return;
    place->allowed_ms = ms;
    place->limit = name;
    place->rate = rate;
}

static void allow_by_cycle(const struct gate *gate, instant now, struct queue_place *place)
{
    const struct gate_rules *rules = gate->rules;
    if (rules->cycle_every_ms == 0 || rules->cycle_batch == 0)
        return;
    bool over = gate_cycle_over(gate, now);
    int64_t room = over ? rules->cycle_batch : rules->cycle_batch - gate->cycle_taken;
    int64_t ms = forecast_cycle_ms(place->before, room > 0 ? room : 0, rules->cycle_batch, rules->cycle_every_ms,
                                   over ? rules->cycle_every_ms : gate->cycle_until - now);
    allow(place, ms, (struct rate){ rules->cycle_batch, rules->cycle_every_ms }, "cycle");
}

static void allow_by_limits(const struct lane_state *lane, int64_t ahead, instant now, struct queue_place *place)
{
    const struct dest *dest = lane->dest;
    struct forecast_limit total = limit_of(&dest->rate.limiter, place->before, now);
    struct forecast_limit tenant = limit_of(&lane->rate.limiter, ahead, now);
    allow(place, forecast_limit_ms(&total), total.rate, "rate.total");
    allow(place, forecast_limit_ms(&tenant), tenant.rate, "rate.per_tenant");
    if (!dest_uses_fallback(dest)) /* that has no cycles */
        allow_by_cycle(&dest->gate, now, place);
    if (lane->rate.limiter.rate.count > 0 && tenant.room == 0) {
        struct rate_limiter copy = lane->rate.limiter;
        place->tenant_until = rate_ask(&copy, now, 1).at;
    }
}

/* When sends can begin: now, when a hold ends that ends by time, or INSTANT_NONE when nobody knows. */
static instant begins_at(const struct engine *engine, const struct dest *dest, const struct gate_answer *answer, instant now)
{
    if (dest_dead_full(dest) || engine_store_is_full(engine))
        return INSTANT_NONE;
    switch (answer->hold) {
    case HOLD_PAUSED:
    case HOLD_BLOCKED:
    case HOLD_CONTINGENCY:
        return INSTANT_NONE;
    case HOLD_MAINTENANCE:
    case HOLD_BREAKER:
    case HOLD_THROTTLE:
        return answer->until;
    default:
        return now; /* the limits say the rest */
    }
}

struct queue_place engine_place(const struct engine *engine, int64_t id, int64_t ahead, instant due)
{
    const struct lane_state *lane = lane_find(engine, id);
    struct queue_place place = { .tenant_until = INSTANT_NONE, .asked_until = INSTANT_NONE, .at = INSTANT_NONE };
    if (!lane || !lane->dest->config)
        return place;
    const struct dest *dest = lane->dest;
    const struct gate *gate = dest_uses_fallback(dest) ? &dest->fallback : &dest->gate;
    instant now = engine_now(engine);
    struct rate_limiter rate = dest->rate.limiter;
    struct gate_answer answer = dest_ask(gate, &rate, now);
    if (ahead < 0)
        ahead = lane->ready > 0 ? lane->ready - 1 : 0; /* without itself */
    assert(ahead >= 0);
    place.known = true;
    place.dead_full = lane_dead_full(lane);
    if (lane_asked(lane, now))
        place.asked_until = lane->asked.until;
    enum shares_side side = gate == &dest->fallback ? SIDE_FALLBACK : SIDE_FIRST;
    place.share = shares_part(&dest->queue.shares, side, &lane->share);
    place.slots = dest->queue.shares.sides[side].slots;
    place.share_used = dest_shares(dest, side) && place.share < place.slots && lane->share.held[side] >= place.share;
    place.tenants = turns_count(&dest->queue.turns);
    place.before = ahead + others_before(lane, ahead);
    allow_by_limits(lane, ahead, now, &place);
    instant begin = place.dead_full ? INSTANT_NONE : begins_at(engine, dest, &answer, now);
    if (begin != INSTANT_NONE && place.asked_until > begin)
        begin = place.asked_until;
    if (begin == INSTANT_NONE || dest->config->transport == TRANSPORT_PULL) /* a worker comes when it comes */
        return place;
    int64_t limit = gate_slots(gate), free = limit > gate->under_way ? limit - gate->under_way : 0;
    int64_t work_ms = forecast_work_ms(place.before, free, limit, gate->answer_ms);
    if (work_ms < 0 && !place.limit)
        return place; /* nothing was seen yet, and nothing limits it */
    place.at = instant_add(begin, work_ms > place.allowed_ms ? work_ms : place.allowed_ms);
    if (due > place.at)
        place.at = due;
    return place;
}
