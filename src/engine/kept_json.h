/*
 * kept_json.h - members of the JSON objects that the engine keeps in the store: what is missing or is something else is
 * empty, 0 or INSTANT_NONE.
 */
#ifndef ENGINE_KEPT_JSON_H
#define ENGINE_KEPT_JSON_H

#include "base/instant.h"

#include <jansson.h>

/* Lives as long as the object. */
struct slice kept_text(const json_t *object, const char *name);
/* Never negative. */
int64_t kept_count(const json_t *object, const char *name);
instant kept_instant(const json_t *object, const char *name);

#endif
