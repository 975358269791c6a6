/*
 * What the engine remembers of tenants that come and go, and that what it forgot is found again (invariant 6).
 */
#include "engine/alerts/notify.h"
#include "engine/loop.h"
#include "support/check.h"
#include "support/store_faulty.h"
#include "support/stage.h"

#include "base/log.h"

#include <stdio.h>

static const instant began = INT64_C(1736678400000);

#define TO(more) "destinations: { d: { preset: http, url: 'https://a.example/', concurrency: 50" more " } }\n"

static int64_t delivers(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)send;
    if (stage->context)
        ++*(int64_t *)stage->context;
    answer->outcome = OUTCOME_DELIVERED;
    return 5;
}

/* Fails the first time. */
static int64_t fails_once(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    if (send->job->attempts > 1) {
        answer->outcome = OUTCOME_DELIVERED;
    } else {
        answer->code = SLICE("http:503");
        answer->text = SLICE("HTTP 503: not now");
    }
    return 5;
}

static void add_tenants(struct stage *stage, int from, int count)
{
    char tenant[32];
    for (int i = 0; i < count; i++) {
        snprintf(tenant, sizeof tenant, "t%d", from + i);
        stage_add(stage, "d", tenant, NULL, "x");
    }
}

/* The busiest tenants are counted singly, and so are known for good; all others are not. */
static void add_busy(struct stage *stage)
{
    char tenant[32];
    for (int i = 0; i < MEASURED_TENANTS_MAX; i++) {
        snprintf(tenant, sizeof tenant, "busy%d", i);
        for (int n = 0; n < 40; n++)
            stage_add(stage, "d", tenant, NULL, "x");
    }
    stage_run_for(stage, MINUTE_MS);
}

/* How many are known but those. */
static size_t known(const struct stage *stage)
{
    size_t count = 0;
    size_t cursor = 0;
    for (struct map_entry *entry; (entry = map_next(&stage->engine->lanes.by_id, &cursor));)
        count += ((const struct lane_state *)entry->value)->tenant[0] == 't';
    return count;
}

/* By the store's number of it. */
static int64_t lane_id(const struct stage *stage, const char *tenant)
{
    struct arena memory = { 0 };
    struct lane *lanes;
    struct error error;
    size_t count;
    int64_t id = 0;
    struct store_reader *reader = stage->engine->reader;
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
    struct stage stage = { .destination = delivers, .context = &sent };
    size_t most = 0;
    stage_begin(&stage, TO(""), began);
    for (int i = 0; i < TENANTS; i += WAVE) {
        add_tenants(&stage, i, WAVE);
        stage_run_for(&stage, MINUTE_MS);
        most = stage.engine->lanes.by_id.count > most ? stage.engine->lanes.by_id.count : most;
    }
    check(most <= 20 * WAVE, "%zu lanes at most", most); /* of the last quarter of an hour, and some that are not looked at yet */
    stage_run_for(&stage, 20 * MINUTE_MS);
    assert_in_range(stage.engine->lanes.by_id.count, 0, MEASURED_TENANTS_MAX);
    assert_int_equal(dest_find(stage.engine, SLICE("d"))->queue.lanes, stage.engine->lanes.by_id.count);
    assert_int_equal(sent, TENANTS);

    add_tenants(&stage, 500, 1000); /* some of them again */
    stage_run_for(&stage, MINUTE_MS);
    assert_in_range(stage.engine->lanes.by_id.count, 1000, 1000 + MEASURED_TENANTS_MAX);
    assert_int_equal(sent, TENANTS + 1000);
    stage_restart(&stage); /* all are known for a while */
    assert_int_equal(stage.engine->lanes.by_id.count, TENANTS);
    stage_run_for(&stage, 30 * MINUTE_MS);
    assert_in_range(stage.engine->lanes.by_id.count, 0, MEASURED_TENANTS_MAX);
    stage_end(&stage);
}

