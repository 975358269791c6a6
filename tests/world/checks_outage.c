/*
 * The rules of an outage, from claims and answers: a go takes what has not failed first, and no single job opens a breaker.
 * That a job's first failure is free and no other is stands with the answers, in checks_send.c.
 */
#include "world.h"

#include "core/outage/criterion.h"
#include "core/outage/tally.h"
#include "engine/loop.h"

#include <inttypes.h>
#include <string.h>

/* ---- who goes ---- */

/* Nothing else happened in the transaction: then what is ready after it was so at its claims, too. */
bool outage_claims_only(const struct store_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ops[i].kind != OP_CLAIM && ops[i].kind != OP_SAVE)
            return false;
    return true;
}

/* How many of the lane's jobs may be claimed that have not failed since; -1: it cannot be told. */
static int64_t unfailed_ready(const struct world *world, const struct lane_view *lane, instant since)
{
    struct error error;
    int64_t due = 0, unfailed = 0;
    for (int i = 0; i < world->job_count; i++) {
        const struct shadow *shadow = &world->jobs[i];
        struct arena memory;
        struct job job;
        if (shadow->dest != lane->dest || shadow->tenant != lane->tenant || shadow->state != STATE_PENDING || shadow->gone)
            continue;
        arena_init(&memory, SIZE_MAX / 4);
        bool is_due = world->eye->ops->reader_job_seq(world->eye, shadow->seq, false, &memory, &job, &error) == STATUS_OK &&
                      job.run_at <= world_now(world);
        bool failed = job.look_failed_at != INSTANT_NONE && job.look_failed_at >= since;
        due += is_due;
        unfailed += is_due && !failed;
        arena_release(&memory);
    }
    return due == lane->ready - lane->taken ? unfailed : -1; /* else some are not made ready yet, or taken by the next claim */
}

void check_failed_last(struct world *world, const struct op_claim *claim, const struct claim_out *out)
{
    const struct lane_view *lane = &world->lanes[out->lane];
    const struct destination_config *config = world_dest(world, lane->dest);
    struct destination_status status = engine_destination(world->engine, slice_from(dest_names[lane->dest]));
    instant since = status.outage_since, decided = world_now(world) - (world->mono - out->decided_mono);
    /* Claims for the second address, and those ahead of a free slot, go by rank. */
    if (!config || since == INSTANT_NONE || since >= decided || config->fallback_url || config->policy.in_doubt == DOUBT_RESEND ||
        world->clock_jumped_mono > out->decided_mono - MINUTE_MS || world->changed_mono > out->decided_mono - MINUTE_MS)
        return;
    for (size_t i = 0; i < claim->ret_count; i++) {
        instant failed_at = world_job(world, claim->ret_jobs[i].id)->look_failed_at;
        if (failed_at >= since && unfailed_ready(world, lane, since) > 0)
            violated(world, INVARIANT_RAMP, "%.*s failed in this outage of %s, and goes before others of t%d that did not",
                     SLICE_ARG(claim->ret_jobs[i].id), config->name, lane->tenant);
    }
}

/* ---- the breaker ---- */

/*
 * The window moves on with what is counted, not with the clock: after a pause and a clock that is put back by as much, what failed before
 * is as near as it was. A clock that is put back by a whole window has it counted anew.
 */
static void move_window(struct world *world, struct dest_view *view, int64_t window_ms)
{
    instant now = world_now(world);
    if (view->counted_top - now >= window_ms)
        view->counted_mono = world->mono;
    if (now > view->counted_top || view->counted_top - now >= window_ms)
        view->counted_top = now;
}

/* How an answer counts at the first address. */
void outage_answered(struct world *world, const struct flight *flight, enum outcome outcome)
{
    struct shadow *shadow = flight->shadow;
    const struct destination_config *config = flight->send->destination;
    bool question = flight->send->job->step != STEP_SEND, slow = config->breaker.slow_ms > 0 &&
                    flight->answer.duration_ms >= config->breaker.slow_ms;
    if (flight->send->use_fallback || !flight->answer.attempted || outcome == OUTCOME_BLOCKED)
        return;
    struct dest_view *view = &world->dests[shadow->dest];
    if (view->closed)
        move_window(world, view, config->breaker.window_ms);
    shadow->answered_mono = world->mono;
    shadow->answered_claim_mono = shadow->claim_mono;
    shadow->answered_top = world_now(world) > view->counted_top ? world_now(world) : view->counted_top;
    shadow->answered_bad = slow || (question ? flight->answer.query == QUERY_UNCLEAR
                                             : criterion_of(outcome, flight->answer.code) != CRITERION_NONE);
}

