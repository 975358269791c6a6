/*
 * Pull workers: they ask for jobs, wait for them when there are none, and hold leases.
 */
#include "engine/attempt/leases.h"
#include "engine/loop.h"
#include "engine/outage/modes.h"
#include "engine/queues/looks.h"

#include <assert.h>

enum {
    LEASE_CLAIMS_MAX = 256,
    BY_TURN_ONE_IN = 5, /* jobs of one call, whatever the class */
    LEASE_BYTES_MAX = 64 << 20, /* of payloads, in one answer; each claim gets its part, and at least one job */
    LEASE_BYTES_TIMES = 4,      /* a payload is taken for so much larger than they are of late, */
    LEASE_BYTES_LEAST = 4096,   /* and never for smaller */
    LEASES_AGAIN_MS = 5,        /* how soon it is looked whether there is room for another answer */
};

/* ---- memory ---- */

/* What an answer with so many jobs may hold: that much is counted for it, and no more is claimed. */
static int64_t answer_bytes_max(const struct dest *dest, int64_t jobs)
{
    assert(jobs >= 0);
    double each = LEASE_BYTES_TIMES * dest->workers.bytes;
    double all = (double)jobs * (each > LEASE_BYTES_LEAST ? each : LEASE_BYTES_LEAST);
    return dest->workers.bytes > 0 && all < LEASE_BYTES_MAX ? (int64_t)all : LEASE_BYTES_MAX;
}

/* Counted when it is asked for, not when it is written: many at once cannot take more than limits.body_budget. */
static bool answer_fits(const struct engine *engine, const struct dest *dest, const struct lease_request *request)
{
    int64_t jobs = (int64_t)request->max < dest->queue.ready ? (int64_t)request->max : dest->queue.ready;
    int64_t out = atomic_load(&engine->leases.bytes);
    return out == 0 || out + answer_bytes_max(dest, jobs) <= engine->config->body_budget_bytes;
}

static void answer_count(struct lease_request *request, int64_t bytes)
{
    atomic_fetch_add(&request->engine->leases.bytes, bytes - request->bytes);
    request->bytes = bytes;
    assert(request->bytes >= 0 && atomic_load(&request->engine->leases.bytes) >= 0);
}

/* They are claimed: now it is known how large they are. */
static void answer_claimed(struct dest *dest, struct lease_request *request, const struct batch *batch)
{
    int64_t bytes = 0, jobs = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const struct op_claim *claim = &batch->ops[i].claim;
        for (size_t k = 0; batch->ops[i].kind == OP_CLAIM && k < claim->ret_count; k++, jobs++)
            bytes += (int64_t)claim->ret_jobs[k].payload.len;
    }
    answer_count(request, bytes);
    double mean = jobs > 0 ? (double)bytes / (double)jobs + 1 : 0;
    if (jobs > 0)
        dest->workers.bytes += dest->workers.bytes > 0 ? (mean - dest->workers.bytes) / 8 : mean;
}

/* Puts the jobs of all claims side by side. */
static enum status gather(struct batch *batch, size_t total, const struct job **ret_jobs)
{
    struct job *jobs = arena_alloc_array(&batch->memory, total + 1, sizeof *jobs);
    size_t at = 0;
    if (!jobs)
        return STATUS_NO_MEMORY; /* the leases run out and the jobs come back */
    for (size_t i = 0; i < batch->count; i++)
        for (size_t k = 0; batch->ops[i].kind == OP_CLAIM && k < batch->ops[i].claim.ret_count; k++)
            jobs[at++] = batch->ops[i].claim.ret_jobs[k];
    assert(at == total);
    *ret_jobs = jobs;
    return STATUS_OK;
}

static void wait_again(struct dest *dest, struct lease_request *request)
{
    assert(!*dest->workers.last);
    request->next = NULL;
    *dest->workers.last = request;
    dest->workers.last = &request->next;
}

/* ---- claims that came too late ---- */

/* What came about while the claim was on its way, so that nobody may have its jobs now; NULL: nothing. */
static const char *why_not_now(const struct lane_state *lane)
{
    const struct dest *dest = lane->dest;
    if (!dest->config)
        return "the destination is not configured";
    if (dest->config->transport != TRANSPORT_PULL)
        return "the destination is not for pull workers any more";
    if (dest->gate.paused)
        return "the destination is paused";
    if (dest->own.stage == OWN_LOSING)
        return "another node has the destination from now on";
    return lane_held_by_hand(lane) ? "the tenant is paused" : NULL;
}

