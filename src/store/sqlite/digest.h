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
/* Makes the digest whole that OP_INSERT compares with, where the row has none: before its payload is corrected, too. */
enum status sqlite_digest_complete(struct sqlite_batch *batch, struct sqlite_row *row) MUST_CHECK;
/* The row's payload was corrected. */
enum status sqlite_digest_correct(struct sqlite_batch *batch, struct sqlite_row *row) MUST_CHECK;

#endif
