/*
 * claimed.h - what this process has claimed: jobs as their claims left them, so that who settles one need not ask for it.
 *
 * Where others write too it is a guess. Every change of a running job has an event, and its lease names the last: the
 * lease is deleted by that number, so that of a job which another node has changed none is found, and the batch is done
 * anew. Whatever fails lets all be forgotten; what is not known is asked for.
 */
#ifndef STORE_POSTGRES_CLAIMED_H
#define STORE_POSTGRES_CLAIMED_H

#include "store/postgres/work.h"

/* Whether the lease is known by that token; then its job is among those of the round. */
bool claimed_recall(struct postgres_batch *batch, int64_t seq, int64_t token);
/* The round has been written. */
void claimed_follow(struct postgres_batch *batch);
/* All of them. */
void claimed_forget(struct postgres_store *store);

#endif
