#include "base/log.h"
#include "cli/options.h"
#include "cli/play/child.h"
#include "cli/play/play.h"
#include "cli/talk/client.h"
#include "cli/talk/show.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TICK_MS = 250, /* between two bundles of traffic */
    JOBS_A_TICK = 5,
    FIGURES_EVERY_MS = 2000,
    OUTAGE_FROM_MS = 10000,
    OUTAGE_TO_MS = 25000,
    SHORTEST_MS = 4000,
    BUNDLE_BYTES_MAX = 64 << 10,
};

struct figures {
    int64_t pending, running, waiting, completed, dead;
};

struct demo {
    const struct cli *cli;
    char folder[256];
    char config[300];
    struct child receiver, strict, daemon;
    struct client client;
    struct cli connection; /* for the client: the daemon's address */
    instant began_at;
    int64_t outage_from_ms, outage_to_ms;
    int64_t for_ms; /* negative: until Ctrl-C */
    int64_t added;
    int steps_reported;
    char mode[32]; /* of orders, as shown last */
    bool keep;
    int code;
};

static volatile sig_atomic_t interrupted;

static void on_signal(UNUSED int number)
{
    interrupted = 1;
}

/* A line with the seconds since the start. */
static void say(struct demo *demo, const char *format, ...) PRINTF_LIKE(2, 3);
static void say(struct demo *demo, const char *format, ...)
{
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (demo->began_at > 0)
        buffer_printf(&out, "%4" PRId64 " s  ", (clock_now() - demo->began_at) / SECOND_MS);
    buffer_printf(&out, "%s\n", text);
    if (demo->code == EXIT_DONE)
        demo->code = cli_print(&out, EXIT_DONE);
    buffer_release(&out);
}

/* ---- Setting up ---- */

static int make_folder(struct demo *demo)
{
    const char *parent = getenv("TMPDIR");
    snprintf(demo->folder, sizeof demo->folder, "%s/insist-demo-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(demo->folder)) {
        int code = cli_fail(EXIT_FAILED, "cannot make the folder %s: %s", demo->folder, strerror(errno));
        demo->folder[0] = '\0';
        return code;
    }
    return EXIT_DONE;
}

static int write_config(struct demo *demo, int64_t port)
{
    snprintf(demo->config, sizeof demo->config, "%s/insist.yaml", demo->folder);
    FILE *file = fopen(demo->config, "we");
    if (!file)
        return cli_fail(EXIT_FAILED, "cannot write %s: %s", demo->config, strerror(errno));
    fprintf(file,
            "# Three destinations. Waits are short so that there is something to see; presets have the real ones.\n"
            "listen: 127.0.0.1:%" PRId64 "\n"
            "store: \"sqlite:%s/insist.db\"\n"
            "destinations:\n"
            "  orders:\n"
            "    url: %s/orders\n"
            "    allow_private: true\n"
            "    concurrency: 8\n"
            "    retry: { max_retries: 12, base: 500ms, factor: 2, floor: 500ms, cap: 5s, jitter: 0.2 }\n"
            "    breaker: { window: 2s, min_calls: 8, open: 1s, open_max: 1s, probes: 2 }\n"
            "    contingency: { ramp: [10, 25, 50], stable: 2s, check: 1s }\n"
            "  invoices:   # has no contingency: an outage costs its jobs their retries\n"
            "    url: %s/invoices\n"
            "    allow_private: true\n"
            "    concurrency: 4\n"
            "    retry: { max_retries: 3, base: 1s, factor: 2, floor: 1s, cap: 5s, jitter: 0.2 }\n"
            "  strict:   # refuses everything: its jobs become dead letters at once\n"
            "    url: %s/strict\n"
            "    allow_private: true\n"
            "    errors: { permanent: [\"422\"] }\n",
            port, demo->folder, demo->receiver.url, demo->receiver.url, demo->strict.url);
    if (fclose(file) != 0)
        return cli_fail(EXIT_FAILED, "cannot write %s: %s", demo->config, strerror(errno));
    return EXIT_DONE;
}

