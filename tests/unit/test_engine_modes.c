/*
 * Outages, limits and the way back, through the real engine.
 */
#include "engine/measures.h"
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
#define QUICK_RETRY ", retry: { base: 10s, floor: 1s, cap: 1m, max_retries: 3 }"

/* A destination that is away for a while, and who was seen there. */
struct bad_times {
    instant from, until;
    size_t requests_during;   /* begun while it was away */
    size_t peak_after;        /* most under way at once, in the ten minutes after it came back */
    instant back_at;          /* the first that was answered well after it */
    size_t first_seconds[3];  /* begun in each of the seconds from then on */
};

static void note_return(struct bad_times *outage, const struct stage *stage)
{
    size_t under_way = sends_under_way(stage) + 1; /* with this one */
    if (under_way > outage->peak_after)
        outage->peak_after = under_way;
    if (outage->back_at == 0)
        outage->back_at = stage->now;
    int64_t second = (stage->now - outage->back_at) / 1000;
    if (second < 3)
        outage->first_seconds[second]++;
}

static int64_t is_away_at_times(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct bad_times *outage = stage->context;
    (void)send;
    if (stage->now >= outage->from && stage->now < outage->until) {
        outage->requests_during++;
        answer->code = SLICE("http:503");
        answer->text = SLICE("HTTP 503: away");
        return 20;
    }
    if (stage->now >= outage->until && stage->now < outage->until + 600 * 1000)
        note_return(outage, stage);
    answer->outcome = OUTCOME_DELIVERED;
    return 20;
}

/* A bad answer, an outage, and bad answers after it: they are not too late, since the outage was no time of its own (C-69). */
static int64_t bad_before_and_after(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)send;
    if (*(int *)stage->context >= 3) {
        answer->outcome = OUTCOME_DELIVERED;
        return 20;
    }
    ++*(int *)stage->context;
    answer->code = SLICE("http:500");
    answer->text = SLICE("HTTP 500");
    return 20;
}

static void an_outage_is_no_time_of_a_jobs(void **state)
{
    int failures = 0;
    struct stage stage = { .destination = bad_before_and_after, .context = &failures };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", retry: { base: 10s, floor: 1s, cap: 1m, max_retries: 9, max_elapsed: 1h }"
                           ", contingency: { ramp: [5], stable: 1m, check: 5m }"), began);
    stage_add(&stage, "d", "A", "j", "x");
    stage_run_for(&stage, 5000);
    assert_int_equal(failures, 1);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they called"), &error), STATUS_OK);
    stage_run_for(&stage, INT64_C(3) * 3600 * 1000);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &error), STATUS_OK);
    stage_run_for(&stage, 50 * 60 * 1000);
    assert_int_equal(failures, 3); /* one of them on the way back, which is free */
    assert_int_equal(stage_job(&stage, "A", "j").state, STATE_COMPLETED);
    stage_end(&stage);
}

/* A-22 C-69 S3-001 S3-002 S3-006 S4-044 S4-046. Invariants 4 and 8: nothing is used up, only looks are sent, and the way back is a ramp. */
static void an_outage_of_three_hours_costs_nothing(void **state)
{
    struct bad_times outage = { .from = began + 60 * 1000, .until = began + 60 * 1000 + INT64_C(3) * 3600 * 1000 };
    struct stage stage = { .destination = is_away_at_times, .context = &outage };
    (void)state;
    stage_begin(&stage, TO(QUICK_RETRY ", concurrency: 64, breaker: { min_calls: 20 }"
                           ", contingency: { ramp: [5, 10, 25], stable: 15m, check: 5m }"), began);
    stage_run_for(&stage, 2 * 60 * 1000);
    add_jobs(&stage, 10000);
    stage_run_for(&stage, 5 * 60 * 1000);
    assert_string_equal(status_of(&stage).mode, "contingency");
    assert_string_equal(status_of(&stage).held_by, "contingency");
    size_t before = outage.requests_during;
    stage_run_until(&stage, outage.until - 1);
    assert_true(outage.requests_during - before <= 3 * 3600 / 300); /* one look each five minutes */
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    stage_run_for(&stage, 10 * 60 * 1000);
    assert_int_equal(outage.peak_after, 25);
    assert_true(outage.first_seconds[0] <= 1 + 5 && outage.first_seconds[1] <= 10 && outage.first_seconds[2] <= 25);
    stage_run_for(&stage, INT64_C(3600) * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 10000);
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    assert_string_equal(status_of(&stage).mode, "normal");
    stage_end(&stage);
}

