#include "transport/exec/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STANDARD = 3,           /* descriptors that a program expects */
    FAILURE = STANDARD,     /* of the child, to tell why the program could not be begun */
    DESCRIPTORS_MAX = 1024, /* that a program may open, as where nobody raised it: select() knows no more */
    NOT_BEGUN_CODE = 127,
};

struct pipes {
    int input[2], output[2], errors[2], failure[2]; /* to read, to write */
};

void process_close(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

/* ---- The pipes. ---- */

/* None of them may have the number of one that the program expects, or giving it those would overwrite this. */
static bool keep_clear(int *descriptor)
{
    if (*descriptor >= STANDARD)
        return true;
    int moved = fcntl(*descriptor, F_DUPFD_CLOEXEC, STANDARD);
    int error = errno;
    close(*descriptor);
    *descriptor = moved;
    errno = error;
    return moved >= 0;
}

static bool pipe_open(int ends[2], int ours)
{
    if (pipe2(ends, O_CLOEXEC) != 0) {
        ends[0] = ends[1] = -1;
        return false;
    }
    return keep_clear(&ends[0]) && keep_clear(&ends[1]) && fcntl(ends[ours], F_SETFL, O_NONBLOCK) == 0;
}

static void pipes_close(struct pipes *pipes)
{
    int *all[] = { pipes->input, pipes->output, pipes->errors, pipes->failure };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        process_close(&all[i][0]);
        process_close(&all[i][1]);
    }
}

static bool pipes_open(struct pipes *pipes)
{
    *pipes = (struct pipes){ { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
    return pipe_open(pipes->input, 1) && pipe_open(pipes->output, 0) && pipe_open(pipes->errors, 0) &&
           pipe_open(pipes->failure, 0);
}

/* ---- In the child: between fork and execve only what is safe while other threads hold any lock. ---- */

static void limit(__rlimit_resource_t resource, rlim_t most)
{
    struct rlimit now;
    if (getrlimit(resource, &now) != 0)
        return;
    if (now.rlim_cur > most)
        now.rlim_cur = most;
    if (resource == RLIMIT_AS && now.rlim_max > most)
        now.rlim_max = most; /* it may not raise this one again */
    setrlimit(resource, &now);
}

static void signals_default(void)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &action, NULL); /* what is ignored would stay so over execve; two cannot be set, which is well */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Ends of pipes to other programs are closed at once and not at execve, which may wait long for a disk: those programs would
 * wait for the end of their input meanwhile.
 */
static bool descriptors_set(const struct pipes *pipes)
{
    return dup2(pipes->input[0], STDIN_FILENO) >= 0 && dup2(pipes->output[1], STDOUT_FILENO) >= 0 &&
           dup2(pipes->errors[1], STDERR_FILENO) >= 0 &&
           (pipes->failure[1] == FAILURE || dup3(pipes->failure[1], FAILURE, O_CLOEXEC) >= 0) &&
           close_range(FAILURE + 1, ~0U, 0) == 0;
}

static int become(const struct process_order *order, pid_t parent)
{
    setsid();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return errno;
    if (getppid() != parent)
        return EOWNERDEAD; /* the daemon was gone before it could be followed */
    limit(RLIMIT_CORE, 0); /* a dump has the payload in it */
    limit(RLIMIT_NOFILE, DESCRIPTORS_MAX);
    if (order->memory_bytes > 0)
        limit(RLIMIT_AS, (rlim_t)order->memory_bytes);
    if (chdir("/") != 0)
        return errno;
    signals_default();
    execve(order->argv[0], order->argv, order->environment);
    return errno;
}

static void child(const struct process_order *order, const struct pipes *pipes, pid_t parent)
{
    bool set = descriptors_set(pipes);
    int reason = set ? become(order, parent) : errno;
    ssize_t written = write(set ? FAILURE : pipes->failure[1], &reason, sizeof reason);
    _exit(written == sizeof reason ? NOT_BEGUN_CODE : NOT_BEGUN_CODE - 1);
}

/* ---- In the daemon. ---- */

/* No handler of the daemon's may run in the child: it would speak with the daemon's loop. */
static pid_t fork_quietly(const struct process_order *order, const struct pipes *pipes)
{
    sigset_t all, before;
    pid_t parent = getpid();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        child(order, pipes, parent);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return pid;
}

static int take(int *descriptor)
{
    int taken = *descriptor;
    *descriptor = -1;
    return taken;
}

static enum status missing(int reason, struct error *err)
{
    bool memory = reason == ENOMEM;
    return error_set(err, memory ? STATUS_NO_MEMORY : STATUS_FULL, "no process can be started: %s", strerror(reason));
}

enum status process_start(const struct process_order *order, struct process *ret_process, struct error *err)
{
    struct pipes pipes;
    assert(order->argv[0] && order->argv[0][0] == '/');
    if (!pipes_open(&pipes)) {
        int reason = errno;
        pipes_close(&pipes);
        return missing(reason, err);
    }
    pid_t pid = fork_quietly(order, &pipes);
    int reason = errno;
    int pidfd = pid > 0 ? pidfd_open(pid, 0) : -1; /* it is closed over execve */
    if (pid > 0 && pidfd < 0) {
        reason = errno;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    if (pidfd < 0) {
        pipes_close(&pipes);
        return missing(reason, err);
    }
    *ret_process = (struct process){ .pid = pid,
                                     .pidfd = pidfd,
                                     .input = take(&pipes.input[1]),
                                     .output = take(&pipes.output[0]),
                                     .errors = take(&pipes.errors[0]),
                                     .failure = take(&pipes.failure[0]) };
    pipes_close(&pipes);
    return STATUS_OK;
}

/*
 * The group has the number of its first process, which nobody else can get before that one is reaped. The first moments of
 * a child are before it has a group: then it alone is meant.
 */
void process_signal(const struct process *process, int number)
{
    assert(process->pid > 1 && process->pidfd >= 0);
    if (kill(-process->pid, number) != 0)
        pidfd_send_signal(process->pidfd, number, NULL, 0);
}

bool process_reap(struct process *process, enum process_end *ret_end, int *ret_number)
{
    siginfo_t info = { .si_pid = 0 };
    int reason;
    if (waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
        return false;
    process_signal(process, SIGKILL); /* before the number is free */
    waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED | WNOHANG);
    if (read(process->failure, &reason, sizeof reason) == sizeof reason) {
        *ret_end = PROCESS_NOT_BEGUN;
        *ret_number = reason;
    } else {
        *ret_end = info.si_code == CLD_EXITED ? PROCESS_EXITED : PROCESS_SIGNALLED;
        *ret_number = info.si_status;
    }
    process_close(&process->pidfd);
    return true;
}

void process_release(struct process *process)
{
    process_close(&process->pidfd);
    process_close(&process->input);
    process_close(&process->output);
    process_close(&process->errors);
    process_close(&process->failure);
}
