#include "cli/commands.h"
#include "cli/options.h"
#include "cli/talk/pages.h"
#include "core/decision/job.h"

int command_jobs(struct cli *cli, int argc, char **argv)
{
    const char *state = NULL, *destination = NULL, *tenant = NULL, *code_wanted = NULL;
    struct pages pages = { .command = "jobs", .path = "/v1/jobs", .member = "jobs" };
    const struct option_row rows[] = {
        { "state", 's', &state, NULL },   { "destination", 'd', &destination, NULL },
        { "tenant", 't', &tenant, NULL }, { "code", '\0', &code_wanted, NULL },
        PAGES_OPTIONS(pages),             { NULL, '\0', NULL, NULL },
    };
    static const struct shown columns[] = {
        { "ID", "id", SHOW_TEXT },
        { "TENANT", "tenant", SHOW_TEXT },
        { "DESTINATION", "destination", SHOW_TEXT },
        { "STATE", "state", SHOW_STATE },
        { "HELD BY", "held_by", SHOW_TEXT },
        { "PRIORITY", "priority", SHOW_TEXT },
        { "TRIES", "attempt_count", SHOW_NUMBER },
        { "CREATED", "created_at", SHOW_TIME },
        { "NEXT", "next_at", SHOW_TIME },
        { "CODE", "last_code", SHOW_TEXT },
        { "LAST ERROR", "last_error", SHOW_BRIEF },
    };
    struct arguments arguments;
    int code;
    if (!command_options(cli, rows, argc, argv, 1, &arguments, &code) ||
        !arguments_list_only(cli, &arguments, &code))
        return code;
    if (state && job_state_from_name(slice_from(state)) == STATE_NONE)
        return cli_usage("jobs", "--state is pending, running, waiting, completed, dead or cancelled, not \"%s\"", state);
    const struct pages_query query[] = {
        { "state", state }, { "destination", destination }, { "tenant", tenant }, { "code", code_wanted }, { NULL, NULL },
    };
    pages.query = query;
    pages.columns = columns;
    pages.column_count = sizeof columns / sizeof *columns;
    return pages_print(cli, &pages);
}
