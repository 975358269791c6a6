#include "cli/play/simulate_options.h"

#include "base/log.h"
#include "cli/offline/configuration.h"
#include "config/config.h"

#include <inttypes.h>
#include <string.h>

enum { JOBS_MAX = 5000000 };

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

int simulate_settings(const struct simulate_options *options, const struct arguments *arguments,
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
    struct buffer problems;
    if (preset_text(slice_from(name), &text, &error) != STATUS_OK)
        return cli_usage(command, "%s", error.text);
    buffer_init(&problems, PROBLEMS_BYTES_MAX);
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

int simulate_destination(const char *path, const char *name, struct config **ret_config,
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

int simulate_compared(const char *compare, const char *name, struct config **ret_config,
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

int simulate_backlog(const struct simulate_options *options, const char *destination, struct sim_settings *settings,
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
