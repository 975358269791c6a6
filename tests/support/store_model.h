/*
 * store_model.h - a store as simple as it can be: lists, and a walk over all of them for every question.
 *
 * It does to itself what a store must do with the same operation, and says what the results must be. What only the
 * store can choose (seq, lane, token, made id) it learns from the store's answer.
 */
#ifndef SUPPORT_STORE_MODEL_H
#define SUPPORT_STORE_MODEL_H

#include "support/store_fixture.h"

enum { MODEL_DESTINATIONS = 3, MODEL_TENANTS = 3, MODEL_LANES = MODEL_DESTINATIONS * MODEL_TENANTS, MODEL_CLAIM_MAX = 8 };

extern const char *const model_destinations[MODEL_DESTINATIONS];
extern const char *const model_tenants[MODEL_TENANTS];

/* Numbers in order of arrival; its texts live as long as the model. */
struct model_job {
    struct job job; /* .lane is an index here; .last_error without data: some text, any */
    char id[JOB_ID_MADE_BYTES + 1];
    struct slice body; /* the payload of the insert */
    int64_t session; /* of the model that claimed it last; INT64_MAX: a worker did */
    instant forget_at;
    int64_t token; /* the last one learned, good or stale */
    bool exists;
    bool ready;
    bool token_known;
    bool chosen; /* by the promotion under way */
};

struct model_event {
    struct event event; /* .number, .at, .type, .state, .attempt, .destination, .data, .previous */
    size_t job;         /* MODEL_NONE: of no job */
};

#define MODEL_NONE ((size_t)-1)

struct model {
    struct model_job *jobs;
    size_t job_count;
    struct model_event *events; /* event number n is events[n - 1] */
    size_t event_count, event_capacity;
    size_t trimmed; /* so many of the first are gone */
    struct {
        int64_t id; /* 0: not learned */
        int64_t completed, cancelled;
        int64_t completed_before, cancelled_before; /* it was forgotten: then it may count anew */
    } lanes[MODEL_LANES];
    struct slice states[MODEL_DESTINATIONS];
    int64_t pending_max;
    int64_t session;
    bool turns; /* as store_under_test has it */
    instant now;
};

/* What the store must answer. */
struct expected {
    enum status status;
    size_t job; /* inserted, or meant by its name */
    size_t exported; /* what a dead letter became; MODEL_NONE: nothing */
    bool existed;
    bool released; /* another of its key took its place, and is ready */
    size_t claimed[MODEL_CLAIM_MAX]; /* or due to be exported */
    size_t count; /* claimed, orphaned, trimmed */
    struct op_promote promote;
    int64_t ready[MODEL_LANES], dead[MODEL_LANES];
};

void model_init(struct model *model, instant now, int64_t pending_max);
void model_release(struct model *model);

/* Does `op` and says what must come of it. `op` names lanes, jobs and tokens as the store does. */
void model_apply(struct model *model, const struct store_op *op, struct expected *expected);

/* Compares an operation's results, and learns what the store chose. */
void model_check_op(struct model *model, const struct store_op *op, const struct expected *expected);
/* Compares everything that a reader can see; of histories that of one job. */
void model_check_store(struct model *model, struct store_fixture *f, size_t history_of);

#endif
