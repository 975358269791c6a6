#include "engine/orders.h"
#include "support/stage.h"

#include "store/memory/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS_MAX = 1000000 };

static struct arena shown; /* of stage_job */

static instant port_now(void *context)
{
    return ((struct stage *)context)->now;
}

static void port_submit(void *context, struct batch *batch)
{
    struct stage *stage = context;
    batch->next_pending = NULL;
    if (!stage->batches)
        stage->commit_at = stage->now + stage->commit_ms;
    *stage->batches_end = batch;
    stage->batches_end = &batch->next_pending;
}

struct pending_answer {
    struct stage_send link; /* first */
    struct answer answer;
};

static void port_send(void *context, struct send *send)
{
    struct stage *stage = context;
    struct pending_answer *pending = calloc(1, sizeof *pending);
    assert_non_null(pending);
    pending->answer = (struct answer){ .attempted = true, .retry_after_ms = -1 };
    pending->link.send = send;
    stage->send_count++;
    int64_t takes = stage->destination(stage, send, &pending->answer);
    pending->answer.duration_ms = takes;
    pending->link.at = stage->now + takes;
    *stage->sends_end = &pending->link;
    stage->sends_end = &pending->link.next;
}

static void port_probe(void *context, struct probe *probe)
{
    struct stage *stage = context;
    struct stage_probe *pending = calloc(1, sizeof *pending);
    assert_non_null(pending);
    pending->probe = probe;
    pending->answer.body = SLICE("");
    stage->probe_count++;
    pending->answer.latency_ms = stage->health(stage, probe, &pending->answer);
    pending->at = stage->now + pending->answer.latency_ms;
    pending->next = stage->probes;
    stage->probes = pending;
}

static void port_read(void *context, struct store_read *read)
{
    struct stage *stage = context;
    struct stage_read *pending = calloc(1, sizeof *pending);
    enum status fails = STATUS_OK;
    assert_non_null(pending);
    int64_t takes = stage->reading(stage, &fails);
    *pending = (struct stage_read){ .read = read, .at = stage->now + takes, .next = stage->reads };
    stage->reads = pending;
    stage->read_count++;
    do {
        read->more = false;
        read->status = fails != STATUS_OK ? error_set(&read->error, fails, "the test's store cannot be read")
                                          : read->run(read, stage->reader, &read->error);
        read->pieces++;
    } while (read->more);
}

static struct stage_read **earliest_read(struct stage *stage)
{
    struct stage_read **first = &stage->reads;
    for (struct stage_read **link = &stage->reads; *link; link = &(*link)->next)
        if ((*link)->at < (*first)->at)
            first = link;
    return first;
}

static void answer_read(struct stage_read **link)
{
    struct stage_read *pending = *link;
    *link = pending->next;
    pending->read->done(pending->read);
    free(pending);
}

/* The probe that is answered first. */
static struct stage_probe **earliest_probe(struct stage *stage)
{
    struct stage_probe **first = &stage->probes;
    for (struct stage_probe **link = &stage->probes; *link; link = &(*link)->next)
        if ((*link)->at < (*first)->at)
            first = link;
    return first;
}

static void answer_probe(struct stage_probe **link)
{
    struct stage_probe *pending = *link;
    *link = pending->next;
    pending->probe->done(pending->probe, &pending->answer);
    free(pending);
}

static void port_wake_at(void *context, instant at)
{
    struct stage *stage = context;
    if (stage->wake_at == INSTANT_NONE || at < stage->wake_at)
        stage->wake_at = at;
}

/* A process that starts. */
static void begin_session(struct stage *stage)
{
    struct error error;
    assert_int_equal(stage->store->ops->begin(stage->store, stage->now, &error), STATUS_OK);
    for (size_t i = 0; stage->node && i < config_destination_total(stage->config); i++) {
        struct arena memory = { 0 };
        struct store_op take = { .kind = OP_TAKE, .own = { slice_from(config_destination_at(stage->config, i)->name), 0 } };
        assert_int_equal(stage->store->ops->apply(stage->store, stage->now, &take, 1, &memory, &error), STATUS_OK);
        assert_int_equal(take.status, STATUS_OK);
        arena_release(&memory);
    }
}

