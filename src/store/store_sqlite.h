/*
 * store_sqlite.h - the embedded store: SQLite in WAL mode.
 *
 * One connection writes and it alone checkpoints; readers are read-only connections. A lock
 * file beside the database keeps a second daemon out.
 */
#ifndef STORE_STORE_SQLITE_H
#define STORE_STORE_SQLITE_H

#include "store/store.h"

enum status store_sqlite_open(struct slice path, const struct store_settings *settings, struct store **ret_store,
                              struct error *err) MUST_CHECK;

#endif
