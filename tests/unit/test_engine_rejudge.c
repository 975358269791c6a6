/*
 * What changes while a claim is on its way to the store counts when its job is to be sent, through the real engine.
 */
#include "engine/orders.h"
#include "engine/status.h"
#include "support/configs.h"
#include "support/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const instant began = INT64_C(1736678400000); /* 2025-01-12T10:40:00Z */

#define TO(more) \
    "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, in_doubt: resend" more " } }\n"
#define OUTAGE "contingency: { ramp: [2, 10], stable: 1m, check: 5m }"

struct seen {
    int first, second;
};

static int64_t takes_all(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct seen *seen = stage->context;
    *(send->use_fallback ? &seen->second : &seen->first) += 1;
    answer->outcome = OUTCOME_DELIVERED;
    return 10 * 1000;
}

static int64_t is_down(struct stage *stage, const struct probe *probe, struct health_answer *answer)
{
    (void)stage;
    (void)probe;
    *answer = (struct health_answer){ .connected = false };
    return 1;
}

static void add(struct stage *stage, int count)
{
    for (int i = 0; i < count; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        stage_add(stage, "d", "t", id, "x");
    }
}

static void reload(struct stage *stage, const char *yaml)
{
    struct error error;
    struct config *config = config_from(slice_from(yaml), "test.yaml");
    assert_int_equal(engine_reload(stage->engine, config, &error), STATUS_OK);
    config_unref(stage->config);
    stage->config = config;
}

static void enter(struct stage *stage)
{
    struct error error;
    assert_int_equal(engine_enter_contingency(stage->engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
}

static void leave(struct stage *stage)
{
    struct error error;
    assert_int_equal(engine_leave_contingency(stage->engine, SLICE("d"), &error), STATUS_OK);
}

static void fewer_at_once(struct stage *stage)
{
    reload(stage, TO(", concurrency: 3"));
}

static void the_same_again(struct stage *stage)
{
    reload(stage, TO(", concurrency: 10"));
}

static void an_outage(struct stage *stage)
{
    enter(stage);
}

static void an_outage_and_its_end(struct stage *stage)
{
    enter(stage);
    leave(stage);
}

static const struct {
    const char *name, *yaml;
    void (*change)(struct stage *stage);
    int sent;
} cases[] = {
    /* The limit that is found by trying begins at half. */
    { "a lower limit", TO(", concurrency: 10"), fewer_at_once, 3 },
    { "a reload that changes nothing", TO(", concurrency: 10"), the_same_again, 5 },
    { "an outage", TO(", concurrency: 10, " OUTAGE), an_outage, 0 },
    { "the way back", TO(", concurrency: 10, " OUTAGE), an_outage_and_its_end, 2 },
};

static void what_counts_is_what_holds_when_it_is_sent(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seen seen = { 0 };
        struct stage stage = { .destination = takes_all, .context = &seen };
        print_message("  %s\n", cases[i].name);
        stage_begin(&stage, cases[i].yaml, began);
        stage_run_for(&stage, 1000);
        stage.commit_ms = 100;
        add(&stage, 10);
        stage_run_for(&stage, 50); /* claimed, but not written down yet */
        assert_int_equal(seen.first, 0);
        cases[i].change(&stage);
        stage_run_for(&stage, 500);
        assert_int_equal(seen.first, cases[i].sent);
        /* Those that were given back have lost nothing, and go when they may. */
        struct destination_status status = engine_destination(stage.engine, SLICE("d"));
        assert_int_equal(status.under_way, cases[i].sent);
        assert_int_equal(stage_counts(&stage, "d").running, cases[i].sent);
        assert_int_equal(stage_counts(&stage, "d").dead, 0);
        if (i == 2)
            leave(&stage);
        stage_run_for(&stage, (int64_t)30 * 60 * 1000);
        assert_int_equal(stage_counts(&stage, "d").completed, 10);
        assert_int_equal(seen.first, 10);
        stage_end(&stage);
    }
}

/* A look is one of the configuration in force: a destination whose health is checked gets none. */
static void no_look_where_health_is_checked_now(void **state)
{
    struct seen seen = { 0 };
    struct stage stage = { .destination = takes_all, .health = is_down, .context = &seen };
    (void)state;
    stage_begin(&stage, TO(", contingency: { check: 5m, maintenance: ['Sun 10:30-11:00'] }"), began);
    add(&stage, 3);
    stage_run_for(&stage, 10 * 1000);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).mode, "contingency");
    stage_run_until(&stage, began + 20 * 60 * 1000 - 1);
    assert_int_equal(seen.first, 0);
    stage.commit_ms = 100;
    stage_run_for(&stage, 50); /* the first look is claimed when the window ends */
    reload(&stage, TO(", contingency: { check: 5m }, health: { url: 'http://127.0.0.1:1/health', every: 30s }"));
    stage_run_for(&stage, 60 * 60 * 1000);
    assert_int_equal(seen.first, 0);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).mode, "contingency");
    stage_end(&stage);
}

