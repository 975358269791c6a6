#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/pages.h"
#include "core/decision/job.h"

int command_jobs(struct cli *cli)
{
    static const struct shown columns[] = {
        { "ID", "id", SHOW_TEXT },
        { "TENANT", "tenant", SHOW_TEXT },
        { "DESTINATION", "destination", SHOW_TEXT },
        { "STATE", "state", SHOW_STATE },
        { "HELD BY", "held_by", SHOW_TEXT },
        { "PRIORITY", "priority", SHOW_TEXT },
        { "TRIES", "attempt_count", SHOW_NUMBER },
        { "CREATED", "created_at", SHOW_TIME },
        { "NEXT", "next_at", SHOW_TIME },
        { "CODE", "last_code", SHOW_TEXT },
        { "LAST ERROR", "last_error", SHOW_BRIEF },
    };
    const char *state = NULL, *destination = NULL, *tenant = NULL, *code_wanted = NULL, *since = NULL, *until = NULL;
    struct pages pages = { .path = "/v1/jobs", .member = "jobs", PAGES_COLUMNS(columns) };
    const struct option_row rows[] = {
        { "state", 's', .value = &state },   { "destination", 'd', .value = &destination },
        { "tenant", 't', .value = &tenant }, { "code", '\0', .value = &code_wanted },
        { "since", '\0', .value = &since, .past = true }, { "until", '\0', .value = &until, .past = true },
        PAGES_OPTIONS(pages),             { 0 },
    };
    if (!command_options(cli, rows, 1) || !arguments_list_only(cli))
        return cli->code;
    if (state && job_state_from_name(slice_from(state)) == STATE_NONE)
        return cli_usage("jobs", "--state is pending, running, waiting, completed, dead or cancelled, not \"%s\"", state);
    return pages_print(cli, &pages, rows);
}

int command_tenants(struct cli *cli)
{
    static const struct shown columns[] = {
        { "TENANT", "tenant", SHOW_TEXT },         { "DESTINATION", "destination", SHOW_TEXT },
        { "PENDING", "pending", SHOW_NUMBER },     { "RUNNING", "running", SHOW_NUMBER },
        { "WAITING", "waiting", SHOW_NUMBER },     { "DEAD", "dead", SHOW_NUMBER },
        { "COMPLETED", "completed", SHOW_NUMBER }, { "CANCELLED", "cancelled", SHOW_NUMBER },
        { "WEIGHT", "fairness.weight", SHOW_NUMBER },
        { "PRIORITY", "fairness.currentPriority", SHOW_NUMBER },
        { "ROUNDS", "fairness.roundsWithoutProcessing", SHOW_NUMBER },
        { "IN ROW", "fairness.consecutiveBatchCount", SHOW_NUMBER },
        { "SENT", "fairness.totalProcessed", SHOW_NUMBER },
        { "LAST SENT", "fairness.lastProcessedAt", SHOW_TIME },
    };
    const char *destination = NULL;
    struct pages pages = { .path = "/v1/tenants", .member = "tenants", PAGES_COLUMNS(columns) };
    const struct option_row rows[] = {
        { "destination", 'd', .value = &destination },
        PAGES_OPTIONS(pages),
        { 0 },
    };
    if (!command_options(cli, rows, 1) || !arguments_list_only(cli))
        return cli->code;
    return pages_print(cli, &pages, rows);
}

static int show_stats(const struct cli *cli, json_t *answer, struct buffer *out)
{
    static const struct shown apart[] = { { "", "destinations", SHOW_TEXT } };
    static const struct shown columns[] = {
        { "DESTINATION", "name", SHOW_TEXT },      { "MODE", "mode", SHOW_STATE },
        { "HELD BY", "held_by", SHOW_TEXT },       { "PENDING", "pending", SHOW_NUMBER },
        { "RUNNING", "running", SHOW_NUMBER },     { "WAITING", "waiting", SHOW_NUMBER },
        { "COMPLETED", "completed", SHOW_NUMBER }, { "DEAD", "dead", SHOW_NUMBER },
    };
    const json_t *destinations = json_object_get(answer, "destinations");
    show_others(cli, answer, apart, 1, out);
    if (json_array_size(destinations) > 0) {
        buffer_append_byte(out, '\n');
        show_table(cli, destinations, columns, sizeof columns / sizeof *columns, out);
    }
    return EXIT_DONE;
}

int command_stats(struct cli *cli)
{
    if (!command_options(cli, NULL, 0))
        return cli->code;
    struct url url = url_to("/v1/stats");
    return client_show(cli, &(struct request){ .method = "GET", .url = &url }, show_stats);
}
