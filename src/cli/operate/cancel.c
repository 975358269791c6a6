#include "cli/commands.h"
#include "cli/options.h"
#include "cli/talk/action.h"

int command_cancel(struct cli *cli, int argc, char **argv)
{
    const char *tenant = NULL;
    const struct option_row rows[] = { { "tenant", 't', &tenant, NULL }, { NULL, '\0', NULL, NULL } };
    struct arguments arguments;
    int code;
    if (!command_options(cli, rows, argc, argv, 1, &arguments, &code))
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
