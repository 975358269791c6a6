#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/input.h"
#include "cli/talk/pages.h"
#include "cli/talk/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TAIL_BYTES = 512, LOOK_MS = 300 };

struct asked {
    const char *subject, *tenant, *out;
    bool yes, dry_run;
};

static const struct shown erasure_columns[] = {
    { "ID", "id", SHOW_TEXT },       { "STATE", "state", SHOW_STATE },     { "BY", "by", SHOW_TEXT },
    { "JOBS", "jobs", SHOW_NUMBER }, { "EVENTS", "events", SHOW_NUMBER },  { "COPIES", "copies", SHOW_NUMBER },
    { "KEPT", "events_left", SHOW_NUMBER }, { "NAMES", "names_left", SHOW_NUMBER }, { "STARTED", "started_at", SHOW_TIME },
};

static struct url subject_url(const struct asked *asked)
{
    struct url url = url_to("/v1/subjects");
    url_segment(&url, asked->subject);
    url_query(&url, "tenant", asked->tenant);
    return url;
}

/* ---- how much there is ---- */

/* The end of an answer, whose last line says what was found. */
struct tail {
    char bytes[TAIL_BYTES];
    size_t len;
};

static bool tail_take(void *context, struct slice bytes)
{
    struct tail *tail = context;
    if (bytes.len >= sizeof tail->bytes) {
        bytes = slice_from_offset(bytes, bytes.len - sizeof tail->bytes);
        tail->len = 0;
    }
    size_t room = sizeof tail->bytes - bytes.len, keep = tail->len < room ? tail->len : room;
    memmove(tail->bytes, tail->bytes + tail->len - keep, keep);
    memcpy(tail->bytes + keep, bytes.data, bytes.len);
    tail->len = keep + bytes.len;
    return true;
}

static int found(struct client *client, const struct asked *asked, int64_t *ret_jobs, int64_t *ret_events)
{
    struct tail tail = { .len = 0 };
    struct reply reply = { 0 };
    struct url url = subject_url(asked);
    int code = client_call(client, &(struct request){ .method = "GET", .url = &url, .take = tail_take, .context = &tail },
                           &reply);
    reply_release(&reply);
    url_release(&url);
    if (code != EXIT_DONE)
        return code;
    struct slice last = slice_trim((struct slice){ tail.bytes, tail.len });
    for (size_t i = last.len; i > 0; i--)
        if (last.data[i - 1] == '\n') {
            last = slice_from_offset(last, i);
            break;
        }
    json_t *line = json_loadb(last.data, last.len, 0, NULL);
    const json_t *counts = json_object_get(line, "found");
    *ret_jobs = member_int(counts, "jobs");
    *ret_events = member_int(counts, "events");
    if (!counts) {
        fprintf(stderr, "insist: the answer ended before it was whole; nothing was done\n");
        code = EXIT_FAILED;
    }
    json_decref(line);
    return code;
}

/* ---- erasing ---- */

static void done_print(const json_t *erasure)
{
    const json_t *places = json_object_get(erasure, "not_reached");
    printf("%" PRId64 " jobs erased, %" PRId64 " events without their data, %" PRId64 " copies and %" PRId64
           " learnt errors gone.\n",
           member_int(erasure, "jobs"), member_int(erasure, "events"), member_int(erasure, "copies"),
           member_int(erasure, "errors"));
    if (member_int(erasure, "events_left") > 0)
        printf("Kept: the data of %" PRId64 " events of an older form, which is part of the trail's hashes.\n",
               member_int(erasure, "events_left"));
    if (member_int(erasure, "names_left") > 0)
        printf("Kept: %" PRId64 " events whose job or tenant is named after the subject; names are part of the hashes.\n",
               member_int(erasure, "names_left"));
    printf("Kept: that the jobs were there, when and where to, for as long as retention.audit says.\n");
    for (size_t i = 0; i < json_array_size(places); i++)
        printf("Not reached: %s.\n", json_string_value(json_array_get(places, i)));
}

static int answer_print(const struct cli *cli, json_t *answer)
{
    if (cli->json)
        return json_print(answer, EXIT_DONE);
    done_print(answer);
    return EXIT_DONE;
}

