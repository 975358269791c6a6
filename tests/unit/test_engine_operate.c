/*
 * What operators and time do to destinations and lanes, through the real engine.
 */
#include "engine/orders.h"
#include "engine/status.h"
#include "support/configs.h"
#include "support/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TO(more) "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" more " } }\n"

static int64_t refuses(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->code = SLICE("http:422");
    answer->text = SLICE("HTTP 422: no");
    return 20;
}

static void purge(struct stage *stage, const char *id)
{
    const struct store_op op = { .kind = OP_PURGE, .job = { .tenant = SLICE("t"), .id = slice_from(id) } };
    stage_apply(stage, &op);
}

/* Purges go past the engine: the store tells it of them. */
static void purged_letters_hold_nothing(void **state)
{
    struct stage stage = { .destination = refuses };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1, dead: { max: 3 }"), began);
    stage_add(&stage, "d", "t", "a", "x");
    stage_add(&stage, "d", "t", "b", "x");
    stage_run_for(&stage, 10 * 1000);
    purge(&stage, "a");
    purge(&stage, "b");
    for (int i = 0; i < 6; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 200); /* 20 ms each: nobody waited for a count */
    assert_int_equal(stage_counts(&stage, "d").dead, 3);
    assert_string_equal(status_of(&stage).held_by, "dead_full");
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").dead, 3);
    assert_int_equal(stage_counts(&stage, "d").pending, 3);
    stage_end(&stage);
}

/* Refuses jobs of tenant "bad", takes others. */
static int64_t refuses_bad(struct stage *stage, const struct send *send, struct answer *answer)
{
    return slice_equal(send->job->tenant, SLICE("bad")) ? refuses(stage, send, answer) : delivers(stage, send, answer);
}

/* Half of dead.max is one tenant's when there is another: it is held alone, over a restart too, until there is room. */
static void a_tenant_has_its_share_of_dead_letters(void **state)
{
    struct stage stage = { .destination = refuses_bad };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1, dead: { max: 6 }, breaker: { enabled: false }"), began);
    stage_add(&stage, "d", "good", NULL, "x");
    for (int i = 0; i < 8; i++) {
        char id[8];
        snprintf(id, sizeof id, "b%d", i);
        stage_add(&stage, "d", "bad", id, "x");
    }
    stage_run_for(&stage, 60 * 1000);
    for (int restarted = 0; restarted < 2; restarted++) {
        stage_add(&stage, "d", "good", NULL, "x");
        stage_run_for(&stage, 10 * 60 * 1000);
        assert_int_equal(stage_counts(&stage, "d").dead, 3);
        assert_int_equal(stage_counts(&stage, "d").pending, 5);
        assert_int_equal(stage_counts(&stage, "d").completed, 2 + restarted);
        assert_null(status_of(&stage).held_by);
        stage_crash(&stage);
    }
    stage_apply(&stage, &(struct store_op){ .kind = OP_PURGE, .job = { .tenant = SLICE("bad"), .id = SLICE("b0") } });
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").dead, 3); /* one more went, and died */
    assert_int_equal(stage_counts(&stage, "d").pending, 4);
    stage_end(&stage);
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
        struct stage stage = { .destination = refuses };
        stage_begin(&stage, rows[i].dead, began);
        for (int j = 0; j < 8; j++)
            stage_add(&stage, "d", "t", NULL, "x");
        stage_run_for(&stage, 60 * 1000);
        assert_int_equal(stage_counts(&stage, "d").dead, rows[i].expected);
        stage_end(&stage);
    }
}

