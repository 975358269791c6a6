/*
 * How many are sent at once, with the whole engine in virtual time: a receiver that takes 20 ms, and what makes it fail.
 * Work always waits.
 */
#include "support/check.h"
#include "support/configs.h"
#include "support/stage.h"

#include "base/log.h"
#include "engine/status.h"

#include <inttypes.h>
#include <stdio.h>

/* Every row of a table but with the address sanitizer, which takes ten times as long and sees the same code in each. */
#ifdef __SANITIZE_ADDRESS__
enum { ROW_STEP = 2 };
#else
enum { ROW_STEP = 1 };
#endif

enum { ANSWER_MS = 20, CONCURRENCY = 64, STEP_MS = 50, WAITING = 400 };

static const instant began = (instant)1736678400 * 1000;

struct site {
    struct random random;
    size_t fails_in_1000;
    int64_t refuses_beyond, slows_beyond; /* 0: never */
    int64_t answer_ms;                    /* 0: ANSWER_MS */
    bool is_down;
    int64_t at_once, added;
    int64_t good, failures, latency_sum, peak;
};

static int64_t failed(struct site *site, struct answer *answer, const char *code, int64_t takes)
{
    site->failures++;
    answer->outcome = OUTCOME_NONE;
    answer->code = slice_from(code);
    answer->text = SLICE("it failed");
    return takes;
}

static int64_t site_answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    static const char *const codes[] = { "http:500", "http:503", "http:429" };
    struct site *site = stage->context;
    int64_t count = 1, takes = site->answer_ms > 0 ? site->answer_ms : ANSWER_MS;
    (void)send;
    for (const struct stage_send *other = stage->sends; other; other = other->next)
        count++;
    site->peak = count > site->peak ? count : site->peak;
    if (site->is_down)
        return failed(site, answer, "curl:7", 1);
    if (site->refuses_beyond > 0 && count > site->refuses_beyond)
        return failed(site, answer, "http:503", 5);
    if (random_below(&site->random, 1000) < site->fails_in_1000)
        return failed(site, answer, codes[random_below(&site->random, COUNT_OF(codes))], takes);
    if (site->slows_beyond > 0 && count > site->slows_beyond)
        takes = takes * count / site->slows_beyond;
    answer->outcome = OUTCOME_DELIVERED;
    site->good++;
    site->latency_sum += takes;
    return takes;
}

static void begin(struct stage *stage, struct site *site, const char *concurrency)
{
    char yaml[400];
    *stage = (struct stage){ .destination = site_answers, .context = site };
    site->random.state = 1;
    snprintf(yaml, sizeof yaml,
             "destinations: { d: { preset: http, url: 'https://a.example/', concurrency: %s"
             ", retry: { base: 5s, floor: 1s, cap: 1m, max_retries: 50 } } }\n", concurrency);
    stage_begin(stage, yaml, began);
}

/* The figures are of that time. */
static void run(struct stage *stage, int64_t ms)
{
    static const char *const tenants[] = { "A", "B", "C" };
    struct site *site = stage->context;
    site->good = site->failures = site->latency_sum = site->peak = 0;
    for (instant until = stage->now + ms; stage->now < until;) {
        struct lane_counts counts = stage_counts(stage, "d");
        for (int64_t n = counts.pending; n < WAITING; n++)
            stage_add(stage, "d", tenants[site->added++ % 3], NULL, "x");
        stage_run_for(stage, STEP_MS);
    }
}

static struct destination_status status_of(const struct stage *stage)
{
    return engine_destination(stage->engine, SLICE("d"));
}

/* At least 0.9 of what is left without the failures: they cost themselves only. */
static void random_failures(void **state)
{
    (void)state;
    static const size_t shares[] = { 0, 1, 10, 50, 200 };
    double well = 0;
    for (size_t i = 0; i < COUNT_OF(shares); i += ROW_STEP) {
        struct site site = { .fails_in_1000 = shares[i] };
        struct stage stage;
        begin(&stage, &site, "64");
        run(&stage, 10000);
        if (i == 0)
            well = (double)site.good;
        double part = (double)site.good / well, least = 0.9 * (1 - (double)shares[i] / 1000);
        check(part >= least, "%zu in 1000: %.3f of the deliveries without, not %.3f", shares[i], part, least);
        assert_string_equal(status_of(&stage).mode, "normal");
        stage_end(&stage);
    }
}

/* S3-085: it refuses beyond so many: few are refused, and it gets what it would get from one who knows. */
static void refusals(void **state)
{
    (void)state;
    static const int64_t bears[] = { 8, 20, 40 };
    for (size_t i = 0; i < COUNT_OF(bears); i += ROW_STEP) {
        double good[2];
        for (int knows = 0; knows < 2; knows++) {
            struct site site = { .refuses_beyond = bears[i] };
            struct stage stage;
            char concurrency[64];
            snprintf(concurrency, sizeof concurrency, "{ max: %d, adaptive: false }", (int)bears[i]);
            begin(&stage, &site, knows ? concurrency : "64");
            run(&stage, 10000);
            good[knows] = (double)site.good;
            run(&stage, 5000);
            good[knows] += (double)site.good;
            double share = (double)site.failures / (double)(site.failures + site.good);
            check(share <= (knows ? 0 : 0.05), "%d at once: %.3f are refused", (int)bears[i], share);
            assert_string_equal(status_of(&stage).mode, "normal");
            stage_end(&stage);
        }
        check(good[0] >= 0.85 * good[1], "%d at once: %.0f of %.0f", (int)bears[i], good[0], good[1]);
    }
}

