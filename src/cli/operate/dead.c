#include "base/json_patch.h"
#include "cli/operate/letters.h"
#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/input.h"
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

static const struct shown redrive_columns[] = {
    { "ID", "id", SHOW_TEXT },
    { "STATE", "state", SHOW_STATE },
    { "BY", "by", SHOW_TEXT },
    { "MATCHED", "matched", SHOW_NUMBER },
    { "SENT BACK", "redriven", SHOW_NUMBER },
    { "DELIVERED", "delivered", SHOW_NUMBER },
    { "DEAD AGAIN", "dead_again", SHOW_NUMBER },
    { "LEFT", "left", SHOW_NUMBER },
    { "STARTED", "started_at", SHOW_TIME },
};

/* The answer of a GET about the letters that are meant. */
static int look_at(const struct cli *cli, const struct letters *letters, const char *path, const char *by, const char *out)
{
    struct url url;
    url_init(&url, path);
    url_query(&url, "by", by);
    letters_query(&url, cli, letters);
    if (strcmp(path, "/v1/dead/summary") == 0)
        return client_show(cli, &(struct request){ .method = "GET", .url = &url }, show_summary);
    return client_download(cli, &url, out);
}

/* Which options go with what; NULL: they do. */
static const char *misplaced(const char *what, const struct letters *letters, const struct pages *pages, const char *by,
                             const char *out)
{
    bool redrives = strcmp(what, "redrive") == 0, purges = strcmp(what, "purge") == 0, lists = strcmp(what, "list") == 0;
    bool orders = strcmp(what, "undo") == 0 || strcmp(what, "cancel") == 0, listed = strcmp(what, "redrives") == 0;
    if (by && strcmp(what, "summary") != 0)
        return "--by goes with summary";
    if (out && strcmp(what, "export") != 0)
        return "--out goes with export";
    if (pages->cursor && !lists && !listed)
        return "--cursor goes with list and redrives";
    if (pages->limit && !lists && !listed && !redrives)
        return "--limit goes with list, redrives and redrive";
    if (pages->all && !lists && !listed && !redrives && !purges)
        return "--all goes with list, redrives, redrive and purge";
    if ((letters->rate || letters->canary || letters->abort_at > 0 || letters->patch) && !redrives)
        return "--rate, --canary, --abort-at and --patch go with redrive";
    if ((letters->dry_run || letters->yes) && !redrives && !purges)
        return "--dry-run and --yes go with redrive and purge";
    if (letters->archive && !purges)
        return "--archive goes with purge";
    return letters->wait && !redrives && !orders ? "--wait goes with redrive, cancel and undo" : NULL;
}

/* A patch that does not begin like JSON is a file, as with `insist retry --payload`. What is wrong with it is said here. */
static int redrive(struct cli *cli, struct letters *letters)
{
    struct buffer file;
    json_error_t error;
    int code = EXIT_DONE;
    buffer_init(&file, 0);
    struct slice text = slice_trim(slice_from(letters->patch ? letters->patch : "{}"));
    if (text.len == 0 || (text.data[0] != '{' && text.data[0] != '[')) {
        code = input_read(letters->patch, JSON_PATCH_BYTES_MAX, &file);
        text = buffer_slice(&file);
    }
    json_t *patch = code == EXIT_DONE ? json_loadb(text.data ? text.data : "", text.len, JSON_ALLOW_NUL, &error) : NULL;
    if (code == EXIT_DONE && !patch)
        code = cli_usage("dead", "--patch is no JSON: %s (line %d, column %d)", error.text, error.line, error.column);
    json_decref(patch);
    if (code == EXIT_DONE && letters->patch)
        letters->patch_text = text;
    if (code == EXIT_DONE)
        code = letters_redrive(cli, letters);
    buffer_release(&file);
    return code;
}

static int act_or_look(struct cli *cli, const char *what, struct letters *letters, struct pages *pages, const char *by,
                       const char *out)
{
    bool orders = strcmp(what, "undo") == 0 || strcmp(what, "cancel") == 0;
    letters->all = pages->all;
    letters->limit = pages->limit;
    if (orders)
        return letters_order(cli, cli->arguments.items[1], what, letters->wait);
    bool acts = strcmp(what, "redrive") == 0 || strcmp(what, "purge") == 0;
    if (acts && !letters->all && letters_are_all(cli, letters))
        return cli_usage("dead", "say which ones, as --code http:503, or --all for every dead letter");
    if (strcmp(what, "redrive") == 0)
        return redrive(cli, letters);
    if (strcmp(what, "purge") == 0)
        return letters_purge(cli, letters);
    if (strcmp(what, "summary") == 0)
        return look_at(cli, letters, "/v1/dead/summary", by, NULL);
    return look_at(cli, letters, "/v1/dead/export", NULL, out);
}

int command_dead(struct cli *cli)
{
    static const char *const known[] = { "list", "summary", "export", "redrive", "purge", "redrives", "undo", "cancel" };
    const char *out = NULL, *by = NULL;
    struct letters letters = { .destination = NULL };
    struct pages pages = { .path = "/v1/dead",
                           .member = "dead",
                           .what = "dead letters",
                           .columns = columns,
                           .column_count = sizeof columns / sizeof *columns };
    const struct option_row rows[] = {
        LETTERS_FILTER(letters),
        { "by", '\0', .value = &by },
        { "out", '\0', .value = &out },
        { "rate", '\0', .value = &letters.rate },
        { "canary", '\0', .count = &letters.canary, .low = 1, .high = 100000 },
        { "abort-at", '\0', .part = &letters.abort_at },
        { "patch", '\0', .value = &letters.patch },
        { "archive", '\0', .value = &letters.archive },
        { "dry-run", '\0', .flag = &letters.dry_run },
        { "yes", 'y', .flag = &letters.yes },
        { "wait", '\0', .flag = &letters.wait },
        PAGES_OPTIONS(pages),
        { 0 },
    };
    if (!command_options(cli, rows, 2))
        return cli->code;
    const char *what = arguments_action(cli);
    bool is_known = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        is_known = is_known || strcmp(what, known[i]) == 0;
    if (!is_known)
        return cli_usage("dead", "say what to do: list, summary, export, redrive, purge, redrives, undo or cancel, not %s",
                         what);
    bool orders = strcmp(what, "undo") == 0 || strcmp(what, "cancel") == 0;
    if (orders && cli->arguments.count < 2)
        return cli_usage("dead", "name one redrive; insist dead redrives lists them");
    if (!orders && cli->arguments.count > 1)
        return cli_usage("dead", "unexpected argument \"%s\"", cli->arguments.items[1]);
    const char *wrong = misplaced(what, &letters, &pages, by, out);
    if (wrong)
        return cli_usage("dead", "%s", wrong);
    if (strcmp(what, "redrives") == 0) {
        pages = (struct pages){ .path = "/v1/dead/redrives", .member = "redrives", .columns = redrive_columns,
                                .column_count = sizeof redrive_columns / sizeof *redrive_columns, .limit = pages.limit,
                                .cursor = pages.cursor, .all = pages.all };
        return pages_print(cli, &pages, NULL);
    }
    return strcmp(what, "list") == 0 ? pages_print(cli, &pages, rows) : act_or_look(cli, what, &letters, &pages, by, out);
}
