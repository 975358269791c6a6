/*
 * Incidents through the real engine: what is written of a contingency, when, and under which name.
 */
#include "engine/incidents/incidents.h"
#include "engine/orders.h"
#include "engine/status.h"
#include "support/check.h"
#include "support/configs.h"
#include "support/stage.h"

#include <stdio.h>

static const instant began = INT64_C(1736678400000); /* 2025-01-12T10:40:00Z, a Sunday */

#define TO(more) "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" more " } }\n"
#define QUICK_RETRY ", retry: { base: 10s, floor: 1s, cap: 1m, max_retries: 3 }"
#define BREAKER ", concurrency: 10, breaker: { min_calls: 10 }"
#define BACK ", contingency: { ramp: [5, 10], stable: 5m, check: 5m }"

enum { RECORDS_MAX = 8 };

/* What the store has, newest first. */
struct read {
    struct arena memory;
    struct incident_record records[RECORDS_MAX];
    char ids[RECORDS_MAX][INCIDENT_ID_BYTES];
    size_t count;
};

static struct read read_records(struct stage *stage)
{
    struct read read = { .count = 0 };
    struct saved *saved;
    struct error error;
    read.memory = (struct arena){ 0 };
    assert_int_equal(stage->reader->ops->reader_saved_list(stage->reader, SPACE_INCIDENT, SLICE(""), RECORDS_MAX, &read.memory,
                                                          &saved, &read.count, &error),
                     STATUS_OK);
    for (size_t i = 0; i < read.count; i++) {
        assert_int_equal(incident_record_read(saved[i].value, &read.memory, &read.records[i]), STATUS_OK);
        snprintf(read.ids[i], sizeof read.ids[i], "%.*s", SLICE_ARG(saved[i].name));
    }
    return read;
}

/* An outage, and how it was met. */
struct bad_times {
    instant from, until;
    int64_t failed;
};

static int64_t is_away_at_times(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct bad_times *outage = stage->context;
    (void)send;
    if (stage->now >= outage->from && stage->now < outage->until) {
        outage->failed++;
        answer->code = SLICE("http:503");
        answer->text = SLICE("HTTP 503: away");
    } else {
        answer->outcome = OUTCOME_DELIVERED;
    }
    return 20;
}

static void add_jobs(struct stage *stage, int count)
{
    for (int i = 0; i < count; i++)
        stage_add(stage, "d", i % 2 == 0 ? "A" : "B", NULL, "x");
}

static void check_changes(const struct incident_record *record, const char *expected)
{
    char seen[512] = "";
    for (size_t i = 0; i < record->change_count; i++) {
        size_t len = strlen(seen);
        const char *cause = cause_name(record->changes[i].cause);
        snprintf(seen + len, sizeof seen - len, "%s%s:%s", i > 0 ? " " : "", mode_name(record->changes[i].mode), cause ? cause : "-");
    }
    assert_string_equal(seen, expected);
}

static bool is_held(struct stage *stage)
{
    return strcmp(engine_destination(stage->engine, SLICE("d")).mode, "contingency") == 0;
}

/* 100 jobs were there, and the outage is over. */
static void check_restored(const struct incident_record *record, const struct bad_times *outage)
{
    static const int64_t levels[] = { 0, 5, 10, 10 };
    const struct incident *incident = &record->incident;
    assert_int_equal(record->mode, MODE_NORMAL);
    check_changes(record, "contingency:breaker recovering:checked normal:stable");
    assert_int_equal(incident->first_sign_at, began + 20);
    assert_int_equal(incident->cause, CAUSE_BREAKER);
    assert_true(incident->recovering_at >= outage->until && incident->recovering_at <= outage->until + 5 * MINUTE_MS);
    assert_int_equal(incident_recovery_ms(incident), incident->restored_at - began - 20);
    assert_int_equal(incident->relapses, 0);
    assert_int_equal(incident->unspent, 11);
    assert_true(record->first.known && record->last.known);
    assert_int_equal(record->last.completed - record->first.completed, 100);
    assert_int_equal(record->last.pending, 0);
    assert_int_equal(record->last.dead, 0);
    assert_int_equal(record->held, 0);
    assert_int_equal(incident->curve_count, COUNT_OF(levels));
    for (size_t i = 0; i < COUNT_OF(levels); i++)
        check(incident->curve[i].level == levels[i], "point %zu: %lld", i, (long long)incident->curve[i].level);
}