/* 20 ms × max(1, n/C): at least 0.8 of its rate, at most twice its best time. */
static void slow_receivers(void **state)
{
    (void)state;
    static const int64_t bears[] = { 8, 20, 40 };
    for (size_t i = 0; i < COUNT_OF(bears); i += ROW_STEP) {
        struct site site = { .slows_beyond = bears[i] };
        struct stage stage;
        begin(&stage, &site, "64");
        run(&stage, 15000);
        double part = (double)site.good * ANSWER_MS / (double)(bears[i] * 15000);
        double times = (double)site.latency_sum / (double)site.good / ANSWER_MS;
        check(part >= 0.8, "%d at once: %.3f of its rate", (int)bears[i], part);
        check(times <= 2, "%d at once: %.3f times its best", (int)bears[i], times);
        stage_end(&stage);
    }
}

static int64_t never(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    answer->outcome = OUTCOME_IN_DOUBT;
    answer->code = SLICE("curl:28");
    answer->text = SLICE("no answer within the limit");
    return send->destination->timeout_ms;
}

/* It never answers: everybody has the first try before anybody has the second. */
static void never_answered(void **state)
{
    (void)state;
    struct stage stage = { .destination = never };
    char id[16];
    stage_begin(&stage, "destinations: { d: { url: 'https://a.example/', concurrency: 10, timeout: 3s, retry: { max_retries: 1 } } }\n",
                began);
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof id, "j%d", i);
        stage_add(&stage, "d", "A", id, "x");
    }
    stage_run_until(&stage, began + 12000);
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof id, "j%d", i);
        check(stage_job(&stage, "A", id).attempts > 0, "%s was not tried", id);
    }
    stage_end(&stage);
}

/* Down, and back: the first are five, however many there were before, and with a breaker or without. */
static void the_way_back_starts_at_five(void **state)
{
    (void)state;
    struct site site = { .answer_ms = 500 };
    struct stage stage;
    begin(&stage, &site, "64");
    run(&stage, 10000);
    assert_int_equal(status_of(&stage).limit.now, 64);
    assert_int_equal(status_of(&stage).limit.reason, LIMIT_MAX);
    site.is_down = true;
    run(&stage, 60000);
    assert_int_equal(status_of(&stage).limit.reason, LIMIT_OUTAGE);
    site.is_down = false;
    while (status_of(&stage).limit.reason == LIMIT_OUTAGE)
        run(&stage, STEP_MS);
    assert_int_equal(status_of(&stage).limit.now, 5);
    run(&stage, 20000);
    assert_string_equal(status_of(&stage).mode, "normal");
    assert_int_equal(status_of(&stage).limit.now, 64);
    stage_end(&stage);
}

/* What people are told. */
static void the_words(void **state)
{
    (void)state;
    static const struct { struct limit_status limit; const char *words; } cases[] = {
        { { 10, 10, LIMIT_CONFIGURED, SIGN_NONE, 0, 0 }, "10 of 10: as configured, it does not adapt" },
        { { 10, 10, LIMIT_MAX, SIGN_NONE, 0, 0 }, "10 of 10: all that is configured" },
        { { 5, 10, LIMIT_STARTS, SIGN_NONE, 0, 0 }, "5 of 10: it starts at 5 and doubles while answers are good" },
        { { 8, 64, LIMIT_BORNE, SIGN_FAILURES, 9, 0 }, "8 of 64: with 9 at once more failed" },
        { { 8, 64, LIMIT_BORNE, SIGN_SLOW, 16, 0 }, "8 of 64: with 16 at once answers took longer" },
        { { 9, 64, LIMIT_RISES, SIGN_SLOW, 8, 0 }, "9 of 64: it rises step by step while answers are good" },
        { { 4, 64, LIMIT_TRIAL, SIGN_FAILURES, 0, 0 }, "4 of 64: half is tried, to see whether the load is why so many fail" },
        { { 4, 64, LIMIT_TRIAL, SIGN_SLOW, 0, 0 }, "4 of 64: half is tried, to see whether the load is why answers take longer" },
        { { 10000, 10000, LIMIT_OUTAGE, SIGN_NONE, 0, 0 },
          "10000 of 10000: no answer was good; with the first good one it starts at 5 again" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char words[LIMIT_WORDS_BYTES];
        limit_words(&cases[i].limit, words);
        assert_string_equal(words, cases[i].words);
    }
}

/* A reload changes it at once, and back: adaptive or not. */
static void a_reload(void **state)
{
    (void)state;
    struct site site = { 0 };
    struct stage stage;
    struct error err;
    begin(&stage, &site, "{ max: 64, adaptive: false }");
    assert_int_equal(status_of(&stage).limit.now, 64);
    assert_int_equal(status_of(&stage).limit.reason, LIMIT_CONFIGURED);
    run(&stage, 100);
    assert_int_equal(site.peak, 64);
    struct config *config = config_from(SLICE("destinations: { d: { preset: http, url: 'https://a.example/', concurrency: 12 } }\n"),
                                        "test.yaml");
    assert_int_equal(engine_reload(stage.engine, config, &err), STATUS_OK);
    config_unref(config);
    assert_int_equal(status_of(&stage).limit.now, 5);
    run(&stage, 1000);
    assert_int_equal(status_of(&stage).limit.now, 12);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_failures),
        cmocka_unit_test(refusals),
        cmocka_unit_test(slow_receivers),
        cmocka_unit_test(never_answered),
        cmocka_unit_test(the_way_back_starts_at_five),
        cmocka_unit_test(the_words),
        cmocka_unit_test(a_reload),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