/* A destination that a reload brings back stands as it was left. */
static void a_reload_knows_what_was_kept(void **state)
{
    struct stage stage = { .destination = delivers };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(""), began);
    stage_run_for(&stage, 1000);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE("audit"), &error), STATUS_OK);
    stage_run_for(&stage, 1000);
    struct config *with = stage.config;
    stage.config = config_from(SLICE("listen: 127.0.0.1:0\n"), "test.yaml");
    stage_crash(&stage);
    stage_run_for(&stage, 1000);
    assert_false(status_of(&stage).known);
    assert_int_equal(engine_reload(stage.engine, with, &error), STATUS_OK);
    config_unref(stage.config);
    stage.config = with;
    assert_string_equal(status_of(&stage).mode, "paused");
    assert_string_equal(status_of(&stage).pause_reason, "audit");
    assert_int_equal(status_of(&stage).held_since, began + 1000);
    stage_add(&stage, "d", "t", "a", "x");
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage.send_count, 0);
    assert_int_equal(engine_resume(stage.engine, SLICE("d"), &error), STATUS_OK);
    assert_int_equal(engine_reload(stage.engine, with, &error), STATUS_OK); /* what is kept is read once */
    stage_run_for(&stage, 1000);
    assert_int_equal(stage.send_count, 1);
    stage_end(&stage);
}

static int64_t asks_for_a_pause(struct stage *stage, const struct send *send, struct answer *answer)
{
    if (stage->send_count > 1)
        return delivers(stage, send, answer);
    answer->code = SLICE("http:429");
    answer->text = SLICE("HTTP 429: slow down");
    answer->retry_after_ms = 60 * 1000;
    answer->slow_all = true;
    return 20;
}

static void a_clock_set_back_holds_nobody_longer(void **state)
{
    struct stage stage = { .destination = asks_for_a_pause };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1"), began);
    stage_add(&stage, "d", "t", "a", "x");
    stage_run_for(&stage, 1000);
    assert_string_equal(status_of(&stage).held_by, "throttle");
    stage.now -= INT64_C(3600) * 1000;
    stage.wake_at = stage.now;
    stage_add(&stage, "d", "t", "b", "x");
    stage_run_for(&stage, 55 * 1000);
    assert_int_equal(stage.send_count, 1);
    stage_run_for(&stage, 10 * 1000);
    assert_int_equal(stage_job(&stage, "t", "b").state, STATE_COMPLETED);
    stage_end(&stage);
}

static void a_parked_tenant_does_not_wait_for_the_clock(void **state)
{
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1, rate: { per_tenant: 60/m }"), began);
    for (int i = 0; i < 10; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 1500);
    size_t before = stage.send_count;
    stage.now -= INT64_C(3600) * 1000;
    stage.wake_at = stage.now;
    stage_run_for(&stage, 30 * 1000);
    assert_int_equal(stage.send_count, 10);
    assert_true(before < 10);
    stage_end(&stage);
}

