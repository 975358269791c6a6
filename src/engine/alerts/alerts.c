/*
 * What is read of destinations, tenants and the store, and when.
 */
#include "engine/alerts/alerts.h"

#include "base/log.h"
#include "core/alerting/readings.h"
#include "engine/alerts/alert_book.h"
#include "engine/alerts/letters.h"
#include "engine/alerts/notify.h"
#include "engine/alerts/sources_read.h"
#include "engine/loop.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { OUTAGE_REASON_BYTES = 64 };

void dest_alerts_init(struct dest_alerts *alerts)
{
    *alerts = (struct dest_alerts){
        .breaker_since = INSTANT_NONE, .planned_until = INSTANT_NONE, .age = backlog_age_none(), .ended = share_none()
    };
}

static bool is_watched(const struct dest *dest)
{
    return dest->config && !dest->config->internal;
}

/* ---- what happened ---- */

void alerts_job_dead(struct engine *engine, struct dest *dest, struct slice tenant, struct slice dead_code)
{
    enum alert_kind kind = alert_kind_of_dead(dead_code);
    if (!engine->alerts.book || !is_watched(dest) || slice_equal(tenant, NOTIFY_TENANT))
        return;
    dest->alerts.died++;
    if (slice_equal(dead_code, SLICE("EXPIRED")))
        alerts_jobs_expired(engine, 1);
    if (kind != ALERT_KIND_COUNT)
        dest->alerts.came[kind]++;
    dest->alerts.due = true;
}

void alerts_headers_left_out(struct engine *engine, struct dest *dest)
{
    if (!engine->alerts.book || !is_watched(dest))
        return;
    dest->alerts.came[ALERT_HEADERS_LEFT_OUT]++;
    dest->alerts.due = true;
}

void alerts_jobs_expired(struct engine *engine, int64_t count)
{
    assert(count >= 0);
    engine->alerts.expired_unreported += count;
}

void alerts_store_failed(struct engine *engine, const struct error *err)
{
    assert(err->status != STATUS_OK);
    bool damage = err->status == STATUS_CORRUPT || err->status == STATUS_IO;
    if (!engine->alerts.book || !damage || engine->alerts.damage.status != STATUS_OK)
        return;
    engine->alerts.damage = *err;
    engine->alerts.at = engine_now(engine);
}

void engine_store_damaged(struct engine *engine, const struct error *err)
{
    alerts_store_failed(engine, err);
    engine_wake(engine);
}

void alerts_job_left(struct dest *dest, const struct job *job)
{
    if (slice_equal(job->tenant, NOTIFY_TENANT))
        return;
    dest->alerts.left++;
    dest->alerts.left_created += (double)job->created_at;
}

/* ---- acknowledged ---- */

void dead_acked(struct dest *dest)
{
    dest->alerts.acked = DEAD_ACKED_ALL;
    dest->alerts.acked_late = true;
}

bool dead_acked_save(struct engine *engine, const struct dest *dest)
{
    char value[64];
    if (dest->alerts.acked == DEAD_ACKED_ALL)
        snprintf(value, sizeof value, "{}");
    else
        snprintf(value, sizeof value, "{\"dead\":%" PRId64 "}", dest->alerts.acked);
    return outgoing_save(engine, NULL, NULL, SPACE_DEAD_ACKED, slice_from(dest->name), slice_from(value));
}

/* Those that are gone were acknowledged ones as far as there were any. */
static void count_acked(struct engine *engine, struct dest *dest)
{
    assert(dest->alerts.counted);
    struct dest_alerts *alerts = &dest->alerts;
    if (alerts->acked_late) {
        alerts->acked_late = false;
        return;
    }
    if (alerts->acked <= alerts->counts.dead || engine_must_wait(engine))
        return;
    int64_t before = alerts->acked;
    alerts->acked = alerts->counts.dead;
    if (outgoing_has_room(engine, 1) && dead_acked_save(engine, dest))
        return;
    alerts->acked = before; /* next time */
}

/* ---- a destination ---- */

static void read_state(struct engine *engine, struct dest *dest, enum alert_kind kind, const struct alert_reading *reading,
                       const char *reason)
{
    assert(dest && !alert_types[kind].of_tenant);
    const struct alert_subject subject = { .kind = kind, .dest = dest, .tenant = SLICE(""), .reason = slice_from(reason) };
    alert_read(engine, &subject, reading); /* a state is read again */
}

