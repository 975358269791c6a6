#include "api/operate/incident_view.h"

#include "base/units.h"
#include "engine/saved/gate_state.h"

#include <assert.h>
#include <inttypes.h>

static const char *const causes[CAUSE_COUNT] = {
    [CAUSE_HEALTH] = "its health checks failed several times in a row",
    [CAUSE_SIGNAL] = "a single sign of an outage was enough, as configured",
    [CAUSE_BREAKER] = "too many sends failed and the breaker opened",
    [CAUSE_EXHAUSTED] = "a job had used up its tries and nothing had gone well in between",
    [CAUSE_MAINTENANCE] = "a maintenance window began",
    [CAUSE_OPERATOR] = "an operator held it",
    [CAUSE_RELAPSE] = "it failed again on the way back",
    [CAUSE_CHECKED] = "a check went well",
    [CAUSE_CONFIGURATION] = "contingency is not in its configuration",
    [CAUSE_STABLE] = "it was well for long enough",
    [CAUSE_REMOVED] = "the destination was taken out of the configuration",
};

static const char *const criteria[CRITERION_COUNT] = {
    [CRITERION_TIMEOUT] = "no answer in time",  [CRITERION_CONNECTIVITY] = "no connection",
    [CRITERION_SERVICE] = "server errors",      [CRITERION_MAINTENANCE] = "a planned absence",
    [CRITERION_BUSY] = "overload, or too many requests",
};

const char *cause_words(enum cause cause, enum mode mode)
{
    assert(cause < CAUSE_COUNT);
    if (cause == CAUSE_OPERATOR && mode == MODE_RECOVERING)
        return "an operator let it go on";
    if (cause == CAUSE_MAINTENANCE && mode == MODE_RECOVERING)
        return "the maintenance window is over, and no job came to look with";
    return causes[cause] ? causes[cause] : "the cause is not known";
}

const char *criterion_words(enum criterion criterion)
{
    assert(criterion < CRITERION_COUNT);
    return criteria[criterion];
}

const char *incident_state_name(const struct incident_view *view)
{
    return view->record.mode == MODE_NORMAL ? "restored" : mode_name(view->record.mode);
}

int64_t incident_lasted_ms(const struct incident_view *view)
{
    const struct incident *incident = &view->record.incident;
    int64_t ms = incident_recovery_ms(incident);
    if (ms >= 0)
        return ms;
    return view->now > incident->first_sign_at ? view->now - incident->first_sign_at : 0;
}

int64_t incident_processed(const struct incident_view *view)
{
    const struct incident_record *record = &view->record;
    bool known = record->first.known && view->stock.known && view->stock.completed >= record->first.completed;
    return known ? view->stock.completed - record->first.completed : -1;
}

void incident_confine(struct incident_view *view)
{
    view->confined = true;
    view->record.reason = SLICE("");
    view->record.health_reason = SLICE("");
    view->lessons = SLICE("");
    view->lessons_by = SLICE("");
}

/* ---- words ---- */

void append_span(struct buffer *out, int64_t ms)
{
    char text[UNITS_TEXT_BYTES];
    if (ms >= 10 * SECOND_MS)
        ms -= ms % SECOND_MS;
    duration_format(ms, text);
    buffer_append_text(out, text);
}

void append_moment(struct buffer *out, instant at)
{
    struct civil civil = instant_civil(at);
    buffer_printf(out, "%04d-%02d-%02d %02d:%02d:%02dZ", civil.year, civil.month, civil.day, civil.hour, civil.minute,
                  civil.second);
}

/* As "no job", "1 job", "12 jobs". */
static void append_jobs(struct buffer *out, int64_t count)
{
    if (count == 0)
        buffer_append_text(out, "no job");
    else
        buffer_printf(out, "%" PRId64 " job%s", count, count == 1 ? "" : "s");
}

static void summarise_times(struct buffer *out, const struct incident_view *view)
{
    const struct incident *incident = &view->record.incident;
    buffer_append(out, view->record.destination);
    if (view->record.mode == MODE_NORMAL) {
        buffer_append_text(out, " went into contingency at ");
        append_moment(out, incident->entered_at);
        buffer_append_text(out, " and was fully restored at ");
        append_moment(out, incident->restored_at);
        buffer_append_text(out, ", ");
        append_span(out, incident_lasted_ms(view));
        buffer_append_text(out, " after the first sign.");
        return;
    }
    bool back = view->record.mode == MODE_RECOVERING;
    buffer_append_text(out, back ? " is on its way back from contingency, which it entered at "
                                 : " has been in contingency since ");
    append_moment(out, incident->entered_at);
    buffer_append_text(out, ". It is ");
    append_span(out, incident_lasted_ms(view));
    buffer_append_text(out, " since the first sign.");
}

static void summarise_jobs(struct buffer *out, const struct incident_view *view)
{
    const struct incident *incident = &view->record.incident;
    bool over = view->record.mode == MODE_NORMAL;
    int64_t processed = incident_processed(view);
    int64_t pending = view->stock.pending;
    buffer_append_text(out, incident->held_max == 0 ? " It held " : " It held up to ");
    append_jobs(out, incident->held_max);
    if (processed >= 0) {
        buffer_append_text(out, "; ");
        append_jobs(out, processed);
        buffer_append_text(out, over ? processed > 1 ? " were" : " was" : processed > 1 ? " have been" : " has been");
        buffer_append_text(out, over ? " delivered in its course and " : " delivered so far and ");
        append_jobs(out, pending);
        buffer_append_text(out, over ? pending > 1 ? " were" : " was" : pending > 1 ? " are" : " is");
        buffer_append_text(out, over ? " still pending at its end" : " pending");
    }
    buffer_append_byte(out, '.');
    if (incident->unspent > 0)
        buffer_printf(out, " %" PRId64 " send%s failed without costing a job one of its tries.", incident->unspent,
                      incident->unspent == 1 ? "" : "s");
}

