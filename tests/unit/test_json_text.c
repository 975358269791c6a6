#include "api/call/json_text.h"

#include "support/check.h"

#include <jansson.h>
#include <stdlib.h>

static void members_come_as_they_were_written(void **state)
{
    (void)state;
    static const struct { const char *name, *object, *member, *text; } rows[] = {
        { "number", "{\"a\":19.90}", "a", "19.90" },
        { "spaces around", " { \"a\" : 1 , \"b\" : 2 } ", "b", "2" },
        { "spaces inside", "{\"a\":{ \"b\" :[ 1 ] }}", "a", "{ \"b\" :[ 1 ] }" },
        { "string", "{\"a\":\"x\\\"}\"}", "a", "\"x\\\"}\"" },
        { "brackets in strings", "{\"a\":[\"]\",\"}\"],\"b\":1}", "a", "[\"]\",\"}\"]" },
        { "not of an inner object", "{\"a\":{\"b\":1},\"b\":2}", "b", "2" },
        { "not a value", "{\"a\":\"b\",\"b\":3}", "b", "3" },
        { "word", "{\"a\":null}", "a", "null" },
        { "absent", "{\"a\":1}", "b", "" },
        { "a prefix is another name", "{\"ab\":1}", "a", "" },
        { "empty object", "{}", "a", "" },
        { "no object", "[1]", "a", "" },
        { "cut off", "{\"a\":[1", "a", "" },
        { "cut off in a string", "{\"a\":\"x", "a", "" },
        { "nothing", "", "a", "" },
        { "escape at the end", "{\"a\":\"\\", "a", "" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct slice text = json_text_member(slice_from(rows[i].object), slice_from(rows[i].member));
        check(slice_equal(text, slice_from(rows[i].text)), "%s: %.*s", rows[i].name, SLICE_ARG(text));
    }
}

static void elements_come_one_after_the_other(void **state)
{
    (void)state;
    static const struct { const char *name, *array, *joined; bool broken; } rows[] = {
        { "none", "[]", "", false },
        { "none, with space", " [ ] ", "", false },
        { "one", "[{\"a\":1}]", "{\"a\":1};", false },
        { "several", "[1, {\"a\":[2,3]} ,\"x,y\"]", "1;{\"a\":[2,3]};\"x,y\";", false },
        { "not an array", "{}", "", true },
        { "nothing", "", "", true },
        { "no comma", "[1 2]", "1;", true },
        { "no end", "[1,2", "1;2;", true },
        { "comma at the end", "[1,]", "1;", true },
        { "more behind", "[1] 2", "1;", true },
        { "more behind nothing", "[] []", "", true },
        { "brackets are counted, not paired", "[{]", "{];", true },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct slice rest = slice_from(rows[i].array), element;
        char joined[128] = "";
        bool broken;
        while (json_text_next(&rest, &element, &broken)) {
            strncat(joined, element.data, element.len);
            strcat(joined, ";");
        }
        check(strcmp(joined, rows[i].joined) == 0, "%s: %s", rows[i].name, joined);
        check(broken == rows[i].broken, "%s: broken is %d", rows[i].name, broken);
    }
}

static void validity_is_that_of_the_standard(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
    } rows[] = {
        { "0", true },
        { "-0", true },
        { "-1.5e+10", true },
        { "1E9", true },
        { "123456789012345678901234567890.10", true },
        { "1e999", true },
        { "01", false },
        { "1.", false },
        { ".5", false },
        { "+1", false },
        { "1e", false },
        { "-", false },
        { "true", true },
        { "false", true },
        { "null", true },
        { "tru", false },
        { "nulls", false },
        { "True", false },
        { "\"\"", true },
        { "\"\\u00e9\\n\\/\"", true },
        { "\"\xc3\xa9\"", true },
        { "\"\xc3\"", false },
        { "\"\xed\xa0\x80\"", false },
        { "\"a\nb\"", false },
        { "\"\\x\"", false },
        { "\"\\u12\"", false },
        { "\"\\ud83d\\ude00\"", true },
        { "\"\\ud83d\"", false },
        { "\"\\ude00\"", false },
        { "\"", false },
        { "\"\\", false },
        { "\"\\u0000\"", true },
        { "'a'", false },
        { "[]", true },
        { "[1,2]", true },
        { "[1,]", false },
        { "[,1]", false },
        { "[1 2]", false },
        { "[", false },
        { "]", false },
        { "{}", true },
        { "{\"a\":1}", true },
        { "{\"a\":1,\"a\":2}", true },
        { "{\"a\"}", false },
        { "{\"a\":}", false },
        { "{a:1}", false },
        { "{\"a\":1,}", false },
        { "{1:2}", false },
        { " \t\r\n1 ", true },
        { "1 2", false },
        { "", false },
        { " ", false },
        { "NaN", false },
        { "[1]]", false },
        { "{\"a\":[{\"b\":null}]}", true },
        { "\x0b"
          "1",
          false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check(json_text_is_valid(slice_from(rows[i].text)) == rows[i].valid, "%s", rows[i].text);
}

/* Any byte at any place of a string, among plain ones. */
static void bytes_are_told_apart_anywhere(void **state)
{
    (void)state;
    enum { LEN = 24 };
    for (size_t at = 0; at < LEN; at++) {
        for (int byte = 0; byte < 256; byte++) {
            char text[LEN + 2];
            memset(text, 'x', sizeof text);
            text[0] = text[LEN + 1] = '"';
            text[at + 1] = (char)byte;
            bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
            check(json_text_is_valid((struct slice){ text, sizeof text }) == plain, "byte %d at %zu", byte, at);
        }
    }
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    static const struct {
        size_t depth;
        bool valid;
    } rows[] = { { 1, true }, { 256, true }, { 257, false }, { 100000, false } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        size_t depth = rows[i].depth;
        char *text = malloc(2 * depth);
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        check(json_text_is_valid((struct slice){ text, 2 * depth }) == rows[i].valid, "%zu levels", depth);
        free(text);
    }
}

/* Random texts of JSON's own characters: what is valid here, jansson accepts too, and the other way round. */
static void jansson_agrees(void **state)
{
    (void)state;
    static const char *const pieces[] = { "{",     "}", "[",    "]",    ",",    ":", "\"a\"",
                                          "\"b\"", "1", "-2.5", "true", "null", " ", "\"\\n\"" };
    struct random random = { 42 };
    size_t valid_count = 0;
    for (int i = 0; i < 200000; i++) {
        char text[64] = "";
        size_t count = 1 + random_below(&random, 7);
        for (size_t k = 0; k < count; k++)
            strcat(text, pieces[random_below(&random, COUNT_OF(pieces))]);
        json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
        bool valid = json_text_is_valid(slice_from(text));
        valid_count += valid;
        check(valid == (value != NULL), "%s", text);
        json_decref(value);
    }
    assert_true(valid_count > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_come_as_they_were_written), cmocka_unit_test(elements_come_one_after_the_other),
        cmocka_unit_test(validity_is_that_of_the_standard),  cmocka_unit_test(bytes_are_told_apart_anywhere),
        cmocka_unit_test(nesting_has_a_limit),               cmocka_unit_test(jansson_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
