/*
 * outside.h - looking at a store by read-only connections of one's own, as another process does.
 */
#ifndef STORE_SQLITE_OUTSIDE_H
#define STORE_SQLITE_OUTSIDE_H

#include "store/inspect.h"
#include "store/sqlite/handle.h"

/* Which version it has; STATUS_UNSUPPORTED: this program does not read it. `older`: stores of older versions will do. */
enum status sqlite_version_check(const struct sqlite_store *store, bool older, int64_t *ret_version,
                                 struct error *err) MUST_CHECK;

enum status sqlite_store_space(struct store *store, struct store_space *ret_space, struct error *err);
enum status sqlite_store_facts(struct store *store, struct store_facts *ret_facts, struct error *err);
enum status sqlite_store_check(struct store *store, struct error *err);
enum status sqlite_store_backup(struct store *store, const char *target, struct store_facts *ret_facts, struct error *err);

/* ---- verify.c ---- */

enum status sqlite_store_verify(struct store *store, const struct trail_reading *reading, struct trail_check *ret_check,
                                struct error *err);

/* ---- backup.c ---- */

/* Durable when it returns; STATUS_CONFLICT: `target` is there already. */
enum status sqlite_copy(const struct sqlite_store *store, const char *target, struct error *err) MUST_CHECK;

#endif
