/* The contract of stores, by PostgreSQL: support/store_contract.h. Apart, for it takes three times as long as the others together. */
#include "support/store_cases.h"
#include "support/store_contract.h"

#include <stdlib.h>

/* An argument runs the tests whose name it matches, "*" and "?" allowed. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return store_contract_run("postgres") > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
