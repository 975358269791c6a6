#include "cli/play/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { START_TIMEOUT_MS = 30000, STOP_TIMEOUT_MS = 40000 /* a drain has 30 s */, STEP_MS = 20, OUTPUT_BYTES_MAX = 64 << 10 };

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

/* This runs in the new process, and never returns. */
static void become(const char *out, const char *log, const char *const *arguments, pid_t parent)
{
    char *argv[CHILD_ARGUMENTS_MAX + 2] = { strdup("insist") };
    for (int i = 0; i < CHILD_ARGUMENTS_MAX && arguments[i]; i++)
        argv[i + 1] = strdup(arguments[i]);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* it ended before the line above */
        _exit(1);
    int out_fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int log_fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int in_fd = open("/dev/null", O_RDONLY);
    if (out_fd < 0 || log_fd < 0 || in_fd < 0)
        _exit(1);
    if (dup2(in_fd, STDIN_FILENO) < 0 || dup2(out_fd, STDOUT_FILENO) < 0 || dup2(log_fd, STDERR_FILENO) < 0)
        _exit(1);
    execv("/proc/self/exe", argv);
    _exit(1);
}

/* What a file has, as far as it goes. */
static void read_file(const char *path, struct buffer *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    for (;;) {
        char *room = buffer_reserve(out, 4096);
        ssize_t got = room ? read(fd, room, 4096) : 0;
        if (got <= 0)
            break;
        buffer_commit(out, (size_t)got);
    }
    close(fd);
}

/* The first http:// address of a whole line. */
static bool find_url(const char *path, char url[CHILD_URL_BYTES])
{
    struct buffer text = buffer_up_to(OUTPUT_BYTES_MAX);
    read_file(path, &text);
    struct slice all = buffer_slice(&text);
    struct slice rest = slice_from_offset(all, slice_search(all, SLICE("http://")));
    size_t len = 0;
    while (len < rest.len && (ascii_is_alnum(rest.data[len]) || strchr(":/.[]", rest.data[len])))
        len++;
    bool found = len > 0 && len < rest.len && len < CHILD_URL_BYTES && slice_find(rest, '\n') < rest.len;
    if (found)
        snprintf(url, CHILD_URL_BYTES, "%.*s", (int)len, rest.data);
    buffer_release(&text);
    return found;
}

enum status child_start(struct child *ret_child, const char *folder, const char *name, const char *const *arguments,
                        struct error *err)
{
    struct child child = { 0 };
    char log[CHILD_PATH_BYTES];
    pid_t parent = getpid();
    snprintf(child.out, sizeof child.out, "%s/%s.out", folder, name);
    snprintf(log, sizeof log, "%s/%s.log", folder, name);
    child.pid = fork();
    if (child.pid < 0)
        return error_set(err, STATUS_IO, "cannot start %s: %s", name, strerror(errno));
    if (child.pid == 0)
        become(child.out, log, arguments, parent);
    for (int waited_ms = 0; waited_ms < START_TIMEOUT_MS; waited_ms += STEP_MS) {
        if (find_url(child.out, child.url)) {
            *ret_child = child;
            return STATUS_OK;
        }
        if (!child_is_running(&child))
            break;
        pause_ms(STEP_MS);
    }
    struct buffer text = buffer_up_to(OUTPUT_BYTES_MAX);
    read_file(log, &text);
    struct slice said = slice_trim(buffer_slice(&text));
    said.len = said.len < 300 ? said.len : 300;
    error_set(err, STATUS_IO, "%s did not start%s%.*s", name, said.len > 0 ? ": " : "", SLICE_ARG(said));
    buffer_release(&text);
    child_stop(&child);
    return STATUS_IO;
}

bool child_is_running(struct child *child)
{
    if (child->pid > 0 && waitpid(child->pid, NULL, WNOHANG) != 0)
        child->pid = 0;
    return child->pid > 0;
}

void child_stop(struct child *child)
{
    if (!child_is_running(child))
        return;
    kill(child->pid, SIGTERM);
    for (int waited_ms = 0; waited_ms < STOP_TIMEOUT_MS && child_is_running(child); waited_ms += STEP_MS)
        pause_ms(STEP_MS);
    if (child->pid > 0) {
        kill(child->pid, SIGKILL);
        waitpid(child->pid, NULL, 0);
        child->pid = 0;
    }
}

void child_last_line(const struct child *child, struct buffer *out)
{
    struct buffer text = buffer_up_to(OUTPUT_BYTES_MAX);
    read_file(child->out, &text);
    struct slice said = slice_trim(buffer_slice(&text));
    size_t start = said.len;
    while (start > 0 && said.data[start - 1] != '\n')
        start--;
    buffer_append(out, slice_from_offset(said, start));
    buffer_release(&text);
}
