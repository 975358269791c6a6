/*
 * How old the jobs are that have not ended, by destination: Postfix's qshape for this queue.
 */
#include "base/array.h"
#include "base/instant.h"
#include "base/json.h"
#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/rows.h"
#include "cli/talk/show.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AGES = 10, SHAPE_MAX = 100000 };

/* Minutes; the last column has the rest. */
static const int64_t bounds[AGES - 1] = { 5, 10, 20, 40, 80, 160, 320, 640, 1280 };

struct shape_row {
    char *destination;
    int64_t total, ages[AGES];
};

struct shape {
    struct shape_row *rows;
    size_t count, capacity;
    struct shape_row all;
    instant now;
    bool failed; /* no memory */
};

static struct shape_row *row_of(struct shape *shape, const char *destination)
{
    for (size_t i = 0; i < shape->count; i++)
        if (strcmp(shape->rows[i].destination, destination) == 0)
            return &shape->rows[i];
    struct shape_row *rows = array_grow(shape->rows, shape->count, &shape->capacity, sizeof *rows);
    if (!rows)
        return NULL;
    shape->rows = rows;
    char *name = strdup(destination);
    if (!name)
        return NULL;
    shape->rows[shape->count] = (struct shape_row){ .destination = name };
    return &shape->rows[shape->count++];
}

static void count_job(void *context, json_t *job)
{
    struct shape *shape = context;
    const char *destination = member_text(job, "destination"), *created = member_text(job, "created_at");
    struct error err;
    instant at;
    int age = 0;
    struct shape_row *row = destination ? row_of(shape, destination) : NULL;
    shape->failed = shape->failed || !row;
    if (!row || instant_parse(slice_from(created), &at, &err) != STATUS_OK)
        return;
    while (age < AGES - 1 && shape->now - at >= bounds[age] * MINUTE_MS)
        age++;
    row->total++;
    row->ages[age]++;
    shape->all.total++;
    shape->all.ages[age]++;
}

/* Most jobs first. */
static int by_total(const void *a, const void *b)
{
    const struct shape_row *x = a, *y = b;
    return x->total != y->total ? (x->total < y->total ? 1 : -1) : strcmp(x->destination, y->destination);
}

static void append_row(struct table *table, const struct shape_row *row)
{
    table_cell_text(table, row->destination);
    table_cell_int(table, row->total);
    for (int i = 0; i < AGES; i++)
        table_cell_int(table, row->ages[i]);
}

static void append_table(const struct cli *cli, struct shape *shape, struct buffer *out)
{
    static const struct table_column columns[AGES + 2] = {
        { "", TABLE_BRIEF },      { "T", TABLE_RIGHT },     { "5m", TABLE_RIGHT },   { "10m", TABLE_RIGHT },
        { "20m", TABLE_RIGHT },   { "40m", TABLE_RIGHT },   { "80m", TABLE_RIGHT },  { "160m", TABLE_RIGHT },
        { "320m", TABLE_RIGHT },  { "640m", TABLE_RIGHT },  { "1280m", TABLE_RIGHT }, { "1280m+", TABLE_RIGHT },
    };
    struct table table;
    char total[] = "TOTAL";
    table_init(&table, columns, AGES + 2);
    shape->all.destination = total;
    append_row(&table, &shape->all);
    for (size_t i = 0; i < shape->count; i++)
        append_row(&table, &shape->rows[i]);
    table_append(&table, cli, out);
    table_release(&table);
}

static void append_json(const struct shape *shape, struct buffer *out)
{
    struct json_writer json = json_begin(out);
    json_member_array(&json, "minutes");
    for (int i = 0; i < AGES - 1; i++)
        json_put_int(&json, bounds[i]);
    json_array_end(&json);
    json_member_array(&json, "destinations");
    for (size_t i = 0; i < shape->count; i++) {
        json_object_begin(&json);
        json_member_text(&json, "destination", shape->rows[i].destination);
        json_member_int(&json, "total", shape->rows[i].total);
        json_member_array(&json, "ages");
        for (int age = 0; age < AGES; age++)
            json_put_int(&json, shape->rows[i].ages[age]);
        json_array_end(&json);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}

static int print(const struct cli *cli, struct shape *shape)
{
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    if (shape->count > 0)
        qsort(shape->rows, shape->count, sizeof *shape->rows, by_total);
    if (cli->json)
        append_json(shape, &out);
    else
        append_table(cli, shape, &out);
    return cli_print(&out, EXIT_DONE);
}

static int count_all(struct client *client, const char *state, int64_t max, struct shape *shape, bool *ret_more)
{
    static const char *const open[] = { "pending", "waiting", "running" };
    int code = EXIT_DONE;
    for (size_t i = 0; i < (state ? 1 : sizeof open / sizeof *open) && code == EXIT_DONE; i++) {
        bool more = false;
        const struct rows_wish wish = { "/v1/jobs", "jobs", "state", state ? state : open[i], max };
        code = rows_each(client, &wish, count_job, shape, &more);
        *ret_more = *ret_more || more;
    }
    if (code == EXIT_DONE && shape->failed)
        code = cli_fail(EXIT_FAILED, "no memory for so many destinations");
    return code;
}

int command_shape(struct cli *cli)
{
    const char *state = NULL;
    int64_t max = SHAPE_MAX;
    bool more = false;
    const struct option_row rows[] = {
        { "state", 's', .value = &state },
        { "limit", 'n', .count = &max, .low = 1, .high = INT64_C(1000000000) },
        { 0 },
    };
    if (!command_options(cli, rows, 0))
        return cli->code;
    if (state && job_state_from_name(slice_from(state)) == STATE_NONE)
        return cli_usage("shape", "--state is pending, running, waiting, completed, dead or cancelled, not \"%s\"", state);
    struct client client;
    struct shape shape = { .now = (instant)time(NULL) * SECOND_MS };
    int code = client_open(cli, &client);
    if (code == EXIT_DONE)
        code = count_all(&client, state, max, &shape, &more);
    if (code == EXIT_DONE)
        code = print(cli, &shape);
    if (code == EXIT_DONE && more)
        cli_fail(EXIT_DONE, "there are more than %lld jobs of a state; these are the newest (--limit)", (long long)max);
    for (size_t i = 0; i < shape.count; i++)
        free(shape.rows[i].destination);
    free(shape.rows);
    client_close(&client);
    return code;
}
