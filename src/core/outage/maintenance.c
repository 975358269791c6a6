#include "core/outage/maintenance.h"

#include <assert.h>

enum { WEEK_DAYS = 7, EPOCH_WEEKDAY = 4 /* 1970-01-01 was a Thursday */ };

static int64_t day_of(instant at)
{
    return at / DAY_MS - (at % DAY_MS < 0);
}

/* Whether the window begins on that day. */
static bool begins_on(const struct maintenance_window *window, int64_t day)
{
    int64_t weekday = ((day + EPOCH_WEEKDAY) % WEEK_DAYS + WEEK_DAYS) % WEEK_DAYS;
    return (window->days >> weekday & 1) != 0;
}

static instant begin_of(const struct maintenance_window *window, int64_t day)
{
    assert(window->from_minute >= 0 && window->from_minute <= DAY_MS / MINUTE_MS);
    return day * DAY_MS + (int64_t)window->from_minute * MINUTE_MS;
}

static instant end_of(const struct maintenance_window *window, int64_t day)
{
    assert(window->to_minute >= 0 && window->to_minute <= DAY_MS / MINUTE_MS);
    int64_t last = window->from_minute < window->to_minute ? day : day + 1;
    return last * DAY_MS + (int64_t)window->to_minute * MINUTE_MS;
}

/* The end of the latest occurrence that has `at`; INSTANT_NONE: none has. */
static instant window_end(const struct maintenance_window *window, instant at)
{
    int64_t today = day_of(at);
    for (int64_t day = today; day >= today - 1; day--)
        if (begins_on(window, day) && begin_of(window, day) <= at && at < end_of(window, day))
            return end_of(window, day);
    return INSTANT_NONE;
}

instant maintenance_end(const struct maintenance_window *windows, size_t count, instant at)
{
    instant end = INSTANT_NONE, reached = at;
    assert(at != INSTANT_NONE);
    /* Windows without a gap between them may cover the whole week: a week is as far as anybody needs to know. */
    for (bool longer = true; longer && reached - at < WEEK_DAYS * (int64_t)DAY_MS;) {
        longer = false;
        for (size_t i = 0; i < count; i++) {
            instant candidate = window_end(&windows[i], reached);
            if (candidate != INSTANT_NONE && candidate > reached) {
                end = reached = candidate;
                longer = true;
            }
        }
    }
    return end;
}

instant maintenance_next(const struct maintenance_window *windows, size_t count, instant at)
{
    assert(windows || count == 0);
    instant next = INSTANT_NONE;
    int64_t today = day_of(at);
    for (size_t i = 0; i < count; i++)
        for (int64_t day = today; day <= today + WEEK_DAYS; day++) {
            instant begin = begin_of(&windows[i], day);
            if (begins_on(&windows[i], day) && begin > at) {
                next = instant_earlier(next, begin);
                break;
            }
        }
    return next;
}
