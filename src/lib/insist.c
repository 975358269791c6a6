#include "insist.h"

#include "core/decision/backoff.h"
#include "lib/decision_json.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES_MAX = 64 << 10 };

struct insist_policy {
    struct config *config;
    const struct policy *policy; /* inside the configuration */
};

/* The public numbers are a contract; the inner ones may move only together with these. */
_Static_assert((int)INSIST_OUTCOME_DELIVERED == (int)OUTCOME_DELIVERED &&
                   (int)INSIST_OUTCOME_IN_DOUBT == (int)OUTCOME_IN_DOUBT &&
                   (int)INSIST_OUTCOME_PARTIAL == (int)OUTCOME_PARTIAL && OUTCOME_COUNT == INSIST_OUTCOME_PARTIAL + 1,
               "outcomes");
_Static_assert((int)INSIST_ACTION_COMPLETE == (int)VERDICT_COMPLETE && (int)INSIST_ACTION_BLOCK == (int)VERDICT_BLOCK &&
                   (int)INSIST_ACTION_PARK == (int)VERDICT_PARK && VERDICT_COUNT == INSIST_ACTION_PARK + 1,
               "actions");
_Static_assert((int)INSIST_PRIORITY_CRITICAL == (int)PRIORITY_CRITICAL + 1 &&
                   (int)INSIST_PRIORITY_NORMAL == (int)PRIORITY_NORMAL + 1,
               "priorities");

static const char *const status_texts[] = {
    [INSIST_OK] = "done",
    [INSIST_INVALID] = "an argument or the configuration is wrong",
    [INSIST_NOT_FOUND] = "nothing has that name",
    [INSIST_LIMIT] = "too large",
    [INSIST_NO_MEMORY] = "out of memory",
    [INSIST_IO] = "the system refused to read",
    [INSIST_INVALID_ID] = "the id is blank, too long, or not of the form the policy asks",
    [INSIST_INVALID_ERROR_MESSAGE] = "the error message is blank",
    [INSIST_INVALID_RETRY_COUNT] = "the retry count is negative",
    [INSIST_INVALID_TIME] = "the time is outside the years 1 to 9998",
};

const char *insist_version(void)
{
    return INSIST_VERSION;
}

const char *insist_status_text(int status)
{
    bool known = status >= 0 && (size_t)status < sizeof status_texts / sizeof *status_texts;
    return known ? status_texts[status] : "unknown status";
}

const char *insist_outcome_name(int outcome)
{
    return outcome > OUTCOME_NONE && outcome < OUTCOME_COUNT ? outcome_name((enum outcome)outcome) : "none";
}

const char *insist_action_name(int action)
{
    return action >= 0 && action < VERDICT_COUNT ? verdict_name((enum verdict)action) : "none";
}

static int public_status(enum status status)
{
    switch (status) {
    case STATUS_OK:
        return INSIST_OK;
    case STATUS_NOT_FOUND:
        return INSIST_NOT_FOUND;
    case STATUS_LIMIT:
        return INSIST_LIMIT;
    case STATUS_NO_MEMORY:
        return INSIST_NO_MEMORY;
    case STATUS_IO:
        return INSIST_IO;
    default:
        return INSIST_INVALID;
    }
}

/* Copies what fits and returns the status, for `return fail(...)`. */
static int fail(int status, struct slice text, char *message, size_t message_bytes)
{
    if (!message || message_bytes == 0)
        return status;
    if (text.len == 0)
        text = slice_from(insist_status_text(status));
    size_t len = text.len < message_bytes ? text.len : message_bytes - 1;
    memcpy(message, text.data, len);
    message[len] = '\0';
    return status;
}

/* The destination of that name, or the only one. NULL: `problems` says why. */
static const struct destination_config *pick(const struct config *config, const char *name, struct buffer *problems)
{
    if (name) {
        const struct destination_config *found = config_destination(config, slice_from(name));
        if (!found)
            buffer_printf(problems, "no destination is called \"%.64s\"", name);
        return found;
    }
    if (config->destination_count == 1)
        return &config->destinations[0];
    buffer_printf(problems, "the configuration has %zu destinations; name one", config->destination_count);
    return NULL;
}

/* Makes the handle of a loaded configuration, which it takes in any case; `status` is of the loading. */
static int finish_load(enum status status, struct config *config, const char *destination, struct buffer *problems,
                       struct insist_policy **ret_policy, char *message, size_t message_bytes)
{
    int result = public_status(status);
    if (status == STATUS_OK) {
        const struct destination_config *found = pick(config, destination, problems);
        struct insist_policy *handle = found ? malloc(sizeof *handle) : NULL;
        if (handle) {
            *handle = (struct insist_policy){ .config = config, .policy = &found->policy };
            *ret_policy = handle;
            config = NULL; /* the handle owns it now */
        } else {
            result = found ? INSIST_NO_MEMORY : INSIST_NOT_FOUND;
        }
    }
    if (result != INSIST_OK)
        fail(result, buffer_slice(problems), message, message_bytes);
    config_unref(config);
    buffer_release(problems);
    return result;
}

