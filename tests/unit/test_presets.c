/*
 * The presets' numbers: waits, their sums, how often a job is sent, and the limits around it.
 * The names of the cases begin with the requirement that they keep.
 */
#include "support/presets.h"

#include "core/decision/backoff.h"
#include "core/decision/decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define ID "CLM-2025-1"

static const instant start = 1736678400000; /* 2025-01-12T10:40:00Z */

static struct decide_request request(const char *text, int64_t retry_count)
{
    return (struct decide_request){ .id = SLICE(ID), .text = slice_from(text), .retry_count = retry_count,
                                    .priority = PRIORITY_NORMAL, .retry_after_ms = -1, .now = start,
                                    .first_at = INSTANT_NONE, .deadline = INSTANT_NONE, .seed = 7 };
}

static struct decision decided(const char *preset, const struct decide_request *asked)
{
    struct decision decision;
    assert_int_equal(decide(preset_policy(preset), asked, &decision), PROBLEM_NONE);
    return decision;
}

/* Sends until the policy stops; every send ends in the same error. */
struct course {
    int64_t sends;
    int64_t took_ms;
    struct decision last;
};

static struct course course_run(const char *preset, const char *text, uint64_t seed)
{
    struct course course = { .sends = 1 };
    struct decide_request asked = request(text, 0);
    asked.first_at = start;
    asked.seed = seed;
    for (;;) {
        course.last = decided(preset, &asked);
        if (course.last.verdict != VERDICT_RETRY)
            return course;
        assert_true(course.last.next_at > asked.now);
        assert_int_equal(course.last.retry_count, asked.retry_count + 1);
        assert_true(course.sends < 1000);
        course.sends++;
        course.took_ms = course.last.next_at - start;
        asked.now = course.last.next_at;
        asked.retry_count = course.last.retry_count;
    }
}

enum { S = SECOND_MS, M = MINUTE_MS };

static const struct {
    const char *name, *preset;
    int64_t retries;
    int64_t waits_ms[16]; /* the middle of each wait; the last one given repeats */
    double jitter;
    enum clamp clamp;
    int64_t floor_ms, cap_ms;
    int64_t sum_ms, low_ms, high_ms;
} schedules[] = {
    { "S0-065 S0-066 S0-078 S0-079 S1-042 S1-107 C-77 C-81 tiss: 5 10 20 40 80 minutes", "tiss", 5,
      { 5 * M, 10 * M, 20 * M, 40 * M, 80 * M },
      0.2, CLAMP_AFTER, 5 * M, 240 * M, 155 * M, 125 * M, 186 * M },
    { "S2-013 S2-014 S2-015 S2-016 S2-083 email: 1 2 4 8 seconds", "email", 4,
      { 1 * S, 2 * S, 4 * S, 8 * S },
      0.25, CLAMP_BEFORE, 0, 60 * S, 15 * S, 11250, 18750 },
    { "S3-034 S3-051 S3-052 S3-076 S3-081 S3-082 S3-083 S3-084 sifen: 30 90 270 seconds", "sifen", 3,
      { 30 * S, 90 * S, 270 * S },
      0.1, CLAMP_AFTER, 0, 3600 * S, 390 * S, 351 * S, 429 * S },
    { "S4-019 S4-020 provisioning: 30 to 600 seconds", "provisioning", 9,
      { 30 * S, 60 * S, 120 * S, 240 * S, 480 * S, 600 * S },
      0.2, CLAMP_AFTER, 0, 600 * S, 3330 * S, 2664 * S, 3516 * S },
    { "C-52 email-relay: five days", "email-relay", 42,
      { 10 * M, 30 * M, 90 * M, 180 * M },
      0.1, CLAMP_AFTER, 5 * M, 180 * M, 7150 * M, 6435 * M, 7163 * M },
    { "http: six and a half hours", "http", 15,
      { 5 * S, 10 * S, 20 * S, 40 * S, 80 * S, 160 * S, 320 * S, 640 * S, 1280 * S, 2560 * S, 3600 * S },
      0.2, CLAMP_AFTER, 1 * S, 3600 * S, 23115 * S, 18492 * S, 24138 * S },
};

