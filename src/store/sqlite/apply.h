/*
 * apply.h - a batch as one transaction, and what each operation in it does.
 */
#ifndef STORE_SQLITE_APPLY_H
#define STORE_SQLITE_APPLY_H

#include "store/sqlite/handle.h"

enum status sqlite_store_apply(struct store *store, instant now, struct store_op *ops, size_t count, struct arena *memory,
                               struct error *err);
enum status sqlite_op_apply(struct sqlite_batch *batch, struct store_op *op) MUST_CHECK;

#endif
