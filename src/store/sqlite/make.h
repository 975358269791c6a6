/*
 * make.h - where a new store may be made, and its files.
 */
#ifndef STORE_SQLITE_MAKE_H
#define STORE_SQLITE_MAKE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether there is a store, or may be one made: in an empty folder, or wherever the caller says. STATUS_INVALID: an empty
 * file or a log alone, which are what is left of a store, or a place that may be a mistake.
 */
enum status sqlite_make_check(const char *path, bool anywhere, struct error *err) MUST_CHECK;
/* The folder of `path` and those above it, as far as they are missing. Changes `path` and puts it back. */
enum status sqlite_make_folders(char *path, struct error *err) MUST_CHECK;
/* The empty file of a new store, with a mark beside it for as long as the store is not made. */
enum status sqlite_make_begin(char *path, struct error *err) MUST_CHECK;
enum status sqlite_make_end(const char *path, struct error *err) MUST_CHECK;

#endif
