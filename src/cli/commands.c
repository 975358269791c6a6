#include "cli/commands.h"

const struct command *const commands[] = {
    &command_serve, &command_decide, &command_classify, &command_backoff, &command_check,
    &command_presets, &command_listen, &command_version, &command_help,     NULL,
};
