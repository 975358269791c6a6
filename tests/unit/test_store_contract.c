/* One suite over every store: what store.h says, and a random comparison with a model. */
#include "support/store_cases.h"

#include <stdio.h>
#include <stdlib.h>

static const struct store_case *const suites[] = {
    store_cases_write, store_cases_name, store_cases_key, store_cases_time,
    store_cases_nodes, store_cases_read, store_cases_batch, store_cases_redrive, store_cases_erase,
    store_cases_export, store_cases_random,
};

enum { SUITES = sizeof suites / sizeof *suites, NAME_BYTES = 96 };

static size_t suites_length(void)
{
    size_t count = 0;
    for (size_t i = 0; i < SUITES; i++)
        for (const struct store_case *one = suites[i]; one->name; one++)
            count++;
    return count;
}

static int run(const struct store_under_test *backend)
{
    size_t count = suites_length();
    const char *missing = backend->missing ? backend->missing() : NULL;
    if (missing) {
        printf("# SKIP %s: %s\n", backend->name, missing);
        return 0;
    }
    struct CMUnitTest *tests = calloc(count, sizeof *tests);
    char (*names)[NAME_BYTES] = calloc(count, sizeof *names);
    if (!tests || !names)
        abort();
    size_t filled = 0;
    for (size_t i = 0; i < SUITES; i++) {
        for (const struct store_case *one = suites[i]; one->name; one++, filled++) {
            snprintf(names[filled], NAME_BYTES, "%s: %s", backend->name, one->name);
            tests[filled] = (struct CMUnitTest){ names[filled], one->test, fixture_setup, fixture_teardown,
                                                 (void *)(uintptr_t)backend };
        }
    }
    int failed = _cmocka_run_group_tests(backend->name, tests, count, NULL, NULL);
    free(names);
    free(tests);
    return failed;
}

/* An argument runs the tests whose name it matches, "*" and "?" allowed. */
int main(int argc, char **argv)
{
    int failed = 0;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    for (size_t i = 0; i < stores_under_test_count; i++)
        failed += run(&stores_under_test[i]);
    return failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
