#include "base/log.h"
#include "cli/offline/configuration.h"
#include "cli/options.h"
#include "cli/play/play.h"
#include "cli/talk/table.h"
#include "config/config.h"
#include "sim/report.h"
#include "sim/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { JOBS_MAX = 5000000, RUNS_MAX = 2 };

/* ---- what it is asked, from text to settings ---- */

/* As given; NULL: not given. Times and numbers have a default. The outages are among the arguments' repeated options. */
struct simulate_options {
    const char *policy, *config, *compare, *html, *store, *now;
    const char *load, *skew, *priorities, *spread, *errors, *limit, *health;
    int64_t for_ms, attend_ms, latency_ms, seed;
    int64_t tenants, capacity; /* 0: not given */
};

static const char command[] = "simulate";

static int bad(const char *name, const char *text, const char *why)
{
    return cli_usage(command, "--%s: \"%s\": %s", name, text, why);
}

struct share_row {
    const char *name;
    double *share;
};

/* "transient=2%,lost=0.1%": what is named is set, the rest stays. */
static int read_shares(const char *option, const char *text, const struct share_row *rows, size_t count)
{
    struct slice rest = slice_from(text);
    double sum = 0;
    while (rest.len > 0) {
        size_t end = slice_find(rest, ',');
        struct slice item = { rest.data, end };
        size_t equals = slice_find(item, '=');
        struct slice name = { item.data, equals };
        size_t row = 0;
        while (row < count && !slice_equal(name, slice_from(rows[row].name)))
            row++;
        if (row == count)
            return bad(option, text, "each part is NAME=SHARE with a name that the help lists");
        if (equals == item.len || !part_parse(slice_from_offset(item, equals + 1), rows[row].share))
            return bad(option, text, "a share is a percentage as 2% or a part of one as 0.02");
        rest = end < rest.len ? slice_from_offset(rest, end + 1) : SLICE("");
    }
    for (size_t i = 0; i < count; i++)
        sum += *rows[i].share;
    return sum > 1 ? bad(option, text, "the shares are more than the whole") : EXIT_DONE;
}

static int read_outage(const char *text, struct model_settings *model)
{
    struct slice rest = slice_from(text);
    struct model_outage outage = { .failure = MODEL_UNAVAILABLE };
    struct error error;
    size_t dots = slice_search(rest, SLICE(".."));
    if (model->outage_count == MODEL_OUTAGES_MAX)
        return cli_usage(command, "--outage is given more than %d times", MODEL_OUTAGES_MAX);
    if (dots == rest.len)
        return bad("outage", text, "write FROM..TO, as 4h..8h or 4h..8h:timeout");
    struct slice from = { rest.data, dots };
    struct slice to = slice_from_offset(rest, dots + 2);
    size_t colon = slice_find(to, ':');
    if (colon < to.len && !model_failure_from_name(slice_from_offset(to, colon + 1), &outage.failure))
        return bad("outage", text, "what follows the colon is refuse, timeout, 503 or blocked");
    to.len = colon;
    if (slice_equal(from, SLICE("0")))
        from = SLICE("0s");
    if (duration_parse(from, &outage.from_ms, &error) != STATUS_OK || duration_parse(to, &outage.to_ms, &error) != STATUS_OK)
        return bad("outage", text, error.text);
    if (outage.to_ms <= outage.from_ms)
        return bad("outage", text, "it ends before it begins");
    model->outages[model->outage_count++] = outage;
    return EXIT_DONE;
}

/* With a backlog there need not be new jobs. */
static int read_load(const char *text, bool backlog, struct load_settings *load)
{
    struct rate rate = { .count = backlog ? 0 : 100, .per_ms = MINUTE_MS };
    struct error error;
    int64_t jobs;
    if (text && slice_to_int64(slice_from(text), &jobs)) {
        load->jobs = jobs;
    } else {
        if (text && rate_parse(slice_from(text), &rate, &error) != STATUS_OK)
            return bad("load", text, "it is a rate as 100/m or 2/s, or a number of jobs");
        double all = (double)rate.count * (double)load->for_ms / (double)rate.per_ms;
        load->jobs = all > (double)JOBS_MAX + 1 ? JOBS_MAX + 1 : (int64_t)(all + 0.5);
    }
    if (load->jobs < !backlog || load->jobs > JOBS_MAX)
        return cli_usage(command, "the load must come to %d to %d jobs in all", !backlog, JOBS_MAX);
    return EXIT_DONE;
}

