/*
 * Invariant 7, by slots: who holds its share of them takes another only while enough stay free for what the others miss of
 * theirs; nobody claims ahead beyond its share beside others; and where classes count across tenants the most urgent work
 * goes first, but for one slot in five.
 *
 * What a run of the engine took is judged by how things stand after it. That is exact: whoever takes a slot of its own share
 * afterwards takes one that stayed free for it. Shares are counted anew here. Who counts is known with some doubt, so each
 * side of a comparison has the bound that excuses: who surely is active, and who may be.
 */
#include "world.h"

#include "engine/loop.h"

#include <inttypes.h>

enum {
    LINGER_MS = 10 * SECOND_MS,
    CLASSES_SEEN_MS = 61 * SECOND_MS, /* how old the engine's view of what has become urgent may be */
    BY_TURN_ONE_IN = 5,
    CLASS_REST = 2, /* what is neither critical nor as urgent as work of high priority */
    URGENT_MAX = 100,
};

/* How the tenants of one destination stand. */
struct standing {
    const struct dest *dest;
    const struct destination_config *config;
    int64_t sure, may;    /* weights of those that surely are active, and may be */
    int64_t held[SIDE_COUNT];
};

void shares_know(struct world *world)
{
    memset(world->known, 0, (size_t)(world->lane_top + 1) * sizeof *world->known);
    for (const struct dest *dest = world->engine->dests.first; dest; dest = dest->next)
        for (const struct lane_state *lane = dest->config ? dest->queue.first : NULL; lane; lane = lane->next)
            if (lane->id <= world->lane_top && world->lanes[lane->id].dest >= 0)
                world->known[lane->id] = lane;
}

static const struct lane_state *known_lane(const struct world *world, int lane)
{
    return world->known[lane];
}

static int64_t held_in_all(const struct lane_state *lane)
{
    return lane->share.held[SIDE_FIRST] + lane->share.held[SIDE_FALLBACK] + lane->share.held[SIDE_AHEAD];
}

/* Nothing but its turn and its share keeps the tenant from sending. */
static bool may_send(const struct world *world, const struct lane_state *lane)
{
    struct rate_limiter rate = lane->rate.limiter;
    return !lane->hold.held && !lane_dead_full(lane) && !lane_asked(lane, world_now(world)) &&
           rate_ask(&rate, world_now(world), 1).room > 0;
}

static bool is_due(const struct world *world, const struct lane_state *lane)
{
    return lane->ready > 0 && may_send(world, lane);
}

static bool lingers(const struct world *world, const struct lane_view *view)
{
    instant now = world_now(world);
    return view->active_at != INSTANT_NONE && now >= view->active_at && now - view->active_at < LINGER_MS;
}

static bool surely_active(const struct world *world, int lane)
{
    const struct lane_state *known = known_lane(world, lane);
    if (!known)
        return false;
    return held_in_all(known) > 0 || is_due(world, known) || (known->ready == 0 && lingers(world, &world->lanes[lane]));
}

static bool maybe_active(const struct world *world, int lane)
{
    const struct lane_view *view = &world->lanes[lane];
    int64_t since = view->maybe_mono > world->changed_mono ? view->maybe_mono : world->changed_mono;
    return surely_active(world, lane) || (view->maybe_mono >= 0 && world->mono - since <= LINGER_MS);
}

int64_t shares_weight_may(const struct world *world, int dest)
{
    const struct destination_config *config = world_dest(world, dest);
    int64_t sum = 0;
    for (int lane = 1; lane <= world->lane_top && config; lane++)
        if (world->lanes[lane].dest == dest && maybe_active(world, lane))
            sum += weight_of(world, dest, world->lanes[lane].tenant);
    return sum;
}

void shares_look(struct world *world)
{
    for (int lane = 1; lane <= world->lane_top; lane++) {
        const struct lane_state *known = known_lane(world, lane);
        struct lane_view *view = &world->lanes[lane];
        if (!known)
            continue;
        if (held_in_all(known) > 0 || is_due(world, known))
            view->active_at = world_now(world);
        if (held_in_all(known) > 0 || known->ready > 0)
            view->maybe_mono = world->mono;
    }
}

