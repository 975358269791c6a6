#include "support/world.h"

#include "store/memory/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS_MAX = 1000000 };

static struct arena shown; /* of world_job */

static instant port_now(void *context)
{
    return ((struct world *)context)->now;
}

static void port_submit(void *context, struct batch *batch)
{
    struct world *world = context;
    batch->next_pending = NULL;
    if (!world->batches)
        world->commit_at = world->now + world->commit_ms;
    *world->batches_end = batch;
    world->batches_end = &batch->next_pending;
}

struct pending_answer {
    struct world_send link; /* first */
    struct answer answer;
};

static void port_send(void *context, struct send *send)
{
    struct world *world = context;
    struct pending_answer *pending = calloc(1, sizeof *pending);
    assert_non_null(pending);
    pending->answer = (struct answer){ .attempted = true, .retry_after_ms = -1 };
    pending->link.send = send;
    world->send_count++;
    int64_t takes = world->destination(world, send, &pending->answer);
    pending->answer.duration_ms = takes;
    pending->link.at = world->now + takes;
    *world->sends_end = &pending->link;
    world->sends_end = &pending->link.next;
}

static void port_probe(void *context, struct probe *probe)
{
    struct world *world = context;
    struct world_probe *pending = calloc(1, sizeof *pending);
    assert_non_null(pending);
    pending->probe = probe;
    pending->answer.body = SLICE("");
    world->probe_count++;
    pending->answer.latency_ms = world->health(world, probe, &pending->answer);
    pending->at = world->now + pending->answer.latency_ms;
    pending->next = world->probes;
    world->probes = pending;
}

static void port_read(void *context, struct store_read *read)
{
    struct world *world = context;
    struct world_read *pending = calloc(1, sizeof *pending);
    enum status fails = STATUS_OK;
    assert_non_null(pending);
    int64_t takes = world->reading(world, &fails);
    *pending = (struct world_read){ .read = read, .at = world->now + takes, .next = world->reads };
    world->reads = pending;
    world->read_count++;
    do {
        read->more = false;
        read->status = fails != STATUS_OK ? error_set(&read->error, fails, "the test's store cannot be read")
                                          : read->run(read, world->reader, &read->error);
        read->pieces++;
    } while (read->more);
}

static struct world_read **earliest_read(struct world *world)
{
    struct world_read **first = &world->reads;
    for (struct world_read **link = &world->reads; *link; link = &(*link)->next)
        if ((*link)->at < (*first)->at)
            first = link;
    return first;
}

static void answer_read(struct world_read **link)
{
    struct world_read *pending = *link;
    *link = pending->next;
    pending->read->done(pending->read);
    free(pending);
}

/* The probe that is answered first. */
static struct world_probe **earliest_probe(struct world *world)
{
    struct world_probe **first = &world->probes;
    for (struct world_probe **link = &world->probes; *link; link = &(*link)->next)
        if ((*link)->at < (*first)->at)
            first = link;
    return first;
}

static void answer_probe(struct world_probe **link)
{
    struct world_probe *pending = *link;
    *link = pending->next;
    pending->probe->done(pending->probe, &pending->answer);
    free(pending);
}

static void port_wake_at(void *context, instant at)
{
    struct world *world = context;
    if (world->wake_at == INSTANT_NONE || at < world->wake_at)
        world->wake_at = at;
}

/* A process that starts. */
static void begin_session(struct world *world)
{
    struct error error;
    assert_int_equal(world->store->ops->begin(world->store, world->now, &error), STATUS_OK);
    for (size_t i = 0; world->node && i < config_destination_total(world->config); i++) {
        struct arena memory = { 0 };
        struct store_op take = { .kind = OP_TAKE, .own = { slice_from(config_destination_at(world->config, i)->name), 0 } };
        assert_int_equal(world->store->ops->apply(world->store, world->now, &take, 1, &memory, &error), STATUS_OK);
        assert_int_equal(take.status, STATUS_OK);
        arena_release(&memory);
    }
}

