/*
 * Cycles: what each run of a destination selected and what came of it, reported when it is over.
 */
#include "base/json.h"
#include "base/log.h"
#include "engine/loop.h"
#include "engine/outage/cycles.h"
#include "engine/saved/json.h"

#include <assert.h>

/* The second address is not sent to in cycles, and counts its own passes. */
static bool has_cycles(const struct dest *dest, const struct gate *gate, uint32_t number)
{
    return gate == &dest->gate && dest->rules.first.cycle_every_ms > 0 && number > 0;
}

void dest_cycle_selected(struct dest *dest, const struct gate *gate, struct gate_pass pass, const struct job *jobs,
                         size_t count, instant now)
{
    int64_t age_sum_ms = 0;
    if (count == 0 || !has_cycles(dest, gate, pass.cycle))
        return;
    for (size_t i = 0; i < count; i++)
        age_sum_ms += now > jobs[i].created_at ? now - jobs[i].created_at : 0;
    assert(age_sum_ms >= 0);
    cycle_selected(&dest->trend.cycles, pass.cycle, (int64_t)count, age_sum_ms, now);
}

static enum cycle_answer answer_of(const struct settlement *settlement)
{
    if (settlement->dead)
        return CYCLE_FAILED;
    switch (settlement->decision.verdict) {
    case VERDICT_COMPLETE:
        return CYCLE_SUCCEEDED;
    case VERDICT_RETRY:
        return CYCLE_RESCHEDULED;
    default:
        return CYCLE_HELD;
    }
}

void dest_cycle_answered(struct dest *dest, const struct gate *gate, struct gate_pass pass,
                         const struct settlement *settlement, instant now)
{
    if (settlement)
        pace_note(&dest->trend.pace, now, settlement->decision.verdict == VERDICT_COMPLETE);
    if (!has_cycles(dest, gate, pass.cycle))
        return;
    if (settlement)
        cycle_answered(&dest->trend.cycles, pass.cycle, answer_of(settlement), now);
    else
        cycle_returned(&dest->trend.cycles, pass.cycle);
}

static void tell(struct dest *dest, instant now)
{
    const struct cycle_figures *last = &dest->trend.cycles.last;
    assert(last->number > 0 && last->answered <= last->selected);
    log_event(LOG_INFO, "cycle_done", FIELD_CSTR("destination", dest->name), FIELD_INT("selected", last->selected),
              FIELD_INT("succeeded", last->succeeded), FIELD_INT("failed", last->failed),
              FIELD_INT("rescheduled", last->rescheduled), FIELD_INT("cycle_ms", cycle_took_ms(last)),
              FIELD_INT("average_age_ms", last->age_ms));
    dest_changed(dest, (struct dest_change){ .change = "cycle", .cycle = last->number, .at = now });
}

void dest_cycle_tick(struct dest *dest, instant now)
{
    uint32_t present = dest->trend.cycles.present.figures.number;
    if (present > 0 && (dest->rules.first.cycle_every_ms == 0 || present != dest->gate.cycle ||
                        gate_cycle_over(&dest->gate, now)))
        cycle_ended(&dest->trend.cycles, present);
    while (cycle_tell(&dest->trend.cycles))
        tell(dest, now);
}

void cycle_write(struct json_writer *json, const struct cycle_figures *figures)
{
    assert(figures->answered <= figures->selected);
    json_member_object(json, "cycle");
    json_member_instant(json, "began_at", figures->began_at);
    json_member_instant(json, "ended_at", figures->ended_at);
    json_member_int(json, "cycle_ms", cycle_took_ms(figures));
    json_member_int(json, "selected", figures->selected);
    json_member_int(json, "succeeded", figures->succeeded);
    json_member_int(json, "failed", figures->failed);
    json_member_int(json, "rescheduled", figures->rescheduled);
    json_member_int(json, "unanswered", figures->selected - figures->answered);
    json_member_int(json, "average_age_ms", figures->age_ms);
    json_object_end(json);
}

void cycle_read(const json_t *root, struct cycle_figures *figures)
{
    const json_t *object = json_object_get(root, "cycle");
    struct cycle_figures read = {
        .number = UINT32_MAX, /* of another process's gate */
        .began_at = saved_instant(object, "began_at"),
        .ended_at = saved_instant(object, "ended_at"),
        .selected = saved_count(object, "selected"),
        .succeeded = saved_count(object, "succeeded"),
        .failed = saved_count(object, "failed"),
        .rescheduled = saved_count(object, "rescheduled"),
        .answered = saved_count(object, "selected") - saved_count(object, "unanswered"),
        .age_ms = saved_count(object, "average_age_ms"),
    };
    if (read.began_at != INSTANT_NONE && read.ended_at >= read.began_at && read.selected > 0 && read.answered >= 0)
        *figures = read;
}