/* When it failed the leases run out, and the jobs come back then. */
static void on_returned(struct batch *batch)
{
    struct engine *engine = batch->context;
    assert(engine->out.batches > 0);
    engine->out.batches--;
    engine->recovery.promote_at = instant_earlier(engine->recovery.promote_at, instant_add(engine_now(engine), SECOND_MS));
    batch_free(batch);
    engine_wake(engine);
}

/* Gives what was claimed back untouched, and says that there was nothing. */
static void return_claimed(struct engine *engine, const struct lane_state *lane, struct op_claim *claim, const char *why)
{
    static const struct destination_config nowhere = { .policy.retry.cap_ms = MINUTE_MS };
    const struct answer answer = { .text = slice_from(why), .retry_after_ms = -1 };
    struct batch *batch = batch_new(claim->ret_count + 1, SIZE_MAX / 2);
    for (size_t i = 0; batch && i < claim->ret_count; i++) {
        const struct settlement_input input = {
            .destination = lane->dest->config ? lane->dest->config : &nowhere,
            .job = &claim->ret_jobs[i],
            .answer = &answer,
            .seed = engine->seed,
            .now = engine_now(engine),
        };
        struct settlement settlement;
        if (settlement_make(&input, &batch->memory, &batch->ops[batch->count], &settlement) == STATUS_OK)
            batch->count++; /* without memory its lease runs out */
    }
    claim->ret_count = 0;
    if (!batch || batch->count == 0) {
        batch_free(batch);
        return;
    }
    batch->context = engine;
    batch->done = on_returned;
    batch->reply_to = engine->mailbox;
    engine->out.batches++;
    engine->ports.submit(engine->ports.context, batch);
}

/* Takes the damaged ones out, which end as dead letters; they free their tenant's slots then. */
static int64_t keep_damaged(struct engine *engine, struct lane_state *lane, struct op_claim *claim)
{
    size_t saved = 0, freed = 0;
    for (size_t i = 0; i < claim->ret_count; i++) {
        if (!claim->ret_jobs[i].damaged)
            claim->ret_jobs[saved++] = claim->ret_jobs[i];
        else
            freed += lease_damaged(engine, lane, &claim->ret_jobs[i]); /* without memory its lease runs out */
    }
    claim->ret_count = saved;
    return (int64_t)freed;
}

/* ---- serving ---- */

/* How many jobs the claims got; what failed is ready again, and what may not be handed out any more is given back. */
static size_t count_claimed(struct engine *engine, struct batch *batch, bool look)
{
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct store_op *op = &batch->ops[i];
        if (op->kind != OP_CLAIM)
            continue;
        struct lane_state *lane = lane_find(engine, op->claim.lane);
        assert(lane && lane->claiming >= (int64_t)op->claim.max);
        int64_t freed = 0;
        return_order_claimed(lane, (int64_t)op->claim.max);
        if (batch->status != STATUS_OK || op->status != STATUS_OK) {
            op->claim.ret_count = 0;
            lane_ready_add(engine, lane, (int64_t)op->claim.max);
            lane->rate.saved = lane->dest->rate.saved = INSTANT_NONE; /* their notes failed with it */
        } else {
            if (op->claim.ret_left > 0)
                lane_ready_add(engine, lane, (int64_t)op->claim.ret_left);
            look_claimed(lane, &op->claim);
            if (op->claim.ret_count > 0 && why_not_now(lane))
                return_claimed(engine, lane, &op->claim, why_not_now(lane));
            freed = keep_damaged(engine, lane, &op->claim);
        }
        int64_t missing = (int64_t)(op->claim.max - op->claim.ret_count);
        if (!look)
            turns_returned(&lane->dest->queue.turns, &lane->turn, missing);
        shares_give_back(&lane->dest->queue.shares, SIDE_FIRST, &lane->share, missing - freed, engine_now(engine));
        count += op->claim.ret_count;
    }
    engine->figures.claimed += (int64_t)count;
    return count;
}

/* All of the request's claims went through the gate together. */
static void tell_gate(struct engine *engine, const struct lease_request *request, const struct batch *batch)
{
    struct dest *dest = dest_find(engine, request->destination);
    assert(dest);
    for (size_t i = 0; i < batch->count; i++) {
        const struct op_claim *claim = &batch->ops[i].claim;
        if (batch->ops[i].kind != OP_CLAIM)
            continue;
        leases_claimed(engine, dest, request->pass, claim->ret_jobs, claim->ret_count, claim->max - claim->ret_count);
    }
}

