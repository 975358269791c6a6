/*
 * The daily and the weekly report: as JSON, as text, as a page with charts.
 */
#include "api/observe/observe.h"
#include "engine/reports/period.h"

#include <string.h>

/* A date, or a week as 2025-W03; false: it is neither. */
static bool read_date(struct slice text, instant *ret_at)
{
    char whole[] = "0000-00-00T12:00:00Z";
    struct error err;
    if (text.len != 10)
        return false;
    memcpy(whole, text.data, text.len);
    return instant_parse(slice_from(whole), ret_at, &err) == STATUS_OK && *ret_at > 0;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : -100000;
}

/* ISO 8601: the first week is the one with the fourth of January. */
static bool read_week(struct slice text, instant *ret_at)
{
    const char *t = text.data;
    if (text.len != 8 || t[4] != '-' || t[5] != 'W')
        return read_date(text, ret_at);
    int year = 1000 * digit(t[0]) + 100 * digit(t[1]) + 10 * digit(t[2]) + digit(t[3]);
    int week = 10 * digit(t[6]) + digit(t[7]);
    if (year < 1971 || week < 1 || week > 53)
        return false;
    instant fourth = instant_from_civil(&(struct civil){ .year = year, .month = 1, .day = 4 });
    *ret_at = fourth - (fourth / DAY_MS + 3) % 7 * DAY_MS + (int64_t)(week - 1) * 7 * DAY_MS;
    return true;
}

enum form { FORM_JSON, FORM_TEXT, FORM_HTML };

static bool read_form(struct call *call, enum form *ret_form)
{
    struct slice form = call_query(call, "format");
    *ret_form = slice_equal(form, SLICE("text")) ? FORM_TEXT : slice_equal(form, SLICE("html")) ? FORM_HTML : FORM_JSON;
    if (form.len == 0 || *ret_form != FORM_JSON || slice_equal(form, SLICE("json")))
        return true;
    return call_problem(call, 422, "invalid_parameter", "format must be json, text or html");
}

struct report_call {
    struct period period;
    enum form form;
};

static enum status read_piece(struct call *call, struct store_reader *reader, struct error *err)
{
    struct report_call *report = call->context;
    return period_read(&report->period, reader, &call->memory, &call->reading.more, err);
}

static void answer(struct call *call)
{
    const struct report_call *report = call->context;
    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    switch (report->form) {
    case FORM_JSON:
        period_json(&report->period, &json);
        call_json(call, 200, &body);
        break;
    case FORM_TEXT:
        period_text(&report->period, &body);
        call_send(call, 200, "text/plain; charset=utf-8", &body);
        break;
    case FORM_HTML:
        period_html(&report->period, &body);
        call_send(call, 200, "text/html; charset=utf-8", &body);
        break;
    }
}

/* Without a time: the last one that is over. */
static void handle_report(struct call *call, bool weekly, const char *parameter,
                          bool (*read)(struct slice text, instant *ret_at))
{
    struct slice asked = call_query(call, parameter);
    instant now = api_now(call->api), at = now - (weekly ? 7 : 1) * DAY_MS;
    struct report_call *report = call_context(call, sizeof *report);
    if (!report || !read_form(call, &report->form))
        return;
    if (asked.len > 0 && !read(asked, &at)) {
        call_problem(call, 422, "invalid_parameter", "%s must be a date like 2025-01-12%s", parameter,
                     weekly ? " or a week like 2025-W02" : "");
        return;
    }
    period_begin(&report->period, call->api->config, weekly, at, now);
    call_read(call, read_piece, answer);
}

void handle_report_daily(struct call *call)
{
    handle_report(call, false, "date", read_date);
}

void handle_report_weekly(struct call *call)
{
    handle_report(call, true, "week", read_week);
}
