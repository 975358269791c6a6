/* Wall clocks: the tz database's rules against the C library's, and what is no file of it. Needs the package tzdata. */
#include "base/buffer.h"
#include "base/zone.h"
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct arena memory;

static int begin(void **state)
{
    (void)state;
    arena_init(&memory, SIZE_MAX / 2);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_release(&memory);
    return 0;
}

static struct slice file_of(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", name);
    FILE *in = fopen(path, "rb");
    check(in, "%s is not there: install tzdata", path);
    char *bytes = arena_alloc(&memory, ZONE_FILE_BYTES_MAX);
    size_t len = fread(bytes, 1, ZONE_FILE_BYTES_MAX, in);
    fclose(in);
    return (struct slice){ bytes, len };
}

static struct zone zone_named(const char *name)
{
    struct zone zone;
    struct error err;
    check(zone_read(file_of(name), &memory, &zone, &err) == STATUS_OK, "%s: %s", name, err.text);
    return zone;
}

/* As Python's zoneinfo has it: times that are skipped, shown twice, and long after the last change that is listed. */
static void edges_are_as_elsewhere(void **state)
{
    static const struct {
        const char *name, *local, *utc;
    } rows[] = {
        { "America/New_York", "2025-03-09T01:59:59", "2025-03-09T06:59:59.000Z" },
        { "America/New_York", "2025-03-09T02:00:00", "2025-03-09T07:00:00.000Z" },
        { "America/New_York", "2025-03-09T02:30:00", "2025-03-09T07:30:00.000Z" },
        { "America/New_York", "2025-03-09T03:00:00", "2025-03-09T07:00:00.000Z" },
        { "America/New_York", "2025-11-02T00:59:59", "2025-11-02T04:59:59.000Z" },
        { "America/New_York", "2025-11-02T01:30:00", "2025-11-02T05:30:00.000Z" },
        { "America/New_York", "2025-11-02T02:00:00", "2025-11-02T07:00:00.000Z" },
        { "America/New_York", "2050-03-13T02:30:00", "2050-03-13T07:30:00.000Z" },
        { "America/New_York", "2050-11-06T01:30:00", "2050-11-06T05:30:00.000Z" },
        { "America/New_York", "2050-07-01T12:00:00", "2050-07-01T16:00:00.000Z" },
        { "Europe/Berlin", "2025-03-30T01:59:59", "2025-03-30T00:59:59.000Z" },
        { "Europe/Berlin", "2025-03-30T02:30:00", "2025-03-30T01:30:00.000Z" },
        { "Europe/Berlin", "2025-03-30T03:00:00", "2025-03-30T01:00:00.000Z" },
        { "Europe/Berlin", "2025-10-26T01:59:59", "2025-10-25T23:59:59.000Z" },
        { "Europe/Berlin", "2025-10-26T02:30:00", "2025-10-26T00:30:00.000Z" },
        { "Europe/Berlin", "2025-10-26T03:00:00", "2025-10-26T02:00:00.000Z" },
        { "Europe/Berlin", "2060-03-28T02:30:00", "2060-03-28T01:30:00.000Z" },
        { "Europe/Berlin", "2060-10-31T02:30:00", "2060-10-31T00:30:00.000Z" },
        { "America/Sao_Paulo", "2018-11-03T23:59:59", "2018-11-04T02:59:59.000Z" },
        { "America/Sao_Paulo", "2018-11-04T00:30:00", "2018-11-04T03:30:00.000Z" },
        { "America/Sao_Paulo", "2018-11-04T01:00:00", "2018-11-04T03:00:00.000Z" },
        { "America/Sao_Paulo", "2019-02-16T23:30:00", "2019-02-17T01:30:00.000Z" },
        { "America/Sao_Paulo", "2019-02-17T00:00:00", "2019-02-17T03:00:00.000Z" },
        { "America/Sao_Paulo", "2025-01-12T10:40:00", "2025-01-12T13:40:00.000Z" },
        { "America/Sao_Paulo", "2080-01-12T10:40:00", "2080-01-12T13:40:00.000Z" },
        { "America/Asuncion", "2024-10-06T00:30:00", "2024-10-06T04:30:00.000Z" },
        { "America/Asuncion", "2025-01-12T10:40:00", "2025-01-12T13:40:00.000Z" },
        { "America/Asuncion", "2024-03-23T23:30:00", "2024-03-24T02:30:00.000Z" },
        { "Europe/Dublin", "2045-03-26T01:30:00", "2045-03-26T01:30:00.000Z" },
        { "Europe/Dublin", "2045-10-29T01:30:00", "2045-10-29T00:30:00.000Z" },
        { "Europe/Dublin", "2045-07-01T00:00:00", "2045-06-30T23:00:00.000Z" },
        { "Europe/Dublin", "2045-12-01T00:00:00", "2045-12-01T00:00:00.000Z" },
        { "Australia/Lord_Howe", "2045-04-02T01:45:00", "2045-04-01T14:45:00.000Z" },
        { "Australia/Lord_Howe", "2045-10-01T02:15:00", "2045-09-30T15:45:00.000Z" },
        { "Australia/Lord_Howe", "2045-12-31T23:59:59", "2045-12-31T12:59:59.000Z" },
        { "Australia/Lord_Howe", "2046-01-01T00:00:00", "2045-12-31T13:00:00.000Z" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct zone zone = zone_named(rows[i].name);
        struct error err;
        char text[INSTANT_TEXT_BYTES];
        instant at;
        assert_int_equal(instant_parse_in(slice_from(rows[i].local), &zone, &at, &err), STATUS_OK);
        instant_format(at, text);
        check(strcmp(text, rows[i].utc) == 0, "%s %s is %s, not %s", rows[i].name, rows[i].local, text, rows[i].utc);
    }
}

/* What the C library's clock shows at any time leads back to that time, or to the first of two that show the same. */
static void every_year_is_as_the_system_has_it(void **state)
{
    static const char *const names[] = { "America/Sao_Paulo", "America/Asuncion", "America/New_York", "America/St_Johns",
                                         "Europe/Berlin", "Europe/Dublin", "Asia/Kolkata", "Australia/Lord_Howe",
                                         "Africa/Cairo", "Pacific/Auckland", "America/Santiago", "Asia/Jerusalem", "UTC" };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct zone zone = zone_named(names[i]);
        size_t twice = 0, looked = 0;
        setenv("TZ", names[i], 1);
        tzset();
        for (time_t at = 0; at < INT64_C(4102444800); at += 5 * 3600 + 7, looked++) { /* to 2100 */
            struct tm shown, again;
            localtime_r(&at, &shown);
            const struct civil civil = { shown.tm_year + 1900, shown.tm_mon + 1, shown.tm_mday, shown.tm_hour, shown.tm_min,
                                         shown.tm_sec, 0 };
            int64_t local = instant_from_civil(&civil);
            time_t found = (time_t)((local - zone_offset_ms(&zone, local)) / 1000);
            localtime_r(&found, &again);
            bool same = shown.tm_mday == again.tm_mday && shown.tm_hour == again.tm_hour && shown.tm_min == again.tm_min;
            check(found == at || (same && found < at && at - found <= 24 * 3600), "%s at %lld: %lld", names[i], (long long)at,
                  (long long)found);
            twice += found != at;
        }
        check(twice < looked / 1000, "%s: %zu of %zu", names[i], twice, looked);
    }
    unsetenv("TZ");
    tzset();
}

