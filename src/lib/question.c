#include "lib/question.h"

#include "base/json.h"

#include <assert.h>
#include <jansson.h>

/* ---- Its members. ---- */

#define NAME(text) { text, sizeof(text) - 1 }

static const struct slice names[MEMBER_COUNT] = {
    [MEMBER_CLAIM_ID] = NAME("claimId"),
    [MEMBER_ID] = NAME("id"),
    [MEMBER_SUBMISSION_ERROR] = NAME("submissionError"),
    [MEMBER_RETRY_COUNT] = NAME("retryCount"),
    [MEMBER_LAST_SUBMISSION_TIME] = NAME("lastSubmissionTime"),
    [MEMBER_FIRST_SUBMISSION_TIME] = NAME("firstSubmissionTime"),
    [MEMBER_POLICY] = NAME("policy"),
    [MEMBER_NOW] = NAME("now"),
    [MEMBER_CODE] = NAME("code"),
    [MEMBER_PRIORITY] = NAME("priority"),
    [MEMBER_RETRY_AFTER_MS] = NAME("retryAfterMs"),
    [MEMBER_DEADLINE] = NAME("deadline"),
    [MEMBER_IN_DOUBT] = NAME("inDoubt"),
    [MEMBER_DOUBTED] = NAME("doubted"),
    [MEMBER_SEED] = NAME("seed"),
    [MEMBER_TENANT] = NAME("tenant"),
    [MEMBER_RECORD] = NAME("record"),
};

/* "claimId"... */
static const char *member_name(enum member member)
{
    assert(member < MEMBER_COUNT);
    return names[member].data;
}

/* Members that are not known are ignored. */
static void put(struct members *members, struct slice name, struct value value)
{
    for (int i = 0; i < MEMBER_COUNT; i++)
        if (names[i].len == name.len && slice_equal(names[i], name)) {
            members->values[i] = value;
            return;
        }
}

enum {
    PLAIN_MEMBERS_MAX = 24, /* each name is compared with those before it */
    PLAIN_DIGITS_MAX = 18,  /* fit into 64 bits whatever they are */
};

/* The rest of a plain text. */
struct cursor {
    const char *next, *end;
};

static void skip_space(struct cursor *cursor)
{
    while (cursor->next < cursor->end &&
           (*cursor->next == ' ' || *cursor->next == '\t' || *cursor->next == '\n' || *cursor->next == '\r'))
        cursor->next++;
}

/* One byte, and the white space behind it. */
static bool take(struct cursor *cursor, char byte)
{
    if (cursor->next == cursor->end || *cursor->next != byte)
        return false;
    cursor->next++;
    skip_space(cursor);
    return true;
}

static bool take_word(struct cursor *cursor, struct slice word)
{
    if (!slice_has_prefix((struct slice){ cursor->next, (size_t)(cursor->end - cursor->next) }, word))
        return false;
    cursor->next += word.len;
    return true;
}

/* A string without escapes; false for one that has some or is not UTF-8. */
static bool take_string(struct cursor *cursor, struct slice *ret_text)
{
    if (cursor->next == cursor->end || *cursor->next != '"')
        return false;
    const char *start = ++cursor->next;
    while (cursor->next < cursor->end && *cursor->next != '"') {
        unsigned char byte = (unsigned char)*cursor->next;
        if (byte < ' ' || byte == '\\')
            return false;
        struct slice rest = { cursor->next, (size_t)(cursor->end - cursor->next) };
        size_t len = byte < 0x80 ? 1 : utf8_sequence_len(rest);
        if (len == 0)
            return false;
        cursor->next += len;
    }
    if (cursor->next == cursor->end)
        return false;
    *ret_text = (struct slice){ start, (size_t)(cursor->next - start) };
    cursor->next++;
    return true;
}

static bool take_integer(struct cursor *cursor, int64_t *ret_value)
{
    const char *start = cursor->next;
    if (*cursor->next == '-')
        cursor->next++;
    const char *digits = cursor->next;
    while (cursor->next < cursor->end && ascii_is_digit(*cursor->next))
        cursor->next++;
    size_t count = (size_t)(cursor->next - digits);
    if (count == 0 || count > PLAIN_DIGITS_MAX || (count > 1 && *digits == '0'))
        return false;
    return slice_to_int64((struct slice){ start, (size_t)(cursor->next - start) }, ret_value);
}

