/*
 * decision_json.h - a question as a JSON object, its answer as another.
 *
 * `insist decide`, its --batch, the public library and POST /v1/decide all speak through
 * here, so that they give the same bytes. Members that are null count as absent, members
 * that are not known are ignored.
 *
 * The question:
 *     claimId or id       needed
 *     submissionError     needed, not blank
 *     retryCount          retries scheduled so far, a whole number; 0
 *     lastSubmissionTime  checked, not used
 *     firstSubmissionTime when the first attempt was, for max_elapsed
 *     policy              a preset or destination
 *     now                 the time of the decision
 *     code                "http:503"
 *     priority            critical, high, normal, or 1 to 3
 *     retryAfterMs        the wait that the destination asked for
 *     deadline            no try after it
 *     inDoubt             true: it was sent and no answer came
 *     doubted             true: an earlier attempt was in doubt
 *     seed                spreads the waits, 0
 *     tenant              whose job it is, for a decider with a store
 *     record              false: a decider that keeps what it decides keeps nothing of this
 *
 * When several things are wrong, one is answered: first the JSON text, then the policy, then
 * members of a wrong type or form, then a blank id, a blank error, a negative count.
 */
#ifndef LIB_DECISION_JSON_H
#define LIB_DECISION_JSON_H

#include "base/buffer.h"
#include "core/decision/decide.h"
#include "lib/policy_set.h"

#define DECISION_NOW_MAX (INSTANT_MAX - 366 * (instant)DAY_MS) /* later, the next try could have no date */

enum {
    DECISION_QUESTION_BYTES_MAX = 4 << 20,
    DECISION_ANSWER_BYTES_MAX = 32 << 20, /* a byte of the error may need six in the answer */
};

enum question_problem {
    QUESTION_OK = 0,
    QUESTION_INVALID_JSON,
    QUESTION_UNKNOWN_POLICY,
    QUESTION_INVALID_ID,
    QUESTION_INVALID_ERROR_MESSAGE,
    QUESTION_INVALID_RETRY_COUNT,
    QUESTION_INVALID_TIME,
    QUESTION_PROBLEM_COUNT
};

/* What a decider with a store adds; each may be NULL. */
struct decider_store {
    void *context;
    /* The retries that a job has had, where the question does not say; negative: there is no such job. */
    int64_t (*retry_count)(void *context, struct slice tenant, struct slice id);
    /* What was decided; `record` as the question has it. The question's texts live no longer than the call. */
    void (*decided)(void *context, const struct policy *policy, const struct decide_request *request,
                    const struct decision *decision, bool record);
};

/* Who answers. */
struct decider {
    const struct policy *policy; /* for questions that name none; NULL: they must */
    struct policy_set *policies; /* that a question may name; NULL: only `policy` by its own name */
    instant now;                 /* for questions that do not say; at most DECISION_NOW_MAX */
    const struct decider_store *store; /* NULL: the question is all there is */
};

struct json_answer {
    enum question_problem problem;
    struct decision decision; /* with QUESTION_OK */
};

/* Appends one JSON object, without a line end, whatever the question is. */
struct json_answer decision_json_answer(const struct decider *decider, struct slice question, struct buffer *out);

/* The same for a question that did not come as JSON. */
struct json_answer decision_json_decide(const struct policy *policy, const struct decide_request *request,
                                        struct buffer *out);

/* The answer's object for a decision that was made already; `error` is what it was made of. */
void decision_json_write(const struct policy *policy, struct slice error, const struct decision *decision,
                         struct buffer *out);

/* Writes {"error":...,"detail":...}. */
void decision_json_problem(enum question_problem problem, struct slice detail, struct buffer *out);

/* "INVALID_JSON"... */
const char *question_problem_name(enum question_problem problem);

/* "PERMANENT_ERROR", "MAX_RETRIES_EXCEEDED", "EXPIRED"; NULL: it is none of these errors. */
const char *decision_error_code(enum verdict verdict);

/* A time of a question: RFC 3339, in the years that a decision can be made in. The policy may know its zone; NULL: none. */
enum status decision_time_parse(const struct policy *policy, struct slice text, instant *ret_at,
                                struct error *err) MUST_CHECK;

#endif
