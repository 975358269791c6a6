#include "base/json.h"
#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/action.h"
#include "cli/talk/input.h"
#include "cli/talk/pages.h"

#include <string.h>

static const struct shown columns[] = {
    { "ID", "id", SHOW_TEXT },           { "DESTINATION", "destination", SHOW_TEXT },
    { "BEGAN", "entered_at", SHOW_TIME }, { "LASTED", "lasted_ms", SHOW_SPAN },
    { "CAUSE", "cause", SHOW_TEXT },     { "HELD", "held_max", SHOW_NUMBER },
    { "UNSPENT", "unspent", SHOW_NUMBER }, { "STATE", "state", SHOW_TEXT },
};

/* ---- one ---- */

static void append_text(const json_t *object, const char *name, struct buffer *out)
{
    show_value(json_object_get(object, name), SHOW_TEXT, out);
}

static void append_tables(const struct cli *cli, const json_t *answer, struct buffer *out)
{
    static const struct shown steps[] = { { "TIME", "at", SHOW_TIME }, { "JOBS AT ONCE", "level", SHOW_NUMBER } };
    static const struct shown changes[] = {
        { "TIME", "at", SHOW_TIME }, { "MODE", "mode", SHOW_TEXT }, { "BECAUSE", "text", SHOW_TEXT },
        { "SIGN", "criterion", SHOW_TEXT },
    };
    buffer_append_byte(out, '\n');
    show_table(cli, json_object_get(answer, "changes"), changes, sizeof changes / sizeof *changes, out);
    buffer_append_byte(out, '\n');
    show_table(cli, json_object_get(answer, "curve"), steps, sizeof steps / sizeof *steps, out);
}

static int show_one(const struct cli *cli, json_t *answer, struct buffer *out)
{
    static const struct shown facts[] = {
        { "destination", "destination", SHOW_TEXT },
        { "state", "state", SHOW_TEXT },
        { "first sign", "first_sign_at", SHOW_TIME },
        { "contingency since", "entered_at", SHOW_TIME },
        { "on the way back since", "recovering_at", SHOW_TIME },
        { "restored", "restored_at", SHOW_TIME },
        { "lasted", "lasted_ms", SHOW_SPAN },
        { "cause", "cause", SHOW_TEXT },
        { "sign", "criterion", SHOW_TEXT },
        { "the operator said", "reason", SHOW_TEXT },
        { "failed sends: timeout", "signs.timeout", SHOW_TEXT },
        { "failed sends: connectivity", "signs.connectivity", SHOW_TEXT },
        { "failed sends: service error", "signs.service_error", SHOW_TEXT },
        { "failed sends: maintenance", "signs.maintenance", SHOW_TEXT },
        { "failed sends: busy", "signs.busy", SHOW_TEXT },
        { "failed health checks", "checks_failed", SHOW_TEXT },
        { "the last of them saw", "health_reason", SHOW_TEXT },
        { "relapses", "relapses", SHOW_TEXT },
        { "jobs sent to look", "probes", SHOW_TEXT },
        { "held when it began", "held_first", SHOW_TEXT },
        { "held at most", "held_max", SHOW_TEXT },
        { "held", "held", SHOW_TEXT },
        { "tries not spent", "unspent", SHOW_TEXT },
        { "processed", "processed", SHOW_TEXT },
        { "pending when it began", "pending_first", SHOW_TEXT },
        { "pending", "pending", SHOW_TEXT },
        { "dead when it began", "dead_first", SHOW_TEXT },
        { "dead", "dead", SHOW_TEXT },
    };
    const char *lessons = member_text(answer, "lessons_learned");
    append_text(answer, "summary", out);
    buffer_append_text(out, "\n\n");
    show_facts(cli, answer, facts, sizeof facts / sizeof *facts, out);
    append_tables(cli, answer, out);
    if (lessons) {
        buffer_append_text(out, "\nlessons learned:\n");
        show_lines(slice_from(lessons), "  ", out);
    }
    return EXIT_DONE;
}

