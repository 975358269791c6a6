#include "core/outcome.h"
#include "support/check.h"

static void names_go_round(void **state)
{
    (void)state;
    for (int i = OUTCOME_NONE + 1; i < OUTCOME_COUNT; i++) {
        const char *name = outcome_name((enum outcome)i);
        check(outcome_from_name(slice_from(name)) == (enum outcome)i, "%s", name);
    }
    assert_string_equal(outcome_name(OUTCOME_NONE), "none");
    static const char *const strangers[] = { "", "none", "Transient", "transient ", "trans", "unknown" };
    for (size_t i = 0; i < COUNT_OF(strangers); i++)
        check(outcome_from_name(slice_from(strangers[i])) == OUTCOME_NONE, "%s", strangers[i]);
}

/* C-16: three labels, and a class that no rule gave is UNKNOWN whatever it is treated as. */
static void labels(void **state)
{
    (void)state;
    static const struct { enum outcome outcome; const char *label; } rows[] = {
        { OUTCOME_TRANSIENT, "TRANSIENT" }, { OUTCOME_THROTTLED, "TRANSIENT" }, { OUTCOME_WAIT, "TRANSIENT" },
        { OUTCOME_IN_DOUBT, "TRANSIENT" },  { OUTCOME_PERMANENT, "PERMANENT" }, { OUTCOME_DUPLICATE, "PERMANENT" },
        { OUTCOME_BLOCKED, "PERMANENT" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_string_equal(outcome_label(rows[i].outcome, true), rows[i].label);
        assert_string_equal(outcome_label(rows[i].outcome, false), "UNKNOWN");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_go_round),
        cmocka_unit_test(labels),
    };
    return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
