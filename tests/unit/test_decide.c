#include "support/scarce.h"

#include "core/decision/backoff.c"

#include "core/decision/classify.c"

#include "core/decision/decide.c"

#include "core/decision/token_index.c"
#include "support/check.h"
#include "support/policies.h"

/* One token an outcome, so that a text says what it is. */
static const struct rule rules[] = {
    { TIER_MAIN, OUTCOME_DELIVERED, { "E_DELIVERED", 11 } }, { TIER_MAIN, OUTCOME_ACCEPTED, { "E_ACCEPTED", 10 } },
    { TIER_MAIN, OUTCOME_TRANSIENT, { "E_TRANSIENT", 11 } }, { TIER_MAIN, OUTCOME_THROTTLED, { "E_THROTTLED", 11 } },
    { TIER_MAIN, OUTCOME_WAIT, { "E_WAIT", 6 } },            { TIER_MAIN, OUTCOME_IN_DOUBT, { "E_IN_DOUBT", 10 } },
    { TIER_MAIN, OUTCOME_DUPLICATE, { "E_DUPLICATE", 11 } }, { TIER_MAIN, OUTCOME_PERMANENT, { "E_PERMANENT", 11 } },
    { TIER_MAIN, OUTCOME_BLOCKED, { "E_BLOCKED", 9 } },      { TIER_MAIN, OUTCOME_PARTIAL, { "E_PARTIAL", 9 } },
    { TIER_MAIN, OUTCOME_WAIT, { "http:503", 8 } },
};

static const instant noon = 1736683200000; /* 2025-01-12T12:00:00Z */

static struct policy policy; /* what each test starts with: the numbers of the claims' preset */

static int make_policy(void **state)
{
    (void)state;
    policy = (struct policy){ .name = "test", .retry = tiss_retry, .unknown = OUTCOME_TRANSIENT, .in_doubt = DOUBT_VERIFY, .can_verify = true };
    policy.retry.elapsed_max_ms = 0;
    policy.classifier = rules_compiled(rules, COUNT_OF(rules), "");
    return 0;
}

static int free_policy(void **state)
{
    (void)state;
    classifier_free(policy.classifier);
    pattern_free(policy.id_pattern);
    return 0;
}

static struct decide_request request_of(const char *text, int64_t retry_count)
{
    return (struct decide_request){
        .id = SLICE("CLM-2025-001"),
        .text = slice_from(text),
        .retry_count = retry_count,
        .priority = PRIORITY_NORMAL,
        .retry_after_ms = -1,
        .now = noon,
        .first_at = INSTANT_NONE,
        .deadline = INSTANT_NONE,
        .seed = 1,
    };
}

static struct decision decided(const struct decide_request *request)
{
    struct decision decision;
    check(decide(&policy, request, &decision) == PROBLEM_NONE, "%.*s", SLICE_ARG(request->text));
    if (verdict_goes_on(decision.verdict)) { /* A-11, whatever else holds */
        check(decision.next_at > request->now, "%.*s: not in the future", SLICE_ARG(request->text));
        check(decision.next_at == request->now + decision.delay_ms, "%.*s: two times", SLICE_ARG(request->text));
    } else {
        check(decision.delay_ms == 0 && decision.next_at == INSTANT_NONE, "%.*s: a time after the end", SLICE_ARG(request->text));
    }
    return decision;
}

static struct decision decided_of(const char *text, int64_t retry_count)
{
    struct decide_request request = request_of(text, retry_count);
    return decided(&request);
}

