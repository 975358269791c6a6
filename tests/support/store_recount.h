/*
 * store_recount.h - checks a SQLite store's file from scratch, without the code that wrote it.
 */
#ifndef SUPPORT_STORE_RECOUNT_H
#define SUPPORT_STORE_RECOUNT_H

#include "base/slice.h"

enum { RECOUNT_TEXT_BYTES = 512, RECOUNT_DIGEST_BYTES = 32 };

/*
 * Every invariant of the database: each job in exactly the tables that its state asks for, lane counters as a
 * recount gives them, the last event of each job telling its state, an unbroken chain, sound pages. False: the first
 * violation is in ret_text. The store must be closed, or committed and with no checkpoint under way.
 */
bool recount_holds(const char *path, char ret_text[RECOUNT_TEXT_BYTES]);

/* A digest of all that is in it, but for what differs between equal stores: the seed and the numbers of leases. */
bool recount_digest(const char *path, unsigned char ret_digest[RECOUNT_DIGEST_BYTES]);

#endif
