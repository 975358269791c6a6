#include "store/store_memory_table.h"

#include "base/hash.h"

#include <assert.h>
#include <stdlib.h>

void table_init(struct table *table)
{
    *table = (struct table){ .bucket_count = TABLE_BUCKETS_FIRST };
}

void table_release(struct table *table)
{
    free(table->buckets);
    table_init(table);
}

static uint64_t pair_hash(struct slice first, struct slice second)
{
    return hash_slice(hash_slice(0, first.len, first), 1, second);
}

static struct table_link **bucket(struct table *table, uint64_t hash)
{
    struct table_link **buckets = table->buckets ? table->buckets : table->few;
    return &buckets[hash & (table->bucket_count - 1)];
}

struct table_link *table_find(const struct table *table, struct slice first, struct slice second)
{
    struct table_link *const *buckets = table->buckets ? table->buckets : table->few;
    uint64_t hash = pair_hash(first, second);
    struct table_link *link = buckets[hash & (table->bucket_count - 1)];
    while (link && !(link->hash == hash && slice_equal(link->first, first) && slice_equal(link->second, second)))
        link = link->next;
    return link;
}

static void table_grow(struct table *table)
{
    struct table bigger = { .bucket_count = table->bucket_count * 2 };
    bigger.buckets = calloc(bigger.bucket_count, sizeof *bigger.buckets);
    if (!bigger.buckets)
        return;
    for (size_t i = 0; i < table->bucket_count; i++) {
        for (struct table_link *link = *bucket(table, i), *next; link; link = next) {
            next = link->next;
            struct table_link **slot = bucket(&bigger, link->hash);
            link->next = *slot;
            *slot = link;
        }
    }
    free(table->buckets);
    table->buckets = bigger.buckets;
    table->bucket_count = bigger.bucket_count;
}

void table_add(struct table *table, struct table_link *link)
{
    assert(!table_find(table, link->first, link->second));
    if (table->count >= table->bucket_count)
        table_grow(table);
    link->hash = pair_hash(link->first, link->second);
    struct table_link **slot = bucket(table, link->hash);
    link->next = *slot;
    *slot = link;
    table->count++;
}

void table_remove(struct table *table, struct table_link *link)
{
    struct table_link **slot = bucket(table, link->hash);
    while (*slot != link) {
        assert(*slot);
        slot = &(*slot)->next;
    }
    *slot = link->next;
    link->next = NULL;
    table->count--;
}

struct table_link *table_pop(struct table *table, size_t *cursor)
{
    for (; *cursor < table->bucket_count; ++*cursor) {
        struct table_link *link = *bucket(table, *cursor);
        if (link) {
            table_remove(table, link);
            return link;
        }
    }
    return NULL;
}
