/*
 * camunda.h - answers the jobs of Camundas with decisions.
 *
 * A job is fetched with a lock, its variables are the question, the decision goes on record as that of POST /v1/decide does,
 * and only then is the job answered: completed with the decision as variables, or ended by a BPMN error or an incident. A
 * job that cannot be answered before its lock ends is given out again by Camunda, so none is lost; one may be decided twice.
 */
#ifndef GUESTS_CAMUNDA_H
#define GUESTS_CAMUNDA_H

#include "config/config.h"
#include "core/decision/decide.h"
#include "node/writer.h"

struct camunda_settings {
    struct config *config; /* a reference is taken */
    struct writer *writer;
    instant (*now)(void *context); /* from any thread */
    /* A decision was made, for the metrics; from any thread. */
    void (*on_decided)(void *context, const char *policy, const struct decision *decision, int64_t took_ns);
    void *context;
};

struct camunda;

/* Starts a thread for each type of each Camunda of the configuration. */
enum status camunda_start(const struct camunda_settings *settings, struct camunda **ret_camunda,
                          struct error *err) MUST_CHECK;
/* Takes no more jobs, and waits for nobody. */
void camunda_cease(struct camunda *camunda);
/*
 * `previous` is not wanted any more, after a reload or because one failed: it ceases, and is released with `camunda` at the
 * latest. It is never waited for here: a store that is away would hold up the caller.
 */
void camunda_follow(struct camunda *camunda, struct camunda *previous);
/* What is under way ends at once: its jobs are given out again. The writer must still run. Accepts NULL. */
void camunda_stop(struct camunda *camunda);

#endif
