#include "api/operate/incident_report.h"

#include "api/operate/markdown.h"

#include <inttypes.h>

enum { BAR_CHARACTERS_MAX = 40 };

/* ---- what happened when ---- */

/* A line of the timeline; exactly one of the three. */
struct moment {
    instant at;
    bool first_sign;
    const struct incident_change *change;
    size_t step; /* index into the curve; 0: not a step */
};

enum { MOMENTS_MAX = 1 + INCIDENT_CHANGES_MAX + RAMP_CURVE_MAX };

static bool is_a_change(const struct incident_record *record, instant at)
{
    for (size_t i = 0; i < record->change_count; i++)
        if (record->changes[i].at == at)
            return true;
    return false;
}

/* Puts it behind those of the same time. */
static void moments_add(struct moment *moments, size_t *count, struct moment moment)
{
    size_t at = (*count)++;
    while (at > 0 && moments[at - 1].at > moment.at) {
        moments[at] = moments[at - 1];
        at--;
    }
    moments[at] = moment;
}

static size_t collect(const struct incident_record *record, struct moment moments[MOMENTS_MAX])
{
    const struct incident *incident = &record->incident;
    size_t count = 0;
    moments_add(moments, &count, (struct moment){ .at = incident->first_sign_at, .first_sign = true });
    for (size_t i = 0; i < record->change_count; i++)
        moments_add(moments, &count, (struct moment){ .at = record->changes[i].at, .change = &record->changes[i] });
    for (size_t i = 1; i < incident->curve_count; i++)
        if (!is_a_change(record, incident->curve[i].at)) /* that has its level with it */
            moments_add(moments, &count, (struct moment){ .at = incident->curve[i].at, .step = i });
    return count;
}

static void append_level(struct buffer *out, int64_t level)
{
    if (level == INT64_MAX)
        buffer_append_text(out, "as many as may go");
    else
        buffer_printf(out, "%" PRId64 " at a time", level);
}

static void append_step(struct buffer *out, const struct incident *incident, size_t step)
{
    int64_t level = incident->curve[step].level, before = incident->curve[step - 1].level;
    buffer_append_text(out, level > before ? "Next step: " : level < before ? "A step back: " : "The last step is done: ");
    append_level(out, level);
    if (level == before)
        buffer_append_text(out, ", until it has been well for long enough");
}

static void append_change(struct buffer *out, const struct incident_record *record, const struct incident_change *change)
{
    const char *words = cause_words(change->cause, change->mode);
    switch (change->mode) {
    case MODE_CONTINGENCY:
        buffer_printf(out, "%s: %s", change->cause == CAUSE_RELAPSE ? "Held again" : "Contingency, jobs are held", words);
        break;
    case MODE_RECOVERING:
        buffer_printf(out, "On the way back: %s", words);
        for (size_t i = 0; i < record->incident.curve_count; i++)
            if (record->incident.curve[i].at == change->at && record->incident.curve[i].level > 0) {
                buffer_append_text(out, "; jobs go again, ");
                append_level(out, record->incident.curve[i].level);
                break;
            }
        break;
    default:
        buffer_printf(out, "Fully restored: %s", words);
        break;
    }
    if (change->criterion != CRITERION_NONE && change->cause != CAUSE_MAINTENANCE)
        buffer_printf(out, " (%s)", criterion_words(change->criterion));
}

static void append_timeline(struct buffer *out, const struct incident_view *view)
{
    struct moment moments[MOMENTS_MAX];
    size_t count = collect(&view->record, moments);
    instant start = view->record.incident.first_sign_at;
    buffer_append_text(out, "\n## Timeline\n\n| time (UTC) | after | what happened |\n|---|---:|---|\n");
    for (size_t i = 0; i < count; i++) {
        buffer_append_text(out, "| ");
        append_moment(out, moments[i].at);
        buffer_append_text(out, " | ");
        append_span(out, moments[i].at > start ? moments[i].at - start : 0);
        buffer_append_text(out, " | ");
        if (moments[i].first_sign) {
            buffer_append_text(out, "First sign");
        } else if (moments[i].change) {
            append_change(out, &view->record, moments[i].change);
        } else {
            append_step(out, &view->record.incident, moments[i].step);
        }
        buffer_append_text(out, " |\n");
    }
    if (view->record.changes_left_out > 0)
        buffer_printf(out, "\n%" PRId64 " changes in the middle are left out.\n", view->record.changes_left_out);
}

/* ---- what was seen ---- */

