#include "base/map.h"

#include "base/hash.h"

#include <assert.h>
#include <stdlib.h>

enum { CAPACITY_FIRST = 16 };

void map_init(struct map *map, uint64_t seed)
{
    *map = (struct map){ .seed = seed };
}

void map_release(struct map *map)
{
    free(map->entries);
    map_init(map, map->seed);
}

/* The entry of `key`, or the free one where it would go. The table is never full. */
static struct map_entry *entry_find(const struct map *map, struct slice key)
{
    struct map_entry *removed = NULL;
    size_t mask = map->capacity - 1;
    for (size_t i = hash_slice(map->seed, 0, key) & mask;; i = (i + 1) & mask) {
        struct map_entry *entry = &map->entries[i];
        if (!entry->value && !entry->key.data)
            return removed ? removed : entry;
        if (!entry->value)
            removed = removed ? removed : entry;
        else if (slice_equal(entry->key, key))
            return entry;
    }
}

void *map_get(const struct map *map, struct slice key)
{
    return map->capacity > 0 ? entry_find(map, key)->value : NULL;
}

static enum status resize(struct map *map, size_t capacity)
{
    struct map bigger = { .capacity = capacity, .seed = map->seed, .count = map->count, .filled = map->count };
    bigger.entries = calloc(capacity, sizeof *bigger.entries);
    if (!bigger.entries)
        return STATUS_NO_MEMORY;
    size_t cursor = 0;
    for (struct map_entry *entry; (entry = map_next(map, &cursor));)
        *entry_find(&bigger, entry->key) = *entry;
    free(map->entries);
    *map = bigger;
    return STATUS_OK;
}

enum status map_put(struct map *map, struct slice key, void *value)
{
    assert(value && key.data);
    struct map_entry *entry = map->capacity > 0 ? entry_find(map, key) : NULL;
    if ((!entry || !entry->value) && (map->filled + 1) * 4 > map->capacity * 3) {
        size_t capacity = CAPACITY_FIRST; /* by what is there: a map that was large once becomes small again */
        while (capacity <= map->count * 2)
            capacity *= 2;
        if (resize(map, capacity) != STATUS_OK)
            return STATUS_NO_MEMORY;
        entry = entry_find(map, key);
    }
    if (!entry->value)
        map->count++;
    if (!entry->key.data)
        map->filled++;
    *entry = (struct map_entry){ key, value };
    return STATUS_OK;
}

void *map_remove(struct map *map, struct slice key)
{
    if (map->capacity == 0)
        return NULL;
    struct map_entry *entry = entry_find(map, key);
    void *value = entry->value;
    if (value) {
        *entry = (struct map_entry){ { "", 0 }, NULL }; /* a key with no value marks a removed entry */
        map->count--;
    }
    return value;
}

struct map_entry *map_next(const struct map *map, size_t *cursor)
{
    while (*cursor < map->capacity) {
        struct map_entry *entry = &map->entries[(*cursor)++];
        if (entry->value)
            return entry;
    }
    return NULL;
}
