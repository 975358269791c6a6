/*
 * The simulator, for the page's form: this program once more, as `insist simulate`, in a process of its own. A simulation
 * may need any amount of time and memory, and logs what it does; none of that may touch the daemon. So it is one at a time,
 * has little time and memory, gives way to everything else, and a thread of its own waits for it.
 */
#include "api/call/ask.h"
#include "api/call/body.h"
#include "api/operate/operate.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OPTION_BYTES_MAX = 200,
    ARGUMENTS_MAX = 24,
    OUTPUT_BYTES_MAX = 4 << 20,
    MEMORY_BYTES_MAX = 512 << 20,
    SIMULATION_MS_MAX = 8000, /* below what a browser waits for an answer */
    WAY_GIVEN = 10,           /* by nice */
};

struct simulation {
    char *arguments[ARGUMENTS_MAX];
    size_t count;
    struct buffer out, said; /* what it printed, and what it complained of */
    bool late;
    int code; /* its exit code; -1: it could not be started, or did not end by itself */
};

static atomic_bool busy; /* one at a time, for the whole process */

/* The output is what was asked for, so a reader that has had enough ends it. */
static bool drain(int from, struct buffer *into, size_t max)
{
    char piece[1 << 14];
    ssize_t len = read(from, piece, sizeof piece);
    if (len < 0)
        return errno == EINTR;
    if (len == 0 || buffer_slice(into).len + (size_t)len > max)
        return false;
    buffer_append(into, (struct slice){ piece, (size_t)len });
    return true;
}

/* Until both ends are closed, or the time is over. */
static void listen_to(struct simulation *simulation, int out, int said)
{
    int64_t end = clock_ticks_ms() + SIMULATION_MS_MAX;
    struct pollfd ends[] = { { .fd = out, .events = POLLIN }, { .fd = said, .events = POLLIN } };
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        int64_t left = end - clock_ticks_ms();
        simulation->late = left <= 0;
        if (simulation->late)
            return;
        if (poll(ends, 2, (int)left) < 0 && errno != EINTR)
            return;
        if (ends[0].fd >= 0 && ends[0].revents && !drain(out, &simulation->out, OUTPUT_BYTES_MAX))
            ends[0].fd = -1;
        if (ends[1].fd >= 0 && ends[1].revents && !drain(said, &simulation->said, ERROR_TEXT_BYTES_MAX))
            ends[1].fd = -1;
    }
}

static bool spawn(struct simulation *simulation, int out, int said, pid_t *ret_pid)
{
    extern char **environ;
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    bool done = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
                posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) == 0 &&
                posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO) == 0 &&
                posix_spawn(ret_pid, "/proc/self/exe", &actions, NULL, simulation->arguments, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return done;
}

static void run(struct simulation *simulation)
{
    int out[2], said[2], status = -1;
    pid_t pid;
    simulation->code = -1;
    if (pipe2(out, O_CLOEXEC) != 0)
        return;
    if (pipe2(said, O_CLOEXEC) != 0) {
        close(out[0]);
        close(out[1]);
        return;
    }
    bool started = spawn(simulation, out[1], said[1], &pid);
    close(out[1]);
    close(said[1]);
    if (started) {
        struct rlimit memory = { MEMORY_BYTES_MAX, MEMORY_BYTES_MAX };
        (void)prlimit(pid, RLIMIT_AS, &memory, NULL); /* the time is bounded anyhow */
        (void)setpriority(PRIO_PROCESS, (id_t)pid, WAY_GIVEN);
        listen_to(simulation, out[0], said[0]);
        if (simulation->late)
            kill(pid, SIGKILL);
    }
    close(out[0]); /* one that goes on talking hears that nobody listens */
    close(said[0]);
    if (started) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (!simulation->late && WIFEXITED(status))
            simulation->code = WEXITSTATUS(status);
    }
}

static void *wait_for_it(void *context)
{
    struct call *call = context;
    run(call->context);
    ask_return(call);
    return NULL;
}

