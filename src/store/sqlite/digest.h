/*
 * digest.h - whether a job is still what was written.
 */
#ifndef STORE_SQLITE_DIGEST_H
#define STORE_SQLITE_DIGEST_H

#include "store/sqlite/row.h"

bool sqlite_digest_possible(size_t len);
/* Makes the digest of a new job. */
void sqlite_digest_make(const struct op_insert *insert, struct sqlite_row *row);
/* Whether the row, read with its payload, is not what it was when it was written. */
bool sqlite_digest_differs(const struct sqlite_row *row);
/* The row's payload is another from now on. */
enum status sqlite_digest_correct(struct sqlite_batch *batch, struct sqlite_row *row, struct slice payload) MUST_CHECK;

#endif
