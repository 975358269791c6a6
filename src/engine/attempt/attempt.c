/*
 * A claimed job on its way: sent, answered, settled. claim.c is what comes before.
 */
#include "engine/attempt/attempt.h"

#include "base/log.h"
#include "core/errors/redact.h"
#include "engine/alerts/letters.h"
#include "engine/loop.h"
#include "engine/outage/cycles.h"
#include "engine/outage/modes.h"

#include <assert.h>
#include <stdlib.h>

enum {
    CLAIM_LATE_MS = 5000,          /* after which what a claim was given is asked for again */
    STOP_TRIES_MAX = 3,            /* of a settlement while stopping; then the next process finds the attempt in doubt */
    LOG_ERROR_BYTES_MAX = 256,
};

enum shares_side attempt_side(const struct dest *dest, const struct gate *gate)
{
    assert(!gate || gate == &dest->gate || gate == &dest->fallback);
    return !gate ? SIDE_AHEAD : gate == &dest->fallback ? SIDE_FALLBACK : SIDE_FIRST;
}

static void attempt_unlink(struct attempt *attempt)
{
    assert(*attempt->link == attempt);
    *attempt->link = attempt->next;
    if (attempt->next)
        attempt->next->link = attempt->link;
}

static void attempt_free(struct attempt *attempt)
{
    assert(!attempt->sending);
    if (attempt->dying) {
        attempt->dest->dead.dying--;
        attempt->lane->dead.dying--; /* which is not forgotten meanwhile */
        assert(attempt->dest->dead.dying >= 0 && attempt->lane->dead.dying >= 0);
    }
    attempt_unlink(attempt);
    config_unref(attempt->config);
    if (attempt->claimed)
        batch_memory_leave(attempt->claimed);
    arena_release(&attempt->memory);
    free(attempt);
}

static void attempt_link(struct engine *engine, struct attempt *attempt)
{
    attempt->next = engine->attempts.first;
    attempt->link = &engine->attempts.first;
    if (attempt->next)
        attempt->next->link = &attempt->next;
    engine->attempts.first = attempt;
    assert(*attempt->link == attempt);
}

static void queue_settlement(struct attempt *attempt)
{
    struct engine *engine = attempt->engine;
    assert(!attempt->sending && attempt->settle.kind == OP_SETTLE);
    bool first = !engine->attempts.unsettled;
    attempt->next_settle = NULL;
    *(first ? &engine->attempts.unsettled : &engine->attempts.unsettled_last->next_settle) = attempt;
    engine->attempts.unsettled_last = attempt;
    if (first) /* else the loop is woken already, or by the batch that it waits for */
        engine_wake(engine);
}

void log_outcome(const struct dest *dest, const struct job *job, const struct op_settle *settle,
                 const struct settlement *settlement)
{
    const struct decision *decision = &settlement->decision;
    bool done = decision->verdict == VERDICT_COMPLETE;
    bool bad = settlement->dead || settlement->blocks;
    bool odd = !decision->known; /* S1-018: retried for safety, and somebody should look */
    if (done && !log_writes(LOG_DEBUG))
        return;
    struct buffer error = buffer_up_to(LOG_ERROR_BYTES_MAX);
    redact(&error, settle->error, LOG_ERROR_BYTES_MAX);
    log_event(done ? LOG_DEBUG : bad ? LOG_ERROR : odd ? LOG_WARN : LOG_INFO,
              done                 ? "job_completed"
              : settlement->dead   ? "job_dead"
              : settlement->blocks ? "job_blocked"
                                   : "retry_scheduled",
              FIELD_TEXT("job", job->id), FIELD_TEXT("tenant", job->tenant), FIELD_CSTR("destination", dest->name),
              FIELD_TEXT("correlation_id", job->correlation_id), FIELD_CSTR("from", job_state_name(job->claimed_from)),
              FIELD_CSTR("to", job_state_name(job_state_after(STATE_RUNNING, settle->event))),
              FIELD_INT("attempt", job->attempts), FIELD_INT("retry_count", decision->retry_count),
              FIELD_CSTR("class", outcome_name(decision->outcome)),
              FIELD_CSTR("label", done ? "" : outcome_label(decision->outcome, decision->known)),
              FIELD_TEXT("code", settle->code), FIELD_TEXT("error", buffer_slice(&error)),
              FIELD_INT("delay_ms", decision->delay_ms), FIELD_INSTANT("next_at", decision->next_at));
    buffer_release(&error);
}

static void count_outcome(struct engine *engine, const struct settlement *settlement)
{
    struct engine_figures *figures = &engine->figures;
    switch (settlement->decision.verdict) {
    case VERDICT_COMPLETE:
        figures->delivered++;
        break;
    case VERDICT_HOLD:
    case VERDICT_BLOCK:
        figures->held++;
        break;
    default:
        figures->failed++;
        *(settlement->dead ? &figures->dead : &figures->retried) += 1;
        break;
    }
}

