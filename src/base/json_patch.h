/*
 * json_patch.h - changes to a JSON document: RFC 6902 (an array of operations) or RFC 7386 (an object that is merged).
 */
#ifndef BASE_JSON_PATCH_H
#define BASE_JSON_PATCH_H

#include "base/arena.h"
#include "base/slice.h"
#include "base/status.h"

#include <jansson.h>

enum { JSON_PATCH_OPERATIONS_MAX = 100, JSON_POINTER_BYTES_MAX = 1024 };

/* Whether it can be one. STATUS_INVALID: *err says what is wrong with it. */
enum status json_patch_check(const json_t *patch, struct error *err) MUST_CHECK;
/* The same of a text; *ret_text is left as it is where that is no JSON, or would be longer than `bytes_max`. */
void json_patch_text(const json_t *patch, struct slice text, size_t bytes_max, struct arena *memory, struct slice *ret_text);

#endif
