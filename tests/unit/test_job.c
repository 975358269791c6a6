#include "core/decision/job.h"
#include "support/check.h"

static void every_cell_of_the_table(void **state)
{
    (void)state;
    static const struct { enum job_state from; enum job_event event; enum job_state to; } legal[] = {
        { STATE_PENDING, EVENT_CLAIM, STATE_RUNNING },     { STATE_PENDING, EVENT_CANCEL, STATE_CANCELLED },
        { STATE_PENDING, EVENT_EXPIRE, STATE_DEAD },       { STATE_RUNNING, EVENT_DELIVER, STATE_COMPLETED },
        { STATE_RUNNING, EVENT_RETRY, STATE_WAITING },     { STATE_RUNNING, EVENT_RELEASE, STATE_WAITING },
        { STATE_RUNNING, EVENT_GIVE_UP, STATE_DEAD },      { STATE_RUNNING, EVENT_EXPIRE, STATE_DEAD },
        { STATE_WAITING, EVENT_CLAIM, STATE_RUNNING },     { STATE_WAITING, EVENT_CANCEL, STATE_CANCELLED },
        { STATE_WAITING, EVENT_EXPIRE, STATE_DEAD },       { STATE_WAITING, EVENT_REDRIVE, STATE_PENDING },
        { STATE_DEAD, EVENT_REDRIVE, STATE_PENDING },      { STATE_COMPLETED, EVENT_RESEND, STATE_PENDING },
        { STATE_PENDING, EVENT_UNDO, STATE_DEAD },         { STATE_WAITING, EVENT_UNDO, STATE_DEAD },
    };
    for (int from = STATE_NONE + 1; from < STATE_COUNT; from++)
        for (int event = 0; event < EVENT_COUNT; event++) {
            enum job_state expected = STATE_NONE;
            for (size_t i = 0; i < COUNT_OF(legal); i++)
                if (legal[i].from == (enum job_state)from && legal[i].event == (enum job_event)event)
                    expected = legal[i].to;
            check(job_state_after((enum job_state)from, (enum job_event)event) == expected, "%s, event %d",
                  job_state_name((enum job_state)from), event);
        }
}

static void state_names_go_round(void **state)
{
    (void)state;
    for (int i = STATE_NONE + 1; i < STATE_COUNT; i++)
        check(job_state_from_name(slice_from(job_state_name((enum job_state)i))) == (enum job_state)i, "state %d", i);
    assert_string_equal(job_state_name(STATE_NONE), "none");
    assert_int_equal(job_state_from_name(SLICE("none")), STATE_NONE);
    assert_int_equal(job_state_from_name(SLICE("held")), STATE_NONE);
    assert_int_equal(job_state_from_name(SLICE("")), STATE_NONE);
}

static void priorities(void **state)
{
    (void)state;
    static const struct { const char *text; bool good; enum priority priority; } rows[] = {
        { "critical", true, PRIORITY_CRITICAL }, { "HIGH", true, PRIORITY_HIGH }, { "Normal", true, PRIORITY_NORMAL },
        { "1", true, PRIORITY_CRITICAL },        { "2", true, PRIORITY_HIGH },    { "3", true, PRIORITY_NORMAL },
        { "0", false, PRIORITY_NORMAL },         { "4", false, PRIORITY_NORMAL }, { "", false, PRIORITY_NORMAL },
        { "11", false, PRIORITY_NORMAL },        { "low", false, PRIORITY_NORMAL },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        enum priority priority = PRIORITY_COUNT;
        check(priority_from_name(slice_from(rows[i].text), &priority) == rows[i].good, "%s", rows[i].text);
        check(priority == (rows[i].good ? rows[i].priority : PRIORITY_COUNT), "%s", rows[i].text);
    }
    assert_string_equal(priority_name(PRIORITY_CRITICAL), "critical");
    assert_string_equal(priority_name(PRIORITY_HIGH), "high");
    assert_string_equal(priority_name(PRIORITY_NORMAL), "normal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_of_the_table),
        cmocka_unit_test(state_names_go_round),
        cmocka_unit_test(priorities),
    };
    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
