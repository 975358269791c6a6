#include "cli/client.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/show.h"

static int show(const struct cli *cli, json_t *answer, struct buffer *out)
{
    show_others(cli, answer, NULL, 0, out);
    return EXIT_DONE;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments;
    int code;
    if (!command_options(cli, &command_stats, NULL, argc, argv, 0, &arguments, &code))
        return code;
    struct url url;
    url_init(&url, "/v1/stats");
    code = client_show(cli, &(struct request){ .method = "GET", .url = &url }, show);
    url_release(&url);
    return code;
}

const struct command command_stats = {
    .name = "stats",
    .summary = "the daemon's figures",
    .help = "usage: insist stats\n\n"
            "Shows the daemon's figures, one a line: what is queued, what was done since it started.\n\n"
            "Options:\n"
            "  -o, --output json   the daemon's answer as it is\n\n"
            "Examples:\n"
            "  insist stats\n"
            "  watch insist stats\n",
    .run = run,
};