static int64_t wait_of(const int64_t waits[16], int64_t retry)
{
    int64_t wait = 0;
    for (int64_t i = 0; i < retry && i < 16 && waits[i] > 0; i++)
        wait = waits[i];
    return wait;
}

static void schedule_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(schedules); i++) {
        print_message("  %s\n", schedules[i].name);
        const struct retry_policy *retry = &preset_policy(schedules[i].preset)->retry;
        assert_int_equal(retry->retries_max, schedules[i].retries);
        assert_int_equal(retry->floor_ms, schedules[i].floor_ms);
        assert_int_equal(retry->cap_ms, schedules[i].cap_ms);
        assert_int_equal(retry->clamp, schedules[i].clamp);
        assert_true(retry->jitter == schedules[i].jitter);
        int64_t sum = 0, low = 0, high = 0;
        for (int64_t k = 1; k <= schedules[i].retries; k++) {
            assert_int_equal(backoff_nominal_ms(retry, k, PRIORITY_NORMAL), wait_of(schedules[i].waits_ms, k));
            struct backoff_range range = backoff_range(retry, k, PRIORITY_NORMAL);
            sum += backoff_nominal_ms(retry, k, PRIORITY_NORMAL);
            low += range.low_ms;
            high += range.high_ms;
        }
        assert_int_equal(sum, schedules[i].sum_ms);
        assert_int_equal(low, schedules[i].low_ms);
        assert_int_equal(high, schedules[i].high_ms);
    }
}

/* Drives the decision to its end, for several draws: sends counted, total within the sums above. */
static void schedule_courses(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(schedules); i++)
        for (uint64_t seed = 0; seed < 50; seed++) {
            struct course course = course_run(schedules[i].preset, "curl: connection refused", seed);
            assert_int_equal(course.sends, schedules[i].retries + 1);
            assert_int_equal(course.last.verdict, VERDICT_EXHAUSTED);
            assert_int_equal(course.last.reason, REASON_RETRIES);
            assert_true(course.took_ms >= schedules[i].low_ms && course.took_ms <= schedules[i].high_ms);
        }
}

static const struct {
    const char *name, *preset;
    int64_t retry;
    int64_t low_ms, high_ms;
} ranges[] = {
    /* A-12, S2-002, S2-009, S2-022, S2-121: the document's table; C-34: the sixth is 32s,
        the cap shows at the seventh; C-35: it may pass 60s */
    { "S2-022 attempt 1", "email", 1, 750, 1250 },
    { "S2-022 attempt 2", "email", 2, 1500, 2500 },
    { "S2-022 attempt 3", "email", 3, 3000, 5000 },
    { "S2-022 attempt 4", "email", 4, 6000, 10000 },
    { "S2-022 attempt 5", "email", 5, 12000, 20000 },
    { "C-34 attempt 6", "email", 6, 24000, 40000 },
    { "C-35 attempt 7", "email", 7, 45000, 75000 },
    { "S2-022 attempt 100", "email", 100, 45000, 75000 },
    /* C-10: no pile at five minutes; S0-067: 20 minutes spread over 16 to 24 */
    { "S0-035 S0-068 S0-146 S1-021 C-10 tiss retry 1 keeps the floor", "tiss", 1, 5 * M, 6 * M },
    { "S1-071 S1-020 C-01 tiss retry 2: 12 minutes are possible, 1 is not", "tiss", 2, 8 * M, 12 * M },
    { "S0-067 tiss retry 3", "tiss", 3, 16 * M, 24 * M },
    { "S1-042 tiss retry 4", "tiss", 4, 32 * M, 48 * M },
    { "S1-042 tiss retry 5", "tiss", 5, 64 * M, 96 * M },
    { "C-12 tiss retry 6 would be 160 minutes", "tiss", 6, 128 * M, 192 * M },
    { "S0-033 S0-145 C-09 C-12 tiss retry 7 meets the cap", "tiss", 7, 192 * M, 240 * M },
    { "C-12 tiss retry 63 does not overflow", "tiss", 63, 192 * M, 240 * M },
    { "C-12 tiss any retry", "tiss", INT64_MAX, 192 * M, 240 * M },
    { "C-53 sifen Intento 2", "sifen", 1, 27 * S, 33 * S },
    { "C-53 sifen Intento 3", "sifen", 2, 81 * S, 99 * S },
    { "C-53 sifen Intento 4", "sifen", 3, 243 * S, 297 * S },
    { "S3-051 sifen Intento 5, if the limit is raised", "sifen", 4, 729 * S, 891 * S },
    { "S3-083 sifen cap", "sifen", 6, 3240 * S, 3600 * S },
    { "C-74 provisioning retry 1", "provisioning", 1, 24 * S, 36 * S },
    { "S4-019 provisioning cap", "provisioning", 6, 480 * S, 600 * S },
};

