/*
 * dead_entry.h - a dead letter as others get it: on one line, in the schema of the e-mail document.
 */
#ifndef ENGINE_DEAD_DEAD_ENTRY_H
#define ENGINE_DEAD_DEAD_ENTRY_H

#include "base/buffer.h"
#include "store/store.h"

/* With its line end; of a job that was read with its payload. `POST /v1/jobs/batch` takes it again. */
void dead_entry_write(struct buffer *out, const struct job *job);

#endif
