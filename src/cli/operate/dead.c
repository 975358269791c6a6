#include "cli/commands.h"
#include "cli/options.h"
#include "cli/talk/download.h"
#include "cli/talk/pages.h"

#include <string.h>

struct dead_options {
    const char *destination, *tenant, *code, *out, *by;
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

static int show_summary(const struct cli *cli, json_t *answer, struct buffer *out)
{
    static const char *const titles[][2] = { { "CODE", "code" }, { "TENANT", "tenant" }, { "DESTINATION", "destination" },
                                             { "FINGERPRINT", "fingerprint" } };
    const char *by = member_text(answer, "by");
    bool prints = by && strcmp(by, "fingerprint") == 0;
    size_t key = 0;
    for (size_t i = 0; by && i < sizeof titles / sizeof *titles; i++)
        key = strcmp(by, titles[i][1]) == 0 ? i : key;
    const struct shown shown[] = {
        { titles[key][0], titles[key][1], SHOW_TEXT },
        { "JOBS", "count", SHOW_NUMBER },
        { "NEWEST", "newest_at", SHOW_TIME },
        { "ERROR", "sample", SHOW_BRIEF },
    };
    show_table(cli, json_object_get(answer, "groups"), shown, sizeof shown / sizeof *shown - !prints, out);
    return EXIT_DONE;
}

static int summary(const struct cli *cli, const struct dead_options *options)
{
    struct url url;
    if (options->out)
        return cli_usage("dead", "--out goes with export");
    url_init(&url, "/v1/dead/summary");
    url_query(&url, "by", options->by);
    url_query(&url, "destination", options->destination);
    url_query(&url, "tenant", options->tenant);
    url_query(&url, "code", options->code);
    int code = client_show(cli, &(struct request){ .method = "GET", .url = &url }, show_summary);
    url_release(&url);
    return code;
}

int command_dead(struct cli *cli, int argc, char **argv)
{
    struct dead_options options = { 0 };
    struct pages pages = { .command = "dead",
                           .path = "/v1/dead",
                           .member = "dead",
                           .what = "dead letters",
                           .columns = columns,
                           .column_count = sizeof columns / sizeof *columns };
    const struct option_row rows[] = {
        { "destination", 'd', &options.destination, NULL },
        { "tenant", 't', &options.tenant, NULL },
        { "code", '\0', &options.code, NULL },
        { "by", '\0', &options.by, NULL },
        { "out", '\0', &options.out, NULL },
        PAGES_OPTIONS(pages),
        { NULL, '\0', NULL, NULL },
    };
    struct arguments arguments;
    int code;
    if (!command_options(cli, rows, argc, argv, 1, &arguments, &code))
        return code;
    const char *what = arguments_action(&arguments);
    bool sums = strcmp(what, "summary") == 0;
    if (options.by && !sums)
        return cli_usage("dead", "--by goes with summary");
    if (strcmp(what, "list") == 0)
        return list(cli, &options, &pages);
    if (!sums && strcmp(what, "export") != 0)
        return cli_usage("dead", "say what to do: list, summary or export, not %s", what);
    if (pages.limit || pages.cursor || pages.all)
        return cli_usage("dead", "%s has all; --limit, --cursor and --all go with list", sums ? "a summary" : "an export");
    return sums ? summary(cli, &options) : export(cli, &options);
}
