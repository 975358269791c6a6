/*
 * What the engine remembers of tenants that come and go, and that what it forgot is found again (invariant 6).
 */
#include "engine/alerts/notify.h"
#include "engine/loop.h"
#include "support/check.h"
#include "support/store_faulty.h"
#include "support/world.h"

#include "base/log.h"

#include <stdio.h>

static const instant began = INT64_C(1736678400000);

#define TO(more) "destinations: { d: { preset: http, url: 'https://a.example/', concurrency: 50" more " } }\n"

static int64_t delivers(struct world *world, const struct send *send, struct answer *answer)
{
    (void)send;
    if (world->context)
        ++*(int64_t *)world->context;
    answer->outcome = OUTCOME_DELIVERED;
    return 5;
}

/* Fails the first time. */
static int64_t fails_once(struct world *world, const struct send *send, struct answer *answer)
{
    (void)world;
    if (send->job->attempts > 1) {
        answer->outcome = OUTCOME_DELIVERED;
    } else {
        answer->code = SLICE("http:503");
        answer->text = SLICE("HTTP 503: not now");
    }
    return 5;
}

static void add_tenants(struct world *world, int from, int count)
{
    char tenant[32];
    for (int i = 0; i < count; i++) {
        snprintf(tenant, sizeof tenant, "t%d", from + i);
        world_add(world, "d", tenant, NULL, "x");
    }
}

/* The busiest tenants are counted singly, and so are known for good; all others are not. */
static void add_busy(struct world *world)
{
    char tenant[32];
    for (int i = 0; i < MEASURED_TENANTS_MAX; i++) {
        snprintf(tenant, sizeof tenant, "busy%d", i);
        for (int n = 0; n < 40; n++)
            world_add(world, "d", tenant, NULL, "x");
    }
    world_run_for(world, MINUTE_MS);
}

/* How many are known but those. */
static size_t known(const struct world *world)
{
    size_t count = 0;
    size_t cursor = 0;
    for (struct map_entry *entry; (entry = map_next(&world->engine->lanes.by_id, &cursor));)
        count += ((const struct lane_state *)entry->value)->tenant[0] == 't';
    return count;
}

