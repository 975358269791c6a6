#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/action.h"
#include "cli/talk/client.h"
#include "cli/talk/show.h"

#include <string.h>

static int show_nodes(const struct cli *cli, json_t *answer, struct buffer *out)
{
    static const struct shown columns[] = {
        { "NAME", "name", SHOW_TEXT },
        { "URL", "url", SHOW_TEXT },
        { "VERSION", "version", SHOW_TEXT },
        { "SINCE", "since", SHOW_TIME },
        { "SILENT MS", "last_seen_ms", SHOW_NUMBER },
        { "DRAINING", "draining", SHOW_TEXT },
        { "PINNED", "pinned", SHOW_LIST },
        { "DESTINATIONS", "destinations", SHOW_LIST },
    };
    const json_t *nodes = json_object_get(answer, "nodes");
    if (json_array_size(nodes) == 0)
        buffer_append_text(out, "this daemon has its store for itself\n");
    else
        show_table(cli, nodes, columns, sizeof columns / sizeof *columns, out);
    return EXIT_DONE;
}

int command_nodes(struct cli *cli)
{
    const struct option_row rows[] = { { 0 } };
    if (!command_options(cli, rows, 2))
        return cli->code;
    const char *what = arguments_action(cli);
    bool drains = strcmp(what, "drain") == 0;
    if (!drains && strcmp(what, "list") != 0)
        return cli_usage("nodes", "say what to do: list or drain, not %s", what);
    if (drains && cli->arguments.count < 2)
        return cli_usage("nodes", "name the node");
    if (!drains && cli->arguments.count > 1)
        return cli_usage("nodes", "unexpected argument \"%s\"", cli->arguments.items[1]);
    if (drains)
        return action_run(cli, &(struct action){ .method = "POST", .path = "/v1/nodes", .name = cli->arguments.items[1],
                                                 .verb = "drain" });
    struct url url = url_to("/v1/nodes");
    return client_show(cli, &(struct request){ .method = "GET", .url = &url }, show_nodes);
}
