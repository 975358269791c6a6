/*
 * What the engine counts of its destinations: bounds of what is told singly, times, and the line a minute.
 */
#include "engine/measures.h"
#include "engine/orders.h"
#include "engine/status.h"
#include "support/check.h"
#include "support/said.h"
#include "support/stage.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

static const instant began = INT64_C(1736678400000);

/* A payload "ok" is delivered; any other is the code of a failure. Takes as long as the stage's context says, or 20 ms. */
static int64_t answers_as_told(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct slice payload = send->job->payload;
    int64_t duration_ms = stage->context ? *(int64_t *)stage->context : 20;
    if (slice_equal(payload, SLICE("ok"))) {
        answer->outcome = OUTCOME_DELIVERED;
    } else {
        answer->code = payload;
        answer->text = SLICE("it failed");
    }
    answer->duration_ms = duration_ms;
    return duration_ms;
}

/* The one destination's measures, a copy; the rest is in `memory`. */
static struct destination_measures look(const struct stage *stage, struct arena *memory)
{
    struct engine_measures measures;
    assert_int_equal(engine_measures(stage->engine, memory, &measures), STATUS_OK);
    assert_int_equal(measures.count, 1);
    return measures.items[0];
}

static void begin(struct stage *stage, struct arena *memory, const char *settings)
{
    char yaml[512];
    snprintf(yaml, sizeof yaml,
             "destinations: { d: { url: 'http://127.0.0.1:1/', allow_private: true, concurrency: 10,\n"
             "  breaker: { min_calls: 100000 }, %s } }\n", settings);
    *memory = (struct arena){ 0 };
    stage_begin(stage, yaml, began);
}

static void end(struct stage *stage, struct arena *memory)
{
    arena_release(memory);
    stage_end(stage);
}

static void add_coded(struct stage *stage, const char *code)
{
    static int number;
    char id[16];
    snprintf(id, sizeof id, "j%d", number++);
    stage_add(stage, "d", "t", id, code);
}

static int64_t failed_with(const struct measures *measures, const char *code)
{
    for (size_t i = 0; i < measures->codes.count; i++)
        if (strcmp(measures->codes.items[i].code, code) == 0)
            return measures->codes.items[i].failed;
    return 0;
}

/* A destination that makes up codes fills the places there are, and no more; an hour later they are free again. */
static void codes_are_bounded(void **state)
{
    struct stage stage = { .destination = answers_as_told };
    struct arena memory;
    char code[80];
    (void)state;
    begin(&stage, &memory, "errors: { unknown: permanent }");
    for (int i = 0; i < 40; i++) {
        snprintf(code, sizeof code, "made:%d", i);
        add_coded(&stage, code);
        add_coded(&stage, "real:1");
    }
    memset(code, 'x', sizeof code - 1);
    code[sizeof code - 1] = '\0';
    add_coded(&stage, code);
    add_coded(&stage, "other");
    add_coded(&stage, "\xff");
    stage_run_for(&stage, SECOND_MS);
    struct measures measures = look(&stage, &memory).measures;
    assert_int_equal(measures.codes.count, MEASURED_CODES_MAX);
    assert_int_equal(failed_with(&measures, "real:1"), 40);
    assert_int_equal(failed_with(&measures, "made:0"), 1);
    assert_int_equal(measures.codes.other.failed, 40 - (MEASURED_CODES_MAX - 1) + 3);
    assert_int_equal(measures.codes.other.dead, measures.codes.other.failed);
    for (size_t i = 0; i < measures.codes.count; i++)
        assert_int_equal(measures.codes.items[i].dead, measures.codes.items[i].failed);
    stage_run_for(&stage, HOUR_MS - MINUTE_MS);
    add_coded(&stage, "real:1");
    stage_run_for(&stage, 2 * MINUTE_MS);
    add_coded(&stage, "late:1");
    stage_run_for(&stage, SECOND_MS);
    measures = look(&stage, &memory).measures;
    assert_int_equal(failed_with(&measures, "late:1"), 1);
    assert_int_equal(failed_with(&measures, "real:1"), 41); /* it was in use */
    assert_int_equal(measures.codes.count, MEASURED_CODES_MAX);
    end(&stage, &memory);
}