/* S3-089, S3-093: 100 jobs meet an outage of an hour; the breaker sees it in the first of them. */
static void an_outage_has_exact_figures(void **state)
{
    struct bad_times outage = { .from = began, .until = began + 60 * MINUTE_MS };
    struct stage stage = { .destination = is_away_at_times, .context = &outage };
    (void)state;
    stage_begin(&stage, TO(QUICK_RETRY BREAKER BACK), began);
    add_jobs(&stage, 100);
    while (!is_held(&stage))
        assert_true(stage_step(&stage) || stage.now++ < began + 1000);
    instant entered_at = stage.now;
    int64_t in_vain = outage.failed; /* each cost a job a try; the rest are looks */
    stage_run_for(&stage, 5 * 1000);
    assert_int_equal(outage.failed, in_vain);
    struct read read = read_records(&stage);
    char id[INCIDENT_ID_BYTES];
    const struct incident_record *record = &read.records[0];
    const struct incident *incident = &record->incident;
    incident_id(entered_at, SLICE("d"), id);
    assert_int_equal(read.count, 1);
    assert_string_equal(read.ids[0], id);
    assert_int_equal(record->mode, MODE_CONTINGENCY);
    assert_true(slice_equal(record->destination, SLICE("d")));
    assert_int_equal(record->held_first, 100 - in_vain);
    assert_int_equal(record->first.pending, 100);
    assert_int_equal(record->first.completed, 0);
    assert_int_equal(record->first.dead, 0);
    assert_false(record->last.known);
    arena_release(&read.memory);

    stage_run_until(&stage, outage.until - 1);
    read = read_records(&stage);
    assert_int_equal(read.count, 1);
    assert_int_equal(incident->probes, 11); /* one each five minutes */
    assert_int_equal(outage.failed, in_vain + 11);
    assert_int_equal(incident->signs[CRITERION_SERVICE], outage.failed);
    assert_int_equal(incident->unspent, 11);
    assert_int_equal(incident->held_max, 100); /* those that had been sent were due again in between */
    arena_release(&read.memory);

    stage_run_for(&stage, 60 * MINUTE_MS);
    read = read_records(&stage);
    assert_int_equal(read.count, 1);
    assert_string_equal(read.ids[0], id);
    assert_int_equal(incident->entered_at, entered_at);
    check_restored(record, &outage);
    arena_release(&read.memory);
    stage_end(&stage);
}

/* Two restarts: held, and on the way back. What was counted before them is not lost, nor counted twice. */
static void a_restart_goes_on_with_the_same_incident(void **state)
{
    struct bad_times outage = { .from = began, .until = began + 60 * MINUTE_MS };
    struct stage stage = { .destination = is_away_at_times, .context = &outage };
    (void)state;
    stage_begin(&stage, TO(QUICK_RETRY BREAKER BACK), began);
    add_jobs(&stage, 100);
    stage_run_for(&stage, 5 * 1000);
    int64_t in_vain = outage.failed;
    stage_run_for(&stage, 32 * MINUTE_MS);
    stage_crash(&stage);
    add_jobs(&stage, 50);
    stage_run_until(&stage, outage.until + 3 * MINUTE_MS); /* the looks have not waited for the restart */
    struct read read = read_records(&stage);
    assert_int_equal(read.count, 1);
    assert_int_equal(read.records[0].mode, MODE_RECOVERING);
    arena_release(&read.memory);
    stage_crash(&stage);
    stage_run_for(&stage, 60 * MINUTE_MS);
    read = read_records(&stage);
    const struct incident_record *record = &read.records[0];
    assert_int_equal(read.count, 1);
    assert_int_equal(record->mode, MODE_NORMAL);
    check_changes(record, "contingency:breaker recovering:checked normal:stable");
    assert_int_equal(record->incident.signs[CRITERION_SERVICE], outage.failed);
    assert_int_equal(record->incident.unspent, outage.failed - in_vain);
    assert_int_equal(record->held_first, 100 - in_vain);
    assert_int_equal(record->incident.held_max, 150);
    assert_int_equal(record->first.pending, 100);
    assert_int_equal(record->last.completed, 150);
    assert_int_equal(record->last.pending, 0);
    assert_int_equal(record->incident.curve[0].level, 0);
    assert_int_equal(record->incident.curve[record->incident.curve_count - 1].level, 10);
    arena_release(&read.memory);
    stage_end(&stage);
}

