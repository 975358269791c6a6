#include "core/alerting/pace.h"
#include "support/check.h"

enum { MINUTE = 60 * 1000 };
static const instant start = (instant)1000 * MINUTE;

static void minutes_follow_each_other(void **state)
{
    struct pace pace = { 0 };
    struct pace_count minutes[PACE_MINUTES];
    (void)state;
    pace_note(&pace, start, true);
    pace_note(&pace, start + MINUTE - 1, true);
    pace_note(&pace, start + MINUTE, false);
    pace_note(&pace, start + 3 * MINUTE, true);
    pace_read(&pace, start + 4 * MINUTE, minutes);
    static const struct pace_count expected[] = { { 2, 0 }, { 0, 1 }, { 0, 0 }, { 1, 0 }, { 0, 0 } };
    for (size_t i = 0; i < PACE_MINUTES; i++) {
        size_t skipped = PACE_MINUTES - COUNT_OF(expected);
        struct pace_count wanted = i < skipped ? (struct pace_count){ 0, 0 } : expected[i - skipped];
        check(minutes[i].good == wanted.good && minutes[i].bad == wanted.bad, "%zu: %u %u", i, minutes[i].good, minutes[i].bad);
    }
}

static void old_minutes_are_forgotten(void **state)
{
    static const struct { int64_t later; uint32_t sum; } cases[] = {
        { 0, 1 }, { PACE_MINUTES - 1, 1 }, { PACE_MINUTES, 0 }, { PACE_MINUTES * 100, 0 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (int noted = 0; noted < 2; noted++) { /* whether or not something came since */
            struct pace pace = { 0 };
            struct pace_count minutes[PACE_MINUTES];
            uint32_t sum = 0;
            pace_note(&pace, start, true);
            if (noted)
                pace_note(&pace, start + cases[i].later * MINUTE, false);
            pace_read(&pace, start + cases[i].later * MINUTE, minutes);
            for (size_t m = 0; m < PACE_MINUTES; m++)
                sum += minutes[m].good;
            check(sum == cases[i].sum, "%zu: %u", i, sum);
        }
    }
}

static void a_clock_put_back_loses_nothing(void **state)
{
    struct pace pace = { 0 };
    struct pace_count minutes[PACE_MINUTES];
    (void)state;
    pace_note(&pace, start, true);
    pace_note(&pace, start - 10 * MINUTE, true);
    pace_read(&pace, start - 10 * MINUTE, minutes);
    assert_int_equal(minutes[PACE_MINUTES - 1].good, 2);
    assert_int_equal(pace_last_minute(&pace, start - 10 * MINUTE).good, 2);
}

/* What is older than a minute is not in it, wherever the clock's minute begins. */
static void the_last_minute_is_the_last_minute(void **state)
{
    static const struct { int64_t noted_ms, at_ms; uint32_t good; } cases[] = {
        { 0, 0, 5 },         { 0, 30 * 1000, 5 },         { 0, 59 * 1000, 5 },         { 0, MINUTE, 0 },
        { 59000, 61000, 5 }, { 10 * 1000, 69 * 1000, 5 }, { 10 * 1000, 70 * 1000, 0 }, { 10 * 1000, 110 * 1000, 0 },
        { 0, 3600 * 1000, 0 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pace pace = { 0 };
        for (int k = 0; k < 7; k++)
            pace_note(&pace, start + cases[i].noted_ms, k < 5);
        struct pace_count last = pace_last_minute(&pace, start + cases[i].at_ms);
        check(last.good == cases[i].good && last.bad == (cases[i].good > 0 ? 2 : 0), "%zu: %u %u", i, last.good, last.bad);
    }
}

/* As long as there is work it counts each second once. */
static void a_steady_pace_is_told_as_it_is(void **state)
{
    struct pace pace = { 0 };
    (void)state;
    for (int second = 0; second < 300; second++) {
        pace_note(&pace, start + second * 1000, true);
        uint32_t due = second < 60 ? (uint32_t)second + 1 : 60;
        check(pace_last_minute(&pace, start + second * 1000).good == due, "second %d", second);
    }
}

static void nothing_noted_is_nothing(void **state)
{
    struct pace pace = { 0 };
    (void)state;
    assert_int_equal(pace_last_minute(&pace, start).good, 0);
    assert_int_equal(pace_last_minute(&pace, 0).bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(minutes_follow_each_other),
        cmocka_unit_test(old_minutes_are_forgotten),
        cmocka_unit_test(a_clock_put_back_loses_nothing),
        cmocka_unit_test(the_last_minute_is_the_last_minute),
        cmocka_unit_test(a_steady_pace_is_told_as_it_is),
        cmocka_unit_test(nothing_noted_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
