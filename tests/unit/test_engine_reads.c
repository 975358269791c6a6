/*
 * The engine while the store takes its time to answer what it is asked, or does not answer: who needs the answer waits, and
 * nobody else.
 */
#include "core/decision/job.h"
#include "engine/orders.h"
#include "support/check.h"
#include "support/configs.h"
#include "support/engine_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENDS_MAX = 2000, PLAIN_JOBS = 60 };

#define TO(name, more) \
    name ": { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, concurrency: 5, in_doubt: resend, " \
         "priority: { aging: 1h, scope: destination }" more " }"
#define PLAIN "e: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, concurrency: 5 }"
#define BOTH(more) "destinations: { " TO("d", more) ", " PLAIN " }\n"

/* What is asked, and what was sent when. */
struct scene {
    int64_t takes_ms;   /* each read, */
    enum status fails;  /* and how it fails */
    instant fails_from, fails_until;
    struct {
        char id[16];
        instant at;
    } sent[SENDS_MAX];
    size_t count;
    enum outcome outcome; /* of those to "d" */
    int64_t lasts_ms;     /* each send; 0: 50 */
};

static int64_t reading(struct stage *stage, enum status *fails)
{
    const struct scene *scene = stage->context;
    if (stage->now >= scene->fails_from && stage->now < scene->fails_until)
        *fails = scene->fails;
    return scene->takes_ms;
}

static int64_t answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct scene *scene = stage->context;
    assert_true(scene->count < SENDS_MAX);
    snprintf(scene->sent[scene->count].id, sizeof scene->sent->id, "%.*s", SLICE_ARG(send->job->id));
    scene->sent[scene->count++].at = stage->now;
    bool plain = send->job->id.data[0] == 'e';
    answer->outcome = plain || scene->outcome == OUTCOME_NONE ? OUTCOME_DELIVERED : scene->outcome;
    answer->text = SLICE("HTTP 503: gone");
    answer->code = answer->outcome == OUTCOME_DELIVERED ? SLICE("http:200") : SLICE("http:503");
    return scene->lasts_ms > 0 ? scene->lasts_ms : 50;
}

static void add(struct stage *stage, const char *destination, const char *tenant, enum priority priority, const char *id)
{
    stage_apply(stage, &(struct store_op){
        .kind = OP_INSERT,
        .insert = { .destination = slice_from(destination), .tenant = slice_from(tenant), .id = slice_from(id),
                    .priority = priority, .rank = rank_of(priority, stage->now, HOUR_MS), .run_at = stage->now,
                    .deadline = INSTANT_NONE, .payload = SLICE("x") },
    });
}

/* A few tenants at "d", some of them in a hurry, and one that comes every second to "e". */
static void play(struct stage *stage, struct scene *scene, bool slow, const char *config)
{
    *stage = (struct stage){ .destination = answers, .context = scene, .reading = slow ? reading : NULL };
    stage_begin(stage, config, began);
    for (int i = 0; i < 12; i++) {
        char id[16], tenant[16];
        snprintf(id, sizeof id, "d%d", i);
        snprintf(tenant, sizeof tenant, "t%d", i % 4);
        add(stage, "d", tenant, i % 4 == 3 ? PRIORITY_CRITICAL : PRIORITY_NORMAL, id);
    }
    for (int i = 0; i < PLAIN_JOBS; i++) {
        char id[16];
        snprintf(id, sizeof id, "e%d", i);
        add(stage, "e", i % 2 ? "A" : "B", PRIORITY_NORMAL, id);
        stage_run_for(stage, SECOND_MS);
    }
}

static const instant *sent_at(const struct scene *scene, const char *id)
{
    const instant *at = NULL;
    for (size_t i = 0; i < scene->count; i++)
        if (strcmp(scene->sent[i].id, id) == 0) {
            check(!at, "%s was sent twice", id);
            at = &scene->sent[i].at;
        }
    return at;
}

static void nobody_else_waits(void **state)
{
    static const struct {
        const char *name;
        int64_t takes_ms;
        enum status fails;
        int64_t for_ms;
    } cases[] = {
        { "slow", 3 * SECOND_MS, STATUS_OK, 0 },
        { "very slow", 20 * SECOND_MS, STATUS_OK, 0 },
        { "broken", 0, STATUS_IO, HOUR_MS },
        { "slowly broken", 2 * SECOND_MS, STATUS_CORRUPT, HOUR_MS },
        { "away", 10, STATUS_AWAY, 20 * SECOND_MS },
        { "away and slow", 5 * SECOND_MS, STATUS_AWAY, 20 * SECOND_MS },
    };
    static struct scene plain, slow;
    struct stage stage;
    (void)state;
    plain = (struct scene){ 0 };
    play(&stage, &plain, false, BOTH(""));
    stage_end(&stage);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        slow = (struct scene){ .takes_ms = cases[i].takes_ms, .fails = cases[i].fails, .fails_from = began,
                               .fails_until = began + cases[i].for_ms };
        play(&stage, &slow, true, BOTH(""));
        check(stage.read_count > 0, "%s: nothing was read", cases[i].name);
        for (int k = 0; k < PLAIN_JOBS; k++) {
            char id[16];
            snprintf(id, sizeof id, "e%d", k);
            const instant *was = sent_at(&plain, id), *is = sent_at(&slow, id);
            check(was && is && *was == *is, "%s: %s was sent %lld ms late", cases[i].name, id,
                  is && was ? (long long)(*is - *was) : -1);
        }
        stage_run_for(&stage, HOUR_MS);
        assert_int_equal(stage_counts(&stage, "d").completed, 12);
        stage_end(&stage);
    }
}