/* A-19 and the ten classes: what each becomes when no limit stands against it, and at the limit. */
static void every_class_has_its_verdict(void **state)
{
    (void)state;
    static const struct { const char *text; enum outcome outcome; bool known; enum verdict verdict; int64_t spent; enum verdict at_limit; } rows[] = {
        { "E_DELIVERED", OUTCOME_DELIVERED, true, VERDICT_COMPLETE, 0, VERDICT_COMPLETE },
        { "E_ACCEPTED", OUTCOME_ACCEPTED, true, VERDICT_POLL, 0, VERDICT_POLL },
        { "E_TRANSIENT", OUTCOME_TRANSIENT, true, VERDICT_RETRY, 1, VERDICT_EXHAUSTED },
        { "E_THROTTLED", OUTCOME_THROTTLED, true, VERDICT_RETRY, 1, VERDICT_EXHAUSTED },
        { "E_WAIT", OUTCOME_WAIT, true, VERDICT_HOLD, 0, VERDICT_HOLD },
        { "E_IN_DOUBT", OUTCOME_IN_DOUBT, true, VERDICT_VERIFY, 0, VERDICT_VERIFY },
        { "E_DUPLICATE", OUTCOME_DUPLICATE, true, VERDICT_VERIFY, 0, VERDICT_VERIFY },
        { "E_PERMANENT", OUTCOME_PERMANENT, true, VERDICT_PERMANENT, 0, VERDICT_EXHAUSTED }, /* C-27 */
        { "E_BLOCKED", OUTCOME_BLOCKED, true, VERDICT_BLOCK, 0, VERDICT_BLOCK },
        { "E_PARTIAL", OUTCOME_PARTIAL, true, VERDICT_SPLIT, 0, VERDICT_SPLIT },
        { "never seen before", OUTCOME_TRANSIENT, false, VERDICT_RETRY, 1, VERDICT_EXHAUSTED }, /* S0-031 */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct decision decision = decided_of(rows[i].text, 2);
        check(decision.verdict == rows[i].verdict, "%s: %s", rows[i].text, verdict_name(decision.verdict));
        check(decision.outcome == rows[i].outcome && decision.known == rows[i].known, "%s", rows[i].text);
        check(decision.reason == REASON_OUTCOME, "%s", rows[i].text);
        check(decision.retry_count == 2 + rows[i].spent, "%s spends", rows[i].text);
        check(slice_equal(decision.rule, rows[i].known ? slice_from(rows[i].text) : SLICE("")), "%s: rule", rows[i].text);

        decision = decided_of(rows[i].text, 5);
        check(decision.verdict == rows[i].at_limit, "%s at the limit: %s", rows[i].text, verdict_name(decision.verdict));
        check(decision.outcome == rows[i].outcome, "%s keeps its class", rows[i].text); /* C-27: recorded beside */
        check(decision.reason == (rows[i].at_limit == VERDICT_EXHAUSTED ? REASON_RETRIES : REASON_OUTCOME), "%s", rows[i].text);
        check(decision.retry_count == 5, "%s spends nothing any more", rows[i].text);
    }
    policy.unknown = OUTCOME_PERMANENT; /* C-78 */
    struct decision decision = decided_of("never seen before", 0);
    assert_int_equal(decision.verdict, VERDICT_PERMANENT);
    assert_false(decision.known);
}

/* C-04, C-05, C-06: five retries, and never a sixth. */
static void the_count_of_retries(void **state)
{
    (void)state;
    static const struct { int64_t count; enum verdict verdict; } rows[] = {
        { 0, VERDICT_RETRY }, { 1, VERDICT_RETRY }, { 2, VERDICT_RETRY }, { 3, VERDICT_RETRY }, { 4, VERDICT_RETRY },
        { 5, VERDICT_EXHAUSTED }, { 6, VERDICT_EXHAUSTED }, { 1000, VERDICT_EXHAUSTED }, { INT64_MAX, VERDICT_EXHAUSTED },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct decision decision = decided_of("E_TRANSIENT", rows[i].count);
        check(decision.verdict == rows[i].verdict, "retryCount %lld", (long long)rows[i].count);
        check(decision.retry_count == rows[i].count + (rows[i].verdict == VERDICT_RETRY), "retryCount %lld", (long long)rows[i].count);
        if (decision.verdict != VERDICT_RETRY)
            continue;
        struct backoff_range range = backoff_range(&policy.retry, rows[i].count + 1, PRIORITY_NORMAL);
        check(decision.delay_ms >= range.low_ms && decision.delay_ms <= range.high_ms, "retryCount %lld", (long long)rows[i].count);
    }
    int sends = 1; /* a whole run makes six sends */
    for (struct decision decision = decided_of("E_TRANSIENT", 0); decision.verdict == VERDICT_RETRY; sends++)
        decision = decided_of("E_TRANSIENT", decision.retry_count);
    assert_int_equal(sends, 6);

    policy.retry.retries_max = 0;
    assert_int_equal(decided_of("E_TRANSIENT", 0).verdict, VERDICT_EXHAUSTED);
    policy.retry = email_retry; /* five sends */
    assert_int_equal(decided_of("E_TRANSIENT", 3).verdict, VERDICT_RETRY);
    assert_int_equal(decided_of("E_TRANSIENT", 4).verdict, VERDICT_EXHAUSTED);
}

