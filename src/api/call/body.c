#include "api/call/body.h"

#include "api/call/json_text.h"
#include "config/problems.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool problem_set(struct problem *problem, int status, const char *type, const char *format, ...)
{
    va_list args;
    problem->status = status;
    problem->type = type;
    problem->place = (struct text_place){ 0 };
    va_start(args, format);
    vsnprintf(problem->detail, sizeof problem->detail, format, args);
    va_end(args);
    return false;
}

json_t *member_get(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

bool problem_at(struct problem *problem, struct slice text, const char *name)
{
    struct slice key = json_text_member_key(text, slice_from(name));
    if (key.len > 0)
        problem->place = text_place_of(TEXT_PLACE_FIRST, text, (size_t)(key.data - text.data));
    return false;
}

static bool refuse_member(const char *key, const char *const *names, struct problem *ret_problem)
{
    struct nearest nearest = { .wanted = slice_from(key) };
    for (size_t i = 0; names[i]; i++)
        nearest_offer(&nearest, names[i]);
    if (nearest.name)
        return problem_set(ret_problem, 422, "unknown_member", "\"%s\" is not known here; did you mean \"%s\"?",
                          quote(slice_from(key)).text, nearest.name);
    bool has_metadata = false; /* a job's, where facts of the caller's own go */
    for (size_t i = 0; names[i]; i++)
        has_metadata = has_metadata || strcmp(names[i], "metadata") == 0;
    return problem_set(ret_problem, 422, "unknown_member", "\"%s\" is not known here; leave it out%s",
                      quote(slice_from(key)).text, has_metadata ? ", or put it into metadata" : "");
}

bool members_known(struct slice text, json_t *object, const char *const *names, struct problem *ret_problem)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        size_t i = 0;
        while (names[i] && strcmp(names[i], key) != 0)
            i++;
        if (!names[i]) {
            refuse_member(key, names, ret_problem);
            return problem_at(ret_problem, text, key);
        }
    }
    return true;
}

/*
 * The text with a stand-in of the same kind, "" or 0, for a valid payload: jansson need not read what is long and
 * passed on as it is. False: as it is, because the payload is null, has escapes, or is not valid.
 */
static bool without_payload(struct slice text, struct buffer *out)
{
    struct slice payload = json_text_member(text, SLICE("payload"));
    bool string = json_text_is_plain(payload);
    if (payload.len == 0 || payload.data[0] == 'n' || (payload.data[0] == '"' && !string) || !json_text_is_valid(payload))
        return false;
    size_t end = (size_t)(payload.data - text.data) + payload.len;
    buffer_append(out, (struct slice){ text.data, end - payload.len });
    buffer_append(out, string ? SLICE("\"\"") : SLICE("0"));
    buffer_append(out, slice_from_offset(text, end));
    return buffer_status(out) == STATUS_OK;
}

/* Where in `text` the last of the bytes stands that jansson took of `read`, which may have a shorter payload. */
static size_t offset_in(struct slice text, struct slice read, int taken)
{
    size_t offset = taken > 0 ? (size_t)taken - 1 : 0;
    struct slice payload = json_text_member(text, SLICE("payload"));
    if (read.data != text.data && offset >= (size_t)(payload.data - text.data))
        offset += text.len - read.len;
    return offset < text.len ? offset : text.len;
}

json_t *body_load(struct slice text, struct problem *ret_problem)
{
    json_error_t error;
    struct buffer reduced = buffer_up_to(SIZE_MAX / 4);
    if (slice_is_blank(text)) {
        problem_set(ret_problem, 422, "invalid_json", "the body is empty; send JSON");
        return NULL;
    }
    struct slice read = without_payload(text, &reduced) ? buffer_slice(&reduced) : text;
    json_t *root = json_loadb(read.data, read.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!root) {
        problem_set(ret_problem, 422, "invalid_json", "this is not JSON: %s", error.text);
        ret_problem->place = text_place_of(TEXT_PLACE_FIRST, text, offset_in(text, read, error.position));
    }
    buffer_release(&reduced);
    return root;
}

bool body_read(struct call *call)
{
    struct problem problem;
    json_t *root = body_load(slice_is_blank(call->body) ? SLICE("{}") : call->body, &problem);
    call->object = root;
    bool known =
        root && (json_is_object(root) ? members_known(call->body, root, call->route->members, &problem)
                                      : problem_set(&problem, 422, "invalid_json", "the body must be a JSON object"));
    return known || body_problem(call, &problem);
}

const json_t *body_member(const struct call *call, const char *name)
{
    return member_get(call->object, name);
}

bool body_problem(struct call *call, struct problem *problem)
{
    size_t len = strlen(problem->detail);
    if (problem->place.line > 0 && strcmp(problem->type, "invalid_json") == 0) /* of no use without its place */
        snprintf(problem->detail + len, sizeof problem->detail - len, " (line %zu, column %zu)", problem->place.line,
                 problem->place.column);
    return call_problem_at(call, problem->status, problem->type, problem->place, problem->detail);
}

bool body_int(struct call *call, const char *name, int64_t otherwise, int64_t min, int64_t max,
              int64_t *ret_value)
{
    const json_t *value = body_member(call, name);
    int64_t number = value ? json_integer_value(value) : otherwise;
    if (value && (!json_is_integer(value) || number < min || number > max))
        return call_problem(call, 422, "invalid_member", "%s must be a whole number from %" PRId64 " to %" PRId64, name, min,
                            max);
    *ret_value = number;
    return true;
}

bool body_bool(struct call *call, const char *name, bool *ret_value)
{
    const json_t *value = body_member(call, name);
    if (!json_is_boolean(value))
        return call_problem(call, 422, "invalid_member", "%s must be true or false", name);
    *ret_value = json_is_true(value);
    return true;
}

bool body_text(struct call *call, const char *name, size_t len_max, struct slice *ret_text)
{
    const json_t *value = body_member(call, name);
    struct slice text = { value ? json_string_value(value) : "", json_string_length(value) };
    if (value && (!json_is_string(value) || text.len > len_max))
        return call_problem(call, 422, "invalid_member", "%s must be a string of up to %zu bytes", name, len_max);
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ' && text.data[i] != '\n' && text.data[i] != '\r' && text.data[i] != '\t')
            return call_problem(call, 422, "invalid_member", "%s has a control character; take it out", name);
    *ret_text = arena_copy(&call->memory, text);
    if (ret_text->data)
        return true;
    return call_no_memory(call);
}