static void heed(struct engine *engine, struct lane_state *lane, struct dest *dest, struct gate *gate, const struct job *job,
                 const struct answer *answer, const struct settlement *settlement)
{
    assert(!gate || gate == &dest->gate || gate == &dest->fallback);
    bool first = gate != &dest->fallback;
    if (answer->slow_all && answer->retry_after_ms > 0 && dest->config)
        dest_asked(engine, dest, gate, job, answer->retry_after_ms);
    if (settlement->blocks)
        (first ? dest_refused : fallback_refused)(engine, dest, job, answer, settlement->unsent);
    else if (settlement->over && first)
        dest_let_in(engine, dest, lane);
    else if (settlement->over)
        fallback_let_in(engine, dest);
    if (settlement->dead)
        alerts_job_dead(engine, dest, job->tenant, slice_from(settlement->dead_code));
}

void dest_settled(struct engine *engine, struct dest *dest, struct lane_state *lane, const struct job *job,
                  const struct answer *answer, const struct settlement *settlement)
{
    count_outcome(engine, settlement);
    heed(engine, lane, dest, &dest->gate, job, answer, settlement);
}

/* What the answer says about the destination; a question that was answered says that it is there. */
static struct gate_result result_of(const struct attempt *attempt, const struct answer *answer,
                                    const struct settlement *settlement)
{
    assert(attempt->gate);
    enum outcome outcome = settlement->decision.outcome;
    if (attempt->job.step != STEP_SEND)
        outcome = answer->query == QUERY_UNCLEAR ? OUTCOME_IN_DOUBT : OUTCOME_DELIVERED;
    return (struct gate_result){ .sent = answer->attempted, .outcome = outcome, .code = answer->code,
                                 .latency_ms = answer->duration_ms,
                                 .asked = answer->slow_all && answer->retry_after_ms > 0, .job = attempt->job.seq,
                                 .tenant = attempt->job.lane, .look_failed_at = attempt->job.look_failed_at };
}

/* Records what the attempt saw; without memory for it the lease runs out and the attempt counts as in doubt. */
static void attempt_answered(struct attempt *attempt, const struct answer *answer)
{
    assert(!attempt->gate || attempt->side == attempt_side(attempt->dest, attempt->gate));
    assert(!attempt->sending && attempt->lane->dest == attempt->dest);
    struct engine *engine = attempt->engine;
    instant now = engine_now(engine);
    struct settlement settlement;
    struct outage elsewhere;
    struct settlement_input input = {
        .destination = attempt->send.destination,
        .job = &attempt->job,
        .answer = answer,
        .seed = engine->seed,
        .now = now,
        .retention_ms = engine->config->retention_completed_ms,
        .outage = attempt_outage(attempt, &elsewhere),
        .held_ms = outage_lasted_ms(&attempt->dest->gate.outage, attempt->job.first_at, now),
        .served = job_waits_alone(attempt->gate, &attempt->job),
        .backoff_factor = dest_backoff_factor(attempt->dest, attempt->send.destination, now),
    };
    int64_t began = measures_ticks(engine);
    enum status status = settlement_make(&input, &attempt->memory, &attempt->settle, &settlement);
    measures_analysed(engine, attempt->dest, began);
    shares_give_back(&attempt->dest->queue.shares, attempt->side, &attempt->lane->share, 1, now);
    if (attempt->by_turn)
        shares_note_by_turn(&attempt->dest->queue.shares, attempt->side, -1);
    if (!attempt->gate) {
        ; /* it never left, and no gate counts it */
    } else if (status == STATUS_OK) {
        struct gate_result result = result_of(attempt, answer, &settlement);
        if (dest_note(attempt, &result, &settlement, now)) {
            input.spared = true;
            status = settlement_make(&input, &attempt->memory, &attempt->settle, &settlement);
        }
    } else {
        gate_give_back(attempt->gate, attempt->pass, 1);
    }
    dest_cycle_answered(attempt->dest, attempt->gate, attempt->pass,
                        status == STATUS_OK && answer->attempted ? &settlement : NULL, now);
    if (status != STATUS_OK) {
        log_event(LOG_ERROR, "settlement_lost", FIELD_TEXT("job", attempt->job.id), FIELD_CSTR("error", "no memory"));
        attempt_free(attempt);
        return;
    }
    dest_note_retry(attempt->dest, &attempt->job, &settlement, now);
    if (attempt->gate || settlement.dead) /* one that never went through a gate was never tried */
        log_outcome(attempt->dest, &attempt->job, &attempt->settle.settle, &settlement);
    count_outcome(engine, &settlement);
    measures_answered(attempt->lane, &attempt->job, answer, &settlement, now);
    engine_learn(engine, &attempt->job, &attempt->settle.settle, &settlement);
    heed(engine, attempt->lane, attempt->dest, attempt->gate, &attempt->job, answer, &settlement);
    if (answer->left_out.len > 0)
        alerts_headers_left_out(engine, attempt->dest);
    attempt->dying = settlement.dead;
    attempt->dest->dead.dying += attempt->dying;
    attempt->lane->dead.dying += attempt->dying;
    letters_job_dead(engine, attempt->dest, &attempt->job, &attempt->settle.settle, &settlement);
    queue_settlement(attempt);
}

