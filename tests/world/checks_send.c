/*
 * The invariants that the receivers see: 3 (one send at a time, under a lease), 4 (what is held is not sent, and not
 * spent), 6, 8 (the ramp), 10 (limits); and that everything ends. A send is judged by how things stand when it leaves,
 * whenever its job was claimed.
 */
#include "world.h"

#include "core/decision/classify.h"
#include "core/outage/block.h"
#include "core/outage/criterion.h"
#include "core/outage/outage.h"
#include "engine/status.h"

#include <inttypes.h>
#include <math.h>

enum {
    ENGINE_OPS_MAX = 600, /* of its own batches, beside what is under way */
    SLOTS_DRAWN_MAX = 30,
    CLAIMED_AHEAD_MAX = 256, /* of a destination, where a job may be sent twice */
};

/* ---- how a destination stands ---- */

static int64_t grace_ms(const struct world *world)
{
    return HOLD_GRACE_MS + 4 * world->store_lag_ms;
}

/* For how long at least, whatever the clock did. */
static int64_t stands_for(const struct world *world, instant since)
{
    int64_t ms = world_now(world) - since;
    int64_t clock = world->mono - world->clock_jumped_mono, start = world->mono - world->changed_mono;
    ms = ms < clock ? ms : clock;
    return ms < start ? ms : start;
}

static bool mode_is(const struct destination_status *status, const char *mode)
{
    return status->known && strcmp(status->mode, mode) == 0;
}

/* By an operator. */
static bool is_paused(const struct destination_status *status)
{
    return mode_is(status, "paused") && status->held_by && strcmp(status->held_by, "paused") == 0;
}

/* Because we are refused there. */
static bool is_blocked(const struct destination_status *status)
{
    return mode_is(status, "paused") && !is_paused(status);
}

static int64_t ramp_level(const struct world *world, const struct contingency_config *config, int64_t step)
{
    size_t last = config->ramp_count - 1;
    int64_t level = config->ramp[step < (int64_t)last ? (size_t)step : last];
    return world->sabotage == SABOTAGE_NO_RAMP ? level / 4 : level;
}

/* Workers' jobs leave when they are leased: they are held to the mode then. All claims of such a batch are one request's. */
static void check_leases(struct world *world, const struct batch *batch, int64_t count)
{
    const struct op_claim *claim = &batch->ops[0].claim;
    int dest = world->lanes[claim->lane <= LANES_MAX ? claim->lane : 0].dest;
    const struct destination_config *config = dest < 0 ? NULL : world_dest(world, dest);
    if (!config || batch->ops[0].kind != OP_CLAIM || claim->owner.len == 0)
        return;
    struct destination_status status = engine_destination(world->engine, slice_from(dest_names[dest]));
    int64_t since = world_now(world) - status.mode_since;
    int64_t out = status.under_way - world->dests[dest].under_way[1]; /* which a reload may have left at the second address */
    bool stands = since >= 0 && stands_for(world, status.mode_since) >= since && config->contingency.ramp_count > 0 &&
                  status.mode_since != world->dests[dest].mode_before;
    world->figures->features[FEATURE_LEASE] += count;
    if (mode_is(&status, "contingency") && (count > 1 || config->health.kind != HEALTH_NONE))
        violated(world, INVARIANT_RAMP, "%" PRId64 " leases of %s in contingency", count, config->name);
    if (mode_is(&status, "normal") && strcmp(status.breaker, "open") == 0)
        violated(world, INVARIANT_ATTEMPTS, "the breaker of %s is open, and its jobs are leased", config->name);
    if (mode_is(&status, "recovering") && stands &&
        out > ramp_level(world, &config->contingency, since / RAMP_STEP_MS))
        violated(world, INVARIANT_RAMP, "%" PRId64 " leases of %s are out %" PRId64 " ms after the return", out,
                 config->name, since);
}

struct decided decided_now(const struct world *world, int dest)
{
    struct destination_status status = engine_destination(world->engine, slice_from(dest_names[dest]));
    return (struct decided){ world->mono, status.limit.now, mode_is(&status, "recovering") };
}

/* How an operation of the batch that leaves now was decided. Workers' claims are batches of their own, and wait for nothing. */
static struct decided decided_of(const struct world *world, const struct op_claim *claim, size_t place, int dest)
{
    for (size_t i = 0; i < world->filled_count && claim->owner.len == 0; i++)
        if (place < world->filled[i].count)
            return world->filled[i].by[dest];
    return decided_now(world, dest);
}

