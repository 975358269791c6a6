#include "base/json.h"
#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/action.h"
#include "cli/talk/input.h"
#include "cli/talk/show.h"
#include "core/decision/job.h"

#include <openssl/evp.h>

/* ---- all that is known of it ---- */

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
    bool several = member_int(job, "generation") > 1;
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
static int show_payload(UNUSED const struct cli *cli, json_t *job, struct buffer *out)
{
    const json_t *text = json_object_get(job, "payload");
    const json_t *encoded = json_object_get(job, "payload_base64");
    if (json_is_string(encoded))
        return append_decoded((struct slice){ json_string_value(encoded), json_string_length(encoded) }, out);
    if (!json_is_string(text))
        return cli_fail(EXIT_FAILED, "the daemon's answer has no payload");
    buffer_append(out, (struct slice){ json_string_value(text), json_string_length(text) });
    return EXIT_DONE;
}

/* ---- why it is where it is ---- */

static const struct shown why_facts[] = {
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

static int show_why(const struct cli *cli, json_t *answer, struct buffer *out)
{
    show_value(json_object_get(answer, "id"), SHOW_TEXT, out);
    buffer_append_text(out, " is ");
    show_value(json_object_get(answer, "state"), SHOW_TEXT, out);
    buffer_append_text(out, " at ");
    show_value(json_object_get(answer, "destination"), SHOW_TEXT, out);
    buffer_append_byte(out, '\n');
    show_facts(cli, answer, why_facts, sizeof why_facts / sizeof *why_facts, out);
    return EXIT_DONE;
}

/* ---- the commands ---- */

/* What they begin with: options, and the job's name. False: the command is done, with cli->code. */
static bool about_job(struct cli *cli, const struct option_row *rows, struct action *action)
{
    if (!command_options(cli, rows, 1))
        return false;
    if (cli->arguments.count == 0) {
        cli->code = cli_usage(cli->command->name, "name the job");
        return false;
    }
    action->path = "/v1/jobs";
    action->name = cli->arguments.items[0];
    action->of_job = true;
    return true;
}

int command_job(struct cli *cli)
{
    struct action action = { .method = "GET" };
    const struct option_row rows[] = {
        { "tenant", 't', .value = &action.tenant },
        { "payload", '\0', .flag = &action.payload },
        { 0 },
    };
    if (!about_job(cli, rows, &action))
        return cli->code;
    action.show = action.payload ? show_payload : show;
    return action_run(cli, &action);
}

int command_why(struct cli *cli)
{
    struct action action = { .method = "GET", .verb = "why", .show = show_why };
    const struct option_row rows[] = { { "tenant", 't', .value = &action.tenant }, { 0 } };
    return about_job(cli, rows, &action) ? action_run(cli, &action) : cli->code;
}

/* For cancel and resend: the API's word is the command's. */
int command_order(struct cli *cli)
{
    struct action action = { .method = "POST", .verb = cli->command->name };
    const struct option_row rows[] = { { "tenant", 't', .value = &action.tenant }, { 0 } };
    return about_job(cli, rows, &action) ? action_run(cli, &action) : cli->code;
}

int command_prioritize(struct cli *cli)
{
    struct action action = { .method = "PATCH", .path = "/v1/jobs", .of_job = true };
    const struct option_row rows[] = { { "tenant", 't', .value = &action.tenant }, { 0 } };
    enum priority priority;
    if (!command_options(cli, rows, 2))
        return cli->code;
    if (cli->arguments.count < 2)
        return cli_usage("prioritize", "name the job and its class: critical, high or normal");
    if (!priority_from_name(slice_from(cli->arguments.items[1]), &priority))
        return cli_usage("prioritize", "a class is critical, high or normal, not \"%s\"", cli->arguments.items[1]);
    action.name = cli->arguments.items[0];
    action.members[0] = (struct action_member){ "priority", priority_name(priority), NULL };
    return action_run(cli, &action);
}

static int make_body(const char *path, struct buffer *body)
{
    struct buffer payload;
    struct json_writer json = json_writer(body);
    int code = EXIT_DONE;
    json_object_begin(&json);
    if (path) {
        code = input_read(path, INPUT_BYTES_MAX, &payload);
        input_payload(&json, buffer_slice(&payload));
        buffer_release(&payload);
    }
    json_object_end(&json);
    if (code == EXIT_DONE && buffer_status(body) != STATUS_OK)
        code = cli_fail(EXIT_USAGE, "the payload does not fit into one request");
    return code;
}

int command_retry(struct cli *cli)
{
    struct action action = { .method = "POST", .verb = "retry" };
    const char *payload = NULL;
    const struct option_row rows[] = {
        { "tenant", 't', .value = &action.tenant },
        { "payload", '\0', .value = &payload },
        { 0 },
    };
    if (!about_job(cli, rows, &action))
        return cli->code;
    struct buffer body = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    int code = make_body(payload, &body);
    action.body = buffer_slice(&body);
    if (code == EXIT_DONE)
        code = action_run(cli, &action);
    buffer_release(&body);
    return code;
}
