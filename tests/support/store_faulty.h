/*
 * store_faulty.h - a store that fails when it is told to: for tests of whoever uses a store.
 *
 * It hands every call on to another store, except those that were chosen to fail: these do nothing
 * and report the status that was asked for. It can be away, as a store across a network is, and then loses answers.
 */
#ifndef SUPPORT_STORE_FAULTY_H
#define SUPPORT_STORE_FAULTY_H

#include "store/store.h"

enum faulty_call {
    FAULTY_APPLY,
    FAULTY_SYNC,
    FAULTY_READ, /* any call of any reader, and opening one */
    FAULTY_CALLS
};

/* The inner store belongs to the new one, which closes it; on failure it stays the caller's. */
enum status store_faulty_wrap(struct store *inner, struct store **ret_store, struct error *err) MUST_CHECK;

/*
 * The nth such call from now on (1: the next one) fails with `status`, and when `for_good` all after it too.
 * Replaces what was set for the same kind of call; n = 0 sets nothing. May be called from any thread.
 */
void store_faulty_set(struct store *store, enum faulty_call call, int64_t n, bool for_good, enum status status);

enum faulty_away {
    AWAY_NOT,
    AWAY_BEFORE, /* nothing reaches it */
    AWAY_AFTER,  /* the next transaction reaches it, its answer is lost; nothing after that does */
};

/*
 * While away every call is answered STATUS_AWAY. A transaction before `outcome` has told what became of the last
 * one fails an assertion. From any thread.
 */
void store_faulty_away(struct store *store, enum faulty_away away);
/* Whether a transaction is in doubt that was applied. */
bool store_faulty_lost_answer(struct store *store);

/* While held, a call of apply waits before it does anything. Let it go before the store is closed. From any thread. */
void store_faulty_hold(struct store *store, bool held);
/* As that, but only batches that keep a note (OP_SAVE) wait. Ended by store_faulty_hold too. */
void store_faulty_hold_notes(struct store *store);
/* Waits until a call of apply is there, held; at most a minute, then false. */
bool store_faulty_await_held(struct store *store);

/* While held, a call of any reader waits before it does anything. Let it go before the store is closed. From any thread. */
void store_faulty_hold_reads(struct store *store, bool held);
/* Waits until one is there, held; at most a minute, then false. */
bool store_faulty_await_held_read(struct store *store);

/* How many such calls there were, failed ones included. */
int64_t store_faulty_count(struct store *store, enum faulty_call call);

#endif