void check_claims_submitted(struct world *world, const struct batch *batch)
{
    int64_t leased = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const struct store_op *op = &batch->ops[i];
        if (op->kind != OP_CLAIM || op->claim.lane > LANES_MAX)
            continue;
        const struct lane_view *lane = &world->lanes[op->claim.lane];
        struct destination_status status = engine_destination(world->engine, slice_from(dest_names[lane->dest]));
        struct lane_hold hold = engine_lane_hold(world->engine, op->claim.lane);
        struct decided decided = decided_of(world, &op->claim, i, lane->dest);
        int64_t ago = world->mono - decided.mono;
        if (hold.held && !hold.blocked && stands_for(world, hold.since) > ago)
            violated(world, INVARIANT_ATTEMPTS, "t%d at %s is paused, and jobs of it are claimed", lane->tenant, dest_names[lane->dest]);
        if (hold.blocked && op->claim.max > 1 && stands_for(world, hold.since) > ago)
            violated(world, INVARIANT_ATTEMPTS, "t%d at %s is refused, and %zu jobs of it are claimed", lane->tenant,
                     dest_names[lane->dest], op->claim.max);
        if (is_paused(&status) && stands_for(world, status.held_since) > ago)
            violated(world, INVARIANT_ATTEMPTS, "%s is paused, and jobs of it are claimed", dest_names[lane->dest]);
        turns_asked(world, &op->claim, &decided);
        leased += (int64_t)op->claim.max;
    }
    if (leased > 0)
        check_leases(world, batch, leased);
}

static int64_t total_burst(const struct destination_config *config)
{
    return config->rate_burst > 0 ? config->rate_burst : rate_burst(config->rate_total, config->concurrency);
}

static int64_t tenant_burst(const struct destination_config *config)
{
    int64_t burst = config->rate_burst > 0 ? config->rate_burst : rate_burst(config->rate_per_tenant, config->concurrency);
    return burst < config->rate_per_tenant.count ? burst : config->rate_per_tenant.count;
}

/* Nobody owes more than a burst, whatever was allowed before. */
static void bucket_cap(struct bucket *bucket, struct rate rate, int64_t burst, int64_t mono)
{
    double most = rate.count > 0 ? (double)mono + (double)burst * (double)rate.per_ms / (double)rate.count : bucket->paid_mono;
    bucket->paid_mono = bucket->paid_mono < most ? bucket->paid_mono : most;
}

/*
 * A crash forgets less than a second's worth of a limit. A clock that is set forward brings the time nearer until which all is paid
 * for; one that is set back puts it off, by a burst at most. A reload changes nothing of it.
 */
static void forget_rates(struct bucket *claimed, struct bucket *sent, enum world_change change, int64_t by_ms)
{
    int64_t less = change == CHANGE_START ? SECOND_MS : by_ms > 0 ? by_ms : 0;
    claimed->paid_mono -= (double)less;
    sent->paid_mono -= (double)less;
}

static void cap_rates(struct world *world)
{
    for (int dest = 0; dest < DESTS; dest++) {
        const struct destination_config *config = world_dest(world, dest);
        struct dest_view *view = &world->dests[dest];
        if (!config)
            continue;
        bucket_cap(&view->claimed, config->rate_total, total_burst(config), world->mono);
        bucket_cap(&view->sent, config->rate_total, total_burst(config), world->mono);
        for (int lane = 1; lane <= world->lane_top; lane++) {
            if (world->lanes[lane].dest != dest)
                continue;
            bucket_cap(&world->lanes[lane].claimed, config->rate_per_tenant, tenant_burst(config), world->mono);
            bucket_cap(&world->lanes[lane].sent, config->rate_per_tenant, tenant_burst(config), world->mono);
        }
    }
}

void check_forget(struct world *world, enum world_change change, int64_t by_ms)
{
    bool restarted = change == CHANGE_START;
    for (int dest = 0; dest < DESTS; dest++) {
        struct dest_view *view = &world->dests[dest];
        forget_rates(&view->claimed, &view->sent, change, by_ms);
        view->cycle_sends = 0;
        view->recovering_since = INSTANT_NONE;
        struct destination_status status = engine_destination(world->engine, slice_from(dest_names[dest]));
        view->mode_before = status.mode_since;
        view->probe_mono = -1;
        view->full_mono = -1;
        view->blocks[0].look_mono = view->blocks[1].look_mono = -1;
        if (restarted) {
            view->under_way[0] = view->under_way[1] = 0;
            refused_forget(world, dest);
        }
    }
    for (int lane = 0; lane <= LANES_MAX; lane++) {
        forget_rates(&world->lanes[lane].claimed, &world->lanes[lane].sent, change, by_ms);
        world->lanes[lane].full_mono = -1;
    }
    if (change == CHANGE_RELOAD)
        cap_rates(world);
    turns_forget(world, change);
    for (int i = 0; i < world->job_count && restarted; i++) {
        world->jobs[i].flight = NULL;
        world->jobs[i].expected.set = false;
    }
    world->changed_mono = world->mono;
}

