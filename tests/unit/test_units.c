#include "base/instant.h"
#include "base/units.h"
#include "support/check.h"

static void durations(void **state)
{
    (void)state;
    static const struct { const char *text; int64_t ms; } rows[] = {
        { "0", 0 },
        { "0s", 0 },
        { "250ms", 250 },
        { "30s", 30 * SECOND_MS },
        { "5m", 5 * MINUTE_MS },
        { "2h", 2 * HOUR_MS },
        { "7d", INT64_C(7) * DAY_MS },
        { "1h30m", 90 * MINUTE_MS },
        { "1d1h1m1s1ms", DAY_MS + HOUR_MS + MINUTE_MS + SECOND_MS + 1 },
        { "1M30S", 90 * SECOND_MS },
        { " 5m ", 5 * MINUTE_MS },
        { "9223372036854775807ms", INT64_MAX },
        { "106751991167d7h12m55s807ms", INT64_MAX },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t ms = -77;
        struct error err = { 0 };
        check(duration_parse(slice_from(rows[i].text), &ms, &err) == STATUS_OK, "%s: %s", rows[i].text, err.text);
        check(ms == rows[i].ms, "%s: %lld", rows[i].text, (long long)ms);
    }
}

static void no_durations(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", " ", "5", "00", "-1s", "+1s", "1.5h", "s", "5 m", "1h 30m", "5x", "1h30", "5mm", "1h-30m", "m5", "forever",
        "9223372036854775808ms", "106751991168d", "106751991167d7h12m55s808ms", "99999999999999999999d", "5\xc2\xb5s",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        int64_t ms = -77;
        struct error err = { 0 };
        check(duration_parse(slice_from(texts[i]), &ms, &err) == STATUS_INVALID, "%s", texts[i]);
        check(strstr(err.text, "is not a duration") != NULL && ms == -77, "%s: %s", texts[i], err.text);
    }
    int64_t ms;
    assert_int_equal(duration_parse((struct slice){ NULL, 0 }, &ms, NULL), STATUS_INVALID);
    assert_int_equal(duration_parse(SLICE("5m\0"), &ms, NULL), STATUS_INVALID);
}

static void durations_are_written_short_and_exact(void **state)
{
    (void)state;
    static const struct { int64_t ms; const char *text; } rows[] = {
        { 0, "0s" },         { -5, "0s" },      { 1, "1ms" },       { 90000, "1m30s" },
        { 3600000, "1h" },   { 86400000, "1d" }, { 5400001, "1h30m1ms" }, { INT64_MAX, "106751991167d7h12m55s807ms" },
    };
    char text[UNITS_TEXT_BYTES];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        duration_format(rows[i].ms, text);
        assert_string_equal(text, rows[i].text);
    }
    struct random random = { 3 };
    for (int i = 0; i < 20000; i++) {
        int64_t ms = (int64_t)(random_next(&random) >> (1 + random_below(&random, 60)));
        int64_t back = -1;
        duration_format(ms, text);
        check(duration_parse(slice_from(text), &back, NULL) == STATUS_OK && back == ms, "%s", text);
    }
}

static void sizes(void **state)
{
    (void)state;
    static const struct { const char *text; int64_t bytes; } rows[] = {
        { "0", 0 },          { "512", 512 },       { "512B", 512 },        { "64KB", 64 << 10 },
        { "64kb", 64 << 10 }, { "1MB", 1 << 20 },   { "2GB", INT64_C(2) << 30 }, { "3TB", INT64_C(3) << 40 },
        { " 1MB ", 1 << 20 }, { "9223372036854775807", INT64_MAX },         { "8388607TB", INT64_C(8388607) << 40 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t bytes = -77;
        check(size_parse(slice_from(rows[i].text), &bytes, NULL) == STATUS_OK, "%s", rows[i].text);
        check(bytes == rows[i].bytes, "%s: %lld", rows[i].text, (long long)bytes);
    }
    static const char *const bad[] = {
        "", " ", "KB", "-1", "-1KB", "1.5MB", "1 KB", "1K", "1KB1KB", "1MB5", "8388608TB", "9223372036854775808", "many",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        int64_t bytes = -77;
        struct error err = { 0 };
        check(size_parse(slice_from(bad[i]), &bytes, &err) == STATUS_INVALID, "%s", bad[i]);
        check(strstr(err.text, "is not a size") != NULL && bytes == -77, "%s: %s", bad[i], err.text);
    }
}

static void sizes_are_written_exactly(void **state)
{
    (void)state;
    static const struct { int64_t bytes; const char *text; } rows[] = {
        { 0, "0" }, { 1, "1" }, { 1023, "1023" }, { 1024, "1KB" }, { 1025, "1025" }, { 3 << 20, "3MB" },
        { INT64_C(1) << 30, "1GB" }, { INT64_C(5) << 40, "5TB" }, { INT64_MAX, "9223372036854775807" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[UNITS_TEXT_BYTES];
        int64_t back;
        size_format(rows[i].bytes, text);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(size_parse(slice_from(text), &back, NULL), STATUS_OK);
        assert_int_equal(back, rows[i].bytes);
    }
}

static void rates(void **state)
{
    (void)state;
    static const struct { const char *text; int64_t count, per_ms; } rows[] = {
        { "20/s", 20, SECOND_MS },  { "100/m", 100, MINUTE_MS }, { "1000/h", 1000, HOUR_MS },
        { "5000/d", 5000, DAY_MS }, { " 1/S ", 1, SECOND_MS },   { "9223372036854775807/d", INT64_MAX, DAY_MS },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rate rate = { 0 };
        check(rate_parse(slice_from(rows[i].text), &rate, NULL) == STATUS_OK, "%s", rows[i].text);
        check(rate.count == rows[i].count && rate.per_ms == rows[i].per_ms, "%s", rows[i].text);
        char text[UNITS_TEXT_BYTES];
        struct rate back;
        rate_format(rate, text);
        check(rate_parse(slice_from(text), &back, NULL) == STATUS_OK, "%s", text);
        check(back.count == rate.count && back.per_ms == rate.per_ms, "%s", text);
    }
    static const char *const bad[] = {
        "", "20", "20/", "/s", "/", "0/s", "-1/s", "1.5/s", "20/ms", "20/s/s", "20 / s", "x/s", "9223372036854775808/s",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct rate rate = { .count = -77 };
        struct error err = { 0 };
        check(rate_parse(slice_from(bad[i]), &rate, &err) == STATUS_INVALID, "%s", bad[i]);
        check(strstr(err.text, "is not a rate") != NULL && rate.count == -77, "%s: %s", bad[i], err.text);
    }
}

static void a_long_bad_text_is_quoted_shortened(void **state)
{
    (void)state;
    char text[5000];
    int64_t ms;
    struct error err;
    memset(text, 'x', sizeof text);
    assert_int_equal(duration_parse((struct slice){ text, sizeof text }, &ms, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "write it like"));
}

static void bytes_are_written_in_digits(void **state)
{
    (void)state;
    char text[9] = "????????";
    hex_format((const unsigned char[]){ 0x00, 0x0f, 0xa5, 0xff }, 4, text);
    assert_string_equal(text, "000fa5ff");
    hex_format(NULL, 0, text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations),
        cmocka_unit_test(no_durations),
        cmocka_unit_test(durations_are_written_short_and_exact),
        cmocka_unit_test(sizes),
        cmocka_unit_test(sizes_are_written_exactly),
        cmocka_unit_test(rates),
        cmocka_unit_test(a_long_bad_text_is_quoted_shortened),
        cmocka_unit_test(bytes_are_written_in_digits),
    };
    return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
