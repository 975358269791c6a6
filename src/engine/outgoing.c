/*
 * The engine's own operations: collected while a batch is at the writer, sent when it is back.
 * One batch at a time gives large transactions under load and no delay without.
 */
#include "base/log.h"
#include "engine/engine_private.h"
#include "engine/letters.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    OUTGOING_BYTES_MAX = 64 << 20,
    OUTGOING_OPS_FIRST = 8,
    GATHER_MS = 2,   /* that a batch nobody waits for is kept open, */
    GATHER_OPS = 64, /* unless it has so many */
};

void outgoing_free(struct outgoing *outgoing)
{
    if (!outgoing)
        return;
    batch_free(outgoing->batch);
    free(outgoing);
}

/*
 * Room for one more. Most batches have a few operations, and a claim's batch lives as long as its sends: it must not be
 * as large as the largest. The room is a power of two and doubles when it is used up.
 */
static bool outgoing_reserve(struct batch *batch)
{
    size_t count = batch->count;
    if (count < OUTGOING_OPS_FIRST || (count & (count - 1)) != 0)
        return true;
    struct store_op *ops = realloc(batch->ops, 2 * count * sizeof *ops);
    if (!ops)
        return false;
    memset(ops + count, 0, count * sizeof *ops);
    batch->ops = ops;
    return true;
}

struct store_op *outgoing_add(struct engine *engine, struct purpose purpose)
{
    struct outgoing *outgoing = engine->outgoing;
    if (!outgoing) {
        outgoing = malloc(sizeof *outgoing);
        if (!outgoing)
            return NULL;
        memset(outgoing, 0, offsetof(struct outgoing, purposes)); /* those are many, and set one by one */
        outgoing->batch = batch_new(OUTGOING_OPS_FIRST, OUTGOING_BYTES_MAX);
        if (!outgoing->batch) {
            free(outgoing);
            return NULL;
        }
        outgoing->engine = engine;
        outgoing->began_at = engine_now(engine);
        engine->outgoing = outgoing;
    }
    if (outgoing->batch->count == OUTGOING_OPS_MAX || !outgoing_reserve(outgoing->batch))
        return NULL;
    outgoing->purposes[outgoing->batch->count] = purpose;
    outgoing->urgent = outgoing->urgent || !(purpose.attempt || (purpose.lane && !purpose.gate));
    return &outgoing->batch->ops[outgoing->batch->count++];
}

struct purpose *outgoing_purpose(struct engine *engine)
{
    assert(engine->outgoing && engine->outgoing->batch->count > 0);
    return &engine->outgoing->purposes[engine->outgoing->batch->count - 1];
}

void outgoing_drop_last(struct engine *engine)
{
    struct batch *batch = engine->outgoing->batch;
    assert(batch->count > 0);
    batch->ops[--batch->count] = (struct store_op){ 0 };
}

bool outgoing_has_room(const struct engine *engine, size_t count)
{
    return !engine->outgoing || engine->outgoing->batch->count + count <= OUTGOING_OPS_MAX;
}

struct arena *outgoing_memory(struct engine *engine)
{
    assert(engine->outgoing);
    return &engine->outgoing->batch->memory;
}

static void claim_failed(struct engine *engine, const struct purpose *purpose, const struct store_op *op)
{
    struct lane_state *lane = purpose->lane;
    int64_t count = (int64_t)op->claim.max;
    dispatch_unclaimed(engine, purpose, count);
    lane_ready_add(engine, lane, count);
}

static void take_promoted(struct engine *engine, const struct op_promote *promote, instant now)
{
    for (size_t i = 0; i < promote->ret_ready_count; i++) {
        const struct lane_ready *told = &promote->ret_ready[i];
        struct lane_state *lane;
        if (lane_get(engine, told->lane, told->destination, told->tenant, &lane) != STATUS_OK)
            log_event(LOG_ERROR, "lane_lost", FIELD_INT("lane", told->lane), FIELD_CSTR("error", "no memory"));
        lane_told(engine, told->lane, told->count, told->dead); /* it need not be read: it is there */
    }
    for (size_t i = 0; promote->ret_expired_jobs && i < promote->ret_expired; i++)
        letters_job_expired(engine, &promote->ret_expired_jobs[i]);
    engine->expired += (int64_t)promote->ret_expired;
    alerts_jobs_expired(engine, (int64_t)promote->ret_expired);
    size_t done = promote->ret_promoted + promote->ret_expired + promote->ret_dead_deleted + promote->ret_forgotten;
    instant next = promote->ret_next_at;
    if (done >= PROMOTE_MAX)
        next = instant_add(now, PROMOTE_EVERY_MS); /* a backlog of overdue jobs is released bit by bit */
    /* Ends of retention and of dead letters are told to nobody: they are found by looking. */
    next = instant_earlier(next, instant_add(now, PROMOTE_AT_LEAST_MS));
    engine->promote_at = instant_earlier(engine->promote_at, next);
}

