#include "core/decision/backoff.h"
#include "support/check.h"

#include <math.h>

static const instant start = INT64_C(1736678400000);

static struct adaptive seen(int good, int bad, instant at)
{
    struct adaptive adaptive;
    adaptive_init(&adaptive);
    for (int i = 0; i < good + bad; i++)
        adaptive_note(&adaptive, i < good, at);
    return adaptive;
}

static void factors(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int good, bad;
        int64_t later_ms;
        double factor;
    } cases[] = {
        { "nothing is known", 0, 0, 0, 1 },
        { "half and half", 500, 500, 0, 1 },
        { "one failure moves little", 0, 1, 0, 2 - 2 * 5.0 / 11 },
        { "one success moves little", 1, 0, 0, 1.5 - 6.0 / 11 },
        { "all fail", 0, 990, 0, 2 - 2 * 5.0 / 1000 },
        { "all succeed", 990, 0, 0, 1.5 - 995.0 / 1000 },
        { "three in four fail", 10, 40, 0, 2 - 2 * 15.0 / 60 },
        { "three in four succeed", 40, 10, 0, 1.5 - 45.0 / 60 },
        { "half has faded", 0, 20, ADAPTIVE_HALF_LIFE_MS, 2 - 2 * 5.0 / 20 },
        { "three quarters have faded", 40, 0, 2 * ADAPTIVE_HALF_LIFE_MS, 1.5 - 15.0 / 20 },
        { "all has faded", 0, 1000, INT64_C(100) * 86400 * 1000, 1 },
        { "the clock was set back", 0, 20, -3600 * 1000, 2 - 2 * 5.0 / 30 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct adaptive adaptive = seen(cases[i].good, cases[i].bad, start);
        double factor = adaptive_factor(&adaptive, start + cases[i].later_ms);
        check(fabs(factor - cases[i].factor) < 1e-9, "%s: %.12f, not %.12f", cases[i].name, factor, cases[i].factor);
        check(factor == adaptive_factor(&adaptive, start + cases[i].later_ms), "%s: another answer", cases[i].name);
    }
}

/* What was long ago is forgotten although something was noted since. */
static void old_answers_fade_with_new_ones(void **state)
{
    (void)state;
    const instant later = start + INT64_C(100) * 86400 * 1000;
    for (int succeeded = 0; succeeded < 2; succeeded++) {
        struct adaptive old = seen(succeeded ? 0 : 1000, succeeded ? 1000 : 0, start), fresh = seen(0, 0, start);
        adaptive_note(&old, succeeded, later);
        adaptive_note(&fresh, succeeded, later);
        double factor = adaptive_factor(&old, later), alone = adaptive_factor(&fresh, later);
        check(fabs(factor - alone) < 1e-9, "%d: %.12f, not %.12f", succeeded, factor, alone);
    }
}

/* More failures never shorten a wait, more successes never lengthen one, and neither leaves the bounds. */
static void it_goes_one_way(void **state)
{
    struct adaptive worse = seen(0, 0, start), better = worse;
    (void)state;
    for (int i = 0; i < 100000; i++) {
        double before_worse = adaptive_factor(&worse, start), before_better = adaptive_factor(&better, start);
        adaptive_note(&worse, false, start);
        adaptive_note(&better, true, start);
        assert_true(adaptive_factor(&worse, start) > before_worse && adaptive_factor(&worse, start) <= ADAPTIVE_FACTOR_MAX);
        assert_true(adaptive_factor(&better, start) < before_better && adaptive_factor(&better, start) >= ADAPTIVE_FACTOR_MIN);
    }
}

/* Whatever the factor, no wait is one that the policy does not allow. */
static void waits_stay_within_the_policy(void **state)
{
    (void)state;
    static const double factors_tried[] = { ADAPTIVE_FACTOR_MIN, 0.75, 1, 1.5, ADAPTIVE_FACTOR_MAX };
    static const enum clamp clamps[] = { CLAMP_AFTER, CLAMP_SATURATE };
    for (size_t c = 0; c < COUNT_OF(clamps); c++) {
        for (size_t i = 0; i < COUNT_OF(factors_tried); i++) {
            struct retry_policy policy = { .retries_max = 20, .base_ms = 30000, .factor = 2, .floor_ms = 20000,
                                           .cap_ms = 600000, .jitter = 0.2, .clamp = clamps[c],
                                           .delay_factor = { 1, 1, factors_tried[i] } };
            for (int64_t retry = 1; retry <= 20; retry++) {
                int64_t wait = backoff_ms(&policy, 7, SLICE("job"), retry, PRIORITY_NORMAL);
                check(wait >= policy.floor_ms && wait <= policy.cap_ms, "factor %g, retry %lld: %lld", factors_tried[i],
                      (long long)retry, (long long)wait);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors),
        cmocka_unit_test(old_answers_fade_with_new_ones),
        cmocka_unit_test(it_goes_one_way),
        cmocka_unit_test(waits_stay_within_the_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