int insist_policy_from_preset(const char *name, struct insist_policy **ret_policy, char *message, size_t message_bytes)
{
    if (!ret_policy)
        return INSIST_INVALID;
    *ret_policy = NULL;
    struct error err;
    struct slice text;
    enum status status = preset_text(slice_from(name), &text, &err);
    if (status != STATUS_OK)
        return fail(public_status(status), slice_from(err.text), message, message_bytes);

    struct buffer problems = buffer_up_to(MESSAGE_BYTES_MAX);
    struct config *config = NULL;
    status = config_preset(slice_from(name), &config, &problems);
    return finish_load(status, config, NULL, &problems, ret_policy, message, message_bytes);
}

int insist_policy_from_file(const char *path, const char *destination, struct insist_policy **ret_policy, char *message,
                            size_t message_bytes)
{
    if (!ret_policy)
        return INSIST_INVALID;
    *ret_policy = NULL;
    if (!path)
        return fail(INSIST_INVALID, SLICE("no path is given"), message, message_bytes);
    struct buffer problems = buffer_up_to(MESSAGE_BYTES_MAX);
    struct config *config = NULL;
    enum status status = config_load(path, &config, &problems);
    return finish_load(status, config, destination, &problems, ret_policy, message, message_bytes);
}

int insist_policy_from_yaml(const char *yaml, size_t yaml_len, const char *destination, struct insist_policy **ret_policy,
                            char *message, size_t message_bytes)
{
    if (!ret_policy)
        return INSIST_INVALID;
    *ret_policy = NULL;
    if (!yaml)
        return fail(INSIST_INVALID, SLICE("no text is given"), message, message_bytes);
    struct buffer problems = buffer_up_to(MESSAGE_BYTES_MAX);
    struct config *config = NULL;
    enum status status = config_parse((struct slice){ yaml, yaml_len }, "text", &config, &problems);
    return finish_load(status, config, destination, &problems, ret_policy, message, message_bytes);
}

void insist_policy_free(struct insist_policy *policy)
{
    if (!policy)
        return;
    config_unref(policy->config);
    free(policy);
}

const char *insist_policy_name(const struct insist_policy *policy)
{
    return policy ? policy->policy->name : "";
}

int64_t insist_policy_retries_max(const struct insist_policy *policy)
{
    return policy ? policy->policy->retry.retries_max : 0;
}

/* Callers of other languages pass NULL for empty text. */
static struct slice text_slice(const char *data, size_t len)
{
    return data ? (struct slice){ data, len } : SLICE("");
}

static bool priority_from_public(int number, enum priority *ret_priority)
{
    if (number < INSIST_PRIORITY_DEFAULT || number > INSIST_PRIORITY_NORMAL)
        return false;
    *ret_priority = number == INSIST_PRIORITY_DEFAULT ? PRIORITY_NORMAL : (enum priority)(number - 1);
    return true;
}

int insist_classify(const struct insist_policy *policy, const char *code, size_t code_len, const char *error,
                    size_t error_len, struct insist_class *ret_class)
{
    if (!policy || !ret_class || ret_class->size < sizeof *ret_class)
        return INSIST_INVALID;
    struct evidence evidence = { text_slice(code, code_len), text_slice(error, error_len) };
    if (slice_is_blank(evidence.code) && slice_is_blank(evidence.text))
        return INSIST_INVALID_ERROR_MESSAGE;
    struct classification found = classify(policy->policy->classifier, evidence);
    bool known = found.outcome != OUTCOME_NONE;
    enum outcome outcome = known ? found.outcome : policy->policy->unknown;
    *ret_class = (struct insist_class){
        .size = sizeof *ret_class,
        .outcome = (int32_t)outcome,
        .known = known,
        .label = outcome_label(outcome, known),
        .rule = known ? found.rule.data : NULL,
        .rule_len = known ? found.rule.len : 0,
    };
    return INSIST_OK;
}

int insist_backoff_range(const struct insist_policy *policy, int64_t retry, int priority, int64_t *ret_low_ms,
                         int64_t *ret_high_ms)
{
    enum priority inner;
    if (!policy || !ret_low_ms || !ret_high_ms || !priority_from_public(priority, &inner))
        return INSIST_INVALID;
    if (retry < 1)
        return INSIST_INVALID_RETRY_COUNT;
    struct backoff_range range = backoff_range(&policy->policy->retry, retry, inner);
    *ret_low_ms = range.low_ms;
    *ret_high_ms = range.high_ms;
    return INSIST_OK;
}

