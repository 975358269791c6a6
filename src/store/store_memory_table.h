/*
 * store_memory_table.h - finds things by a pair of names.
 *
 * Chained hashing over links that live inside other structures. Adding never fails: when the
 * table cannot grow its chains become longer, nothing else.
 */
#ifndef STORE_STORE_MEMORY_TABLE_H
#define STORE_STORE_MEMORY_TABLE_H

#include "base/slice.h"

enum { TABLE_BUCKETS_FIRST = 64 };

/* The two names must live as long as the link is in the table. */
struct table_link {
    struct table_link *next;
    uint64_t hash;
    struct slice first, second;
};

struct table {
    struct table_link **buckets; /* NULL: still those of `few` */
    size_t bucket_count;         /* a power of two */
    size_t count;
    struct table_link *few[TABLE_BUCKETS_FIRST];
};

void table_init(struct table *table);
void table_release(struct table *table);

/* NULL when it is not there. */
struct table_link *table_find(const struct table *table, struct slice first, struct slice second);
/* The pair must not be in the table. */
void table_add(struct table *table, struct table_link *link);
void table_remove(struct table *table, struct table_link *link);
/* Takes out any one link; NULL when it is empty. Start with *cursor = 0 and add nothing meanwhile. */
struct table_link *table_pop(struct table *table, size_t *cursor);

#endif
