/*
 * Limits of rate through the engine, over restarts and crashes. S3-029 C-66
 */
#include "engine/pull.h"
#include "support/check.h"
#include "support/stage.h"

#include <stdio.h>

static const instant began = INT64_C(1736678400000);

static int64_t delivers(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->outcome = OUTCOME_DELIVERED;
    return 1;
}

#define TO(more) "destinations: { d: { url: 'https://a.example/', in_doubt: resend, " more " } }\n"

enum how { CRASH, RESTART };

static void go_down(struct stage *stage, enum how how)
{
    if (how == CRASH)
        stage_crash(stage);
    else
        stage_restart(stage);
}

static void add_many(struct stage *stage, const char *tenant, int count)
{
    for (int i = 0; i < count; i++)
        stage_add(stage, "d", tenant, NULL, "x");
}

static const struct {
    const char *name, *yaml;
    int tenants;
    enum how how;
    int64_t life_ms; /* of each process */
    int lives;
    size_t sends_min, sends_max; /* in all */
} rows[] = {
    { "by the hour, a crash loop", TO("concurrency: 5, rate: { total: 50/h }"), 1, CRASH, 100, 200, 5, 5 },
    { "by the hour, a crash each minute for two hours", TO("concurrency: 5, rate: { total: 50/h }"), 1, CRASH, 60 * 1000, 120,
      100, 105 },
    { "by the hour, restarts", TO("concurrency: 5, rate: { total: 50/h }"), 1, RESTART, 60 * 1000, 120, 100, 105 },
    { "a tenant by the hour, a crash loop", TO("concurrency: 5, rate: { per_tenant: 10/h }"), 3, CRASH, 100, 200, 15, 15 },
    { "a tenant by the hour, a crash each minute for two hours", TO("concurrency: 5, rate: { per_tenant: 10/h }"), 3, CRASH,
      60 * 1000, 120, 60, 75 },
    { "both", TO("concurrency: 4, rate: { total: 60/h, per_tenant: 10/h }"), 3, CRASH, 60 * 1000, 60, 30, 42 },
    { "by the minute, a crash each second", TO("concurrency: 5, rate: { total: 60/m }"), 1, CRASH, 1000, 60, 60, 65 },
    { "by the second, restarts", TO("concurrency: 5, rate: { total: 20/s }"), 1, RESTART, 500, 20, 200, 220 },
    /* What a crash may forget: less than a second's worth each time. */
    { "by the second, crashes", TO("concurrency: 5, rate: { total: 20/s }"), 1, CRASH, 2000, 10, 400, 20 + 400 + 10 * 20 },
};

static void a_limit_outlives_the_process(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct stage stage = { .destination = delivers };
        stage_begin(&stage, rows[i].yaml, began);
        for (int tenant = 0; tenant < rows[i].tenants; tenant++) {
            char name[16];
            snprintf(name, sizeof name, "t%d", tenant);
            add_many(&stage, name, 1000);
        }
        for (int life = 0; life < rows[i].lives; life++) {
            stage_run_for(&stage, rows[i].life_ms);
            go_down(&stage, rows[i].how);
        }
        check(stage.send_count >= rows[i].sends_min && stage.send_count <= rows[i].sends_max, "%s: %zu sends", rows[i].name,
              stage.send_count);
        stage_end(&stage);
    }
}

/* Pull workers' leases are limited likewise. */
static void on_leased(struct lease_request *request, enum status status, const struct job *jobs, size_t count)
{
    size_t *leased = request->context;
    (void)jobs;
    check(status == STATUS_OK, "%s", status_name(status));
    *leased += count;
}

static void leases_outlive_it_too(void **state)
{
    struct stage stage = { .destination = delivers };
    size_t leased = 0;
    (void)state;
    stage_begin(&stage,
                "destinations: { d: { transport: pull, concurrency: 5, rate: { total: 30/h, per_tenant: 20/h } } }\n", began);
    add_many(&stage, "t", 100);
    add_many(&stage, "u", 100);
    for (int life = 0; life < 50; life++) {
        struct lease_request request = { .destination = SLICE("d"), .worker = SLICE("w"), .max = 100, .lease_ms = 24 * HOUR_MS,
                                         .wait_until = stage.now + 50, .done = on_leased, .context = &leased };
        engine_lease(stage.engine, &request);
        stage_run_for(&stage, 100);
        lease_release(&request);
        stage_crash(&stage);
    }
    assert_int_equal(leased, 5); /* the burst of the whole */
    stage_end(&stage);
}

