/*
 * A refused job holds itself; its tenant or its destination only when others are refused too. No job and no tenant keeps
 * the others from being sent by being refused, however often somebody resumes it.
 */
#include "support/check.h"
#include "support/refusals.h"

#include "base/log.h"
#include "engine/orders.h"
#include "engine/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TO(more) "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" more " } }\n"

static void is_held(struct stage *stage, const char *tenant, const char *id)
{
    struct job job = stage_job(stage, tenant, id);
    check(job.state == STATE_WAITING && job.last_class == OUTCOME_BLOCKED && job.retry_count == 0 && job.run_at > stage->now,
          "%s: %s, %lld retries", id, job_state_name(job.state), (long long)job.retry_count);
}

/* One path that we may not use, the oldest of the queue; and after each resume the same job again. */
static void one_job_holds_itself(void **state)
{
    struct door door = { .jobs = "x" };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 5"), began);
    add_lettered(&stage, "A", 'x', 1);
    add_lettered(&stage, "A", 'a', 50);
    add_lettered(&stage, "B", 'b', 50);
    stage_run_for(&stage, 30 * SECOND_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 100);
    assert_int_equal(door.refused, 1);
    assert_string_equal(status_of(&stage).mode, "normal");
    assert_int_equal(status_of(&stage).tenants_paused, 0);
    is_held(&stage, "A", "x0");
    for (int i = 0; i < 3; i++) {
        add_lettered(&stage, "B", (char)('m' + i), 5);
        resume_d(&stage);
        stage_run_for(&stage, 10 * SECOND_MS);
        assert_int_equal(door.refused, 2 + i);
        assert_int_equal(stage_counts(&stage, "d").completed, 105 + 5 * i);
        assert_string_equal(status_of(&stage).mode, "normal");
        is_held(&stage, "A", "x0");
    }
    stage_crash(&stage);
    is_held(&stage, "A", "x0");
    door.jobs = NULL;
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(stage_job(&stage, "A", "x0").state, STATE_COMPLETED);
    assert_int_equal(reported(&stage, "blocked", NULL) + reported(&stage, "tenant_blocked", NULL), 0);
    stage_end(&stage);
}

/* Alone it looks by itself: after a minute, then each time twice as long, and hourly in the end; without a try spent. */
static void a_job_alone_looks_by_itself(void **state)
{
    static const int64_t minutes[] = { 1, 2, 4, 8, 16, 32, 60, 60, 60 };
    struct door door = { .all = true };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(""), began);
    add_lettered(&stage, "A", 'x', 1);
    stage_run_for(&stage, 10 * MINUTE_MS);
    stage_crash(&stage);
    stage_run_for(&stage, 4 * HOUR_MS);
    assert_true(door.refused >= (int)COUNT_OF(minutes));
    for (size_t i = 0; i + 1 < COUNT_OF(minutes); i++) {
        int64_t waited = door.refused_at[i + 1] - door.refused_at[i];
        check(waited >= minutes[i] * MINUTE_MS && waited < minutes[i] * MINUTE_MS + 2000, "look %zu after %lld ms", i,
              (long long)waited);
    }
    is_held(&stage, "A", "x0");
    assert_string_equal(status_of(&stage).mode, "normal");
    door.all = false;
    resume_d(&stage);
    stage_run_for(&stage, SECOND_MS);
    assert_int_equal(stage_job(&stage, "A", "x0").state, STATE_COMPLETED);
    stage_end(&stage);
}

/* Its deadline still ends it. */
static void a_held_job_ends_by_its_deadline(void **state)
{
    struct door door = { .all = true };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(""), began);
    stage_apply(&stage, &(struct store_op){ .kind = OP_INSERT, .insert = { .destination = SLICE("d"), .tenant = SLICE("A"),
                                                                           .id = SLICE("x0"), .run_at = INSTANT_NONE,
                                                                           .deadline = began + 90 * MINUTE_MS } });
    stage_run_for(&stage, 89 * MINUTE_MS);
    is_held(&stage, "A", "x0");
    stage_run_for(&stage, 2 * MINUTE_MS);
    struct job job = stage_job(&stage, "A", "x0");
    assert_int_equal(job.state, STATE_DEAD);
    assert_true(slice_equal(job.dead_code, SLICE("EXPIRED")));
    stage_end(&stage);
}