static void start_engine(struct world *world)
{
    struct error error;
    begin_session(world);
    struct engine_settings settings = {
        .ports = { .context = world, .now = port_now, .submit = port_submit, .send = port_send, .wake_at = port_wake_at,
                   .probe = world->health ? port_probe : NULL, .read = world->reading ? port_read : NULL },
        .shared_store = world->shared,
        .config = world->config,
        .seed = 7,
    };
    world->wake_at = INSTANT_NONE;
    world->batches = NULL;
    world->batches_end = &world->batches;
    world->sends = NULL;
    world->sends_end = &world->sends;
    assert_int_equal(engine_new(&settings, &world->engine, &error), STATUS_OK);
    assert_int_equal(engine_start(world->engine, world->reader, &error), STATUS_OK);
}

void world_begin(struct world *world, const char *yaml, instant now)
{
    struct buffer problems;
    struct error error;
    struct store_settings settings = { .sync_always = true, .pending_max = 1000000000, .node = slice_from(world->node ? world->node : "") };
    const char *node = world->node;
    void *context = world->context;
    int64_t (*destination)(struct world *, const struct send *, struct answer *) = world->destination;
    int64_t (*health)(struct world *, const struct probe *, struct health_answer *) = world->health;
    int64_t (*reading)(struct world *, enum status *) = world->reading;
    bool shared = world->shared;
    memset(world, 0, sizeof *world);
    world->reading = reading;
    world->shared = shared;
    world->context = context;
    world->node = node;
    world->destination = destination;
    world->health = health;
    world->now = now;
    buffer_init(&problems, 64 * 1024);
    if (config_parse(slice_from(yaml), "test.yaml", &world->config, &problems) != STATUS_OK)
        fail_msg("%s", problems.data);
    buffer_release(&problems);
    assert_int_equal(store_memory_open(SLICE(""), &settings, &world->store, &error), STATUS_OK);
    assert_int_equal(world->store->ops->reader(world->store, &world->reader, &error), STATUS_OK);
    start_engine(world);
}

static void apply(struct world *world, struct batch *batch, struct arena *results)
{
    batch->status = world->fail_applies
                        ? error_set(&batch->error, STATUS_FULL, "the test's disk is full")
                        : world->store->ops->apply(world->store, world->now, batch->ops, batch->count, results, &batch->error);
    if (batch->status == STATUS_OK && world->applied)
        world->applied(world, batch->ops, batch->count);
    if (batch->status == STATUS_OK) {
        struct notice *notice;
        assert_int_equal(notice_of(batch->ops, batch->count, world->now, &notice), STATUS_OK);
        if (notice)
            engine_notice(world->engine, notice);
    }
}

/* The transaction that is tried is in doubt; true: this is it. Others are refused meanwhile. */
static bool tried_away(struct world *world, struct batch *batch)
{
    if (world->doubted) {
        batch->status = error_set(&batch->error, STATUS_AWAY, "the test's store is away");
        return false;
    }
    world->doubted = batch;
    if (!world->doubt_applied)
        return true;
    assert_int_equal(world->store->ops->apply(world->store, world->now, batch->ops, batch->count, &batch->memory,
                                              &batch->error), STATUS_OK);
    assert_int_equal(notice_of(batch->ops, batch->count, world->now, &world->doubted_notice), STATUS_OK);
    return true;
}

void world_leave(struct world *world, bool applied)
{
    assert_false(world->away);
    world->away = true;
    world->doubt_applied = applied;
}

void world_return(struct world *world)
{
    struct batch *batch = world->doubted;
    struct notice *notice = world->doubted_notice;
    assert_true(world->away);
    world->away = false;
    world->doubted = NULL;
    world->doubted_notice = NULL;
    if (notice)
        engine_notice(world->engine, notice);
    if (!batch)
        return;
    batch->status = world->doubt_applied ? STATUS_OK
                                         : error_set(&batch->error, STATUS_AWAY, "the test's store was away");
    batch->done(batch);
}

