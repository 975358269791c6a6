/*
 * Alerts through the real engine: each is raised once and cleared once, and told once to each who wants it.
 */
#include "core/alerting/readings.h"
#include "engine/orders.h"
#include "support/alert_script.h"

#include <stdio.h>

/* S3-015, S3-063: contingency by hand. One message at its beginning and one at its end, one event each. */
static void contingency_is_told_twice(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", contingency: { ramp: [5], stable: 1m, check: 1m }"), began);
    stage_run_for(&stage, MINUTE_MS);
    status_ok(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they called"), &error));
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "began", "raised contingency d -");
    assert_int_equal(alert_state(&stage), 1);
    status_ok(engine_leave_contingency(stage.engine, SLICE("d"), &error));
    stage_run_for(&stage, 5 * MINUTE_MS);
    CHECK_MESSAGES(&script, "over", "raised contingency d -", "cleared contingency d -");
    assert_int_equal(alert_state(&stage), 0);
    assert_int_equal(alert_cleared(&stage), 1);
    assert_int_equal(alert_events(&stage, "alert_raised"), 1);
    assert_int_equal(alert_events(&stage, "alert_cleared"), 1);
    stage_end(&stage);
}

/* S3-066: after half an hour it is down, until it is back. */
static void a_long_outage_is_told(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", contingency: { ramp: [5], stable: 1m }"), began);
    status_ok(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error));
    stage_run_for(&stage, 29 * MINUTE_MS);
    CHECK_MESSAGES(&script, "not yet", "raised contingency d -");
    stage_crash(&stage); /* the time counts on */
    stage_run_for(&stage, 2 * MINUTE_MS);
    CHECK_MESSAGES(&script, "down", "raised contingency d -", "raised down d -");
    status_ok(engine_leave_contingency(stage.engine, SLICE("d"), &error));
    stage_run_for(&stage, 5 * MINUTE_MS);
    assert_int_equal(alert_state(&stage), 0);
    assert_int_equal(script.count, 4);
    stage_end(&stage);
}

/* A planned absence is told, but is no long outage: that is counted from when it should be over. */
static void a_window_is_no_long_outage(void **state)
{
    static const struct { const char *fails_with; bool jobs; } cases[] = { { NULL, true }, { NULL, false }, { "http:503", true } };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct script script = { 0 };
        struct stage stage = { .destination = alert_answers, .context = &script };
        stage_begin(&stage, TO(", contingency: { ramp: [5], stable: 1m, check: 5m, maintenance: ['Sun 11:00-12:30'] }"), began);
        stage_run_for(&stage, 30 * MINUTE_MS); /* until 11:10 */
        script.fails_with = cases[i].fails_with;
        alert_jobs_add(&stage, "d", "A", cases[i].jobs ? 5 : 0);
        stage_run_for(&stage, 75 * MINUTE_MS); /* until 12:25 */
        CHECK_MESSAGES(&script, "in the window", "raised contingency d -");
        stage_run_for(&stage, 34 * MINUTE_MS); /* until 12:59 */
        if (cases[i].fails_with) {
            CHECK_MESSAGES(&script, "it should be over", "raised contingency d -");
            stage_run_for(&stage, 2 * MINUTE_MS);
            CHECK_MESSAGES(&script, "it is not", "raised contingency d -", "raised down d -");
        } else {
            CHECK_MESSAGES(&script, "over", "raised contingency d -", "cleared contingency d -");
        }
        stage_end(&stage);
    }
}