/* ---- 10: limits ---- */

/* What went, of how many, and when. */
struct passage {
    const char *whose;
    int64_t count, mono;
    int64_t late_ms; /* so much later than it was decided */
    bool judged;     /* else an earlier configuration, or another time of day, allowed it */
};

/*
 * As a limiter that pays for each in advance: nobody owes more than a burst. What goes later than it was decided can come together with
 * what was decided later, so that as much more may go as the rate brings in that time.
 */
static void check_rate(struct world *world, const struct passage *passage, struct rate rate, int64_t burst, struct bucket *bucket)
{
    if (rate.count == 0)
        return;
    if (world->sabotage == SABOTAGE_NO_RATE)
        burst /= 2;
    double each = (double)rate.per_ms / (double)rate.count, now = (double)passage->mono;
    if (bucket->paid_mono <= now && passage->judged)
        *bucket = (struct bucket){ .paid_mono = now };
    bucket->paid_mono += each * (double)passage->count;
    bucket->late_ms = passage->late_ms > bucket->late_ms ? passage->late_ms : bucket->late_ms;
    double owed = bucket->paid_mono - now, most = each * (double)burst + (double)bucket->late_ms;
    if (passage->judged && owed > most + 1e-6 * each)
        violated(world, INVARIANT_LIMITS, "%s: %g in a bucket of %" PRId64 ", %" PRId64 " per %" PRId64 " ms are allowed", passage->whose,
                 owed / each, burst, rate.count, rate.per_ms);
}

/* What was decided before the configuration or the clock changed is paid for as it was then, and not judged by the present. */
static void check_paid(struct world *world, const struct passage *passage, int64_t decided_mono, int lane, struct bucket *all,
                       struct bucket *own)
{
    const struct lane_view *view = &world->lanes[lane];
    const struct destination_config *config = world_dest_at(world, view->dest, decided_mono);
    const struct destination_config *now = world_dest(world, view->dest);
    if (!config)
        return;
    check_rate(world, passage, config->rate_total, total_burst(config), all);
    check_rate(world, passage, config->rate_per_tenant, tenant_burst(config), own);
    if (passage->judged || !now)
        return;
    bucket_cap(all, now->rate_total, total_burst(now), world->changed_mono); /* it was owed already when that changed */
    bucket_cap(own, now->rate_per_tenant, tenant_burst(now), world->changed_mono);
}

/* What is decided keeps to the rates exactly, of sends and of leases; what is sent is later by what the store takes. */
void check_rates_claimed(struct world *world, const struct claim_out *out, int64_t count)
{
    struct lane_view *lane = &world->lanes[out->lane];
    struct passage passage = { .whose = "claims", .count = count, .mono = out->decided_mono,
                               .judged = out->decided_mono > world->changed_mono };
    if (count > 0)
        check_paid(world, &passage, out->decided_mono, (int)out->lane, &world->dests[lane->dest].claimed, &lane->claimed);
}

/* Two whole cycles may meet in one interval, never three. */
static void check_cycle(struct world *world, struct dest_view *view, const struct destination_config *config)
{
    if (config->cycle_every_ms == 0 || config->cycle_batch == 0)
        return;
    if (world->mono - view->cycle_mono >= config->cycle_every_ms) {
        view->cycle_mono = world->mono;
        view->cycle_sends = 0;
    }
    view->cycle_sends++;
    if (view->cycle_sends > 2 * config->cycle_batch + (world->store_lag_ms > 0 ? config->concurrency : 0))
        violated(world, INVARIANT_LIMITS, "%" PRId64 " sends in an interval of cycles of %" PRId64, view->cycle_sends,
                 config->cycle_batch);
}

static void check_places(struct world *world, const struct flight *flight, const struct destination_config *config)
{
    int dest = flight->shadow->dest, fallback = flight->send->use_fallback;
    struct dest_view *view = &world->dests[dest];
    const struct destination_config *now = world_dest(world, dest); /* whatever it was claimed by */
    int64_t places = now ? now->concurrency : config->concurrency;
    if (world->sabotage == SABOTAGE_NO_LIMIT)
        places = 1;
    view->under_way[fallback]++;
    if (view->under_way[fallback] > places)
        violated(world, INVARIANT_LIMITS, "%s has %" PRId64 " under way, %" PRId64 " are allowed", dest_names[dest],
                 view->under_way[fallback], places);
}