static void apply_first(struct world *world)
{
    struct batch *batch = world->batches;
    world->batches = batch->next_pending;
    if (!world->batches)
        world->batches_end = &world->batches;
    world->commit_at = world->now + world->commit_ms;
    if (world->away && tried_away(world, batch))
        return;
    if (!world->away)
        apply(world, batch, &batch->memory);
    batch->done(batch);
}

static struct world_send **earliest_send(struct world *world)
{
    struct world_send **first = &world->sends;
    for (struct world_send **link = &world->sends; *link; link = &(*link)->next)
        if ((*link)->at < (*first)->at)
            first = link;
    return first;
}

static void answer_send(struct world *world, struct world_send **link)
{
    struct world_send *send = *link;
    struct pending_answer *pending = (struct pending_answer *)send;
    *link = send->next;
    if (world->sends_end == &send->next)
        world->sends_end = link;
    send->send->done(send->send, &pending->answer);
    free(pending);
}

bool world_step(struct world *world)
{
    if (world->batches && world->commit_at <= world->now) {
        apply_first(world);
        return true;
    }
    if (world->sends && (*earliest_send(world))->at <= world->now) {
        answer_send(world, earliest_send(world));
        return true;
    }
    if (world->probes && (*earliest_probe(world))->at <= world->now) {
        answer_probe(earliest_probe(world));
        return true;
    }
    if (world->reads && (*earliest_read(world))->at <= world->now) {
        answer_read(earliest_read(world));
        return true;
    }
    if (world->wake_at != INSTANT_NONE && world->wake_at <= world->now) {
        world->wake_at = INSTANT_NONE;
        engine_run(world->engine);
        return true;
    }
    return false;
}

void world_settle(struct world *world)
{
    for (int i = 0; world_step(world); i++)
        if (i > STEPS_MAX)
            fail_msg("the world does not come to rest");
}

void world_run_until(struct world *world, instant until)
{
    for (;;) {
        world_settle(world);
        instant next = world->wake_at;
        if (world->batches && (next == INSTANT_NONE || world->commit_at < next))
            next = world->commit_at;
        if (world->sends && (next == INSTANT_NONE || (*earliest_send(world))->at < next))
            next = (*earliest_send(world))->at;
        if (world->probes && (next == INSTANT_NONE || (*earliest_probe(world))->at < next))
            next = (*earliest_probe(world))->at;
        if (world->reads && (next == INSTANT_NONE || (*earliest_read(world))->at < next))
            next = (*earliest_read(world))->at;
        if (next == INSTANT_NONE || next > until)
            break;
        world->now = next > world->now ? next : world->now;
    }
    world->now = until;
}

void world_run_for(struct world *world, int64_t ms)
{
    world_run_until(world, world->now + ms);
}

static void on_handed_over(struct saved_wait *wait)
{
    *(bool *)wait->context = true;
}

static enum status hand_over(struct world *world, const char *destination,
                             void (*order)(struct engine *engine, struct slice destination, struct saved_wait *wait))
{
    bool done = false;
    struct saved_wait wait = { .done = on_handed_over, .context = &done };
    order(world->engine, slice_from(destination), &wait);
    for (int i = 0; !done; i++) {
        if (i > 10000)
            fail_msg("%s is not handed over", destination);
        world_run_for(world, 10);
    }
    return wait.error.status;
}

enum status world_gain(struct world *world, const char *destination)
{
    return hand_over(world, destination, engine_gain);
}

enum status world_lose(struct world *world, const char *destination)
{
    return hand_over(world, destination, engine_lose);
}

void world_add(struct world *world, const char *destination, const char *tenant, const char *id, const char *payload)
{
    struct batch *batch = batch_new(1, 1 << 20);
    const struct destination_config *config = config_destination(world->config, slice_from(destination));
    assert_non_null(batch);
    assert_non_null(config);
    batch->count = 1;
    batch->ops[0].kind = OP_INSERT;
    batch->ops[0].insert = (struct op_insert){
        .destination = slice_from(destination),
        .tenant = slice_from(tenant),
        .id = slice_from(id),
        .priority = PRIORITY_NORMAL,
        .rank = rank_of(PRIORITY_NORMAL, world->now, config->aging_ms),
        .run_at = world->now,
        .deadline = config->job_ttl_ms > 0 ? world->now + config->job_ttl_ms : INSTANT_NONE,
        .payload = slice_from(payload),
    };
    apply(world, batch, &batch->memory);
    assert_int_equal(batch->status, STATUS_OK);
    assert_int_equal(batch->ops[0].status, STATUS_OK);
    batch_free(batch);
}

