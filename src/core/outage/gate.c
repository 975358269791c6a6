#include "core/outage/gate.h"

#include <assert.h>

static struct gate_news no_news(const struct gate *gate)
{
    enum breaker_state breaker = gate->breaker.saved.state;
    enum mode mode = gate->contingency.saved.mode;
    return (struct gate_news){
        .breaker = { .from = breaker, .to = breaker, .at = INSTANT_NONE, .until = INSTANT_NONE },
        .mode = { .from = mode, .to = mode, .at = INSTANT_NONE },
    };
}

static enum mode mode_of(const struct gate *gate)
{
    assert(gate->contingency.saved.mode < MODE_COUNT);
    return gate->contingency.saved.mode;
}

static bool holds(const struct gate *gate)
{
    return mode_of(gate) != MODE_NORMAL || gate->breaker.saved.state != BREAKER_CLOSED || block_holds(&gate->block);
}

/* After whatever may have changed that: what comes back within a window of the breaker's is the same outage. */
static void heed_outage(struct gate *gate, instant now)
{
    assert(gate->rules);
    if (holds(gate))
        outage_holds(&gate->outage, gate->rules->breaker.enabled ? gate->rules->breaker.window_ms : 0, now);
    else
        outage_ends(&gate->outage, now);
}

/* A destination that comes back is counted anew: what the breaker saw is what led to contingency. */
static void mode_changed(struct gate *gate, struct gate_news *news, struct mode_change change, instant now)
{
    assert(change.from < MODE_COUNT && change.to < MODE_COUNT);
    news->mode = change;
    if (change.from != change.to && change.to == MODE_RECOVERING)
        news->breaker = breaker_reset(&gate->breaker, now);
    if (change.from != change.to && change.to == MODE_CONTINGENCY)
        concurrency_outage(&gate->adaptive);
}

void gate_init(struct gate *gate, const struct gate_rules *rules, instant now, instant first_check_at)
{
    assert(rules && rules->concurrency > 0);
    *gate = (struct gate){
        .concurrency = rules->concurrency,
        .closed_until = INSTANT_NONE,
        .ticked_at = INSTANT_NONE,
        .rules = rules,
        .was_open = true,
        .cycle_until = INSTANT_NONE,
        .reported_at = INSTANT_NONE,
    };
    concurrency_init(&gate->adaptive, rules->concurrency, !rules->fixed_concurrency);
    breaker_init(&gate->breaker, now);
    contingency_init(&gate->contingency, now);
    outage_init(&gate->outage);
    block_init(&gate->block);
    health_init(&gate->health, first_check_at);
}

void gate_configure(struct gate *gate, const struct gate_rules *rules, instant now)
{
    assert(rules && rules->concurrency > 0);
    if (!gate->rules) {
        struct gate before = *gate;
        gate_init(gate, rules, now, now);
        gate->rules_epoch = before.rules_epoch + 1;
        gate->under_way = before.under_way;
        gate->paused = before.paused;
        gate->block = before.block;
        gate->closed_until = before.closed_until;
        return;
    }
    gate->rules = rules;
    gate->rules_epoch++;
    gate->concurrency = rules->concurrency;
    concurrency_configure(&gate->adaptive, rules->concurrency, !rules->fixed_concurrency);
    if (gate->contingency.saved.step > rules->contingency.ramp_count)
        gate->contingency.saved.step = rules->contingency.ramp_count;
}

struct gate_saved gate_save(const struct gate *gate)
{
    return (struct gate_saved){
        .paused = gate->paused,
        .closed_until = gate->closed_until,
        .breaker = gate->breaker.saved,
        .contingency = gate->contingency.saved,
        .outage = gate->outage,
        .block = gate->block.saved,
    };
}

void gate_restore(struct gate *gate, const struct gate_saved *saved, instant now)
{
    assert(gate->rules);
    gate->paused = saved->paused;
    gate->closed_until = saved->closed_until;
    block_restore(&gate->block, &saved->block);
    gate->was_open = !saved->paused && !block_holds(&gate->block);
    breaker_restore(&gate->breaker, &gate->rules->breaker, &saved->breaker, now);
    contingency_restore(&gate->contingency, &gate->rules->contingency, &saved->contingency, now);
    gate->outage = saved->outage;
    heed_outage(gate, now);
}

