/*
 * Destinations and lanes: what the engine knows of who has work.
 */
#include "base/log.h"
#include "engine/alerts/notify.h"
#include "engine/loop.h"
#include "engine/outage/modes.h"
#include "engine/restore.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct lane_state *lane_find(const struct engine *engine, int64_t id)
{
    return map_get(&engine->lanes.by_id, map_key(&id));
}

/* A tenant's burst is never more than its own limit's number: the setting is about the destination first. */
static int64_t tenant_burst(const struct destination_config *config)
{
    struct rate rate = config->rate_per_tenant;
    if (config->rate_burst == 0)
        return rate_burst(rate, config->concurrency);
    return config->rate_burst < rate.count ? config->rate_burst : rate.count;
}

/* On the way back from an outage slots are shared out among those whose work goes first. */
static enum priority lane_class(const struct lane_state *lane)
{
    switch (lane->order.class) {
    case RETURN_CRITICAL:
        return PRIORITY_CRITICAL;
    case RETURN_HIGH:
        return PRIORITY_HIGH;
    default:
        return PRIORITY_NORMAL;
    }
}

static void lane_back(struct lane_state *lane)
{
    struct dest *dest = lane->dest;
    assert(lane->turn.parked.position == 0);
    if (lane->ready == 0 || lane->hold.held)
        return;
    shares_due(&dest->queue.shares, &lane->share, lane_class(lane));
    return_order_back(lane);
}

void lane_unpark(struct lane_state *lane)
{
    turns_unpark(&lane->dest->queue.turns, &lane->turn);
    lane_back(lane);
}

void lanes_unpark_due(struct dest *dest, instant now)
{
    for (struct turn *turn; (turn = turns_unpark_due(&dest->queue.turns, now));)
        lane_back((struct lane_state *)((char *)turn - offsetof(struct lane_state, turn)));
}

/* Some were cleared, or more are allowed: it may go on. */
static void tell_tenant_fits(struct lane_state *lane)
{
    if (!lane->dead.reported || lane_dead_full(lane))
        return;
    lane->dead.reported = false;
    assert(lane->dest->dead.tenants_full > 0);
    lane->dest->dead.tenants_full--;
    lane->dest->alerts.due = true;
    lane_unpark(lane);
    log_event(LOG_INFO, "tenant_dead_letters_fit", FIELD_CSTR("destination", lane->dest->name),
              FIELD_CSTR("tenant", lane->tenant), FIELD_INT("dead", lane->dead.count));
}

void lane_configure(struct lane_state *lane, const struct config *whole)
{
    const struct destination_config *config = lane->dest->config;
    if (!config)
        return;
    int64_t weight = config_weight(whole, config, slice_from(lane->tenant));
    turn_weigh(&lane->turn, weight);
    shares_weigh(&lane->dest->queue.shares, &lane->share, weight);
    rate_configure(&lane->rate.limiter, config->rate_per_tenant, tenant_burst(config));
    tell_tenant_fits(lane);
    lane_unpark(lane); /* another limit may let it go now; if not, it is parked again */
}

static void lane_free(struct lane_state *lane)
{
    free(lane->tenant);
    free(lane->hold.reason);
    free(lane);
}

/* NULL: no memory. */
static struct lane_state *lane_new(struct engine *engine, int64_t id, struct slice tenant)
{
    assert(id > 0);
    struct lane_state *lane = calloc(1, sizeof *lane);
    if (!lane)
        return NULL;
    lane->id = id;
    lane->tenant = strndup(tenant.data, tenant.len);
    if (!lane->tenant || map_put(&engine->lanes.by_id, map_key(&lane->id), lane) != STATUS_OK) {
        lane_free(lane);
        return NULL;
    }
    turn_init(&lane->turn, 1);
    share_init(&lane->share, 1);
    rate_init(&lane->rate.limiter, (struct rate){ 0 }, 0, INSTANT_NONE);
    lane->rate.saved = INSTANT_NONE;
    lane->idle_since = INSTANT_NONE;
    lane->looked_at[0] = lane->looked_at[1] = INSTANT_NONE;
    lane->asked.until = lane->asked.saved = INSTANT_NONE;
    block_init(&lane->block);
    return lane;
}

static void lane_link(struct dest *dest, struct lane_state *lane)
{
    lane->dest = dest;
    lane->link = dest->queue.end;
    *lane->link = lane;
    dest->queue.end = &lane->next;
    dest->queue.lanes++;
    assert(*lane->link == lane && dest->queue.end == &lane->next);
}

/* Whether one is alone is what matters. One that comes again may be anybody, of any number: only the first is remembered. */
static void count_tenant(struct dest_queue *queue, int64_t id, struct slice tenant)
{
    assert(queue->tenants >= 0 && queue->tenants <= 2);
    if (queue->tenants == 2 || id == queue->alone || slice_equal(tenant, NOTIFY_TENANT))
        return;
    if (queue->tenants++ == 0)
        queue->alone = id;
}

