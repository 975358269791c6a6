#include "support/scarce.h"

#include "base/map.c"
#include "support/check.h"

#include <stdio.h>

enum { KEYS = 300, STEPS = 60000 };

static char names[KEYS][16];

static struct slice key_of(size_t i)
{
    return i == 0 ? SLICE("") : slice_from(names[i]); /* the empty text is a key like any other */
}

static void make_names(void)
{
    for (size_t i = 0; i < KEYS; i++)
        snprintf(names[i], sizeof names[i], "key-%zu", i);
}

static void check_against(const struct map *map, void *const model[KEYS])
{
    size_t count = 0;
    for (size_t i = 0; i < KEYS; i++) {
        check(map_get(map, key_of(i)) == model[i], "key %zu", i);
        count += model[i] != NULL;
    }
    assert_int_equal(map->count, count);
    size_t cursor = 0;
    size_t walked = 0;
    for (struct map_entry *entry; (entry = map_next(map, &cursor)); walked++)
        check(entry->value == map_get(map, entry->key), "walked %zu", walked);
    assert_int_equal(walked, count);
}

/* Random puts and removals, compared with a plain table; long runs of removals leave many marks behind. */
static void it_agrees_with_a_plain_table(void **state)
{
    (void)state;
    void *model[KEYS] = { 0 };
    struct random random = { 42 };
    struct map map;
    map_init(&map, 7);
    make_names();
    for (size_t step = 0; step < STEPS; step++) {
        size_t i = random_below(&random, KEYS);
        bool puts = random_below(&random, 100) < (step / 5000 % 2 ? 30u : 70u);
        if (puts) {
            void *value = &names[random_below(&random, KEYS)];
            assert_int_equal(map_put(&map, key_of(i), value), STATUS_OK);
            model[i] = value;
        } else {
            check(map_remove(&map, key_of(i)) == model[i], "step %zu", step);
            model[i] = NULL;
        }
        if (step % 500 == 0)
            check_against(&map, model);
        check(map.filled * 4 <= map.capacity * 3, "step %zu: never full", step);
    }
    check_against(&map, model);
    map_release(&map);
    assert_int_equal(map.count, 0);
    assert_int_equal(map.seed, 7);
}

static void churn_does_not_make_it_grow(void **state)
{
    (void)state;
    struct map map;
    map_init(&map, 1);
    make_names();
    for (size_t round = 0; round < 20000; round++) {
        assert_int_equal(map_put(&map, key_of(round % KEYS), &map), STATUS_OK);
        assert_ptr_equal(map_remove(&map, key_of(round % KEYS)), &map);
    }
    assert_int_equal(map.count, 0);
    assert_true(map.capacity <= 32);
    map_release(&map);
}

static void an_empty_map_answers(void **state)
{
    (void)state;
    struct map map;
    size_t cursor = 0;
    map_init(&map, 0);
    assert_null(map_get(&map, SLICE("x")));
    assert_null(map_remove(&map, SLICE("x")));
    assert_null(map_next(&map, &cursor));
    assert_int_equal(map_put(&map, SLICE("x"), &map), STATUS_OK);
    assert_null(map_get(&map, (struct slice){ NULL, 0 }));
    assert_null(map_remove(&map, SLICE("y")));
    map_release(&map);
    map_release(&map);
}

static void keys_are_bytes(void **state)
{
    (void)state;
    struct map map;
    int one, two;
    map_init(&map, 0);
    assert_int_equal(map_put(&map, SLICE("a\0b"), &one), STATUS_OK);
    assert_int_equal(map_put(&map, SLICE("a\0c"), &two), STATUS_OK);
    assert_int_equal(map_put(&map, SLICE("a\0b"), &two), STATUS_OK);
    assert_int_equal(map.count, 2);
    assert_ptr_equal(map_get(&map, SLICE("a\0b")), &two);
    assert_null(map_get(&map, SLICE("a")));
    map_release(&map);
}

static void no_memory_changes_nothing(void **state)
{
    (void)state;
    void *model[KEYS] = { 0 };
    struct map map;
    map_init(&map, 3);
    make_names();
    scarce_left = 0;
    assert_int_equal(map_put(&map, key_of(1), &map), STATUS_NO_MEMORY);
    scarce_left = 1;
    size_t put = 0;
    while (map_put(&map, key_of(put), &map) == STATUS_OK)
        model[put++] = &map;
    scarce_left = -1;
    assert_int_equal(put, 12); /* three quarters of the first table */
    check_against(&map, model);
    map_release(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_agrees_with_a_plain_table), cmocka_unit_test(churn_does_not_make_it_grow),
        cmocka_unit_test(an_empty_map_answers),         cmocka_unit_test(keys_are_bytes),
        cmocka_unit_test(no_memory_changes_nothing),
    };
    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