/* S3-005. C-55: the last try of a job fails in an outage that nobody has noticed yet. */
static void a_last_try_in_an_outage_is_held(void **state)
{
    struct bad_times outage = { .from = began, .until = began + INT64_C(3600) * 1000 };
    struct stage stage = { .destination = is_away_at_times, .context = &outage };
    (void)state;
    stage_begin(&stage, TO(QUICK_RETRY ", contingency: { ramp: [5], stable: 1m, check: 5m }"), began);
    stage_add(&stage, "d", "t", "one", "x");
    stage_run_for(&stage, 30 * 60 * 1000);
    struct job job = stage_job(&stage, "t", "one");
    assert_int_equal(job.retry_count, 3);
    assert_true(job.state == STATE_WAITING || job.state == STATE_PENDING);
    assert_string_equal(status_of(&stage).mode, "contingency");
    stage_run_for(&stage, INT64_C(3600) * 1000);
    assert_int_equal(stage_job(&stage, "t", "one").state, STATE_COMPLETED);
    stage_end(&stage);
}

/* S4-022 S4-014. Behind an open breaker nobody's tries are spent. */
static void an_open_breaker_spends_nothing(void **state)
{
    struct bad_times outage = { .from = began, .until = began + INT64_C(2) * 3600 * 1000 };
    struct stage stage = { .destination = is_away_at_times, .context = &outage };
    (void)state;
    stage_begin(&stage, TO(QUICK_RETRY ", concurrency: 10, breaker: { min_calls: 10, open: 30s, open_max: 5m, probes: 5 }"), began);
    add_jobs(&stage, 200);
    stage_run_for(&stage, 5000);
    assert_string_equal(status_of(&stage).breaker, "open");
    assert_string_equal(status_of(&stage).held_by, "breaker");
    assert_string_equal(status_of(&stage).mode, "normal");
    assert_true(status_of(&stage).held_since >= began && status_of(&stage).held_since <= stage.now);
    assert_true(status_of(&stage).held_until > stage.now);
    stage_run_until(&stage, outage.until);
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    assert_true(outage.requests_during < 200); /* ten and some, then five every five minutes */
    stage_run_for(&stage, INT64_C(3600) * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 200);
    assert_string_equal(status_of(&stage).breaker, "closed");
    stage_end(&stage);
}

/* A fast and good destination is not slowed by looking for its limit. */
static void a_good_destination_gets_all_its_concurrency(void **state)
{
    struct bad_times never = { .from = INSTANT_MAX, .until = INSTANT_MAX };
    struct stage stage = { .destination = is_away_at_times, .context = &never };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 64"), began);
    add_jobs(&stage, 300);
    stage_run_for(&stage, 10 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 300);
    assert_int_equal(status_of(&stage).limit.now, 64);
    assert_int_equal(status_of(&stage).concurrency, 64);
    stage_end(&stage);
}

/* S3-037 S4-003 */
static void a_cycle_sends_so_many(void **state)
{
    struct bad_times never = { .from = INSTANT_MAX, .until = INSTANT_MAX };
    struct stage stage = { .destination = is_away_at_times, .context = &never };
    (void)state;
    stage_begin(&stage, TO(", cycle: { every: 1m, batch: 20 }"), began);
    add_jobs(&stage, 50);
    stage_run_for(&stage, 30 * 1000);
    assert_int_equal(stage.send_count, 20);
    assert_string_equal(status_of(&stage).held_by, "cycle");
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage.send_count, 40);
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage.send_count, 50);
    stage_end(&stage);
}