/* S4-033 */
static void an_open_breaker_is_told(void **state)
{
    struct script script = { .fails_with = "http:503" };
    struct stage stage = { .destination = alert_answers, .context = &script };
    (void)state;
    stage_begin(&stage, TO(", breaker: { min_calls: 10, open: 30s }, contingency: { enabled: false }"
                           ", retry: { base: 10s, floor: 1s, cap: 10s, max_retries: 100 }"), began);
    alert_jobs_add(&stage, "d", "A", 50);
    stage_run_for(&stage, 9 * MINUTE_MS);
    assert_int_equal(script.count, 0);
    stage_run_for(&stage, 3 * MINUTE_MS);
    CHECK_MESSAGES(&script, "open", "raised breaker_open d -");
    script.fails_with = NULL;
    stage_run_for(&stage, 15 * MINUTE_MS);
    CHECK_MESSAGES(&script, "closed", "raised breaker_open d -", "cleared breaker_open d -");
    stage_end(&stage);
}

/* S3-064: 100 may wait. */
static void a_long_queue_is_told(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", alerts: { pending: 100 }"), began);
    status_ok(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error));
    alert_jobs_add(&stage, "d", "A", 60);
    alert_jobs_add(&stage, "d", "B", 40);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(script.count, 0);
    alert_jobs_add(&stage, "d", "B", 1);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "over", "raised pending d -");
    stage_restart(&stage);
    stage_run_for(&stage, 10 * MINUTE_MS);
    stage_crash(&stage);
    stage_run_for(&stage, 10 * MINUTE_MS);
    CHECK_MESSAGES(&script, "told once, whatever restarts", "raised pending d -");
    status_ok(engine_resume(stage.engine, SLICE("d"), &error));
    stage_run_for(&stage, 10 * MINUTE_MS);
    CHECK_MESSAGES(&script, "done", "raised pending d -", "cleared pending d -");
    stage_end(&stage);
}

/* S4-034 */
static void growth_is_told(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", alerts: { growth: 2 }"), began);
    status_ok(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error));
    alert_jobs_add(&stage, "d", "A", 150);
    stage_run_for(&stage, 15 * MINUTE_MS);
    assert_int_equal(script.count, 0);
    alert_jobs_add(&stage, "d", "A", 151);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "twice as many", "raised growth d -");
    stage_run_for(&stage, 15 * MINUTE_MS); /* it grows no more */
    CHECK_MESSAGES(&script, "usual by now", "raised growth d -", "cleared growth d -");
    stage_end(&stage);
}

/* S4-035, C-73: not while an outage or a pause holds them, and not forgotten by a crash. */
static void old_jobs_are_told(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", alerts: { age: 15m }, rate: { total: 1/m }"), began);
    alert_jobs_add(&stage, "d", "A", 100);
    stage_run_for(&stage, 10 * MINUTE_MS);
    stage_crash(&stage);
    stage_run_for(&stage, 4 * MINUTE_MS);
    assert_int_equal(script.count, 0);
    stage_run_for(&stage, 2 * MINUTE_MS);
    CHECK_MESSAGES(&script, "fifteen minutes", "raised age d -");
    stage_run_for(&stage, 3 * HOUR_MS);
    CHECK_MESSAGES(&script, "all done", "raised age d -", "cleared age d -");
    status_ok(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error));
    alert_jobs_add(&stage, "d", "A", 10);
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(script.count, 2);
    stage_end(&stage);
}

static int64_t goes_without(struct stage *stage, const struct send *send, struct answer *answer)
{
    int64_t took = alert_answers(stage, send, answer);
    if (slice_equal(send->job->destination, SLICE("d")))
        answer->left_out = SLICE("Authorization");
    return took;
}

/* Sent without a header that they may not set: delivered, but told, marked and counted. */
static void jobs_without_a_header_are_counted(void **state)
{
    struct script script = { .fails_with = NULL };
    struct stage stage = { .destination = goes_without, .context = &script };
    (void)state;
    stage_begin(&stage, TO(QUICK), began);
    alert_jobs_add(&stage, "d", "A", 5);
    stage_run_for(&stage, 2 * MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 5);
    assert_int_equal(script.count, 1);
    assert_string_equal(script.messages[0], "raised headers_left_out d -");
    stage_run_for(&stage, 20 * MINUTE_MS);
    assert_int_equal(script.count, 2);
    assert_string_equal(script.messages[1], "cleared headers_left_out d -");
    stage_end(&stage);
}