static void what_is_no_zone_is_refused(void **state)
{
    struct slice good = file_of("Europe/Berlin");
    struct zone zone;
    struct error err;
    (void)state;
    for (size_t len = 0; len < good.len; len++) { /* cut short anywhere; in memory of its own, so that a look beyond is seen */
        char *copy = malloc(len > 0 ? len : 1);
        memcpy(copy, good.data, len);
        check(zone_read((struct slice){ copy, len }, &memory, &zone, &err) == STATUS_INVALID, "%zu bytes", len);
        free(copy);
    }
    for (size_t i = 0; i < good.len; i++) { /* any byte changed: refused, or read without harm */
        char *copy = malloc(good.len);
        memcpy(copy, good.data, good.len);
        copy[i] = (char)(copy[i] ^ 0xff);
        if (zone_read((struct slice){ copy, good.len }, &memory, &zone, &err) == STATUS_OK)
            (void)zone_offset_ms(&zone, INT64_C(1736678400000));
        free(copy);
    }
    static const char *const names[] = { "", "/etc/passwd", "../passwd", "America/../x", "a//b", "America/", ".", "-x", "a b", "a\tb" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        check(!zone_name_is_possible(slice_from(names[i])), "%s", names[i]);
    assert_true(zone_name_is_possible(SLICE("America/Argentina/Buenos_Aires")) && zone_name_is_possible(SLICE("Etc/GMT+3")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(edges_are_as_elsewhere, begin, end),
        cmocka_unit_test_setup_teardown(every_year_is_as_the_system_has_it, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_zone_is_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
