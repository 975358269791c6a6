#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { CAPACITY_FIRST = 16 };

static size_t doubled(size_t capacity)
{
    return capacity > 0 ? capacity * 2 : CAPACITY_FIRST;
}

void *array_grow(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    void *grown = realloc(items, doubled(*capacity) * size);
    if (grown)
        *capacity = doubled(*capacity);
    return grown;
}

void *array_grow_in(struct arena *memory, void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    void *grown = arena_alloc_array(memory, doubled(*capacity), size);
    if (!grown)
        return NULL;
    if (count > 0)
        memcpy(grown, items, count * size);
    *capacity = doubled(*capacity);
    return grown;
}