static void attempts_are_bounded(void **state)
{
    struct stage stage = { .destination = answers_as_told };
    struct arena memory;
    (void)state;
    begin(&stage, &memory, "retry: { max_retries: 30, base: 1s, factor: 1, floor: 1s, cap: 1s, jitter: 0 }");
    add_coded(&stage, "http:503");
    stage_run_for(&stage, MINUTE_MS);
    struct measures measures = look(&stage, &memory).measures;
    for (size_t i = 0; i < MEASURED_ATTEMPTS_MAX; i++) {
        assert_int_equal(measures.attempts[i].answered, 1);
        assert_int_equal(measures.attempts[i].retried, 1);
    }
    assert_int_equal(measures.attempts[MEASURED_ATTEMPTS_MAX].answered, 31 - MEASURED_ATTEMPTS_MAX);
    assert_int_equal(measures.attempts[MEASURED_ATTEMPTS_MAX].retried, 30 - MEASURED_ATTEMPTS_MAX);
    assert_int_equal(measures.verdicts[VERDICT_RETRY], 30);
    assert_int_equal(measures.verdicts[VERDICT_EXHAUSTED], 1);
    assert_int_equal(measures.capped, 30); /* base is the cap */
    end(&stage, &memory);
}

static const struct measured_tenant *tenant_of(const struct destination_measures *measured, const char *name)
{
    for (size_t i = 0; i < measured->measures.tenants.count; i++)
        if (slice_equal(measured->tenants[i].tenant, slice_from(name)))
            return &measured->tenants[i];
    return NULL;
}

static void add_of(struct stage *stage, const char *tenant, int count)
{
    static int number;
    for (int i = 0; i < count; i++) {
        char id[16];
        snprintf(id, sizeof id, "t%d", number++);
        stage_add(stage, "d", tenant, id, "ok");
    }
}

/* The busiest have a place; who comes later must be twice as busy as one of them, of late. */
static void the_busiest_tenants_are_told(void **state)
{
    struct stage stage = { .destination = answers_as_told };
    struct arena memory;
    char name[16];
    int64_t sum;
    (void)state;
    begin(&stage, &memory, "fairness: { batch: 3 }");
    for (int i = 0; i < MEASURED_TENANTS_MAX; i++) {
        snprintf(name, sizeof name, "small-%d", i);
        add_of(&stage, name, i == 0 ? 2 : 6);
    }
    stage_run_for(&stage, SECOND_MS);
    add_of(&stage, "late", 3);
    stage_run_for(&stage, SECOND_MS);
    struct destination_measures measured = look(&stage, &memory);
    assert_int_equal(measured.measures.tenants.count, MEASURED_TENANTS_MAX);
    assert_null(tenant_of(&measured, "late")); /* 3 is not twice 2 */
    assert_int_equal(measured.measures.tenants.other.processed, 3);
    add_of(&stage, "late", 4);
    stage_run_for(&stage, SECOND_MS);
    measured = look(&stage, &memory);
    assert_null(tenant_of(&measured, "small-0"));
    assert_non_null(tenant_of(&measured, "late"));
    assert_int_equal(tenant_of(&measured, "late")->processed, 3); /* from its fifth on; the others stay counted as such */
    assert_int_equal(measured.measures.tenants.other.processed, 4);
    add_of(&stage, "small-0", 1); /* what it was before counts as long as it is of late: 3 against 6 */
    stage_run_for(&stage, SECOND_MS);
    measured = look(&stage, &memory);
    assert_null(tenant_of(&measured, "small-0"));
    stage_run_for(&stage, 30 * MINUTE_MS); /* nobody does anything: one job is enough for a place */
    add_of(&stage, "new", 1);
    stage_run_for(&stage, SECOND_MS);
    measured = look(&stage, &memory);
    assert_non_null(tenant_of(&measured, "new"));
    sum = measured.measures.tenants.other.processed;
    for (size_t i = 0; i < measured.measures.tenants.count; i++)
        sum += measured.tenants[i].processed;
    check(sum <= 2 + 19 * 6 + 7 + 1 + 1, "%lld", (long long)sum); /* those who lost their place took theirs along */
    end(&stage, &memory);
}