/* The wait, and the factor, that the last failure of a job tells. */
static void last_wait(struct stage *stage, const char *id, int64_t *ret_ms, double *ret_factor)
{
    struct arena memory = { 0 };
    struct event *events;
    size_t count;
    struct error error;
    assert_int_equal(stage->reader->ops->reader_history(stage->reader, SLICE("t"), slice_from(id), STORE_PAGE_MAX, &memory,
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

static int64_t is_away(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
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
        struct stage stage = { .destination = is_away };
        int64_t wait = 0;
        double factor = 0;
        snprintf(yaml, sizeof yaml,
                 TO(", retry: { base: 1m, factor: 1, floor: 30s, cap: 2m, jitter: 0, max_retries: 50, adaptive: %s }"),
                 cases[i].adaptive);
        stage_begin(&stage, yaml, began);
        stage_add(&stage, "d", "t", "a", "x");
        stage_add(&stage, "d", "t", "b", "x");
        stage_add(&stage, "d", "t", "c", "x");
        stage_run_for(&stage, INT64_C(3600) * 1000);
        last_wait(&stage, "a", &wait, &factor);
        assert_true(factor >= cases[i].factor_min && factor <= cases[i].factor_max);
        assert_true(wait >= cases[i].wait_min && wait <= cases[i].wait_max);
        stage_end(&stage);
    }
}

static int64_t number_at(const json_t *event, const char *object, const char *name)
{
    return json_integer_value(json_object_get(json_object_get(event, object), name));
}

/* One in four is refused, one in four is to be tried again. */
static int64_t is_mixed(struct stage *stage, const struct send *send, struct answer *answer)
{
    switch (stage->send_count % 4) {
    case 0:
        return refuses(stage, send, answer);
    case 1:
        return is_away(stage, send, answer);
    default:
        return delivers(stage, send, answer);
    }
}

/* A-21 S4-017 S4-045 S4-026 S4-027 S4-028 S4-029 S4-030 S4-031 */
static void a_cycle_tells_what_came_of_it(void **state)
{
    struct stage stage = { .destination = is_mixed };
    json_t *last = NULL;
    (void)state;
    stage_begin(&stage, TO(", concurrency: 4, cycle: { every: 60s, batch: 8 }, retry: { base: 10m, floor: 10m, cap: 10m }"), began);
    for (int i = 0; i < 12; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 30 * 1000);
    assert_int_equal(stage.send_count, 8);
    assert_int_equal(reported(&stage, "cycle", NULL), 0); /* it could still select */
    stage_run_for(&stage, 40 * 1000);
    assert_int_equal(reported(&stage, "cycle", &last), 1);
    assert_int_equal(number_at(last, "cycle", "selected"), 8);
    assert_int_equal(number_at(last, "cycle", "succeeded"), 4);
    assert_int_equal(number_at(last, "cycle", "failed"), 4);
    assert_int_equal(number_at(last, "cycle", "rescheduled"), 2);
    assert_int_equal(number_at(last, "cycle", "unanswered"), 0);
    assert_in_range(number_at(last, "cycle", "cycle_ms"), 40, 100); /* two or three rounds of answers */
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(reported(&stage, "cycle", &last), 2);
    assert_int_equal(number_at(last, "cycle", "selected"), 4);
    assert_in_range(number_at(last, "cycle", "average_age_ms"), 60 * 1000, 60 * 1000 + 100);
    stage_run_for(&stage, 5 * 60 * 1000); /* nothing is due: nothing is told */
    assert_int_equal(reported(&stage, "cycle", NULL), 2);
    assert_int_equal(status_of(&stage).cycle.selected, 4);
    stage_crash(&stage);
    assert_int_equal(status_of(&stage).cycle.selected, 4);
    assert_in_range(status_of(&stage).cycle.age_ms, 60 * 1000, 60 * 1000 + 100);
    json_decref(last);
    stage_end(&stage);
}

/* One tenant's credentials are refused until somebody has renewed them. */
static int64_t knows_tenants(struct stage *stage, const struct send *send, struct answer *answer)
{
    const char *refused = stage->context;
    if (!refused || !slice_equal(send->job->tenant, slice_from(refused)))
        return delivers(stage, send, answer);
    answer->outcome = OUTCOME_BLOCKED;
    answer->code = SLICE("http:401");
    answer->text = SLICE("HTTP 401: who are you?");
    return 20;
}

static int64_t lane_of(struct stage *stage, const char *tenant, const char *id)
{
    return stage_job(stage, tenant, id).lane;
}

static void a_tenants_credentials_hold_that_tenant(void **state)
{
    struct stage stage = { .destination = knows_tenants, .context = (void *)(uintptr_t) "B" };
    struct error error;
    json_t *last = NULL;
    (void)state;
    stage_begin(&stage, TO(", blocked: tenant, concurrency: 3"), began);
    for (int i = 0; i < 10; i++) {
        stage_add(&stage, "d", "A", NULL, "x");
        stage_add(&stage, "d", "B", i == 0 ? "b" : NULL, "x");
    }
    stage_run_for(&stage, 50 * 1000);
    assert_string_equal(status_of(&stage).mode, "normal");
    assert_int_equal(status_of(&stage).tenants_paused, 1);
    assert_int_equal(stage_counts(&stage, "d").completed, 10);
    assert_true(stage.send_count <= 10 + 4); /* what was under way when the second was refused */
    assert_int_equal(reported(&stage, "tenant_blocked", &last), 1);
    assert_string_equal(json_string_value(json_object_get(last, "tenant")), "B");
    assert_non_null(strstr(json_string_value(json_object_get(last, "tenant_reason")), "who are you"));
    assert_int_equal(reported(&stage, "blocked", NULL), 0);

    size_t sent = stage.send_count;
    stage_crash(&stage);
    stage_add(&stage, "d", "A", NULL, "x");
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage.send_count, sent + 2); /* and a look */
    struct lane_hold hold = engine_lane_hold(stage.engine, lane_of(&stage, "B", "b"));
    assert_true(hold.held && hold.since >= began && hold.since < began + 1000);
    assert_non_null(strstr(hold.reason, "who are you"));

    stage.context = NULL;
    assert_int_equal(stage_resume_tenant(&stage, SLICE("d"), SLICE("B"), &error), STATUS_OK);
    assert_int_equal(stage_resume_tenant(&stage, SLICE("d"), SLICE("B"), &error), STATUS_OK);
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 21);
    assert_int_equal(reported(&stage, "tenant_resumed", NULL), 1);
    assert_int_equal(status_of(&stage).tenants_paused, 0);
    assert_false(engine_lane_hold(stage.engine, lane_of(&stage, "B", "b")).held);
    json_decref(last);
    stage_end(&stage);
}

