#include "engine/engine.h"

#include "base/log.h"
#include "engine/alerts/alert_book.h"
#include "engine/alerts/letters.h"
#include "engine/attempt/leases.h"
#include "engine/loop.h"
#include "engine/outage/fallback.h"
#include "engine/outage/modes.h"
#include "engine/reports/schedule.h"

#include <assert.h>
#include <stdlib.h>

instant engine_now(const struct engine *engine)
{
    return engine->ports.now(engine->ports.context);
}

bool engine_is_steward(const struct engine *engine)
{
    return engine->office.stage == OWN_WHOLE && !engine->stopping;
}

bool engine_must_wait(const struct engine *engine)
{
    return engine->out.not_before != INSTANT_NONE && engine->out.not_before > engine_now(engine);
}

bool engine_store_is_full(const struct engine *engine)
{
    return engine->out.full_until != INSTANT_NONE && engine->out.full_until > engine_now(engine);
}

void engine_wake(struct engine *engine)
{
    engine->ports.wake_at(engine->ports.context, engine_now(engine));
}

enum status engine_new(const struct engine_settings *settings, struct engine **ret_engine, struct error *err)
{
    assert(settings->config && settings->ports.now && settings->ports.submit && settings->ports.wake_at);
    struct engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the engine");
    engine->ports = settings->ports;
    engine->mailbox = settings->mailbox;
    engine->config = config_ref(settings->config);
    engine->seed = settings->seed;
    engine->out.not_before = engine->out.full_until = INSTANT_NONE;
    engine->recovery.promote_at = INSTANT_NONE;
    engine->recovery.orphans_after = INSTANT_NONE;
    map_init(&engine->dests.by_name, settings->seed);
    map_init(&engine->leases.held, settings->seed);
    map_init(&engine->lanes.by_id, settings->seed);
    map_init(&engine->lanes.missed, settings->seed);
    map_init(&engine->lanes.unplaced, settings->seed);
    engine->shared = settings->shared_store;
    engine->office.stage = settings->shared_store ? OWN_UNREAD : OWN_WHOLE;
    enum status status = handover_configure(engine, engine->config, err);
    engine->alerts.pending_max = settings->config->pending_max;
    engine->alerts.sources = settings->sources;
    if (status == STATUS_OK && !settings->no_alerts && alerts_new(engine) != STATUS_OK)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for the alerts");
    if (status == STATUS_OK && errors_new(settings->seed, &engine->errors.counted) != STATUS_OK)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for the engine");
    if (status != STATUS_OK) {
        engine_free(engine);
        return status;
    }
    *ret_engine = engine;
    return STATUS_OK;
}

void engine_free(struct engine *engine)
{
    if (!engine)
        return;
    assert(engine_under_way(engine) == 0);
    redrives_release(engine);
    erasures_release(engine);
    outgoing_free(engine->out.filling);
    incidents_release(engine);
    alerts_free(engine);
    schedule_free(engine->schedule);
    letters_free(engine);
    decided_free(engine);
    leased_release(engine);
    handover_release(engine);
    lanes_release(engine);
    errors_free(engine->errors.counted);
    config_unref(engine->config);
    free(engine);
}

enum status engine_start(struct engine *engine, struct store_reader *reader, struct error *err)
{
    assert(reader && !engine->started && !engine->stopping);
    engine->reader = reader;
    enum status status = handover_start(engine, err);
    if (status != STATUS_OK)
        return status;
    engine->started = true;
    engine->recovery.recovering = true;
    engine->recovery.orphans_after = engine->recovery.ripe_at = INSTANT_NONE;
    engine->recovery.promote_at = engine_now(engine);
    engine_wake(engine);
    return STATUS_OK;
}

