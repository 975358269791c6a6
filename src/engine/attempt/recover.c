/*
 * What time and earlier processes have left to do: lost leases, jobs that are due, old events.
 */
#include "base/log.h"
#include "core/ownership/ownership.h"
#include "engine/alerts/letters.h"
#include "engine/attempt/leases.h"
#include "engine/loop.h"

#include <assert.h>

enum {
    PROMOTE_MAX = 1000,            /* jobs made ready at once */
    PROMOTE_LETTERS_MAX = 4096,    /* not while so many messages about single jobs are to be written */
    PROMOTE_EVERY_MS = 50,         /* and not more often than this while more are overdue */
    FORGET_EVERY_MS = 10,          /* nor than this while most of them only go: jobs go faster than they come */
    PROMOTE_AT_LEAST_MS = 60 * 1000, /* what is due is looked at this often, whatever is known */
    ORPHANS_MAX = 256,             /* leases looked at together */
    UNCONFIGURED_LEASE_MS = 5 * 60 * 1000, /* how often an interrupted attempt at no destination is looked at */
    AUDIT_EVERY_MS = 60 * 1000,    /* how often old events are looked for, at least */
    TRIM_MAX = 2000,               /* a slice: what is committed with it waits a few milliseconds */
    TRIM_AGAIN_MS = 5,             /* while there are more than that: events go faster than they come */
};

static bool is_under_way(const struct engine *engine, int64_t seq)
{
    for (const struct attempt *attempt = engine->attempts.first; attempt; attempt = attempt->next)
        if (attempt->job.seq == seq)
            return true;
    return false;
}

/* One that is being settled: nothing is said of it before the store agrees. A worker may have been quicker. */
struct orphan {
    const struct job *job;
    struct settlement settlement;
    bool leased; /* by a worker */
};

/* What a batch of them needs when it is back. In its own memory. */
struct orphans {
    struct engine *engine;
    struct batch *found; /* whose memory has the jobs */
    struct orphan *list; /* one for each operation */
};

/*
 * A lease nobody holds any more. A send may have arrived, so it is in doubt; a question counts as one without an
 * answer, so that one that kills the process is not asked for ever.
 */
static enum status settle_orphan(struct engine *engine, const struct dest *dest, const struct job *job, struct arena *memory,
                                 struct store_op *op, struct orphan *ret_orphan)
{
    assert(dest->config && dest->own.stage != OWN_UNREAD);
    bool leased = dest->config->transport == TRANSPORT_PULL;
    const struct answer answer = {
        .attempted = true,
        .outcome = OUTCOME_IN_DOUBT,
        .text = leased ? SLICE("LEASE_EXPIRED: the worker's lease ended before it said what came of the job")
                       : SLICE("INTERRUPTED: the attempt's outcome was never recorded"),
        .code = leased ? SLICE("insist:lease_expired") : SLICE("insist:interrupted"),
        .retry_after_ms = -1,
    };
    struct settlement_input input = {
        .destination = dest->config,
        .job = job,
        .answer = &answer,
        .seed = engine->seed,
        .now = engine_now(engine),
        .outage = lease_is_look(engine, job) ? &dest->gate.outage : NULL,
        .held_ms = outage_lasted_ms(&dest->gate.outage, job->first_at, engine_now(engine)),
    };
    *ret_orphan = (struct orphan){ .job = job, .leased = leased };
    return settlement_make(&input, memory, op, &ret_orphan->settlement);
}

/*
 * Without a configuration nobody can say what a doubtful attempt means: it stays as it is until there is one again. Its
 * lease goes on, so that it does not stand before others in the list.
 */
static bool keep_orphan(const struct job *job, instant now, struct store_op *op)
{
    if (job->lease_until > now)
        return false;
    op->kind = OP_EXTEND;
    op->extend = (struct op_extend){ .seq = job->seq, .token = job->lease_token,
                                     .lease_until = instant_add(now, UNCONFIGURED_LEASE_MS) };
    return true;
}

