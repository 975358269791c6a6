#include "core/decision/backoff.h"

#include "base/json.h"
#include "cli/offline/configuration.h"
#include "cli/offline/offline.h"
#include "cli/options.h"
#include "cli/talk/table.h"

enum { ROWS_DEFAULT_MAX = 20, ROWS_MAX = 10000 };

struct waits {
    const struct retry_policy *retry;
    enum priority priority;
    int64_t seed;
    struct slice id; /* empty: no column of its own */
    int64_t count; /* 0: as many as the policy has, up to ROWS_DEFAULT_MAX */
};

/* One row: a retry, and the waits up to and with it. */
struct wait {
    int64_t retry, base_ms, low_ms, high_ms, drawn_ms, low_sum_ms, high_sum_ms;
};

static void wait_next(const struct waits *waits, struct wait *wait)
{
    wait->retry++;
    struct backoff_range range = backoff_range(waits->retry, wait->retry, waits->priority);
    wait->base_ms = backoff_nominal_ms(waits->retry, wait->retry, waits->priority);
    wait->low_ms = range.low_ms;
    wait->high_ms = range.high_ms;
    wait->drawn_ms = backoff_ms(waits->retry, (uint64_t)waits->seed, waits->id, wait->retry, waits->priority);
    wait->low_sum_ms += range.low_ms;
    wait->high_sum_ms += range.high_ms;
}

static void cell_duration(struct table *table, int64_t ms)
{
    char text[UNITS_TEXT_BYTES];
    duration_format(ms, text);
    table_cell_text(table, text);
}

static void append_table(const struct cli *cli, const struct waits *waits, struct buffer *out)
{
    static const struct table_column columns[] = {
        { "RETRY", TABLE_RIGHT },   { "BASE", TABLE_RIGHT },       { "LOWEST", TABLE_RIGHT },      { "HIGHEST", TABLE_RIGHT },
        { "THIS ID", TABLE_RIGHT }, { "SUM LOWEST", TABLE_RIGHT }, { "SUM HIGHEST", TABLE_RIGHT },
    };
    struct table table;
    struct wait wait = { 0 };
    table_init(&table, columns, sizeof columns / sizeof *columns);
    for (int64_t i = 0; i < waits->count; i++) {
        wait_next(waits, &wait);
        table_cell_int(&table, wait.retry);
        cell_duration(&table, wait.base_ms);
        cell_duration(&table, wait.low_ms);
        cell_duration(&table, wait.high_ms);
        if (waits->id.len > 0)
            cell_duration(&table, wait.drawn_ms);
        else
            table_cell_text(&table, "-");
        cell_duration(&table, wait.low_sum_ms);
        cell_duration(&table, wait.high_sum_ms);
    }
    table_append(&table, cli, out);
    table_release(&table);
}

static void append_json(const struct waits *waits, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    struct wait wait = { 0 };
    json_array_begin(&json);
    for (int64_t i = 0; i < waits->count; i++) {
        wait_next(waits, &wait);
        json_object_begin(&json);
        json_member_int(&json, "retry", wait.retry);
        json_member_int(&json, "baseMs", wait.base_ms);
        json_member_int(&json, "lowestMs", wait.low_ms);
        json_member_int(&json, "highestMs", wait.high_ms);
        if (waits->id.len > 0)
            json_member_int(&json, "waitMs", wait.drawn_ms);
        json_member_int(&json, "sumLowestMs", wait.low_sum_ms);
        json_member_int(&json, "sumHighestMs", wait.high_sum_ms);
        json_object_end(&json);
    }
    json_array_end(&json);
    buffer_append_byte(out, '\n');
}

static int print_waits(const struct cli *cli, struct waits *waits, const char *name, struct policy_set *policies)
{
    const struct policy *policy;
    int code = policies_find(policies, "backoff", name, &policy);
    if (code != EXIT_DONE)
        return code;
    if (waits->id.data && policy_id_problem(policy, waits->id))
        return cli_usage("backoff", "--id: %s", policy_id_problem(policy, waits->id));
    waits->retry = &policy->retry;
    if (waits->count == 0)
        waits->count = policy->retry.retries_max < ROWS_DEFAULT_MAX ? policy->retry.retries_max : ROWS_DEFAULT_MAX;
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    if (cli->json)
        append_json(waits, &out);
    else
        append_table(cli, waits, &out);
    return cli_print(&out, EXIT_DONE);
}

int command_backoff(struct cli *cli)
{
    const char *policy = NULL, *config = NULL, *id = NULL;
    struct waits waits = { .priority = PRIORITY_NORMAL };
    const struct option_row rows[] = {
        { "policy", 'p', .value = &policy },
        { "config", 'c', .value = &config },
        { "retries", 'n', .count = &waits.count, .low = 1, .high = ROWS_MAX },
        { "id", '\0', .value = &id },
        { "priority", '\0', .priority = &waits.priority },
        { "seed", '\0', .count = &waits.seed, .low = 0, .high = INT64_MAX },
        { 0 },
    };
    struct policy_set policies;
    if (!command_options(cli, rows, 0))
        return cli->code;
    int code = policies_open(config, &policies);
    if (code != EXIT_DONE)
        return code;
    if (id)
        waits.id = slice_from(id);
    code = print_waits(cli, &waits, policy, &policies);
    policy_set_release(&policies);
    return code;
}
