/*
 * offline.h - commands that need no daemon: one function for each, which returns an exit code.
 */
#ifndef CLI_OFFLINE_OFFLINE_H
#define CLI_OFFLINE_OFFLINE_H

#include "cli/cli.h"

int command_serve(struct cli *cli);
int command_decide(struct cli *cli);
int command_classify(struct cli *cli);
int command_backoff(struct cli *cli);
int command_check(struct cli *cli);
int command_presets(struct cli *cli);
int command_audit(struct cli *cli);
int command_backup(struct cli *cli);
int command_migrate(struct cli *cli);
int command_doctor(struct cli *cli);

#endif
