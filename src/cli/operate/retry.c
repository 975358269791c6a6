#include "cli/commands.h"
#include "cli/options.h"
#include "cli/talk/action.h"
#include "cli/talk/input.h"

static int make_body(const char *path, struct buffer *body)
{
    struct buffer payload;
    struct json_writer json = json_writer(body);
    int code = EXIT_DONE;
    json_object_begin(&json);
    if (path) {
        code = input_read(path, &payload);
        input_payload(&json, buffer_slice(&payload));
        buffer_release(&payload);
    }
    json_object_end(&json);
    if (code == EXIT_DONE && buffer_status(body) != STATUS_OK)
        code = cli_fail(EXIT_USAGE, "the payload does not fit into one request");
    return code;
}

int command_retry(struct cli *cli, int argc, char **argv)
{
    const char *tenant = NULL, *payload = NULL;
    const struct option_row rows[] = {
        { "tenant", 't', &tenant, NULL },
        { "payload", '\0', &payload, NULL },
        { NULL, '\0', NULL, NULL },
    };
    struct arguments arguments;
    int code;
    if (!command_options(cli, rows, argc, argv, 1, &arguments, &code))
        return code;
    if (arguments.count == 0)
        return cli_usage("retry", "name the job");
    struct buffer body;
    buffer_init(&body, CLI_OUTPUT_BYTES_MAX);
    code = make_body(payload, &body);
    if (code == EXIT_DONE) {
        const struct action action = {
            .method = "POST",
            .path = "/v1/jobs",
            .name = arguments.items[0],
            .verb = "retry",
            .of_job = true,
            .tenant = tenant,
            .body = buffer_slice(&body),
        };
        code = action_run(cli, &action);
    }
    buffer_release(&body);
    return code;
}
