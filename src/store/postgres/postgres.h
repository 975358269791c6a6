/*
 * postgres.h - a store on PostgreSQL, through libpq.
 *
 * One connection writes; each reader has one of its own. See README.md for what a batch is there.
 */
#ifndef STORE_POSTGRES_POSTGRES_H
#define STORE_POSTGRES_POSTGRES_H

#include "store/store.h"

extern const struct store_backend store_postgres_backend, store_postgresql_backend;

/* `rest` is the address behind "postgres:", as in "//user@host/database". STATUS_AWAY: it cannot be reached. */
enum status store_postgres_open(struct slice rest, const struct store_settings *settings, struct store **ret_store,
                                struct error *err) MUST_CHECK;

#endif