static void an_operator_holds_a_tenant(void **state)
{
    struct stage stage = { .destination = delivers };
    struct error error;
    char tenant[16];
    (void)state;
    stage_begin(&stage, TO(""), began);
    assert_int_equal(stage_pause_tenant(&stage, SLICE("d"), SLICE("t"), SLICE(""), &error), STATUS_NOT_FOUND);
    assert_int_equal(stage_pause_tenant(&stage, SLICE("nowhere"), SLICE("t"), SLICE(""), &error), STATUS_NOT_FOUND);
    assert_int_equal(stage_resume_tenant(&stage, SLICE("d"), SLICE("t"), &error), STATUS_NOT_FOUND);
    for (int i = 0; i < 257; i++) {
        snprintf(tenant, sizeof tenant, "t%d", i);
        stage_add(&stage, "d", tenant, "one", "x");
        enum status status = stage_pause_tenant(&stage, SLICE("d"), slice_from(tenant), SLICE("audit"), &error);
        assert_int_equal(status, i < 256 ? STATUS_OK : STATUS_LIMIT);
        assert_int_equal(stage_pause_tenant(&stage, SLICE("d"), slice_from(tenant), SLICE("audit"), &error), status);
    }
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 1);
    stage_crash(&stage);
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 1);
    assert_int_equal(status_of(&stage).tenants_paused, 256);
    for (int i = 0; i < 256; i++) {
        snprintf(tenant, sizeof tenant, "t%d", i);
        assert_int_equal(stage_resume_tenant(&stage, SLICE("d"), slice_from(tenant), &error), STATUS_OK);
    }
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 257);
    stage_end(&stage);
}

#define DYING(more) TO(", retry: { base: 1s, floor: 1s, cap: 1s, jitter: 0, max_retries: 1 }, concurrency: 2" more)

/* How many dead letters have gone back by themselves. */
static int64_t redriven(struct stage *stage, const char *tenant, const char *id)
{
    return stage_job(stage, tenant, id).redrives_auto;
}

/* S2-124 */
static void dead_letters_go_back_by_themselves(void **state)
{
    struct stage stage = { .destination = is_away };
    (void)state;
    stage_begin(&stage, DYING(", dead: { ttl: 30d, auto_redrive: { after: 1h, times: 2 } }"), began);
    stage_add(&stage, "d", "t", "a", "x");
    stage_run_for(&stage, 50 * 60 * 1000);
    assert_int_equal(stage_job(&stage, "t", "a").state, STATE_DEAD);
    assert_int_equal(redriven(&stage, "t", "a"), 0);
    stage_run_for(&stage, 30 * 60 * 1000);
    assert_int_equal(redriven(&stage, "t", "a"), 1);
    assert_int_equal(stage_job(&stage, "t", "a").state, STATE_DEAD); /* it failed again */
    assert_int_equal(stage_job(&stage, "t", "a").generation, 2);
    stage_run_for(&stage, 80 * 60 * 1000);
    assert_int_equal(redriven(&stage, "t", "a"), 2);
    stage_crash(&stage);
    stage_run_for(&stage, INT64_C(24) * 3600 * 1000);
    assert_int_equal(redriven(&stage, "t", "a"), 2); /* as often as allowed, over restarts too */
    assert_int_equal(stage.send_count, 3 * 2);
    stage_end(&stage);
}

