#include "base/json.h"
#include "base/json_patch.h"
#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/bar.h"
#include "cli/talk/client.h"
#include "cli/talk/input.h"
#include "cli/talk/pages.h"
#include "cli/talk/show.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 300, GROUPS_SHOWN = 5 };

/* Which dead letters are meant, and what is to be done with them: what was typed. */
struct letters {
    const char *destination, *tenant, *code, *dead_code, *fingerprint, *since, *until, *text;
    const char *rate, *patch, *archive;
    struct slice patch_text; /* the JSON that `patch` is or names; empty: none */
    int64_t canary, limit;
    double abort_at;
    bool all, dry_run, yes, wait;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

/* ---- the request ---- */

static const struct {
    const char *name;
    size_t offset;
} filters[] = {
    { "destination", offsetof(struct letters, destination) }, { "tenant", offsetof(struct letters, tenant) },
    { "code", offsetof(struct letters, code) },               { "dead_code", offsetof(struct letters, dead_code) },
    { "fingerprint", offsetof(struct letters, fingerprint) }, { "since", offsetof(struct letters, since) },
    { "until", offsetof(struct letters, until) },             { "text", offsetof(struct letters, text) },
};

static const char *filter_value(const struct letters *letters, size_t i)
{
    return *(const char *const *)((const char *)letters + filters[i].offset);
}

/* Whether nothing was said about which. */
static bool letters_are_all(const struct cli *cli, const struct letters *letters)
{
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (filter_value(letters, i))
            return false;
    return cli->arguments.repeated_count == 0;
}

/* As parameters of a request. */
static void letters_query(struct url *url, const struct cli *cli, const struct letters *letters)
{
    struct buffer ids = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        url_query(url, filters[i].name, filter_value(letters, i));
    for (size_t i = 0; i < cli->arguments.repeated_count; i++) {
        buffer_append_text(&ids, i > 0 ? "," : "");
        buffer_append_text(&ids, cli->arguments.repeated[i].value);
    }
    buffer_append_byte(&ids, '\0');
    url_query(url, "ids", ids.data);
    buffer_release(&ids);
}

static void body_filter(struct json_writer *json, const struct cli *cli, const struct letters *letters)
{
    json_member_object(json, "filter");
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (filter_value(letters, i))
            json_member_text(json, filters[i].name, filter_value(letters, i));
    if (cli->arguments.repeated_count > 0) {
        json_member_array(json, "ids");
        for (size_t i = 0; i < cli->arguments.repeated_count; i++)
            json_put_string(json, slice_from(cli->arguments.repeated[i].value));
        json_array_end(json);
    }
    json_object_end(json);
    if (letters->all)
        json_member_bool(json, "all", true);
}

static void body_how(struct json_writer *json, const struct letters *letters)
{
    if (letters->limit > 0)
        json_member_int(json, "limit", letters->limit);
    if (letters->rate)
        json_member_text(json, "rate", letters->rate);
    if (letters->canary > 0)
        json_member_int(json, "canary", letters->canary);
    if (letters->abort_at > 0) {
        json_member_real(json, "abort_at", letters->abort_at);
    }
    if (letters->patch_text.len > 0) {
        json_name(json, "payload_patch");
        json_put_raw(json, slice_trim(letters->patch_text));
    }
}

/* One request, whose JSON answer the caller owns. */
static int post(struct client *client, const char *path, const struct cli *cli, const struct letters *letters, bool dry_run,
                json_t **ret_answer)
{
    struct buffer body = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    struct json_writer json = json_begin(&body);
    body_filter(&json, cli, letters);
    if (strcmp(path, "/v1/dead/redrives") == 0)
        body_how(&json, letters);
    if (dry_run)
        json_member_bool(&json, "dry_run", true);
    json_object_end(&json);
    struct url url = url_to(path);
    const struct request request = { .method = "POST", .url = &url, .body = buffer_slice(&body) };
    int code = client_json(client, &request, ret_answer);
    buffer_release(&body);
    return code;
}

/* ---- what it will do, in numbers ---- */

static void groups_print(FILE *out, const char *title, const json_t *groups)
{
    const char *name;
    json_t *count;
    size_t shown = 0;
    fprintf(out, "  %-10s", title);
    json_object_foreach((json_t *)(uintptr_t)groups, name, count)
    {
        if (shown++ < GROUPS_SHOWN)
            fprintf(out, "%s%s %" JSON_INTEGER_FORMAT, shown > 1 ? ", " : "", name[0] ? name : "(none)",
                    json_integer_value(count));
    }
    if (shown > GROUPS_SHOWN)
        fprintf(out, " and %zu more", shown - GROUPS_SHOWN);
    fprintf(out, "\n");
}

/* Asked for it is the answer; before a question it is what that is about. */
static void plan_print(FILE *out, const json_t *plan)
{
    const char *oldest = member_text(plan, "oldest"), *newest = member_text(plan, "newest");
    json_int_t matched = member_int(plan, "matched");
    fprintf(out, "%" JSON_INTEGER_FORMAT " dead letter%s", matched, matched == 1 ? "" : "s");
    if (matched > 0)
        fprintf(out, ", from %s to %s", oldest ? oldest : "?", newest ? newest : "?");
    fprintf(out, "\n");
    if (matched == 0)
        return;
    groups_print(out, "by code", json_object_get(plan, "by_code"));
    groups_print(out, "by tenant", json_object_get(plan, "by_tenant"));
}

/* Whether somebody is there who could be asked. */
static bool is_person(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static bool is_asked(const struct letters *letters)
{
    return !letters->yes && is_person();
}

/* Counts first where it must be known. EXIT_DONE with *ret_go false: nothing is to be done. */
static int plan(struct client *client, const char *path, const struct cli *cli, const struct letters *letters,
                const char *act, char newest[64], bool *ret_go)
{
    json_t *answer = NULL;
    char question[160];
    *ret_go = true;
    if (!letters->dry_run && !is_asked(letters) && !letters->archive)
        return EXIT_DONE;
    int code = post(client, path, cli, letters, true, &answer);
    if (code != EXIT_DONE)
        return code;
    json_int_t matched = member_int(answer, "matched");
    const char *last = member_text(answer, "newest");
    snprintf(newest, 64, "%s", last ? last : "");
    if (letters->dry_run && cli->json)
        code = json_print(answer, EXIT_DONE);
    else if (letters->dry_run || is_asked(letters))
        plan_print(letters->dry_run ? stdout : stderr, answer);
    else if (matched == 0)
        fprintf(stderr, "No dead letter is meant by that; nothing was done.\n");
    *ret_go = !letters->dry_run && matched > 0;
    json_decref(answer);
    if (!*ret_go || !is_asked(letters))
        return code;
    json_int_t most = letters->limit > 0 && letters->limit < matched ? letters->limit : matched;
    snprintf(question, sizeof question, "%s %" JSON_INTEGER_FORMAT " of them?", act, most);
    *ret_go = input_agrees(question);
    if (!*ret_go)
        fprintf(stderr, "Nothing was done.\n");
    return code;
}

/* ---- progress ---- */

static void show_progress(struct bar *bar, const json_t *redrive)
{
    int64_t left = member_int(redrive, "left"), done = member_int(redrive, "redriven");
    char text[160];
    snprintf(text, sizeof text, "%s, %" PRId64 " delivered, %" PRId64 " dead again", member_text(redrive, "state"),
             member_int(redrive, "delivered"), member_int(redrive, "dead_again"));
    bar_show(bar, done, done + left, text);
}

static void line_print(const struct cli *cli, json_t *redrive)
{
    if (cli->json)
        return;
    printf("%s  %s: %" PRId64 " sent back, %" PRId64 " delivered, %" PRId64 " dead again, %" PRId64 " under way, %" PRId64
           " left",
           member_text(redrive, "id"),
           json_is_true(json_object_get(redrive, "undoing")) ? "being undone" : member_text(redrive, "state"),
           member_int(redrive, "redriven"), member_int(redrive, "delivered"), member_int(redrive, "dead_again"),
           member_int(redrive, "under_way"), member_int(redrive, "left"));
    if (member_int(redrive, "patch_failed") > 0)
        printf(", %" PRId64 " that the patch did not fit", member_int(redrive, "patch_failed"));
    if (member_int(redrive, "undone") > 0)
        printf(", %" PRId64 " taken back", member_int(redrive, "undone"));
    printf("\n");
}

static bool is_over(const json_t *redrive, bool wait)
{
    const char *state = member_text(redrive, "state");
    bool sends = !state || strcmp(state, "running") == 0 || strcmp(state, "canary") == 0 ||
                 json_is_true(json_object_get(redrive, "undoing"));
    return !sends && (!wait || member_int(redrive, "under_way") == 0);
}

static int look(struct client *client, const char *id, json_t **ret_redrive)
{
    struct url url = url_to("/v1/dead/redrives");
    url_segment(&url, id);
    return client_json(client, &(struct request){ .method = "GET", .url = &url }, ret_redrive);
}

/* Until it has ended, or somebody has seen enough. */
static int follow(struct client *client, const struct cli *cli, const char *id, bool wait)
{
    struct sigaction action = { .sa_handler = on_interrupt };
    const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
    struct bar bar = bar_begin(false);
    bool over = false;
    int code = EXIT_DONE;
    sigaction(SIGINT, &action, NULL);
    while (code == EXIT_DONE && !over) {
        json_t *redrive = NULL;
        code = look(client, id, &redrive);
        over = code == EXIT_DONE && (is_over(redrive, wait) || interrupted);
        if (code == EXIT_DONE)
            show_progress(&bar, redrive);
        if (over)
            bar_end(&bar);
        if (over && interrupted && !is_over(redrive, wait))
            fprintf(stderr,
                    "It goes on without you. To stop it: insist dead cancel %s\n"
                    "To take back what was not tried: insist dead undo %s\n",
                    id, id);
        const char *state = member_text(redrive, "state");
        if (over && state && strcmp(state, "aborted") == 0)
            code = EXIT_FAILED;
        if (over && cli->json)
            code = json_print(redrive, code);
        else if (over)
            line_print(cli, redrive);
        json_decref(redrive);
        if (!over && code == EXIT_DONE)
            nanosleep(&pause, NULL);
    }
    return code;
}

static int letters_redrive(const struct cli *cli, const struct letters *letters)
{
    struct client client;
    json_t *answer = NULL;
    char newest[64] = "";
    bool go = false;
    int code = client_open(cli, &client);
    if (code == EXIT_DONE)
        code = plan(&client, "/v1/dead/redrives", cli, letters, "Send back", newest, &go);
    if (code == EXIT_DONE && go)
        code = post(&client, "/v1/dead/redrives", cli, letters, false, &answer);
    const char *id = answer ? member_text(answer, "id") : NULL;
    if (code == EXIT_DONE && id && (letters->wait || (isatty(STDERR_FILENO) && !cli->json)))
        code = follow(&client, cli, id, letters->wait);
    else if (code == EXIT_DONE && id && cli->json)
        code = json_print(answer, code);
    else if (code == EXIT_DONE && id)
        printf("%s  %s: %" PRId64 " match\n", id, member_text(answer, "state"), member_int(answer, "matched"));
    json_decref(answer);
    client_close(&client);
    return code;
}

/* ---- purge ---- */

/* What was thrown away before may be nowhere but in a file of that name: it is made anew, or nothing is done. */
static int archive(const struct cli *cli, const struct letters *meant)
{
    int descriptor = open(meant->archive, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0 && errno == EEXIST)
        return cli_fail(EXIT_FAILED, "%s exists and is not overwritten; nothing was thrown away", meant->archive);
    if (descriptor < 0)
        return cli_fail(EXIT_USAGE, "cannot make %s: %s; nothing was thrown away", meant->archive, strerror(errno));
    close(descriptor);
    struct url url = url_to("/v1/dead/export");
    letters_query(&url, cli, meant);
    int code = client_download(cli, &url, meant->archive);
    if (code != EXIT_DONE)
        unlink(meant->archive);
    return code;
}

static int letters_purge(const struct cli *cli, const struct letters *letters)
{
    struct letters meant = *letters;
    struct client client;
    json_t *answer = NULL;
    char newest[64] = "";
    bool go = false;
    if (!letters->yes && !letters->dry_run && !is_person())
        return cli_usage("dead", "nobody is there to be asked: say --yes to throw them away, or --dry-run to count");
    int code = client_open(cli, &client);
    if (code == EXIT_DONE)
        code = plan(&client, "/v1/dead/purge", cli, letters, "Throw away", newest, &go);
    if (code == EXIT_DONE && go && letters->archive) {
        meant.until = newest; /* what dies from here on is neither in the archive nor thrown away */
        code = archive(cli, &meant);
    }
    if (code == EXIT_DONE && go)
        code = post(&client, "/v1/dead/purge", cli, &meant, false, &answer);
    if (code == EXIT_DONE && answer && cli->json)
        code = json_print(answer, code);
    else if (code == EXIT_DONE && answer)
        printf("%" PRId64 " of %" PRId64 " dead letters thrown away%s%s\n", member_int(answer, "purged"),
               member_int(answer, "matched"), letters->archive ? "; they are in " : "",
               letters->archive ? letters->archive : "");
    json_decref(answer);
    client_close(&client);
    return code;
}

/* ---- orders ---- */

/* Cancel or undo, as `verb` says. */
static int letters_order(const struct cli *cli, const char *id, const char *verb, bool wait)
{
    struct client client;
    json_t *answer = NULL;
    struct url url = url_to("/v1/dead/redrives");
    url_segment(&url, id);
    url_segment(&url, verb);
    int code = client_open(cli, &client);
    if (code == EXIT_DONE)
        code = client_json(&client, &(struct request){ .method = "POST", .url = &url, .body = SLICE("{}") }, &answer);
    if (code == EXIT_DONE && (wait || (isatty(STDERR_FILENO) && !cli->json)))
        code = follow(&client, cli, id, false);
    else if (code == EXIT_DONE && cli->json)
        code = json_print(answer, code);
    else if (code == EXIT_DONE)
        line_print(cli, answer);
    json_decref(answer);
    client_close(&client);
    return code;
}

/* ---- the command ---- */

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
    struct url url = url_to(path);
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
    struct buffer file = buffer_up_to(0);
    json_error_t error;
    int code = EXIT_DONE;
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
    struct pages pages = { .path = "/v1/dead", .member = "dead", .what = "dead letters", PAGES_COLUMNS(columns) };
    const struct option_row rows[] = {
        { "destination", 'd', .value = &letters.destination, .utf8 = true },
        { "tenant", 't', .value = &letters.tenant, .utf8 = true },
        { "code", '\0', .value = &letters.code, .utf8 = true },
        { "dead-code", '\0', .value = &letters.dead_code, .utf8 = true },
        { "fingerprint", '\0', .value = &letters.fingerprint, .utf8 = true },
        { "since", '\0', .value = &letters.since, .past = true, .utf8 = true },
        { "until", '\0', .value = &letters.until, .past = true, .utf8 = true },
        { "text", '\0', .value = &letters.text, .utf8 = true },
        { "id", '\0', .repeated = true, .utf8 = true },
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
    if (options_filled(cli, rows) != EXIT_DONE)
        return EXIT_USAGE;
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
        pages = (struct pages){ .path = "/v1/dead/redrives", .member = "redrives", PAGES_COLUMNS(redrive_columns),
                                .limit = pages.limit, .cursor = pages.cursor, .all = pages.all };
        return pages_print(cli, &pages, NULL);
    }
    return strcmp(what, "list") == 0 ? pages_print(cli, &pages, rows) : act_or_look(cli, what, &letters, &pages, by, out);
}