/* What was held is in the record before it is in the destination's state; most of it is gone when the process dies. */
static void a_crash_forgets_nothing_of_what_was_held(void **state)
{
    enum { HELD = 200, CANCELLED = 190 };
    struct bad_times never = { .from = INSTANT_MAX, .until = INSTANT_MAX };
    struct stage stage = { .destination = is_away_at_times, .context = &never };
    char id[16];
    (void)state;
    stage_begin(&stage, TO(BACK), began);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("drill"), NULL), STATUS_OK);
    stage_run_for(&stage, MINUTE_MS);
    for (int i = 0; i < HELD; i++) {
        snprintf(id, sizeof id, "j%d", i);
        stage_add(&stage, "d", "A", id, "x");
    }
    stage_run_for(&stage, 2 * MINUTE_MS);
    for (int i = 0; i < CANCELLED; i++) {
        snprintf(id, sizeof id, "j%d", i);
        const struct store_op cancel = { .kind = OP_CANCEL, .job = { .tenant = SLICE("A"), .id = slice_from(id) } };
        stage_apply(&stage, &cancel);
    }
    stage_crash(&stage);
    stage_run_for(&stage, 5 * MINUTE_MS);
    struct read read = read_records(&stage);
    assert_int_equal(read.count, 1);
    assert_int_equal(read.records[0].incident.held_max, HELD);
    assert_int_equal(read.records[0].held, HELD - CANCELLED);
    arena_release(&read.memory);
    stage_end(&stage);
}

/* It seems to be back, fails again, and only then stays. */
struct relapse {
    size_t answers_good;
};

static int64_t relapses_once(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct relapse *relapse = stage->context;
    bool away = stage->now < began + 60 * MINUTE_MS;
    (void)send;
    if (away && relapse->answers_good > 0) {
        relapse->answers_good--;
        away = false;
    }
    answer->outcome = away ? OUTCOME_NONE : OUTCOME_DELIVERED;
    answer->code = away ? SLICE("http:503") : SLICE("");
    answer->text = away ? SLICE("HTTP 503: away") : SLICE("");
    return 20;
}

static void a_relapse_is_part_of_it_and_the_next_outage_is_not(void **state)
{
    struct relapse relapse = { 0 };
    struct stage stage = { .destination = relapses_once, .context = &relapse };
    (void)state;
    stage_begin(&stage, TO(QUICK_RETRY BREAKER BACK), began);
    add_jobs(&stage, 100);
    stage_run_for(&stage, 12 * MINUTE_MS);
    relapse.answers_good = 1; /* the look */
    stage_run_for(&stage, 60 * MINUTE_MS);
    struct read read = read_records(&stage);
    assert_int_equal(read.count, 1);
    assert_int_equal(read.records[0].mode, MODE_NORMAL);
    assert_int_equal(read.records[0].incident.relapses, 1);
    assert_int_equal(read.records[0].incident.cause, CAUSE_BREAKER);
    check_changes(&read.records[0], "contingency:breaker recovering:checked contingency:relapse recovering:checked normal:stable");
    arena_release(&read.memory);

    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they called: down until noon"), NULL), STATUS_OK);
    stage_run_for(&stage, MINUTE_MS);
    read = read_records(&stage);
    assert_int_equal(read.count, 2);
    assert_true(strcmp(read.ids[0], read.ids[1]) > 0); /* the newest is the first */
    assert_int_equal(read.records[0].mode, MODE_CONTINGENCY);
    assert_int_equal(read.records[0].incident.cause, CAUSE_OPERATOR);
    assert_int_equal(read.records[0].first.completed, 100);
    assert_int_equal(read.records[1].mode, MODE_NORMAL);
    assert_int_equal(read.records[1].last.completed, 100);
    arena_release(&read.memory);
    stage_end(&stage);
}

/* The try that was to be the last one is given back, and so are the looks that failed. */
static void a_try_that_is_given_back_counts_as_not_spent(void **state)
{
    struct bad_times outage = { .from = began, .until = began + 60 * MINUTE_MS };
    struct stage stage = { .destination = is_away_at_times, .context = &outage };
    (void)state;
    stage_begin(&stage, TO(QUICK_RETRY BACK), began);
    add_jobs(&stage, 1);
    stage_run_for(&stage, 120 * MINUTE_MS);
    struct read read = read_records(&stage);
    assert_int_equal(read.count, 1);
    assert_int_equal(read.records[0].incident.cause, CAUSE_EXHAUSTED);
    assert_int_equal(read.records[0].incident.signs[CRITERION_SERVICE], outage.failed);
    assert_int_equal(read.records[0].incident.unspent, outage.failed - 3); /* three retries were spent */
    assert_int_equal(read.records[0].last.completed, 1);
    arena_release(&read.memory);
    stage_end(&stage);
}

