#include "cli/commands.h"
#include "cli/options.h"
#include "cli/talk/pages.h"

#include <string.h>

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

int command_dead(struct cli *cli)
{
    const char *destination = NULL, *tenant = NULL, *code_wanted = NULL, *out = NULL, *by = NULL;
    struct pages pages = { .path = "/v1/dead",
                           .member = "dead",
                           .what = "dead letters",
                           .columns = columns,
                           .column_count = sizeof columns / sizeof *columns };
    const struct option_row rows[] = {
        { "destination", 'd', .value = &destination },
        { "tenant", 't', .value = &tenant },
        { "code", '\0', .value = &code_wanted },
        { "by", '\0', .value = &by },
        { "out", '\0', .value = &out },
        PAGES_OPTIONS(pages),
        { 0 },
    };
    if (!command_options(cli, rows, 1))
        return cli->code;
    const char *what = arguments_action(cli);
    bool lists = strcmp(what, "list") == 0, sums = strcmp(what, "summary") == 0, exports = strcmp(what, "export") == 0;
    if (by && !sums)
        return cli_usage("dead", "--by goes with summary");
    if (!lists && !sums && !exports)
        return cli_usage("dead", "say what to do: list, summary or export, not %s", what);
    if (!lists && (pages.limit || pages.cursor || pages.all))
        return cli_usage("dead", "%s has all; --limit, --cursor and --all go with list", sums ? "a summary" : "an export");
    if (out && !exports)
        return cli_usage("dead", "--out goes with export");
    if (lists)
        return pages_print(cli, &pages, rows);
    struct url url;
    url_init(&url, sums ? "/v1/dead/summary" : "/v1/dead/export");
    url_query(&url, "by", by);
    url_query(&url, "destination", destination);
    url_query(&url, "tenant", tenant);
    url_query(&url, "code", code_wanted);
    return sums ? client_show(cli, &(struct request){ .method = "GET", .url = &url }, show_summary)
                : client_download(cli, &url, out);
}
