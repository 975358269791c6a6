/*
 * connection.h - a connection to the database, what its failures mean, and one statement at a time.
 */
#ifndef STORE_SQLITE_CONNECTION_H
#define STORE_SQLITE_CONNECTION_H

#include "store/store.h"

#include <limits.h>
#include <sqlite3.h>

/* The status of an SQLite result code, with a sentence in `err`. */
enum status sqlite_failure(sqlite3 *db, int result, const char *doing, struct error *err);
/* STATUS_INVALID: there is something that is no file. To open a pipe might take for ever. */
enum status sqlite_file_check(const char *path, struct error *err);
/* Of a store that could not be opened: where the file itself shows why, `err` says that and what to do. Gives `status`. */
enum status sqlite_explain(const char *path, enum status status, struct error *err);
/* The folder that has the file; "." where the path names none. */
void sqlite_folder_of(const char *path, char ret_folder[PATH_MAX]);
/* Opens a file, or a folder, only to sync it. */
enum status sqlite_path_sync(const char *path, int flags, struct error *err) MUST_CHECK;
/* One number by an SQL text; `missing` when it gives no row or NULL. */
enum status sqlite_query_int64(sqlite3 *db, const char *sql, int64_t missing, int64_t *ret_value,
                               struct error *err) MUST_CHECK;
enum status sqlite_exec(sqlite3 *db, const char *sql, struct error *err) MUST_CHECK;

#endif
