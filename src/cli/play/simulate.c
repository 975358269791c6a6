#include "base/log.h"
#include "cli/play/play.h"
#include "cli/play/simulate_options.h"
#include "cli/talk/table.h"
#include "sim/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RUNS_MAX = 2 };

/* A run and what it needs to live. */
struct simulation {
    struct run run; /* first of an array of its own for the reports: see simulations_show */
    struct sim_settings settings;
    struct config *config;
    char title[160];
    bool ran;
};

static int simulate_one(struct simulation *simulation, const struct sim_settings *common)
{
    struct sim_settings *settings = &simulation->settings;
    const struct destination_config *destination = settings->destination;
    struct store_settings saved = { .sync_always = false, .pending_max = simulation->config->pending_max };
    struct store *store;
    struct error error;
    *settings = *common;
    settings->destination = destination;
    settings->config = simulation->config;
    settings->model.timeout_ms = destination->timeout_ms;
    if (settings->backlog && saved.pending_max > 0 && saved.pending_max < (int64_t)settings->backlog->count)
        saved.pending_max = (int64_t)settings->backlog->count; /* it was taken before, under another limit */
    if (store_open(store_backends, SLICE("memory:"), &saved, &store, &error) != STATUS_OK)
        return cli_fail(EXIT_FAILED, "%s", error.text);
    simulation->run.settings = settings;
    simulation->run.title = simulation->title;
    enum status status = sim_run(settings, store, &simulation->run.result, &error);
    store->ops->close(store);
    if (status != STATUS_OK)
        return cli_fail(EXIT_FAILED, "the simulation failed: %s", error.text);
    simulation->ran = true;
    if (report_make(&simulation->run, &error) != STATUS_OK)
        return cli_fail(EXIT_FAILED, "%s", error.text);
    return EXIT_DONE;
}

static int write_file(const char *path, struct slice text)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return cli_fail(EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    enum status status = cli_write(descriptor, text);
    int reason = errno;
    if (close(descriptor) != 0 && status == STATUS_OK) {
        status = STATUS_IO;
        reason = errno;
    }
    return status == STATUS_OK ? EXIT_DONE : cli_fail(EXIT_FAILED, "cannot write %s: %s", path, strerror(reason));
}

static void append_heading(const struct run *runs, size_t count, struct buffer *out)
{
    const struct sim_settings *settings = runs[0].settings;
    char time[UNITS_TEXT_BYTES], from[UNITS_TEXT_BYTES], to[UNITS_TEXT_BYTES];
    duration_format(settings->load.for_ms, time);
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%s%s", i > 0 ? " against " : "", runs[i].title);
    buffer_printf(out, ": %" PRId64 " %sjobs of %" PRId64 " tenant%s in %s, seed %" PRIu64 "\n", settings->load.jobs,
                  settings->backlog ? "new " : "", settings->load.tenants, settings->load.tenants == 1 ? "" : "s", time,
                  settings->seed);
    if (settings->backlog) {
        report_backlog(&runs[0], out);
        buffer_append_byte(out, '\n');
    }
    for (size_t i = 0; i < settings->model.outage_count; i++) {
        duration_format(settings->model.outages[i].from_ms, from);
        duration_format(settings->model.outages[i].to_ms, to);
        buffer_printf(out, "outage from %s to %s (%s)\n", from, to,
                      model_failure_name(settings->model.outages[i].failure));
    }
}

static void append_holds(const struct run *run, bool named, struct buffer *out)
{
    for (const struct sim_hold *hold = run->result.holds; hold->by; hold++) {
        char time[UNITS_TEXT_BYTES];
        duration_format(hold->ms, time);
        buffer_printf(out, "%s%sheld by %s for %s\n", named ? run->title : "", named ? ": " : "", hold->by, time);
    }
}

static void append_row(struct table *table, const struct figure *figure, const struct run *runs, size_t count)
{
    static const enum table_color colors[] = {
        [FIGURE_PLAIN] = TABLE_PLAIN, [FIGURE_MET] = TABLE_GREEN, [FIGURE_MISSED] = TABLE_RED,
    };
    char text[FIGURE_TEXT_BYTES];
    table_cell_text(table, figure->rule[0] ? figure->rule : figure->group);
    table_cell_text(table, figure->label);
    for (size_t i = 0; i < count; i++) {
        enum figure_verdict verdict = figure_judge(figure, &runs[i].report);
        figure_text(figure, figure_value(figure, &runs[i].report), text);
        table_cell_colored(table, slice_from(text), colors[verdict]);
        table_cell_text(table, verdict == FIGURE_PLAIN ? "" : verdict == FIGURE_MET ? "met" : "MISSED");
    }
    if (count == 2) {
        figure_difference(figure, figure_value(figure, &runs[0].report), figure_value(figure, &runs[1].report), text);
        table_cell_text(table, text);
    }
    figure_target_text(figure, text);
    table_cell_text(table, text);
}