/* All of one tenant's: it is held from its second job on, and nobody else. */
static void one_tenant_is_held(void **state)
{
    static const char *const settings[] = { TO(", concurrency: 3"), TO(", concurrency: 3, blocked: tenant") };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        struct door door = { .tenants = "B" };
        struct stage stage = { .destination = guards, .context = &door };
        json_t *last = NULL;
        stage_begin(&stage, settings[i], began);
        add_lettered(&stage, "B", 'b', 20);
        add_lettered(&stage, "A", 'a', 20);
        add_lettered(&stage, "C", 'c', 20);
        stage_run_for(&stage, 50 * SECOND_MS);
        assert_int_equal(stage_counts(&stage, "d").completed, 40);
        assert_in_range(door.refused, 2, 5); /* and what was under way */
        assert_string_equal(status_of(&stage).mode, "normal");
        assert_int_equal(status_of(&stage).tenants_paused, 1);
        assert_int_equal(reported(&stage, "tenant_blocked", &last), 1);
        assert_string_equal(json_string_value(json_object_get(last, "tenant")), "B");
        const char *reason = json_string_value(json_object_get(last, "tenant_reason"));
        check(strstr(reason, "of tenant B was refused: http:403, HTTP 403: not you") != NULL, "%s", reason);
        json_decref(last);

        int before = door.refused;
        stage_crash(&stage);
        assert_int_equal(status_of(&stage).tenants_paused, 1);
        add_lettered(&stage, "A", 'A', 20);
        stage_run_for(&stage, 4 * HOUR_MS);
        assert_in_range(door.refused - before, 8, 8 * 5); /* looks, and those of the held jobs themselves */
        assert_int_equal(reported(&stage, "blocked", NULL), 0);
        assert_int_equal(stage_counts(&stage, "d").completed, 60);
        door.tenants = NULL;
        stage_run_for(&stage, HOUR_MS + MINUTE_MS);
        assert_int_equal(stage_counts(&stage, "d").completed, 80);
        assert_int_equal(status_of(&stage).tenants_paused, 0);
        assert_int_equal(reported(&stage, "tenant_unblocked", NULL), 1);
        stage_end(&stage);
    }
}

/* Everything: the destination is held, and looked at; a good look lets all of them go. */
static void a_destination_that_refuses_everything_is_held(void **state)
{
    static const char *const tenants[][4] = { { "A", "A", "A", "A" }, { "A", "B", "C", "D" } };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(tenants); i++) {
        struct door door = { .all = true };
        struct stage stage = { .destination = guards, .context = &door };
        stage_begin(&stage, TO(", concurrency: 2"), began);
        for (int t = 0; t < 4; t++)
            add_lettered(&stage, tenants[i][t], (char)('a' + t), 50);
        stage_run_for(&stage, 30 * SECOND_MS);
        struct destination_status status = status_of(&stage);
        assert_in_range(door.refused, 2, 4);
        assert_string_equal(status.mode, "paused");
        assert_string_equal(status.held_by, "blocked");
        assert_in_range(status.held_since, began, began + SECOND_MS);
        assert_in_range(status.look_at, began + MINUTE_MS, began + MINUTE_MS + SECOND_MS);
        assert_non_null(strstr(status.pause_reason, "was refused: http:403"));
        assert_int_equal(reported(&stage, "blocked", NULL), 1);
        int before = door.refused;
        stage_run_until(&stage, began + 35 * MINUTE_MS); /* looks after 1, 2, 4, 8, 16 and 32 minutes */
        assert_int_equal(door.refused - before, 6);
        stage_crash(&stage);
        assert_string_equal(status_of(&stage).held_by, "blocked");
        stage_run_until(&stage, began + 60 * MINUTE_MS);
        assert_int_equal(door.refused - before, 6);
        assert_int_equal(stage_counts(&stage, "d").dead, 0);
        door.all = false;
        stage_run_until(&stage, began + 70 * MINUTE_MS);
        assert_string_equal(status_of(&stage).mode, "normal");
        assert_int_equal(stage_counts(&stage, "d").completed, 200);
        assert_int_equal(reported(&stage, "unblocked", NULL), 1);
        assert_int_equal(status_of(&stage).tenants_paused, 0);
        stage_end(&stage);
    }
}

