/*
 * commands.h - one row a command: each is defined in the file of its name.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct command command_serve;
extern const struct command command_decide;
extern const struct command command_classify;
extern const struct command command_backoff;
extern const struct command command_check;
extern const struct command command_listen;
extern const struct command command_presets;
extern const struct command command_version;
extern const struct command command_help;

#endif
