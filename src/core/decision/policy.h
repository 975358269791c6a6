/*
 * policy.h - how a destination's failures are judged: the values that classify, backoff
 * and decide read. Made by config, constant afterwards, shared between threads.
 */
#ifndef CORE_DECISION_POLICY_H
#define CORE_DECISION_POLICY_H

#include "base/pattern.h"
#include "base/zone.h"
#include "core/decision/classify.h"
#include "core/decision/job.h"

enum {
    JOB_ID_BYTES_MAX = 255,
    REASON_TEMPLATE_BYTES_MAX = 96,
};

/* Where the bounds [floor, cap] are applied: see backoff.h. */
enum clamp {
    CLAMP_AFTER,
    CLAMP_BEFORE,
    CLAMP_SATURATE,
};

struct retry_policy {
    int64_t retries_max; /* retries after the first attempt */
    int64_t base_ms;
    double factor;
    int64_t floor_ms;
    int64_t cap_ms;
    double jitter; /* amplitude: 0.2 is -20% to +20% */
    enum clamp clamp;
    int64_t elapsed_max_ms;     /* from the first attempt to the last retry; 0: no limit */
    int64_t retry_after_max_ms; /* a destination's own wish is believed up to this */
    int64_t throttle_min_ms;    /* the shortest wait after "too fast" */
    bool throttled_spends;      /* whether "too fast" counts as an attempt */
    double delay_factor[PRIORITY_COUNT];
};

enum doubt_action {
    DOUBT_RESEND, /* the destination tolerates the same job twice */
    DOUBT_VERIFY, /* ask whether it arrived, then complete or resend */
    DOUBT_PARK,   /* set aside for a person */
};

struct policy {
    const char *name;
    struct retry_policy retry;
    struct classifier *classifier;
    enum outcome unknown; /* OUTCOME_TRANSIENT or OUTCOME_PERMANENT */
    enum doubt_action in_doubt;
    bool can_verify;            /* there is somebody to ask whether a job arrived */
    int64_t verify_after_ms;    /* not earlier than this after the doubtful send; 0: as a retry */
    int64_t poll_every_ms;      /* how long after an acceptance to ask how it was judged; 0: as a retry */
    struct pattern *id_pattern; /* NULL: any id */
    const char *id_pattern_text;
    const char *zone;         /* of times that have none; NULL: they are refused */
    struct zone zone_rules;   /* of that */
    const char *retry_reason; /* "Retry {n} of {max}": the words of retryReason; NULL: our own */
};

/* NULL when the id is right; else what is wrong with it, for a person. Ids are visible ASCII or UTF-8 of up to 255 bytes. */
const char *policy_id_problem(const struct policy *policy, struct slice id);

#endif