/* On the way back who is in a hurry goes first, however late that is known; until then nobody of that destination goes. */
static void the_urgent_are_waited_for(void **state)
{
    static const struct {
        const char *name;
        int64_t takes_ms;
        enum status fails;
    } cases[] = { { "slow", 4 * SECOND_MS, STATUS_OK }, { "away", 10, STATUS_AWAY }, { "broken", SECOND_MS, STATUS_IO } };
    static struct scene scene;
    struct stage stage;
    struct error error;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        scene = (struct scene){ .takes_ms = cases[i].takes_ms };
        stage = (struct stage){ .destination = answers, .context = &scene, .reading = reading };
        stage_begin(&stage, "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, concurrency: 10,\n"
                            "  priority: { aging: 1h }, contingency: { ramp: [2, 10], stable: 1m, check: 5m } } }\n", began);
        assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
        for (int k = 0; k < 40; k++) {
            char id[16], tenant[16];
            snprintf(id, sizeof id, "d%d", k);
            snprintf(tenant, sizeof tenant, "t%d", k % 8);
            add(&stage, "d", tenant, k % 8 >= 6 ? PRIORITY_CRITICAL : PRIORITY_NORMAL, id);
        }
        stage_run_for(&stage, MINUTE_MS);
        scene.fails = cases[i].fails;
        scene.fails_from = stage.now;
        scene.fails_until = stage.now + 20 * SECOND_MS;
        instant left_at = stage.now;
        assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &error), STATUS_OK);
        stage_run_for(&stage, HOUR_MS);
        assert_int_equal(stage_counts(&stage, "d").completed, 40);
        instant first = scene.sent[0].at;
        if (cases[i].fails == STATUS_IO) { /* then they go with the many */
            check(first <= left_at + 10 * SECOND_MS, "%s: %lld ms", cases[i].name, (long long)(first - left_at));
        } else {
            check(first >= left_at + (cases[i].fails == STATUS_AWAY ? 20 * SECOND_MS : cases[i].takes_ms), "%s: %lld ms",
                  cases[i].name, (long long)(first - left_at));
            for (size_t k = 0; k < 2; k++)
                check(atoi(scene.sent[k].id + 1) % 8 >= 6, "%s: %s was sent as number %zu", cases[i].name, scene.sent[k].id, k);
        }
        stage_end(&stage);
    }
}

/* An answer that is of before: what was claimed and what came since counts, and nobody asks twice at once. */
static void a_late_answer_is_of_before(void **state)
{
    static struct scene scene;
    struct stage stage;
    (void)state;
    scene = (struct scene){ .takes_ms = 700 };
    play(&stage, &scene, true, BOTH(""));
    for (int i = 0; i < 200; i++) {
        char id[16], tenant[16];
        snprintf(id, sizeof id, "dx%d", i);
        snprintf(tenant, sizeof tenant, "t%d", i * 7 % 20);
        add(&stage, "d", tenant, i % 5 == 0 ? PRIORITY_CRITICAL : i % 3 == 0 ? PRIORITY_HIGH : PRIORITY_NORMAL, id);
        size_t out = 0;
        for (const struct stage_read *read = stage.reads; read; read = read->next)
            out++;
        check(out <= 4, "%zu reads are out at once", out); /* of the order, of alerts, of lanes, of what is old */
        stage_run_for(&stage, 100);
    }
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 212);
    assert_int_equal(scene.count, 212 + PLAIN_JOBS);
    stage_end(&stage);
}

#define ONE_SLOT(aging) \
    "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, timeout: 20s, " \
    "concurrency: { max: 1, adaptive: false }, fairness: { batch: 10 }, priority: { aging: " aging ", scope: destination } } }\n"

/* Urgent work that comes while the store is asked about the tenant's earlier work is asked for before its turn has come. */
static void what_comes_meanwhile_is_asked_for(void **state)
{
    static struct scene scene;
    struct stage stage = { .destination = answers, .context = &scene, .reading = reading };
    (void)state;
    scene = (struct scene){ .takes_ms = 100, .lasts_ms = SECOND_MS };
    stage_begin(&stage, ONE_SLOT("1h"), began);
    add(&stage, "d", "few", PRIORITY_NORMAL, "early");
    for (int i = 0; i < 8; i++) {
        char id[16];
        snprintf(id, sizeof id, "d%d", i);
        add(&stage, "d", "many", PRIORITY_NORMAL, id);
    }
    stage_run_for(&stage, 3500);
    size_t before = scene.count; /* in the middle of the batch of those */
    add(&stage, "d", "few", PRIORITY_NORMAL, "plain");
    stage_run_for(&stage, 50);
    add(&stage, "d", "few", PRIORITY_CRITICAL, "urgent");
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 11);
    assert_string_equal(scene.sent[before].id, "urgent");
    stage_end(&stage);
}

