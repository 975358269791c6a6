/* What a terminal is shown of texts from elsewhere. */
#include "cli/talk/table.h"

#include "support/check.h"

static void texts_are_shown_and_not_obeyed(void **state)
{
    static const struct { const char *text, *shown; } cases[] = {
        { "plain, caf\xc3\xa9, \xf0\x9f\x98\x80", "plain, caf\xc3\xa9, \xf0\x9f\x98\x80" },
        { "\x1b[2J\r\n\x7f", "?[2J???" },
        { "\xff\xc3", "??" },
        { "\xc2\x9b" "2J", "<U+009B>2J" },
        { "invoice\xe2\x80\xae" "fdp.exe", "invoice<U+202E>fdp.exe" },
        { "\xe2\x81\xa6x\xe2\x81\xa9\xe2\x80\x8f", "<U+2066>x<U+2069><U+200F>" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buffer out;
        buffer_init(&out, 4096);
        plain_append(slice_from(cases[i].text), &out);
        check(slice_equal(buffer_slice(&out), slice_from(cases[i].shown)), "row %zu: %s", i, out.data);
        buffer_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_shown_and_not_obeyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