/* Says once that a destination is held by its dead letters, and once that it is no more. */
static void tell_dead_full(struct dest *dest)
{
    assert(dest->dead.count >= 0 && dest->dead.dying >= 0);
    bool full = dest->dead.dying == 0 ? dest_dead_full(dest) : dest->dead.reported && dest_dead_full(dest);
    if (full == dest->dead.reported)
        return;
    dest->dead.reported = full;
    dest->alerts.due = true;
    log_event(full ? LOG_ERROR : LOG_INFO, full ? "dead_letters_full" : "dead_letters_fit",
              FIELD_CSTR("destination", dest->name), FIELD_INT("dead", dest->dead.count));
}

/* When something will be to do although nothing happens. A time that has come waits for a batch, which wakes by itself. */
static instant next_time(const struct engine *engine, instant now)
{
    instant next = instant_add(now, ORPHANS_EVERY_MS);
    instant_hasten(&next, engine->recovery.orphans_at, now);
    instant_hasten(&next, engine->recovery.promote_at, now);
    instant_hasten(&next, engine->recovery.trim_at, now);
    instant_hasten(&next, engine->out.not_before, now);
    instant_hasten(&next, leases_next(engine), now);
    instant_hasten(&next, auto_redrive_next(engine, now), now);
    instant_hasten(&next, redrives_next(engine), now);
    instant_hasten(&next, erasures_next(engine), now);
    instant_hasten(&next, alerts_next(engine), now);
    instant_hasten(&next, handover_next(engine), now);
    if (engine->questions.again)
        instant_hasten(&next, engine->questions.again_at, now);
    for (const struct dest *dest = engine->dests.first; dest; dest = dest->next)
        instant_hasten(&next, dest_next(dest, now), now);
    assert(next > now);
    return next;
}

/* A clock that was put back by hours must not put off for hours what was due in seconds. */
static void heed_clock(struct engine *engine, instant now)
{
    if (now >= engine->figures.ran_at - SECOND_MS)
        return;
    log_event(LOG_WARN, "clock_put_back", FIELD_INT("ms", engine->figures.ran_at - now));
    engine->out.put_back++;
    engine->out.not_before = engine->out.full_until = INSTANT_NONE;
    if (engine->ahead.from > engine->figures.ran_at)
        engine->ahead.from -= engine->figures.ran_at - now;
    engine->recovery.promote_at = now;
    engine->recovery.orphans_at = now;
    engine->recovery.trim_at = now;
    engine->incidents.trim.at = now;
    engine->errors.at = now;
    alerts_look_again(engine);
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next)
        lanes_unpark_due(dest, INSTANT_MAX); /* who may not go yet is parked again when its turn comes */
    leases_end(engine); /* workers that wait ask again, by the new time */
}

void engine_run(struct engine *engine)
{
    assert(engine->started);
    assert(!engine->questions.asking); /* nobody calls it from inside an answer */
    instant now = engine_now(engine);
    heed_clock(engine, now);
    questions_again(engine);
    recover_orphans(engine);
    settle_answered(engine);
    if (!engine->stopping)
        dests_tick(engine);
    dests_save(engine);
    incidents_save(engine);
    alerts_run(engine);
    errors_save(engine);
    if (!engine->stopping)
        history_run(engine);
    handover_run(engine);
    if (engine->stopping) {
        redrives_run(engine);
        erasures_run(engine);
        for (struct dest *dest = engine->dests.first; dest && rates_save(engine, dest) && history_close(engine, dest);
             dest = dest->next)
            ; /* what a batch has no room for goes with the next */
    } else {
        promote_due(engine);
        if (engine->office.stage == OWN_WHOLE) {
            trim_events(engine);
            incidents_trim(engine);
            reports_send(engine, &engine->schedule);
        }
        lanes_tick(engine);
        for (struct dest *dest = engine->dests.first; dest; dest = dest->next)
            tell_dead_full(dest);
        auto_redrive(engine);
        dead_exports_run(engine);
        redrives_run(engine);
        erasures_run(engine);
        blocks_release(engine);
        probes_start(engine);
        leases_look(engine);
        dispatch_claims(engine);
        leases_expire(engine); /* after the claims: who does not wait gets what is there */
    }
    outgoing_flush(engine);
    engine->figures.ran_at = now;
    engine->ports.wake_at(engine->ports.context, next_time(engine, now));
}