/* The complaint itself, without the program's name before it and the hint for the terminal behind it. */
static struct slice complaint(struct slice said)
{
    const char *end = said.len > 0 ? memchr(said.data, '\n', said.len) : NULL;
    struct slice line = { said.data, end ? (size_t)(end - said.data) : said.len };
    size_t skip = slice_has_prefix(line, SLICE("insist: ")) ? strlen("insist: ") : 0;
    return (struct slice){ line.data + skip, line.len - skip };
}

static void answer(struct call *call)
{
    struct simulation *simulation = call->context;
    struct slice said = complaint(slice_trim(buffer_slice(&simulation->said)));
    atomic_store(&busy, false);
    if (simulation->late)
        call_problem(call, 422, "invalid_parameter", "it was not simulated within %d s; ask for less load or a shorter time",
                     SIMULATION_MS_MAX / 1000);
    else if (simulation->code == 2)
        call_problem(call, 422, "invalid_parameter", "%.*s", SLICE_ARG(said));
    else if (simulation->code != 0)
        call_problem(call, 503, "not_done", "the simulator did not end well: %.*s", SLICE_ARG(said));
    else
        call_json(call, 200, &simulation->out);
}

static void simulation_forget(struct call *call)
{
    struct simulation *simulation = call->context;
    buffer_release(&simulation->out);
    buffer_release(&simulation->said);
}

static bool PRINTF_LIKE(3, 4) add(struct call *call, struct simulation *simulation, const char *format, ...)
{
    char text[OPTION_BYTES_MAX + 64];
    va_list values;
    va_start(values, format);
    int len = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (len < 0 || (size_t)len >= sizeof text || simulation->count + 1 >= ARGUMENTS_MAX)
        return false;
    simulation->arguments[simulation->count] = arena_copy_text(&call->memory, slice_from(text));
    return simulation->arguments[simulation->count++] != NULL;
}

/* `--name=value`, so that no value can be taken for another option. False: answered. */
static bool read_options(struct call *call, struct simulation *simulation)
{
    const char *path = call->api->settings.config_path, *const *names = call->route->members;
    struct slice policy = { 0 };
    bool room = add(call, simulation, "insist") && add(call, simulation, "simulate") &&
                add(call, simulation, "--output=json");
    for (size_t i = 0; names[i] && room; i++) {
        struct slice value;
        if (json_is_integer(body_member(call, names[i]))) {
            room = add(call, simulation, "--%s=%lld", names[i],
                       (long long)json_integer_value(body_member(call, names[i])));
            continue;
        }
        if (!body_text(call, names[i], OPTION_BYTES_MAX, &value))
            return false;
        if (i == 0)
            policy = value;
        if (value.len > 0)
            room = add(call, simulation, "--%s=%.*s", names[i], SLICE_ARG(value));
    }
    /* A name that is no destination here is a preset's. */
    if (room && path && config_destination(call->api->config, policy))
        room = add(call, simulation, "--config=%s", path);
    if (!room)
        call_problem(call, 422, "invalid_parameter", "these options are too long");
    return room;
}

static void start(struct call *call)
{
    pthread_attr_t attributes;
    pthread_t thread;
    call->asked.then = answer;
    bool started = pthread_attr_init(&attributes) == 0;
    if (started) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        started = pthread_create(&thread, &attributes, wait_for_it, call) == 0;
        pthread_attr_destroy(&attributes);
    }
    if (started)
        return;
    atomic_store(&busy, false);
    call_problem(call, 503, "busy", "there is no thread for a simulation");
}

void handle_simulate(struct call *call)
{
    struct simulation *simulation = call_context(call, sizeof *simulation);
    if (!simulation)
        return;
    buffer_init(&simulation->out, OUTPUT_BYTES_MAX + 1);
    buffer_init(&simulation->said, ERROR_TEXT_BYTES_MAX + 1);
    call->forget = simulation_forget;
    if (!read_options(call, simulation))
        return;
    if (atomic_exchange(&busy, true))
        call_problem(call, 503, "busy", "somebody else's simulation is running; try again in a few seconds");
    else
        start(call);
}