static void append_text(const struct cli *cli, const struct run *runs, size_t count, struct buffer *out)
{
    static const struct table_column one[] = {
        { "RULE", TABLE_LEFT }, { "FIGURE", TABLE_LEFT }, { "VALUE", TABLE_RIGHT }, { "", TABLE_LEFT }, { "TARGET",
                                                                                                          TABLE_LEFT },
    };
    static const struct table_column two[] = {
        { "RULE", TABLE_LEFT }, { "FIGURE", TABLE_LEFT }, { "FIRST", TABLE_RIGHT },      { "", TABLE_LEFT },
        { "SECOND", TABLE_RIGHT },  { "", TABLE_LEFT },       { "DIFFERENCE", TABLE_RIGHT }, { "TARGET", TABLE_LEFT },
    };
    struct table table;
    append_heading(runs, count, out);
    for (size_t i = 0; i < count; i++)
        append_holds(&runs[i], count > 1, out);
    table_init(&table, count == 1 ? one : two, count == 1 ? sizeof one / sizeof *one : sizeof two / sizeof *two);
    for (const struct figure *figure = figures; figure->name; figure++)
        if (figure_shown(figure, runs, count))
            append_row(&table, figure, runs, count);
    buffer_append_byte(out, '\n');
    table_append(&table, cli, out);
    table_release(&table);
}

static int show(const struct cli *cli, const struct simulate_options *options, const struct simulation *simulations,
                size_t count)
{
    struct run runs[RUNS_MAX];
    struct buffer out;
    int code = EXIT_DONE;
    for (size_t i = 0; i < count; i++)
        runs[i] = simulations[i].run;
    buffer_init(&out, CLI_OUTPUT_BYTES_MAX);
    if (options->html) {
        report_html(runs, count, &out);
        code = buffer_status(&out) == STATUS_OK ? write_file(options->html, buffer_slice(&out))
                                                : cli_fail(EXIT_FAILED, "no memory for the page");
        buffer_clear(&out);
    }
    if (cli->json)
        report_json(runs, count, &out);
    else
        append_text(cli, runs, count, &out);
    if (code == EXIT_DONE)
        code = cli_print(&out, EXIT_DONE);
    buffer_release(&out);
    return code;
}

static void name_run(struct simulation *simulation, const char *path)
{
    const char *name = simulation->settings.destination->name;
    if (path && strcmp(path, name) != 0)
        snprintf(simulation->title, sizeof simulation->title, "%s of %s", name, path);
    else
        snprintf(simulation->title, sizeof simulation->title, "%s", name);
}

static int simulate(const struct cli *cli, const struct simulate_options *options, const struct arguments *arguments,
                    struct simulation simulations[RUNS_MAX], struct backlog *backlog)
{
    struct sim_settings common;
    size_t count = options->compare ? 2 : 1;
    int code = simulate_settings(options, arguments, &common);
    if (code == EXIT_DONE)
        code = simulate_destination(options->config, options->policy, &simulations[0].config,
                                    &simulations[0].settings.destination);
    if (code == EXIT_DONE && options->compare)
        code = simulate_compared(options->compare, simulations[0].settings.destination->name, &simulations[1].config,
                                 &simulations[1].settings.destination);
    if (code == EXIT_DONE && options->store)
        code = simulate_backlog(options, simulations[0].settings.destination->name, &common, backlog);
    if (code != EXIT_DONE)
        return code;
    name_run(&simulations[0], options->config);
    if (options->compare)
        name_run(&simulations[1], options->compare);
    log_set_level(LOG_NONE); /* what happens to the jobs is the report's to tell */
    for (size_t i = 0; i < count && code == EXIT_DONE; i++)
        code = simulate_one(&simulations[i], &common);
    return code == EXIT_DONE ? show(cli, options, simulations, count) : code;
}

int command_simulate(struct cli *cli)
{
    static const int64_t year_ms = INT64_C(366) * DAY_MS;
    struct simulate_options options = { .for_ms = DAY_MS, .attend_ms = 30 * MINUTE_MS, .latency_ms = 200, .seed = 1 };
    const struct option_row rows[] = {
        { "policy", 'p', .value = &options.policy },
        { "config", 'c', .value = &options.config },
        { "load", '\0', .value = &options.load },
        { "for", '\0', .duration = &options.for_ms, .low = SECOND_MS, .high = year_ms },
        { "outage", '\0', .repeated = true },
        { "tenants", '\0', .count = &options.tenants, .low = 1, .high = 10000 },
        { "skew", '\0', .value = &options.skew },
        { "priorities", '\0', .value = &options.priorities },
        { "latency", '\0', .duration = &options.latency_ms, .low = 1, .high = HOUR_MS },
        { "spread", '\0', .value = &options.spread },
        { "errors", '\0', .value = &options.errors },
        { "limit", '\0', .value = &options.limit },
        { "capacity", '\0', .count = &options.capacity, .low = 1, .high = 1000000 },
        { "seed", '\0', .count = &options.seed, .low = 0, .high = INT64_MAX },
        { "compare", '\0', .value = &options.compare },
        { "html", '\0', .value = &options.html },
        { "store", '\0', .value = &options.store },
        { "now", '\0', .value = &options.now },
        { "health", '\0', .value = &options.health },
        { "attend", '\0', .duration = &options.attend_ms, .low = SECOND_MS, .high = year_ms },
        { 0 },
    };
    struct simulation simulations[RUNS_MAX] = { 0 };
    struct backlog backlog = { 0 };
    if (!command_options(cli, rows, 0))
        return cli->code;
    int code = simulate(cli, &options, &cli->arguments, simulations, &backlog);
    backlog_release(&backlog);
    for (size_t i = 0; i < RUNS_MAX; i++) {
        if (simulations[i].ran)
            sim_result_release(&simulations[i].run.result);
        config_unref(simulations[i].config);
    }
    return code;
}
