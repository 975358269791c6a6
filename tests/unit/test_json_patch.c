/*
 * Patches of JSON: the examples of RFC 6902 (appendix A) and RFC 7386 (appendix A), and what somebody could do with one.
 */
#include "base/json_patch.h"
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 1 << 20 };

static json_t *read_json(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    check(value != NULL, "the test has no JSON: %s", text);
    return value;
}

/* The text after the patch, to be freed; NULL: it cannot be applied. */
static char *patched(const json_t *patch, const char *document, size_t bytes_max)
{
    struct arena memory = { 0 };
    struct slice text = { NULL, 0 };
    struct error error;
    assert_int_equal(json_patch_check(patch, &error), STATUS_OK);
    json_patch_text(patch, slice_from(document), bytes_max, &memory, &text);
    char *copy = text.data ? strndup(text.data, text.len) : NULL;
    arena_release(&memory);
    return copy;
}

struct row {
    const char *name, *document, *patch;
    const char *expected; /* NULL: it fails */
};

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_t *patch = read_json(rows[i].patch);
        char *text = patched(patch, rows[i].document, BYTES_MAX);
        if (rows[i].expected)
            check(text && strcmp(text, rows[i].expected) == 0, "%s: %s, not %s", rows[i].name, text ? text : "it fails",
                  rows[i].expected);
        else
            check(!text, "%s: it gives %s", rows[i].name, text);
        free(text);
        json_decref(patch);
    }
}

static void the_examples_of_rfc_6902(void **state)
{
    static const struct row rows[] = {
        { "A.1 an object member", "{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\"}]",
          "{\"foo\":\"bar\",\"baz\":\"qux\"}" },
        { "A.2 an array element", "{\"foo\":[\"bar\",\"baz\"]}", "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":\"qux\"}]",
          "{\"foo\":[\"bar\",\"qux\",\"baz\"]}" },
        { "A.3 remove a member", "{\"baz\":\"qux\",\"foo\":\"bar\"}", "[{\"op\":\"remove\",\"path\":\"/baz\"}]",
          "{\"foo\":\"bar\"}" },
        { "A.4 remove an element", "{\"foo\":[\"bar\",\"qux\",\"baz\"]}", "[{\"op\":\"remove\",\"path\":\"/foo/1\"}]",
          "{\"foo\":[\"bar\",\"baz\"]}" },
        { "A.5 replace a value", "{\"baz\":\"qux\",\"foo\":\"bar\"}",
          "[{\"op\":\"replace\",\"path\":\"/baz\",\"value\":\"boo\"}]", "{\"baz\":\"boo\",\"foo\":\"bar\"}" },
        { "A.6 move a value", "{\"foo\":{\"bar\":\"baz\",\"waldo\":\"fred\"},\"qux\":{\"corge\":\"grault\"}}",
          "[{\"op\":\"move\",\"from\":\"/foo/waldo\",\"path\":\"/qux/thud\"}]",
          "{\"foo\":{\"bar\":\"baz\"},\"qux\":{\"corge\":\"grault\",\"thud\":\"fred\"}}" },
        { "A.7 move an element", "{\"foo\":[\"all\",\"grass\",\"cows\",\"eat\"]}",
          "[{\"op\":\"move\",\"from\":\"/foo/1\",\"path\":\"/foo/3\"}]",
          "{\"foo\":[\"all\",\"cows\",\"eat\",\"grass\"]}" },
        { "A.8 a test that holds", "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}",
          "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"qux\"},{\"op\":\"test\",\"path\":\"/foo/1\",\"value\":2}]",
          "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}" },
        { "A.9 a test that does not", "{\"baz\":\"qux\"}", "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"bar\"}]", NULL },
        { "A.10 a nested object", "{\"foo\":\"bar\"}",
          "[{\"op\":\"add\",\"path\":\"/child\",\"value\":{\"grandchild\":{}}}]",
          "{\"foo\":\"bar\",\"child\":{\"grandchild\":{}}}" },
        { "A.11 what is not known is ignored", "{\"foo\":\"bar\"}",
          "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\",\"xyz\":123}]", "{\"foo\":\"bar\",\"baz\":\"qux\"}" },
        { "A.12 a target that is not there", "{\"foo\":\"bar\"}",
          "[{\"op\":\"add\",\"path\":\"/baz/bat\",\"value\":\"qux\"}]", NULL },
        { "A.14 ~ before /", "{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":10}]",
          "{\"/\":9,\"~1\":10}" },
        { "A.15 texts are no numbers", "{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":\"10\"}]", NULL },
        { "A.16 an array in an array", "{\"foo\":[\"bar\"]}",
          "[{\"op\":\"add\",\"path\":\"/foo/-\",\"value\":[\"abc\",\"def\"]}]", "{\"foo\":[\"bar\",[\"abc\",\"def\"]]}" },
    };
    (void)state;
    check_rows(rows, COUNT_OF(rows));
}

