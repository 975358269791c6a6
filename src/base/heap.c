#include "base/heap.h"

#include <assert.h>
#include <stdlib.h>

enum { CAPACITY_FIRST = 16 };

void heap_init(struct heap *heap)
{
    *heap = (struct heap){ 0 };
}

void heap_release(struct heap *heap)
{
    free(heap->nodes);
    heap_init(heap);
}

static bool before(const struct heap_node *a, const struct heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

static void put(struct heap *heap, size_t index, struct heap_node *node)
{
    heap->nodes[index] = node;
    node->position = index + 1;
}

static void sift_up(struct heap *heap, size_t index, struct heap_node *node)
{
    for (size_t parent; index > 0 && before(node, heap->nodes[parent = (index - 1) / 2]); index = parent)
        put(heap, index, heap->nodes[parent]);
    put(heap, index, node);
}

static void sift_down(struct heap *heap, size_t index, struct heap_node *node)
{
    for (size_t child; (child = index * 2 + 1) < heap->count; index = child) {
        if (child + 1 < heap->count && before(heap->nodes[child + 1], heap->nodes[child]))
            child++;
        if (!before(heap->nodes[child], node))
            break;
        put(heap, index, heap->nodes[child]);
    }
    put(heap, index, node);
}

enum status heap_reserve(struct heap *heap, size_t count)
{
    if (count <= heap->capacity)
        return STATUS_OK;
    size_t capacity = heap->capacity ? heap->capacity : CAPACITY_FIRST;
    while (capacity < count)
        capacity *= 2;
    struct heap_node **nodes = realloc(heap->nodes, capacity * sizeof *nodes);
    if (!nodes)
        return STATUS_NO_MEMORY;
    heap->nodes = nodes;
    heap->capacity = capacity;
    return STATUS_OK;
}

enum status heap_push(struct heap *heap, struct heap_node *node, int64_t key, uint64_t tie)
{
    assert(node->position == 0);
    enum status status = heap_reserve(heap, heap->count + 1);
    if (status != STATUS_OK)
        return status;
    node->key = key;
    node->tie = tie;
    sift_up(heap, heap->count++, node);
    return STATUS_OK;
}

struct heap_node *heap_first(const struct heap *heap)
{
    return heap->count > 0 ? heap->nodes[0] : NULL;
}

static void settle(struct heap *heap, size_t index, struct heap_node *node)
{
    if (index > 0 && before(node, heap->nodes[(index - 1) / 2]))
        sift_up(heap, index, node);
    else
        sift_down(heap, index, node);
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    if (node->position == 0)
        return;
    size_t index = node->position - 1;
    assert(index < heap->count && heap->nodes[index] == node);
    struct heap_node *last = heap->nodes[--heap->count];
    if (last != node)
        settle(heap, index, last);
    node->position = 0;
}

void heap_move(struct heap *heap, struct heap_node *node, int64_t key, uint64_t tie)
{
    assert(node->position > 0);
    node->key = key;
    node->tie = tie;
    settle(heap, node->position - 1, node);
}
