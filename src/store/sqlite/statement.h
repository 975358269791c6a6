/*
 * statement.h - what the writer has prepared, and values in and out.
 */
#ifndef STORE_SQLITE_STATEMENT_H
#define STORE_SQLITE_STATEMENT_H

#include "store/sqlite/handle.h"

enum status sqlite_statements_prepare(struct sqlite_store *store, struct error *err) MUST_CHECK;

void sqlite_bind_slice(sqlite3_stmt *statement, int parameter, struct slice text);
void sqlite_bind_instant(sqlite3_stmt *statement, int parameter, instant at);
struct slice sqlite_column_slice(sqlite3_stmt *statement, int column);
instant sqlite_column_instant(sqlite3_stmt *statement, int column);
/* Copies into `memory`; an empty one costs nothing. */
enum status sqlite_column_copy(sqlite3_stmt *statement, int column, struct arena *memory, struct slice *ret_text) MUST_CHECK;

/* Runs a statement that gives no rows. */
enum status sqlite_run(struct sqlite_batch *batch, enum statement which) MUST_CHECK;
/* True while there is a row; resets the statement at the end. */
enum status sqlite_next(struct sqlite_batch *batch, enum statement which, bool *ret_row) MUST_CHECK;
enum status sqlite_meta_set(struct sqlite_batch *batch, const char *name, int64_t value) MUST_CHECK;

#endif
