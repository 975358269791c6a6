/*
 * options.h - options of a command, by table.
 *
 * --name VALUE, --name=VALUE, -n VALUE, -nVALUE. Options and arguments may be mixed; "--"
 * ends the options, "-" is an argument. The options of `struct cli` are known everywhere.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "base/instant.h"
#include "cli/cli.h"
#include "core/decision/job.h"

/* One of the pointers says what the option takes and where it goes; without the option nothing is written there. */
struct option_row {
    const char *name; /* without the dashes; NULL ends a table */
    char letter;      /* '\0': none */
    const char **value;
    bool *flag;        /* takes no value */
    int64_t *count;    /* a whole number, from `low` to `high` */
    int64_t *duration; /* in milliseconds; likewise where `high` is above 0 */
    double *part;      /* 0.2 or 20% */
    instant *time;     /* 2025-01-12T10:51:41Z, or +5m from now on */
    enum priority *priority;
    bool repeated; /* may be given several times, and is among the arguments */
    bool past;     /* of a `value`: a time, or as -2h before now, which becomes one */
    bool utf8;     /* goes into JSON, where other bytes would become U+FFFD, and two names one */
    int64_t low, high;
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

/* EXIT_USAGE after a message when one was given an empty text, as by a variable that is not set: it would choose nothing. */
int options_filled(const struct cli *cli, const struct option_row *rows);

/* What a command that lists is to do: its first argument, or "list" without one. */
const char *arguments_action(const struct cli *cli);
/* For one that can do nothing else. False: the command is done, with cli->code. */
bool arguments_list_only(struct cli *cli) MUST_CHECK;

/* "0.2" or "20%"; a row's `part` is read so. */
bool part_parse(struct slice text, double *ret_part) MUST_CHECK;

#endif
