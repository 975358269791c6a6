#include "base/json.h"
#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/action.h"
#include "cli/talk/pages.h"

#include <string.h>

static int acknowledge(const struct cli *cli, const struct arguments *arguments, const char *note)
{
    struct buffer body;
    if (arguments->count < 2)
        return cli_usage("alerts", "name the alert; insist alerts lists them");
    buffer_init(&body, CLI_OUTPUT_BYTES_MAX);
    struct json_writer json = json_writer(&body);
    json_object_begin(&json);
    if (note)
        json_member_text(&json, "note", note);
    json_object_end(&json);
    const struct action action = { .method = "POST", .path = "/v1/alerts", .name = arguments->items[1], .verb = "ack",
                                   .body = buffer_slice(&body) };
    int code = buffer_status(&body) == STATUS_OK ? action_run(cli, &action) : cli_fail(EXIT_USAGE, "the note is too long");
    buffer_release(&body);
    return code;
}

int command_alerts(struct cli *cli)
{
    static const struct shown columns[] = {
        { "SEVERITY", "severity", SHOW_TEXT },       { "ALERT", "alert", SHOW_TEXT },
        { "DESTINATION", "destination", SHOW_TEXT }, { "TENANT", "tenant", SHOW_TEXT },
        { "RAISED", "raised_at", SHOW_TIME },        { "CLEARED", "cleared_at", SHOW_TIME },
        { "ACKNOWLEDGED", "acknowledged.at", SHOW_TIME },     { "ID", "id", SHOW_TEXT },
        { "SUMMARY", "summary", SHOW_BRIEF },
    };
    const char *destination = NULL, *severity = NULL, *state = NULL, *name = NULL, *note = NULL;
    struct pages pages = { .path = "/v1/alerts",
                           .member = "alerts",
                           .columns = columns,
                           .column_count = sizeof columns / sizeof *columns };
    const struct option_row rows[] = {
        { "state", 's', .value = &state },
        { "destination", 'd', .value = &destination },
        { "severity", '\0', .value = &severity },
        { "alert", '\0', .value = &name },
        { "note", '\0', .value = &note },
        PAGES_OPTIONS(pages),
        { 0 },
    };
    if (!command_options(cli, rows, 2))
        return cli->code;
    const char *what = arguments_action(cli);
    if (strcmp(what, "ack") == 0)
        return acknowledge(cli, &cli->arguments, note);
    if (strcmp(what, "list") != 0)
        return cli_usage("alerts", "say what to do: list or ack, not %s", what);
    if (note)
        return cli_usage("alerts", "--note goes with ack");
    return pages_print(cli, &pages, rows);
}
