/*
 * readings.h - figures that alerts are judged by: what share of jobs died, how the queue has grown, how full the store is.
 */
#ifndef CORE_ALERTING_READINGS_H
#define CORE_ALERTING_READINGS_H

#include "base/instant.h"

enum {
    SHARE_BUCKETS = 12,
    SHARE_LEAST = 100, /* ended jobs before a share means something */
    GROWTH_SAMPLES = 11,
    GROWTH_EVERY_MS = MINUTE_MS, /* the oldest is ten minutes old */
    GROWTH_LEAST = 100,          /* so many more jobs at least */
};

/* Jobs that ended in the last `window_ms`, and those of them that are dead. Another window begins anew. */
struct share_window {
    instant since; /* it is watched; INSTANT_NONE: not yet */
    int64_t window_ms;
    int64_t head; /* number of the newest bucket, counted from 1970 */
    struct {
        int64_t ended, dead;
    } buckets[SHARE_BUCKETS];
};
void share_add(struct share_window *window, int64_t window_ms, int64_t ended, int64_t dead, instant now);
struct share_window share_none(void);
/* 0 when fewer than SHARE_LEAST have ended; negative: not known yet, it is not watched for long enough. */
double share_dead(struct share_window *window, instant now);

/* How many waited, minute by minute. All zero: nothing is known. */
struct growth_window {
    size_t count;
    struct {
        instant at;
        int64_t pending;
    } samples[GROWTH_SAMPLES]; /* oldest first */
};
void growth_add(struct growth_window *window, int64_t pending, instant now);
/* So many would be abnormal now; 0: not known yet. */
double growth_limit(const struct growth_window *window, double times);

/* How full the store is; over 1: it refuses jobs. Negative `disk_free`: not known. */
#define STORE_FILL_REFUSES 1.01
struct store_fill {
    int64_t pending, pending_max;
    int64_t disk_free, disk_free_min; /* bytes */
};
double store_fill_share(const struct store_fill *fill);

#endif
