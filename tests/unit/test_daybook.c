/*
 * A day's counts: what each end adds, what there is no room for, sums, the mean and the median, and the way through text.
 */
#include "core/history/daybook.h"
#include "support/check.h"

#include <stdio.h>
#include <string.h>

static void every_end_counts(void **state)
{
    struct daybook day = { 0 };
    (void)state;
    daybook_job(&day, DAYBOOK_DELIVERED, 1, 5, SLICE(""));
    daybook_job(&day, DAYBOOK_DELIVERED, 3, 100, SLICE(""));
    daybook_job(&day, DAYBOOK_PERMANENT, 1, 0, SLICE("http:400"));
    daybook_job(&day, DAYBOOK_PERMANENT, 2, 0, SLICE("http:400"));
    daybook_job(&day, DAYBOOK_EXHAUSTED, 6, 0, SLICE("http:503"));
    daybook_job(&day, DAYBOOK_OTHER_DEAD, 0, 0, SLICE(""));
    assert_int_equal(daybook_ended(&day), 6);
    assert_int_equal(daybook_retried(&day), 3);
    assert_int_equal(day.tries, 13);
    assert_int_equal(day.code_count, 2);
    assert_int_equal(day.codes[0].ends[DAYBOOK_PERMANENT], 2);
    assert_int_equal(day.codes[1].ends[DAYBOOK_EXHAUSTED], 1);
    assert_int_equal(day.other_codes[DAYBOOK_OTHER_DEAD], 1);
}

static void attempts_by_their_number(void **state)
{
    struct daybook day = { 0 };
    (void)state;
    daybook_attempt(&day, 0, false);
    daybook_attempt(&day, 1, true);
    daybook_attempt(&day, DAYBOOK_TRIES, true);
    daybook_attempt(&day, DAYBOOK_TRIES + 1, true);
    daybook_attempt(&day, 10000, false);
    assert_int_equal(day.sent[0], 2);
    assert_int_equal(day.taken[0], 1);
    assert_int_equal(day.sent[DAYBOOK_TRIES - 1], 1);
    assert_int_equal(day.sent[DAYBOOK_TRIES], 2);
    assert_int_equal(day.taken[DAYBOOK_TRIES], 1);
}

/* Codes that are too long, not text, or the twenty-first. */
static void codes_without_room(void **state)
{
    struct daybook day = { 0 };
    char code[DAYBOOK_CODE_BYTES + 1];
    (void)state;
    memset(code, 'x', sizeof code);
    daybook_job(&day, DAYBOOK_PERMANENT, 1, 0, (struct slice){ code, DAYBOOK_CODE_BYTES });
    daybook_job(&day, DAYBOOK_PERMANENT, 1, 0, SLICE("\xff"));
    daybook_job(&day, DAYBOOK_PERMANENT, 1, 0, (struct slice){ "a\0b", 3 });
    assert_int_equal(day.code_count, 0);
    for (int i = 0; i < DAYBOOK_CODES + 5; i++) {
        snprintf(code, sizeof code, "http:%d", i);
        daybook_job(&day, DAYBOOK_EXHAUSTED, 1, 0, slice_from(code));
    }
    assert_int_equal(day.code_count, DAYBOOK_CODES);
    assert_int_equal(day.other_codes[DAYBOOK_PERMANENT], 3);
    assert_int_equal(day.other_codes[DAYBOOK_EXHAUSTED], 5);
}

static void times_have_a_mean_and_a_median(void **state)
{
    struct daybook day = { 0 };
    (void)state;
    assert_true(daybook_time_mean(&day) < 0 && daybook_time_median(&day) < 0);
    daybook_job(&day, DAYBOOK_DELIVERED, 2, 1000, SLICE(""));
    assert_true(daybook_time_mean(&day) == 1000 && daybook_time_median(&day) == 1000);
    daybook_job(&day, DAYBOOK_DELIVERED, 2, 4000, SLICE(""));
    assert_true(daybook_time_mean(&day) == 2500 && daybook_time_median(&day) == 2500);
    daybook_job(&day, DAYBOOK_DELIVERED, 2, 2, SLICE(""));
    assert_true(daybook_time_median(&day) == 1000);
    daybook_job(&day, DAYBOOK_DELIVERED, 2, -5, SLICE("")); /* a clock that was put back */
    daybook_job(&day, DAYBOOK_DELIVERED, 2, 0, SLICE(""));
    assert_true(daybook_time_median(&day) == 2);
    daybook_job(&day, DAYBOOK_DELIVERED, 2, INT64_MAX / 4, SLICE(""));
    assert_int_equal(day.times[DAYBOOK_TIMES - 1], 1);
}

static struct daybook drawn(void)
{
    struct daybook day = { 0 };
    for (int i = 0; i < 40; i++) {
        char code[16];
        snprintf(code, sizeof code, "c%d", i % 23);
        daybook_job(&day, (enum daybook_end)(i % DAYBOOK_ENDS), i % 4, (int64_t)i * i * 1000, slice_from(code));
        daybook_attempt(&day, i, i % 3 == 0);
    }
    return day;
}

static void it_goes_round(void **state)
{
    struct daybook day = drawn(), back;
    char date[DAYBOOK_DATE_BYTES + 1];
    struct buffer text;
    (void)state;
    buffer_init(&text, 1 << 16);
    struct json_writer json = json_writer(&text);
    daybook_write(&json, &day, "20250112");
    daybook_read(buffer_slice(&text), &back, date);
    assert_string_equal(date, "20250112");
    assert_memory_equal(&day, &back, sizeof day);
    buffer_release(&text);
}

static void what_makes_no_sense_is_nothing(void **state)
{
    static const char *const texts[] = {
        "", "[", "[]", "{}", "{\"date\":\"2025\",\"ends\":[-4,\"x\"],\"times\":[[999,1,1],[-1],7],\"codes\":[{\"ends\":[1]},3]}",
    };
    const struct daybook none = { 0 };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct daybook day;
        char date[DAYBOOK_DATE_BYTES + 1];
        daybook_read(slice_from(texts[i]), &day, date);
        assert_string_equal(date, "");
        assert_int_equal(daybook_ended(&day), 0);
        assert_int_equal(day.code_count, 0);
        assert_memory_equal(day.times, none.times, sizeof none.times);
    }
    struct daybook day;
    char date[DAYBOOK_DATE_BYTES + 1];
    daybook_read((struct slice){ NULL, 0 }, &day, date);
    assert_memory_equal(&day, &none, sizeof none);
}

static void days_add_up(void **state)
{
    struct daybook day = drawn(), sum = { 0 };
    (void)state;
    daybook_add(&sum, &day);
    assert_memory_equal(&sum, &day, sizeof day);
    daybook_add(&sum, &day);
    assert_int_equal(daybook_ended(&sum), 2 * daybook_ended(&day));
    assert_int_equal(sum.tries, 2 * day.tries);
    assert_int_equal(sum.code_count, day.code_count);
    assert_true(daybook_time_mean(&sum) == daybook_time_mean(&day));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_end_counts),
        cmocka_unit_test(attempts_by_their_number),
        cmocka_unit_test(codes_without_room),
        cmocka_unit_test(times_have_a_mean_and_a_median),
        cmocka_unit_test(it_goes_round),
        cmocka_unit_test(what_makes_no_sense_is_nothing),
        cmocka_unit_test(days_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