/* Nobody's tries are spent at the second address either. */
static void failures_of_the_second_address_are_not_spent(void **state)
{
    struct bad_times outage = { .from = began, .until = began + HOUR_MS };
    struct stage stage = { .destination = is_away_at_times, .context = &outage };
    struct error error;
    (void)state;
    stage_begin(&stage,
                "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, concurrency: 2, "
                "breaker: { min_calls: 10 }, fallback: { url: 'http://127.0.0.1:2/' } } }\n", began);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    add_jobs(&stage, 2);
    stage_run_for(&stage, 1000);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &error), STATUS_OK);
    assert_true(outage.failed >= 2);
    int64_t failed = outage.failed;
    stage_settle(&stage);
    struct read read = read_records(&stage);
    assert_int_equal(read.count, 1);
    assert_int_equal(read.records[0].incident.unspent, failed);
    arena_release(&read.memory);
    stage_end(&stage);
}

static void an_operator_says_why(void **state)
{
    struct bad_times never = { .from = INSTANT_MAX, .until = INSTANT_MAX };
    struct stage stage = { .destination = is_away_at_times, .context = &never };
    (void)state;
    stage_begin(&stage, TO(BACK), began);
    stage_run_for(&stage, 1000);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they called"), NULL), STATUS_OK);
    stage_run_for(&stage, 1000);
    add_jobs(&stage, 7);
    stage_crash(&stage);
    stage_run_for(&stage, 2 * MINUTE_MS);
    struct read read = read_records(&stage);
    assert_int_equal(read.count, 1);
    assert_true(slice_equal(read.records[0].reason, SLICE("they called")));
    assert_int_equal(read.records[0].held_first, 0);
    assert_int_equal(read.records[0].held, 7);
    arena_release(&read.memory);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), NULL), STATUS_OK);
    stage_run_for(&stage, 20 * MINUTE_MS);
    read = read_records(&stage);
    check_changes(&read.records[0], "contingency:operator recovering:operator normal:stable");
    assert_true(slice_equal(read.records[0].reason, SLICE("they called"))); /* also when it is over */
    assert_int_equal(read.records[0].incident.first_sign_at, read.records[0].incident.entered_at);
    assert_int_equal(read.records[0].last.completed, 7);
    assert_int_equal(read.records[0].incident.held_max, 7);
    arena_release(&read.memory);
    stage_end(&stage);
}

static void a_maintenance_window_is_an_incident(void **state)
{
    struct bad_times never = { .from = INSTANT_MAX, .until = INSTANT_MAX };
    struct stage stage = { .destination = is_away_at_times, .context = &never };
    (void)state;
    stage_begin(&stage, TO(", contingency: { ramp: [5], stable: 1m, check: 5m, maintenance: ['Sun 11:00-12:00'] }"), began);
    stage_run_until(&stage, began + 21 * MINUTE_MS);
    add_jobs(&stage, 50);
    stage_run_for(&stage, 100 * MINUTE_MS);
    struct read read = read_records(&stage);
    assert_int_equal(read.count, 1);
    assert_int_equal(read.records[0].incident.entered_at, began + 20 * MINUTE_MS);
    assert_int_equal(read.records[0].incident.cause, CAUSE_MAINTENANCE);
    assert_int_equal(read.records[0].incident.criterion, CRITERION_MAINTENANCE);
    assert_int_equal(read.records[0].incident.held_max, 50);
    check_changes(&read.records[0], "contingency:maintenance recovering:checked normal:stable");
    arena_release(&read.memory);
    stage_end(&stage);
}

static int64_t is_unwell(struct stage *stage, const struct probe *probe, struct health_answer *answer)
{
    const struct bad_times *outage = stage->context;
    (void)probe;
    *answer = (struct health_answer){ .connected = true, .status = 200, .body = SLICE("{\"status\":\"UP\"}") };
    if (stage->now >= outage->from && stage->now < outage->until)
        answer->status = 503;
    return 10;
}

