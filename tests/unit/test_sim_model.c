#include "sim/answers.h"
#include "sim/model.h"
#include "support/check.h"

#include <math.h>

static const struct model_settings plain = { .seed = 3, .latency_ms = 200, .spread = 0, .timeout_ms = 30000 };

static struct model_reply ask(struct model *model, int64_t at_ms, int64_t job)
{
    return model_begin(model, &(struct model_request){ .at_ms = at_ms, .job = job, .attempt = 1 });
}

static void test_draws(void **state)
{
    (void)state;
    double sum = 0, squares = 0, shares = 0;
    enum { COUNT = 20000 };
    for (int64_t i = 0; i < COUNT; i++) {
        double normal = draw_normal((struct draw){ 1, DRAW_LATENCY, i, 1 });
        double share = draw_share((struct draw){ 1, DRAW_OUTCOME, i, 1 });
        assert_true(share >= 0 && share < 1);
        sum += normal;
        squares += normal * normal;
        shares += share;
    }
    assert_true(fabs(shares / COUNT - 0.5) < 0.01);
    assert_true(fabs(sum / COUNT) < 0.03);
    assert_true(fabs(squares / COUNT - 1) < 0.05);

    struct draw draw = { 1, DRAW_OUTCOME, 5, 1 };
    assert_true(draw_share(draw) == draw_share(draw));
    struct draw others[] = { { 2, DRAW_OUTCOME, 5, 1 }, { 1, DRAW_ARRIVAL, 5, 1 }, { 1, DRAW_OUTCOME, 6, 1 }, { 1, DRAW_OUTCOME, 5, 2 } };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(draw_share(others[i]) != draw_share(draw));
}

static void test_healthy(void **state)
{
    (void)state;
    struct model model;
    model_start(&model, &plain);
    for (int64_t i = 0; i < 100; i++) {
        struct model_reply reply = ask(&model, i * 10, i);
        assert_int_equal(reply.answer, MODEL_OK);
        assert_true(reply.accepted);
        assert_int_equal(reply.takes_ms, 200);
        assert_true(reply.retry_after_ms < 0);
        model_done(&model);
    }
    assert_int_equal(model.figures.requests, 100);
    assert_int_equal(model.figures.accepted, 100);
    assert_int_equal(model.figures.duplicates, 0);
    assert_int_equal(model.figures.peak_second, 100);
    assert_int_equal(model.figures.peak_at_once, 1);
}

static void test_latency_spread(void **state)
{
    (void)state;
    struct model model;
    struct model_settings settings = plain;
    int64_t below = 0;
    settings.spread = 0.5;
    model_start(&model, &settings);
    for (int64_t i = 0; i < 2000; i++) {
        struct model_reply reply = ask(&model, i * 1000, i);
        below += reply.takes_ms < 200;
        assert_true(reply.takes_ms >= 1 && reply.takes_ms <= settings.timeout_ms);
        model_done(&model);
    }
    assert_true(below > 900 && below < 1100); /* 200 ms is the median */
}

static void test_outages(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum model_failure failure;
        enum model_answer answer;
        int64_t takes_ms;
    } cases[] = {
        { "refuse", MODEL_REFUSE, MODEL_REFUSED, 1 },
        { "timeout", MODEL_TIME_OUT, MODEL_TIMED_OUT, 30000 },
        { "503", MODEL_UNAVAILABLE, MODEL_UNAVAILABLE_NOW, 200 },
        { "blocked", MODEL_BLOCK, MODEL_BLOCKED, 200 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_settings settings = plain;
        struct model model;
        enum model_failure failure;
        assert_true(model_failure_from_name(slice_from(cases[i].name), &failure));
        assert_int_equal(failure, cases[i].failure);
        assert_string_equal(model_failure_name(failure), cases[i].name);
        settings.outages[0] = (struct model_outage){ 1000, 2000, failure };
        settings.outage_count = 1;
        model_start(&model, &settings);
        assert_int_equal(ask(&model, 999, 1).answer, MODEL_OK);
        struct model_reply reply = ask(&model, 1000, 2);
        assert_int_equal(reply.answer, cases[i].answer);
        assert_int_equal(reply.takes_ms, cases[i].takes_ms);
        assert_false(reply.accepted);
        assert_int_equal(ask(&model, 1999, 3).answer, cases[i].answer);
        assert_int_equal(ask(&model, 2000, 4).answer, MODEL_OK);
        assert_int_equal(model.figures.during_outages, 2);
    }
    enum model_failure untouched = MODEL_REFUSE;
    assert_false(model_failure_from_name(SLICE("flood"), &untouched));
}