static void on_send_done(struct send *send, const struct answer *answer)
{
    struct attempt *attempt = (struct attempt *)send;
    assert(attempt->sending);
    attempt->sending = false;
    ahead_note_answer(attempt->dest, answer->duration_ms, attempt->job.payload.len);
    attempt_answered(attempt, answer);
}

void attempt_send(struct attempt *attempt)
{
    struct engine *engine = attempt->engine;
    assert(!attempt->sending && attempt->gate && attempt->job.lease_token != 0); /* invariant 3 */
    attempt->sending = true;
    engine->ports.send(engine->ports.context, &attempt->send);
}

struct attempt *attempt_new(struct engine *engine, const struct claim *claim, const struct job *job)
{
    struct dest *dest = claim->lane->dest;
    assert(!claim->gate || claim->gate == &dest->gate || claim->gate == &dest->fallback);
    struct attempt *attempt = calloc(1, sizeof *attempt);
    if (!attempt)
        return NULL;
    attempt->engine = engine;
    attempt->dest = dest;
    attempt->config = config_ref(engine->config);
    attempt->job = *job;
    attempt->gate = claim->gate;
    attempt->pass = claim->pass;
    attempt->lane = claim->lane;
    attempt->side = attempt_side(dest, claim->gate);
    attempt->by_turn = claim->by_turn;
    attempt->send = (struct send){ .destination = dest->config, .job = &attempt->job, .done = on_send_done,
                                   .use_fallback = claim->gate == &dest->fallback };
    attempt_link(engine, attempt);
    return attempt;
}

void attempt_release(struct attempt *attempt, const char *why)
{
    assert(!attempt->sending);
    static const struct destination_config nowhere = { .policy.retry.cap_ms = MINUTE_MS };
    const struct answer answer = { .text = slice_from(why), .retry_after_ms = -1 };
    if (!attempt->send.destination)
        attempt->send.destination = &nowhere;
    attempt_answered(attempt, &answer);
}

/* What came back from the disk is not what was accepted: nobody gets it. */
static void attempt_damaged(struct attempt *attempt)
{
    assert(attempt->job.damaged && !attempt->sending);
    const struct answer answer = {
        .outcome = OUTCOME_PERMANENT,
        .code = SLICE("insist:payload_damaged"),
        .text = SLICE("PAYLOAD_DAMAGED: the stored job is not what was accepted, its digest differs; it was not sent. "
                      "Retry it with its payload given anew, or purge it"),
        .retry_after_ms = -1,
    };
    attempt_answered(attempt, &answer);
}

bool lease_damaged(struct engine *engine, struct lane_state *lane, const struct job *job)
{
    assert(job->damaged && job->lane == lane->id);
    struct attempt *attempt = attempt_new(engine, &(struct claim){ .lane = lane }, job);
    if (!attempt)
        return false;
    attempt->side = SIDE_FIRST;
    attempt->job.id = arena_copy(&attempt->memory, job->id); /* it outlives the worker's claim */
    attempt->job.tenant = arena_copy(&attempt->memory, job->tenant);
    if (!attempt->job.id.data || !attempt->job.tenant.data) {
        attempt_free(attempt);
        return false;
    }
    attempt_damaged(attempt);
    return true;
}

const char *why_unsendable(const struct engine *engine, const struct lane_state *lane)
{
    const struct dest *dest = lane->dest;
    if (!dest->config)
        return "the destination is not configured";
    if (dest->config->transport == TRANSPORT_PULL)
        return "the destination is for pull workers now";
    if (dest->gate.paused)
        return "the destination is paused";
    if (engine->stopping)
        return "the daemon is stopping";
    return dest->own.stage == OWN_LOSING ? "another node sends to the destination from now on" : NULL;
}

/*
 * A job is claimed when the gate lets it, and sent when the store has written that down. In between the configuration may
 * have been loaded anew, the breaker may have opened, an outage may have been noticed or the ramp may have gone a step back:
 * what was allowed then may not be now. So whoever holds a pass of an earlier state gives it back and asks for one of
 * the present state; without one the job is given back untouched, and no attempt counts.
 *
 * Rates are not asked again: they were paid when the job was claimed, and whoever is given back has paid in vain. At most
 * what was claimed when a lower rate was loaded goes beyond that, once. But a claim that comes back long after it was
 * decided, since the store was away, has nothing left of what it was given then: others may look, or be paid for, at the
 * same time.
 */