void incident_summary(struct buffer *out, const struct incident_view *view)
{
    const struct incident *incident = &view->record.incident;
    summarise_times(out, view);
    buffer_printf(out, " It began because %s", cause_words(incident->cause, MODE_CONTINGENCY));
    if (incident->criterion != CRITERION_NONE && incident->cause == CAUSE_SIGNAL)
        buffer_printf(out, " (%s)", criterion_words(incident->criterion));
    buffer_append_byte(out, '.');
    if (incident->relapses > 0)
        buffer_printf(out, " On the way back it failed again %" PRId64 " time%s.", incident->relapses,
                      incident->relapses == 1 ? "" : "s");
    if (!view->confined)
        summarise_jobs(out, view);
}

/* ---- JSON ---- */

static void write_signs(struct json_writer *json, const struct incident *incident)
{
    incident_signs_write(json, incident);
    json_member_int(json, "checks_failed", incident->checks_failed);
    json_member_int(json, "probes", incident->probes);
}

static void write_jobs(struct json_writer *json, const struct incident_view *view)
{
    const struct incident_record *record = &view->record;
    int64_t processed = incident_processed(view);
    json_member_int(json, "held_first", record->held_first);
    json_member_int(json, "held_max", record->incident.held_max);
    json_member_int(json, "held", record->held);
    json_member_int(json, "unspent", record->incident.unspent);
    if (record->first.known) {
        json_member_int(json, "pending_first", record->first.pending);
        json_member_int(json, "dead_first", record->first.dead);
    }
    if (view->stock.known) {
        json_member_int(json, "pending", view->stock.pending);
        json_member_int(json, "dead", view->stock.dead);
    }
    if (processed >= 0)
        json_member_int(json, "processed", processed);
}

/* A step without a level has no limit. */
static void write_curve(struct json_writer *json, const struct incident *incident)
{
    json_member_array(json, "curve");
    for (size_t i = 0; i < incident->curve_count; i++) {
        json_object_begin(json);
        json_member_instant(json, "at", incident->curve[i].at);
        if (incident->curve[i].level != INT64_MAX)
            json_member_int(json, "level", incident->curve[i].level);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_changes(struct json_writer *json, const struct incident_record *record)
{
    json_member_array(json, "changes");
    for (size_t i = 0; i < record->change_count; i++) {
        const struct incident_change *change = &record->changes[i];
        json_object_begin(json);
        json_member_instant(json, "at", change->at);
        json_member_text(json, "mode", mode_name(change->mode));
        json_member_given(json, "cause", slice_from(cause_name(change->cause)));
        json_member_given(json, "criterion", slice_from(criterion_name(change->criterion)));
        json_member_text(json, "text", cause_words(change->cause, change->mode));
        json_object_end(json);
    }
    json_array_end(json);
    json_member_int(json, "changes_left_out", record->changes_left_out);
}

static void write_lessons(struct json_writer *json, const struct incident_view *view)
{
    json_name(json, "lessons_learned");
    if (view->lessons.len == 0) {
        json_put_null(json);
        return;
    }
    json_put_string(json, view->lessons);
    json_member_given(json, "lessons_by", view->lessons_by);
    json_member_instant(json, "lessons_at", view->lessons_at);
}

static void write_summary(struct json_writer *json, const struct incident_view *view)
{
    struct buffer summary = buffer_up_to(INCIDENT_RECORD_BYTES_MAX);
    incident_summary(&summary, view);
    json_member_string(json, "summary", buffer_slice(&summary));
    buffer_release(&summary);
}

void incident_json(struct json_writer *json, const struct incident_view *view, bool whole)
{
    const struct incident_record *record = &view->record;
    const struct incident *incident = &record->incident;
    json_object_begin(json);
    json_member_string(json, "id", view->id);
    json_member_string(json, "destination", record->destination);
    json_member_text(json, "state", incident_state_name(view));
    write_summary(json, view);
    json_member_instant(json, "first_sign_at", incident->first_sign_at);
    json_member_instant(json, "entered_at", incident->entered_at);
    json_member_instant(json, "recovering_at", incident->recovering_at);
    json_member_instant(json, "restored_at", incident->restored_at);
    json_member_int(json, "lasted_ms", incident_lasted_ms(view));
    if (incident_recovery_ms(incident) >= 0)
        json_member_int(json, "recovery_ms", incident_recovery_ms(incident));
    json_member_given(json, "cause", slice_from(cause_name(incident->cause)));
    json_member_given(json, "criterion", slice_from(criterion_name(incident->criterion)));
    json_member_given(json, "reason", record->reason);
    json_member_given(json, "health_reason", record->health_reason);
    json_member_int(json, "relapses", incident->relapses);
    if (!view->confined) {
        write_signs(json, incident);
        write_jobs(json, view);
    }
    if (whole)
        write_changes(json, record);
    if (whole && !view->confined) {
        write_curve(json, incident);
        write_lessons(json, view);
    }
    json_object_end(json);
}
