/*
 * play.h - commands to try things with: one function for each, which returns an exit code.
 */
#ifndef CLI_PLAY_PLAY_H
#define CLI_PLAY_PLAY_H

#include "cli/cli.h"

int command_demo(struct cli *cli);
int command_listen(struct cli *cli);
int command_simulate(struct cli *cli);

#endif