/* When what goes now was allowed: a claim that comes back too late is asked for again. */
static int64_t allowed_mono(const struct world *world, const struct shadow *shadow)
{
    return world->mono - shadow->decided_mono > CLAIM_LATE_MS ? world->mono : shadow->decided_mono;
}

static void check_limits(struct world *world, const struct flight *flight)
{
    const struct destination_config *config = flight->send->destination;
    const struct shadow *shadow = flight->shadow;
    struct dest_view *view = &world->dests[shadow->dest];
    struct lane_view *lane = &world->lanes[flight->send->job->lane];
    int64_t allowed = allowed_mono(world, shadow);
    struct passage passage = { .whose = "sends", .count = 1, .mono = world->mono, .late_ms = world->mono - allowed,
                               .judged = allowed > world->changed_mono };
    check_places(world, flight, config);
    check_paid(world, &passage, allowed, (int)flight->send->job->lane, &view->sent, &lane->sent);
    if (!flight->send->use_fallback)
        check_cycle(world, view, config);
}

/* ---- 8: after an outage ---- */

/* However fast it answers, so many steps of a second each can have been taken and no more. */
static void check_ramp(struct world *world, const struct flight *flight, const struct destination_status *status)
{
    const struct contingency_config *config = &flight->send->destination->contingency;
    struct dest_view *view = &world->dests[flight->shadow->dest];
    int64_t since = world_now(world) - status->mode_since, step = since / RAMP_STEP_MS, allowed = 0;
    if (since < 0 || stands_for(world, status->mode_since) < since || config->ramp_count == 0 ||
        status->mode_since == view->mode_before)
        return;
    if (view->recovering_since != status->mode_since) {
        view->recovering_since = status->mode_since;
        view->recovering_sent = 0;
    }
    view->recovering_sent++;
    if (view->under_way[0] > ramp_level(world, config, step))
        violated(world, INVARIANT_RAMP, "%" PRId64 " under way %" PRId64 " ms after the return, the step has %" PRId64,
                 view->under_way[0], since, ramp_level(world, config, step));
    for (int64_t i = 0; i <= step && i < (int64_t)config->ramp_count; i++)
        allowed += ramp_level(world, config, i);
    if (step < (int64_t)config->ramp_count && view->recovering_sent > allowed)
        violated(world, INVARIANT_RAMP, "%" PRId64 " sent within %" PRId64 " ms of the return, the steps have %" PRId64,
                 view->recovering_sent, since, allowed);
}

/* In contingency only looks go out: none where the health is checked, else one an interval, or its tenth. */
static void check_look(struct world *world, const struct flight *flight)
{
    const struct destination_config *config = flight->send->destination;
    struct dest_view *view = &world->dests[flight->shadow->dest];
    if (config->health.kind != HEALTH_NONE)
        violated(world, INVARIANT_RAMP, "a job goes to %s in contingency, although its health is checked", config->name);
    if (view->probe_mono >= 0 && world->mono - view->probe_mono < looks_soon_ms(config->contingency.check_ms))
        violated(world, INVARIANT_RAMP, "a second look at %s after %" PRId64 " ms", config->name, world->mono - view->probe_mono);
    view->probe_mono = world->mono;
}

/* ---- 3, 4: a send ---- */

static void check_lease(struct world *world, const struct flight *flight)
{
    const struct shadow *shadow = flight->shadow;
    const struct job *job = flight->send->job;
    if (shadow->state != STATE_RUNNING || job->lease_token != shadow->token)
        violated(world, INVARIANT_LEASE, "%.*s is sent without a lease: it is %s", SLICE_ARG(job->id), job_state_name(shadow->state));
    bool jumped = world->clock_jumped_mono > shadow->claim_mono - grace_ms(world); /* maybe while the claim waited to be written */
    if (world->mono > shadow->lease_until_mono && !jumped)
        violated(world, INVARIANT_LEASE, "%.*s is sent after the end of its lease", SLICE_ARG(job->id));
    /* Nobody may take it for interrupted while it is sent; it may have waited for a slot, and the process may have woken late. */
    int64_t ends = world->mono + flight->send->destination->timeout_ms - grace_ms(world) - world->late_ms;
    if (ends > shadow->lease_until_mono && !jumped)
        violated(world, INVARIANT_LEASE, "%.*s is sent, and its lease ends %" PRId64 " ms before the send may", SLICE_ARG(job->id),
                 ends - shadow->lease_until_mono);
    if (shadow->flight)
        violated(world, INVARIANT_LEASE, "%.*s is sent twice at once", SLICE_ARG(job->id));
}

