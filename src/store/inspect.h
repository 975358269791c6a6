/*
 * inspect.h - for who looks after a store: where it is, how large, whether it is whole; and a copy of it.
 *
 * Of a store that is open, or of one by store_look. What a backend cannot do is STATUS_UNSUPPORTED with a sentence, and
 * STATUS_NOT_FOUND says that there is no store in its place.
 */
#ifndef STORE_INSPECT_H
#define STORE_INSPECT_H

#include "store/store.h"
#include "store/trail.h"

enum { STORE_FOLDER_BYTES = 4096 };

/* The room that a store has and takes; -1: not known. */
struct store_space {
    int64_t bytes, log_bytes;
    int64_t free_bytes;
    char folder[STORE_FOLDER_BYTES]; /* where that room is, or would be if the store were there; empty: in no folder */
    bool folder_writable;            /* by this process */
};

/* So cheap that it may be asked each second, from any thread. Of a store that does not know, nothing is known. */
enum status store_space(struct store *store, struct store_space *ret_space, struct error *err) MUST_CHECK;
/* Says what is free; -1 where that is not known. */
int64_t store_free_bytes(struct store *store);

struct store_facts {
    int64_t schema_version, schema_newest;   /* its own, and the one that this program writes */
    int64_t bytes;
    int64_t pending, running, waiting, dead; /* jobs */
    int64_t event_first, event_last;         /* numbers; 0: no event */
    instant newest_at;                       /* of the newest event; 0: none */
    const char *unwritable;                  /* why this process may not change it; NULL: it may */
    bool alone;                              /* no other machine has what is acknowledged: its server has no such standby */
};

/* Reads counts of all lanes. STATUS_INVALID: what is there is of another program. */
enum status store_facts(struct store *store, struct store_facts *ret_facts, struct error *err) MUST_CHECK;

/* Whether pages and rows are in order, which reads all of them; STATUS_CORRUPT with the first fault. */
enum status store_check(struct store *store, struct error *err) MUST_CHECK;

/*
 * Follows the events' hashes from the oldest that is there to the head that the store has saved, and beyond. STATUS_CORRUPT
 * names the event where they part; STATUS_INVALID: there are no events to be read, the store is damaged or none, or the
 * key is missing. *ret_check is how far it came; last < first: there is no event.
 */
enum status store_verify(struct store *store, const struct trail_reading *reading, struct trail_check *ret_check,
                         struct error *err) MUST_CHECK;

/*
 * Copies the store as of one moment to a file, durable when it returns, and reads the copy's facts. STATUS_CONFLICT:
 * `target` is there already.
 */
enum status store_backup(struct store *store, const char *target, struct store_facts *ret_facts,
                         struct error *err) MUST_CHECK;

#endif
