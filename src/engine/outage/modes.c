/*
 * How destinations stand: their gates' rules, and what becomes of what the gates say.
 */
#include "base/log.h"
#include "engine/loop.h"
#include "engine/outage/cycles.h"
#include "engine/outage/fallback.h"
#include "engine/outage/modes.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

struct gate_rules gate_rules_of(const struct engine *engine, const struct destination_config *config)
{
    if (!config)
        return (struct gate_rules){ .concurrency = 1, .contingency.answer_max_ms = MINUTE_MS };
    const struct contingency_config *contingency = &config->contingency;
    bool has_health = engine->ports.probe && config->health.kind != HEALTH_NONE;
    bool pulled = config->transport == TRANSPORT_PULL; /* how many at once is the workers' affair */
    return (struct gate_rules){
        .concurrency = pulled ? LEASES_OUT_MAX : config->concurrency,
        .fixed_concurrency = pulled || !config->concurrency_adaptive,
        .cycle_every_ms = config->cycle_every_ms,
        .cycle_batch = config->cycle_batch,
        .closed_max_ms = config->policy.retry.retry_after_max_ms,
        .breaker = config->breaker,
        .health_every_ms = has_health ? config->health.every_ms : 0,
        .health_failures = config->health.failures,
        .contingency = {
            .enabled = contingency->enabled,
            .has_health = has_health,
            .ramp = contingency->ramp,
            .ramp_count = contingency->ramp_count,
            .stable_ms = contingency->stable_ms,
            .check_ms = contingency->check_ms,
            .windows = contingency->windows,
            .window_count = contingency->maintenance.count,
            .single_event = contingency->activate_on_single_event,
            .answer_max_ms = pulled ? LEASE_ANSWER_MAX_MS : config->timeout_ms + LEASE_MARGIN_MS,
        },
    };
}

struct gate_rules fallback_rules_of(const struct destination_config *config)
{
    if (!config)
        return (struct gate_rules){ .concurrency = 1, .contingency.answer_max_ms = MINUTE_MS };
    return (struct gate_rules){ .concurrency = config->concurrency, .fixed_concurrency = !config->concurrency_adaptive,
                                .breaker = config->breaker,
                                .closed_max_ms = config->policy.retry.retry_after_max_ms,
                                .contingency.answer_max_ms = config->timeout_ms + LEASE_MARGIN_MS };
}

bool dest_diverts(const struct dest *dest)
{
    if (!dest->config || !dest->config->fallback_url || dest->gate.paused)
        return false;
    /* Where only an operator begins contingency, the breaker knows of outages; half open, it looks at the first address. */
    bool broken = !dest->config->contingency.enabled && dest->gate.breaker.saved.state == BREAKER_OPEN;
    return broken || dest->gate.contingency.saved.mode == MODE_CONTINGENCY;
}

bool dest_uses_fallback(const struct dest *dest)
{
    return dest_diverts(dest) && !block_holds(&dest->fallback.block);
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void tell_mode(struct dest *dest, const struct mode_change *change)
{
    assert(change->to < MODE_COUNT && change->from != change->to);
    struct dest_change saved = { .change = mode_name(change->to), .cause = cause_name(change->cause),
                                .sign = criterion_name(change->criterion), .at = change->at };
    if (change->to != MODE_CONTINGENCY) {
        free(dest->orders.mode_reason);
        dest->orders.mode_reason = NULL;
    }
    log_event(change->to == MODE_CONTINGENCY ? LOG_WARN : LOG_INFO, "destination_mode",
              FIELD_CSTR("destination", dest->name), FIELD_CSTR("mode", saved.change),
              FIELD_CSTR("cause", or_empty(saved.cause)), FIELD_CSTR("sign", or_empty(saved.sign)),
              FIELD_CSTR("reason", or_empty(dest->orders.mode_reason)));
    dest_changed(dest, saved);
    incident_mode_changed(dest, change);
}

static void tell_breaker(struct dest *dest, const struct breaker_change *change)
{
    assert(change->to <= BREAKER_HALF_OPEN && change->from != change->to);
    static const char *const words[] = { [BREAKER_CLOSED] = "breaker_closed", [BREAKER_OPEN] = "breaker_open",
                                         [BREAKER_HALF_OPEN] = "breaker_half_open" };
    log_event(change->to == BREAKER_OPEN ? LOG_WARN : LOG_INFO, "destination_breaker",
              FIELD_CSTR("destination", dest->name), FIELD_CSTR("state", breaker_state_name(change->to)),
              FIELD_INSTANT("until", change->until));
    dest_changed(dest, (struct dest_change){ .change = words[change->to], .at = change->at });
}

static void tell_limit(const struct dest *dest, const struct limit_change *change)
{
    assert(change->fell && change->limit >= 1);
    log_event(LOG_INFO, "destination_concurrency", FIELD_CSTR("destination", dest->name), FIELD_INT("limit", change->limit),
              FIELD_INT("from", change->from), FIELD_CSTR("sign", change->sign == SIGN_SLOW ? "slow" : "failures"));
}

/* A breaker that opens and brings contingency, or is closed by its end, is part of that. */
void dest_tell(struct dest *dest, const struct gate_news *news)
{
    if (news->mode.from != news->mode.to)
        tell_mode(dest, &news->mode);
    else if (news->breaker.from != news->breaker.to)
        tell_breaker(dest, &news->breaker);
    if (news->limit.fell)
        tell_limit(dest, &news->limit);
}

/* ---- what happens ---- */

static void tell_fallback(const struct dest *dest, const struct gate_news *news)
{
    assert(news->mode.from == news->mode.to); /* it has none */
    if (news->breaker.from != news->breaker.to)
        log_event(news->breaker.to == BREAKER_OPEN ? LOG_WARN : LOG_INFO, "fallback_breaker",
                  FIELD_CSTR("destination", dest->name), FIELD_CSTR("state", breaker_state_name(news->breaker.to)),
                  FIELD_INSTANT("until", news->breaker.until));
}

void dests_tick(struct engine *engine)
{
    instant now = engine_now(engine);
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next) {
        if (!dest->config) {
            struct gate_news gone = gate_remove(&dest->gate, now); /* nobody would ever see it well again */
            dest_tell(dest, &gone);
            continue;
        }
        assert(dest->own.stage != OWN_UNREAD);
        struct gate_news news = gate_tick(&dest->gate, now);
        contingency_held(&dest->gate.contingency, dest->queue.ready);
        dest_tell(dest, &news);
        dest_cycle_tick(dest, now);
        measures_tick(dest, now);
        news = gate_tick(&dest->fallback, now);
        tell_fallback(dest, &news);
    }
}

