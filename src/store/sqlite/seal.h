/*
 * seal.h - the events' chain: trimmed, its head saved.
 */
#ifndef STORE_SQLITE_SEAL_H
#define STORE_SQLITE_SEAL_H

#include "store/sqlite/handle.h"

enum { HEAD_EVERY_MS = 1000 };

/* When a store is opened: notes what went wrong with its trail meanwhile, and what was trimmed by an older program. */
enum status sqlite_trail_begin(struct sqlite_store *store, struct error *err) MUST_CHECK;
/* Within a batch: keeps the head, unless that was done just now. */
enum status sqlite_trail_keep(struct sqlite_batch *batch, bool at_once) MUST_CHECK;
/* The same in a transaction of its own, if the head has moved. A full disk is no failure. */
enum status sqlite_trail_settle(struct sqlite_store *store, instant now, struct error *err) MUST_CHECK;
/* A transaction of its own: an SQL text, NULL: none, then events with these data, ended by NULL, then the head. */
enum status sqlite_trail_note(struct sqlite_store *store, instant now, const char *sql, const char *const *notes,
                              struct error *err) MUST_CHECK;
struct trail_head sqlite_store_head(struct store *store);
enum status sqlite_trim_apply(struct sqlite_batch *batch, struct store_op *op) MUST_CHECK;

#endif
