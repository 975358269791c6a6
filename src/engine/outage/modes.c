/*
 * How destinations stand: their gates' rules, and what becomes of what the gates say.
 */
#include "base/log.h"
#include "engine/loop.h"
#include "engine/outage/cycles.h"
#include "engine/outage/fallback.h"
#include "engine/outage/modes.h"
#include "engine/saved/gate_state.h"
#include "engine/saved/json.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_BYTES_MAX = 1 << 20 };

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

bool dest_uses_fallback(const struct dest *dest)
{
    if (!dest->config || !dest->config->fallback_url || dest->gate.paused || dest->fallback.paused)
        return false;
    /* Where only an operator begins contingency, the breaker knows of outages; half open, it looks at the first address. */
    bool broken = !dest->config->contingency.enabled && dest->gate.breaker.saved.state == BREAKER_OPEN;
    return broken || dest->gate.contingency.saved.mode == MODE_CONTINGENCY;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void tell_mode(struct dest *dest, const struct mode_change *change)
{
    struct dest_change saved = { .change = mode_name(change->to), .cause = cause_name(change->cause),
                                .sign = criterion_name(change->criterion), .at = change->at };
    if (change->to != MODE_CONTINGENCY) {
        free(dest->mode_reason);
        dest->mode_reason = NULL;
    }
    log_event(change->to == MODE_CONTINGENCY ? LOG_WARN : LOG_INFO, "destination_mode",
              FIELD_CSTR("destination", dest->name), FIELD_CSTR("mode", saved.change),
              FIELD_CSTR("cause", or_empty(saved.cause)), FIELD_CSTR("sign", or_empty(saved.sign)),
              FIELD_CSTR("reason", or_empty(dest->mode_reason)));
    dest_changed(dest, saved);
    incident_told(dest, change);
}

static void tell_breaker(struct dest *dest, const struct breaker_change *change)
{
    static const char *const words[] = { [BREAKER_CLOSED] = "breaker_closed", [BREAKER_OPEN] = "breaker_open",
                                         [BREAKER_HALF_OPEN] = "breaker_half_open" };
    log_event(change->to == BREAKER_OPEN ? LOG_WARN : LOG_INFO, "destination_breaker",
              FIELD_CSTR("destination", dest->name), FIELD_CSTR("state", breaker_state_name(change->to)),
              FIELD_INSTANT("until", change->until));
    dest_changed(dest, (struct dest_change){ .change = words[change->to], .at = change->at });
}

static void tell_limit(const struct dest *dest, const struct limit_change *change)
{
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

/* ---- over a restart ---- */

/* Should ever more changes wait than there is room for, the newest takes the place of the one before: the state is whole. */
void dest_changed(struct dest *dest, struct dest_change change)
{
    size_t at = dest->saved.change_count < DEST_CHANGES_MAX ? dest->saved.change_count++ : DEST_CHANGES_MAX - 1;
    dest->saved.changes[at] = change;
    struct slice by = utf8_cut(dest->saved.operator_name, OPERATOR_BYTES - 1);
    if (by.len > 0 && change.by[0] == '\0')
        memcpy(dest->saved.changes[at].by, by.data, by.len);
    saved_waits_changed(&dest->saved.waits);
    dest->alerts.due = true;
}

void engine_operator(struct engine *engine, struct slice destination, struct slice who)
{
    struct dest *dest = dest_find(engine, destination);
    if (dest)
        dest->saved.operator_name = who;
}

static void write_reason(struct json_writer *json, const char *name, const char *reason)
{
    if (reason)
        json_member_text(json, name, reason);
}

/* What an event tells, or the whole of what is kept: only that may be larger than an event. */
static struct slice state_text(const struct dest *dest, const struct dest_change *change, bool whole, struct arena *memory)
{
    struct buffer state;
    struct gate_saved saved = gate_save(&dest->gate);
    if (dest->holds.asked_alone)
        saved.closed_until = INSTANT_NONE; /* the tenant's, and kept with it */
    buffer_init(&state, whole ? STATE_BYTES_MAX : EVENT_DATA_BYTES_MAX);
    struct json_writer json = json_writer(&state);
    json_object_begin(&json);
    json_member_text(&json, "destination", dest->name);
    json_member_text(&json, "change", change->change);
    write_reason(&json, "cause", change->cause);
    write_reason(&json, "sign", change->sign);
    json_member_instant(&json, "at", change->at);
    if (!whole)
        json_member_given(&json, "by", slice_from(change->by));
    write_reason(&json, "reason", dest->pause.reason);
    json_member_instant(&json, "since", dest->pause.since);
    write_reason(&json, "block_reason", dest->block.reason);
    write_reason(&json, "mode_reason", dest->mode_reason);
    if (change->lane) {
        json_member_text(&json, "tenant", change->lane->tenant);
        if (change->lane->hold.held)
            write_reason(&json, "tenant_reason", change->lane->hold.reason);
    }
    if (whole)
        lane_holds_write(&json, dest);
    fallback_state_write(&json, dest);
    if (dest->cycles.last.number > 0 && (whole || change->cycle == dest->cycles.last.number))
        cycle_write(&json, &dest->cycles.last);
    gate_state_write(&json, &saved);
    json_object_end(&json);
    struct slice text =
        buffer_status(&state) == STATUS_OK ? arena_copy(memory, buffer_slice(&state)) : (struct slice){ NULL, 0 };
    buffer_release(&state);
    return text;
}

/* A change on its way to the store. */
struct sent_change {
    struct dest *dest;
    struct dest_change change;
    uint64_t brings; /* all of the destination's changes up to this one; 0: more of them follow */
};

static void dest_saved(const struct op_result *result);

/* False: not now. */
static bool save_first(struct engine *engine, struct dest *dest)
{
    struct store_op *op = outgoing_add(engine, dest_saved, NULL);
    if (!op)
        return false; /* after the batch that is full now */
    op->kind = OP_DESTINATION;
    op->data = state_text(dest, &dest->saved.changes[0], false, outgoing_memory(engine));
    op->save = (struct op_save){ .name = slice_from(dest->name),
                                 .value = state_text(dest, &dest->saved.changes[0], true, outgoing_memory(engine)) };
    struct sent_change *sent =
        outgoing_set_context(engine, &(struct sent_change){ .dest = dest, .change = dest->saved.changes[0] }, sizeof *sent);
    if (!op->data.data || !op->save.value.data || !sent) {
        struct error error;
        outgoing_drop_last(engine); /* again in a moment, but nobody is to wait for memory */
        error_set(&error, STATUS_NO_MEMORY, "no memory for the state of %s", dest->name);
        saved_waits_fail(&dest->saved.waits, &error);
        return false;
    }
    memmove(dest->saved.changes, dest->saved.changes + 1, --dest->saved.change_count * sizeof *dest->saved.changes);
    if (dest->saved.change_count == 0) /* the state is whole, also when one of them had no room */
        sent->brings = dest->saved.waits.told;
    saved_waits_out(&dest->saved.waits);
    return true;
}

/* When it fails the next one brings it. */
static void save_look(struct engine *engine, struct dest *dest)
{
    struct store_op *op = outgoing_add(engine, NULL, NULL);
    if (!op)
        return;
    const struct dest_change look = { .change = "looked", .at = engine_now(engine) };
    op->kind = OP_SAVE;
    op->save = (struct op_save){ .space = SPACE_DESTINATION, .name = slice_from(dest->name),
                                 .value = state_text(dest, &look, true, outgoing_memory(engine)) };
    if (!op->save.value.data)
        outgoing_drop_last(engine);
    dest->saved.looked = false;
}

void dests_save(struct engine *engine)
{
    if (engine_must_wait(engine))
        return;
    for (struct dest *dest = engine->dests; dest; dest = dest->next) {
        while (dest->saved.change_count > 0)
            if (!save_first(engine, dest))
                return;
        if (dest->saved.looked)
            save_look(engine, dest);
    }
}

static void save_again(const struct engine *engine, struct dest *dest, const struct dest_change *change)
{
    size_t at = 0;
    if (engine->stopping || dest->saved.change_count == DEST_CHANGES_MAX)
        return; /* what waits brings the same state */
    while (at < dest->saved.change_count && dest->saved.changes[at].at <= change->at)
        at++;
    memmove(dest->saved.changes + at + 1, dest->saved.changes + at,
            (dest->saved.change_count++ - at) * sizeof *dest->saved.changes);
    dest->saved.changes[at] = *change;
}

static void dest_saved(const struct op_result *result)
{
    const struct sent_change *sent = result->context;
    struct dest *dest = sent->dest;
    struct error error = result->batch->error;
    if (result->applied)
        error.status = STATUS_OK;
    else if (result->batch->status == STATUS_OK)
        error_set(&error, result->op->status, "the store refused it: %s", status_name(result->op->status));
    if (!result->applied)
        save_again(result->engine, dest, &sent->change);
    saved_waits_back(&dest->saved.waits, sent->brings, &error, dest->saved.change_count > 0);
}

void engine_await_saved(struct engine *engine, struct slice destination, struct saved_wait *wait)
{
    struct dest *dest = dest_find(engine, destination);
    assert(dest); /* it was given an order */
    saved_waits_add(&dest->saved.waits, wait, dest->saved.change_count > 0);
}

static char *copy_text(const json_t *root, const char *name)
{
    const char *text = json_string_value(json_object_get(root, name));
    return text ? strdup(text) : NULL; /* without memory it is held all the same, and says less */
}

void dest_restore(struct engine *engine, struct dest *dest, struct slice state)
{
    json_t *root = json_loadb(state.data, state.len, 0, NULL);
    struct gate_saved saved = gate_save(&dest->gate);
    instant since = saved_instant(root, "since");
    gate_state_read(root, &saved);
    gate_restore(&dest->gate, &saved, engine_now(engine));
    if (block_holds(&dest->gate.block))
        dest->block.reason = copy_text(root, json_object_get(root, "block_reason") ? "block_reason" : "reason");
    if (saved.paused)
        dest->pause.reason = copy_text(root, "reason");
    if (saved.paused && since != INSTANT_NONE)
        dest->pause.since = since;
    if (saved.contingency.mode == MODE_CONTINGENCY)
        dest->mode_reason = copy_text(root, "mode_reason");
    cycle_read(root, &dest->cycles.last);
    lane_holds_read(engine, dest, root);
    fallback_state_read(dest, root);
    json_decref(root);
}

/* ---- what happens ---- */

static void tell_fallback(const struct dest *dest, const struct gate_news *news)
{
    if (news->breaker.from != news->breaker.to)
        log_event(news->breaker.to == BREAKER_OPEN ? LOG_WARN : LOG_INFO, "fallback_breaker",
                  FIELD_CSTR("destination", dest->name), FIELD_CSTR("state", breaker_state_name(news->breaker.to)),
                  FIELD_INSTANT("until", news->breaker.until));
}

void dests_tick(struct engine *engine)
{
    instant now = engine_now(engine);
    for (struct dest *dest = engine->dests; dest; dest = dest->next) {
        if (!dest->config) {
            struct gate_news gone = gate_remove(&dest->gate, now); /* nobody would ever see it well again */
            dest_tell(dest, &gone);
            continue;
        }
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
    const struct dest *dest = attempt->dest;
    if (!attempt->send.use_fallback)
        return attempt->pass.probe ? &dest->gate.outage : NULL;
    *memory = dest->gate.outage; /* the first address's; but what goes well elsewhere says nothing about the second */
    memory->good_at = dest->fallback.contingency.well[0].at;
    return memory;
}

bool dest_note(struct attempt *attempt, const struct gate_result *result, const struct settlement *settlement)
{
    struct dest *dest = attempt->dest;
    instant now = engine_now(attempt->engine);
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

/* Rounded, so that what is told is what was applied. */
double dest_backoff_factor(const struct dest *dest, const struct destination_config *config, instant now)
{
    if (!config->adaptive_backoff)
        return 0;
    return floor(adaptive_factor(&dest->adaptive, now) * 1000 + 0.5) / 1000;
}

/* Only sends that say something about waiting longer: a job that is refused for its own sake would be so at any time. */
void dest_note_retry(struct dest *dest, const struct job *job, const struct settlement *settlement, instant now)
{
    enum verdict verdict = settlement->decision.verdict;
    if (job->retry_count == 0 || job->step != STEP_SEND)
        return;
    if (verdict == VERDICT_COMPLETE || verdict == VERDICT_POLL)
        adaptive_note(&dest->adaptive, true, now);
    else if (verdict == VERDICT_RETRY || verdict == VERDICT_EXHAUSTED)
        adaptive_note(&dest->adaptive, false, now);
}

struct gate_answer dest_ask(const struct gate *gate, struct rate_limiter *rate, instant now)
{
    struct gate_answer answer = gate_ask(gate, now);
    if (answer.room > 0) {
        struct rate_answer allowed = rate_ask(rate, now, answer.room);
        gate_narrow(&answer, HOLD_RATE, allowed.room, allowed.room == 0 ? rate_ask(rate, now, 1).at : INSTANT_NONE);
    }
    return answer;
}

instant dest_next(const struct dest *dest, instant now)
{
    if (!dest->config)
        return INSTANT_NONE;
    instant next = gate_next(&dest->gate, now);
    if (dest_uses_fallback(dest))
        instant_hasten(&next, gate_next(&dest->fallback, now), now);
    if (turns_count(&dest->queue.turns) > 0) {
        struct rate_limiter rate = dest->rate.limiter;
        instant_hasten(&next, rate_ask(&rate, now, 1).at, now);
        instant_hasten(&next, turns_next_due(&dest->queue.turns), now);
        if (dest->queue.shares.passed)
            instant_hasten(&next, shares_next(&dest->queue.shares), now);
    }
    return next;
}
