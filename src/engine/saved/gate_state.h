/*
 * gate_state.h - what a gate keeps over a restart, as JSON and back; the incident's part serves its report, too.
 */
#ifndef ENGINE_SAVED_GATE_STATE_H
#define ENGINE_SAVED_GATE_STATE_H

#include "base/json.h"
#include "core/outage/gate.h"

#include <jansson.h>

/* Members of the object that is being written. */
void incident_state_write(struct json_writer *json, const struct incident *incident);
/* Of these the failed sends by sign. */
void incident_signs_write(struct json_writer *json, const struct incident *incident);
/* What is missing is 0 or INSTANT_NONE. */
struct incident incident_state_read(const json_t *object);

/* Members of the object that is being written. */
void gate_state_write(struct json_writer *json, const struct gate_saved *saved);
/* What is missing or makes no sense stays as it is in `saved`: give it a gate's own. */
void gate_state_read(const json_t *root, struct gate_saved *saved);

/* The member "block", and back; `before_blocks` is since when it is held by what older versions wrote. */
void block_state_write(struct json_writer *json, const struct block_saved *saved);
struct block_saved block_state_read(const json_t *root, instant before_blocks);

#endif
