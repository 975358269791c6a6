/*
 * What became of a destination over time: figures for charts, from the pages that the engine keeps (engine/history.h).
 */
#include "api/operate/operate.h"
#include "config/checks.h"
#include "engine/history.h"

#include <string.h>

enum {
    HISTORY_POINTS_MAX = 3000, /* of one answer: two days by minutes, ninety days by hours, and some */
    STEP_MINUTE_S = 60,
    STEP_HOUR_S = 3600,
};

struct history_question {
    const struct history_scale *scale;
    instant from, to;
    struct history_point *points;
    bool *known;
    size_t count;
    bool seen[OUTCOME_COUNT]; /* classes that failed */
    bool any;                 /* there is a history of it */
};

/* ---- reading ---- */

static void take_point(void *context, instant at, const struct history_point *point)
{
    struct history_question *question = context;
    if (at < question->from || at >= question->to)
        return;
    size_t i = (size_t)((at - question->from) / question->scale->step_ms);
    question->points[i] = *point;
    question->known[i] = true;
    for (int kind = 0; kind < OUTCOME_COUNT; kind++)
        question->seen[kind] = question->seen[kind] || point->failed[kind] > 0;
}

/* Of one destination: from "name0" backwards to "name/". Old ones, not overwritten yet, are out of the time asked. */
static enum status read_full(struct call *call, struct store_reader *reader, struct history_question *question,
                             struct error *err)
{
    struct slice name = call->parameters[0];
    char before[DESTINATION_NAME_BYTES_MAX + 2];
    struct saved *pages;
    size_t count = 0;
    if (name.len > DESTINATION_NAME_BYTES_MAX)
        return STATUS_OK;
    memcpy(before, name.data, name.len);
    before[name.len] = '/' + 1;
    enum status status = reader->ops->reader_saved_list(reader, SPACE_HISTORY, (struct slice){ before, name.len + 1 },
                                                        HISTORY_PAGES_MAX, &call->memory, &pages, &count, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        if (pages[i].name.len != name.len + HISTORY_NAME_TAIL || !slice_has_prefix(pages[i].name, name) ||
            pages[i].name.data[name.len] != '/')
            break;
        history_page_each(question->scale, pages[i].value, take_point, question);
        question->any = true;
    }
    return status;
}

/* The page being written comes last: where both tell of a time, it is right. */
static enum status read_history(struct call *call, struct store_reader *reader, struct error *err)
{
    struct history_question *question = call->context;
    struct slice value, minutes, hours;
    enum status status = read_full(call, reader, question, err);
    if (status != STATUS_OK)
        return status;
    status = reader->ops->reader_saved(reader, SPACE_HISTORY_NOW, call->parameters[0], &call->memory, &value, err);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    if (status != STATUS_OK)
        return status;
    history_split(value, &minutes, &hours);
    history_page_each(question->scale, question->scale == &history_minutes ? minutes : hours, take_point, question);
    question->any = true;
    return STATUS_OK;
}

/* ---- the answer ---- */

static void write_ints(struct json_writer *json, const struct history_question *question, const char *name, size_t member)
{
    json_member_array(json, name);
    for (size_t i = 0; i < question->count; i++) {
        int64_t value = -1;
        if (question->known[i])
            memcpy(&value, (const char *)&question->points[i] + member, sizeof value);
        if (value < 0)
            json_put_null(json);
        else
            json_put_int(json, value);
    }
    json_array_end(json);
}

static void write_modes(struct json_writer *json, const struct history_question *question)
{
    json_member_array(json, "mode");
    for (size_t i = 0; i < question->count; i++) {
        const char *mode = question->known[i] ? history_mode_name(question->points[i].mode) : NULL;
        if (mode)
            json_put_string(json, slice_from(mode));
        else
            json_put_null(json);
    }
    json_array_end(json);
}