enum status lane_get(struct engine *engine, int64_t id, struct slice destination, struct slice tenant,
                     struct lane_state **ret_lane)
{
    assert(id > 0);
    struct lane_state *lane = lane_find(engine, id);
    if (!lane) {
        struct dest *dest;
        enum status status = dest_get(engine, destination, &dest);
        if (status == STATUS_OK && dest->own.loading && !dest->own.loading->putting)
            status = STATUS_BUSY; /* what the store has of its lanes is being read, and is more */
        if (status == STATUS_OK)
            status = turns_reserve(&dest->queue.turns, dest->queue.lanes + 1);
        lane = status == STATUS_OK ? lane_new(engine, id, tenant) : NULL;
        if (!lane)
            return status == STATUS_OK ? STATUS_NO_MEMORY : status;
        lane_link(dest, lane);
        count_tenant(&dest->queue, id, tenant);
        lane_configure(lane, engine->config);
        rates_place(engine, lane);
    }
    *ret_lane = lane;
    return STATUS_OK;
}

struct lane_state *lane_of_job(struct engine *engine, const struct job *job)
{
    struct lane_state *lane = NULL;
    (void)!lane_get(engine, job->lane, job->destination, job->tenant, &lane);
    return lane;
}

void lane_forget(struct engine *engine, struct lane_state *lane)
{
    assert(!lane->measure && !lane->order.asked && !lane->ahead.first);
    assert(lane->ready == 0 && lane->claiming == 0 && !lane->hold.held);
    turns_remove(&lane->dest->queue.turns, &lane->turn);
    shares_remove(&lane->dest->queue.shares, &lane->share);
    lane_drop(engine, lane);
}

void lane_drop(struct engine *engine, struct lane_state *lane)
{
    assert(*lane->link == lane && lane->dest->queue.lanes > 0);
    *lane->link = lane->next;
    *(lane->next ? &lane->next->link : &lane->dest->queue.end) = lane->link;
    lane->dest->queue.lanes--;
    const struct lane_state *removed = map_remove(&engine->lanes.by_id, map_key(&lane->id));
    assert(removed == lane);
    lane_free(lane);
}

void lane_ready_add(struct engine *engine, struct lane_state *lane, int64_t count)
{
    lane->ready += count;
    lane->all_failed = false;
    dest_not_alone(engine, lane);
    lane->dest->queue.ready += count;
    assert(lane->ready >= 0 && lane->dest->queue.ready >= lane->ready);
    if (lane->ready > 0) {
        turns_add(&lane->dest->queue.turns, &lane->turn);
        if (!lane->hold.held && (lane->turn.parked.position == 0 || lane->share.passed))
            shares_due(&lane->dest->queue.shares, &lane->share, lane_class(lane));
        return_order_added(engine, lane);
    }
    engine_wake(engine);
}

/* ---- whose turn it is, and how much of the slots is its ---- */

/* Looks are few, and who looks is another matter; without rounds the first takes all. */
bool dest_shares(const struct dest *dest, enum shares_side side)
{
    return side < SIDE_COUNT && dest->queue.turns.settings.round_robin && (side == SIDE_FALLBACK ||
                                                                           !gate_looks(&dest->gate));
}

/* Those that may take one from a side, or all, have their turns again. */
static void pass_no_more(struct dest *dest, enum shares_side side)
{
    for (struct share *share = shares_passed(&dest->queue.shares, side), *next; share; share = next) {
        next = share->next_passed;
        lane_unpark((struct lane_state *)((char *)share - offsetof(struct lane_state, share)));
    }
}

/* Who stands in a class of before would count alone among those that matter most. */
static void share_by_class(struct dest *dest, bool by_class)
{
    if (dest->queue.shares.by_class == by_class)
        return;
    shares_configure(&dest->queue.shares, by_class);
    for (struct lane_state *lane = dest->queue.first; lane; lane = lane->next)
        if (lane->share.group < SHARES_IDLE)
            shares_due(&dest->queue.shares, &lane->share, lane_class(lane));
}

void dest_share_out(struct dest *dest, enum shares_side side, int64_t slots, instant now)
{
    shares_tick(&dest->queue.shares, now);
    share_by_class(dest, dest->queue.order.class != RETURN_UNKNOWN);
    shares_set_slots(&dest->queue.shares, side, slots);
    pass_no_more(dest, dest_shares(dest, side) ? side : SIDE_COUNT);
}

void dest_leave_over(struct dest *dest)
{
    pass_no_more(dest, SIDE_COUNT);
}

