/*
 * GET /metrics, in Prometheus' text format.
 */
#include "api/observe/metrics.h"

#include "api/call/ask.h"
#include "api/observe/dead_ages.h"
#include "api/observe/observe.h"
#include "store/trail_place.h"

static double number_at(const void *start, size_t offset)
{
    return (double)*(const int64_t *)(const void *)((const char *)start + offset);
}

static const struct histogram *histogram_at(const struct measures *measures, size_t offset)
{
    return (const struct histogram *)(const void *)((const char *)measures + offset);
}

static void write_turns(const struct metric_row *row, const struct exposition *out,
                        const struct metrics_destination *destination)
{
    for (size_t i = 0; i < destination->turn_count; i++) {
        const struct metrics_turn *turn = &destination->turns[i];
        const struct metric_label labels[] = { { "destination", destination->name }, { "tenant", turn->tenant } };
        if (turn->view.known)
            exposition_sample(out, labels, 2, number_at(&turn->view.turns, row->source.offset));
    }
}

static void write_destination(const struct metric_row *row, const struct exposition *out, const struct metrics_scene *scene,
                              const struct metrics_destination *destination)
{
    const struct metric_source *source = &row->source;
    const struct metric_label label = { "destination", destination->name };
    const struct measures *measures = destination->measured ? &destination->measured->measures : NULL;
    if (source->from == FROM_STORE)
        exposition_sample(out, &label, 1, number_at(destination, source->offset));
    else if (source->from == FROM_VALUE)
        exposition_sample(out, &label, 1, source->value(scene, destination));
    else if (source->from == FROM_MEASURES && measures)
        exposition_sample(out, &label, 1, number_at(measures, source->offset) / source->divisor);
    else if (source->from == FROM_EACH && measures)
        source->each(out, destination);
    else if (source->from == FROM_TURNS && measures)
        write_turns(row, out, destination);
    else if (source->from == FROM_HISTOGRAM && measures && histogram_total(histogram_at(measures, source->offset)) > 0)
        exposition_histogram(out, &label, 1, histogram_at(measures, source->offset), source->scale);
}

/* What decisions move is reported of presets too that somebody asks, as if they were destinations. */
static void write_row(const struct metric_row *row, struct buffer *body, const struct metrics_scene *scene)
{
    struct exposition out;
    exposition_begin(&out, body, &row->family);
    if (row->source.from == FROM_NUMBER)
        exposition_sample(&out, NULL, 0, row->source.number(scene));
    for (size_t i = 0; i < scene->source_count && row->source.from == FROM_SOURCES; i++) {
        const struct metric_label label = { "source", slice_from(scene->sources[i].name) };
        exposition_sample(&out, &label, 1, row->source.of_source(&scene->sources[i]));
    }
    if (row->source.from == FROM_WHOLE)
        row->source.whole(&out, scene);
    for (size_t i = 0; i < scene->count && row->source.from < FROM_NUMBER; i++)
        if (scene->items[i].in_use || row->of_unused)
            write_destination(row, &out, scene, &scene->items[i]);
    for (size_t i = 0; i < scene->policy_count && row->of_decisions; i++)
        write_destination(row, &out, scene, &scene->policies[i]);
    if (row->expired.label) {
        const struct metric_label label = { row->expired.label, slice_from(row->expired.value) };
        exposition_sample(&out, &label, row->expired.label[0] != '\0', (double)scene->engine.expired);
    }
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
    struct source_figures sources[SOURCES_MAX];
    scene->sources = sources;
    scene->source_count = source_board_copy(call->api->settings.sources, sources);
    scene->writer = writer_measures(call->api->settings.writer);
    struct node_figures *nodes = call->api->settings.node_figures ? arena_alloc(&call->memory, sizeof *nodes) : NULL;
    if (nodes)
        call->api->settings.node_figures(call->api->settings.context, nodes);
    scene->nodes = nodes;
    for (const struct metric_row *row = metric_rows; row->family.name; row++)
        write_row(row, &body, scene);
    scene->sources = NULL;
    call_send(call, 200, EXPOSITION_CONTENT_TYPE, &body);
}

static bool attach_measures(struct call *call, struct engine *engine)
{
    struct metrics_scene *scene = call->context;
    scene->status = metrics_attach(call, scene, engine);
    return true;
}

/* What is known of ages is another call's to change from here on. */
static void copy_ages(struct call *call, struct metrics_scene *scene)
{
    for (size_t i = 0; i < scene->count; i++) {
        const struct histogram *ages = dead_ages_of(call->api->dead.ages, scene->items[i].name);
        struct histogram *copy = ages ? arena_alloc(&call->memory, sizeof *copy) : NULL;
        if (copy)
            *copy = *ages;
        scene->items[i].dead_ages = copy;
    }
}

/* Counts first, then the ages of some dead letters, a piece at a time, then the newest event. */
static enum status read_store(struct call *call, struct store_reader *reader, struct error *err)
{
    struct api *api = call->api;
    struct metrics_scene *scene = call->context;
    int64_t dead = 0;
    enum status status = scene->items ? STATUS_OK : metrics_gather(call, reader, scene, err);
    for (size_t i = 0; i < scene->count; i++)
        dead += scene->items[i].counts.dead;
    if (status == STATUS_OK && dead == 0)
        dead_ages_none(api->dead.ages);
    else if (status == STATUS_OK)
        status = dead_ages_look(api->dead.ages, reader, scene->now, err);
    if (status == STATUS_OK && api->dead.ages->before_seq != 0 && ++scene->looks < DEAD_AGES_LOOKS) {
        call->reading.more = true;
        return STATUS_OK;
    }
    if (status == STATUS_OK)
        status = events_newest(reader, api->last_event, &scene->last_event, err);
    if (status == STATUS_OK)
        api->last_event = scene->last_event;
    copy_ages(call, scene);
    return status;
}

/* What only this thread counts. */
static void ask_engine(struct call *call)
{
    struct metrics_scene *scene = call->context;
    scene->away = call->reading.status == STATUS_AWAY;
    if (scene->away) { /* counts of jobs that nobody can read are not 0: nothing is said of destinations */
        scene->count = 0;
        scene->last_event = call->api->last_event;
    }
    for (size_t i = 0; i < scene->count; i++) {
        struct metrics_destination *destination = &scene->items[i];
        destination->inserts = inserts_of(&call->api->measures, destination->name);
        destination->in_use = destination->in_use || destination->inserts.accepted > 0;
    }
    ask_here(call, attach_measures, answer_metrics);
}

void handle_metrics(struct call *call)
{
    if (call->tenant_bound.data) {
        call_problem(call, 403, "forbidden_tenant",
                     "metrics are of all tenants, and this token is confined to tenant \"%.*s\"; use GET /v1/stats, or a "
                     "token without a tenant",
                     SLICE_ARG(call->tenant_bound));
        return;
    }
    struct metrics_scene *scene = call_context(call, sizeof *scene);
    if (!scene)
        return;
    *scene = (struct metrics_scene){ .api = call->api, .now = api_now(call->api) };
    call_read_anyway(call, read_store, ask_engine); /* else a daemon that lives would look dead to who scrapes it */
}