/* How long it has been so, and never nothing. */
static double lasted(instant since, instant now)
{
    return since < now ? (double)(now - since) : 1;
}

/* Who hears of an outage must not have to look up which of the signs it was. Lives as long as `space` does. */
static const char *outage_reason(const struct dest *dest, char space[static OUTAGE_REASON_BYTES])
{
    const struct incident *incident = &dest->gate.contingency.saved.incident;
    if (dest->orders.mode_reason || incident->cause != CAUSE_SIGNAL)
        return dest->orders.mode_reason ? dest->orders.mode_reason : cause_name(incident->cause);
    snprintf(space, OUTAGE_REASON_BYTES, "%s: %s", cause_name(incident->cause), criterion_name(incident->criterion));
    return space;
}

/* A planned absence is no long outage: that begins when it should be over. */
static instant outage_since(struct dest *dest, bool planned, instant now)
{
    const struct contingency_saved *saved = &dest->gate.contingency.saved;
    instant entered = saved->incident.entered_at != INSTANT_NONE ? saved->incident.entered_at : saved->since;
    if (planned)
        dest->alerts.planned_until = now;
    if (saved->mode == MODE_NORMAL || dest->alerts.planned_until > now)
        dest->alerts.planned_until = INSTANT_NONE;
    return dest->alerts.planned_until > entered ? dest->alerts.planned_until : entered;
}

static void read_outage(struct engine *engine, struct dest *dest, instant now)
{
    assert(is_watched(dest));
    const struct alerts_config *limits = &dest->config->alerts;
    const struct contingency_saved *saved = &dest->gate.contingency.saved;
    const struct breaker_saved *breaker = &dest->gate.breaker.saved;
    bool outage = saved->mode != MODE_NORMAL;
    const struct gate *gate = &dest->gate;
    bool planned = contingency_ask(&gate->contingency, &gate->rules->contingency, gate->under_way, now).maintenance;
    char space[OUTAGE_REASON_BYTES];
    const char *cause = outage ? outage_reason(dest, space) : NULL;
    instant since = outage_since(dest, planned, now);
    read_state(engine, dest, ALERT_CONTINGENCY, &(struct alert_reading){ .watched = true, .value = outage, .limit = 1 },
               cause);
    read_state(engine, dest, ALERT_DOWN,
               &(struct alert_reading){ .watched = limits->down_ms > 0, .excused = planned || saved->mode == MODE_RECOVERING,
                                        .value = outage ? lasted(since, now) : 0, .limit = (double)limits->down_ms },
               cause);
    if (breaker->state == BREAKER_CLOSED)
        dest->alerts.breaker_since = INSTANT_NONE;
    else if (dest->alerts.breaker_since == INSTANT_NONE || dest->alerts.breaker_since > now)
        dest->alerts.breaker_since = breaker->since < now ? breaker->since : now;
    bool closed = dest->alerts.breaker_since == INSTANT_NONE;
    read_state(engine, dest, ALERT_BREAKER_OPEN,
               &(struct alert_reading){ .watched = limits->breaker_open_ms > 0,
                                        .value = closed ? 0 : lasted(dest->alerts.breaker_since, now),
                                        .limit = (double)limits->breaker_open_ms },
               NULL);
}

static void read_jobs(struct engine *engine, struct dest *dest)
{
    assert(is_watched(dest));
    for (int kind = 0; kind < ALERT_KIND_COUNT; kind++) {
        int64_t *came = &dest->alerts.came[kind];
        if (*came == 0 && !(dest->alerts.active & UINT64_C(1) << kind))
            continue;
        if (alert_types[kind].shape != ALERT_COUNT)
            continue;
        const struct alert_subject subject = { .kind = (enum alert_kind)kind, .dest = dest, .tenant = SLICE("") };
        const struct alert_reading reading = { .watched = true, .value = (double)*came,
                                               .limit = (double)dest->config->alerts.quiet_ms,
                                               .gone = dest->alerts.counted && dest->alerts.counts.dead == 0 };
        if (alert_read(engine, &subject, &reading))
            *came = 0;
    }
}

static const struct lane_state *held_lane(const struct dest *dest, struct slice tenant)
{
    const struct lane_state *lane = dest->holds.first;
    while (lane && !slice_equal(slice_from(lane->tenant), tenant))
        lane = lane->hold.next;
    return lane;
}