/* S3-065: told with the first job, then the count, and there until somebody acknowledges it. */
static void jobs_that_die_are_counted(void **state)
{
    static const struct {
        const char *name, *code, *alert;
    } rows[] = {
        { "retries used up", "http:503", "max_retries_exceeded" },
        { "permanent", "http:400", "permanent_error" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script script = { .fails_with = rows[i].code };
        struct stage stage = { .destination = alert_answers, .context = &script };
        char text[64];
        struct arena memory;
        struct slice record;
        stage_begin(&stage, TO(QUICK ", alerts: { dead: 0 }"), began);
        stage_add(&stage, "d", "A", "first", "x");
        stage_run_for(&stage, 2 * MINUTE_MS);
        check(script.count == 1, "%s: %zu messages", rows[i].name, script.count);
        alert_jobs_add(&stage, "d", "A", 3000);
        stage_run_for(&stage, 10 * MINUTE_MS);
        assert_int_equal(stage_counts(&stage, "d").dead, 3001);
        check(script.count >= 2 && script.count <= 4, "%s: %zu messages of 3001 jobs", rows[i].name, script.count);
        for (size_t j = 0; j < script.count; j++) {
            snprintf(text, sizeof text, "%s %s d -", j == 0 ? "raised" : "grown", rows[i].alert);
            assert_string_equal(script.messages[j], text);
        }
        size_t reported = script.count;
        stage_run_for(&stage, 3 * HOUR_MS);
        assert_int_equal(script.count, reported);
        assert_int_equal(alert_notes(&stage, SPACE_ALERT, &record, &memory), 1);
        assert_true(slice_search(record, SLICE("\"count\":3001")) < record.len);
        arena_release(&memory);
        stage_end(&stage);
    }
}

/* S2-044, S2-045, S2-046 */
static void dead_letters_are_told(void **state)
{
    struct script script = { .fails_with = "http:400" };
    struct stage stage = { .destination = alert_answers, .context = &script };
    (void)state;
    stage_begin(&stage, "notify: [{ name: ops, webhook: 'http://127.0.0.1:2/', allow_private: true, on: [warning] }]\n"
                        "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" QUICK
                        ", alerts: { dead: 100, dead_per_tenant: 50, dead_rate: 0.02 } } }\n", began);
    alert_jobs_add(&stage, "d", "A", 50);
    alert_jobs_add(&stage, "d", "B", 49);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(script.count, 0);
    alert_jobs_add(&stage, "d", "A", 1);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "51 of A, 100 in all", "raised dead_per_tenant d A", "raised dead_rate d -");
    alert_jobs_add(&stage, "d", "C", 1);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(script.count, 3);
    assert_string_equal(script.messages[2], "raised dead d -");
    stage_crash(&stage); /* the hour's figures are gone: no reason to say that it is well */
    stage_run_for(&stage, 50 * MINUTE_MS);
    assert_int_equal(script.count, 3);
    script.fails_with = NULL;
    alert_jobs_add(&stage, "d", "A", 500);
    stage_run_for(&stage, 5 * MINUTE_MS);
    assert_int_equal(script.count, 4);
    assert_string_equal(script.messages[3], "cleared dead_rate d -");
    assert_int_equal(alert_state(&stage), 3); /* permanent_error, dead, and of A */
    stage_end(&stage);
}

/* S2-046: the company itself hears of its own, and of nobody else's. */
static void a_tenant_hears_of_its_own(void **state)
{
    struct script script = { .fails_with = "http:400" };
    struct stage stage = { .destination = alert_answers, .context = &script };
    (void)state;
    stage_begin(&stage, "notify: [{ name: b, webhook: 'http://127.0.0.1:2/', allow_private: true, on: [all], tenants: [B] }]\n"
                        "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" QUICK
                        ", alerts: { dead_per_tenant: 5 } } }\n", began);
    alert_jobs_add(&stage, "d", "A", 6);
    alert_jobs_add(&stage, "d", "B", 6);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "of B", "raised dead_per_tenant d B");
    stage_end(&stage);
}

