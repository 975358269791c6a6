#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* The first one is small enough that malloc has its like at hand: most arenas live for one job and need no other. */
enum { CHUNK_FIRST_BYTES = 960, CHUNK_BYTES = 4096 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used;
    size_t capacity;
    alignas(max_align_t) char bytes[];
};

void arena_init(struct arena *arena, size_t limit_bytes)
{
    *arena = (struct arena){ .limit_bytes = limit_bytes };
}

void arena_release(struct arena *arena)
{
    while (arena->chunk) {
        struct arena_chunk *next = arena->chunk->next;
        free(arena->chunk);
        arena->chunk = next;
    }
    arena->used_bytes = 0;
}

static struct arena_chunk *chunk_with_room(struct arena *arena, size_t size)
{
    struct arena_chunk *chunk = arena->chunk;
    if (chunk && chunk->capacity - chunk->used >= size)
        return chunk;
    size_t usual = chunk ? CHUNK_BYTES : CHUNK_FIRST_BYTES;
    size_t capacity = size > usual ? size : usual;
    chunk = malloc(sizeof *chunk + capacity);
    if (!chunk)
        return NULL;
    chunk->used = 0;
    chunk->capacity = capacity;
    chunk->next = arena->chunk;
    arena->chunk = chunk;
    return chunk;
}

static void *take(struct arena *arena, size_t size)
{
    size_t align = alignof(max_align_t);
    size_t limit = arena->limit_bytes ? arena->limit_bytes : SIZE_MAX;
    if (size > limit - arena->used_bytes || size > SIZE_MAX / 2)
        return NULL;
    size_t rounded = (size + align - 1) / align * align;
    struct arena_chunk *chunk = chunk_with_room(arena, rounded);
    if (!chunk)
        return NULL;
    void *memory = chunk->bytes + chunk->used;
    chunk->used += rounded;
    arena->used_bytes += size;
    return memory;
}

void *arena_alloc_unset(struct arena *arena, size_t count, size_t size)
{
    return size == 0 || count <= SIZE_MAX / 2 / size ? take(arena, count * size) : NULL;
}

void *arena_alloc_array(struct arena *arena, size_t count, size_t size)
{
    void *memory = arena_alloc_unset(arena, count, size);
    return memory ? memset(memory, 0, count * size) : NULL;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    return arena_alloc_array(arena, 1, size);
}

char *arena_copy_text(struct arena *arena, struct slice text)
{
    if (text.len >= SIZE_MAX / 2)
        return NULL;
    char *copy = take(arena, text.len + 1);
    if (!copy)
        return NULL;
    if (text.len > 0)
        memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    return copy;
}

struct slice arena_copy(struct arena *arena, struct slice text)
{
    char *copy = arena_copy_text(arena, text);
    return (struct slice){ copy, copy ? text.len : 0 };
}
