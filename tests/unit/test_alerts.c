/*
 * Alerts through the real engine: raised once, cleared once, kept, and told once to each who wants it.
 */
#include "engine/alerts.h"
#include "engine/notify.h"
#include "support/check.h"
#include "support/world.h"

#include <jansson.h>
#include <stdio.h>

static const instant began = INT64_C(1736678400000); /* 2025-01-12T10:40:00Z */

#define TOLD "notify: [{ name: ops, webhook: 'http://127.0.0.1:2/', allow_private: true, on: [all] }]\n"
#define TO(more) TOLD "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" more " } }\n"
#define QUICK ", retry: { base: 1s, floor: 1s, cap: 1s, jitter: 0, max_retries: 1 }, contingency: { enabled: false }, breaker: { min_calls: 100000 }"

enum { MESSAGES_MAX = 64 };

/* What the destination does, and what whoever is told has got. */
struct script {
    const char *fails_with; /* a code for destination d; NULL: it delivers */
    bool webhook_fails;
    char messages[MESSAGES_MAX][160]; /* "alert.raised pending d -" */
    size_t count;
};

static void note_message(struct script *script, const struct send *send)
{
    json_t *root = json_loadb(send->job->payload.data, send->job->payload.len, 0, NULL);
    const json_t *data = json_object_get(root, "data");
    const char *destination = json_string_value(json_object_get(data, "destination"));
    const char *tenant = json_string_value(json_object_get(data, "tenant"));
    assert_non_null(data);
    assert_true(script->count < MESSAGES_MAX);
    snprintf(script->messages[script->count++], sizeof *script->messages, "%s %s %s %s", json_string_value(json_object_get(root, "type")) + 6,
             json_string_value(json_object_get(data, "alert")), destination ? destination : "-", tenant ? tenant : "-");
    json_decref(root);
}

static int64_t answers(struct world *world, const struct send *send, struct answer *answer)
{
    struct script *script = world->context;
    bool told = slice_equal(send->job->tenant, NOTIFY_TENANT);
    const char *fails_with = told ? script->webhook_fails ? "http:503" : NULL : script->fails_with;
    answer->outcome = fails_with ? OUTCOME_NONE : OUTCOME_DELIVERED;
    if (fails_with) {
        answer->code = slice_from(fails_with);
        answer->text = SLICE("it failed");
    }
    if (told && !fails_with)
        note_message(script, send);
    return 5;
}

static void check_messages(const struct script *script, const char *const *expected, size_t count, const char *what)
{
    for (size_t i = 0; i < script->count || i < count; i++)
        check(i < script->count && i < count && strcmp(script->messages[i], expected[i]) == 0, "%s: message %zu is \"%s\", expected \"%s\"",
              what, i, i < script->count ? script->messages[i] : "none", i < count ? expected[i] : "none");
}

#define CHECK_MESSAGES(script, what, ...)                                                                                     \
    do {                                                                                                                    \
        static const char *const expected_messages[] = { __VA_ARGS__ };                                                    \
        check_messages(script, expected_messages, COUNT_OF(expected_messages), what);                                       \
    } while (0)

static size_t kept_in(struct world *world, struct slice space, struct slice *ret_first, struct arena *memory)
{
    struct kept *kept;
    struct error error;
    size_t count;
    arena_init(memory, SIZE_MAX / 4);
    assert_int_equal(world->reader->ops->reader_kept_list(world->reader, space, SLICE(""), STORE_PAGE_MAX, memory, &kept, &count, &error),
                     STATUS_OK);
    if (count > 0 && ret_first)
        *ret_first = kept[0].value;
    return count;
}

static size_t standing(struct world *world)
{
    struct arena memory;
    size_t count = kept_in(world, SPACE_ALERT, NULL, &memory);
    arena_release(&memory);
    return count;
}

static size_t cleared(struct world *world)
{
    struct arena memory;
    size_t count = kept_in(world, SPACE_ALERT_CLEARED, NULL, &memory);
    arena_release(&memory);
    return count;
}

