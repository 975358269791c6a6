#include "base/instant.h"
#include "support/check.h"

#include <time.h>

static void check_round_trip(instant at)
{
    char text[INSTANT_TEXT_BYTES];
    instant back;
    struct error err;
    instant_format(at, text);
    check(strlen(text) == INSTANT_TEXT_BYTES - 1, "%s", text);
    check(instant_parse(slice_from(text), &back, &err) == STATUS_OK, "%s: %s", text, err.text);
    check(back == at, "%s", text);
    struct civil civil = instant_civil(at);
    check(instant_from_civil(&civil) == at, "%s", text);
}

static void every_day_of_the_calendar_goes_round(void **state)
{
    (void)state;
    for (instant day = INSTANT_MIN; day <= INSTANT_MAX; day += DAY_MS) {
        struct civil civil = instant_civil(day);
        check(instant_from_civil(&civil) == day, "%04d-%02d-%02d", civil.year, civil.month, civil.day);
        check(civil.hour == 0 && civil.minute == 0 && civil.second == 0 && civil.millisecond == 0, "%04d", civil.year);
    }
    struct random random = { 9 };
    for (int i = 0; i < 100000; i++)
        check_round_trip(INSTANT_MIN + (instant)(random_next(&random) % (uint64_t)(INSTANT_MAX - INSTANT_MIN + 1)));
    check_round_trip(INSTANT_MIN);
    check_round_trip(INSTANT_MAX);
    check_round_trip(-1);
    check_round_trip(0);
}

static void it_agrees_with_the_c_library(void **state)
{
    (void)state;
    struct random random = { 10 };
    for (int i = 0; i < 20000; i++) {
        int64_t seconds = (int64_t)(random_next(&random) % 253402300800u) - (int64_t)(random_next(&random) % 62135596800u);
        if (seconds * SECOND_MS > INSTANT_MAX)
            continue;
        time_t at = (time_t)seconds;
        struct tm tm;
        gmtime_r(&at, &tm);
        struct civil civil = instant_civil(seconds * SECOND_MS);
        check(civil.year == tm.tm_year + 1900 && civil.month == tm.tm_mon + 1 && civil.day == tm.tm_mday &&
                  civil.hour == tm.tm_hour && civil.minute == tm.tm_min && civil.second == tm.tm_sec,
              "%lld", (long long)seconds);
    }
}

static void texts_that_are_times(void **state)
{
    (void)state;
    static const struct { const char *text; instant at; } rows[] = {
        { "1970-01-01T00:00:00Z", 0 },
        { "1970-01-01t00:00:00z", 0 },
        { "1970-01-01 00:00:00Z", 0 },
        { "1969-12-31T23:59:59.999Z", -1 },
        { "2025-01-12T10:51:41.234Z", 1736679101234 },
        { "2025-01-12T10:51:41.234567890123456789Z", 1736679101234 }, /* the rest is cut off */
        { "2025-01-12T10:51:41.2Z", 1736679101200 },
        { "2025-01-12T10:51:41,23Z", 1736679101230 },
        { "2025-01-12T07:51:41.234-03:00", 1736679101234 },
        { "2025-01-12T16:21:41.234+05:30", 1736679101234 },
        { "2025-01-12T10:51:41.234-0000", 1736679101234 },
        { "2024-02-29T00:00:00Z", 1709164800000 },
        { "2000-02-29T23:59:59+23:59", 951782459000 },
        { "2016-12-31T23:59:60Z", 1483228800000 }, /* a leap second is the next second */
        { "0001-01-01T00:00:00Z", INSTANT_MIN },
        { "9999-12-31T23:59:59.999Z", INSTANT_MAX },
        { "0001-01-01T05:00:00+05:00", INSTANT_MIN },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        instant at = 77;
        struct error err = { 0 };
        check(instant_parse(slice_from(rows[i].text), &at, &err) == STATUS_OK, "%s: %s", rows[i].text, err.text);
        check(at == rows[i].at, "%s: %lld", rows[i].text, (long long)at);
    }
}