/* C-07, C-32: what cannot be judged is refused, and nothing is written. */
static void bad_requests_are_refused(void **state)
{
    (void)state;
    assert_int_equal(pattern_new(SLICE("CLM-.*-\\d+"), &policy.id_pattern, NULL), STATUS_OK);
    const struct { const char *name; struct slice id, text; int64_t count; enum decide_problem problem; } rows[] = {
        { "all is well", SLICE("CLM-1-1"), SLICE("E_TRANSIENT"), 0, PROBLEM_NONE },
        { "A-05 -1", SLICE("CLM-1-1"), SLICE("E_TRANSIENT"), -1, PROBLEM_RETRY_COUNT },
        { "A-05 the least", SLICE("CLM-1-1"), SLICE("E_TRANSIENT"), INT64_MIN, PROBLEM_RETRY_COUNT },
        { "A-05 with a permanent error", SLICE("CLM-1-1"), SLICE("E_PERMANENT"), -1, PROBLEM_RETRY_COUNT },
        { "A-06 missing", SLICE("CLM-1-1"), { NULL, 0 }, 0, PROBLEM_ERROR_MESSAGE },
        { "A-06 empty", SLICE("CLM-1-1"), SLICE(""), 0, PROBLEM_ERROR_MESSAGE },
        { "A-06 a space", SLICE("CLM-1-1"), SLICE(" "), 0, PROBLEM_ERROR_MESSAGE },
        { "A-06 NUL", SLICE("CLM-1-1"), SLICE("\0"), 0, PROBLEM_ERROR_MESSAGE },
        { "A-06 tabs", SLICE("CLM-1-1"), SLICE("\t\t\r\n"), 0, PROBLEM_ERROR_MESSAGE },
        { "A-06 at the limit", SLICE("CLM-1-1"), SLICE(""), 5, PROBLEM_ERROR_MESSAGE },
        { "C-32 missing", { NULL, 0 }, SLICE("E_TRANSIENT"), 0, PROBLEM_ID },
        { "C-32 blank", SLICE("  "), SLICE("E_TRANSIENT"), 0, PROBLEM_ID },
        { "C-32 form", SLICE("CLM-1"), SLICE("E_TRANSIENT"), 0, PROBLEM_ID },
        { "C-32 control", SLICE("CLM-\n-1"), SLICE("E_TRANSIENT"), 0, PROBLEM_ID },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct decide_request request = request_of("", rows[i].count);
        struct decision decision = { .retry_count = 77 };
        request.id = rows[i].id;
        request.text = rows[i].text;
        check(decide(&policy, &request, &decision) == rows[i].problem, "%s", rows[i].name);
        check(rows[i].problem == PROBLEM_NONE || decision.retry_count == 77, "%s: written", rows[i].name);
    }
}

/* C-64: after a doubtful send. */
static void doubt(void **state)
{
    (void)state;
    static const struct { enum doubt_action action; enum verdict verdict, at_limit; } rows[] = {
        { DOUBT_RESEND, VERDICT_RETRY, VERDICT_EXHAUSTED },
        { DOUBT_VERIFY, VERDICT_VERIFY, VERDICT_VERIFY },
        { DOUBT_PARK, VERDICT_PARK, VERDICT_PARK },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        policy.in_doubt = rows[i].action;
        struct decide_request request = request_of("E_PERMANENT, the rules are not asked", 0);
        request.outcome = OUTCOME_IN_DOUBT;
        struct decision decision = decided(&request);
        check(decision.verdict == rows[i].verdict, "action %zu", i);
        check(decision.outcome == OUTCOME_IN_DOUBT && decision.known && decision.rule.len == 0, "action %zu", i);
        check(decision.retry_count == (rows[i].verdict == VERDICT_RETRY ? 1 : 0), "action %zu", i);
        request.retry_count = 5;
        check(decided(&request).verdict == rows[i].at_limit, "action %zu at the limit", i);
    }
    policy.in_doubt = DOUBT_VERIFY;
    policy.verify_after_ms = 10 * MINUTE_MS;
    struct decision decision = decided_of("E_IN_DOUBT", 0);
    assert_int_equal(decision.delay_ms, 10 * MINUTE_MS);
    policy.verify_after_ms = 0; /* as a retry */
    decision = decided_of("E_IN_DOUBT", 2);
    assert_true(decision.delay_ms >= 16 * MINUTE_MS && decision.delay_ms <= 24 * MINUTE_MS);
}