static void test_mix(void **state)
{
    (void)state;
    struct model_settings settings = plain;
    struct model model;
    settings.permanent = 0.1;
    settings.transient = 0.2;
    settings.throttled = 0.05;
    settings.lost = 0.03;
    settings.blocked = 0.02;
    model_start(&model, &settings);
    enum { COUNT = 20000 };
    for (int64_t i = 0; i < COUNT; i++) {
        struct model_reply reply = ask(&model, i, i);
        assert_int_equal(reply.accepted, reply.answer == MODEL_OK || reply.answer == MODEL_LOST);
        if (reply.answer == MODEL_LOST)
            assert_int_equal(reply.takes_ms, settings.timeout_ms);
        if (reply.answer == MODEL_THROTTLED)
            assert_int_equal(reply.retry_after_ms, 1000);
        /* A wrong job stays wrong. */
        struct model_reply again = model_begin(&model, &(struct model_request){ .at_ms = i, .job = i, .attempt = 2 });
        assert_int_equal(again.answer == MODEL_PERMANENT, reply.answer == MODEL_PERMANENT);
        model_done(&model);
        model_done(&model);
    }
    const struct {
        enum model_answer answer;
        double share;
    } expected[] = { { MODEL_PERMANENT, 0.1 }, { MODEL_TRANSIENT, 0.18 }, { MODEL_THROTTLED, 0.045 }, { MODEL_LOST, 0.027 },
                  { MODEL_BLOCKED, 0.018 } };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        double seen = (double)model.figures.answers[expected[i].answer] / (2 * COUNT);
        assert_true(fabs(seen - expected[i].share) < 0.01);
        assert_non_null(model_answer_name(expected[i].answer));
    }
}

/* What a check sees, by the kind of outage, of check and of honesty. */
static void test_health(void **state)
{
    (void)state;
    static const char *services[] = { "facturation", "batch" };
    static const struct {
        const char *name;
        enum model_failure failure;
        enum model_health honesty;
        enum health_kind kind;
        enum health_reason before, during;
    } cases[] = {
        { "503, JSON", MODEL_UNAVAILABLE, MODEL_HEALTH_TRUE, HEALTH_JSON, HEALTH_WELL, HEALTH_REFUSED },
        { "503, HTTP", MODEL_UNAVAILABLE, MODEL_HEALTH_TRUE, HEALTH_HTTP, HEALTH_WELL, HEALTH_REFUSED },
        { "503, WSDL", MODEL_UNAVAILABLE, MODEL_HEALTH_TRUE, HEALTH_WSDL, HEALTH_WELL, HEALTH_REFUSED },
        { "503, SMTP", MODEL_UNAVAILABLE, MODEL_HEALTH_TRUE, HEALTH_SMTP, HEALTH_WELL, HEALTH_REFUSED },
        { "503, a connection is no more than that", MODEL_UNAVAILABLE, MODEL_HEALTH_TRUE, HEALTH_TCP, HEALTH_WELL, HEALTH_WELL },
        { "refused, a connection", MODEL_REFUSE, MODEL_HEALTH_TRUE, HEALTH_TCP, HEALTH_WELL, HEALTH_NO_ANSWER },
        { "timeout", MODEL_TIME_OUT, MODEL_HEALTH_TRUE, HEALTH_JSON, HEALTH_WELL, HEALTH_NO_ANSWER },
        { "it lies", MODEL_REFUSE, MODEL_HEALTH_LYING, HEALTH_JSON, HEALTH_WELL, HEALTH_WELL },
        { "refused credentials are not its health", MODEL_BLOCK, MODEL_HEALTH_TRUE, HEALTH_JSON, HEALTH_WELL, HEALTH_WELL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_settings settings = plain;
        struct model model;
        struct buffer body;
        struct health_answer answer;
        const struct health_config health = { .kind = cases[i].kind, .timeout_ms = 60000,
                                              .expect_services = { .items = services, .count = 2 } };
        const struct health_expectation expected = { .kind = cases[i].kind, .timeout_ms = 60000, .services = services,
                                                     .service_count = 2 };
        settings.health = cases[i].honesty;
        settings.outages[0] = (struct model_outage){ 1000, 2000, cases[i].failure };
        settings.outage_count = 1;
        model_start(&model, &settings);
        buffer_init(&body, 1024);
        struct model_reply reply = model_check(&model, 999);
        health_answer_make(&reply, &health, &body, &answer);
        check(health_judge(&expected, &answer).reason == cases[i].before, "%s: before", cases[i].name);
        reply = model_check(&model, 1000);
        health_answer_make(&reply, &health, &body, &answer);
        check(health_judge(&expected, &answer).reason == cases[i].during, "%s: during", cases[i].name);
        assert_int_equal(model.figures.health_checks, 2);
        assert_int_equal(model.figures.requests, 0);
        buffer_release(&body);
    }
    enum model_health untouched = MODEL_HEALTH_TRUE;
    assert_true(model_health_from_name(SLICE("lying"), &untouched) && untouched == MODEL_HEALTH_LYING);
    assert_false(model_health_from_name(SLICE("good"), &untouched));
}

static void test_limit(void **state)
{
    (void)state;
    struct model_settings settings = plain;
    struct model model;
    settings.limit = (struct rate){ 2, 1000 };
    model_start(&model, &settings);
    assert_int_equal(ask(&model, 0, 1).answer, MODEL_OK);
    assert_int_equal(ask(&model, 0, 2).answer, MODEL_OK);
    struct model_reply third = ask(&model, 0, 3);
    assert_int_equal(third.answer, MODEL_THROTTLED);
    assert_int_equal(third.retry_after_ms, 1000);
    assert_int_equal(ask(&model, 2000, 4).answer, MODEL_OK);
}

static void test_collapse(void **state)
{
    (void)state;
    static const int64_t loads[] = { 10, 20, 80 };
    double goodput_before = 1e9;
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        struct model_settings settings = plain;
        struct model model;
        int64_t good = 0, time_ms = 0;
        settings.capacity = 10;
        model_start(&model, &settings);
        for (int64_t under_way = 0; under_way < loads[i] - 1; under_way++)
            ask(&model, 0, under_way);
        for (int64_t job = 0; job < 1000; job++) {
            struct model_reply reply = ask(&model, 1, 1000 + job);
            good += reply.answer == MODEL_OK;
            time_ms = reply.takes_ms;
            model_done(&model);
        }
        double goodput = (double)loads[i] / (double)time_ms * (double)good / 1000;
        if (loads[i] == 10)
            assert_int_equal(good, 1000);
        else
            assert_true(good < 1000 && time_ms > 200);
        assert_true(goodput < goodput_before);
        goodput_before = goodput;
    }
}