/* How many events of the trail tell of alerts. */
static size_t events(struct world *world, const char *note)
{
    struct arena memory;
    struct event *list;
    struct error error;
    size_t count, found = 0;
    int64_t after = 0;
    do {
        arena_init(&memory, SIZE_MAX / 4);
        assert_int_equal(world->reader->ops->reader_events(world->reader, after, STORE_PAGE_MAX, &memory, &list, &count, &error), STATUS_OK);
        for (size_t i = 0; i < count; i++) {
            found += list[i].type == EVENT_TYPE_NOTE && slice_search(list[i].data, slice_from(note)) < list[i].data.len;
            after = list[i].number;
        }
        arena_release(&memory);
    } while (count == STORE_PAGE_MAX);
    return found;
}

static void add_jobs(struct world *world, const char *destination, const char *tenant, int count)
{
    for (int i = 0; i < count; i++)
        world_add(world, destination, tenant, NULL, "x");
}

static void ok(enum status status)
{
    assert_int_equal(status, STATUS_OK);
}

/* S3-015, S3-063: contingency by hand. One message at its beginning and one at its end, one event each. */
static void contingency_is_told_twice(void **state)
{
    struct script script = { 0 };
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", contingency: { ramp: [5], stable: 1m, check: 1m }"), began);
    world_run_for(&world, MINUTE_MS);
    ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE("they called"), &error));
    world_run_for(&world, MINUTE_MS);
    CHECK_MESSAGES(&script, "began", "raised contingency d -");
    assert_int_equal(standing(&world), 1);
    ok(engine_leave_contingency(world.engine, SLICE("d"), &error));
    world_run_for(&world, 5 * MINUTE_MS);
    CHECK_MESSAGES(&script, "over", "raised contingency d -", "cleared contingency d -");
    assert_int_equal(standing(&world), 0);
    assert_int_equal(cleared(&world), 1);
    assert_int_equal(events(&world, "alert_raised"), 1);
    assert_int_equal(events(&world, "alert_cleared"), 1);
    world_end(&world);
}

/* S3-066: after half an hour it is down, until it is back. */
static void a_long_outage_is_told(void **state)
{
    struct script script = { 0 };
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", contingency: { ramp: [5], stable: 1m }"), began);
    ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
    world_run_for(&world, 29 * MINUTE_MS);
    CHECK_MESSAGES(&script, "not yet", "raised contingency d -");
    world_crash(&world); /* the time counts on */
    world_run_for(&world, 2 * MINUTE_MS);
    CHECK_MESSAGES(&script, "down", "raised contingency d -", "raised down d -");
    ok(engine_leave_contingency(world.engine, SLICE("d"), &error));
    world_run_for(&world, 5 * MINUTE_MS);
    assert_int_equal(standing(&world), 0);
    assert_int_equal(script.count, 4);
    world_end(&world);
}

/* A planned absence is told, but is no long outage: that is counted from when it should be over. */
static void a_window_is_no_long_outage(void **state)
{
    static const struct { const char *fails_with; bool jobs; } cases[] = { { NULL, true }, { NULL, false }, { "http:503", true } };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct script script = { 0 };
        struct world world = { .destination = answers, .context = &script };
        world_begin(&world, TO(", contingency: { ramp: [5], stable: 1m, check: 5m, maintenance: ['Sun 11:00-12:30'] }"), began);
        world_run_for(&world, 30 * MINUTE_MS); /* until 11:10 */
        script.fails_with = cases[i].fails_with;
        add_jobs(&world, "d", "A", cases[i].jobs ? 5 : 0);
        world_run_for(&world, 75 * MINUTE_MS); /* until 12:25 */
        CHECK_MESSAGES(&script, "in the window", "raised contingency d -");
        world_run_for(&world, 34 * MINUTE_MS); /* until 12:59 */
        if (cases[i].fails_with) {
            CHECK_MESSAGES(&script, "it should be over", "raised contingency d -");
            world_run_for(&world, 2 * MINUTE_MS);
            CHECK_MESSAGES(&script, "it is not", "raised contingency d -", "raised down d -");
        } else {
            CHECK_MESSAGES(&script, "over", "raised contingency d -", "cleared contingency d -");
        }
        world_end(&world);
    }
}