/* Its job waits for hours, and is sent when its time has come. */
static void a_job_that_waits_is_not_forgotten(void **state)
{
    (void)state;
    struct stage stage = { .destination = fails_once };
    stage_begin(&stage, TO(", retry: { base: 3h, floor: 3h, cap: 3h, max_retries: 3 }"), began);
    add_busy(&stage);
    add_tenants(&stage, 0, 10);
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(known(&stage), 0);
    assert_int_equal(stage_counts(&stage, "d").waiting, 10 + 40 * MEASURED_TENANTS_MAX);
    assert_false(engine_place(stage.engine, lane_id(&stage, "t3"), 0, began + DAY_MS).known);
    engine_recall(stage.engine, lane_id(&stage, "t3"), SLICE("d"), SLICE("t3"));
    struct queue_place place = engine_place(stage.engine, lane_id(&stage, "t3"), 0, began + DAY_MS);
    assert_true(place.known); /* whoever asks why it waits hears where it stands */
    assert_int_equal(place.at, began + DAY_MS);
    stage_run_for(&stage, 8 * (int64_t)HOUR_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 10 + 40 * MEASURED_TENANTS_MAX);
    stage_end(&stage);
}

/* What is known of a tenant but its name keeps it: a hold, and what it has sent at its rate. */
static void what_is_known_is_kept(void **state)
{
    (void)state;
    struct stage stage = { .destination = delivers };
    struct error error;
    stage_begin(&stage, TO(", rate: { per_tenant: 1/h }"), began);
    for (int i = 0; i < MEASURED_TENANTS_MAX; i++) { /* they come first, and nobody is busier */
        char tenant[32];
        snprintf(tenant, sizeof tenant, "busy%d", i);
        stage_add(&stage, "d", tenant, NULL, "x");
    }
    stage_run_for(&stage, 10);
    add_tenants(&stage, 0, 3);
    stage_run_for(&stage, 50 * MINUTE_MS);
    assert_int_equal(known(&stage), 3);
    stage_run_for(&stage, 30 * MINUTE_MS);
    assert_int_equal(known(&stage), 0);
    assert_int_equal(stage_pause_tenant(&stage, SLICE("d"), SLICE("t1"), SLICE("unpaid"), &error), STATUS_OK);
    assert_int_equal(stage_pause_tenant(&stage, SLICE("d"), SLICE("t9"), SLICE("unpaid"), &error), STATUS_NOT_FOUND);
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(known(&stage), 1);
    stage_add(&stage, "d", "t1", "one", "x");
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(stage_job(&stage, "t1", "one").state, STATE_PENDING);
    stage_restart(&stage);
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(stage_job(&stage, "t1", "one").state, STATE_PENDING);
    assert_int_equal(stage_resume_tenant(&stage, SLICE("d"), SLICE("t1"), &error), STATUS_OK);
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(stage_job(&stage, "t1", "one").state, STATE_COMPLETED);
    stage_end(&stage);
}

/* An answer may come long after: a lane that holds a slot is not forgotten. */
static int64_t takes_its_time(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->outcome = OUTCOME_BLOCKED;
    answer->code = SLICE("http:401");
    answer->text = SLICE("HTTP 401: who are you");
    return 50 * MINUTE_MS;
}

static void an_answer_finds_its_tenant(void **state)
{
    (void)state;
    struct stage stage = { .destination = takes_its_time };
    stage_begin(&stage, TO(", timeout: 1h, blocked: tenant, breaker: { enabled: false }"), began);
    add_tenants(&stage, 0, 2);
    stage_add(&stage, "d", "t0", NULL, "x");
    stage_add(&stage, "d", "t1", NULL, "x");
    stage_run_for(&stage, 40 * MINUTE_MS);
    assert_int_equal(known(&stage), 2);
    stage_run_for(&stage, 40 * MINUTE_MS);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).mode, "normal");
    assert_int_equal(engine_destination(stage.engine, SLICE("d")).tenants_paused, 2);
    const struct measures *measures = &dest_find(stage.engine, SLICE("d"))->measures;
    assert_int_equal(measures->tenants.count, 2); /* each by its name, */
    assert_int_equal(measures->tenants.other.processed, 0); /* not as one of the others */
    stage_end(&stage);
}

