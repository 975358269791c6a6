/*
 * The invariants that the store's transactions and events show: 1, 2, 3, 5, 9, and what an answer must lead to (4).
 */
#include "world.h"

#include "engine/loop.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAGE = 200, ENGINE_BYTES_MAX = 1 << 20, FULL_GRACE_MS = 60 * SECOND_MS, UNKNOWN_GRACE_MS = 30 * SECOND_MS };

static const char secret[] = "s3cr3t", person[] = "529.982.247"; /* longer than what a time may look like */

/* ---- 2: one state, and every change an event ---- */

/* What brings an event of that kind about; EVENT_COUNT: it changes no state. */
static enum job_event cause_of(enum event_type type)
{
    switch (type) {
    case EVENT_TYPE_CLAIMED:
        return EVENT_CLAIM;
    case EVENT_TYPE_COMPLETED:
        return EVENT_DELIVER;
    case EVENT_TYPE_RETRY_SCHEDULED:
        return EVENT_RETRY;
    case EVENT_TYPE_RELEASED:
        return EVENT_RELEASE;
    case EVENT_TYPE_DEAD:
        return EVENT_GIVE_UP;
    case EVENT_TYPE_EXPIRED:
        return EVENT_EXPIRE;
    case EVENT_TYPE_CANCELLED:
        return EVENT_CANCEL;
    case EVENT_TYPE_REDRIVEN:
        return EVENT_REDRIVE;
    default:
        return EVENT_COUNT;
    }
}

static bool is_open(enum job_state state)
{
    return state == STATE_PENDING || state == STATE_RUNNING || state == STATE_WAITING;
}

static void new_generation(struct shadow *shadow)
{
    shadow->may_complete = false;
    shadow->delivered_epoch = shadow->refused_epoch = -1;
    shadow->retry_count = 0;
    shadow->look_failed_at = 0;
}

/* Invariant 5: a dead letter says what it died of. */
static void check_dead_letter(struct world *world, const struct event *event)
{
    struct arena memory = { 0 };
    struct job job;
    struct error error;
    if (world->eye->ops->reader_job(world->eye, event->tenant, event->job, false, &memory, &job, &error) != STATUS_OK)
        violated(world, INVARIANT_SILENCE, "the dead letter %.*s is not there: %s", SLICE_ARG(event->job), error.text);
    struct shadow *shadow = world_job(world, event->job);
    shadow->exhausted = slice_equal(job.dead_code, SLICE("MAX_RETRIES_EXCEEDED"));
    shadow->dead_mono = world->mono;
    if (job.state == STATE_DEAD && (job.last_error.len == 0 || job.dead_code.len == 0 || job.dead_at == INSTANT_NONE))
        violated(world, INVARIANT_SILENCE, "the dead letter %.*s has error '%.*s', code '%.*s', died at %" PRId64,
                 SLICE_ARG(event->job), SLICE_ARG(job.last_error), SLICE_ARG(job.dead_code), job.dead_at);
    if (job.state == STATE_DEAD && !slice_equal(job.dead_code, SLICE("EXPIRED")) && job.attempts_total == 0)
        violated(world, INVARIANT_SILENCE, "%.*s is dead of %.*s without an attempt", SLICE_ARG(event->job),
                 SLICE_ARG(job.dead_code));
    arena_release(&memory);
}

static int64_t lane_of(const struct world *world, const struct shadow *shadow)
{
    for (int lane = 1; lane <= world->lane_top; lane++)
        if (world->lanes[lane].dest == shadow->dest && world->lanes[lane].tenant == shadow->tenant)
            return lane;
    return 0;
}

