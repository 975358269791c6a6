/*
 * sqlite.h - the embedded store: SQLite in WAL mode.
 *
 * One connection writes and it alone checkpoints; readers are read-only connections. A lock
 * file beside the database keeps a second daemon out.
 */
#ifndef STORE_SQLITE_SQLITE_H
#define STORE_SQLITE_SQLITE_H

#include "store/store.h"
#include "store/trail.h"

enum status store_sqlite_open(struct slice path, const struct store_settings *settings, struct store **ret_store,
                              struct error *err) MUST_CHECK;

/*
 * From outside: read-only connections of one's own, that lock nobody out and write nothing, also while a daemon has the
 * store open. STATUS_NOT_FOUND: there is no such file.
 */

struct store_sqlite_facts {
    int64_t schema_version;
    int64_t bytes;
    int64_t pending, running, waiting, dead; /* jobs */
    int64_t event_first, event_last;         /* numbers; 0: no event */
    instant newest_at;                       /* of the newest event; 0: none */
};

/* The version that this program writes. */
int store_sqlite_schema_version(void);

/* STATUS_INVALID: a file of another program. `in_use` is false only for a file that nobody writes, as a backup. */
enum status store_sqlite_facts(const char *path, bool in_use, struct store_sqlite_facts *ret_facts,
                               struct error *err) MUST_CHECK;

/* Whether SQLite finds its pages and rows in order; STATUS_CORRUPT with the first fault. */
enum status store_sqlite_quick_check(const char *path, struct error *err) MUST_CHECK;

/*
 * A reader of its own, to be closed with reader_close. STATUS_INVALID: no store of this program; STATUS_UNSUPPORTED: a store
 * of another version.
 */
enum status store_sqlite_reader(const char *path, struct store_reader **ret_reader, struct error *err) MUST_CHECK;

/* How a trail is to be followed; all of it may be left out. */
struct store_sqlite_trail {
    const struct trail_key *key;       /* the store's, if its events are under one */
    const struct trail_head *expected; /* events that were noted earlier */
    size_t expected_count;
    /* Called with the newest event that was trimmed, number 0: none; then with each event that was found to be right. */
    enum status (*begin)(void *context, const struct trail_head *anchor, struct error *err);
    enum status (*visit)(void *context, const struct event *event, struct error *err);
    void *context;
};

/*
 * Follows the events' hashes from the oldest that is kept to the head that the store keeps, and beyond. STATUS_CORRUPT names
 * the event where they part; STATUS_INVALID: there are no events to be read, the file is damaged or no store, or the key is
 * missing. *ret_check is how far it came; last < first: there is no event.
 */
enum status store_sqlite_trail(const char *path, const struct store_sqlite_trail *trail, struct trail_check *ret_check,
                               struct error *err) MUST_CHECK;

/* The same with nothing known of it. */
enum status store_sqlite_verify(const char *path, struct trail_check *ret_check, struct error *err) MUST_CHECK;

/* Copies the store as of one moment. STATUS_CONFLICT: `target` is there already. Durable when it returns. */
enum status store_sqlite_backup_file(const char *path, const char *target, struct error *err) MUST_CHECK;

#endif