/* ---- asking ---- */

static bool closed(const struct gate *gate, instant now)
{
    return gate->closed_until != INSTANT_NONE && gate->closed_until > now;
}

/* A cycle that would end later than a whole one from now is of a clock that was set back. */
bool gate_cycle_over(const struct gate *gate, instant now)
{
    assert(gate->rules);
    return gate->cycle_until == INSTANT_NONE || gate->cycle_until <= now ||
           gate->cycle_until > instant_add(now, gate->rules->cycle_every_ms);
}

void gate_narrow(struct gate_answer *answer, enum gate_hold hold, int64_t room, instant until)
{
    assert(room >= 0 && hold < HOLD_COUNT);
    if (room >= answer->room)
        return;
    answer->room = room;
    if (room == 0) {
        answer->hold = hold;
        answer->until = until;
    }
}

static void narrow_by_rules(const struct gate *gate, instant now, struct gate_answer *answer)
{
    assert(gate->rules && gate->adaptive.limit >= 1);
    const struct gate_rules *rules = gate->rules;
    struct contingency_answer mode = contingency_ask(&gate->contingency, &rules->contingency, gate->under_way, now);
    gate_narrow(answer, mode.maintenance ? HOLD_MAINTENANCE : HOLD_CONTINGENCY, mode.room, mode.until);
    if (mode_of(gate) == MODE_NORMAL) {
        struct breaker_answer breaker = breaker_ask(&gate->breaker, &rules->breaker, now);
        gate_narrow(answer, HOLD_BREAKER, breaker.room, breaker.until);
    }
    if (closed(gate, now))
        gate_narrow(answer, HOLD_THROTTLE, 0, gate->closed_until);
    if (rules->cycle_every_ms > 0 && rules->cycle_batch > 0) {
        int64_t taken = gate_cycle_over(gate, now) ? 0 : gate->cycle_taken;
        gate_narrow(answer, HOLD_CYCLE, taken < rules->cycle_batch ? rules->cycle_batch - taken : 0, gate->cycle_until);
    }
    int64_t limit = gate->adaptive.limit;
    gate_narrow(answer, HOLD_CONCURRENCY, gate->under_way < limit ? limit - gate->under_way : 0, INSTANT_NONE);
}

struct gate_answer gate_ask(const struct gate *gate, instant now)
{
    struct gate_answer answer = { .room = INT64_MAX, .hold = HOLD_NONE, .until = INSTANT_NONE };
    assert(gate->under_way >= 0 && gate->concurrency > 0);
    if (gate->paused) {
        gate_narrow(&answer, HOLD_PAUSED, 0, INSTANT_NONE);
        return answer;
    }
    if (block_holds(&gate->block))
        gate_narrow(&answer, HOLD_BLOCKED, block_looks(&gate->block, now) ? 1 : 0, gate->block.saved.look_at);
    if (gate->rules)
        narrow_by_rules(gate, now, &answer);
    else if (closed(gate, now))
        gate_narrow(&answer, HOLD_THROTTLE, 0, gate->closed_until);
    int64_t room = gate->concurrency - gate->under_way;
    gate_narrow(&answer, HOLD_CONCURRENCY, room > 0 ? room : 0, INSTANT_NONE);
    return answer;
}

bool gate_flows(const struct gate *gate, instant now)
{
    if (gate->paused || block_holds(&gate->block) || closed(gate, now))
        return false;
    return !gate->rules || (gate->rules->cycle_every_ms == 0 && mode_of(gate) == MODE_NORMAL &&
                            gate->breaker.saved.state == BREAKER_CLOSED);
}

int64_t gate_slots(const struct gate *gate)
{
    assert(gate->concurrency > 0);
    const struct gate_rules *rules = gate->rules;
    if (!rules)
        return gate->concurrency;
    const struct contingency_rules *ramp = &rules->contingency;
    int64_t count = gate->adaptive.limit;
    if (mode_of(gate) == MODE_RECOVERING && ramp->ramp_count > 0) {
        size_t step = gate->contingency.saved.step < ramp->ramp_count ? gate->contingency.saved.step : ramp->ramp_count - 1;
        count = ramp->ramp[step] < count ? ramp->ramp[step] : count;
    }
    if (rules->cycle_every_ms > 0 && rules->cycle_batch > 0 && rules->cycle_batch < count)
        count = rules->cycle_batch;
    return count > 0 ? count : 1;
}

