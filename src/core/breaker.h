/*
 * breaker.h - stops sending to a destination when too many sends fail or are too slow.
 *
 * Closed, it counts over a sliding window of time. Open, it lets nothing through for a while,
 * and nobody's attempts are spent. Half-open, it lets a few real jobs through: when as many as
 * `probes` go well it closes; when too many fail, or are never answered, it opens again for
 * twice as long. A job that is refused for its own sake is a success of the destination.
 *
 * The count is kept in a ring of buckets: fixed memory whatever the traffic.
 */
#ifndef CORE_BREAKER_H
#define CORE_BREAKER_H

#include "base/instant.h"

struct breaker_config {
    bool enabled;
    int64_t window_ms;
    int64_t min_calls;
    double failure_rate;
    int64_t slow_ms;
    double slow_rate;
    int64_t open_ms;
    int64_t open_max_ms;
    int64_t probes;
};

enum breaker_state {
    BREAKER_CLOSED,
    BREAKER_OPEN,
    BREAKER_HALF_OPEN,
};

enum { BREAKER_BUCKETS = 10 };

struct breaker_bucket {
    uint32_t calls, failed, slow;
};

/* What outlives a restart. */
struct breaker_kept {
    enum breaker_state state;
    instant since;    /* when it came into this state */
    instant until; /* open: when probing may begin; half-open: when unanswered probes count as failed, INSTANT_NONE: none */
    int64_t openings; /* in a row, without closing */
};

struct breaker {
    struct breaker_kept kept;
    uint32_t epoch;                 /* one more at each change: answers to earlier sends are told apart */
    int64_t taken, good, bad, slow; /* half-open: places taken by probes, and what came of them */
    int64_t limit_ms;               /* half-open: how long the last probes may take */
    int64_t head;                   /* number of the newest bucket, counted from 1970 */
    struct breaker_bucket buckets[BREAKER_BUCKETS];
};

/* A change to tell about, once. `from` equal to `to`: none. */
struct breaker_change {
    enum breaker_state from, to;
    instant at;
    instant until; /* of an opening */
};

struct breaker_answer {
    int64_t room;  /* INT64_MAX: no limit of the breaker's */
    instant until; /* when to ask again; INSTANT_NONE: when probes are answered */
};

void breaker_init(struct breaker *breaker, instant now);
struct breaker_answer breaker_ask(const struct breaker *breaker, const struct breaker_config *config);
/* Time has passed: an open one becomes half-open, unanswered probes fail. */
struct breaker_change breaker_tick(struct breaker *breaker, const struct breaker_config *config, instant now);
/* `count` jobs were let through; half-open, they must be answered within `limit_ms`. */
void breaker_take(struct breaker *breaker, int64_t count, int64_t limit_ms, instant now);
/* They were not sent after all. `epoch` as it was when they were taken. */
void breaker_give_back(struct breaker *breaker, uint32_t epoch, int64_t count);
/* What came of one that was let through in `epoch`. */
struct breaker_change breaker_note(struct breaker *breaker, const struct breaker_config *config, uint32_t epoch, bool failed,
                                   int64_t latency_ms, instant now);
/* Closed, with nothing counted; whoever judged the destination otherwise. */
struct breaker_change breaker_reset(struct breaker *breaker, instant now);
/* After a restart. Probes that were under way are lost: it begins to probe anew. */
void breaker_restore(struct breaker *breaker, const struct breaker_config *config, const struct breaker_kept *kept,
                     instant now);

const char *breaker_state_name(enum breaker_state state); /* "closed", "open", "half_open" */

#endif