/* A good answer that lacks what makes it a delivery: its text may say what went wrong, its code not that all is well. */
static void an_unconfirmed_answer_is_no_delivery(void **state)
{
    (void)state;
    static const struct { const char *code, *text; enum outcome outcome; const char *rule; } rows[] = {
        { "http:200", "HTTP 200", OUTCOME_IN_DOUBT, "" },
        { "http:200", "HTTP 200: <html>back soon</html>", OUTCOME_IN_DOUBT, "" },
        { "http:200", "HTTP 200: E_PERMANENT", OUTCOME_PERMANENT, "E_PERMANENT" },
        { "http:200", "HTTP 200: E_TRANSIENT", OUTCOME_TRANSIENT, "E_TRANSIENT" },
        { "http:200", "HTTP 200: E_ACCEPTED", OUTCOME_IN_DOUBT, "" },
        { "x:done", "HTTP 200: E_TRANSIENT", OUTCOME_TRANSIENT, "E_TRANSIENT" }, /* whatever the code says */
        { "x:done", "HTTP 200", OUTCOME_IN_DOUBT, "" },
        { "http:503", "HTTP 503", OUTCOME_WAIT, "http:503" },
    };
    static const struct rule more[] = { { TIER_MAIN, OUTCOME_DELIVERED, { "x:done", 6 } } };
    struct rule all[COUNT_OF(rules) + 1];
    memcpy(all, rules, sizeof rules);
    all[COUNT_OF(rules)] = more[0];
    classifier_free(policy.classifier);
    policy.classifier = rules_compiled(all, COUNT_OF(all), "");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct decide_request request = request_of(rows[i].text, 0);
        request.code = slice_from(rows[i].code);
        request.unconfirmed = true;
        struct decision decision = decided(&request);
        check(decision.outcome == rows[i].outcome, "%s: %s", rows[i].text, outcome_name(decision.outcome));
        check(slice_equal(decision.rule, slice_from(rows[i].rule)), "%s: %.*s", rows[i].text, SLICE_ARG(decision.rule));
    }
}

/* A transport or a query that knows better than the rules. */
static void a_known_outcome_is_not_looked_up(void **state)
{
    (void)state;
    for (int i = OUTCOME_NONE + 1; i < OUTCOME_COUNT; i++) {
        struct decide_request request = request_of(i == OUTCOME_PERMANENT ? "E_TRANSIENT" : "E_PERMANENT", 0);
        request.outcome = (enum outcome)i;
        struct decision decision = decided(&request);
        check(decision.outcome == request.outcome && decision.known && decision.rule.len == 0, "%s", outcome_name(request.outcome));
        check(decision.verdict == (i == OUTCOME_IN_DOUBT ? VERDICT_VERIFY : treatment[i]), "%s", outcome_name(request.outcome));
    }
}

static void duplicates(void **state)
{
    (void)state;
    static const struct { bool doubted, can_verify; int64_t count; enum verdict verdict; } rows[] = {
        { false, false, 0, VERDICT_PERMANENT }, { true, false, 0, VERDICT_COMPLETE },  { false, true, 0, VERDICT_VERIFY },
        { true, true, 0, VERDICT_VERIFY },      { false, false, 5, VERDICT_EXHAUSTED }, { true, false, 5, VERDICT_COMPLETE },
        { false, true, 5, VERDICT_VERIFY },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct decide_request request = request_of("E_DUPLICATE", rows[i].count);
        request.doubted = rows[i].doubted;
        policy.can_verify = rows[i].can_verify;
        struct decision decision = decided(&request);
        check(decision.verdict == rows[i].verdict, "row %zu: %s", i, verdict_name(decision.verdict));
        check(decision.retry_count == rows[i].count, "row %zu spends", i);
    }
}

static void polling(void **state)
{
    (void)state;
    policy.poll_every_ms = 30 * SECOND_MS;
    assert_int_equal(decided_of("E_ACCEPTED", 0).delay_ms, 30 * SECOND_MS);
    assert_int_equal(decided_of("E_ACCEPTED", 1000).delay_ms, 30 * SECOND_MS);
    policy.poll_every_ms = 0;
    struct decision decision = decided_of("E_ACCEPTED", 1);
    assert_true(decision.delay_ms >= 8 * MINUTE_MS && decision.delay_ms <= 12 * MINUTE_MS);
}

