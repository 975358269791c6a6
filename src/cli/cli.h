/*
 * cli.h - what all commands share: the options before the command, messages, exit codes.
 *
 * A command is a function, a row of the table in commands.c and a page of text in help/. Help, suggestions and dispatch
 * read that table.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/buffer.h"
#include "base/instant.h"
#include "base/slice.h"
#include "base/status.h"
#include "store/store.h"

enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2, /* wrong use, or invalid input */
    EXIT_PERMANENT = 10,
    EXIT_EXHAUSTED = 11,
};

enum { CLI_OUTPUT_BYTES_MAX = 64 << 20, CLI_STDIN_BYTES_MAX = 1 << 20 };

enum { OPTIONS_ARGUMENTS_MAX = 64, OPTIONS_MOMENTS_MAX = 4 };

struct arguments {
    const char *items[OPTIONS_ARGUMENTS_MAX];
    size_t count;
    struct {
        const char *name, *value;
    } repeated[OPTIONS_ARGUMENTS_MAX]; /* the options that may be repeated, in the order given */
    size_t repeated_count;
    char moments[OPTIONS_MOMENTS_MAX][INSTANT_TEXT_BYTES]; /* what was given as -2h */
    size_t moment_count;
};

/* The options that every command takes, before or after its name, and what the command was given. */
struct cli {
    const char *server; /* --server or INSIST_SERVER; NULL: the default */
    const char *token;  /* --token or INSIST_TOKEN; NULL: none */
    const char *output; /* "table" or "json"; NULL: the command's own default */
    bool json;          /* --output json */
    bool color;         /* standard output is a terminal and NO_COLOR is not set */
    size_t width;       /* of that terminal, in characters; 0: there is none, and nothing is cut */
    bool help;
    bool version;
    const struct command *command; /* that runs */
    int argc;                      /* with the command's name first */
    char **argv;
    struct arguments arguments; /* of command_options, with: */
    int code;                   /* to end with, where it says so */
};

struct command {
    const char *name;
    const char *summary; /* one line of the list */
    int (*run)(struct cli *cli); /* returns an exit code */
};

/* All commands in the order of the list; a NULL name ends. */
extern const struct command commands[];
/* NULL when there is none of that name. */
const struct command *command_find(struct slice name);
int command_version(struct cli *cli);
int command_help(struct cli *cli);
/* Prints the page of that command: usage, options, examples. */
int help_print(const struct command *command);

/* Runs the whole program: options, dispatch, messages. */
int cli_main(int argc, char **argv);

/* How stores are opened; src/main.c has the list. */
extern const struct store_backend *const store_backends[];

/* Where a configuration is looked for without -c. NULL: there is none, the built-in defaults hold. */
const char *cli_config_path(void);

/* "insist: " and the message, on standard error. Returns `code`, for `return cli_fail(...)`. */
int cli_fail(int code, const char *format, ...) PRINTF_LIKE(2, 3);
/* For wrong use: the message, and where the help is. Returns EXIT_USAGE. */
int cli_usage(const char *command, const char *format, ...) PRINTF_LIKE(2, 3);

/* Waits for up to so long, less when nobody reads standard output any more: then it is false. */
bool cli_reader_waits(int timeout_ms);

/* Writes all of the buffer to standard output and releases it. Returns `code`, or EXIT_FAILED after a message; a pipe whose
   reader went away needs none. */
int cli_print(struct buffer *out, int code);

/* Writes all bytes to a descriptor; STATUS_IO with errno as it was. */
enum status cli_write(int descriptor, struct slice bytes) MUST_CHECK;

#endif
