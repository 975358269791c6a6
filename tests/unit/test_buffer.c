#include "support/scarce.h"

#include "base/buffer.c"
#include "support/check.h"

static void appending_in_every_way(void **state)
{
    (void)state;
    struct buffer buffer;
    buffer_init(&buffer, 1000);
    assert_non_null(buffer_slice(&buffer).data);
    assert_int_equal(buffer_slice(&buffer).len, 0);
    buffer_append(&buffer, SLICE("a\0b"));
    buffer_append(&buffer, (struct slice){ NULL, 0 });
    buffer_append_byte(&buffer, '|');
    buffer_append_text(&buffer, "text");
    buffer_append_text(&buffer, NULL);
    buffer_printf(&buffer, "|%d|%s|", -5, "x");
    buffer_append_int64(&buffer, 0);
    char *room = buffer_reserve(&buffer, 3);
    memcpy(room, "xyz", 3);
    buffer_commit(&buffer, 2);
    assert_true(slice_equal(buffer_slice(&buffer), SLICE("a\0b|text|-5|x|0xy")));
    assert_int_equal(buffer.data[buffer.len], '\0');
    assert_int_equal(buffer_status(&buffer), STATUS_OK);
    buffer_release(&buffer);
    assert_null(buffer.data);
    assert_int_equal(buffer.limit, 1000);
}

static void numbers_to_their_ends(void **state)
{
    (void)state;
    static const struct { int64_t value; const char *text; } rows[] = {
        { 0, "0" }, { -1, "-1" }, { 10, "10" }, { INT64_MAX, "9223372036854775807" }, { INT64_MIN, "-9223372036854775808" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct buffer buffer;
        buffer_init(&buffer, 100);
        buffer_append_int64(&buffer, rows[i].value);
        assert_string_equal(buffer.data, rows[i].text);
        buffer_release(&buffer);
    }
}

static void the_limit_is_exact_and_sticks(void **state)
{
    (void)state;
    struct buffer buffer;
    buffer_init(&buffer, 4);
    buffer_append_text(&buffer, "1234");
    assert_int_equal(buffer_status(&buffer), STATUS_OK);
    buffer_append_byte(&buffer, '5');
    assert_int_equal(buffer_status(&buffer), STATUS_LIMIT);
    assert_string_equal(buffer.data, "1234");
    buffer_append(&buffer, SLICE("")); /* nothing would fit, but the failure stays */
    buffer_printf(&buffer, "%d", 1);
    assert_null(buffer_reserve(&buffer, 0));
    assert_null(buffer_take(&buffer));
    assert_int_equal(buffer_status(&buffer), STATUS_LIMIT);

    buffer_clear(&buffer);
    assert_int_equal(buffer_status(&buffer), STATUS_OK);
    assert_string_equal(buffer.data, "");
    buffer_append_text(&buffer, "12345"); /* partly is not there at all */
    assert_int_equal(buffer_slice(&buffer).len, 0);
    buffer_clear(&buffer);
    assert_null(buffer_reserve(&buffer, SIZE_MAX));
    assert_int_equal(buffer_status(&buffer), STATUS_LIMIT);
    buffer_release(&buffer);

    struct buffer none = { 0 };
    buffer_clear(&none);
    buffer_append_byte(&none, 'x');
    assert_int_equal(buffer_status(&none), STATUS_LIMIT);
    buffer_release(&none);
}

static void it_grows_up_to_the_limit_only(void **state)
{
    (void)state;
    enum { LIMIT = 100000 };
    struct buffer buffer;
    buffer_init(&buffer, LIMIT);
    for (int i = 0; i < LIMIT; i++)
        buffer_append_byte(&buffer, (char)('a' + i % 26));
    assert_int_equal(buffer_status(&buffer), STATUS_OK);
    assert_int_equal(buffer.len, LIMIT);
    assert_int_equal(buffer.capacity, LIMIT + 1);
    for (int i = 0; i < LIMIT; i++)
        check(buffer.data[i] == 'a' + i % 26, "byte %d", i);
    buffer_release(&buffer);
}

static void reserved_room_is_terminated_before_it_is_used(void **state)
{
    (void)state;
    struct buffer buffer;
    buffer_init(&buffer, 100);
    assert_non_null(buffer_reserve(&buffer, 50));
    assert_string_equal(buffer.data, "");
    buffer_release(&buffer);
}

static void taking_hands_over_the_content(void **state)
{
    (void)state;
    struct buffer buffer;
    buffer_init(&buffer, 100);
    buffer_append_text(&buffer, "mine");
    char *taken = buffer_take(&buffer);
    assert_string_equal(taken, "mine");
    free(taken);
    assert_int_equal(buffer.len, 0);
    taken = buffer_take(&buffer); /* an empty text is a text */
    assert_string_equal(taken, "");
    free(taken);
    buffer_release(&buffer);
}

static void no_memory_sticks_and_keeps_what_was_there(void **state)
{
    (void)state;
    struct buffer buffer;
    buffer_init(&buffer, 10000);
    buffer_append_text(&buffer, "kept");
    scarce_left = 0;
    buffer_printf(&buffer, "%1000d", 1);
    scarce_left = -1;
    assert_int_equal(buffer_status(&buffer), STATUS_NO_MEMORY);
    buffer_append_text(&buffer, "more");
    assert_string_equal(buffer.data, "kept");
    assert_null(buffer_take(&buffer));
    buffer_clear(&buffer);
    buffer_append_text(&buffer, "again");
    assert_int_equal(buffer_status(&buffer), STATUS_OK);
    buffer_release(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appending_in_every_way),
        cmocka_unit_test(numbers_to_their_ends),
        cmocka_unit_test(the_limit_is_exact_and_sticks),
        cmocka_unit_test(it_grows_up_to_the_limit_only),
        cmocka_unit_test(reserved_room_is_terminated_before_it_is_used),
        cmocka_unit_test(taking_hands_over_the_content),
        cmocka_unit_test(no_memory_sticks_and_keeps_what_was_there),
    };
    return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}
