#include "cli/commands.h"
#include "cli/options.h"
#include "cli/talk/client.h"
#include "cli/talk/show.h"

static int show(const struct cli *cli, json_t *answer, struct buffer *out)
{
    static const struct shown apart[] = { { "", "destinations", SHOW_TEXT } };
    static const struct shown columns[] = {
        { "DESTINATION", "name", SHOW_TEXT },      { "MODE", "mode", SHOW_STATE },
        { "HELD BY", "held_by", SHOW_TEXT },       { "PENDING", "pending", SHOW_NUMBER },
        { "RUNNING", "running", SHOW_NUMBER },     { "WAITING", "waiting", SHOW_NUMBER },
        { "COMPLETED", "completed", SHOW_NUMBER }, { "DEAD", "dead", SHOW_NUMBER },
    };
    const json_t *destinations = json_object_get(answer, "destinations");
    show_others(cli, answer, apart, 1, out);
    if (json_array_size(destinations) > 0) {
        buffer_append_byte(out, '\n');
        show_table(cli, destinations, columns, sizeof columns / sizeof *columns, out);
    }
    return EXIT_DONE;
}

int command_stats(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments;
    int code;
    if (!command_options(cli, NULL, argc, argv, 0, &arguments, &code))
        return code;
    struct url url;
    url_init(&url, "/v1/stats");
    code = client_show(cli, &(struct request){ .method = "GET", .url = &url }, show);
    url_release(&url);
    return code;
}
