#include "base/json_patch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum patch_op { PATCH_ADD, PATCH_REMOVE, PATCH_REPLACE, PATCH_MOVE, PATCH_COPY, PATCH_TEST, PATCH_OPS };

static const char *const op_names[PATCH_OPS] = { "add", "remove", "replace", "move", "copy", "test" };

static enum patch_op op_of(const json_t *operation)
{
    const char *name = json_string_value(json_object_get(operation, "op"));
    int op = 0;
    while (op < PATCH_OPS && (!name || strcmp(name, op_names[op]) != 0))
        op++;
    return (enum patch_op)op;
}

static bool is_pointer(const json_t *value)
{
    const char *text = json_string_value(value);
    if (!text || json_string_length(value) > JSON_POINTER_BYTES_MAX || (text[0] != '\0' && text[0] != '/'))
        return false;
    for (const char *at = strchr(text, '~'); at; at = strchr(at + 1, '~'))
        if (at[1] != '0' && at[1] != '1')
            return false;
    return true;
}

enum status json_patch_check(const json_t *patch, struct error *err)
{
    if (json_is_object(patch))
        return STATUS_OK;
    if (!json_is_array(patch))
        return error_set(err, STATUS_INVALID,
                         "payload_patch must be an array of operations (RFC 6902) or an object to merge (RFC 7386)");
    if (json_array_size(patch) == 0 || json_array_size(patch) > JSON_PATCH_OPERATIONS_MAX)
        return error_set(err, STATUS_INVALID, "payload_patch must have 1 to %d operations", JSON_PATCH_OPERATIONS_MAX);
    for (size_t i = 0; i < json_array_size(patch); i++) {
        const json_t *operation = json_array_get(patch, i);
        enum patch_op op = op_of(operation);
        if (op == PATCH_OPS)
            return error_set(err, STATUS_INVALID,
                             "payload_patch: operation %zu must have an op: add, remove, replace, move, "
                             "copy or test", i + 1);
        if (!is_pointer(json_object_get(operation, "path")))
            return error_set(err, STATUS_INVALID,
                             "payload_patch: the path of operation %zu must be a JSON pointer such as "
                             "/customer/name", i + 1);
        if ((op == PATCH_MOVE || op == PATCH_COPY) && !is_pointer(json_object_get(operation, "from")))
            return error_set(err, STATUS_INVALID,
                             "payload_patch: operation %zu needs a JSON pointer in \"from\"", i + 1);
        if ((op == PATCH_ADD || op == PATCH_REPLACE || op == PATCH_TEST) && !json_object_get(operation, "value"))
            return error_set(err, STATUS_INVALID,
                             "payload_patch: operation %zu needs a \"value\"", i + 1);
    }
    return STATUS_OK;
}

/* The next part of a pointer, unescaped; the pointer moves behind it. */
static void part_take(const char **pointer, char part[JSON_POINTER_BYTES_MAX + 1])
{
    size_t len = 0;
    const char *at = *pointer + 1;
    assert(**pointer == '/');
    for (; *at && *at != '/'; at++) {
        if (*at == '~')
            part[len++] = *++at == '1' ? '/' : '~';
        else
            part[len++] = *at;
    }
    part[len] = '\0';
    *pointer = at;
}

/* A place in an array of that length; `end` allows the one behind the last. False: it is none. */
static bool index_of(const char *part, size_t length, bool end, size_t *ret_index)
{
    char *rest;
    if (end && strcmp(part, "-") == 0) {
        *ret_index = length;
        return true;
    }
    if (part[0] < '0' || part[0] > '9' || (part[0] == '0' && part[1]) || strlen(part) > 9)
        return false;
    *ret_index = strtoul(part, &rest, 10);
    return *rest == '\0' && *ret_index < length + end;
}

static json_t *child_of(json_t *parent, const char *part)
{
    size_t index;
    if (json_is_object(parent))
        return json_object_get(parent, part);
    return json_is_array(parent) && index_of(part, json_array_size(parent), false, &index) ? json_array_get(parent, index)
                                                                                           : NULL;
}

/* What holds the place that a pointer names, and the last part of it. NULL: there is none. */
static json_t *parent_find(json_t *root, const char *pointer, char last[JSON_POINTER_BYTES_MAX + 1])
{
    json_t *at = root;
    part_take(&pointer, last);
    while (at && *pointer) {
        at = child_of(at, last);
        part_take(&pointer, last);
    }
    return at;
}