static const struct {
    struct slice name;
    const char *words;
} checks[] = {
    { { "no_answer", 9 }, "no answer" },
    { { "slow", 4 }, "the answer came too late" },
    { { "refused", 7 }, "an answer that means no" },
    { { "unreadable", 10 }, "an answer that could not be read" },
    { { "unwell", 6 }, "it said itself that it was not well" },
    { { "service_unwell", 14 }, "one of its services was not well" },
    { { "no_definitions", 14 }, "another page than the expected one" },
};

static void append_check(struct buffer *out, struct slice reason)
{
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (slice_equal(checks[i].name, reason))
            buffer_printf(out, ", at last: %s", checks[i].words);
}

static void append_seen(struct buffer *out, const struct incident_view *view)
{
    const struct incident *incident = &view->record.incident;
    buffer_append_text(out, "\n## What was seen\n\nCause: ");
    buffer_append_text(out, cause_words(incident->cause, MODE_CONTINGENCY));
    buffer_append_text(out, ".\n");
    if (view->record.reason.len > 0) {
        buffer_append_text(out, "\nThe operator said:\n\n");
        markdown_quote(out, view->record.reason);
    }
    if (view->confined)
        return;
    buffer_append_text(out, "\n| sign | times |\n|---|---:|\n");
    for (int i = CRITERION_NONE + 1; i < CRITERION_COUNT; i++)
        if (incident->signs[i] > 0)
            buffer_printf(out, "| sends that failed: %s | %" PRId64 " |\n", criterion_words((enum criterion)i),
                          incident->signs[i]);
    if (incident->checks_failed > 0) {
        buffer_append_text(out, "| health checks that failed");
        append_check(out, view->record.health_reason);
        buffer_printf(out, " | %" PRId64 " |\n", incident->checks_failed);
    }
    buffer_printf(out, "| jobs sent to see whether it is back | %" PRId64 " |\n", incident->probes);
    buffer_printf(out, "| relapses on the way back | %" PRId64 " |\n", incident->relapses);
}

/* ---- what it did to the jobs ---- */

static void append_known(struct buffer *out, bool known, int64_t count)
{
    if (known)
        buffer_printf(out, " | %" PRId64, count);
    else
        buffer_append_text(out, " | ");
}

static void append_effect(struct buffer *out, const struct incident_view *view)
{
    const struct incident_record *record = &view->record;
    int64_t processed = incident_processed(view);
    bool over = record->mode == MODE_NORMAL;
    if (view->confined)
        return;
    buffer_printf(out, "\n## Effect on jobs\n\n| jobs | when it began | most | %s |\n|---|---:|---:|---:|\n",
                  over ? "at its end" : "now");
    buffer_printf(out, "| held although due | %" PRId64 " | %" PRId64 " | %" PRId64 " |\n", record->held_first,
                  record->incident.held_max, record->held);
    buffer_append_text(out, "| pending, in all");
    append_known(out, record->first.known, record->first.pending);
    buffer_append_text(out, " | ");
    append_known(out, view->stock.known, view->stock.pending);
    buffer_append_text(out, " |\n| dead letters");
    append_known(out, record->first.known, record->first.dead);
    buffer_append_text(out, " | ");
    append_known(out, view->stock.known, view->stock.dead);
    buffer_append_text(out, " |\n\n");
    if (processed >= 0)
        buffer_printf(out, "- Processed %s: %" PRId64 "; pending %s: %" PRId64 "\n",
                      over ? "in the course of the incident" : "so far", processed, over ? "at its end" : "now",
                      view->stock.pending);
    buffer_printf(out, "- Tries not spent: %" PRId64 ". So many sends failed without costing a job one of its tries.\n",
                  record->incident.unspent);
    if (view->config && view->config->alerts.pending > 0)
        buffer_printf(out, "- Held at most: %" PRId64 "; the alert is set at %" PRId64 " pending jobs\n",
                      record->incident.held_max, view->config->alerts.pending);
}

/* ---- the way back ---- */

static int64_t highest(const struct incident *incident)
{
    int64_t most = 1;
    for (size_t i = 0; i < incident->curve_count; i++)
        if (incident->curve[i].level != INT64_MAX && incident->curve[i].level > most)
            most = incident->curve[i].level;
    return most;
}

/* A level above 0 is seen, however small beside the others. */
static void append_bar(struct buffer *out, int64_t level, int64_t most)
{
    int64_t width = most <= BAR_CHARACTERS_MAX ? level : (level * BAR_CHARACTERS_MAX + most - 1) / most;
    for (int64_t i = 0; i < width; i++)
        buffer_append_byte(out, '#');
    buffer_printf(out, " %" PRId64 "\n", level);
}