/* By the store's number of it. */
static int64_t lane_id(const struct world *world, const char *tenant)
{
    struct arena memory = { 0 };
    struct lane *lanes;
    struct error error;
    size_t count;
    int64_t id = 0;
    struct store_reader *reader = world->engine->reader;
    assert_int_equal(reader->ops->reader_lanes(reader, 0, 1000, &memory, &lanes, &count, &error), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        if (slice_equal(lanes[i].tenant, slice_from(tenant)))
            id = lanes[i].id;
    arena_release(&memory);
    return id;
}

static void tenants_come_and_go(void **state)
{
    (void)state;
    enum { TENANTS = 100000, WAVE = 2000 };
    int64_t sent = 0;
    struct world world = { .destination = delivers, .context = &sent };
    size_t most = 0;
    world_begin(&world, TO(""), began);
    for (int i = 0; i < TENANTS; i += WAVE) {
        add_tenants(&world, i, WAVE);
        world_run_for(&world, MINUTE_MS);
        most = world.engine->lanes.by_id.count > most ? world.engine->lanes.by_id.count : most;
    }
    check(most <= 20 * WAVE, "%zu lanes at most", most); /* of the last quarter of an hour, and some that are not looked at yet */
    world_run_for(&world, 20 * MINUTE_MS);
    assert_in_range(world.engine->lanes.by_id.count, 0, MEASURED_TENANTS_MAX);
    assert_int_equal(dest_find(world.engine, SLICE("d"))->queue.lanes, world.engine->lanes.by_id.count);
    assert_int_equal(sent, TENANTS);

    add_tenants(&world, 500, 1000); /* some of them again */
    world_run_for(&world, MINUTE_MS);
    assert_in_range(world.engine->lanes.by_id.count, 1000, 1000 + MEASURED_TENANTS_MAX);
    assert_int_equal(sent, TENANTS + 1000);
    world_restart(&world); /* all are known for a while */
    assert_int_equal(world.engine->lanes.by_id.count, TENANTS);
    world_run_for(&world, 30 * MINUTE_MS);
    assert_in_range(world.engine->lanes.by_id.count, 0, MEASURED_TENANTS_MAX);
    world_end(&world);
}

/* Its job waits for hours, and is sent when its time has come. */
static void a_job_that_waits_is_not_forgotten(void **state)
{
    (void)state;
    struct world world = { .destination = fails_once };
    world_begin(&world, TO(", retry: { base: 3h, floor: 3h, cap: 3h, max_retries: 3 }"), began);
    add_busy(&world);
    add_tenants(&world, 0, 10);
    world_run_for(&world, HOUR_MS);
    assert_int_equal(known(&world), 0);
    assert_int_equal(world_counts(&world, "d").waiting, 10 + 40 * MEASURED_TENANTS_MAX);
    assert_false(engine_place(world.engine, lane_id(&world, "t3"), 0, began + DAY_MS).known);
    engine_recall(world.engine, lane_id(&world, "t3"), SLICE("d"), SLICE("t3"));
    struct queue_place place = engine_place(world.engine, lane_id(&world, "t3"), 0, began + DAY_MS);
    assert_true(place.known); /* whoever asks why it waits hears where it stands */
    assert_int_equal(place.at, began + DAY_MS);
    world_run_for(&world, 8 * (int64_t)HOUR_MS);
    assert_int_equal(world_counts(&world, "d").completed, 10 + 40 * MEASURED_TENANTS_MAX);
    world_end(&world);
}

/* What is known of a tenant but its name keeps it: a hold, and what it has sent at its rate. */
static void what_is_known_is_kept(void **state)
{
    (void)state;
    struct world world = { .destination = delivers };
    struct error error;
    world_begin(&world, TO(", rate: { per_tenant: 1/h }"), began);
    for (int i = 0; i < MEASURED_TENANTS_MAX; i++) { /* they come first, and nobody is busier */
        char tenant[32];
        snprintf(tenant, sizeof tenant, "busy%d", i);
        world_add(&world, "d", tenant, NULL, "x");
    }
    world_run_for(&world, 10);
    add_tenants(&world, 0, 3);
    world_run_for(&world, 50 * MINUTE_MS);
    assert_int_equal(known(&world), 3);
    world_run_for(&world, 30 * MINUTE_MS);
    assert_int_equal(known(&world), 0);
    assert_int_equal(world_pause_tenant(&world, SLICE("d"), SLICE("t1"), SLICE("unpaid"), &error), STATUS_OK);
    assert_int_equal(world_pause_tenant(&world, SLICE("d"), SLICE("t9"), SLICE("unpaid"), &error), STATUS_NOT_FOUND);
    world_run_for(&world, HOUR_MS);
    assert_int_equal(known(&world), 1);
    world_add(&world, "d", "t1", "one", "x");
    world_run_for(&world, HOUR_MS);
    assert_int_equal(world_job(&world, "t1", "one").state, STATE_PENDING);
    world_restart(&world);
    world_run_for(&world, HOUR_MS);
    assert_int_equal(world_job(&world, "t1", "one").state, STATE_PENDING);
    assert_int_equal(world_resume_tenant(&world, SLICE("d"), SLICE("t1"), &error), STATUS_OK);
    world_run_for(&world, HOUR_MS);
    assert_int_equal(world_job(&world, "t1", "one").state, STATE_COMPLETED);
    world_end(&world);
}

/* An answer may come long after: a lane that holds a slot is not forgotten. */
static int64_t takes_its_time(struct world *world, const struct send *send, struct answer *answer)
{
    (void)world;
    (void)send;
    answer->outcome = OUTCOME_BLOCKED;
    answer->code = SLICE("http:401");
    answer->text = SLICE("HTTP 401: who are you");
    return 50 * MINUTE_MS;
}

static void an_answer_finds_its_tenant(void **state)
{
    (void)state;
    struct world world = { .destination = takes_its_time };
    world_begin(&world, TO(", timeout: 1h, blocked: tenant, breaker: { enabled: false }"), began);
    add_tenants(&world, 0, 2);
    world_add(&world, "d", "t0", NULL, "x");
    world_add(&world, "d", "t1", NULL, "x");
    world_run_for(&world, 40 * MINUTE_MS);
    assert_int_equal(known(&world), 2);
    world_run_for(&world, 40 * MINUTE_MS);
    assert_string_equal(engine_destination(world.engine, SLICE("d")).mode, "normal");
    assert_int_equal(engine_destination(world.engine, SLICE("d")).tenants_paused, 2);
    const struct measures *measures = &dest_find(world.engine, SLICE("d"))->measures;
    assert_int_equal(measures->tenant_count, 2); /* each by its name, */
    assert_int_equal(measures->other_tenants.processed, 0); /* not as one of the others */
    world_end(&world);
}

/* Counts what tells of alerts. */
static int64_t tells(struct world *world, const struct send *send, struct answer *answer)
{
    *(int64_t *)world->context += slice_equal(send->job->tenant, NOTIFY_TENANT);
    answer->outcome = OUTCOME_DELIVERED;
    return 5;
}

/* Between two alerts nobody remembers the lane of those who are told; the second one is told all the same. */
static void news_finds_its_lane(void **state)
{
    (void)state;
    int64_t reported = 0;
    struct world world = { .destination = tells, .context = &reported };
    struct error error;
    world_begin(&world, "notify: [{ name: ops, to: '1', through: d, on: [contingency] }]\n"
                        "destinations: { d: { preset: http, url: 'https://a.example/', concurrency: 50 },\n"
                        "  down: { preset: http, url: 'https://b.example/', contingency: { ramp: [5], stable: 1m, check: 5m } } }\n",
                began);
    add_busy(&world);
    assert_int_equal(engine_enter_contingency(world.engine, SLICE("down"), SLICE(""), &error), STATUS_OK);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(reported, 1);
    world_run_for(&world, HOUR_MS);
    assert_int_equal(world.engine->lanes.by_id.count, MEASURED_TENANTS_MAX);
    assert_int_equal(engine_leave_contingency(world.engine, SLICE("down"), &error), STATUS_OK);
    world_run_for(&world, HOUR_MS);
    assert_int_equal(reported, 2);
    world_end(&world);
}

/* ---- a store that cannot be read for a while ---- */

/* The times of jobs come just then: the store tells whose they are, so that nobody need read it. */
static void what_is_due_need_not_be_read(void **state)
{
    (void)state;
    struct world world = { .destination = fails_once };
    struct store *faulty;
    struct error error;
    world_begin(&world, TO(", retry: { base: 3h, floor: 3h, cap: 3h, max_retries: 3, jitter: 0 }"), began);
    world.reader->ops->reader_close(world.reader);
    assert_int_equal(store_faulty_wrap(world.store, &faulty, &error), STATUS_OK);
    world.store = faulty;
    assert_int_equal(faulty->ops->reader(faulty, &world.reader, &error), STATUS_OK);
    world_crash(&world); /* the new engine reads that one */
    add_busy(&world);
    add_tenants(&world, 0, 10);
    world_run_for(&world, HOUR_MS);
    assert_int_equal(known(&world), 0);
    store_faulty_set(world.store, FAULTY_READ, 1, true, STATUS_IO);
    world_run_for(&world, 3 * HOUR_MS);
    store_faulty_set(world.store, FAULTY_READ, 0, false, STATUS_IO);
    assert_int_equal(world_counts(&world, "d").completed, 10 + 40 * MEASURED_TENANTS_MAX);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tenants_come_and_go),
        cmocka_unit_test(a_job_that_waits_is_not_forgotten),
        cmocka_unit_test(what_is_known_is_kept),
        cmocka_unit_test(an_answer_finds_its_tenant),
        cmocka_unit_test(news_finds_its_lane),
        cmocka_unit_test(what_is_due_need_not_be_read),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