/* The second address is used only while the first is in contingency, and only while there is one. */
static void nothing_goes_to_a_second_address_that_is_gone(void **state)
{
    (void)state;
    for (int gone = 0; gone < 2; gone++) {
        struct seen seen = { 0 };
        struct stage stage = { .destination = takes_all, .context = &seen };
        stage_begin(&stage, TO(", " OUTAGE ", fallback: { url: 'http://127.0.0.1:2/' }"), began);
        enter(&stage);
        stage_run_for(&stage, 1000);
        stage.commit_ms = 100;
        add(&stage, 2);
        stage_run_for(&stage, 50);
        if (gone)
            reload(&stage, TO(", " OUTAGE));
        else
            leave(&stage);
        stage_run_for(&stage, 500);
        assert_int_equal(seen.second, 0);
        if (gone)
            leave(&stage);
        stage_run_for(&stage, 20 * 60 * 1000);
        assert_int_equal(seen.first, 2);
        assert_int_equal(seen.second, 0);
        assert_int_equal(stage_counts(&stage, "d").completed, 2);
        stage_end(&stage);
    }
}

static int64_t always_fails(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->outcome = OUTCOME_TRANSIENT;
    answer->text = SLICE("not now");
    return 1000;
}

/* What is under way ends by the configuration that it began with: its wait, too. */
static void a_wait_adapts_by_the_configuration_of_its_send(void **state)
{
    static const char plain[] = TO(", retry: { max_retries: 1000, base: 10s, factor: 1, jitter: 0, cap: 100s }");
    static const char adaptive[] = TO(", retry: { max_retries: 1000, base: 10s, factor: 1, jitter: 0, cap: 100s, adaptive: true }");
    struct stage stage = { .destination = always_fails };
    (void)state;
    stage_begin(&stage, plain, began);
    stage_add(&stage, "d", "t", "j", "x");
    stage_run_for(&stage, 55 * 11 * 1000 + 500); /* many retries have failed, and one is under way */
    assert_int_equal(stage_counts(&stage, "d").running, 1);
    reload(&stage, adaptive);
    stage_run_for(&stage, 600);
    instant answered = began + 55 * 11 * 1000 + 1000;
    assert_int_equal(stage_job(&stage, "t", "j").run_at, answered + 10 * 1000);
    stage_run_for(&stage, 11 * 1000);
    instant next = stage_job(&stage, "t", "j").run_at;
    assert_in_range(next, answered + 11 * 1000 + 15 * 1000, answered + 11 * 1000 + 20 * 1000);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_counts_is_what_holds_when_it_is_sent),
        cmocka_unit_test(no_look_where_health_is_checked_now),
        cmocka_unit_test(nothing_goes_to_a_second_address_that_is_gone),
        cmocka_unit_test(a_wait_adapts_by_the_configuration_of_its_send),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