static void check_event_state(struct world *world, struct shadow *shadow, const struct event *event)
{
    enum job_event cause = cause_of(event->type);
    enum job_state after = shadow->state;
    if (event->type == EVENT_TYPE_ACCEPTED && shadow->state == STATE_NONE)
        after = STATE_PENDING;
    else if (cause != EVENT_COUNT)
        after = job_state_after(shadow->state, cause);
    if (after == STATE_NONE || after != event->state)
        violated(world, INVARIANT_STATE, "%.*s was %s, then came %s and it is %s", SLICE_ARG(event->job),
                 job_state_name(shadow->state), event_type_name(event->type), job_state_name(event->state));
    if (event->previous != shadow->last_event)
        violated(world, INVARIANT_STATE, "event %" PRId64 " of %.*s follows %" PRId64 ", not %" PRId64, event->number,
                 SLICE_ARG(event->job), event->previous, shadow->last_event);
    if (shadow->gone)
        violated(world, INVARIANT_STATE, "%.*s was deleted, then came %s", SLICE_ARG(event->job), event_type_name(event->type));
    world->open += is_open(after) - is_open(shadow->state);
    if (shadow->state == STATE_DEAD && event->type == EVENT_TYPE_REDRIVEN)
        new_generation(shadow);
    world->lanes[lane_of(world, shadow)].running += (after == STATE_RUNNING) - (shadow->state == STATE_RUNNING);
    shadow->state = after;
    shadow->last_event = event->number;
}

static void check_job_event(struct world *world, const struct event *event)
{
    struct shadow *shadow = world_job(world, event->job);
    check_event_state(world, shadow, event);
    switch (event->type) {
    case EVENT_TYPE_COMPLETED:
        if (!shadow->may_complete)
            violated(world, INVARIANT_STATE, "%.*s is complete, but nobody said so", SLICE_ARG(event->job));
        break;
    case EVENT_TYPE_DEAD:
    case EVENT_TYPE_EXPIRED:
        check_dead_letter(world, event);
        break;
    case EVENT_TYPE_DEAD_EXPIRED:
    case EVENT_TYPE_PURGED:
        if (shadow->state != STATE_DEAD)
            violated(world, INVARIANT_SILENCE, "%.*s was deleted while it was %s", SLICE_ARG(event->job),
                     job_state_name(shadow->state));
        shadow->gone = true;
        break;
    default:
        break;
    }
}

static void check_event(struct world *world, const struct event *event)
{
    struct event again = *event;
    event_chain(world->event_hash, &again);
    if (event->number != world->event_number + 1)
        violated(world, INVARIANT_STATE, "event %" PRId64 " is missing", world->event_number + 1);
    if (memcmp(again.hash, event->hash, sizeof again.hash) != 0)
        violated(world, INVARIANT_STATE, "the chain of events breaks at %" PRId64, event->number);
    if (memmem(event->data.data, event->data.len, secret, sizeof secret - 1) ||
        memmem(event->data.data, event->data.len, person, sizeof person - 1))
        violated(world, INVARIANT_SECRETS, "in the trail: %.*s", SLICE_ARG(event->data));
    world->event_number = event->number;
    memcpy(world->event_hash, event->hash, sizeof world->event_hash);
    world->figures->events++;
    if (event->job.len > 0)
        check_job_event(world, event);
}

static void read_events(struct world *world)
{
    size_t count;
    do {
        struct arena memory = { 0 };
        struct event *events;
        struct error error;
        assert_int_equal(world->eye->ops->reader_events(world->eye, world->event_number, PAGE, &memory, &events, &count, &error),
                         STATUS_OK);
        for (size_t i = 0; i < count; i++)
            check_event(world, &events[i]);
        arena_release(&memory);
    } while (count == PAGE);
}

/* ---- 1, 3, 4: what was applied ---- */

/* A lane went with its last job; the tenant's next job made it anew, with another number. */
static void forget_number(struct world *world, int64_t lane, const struct shadow *shadow)
{
    int64_t old = lane_of(world, shadow);
    if (old == 0 || old == lane)
        return;
    world->lanes[lane].running = world->lanes[old].running;
    world->lanes[old].running = world->lanes[old].unsent = 0;
    world->lanes[old].dest = -1;
}