/* Invariant 4: what is not the job's fault spends nothing, even when nothing is left. */
static void throttles_and_waits(void **state)
{
    (void)state;
    static const struct { const char *text; bool spends; int64_t count; enum verdict verdict; int64_t count_after; } rows[] = {
        { "E_THROTTLED", true, 0, VERDICT_RETRY, 1 },      { "E_THROTTLED", false, 0, VERDICT_HOLD, 0 },
        { "E_THROTTLED", true, 5, VERDICT_EXHAUSTED, 5 },  { "E_THROTTLED", false, 5, VERDICT_HOLD, 5 },
        { "E_WAIT", true, 0, VERDICT_HOLD, 0 },            { "E_WAIT", true, 1000, VERDICT_HOLD, 1000 },
        { "E_WAIT", true, INT64_MAX, VERDICT_HOLD, INT64_MAX },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        policy.retry.throttled_spends = rows[i].spends;
        struct decision decision = decided_of(rows[i].text, rows[i].count);
        check(decision.verdict == rows[i].verdict && decision.retry_count == rows[i].count_after, "row %zu", i);
    }
    struct decide_request request = request_of("whatever", 0);
    request.code = SLICE("http:503");
    assert_int_equal(decided(&request).verdict, VERDICT_HOLD);
}

static void least_waits(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        int64_t asked, throttle_min, after_max, low, high;
    } rows[] = {
        { "the backoff alone", "E_TRANSIENT", -1, 0, HOUR_MS, 1000, 1000 },
        { "asked for nothing", "E_TRANSIENT", 0, 0, HOUR_MS, 1000, 1000 },
        { "asked for less", "E_TRANSIENT", 500, 0, HOUR_MS, 1000, 1000 },
        { "asked for more", "E_TRANSIENT", 60000, 0, HOUR_MS, 60000, 72000 },
        { "asked for too much", "E_TRANSIENT", DAY_MS, 0, HOUR_MS, HOUR_MS, HOUR_MS },
        { "asked for as long as there is", "E_TRANSIENT", INT64_MAX, 0, HOUR_MS, HOUR_MS, HOUR_MS },
        { "too fast", "E_THROTTLED", -1, 30000, HOUR_MS, 30000, 36000 },
        { "too fast, asked for less", "E_THROTTLED", 5000, 30000, HOUR_MS, 30000, 36000 },
        { "too fast, asked for more", "E_THROTTLED", 60000, 30000, HOUR_MS, 60000, 72000 },
        { "too fast, and asking is hardly believed", "E_THROTTLED", 60000, 30000, 10000, 30000, 36000 },
        { "the throttle's least is for throttles", "E_TRANSIENT", -1, 30000, HOUR_MS, 1000, 1000 },
        { "a hold heeds it too", "E_WAIT", 60000, 0, HOUR_MS, 60000, 72000 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        policy.retry = (struct retry_policy){ .retries_max = 5, .base_ms = 1000, .factor = 1, .cap_ms = 1000, .jitter = 0.2,
                                              .floor_ms = 1000, .throttled_spends = true, .throttle_min_ms = rows[i].throttle_min,
                                              .retry_after_max_ms = rows[i].after_max, .delay_factor = { 1, 1, 1 } };
        struct decide_request request = request_of(rows[i].text, 0);
        request.retry_after_ms = rows[i].asked;
        for (request.seed = 0; request.seed < 200; request.seed++) {
            struct decision decision = decided(&request);
            check(decision.delay_ms >= rows[i].low && decision.delay_ms <= rows[i].high, "%s: %lld", rows[i].name, (long long)decision.delay_ms);
        }
    }
}

