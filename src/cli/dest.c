#include "base/json.h"
#include "cli/action.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/pages.h"

#include <string.h>

static int list(const struct cli *cli)
{
    static const struct shown columns[] = {
        { "NAME", "name", SHOW_TEXT },           { "MODE", "mode", SHOW_STATE },
        { "HELD BY", "held_by", SHOW_TEXT },     { "PENDING", "pending", SHOW_NUMBER },
        { "RUNNING", "running", SHOW_NUMBER },   { "WAITING", "waiting", SHOW_NUMBER },
        { "DEAD", "dead", SHOW_NUMBER },         { "TENANTS", "tenants", SHOW_NUMBER },
        { "TRANSPORT", "transport", SHOW_TEXT }, { "PRESET", "preset", SHOW_TEXT },
    };
    static const struct pages_query query[] = { { NULL, NULL } };
    const struct pages pages = { .command = "dest",
                                 .path = "/v1/destinations",
                                 .member = "destinations",
                                 .query = query,
                                 .columns = columns,
                                 .column_count = sizeof columns / sizeof *columns,
                                 .all = true };
    return pages_print(cli, &pages);
}

static int show_one(const struct cli *cli, json_t *answer, struct buffer *out)
{
    static const struct shown facts[] = {
        { "name", "name", SHOW_TEXT },
        { "mode", "mode", SHOW_STATE },
        { "mode since", "mode_since", SHOW_TIME },
        { "cause", "mode_cause", SHOW_TEXT },
        { "because", "pause_reason", SHOW_TEXT },
        { "held by", "held_by", SHOW_TEXT },
        { "held since", "held_since", SHOW_TIME },
        { "held until", "held_until", SHOW_TIME },
        { "next look at", "next_look_at", SHOW_TIME },
    };
    static const struct shown tenants[] = {
        { "PAUSED TENANT", "tenant", SHOW_TEXT },
        { "SINCE", "since", SHOW_TIME },
        { "BECAUSE", "reason", SHOW_TEXT },
    };
    json_t *paused = json_incref(json_object_get(answer, "paused"));
    json_object_del(answer, "paused");
    show_facts(cli, answer, facts, sizeof facts / sizeof *facts, out);
    buffer_append_byte(out, '\n');
    show_others(cli, answer, facts, sizeof facts / sizeof *facts, out);
    if (json_array_size(paused) > 0) {
        buffer_append_byte(out, '\n');
        show_table(cli, paused, tenants, sizeof tenants / sizeof *tenants, out);
    }
    json_decref(paused);
    return EXIT_DONE;
}

static int show(const struct cli *cli, const char *name)
{
    struct url url;
    url_init(&url, "/v1/destinations");
    url_segment(&url, name);
    int code = client_show(cli, &(struct request){ .method = "GET", .url = &url }, show_one);
    url_release(&url);
    return code;
}

/* `enter`: of contingency, true or false; NULL: none of its. `tenant`: only that one's jobs; NULL: all of it. */
static int hold(const struct cli *cli, const char *name, const char *verb, const bool *enter, const char *reason,
                const char *tenant)
{
    struct buffer body;
    buffer_init(&body, CLI_STDIN_BYTES_MAX);
    struct json_writer json = json_writer(&body);
    json_object_begin(&json);
    if (enter)
        json_member_bool(&json, "enter", *enter);
    if (reason)
        json_member_text(&json, "reason", reason);
    if (tenant)
        json_member_text(&json, "tenant", tenant);
    json_object_end(&json);
    int code = buffer_status(&body) == STATUS_OK ? EXIT_DONE : cli_usage("dest", "--reason is too long");
    const struct action action = {
        .method = "POST",
        .path = "/v1/destinations",
        .name = name,
        .verb = verb,
        .body = buffer_slice(&body),
    };
    if (code == EXIT_DONE)
        code = action_run(cli, &action);
    buffer_release(&body);
    return code;
}

static int run(struct cli *cli, int argc, char **argv)
{
    const char *reason = NULL, *tenant = NULL;
    bool leave = false;
    const struct option_row rows[] = {
        { "reason", '\0', &reason, NULL },
        { "tenant", 't', &tenant, NULL },
        { "leave", '\0', NULL, &leave },
        { NULL, '\0', NULL, NULL },
    };
    struct arguments arguments;
    int code;
    if (!command_options(cli, &command_dest, rows, argc, argv, 2, &arguments, &code))
        return code;
    const char *what = arguments_action(&arguments);
    bool pauses = strcmp(what, "pause") == 0;
    bool resumes = strcmp(what, "resume") == 0;
    bool lists = strcmp(what, "list") == 0;
    bool contingency = strcmp(what, "contingency") == 0;
    bool enter = !leave;
    if (!pauses && !resumes && !contingency && !lists && strcmp(what, "show") != 0)
        return cli_usage("dest", "say what to do: list, show, pause, resume or contingency, not %s", what);
    if (reason && !pauses && !(contingency && enter))
        return cli_usage("dest", "--reason goes with pause and contingency");
    if (leave && !contingency)
        return cli_usage("dest", "--leave goes with contingency");
    if (tenant && !pauses && !resumes)
        return cli_usage("dest", "--tenant goes with pause and resume");
    if (lists && arguments.count == 2)
        return cli_usage("dest", "unexpected argument \"%s\"", arguments.items[1]);
    if (lists)
        return list(cli);
    if (arguments.count < 2)
        return cli_usage("dest", "name the destination");
    if (pauses || resumes || contingency)
        return hold(cli, arguments.items[1], what, contingency ? &enter : NULL, reason, tenant);
    return show(cli, arguments.items[1]);
}

const struct command command_dest = {
    .name = "dest",
    .summary = "destinations: how they stand; hold them and let them go on",
    .help = "usage: insist dest [list]\n"
            "       insist dest show NAME\n"
            "       insist dest pause NAME [--tenant T] [--reason TEXT]\n"
            "       insist dest resume NAME [--tenant T]\n"
            "       insist dest contingency NAME [--reason TEXT | --leave]\n\n"
            "Lists the destinations with their modes and counts, shows one, or holds one: while it is paused its\n"
            "jobs are kept, none is sent and no attempt is spent. In contingency the same, but the way back is a\n"
            "ramp: a few jobs first, then more. Both outlive a restart.\n\n"
            "Options:\n"
            "  -t, --tenant T      pause, resume: only this tenant's jobs; the others go on\n"
            "      --reason TEXT   pause, contingency: a sentence for those who ask why\n"
            "      --leave         contingency: begin the way back\n"
            "  -o, --output json   the daemon's answer as it is\n\n"
            "Examples:\n"
            "  insist dest list\n"
            "  insist dest pause claims --reason 'certificate is being renewed'\n"
            "  insist dest resume claims\n"
            "  insist dest resume claims --tenant hospital-7\n"
            "  insist dest contingency claims --reason 'they called: down until noon'\n"
            "  insist dest contingency claims --leave\n",
    .run = run,
};