static void check_inserted(struct world *world, const struct op_insert *insert)
{
    struct shadow *shadow = world_job(world, insert->id);
    if (insert->ret_existed)
        return;
    if (shadow->state == STATE_NONE) /* one that tells of an alert may be claimed in the same transaction */
        violated(world, INVARIANT_DURABLE, "%.*s was acknowledged, but no event says so", SLICE_ARG(insert->id));
    assert_true(insert->ret_seq > 0 && insert->ret_seq < (int64_t)COUNT_OF(world->job_of_seq) && insert->ret_lane <= LANES_MAX);
    shadow->seq = insert->ret_seq;
    world->job_of_seq[insert->ret_seq] = (int)(shadow - world->jobs);
    if (world->lanes[insert->ret_lane].dest < 0) {
        world->ordered_mono = world->mono;
        forget_number(world, insert->ret_lane, shadow);
    }
    if (insert->ret_lane > world->lane_top)
        world->lane_top = (int)insert->ret_lane;
    world->lanes[insert->ret_lane].dest = shadow->dest;
    world->lanes[insert->ret_lane].tenant = shadow->tenant;
}

static void check_claimed(struct world *world, const struct op_claim *claim, const struct claim_out *out)
{
    for (size_t i = 0; i < claim->ret_count; i++) {
        const struct job *job = &claim->ret_jobs[i];
        struct shadow *shadow = world_job(world, job->id);
        if (shadow->state != STATE_RUNNING || job->lease_token <= shadow->token)
            violated(world, INVARIANT_LEASE, "%.*s is %s after its claim, token %" PRId64 " after %" PRId64, SLICE_ARG(job->id),
                     job_state_name(shadow->state), job->lease_token, shadow->token);
        shadow->token = job->lease_token;
        shadow->lease_until_mono = out->lease_until_mono;
        shadow->claim_mono = out->mono;
        shadow->decided_mono = out->decided_mono;
        shadow->decided_limit = out->limit;
        shadow->claim_epoch = claim->owner.len == 0 ? world->epoch : -1;
        shadow->expected.set = false;
        world->lanes[out->lane].taken++;
        if (claim->owner.len == 0)
            turns_claimed(world, shadow, out->lane);
    }
}

static void check_waits(struct world *world, const struct shadow *shadow, const struct op_settle *settle, bool spent)
{
    instant low = spent ? shadow->expected.run_low : INSTANT_MIN;
    instant high = spent ? shadow->expected.run_high : shadow->expected.latest;
    bool again = settle->event == EVENT_RETRY || settle->event == EVENT_RELEASE;
    if (again && (settle->run_at < low || settle->run_at > high))
        violated(world, INVARIANT_ATTEMPTS, "job %d is to be tried %" PRId64 " ms after %" PRId64 " .. %" PRId64,
                 (int)(shadow - world->jobs), settle->run_at - low, (int64_t)0, high - low);
}

/* Invariant 4, of the answer that this settles. */
static void check_outcome(struct world *world, const struct shadow *shadow, const struct op_settle *settle)
{
    int number = (int)(shadow - world->jobs);
    bool again = settle->event == EVENT_RETRY || settle->event == EVENT_RELEASE;
    bool spent = settle->retry_count > shadow->expected.retry_count;
    if (shadow->expected.refused && again)
        violated(world, INVARIANT_ATTEMPTS, "job %d was refused for good and is to be tried again", number);
    if (shadow->expected.delivered && settle->event != EVENT_DELIVER)
        violated(world, INVARIANT_ATTEMPTS, "job %d was delivered and is not complete", number);
    if (shadow->expected.unspent && spent)
        violated(world, INVARIANT_ATTEMPTS, "job %d lost a try while its destination was held", number);
    if (shadow->expected.spent && again && !spent && shadow->expected.retry_count < shadow->expected.retries_max)
        violated(world, INVARIANT_ATTEMPTS, "job %d of %s failed and lost no try: event %d, outcome %d, step %d, %" PRId64 " of %" PRId64,
                 number, dest_names[shadow->dest], settle->event, settle->outcome, settle->step, settle->retry_count,
                 shadow->expected.retries_max);
    if (spent && (settle->retry_count != shadow->expected.retry_count + 1 || settle->retry_count > shadow->expected.retries_max))
        violated(world, INVARIANT_ATTEMPTS, "job %d has %" PRId64 " retries, had %" PRId64 ", at most %" PRId64, number,
                 settle->retry_count, shadow->expected.retry_count, shadow->expected.retries_max);
    check_waits(world, shadow, settle, spent);
}

