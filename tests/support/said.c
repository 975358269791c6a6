#include "support/said.h"

#include "support/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { SAID_BYTES_MAX = 1 << 20 };

static char said[SAID_BYTES_MAX];
static int kept_stderr, said_fd;

void said_begin(void)
{
    char path[] = "/tmp/insist_log_XXXXXX";
    said_fd = mkstemp(path);
    assert_true(said_fd >= 0);
    unlink(path);
    kept_stderr = dup(STDERR_FILENO);
    assert_true(kept_stderr >= 0);
    assert_true(fcntl(said_fd, F_SETFL, O_APPEND) == 0);
    assert_true(dup2(said_fd, STDERR_FILENO) >= 0);
}

char *said_end(void)
{
    assert_true(dup2(kept_stderr, STDERR_FILENO) >= 0);
    close(kept_stderr);
    ssize_t len = pread(said_fd, said, sizeof said - 1, 0);
    close(said_fd);
    assert_true(len >= 0);
    said[len] = '\0';
    return said;
}
