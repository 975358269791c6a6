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

/*
 * Reads argv[1..]. Returns EXIT_DONE, or EXIT_USAGE after its message. `command` is the name
 * for messages, NULL before the command is known: then the first argument ends it and
 * *ret_consumed, if not NULL, is its index.
 */
int options_read(struct cli *cli, const char *command, const struct option_row *rows, int argc, char **argv,
                 int *ret_consumed);

/*
 * What every command begins with: reads its options and arguments, answers --help, refuses more than `arguments_max`
 * arguments. False: the command is done, with cli->code.
 */
bool command_options(struct cli *cli, const struct option_row *rows, size_t arguments_max) MUST_CHECK;

/* What a command that lists is to do: its first argument, or "list" without one. */
const char *arguments_action(const struct cli *cli);
/* For one that can do nothing else. False: the command is done, with cli->code. */
bool arguments_list_only(struct cli *cli) MUST_CHECK;

/* Numbers in options: EXIT_DONE, or EXIT_USAGE after its message. A NULL text leaves the value alone. */
int option_count(const char *command, const char *name, const char *text, int64_t low, int64_t high, int64_t *ret_value);

#endif