/* Accounts get locked: where we are refused one job looks, a minute later the next. An order, or a reload, may hasten it. */
static void check_block_look(struct world *world, const struct flight *flight, int64_t *last_mono, instant held_since)
{
    int64_t allowed = allowed_mono(world, flight->shadow);
    int64_t since = *last_mono >= 0 ? allowed - *last_mono : stands_for(world, held_since) - (world->mono - allowed);
    int64_t begin = allowed - since - grace_ms(world); /* a claim may have been on its way then */
    bool changed = world->changed_mono >= begin || world->clock_jumped_mono >= begin || world->ordered_mono >= begin;
    bool unknown = *last_mono < 0 && world->clock_jumped_mono > 0; /* it may be held since before the jump, by another clock */
    seen(world, FEATURE_BLOCK_LOOK);
    if (since >= 0 && !changed && !unknown && since < BLOCK_LOOK_MS) /* else the clock went back since */
        violated(world, INVARIANT_ATTEMPTS, "%s refuses us, and a look follows another after %" PRId64 " ms",
                 dest_names[flight->shadow->dest], since);
    /* When the next one comes was reckoned as this one was claimed, by another clock. */
    *last_mono = world->clock_jumped_mono > flight->shadow->decided_mono ? -1 : allowed;
}

/* Of an address that refuses us, while it does; a send to the other says nothing. */
static void check_block_of(struct world *world, const struct flight *flight, int64_t *looked, bool held, bool sent_there,
                           instant since)
{
    if (!held)
        *looked = -1;
    else if (sent_there)
        check_block_look(world, flight, looked, since);
}

/* What refused an only tenant may let the next one in that has work: once its look comes at once. */
static void check_address(struct world *world, const struct flight *flight, struct block_view *view, bool held, bool sent_there,
                          instant since)
{
    bool other = held && sent_there && view->look_mono >= 0 && view->looker != flight->shadow->tenant;
    view->hastened = held && view->hastened;
    if (other && !view->hastened) {
        view->hastened = true;
        view->look_mono = -1;
    }
    check_block_of(world, flight, &view->look_mono, held, sent_there, since);
    if (sent_there)
        view->looker = flight->shadow->tenant;
}

/* What is paused, or goes elsewhere: without any grace. */
static void check_holds(struct world *world, const struct flight *flight, const struct destination_status *status)
{
    const char *name = dest_names[flight->shadow->dest];
    struct lane_hold hold = engine_lane_hold(world->engine, flight->send->job->lane);
    if (is_paused(status))
        violated(world, INVARIANT_ATTEMPTS, "%s is paused, and a job is sent", name);
    struct block_view *blocks = world->dests[flight->shadow->dest].blocks;
    int64_t *tenant_looked = &world->lanes[flight->send->job->lane].block_look_mono;
    bool second = flight->send->use_fallback;
    check_address(world, flight, &blocks[0], is_blocked(status), !second, status->held_since);
    check_address(world, flight, &blocks[1], status->second.held, second, status->second.since);
    check_block_of(world, flight, tenant_looked, hold.blocked, !second, hold.since);
    if (hold.held && !hold.blocked)
        violated(world, INVARIANT_ATTEMPTS, "t%d at %s is paused, and a job of it is sent", flight->shadow->tenant, name);
    bool broken = !flight->send->destination->contingency.enabled && strcmp(status->breaker, "open") == 0;
    bool both = is_blocked(status) && status->second.wanted && status->second.held; /* its mode is that of the refusals then */
    if (flight->send->use_fallback && ((!broken && !both && !mode_is(status, "contingency")) || !flight->send->destination->fallback_url))
        violated(world, INVARIANT_ATTEMPTS, "a job goes to the second address of %s, which is %s", name, status->mode);
    if (!flight->send->use_fallback && mode_is(status, "normal") && strcmp(status->breaker, "open") == 0)
        violated(world, INVARIANT_ATTEMPTS, "the breaker of %s is open, and a job is sent", name);
}

static void note_limit(const struct world *world, struct dest_view *view, const struct destination_status *status)
{
    if (status->limit.now < view->limit && world->mono - view->limit_mono <= grace_ms(world))
        return;
    view->limit = status->limit.now;
    view->limit_mono = world->mono;
}

/* No more at once than the limit of concurrency says, or said when it was decided. */
static void check_limit_now(struct world *world, const struct flight *flight, const struct destination_status *status)
{
    int dest = flight->shadow->dest;
    struct dest_view *view = &world->dests[dest];
    note_limit(world, view, status);
    int64_t then = flight->shadow->decided_limit;
    int64_t most = world->sabotage == SABOTAGE_NO_ADAPTING ? 1 : then > status->limit.now ? then : status->limit.now;
    if (view->under_way[0] > most)
        violated(world, INVARIANT_LIMITS, "%s has %" PRId64 " under way, and its limit is %" PRId64, dest_names[dest],
                 view->under_way[0], most);
}