/* S3-011 */
static void a_maintenance_window_holds(void **state)
{
    struct bad_times never = { .from = INSTANT_MAX, .until = INSTANT_MAX };
    struct stage stage = { .destination = is_away_at_times, .context = &never };
    (void)state;
    stage_begin(&stage, TO(", contingency: { ramp: [5], stable: 1m, check: 5m, maintenance: ['Sun 11:00-12:00'] }"), began);
    stage_run_until(&stage, began + 21 * 60 * 1000); /* 11:01 */
    add_jobs(&stage, 50);
    stage_run_for(&stage, 50 * 60 * 1000);
    assert_int_equal(stage.send_count, 0);
    assert_string_equal(status_of(&stage).held_by, "maintenance");
    assert_string_equal(status_of(&stage).mode, "contingency");
    assert_int_equal(status_of(&stage).held_until, began + 80 * 60 * 1000);
    stage_run_for(&stage, 20 * 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 50);
    assert_string_equal(status_of(&stage).mode, "normal");
    stage_end(&stage);
}

/* When each job was sent, by the number that is its id. */
struct diary {
    instant sent_at[4];
    int times[4];
};

static int64_t notes_time(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct diary *diary = stage->context;
    int number = send->job->id.data[0] - '0';
    diary->sent_at[number] = stage->now;
    diary->times[number]++;
    answer->outcome = OUTCOME_DELIVERED;
    return 20;
}

/* S4-007: jobs for a time to come and a calendar of days and hours, which a process that dies again and again does not lose. */
static void schedules_and_calendars_outlive_crashes(void **state)
{
    static const struct { int64_t due_ms, sent_ms; } jobs[] = { /* after Sunday, 10:40 */
        { 10 * MINUTE_MS, 10 * MINUTE_MS },
        { 12 * (int64_t)HOUR_MS, 12 * (int64_t)HOUR_MS },                                     /* Sunday, 22:40: not in it */
        { 36 * (int64_t)HOUR_MS, 36 * (int64_t)HOUR_MS + 50 * MINUTE_MS },                    /* Monday, 22:40: in it */
        { 6 * (int64_t)DAY_MS + 12 * (int64_t)HOUR_MS, 6 * (int64_t)DAY_MS + 12 * (int64_t)HOUR_MS }, /* Saturday */
    };
    struct diary diary = { 0 };
    struct stage stage = { .destination = notes_time, .context = &diary };
    (void)state;
    stage_begin(&stage, TO(", contingency: { ramp: [5], stable: 1m, check: 5m, maintenance: ['Mon-Fri 22:00-23:30'] }"), began);
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        char id[] = { (char)('0' + i), '\0' };
        struct store_op op = { .kind = OP_INSERT };
        op.insert = (struct op_insert){ .destination = SLICE("d"), .tenant = SLICE("t"), .id = slice_from(id),
                                        .run_at = began + jobs[i].due_ms, .deadline = INSTANT_NONE, .payload = SLICE("x") };
        stage_apply(&stage, &op);
    }
    while (stage.now < began + 7 * (int64_t)DAY_MS) {
        stage_run_for(&stage, 77 * MINUTE_MS);
        stage_crash(&stage);
    }
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        assert_int_equal(diary.times[i], 1);
        assert_in_range(diary.sent_at[i], began + jobs[i].sent_ms, began + jobs[i].sent_ms + SECOND_MS);
    }
    stage_end(&stage);
}

/* Who was served, in order. */
struct served {
    char order[512];
    size_t count;
};

static int64_t notes_tenant(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct served *served = stage->context;
    if (served->count < sizeof served->order - 1)
        served->order[served->count++] = send->job->tenant.data[0];
    answer->outcome = OUTCOME_DELIVERED;
    return 10;
}

static size_t times(const struct served *served, char tenant, size_t first)
{
    size_t count = 0;
    for (size_t i = 0; i < served->count && i < first; i++)
        count += served->order[i] == tenant;
    return count;
}