/* ---- by slots ---- */

static struct standing stand(const struct world *world, int number)
{
    struct standing standing = { .dest = dest_find(world->engine, slice_from(dest_names[number])),
                                 .config = world_dest(world, number) };
    for (int lane = 1; lane <= world->lane_top && standing.config; lane++) {
        const struct lane_state *known = known_lane(world, lane);
        if (world->lanes[lane].dest != number)
            continue;
        int64_t weight = weight_of(world, number, world->lanes[lane].tenant);
        standing.sure += surely_active(world, lane) ? weight : 0;
        standing.may += maybe_active(world, lane) ? weight : 0;
        for (int side = 0; side < SIDE_COUNT && known; side++)
            standing.held[side] += known->share.held[side];
    }
    return standing;
}

static int64_t part(int64_t slots, int64_t weight, int64_t sum)
{
    int64_t share = slots * weight / (sum > weight ? sum : weight);
    return share > 1 ? share : 1;
}

/* With more tenants than slots who has a larger weight may hold twice its part, or its turns would be of no use to it. */
static int64_t part_at_most(const struct standing *standing, int64_t slots, int64_t weight)
{
    int64_t share = part(slots, weight, standing->sure);
    bool crowded = standing->may > slots && slots * weight > standing->sure;
    return crowded ? 2 * share : share;
}

/*
 * What the others surely miss of their shares; those that have nothing to do for now of half of the slots at most. Who
 * waits with jobs that are claimed ahead has something to do; who is held looks with what it has, and misses nothing.
 */
static int64_t missed(const struct world *world, const struct standing *standing, enum shares_side side, int64_t slots, int besides)
{
    int64_t due = 0, idle = 0;
    for (int lane = 1; lane <= world->lane_top; lane++) {
        const struct lane_state *known = known_lane(world, lane);
        if (lane == besides || !known || known->dest != standing->dest || !surely_active(world, lane) || known->hold.held)
            continue;
        int64_t misses = part(slots, weight_of(world, world->lanes[lane].dest, world->lanes[lane].tenant), standing->may) - known->share.held[side];
        misses = misses > 0 ? misses : 0;
        int64_t ahead = side == SIDE_FIRST ? known->share.held[SIDE_AHEAD] : 0;
        int64_t wants = is_due(world, known) || misses < ahead ? misses : ahead;
        due += wants;
        idle += misses - wants;
    }
    return due + (idle < slots / 2 ? idle : slots / 2);
}

/* What others took since, of a share that is doubled: it was free for all. So was what a held tenant looks with. */
static int64_t taken_beyond(const struct world *world, const struct standing *standing, enum shares_side side, int64_t slots, int besides)
{
    int64_t taken = 0;
    for (int lane = 1; lane <= world->lane_top; lane++) {
        const struct lane_state *known = known_lane(world, lane);
        if (lane == besides || !known || known->dest != standing->dest)
            continue;
        int64_t weight = weight_of(world, world->lanes[lane].dest, world->lanes[lane].tenant);
        int64_t plain = known->hold.held ? 0 : part(slots, weight, standing->may);
        int64_t before = world->lanes[lane].held[side] > plain ? world->lanes[lane].held[side] : plain;
        taken += known->share.held[side] > before ? known->share.held[side] - before : 0;
    }
    return taken;
}

static void judge_taken(struct world *world, const struct standing *standing, enum shares_side side, int lane)
{
    const struct lane_view *view = &world->lanes[lane];
    const struct lane_state *known = known_lane(world, lane);
    int64_t slots = gate_slots(side == SIDE_FIRST ? &standing->dest->gate : &standing->dest->fallback);
    int64_t weight = weight_of(world, view->dest, view->tenant), held = known->share.held[side];
    int64_t free = slots - standing->held[side];
    if (held <= part_at_most(standing, slots, weight))
        return;
    seen(world, FEATURE_ABOVE_SHARE);
    int64_t misses = missed(world, standing, side, slots, lane);
    if (free + taken_beyond(world, standing, side, slots, lane) < misses)
        violated(world, INVARIANT_TURNS, "t%d took more than its share of %s: it holds %" PRId64 " of %" PRId64 " slots%s, %" PRId64
                 " are free, and others miss %" PRId64 " of theirs", view->tenant, standing->config->name, held, slots,
                 side == SIDE_FALLBACK ? " of the second address" : "", free, misses);
}