static void note_features(struct world *world, const struct flight *flight, const struct destination_status *status)
{
    const struct destination_config *config = flight->send->destination;
    const bool has[FEATURE_COUNT] = {
        [FEATURE_FALLBACK] = flight->send->use_fallback,
        [FEATURE_LOOK] = !flight->send->use_fallback && mode_is(status, "contingency"),
        [FEATURE_RAMP] = mode_is(status, "recovering"),
        [FEATURE_CYCLE] = config->cycle_every_ms > 0,
        [FEATURE_RATE] = config->rate_total.count > 0,
        [FEATURE_TENANT_RATE] = config->rate_per_tenant.count > 0,
        [FEATURE_TENANT_HOLD] = status->tenants_paused > 0,
        [FEATURE_LIMIT] = !flight->send->use_fallback && status->limit.now < status->limit.max,
    };
    for (int i = 0; i < FEATURE_COUNT; i++)
        if (has[i])
            seen(world, (enum feature)i);
}

/* A job that was answered is there until that is written, with the operation that does so. */
static void check_under_way(struct world *world)
{
    int64_t most = ENGINE_OPS_MAX;
    for (int dest = 0; dest < DESTS; dest++) {
        const struct destination_config *config = world_dest(world, dest);
        most += 2 * (config && config->concurrency > SLOTS_DRAWN_MAX ? config->concurrency : SLOTS_DRAWN_MAX);
        most += config && config->policy.in_doubt == DOUBT_RESEND ? 2 * CLAIMED_AHEAD_MAX : 0;
    }
    if (engine_under_way(world->engine) > (size_t)most)
        violated(world, INVARIANT_MEMORY, "%zu things are under way", engine_under_way(world->engine));
}

void check_send(struct world *world, struct flight *flight)
{
    struct shadow *shadow = flight->shadow;
    struct destination_status status = engine_destination(world->engine, slice_from(dest_names[shadow->dest]));
    bool first = !flight->send->use_fallback;
    check_lease(world, flight);
    if (flight->send->job->step == STEP_SEND && (shadow->refused_epoch == world->epoch || shadow->delivered_epoch == world->epoch))
        violated(world, INVARIANT_ATTEMPTS, "job %d is sent again after its %s", (int)(shadow - world->jobs),
                 shadow->refused_epoch == world->epoch ? "refusal" : "delivery");
    check_refused(world, shadow->dest);
    check_holds(world, flight, &status);
    check_limits(world, flight);
    turns_sent(world, shadow, flight->send->job->lane);
    shadow->sent_held = !mode_is(&status, "normal") || strcmp(status.breaker, "half_open") == 0;
    shadow->sent_calm = mode_is(&status, "normal") && strcmp(status.breaker, "closed") == 0;
    if (first)
        check_limit_now(world, flight, &status);
    if (first && mode_is(&status, "recovering"))
        check_ramp(world, flight, &status);
    if (first && mode_is(&status, "contingency"))
        check_look(world, flight);
    note_features(world, flight, &status);
    check_under_way(world);
}

/* ---- 4: an answer ---- */

static enum outcome outcome_of(const struct destination_config *config, const struct answer *answer)
{
    const struct policy *policy = &config->policy;
    if (answer->outcome != OUTCOME_NONE)
        return answer->outcome;
    enum outcome found = classify(policy->classifier, (struct evidence){ answer->code, answer->text }).outcome;
    return found != OUTCOME_NONE ? found : policy->unknown;
}

static int64_t at_least(int64_t value, double other)
{
    return other > (double)value ? (int64_t)other : value;
}

/* After so many before it, without what is added to it or taken from it. */
static double nominal_wait(const struct retry_policy *retry, enum priority priority, int64_t before)
{
    return (double)retry->base_ms * retry->delay_factor[priority] * pow(retry->factor, (double)before);
}

static bool may_pass(enum outcome outcome)
{
    return outcome == OUTCOME_TRANSIENT || outcome == OUTCOME_THROTTLED || outcome == OUTCOME_WAIT || outcome == OUTCOME_IN_DOUBT;
}

