/*
 * Alerts through the real engine: how news travels, what is kept, and what a crash, a reload or a clock does to it.
 */
#include "engine/orders.h"
#include "engine/status.h"
#include "support/alert_script.h"
#include "support/said.h"

#include <jansson.h>
#include <stdio.h>

/* Whoever is told is away: it is tried again until it is there, and nobody is told of that. */
static void a_webhook_that_fails_is_tried_again_and_is_no_alert(void **state)
{
    struct script script = { .webhook_fails = true };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(""), began);
    status_ok(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error));
    stage_run_for(&stage, 3 * MINUTE_MS);
    assert_int_equal(script.count, 0);
    assert_true(stage.send_count > 3);
    stage_crash(&stage);
    script.webhook_fails = false;
    stage_run_for(&stage, 10 * MINUTE_MS);
    CHECK_MESSAGES(&script, "at last", "raised contingency d -");
    assert_int_equal(alert_state(&stage), 1);
    stage_end(&stage);
}

/* It never takes it: the message ends as a dead letter of its own, which goes away, and raises nothing. */
static void news_makes_no_news(void **state)
{
    struct script script = { .webhook_fails = true };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", alerts: { down: 0s }"), began);
    status_ok(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error));
    stage_run_for(&stage, 24 * HOUR_MS);
    assert_int_equal(stage_counts(&stage, "notify.ops").dead, 1);
    assert_int_equal(alert_state(&stage), 1);
    assert_int_equal(alert_events(&stage, "alert_raised"), 1);
    stage_run_for(&stage, 8 * 24 * HOUR_MS);
    assert_int_equal(stage_counts(&stage, "notify.ops").dead, 0);
    stage_end(&stage);
}

/* The destination that the news goes through dies of it: its own news does not die again and again. */
static void news_through_a_failing_destination_makes_no_news(void **state)
{
    struct script script = { .webhook_fails = true };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, "notify: [{ name: sms, to: '+1', through: d, on: [all] }]\n"
                        "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" QUICK ", alerts: { dead_rate: 0.01 } },"
                        " e: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, alerts: { down: 0s } } }\n", began);
    status_ok(engine_enter_contingency(stage.engine, SLICE("e"), SLICE(""), &error));
    stage_run_for(&stage, 24 * HOUR_MS);
    assert_int_equal(stage_counts(&stage, "d").dead, 1);
    assert_int_equal(alert_events(&stage, "alert_raised"), 1);
    stage_end(&stage);
}

/* S3-067, S3-068, S3-069: what goes through other destinations. */
static void news_for_mail_and_gateways(void **state)
{
    static const char *const ids[] = { "mail", "sms", "also" };
    static const struct {
        const char *member, *value;
    } members[][4] = {
        { { "from", "insist@example.org" }, { "to", "users@example.org" }, { "subject", "[insist] critical: contingency at d" }, { "type", NULL } },
        { { "from", NULL }, { "to", "+595981000000" }, { "subject", "[insist] critical: contingency at d" }, { "type", "alert.raised" } },
        { { "from", NULL }, { "to", "boss@example.org" }, { "subject", "[insist] critical: contingency at d" }, { "type", NULL } },
    };
    struct script script = { .webhook_fails = true };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, "notify:\n"
                        "  - { name: mail, email: users@example.org, from: insist@example.org, through: m, on: [contingency] }\n"
                        "  - { name: sms, to: '+595981000000', through: g, on: [critical], destinations: [d] }\n"
                        "  - { name: also, to: boss@example.org, through: m, on: [contingency] }\n"
                        "  - { name: other, to: '+595981000000', through: g, on: [critical], destinations: [g] }\n"
                        "destinations:\n"
                        "  d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true }\n"
                        "  g: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true }\n"
                        "  m: { url: 'smtp://127.0.0.1:25', allow_private: true }\n", began);
    status_ok(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they called"), &error));
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "g").waiting + stage_counts(&stage, "g").pending, 1);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        char id[128];
        snprintf(id, sizeof id, "20250112T104000.000Z-contingency-d.raised.%s", ids[i]);
        struct job job = stage_job(&stage, "insist.notify", id);
        json_t *root = json_loadb(job.payload.data, job.payload.len, 0, NULL);
        for (size_t j = 0; j < COUNT_OF(members[i]); j++) {
            const char *value = json_string_value(json_object_get(root, members[i][j].member));
            check(value ? members[i][j].value && strcmp(value, members[i][j].value) == 0 : !members[i][j].value, "%s: %s is %s", ids[i],
                  members[i][j].member, value ? value : "absent");
        }
        const char *text = json_string_value(json_object_get(root, "text"));
        assert_non_null(text);
        assert_non_null(strstr(text, "d: contingency began: jobs are held and lose no tries (they called)\n"));
        assert_non_null(strstr(text, "incident: 20250112T104000.000Z-d\n"));
        json_decref(root);
    }
    stage_end(&stage);
}