struct contingency_end job_end(const struct job *job, struct slice code, const struct settlement *settlement, instant now)
{
    return (struct contingency_end){
        .job = job->seq,
        .failed_at = job->failed_at != INSTANT_NONE ? job->failed_at : now,
        .away = criterion_away(settlement->decision.outcome, code),
    };
}

bool job_waits_alone(const struct gate *gate, const struct job *job)
{
    return gate && job->look_failed_at != INSTANT_NONE &&
           contingency_served(&gate->contingency, job->seq, job->look_failed_at);
}

static bool dest_spares(struct dest *dest, const struct job *job, struct gate_pass pass, struct slice code,
                 const struct settlement *settlement, instant now)
{
    bool spares = false;
    if (settlement->spared)
        contingency_unspent(&dest->gate.contingency, 1);
    dest->saved.looked = dest->saved.looked || pass.look;
    if (!settlement->may_pass || pass.probe)
        return false; /* a look's failure was the job's own by then */
    const struct contingency_end end = job_end(job, code, settlement, now);
    struct gate_news news = gate_exhausted(&dest->gate, &end, now, &spares);
    dest_tell(dest, &news);
    if (spares)
        contingency_unspent(&dest->gate.contingency, 1);
    return spares;
}

const struct outage *attempt_outage(const struct attempt *attempt, struct outage *memory)
{
    assert(attempt->send.use_fallback == (attempt->side == SIDE_FALLBACK));
    const struct dest *dest = attempt->dest;
    if (!attempt->send.use_fallback)
        return attempt->pass.probe ? &dest->gate.outage : NULL;
    *memory = dest->gate.outage; /* the first address's; but what goes well elsewhere says nothing about the second */
    memory->good_at = dest->fallback.contingency.well[0].at;
    return memory;
}

bool dest_note(struct attempt *attempt, const struct gate_result *result, const struct settlement *settlement, instant now)
{
    struct dest *dest = attempt->dest;
    assert(attempt->gate == &dest->gate || attempt->gate == &dest->fallback);
    struct gate_news news = gate_note(attempt->gate, attempt->pass, result, now);
    if (attempt->gate == &dest->fallback) {
        if (settlement->spared)
            contingency_unspent(&dest->gate.contingency, 1);
        tell_fallback(dest, &news);
        return false;
    }
    dest_tell(dest, &news);
    return dest_spares(dest, &attempt->job, attempt->pass, result->code, settlement, now);
}

/* Rounded, so that what is reported is what was applied. */
double dest_backoff_factor(const struct dest *dest, const struct destination_config *config, instant now)
{
    if (!config->adaptive_backoff)
        return 0;
    return floor(adaptive_factor(&dest->trend.adaptive, now) * 1000 + 0.5) / 1000;
}

/* Only sends that say something about waiting longer: a job that is refused for its own sake would be so at any time. */
void dest_note_retry(struct dest *dest, const struct job *job, const struct settlement *settlement, instant now)
{
    assert(job->retry_count >= 0);
    enum verdict verdict = settlement->decision.verdict;
    if (job->retry_count == 0 || job->step != STEP_SEND)
        return;
    if (verdict == VERDICT_COMPLETE || verdict == VERDICT_POLL)
        adaptive_note(&dest->trend.adaptive, true, now);
    else if (verdict == VERDICT_RETRY || verdict == VERDICT_EXHAUSTED)
        adaptive_note(&dest->trend.adaptive, false, now);
}

struct gate_answer dest_ask(const struct gate *gate, struct rate_limiter *rate, instant now)
{
    struct gate_answer answer = gate_ask(gate, now);
    if (answer.room > 0) {
        struct rate_answer allowed = rate_ask(rate, now, answer.room);
        gate_narrow(&answer, HOLD_RATE, allowed.room, allowed.room == 0 ? rate_ask(rate, now, 1).at : INSTANT_NONE);
    }
    assert((answer.room == 0) == (answer.hold != HOLD_NONE));
    return answer;
}

instant dest_next(const struct dest *dest, instant now)
{
    if (!dest->config)
        return INSTANT_NONE;
    instant next = gate_next(&dest->gate, now);
    if (dest_diverts(dest))
        instant_hasten(&next, gate_next(&dest->fallback, now), now);
    if (turns_count(&dest->queue.turns) > 0) {
        struct rate_limiter rate = dest->rate.limiter;
        instant_hasten(&next, rate_ask(&rate, now, 1).at, now);
        instant_hasten(&next, turns_next_due(&dest->queue.turns), now);
        if (dest->queue.shares.passed)
            instant_hasten(&next, shares_next(&dest->queue.shares), now);
    }
    assert(next == INSTANT_NONE || next > now);
    return next;
}