/* One that is named may be new: then it need not be read. */
static void lane_noticed(struct engine *engine, const struct lane_notice *change)
{
    assert(change->lane > 0 && change->ready >= 0);
    struct lane_state *lane;
    enum status status = STATUS_OK;
    if (change->destination.data)
        status = lane_get(engine, change->lane, change->destination, change->tenant, &lane);
    if (status == STATUS_NOT_FOUND)
        return; /* another's */
    if (status == STATUS_NO_MEMORY)
        log_event(LOG_ERROR, "lane_lost", FIELD_INT("lane", change->lane), FIELD_CSTR("error", "no memory"));
    if (change->ready > 0 || change->dead != 0)
        lane_changed(engine, change->lane, change->ready, change->dead);
}

void engine_notice(struct engine *engine, struct notice *notice)
{
    for (size_t i = 0; i < notice->count; i++) {
        const struct lane_notice *change = &notice->lanes[i];
        lane_noticed(engine, change);
        engine->recovery.promote_at = instant_earlier(engine->recovery.promote_at, change->next_at);
    }
    notice_free(notice);
    engine_wake(engine);
}

enum status engine_reload(struct engine *engine, struct config *config, struct error *err)
{
    assert(config && !engine->questions.asking);
    if (engine->stopping)
        return error_set(err, STATUS_CONFLICT, "the engine is stopping");
    enum status status = handover_configure(engine, config, err);
    if (status != STATUS_OK)
        return status;
    struct config *old = engine->config;
    engine->config = config_ref(config);
    config_unref(old); /* sends under way hold their own reference */
    handover_run(engine);
    alerts_look_again(engine);
    blocks_hasten(engine);
    engine_wake(engine);
    return STATUS_OK;
}

void engine_stop(struct engine *engine)
{
    engine->stopping = true;
    handover_stop(engine);
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next)
        dest_lose(engine, dest);
    questions_end(engine);
    assert(engine->ahead.count == 0); /* what was claimed and not sent is given back */
    engine_wake(engine);
}

size_t engine_under_way(const struct engine *engine)
{
    size_t count = engine->out.batches + outgoing_count(engine) + engine->questions.out + redrives_under_way(engine) +
                   erasures_under_way(engine);
    if (engine->stopping && engine->started && engine->errors.counted)
        count += errors_unwritten(engine->errors.counted);
    for (const struct attempt *attempt = engine->attempts.first; attempt; attempt = attempt->next)
        count++;
    int64_t ahead = 0;
    for (const struct dest *dest = engine->dests.first; dest; dest = dest->next) {
        count += dest->check.engine != NULL;
        ahead += dest->ahead.count;
    }
    assert(ahead == engine->ahead.count);
    return count;
}

/* Since when what holds it does, as far as that is known. */
static instant held_since(const struct dest *dest, enum gate_hold hold)
{
    switch (hold) {
    case HOLD_PAUSED:
        return dest->orders.paused_since;
    case HOLD_BLOCKED:
        return dest->gate.block.saved.since;
    case HOLD_CONTINGENCY:
    case HOLD_MAINTENANCE:
        return dest->gate.contingency.saved.since;
    case HOLD_BREAKER:
        return (dest_uses_fallback(dest) ? &dest->fallback : &dest->gate)->breaker.saved.since;
    default:
        return hold != HOLD_NONE && dest->queue.met.hold == hold ? dest->queue.met.since : INSTANT_NONE;
    }
}

/* By the job claimed last, and by when nothing was ready: jobs go about in the order they came. */
static instant next_since(const struct measures *measures)
{
    instant since = measures->head_at > measures->empty_at ? measures->head_at : measures->empty_at;
    return since > 0 ? since : INSTANT_NONE;
}

