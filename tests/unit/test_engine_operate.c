/*
 * What operators and time do to destinations and lanes, through the real engine.
 */
#include "support/configs.h"
#include "support/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TO(more) "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" more " } }\n"

static int64_t refuses(struct world *world, const struct send *send, struct answer *answer)
{
    (void)world;
    (void)send;
    answer->code = SLICE("http:422");
    answer->text = SLICE("HTTP 422: no");
    return 20;
}

static void purge(struct world *world, const char *id)
{
    const struct store_op op = { .kind = OP_PURGE, .job = { .tenant = SLICE("t"), .id = slice_from(id) } };
    world_apply(world, &op);
}

/* Purges go past the engine: the store tells it of them. */
static void purged_letters_hold_nothing(void **state)
{
    struct world world = { .destination = refuses };
    (void)state;
    world_begin(&world, TO(", concurrency: 1, dead: { max: 3 }"), began);
    world_add(&world, "d", "t", "a", "x");
    world_add(&world, "d", "t", "b", "x");
    world_run_for(&world, 10 * 1000);
    purge(&world, "a");
    purge(&world, "b");
    for (int i = 0; i < 6; i++)
        world_add(&world, "d", "t", NULL, "x");
    world_run_for(&world, 200); /* 20 ms each: nobody waited for a count */
    assert_int_equal(world_counts(&world, "d").dead, 3);
    assert_string_equal(status_of(&world).held_by, "dead_full");
    world_run_for(&world, 60 * 1000);
    assert_int_equal(world_counts(&world, "d").dead, 3);
    assert_int_equal(world_counts(&world, "d").pending, 3);
    world_end(&world);
}

/* Refuses jobs of tenant "bad", takes others. */
static int64_t refuses_bad(struct world *world, const struct send *send, struct answer *answer)
{
    return slice_equal(send->job->tenant, SLICE("bad")) ? refuses(world, send, answer) : delivers(world, send, answer);
}

/* Half of dead.max is one tenant's when there is another: it is held alone, over a restart too, until there is room. */
static void a_tenant_has_its_share_of_dead_letters(void **state)
{
    struct world world = { .destination = refuses_bad };
    (void)state;
    world_begin(&world, TO(", concurrency: 1, dead: { max: 6 }, breaker: { enabled: false }"), began);
    world_add(&world, "d", "good", NULL, "x");
    for (int i = 0; i < 8; i++) {
        char id[8];
        snprintf(id, sizeof id, "b%d", i);
        world_add(&world, "d", "bad", id, "x");
    }
    world_run_for(&world, 60 * 1000);
    for (int restarted = 0; restarted < 2; restarted++) {
        world_add(&world, "d", "good", NULL, "x");
        world_run_for(&world, 10 * 60 * 1000);
        assert_int_equal(world_counts(&world, "d").dead, 3);
        assert_int_equal(world_counts(&world, "d").pending, 5);
        assert_int_equal(world_counts(&world, "d").completed, 2 + restarted);
        assert_null(status_of(&world).held_by);
        world_crash(&world);
    }
    world_apply(&world, &(struct store_op){ .kind = OP_PURGE, .job = { .tenant = SLICE("bad"), .id = SLICE("b0") } });
    world_run_for(&world, 60 * 1000);
    assert_int_equal(world_counts(&world, "d").dead, 3); /* one more went, and died */
    assert_int_equal(world_counts(&world, "d").pending, 4);
    world_end(&world);
}

/* Alone it has all of them; and somebody may have set another share. */
static void a_tenants_dead_letters_can_be_set(void **state)
{
    static const struct {
        const char *dead;
        int64_t expected;
    } rows[] = { { TO(", concurrency: 1, dead: { max: 6 }, breaker: { enabled: false }"), 6 },
                 { TO(", concurrency: 1, dead: { max: 6, max_per_tenant: 2 }, breaker: { enabled: false }"), 2 } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world world = { .destination = refuses };
        world_begin(&world, rows[i].dead, began);
        for (int j = 0; j < 8; j++)
            world_add(&world, "d", "t", NULL, "x");
        world_run_for(&world, 60 * 1000);
        assert_int_equal(world_counts(&world, "d").dead, rows[i].expected);
        world_end(&world);
    }
}

