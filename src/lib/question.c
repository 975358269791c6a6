#include "lib/question.h"

#include <assert.h>
#include <jansson.h>

enum { QUOTED_BYTES_MAX = 64 };

/* NULL for a member that is absent or null. */
static json_t *member(const struct question *question, const char *name)
{
    json_t *value = json_object_get(question->document, name);
    return json_is_null(value) ? NULL : value;
}

static struct slice text_of(const json_t *value)
{
    return (struct slice){ json_string_value(value), json_string_length(value) };
}

/*
 * Whether a number that ends at `end` is the value of `name` in the outermost object. Only
 * for text that jansson found right up to there.
 */
static bool number_belongs_to(struct slice text, size_t end, struct slice name)
{
    struct slice last = SLICE("");
    size_t depth = 0;
    for (size_t i = 0; i < end && i < text.len; i++) {
        char c = text.data[i];
        if (c == '{' || c == '[')
            depth++;
        else if (c == '}' || c == ']')
            depth--;
        if (c != '"')
            continue;
        size_t start = ++i;
        while (i < end && text.data[i] != '"')
            i += text.data[i] == '\\' ? 2 : 1;
        if (depth == 1 && i < end)
            last = (struct slice){ text.data + start, i - start };
    }
    return depth == 1 && slice_equal(last, name);
}

static enum question_problem parse(struct slice text, struct question *question, struct error *err)
{
    json_error_t error;
    if (text.len > DECISION_QUESTION_BYTES_MAX) {
        error_set(err, STATUS_LIMIT, "the question is longer than the limit of %d bytes; shorten submissionError",
                  DECISION_QUESTION_BYTES_MAX);
        return QUESTION_INVALID_JSON;
    }
    if (slice_is_blank(text)) {
        error_set(err, STATUS_INVALID, "the question is empty; give a JSON object");
        return QUESTION_INVALID_JSON;
    }
    question->document = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (question->document && json_is_object((json_t *)question->document))
        return QUESTION_OK;
    if (question->document) {
        error_set(err, STATUS_INVALID, "not a JSON object; write {\"claimId\":...,\"submissionError\":...}");
        return QUESTION_INVALID_JSON;
    }
    if (json_error_code(&error) == json_error_numeric_overflow &&
        number_belongs_to(text, (size_t)error.position, SLICE("retryCount"))) {
        error_set(err, STATUS_INVALID, "retryCount does not fit into 64 bits; give a whole number from 0");
        return QUESTION_INVALID_RETRY_COUNT;
    }
    error_set(err, STATUS_INVALID, "not valid JSON at byte %d: %s", error.position, error.text);
    return QUESTION_INVALID_JSON;
}

static enum question_problem read_policy(const struct decider *decider, struct question *question, struct error *err)
{
    json_t *value = member(question, "policy");
    question->policy = decider->policy;
    if (!value && decider->policy)
        return QUESTION_OK;
    if (!json_is_string(value)) {
        error_set(err, STATUS_INVALID, value ? "policy must be a string: the name of a preset or destination"
                                             : "no policy is given; name a preset or destination as policy");
        return QUESTION_UNKNOWN_POLICY;
    }
    struct slice name = text_of(value);
    if (decider->policies)
        return policy_set_find(decider->policies, name, &question->policy, err) == STATUS_OK ? QUESTION_OK
                                                                                           : QUESTION_UNKNOWN_POLICY;
    if (decider->policy && slice_equal(name, slice_from(decider->policy->name)))
        return QUESTION_OK;
    error_set(err, STATUS_NOT_FOUND, "policy \"%.*s\" is not the one that is loaded, \"%s\"; leave it out or name that",
              (int)(name.len < QUOTED_BYTES_MAX ? name.len : QUOTED_BYTES_MAX), name.data,
              decider->policy ? decider->policy->name : "");
    return QUESTION_UNKNOWN_POLICY;
}

static enum question_problem read_needed(struct question *question, struct error *err)
{
    json_t *id = member(question, "claimId");
    json_t *error = member(question, "submissionError");
    json_t *retry_count = member(question, "retryCount");
    if (!id)
        id = member(question, "id");
    if (id && !json_is_string(id)) {
        error_set(err, STATUS_INVALID, "claimId or id must be a string");
        return QUESTION_INVALID_ID;
    }
    if (error && !json_is_string(error)) {
        error_set(err, STATUS_INVALID, "submissionError must be a string");
        return QUESTION_INVALID_ERROR_MESSAGE;
    }
    if (retry_count && !json_is_integer(retry_count)) {
        error_set(err, STATUS_INVALID, "retryCount must be a whole number from 0");
        return QUESTION_INVALID_RETRY_COUNT;
    }
    question->request.id = id ? text_of(id) : SLICE("");
    question->request.text = error ? text_of(error) : SLICE("");
    question->request.retry_count = retry_count ? json_integer_value(retry_count) : 0;
    return QUESTION_OK;
}

