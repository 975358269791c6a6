/*
 * action.h - one request about one job, destination or alert, for the small commands.
 */
#ifndef CLI_TALK_ACTION_H
#define CLI_TALK_ACTION_H

#include "cli/cli.h"

#include <jansson.h>

enum { ACTION_MEMBERS_MAX = 3 };

/* What a request says: a text, or with `flag` yes or no. Left out of it when neither is there. */
struct action_member {
    const char *name, *text;
    const bool *flag;
};

struct action {
    const char *method;
    const char *path;   /* "/v1/jobs" */
    const char *name;   /* of the job or destination */
    const char *verb;   /* what stands behind it in the path; NULL: nothing */
    bool of_job;        /* it is about a job: */
    const char *tenant; /* whose; NULL: not given, it is looked for among those that may be seen */
    bool payload;       /* ask for the payload, too */
    struct action_member members[ACTION_MEMBERS_MAX]; /* of the body; GET has none */
    struct slice body;  /* JSON; .data NULL: as `members` say */
    int (*show)(const struct cli *cli, json_t *answer, struct buffer *out); /* as of client_show; NULL: one line */
};

/* Does it and prints one line: the name and what it is now, `state` or `mode` of the answer; or what `show` does. */
int action_run(const struct cli *cli, const struct action *action);

#endif
