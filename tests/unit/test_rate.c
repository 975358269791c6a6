#include "core/fairness/rate.h"
#include "support/check.h"

static const instant start = INT64_C(1736678400000);

/* The same limit as a bucket: each millisecond adds `count` drops, a job costs per_ms of them. */
struct bucket {
    int64_t count, per_ms, size, drops;
};

static int64_t bucket_room(const struct bucket *bucket)
{
    return bucket->drops / bucket->per_ms;
}

static void bucket_wait(struct bucket *bucket, int64_t ms)
{
    int64_t drops = bucket->drops + ms * bucket->count;
    bucket->drops = drops < bucket->size ? drops : bucket->size;
}

/* Whether `ms` is the first millisecond at which `count` may go together. */
static bool bucket_first_at(struct bucket bucket, int64_t count, int64_t ms)
{
    struct bucket before = bucket;
    bucket_wait(&bucket, ms);
    bucket_wait(&before, ms - 1);
    return bucket_room(&bucket) >= count && (ms == 0 || bucket_room(&before) < count);
}

static const struct {
    const char *name;
    struct rate rate;
    int64_t given, burst;
} limits[] = {
    { "100/m, a minute's worth", { 100, MINUTE_MS }, 0, 100 },
    { "100/m, evenly", { 100, MINUTE_MS }, 1, 1 },
    { "7/s, fractions of a millisecond", { 7, SECOND_MS }, 3, 3 },
    { "20/s", { 20, SECOND_MS }, 0, 20 },
    { "5000/s, several a millisecond", { 5000, SECOND_MS }, 50, 50 },
    { "50/h of a taxpayer", { 50, HOUR_MS }, 5, 5 },
    { "1/d", { 1, DAY_MS }, 0, 1 },
    { "1/d, and ten at once after a pause", { 1, DAY_MS }, 10, 10 },
    { "10/s, and many at once", { 10, SECOND_MS }, 1000, 1000 },
    { "144001/d", { 144001, DAY_MS }, 7, 7 },
};

static void it_is_a_bucket_of_tokens(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT_OF(limits); row++) {
        struct random random = { row + 1 };
        struct rate_limiter limiter;
        int64_t per_ms = limits[row].rate.per_ms;
        struct bucket bucket = { limits[row].rate.count, per_ms, limits[row].burst * per_ms, limits[row].burst * per_ms };
        rate_init(&limiter, limits[row].rate, limits[row].given, INSTANT_NONE);
        check(limiter.burst == limits[row].burst, "%s", limits[row].name);
        instant now = start;
        size_t pause = (size_t)(2 * per_ms / limits[row].rate.count + 2);
        for (int step = 0; step < 300; step++) {
            int64_t wanted = 1 + (int64_t)random_below(&random, (size_t)limits[row].burst + 2);
            int64_t room = bucket_room(&bucket) < wanted ? bucket_room(&bucket) : wanted;
            int64_t together = wanted < limits[row].burst ? wanted : limits[row].burst;
            struct rate_answer answer = rate_ask(&limiter, now, wanted);
            check(answer.room == room, "%s, step %d: %lld, not %lld", limits[row].name, step, (long long)answer.room, (long long)room);
            check(bucket_first_at(bucket, together, answer.at - now), "%s, step %d", limits[row].name, step);
            if (room > 0) {
                int64_t taken = 1 + (int64_t)random_below(&random, (size_t)room);
                rate_take(&limiter, now, taken);
                bucket.drops -= taken * per_ms;
            }
            int64_t wait = random_below(&random, 4) ? (int64_t)random_below(&random, pause) : answer.at - now;
            bucket_wait(&bucket, wait);
            now += wait;
        }
    }
}

enum { SENT_MAX = 4000 };

/* Sends as much as it may, now and then pausing, and looks at every window between two sends. */
static void no_window_sees_more(void **state)
{
    (void)state;
    static instant sent[SENT_MAX];
    for (size_t row = 0; row < COUNT_OF(limits); row++) {
        struct random random = { row + 100 };
        const struct rate *rate = &limits[row].rate;
        struct rate_limiter limiter;
        rate_init(&limiter, *rate, limits[row].given, INSTANT_NONE);
        size_t count = 0;
        for (instant now = start; count < SENT_MAX - 100;) {
            struct rate_answer answer = rate_ask(&limiter, now, limiter.burst);
            if (answer.room > 0)
                rate_take(&limiter, now, answer.room);
            for (int64_t i = 0; i < answer.room; i++)
                sent[count++] = now;
            now = random_below(&random, 50) ? rate_ask(&limiter, now, 1).at : now + (int64_t)random_below(&random, (size_t)rate->per_ms);
        }
        for (size_t from = 0; from < count; from += 1 + count / 200)
            for (size_t to = from; to < count; to++) {
                int64_t window_ms = sent[to] - sent[from];
                check((int64_t)(to - from + 1) <= limiter.burst + window_ms / rate->per_ms * rate->count +
                                                      window_ms % rate->per_ms * rate->count / rate->per_ms,
                      "%s: %zu in %lld ms", limits[row].name, to - from + 1, (long long)window_ms);
                check(window_ms >= rate->per_ms || (int64_t)(to - from + 1) <= rate->count + limiter.burst, "%s", limits[row].name);
            }
    }
}

