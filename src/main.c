#include "cli/cli.h"
#include "store/store_memory.h"
#include "store/store_sqlite.h"

/* The only place that names the backends. */
const struct store_backend store_backends[] = {
    { "sqlite:", store_sqlite_open },
    { "memory:", store_memory_open },
    { 0 },
};

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