/* An operator need not wait for a look; when nothing has changed, the same decision is made again. */
static void resuming_asks_again(void **state)
{
    struct door door = { .all = true };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 2"), began);
    add_lettered(&stage, "A", 'a', 20);
    add_lettered(&stage, "B", 'b', 20);
    for (int i = 1; i <= 3; i++) {
        stage_run_for(&stage, 10 * SECOND_MS);
        assert_string_equal(status_of(&stage).held_by, "blocked");
        assert_int_equal(reported(&stage, "blocked", NULL), i);
        assert_true(door.refused <= 8 * i);
        resume_d(&stage);
    }
    door.all = false;
    resume_d(&stage);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 40);
    assert_string_equal(status_of(&stage).mode, "normal");
    stage_end(&stage);
}

/* Two tenants with bad accounts and a third that has a job now and then: it never waits for long. */
static void two_bad_tenants_stop_no_third(void **state)
{
    struct door door = { .tenants = "AB" };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 2"), began);
    add_lettered(&stage, "A", 'a', 200);
    add_lettered(&stage, "B", 'b', 200);
    int late = 0;
    for (int i = 0; i < 100; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        stage_add(&stage, "d", "C", id, "x");
        stage_run_for(&stage, 2 * MINUTE_MS);
        late += stage_job(&stage, "C", id).state != STATE_COMPLETED;
    }
    assert_int_equal(late, 0);
    assert_true(reported(&stage, "blocked", NULL) <= 1);
    stage_end(&stage);
}

/* The same with one that has not had a job for hours: it waits for a look, and not until the others' turn comes. */
static void a_quiet_tenant_waits_a_minute(void **state)
{
    struct door door = { .tenants = "AB" };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 2"), began);
    add_lettered(&stage, "C", 'c', 1);
    stage_run_for(&stage, MINUTE_MS);
    add_lettered(&stage, "A", 'a', 20);
    add_lettered(&stage, "B", 'b', 20);
    stage_run_for(&stage, 5 * HOUR_MS);
    assert_string_equal(status_of(&stage).held_by, "blocked");
    int before = door.refused;
    stage_add(&stage, "d", "C", "late", "x");
    stage_run_for(&stage, 2 * MINUTE_MS);
    assert_int_equal(stage_job(&stage, "C", "late").state, STATE_COMPLETED);
    assert_true(door.refused - before <= 40); /* that let the others try once more, and they are held again */
    stage_run_for(&stage, MINUTE_MS);
    assert_true(strcmp(status_of(&stage).held_by ? status_of(&stage).held_by : "", "paused") != 0);
    stage_end(&stage);
}

/* One that is refused itself hastens nothing more: accounts get locked. */
static void a_refused_newcomer_hastens_once(void **state)
{
    struct door door = { .all = true };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 2"), began);
    add_lettered(&stage, "A", 'a', 20);
    add_lettered(&stage, "B", 'b', 20);
    stage_run_for(&stage, 5 * HOUR_MS);
    int before = door.refused;
    for (int i = 0; i < 120; i++) {
        char id[16];
        snprintf(id, sizeof id, "n%d", i);
        stage_add(&stage, "d", "N", id, "x");
        stage_run_for(&stage, MINUTE_MS);
    }
    check(door.refused - before <= 2 + 2, "%d looks in two hours", door.refused - before);
    stage_end(&stage);
}