static void read_blocks(struct engine *engine, struct dest *dest)
{
    bool first = block_holds(&dest->gate.block);
    double which = first ? 1 : block_holds(&dest->fallback.block) ? ALERT_SECOND_ADDRESS : 0;
    read_state(engine, dest, ALERT_BLOCKED, &(struct alert_reading){ .watched = true, .value = which, .limit = 1 },
               first ? dest->block.reason : dest->second.reason);
    bool refused = dest->block.alone_until != INSTANT_NONE && engine_now(engine) < dest->block.alone_until;
    read_state(engine, dest, ALERT_JOB_BLOCKED, &(struct alert_reading){ .watched = true, .value = refused, .limit = 1 },
               dest->block.alone_reason);
    for (const struct lane_state *lane = dest->holds.first; lane; lane = lane->hold.next) {
        assert(lane->hold.held && lane->dest == dest);
        if (!block_holds(&lane->block))
            continue;
        const struct alert_subject subject = { .kind = ALERT_TENANT_BLOCKED, .dest = dest,
                                               .tenant = slice_from(lane->tenant), .reason = slice_from(lane->hold.reason) };
        alert_read(engine, &subject, &(struct alert_reading){ .watched = true, .value = 1, .limit = 1 });
    }
    for (struct alert *alert = dest->alerts.tenants > 0 ? engine->alerts.book->first : NULL, *next; alert; alert = next) {
        next = alert->next;
        if (alert->dest != dest || alert->record.kind != ALERT_TENANT_BLOCKED)
            continue;
        const struct lane_state *lane = held_lane(dest, alert->record.tenant);
        const struct alert_subject subject = { .kind = ALERT_TENANT_BLOCKED, .dest = dest, .tenant = alert->record.tenant };
        if (!lane || !block_holds(&lane->block))
            alert_read(engine, &subject, &(struct alert_reading){ .watched = true });
    }
}

/* All but what needs the store's counts. */
static void read_dest(struct engine *engine, struct dest *dest, instant now)
{
    dest->alerts.due = false;
    if (!is_watched(dest)) {
        if (dest->alerts.active != 0 || dest->alerts.tenants > 0)
            alerts_unwatch(engine, dest);
        return;
    }
    read_outage(engine, dest, now);
    read_blocks(engine, dest);
    bool full = dest_dead_full(dest) || dest->dead.tenants_full > 0;
    read_state(engine, dest, ALERT_DEAD_FULL,
               &(struct alert_reading){ .watched = true, .value = full ? (double)dest->dead.count : 0, .limit = 1 }, NULL);
    read_state(engine, dest, ALERT_DEAD_EXPORT,
               &(struct alert_reading){ .watched = true, .value = (double)dead_exports_refused(dest, now), .limit = 1 },
               dest->exports.refused.reason);
    read_jobs(engine, dest);
}

/* ---- by the store's counts ---- */

static void read_level(struct engine *engine, struct dest *dest, enum alert_kind kind, double value, double limit,
                       bool watched, bool excused)
{
    const struct alert_reading reading = { .watched = watched, .excused = excused, .value = value, .limit = limit };
    read_state(engine, dest, kind, &reading, NULL);
}

static void feed_flows(struct dest *dest, instant now)
{
    assert(is_watched(dest));
    struct dest_alerts *alerts = &dest->alerts;
    const struct alert_counts *is = &alerts->counting, *was = &alerts->counts;
    int64_t completed = alerts->counted ? is->completed - was->completed : 0;
    int64_t cancelled = alerts->counted ? is->cancelled - was->cancelled : 0;
    const struct backlog_flow flow = { .count = is->open, .left = alerts->counted ? completed + cancelled + alerts->died : 0,
                                       .left_known = alerts->left, .left_created = alerts->left_created };
    backlog_age_feed(&alerts->age, &flow, now);
    share_add(&alerts->ended, dest->config->alerts.dead_window_ms, (completed > 0 ? completed : 0) + alerts->died,
              alerts->died, now);
    growth_add(&alerts->growth, is->open, now);
    alerts->died = alerts->left = 0;
    alerts->left_created = 0;
    alerts->counts = *is;
    alerts->counted = true;
}

/* An outage's jobs are old for a reason that is reported already. */
static bool is_held(const struct dest *dest)
{
    return dest->gate.paused || block_holds(&dest->gate.block) || dest->gate.contingency.saved.mode != MODE_NORMAL ||
           dest->gate.breaker.saved.state != BREAKER_CLOSED;
}

