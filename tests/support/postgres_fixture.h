/*
 * postgres_fixture.h - short words for stores on PostgreSQL: a fixture on one that is open, and nodes that share it.
 */
#ifndef SUPPORT_POSTGRES_FIXTURE_H
#define SUPPORT_POSTGRES_FIXTURE_H

#include "store/trail.h"
#include "support/store_fixture.h"

#include <pthread.h>

/* Fails the test, with what the error says. */
void must(enum status status, const struct error *err);
struct store *store_at(const char *address, const struct store_settings *settings);
/* A fixture on a store that is open, which ends with it. */
struct store_fixture fixture_on(struct store *store);
void fixture_drop(struct store_fixture *f);
/* The same, when it was audited. */
void fixture_close(struct store_fixture *f);
/* All in one batch, and all as it should be. */
void run_together(struct store_fixture *f, struct store_op *ops, size_t count);
/* The first column of a statement's first row; and how many rows a table has. */
int64_t number_of(const char *address, const char *sql);
int64_t rows_of(const char *address, const char *table);
struct store_settings node_named(const char *name);
/* As that node, and closed again. */
enum status open_named(const char *address, const char *name, struct error *err);
void note_in(struct store_fixture *f, const char *data);
enum status verify_at(const char *address, const struct trail_head *expected, size_t count, struct trail_check *ret_check,
                      struct error *err);

/* A batch that a thread of its own applies; when it has ended, what became of it. */
struct applying {
    struct store_fixture *f;
    struct store_op *ops;
    size_t count;
    enum status status;
    struct error err;
    pthread_t thread;
};

void applying_begin(struct applying *applying, struct store_fixture *f, struct store_op *ops, size_t count);
void applying_end(struct applying *applying);

#endif
