/*
 * Alerts through the real engine: how news travels, what is kept, and what a crash, a reload or a clock does to it.
 */
#include "support/alert_script.h"

#include <jansson.h>
#include <stdio.h>

/* Whoever is told is away: it is tried again until it is there, and nobody is told of that. */
static void a_webhook_that_fails_is_tried_again_and_is_no_alert(void **state)
{
    struct script script = { .webhook_fails = true };
    struct world world = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(""), began);
    status_ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
    world_run_for(&world, 3 * MINUTE_MS);
    assert_int_equal(script.count, 0);
    assert_true(world.send_count > 3);
    world_crash(&world);
    script.webhook_fails = false;
    world_run_for(&world, 10 * MINUTE_MS);
    CHECK_MESSAGES(&script, "at last", "raised contingency d -");
    assert_int_equal(alert_state(&world), 1);
    world_end(&world);
}

/* It never takes it: the message ends as a dead letter of its own, which goes away, and raises nothing. */
static void news_makes_no_news(void **state)
{
    struct script script = { .webhook_fails = true };
    struct world world = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", alerts: { down: 0s }"), began);
    status_ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
    world_run_for(&world, 24 * HOUR_MS);
    assert_int_equal(world_counts(&world, "notify.ops").dead, 1);
    assert_int_equal(alert_state(&world), 1);
    assert_int_equal(alert_events(&world, "alert_raised"), 1);
    world_run_for(&world, 8 * 24 * HOUR_MS);
    assert_int_equal(world_counts(&world, "notify.ops").dead, 0);
    world_end(&world);
}

/* The destination that the news goes through dies of it: its own news does not die again and again. */
static void news_through_a_failing_destination_makes_no_news(void **state)
{
    struct script script = { .webhook_fails = true };
    struct world world = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, "notify: [{ name: sms, to: '+1', through: d, on: [all] }]\n"
                        "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" QUICK ", alerts: { dead_rate: 0.01 } },"
                        " e: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, alerts: { down: 0s } } }\n", began);
    status_ok(engine_enter_contingency(world.engine, SLICE("e"), SLICE(""), &error));
    world_run_for(&world, 24 * HOUR_MS);
    assert_int_equal(world_counts(&world, "d").dead, 1);
    assert_int_equal(alert_events(&world, "alert_raised"), 1);
    world_end(&world);
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
    struct world world = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, "notify:\n"
                        "  - { name: mail, email: users@example.org, from: insist@example.org, through: m, on: [contingency] }\n"
                        "  - { name: sms, to: '+595981000000', through: g, on: [critical], destinations: [d] }\n"
                        "  - { name: also, to: boss@example.org, through: m, on: [contingency] }\n"
                        "  - { name: other, to: '+595981000000', through: g, on: [critical], destinations: [g] }\n"
                        "destinations:\n"
                        "  d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true }\n"
                        "  g: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true }\n"
                        "  m: { url: 'smtp://127.0.0.1:25', allow_private: true }\n", began);
    status_ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE("they called"), &error));
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(world_counts(&world, "g").waiting + world_counts(&world, "g").pending, 1);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        char id[128];
        snprintf(id, sizeof id, "20250112T104000.000Z-contingency-d.raised.%s", ids[i]);
        struct job job = world_job(&world, "insist.notify", id);
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
    world_end(&world);
}

/* Each transaction that tells of a step has its record, its event and its job, or none of them. */
struct seen {
    size_t records, notes, jobs;
};
static struct seen seen;

static void see(struct world *world, const struct store_op *ops, size_t count)
{
    struct seen now = { 0 };
    (void)world;
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
    struct world world = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    seen = (struct seen){ 0 };
    world_begin(&world, TO(QUICK ", alerts: { pending: 5 }"), began);
    world.applied = see;
    alert_jobs_add(&world, "d", "A", 10);
    status_ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
    world.fail_applies = true; /* nothing reaches the store, and nothing is told */
    world_run_for(&world, 30 * SECOND_MS);
    assert_int_equal(seen.records, 0);
    assert_int_equal(script.count, 0);
    world.fail_applies = false;
    world_run_for(&world, 30 * SECOND_MS);
    assert_int_equal(seen.records, 2); /* contingency and pending, each once */
    assert_int_equal(script.count, 2);
    world_end(&world);
}