/* Whether an alert of its own tells of some of its dead letters. */
static bool tells_of_dead(const struct dest *dest)
{
    uint64_t kinds = 0;
    for (int kind = 0; kind < ALERT_KIND_COUNT; kind++)
        if (alert_types[kind].shape == ALERT_COUNT && alert_ends_by_hand((enum alert_kind)kind))
            kinds |= UINT64_C(1) << kind;
    return (dest->alerts.active & kinds) != 0;
}

/* Those of which no other alert tells: they came before there were any, expired, or a crash came between. */
static void read_dead_letters(struct engine *engine, struct dest *dest)
{
    struct dest_alerts *alerts = &dest->alerts;
    count_acked(engine, dest);
    int64_t unacked = alerts->counts.dead > alerts->acked ? alerts->counts.dead - alerts->acked : 0;
    alerts->unacked = unacked > 0 ? alerts->unacked + 1 : 0;
    assert(unacked >= 0 && alerts->unacked >= 0);
    read_state(engine, dest, ALERT_DEAD_LETTERS,
               &(struct alert_reading){ .watched = true, .excused = alerts->unacked < 2 || tells_of_dead(dest),
                                        .value = (double)unacked, .limit = 1 },
               NULL);
}

static void read_counts(struct engine *engine, struct dest *dest, instant now)
{
    assert(is_watched(dest));
    const struct alerts_config *limits = &dest->config->alerts;
    struct dest_alerts *alerts = &dest->alerts;
    feed_flows(dest, now);
    double open = (double)alerts->counts.open;
    read_level(engine, dest, ALERT_PENDING, open, (double)limits->pending, limits->pending > 0, false);
    read_level(engine, dest, ALERT_GROWTH, open, growth_limit(&alerts->growth, limits->growth), limits->growth > 0, false);
    read_level(engine, dest, ALERT_AGE, (double)backlog_age_ms(&alerts->age, now), (double)limits->age_ms,
               limits->age_ms > 0, is_held(dest));
    read_level(engine, dest, ALERT_DEAD, (double)alerts->counts.dead, (double)limits->dead, limits->dead > 0, false);
    read_dead_letters(engine, dest);
    double share = share_dead(&alerts->ended, now);
    if (share >= 0 || limits->dead_rate <= 0)
        read_level(engine, dest, ALERT_DEAD_RATE, share, limits->dead_rate, limits->dead_rate > 0, false);
}

/* Without it a restart would make all jobs young. */
static void save_age(struct engine *engine, struct dest *dest, instant now)
{
    assert(is_watched(dest));
    struct dest_alerts *alerts = &dest->alerts;
    bool due = now >= instant_add(alerts->age_saved_at, ALERTS_AGE_SAVE_MS) || now < alerts->age_saved_at;
    bool same = alerts->age.count == 0 && alerts->age_saved == 0;
    if (dest->config->alerts.age_ms == 0 || !due || same || engine_must_wait(engine))
        return;
    struct buffer value = buffer_up_to(ALERT_RECORD_BYTES_MAX);
    struct json_writer json = json_begin(&value);
    json_member_int(&json, "count", alerts->age.count);
    json_member_int(&json, "created_mean", (int64_t)alerts->age.created_mean);
    json_member_int(&json, "fed_at", alerts->age.fed_at);
    json_object_end(&json);
    if (outgoing_save(engine, NULL, NULL, SPACE_ALERT_AGE, slice_from(dest->name), buffer_slice(&value))) {
        alerts->age_saved_at = now;
        alerts->age_saved = alerts->age.count;
    }
    buffer_release(&value);
}

/* From the highest down: where one stands, those below it say nothing new. */
static void read_store(struct engine *engine)
{
    assert(engine->office.stage == OWN_WHOLE);
    static const struct {
        enum alert_kind kind;
        double limit;
    } levels[] = { { ALERT_STORE_REFUSING, 1 }, { ALERT_STORE_NEARLY_FULL, 0.9 }, { ALERT_STORE_FILLING, 0.8 } };
    bool higher = false;
    const struct store_fill fill = {
        .pending = engine->alerts.walk.pending,
        .pending_max = engine->alerts.pending_max,
        .disk_free = engine->ports.disk_free ? engine->ports.disk_free(engine->ports.context) : -1,
        .disk_free_min = engine->config->disk_free_bytes,
    };
    struct buffer reason = buffer_up_to(ALERT_REASON_BYTES_MAX);
    buffer_append_int64(&reason, fill.pending);
    buffer_append_text(&reason, " jobs wait, limits.pending is ");
    buffer_append_int64(&reason, fill.pending_max);
    if (fill.disk_free >= 0) {
        buffer_append_text(&reason, "; ");
        buffer_append_int64(&reason, fill.disk_free >> 20);
        buffer_append_text(&reason, " MB of disk are free, limits.disk_free is ");
        buffer_append_int64(&reason, fill.disk_free_min >> 20);
        buffer_append_text(&reason, " MB");
    }
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        const struct alert_subject subject = { .kind = levels[i].kind, .tenant = SLICE(""),
                                               .reason = buffer_slice(&reason) };
        const struct alert_reading reading = { .watched = true, .excused = higher, .value = store_fill_share(&fill),
                                               .limit = levels[i].limit };
        alert_read(engine, &subject, &reading);
        higher |= (engine->alerts.book->active & UINT64_C(1) << levels[i].kind) != 0;
    }
    buffer_release(&reason);
}

