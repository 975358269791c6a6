/*
 * store_script.h - a fixed sequence of batches with every kind of operation, for tests that break things on the way.
 *
 * Equal runs give equal stores, so the state after each batch has one digest that a broken run is held against.
 */
#ifndef SUPPORT_STORE_SCRIPT_H
#define SUPPORT_STORE_SCRIPT_H

#include "store/store.h"

enum { SCRIPT_BATCHES = 20, SCRIPT_SEQ_MAX = 4000, SCRIPT_SEED = 7 };

/* What a run must remember between batches: the leases it was given. */
struct script {
    int64_t tokens[SCRIPT_SEQ_MAX + 1];
};

/* Batches after which a run closes the store and opens it again, or has its process die and opens it again. */
bool script_closes_after(int batch);
bool script_dies_after(int batch);

/* Applies batch `number`. On STATUS_OK every operation in it had the result that it always has. */
enum status script_apply(struct script *script, struct store *store, int number, struct error *err);
/* Asks the store for the leases that are out: for a run whose results were lost. */
enum status script_learn(struct script *script, struct store *store, struct error *err);

#endif
