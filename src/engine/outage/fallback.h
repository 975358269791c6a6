/*
 * fallback.h - the second address of a destination.
 */
#ifndef ENGINE_OUTAGE_FALLBACK_H
#define ENGINE_OUTAGE_FALLBACK_H

#include "base/instant.h"
#include "base/json.h"
#include <jansson.h>

struct dest;
struct engine;

/* The second address is held for refused answers from now on: only looks go there, the first goes on. Tells it. */
void fallback_held(struct dest *dest, struct slice reason, int64_t only_lane, instant now);
/* It is not any more. */
void fallback_ended(struct dest *dest, const char *change, instant now);
/* By an operator. */
void fallback_resume(struct engine *engine, struct dest *dest);
/* What is saved of that: a member of the state, and back. */
void fallback_state_write(struct json_writer *json, const struct dest *dest);
void fallback_state_read(struct dest *dest, const json_t *root, instant now);

#endif