/* C-02: the guard on the whole time is looked at before a retry is scheduled. */
static void the_time_since_the_first_attempt(void **state)
{
    (void)state;
    struct decide_request request = request_of("E_TRANSIENT", 0);
    struct decision plain = decided(&request);
    const struct { const char *name, *text; instant first_at; int64_t elapsed_max; enum verdict verdict; } rows[] = {
        { "just in time", "E_TRANSIENT", noon - HOUR_MS, HOUR_MS + plain.delay_ms, VERDICT_RETRY },
        { "a millisecond late", "E_TRANSIENT", noon - HOUR_MS, HOUR_MS + plain.delay_ms - 1, VERDICT_EXHAUSTED },
        { "no guard", "E_TRANSIENT", noon - HOUR_MS, 0, VERDICT_RETRY },
        { "the first attempt is not known", "E_TRANSIENT", INSTANT_NONE, 1, VERDICT_RETRY },
        { "the clock stepped back", "E_TRANSIENT", noon + DAY_MS, HOUR_MS, VERDICT_RETRY },
        { "long ago", "E_TRANSIENT", 0, 4 * HOUR_MS, VERDICT_EXHAUSTED },
        { "a guard without end", "E_TRANSIENT", 0, INT64_MAX, VERDICT_RETRY },
        { "holding does not count", "E_WAIT", 0, HOUR_MS, VERDICT_HOLD },
        { "verifying does not count", "E_IN_DOUBT", 0, HOUR_MS, VERDICT_VERIFY },
        { "permanent stays permanent", "E_PERMANENT", 0, HOUR_MS, VERDICT_PERMANENT },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        request = request_of(rows[i].text, 0);
        request.first_at = rows[i].first_at;
        policy.retry.elapsed_max_ms = rows[i].elapsed_max;
        struct decision decision = decided(&request);
        check(decision.verdict == rows[i].verdict, "%s: %s", rows[i].name, verdict_name(decision.verdict));
        check(decision.verdict != VERDICT_EXHAUSTED || (decision.reason == REASON_ELAPSED && decision.retry_count == 0), "%s", rows[i].name);
    }
}

/* C-02: with the longest waits five retries end inside the four hours. */
static void five_retries_fit_into_four_hours(void **state)
{
    (void)state;
    policy.retry.elapsed_max_ms = 4 * HOUR_MS;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct decide_request request = request_of("E_TRANSIENT", 0);
        request.seed = seed;
        request.first_at = noon;
        struct decision decision = decided(&request);
        while (decision.verdict == VERDICT_RETRY) {
            request.now = decision.next_at;
            request.retry_count = decision.retry_count;
            decision = decided(&request);
        }
        check(decision.reason == REASON_RETRIES && request.retry_count == 5, "seed %llu", (unsigned long long)seed);
        int64_t took = request.now - noon;
        check(took >= 125 * MINUTE_MS && took <= 186 * MINUTE_MS, "seed %llu: %lld ms", (unsigned long long)seed, (long long)took);
    }
}

static void deadlines(void **state)
{
    (void)state;
    struct decide_request request = request_of("E_TRANSIENT", 0);
    struct decision plain = decided(&request);
    const struct { const char *name, *text; instant deadline; enum verdict verdict; } rows[] = {
        { "just in time", "E_TRANSIENT", plain.next_at, VERDICT_RETRY },
        { "a millisecond late", "E_TRANSIENT", plain.next_at - 1, VERDICT_EXPIRED },
        { "now", "E_TRANSIENT", noon, VERDICT_EXPIRED },
        { "long ago", "E_TRANSIENT", 0, VERDICT_EXPIRED },
        { "a hold expires too", "E_WAIT", noon + 1, VERDICT_EXPIRED },
        { "what arrived has arrived", "E_DELIVERED", 0, VERDICT_COMPLETE },
        { "what is permanent is permanent", "E_PERMANENT", 0, VERDICT_PERMANENT },
        { "blocked is not the job's fault", "E_BLOCKED", 0, VERDICT_BLOCK },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        request = request_of(rows[i].text, 0);
        request.deadline = rows[i].deadline;
        struct decision decision = decided(&request);
        check(decision.verdict == rows[i].verdict, "%s: %s", rows[i].name, verdict_name(decision.verdict));
        check(decision.verdict != VERDICT_EXPIRED || (decision.reason == REASON_DEADLINE && decision.retry_count == 0), "%s", rows[i].name);
    }
    request = request_of("E_TRANSIENT", 0); /* both pass: the retries are looked at first */
    request.deadline = 0;
    request.first_at = 0;
    policy.retry.elapsed_max_ms = 1;
    assert_int_equal(decided(&request).reason, REASON_ELAPSED);
    request.retry_count = 5;
    assert_int_equal(decided(&request).reason, REASON_RETRIES);
}

