#include "engine/reports/schedule.h"

#include "base/log.h"
#include "engine/alerts/notify.h"
#include "engine/loop.h"
#include "engine/reports/period.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEDULE_EVERY_MS = 10 * SECOND_MS, SCHEDULE_HTML_BYTES_MAX = 512 * 1024, SENT_NAME_BYTES = 128 };

struct schedule {
    struct question question; /* first */
    struct config *config;     /* that `done` is about; a reference */
    instant done[REPORTS_MAX]; /* the due times that are dealt with */
    instant look_at;           /* not before */
    size_t item;               /* that is asked for, */
    instant due, asked_at;     /* of then */
    bool weekly;
    char name[SENT_NAME_BYTES];
    bool sent, first; /* it was sent; none was ever */
    struct period period;
};

/* ---- when ---- */

static instant due_on(const struct report_config *report, int64_t day)
{
    assert(report->at_minute >= 0 && report->at_minute < 24 * 60);
    int64_t local = day * DAY_MS + (int64_t)report->at_minute * MINUTE_MS;
    return local - zone_offset_ms(&report->zone_rules, local);
}

instant report_due(const struct report_config *report, instant now)
{
    int64_t day = (now + zone_offset_ms(&report->zone_rules, now)) / DAY_MS + 1; /* tomorrow, whatever the offset */
    for (int i = 0; i < 10; i++, day--)
        if (due_on(report, day) <= now && (!report->weekly || (day + 3) % 7 == 0))
            return due_on(report, day);
    return INSTANT_NONE;
}

/* ---- what ---- */

static enum status read_piece(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct schedule *schedule = (struct schedule *)read;
    assert(schedule->config && schedule->due <= schedule->asked_at);
    if (read->pieces == 0) {
        struct slice value = SLICE("");
        int64_t sent_at;
        enum status status = reader->ops->reader_saved(reader, SPACE_REPORT_SENT, slice_from(schedule->name), &read->memory,
                                                       &value, err);
        if (status != STATUS_OK && status != STATUS_NOT_FOUND)
            return status;
        schedule->first = status == STATUS_NOT_FOUND;
        schedule->sent = slice_to_int64(value, &sent_at) && sent_at >= schedule->due;
        read->more = !schedule->sent && !schedule->first;
        period_begin(&schedule->period, schedule->config, schedule->weekly,
                     schedule->due - (schedule->weekly ? 7 : 1) * DAY_MS, schedule->asked_at);
        return STATUS_OK;
    }
    return period_read(&schedule->period, reader, &read->memory, &read->more, err);
}

/* What the store has says which are to be sent again. */
static void mark_added(const struct op_result *result)
{
    assert(result->op->kind == OP_SAVE);
    struct schedule *schedule = result->context;
    if (!result->applied)
        memset(schedule->done, 0, sizeof schedule->done);
}

/* The mark, and with it the report, unless it is only to be known from when on it is wanted. */
static bool add_mark(struct engine *engine, struct schedule *schedule)
{
    char due[24];
    snprintf(due, sizeof due, "%" PRId64, schedule->due);
    return outgoing_save(engine, mark_added, schedule, SPACE_REPORT_SENT, slice_from(schedule->name), slice_from(due));
}

static enum status make_job(struct engine *engine, const struct schedule *schedule, const struct report_config *report,
                            struct op_insert *ret_insert)
{
    char title[PERIOD_TITLE_BYTES], id[JOB_ID_BYTES_MAX + 1];
    struct buffer text = buffer_up_to(PERIOD_BYTES_MAX);
    struct buffer html = buffer_up_to(PERIOD_BYTES_MAX);
    struct buffer data = buffer_up_to(PERIOD_BYTES_MAX);
    struct json_writer json = json_writer(&data);
    period_title(&schedule->period, title);
    period_text(&schedule->period, &text);
    period_html(&schedule->period, &html);
    period_json(&schedule->period, &json);
    snprintf(id, sizeof id, "report.%s.%s.%s", report->weekly ? "week" : "day", schedule->period.dates[0], report->to);
    bool whole = buffer_status(&text) == STATUS_OK && buffer_status(&html) == STATUS_OK;
    whole = whole && buffer_status(&data) == STATUS_OK;
    const struct report_message message = {
        .type = report->weekly ? "report.week" : "report.day",
        .id = slice_from(id),
        .title = slice_from(title),
        .text = buffer_slice(&text),
        .html = html.len <= SCHEDULE_HTML_BYTES_MAX ? buffer_slice(&html) : SLICE(""),
        .data = buffer_slice(&data),
    };
    enum status status = STATUS_NO_MEMORY;
    if (whole)
        status = report_job(engine->config, report->notify, &message, engine_now(engine), outgoing_memory(engine),
                            ret_insert);
    buffer_release(&text);
    buffer_release(&html);
    buffer_release(&data);
    return status;
}

/* Both in one transaction. */
static bool add_report(struct engine *engine, struct schedule *schedule, const struct report_config *report)
{
    assert(report->notify && !schedule->first);
    struct op_insert insert;
    if (!outgoing_has_room(engine, 2) || !add_mark(engine, schedule))
        return false;
    struct store_op *op = make_job(engine, schedule, report, &insert) == STATUS_OK ? outgoing_add(engine, NULL, NULL) : NULL;
    if (!op) {
        outgoing_drop_last(engine);
        return false;
    }
    op->kind = OP_INSERT;
    op->insert = insert;
    log_event(LOG_INFO, "report_sent", FIELD_CSTR("every", report->weekly ? "week" : "day"), FIELD_CSTR("to", report->to));
    return true;
}

static void was_read(struct question *question)
{
    struct schedule *schedule = (struct schedule *)question;
    struct engine *engine = question->engine;
    if (question->read.status != STATUS_OK || schedule->config != engine->config || engine->stopping)
        return; /* asked again when it is looked at again */
    assert(schedule->item < engine->config->report_count);
    const struct report_config *report = &engine->config->reports[schedule->item];
    bool done = schedule->sent;
    if (!done)
        done = schedule->first ? add_mark(engine, schedule) : add_report(engine, schedule, report);
    if (!done)
        return;
    schedule->done[schedule->item] = schedule->due;
    engine_wake(engine);
}

void reports_send(struct engine *engine, struct schedule **schedule)
{
    struct config *config = engine->config;
    instant now = engine_now(engine);
    if (config->report_count == 0 || engine_must_wait(engine))
        return;
    if (!*schedule)
        *schedule = calloc(1, sizeof **schedule);
    struct schedule *own = *schedule;
    if (!own || own->question.out || (now < own->look_at && own->look_at - now <= SCHEDULE_EVERY_MS))
        return;
    own->look_at = now + SCHEDULE_EVERY_MS;
    if (own->config != config) {
        memset(own->done, 0, sizeof own->done);
        config_unref(own->config);
        own->config = config_ref(config);
    }
    for (size_t i = 0; i < config->report_count; i++) {
        const struct report_config *report = &config->reports[i];
        assert(i < REPORTS_MAX);
        instant due = report_due(report, now);
        if (due == INSTANT_NONE || due <= own->done[i])
            continue;
        own->item = i;
        own->due = due;
        own->look_at = now; /* the next one follows at once */
        snprintf(own->name, sizeof own->name, "%s/%s/%s", report->weekly ? "week" : "day", report->to, report->at);
        own->weekly = report->weekly;
        own->asked_at = now;
        question_ask(engine, &own->question, read_piece, was_read);
        return;
    }
}

void schedule_free(struct schedule *schedule)
{
    if (!schedule)
        return;
    assert(!schedule->question.out);
    config_unref(schedule->config);
    free(schedule);
}