bool gate_looks(const struct gate *gate)
{
    return gate->rules && (mode_of(gate) == MODE_CONTINGENCY || block_holds(&gate->block) ||
                           (mode_of(gate) == MODE_NORMAL && gate->breaker.saved.state == BREAKER_HALF_OPEN));
}

bool gate_is_well(const struct gate *gate, instant now)
{
    return !gate->paused && !closed(gate, now) && !holds(gate) && gate->health.failures == 0;
}

int64_t gate_signs(const struct gate *gate)
{
    assert(gate->contingency.signs_in_a_row >= 0);
    return gate->contingency.signs_in_a_row;
}

instant gate_next(const struct gate *gate, instant now)
{
    const struct gate_rules *rules = gate->rules;
    instant next = INSTANT_NONE;
    instant_hasten(&next, gate->closed_until, now);
    if (block_holds(&gate->block))
        instant_hasten(&next, gate->block.saved.look_at, now);
    if (!rules)
        return next;
    instant_hasten(&next, gate->cycle_until, now);
    instant_hasten(&next, contingency_next(&gate->contingency, &rules->contingency, now), now);
    if (mode_of(gate) == MODE_NORMAL)
        instant_hasten(&next, breaker_next(&gate->breaker, now), now);
    if (rules->health_every_ms > 0)
        instant_hasten(&next, health_next(&gate->health, rules->health_every_ms, now), now);
    return next;
}

/* ---- what happens ---- */

/* An opening is reported to the mode, which may hold on its own terms from then on. */
static void breaker_changed(struct gate *gate, struct gate_news *news, struct breaker_change change, instant now)
{
    assert(change.from <= BREAKER_HALF_OPEN && change.to <= BREAKER_HALF_OPEN);
    news->breaker = change;
    if (change.to != BREAKER_OPEN || change.from == BREAKER_OPEN)
        return;
    concurrency_outage(&gate->adaptive);
    news->mode = contingency_breaker(&gate->contingency, &gate->rules->contingency, now);
}

/*
 * A clock that was set back must not make a pause longer than was asked for: the pause goes back with it. Over a restart
 * only the bound on what may be asked for is known.
 */
static void heed_clock(struct gate *gate, instant now)
{
    assert(gate->rules);
    bool back = gate->ticked_at != INSTANT_NONE && now < gate->ticked_at;
    int64_t most = gate->rules->closed_max_ms;
    if (back && closed(gate, now))
        gate->closed_until -= gate->ticked_at - now;
    if (most > 0 && gate->closed_until != INSTANT_NONE && gate->closed_until > instant_add(now, most))
        gate->closed_until = instant_add(now, most);
    gate->ticked_at = now;
}

/* A limit that was reported is no news. A clock that was put back must not silence it. */
static struct limit_change limit_news(struct gate *gate, instant now)
{
    assert(gate->adaptive.limit >= 1 && gate->adaptive.limit <= gate->adaptive.max);
    const struct concurrency *concurrency = &gate->adaptive;
    bool soon = gate->reported_at != INSTANT_NONE && gate->reported_at <= now &&
                now - gate->reported_at < LIMIT_REPORTED_EVERY_MS;
    if (concurrency_reason(concurrency) != LIMIT_BORNE || concurrency->limit == gate->reported_limit || soon)
        return (struct limit_change){ .fell = false };
    gate->reported_limit = concurrency->limit;
    gate->reported_at = now;
    return (struct limit_change){ .fell = true, .limit = concurrency->limit, .from = concurrency->fell_from,
                                  .sign = concurrency->fell_for };
}