/* Until when what a session that was fenced has begun to send may be on the wire. */
static instant sent_until(const struct dest *dest, const struct job *job)
{
    assert(dest->config);
    return job->lease_fenced_at == INSTANT_NONE
               ? INSTANT_NONE
               : ownership_ripe_at(job->lease_fenced_at, false, dest->config->timeout_ms);
}

/* ---- what may still be on the wire ---- */

static void left_behind_set(struct dest *dest, int64_t count)
{
    dest->gate.under_way += count - dest->own.left.held;
    dest->own.left.held = count;
    assert(count >= 0 && dest->gate.under_way >= count);
}

void left_behind_gained(struct engine *engine, struct dest *dest, int64_t count)
{
    assert(dest->own.left.held == 0);
    dest->own.left.gained = engine->recovery.pass;
    left_behind_set(dest, count);
}

/* All of them were looked at, but not of one that was gained meanwhile. */
static void left_behind_counted(struct engine *engine)
{
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next)
        if (dest->own.left.gained < engine->recovery.pass)
            left_behind_set(dest, dest->own.left.seen);
}

/* ---- lost leases ---- */

static bool orphan_op(struct engine *engine, const struct job *job, struct arena *memory, struct store_op *op,
                      struct orphan *ret_orphan)
{
    struct dest *dest = dest_find(engine, job->destination);
    if (is_under_way(engine, job->seq) || (dest ? dest->own.stage == OWN_UNREAD : engine->shared))
        return false; /* or what is configured of it counts when it is loaded */
    if (!dest || !dest->config)
        return keep_orphan(job, engine_now(engine), op);
    instant ripe_at = sent_until(dest, job);
    if (ripe_at != INSTANT_NONE && ripe_at > engine_now(engine)) {
        engine->recovery.ripe_at = instant_earlier(engine->recovery.ripe_at, ripe_at);
        dest->own.left.seen++;
        return false;
    }
    return settle_orphan(engine, dest, job, memory, op, ret_orphan) == STATUS_OK;
}

/* The store has taken it. */
static void orphan_settled(struct engine *engine, const struct orphan *orphan, const struct op_settle *settle)
{
    assert(settle->seq == orphan->job->seq);
    struct dest *dest = dest_find(engine, orphan->job->destination);
    if (!dest)
        return; /* it was lost meanwhile, and nobody hears of it here */
    lease_lost(engine, orphan->job);
    struct lane_state *lane = lane_of_job(engine, orphan->job);
    if (lane)
        measures_recovered(lane, settle, engine_now(engine));
    if (orphan->leased)
        log_outcome(dest, orphan->job, settle, &orphan->settlement);
    letters_job_dead(engine, dest, orphan->job, settle, &orphan->settlement);
    if (orphan->settlement.dead)
        alerts_job_dead(engine, dest, orphan->job->tenant, settle->dead_code);
}

static void on_settled(struct batch *batch)
{
    const struct orphans *orphans = batch->context;
    struct engine *engine = orphans->engine;
    assert(engine->recovery.orphans_out && engine->out.batches > 0);
    engine->out.batches--;
    engine->recovery.orphans_out = false;
    int64_t settled = 0;
    for (size_t i = 0; i < batch->count && batch->status == STATUS_OK; i++) {
        const struct store_op *op = &batch->ops[i];
        if (op->status != STATUS_OK || op->kind != OP_SETTLE)
            continue;
        orphan_settled(engine, &orphans->list[i], &op->settle);
        settled++;
    }
    engine->figures.recovered += settled;
    if (settled > 0) {
        log_event(LOG_WARN, "attempts_recovered", FIELD_INT("count", settled));
        ahead_note_death(engine);
    }
    if (batch->status != STATUS_OK) { /* from the first again, in a second */
        engine->recovery.orphans_after = INSTANT_NONE;
        engine->recovery.orphans_at = instant_add(engine_now(engine), ORPHANS_EVERY_MS);
        if (engine->recovery.of_ended)
            engine->recovery.ripe_at = engine->recovery.orphans_at;
    } else if (engine->recovery.orphans_after == INSTANT_NONE) {
        engine->recovery.recovering = false;
    }
    batch_free(orphans->found);
    batch_free(batch);
    engine_wake(engine);
}