static void on_claimed(struct batch *batch)
{
    struct lease_request *request = batch->context;
    struct engine *engine = request->engine;
    struct dest *dest = dest_find(engine, request->destination);
    const struct job *jobs = NULL;
    assert(request->batch == NULL && engine->out.batches > 0);
    assert(dest && dest->workers.out > 0);
    dest->workers.out--;
    engine->out.batches--;
    size_t count = count_claimed(engine, batch, request->pass.look);
    answer_claimed(dest, request, batch);
    tell_gate(engine, request, batch);
    bool waits = dest->own.stage == OWN_WHOLE && engine_now(engine) < request->wait_until;
    if (batch->status == STATUS_OK && count == 0 && waits) {
        batch_free(batch);
        wait_again(dest, request);
        engine_wake(engine);
        return;
    }
    enum status status = batch->status == STATUS_OK ? gather(batch, count, &jobs) : batch->status;
    request->batch = batch;
    request->done(request, status, jobs, status == STATUS_OK ? count : 0);
}

/* What is being claimed for one request. */
struct claims {
    struct batch *batch;
    size_t count, max;
    int64_t wanted, taken; /* jobs */
};

/* From the lanes in turn, as far as their shares let them; SIDE_COUNT: whatever these are. */
static void claim_in_turn(struct engine *engine, struct dest *dest, const struct lease_request *request,
                          enum shares_side shared, struct claims *claims, instant now)
{
    int64_t turn_max;
    struct turn *turn;
    while (claims->wanted > 0 && claims->count < claims->max) {
        bool by_turn = dest_by_class(dest) && claims->taken % BY_TURN_ONE_IN == BY_TURN_ONE_IN - 1;
        turn = by_turn ? dest_front_of_all(dest, &turn_max) : dest_front(engine, dest, &turn_max);
        if (!turn)
            break;
        turn_max = by_turn ? 1 : turn_max;
        struct lane_state *lane = (struct lane_state *)((char *)turn - offsetof(struct lane_state, turn));
        int64_t max = lane_room(lane, shared, turn_max < claims->wanted ? turn_max : claims->wanted, now);
        if (max == 0)
            continue;
        assert(lane->dest == dest && max <= claims->wanted);
        struct store_op *op = &claims->batch->ops[claims->batch->count++];
        op->kind = OP_CLAIM;
        op->claim = (struct op_claim){ .lane = lane->id, .max = (size_t)max, .owner = request->worker,
                                       .lease_until = instant_add(now, request->lease_ms),
                                       .failed_last = lane_failed_last(lane, &dest->gate) };
        lane_take(lane, SIDE_FIRST, max, true, now);
        rates_leased(claims->batch, lane, now);
        claims->count++;
        claims->wanted -= max;
        claims->taken += max;
    }
}

/* To see how the destination is: one job of a lane at a time. */
static void claim_looks(struct dest *dest, const struct lease_request *request, struct claims *claims, instant now)
{
    struct lane_state *lane;
    while (claims->taken < claims->wanted && claims->count < claims->max &&
           (lane = look_next(dest, &dest->gate, now))) {
        struct store_op *op = &claims->batch->ops[claims->batch->count++];
        op->kind = OP_CLAIM;
        op->claim = (struct op_claim){ .lane = lane->id, .owner = request->worker,
                                       .lease_until = instant_add(now, request->lease_ms) };
        look_take(lane, &dest->gate, &op->claim, now);
        rates_leased(claims->batch, lane, now);
        claims->count++;
        claims->taken++;
    }
}

/*
 * Claims for one request, as far as the gate has room. The slots that are shared out are the leases that are out and what
 * is wanted now; then whatever is left goes, so that no worker goes away empty while there is work.
 */
