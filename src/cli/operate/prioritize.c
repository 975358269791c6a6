#include "cli/commands.h"
#include "cli/options.h"
#include "cli/talk/action.h"
#include "core/decision/job.h"

#include <stdio.h>

static int run(struct cli *cli, int argc, char **argv)
{
    const char *tenant = NULL;
    const struct option_row rows[] = { { "tenant", 't', &tenant, NULL }, { NULL, '\0', NULL, NULL } };
    struct arguments arguments;
    enum priority priority;
    int code;
    if (!command_options(cli, &command_prioritize, rows, argc, argv, 2, &arguments, &code))
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

const struct command command_prioritize = {
    .name = "prioritize",
    .summary = "give a job another priority",
    .help = "usage: insist prioritize ID CLASS [--tenant T]\n\n"
            "Moves a job in its tenant's queue. CLASS is critical, high or normal.\n\n"
            "Options:\n"
            "  -t, --tenant T      the job's tenant; needed where several have a job of that id\n"
            "  -o, --output json   the job after it, as JSON\n\n"
            "Examples:\n"
            "  insist prioritize CLM-2025-001 critical\n",
    .run = run,
};
