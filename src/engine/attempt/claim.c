/*
 * Claims: whose jobs are taken next, and through which gate. The store writes them down before anything is sent.
 */
#include "base/log.h"
#include "engine/attempt/leases.h"
#include "engine/loop.h"
#include "engine/outage/cycles.h"
#include "engine/outage/modes.h"
#include "engine/queues/looks.h"

#include <assert.h>
#include <stddef.h>

enum { CLAIM_BYTES_MAX = 16 << 20 }; /* of payloads, by one claim */

/* ---- what became of a claim ---- */

/* `count` jobs of a claim were not there after all. */
static void unclaimed(const struct claim *claim, int64_t count, instant now)
{
    assert(count >= 0);
    struct dest *dest = claim->lane->dest;
    shares_give_back(&dest->queue.shares, attempt_side(dest, claim->gate), &claim->lane->share, count, now);
    if (claim->by_turn)
        shares_note_by_turn(&dest->queue.shares, attempt_side(dest, claim->gate), -count);
    if (claim->gate)
        gate_give_back(claim->gate, claim->pass, count);
    if (!claim->pass.look)
        turns_returned(&dest->queue.turns, &claim->lane->turn, count);
}

static void take_claimed(const struct op_result *result, const struct claim *claim)
{
    struct engine *engine = result->engine;
    const struct store_op *op = result->op;
    assert(op->kind == OP_CLAIM && op->claim.ret_count <= op->claim.max);
    struct dest *dest = claim->lane->dest;
    instant now = engine_now(engine);
    unclaimed(claim, (int64_t)(op->claim.max - op->claim.ret_count), now);
    if (op->claim.ret_left > 0)
        lane_ready_add(engine, claim->lane, (int64_t)op->claim.ret_left);
    look_claimed(claim->lane, &op->claim);
    engine->figures.claimed += (int64_t)op->claim.ret_count;
    measures_claimed(dest, op->claim.ret_jobs, op->claim.ret_count, now);
    dest_cycle_selected(dest, claim->gate, claim->pass, op->claim.ret_jobs, op->claim.ret_count, now);
    for (size_t i = 0; i < op->claim.ret_count; i++) {
        struct batch_memory *memory = batch_memory_hold(result);
        struct attempt *attempt = memory ? attempt_new(engine, claim, &op->claim.ret_jobs[i]) : NULL;
        if (!attempt) {
            if (memory)
                batch_memory_leave(memory);
            if (claim->gate)
                gate_give_back(claim->gate, claim->pass, 1);
            shares_give_back(&dest->queue.shares, attempt_side(dest, claim->gate), &claim->lane->share, 1, now);
            if (claim->by_turn)
                shares_note_by_turn(&dest->queue.shares, attempt_side(dest, claim->gate), -1);
            dest_cycle_answered(dest, claim->gate, claim->pass, NULL, now);
            log_event(LOG_ERROR, "attempt_lost", FIELD_TEXT("job", op->claim.ret_jobs[i].id),
                      FIELD_CSTR("error", "no memory"));
            continue; /* its lease runs out and it is tried again */
        }
        attempt->claimed = memory;
        attempt_begin(attempt, claim, now);
    }
    if (!claim->gate)
        ahead_end_turn(claim->lane);
    ahead_send(engine, dest);
}

static void claim_done(const struct op_result *result)
{
    const struct claim *claim = result->context;
    int64_t count = (int64_t)result->op->claim.max;
    assert(result->op->kind == OP_CLAIM && result->op->claim.lane == claim->lane->id && count > 0);
    return_order_claimed(claim->lane, count);
    if (!claim->gate)
        claim->lane->dest->ahead.asked -= count;
    assert(claim->lane->dest->ahead.asked >= 0);
    if (result->applied) {
        take_claimed(result, claim);
        return;
    }
    unclaimed(claim, count, engine_now(result->engine));
    lane_ready_add(result->engine, claim->lane, count);
}

/* ---- whose jobs are claimed ---- */

/* NULL: the batch is full, or there is no memory. Else *ret_claim is what it is for, until it is back. */
static struct store_op *claim_add(struct engine *engine, const struct claim *claim, struct claim **ret_claim)
{
    struct store_op *op = claim->gate ? outgoing_add(engine, claim_done, NULL) : outgoing_gather(engine, claim_done, NULL);
    if (!op)
        return NULL;
    *ret_claim = outgoing_set_context(engine, claim, sizeof *claim);
    if (!*ret_claim) {
        outgoing_drop_last(engine);
        return NULL;
    }
    (*ret_claim)->put_back = engine->out.put_back;
    op->kind = OP_CLAIM;
    return op;
}

/*
 * Claims up to *room jobs, lane by lane in turn, for a gate or ahead of a free slot. `shared` is whose shares bound them.
 * False: the batch is full.
 */
