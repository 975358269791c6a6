#include "api/body.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

json_t *body_object(struct call *call, const char *const *names)
{
    struct job_problem problem;
    json_t *root = job_text_load(slice_is_blank(call->body) ? SLICE("{}") : call->body, &problem);
    bool known =
        root && (json_is_object(root) ? members_known(call->body, root, names, &problem)
                                      : job_refuse(&problem, 422, "invalid_json", "the body must be a JSON object"));
    if (known)
        return root;
    body_problem(call, &problem);
    json_decref(root);
    return NULL;
}

void body_problem(struct call *call, struct job_problem *problem)
{
    size_t len = strlen(problem->detail);
    if (problem->place.line > 0 && strcmp(problem->type, "invalid_json") == 0) /* of no use without its place */
        snprintf(problem->detail + len, sizeof problem->detail - len, " (line %zu, column %zu)", problem->place.line,
                 problem->place.column);
    call_problem_at(call, problem->status, problem->type, problem->place, problem->detail);
}

bool body_int(struct call *call, const json_t *body, const char *name, int64_t otherwise, int64_t min, int64_t max,
              int64_t *ret_value)
{
    json_t *value = member_get(body, name);
    int64_t number = value ? json_integer_value(value) : otherwise;
    if (value && (!json_is_integer(value) || number < min || number > max)) {
        call_problem(call, 422, "invalid_member", "%s must be a whole number from %" PRId64 " to %" PRId64, name, min, max);
        return false;
    }
    *ret_value = number;
    return true;
}

bool body_bool(struct call *call, const json_t *body, const char *name, bool *ret_value)
{
    json_t *value = member_get(body, name);
    if (!json_is_boolean(value)) {
        call_problem(call, 422, "invalid_member", "%s must be true or false", name);
        return false;
    }
    *ret_value = json_is_true(value);
    return true;
}

bool body_text(struct call *call, const json_t *body, const char *name, size_t len_max, struct slice *ret_text)
{
    json_t *value = member_get(body, name);
    struct slice text = { value ? json_string_value(value) : "", json_string_length(value) };
    if (value && (!json_is_string(value) || text.len > len_max)) {
        call_problem(call, 422, "invalid_member", "%s must be a string of up to %zu bytes", name, len_max);
        return false;
    }
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ' && text.data[i] != '\n' && text.data[i] != '\r' && text.data[i] != '\t') {
            call_problem(call, 422, "invalid_member", "%s has a control character; take it out", name);
            return false;
        }
    *ret_text = arena_copy(&call->memory, text);
    if (ret_text->data)
        return true;
    call_no_memory(call);
    return false;
}