static int start_all(struct demo *demo, int64_t port)
{
    char outage[64];
    struct error err;
    snprintf(outage, sizeof outage, "%" PRId64 "ms..%" PRId64 "ms", demo->outage_from_ms, demo->outage_to_ms);
    const char *const receiver[] = { "listen", "--port",   "0",    "--quiet",  "--fail", "5%", "--latency",
                                     "20ms",   "--jitter", "80ms", "--outage", outage,   NULL };
    const char *const strict[] = { "listen", "--port", "0", "--quiet", "--status", "422", NULL };
    const char *const daemon[] = { "serve", "--init", "-c", demo->config, NULL };
    if (child_start(&demo->strict, demo->folder, "strict", strict, &err) != STATUS_OK ||
        child_start(&demo->receiver, demo->folder, "receiver", receiver, &err) != STATUS_OK)
        return cli_fail(EXIT_FAILED, "%s", err.text);
    int code = write_config(demo, port);
    if (code != EXIT_DONE)
        return code;
    if (child_start(&demo->daemon, demo->folder, "daemon", daemon, &err) != STATUS_OK)
        return cli_fail(EXIT_FAILED, "%s", err.text);
    demo->connection = (struct cli){ .server = demo->daemon.url };
    demo->began_at = clock_now(); /* the receiver counts its outage from the first request, which comes now */
    return client_open(&demo->connection, &demo->client);
}

static void introduce(struct demo *demo)
{
    say(demo, "a receiver at %s: it is slow at times and fails 5%% of the requests", demo->receiver.url);
    say(demo, "another at %s: it refuses everything with 422", demo->strict.url);
    say(demo, "the daemon at %s, its store and log in %s", demo->daemon.url, demo->folder);
    say(demo, "look at:  %s/  in a browser, or in another terminal:", demo->daemon.url);
    say(demo, "          export INSIST_SERVER=%s", demo->daemon.url);
    say(demo, "          insist dest list; insist alerts; insist incidents; insist dead list; insist events --follow");
    say(demo, "traffic starts: %d jobs a second of three tenants", JOBS_A_TICK * 1000 / TICK_MS);
}

/* ---- Running ---- */

static void append_jobs(struct demo *demo, struct buffer *body)
{
    static const char *const tenants[] = { "north", "south", "west" };
    static const char *const priorities[] = { "normal", "normal", "high", "normal", "critical" };
    for (int i = 0; i < JOBS_A_TICK; i++) {
        int64_t number = ++demo->added;
        const char *destination = number % 40 == 0 ? "strict" : number % 3 == 0 ? "invoices" : "orders";
        buffer_printf(body,
                      "{\"destination\":\"%s\",\"id\":\"%s-%" PRId64 "\",\"tenant\":\"%s\",\"priority\":\"%s\","
                      "\"payload\":{\"number\":%" PRId64 "}}\n",
                      destination, destination, number, tenants[number % 3], priorities[number % 5], number);
    }
}

static int add_jobs(struct demo *demo)
{
    struct buffer body = buffer_up_to(BUNDLE_BYTES_MAX);
    struct reply reply = { 0 };
    append_jobs(demo, &body);
    struct url url = url_to("/v1/jobs/batch");
    const struct request request = {
        .method = "POST", .url = &url, .content_type = "application/x-ndjson", .body = buffer_slice(&body)
    };
    int code = client_call(&demo->client, &request, &reply);
    reply_release(&reply);
    url_release(&url);
    buffer_release(&body);
    return code;
}

static int read_figures(struct demo *demo, struct figures *ret_figures)
{
    json_t *stats = NULL;
    struct url url = url_to("/v1/stats");
    int code = client_json(&demo->client, &(struct request){ .method = "GET", .url = &url }, &stats);
    const json_t *totals = json_object_get(stats, "totals");
    *ret_figures = (struct figures){
        .pending = member_int(totals, "pending"),
        .running = member_int(totals, "running"),
        .waiting = member_int(totals, "waiting"),
        .completed = member_int(totals, "completed"),
        .dead = member_int(totals, "dead"),
    };
    json_decref(stats);
    return code;
}

static int say_figures(struct demo *demo)
{
    struct figures figures;
    int code = read_figures(demo, &figures);
    if (code == EXIT_DONE)
        say(demo,
            "%" PRId64 " added: %" PRId64 " delivered, %" PRId64 " under way, %" PRId64 " pending, %" PRId64
            " waiting for their next try, %" PRId64 " dead",
            demo->added, figures.completed, figures.running, figures.pending, figures.waiting, figures.dead);
    return code;
}

static const char *mode_words(const char *mode)
{
    static const struct { const char *mode, *words; } known[] = {
        { "contingency", "its jobs are held and lose no tries; one now and then looks whether it is back" },
        { "recovering", "what was held goes out, a few at first" },
        { "normal", "as before; what it was: insist incidents, and insist incidents report ID" },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(mode, known[i].mode) == 0)
            return known[i].words;
    return "";
}

