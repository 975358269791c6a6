#include "base/json_patch.h"

#include "base/buffer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = JSON_PARSER_MAX_DEPTH }; /* what cannot be read back is not made */

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
    if (!text || json_string_length(value) > JSON_POINTER_BYTES_MAX || strlen(text) != json_string_length(value) ||
        (text[0] != '\0' && text[0] != '/'))
        return false;
    for (const char *at = strchr(text, '~'); at; at = strchr(at + 1, '~'))
        if (at[1] != '0' && at[1] != '1')
            return false;
    return true;
}

/* ---- what a document takes ---- */

/* Adds how many bytes its text has at least. False: it is deeper than that. */
static bool measure(const json_t *value, size_t depth_max, size_t *bytes)
{
    const char *name;
    json_t *member;
    size_t count = json_is_object(value) ? json_object_size(value) : json_array_size(value);
    if (json_is_string(value))
        *bytes += json_string_length(value) + 2;
    else
        *bytes += json_is_object(value) || json_is_array(value) ? 2 + count - (count > 0) : 1;
    if (count > 0 && depth_max == 0)
        return false;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!measure(json_array_get(value, i), depth_max - 1, bytes))
            return false;
    json_object_foreach((json_t *)(uintptr_t)value, name, member)
    {
        *bytes += strlen(name) + 3;
        if (!measure(member, depth_max - 1, bytes))
            return false;
    }
    return true;
}

/* The shortest that means the same number: what was 19.9 stays so. */
static void real_write(struct json_writer *json, double value)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    if (!strpbrk(text, ".e"))
        strcat(text, ".0");
    json_put_raw(json, slice_from(text));
}

void json_document_write(struct json_writer *json, const json_t *value)
{
    const char *name;
    json_t *member;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        json_object_begin(json);
        json_object_foreach((json_t *)(uintptr_t)value, name, member)
        {
            json_name_any(json, slice_from(name));
            json_document_write(json, member);
        }
        json_object_end(json);
        break;
    case JSON_ARRAY:
        json_array_begin(json);
        for (size_t i = 0; i < json_array_size(value); i++)
            json_document_write(json, json_array_get(value, i));
        json_array_end(json);
        break;
    case JSON_STRING:
        json_put_string(json, (struct slice){ json_string_value(value), json_string_length(value) });
        break;
    case JSON_INTEGER:
        json_put_int(json, json_integer_value(value));
        break;
    case JSON_REAL:
        real_write(json, json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        json_put_raw(json, json_is_true(value) ? SLICE("true") : SLICE("false"));
        break;
    default:
        json_put_null(json);
    }
}

/* ---- checking ---- */

static enum status operation_check(const json_t *operation, size_t number, struct error *err)
{
    enum patch_op op = op_of(operation);
    if (op == PATCH_OPS)
        return error_set(err, STATUS_INVALID,
                         "payload_patch: operation %zu must have an op: add, remove, replace, move, copy or test", number);
    if (!is_pointer(json_object_get(operation, "path")))
        return error_set(err, STATUS_INVALID,
                         "payload_patch: the path of operation %zu must be a JSON pointer such as /customer/name", number);
    if ((op == PATCH_MOVE || op == PATCH_COPY) && !is_pointer(json_object_get(operation, "from")))
        return error_set(err, STATUS_INVALID, "payload_patch: operation %zu needs a JSON pointer in \"from\"", number);
    if ((op == PATCH_ADD || op == PATCH_REPLACE || op == PATCH_TEST) && !json_object_get(operation, "value"))
        return error_set(err, STATUS_INVALID, "payload_patch: operation %zu needs a \"value\"", number);
    return STATUS_OK;
}

enum status json_patch_check(const json_t *patch, struct error *err)
{
    size_t bytes = 0;
    if (!json_is_object(patch) && !json_is_array(patch))
        return error_set(err, STATUS_INVALID,
                         "payload_patch must be an array of operations (RFC 6902) or an object to merge (RFC 7386)");
    if (!measure(patch, DEPTH_MAX, &bytes) || bytes > JSON_PATCH_BYTES_MAX)
        return error_set(err, STATUS_INVALID, "payload_patch is longer than %d bytes, which is the limit",
                         JSON_PATCH_BYTES_MAX);
    if (json_is_object(patch))
        return STATUS_OK;
    if (json_array_size(patch) == 0 || json_array_size(patch) > JSON_PATCH_OPERATIONS_MAX)
        return error_set(err, STATUS_INVALID, "payload_patch must have 1 to %d operations", JSON_PATCH_OPERATIONS_MAX);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < json_array_size(patch) && status == STATUS_OK; i++)
        status = operation_check(json_array_get(patch, i), i + 1, err);
    return status;
}

