/*
 * contingency.h - the mode of a destination: normal, contingency, recovering, normal.
 *
 * In contingency jobs are held. Every so often, and at once when its health check goes well
 * again, it is looked whether the destination is back; without a health check one real job is
 * the look: one that has not failed in this outage, else another at twice the last interval, up
 * to ten of them. One look that goes well is enough. Recovering lets through one go of jobs a
 * step, each larger than the one before and only after that was answered; after the last step,
 * when it has been well for a while, the mode is normal again. A go that fails steps back one
 * step, a second one in a row goes back to contingency (invariants 4 and 8).
 *
 * A go fails when more than half of its jobs do, three at least, or all when it has fewer: jobs
 * that fail for their own sake do not make an outage, and without this rule never end one.
 *
 * Who looks and who goes first on the way back is not decided here but by the engine; what a
 * failure costs a job is in outage.h.
 *
 * Being paused by an operator is another matter, and the gate's.
 */
#ifndef CORE_OUTAGE_CONTINGENCY_H
#define CORE_OUTAGE_CONTINGENCY_H

#include "core/outage/health.h"
#include "core/outage/incident.h"
#include "core/outage/maintenance.h"
#include "core/outage/outage.h"

enum {
    RAMP_STEP_MS = 1000,    /* a step lasts at least this: a second sees at most one go */
    RAMP_SETBACKS_MAX = 2,  /* in a row: back to contingency */
    GO_FAILURES_MIN = 3,    /* fewer never fail a go, unless it has no more jobs */
    GO_JUDGED = 5,          /* without a ramp so many answers are judged together */
    LOOK_INTERVALS_MAX = 10 /* the longest interval between looks */
};

/* How it is set. Borrows. */
struct contingency_rules {
    bool enabled;          /* false: only an operator enters it */
    const int64_t *ramp;   /* growing */
    size_t ramp_count;     /* 0: no steps, only the time of stability */
    int64_t stable_ms;
    int64_t check_ms;
    const struct maintenance_window *windows;
    size_t window_count;
    bool single_event;     /* one sign is enough */
    bool has_health;       /* there is a health check; else a job is the check */
    int64_t answer_max_ms; /* a job let through must be answered within this */
};

/* What outlives a restart. */
struct contingency_saved {
    enum mode mode;
    enum cause cause;   /* of this mode */
    instant since;      /* of this mode */
    bool forced;        /* an operator entered it and must leave it */
    instant ignore_until; /* an operator left it in a maintenance window that lasts until then; INSTANT_NONE */
    instant check_at;   /* contingency: when to look again */
    instant looked_at;  /* contingency: when a job last looked; INSTANT_NONE: none has */
    int64_t look_ms;    /* contingency: the interval that ended then */
    size_t step;        /* recovering: index into the ramp; ramp_count: all steps are done */
    instant calm_since; /* recovering, after the last step: no failure since */
    struct incident incident; /* the present one, else the last */
};

struct contingency {
    struct contingency_saved saved;
    uint32_t epoch;           /* one more at each step: it distinguishes answers to earlier sends */
    instant watched_since;    /* nothing is known of what went before */
    int64_t signs_in_a_row;   /* normal: nothing good between */
    int64_t sign_job;         /* the job that showed the first of them, */
    bool sign_jobs;           /* and whether others did too */
    struct {
        int64_t job;
        instant at;
    } well[2]; /* the last job that went well, and the last other one; INSTANT_NONE: none since the start of the process */
    int64_t signs[CRITERION_COUNT];
    int64_t checks_failed;    /* normal: in a row */
    instant first_sign_at;    /* of that row */
    int64_t taken, good, bad; /* of this go, or of this check */
    int64_t away;             /* of the bad ones: criterion_away */
    int64_t setbacks;         /* in a row */
    instant answer_by;        /* unanswered ones of this go count as failed then; INSTANT_NONE: none */
    int64_t looks_soon;       /* in a row */
    int64_t used_in_vain;     /* looks in this outage by jobs that had failed in it, answered badly, since one went well */
    bool was_away;            /* in this outage nobody answered, or one went well: that somebody answers says something */
    instant go_at;            /* the go may not begin before */
    instant active_at;        /* recovering: last time something happened */
};