/* Each transaction that tells of a step has its record, its event and its job, or none of them. */
struct seen {
    size_t records, notes, jobs;
};
static struct seen seen;

static void see(struct stage *stage, const struct store_op *ops, size_t count)
{
    struct seen now = { 0 };
    (void)stage;
    for (size_t i = 0; i < count; i++) {
        now.records += ops[i].kind == OP_SAVE && slice_equal(ops[i].save.space, SPACE_ALERT);
        now.notes += ops[i].kind == OP_NOTE && slice_search(ops[i].data, SLICE("alert_")) < ops[i].data.len;
        now.jobs += ops[i].kind == OP_INSERT && slice_equal(ops[i].insert.tenant, NOTIFY_TENANT);
    }
    assert_int_equal(now.records, now.notes);
    assert_int_equal(now.records, now.jobs);
    seen.records += now.records;
}

static void a_step_is_one_transaction(void **state)
{
    struct script script = { .fails_with = "http:400" };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    seen = (struct seen){ 0 };
    stage_begin(&stage, TO(QUICK ", alerts: { pending: 5 }"), began);
    stage.applied = see;
    alert_jobs_add(&stage, "d", "A", 10);
    status_ok(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error));
    stage.fail_applies = true; /* nothing reaches the store, and nothing is told but by the log, once each */
    said_begin();
    stage_run_for(&stage, 30 * SECOND_MS);
    char *said = said_end(), *first = strstr(said, "\"event\":\"alert_not_written\",\"alert\":\"contingency\"");
    assert_non_null(first);
    assert_null(strstr(strchr(first, '\n'), "\"alert\":\"contingency\""));
    assert_non_null(strstr(first, "the test's disk is full"));
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).held_by, "contingency"); /* what holds it first */
    assert_int_equal(seen.records, 0);
    assert_int_equal(script.count, 0);
    stage.fail_applies = false;
    stage_run_for(&stage, 30 * SECOND_MS);
    assert_int_equal(seen.records, 2); /* contingency and pending, each once */
    assert_int_equal(script.count, 2);
    stage_end(&stage);
}

/* It ended before the store took it: nobody hears of it. */
static void what_ended_before_it_was_written_is_not_told(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", errors: { blocked+: [http:401] }"), began);
    script.fails_with = "http:401";
    alert_jobs_add(&stage, "d", "A", 2);
    while (strcmp(engine_destination(stage.engine, SLICE("d")).mode, "paused") != 0)
        assert_true(stage_step(&stage) || stage.now++ < began + 1000);
    stage.fail_applies = true;
    stage_run_for(&stage, 20 * SECOND_MS);
    script.fails_with = NULL;
    status_ok(engine_resume(stage.engine, SLICE("d"), &error));
    stage_run_for(&stage, 20 * SECOND_MS);
    stage.fail_applies = false;
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(script.count, 0);
    assert_int_equal(alert_state(&stage), 0);
    assert_int_equal(alert_cleared(&stage), 0);
    stage_end(&stage);
}

static struct config *config_of(const char *yaml)
{
    struct config *config;
    struct buffer problems;
    buffer_init(&problems, 64 * 1024);
    if (config_parse(slice_from(yaml), "test.yaml", &config, &problems) != STATUS_OK)
        fail_msg("%s", problems.data);
    buffer_release(&problems);
    return config;
}

/* A destination that is taken out has no alerts; an entry that is taken out is told no more. */
static void a_reload_takes_away(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", alerts: { pending: 5 }"), began);
    status_ok(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error));
    alert_jobs_add(&stage, "d", "A", 6);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(alert_state(&stage), 2);
    struct config *config = config_of(TO("")); /* without the threshold */
    status_ok(engine_reload(stage.engine, config, &error));
    config_unref(config);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(alert_state(&stage), 1);
    assert_int_equal(script.count, 3);
    config = config_of(TOLD);
    status_ok(engine_reload(stage.engine, config, &error));
    config_unref(config);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(alert_state(&stage), 0);
    assert_int_equal(script.count, 4);
    config = config_of("destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true } }\n");
    status_ok(engine_reload(stage.engine, config, &error));
    config_unref(config);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(alert_state(&stage), 0); /* its contingency ended when it was taken out */
    assert_int_equal(script.count, 4);
    stage_end(&stage);
}

