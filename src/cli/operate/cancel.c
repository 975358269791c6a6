#include "cli/commands.h"
#include "cli/options.h"
#include "cli/talk/action.h"

static int run(struct cli *cli, int argc, char **argv)
{
    const char *tenant = NULL;
    const struct option_row rows[] = { { "tenant", 't', &tenant, NULL }, { NULL, '\0', NULL, NULL } };
    struct arguments arguments;
    int code;
    if (!command_options(cli, &command_cancel, rows, argc, argv, 1, &arguments, &code))
        return code;
    if (arguments.count == 0)
        return cli_usage("cancel", "name the job");
    const struct action action = {
        .method = "POST",
        .path = "/v1/jobs",
        .name = arguments.items[0],
        .verb = "cancel",
        .of_job = true,
        .tenant = tenant,
        .body = SLICE("{}"),
    };
    return action_run(cli, &action);
}

const struct command command_cancel = {
    .name = "cancel",
    .summary = "give up a job that is pending or waiting",
    .help = "usage: insist cancel ID [--tenant T]\n\n"
            "Ends a job that is not under way. Its history is kept as long as that of completed jobs.\n\n"
            "Options:\n"
            "  -t, --tenant T      the job's tenant; needed where several have a job of that id\n"
            "  -o, --output json   the job after it, as JSON\n\n"
            "Exit codes: 0 cancelled; 1 there is no such job, or its state forbids it.\n\n"
            "Examples:\n"
            "  insist cancel CLM-2025-001\n"
            "  insist cancel ORDER-7 --tenant shop-12\n",
    .run = run,
};
