#include "cli/commands.h"
#include "cli/options.h"
#include "cli/pages.h"

static int run(struct cli *cli, int argc, char **argv)
{
    static const struct shown columns[] = {
        { "SEVERITY", "severity", SHOW_TEXT },       { "ALERT", "alert", SHOW_TEXT },
        { "DESTINATION", "destination", SHOW_TEXT }, { "TENANT", "tenant", SHOW_TEXT },
        { "RAISED", "raised_at", SHOW_TIME },        { "CLEARED", "cleared_at", SHOW_TIME },
        { "SUMMARY", "summary", SHOW_TEXT },
    };
    const char *destination = NULL, *severity = NULL, *state = NULL, *name = NULL;
    struct pages pages = { .command = "alerts",
                           .path = "/v1/alerts",
                           .member = "alerts",
                           .columns = columns,
                           .column_count = sizeof columns / sizeof *columns };
    const struct option_row rows[] = {
        { "state", 's', &state, NULL },
        { "destination", 'd', &destination, NULL },
        { "severity", '\0', &severity, NULL },
        { "alert", '\0', &name, NULL },
        PAGES_OPTIONS(pages),
        { NULL, '\0', NULL, NULL },
    };
    struct arguments arguments;
    int code;
    if (!command_options(cli, &command_alerts, rows, argc, argv, 0, &arguments, &code))
        return code;
    const struct pages_query query[] = {
        { "state", state }, { "destination", destination }, { "severity", severity }, { "alert", name }, { NULL, NULL },
    };
    pages.query = query;
    return pages_print(cli, &pages);
}

const struct command command_alerts = {
    .name = "alerts",
    .summary = "what needs a person now, and what did before",
    .help = "usage: insist alerts [options]\n\n"
            "One line an alert, newest first: those that stand, or with --state also those that are over. What each\n"
            "means and what to do is in docs/alerts.md. Who is told is in the configuration, under notify.\n\n"
            "Options:\n"
            "  -s, --state STATE        standing, which is the default; cleared; or all\n"
            "  -d, --destination NAME   about one destination\n"
            "      --severity S         critical, warning or info\n"
            "      --alert NAME         of one kind, such as contingency\n"
            "  -n, --limit N            how many; 100 without it\n"
            "  -a, --all                all pages\n"
            "      --cursor C           go on from where an earlier list ended\n"
            "  -o, --output json        the daemon's answers as they are, one page a line\n\n"
            "Examples:\n"
            "  insist alerts\n"
            "  insist alerts --severity critical\n"
            "  insist alerts --state all --destination claims\n"
            "  insist alerts -o json | jq -r '.alerts[].summary'\n",
    .run = run,
};
