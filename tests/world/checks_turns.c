/*
 * Invariant 7: a tenant with work waits for one round of the others at most, and for two where a way back from an outage
 * begins meanwhile.
 *
 * What counts is when a claim was decided, not when the store has written it down. So a tenant
 * that comes while others' claims are on their way to a slow store has not been passed by them. A turn counts when its
 * claim is made; where that brings nothing although there is something, it was none.
 *
 * What is claimed ahead of a free slot takes turns once more, on its way from the store to the destination.
 *
 * And who holds its share of the slots, as little as that may be, waits for its own jobs: what goes meanwhile does not count,
 * but it keeps its place, so that what went before counts on. Who may hold how many: checks_shares.c.
 */
#include "engine/status.h"
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDLE_GRACE_MS = 5 * SECOND_MS, LIMIT_NOW = -1 };

static int64_t weight_in(const struct destination_config *config, int tenant)
{
    int64_t weight = 1;
    char name[8];
    snprintf(name, sizeof name, "t%d", tenant);
    for (size_t i = 0; i < config->fairness.weights.count; i++)
        if (strcmp(config->fairness.weights.items[i].name, name) == 0)
            weight = atoll(config->fairness.weights.items[i].value);
    return weight;
}

static void draw_rules(struct world *world, int number, int dest)
{
    struct dest_rules *rules = &world->rules[number][dest];
    rules->config = config_destination(world->configs[number], slice_from(dest_names[dest]));
    for (int tenant = 0; tenant <= TENANTS_MAX && rules->config; tenant++) {
        rules->weights[tenant] = weight_in(rules->config, tenant);
        int64_t share = rules->weights[tenant] * rules->config->fairness.batch;
        world->shares[dest][tenant] = share > world->shares[dest][tenant] ? share : world->shares[dest][tenant];
    }
}

void turns_draw(struct world *world)
{
    for (int i = 0; i < CONFIGS; i++)
        for (int dest = 0; dest < DESTS; dest++)
            draw_rules(world, i, dest);
}

int64_t weight_of(const struct world *world, int dest, int tenant)
{
    return world->rules[world->config][dest].weights[tenant];
}

/* The smallest that its share of so many slots can be: whoever may be active is, and nobody knows how many a worker asks for. */
static int64_t slots_at_least(const struct world *world, const struct lane_view *lane, int64_t limit)
{
    const struct destination_config *config = world_dest(world, lane->dest);
    struct destination_status status = engine_destination(world->engine, slice_from(dest_names[lane->dest]));
    if (!config || config->transport == TRANSPORT_PULL || config->cycle_every_ms > 0 || strcmp(status.mode, "normal") != 0)
        return 1;
    int64_t weight = weight_of(world, lane->dest, lane->tenant), sum = shares_weight_may(world, lane->dest);
    int64_t share = (limit == LIMIT_NOW ? status.limit.now : limit) * weight / (sum > weight ? sum : weight);
    return share > 1 ? share : 1;
}

static bool holds_its_share(const struct world *world, const struct lane_view *lane, int64_t limit)
{
    return lane->running + lane->asked > 0 && lane->running + lane->asked >= slots_at_least(world, lane, limit);
}

static int64_t largest_share(const struct world *world, const struct lane_view *lane)
{
    return world->shares[lane->dest][lane->tenant];
}

/* All shares. */
int64_t turns_round(const struct world *world, int dest)
{
    int64_t round = 0;
    for (int lane = 1; lane <= world->lane_top; lane++)
        if (world->lanes[lane].dest == dest)
            round += largest_share(world, &world->lanes[lane]);
    return round;
}

/* Tenants with a rate of their own wait for that, too, and where classes count across tenants for these: not judged. */
static bool takes_turns(const struct destination_config *config)
{
    return config && config->fairness.round_robin && config->rate_per_tenant.count == 0 &&
           config->priority_scope == PRIORITY_TENANT;
}

/* But for its share of the slots. */
static bool could_go(const struct world *world, int lane)
{
    const struct lane_view *view = &world->lanes[lane];
    return view->dest >= 0 && view->ready > view->asked && takes_turns(world_dest(world, view->dest)) &&
           engine_tenant(world->engine, lane).asked_until <= world_now(world) &&
           !engine_lane_hold(world->engine, lane).held && !tenant_dead_full(world, lane);
}

static void begin_waiting(const struct world *world, struct lane_view *lane)
{
    lane->waits = true;
    lane->from = world->dests[lane->dest].dispatched;
    lane->came_mono = world->mono;
    lane->crossed = -1;
}

/* By the limit of concurrency that is, or that was when a claim was decided. */
static void look_at(struct world *world, int lane, int64_t limit)
{
    struct lane_view *view = &world->lanes[lane];
    bool could = could_go(world, lane), waits = could && !holds_its_share(world, view, limit);
    int64_t dispatched = view->dest < 0 ? 0 : world->dests[view->dest].dispatched;
    bool passed = view->passed_from >= 0; /* over: then it has its place still, and what went meanwhile does not count */
    if (waits && passed)
        view->from += dispatched - (view->passed_from > view->from ? view->passed_from : view->from);
    else if (waits && !view->waits)
        begin_waiting(world, view);
    if (could && !waits && view->waits)
        view->passed_from = dispatched;
    else if (!could || waits)
        view->passed_from = -1;
    view->waits = waits;
}

