#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/client.h"
#include "cli/talk/show.h"

#include <string.h>

static int show_sources(const struct cli *cli, json_t *answer, struct buffer *out)
{
    static const struct shown columns[] = {
        { "NAME", "name", SHOW_TEXT },         { "DESTINATION", "destination", SHOW_TEXT },
        { "STATE", "state", SHOW_STATE },      { "SINCE", "since", SHOW_TIME },
        { "ACCEPTED", "accepted", SHOW_NUMBER }, { "DUPLICATES", "duplicates", SHOW_NUMBER },
        { "REJECTED", "rejected", SHOW_NUMBER }, { "HELD", "held", SHOW_NUMBER },
        { "LAG", "lag", SHOW_NUMBER },         { "LAST", "last_at", SHOW_TIME },
    };
    const json_t *sources = json_object_get(answer, "sources");
    if (json_array_size(sources) == 0)
        buffer_append_text(out, "the configuration names no sources\n");
    else
        show_table(cli, sources, columns, sizeof columns / sizeof *columns, out);
    return EXIT_DONE;
}

static int show_why(const struct cli *cli, json_t *answer, struct buffer *out)
{
    static const struct shown apart[] = { { "", "why", SHOW_TEXT } };
    const char *why = member_text(answer, "why");
    show_others(cli, answer, apart, 1, out);
    buffer_append_byte(out, '\n');
    plain_append(slice_from(why ? why : ""), out);
    buffer_append_byte(out, '\n');
    return EXIT_DONE;
}

int command_sources(struct cli *cli)
{
    const struct option_row rows[] = { { 0 } };
    if (!command_options(cli, rows, 2))
        return cli->code;
    const char *what = arguments_action(cli);
    bool one = strcmp(what, "show") == 0;
    if (!one && strcmp(what, "list") != 0)
        return cli_usage("sources", "say what to do: list or show, not %s", what);
    if (one && cli->arguments.count < 2)
        return cli_usage("sources", "name the source");
    if (!one && cli->arguments.count > 1)
        return cli_usage("sources", "unexpected argument \"%s\"", cli->arguments.items[1]);
    struct url url = url_to("/v1/sources");
    if (one)
        url_segment(&url, cli->arguments.items[1]);
    return client_show(cli, &(struct request){ .method = "GET", .url = &url }, one ? show_why : show_sources);
}
