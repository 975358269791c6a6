#include "cli/commands.h"
#include "cli/options.h"
#include "cli/talk/pages.h"

int command_tenants(struct cli *cli, int argc, char **argv)
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
    if (!command_options(cli, rows, argc, argv, 1, &arguments, &code) ||
        !arguments_list_only(cli, &arguments, &code))
        return code;
    const struct pages_query query[] = { { "destination", destination }, { NULL, NULL } };
    pages.query = query;
    return pages_print(cli, &pages);
}
