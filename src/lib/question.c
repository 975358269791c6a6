#include "lib/question.h"

#include <assert.h>

enum { QUOTED_BYTES_MAX = 64 };

static const struct value *value_of(const struct question *question, enum member member)
{
    return &question->members.values[member];
}

/* The member's text; empty when it is absent. False when it is something else. */
static bool read_text(const struct question *question, enum member member, struct slice *ret_text, const char *wanted,
                      struct error *err)
{
    const struct value *value = value_of(question, member);
    if (value->kind != VALUE_TEXT && value->kind != VALUE_ABSENT) {
        error_set(err, STATUS_INVALID, "%s must be %s", member_name(member), wanted);
        return false;
    }
    *ret_text = value->kind == VALUE_TEXT ? value->text : SLICE("");
    return true;
}

static enum question_problem find_policy(const struct decider *decider, struct slice name, struct question *question,
                                         struct error *err)
{
    if (decider->policies)
        return policy_set_find(decider->policies, name, &question->policy, err) == STATUS_OK ? QUESTION_OK
                                                                                           : QUESTION_UNKNOWN_POLICY;
    const char *loaded = decider->policy ? decider->policy->name : "";
    if (slice_equal(name, slice_from(loaded)))
        return QUESTION_OK;
    error_set(err, STATUS_NOT_FOUND, "policy \"%.*s\" is not the one that is loaded, \"%s\"; leave it out or name that",
              (int)(name.len < QUOTED_BYTES_MAX ? name.len : QUOTED_BYTES_MAX), name.data, loaded);
    return QUESTION_UNKNOWN_POLICY;
}

static enum question_problem read_policy(const struct decider *decider, struct question *question, struct error *err)
{
    struct slice name;
    question->policy = decider->policy;
    if (!read_text(question, MEMBER_POLICY, &name, "a string: the name of a preset or destination", err))
        return QUESTION_UNKNOWN_POLICY;
    if (value_of(question, MEMBER_POLICY)->kind == VALUE_TEXT)
        return find_policy(decider, name, question, err);
    if (decider->policy)
        return QUESTION_OK;
    error_set(err, STATUS_INVALID, "no policy is given; name a preset or destination as policy");
    return QUESTION_UNKNOWN_POLICY;
}

static enum question_problem read_needed(struct question *question, struct error *err)
{
    struct decide_request *request = &question->request;
    bool claim = value_of(question, MEMBER_CLAIM_ID)->kind != VALUE_ABSENT;
    if (!read_text(question, claim ? MEMBER_CLAIM_ID : MEMBER_ID, &request->id, "a string", err))
        return QUESTION_INVALID_ID;
    if (!read_text(question, MEMBER_SUBMISSION_ERROR, &request->text, "a string", err))
        return QUESTION_INVALID_ERROR_MESSAGE;
    const struct value *count = value_of(question, MEMBER_RETRY_COUNT);
    if (count->kind != VALUE_INTEGER && count->kind != VALUE_ABSENT) {
        error_set(err, STATUS_INVALID, "retryCount must be a whole number from 0");
        return QUESTION_INVALID_RETRY_COUNT;
    }
    request->retry_count = count->integer;
    return QUESTION_OK;
}

/* Where a question leaves it out, a store may know how often the job was retried. */
static bool read_stored(const struct decider *decider, struct question *question, struct error *err)
{
    struct slice tenant;
    bool given = value_of(question, MEMBER_RETRY_COUNT)->kind != VALUE_ABSENT;
    enum value_kind record = value_of(question, MEMBER_RECORD)->kind;
    if (!read_text(question, MEMBER_TENANT, &tenant, "a string", err))
        return false;
    if (record != VALUE_ABSENT && record != VALUE_TRUE && record != VALUE_FALSE) {
        error_set(err, STATUS_INVALID, "record must be true or false");
        return false;
    }
    question->record = record != VALUE_FALSE;
    if (given || !decider->store || !decider->store->retry_count || slice_is_blank(question->request.id))
        return true;
    int64_t spent = decider->store->retry_count(decider->store->context, tenant, question->request.id);
    question->request.retry_count = spent > 0 ? spent : 0;
    return true;
}