static void the_whole_rate_is_used(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT_OF(limits); row++) {
        struct rate_limiter limiter;
        rate_init(&limiter, limits[row].rate, limits[row].given, INSTANT_NONE);
        int64_t sent = 0;
        instant end = start + (limits[row].rate.count < 1000 ? 3 : 1) * limits[row].rate.per_ms;
        for (instant now = start; now <= end; now = rate_ask(&limiter, now, 1).at) {
            rate_take(&limiter, now, 1);
            sent++;
        }
        int64_t expected = limits[row].burst + (limits[row].rate.count < 1000 ? 3 : 1) * limits[row].rate.count;
        check(sent == expected, "%s: %lld, not %lld", limits[row].name, (long long)sent, (long long)expected);
    }
}

static void a_clock_put_back_costs_no_more_than_a_burst(void **state)
{
    (void)state;
    static const int64_t jumps_ms[] = { 1, SECOND_MS, HOUR_MS, 400 * (int64_t)DAY_MS };
    for (size_t row = 0; row < COUNT_OF(limits); row++) {
        for (size_t jump = 0; jump < COUNT_OF(jumps_ms); jump++) {
            struct rate_limiter limiter;
            rate_init(&limiter, limits[row].rate, limits[row].given, INSTANT_NONE);
            rate_take(&limiter, start, limiter.burst);
            instant now = start - jumps_ms[jump];
            assert_int_equal(rate_ask(&limiter, now, 1).room, 0); /* a jump is no way around the limit */
            instant at = rate_ask(&limiter, now, 1).at;
            int64_t burst_ms = rate_drain_ms(limits[row].rate, limiter.burst);
            check(at > now && at <= now + burst_ms, "%s", limits[row].name);
            check(rate_ask(&limiter, at, 1).room == 1 && rate_ask(&limiter, at - 1, 1).room == 0, "%s", limits[row].name);
        }
    }
}

static void one_instant_is_kept_over_a_restart(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT_OF(limits); row++) {
        struct rate_limiter before, after;
        rate_init(&before, limits[row].rate, limits[row].given, INSTANT_NONE);
        assert_true(rate_save(&before) == INSTANT_NONE);
        rate_take(&before, start, before.burst);
        rate_init(&after, limits[row].rate, limits[row].given, rate_save(&before));
        instant at = rate_ask(&before, start, 1).at;
        instant again = rate_ask(&after, start, 1).at;
        check(again >= at && again <= at + 1, "%s", limits[row].name);
    }
}

/* What was paid for by a part of a millisecond is paid for: a restart after each job sends none too early. */
static void restarts_never_allow_more(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT_OF(limits); row++) {
        struct rate_limiter limiter;
        const struct rate *rate = &limits[row].rate;
        instant now = start;
        int64_t sent = 0, jobs = limits[row].burst + 1000;
        rate_init(&limiter, *rate, limits[row].given, INSTANT_NONE);
        for (; sent < jobs; sent++) {
            now = rate_ask(&limiter, now, 1).at;
            rate_take(&limiter, now, 1);
            assert_true(rate_save(&limiter) >= limiter.paid_until + (limiter.paid_part > 0));
            rate_init(&limiter, *rate, limits[row].given, rate_save(&limiter));
        }
        check((now - start) * rate->count >= (sent - limits[row].burst) * rate->per_ms, "%s: %lld in %lld ms",
              limits[row].name, (long long)sent, (long long)(now - start));
    }
}

/* A reload likewise, to the same limit or to another one and back. */
static void reloads_never_allow_more(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT_OF(limits); row++)
        for (int other = 0; other < 2; other++) {
            struct rate_limiter limiter;
            const struct rate *rate = &limits[row].rate;
            instant now = start;
            int64_t sent = 0, jobs = limits[row].burst + 1000;
            rate_init(&limiter, *rate, limits[row].given, INSTANT_NONE);
            for (; sent < jobs; sent++) {
                now = rate_ask(&limiter, now, 1).at;
                rate_take(&limiter, now, 1);
                if (other)
                    rate_configure(&limiter, (struct rate){ 3, SECOND_MS }, 3);
                rate_configure(&limiter, *rate, limits[row].given);
            }
            check((now - start) * rate->count >= (sent - limits[row].burst) * rate->per_ms, "%s: %lld in %lld ms",
                  limits[row].name, (long long)sent, (long long)(now - start));
        }
}

