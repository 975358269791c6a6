/*
 * tend.h - what is asked on the writer's connection between batches.
 */
#ifndef STORE_POSTGRES_TEND_H
#define STORE_POSTGRES_TEND_H

#include "store/postgres/handle.h"

enum status postgres_tend(struct store *base, instant now, struct error *err);
/* At the stop, when nobody writes any more: where this node has left the others. What fails is said by them. */
void heads_leave(struct postgres_store *store, instant now);
/* Of a batch that others were quicker than, again and again: STATUS_FENCED if they go on with its chain, else `status`. */
enum status session_ask(struct postgres_store *store, enum status status, struct error *err) MUST_CHECK;

#endif
