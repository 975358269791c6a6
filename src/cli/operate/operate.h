/*
 * operate.h - commands that ask the daemon: one function for each, which returns an exit code.
 */
#ifndef CLI_OPERATE_OPERATE_H
#define CLI_OPERATE_OPERATE_H

#include "cli/cli.h"

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
int command_token(struct cli *cli);

#endif
