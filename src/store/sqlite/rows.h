/*
 * rows.h - new rows on their way into a table, and old ones on their way out, written together.
 */
#ifndef STORE_SQLITE_ROWS_H
#define STORE_SQLITE_ROWS_H

#include "base/arena.h"
#include "base/instant.h"
#include "base/slice.h"
#include "base/status.h"

#include <sqlite3.h>

struct sqlite_batch;
struct sqlite_store;

enum { KEYS_NEW_BYTES = 4096 }; /* one bit for each of 32,768 kinds of key */
enum { SEQS_NEW_BYTES = 1024 }; /* one bit for each of 8,192 jobs in a row: those of one batch are mostly neighbours */

/* What stands in a column of a new row. */
struct sqlite_value {
    int type; /* SQLITE_INTEGER, SQLITE_TEXT, SQLITE_BLOB or SQLITE_NULL */
    union {
        int64_t number;
        struct slice text; /* lives until the batch ends */
    };
};

enum rows_table_name { ROWS_JOB, ROWS_PAYLOAD, ROWS_READY, ROWS_TIMER, ROWS_LEASE, ROWS_EVENT, ROWS_ARCHIVE, ROWS_COUNT };
enum { ROWS_OF_JOB = 1 << ROWS_JOB | 1 << ROWS_PAYLOAD | 1 << ROWS_READY | 1 << ROWS_LEASE }; /* what a job is read from */
enum { ROWS_GONE = 1 << ROWS_COUNT, ROWS_ALL = (1 << ROWS_COUNT) - 1 + ROWS_GONE };

/* The new rows of one table wait here. */
struct sqlite_rows {
    int columns;
    size_t count, capacity;
    struct sqlite_value *values; /* row after row */
};

/* Rows that go, of jobs one after the other by their numbers; last 0: none. */
struct sqlite_gone {
    int64_t first, last;
};
enum gone_name { GONE_JOB, GONE_LEASE, GONE_COUNT }; /* a job goes with its payload */

/*
 * New rows are gathered and written by one statement a table: most of what a small insert costs is the statement itself.
 * Whoever reads a table, or deletes from it, flushes it before. A rollback forgets what was gathered.
 */
enum status sqlite_rows_init(struct sqlite_store *store, struct error *err) MUST_CHECK;
void sqlite_rows_release(struct sqlite_store *store);
/* The columns of one more row, to be filled in all; NULL: no memory, and the batch's error says so. */
struct sqlite_value *sqlite_rows_add(struct sqlite_batch *batch, enum rows_table_name which) MUST_CHECK;
/*
 * A job goes with the next flush of ROWS_GONE, a lease with that of 1 << ROWS_LEASE: those that ended together go by one
 * statement. A lease that is itself among the new rows is flushed before.
 */
enum status sqlite_gone_add(struct sqlite_batch *batch, enum gone_name which, int64_t seq) MUST_CHECK;
bool sqlite_gone_has(const struct sqlite_store *store, enum gone_name which, int64_t seq);
/* `which` are bits 1 << ROWS_...; ROWS_GONE; ROWS_ALL. */
enum status sqlite_rows_flush(struct sqlite_batch *batch, unsigned which) MUST_CHECK;
void sqlite_rows_clear(struct sqlite_store *store);
/* Whether a job with that key may be among the new rows: a false yes costs a flush, a false no there is none. */
void sqlite_keys_note(struct sqlite_store *store, int64_t key);
bool sqlite_keys_may_have(struct sqlite_store *store, int64_t key);
/* The same of a job's number, among all rows that ROWS_OF_JOB names. */
void sqlite_seqs_note(struct sqlite_store *store, int64_t seq);
bool sqlite_seqs_may_have(struct sqlite_store *store, int64_t seq);

static inline struct sqlite_value value_int(int64_t number)
{
    return (struct sqlite_value){ .type = SQLITE_INTEGER, .number = number };
}

static inline struct sqlite_value value_instant(instant at)
{
    return (struct sqlite_value){ .type = at == INSTANT_NONE ? SQLITE_NULL : SQLITE_INTEGER, .number = at };
}

static inline struct sqlite_value value_text(struct slice text)
{
    return (struct sqlite_value){ .type = SQLITE_TEXT, .text = { text.len ? text.data : "", text.len } };
}

static inline struct sqlite_value value_blob(const void *data, size_t len)
{
    return (struct sqlite_value){ .type = SQLITE_BLOB, .text = { len ? data : "", len } };
}

#endif
