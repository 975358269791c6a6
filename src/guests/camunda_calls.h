/*
 * camunda_calls.h - what is said to Camunda 7 and 8, and what they say.
 *
 * 8: jobs of the Orchestration Cluster's REST API (/v2/jobs). 7: external tasks (/external-task). Members that are not known
 * are ignored, keys are text.
 */
#ifndef GUESTS_CAMUNDA_CALLS_H
#define GUESTS_CAMUNDA_CALLS_H

#include "base/arena.h"
#include "base/buffer.h"
#include "config/config.h"

#include <jansson.h>

/* A job that was fetched; texts are in the arena that it was read with. */
struct camunda_job {
    struct slice key;
    int64_t retries; /* that Camunda has left; negative: it does not say */
    struct slice question; /* as decision_json.h has it; empty: it could not be made */
};

/* Fetches jobs of one type, waiting for them for `wait_ms`. */
void camunda_fetch(const struct camunda_config *camunda, const char *type, int64_t wait_ms, struct buffer *url,
                   struct buffer *body);

/* What was fetched; false: it is not what a Camunda says. Jobs beyond `max` are left out. */
bool camunda_fetched(const struct camunda_config *camunda, const char *policy, struct slice answer, struct arena *memory,
                     struct camunda_job *jobs, size_t max, size_t *ret_count);

/* How a job is answered. */
enum camunda_end {
    CAMUNDA_COMPLETE,
    CAMUNDA_ERROR,   /* a BPMN error */
    CAMUNDA_FAILURE, /* with retries left it is given out again, without any it is an incident */
};

struct camunda_answer {
    enum camunda_end end;
    json_t *decision; /* whose members become variables; NULL: none */
    const char *code; /* of a BPMN error */
    const char *text;
    int64_t retries, retry_ms; /* of a failure */
};
void camunda_answer(const struct camunda_config *camunda, const struct camunda_job *job, const struct camunda_answer *answer,
                    struct buffer *url, struct buffer *body);

enum camunda_verdict {
    CAMUNDA_TAKEN,
    CAMUNDA_GONE,  /* another worker answered, the lock is over, the process was cancelled: nothing to do */
    CAMUNDA_AGAIN, /* not now */
};
/* `status` is 0 where there was no answer. */
enum camunda_verdict camunda_verdict(long status);

#endif
