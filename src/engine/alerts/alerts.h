/*
 * alerts.h - what people must know of: raised, saved, cleared, and sent to whoever notify names.
 *
 * Figures come from counters that are there: the engine's own, and the store's count of each
 * lane, read a page at a time. The jobs themselves are never looked at.
 *
 * An alert that begins, grows or ends is one transaction: its record, its event in the trail, and a
 * job for each entry of notify that wants it (notify.h). So it is sent exactly once, whatever crashes
 * in between, and is as durable as any job.
 */
#ifndef ENGINE_ALERTS_ALERTS_H
#define ENGINE_ALERTS_ALERTS_H

#include "core/alerting/age.h"
#include "core/alerting/readings.h"
#include "engine/alerts/alert_record.h"

enum {
    ALERTS_EVERY_MS = 10 * SECOND_MS, /* from one reading of the lanes to the next */
    ALERTS_PAGE = 500,                /* lanes read at once, */
    ALERTS_PAGE_MS = 20,              /* and no more for so long */
    ALERTS_MAX = 10000,               /* that stand at once */
    ALERTS_TENANTS_MAX = 100,         /* of one destination's tenants at once, of each kind */
    ALERTS_QUIET_MS = 15 * MINUTE_MS, /* of what belongs to no destination */
    ALERTS_AGE_SAVE_MS = MINUTE_MS,
    ALERTS_DIFFER_MS = MINUTE_MS, /* nodes are given other configurations one after the other */
};
#define DEAD_ACKED_ALL INT64_MAX /* as many as there are when all have been counted */

struct alert;
struct dest;
struct engine;
struct job;

/* A destination's jobs as the store counted them, without those that tell of alerts. */
struct alert_counts {
    int64_t open; /* pending, waiting and running */
    int64_t dead;
    int64_t completed, cancelled; /* ever */
};

/* What a destination has for its alerts. */
struct dest_alerts {
    bool due;                        /* something changed: judge it soon */
    bool counted;                    /* `counts` says something */
    uint64_t active;               /* bits of the kinds that stand, without tenants' */
    size_t tenants;                  /* alerts of its tenants */
    int64_t stand[ALERT_KIND_COUNT]; /* how many of each kind, its tenants' too */
    int64_t came[ALERT_KIND_COUNT];  /* of kinds that count jobs, not judged yet */
    int64_t died;                    /* since the last count */
    int64_t left;                    /* likewise, jobs that ended; when these had come, in sum */
    double left_created;
    instant breaker_since;           /* not closed since; INSTANT_NONE: it is */
    instant planned_until;           /* of this outage: a maintenance window was seen last; INSTANT_NONE: none */
    struct alert_counts counts, counting;
    int64_t acked;   /* dead letters that somebody has acknowledged, or that are left of them */
    bool acked_late; /* while they were being counted: that count may be of before */
    int unacked;     /* counts in a row that had more; one alone may have come before its own alert */
    struct backlog_age age;
    instant age_saved_at; /* in the store, */
    int64_t age_saved;    /* with so many jobs */
    struct share_window ended;
    struct growth_window growth;
};

void dest_alerts_init(struct dest_alerts *alerts);

/* What the rest of the engine tells. Of a job that tells of an alert nothing is noted. */
void alerts_job_dead(struct engine *engine, struct dest *dest, struct slice tenant, struct slice dead_code);
void alerts_jobs_expired(struct engine *engine, int64_t count);
/* A job was sent without a header that it has and may not set. */
void alerts_headers_left_out(struct engine *engine, struct dest *dest);
/* A read of the store failed. What is not damage says nothing. */
void alerts_store_failed(struct engine *engine, const struct error *err);
/* A job has ended; this is how it was claimed. */
void alerts_job_left(struct dest *dest, const struct job *job);

/* Judges what is due and writes what is new. After the settlements of this run, so that they share a transaction. */
void alerts_run(struct engine *engine);
instant alerts_next(const struct engine *engine);
/* Other thresholds, or another clock: look at all of it now. */
void alerts_look_again(struct engine *engine);

enum status alerts_new(struct engine *engine) MUST_CHECK;
void alerts_free(struct engine *engine);

#endif
