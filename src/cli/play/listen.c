#include "base/units.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/play/flaky.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 64 << 20, PORT_DEFAULT = 8080, SHOWN_BYTES_MAX = 120 };

struct listen_options {
    const char *port, *status, *fail, *fail_status, *latency, *jitter, *outage, *retry_after;
    const char *hang, *reset, *body, *limit, *seed;
    bool log, quiet;
};

struct listener {
    struct event_base *loop;
    bool log, quiet, broken;
    uint64_t counts[FLAKY_FATES];
    uint64_t total;
};

static int option_duration(const char *name, const char *text, int64_t *ret_ms)
{
    struct error err;
    if (text && duration_parse(slice_from(text), ret_ms, &err) != STATUS_OK)
        return cli_usage("listen", "--%s: %s", name, err.text);
    return EXIT_DONE;
}

/* "0.2" or "20%". */
static int option_rate(const char *name, const char *text, double *ret_rate)
{
    struct slice number = slice_from(text);
    double scale = 1, rate;
    if (!text)
        return EXIT_DONE;
    if (slice_has_suffix(number, SLICE("%"))) {
        number.len--;
        scale = 100;
    }
    if (!slice_to_double(number, &rate) || !(rate >= 0 && rate <= scale))
        return cli_usage("listen", "--%s is a part such as 0.2 or 20%%, not \"%s\"", name, text);
    *ret_rate = rate / scale;
    return EXIT_DONE;
}

/* "10s..40s"; without a FROM it begins at once. */
static int option_span(const char *text, int64_t *ret_from_ms, int64_t *ret_until_ms)
{
    struct slice all = slice_from(text);
    size_t dots = slice_search(all, SLICE(".."));
    struct slice from = { all.data, dots };
    if (!text)
        return EXIT_DONE;
    *ret_from_ms = 0;
    if (dots == all.len || (from.len > 0 && duration_parse(from, ret_from_ms, NULL) != STATUS_OK) ||
        duration_parse(slice_from_offset(all, dots + 2), ret_until_ms, NULL) != STATUS_OK || *ret_until_ms <= *ret_from_ms)
        return cli_usage("listen", "--outage is FROM..TO such as 10s..40s, not \"%s\"", text);
    return EXIT_DONE;
}

static int read_numbers(const struct listen_options *options, struct flaky_settings *settings)
{
    int64_t port = PORT_DEFAULT, status = 200, fail_status = 503, seed = 0;
    int code = option_count("listen", "port", options->port, 0, 65535, &port);
    if (code == EXIT_DONE)
        code = option_count("listen", "status", options->status, 200, 599, &status);
    if (code == EXIT_DONE)
        code = option_count("listen", "fail-status", options->fail_status, 200, 599, &fail_status);
    if (code == EXIT_DONE)
        code = option_count("listen", "limit", options->limit, 1, 1000000, &settings->limit);
    if (code == EXIT_DONE)
        code = option_count("listen", "retry-after", options->retry_after, 0, INT32_MAX, &settings->retry_after_s);
    if (code == EXIT_DONE)
        code = option_count("listen", "seed", options->seed, 0, INT64_MAX, &seed);
    settings->port = (int)port;
    settings->status = (int)status;
    settings->fail_status = (int)fail_status;
    settings->seed = (uint64_t)seed;
    return code;
}

static int read_settings(const struct listen_options *options, struct flaky_settings *settings)
{
    int code = read_numbers(options, settings);
    if (code == EXIT_DONE)
        code = option_rate("fail", options->fail, &settings->fail_rate);
    if (code == EXIT_DONE)
        code = option_rate("hang", options->hang, &settings->hang_rate);
    if (code == EXIT_DONE)
        code = option_rate("reset", options->reset, &settings->reset_rate);
    if (code == EXIT_DONE && settings->fail_rate + settings->hang_rate + settings->reset_rate > 1)
        code = cli_usage("listen", "--fail, --hang and --reset together are more than all requests");
    if (code == EXIT_DONE)
        code = option_duration("latency", options->latency, &settings->latency_ms);
    if (code == EXIT_DONE)
        code = option_duration("jitter", options->jitter, &settings->jitter_ms);
    if (code == EXIT_DONE)
        code = option_span(options->outage, &settings->outage_from_ms, &settings->outage_until_ms);
    if (options->body)
        settings->body = slice_from(options->body);
    return code;
}

/* What a terminal must not be made to do is not printed. */
static void append_visible(struct buffer *out, struct slice text, size_t bytes_max, bool lines)
{
    for (size_t i = 0; i < text.len && i < bytes_max; i++) {
        bool keep = (unsigned char)text.data[i] >= ' ' && text.data[i] != 0x7f;
        buffer_append_byte(out, keep || (lines && (text.data[i] == '\n' || text.data[i] == '\t')) ? text.data[i] : '.');
    }
}

