#include "cli/operate/add_batch.h"

#include "base/json.h"
#include "cli/talk/client.h"
#include "cli/talk/lines.h"
#include "cli/talk/show.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    BUNDLE_JOBS_MAX = 1000,
    BUNDLE_BYTES_MAX = 8 << 20,
    JOB_BYTES_MAX = 32 << 20,
    REJECTED_TOLD_MAX = 20, /* on standard error; JSON has them all */
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
    if (bundle->rejected > REJECTED_TOLD_MAX)
        return;
    struct buffer text;
    buffer_init(&text, CLI_OUTPUT_BYTES_MAX);
    plain_append(detail, &text);
    fprintf(stderr, "insist: line %" PRId64 ": %s\n", line, text.data ? text.data : "refused");
    buffer_release(&text);
    if (bundle->rejected == REJECTED_TOLD_MAX)
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

/* Told once: the queue is the same for all bundles. */
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
    struct url url;
    struct reply reply = { 0 };
    json_t *answer = NULL;
    if (bundle->count == 0)
        return EXIT_DONE;
    if (buffer_status(&bundle->body) != STATUS_OK)
        return cli_fail(EXIT_FAILED, "no memory for the lines");
    url_init(&url, "/v1/jobs/batch");
    const struct request request = {
        .method = "POST",
        .url = &url,
        .content_type = "application/x-ndjson",
        .body = buffer_slice(&bundle->body),
    };
    int code = client_call(&bundle->client, &request, &reply);
    if (code == EXIT_DONE)
        code = reply_json(&bundle->client, &reply, &answer);
    if (code == EXIT_DONE) {
        bundle->accepted += json_integer_value(json_object_get(answer, "accepted"));
        bundle->duplicates += json_integer_value(json_object_get(answer, "duplicates"));
        take_rejections(bundle, json_object_get(answer, "rejected"));
        take_warning(bundle, answer);
    } else {
        cli_fail(code,
                 "stopped at line %" PRId64 ": it and those after it may not be stored; "
                 "send them again, those with an id are not stored twice",
                 bundle->numbers[0]);
    }
    json_decref(answer);
    reply_release(&reply);
    url_release(&url);
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
    if (!bundle->destination || has_destination(line)) {
        buffer_append(body, line);
    } else {
        struct slice rest = slice_trim(slice_from_offset(line, 1));
        struct json_writer json = json_writer(body);
        json_object_begin(&json);
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
    struct buffer out;
    buffer_init(&out, CLI_OUTPUT_BYTES_MAX);
    if (bundle->cli->json) {
        struct json_writer json = json_writer(&out);
        json_object_begin(&json);
        json_member_int(&json, "accepted", bundle->accepted);
        json_member_int(&json, "duplicates", bundle->duplicates);
        json_name(&json, "rejected");
        json_array_begin(&json);
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
    code = cli_print(&out, code);
    buffer_release(&out);
    return code;
}

int add_batch(const struct cli *cli, const char *destination, const char *path)
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