/* at any time there is, the next time is later; where there is no later time, there is no next. */
static void the_next_time_is_in_the_future(void **state)
{
    (void)state;
    static const instant nows[] = { INSTANT_NONE, INSTANT_MIN, -1, 0, 1736683200000, INSTANT_MAX - DAY_MS, INSTANT_MAX - 1 };
    static const char *const texts[] = { "E_TRANSIENT", "E_THROTTLED", "E_WAIT", "E_ACCEPTED", "E_IN_DOUBT", "E_DUPLICATE" };
    for (size_t t = 0; t < COUNT_OF(texts); t++) {
        for (size_t n = 0; n < COUNT_OF(nows); n++) {
            struct decide_request request = request_of(texts[t], 0);
            request.now = nows[n];
            check(verdict_goes_on(decided(&request).verdict), "%s at %lld", texts[t], (long long)nows[n]); /* decided() looks at the time */
        }
        struct decide_request request = request_of(texts[t], 0);
        request.now = INSTANT_MAX;
        check(decided(&request).verdict == VERDICT_EXPIRED, "%s at the end of the calendar", texts[t]);
        request.now = INT64_MAX;
        check(decided(&request).verdict == VERDICT_EXPIRED, "%s beyond it", texts[t]);
    }
    policy.retry = (struct retry_policy){ .retries_max = 5, .delay_factor = { 1, 1, 1 } }; /* no wait at all */
    assert_int_equal(decided_of("E_TRANSIENT", 0).delay_ms, 1);
}

static bool same_decision(const struct decision *a, const struct decision *b)
{
    return a->verdict == b->verdict && a->outcome == b->outcome && a->known == b->known && slice_equal(a->rule, b->rule) &&
           a->reason == b->reason && a->retry_count == b->retry_count && a->delay_ms == b->delay_ms && a->next_at == b->next_at;
}

/* S1-086, S1-115, C-26: the same question has the same answer; the clock moves the time, not the wait. */
static void the_analysis_is_idempotent(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        for (int64_t count = 0; count <= 6; count++) {
            struct decide_request request = request_of("", count);
            request.text = rules[i].token;
            struct decision first = decided(&request);
            struct decision again = decided(&request);
            check(same_decision(&first, &again), "rule %zu, count %lld", i, (long long)count);
            request.now -= HOUR_MS;
            struct decision earlier = decided(&request);
            check(earlier.delay_ms == first.delay_ms && earlier.verdict == first.verdict, "rule %zu", i);
        }
    struct decide_request request = request_of("E_TRANSIENT", 3);
    int64_t delay = decided(&request).delay_ms;
    request.seed++;
    assert_true(decided(&request).delay_ms != delay);
}

static void deciding_allocates_nothing(void **state)
{
    (void)state;
    scarce_calls = 0;
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        struct decide_request request = request_of("", 1);
        request.text = rules[i].token;
        decided(&request);
    }
    assert_int_equal(scarce_calls, 0);
}

static void verdicts_have_names(void **state)
{
    (void)state;
    static const struct { enum verdict verdict; const char *name; bool goes_on; } rows[VERDICT_COUNT] = {
        { VERDICT_COMPLETE, "complete", false }, { VERDICT_POLL, "poll", true },      { VERDICT_RETRY, "retry", true },
        { VERDICT_HOLD, "hold", true },          { VERDICT_VERIFY, "verify", true },  { VERDICT_BLOCK, "block", false },
        { VERDICT_SPLIT, "split", false },       { VERDICT_PERMANENT, "dead", false }, { VERDICT_EXHAUSTED, "dead", false },
        { VERDICT_EXPIRED, "dead", false },      { VERDICT_PARK, "park", false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_string_equal(verdict_name(rows[i].verdict), rows[i].name);
        assert_int_equal(verdict_goes_on(rows[i].verdict), rows[i].goes_on);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_policy, free_policy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_class_has_its_verdict),
        TEST(the_count_of_retries),
        TEST(bad_requests_are_refused),
        TEST(doubt),
        TEST(an_unconfirmed_answer_is_no_delivery),
        TEST(a_known_outcome_is_not_looked_up),
        TEST(duplicates),
        TEST(polling),
        TEST(throttles_and_waits),
        TEST(least_waits),
        TEST(the_time_since_the_first_attempt),
        TEST(five_retries_fit_into_four_hours),
        TEST(deadlines),
        TEST(the_next_time_is_in_the_future),
        TEST(the_analysis_is_idempotent),
        TEST(deciding_allocates_nothing),
        TEST(verdicts_have_names),
    };
    return cmocka_run_group_tests_name("decide", tests, NULL, NULL);
}
