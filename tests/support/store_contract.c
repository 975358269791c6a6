#include "support/store_contract.h"

#include "support/store_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        printf("1..0 # skip %s: %s\n", backend->name, missing);
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

int store_contract_run(const char *name)
{
    for (size_t i = 0; i < stores_under_test_count; i++)
        if (strcmp(stores_under_test[i].name, name) == 0)
            return run(&stores_under_test[i]);
    abort();
}
