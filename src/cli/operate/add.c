#include "base/json.h"
#include "api/call/json_text.h"
#include "cli/cli.h"
#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/client.h"
#include "cli/talk/input.h"
#include "cli/talk/lines.h"
#include "cli/talk/show.h"
#include "core/decision/job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- many jobs, one a line ---- */

enum {
    BUNDLE_JOBS_MAX = 1000,
    BUNDLE_BYTES_MAX = 8 << 20,
    JOB_BYTES_MAX = 32 << 20,
    REJECTED_SHOWN_MAX = 20, /* on standard error; JSON has them all */
};

struct bundle {
    const struct cli *cli;
    const char *destination;
    struct client client;
    struct lines lines;
    struct buffer body;
    int64_t line;                     /* lines read so far */
    int64_t numbers[BUNDLE_JOBS_MAX]; /* the lines' numbers of the jobs in the bundle */
    size_t count;
    int64_t accepted, duplicates, rejected;
    struct buffer rejections; /* JSON array's inside */
    struct json_writer rejections_json;
    json_t *warning; /* the daemon's last one; NULL: none */
};

static void reject(struct bundle *bundle, int64_t line, struct slice type, struct slice detail)
{
    struct json_writer *json = &bundle->rejections_json;
    json_object_begin(json);
    json_member_int(json, "index", line - 1);
    json_member_string(json, "type", type);
    json_member_string(json, "detail", detail);
    json_object_end(json);
    bundle->rejected++;
    if (bundle->rejected > REJECTED_SHOWN_MAX)
        return;
    struct buffer text = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    plain_append(detail, &text);
    fprintf(stderr, "insist: line %" PRId64 ": %s\n", line, text.data ? text.data : "refused");
    buffer_release(&text);
    if (bundle->rejected == REJECTED_SHOWN_MAX)
        fprintf(stderr, "insist: further refusals are counted only; --output json has all\n");
}

/* An index of the daemon's is one of this bundle. */
static void take_rejections(struct bundle *bundle, const json_t *rejected)
{
    for (size_t i = 0; i < json_array_size(rejected); i++) {
        const json_t *item = json_array_get(rejected, i);
        json_int_t index = json_integer_value(json_object_get(item, "index"));
        int64_t line = index >= 0 && (size_t)index < bundle->count ? bundle->numbers[index] : bundle->line;
        reject(bundle, line, slice_from(member_text(item, "type")), slice_from(member_text(item, "detail")));
    }
}

/* Printed once: the queue is the same for all bundles. */
static void take_warning(struct bundle *bundle, const json_t *answer)
{
    json_t *warning = json_object_get(answer, "warning");
    if (!warning)
        return;
    if (!bundle->warning && !bundle->cli->json)
        warning_tell(answer);
    json_decref(bundle->warning);
    bundle->warning = json_incref(warning);
}

static int send_bundle(struct bundle *bundle)
{
    json_t *answer = NULL;
    if (bundle->count == 0)
        return EXIT_DONE;
    if (buffer_status(&bundle->body) != STATUS_OK)
        return cli_fail(EXIT_FAILED, "no memory for the lines");
    struct url url = url_to("/v1/jobs/batch");
    const struct request request = {
        .method = "POST",
        .url = &url,
        .content_type = "application/x-ndjson",
        .body = buffer_slice(&bundle->body),
    };
    int code = client_json(&bundle->client, &request, &answer);
    if (code == EXIT_DONE) {
        bundle->accepted += member_int(answer, "accepted");
        bundle->duplicates += member_int(answer, "duplicates");
        take_rejections(bundle, json_object_get(answer, "rejected"));
        take_warning(bundle, answer);
    } else {
        cli_fail(code,
                 "stopped at line %" PRId64 ": it and those after it may not be stored; "
                 "send them again, those with an id are not stored twice",
                 bundle->numbers[0]);
    }
    json_decref(answer);
    buffer_clear(&bundle->body);
    bundle->count = 0;
    return code;
}

