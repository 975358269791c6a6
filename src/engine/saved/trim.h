/*
 * trim.h - what is retained for a time, mostly as long as the trail, goes after that.
 */
#ifndef ENGINE_SAVED_TRIM_H
#define ENGINE_SAVED_TRIM_H

#include "engine/questions.h"

struct engine;

/* Takes a note away with the next batch. False: that is full. */
bool saved_forget(struct engine *engine, struct slice space, struct slice name);
/* Of one space. */
struct saved_trim {
    struct question question; /* first */
    instant at;               /* the next time */
    struct slice space;
    size_t at_once;
    int64_t again_ms;
    char before[INSTANT_STAMP_BYTES + 1];
    bool (*forget)(struct engine *engine, struct slice space, struct slice name);
    struct saved *old; /* the answer, */
    size_t count;
};

/*
 * Gives `forget` the notes of a space that are older than the trail is retained, some at a time, when trim->at has come, and
 * sets that anew. False from `forget` ends it for this time.
 */
void saved_trim(struct engine *engine, struct saved_trim *trim, struct slice space,
                bool (*forget)(struct engine *engine, struct slice space, struct slice name));

/* The same of what is retained for another time, or is large. */
struct trim_rule {
    struct slice space;
    int64_t keep_ms;  /* 0: for ever */
    size_t at_once;   /* notes that are read, with their values */
    int64_t again_ms; /* until the next of them, where there may be more */
    bool (*forget)(struct engine *engine, struct slice space, struct slice name);
};
void saved_trim_by(struct engine *engine, struct saved_trim *trim, const struct trim_rule *rule);

#endif