static void a_destination_keeps_its_rate(void **state)
{
    struct served served = { .count = 0 };
    struct stage stage = { .destination = notes_tenant, .context = &served };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 4, rate: { total: 60/m }"), began);
    add_jobs(&stage, 200);
    stage_run_for(&stage, 100);
    assert_int_equal(served.count, 4); /* what may go at once */
    assert_string_equal(status_of(&stage).held_by, "rate");
    assert_int_equal(status_of(&stage).held_until, began + 1000);
    stage_run_for(&stage, 59 * 1000);
    assert_int_equal(served.count, 4 + 59);
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(served.count, 4 + 119);
    stage_end(&stage);
}

/* One tenant at its limit holds up nobody else. */
static void a_tenant_keeps_its_rate(void **state)
{
    struct served served = { .count = 0 };
    struct stage stage = { .destination = notes_tenant, .context = &served };
    (void)state;
    stage_begin(&stage, TO(", concurrency: 2, rate: { per_tenant: 60/m }"), began);
    for (int i = 0; i < 100; i++)
        stage_add(&stage, "d", "A", NULL, "x");
    for (int i = 0; i < 10; i++)
        stage_add(&stage, "d", i % 2 == 0 ? "B" : "C", NULL, "x");
    stage_run_for(&stage, 4500);
    assert_int_equal(times(&served, 'A', SIZE_MAX), 2 + 4);
    assert_int_equal(times(&served, 'B', SIZE_MAX), 5);
    assert_int_equal(times(&served, 'C', SIZE_MAX), 5);
    assert_null(status_of(&stage).held_by);
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(times(&served, 'A', SIZE_MAX), 2 + 64);
    stage_end(&stage);
}

static void weights_share_the_turns(void **state)
{
    struct served served = { .count = 0 };
    struct stage stage = { .destination = notes_tenant, .context = &served };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1, fairness: { round_robin: true, batch: 2, weights: { A: 4 } }"), began);
    add_jobs(&stage, 400);
    stage_run_for(&stage, 1005);
    assert_true(served.count >= 100);
    assert_int_equal(times(&served, 'A', 100), 80);
    stage_crash(&stage); /* the tenants' names are known from the store, too */
    size_t before = served.count, before_a = times(&served, 'A', SIZE_MAX);
    stage_run_for(&stage, 1005);
    assert_true(times(&served, 'A', SIZE_MAX) - before_a >= (served.count - before) * 3 / 4);

    struct config *equal = config_from(SLICE(TO(", concurrency: 1, fairness: { round_robin: true, batch: 2 }")), "test.yaml");
    assert_int_equal(engine_reload(stage.engine, equal, &error), STATUS_OK);
    stage_run_for(&stage, 200);
    before = served.count;
    before_a = times(&served, 'A', SIZE_MAX);
    stage_run_for(&stage, 400);
    assert_in_range(times(&served, 'A', SIZE_MAX) - before_a, (served.count - before) / 2 - 2, (served.count - before) / 2 + 2);
    config_unref(equal);
    stage_end(&stage);
}

static void a_restart_stays_in_contingency(void **state)
{
    struct bad_times outage = { .from = began, .until = began + INT64_C(3600) * 1000 };
    struct stage stage = { .destination = is_away_at_times, .context = &outage };
    (void)state;
    stage_begin(&stage, TO(QUICK_RETRY ", concurrency: 10, breaker: { min_calls: 10 }"
                           ", contingency: { ramp: [5, 10, 25], stable: 5m, check: 5m }"), began);
    add_jobs(&stage, 100);
    stage_run_for(&stage, 60 * 1000);
    struct destination_status before = status_of(&stage);
    assert_string_equal(before.mode, "contingency");
    assert_string_equal(before.cause, "breaker");
    size_t sent = stage.send_count;
    stage_crash(&stage);
    stage_run_for(&stage, 60 * 1000);
    struct destination_status after = status_of(&stage);
    assert_string_equal(after.mode, "contingency");
    assert_string_equal(after.cause, "breaker");
    assert_int_equal(after.held_since, before.held_since);
    assert_int_equal(stage.send_count, sent);
    assert_int_equal(reported(&stage, "contingency", NULL), 1);
    assert_int_equal(reported(&stage, "breaker_open", NULL), 0); /* it is the cause of the one that was told */

    stage_run_until(&stage, outage.until + 10 * 60 * 1000);
    stage_crash(&stage); /* on the way back */
    assert_true(strcmp(status_of(&stage).mode, "contingency") != 0);
    stage_run_for(&stage, INT64_C(3600) * 1000);
    assert_string_equal(status_of(&stage).mode, "normal");
    assert_int_equal(stage_counts(&stage, "d").completed, 100);
    assert_int_equal(reported(&stage, "contingency", NULL), 1);
    assert_int_equal(reported(&stage, "recovering", NULL), 1);
    assert_int_equal(reported(&stage, "normal", NULL), 1);
    stage_end(&stage);
}

