#include "cli/commands.h"
#include "cli/options.h"
#include "cli/talk/action.h"
#include "core/decision/job.h"

#include <stdio.h>

int command_prioritize(struct cli *cli, int argc, char **argv)
{
    const char *tenant = NULL;
    const struct option_row rows[] = { { "tenant", 't', &tenant, NULL }, { NULL, '\0', NULL, NULL } };
    struct arguments arguments;
    enum priority priority;
    int code;
    if (!command_options(cli, rows, argc, argv, 2, &arguments, &code))
        return code;
    if (arguments.count < 2)
        return cli_usage("prioritize", "name the job and its class: critical, high or normal");
    if (!priority_from_name(slice_from(arguments.items[1]), &priority))
        return cli_usage("prioritize", "a class is critical, high or normal, not \"%s\"", arguments.items[1]);
    char body[64];
    snprintf(body, sizeof body, "{\"priority\":\"%s\"}", priority_name(priority));
    const struct action action = {
        .method = "PATCH",
        .path = "/v1/jobs",
        .name = arguments.items[0],
        .of_job = true,
        .tenant = tenant,
        .body = slice_from(body),
    };
    return action_run(cli, &action);
}