/* A limit that is changed keeps what was sent; one that is taken away holds nobody. */
static void a_kept_limit_meets_another_configuration(void **state)
{
    struct stage stage = { .destination = delivers };
    struct error error;
    struct buffer problems;
    struct config *free_config, *old;
    (void)state;
    stage_begin(&stage, TO("concurrency: 5, rate: { total: 50/h }"), began);
    add_many(&stage, "t", 50);
    stage_run_for(&stage, 1000);
    assert_int_equal(stage.send_count, 5);
    buffer_init(&problems, 4096);
    assert_int_equal(config_parse(SLICE(TO("concurrency: 5")), "test.yaml", &free_config, &problems), STATUS_OK);
    old = stage.config;
    stage.config = free_config;
    stage_crash(&stage);
    stage_run_for(&stage, 1000);
    assert_int_equal(stage.send_count, 50);
    assert_int_equal(engine_reload(stage.engine, old, &error), STATUS_OK);
    add_many(&stage, "t", 50);
    stage_run_for(&stage, 1000);
    assert_true(stage.send_count < 56);
    buffer_release(&problems);
    config_unref(old);
    stage_end(&stage);
}

/* A tenant that waits for its limit goes on as soon as a reload lifts it. */
static void a_lifted_limit_counts_at_once(void **state)
{
    struct stage stage = { .destination = delivers };
    struct error error;
    struct buffer problems;
    struct config *lifted;
    (void)state;
    stage_begin(&stage, TO("concurrency: 5, rate: { per_tenant: 5/h }"), began);
    add_many(&stage, "t", 50);
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage.send_count, 5);
    buffer_init(&problems, 4096);
    assert_int_equal(config_parse(SLICE(TO("concurrency: 5")), "test.yaml", &lifted, &problems), STATUS_OK);
    assert_int_equal(engine_reload(stage.engine, lifted, &error), STATUS_OK);
    stage_run_for(&stage, 1000);
    assert_int_equal(stage.send_count, 50);
    buffer_release(&problems);
    config_unref(lifted);
    stage_end(&stage);
}

/* A tenant whose jobs are all forgotten is not known after a start; its limit is, when it comes back. */
static void a_limit_outlives_the_last_job(void **state)
{
    (void)state;
    static const enum how hows[] = { CRASH, RESTART };
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++) {
        struct stage stage = { .destination = delivers };
        stage_begin(&stage, "retention: { completed: 1s }\n" TO("concurrency: 5, rate: { per_tenant: 5/h }"), began);
        add_many(&stage, "t", 5);
        stage_run_for(&stage, 2 * MINUTE_MS);
        assert_int_equal(stage.send_count, 5);
        go_down(&stage, hows[i]);
        stage_run_for(&stage, MINUTE_MS);
        for (int added = 0; added < 3; added++)
            stage_add(&stage, "d", "t", NULL, "x");
        stage_run_for(&stage, MINUTE_MS);
        assert_int_equal(stage.send_count, 5);
        stage_run_for(&stage, HOUR_MS);
        assert_int_equal(stage.send_count, 8);
        stage_end(&stage);
    }
}

/* A note that the store refused is written with the next claim. */
static void a_refused_note_is_written_later(void **state)
{
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, TO("concurrency: 5, rate: { total: 10/h }"), began);
    stage_run_for(&stage, 1000);
    add_many(&stage, "t", 100);
    stage.fail_applies = true;
    stage_run_for(&stage, 1000); /* the claims are refused, and what they paid for is spent */
    stage.fail_applies = false;
    stage_run_for(&stage, HOUR_MS);
    size_t sent = stage.send_count;
    assert_true(sent >= 9 && sent <= 11);
    stage_crash(&stage);
    stage_run_for(&stage, 1000);
    assert_int_equal(stage.send_count, sent);
    stage_end(&stage);
}

/* A clock that was put back while nobody ran costs a burst's time, not the jump. */
static void a_note_from_the_future_does_not_hold_for_ever(void **state)
{
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, TO("concurrency: 5, rate: { total: 50/h }"), began);
    add_many(&stage, "t", 100);
    stage_run_for(&stage, 1000);
    stage.now -= INT64_C(365) * DAY_MS;
    stage_crash(&stage);
    stage_run_for(&stage, HOUR_MS);
    check(stage.send_count >= 50, "%zu sends", stage.send_count);
    stage_end(&stage);
}

