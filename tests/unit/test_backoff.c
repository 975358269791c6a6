#include "core/decision/backoff.h"
#include "support/check.h"
#include "support/policies.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SEED = 12345, BINS = 60 };

/* The limit on chi_square_z: p = 0.0001. Ids are fixed, so the outcome is the same in every run. */
#define Z_MAX 3.72

static struct slice id_of(size_t i, char id[32])
{
    return (struct slice){ id, (size_t)snprintf(id, 32, "CLM-2025-%zu", i) };
}

static struct slice next_id(char *id, size_t *len)
{
    size_t i = *len;
    while (i > 9 && id[i - 1] == '9')
        id[--i] = '0';
    if (i > 9)
        id[i - 1]++;
    return (struct slice){ id, *len };
}

struct spread {
    int64_t low, high; /* seen */
    size_t at_low, at_high; /* draws exactly at the ends of the range */
    double z;
};

static struct spread draw_many(const struct retry_policy *policy, int64_t retry, size_t draws)
{
    char id[] = "CLM-2025-00000000";
    size_t len = sizeof id - 1;
    size_t counts[BINS] = { 0 };
    struct backoff_range range = backoff_range(policy, retry, PRIORITY_NORMAL);
    struct spread spread = { .low = INT64_MAX, .high = INT64_MIN };
    for (size_t i = 0; i < draws; i++) {
        int64_t wait = backoff_ms(policy, SEED, next_id(id, &len), retry, PRIORITY_NORMAL);
        spread.low = wait < spread.low ? wait : spread.low;
        spread.high = wait > spread.high ? wait : spread.high;
        spread.at_low += wait == range.low_ms;
        spread.at_high += wait == range.high_ms;
        int64_t bin = (wait - range.low_ms) * BINS / (range.high_ms - range.low_ms + 1);
        check(bin >= 0 && bin < BINS, "retry %lld: a wait of %lld ms", (long long)retry, (long long)wait);
        counts[bin]++;
    }
    spread.z = chi_square_z(counts, BINS);
    return spread;
}

