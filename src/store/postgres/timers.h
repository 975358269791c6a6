/*
 * timers.h - where the timers that are due begin.
 *
 * Those that were stay in the index until nobody's snapshot needs them, and a promotion comes every second or more often: it
 * begins a little before the last one that left none. Whatever another node sets earlier than that, and nobody hears of, its
 * clock being behind or its commit late, is found within a minute, when everything is looked at.
 */
#ifndef STORE_POSTGRES_TIMERS_H
#define STORE_POSTGRES_TIMERS_H

#include "store/postgres/work.h"

/* The time from which on the promotion of a round looks. */
instant timers_begin_at(const struct postgres_batch *batch);
/* It has found all that were due, or not. */
void timers_promoted(struct postgres_batch *batch, bool all);
/* A timer was set, here or elsewhere. INSTANT_NONE: none was. */
void timers_set(struct postgres_store *store, instant at);
/* Others may have set some: this process owns more or less now. */
void timers_forget(struct postgres_store *store);

#endif
