/*
 * breaker.h - a circuit breaker: stops sending to a destination when too many sends fail or are too slow.
 *
 * Closed, it counts over a sliding window of time (tally.h), each job once. It opens when too many fail, of all and for more
 * than half of the tenants with calls, three different jobs at least: one job or one tenant never opens it for the others.
 * Open, it lets nothing through for a while. Half-open, it lets up to `probes` jobs through to look: the first that goes
 * well closes it; when all of them fail, or are never answered, it opens again for twice as long (outage.h: or looks
 * again soon). A job that is refused
 * for its own sake is a success of the destination.
 */
#ifndef CORE_OUTAGE_BREAKER_H
#define CORE_OUTAGE_BREAKER_H

#include "core/outage/tally.h"

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

enum { BREAKER_JOBS_MIN = 3 }; /* different ones that failed */

/* What outlives a restart. */
struct breaker_saved {
    enum breaker_state state;
    instant since;    /* when it came into this state */
    instant until; /* open: when looks may begin; half-open: when unanswered ones count as failed, INSTANT_NONE: none */
    int64_t openings; /* in a row, without closing */
};

struct breaker {
    struct breaker_saved saved;
    uint32_t epoch;                 /* one more at each change: it distinguishes answers to earlier sends */
    int64_t taken, bad;             /* half-open: looks, and those that failed */
    int64_t limit_ms;               /* half-open: how long the last of them may take */
    int64_t looks_soon;             /* half-open: in a row */
    instant look_at, used_look_at;  /* half-open: the next look; one with a job that has failed. INSTANT_NONE: now */
    struct tally tally;             /* closed */
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
struct breaker_answer breaker_ask(const struct breaker *breaker, const struct breaker_config *config, instant now);
/* When it has something to do, or to let through, by time alone; INSTANT_NONE: never. */
instant breaker_next(const struct breaker *breaker, instant now);
/* Time has passed: an open one becomes half-open, unanswered probes fail. */
struct breaker_change breaker_tick(struct breaker *breaker, const struct breaker_config *config, instant now);
/* `count` jobs were let through; half-open, they must be answered within `limit_ms`. */
void breaker_take(struct breaker *breaker, int64_t count, int64_t limit_ms, instant now);
/* They were not sent after all. `epoch` as it was when they were taken. */
void breaker_give_back(struct breaker *breaker, uint32_t epoch, int64_t count);
/* One that was let through in `epoch`, and how it went. */
struct breaker_call {
    uint32_t epoch;
    int64_t job, tenant; /* numbers from 1 */
    bool failed;
    bool away; /* criterion_away */
    int64_t latency_ms;
};
struct breaker_change breaker_note(struct breaker *breaker, const struct breaker_config *config,
                                   const struct breaker_call *call, instant now);
/* Closed, with nothing counted; whoever judged the destination otherwise. */
struct breaker_change breaker_reset(struct breaker *breaker, instant now);
/* After a restart. Probes that were under way are lost: it begins to probe anew. */
void breaker_restore(struct breaker *breaker, const struct breaker_config *config, const struct breaker_saved *saved,
                     instant now);

const char *breaker_state_name(enum breaker_state state); /* "closed", "open", "half_open" */

#endif
