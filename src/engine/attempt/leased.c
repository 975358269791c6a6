/*
 * What pull workers hold: the gate's pass of each lease, from its claim to its end.
 *
 * Every lease ends in one of these ways: acked, nacked, given back unused, or found lost when its time is over: by its
 * job, if that still runs, and else by a walk over the leases, which asks the store about those whose time is over. The
 * passes are in memory only: a lease that was taken before a restart counts for the job and in its tenant's share, but
 * says nothing about the destination, and a new process's gate knows nothing of it. The room of the gate (LEASES_OUT_MAX)
 * bounds them.
 */
#include "base/log.h"
#include "engine/alerts/letters.h"
#include "engine/attempt/leases.h"
#include "engine/loop.h"
#include "engine/outage/cycles.h"
#include "engine/outage/modes.h"

#include <assert.h>
#include <stdlib.h>

enum { WALK_S = 60 }; /* over all of them takes so long at most */

struct leased {
    int64_t seq; /* the key */
    int64_t token;
    int64_t retry_count;
    int64_t lane, attempts;
    instant created_at, taken_at;
    instant until; /* of the lease, as far as is known: who prolongs it does not say so */
    struct dest *dest;
    struct lane_state *of; /* whose share it counts in */
    struct gate_pass pass;
    bool earlier; /* taken before a restart: there is no pass */
    bool gone;    /* from the store when it was looked at; whoever ended it may be about to say so */
};

/* The tenant's slot is free, whatever came of it; NULL: nothing. */
static void leased_free(struct leased *leased, instant now)
{
    assert(!leased || leased->of->dest == leased->dest);
    if (leased)
        shares_give_back(&leased->dest->queue.shares, SIDE_FIRST, &leased->of->share, 1, now);
    free(leased);
}

/* It says nothing about the destination; another may take its place. */
static void give_back(const struct leased *leased, instant now)
{
    if (leased->earlier)
        return;
    gate_give_back(&leased->dest->gate, leased->pass, 1);
    dest_cycle_answered(leased->dest, &leased->dest->gate, leased->pass, NULL, now);
}

static void leased_add(struct engine *engine, struct dest *dest, struct gate_pass pass, const struct job *job, instant now)
{
    struct leased *leased = malloc(sizeof *leased);
    const struct leased wanted = { .seq = job->seq, .token = job->lease_token, .retry_count = job->retry_count,
                                   .lane = job->lane, .attempts = job->attempts, .created_at = job->created_at,
                                   .taken_at = now, .until = job->lease_until, .dest = dest,
                                   .of = lane_find(engine, job->lane), .pass = pass };
    struct leased *before = map_remove(&engine->leases.held, map_key(&job->seq));
    assert(wanted.of); /* one that holds a slot is not forgotten */
    assert(!before || (before->seq == job->seq && before->dest == dest));
    if (before)
        give_back(before, now); /* whoever ended it did not say so */
    leased_free(before, now);
    if (leased)
        *leased = wanted;
    if (!leased || map_put(&engine->leases.held, map_key(&leased->seq), leased) != STATUS_OK) {
        give_back(&wanted, now); /* as if it came from before a restart */
        shares_give_back(&dest->queue.shares, SIDE_FIRST, &wanted.of->share, 1, now);
        free(leased);
    }
}

void leases_claimed(struct engine *engine, struct dest *dest, struct gate_pass pass, const struct job *jobs, size_t count,
                    size_t missing)
{
    assert(dest->gate.under_way >= (int64_t)(count + missing));
    instant now = engine_now(engine);
    gate_give_back(&dest->gate, pass, (int64_t)missing);
    measures_claimed(dest, jobs, count, now);
    dest_cycle_selected(dest, &dest->gate, pass, jobs, count, now);
    for (size_t i = 0; i < count; i++)
        leased_add(engine, dest, pass, &jobs[i], now);
}

/* NULL: not known, or not of this process. */
static const struct leased *leased_find(const struct engine *engine, int64_t seq, int64_t token)
{
    const struct leased *found = map_get(&engine->leases.held, map_key(&seq));
    return found && found->token == token && !found->earlier ? found : NULL;
}

