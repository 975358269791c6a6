#include "cli/commands.h"

/* One a line, so that two changes seldom meet. */
const struct command *const commands[] = {
    &command_add,
    &command_jobs,
    &command_job,
    &command_why,
    &command_retry,
    &command_cancel,
    &command_prioritize,
    &command_dead,
    &command_dest,
    &command_tenants,
    &command_stats,
    &command_events,
    &command_audit,
    &command_backup,
    &command_doctor,
    &command_token,
    &command_decide,
    &command_classify,
    &command_backoff,
    &command_check,
    &command_presets,
    &command_version,
    &command_help,
    NULL,
};