static void wait_ranges(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ranges); i++) {
        print_message("  %s\n", ranges[i].name);
        struct backoff_range range = backoff_range(&preset_policy(ranges[i].preset)->retry, ranges[i].retry,
            PRIORITY_NORMAL);
        assert_int_equal(range.low_ms, ranges[i].low_ms);
        assert_int_equal(range.high_ms, ranges[i].high_ms);
    }
}

/* A-03 S0-046 S0-095 C-21, A-04 S0-047 C-03, A-09 S1-028: every draw is in bounds,
    and off the middle by at most a fifth. */
static void tiss_draws_in_bounds(void **state)
{
    (void)state;
    const struct retry_policy *retry = &preset_policy("tiss")->retry;
    for (int64_t k = 1; k <= 71; k++) {
        int64_t middle = backoff_nominal_ms(retry, k, PRIORITY_NORMAL);
        for (int i = 0; i < 1000; i++) {
            char id[32];
            snprintf(id, sizeof id, "CLM-%d-%d", i, i);
            int64_t wait = backoff_ms(retry, 1, slice_from(id), k, PRIORITY_NORMAL);
            assert_true(wait >= 5 * M && wait <= 240 * M);
            assert_true(5 * (wait - middle) <= middle && 5 * (middle - wait) <= middle);
        }
    }
}

/* A-03 also against the operator's own wish: Retry-After and throttling stay within 5 to 240 minutes. */
static void tiss_retry_after_in_bounds(void **state)
{
    static const int64_t wishes[] = { 0, 1, 1000, 5 * M, 60 * M, 240 * M, 241 * M, 7 * (int64_t)DAY_MS, INT64_MAX };
    static const char *const texts[] = { "HTTP 503", "HTTP 429", "TIMEOUT", "strange" };
    (void)state;
    for (size_t i = 0; i < COUNT(wishes); i++)
        for (size_t j = 0; j < COUNT(texts); j++)
            for (int64_t count = 0; count < 5; count++) {
                struct decide_request asked = request(texts[j], count);
                asked.retry_after_ms = wishes[i];
                struct decision decision = decided("tiss", &asked);
                assert_int_equal(decision.verdict, VERDICT_RETRY);
                assert_true(decision.delay_ms >= 5 * M && decision.delay_ms <= 240 * M);
                if (wishes[i] <= 240 * M)
                    assert_true(decision.delay_ms >= wishes[i]);
            }
}

static void http_retry_after(void **state)
{
    static const struct { int64_t asked_ms, low_ms, high_ms; } rows[] = {
        { -1, 4 * S, 6 * S },                          /* none was given */
        { 0, 4 * S, 6 * S },                           /* a date in the past */
        { 120 * S, 120 * S, 144 * S },                 /* never earlier, spread upwards */
        { (int64_t)99999999 * S, HOUR_MS, HOUR_MS }, /* believed up to an hour */
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct decide_request asked = request("HTTP 503", 0);
        asked.retry_after_ms = rows[i].asked_ms;
        struct decision decision = decided("http", &asked);
        assert_int_equal(decision.verdict, VERDICT_RETRY);
        assert_true(decision.delay_ms >= rows[i].low_ms && decision.delay_ms <= rows[i].high_ms);
    }
}

