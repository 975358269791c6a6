/*
 * Pages of a destination's history: what is written is read, whatever happened they stay in their bounds, and text that is
 * none is an empty page.
 */
#include "core/history/history_page.h"
#include "support/check.h"

#include <string.h>

static const instant hour = INT64_C(1736676000000); /* 2025-01-12T10:00Z */

struct taken {
    struct history_point points[HISTORY_SLOTS_MAX];
    instant at[HISTORY_SLOTS_MAX];
    size_t count;
};

static void take(void *context, instant at, const struct history_point *point)
{
    struct taken *taken = context;
    assert_true(taken->count < HISTORY_SLOTS_MAX);
    taken->at[taken->count] = at;
    taken->points[taken->count++] = *point;
}

static struct taken read_all(const struct history_scale *scale, struct slice text)
{
    struct taken taken = { 0 };
    history_page_each(scale, text, take, &taken);
    return taken;
}

static struct history_page page_with(instant at, const struct history_point *point)
{
    struct history_page page;
    history_page_clear(&page);
    assert_true(history_page_put(&history_minutes, &page, at, point));
    return page;
}

static void a_point_is_read_as_it_was(void **state)
{
    const struct history_point point = { .delivered = 511, .failed = { [OUTCOME_TRANSIENT] = 3, [OUTCOME_PERMANENT] = 1 },
                                         .pending = 77, .oldest_s = 300, .p50_ms = 16, .p95_ms = 64, .p99_ms = -1,
                                         .in_flight = 4, .limit = 10, .mode = HISTORY_RECOVERING };
    (void)state;
    struct history_page page = page_with(hour + 7 * MINUTE_MS + 1, &point);
    struct taken taken = read_all(&history_minutes, history_page_text(&page));
    assert_int_equal(taken.count, 1);
    assert_int_equal(taken.at[0], hour + 7 * MINUTE_MS);
    assert_memory_equal(&taken.points[0], &point, sizeof point);
    assert_int_equal(read_all(&history_hours, history_page_text(&page)).count, 0); /* another scale's */
}

/* Exact below 512, then to one in 256; never more than it was, and always in order. */
static void numbers_are_near(void **state)
{
    static const int64_t numbers[] = { 0, 1, 91, 92, 255, 256, 511, 512, 1000, 65535, 1000000, INT64_C(1) << 38, INT64_MAX };
    int64_t before = -1;
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct history_point point = { .delivered = numbers[i], .p50_ms = -1, .p95_ms = -1, .p99_ms = -1 };
        struct history_page page = page_with(hour, &point);
        int64_t read = read_all(&history_minutes, history_page_text(&page)).points[0].delivered;
        check(read <= numbers[i] && read > before, "%lld was read as %lld", (long long)numbers[i], (long long)read);
        if (numbers[i] < INT64_C(1) << 39)
            check(numbers[i] - read <= numbers[i] / 256 && (numbers[i] >= 512 || read == numbers[i]), "%lld was read as %lld",
                  (long long)numbers[i], (long long)read);
        before = read;
    }
}

static void times_are_near(void **state)
{
    (void)state;
    for (int64_t ms = 1; ms < 250000; ms += 1 + ms / 20) {
        const struct history_point point = { .p50_ms = ms, .p95_ms = ms, .p99_ms = ms };
        struct history_page page = page_with(hour, &point);
        int64_t read = read_all(&history_minutes, history_page_text(&page)).points[0].p50_ms;
        check(read <= ms && (ms - read) * 7 <= ms + 7, "%lld ms were read as %lld", (long long)ms, (long long)read);
    }
    const struct history_point long_one = { .p50_ms = HOUR_MS, .p95_ms = HOUR_MS, .p99_ms = HOUR_MS };
    struct history_page page = page_with(hour, &long_one);
    assert_in_range(read_all(&history_minutes, history_page_text(&page)).points[0].p50_ms, 250000, 270000);
}