struct gate_news gate_tick(struct gate *gate, instant now)
{
    struct gate_news news = no_news(gate);
    if (!gate->rules)
        return news;
    heed_clock(gate, now);
    const struct gate_rules *rules = gate->rules;
    bool open = !gate->paused && !block_holds(&gate->block) && !closed(gate, now);
    bool well = gate->health.up && gate->health.failures == 0;
    mode_changed(gate, &news, contingency_tick(&gate->contingency, &rules->contingency, well, open && gate->was_open, now),
                 now);
    gate->was_open = open;
    if (mode_of(gate) == MODE_NORMAL && news.mode.from == news.mode.to)
        breaker_changed(gate, &news, breaker_tick(&gate->breaker, &rules->breaker, now), now);
    news.limit = limit_news(gate, now);
    heed_outage(gate, now);
    return news;
}

struct gate_pass gate_take(struct gate *gate, int64_t count, instant now)
{
    assert(count > 0);
    bool look = gate_looks(gate);
    gate->under_way += count;
    if (block_holds(&gate->block))
        block_looked(&gate->block, now);
    if (!gate->rules)
        return (struct gate_pass){ .rules_epoch = gate->rules_epoch };
    if (gate_cycle_over(gate, now)) {
        gate->cycle_until = gate->rules->cycle_every_ms > 0 ? instant_add(now, gate->rules->cycle_every_ms) : INSTANT_NONE;
        gate->cycle_taken = 0;
        gate->cycle++;
    }
    gate->cycle_taken += count;
    struct concurrency_pass slot = concurrency_begin(&gate->adaptive, count, gate->under_way, now);
    contingency_take(&gate->contingency, &gate->rules->contingency, count, now);
    if (mode_of(gate) == MODE_NORMAL)
        breaker_take(&gate->breaker, count, gate->rules->contingency.answer_max_ms, now);
    return (struct gate_pass){
        .breaker_epoch = gate->breaker.epoch,
        .mode_epoch = gate->contingency.epoch,
        .rules_epoch = gate->rules_epoch,
        .cycle = gate->cycle,
        .slot = slot,
        .look = look,
        .probe = holds(gate),
    };
}

bool gate_pass_stands(const struct gate *gate, struct gate_pass pass, instant now)
{
    assert(pass.rules_epoch <= gate->rules_epoch);
    return pass.rules_epoch == gate->rules_epoch && pass.mode_epoch == gate->contingency.epoch &&
           pass.breaker_epoch == gate->breaker.epoch && !closed(gate, now) && (pass.look || !block_holds(&gate->block));
}

void gate_give_back(struct gate *gate, struct gate_pass pass, int64_t count)
{
    assert(pass.rules_epoch <= gate->rules_epoch);
    gate->under_way -= count;
    assert(count >= 0 && gate->under_way >= 0);
    if (!gate->rules)
        return;
    concurrency_give_back(&gate->adaptive, pass.slot, count);
    if (pass.cycle == gate->cycle)
        gate->cycle_taken -= count;
    contingency_give_back(&gate->contingency, pass.mode_epoch, count);
    if (mode_of(gate) == MODE_NORMAL)
        breaker_give_back(&gate->breaker, pass.breaker_epoch, count);
}

struct gate_news gate_note(struct gate *gate, struct gate_pass pass, const struct gate_result *result, instant now)
{
    assert(pass.rules_epoch <= gate->rules_epoch && gate->under_way > 0);
    struct gate_news news = no_news(gate);
    bool judged = result->sent && result->outcome != OUTCOME_NONE && result->outcome != OUTCOME_BLOCKED;
    if (!judged || !gate->rules) {
        gate_give_back(gate, pass, 1); /* it says nothing about how the destination is; another may take its place */
        return news;
    }
    const struct gate_rules *rules = gate->rules;
    enum criterion criterion = criterion_of(result->outcome, result->code);
    bool failed = criterion != CRITERION_NONE, normal = mode_of(gate) == MODE_NORMAL;
    assert(gate->under_way > 0);
    struct concurrency_answer answer = { .good = !failed, .asked = result->asked, .latency_ms = result->latency_ms };
    concurrency_answer(&gate->adaptive, pass.slot, &answer, now);
    gate->answers += gate->answers < GATE_ANSWERS;
    gate->answer_ms += ((double)result->latency_ms - gate->answer_ms) / (double)gate->answers;
    gate->under_way--;
    const struct contingency_answered answered = { .epoch = pass.mode_epoch, .job = result->job, .criterion = criterion,
                                                   .away = criterion_away(result->outcome, result->code),
                                                   .used = outage_used(&gate->outage, result->look_failed_at) };
    const struct breaker_call call = { .epoch = pass.breaker_epoch, .job = result->job, .tenant = result->tenant,
                                       .failed = failed, .away = answered.away, .latency_ms = result->latency_ms };
    if (!failed)
        outage_went_well(&gate->outage, now);
    mode_changed(gate, &news, contingency_note(&gate->contingency, &rules->contingency, &answered, now), now);
    if (normal && mode_of(gate) == MODE_NORMAL)
        breaker_changed(gate, &news, breaker_note(&gate->breaker, &rules->breaker, &call, now), now);
    heed_outage(gate, now);
    return news;
}