/* S2-098 S2-099 S2-100 S2-101: counted at the answer, the turns at the dispatch; at rest both are the same. */
static void tenants_are_counted_as_their_turns(void **state)
{
    struct stage stage = { .destination = answers_as_told };
    struct arena memory;
    (void)state;
    begin(&stage, &memory, "fairness: { batch: 3, base_priority: 5 }");
    add_of(&stage, "acme", 100);
    add_of(&stage, "globex", 10);
    stage_run_for(&stage, MINUTE_MS);
    struct destination_measures measured = look(&stage, &memory);
    for (size_t i = 0; i < 2; i++) {
        struct tenant_status status = engine_tenant(stage.engine, measured.tenants[i].lane);
        assert_int_equal(measured.tenants[i].processed, status.turns.total);
        assert_int_equal(status.turns.priority, status.turns.rounds_without >= 4 ? 1 : 5 - status.turns.rounds_without);
    }
    assert_int_equal(tenant_of(&measured, "acme")->processed, 100);
    assert_int_equal(tenant_of(&measured, "globex")->processed, 10);
    end(&stage, &memory);
}

static json_t *find_line(char *said, const char *event, size_t *ret_count)
{
    json_t *found = NULL;
    *ret_count = 0;
    for (char *text; (text = strsep(&said, "\n")) && *text;) {
        json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        const char *name = json_string_value(json_object_get(line, "event"));
        if (name && strcmp(name, event) == 0) {
            json_decref(found);
            found = json_incref(line);
            ++*ret_count;
        }
        json_decref(line);
    }
    return found;
}

/* S3-092: times and throughput, once a minute in which something was sent. */
static void a_minute_has_its_line(void **state)
{
    int64_t duration_ms = 100;
    struct stage stage = { .destination = answers_as_told, .context = &duration_ms };
    struct arena memory;
    size_t lines;
    (void)state;
    begin(&stage, &memory, "retry: { max_retries: 0 }");
    said_begin();
    for (int i = 0; i < 9; i++)
        add_coded(&stage, "ok");
    stage_run_for(&stage, 10 * SECOND_MS);
    duration_ms = 1100;
    add_coded(&stage, "http:503");
    stage_run_for(&stage, 5 * MINUTE_MS);
    json_t *line = find_line(said_end(), "throughput", &lines);
    assert_int_equal(lines, 1); /* nothing was sent in the other minutes */
    assert_string_equal(json_string_value(json_object_get(line, "destination")), "d");
    assert_int_equal(json_integer_value(json_object_get(line, "sent")), 10);
    assert_int_equal(json_integer_value(json_object_get(line, "succeeded")), 9);
    assert_int_equal(json_integer_value(json_object_get(line, "failed")), 1);
    assert_int_equal(json_integer_value(json_object_get(line, "mean_ms")), 200);
    assert_int_equal(json_integer_value(json_object_get(line, "p95_ms")), 1750); /* half of one between 1000 and 2500 */
    double seconds = json_number_value(json_object_get(line, "seconds"));
    check(seconds >= 60 && seconds < 62, "%g", seconds);
    assert_true(fabs(json_number_value(json_object_get(line, "per_second")) - 10 / seconds) < 0.01);
    json_decref(line);
    end(&stage, &memory);
}

/* S3-074: contingency and an open breaker are time without the destination, an operator's pause is not. */
static void availability_is_added_up(void **state)
{
    struct stage stage = { .destination = answers_as_told };
    struct error error;
    struct arena memory;
    (void)state;
    begin(&stage, &memory, "contingency: { stable: 1s }");
    stage_run_for(&stage, 100 * SECOND_MS);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    stage_run_for(&stage, 100 * SECOND_MS);
    assert_int_equal(engine_resume(stage.engine, SLICE("d"), &error), STATUS_OK);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    stage_run_for(&stage, 50 * SECOND_MS);
    struct destination_measures measured = look(&stage, &memory);
    assert_true(measured.measures.contingency && !measured.measures.available);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &error), STATUS_OK);
    stage_run_for(&stage, 150 * SECOND_MS);
    measured = look(&stage, &memory);
    assert_in_range(measured.measures.observed_ms, 398 * SECOND_MS, 400 * SECOND_MS);
    assert_in_range(measured.measures.contingency_ms, 49 * SECOND_MS, 51 * SECOND_MS);
    assert_int_equal(measured.measures.observed_ms - measured.measures.available_ms, measured.measures.contingency_ms);
    end(&stage, &memory);
}

static int64_t is_away(struct stage *stage, const struct probe *probe, struct health_answer *answer)
{
    (void)probe;
    answer->connected = stage->now < began + 60 * SECOND_MS;
    answer->status = 200;
    answer->body = SLICE("{\"status\":\"UP\"}");
    return 30;
}