static void failed_checks_are_counted(void **state)
{
    struct bad_times outage = { .from = began + 5 * MINUTE_MS, .until = began + 15 * MINUTE_MS };
    struct stage stage = { .destination = is_away_at_times, .health = is_unwell, .context = &outage };
    (void)state;
    stage_begin(&stage, TO(BACK ", health: { url: 'http://127.0.0.1:1/h', every: 30s, failures: 3, kind: json }"), began);
    stage_run_for(&stage, 60 * MINUTE_MS);
    struct read read = read_records(&stage);
    assert_int_equal(read.count, 1);
    assert_int_equal(read.records[0].incident.cause, CAUSE_HEALTH);
    assert_int_equal(read.records[0].incident.checks_failed, 20); /* ten minutes, two a minute */
    assert_int_equal(read.records[0].incident.entered_at - read.records[0].incident.first_sign_at, MINUTE_MS);
    assert_true(slice_equal(read.records[0].health_reason, SLICE("refused")));
    arena_release(&read.memory);
    stage_end(&stage);
}

/* The store refuses for a while: nothing is lost, and the end of one is not written over by the next. */
static void a_store_that_refuses_gets_it_later(void **state)
{
    struct bad_times never = { .from = INSTANT_MAX, .until = INSTANT_MAX };
    struct stage stage = { .destination = is_away_at_times, .context = &never };
    (void)state;
    stage_begin(&stage, TO(", contingency: { ramp: [5], stable: 1s, check: 5m }"), began);
    stage_run_for(&stage, 1000);
    stage.fail_applies = true;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("drill"), NULL), STATUS_OK);
        stage_run_for(&stage, 5 * 1000);
        assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), NULL), STATUS_OK);
        stage_run_for(&stage, 10 * 1000);
    }
    struct read read = read_records(&stage);
    assert_int_equal(read.count, 0);
    arena_release(&read.memory);
    stage.fail_applies = false;
    stage_run_for(&stage, 10 * 1000);
    read = read_records(&stage);
    assert_int_equal(read.count, 2);
    for (size_t i = 0; i < 2; i++) {
        check_changes(&read.records[i], "contingency:operator recovering:operator normal:stable");
        assert_int_equal(read.records[i].mode, MODE_NORMAL);
    }
    arena_release(&read.memory);
    stage_end(&stage);
}

/* How many times a record was written. */
static void count_writes(struct stage *stage, const struct store_op *ops, size_t count)
{
    size_t *writes = stage->context;
    for (size_t i = 0; i < count; i++)
        *writes += ops[i].kind == OP_SAVE && slice_equal(ops[i].save.space, SPACE_INCIDENT);
}

static void it_is_written_when_something_changed_and_not_else(void **state)
{
    size_t writes = 0;
    struct stage stage = { .context = &writes }; /* nothing is sent */
    (void)state;
    stage_begin(&stage, TO(BACK), began);
    stage.applied = count_writes;
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), NULL), STATUS_OK);
    stage_run_for(&stage, 60 * MINUTE_MS);
    assert_int_equal(writes, 1);
    for (int i = 0; i < 180; i++) { /* one job each second */
        add_jobs(&stage, 1);
        stage_run_for(&stage, 1000);
    }
    assert_in_range(writes, 1 + 3 + 5, 1 + 4 + 8); /* each minute, and each time that twice as many are held */
    stage_end(&stage);
}

/* Who looks right after it began sees what is held. */
static void what_is_held_is_written_while_it_grows(void **state)
{
    struct stage stage = { .destination = is_away_at_times, .context = &(struct bad_times){ 0 } };
    struct error error;
    size_t writes = 0;
    (void)state;
    stage_begin(&stage, TO(""), began);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    stage_run_for(&stage, 1000);
    stage.context = &writes;
    stage.applied = count_writes;
    for (int jobs = 1; jobs <= 64; jobs++) {
        add_jobs(&stage, 1);
        stage_run_for(&stage, 100);
        struct read read = read_records(&stage);
        assert_true(2 * read.records[0].incident.held_max > jobs);
        arena_release(&read.memory);
    }
    assert_true(writes <= 8);
    stage_end(&stage);
}