static void a_breaker_is_told_and_kept(void **state)
{
    struct bad_times outage = { .from = began, .until = began + 60 * 1000 };
    struct stage stage = { .destination = is_away_at_times, .context = &outage };
    (void)state;
    stage_begin(&stage, TO(QUICK_RETRY ", concurrency: 10, breaker: { min_calls: 10, open: 10m, open_max: 1h, probes: 3 }"), began);
    add_jobs(&stage, 50);
    stage_run_for(&stage, 5000);
    size_t sent = stage.send_count;
    stage_crash(&stage);
    stage_run_for(&stage, 9 * 60 * 1000);
    assert_string_equal(status_of(&stage).held_by, "breaker");
    assert_int_equal(stage.send_count, sent);
    stage_run_for(&stage, INT64_C(3600) * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 50);
    assert_int_equal(reported(&stage, "breaker_open", NULL), 1);
    assert_int_equal(reported(&stage, "breaker_half_open", NULL), 1);
    assert_int_equal(reported(&stage, "breaker_closed", NULL), 1);
    stage_end(&stage);
}

static void an_operator_enters_and_leaves(void **state)
{
    struct bad_times never = { .from = INSTANT_MAX, .until = INSTANT_MAX };
    struct stage stage = { .destination = is_away_at_times, .context = &never };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", contingency: { ramp: [5], stable: 1m, check: 1m }"), began);
    stage_run_for(&stage, 1000);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("nowhere"), SLICE(""), &error), STATUS_NOT_FOUND);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("nowhere"), &error), STATUS_NOT_FOUND);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they called"), &error), STATUS_OK);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("again"), &error), STATUS_OK);
    add_jobs(&stage, 20);
    stage_run_for(&stage, INT64_C(3600) * 1000);
    assert_int_equal(stage.send_count, 0); /* no check ends it */
    stage_crash(&stage);
    stage_run_for(&stage, INT64_C(3600) * 1000);
    assert_int_equal(stage.send_count, 0);
    assert_string_equal(status_of(&stage).mode, "contingency");
    assert_string_equal(status_of(&stage).cause, "operator");
    assert_string_equal(status_of(&stage).pause_reason, "again"); /* the latest is the one that holds */
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &error), STATUS_OK);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &error), STATUS_OK);
    stage_settle(&stage);
    assert_string_equal(status_of(&stage).mode, "recovering");
    assert_null(status_of(&stage).pause_reason);
    assert_int_equal(stage.send_count, 5);
    stage_run_for(&stage, 10 * 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 20);
    assert_int_equal(reported(&stage, "contingency", NULL), 1);
    assert_int_equal(reported(&stage, "recovering", NULL), 1);
    stage_end(&stage);
}

/* Changes that the store refused at first are told all the same, in order, and once. */
static void changes_outlive_a_full_disk(void **state)
{
    struct bad_times never = { .from = INSTANT_MAX, .until = INSTANT_MAX };
    struct stage stage = { .destination = is_away_at_times, .context = &never };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", contingency: { ramp: [5], stable: 1m, check: 1m }"), began);
    stage_run_for(&stage, 1000);
    stage.fail_applies = true;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
        stage_run_for(&stage, 2500);
        assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &error), STATUS_OK);
        stage_run_for(&stage, 2500);
    }
    stage.fail_applies = false;
    stage_run_for(&stage, 5000);
    assert_int_equal(reported(&stage, "contingency", NULL), 3);
    assert_int_equal(reported(&stage, "recovering", NULL), 3);
    stage_crash(&stage);
    assert_string_equal(status_of(&stage).mode, "recovering");
    stage_end(&stage);
}