/* Credentials are refused: of the destination, or of one tenant. A pause by hand is no alert. */
static void blocks_are_told(void **state)
{
    static const struct {
        const char *yaml;
        const char *raised, *cleared;
    } rows[] = {
        { TO(", errors: { blocked+: [http:401] }"), "raised blocked d -", "cleared blocked d -" },
        { TO(", errors: { blocked+: [http:401] }, blocked: tenant"), "raised tenant_blocked d A", "cleared tenant_blocked d A" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script script = { .fails_with = "http:401" };
        struct stage stage = { .destination = alert_answers, .context = &script };
        struct error error;
        stage_begin(&stage, rows[i].yaml, began);
        alert_jobs_add(&stage, "d", "A", 3);
        stage_run_for(&stage, MINUTE_MS);
        stage_crash(&stage);
        stage_run_for(&stage, MINUTE_MS);
        check(script.count == 1 && strcmp(script.messages[0], rows[i].raised) == 0, "row %zu: %zu, %s", i, script.count, script.messages[0]);
        script.fails_with = NULL;
        status_ok(engine_resume(stage.engine, SLICE("d"), &error));
        status_ok(stage_resume_tenant(&stage, SLICE("d"), SLICE("A"), &error));
        stage_run_for(&stage, MINUTE_MS);
        check(script.count == 2 && strcmp(script.messages[1], rows[i].cleared) == 0, "row %zu: %zu, %s", i, script.count, script.messages[1]);
        status_ok(engine_pause(stage.engine, SLICE("d"), SLICE("by hand"), &error));
        stage_run_for(&stage, MINUTE_MS);
        assert_int_equal(script.count, 2);
        stage_end(&stage);
    }
}

static void a_full_dead_letter_store_is_told(void **state)
{
    struct script script = { .fails_with = "http:400" };
    struct stage stage = { .destination = alert_answers, .context = &script };
    (void)state;
    stage_begin(&stage, "notify: [{ name: ops, webhook: 'http://127.0.0.1:2/', allow_private: true, on: [dead_full] }]\n"
                        "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" QUICK
                        ", dead: { max: 3 } } }\n", began);
    for (int i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%d", i);
        stage_add(&stage, "d", "A", id, "x");
    }
    stage_run_for(&stage, MINUTE_MS);
    stage_crash(&stage);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "full", "raised dead_full d -");
    stage_apply(&stage, &(struct store_op){ .kind = OP_PURGE, .job = { .tenant = SLICE("A"), .id = SLICE("j0") } });
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "fits", "raised dead_full d -", "cleared dead_full d -");
    stage_end(&stage);
}

/* Of the daemon: jobs that grow too old while nobody sends them. */
static void expired_jobs_are_told(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", job_ttl: 1h"), began);
    status_ok(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error));
    alert_jobs_add(&stage, "d", "A", 7);
    stage_run_for(&stage, 70 * MINUTE_MS);
    CHECK_MESSAGES(&script, "expired", "raised expired - -", "raised dead_letters d -"); /* and where they are */
    stage_run_for(&stage, DAY_MS);
    assert_int_equal(script.count, 2);
    stage_end(&stage);
}

