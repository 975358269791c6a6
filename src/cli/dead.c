#include "cli/commands.h"
#include "cli/download.h"
#include "cli/options.h"
#include "cli/pages.h"

#include <string.h>

struct dead_options {
    const char *destination, *tenant, *code, *out;
};

static const struct shown columns[] = {
    { "ID", "id", SHOW_TEXT },
    { "TENANT", "tenant", SHOW_TEXT },
    { "DESTINATION", "destination", SHOW_TEXT },
    { "BECAUSE", "dead_code", SHOW_TEXT },
    { "TRIES", "attempt_count", SHOW_NUMBER },
    { "DEAD SINCE", "dead_at", SHOW_TIME },
    { "KEPT UNTIL", "expires_at", SHOW_TIME },
    { "CODE", "last_code", SHOW_TEXT },
    { "LAST ERROR", "last_error", SHOW_BRIEF },
};

static int list(const struct cli *cli, const struct dead_options *options, struct pages *pages)
{
    const struct pages_query query[] = {
        { "destination", options->destination },
        { "tenant", options->tenant },
        { "code", options->code },
        { NULL, NULL },
    };
    if (options->out)
        return cli_usage("dead", "--out goes with export");
    pages->query = query;
    return pages_print(cli, pages);
}

static int export(const struct cli *cli, const struct dead_options *options)
{
    struct url url;
    url_init(&url, "/v1/dead/export");
    url_query(&url, "destination", options->destination);
    url_query(&url, "tenant", options->tenant);
    url_query(&url, "code", options->code);
    int code = download(cli, &url, options->out);
    url_release(&url);
    return code;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct dead_options options = { 0 };
    struct pages pages = { .command = "dead",
                           .path = "/v1/dead",
                           .member = "dead",
                           .columns = columns,
                           .column_count = sizeof columns / sizeof *columns };
    const struct option_row rows[] = {
        { "destination", 'd', &options.destination, NULL },
        { "tenant", 't', &options.tenant, NULL },
        { "code", '\0', &options.code, NULL },
        { "out", '\0', &options.out, NULL },
        PAGES_OPTIONS(pages),
        { NULL, '\0', NULL, NULL },
    };
    struct arguments arguments;
    int code;
    if (!command_options(cli, &command_dead, rows, argc, argv, 1, &arguments, &code))
        return code;
    const char *what = arguments_action(&arguments);
    if (strcmp(what, "list") == 0)
        return list(cli, &options, &pages);
    if (strcmp(what, "export") != 0)
        return cli_usage("dead", "say what to do: list or export, not %s", what);
    if (pages.limit || pages.cursor || pages.all)
        return cli_usage("dead", "an export has all; --limit, --cursor and --all go with list");
    return export(cli, &options);
}

const struct command command_dead = {
    .name = "dead",
    .summary = "dead letters: list them, export them",
    .help = "usage: insist dead [list] [options]\n"
            "       insist dead export [options] [--out FILE]\n\n"
            "Dead letters are jobs that will not be tried again unless somebody says so: `insist retry ID`. The\n"
            "export has them with their payloads, one JSON object a line.\n\n"
            "Options:\n"
            "  -d, --destination NAME   of one destination\n"
            "  -t, --tenant T           of one tenant\n"
            "      --code CODE          whose last or final code it is, as http:503 or MAX_RETRIES_EXCEEDED\n"
            "      --out FILE           export: write there, and only when it is whole\n"
            "  -n, --limit N            list: how many; 100 without it\n"
            "  -a, --all                list: all of them\n"
            "      --cursor C           list: go on from where an earlier list ended\n"
            "  -o, --output json        list: the daemon's answers as they are, one page a line\n\n"
            "Examples:\n"
            "  insist dead list --destination claims\n"
            "  insist dead list --code MAX_RETRIES_EXCEEDED --all -o json | jq -r '.dead[].id'\n"
            "  insist dead export --tenant hospital-7 --out dead.ndjson\n",
    .run = run,
};