/* From here on it waits for the store, and no longer for its turn to be sent. */
void check_given_back(struct world *world, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct op_settle *settle = &batch->ops[i].settle;
        if (batch->ops[i].kind != OP_SETTLE)
            continue;
        struct shadow *shadow = &world->jobs[world->job_of_seq[settle->seq]];
        if (!shadow->unsent || settle->token != shadow->token)
            continue;
        seen(world, FEATURE_UNSENT);
        turns_unsent(world, shadow, lane_of(world, shadow));
    }
}

/* `before`: the last event before this transaction. */
static void check_settled(struct world *world, const struct store_op *op, int64_t before)
{
    const struct op_settle *settle = &op->settle;
    struct shadow *shadow = &world->jobs[world->job_of_seq[settle->seq]];
    bool current = settle->token == shadow->token;
    if (op->status == STATUS_OK && !current)
        violated(world, INVARIANT_LEASE, "job %d was settled with the stale token %" PRId64 ", it has %" PRId64,
                 (int)(shadow - world->jobs), settle->token, shadow->token);
    if (op->status != STATUS_OK && current && shadow->state == STATE_RUNNING)
        violated(world, INVARIANT_LEASE, "job %d has the token %" PRId64 ", but its settlement was refused",
                 (int)(shadow - world->jobs), settle->token);
    if (op->status != STATUS_OK)
        return;
    if (slice_equal(settle->code, SLICE("insist:interrupted")) && shadow->claim_epoch == world->epoch)
        violated(world, INVARIANT_ATTEMPTS, "job %d is taken for interrupted by the process that claimed it",
                 (int)(shadow - world->jobs));
    if (shadow->last_event <= before) /* it may have been claimed again in the same transaction, but its end was told */
        violated(world, INVARIANT_STATE, "job %d was settled as %s, but no event says so", (int)(shadow - world->jobs),
                 job_state_name(job_state_after(STATE_RUNNING, settle->event)));
    if (shadow->expected.set && shadow->expected.token == settle->token) {
        check_outcome(world, shadow, settle);
        if (shadow->expected.look_failed_at != 0)
            shadow->look_failed_at = shadow->expected.look_failed_at;
    }
    shadow->expected.set = false;
    shadow->retry_count = settle->retry_count;
}

/* The claims of a batch have left for the store; those of sabotage ask for another lane than was asked for. */
static void check_claim(struct world *world, const struct store_op *op, bool claims_only)
{
    struct claim_out out = turns_answered(world, &op->claim, op->status == STATUS_OK);
    if (op->status != STATUS_OK)
        return;
    check_claimed(world, &op->claim, &out);
    if (claims_only && op->claim.owner.len == 0)
        check_failed_last(world, &op->claim, &out);
    check_rates_claimed(world, &out, (int64_t)op->claim.ret_count);
}

void check_claims_refused(struct world *world, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->ops[i].kind == OP_CLAIM)
            turns_answered(world, &batch->ops[i].claim, false);
}

/* How often a job goes back by itself, when, and which. */
static void check_redriven(struct world *world, const struct op_job *redrive)
{
    struct shadow *shadow = world_job(world, redrive->id);
    int64_t times = 0, after = INT64_MAX;
    for (int i = 0; i < CONFIGS; i++) { /* the request may be of the configuration before */
        const struct destination_config *config = world->rules[i][shadow->dest].config;
        bool past = world->mono - world->changed_mono <= 4 * world->store_lag_ms;
        if (!config || config->dead.redrive_after_ms == 0 || (i != world->config && !past))
            continue;
        times = config->dead.redrive_times > times ? config->dead.redrive_times : times;
        after = config->dead.redrive_after_ms < after ? config->dead.redrive_after_ms : after;
    }
    seen(world, FEATURE_REDRIVE);
    if (world->sabotage == SABOTAGE_REDRIVE_OFTEN)
        times--;
    if (!shadow->was_dead)
        violated(world, INVARIANT_ATTEMPTS, "%.*s went back by itself and was not dead", SLICE_ARG(redrive->id));
    if (++shadow->redrives_auto > times)
        violated(world, INVARIANT_ATTEMPTS, "%.*s went back by itself %" PRId64 " times, %" PRId64 " are allowed",
                 SLICE_ARG(redrive->id), shadow->redrives_auto, times);
    if (!shadow->exhausted)
        violated(world, INVARIANT_ATTEMPTS, "%.*s went back by itself, although it did not die of its retries", SLICE_ARG(redrive->id));
    if (world->clock_jumped_mono < shadow->dead_mono && world->mono - shadow->dead_mono < after)
        violated(world, INVARIANT_ATTEMPTS, "%.*s went back by itself %" PRId64 " ms after its death, not %" PRId64,
                 SLICE_ARG(redrive->id), world->mono - shadow->dead_mono, after);
}

