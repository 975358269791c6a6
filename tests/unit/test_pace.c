#include "core/pace.h"
#include "support/check.h"

enum { MINUTE = 60 * 1000 };
static const instant start = (instant)1000 * MINUTE;

static void minutes_follow_each_other(void **state)
{
    struct pace pace = { 0 };
    struct pace_minute minutes[PACE_MINUTES];
    (void)state;
    pace_note(&pace, start, true);
    pace_note(&pace, start + MINUTE - 1, true);
    pace_note(&pace, start + MINUTE, false);
    pace_note(&pace, start + 3 * MINUTE, true);
    pace_read(&pace, start + 4 * MINUTE, minutes);
    static const struct pace_minute expected[] = { { 2, 0 }, { 0, 1 }, { 0, 0 }, { 1, 0 }, { 0, 0 } };
    for (size_t i = 0; i < PACE_MINUTES; i++) {
        size_t skipped = PACE_MINUTES - COUNT_OF(expected);
        struct pace_minute wanted = i < skipped ? (struct pace_minute){ 0, 0 } : expected[i - skipped];
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
            struct pace_minute minutes[PACE_MINUTES];
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
    struct pace_minute minutes[PACE_MINUTES];
    (void)state;
    pace_note(&pace, start, true);
    pace_note(&pace, start - 10 * MINUTE, true);
    pace_read(&pace, start - 10 * MINUTE, minutes);
    assert_int_equal(minutes[PACE_MINUTES - 1].good, 2);
    assert_int_equal(pace_last_minute(&pace, start - 10 * MINUTE).good, 2);
}

static void the_last_minute_takes_its_part_of_the_one_before(void **state)
{
    static const struct { int64_t at_ms; uint32_t good, bad; } cases[] = {
        { 0, 60, 12 }, { 15 * 1000, 45, 9 }, { 45 * 1000, 15, 3 }, { 59999, 0, 0 }, { MINUTE, 0, 0 },
    };
    (void)state;
    struct pace pace = { 0 };
    for (int i = 0; i < 60; i++)
        pace_note(&pace, start, true);
    for (int i = 0; i < 12; i++)
        pace_note(&pace, start, false);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pace_minute last = pace_last_minute(&pace, start + MINUTE + cases[i].at_ms);
        check(last.good == cases[i].good && last.bad == cases[i].bad, "%zu: %u %u", i, last.good, last.bad);
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
        cmocka_unit_test(the_last_minute_takes_its_part_of_the_one_before),
        cmocka_unit_test(nothing_noted_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