/* S4-033 */
static void an_open_breaker_is_told(void **state)
{
    struct script script = { .fails_with = "http:503" };
    struct world world = { .destination = answers, .context = &script };
    (void)state;
    world_begin(&world, TO(", breaker: { min_calls: 10, open: 30s }, contingency: { enabled: false }"
                           ", retry: { base: 10s, floor: 1s, cap: 10s, max_retries: 100 }"), began);
    add_jobs(&world, "d", "A", 50);
    world_run_for(&world, 9 * MINUTE_MS);
    assert_int_equal(script.count, 0);
    world_run_for(&world, 3 * MINUTE_MS);
    CHECK_MESSAGES(&script, "open", "raised breaker_open d -");
    script.fails_with = NULL;
    world_run_for(&world, 15 * MINUTE_MS);
    CHECK_MESSAGES(&script, "closed", "raised breaker_open d -", "cleared breaker_open d -");
    world_end(&world);
}

/* S3-064: 100 may wait. */
static void a_long_queue_is_told(void **state)
{
    struct script script = { 0 };
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", alerts: { pending: 100 }"), began);
    ok(engine_pause(world.engine, SLICE("d"), SLICE(""), &error));
    add_jobs(&world, "d", "A", 60);
    add_jobs(&world, "d", "B", 40);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(script.count, 0);
    add_jobs(&world, "d", "B", 1);
    world_run_for(&world, MINUTE_MS);
    CHECK_MESSAGES(&script, "over", "raised pending d -");
    world_restart(&world);
    world_run_for(&world, 10 * MINUTE_MS);
    world_crash(&world);
    world_run_for(&world, 10 * MINUTE_MS);
    CHECK_MESSAGES(&script, "told once, whatever restarts", "raised pending d -");
    ok(engine_resume(world.engine, SLICE("d"), &error));
    world_run_for(&world, 10 * MINUTE_MS);
    CHECK_MESSAGES(&script, "done", "raised pending d -", "cleared pending d -");
    world_end(&world);
}

/* S4-034 */
static void growth_is_told(void **state)
{
    struct script script = { 0 };
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", alerts: { growth: 2 }"), began);
    ok(engine_pause(world.engine, SLICE("d"), SLICE(""), &error));
    add_jobs(&world, "d", "A", 150);
    world_run_for(&world, 15 * MINUTE_MS);
    assert_int_equal(script.count, 0);
    add_jobs(&world, "d", "A", 151);
    world_run_for(&world, MINUTE_MS);
    CHECK_MESSAGES(&script, "twice as many", "raised growth d -");
    world_run_for(&world, 15 * MINUTE_MS); /* it grows no more */
    CHECK_MESSAGES(&script, "usual by now", "raised growth d -", "cleared growth d -");
    world_end(&world);
}

/* S4-035, C-73: not while an outage or a pause holds them, and not forgotten by a crash. */
static void old_jobs_are_told(void **state)
{
    struct script script = { 0 };
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", alerts: { age: 15m }, rate: { total: 1/m }"), began);
    add_jobs(&world, "d", "A", 100);
    world_run_for(&world, 10 * MINUTE_MS);
    world_crash(&world);
    world_run_for(&world, 4 * MINUTE_MS);
    assert_int_equal(script.count, 0);
    world_run_for(&world, 2 * MINUTE_MS);
    CHECK_MESSAGES(&script, "fifteen minutes", "raised age d -");
    world_run_for(&world, 3 * HOUR_MS);
    CHECK_MESSAGES(&script, "all done", "raised age d -", "cleared age d -");
    ok(engine_pause(world.engine, SLICE("d"), SLICE(""), &error));
    add_jobs(&world, "d", "A", 10);
    world_run_for(&world, HOUR_MS);
    assert_int_equal(script.count, 2);
    world_end(&world);
}

