#include "engine/history.h"

#include "engine/days.h"
#include "engine/loop.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { DAY_BYTES_MAX = HISTORY_HEAD_BYTES_MAX + 24 * HISTORY_POINT_BYTES_MIN };
static_assert((int)HISTORY_BYTES_MAX >= 49 * (int)HISTORY_PAGE_BYTES_MAX + 91 * (int)DAY_BYTES_MAX,
              "all pages and the two being written");
static_assert(HISTORY_PAGES_MAX >= 48 + 90, "the full ones");

/* ---- from what was counted to a point ---- */

static struct histogram since(const struct histogram *now, const struct histogram *before)
{
    assert(histogram_total(now) >= histogram_total(before));
    struct histogram passed = { .sum = now->sum - before->sum };
    for (size_t i = 0; i < sizeof passed.counts / sizeof *passed.counts; i++)
        passed.counts[i] = now->counts[i] - before->counts[i];
    return passed;
}

static int64_t quantile(const struct histogram *duration, double share)
{
    return (int64_t)(histogram_quantile(duration, &measured_duration, share) + 0.5);
}

static void note_durations(struct history_point *point, const struct histogram *duration)
{
    int64_t at_once = (duration->sum + MINUTE_MS / 2) / MINUTE_MS; /* on the average of the minute */
    point->p50_ms = point->p95_ms = point->p99_ms = -1;
    if (histogram_total(duration) == 0)
        return;
    point->p50_ms = quantile(duration, 0.50);
    point->p95_ms = quantile(duration, 0.95);
    point->p99_ms = quantile(duration, 0.99);
    assert(point->p50_ms <= point->p95_ms && point->p95_ms <= point->p99_ms);
    point->in_flight = point->in_flight > at_once ? point->in_flight : at_once;
}

/* What the gate of a destination in its normal mode is held by, where a chart shows that. */
static enum history_mode mode_of(const struct destination_status *status)
{
    enum history_mode mode = history_mode_from_name(status->mode), hold = history_mode_from_name(status->held_by);
    return mode == HISTORY_NORMAL && hold != HISTORY_MODE_UNKNOWN ? hold : mode;
}

static struct history_point point_of(const struct engine *engine, const struct dest *dest, instant now)
{
    const struct measures *measures = &dest->measures;
    const struct dest_history *history = &dest->history;
    const struct destination_status status = engine_destination(engine, slice_from(dest->name));
    struct history_point point = {
        .delivered = measures->verdicts[VERDICT_COMPLETE] - history->delivered,
        .pending = dest->alerts.counted ? dest->alerts.counts.open : dest->queue.ready + status.under_way,
        .in_flight = status.under_way,
        .limit = status.limit.now,
        .mode = mode_of(&status),
    };
    if (point.pending < dest->queue.ready)
        point.pending = dest->queue.ready; /* which is newer */
    if (dest->queue.ready > 0 && status.next_since != INSTANT_NONE && now > status.next_since)
        point.oldest_s = (now - status.next_since) / SECOND_MS;
    for (enum outcome outcome = OUTCOME_TRANSIENT; outcome < OUTCOME_COUNT; outcome++)
        point.failed[outcome] = measures->outcomes[outcome] - history->outcomes[outcome];
    assert(point.delivered >= 0 && point.in_flight >= 0);
    struct histogram duration = since(&measures->times.duration, &history->duration);
    note_durations(&point, &duration);
    return point;
}

static void counted(struct dest *dest)
{
    struct dest_history *history = &dest->history;
    memcpy(history->outcomes, dest->measures.outcomes, sizeof history->outcomes);
    history->delivered = dest->measures.verdicts[VERDICT_COMPLETE];
    history->duration = dest->measures.times.duration;
}

/* One that nobody uses and that stands as ever; a pause of it says nothing new either. */
static bool is_idle(const struct history_point *point)
{
    return history_point_sent(point) == 0 && point->p50_ms < 0 && point->pending == 0 && point->in_flight == 0 &&
           point->mode != HISTORY_CONTINGENCY && point->mode != HISTORY_RECOVERING;
}

/* ---- to the store ---- */

static void now_saved(const struct op_result *result)
{
    struct dest *dest = result->context;
    assert(result->op->kind == OP_SAVE);
    if (!result->applied && !result->engine->stopping)
        dest->history.unsaved = true; /* the next one brings it */
}

static bool add_save(struct engine *engine, struct dest *dest, op_done *done, struct slice space, struct slice name,
                     struct slice value)
{
    assert(value.len > 0);
    if (!outgoing_save(engine, done, dest, space, name, value))
        return false;
    dest_is_out(engine, dest);
    return true;
}