static int read_tenants(const struct simulate_options *options, struct load_settings *load)
{
    const struct share_row priorities[] = { { "critical", &load->critical }, { "high", &load->high } };
    bool several = options->tenants > 0 || options->store;
    load->tenants = options->tenants > 0 ? options->tenants : 1;
    if (options->skew && (!part_parse(slice_from(options->skew), &load->big_share) || load->big_share >= 1))
        return bad("skew", options->skew, "it is the biggest tenant's share, from 0% to below 100%");
    if (options->skew && (!several || options->tenants == 1))
        return cli_usage(command, "--skew needs more than one tenant: give --tenants");
    return options->priorities ? read_shares("priorities", options->priorities, priorities, 2) : EXIT_DONE;
}

static int read_model(const struct simulate_options *options, struct model_settings *model)
{
    const struct share_row errors[] = {
        { "transient", &model->transient }, { "throttled", &model->throttled }, { "lost", &model->lost },
        { "blocked", &model->blocked },     { "permanent", &model->permanent },
    };
    struct error error;
    if (options->spread &&
        (!slice_to_double(slice_from(options->spread), &model->spread) || !(model->spread >= 0 && model->spread <= 5)))
        return bad("spread", options->spread, "it is a number from 0 to 5");
    if (options->limit && rate_parse(slice_from(options->limit), &model->limit, &error) != STATUS_OK)
        return cli_usage(command, "--limit: %s", error.text);
    if (options->health && !model_health_from_name(slice_from(options->health), &model->health))
        return bad("health", options->health, "it is true, lying or none");
    return options->errors ? read_shares("errors", options->errors, errors, sizeof errors / sizeof *errors) : EXIT_DONE;
}

/* A backlog has times of its own, and they are about now; all else begins on the same Monday. */
static int read_start(const struct simulate_options *options, instant *ret_start)
{
    struct error error;
    if (!options->now) {
        *ret_start = options->store ? clock_now() : 0;
        return EXIT_DONE;
    }
    if (instant_parse(slice_from(options->now), ret_start, &error) != STATUS_OK)
        return bad("now", options->now, error.text);
    return *ret_start > 0 ? EXIT_DONE : bad("now", options->now, "it is before 1970");
}

/* Fills load, model, start and seed of *ret_settings. EXIT_DONE, or EXIT_USAGE after its message. */
static int simulate_settings(const struct simulate_options *options, const struct arguments *arguments,
                      struct sim_settings *ret_settings)
{
    struct sim_settings settings = {
        .load.for_ms = options->for_ms,
        .settle_max_ms = 7 * (int64_t)DAY_MS,
        .attend_ms = options->attend_ms,
        .seed = (uint64_t)options->seed,
        .load.seed = (uint64_t)options->seed,
        .model = { .seed = (uint64_t)options->seed, .latency_ms = options->latency_ms, .capacity = options->capacity,
                   .spread = 0.5, .transient = 0.02, .permanent = 0.01 },
    };
    int code = read_load(options->load, options->store != NULL, &settings.load);
    if (code == EXIT_DONE)
        code = read_start(options, &settings.start);
    if (code == EXIT_DONE)
        code = read_tenants(options, &settings.load);
    if (code == EXIT_DONE)
        code = read_model(options, &settings.model);
    for (size_t i = 0; i < arguments->repeated_count && code == EXIT_DONE; i++)
        code = read_outage(arguments->repeated[i].value, &settings.model);
    if (code == EXIT_DONE)
        *ret_settings = settings;
    return code;
}

/* ---- The destination ---- */

static int check_destination(const struct destination_config *destination)
{
    if (destination->transport == TRANSPORT_PULL)
        return cli_usage(command, "\"%s\" is for pull workers: nothing is sent that could be simulated", destination->name);
    return EXIT_DONE;
}

/* A preset says how to check and to verify, and leaves open where; here every address is the model's. */
static void fill_in_addresses(struct destination_config *destination)
{
    if (destination->health.kind == HEALTH_NONE && destination->health.expect_services.count > 0)
        destination->health.kind = HEALTH_JSON;
    if (destination->policy.in_doubt == DOUBT_VERIFY)
        destination->policy.can_verify = true;
}

