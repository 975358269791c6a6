#include "support/check.h"

#include "base/descriptors.h"

#include <inttypes.h>
#include <sys/resource.h>

static const struct {
    const char *name;
    int64_t limit, wanted, clients, sends;
} rows[] = {
    { "the usual limit is halved", 1024, 1024, 480, 480 },
    { "clients take no more than they want", 1024, 100, 100, 860 },
    { "there is plenty", 1048576, 1024, 1024, 1047488 },
    { "there is no limit", INT64_MAX, 1024, 1024, INT64_MAX - 64 - 1024 },
    { "few: half is kept back", 64, 1024, 16, 16 },
    { "hardly any", 3, 1024, 1, 1 },
    { "none at all", 0, 1024, 1, 1 },
};

static void each_part_has_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct descriptors share = descriptors_share(rows[i].limit, rows[i].wanted);
        check(share.clients == rows[i].clients && share.sends == rows[i].sends, "%s: %" PRId64 " and %" PRId64, rows[i].name,
              share.clients, share.sends);
    }
}

static void the_limit_is_the_process_s_own(void **state)
{
    struct rlimit limit;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur != RLIM_INFINITY)
        assert_int_equal(descriptors_limit(), limit.rlim_cur);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_part_has_its_own), cmocka_unit_test(the_limit_is_the_process_s_own) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