struct destination_status engine_destination(const struct engine *engine, struct slice name)
{
    const struct dest *dest = dest_find(engine, name);
    if (!dest)
        return (struct destination_status){ .held_since = INSTANT_NONE, .held_until = INSTANT_NONE, .look_at = INSTANT_NONE,
                                            .next_since = INSTANT_NONE, .limit.rises_at = INSTANT_NONE };
    struct rate_limiter rate = dest->rate.limiter;
    bool fallback = dest_uses_fallback(dest);
    struct gate_answer gate = dest_ask(fallback ? &dest->fallback : &dest->gate, &rate, engine_now(engine));
    bool blocked = block_holds(&dest->gate.block);
    bool is_paused = dest->gate.paused || (blocked && !fallback);
    enum mode mode = dest->gate.contingency.saved.mode;
    bool hides = is_paused && mode != MODE_NORMAL;
    assert((gate.room == 0) == (gate.hold != HOLD_NONE));
    if (gate.hold == HOLD_NONE && blocked && !fallback) /* a look may go, and no job is there for it */
        gate = (struct gate_answer){ .hold = HOLD_BLOCKED, .until = dest->gate.block.saved.look_at };
    bool looks = gate.hold == HOLD_CONTINGENCY || gate.hold == HOLD_BLOCKED;
    const char *held_by = gate_hold_name(gate.hold);
    if (!dest->config)
        held_by = "unconfigured";
    else if (!held_by && dest_dead_full(dest))
        held_by = "dead_full";
    else if (!held_by && engine_store_is_full(engine))
        held_by = "store_full";
    return (struct destination_status){
        .known = true,
        .mode = is_paused ? "paused" : mode_name(mode),
        .mode_behind = hides ? mode_name(mode) : NULL,
        .behind_reason = hides ? dest->orders.mode_reason : NULL,
        .held_by = held_by,
        .pause_reason = dest->gate.paused ? dest->orders.pause_reason
                        : blocked         ? dest->block.reason
                                          : dest->orders.mode_reason,
        .cause = cause_name(dest->gate.contingency.saved.cause),
        .mode_since = dest->gate.contingency.saved.since,
        .outage_since = outage_lasts(&dest->gate.outage) ? dest->gate.outage.since : INSTANT_NONE,
        .held_since = dest->config ? held_since(dest, gate.hold) : INSTANT_NONE,
        .held_until = dest->config && !looks ? gate.until : INSTANT_NONE,
        .look_at = dest->config && looks ? gate.until : INSTANT_NONE,
        .under_way = dest->gate.under_way + dest->fallback.under_way,
        .fallback = fallback,
        .concurrency = dest->gate.concurrency,
        .limit = limit_status(&dest->gate.adaptive),
        .breaker = breaker_state_name(dest->gate.breaker.saved.state),
        .lanes_with_work = turns_count(&dest->queue.turns),
        .cycle = dest->trend.cycles.last,
        .tenants_paused = dest->holds.count,
        .next_since = next_since(&dest->measures),
        .pace = dest->trend.pace,
        .second = { .wanted = dest_diverts(dest), .held = block_holds(&dest->fallback.block), .reason = dest->second.reason,
                    .since = dest->fallback.block.saved.since, .look_at = dest->fallback.block.saved.look_at },
    };
}

/* It is held already; a reason without another word leaves the one that was given. */
static void pause_again(struct engine *engine, struct dest *dest, struct slice reason)
{
    assert(dest->gate.paused);
    if (!hold_reason_change(&dest->orders.pause_reason, reason))
        return;
    dest_changed(dest, (struct dest_change){ .change = "pause_reason", .at = engine_now(engine) });
    log_event(LOG_WARN, "destination_pause_reason", FIELD_CSTR("destination", dest->name),
              FIELD_CSTR("reason", dest->orders.pause_reason ? dest->orders.pause_reason : ""));
    engine_wake(engine);
}

