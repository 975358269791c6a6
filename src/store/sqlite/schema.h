/*
 * schema.h - pragmas, migrations, what a file is; times in it, after the clock went back.
 */
#ifndef STORE_SQLITE_SCHEMA_H
#define STORE_SQLITE_SCHEMA_H

#include "store/sqlite/handle.h"

enum { SCHEMA_WITH_HEADS = 6 }; /* the first version with forms of events and a saved head */

/* A new database gets its page size, every one the settings of its connection. */
enum status sqlite_schema_configure(sqlite3 *db, bool sync_always, struct error *err) MUST_CHECK;
/* Brings the schema to this program's version; refuses a newer one and files of others. */
enum status sqlite_schema_migrate(sqlite3 *db, void (*on_migrate)(int from, int to), struct error *err) MUST_CHECK;
/* The version of a store's schema; STATUS_INVALID: it is no store of this program. */
enum status sqlite_schema_identify(sqlite3 *db, int64_t *ret_version, struct error *err) MUST_CHECK;
/* The same with any table of steps; step i brings version i to i + 1. */
enum status sqlite_schema_migrate_by(sqlite3 *db, const char *const *steps, int count, struct error *err) MUST_CHECK;

/* ---- shift.c ---- */

/* When it is opened earlier than its newest time: moves what is left to wait for. */
enum status sqlite_shift(struct sqlite_store *store, struct error *err) MUST_CHECK;

#endif