static bool has_destination(struct slice line)
{
    json_t *job = json_loadb(line.data, line.len, JSON_ALLOW_NUL, NULL);
    const json_t *member = json_object_get(job, "destination");
    bool has = !json_is_object(job) || (member && !json_is_null(member));
    json_decref(job);
    return has; /* the daemon says what is wrong with a line that is no object */
}

/* The line as it is, so that numbers keep their digits; the destination goes in behind the brace. */
static void append_line(struct bundle *bundle, struct slice line)
{
    struct buffer *body = &bundle->body;
    struct slice exported = json_text_member(line, SLICE("job"));
    if (exported.len > 0 && json_text_member(line, SLICE("jobId")).len > 0)
        line = exported; /* as `insist dead export` wrote it */
    if (!bundle->destination || has_destination(line)) {
        buffer_append(body, line);
    } else {
        struct slice rest = slice_trim(slice_from_offset(line, 1));
        struct json_writer json = json_begin(body);
        json_member_text(&json, "destination", bundle->destination);
        if (!slice_equal(rest, SLICE("}")))
            buffer_append_byte(body, ',');
        buffer_append(body, rest);
    }
    buffer_append_byte(body, '\n');
    bundle->numbers[bundle->count++] = bundle->line;
}

static int take_lines(struct bundle *bundle)
{
    struct slice line;
    enum line_kind kind;
    int code = EXIT_DONE;
    while (code == EXIT_DONE && (kind = lines_next(&bundle->lines, &line)) != LINE_NONE) {
        bundle->line++;
        line = slice_trim(line);
        if (kind == LINE_TOO_LONG)
            reject(bundle, bundle->line, SLICE("too_large"), SLICE("the line is longer than a request may be"));
        else if (line.len > 0)
            append_line(bundle, line);
        if (bundle->count == BUNDLE_JOBS_MAX || bundle->body.len >= BUNDLE_BYTES_MAX)
            code = send_bundle(bundle);
    }
    return code;
}

static int take_input(struct bundle *bundle)
{
    int code = EXIT_DONE;
    while (code == EXIT_DONE && !bundle->lines.ended) {
        if (!lines_ready(&bundle->lines))
            code = send_bundle(bundle);
        if (code == EXIT_DONE && !lines_fill(&bundle->lines))
            code = cli_fail(EXIT_FAILED, "cannot read the jobs: %s", strerror(errno));
        if (code == EXIT_DONE)
            code = take_lines(bundle);
    }
    return code == EXIT_DONE ? send_bundle(bundle) : code;
}

static int print_sums(const struct bundle *bundle, int code)
{
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    if (bundle->cli->json) {
        struct json_writer json = json_begin(&out);
        json_member_int(&json, "accepted", bundle->accepted);
        json_member_int(&json, "duplicates", bundle->duplicates);
        json_member_array(&json, "rejected");
        json_put_raw(&json, buffer_slice(&bundle->rejections));
        json_array_end(&json);
        if (json_is_string(bundle->warning))
            json_member_text(&json, "warning", json_string_value(bundle->warning));
        json_object_end(&json);
        buffer_append_byte(&out, '\n');
    } else {
        buffer_printf(&out, "%" PRId64 " accepted, %" PRId64 " there already, %" PRId64 " refused\n", bundle->accepted,
                      bundle->duplicates, bundle->rejected);
    }
    return cli_print(&out, code);
}

/*
 * Enqueues the lines of `path` ("-": standard input). Lines without a destination get `destination`, unless it is NULL.
 * A bundle is sent when it is full and whenever the input pauses. Prints the sums; refused lines are reported on standard
 * error with their numbers. EXIT_USAGE when a line was refused, EXIT_FAILED when the daemon cannot be asked: then the lines
 * from the one that is named on were not taken.
 */
