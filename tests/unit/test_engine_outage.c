/*
 * Whole stories of bad times, through the real engine: an outage of three hours, twice the load that a destination
 * bears, and a receiver that takes five at once (S3-001, S3-002, S3-047, S3-049, S4-044, S4-046, A-22, C-69).
 */
#include "support/check.h"
#include "support/engine_fixture.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    STEP_MS = 100,
    ANSWER_MS = 200,
    OFFERED_A_SECOND = 20, /* while all is well */
    BEFORE_S = 120,
    OUTAGE_S = 3 * 3600,
    AFTER_S = 1200,
    JOBS_IN_OUTAGE = 10000,
    SECONDS_MAX = BEFORE_S + OUTAGE_S + AFTER_S + 1,
};

#define TO(more) "destinations: { d: { preset: http, url: 'https://a.example/'" more " } }\n"

/* A destination that counts. */
struct site {
    struct random random;
    instant down_from, down_until;
    int64_t bears;       /* at once; beyond it refuses; 0: any number */
    bool collapses;      /* beyond it nothing gets done at all, and slowly */
    int64_t others;      /* requests at once of other clients */
    bool has_health;
    int64_t requests, refused, during, looks;
    int64_t peak;        /* most at once, since it was last set to 0 */
    int64_t done[SECONDS_MAX], begun[SECONDS_MAX];
};

static int64_t second_of(instant at)
{
    return (at - began) / SECOND_MS;
}

static int64_t at_once(const struct stage *stage)
{
    int64_t count = 1; /* with the one that begins */
    for (const struct stage_send *send = stage->sends; send; send = send->next)
        count++;
    return count;
}

static bool is_down(const struct site *site, instant now)
{
    return now >= site->down_from && now < site->down_until;
}

static int64_t refuse(struct site *site, struct answer *answer, int64_t takes)
{
    site->refused++;
    answer->code = SLICE("http:503");
    answer->text = SLICE("HTTP 503: too much");
    return takes;
}

static int64_t site_answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct site *site = stage->context;
    int64_t now_at_once = at_once(stage), second = second_of(stage->now);
    (void)send;
    site->requests++;
    if (second < SECONDS_MAX)
        site->begun[second]++;
    if (is_down(site, stage->now)) {
        site->during++;
        return refuse(site, answer, 20);
    }
    site->peak = now_at_once > site->peak ? now_at_once : site->peak;
    if (site->bears > 0 && now_at_once + site->others > site->bears)
        return refuse(site, answer, site->collapses ? 10 * ANSWER_MS : 10);
    answer->outcome = OUTCOME_DELIVERED;
    int64_t takes = site->random.state ? ANSWER_MS / 2 + (int64_t)random_below(&site->random, ANSWER_MS) : ANSWER_MS;
    if (second_of(stage->now + takes) < SECONDS_MAX)
        site->done[second_of(stage->now + takes)]++;
    return takes;
}

static int64_t site_health(struct stage *stage, const struct probe *probe, struct health_answer *answer)
{
    struct site *site = stage->context;
    bool up = !is_down(site, stage->now);
    (void)probe;
    site->looks++;
    *answer = (struct health_answer){ .connected = up, .status = up ? 200 : 0, .body = up ? SLICE("{\"status\":\"UP\"}") : SLICE("") };
    return 5;
}

/* `jobs` of two tenants, evenly until then. */
static void offer(struct stage *stage, instant until, int64_t jobs)
{
    instant from = stage->now;
    int64_t steps = (until - from) / STEP_MS;
    for (int64_t step = 0; step < steps; step++) {
        for (int64_t i = jobs * step / steps; i < jobs * (step + 1) / steps; i++)
            stage_add(stage, "d", i % 2 == 0 ? "A" : "B", NULL, "x");
        stage_run_until(stage, from + (step + 1) * STEP_MS);
    }
}

static int64_t sum(const int64_t *counts, int64_t from, int64_t until)
{
    int64_t total = 0;
    for (int64_t i = from; i < until; i++)
        total += counts[i];
    return total;
}

