/*
 * arena.h - many small things that are freed together.
 *
 * One arena a request or a configuration. Nothing is freed singly.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/slice.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunk;
    size_t used_bytes;  /* handed out in all */
    size_t limit_bytes; /* refuse beyond; 0: the machine's memory is the limit */
};

/* For one with a limit; a zeroed arena is ready and has none. */
void arena_init(struct arena *arena, size_t limit_bytes);
void arena_release(struct arena *arena);

/* Zeroed and aligned for anything; NULL when memory or the limit is out. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_alloc_array(struct arena *arena, size_t count, size_t size);
/* The same without zeroing it, for large things that the caller writes as a whole. */
void *arena_alloc_unset(struct arena *arena, size_t count, size_t size);
/* A terminated copy; .data is NULL when it failed. */
struct slice arena_copy(struct arena *arena, struct slice text);
char *arena_copy_text(struct arena *arena, struct slice text);

#endif
