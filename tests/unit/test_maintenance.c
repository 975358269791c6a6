#include "core/outage/maintenance.h"
#include "support/check.h"

enum { SUN = 1, MON = 2, SAT = 64, DAILY = 127 };

static instant at(const char *text)
{
    instant result = INSTANT_NONE;
    if (text)
        check(instant_parse(slice_from(text), &result, NULL) == STATUS_OK, "%s", text);
    return result;
}

/* 2025-01-12 is a Sunday. */
static void ends_and_begins(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct maintenance_window windows[3];
        size_t count;
        const char *now, *end, *next;
    } cases[] = {
        { "none", { { 0 } }, 0, "2025-01-12T02:00:00Z", NULL, NULL },
        { "before it", { { SUN, 120, 240 } }, 1, "2025-01-12T01:59:59.999Z", NULL, "2025-01-12T02:00:00Z" },
        { "at its begin", { { SUN, 120, 240 } }, 1, "2025-01-12T02:00:00Z", "2025-01-12T04:00:00Z", "2025-01-19T02:00:00Z" },
        { "its last moment",
          { { SUN, 120, 240 } },
          1,
          "2025-01-12T03:59:59.999Z",
          "2025-01-12T04:00:00Z",
          "2025-01-19T02:00:00Z" },
        { "at its end", { { SUN, 120, 240 } }, 1, "2025-01-12T04:00:00Z", NULL, "2025-01-19T02:00:00Z" },
        { "over midnight, before",
          { { SAT, 1380, 60 } },
          1,
          "2025-01-11T23:30:00Z",
          "2025-01-12T01:00:00Z",
          "2025-01-18T23:00:00Z" },
        { "over midnight, after",
          { { SAT, 1380, 60 } },
          1,
          "2025-01-12T00:30:00Z",
          "2025-01-12T01:00:00Z",
          "2025-01-18T23:00:00Z" },
        { "over midnight, over", { { SAT, 1380, 60 } }, 1, "2025-01-12T01:00:00Z", NULL, "2025-01-18T23:00:00Z" },
        { "two that overlap",
          { { SUN, 120, 240 }, { SUN, 180, 300 } },
          2,
          "2025-01-12T02:30:00Z",
          "2025-01-12T05:00:00Z",
          "2025-01-12T03:00:00Z" },
        { "two that meet, the later first",
          { { SUN, 240, 300 }, { SUN, 120, 240 } },
          2,
          "2025-01-12T02:30:00Z",
          "2025-01-12T05:00:00Z",
          "2025-01-12T04:00:00Z" },
        { "until the end of the day",
          { { SUN, 1380, 1440 } },
          1,
          "2025-01-12T23:30:00Z",
          "2025-01-13T00:00:00Z",
          "2025-01-19T23:00:00Z" },
        { "every day, all day: a week ahead",
          { { DAILY, 0, 1440 } },
          1,
          "2025-01-12T12:00:00Z",
          "2025-01-20T00:00:00Z",
          "2025-01-13T00:00:00Z" },
        { "before 1970",
          { { DAILY, 120, 240 } },
          1,
          "1969-12-31T03:00:00Z",
          "1969-12-31T04:00:00Z",
          "1970-01-01T02:00:00Z" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        instant now = at(cases[i].now);
        check(maintenance_end(cases[i].windows, cases[i].count, now) == at(cases[i].end), "%s: end", cases[i].name);
        check(maintenance_next(cases[i].windows, cases[i].count, now) == at(cases[i].next), "%s: next", cases[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(ends_and_begins) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