/* Invariants 4 and 8, and that the way back is quick. */
static void an_outage_of_three_hours(void **state)
{
    (void)state;
    static const struct {
        const char *name, *yaml;
        bool has_health;
        int64_t noticed_ms_max; /* until then requests are sent as usual */
        int64_t probes_max;
    } cases[] = {
        { "a health check", TO(", retry: { base: 10s, floor: 1s, cap: 1m, max_retries: 3 }, concurrency: 25"
          ", health: { url: 'https://a.example/health', every: 30s, timeout: 5s, failures: 3, expect: { status: UP } }"
          ", contingency: { ramp: [5, 10, 25], stable: 15m, check: 5m }"), true, 90 * SECOND_MS, 0 },
        { "a breaker, and a job a minute", TO(", retry: { base: 30s, floor: 1s, cap: 10m, max_retries: 9 }, concurrency: 25"
          ", breaker: { window: 60s, min_calls: 20, failure_rate: 0.5, open: 30s, open_max: 5m, probes: 5 }"
          ", contingency: { ramp: [5, 10, 25], stable: 15m, check: 60s }"), false, 90 * SECOND_MS, OUTAGE_S / 60 },
        { "one sign", TO(", retry: { base: 30s, floor: 1s, cap: 10m, max_retries: 0 }, concurrency: 25"
          ", contingency: { ramp: [5, 10, 25], stable: 15m, check: 60s, activate_on_single_event: true }"), false, 30 * SECOND_MS, OUTAGE_S / 60 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static struct site site;
        const char *name = cases[i].name;
        instant down = began + BEFORE_S * SECOND_MS, up = down + OUTAGE_S * SECOND_MS;
        site = (struct site){ .down_from = down, .down_until = up };
        struct stage stage = { .destination = site_answers, .health = cases[i].has_health ? site_health : NULL, .context = &site };
        stage_begin(&stage, cases[i].yaml, began);
        offer(&stage, down, BEFORE_S * OFFERED_A_SECOND);
        offer(&stage, down + cases[i].noticed_ms_max, JOBS_IN_OUTAGE * cases[i].noticed_ms_max / (OUTAGE_S * SECOND_MS));
        check(strcmp(status_of(&stage).mode, "contingency") == 0, "%s: not noticed, but %s", name, status_of(&stage).mode);
        int64_t noticed = site.during, left = JOBS_IN_OUTAGE - JOBS_IN_OUTAGE * cases[i].noticed_ms_max / (OUTAGE_S * SECOND_MS);
        offer(&stage, up, left);
        check(site.during - noticed <= cases[i].probes_max, "%s: %" PRId64 " requests during it", name, site.during - noticed);
        check(stage_counts(&stage, "d").dead == 0, "%s: some are exhausted", name);
        offer(&stage, up + AFTER_S * SECOND_MS, AFTER_S * OFFERED_A_SECOND);
        check(site.peak <= 25, "%s: %" PRId64 " at once", name, site.peak);
        int64_t goodput = sum(site.done, BEFORE_S + OUTAGE_S + 110, BEFORE_S + OUTAGE_S + 120);
        check(goodput * 100 >= 95 * 10 * OFFERED_A_SECOND, "%s: %" PRId64 " in ten seconds, two minutes after it is back", name, goodput);
        stage_run_for(&stage, 30 * MINUTE_MS);
        struct lane_counts counts = stage_counts(&stage, "d");
        int64_t all = (BEFORE_S + AFTER_S) * OFFERED_A_SECOND + JOBS_IN_OUTAGE;
        check(counts.completed == all && counts.dead == 0, "%s: %" PRId64 " of %" PRId64 " done", name, counts.completed, all);
        check(strcmp(status_of(&stage).mode, "normal") == 0, "%s: %s in the end", name, status_of(&stage).mode);
        stage_end(&stage);
    }
}

/* On the way back a second sees at most its step. */
static void the_first_seconds_after_it(void **state)
{
    (void)state;
    static struct site site;
    instant up = began + 3600 * SECOND_MS;
    site = (struct site){ .down_from = began + MINUTE_MS, .down_until = up };
    struct stage stage = { .destination = site_answers, .health = site_health, .context = &site };
    stage_begin(&stage, TO(", concurrency: 25, health: { url: 'https://a.example/health', every: 10s, timeout: 5s, failures: 1, "
                           "expect: { status: UP } }, contingency: { ramp: [5, 10, 25], stable: 15m, check: 5m }"), began);
    stage_run_until(&stage, began + 2 * MINUTE_MS);
    for (int i = 0; i < 1000; i++)
        stage_add(&stage, "d", "A", NULL, "x");
    stage_run_until(&stage, up + MINUTE_MS);
    int64_t first = second_of(up);
    while (site.begun[first] == 0)
        first++;
    check(first <= second_of(up) + 10, "noticed after %" PRId64 " s", first - second_of(up));
    check(sum(site.begun, first, first + 2) <= 5 + 10, "%" PRId64 " in two seconds", sum(site.begun, first, first + 2));
    check(sum(site.begun, first, first + 3) <= 5 + 10 + 25, "%" PRId64 " in three", sum(site.begun, first, first + 3));
    check(site.begun[first] <= 5 && site.peak <= 25, "%" PRId64 " first, %" PRId64 " at once", site.begun[first], site.peak);
    assert_int_equal(site.during, 0);
    assert_int_equal(stage_counts(&stage, "d").completed, 1000);
    stage_end(&stage);
}

/*
 * It does not stay broken down by the tries of those that it could not serve: as soon as the load of others is gone it
 * works at its capacity and is not asked for more. Where nobody told how much it bears, a little more is tried now and then.
 */
static void twice_what_it_bears(void **state)
{
    (void)state;
    enum { BEARS = 10, OVERLOAD_S = 300, WATCHED_S = 600 };
    static const struct { const char *name; bool collapses; int concurrency; int64_t before; } cases[] = {
        { "told how much", true, BEARS, 30 },
        { "found by trying", false, 64, 120 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static struct site site;
        const char *name = cases[i].name;
        char yaml[320];
        int64_t capacity = BEARS * SECOND_MS / ANSWER_MS; /* a second */
        int64_t jobs = cases[i].before * capacity + (OVERLOAD_S + 120 + WATCHED_S) * capacity;
        site = (struct site){ .bears = BEARS, .collapses = cases[i].collapses };
        struct stage stage = { .destination = site_answers, .context = &site };
        snprintf(yaml, sizeof yaml, TO(", retry: { base: 5s, floor: 1s, cap: 1m, max_retries: 20 }, concurrency: %d"
                 ", breaker: { min_calls: 20 }, contingency: { ramp: [2, 5, 10], stable: 2m, check: 30s }"), cases[i].concurrency);
        stage_begin(&stage, yaml, began);
        offer(&stage, began + MINUTE_MS, cases[i].before * capacity);
        site.others = 2 * BEARS;
        offer(&stage, stage.now + OVERLOAD_S * SECOND_MS, OVERLOAD_S * capacity);
        site.others = 0;
        site.peak = 0;
        int64_t removed = second_of(stage.now), refused, requests;
        offer(&stage, stage.now + 2 * MINUTE_MS, 120 * capacity);
        refused = site.refused;
        requests = site.requests;
        offer(&stage, stage.now + WATCHED_S * SECOND_MS, WATCHED_S * capacity);
        int64_t goodput = sum(site.done, removed + 110, removed + 120);
        check(goodput * 100 >= 95 * 10 * capacity, "%s: %" PRId64 " of %" PRId64 " in ten seconds", name, goodput, 10 * capacity);
        bool reported = cases[i].concurrency == BEARS;
        check(site.peak <= (reported ? BEARS : 2 * BEARS), "%s: %" PRId64 " at once", name, site.peak);
        check(site.refused - refused <= (reported ? 0 : (site.requests - requests) / 100), "%s: %" PRId64 " of %" PRId64 " refused", name,
              site.refused - refused, site.requests - requests);
        stage_run_for(&stage, 6 * (int64_t)HOUR_MS);
        check(stage_counts(&stage, "d").dead == 0 && stage_counts(&stage, "d").completed == jobs, "%s: %" PRId64 " of %" PRId64,
              name, stage_counts(&stage, "d").completed, jobs);
        stage_end(&stage);
    }
}

/* Postfix publishes 16.5% for a receiver of five, its feedback at its best. */
static void a_receiver_of_five(void **state)
{
    (void)state;
    static const struct { uint64_t seed; int concurrency; } cases[] = { { 1, 20 }, { 2, 20 }, { 3, 10 }, { 4, 50 }, { 0, 20 } };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static struct site site;
        char yaml[256];
        enum { JOBS = 30000 };
        site = (struct site){ .bears = 5, .random.state = cases[i].seed };
        struct stage stage = { .destination = site_answers, .context = &site };
        snprintf(yaml, sizeof yaml, TO(", concurrency: %d, retry: { base: 1s, floor: 1s, cap: 10s, max_retries: 1000 }"), cases[i].concurrency);
        stage_begin(&stage, yaml, began);
        for (int n = 0; n < JOBS; n++)
            stage_add(&stage, "d", n % 2 == 0 ? "A" : "B", NULL, "x");
        stage_run_for(&stage, 2 * (int64_t)HOUR_MS);
        print_message("  seed %d, concurrency %d: %.1f%% of %" PRId64 " deferred\n", (int)cases[i].seed, cases[i].concurrency,
                      100.0 * (double)site.refused / (double)site.requests, site.requests);
        assert_int_equal(stage_counts(&stage, "d").completed, JOBS);
        check(site.refused * 1000 <= site.requests * 165, "row %zu: %" PRId64 " of %" PRId64 " refused", i, site.refused, site.requests);
        stage_end(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outage_of_three_hours),
        cmocka_unit_test(the_first_seconds_after_it),
        cmocka_unit_test(twice_what_it_bears),
        cmocka_unit_test(a_receiver_of_five),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
