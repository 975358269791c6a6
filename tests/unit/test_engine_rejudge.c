/*
 * What changes while a claim is on its way to the store counts when its job is to be sent, through the real engine.
 */
#include "support/configs.h"
#include "support/world.h"

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

static int64_t takes_all(struct world *world, const struct send *send, struct answer *answer)
{
    struct seen *seen = world->context;
    *(send->use_fallback ? &seen->second : &seen->first) += 1;
    answer->outcome = OUTCOME_DELIVERED;
    return 10 * 1000;
}

static int64_t is_down(struct world *world, const struct probe *probe, struct health_answer *answer)
{
    (void)world;
    (void)probe;
    *answer = (struct health_answer){ .connected = false };
    return 1;
}

static void add(struct world *world, int count)
{
    for (int i = 0; i < count; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        world_add(world, "d", "t", id, "x");
    }
}

static void reload(struct world *world, const char *yaml)
{
    struct error error;
    struct config *config = config_from(slice_from(yaml), "test.yaml");
    assert_int_equal(engine_reload(world->engine, config, &error), STATUS_OK);
    config_unref(world->config);
    world->config = config;
}

static void enter(struct world *world)
{
    struct error error;
    assert_int_equal(engine_enter_contingency(world->engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
}

static void leave(struct world *world)
{
    struct error error;
    assert_int_equal(engine_leave_contingency(world->engine, SLICE("d"), &error), STATUS_OK);
}

static void fewer_at_once(struct world *world)
{
    reload(world, TO(", concurrency: 3"));
}

static void the_same_again(struct world *world)
{
    reload(world, TO(", concurrency: 10"));
}

static void an_outage(struct world *world)
{
    enter(world);
}

static void an_outage_and_its_end(struct world *world)
{
    enter(world);
    leave(world);
}

static const struct {
    const char *name, *yaml;
    void (*change)(struct world *world);
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
        struct world world = { .destination = takes_all, .context = &seen };
        print_message("  %s\n", cases[i].name);
        world_begin(&world, cases[i].yaml, began);
        world_run_for(&world, 1000);
        world.commit_ms = 100;
        add(&world, 10);
        world_run_for(&world, 50); /* claimed, but not written down yet */
        assert_int_equal(seen.first, 0);
        cases[i].change(&world);
        world_run_for(&world, 500);
        assert_int_equal(seen.first, cases[i].sent);
        /* Those that were given back have lost nothing, and go when they may. */
        struct destination_status status = engine_destination(world.engine, SLICE("d"));
        assert_int_equal(status.under_way, cases[i].sent);
        assert_int_equal(world_counts(&world, "d").running, cases[i].sent);
        assert_int_equal(world_counts(&world, "d").dead, 0);
        if (i == 2)
            leave(&world);
        world_run_for(&world, (int64_t)30 * 60 * 1000);
        assert_int_equal(world_counts(&world, "d").completed, 10);
        assert_int_equal(seen.first, 10);
        world_end(&world);
    }
}

/* A look is one of the configuration in force: a destination whose health is checked gets none. */
static void no_look_where_health_is_checked_now(void **state)
{
    struct seen seen = { 0 };
    struct world world = { .destination = takes_all, .health = is_down, .context = &seen };
    (void)state;
    world_begin(&world, TO(", contingency: { check: 5m, maintenance: ['Sun 10:30-11:00'] }"), began);
    add(&world, 3);
    world_run_for(&world, 10 * 1000);
    assert_string_equal(engine_destination(world.engine, SLICE("d")).mode, "contingency");
    world_run_until(&world, began + 20 * 60 * 1000 - 1);
    assert_int_equal(seen.first, 0);
    world.commit_ms = 100;
    world_run_for(&world, 50); /* the first look is claimed when the window ends */
    reload(&world, TO(", contingency: { check: 5m }, health: { url: 'http://127.0.0.1:1/health', every: 30s }"));
    world_run_for(&world, 60 * 60 * 1000);
    assert_int_equal(seen.first, 0);
    assert_string_equal(engine_destination(world.engine, SLICE("d")).mode, "contingency");
    world_end(&world);
}

/* The second address is used only while the first is in contingency, and only while there is one. */
static void nothing_goes_to_a_second_address_that_is_gone(void **state)
{
    (void)state;
    for (int gone = 0; gone < 2; gone++) {
        struct seen seen = { 0 };
        struct world world = { .destination = takes_all, .context = &seen };
        world_begin(&world, TO(", " OUTAGE ", fallback: { url: 'http://127.0.0.1:2/' }"), began);
        enter(&world);
        world_run_for(&world, 1000);
        world.commit_ms = 100;
        add(&world, 2);
        world_run_for(&world, 50);
        if (gone)
            reload(&world, TO(", " OUTAGE));
        else
            leave(&world);
        world_run_for(&world, 500);
        assert_int_equal(seen.second, 0);
        if (gone)
            leave(&world);
        world_run_for(&world, 20 * 60 * 1000);
        assert_int_equal(seen.first, 2);
        assert_int_equal(seen.second, 0);
        assert_int_equal(world_counts(&world, "d").completed, 2);
        world_end(&world);
    }
}

static int64_t always_fails(struct world *world, const struct send *send, struct answer *answer)
{
    (void)world;
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
    struct world world = { .destination = always_fails };
    (void)state;
    world_begin(&world, plain, began);
    world_add(&world, "d", "t", "j", "x");
    world_run_for(&world, 55 * 11 * 1000 + 500); /* many retries have failed, and one is under way */
    assert_int_equal(world_counts(&world, "d").running, 1);
    reload(&world, adaptive);
    world_run_for(&world, 600);
    instant answered = began + 55 * 11 * 1000 + 1000;
    assert_int_equal(world_job(&world, "t", "j").run_at, answered + 10 * 1000);
    world_run_for(&world, 11 * 1000);
    instant next = world_job(&world, "t", "j").run_at;
    assert_in_range(next, answered + 11 * 1000 + 15 * 1000, answered + 11 * 1000 + 20 * 1000);
    world_end(&world);
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
