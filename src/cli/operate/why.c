#include "cli/commands.h"
#include "cli/options.h"
#include "cli/talk/client.h"
#include "cli/talk/found.h"
#include "cli/talk/show.h"

#include <stdlib.h>

static const struct shown facts[] = {
    { "because", "reason", SHOW_TEXT },
    { "then", "next", SHOW_TEXT },
    { "held by", "held_by", SHOW_TEXT },
    { "since", "since", SHOW_TIME },
    { "until", "until", SHOW_TIME },
    { "next look at", "next_look_at", SHOW_TIME },
    { "due", "next_at", SHOW_TIME },
    { "expected", "queue.expected_at", SHOW_TIME },
    { "before it, of its tenant", "queue.ahead", SHOW_TEXT },
    { "before it, of all", "queue.before", SHOW_TEXT },
    { "tenants with work", "queue.tenants", SHOW_TEXT },
    { "limited by", "queue.limited_by", SHOW_TEXT },
    { "attempts", "attempt_count", SHOW_TEXT },
    { "retries", "retry_count", SHOW_TEXT },
    { "retries at most", "max_retries", SHOW_TEXT },
    { "last code", "last_code", SHOW_TEXT },
    { "last error", "last_error", SHOW_TEXT },
    { "dead because", "dead_code", SHOW_TEXT },
};

static int show(const struct cli *cli, json_t *answer, struct buffer *out)
{
    show_value(json_object_get(answer, "id"), SHOW_TEXT, out);
    buffer_append_text(out, " is ");
    show_value(json_object_get(answer, "state"), SHOW_TEXT, out);
    buffer_append_text(out, " at ");
    show_value(json_object_get(answer, "destination"), SHOW_TEXT, out);
    buffer_append_byte(out, '\n');
    show_facts(cli, answer, facts, sizeof facts / sizeof *facts, out);
    return EXIT_DONE;
}

int command_why(struct cli *cli, int argc, char **argv)
{
    const char *tenant = NULL;
    const struct option_row rows[] = { { "tenant", 't', &tenant, NULL }, { NULL, '\0', NULL, NULL } };
    struct arguments arguments;
    int code;
    if (!command_options(cli, rows, argc, argv, 1, &arguments, &code))
        return code;
    if (arguments.count == 0)
        return cli_usage("why", "name the job");
    struct url url;
    char *owner = NULL;
    code = job_tenant(cli, arguments.items[0], tenant, &owner);
    if (code != EXIT_DONE)
        return code;
    url_init(&url, "/v1/jobs");
    url_segment(&url, arguments.items[0]);
    url_segment(&url, "why");
    url_query(&url, "tenant", owner);
    code = client_show(cli, &(struct request){ .method = "GET", .url = &url }, show);
    url_release(&url);
    free(owner);
    return code;
}
