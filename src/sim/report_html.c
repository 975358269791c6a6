#include "sim/report.h"

#include "base/embedded.h"
#include "sim/chart.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 2, CURVES_MAX = 3, BACKLOG_BYTES_MAX = 4096 };

static void append_backlog(const struct run *run, struct buffer *out)
{
    struct buffer text = buffer_up_to(BACKLOG_BYTES_MAX);
    report_backlog(run, &text);
    buffer_append_text(out, "<p class=\"soft\">");
    buffer_append_html(out, buffer_slice(&text));
    buffer_append_text(out, "</p>\n");
    if (buffer_status(&text) != STATUS_OK)
        out->failure = STATUS_NO_MEMORY;
    buffer_release(&text);
}

static void append_summary(const struct run *runs, size_t count, struct buffer *out)
{
    const struct sim_settings *settings = runs[0].settings;
    char time[UNITS_TEXT_BYTES], from[UNITS_TEXT_BYTES], to[UNITS_TEXT_BYTES];
    duration_format(settings->load.for_ms, time);
    buffer_append_text(out, "<h1>");
    for (size_t i = 0; i < count; i++) {
        buffer_append_text(out, i > 0 ? " against " : "");
        buffer_append_html(out, slice_from(runs[i].title));
    }
    buffer_printf(out, "</h1>\n<p class=\"soft\">%" PRId64 " %sjobs of %" PRId64 " tenant%s in %s", settings->load.jobs,
                  settings->backlog ? "new " : "", settings->load.tenants, settings->load.tenants == 1 ? "" : "s", time);
    for (size_t i = 0; i < settings->model.outage_count; i++) {
        const struct model_outage *outage = &settings->model.outages[i];
        duration_format(outage->from_ms, from);
        duration_format(outage->to_ms, to);
        buffer_printf(out, "; outage from %s to %s (%s)", outage->from_ms == 0 ? "the start" : from, to,
                      model_failure_name(outage->failure));
    }
    buffer_printf(out, "; seed %" PRIu64 ". Simulated, nothing was sent.</p>\n", settings->seed);
    if (settings->backlog)
        append_backlog(&runs[0], out);
}

static void append_holds(const struct run *run, bool named, struct buffer *out)
{
    for (const struct sim_hold *hold = run->result.holds; hold->by; hold++) {
        char time[UNITS_TEXT_BYTES];
        duration_format(hold->ms, time);
        buffer_append_text(out, "<p class=\"soft\">");
        if (named) {
            buffer_append_html(out, slice_from(run->title));
            buffer_append_text(out, ": ");
        }
        buffer_printf(out, "held by %s for <b>%s</b></p>\n", hold->by, time);
    }
}

/* ---- Charts ---- */

/* A member of all steps as values of their own. NULL: no memory. */
static int64_t *column(const struct ledger *ledger, size_t offset)
{
    int64_t *values = malloc(ledger->step_count * sizeof *values);
    for (size_t i = 0; values && i < ledger->step_count; i++)
        memcpy(&values[i], (const char *)&ledger->steps[i] + offset, sizeof values[i]);
    return values;
}

struct wanted_curve {
    const char *name, *css;
    const struct ledger *ledger;
    size_t offset;
};

/* A chart and the values it points to. */
struct drawn {
    struct chart chart;
    struct chart_curve curves[CURVES_MAX];
    int64_t *values[CURVES_MAX];
    bool complete;
};

static void draw(struct drawn *drawn, const char *title, const struct run *run, const struct wanted_curve *wanted,
                 size_t count, double scale)
{
    *drawn = (struct drawn){ .complete = true };
    for (size_t i = 0; i < count; i++) {
        size_t steps = wanted[i].ledger->step_count;
        int64_t *values = column(wanted[i].ledger, wanted[i].offset);
        drawn->values[i] = values;
        drawn->complete = drawn->complete && values;
        drawn->curves[i] = (struct chart_curve){ wanted[i].name, wanted[i].css, values, values ? steps : 0, scale };
    }
    drawn->chart = (struct chart){
        .title = title,
        .step_ms = run->result.ledger.step_ms,
        .curves = drawn->curves,
        .curve_count = count,
        .outages = run->settings->model.outages,
        .outage_count = run->settings->model.outage_count,
    };
}

static void append_drawn(struct drawn *drawn, struct buffer *out)
{
    if (drawn->complete)
        chart_append(&drawn->chart, out);
    else
        out->failure = STATUS_NO_MEMORY;
    for (size_t i = 0; i < CURVES_MAX; i++)
        free(drawn->values[i]);
}

static void append_lines(const char *title, const struct run *run, const struct wanted_curve *wanted, size_t count,
                         double scale, struct buffer *out)
{
    struct drawn drawn;
    draw(&drawn, title, run, wanted, count, scale);
    append_drawn(&drawn, out);
}

