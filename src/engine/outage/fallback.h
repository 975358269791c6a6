/*
 * fallback.h - the second address of a destination.
 */
#ifndef ENGINE_OUTAGE_FALLBACK_H
#define ENGINE_OUTAGE_FALLBACK_H

#include "base/json.h"
#include <jansson.h>

struct dest;
struct engine;

/* The second address is held for refused answers: nothing more goes there, the first goes on. Tells it once. */
void fallback_block(struct engine *engine, struct dest *dest, struct slice reason);
void fallback_resume(struct engine *engine, struct dest *dest);
/* What is kept of that: a member of the state, and back. */
void fallback_state_write(struct json_writer *json, const struct dest *dest);
void fallback_state_read(struct dest *dest, const json_t *root);

#endif