static void start_engine(struct stage *stage)
{
    struct error error;
    begin_session(stage);
    struct engine_settings settings = {
        .ports = { .context = stage, .now = port_now, .submit = port_submit, .send = port_send, .wake_at = port_wake_at,
                   .probe = stage->health ? port_probe : NULL, .read = stage->reading ? port_read : NULL },
        .shared_store = stage->shared,
        .config = stage->config,
        .sources = stage->sources,
        .seed = 7,
    };
    stage->wake_at = INSTANT_NONE;
    stage->batches = NULL;
    stage->batches_end = &stage->batches;
    stage->sends = NULL;
    stage->sends_end = &stage->sends;
    assert_int_equal(engine_new(&settings, &stage->engine, &error), STATUS_OK);
    assert_int_equal(engine_start(stage->engine, stage->reader, &error), STATUS_OK);
}

void stage_begin(struct stage *stage, const char *yaml, instant now)
{
    struct buffer problems;
    struct error error;
    struct store_settings settings = { .sync_always = true, .pending_max = stage->pending_max > 0 ? stage->pending_max : 1000000000,
                                        .node = slice_from(stage->node ? stage->node : "") };
    const char *node = stage->node;
    void *context = stage->context;
    int64_t (*destination)(struct stage *, const struct send *, struct answer *) = stage->destination;
    int64_t (*health)(struct stage *, const struct probe *, struct health_answer *) = stage->health;
    int64_t (*reading)(struct stage *, enum status *) = stage->reading;
    bool shared = stage->shared;
    struct source_board *sources = stage->sources;
    memset(stage, 0, sizeof *stage);
    stage->reading = reading;
    stage->shared = shared;
    stage->sources = sources;
    stage->context = context;
    stage->node = node;
    stage->destination = destination;
    stage->health = health;
    stage->now = now;
    buffer_init(&problems, 64 * 1024);
    if (config_parse(slice_from(yaml), "test.yaml", &stage->config, &problems) != STATUS_OK)
        fail_msg("%s", problems.data);
    buffer_release(&problems);
    assert_int_equal(store_memory_open(SLICE(""), &settings, &stage->store, &error), STATUS_OK);
    assert_int_equal(stage->store->ops->reader(stage->store, &stage->reader, &error), STATUS_OK);
    start_engine(stage);
}

static void apply(struct stage *stage, struct batch *batch, struct arena *results)
{
    batch->status = stage->fail_applies
                        ? error_set(&batch->error, STATUS_FULL, "the test's disk is full")
                        : stage->store->ops->apply(stage->store, stage->now, batch->ops, batch->count, results, &batch->error);
    if (batch->status == STATUS_OK && stage->applied)
        stage->applied(stage, batch->ops, batch->count);
    if (batch->status == STATUS_OK) {
        struct notice *notice;
        assert_int_equal(notice_of(batch->ops, batch->count, stage->now, &notice), STATUS_OK);
        if (notice)
            engine_notice(stage->engine, notice);
    }
}

/* The transaction that is tried is in doubt; true: this is it. Others are refused meanwhile. */
static bool tried_away(struct stage *stage, struct batch *batch)
{
    if (stage->doubted) {
        batch->status = error_set(&batch->error, STATUS_AWAY, "the test's store is away");
        return false;
    }
    stage->doubted = batch;
    if (!stage->doubt_applied)
        return true;
    assert_int_equal(stage->store->ops->apply(stage->store, stage->now, batch->ops, batch->count, &batch->memory,
                                              &batch->error), STATUS_OK);
    assert_int_equal(notice_of(batch->ops, batch->count, stage->now, &stage->doubted_notice), STATUS_OK);
    return true;
}

void stage_leave(struct stage *stage, bool applied)
{
    assert_false(stage->away);
    stage->away = true;
    stage->doubt_applied = applied;
}

void stage_return(struct stage *stage)
{
    struct batch *batch = stage->doubted;
    struct notice *notice = stage->doubted_notice;
    assert_true(stage->away);
    stage->away = false;
    stage->doubted = NULL;
    stage->doubted_notice = NULL;
    if (notice)
        engine_notice(stage->engine, notice);
    if (!batch)
        return;
    batch->status = stage->doubt_applied ? STATUS_OK
                                         : error_set(&batch->error, STATUS_AWAY, "the test's store was away");
    batch->done(batch);
}

static void apply_first(struct stage *stage)
{
    struct batch *batch = stage->batches;
    stage->batches = batch->next_pending;
    if (!stage->batches)
        stage->batches_end = &stage->batches;
    stage->commit_at = stage->now + stage->commit_ms;
    if (stage->away && tried_away(stage, batch))
        return;
    if (!stage->away)
        apply(stage, batch, &batch->memory);
    batch->done(batch);
}

