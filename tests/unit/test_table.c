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

static void row(struct table *table, const char *const cells[4])
{
    for (size_t i = 0; i < 4; i++)
        table_cell_text(table, cells[i]);
}

/* An id is what the next command needs: it is whole, however narrow the terminal is, and what is empty makes room. */
static void a_narrow_terminal(void **state)
{
    static const struct table_column columns[] = { { "ID", TABLE_LEFT }, { "TENANT", TABLE_LEFT }, { "TRIES", TABLE_RIGHT },
                                                   { "LAST ERROR", TABLE_BRIEF } };
    static const char *const first[] = { "01M7PKRV040000000000000001", "", "3", "CONNECTION_ERROR - refused" },
                             *const second[] = { "b", "acme", "4", "" };
    static const struct { size_t width; const char *pages[2]; } cases[] = {
        { 0, { "ID                          TENANT  TRIES  LAST ERROR\n"
               "01M7PKRV040000000000000001              3  CONNECTION_ERROR - refused\n",
               "b                           acme        4  \n" } },
        { 50, { "ID                          TRIES  LAST ERROR\n"
                "01M7PKRV040000000000000001      3  CONNECTION_ERR\xe2\x80\xa6\n",
                "ID                          TENANT  TRIES  LAST ERROR\n"
                "b                           acme        4  \n" } },
        { 20, { "ID                          TRIES  LAST ERROR\n"
                "01M7PKRV040000000000000001      3  CONNECTION_\xe2\x80\xa6\n",
                "ID                          TENANT  TRIES  LAST ERROR\n"
                "b                           acme        4  \n" } },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct cli cli = { .width = cases[i].width };
        struct table table;
        table_init(&table, columns, COUNT_OF(columns));
        for (size_t page = 0; page < 2; page++) {
            struct buffer out;
            buffer_init(&out, 4096);
            row(&table, page == 0 ? first : second);
            table_append(&table, &cli, &out);
            check(slice_equal(buffer_slice(&out), slice_from(cases[i].pages[page])), "%zu wide, page %zu: [%.*s]",
                  cases[i].width, page, SLICE_ARG(buffer_slice(&out)));
            buffer_release(&out);
        }
        table_release(&table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_shown_and_not_obeyed),
        cmocka_unit_test(a_narrow_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