/* Leaves *ret_at alone when the question has no such member. */
static bool read_time(const struct question *question, enum member member, instant *ret_at, struct error *err)
{
    struct error problem;
    struct slice text;
    if (!read_text(question, member, &text, "a string like \"2025-01-12T10:40:00Z\"", err))
        return false;
    if (value_of(question, member)->kind == VALUE_ABSENT ||
        decision_time_parse(question->policy, text, ret_at, &problem) == STATUS_OK)
        return true;
    error_set(err, STATUS_INVALID, "%s: %.400s", member_name(member), problem.text);
    return false;
}

static bool read_times(struct question *question, struct error *err)
{
    struct decide_request *request = &question->request;
    instant last_at; /* checked, not used */
    return read_time(question, MEMBER_NOW, &request->now, err) &&
           read_time(question, MEMBER_LAST_SUBMISSION_TIME, &last_at, err) &&
           read_time(question, MEMBER_FIRST_SUBMISSION_TIME, &request->first_at, err) &&
           read_time(question, MEMBER_DEADLINE, &request->deadline, err);
}

static bool read_count(const struct question *question, enum member member, int64_t *ret_value, struct error *err)
{
    const struct value *value = value_of(question, member);
    if (value->kind == VALUE_ABSENT)
        return true;
    if (value->kind != VALUE_INTEGER || value->integer < 0) {
        error_set(err, STATUS_INVALID, "%s must be a whole number from 0", member_name(member));
        return false;
    }
    *ret_value = value->integer;
    return true;
}

static bool read_flag(const struct question *question, enum member member, bool *ret_value, struct error *err)
{
    enum value_kind kind = value_of(question, member)->kind;
    if (kind != VALUE_ABSENT && kind != VALUE_TRUE && kind != VALUE_FALSE) {
        error_set(err, STATUS_INVALID, "%s must be true or false", member_name(member));
        return false;
    }
    *ret_value = kind == VALUE_TRUE;
    return true;
}

static bool read_priority(const struct question *question, enum priority *ret_priority, struct error *err)
{
    const struct value *value = value_of(question, MEMBER_PRIORITY);
    if (value->kind == VALUE_ABSENT)
        return true;
    bool digit = value->kind == VALUE_INTEGER && value->integer >= 1 && value->integer <= 9;
    char text = (char)('0' + (digit ? value->integer : 0));
    if (priority_from_name(value->kind == VALUE_TEXT ? value->text : (struct slice){ &text, 1 }, ret_priority))
        return true;
    error_set(err, STATUS_INVALID, "priority must be critical, high or normal");
    return false;
}

static bool read_rest(struct question *question, struct error *err)
{
    struct decide_request *request = &question->request;
    int64_t seed = 0;
    bool in_doubt;
    if (!read_text(question, MEMBER_CODE, &request->code, "a string like \"http:503\"", err) ||
        !read_priority(question, &request->priority, err) ||
        !read_count(question, MEMBER_RETRY_AFTER_MS, &request->retry_after_ms, err) ||
        !read_count(question, MEMBER_SEED, &seed, err))
        return false;
    request->seed = (uint64_t)seed;
    if (!read_flag(question, MEMBER_IN_DOUBT, &in_doubt, err) ||
        !read_flag(question, MEMBER_DOUBTED, &request->doubted, err))
        return false;
    request->outcome = in_doubt ? OUTCOME_IN_DOUBT : OUTCOME_NONE;
    return true;
}

enum question_problem question_read(const struct decider *decider, struct slice text, struct question *ret_question,
                                    struct error *err)
{
    assert(decider->now >= INSTANT_MIN && decider->now <= DECISION_NOW_MAX);
    ret_question->request = (struct decide_request){
        .priority = PRIORITY_NORMAL,
        .retry_after_ms = -1,
        .now = decider->now,
        .first_at = INSTANT_NONE,
        .deadline = INSTANT_NONE,
    };
    enum question_problem problem = members_read(text, &ret_question->members, err);
    if (problem == QUESTION_OK)
        problem = read_policy(decider, ret_question, err);
    if (problem == QUESTION_OK)
        problem = read_needed(ret_question, err);
    if (problem == QUESTION_OK && !read_times(ret_question, err))
        problem = QUESTION_INVALID_TIME;
    if (problem == QUESTION_OK && (!read_rest(ret_question, err) || !read_stored(decider, ret_question, err)))
        problem = QUESTION_INVALID_JSON;
    return problem;
}

void question_release(struct question *question)
{
    members_release(&question->members);
}