static int64_t says_how_it_is(struct stage *stage, const struct probe *probe, struct health_answer *answer)
{
    const struct bad_times *outage = stage->context;
    bool away = stage->now >= outage->from && stage->now < outage->until;
    assert_string_equal(probe->destination->health.url, "http://127.0.0.1:1/health");
    answer->connected = !away;
    answer->status = 200;
    answer->body = SLICE("{\"status\":\"UP\"}");
    return 30;
}

/* S3-035. With a health check no job is spent to look, and its end is seen at the next check. */
static void health_checks_begin_and_end_an_outage(void **state)
{
    struct bad_times outage = { .from = began + 60 * 1000, .until = began + 60 * 1000 + INT64_C(3600) * 1000 };
    struct stage stage = { .destination = is_away_at_times, .health = says_how_it_is, .context = &outage };
    (void)state;
    stage_begin(&stage, TO(QUICK_RETRY ", health: { url: 'http://127.0.0.1:1/health', every: 30s, failures: 3 }"
                           ", contingency: { ramp: [5, 10], stable: 5m, check: 5m }"), began);
    stage_run_for(&stage, 60 * 1000 + 3 * 30 * 1000 + 1000);
    assert_string_equal(status_of(&stage).mode, "contingency");
    assert_string_equal(status_of(&stage).cause, "health");
    add_jobs(&stage, 100);
    stage_run_until(&stage, outage.until - 1);
    assert_int_equal(stage.send_count, 0);
    assert_in_range(stage.probe_count, 120, 124);
    stage_crash(&stage);
    assert_string_equal(status_of(&stage).mode, "contingency");
    stage_run_for(&stage, 61 * 1000);
    assert_string_equal(status_of(&stage).mode, "recovering");
    stage_run_for(&stage, 10 * 60 * 1000);
    assert_string_equal(status_of(&stage).mode, "normal");
    assert_int_equal(stage_counts(&stage, "d").completed, 100);
    assert_int_equal(reported(&stage, "contingency", NULL), 1);
    stage_end(&stage);
}

static void see_retry(void *context, const struct event *event)
{
    if (event->type == EVENT_TYPE_RETRY_SCHEDULED)
        *(instant *)context = event->at;
}

/* S1-050. The history has an attempt the moment it ends; the operator's status is told, and holds no claim. */
static void tiss_is_asked_every_five_minutes(void **state)
{
    struct bad_times outage = { .from = began + 60 * 1000, .until = began + 60 * 1000 + INT64_C(3600) * 1000 };
    struct stage stage = { .destination = is_away_at_times, .health = says_how_it_is, .context = &outage };
    struct engine_measures measures;
    struct arena memory = { 0 };
    instant tried = 0;
    (void)state;
    stage_begin(&stage, "destinations: { d: { preset: tiss, url: 'http://127.0.0.1:1/', allow_private: true, "
                        "health: { url: 'http://127.0.0.1:1/health' } } }\n", began);
    stage_run_until(&stage, outage.from);
    size_t asked = stage.probe_count;
    stage_add(&stage, "d", "t", "CLM-1-1", "x");
    stage_run_for(&stage, 1000);
    events_each(&stage, see_retry, &tried);
    assert_in_range(tried, outage.from, outage.from + 1000);
    stage_run_until(&stage, outage.until);
    assert_int_equal(stage.probe_count - asked, 12);
    assert_string_equal(status_of(&stage).mode, "normal");
    assert_int_equal(engine_measures(stage.engine, &memory, &measures), STATUS_OK);
    assert_true(measures.items[0].checked && !measures.items[0].up);
    arena_release(&memory);
    stage_end(&stage);
}