/* Many jobs that are refused for their own sake, between good ones, of one tenant or of several. */
static void scattered_refusals_hold_only_themselves(void **state)
{
    static const int one_in[] = { 100, 10, 3 };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(one_in); i++)
        for (int tenants = 1; tenants <= 4; tenants += 3) {
            struct door door = { .one_in = one_in[i] };
            struct stage stage = { .destination = guards, .context = &door };
            stage_begin(&stage, TO(", concurrency: 4"), began);
            for (int t = 0; t < tenants; t++) {
                char tenant[2] = { (char)('A' + t), '\0' };
                add_lettered(&stage, tenant, 'a', 1200 / tenants);
            }
            stage_run_for(&stage, 10 * MINUTE_MS);
            check(stage_counts(&stage, "d").completed == 1200 - 1200 / one_in[i], "one in %d, %d tenants: %lld", one_in[i],
                  tenants, (long long)stage_counts(&stage, "d").completed);
            stage_end(&stage);
        }
}

/* What tells of alerts goes there too, and is refused: the one tenant's jobs, which are let in, do not wait for it. */
static void what_tells_of_alerts_holds_no_only_tenant(void **state)
{
    struct door door = { .tenants = "i" };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1"), began);
    for (int i = 0; i < 8; i++) {
        char id[2] = { (char)('a' + i), '\0' };
        stage_add(&stage, "d", "A", id, "x");
        stage_add(&stage, "d", "insist.notify", id, "x");
        stage_run_for(&stage, SECOND_MS);
    }
    assert_int_equal(stage_counts(&stage, "d").completed, 8);
    assert_in_range(door.refused, 2, 3);
    assert_null(status_of(&stage).held_by);
    stage_end(&stage);
}

/* Nothing leaves this machine: nobody's job is to blame, and that is said at once. */
static void what_cannot_be_sent_is_the_destinations(void **state)
{
    struct door door = { .all = true, .unsent = true };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1, blocked: tenant"), began);
    add_lettered(&stage, "A", 'a', 5);
    add_lettered(&stage, "B", 'b', 5);
    stage_run_for(&stage, 30 * SECOND_MS);
    struct destination_status status = status_of(&stage);
    assert_int_equal(door.refused, 1);
    assert_string_equal(status.held_by, "blocked");
    check(strstr(status.pause_reason, "nothing can be sent") && strstr(status.pause_reason, "certificate has expired") &&
              !strstr(status.pause_reason, "credential"), "%s", status.pause_reason);
    stage_run_for(&stage, 3 * MINUTE_MS);
    assert_int_equal(door.refused, 3);
    door.all = false;
    stage_run_for(&stage, 2 * MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 10);
    stage_end(&stage);
}

/* A newcomer may know more than the only tenant there was. */
static void a_second_tenant_looks_at_once(void **state)
{
    struct door door = { .tenants = "A" };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1"), began);
    add_lettered(&stage, "A", 'a', 10);
    stage_run_for(&stage, 40 * MINUTE_MS);
    assert_string_equal(status_of(&stage).held_by, "blocked");
    add_lettered(&stage, "B", 'b', 10);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 10);
    assert_string_equal(status_of(&stage).mode, "normal");
    assert_int_equal(status_of(&stage).tenants_paused, 1);
    stage_end(&stage);
}

/* A pause by hand is another matter: no look goes, and a resume ends both. */
static void a_pause_by_hand_stands_above(void **state)
{
    struct door door = { .all = true };
    struct stage stage = { .destination = guards, .context = &door };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1"), began);
    add_lettered(&stage, "A", 'a', 10);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE("by hand"), &error), STATUS_OK);
    int before = door.refused;
    stage_run_for(&stage, 3 * HOUR_MS);
    stage_restart(&stage);
    stage_run_for(&stage, 3 * HOUR_MS);
    assert_int_equal(door.refused, before);
    assert_string_equal(status_of(&stage).held_by, "paused");
    assert_string_equal(status_of(&stage).pause_reason, "by hand");
    door.all = false;
    resume_d(&stage);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 10);
    stage_end(&stage);
}

/* A restart in the middle of a decision: the next ones decide. Nothing is lost, and nothing spent. */
static void a_crash_between_two_refusals(void **state)
{
    struct door door = { .all = true };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1"), began);
    add_lettered(&stage, "A", 'a', 10);
    while (door.refused == 0 || sends_under_way(&stage) > 0)
        assert_true(stage_step(&stage) || stage.now++ < began + 1000);
    stage_crash(&stage);
    stage_run_for(&stage, 30 * SECOND_MS);
    assert_in_range(door.refused, 2, 3);
    assert_string_equal(status_of(&stage).held_by, "blocked");
    stage_crash(&stage);
    door.all = false;
    stage_run_for(&stage, 2 * MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 10);
    stage_end(&stage);
}

