/*
 * What /metrics is written from: each destination's jobs and its largest tenants from the store, the rest from the engine.
 */
#include "api/call/shared.h"
#include "api/observe/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- from the store ---- */

struct gathering {
    struct call *call;
    struct map by_name; /* -> struct metrics_destination */
};

static int64_t jobs_of(const struct lane_counts *counts)
{
    return counts->pending + counts->running + counts->waiting + counts->dead;
}

static struct metrics_destination *destination_of(struct gathering *gathering, struct slice name)
{
    struct arena *memory = &gathering->call->memory;
    struct metrics_destination *found = map_get(&gathering->by_name, name);
    if (found)
        return found;
    found = arena_alloc(memory, sizeof *found);
    if (!found)
        return NULL;
    found->name = arena_copy(memory, name);
    return found->name.data && map_put(&gathering->by_name, found->name, found) == STATUS_OK ? found : NULL;
}

/* The largest are kept singly. One that is called "other" would be taken for the sum of the rest, and is part of it. */
static enum status note_tenant(struct metrics_destination *destination, const struct lane *lane, struct arena *memory)
{
    struct metrics_tenant *least = NULL;
    for (size_t i = 0; i < destination->largest_count; i++)
        if (!least || jobs_of(&destination->largest[i].counts) < jobs_of(&least->counts))
            least = &destination->largest[i];
    bool room = destination->largest_count < METRICS_LARGEST_MAX;
    if (jobs_of(&lane->counts) == 0 || slice_equal(lane->tenant, SLICE("other")) ||
        (!room && jobs_of(&lane->counts) <= jobs_of(&least->counts))) {
        lane_counts_add(&destination->rest, &lane->counts);
        return STATUS_OK;
    }
    if (room)
        least = &destination->largest[destination->largest_count++];
    else
        lane_counts_add(&destination->rest, &least->counts);
    *least = (struct metrics_tenant){ .tenant = arena_copy(memory, lane->tenant), .lane = lane->id, .counts = lane->counts };
    return least->tenant.data ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status add_lane(void *context, const struct lane *lane)
{
    struct gathering *gathering = context;
    struct metrics_destination *destination = destination_of(gathering, lane->destination);
    if (!destination)
        return STATUS_NO_MEMORY;
    lane_counts_add(&destination->counts, &lane->counts);
    destination->tenants++;
    return note_tenant(destination, lane, &gathering->call->memory);
}

static int by_name(const void *a, const void *b)
{
    return slice_compare(((const struct metrics_destination *)a)->name, ((const struct metrics_destination *)b)->name);
}

static enum status gather(struct gathering *gathering, struct metrics_scene *scene, struct error *err)
{
    const struct config *config = gathering->call->api->config;
    struct map *found = &gathering->by_name;
    for (size_t i = 0; i < config->destination_count; i++)
        if (!destination_of(gathering, slice_from(config->destinations[i].name)))
            return error_set(err, STATUS_NO_MEMORY, "no memory for the metrics");
    enum status status = store_each_lane(gathering->call->api->reader, add_lane, gathering, err);
    if (status != STATUS_OK)
        return status;
    scene->items = arena_alloc_array(&gathering->call->memory, found->count + 1, sizeof *scene->items);
    if (!scene->items)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the metrics");
    size_t cursor = 0;
    for (struct map_entry *entry; (entry = map_next(found, &cursor));)
        scene->items[scene->count++] = *(struct metrics_destination *)entry->value;
    qsort(scene->items, scene->count, sizeof *scene->items, by_name);
    return STATUS_OK;
}

enum status metrics_gather(struct call *call, struct metrics_scene *scene, struct error *err)
{
    struct gathering gathering = { .call = call };
    map_init(&gathering.by_name, call->api->settings.seed);
    enum status status = gather(&gathering, scene, err);
    map_release(&gathering.by_name);
    return status;
}

/* ---- from the engine ---- */

static bool has_turn(const struct metrics_destination *destination, int64_t lane)
{
    for (size_t i = 0; i < destination->turn_count; i++)
        if (destination->turns[i].lane == lane)
            return true;
    return false;
}

/* The fairness figures of those with the most jobs and of those that were served most. */
static enum status attach_turns(struct call *call, struct metrics_destination *destination, const struct engine *engine)
{
    const struct destination_measures *measured = destination->measured;
    size_t measured_count = measured ? measured->measures.tenant_count : 0;
    destination->turns =
        arena_alloc_array(&call->memory, destination->largest_count + measured_count + 1, sizeof *destination->turns);
    if (!destination->turns)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < destination->largest_count; i++)
        destination->turns[destination->turn_count++] = destination->largest[i];
    for (size_t i = 0; i < measured_count; i++)
        if (!has_turn(destination, measured->tenants[i].lane))
            destination->turns[destination->turn_count++] =
                (struct metrics_tenant){ .tenant = measured->tenants[i].tenant, .lane = measured->tenants[i].lane };
    for (size_t i = 0; i < destination->turn_count; i++)
        destination->turns[i].standing = engine_tenant(engine, destination->turns[i].lane);
    return STATUS_OK;
}

static enum status attach_policies(struct call *call, struct metrics_scene *scene)
{
    size_t count = scene->engine.policy_count;
    scene->policies = arena_alloc_array(&call->memory, count + 1, sizeof *scene->policies);
    if (!scene->policies)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        scene->policies[scene->policy_count++] = (struct metrics_destination){ .name = scene->engine.policies[i].name,
                                                                               .measured = &scene->engine.policies[i] };
    return STATUS_OK;
}

enum status metrics_attach(struct call *call, struct metrics_scene *scene, struct engine *engine)
{
    enum status status = engine_measures(engine, &call->memory, &scene->engine);
    scene->figures = engine_figures(engine);
    for (size_t i = 0; status == STATUS_OK && i < scene->count; i++) {
        struct metrics_destination *destination = &scene->items[i];
        for (size_t k = 0; k < scene->engine.count && !destination->measured; k++)
            if (slice_equal(scene->engine.items[k].name, destination->name))
                destination->measured = &scene->engine.items[k];
        status = attach_turns(call, destination, engine);
    }
    return status == STATUS_OK ? attach_policies(call, scene) : status;
}