/* It ended before the store took it: nobody hears of it. */
static void what_ended_before_it_was_written_is_not_told(void **state)
{
    struct script script = { 0 };
    struct world world = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", errors: { blocked+: [http:401] }"), began);
    script.fails_with = "http:401";
    alert_jobs_add(&world, "d", "A", 2);
    while (strcmp(engine_destination(world.engine, SLICE("d")).mode, "paused") != 0)
        assert_true(world_step(&world) || world.now++ < began + 1000);
    world.fail_applies = true;
    world_run_for(&world, 20 * SECOND_MS);
    script.fails_with = NULL;
    status_ok(engine_resume(world.engine, SLICE("d"), &error));
    world_run_for(&world, 20 * SECOND_MS);
    world.fail_applies = false;
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(script.count, 0);
    assert_int_equal(alert_state(&world), 0);
    assert_int_equal(alert_cleared(&world), 0);
    world_end(&world);
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
    struct world world = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", alerts: { pending: 5 }"), began);
    status_ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
    alert_jobs_add(&world, "d", "A", 6);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(alert_state(&world), 2);
    struct config *config = config_of(TO("")); /* without the threshold */
    status_ok(engine_reload(world.engine, config, &error));
    config_unref(config);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(alert_state(&world), 1);
    assert_int_equal(script.count, 3);
    config = config_of(TOLD);
    status_ok(engine_reload(world.engine, config, &error));
    config_unref(config);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(alert_state(&world), 0);
    assert_int_equal(script.count, 4);
    config = config_of("destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true } }\n");
    status_ok(engine_reload(world.engine, config, &error));
    config_unref(config);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(alert_state(&world), 0); /* its contingency ended when it was taken out */
    assert_int_equal(script.count, 4);
    world_end(&world);
}

/* The clock goes back by hours: nothing is told twice, and what comes next is told in time. */
static void a_clock_put_back(void **state)
{
    struct script script = { 0 };
    struct world world = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", alerts: { pending: 5 }"), began);
    status_ok(engine_pause(world.engine, SLICE("d"), SLICE(""), &error));
    alert_jobs_add(&world, "d", "A", 6);
    world_run_for(&world, MINUTE_MS);
    world.now -= 5 * HOUR_MS;
    world.wake_at = world.now;
    world_run_for(&world, 5 * MINUTE_MS);
    CHECK_MESSAGES(&script, "once", "raised pending d -");
    status_ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
    status_ok(engine_resume(world.engine, SLICE("d"), &error));
    world_run_for(&world, MINUTE_MS);
    CHECK_MESSAGES(&script, "in time", "raised pending d -", "raised contingency d -");
    world_end(&world);
}

/* A new process at the very moment of an alert that is over: the next one is another, and is told. */
static void a_clock_put_back_over_a_restart(void **state)
{
    struct script script = { 0 };
    struct world world = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", contingency: { ramp: [5], stable: 1m }"), began);
    for (int i = 0; i < 2; i++) {
        status_ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
        world_run_for(&world, MINUTE_MS);
        status_ok(engine_leave_contingency(world.engine, SLICE("d"), &error));
        world_run_for(&world, 5 * MINUTE_MS);
        assert_int_equal(alert_cleared(&world), (size_t)i + 1);
        world.now = began;
        world_restart(&world);
    }
    CHECK_MESSAGES(&script, "each once", "raised contingency d -", "cleared contingency d -", "raised contingency d -",
                   "cleared contingency d -");
    world_end(&world);
}

/* Old ones go with the trail of events. */
static void what_is_over_is_kept_for_a_time(void **state)
{
    struct script script = { 0 };
    struct world world = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, "retention: { audit: 1d }\n" TO(", contingency: { ramp: [5], stable: 1m }"), began);
    status_ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
    world_run_for(&world, MINUTE_MS);
    status_ok(engine_leave_contingency(world.engine, SLICE("d"), &error));
    world_run_for(&world, 23 * HOUR_MS);
    assert_int_equal(alert_cleared(&world), 1);
    world_run_for(&world, 3 * HOUR_MS);
    assert_int_equal(alert_cleared(&world), 0);
    world_end(&world);
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
    struct world world = { .destination = alert_answers, .context = &script };
    struct error error;
    char tenant[16];
    (void)state;
    world_begin(&world, with, began);
    for (int i = 0; i < TENANTS; i++) {
        snprintf(tenant, sizeof tenant, "t%d", i);
        alert_jobs_add(&world, "d", tenant, 2);
        alert_jobs_add(&world, "e", tenant, 2);
    }
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(alert_state(&world), 2 * (ALERTS_TENANTS_MAX + 2)); /* and permanent_error, and dead */
    script.fails_with = "http:401";
    alert_jobs_add(&world, "d", "t5", 2);
    world_run_for(&world, MINUTE_MS);
    CHECK_MESSAGES(&script, "of t5", "raised tenant_blocked d t5");

    struct config *config = config_of(without);
    status_ok(engine_reload(world.engine, config, &error));
    config_unref(config);
    status_ok(world_resume_tenant(&world, SLICE("d"), SLICE("t5"), &error));
    world_run_for(&world, 30 * MINUTE_MS);
    assert_int_equal(alert_cleared(&world), 2 * ALERTS_TENANTS_MAX + 1); /* permanent_error and dead stand */
    world_run_for(&world, 25 * HOUR_MS);
    assert_int_equal(alert_cleared(&world), 0);
    world_end(&world);
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