static void check_op(struct world *world, const struct store_op *op, int64_t before, bool claims_only)
{
    switch (op->kind) {
    case OP_INSERT:
        if (op->status == STATUS_OK)
            check_inserted(world, &op->insert);
        break;
    case OP_CLAIM:
        check_claim(world, op, claims_only);
        break;
    case OP_REDRIVE:
        if (op->status == STATUS_OK && op->job.automatic)
            check_redriven(world, &op->job);
        break;
    case OP_SETTLE:
        check_settled(world, op, before);
        break;
    default:
        break;
    }
}

/* Invariant 1: a lane that was forgotten is known again when it has work, as soon as the store can be read. */
static void look_for_unknown(struct world *world, int64_t lane)
{
    struct lane_view *view = &world->lanes[lane];
    bool unknown = view->ready > 0 && !lane_find(world->engine, lane);
    if (!unknown || view->unknown_mono < world->changed_mono || world->clock_jumped_mono > view->unknown_mono)
        view->unknown_mono = unknown ? world->mono : -1;
    int64_t since = view->unknown_mono > world->unread_until_mono ? view->unknown_mono : world->unread_until_mono;
    int64_t grace = UNKNOWN_GRACE_MS + 3 * (world->late_ms + world->store_lag_ms + world->read_lag_ms);
    if (unknown && world->sabotage != SABOTAGE_UNFAIR && world->mono - since > grace)
        violated(world, INVARIANT_DURABLE, "t%d at %s has ready jobs, and the engine has forgotten it for %" PRId64 " ms",
                 view->tenant, dest_names[view->dest], world->mono - since);
}

/* A start finds those that have jobs: which of the others it has met since is the engine's word. */
int64_t dest_tenants(const struct world *world, int dest)
{
    const struct dest *known = world->engine ? dest_find(world->engine, slice_from(dest_names[dest])) : NULL;
    int64_t ever = 0, now = 0;
    for (int lane = 1; lane <= world->lane_top; lane++) {
        const struct lane_view *view = &world->lanes[lane];
        bool is_tenant = view->dest == dest && view->tenant != TENANT_NOTIFY;
        ever += is_tenant;
        now += is_tenant && (view->ready > 0 || view->dead > 0);
    }
    int64_t tenants = known ? known->queue.tenants : ever;
    return tenants < now ? now : tenants > ever ? ever : tenants;
}

/* How many dead letters a tenant may have: half of all, unless it is alone or somebody has set it. 0: any number. */
static int64_t tenant_dead_max(const struct world *world, int dest)
{
    const struct destination_config *config = world_dest(world, dest);
    if (!config || config->dead.max_per_tenant > 0)
        return config ? config->dead.max_per_tenant : 0;
    return config->dead.max > 1 && dest_tenants(world, dest) > 1 ? config->dead.max / 2 : config->dead.max;
}

static bool has_its_dead(const struct world *world, const struct lane_view *view)
{
    int64_t max = view->dest < 0 ? 0 : tenant_dead_max(world, view->dest);
    return max > 0 && view->dead >= max;
}

/* Those that are on their way to the store count, too; that there are such is the engine's word. */
bool tenant_dead_full(const struct world *world, int lane)
{
    const struct lane_state *known = lane_find(world->engine, lane);
    return has_its_dead(world, &world->lanes[lane]) || (known && lane_dead_full(known));
}

