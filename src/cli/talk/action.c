#include "cli/talk/action.h"

#include "cli/talk/client.h"
#include "cli/talk/found.h"
#include "cli/talk/show.h"

#include <stdlib.h>

static int show_outcome(const struct cli *cli, json_t *answer, struct buffer *out)
{
    const json_t *id = json_object_get(answer, "id");
    const json_t *state = json_object_get(answer, "state");
    (void)cli;
    show_value(id ? id : json_object_get(answer, "name"), SHOW_TEXT, out);
    buffer_append_text(out, ": ");
    show_value(state ? state : json_object_get(answer, "mode"), SHOW_TEXT, out);
    if (json_object_get(answer, "acknowledged"))
        buffer_append_text(out, ", acknowledged");
    if (json_object_get(answer, "priority")) {
        buffer_append_text(out, ", priority ");
        show_value(json_object_get(answer, "priority"), SHOW_TEXT, out);
    }
    json_int_t paused = json_integer_value(json_object_get(answer, "tenants_paused"));
    if (paused > 0)
        buffer_printf(out, ", %" JSON_INTEGER_FORMAT " %s paused", paused, paused == 1 ? "tenant" : "tenants");
    buffer_append_byte(out, '\n');
    return EXIT_DONE;
}

int action_run(const struct cli *cli, const struct action *action)
{
    struct url url;
    char *tenant = NULL;
    if (action->of_job) {
        int found = job_tenant(cli, action->name, action->tenant, &tenant);
        if (found != EXIT_DONE)
            return found;
    }
    url_init(&url, action->path);
    url_segment(&url, action->name);
    if (action->verb)
        url_segment(&url, action->verb);
    url_query(&url, "tenant", tenant);
    const struct request request = { .method = action->method, .url = &url, .body = action->body };
    int code = client_show(cli, &request, show_outcome);
    url_release(&url);
    free(tenant);
    return code;
}
