#include "lib/decision_json.h"

#include "base/json.h"
#include "lib/decision_reason.h"
#include "lib/question.h"

#include <assert.h>

static const char *const problem_names[QUESTION_PROBLEM_COUNT] = {
    [QUESTION_OK] = "OK",
    [QUESTION_INVALID_JSON] = "INVALID_JSON",
    [QUESTION_UNKNOWN_POLICY] = "UNKNOWN_POLICY",
    [QUESTION_INVALID_ID] = "INVALID_ID",
    [QUESTION_INVALID_ERROR_MESSAGE] = "INVALID_ERROR_MESSAGE",
    [QUESTION_INVALID_RETRY_COUNT] = "INVALID_RETRY_COUNT",
    [QUESTION_INVALID_TIME] = "INVALID_TIME",
};

const char *question_problem_name(enum question_problem problem)
{
    assert(problem < QUESTION_PROBLEM_COUNT);
    return problem_names[problem];
}

const char *decision_error_code(enum verdict verdict)
{
    static const char *const codes[VERDICT_COUNT] = {
        [VERDICT_BLOCK] = "PERMANENT_ERROR",        [VERDICT_SPLIT] = "PERMANENT_ERROR",
        [VERDICT_PERMANENT] = "PERMANENT_ERROR",    [VERDICT_PARK] = "PERMANENT_ERROR",
        [VERDICT_EXHAUSTED] = "MAX_RETRIES_EXCEEDED", [VERDICT_EXPIRED] = "EXPIRED",
    };
    assert(verdict < VERDICT_COUNT);
    return codes[verdict];
}

enum status decision_time_parse(const struct policy *policy, struct slice text, instant *ret_at, struct error *err)
{
    instant at;
    enum status status = policy && policy->zone ? instant_parse_in(text, &policy->zone_rules, &at, err)
                                                : instant_parse(text, &at, err);
    if (status != STATUS_OK)
        return status;
    if (at < INSTANT_MIN || at > DECISION_NOW_MAX)
        return error_set(err, STATUS_INVALID, "time \"%.*s\" is outside the years 1 to 9998", SLICE_ARG(text));
    *ret_at = at;
    return STATUS_OK;
}

void decision_json_problem(enum question_problem problem, struct slice detail, struct buffer *out)
{
    assert(problem != QUESTION_OK);
    struct json_writer json = json_begin(out);
    json_member_text(&json, "error", question_problem_name(problem));
    json_member_string(&json, "detail", detail);
    json_object_end(&json);
}

/* What was added to the documents' own members. */
static void write_additions(struct json_writer *json, const struct decision *decision)
{
    json_member_text(json, "outcome", outcome_name(decision->outcome));
    json_member_text(json, "action", verdict_name(decision->verdict));
    json_member_given(json, "rule", decision->rule);
}

static void write_next(struct json_writer *json, const struct policy *policy, struct slice error,
                       const struct decision *decision)
{
    char reason[DECISION_REASON_BYTES_MAX];
    json_member_bool(json, "shouldRetry", decision_resends(decision));
    json_member_int(json, "retryCount", decision->retry_count);
    json_member_int(json, "maxRetries", policy->retry.retries_max);
    json_member_int(json, "backoffMinutes", (decision->delay_ms + MINUTE_MS / 2) / MINUTE_MS);
    json_member_int(json, "backoffMs", decision->delay_ms);
    json_member_instant(json, "nextRetryTime", decision->next_at);
    json_member_string(json, "retryReason", decision_reason(policy, decision, reason));
    json_member_text(json, "errorClassification", outcome_label(decision->outcome, decision->known));
    json_member_string(json, "originalError", error);
}

static void write_end(struct json_writer *json, const struct policy *policy, struct slice error,
                      const struct decision *decision)
{
    char reason[DECISION_REASON_BYTES_MAX];
    const char *code = decision_error_code(decision->verdict);
    json_member_bool(json, "shouldRetry", false);
    if (code)
        json_member_text(json, "errorCode", code);
    json_member_text(json, "errorClassification", outcome_label(decision->outcome, decision->known));
    json_member_int(json, "retryCount", decision->retry_count);
    json_member_int(json, "maxRetries", policy->retry.retries_max);
    json_member_string(json, "retryReason", decision_reason(policy, decision, reason));
    json_member_string(json, "originalError", error);
}

void decision_json_write(const struct policy *policy, struct slice error, const struct decision *decision,
                         struct buffer *out)
{
    struct json_writer json = json_begin(out);
    if (decision->next_at != INSTANT_NONE)
        write_next(&json, policy, error, decision);
    else
        write_end(&json, policy, error, decision);
    write_additions(&json, decision);
    json_object_end(&json);
}

static struct json_answer refuse(enum question_problem problem, const char *detail, struct buffer *out)
{
    decision_json_problem(problem, slice_from(detail), out);
    return (struct json_answer){ .problem = problem };
}

static struct json_answer refuse_id(const struct policy *policy, struct slice id, struct buffer *out)
{
    struct error err;
    const char *problem = policy_id_problem(policy, id);
    assert(problem);
    if (policy->id_pattern && !slice_is_blank(id) && id.len <= JOB_ID_BYTES_MAX)
        error_set(&err, STATUS_INVALID, "%s; policy %s wants %s", problem, policy->name,
                  policy->id_pattern_text);
    else
        error_set(&err, STATUS_INVALID, "%s; give one of 1 to 255 bytes, as id, claimId or --id", problem);
    return refuse(QUESTION_INVALID_ID, err.text, out);
}

struct json_answer decision_json_decide(const struct policy *policy, const struct decide_request *request,
                                        struct buffer *out)
{
    struct decision decision;
    switch (decide(policy, request, &decision)) {
    case PROBLEM_ID:
        return refuse_id(policy, request->id, out);
    case PROBLEM_ERROR_MESSAGE:
        return refuse(
            QUESTION_INVALID_ERROR_MESSAGE,
            "the error is missing or blank; give the text that the attempt ended with, as submissionError or --error", out);
    case PROBLEM_RETRY_COUNT:
        return refuse(QUESTION_INVALID_RETRY_COUNT,
                      "the retry count is negative; give a whole number from 0, as retryCount or --retry-count", out);
    case PROBLEM_NONE:
        break;
    }
    decision_json_write(policy, request->text, &decision, out);
    return (struct json_answer){ .problem = QUESTION_OK, .decision = decision };
}

struct json_answer decision_json_answer(const struct decider *decider, struct slice text, struct buffer *out)
{
    struct question question;
    struct error err;
    enum question_problem problem = question_read(decider, text, &question, &err);
    struct json_answer answer = problem == QUESTION_OK ? decision_json_decide(question.policy, &question.request, out)
                                                  : refuse(problem, err.text, out);
    if (answer.problem == QUESTION_OK && decider->store && decider->store->decided)
        decider->store->decided(decider->store->context, question.policy, &question.request, &answer.decision,
                                question.record);
    members_release(&question.members);
    return answer;
}