static int64_t waited(const struct world *world, const struct lane_view *lane)
{
    int64_t since = lane->asked > 0 && lane->asked_from > lane->from ? lane->asked_from : lane->from;
    return world->dests[lane->dest].dispatched - since;
}

/* From here on turns are counted anew. */
static void cross(const struct world *world, struct lane_view *lane)
{
    int64_t so_far = lane->waits ? waited(world, lane) : 0;
    lane->crossed = so_far > lane->crossed ? so_far : lane->crossed;
}

static void look_for_return(struct world *world, int dest)
{
    struct destination_status status = engine_destination(world->engine, slice_from(dest_names[dest]));
    struct dest_view *view = &world->dests[dest];
    if (!status.known || strcmp(status.mode, "recovering") != 0 || view->returned == status.mode_since)
        return;
    view->returned = status.mode_since;
    for (int lane = 1; lane <= world->lane_top; lane++)
        if (world->lanes[lane].dest == dest)
            cross(world, &world->lanes[lane]);
}

void turns_ready(struct world *world, int64_t lane, int64_t ready)
{
    struct lane_view *view = &world->lanes[lane];
    int64_t grown = ready - (view->ready - view->taken);
    if (grown > 0) {
        view->older = ready - grown;
        view->grew_mono = world->mono;
    }
    view->ready = ready;
    view->taken = 0;
}

/* Nothing bounds it but its slots, of which there are free ones. */
static bool flows(const struct world *world, int dest)
{
    const struct destination_config *config = world_dest(world, dest);
    struct destination_status status = engine_destination(world->engine, slice_from(dest_names[dest]));
    int64_t used = 0;
    for (int lane = 1; lane <= world->lane_top; lane++)
        used += world->lanes[lane].dest == dest ? world->lanes[lane].running + world->lanes[lane].asked : 0;
    return config && config->transport != TRANSPORT_PULL && config->rate_total.count == 0 && config->cycle_every_ms == 0 &&
           !status.held_by && status.outage_since == INSTANT_NONE && strcmp(status.mode, "normal") == 0 && used < status.limit.now;
}

/* Everything goes on: who has work that may go, as look_at has just seen, is asked for it, soon. */
static void look_for_idle(struct world *world, int lane)
{
    struct lane_view *view = &world->lanes[lane];
    bool idle = view->waits && view->asked == 0 && !world->in_doubt && !view->refused && flows(world, view->dest);
    int64_t since = view->idle_mono > world->changed_mono ? view->idle_mono : world->changed_mono;
    since = since > world->unread_until_mono ? since : world->unread_until_mono;
    if (!idle)
        view->idle_mono = -1;
    else if (view->idle_mono < 0)
        view->idle_mono = world->mono;
    else if (world->mono - since > IDLE_GRACE_MS + 3 * (world->late_ms + world->store_lag_ms) && world->sabotage != SABOTAGE_UNFAIR &&
             world->sabotage != SABOTAGE_LANE_LOST)
        violated(world, INVARIANT_PROGRESS, "t%d at %s has work, nothing holds it, and it is not sent for %" PRId64 " ms", view->tenant,
                 dest_names[view->dest], world->mono - since);
}

void turns_look(struct world *world)
{
    shares_know(world);
    for (int dest = 0; dest < DESTS; dest++)
        look_for_return(world, dest);
    for (int lane = 1; lane <= world->lane_top; lane++) {
        look_at(world, lane, LIMIT_NOW);
        look_for_idle(world, lane);
    }
}

/* The others' shares, and what had been waited already when turns began anew, which is no more than that. */
static void check_waited(struct world *world, int lane)
{
    struct lane_view *view = &world->lanes[lane];
    int64_t all = turns_round(world, view->dest);
    int64_t round = all - (view->refused ? 0 : largest_share(world, view)); /* of its own it may have lost some to a store that refused */
    int64_t before = view->crossed < all ? view->crossed : all;
    int64_t allowed = round + (view->crossed >= 0 ? before + largest_share(world, view) : 0);
    if (waited(world, view) > allowed && world->sabotage != SABOTAGE_LANE_LOST)
        violated(world, INVARIANT_TURNS, "tenant t%d of %s waited for %" PRId64 " dispatches, %" PRId64 " are allowed",
                 view->tenant, dest_names[view->dest], waited(world, view), allowed);
}

/* One that is to see how the destination is: that is no turn. It is told by its order, and by how the destination stood. */
static bool is_look(const struct op_claim *claim, const struct decided *by)
{
    return claim->failed_last != 0 && claim->max == 1 && !by->returned;
}

