/*
 * Lanes that are held for themselves, by an operator or because their answers are refused: the others go on.
 */
#include "base/log.h"
#include "engine/alerts/notify.h"
#include "engine/loop.h"
#include "engine/restore.h"
#include "engine/saved/gate_state.h"
#include "engine/saved/json.h"

#include <assert.h>

void lane_hold_begin(struct lane_state *lane, struct slice reason, instant since)
{
    struct dest *dest = lane->dest;
    assert(!lane->hold.held);
    lane->reported = true;
    hold_reason_set(&lane->hold.reason, reason);
    lane->hold.held = true;
    lane->hold.since = since;
    lane->hold.next = dest->holds.first;
    dest->holds.first = lane;
    dest->holds.count++;
    assert(dest->holds.count <= HELD_LANES_MAX);
}

void lane_hold_end(struct lane_state *lane)
{
    assert(lane->hold.held && lane->dest->holds.count > 0);
    struct lane_state **link = &lane->dest->holds.first;
    while (*link != lane)
        link = &(*link)->hold.next;
    *link = lane->hold.next;
    lane->dest->holds.count--;
    lane->hold.held = false;
}

bool lane_held_by_hand(const struct lane_state *lane)
{
    return lane->hold.held && !block_holds(&lane->block);
}

void engine_recall(struct engine *engine, int64_t id, struct slice destination, struct slice tenant)
{
    struct lane_state *lane;
    (void)!lane_get(engine, id, destination, tenant, &lane);
}

/* The lane of an order; NULL: *err says why not. */
static struct lane_state *ordered(const struct engine *engine, int64_t id, struct error *err)
{
    struct lane_state *lane = lane_find(engine, id);
    if (!lane)
        error_set(err, STATUS_NOT_FOUND, "no memory for the tenant, or its destination is another node's");
    return lane;
}

static enum status hold_lane(struct engine *engine, struct lane_state *lane, struct slice reason, struct error *err)
{
    struct dest *dest = lane->dest;
    if (lane->hold.held && block_holds(&lane->block)) { /* from now on it waits for somebody */
        hold_reason_set(&lane->hold.reason, reason);
        block_ends(&lane->block);
        lane_unpark(lane);
        dest_changed(dest, (struct dest_change){ .change = "tenant_paused", .lane = lane, .at = engine_now(engine) });
        engine_wake(engine);
        return STATUS_OK;
    }
    if (lane->hold.held) {
        if (hold_reason_change(&lane->hold.reason, reason)) {
            dest_changed(dest, (struct dest_change){ "tenant_pause_reason", .lane = lane, .at = engine_now(engine) });
            engine_wake(engine);
        }
        return STATUS_OK;
    }
    if (dest->holds.count == HELD_LANES_MAX)
        return error_set(err, STATUS_LIMIT, "%d tenants of %s are held already; pause the destination", HELD_LANES_MAX,
                         dest->name);
    assert(dest->holds.count < HELD_LANES_MAX);
    lane_hold_begin(lane, reason, engine_now(engine));
    dest_changed(dest, (struct dest_change){ .change = "tenant_paused", .lane = lane, .at = lane->hold.since });
    log_event(LOG_WARN, "tenant_paused", FIELD_CSTR("destination", dest->name), FIELD_CSTR("tenant", lane->tenant),
              FIELD_CSTR("reason", lane->hold.reason ? lane->hold.reason : ""));
    engine_wake(engine);
    return STATUS_OK;
}

enum status engine_pause_tenant(struct engine *engine, int64_t id, struct slice reason, struct error *err)
{
    struct lane_state *lane = ordered(engine, id, err);
    return lane ? hold_lane(engine, lane, reason, err) : STATUS_NOT_FOUND;
}

enum status engine_resume_tenant(struct engine *engine, int64_t id, struct error *err)
{
    struct lane_state *lane = ordered(engine, id, err);
    if (!lane)
        return STATUS_NOT_FOUND;
    lane_block_resume(engine, lane);
    if (!lane->hold.held)
        return STATUS_OK;
    lane_hold_end(lane);
    lane_unpark(lane);
    assert(!lane->hold.held && !block_holds(&lane->block));
    dest_changed(lane->dest, (struct dest_change){ .change = "tenant_resumed", .lane = lane, .at = engine_now(engine) });
    log_event(LOG_INFO, "tenant_resumed", FIELD_CSTR("destination", lane->dest->name), FIELD_CSTR("tenant", lane->tenant));
    engine_wake(engine);
    return STATUS_OK;
}

static struct lane_hold hold_of(const struct lane_state *lane)
{
    assert(lane->hold.held);
    bool blocked = block_holds(&lane->block);
    return (struct lane_hold){ .held = true, .blocked = blocked, .since = lane->hold.since, .reason = lane->hold.reason,
                               .look_at = blocked ? lane->block.saved.look_at : INSTANT_NONE };
}

struct lane_hold engine_lane_hold(const struct engine *engine, int64_t lane_id)
{
    const struct lane_state *lane = lane_find(engine, lane_id);
    return lane && lane->hold.held ? hold_of(lane) : (struct lane_hold){ .since = INSTANT_NONE, .look_at = INSTANT_NONE };
}