static int add_batch(const struct cli *cli, const char *destination, const char *path)
{
    static struct bundle bundle; /* large, and there is one */
    bundle = (struct bundle){ .cli = cli, .destination = destination };
    int descriptor = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return cli_fail(EXIT_USAGE, "cannot open %s: %s", path, strerror(errno));
    buffer_init(&bundle.body, CLI_OUTPUT_BYTES_MAX);
    buffer_init(&bundle.rejections, CLI_OUTPUT_BYTES_MAX);
    bundle.rejections_json = json_writer(&bundle.rejections);
    int code = client_open(cli, &bundle.client);
    if (code == EXIT_DONE && lines_init(&bundle.lines, descriptor, JOB_BYTES_MAX) != STATUS_OK)
        code = cli_fail(EXIT_FAILED, "no memory for the jobs");
    if (code == EXIT_DONE) {
        code = take_input(&bundle);
        code = print_sums(&bundle, code == EXIT_DONE && bundle.rejected > 0 ? EXIT_USAGE : code);
        lines_release(&bundle.lines);
    }
    json_decref(bundle.warning);
    client_close(&bundle.client);
    buffer_release(&bundle.body);
    buffer_release(&bundle.rejections);
    if (descriptor != STDIN_FILENO)
        close(descriptor);
    return code;
}

/* ---- one job ---- */

#define PAYLOAD_MISSING "name the payload's file, or - for standard input, or give it with --data"

/* What was typed. */
struct wish {
    const char *destination, *id, *tenant, *content_type, *correlation_id, *metadata, *key, *data;
    enum priority priority; /* PRIORITY_COUNT: not given */
    instant run_at, deadline;
};

static int check_metadata(const char *metadata)
{
    json_error_t problem;
    if (!metadata)
        return EXIT_DONE;
    json_t *value = json_loads(metadata, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);
    bool object = json_is_object(value);
    json_decref(value);
    if (!value)
        return cli_usage("add", "--metadata is not JSON: %s", problem.text);
    return object ? EXIT_DONE : cli_usage("add", "--metadata is a JSON object, as {\"order\": 7}");
}

/* 'Name: value' of every --header, as one object. */
static int append_headers(struct json_writer *json, const struct arguments *arguments)
{
    if (arguments->repeated_count == 0)
        return EXIT_DONE;
    json_t *headers = json_object();
    for (size_t i = 0; i < arguments->repeated_count; i++) {
        const char *text = arguments->repeated[i].value;
        struct slice line = slice_from(text);
        size_t colon = slice_find(line, ':');
        struct slice value = slice_trim(slice_from_offset(line, colon < line.len ? colon + 1 : line.len));
        struct slice name = slice_trim((struct slice){ line.data, colon });
        if (colon == line.len || name.len == 0) {
            json_decref(headers);
            return cli_usage("add", "--header is written as 'Name: value', not \"%s\"", text);
        }
        if (json_object_setn_new(headers, name.data, name.len, json_stringn(value.data, value.len)) != 0) {
            json_decref(headers);
            return cli_usage("add", "--header \"%s\" is not UTF-8", text);
        }
    }
    json_name(json, "headers");
    json_put_raw(json, SLICE(""));
    show_value(headers, SHOW_TEXT, json->out);
    json_decref(headers);
    return EXIT_DONE;
}

static void append_given(struct json_writer *json, const char *name, const char *value)
{
    if (value)
        json_member_text(json, name, value);
}

static int append_job(struct buffer *out, const struct wish *wish, const struct arguments *arguments, struct slice payload)
{
    struct json_writer json = json_begin(out);
    json_member_text(&json, "destination", wish->destination);
    append_given(&json, "id", wish->id);
    append_given(&json, "tenant", wish->tenant);
    if (wish->priority != PRIORITY_COUNT)
        json_member_text(&json, "priority", priority_name(wish->priority));
    append_given(&json, "content_type", wish->content_type);
    append_given(&json, "correlation_id", wish->correlation_id);
    append_given(&json, "key", wish->key);
    json_member_instant(&json, "run_at", wish->run_at);
    json_member_instant(&json, "deadline", wish->deadline);
    if (wish->metadata) {
        json_name(&json, "metadata");
        json_put_raw(&json, slice_trim(slice_from(wish->metadata)));
    }
    int code = append_headers(&json, arguments);
    input_payload(&json, payload);
    json_object_end(&json);
    return code;
}