/* The worst that there is: every minute every class, in numbers that take the most. */
static void no_page_outgrows_its_bound(void **state)
{
    struct history_page page;
    struct history_point point = { .delivered = INT64_MAX, .pending = INT64_MAX, .oldest_s = INT64_MAX, .p50_ms = DAY_MS,
                                   .p95_ms = DAY_MS, .p99_ms = DAY_MS, .in_flight = 100000, .limit = 100000,
                                   .mode = HISTORY_CONTINGENCY };
    int64_t failed = 0;
    (void)state;
    for (int i = OUTCOME_TRANSIENT; i < OUTCOME_COUNT; i++) {
        point.failed[i] = 1000 * i;
        failed += point.failed[i];
    }
    history_page_clear(&page);
    for (int i = 0; i < 60; i++)
        assert_true(history_page_put(&history_minutes, &page, hour + i * MINUTE_MS, &point));
    assert_true(page.len <= HISTORY_PAGE_BYTES_MAX);
    struct taken taken = read_all(&history_minutes, history_page_text(&page));
    assert_int_equal(taken.count, 60);
    check(taken.points[59].failed[HISTORY_OTHER] > failed - failed / 200, "%lld",
          (long long)taken.points[59].failed[HISTORY_OTHER]);
    /* A quiet half of an hour leaves room for what comes after it. */
    history_page_clear(&page);
    assert_true(history_page_put(&history_minutes, &page, hour + 30 * MINUTE_MS, &point));
    assert_int_equal(read_all(&history_minutes, history_page_text(&page)).points[0].failed[OUTCOME_PERMANENT] > 0, true);
}

static void time_only_goes_forward_on_a_page(void **state)
{
    struct history_point point = { .delivered = 1, .p50_ms = -1, .p95_ms = -1, .p99_ms = -1 }, last;
    struct history_page page = page_with(hour + 5 * MINUTE_MS, &point);
    (void)state;
    assert_false(history_page_put(&history_minutes, &page, hour + 4 * MINUTE_MS, &point));
    assert_false(history_page_put(&history_minutes, &page, hour + HOUR_MS, &point));
    point.delivered = 2;
    assert_true(history_page_put(&history_minutes, &page, hour + 5 * MINUTE_MS, &point)); /* in the place of the other */
    assert_true(history_page_last(&history_minutes, &page, hour + 5 * MINUTE_MS, &last));
    assert_int_equal(last.delivered, 2);
    assert_false(history_page_last(&history_minutes, &page, hour + 6 * MINUTE_MS, &last));
    assert_int_equal(read_all(&history_minutes, history_page_text(&page)).count, 1);
}

static void a_page_goes_on_after_it_was_read(void **state)
{
    const struct history_point point = { .delivered = 9, .failed = { [OUTCOME_WAIT] = 2 }, .p50_ms = 8, .p95_ms = 8, .p99_ms = 8 };
    struct history_page page = page_with(hour + MINUTE_MS, &point), read;
    struct history_point last;
    (void)state;
    history_page_read(&history_minutes, history_page_text(&page), &read);
    assert_true(history_page_last(&history_minutes, &read, hour + MINUTE_MS, &last));
    assert_int_equal(last.failed[OUTCOME_WAIT], 2);
    assert_true(history_page_put(&history_minutes, &read, hour + 2 * MINUTE_MS, &point));
    assert_int_equal(read_all(&history_minutes, history_page_text(&read)).count, 2);
}

/* Cut anywhere, with any byte changed, or something else: it is read as an empty page or as one with fewer points. */
static void what_is_no_page_is_an_empty_one(void **state)
{
    const struct history_point point = { .delivered = 9, .failed = { [OUTCOME_WAIT] = 2 }, .p50_ms = 8, .p95_ms = 8, .p99_ms = 8 };
    struct history_page page = page_with(hour + MINUTE_MS, &point), read;
    static const char *const others[] = { "", "m", "m:", "m0:", "m1", "h482410:!!", "{}", "m99999999999999999999:" };
    (void)state;
    assert_true(history_page_put(&history_minutes, &page, hour + 9 * MINUTE_MS, &point));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        history_page_read(&history_minutes, slice_from(others[i]), &read);
        assert_int_equal(read.number, 0);
        assert_int_equal(read_all(&history_minutes, slice_from(others[i])).count, 0);
    }
    for (size_t i = 0; i < page.len; i++) {
        struct history_page bad = page;
        history_page_read(&history_minutes, (struct slice){ page.text, i }, &read);
        assert_true(read.number == 0 || read.len == i);
        assert_true(read_all(&history_minutes, (struct slice){ page.text, i }).count < 2);
        for (int c = 0; c < 256; c++) {
            bad.text[i] = (char)c;
            history_page_read(&history_minutes, history_page_text(&bad), &read);
            assert_true(read_all(&history_minutes, history_page_text(&bad)).count <= 2);
        }
    }
}

