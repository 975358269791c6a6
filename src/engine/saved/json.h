/*
 * json.h - members of the JSON objects that the engine keeps in the store: what is missing or is something else is
 * empty, 0 or INSTANT_NONE.
 */
#ifndef ENGINE_SAVED_JSON_H
#define ENGINE_SAVED_JSON_H

#include "base/instant.h"

#include <jansson.h>

/* Lives as long as the object. */
struct slice saved_text(const json_t *object, const char *name);
/* Never negative. */
int64_t saved_count(const json_t *object, const char *name);
instant saved_instant(const json_t *object, const char *name);

#endif