static void texts_that_are_no_times(void **state)
{
    (void)state;
    static const struct { const char *text, *says; } rows[] = {
        { "", "is not a time" },
        { "tomorrow", "is not a time" },
        { "2025-01-12", "is not a time" },
        { "2025-01-12T10:40Z", "is not a time" },
        { "2025-1-12T10:40:00Z", "is not a time" },
        { "25-01-12T10:40:00Z", "is not a time" },
        { "2025/01/12T10:40:00Z", "is not a time" },
        { "2025-01-12X10:40:00Z", "is not a time" },
        { "2025-00-12T10:40:00Z", "is not a time" },
        { "2025-13-12T10:40:00Z", "is not a time" },
        { "2025-01-00T10:40:00Z", "is not a time" },
        { "2025-01-32T10:40:00Z", "is not a time" },
        { "2025-02-29T10:40:00Z", "is not a time" },
        { "1900-02-29T10:40:00Z", "is not a time" },
        { "2025-04-31T10:40:00Z", "is not a time" },
        { "0000-01-01T00:00:00Z", "is not a time" },
        { "2025-01-12T24:00:00Z", "is not a time" },
        { "2025-01-12T10:60:00Z", "is not a time" },
        { "2025-01-12T10:40:61Z", "is not a time" },
        { "2025-01-12T10:40:00.Z", "is not a time" },
        { "-025-01-12T10:40:00Z", "is not a time" },
        { "2025-01-12T10:40:00", "has no zone" },       /* C-19 */
        { "2025-01-12T10:40:00.5", "has no zone" },
        { "2025-01-12T10:40:00 ", "has no zone" },
        { "2025-01-12T10:40:00Zx", "has no zone" },
        { "2025-01-12T10:40:00ZZ", "has no zone" },
        { "2025-01-12T10:40:00x", "has no zone" },
        { "2025-01-12T10:40:00+3", "has no zone" },
        { "2025-01-12T10:40:00+03:0", "has no zone" },
        { "2025-01-12T10:40:00+03:000", "has no zone" },
        { "2025-01-12T10:40:00+0300:", "has no zone" },
        { "2025-01-12T10:40:00+24:00", "has no zone" },
        { "2025-01-12T10:40:00+03:60", "has no zone" },
        { "2025-01-12T10:40:00+ab:cd", "has no zone" },
        { "0001-01-01T00:00:00+00:01", "outside" },
        { "9999-12-31T23:59:59-00:01", "outside" },
        { "9999-12-31T23:59:60Z", "outside" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        instant at = 77;
        struct error err = { 0 };
        check(instant_parse(slice_from(rows[i].text), &at, &err) == STATUS_INVALID, "%s", rows[i].text);
        check(strstr(err.text, rows[i].says) != NULL, "%s: %s", rows[i].text, err.text);
        check(at == 77, "%s: written only on success", rows[i].text);
    }
    instant at;
    assert_int_equal(instant_parse((struct slice){ NULL, 0 }, &at, NULL), STATUS_INVALID);
}

static void every_cut_of_a_time_is_refused(void **state)
{
    (void)state;
    const char *whole = "2025-01-12T10:51:41.234+03:00";
    for (size_t len = 0; len < strlen(whole); len++) {
        instant at;
        struct slice cut = { whole, len };
        if (len == strlen("2025-01-12T10:51:41.234+0300")) /* the form without a colon is as long as a cut one */
            continue;
        check(instant_parse(cut, &at, NULL) == STATUS_INVALID, "%.*s", SLICE_ARG(cut));
    }
}

static void leap_years_follow_the_gregorian_rule(void **state)
{
    (void)state;
    static const struct { int year; bool leap; } rows[] = {
        { 4, true },     { 100, false },  { 400, true },   { 1900, false }, { 2000, true },
        { 2023, false }, { 2024, true },  { 2100, false }, { 9996, true },  { 9999, false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct civil february = { .year = rows[i].year, .month = 2, .day = 28 };
        struct civil next = instant_civil(instant_from_civil(&february) + DAY_MS);
        check((next.month == 2) == rows[i].leap, "%d", rows[i].year);
    }
}

static void adding_stops_at_the_end(void **state)
{
    (void)state;
    static const struct { instant at; int64_t delay; instant sum; } rows[] = {
        { 0, 0, 0 },
        { 5, 7, 12 },
        { INSTANT_MAX - 1, 1, INSTANT_MAX },
        { INSTANT_MAX, 0, INSTANT_MAX },
        { INSTANT_MAX, 1, INSTANT_MAX },
        { INSTANT_MAX, INT64_MAX, INSTANT_MAX },
        { INT64_MAX, INT64_MAX, INSTANT_MAX },
        { 0, INT64_MAX, INSTANT_MAX },
        { INSTANT_MIN, 1, INSTANT_MIN + 1 },
        { INSTANT_NONE, 1, INSTANT_NONE + 1 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check(instant_add(rows[i].at, rows[i].delay) == rows[i].sum, "row %zu", i);
}

static void what_lies_outside_is_clipped_when_written(void **state)
{
    (void)state;
    char text[INSTANT_TEXT_BYTES];
    instant_format(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    instant_format(INSTANT_NONE, text);
    assert_string_equal(text, "0001-01-01T00:00:00.000Z");
}

static void the_earlier_of_two(void **state)
{
    (void)state;
    static const struct { instant a, b, earlier; } rows[] = {
        { 5, 7, 5 }, { 7, 5, 5 }, { 5, 5, 5 }, { -1, 0, -1 }, { INSTANT_NONE, 5, 5 }, { 5, INSTANT_NONE, 5 },
        { INSTANT_NONE, INSTANT_NONE, INSTANT_NONE },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check(instant_earlier(rows[i].a, rows[i].b) == rows[i].earlier, "row %zu", i);
    static const struct { instant next, at, now, hastened; } times[] = {
        { INSTANT_NONE, 5, 4, 5 }, { INSTANT_NONE, 5, 5, INSTANT_NONE }, { 9, 5, 4, 5 }, { 9, 5, 5, 9 },
        { 5, 9, 4, 5 },            { 9, INSTANT_NONE, 4, 9 },
    };
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        instant next = times[i].next;
        instant_hasten(&next, times[i].at, times[i].now);
        check(next == times[i].hastened, "time %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_earlier_of_two),
        cmocka_unit_test(every_day_of_the_calendar_goes_round),
        cmocka_unit_test(it_agrees_with_the_c_library),
        cmocka_unit_test(texts_that_are_times),
        cmocka_unit_test(texts_that_are_no_times),
        cmocka_unit_test(every_cut_of_a_time_is_refused),
        cmocka_unit_test(leap_years_follow_the_gregorian_rule),
        cmocka_unit_test(adding_stops_at_the_end),
        cmocka_unit_test(what_lies_outside_is_clipped_when_written),
    };
    return cmocka_run_group_tests_name("instant", tests, NULL, NULL);
}
