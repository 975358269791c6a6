#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/action.h"
#include "cli/talk/pages.h"

#include <string.h>

static int acknowledge(const struct cli *cli, const struct arguments *arguments, const char *note)
{
    if (arguments->count < 2)
        return cli_usage("alerts", "name the alert; insist alerts lists them");
    return action_run(cli, &(struct action){ .method = "POST", .path = "/v1/alerts", .name = arguments->items[1],
                                             .verb = "ack", .members = { { "note", note, NULL } } });
}

int command_alerts(struct cli *cli)
{
    static const struct shown columns[] = {
        { "SEVERITY", "severity", SHOW_TEXT },       { "ALERT", "alert", SHOW_TEXT },
        { "DESTINATION", "destination", SHOW_TEXT }, { "TENANT", "tenant", SHOW_TEXT },
        { "RAISED", "raised_at", SHOW_TIME },        { "CLEARED", "cleared_at", SHOW_TIME },
        { "ACKNOWLEDGED", "acknowledged.at", SHOW_TIME },     { "ID", "id", SHOW_TEXT },
        { "SUMMARY", "summary", SHOW_BRIEF },
    };
    const char *destination = NULL, *severity = NULL, *state = NULL, *name = NULL, *note = NULL;
    struct pages pages = { .path = "/v1/alerts", .member = "alerts", PAGES_COLUMNS(columns) };
    const struct option_row rows[] = {
        { "state", 's', .value = &state },
        { "destination", 'd', .value = &destination },
        { "severity", '\0', .value = &severity },
        { "alert", '\0', .value = &name },
        { "note", '\0', .value = &note, .utf8 = true },
        PAGES_OPTIONS(pages),
        { 0 },
    };
    if (!command_options(cli, rows, 2))
        return cli->code;
    const char *what = arguments_action(cli);
    if (strcmp(what, "ack") == 0)
        return acknowledge(cli, &cli->arguments, note);
    if (strcmp(what, "list") != 0)
        return cli_usage("alerts", "say what to do: list or ack, not %s", what);
    if (note)
        return cli_usage("alerts", "--note goes with ack");
    return pages_print(cli, &pages, rows);
}
