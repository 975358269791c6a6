#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/client.h"
#include "cli/talk/show.h"

#include <math.h>
#include <string.h>

static int percent(const json_t *odds, const char *name)
{
    return (int)lround(100 * json_number_value(json_object_get(odds, name)));
}

static int64_t ended_of(const json_t *error)
{
    return member_int(error, "recovered") + member_int(error, "gave_up");
}

/* "87% (71-98%)", as a member of its own. */
static void say_odds(json_t *error)
{
    const json_t *odds = json_object_get(error, "odds");
    if (ended_of(error) > 0)
        json_object_set_new(error, "recovers", json_sprintf("%d%% (%d-%d%%)", percent(odds, "mean"), percent(odds, "low"),
                                                            percent(odds, "high")));
}

static void append_proposal(const json_t *error, struct buffer *out)
{
    const json_t *proposal = json_object_get(error, "proposal");
    bool transient = strcmp(member_text(proposal, "class") ? member_text(proposal, "class") : "", "transient") == 0;
    buffer_append_byte(out, '\n');
    show_value(json_object_get(error, "fingerprint"), SHOW_TEXT, out);
    buffer_printf(out, ": of %lld jobs that ended after it, %lld were delivered: ", (long long)ended_of(error),
                  (long long)member_int(error, "recovered"));
    buffer_append_text(out, transient ? "it passes. To say so, add:\n" : "it does not pass. To give up at once, add:\n");
    show_lines(slice_from(member_text(proposal, "yaml")), "    ", out);
}

static void append_known(const json_t *error, struct buffer *out)
{
    buffer_append_byte(out, '\n');
    show_value(json_object_get(error, "fingerprint"), SHOW_TEXT, out);
    buffer_append_text(out, ": known by now as ");
    show_value(json_object_get(error, "known_as"), SHOW_TEXT, out);
    buffer_append_text(out, ", by the rule ");
    show_value(json_object_get(error, "rule"), SHOW_TEXT, out);
    buffer_append_byte(out, '\n');
}

static int show_list(const struct cli *cli, json_t *answer, struct buffer *out)
{
    static const struct shown columns[] = {
        { "FINGERPRINT", "fingerprint", SHOW_TEXT }, { "DESTINATION", "destination", SHOW_TEXT },
        { "SEEN", "seen", SHOW_NUMBER },             { "RECOVERED", "recovered", SHOW_NUMBER },
        { "GAVE UP", "gave_up", SHOW_NUMBER },       { "RECOVERS", "recovers", SHOW_NUMBER },
        { "LAST SEEN", "last_at", SHOW_TIME },       { "CODE", "code", SHOW_TEXT },
        { "ERROR", "sample", SHOW_TEXT },
    };
    const json_t *errors = json_object_get(answer, "errors");
    json_t *error;
    size_t i;
    if (!json_is_array(errors))
        return cli_fail(EXIT_FAILED, "the daemon's answer has no \"errors\"; is it of another version?");
    if (json_array_size(errors) == 0) {
        buffer_append_text(out, "No unknown errors: every failure so far was known by a rule.\n");
        return EXIT_DONE;
    }
    json_array_foreach(errors, i, error)
        say_odds(error);
    show_table(cli, errors, columns, sizeof columns / sizeof *columns, out);
    json_array_foreach(errors, i, error)
        if (json_is_object(json_object_get(error, "proposal")))
            append_proposal(error, out);
        else if (member_text(error, "known_as"))
            append_known(error, out);
    return EXIT_DONE;
}

static int show_forgotten(UNUSED const struct cli *cli, json_t *answer, struct buffer *out)
{
    show_value(json_object_get(answer, "fingerprint"), SHOW_TEXT, out);
    buffer_append_text(out, ": forgotten\n");
    return EXIT_DONE;
}

int command_errors(struct cli *cli)
{
    const char *destination = NULL;
    int64_t limit = 0;
    const struct option_row rows[] = {
        { "destination", 'd', .value = &destination },
        { "limit", 'n', .count = &limit, .low = 1, .high = CLIENT_PAGE_MAX },
        { 0 },
    };
    if (!command_options(cli, rows, 2))
        return cli->code;
    const char *what = arguments_action(cli);
    bool forgets = strcmp(what, "forget") == 0;
    if (!forgets && strcmp(what, "list") != 0)
        return cli_usage("errors", "say what to do: list or forget, not %s", what);
    if (!forgets && cli->arguments.count > 1)
        return cli_usage("errors", "unexpected argument \"%s\"", cli->arguments.items[1]);
    if (forgets && cli->arguments.count < 2)
        return cli_usage("errors", "name the fingerprint");
    if (forgets && limit > 0)
        return cli_usage("errors", "--limit goes with the list");
    struct url url = url_to("/v1/errors");
    if (forgets)
        url_segment(&url, cli->arguments.items[1]);
    url_query(&url, "destination", destination);
    if (limit > 0)
        url_number(&url, "limit", limit);
    return client_show(cli, &(struct request){ .method = forgets ? "DELETE" : "GET", .url = &url },
                       forgets ? show_forgotten : show_list);
}
