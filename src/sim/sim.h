/*
 * sim.h - the real engine in virtual time: jobs arrive by plan, a model answers, the clock jumps.
 *
 * Nothing sleeps and nothing runs in parallel: a day takes seconds, and the same settings give the same
 * result to the last byte.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "engine/engine.h"
#include "sim/backlog.h"
#include "sim/ledger.h"
#include "sim/model.h"

/* 2025-01-06T00:00:00Z: a Monday, so that a weekly maintenance window lies where a reader expects it. */
#define SIM_START INT64_C(1736121600000)

struct sim_settings {
    struct config *config;
    const struct destination_config *destination; /* of config */
    struct model_settings model;
    struct load_settings load;
    const struct backlog *backlog; /* there from the start; NULL: none */
    instant start;         /* 0: SIM_START */
    uint64_t seed;         /* of the engine's waits */
    int64_t settle_max_ms; /* how long after the last arrival the rest may take */
    int64_t attend_ms;     /* how long after a destination was paused a person resumes it */
};

/* How long nothing could be sent for one reason, to the step of the curves. */
struct sim_hold {
    const char *by; /* "breaker", "dead_full"...; NULL ends */
    int64_t ms;
};
enum { SIM_HOLDS_MAX = 15 };

struct sim_result {
    struct ledger ledger;
    struct model_figures model;
    struct engine_figures engine;
    struct sim_hold holds[SIM_HOLDS_MAX + 1];
    const char *mode;      /* in which it was at the start: "normal", "paused"... */
    int64_t backlog_count; /* of the ledger's jobs, the first ones */
    int64_t ended_ms; /* when nothing was left to do, or the time was over */
};

/* `store` is empty, and is closed by the caller. Release the result with sim_result_release. */
enum status sim_run(const struct sim_settings *settings, struct store *store, struct sim_result *ret_result,
                    struct error *err) MUST_CHECK;
void sim_result_release(struct sim_result *result);

#endif
