/*
 * schema.h - the tables, and the numbered steps to them.
 *
 * A step is one transaction, under a lock that every program takes which changes the schema, and before the writers' own: so
 * that those which wait for another to bring the schema forward are not among those which it must not do that to. Steps that
 * *expand* add what older programs need not know; one that *contracts* names the oldest version that may still write.
 */
#ifndef STORE_POSTGRES_SCHEMA_H
#define STORE_POSTGRES_SCHEMA_H

#include "store/postgres/link.h"
#include "store/store.h"

/* Held by every program that writes: by one without a node's name alone, by nodes together. */
#define WRITER_LOCK "hashtext('insist writer'), hashtext(current_schema())"

/* Asks for a lock of the session's so often at most, a tenth of a second apart. */
enum status lock_try(struct postgres_link *link, const char *sql, int tries, bool *ret_locked, struct error *err) MUST_CHECK;

/* For who prepares the schema; the end of the connection unlocks it too. STATUS_BUSY: another does it, and it takes long. */
enum status schema_lock(struct postgres_link *link, struct error *err) MUST_CHECK;
enum status schema_unlock(struct postgres_link *link, struct error *err) MUST_CHECK;

/* The version that this program writes. */
int postgres_schema_version(void);
/*
 * Brings the schema to version `newest`; *ret_from is what was there, 0: nothing. STATUS_UNSUPPORTED: a newer program has
 * been there. STATUS_BUSY: other programs run, which could not live with what this one needs if they are older.
 */
enum status schema_prepare(struct postgres_link *link, const struct store_settings *settings, int newest, int *ret_from,
                           struct error *err) MUST_CHECK;
/* The version of what is there, 0: nothing. STATUS_UNSUPPORTED: this program may not write to it any more. */
enum status schema_check(struct postgres_link *link, int *ret_version, struct error *err) MUST_CHECK;

#endif
