#include "engine/saved/gate_state.h"

#include "engine/saved/json.h"

#include <assert.h>

void incident_signs_write(struct json_writer *json, const struct incident *incident)
{
    json_member_object(json, "signs");
    for (int i = CRITERION_NONE + 1; i < CRITERION_COUNT; i++)
        if (incident->signs[i] > 0)
            json_member_int(json, criterion_name((enum criterion)i), incident->signs[i]);
    json_object_end(json);
}

void incident_state_write(struct json_writer *json, const struct incident *incident)
{
    assert(incident->curve_count <= RAMP_CURVE_MAX);
    json_member_instant(json, "first_sign_at", incident->first_sign_at);
    json_member_instant(json, "entered_at", incident->entered_at);
    json_member_instant(json, "recovering_at", incident->recovering_at);
    json_member_instant(json, "restored_at", incident->restored_at);
    json_member_given(json, "cause", slice_from(cause_name(incident->cause)));
    json_member_given(json, "criterion", slice_from(criterion_name(incident->criterion)));
    incident_signs_write(json, incident);
    json_member_int(json, "checks_failed", incident->checks_failed);
    json_member_int(json, "relapses", incident->relapses);
    json_member_int(json, "probes", incident->probes);
    json_member_int(json, "held_max", incident->held_max);
    json_member_int(json, "unspent", incident->unspent);
    json_member_array(json, "curve");
    for (size_t i = 0; i < incident->curve_count; i++) {
        json_object_begin(json);
        json_member_instant(json, "at", incident->curve[i].at);
        json_member_int(json, "level", incident->curve[i].level);
        json_object_end(json);
    }
    json_array_end(json);
}

void block_state_write(struct json_writer *json, const struct block_saved *saved)
{
    assert(!saved->held || saved->since != INSTANT_NONE);
    json_member_object(json, "block");
    json_member_instant(json, "since", saved->since);
    json_member_instant(json, "look_at", saved->look_at);
    json_member_int(json, "needed", saved->needed);
    if (saved->confirmed)
        json_member_bool(json, "confirmed", true);
    if (saved->unsent)
        json_member_bool(json, "unsent", true);
    json_object_end(json);
}

void gate_state_write(struct json_writer *json, const struct gate_saved *saved)
{
    const struct contingency_saved *contingency = &saved->contingency;
    assert(contingency->mode < MODE_COUNT);
    json_member_bool(json, "paused", saved->paused);
    json_member_instant(json, "closed_until", saved->closed_until);
    json_member_object(json, "breaker");
    json_member_text(json, "state", breaker_state_name(saved->breaker.state));
    json_member_instant(json, "since", saved->breaker.since);
    json_member_instant(json, "until", saved->breaker.until);
    json_member_int(json, "openings", saved->breaker.openings);
    json_object_end(json);
    if (saved->outage.since != INSTANT_NONE) {
        json_member_object(json, "outage");
        json_member_instant(json, "since", saved->outage.since);
        json_member_instant(json, "good_at", saved->outage.good_at);
        json_member_instant(json, "ended_at", saved->outage.ended_at);
        json_object_end(json);
    }
    if (saved->block.held || saved->block.needed != BLOCK_NEEDED)
        block_state_write(json, &saved->block);
    json_member_object(json, "contingency");
    json_member_text(json, "mode", mode_name(contingency->mode));
    json_member_given(json, "cause", slice_from(cause_name(contingency->cause)));
    json_member_instant(json, "since", contingency->since);
    json_member_bool(json, "forced", contingency->forced);
    json_member_instant(json, "ignore_until", contingency->ignore_until);
    json_member_instant(json, "check_at", contingency->check_at);
    json_member_instant(json, "looked_at", contingency->looked_at);
    if (contingency->look_ms > 0)
        json_member_int(json, "look_ms", contingency->look_ms);
    json_member_int(json, "step", (int64_t)contingency->step);
    json_member_instant(json, "calm_since", contingency->calm_since);
    json_member_object(json, "incident");
    incident_state_write(json, &contingency->incident);
    json_object_end(json);
    json_object_end(json);
}

/* ---- reading ---- */

