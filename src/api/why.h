/*
 * why.h - why a job is where it is, what it waits for and what happens next.
 */
#ifndef API_WHY_H
#define API_WHY_H

#include "base/buffer.h"
#include "engine/engine.h"

/* The word of `held_by` when a tenant's lane is held for itself. */
#define HELD_BY_TENANT "tenant_paused"

/*
 * One JSON object: facts, and sentences made of them. `destination` may be NULL: not configured; `lane` too: the tenant
 * is not held for itself.
 */
void why_write(struct buffer *out, const struct job *job, const struct destination_config *destination,
               const struct destination_status *status, const struct lane_hold *lane, instant now);

#endif
