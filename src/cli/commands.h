/*
 * commands.h - one row a command: each is defined in the file of its name.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct command command_serve;
extern const struct command command_demo;
extern const struct command command_add;
extern const struct command command_jobs;
extern const struct command command_job;
extern const struct command command_why;
extern const struct command command_retry;
extern const struct command command_resend;
extern const struct command command_cancel;
extern const struct command command_prioritize;
extern const struct command command_dead;
extern const struct command command_dest;
extern const struct command command_alerts;
extern const struct command command_incidents;
extern const struct command command_tenants;
extern const struct command command_stats;
extern const struct command command_errors;
extern const struct command command_events;
extern const struct command command_audit;
extern const struct command command_backup;
extern const struct command command_doctor;
extern const struct command command_token;
extern const struct command command_decide;
extern const struct command command_classify;
extern const struct command command_backoff;
extern const struct command command_check;
extern const struct command command_simulate;
extern const struct command command_listen;
extern const struct command command_presets;
extern const struct command command_version;
extern const struct command command_help;

#endif