/* S3-065, S0-054, S1-033: told with the first job, then the count; and cleared after a quiet time, with the count. */
static void jobs_that_die_are_counted(void **state)
{
    static const struct {
        const char *name, *code, *alert;
    } rows[] = {
        { "retries used up", "http:503", "max_retries_exceeded" },
        { "permanent", "http:400", "permanent_error" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script script = { .fails_with = rows[i].code };
        struct world world = { .destination = answers, .context = &script };
        char text[64];
        struct arena memory;
        struct slice record;
        world_begin(&world, TO(QUICK), began);
        world_add(&world, "d", "A", "first", "x");
        world_run_for(&world, 2 * MINUTE_MS);
        check(script.count == 1, "%s: %zu messages", rows[i].name, script.count);
        add_jobs(&world, "d", "A", 3000);
        world_run_for(&world, 10 * MINUTE_MS);
        assert_int_equal(world_counts(&world, "d").dead, 3001);
        check(script.count >= 2 && script.count <= 4, "%s: %zu messages of 3001 jobs", rows[i].name, script.count);
        for (size_t j = 0; j < script.count; j++) {
            snprintf(text, sizeof text, "%s %s d -", j == 0 ? "raised" : "grown", rows[i].alert);
            assert_string_equal(script.messages[j], text);
        }
        size_t told = script.count;
        world_run_for(&world, 16 * MINUTE_MS);
        snprintf(text, sizeof text, "cleared %s d -", rows[i].alert);
        assert_int_equal(script.count, told + 1);
        assert_string_equal(script.messages[told], text);
        assert_int_equal(kept_in(&world, SPACE_ALERT_CLEARED, &record, &memory), 1);
        assert_true(slice_search(record, SLICE("\"count\":3001")) < record.len);
        arena_release(&memory);
        world_end(&world);
    }
}

/* S2-044, S2-045, S2-046 */
static void dead_letters_are_told(void **state)
{
    struct script script = { .fails_with = "http:400" };
    struct world world = { .destination = answers, .context = &script };
    (void)state;
    world_begin(&world, "notify: [{ name: ops, webhook: 'http://127.0.0.1:2/', allow_private: true, on: [warning] }]\n"
                        "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" QUICK
                        ", alerts: { dead: 100, dead_per_tenant: 50, dead_rate: 0.02 } } }\n", began);
    add_jobs(&world, "d", "A", 50);
    add_jobs(&world, "d", "B", 49);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(script.count, 0);
    add_jobs(&world, "d", "A", 1);
    world_run_for(&world, MINUTE_MS);
    CHECK_MESSAGES(&script, "51 of A, 100 in all", "raised dead_per_tenant d A", "raised dead_rate d -");
    add_jobs(&world, "d", "C", 1);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(script.count, 3);
    assert_string_equal(script.messages[2], "raised dead d -");
    world_crash(&world); /* the hour's figures are gone: no reason to say that it is well */
    world_run_for(&world, 50 * MINUTE_MS);
    assert_int_equal(script.count, 3);
    script.fails_with = NULL;
    add_jobs(&world, "d", "A", 500);
    world_run_for(&world, 5 * MINUTE_MS);
    assert_int_equal(script.count, 4);
    assert_string_equal(script.messages[3], "cleared dead_rate d -");
    assert_int_equal(standing(&world), 2); /* dead, and of A */
    world_end(&world);
}

/* S2-046: the company itself hears of its own, and of nobody else's. */
static void a_tenant_hears_of_its_own(void **state)
{
    struct script script = { .fails_with = "http:400" };
    struct world world = { .destination = answers, .context = &script };
    (void)state;
    world_begin(&world, "notify: [{ name: b, webhook: 'http://127.0.0.1:2/', allow_private: true, on: [all], tenants: [B] }]\n"
                        "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" QUICK
                        ", alerts: { dead_per_tenant: 5 } } }\n", began);
    add_jobs(&world, "d", "A", 6);
    add_jobs(&world, "d", "B", 6);
    world_run_for(&world, MINUTE_MS);
    CHECK_MESSAGES(&script, "of B", "raised dead_per_tenant d B");
    world_end(&world);
}

/* Credentials are refused: of the destination, or of one tenant. A pause by hand is no alert. */
static void blocks_are_told(void **state)
{
    static const struct {
        const char *yaml;
        const char *raised, *cleared;
    } rows[] = {
        { TO(", errors: { blocked+: [http:401] }"), "raised blocked d -", "cleared blocked d -" },
        { TO(", errors: { blocked+: [http:401] }, blocked: tenant"), "raised tenant_blocked d A", "cleared tenant_blocked d A" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script script = { .fails_with = "http:401" };
        struct world world = { .destination = answers, .context = &script };
        struct error error;
        world_begin(&world, rows[i].yaml, began);
        add_jobs(&world, "d", "A", 3);
        world_run_for(&world, MINUTE_MS);
        world_crash(&world);
        world_run_for(&world, MINUTE_MS);
        check(script.count == 1 && strcmp(script.messages[0], rows[i].raised) == 0, "row %zu: %zu, %s", i, script.count, script.messages[0]);
        script.fails_with = NULL;
        ok(engine_resume(world.engine, SLICE("d"), &error));
        ok(engine_resume_tenant(world.engine, SLICE("d"), SLICE("A"), &error));
        world_run_for(&world, MINUTE_MS);
        check(script.count == 2 && strcmp(script.messages[1], rows[i].cleared) == 0, "row %zu: %zu, %s", i, script.count, script.messages[1]);
        ok(engine_pause(world.engine, SLICE("d"), SLICE("by hand"), &error));
        world_run_for(&world, MINUTE_MS);
        assert_int_equal(script.count, 2);
        world_end(&world);
    }
}

static void a_full_dead_letter_store_is_told(void **state)
{
    struct script script = { .fails_with = "http:400" };
    struct world world = { .destination = answers, .context = &script };
    (void)state;
    world_begin(&world, "notify: [{ name: ops, webhook: 'http://127.0.0.1:2/', allow_private: true, on: [dead_full] }]\n"
                        "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" QUICK
                        ", dead: { max: 3 } } }\n", began);
    for (int i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%d", i);
        world_add(&world, "d", "A", id, "x");
    }
    world_run_for(&world, MINUTE_MS);
    world_crash(&world);
    world_run_for(&world, MINUTE_MS);
    CHECK_MESSAGES(&script, "full", "raised dead_full d -");
    world_apply(&world, &(struct store_op){ .kind = OP_PURGE, .job = { .tenant = SLICE("A"), .id = SLICE("j0") } });
    world_run_for(&world, MINUTE_MS);
    CHECK_MESSAGES(&script, "fits", "raised dead_full d -", "cleared dead_full d -");
    world_end(&world);
}

/* Of the daemon: jobs that grow too old while nobody sends them. */
static void expired_jobs_are_told(void **state)
{
    struct script script = { 0 };
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", job_ttl: 1h"), began);
    ok(engine_pause(world.engine, SLICE("d"), SLICE(""), &error));
    add_jobs(&world, "d", "A", 7);
    world_run_for(&world, 70 * MINUTE_MS);
    CHECK_MESSAGES(&script, "expired", "raised expired - -");
    world_run_for(&world, 20 * MINUTE_MS);
    CHECK_MESSAGES(&script, "quiet", "raised expired - -", "cleared expired - -");
    world_end(&world);
}

