#include "support/check.h"

#include "api/http/room.h"

/* Of 100 bytes small things have 25 and large ones 75. */
static void each_part_has_its_own(void **state)
{
    struct room room;
    (void)state;
    room_init(&room, 100);
    assert_true(room_take(&room, ROOM_LARGE, 75));
    assert_false(room_take(&room, ROOM_LARGE, 1));
    assert_true(room_take(&room, ROOM_SMALL, 20));
    assert_false(room_take(&room, ROOM_SMALL, 6));
    assert_true(room_take(&room, ROOM_SMALL, 5));
    room_give(&room, ROOM_LARGE, 75);
    assert_true(room_take(&room, ROOM_LARGE, 1000)); /* nothing else is there */
    assert_false(room_take(&room, ROOM_LARGE, 1));
}

static void who_waits_is_let_in_in_order(void **state)
{
    struct room room;
    struct room_wait first = { .part = ROOM_LARGE, .bytes = 60 }, second = { .part = ROOM_LARGE, .bytes = 10 },
                     third = { .part = ROOM_LARGE, .bytes = 5 };
    (void)state;
    room_init(&room, 100);
    assert_true(room_take(&room, ROOM_LARGE, 50));
    room_wait_begin(&room, &first);
    room_wait_begin(&room, &second);
    room_wait_begin(&room, &third);
    assert_true(room_is_wanted(&room));
    assert_null(room_next(&room)); /* the second would fit; it does not overtake */
    assert_false(room_take(&room, ROOM_LARGE, 1));
    room_wait_end(&room, &second);
    room_give(&room, ROOM_LARGE, 50);
    assert_ptr_equal(room_next(&room), &first);
    assert_ptr_equal(room_next(&room), &third);
    assert_null(room_next(&room));
    assert_int_equal(room.used[ROOM_LARGE], 65);
    assert_false(room_is_wanted(&room));
    room_wait_end(&room, &first); /* it waits no more */
    room_take_anyway(&room, ROOM_LARGE, 500);
    assert_false(room_take(&room, ROOM_LARGE, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_part_has_its_own), cmocka_unit_test(who_waits_is_let_in_in_order) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