int insist_backoff_ms(const struct insist_policy *policy, uint64_t seed, const char *id, size_t id_len, int64_t retry,
                      int priority, int64_t *ret_wait_ms)
{
    enum priority inner;
    if (!policy || !ret_wait_ms || !priority_from_public(priority, &inner))
        return INSIST_INVALID;
    if (retry < 1)
        return INSIST_INVALID_RETRY_COUNT;
    *ret_wait_ms = backoff_ms(&policy->policy->retry, seed, text_slice(id, id_len), retry, inner);
    return INSIST_OK;
}

static bool time_is_usable(int64_t at)
{
    return at >= INSTANT_MIN && at <= DECISION_NOW_MAX;
}

static int request_from_question(const struct insist_question *question, struct decide_request *ret_request)
{
    enum priority priority;
    if (!priority_from_public(question->priority, &priority))
        return INSIST_INVALID;
    if (!time_is_usable(question->now_ms) || !time_is_usable(question->first_at_ms) ||
        !time_is_usable(question->deadline_ms))
        return INSIST_INVALID_TIME;
    *ret_request = (struct decide_request){
        .id = text_slice(question->id, question->id_len),
        .code = text_slice(question->code, question->code_len),
        .text = text_slice(question->error, question->error_len),
        .outcome = (question->flags & INSIST_FLAG_IN_DOUBT) != 0 ? OUTCOME_IN_DOUBT : OUTCOME_NONE,
        .doubted = (question->flags & INSIST_FLAG_DOUBTED) != 0,
        .retry_count = question->retry_count,
        .priority = priority,
        .retry_after_ms = question->retry_after_ms > 0 ? question->retry_after_ms : -1,
        .now = question->now_ms,
        .first_at = question->first_at_ms != 0 ? question->first_at_ms : INSTANT_NONE,
        .deadline = question->deadline_ms != 0 ? question->deadline_ms : INSTANT_NONE,
        .seed = question->seed,
    };
    return INSIST_OK;
}

int insist_decide(const struct insist_policy *policy, const struct insist_question *question,
                  struct insist_decision *ret_decision)
{
    static const int problems[] = {
        [PROBLEM_NONE] = INSIST_OK,
        [PROBLEM_ID] = INSIST_INVALID_ID,
        [PROBLEM_ERROR_MESSAGE] = INSIST_INVALID_ERROR_MESSAGE,
        [PROBLEM_RETRY_COUNT] = INSIST_INVALID_RETRY_COUNT,
    };
    if (!policy || !question || question->size < sizeof *question || !ret_decision ||
        ret_decision->size < sizeof *ret_decision)
        return INSIST_INVALID;
    struct decide_request request;
    struct decision decision;
    int status = request_from_question(question, &request);
    if (status == INSIST_OK)
        status = problems[decide(policy->policy, &request, &decision)];
    if (status != INSIST_OK)
        return status;

    *ret_decision = (struct insist_decision){
        .size = sizeof *ret_decision,
        .action = (int32_t)decision.verdict,
        .outcome = (int32_t)decision.outcome,
        .known = decision.known,
        .should_retry = decision_resends(&decision),
        .retry_count = decision.retry_count,
        .retries_max = policy->policy->retry.retries_max,
        .delay_ms = decision.delay_ms,
        .next_at_ms = decision.next_at == INSTANT_NONE ? INSIST_NO_TIME : decision.next_at,
        .rule = decision.rule.len > 0 ? decision.rule.data : NULL,
        .rule_len = decision.rule.len,
    };
    return INSIST_OK;
}

int insist_decide_json(const struct insist_policy *policy, const char *question, size_t question_len, int64_t now_ms,
                       char **ret_answer, size_t *ret_answer_len)
{
    if (!policy || !ret_answer || !ret_answer_len)
        return INSIST_INVALID;
    if (!time_is_usable(now_ms))
        return INSIST_INVALID_TIME;
    struct buffer out = buffer_up_to(DECISION_ANSWER_BYTES_MAX);
    struct decider decider = { .policy = policy->policy, .now = now_ms };
    decision_json_answer(&decider, text_slice(question, question_len), &out);
    size_t len = out.len;
    char *answer = buffer_take(&out);
    if (!answer) {
        buffer_release(&out);
        return INSIST_NO_MEMORY;
    }
    *ret_answer = answer;
    *ret_answer_len = len;
    return INSIST_OK;
}

void insist_text_free(char *text)
{
    free(text);
}