static void append_curve(struct buffer *out, const struct incident_view *view)
{
    const struct incident *incident = &view->record.incident;
    int64_t most = highest(incident);
    if (view->confined)
        return;
    buffer_append_text(out, "\n## The way back\n\nHow many jobs could be under way at once, step by step:\n\n```text\n");
    for (size_t i = 0; i < incident->curve_count; i++) {
        append_moment(out, incident->curve[i].at);
        buffer_append_text(out, "  ");
        if (incident->curve[i].level == 0)
            buffer_append_text(out, "held\n");
        else if (incident->curve[i].level == INT64_MAX)
            buffer_append_text(out, "no limit\n");
        else
            append_bar(out, incident->curve[i].level, most);
    }
    if (view->record.mode == MODE_NORMAL) {
        append_moment(out, incident->restored_at);
        buffer_append_text(out, "  restored: no limit\n");
    }
    buffer_append_text(out, "```\n");
}

/* ---- how long it took ---- */

static void append_row(struct buffer *out, const char *what, instant from, instant until)
{
    buffer_printf(out, "| %s | ", what);
    append_span(out, until > from ? until - from : 0);
    buffer_append_text(out, " | ");
}

static void append_times(struct buffer *out, const struct incident_view *view)
{
    const struct incident *incident = &view->record.incident;
    const struct destination_config *config = view->config;
    bool over = view->record.mode == MODE_NORMAL;
    bool back = incident->recovering_at != INSTANT_NONE;
    bool again = incident->relapses > 0;
    instant end = over ? incident->restored_at : view->now;
    buffer_append_text(out, "\n## Times\n\n| what | took | aim, as configured now |\n|---|---:|---|\n");
    append_row(out, "first sign to contingency", incident->first_sign_at, incident->entered_at);
    if (config && config->health.kind != HEALTH_NONE && incident->cause == CAUSE_HEALTH) {
        buffer_printf(out, "%" PRId64 " checks, ", config->health.failures);
        append_span(out, config->health.every_ms);
        buffer_append_text(out, " apart");
    }
    buffer_append_text(out, " |\n");
    append_row(out, !back   ? "contingency until now"
                    : again ? "contingency to the last way back"
                            : "contingency to the way back", incident->entered_at,
               back ? incident->recovering_at : end);
    if (config && config->alerts.age_ms > 0) {
        buffer_append_text(out, "the alert on waiting jobs is set at ");
        append_span(out, config->alerts.age_ms);
    }
    buffer_append_text(out, " |\n");
    if (back) {
        append_row(out, over ? "way back to full restore" : "way back until now", incident->recovering_at, end);
        if (config) {
            buffer_append_text(out, "at least ");
            append_span(out, config->contingency.stable_ms);
            buffer_append_text(out, " without a failure");
        }
        buffer_append_text(out, " |\n");
    }
    buffer_printf(out, "| **%s** | **", over ? "recovery: first sign to full restore" : "first sign until now");
    append_span(out, incident_lasted_ms(view));
    buffer_append_text(out, "** | |\n");
}

/* ---- what was learned ---- */

static void append_lessons(struct buffer *out, const struct incident_view *view)
{
    if (view->confined)
        return;
    buffer_append_text(out, "\n## Lessons learned\n\n");
    if (view->lessons.len == 0) {
        buffer_printf(out, "None are written down yet. To do so: `insist incidents note %.*s TEXT`\n", SLICE_ARG(view->id));
        return;
    }
    markdown_quote(out, view->lessons);
    if (view->lessons_at == INSTANT_NONE)
        return;
    buffer_append_text(out, "\nWritten ");
    if (view->lessons_by.len > 0) {
        buffer_append_text(out, "by ");
        markdown_append(out, view->lessons_by);
        buffer_append_byte(out, ' ');
    }
    buffer_append_text(out, "at ");
    append_moment(out, view->lessons_at);
    buffer_append_text(out, ".\n");
}

void incident_report(struct buffer *out, const struct incident_view *view)
{
    struct buffer summary = buffer_up_to(INCIDENT_RECORD_BYTES_MAX);
    buffer_append_text(out, "# Incident at ");
    markdown_append(out, view->record.destination);
    buffer_append_text(out, ", ");
    append_moment(out, view->record.incident.entered_at);
    buffer_append_text(out, "\n\n");
    incident_summary(&summary, view);
    markdown_append(out, buffer_slice(&summary));
    buffer_release(&summary);
    buffer_printf(out, "\n\nIncident `%.*s`, %s.", SLICE_ARG(view->id), incident_state_name(view));
    if (view->record.mode != MODE_NORMAL) {
        buffer_append_text(out, " This report is as of ");
        append_moment(out, view->now);
        buffer_append_text(out, "; the incident is not over.");
    }
    buffer_append_byte(out, '\n');
    append_timeline(out, view);
    append_seen(out, view);
    append_effect(out, view);
    append_curve(out, view);
    append_times(out, view);
    append_lessons(out, view);
}
