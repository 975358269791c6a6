/*
 * ledger.h - what became of every simulated job, and how the queue went meanwhile.
 *
 * It hears what happened in order of time; knows no engine and no clock. All times are milliseconds from
 * the start of the simulation.
 */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include "core/decision/policy.h"
#include "sim/model.h"

enum job_end {
    END_OPEN, /* not ended when the simulation did */
    END_COMPLETED,
    END_PERMANENT,
    END_EXHAUSTED,
    END_EXPIRED,
    END_IN_DOUBT,  /* set aside for a person */
    END_REFUSED,   /* the queue was full: never taken */
    END_COUNT
};

struct job_record {
    int64_t arrived_ms; /* negative: before the start */
    int64_t first_ms;    /* the first send */
    int64_t answered_ms; /* the last answer; -1: none */
    int64_t ended_ms;    /* -1: open */
    int32_t tenant;
    int32_t attempts; /* sends */
    int32_t retries;
    int32_t spent; /* retries of this generation: a redrive begins anew */
    unsigned char end; /* enum job_end */
    bool tried;        /* first_ms is known */
    bool there;        /* the destination has it */
    bool longest_wait; /* a wait of it was as long as the policy has */
};

/* One step of the curves. */
struct ledger_step {
    int64_t arrived, requests, delivered, failed, throttled, dead;
    int64_t queue; /* jobs that have not ended, at the end of the step */
};

enum { LEDGER_WAIT_PARTS = 10, LEDGER_HISTOGRAM = 12 };

struct ledger {
    const struct retry_policy *retry;
    struct job_record *jobs; /* in order of arrival */
    int64_t job_count, jobs_capacity;
    int64_t tenants;
    int64_t ends[END_COUNT];
    int64_t queue;
    int64_t step_ms;
    struct ledger_step *steps;
    size_t step_count, steps_capacity; /* the last step is the running one */
    bool failed;                       /* no memory */
    /* ---- waits ---- */
    int64_t wait_count, wait_sum_ms;
    int64_t wait_parts[LEDGER_WAIT_PARTS]; /* where in the spread each lay */
    int64_t wait_histogram[LEDGER_HISTOGRAM];
    /* Fairness: only tenants with jobs not yet tried, all through a step, compete. */
    int64_t *tenant_untried, *tenant_untried_before, *tenant_sent;
    double jain_sum;
    int64_t jain_steps;
};

enum status ledger_init(struct ledger *ledger, const struct retry_policy *retry, int64_t jobs, int64_t tenants,
                        int64_t step_ms) MUST_CHECK;
void ledger_release(struct ledger *ledger);

/* In order of arrival; the job's number, from 0. */
int64_t ledger_arrived(struct ledger *ledger, int64_t at_ms, int64_t tenant);
/* The same for a job that was there before the start, with what it had spent; `at_ms` and `first_ms` are not after 0. */
int64_t ledger_was_there(struct ledger *ledger, int64_t at_ms, int64_t tenant, int64_t first_ms, int64_t attempts,
                         int64_t retries);
void ledger_refused(struct ledger *ledger, int64_t job, int64_t at_ms);
/* `question`: about a job that was sent before. */
void ledger_sent(struct ledger *ledger, int64_t job, int64_t at_ms, bool question);
void ledger_answered(struct ledger *ledger, int64_t job, int64_t at_ms, enum model_answer answer);
/* Retry number `retry` of its generation is to come after the wait. */
void ledger_retry(struct ledger *ledger, int64_t job, int64_t retry, int64_t wait_ms, enum priority priority);
/* A job that had ended is open again. */
void ledger_redriven(struct ledger *ledger, int64_t job, int64_t at_ms);
void ledger_ended(struct ledger *ledger, int64_t job, int64_t at_ms, enum job_end end);
/* So many expired while they waited; which ones is said by ledger_expired_job, at the end. */
void ledger_expired(struct ledger *ledger, int64_t at_ms, int64_t count);
void ledger_expired_job(struct ledger *ledger, int64_t job, int64_t at_ms);

/* The upper bound of a part of the histogram of waits; INT64_MAX for the last. */
int64_t ledger_histogram_bound(int part);
/* A step of a round length that cuts `for_ms` into 150 to 300 pieces or so. */
int64_t ledger_step_for(int64_t for_ms);

#endif