/* Two addresses, each with its own outage. */
struct addresses {
    struct bad_times first, second;
    size_t to_first, to_second;
};

static int64_t has_two_addresses(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct addresses *addresses = stage->context;
    const struct bad_times *outage = send->use_fallback ? &addresses->second : &addresses->first;
    *(send->use_fallback ? &addresses->to_second : &addresses->to_first) += 1;
    if (stage->now >= outage->from && stage->now < outage->until) {
        answer->code = SLICE("http:503");
        answer->text = SLICE("HTTP 503: away");
    } else {
        answer->outcome = OUTCOME_DELIVERED;
    }
    return 20;
}

/* Where there is no contingency, while the breaker is open. */
static void the_second_address_is_used_behind_an_open_breaker(void **state)
{
    const int64_t hour = INT64_C(3600) * 1000;
    struct addresses addresses = { .first = { .from = began, .until = began + hour } };
    struct stage stage = { .destination = has_two_addresses, .context = &addresses };
    (void)state;
    stage_begin(&stage, TO(QUICK_RETRY ", concurrency: 10, breaker: { min_calls: 10, open: 1m, open_max: 1m }, "
                           "fallback: { url: 'http://127.0.0.1:2/' }"), began);
    add_jobs(&stage, 200);
    stage_run_for(&stage, 30 * 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 200);
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    assert_true(addresses.to_second >= 150);

    stage_run_until(&stage, began + 2 * hour); /* the first is back */
    add_jobs(&stage, 50);
    stage_run_for(&stage, hour);
    size_t before = addresses.to_second;
    assert_false(status_of(&stage).fallback);
    add_jobs(&stage, 50);
    stage_run_for(&stage, hour);
    assert_int_equal(stage_counts(&stage, "d").completed, 300);
    assert_int_equal(addresses.to_second, before);
    stage_end(&stage);
}

/* S2-126 */
static void the_second_address_is_used_in_contingency(void **state)
{
    const int64_t hour = INT64_C(3600) * 1000;
    struct addresses addresses = { .first = { .from = began, .until = began + 4 * hour },
                                   .second = { .from = began + hour, .until = began + 2 * hour } };
    struct stage stage = { .destination = has_two_addresses, .context = &addresses };
    (void)state;
    stage_begin(&stage, TO(QUICK_RETRY ", concurrency: 10, breaker: { min_calls: 10 }, fallback: { url: 'http://127.0.0.1:2/' }"
                           ", contingency: { ramp: [5, 10], stable: 5m, check: 5m }"), began);
    add_jobs(&stage, 200);
    stage_run_for(&stage, 30 * 60 * 1000);
    assert_string_equal(status_of(&stage).mode, "contingency");
    assert_true(status_of(&stage).fallback);
    assert_null(status_of(&stage).held_by);
    assert_int_equal(stage_counts(&stage, "d").completed, 200);
    assert_true(addresses.to_second >= 150 && addresses.to_second <= 200);

    stage_run_until(&stage, began + hour); /* both are away: nothing is spent, and the second is left alone, too */
    size_t before = addresses.to_second;
    add_jobs(&stage, 200);
    stage_run_until(&stage, began + 2 * hour);
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    assert_true(addresses.to_second - before < 150);
    stage_run_until(&stage, began + 3 * hour);
    assert_int_equal(stage_counts(&stage, "d").completed, 400);

    stage_run_until(&stage, began + 5 * hour); /* the first is back, but a job must go to see it */
    before = addresses.to_second;
    size_t before_first = addresses.to_first;
    add_jobs(&stage, 50);
    stage_run_for(&stage, hour);
    assert_string_equal(status_of(&stage).mode, "normal");
    assert_int_equal(stage_counts(&stage, "d").completed, 450);
    assert_int_equal((addresses.to_first - before_first) + (addresses.to_second - before), 50);
    assert_true(addresses.to_first > before_first);
    stage_end(&stage);
}

