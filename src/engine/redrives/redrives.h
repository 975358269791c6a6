/*
 * redrives.h - dead letters that an operator sends back to work, by the thousand.
 *
 * A redrive is saved: what it means, how it goes and how far it has come, in the same transaction as the letters of each
 * step, so that it goes on after a crash or at another node from where it was. What has become of its letters is counted
 * by the store (store/tally.h). The steward runs them, one step at a time over all of them, in turns: a step is a page read
 * elsewhere than in this loop, and a batch of the writer's. While that is written the next page is read.
 */
#ifndef ENGINE_REDRIVES_REDRIVES_H
#define ENGINE_REDRIVES_REDRIVES_H

#include "engine/questions.h"
#include "engine/redrives/redrive_record.h"
#include "engine/saved/trim.h"
#include "engine/saved/waits.h"

/* In all, and of the letters of one tenant: who acts for that one alone leaves room for the others. */
enum { REDRIVES_ACTIVE_MAX = 100, REDRIVES_TENANT_MAX = REDRIVES_ACTIVE_MAX / 4 };

struct engine;
struct redrive;

/* Those of the engine. */
struct redrives {
    struct question load; /* first: which ones are to be gone on with */
    struct redrive *first;
    size_t count;
    bool loaded;
    instant load_at;
    struct batch *out; /* one step at a time */
    struct saved *active; /* the answer of `load`, */
    struct slice *values;
    size_t active_count;
    struct saved_trim trim_records, trim_counts, trim_payloads;
    instant begun_at; /* the last one, */
    int begun;        /* and how many at that instant */
};

/* Goes on with what is due. */
void redrives_run(struct engine *engine);
instant redrives_next(const struct engine *engine);
/* How much of it is under way. */
size_t redrives_under_way(const struct engine *engine);
void redrives_release(struct engine *engine);

/* One that has not ended, or is being undone; NULL: there is none. They are loaded. */
struct redrive *redrive_find(const struct engine *engine, struct slice id);
/* Lets go what is older than it is retained; now and then. They are loaded. */
void redrives_trim(struct engine *engine);

/*
 * Begins one; the record is taken over, whatever comes of it. `wait` is done when it is saved. STATUS_CONFLICT: this engine
 * is not the steward's; STATUS_LIMIT: there are too many already.
 */
enum status engine_redrive_begin(struct engine *engine, struct redrive_record *record, struct saved_wait *wait,
                                 struct error *err) MUST_CHECK;

enum redrive_order { REDRIVE_CANCEL, REDRIVE_UNDO };
/*
 * Ends one, or takes it back; `saved` is the record as it is in the store. `wait` as above. STATUS_CONFLICT: it has ended,
 * so that there is nothing to cancel, or it is too long ago: the payloads that it corrected are not retained any more.
 */
enum status engine_redrive_order(struct engine *engine, enum redrive_order order, struct slice saved, struct slice by,
                                 struct saved_wait *wait, struct error *err) MUST_CHECK;

#endif