static const struct {
    const char *name, *preset, *text;
    int64_t sends;
    enum verdict verdict;
} courses[] = {
    { "A-01 A-07 S0-006 S0-132 S1-005 S1-007 S1-102 C-04 tiss: exactly six sends", "tiss", "SERVICE_UNAVAILABLE", 6,
      VERDICT_EXHAUSTED },
    { "C-04 tiss: unknown errors too", "tiss", "strange", 6, VERDICT_EXHAUSTED },
    { "C-13 tiss: a throttled submission counts", "tiss", "HTTP 429", 6, VERDICT_EXHAUSTED },
    { "A-02 A-08 tiss: a permanent error is sent once", "tiss", "INVALID_PROCEDURE_CODE", 1, VERDICT_PERMANENT },
    { "A-13 S2-003 S2-025 C-36 five times 421 are five sends", "email", "421 4.3.2 Service not available", 5,
      VERDICT_EXHAUSTED },
    { "A-13 S2-026 C-08 one 550 is one send", "email", "550 5.1.1 Mailbox unavailable", 1, VERDICT_PERMANENT },
    { "S2-051 Throttling is retried", "email", "Throttling", 5, VERDICT_EXHAUSTED },
    { "S3-033 C-53 sifen: four sends", "sifen", "HTTP 500", 4, VERDICT_EXHAUSTED },
    { "S4-020 provisioning: ten sends", "provisioning", "HTTP 503", 10, VERDICT_EXHAUSTED },
    { "email-relay: 43 sends", "email-relay", "451 4.7.1 greylisting", 43, VERDICT_EXHAUSTED },
    { "http: sixteen sends", "http", "HTTP 502", 16, VERDICT_EXHAUSTED },
};

static void send_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(courses); i++) {
        print_message("  %s\n", courses[i].name);
        struct course course = course_run(courses[i].preset, courses[i].text, i);
        assert_int_equal(course.sends, courses[i].sends);
        assert_int_equal(course.last.verdict, courses[i].verdict);
    }
}

/* S0-010, C-02: five retries end well inside four hours; with long wishes of the operator the guard ends them earlier. */
static void tiss_four_hours(void **state)
{
    (void)state;
    assert_int_equal(preset_policy("tiss")->retry.elapsed_max_ms, 4 * HOUR_MS);
    for (uint64_t seed = 0; seed < 200; seed++)
        assert_true(course_run("tiss", "TIMEOUT", seed).took_ms <= 186 * M);

    struct decide_request asked = request("HTTP 503", 3);
    asked.first_at = start - 3 * HOUR_MS;
    asked.retry_after_ms = 2 * HOUR_MS;
    struct decision decision = decided("tiss", &asked);
    assert_int_equal(decision.verdict, VERDICT_EXHAUSTED);
    assert_int_equal(decision.reason, REASON_ELAPSED);
}

/* Greylisting: a server that takes the message from five minutes on, for four hours, gets it. */
static void relay_outlasts_greylisting(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct decide_request asked = request("451 4.7.1 Greylisted, try again", 0);
        asked.first_at = start;
        asked.seed = seed;
        struct decision decision = decided("email-relay", &asked);
        assert_int_equal(decision.verdict, VERDICT_RETRY);
        assert_true(decision.delay_ms >= 5 * M && decision.delay_ms < 4 * HOUR_MS);
        int64_t took = course_run("email-relay", "450 4.2.0 busy", seed).took_ms;
        assert_true(took >= 4 * (int64_t)DAY_MS && took <= 5 * (int64_t)DAY_MS);
    }
}

/* S3-053: a critical document waits less, and no document more than the cap. */
static void sifen_critical_waits_less(void **state)
{
    (void)state;
    const struct retry_policy *retry = &preset_policy("sifen")->retry;
    for (int64_t k = 1; k <= 3; k++)
        assert_int_equal(2 * backoff_nominal_ms(retry, k, PRIORITY_CRITICAL), backoff_nominal_ms(retry, k,
            PRIORITY_NORMAL));
}