/* A destination that a reload brings back stands as it was left. */
static void a_reload_knows_what_was_kept(void **state)
{
    struct world world = { .destination = delivers };
    struct error error;
    (void)state;
    world_begin(&world, TO(""), began);
    world_run_for(&world, 1000);
    assert_int_equal(engine_pause(world.engine, SLICE("d"), SLICE("audit"), &error), STATUS_OK);
    world_run_for(&world, 1000);
    struct config *with = world.config;
    world.config = config_from(SLICE("listen: 127.0.0.1:0\n"), "test.yaml");
    world_crash(&world);
    world_run_for(&world, 1000);
    assert_false(status_of(&world).known);
    assert_int_equal(engine_reload(world.engine, with, &error), STATUS_OK);
    config_unref(world.config);
    world.config = with;
    assert_string_equal(status_of(&world).mode, "paused");
    assert_string_equal(status_of(&world).pause_reason, "audit");
    assert_int_equal(status_of(&world).held_since, began + 1000);
    world_add(&world, "d", "t", "a", "x");
    world_run_for(&world, 60 * 1000);
    assert_int_equal(world.send_count, 0);
    assert_int_equal(engine_resume(world.engine, SLICE("d"), &error), STATUS_OK);
    assert_int_equal(engine_reload(world.engine, with, &error), STATUS_OK); /* what is kept is read once */
    world_run_for(&world, 1000);
    assert_int_equal(world.send_count, 1);
    world_end(&world);
}

static int64_t asks_for_a_pause(struct world *world, const struct send *send, struct answer *answer)
{
    if (world->send_count > 1)
        return delivers(world, send, answer);
    answer->code = SLICE("http:429");
    answer->text = SLICE("HTTP 429: slow down");
    answer->retry_after_ms = 60 * 1000;
    answer->slow_all = true;
    return 20;
}

static void a_clock_set_back_holds_nobody_longer(void **state)
{
    struct world world = { .destination = asks_for_a_pause };
    (void)state;
    world_begin(&world, TO(", concurrency: 1"), began);
    world_add(&world, "d", "t", "a", "x");
    world_run_for(&world, 1000);
    assert_string_equal(status_of(&world).held_by, "throttle");
    world.now -= INT64_C(3600) * 1000;
    world.wake_at = world.now;
    world_add(&world, "d", "t", "b", "x");
    world_run_for(&world, 55 * 1000);
    assert_int_equal(world.send_count, 1);
    world_run_for(&world, 10 * 1000);
    assert_int_equal(world_job(&world, "t", "b").state, STATE_COMPLETED);
    world_end(&world);
}

static void a_parked_tenant_does_not_wait_for_the_clock(void **state)
{
    struct world world = { .destination = delivers };
    (void)state;
    world_begin(&world, TO(", concurrency: 1, rate: { per_tenant: 60/m }"), began);
    for (int i = 0; i < 10; i++)
        world_add(&world, "d", "t", NULL, "x");
    world_run_for(&world, 1500);
    size_t before = world.send_count;
    world.now -= INT64_C(3600) * 1000;
    world.wake_at = world.now;
    world_run_for(&world, 30 * 1000);
    assert_int_equal(world.send_count, 10);
    assert_true(before < 10);
    world_end(&world);
}

/* The wait, and the factor, that the last failure of a job tells. */
static void last_wait(struct world *world, const char *id, int64_t *ret_ms, double *ret_factor)
{
    struct arena memory = { 0 };
    struct event *events;
    size_t count;
    struct error error;
    assert_int_equal(world->reader->ops->reader_history(world->reader, SLICE("t"), slice_from(id), STORE_PAGE_MAX, &memory,
                                                        &events, &count, &error),
                     STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        if (events[i].type != EVENT_TYPE_RETRY_SCHEDULED)
            continue;
        json_t *data = json_loadb(events[i].data.data, events[i].data.len, 0, NULL);
        *ret_ms = json_integer_value(json_object_get(data, "backoffMs"));
        *ret_factor = json_number_value(json_object_get(data, "backoff_factor"));
        json_decref(data);
    }
    arena_release(&memory);
}

