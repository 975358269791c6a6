/*
 * options.h - options of a command, by table.
 *
 * --name VALUE, --name=VALUE, -n VALUE, -nVALUE. Options and arguments may be mixed; "--"
 * ends the options, "-" is an argument. The options of `struct cli` are known everywhere.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "cli/cli.h"

struct option_row {
    const char *name;   /* without the dashes; NULL ends a table */
    char letter;        /* '\0': none */
    const char **value; /* takes a value, stored here; or */
    bool *flag;         /* takes none and is set here; or, with neither, it takes a value and may be repeated */
};

enum { OPTIONS_ARGUMENTS_MAX = 64 };

struct arguments {
    const char *items[OPTIONS_ARGUMENTS_MAX];
    size_t count;
    struct {
        const char *name, *value;
    } repeated[OPTIONS_ARGUMENTS_MAX]; /* the options that may be repeated, in the order given */
    size_t repeated_count;
};

/*
 * Reads argv[1..]. Returns EXIT_DONE, or EXIT_USAGE after its message. `command` is the name
 * for messages, NULL before the command is known: then the first argument ends it and
 * *ret_consumed, if not NULL, is its index.
 */
int options_read(struct cli *cli, const char *command, const struct option_row *rows, int argc, char **argv,
                 struct arguments *ret_arguments, int *ret_consumed);

/*
 * What every command begins with: reads the options, answers --help, refuses more than
 * `arguments_max` arguments. False: the command is done, with *ret_code.
 */
bool command_options(struct cli *cli, const struct option_row *rows, int argc, char **argv, size_t arguments_max,
                     struct arguments *ret_arguments, int *ret_code) MUST_CHECK;

/* What a command that lists is to do: its first argument, or "list" without one. */
const char *arguments_action(const struct arguments *arguments);
/* For one that can do nothing else. False: the command is done, with *ret_code. */
bool arguments_list_only(const struct cli *cli, const struct arguments *arguments, int *ret_code) MUST_CHECK;

/* Numbers in options: EXIT_DONE, or EXIT_USAGE after its message. A NULL text leaves the value alone. */
int option_count(const char *command, const char *name, const char *text, int64_t low, int64_t high, int64_t *ret_value);

#endif