/* What follows must be a comma or the end of the object: the caller finds a fraction or an exponent that way. */
static bool take_value(struct cursor *cursor, struct value *ret_value)
{
    *ret_value = (struct value){ .kind = VALUE_ABSENT };
    if (cursor->next == cursor->end)
        return false;
    switch (*cursor->next) {
    case '"':
        ret_value->kind = VALUE_TEXT;
        return take_string(cursor, &ret_value->text);
    case 't':
        ret_value->kind = VALUE_TRUE;
        return take_word(cursor, SLICE("true"));
    case 'f':
        ret_value->kind = VALUE_FALSE;
        return take_word(cursor, SLICE("false"));
    case 'n':
        return take_word(cursor, SLICE("null"));
    default:
        ret_value->kind = VALUE_INTEGER;
        return take_integer(cursor, &ret_value->integer);
    }
}

static bool occurs(const struct slice *seen, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++)
        if (seen[i].len == name.len && slice_equal(seen[i], name))
            return true;
    return false;
}

bool members_read_plain(struct slice question, struct members *ret_members)
{
    struct cursor cursor = { question.data, question.data + question.len };
    struct slice seen[PLAIN_MEMBERS_MAX];
    size_t count = 0;
    *ret_members = (struct members){ 0 };
    skip_space(&cursor);
    if (!take(&cursor, '{'))
        return false;
    do {
        struct slice name;
        struct value value;
        if (count == PLAIN_MEMBERS_MAX || !take_string(&cursor, &name) || occurs(seen, count, name))
            return false;
        skip_space(&cursor);
        if (!take(&cursor, ':') || !take_value(&cursor, &value))
            return false;
        skip_space(&cursor);
        seen[count++] = name;
        put(ret_members, name, value);
    } while (take(&cursor, ','));
    return take(&cursor, '}') && cursor.next == cursor.end;
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

static enum question_problem explain(struct slice question, const json_error_t *error, struct error *err)
{
    if (json_error_code(error) == json_error_numeric_overflow &&
        number_belongs_to(question, (size_t)error->position, names[MEMBER_RETRY_COUNT])) {
        error_set(err, STATUS_INVALID, "retryCount does not fit into 64 bits; give a whole number from 0");
        return QUESTION_INVALID_RETRY_COUNT;
    }
    error_set(err, STATUS_INVALID, "not valid JSON at byte %d: %s", error->position, error->text);
    return QUESTION_INVALID_JSON;
}

static struct value value_from(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return (struct value){ .kind = VALUE_TEXT, .text = { json_string_value(value), json_string_length(value) } };
    case JSON_INTEGER:
        return (struct value){ .kind = VALUE_INTEGER, .integer = json_integer_value(value) };
    case JSON_TRUE:
        return (struct value){ .kind = VALUE_TRUE };
    case JSON_FALSE:
        return (struct value){ .kind = VALUE_FALSE };
    case JSON_NULL:
        return (struct value){ .kind = VALUE_ABSENT };
    default:
        return (struct value){ .kind = VALUE_OTHER };
    }
}

enum question_problem members_read_any(struct slice question, struct members *ret_members, struct error *err)
{
    json_error_t error;
    *ret_members = (struct members){ 0 };
    json_t *document = json_loadb(question.data, question.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!document)
        return explain(question, &error, err);
    ret_members->document = document;
    if (!json_is_object(document)) {
        error_set(err, STATUS_INVALID, "not a JSON object; write {\"claimId\":...,\"submissionError\":...}");
        return QUESTION_INVALID_JSON;
    }
    for (void *at = json_object_iter(document); at; at = json_object_iter_next(document, at)) {
        struct slice name = { json_object_iter_key(at), json_object_iter_key_len(at) };
        put(ret_members, name, value_from(json_object_iter_value(at)));
    }
    return QUESTION_OK;
}

/* Both readers in their order. QUESTION_OK, or what is wrong. Release the members in any case. */
static enum question_problem members_read(struct slice question, struct members *ret_members, struct error *err)
{
    if (question.len > DECISION_QUESTION_BYTES_MAX) {
        *ret_members = (struct members){ 0 };
        error_set(err, STATUS_LIMIT, "the question is longer than the limit of %d bytes; shorten submissionError",
                  DECISION_QUESTION_BYTES_MAX);
        return QUESTION_INVALID_JSON;
    }
    if (slice_is_blank(question)) {
        *ret_members = (struct members){ 0 };
        error_set(err, STATUS_INVALID, "the question is empty; give a JSON object");
        return QUESTION_INVALID_JSON;
    }
    return members_read_plain(question, ret_members) ? QUESTION_OK : members_read_any(question, ret_members, err);
}

void members_release(struct members *members)
{
    json_decref(members->document);
    members->document = NULL;
}

/* ---- The whole. ---- */

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