static int64_t is_away(struct world *world, const struct send *send, struct answer *answer)
{
    (void)world;
    (void)send;
    answer->code = SLICE("http:503");
    answer->text = SLICE("HTTP 503: away");
    return 20;
}

/* S2-123 S1-091 S3-054 */
static void waits_follow_how_retries_fare(void **state)
{
    (void)state;
    static const struct {
        const char *adaptive;
        double factor_min, factor_max;
        int64_t wait_min, wait_max;
    } cases[] = {
        { "false", 0, 0, 60000, 60000 },
        { "true", 1.6, 2, 96000, 120000 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char yaml[512];
        struct world world = { .destination = is_away };
        int64_t wait = 0;
        double factor = 0;
        snprintf(yaml, sizeof yaml,
                 TO(", retry: { base: 1m, factor: 1, floor: 30s, cap: 2m, jitter: 0, max_retries: 50, adaptive: %s }"),
                 cases[i].adaptive);
        world_begin(&world, yaml, began);
        world_add(&world, "d", "t", "a", "x");
        world_add(&world, "d", "t", "b", "x");
        world_add(&world, "d", "t", "c", "x");
        world_run_for(&world, INT64_C(3600) * 1000);
        last_wait(&world, "a", &wait, &factor);
        assert_true(factor >= cases[i].factor_min && factor <= cases[i].factor_max);
        assert_true(wait >= cases[i].wait_min && wait <= cases[i].wait_max);
        world_end(&world);
    }
}

static int64_t number_at(const json_t *event, const char *object, const char *name)
{
    return json_integer_value(json_object_get(json_object_get(event, object), name));
}

/* One in four is refused, one in four is to be tried again. */
static int64_t is_mixed(struct world *world, const struct send *send, struct answer *answer)
{
    switch (world->send_count % 4) {
    case 0:
        return refuses(world, send, answer);
    case 1:
        return is_away(world, send, answer);
    default:
        return delivers(world, send, answer);
    }
}

/* A-21 S4-017 S4-045 S4-026 S4-027 S4-028 S4-029 S4-030 S4-031 */
static void a_cycle_tells_what_came_of_it(void **state)
{
    struct world world = { .destination = is_mixed };
    json_t *last = NULL;
    (void)state;
    world_begin(&world, TO(", concurrency: 4, cycle: { every: 60s, batch: 8 }, retry: { base: 10m, floor: 10m, cap: 10m }"), began);
    for (int i = 0; i < 12; i++)
        world_add(&world, "d", "t", NULL, "x");
    world_run_for(&world, 30 * 1000);
    assert_int_equal(world.send_count, 8);
    assert_int_equal(reported(&world, "cycle", NULL), 0); /* it could still select */
    world_run_for(&world, 40 * 1000);
    assert_int_equal(reported(&world, "cycle", &last), 1);
    assert_int_equal(number_at(last, "cycle", "selected"), 8);
    assert_int_equal(number_at(last, "cycle", "succeeded"), 4);
    assert_int_equal(number_at(last, "cycle", "failed"), 4);
    assert_int_equal(number_at(last, "cycle", "rescheduled"), 2);
    assert_int_equal(number_at(last, "cycle", "unanswered"), 0);
    assert_in_range(number_at(last, "cycle", "cycle_ms"), 40, 100); /* two or three rounds of answers */
    world_run_for(&world, 60 * 1000);
    assert_int_equal(reported(&world, "cycle", &last), 2);
    assert_int_equal(number_at(last, "cycle", "selected"), 4);
    assert_in_range(number_at(last, "cycle", "average_age_ms"), 60 * 1000, 60 * 1000 + 100);
    world_run_for(&world, 5 * 60 * 1000); /* nothing is due: nothing is told */
    assert_int_equal(reported(&world, "cycle", NULL), 2);
    assert_int_equal(status_of(&world).cycle.selected, 4);
    world_crash(&world);
    assert_int_equal(status_of(&world).cycle.selected, 4);
    assert_in_range(status_of(&world).cycle.age_ms, 60 * 1000, 60 * 1000 + 100);
    json_decref(last);
    world_end(&world);
}

/* One tenant's credentials are refused until somebody has renewed them. */
static int64_t knows_tenants(struct world *world, const struct send *send, struct answer *answer)
{
    const char *refused = world->context;
    if (!refused || !slice_equal(send->job->tenant, slice_from(refused)))
        return delivers(world, send, answer);
    answer->outcome = OUTCOME_BLOCKED;
    answer->code = SLICE("http:401");
    answer->text = SLICE("HTTP 401: who are you?");
    return 20;
}

static int64_t lane_of(struct world *world, const char *tenant, const char *id)
{
    return world_job(world, tenant, id).lane;
}

static void a_tenants_credentials_hold_that_tenant(void **state)
{
    struct world world = { .destination = knows_tenants, .context = (void *)(uintptr_t) "B" };
    struct error error;
    json_t *last = NULL;
    (void)state;
    world_begin(&world, TO(", blocked: tenant, concurrency: 3"), began);
    for (int i = 0; i < 10; i++) {
        world_add(&world, "d", "A", NULL, "x");
        world_add(&world, "d", "B", i == 0 ? "b" : NULL, "x");
    }
    world_run_for(&world, 50 * 1000);
    assert_string_equal(status_of(&world).mode, "normal");
    assert_int_equal(status_of(&world).tenants_paused, 1);
    assert_int_equal(world_counts(&world, "d").completed, 10);
    assert_true(world.send_count <= 10 + 4); /* what was under way when the second was refused */
    assert_int_equal(reported(&world, "tenant_blocked", &last), 1);
    assert_string_equal(json_string_value(json_object_get(last, "tenant")), "B");
    assert_non_null(strstr(json_string_value(json_object_get(last, "tenant_reason")), "who are you"));
    assert_int_equal(reported(&world, "blocked", NULL), 0);

    size_t sent = world.send_count;
    world_crash(&world);
    world_add(&world, "d", "A", NULL, "x");
    world_run_for(&world, 60 * 1000);
    assert_int_equal(world.send_count, sent + 2); /* and a look */
    struct lane_hold hold = engine_lane_hold(world.engine, lane_of(&world, "B", "b"));
    assert_true(hold.held && hold.since >= began && hold.since < began + 1000);
    assert_non_null(strstr(hold.reason, "who are you"));

    world.context = NULL;
    assert_int_equal(world_resume_tenant(&world, SLICE("d"), SLICE("B"), &error), STATUS_OK);
    assert_int_equal(world_resume_tenant(&world, SLICE("d"), SLICE("B"), &error), STATUS_OK);
    world_run_for(&world, 60 * 1000);
    assert_int_equal(world_counts(&world, "d").completed, 21);
    assert_int_equal(reported(&world, "tenant_resumed", NULL), 1);
    assert_int_equal(status_of(&world).tenants_paused, 0);
    assert_false(engine_lane_hold(world.engine, lane_of(&world, "B", "b")).held);
    json_decref(last);
    world_end(&world);
}

static void an_operator_holds_a_tenant(void **state)
{
    struct world world = { .destination = delivers };
    struct error error;
    char tenant[16];
    (void)state;
    world_begin(&world, TO(""), began);
    assert_int_equal(world_pause_tenant(&world, SLICE("d"), SLICE("t"), SLICE(""), &error), STATUS_NOT_FOUND);
    assert_int_equal(world_pause_tenant(&world, SLICE("nowhere"), SLICE("t"), SLICE(""), &error), STATUS_NOT_FOUND);
    assert_int_equal(world_resume_tenant(&world, SLICE("d"), SLICE("t"), &error), STATUS_NOT_FOUND);
    for (int i = 0; i < 257; i++) {
        snprintf(tenant, sizeof tenant, "t%d", i);
        world_add(&world, "d", tenant, "one", "x");
        enum status status = world_pause_tenant(&world, SLICE("d"), slice_from(tenant), SLICE("audit"), &error);
        assert_int_equal(status, i < 256 ? STATUS_OK : STATUS_LIMIT);
        assert_int_equal(world_pause_tenant(&world, SLICE("d"), slice_from(tenant), SLICE("audit"), &error), status);
    }
    world_run_for(&world, 60 * 1000);
    assert_int_equal(world_counts(&world, "d").completed, 1);
    world_crash(&world);
    world_run_for(&world, 60 * 1000);
    assert_int_equal(world_counts(&world, "d").completed, 1);
    assert_int_equal(status_of(&world).tenants_paused, 256);
    for (int i = 0; i < 256; i++) {
        snprintf(tenant, sizeof tenant, "t%d", i);
        assert_int_equal(world_resume_tenant(&world, SLICE("d"), slice_from(tenant), &error), STATUS_OK);
    }
    world_run_for(&world, 60 * 1000);
    assert_int_equal(world_counts(&world, "d").completed, 257);
    world_end(&world);
}

#define DYING(more) TO(", retry: { base: 1s, floor: 1s, cap: 1s, jitter: 0, max_retries: 1 }, concurrency: 2" more)

/* How many dead letters have gone back by themselves. */
static int64_t redriven(struct world *world, const char *tenant, const char *id)
{
    return world_job(world, tenant, id).redrives_auto;
}

/* S2-124 */
static void dead_letters_go_back_by_themselves(void **state)
{
    struct world world = { .destination = is_away };
    (void)state;
    world_begin(&world, DYING(", dead: { ttl: 30d, auto_redrive: { after: 1h, times: 2 } }"), began);
    world_add(&world, "d", "t", "a", "x");
    world_run_for(&world, 50 * 60 * 1000);
    assert_int_equal(world_job(&world, "t", "a").state, STATE_DEAD);
    assert_int_equal(redriven(&world, "t", "a"), 0);
    world_run_for(&world, 30 * 60 * 1000);
    assert_int_equal(redriven(&world, "t", "a"), 1);
    assert_int_equal(world_job(&world, "t", "a").state, STATE_DEAD); /* it failed again */
    assert_int_equal(world_job(&world, "t", "a").generation, 2);
    world_run_for(&world, 80 * 60 * 1000);
    assert_int_equal(redriven(&world, "t", "a"), 2);
    world_crash(&world);
    world_run_for(&world, INT64_C(24) * 3600 * 1000);
    assert_int_equal(redriven(&world, "t", "a"), 2); /* as often as allowed, over restarts too */
    assert_int_equal(world.send_count, 3 * 2);
    world_end(&world);
}

static void only_used_up_retries_go_back(void **state)
{
    struct world world = { .destination = refuses };
    (void)state;
    world_begin(&world, DYING(", in_doubt: park, job_ttl: 10m, dead: { ttl: 30d, auto_redrive: { after: 1m, times: 5 } }"), began);
    world_add(&world, "d", "t", "permanent", "x");
    world_run_for(&world, 1000);
    struct error error;
    assert_int_equal(engine_pause(world.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    world_add(&world, "d", "t", "expired", "x");
    world_run_for(&world, 11 * 60 * 1000);
    assert_int_equal(engine_resume(world.engine, SLICE("d"), &error), STATUS_OK);
    world_run_for(&world, INT64_C(3) * 3600 * 1000);
    assert_int_equal(world_counts(&world, "d").dead, 2);
    assert_int_equal(redriven(&world, "t", "permanent"), 0);
    assert_int_equal(redriven(&world, "t", "expired"), 0);
    world_end(&world);
}

/* Nothing goes back to a destination that is held. */
static void dead_letters_wait_for_the_destination(void **state)
{
    struct world world = { .destination = is_away };
    struct error error;
    (void)state;
    world_begin(&world, DYING(", dead: { ttl: 30d, auto_redrive: { after: 10m, times: 1 } }"
                              ", contingency: { ramp: [5], stable: 1m, check: 1m, enabled: false }"), began);
    world_add(&world, "d", "t", "a", "x");
    world_run_for(&world, 60 * 1000);
    assert_int_equal(world_job(&world, "t", "a").state, STATE_DEAD);
    assert_int_equal(engine_pause(world.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    assert_int_equal(world_pause_tenant(&world, SLICE("d"), SLICE("t"), SLICE(""), &error), STATUS_OK);
    world_run_for(&world, INT64_C(3600) * 1000);
    assert_int_equal(redriven(&world, "t", "a"), 0);
    world.destination = delivers;
    assert_int_equal(engine_resume(world.engine, SLICE("d"), &error), STATUS_OK);
    world_run_for(&world, INT64_C(3600) * 1000);
    assert_int_equal(redriven(&world, "t", "a"), 0); /* nor for a tenant that is */
    assert_int_equal(world_resume_tenant(&world, SLICE("d"), SLICE("t"), &error), STATUS_OK);
    world_run_for(&world, 11 * 60 * 1000);
    assert_int_equal(world_job(&world, "t", "a").state, STATE_COMPLETED);
    world_end(&world);
}

/* After bad answers one goes first; then as many as the rate allows, page by page, whatever else is dead. */
static void dead_letters_go_back_slowly(void **state)
{
    struct world world = { .destination = is_away };
    (void)state;
    world_begin(&world, DYING(", dead: { ttl: 30d, auto_redrive: { after: 1h, times: 1, rate: 60/m } }"), began);
    for (int i = 0; i < 500; i++)
        world_add(&world, "d", "t", NULL, "x");
    world_run_for(&world, 30 * 60 * 1000);
    assert_int_equal(world_counts(&world, "d").dead, 500);
    world.destination = delivers;
    world_run_until(&world, began + 62 * 60 * 1000);
    int64_t first = world_counts(&world, "d").completed;
    assert_in_range(first, 1, 65);
    world_run_for(&world, 2 * 60 * 1000);
    assert_in_range(world_counts(&world, "d").completed - first, 100, 130);
    world_run_for(&world, 20 * 60 * 1000);
    assert_int_equal(world_counts(&world, "d").completed, 500);
    assert_int_equal(world_counts(&world, "d").dead, 0);
    world_end(&world);
}

static void a_trial_goes_first(void **state)
{
    struct world world = { .destination = is_away };
    (void)state;
    world_begin(&world, DYING(", dead: { ttl: 30d, auto_redrive: { after: 30m, times: 1, rate: 1000/m } }"), began);
    for (int i = 0; i < 50; i++)
        world_add(&world, "d", "t", NULL, "x");
    world_run_for(&world, 25 * 60 * 1000);
    size_t before = world.send_count;
    assert_int_equal(before, 100);
    world_run_for(&world, 15 * 60 * 1000);
    assert_in_range(world.send_count - before, 2 * 2, 2 * 15); /* it stays away: one a minute looks */
    world_end(&world);
}

/* Events of the job that are still there. */
static size_t events_of(struct world *world, const char *id)
{
    size_t count = 0, read;
    int64_t after = 0;
    do {
        struct arena memory = { 0 };
        struct event *events;
        struct error error;
        assert_int_equal(world->reader->ops->reader_events(world->reader, after, 500, &memory, &events, &read, &error), STATUS_OK);
        for (size_t i = 0; i < read; i++) {
            after = events[i].number;
            count += slice_equal(events[i].job, slice_from(id));
        }
        arena_release(&memory);
    } while (read > 0);
    return count;
}

/* S0-111 S0-112 S1-080 S1-081 S1-082: attempts, their classes and decisions are there for five years, the job itself is not. */
static void the_trail_is_kept_for_five_years(void **state)
{
    const int64_t five_years_ms = (5 * 365 + 2) * (int64_t)DAY_MS; /* with two leap days */
    struct world world = { .destination = is_away };
    (void)state;
    world_begin(&world, "destinations: { d: { preset: tiss, url: 'http://127.0.0.1:1/', allow_private: true } }\n", began);
    world_add(&world, "d", "t", "CLM-2025-1", "x");
    world_run_for(&world, 6 * HOUR_MS);
    assert_int_equal(world_job(&world, "t", "CLM-2025-1").state, STATE_DEAD);
    size_t events = events_of(&world, "CLM-2025-1");
    assert_true(events >= 1 + 6 * 2); /* taken, and six times claimed and settled */
    world.now = began + five_years_ms - HOUR_MS;
    world_run_for(&world, 30 * MINUTE_MS);
    assert_int_equal(world_counts(&world, "d").dead, 0);
    assert_true(events_of(&world, "CLM-2025-1") >= events);
    world.now = began + five_years_ms + 6 * HOUR_MS;
    world_run_for(&world, 30 * MINUTE_MS);
    assert_true(events_of(&world, "CLM-2025-1") < events);
    world_end(&world);
}

/* However long the store takes to write it down. */
static void a_dead_letter_has_its_whole_time(void **state)
{
    struct world world = { .destination = refuses };
    (void)state;
    world_begin(&world, TO(", dead: { ttl: 7d }"), began);
    world.commit_ms = 250;
    world_add(&world, "d", "t", "a", "x");
    world_run_for(&world, 10 * 1000);
    struct job job = world_job(&world, "t", "a");
    assert_int_equal(job.state, STATE_DEAD);
    assert_int_equal(job.expires_at - job.dead_at, 7 * (int64_t)DAY_MS);
    world_end(&world);
}

static int64_t released(struct world *world)
{
    struct lane_counts counts = world_counts(world, "d");
    return counts.ready + counts.running + counts.completed;
}

/* What became due while the daemon was down does not come all at once, and all of it comes. */
static void overdue_jobs_are_released_bit_by_bit(void **state)
{
    enum { JOBS = 3500, LONG_MS = 300, ONCE = 1000, EVERY_MS = 50 };
    struct world world = { .destination = delivers };
    int64_t at[LONG_MS];
    (void)state;
    world_begin(&world, TO(", concurrency: 10"), began);
    for (int i = 0; i < JOBS; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        world_apply(&world, &(struct store_op){ .kind = OP_INSERT,
                                                .insert = { .destination = SLICE("d"),
                                                            .tenant = SLICE("t"),
                                                            .id = slice_from(id),
                                                            .payload = SLICE("x"),
                                                            .priority = PRIORITY_NORMAL,
                                                            .run_at = began + HOUR_MS,
                                                            .deadline = INSTANT_NONE } });
    }
    assert_int_equal(released(&world), 0);
    world.now = began + 2 * HOUR_MS;
    world_crash(&world);
    for (int ms = 0; ms < LONG_MS; ms++) {
        world_run_for(&world, ms > 0 ? 1 : 0);
        at[ms] = released(&world);
        int64_t before = ms >= EVERY_MS ? at[ms - EVERY_MS + 1] : 0;
        if (at[ms] - before > ONCE)
            fail_msg("%lld within %d ms, at %d ms", (long long)(at[ms] - before), EVERY_MS, ms);
    }
    assert_int_equal(at[LONG_MS - 1], JOBS);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(purged_letters_hold_nothing),
        cmocka_unit_test(a_tenant_has_its_share_of_dead_letters),
        cmocka_unit_test(a_tenants_dead_letters_can_be_set),
        cmocka_unit_test(a_reload_knows_what_was_kept),
        cmocka_unit_test(a_clock_set_back_holds_nobody_longer),
        cmocka_unit_test(a_parked_tenant_does_not_wait_for_the_clock),
        cmocka_unit_test(waits_follow_how_retries_fare),
        cmocka_unit_test(a_cycle_tells_what_came_of_it),
        cmocka_unit_test(a_tenants_credentials_hold_that_tenant),
        cmocka_unit_test(an_operator_holds_a_tenant),
        cmocka_unit_test(dead_letters_go_back_by_themselves),
        cmocka_unit_test(only_used_up_retries_go_back),
        cmocka_unit_test(dead_letters_wait_for_the_destination),
        cmocka_unit_test(dead_letters_go_back_slowly),
        cmocka_unit_test(a_trial_goes_first),
        cmocka_unit_test(the_trail_is_kept_for_five_years),
        cmocka_unit_test(a_dead_letter_has_its_whole_time),
        cmocka_unit_test(overdue_jobs_are_released_bit_by_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