/* The same, and the caller's to free. It has ended: one of an earlier process frees its tenant's slot. */
static struct leased *leased_take(struct engine *engine, int64_t seq, int64_t token)
{
    struct leased *found = map_get(&engine->leases.held, map_key(&seq));
    if (!found || found->token != token)
        return NULL;
    map_remove(&engine->leases.held, map_key(&seq));
    assert(found->seq == seq);
    if (!found->earlier)
        return found;
    leased_free(found, engine_now(engine));
    engine_wake(engine);
    return NULL;
}

enum status lease_restore(struct engine *engine, const struct job *job)
{
    struct dest *dest = dest_find(engine, job->destination);
    struct lane_state *lane = lane_find(engine, job->lane);
    /* Of a destination that is being loaded the configuration is not known yet. */
    const struct destination_config *config = config_destination(engine->config, job->destination);
    if (!dest || !lane || !config || config->transport != TRANSPORT_PULL)
        return STATUS_OK;
    struct leased *leased = malloc(sizeof *leased);
    if (!leased)
        return STATUS_NO_MEMORY;
    *leased = (struct leased){ .seq = job->seq, .token = job->lease_token, .lane = job->lane, .until = job->lease_until,
                               .dest = dest, .of = lane, .earlier = true };
    if (map_put(&engine->leases.held, map_key(&leased->seq), leased) != STATUS_OK) {
        free(leased);
        return STATUS_NO_MEMORY;
    }
    assert(lane->dest == dest);
    shares_take(&dest->queue.shares, SIDE_FIRST, &lane->share, 1);
    return STATUS_OK;
}

bool lease_is_look(const struct engine *engine, const struct job *job)
{
    const struct leased *leased = leased_find(engine, job->seq, job->lease_token);
    return leased && leased->pass.probe;
}

void lease_lost(struct engine *engine, const struct job *job)
{
    struct leased *leased = leased_take(engine, job->seq, job->lease_token);
    if (leased)
        give_back(leased, engine_now(engine));
    leased_free(leased, engine_now(engine));
}

/* ---- those that ended without a word ---- */

static enum status read_leases(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct leases_look *look = (struct leases_look *)read;
    enum status status = STATUS_OK;
    assert(look->count > 0 && look->count <= LEASES_LOOK_MAX);
    for (size_t i = 0; i < look->count && status == STATUS_OK; i++) {
        struct looked_lease *lease = &look->leases[i];
        struct job job = { 0 };
        status = reader->ops->reader_job_seq(reader, lease->seq, false, &read->memory, &job, err);
        lease->held = status == STATUS_OK && job.state == STATE_RUNNING && job.lease_token == lease->token;
        lease->until = job.lease_until;
        if (status == STATUS_NOT_FOUND)
            status = STATUS_OK;
    }
    return status;
}

/* What could not be read is looked at again. */
static void leases_looked(struct question *question)
{
    struct engine *engine = question->engine;
    const struct leases_look *look = &engine->leases.look;
    if (question->read.status != STATUS_OK) {
        log_event(LOG_ERROR, "leases_not_read", FIELD_CSTR("error", question->read.error.text));
        alerts_store_failed(engine, &question->read.error);
    }
    for (size_t i = 0; i < look->count && question->read.status == STATUS_OK; i++) {
        const struct looked_lease *looked = &look->leases[i];
        struct leased *leased = map_get(&engine->leases.held, map_key(&looked->seq));
        if (!leased || leased->token != looked->token)
            continue; /* it has ended meanwhile */
        if (!looked->held && leased->gone) {
            lease_lost(engine, &(struct job){ .seq = looked->seq, .lease_token = looked->token });
            continue;
        }
        leased->gone = !looked->held;
        if (looked->held)
            leased->until = looked->until;
    }
}

void leases_look(struct engine *engine)
{
    struct leases_look *look = &engine->leases.look;
    const struct map *held = &engine->leases.held;
    instant now = engine_now(engine), soon = instant_add(now, SECOND_MS);
    struct map_entry *entry = NULL;
    if (look->question.out || (now < look->at && look->at <= soon)) /* else the clock was put back */
        return;
    look->at = soon;
    look->count = 0;
    for (size_t left = held->count / WALK_S + LEASES_LOOK_MAX; left > 0 && look->count < LEASES_LOOK_MAX; left--) {
        entry = map_next(held, &look->cursor);
        if (!entry)
            break;
        const struct leased *leased = entry->value;
        if (leased->until <= now)
            look->leases[look->count++] = (struct looked_lease){ .seq = leased->seq, .token = leased->token };
    }
    if (!entry)
        look->cursor = 0;
    if (look->count > 0)
        question_ask(engine, &look->question, read_leases, leases_looked);
}

