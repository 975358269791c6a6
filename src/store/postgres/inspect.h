/*
 * inspect.h - what the server must be, and a store looked at from outside.
 */
#ifndef STORE_POSTGRES_INSPECT_H
#define STORE_POSTGRES_INSPECT_H

#include "store/inspect.h"
#include "store/postgres/link.h"

/* STATUS_UNSUPPORTED or STATUS_INVALID with a sentence: no daemon may work there. */
enum status server_look(struct postgres_link *link, const char *address, bool sync_always, struct error *err) MUST_CHECK;

enum status store_postgres_probe(struct slice rest, bool sync_always, struct error *err) MUST_CHECK;
enum status postgres_facts(struct store *base, struct store_facts *ret_facts, struct error *err);
enum status postgres_check(struct store *base, struct error *err);
enum status postgres_verify(struct store *base, const struct trail_reading *reading, struct trail_check *ret_check,
                            struct error *err);
enum status postgres_backup(struct store *base, const char *target, struct store_facts *ret_facts, struct error *err);

#endif
