/*
 * maintenance.h - the hours in which a destination says that it will be away.
 */
#ifndef CORE_OUTAGE_MAINTENANCE_H
#define CORE_OUTAGE_MAINTENANCE_H

#include "base/instant.h"

/* A time of day, in UTC, on some days of the week. */
struct maintenance_window {
    unsigned days;   /* bit 0 is Sunday */
    int from_minute; /* of the day */
    int to_minute;   /* not after from_minute: on the next day */
};

/*
 * When the window that `at` lies in ends, those that follow without a gap included; INSTANT_NONE: it lies in none.
 * A window's end does not belong to it.
 */
instant maintenance_end(const struct maintenance_window *windows, size_t count, instant at);
/* When the next one begins, after `at`; INSTANT_NONE: there is none. */
instant maintenance_next(const struct maintenance_window *windows, size_t count, instant at);

#endif