/* Until it is done: it goes on without us, too. */
static int follow(struct client *client, const struct cli *cli, const char *id)
{
    const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
    bool done = false;
    int code = EXIT_DONE;
    fprintf(stderr, "erasure %s is under way; it goes on if this is interrupted: insist subject erasures\n", id);
    while (code == EXIT_DONE && !done) {
        json_t *erasure = NULL;
        struct url url = url_to("/v1/erasures");
        url_segment(&url, id);
        code = client_json(client, &(struct request){ .method = "GET", .url = &url }, &erasure);
        const char *state = code == EXIT_DONE ? member_text(erasure, "state") : NULL;
        done = state && strcmp(state, "done") == 0;
        if (done)
            code = answer_print(cli, erasure);
        json_decref(erasure);
        if (!done && code == EXIT_DONE)
            nanosleep(&pause, NULL);
    }
    return code;
}

static int erase(const struct cli *cli, const struct asked *asked)
{
    struct client client;
    json_t *answer = NULL;
    int64_t jobs = 0, events = 0;
    bool person = isatty(STDIN_FILENO) && isatty(STDERR_FILENO), counts = asked->dry_run || !asked->yes;
    int code = client_open(cli, &client);
    if (code == EXIT_DONE && counts)
        code = found(&client, asked, &jobs, &events);
    if (code == EXIT_DONE && counts)
        fprintf(stderr, "%" PRId64 " jobs and %" PRId64 " events tell of this subject.\n", jobs, events);
    bool go = code == EXIT_DONE && !asked->dry_run;
    if (go && !asked->yes && !person)
        code = cli_usage("subject", "nobody is there to be asked: say --yes to erase them, or --dry-run to count");
    else if (go && !asked->yes)
        go = input_agrees("Erase them for good? What was not delivered yet will not be.");
    if (code == EXIT_DONE && go) {
        struct url url = subject_url(asked);
        code = client_json(&client, &(struct request){ .method = "DELETE", .url = &url }, &answer);
    }
    const char *id = answer ? member_text(answer, "id") : NULL;
    if (code == EXIT_DONE && id)
        code = follow(&client, cli, id);
    else if (code == EXIT_DONE && !asked->dry_run)
        fprintf(stderr, "Nothing was done.\n");
    json_decref(answer);
    client_close(&client);
    return code;
}

int command_subject(struct cli *cli)
{
    struct asked asked = { .subject = NULL };
    struct pages pages = { .path = "/v1/erasures", .member = "erasures", PAGES_COLUMNS(erasure_columns) };
    const struct option_row rows[] = {
        { "tenant", 't', .value = &asked.tenant },
        { "out", '\0', .value = &asked.out },
        { "dry-run", '\0', .flag = &asked.dry_run },
        { "yes", 'y', .flag = &asked.yes },
        PAGES_OPTIONS(pages),
        { 0 },
    };
    if (!command_options(cli, rows, 2))
        return cli->code;
    const char *what = cli->arguments.count > 0 ? cli->arguments.items[0] : "";
    bool tells = strcmp(what, "history") == 0, erases = strcmp(what, "erase") == 0;
    if (!tells && !erases && strcmp(what, "erasures") != 0)
        return cli_usage("subject", "say what to do: history, erase or erasures%s%s", what[0] ? ", not " : "", what);
    if (tells || erases ? cli->arguments.count < 2 : cli->arguments.count > 1)
        return cli_usage("subject", tells || erases ? "name the subject, as ana@example.com"
                                                    : "erasures are not told by whom they were about");
    if (asked.out && !tells)
        return cli_usage("subject", "--out goes with history");
    if ((asked.yes || asked.dry_run) && !erases)
        return cli_usage("subject", "--yes and --dry-run go with erase");
    if ((pages.all || pages.limit || pages.cursor) && (tells || erases))
        return cli_usage("subject", "--all, --limit and --cursor go with erasures");
    if (asked.tenant && !tells && !erases)
        return cli_usage("subject", "--tenant goes with history and erase");
    if (!tells && !erases)
        return pages_print(cli, &pages, NULL);
    asked.subject = cli->arguments.items[1];
    if (erases)
        return erase(cli, &asked);
    struct url url = subject_url(&asked);
    return client_download(cli, &url, asked.out);
}