static void judge_ahead(struct world *world, const struct standing *standing, int lane)
{
    const struct lane_view *view = &world->lanes[lane];
    const struct lane_state *known = known_lane(world, lane);
    int64_t slots = standing->dest->queue.shares.sides[SIDE_AHEAD].slots;
    int64_t weight = weight_of(world, view->dest, view->tenant);
    int64_t held = known->share.held[SIDE_AHEAD] + known->share.held[SIDE_FIRST];
    seen(world, FEATURE_AHEAD);
    if (held > part_at_most(standing, slots, weight) && standing->sure > weight)
        violated(world, INVARIANT_TURNS, "t%d claims ahead at %s beyond its share: it has %" PRId64 " of %" PRId64
                 " slots and claims", view->tenant, standing->config->name, held, slots);
}

/* Workers are given whatever is left, and cycles leave nothing over; on the way back it goes by what matters most. */
static bool shares_slots(const struct standing *standing)
{
    const struct destination_config *config = standing->config;
    return standing->dest && config && config->transport != TRANSPORT_PULL && config->cycle_every_ms == 0 &&
           config->fairness.round_robin;
}

static bool goes_by_class(const struct standing *standing)
{
    return standing->config->priority_scope == PRIORITY_DESTINATION;
}

static bool returns(const struct standing *standing)
{
    return standing->dest->gate.contingency.saved.mode == MODE_RECOVERING;
}

/* ---- by class ---- */

/* How many jobs of the lane are as urgent as that, by a clock that is late by so much, beside those that are being claimed. */
static int64_t urgent_jobs(const struct world *world, const struct lane_state *lane, int class, int64_t late_ms, int64_t claiming)
{
    const enum priority priorities[] = { PRIORITY_CRITICAL, PRIORITY_HIGH };
    int64_t rank = class < CLASS_REST ? rank_of(priorities[class], world_now(world) - late_ms, lane->dest->config->aging_ms) : INT64_MAX - 1;
    struct error error;
    size_t count = 0;
    if (world->lanes[lane->id].ready > 0) /* else there is none */
        assert_int_equal(world->eye->ops->reader_ahead(world->eye, lane->id, rank + 1, 0, URGENT_MAX, &count, &error), STATUS_OK);
    return (int64_t)count - claiming;
}

/* Before what is judged: no transaction came between. */
static int64_t urgent_before(const struct world *world, const struct lane_state *lane, int class, int64_t late_ms)
{
    return urgent_jobs(world, lane, class, late_ms, world->lanes[lane->id].claiming);
}