static void test_duplicates_and_questions(void **state)
{
    (void)state;
    struct model model;
    model_start(&model, &plain);
    struct model_request again = { .at_ms = 5, .job = 1, .attempt = 2, .had_before = true };
    assert_true(model_begin(&model, &again).accepted);
    assert_int_equal(model.figures.duplicates, 1);
    assert_int_equal(model.figures.accepted, 0);
    struct model_request question = { .at_ms = 6, .job = 1, .attempt = 1 << 20, .had_before = true, .question = true };
    assert_false(model_begin(&model, &question).accepted);
    assert_int_equal(model.figures.duplicates, 1);
}

static void test_load(void **state)
{
    (void)state;
    const struct load_settings load = { .seed = 9, .jobs = 10000, .for_ms = 3600000, .tenants = 5, .big_share = 0.6, .critical = 0.1, .high = 0.2 };
    int64_t tenants[5] = { 0 }, priorities[PRIORITY_COUNT] = { 0 }, before = 0, first_half = 0;
    for (int64_t i = 0; i < load.jobs; i++) {
        struct arrival arrival = load_arrival(&load, i);
        assert_true(arrival.at_ms >= before && arrival.at_ms < load.for_ms);
        assert_true(arrival.tenant >= 0 && arrival.tenant < 5);
        before = arrival.at_ms;
        tenants[arrival.tenant]++;
        priorities[arrival.priority]++;
        first_half += arrival.at_ms < load.for_ms / 2;
    }
    assert_int_equal(first_half, load.jobs / 2);
    assert_true(tenants[0] > 5800 && tenants[0] < 6200);
    for (int i = 1; i < 5; i++)
        assert_true(tenants[i] > 850 && tenants[i] < 1150);
    assert_true(priorities[PRIORITY_CRITICAL] > 900 && priorities[PRIORITY_CRITICAL] < 1100);
    assert_true(priorities[PRIORITY_HIGH] > 1850 && priorities[PRIORITY_HIGH] < 2150);

    const struct load_settings even = { .seed = 9, .jobs = 1000, .for_ms = 1000, .tenants = 2 };
    int64_t first = 0;
    for (int64_t i = 0; i < even.jobs; i++)
        first += load_arrival(&even, i).tenant == 0;
    assert_true(first > 430 && first < 570);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws),    cmocka_unit_test(test_healthy), cmocka_unit_test(test_latency_spread),
        cmocka_unit_test(test_outages),  cmocka_unit_test(test_mix),     cmocka_unit_test(test_health),     cmocka_unit_test(test_limit),
        cmocka_unit_test(test_collapse), cmocka_unit_test(test_duplicates_and_questions),
        cmocka_unit_test(test_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
