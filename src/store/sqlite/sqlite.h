/*
 * sqlite.h - the embedded store: SQLite in WAL mode.
 *
 * One connection writes and it alone checkpoints; readers are read-only connections, and so is who looks from outside. A
 * lock file beside the database keeps a second daemon out.
 */
#ifndef STORE_SQLITE_SQLITE_H
#define STORE_SQLITE_SQLITE_H

#include "store/store.h"

extern const struct store_backend store_sqlite_backend;

enum status store_sqlite_open(struct slice path, const struct store_settings *settings, struct store **ret_store,
                              struct error *err) MUST_CHECK;

/* The version of the tables that this program writes. */
int store_sqlite_schema_version(void);

#endif