/* The policy's own words, computed apart from the program: how long a retry that spends may wait. */
static void expect_waits(struct world *world, struct shadow *shadow, const struct destination_config *config,
                         const struct job *job, const struct answer *answer, enum outcome outcome)
{
    const struct retry_policy *retry = &config->policy.retry;
    double nominal = nominal_wait(retry, job->priority, job->retry_count);
    double shortest = config->adaptive_backoff ? nominal / 2 : nominal, longest = config->adaptive_backoff ? nominal * 2 : nominal;
    double low = fmax(fmin(shortest, (double)retry->cap_ms), (double)retry->floor_ms) * (1 - retry->jitter) - 1;
    double high = fmax(fmin(longest, (double)retry->cap_ms), (double)retry->floor_ms) * (1 + retry->jitter) + 1;
    if (retry->clamp != CLAMP_BEFORE) {
        low = fmax(low, (double)retry->floor_ms);
        high = fmin(high, (double)retry->cap_ms + 1);
    }
    double wish = fmin((double)answer->retry_after_ms, (double)retry->retry_after_max_ms);
    if (answer->retry_after_ms > 0) {
        low = fmax(low, wish);
        high = fmax(high, fmin(wish * (1 + retry->jitter), (double)retry->retry_after_max_ms) + 1);
    }
    if (outcome == OUTCOME_THROTTLED) {
        low = fmax(low, (double)retry->throttle_min_ms);
        high = fmax(high, (double)retry->throttle_min_ms * (1 + retry->jitter) + 1);
    }
    int64_t latest = at_least(SECOND_MS, high);
    /* Told to wait before, or spared as if it were: each wait is longer, within the same bounds. */
    double grown = nominal_wait(retry, job->priority, job->retry_count + job->attempts - 1) * (config->adaptive_backoff ? 2 : 1);
    latest = at_least(latest, fmax(fmin(grown, (double)retry->cap_ms), (double)retry->floor_ms) * (1 + retry->jitter) + 1);
    latest = at_least(latest, (double)retry->throttle_min_ms * (1 + retry->jitter) + 1);
    const int64_t others[] = { config->verify.after_ms, config->verify.every_ms, config->poll.after_ms, config->poll.every_ms, MINUTE_MS };
    for (size_t i = 0; i < COUNT_OF(others); i++)
        latest = at_least(latest, (double)others[i]);
    if (outcome == OUTCOME_BLOCKED)
        latest = BLOCK_LOOK_MAX_MS;
    shadow->expected.run_low = world_now(world) + (int64_t)low;
    shadow->expected.run_high = world_now(world) + (int64_t)high;
    shadow->expected.latest = world_now(world) + latest;
    if (config->adaptive_backoff)
        seen(world, FEATURE_ADAPTIVE);
}

static void expect(struct world *world, const struct flight *flight)
{
    struct shadow *shadow = flight->shadow;
    const struct job *job = flight->send->job;
    bool question = job->step != STEP_SEND, attempted = flight->answer.attempted;
    enum outcome outcome = question ? OUTCOME_NONE : outcome_of(flight->send->destination, &flight->answer);
    shadow->expected.set = true;
    shadow->expected.token = job->lease_token;
    shadow->expected.retry_count = job->retry_count;
    shadow->expected.retries_max = flight->send->destination->policy.retry.retries_max;
    shadow->expected.refused = attempted && !question && outcome == OUTCOME_PERMANENT;
    shadow->expected.delivered = attempted && (question ? flight->answer.query == QUERY_DELIVERED : outcome == OUTCOME_DELIVERED);
    /* In an outage the first failure of each job is free, and from then on those that somebody judged count. */
    instant since = engine_destination(world->engine, slice_from(dest_names[shadow->dest])).outage_since;
    bool look = since != INSTANT_NONE && !question && may_pass(outcome) && (shadow->sent_held || flight->send->use_fallback);
    /* To the checks; the engine knows of questions and workers, too. What is to come was of before the clock was put back. */
    bool known = look && shadow->look_failed_at >= since && shadow->look_failed_at <= world_now(world);
    bool used = known || (look && job->look_failed_at != INSTANT_NONE && job->look_failed_at >= since);
    bool judged = known && outcome == OUTCOME_TRANSIENT && !criterion_away(outcome, flight->answer.code);
    shadow->expected.unspent = !attempted || (look && !used) || outcome == OUTCOME_BLOCKED;
    shadow->expected.look_failed_at = look && attempted ? world_now(world) : 0;
    /* One that has run out of time may be held for the destination's sake, too. */
    bool calm = outcome == OUTCOME_TRANSIENT && shadow->sent_calm && !flight->send->use_fallback;
    shadow->expected.spent = attempted && (calm || judged) && flight->send->destination->policy.retry.elapsed_max_ms == 0;
    expect_waits(world, shadow, flight->send->destination, job, &flight->answer, question ? OUTCOME_TRANSIENT : outcome);
}