/* S2-077, S2-078, S2-079, C-48: by the limit of jobs that wait; who is told is told although the store is full. */
static void a_store_that_fills_is_told(void **state)
{
    struct script script = { 0 };
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, "limits: { pending: 100 }\n" TO(""), began);
    ok(engine_pause(world.engine, SLICE("d"), SLICE(""), &error));
    add_jobs(&world, "d", "A", 80);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(script.count, 0);
    add_jobs(&world, "d", "A", 1);
    world_run_for(&world, MINUTE_MS);
    CHECK_MESSAGES(&script, "80%", "raised store_filling - -");
    add_jobs(&world, "d", "A", 10);
    world_run_for(&world, MINUTE_MS);
    CHECK_MESSAGES(&script, "90%", "raised store_filling - -", "raised store_nearly_full - -");
    add_jobs(&world, "d", "A", 9);
    world_run_for(&world, MINUTE_MS);
    CHECK_MESSAGES(&script, "full", "raised store_filling - -", "raised store_nearly_full - -", "raised store_refusing - -");
    struct arena memory;
    struct slice newest;
    assert_int_equal(kept_in(&world, SPACE_ALERT, &newest, &memory), 3);
    check(slice_search(newest, SLICE("(100 jobs wait, limits.pending is 100")) < newest.len, "%.*s", SLICE_ARG(newest));
    arena_release(&memory);
    ok(engine_resume(world.engine, SLICE("d"), &error));
    world_run_for(&world, 5 * MINUTE_MS);
    assert_int_equal(script.count, 6);
    assert_int_equal(standing(&world), 0);
    world_end(&world);
}