/* The next page begins after the last of a full one. */
static void turn_page(struct engine *engine, const struct op_orphans *orphans)
{
    assert(orphans->ret_count <= ORPHANS_MAX);
    engine->recovery.orphans_after = INSTANT_NONE;
    if (orphans->ret_count < ORPHANS_MAX)
        return;
    const struct job *last = &orphans->ret_jobs[orphans->ret_count - 1];
    engine->recovery.orphans_after = last->lease_until;
    engine->recovery.orphans_after_seq = last->seq;
    engine->recovery.orphans_at = engine_now(engine);
}

static struct orphans *orphans_new(struct engine *engine, struct batch *found, struct arena *memory)
{
    assert(found->count == 1 && found->ops[0].kind == OP_ORPHANS);
    struct orphans *orphans = arena_alloc(memory, sizeof *orphans);
    if (!orphans)
        return NULL;
    *orphans = (struct orphans){ .engine = engine, .found = found };
    orphans->list = arena_alloc_array(memory, found->ops[0].orphans.ret_count, sizeof *orphans->list);
    return orphans->list ? orphans : NULL;
}

/* Settles the orphans of one page, and takes it; the ones this process is working on are left alone. */
static void settle_orphans(struct engine *engine, struct batch *found)
{
    assert(found->count == 1 && found->ops[0].kind == OP_ORPHANS);
    const struct op_orphans *page = &found->ops[0].orphans;
    struct batch *batch = batch_new(page->ret_count, SIZE_MAX / 2);
    struct orphans *orphans = batch ? orphans_new(engine, found, &batch->memory) : NULL;
    for (size_t i = 0; orphans && i < page->ret_count; i++)
        batch->count += orphan_op(engine, &page->ret_jobs[i], &batch->memory, &batch->ops[batch->count],
                                  &orphans->list[batch->count]);
    if (orphans && engine->recovery.of_ended && engine->recovery.orphans_after == INSTANT_NONE)
        left_behind_counted(engine);
    if (!orphans || batch->count == 0) { /* none of these is to be settled now; that says nothing of the next page */
        engine->recovery.orphans_out = false;
        if (orphans && engine->recovery.orphans_after == INSTANT_NONE)
            engine->recovery.recovering = false;
        batch_free(batch);
        batch_free(found);
        return;
    }
    batch->context = orphans;
    batch->done = on_settled;
    batch->reply_to = engine->mailbox;
    engine->out.batches++;
    engine->ports.submit(engine->ports.context, batch);
}

static void on_found(struct batch *batch)
{
    struct engine *engine = batch->context;
    assert(engine->recovery.orphans_out && engine->out.batches > 0);
    engine->out.batches--;
    if (batch->status == STATUS_OK) {
        turn_page(engine, &batch->ops[0].orphans);
        settle_orphans(engine, batch);
    } else {
        engine->recovery.orphans_out = false;
        if (engine->recovery.of_ended) /* that was the last that is known of them: from the first again */
            engine->recovery.ripe_at = engine_now(engine);
        engine->recovery.orphans_after = INSTANT_NONE;
        batch_free(batch);
    }
    engine_wake(engine);
}

/* All pages are of the same question. */
static void begin_pages(struct engine *engine, instant now)
{
    struct recovery *recovery = &engine->recovery;
    assert(recovery->orphans_after == INSTANT_NONE && !recovery->orphans_out);
    recovery->of_ended = recovery->recovering || (recovery->ripe_at != INSTANT_NONE && recovery->ripe_at <= now);
    if (recovery->of_ended)
        recovery->ripe_at = INSTANT_NONE;
    recovery->pass++;
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next)
        dest->own.left.seen = 0;
}

