#include "cli/commands.h"
#include "cli/options.h"
#include "cli/talk/client.h"
#include "cli/talk/found.h"
#include "cli/talk/show.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

static const struct shown facts[] = {
    { "id", "id", SHOW_TEXT },
    { "tenant", "tenant", SHOW_TEXT },
    { "destination", "destination", SHOW_TEXT },
    { "state", "state", SHOW_STATE },
    { "status", "status", SHOW_TEXT },
    { "held by", "held_by", SHOW_TEXT },
    { "priority", "priority", SHOW_TEXT },
    { "attempts", "attempt_count", SHOW_TEXT },
    { "attempts in all", "attempts_total", SHOW_TEXT },
    { "retries", "retry_count", SHOW_TEXT },
    { "retries at most", "max_retries", SHOW_TEXT },
    { "generation", "generation", SHOW_TEXT },
    { "next step", "step", SHOW_TEXT },
    { "created", "created_at", SHOW_TIME },
    { "updated", "updated_at", SHOW_TIME },
    { "due", "next_at|run_at", SHOW_TIME },
    { "deadline", "deadline", SHOW_TIME },
    { "leased until", "lease_until", SHOW_TIME },
    { "dead since", "dead_at", SHOW_TIME },
    { "kept until", "expires_at", SHOW_TIME },
    { "dead because", "dead_code", SHOW_TEXT },
    { "last class", "last_class", SHOW_TEXT },
    { "last code", "last_code", SHOW_TEXT },
    { "last error", "last_error", SHOW_TEXT },
    { "reference", "reference", SHOW_TEXT },
    { "correlation id", "correlation_id", SHOW_TEXT },
    { "content type", "content_type", SHOW_TEXT },
    { "headers", "headers", SHOW_TEXT },
    { "metadata", "metadata", SHOW_TEXT },
};

/*
 * Questions about a job stand among its sends, and each generation counts its attempts from 1: the first columns tell them
 * apart where there are any.
 */
static const struct shown attempt_columns[] = {
    { "GENERATION", "generation", SHOW_NUMBER }, { "STEP", "step", SHOW_TEXT },
    { "ATTEMPT", "attempt", SHOW_NUMBER }, { "AT", "at", SHOW_TIME },     { "TOOK", "duration_ms", SHOW_MS },
    { "CLASS", "class", SHOW_TEXT },       { "CODE", "code", SHOW_TEXT }, { "NEXT", "next_at", SHOW_TIME },
    { "ERROR", "error", SHOW_BRIEF },
};

static bool has_questions(const json_t *attempts)
{
    for (size_t i = 0; i < json_array_size(attempts); i++)
        if (json_object_get(json_array_get(attempts, i), "step"))
            return true;
    return false;
}

static int show(const struct cli *cli, json_t *job, struct buffer *out)
{
    const json_t *attempts = json_object_get(job, "attempts");
    show_facts(cli, job, facts, sizeof facts / sizeof *facts, out);
    if (json_array_size(attempts) == 0)
        return EXIT_DONE;
    buffer_append_byte(out, '\n');
    bool several = json_integer_value(json_object_get(job, "generation")) > 1;
    size_t from = several ? 0 : has_questions(attempts) ? 1 : 2;
    show_table(cli, attempts, attempt_columns + from, sizeof attempt_columns / sizeof *attempt_columns - from, out);
    return EXIT_DONE;
}

static int append_decoded(struct slice text, struct buffer *out)
{
    size_t padding = slice_has_suffix(text, SLICE("==")) ? 2 : slice_has_suffix(text, SLICE("=")) ? 1 : 0;
    char *room = buffer_reserve(out, text.len);
    int len = room ? EVP_DecodeBlock((unsigned char *)room, (const unsigned char *)text.data, (int)text.len) : -1;
    if (len < (int)padding)
        return cli_fail(EXIT_FAILED, "the daemon's payload_base64 cannot be decoded");
    buffer_commit(out, (size_t)len - padding);
    return EXIT_DONE;
}

/* The payload's bytes and nothing else, so that they can go to a file. */
static int show_payload(const struct cli *cli, json_t *job, struct buffer *out)
{
    (void)cli;
    const json_t *text = json_object_get(job, "payload");
    const json_t *encoded = json_object_get(job, "payload_base64");
    if (json_is_string(encoded))
        return append_decoded((struct slice){ json_string_value(encoded), json_string_length(encoded) }, out);
    if (!json_is_string(text))
        return cli_fail(EXIT_FAILED, "the daemon's answer has no payload");
    buffer_append(out, (struct slice){ json_string_value(text), json_string_length(text) });
    return EXIT_DONE;
}

int command_job(struct cli *cli, int argc, char **argv)
{
    const char *tenant = NULL;
    bool payload = false;
    const struct option_row rows[] = {
        { "tenant", 't', &tenant, NULL },
        { "payload", '\0', NULL, &payload },
        { NULL, '\0', NULL, NULL },
    };
    struct arguments arguments;
    int code;
    if (!command_options(cli, rows, argc, argv, 1, &arguments, &code))
        return code;
    if (arguments.count == 0)
        return cli_usage("job", "name the job");
    struct url url;
    char *owner = NULL;
    code = job_tenant(cli, arguments.items[0], tenant, &owner);
    if (code != EXIT_DONE)
        return code;
    url_init(&url, "/v1/jobs");
    url_segment(&url, arguments.items[0]);
    url_query(&url, "tenant", owner);
    url_query(&url, "payload", payload ? "true" : NULL);
    code = client_show(cli, &(struct request){ .method = "GET", .url = &url }, payload ? show_payload : show);
    url_release(&url);
    free(owner);
    return code;
}
