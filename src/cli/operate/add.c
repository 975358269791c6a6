#include "cli/commands.h"
#include "cli/operate/add_batch.h"
#include "cli/options.h"
#include "cli/talk/client.h"
#include "cli/talk/input.h"
#include "cli/talk/show.h"
#include "core/decision/job.h"

#include <string.h>
#include <unistd.h>

#define PAYLOAD_MISSING "name the payload's file, or - for standard input, or give it with --data"

/* What was typed. */
struct wish {
    const char *destination, *id, *tenant, *priority, *run_at, *deadline, *content_type, *correlation_id, *metadata, *data;
    instant run_at_time, deadline_time;
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

static int check_wish(struct wish *wish)
{
    enum priority priority;
    if (wish->priority && !priority_from_name(slice_from(wish->priority), &priority))
        return cli_usage("add", "--priority is critical, high or normal, not \"%s\"", wish->priority);
    int code = input_time("add", "run-at", wish->run_at, &wish->run_at_time);
    if (code == EXIT_DONE)
        code = input_time("add", "deadline", wish->deadline, &wish->deadline_time);
    return code == EXIT_DONE ? check_metadata(wish->metadata) : code;
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
    struct json_writer json = json_writer(out);
    json_object_begin(&json);
    json_member_text(&json, "destination", wish->destination);
    append_given(&json, "id", wish->id);
    append_given(&json, "tenant", wish->tenant);
    append_given(&json, "priority", wish->priority);
    append_given(&json, "content_type", wish->content_type);
    append_given(&json, "correlation_id", wish->correlation_id);
    json_member_instant(&json, "run_at", wish->run_at_time);
    json_member_instant(&json, "deadline", wish->deadline_time);
    if (wish->metadata) {
        json_name(&json, "metadata");
        json_put_raw(&json, slice_trim(slice_from(wish->metadata)));
    }
    int code = append_headers(&json, arguments);
    input_payload(&json, payload);
    json_object_end(&json);
    return code;
}

static int show_id(const struct cli *cli, json_t *answer, struct buffer *out)
{
    (void)cli;
    const json_t *id = json_object_get(answer, "id");
    if (!json_is_string(id))
        return cli_fail(EXIT_FAILED, "the daemon's answer has no id; is it of another version?");
    show_value(id, SHOW_TEXT, out);
    buffer_append_byte(out, '\n');
    warning_tell(answer);
    return EXIT_DONE;
}

static int add(const struct cli *cli, struct wish *wish, const struct arguments *arguments)
{
    struct buffer payload, body;
    buffer_init(&payload, INPUT_BYTES_MAX);
    buffer_init(&body, CLI_OUTPUT_BYTES_MAX);
    int code = check_wish(wish);
    if (code == EXIT_DONE && wish->data)
        buffer_append_text(&payload, wish->data);
    else if (code == EXIT_DONE)
        code = input_read(arguments->count > 1 ? arguments->items[1] : "-", &payload);
    if (code == EXIT_DONE && arguments->count == 1 && payload.len == 0 && !wish->data) /* nobody meant that */
        code = cli_usage("add", PAYLOAD_MISSING);
    if (code == EXIT_DONE)
        code = append_job(&body, wish, arguments, buffer_slice(&payload));
    if (code == EXIT_DONE && buffer_status(&body) != STATUS_OK)
        code = cli_fail(EXIT_USAGE, "the job does not fit into one request");
    if (code == EXIT_DONE) {
        struct url url;
        url_init(&url, "/v1/jobs");
        code = client_show(cli, &(struct request){ .method = "POST", .url = &url, .body = buffer_slice(&body) }, show_id);
    }
    buffer_release(&payload);
    buffer_release(&body);
    return code;
}

static int run_batch(const struct cli *cli, const struct wish *wish, const struct arguments *arguments)
{
    if (wish->id || wish->tenant || wish->priority || wish->run_at || wish->deadline || wish->content_type ||
        wish->correlation_id || wish->metadata || wish->data || arguments->repeated_count > 0)
        return cli_usage("add", "with --batch each line has its own members; of the options only --output goes with it");
    return add_batch(cli, arguments->count > 0 ? arguments->items[0] : NULL,
                     arguments->count > 1 ? arguments->items[1] : "-");
}

int command_add(struct cli *cli, int argc, char **argv)
{
    struct wish wish = { 0 };
    bool batch = false;
    const struct option_row rows[] = {
        { "id", '\0', &wish.id, NULL },
        { "tenant", 't', &wish.tenant, NULL },
        { "priority", 'p', &wish.priority, NULL },
        { "run-at", '\0', &wish.run_at, NULL },
        { "deadline", '\0', &wish.deadline, NULL },
        { "content-type", '\0', &wish.content_type, NULL },
        { "header", 'H', NULL, NULL },
        { "correlation-id", '\0', &wish.correlation_id, NULL },
        { "metadata", '\0', &wish.metadata, NULL },
        { "data", 'd', &wish.data, NULL },
        { "batch", 'b', NULL, &batch },
        { NULL, '\0', NULL, NULL },
    };
    struct arguments arguments;
    int code;
    if (!command_options(cli, rows, argc, argv, 2, &arguments, &code))
        return code;
    if (batch)
        return run_batch(cli, &wish, &arguments);
    if (arguments.count == 0)
        return cli_usage("add", "name the destination");
    if (arguments.count == 1 && !wish.data && isatty(STDIN_FILENO))
        return cli_usage("add", PAYLOAD_MISSING);
    if (arguments.count == 2 && wish.data)
        return cli_usage("add", "the payload is --data or a file, not both");
    wish.destination = arguments.items[0];
    return add(cli, &wish, &arguments);
}
