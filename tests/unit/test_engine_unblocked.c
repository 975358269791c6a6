/*
 * What happens when a hold for refused answers ends: the jobs that were refused go again at once, all of them, and only those
 * that it is over for.
 */
#include "support/check.h"
#include "support/refusals.h"

#include "base/log.h"
#include "engine/orders.h"
#include "engine/status.h"

#include <stdio.h>
#include <string.h>

#define TO(more) "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" more " } }\n"

/* More than are looked at together. */
static void all_that_were_refused_go_again(void **state)
{
    struct door door = { .tenants = "", .jobs = "", .one_in = 3 };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 4"), began);
    add_lettered(&stage, "A", 'a', 600);
    stage_run_for(&stage, 30 * SECOND_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 400);
    door.one_in = 0;
    resume_d(&stage);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 600);
    stage_end(&stage);
}

/* Those of another tenant, which is still held, keep their own time. */
static void what_is_held_still_waits(void **state)
{
    struct door door = { .tenants = "BC", .jobs = "" };
    struct stage stage = { .destination = guards, .context = &door };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1, blocked: tenant"), began);
    add_lettered(&stage, "B", 'b', 5);
    add_lettered(&stage, "C", 'c', 5);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(status_of(&stage).tenants_paused, 2);
    int64_t waiting = stage_counts(&stage, "d").waiting;
    assert_true(waiting >= 4);
    door.tenants = "C";
    assert_int_equal(stage_resume_tenant(&stage, SLICE("d"), SLICE("B"), &error), STATUS_OK);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 5);
    assert_int_equal(stage_counts(&stage, "d").waiting, waiting / 2);
    stage_end(&stage);
}

static int64_t reading_ms;

static int64_t reads_in_a_while(struct stage *stage, enum status *fails)
{
    (void)stage;
    (void)fails;
    return reading_ms;
}

/* One that was refused while those before it were being looked up: a second resume is for it, too. */
static void a_resume_begins_anew(void **state)
{
    struct door door = { .tenants = "", .jobs = "xy" };
    struct stage stage = { .destination = guards, .context = &door, .reading = reads_in_a_while };
    (void)state;
    reading_ms = 0;
    stage_begin(&stage, TO(", concurrency: 4"), began);
    add_lettered(&stage, "A", 'x', 1);
    add_lettered(&stage, "A", 'a', 10);
    stage_run_for(&stage, 10 * SECOND_MS);
    reading_ms = 5 * SECOND_MS;
    resume_d(&stage);
    stage_run_for(&stage, SECOND_MS); /* it is being read */
    add_lettered(&stage, "A", 'y', 1);
    add_lettered(&stage, "A", 'b', 10);
    stage_run_for(&stage, SECOND_MS);
    assert_int_equal(stage_job(&stage, "A", "y0").state, STATE_WAITING);
    door.jobs = "";
    resume_d(&stage);
    stage_run_for(&stage, 20 * SECOND_MS);
    assert_int_equal(stage_job(&stage, "A", "x0").state, STATE_COMPLETED);
    assert_int_equal(stage_job(&stage, "A", "y0").state, STATE_COMPLETED);
    stage_end(&stage);
}

/* What is said of a job that is refused again and again ends when somebody has mended it. */
static void its_alert_ends_with_a_resume(void **state)
{
    struct door door = { .tenants = "", .jobs = "x" };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 4"), began);
    add_lettered(&stage, "A", 'x', 1);
    add_lettered(&stage, "A", 'a', 10);
    stage_run_for(&stage, 10 * MINUTE_MS);
    assert_int_equal(engine_figures(stage.engine).alerts, 1);
    door.jobs = "";
    resume_d(&stage);
    stage_run_for(&stage, 30 * SECOND_MS);
    assert_int_equal(stage_job(&stage, "A", "x0").state, STATE_COMPLETED);
    assert_int_equal(engine_figures(stage.engine).alerts, 0);
    stage_end(&stage);
}

/* A tenant that was held before everything was refused is held with all, and let go with all. */
static void a_tenants_hold_goes_into_the_destinations(void **state)
{
    struct door door = { .tenants = "B", .jobs = "" };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1"), began);
    add_lettered(&stage, "A", 'a', 5);
    add_lettered(&stage, "B", 'b', 5);
    add_lettered(&stage, "C", 'c', 5);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(status_of(&stage).tenants_paused, 1);
    door.tenants = "ABC";
    add_lettered(&stage, "A", 'd', 5);
    add_lettered(&stage, "C", 'e', 5);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_string_equal(status_of(&stage).held_by, "blocked");
    assert_int_equal(status_of(&stage).tenants_paused, 0);
    door.tenants = "";
    stage_run_for(&stage, 2 * HOUR_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 25);
    stage_end(&stage);
}

/* Other credentials may come with a reload: a held tenant is looked at as soon as a held destination. */
static void a_reload_looks_at_a_tenant_at_once(void **state)
{
    struct door door = { .tenants = "B", .jobs = "" };
    struct stage stage = { .destination = guards, .context = &door };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1, blocked: tenant"), began);
    add_lettered(&stage, "A", 'a', 5);
    add_lettered(&stage, "B", 'b', 5);
    stage_run_for(&stage, 40 * MINUTE_MS);
    assert_int_equal(status_of(&stage).tenants_paused, 1);
    door.tenants = "";
    assert_int_equal(engine_reload(stage.engine, stage.config, &error), STATUS_OK);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(status_of(&stage).tenants_paused, 0);
    assert_int_equal(stage_counts(&stage, "d").completed, 10);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_were_refused_go_again),
        cmocka_unit_test(what_is_held_still_waits),
        cmocka_unit_test(a_resume_begins_anew),
        cmocka_unit_test(its_alert_ends_with_a_resume),
        cmocka_unit_test(a_tenants_hold_goes_into_the_destinations),
        cmocka_unit_test(a_reload_looks_at_a_tenant_at_once),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