static void old_ones_are_deleted_with_their_lessons(void **state)
{
    struct bad_times never = { .from = INSTANT_MAX, .until = INSTANT_MAX };
    struct stage stage = { .destination = is_away_at_times, .context = &never };
    struct store_op lesson = { .kind = OP_SAVE };
    struct arena memory = { 0 };
    struct error error;
    struct saved *saved;
    size_t count;
    (void)state;
    stage_begin(&stage, "retention: { audit: 2d }\n" TO(", contingency: { ramp: [5], stable: 1m, check: 5m }"), began);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("first"), NULL), STATUS_OK);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), NULL), STATUS_OK);
    stage_run_for(&stage, INT64_C(24) * HOUR_MS);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("second"), NULL), STATUS_OK);
    stage_run_for(&stage, MINUTE_MS);
    struct read read = read_records(&stage);
    assert_int_equal(read.count, 2);
    lesson.save = (struct op_save){ SPACE_INCIDENT_LESSONS, slice_from(read.ids[1]), SLICE("{}") };
    assert_int_equal(stage.store->ops->apply(stage.store, stage.now, &lesson, 1, &memory, &error), STATUS_OK);
    arena_release(&read.memory);
    stage_run_for(&stage, INT64_C(26) * HOUR_MS);
    read = read_records(&stage);
    assert_int_equal(read.count, 1);
    assert_true(slice_equal(read.records[0].reason, SLICE("second")));
    arena_release(&read.memory);
    assert_int_equal(stage.reader->ops->reader_saved_list(stage.reader, SPACE_INCIDENT_LESSONS, SLICE(""), 10, &memory, &saved,
                                                         &count, &error), STATUS_OK);
    assert_int_equal(count, 0);
    stage_run_for(&stage, INT64_C(72) * HOUR_MS); /* that it lasts keeps it */
    read = read_records(&stage);
    assert_int_equal(read.count, 1);
    arena_release(&read.memory);
    arena_release(&memory);
    stage_end(&stage);
}

/* ---- the record itself ---- */

static void names_sort_by_time(void **state)
{
    char one[INCIDENT_ID_BYTES], two[INCIDENT_ID_BYTES], long_name[DESTINATION_NAME_BYTES_MAX + 1];
    (void)state;
    incident_id(began, SLICE("z"), one);
    incident_id(began + 1, SLICE("a"), two);
    assert_string_equal(one, "20250112T104000.000Z-z");
    assert_true(strcmp(one, two) < 0);
    memset(long_name, 'x', DESTINATION_NAME_BYTES_MAX);
    incident_id(began, (struct slice){ long_name, DESTINATION_NAME_BYTES_MAX }, one);
    assert_int_equal(strlen(one), INSTANT_STAMP_BYTES + 1 + DESTINATION_NAME_BYTES_MAX);
}

static void what_is_written_is_read(void **state)
{
    struct incident_record record = {
        .destination = SLICE("d"), .mode = MODE_RECOVERING, .reason = SLICE("\"<quoted>\"\n"), .health_reason = SLICE("slow"),
        .incident = { .first_sign_at = 1, .entered_at = 2, .recovering_at = 3, .restored_at = INSTANT_NONE, .cause = CAUSE_HEALTH,
                      .checks_failed = 9, .unspent = 8, .curve_count = 1, .curve[0] = { 2, 0 } },
        .held_first = 4, .held = 5, .first = { true, 6, 7, 8 }, .last = { true, 9, 10, 11 },
    };
    struct incident_record back;
    struct buffer first, second;
    struct arena memory = { 0 };
    (void)state;
    for (int i = 0; i < 100; i++)
        incident_record_change(&record, (struct incident_change){ i, i % 2 ? MODE_RECOVERING : MODE_CONTINGENCY, CAUSE_RELAPSE,
                                                                  CRITERION_TIMEOUT });
    assert_int_equal(record.change_count, INCIDENT_CHANGES_MAX);
    assert_int_equal(record.changes_left_out, 100 - INCIDENT_CHANGES_MAX);
    assert_int_equal(record.changes[INCIDENT_CHANGES_FIRST - 1].at, INCIDENT_CHANGES_FIRST - 1);
    assert_int_equal(record.changes[INCIDENT_CHANGES_MAX - 1].at, 99);
    assert_int_equal(record.changes[INCIDENT_CHANGES_FIRST].at, 100 - INCIDENT_CHANGES_MAX + INCIDENT_CHANGES_FIRST);
    buffer_init(&first, INCIDENT_RECORD_BYTES_MAX);
    buffer_init(&second, INCIDENT_RECORD_BYTES_MAX);
    incident_record_write(&first, &record);
    assert_int_equal(incident_record_read(buffer_slice(&first), &memory, &back), STATUS_OK);
    incident_record_write(&second, &back);
    assert_int_equal(buffer_status(&first), STATUS_OK);
    assert_string_equal(first.data, second.data);
    assert_int_equal(back.last.dead, 11);
    assert_int_equal(back.changes_left_out, record.changes_left_out);
    buffer_release(&first);
    buffer_release(&second);
    arena_release(&memory);
}