/* ---- applying ---- */

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

/* A document on its way; what it grows by is measured, so that copies of copies are not made without end. */
struct patching {
    json_t *root;
    size_t bytes, bytes_max; /* at most so many now */
};

static bool has_room(struct patching *patching, const char *path, const json_t *value)
{
    size_t parts = 0, bytes = 0;
    for (const char *at = path; *at; at++)
        parts += *at == '/';
    if (parts > DEPTH_MAX || !measure(value, DEPTH_MAX - parts, &bytes))
        return false;
    if (patching->bytes + bytes > patching->bytes_max) { /* perhaps some of it was taken away again */
        patching->bytes = 0;
        if (!measure(patching->root, DEPTH_MAX, &patching->bytes) || patching->bytes + bytes > patching->bytes_max)
            return false;
    }
    patching->bytes += bytes;
    return true;
}

/* Numbers by their value, whether they have a fraction or not. */
static bool is_equal(const json_t *a, const json_t *b)
{
    const char *name;
    json_t *member;
    if (json_is_number(a) && json_is_number(b) && json_typeof(a) != json_typeof(b))
        return json_number_value(a) == json_number_value(b);
    if (json_typeof(a) != json_typeof(b) || json_array_size(a) != json_array_size(b) ||
        json_object_size(a) != json_object_size(b))
        return false;
    if (!json_is_object(a) && !json_is_array(a))
        return json_equal(a, b);
    for (size_t i = 0; i < json_array_size(a); i++)
        if (!is_equal(json_array_get(a, i), json_array_get(b, i)))
            return false;
    json_object_foreach((json_t *)(uintptr_t)a, name, member)
    {
        const json_t *other = json_object_get(b, name);
        if (!other || !is_equal(member, other))
            return false;
    }
    return true;
}

static bool value_bring(struct patching *patching, bool moves, const char *from, const char *path)
{
    json_t *found = value_find(patching->root, from);
    if (!found || (moves && strncmp(path, from, strlen(from)) == 0 && path[strlen(from)] == '/'))
        return false; /* nothing can be moved into itself */
    if (moves && strcmp(path, from) == 0)
        return true;
    if (!has_room(patching, path, found))
        return false;
    json_t *brought = json_deep_copy(found);
    if (!brought || (moves && !value_remove(patching->root, from))) {
        json_decref(brought);
        return false;
    }
    return value_put(&patching->root, path, false, brought);
}

static bool apply_one(struct patching *patching, const json_t *operation)
{
    const char *path = json_string_value(json_object_get(operation, "path"));
    const char *from = json_string_value(json_object_get(operation, "from"));
    const json_t *value = json_object_get(operation, "value");
    enum patch_op op = op_of(operation);
    const json_t *found;
    switch (op) {
    case PATCH_ADD:
    case PATCH_REPLACE:
        return has_room(patching, path, value) &&
               value_put(&patching->root, path, op == PATCH_REPLACE, json_deep_copy(value));
    case PATCH_REMOVE:
        return value_remove(patching->root, path);
    case PATCH_TEST:
        found = value_find(patching->root, path);
        return found && is_equal(found, value);
    default:
        return value_bring(patching, op == PATCH_MOVE, from, path);
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

json_t *json_patch_apply(const json_t *patch, const json_t *document, size_t bytes_max)
{
    if (json_is_object(patch))
        return merge(document, patch);
    struct patching patching = { .root = json_deep_copy(document), .bytes = bytes_max, .bytes_max = 2 * bytes_max };
    bool whole = patching.root != NULL;
    for (size_t i = 0; i < json_array_size(patch) && whole; i++)
        whole = apply_one(&patching, json_array_get(patch, i));
    if (whole)
        return patching.root;
    json_decref(patching.root);
    return NULL;
}

void json_patch_text(const json_t *patch, struct slice text, size_t bytes_max, struct arena *memory, struct slice *ret_text)
{
    json_t *document = json_loadb(text.data ? text.data : "", text.len,
                                  JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    json_t *changed = document ? json_patch_apply(patch, document, bytes_max) : NULL;
    struct buffer out;
    buffer_init(&out, bytes_max);
    struct json_writer json = json_writer(&out);
    if (changed)
        json_document_write(&json, changed);
    if (changed && buffer_status(&out) == STATUS_OK) {
        struct slice copy = arena_copy(memory, buffer_slice(&out));
        if (copy.data)
            *ret_text = copy;
    }
    buffer_release(&out);
    json_decref(changed);
    json_decref(document);
}