bool dest_has_full_tenant(const struct world *world, int dest)
{
    for (int lane = 1; lane <= world->lane_top; lane++)
        if (world->lanes[lane].dest == dest && has_its_dead(world, &world->lanes[lane]))
            return true;
    return false;
}

static void note_full(const struct world *world, bool full, int64_t *full_mono)
{
    if (!full)
        *full_mono = -1;
    else if (*full_mono < 0)
        *full_mono = world->mono;
}

static void look_at_lanes(struct world *world)
{
    struct arena memory = { 0 };
    struct lane *lanes;
    size_t count;
    struct error error;
    assert_int_equal(world->eye->ops->reader_lanes(world->eye, 0, PAGE, &memory, &lanes, &count, &error), STATUS_OK);
    assert_true(count <= LANES_MAX);
    int64_t dead[DESTS] = { 0 };
    for (int lane = 1; lane <= world->lane_top; lane++)
        world->lanes[lane].dead = 0; /* a lane that has nothing left is not there any more */
    for (size_t i = 0; i < count; i++) {
        turns_ready(world, lanes[i].id, lanes[i].counts.ready);
        look_for_unknown(world, lanes[i].id);
        dead[dest_number(lanes[i].destination)] += lanes[i].counts.dead;
        world->lanes[lanes[i].id].dead = lanes[i].counts.dead;
    }
    for (int lane = 1; lane <= world->lane_top; lane++)
        note_full(world, has_its_dead(world, &world->lanes[lane]), &world->lanes[lane].full_mono);
    for (int dest = 0; dest < DESTS; dest++) {
        const struct destination_config *config = world_dest(world, dest);
        note_full(world, config && config->dead.max > 0 && dead[dest] >= config->dead.max, &world->dests[dest].full_mono);
    }
    arena_release(&memory);
}

/* Invariant 5: where the dead letters are full, nothing more is sent that could become one. */
static void check_room_for_dead(struct world *world, const struct op_claim *claim)
{
    const struct lane_view *view = &world->lanes[claim->lane <= LANES_MAX ? claim->lane : 0];
    int64_t grace = FULL_GRACE_MS + 3 * (world->late_ms + world->store_lag_ms);
    int64_t all = view->dest < 0 ? -1 : world->dests[view->dest].full_mono;
    int64_t full = all >= 0 ? all : view->dest < 0 ? -1 : view->full_mono;
    if (full >= 0 && world->mono - full > grace && full >= world->changed_mono)
        violated(world, INVARIANT_SILENCE, "%s is full of dead letters%s for %" PRId64 " ms, and its jobs are claimed",
                 dest_names[view->dest], all >= 0 ? "" : " of one tenant", world->mono - full);
}

static void note_dead(struct world *world, const struct op_job *redrive)
{
    struct shadow *shadow = world_job(world, redrive->id);
    shadow->was_dead = shadow->state == STATE_DEAD && !shadow->gone;
}

static void note_insert(struct world *world, const struct store_op *op)
{
    alerts_before_apply(world, op);
    int64_t lane = lane_of(world, world_job(world, op->insert.id));
    if (lane > 0 && !lane_find(world->engine, lane))
        seen(world, FEATURE_RECALLED);
}

void check_before_apply(struct world *world, const struct store_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ops[i].kind == OP_CLAIM)
            check_room_for_dead(world, &ops[i].claim);
        else if (ops[i].kind == OP_INSERT)
            note_insert(world, &ops[i]);
        else if (ops[i].kind == OP_REDRIVE && ops[i].job.automatic)
            note_dead(world, &ops[i].job);
}

void check_applied(struct world *world, const struct store_op *ops, size_t count)
{
    if (count == 1 && ops[0].kind == OP_ORPHANS)
        return; /* changes nothing */
    int64_t before = world->event_number;
    read_events(world);
    for (size_t i = 0; i < count; i++)
        check_op(world, &ops[i], before, outage_claims_only(ops, count));
    alerts_applied(world, ops, count);
    look_at_lanes(world);
    turns_look(world);
}

/* ---- 1, 2: everything that was acknowledged is there ---- */

/* What there is of each lane, counted from its jobs. */
struct recount {
    bool seen[JOBS_NARROW + NOTES_MAX];
    int64_t states[LANES_MAX + 1][STATE_COUNT];
};