/* Leaves *ret_at alone when the question has no such member. */
static bool read_time(const struct question *question, const char *name, instant *ret_at, struct error *err)
{
    struct error problem;
    json_t *value = member(question, name);
    if (!value)
        return true;
    if (!json_is_string(value)) {
        error_set(err, STATUS_INVALID, "%s must be a string like \"2025-01-12T10:40:00Z\"", name);
        return false;
    }
    if (decision_time_parse(text_of(value), ret_at, &problem) == STATUS_OK)
        return true;
    error_set(err, STATUS_INVALID, "%s: %.400s", name, problem.text);
    return false;
}

static bool read_times(struct question *question, struct error *err)
{
    struct decide_request *request = &question->request;
    instant last_at;
    return read_time(question, "now", &request->now, err) && read_time(question, "lastSubmissionTime", &last_at, err) &&
           read_time(question, "firstSubmissionTime", &request->first_at, err) &&
           read_time(question, "deadline", &request->deadline, err);
}

static bool read_count(const struct question *question, const char *name, int64_t *ret_value, struct error *err)
{
    json_t *value = member(question, name);
    if (!value)
        return true;
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        error_set(err, STATUS_INVALID, "%s must be a whole number from 0", name);
        return false;
    }
    *ret_value = json_integer_value(value);
    return true;
}

static bool read_flag(const struct question *question, const char *name, bool *ret_value, struct error *err)
{
    json_t *value = member(question, name);
    if (value && !json_is_boolean(value)) {
        error_set(err, STATUS_INVALID, "%s must be true or false", name);
        return false;
    }
    *ret_value = json_is_true(value);
    return true;
}

static bool read_priority(const struct question *question, enum priority *ret_priority, struct error *err)
{
    json_t *value = member(question, "priority");
    if (!value)
        return true;
    json_int_t number = json_integer_value(value); /* 0 when it is none */
    char digit = (char)('0' + (number >= 1 && number <= 9 ? number : 0));
    struct slice name = json_is_string(value) ? text_of(value) : (struct slice){ &digit, 1 };
    if (priority_from_name(name, ret_priority))
        return true;
    error_set(err, STATUS_INVALID, "priority must be critical, high or normal");
    return false;
}

static bool read_rest(struct question *question, struct error *err)
{
    struct decide_request *request = &question->request;
    json_t *code = member(question, "code");
    int64_t seed = 0;
    if (code && !json_is_string(code)) {
        error_set(err, STATUS_INVALID, "code must be a string like \"http:503\"");
        return false;
    }
    request->code = code ? text_of(code) : SLICE("");
    if (!read_priority(question, &request->priority, err) ||
        !read_count(question, "retryAfterMs", &request->retry_after_ms, err) || !read_count(question, "seed", &seed, err))
        return false;
    request->seed = (uint64_t)seed;
    bool in_doubt = false;
    if (!read_flag(question, "inDoubt", &in_doubt, err) || !read_flag(question, "doubted", &request->doubted, err))
        return false;
    request->outcome = in_doubt ? OUTCOME_IN_DOUBT : OUTCOME_NONE;
    return true;
}

enum question_problem question_read(const struct decider *decider, struct slice text, struct question *ret_question,
                                    struct error *err)
{
    assert(decider->now >= INSTANT_MIN && decider->now <= DECISION_NOW_MAX);
    *ret_question = (struct question){ .request = { .priority = PRIORITY_NORMAL,
                                                    .retry_after_ms = -1,
                                                    .now = decider->now,
                                                    .first_at = INSTANT_NONE,
                                                    .deadline = INSTANT_NONE } };
    enum question_problem problem = parse(text, ret_question, err);
    if (problem == QUESTION_OK)
        problem = read_policy(decider, ret_question, err);
    if (problem == QUESTION_OK)
        problem = read_needed(ret_question, err);
    if (problem == QUESTION_OK && !read_times(ret_question, err))
        problem = QUESTION_INVALID_TIME;
    if (problem == QUESTION_OK && !read_rest(ret_question, err))
        problem = QUESTION_INVALID_JSON;
    return problem;
}

void question_release(struct question *question)
{
    json_decref(question->document);
    question->document = NULL;
}