/* Counts are added, queues are told at their worst, and the percentiles are those of most of the sends. */
static void a_page_adds_up_to_one_point(void **state)
{
    struct history_point busy = { .delivered = 98, .pending = 3, .oldest_s = 2, .p50_ms = 8, .p95_ms = 16, .p99_ms = 32,
                                  .in_flight = 2, .limit = 10, .mode = HISTORY_NORMAL };
    struct history_point slow = { .delivered = 1, .failed = { [OUTCOME_TRANSIENT] = 1 }, .pending = 40, .oldest_s = 60,
                                  .p50_ms = 1024, .p95_ms = 4096, .p99_ms = 4096, .in_flight = 1, .limit = 5,
                                  .mode = HISTORY_CONTINGENCY };
    struct history_point sum;
    struct history_page page = page_with(hour, &busy);
    (void)state;
    assert_true(history_page_put(&history_minutes, &page, hour + MINUTE_MS, &slow));
    busy.limit = 7;
    assert_true(history_page_put(&history_minutes, &page, hour + 2 * MINUTE_MS, &busy));
    assert_true(history_page_sum(&history_minutes, history_page_text(&page), &sum));
    assert_int_equal(sum.delivered, 197);
    assert_int_equal(sum.failed[OUTCOME_TRANSIENT], 1);
    assert_int_equal(sum.pending, 40);
    assert_int_equal(sum.oldest_s, 60);
    assert_int_equal(sum.limit, 7);
    assert_int_equal(sum.mode, HISTORY_CONTINGENCY);
    assert_int_equal(sum.p50_ms, 8);
    assert_int_equal(sum.p95_ms, 16);
    assert_int_equal(sum.p99_ms, 1024); /* one in a hundred was so slow */
    /* Half of all were in the first minute: the slowest of them is the median. */
    struct history_point quick = { .delivered = 100, .p50_ms = 1, .p95_ms = 2, .p99_ms = 4 };
    slow = (struct history_point){ .delivered = 100, .p50_ms = 8, .p95_ms = 16, .p99_ms = 32 };
    page = page_with(hour, &quick);
    assert_true(history_page_put(&history_minutes, &page, hour + MINUTE_MS, &slow));
    assert_true(history_page_sum(&history_minutes, history_page_text(&page), &sum));
    assert_int_equal(sum.p50_ms, 4);
    history_page_clear(&page);
    assert_false(history_page_sum(&history_minutes, history_page_text(&page), &sum));
}

static void modes_have_names(void **state)
{
    (void)state;
    assert_string_equal(history_mode_name(HISTORY_PAUSED), "paused");
    assert_string_equal(history_mode_name(HISTORY_MAINTENANCE), "maintenance");
    assert_int_equal(history_mode_from_name("breaker"), HISTORY_BREAKER);
    assert_null(history_mode_name(HISTORY_MODE_UNKNOWN));
    assert_int_equal(history_mode_from_name("contingency"), HISTORY_CONTINGENCY);
    assert_int_equal(history_mode_from_name("else"), HISTORY_MODE_UNKNOWN);
    assert_int_equal(history_mode_from_name(NULL), HISTORY_MODE_UNKNOWN);
}

/* Numbers of modes are stored as they came to be; an hour is as bad as its worst minute. */
static void an_hour_has_its_worst_mode(void **state)
{
    static const enum history_mode better_first[] = { HISTORY_NORMAL, HISTORY_MAINTENANCE, HISTORY_BREAKER,
                                                      HISTORY_PAUSED, HISTORY_RECOVERING, HISTORY_CONTINGENCY };
    (void)state;
    for (size_t worse = 1; worse < sizeof better_first / sizeof *better_first; worse++) {
        const enum history_mode modes[] = { better_first[worse - 1], better_first[worse], better_first[worse - 1] };
        struct history_page page;
        struct history_point sum;
        history_page_clear(&page);
        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
            struct history_point point = { .delivered = 1, .mode = modes[i] };
            assert_true(history_page_put(&history_minutes, &page, hour + (instant)i * MINUTE_MS, &point));
        }
        assert_true(history_page_sum(&history_minutes, history_page_text(&page), &sum));
        assert_int_equal(sum.mode, better_first[worse]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_is_read_as_it_was),
        cmocka_unit_test(numbers_are_near),
        cmocka_unit_test(times_are_near),
        cmocka_unit_test(no_page_outgrows_its_bound),
        cmocka_unit_test(time_only_goes_forward_on_a_page),
        cmocka_unit_test(a_page_goes_on_after_it_was_read),
        cmocka_unit_test(what_is_no_page_is_an_empty_one),
        cmocka_unit_test(a_page_adds_up_to_one_point),
        cmocka_unit_test(modes_have_names),
        cmocka_unit_test(an_hour_has_its_worst_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
