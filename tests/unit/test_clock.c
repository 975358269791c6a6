/* A clock that never goes back, whatever the system's does. */
#include "base/clock.h"
#include "core/ownership/ownership.h"
#include "support/check.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t wall_ms, steady_ms;
static time_t slept_s; /* of the whole machine */

/* Instead of the library's: a machine that has slept. Only the clock that counts from its start has gone on meanwhile. */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, ret_time);
    if (clock == CLOCK_BOOTTIME)
        ret_time->tv_sec += slept_s;
    return result;
}

static int64_t wall_ns(void)
{
    return wall_ms * 1000000;
}

static int64_t steady_ns(void)
{
    return steady_ms * 1000000;
}

static void pass(int64_t ms)
{
    wall_ms += ms;
    steady_ms += ms;
}

static int setup(void **state)
{
    static const struct clock_source source = { wall_ns, steady_ns };
    (void)state;
    wall_ms = 1760000000000;
    steady_ms = 5000;
    clock_use(&source);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    clock_use(NULL);
    return 0;
}

static void a_step_back_is_not_followed(void **state)
{
    static const int64_t steps[] = { 1, 900, HOUR_MS, 2 * 365 * (int64_t)DAY_MS };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        setup(NULL);
        instant before = clock_now();
        assert_int_equal(before, 1760000000000);
        wall_ms -= steps[i];
        assert_int_equal(clock_now(), before);
        pass(4000); /* a wait of four seconds takes four seconds */
        assert_int_equal(clock_now(), before + 4000);
        assert_int_equal(clock_ahead_ms(), steps[i] >= SECOND_MS ? steps[i] : 0);
        wall_ms += steps[i];
        assert_int_equal(clock_ahead_ms(), 0);
        assert_int_equal(clock_now(), before + 4000);
    }
}

static void a_step_forward_is_followed_and_told(void **state)
{
    (void)state;
    instant before = clock_now();
    wall_ms += 40000;
    assert_int_equal(clock_now(), before + 40000);
    assert_int_equal(clock_stepped_ms(60000), 40000);
    pass(59000);
    assert_int_equal(clock_now(), before + 99000);
    assert_int_equal(clock_stepped_ms(60000), 40000);
    pass(2000);
    assert_int_equal(clock_stepped_ms(60000), 0);
}

static void it_can_begin_later(void **state)
{
    (void)state;
    clock_not_before(wall_ms + 30000);
    assert_int_equal(clock_now(), 1760000030000);
    pass(10);
    assert_int_equal(clock_now(), 1760000030010);
    clock_not_before(wall_ms); /* it is later already */
    assert_int_equal(clock_now(), 1760000030010);
    assert_int_equal(clock_ahead_ms(), 30000);
}

/* A node whose machine has slept since it was last heard of believes no more that anything is its own. */
static void sleep_ends_trust(void **state)
{
    (void)state;
    struct ownership ownership;
    ownership_init(&ownership, 1);
    slept_s = 0;
    int64_t ticks_ns = clock_ticks_ns();
    ownership_beaten(&ownership, clock_boot_ms());
    assert_true(ownership_trusted(&ownership, clock_boot_ms()));
    slept_s = OWNERSHIP_TRUST_MS / 1000 + 1;
    assert_false(ownership_trusted(&ownership, clock_boot_ms()));
    assert_true(clock_ticks_ns() - ticks_ns < (int64_t)OWNERSHIP_TRUST_MS * 1000000); /* which by these it still would */
    slept_s = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_step_back_is_not_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_forward_is_followed_and_told, setup, teardown),
        cmocka_unit_test_setup_teardown(it_can_begin_later, setup, teardown),
        cmocka_unit_test(sleep_ends_trust),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