/* The clock goes back by hours: nothing is told twice, and what comes next is told in time. */
static void a_clock_put_back(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", alerts: { pending: 5 }"), began);
    status_ok(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error));
    alert_jobs_add(&stage, "d", "A", 6);
    stage_run_for(&stage, MINUTE_MS);
    stage.now -= 5 * HOUR_MS;
    stage.wake_at = stage.now;
    stage_run_for(&stage, 5 * MINUTE_MS);
    CHECK_MESSAGES(&script, "once", "raised pending d -");
    status_ok(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error));
    status_ok(engine_resume(stage.engine, SLICE("d"), &error));
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "in time", "raised pending d -", "raised contingency d -");
    stage_end(&stage);
}

/* A new process at the very moment of an alert that is over: the next one is another, and is told. */
static void a_clock_put_back_over_a_restart(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", contingency: { ramp: [5], stable: 1m }"), began);
    for (int i = 0; i < 2; i++) {
        status_ok(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error));
        stage_run_for(&stage, MINUTE_MS);
        status_ok(engine_leave_contingency(stage.engine, SLICE("d"), &error));
        stage_run_for(&stage, 5 * MINUTE_MS);
        assert_int_equal(alert_cleared(&stage), (size_t)i + 1);
        stage.now = began;
        stage_restart(&stage);
    }
    CHECK_MESSAGES(&script, "each once", "raised contingency d -", "cleared contingency d -", "raised contingency d -",
                   "cleared contingency d -");
    stage_end(&stage);
}

/* Old ones go with the trail of events. */
static void what_is_over_is_kept_for_a_time(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, "retention: { audit: 1d }\n" TO(", contingency: { ramp: [5], stable: 1m }"), began);
    status_ok(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error));
    stage_run_for(&stage, MINUTE_MS);
    status_ok(engine_leave_contingency(stage.engine, SLICE("d"), &error));
    stage_run_for(&stage, 23 * HOUR_MS);
    assert_int_equal(alert_cleared(&stage), 1);
    stage_run_for(&stage, 3 * HOUR_MS);
    assert_int_equal(alert_cleared(&stage), 0);
    stage_end(&stage);
}

/* Warnings about many tenants do not use up the room of what is critical about one; and all of them go in time. */
static void many_tenants(void **state)
{
    enum { TENANTS = 150 };
    static const char with[] = "retention: { audit: 1d }\n"
                               "notify: [{ name: ops, webhook: 'http://127.0.0.1:2/', allow_private: true, on: [tenant_blocked] }]\n"
                               "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" QUICK
                               ", alerts: { dead_per_tenant: 1 }, errors: { blocked+: [http:401] }, blocked: tenant },\n"
                               "  e: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" QUICK
                               ", alerts: { dead_per_tenant: 1 } } }\n";
    static const char without[] = "retention: { audit: 1d }\n"
                                  "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true },\n"
                                  "  e: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true } }\n";
    struct script script = { .fails_with = "http:400" };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    char tenant[16];
    (void)state;
    stage_begin(&stage, with, began);
    for (int i = 0; i < TENANTS; i++) {
        snprintf(tenant, sizeof tenant, "t%d", i);
        alert_jobs_add(&stage, "d", tenant, 2);
        alert_jobs_add(&stage, "e", tenant, 2);
    }
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(alert_state(&stage), 2 * (ALERTS_TENANTS_MAX + 2)); /* and permanent_error, and dead */
    script.fails_with = "http:401";
    alert_jobs_add(&stage, "d", "t5", 2);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "of t5", "raised tenant_blocked d t5");

    struct config *config = config_of(without);
    status_ok(engine_reload(stage.engine, config, &error));
    config_unref(config);
    status_ok(stage_resume_tenant(&stage, SLICE("d"), SLICE("t5"), &error));
    stage_run_for(&stage, 30 * MINUTE_MS);
    assert_int_equal(alert_cleared(&stage), 2 * ALERTS_TENANTS_MAX + 1); /* permanent_error and dead stand */
    stage_run_for(&stage, 25 * HOUR_MS);
    assert_int_equal(alert_cleared(&stage), 0);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_webhook_that_fails_is_tried_again_and_is_no_alert),
        cmocka_unit_test(news_makes_no_news),
        cmocka_unit_test(news_through_a_failing_destination_makes_no_news),
        cmocka_unit_test(news_for_mail_and_gateways),
        cmocka_unit_test(a_step_is_one_transaction),
        cmocka_unit_test(what_ended_before_it_was_written_is_not_told),
        cmocka_unit_test(a_reload_takes_away),
        cmocka_unit_test(a_clock_put_back),
        cmocka_unit_test(a_clock_put_back_over_a_restart),
        cmocka_unit_test(what_is_over_is_kept_for_a_time),
        cmocka_unit_test(many_tenants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
