/*
 * outside.h - looking at a store from another process.
 */
#ifndef STORE_SQLITE_OUTSIDE_H
#define STORE_SQLITE_OUTSIDE_H

#include "store/sqlite/handle.h"

#include <limits.h>

/* As much of a store as its read-only parts look at: the path. */
struct sqlite_outside {
    struct sqlite_store store;
    char path[PATH_MAX];
};
enum status sqlite_outside_init(struct sqlite_outside *outside, const char *path, struct error *err) MUST_CHECK;
/* `older`: stores of older versions will do. */
enum status sqlite_outside_version(const struct sqlite_outside *outside, bool older, int64_t *ret_version,
                                   struct error *err) MUST_CHECK;

#endif
