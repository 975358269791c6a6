#include "cli/cli.h"
#include "store/memory/memory.h"
#include "store/postgres/postgres.h"
#include "store/sqlite/sqlite.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The only place that names the backends. */
const struct store_backend *const store_backends[] = { &store_sqlite_backend, &store_postgres_backend,
                                                       &store_postgresql_backend, &store_memory_backend, NULL };

/*
 * Before the libraries are set up, which takes longer than all that follows up to the daemon's handlers: a supervisor that
 * sends SIGHUP to a process it has just started means "read the file", and not "end". By the system call itself, since
 * the sanitizers are not set up either.
 */
__attribute__((no_sanitize("address", "thread", "undefined"))) static void at_first(void)
{
    static const unsigned long hangup = 1ul << (SIGHUP - 1);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &hangup, NULL, 8); /* the kernel's set has 8 bytes */
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = at_first;

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