/* Other credentials may come with it. */
static void a_reload_looks_at_once(void **state)
{
    struct door door = { .all = true };
    struct stage stage = { .destination = guards, .context = &door };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1"), began);
    add_lettered(&stage, "A", 'a', 10);
    stage_run_for(&stage, 50 * MINUTE_MS);
    int before = door.refused;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(engine_reload(stage.engine, stage.config, &error), STATUS_OK);
        stage_run_for(&stage, SECOND_MS);
        assert_int_equal(door.refused, before + 1);
        door.all = false;
    }
    stage_run_for(&stage, SECOND_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 10);
    stage_end(&stage);
}

/* The first address is away and refuses us at times: looks are looks, and nothing is spent. */
static void an_outage_that_refuses_us_ends(void **state)
{
    struct door door = { .all = true, .until = began + 3 * HOUR_MS };
    struct stage stage = { .destination = guards, .context = &door };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", concurrency: 5, contingency: { ramp: [2, 5], stable: 1m, check: 1m }"), began);
    stage_run_for(&stage, SECOND_MS);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    add_lettered(&stage, "A", 'a', 20);
    add_lettered(&stage, "B", 'b', 20);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(door.refused, 0); /* an operator's: it is not looked */
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &error), STATUS_OK);
    stage_run_until(&stage, door.until);
    assert_string_equal(status_of(&stage).held_by, "blocked");
    assert_in_range(door.refused, 2, 30);
    stage_run_for(&stage, 2 * HOUR_MS);
    assert_string_equal(status_of(&stage).mode, "normal");
    assert_int_equal(stage_counts(&stage, "d").completed, 40);
    stage_end(&stage);
}

/* So many tenants at once are the destination's matter, whoever's the accounts are. */
/* 256 tenants are written down as held; of all others each job is held by itself, and who is well is served. */
static void too_many_tenants_stop_nobody(void **state)
{
    struct door door = { .tenants = "t" };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 10, blocked: tenant"), began);
    for (int i = 0; i < 300; i++) {
        char tenant[16];
        snprintf(tenant, sizeof tenant, "t%d", i);
        add_lettered(&stage, tenant, 'a', 3);
    }
    stage_run_for(&stage, 50 * SECOND_MS);
    assert_null(status_of(&stage).held_by);
    assert_int_equal(status_of(&stage).tenants_paused, 256);
    add_lettered(&stage, "good", 'g', 100);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 100);
    for (int i = 0; i < 300; i++) {
        char tenant[16];
        snprintf(tenant, sizeof tenant, "t%d", i);
        struct job job = stage_job(&stage, tenant, "a2");
        check(engine_lane_hold(stage.engine, job.lane).blocked || job.last_class == OUTCOME_BLOCKED, "%s is neither", tenant);
    }
    stage_crash(&stage);
    assert_int_equal(status_of(&stage).tenants_paused, 256);
    door.tenants = NULL;
    stage_run_for(&stage, 5 * MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 1000);
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    stage_end(&stage);
}

/* Who is held by hand is not looked at, also when it was held for refusals before. */
static void an_operator_holds_a_refused_tenant(void **state)
{
    struct door door = { .tenants = "B" };
    struct stage stage = { .destination = guards, .context = &door };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1"), began);
    add_lettered(&stage, "A", 'a', 5);
    add_lettered(&stage, "B", 'b', 5);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(status_of(&stage).tenants_paused, 1);
    struct lane_hold hold = engine_lane_hold(stage.engine, stage_job(&stage, "B", "b0").lane);
    assert_true(hold.held && hold.blocked && hold.look_at > stage.now);
    assert_int_equal(stage_pause_tenant(&stage, SLICE("d"), SLICE("B"), SLICE("unpaid"), &error), STATUS_OK);
    int before = door.refused;
    stage_run_for(&stage, 3 * HOUR_MS);
    stage_crash(&stage);
    stage_run_for(&stage, 3 * HOUR_MS);
    assert_int_equal(door.refused, before);
    hold = engine_lane_hold(stage.engine, stage_job(&stage, "B", "b0").lane);
    assert_true(hold.held && !hold.blocked);
    assert_string_equal(hold.reason, "unpaid");
    door.tenants = NULL;
    assert_int_equal(stage_resume_tenant(&stage, SLICE("d"), SLICE("B"), &error), STATUS_OK);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 10);
    stage_end(&stage);
}