/* Each run in a chart of its own, all on one scale. */
static void append_answers(const struct run *runs, size_t count, double scale, struct buffer *out)
{
    struct drawn drawn[RUNS_MAX];
    char titles[RUNS_MAX][256];
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ledger *ledger = &runs[i].result.ledger;
        const struct wanted_curve answers[] = {
            { "delivered", "ok", ledger, offsetof(struct ledger_step, delivered) },
            { "failed", "bad", ledger, offsetof(struct ledger_step, failed) },
            { "too fast", "warn", ledger, offsetof(struct ledger_step, throttled) },
        };
        snprintf(titles[i], sizeof titles[i], "Answers a second%s%s", count > 1 ? ": " : "", count > 1 ? runs[i].title : "");
        draw(&drawn[i], titles[i], &runs[i], answers, sizeof answers / sizeof *answers, scale);
        drawn[i].chart.stacked = true;
        double high = chart_most(&drawn[i].chart);
        most = high > most ? high : most;
    }
    for (size_t i = 0; i < count; i++) {
        drawn[i].chart.top = most;
        append_drawn(&drawn[i], out);
    }
}

static void append_waits(const struct run *run, bool named, const char *css, struct buffer *out)
{
    struct chart_bar bars[LEDGER_HISTOGRAM];
    char title[256];
    for (int i = 0; i < LEDGER_HISTOGRAM; i++) {
        char bound[UNITS_TEXT_BYTES];
        bool last = ledger_histogram_bound(i) == INT64_MAX;
        duration_format(last ? ledger_histogram_bound(i - 1) : ledger_histogram_bound(i), bound);
        snprintf(bars[i].label, sizeof bars[i].label, "%s%.12s", last ? ">" : "", bound);
        bars[i].value = run->result.ledger.wait_histogram[i];
    }
    snprintf(title, sizeof title, "How many waits before a retry, by length up to%s%s", named ? ": " : "",
             named ? run->title : "");
    chart_bars_append(title, css, bars, LEDGER_HISTOGRAM, out);
}

/* ---- Figures ---- */

static void append_value(const struct figure *figure, const struct report *report, struct buffer *out)
{
    static const char *const css[] = { [FIGURE_PLAIN] = "", [FIGURE_MET] = " met", [FIGURE_MISSED] = " missed" };
    static const char *const marks[] = { [FIGURE_PLAIN] = "", [FIGURE_MET] = " &#10003;", [FIGURE_MISSED] = " &#10007;" };
    char text[FIGURE_TEXT_BYTES];
    enum figure_verdict verdict = figure_judge(figure, report);
    figure_text(figure, figure_value(figure, report), text);
    buffer_printf(out, "<td class=\"n%s\">%s%s</td>", css[verdict], text, marks[verdict]);
}

/* `whole`: with the difference and the target. */
static void append_row(const struct figure *figure, const struct run *runs, size_t count, bool whole, struct buffer *out)
{
    char text[FIGURE_TEXT_BYTES];
    buffer_append_text(out, "<tr><td>");
    buffer_append_html(out, slice_from(figure->label));
    if (figure->rule[0])
        buffer_printf(out, " <span class=\"rule\">%s</span>", figure->rule);
    buffer_append_text(out, "</td>");
    for (size_t i = 0; i < count; i++)
        append_value(figure, &runs[i].report, out);
    if (whole && count == 2) {
        figure_difference(figure, figure_value(figure, &runs[0].report), figure_value(figure, &runs[1].report), text);
        buffer_printf(out, "<td class=\"n\">%s</td>", text);
    }
    figure_target_text(figure, text);
    if (whole)
        buffer_printf(out, "<td>%s</td>", text);
    buffer_append_text(out, "</tr>\n");
}

/* All tables have the same columns, so that the eye can run down over all of them. */
static void append_head(const struct run *runs, size_t count, bool targets, struct buffer *out)
{
    buffer_append_text(out, "<thead><tr><th class=\"name\"></th>");
    for (size_t i = 0; i < count; i++) {
        buffer_append_text(out, "<th class=\"n\">");
        if (count > 1) {
            buffer_printf(out, "<span class=\"key %s\"></span>", i == 0 ? "a" : "b");
            buffer_append_html(out, slice_from(runs[i].title));
        }
        buffer_append_text(out, count == 1 ? "value</th>" : "</th>");
    }
    if (count == 2)
        buffer_append_text(out, "<th class=\"n\">difference</th>");
    buffer_append_text(out, targets ? "<th>target</th></tr></thead>\n" : "<th></th></tr></thead>\n");
}