static int load_preset(const char *name, struct config **ret_config)
{
    struct slice text;
    struct error error;
    struct buffer problems = buffer_up_to(PROBLEMS_BYTES_MAX);
    if (preset_text(slice_from(name), &text, &error) != STATUS_OK)
        return cli_usage(command, "%s", error.text);
    enum status status = config_preset(slice_from(name), ret_config, &problems);
    problems_print(&problems);
    buffer_release(&problems);
    if (status == STATUS_OK) {
        fill_in_addresses(&(*ret_config)->destinations[0]);
        return EXIT_DONE;
    }
    return cli_fail(EXIT_FAILED, "preset %s cannot be used: %s", name, status_name(status));
}

static int load_file(const char *path, struct config **ret_config)
{
    enum status status = configuration_read(path, ret_config);
    return status == STATUS_OK ? EXIT_DONE : cli_fail(EXIT_USAGE, "%s cannot be used: %s", path, status_name(status));
}

static int pick(const char *path, const char *name, struct config *config, const struct destination_config **ret_destination)
{
    const struct destination_config *found = name ? config_destination(config, slice_from(name)) : NULL;
    if (!found && !name && config->destination_count == 1)
        found = &config->destinations[0];
    if (!found && name)
        return cli_usage(command, "%s has no destination \"%s\"", path, name);
    if (!found)
        return cli_usage(command, "%s has %zu destinations; name one with --policy", path, config->destination_count);
    *ret_destination = found;
    return check_destination(found);
}

static int keep_or_unref(int code, struct config *config, struct config **ret_config)
{
    if (code == EXIT_DONE)
        *ret_config = config;
    else
        config_unref(config);
    return code;
}

/*
 * The destination to simulate: of the file at `path`, or without it the preset of that name. EXIT_DONE, or a code after
 * its message; *ret_config is then to be unreferenced.
 */
static int simulate_destination(const char *path, const char *name, struct config **ret_config,
                         const struct destination_config **ret_destination)
{
    struct config *config;
    if (!path && !name)
        return cli_usage(command, "name a preset as --policy, or give a file with -c");
    int code = path ? load_file(path, &config) : load_preset(name, &config);
    if (code != EXIT_DONE)
        return code;
    return keep_or_unref(pick(path ? path : "the preset", name, config, ret_destination), config, ret_config);
}

static bool is_preset(const char *name)
{
    for (size_t i = 0; preset_name(i); i++)
        if (strcmp(preset_name(i), name) == 0)
            return true;
    return false;
}

/* The same for --compare: a preset, or a file with a destination of that name or with a single one. */
static int simulate_compared(const char *compare, const char *name, struct config **ret_config,
                      const struct destination_config **ret_destination)
{
    struct config *config;
    if (is_preset(compare))
        return simulate_destination(NULL, compare, ret_config, ret_destination);
    int code = load_file(compare, &config);
    if (code != EXIT_DONE)
        return code;
    if (name && !config_destination(config, slice_from(name)) && config->destination_count == 1)
        name = NULL;
    return keep_or_unref(pick(compare, name, config, ret_destination), config, ret_config);
}

/* ---- The backlog ---- */

/*
 * The backlog of --store for a destination of that name; the load's tenants are at least those that have one. EXIT_DONE, or
 * a code after its message; release the backlog then.
 */
static int simulate_backlog(const struct simulate_options *options, const char *destination, struct sim_settings *settings,
                     struct backlog *ret_backlog)
{
    struct store *store = NULL;
    struct store_reader *reader;
    struct error error;
    enum status status = store_look(store_backends, slice_from(options->store), &store, &error);
    if (status == STATUS_OK)
        status = store->ops->reader(store, &reader, &error);
    if (status == STATUS_OK) {
        status = backlog_read(reader, slice_from(destination), BACKLOG_JOBS_MAX, ret_backlog, &error);
        reader->ops->reader_close(reader);
    }
    if (store)
        store->ops->close(store);
    if (status == STATUS_NOT_FOUND || status == STATUS_INVALID || status == STATUS_UNSUPPORTED)
        return cli_usage(command, "--store %s: %s", options->store, error.text);
    if (status != STATUS_OK)
        return cli_fail(EXIT_FAILED, "%s: %s", options->store, error.text);
    if (options->tenants == 0)
        settings->load.tenants = (int64_t)ret_backlog->tenant_count;
    settings->backlog = ret_backlog;
    return EXIT_DONE;
}

/* ---- The runs ---- */

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
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    int code = EXIT_DONE;
    for (size_t i = 0; i < count; i++)
        runs[i] = simulations[i].run;
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
        return cli_print(&out, EXIT_DONE);
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