static struct batch *claims_for(struct engine *engine, struct dest *dest, struct lease_request *request, int64_t room,
                                instant now)
{
    assert(room > 0);
    size_t claims_max = request->max < LEASE_CLAIMS_MAX ? request->max : LEASE_CLAIMS_MAX;
    struct claims claims = {
        .batch = batch_new((1 + RATE_NOTES_MAX) * claims_max, SIZE_MAX / 2),
        .max = claims_max,
        .wanted = (int64_t)request->max < room ? (int64_t)request->max : room,
    };
    struct batch *batch = claims.batch;
    if (!batch)
        return NULL;
    if (gate_looks(&dest->gate)) {
        claim_looks(dest, request, &claims, now);
    } else {
        dest_share_out(dest, SIDE_FIRST, dest->queue.shares.sides[SIDE_FIRST].held + claims.wanted, now);
        claim_in_turn(engine, dest, request, SIDE_FIRST, &claims, now);
        if (claims.wanted > 0) {
            dest_leave_over(dest);
            claim_in_turn(engine, dest, request, SIDE_COUNT, &claims, now);
        }
    }
    int64_t bytes_max = answer_bytes_max(dest, claims.taken);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->ops[i].kind == OP_CLAIM)
            batch->ops[i].claim.bytes_max = (size_t)(bytes_max * (int64_t)batch->ops[i].claim.max / claims.taken);
    if (claims.taken > 0)
        answer_count(request, bytes_max);
    if (claims.taken > 0)
        request->pass = gate_take(&dest->gate, claims.taken, now);
    return batch;
}

/* Whose turn it is; where nobody else has work, of those passed over: whatever their shares, no worker goes empty. */
static bool has_turn(struct engine *engine, struct dest *dest)
{
    int64_t turn_max;
    if (dest_front(engine, dest, &turn_max))
        return true;
    dest_leave_over(dest);
    return dest_front(engine, dest, &turn_max) != NULL;
}

void leases_serve(struct engine *engine, struct dest *dest)
{
    instant now = engine_now(engine);
    lanes_unpark_due(dest, now);
    return_order_begin(engine, dest);
    while (dest->workers.first && has_turn(engine, dest)) {
        struct lease_request *request = dest->workers.first;
        assert(request->engine == engine);
        int64_t room = dest_ask(&dest->gate, &dest->rate.limiter, now).room;
        dest->workers.crowded = room > 0 && !answer_fits(engine, dest, request);
        if (room == 0 || dest->workers.crowded)
            return;
        struct batch *batch = claims_for(engine, dest, request, room, now);
        if (!batch || batch->count == 0) {
            batch_free(batch); /* everybody with work is at the limit of a rate */
            return;
        }
        dest->workers.first = request->next;
        if (!dest->workers.first)
            dest->workers.last = &dest->workers.first;
        batch->context = request;
        batch->done = on_claimed;
        batch->reply_to = engine->mailbox;
        engine->out.batches++;
        dest->workers.out++;
        engine->ports.submit(engine->ports.context, batch);
    }
}

void engine_lease(struct engine *engine, struct lease_request *request)
{
    struct dest *dest = dest_find(engine, request->destination);
    request->engine = engine;
    if (!dest || !dest->config) {
        request->done(request, STATUS_NOT_FOUND, NULL, 0);
        return;
    }
    if (dest->own.stage != OWN_WHOLE) {
        request->done(request, STATUS_OK, NULL, 0);
        return;
    }
    wait_again(dest, request);
    engine_wake(engine);
}

static bool unlink_request(struct dest *dest, const struct lease_request *request)
{
    for (struct lease_request **link = &dest->workers.first; *link; link = &(*link)->next) {
        if (*link != request)
            continue;
        *link = request->next;
        dest->workers.last = &dest->workers.first;
        while (*dest->workers.last)
            dest->workers.last = &(*dest->workers.last)->next;
        return true;
    }
    return false;
}

void lease_release(struct lease_request *request)
{
    batch_free(request->batch);
    request->batch = NULL;
    if (request->bytes > 0)
        answer_count(request, 0);
}

/* Answers, empty, everybody whose time is up, or everybody. Who waits for memory only does not go away empty. */
static void end_waiting(struct dest *dest, instant now, bool all)
{
    for (struct lease_request *request = dest->workers.first, *next; request; request = next) {
        next = request->next;
        if (!all && (request->wait_until > now || dest->workers.crowded))
            continue;
        unlink_request(dest, request);
        request->done(request, STATUS_OK, NULL, 0);
    }
}

void leases_expire(struct engine *engine)
{
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next)
        end_waiting(dest, engine_now(engine), false);
}

void leases_end_of(struct engine *engine, struct dest *dest)
{
    end_waiting(dest, engine_now(engine), true);
}

void leases_end(struct engine *engine)
{
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next)
        leases_end_of(engine, dest);
}

instant leases_next(const struct engine *engine)
{
    instant next = INSTANT_NONE, again = instant_add(engine_now(engine), LEASES_AGAIN_MS);
    for (const struct dest *dest = engine->dests.first; dest; dest = dest->next)
        for (const struct lease_request *request = dest->workers.first; request; request = request->next)
            next = instant_earlier(next, dest->workers.crowded ? again : request->wait_until);
    return next;
}
