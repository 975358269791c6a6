/*
 * heap.h - who is first: a binary heap of nodes that live inside other structures.
 *
 * The smallest (key, tie) is first. A node knows its place, so it can be removed or moved
 * in logarithmic time. The heap does not own its nodes.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct heap_node {
    int64_t key;
    uint64_t tie;    /* decides between equal keys */
    size_t position; /* 0: in no heap; else the index plus one */
};

struct heap {
    struct heap_node **nodes;
    size_t count;
    size_t capacity;
};

void heap_init(struct heap *heap);
void heap_release(struct heap *heap);

/* Makes room for `count` nodes in all: pushing up to that many cannot fail any more. */
enum status heap_reserve(struct heap *heap, size_t count) MUST_CHECK;
/* The node must be in no heap. */
enum status heap_push(struct heap *heap, struct heap_node *node, int64_t key, uint64_t tie) MUST_CHECK;
/* NULL when it is empty. */
struct heap_node *heap_first(const struct heap *heap);
/* A node that is in no heap is left alone. */
void heap_remove(struct heap *heap, struct heap_node *node);
void heap_move(struct heap *heap, struct heap_node *node, int64_t key, uint64_t tie);

#endif
