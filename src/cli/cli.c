#include "cli/cli.h"

#include "cli/offline/offline.h"
#include "cli/options.h"
#include "config/problems.h"
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_MAX = 10000 };

static void message(const char *format, va_list args)
{
    fputs("insist: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

int cli_fail(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    message(format, args);
    va_end(args);
    return code;
}

int cli_usage(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    message(format, args);
    va_end(args);
    fprintf(stderr, "Try `insist help%s%s`.\n", command ? " " : "", command ? command : "");
    return EXIT_USAGE;
}

enum status cli_write(int descriptor, struct slice bytes)
{
    while (bytes.len > 0) {
        ssize_t written = write(descriptor, bytes.data, bytes.len);
        if (written < 0 && errno != EINTR && errno != EAGAIN)
            return STATUS_IO;
        if (written < 0 && errno == EAGAIN) { /* somebody made the descriptor non-blocking */
            struct pollfd wanted = { .fd = descriptor, .events = POLLOUT };
            poll(&wanted, 1, -1);
        }
        if (written > 0)
            bytes = slice_from_offset(bytes, (size_t)written);
    }
    return STATUS_OK;
}

bool cli_reader_waits(int timeout_ms)
{
    struct pollfd output = { .fd = STDOUT_FILENO };
    return poll(&output, 1, timeout_ms) <= 0 || (output.revents & (POLLERR | POLLHUP)) == 0;
}

int cli_print(struct buffer *out, int code)
{
    if (buffer_status(out) != STATUS_OK)
        code = cli_fail(EXIT_FAILED, "the output does not fit into memory");
    else if (cli_write(STDOUT_FILENO, buffer_slice(out)) != STATUS_OK)
        code = errno == EPIPE /* `insist jobs | head` has all it wanted */
                   ? EXIT_FAILED
                   : cli_fail(EXIT_FAILED, "cannot write to standard output: %s", strerror(errno));
    buffer_release(out);
    return code;
}

const struct command *command_find(struct slice name)
{
    for (const struct command *command = commands; command->name; command++)
        if (slice_equal(name, slice_from(command->name)))
            return command;
    return NULL;
}

static int unknown_command(const char *name)
{
    struct nearest nearest = { .wanted = slice_from(name) };
    for (size_t i = 0; commands[i].name; i++)
        nearest_offer(&nearest, commands[i].name);
    if (nearest.name)
        return cli_usage(NULL, "there is no command \"%s\"; did you mean \"%s\"?", name, nearest.name);
    return cli_usage(NULL, "there is no command \"%s\"", name);
}

/* An empty variable is as if it was not set. */
static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* The word `name` as a command without arguments: for --help and --version. */
static int run_alone(struct cli *cli, const char *name)
{
    char word[32];
    snprintf(word, sizeof word, "%s", name);
    char *argv[] = { word, NULL };
    cli->command = command_find(slice_from(name));
    cli->argc = 1;
    cli->argv = argv;
    return cli->command->run(cli);
}

/* COLUMNS where it is given, else what the terminal says. */
static size_t terminal_width(void)
{
    struct winsize size;
    int64_t columns;
    if (!isatty(STDOUT_FILENO))
        return 0;
    if (slice_to_int64(slice_from(environment("COLUMNS")), &columns) && columns > 0 && columns < COLUMNS_MAX)
        return (size_t)columns;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Who is started with one of them closed opens a store or a connection under its number, and would print into that. */
static void take_standard_numbers(void)
{
    static const int flags[] = { [STDIN_FILENO] = O_WRONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_WRONLY };
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++)
        if (fcntl(number, F_GETFD) < 0 && open("/dev/null", flags[number]) < 0)
            exit(EXIT_FAILED); /* nobody would read a message */
}

int cli_main(int argc, char **argv)
{
    take_standard_numbers();
    struct cli cli = { .server = environment("INSIST_SERVER"), .token = environment("INSIST_TOKEN") };
    int first = argc;
    const char *terminal = environment("TERM");
    cli.color = isatty(STDOUT_FILENO) && !environment("NO_COLOR") && terminal && strcmp(terminal, "dumb") != 0;
    cli.width = terminal_width();
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is a write error */

    int code = options_read(&cli, NULL, NULL, argc, argv, &first);
    if (code != EXIT_DONE)
        return code;
    if (cli.version)
        return run_alone(&cli, "version");
    if (first == argc && cli.help)
        return run_alone(&cli, "help");
    if (first == argc)
        return cli_usage(NULL, "no command is given");
    cli.command = command_find(slice_from(argv[first]));
    if (!cli.command)
        return unknown_command(argv[first]);
    if (cli.command->run != command_serve)
        daemon_let_reload(); /* no daemon: it ends by it, as everything does */
    cli.argc = argc - first;
    cli.argv = argv + first;
    code = cli.command->run(&cli);
    errno = 0; /* what failed earlier is known to have failed, and no more */
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    return errno == EPIPE ? EXIT_FAILED
                          : cli_fail(EXIT_FAILED, "cannot write to standard output: %s",
                                     errno == 0 ? "not all of it came through" : strerror(errno));
}

const char *cli_config_path(void)
{
    static const char *const places[] = { "insist.yaml", "/etc/insist/insist.yaml" };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], F_OK) == 0)
            return places[i];
    return NULL;
}