static void destination_done(struct engine *engine, const struct batch *batch, const struct store_op *op,
                             const struct purpose *purpose)
{
    struct error result = batch->error;
    if (batch->status == STATUS_OK && op->status == STATUS_OK)
        result.status = STATUS_OK;
    else if (batch->status == STATUS_OK)
        error_set(&result, op->status, "the store refused it: %s", status_name(op->status));
    dest_kept(engine, purpose, &result);
}

static void on_op_done(struct engine *engine, struct batch *batch, size_t index, const struct purpose *purpose,
                       struct claimed **claimed)
{
    struct store_op *op = &batch->ops[index];
    bool applied = batch->status == STATUS_OK && op->status == STATUS_OK;
    if (purpose->rate_kept && !applied && !engine->stopping) /* a stop does not wait for a store that refuses */
        *purpose->rate_kept = INSTANT_NONE;
    switch (op->kind) {
    case OP_SETTLE:
        attempt_settled(purpose->attempt, batch->status, op->status);
        break;
    case OP_CLAIM:
        return_order_claimed(purpose->lane, (int64_t)op->claim.max);
        if (!purpose->gate)
            purpose->lane->dest->ahead_asked -= (int64_t)op->claim.max;
        if (applied)
            dispatch_claimed(engine, purpose, batch, op, claimed);
        else
            claim_failed(engine, purpose, op);
        break;
    case OP_PROMOTE:
        engine->promoting = false;
        if (applied)
            take_promoted(engine, &op->promote, engine_now(engine));
        else
            engine->promote_at = instant_add(engine_now(engine), AGAIN_MS);
        break;
    case OP_TRIM:
        if (applied && op->trim.ret_deleted >= TRIM_MAX)
            engine->trim_at = instant_add(engine_now(engine), TRIM_AGAIN_MS);
        break;
    case OP_REDRIVE:
        auto_redrive_done(purpose->dest);
        break;
    case OP_DESTINATION:
        destination_done(engine, batch, op, purpose);
        break;
    case OP_KEEP:
        if (purpose->incident)
            incident_kept(engine, purpose->incident, applied);
        if (purpose->alert)
            alert_kept(engine, purpose->alert, applied);
        break;
    case OP_INSERT: /* of who is to be told; with the whole batch it is tried again */
        if (purpose->letter)
            letter_written(engine, purpose->letter, batch->status, op->status);
        else if (batch->status == STATUS_OK && !applied)
            log_event(LOG_ERROR, "notify_refused", FIELD_TEXT("job", op->insert.id),
                      FIELD_CSTR("status", status_name(op->status)));
        break;
    default:
        break;
    }
}

static void on_batch_done(struct batch *batch)
{
    struct outgoing *outgoing = batch->context;
    struct engine *engine = outgoing->engine;
    struct claimed *claimed = NULL; /* made by the first claimed job; it then owns the batch */
    engine->batches_out--;
    ahead_note_commit(engine, engine_now(engine) - outgoing->began_at);
    engine->not_before = batch->status == STATUS_OK ? INSTANT_NONE : instant_add(engine_now(engine), AGAIN_MS);
    if (batch->status != STATUS_OK)
        log_event(LOG_ERROR, "batch_failed", FIELD_CSTR("status", status_name(batch->status)),
                  FIELD_CSTR("error", batch->error.text), FIELD_INT("operations", (int64_t)batch->count));
    for (size_t i = 0; i < batch->count; i++)
        on_op_done(engine, batch, i, &outgoing->purposes[i], &claimed);
    if (claimed) {
        outgoing->batch = NULL;
        claimed_leave(claimed);
    }
    outgoing_free(outgoing);
    engine_wake(engine);
}

/*
 * While jobs wait for a slot, nothing waits for these to be written: a few more make one transaction of them, which costs
 * the processor hardly more than one of a few.
 */
static bool may_gather(struct engine *engine, const struct outgoing *outgoing)
{
    instant until = instant_add(outgoing->began_at, GATHER_MS);
    instant now = engine_now(engine);
    if (outgoing->urgent || engine->stopping || engine->ahead_count == 0 || outgoing->batch->count >= GATHER_OPS ||
        now >= until || now < outgoing->began_at)
        return false;
    engine->ports.wake_at(engine->ports.context, until);
    return true;
}

void outgoing_flush(struct engine *engine)
{
    struct outgoing *outgoing = engine->outgoing;
    if (!outgoing || outgoing->batch->count == 0 || engine->batches_out >= BATCHES_OUT_MAX || may_gather(engine, outgoing))
        return;
    engine->outgoing = NULL;
    engine->batches_out++;
    outgoing->batch->context = outgoing;
    outgoing->batch->done = on_batch_done;
    outgoing->batch->reply_to = engine->mailbox;
    engine->ports.submit(engine->ports.context, outgoing->batch);
}