void recover_orphans(struct engine *engine)
{
    instant now = engine_now(engine);
    if (engine->stopping || engine->recovery.orphans_out || now < engine->recovery.orphans_at)
        return;
    engine->recovery.orphans_at = instant_add(now, ORPHANS_EVERY_MS);
    struct batch *batch = batch_new(1, SIZE_MAX / 2);
    if (!batch)
        return; /* asked again in a second */
    if (engine->recovery.orphans_after == INSTANT_NONE)
        begin_pages(engine, now);
    batch->ops[0].kind = OP_ORPHANS;
    batch->ops[0].orphans = (struct op_orphans){
        .until = now,
        .of_ended = engine->recovery.of_ended,
        .after_until = engine->recovery.orphans_after,
        .after_seq = engine->recovery.orphans_after_seq,
        .max = ORPHANS_MAX,
    };
    batch->count = 1;
    batch->context = engine;
    batch->done = on_found;
    batch->reply_to = engine->mailbox;
    engine->recovery.orphans_out = true;
    engine->out.batches++;
    engine->ports.submit(engine->ports.context, batch);
}

/*
 * Copied, since a reload may free the configuration while the writer reads. Of a destination that is not configured
 * nobody says how long: its dead letters stay.
 */
static bool set_dead_ttls(const struct config *config, struct arena *memory, struct op_promote *promote)
{
    size_t count = config_destination_total(config);
    struct dead_ttl *ttls = arena_alloc_array(memory, count, sizeof *ttls);
    for (size_t i = 0; i < count && ttls; i++) {
        const struct destination_config *destination = config_destination_at(config, i);
        ttls[i] = (struct dead_ttl){ arena_copy(memory, slice_from(destination->name)), destination->dead.ttl_ms };
        if (!ttls[i].destination.data)
            return false;
    }
    promote->dead_ttls = ttls;
    promote->dead_ttl_count = count;
    return ttls != NULL;
}

/* Those whose dead letters go elsewhere when their time is over; copied likewise. */
static bool set_exports(struct engine *engine, struct arena *memory, struct op_promote *promote)
{
    const struct config *config = engine->config;
    size_t room = 0;
    assert(promote->export_count == 0 && !promote->due);
    promote->wanted_ms = DEAD_EXPORTS_WANTED_MS;
    promote->unwanted_ms = DEAD_EXPORTS_UNWANTED_MS;
    for (size_t i = 0; i < config->destination_count; i++)
        promote->export_count += config->destinations[i].dead.export != NULL;
    if (promote->export_count == 0)
        return true;
    promote->exports = arena_alloc_array(memory, promote->export_count, sizeof *promote->exports);
    for (size_t i = 0, count = 0; i < config->destination_count && promote->exports; i++) {
        if (!config->destinations[i].dead.export)
            continue;
        struct slice name = slice_from(config->destinations[i].name);
        const struct dest *dest = dest_find(engine, name);
        struct dead_export *export = &promote->exports[count++];
        *export = (struct dead_export){ arena_copy(memory, name), dest ? dead_exports_room(dest) : 0, 0 };
        if (!export->destination.data)
            return false;
        room += export->room;
    }
    promote->due = arena_alloc_array(memory, room < PROMOTE_MAX ? room : PROMOTE_MAX, sizeof *promote->due);
    return promote->exports && promote->due;
}

/* A tenth of the shortest time that something is retained for. */
static int64_t look_every_ms(const struct config *config)
{
    int64_t shortest_ms = PROMOTE_AT_LEAST_MS * 10;
    if (config->retention_completed_ms > 0 && config->retention_completed_ms < shortest_ms)
        shortest_ms = config->retention_completed_ms;
    for (size_t i = 0; i < config_destination_total(config); i++) {
        int64_t ttl_ms = config_destination_at(config, i)->dead.ttl_ms;
        shortest_ms = ttl_ms > 0 && ttl_ms < shortest_ms ? ttl_ms : shortest_ms;
    }
    return shortest_ms / 10 > SECOND_MS ? shortest_ms / 10 : SECOND_MS;
}