/* S0-066, C-12, C-76: the middles, and what the spread may be. */
static void the_documents_sequences(void **state)
{
    (void)state;
    const struct { const char *name; const struct retry_policy *policy; int64_t retry, nominal, low, high, unit; } rows[] = {
        { "A-03 n=0", &tiss_retry, 1, 5, 5, 6, MINUTE_MS },
        { "S0-066 n=1", &tiss_retry, 2, 10, 8, 12, MINUTE_MS },
        { "S0-067 n=2", &tiss_retry, 3, 20, 16, 24, MINUTE_MS },
        { "S0-066 n=3", &tiss_retry, 4, 40, 32, 48, MINUTE_MS },
        { "S0-066 n=4", &tiss_retry, 5, 80, 64, 96, MINUTE_MS },
        { "C-12 n=5", &tiss_retry, 6, 160, 128, 192, MINUTE_MS },
        { "C-12 n=6", &tiss_retry, 7, 240, 192, 240, MINUTE_MS },
        { "C-12 n=62", &tiss_retry, 63, 240, 192, 240, MINUTE_MS },
        { "C-12 n=63", &tiss_retry, 64, 240, 192, 240, MINUTE_MS },
        { "C-12 n=64", &tiss_retry, 65, 240, 192, 240, MINUTE_MS },
        { "C-12 n=1000", &tiss_retry, 1001, 240, 192, 240, MINUTE_MS },
        { "C-12 the end", &tiss_retry, INT64_MAX, 240, 192, 240, MINUTE_MS },
        { "A-12 attempt 1", &email_retry, 1, 1000, 750, 1250, 1 },
        { "A-12 attempt 2", &email_retry, 2, 2000, 1500, 2500, 1 },
        { "A-12 attempt 3", &email_retry, 3, 4000, 3000, 5000, 1 },
        { "A-12 attempt 4", &email_retry, 4, 8000, 6000, 10000, 1 },
        { "A-12 attempt 5", &email_retry, 5, 16000, 12000, 20000, 1 },
        { "C-34 attempt 6", &email_retry, 6, 32000, 24000, 40000, 1 },
        { "C-35 attempt 7", &email_retry, 7, 60000, 45000, 75000, 1 },
        { "C-53 retry 1", &sifen_retry, 1, 30000, 27000, 33000, 1 },
        { "C-53 retry 3", &sifen_retry, 3, 270000, 243000, 297000, 1 },
        { "C-53 retry 4", &sifen_retry, 4, 810000, 729000, 891000, 1 },
        { "C-53 retry 6", &sifen_retry, 6, 3600000, 3240000, 3600000, 1 },
        { "D provisioning 5", &provisioning_retry, 5, 480000, 384000, 576000, 1 },
        { "D provisioning 9", &provisioning_retry, 9, 600000, 480000, 600000, 1 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t nominal = backoff_nominal_ms(rows[i].policy, rows[i].retry, PRIORITY_NORMAL);
        struct backoff_range range = backoff_range(rows[i].policy, rows[i].retry, PRIORITY_NORMAL);
        check(nominal == rows[i].nominal * rows[i].unit, "%s: %lld", rows[i].name, (long long)nominal);
        check(range.low_ms == rows[i].low * rows[i].unit, "%s: from %lld", rows[i].name, (long long)range.low_ms);
        check(range.high_ms == rows[i].high * rows[i].unit, "%s: to %lld", rows[i].name, (long long)range.high_ms);
    }
}

/* C-10, S0-087: a million draws a retry fill the allowed interval evenly and never leave it. */
static void a_million_draws_are_inside_and_even(void **state)
{
    (void)state;
    static const int64_t retries[] = { 1, 3, 5, 7, 71 };
    enum { DRAWS = 1000000 };
    for (size_t i = 0; i < COUNT_OF(retries); i++) {
        int64_t nominal = backoff_nominal_ms(&tiss_retry, retries[i], PRIORITY_NORMAL);
        struct backoff_range range = backoff_range(&tiss_retry, retries[i], PRIORITY_NORMAL);
        struct spread spread = draw_many(&tiss_retry, retries[i], DRAWS);
        long long retry = retries[i];
        check(spread.low >= 5 * MINUTE_MS && spread.high <= 240 * MINUTE_MS, "A-03, retry %lld", retry);
        check(5 * spread.low >= 4 * nominal && 5 * spread.high <= 6 * nominal, "A-04, retry %lld", retry);
        check(spread.z < Z_MAX, "retry %lld is uneven: z = %f", retry, spread.z);
        double expected = (double)DRAWS / (double)(range.high_ms - range.low_ms + 1);
        check((double)spread.at_low < expected * 3 + 10, "C-10, retry %lld: %zu at the low end", retry, spread.at_low);
        check((double)spread.at_high < expected * 3 + 10, "C-10, retry %lld: %zu at the high end", retry, spread.at_high);
        int64_t width = range.high_ms - range.low_ms;
        check(spread.low < range.low_ms + width / 1000 && spread.high > range.high_ms - width / 1000,
              "retry %lld does not reach the ends", retry);
    }
}

static void every_count_to_seventy_is_inside(void **state)
{
    (void)state;
    for (int64_t n = 0; n <= 70; n++) {
        struct spread spread = draw_many(&tiss_retry, n + 1, 10000);
        check(spread.low >= 5 * MINUTE_MS && spread.high <= 240 * MINUTE_MS, "A-03, n = %lld", (long long)n);
        check(spread.z < Z_MAX, "n = %lld is uneven: z = %f", (long long)n, spread.z);
    }
}

static size_t count_equal(const struct retry_policy *policy, int64_t retry, int64_t value, size_t draws)
{
    char id[32];
    size_t count = 0;
    for (size_t i = 0; i < draws; i++)
        count += backoff_ms(policy, SEED, id_of(i, id), retry, PRIORITY_NORMAL) == value;
    return count;
}

/* C-10: the literal formula puts half of the first waits on exactly five minutes, and so `saturate` does. */
static void saturate_piles_up_at_the_bounds(void **state)
{
    (void)state;
    struct retry_policy policy = tiss_retry;
    policy.clamp = CLAMP_SATURATE;
    size_t floor = count_equal(&policy, 1, 5 * MINUTE_MS, 10000);
    size_t cap = count_equal(&policy, 7, 240 * MINUTE_MS, 10000);
    check(floor > 4700 && floor < 5300, "%zu at the floor", floor);
    check(cap > 4700 && cap < 5300, "%zu at the cap", cap);
    struct backoff_range range = backoff_range(&policy, 7, PRIORITY_NORMAL);
    assert_int_equal(range.high_ms, 288 * MINUTE_MS); /* C-09: what is cut off */
    assert_true(count_equal(&tiss_retry, 1, 5 * MINUTE_MS, 10000) < 10);
}

/* C-35, S2-022: with `before` the spread goes beyond the cap on purpose. */
static void before_lets_the_spread_exceed_the_cap(void **state)
{
    (void)state;
    struct spread spread = draw_many(&email_retry, 7, 100000);
    assert_true(spread.high > 74000 && spread.high <= 75000);
    assert_true(spread.low < 46000 && spread.low >= 45000);
    assert_true(spread.z < Z_MAX);
}

/* S0-003: no second gets more than three times its share when a hundred thousand fail at once. */
static void a_hundred_thousand_failures_spread(void **state)
{
    (void)state;
    enum { JOBS = 100000 };
    for (int64_t retry = 1; retry <= 7; retry++) {
        struct backoff_range range = backoff_range(&tiss_retry, retry, PRIORITY_NORMAL);
        size_t seconds = (size_t)((range.high_ms - range.low_ms) / SECOND_MS + 1);
        size_t *counts = calloc(seconds, sizeof *counts);
        assert_non_null(counts);
        char id[32];
        size_t fullest = 0;
        for (size_t i = 0; i < JOBS; i++) {
            int64_t wait = backoff_ms(&tiss_retry, SEED, id_of(i, id), retry, PRIORITY_NORMAL);
            size_t *second = &counts[(wait - range.low_ms) / SECOND_MS];
            fullest = ++*second > fullest ? *second : fullest;
        }
        check(fullest * seconds <= 3 * (size_t)JOBS, "retry %lld: %zu in one of %zu seconds", (long long)retry, fullest, seconds);
        free(counts);
    }
}

/* Any policy that may be made by hand, any retry, any priority: bounded, ordered, and no overflow. */
static void it_is_total(void **state)
{
    (void)state;
    static const double factors[] = { 0, 0.5, 1, 1.5, 2, 3, 1e300 };
    static const int64_t bases[] = { 0, 1, 5 * MINUTE_MS, INT64_MAX };
    static const struct { int64_t floor, cap; } bounds[] = { { 0, 0 }, { 1, 1 }, { 1000, 60000 }, { 0, INT64_MAX }, { INT64_MAX, INT64_MAX } };
    static const double jitters[] = { 0, 0.2, 1 };
    static const int64_t retries[] = { 1, 2, 5, 6, 62, 63, 64, 1000, INT64_MAX - 1, INT64_MAX };
    for (size_t f = 0; f < COUNT_OF(factors); f++)
    for (size_t b = 0; b < COUNT_OF(bases); b++)
    for (size_t l = 0; l < COUNT_OF(bounds); l++)
    for (size_t j = 0; j < COUNT_OF(jitters); j++)
    for (int clamp = CLAMP_AFTER; clamp <= CLAMP_SATURATE; clamp++) {
        struct retry_policy policy = { .base_ms = bases[b], .factor = factors[f], .floor_ms = bounds[l].floor,
                                       .cap_ms = bounds[l].cap, .jitter = jitters[j], .clamp = (enum clamp)clamp,
                                       .delay_factor = { 0, 1, 1e300 } };
        for (size_t r = 0; r < COUNT_OF(retries); r++)
        for (int p = 0; p < PRIORITY_COUNT; p++) {
            enum priority priority = (enum priority)p;
            int64_t nominal = backoff_nominal_ms(&policy, retries[r], priority);
            struct backoff_range range = backoff_range(&policy, retries[r], priority);
            int64_t wait = backoff_ms(&policy, SEED, SLICE("id"), retries[r], priority);
            check(nominal >= policy.floor_ms && nominal <= policy.cap_ms, "factor %g, base %lld, retry %lld", factors[f],
                  (long long)bases[b], (long long)retries[r]);
            check(range.low_ms <= nominal && nominal <= range.high_ms, "factor %g", factors[f]);
            check(wait >= 1, "factor %g", factors[f]);
            check(wait == 1 || (wait >= range.low_ms && wait <= range.high_ms) || clamp == CLAMP_SATURATE, "factor %g", factors[f]);
            check(clamp == CLAMP_BEFORE || wait == 1 || (wait >= policy.floor_ms && wait <= policy.cap_ms), "factor %g", factors[f]);
            if (bases[b] == 0 || priority == PRIORITY_CRITICAL)
                check(nominal == policy.floor_ms, "nothing times factor %g, retry %lld", factors[f], (long long)retries[r]);
        }
    }
}

static void factors_grow_as_they_say(void **state)
{
    (void)state;
    static const struct { double factor; int64_t retry, nominal; } rows[] = {
        { 1, 1, 1000 },     { 1, INT64_MAX, 1000 }, { 1.5, 2, 1500 },       { 1.5, 3, 2250 },  { 3, 4, 27000 },
        { 0.5, 2, 500 },    { 0.5, 11, 1 },         { 0.5, 12, 0 },         { 0, 1, 1000 },    { 0, 2, 0 },
        { 1e300, 1, 1000 }, { 1e300, 2, DAY_MS },   { 1e300, 1000, DAY_MS },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct retry_policy policy = { .base_ms = 1000, .factor = rows[i].factor, .cap_ms = DAY_MS, .delay_factor = { 1, 1, 1 } };
        int64_t nominal = backoff_nominal_ms(&policy, rows[i].retry, PRIORITY_NORMAL);
        check(nominal == rows[i].nominal, "factor %g, retry %lld: %lld", rows[i].factor, (long long)rows[i].retry, (long long)nominal);
    }
}

static void priorities_stretch_the_wait_inside_the_bounds(void **state)
{
    (void)state;
    struct retry_policy policy = tiss_retry;
    policy.delay_factor[PRIORITY_CRITICAL] = 0.5;
    policy.delay_factor[PRIORITY_NORMAL] = 2;
    assert_int_equal(backoff_nominal_ms(&policy, 3, PRIORITY_CRITICAL), 10 * MINUTE_MS);
    assert_int_equal(backoff_nominal_ms(&policy, 3, PRIORITY_HIGH), 20 * MINUTE_MS);
    assert_int_equal(backoff_nominal_ms(&policy, 3, PRIORITY_NORMAL), 40 * MINUTE_MS);
    assert_int_equal(backoff_nominal_ms(&policy, 1, PRIORITY_CRITICAL), 5 * MINUTE_MS);   /* */
    assert_int_equal(backoff_nominal_ms(&policy, 7, PRIORITY_NORMAL), 240 * MINUTE_MS);
}

/* A Retry-After is the least wait; all spread goes upwards, and none of it beyond the policy's bound. */
static void what_a_destination_asks(void **state)
{
    (void)state;
    const struct { int64_t asked, low, high; } rows[] = {
        { 0, 1, 1 },
        { 1, 1, 1 },
        { 60000, 60000, 72000 },
        { 3000000, 3000000, 3600000 },
        { 3500000, 3500000, 3600000 },
        { HOUR_MS, HOUR_MS, HOUR_MS },
        { DAY_MS, HOUR_MS, HOUR_MS },
        { INT64_MAX, HOUR_MS, HOUR_MS },
    };
    struct retry_policy policy = tiss_retry;
    policy.retry_after_max_ms = HOUR_MS;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char id[32];
        int64_t low = INT64_MAX, high = 0;
        for (size_t n = 0; n < 20000; n++) {
            int64_t wait = backoff_after_ms(&policy, SEED, id_of(n, id), 1, rows[i].asked);
            check(wait >= rows[i].low && wait <= rows[i].high, "asked %lld: %lld", (long long)rows[i].asked, (long long)wait);
            low = wait < low ? wait : low;
            high = wait > high ? wait : high;
        }
        int64_t width = rows[i].high - rows[i].low;
        check(low <= rows[i].low + width / 100 && high >= rows[i].high - width / 100, "asked %lld: not spread", (long long)rows[i].asked);
    }
    policy.retry_after_max_ms = INT64_MAX;
    assert_true(backoff_after_ms(&policy, SEED, SLICE("id"), 1, INT64_MAX) == INT64_MAX);
    policy.retry_after_max_ms = 0;
    assert_int_equal(backoff_after_ms(&policy, SEED, SLICE("id"), 1, HOUR_MS), 1);
}