/* One tenant is resumed for itself, with the jobs of it that are held. */
static void a_tenant_is_resumed_alone(void **state)
{
    struct door door = { .tenants = "BC" };
    struct stage stage = { .destination = guards, .context = &door };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1, blocked: tenant"), began);
    add_lettered(&stage, "B", 'b', 5);
    add_lettered(&stage, "C", 'c', 5);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(status_of(&stage).tenants_paused, 2);
    door.tenants = "C";
    int before = door.refused;
    assert_int_equal(stage_resume_tenant(&stage, SLICE("d"), SLICE("B"), &error), STATUS_OK);
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 5);
    assert_int_equal(door.refused, before);
    assert_int_equal(status_of(&stage).tenants_paused, 1);
    stage_end(&stage);
}

/* Versions before this one paused a destination for a refusal: that is looked at now. */
static void what_older_versions_wrote(void **state)
{
    static const char kept[] = "{\"destination\":\"d\",\"change\":\"paused\",\"reason\":\"HTTP 401\",\"since\":\"2025-01-12T10:00:00.000Z\","
                               "\"blocked\":true,\"paused\":true,\"tenants_paused\":[{\"tenant\":\"B\","
                               "\"since\":\"2025-01-12T10:10:00.000Z\",\"reason\":\"HTTP 403\",\"blocked\":true}]}";
    struct door door = { 0 };
    struct stage stage = { .destination = guards, .context = &door };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1"), began);
    add_lettered(&stage, "B", 'b', 5);
    stage_run_for(&stage, SECOND_MS);
    stage_apply(&stage, &(struct store_op){ .kind = OP_SAVE, .save = { .space = SPACE_DESTINATION, .name = SLICE("d"),
                                                                       .value = slice_from(kept) } });
    stage_crash(&stage);
    assert_string_equal(status_of(&stage).held_by, "blocked");
    assert_string_equal(status_of(&stage).pause_reason, "HTTP 401");
    assert_true(engine_lane_hold(stage.engine, stage_job(&stage, "B", "b0").lane).blocked);
    add_lettered(&stage, "B", 'c', 5);
    add_lettered(&stage, "A", 'a', 5);
    stage_run_for(&stage, 3 * MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 15);
    assert_string_equal(status_of(&stage).mode, "normal");
    stage_end(&stage);
}

static int64_t is_up_later(struct stage *stage, const struct probe *probe, struct health_answer *answer)
{
    bool up = stage->now >= began + 40 * MINUTE_MS;
    (void)probe;
    *answer = (struct health_answer){ .connected = up, .status = up ? 200 : 0, .body = SLICE("{\"status\":\"UP\"}") };
    return 5;
}

/* Where nothing could be sent a check that comes up again is the sign to look; of credentials it knows nothing. */
static void a_health_check_hastens_what_could_not_be_sent(void **state)
{
    (void)state;
    for (int unsent = 0; unsent < 2; unsent++) {
        struct door door = { .all = true, .unsent = unsent, .until = began + 40 * MINUTE_MS };
        struct stage stage = { .destination = guards, .health = is_up_later, .context = &door };
        stage_begin(&stage, TO(", concurrency: 1, contingency: { enabled: false }"
                               ", health: { url: 'http://127.0.0.1:1/health', every: 30s }"), began);
        add_lettered(&stage, "A", 'a', 5);
        stage_run_until(&stage, began + 42 * MINUTE_MS);
        assert_int_equal(stage_counts(&stage, "d").completed, unsent ? 5 : 0);
        stage_run_until(&stage, began + 70 * MINUTE_MS);
        assert_int_equal(stage_counts(&stage, "d").completed, 5);
        stage_end(&stage);
    }
}