static void on_leased_or_not(struct lease_request *request, enum status status, const struct job *jobs, size_t count)
{
    (void)status;
    (void)jobs;
    *(size_t *)request->context += count;
}

static size_t lease(struct stage *stage, size_t max)
{
    size_t leased = 0;
    struct lease_request request = { .destination = SLICE("d"), .worker = SLICE("w"), .max = max, .lease_ms = 24 * HOUR_MS,
                                     .wait_until = stage->now + 5, .done = on_leased_or_not, .context = &leased };
    engine_lease(stage->engine, &request);
    stage_run_for(stage, 10);
    lease_release(&request);
    return leased;
}

/* The note of a lease that the store refused is not believed to be there: the next one writes it, however small it is. */
static void a_refused_lease_is_no_note(void **state)
{
    static const char *const limits[] = { "total: 10/s", "per_tenant: 100/m" };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct stage stage = { .destination = delivers };
        char yaml[160];
        snprintf(yaml, sizeof yaml, "destinations: { d: { transport: pull, rate: { %s, burst: 100 } } }\n", limits[i]);
        stage_begin(&stage, yaml, began);
        add_many(&stage, "t", 300);
        stage_run_for(&stage, 10);
        stage.fail_applies = true;
        assert_int_equal(lease(&stage, 90), 0); /* refused, and what they paid for is spent */
        stage.fail_applies = false;
        assert_int_equal(lease(&stage, 1), 1);
        stage_crash(&stage);
        size_t leased = lease(&stage, 100);
        check(leased <= 10, "%s: %zu after a crash", limits[i], leased);
        stage_end(&stage);
    }
}

