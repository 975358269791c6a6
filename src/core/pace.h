/*
 * pace.h - how many attempts succeeded and failed, minute by minute.
 *
 * A ring of the last PACE_MINUTES minutes, by the clock. Pure: values in, values out. Minutes without a note are 0; a
 * clock that is put back adds to the newest minute until it has caught up.
 */
#ifndef CORE_PACE_H
#define CORE_PACE_H

#include "base/instant.h"

#include <stdbool.h>
#include <stddef.h>

enum { PACE_MINUTES = 30 };

struct pace_minute {
    uint32_t good, bad;
};

/* All zero: nothing noted. */
struct pace {
    struct pace_minute ring[PACE_MINUTES];
    int64_t newest; /* the minute, since 1970, of the last note */
};

void pace_note(struct pace *pace, instant now, bool good);
/* The minutes up to and with the one of `now`, oldest first: PACE_MINUTES of them. */
void pace_read(const struct pace *pace, instant now, struct pace_minute ret_minutes[PACE_MINUTES]);
/* Of the last 60 seconds, as far as minutes tell: the one before counts by the part of it that they still cover. */
struct pace_minute pace_last_minute(const struct pace *pace, instant now);

#endif