/* Health checks that fail are time without it too, where nothing is held for them. */
static void health_is_told(void **state)
{
    struct stage stage = { .destination = answers_as_told, .health = is_away };
    struct arena memory;
    (void)state;
    begin(&stage, &memory, "health: { url: 'http://127.0.0.1:1/', every: 10s, failures: 3 }, contingency: { enabled: false }");
    stage_run_for(&stage, 50 * SECOND_MS);
    struct destination_measures measured = look(&stage, &memory);
    assert_true(measured.checked && measured.up && measured.measures.available);
    stage_run_for(&stage, 150 * SECOND_MS);
    measured = look(&stage, &memory);
    assert_true(measured.checked && !measured.up && !measured.measures.available);
    assert_string_equal(measured.status.mode, "normal");
    assert_int_equal(measured.measures.contingency_ms, 0);
    assert_in_range(measured.measures.available_ms, 60 * SECOND_MS, 100 * SECOND_MS);
    end(&stage, &memory);
}

/* What a crash leaves behind is recorded, and counted, by the next process. */
static void interrupted_attempts_are_counted(void **state)
{
    int64_t duration_ms = 10 * SECOND_MS;
    struct stage stage = { .destination = answers_as_told, .context = &duration_ms };
    struct arena memory;
    (void)state;
    begin(&stage, &memory, "in_doubt: park");
    add_of(&stage, "t", 2);
    stage_run_for(&stage, SECOND_MS);
    stage_crash(&stage);
    stage_run_for(&stage, SECOND_MS);
    struct destination_measures measured = look(&stage, &memory);
    assert_int_equal(measured.measures.recovered, 2);
    assert_int_equal(measured.measures.untried_dead[VERDICT_PARK], 2);
    assert_int_equal(tenant_of(&measured, "t")->dead, 2);
    assert_int_equal(failed_with(&measured.measures, "insist:interrupted"), 2);
    end(&stage, &memory);
}

/* S0-087: an even spread is seen to be even. */
static void the_spread_is_measured(void **state)
{
    enum { JOBS = 2000 };
    struct stage stage = { .destination = answers_as_told };
    struct arena memory;
    size_t counts[10];
    (void)state;
    begin(&stage, &memory, "retry: { max_retries: 5, base: 1h, factor: 2, floor: 1m, cap: 8h, jitter: 0.2 }");
    for (int i = 0; i < JOBS; i++)
        add_coded(&stage, "http:503");
    stage_run_for(&stage, MINUTE_MS);
    struct measures measures = look(&stage, &memory).measures;
    assert_int_equal(histogram_total(&measures.times.spread), JOBS);
    assert_int_equal(histogram_total(&measures.times.wait), JOBS);
    assert_int_equal(measures.capped, 0);
    for (size_t i = 0; i < 10; i++)
        counts[i] = (size_t)measures.times.spread.counts[i];
    check(chi_square_z(counts, 10) < 4, "%g", chi_square_z(counts, 10));
    end(&stage, &memory);
}

/* How long a job has waited when it is claimed first: since it could go, not since it came, and once. */
static void time_in_the_queue_is_measured(void **state)
{
    struct stage stage = { .destination = answers_as_told };
    struct error error;
    struct arena memory;
    (void)state;
    begin(&stage, &memory, "retry: { max_retries: 1, base: 1m, floor: 1m, cap: 1m, jitter: 0 }");
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    add_coded(&stage, "http:503");
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(engine_resume(stage.engine, SLICE("d"), &error), STATUS_OK);
    stage_run_for(&stage, 5 * MINUTE_MS);
    struct measures measures = look(&stage, &memory).measures;
    assert_int_equal(histogram_total(&measures.times.queued), 1); /* its second attempt does not wait for the first time */
    assert_in_range(measures.times.queued.sum, 10 * SECOND_MS, 11 * SECOND_MS);
    assert_int_equal(measures.attempts[1].answered, 1);
    end(&stage, &memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_bounded),
        cmocka_unit_test(attempts_are_bounded),
        cmocka_unit_test(the_busiest_tenants_are_told),
        cmocka_unit_test(tenants_are_counted_as_their_turns),
        cmocka_unit_test(a_minute_has_its_line),
        cmocka_unit_test(availability_is_added_up),
        cmocka_unit_test(health_is_told),
        cmocka_unit_test(interrupted_attempts_are_counted),
        cmocka_unit_test(the_spread_is_measured),
        cmocka_unit_test(time_in_the_queue_is_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
