/*
 * erase.h - what is stored of a person goes from the file itself, not only from what can be read of it.
 *
 * A page that is freed, and the log, keep their bytes until something else is written there. So whatever is erased is
 * overwritten with zeros in its own transaction. Then the file is scrubbed: free pages are given back, the log is written
 * back and cut. That this is to be done is saved with the erasure, and survives a crash.
 */
#ifndef STORE_SQLITE_ERASE_H
#define STORE_SQLITE_ERASE_H

#include "store/sqlite/handle.h"

/* Within a batch, before the first change because of a person. */
enum status sqlite_erase_begin(struct sqlite_batch *batch) MUST_CHECK;
/* After the batch, however it ended. */
void sqlite_erase_end(const struct sqlite_batch *batch);
enum status sqlite_erase_apply(struct sqlite_batch *batch, struct store_op *op) MUST_CHECK;
/* When a store is opened: whether its file is still to be scrubbed. */
enum status sqlite_scrub_load(struct sqlite_store *store, struct error *err) MUST_CHECK;
/* Once a second: some of that. Who reads at the moment is not waited for; a full disk is no failure. */
enum status sqlite_scrub(struct sqlite_store *store, struct error *err) MUST_CHECK;

#endif