static bool attempt_may_go(struct attempt *attempt, bool late, instant now)
{
    assert(attempt->gate && !attempt->sending);
    struct dest *dest = attempt->dest;
    struct gate *gate = attempt->gate;
    bool diverted = gate == &dest->fallback && !dest_diverts(dest); /* the first address is back, or the second gone */
    if (!diverted && !late && gate_pass_stands(gate, attempt->pass, now))
        return true;
    gate_give_back(gate, attempt->pass, 1);
    dest_cycle_answered(dest, gate, attempt->pass, NULL, now);
    if (diverted || gate_ask(gate, now).room == 0) {
        attempt->gate = NULL;
        return false;
    }
    attempt->pass = gate_take(gate, 1, now);
    dest_cycle_selected(dest, gate, attempt->pass, &attempt->job, 1, now);
    return true;
}

/* Of a late claim: what it was given of its tenant's. */
static const char *why_not_late(struct attempt *attempt, const struct claim *claim, instant now)
{
    struct lane_state *lane = claim->lane;
    assert(attempt->lane == lane && !attempt->sending);
    bool looks = claim->lane_looks && block_holds(&lane->block);
    if (looks && !block_looks(&lane->block, now))
        return "the tenant is held";
    if (!rates_pay(attempt->engine, lane, now))
        return "its rate is used up";
    if (looks)
        block_looked(&lane->block, now);
    return NULL;
}

void attempt_begin(struct attempt *attempt, const struct claim *claim, instant now)
{
    assert(attempt->lane == claim->lane && attempt->gate == claim->gate && attempt->job.lease_token != 0);
    struct lane_state *lane = claim->lane;
    /* By a clock that was put back since, nobody knows how long ago it was decided. */
    bool late = now > instant_add(claim->at, CLAIM_LATE_MS) || claim->put_back != attempt->engine->out.put_back;
    const char *why = why_unsendable(attempt->engine, lane);
    if (!why && lane->hold.held && !(claim->lane_looks && block_holds(&lane->block)))
        why = "the tenant is held";
    /* The store was away, or the clock was set: a send of its whole timeout would be an orphan before its end. */
    if (!why && attempt->job.lease_until < instant_add(now, lane->dest->config->timeout_ms))
        why = "its lease would not last";
    if (!why && attempt->gate && !attempt_may_go(attempt, late, now))
        why = "the destination is held";
    if (!why && late)
        why = why_not_late(attempt, claim, now);
    if (why)
        attempt_release(attempt, why);
    else if (attempt->job.damaged)
        attempt_damaged(attempt);
    else if (attempt->gate)
        attempt_send(attempt);
    else
        ahead_add(lane, attempt, now);
}

static void attempt_settled(const struct op_result *result)
{
    struct engine *engine = result->engine;
    struct attempt *attempt = result->context;
    assert(result->op->kind == OP_SETTLE && result->op->settle.seq == attempt->job.seq);
    enum status batch_status = result->batch->status, op_status = result->op->status;
    /* What was seen is held for as long as the store refuses: an answer forgotten is a job sent twice. */
    if (batch_status != STATUS_OK && (!engine->stopping || ++attempt->stop_tries < STOP_TRIES_MAX)) {
        queue_settlement(attempt);
        return;
    }
    if (batch_status != STATUS_OK || op_status != STATUS_OK)
        log_event(LOG_WARN, "settlement_refused", FIELD_TEXT("job", attempt->job.id),
                  FIELD_CSTR("status", status_name(batch_status != STATUS_OK ? batch_status : op_status)));
    else if (attempt->settle.settle.event != EVENT_RETRY && attempt->settle.settle.event != EVENT_RELEASE)
        alerts_job_left(attempt->dest, &attempt->job);
    attempt_free(attempt);
}

/* Puts the settlements that are due into the next batch. */
void settle_answered(struct engine *engine)
{
    while (engine->attempts.unsettled && !engine_must_wait(engine)) {
        struct attempt *attempt = engine->attempts.unsettled;
        assert(attempt->settle.settle.seq == attempt->job.seq);
        struct store_op *op = outgoing_gather(engine, attempt_settled, attempt);
        if (!op)
            return;
        *op = attempt->settle;
        engine->attempts.unsettled = attempt->next_settle;
    }
}

size_t engine_sends(const struct engine *engine, struct send **ret_sends, size_t max)
{
    size_t count = 0;
    for (struct attempt *attempt = engine->attempts.first; attempt && count < max; attempt = attempt->next)
        if (attempt->sending)
            ret_sends[count++] = &attempt->send;
    return count;
}
