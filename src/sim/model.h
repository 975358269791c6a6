/*
 * model.h - what a simulation has outside of the engine: a destination that exists only as numbers (how long it takes and
 * what it answers), the work that arrives, and repeatable chance.
 *
 * Pure: no clock and no generator; time and the names of draws are given. It counts what it saw,
 * because what a destination suffers is half of what a simulation is about.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "core/decision/job.h"
#include "core/fairness/rate.h"

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_OUTAGES_MAX = 16 };

enum model_failure {
    MODEL_REFUSE,      /* no connection */
    MODEL_TIME_OUT,    /* no answer until the sender gives up */
    MODEL_UNAVAILABLE, /* answers that it is not available */
    MODEL_BLOCK,       /* refuses the credentials: a certificate has expired */
    MODEL_FAILURE_COUNT
};

/* Times are from the start of the simulation. */
struct model_outage {
    int64_t from_ms, to_ms;
    enum model_failure failure;
};

/* How it answers health checks. */
enum model_health {
    MODEL_HEALTH_TRUE,  /* unwell while it is down */
    MODEL_HEALTH_LYING, /* always well: something in front of it answers */
    MODEL_HEALTH_NONE,  /* nobody asks */
    MODEL_HEALTH_COUNT
};

struct model_settings {
    uint64_t seed;
    int64_t latency_ms; /* median */
    double spread;      /* of the latency's logarithm: 0 is always the median, 0.5 is usual, 1 is wild */
    int64_t timeout_ms; /* the sender's */
    double permanent; /* share of the jobs that it never takes */
    double transient, throttled, lost; /* shares of the other requests; lost: accepted, but the answer never came */
    double blocked;      /* likewise: its credentials were refused */
    enum model_health health;
    struct rate limit;   /* beyond it "too fast"; count 0: none */
    int64_t capacity;    /* requests at once before it collapses; 0: any number */
    struct model_outage outages[MODEL_OUTAGES_MAX];
    size_t outage_count;
};

enum model_answer {
    MODEL_OK,
    MODEL_TRANSIENT,
    MODEL_PERMANENT,
    MODEL_THROTTLED,
    MODEL_LOST,
    MODEL_REFUSED,
    MODEL_TIMED_OUT,
    MODEL_UNAVAILABLE_NOW,
    MODEL_BLOCKED,
    MODEL_ANSWER_COUNT
};

struct model_figures {
    int64_t requests;
    int64_t answers[MODEL_ANSWER_COUNT];
    int64_t during_outages;
    int64_t accepted;   /* jobs that it has, the answer lost or not */
    int64_t duplicates; /* jobs that it was given again although it had them */
    int64_t peak_second;
    int64_t peak_at_once;
    int64_t health_checks; /* not among the requests */
};

struct model {
    struct model_settings settings;
    struct rate_limiter limiter;
    int64_t at_once;
    int64_t second, second_count; /* the running one */
    struct model_figures figures;
};

struct model_request {
    int64_t at_ms; /* from the start; never earlier than the request before */
    int64_t job, attempt;
    bool had_before; /* the destination has this job already */
    bool question;   /* asks about a job; nothing is delivered */
};

struct model_reply {
    enum model_answer answer;
    int64_t takes_ms;
    int64_t retry_after_ms; /* negative: it did not say */
    bool accepted;          /* from now on the destination has the job */
};

/* An idle destination. */
void model_start(struct model *model, const struct model_settings *settings);
/* A request begins; model_done must follow when its time is over. */
struct model_reply model_begin(struct model *model, const struct model_request *request);
void model_done(struct model *model);

/* A health check: MODEL_OK, or how it fails. It takes no room and needs no model_done. */
struct model_reply model_check(struct model *model, int64_t at_ms);

/* "ok", "transient"...: for reports. */
const char *model_answer_name(enum model_answer answer);
/* "refuse", "timeout", "503", "blocked". False for a word that is none of them. */
bool model_failure_from_name(struct slice name, enum model_failure *ret_failure);
const char *model_failure_name(enum model_failure failure);
/* "true", "lying", "none". */
bool model_health_from_name(struct slice name, enum model_health *ret_health);

/*
 * ---- Load: the work that arrives: when, of which tenant, how urgent. ----
 *
 * Jobs arrive one in each slot of equal length, somewhere in it: their number is exact, their times are not even.
 */
struct load_settings {
    uint64_t seed;
    int64_t jobs;
    int64_t for_ms; /* they arrive in [0, for_ms) */
    int64_t tenants;
    double big_share; /* of tenant 0; the others share the rest evenly. 0: all the same */
    double critical, high; /* shares of the priorities; the rest is normal */
};

struct arrival {
    int64_t at_ms;
    int64_t tenant;
    enum priority priority;
};

/* The job of that number, from 0; later numbers never arrive earlier. */
struct arrival load_arrival(const struct load_settings *load, int64_t number);

/*
 * ---- Draws: chance that can be repeated, from a hash of a seed and of what they are for. ----
 *
 * A draw depends on nothing but its names, never on how many were made before: two runs that
 * differ in their policy still meet the same arrivals.
 */
enum draw_purpose {
    DRAW_ARRIVAL,
    DRAW_TENANT,
    DRAW_PRIORITY,
    DRAW_WRONG,
    DRAW_OUTCOME,
    DRAW_LATENCY,
    DRAW_LATENCY_ANGLE,
    DRAW_COLLAPSE,
};

struct draw {
    uint64_t seed;
    enum draw_purpose purpose;
    int64_t of;   /* the job */
    int64_t turn; /* its attempt */
};

/* Uniform in [0, 1). */
double draw_share(struct draw draw);
/* With mean 0 and deviation 1; `draw.purpose` is DRAW_LATENCY. */
double draw_normal(struct draw draw);

#endif
