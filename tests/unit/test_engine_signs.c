/*
 * Each sign of an outage drives the mode of its destination through the real engine, and each change is told once:
 * one event, with what led to it (S3-005, S3-009, S3-011, S3-012, A-18, C-54).
 */
#include "support/check.h"
#include "support/stage.h"

#include "base/log.h"
#include "engine/orders.h"
#include "engine/status.h"

#include <stdio.h>
#include <stdlib.h>

static const instant began = INT64_C(1736678400000); /* 2025-01-12T10:40:00Z, a Sunday */

#define TO(more) "destinations: { d: { preset: http, url: 'https://a.example/'" more " } }\n"
#define BACK "ramp: [5], stable: 1m, check: 5m"

/* How it answers while it is away. */
struct away {
    enum outcome outcome;
    const char *code;
    instant until;
    bool unwell; /* its health check says so */
};

static int64_t answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    const struct away *away = stage->context;
    (void)send;
    if (stage->now >= away->until) {
        answer->outcome = OUTCOME_DELIVERED;
        return 20;
    }
    answer->outcome = away->outcome;
    answer->code = slice_from(away->code);
    answer->text = SLICE("it is away");
    return 20;
}

static int64_t says_how_it_is(struct stage *stage, const struct probe *probe, struct health_answer *answer)
{
    const struct away *away = stage->context;
    bool up = !away->unwell || stage->now >= away->until;
    (void)probe;
    *answer = (struct health_answer){ .connected = up, .status = 200, .body = SLICE("{\"status\":\"UP\"}") };
    return 20;
}

/* All changes of the destination that were told, as "contingency(signal,timeout) recovering(checked) ...". */
static void read_told(struct stage *stage, char *text, size_t size)
{
    struct arena memory = { 0 };
    struct event *events;
    size_t count, len = 0;
    struct error error;
    assert_int_equal(stage->reader->ops->reader_events(stage->reader, 0, 1000, &memory, &events, &count, &error), STATUS_OK);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        char change[32] = "", cause[32] = "", sign[32] = "";
        if (events[i].type != EVENT_TYPE_DESTINATION)
            continue;
        char *data = strndup(events[i].data.data, events[i].data.len), *at;
        assert_non_null(data);
        if ((at = strstr(data, "\"change\":\"")))
            sscanf(at, "\"change\":\"%31[a-z_]", change);
        if ((at = strstr(data, "\"cause\":\"")) && at < strstr(data, "\"at\":"))
            sscanf(at, "\"cause\":\"%31[a-z_]", cause);
        if ((at = strstr(data, "\"sign\":\"")) && at < strstr(data, "\"at\":"))
            sscanf(at, "\"sign\":\"%31[a-z_]", sign);
        free(data);
        len += (size_t)snprintf(text + len, size - len, "%s%s(%s%s%s)", len > 0 ? " " : "", change, cause, sign[0] ? "," : "", sign);
        assert_true(len < size);
    }
    arena_release(&memory);
}

static void check_told(struct stage *stage, const char *name, const char *expected)
{
    char reported[512];
    read_told(stage, reported, sizeof reported);
    check(strcmp(reported, expected) == 0, "%s: told %s", name, reported);
}

static void add_jobs(struct stage *stage, int count)
{
    for (int i = 0; i < count; i++)
        stage_add(stage, "d", "t", NULL, "x");
}

/* One answer is enough where it is configured so; what is about one job only never is. */
static void one_sign_is_enough(void **state)
{
    (void)state;
    static const struct { const char *name; enum outcome outcome; const char *code, *sign; } cases[] = {
        { "no answer in time", OUTCOME_IN_DOUBT, "curl:28", "timeout" },
        { "the gateway's own wait", OUTCOME_NONE, "http:504", "timeout" },
        { "no connection", OUTCOME_NONE, "curl:7", "connectivity" },
        { "no name", OUTCOME_NONE, "curl:6", "connectivity" },
        { "no TLS", OUTCOME_NONE, "curl:35", "connectivity" },
        { "a server error", OUTCOME_NONE, "http:500", "service_error" },
        { "not available", OUTCOME_NONE, "http:503", "service_error" },
        { "down, as its rules say", OUTCOME_WAIT, "sifen:0162", "service_error" },
        { "too many requests", OUTCOME_NONE, "http:429", "busy" },
        { "overloaded", OUTCOME_NONE, "http:529", "busy" },
        { "the job is wrong", OUTCOME_NONE, "http:422", NULL },
        { "it has it already", OUTCOME_DUPLICATE, "http:409", NULL },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct away away = { .outcome = cases[i].outcome, .code = cases[i].code, .until = began + 8 * MINUTE_MS };
        struct stage stage = { .destination = answers, .context = &away };
        char expected[128] = "";
        stage_begin(&stage, TO(", contingency: { " BACK ", activate_on_single_event: true }"), began);
        add_jobs(&stage, 1);
        stage_run_for(&stage, MINUTE_MS);
        struct destination_status status = engine_destination(stage.engine, SLICE("d"));
        check(strcmp(status.mode, cases[i].sign ? "contingency" : "normal") == 0, "%s: %s", cases[i].name, status.mode);
        if (cases[i].sign)
            snprintf(expected, sizeof expected, "contingency(signal,%s) recovering(checked) normal(stable)", cases[i].sign);
        stage_run_for(&stage, HOUR_MS);
        check_told(&stage, cases[i].name, expected);
        stage_end(&stage);
    }
}

