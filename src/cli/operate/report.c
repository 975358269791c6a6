#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/client.h"

#include <string.h>

int command_report(struct cli *cli)
{
    const char *date = NULL, *html = NULL;
    const struct option_row rows[] = {
        { "date", 'd', .value = &date },
        { "html", '\0', .value = &html },
        { 0 },
    };
    if (!command_options(cli, rows, 1))
        return cli->code;
    const char *which = cli->arguments.count > 0 ? cli->arguments.items[0] : "";
    bool weekly = strcmp(which, "weekly") == 0;
    if (!weekly && strcmp(which, "daily") != 0)
        return cli_usage("report", "say which: daily or weekly%s%s", which[0] ? ", not " : "", which);
    if (html && cli->json)
        return cli_usage("report", "it is either --html or --output json");
    struct url url = url_to(weekly ? "/v1/reports/weekly" : "/v1/reports/daily");
    url_query(&url, weekly ? "week" : "date", date);
    url_query(&url, "format", html ? "html" : cli->json ? "json" : "text");
    return client_download(cli, &url, html);
}
