/* The contract of stores, by those without a server: support/store_contract.h. */
#include "support/store_cases.h"
#include "support/store_contract.h"

#include <stdlib.h>

/* An argument runs the tests whose name it matches, "*" and "?" allowed. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    int failed = store_contract_run("memory") + store_contract_run("sqlite");
    return failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