/* Where no burst is configured: as many as go at once, or a second's worth, and never more than the number itself. */
static void the_burst_without_one(void **state)
{
    (void)state;
    static const struct { struct rate rate; int64_t at_once, burst; } cases[] = {
        { { 100, MINUTE_MS }, 5, 5 }, { { 100, SECOND_MS }, 5, 100 }, { { 6000, MINUTE_MS }, 5, 100 },
        { { 3, HOUR_MS }, 10, 3 },    { { 0, 0 }, 10, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check(rate_burst(cases[i].rate, cases[i].at_once) == cases[i].burst, "row %zu", i);
}

static void another_rate_counts_what_was_sent(void **state)
{
    (void)state;
    struct rate_limiter limiter;
    rate_init(&limiter, (struct rate){ 60, MINUTE_MS }, 0, INSTANT_NONE);
    rate_take(&limiter, start, 30); /* paid for 30 s */
    rate_configure(&limiter, (struct rate){ 2, MINUTE_MS }, 0);
    assert_int_equal(rate_ask(&limiter, start, 2).room, 1);
    assert_int_equal(rate_ask(&limiter, start, 2).at, start + 30 * SECOND_MS);
    rate_configure(&limiter, (struct rate){ 0, 0 }, 0);
    assert_int_equal(rate_ask(&limiter, start, 1000).room, 1000);
}

/* C-66: a rate that is not configured limits nothing. */
static void without_a_rate_all_may_go(void **state)
{
    (void)state;
    static const struct rate none[] = { { 0, 0 }, { RATE_COUNT_MAX + 1, SECOND_MS }, { INT64_MAX, DAY_MS } };
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        struct rate_limiter limiter;
        rate_init(&limiter, none[i], 1, INSTANT_NONE);
        rate_take(&limiter, start, INT64_MAX);
        struct rate_answer answer = rate_ask(&limiter, start, INT64_MAX);
        check(answer.room == INT64_MAX && answer.at == start, "row %zu", i);
        check(rate_drain_ms(none[i], INT64_MAX) == 0, "row %zu", i);
    }
}

static void the_largest_rate_does_not_overflow(void **state)
{
    (void)state;
    struct rate_limiter limiter;
    rate_init(&limiter, (struct rate){ RATE_COUNT_MAX, DAY_MS }, 0, INSTANT_NONE);
    rate_take(&limiter, start, RATE_COUNT_MAX);
    assert_int_equal(rate_ask(&limiter, start, RATE_COUNT_MAX).at, start + DAY_MS);
    assert_int_equal(rate_ask(&limiter, start + 1, INT64_MAX).room, RATE_COUNT_MAX / DAY_MS);
}

/* C-46: 100/m clears 144,000 a day, so a queue of 250,000 outlives a time to live of 24 hours. */
static void draining_takes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct rate rate;
        int64_t backlog, drain_ms;
    } cases[] = {
        { "nothing", { 100, MINUTE_MS }, 0, 0 },
        { "a day's worth", { 100, MINUTE_MS }, 144000, DAY_MS },
        { "a full queue", { 100, MINUTE_MS }, 250000, 150000000 },
        { "rounded up", { 7, SECOND_MS }, 1, 143 },
        { "two of seven", { 7, SECOND_MS }, 2, 286 },
        { "a part of an interval", { 50, HOUR_MS }, 75, 5400000 },
        { "the end of the scale", { 1, DAY_MS }, INT64_MAX, INT64_MAX },
        { "the end of the scale with a rest", { 2, 4 }, INT64_MAX / 2, INT64_MAX - 1 },
        { "just beyond it", { 2, 4 }, INT64_MAX / 2 + 1, INT64_MAX },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check(rate_drain_ms(cases[i].rate, cases[i].backlog) == cases[i].drain_ms, "%s: %lld", cases[i].name,
              (long long)rate_drain_ms(cases[i].rate, cases[i].backlog));
    assert_true(rate_drain_ms((struct rate){ 100, MINUTE_MS }, 250000) > DAY_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_a_bucket_of_tokens),
        cmocka_unit_test(no_window_sees_more),
        cmocka_unit_test(the_whole_rate_is_used),
        cmocka_unit_test(a_clock_put_back_costs_no_more_than_a_burst),
        cmocka_unit_test(one_instant_is_kept_over_a_restart),
        cmocka_unit_test(restarts_never_allow_more),
        cmocka_unit_test(reloads_never_allow_more),
        cmocka_unit_test(the_burst_without_one),
        cmocka_unit_test(another_rate_counts_what_was_sent),
        cmocka_unit_test(without_a_rate_all_may_go),
        cmocka_unit_test(the_largest_rate_does_not_overflow),
        cmocka_unit_test(draining_takes),
    };
    return cmocka_run_group_tests_name("rate", tests, NULL, NULL);
}