static void read_breaker(const json_t *object, struct breaker_saved *saved)
{
    static const enum breaker_state states[] = { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };
    instant since = saved_instant(object, "since");
    for (size_t i = 0; i < sizeof states / sizeof *states && since != INSTANT_NONE; i++)
        if (slice_equal(saved_text(object, "state"), slice_from(breaker_state_name(states[i]))))
            *saved = (struct breaker_saved){ .state = states[i], .since = since, .until = saved_instant(object, "until"),
                                           .openings = saved_count(object, "openings") };
}

struct incident incident_state_read(const json_t *object)
{
    struct incident incident = {
        .first_sign_at = saved_instant(object, "first_sign_at"),
        .entered_at = saved_instant(object, "entered_at"),
        .recovering_at = saved_instant(object, "recovering_at"),
        .restored_at = saved_instant(object, "restored_at"),
        .cause = cause_from_name(saved_text(object, "cause")),
        .criterion = criterion_from_name(saved_text(object, "criterion")),
        .checks_failed = saved_count(object, "checks_failed"),
        .relapses = saved_count(object, "relapses"),
        .probes = saved_count(object, "probes"),
        .held_max = saved_count(object, "held_max"),
        .unspent = saved_count(object, "unspent"),
    };
    const json_t *signs = json_object_get(object, "signs");
    for (int i = CRITERION_NONE + 1; i < CRITERION_COUNT; i++)
        incident.signs[i] = saved_count(signs, criterion_name((enum criterion)i));
    const json_t *curve = json_object_get(object, "curve");
    while (incident.curve_count < json_array_size(curve) && incident.curve_count < RAMP_CURVE_MAX) {
        const json_t *point = json_array_get(curve, incident.curve_count);
        incident.curve[incident.curve_count].at = saved_instant(point, "at");
        incident.curve[incident.curve_count++].level = saved_count(point, "level");
    }
    return incident;
}

static void read_contingency(const json_t *object, struct contingency_saved *saved)
{
    enum mode mode = mode_from_name(saved_text(object, "mode"));
    instant since = saved_instant(object, "since");
    if (mode == MODE_COUNT || since == INSTANT_NONE)
        return;
    *saved = (struct contingency_saved){
        .mode = mode,
        .cause = cause_from_name(saved_text(object, "cause")),
        .since = since,
        .forced = json_is_true(json_object_get(object, "forced")),
        .ignore_until = saved_instant(object, "ignore_until"),
        .check_at = saved_instant(object, "check_at"),
        .looked_at = saved_instant(object, "looked_at"),
        .look_ms = saved_count(object, "look_ms"),
        .step = (size_t)saved_count(object, "step"),
        .calm_since = saved_instant(object, "calm_since"),
        .incident = incident_state_read(json_object_get(object, "incident")),
    };
}

/* A time that is not there has come. */
struct block_saved block_state_read(const json_t *root, instant before_blocks)
{
    const json_t *object = json_object_get(root, "block");
    struct block_saved saved = { .since = saved_instant(object, "since"), .look_at = saved_instant(object, "look_at"),
                               .needed = object ? saved_count(object, "needed") : BLOCK_NEEDED,
                               .confirmed = json_is_true(json_object_get(object, "confirmed")),
                               .unsent = json_is_true(json_object_get(object, "unsent")) };
    if (!object && json_is_true(json_object_get(root, "blocked")))
        saved.since = before_blocks;
    saved.held = saved.since != INSTANT_NONE;
    return saved;
}

void gate_state_read(const json_t *root, struct gate_saved *saved)
{
    saved->paused = json_is_true(json_object_get(root, "paused"));
    saved->closed_until = saved_instant(root, "closed_until");
    read_breaker(json_object_get(root, "breaker"), &saved->breaker);
    read_contingency(json_object_get(root, "contingency"), &saved->contingency);
    const json_t *outage = json_object_get(root, "outage");
    saved->outage = (struct outage){ .since = saved_instant(outage, "since"), .good_at = saved_instant(outage, "good_at"),
                                    .ended_at = saved_instant(outage, "ended_at") };
    instant held_since = saved_instant(root, "since");
    saved->block = block_state_read(root, held_since != INSTANT_NONE ? held_since : 0);
    if (json_is_true(json_object_get(root, "blocked"))) /* as versions wrote it that paused it for refused answers */
        saved->paused = false;
}