static json_t *value_find(json_t *root, const char *pointer)
{
    char part[JSON_POINTER_BYTES_MAX + 1];
    json_t *at = root;
    while (at && *pointer) {
        part_take(&pointer, part);
        at = child_of(at, part);
    }
    return at;
}

/* Takes the reference to `value`. */
static bool value_put(json_t **root, const char *pointer, bool replace, json_t *value)
{
    char last[JSON_POINTER_BYTES_MAX + 1];
    size_t index;
    if (*pointer == '\0') {
        json_decref(*root);
        *root = value;
        return true;
    }
    json_t *parent = parent_find(*root, pointer, last);
    if (json_is_object(parent) && (!replace || json_object_get(parent, last)))
        return json_object_set_new(parent, last, value) == 0;
    if (json_is_array(parent) && index_of(last, json_array_size(parent), !replace, &index))
        return (replace ? json_array_set_new(parent, index, value) : json_array_insert_new(parent, index, value)) == 0;
    json_decref(value);
    return false;
}

static bool value_remove(json_t *root, const char *pointer)
{
    char last[JSON_POINTER_BYTES_MAX + 1];
    size_t index;
    json_t *parent = *pointer ? parent_find(root, pointer, last) : NULL;
    if (json_is_object(parent))
        return json_object_del(parent, last) == 0;
    return json_is_array(parent) && index_of(last, json_array_size(parent), false, &index) &&
           json_array_remove(parent, index) == 0;
}

static bool apply_one(json_t **root, const json_t *operation)
{
    const char *path = json_string_value(json_object_get(operation, "path"));
    const char *from = json_string_value(json_object_get(operation, "from"));
    const json_t *value = json_object_get(operation, "value");
    enum patch_op op = op_of(operation);
    json_t *found;
    switch (op) {
    case PATCH_ADD:
    case PATCH_REPLACE:
        return value_put(root, path, op == PATCH_REPLACE, json_deep_copy(value));
    case PATCH_REMOVE:
        return value_remove(*root, path);
    case PATCH_TEST:
        found = value_find(*root, path);
        return found && json_equal(found, value);
    default:
        found = value_find(*root, from);
        if (!found || (op == PATCH_MOVE && strncmp(path, from, strlen(from)) == 0 && path[strlen(from)] == '/'))
            return false; /* nothing can be moved into itself */
        found = json_deep_copy(found);
        if (op == PATCH_MOVE && !value_remove(*root, from)) {
            json_decref(found);
            return false;
        }
        return value_put(root, path, false, found);
    }
}

/* RFC 7386: null takes away, an object is merged, anything else stands in the place of what was there. Bounded in depth by
 * what the parser takes. */
static json_t *merge(const json_t *document, const json_t *patch)
{
    const char *name;
    json_t *value;
    if (!json_is_object(patch))
        return json_deep_copy(patch);
    json_t *merged = json_is_object(document) ? json_copy((json_t *)(uintptr_t)document) : json_object();
    json_object_foreach((json_t *)(uintptr_t)patch, name, value)
    {
        if (json_is_null(value))
            json_object_del(merged, name);
        else
            json_object_set_new(merged, name, merge(json_object_get(merged, name), value));
    }
    return merged;
}

/* The document after it, a new reference; NULL: it cannot be applied to that. `patch` passes json_patch_check. */
static json_t *json_patch_apply(const json_t *patch, const json_t *document)
{
    if (json_is_object(patch))
        return merge(document, patch);
    json_t *root = json_deep_copy(document);
    for (size_t i = 0; i < json_array_size(patch) && root; i++) {
        if (apply_one(&root, json_array_get(patch, i)))
            continue;
        json_decref(root);
        root = NULL;
    }
    return root;
}

void json_patch_text(const json_t *patch, struct slice text, size_t bytes_max, struct arena *memory, struct slice *ret_text)
{
    json_t *document = json_loadb(text.data ? text.data : "", text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    json_t *changed = document ? json_patch_apply(patch, document) : NULL;
    char *dumped = changed ? json_dumps(changed, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17)) : NULL;
    if (dumped && strlen(dumped) <= bytes_max) {
        struct slice copy = arena_copy(memory, slice_from(dumped));
        if (copy.data)
            *ret_text = copy;
    }
    free(dumped);
    json_decref(changed);
    json_decref(document);
}
