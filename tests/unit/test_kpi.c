/*
 * Each figure of the documents by hand, of a day with something in it and of one without; and when its target is kept.
 */
#include "core/history/kpi.h"
#include "support/check.h"

#include <math.h>
#include <string.h>

static const struct kpi *kpi_of(const char *rule)
{
    for (size_t i = 0; i < KPI_COUNT; i++)
        if (strcmp(kpis[i].rule, rule) == 0)
            return &kpis[i];
    check(false, "there is no %s", rule);
    return NULL;
}

/* Ten ended: five at once, two after a retry (30 and 90 minutes), two used up, one with a permanent error. */
static struct daybook a_day(void)
{
    struct daybook day = { 0 };
    for (int i = 0; i < 5; i++)
        daybook_job(&day, DAYBOOK_DELIVERED, 1, 20, SLICE(""));
    daybook_job(&day, DAYBOOK_DELIVERED, 2, 30 * MINUTE_MS, SLICE(""));
    daybook_job(&day, DAYBOOK_DELIVERED, 3, 90 * MINUTE_MS, SLICE(""));
    daybook_job(&day, DAYBOOK_EXHAUSTED, 6, 0, SLICE("http:503"));
    daybook_job(&day, DAYBOOK_EXHAUSTED, 6, 0, SLICE("http:503"));
    daybook_job(&day, DAYBOOK_PERMANENT, 1, 0, SLICE("http:400"));
    return day;
}

static void each_is_as_by_hand(void **state)
{
    static const struct { const char *rule; double value; bool met; } expected[] = {
        { "S0-081", 50, false }, { "S0-082", 2.3, false },  { "S0-083", 50, false }, { "S0-084", 60, true },
        { "S1-051", 50, false }, { "S1-052", 60, true },    { "S1-053", 10, false }, { "S1-054", 20, false },
    };
    struct daybook day = a_day();
    (void)state;
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        const struct kpi *kpi = kpi_of(expected[i].rule);
        double value = kpi->value(&day);
        check(fabs(value - expected[i].value) < 1e-9, "%s is %g", kpi->rule, value);
        check(kpi_met(kpi, value) == expected[i].met, "%s", kpi->rule);
    }
}

static void of_nothing_there_is_none(void **state)
{
    const struct daybook none = { 0 };
    (void)state;
    for (size_t i = 0; i < KPI_COUNT; i++)
        check(kpis[i].value(&none) < 0, "%s is %g", kpis[i].rule, kpis[i].value(&none));
}

static void a_target_is_kept_up_to_its_bound(void **state)
{
    (void)state;
    for (size_t i = 0; i < KPI_COUNT; i++) {
        const struct kpi *kpi = &kpis[i];
        bool least = kpi->bound == KPI_AT_LEAST;
        assert_int_equal(kpi_met(kpi, kpi->target), kpi->bound != KPI_BELOW);
        assert_int_equal(kpi_met(kpi, kpi->target + 0.5), least);
        assert_int_equal(kpi_met(kpi, kpi->target - 0.5), !least);
        assert_string_equal(kpi_sign(kpi), least ? ">=" : kpi->bound == KPI_AT_MOST ? "<=" : "<");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_as_by_hand),
        cmocka_unit_test(of_nothing_there_is_none),
        cmocka_unit_test(a_target_is_kept_up_to_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