/* More comes to a tenant all the time, before the store can say what it has: nobody waits for as long as that goes on. */
static void who_always_gets_more_holds_up_nobody(void **state)
{
    static struct scene scene;
    struct stage stage = { .destination = answers, .context = &scene, .reading = reading };
    (void)state;
    scene = (struct scene){ .takes_ms = 300 };
    stage_begin(&stage, ONE_SLOT("1h"), began);
    for (int i = 0; i < 300; i++) {
        char id[16];
        snprintf(id, sizeof id, "d%d", i);
        add(&stage, "d", i % 30 == 29 ? "few" : "many", PRIORITY_NORMAL, id);
        stage_run_for(&stage, 100);
    }
    check(scene.count >= 60, "%zu were sent", scene.count);
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 300);
    stage_end(&stage);
}

/* How urgent work has become while it waited goes by the aging that is configured now. */
static void a_reload_ages_anew(void **state)
{
    static struct scene scene;
    struct stage stage = { .destination = answers, .context = &scene };
    struct error error;
    (void)state;
    scene = (struct scene){ .lasts_ms = 10 * SECOND_MS };
    stage_begin(&stage, ONE_SLOT("4h"), began);
    add(&stage, "d", "first", PRIORITY_NORMAL, "now");
    add(&stage, "d", "second", PRIORITY_NORMAL, "then");
    stage_settle(&stage);
    assert_int_equal(scene.count, 1);
    stage_apply(&stage, &(struct store_op){
        .kind = OP_INSERT,
        .insert = { .destination = SLICE("d"), .tenant = SLICE("old"), .id = SLICE("aged"), .priority = PRIORITY_NORMAL,
                    .rank = rank_of(PRIORITY_NORMAL, stage.now - 10 * MINUTE_MS, HOUR_MS), .run_at = stage.now,
                    .deadline = INSTANT_NONE, .payload = SLICE("x") },
    });
    add(&stage, "d", "new", PRIORITY_HIGH, "high");
    stage_run_for(&stage, SECOND_MS);
    struct config *config = config_from(SLICE(ONE_SLOT("1h")), "aging.yaml");
    assert_int_equal(engine_reload(stage.engine, config, &error), STATUS_OK);
    config_unref(config);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 4);
    assert_string_equal(scene.sent[1].id, "high");
    stage_end(&stage);
}

/* The destination goes, comes back, or the engine stops while the answer is on its way. */
static void an_answer_may_come_too_late(void **state)
{
    static struct scene scene;
    struct stage stage;
    struct error error;
    (void)state;
    struct config *without = config_from(SLICE("destinations: { " PLAIN " }\n"), "without.yaml");
    struct config *with = config_from(SLICE(BOTH("")), "with.yaml");
    for (int restarts = 0; restarts < 2; restarts++) {
        scene = (struct scene){ .takes_ms = 10 * SECOND_MS };
        play(&stage, &scene, true, BOTH(""));
        for (int i = 0; i < 20; i++) {
            char id[16];
            snprintf(id, sizeof id, "dy%d", i);
            add(&stage, "d", i % 2 ? "t0" : "t9", PRIORITY_HIGH, id);
        }
        stage_settle(&stage);
        assert_non_null(stage.reads);
        if (restarts) {
            stage_restart(&stage);
        } else {
            assert_int_equal(engine_reload(stage.engine, without, &error), STATUS_OK);
            stage_run_for(&stage, MINUTE_MS);
            assert_int_equal(engine_reload(stage.engine, with, &error), STATUS_OK);
        }
        stage_run_for(&stage, HOUR_MS);
        assert_int_equal(stage_counts(&stage, "d").completed, 32);
        stage_end(&stage);
    }
    config_unref(with);
    config_unref(without);
}

/* Dead letters go back once each, though they are found by reads that take longer than the time between two looks. */
static void what_is_redriven_goes_once(void **state)
{
    static struct scene scene;
    struct stage stage;
    (void)state;
    scene = (struct scene){ .takes_ms = 7 * SECOND_MS, .outcome = OUTCOME_TRANSIENT };
    play(&stage, &scene, true, BOTH(", retry: { max_retries: 0 }, breaker: { enabled: false }, contingency: { enabled: false }, "
                                    "dead: { auto_redrive: { after: 10m, times: 1 } }"));
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").dead, 12);
    scene.outcome = OUTCOME_DELIVERED;
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 12);
    assert_int_equal(scene.count, 2 * 12 + PLAIN_JOBS);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_else_waits),
        cmocka_unit_test(the_urgent_are_waited_for),
        cmocka_unit_test(a_late_answer_is_of_before),
        cmocka_unit_test(what_comes_meanwhile_is_asked_for),
        cmocka_unit_test(who_always_gets_more_holds_up_nobody),
        cmocka_unit_test(a_reload_ages_anew),
        cmocka_unit_test(an_answer_may_come_too_late),
        cmocka_unit_test(what_is_redriven_goes_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