/* A change of mode to tell about, once. `from` equal to `to`: none. */
struct mode_change {
    enum mode from, to;
    enum cause cause;
    enum criterion criterion; /* the sign that led to it; CRITERION_NONE: none */
    instant at;
};

struct contingency_answer {
    int64_t room;     /* INT64_MAX: no limit of the mode's */
    bool maintenance; /* it is a window that holds */
    instant until;    /* when to ask again; INSTANT_NONE: when something changes */
};

void contingency_init(struct contingency *contingency, instant now);
/* `under_way` of the whole destination. Call contingency_tick first. */
struct contingency_answer contingency_ask(const struct contingency *contingency, const struct contingency_rules *rules,
                                          int64_t under_way, instant now);
/* When contingency_tick has something to do, after it was called for `now`; INSTANT_NONE: nothing by time alone. */
instant contingency_next(const struct contingency *contingency, const struct contingency_rules *rules, instant now);

/* What happens. Each gives the change that it brought. */

/* Time passed. `well`: the last health check was; `open`: nothing else holds the destination back. */
struct mode_change contingency_tick(struct contingency *contingency, const struct contingency_rules *rules, bool well,
                                    bool open, instant now);
/* A health check was answered, and what health_note made of it. */
struct mode_change contingency_health(struct contingency *contingency, const struct contingency_rules *rules, bool well,
                                      enum health_change change, instant now);
struct mode_change contingency_breaker(struct contingency *contingency, const struct contingency_rules *rules, instant now);
/* A job that was let through in `epoch`, and how it was answered. */
struct contingency_answered {
    uint32_t epoch;
    int64_t job;
    enum criterion criterion; /* CRITERION_NONE: well, as far as the destination goes */
    bool away;                /* criterion_away */
    bool used;                /* it had failed in this outage before */
};
struct mode_change contingency_note(struct contingency *contingency, const struct contingency_rules *rules,
                                    const struct contingency_answered *answered, instant now);
/* When a job may look that has failed in this outage already; INSTANT_NONE: not in contingency. */
instant contingency_used_look_at(const struct contingency *contingency, const struct contingency_rules *rules);

/* Whether another job went well since then. */
bool contingency_served(const struct contingency *contingency, int64_t job, instant since);

/* A job that used up its tries. */
struct contingency_end {
    int64_t job;
    instant failed_at; /* for the first time */
    bool away;         /* criterion_away of its last answer */
};
/*
 * It did so on an error that may pass. When only this job fails it is dead: something of another one went well since its
 * first failure, or it is alone and was judged, or the health check goes well. Else it is an outage: contingency is entered
 * and the job is to be held (*ret_keep). `failing`: the last health check failed; meaningless without one.
 */
struct mode_change contingency_exhausted(struct contingency *contingency, const struct contingency_rules *rules,
                                         bool failing, const struct contingency_end *end, instant now, bool *ret_keep);
struct mode_change contingency_enter(struct contingency *contingency, const struct contingency_rules *rules, instant now);
/* To recovering, whatever the checks say. */
struct mode_change contingency_leave(struct contingency *contingency, const struct contingency_rules *rules, instant now);

/* The destination is gone: what was known of how it is ends with it. */
struct mode_change contingency_remove(struct contingency *contingency, instant now);

void contingency_take(struct contingency *contingency, const struct contingency_rules *rules, int64_t count, instant now);
void contingency_give_back(struct contingency *contingency, uint32_t epoch, int64_t count);

/* For the incident's report: how many are held now; tries that were not spent. */
void contingency_held(struct contingency *contingency, int64_t jobs);
void contingency_unspent(struct contingency *contingency, int64_t tries);

/* After a restart: sends that were under way are lost, the present go or check begins anew. */
void contingency_restore(struct contingency *contingency, const struct contingency_rules *rules,
                         const struct contingency_saved *saved, instant now);

#endif
