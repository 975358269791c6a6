#include "base/pattern.h"
#include "support/check.h"

#include <malloc.h>
#include <stdlib.h>
#include <time.h>

static struct pattern *compiled(const char *expression)
{
    struct pattern *pattern = NULL;
    struct error err = { 0 };
    check(pattern_new(slice_from(expression), &pattern, &err) == STATUS_OK, "%s: %s", expression, err.text);
    return pattern;
}

static void matching(void **state)
{
    (void)state;
    static const struct { const char *expression; struct slice text; bool anywhere, whole; } rows[] = {
        { "no such .* user", { "550 No such local USER here", 27 }, true, false },
        { "no such.*user", { "no such\nlocal user", 18 }, true, true }, /* a dot is also a line's end */
        { "(?-i)abc", { "ABC", 3 }, false, false },
        { "abc", { "ABC", 3 }, true, true },
        { "a|ab", { "ab", 2 }, true, true }, /* whole tries the other branches too */
        { "^$", { "", 0 }, true, true },
        { "x*", { NULL, 0 }, true, true },
        { "a.b", { "a\0b", 3 }, true, true },
        { "\xc3\xb3n", { "operaci\xc3\xb3n", 10 }, true, false },
        { "operaci.{1,4}n", { "operaci\xc3\x83\xc2\xb3n", 12 }, true, true }, /* stored twice encoded */
        { "\\xff\\xfe", { "\xff\xfe", 2 }, true, true },
        { "CLM-.*-\\d+", { "CLM-2025-001", 12 }, true, true },
        { "CLM-.*-\\d+", { "CLM-2025-001x", 13 }, true, false },
        { "CLM-.*-\\d+", { "CLM-2025-001\n", 13 }, true, false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pattern *pattern = compiled(rows[i].expression);
        check(pattern_matches(pattern, rows[i].text) == rows[i].anywhere, "row %zu: %s", i, rows[i].expression);
        check(pattern_matches_whole(pattern, rows[i].text) == rows[i].whole, "row %zu: %s whole", i, rows[i].expression);
        pattern_free(pattern);
    }
    pattern_free(NULL);
}

static void captures(void **state)
{
    (void)state;
    static const struct { const char *expression, *text, *capture; } rows[] = {
        { "code=(\\d+)", "error code=503 now", "503" },
        { "\\d+", "error code=503 now", "503" },
        { "(\\d)(\\d)(\\d)", "x503", "5" },
        { "(a)|b", "b", "b" }, /* the group took no part: the whole match */
        { "(a)|(b)", "b", "b" },
        { "(x?)y", "y", "" },
        { "(?=(?1))(?(DEFINE)(a\\K))", "aaa", "" }, /* starts behind its end */
        { "code=(\\d+)", "nothing", NULL },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pattern *pattern = compiled(rows[i].expression);
        struct slice capture = SLICE("untouched");
        bool found = pattern_capture(pattern, slice_from(rows[i].text), &capture) == PATTERN_FOUND;
        check(found == (rows[i].capture != NULL), "%s", rows[i].expression);
        check(slice_equal(capture, slice_from(found ? rows[i].capture : "untouched")), "%s: %.*s", rows[i].expression,
              SLICE_ARG(capture));
        pattern_free(pattern);
    }
}

static void bad_patterns_say_why(void **state)
{
    (void)state;
    char long_text[PATTERN_BYTES_MAX + 1];
    memset(long_text, 'a', sizeof long_text);
    const struct { struct slice expression; enum status status; const char *says; } rows[] = {
        { SLICE(""), STATUS_INVALID, "empty" },
        { SLICE("(abc"), STATUS_INVALID, "missing closing parenthesis at character 5" },
        { SLICE("a)"), STATUS_INVALID, "parenthes" },
        { SLICE("[a"), STATUS_INVALID, "missing terminating ]" },
        { SLICE("*a"), STATUS_INVALID, "quantifier does not follow" },
        { SLICE("a\\"), STATUS_INVALID, "\\ at end of pattern" },
        { SLICE("(*UTF)a"), STATUS_INVALID, "UTF" }, /* any bytes are a text here */
        { SLICE("((((a{1,900}){1,900}){1,900}){1,900})"), STATUS_INVALID, "too large" },
        { { long_text, sizeof long_text }, STATUS_LIMIT, "1025 bytes, the limit is 1024" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pattern *pattern = NULL;
        struct error err = { 0 };
        check(pattern_new(rows[i].expression, &pattern, &err) == rows[i].status, "row %zu", i);
        check(strstr(err.text, rows[i].says) != NULL, "row %zu: %s", i, err.text);
        assert_null(pattern);
    }
    struct pattern *longest = NULL;
    assert_int_equal(pattern_new((struct slice){ long_text, PATTERN_BYTES_MAX }, &longest, NULL), STATUS_OK);
    assert_true(pattern_matches(longest, (struct slice){ long_text, PATTERN_BYTES_MAX }));
    pattern_free(longest);
}

static double seconds_of_cpu(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Each of these needs from seconds to ages without the limits; a tenth of the bound is what they take. */
static void catastrophes_end_soon_without_a_match(void **state)
{
    (void)state;
    static const char *const expressions[] = {
        "(a+)+$", "(a+)+[!?]", "(a|aa)+$", "(a*)*[!?]", "[a-z]+[!?]", "(?:a{1,140}){2}[bc]", "(.*)(.*)(.*)[!?]",
        "(a|a?)+[!?]", "(?:a?){30}a{30}[!?]", "(\\w+\\s?)+[!?]", "a*a*a*a*a*[!?]", "(?:.*,){20}[!?]", "((a+)+)+\\1[!?]",
    };
    struct slice capture;
    char *text = malloc(PATTERN_SUBJECT_BYTES_MAX);
    assert_non_null(text);
    memset(text, 'a', PATTERN_SUBJECT_BYTES_MAX);
    text[PATTERN_SUBJECT_BYTES_MAX - 1] = '.';
    for (size_t i = 0; i < COUNT_OF(expressions); i++) {
        struct pattern *pattern = compiled(expressions[i]);
        double start = seconds_of_cpu();
        check(!pattern_matches(pattern, (struct slice){ text, PATTERN_SUBJECT_BYTES_MAX }), "%s", expressions[i]);
        double took = seconds_of_cpu() - start;
        check(took < 0.5, "%s took %.3f s", expressions[i], took);
        enum pattern_find find = pattern_capture(pattern, (struct slice){ text, PATTERN_SUBJECT_BYTES_MAX }, &capture);
        check(find == PATTERN_COSTLY, "%s: %d", expressions[i], (int)find);
        pattern_free(pattern);
    }
    free(text);
}

static void a_search_deeper_than_the_scratch_space_is_no_match(void **state)
{
    (void)state;
    char text[20001];
    for (size_t i = 0; i < sizeof text - 1; i += 2)
        memcpy(text + i, "ab", 2);
    text[sizeof text - 1] = 'd';
    struct pattern *pattern = compiled("^(?:ab|c)*d");
    assert_true(pattern_matches(pattern, slice_from_offset((struct slice){ text, sizeof text }, sizeof text - 201)));
    assert_false(pattern_matches(pattern, (struct slice){ text, sizeof text }));
    pattern_free(pattern);
}

/* A short text is tried in little room first: where that is too little, it is as if there had been no such try. */
static void a_short_text_may_need_much_room(void **state)
{
    (void)state;
    enum { LEN = 250 };
    struct pattern *pattern = compiled("(?:x|y)+z");
    char text[LEN];
    memset(text, 'x', LEN);
    assert_false(pattern_matches(pattern, (struct slice){ text, LEN }));
    text[LEN - 1] = 'z';
    for (size_t len = 1; len < LEN; len++)
        check(pattern_matches(pattern, (struct slice){ text + LEN - 1 - len, len + 1 }), "%zu", len);
    pattern_free(pattern);
}

static void what_lies_beyond_is_not_looked_at(void **state)
{
    (void)state;
    size_t len = PATTERN_SUBJECT_BYTES_MAX + 10;
    char *text = malloc(len);
    assert_non_null(text);
    memset(text, ' ', len);
    struct pattern *pattern = compiled("needle");
    memcpy(text + PATTERN_SUBJECT_BYTES_MAX - 6, "needle", 6);
    assert_true(pattern_matches(pattern, (struct slice){ text, len }));
    memcpy(text + PATTERN_SUBJECT_BYTES_MAX - 6, " needle", 7);
    assert_false(pattern_matches(pattern, (struct slice){ text, len }));
    struct slice capture;
    assert_int_equal(pattern_capture(pattern, (struct slice){ text, len }, &capture), PATTERN_BEYOND);
    assert_int_equal(pattern_capture(pattern, (struct slice){ text, PATTERN_SUBJECT_BYTES_MAX }, &capture), PATTERN_ABSENT);
    struct pattern *all = compiled(".*");
    assert_true(pattern_matches_whole(all, (struct slice){ text, PATTERN_SUBJECT_BYTES_MAX }));
    assert_false(pattern_matches_whole(all, (struct slice){ text, len })); /* the whole was not seen */
    pattern_free(all);
    pattern_free(pattern);
    free(text);
}

static void matching_allocates_nothing(void **state)
{
    (void)state;
    struct pattern *pattern = compiled("(a+)+(b|c)*(d)$");
    size_t used = mallinfo2().uordblks;
    struct slice capture;
    assert_int_equal(pattern_capture(pattern, SLICE("aaaaaaaaaaaaaaaaaaaabcbcbcbcbcbcd"), &capture), PATTERN_FOUND);
    assert_int_equal(mallinfo2().uordblks, used);
    pattern_free(pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matching),
        cmocka_unit_test(captures),
        cmocka_unit_test(bad_patterns_say_why),
        cmocka_unit_test(catastrophes_end_soon_without_a_match),
        cmocka_unit_test(a_search_deeper_than_the_scratch_space_is_no_match),
        cmocka_unit_test(a_short_text_may_need_much_room),
        cmocka_unit_test(what_lies_beyond_is_not_looked_at),
        cmocka_unit_test(matching_allocates_nothing),
    };
    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