static void count_lane(struct engine *engine, const struct lane *lane)
{
    assert(lane->id > engine->alerts.walk.after);
    const struct lane_counts *counts = &lane->counts;
    struct dest *dest = dest_find(engine, lane->destination);
    engine->alerts.walk.pending += counts->pending + counts->waiting;
    if (!dest || !is_watched(dest) || slice_equal(lane->tenant, NOTIFY_TENANT))
        return;
    struct alert_counts *counting = &dest->alerts.counting;
    counting->open += counts->pending + counts->waiting + counts->running;
    counting->dead += counts->dead;
    counting->completed += counts->completed;
    counting->cancelled += counts->cancelled;
    int64_t limit = dest->config->alerts.dead_per_tenant;
    if (dest->alerts.tenants == 0 && (limit == 0 || counts->dead <= limit))
        return;
    const struct alert_subject subject = { .kind = ALERT_DEAD_PER_TENANT, .dest = dest, .tenant = lane->tenant };
    alert_read(engine, &subject, &(struct alert_reading){ .watched = limit > 0, .value = (double)counts->dead,
                                                          .limit = (double)limit });
}

static void end_walk(struct engine *engine, bool whole, instant now)
{
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next) {
        if (is_watched(dest) && whole) {
            read_counts(engine, dest, now);
            save_age(engine, dest, now);
        }
        dest->alerts.counting = (struct alert_counts){ 0 };
    }
    if (whole && engine->office.stage == OWN_WHOLE)
        read_store(engine);
    engine->alerts.walk.after = engine->alerts.walk.pending = 0;
    engine->alerts.walk.at = instant_add(now, ALERTS_EVERY_MS);
}

static enum status read_lanes(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct lanes_walk *walk = (struct lanes_walk *)read;
    return reader->ops->reader_lanes(reader, walk->after, ALERTS_PAGE, &read->memory, &walk->lanes, &walk->count, err);
}

/* What was counted counts when all have been read. */
static void lanes_read(struct question *question)
{
    struct lanes_walk *walk = (struct lanes_walk *)question;
    struct engine *engine = question->engine;
    assert(walk == &engine->alerts.walk);
    instant now = engine_now(engine);
    bool failed = question->read.status != STATUS_OK;
    assert(failed || walk->count <= ALERTS_PAGE);
    if (failed) {
        log_event(LOG_ERROR, "alert_count_failed", FIELD_CSTR("error", question->read.error.text));
        alerts_store_failed(engine, &question->read.error);
    }
    for (size_t i = 0; !failed && i < walk->count; i++)
        count_lane(engine, &walk->lanes[i]);
    if (failed || walk->count < ALERTS_PAGE) {
        end_walk(engine, !failed, now);
        return;
    }
    walk->after = walk->lanes[walk->count - 1].id;
    walk->at = instant_add(now, ALERTS_PAGE_MS);
}

/* One page of the lanes. */
static void walk_lanes(struct engine *engine)
{
    if (!engine->alerts.walk.question.out)
        question_ask(engine, &engine->alerts.walk.question, read_lanes, lanes_read);
}

/* ---- when ---- */

static bool no_dead_letter_is_left(const struct engine *engine)
{
    for (const struct dest *dest = engine->dests.first; dest; dest = dest->next)
        if (is_watched(dest) && (!dest->alerts.counted || dest->alerts.counts.dead > 0))
            return false;
    return true;
}