static bool claim_in_turn(struct engine *engine, struct dest *dest, struct gate *gate, enum shares_side shared,
                          int64_t *room, instant now)
{
    int64_t turn_max;
    struct turn *turn;
    while (*room > 0) {
        bool by_turn = gate && dest_by_class(dest) && shares_by_turn(&dest->queue.shares, attempt_side(dest, gate));
        turn = by_turn ? dest_front_of_all(dest, &turn_max) : dest_front(engine, dest, &turn_max);
        if (!turn)
            break;
        turn_max = by_turn ? 1 : turn_max;
        if (!outgoing_has_room(engine, 1 + RATE_NOTES_MAX))
            return false;
        struct lane_state *lane = (struct lane_state *)((char *)turn - offsetof(struct lane_state, turn));
        int64_t max = lane_room(lane, shared, turn_max < *room ? turn_max : *room, now);
        if (max == 0)
            continue; /* it is parked or passed over: the next one is in front */
        struct claim *claim;
        struct store_op *op = claim_add(
            engine, &(struct claim){ .lane = lane, .gate = gate, .by_turn = by_turn, .at = now,
                                     .lane_looks = lane->hold.held }, &claim);
        if (!op)
            return false;
        if (by_turn)
            shares_note_by_turn(&dest->queue.shares, attempt_side(dest, gate), max);
        if (gate)
            claim->pass = gate_take(gate, max, now);
        else
            dest->ahead.asked += max;
        op->claim = (struct op_claim){
            .lane = lane->id,
            .max = (size_t)max,
            .bytes_max = CLAIM_BYTES_MAX,
            .lease_until = instant_add(now, dest->config->timeout_ms + LEASE_MARGIN_MS),
            .failed_last = gate ? lane_failed_last(lane, gate) : 0,
        };
        assert(lane->dest == dest && max <= *room);
        lane_take(lane, attempt_side(dest, gate), max, true, now);
        rates_claimed(engine, lane, now);
        *room -= max;
    }
    return true;
}

/* What nobody takes of a cycle's batch is lost: so whatever their shares leave over goes by turns alone. */
static bool claim_some(struct engine *engine, struct dest *dest, struct gate *gate, int64_t room, instant now)
{
    assert(room >= 0);
    enum shares_side side = attempt_side(dest, gate);
    int64_t slots = gate_slots(gate ? gate : &dest->gate);
    bool is_batch = gate && gate->rules->cycle_every_ms > 0 && gate->rules->cycle_batch == slots;
    if (room == 0)
        return true;
    dest_share_out(dest, side, gate ? slots : slots + ahead_worth(engine, dest), now);
    if (!claim_in_turn(engine, dest, gate, side, &room, now))
        return false;
    if (!is_batch)
        return true;
    dest_leave_over(dest);
    return claim_in_turn(engine, dest, gate, SIDE_COUNT, &room, now);
}

/* Likewise for jobs that are to see how the destination is. */
static bool claim_looks(struct engine *engine, struct dest *dest, struct gate *gate, int64_t room, instant now)
{
    struct lane_state *lane;
    for (; room > 0 && (lane = look_next(dest, gate, now)); room--) {
        struct store_op *op = NULL;
        struct claim *claim;
        if (outgoing_has_room(engine, 1 + RATE_NOTES_MAX))
            op = claim_add(engine, &(struct claim){ .lane = lane, .gate = gate, .at = now }, &claim);
        if (!op)
            return false;
        claim->pass = gate_take(gate, 1, now);
        assert(claim->pass.look && lane->dest == dest);
        op->claim = (struct op_claim){ .lane = lane->id, .bytes_max = CLAIM_BYTES_MAX,
                                       .lease_until = instant_add(now, dest->config->timeout_ms + LEASE_MARGIN_MS) };
        look_take(lane, gate, &op->claim, now);
        rates_claimed(engine, lane, now);
    }
    return true;
}

/* So that people can see since when nothing goes. */
static void hold_met(struct dest *dest, enum gate_hold hold, instant now)
{
    if (dest->queue.met.hold != hold)
        dest->queue.met.since = now;
    dest->queue.met.hold = hold;
}

static bool claim_through(struct engine *engine, struct dest *dest, struct gate *gate, instant now)
{
    assert(gate == &dest->gate || gate == &dest->fallback);
    struct gate_answer answer = dest_ask(gate, &dest->rate.limiter, now);
    if (gate == (dest_uses_fallback(dest) ? &dest->fallback : &dest->gate))
        hold_met(dest, answer.hold, now);
    if (gate == &dest->gate ? gate_looks(gate) : block_holds(&gate->block))
        return claim_looks(engine, dest, gate, answer.room, now);
    return claim_some(engine, dest, gate, answer.room, now);
}

/* In contingency only looks go to the first address, and all else to the second, where there is one. */
static bool claim_for(struct engine *engine, struct dest *dest, instant now)
{
    assert(dest->config && dest->own.stage == OWN_WHOLE && dest->config->transport != TRANSPORT_PULL);
    lanes_unpark_due(dest, now);
    return_order_begin(engine, dest);
    return claim_through(engine, dest, &dest->gate, now) &&
           (!dest_diverts(dest) || claim_through(engine, dest, &dest->fallback, now)) &&
           claim_some(engine, dest, NULL, ahead_room(engine, dest, now), now);
}

/* The batch is full. In the next one whoever has had something of it comes last, and who had nothing first. */
static void begin_next_with(struct engine *engine, struct dest *first)
{
    struct dest **link = &engine->dests.first, *end = first;
    if (!first || *link == first)
        return;
    while (*link != first)
        link = &(*link)->next;
    while (end->next)
        end = end->next;
    *link = NULL;
    end->next = engine->dests.first;
    engine->dests.first = first;
}

void dispatch_claims(struct engine *engine)
{
    instant now = engine_now(engine);
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next) {
        dest->workers.crowded = false;
        ahead_send(engine, dest);
    }
    if (engine->stopping || engine->recovery.recovering || engine_must_wait(engine))
        return;
    bool full = false;
    struct dest *next_first = NULL;
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next) {
        size_t before = outgoing_count(engine);
        if (!dest->config || dest->own.stage != OWN_WHOLE || dest_dead_full(dest))
            continue;
        if (dest->config->transport == TRANSPORT_PULL) { /* its claims go beside the batch */
            leases_serve(engine, dest);
        } else if (!full && !claim_for(engine, dest, now)) {
            full = true;
            next_first = outgoing_count(engine) > before ? dest->next : dest;
        }
    }
    begin_next_with(engine, next_first);
}