static void append_figures(const struct run *runs, size_t count, struct buffer *out)
{
    const char *group = "";
    for (const struct figure *figure = figures; figure->name; figure++) {
        if (!figure_shown(figure, runs, count))
            continue;
        if (strcmp(group, figure->group) != 0) {
            buffer_printf(out, "%s<h2>%s</h2>\n<div class=\"wide\"><table>\n", group[0] ? "</table></div>\n" : "",
                          figure->group);
            group = figure->group;
            append_head(runs, count, figure->target != TARGET_NONE, out);
        }
        append_row(figure, runs, count, true, out);
    }
    buffer_append_text(out, "</table></div>\n");
}

/* ---- The short of it ---- */

static void append_targets_met(const struct run *run, struct buffer *out)
{
    int met = 0, missed = 0;
    for (const struct figure *figure = figures; figure->name; figure++) {
        enum figure_verdict verdict = figure_judge(figure, &run->report);
        met += verdict == FIGURE_MET && figure_is_asked_for(figure, run);
        missed += verdict == FIGURE_MISSED && figure_is_asked_for(figure, run);
    }
    buffer_printf(out, "<td class=\"n %s\">%d of %d</td>", missed > 0 ? "missed" : "met", met, met + missed);
}

static void append_short(const struct run *runs, size_t count, struct buffer *out)
{
    static const char *const names[] = { "completed", "exhaustedJobs", "open",          "peakPerSecond",
                                         "queuePeak", "drainMs",       "backlogEndedMs" };
    buffer_append_text(out, "<figure><figcaption>The short of it</figcaption><table>\n<thead><tr><th class=\"name\"></th>");
    for (size_t i = 0; i < count; i++) {
        buffer_append_text(out, "<th class=\"n\">");
        if (count > 1)
            buffer_append_html(out, slice_from(runs[i].title));
        buffer_append_text(out, "</th>");
    }
    buffer_append_text(out, "</tr></thead>\n");
    if (figure_shown(figures, runs, count)) { /* the first has a target */
        buffer_append_text(out, "<tr><td>targets met</td>");
        for (size_t i = 0; i < count; i++)
            append_targets_met(&runs[i], out);
        buffer_append_text(out, "</tr>\n");
    }
    for (const struct figure *figure = figures; figure->name; figure++) {
        size_t which = 0;
        while (which < sizeof names / sizeof *names && strcmp(names[which], figure->name) != 0)
            which++;
        if (which < sizeof names / sizeof *names && figure_shown(figure, runs, count))
            append_row(figure, runs, count, false, out);
    }
    buffer_append_text(out, "</table></figure>\n");
}

static void append_charts(const struct run *runs, size_t count, struct buffer *out)
{
    struct wanted_curve queues[RUNS_MAX] = { 0 }, requests[RUNS_MAX + 1] = { 0 }, dead[RUNS_MAX] = { 0 };
    double a_second = (double)SECOND_MS / (double)runs[0].result.ledger.step_ms;
    requests[0] = (struct wanted_curve){ "arrivals", "soft", &runs[0].result.ledger, offsetof(struct ledger_step, arrived) };
    for (size_t i = 0; i < count; i++) {
        const char *css = i == 0 ? "a" : "b";
        const struct ledger *ledger = &runs[i].result.ledger;
        queues[i] = (struct wanted_curve){ count == 1 ? "jobs not ended" : runs[i].title, css, ledger,
                                           offsetof(struct ledger_step, queue) };
        requests[i + 1] = (struct wanted_curve){ count == 1 ? "requests" : runs[i].title, css, ledger,
                                                 offsetof(struct ledger_step, requests) };
        dead[i] = (struct wanted_curve){ count == 1 ? "dead letters" : runs[i].title, count == 1 ? "dead" : css, ledger,
                                         offsetof(struct ledger_step, dead) };
    }
    buffer_append_text(out, "<div class=\"grid top\">\n");
    append_short(runs, count, out);
    append_lines("Queue, jobs", &runs[0], queues, count, 1, out);
    append_lines("Requests a second at the destination", &runs[0], requests, count + 1, a_second, out);
    append_lines("Dead letters a minute", &runs[0], dead, count, 60 * a_second, out);
    append_answers(runs, count, a_second, out);
    for (size_t i = 0; i < count; i++)
        append_waits(&runs[i], count > 1, i == 0 ? "a" : "b", out);
    buffer_append_text(out, "</div>\n<p class=\"soft note\">Times are from the start of the simulation.</p>\n");
}

void report_html(const struct run *runs, size_t count, struct buffer *out)
{
    buffer_append(out, (struct slice){ embedded_report[0].data, embedded_report[0].len });
    append_summary(runs, count, out);
    for (size_t i = 0; i < count; i++)
        append_holds(&runs[i], count > 1, out);
    append_charts(runs, count, out);
    append_figures(runs, count, out);
    buffer_append_text(out, "</main>\n</body>\n</html>\n");
}