/* A-11 (BIL-005-V5), S1-022, S1-030: the next try is in the future at any now, also after a clock stepped back. */
static void next_is_in_the_future(void **state)
{
    static const int64_t steps[] = { 0, -HOUR_MS, -10 * (int64_t)DAY_MS, DAY_MS };
    (void)state;
    for (size_t i = 0; preset_name(i); i++)
        for (size_t j = 0; j < COUNT(steps); j++)
            for (int priority = 0; priority < PRIORITY_COUNT; priority++) {
                struct decide_request asked = request("connection refused", 0);
                asked.now = start + steps[j];
                asked.priority = (enum priority)priority;
                struct decision decision = decided(preset_name(i), &asked);
                assert_int_equal(decision.verdict, VERDICT_RETRY);
                assert_true(decision.next_at > asked.now);
                assert_int_equal(decision.next_at, asked.now + decision.delay_ms);
            }
}

static bool list_has(struct text_list list, const char *text)
{
    for (size_t i = 0; i < list.count; i++)
        if (strcmp(list.items[i], text) == 0)
            return true;
    return false;
}

/* S0-131, S1-075, C-32, S0-102, S1-089, S0-104: the rest of the TISS numbers. */
static void tiss_limits(void **state)
{
    (void)state;
    const struct destination_config *tiss = preset_destination("tiss");
    assert_int_equal(tiss->concurrency, 10);
    assert_int_equal(tiss->job_ttl_ms, DAY_MS);
    assert_int_equal(tiss->policy.retry.retry_after_max_ms, 240 * M);
    assert_int_equal(tiss->policy.unknown, OUTCOME_TRANSIENT);
    assert_true(list_has(tiss->success, "tiss:protocoloRecebimento"));
    assert_null(policy_id_problem(&tiss->policy, SLICE("CLM-2025-001234")));
    assert_non_null(policy_id_problem(&tiss->policy, SLICE("INV-1")));
    assert_true(tiss->breaker.enabled); /* S1-089 */
    assert_true(tiss->breaker.min_calls > BREAKER_JOBS_MIN); /* three claims alone never open it: a job counts once */
    assert_false(tiss->contingency.enabled); /* S0-104: a claim whose retries are exhausted is suspended, not held */
}

/* C-64: after doubt SIFEN is asked, not before ten minutes; 0422 closes the job, 0420 allows a second send. */
static void sifen_asks_before_resending(void **state)
{
    (void)state;
    const struct destination_config *sifen = preset_destination("sifen");
    assert_int_equal(sifen->policy.in_doubt, DOUBT_VERIFY);
    assert_true(list_has(sifen->verify.delivered, "sifen:0422"));
    assert_true(list_has(sifen->verify.absent, "sifen:0420"));
    assert_false(list_has(sifen->success, "2xx"));

    struct decide_request lost = request("<html>an answer nobody knows</html>", 3); /* also with all retries used */
    lost.code = SLICE("http:200");
    struct decide_request not_queued = request("0301 Lote no encolado para procesamiento", 0);
    const struct decide_request *const asked[] = { &lost, &not_queued };
    for (size_t i = 0; i < COUNT(asked); i++) {
        struct decision decision = decided("sifen", asked[i]);
        assert_int_equal(decision.verdict, VERDICT_VERIFY);
        assert_int_equal(decision.outcome, OUTCOME_IN_DOUBT);
        assert_int_equal(decision.delay_ms, 10 * M);
        assert_int_equal(decision.retry_count, asked[i]->retry_count);
    }
    struct decide_request received = request("0300 Lote recibido", 0);
    struct decision decision = decided("sifen", &received);
    assert_int_equal(decision.verdict, VERDICT_POLL);
    assert_int_equal(decision.delay_ms, 10 * M);
    assert_true(list_has(sifen->poll.pending, "sifen:0361"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedule_numbers),           cmocka_unit_test(schedule_courses),
        cmocka_unit_test(wait_ranges),                cmocka_unit_test(tiss_draws_in_bounds),
        cmocka_unit_test(tiss_retry_after_in_bounds), cmocka_unit_test(http_retry_after),
        cmocka_unit_test(send_counts),                cmocka_unit_test(tiss_four_hours),
        cmocka_unit_test(relay_outlasts_greylisting), cmocka_unit_test(sifen_critical_waits_less),
        cmocka_unit_test(next_is_in_the_future),      cmocka_unit_test(tiss_limits),
        cmocka_unit_test(sifen_asks_before_resending),
    };
    return cmocka_run_group_tests(tests, NULL, presets_release);
}
