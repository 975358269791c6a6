#include "store/memory/names.h"

#include "base/hash.h"

#include <assert.h>
#include <stdlib.h>

void names_init(struct names *names)
{
    *names = (struct names){ .bucket_count = NAMES_BUCKETS_FIRST };
}

void names_release(struct names *names)
{
    free(names->buckets);
    names_init(names);
}

static uint64_t pair_hash(struct slice first, struct slice second)
{
    return hash_slice(hash_slice(0, first.len, first), 1, second);
}

static struct names_link **bucket(struct names *names, uint64_t hash)
{
    assert((names->bucket_count & (names->bucket_count - 1)) == 0);
    struct names_link **buckets = names->buckets ? names->buckets : names->few;
    return &buckets[hash & (names->bucket_count - 1)];
}

struct names_link *names_find(const struct names *names, struct slice first, struct slice second)
{
    assert(names->bucket_count > 0);
    struct names_link *const *buckets = names->buckets ? names->buckets : names->few;
    uint64_t hash = pair_hash(first, second);
    struct names_link *link = buckets[hash & (names->bucket_count - 1)];
    while (link && !(link->hash == hash && slice_equal(link->first, first) && slice_equal(link->second, second)))
        link = link->next;
    return link;
}

static void table_grow(struct names *names)
{
    assert(names->count >= names->bucket_count);
    struct names bigger = { .bucket_count = names->bucket_count * 2 };
    bigger.buckets = calloc(bigger.bucket_count, sizeof *bigger.buckets);
    if (!bigger.buckets)
        return;
    for (size_t i = 0; i < names->bucket_count; i++) {
        for (struct names_link *link = *bucket(names, i), *next; link; link = next) {
            next = link->next;
            struct names_link **slot = bucket(&bigger, link->hash);
            link->next = *slot;
            *slot = link;
        }
    }
    free(names->buckets);
    names->buckets = bigger.buckets;
    names->bucket_count = bigger.bucket_count;
}

void names_add(struct names *names, struct names_link *link)
{
    assert(!names_find(names, link->first, link->second));
    if (names->count >= names->bucket_count)
        table_grow(names);
    link->hash = pair_hash(link->first, link->second);
    struct names_link **slot = bucket(names, link->hash);
    link->next = *slot;
    *slot = link;
    names->count++;
}

void names_remove(struct names *names, struct names_link *link)
{
    assert(names->count > 0);
    struct names_link **slot = bucket(names, link->hash);
    while (*slot != link) {
        assert(*slot);
        slot = &(*slot)->next;
    }
    *slot = link->next;
    link->next = NULL;
    names->count--;
}

struct names_link *names_pop(struct names *names, size_t *cursor)
{
    for (; *cursor < names->bucket_count; ++*cursor) {
        struct names_link *link = *bucket(names, *cursor);
        if (link) {
            names_remove(names, link);
            return link;
        }
    }
    return NULL;
}

struct names_link *names_next(const struct names *names, size_t *cursor, struct names_link *link)
{
    assert(*cursor <= names->bucket_count);
    struct names_link *const *buckets = names->buckets ? names->buckets : names->few;
    struct names_link *next = link ? link->next : NULL;
    while (!next && *cursor < names->bucket_count)
        next = buckets[(*cursor)++];
    return next;
}
