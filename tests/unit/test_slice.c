#include "base/slice.h"
#include "support/check.h"

static const struct slice nothing = { NULL, 0 };

static void equality_in_both_cases(void **state)
{
    (void)state;
    static const struct { struct slice a, b; bool equal, nocase; } rows[] = {
        { { "", 0 }, { NULL, 0 }, true, true },
        { { "abc", 3 }, { "abc", 3 }, true, true },
        { { "abc", 3 }, { "ABC", 3 }, false, true },
        { { "abc", 3 }, { "abd", 3 }, false, false },
        { { "abc", 3 }, { "abcd", 4 }, false, false },
        { { "a\0b", 3 }, { "a\0c", 3 }, false, false },
        { { "[", 1 }, { "{", 1 }, false, false },         /* the neighbours of the letters are not folded */
        { { "@", 1 }, { "`", 1 }, false, false },
        { { "\xc3\x89", 2 }, { "\xc3\xa9", 2 }, false, false }, /* only ASCII is folded */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check(slice_equal(rows[i].a, rows[i].b) == rows[i].equal, "row %zu", i);
        check(slice_equal(rows[i].b, rows[i].a) == rows[i].equal, "row %zu", i);
        check(slice_equal_nocase(rows[i].a, rows[i].b) == rows[i].nocase, "row %zu", i);
    }
    assert_true(slice_equal(slice_from(NULL), SLICE("")));
    assert_non_null(slice_from(NULL).data);
}

static void order(void **state)
{
    (void)state;
    static const struct slice rising[] = { { NULL, 0 }, { "\0", 1 }, { "a", 1 }, { "aa", 2 }, { "ab", 2 }, { "b", 1 },
                                           { "\xff", 1 } };
    for (size_t i = 0; i < COUNT_OF(rising); i++)
        for (size_t j = 0; j < COUNT_OF(rising); j++) {
            int found = slice_compare(rising[i], rising[j]);
            check((found > 0) - (found < 0) == (i > j) - (i < j), "%zu, %zu", i, j);
        }
}

