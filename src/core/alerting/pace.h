/*
 * pace.h - how many attempts succeeded and failed: minute by minute for a chart, second by second for the last minute.
 *
 * Two rings, by the clock. Pure: values in, values out. Times without a note are 0; a clock that is put back adds to the
 * newest slot until it has caught up.
 */
#ifndef CORE_ALERTING_PACE_H
#define CORE_ALERTING_PACE_H

#include "base/instant.h"

#include <stdbool.h>
#include <stddef.h>

enum { PACE_MINUTES = 30, PACE_SECONDS = 60 };

struct pace_count {
    uint32_t good, bad;
};

/* All zero: nothing noted. */
struct pace {
    struct pace_count minutes[PACE_MINUTES], seconds[PACE_SECONDS];
    int64_t newest_minute, newest_second; /* of the last note, since 1970 */
};

void pace_note(struct pace *pace, instant now, bool good);
/* The minutes up to and with the one of `now`, oldest first: PACE_MINUTES of them. */
void pace_read(const struct pace *pace, instant now, struct pace_count ret_minutes[PACE_MINUTES]);
/* Of the last 60 seconds, the one of `now` among them. */
struct pace_count pace_last_minute(const struct pace *pace, instant now);

#endif
