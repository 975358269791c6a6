#include "lib/members.h"

#include "base/json.h"

#include <assert.h>
#include <jansson.h>

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

const char *member_name(enum member member)
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

static struct value value_of(const json_t *value)
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
        put(ret_members, name, value_of(json_object_iter_value(at)));
    }
    return QUESTION_OK;
}

enum question_problem members_read(struct slice question, struct members *ret_members, struct error *err)
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