static int report(const struct cli *cli, const char *id, const char *path)
{
    struct url url = url_to("/v1/incidents");
    url_segment(&url, id);
    url_segment(&url, "report");
    return client_download(cli, &url, path);
}

/* ---- what was learned ---- */

static int show_noted(UNUSED const struct cli *cli, json_t *answer, struct buffer *out)
{
    append_text(answer, "id", out);
    buffer_append_text(out, member_text(answer, "lessons_learned") ? ": noted\n" : ": the note is taken away\n");
    return EXIT_DONE;
}

static int send_note(const struct cli *cli, const char *id, struct slice text)
{
    struct buffer body = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    struct json_writer json = json_begin(&body);
    json_member_string(&json, "lessons_learned", text);
    json_object_end(&json);
    const struct action action = { .method = "PATCH", .path = "/v1/incidents", .name = id, .body = buffer_slice(&body),
                                   .show = show_noted };
    int code = buffer_status(&body) == STATUS_OK ? action_run(cli, &action) : cli_fail(EXIT_USAGE, "the text is too long");
    buffer_release(&body);
    return code;
}

static int note(const struct cli *cli, const char *id, const char *text)
{
    struct buffer read = buffer_up_to(CLI_STDIN_BYTES_MAX * 2);
    if (strcmp(text, "-") != 0)
        return send_note(cli, id, slice_from(text));
    int code = input_read("-", CLI_STDIN_BYTES_MAX, &read);
    if (code == EXIT_DONE && !utf8_is_valid(buffer_slice(&read)))
        code = cli_fail(EXIT_USAGE, "standard input is not UTF-8 text");
    if (code == EXIT_DONE)
        code = send_note(cli, id, slice_trim(buffer_slice(&read)));
    buffer_release(&read);
    return code;
}

/* ---- the command ---- */

static int run_one(const struct cli *cli, const char *what, const struct arguments *arguments, const char *out)
{
    if (arguments->count < 2)
        return cli_usage("incidents", "name the incident; insist incidents lists them");
    if (strcmp(what, "note") == 0 && arguments->count < 3)
        return cli_usage("incidents", "give the text, or - to read it from standard input");
    if (strcmp(what, "note") != 0 && arguments->count == 3)
        return cli_usage("incidents", "unexpected argument \"%s\"", arguments->items[2]);
    if (strcmp(what, "note") == 0)
        return note(cli, arguments->items[1], arguments->items[2]);
    const struct action show = { .method = "GET", .path = "/v1/incidents", .name = arguments->items[1], .show = show_one };
    return strcmp(what, "report") == 0 ? report(cli, arguments->items[1], out) : action_run(cli, &show);
}

int command_incidents(struct cli *cli)
{
    const char *destination = NULL, *out = NULL;
    struct pages pages = { .path = "/v1/incidents", .member = "incidents", PAGES_COLUMNS(columns) };
    const struct option_row rows[] = {
        { "destination", 'd', .value = &destination },
        { "out", '\0', .value = &out },
        PAGES_OPTIONS(pages),
        { 0 },
    };
    if (!command_options(cli, rows, 3))
        return cli->code;
    const char *what = arguments_action(cli);
    bool lists = strcmp(what, "list") == 0;
    bool known = lists || strcmp(what, "show") == 0 || strcmp(what, "report") == 0 || strcmp(what, "note") == 0;
    if (!known)
        return cli_usage("incidents", "say what to do: list, show, report or note, not %s", what);
    if (out && strcmp(what, "report") != 0)
        return cli_usage("incidents", "--out goes with report");
    if (!lists && (destination || pages.limit || pages.cursor || pages.all))
        return cli_usage("incidents", "--destination, --limit, --cursor and --all go with list");
    if (lists && cli->arguments.count > 1)
        return cli_usage("incidents", "unexpected argument \"%s\"", cli->arguments.items[1]);
    return lists ? pages_print(cli, &pages, rows) : run_one(cli, what, &cli->arguments, out);
}