static int64_t second_refuses_us(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct addresses *addresses = stage->context;
    bool blocked = send->use_fallback && stage->now < addresses->second.until;
    int64_t takes = has_two_addresses(stage, send, answer);
    if (blocked) {
        answer->outcome = OUTCOME_BLOCKED;
        answer->code = SLICE("http:401");
        answer->text = SLICE("HTTP 401: who are you");
    }
    return takes;
}

/* Its credentials are refused there: that says nothing about the first address, which goes on. */
static void a_second_address_that_refuses_us_is_paused_alone(void **state)
{
    const int64_t hour = INT64_C(3600) * 1000;
    struct addresses addresses = { .first = { .from = began, .until = began + hour }, .second = { .until = began + 9 * hour } };
    struct stage stage = { .destination = second_refuses_us, .context = &addresses };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(QUICK_RETRY ", concurrency: 10, breaker: { min_calls: 10 }, fallback: { url: 'http://127.0.0.1:2/' }"
                           ", contingency: { ramp: [5, 10], stable: 5m, check: 5m }"), began);
    add_jobs(&stage, 100);
    stage_run_for(&stage, 30 * 60 * 1000);
    size_t asked = addresses.to_second;
    assert_in_range(asked, 1, 10 + 5); /* those that were under way together, and looks after 1, 2, 4, 8, 16 minutes */
    assert_int_equal(reported(&stage, "fallback_blocked", NULL), 1);
    assert_int_equal(reported(&stage, "paused", NULL), 0);
    assert_string_equal(status_of(&stage).mode, "contingency");
    assert_string_equal(status_of(&stage).held_by, "contingency");
    assert_true(status_of(&stage).second.held);
    assert_non_null(strstr(status_of(&stage).second.reason, "was refused at the second address: http:401, HTTP 401: who are you"));
    stage_restart(&stage);
    assert_true(status_of(&stage).second.held);
    assert_non_null(strstr(status_of(&stage).second.reason, "was refused at the second address: http:401, HTTP 401: who are you"));
    stage_run_until(&stage, began + 3 * hour);
    assert_string_equal(status_of(&stage).mode, "normal");
    assert_int_equal(stage_counts(&stage, "d").completed, 100);
    assert_in_range(addresses.to_second, asked, asked + 2);
    asked = addresses.to_second;

    assert_int_equal(engine_resume(stage.engine, SLICE("d"), &error), STATUS_OK);
    assert_false(status_of(&stage).second.held);
    addresses.first = (struct bad_times){ .from = stage.now, .until = stage.now + 9 * hour };
    addresses.second.until = stage.now;
    add_jobs(&stage, 50);
    stage_run_for(&stage, hour);
    assert_int_equal(reported(&stage, "fallback_resumed", NULL), 1);
    assert_true(addresses.to_second > asked);
    assert_int_equal(stage_counts(&stage, "d").completed, 150);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outage_of_three_hours_costs_nothing),
        cmocka_unit_test(an_outage_is_no_time_of_a_jobs),
        cmocka_unit_test(a_last_try_in_an_outage_is_held),
        cmocka_unit_test(an_open_breaker_spends_nothing),
        cmocka_unit_test(a_good_destination_gets_all_its_concurrency),
        cmocka_unit_test(a_cycle_sends_so_many),
        cmocka_unit_test(a_second_address_that_refuses_us_is_paused_alone),
        cmocka_unit_test(a_maintenance_window_holds),
        cmocka_unit_test(schedules_and_calendars_outlive_crashes),
        cmocka_unit_test(a_destination_keeps_its_rate),
        cmocka_unit_test(a_tenant_keeps_its_rate),
        cmocka_unit_test(weights_share_the_turns),
        cmocka_unit_test(a_restart_stays_in_contingency),
        cmocka_unit_test(a_breaker_is_told_and_kept),
        cmocka_unit_test(an_operator_enters_and_leaves),
        cmocka_unit_test(changes_outlive_a_full_disk),
        cmocka_unit_test(health_checks_begin_and_end_an_outage),
        cmocka_unit_test(tiss_is_asked_every_five_minutes),
        cmocka_unit_test(the_second_address_is_used_in_contingency),
        cmocka_unit_test(the_second_address_is_used_behind_an_open_breaker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
