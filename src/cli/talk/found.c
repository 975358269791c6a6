#include "cli/talk/found.h"

#include "cli/talk/client.h"
#include "cli/talk/show.h"

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
    struct url url;
    struct reply reply = { 0 };
    json_t *page = NULL;
    url_init(&url, "/v1/jobs");
    url_query(&url, "id", search->id);
    url_query(&url, "cursor", search->next);
    int code = client_call(&search->client, &(struct request){ .method = "GET", .url = &url }, &reply);
    if (code == EXIT_DONE)
        code = reply_json(&search->client, &reply, &page);
    const json_t *jobs = json_object_get(page, "jobs");
    for (size_t i = 0; i < json_array_size(jobs); i++)
        take(search, json_array_get(jobs, i));
    const char *next = member_text(page, "next");
    snprintf(search->next, sizeof search->next, "%s", next ? next : "");
    json_decref(page);
    reply_release(&reply);
    url_release(&url);
    return code;
}

static int say(const struct search *search)
{
    if (search->count == 0)
        return cli_fail(EXIT_FAILED, "there is no job \"%s\", in no tenant that may be seen here", search->id);
    if (search->count == 1)
        return EXIT_DONE;
    return cli_fail(EXIT_FAILED, "%zu tenants have a job \"%s\": %.*s%s; say whose with --tenant", search->count, search->id,
                    SLICE_ARG(buffer_slice(&search->tenants)), search->count > TENANTS_NAMED_MAX ? " and others" : "");
}

int job_tenant(const struct cli *cli, const char *id, const char *given, char **ret_tenant)
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
        code = say(&search);
    if (code == EXIT_DONE)
        *ret_tenant = search.tenant;
    else
        free(search.tenant);
    client_close(&search.client);
    buffer_release(&search.tenants);
    return code;
}
