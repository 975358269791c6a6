#include "cli/commands.h"
#include "cli/options.h"
#include "cli/talk/action.h"

static int run(struct cli *cli, int argc, char **argv)
{
    const char *tenant = NULL;
    const struct option_row rows[] = { { "tenant", 't', &tenant, NULL }, { NULL, '\0', NULL, NULL } };
    struct arguments arguments;
    int code;
    if (!command_options(cli, &command_resend, rows, argc, argv, 1, &arguments, &code))
        return code;
    if (arguments.count == 0)
        return cli_usage("resend", "name the job");
    const struct action action = {
        .method = "POST",
        .path = "/v1/jobs",
        .name = arguments.items[0],
        .verb = "resend",
        .of_job = true,
        .tenant = tenant,
        .body = SLICE("{}"),
    };
    return action_run(cli, &action);
}

const struct command command_resend = {
    .name = "resend",
    .summary = "send a completed job once more",
    .help = "usage: insist resend ID [--tenant T]\n\n"
            "Sends a job that was delivered once more, as a new generation; its history stays. It carries the same\n"
            "Idempotency-Key: a destination that heeds it takes it for the same job.\n\n"
            "Options:\n"
            "  -t, --tenant T      the job's tenant; needed where several have a job of that id\n"
            "  -o, --output json   the job after it, as JSON\n\n"
            "Exit codes: 0 it will be sent; 1 there is no such job, or it is not completed.\n\n"
            "Examples:\n"
            "  insist resend ORDER-7\n",
    .run = run,
};
