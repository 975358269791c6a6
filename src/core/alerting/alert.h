/*
 * alert.h - which alerts stand, from a destination's figures and its limits.
 *
 * Pure. Each kind of alert has a shape that says when it begins and ends, so that it is raised
 * once and cleared once however its figure trembles:
 *   a state stands for as long as it is true;
 *   a level begins above its limit and ends when it has been under nine tenths of it for a minute;
 *   a count of jobs begins with the first, is reported again when it has grown tenfold or goes on after
 *   a quiet time, and ends when somebody has acknowledged it or none of the jobs is left; of jobs
 *   that did not die, after a quiet time.
 */
#ifndef CORE_ALERTING_ALERT_H
#define CORE_ALERTING_ALERT_H

#include "base/buffer.h"
#include "base/instant.h"

enum {
    ALERT_CLEAR_MS = MINUTE_MS,     /* under nine tenths for so long */
    ALERT_GROWN_MS = MINUTE_MS,     /* a count is not reported again sooner */
    ALERT_GROWN_TIMES = 10,         /* nor before it is so many times what was reported */
    ALERT_REASON_BYTES_MAX = 1024,
};

/* Thresholds of a destination. 0: never. */
struct alerts_config {
    int64_t pending;
    int64_t dead;
    int64_t dead_per_tenant;
    double dead_rate;
    int64_t dead_window_ms; /* of that */
    int64_t age_ms;
    double growth; /* times as many as ten minutes ago */
    int64_t breaker_open_ms;
    int64_t down_ms;
    int64_t quiet_ms; /* a count of jobs that goes on after this is reported again */
};

enum alert_severity {
    SEVERITY_INFO,
    SEVERITY_WARNING,
    SEVERITY_CRITICAL,
};

enum alert_kind {
    /* Of a destination. */
    ALERT_CONTINGENCY,
    ALERT_DOWN,
    ALERT_BREAKER_OPEN,
    ALERT_BLOCKED,
    ALERT_PENDING,
    ALERT_GROWTH,
    ALERT_AGE,
    ALERT_DEAD,
    ALERT_DEAD_LETTERS,
    ALERT_DEAD_RATE,
    ALERT_DEAD_FULL,
    ALERT_DEAD_EXPORT,
    ALERT_MAX_RETRIES_EXCEEDED,
    ALERT_PERMANENT_ERROR,
    ALERT_IN_DOUBT,
    ALERT_PARTIAL,
    ALERT_HEADERS_LEFT_OUT,
    ALERT_JOB_BLOCKED,
    /* Of a tenant at a destination. */
    ALERT_TENANT_BLOCKED,
    ALERT_DEAD_PER_TENANT,
    /* Of the daemon. */
    ALERT_EXPIRED,
    ALERT_STORE_FILLING,
    ALERT_STORE_NEARLY_FULL,
    ALERT_STORE_REFUSING,
    ALERT_STORE_DAMAGED,
    /* Of the daemon's sources. */
    ALERT_SOURCE_AWAY,
    ALERT_SOURCE_REJECTED,
    ALERT_REDIS_FILLING,
    ALERT_REDIS_NEARLY_FULL,
    ALERT_REDIS_REFUSING,
    ALERT_REDIS_UNSAFE,
    /* Of nodes that share a store. */
    ALERT_NODE_GONE,
    ALERT_NODES_DIFFER,
    ALERT_HEAD_MISSING,
    ALERT_KIND_COUNT
};

/* The value of ALERT_BLOCKED when only the second address is held; 1 when the destination is. */
enum { ALERT_SECOND_ADDRESS = 2 };

enum alert_shape {
    ALERT_STATE,
    ALERT_LEVEL,
    ALERT_COUNT,
};

enum alert_measure {
    MEASURE_NONE,
    MEASURE_JOBS,
    MEASURE_MS,
    MEASURE_SHARE,
};

/* One row a kind: the engine, the configuration's check and docs/alerts.md's test read this table. */
struct alert_type {
    const char *name; /* stable */
    enum alert_severity severity;
    enum alert_shape shape;
    enum alert_measure measure; /* of value and limit */
    bool of_tenant;
    const char *title; /* "contingency": what is over when it is over */
};
extern const struct alert_type alert_types[ALERT_KIND_COUNT];

const char *alert_severity_name(enum alert_severity severity);
/* ALERT_KIND_COUNT: none of that name. */
enum alert_kind alert_kind_from_name(struct slice name);
/* Of a dead letter by its code, "PERMANENT_ERROR"...; ALERT_KIND_COUNT: none is about a single one. */
enum alert_kind alert_kind_of_dead(struct slice dead_code);
/*
 * Whether it ends when it is acknowledged: those about dead letters, rejected entries and a store that is damaged or not
 * whole. Others are marked so, and stand while they are true.
 */
bool alert_ends_by_hand(enum alert_kind kind);
/* Whether a word of notify's `on` means this kind: its name, its severity, or `all`. */
bool alert_matches(enum alert_kind kind, struct slice word);
/* Whether it can mean any. */
bool alert_word_is_known(struct slice word);

/* What is read now. */
struct alert_reading {
    bool watched;  /* false: it ends if it stands */
    bool excused;  /* it is not raised now, but goes on if it stands */
    double value;  /* of a count: how many came since the last time */
    double limit;  /* of a count: the quiet time in ms */
    bool gone;     /* of a count: none of the jobs is left */
};

/* How one alert stands. All zero with instants INSTANT_NONE: it does not. */
struct alert_state {
    bool stands;
    instant raised_at;
    instant low_since;   /* of a level: under nine tenths since; INSTANT_NONE: it is not */
    int64_t count, reported; /* of a count: all, and as reported last */
    instant last_at;     /* the last one came */
    instant reported_at;
};

enum alert_step {
    ALERT_SAME,
    ALERT_RAISED,
    ALERT_GROWN,
    ALERT_CLEARED,
    ALERT_ACKNOWLEDGED, /* somebody knows; it stands */
    ALERT_REFRESHED,    /* its figure is another: no news, only for who looks */
};

struct alert_state alert_state_none(void);
/* Whether that is news, once. A clock that was put back never clears one early. */
enum alert_step alert_judge(enum alert_kind kind, const struct alert_reading *reading, struct alert_state *state,
                            instant now);

/* A sentence for people. Texts may be empty. */
struct alert_facts {
    enum alert_kind kind;
    enum alert_step step;
    struct slice destination, tenant, reason;
    double value, limit;
    int64_t count;
    int64_t lasted_ms; /* of one that is over */
    bool acked;             /* by somebody, */
    struct slice acked_by;  /* who has a name */
};
void alert_summary(const struct alert_facts *facts, struct buffer *out);

#endif