static void take_promoted(struct engine *engine, const struct op_promote *promote, instant now)
{
    assert(promote->max == PROMOTE_MAX);
    for (size_t i = 0; i < promote->ret_ready_count; i++) {
        const struct lane_ready *news = &promote->ret_ready[i];
        struct lane_state *lane;
        if (lane_get(engine, news->lane, news->destination, news->tenant, &lane) != STATUS_OK)
            log_event(LOG_ERROR, "lane_lost", FIELD_INT("lane", news->lane), FIELD_CSTR("error", "no memory"));
        lane_changed(engine, news->lane, news->count, news->dead); /* it need not be read: it is there */
    }
    for (size_t i = 0; promote->ret_expired_jobs && i < promote->ret_expired; i++)
        letters_job_expired(engine, &promote->ret_expired_jobs[i]);
    for (size_t i = 0; i < promote->ret_due_count; i++) {
        struct dest *dest = dest_find(engine, promote->exports[promote->due[i].export].destination);
        if (dest)
            dead_exports_add(dest, &promote->due[i]);
    }
    if (promote->ret_dead_deleted > 0)
        log_event(LOG_INFO, "dead_letters_expired", FIELD_INT("letters", (int64_t)promote->ret_dead_deleted));
    engine->measured.dead_expired += (int64_t)promote->ret_dead_deleted;
    engine->measured.expired += (int64_t)promote->ret_expired;
    alerts_jobs_expired(engine, (int64_t)promote->ret_expired);
    size_t gone = promote->ret_dead_deleted + promote->ret_forgotten + promote->ret_put_off;
    size_t done = promote->ret_promoted + promote->ret_expired + gone;
    instant next = promote->ret_next_at;
    if (done >= PROMOTE_MAX)
        next = instant_add(now, gone > PROMOTE_MAX / 2 ? FORGET_EVERY_MS : PROMOTE_EVERY_MS); /* bit by bit */
    /* Ends of retention and of dead letters are reported to nobody: they are found by looking. */
    next = instant_earlier(next, instant_add(now, look_every_ms(engine->config)));
    engine->recovery.promote_at = instant_earlier(engine->recovery.promote_at, next);
}

static void promoted(const struct op_result *result)
{
    struct engine *engine = result->engine;
    assert(engine->recovery.promoting);
    engine->recovery.promoting = false;
    if (result->applied)
        take_promoted(engine, &result->op->promote, engine_now(engine));
    else
        engine->recovery.promote_at = instant_add(engine_now(engine), AGAIN_MS);
}

void promote_due(struct engine *engine)
{
    if (engine->recovery.promoting || engine->recovery.promote_at == INSTANT_NONE ||
        engine->recovery.promote_at > engine_now(engine))
        return;
    struct store_op *op =
        engine->letters.count < PROMOTE_LETTERS_MAX ? outgoing_add(engine, promoted, NULL) : NULL;
    if (!op)
        return;
    op->kind = OP_PROMOTE;
    op->promote = (struct op_promote){ .max = PROMOTE_MAX, .name_expired = letters_wanted(engine) };
    if (!set_dead_ttls(engine->config, outgoing_memory(engine), &op->promote) ||
        !set_exports(engine, outgoing_memory(engine), &op->promote)) {
        outgoing_drop_last(engine); /* no memory: in a moment */
        return;
    }
    engine->recovery.promoting = true;
    engine->recovery.promote_at = INSTANT_NONE; /* the answer says when next */
}

static void trimmed(const struct op_result *result)
{
    assert(result->op->kind == OP_TRIM);
    if (result->applied && result->op->trim.ret_deleted >= TRIM_MAX)
        result->engine->recovery.trim_at = instant_add(engine_now(result->engine), TRIM_AGAIN_MS);
}

void trim_events(struct engine *engine)
{
    instant now = engine_now(engine);
    if (now < engine->recovery.trim_at || engine->config->retention_audit_ms <= 0)
        return;
    struct store_op *op = outgoing_add(engine, trimmed, NULL);
    if (!op)
        return;
    op->kind = OP_TRIM;
    op->trim = (struct op_trim){ .before = now - engine->config->retention_audit_ms, .max = TRIM_MAX };
    int64_t tenth_ms = engine->config->retention_audit_ms / 10;
    int64_t every_ms = tenth_ms < AUDIT_EVERY_MS ? tenth_ms : AUDIT_EVERY_MS;
    engine->recovery.trim_at = instant_add(now, every_ms > SECOND_MS ? every_ms : SECOND_MS);
}
