/*
 * trim.h - what is kept for as long as the trail goes after that.
 */
#ifndef ENGINE_SAVED_TRIM_H
#define ENGINE_SAVED_TRIM_H

#include "base/instant.h"
#include "base/slice.h"

struct engine;

/* Takes a note away with the next batch. False: that is full. */
bool saved_forget(struct engine *engine, struct slice space, struct slice name);
/*
 * Gives `forget` the notes of a space that are older than the trail is kept, some at a time, when *trim_at has come, and
 * sets that anew. False from `forget` ends it for this time.
 */
void saved_trim(struct engine *engine, struct slice space, instant *trim_at,
               bool (*forget)(struct engine *, struct slice name));

#endif