/* It has work, but for a reason of its own it may not send before `until`. */
static void lane_park(struct lane_state *lane, instant until, instant now)
{
    assert(lane->ready > 0);
    turns_park(&lane->dest->queue.turns, &lane->turn, until);
    shares_idle(&lane->dest->queue.shares, &lane->share, now);
}

static void tell_tenant_full(struct lane_state *lane)
{
    if (lane->dead.reported)
        return;
    lane->dead.reported = true;
    lane->dest->dead.tenants_full++;
    assert(lane->dest->dead.tenants_full <= (int64_t)lane->dest->queue.lanes);
    lane->dest->alerts.due = true;
    log_event(LOG_ERROR, "tenant_dead_letters_full", FIELD_CSTR("destination", lane->dest->name),
              FIELD_CSTR("tenant", lane->tenant), FIELD_INT("dead", lane->dead.count));
}

int64_t lane_room(struct lane_state *lane, enum shares_side side, int64_t wanted, instant now)
{
    struct dest *dest = lane->dest;
    int64_t max = wanted < lane->ready ? wanted : lane->ready;
    assert(max > 0);
    if (lane_dead_full(lane))
        tell_tenant_full(lane);
    bool looks = block_looks(&lane->block, now) && side != SIDE_AHEAD;
    if (lane_held_by_hand(lane) || lane_dead_full(lane)) {
        lane_park(lane, INSTANT_MAX, now);
        return 0;
    }
    if (lane->hold.held && !looks) {
        instant soon = instant_add(now, SECOND_MS); /* it is not taken ahead of a free slot */
        lane_park(lane, lane->block.saved.look_at > soon ? lane->block.saved.look_at : soon, now);
        return 0;
    }
    if (looks)
        max = 1;
    if (lane_asked(lane, now)) {
        lane_park(lane, lane->asked.until, now);
        return 0;
    }
    int64_t room = rate_ask(&lane->rate.limiter, now, max).room;
    if (room == 0) {
        lane_park(lane, rate_ask(&lane->rate.limiter, now, 1).at, now);
        return 0;
    }
    shares_due(&dest->queue.shares, &lane->share, lane_class(lane));
    int64_t part = dest_shares(dest, side) ? shares_ask(&dest->queue.shares, side, &lane->share) : room;
    if (part == 0) {
        turns_pass_over(&dest->queue.turns, &lane->turn);
        shares_pass_over(&dest->queue.shares, &lane->share);
    }
    return part < room ? part : room;
}

void lane_take(struct lane_state *lane, enum shares_side side, int64_t count, bool in_turn, instant now)
{
    struct dest *dest = lane->dest;
    assert(count > 0 && count <= lane->ready);
    if (in_turn)
        turns_took(&dest->queue.turns, count, now);
    if (lane->hold.held)
        block_looked(&lane->block, now);
    rate_take(&lane->rate.limiter, now, count);
    rate_take(&dest->rate.limiter, now, count);
    return_order_took(lane, count);
    lane->ready -= count;
    dest->queue.ready -= count;
    assert(dest->queue.ready >= lane->ready);
    shares_take(&dest->queue.shares, side, &lane->share, count);
    if (lane->ready == 0) {
        turns_remove(&dest->queue.turns, &lane->turn);
        shares_idle(&dest->queue.shares, &lane->share, now);
    }
}

/* All of them while only one tenant is known, else half, unless somebody has set it. */
bool lane_dead_full(const struct lane_state *lane)
{
    const struct dest *dest = lane->dest;
    if (!dest->config)
        return false;
    int64_t max = dest->config->dead.max, own = dest->config->dead.max_per_tenant;
    if (own == 0)
        own = dest->queue.tenants > 1 && max > 1 ? max / 2 : max;
    return own > 0 && lane->dead.count + lane->dead.dying >= own;
}

void lane_dead_add(struct lane_state *lane, int64_t count)
{
    if (lane->dead.count + count < 0) /* they were read after the change that is reported only now */
        count = -lane->dead.count;
    lane->dead.count += count;
    lane->dest->dead.count += count;
    assert(lane->dead.count >= 0 && lane->dest->dead.count >= 0);
    if (count < 0)
        tell_tenant_fits(lane);
}

void lanes_release(struct engine *engine)
{
    size_t cursor = 0;
    assert(engine->lanes.by_id.count == 0); /* each was its destination's */
    for (struct map_entry *entry; (entry = map_next(&engine->lanes.missed, &cursor));)
        free(entry->value);
    cursor = 0;
    for (struct map_entry *entry; (entry = map_next(&engine->lanes.unplaced, &cursor));)
        free(entry->value);
    map_release(&engine->lanes.by_id);
    map_release(&engine->lanes.missed);
    map_release(&engine->lanes.unplaced);
}
