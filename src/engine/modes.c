/*
 * How destinations stand: their gates' rules, and what becomes of what the gates say.
 */
#include "base/log.h"
#include "engine/engine_private.h"

struct gate_rules gate_rules_of(const struct destination_config *config)
{
    if (!config)
        return (struct gate_rules){ .concurrency = 1, .contingency.answer_max_ms = MINUTE_MS };
    const struct contingency_config *contingency = &config->contingency;
    return (struct gate_rules){
        .concurrency = config->concurrency,
        .cycle_every_ms = config->cycle_every_ms,
        .cycle_batch = config->cycle_batch,
        .breaker = config->breaker,
        .contingency = {
            /* Pull workers' answers do not come through the gate: without them nothing could lead back. */
            .enabled = contingency->enabled && config->transport != TRANSPORT_PULL,
            .ramp = contingency->ramp,
            .ramp_count = contingency->ramp_count,
            .stable_ms = contingency->stable_ms,
            .check_ms = contingency->check_ms,
            .windows = contingency->windows,
            .window_count = contingency->maintenance.count,
            .single_event = contingency->activate_on_single_event,
            .answer_max_ms = config->timeout_ms + LEASE_MARGIN_MS,
        },
    };
}

static void tell_mode(const struct dest *dest, const struct mode_change *change)
{
    const char *cause = cause_name(change->cause);
    const char *sign = criterion_name(change->criterion);
    log_event(change->to == MODE_CONTINGENCY ? LOG_WARN : LOG_INFO, "destination_mode",
              FIELD_CSTR("destination", dest->name), FIELD_CSTR("from", mode_name(change->from)),
              FIELD_CSTR("to", mode_name(change->to)), FIELD_CSTR("cause", cause ? cause : ""),
              FIELD_CSTR("sign", sign ? sign : ""));
}

void dest_tell(struct dest *dest, const struct gate_news *news)
{
    const struct breaker_change *breaker = &news->breaker;
    if (breaker->from != breaker->to)
        log_event(breaker->to == BREAKER_OPEN ? LOG_WARN : LOG_INFO, "destination_breaker",
                  FIELD_CSTR("destination", dest->name), FIELD_CSTR("from", breaker_state_name(breaker->from)),
                  FIELD_CSTR("to", breaker_state_name(breaker->to)), FIELD_INSTANT("until", breaker->until));
    if (news->mode.from != news->mode.to)
        tell_mode(dest, &news->mode);
}

void dests_tick(struct engine *engine)
{
    instant now = engine_now(engine);
    for (struct dest *dest = engine->dests; dest; dest = dest->next) {
        if (!dest->config)
            continue;
        struct gate_news news = gate_tick(&dest->gate, now);
        contingency_held(&dest->gate.contingency, dest->ready);
        dest_tell(dest, &news);
    }
}

bool dest_note(struct engine *engine, struct dest *dest, struct gate_pass pass, const struct gate_result *result,
               const struct settlement *settlement)
{
    instant now = engine_now(engine);
    struct gate_news news = gate_note(&dest->gate, pass, result, now);
    bool keep = false;
    dest_tell(dest, &news);
    if (settlement->may_pass) {
        news = gate_exhausted(&dest->gate, now, &keep);
        dest_tell(dest, &news);
    }
    return keep;
}

struct gate_answer dest_ask(const struct dest *dest, struct rate_limiter *rate, instant now)
{
    struct gate_answer answer = gate_ask(&dest->gate, now);
    if (answer.room > 0) {
        struct rate_answer allowed = rate_ask(rate, now, answer.room);
        gate_narrow(&answer, HOLD_RATE, allowed.room, allowed.room == 0 ? rate_ask(rate, now, 1).at : INSTANT_NONE);
    }
    return answer;
}

static void earlier(instant *at, instant other, instant now)
{
    if (other != INSTANT_NONE && other > now && (*at == INSTANT_NONE || other < *at))
        *at = other;
}

instant dest_next(const struct dest *dest, instant now)
{
    if (!dest->config)
        return INSTANT_NONE;
    instant next = gate_next(&dest->gate, now);
    if (turns_count(&dest->turns) > 0) {
        struct rate_limiter rate = dest->rate;
        earlier(&next, rate_ask(&rate, now, 1).at, now);
        earlier(&next, turns_next_due(&dest->turns), now);
    }
    return next;
}
