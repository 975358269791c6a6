/*
 * action.h - one request about one job or one destination, for the small commands.
 */
#ifndef CLI_TALK_ACTION_H
#define CLI_TALK_ACTION_H

#include "cli/cli.h"

struct action {
    const char *method;
    const char *path;   /* "/v1/jobs" */
    const char *name;   /* of the job or destination */
    const char *verb;   /* what stands behind it in the path; NULL: nothing */
    bool of_job;        /* it is about a job: */
    const char *tenant; /* whose; NULL: not given, it is looked for */
    struct slice body;  /* JSON; .data NULL: none */
};

/* Does it and prints one line: the name and what it is now, `state` or `mode` of the answer. */
int action_run(const struct cli *cli, const struct action *action);

#endif
