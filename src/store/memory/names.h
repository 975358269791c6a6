/*
 * names.h - finds things by a pair of names.
 *
 * Chained hashing over links that live inside other structures. Adding never fails: when the
 * table cannot grow its chains become longer, nothing else.
 */
#ifndef STORE_MEMORY_NAMES_H
#define STORE_MEMORY_NAMES_H

#include "base/slice.h"

enum { NAMES_BUCKETS_FIRST = 64 };

/* The two names must live as long as the link is in the table. */
struct names_link {
    struct names_link *next;
    uint64_t hash;
    struct slice first, second;
};

struct names {
    struct names_link **buckets; /* NULL: still those of `few` */
    size_t bucket_count;         /* a power of two */
    size_t count;
    struct names_link *few[NAMES_BUCKETS_FIRST];
};

void names_init(struct names *names);
void names_release(struct names *names);

/* It is NULL when it is not there. */
struct names_link *names_find(const struct names *names, struct slice first, struct slice second);
/* The pair must not be in the table. */
void names_add(struct names *names, struct names_link *link);
void names_remove(struct names *names, struct names_link *link);
/* Takes out any one link; NULL when it is empty. Start with *cursor = 0 and add nothing meanwhile. */
struct names_link *names_pop(struct names *names, size_t *cursor);
/* The one after `link`, in no order; start with NULL and *cursor = 0. */
struct names_link *names_next(const struct names *names, size_t *cursor, struct names_link *link);

#endif
