#include "support/scarce.h"

#include "base/heap.c"
#include "support/check.h"

enum { NODES = 400, STEPS = 40000 };

static void check_shape(const struct heap *heap)
{
    for (size_t i = 0; i < heap->count; i++) {
        check(heap->nodes[i]->position == i + 1, "node %zu does not know its place", i);
        check(i == 0 || !before(heap->nodes[i], heap->nodes[(i - 1) / 2]), "node %zu is before its parent", i);
    }
}

static const struct heap_node *first_by_looking(const struct heap_node *nodes, size_t *ret_count)
{
    const struct heap_node *first = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < NODES; i++) {
        if (nodes[i].position == 0)
            continue;
        ++*ret_count;
        if (!first || before(&nodes[i], first))
            first = &nodes[i];
    }
    return first;
}

static void it_agrees_with_looking_at_all(void **state)
{
    (void)state;
    static struct heap_node nodes[NODES];
    struct random random = { 5 };
    struct heap heap;
    heap_init(&heap);
    for (size_t step = 0; step < STEPS; step++) {
        size_t i = random_below(&random, NODES);
        int64_t key = (int64_t)random_below(&random, 50) - 25; /* few keys: ties are common */
        if (nodes[i].position == 0)
            assert_int_equal(heap_push(&heap, &nodes[i], key, i), STATUS_OK);
        else if (random_below(&random, 2) == 0)
            heap_move(&heap, &nodes[i], key, i);
        else
            heap_remove(&heap, &nodes[i]);
        size_t count;
        check(heap_first(&heap) == first_by_looking(nodes, &count), "step %zu", step);
        check(heap.count == count, "step %zu", step);
        if (step % 100 == 0)
            check_shape(&heap);
    }
    int64_t key = INT64_MIN;
    uint64_t tie = 0;
    for (struct heap_node *node; (node = heap_first(&heap)); heap_remove(&heap, node)) {
        check(node->key > key || (node->key == key && node->tie >= tie), "drained out of order");
        key = node->key;
        tie = node->tie;
    }
    heap_release(&heap);
}

static void the_ends_of_the_range_sort(void **state)
{
    (void)state;
    struct heap_node low = { 0 }, high = { 0 }, tie = { 0 };
    struct heap heap;
    heap_init(&heap);
    assert_null(heap_first(&heap));
    assert_int_equal(heap_push(&heap, &high, INT64_MAX, UINT64_MAX), STATUS_OK);
    assert_int_equal(heap_push(&heap, &tie, INT64_MIN, 1), STATUS_OK);
    assert_int_equal(heap_push(&heap, &low, INT64_MIN, 0), STATUS_OK);
    assert_ptr_equal(heap_first(&heap), &low);
    heap_remove(&heap, &low);
    heap_remove(&heap, &low); /* it is in no heap now: left alone */
    assert_int_equal(heap.count, 2);
    assert_ptr_equal(heap_first(&heap), &tie);
    heap_release(&heap);
    assert_int_equal(heap.count, 0);
}

static void no_memory_leaves_the_node_outside(void **state)
{
    (void)state;
    static struct heap_node nodes[17];
    struct heap heap;
    heap_init(&heap);
    scarce_left = 1;
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(heap_push(&heap, &nodes[i], (int64_t)i, 0), STATUS_OK);
    assert_int_equal(heap_push(&heap, &nodes[16], -1, 0), STATUS_NO_MEMORY);
    scarce_left = -1;
    assert_int_equal(nodes[16].position, 0);
    assert_int_equal(heap.count, 16);
    check_shape(&heap);
    assert_int_equal(heap_push(&heap, &nodes[16], -1, 0), STATUS_OK);
    assert_ptr_equal(heap_first(&heap), &nodes[16]);
    heap_release(&heap);
}

static void room_made_before_is_there_later(void **state)
{
    (void)state;
    static struct heap_node nodes[100];
    struct heap heap;
    heap_init(&heap);
    scarce_left = 0;
    assert_int_equal(heap_reserve(&heap, COUNT_OF(nodes)), STATUS_NO_MEMORY);
    assert_int_equal(heap.capacity, 0);
    scarce_left = 1;
    assert_int_equal(heap_reserve(&heap, COUNT_OF(nodes)), STATUS_OK);
    assert_int_equal(heap_reserve(&heap, 5), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(nodes); i++)
        check(heap_push(&heap, &nodes[i], -(int64_t)i, 0) == STATUS_OK, "node %zu", i);
    scarce_left = -1;
    assert_ptr_equal(heap_first(&heap), &nodes[99]);
    heap_release(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_agrees_with_looking_at_all),
        cmocka_unit_test(the_ends_of_the_range_sort),
        cmocka_unit_test(no_memory_leaves_the_node_outside),
        cmocka_unit_test(room_made_before_is_there_later),
    };
    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
