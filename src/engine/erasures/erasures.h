/*
 * erasures.h - what is stored of a person, taken out on request.
 *
 * An erasure is saved: of whom, and how far it has come, in the same transaction as what each step takes out, so that it
 * goes on after a crash or at another node from where it was. It goes over all jobs, then over the copies that redrives
 * have, then over the trail, in pieces read elsewhere than in this loop and in small batches of the writer's. A job that
 * is being sent cannot go: then there is another pass, until none was found. The steward runs them, one after the other.
 *
 * When it is done, its record says what was found, and not of whom.
 */
#ifndef ENGINE_ERASURES_ERASURES_H
#define ENGINE_ERASURES_ERASURES_H

#include "engine/erasures/erasure_record.h"
#include "engine/questions.h"
#include "engine/saved/trim.h"
#include "engine/saved/waits.h"

/* That wait for their turn; in all, and of one tenant alone. */
enum { ERASURES_MAX = 100, ERASURES_TENANT_MAX = ERASURES_MAX / 4 };

struct engine;
struct erasure;

/* Those of the engine. */
struct erasures {
    struct question load; /* first: which ones are to be gone on with */
    struct erasure *first; /* the one that is run */
    size_t count;
    bool loaded;
    instant load_at;
    struct batch *out;
    struct saved *active; /* the answer of `load`, */
    struct slice *values;
    size_t active_count;
    struct saved_trim trim; /* of the records of those that are done */
    instant begun_at; /* the last one, */
    int begun;        /* and how many at that instant */
};

/* Goes on with what is due. */
void erasures_run(struct engine *engine);
instant erasures_next(const struct engine *engine);
/* How much of it is under way. */
size_t erasures_under_way(const struct engine *engine);
void erasures_release(struct engine *engine);

/*
 * Begins one; the record is taken over, whatever comes of it, but *record has its id. `wait` is done when it is saved.
 * STATUS_CONFLICT: this engine is not the steward's; STATUS_LIMIT: too many wait already.
 */
enum status engine_erasure_begin(struct engine *engine, struct erasure_record *record, struct saved_wait *wait,
                                 struct error *err) MUST_CHECK;

#endif
