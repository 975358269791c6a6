#include "base/status.h"
#include "support/check.h"

static void every_status_has_its_own_name(void **state)
{
    (void)state;
    for (int i = 0; i < STATUS_COUNT; i++) {
        const char *name = status_name((enum status)i);
        check(name && name[0] != '\0', "status %d", i);
        for (int j = 0; j < i; j++)
            check(strcmp(name, status_name((enum status)j)) != 0, "%s is there twice", name);
    }
    assert_string_equal(status_name(STATUS_OK), "ok");
    assert_string_equal(status_name(STATUS_NOT_FOUND), "not_found");
    assert_string_equal(status_name(STATUS_UNSUPPORTED), "unsupported");
}

static void an_error_keeps_status_and_text(void **state)
{
    (void)state;
    struct error err = { 0 };
    assert_int_equal(error_set(&err, STATUS_LIMIT, "%d of %s", 7, "nine"), STATUS_LIMIT);
    assert_int_equal(err.status, STATUS_LIMIT);
    assert_string_equal(err.text, "7 of nine");
}

static void an_error_may_be_nobodys(void **state)
{
    (void)state;
    assert_int_equal(error_set(NULL, STATUS_IO, "%s", "unseen"), STATUS_IO);
}

static void a_long_text_is_cut_and_ends(void **state)
{
    (void)state;
    struct error err;
    char text[2 * ERROR_TEXT_BYTES_MAX];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(error_set(&err, STATUS_INVALID, "%s", text), STATUS_INVALID);
    assert_int_equal(strlen(err.text), ERROR_TEXT_BYTES_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_own_name),
        cmocka_unit_test(an_error_keeps_status_and_text),
        cmocka_unit_test(an_error_may_be_nobodys),
        cmocka_unit_test(a_long_text_is_cut_and_ends),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
