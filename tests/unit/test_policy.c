#include "support/check.h"
#include "support/policies.h"

/* C-32 and S1-034: the form of an id is the policy's; the rest holds for every id. */
static void problems_of_ids(void **state)
{
    (void)state;
    char longest[JOB_ID_BYTES_MAX + 1];
    memset(longest, 'x', sizeof longest);
    const struct { const char *name; struct slice id; bool good, good_claim; } rows[] = {
        { "the samples' form", SLICE("CLM-2025-001"), true, true },
        { "lower case", SLICE("clm-2025-001"), true, true },
        { "another form", SLICE("order/7"), true, false },
        { "no digits", SLICE("CLM-2025-"), true, false },
        { "something before", SLICE("x CLM-2025-001"), true, false },
        { "something behind", SLICE("CLM-2025-001 "), true, false },
        { "a line behind", SLICE("CLM-2025-001\n"), false, false },
        { "UTF-8", SLICE("CLM-S\xc3\xa3o-1"), true, true },
        { "latin-1", SLICE("CLM-S\xe3o-1"), false, false },
        { "a cut sequence", SLICE("CLM-1-1\xc3"), false, false },
        { "nothing", { NULL, 0 }, false, false },
        { "empty", SLICE(""), false, false },
        { "blank", SLICE(" \t"), false, false },
        { "NUL", SLICE("CLM-\0-1"), false, false },
        { "delete", SLICE("CLM-\x7f-1"), false, false },
        { "255 bytes", { longest, JOB_ID_BYTES_MAX }, true, false },
        { "256 bytes", { longest, JOB_ID_BYTES_MAX + 1 }, false, false },
    };
    struct policy any = { 0 };
    struct policy claims = { 0 };
    assert_int_equal(pattern_new(SLICE("CLM-.*-\\d+"), &claims.id_pattern, NULL), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check((policy_id_problem(&any, rows[i].id) == NULL) == rows[i].good, "%s", rows[i].name);
        check((policy_id_problem(&claims, rows[i].id) == NULL) == rows[i].good_claim, "%s", rows[i].name);
    }
    assert_non_null(strstr(policy_id_problem(&claims, SLICE("order/7")), "id_pattern"));
    assert_non_null(strstr(policy_id_problem(&any, SLICE("\xff")), "UTF-8"));
    pattern_free(claims.id_pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(problems_of_ids) };
    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