enum status engine_pause(struct engine *engine, struct slice destination, struct slice reason, struct error *err)
{
    struct dest *dest = dest_find(engine, destination);
    if (!dest)
        return error_set(err, STATUS_NOT_FOUND, "no destination \"%.*s\"", SLICE_ARG(destination));
    if (dest->gate.paused) {
        pause_again(engine, dest, reason);
        return STATUS_OK;
    }
    hold_reason_set(&dest->orders.pause_reason, reason);
    dest->gate.paused = true;
    dest->orders.paused_since = engine_now(engine);
    dest_changed(dest, (struct dest_change){ .change = "paused", .at = dest->orders.paused_since });
    engine_wake(engine);
    log_event(LOG_WARN, "destination_paused", FIELD_CSTR("destination", dest->name),
              FIELD_CSTR("reason", dest->orders.pause_reason ? dest->orders.pause_reason : ""));
    return STATUS_OK;
}

enum status engine_resume(struct engine *engine, struct slice destination, struct error *err)
{
    struct dest *dest = dest_find(engine, destination);
    if (!dest)
        return error_set(err, STATUS_NOT_FOUND, "no destination \"%.*s\"", SLICE_ARG(destination));
    fallback_resume(engine, dest);
    if (!blocks_resume(engine, dest) && !dest->gate.paused)
        return STATUS_OK;
    free(dest->orders.pause_reason);
    dest->orders.pause_reason = NULL;
    dest->gate.paused = false;
    dest_ask_no_more(engine, dest);
    dest->orders.paused_since = INSTANT_NONE;
    assert(!dest->gate.paused && !block_holds(&dest->gate.block) && !block_holds(&dest->fallback.block));
    dest_changed(dest, (struct dest_change){ .change = "resumed", .at = engine_now(engine) });
    engine_wake(engine);
    log_event(LOG_INFO, "destination_resumed", FIELD_CSTR("destination", dest->name));
    return STATUS_OK;
}

/* The destination that an operator means; NULL: *err says why not. */
static struct dest *dest_to_hold(struct engine *engine, struct slice name, struct error *err)
{
    struct dest *dest = dest_find(engine, name);
    if (dest && dest->config)
        return dest;
    error_set(err, STATUS_NOT_FOUND, "no destination \"%.*s\" is configured", SLICE_ARG(name));
    return NULL;
}

enum status engine_enter_contingency(struct engine *engine, struct slice destination, struct slice reason, struct error *err)
{
    struct dest *dest = dest_to_hold(engine, destination, err);
    if (!dest)
        return STATUS_NOT_FOUND;
    const struct contingency_saved *saved = &dest->gate.contingency.saved;
    instant now = engine_now(engine);
    bool forced = saved->forced && saved->mode == MODE_CONTINGENCY;
    if (forced) {
        if (hold_reason_change(&dest->orders.mode_reason, reason)) {
            dest_changed(dest, (struct dest_change){ .change = "mode_reason", .at = now });
            engine_wake(engine);
        }
        return STATUS_OK;
    }
    hold_reason_set(&dest->orders.mode_reason, reason);
    struct gate_news news = gate_enter_contingency(&dest->gate, now);
    if (news.mode.from == news.mode.to) /* it was held already, but only as long as its checks say */
        news.mode = (struct mode_change){ .from = MODE_COUNT, .to = MODE_CONTINGENCY, .cause = CAUSE_OPERATOR, .at = now };
    dest_tell(dest, &news);
    assert(saved->mode == MODE_CONTINGENCY && saved->forced);
    engine_wake(engine);
    return STATUS_OK;
}

enum status engine_leave_contingency(struct engine *engine, struct slice destination, struct error *err)
{
    struct dest *dest = dest_to_hold(engine, destination, err);
    if (!dest)
        return STATUS_NOT_FOUND;
    struct gate_news news = gate_leave_contingency(&dest->gate, engine_now(engine));
    dest_tell(dest, &news);
    assert(dest->gate.contingency.saved.mode != MODE_CONTINGENCY);
    engine_wake(engine);
    return STATUS_OK;
}

struct engine_figures engine_figures(const struct engine *engine)
{
    struct engine_figures figures = engine->figures;
    if (engine->alerts.book) {
        assert(engine->alerts.book->acked <= engine->alerts.book->count);
        figures.alerts = (int64_t)engine->alerts.book->count;
        figures.alerts_unacked = (int64_t)(engine->alerts.book->count - engine->alerts.book->acked);
    }
    return figures;
}