static void a_least_wait_spreads_upwards(void **state)
{
    (void)state;
    char id[32];
    for (size_t n = 0; n < 1000; n++) {
        int64_t wait = backoff_least_ms(&tiss_retry, SEED, id_of(n, id), 1, 10000);
        check(wait >= 10000 && wait <= 12000, "%lld", (long long)wait);
    }
    assert_int_equal(backoff_least_ms(&tiss_retry, SEED, SLICE("id"), 1, 0), 1);
    assert_true(backoff_least_ms(&tiss_retry, SEED, SLICE("id"), 1, INT64_MAX) == INT64_MAX);
}

/* C-26, S1-086: the same question has the same answer; another seed, job or retry another one. */
static void equal_inputs_give_equal_waits(void **state)
{
    (void)state;
    size_t same_seed = 0, same_id = 0;
    for (size_t i = 0; i < 1000; i++) {
        char id[32], other[32];
        struct slice job = id_of(i, id);
        int64_t wait = backoff_ms(&tiss_retry, SEED, job, 4, PRIORITY_NORMAL);
        check(backoff_ms(&tiss_retry, SEED, job, 4, PRIORITY_NORMAL) == wait, "job %zu", i);
        same_seed += backoff_ms(&tiss_retry, SEED + 1, job, 4, PRIORITY_NORMAL) == wait;
        same_id += backoff_ms(&tiss_retry, SEED, id_of(i + 1, other), 4, PRIORITY_NORMAL) == wait;
    }
    assert_true(same_seed < 5 && same_id < 5);
    assert_int_equal(backoff_ms(&tiss_retry, 1, SLICE("CLM-2025-001"), 3, PRIORITY_NORMAL),
                     backoff_ms(&tiss_retry, 1, SLICE("CLM-2025-001"), 3, PRIORITY_CRITICAL)); /* equal factors */
}

/* S2-114: a wait is drawn in under a millisecond. */
static void draws_are_quick(void **state)
{
    (void)state;
    enum { DRAWS = 10000 };
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    draw_many(&email_retry, 5, DRAWS);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    double seconds = (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
    check(seconds / DRAWS < 0.001, "%f s a wait", seconds / DRAWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documents_sequences),
        cmocka_unit_test(a_million_draws_are_inside_and_even),
        cmocka_unit_test(every_count_to_seventy_is_inside),
        cmocka_unit_test(saturate_piles_up_at_the_bounds),
        cmocka_unit_test(before_lets_the_spread_exceed_the_cap),
        cmocka_unit_test(a_hundred_thousand_failures_spread),
        cmocka_unit_test(it_is_total),
        cmocka_unit_test(factors_grow_as_they_say),
        cmocka_unit_test(priorities_stretch_the_wait_inside_the_bounds),
        cmocka_unit_test(what_a_destination_asks),
        cmocka_unit_test(a_least_wait_spreads_upwards),
        cmocka_unit_test(equal_inputs_give_equal_waits),
        cmocka_unit_test(draws_are_quick),
    };
    return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