static void only_used_up_retries_go_back(void **state)
{
    struct stage stage = { .destination = refuses };
    (void)state;
    stage_begin(&stage, DYING(", in_doubt: park, job_ttl: 10m, dead: { ttl: 30d, auto_redrive: { after: 1m, times: 5 } }"), began);
    stage_add(&stage, "d", "t", "permanent", "x");
    stage_run_for(&stage, 1000);
    struct error error;
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    stage_add(&stage, "d", "t", "expired", "x");
    stage_run_for(&stage, 11 * 60 * 1000);
    assert_int_equal(engine_resume(stage.engine, SLICE("d"), &error), STATUS_OK);
    stage_run_for(&stage, INT64_C(3) * 3600 * 1000);
    assert_int_equal(stage_counts(&stage, "d").dead, 2);
    assert_int_equal(redriven(&stage, "t", "permanent"), 0);
    assert_int_equal(redriven(&stage, "t", "expired"), 0);
    stage_end(&stage);
}

/* Nothing goes back to a destination that is held. */
static void dead_letters_wait_for_the_destination(void **state)
{
    struct stage stage = { .destination = is_away };
    struct error error;
    (void)state;
    stage_begin(&stage, DYING(", dead: { ttl: 30d, auto_redrive: { after: 10m, times: 1 } }"
                              ", contingency: { ramp: [5], stable: 1m, check: 1m, enabled: false }"), began);
    stage_add(&stage, "d", "t", "a", "x");
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage_job(&stage, "t", "a").state, STATE_DEAD);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    assert_int_equal(stage_pause_tenant(&stage, SLICE("d"), SLICE("t"), SLICE(""), &error), STATUS_OK);
    stage_run_for(&stage, INT64_C(3600) * 1000);
    assert_int_equal(redriven(&stage, "t", "a"), 0);
    stage.destination = delivers;
    assert_int_equal(engine_resume(stage.engine, SLICE("d"), &error), STATUS_OK);
    stage_run_for(&stage, INT64_C(3600) * 1000);
    assert_int_equal(redriven(&stage, "t", "a"), 0); /* nor for a tenant that is */
    assert_int_equal(stage_resume_tenant(&stage, SLICE("d"), SLICE("t"), &error), STATUS_OK);
    stage_run_for(&stage, 11 * 60 * 1000);
    assert_int_equal(stage_job(&stage, "t", "a").state, STATE_COMPLETED);
    stage_end(&stage);
}