static void what_is_no_record_is_refused(void **state)
{
    static const char *const texts[] = {
        "", "{", "[]", "null", "{}", "{\"destination\":\"d\"}", "{\"destination\":\"d\",\"mode\":\"normal\"}",
        "{\"destination\":\"d\",\"mode\":\"none\",\"entered_at\":\"2025-01-12T10:40:00Z\",\"first_sign_at\":\"2025-01-12T10:40:00Z\"}",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct incident_record record;
        struct arena memory = { 0 };
        check(incident_record_read(slice_from(texts[i]), &memory, &record) == STATUS_INVALID, "%s", texts[i]);
        arena_release(&memory);
    }
}

/* Nobody would see it well again: its incident ends with its configuration, also when that happened while we were away. */
static void a_removed_destination_has_none(void **state)
{
    (void)state;
    static const struct { const char *name; bool jobs, restart, operator; } cases[] = {
        { "a reload", true, false, false }, { "a restart", true, true, false }, { "a restart, without jobs", false, true, true },
        { "a reload, held by an operator", true, false, true },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bad_times outage = { .from = began, .until = began + 60 * MINUTE_MS };
        struct stage stage = { .destination = is_away_at_times, .context = &outage };
        struct error error;
        stage_begin(&stage, TO(QUICK_RETRY BREAKER BACK), began);
        add_jobs(&stage, cases[i].jobs ? 50 : 0);
        if (cases[i].operator)
            assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("so"), &error), STATUS_OK);
        stage_run_for(&stage, 10 * MINUTE_MS);
        check(is_held(&stage), "%s: not held", cases[i].name);
        struct config *with = stage.config;
        stage.config = config_from(SLICE("destinations: { other: { url: 'https://a.example/' } }\n"), "test.yaml");
        if (cases[i].restart)
            stage_restart(&stage);
        else
            assert_int_equal(engine_reload(stage.engine, stage.config, &error), STATUS_OK);
        stage_run_for(&stage, MINUTE_MS);
        struct read read = read_records(&stage);
        assert_int_equal(read.count, 1);
        const struct incident_record *record = &read.records[0];
        check(record->mode == MODE_NORMAL && record->incident.restored_at != INSTANT_NONE, "%s: open", cases[i].name);
        check(record->changes[record->change_count - 1].cause == CAUSE_REMOVED, "%s: %s", cases[i].name,
              cause_name(record->changes[record->change_count - 1].cause));
        arena_release(&read.memory);

        outage.until = stage.now; /* it comes back, and is well */
        assert_int_equal(engine_reload(stage.engine, with, &error), STATUS_OK);
        stage_run_for(&stage, 20 * MINUTE_MS);
        assert_int_equal(stage_counts(&stage, "d").completed, cases[i].jobs ? 50 : 0);
        read = read_records(&stage);
        assert_int_equal(read.count, 1);
        arena_release(&read.memory);
        config_unref(with);
        stage_end(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outage_has_exact_figures),
        cmocka_unit_test(a_restart_goes_on_with_the_same_incident),
        cmocka_unit_test(a_crash_forgets_nothing_of_what_was_held),
        cmocka_unit_test(a_relapse_is_part_of_it_and_the_next_outage_is_not),
        cmocka_unit_test(a_try_that_is_given_back_counts_as_not_spent),
        cmocka_unit_test(failures_of_the_second_address_are_not_spent),
        cmocka_unit_test(an_operator_says_why),
        cmocka_unit_test(a_maintenance_window_is_an_incident),
        cmocka_unit_test(failed_checks_are_counted),
        cmocka_unit_test(a_removed_destination_has_none),
        cmocka_unit_test(a_store_that_refuses_gets_it_later),
        cmocka_unit_test(it_is_written_when_something_changed_and_not_else),
        cmocka_unit_test(what_is_held_is_written_while_it_grows),
        cmocka_unit_test(old_ones_are_deleted_with_their_lessons),
        cmocka_unit_test(names_sort_by_time),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_is_no_record_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
