#include "base/units.h"
#include "cli/options.h"
#include "cli/play/flaky.h"
#include "cli/play/play.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 64 << 20, SHOWN_BYTES_MAX = 120 };

struct listener {
    struct event_base *loop;
    bool log, quiet, broken;
    uint64_t counts[FLAKY_FATES];
    uint64_t total;
};

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
    struct buffer out = buffer_up_to(LINE_BYTES_MAX);
    listener->counts[event->fate]++;
    listener->total++;
    if (listener->quiet)
        return;
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

static void on_signal(UNUSED evutil_socket_t number, UNUSED short what, void *context)
{
    struct listener *listener = context;
    event_base_loopbreak(listener->loop);
}

static int print_start(const struct flaky *flaky)
{
    struct buffer out = buffer_up_to(LINE_BYTES_MAX);
    buffer_printf(&out, "listening on http://127.0.0.1:%d; Ctrl-C ends it\n", flaky_port(flaky));
    return cli_print(&out, EXIT_DONE);
}

static int print_summary(const struct listener *listener)
{
    struct buffer out = buffer_up_to(LINE_BYTES_MAX);
    buffer_printf(&out, "%" PRIu64 " request%s", listener->total, listener->total == 1 ? "" : "s");
    for (enum flaky_fate fate = 0; fate < FLAKY_FATES; fate++)
        if (listener->counts[fate] > 0)
            buffer_printf(&out, ", %s %" PRIu64, flaky_fate_name(fate), listener->counts[fate]);
    buffer_append_byte(&out, '\n');
    return cli_print(&out, EXIT_DONE);
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
    struct flaky_settings settings = { .port = 8080, .status = 200, .fail_status = 503, .retry_after_s = -1 };
    struct listener listener = { 0 };
    const char *outage = NULL, *body = "ok\n";
    const struct option_row rows[] = {
        { "port", 'p', .count = &settings.port, .low = 0, .high = 65535 },
        { "status", '\0', .count = &settings.status, .low = 200, .high = 599 },
        { "fail", '\0', .part = &settings.fail_rate },
        { "fail-status", '\0', .count = &settings.fail_status, .low = 200, .high = 599 },
        { "latency", '\0', .duration = &settings.latency_ms },
        { "jitter", '\0', .duration = &settings.jitter_ms },
        { "outage", '\0', .value = &outage },
        { "retry-after", '\0', .count = &settings.retry_after_s, .low = 0, .high = INT32_MAX },
        { "hang", '\0', .part = &settings.hang_rate },
        { "reset", '\0', .part = &settings.reset_rate },
        { "body", '\0', .value = &body },
        { "limit", '\0', .count = &settings.limit, .low = 1, .high = 1000000 },
        { "seed", '\0', .count = &settings.seed, .low = 0, .high = INT64_MAX },
        { "log", '\0', .flag = &listener.log },
        { "quiet", 'q', .flag = &listener.quiet },
        { 0 },
    };
    if (!command_options(cli, rows, 0))
        return cli->code;
    int code = option_span(outage, &settings.outage_from_ms, &settings.outage_until_ms);
    if (code != EXIT_DONE)
        return code;
    if (settings.fail_rate + settings.hang_rate + settings.reset_rate > 1)
        return cli_usage("listen", "--fail, --hang and --reset together are more than all requests");
    settings.body = slice_from(body);
    listener.loop = event_base_new();
    if (!listener.loop)
        return cli_fail(EXIT_FAILED, "no memory");
    code = serve(&listener, &settings);
    event_base_free(listener.loop);
    return code;
}
