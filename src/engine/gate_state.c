#include "engine/gate_state.h"

#include "engine/kept_json.h"

void incident_signs_write(struct json_writer *json, const struct incident *incident)
{
    json_name(json, "signs");
    json_object_begin(json);
    for (int i = CRITERION_NONE + 1; i < CRITERION_COUNT; i++)
        if (incident->signs[i] > 0)
            json_member_int(json, criterion_name((enum criterion)i), incident->signs[i]);
    json_object_end(json);
}

void incident_state_write(struct json_writer *json, const struct incident *incident)
{
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
    json_name(json, "curve");
    json_array_begin(json);
    for (size_t i = 0; i < incident->curve_count; i++) {
        json_object_begin(json);
        json_member_instant(json, "at", incident->curve[i].at);
        json_member_int(json, "level", incident->curve[i].level);
        json_object_end(json);
    }
    json_array_end(json);
}

void block_state_write(struct json_writer *json, const struct block_kept *kept)
{
    json_name(json, "block");
    json_object_begin(json);
    json_member_instant(json, "since", kept->since);
    json_member_instant(json, "look_at", kept->look_at);
    json_member_int(json, "needed", kept->needed);
    if (kept->confirmed)
        json_member_bool(json, "confirmed", true);
    if (kept->unsent)
        json_member_bool(json, "unsent", true);
    json_object_end(json);
}

void gate_state_write(struct json_writer *json, const struct gate_kept *kept)
{
    const struct contingency_kept *contingency = &kept->contingency;
    json_member_bool(json, "paused", kept->paused);
    json_member_instant(json, "closed_until", kept->closed_until);
    json_name(json, "breaker");
    json_object_begin(json);
    json_member_text(json, "state", breaker_state_name(kept->breaker.state));
    json_member_instant(json, "since", kept->breaker.since);
    json_member_instant(json, "until", kept->breaker.until);
    json_member_int(json, "openings", kept->breaker.openings);
    json_object_end(json);
    if (kept->outage.since != INSTANT_NONE) {
        json_name(json, "outage");
        json_object_begin(json);
        json_member_instant(json, "since", kept->outage.since);
        json_member_instant(json, "good_at", kept->outage.good_at);
        json_member_instant(json, "ended_at", kept->outage.ended_at);
        json_object_end(json);
    }
    if (kept->block.held || kept->block.needed != BLOCK_NEEDED)
        block_state_write(json, &kept->block);
    json_name(json, "contingency");
    json_object_begin(json);
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
    json_name(json, "incident");
    json_object_begin(json);
    incident_state_write(json, &contingency->incident);
    json_object_end(json);
    json_object_end(json);
}

/* ---- reading ---- */

static void read_breaker(const json_t *object, struct breaker_kept *kept)
{
    static const enum breaker_state states[] = { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };
    instant since = kept_instant(object, "since");
    for (size_t i = 0; i < sizeof states / sizeof *states && since != INSTANT_NONE; i++)
        if (slice_equal(kept_text(object, "state"), slice_from(breaker_state_name(states[i]))))
            *kept = (struct breaker_kept){ .state = states[i], .since = since, .until = kept_instant(object, "until"),
                                           .openings = kept_count(object, "openings") };
}

struct incident incident_state_read(const json_t *object)
{
    struct incident incident = {
        .first_sign_at = kept_instant(object, "first_sign_at"),
        .entered_at = kept_instant(object, "entered_at"),
        .recovering_at = kept_instant(object, "recovering_at"),
        .restored_at = kept_instant(object, "restored_at"),
        .cause = cause_from_name(kept_text(object, "cause")),
        .criterion = criterion_from_name(kept_text(object, "criterion")),
        .checks_failed = kept_count(object, "checks_failed"),
        .relapses = kept_count(object, "relapses"),
        .probes = kept_count(object, "probes"),
        .held_max = kept_count(object, "held_max"),
        .unspent = kept_count(object, "unspent"),
    };
    const json_t *signs = json_object_get(object, "signs");
    for (int i = CRITERION_NONE + 1; i < CRITERION_COUNT; i++)
        incident.signs[i] = kept_count(signs, criterion_name((enum criterion)i));
    const json_t *curve = json_object_get(object, "curve");
    while (incident.curve_count < json_array_size(curve) && incident.curve_count < RAMP_CURVE_MAX) {
        const json_t *point = json_array_get(curve, incident.curve_count);
        incident.curve[incident.curve_count].at = kept_instant(point, "at");
        incident.curve[incident.curve_count++].level = kept_count(point, "level");
    }
    return incident;
}

static void read_contingency(const json_t *object, struct contingency_kept *kept)
{
    enum mode mode = mode_from_name(kept_text(object, "mode"));
    instant since = kept_instant(object, "since");
    if (mode == MODE_COUNT || since == INSTANT_NONE)
        return;
    *kept = (struct contingency_kept){
        .mode = mode,
        .cause = cause_from_name(kept_text(object, "cause")),
        .since = since,
        .forced = json_is_true(json_object_get(object, "forced")),
        .ignore_until = kept_instant(object, "ignore_until"),
        .check_at = kept_instant(object, "check_at"),
        .looked_at = kept_instant(object, "looked_at"),
        .look_ms = kept_count(object, "look_ms"),
        .step = (size_t)kept_count(object, "step"),
        .calm_since = kept_instant(object, "calm_since"),
        .incident = incident_state_read(json_object_get(object, "incident")),
    };
}

/* A time that is not there has come. */
struct block_kept block_state_read(const json_t *root, instant before_blocks)
{
    const json_t *object = json_object_get(root, "block");
    struct block_kept kept = { .since = kept_instant(object, "since"), .look_at = kept_instant(object, "look_at"),
                               .needed = kept_count(object, "needed"),
                               .confirmed = json_is_true(json_object_get(object, "confirmed")),
                               .unsent = json_is_true(json_object_get(object, "unsent")) };
    if (!object && json_is_true(json_object_get(root, "blocked")))
        kept.since = before_blocks;
    kept.held = kept.since != INSTANT_NONE;
    return kept;
}

void gate_state_read(const json_t *root, struct gate_kept *kept)
{
    kept->paused = json_is_true(json_object_get(root, "paused"));
    kept->closed_until = kept_instant(root, "closed_until");
    read_breaker(json_object_get(root, "breaker"), &kept->breaker);
    read_contingency(json_object_get(root, "contingency"), &kept->contingency);
    const json_t *outage = json_object_get(root, "outage");
    kept->outage = (struct outage){ .since = kept_instant(outage, "since"), .good_at = kept_instant(outage, "good_at"),
                                    .ended_at = kept_instant(outage, "ended_at") };
    instant held_since = kept_instant(root, "since");
    kept->block = block_state_read(root, held_since != INSTANT_NONE ? held_since : 0);
    if (json_is_true(json_object_get(root, "blocked"))) /* as versions wrote it that paused it for refused answers */
        kept->paused = false;
}
