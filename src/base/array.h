/*
 * array.h - room for one more in a list that grows.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include "base/arena.h"

/*
 * `items` has `count` things of `size` bytes and room for *capacity. While there is room it comes back as it is, else with
 * twice as much, as realloc gives it; NULL: no memory, and nothing has changed.
 */
void *array_grow(void *items, size_t count, size_t *capacity, size_t size);
/* The same of a list in an arena, where the shorter ones stay until its end. */
void *array_grow_in(struct arena *memory, void *items, size_t count, size_t *capacity, size_t size);

#endif