static struct stage_send **earliest_send(struct stage *stage)
{
    struct stage_send **first = &stage->sends;
    for (struct stage_send **link = &stage->sends; *link; link = &(*link)->next)
        if ((*link)->at < (*first)->at)
            first = link;
    return first;
}

static void answer_send(struct stage *stage, struct stage_send **link)
{
    struct stage_send *send = *link;
    struct pending_answer *pending = (struct pending_answer *)send;
    *link = send->next;
    if (stage->sends_end == &send->next)
        stage->sends_end = link;
    send->send->done(send->send, &pending->answer);
    free(pending);
}

bool stage_step(struct stage *stage)
{
    if (stage->batches && stage->commit_at <= stage->now) {
        apply_first(stage);
        return true;
    }
    if (stage->sends && (*earliest_send(stage))->at <= stage->now) {
        answer_send(stage, earliest_send(stage));
        return true;
    }
    if (stage->probes && (*earliest_probe(stage))->at <= stage->now) {
        answer_probe(earliest_probe(stage));
        return true;
    }
    if (stage->reads && (*earliest_read(stage))->at <= stage->now) {
        answer_read(earliest_read(stage));
        return true;
    }
    if (stage->wake_at != INSTANT_NONE && stage->wake_at <= stage->now) {
        stage->wake_at = INSTANT_NONE;
        engine_run(stage->engine);
        return true;
    }
    return false;
}

void stage_settle(struct stage *stage)
{
    for (int i = 0; stage_step(stage); i++)
        if (i > STEPS_MAX)
            fail_msg("the stage does not come to rest");
}

void stage_run_until(struct stage *stage, instant until)
{
    for (;;) {
        stage_settle(stage);
        instant next = stage->wake_at;
        if (stage->batches && (next == INSTANT_NONE || stage->commit_at < next))
            next = stage->commit_at;
        if (stage->sends && (next == INSTANT_NONE || (*earliest_send(stage))->at < next))
            next = (*earliest_send(stage))->at;
        if (stage->probes && (next == INSTANT_NONE || (*earliest_probe(stage))->at < next))
            next = (*earliest_probe(stage))->at;
        if (stage->reads && (next == INSTANT_NONE || (*earliest_read(stage))->at < next))
            next = (*earliest_read(stage))->at;
        if (next == INSTANT_NONE || next > until)
            break;
        stage->now = next > stage->now ? next : stage->now;
    }
    stage->now = until;
}

void stage_run_for(struct stage *stage, int64_t ms)
{
    stage_run_until(stage, stage->now + ms);
}

static void on_handed_over(struct saved_wait *wait)
{
    *(bool *)wait->context = true;
}

static enum status hand_over(struct stage *stage, const char *destination,
                             void (*order)(struct engine *engine, struct slice destination, struct saved_wait *wait))
{
    bool done = false;
    struct saved_wait wait = { .done = on_handed_over, .context = &done };
    order(stage->engine, slice_from(destination), &wait);
    int turns = 0;
    while (!done) {
        if (turns++ > 10000)
            fail_msg("%s is not handed over", destination);
        stage_run_for(stage, 10);
    }
    return wait.error.status;
}

enum status stage_gain(struct stage *stage, const char *destination)
{
    return hand_over(stage, destination, engine_gain);
}

enum status stage_lose(struct stage *stage, const char *destination)
{
    return hand_over(stage, destination, engine_lose);
}

void stage_add(struct stage *stage, const char *destination, const char *tenant, const char *id, const char *payload)
{
    struct batch *batch = batch_new(1, 1 << 20);
    const struct destination_config *config = config_destination(stage->config, slice_from(destination));
    assert_non_null(batch);
    assert_non_null(config);
    batch->count = 1;
    batch->ops[0].kind = OP_INSERT;
    batch->ops[0].insert = (struct op_insert){
        .destination = slice_from(destination),
        .tenant = slice_from(tenant),
        .id = slice_from(id),
        .priority = PRIORITY_NORMAL,
        .rank = rank_of(PRIORITY_NORMAL, stage->now, config->aging_ms),
        .run_at = stage->now,
        .deadline = config->job_ttl_ms > 0 ? stage->now + config->job_ttl_ms : INSTANT_NONE,
        .payload = slice_from(payload),
    };
    apply(stage, batch, &batch->memory);
    assert_int_equal(batch->status, STATUS_OK);
    assert_int_equal(batch->ops[0].status, STATUS_OK);
    batch_free(batch);
}