static void the_rest_of_rfc_6902(void **state)
{
    static const struct row rows[] = {
        { "the whole", "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":[1]}]", "[1]" },
        { "no object", "17", "[{\"op\":\"test\",\"path\":\"\",\"value\":17}]", "17" },
        { "add takes the place of a member", "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":null}]", "{\"a\":null}" },
        { "replace needs one", "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":2}]", NULL },
        { "replace an element", "[1,2]", "[{\"op\":\"replace\",\"path\":\"/1\",\"value\":3}]", "[1,3]" },
        { "- is behind the last: nothing is there", "[1]", "[{\"op\":\"remove\",\"path\":\"/-\"}]", NULL },
        { "- cannot be replaced", "[1]", "[{\"op\":\"replace\",\"path\":\"/-\",\"value\":2}]", NULL },
        { "- cannot be read", "[1]", "[{\"op\":\"copy\",\"from\":\"/-\",\"path\":\"/0\"}]", NULL },
        { "- is a name in an object", "{\"-\":1}", "[{\"op\":\"remove\",\"path\":\"/-\"}]", "{}" },
        { "an index is not padded", "[1,2]", "[{\"op\":\"remove\",\"path\":\"/01\"}]", NULL },
        { "has no sign", "[1,2]", "[{\"op\":\"remove\",\"path\":\"/+1\"}]", NULL },
        { "ends", "[1,2]", "[{\"op\":\"remove\",\"path\":\"/1e0\"}]", NULL },
        { "is not beyond the end", "[1]", "[{\"op\":\"add\",\"path\":\"/2\",\"value\":2}]", NULL },
        { "may be the end", "[1]", "[{\"op\":\"add\",\"path\":\"/1\",\"value\":2}]", "[1,2]" },
        { "and does not wrap around", "[1]", "[{\"op\":\"remove\",\"path\":\"/18446744073709551616\"}]", NULL },
        { "escapes", "{\"a/b\":{\"m~n\":1}}", "[{\"op\":\"replace\",\"path\":\"/a~1b/m~0n\",\"value\":2}]",
          "{\"a/b\":{\"m~n\":2}}" },
        { "a name may be empty", "{\"\":{\"\":1}}", "[{\"op\":\"replace\",\"path\":\"//\",\"value\":2}]", "{\"\":{\"\":2}}" },
        { "a text has no members", "{\"a\":\"text\"}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]", NULL },
        { "the whole cannot be removed", "{}", "[{\"op\":\"remove\",\"path\":\"\"}]", NULL },
        { "nothing moves into itself", "{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]", NULL },
        { "nor all", "{\"a\":1}", "[{\"op\":\"move\",\"from\":\"\",\"path\":\"/a\"}]", NULL },
        { "but to where it is", "{\"a\":1,\"b\":2}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a\"}]",
          "{\"a\":1,\"b\":2}" },
        { "a name may begin like another", "{\"a\":1,\"ab\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/ab/c\"}]",
          "{\"ab\":{\"c\":1}}" },
        { "copies are not the same", "{\"a\":{\"x\":1}}",
          "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"},{\"op\":\"replace\",\"path\":\"/b/x\",\"value\":2}]",
          "{\"a\":{\"x\":1},\"b\":{\"x\":2}}" },
        { "into itself is a copy", "{\"a\":{}}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/b\"}]", "{\"a\":{\"b\":{}}}" },
        { "numbers are equal by value", "{\"a\":[1,{\"b\":2.0}]}",
          "[{\"op\":\"test\",\"path\":\"/a\",\"value\":[1.0,{\"b\":2}]}]", "{\"a\":[1,{\"b\":2.0}]}" },
        { "members in any order", "{\"a\":{\"x\":1,\"y\":2}}",
          "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"y\":2,\"x\":1}}]", "{\"a\":{\"x\":1,\"y\":2}}" },
        { "and all of them", "{\"a\":{\"x\":1}}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"x\":1,\"y\":2}}]", NULL },
        { "elements in theirs", "[[1,2]]", "[{\"op\":\"test\",\"path\":\"/0\",\"value\":[2,1]}]", NULL },
        { "all or nothing", "{\"a\":1}",
          "[{\"op\":\"remove\",\"path\":\"/a\"},{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]", NULL },
    };
    (void)state;
    check_rows(rows, COUNT_OF(rows));
}

