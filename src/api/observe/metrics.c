/*
 * GET /metrics, in Prometheus' text format.
 */
#include "api/observe/metrics.h"

#include "api/observe/dead_ages.h"
#include "api/observe/observe.h"

#include <math.h>

/* ---- numbers of a destination ---- */

static double seconds(int64_t ms)
{
    return (double)ms / SECOND_MS;
}

/* Not a number when there is nothing to take a part of. */
static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static int64_t died_by(const struct measures *measures, enum verdict verdict)
{
    return measures->verdicts[verdict] + measures->untried_dead[verdict];
}

static void fill_counted(const struct measures *measures, struct metrics_values *values)
{
    values->retried = (double)(measures->verdicts[VERDICT_RETRY] + measures->decided[VERDICT_RETRY]);
    values->exhausted = (double)(died_by(measures, VERDICT_EXHAUSTED) + measures->decided[VERDICT_EXHAUSTED]);
    values->permanent = (double)(died_by(measures, VERDICT_PERMANENT) + measures->decided[VERDICT_PERMANENT]);
    values->died = (double)died_by(measures, VERDICT_EXHAUSTED) + (double)died_by(measures, VERDICT_PERMANENT) +
                   (double)died_by(measures, VERDICT_EXPIRED) +
                   (double)died_by(measures, VERDICT_PARK) + (double)died_by(measures, VERDICT_SPLIT);
    values->unsent = (double)measures->unsent;
    values->recovered = (double)measures->recovered;
    values->capped = (double)measures->capped;
    values->queue_mean_s =
        histogram_total(&measures->queued) > 0 ? histogram_mean(&measures->queued) / SECOND_MS : NAN;
    values->available_s = seconds(measures->available_ms);
    values->observed_s = seconds(measures->observed_ms);
    values->availability = ratio((double)measures->available_ms, (double)measures->observed_ms);
    values->contingency_total_s = seconds(measures->contingency_ms);
}

static void fill_standing(const struct destination_measures *measured, instant now, struct metrics_values *values)
{
    const struct destination_status *status = &measured->status;
    bool contingency = measured->measures.contingency && status->mode_since != INSTANT_NONE && now > status->mode_since;
    values->in_flight = (double)status->under_way;
    values->limit = (double)status->limit.now;
    values->up = measured->checked ? measured->up : NAN;
    values->contingency_s = contingency ? seconds(now - status->mode_since) : 0;
    values->leases = measured->pulled ? (double)status->under_way : NAN;
    values->workers = measured->pulled ? (double)measured->workers : NAN;
    values->tenants_with_work = (double)status->lanes_with_work;
    values->tenants_paused = (double)status->tenants_paused;
    values->cycle_s = status->cycle.number > 0 ? seconds(cycle_took_ms(&status->cycle)) : NAN;
    values->cycle_age_s = status->cycle.number > 0 ? seconds(status->cycle.age_ms) : NAN;
}

/* Jobs go about in the order they came, and none has waited for longer than there have been some. */
static double queue_oldest_s(const struct measures *measures, int64_t ready, instant now)
{
    instant since = measures->head_at > measures->empty_at ? measures->head_at : measures->empty_at;
    if (ready == 0)
        return 0;
    return since == 0 ? NAN : now > since ? seconds(now - since) : 0;
}

static void fill_values(const struct metrics_scene *scene, struct metrics_destination *destination)
{
    const struct lane_counts *counts = &destination->counts;
    struct insert_measure inserts = inserts_of(&scene->api->measures, destination->name);
    struct metrics_values *values = &destination->values;
    for (double *value = (double *)values; value < (double *)(values + 1); value++)
        *value = NAN;
    values->dead = (double)counts->dead;
    values->ready = (double)counts->ready;
    values->enqueued = (double)inserts.accepted;
    values->duplicates = (double)inserts.duplicates;
    values->completed = (double)counts->completed;
    values->cancelled = (double)counts->cancelled;
    values->tenants = (double)destination->tenants;
    values->success = ratio((double)counts->completed, (double)(counts->completed + counts->dead));
    if (!destination->measured)
        return;
    fill_counted(&destination->measured->measures, values);
    fill_standing(destination->measured, scene->now, values);
    values->queue_oldest_s = queue_oldest_s(&destination->measured->measures, counts->ready, scene->now);
}

/* ---- writing ---- */

