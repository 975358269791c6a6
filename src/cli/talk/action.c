#include "cli/talk/action.h"

#include "api/http/answer.h"
#include "base/json.h"
#include "cli/talk/client.h"
#include "cli/talk/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENANTS_NAMED_MAX = 10 };

struct search {
    struct client client;
    const char *id;
    size_t count;          /* jobs found */
    char *tenant;          /* of the first */
    struct buffer tenants; /* all, for the message */
    char next[32];         /* the cursor of the next page; empty: that was all */
};

static void take(struct search *search, const json_t *job)
{
    const char *tenant = member_text(job, "tenant");
    tenant = tenant ? tenant : "";
    if (search->count++ == 0)
        search->tenant = strdup(tenant);
    if (search->count > TENANTS_NAMED_MAX)
        return;
    buffer_append_text(&search->tenants, search->count > 1 ? ", " : "");
    buffer_append_byte(&search->tenants, '"');
    show_value(json_object_get(job, "tenant"), SHOW_TEXT, &search->tenants);
    buffer_append_byte(&search->tenants, '"');
}

/* One page: a page may be empty although more follow. */
static int look(struct search *search)
{
    json_t *page = NULL;
    struct url url = url_to("/v1/jobs");
    url_query(&url, "id", search->id);
    url_query(&url, "cursor", search->next);
    int code = client_json(&search->client, &(struct request){ .method = "GET", .url = &url }, &page);
    const json_t *jobs = json_object_get(page, "jobs");
    for (size_t i = 0; i < json_array_size(jobs); i++)
        take(search, json_array_get(jobs, i));
    const char *next = member_text(page, "next");
    snprintf(search->next, sizeof search->next, "%s", next ? next : "");
    json_decref(page);
    return code;
}

/* What the daemon would say if it were asked for that, in its form where that is wanted. */
static int refuse(const struct cli *cli, int status, const char *type, struct buffer *detail)
{
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    const char *text = buffer_status(detail) == STATUS_OK ? detail->data : "no memory for the message";
    int code = cli_fail(EXIT_FAILED, "%s", text);
    if (cli->json) {
        problem_write(&out, status, type, (struct text_place){ 0 }, text);
        buffer_append_byte(&out, '\n');
        code = cli_print(&out, code);
    }
    buffer_release(detail);
    return code;
}

static int say(const struct cli *cli, const struct search *search)
{
    struct buffer detail = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    if (search->count == 1)
        return EXIT_DONE;
    if (search->count == 0) {
        buffer_printf(&detail, "there is no job \"%s\", in no tenant that may be seen here", search->id);
        return refuse(cli, 404, "job_not_found", &detail);
    }
    buffer_printf(&detail, "%zu tenants have a job \"%s\": %.*s%s; say whose with --tenant", search->count, search->id,
                  SLICE_ARG(buffer_slice(&search->tenants)), search->count > TENANTS_NAMED_MAX ? " and others" : "");
    return refuse(cli, 409, "tenant_needed", &detail);
}

/*
 * Looks for the job in every tenant that the token may see, unless `given` (NULL: not given) says whose it is. *ret_tenant
 * is to be freed; empty: the one without a tenant. EXIT_FAILED after a message: there is none, or several tenants have one.
 */
static int job_tenant(const struct cli *cli, const char *id, const char *given, char **ret_tenant)
{
    struct search search = { .id = id };
    if (given) {
        *ret_tenant = strdup(given);
        return *ret_tenant ? EXIT_DONE : cli_fail(EXIT_FAILED, "no memory for the request");
    }
    buffer_init(&search.tenants, CLI_OUTPUT_BYTES_MAX);
    int code = client_open(cli, &search.client);
    while (code == EXIT_DONE) {
        code = look(&search);
        if (search.next[0] == '\0')
            break;
    }
    if (code == EXIT_DONE)
        code = say(cli, &search);
    if (code == EXIT_DONE)
        *ret_tenant = search.tenant;
    else
        free(search.tenant);
    client_close(&search.client);
    buffer_release(&search.tenants);
    return code;
}

static int show_outcome(UNUSED const struct cli *cli, json_t *answer, struct buffer *out)
{
    const json_t *id = json_object_get(answer, "id");
    const json_t *state = json_object_get(answer, "state");
    show_value(id ? id : json_object_get(answer, "name"), SHOW_TEXT, out);
    buffer_append_text(out, ": ");
    show_value(state ? state : json_object_get(answer, "mode"), SHOW_TEXT, out);
    if (json_object_get(answer, "acknowledged"))
        buffer_append_text(out, ", acknowledged");
    if (json_object_get(answer, "priority")) {
        buffer_append_text(out, ", priority ");
        show_value(json_object_get(answer, "priority"), SHOW_TEXT, out);
    }
    int64_t paused = member_int(answer, "tenants_paused");
    if (paused > 0)
        buffer_printf(out, ", %" PRId64 " %s paused", paused, paused == 1 ? "tenant" : "tenants");
    buffer_append_byte(out, '\n');
    return EXIT_DONE;
}

static void write_members(const struct action *action, struct buffer *out)
{
    struct json_writer json = json_begin(out);
    for (const struct action_member *member = action->members; member < action->members + ACTION_MEMBERS_MAX; member++)
        if (member->flag)
            json_member_bool(&json, member->name, *member->flag);
        else if (member->text)
            json_member_text(&json, member->name, member->text);
    json_object_end(&json);
}

int action_run(const struct cli *cli, const struct action *action)
{
    struct buffer body = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    char *tenant = NULL;
    if (!*action->name)
        return cli_usage(cli->command->name, "the name is empty");
    if (action->of_job) {
        int found = job_tenant(cli, action->name, action->tenant, &tenant);
        if (found != EXIT_DONE)
            return found;
    }
    struct url url = url_to(action->path);
    url_segment(&url, action->name);
    if (action->verb)
        url_segment(&url, action->verb);
    url_query(&url, "tenant", tenant);
    url_query(&url, "payload", action->payload ? "true" : NULL);
    struct request request = { .method = action->method, .url = &url, .body = action->body };
    if (!request.body.data && strcmp(request.method, "GET") != 0) {
        write_members(action, &body);
        request.body = buffer_slice(&body);
    }
    int code = buffer_status(&body) == STATUS_OK
                   ? client_show(cli, &request, action->show ? action->show : show_outcome)
                   : cli_fail(EXIT_FAILED, "no memory for the request");
    buffer_release(&body);
    free(tenant);
    return code;
}