static void write_series(struct json_writer *json, const struct history_question *question)
{
    static const struct { const char *name; size_t member; } states[] = {
        { "pending", offsetof(struct history_point, pending) },
        { "oldest_s", offsetof(struct history_point, oldest_s) },
        { "latency_p50_ms", offsetof(struct history_point, p50_ms) },
        { "latency_p95_ms", offsetof(struct history_point, p95_ms) },
        { "latency_p99_ms", offsetof(struct history_point, p99_ms) },
        { "in_flight", offsetof(struct history_point, in_flight) },
        { "limit", offsetof(struct history_point, limit) },
    };
    write_ints(json, question, "delivered", offsetof(struct history_point, delivered));
    json_member_object(json, "failed");
    for (size_t kind = 0; kind < OUTCOME_COUNT; kind++)
        if (question->seen[kind])
            write_ints(json, question, kind == HISTORY_OTHER ? "other" : outcome_name((enum outcome)kind),
                       offsetof(struct history_point, failed) + kind * sizeof(int64_t));
    json_object_end(json);
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        write_ints(json, question, states[i].name, states[i].member);
    write_modes(json, question);
}

static void answer_history(struct call *call)
{
    const struct history_question *question = call->context;
    if (!question->any && !config_destination(call->api->config, call->parameters[0])) {
        call_problem(call, 404, "destination_not_found",
                     "there is no destination of this name; insist dest lists them");
        return;
    }
    struct json_writer *json = call_answer(call);
    json_member_instant(json, "from", question->from);
    json_member_instant(json, "to", question->to);
    json_member_int(json, "step", question->scale->step_ms / SECOND_MS);
    json_member_object(json, "series");
    write_series(json, question);
    json_object_end(json);
    call_answer_send(call, 200);
}

/* ---- the question ---- */

/* False: answered already. */
static bool read_time(struct call *call, const char *name, instant otherwise, instant *ret_at)
{
    struct slice text = call_query(call, name);
    struct error err;
    *ret_at = otherwise;
    if (text.len == 0 || (instant_parse(text, ret_at, &err) == STATUS_OK && *ret_at > 0))
        return true;
    return call_problem(call, 422, "invalid_parameter", "%s must be a time like 2025-01-12T10:40:00Z", name);
}

static bool read_scale(struct call *call, const struct history_scale **ret_scale)
{
    struct slice step = call_query(call, "step");
    *ret_scale = slice_equal(step, SLICE("3600")) ? &history_hours : &history_minutes;
    if (step.len == 0 || slice_equal(step, SLICE("60")) || slice_equal(step, SLICE("3600")))
        return true;
    return call_problem(call, 422, "invalid_parameter",
                        "step must be %d (minutes, for two days) or %d (hours, for 90 days)", STEP_MINUTE_S, STEP_HOUR_S);
}

/* Whole steps: the one that `from` is in, up to the one that `to` is in. */
static bool read_question(struct call *call, struct history_question *question)
{
    instant from, to, now = api_now(call->api);
    if (!read_scale(call, &question->scale) || !read_time(call, "to", now, &to) ||
        !read_time(call, "from", to > DAY_MS ? to - (question->scale == &history_minutes ? HOUR_MS : DAY_MS) : 1, &from))
        return false;
    int64_t step = question->scale->step_ms;
    question->from = from - from % step;
    question->to = to % step == 0 ? to : to - to % step + step;
    if (question->to > question->from && (question->to - question->from) / step <= HISTORY_POINTS_MAX)
        return true;
    return call_problem(call, 422, "invalid_parameter",
                        to <= from ? "from must be before to"
                                   : "there are more than %d steps between from and to; ask for less, or with step=%d",
                        HISTORY_POINTS_MAX, STEP_HOUR_S);
}

void handle_destination_history(struct call *call)
{
    struct history_question *question = call_context(call, sizeof *question);
    if (!question)
        return;
    if (!read_question(call, question))
        return;
    question->count = (size_t)((question->to - question->from) / question->scale->step_ms);
    question->points = arena_alloc_array(&call->memory, question->count, sizeof *question->points);
    question->known = arena_alloc_array(&call->memory, question->count, sizeof *question->known);
    if (!question->points || !question->known) {
        call_no_memory(call);
        return;
    }
    memset(question->known, 0, question->count * sizeof *question->known);
    call_read(call, read_history, answer_history);
}
