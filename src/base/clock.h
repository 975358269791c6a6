/*
 * clock.h - what time it is, for a process that must not see it go back.
 *
 * The system's clock is put right by people and by time services, in both directions. Here it goes on at the pace of the
 * monotonic clock: a step forward is followed, a step back is not; then this clock is ahead of the system's until that has
 * caught up or the process ends. Core must not include this.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/instant.h"

/* Never earlier than any answer before, in any thread. */
instant clock_now(void);
/* Nanoseconds and milliseconds that only grow, for measuring. */
int64_t clock_ticks_ns(void);
int64_t clock_ticks_ms(void);
/* Milliseconds since the machine was started: never set, and they go on while it sleeps. */
int64_t clock_boot_ms(void);

/* How far clock_now is ahead of the system's clock, which went back by so much; 0: it is not. */
int64_t clock_ahead_ms(void);
/* By how much the system's clock stepped forward within the last `within_ms`: that much of a measured time never passed. */
int64_t clock_stepped_ms(int64_t within_ms);
/* From now on it is `at` or later: what was stored must not lie ahead. */
void clock_not_before(instant at);

/* The system's clock as clock_now reads it, both in nanoseconds; NULL: the real one. For tests. */
struct clock_source {
    int64_t (*wall_ns)(void);
    int64_t (*steady_ns)(void);
};
void clock_use(const struct clock_source *source);

#endif