void engine_lease_returned(struct engine *engine, int64_t seq, int64_t token)
{
    const struct job job = { .seq = seq, .lease_token = token };
    lease_lost(engine, &job);
    engine_wake(engine);
}

void engine_acked(struct engine *engine, int64_t seq, int64_t token)
{
    static const struct settlement completed = { .decision = { VERDICT_COMPLETE, OUTCOME_DELIVERED, .known = true } };
    struct leased *leased = leased_take(engine, seq, token);
    instant now = engine_now(engine);
    if (!leased)
        return;
    assert(!leased->earlier && leased->of->dest == leased->dest);
    const struct job job = { .retry_count = leased->retry_count, .step = STEP_SEND, .lane = leased->lane,
                             .attempts = leased->attempts, .created_at = leased->created_at };
    const struct answer answer = { .attempted = true, .outcome = OUTCOME_DELIVERED,
                                   .duration_ms = now > leased->taken_at ? now - leased->taken_at : 0 };
    const struct gate_result delivered = { .sent = true, .outcome = OUTCOME_DELIVERED, .job = leased->seq,
                                           .tenant = leased->lane, .look_failed_at = INSTANT_NONE };
    struct gate_news news = gate_note(&leased->dest->gate, leased->pass, &delivered, now);
    dest_tell(leased->dest, &news);
    dest_let_in(engine, leased->dest, leased->of);
    dest_note_retry(leased->dest, &job, &completed, now);
    measures_answered(leased->of, &job, &answer, &completed, now);
    dest_cycle_answered(leased->dest, &leased->dest->gate, leased->pass, &completed, now);
    log_event(LOG_DEBUG, "job_acked", FIELD_INT("seq", seq), FIELD_CSTR("tenant", leased->of->tenant),
              FIELD_CSTR("destination", leased->dest->name), FIELD_INT("attempt", leased->attempts),
              FIELD_INT("duration_ms", answer.duration_ms));
    leased_free(leased, now);
    engine_wake(engine);
}

static struct gate_result result_of(const struct lease_nack *nack, const struct settlement *settlement)
{
    /* How long it took is the worker's affair: it may have had the job lying about. */
    return (struct gate_result){ .sent = true, .outcome = settlement->decision.outcome, .code = nack->answer.code,
                                 .job = nack->job->seq, .tenant = nack->job->lane,
                                 .look_failed_at = nack->job->look_failed_at };
}

/* Whether the job is to be held instead of dying, by a gate that hears of the failure and is then forgotten. */
static bool would_spare(const struct leased *leased, const struct lease_nack *nack, const struct settlement *settlement,
                        instant now)
{
    assert(!leased->earlier && settlement->may_pass);
    struct gate trial = leased->dest->gate;
    const struct gate_result result = result_of(nack, settlement);
    const struct contingency_end end = job_end(nack->job, nack->answer.code, settlement, now);
    bool spares = false;
    (void)gate_note(&trial, leased->pass, &result, now);
    (void)gate_exhausted(&trial, &end, now, &spares);
    return spares;
}

/* Of a lease that an earlier process gave, what the job says: its last change. */
static int64_t held_ms(const struct leased *leased, const struct job *job, instant now)
{
    instant since = leased ? leased->taken_at : job->updated_at;
    return now > since ? now - since : 0;
}

/* The questions that were asked of it say nothing of that. */
static void become_send(struct job *job)
{
    if (job->step == STEP_SEND)
        return;
    job->step = STEP_SEND;
    job->step_count = 0;
}