static void the_examples_of_rfc_7386(void **state)
{
    static const struct row rows[] = {
        { "1", "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "2", "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
        { "3", "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
        { "4", "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
        { "5", "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "6", "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
        { "7", "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
        { "8", "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
        { "13", "{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}" },
        { "14", "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
        { "15", "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
    };
    (void)state;
    check_rows(rows, COUNT_OF(rows));
}

/* What is not named stays what it was, for whoever reads it. */
static void the_rest_of_a_payload_stays(void **state)
{
    static const struct row rows[] = {
        { "amounts", "{\"total\":19.90,\"tax\":0.1,\"big\":1e300}", "{\"a\":1}",
          "{\"total\":19.9,\"tax\":0.1,\"big\":1e+300,\"a\":1}" },
        { "a fraction of nothing", "{\"n\":2.0}", "{\"a\":1}", "{\"n\":2.0,\"a\":1}" },
        { "the largest number", "{\"n\":9223372036854775807}", "{\"a\":1}", "{\"n\":9223372036854775807,\"a\":1}" },
        { "one that is too large", "{\"n\":9223372036854775808}", "{\"a\":1}", NULL },
        { "one without end", "{\"n\":1e999}", "{\"a\":1}", NULL },
        { "a name that is there twice", "{\"n\":1,\"n\":2}", "{\"a\":1}", NULL },
        { "letters", "{\"n\":\"\xc3\xa9\\u0000\\n\"}", "{\"a\":1}", "{\"n\":\"\xc3\xa9\\u0000\\n\",\"a\":1}" },
        { "no JSON", "<x/>", "{\"a\":1}", NULL },
        { "nothing", "", "{\"a\":1}", NULL },
        { "more than one", "{} {}", "{\"a\":1}", NULL },
    };
    (void)state;
    check_rows(rows, COUNT_OF(rows));
}

static void what_is_no_patch_is_said(void **state)
{
    static const struct { const char *patch, *said; } rows[] = {
        { "17", "must be an array of operations" },
        { "\"x\"", "must be an array of operations" },
        { "[]", "1 to 100 operations" },
        { "[17]", "operation 1 must have an op" },
        { "[{\"path\":\"/a\",\"value\":1}]", "operation 1 must have an op" },
        { "[{\"op\":\"spam\",\"path\":\"/a\"}]", "operation 1 must have an op" },
        { "[{\"op\":\"Add\",\"path\":\"/a\",\"value\":1}]", "operation 1 must have an op" },
        { "[{\"op\":\"remove\",\"path\":\"/a\"},{\"op\":\"remove\"}]", "the path of operation 2" },
        { "[{\"op\":\"remove\",\"path\":\"a\"}]", "the path of operation 1" },
        { "[{\"op\":\"remove\",\"path\":17}]", "the path of operation 1" },
        { "[{\"op\":\"remove\",\"path\":\"/a~\"}]", "the path of operation 1" },
        { "[{\"op\":\"remove\",\"path\":\"/a~2\"}]", "the path of operation 1" },
        { "[{\"op\":\"remove\",\"path\":\"/a\\u0000/b\"}]", "the path of operation 1" },
        { "[{\"op\":\"add\",\"path\":\"/a\"}]", "operation 1 needs a \"value\"" },
        { "[{\"op\":\"test\",\"path\":\"/a\"}]", "operation 1 needs a \"value\"" },
        { "[{\"op\":\"copy\",\"path\":\"/a\"}]", "operation 1 needs a JSON pointer in \"from\"" },
        { "[{\"op\":\"move\",\"path\":\"/a\",\"from\":\"b\"}]", "operation 1 needs a JSON pointer in \"from\"" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct error error;
        json_t *patch = read_json(rows[i].patch);
        check(json_patch_check(patch, &error) == STATUS_INVALID && strstr(error.text, rows[i].said), "%s: %s", rows[i].patch,
              error.text);
        json_decref(patch);
    }
}

/* So many operations, or so long a path or value: as many as there may be, and one more. */
static void its_limits_are_kept(void **state)
{
    struct error error;
    (void)state;
    for (int more = 0; more < 2; more++) {
        json_t *many = json_array(), *longest = json_array(), *huge = json_object();
        char path[JSON_POINTER_BYTES_MAX + 2], value[JSON_PATCH_BYTES_MAX + 2];
        enum status expected = more ? STATUS_INVALID : STATUS_OK;
        for (int i = 0; i < JSON_PATCH_OPERATIONS_MAX + more; i++)
            json_array_append_new(many, json_pack("{s:s,s:s,s:i}", "op", "add", "path", "/a", "value", i));
        memset(path, 'x', sizeof path);
        path[0] = '/';
        path[JSON_POINTER_BYTES_MAX + more] = '\0';
        json_array_append_new(longest, json_pack("{s:s,s:s}", "op", "remove", "path", path));
        memset(value, 'x', sizeof value);
        value[JSON_PATCH_BYTES_MAX - 8 + more] = '\0'; /* {"a":""} */
        json_object_set_new(huge, "a", json_string(value));
        assert_int_equal(json_patch_check(many, &error), expected);
        assert_int_equal(json_patch_check(longest, &error), expected);
        assert_int_equal(json_patch_check(huge, &error), expected);
        json_decref(many);
        json_decref(longest);
        json_decref(huge);
    }
}

/* Each copies the whole into itself: 2^100 bytes, and as deep. */
static void copies_of_copies_end(void **state)
{
    static const char *const froms[] = { "", "/a" };
    (void)state;
    for (size_t row = 0; row < COUNT_OF(froms); row++) {
        json_t *patch = json_array();
        for (int i = 0; i < JSON_PATCH_OPERATIONS_MAX; i++) {
            char path[16];
            snprintf(path, sizeof path, row == 0 ? "/a%d" : "/a/-", i);
            json_array_append_new(patch, json_pack("{s:s,s:s,s:s}", "op", "copy", "from", froms[row], "path", path));
        }
        assert_null(patched(patch, "{\"a\":[\"0123456789\"]}", 64 << 10));
        json_decref(patch);
    }
}

/* As deep as can be read back, and not deeper, however it came about. */
static void depth_is_bounded(void **state)
{
    enum { DEEP = 1700 };
    static char document[2 * DEEP + 32];
    (void)state;
    size_t len = (size_t)sprintf(document, "{\"a\":");
    memset(document + len, '[', DEEP);
    memset(document + len + DEEP, ']', DEEP);
    sprintf(document + len + 2 * DEEP, ",\"b\":{\"c\":{}}}");
    char path[JSON_POINTER_BYTES_MAX + 1] = "/a";
    for (int i = 0; i < 500; i++)
        strcat(path, "/0");
    static const struct { const char *op, *from; bool fits; } rows[] = {
        { "copy", "/b", true },
        { "copy", "/a", false },
        { "move", "/b", true },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char to[sizeof path + 8];
        snprintf(to, sizeof to, "%s/-", path);
        json_t *patch = json_pack("[{s:s,s:s,s:s}]", "op", rows[i].op, "from", rows[i].from, "path", to);
        char *text = patched(patch, document, BYTES_MAX);
        check((text != NULL) == rows[i].fits, "row %zu", i);
        json_t *again = text ? json_loads(text, 0, NULL) : NULL;
        check((again != NULL) == rows[i].fits, "row %zu: it cannot be read back", i);
        json_decref(again);
        free(text);
        json_decref(patch);
    }
    memset(document, '[', sizeof document - 1); /* deeper than a parser goes */
    document[sizeof document - 1] = '\0';
    json_t *merge = read_json("{\"a\":1}");
    assert_null(patched(merge, document, BYTES_MAX));
    json_decref(merge);
}

/* A payload may be as long as payloads may be, not longer; a large value may stand in another's place. */
static void length_is_bounded(void **state)
{
    static char document[200], patch_text[200];
    (void)state;
    snprintf(document, sizeof document, "{\"a\":\"%090d\"}", 0);
    snprintf(patch_text, sizeof patch_text, "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":\"%090d\"}]", 1);
    json_t *replace = read_json(patch_text), *add = read_json("[{\"op\":\"add\",\"path\":\"/b\",\"value\":1}]");
    char *same = patched(replace, document, strlen(document));
    assert_non_null(same);
    free(same);
    assert_null(patched(replace, document, strlen(document) - 1));
    assert_null(patched(add, document, strlen(document) + 5));
    char *more = patched(add, document, strlen(document) + 6);
    assert_non_null(more);
    free(more);
    json_decref(replace);
    json_decref(add);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_rfc_6902),
        cmocka_unit_test(the_rest_of_rfc_6902),
        cmocka_unit_test(the_examples_of_rfc_7386),
        cmocka_unit_test(the_rest_of_a_payload_stays),
        cmocka_unit_test(what_is_no_patch_is_said),
        cmocka_unit_test(its_limits_are_kept),
        cmocka_unit_test(copies_of_copies_end),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(length_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