void world_apply(struct world *world, const struct store_op *op)
{
    struct batch *batch = batch_new(1, 1 << 20);
    assert_non_null(batch);
    batch->count = 1;
    batch->ops[0] = *op;
    apply(world, batch, &batch->memory);
    assert_int_equal(batch->status, STATUS_OK);
    assert_int_equal(batch->ops[0].status, STATUS_OK);
    batch_free(batch);
}

/* Ends what is under way, so that its memory can be freed; none of it reaches the store. */
static void abandon(struct world *world)
{
    bool failing = world->fail_applies;
    engine_stop(world->engine);
    world->fail_applies = true;
    while (world->sends)
        answer_send(world, &world->sends);
    while (world->probes)
        answer_probe(&world->probes);
    while (world->reads)
        answer_read(&world->reads);
    for (int i = 0; engine_under_way(world->engine) > 0 && i < STEPS_MAX; i++) {
        world_settle(world);
        world->now += 1000;
        world->wake_at = world->now;
    }
    engine_free(world->engine);
    world->fail_applies = failing;
}

void world_crash(struct world *world)
{
    instant at = world->now;
    abandon(world);
    world->now = at;
    start_engine(world);
}

void world_restart(struct world *world)
{
    engine_stop(world->engine);
    world_settle(world);
    for (int i = 0; engine_under_way(world->engine) > 0; i++) {
        if (i > STEPS_MAX)
            fail_msg("the engine does not stop");
        world->now = world->sends ? (*earliest_send(world))->at : world->now + 1;
        world_settle(world);
    }
    engine_free(world->engine);
    start_engine(world);
}

void world_end(struct world *world)
{
    abandon(world);
    world->reader->ops->reader_close(world->reader);
    world->store->ops->close(world->store);
    config_unref(world->config);
    arena_release(&shown);
}

/* 0: there is none. */
static int64_t recall_tenant(struct world *world, struct slice destination, struct slice tenant, struct error *err)
{
    struct arena memory = { 0 };
    struct lane lane;
    enum status status = world->reader->ops->reader_lane(world->reader, destination, tenant, &memory, &lane, err);
    if (status == STATUS_OK)
        engine_recall(world->engine, lane.id, destination, tenant);
    arena_release(&memory);
    return status == STATUS_OK ? lane.id : 0;
}

enum status world_pause_tenant(struct world *world, struct slice destination, struct slice tenant, struct slice reason,
                               struct error *err)
{
    int64_t lane = recall_tenant(world, destination, tenant, err);
    return lane > 0 ? engine_pause_tenant(world->engine, lane, reason, err) : STATUS_NOT_FOUND;
}

enum status world_resume_tenant(struct world *world, struct slice destination, struct slice tenant, struct error *err)
{
    int64_t lane = recall_tenant(world, destination, tenant, err);
    return lane > 0 ? engine_resume_tenant(world->engine, lane, err) : STATUS_NOT_FOUND;
}

struct job world_job(struct world *world, const char *tenant, const char *id)
{
    struct job job;
    struct error error;
    arena_release(&shown);
    enum status status = world->reader->ops->reader_job(world->reader, slice_from(tenant), slice_from(id), true, &shown, &job, &error);
    if (status != STATUS_OK)
        fail_msg("job %s of tenant %s: %s", id, tenant, error.text);
    return job;
}

struct lane_counts world_counts(struct world *world, const char *destination)
{
    struct lane_counts sum = { 0 };
    struct arena memory = { 0 };
    struct lane *lanes;
    size_t count;
    struct error error;
    assert_int_equal(world->reader->ops->reader_lanes(world->reader, 0, STORE_PAGE_MAX, &memory, &lanes, &count, &error), STATUS_OK);
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