/* Counts what tells of alerts. */
static int64_t tells(struct stage *stage, const struct send *send, struct answer *answer)
{
    *(int64_t *)stage->context += slice_equal(send->job->tenant, NOTIFY_TENANT);
    answer->outcome = OUTCOME_DELIVERED;
    return 5;
}

/* Between two alerts nobody remembers the lane of those who are told; the second one is told all the same. */
static void news_finds_its_lane(void **state)
{
    (void)state;
    int64_t reported = 0;
    struct stage stage = { .destination = tells, .context = &reported };
    struct error error;
    stage_begin(&stage, "notify: [{ name: ops, to: '1', through: d, on: [contingency] }]\n"
                        "destinations: { d: { preset: http, url: 'https://a.example/', concurrency: 50 },\n"
                        "  down: { preset: http, url: 'https://b.example/', contingency: { ramp: [5], stable: 1m, check: 5m } } }\n",
                began);
    add_busy(&stage);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("down"), SLICE(""), &error), STATUS_OK);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(reported, 1);
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(stage.engine->lanes.by_id.count, MEASURED_TENANTS_MAX);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("down"), &error), STATUS_OK);
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(reported, 2);
    stage_end(&stage);
}

/* ---- a store that cannot be read for a while ---- */

/* The times of jobs come just then: the store tells whose they are, so that nobody need read it. */
static void what_is_due_need_not_be_read(void **state)
{
    (void)state;
    struct stage stage = { .destination = fails_once };
    struct store *faulty;
    struct error error;
    stage_begin(&stage, TO(", retry: { base: 3h, floor: 3h, cap: 3h, max_retries: 3, jitter: 0 }"), began);
    stage.reader->ops->reader_close(stage.reader);
    assert_int_equal(store_faulty_wrap(stage.store, &faulty, &error), STATUS_OK);
    stage.store = faulty;
    assert_int_equal(faulty->ops->reader(faulty, &stage.reader, &error), STATUS_OK);
    stage_crash(&stage); /* the new engine reads that one */
    add_busy(&stage);
    add_tenants(&stage, 0, 10);
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(known(&stage), 0);
    store_faulty_set(stage.store, FAULTY_READ, 1, true, STATUS_IO);
    stage_run_for(&stage, 3 * HOUR_MS);
    store_faulty_set(stage.store, FAULTY_READ, 0, false, STATUS_IO);
    assert_int_equal(stage_counts(&stage, "d").completed, 10 + 40 * MEASURED_TENANTS_MAX);
    stage_end(&stage);
}

static int64_t refuses(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->outcome = OUTCOME_PERMANENT;
    answer->text = SLICE("it is wrong");
    return 5;
}

/*
 * A tenant that had nothing when the process began, and whose number is lower than that of one that was forgotten since, is a
 * second one all the same: none of them may fill all of the dead letters.
 */
static void a_tenant_of_before_a_start_counts(void **state)
{
    (void)state;
    struct stage stage = { .destination = delivers };
    stage_begin(&stage, "retention: { completed: 1m }\n" TO(", dead: { max: 2 }"), began);
    add_tenants(&stage, 1, 1);
    stage_run_for(&stage, 10 * MINUTE_MS); /* it has no job any more */
    add_tenants(&stage, 0, 1);
    stage_run_for(&stage, SECOND_MS);
    stage_crash(&stage);
    stage_run_for(&stage, 20 * MINUTE_MS);
    assert_int_equal(stage.engine->lanes.by_id.count, 0);
    add_tenants(&stage, 0, 1);
    stage_run_for(&stage, SECOND_MS);
    assert_int_equal(dest_find(stage.engine, SLICE("d"))->queue.tenants, 1); /* it has met nobody else */
    add_tenants(&stage, 1, 1);
    stage_run_for(&stage, SECOND_MS);
    assert_true(lane_id(&stage, "t1") < lane_id(&stage, "t0"));
    stage.destination = refuses;
    add_tenants(&stage, 0, 1);
    stage_run_for(&stage, SECOND_MS);
    assert_true(lane_dead_full(lane_find(stage.engine, lane_id(&stage, "t0"))));
    stage_end(&stage);
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
        cmocka_unit_test(a_tenant_of_before_a_start_counts),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
