#include "core/outage/criterion.h"
#include "support/check.h"

/* S3-009 S3-012 */
static void what_an_answer_shows(void **state)
{
    (void)state;
    static const struct { enum outcome outcome; const char *code; enum criterion expected; } cases[] = {
        { OUTCOME_DELIVERED, "http:200", CRITERION_NONE },
        { OUTCOME_ACCEPTED, "http:202", CRITERION_NONE },
        { OUTCOME_PERMANENT, "http:400", CRITERION_NONE }, /* the job's own fault */
        { OUTCOME_PERMANENT, "http:500", CRITERION_NONE },
        { OUTCOME_DUPLICATE, "http:409", CRITERION_NONE },
        { OUTCOME_BLOCKED, "http:401", CRITERION_NONE },
        { OUTCOME_PARTIAL, "", CRITERION_NONE },
        { OUTCOME_TRANSIENT, "", CRITERION_SERVICE },
        { OUTCOME_TRANSIENT, "http:500", CRITERION_SERVICE },
        { OUTCOME_TRANSIENT, "http:503", CRITERION_SERVICE },
        { OUTCOME_TRANSIENT, "http:504", CRITERION_TIMEOUT },
        { OUTCOME_TRANSIENT, "http:408", CRITERION_TIMEOUT },
        { OUTCOME_TRANSIENT, "http:423", CRITERION_NONE },
        { OUTCOME_TRANSIENT, "http:522", CRITERION_CONNECTIVITY },
        { OUTCOME_TRANSIENT, "http:529", CRITERION_BUSY },
        { OUTCOME_TRANSIENT, "http:x", CRITERION_SERVICE },
        { OUTCOME_TRANSIENT, "curl:28", CRITERION_TIMEOUT },
        { OUTCOME_TRANSIENT, "curl:6", CRITERION_CONNECTIVITY },
        { OUTCOME_TRANSIENT, "curl:7", CRITERION_CONNECTIVITY },
        { OUTCOME_TRANSIENT, "smtp:421", CRITERION_BUSY },
        { OUTCOME_TRANSIENT, "smtp:450", CRITERION_NONE }, /* one mailbox, not the server */
        { OUTCOME_TRANSIENT, "sifen:0161", CRITERION_SERVICE },
        { OUTCOME_THROTTLED, "http:429", CRITERION_BUSY },
        { OUTCOME_THROTTLED, "ses:Throttling", CRITERION_BUSY },
        { OUTCOME_WAIT, "sifen:0162", CRITERION_SERVICE },
        { OUTCOME_WAIT, "http:404", CRITERION_SERVICE }, /* the policy says that it is down */
        { OUTCOME_WAIT, "http:504", CRITERION_TIMEOUT },
        { OUTCOME_IN_DOUBT, "", CRITERION_TIMEOUT },
        { OUTCOME_IN_DOUBT, "curl:28", CRITERION_TIMEOUT },
        { OUTCOME_IN_DOUBT, "curl:56", CRITERION_CONNECTIVITY },
        { OUTCOME_IN_DOUBT, "http:502", CRITERION_SERVICE },
        { OUTCOME_IN_DOUBT, "http:200", CRITERION_NONE },
        { OUTCOME_IN_DOUBT, "sifen:0360", CRITERION_NONE }, /* it answered */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check(criterion_of(cases[i].outcome, slice_from(cases[i].code)) == cases[i].expected, "%s %s",
              outcome_name(cases[i].outcome), cases[i].code);
}

static void names_go_round(void **state)
{
    (void)state;
    assert_null(criterion_name(CRITERION_NONE));
    for (int i = CRITERION_NONE + 1; i < CRITERION_COUNT; i++)
        check(criterion_from_name(slice_from(criterion_name((enum criterion)i))) == (enum criterion)i, "%d", i);
    assert_int_equal(criterion_from_name(SLICE("rain")), CRITERION_NONE);
}

/* An answer to come later is no judgement of the job; any other is one. */
static void whether_anybody_is_there(void **state)
{
    (void)state;
    static const struct { enum outcome outcome; const char *code; bool away; } cases[] = {
        { OUTCOME_TRANSIENT, "http:429", true },  { OUTCOME_TRANSIENT, "http:502", true },  { OUTCOME_TRANSIENT, "http:503", true },
        { OUTCOME_TRANSIENT, "http:504", true },  { OUTCOME_TRANSIENT, "curl:7", true },    { OUTCOME_IN_DOUBT, "curl:28", true },
        { OUTCOME_IN_DOUBT, "", true },           { OUTCOME_WAIT, "sifen:0162", true },     { OUTCOME_THROTTLED, "x", true },
        { OUTCOME_TRANSIENT, "smtp:421", true },  { OUTCOME_TRANSIENT, "http:500", false }, { OUTCOME_TRANSIENT, "", false },
        { OUTCOME_TRANSIENT, "smtp:451", false }, { OUTCOME_DELIVERED, "", false },         { OUTCOME_IN_DOUBT, "http:200", false },
        { OUTCOME_TRANSIENT, "http:5030", false },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check(criterion_away(cases[i].outcome, slice_from(cases[i].code)) == cases[i].away, "%zu: %s", i, cases[i].code);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_an_answer_shows), cmocka_unit_test(whether_anybody_is_there), cmocka_unit_test(names_go_round) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
