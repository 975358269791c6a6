#include "core/outage/cycle.h"
#include "support/check.h"

enum { START = 1000000 };

static struct cycles none(void)
{
    return (struct cycles){ .last.number = 0 };
}

static void a_run_is_told_when_it_is_over_and_answered(void **state)
{
    struct cycles cycles = none();
    (void)state;
    cycle_selected(&cycles, 1, 3, 900, START);
    cycle_answered(&cycles, 1, CYCLE_SUCCEEDED, START + 20);
    cycle_selected(&cycles, 1, 2, 100, START + 30); /* a cycle may select more than once */
    cycle_answered(&cycles, 1, CYCLE_RESCHEDULED, START + 40);
    cycle_answered(&cycles, 1, CYCLE_FAILED, START + 50);
    cycle_answered(&cycles, 1, CYCLE_HELD, START + 60);
    assert_false(cycle_tell(&cycles));
    cycle_ended(&cycles, 1);
    assert_false(cycle_tell(&cycles));
    cycle_answered(&cycles, 1, CYCLE_SUCCEEDED, START + 75);
    cycle_answered(&cycles, 1, CYCLE_FAILED, START + 80); /* more than were selected */
    cycle_returned(&cycles, 1);
    assert_true(cycle_tell(&cycles));
    assert_int_equal(cycles.last.selected, 5);
    assert_int_equal(cycles.last.answered, 5);
    assert_int_equal(cycles.last.succeeded, 2);
    assert_int_equal(cycles.last.failed, 2);
    assert_int_equal(cycles.last.rescheduled, 2);
    assert_int_equal(cycles.last.age_ms, 200);
    assert_int_equal(cycles.last.began_at, START);
    assert_int_equal(cycle_took_ms(&cycles.last), 75);
    assert_false(cycle_tell(&cycles));
}

static void who_is_late_is_left_out(void **state)
{
    struct cycles cycles = none();
    (void)state;
    cycle_selected(&cycles, 1, 2, 0, START);
    cycle_answered(&cycles, 1, CYCLE_SUCCEEDED, START + 10);
    cycle_ended(&cycles, 1);
    cycle_selected(&cycles, 2, 1, 0, START + 100);
    cycle_answered(&cycles, 2, CYCLE_SUCCEEDED, START + 110);
    assert_false(cycle_tell(&cycles));
    cycle_ended(&cycles, 2);
    assert_true(cycle_tell(&cycles)); /* the first, which has waited for a whole cycle */
    assert_int_equal(cycles.last.number, 1);
    assert_int_equal(cycles.last.selected, 2);
    assert_int_equal(cycles.last.answered, 1);
    assert_true(cycle_tell(&cycles));
    assert_int_equal(cycles.last.number, 2);
    assert_false(cycle_tell(&cycles));
    cycle_answered(&cycles, 1, CYCLE_FAILED, START + 300);
    assert_int_equal(cycles.last.number, 2);
    assert_int_equal(cycles.last.failed, 0);
    assert_false(cycle_tell(&cycles));
}

static void the_one_before_may_end_in_time(void **state)
{
    struct cycles cycles = none();
    (void)state;
    cycle_selected(&cycles, 1, 1, 0, START);
    cycle_selected(&cycles, 2, 1, 0, START + 100); /* that the first is over is seen by the second */
    assert_false(cycle_tell(&cycles));
    cycle_answered(&cycles, 1, CYCLE_SUCCEEDED, START + 120);
    assert_true(cycle_tell(&cycles));
    assert_int_equal(cycles.last.number, 1);
    assert_int_equal(cycle_took_ms(&cycles.last), 120);
    assert_false(cycle_tell(&cycles));
}

/* Nothing was selected, or all of it turned out not to be sent. */
static void nothing_is_not_told(void **state)
{
    struct cycles cycles = none();
    (void)state;
    cycle_ended(&cycles, 1);
    assert_false(cycle_tell(&cycles));
    cycle_selected(&cycles, 2, 2, 0, START);
    cycle_returned(&cycles, 2);
    cycle_returned(&cycles, 2);
    cycle_returned(&cycles, 9); /* of none that is known */
    cycle_ended(&cycles, 2);
    assert_false(cycle_tell(&cycles));
    assert_int_equal(cycles.last.number, 0);
    assert_int_equal(cycles.present.figures.number, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_told_when_it_is_over_and_answered),
        cmocka_unit_test(who_is_late_is_left_out),
        cmocka_unit_test(the_one_before_may_end_in_time),
        cmocka_unit_test(nothing_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
