#include "base/literal.h"
#include "base/pattern.h"
#include "support/check.h"

#include <stdlib.h>

/* Columns: the expression, and the part that every match has; NULL: it must give up or find none. */
static const struct { const char *expression, *needed; } rows[] = {
    { "faultcode(\\s[^>]*>|\\W+)([\\w-]+:)?Client\\b", "faultcode" },
    { "CLM-.*-\\d+", "clm-" },
    { "^(?!\\D{0,12}4\\d\\d\\b).*user unknown", "user unknown" },
    { "MessageRejected(?!.*not verified)", "messagerejected" },
    { "too many (concurrent )?(smtp )?connections", "connections" },
    { "\\b5\\.1\\.(1|10)\\b", "5.1." },
    { "abcd?", "abc" },
    { "abcd*+x", "abc" },
    { "abcd{0,3}", "abc" },
    { "abcd+ef", "abcd" },
    { "[]x]abc", "abc" },
    { "[^]x]abc", "abc" },
    { "[\\]]abc", "abc" },
    { "a\\(b", "a(b" },
    { "(a(b)[)]c)xyz", "xyz" },
    { "abc|def", NULL },
    { "(abc)", NULL },
    { "(?x) a b c", NULL },
    { "(?:(?x) a)bc", NULL },
    { "(?-i)abc", NULL },
    { "(?#abc", NULL },
    { "(*ACCEPT)abc", NULL },
    { "\\Qa|b\\Ecd", NULL },
    { "(\\Q)\\E)cd", NULL },
    { "\\x41bc", NULL },
    { "[[:alpha:]]abc", NULL },
    { "", NULL },
    { "abc\\", NULL },
    { "abc)", NULL },
    { "abc{", NULL },
    { "[abc", NULL },
    { "(abc", NULL },
};

static void needed_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct literal literal = literal_of(slice_from(rows[i].expression));
        struct slice found = { literal.text, literal.len };
        check(slice_equal(found, slice_from(rows[i].needed)), "%s: \"%.*s\"", rows[i].expression, SLICE_ARG(found));
    }
}

static void a_long_part_is_cut(void **state)
{
    (void)state;
    struct literal literal = literal_of(SLICE("0123456789012345678901234567890123456789x?"));
    check(literal.len == LITERAL_BYTES_MAX, "%zu", literal.len);
}

static void occurrence(void **state)
{
    (void)state;
    struct literal literal = literal_of(SLICE("User"));
    check(literal_occurs(&literal, SLICE("no such uSER")), "at the end");
    check(literal_occurs(&literal, SLICE("USER unknown")), "at the start");
    check(!literal_occurs(&literal, SLICE("use")), "shorter");
    check(!literal_occurs(&literal, SLICE("")), "empty");
    literal = literal_of(SLICE("a|b"));
    check(literal_occurs(&literal, SLICE("")), "none is needed");
}

/*
 * Expressions put together by chance over three letters: whatever matches as a whole, which is
 * tried without the needed part, must also be found with it.
 */
static void nothing_that_matches_is_missed(void **state)
{
    (void)state;
    static const char *const pieces[] = { "a", "b", "c", "A", ".", "?", "*", "+", "{0,1}", "{1}", "(", ")", "|", "[ab]", "[^c]", "\\w",
                                          "\\b", "\\.", "(?:", "(?!", "(?=", "^", "$", "\\", "]", "}", "{", "(?i)" };
    unsigned seed = 1;
    size_t matched = 0;
    for (int round = 0; round < 60000; round++) {
        char expression[64] = "", text[8] = "";
        size_t count = 1 + (size_t)rand_r(&seed) % 7;
        for (size_t i = 0; i < count; i++)
            strcat(expression, pieces[(size_t)rand_r(&seed) % COUNT_OF(pieces)]);
        size_t len = (size_t)rand_r(&seed) % sizeof text;
        for (size_t i = 0; i < len; i++)
            text[i] = "abc."[rand_r(&seed) % 4];
        struct pattern *pattern = NULL;
        struct error err;
        if (pattern_new(slice_from(expression), &pattern, &err) != STATUS_OK)
            continue;
        struct slice subject = { text, len };
        if (pattern_matches_whole(pattern, subject)) {
            matched++;
            struct slice found; /* looks for the literal first */
            check(pattern_capture(pattern, subject, &found) == PATTERN_FOUND, "%s in %.*s", expression, SLICE_ARG(subject));
        }
        pattern_free(pattern);
    }
    check(matched > 500, "only %zu matched", matched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needed_parts),
        cmocka_unit_test(a_long_part_is_cut),
        cmocka_unit_test(occurrence),
        cmocka_unit_test(nothing_that_matches_is_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
