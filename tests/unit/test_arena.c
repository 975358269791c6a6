#include "support/scarce.h"

#include "base/arena.c"
#include "support/check.h"

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    enum { PIECES = 3000 };
    static struct { unsigned char *bytes; size_t size; } pieces[PIECES];
    struct random random = { 1 };
    struct arena arena;
    arena_init(&arena, 10 << 20);
    size_t total = 0;
    for (size_t i = 0; i < PIECES; i++) {
        size_t size = i % 100 == 0 ? 4000 + random_below(&random, 4000) : random_below(&random, 200);
        unsigned char *bytes = arena_alloc(&arena, size);
        assert_non_null(bytes);
        check((uintptr_t)bytes % alignof(max_align_t) == 0, "piece %zu", i);
        for (size_t b = 0; b < size; b++)
            check(bytes[b] == 0, "piece %zu is not zeroed", i);
        memset(bytes, (int)(i % 255 + 1), size);
        pieces[i].bytes = bytes;
        pieces[i].size = size;
        total += size;
    }
    for (size_t i = 0; i < PIECES; i++)
        for (size_t b = 0; b < pieces[i].size; b++)
            check(pieces[i].bytes[b] == i % 255 + 1, "piece %zu was written over", i);
    assert_int_equal(arena.used_bytes, total);
    arena_release(&arena);
    assert_int_equal(arena.used_bytes, 0);
    assert_non_null(arena_alloc(&arena, 1)); /* usable again, with the same limit */
    arena_release(&arena);
}

static void the_limit_is_exact(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 100);
    assert_non_null(arena_alloc(&arena, 99));
    assert_null(arena_alloc(&arena, 2));
    assert_non_null(arena_alloc(&arena, 1));
    assert_null(arena_alloc(&arena, 1));
    assert_non_null(arena_alloc(&arena, 0));
    assert_null(arena_copy_text(&arena, SLICE("")));
    assert_null(arena_copy(&arena, SLICE("")).data);
    arena_release(&arena);
}

static void huge_sizes_are_refused(void **state)
{
    (void)state;
    struct arena arena = { 0 };
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_alloc(&arena, SIZE_MAX - 14));
    assert_null(arena_alloc_array(&arena, SIZE_MAX / 2, 3));
    assert_null(arena_alloc_array(&arena, SIZE_MAX, 1));
    assert_null(arena_copy_text(&arena, (struct slice){ "x", SIZE_MAX }));
    assert_int_equal(arena.used_bytes, 0);
    assert_non_null(arena_alloc_array(&arena, 10, 8));
    assert_non_null(arena_alloc_array(&arena, 10, 0));
    arena_release(&arena);
}

static void copies_end_with_a_nul(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 1000);
    struct slice copy = arena_copy(&arena, SLICE("a\0b"));
    assert_true(slice_equal(copy, SLICE("a\0b")));
    assert_int_equal(copy.data[3], '\0');
    assert_string_equal(arena_copy_text(&arena, (struct slice){ NULL, 0 }), "");
    arena_release(&arena);
}

static void no_memory_is_a_null(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 1000);
    scarce_left = 0;
    void *memory = arena_alloc(&arena, 10);
    struct slice copy = arena_copy(&arena, SLICE("text"));
    scarce_left = -1;
    assert_null(memory);
    assert_null(copy.data);
    assert_int_equal(copy.len, 0);
    assert_int_equal(arena.used_bytes, 0);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(the_limit_is_exact),
        cmocka_unit_test(huge_sizes_are_refused),
        cmocka_unit_test(copies_end_with_a_nul),
        cmocka_unit_test(no_memory_is_a_null),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
