/*
 * store_look.h - an SQLite store looked at from outside by its path, one question a call.
 */
#ifndef SUPPORT_STORE_LOOK_H
#define SUPPORT_STORE_LOOK_H

#include "store/inspect.h"

enum status look_facts(const char *path, struct store_facts *ret_facts, struct error *err);
enum status look_check(const char *path, struct error *err);
/* `reading` NULL: nothing is known of the trail. */
enum status look_verify(const char *path, const struct trail_reading *reading, struct trail_check *ret_check,
                        struct error *err);
enum status look_backup(const char *path, const char *target, struct store_facts *ret_facts, struct error *err);
enum status look_reader(const char *path, struct store_reader **ret_reader, struct error *err);

#endif