void gate_close_until(struct gate *gate, instant until)
{
    if (gate->closed_until == INSTANT_NONE || until > gate->closed_until)
        gate->closed_until = until;
}

bool gate_health_due(const struct gate *gate, instant now)
{
    return gate->rules && gate->rules->health_every_ms > 0 && health_due(&gate->health, gate->rules->health_every_ms, now);
}

void gate_health_begin(struct gate *gate, instant now)
{
    health_begin(&gate->health, gate->rules->health_every_ms, now);
}

struct gate_news gate_health(struct gate *gate, bool well, instant now)
{
    struct gate_news news = no_news(gate);
    if (!gate->rules || gate->rules->health_every_ms == 0)
        return news; /* a reload took the check away while it was under way */
    news.health = health_note(&gate->health, gate->rules->health_failures, well);
    mode_changed(gate, &news, contingency_health(&gate->contingency, &gate->rules->contingency, well, news.health, now),
                 now);
    heed_outage(gate, now);
    return news;
}

bool gate_takes_used(const struct gate *gate, instant now)
{
    if (mode_of(gate) == MODE_NORMAL)
        return gate->breaker.used_look_at <= now;
    return mode_of(gate) == MODE_RECOVERING ||
           contingency_used_look_at(&gate->contingency, &gate->rules->contingency) <= now;
}

struct gate_news gate_exhausted(struct gate *gate, const struct contingency_end *end, instant now, bool *ret_keep)
{
    struct gate_news news = no_news(gate);
    bool keep = false;
    if (gate->rules) {
        bool failing = gate->health.failures > 0;
        mode_changed(gate, &news,
                     contingency_exhausted(&gate->contingency, &gate->rules->contingency, failing, end, now, &keep), now);
        heed_outage(gate, now);
    }
    *ret_keep = keep;
    return news;
}

struct gate_news gate_enter_contingency(struct gate *gate, instant now)
{
    struct gate_news news = no_news(gate);
    assert(gate->rules);
    mode_changed(gate, &news, contingency_enter(&gate->contingency, &gate->rules->contingency, now), now);
    heed_outage(gate, now);
    return news;
}

struct gate_news gate_leave_contingency(struct gate *gate, instant now)
{
    struct gate_news news = no_news(gate);
    assert(gate->rules);
    mode_changed(gate, &news, contingency_leave(&gate->contingency, &gate->rules->contingency, now), now);
    return news;
}

struct gate_news gate_remove(struct gate *gate, instant now)
{
    struct gate_news news = no_news(gate);
    mode_changed(gate, &news, contingency_remove(&gate->contingency, now), now);
    outage_ends(&gate->outage, now);
    return news;
}

const char *gate_hold_name(enum gate_hold hold)
{
    static const char *const names[HOLD_COUNT] = {
        [HOLD_PAUSED] = "paused",           [HOLD_BLOCKED] = "blocked",   [HOLD_CONTINGENCY] = "contingency",
        [HOLD_MAINTENANCE] = "maintenance", [HOLD_BREAKER] = "breaker",   [HOLD_THROTTLE] = "throttle",
        [HOLD_RATE] = "rate",               [HOLD_CYCLE] = "cycle",       [HOLD_CONCURRENCY] = "concurrency",
    };
    assert(hold < HOLD_COUNT);
    return names[hold];
}
