#include "cli/commands.h"
#include "cli/options.h"
#include "cli/talk/pages.h"

static int run(struct cli *cli, int argc, char **argv)
{
    static const struct shown columns[] = {
        { "TENANT", "tenant", SHOW_TEXT },         { "DESTINATION", "destination", SHOW_TEXT },
        { "PENDING", "pending", SHOW_NUMBER },     { "RUNNING", "running", SHOW_NUMBER },
        { "WAITING", "waiting", SHOW_NUMBER },     { "DEAD", "dead", SHOW_NUMBER },
        { "COMPLETED", "completed", SHOW_NUMBER }, { "CANCELLED", "cancelled", SHOW_NUMBER },
        { "WEIGHT", "fairness.weight", SHOW_NUMBER },
        { "PRIORITY", "fairness.currentPriority", SHOW_NUMBER },
        { "ROUNDS", "fairness.roundsWithoutProcessing", SHOW_NUMBER },
        { "IN ROW", "fairness.consecutiveBatchCount", SHOW_NUMBER },
        { "SENT", "fairness.totalProcessed", SHOW_NUMBER },
        { "LAST SENT", "fairness.lastProcessedAt", SHOW_TIME },
    };
    const char *destination = NULL;
    struct pages pages = { .command = "tenants",
                           .path = "/v1/tenants",
                           .member = "tenants",
                           .columns = columns,
                           .column_count = sizeof columns / sizeof *columns };
    const struct option_row rows[] = {
        { "destination", 'd', &destination, NULL },
        PAGES_OPTIONS(pages),
        { NULL, '\0', NULL, NULL },
    };
    struct arguments arguments;
    int code;
    if (!command_options(cli, &command_tenants, rows, argc, argv, 1, &arguments, &code) ||
        !arguments_list_only(&command_tenants, &arguments, &code))
        return code;
    const struct pages_query query[] = { { "destination", destination }, { NULL, NULL } };
    pages.query = query;
    return pages_print(cli, &pages);
}

const struct command command_tenants = {
    .name = "tenants",
    .summary = "tenants and what they have at each destination",
    .help = "usage: insist tenants [list] [options]\n\n"
            "One line a tenant and destination. Completed and cancelled count all that ever were. Then how the\n"
            "tenant fares in the turns, since the daemon started: its weight; its priority, 1 the most urgent; the\n"
            "rounds in which it had work and no turn; how many of its jobs went in a row, in all, and when last. Of\n"
            "one that had nothing to send for a quarter of an hour that may be gone, and begins anew.\n\n"
            "Options:\n"
            "  -d, --destination NAME   at one destination\n"
            "  -n, --limit N            how many; 100 without it\n"
            "  -a, --all                all of them\n"
            "      --cursor C           go on from where an earlier list ended\n"
            "  -o, --output json        the daemon's answers as they are, one page a line\n\n"
            "Examples:\n"
            "  insist tenants --destination claims\n"
            "  insist tenants --all | sort -k3 -n -r | head\n",
    .run = run,
};
