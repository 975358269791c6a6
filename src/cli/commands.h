/*
 * commands.h - what every command is done by: one function a row of the table in commands.c. Each returns an
 * exit code.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

int command_serve(struct cli *cli);
int command_demo(struct cli *cli);
int command_add(struct cli *cli);
int command_jobs(struct cli *cli);
int command_job(struct cli *cli);
int command_why(struct cli *cli);
int command_retry(struct cli *cli);
int command_order(struct cli *cli);
int command_prioritize(struct cli *cli);
int command_dead(struct cli *cli);
int command_subject(struct cli *cli);
int command_dest(struct cli *cli);
int command_alerts(struct cli *cli);
int command_incidents(struct cli *cli);
int command_report(struct cli *cli);
int command_shape(struct cli *cli);
int command_top(struct cli *cli);
int command_nodes(struct cli *cli);
int command_sources(struct cli *cli);
int command_tenants(struct cli *cli);
int command_stats(struct cli *cli);
int command_errors(struct cli *cli);
int command_events(struct cli *cli);
int command_audit(struct cli *cli);
int command_backup(struct cli *cli);
int command_migrate(struct cli *cli);
int command_doctor(struct cli *cli);
int command_token(struct cli *cli);
int command_listen(struct cli *cli);
int command_decide(struct cli *cli);
int command_classify(struct cli *cli);
int command_backoff(struct cli *cli);
int command_check(struct cli *cli);
int command_simulate(struct cli *cli);
int command_presets(struct cli *cli);
int command_version(struct cli *cli);
int command_help(struct cli *cli);

#endif