/* Reloads are no amnesty: a file that is read ten times a second lets through what the limit says. */
static void reloads_are_no_amnesty(void **state)
{
    static const struct { const char *yaml; size_t min, max; } cases[] = {
        { TO("concurrency: 5, rate: { total: 60/m }"), 60, 65 },
        { TO("concurrency: 5, rate: { per_tenant: 60/m }"), 120, 130 },
        { TO("concurrency: 5, rate: { total: 60/m, burst: 20 }"), 75, 80 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct stage stage = { .destination = delivers };
        struct error error;
        stage_begin(&stage, cases[i].yaml, began);
        add_many(&stage, "t", 300);
        add_many(&stage, "u", 300);
        for (int step = 0; step < 600; step++) {
            stage_run_for(&stage, 100);
            assert_int_equal(engine_reload(stage.engine, stage.config, &error), STATUS_OK);
        }
        check(stage.send_count >= cases[i].min && stage.send_count <= cases[i].max, "row %zu: %zu sends", i, stage.send_count);
        stage_end(&stage);
    }
}

static int64_t fails_at_first(struct stage *stage, const struct send *send, struct answer *answer)
{
    if (stage->send_count > 100)
        return delivers(stage, send, answer);
    answer->code = SLICE("http:503");
    answer->text = SLICE("HTTP 503");
    return 1;
}

/* Nor for dead letters that go back by themselves. */
static void nor_for_redrives(void **state)
{
    struct stage stage = { .destination = fails_at_first };
    struct error error;
    (void)state;
    stage_begin(&stage, TO("concurrency: 10, retry: { max_retries: 0 }, dead: { auto_redrive: { after: 1m, times: 1, rate: 6/m } }"),
                began);
    add_many(&stage, "t", 101); /* the last one goes well: it is back */
    stage_run_for(&stage, 30 * 1000);
    assert_int_equal(stage_counts(&stage, "d").dead, 100);
    for (int step = 0; step < 600; step++) {
        stage_run_for(&stage, 1000);
        assert_int_equal(engine_reload(stage.engine, stage.config, &error), STATUS_OK);
    }
    size_t redriven = stage.send_count - 101;
    check(redriven >= 40 && redriven <= 6 + 60, "%zu in ten minutes", redriven);
    stage_end(&stage);
}

/* One tenant's account is over its limit; the others are served. */
static int64_t asks_one(struct stage *stage, const struct send *send, struct answer *answer)
{
    if (!slice_equal(send->job->tenant, SLICE("over"))) {
        delivers(stage, send, answer);
        return 1000;
    }
    ++*(int64_t *)stage->context;
    answer->code = SLICE("http:429");
    answer->text = SLICE("HTTP 429: your account is over its limit");
    answer->retry_after_ms = 10 * MINUTE_MS;
    answer->slow_all = true;
    return 1;
}

/* What a tenant was asked to wait it waits, whoever runs: it is no job's wait, and a job that comes after a start waits, too. */
static void what_a_tenant_was_asked_outlives_the_process(void **state)
{
    (void)state;
    for (int row = 0; row < 4; row++) {
        int64_t asked = 0;
        struct stage stage = { .destination = asks_one, .context = &asked };
        enum how how = row % 2 ? CRASH : RESTART;
        stage_begin(&stage, TO("concurrency: 1, breaker: { enabled: false }"), began);
        add_many(&stage, "over", row < 2 ? 2 : 1); /* with one that waits for that time alone, or none */
        add_many(&stage, "served", 40);
        stage_run_for(&stage, 10 * 1000);
        check(asked == 1, "row %d: sent %d times before", row, (int)asked);
        go_down(&stage, how);
        add_many(&stage, "over", 1);
        stage_run_for(&stage, 9 * MINUTE_MS);
        check(asked == 1, "row %d: sent %d times after", row, (int)asked);
        check(stage_counts(&stage, "d").completed == 40, "row %d: the others were not served", row);
        stage_run_for(&stage, 2 * MINUTE_MS);
        check(asked > 1, "row %d: never sent again", row);
        stage_end(&stage);
    }
}

struct sent_at {
    instant at[512];
    int64_t peak; /* most at once */
};

static int64_t notes_when(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct sent_at *sent = stage->context;
    assert_true(stage->send_count <= COUNT_OF(sent->at));
    int64_t count = 1;
    for (const struct stage_send *other = stage->sends; other; other = other->next)
        count++;
    sent->peak = count > sent->peak ? count : sent->peak;
    sent->at[stage->send_count - 1] = stage->now;
    delivers(stage, send, answer);
    return 50;
}

/* S2-087 S2-088: five at a time; 100 may go at once after a pause, and in any stretch of time no more than that and what the rate brings. */
static void mail_goes_at_once_up_to_its_burst(void **state)
{
    static struct sent_at sent;
    struct stage stage = { .destination = notes_when, .context = &sent };
    (void)state;
    stage_begin(&stage, "destinations: { d: { preset: email, url: 'smtp://m.example:587' } }\n", began);
    for (int i = 0; i < 160; i++)
        stage_add(&stage, "d", i % 2 ? "a" : "b", NULL,
                  "{\"from\":\"a@a.example\",\"to\":[\"b@b.example\"],\"subject\":\"x\",\"text\":\"y\"}");
    stage_run_for(&stage, 2 * MINUTE_MS);
    assert_int_equal(stage.send_count, 160);
    assert_int_equal(sent.peak, 5);
    check(sent.at[99] <= began + 2000, "the hundredth after %lld ms", (long long)(sent.at[99] - began));
    check(sent.at[159] <= began + 37 * 1000, "the last after %lld ms", (long long)(sent.at[159] - began));
    for (size_t from = 0; from < 160; from++)
        for (size_t to = from; to < 160; to++)
            check((int64_t)(to - from + 1) <= 100 + (sent.at[to] - sent.at[from]) / 600 + 1, "%zu to %zu", from, to);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_outlives_the_process),
        cmocka_unit_test(a_limit_outlives_the_last_job),
        cmocka_unit_test(leases_outlive_it_too),
        cmocka_unit_test(a_kept_limit_meets_another_configuration),
        cmocka_unit_test(a_lifted_limit_counts_at_once),
        cmocka_unit_test(a_refused_note_is_written_later),
        cmocka_unit_test(a_note_from_the_future_does_not_hold_for_ever),
        cmocka_unit_test(a_refused_lease_is_no_note),
        cmocka_unit_test(reloads_are_no_amnesty),
        cmocka_unit_test(nor_for_redrives),
        cmocka_unit_test(what_a_tenant_was_asked_outlives_the_process),
        cmocka_unit_test(mail_goes_at_once_up_to_its_burst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
