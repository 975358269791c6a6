/*
 * store_contract.h - one suite over every store: what store.h says, and a random comparison with a model.
 */
#ifndef SUPPORT_STORE_CONTRACT_H
#define SUPPORT_STORE_CONTRACT_H

/* The whole suite over one of stores_under_test; the number of tests that failed. */
int store_contract_run(const char *name);

#endif