size_t engine_tenant_holds(const struct engine *engine, struct slice destination, struct tenant_hold *ret_holds, size_t max)
{
    const struct dest *dest = dest_find(engine, destination);
    size_t count = 0;
    for (const struct lane_state *lane = dest ? dest->holds.first : NULL; lane && count < max; lane = lane->hold.next)
        ret_holds[count++] = (struct tenant_hold){ lane->tenant, hold_of(lane) };
    return count;
}

/*
 * One tenant's answer is about that tenant: its account may be over its limit, or it may want to stop the others. When a
 * second one hears so while the first still waits, or nobody else has work, it is the destination.
 */
void dest_asked(struct engine *engine, struct dest *dest, struct gate *gate, const struct job *job, int64_t asked_ms)
{
    assert(dest->config && asked_ms > 0 && (gate == &dest->gate || gate == &dest->fallback));
    instant now = engine_now(engine);
    int64_t believed = dest->config->policy.retry.retry_after_max_ms;
    instant until = instant_add(now, asked_ms < believed ? asked_ms : believed);
    struct lane_state *lane = lane_of_job(engine, job);
    if (!lane || gate == &dest->fallback) {
        gate_close_until(gate, until);
        return;
    }
    bool known = dest->holds.asked_until > now && dest->holds.asked_until <= instant_add(now, believed);
    bool second = known && dest->holds.asked_lane != lane->id;
    bool alone = turns_count(&dest->queue.turns) <= (size_t)(lane->ready > 0);
    if (second)
        gate_close_until(gate, dest->holds.asked_until);
    if (second || alone)
        gate_close_until(gate, until);
    lane->asked.until = lane_asked(lane, now) && lane->asked.until > until ? lane->asked.until : until;
    lane->asked.at = now;
    asked_keep(engine, lane);
    dest->saved.looked = dest->saved.looked || second; /* that is in the destination's state */
    dest->holds.asked_alone = alone && !second;
    if (!known || until >= dest->holds.asked_until) { /* the longer wish wins */
        dest->holds.asked_lane = lane->id;
        dest->holds.asked_until = until;
    }
}

void dest_ask_no_more(struct engine *engine, struct dest *dest)
{
    struct lane_state *lane = lane_find(engine, dest->holds.asked_lane);
    dest->gate.closed_until = dest->holds.asked_until = INSTANT_NONE;
    dest->holds.asked_alone = false;
    if (!lane)
        return;
    lane->asked.until = INSTANT_NONE;
    asked_keep(engine, lane);
    lane_unpark(lane);
}

/* What refused an only tenant may let another in. */
static void not_only(struct block *block, int64_t *only, int64_t lane, instant now)
{
    if (*only == 0 || *only == lane)
        return;
    *only = 0;
    block_hasten(block, now);
}

/* Somebody else has work now: what one tenant was answered is that tenant's. */
void dest_not_alone(struct engine *engine, struct lane_state *newcomer)
{
    struct dest *dest = newcomer->dest;
    struct lane_state *asked = lane_find(engine, dest->holds.asked_lane);
    bool is_tenant = !slice_equal(slice_from(newcomer->tenant), NOTIFY_TENANT);
    if (is_tenant) {
        not_only(&dest->gate.block, &dest->block.lane, newcomer->id, engine_now(engine));
        not_only(&dest->fallback.block, &dest->second.lane, newcomer->id, engine_now(engine));
        block_newcomer(&dest->gate.block, &newcomer->block, engine_now(engine));
    }
    if (!dest->holds.asked_alone || asked == newcomer)
        return;
    dest->holds.asked_alone = false;
    dest->gate.closed_until = INSTANT_NONE; /* its own hold stays */
}

/* ---- over a restart ---- */

void lane_holds_write(struct json_writer *json, const struct dest *dest)
{
    assert((dest->holds.first == NULL) == (dest->holds.count == 0));
    json_member_array(json, "tenants_paused");
    for (const struct lane_state *lane = dest->holds.first; lane; lane = lane->hold.next) {
        json_object_begin(json);
        json_member_text(json, "tenant", lane->tenant);
        json_member_instant(json, "since", lane->hold.since);
        if (lane->hold.reason)
            json_member_text(json, "reason", lane->hold.reason);
        if (block_holds(&lane->block))
            block_state_write(json, &lane->block.saved);
        json_object_end(json);
    }
    json_array_end(json);
}

static struct lane_state *held_lane(struct engine *engine, const struct restored_state *state, struct slice tenant)
{
    struct lane_state *lane = NULL;
    for (size_t i = 0; i < state->held_count && !lane; i++)
        if (slice_equal(state->held[i].tenant, tenant))
            (void)!lane_get(engine, state->held[i].id, state->name, tenant, &lane);
    return lane;
}

void lane_holds_read(struct engine *engine, struct dest *dest, const json_t *root, const struct restored_state *state)
{
    const json_t *held = json_object_get(root, "tenants_paused");
    for (size_t i = 0; i < json_array_size(held) && dest->holds.count < HELD_LANES_MAX; i++) {
        const json_t *one = json_array_get(held, i);
        instant since = saved_instant(one, "since");
        bool named = json_is_string(json_object_get(one, "tenant"));
        struct lane_state *lane = named ? held_lane(engine, state, saved_text(one, "tenant")) : NULL;
        if (lane && !lane->hold.held) {
            assert(lane->dest == dest);
            lane_hold_begin(lane, saved_text(one, "reason"), since != INSTANT_NONE ? since : engine_now(engine));
            struct block_saved block = block_state_read(one, lane->hold.since);
            block_restore(&lane->block, &block);
        }
    }
}