/* Whoever is told is away: it is tried again until it is there, and nobody is told of that. */
static void a_webhook_that_fails_is_tried_again_and_is_no_alert(void **state)
{
    struct script script = { .webhook_fails = true };
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(""), began);
    ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
    world_run_for(&world, 3 * MINUTE_MS);
    assert_int_equal(script.count, 0);
    assert_true(world.send_count > 3);
    world_crash(&world);
    script.webhook_fails = false;
    world_run_for(&world, 10 * MINUTE_MS);
    CHECK_MESSAGES(&script, "at last", "raised contingency d -");
    assert_int_equal(standing(&world), 1);
    world_end(&world);
}

/* It never takes it: the message ends as a dead letter of its own, which goes away, and raises nothing. */
static void news_makes_no_news(void **state)
{
    struct script script = { .webhook_fails = true };
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", alerts: { down: 0s }"), began);
    ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
    world_run_for(&world, 24 * HOUR_MS);
    assert_int_equal(world_counts(&world, "notify.ops").dead, 1);
    assert_int_equal(standing(&world), 1);
    assert_int_equal(events(&world, "alert_raised"), 1);
    world_run_for(&world, 8 * 24 * HOUR_MS);
    assert_int_equal(world_counts(&world, "notify.ops").dead, 0);
    world_end(&world);
}

/* The destination that the news goes through dies of it: its own news does not die again and again. */
static void news_through_a_failing_destination_makes_no_news(void **state)
{
    struct script script = { .webhook_fails = true };
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, "notify: [{ name: sms, to: '+1', through: d, on: [all] }]\n"
                        "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" QUICK ", alerts: { dead_rate: 0.01 } },"
                        " e: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, alerts: { down: 0s } } }\n", began);
    ok(engine_enter_contingency(world.engine, SLICE("e"), SLICE(""), &error));
    world_run_for(&world, 24 * HOUR_MS);
    assert_int_equal(world_counts(&world, "d").dead, 1);
    assert_int_equal(events(&world, "alert_raised"), 1);
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
    struct world world = { .destination = answers, .context = &script };
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
    ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE("they called"), &error));
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
        now.records += ops[i].kind == OP_KEEP && slice_equal(ops[i].keep.space, SPACE_ALERT);
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
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    seen = (struct seen){ 0 };
    world_begin(&world, TO(QUICK ", alerts: { pending: 5 }"), began);
    world.applied = see;
    add_jobs(&world, "d", "A", 10);
    ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
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
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", errors: { blocked+: [http:401] }"), began);
    script.fails_with = "http:401";
    add_jobs(&world, "d", "A", 1);
    while (strcmp(engine_destination(world.engine, SLICE("d")).mode, "paused") != 0)
        assert_true(world_step(&world) || world.now++ < began + 1000);
    world.fail_applies = true;
    world_run_for(&world, 20 * SECOND_MS);
    script.fails_with = NULL;
    ok(engine_resume(world.engine, SLICE("d"), &error));
    world_run_for(&world, 20 * SECOND_MS);
    world.fail_applies = false;
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(script.count, 0);
    assert_int_equal(standing(&world), 0);
    assert_int_equal(cleared(&world), 0);
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
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", alerts: { pending: 5 }"), began);
    ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
    add_jobs(&world, "d", "A", 6);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(standing(&world), 2);
    struct config *config = config_of(TO("")); /* without the threshold */
    ok(engine_reload(world.engine, config, &error));
    config_unref(config);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(standing(&world), 1);
    assert_int_equal(script.count, 3);
    config = config_of(TOLD);
    ok(engine_reload(world.engine, config, &error));
    config_unref(config);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(standing(&world), 0);
    assert_int_equal(script.count, 4);
    config = config_of("destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true } }\n");
    ok(engine_reload(world.engine, config, &error));
    config_unref(config);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(standing(&world), 0); /* its contingency ended when it was taken out */
    assert_int_equal(script.count, 4);
    world_end(&world);
}

