/*
 * map.h - from a key of bytes to a pointer.
 *
 * The map borrows its keys: they must live as long as their entry. Open addressing with
 * a keyed hash, so that tenants' names cannot be chosen to collide.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/slice.h"
#include "base/status.h"

struct map_entry {
    struct slice key;
    void *value;
};

struct map {
    struct map_entry *entries; /* value NULL: empty or removed */
    size_t capacity;           /* a power of two, or 0 */
    size_t count;
    size_t filled; /* with the removed ones */
    uint64_t seed;
};

/* A number as a key; borrowed, as all are. */
static inline struct slice map_key(const int64_t *number)
{
    return (struct slice){ (const char *)number, sizeof *number };
}

void map_init(struct map *map, uint64_t seed);
void map_release(struct map *map);

/* NULL when it is not there. */
void *map_get(const struct map *map, struct slice key);
/* Adds or replaces, the key too; `value` is not NULL. STATUS_NO_MEMORY changes nothing; to replace needs no memory. */
enum status map_put(struct map *map, struct slice key, void *value) MUST_CHECK;
/* The value that was there, or NULL. */
void *map_remove(struct map *map, struct slice key);

/* Walks all entries in no particular order: start with *cursor = 0, ends with NULL. */
struct map_entry *map_next(const struct map *map, size_t *cursor);

#endif