/* After bad answers one goes first; then as many as the rate allows, page by page, whatever else is dead. */
static void dead_letters_go_back_slowly(void **state)
{
    struct stage stage = { .destination = is_away };
    (void)state;
    stage_begin(&stage, DYING(", dead: { ttl: 30d, auto_redrive: { after: 1h, times: 1, rate: 60/m } }"), began);
    for (int i = 0; i < 500; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 30 * 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").dead, 500);
    stage.destination = delivers;
    stage_run_until(&stage, began + 62 * 60 * 1000);
    int64_t first = stage_counts(&stage, "d").completed;
    assert_in_range(first, 1, 65);
    stage_run_for(&stage, 2 * 60 * 1000);
    assert_in_range(stage_counts(&stage, "d").completed - first, 100, 130);
    stage_run_for(&stage, 20 * 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 500);
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    stage_end(&stage);
}

static void a_trial_goes_first(void **state)
{
    struct stage stage = { .destination = is_away };
    (void)state;
    stage_begin(&stage, DYING(", dead: { ttl: 30d, auto_redrive: { after: 30m, times: 1, rate: 1000/m } }"), began);
    for (int i = 0; i < 50; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 25 * 60 * 1000);
    size_t before = stage.send_count;
    assert_int_equal(before, 100);
    stage_run_for(&stage, 15 * 60 * 1000);
    assert_in_range(stage.send_count - before, 2 * 2, 2 * 15); /* it stays away: one a minute looks */
    stage_end(&stage);
}

/* Events of the job that are still there. */
static size_t events_of(struct stage *stage, const char *id)
{
    size_t count = 0, read;
    int64_t after = 0;
    do {
        struct arena memory = { 0 };
        struct event *events;
        struct error error;
        assert_int_equal(stage->reader->ops->reader_events(stage->reader, after, 500, &memory, &events, &read, &error), STATUS_OK);
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
    struct stage stage = { .destination = is_away };
    (void)state;
    stage_begin(&stage, "destinations: { d: { preset: tiss, url: 'http://127.0.0.1:1/', allow_private: true } }\n", began);
    stage_add(&stage, "d", "t", "CLM-2025-1", "x");
    stage_run_for(&stage, 6 * HOUR_MS);
    assert_int_equal(stage_job(&stage, "t", "CLM-2025-1").state, STATE_DEAD);
    size_t events = events_of(&stage, "CLM-2025-1");
    assert_true(events >= 1 + 6 * 2); /* taken, and six times claimed and settled */
    stage.now = began + five_years_ms - HOUR_MS;
    stage_run_for(&stage, 30 * MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    assert_true(events_of(&stage, "CLM-2025-1") >= events);
    stage.now = began + five_years_ms + 6 * HOUR_MS;
    stage_run_for(&stage, 30 * MINUTE_MS);
    assert_true(events_of(&stage, "CLM-2025-1") < events);
    stage_end(&stage);
}

/* However long the store takes to write it down. */
static void a_dead_letter_has_its_whole_time(void **state)
{
    struct stage stage = { .destination = refuses };
    (void)state;
    stage_begin(&stage, TO(", dead: { ttl: 7d }"), began);
    stage.commit_ms = 250;
    stage_add(&stage, "d", "t", "a", "x");
    stage_run_for(&stage, 10 * 1000);
    struct job job = stage_job(&stage, "t", "a");
    assert_int_equal(job.state, STATE_DEAD);
    assert_int_equal(job.expires_at - job.dead_at, 7 * (int64_t)DAY_MS);
    stage_end(&stage);
}

static int64_t released(struct stage *stage)
{
    struct lane_counts counts = stage_counts(stage, "d");
    return counts.ready + counts.running + counts.completed;
}

/* What became due while the daemon was down does not come all at once, and all of it comes. */
static void overdue_jobs_are_released_bit_by_bit(void **state)
{
    enum { JOBS = 3500, LONG_MS = 300, ONCE = 1000, EVERY_MS = 50 };
    struct stage stage = { .destination = delivers };
    int64_t at[LONG_MS];
    (void)state;
    stage_begin(&stage, TO(", concurrency: 10"), began);
    for (int i = 0; i < JOBS; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        stage_apply(&stage, &(struct store_op){ .kind = OP_INSERT,
                                                .insert = { .destination = SLICE("d"),
                                                            .tenant = SLICE("t"),
                                                            .id = slice_from(id),
                                                            .payload = SLICE("x"),
                                                            .priority = PRIORITY_NORMAL,
                                                            .run_at = began + HOUR_MS,
                                                            .deadline = INSTANT_NONE } });
    }
    assert_int_equal(released(&stage), 0);
    stage.now = began + 2 * HOUR_MS;
    stage_crash(&stage);
    for (int ms = 0; ms < LONG_MS; ms++) {
        stage_run_for(&stage, ms > 0 ? 1 : 0);
        at[ms] = released(&stage);
        int64_t before = ms >= EVERY_MS ? at[ms - EVERY_MS + 1] : 0;
        if (at[ms] - before > ONCE)
            fail_msg("%lld within %d ms, at %d ms", (long long)(at[ms] - before), EVERY_MS, ms);
    }
    assert_int_equal(at[LONG_MS - 1], JOBS);
    stage_end(&stage);
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