void turns_asked(struct world *world, const struct op_claim *claim, const struct decided *by)
{
    int64_t decided = by->mono;
    struct lane_view *asking = &world->lanes[claim->lane];
    struct dest_view *dest = &world->dests[asking->dest];
    int64_t count = (int64_t)claim->max, turn = count;
    shares_know(world);
    look_for_return(world, asking->dest);
    note(world, "claim", claim->lane, count);
    if (!is_look(claim, by))
        dest->dispatched += count;
    else
        turn = 0;
    asking->asked += count;
    asking->asked_from = dest->dispatched;
    if (asking->waits && decided <= asking->grew_mono && asking->older <= asking->asked) { /* the rest came after that */
        begin_waiting(world, asking);
        asking->came_mono = asking->grew_mono;
    }
    struct claim_out *out = &world->claims[world->claims_end++ % CLAIMS_OUT_MAX];
    assert_true(world->claims_end - world->claims_first <= CLAIMS_OUT_MAX);
    *out = (struct claim_out){ .lane = claim->lane, .count = count, .turn = turn, .from = dest->dispatched, .mono = world->mono,
                               .decided_mono = decided, .limit = by->limit,
                               .lease_until_mono = world->mono + (claim->lease_until - world_now(world)) };
    for (int lane = 1; lane <= world->lane_top; lane++) {
        struct lane_view *view = &world->lanes[lane];
        if (view->dest != asking->dest)
            continue;
        look_at(world, lane, by->limit);
        if (view->waits && view->came_mono >= 0 && decided <= view->came_mono)
            view->from += turn; /* that was decided before it came */
        if (view->waits && view != asking) {
            seen(world, FEATURE_TURN);
            check_waited(world, lane);
        }
    }
}

/* What was asked for and not found, or refused by the store, passed nobody by. */
static void uncount(struct world *world, const struct claim_out *out, int64_t missing)
{
    for (int lane = 1; lane <= world->lane_top; lane++) {
        struct lane_view *view = &world->lanes[lane];
        if (view->dest != world->lanes[out->lane].dest)
            continue;
        if (view->from < out->from)
            view->from += missing;
        if (view->asked_from < out->from)
            view->asked_from += missing;
    }
}

struct claim_out turns_answered(struct world *world, const struct op_claim *claim, bool applied)
{
    struct claim_out out = world->claims[world->claims_first++ % CLAIMS_OUT_MAX];
    assert_true(world->claims_first <= world->claims_end);
    struct lane_view *lane = &world->lanes[out.lane];
    bool none = applied && claim->ret_count == 0 && lane->ready > 0;
    lane->asked -= out.count;
    lane->idle_mono = -1;
    lane->refused = lane->refused || !applied;
    lane->refused_mono = applied ? lane->refused_mono : world->mono;
    uncount(world, &out, out.turn - (applied && out.turn > 0 ? (int64_t)claim->ret_count : 0));
    if (none || out.turn == 0)
        return out;
    if (out.from > lane->from)
        lane->from = out.from; /* a turn that a refusing store cost is one, too */
    lane->came_mono = -1;
    lane->crossed = -1;
    lane->refused = !applied;
    return out;
}

/* ---- from the store to the destination ---- */

void turns_claimed(struct world *world, struct shadow *shadow, int64_t lane)
{
    shadow->unsent = true;
    world->lanes[lane].unsent++;
}

void turns_unsent(struct world *world, struct shadow *shadow, int64_t lane)
{
    if (!shadow->unsent)
        return;
    shadow->unsent = false;
    world->lanes[lane].unsent--;
}

void turns_ended(struct world *world, int64_t lane)
{
    world->lanes[lane].flights -= world->lanes[lane].flights > 0;
}

void turns_sent(struct world *world, struct shadow *shadow, int64_t lane)
{
    world->lanes[lane].flights++;
    const struct destination_config *config = world_dest(world, shadow->dest);
    turns_unsent(world, shadow, lane);
    world->lanes[lane].overtaken = 0;
    for (int other = 1; other <= world->lane_top && takes_turns(config); other++) {
        struct lane_view *view = &world->lanes[other];
        if (view->dest != shadow->dest || other == lane || view->unsent == 0)
            continue;
        /* A round of what was decided before it, and one of what is claimed ahead, which takes turns once more. */
        int64_t allowed = 2 * turns_round(world, view->dest) - largest_share(world, view);
        if (++view->overtaken > allowed)
            violated(world, INVARIANT_TURNS, "claimed jobs of t%d at %s waited for %" PRId64 " sends of others, %" PRId64 " are allowed",
                     view->tenant, dest_names[view->dest], view->overtaken, allowed);
    }
}

/* The clock has nothing to do with turns. Another configuration begins them anew. */
void turns_forget(struct world *world, enum world_change change)
{
    bool restarted = change == CHANGE_START;
    if (restarted)
        world->claims_first = world->claims_end = 0;
    shares_forget(world, change);
    for (int lane = 0; lane <= LANES_MAX; lane++) {
        struct lane_view *view = &world->lanes[lane];
        if (change == CHANGE_RELOAD && view->dest >= 0)
            cross(world, view);
        if (restarted) {
            view->waits = false;
            view->passed_from = -1;
            view->asked = view->unsent = view->flights = view->overtaken = 0;
        }
    }
    for (int i = 0; i < world->job_count && restarted; i++)
        world->jobs[i].unsent = false;
}