/* S2-077, S2-078, S2-079, C-48: by the limit of jobs that wait; who is told is told although the store is full. */
static void a_store_that_fills_is_told(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, "limits: { pending: 100 }\n" TO(""), began);
    status_ok(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error));
    alert_jobs_add(&stage, "d", "A", 80);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(script.count, 0);
    alert_jobs_add(&stage, "d", "A", 1);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "80%", "raised store_filling - -");
    alert_jobs_add(&stage, "d", "A", 10);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "90%", "raised store_filling - -", "raised store_nearly_full - -");
    alert_jobs_add(&stage, "d", "A", 9);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "full", "raised store_filling - -", "raised store_nearly_full - -", "raised store_refusing - -");
    struct arena memory;
    struct slice newest;
    assert_int_equal(alert_notes(&stage, SPACE_ALERT, &newest, &memory), 3);
    check(slice_search(newest, SLICE("(100 jobs wait, limits.pending is 100")) < newest.len, "%.*s", SLICE_ARG(newest));
    arena_release(&memory);
    status_ok(engine_resume(stage.engine, SLICE("d"), &error));
    stage_run_for(&stage, 5 * MINUTE_MS);
    assert_int_equal(script.count, 6);
    assert_int_equal(alert_state(&stage), 0);
    stage_end(&stage);
}

/* Of what one jump passes only the highest is told; what grows beyond it is told, and what it falls back to. */
static void a_jump_is_told_once(void **state)
{
    static const struct { const char *name; int at_first, later, done; const char *messages[3]; size_t count, raised; } cases[] = {
        { "to full", 100, 0, 0, { "raised store_refusing - -" }, 1, 1 },
        { "to 95%, then full", 95, 5, 0, { "raised store_nearly_full - -", "raised store_refusing - -" }, 2, 2 },
        { "to full, then 92%", 100, 0, 8, { "raised store_refusing - -" }, 1, 1 },
        { "to full, then 85%", 100, 0, 15,
          { "raised store_refusing - -", "cleared store_refusing - -", "raised store_filling - -" }, 3, 2 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct script script = { 0 };
        struct stage stage = { .destination = alert_answers, .context = &script };
        struct error error;
        stage_begin(&stage, "limits: { pending: 100 }\n" TO(" }, e: { preset: http, url: 'http://127.0.0.1:3/', allow_private: true"), began);
        status_ok(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error));
        status_ok(engine_pause(stage.engine, SLICE("e"), SLICE(""), &error));
        alert_jobs_add(&stage, "e", "A", cases[i].done);
        alert_jobs_add(&stage, "d", "A", cases[i].at_first - cases[i].done);
        stage_run_for(&stage, MINUTE_MS);
        check(script.count == 1, "%s: %zu at first", cases[i].name, script.count);
        alert_jobs_add(&stage, "d", "A", cases[i].later);
        status_ok(engine_resume(stage.engine, SLICE("e"), &error));
        stage_run_for(&stage, 3 * MINUTE_MS);
        stage_crash(&stage); /* it is as quiet then */
        stage_run_for(&stage, 3 * MINUTE_MS);
        alert_messages_check(&script, cases[i].messages, cases[i].count, cases[i].name);
        status_ok(engine_resume(stage.engine, SLICE("d"), &error));
        stage_run_for(&stage, 5 * MINUTE_MS);
        check(script.count == 2 * cases[i].raised && alert_state(&stage) == 0, "%s: %zu at last", cases[i].name, script.count);
        stage_end(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contingency_is_told_twice),
        cmocka_unit_test(a_long_outage_is_told),
        cmocka_unit_test(a_window_is_no_long_outage),
        cmocka_unit_test(an_open_breaker_is_told),
        cmocka_unit_test(a_long_queue_is_told),
        cmocka_unit_test(growth_is_told),
        cmocka_unit_test(old_jobs_are_told),
        cmocka_unit_test(jobs_that_die_are_counted),
        cmocka_unit_test(jobs_without_a_header_are_counted),
        cmocka_unit_test(dead_letters_are_told),
        cmocka_unit_test(a_tenant_hears_of_its_own),
        cmocka_unit_test(blocks_are_told),
        cmocka_unit_test(a_full_dead_letter_store_is_told),
        cmocka_unit_test(expired_jobs_are_told),
        cmocka_unit_test(a_store_that_fills_is_told),
        cmocka_unit_test(a_jump_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