/* Enough of any of them open the breaker, and that leads there. */
static void many_signs_open_the_breaker(void **state)
{
    (void)state;
    static const char *const codes[] = { "curl:28", "curl:7", "http:503", "http:429", "http:529" };
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct away away = { .outcome = OUTCOME_NONE, .code = codes[i], .until = began + 8 * MINUTE_MS };
        struct stage stage = { .destination = answers, .context = &away };
        stage_begin(&stage, TO(", breaker: { min_calls: 5, window: 1m }, contingency: { " BACK " }"), began);
        add_jobs(&stage, 20);
        stage_run_for(&stage, HOUR_MS + 30 * MINUTE_MS);
        check_told(&stage, codes[i], "contingency(breaker) recovering(checked) normal(stable)");
        check(stage_counts(&stage, "d").completed == 20, "%s: not all arrived", codes[i]);
        stage_end(&stage);
    }
}

static void everything_else_that_leads_there(void **state)
{
    (void)state;
    static const struct { const char *name, *yaml; bool unwell, checked, operator; const char *reported; } cases[] = {
        { "health", TO(", health: { url: 'https://a.example/health', every: 30s, failures: 3 }, contingency: { " BACK " }"), true, true,
          false, "contingency(health) recovering(checked) normal(stable)" },
        { "a job at its end, health failing", TO(", retry: { base: 1s, floor: 1s, cap: 1s, max_retries: 1 }, health: { url: "
          "'https://a.example/health', every: 30s, failures: 100 }, contingency: { " BACK " }"), true, true, false,
          "contingency(exhausted) recovering(checked) normal(stable)" },
        { "a job at its end, nothing good between", TO(", retry: { base: 1s, floor: 1s, cap: 1s, max_retries: 3 }, contingency: { " BACK " }"),
          false, false, false, "contingency(exhausted) recovering(checked) normal(stable)" },
        { "a window", TO(", contingency: { " BACK ", maintenance: ['Sun 10:45-10:50'] }"), false, false, false,
          "contingency(maintenance,maintenance) recovering(checked) normal(stable)" },
        { "an operator", TO(", contingency: { " BACK " }"), false, false, true, "contingency(operator) recovering(operator) normal(stable)" },
        { "contingency turned off", TO(", health: { url: 'https://a.example/health', every: 30s, failures: 3 }"
          ", contingency: { enabled: false, " BACK " }"), true, true, false, "" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool operated = cases[i].operator || strstr(cases[i].yaml, "10:45");
        struct away away = { .outcome = OUTCOME_NONE, .code = "http:503", .until = operated ? began : began + 8 * MINUTE_MS,
                             .unwell = cases[i].unwell };
        struct stage stage = { .destination = answers, .health = cases[i].checked ? says_how_it_is : NULL, .context = &away };
        struct error error;
        stage_begin(&stage, cases[i].yaml, began);
        stage_run_for(&stage, 45 * SECOND_MS); /* the first check is seen before the first job */
        if (cases[i].operator)
            assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they called"), &error), STATUS_OK);
        stage_run_for(&stage, 5 * MINUTE_MS);
        add_jobs(&stage, 1);
        stage_run_for(&stage, 6 * MINUTE_MS);
        if (cases[i].operator)
            assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &error), STATUS_OK);
        stage_run_for(&stage, HOUR_MS);
        check_told(&stage, cases[i].name, cases[i].reported);
        stage_end(&stage);
    }
}

/* A relapse on the way back is told too, each step of it once, over a crash as well. */
static void there_and_back_and_there_again(void **state)
{
    (void)state;
    struct away away = { .outcome = OUTCOME_NONE, .code = "http:503", .until = began + 8 * MINUTE_MS };
    struct stage stage = { .destination = answers, .context = &away };
    stage_begin(&stage, TO(", contingency: { ramp: [1, 2], stable: 10m, check: 1m, activate_on_single_event: true }"), began);
    add_jobs(&stage, 2);
    stage_run_until(&stage, began + 8 * MINUTE_MS + 65 * SECOND_MS);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).mode, "recovering");
    stage_crash(&stage);
    stage_run_for(&stage, MINUTE_MS);
    away.until = stage.now + 5 * MINUTE_MS; /* it fails again */
    add_jobs(&stage, 10);
    stage_run_for(&stage, MINUTE_MS);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).mode, "contingency");
    stage_crash(&stage);
    stage_run_for(&stage, HOUR_MS);
    check_told(&stage, "relapse", "contingency(signal,service_error) recovering(checked) contingency(relapse,service_error) "
                                  "recovering(checked) normal(stable)");
    assert_int_equal(stage_counts(&stage, "d").completed, 12);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sign_is_enough),
        cmocka_unit_test(many_signs_open_the_breaker),
        cmocka_unit_test(everything_else_that_leads_there),
        cmocka_unit_test(there_and_back_and_there_again),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
