#include "core/decision/outcome.h"
#include "support/check.h"

static void every_outcome_has_a_name_of_its_own(void **state)
{
    (void)state;
    assert_string_equal(outcome_name(OUTCOME_NONE), "none");
    for (int i = OUTCOME_NONE; i < OUTCOME_COUNT; i++)
        for (int j = OUTCOME_NONE; j < i; j++)
            check(strcmp(outcome_name((enum outcome)i), outcome_name((enum outcome)j)) != 0, "%d and %d", i, j);
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
        cmocka_unit_test(every_outcome_has_a_name_of_its_own),
        cmocka_unit_test(labels),
    };
    return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