/* Each job counts once. Counted are at least those of `sure_ms` that were claimed since it closed, at most those of `most_ms`. */
static void check_opened(struct world *world, int dest, const struct breaker_config *config, int64_t closed_mono)
{
    int64_t sure_ms = config->window_ms - config->window_ms / TALLY_BUCKETS - world->late_ms;
    int64_t most_ms = config->window_ms + world->late_ms + 1;
    const struct dest_view *view = &world->dests[dest];
    int64_t calls = 0, bad = 0, tenants = 0, tenants_bad = 0;
    double rate = config->slow_ms > 0 && config->slow_rate < config->failure_rate ? config->slow_rate : config->failure_rate;
    bool called[TENANTS_MAX + 1] = { false }, failed[TENANTS_MAX + 1] = { false }; /* the last is the daemon's own */
    for (int i = 0; i < world->job_count; i++) {
        const struct shadow *shadow = &world->jobs[i];
        int64_t ago = world->mono - shadow->answered_mono;
        int tenant = shadow->tenant >= 0 && shadow->tenant < TENANTS_MAX ? shadow->tenant : TENANTS_MAX;
        if (shadow->dest != dest || shadow->answered_mono == 0)
            continue;
        bool counts = ago < sure_ms && shadow->answered_claim_mono > closed_mono;
        bool fails = shadow->answered_bad && shadow->answered_mono >= view->counted_mono &&
                     view->counted_top - shadow->answered_top <= most_ms;
        calls += counts;
        bad += fails;
        called[tenant] = called[tenant] || counts;
        failed[tenant] = failed[tenant] || fails;
    }
    for (int i = 0; i <= TENANTS_MAX; i++) {
        tenants += called[i];
        tenants_bad += failed[i];
    }
    seen(world, FEATURE_OPENED);
    if (bad < 3 || 2 * tenants_bad <= tenants || (double)bad < rate * (double)calls - 1e-9)
        violated(world, INVARIANT_LIMITS, "the breaker of %s opens with %" PRId64 " jobs of %" PRId64 ", %" PRId64 " tenants of %" PRId64,
                 dest_names[dest], bad, calls, tenants_bad, tenants);
}

/* Workers had it meanwhile, whose words count as well, and are not known here. */
static bool was_pulled(const struct world *world, int dest, int64_t since_mono)
{
    for (size_t i = world->period_count; i > 0 && i + PERIODS_KEPT > world->period_count; i--) {
        const struct period *period = &world->periods[(i - 1) % PERIODS_KEPT];
        const struct destination_config *config = world->rules[period->config][dest].config;
        if (config && config->transport == TRANSPORT_PULL)
            return true;
        if (period->since_mono <= since_mono)
            return false;
    }
    return false;
}

/* As the status has it, which costs more to ask for at every step. */
static bool is_normal(const struct world *world, const struct dest *dest)
{
    if (block_holds(&dest->gate.block))
        return strcmp(engine_destination(world->engine, slice_from(dest->name)).mode, "normal") == 0;
    return !dest->gate.paused && dest->gate.contingency.saved.mode == MODE_NORMAL;
}

void check_breakers(struct world *world)
{
    for (int dest = 0; dest < DESTS; dest++) {
        const struct destination_config *config = world_dest(world, dest);
        struct dest_view *view = &world->dests[dest];
        if (!config || !config->breaker.enabled) { /* what comes with the next configuration is counted from there on */
            view->closed = false;
            continue;
        }
        const struct dest *stands = dest_find(world->engine, slice_from(dest_names[dest]));
        /* On a way back nothing is counted, and the mode begins the count anew. */
        bool closed = stands && stands->gate.breaker.saved.state == BREAKER_CLOSED && is_normal(world, stands);
        bool opened = stands && stands->gate.breaker.saved.state == BREAKER_OPEN;
        bool known = view->closed_mono > world->changed_mono && view->closed_mono > world->clock_jumped_mono;
        if (opened && view->closed && known && !was_pulled(world, dest, world->mono - config->breaker.window_ms - world->late_ms))
            check_opened(world, dest, &config->breaker, view->closed_mono);
        if (closed && (!view->closed || !known)) /* counted from here on */
            view->closed_mono = world->mono;
        view->closed = closed;
    }
}