static void beginnings_and_ends(void **state)
{
    (void)state;
    static const struct { const char *text, *part; bool prefix, suffix; size_t search; } rows[] = {
        { "abcabc", "abc", true, true, 0 }, { "abcabc", "bc", false, true, 1 }, { "abcabc", "ca", false, false, 2 },
        { "abc", "abcd", false, false, 3 }, { "abc", "", true, true, 0 },       { "", "", true, true, 0 },
        { "", "a", false, false, 0 },       { "aab", "ab", false, true, 1 },    { "abc", "x", false, false, 3 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct slice text = slice_from(rows[i].text);
        struct slice part = slice_from(rows[i].part);
        check(slice_has_prefix(text, part) == rows[i].prefix, "%s starts with %s", rows[i].text, rows[i].part);
        check(slice_has_suffix(text, part) == rows[i].suffix, "%s ends with %s", rows[i].text, rows[i].part);
        check(slice_search(text, part) == rows[i].search, "%s in %s", rows[i].part, rows[i].text);
    }
    assert_true(slice_has_prefix(nothing, nothing));
    assert_int_equal(slice_find(SLICE("a:b:c"), ':'), 1);
    assert_int_equal(slice_find(SLICE("abc"), ':'), 3);
    assert_int_equal(slice_find(nothing, ':'), 0);
}

static void the_part_from_an_offset(void **state)
{
    (void)state;
    assert_true(slice_equal(slice_from_offset(SLICE("abc"), 1), SLICE("bc")));
    assert_true(slice_equal(slice_from_offset(SLICE("abc"), 3), SLICE("")));
    assert_true(slice_equal(slice_from_offset(SLICE("abc"), SIZE_MAX), SLICE("")));
    assert_int_equal(slice_from_offset(nothing, 5).len, 0);
}

static void white_space_is_trimmed(void **state)
{
    (void)state;
    assert_true(slice_equal(slice_trim(SLICE(" \t\r\n\v\f a b \n")), SLICE("a b")));
    assert_true(slice_equal(slice_trim(SLICE(" \n ")), SLICE("")));
    assert_true(slice_equal(slice_trim(SLICE("\0 ")), SLICE("\0"))); /* NUL is no white space here */
    assert_non_null(slice_trim(nothing).data);
}

static void blank_is_white_space_control_or_nothing(void **state)
{
    (void)state;
    static const struct { const char *name; struct slice text; bool blank; } rows[] = {
        { "nothing", { NULL, 0 }, true },      { "empty", { "", 0 }, true },        { "space", { " ", 1 }, true },
        { "NUL", { "\0", 1 }, true },          { "tabs", { "\t\t\n\r", 4 }, true }, { "delete", { "\x7f", 1 }, true },
        { "NUL then text", { "\0x", 2 }, false }, { "high byte", { "\xc2\xa0", 2 }, false }, { "text", { " a ", 3 }, false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check(slice_is_blank(rows[i].text) == rows[i].blank, "%s", rows[i].name);
}

static void whole_numbers(void **state)
{
    (void)state;
    static const struct { struct slice text; bool good; int64_t value; } rows[] = {
        { { "0", 1 }, true, 0 },
        { { "-0", 2 }, true, 0 },
        { { "007", 3 }, true, 7 },
        { { "9223372036854775807", 19 }, true, INT64_MAX },
        { { "9223372036854775808", 19 }, false, 0 },
        { { "-9223372036854775808", 20 }, true, INT64_MIN },
        { { "-9223372036854775809", 20 }, false, 0 },
        { { "99999999999999999999", 20 }, false, 0 },
        { { "", 0 }, false, 0 },
        { { "-", 1 }, false, 0 },
        { { "+1", 2 }, false, 0 },
        { { " 1", 2 }, false, 0 },
        { { "1.5", 3 }, false, 0 }, /* A-05: not a whole number */
        { { "x", 1 }, false, 0 },
        { { "1\0", 2 }, false, 0 },
        { { NULL, 0 }, false, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t value = 77;
        check(slice_to_int64(rows[i].text, &value) == rows[i].good, "row %zu", i);
        check(value == (rows[i].good ? rows[i].value : 77), "row %zu: written only on success", i);
    }
}

static void real_numbers(void **state)
{
    (void)state;
    static const struct { struct slice text; bool good; double value; } rows[] = {
        { { "0.25", 4 }, true, 0.25 }, { { "-2", 2 }, true, -2 },        { { "1e3", 3 }, true, 1000 },
        { { "2E-1", 4 }, true, 0.2 },  { { "", 0 }, false, 0 },          { { "-", 1 }, false, 0 },
        { { ".5", 2 }, false, 0 },     { { "+1", 2 }, false, 0 },        { { "1e999", 5 }, false, 0 },
        { { "inf", 3 }, false, 0 },    { { "nan", 3 }, false, 0 },       { { "0x10", 4 }, false, 0 },
        { { "1 ", 2 }, false, 0 },     { { "1,5", 3 }, false, 0 },       { { "1.2.3", 5 }, false, 0 },
        { { "1\0", 2 }, false, 0 },    { { "1\0" "5", 3 }, false, 0 },   { { NULL, 0 }, false, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        double value = 77;
        check(slice_to_double(rows[i].text, &value) == rows[i].good, "row %zu", i);
        double expected = rows[i].good ? rows[i].value : 77;
        check(value >= expected && value <= expected, "row %zu: %g", i, value);
    }
    char digits[100];
    double value;
    memset(digits, '1', sizeof digits);
    assert_true(slice_to_double((struct slice){ digits, 63 }, &value));
    assert_false(slice_to_double((struct slice){ digits, 64 }, &value));
}

static void ascii_classes_end_where_they_should(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        bool digit = c >= '0' && c <= '9';
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        check(ascii_is_digit((char)c) == digit, "byte %d", c);
        check(ascii_is_alnum((char)c) == (digit || letter), "byte %d", c);
        check(ascii_is_space((char)c) == (c != 0 && strchr(" \t\n\v\f\r", c) != NULL), "byte %d", c);
        check((unsigned char)ascii_lower((char)c) == (c >= 'A' && c <= 'Z' ? c + 32 : c), "byte %d", c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equality_in_both_cases),
        cmocka_unit_test(order),
        cmocka_unit_test(beginnings_and_ends),
        cmocka_unit_test(the_part_from_an_offset),
        cmocka_unit_test(white_space_is_trimmed),
        cmocka_unit_test(blank_is_white_space_control_or_nothing),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(real_numbers),
        cmocka_unit_test(ascii_classes_end_where_they_should),
    };
    return cmocka_run_group_tests_name("slice", tests, NULL, NULL);
}