/* A worker said that it failed: the same policy decides. Whether it spends is not known here: a look does not. */
void check_nack(struct world *world, struct shadow *shadow, const struct job *job, const struct answer *answer)
{
    const struct destination_config *config = world_dest(world, shadow->dest);
    enum outcome outcome = outcome_of(config, answer);
    memset(&shadow->expected, 0, sizeof shadow->expected);
    shadow->expected.set = true;
    shadow->expected.token = job->lease_token;
    shadow->expected.retry_count = job->retry_count;
    shadow->expected.retries_max = config->policy.retry.retries_max;
    shadow->expected.refused = outcome == OUTCOME_PERMANENT;
    expect_waits(world, shadow, config, job, answer, outcome);
}

void check_answer(struct world *world, struct flight *flight)
{
    struct shadow *shadow = flight->shadow;
    struct dest_view *view = &world->dests[shadow->dest];
    enum outcome outcome = OUTCOME_NONE;
    if (flight->send->job->step == STEP_SEND)
        outcome = outcome_of(flight->send->destination, &flight->answer);
    bool first = !flight->send->use_fallback, attempted = flight->answer.attempted;
    struct destination_status status = engine_destination(world->engine, slice_from(dest_names[shadow->dest]));
    check_refused(world, shadow->dest); /* by what was answered before this */
    note_limit(world, view, &status);
    refused_answered(world, flight, outcome);
    view->under_way[!first]--;
    turns_ended(world, flight->send->job->lane);
    if (first && (!attempted || outcome == OUTCOME_BLOCKED)) { /* it says nothing: another may have its place */
        view->recovering_sent -= view->recovering_sent > 0;
        view->cycle_sends -= view->cycle_sends > 0;
        view->probe_mono = -1;
    }
    expect(world, flight);
    outage_answered(world, flight, outcome);
    if (shadow->expected.refused)
        shadow->refused_epoch = world->epoch;
    if (shadow->expected.delivered)
        shadow->delivered_epoch = world->epoch;
    bool says = shadow->expected.delivered || (attempted && (outcome == OUTCOME_ACCEPTED || outcome == OUTCOME_DUPLICATE));
    shadow->may_complete = shadow->may_complete || says;
}

/* ---- everything ends ---- */

/*
 * Normal, or away as announced, or in contingency without anything to look with: there a job is the check. A pull
 * destination learns of a cancelled job when somebody asks.
 */
bool dest_rests(const struct world *world, int dest)
{
    struct destination_status status = engine_destination(world->engine, slice_from(dest_names[dest]));
    if (!world_dest(world, dest))
        return true;
    bool pull = world_dest(world, dest)->transport == TRANSPORT_PULL;
    if (status.lanes_with_work > 0 && !pull)
        return false;
    if (status.held_by)
        return strcmp(status.held_by, "maintenance") == 0;
    return mode_is(&status, "normal") || mode_is(&status, "contingency");
}

static void check_ended(struct world *world, int number)
{
    const struct shadow *shadow = &world->jobs[number];
    struct destination_status status = engine_destination(world->engine, slice_from(dest_names[shadow->dest]));
    struct arena memory = { 0 };
    struct job job;
    struct error error;
    if (shadow->gone || (shadow->state != STATE_PENDING && shadow->state != STATE_RUNNING && shadow->state != STATE_WAITING))
        return;
    assert_int_equal(world->eye->ops->reader_job_seq(world->eye, shadow->seq, false, &memory, &job, &error), STATUS_OK);
    violated(world, INVARIANT_PROGRESS,
             "job %d of %s is still %s, due %" PRId64 " ms ago, lease over %" PRId64 " ms ago; the destination is %s, held by %s, "
             "%zu lanes with work", number, dest_names[shadow->dest], job_state_name(shadow->state), world_now(world) - job.run_at,
             job.lease_until == INSTANT_NONE ? 0 : world_now(world) - job.lease_until, status.mode,
             status.held_by ? status.held_by : "nothing", status.lanes_with_work);
}

void check_progress(struct world *world)
{
    for (int i = 0; i < world->job_count && world->open > 0; i++)
        check_ended(world, i);
    for (int dest = 0; dest < DESTS; dest++) {
        struct destination_status status = engine_destination(world->engine, slice_from(dest_names[dest]));
        if (!dest_rests(world, dest) || (status.known && status.under_way > 0))
            violated(world, INVARIANT_PROGRESS, "%s is in mode %s, held by %s, %" PRId64 " under way, %zu lanes with work",
                     dest_names[dest], status.mode, status.held_by ? status.held_by : "nothing", status.under_way,
                     status.lanes_with_work);
    }
}
