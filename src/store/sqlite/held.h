/*
 * held.h - the rows of running jobs, in memory.
 */
#ifndef STORE_SQLITE_HELD_H
#define STORE_SQLITE_HELD_H

#include "store/sqlite/row.h"

/*
 * The rows of running jobs, as far as there is room: what ends a lease need not read what the claim has just written. Only
 * sqlite_row_change tells it of changes, and every rollback empties it.
 */
enum status sqlite_held_init(struct sqlite_store *store, struct error *err) MUST_CHECK;
void sqlite_held_release(struct sqlite_store *store);
/* `row` is that of a running job; its texts are copied. */
void sqlite_held_put(struct sqlite_store *store, const struct sqlite_row *row);
void sqlite_held_remove(struct sqlite_store *store, int64_t seq);
void sqlite_held_clear(struct sqlite_store *store);
/* NULL: not held, read it. Valid until the next put. */
const struct sqlite_row *sqlite_held_find(const struct sqlite_store *store, int64_t seq);

#endif
