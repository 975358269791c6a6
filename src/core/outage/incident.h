/*
 * incident.h - the modes of a destination, why they are entered, and what is recorded of one contingency.
 */
#ifndef CORE_OUTAGE_INCIDENT_H
#define CORE_OUTAGE_INCIDENT_H

#include "base/instant.h"
#include "core/outage/criterion.h"

enum mode {
    MODE_NORMAL,
    MODE_CONTINGENCY,
    MODE_RECOVERING,
    MODE_COUNT
};

/* Why a mode was entered. */
enum cause {
    CAUSE_NONE,
    /* Of contingency. */
    CAUSE_HEALTH,      /* enough checks in a row have failed */
    CAUSE_SIGNAL,      /* a single sign was enough, as configured */
    CAUSE_BREAKER,     /* the breaker opened */
    CAUSE_EXHAUSTED,   /* a job used up its tries, and nothing of another one went well meanwhile */
    CAUSE_MAINTENANCE, /* a window began; of recovering: it is over, and there was no job to look with */
    CAUSE_OPERATOR,    /* somebody wished it; of recovering too */
    CAUSE_RELAPSE,     /* it failed again on the way back */
    /* Of recovering. */
    CAUSE_CHECKED,       /* it is there again */
    CAUSE_CONFIGURATION, /* contingency is not in the configuration; of normal too */
    /* Of normal. */
    CAUSE_STABLE,  /* well for long enough */
    CAUSE_REMOVED, /* the destination is not in the configuration any more */
    CAUSE_COUNT
};

enum { RAMP_CURVE_MAX = 32 }; /* points that are recorded of one incident */

/* One contingency from its first sign to full restore, for the report. */
struct incident {
    instant first_sign_at;
    instant entered_at;
    instant recovering_at; /* the last time; INSTANT_NONE: not yet */
    instant restored_at;   /* INSTANT_NONE: not yet */
    enum cause cause;      /* of the first entry */
    enum criterion criterion;
    int64_t signs[CRITERION_COUNT];
    int64_t checks_failed; /* health checks, from those on that led to it */
    int64_t relapses;
    int64_t probes;   /* jobs that were sent to see whether it is back */
    int64_t held_max; /* most jobs held at once, as the caller said */
    int64_t unspent;  /* tries that jobs would have lost without contingency */
    struct {
        instant at;
        int64_t level;
    } curve[RAMP_CURVE_MAX]; /* level 0: held */
    size_t curve_count;      /* when full, the oldest but the first makes room */
};

/* From the first sign to full restore; negative: not restored. */
int64_t incident_recovery_ms(const struct incident *incident);

const char *mode_name(enum mode mode);    /* "normal", "contingency", "recovering" */
const char *cause_name(enum cause cause); /* "health", "signal"...; NULL for CAUSE_NONE */
enum mode mode_from_name(struct slice name);    /* MODE_COUNT: none of that name */
enum cause cause_from_name(struct slice name);  /* CAUSE_NONE: none of that name */

#endif