static void read_expired(struct engine *engine)
{
    assert(engine->alerts.expired_unreported >= 0);
    const struct alert_subject subject = { .kind = ALERT_EXPIRED, .tenant = SLICE("") };
    const struct alert_reading reading = { .watched = true, .value = (double)engine->alerts.expired_unreported,
                                           .limit = ALERTS_QUIET_MS, .gone = no_dead_letter_is_left(engine) };
    if (alert_read(engine, &subject, &reading))
        engine->alerts.expired_unreported = 0;
}

/* It stands until somebody has acknowledged it: that nobody meets the page again does not mend it. */
static void read_damage(struct engine *engine)
{
    const struct alert_subject subject = { .kind = ALERT_STORE_DAMAGED, .tenant = SLICE(""),
                                           .reason = slice_from(engine->alerts.damage.text) };
    if (engine->alerts.damage.status != STATUS_OK &&
        alert_read(engine, &subject, &(struct alert_reading){ .watched = true, .value = 1, .limit = 1 }))
        engine->alerts.damage.status = STATUS_OK;
}

void engine_nodes_news(struct engine *engine, const struct nodes_news *news)
{
    struct nodes_news *known = &engine->alerts.nodes;
    assert(news->differ_ms >= 0);
    char missing[NODES_NEWS_BYTES];
    memcpy(missing, known->missing, sizeof missing);
    bool changed = !engine->alerts.nodes_known || strcmp(known->gone, news->gone) != 0 || news->missing[0];
    *known = *news;
    if (!news->missing[0])
        memcpy(known->missing, missing, sizeof missing); /* no alert may have reported it yet */
    engine->alerts.nodes_known = true;
    if (!changed)
        return;
    engine->alerts.at = engine_now(engine);
    engine_wake(engine);
}

static void read_nodes(struct engine *engine)
{
    const struct nodes_news *news = &engine->alerts.nodes;
    const struct alert_subject gone = { .kind = ALERT_NODE_GONE, .tenant = SLICE(""), .reason = slice_from(news->gone) };
    const struct alert_subject differ = { .kind = ALERT_NODES_DIFFER, .tenant = SLICE(""),
                                          .reason = slice_from(news->differ) };
    if (engine->shared && !engine->alerts.nodes_known)
        return;
    alert_read(engine, &gone,
               &(struct alert_reading){ .watched = engine->shared, .value = news->gone[0] != '\0', .limit = 1 });
    alert_read(engine, &differ, &(struct alert_reading){ .watched = engine->shared, .value = (double)news->differ_ms,
                                                         .limit = ALERTS_DIFFER_MS });
}

/* As of damage: what was lost does not come back by itself. */
static void read_missing(struct engine *engine)
{
    struct nodes_news *news = &engine->alerts.nodes;
    const struct alert_subject subject = { .kind = ALERT_HEAD_MISSING, .tenant = SLICE(""),
                                           .reason = slice_from(news->missing) };
    if (news->missing[0] && alert_read(engine, &subject, &(struct alert_reading){ .watched = true, .value = 1, .limit = 1 }))
        news->missing[0] = '\0';
}

void alerts_run(struct engine *engine)
{
    instant now = engine_now(engine);
    if (!engine->alerts.book)
        return;
    bool all = now >= engine->alerts.at;
    assert(engine->alerts.book->unwritten <= engine->alerts.book->count);
    if (all)
        engine->alerts.at = instant_add(now, ALERTS_EVERY_MS);
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next)
        if (all || dest->alerts.due)
            read_dest(engine, dest, now);
    bool steward = engine->office.stage == OWN_WHOLE;
    if (steward && (all || engine->alerts.expired_unreported > 0))
        read_expired(engine);
    if (steward && all)
        sources_read(engine);
    if (steward && all)
        read_nodes(engine);
    if (steward) {
        read_damage(engine);
        read_missing(engine);
    }
    if (now >= engine->alerts.walk.at && !engine->stopping)
        walk_lanes(engine);
    alerts_write(engine);
    letters_write(engine);
    if (!engine->stopping && steward)
        alerts_trim(engine);
}

instant alerts_next(const struct engine *engine)
{
    const struct engine_alerts *alerts = &engine->alerts;
    if (!alerts->book)
        return INSTANT_NONE;
    return alerts->walk.question.out ? alerts->at : instant_earlier(alerts->at, alerts->walk.at);
}

void alerts_look_again(struct engine *engine)
{
    engine->alerts.at = engine_now(engine);
    engine->alerts.trim.at = engine->alerts.at;
    engine->alerts.walk.at = engine->alerts.at;
}
