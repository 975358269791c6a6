/*
 * why.h - why a job is where it is, what it waits for and what happens next.
 */
#ifndef API_WHY_H
#define API_WHY_H

#include "base/buffer.h"
#include "engine/engine.h"

/* One JSON object: facts, and sentences made of them. `destination` may be NULL: not configured. */
void why_write(struct buffer *out, const struct job *job, const struct destination_config *destination,
               const struct destination_status *status, instant now);

#endif