enum status engine_nack(struct engine *engine, struct lease_nack *nack, struct arena *memory, struct store_op *op,
                        struct settlement *ret_settlement, const struct policy **ret_policy)
{
    struct dest *dest = dest_find(engine, nack->job->destination);
    instant now = engine_now(engine);
    if (!dest || !dest->config)
        return STATUS_NOT_FOUND;
    const struct leased *leased = leased_find(engine, nack->job->seq, nack->job->lease_token);
    assert(!leased || leased->dest == dest);
    become_send(nack->job);
    nack->answer.duration_ms = held_ms(leased, nack->job, now);
    struct settlement_input input = {
        .destination = dest->config, .job = nack->job, .answer = &nack->answer, .seed = engine->seed, .now = now,
        .retention_ms = engine->config->retention_completed_ms,
        .outage = leased && leased->pass.probe ? &dest->gate.outage : NULL,
        .held_ms = outage_lasted_ms(&dest->gate.outage, nack->job->first_at, now),
        .served = job_waits_alone(&dest->gate, nack->job),
        .backoff_factor = dest_backoff_factor(dest, dest->config, now),
    };
    int64_t began = measures_ticks(engine);
    enum status status = settlement_make(&input, memory, op, ret_settlement);
    measures_analysed(engine, dest, began);
    nack->exhausted = status == STATUS_OK && ret_settlement->may_pass && leased && !leased->pass.probe;
    if (nack->exhausted && would_spare(leased, nack, ret_settlement, now)) {
        input.spared = true;
        status = settlement_make(&input, memory, op, ret_settlement);
    }
    *ret_policy = &dest->config->policy;
    return status;
}

/* What came of the job is decided; the destination's mode may change. */
static void note_exhausted(struct dest *dest, const struct lease_nack *nack, const struct settlement *settlement,
                           instant now)
{
    assert(nack->exhausted);
    bool spares = false;
    const struct contingency_end end = job_end(nack->job, nack->answer.code, settlement, now);
    struct gate_news news = gate_exhausted(&dest->gate, &end, now, &spares);
    dest_tell(dest, &news);
    contingency_unspent(&dest->gate.contingency, spares);
}

void engine_nacked(struct engine *engine, const struct lease_nack *nack, const struct store_op *op,
                   const struct settlement *settlement)
{
    struct dest *dest = dest_find(engine, nack->job->destination);
    struct leased *leased = leased_take(engine, nack->job->seq, nack->job->lease_token);
    instant now = engine_now(engine);
    if (!dest)
        return; /* another node has it by now, and learns nothing from it */
    if (leased) {
        const struct gate_result result = result_of(nack, settlement);
        struct gate_news news = gate_note(&dest->gate, leased->pass, &result, now);
        dest_tell(dest, &news);
        dest->saved.looked = dest->saved.looked || leased->pass.look;
        if (nack->exhausted)
            note_exhausted(dest, nack, settlement, now);
        else if (settlement->spared)
            contingency_unspent(&dest->gate.contingency, 1);
        dest_cycle_answered(dest, &dest->gate, leased->pass, settlement, now);
    }
    leased_free(leased, now);
    log_outcome(dest, nack->job, &op->settle, settlement);
    if (!dest->config) {
        engine_wake(engine); /* a reload took it away meanwhile: nobody asks how it is */
        return;
    }
    struct answer answer = nack->answer;
    answer.slow_all = settlement->decision.outcome == OUTCOME_THROTTLED; /* the whole destination said: too fast */
    dest_note_retry(dest, nack->job, settlement, now);
    engine_learn(engine, nack->job, &op->settle, settlement);
    struct lane_state *lane = lane_of_job(engine, nack->job);
    dest_settled(engine, dest, lane, nack->job, &answer, settlement);
    letters_job_dead(engine, dest, nack->job, &op->settle, settlement);
    if (lane) /* else there is no memory for it */
        measures_answered(lane, nack->job, &answer, settlement, now);
    engine_wake(engine);
}

void leases_forget(struct engine *engine, const struct dest *dest)
{
    size_t cursor = 0;
    for (struct map_entry *entry; (entry = map_next(&engine->leases.held, &cursor));) {
        struct leased *leased = entry->value;
        if (leased->dest != dest)
            continue;
        map_remove(&engine->leases.held, map_key(&leased->seq));
        free(leased);
    }
}

void leased_release(struct engine *engine)
{
    size_t cursor = 0;
    for (struct map_entry *entry; (entry = map_next(&engine->leases.held, &cursor));)
        free(entry->value);
    map_release(&engine->leases.held);
}