static void write_samples(const struct metric_row *row, const struct exposition *exposition,
                          const struct metrics_scene *scene)
{
    if (row->write) {
        row->write(exposition, scene);
        return;
    }
    for (size_t i = 0; i < scene->count; i++) {
        const struct metrics_destination *destination = &scene->items[i];
        const struct metric_label label = { "destination", destination->name };
        if (!row->scale)
            exposition_sample(exposition, &label, 1,
                              *(const double *)((const char *)&destination->values + row->value));
        else if (destination->measured)
            exposition_histogram(exposition, &label, 1,
                                 (const struct histogram *)((const char *)&destination->measured->measures + row->histogram),
                                 row->scale);
    }
}

/* What decisions move is told of presets too that somebody asks, as if they were destinations. */
static void write_row(const struct metric_row *row, struct buffer *out, const struct metrics_scene *scene)
{
    struct exposition exposition;
    exposition_begin(&exposition, out, &row->family);
    write_samples(row, &exposition, scene);
    if (!row->of_decisions || scene->policy_count == 0)
        return;
    struct metrics_scene policies = *scene;
    policies.items = scene->policies;
    policies.count = scene->policy_count;
    write_samples(row, &exposition, &policies);
}

void metrics_write(struct buffer *out, const struct metrics_scene *scene)
{
    for (const struct metric_row *row = metric_rows; row->family.name; row++)
        write_row(row, out, scene);
}

/* ---- the call ---- */

static void answer_metrics(struct call *call)
{
    struct metrics_scene *scene = call->context;
    struct buffer body = call_buffer();
    if (scene->status != STATUS_OK) {
        call_no_memory(call);
        return;
    }
    scene->writer = writer_measures(call->api->settings.writer);
    for (size_t i = 0; i < scene->count; i++)
        fill_values(scene, &scene->items[i]);
    for (size_t i = 0; i < scene->policy_count; i++)
        fill_counted(&scene->policies[i].measured->measures, &scene->policies[i].values);
    metrics_write(&body, scene);
    call_send(call, 200, EXPOSITION_CONTENT_TYPE, &body);
}

static void ask(struct call *call, struct engine *engine)
{
    struct metrics_scene *scene = call->context;
    scene->status = metrics_attach(call, scene, engine);
    call_return(call);
}

/* Whether there are events above that number. */
static enum status events_above(struct call *call, int64_t number, bool *ret_some, struct error *err)
{
    struct store_reader *reader = call->api->reader;
    struct event *events;
    size_t count;
    enum status status = reader->ops->reader_events(reader, number, 1, &call->memory, &events, &count, err);
    *ret_some = status == STATUS_OK && count > 0;
    return status;
}

/* The number of the newest event, from the last one known on: in steps that double, then by halves. */
static enum status find_last_event(struct call *call, int64_t *last, struct error *err)
{
    int64_t low = *last, step = 1;
    bool some;
    enum status status = events_above(call, low, &some, err);
    if (status != STATUS_OK || !some)
        return status;
    int64_t high = low + step;
    while ((status = events_above(call, high, &some, err)) == STATUS_OK && some) {
        low = high;
        step *= 2;
        high = low + step;
    }
    while (status == STATUS_OK && high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        status = events_above(call, middle, &some, err);
        *(some ? &low : &high) = middle;
    }
    if (status == STATUS_OK)
        *last = high;
    return status;
}

static enum status read_store(struct call *call, struct metrics_scene *scene, struct error *err)
{
    struct api *api = call->api;
    int64_t dead = 0;
    enum status status = metrics_gather(call, scene, err);
    for (size_t i = 0; i < scene->count; i++)
        dead += scene->items[i].counts.dead;
    if (status == STATUS_OK && dead == 0)
        dead_ages_none(api->dead_ages);
    else if (status == STATUS_OK)
        status = dead_ages_look(api->dead_ages, api->reader, scene->now, err);
    for (size_t i = 0; i < scene->count; i++)
        scene->items[i].dead_ages = dead_ages_of(api->dead_ages, scene->items[i].name);
    if (status == STATUS_OK)
        status = find_last_event(call, &api->last_event, err);
    scene->last_event = api->last_event;
    return status;
}

void handle_metrics(struct call *call)
{
    struct error error;
    if (call->tenant_bound.data) {
        call_problem(call, 403, "forbidden_tenant",
                     "metrics are of all tenants, and this token is confined to tenant \"%.*s\"; use GET /v1/stats, or a "
                     "token without a tenant",
                     SLICE_ARG(call->tenant_bound));
        return;
    }
    struct metrics_scene *scene = call_alloc(call, sizeof *scene);
    if (!scene)
        return;
    *scene = (struct metrics_scene){ .api = call->api, .now = api_now(call->api) };
    call->context = scene;
    enum status status = read_store(call, scene, &error);
    if (status != STATUS_OK)
        call_store_problem(call, status, &error);
    else
        call_engine(call, ask, answer_metrics);
}