static void save_now(struct engine *engine, struct dest *dest)
{
    char text[2 * HISTORY_PAGE_BYTES_MAX + 1];
    struct slice minutes = history_page_text(&dest->history.minutes), hours = history_page_text(&dest->history.hours);
    assert(minutes.len + 1 + hours.len <= sizeof text);
    memcpy(text, minutes.data, minutes.len);
    text[minutes.len] = '\n';
    memcpy(text + minutes.len + 1, hours.data, hours.len);
    dest->history.unsaved = !add_save(engine, dest, now_saved, SPACE_HISTORY_NOW, slice_from(dest->name),
                                      (struct slice){ text, minutes.len + 1 + hours.len });
}

/* A page that `at` is not on is full: it takes the place of the one that is as many pages older as are retained. */
static void turn_page(struct engine *engine, struct dest *dest, const struct history_scale *scale, struct history_page *page,
                      instant at)
{
    char name[DESTINATION_NAME_BYTES_MAX + HISTORY_NAME_TAIL + 1];
    if (page->number == 0 || page->number == at / scale->page_ms)
        return;
    int len = snprintf(name, sizeof name, "%s/%c%02d", dest->name, scale->mark, (int)(page->number % scale->pages));
    assert(len > 0 && (size_t)len < sizeof name);
    /* Without room the page is lost, and the day's hours tell of it. */
    (void)add_save(engine, dest, NULL, SPACE_HISTORY, (struct slice){ name, (size_t)len }, history_page_text(page));
    history_page_clear(page);
}

static void note(struct engine *engine, struct dest *dest, instant at, struct history_point point)
{
    assert(at % MINUTE_MS == 0);
    struct dest_history *history = &dest->history;
    struct history_point before, hour;
    turn_page(engine, dest, &history_minutes, &history->minutes, at);
    turn_page(engine, dest, &history_hours, &history->hours, at);
    if (history_page_last(&history_minutes, &history->minutes, at, &before)) { /* of before a restart */
        history_point_add(&before, &point);
        point = before;
    }
    /* What the clock has seen already, before it was put back, stays as it is. */
    if (history_page_put(&history_minutes, &history->minutes, at, &point) &&
        history_page_sum(&history_minutes, history_page_text(&history->minutes), &hour))
        (void)history_page_put(&history_hours, &history->hours, at, &hour);
    save_now(engine, dest);
}

static void minute_over(struct engine *engine, struct dest *dest, instant now)
{
    assert(dest->history.minute != 0 && dest->history.minute != now / MINUTE_MS);
    struct dest_history *history = &dest->history;
    struct history_point point = point_of(engine, dest, now);
    instant at = history->minute * MINUTE_MS;
    counted(dest);
    days_minute_over(engine, dest, at, now);
    history->minute = now / MINUTE_MS;
    if (!is_idle(&point))
        note(engine, dest, at, point);
    else if (history->unsaved)
        save_now(engine, dest);
}

void history_run(struct engine *engine)
{
    instant now = engine_now(engine);
    size_t count = 0;
    if (engine_must_wait(engine))
        return;
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next) {
        if (!dest->config || dest->own.stage != OWN_WHOLE || dest->history.minute == now / MINUTE_MS)
            continue;
        if (dest->history.minute == 0) {
            dest->history.minute = now / MINUTE_MS;
            continue;
        }
        if (count++ == HISTORY_AT_ONCE || !outgoing_has_room(engine, HISTORY_OPS_MAX)) {
            engine_wake(engine);
            return;
        }
        minute_over(engine, dest, now);
    }
}

bool history_close(struct engine *engine, struct dest *dest)
{
    struct history_point point = point_of(engine, dest, engine_now(engine));
    bool news = dest->history.minute != 0 && history_point_sent(&point) > 0;
    if (!days_close(engine, dest))
        return false;
    if (!news && !dest->history.unsaved)
        return true;
    if (!outgoing_has_room(engine, HISTORY_OPS_MAX))
        return false;
    counted(dest);
    if (news)
        note(engine, dest, dest->history.minute * MINUTE_MS, point);
    else
        save_now(engine, dest);
    return !dest->history.unsaved;
}

/* ---- from the store ---- */

void history_split(struct slice value, struct slice *ret_minutes, struct slice *ret_hours)
{
    const char *end = value.len > 0 ? memchr(value.data, '\n', value.len) : NULL;
    size_t len = end ? (size_t)(end - value.data) : value.len;
    *ret_minutes = (struct slice){ value.data, len };
    *ret_hours = end ? (struct slice){ end + 1, value.len - len - 1 } : SLICE("");
    assert(ret_minutes->len + ret_hours->len <= value.len);
}

void history_restore(struct engine *engine, const struct saved *saved)
{
    struct dest *dest = dest_find(engine, saved->name);
    struct slice minutes, hours;
    if (!dest)
        return;
    history_split(saved->value, &minutes, &hours);
    history_page_read(&history_minutes, minutes, &dest->history.minutes);
    history_page_read(&history_hours, hours, &dest->history.hours);
}
