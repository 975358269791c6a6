/*
 * rate.h - how many may go now: a limit of so many per interval.
 *
 * The generic cell rate algorithm: one instant says until when what has been sent is paid for, each
 * job moves it on by interval / count. From rest `burst` jobs may go at once, after that one an
 * interval / count; any stretch of time sees at most burst + its length x count / interval.
 *
 * Exact for rates that do not divide their interval: fractions of a millisecond count.
 * A clock that jumps back costs at most the time that a whole burst takes, never the jump.
 */
#ifndef CORE_FAIRNESS_RATE_H
#define CORE_FAIRNESS_RATE_H

#include "base/instant.h"
#include "base/units.h"

/* More an interval than this, over a million a second, is no limit. */
#define RATE_COUNT_MAX INT64_C(100000000000)
#define RATE_BURST_MAX RATE_COUNT_MAX

struct rate_limiter {
    struct rate rate; /* count 0: no limit */
    int64_t burst;
    instant paid_until; /* INSTANT_NONE: nothing was sent */
    int64_t paid_part;  /* and so many count-ths of a millisecond */
};

/* The burst where none is configured: as many as are sent at once, or what a second brings, but no more than the count. */
int64_t rate_burst(struct rate rate, int64_t at_once);

/*
 * Intervals of up to a day. Up to `burst` go at once; 0: one interval's worth.
 * `saved` is what rate_save gave before a restart, or INSTANT_NONE.
 */
void rate_init(struct rate_limiter *limiter, struct rate rate, int64_t burst, instant saved);
/* Another rate from now on; what was sent still counts. */
void rate_configure(struct rate_limiter *limiter, struct rate rate, int64_t burst);
/* The one value to keep over a restart. It is rounded so that a restart never allows more. */
instant rate_save(const struct rate_limiter *limiter);

struct rate_answer {
    int64_t room; /* how many of those asked for may go now */
    instant at;   /* when all of them may, or a whole burst if they are more; now when they may now */
};
/* `count` is at least 1. Changes the limiter only when the clock was put back. */
struct rate_answer rate_ask(struct rate_limiter *limiter, instant now, int64_t count);
/* `count` go now: at most the room that rate_ask gives. */
void rate_take(struct rate_limiter *limiter, instant now, int64_t count);

/* How long sending `backlog` jobs takes at that rate, rounded up; 0 without a limit, INT64_MAX beyond all bounds. */
int64_t rate_drain_ms(struct rate rate, int64_t backlog);

#endif