void stage_apply(struct stage *stage, const struct store_op *op)
{
    struct batch *batch = batch_new(1, 1 << 20);
    assert_non_null(batch);
    batch->count = 1;
    batch->ops[0] = *op;
    apply(stage, batch, &batch->memory);
    assert_int_equal(batch->status, STATUS_OK);
    assert_int_equal(batch->ops[0].status, STATUS_OK);
    batch_free(batch);
}

/* Ends what is under way, so that its memory can be freed; none of it reaches the store. */
static void abandon(struct stage *stage)
{
    bool failing = stage->fail_applies;
    engine_stop(stage->engine);
    stage->fail_applies = true;
    while (stage->sends)
        answer_send(stage, &stage->sends);
    while (stage->probes)
        answer_probe(&stage->probes);
    while (stage->reads)
        answer_read(&stage->reads);
    for (int i = 0; engine_under_way(stage->engine) > 0 && i < STEPS_MAX; i++) {
        stage_settle(stage);
        stage->now += 1000;
        stage->wake_at = stage->now;
    }
    engine_free(stage->engine);
    stage->fail_applies = failing;
}

void stage_crash(struct stage *stage)
{
    instant at = stage->now;
    abandon(stage);
    stage->now = at;
    start_engine(stage);
}

void stage_restart(struct stage *stage)
{
    engine_stop(stage->engine);
    stage_settle(stage);
    for (int i = 0; engine_under_way(stage->engine) > 0; i++) {
        if (i > STEPS_MAX)
            fail_msg("the engine does not stop");
        stage->now = stage->sends ? (*earliest_send(stage))->at : stage->now + 1;
        stage_settle(stage);
    }
    engine_free(stage->engine);
    start_engine(stage);
}

void stage_end(struct stage *stage)
{
    abandon(stage);
    stage->reader->ops->reader_close(stage->reader);
    stage->store->ops->close(stage->store);
    config_unref(stage->config);
    arena_release(&shown);
}

/* 0: there is none. */
static int64_t recall_tenant(struct stage *stage, struct slice destination, struct slice tenant, struct error *err)
{
    struct arena memory = { 0 };
    struct lane lane;
    enum status status = stage->reader->ops->reader_lane(stage->reader, destination, tenant, &memory, &lane, err);
    if (status == STATUS_OK)
        engine_recall(stage->engine, lane.id, destination, tenant);
    arena_release(&memory);
    return status == STATUS_OK ? lane.id : 0;
}

enum status stage_pause_tenant(struct stage *stage, struct slice destination, struct slice tenant, struct slice reason,
                               struct error *err)
{
    int64_t lane = recall_tenant(stage, destination, tenant, err);
    return lane > 0 ? engine_pause_tenant(stage->engine, lane, reason, err) : STATUS_NOT_FOUND;
}

enum status stage_resume_tenant(struct stage *stage, struct slice destination, struct slice tenant, struct error *err)
{
    int64_t lane = recall_tenant(stage, destination, tenant, err);
    return lane > 0 ? engine_resume_tenant(stage->engine, lane, err) : STATUS_NOT_FOUND;
}

struct job stage_job(struct stage *stage, const char *tenant, const char *id)
{
    struct job job;
    struct error error;
    arena_release(&shown);
    enum status status = stage->reader->ops->reader_job(stage->reader, slice_from(tenant), slice_from(id), true, &shown, &job, &error);
    if (status != STATUS_OK)
        fail_msg("job %s of tenant %s: %s", id, tenant, error.text);
    return job;
}

struct lane_counts stage_counts(struct stage *stage, const char *destination)
{
    struct lane_counts sum = { 0 };
    struct arena memory = { 0 };
    struct lane *lanes;
    size_t count;
    struct error error;
    assert_int_equal(stage->reader->ops->reader_lanes(stage->reader, 0, STORE_PAGE_MAX, &memory, &lanes, &count, &error), STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        if (!slice_equal(lanes[i].destination, slice_from(destination)))
            continue;
        sum.pending += lanes[i].counts.pending;
        sum.running += lanes[i].counts.running;
        sum.waiting += lanes[i].counts.waiting;
        sum.completed += lanes[i].counts.completed;
        sum.dead += lanes[i].counts.dead;
        sum.cancelled += lanes[i].counts.cancelled;
        sum.ready += lanes[i].counts.ready;
    }
    arena_release(&memory);
    return sum;
}