/* Its share is in use: of the slots, or of slots and claims ahead, where `ahead` says that such were made. */
static bool has_its_part(const struct world *world, const struct standing *standing, const struct lane_state *lane, bool ahead)
{
    const struct lane_view *view = &world->lanes[lane->id];
    int64_t slots = gate_slots(&standing->dest->gate), weight = weight_of(world, view->dest, view->tenant);
    int64_t both = standing->dest->queue.shares.sides[SIDE_AHEAD].slots, held = lane->share.held[SIDE_FIRST];
    return held >= part(slots, weight, standing->may) ||
           (ahead && held + lane->share.held[SIDE_AHEAD] >= part(both, weight, standing->may));
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/*
 * The engine has asked the store what came to the lane, what it has after a claim that was refused, or how urgent a new time of day
 * has made it, and cannot know it yet: no slot stays empty for that. A question may have been on its way when it came, and its own
 * follows.
 */
static bool is_being_read(const struct world *world, const struct lane_state *lane)
{
    const struct lane_view *view = &world->lanes[lane->id];
    int64_t since = later(later(view->grew_mono, view->refused_mono), world->clock_jumped_mono);
    return lane->order.asked && world->mono - since <= 2 * world->read_lag_ms;
}

/* The most urgent class of work that surely waits, of a tenant other than that which could have gone; CLASS_REST: of none. */
static int waits_urgently(const struct world *world, const struct standing *standing, int besides, int *ret_lane)
{
    bool ahead = known_lane(world, besides)->share.held[SIDE_AHEAD] > 0;
    int most = CLASS_REST;
    for (int lane = 1; lane <= world->lane_top; lane++) {
        const struct lane_state *known = known_lane(world, lane);
        if (lane == besides || !known || known->dest != standing->dest || !is_due(world, known) || known->claiming > 0)
            continue;
        if (has_its_part(world, standing, known, ahead) || is_being_read(world, known))
            continue;
        for (int class = 0; class < most; class++)
            if (urgent_before(world, known, class, CLASSES_SEEN_MS) > 0 && urgent_jobs(world, known, class, CLASSES_SEEN_MS, known->claiming) > 0)
                most = class, *ret_lane = lane;
    }
    return most;
}

/* It claimed for slots, or ahead of them, while more urgent work of others waited: one slot in five may go so. */
static void judge_class(struct world *world, const struct standing *standing, int lane, int64_t took)
{
    struct lane_view *view = &world->lanes[lane];
    int64_t slots = gate_slots(&standing->dest->gate), behind = 0;
    int64_t some = slots > 1 ? (slots / BY_TURN_ONE_IN > 1 ? slots / BY_TURN_ONE_IN : 1) : 0;
    int urgent = 0, class = waits_urgently(world, standing, lane, &urgent);
    int64_t may = class < CLASS_REST ? urgent_before(world, known_lane(world, lane), class, -CLASSES_SEEN_MS) : 0;
    int64_t rightly = may > 0 ? may : 0;
    seen(world, FEATURE_BY_CLASS);
    bool unread = world->unread_until_mono > world->mono - CLASSES_SEEN_MS; /* then they go with the many */
    if (class == CLASS_REST || took <= rightly || unread)
        return;
    seen(world, FEATURE_BY_TURN);
    view->behind += took - rightly;
    for (int other = 1; other <= world->lane_top; other++)
        behind += world->lanes[other].dest == view->dest ? world->lanes[other].behind : 0;
    if (behind > some)
        violated(world, INVARIANT_TURNS, "%" PRId64 " of %" PRId64 " slots of %s went to others than the most urgent, the last to t%d, while t%d waited",
                 behind, slots, standing->config->name, view->tenant, world->lanes[urgent].tenant);
}

/* Whoever waits, of any class, waits for one round of what goes by turns over all of them. */
static void judge_by_turn(struct world *world, int number, const struct standing *standing, bool answered)
{
    int64_t by_turn = standing->dest->queue.shares.sides[SIDE_FIRST].by_turn, gone = by_turn - world->dests[number].by_turn;
    gone = answered && gone < 0 ? 0 : gone; /* else what was given back was never sent */
    if (standing->held[SIDE_FIRST] < by_turn)
        violated(world, INVARIANT_TURNS, "%" PRId64 " slots of %s are said to go by turns, and %" PRId64 " are in use", by_turn,
                 standing->config->name, standing->held[SIDE_FIRST]);
    for (int lane = 1; lane <= world->lane_top; lane++) {
        const struct lane_state *known = known_lane(world, lane);
        struct lane_view *view = &world->lanes[lane];
        if (!known || known->dest != standing->dest)
            continue;
        bool waits = is_due(world, known) && held_in_all(known) == 0;
        view->by_turn_waited = waits && view->by_turn_waited + gone > 0 ? view->by_turn_waited + gone : 0;
        int64_t allowed = turns_round(world, number);
        if (view->by_turn_waited > allowed)
            violated(world, INVARIANT_TURNS, "t%d waits at %s while %" PRId64 " of others went by turns over all classes, %" PRId64
                     " are allowed", view->tenant, standing->config->name, view->by_turn_waited, allowed);
    }
}

/* ---- around whatever takes slots ---- */

void shares_before(struct world *world)
{
    shares_know(world);
    shares_look(world);
    for (int lane = 1; lane <= world->lane_top; lane++) {
        const struct lane_state *known = known_lane(world, lane);
        struct lane_view *view = &world->lanes[lane];
        for (int side = 0; side < SIDE_COUNT; side++)
            view->held[side] = known ? known->share.held[side] : 0;
        int64_t held = view->held[SIDE_FIRST] + view->held[SIDE_AHEAD];
        view->behind = view->behind < held ? view->behind : held; /* others ended while a configuration held that shares nothing */
        view->claiming = known ? known->claiming : 0;
    }
    for (int number = 0; number < DESTS; number++) {
        const struct dest *dest = dest_find(world->engine, slice_from(dest_names[number]));
        world->dests[number].by_turn = dest ? dest->queue.shares.sides[SIDE_FIRST].by_turn : 0;
    }
}

static void judge_lane(struct world *world, const struct standing *standing, int lane)
{
    const struct lane_state *known = known_lane(world, lane);
    struct lane_view *view = &world->lanes[lane];
    bool looks = gate_looks(&standing->dest->gate);
    bool classes = goes_by_class(standing) || returns(standing);
    int64_t took = known->share.held[SIDE_FIRST] - view->held[SIDE_FIRST];
    int64_t claimed = took + known->share.held[SIDE_AHEAD] - view->held[SIDE_AHEAD]; /* what was claimed ahead has had its turn */
    if (claimed < 0) /* those that went behind others may be the ones that ended */
        view->behind = view->behind + claimed > 0 ? view->behind + claimed : 0;
    if (took > 0 && !looks && !classes)
        judge_taken(world, standing, SIDE_FIRST, lane);
    if (claimed > 0 && !looks && goes_by_class(standing) && !returns(standing))
        judge_class(world, standing, lane, claimed);
    if (known->share.held[SIDE_FALLBACK] > view->held[SIDE_FALLBACK] && !block_holds(&standing->dest->fallback.block) && !classes)
        judge_taken(world, standing, SIDE_FALLBACK, lane);
    if (known->share.held[SIDE_AHEAD] > view->held[SIDE_AHEAD] && !looks && !classes)
        judge_ahead(world, standing, lane);
}

/* A bit for each destination of which a lane has more slots than before, or fewer. */
static unsigned changed_dests(const struct world *world)
{
    unsigned changed = 0;
    for (int lane = 1; lane <= world->lane_top; lane++) {
        const struct lane_state *known = known_lane(world, lane);
        for (int side = 0; side < SIDE_COUNT && known; side++)
            if (known->share.held[side] != world->lanes[lane].held[side])
                changed |= 1U << world->lanes[lane].dest;
    }
    return changed;
}

void shares_after(struct world *world, bool answered)
{
    shares_know(world);
    unsigned changed = changed_dests(world);
    for (int number = 0; number < DESTS; number++) {
        if (!(changed & 1U << number))
            continue;
        struct standing standing = stand(world, number);
        if (!shares_slots(&standing))
            continue;
        for (int lane = 1; lane <= world->lane_top; lane++)
            if (world->lanes[lane].dest == number && known_lane(world, lane))
                judge_lane(world, &standing, lane);
        if (goes_by_class(&standing))
            judge_by_turn(world, number, &standing, answered);
    }
    shares_look(world);
}

/* Nobody lingers over that for sure. */
void shares_forget(struct world *world, enum world_change change)
{
    for (int lane = 0; lane <= LANES_MAX; lane++) {
        struct lane_view *view = &world->lanes[lane];
        view->active_at = INSTANT_NONE;
        view->by_turn_waited = 0;
        if (change == CHANGE_START)
            view->behind = 0;
    }
}