static int show_id(UNUSED const struct cli *cli, json_t *answer, struct buffer *out)
{
    const json_t *id = json_object_get(answer, "id");
    if (!json_is_string(id))
        return cli_fail(EXIT_FAILED, "the daemon's answer has no id; is it of another version?");
    const char *state = member_text(answer, "state");
    bool dead = state && strcmp(state, "dead") == 0, cancelled = state && strcmp(state, "cancelled") == 0;
    if (json_is_false(json_object_get(answer, "created")) && (dead || cancelled)) /* which is hardly what was meant */
        fprintf(stderr, "insist: it was there already and is %s; nothing was changed: %s\n", state,
                dead ? "insist retry tries it again" : "to have it sent, give it another id");
    show_value(id, SHOW_TEXT, out);
    buffer_append_byte(out, '\n');
    warning_tell(answer);
    return EXIT_DONE;
}

static int add(const struct cli *cli, const struct wish *wish, const struct arguments *arguments)
{
    struct buffer payload = buffer_up_to(INPUT_BYTES_MAX), body = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    int code = check_metadata(wish->metadata);
    if (code == EXIT_DONE && wish->data)
        buffer_append_text(&payload, wish->data);
    else if (code == EXIT_DONE)
        code = input_read(arguments->count > 1 ? arguments->items[1] : "-", INPUT_BYTES_MAX, &payload);
    if (code == EXIT_DONE && arguments->count == 1 && payload.len == 0 && !wish->data) /* nobody meant that */
        code = cli_usage("add", PAYLOAD_MISSING);
    if (code == EXIT_DONE)
        code = append_job(&body, wish, arguments, buffer_slice(&payload));
    if (code == EXIT_DONE && buffer_status(&body) != STATUS_OK)
        code = cli_fail(EXIT_USAGE, "the job does not fit into one request");
    if (code == EXIT_DONE) {
        struct url url = url_to("/v1/jobs");
        code = client_show(cli, &(struct request){ .method = "POST", .url = &url, .body = buffer_slice(&body) }, show_id);
    }
    buffer_release(&payload);
    buffer_release(&body);
    return code;
}

static int run_batch(const struct cli *cli, const struct wish *wish, const struct arguments *arguments)
{
    if (wish->id || wish->tenant || wish->priority != PRIORITY_COUNT || wish->run_at != INSTANT_NONE ||
        wish->deadline != INSTANT_NONE || wish->content_type || wish->correlation_id || wish->metadata ||
        wish->key || wish->data ||
        arguments->repeated_count > 0)
        return cli_usage("add", "with --batch each line has its own members; of the options only --output goes with it");
    return add_batch(cli, arguments->count > 0 ? arguments->items[0] : NULL,
                     arguments->count > 1 ? arguments->items[1] : "-");
}

int command_add(struct cli *cli)
{
    struct wish wish = { .priority = PRIORITY_COUNT, .run_at = INSTANT_NONE, .deadline = INSTANT_NONE };
    bool batch = false;
    const struct option_row rows[] = {
        { "id", '\0', .value = &wish.id, .utf8 = true },
        { "tenant", 't', .value = &wish.tenant, .utf8 = true },
        { "priority", 'p', .priority = &wish.priority },
        { "run-at", '\0', .time = &wish.run_at },
        { "deadline", '\0', .time = &wish.deadline },
        { "content-type", '\0', .value = &wish.content_type, .utf8 = true },
        { "header", 'H', .repeated = true },
        { "correlation-id", '\0', .value = &wish.correlation_id, .utf8 = true },
        { "metadata", '\0', .value = &wish.metadata },
        { "key", '\0', .value = &wish.key, .utf8 = true },
        { "data", 'd', .value = &wish.data },
        { "batch", 'b', .flag = &batch },
        { 0 },
    };
    if (!command_options(cli, rows, 2))
        return cli->code;
    if (batch)
        return run_batch(cli, &wish, &cli->arguments);
    if (cli->arguments.count == 0)
        return cli_usage("add", "name the destination");
    if (cli->arguments.count == 1 && !wish.data && isatty(STDIN_FILENO))
        return cli_usage("add", PAYLOAD_MISSING);
    if (cli->arguments.count == 2 && wish.data)
        return cli_usage("add", "the payload is --data or a file, not both");
    wish.destination = cli->arguments.items[0];
    return add(cli, &wish, &cli->arguments);
}