/* The clock goes back by hours: nothing is told twice, and what comes next is told in time. */
static void a_clock_put_back(void **state)
{
    struct script script = { 0 };
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", alerts: { pending: 5 }"), began);
    ok(engine_pause(world.engine, SLICE("d"), SLICE(""), &error));
    add_jobs(&world, "d", "A", 6);
    world_run_for(&world, MINUTE_MS);
    world.now -= 5 * HOUR_MS;
    world.wake_at = world.now;
    world_run_for(&world, 5 * MINUTE_MS);
    CHECK_MESSAGES(&script, "once", "raised pending d -");
    ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
    ok(engine_resume(world.engine, SLICE("d"), &error));
    world_run_for(&world, MINUTE_MS);
    CHECK_MESSAGES(&script, "in time", "raised pending d -", "raised contingency d -");
    world_end(&world);
}

/* A new process at the very moment of an alert that is over: the next one is another, and is told. */
static void a_clock_put_back_over_a_restart(void **state)
{
    struct script script = { 0 };
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, TO(", contingency: { ramp: [5], stable: 1m }"), began);
    for (int i = 0; i < 2; i++) {
        ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
        world_run_for(&world, MINUTE_MS);
        ok(engine_leave_contingency(world.engine, SLICE("d"), &error));
        world_run_for(&world, 5 * MINUTE_MS);
        assert_int_equal(cleared(&world), (size_t)i + 1);
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
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    (void)state;
    world_begin(&world, "retention: { audit: 1d }\n" TO(", contingency: { ramp: [5], stable: 1m }"), began);
    ok(engine_enter_contingency(world.engine, SLICE("d"), SLICE(""), &error));
    world_run_for(&world, MINUTE_MS);
    ok(engine_leave_contingency(world.engine, SLICE("d"), &error));
    world_run_for(&world, 23 * HOUR_MS);
    assert_int_equal(cleared(&world), 1);
    world_run_for(&world, 3 * HOUR_MS);
    assert_int_equal(cleared(&world), 0);
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
    struct world world = { .destination = answers, .context = &script };
    struct error error;
    char tenant[16];
    (void)state;
    world_begin(&world, with, began);
    for (int i = 0; i < TENANTS; i++) {
        snprintf(tenant, sizeof tenant, "t%d", i);
        add_jobs(&world, "d", tenant, 2);
        add_jobs(&world, "e", tenant, 2);
    }
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(standing(&world), 2 * (ALERTS_TENANTS_MAX + 1)); /* and permanent_error */
    script.fails_with = "http:401";
    add_jobs(&world, "d", "t5", 1);
    world_run_for(&world, MINUTE_MS);
    CHECK_MESSAGES(&script, "of t5", "raised tenant_blocked d t5");

    struct config *config = config_of(without);
    ok(engine_reload(world.engine, config, &error));
    config_unref(config);
    ok(engine_resume_tenant(world.engine, SLICE("d"), SLICE("t5"), &error));
    world_run_for(&world, 30 * MINUTE_MS);
    assert_int_equal(cleared(&world), 2 * (ALERTS_TENANTS_MAX + 1) + 1);
    world_run_for(&world, 25 * HOUR_MS);
    assert_int_equal(cleared(&world), 0);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contingency_is_told_twice),
        cmocka_unit_test(a_long_outage_is_told),
        cmocka_unit_test(a_window_is_no_long_outage),
        cmocka_unit_test(an_open_breaker_is_told),
        cmocka_unit_test(a_long_queue_is_told),
        cmocka_unit_test(growth_is_told),
        cmocka_unit_test(old_jobs_are_told),
        cmocka_unit_test(jobs_that_die_are_counted),
        cmocka_unit_test(dead_letters_are_told),
        cmocka_unit_test(a_tenant_hears_of_its_own),
        cmocka_unit_test(blocks_are_told),
        cmocka_unit_test(a_full_dead_letter_store_is_told),
        cmocka_unit_test(expired_jobs_are_told),
        cmocka_unit_test(a_store_that_fills_is_told),
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