/* Tells of a mode that is new. */
static int say_mode(struct demo *demo)
{
    json_t *orders = NULL;
    struct url url = url_to("/v1/destinations/orders");
    int code = client_json(&demo->client, &(struct request){ .method = "GET", .url = &url }, &orders);
    const char *mode = member_text(orders, "mode");
    bool first = demo->mode[0] == '\0';
    if (mode && strcmp(mode, demo->mode) != 0) {
        snprintf(demo->mode, sizeof demo->mode, "%s", mode);
        if (!first)
            say(demo, "orders is in mode %s: %s", mode, mode_words(mode));
    }
    json_decref(orders);
    return code;
}

/* What is worth a sentence, once each. */
static void say_steps(struct demo *demo, int64_t elapsed_ms)
{
    if (demo->steps_reported == 0 && elapsed_ms >= demo->outage_from_ms) {
        demo->steps_reported++;
        say(demo, "OUTAGE: the receiver answers 503 to everything; none is lost, those of invoices wait longer and longer");
        say(demo, "         try: insist jobs --state waiting | head; insist why ID --tenant north");
    }
    if (demo->steps_reported == 1 && elapsed_ms >= demo->outage_to_ms) {
        demo->steps_reported++;
        say(demo, "RECOVERY: the receiver is back; orders finds out by itself and goes on in growing steps");
        say(demo, "         of invoices, whatever ran out of retries is a dead letter: insist dead list");
    }
}

static int run_traffic(struct demo *demo)
{
    int64_t figures_at_ms = FIGURES_EVERY_MS;
    int code = EXIT_DONE;
    while (code == EXIT_DONE && demo->code == EXIT_DONE && !interrupted) {
        int64_t elapsed_ms = clock_now() - demo->began_at;
        if (demo->for_ms > 0 && elapsed_ms >= demo->for_ms)
            break;
        if (!child_is_running(&demo->daemon) || !child_is_running(&demo->receiver))
            return cli_fail(EXIT_FAILED, "a process of the demo ended by itself; --keep keeps its log");
        code = add_jobs(demo);
        say_steps(demo, elapsed_ms);
        if (code == EXIT_DONE)
            code = say_mode(demo);
        if (code == EXIT_DONE && elapsed_ms >= figures_at_ms) {
            code = say_figures(demo);
            figures_at_ms += FIGURES_EVERY_MS;
        }
        nanosleep(&(struct timespec){ .tv_nsec = TICK_MS * 1000000L }, NULL);
    }
    return code == EXIT_DONE ? demo->code : code;
}

/* ---- Ending ---- */

static int remove_one(const char *path, UNUSED const struct stat *facts, UNUSED int kind, UNUSED struct FTW *place)
{
    return remove(path);
}

static void end_all(struct demo *demo)
{
    struct buffer summary = buffer_up_to(CLI_STDIN_BYTES_MAX);
    bool ran = demo->daemon.pid > 0;
    child_stop(&demo->daemon);
    child_stop(&demo->receiver);
    child_stop(&demo->strict);
    if (ran) {
        child_last_line(&demo->receiver, &summary);
        say(demo, "the daemon has ended; the receiver saw %s", summary.data ? summary.data : "nothing");
    }
    buffer_release(&summary);
    if (demo->keep)
        say(demo, "store, configuration and logs stay in %s", demo->folder);
    else if (demo->folder[0] && nftw(demo->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        cli_fail(EXIT_FAILED, "cannot remove %s: %s", demo->folder, strerror(errno));
}

static int play(struct demo *demo, int64_t port)
{
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    int code = make_folder(demo);
    if (code != EXIT_DONE)
        return code;
    code = start_all(demo, port);
    if (code == EXIT_DONE) {
        introduce(demo);
        code = run_traffic(demo);
    }
    if (code == EXIT_DONE)
        code = say_figures(demo);
    client_close(&demo->client);
    end_all(demo);
    return code;
}

int command_demo(struct cli *cli)
{
    struct demo demo = { .cli = cli, .outage_from_ms = OUTAGE_FROM_MS, .outage_to_ms = OUTAGE_TO_MS, .for_ms = -1 };
    int64_t port = 0;
    const struct option_row rows[] = {
        { "for", '\0', .duration = &demo.for_ms },
        { "port", 'p', .count = &port, .low = 0, .high = 65535 },
        { "keep", '\0', .flag = &demo.keep },
        { 0 },
    };
    if (!command_options(cli, rows, 0))
        return cli->code;
    if (demo.for_ms >= 0 && demo.for_ms < SHORTEST_MS)
        return cli_usage("demo", "--for is at least %ds", SHORTEST_MS / SECOND_MS);
    if (demo.for_ms >= 0 && demo.for_ms < 2 * OUTAGE_TO_MS) {
        demo.outage_from_ms = demo.for_ms / 4;
        demo.outage_to_ms = demo.for_ms / 2;
    }
    return play(&demo, port);
}
