/*
 * json_patch.h - changes to a JSON document: RFC 6902 (an array of operations) or RFC 7386 (an object that is merged).
 */
#ifndef BASE_JSON_PATCH_H
#define BASE_JSON_PATCH_H

#include "base/arena.h"
#include "base/json.h"
#include "base/slice.h"
#include "base/status.h"

#include <jansson.h>

enum { JSON_PATCH_OPERATIONS_MAX = 100, JSON_PATCH_BYTES_MAX = 64 << 10, JSON_POINTER_BYTES_MAX = 1024 };

/* Whether it can be one. STATUS_INVALID: *err says what is wrong with it. */
enum status json_patch_check(const json_t *patch, struct error *err) MUST_CHECK;
/*
 * The document after it, a new reference; NULL: it cannot be applied to that, or that would grow beyond twice `bytes_max` on
 * the way. `patch` passes json_patch_check.
 */
json_t *json_patch_apply(const json_t *patch, const json_t *document, size_t bytes_max);
/*
 * The same of a text; *ret_text is left as it is where that is no JSON, names a member twice, has a number that is too large
 * to be read, or would be longer than `bytes_max`. Numbers with a fraction are written as short as they mean the same.
 */
void json_patch_text(const json_t *patch, struct slice text, size_t bytes_max, struct arena *memory, struct slice *ret_text);

/* Any JSON as it is, without blanks. Recursive, as deep as that. */
void json_document_write(struct json_writer *json, const json_t *value);

#endif
