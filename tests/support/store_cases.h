/*
 * store_cases.h - what every store must do, as tests over a struct store_fixture.
 */
#ifndef SUPPORT_STORE_CASES_H
#define SUPPORT_STORE_CASES_H

#include "support/store_fixture.h"

struct store_case {
    const char *name;
    void (*test)(void **state);
};

/* Each list ends with a NULL name. */
extern const struct store_case store_cases_write[];  /* insert, claim, settle */
extern const struct store_case store_cases_name[];   /* cancel, prioritize, redrive, purge */
extern const struct store_case store_cases_key[];    /* jobs of one key */
extern const struct store_case store_cases_time[];   /* promote, leases, trim */
extern const struct store_case store_cases_nodes[];  /* sessions, and several nodes on one store */
extern const struct store_case store_cases_read[];   /* readers, events */
extern const struct store_case store_cases_batch[];  /* batches, failures, sizes */
extern const struct store_case store_cases_redrive[]; /* redrives, filters */
extern const struct store_case store_cases_erase[];   /* persons */
extern const struct store_case store_cases_export[];  /* dead letters that become jobs elsewhere */
extern const struct store_case store_cases_random[]; /* against a model */

/* Applies the batch with memory that ends, the later the higher the round; the results are not looked at. */
typedef enum status (*batch_try)(struct store_fixture *f, struct store_op *ops, size_t count, size_t round);
/* Repeats a batch with every kind of change until it succeeds: each time before, nothing must have happened. */
void batch_fails_and_leaves_nothing(struct store_fixture *f, batch_try try);

#endif