/* In an operator's contingency all goes to the second address. It is closed for all only when two tenants are refused there. */
static void one_tenant_closes_no_second_address(void **state)
{
    static const struct { const char *more, *refused; bool closed; } rows[] = {
        { "", "A", false },
        { "", "AB", true },
        { ", blocked: tenant", "AB", false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct door door = { .tenants = rows[i].refused };
        struct stage stage = { .destination = guards, .context = &door };
        struct error error;
        char yaml[400];
        snprintf(yaml, sizeof yaml, TO(", concurrency: 1, contingency: { check: 1m }, fallback: { url: 'http://127.0.0.1:2/' }%s"),
                 rows[i].more);
        stage_begin(&stage, yaml, began);
        add_lettered(&stage, "C", 'z', 1);
        stage_run_for(&stage, SECOND_MS);
        assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
        add_lettered(&stage, "A", 'a', 5);
        stage_run_for(&stage, SECOND_MS);
        add_lettered(&stage, "B", 'b', 5);
        stage_run_for(&stage, SECOND_MS);
        add_lettered(&stage, "C", 'c', 5);
        stage_run_for(&stage, 5 * SECOND_MS);
        check(status_of(&stage).second.held == rows[i].closed, "row %zu: %d", i, status_of(&stage).second.held);
        check(stage_job(&stage, "C", "c4").state == (rows[i].closed ? STATE_PENDING : STATE_COMPLETED), "row %zu", i);
        stage_end(&stage);
    }
}

/* The first address is away all the time. */
static int64_t second_guards(struct stage *stage, const struct send *send, struct answer *answer)
{
    if (send->use_fallback)
        return guards(stage, send, answer);
    answer->code = SLICE("curl:7");
    answer->text = SLICE("CONNECTION_ERROR");
    return 20;
}

static void hold_second(struct stage *stage, struct door *door, const char *more)
{
    char yaml[400];
    struct error error;
    snprintf(yaml, sizeof yaml, TO(", concurrency: 1, contingency: { check: 1d }, fallback: { url: 'http://127.0.0.1:2/' }%s"), more);
    *stage = (struct stage){ .destination = second_guards, .context = door };
    stage_begin(stage, yaml, began);
    add_lettered(stage, "A", 'a', 5);
    add_lettered(stage, "B", 'b', 5);
    assert_int_equal(engine_enter_contingency(stage->engine, SLICE("d"), SLICE("away"), &error), STATUS_OK);
    stage_run_for(stage, SECOND_MS);
    assert_true(status_of(stage).second.held);
}

/* As the first is: one job after a minute, then ever less often, an hour at most; a good answer lets all go, whoever looks. */
static void a_second_address_is_looked_at(void **state)
{
    static const int64_t minutes[] = { 1, 2, 4, 8, 16, 32, 64, 124, 184 };
    (void)state;
    for (int always = 0; always < 2; always++) {
        struct door door = { .all = true, .until = always ? 0 : began + 30 * MINUTE_MS };
        struct stage stage;
        hold_second(&stage, &door, "");
        int before = door.refused;
        assert_in_range(before, 2, 4); /* a turn of one tenant's, and then the other's */
        instant held_at = status_of(&stage).second.since;
        assert_int_equal(status_of(&stage).second.look_at, held_at + MINUTE_MS);
        assert_string_equal(status_of(&stage).held_by, "contingency");
        if (!always) {
            stage_run_until(&stage, began + 33 * MINUTE_MS);
            assert_false(status_of(&stage).second.held);
            assert_int_equal(reported(&stage, "fallback_unblocked", NULL), 1);
            assert_int_equal(stage_counts(&stage, "d").completed, 10);
        } else {
            stage_run_until(&stage, began + 5 * MINUTE_MS);
            stage_crash(&stage); /* when to look next is kept */
            stage_run_until(&stage, began + 190 * MINUTE_MS);
            check(door.refused == before + (int)COUNT_OF(minutes), "%d refused", door.refused);
            for (size_t i = 0; i < COUNT_OF(minutes); i++) {
                int64_t at = door.refused_at[before + (int)i] - held_at - minutes[i] * MINUTE_MS;
                check(at >= 0 && at < 6000, "look %zu came %lld ms after its time", i, (long long)at);
            }
            assert_int_equal(reported(&stage, "fallback_blocked", NULL), 1);
        }
        stage_end(&stage);
    }
}

/* Tenants look in turns: one that is refused there for its own sake does not keep the second address closed. */
static void every_tenant_looks_at_the_second_address(void **state)
{
    struct door door = { .all = true };
    struct stage stage;
    (void)state;
    hold_second(&stage, &door, "");
    door.all = false;
    door.tenants = "A";
    stage_run_for(&stage, 4 * MINUTE_MS); /* two looks */
    assert_false(status_of(&stage).second.held);
    assert_int_equal(stage_job(&stage, "B", "b4").state, STATE_COMPLETED);
    assert_int_equal(stage_job(&stage, "A", "a4").state, STATE_WAITING);
    stage_end(&stage);
}

/* A reload, an operator, a newcomer where there was one tenant only. */
static void what_hastens_a_look_at_the_second_address(void **state)
{
    (void)state;
    for (int who = 0; who < 3; who++) {
        struct door door = { .all = true };
        struct error error;
        struct stage stage = { .destination = second_guards, .context = &door };
        stage_begin(&stage, TO(", concurrency: 1, contingency: { check: 1d }, fallback: { url: 'http://127.0.0.1:2/' }"), began);
        add_lettered(&stage, "A", 'a', 5);
        assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("away"), &error), STATUS_OK);
        stage_run_for(&stage, 40 * MINUTE_MS);
        assert_true(status_of(&stage).second.held);
        door.all = false;
        if (who == 0)
            assert_int_equal(engine_reload(stage.engine, stage.config, &error), STATUS_OK);
        else if (who == 1)
            resume_d(&stage);
        else
            add_lettered(&stage, "B", 'b', 1);
        stage_run_for(&stage, 10 * SECOND_MS);
        check(!status_of(&stage).second.held && stage_job(&stage, "A", "a4").state == STATE_COMPLETED, "way %d", who);
        stage_end(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_job_holds_itself),
        cmocka_unit_test(a_job_alone_looks_by_itself),
        cmocka_unit_test(a_held_job_ends_by_its_deadline),
        cmocka_unit_test(one_tenant_is_held),
        cmocka_unit_test(a_destination_that_refuses_everything_is_held),
        cmocka_unit_test(resuming_asks_again),
        cmocka_unit_test(two_bad_tenants_stop_no_third),
        cmocka_unit_test(a_quiet_tenant_waits_a_minute),
        cmocka_unit_test(a_refused_newcomer_hastens_once),
        cmocka_unit_test(scattered_refusals_hold_only_themselves),
        cmocka_unit_test(what_tells_of_alerts_holds_no_only_tenant),
        cmocka_unit_test(what_cannot_be_sent_is_the_destinations),
        cmocka_unit_test(a_second_tenant_looks_at_once),
        cmocka_unit_test(a_pause_by_hand_stands_above),
        cmocka_unit_test(a_crash_between_two_refusals),
        cmocka_unit_test(a_reload_looks_at_once),
        cmocka_unit_test(an_outage_that_refuses_us_ends),
        cmocka_unit_test(too_many_tenants_stop_nobody),
        cmocka_unit_test(an_operator_holds_a_refused_tenant),
        cmocka_unit_test(a_tenant_is_resumed_alone),
        cmocka_unit_test(what_older_versions_wrote),
        cmocka_unit_test(a_health_check_hastens_what_could_not_be_sent),
        cmocka_unit_test(one_tenant_closes_no_second_address),
        cmocka_unit_test(a_second_address_is_looked_at),
        cmocka_unit_test(every_tenant_looks_at_the_second_address),
        cmocka_unit_test(what_hastens_a_look_at_the_second_address),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