static void append_line(struct buffer *out, const struct flaky_event *event)
{
    buffer_printf(out, "%6" PRId64 ".%03" PRId64 "s  #%" PRIu64 "  %s ", event->at_ms / 1000, event->at_ms % 1000,
                  event->number, event->method);
    append_visible(out, event->path, SHOWN_BYTES_MAX, false);
    buffer_printf(out, "  %zu B  ", event->body.len);
    if (event->status)
        buffer_printf(out, "%d", event->status);
    else
        buffer_append_text(out, "---");
    buffer_printf(out, " %s  %" PRId64 "ms", flaky_fate_name(event->fate), event->took_ms);
    if (event->key.len > 0) {
        buffer_append_text(out, "  ");
        append_visible(out, event->key, SHOWN_BYTES_MAX, false);
    }
    if (event->attempt.len > 0) {
        buffer_append_text(out, " try ");
        append_visible(out, event->attempt, SHOWN_BYTES_MAX, false);
    }
    buffer_append_byte(out, '\n');
}

static void on_seen(void *context, const struct flaky_event *event)
{
    struct listener *listener = context;
    struct buffer out;
    listener->counts[event->fate]++;
    listener->total++;
    if (listener->quiet)
        return;
    buffer_init(&out, LINE_BYTES_MAX);
    append_line(&out, event);
    if (listener->log) {
        append_visible(&out, event->headers, event->headers.len, true);
        buffer_append_byte(&out, '\n');
        append_visible(&out, event->body, event->body.len, true);
        buffer_append_text(&out, event->body.len > 0 ? "\n\n" : "");
    }
    /* A reader that went away ends it. */
    if (cli_write(STDOUT_FILENO, buffer_slice(&out)) != STATUS_OK) {
        listener->broken = true;
        event_base_loopbreak(listener->loop);
    }
    buffer_release(&out);
}

static void on_signal(evutil_socket_t number, short what, void *context)
{
    struct listener *listener = context;
    (void)number;
    (void)what;
    event_base_loopbreak(listener->loop);
}

static int print_start(const struct flaky *flaky)
{
    struct buffer out;
    buffer_init(&out, LINE_BYTES_MAX);
    buffer_printf(&out, "listening on http://127.0.0.1:%d; Ctrl-C ends it\n", flaky_port(flaky));
    int code = cli_print(&out, EXIT_DONE);
    buffer_release(&out);
    return code;
}

static int print_summary(const struct listener *listener)
{
    struct buffer out;
    buffer_init(&out, LINE_BYTES_MAX);
    buffer_printf(&out, "%" PRIu64 " request%s", listener->total, listener->total == 1 ? "" : "s");
    for (enum flaky_fate fate = 0; fate < FLAKY_FATES; fate++)
        if (listener->counts[fate] > 0)
            buffer_printf(&out, ", %s %" PRIu64, flaky_fate_name(fate), listener->counts[fate]);
    buffer_append_byte(&out, '\n');
    int code = cli_print(&out, EXIT_DONE);
    buffer_release(&out);
    return code;
}

static int serve(struct listener *listener, const struct flaky_settings *settings)
{
    struct flaky *flaky = NULL;
    struct error err;
    int code = EXIT_FAILED;
    struct event *interrupt = evsignal_new(listener->loop, SIGINT, on_signal, listener);
    struct event *terminate = evsignal_new(listener->loop, SIGTERM, on_signal, listener);
    if (!interrupt || !terminate || event_add(interrupt, NULL) != 0 || event_add(terminate, NULL) != 0)
        code = cli_fail(EXIT_FAILED, "no memory");
    else if (flaky_new(listener->loop, settings, on_seen, listener, &flaky, &err) != STATUS_OK)
        code = cli_fail(EXIT_FAILED, "%s", err.text);
    else
        code = print_start(flaky);
    if (flaky && code == EXIT_DONE) {
        event_base_dispatch(listener->loop);
        code = listener->broken ? EXIT_FAILED : print_summary(listener);
    }
    flaky_free(flaky);
    if (interrupt)
        event_free(interrupt);
    if (terminate)
        event_free(terminate);
    return code;
}

int command_listen(struct cli *cli)
{
    struct listen_options options = { 0 };
    const struct option_row rows[] = {
        { "port", 'p', &options.port, NULL },
        { "status", '\0', &options.status, NULL },
        { "fail", '\0', &options.fail, NULL },
        { "fail-status", '\0', &options.fail_status, NULL },
        { "latency", '\0', &options.latency, NULL },
        { "jitter", '\0', &options.jitter, NULL },
        { "outage", '\0', &options.outage, NULL },
        { "retry-after", '\0', &options.retry_after, NULL },
        { "hang", '\0', &options.hang, NULL },
        { "reset", '\0', &options.reset, NULL },
        { "body", '\0', &options.body, NULL },
        { "limit", '\0', &options.limit, NULL },
        { "seed", '\0', &options.seed, NULL },
        { "log", '\0', NULL, &options.log },
        { "quiet", 'q', NULL, &options.quiet },
        { NULL, '\0', NULL, NULL },
    };
    struct flaky_settings settings = { .retry_after_s = -1, .body = SLICE("ok\n") };
    if (!command_options(cli, rows, 0))
        return cli->code;
    int code = read_settings(&options, &settings);
    if (code != EXIT_DONE)
        return code;
    struct listener listener = { .loop = event_base_new(), .log = options.log, .quiet = options.quiet };
    if (!listener.loop)
        return cli_fail(EXIT_FAILED, "no memory");
    code = serve(&listener, &settings);
    event_base_free(listener.loop);
    return code;
}