static void check_counts(struct world *world, const struct recount *recount)
{
    struct arena memory = { 0 };
    struct lane *lanes;
    size_t count;
    struct error error;
    assert_int_equal(world->eye->ops->reader_lanes(world->eye, 0, PAGE, &memory, &lanes, &count, &error), STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        const struct lane_counts *reported = &lanes[i].counts;
        const int64_t *states = recount->states[lanes[i].id];
        if (reported->pending != states[STATE_PENDING] || reported->running != states[STATE_RUNNING] ||
            reported->waiting != states[STATE_WAITING] || reported->dead != states[STATE_DEAD] ||
            reported->ready > reported->pending + reported->waiting)
            violated(world, INVARIANT_STATE, "lane %" PRId64 " counts %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                     ", its jobs are %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, lanes[i].id, reported->pending, reported->running,
                     reported->waiting, reported->dead, states[STATE_PENDING], states[STATE_RUNNING], states[STATE_WAITING],
                     states[STATE_DEAD]);
    }
    arena_release(&memory);
}

static void check_stored_job(struct world *world, const struct job *job, struct recount *recount)
{
    const struct shadow *shadow = world_job(world, job->id);
    recount->seen[shadow - world->jobs] = true;
    recount->states[job->lane][job->state]++;
    if (job->state != shadow->state || job->last_event != shadow->last_event)
        violated(world, INVARIANT_STATE, "%.*s is %s with event %" PRId64 ", its events say %s and %" PRId64, SLICE_ARG(job->id),
                 job_state_name(job->state), job->last_event, job_state_name(shadow->state), shadow->last_event);
    if (job->state == STATE_RUNNING && job->lease_token != shadow->token)
        violated(world, INVARIANT_LEASE, "%.*s runs under another lease than was given", SLICE_ARG(job->id));
}

/* Deleted without a word may be only what has ended well long ago. */
static void check_missing(struct world *world, const bool *seen)
{
    for (int i = 0; i < world->job_count; i++) {
        const struct shadow *shadow = &world->jobs[i];
        bool forgotten = shadow->state == STATE_COMPLETED || shadow->state == STATE_CANCELLED;
        if (seen[i] || shadow->gone || forgotten)
            continue;
        if (shadow->acknowledged || shadow->state != STATE_NONE)
            violated(world, INVARIANT_DURABLE, "job %d was acknowledged, was %s, and is not there any more", i,
                     job_state_name(shadow->state));
    }
}

void check_jobs(struct world *world)
{
    struct job_filter filter = { 0 };
    struct recount recount = { 0 };
    do {
        struct arena memory = { 0 };
        struct job *jobs;
        struct error error;
        size_t count;
        assert_int_equal(world->eye->ops->reader_jobs(world->eye, &filter, PAGE, false, &memory, &jobs, &count,
                                                      &filter.before_seq, &error), STATUS_OK);
        for (size_t i = 0; i < count; i++)
            check_stored_job(world, &jobs[i], &recount);
        arena_release(&memory);
    } while (filter.before_seq > 0);
    check_missing(world, recount.seen);
    check_counts(world, &recount);
}

/* ---- 6, 9 ---- */

void check_engine_memory(struct world *world, size_t bytes)
{
    if (bytes > ENGINE_BYTES_MAX)
        violated(world, INVARIANT_MEMORY, "the engine had %zu bytes with nothing under way, %d jobs open", bytes, world->open);
}

void check_log(struct world *world)
{
    char *text;
    FILE *log = fdopen(world->log_fd, "r");
    assert_non_null(log);
    fseek(log, 0, SEEK_END);
    long len = ftell(log);
    rewind(log);
    text = malloc((size_t)len + 1);
    assert_non_null(text);
    size_t got = fread(text, 1, (size_t)len, log);
    const char *found = memmem(text, got, secret, sizeof secret - 1);
    if (!found)
        found = memmem(text, got, person, sizeof person - 1);
    if (found)
        violated(world, INVARIANT_SECRETS, "in the log, near: %.*s", 60, found);
    free(text);
    fclose(log);
}
