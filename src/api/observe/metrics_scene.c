/*
 * What /metrics is written from: each destination's jobs and its largest tenants from the store, the rest from the engine.
 */
#include "api/call/shared.h"
#include "api/observe/metrics.h"
#include "engine/status.h"

/* ---- from the store ---- */

static void subtract(struct lane_counts *from, const struct lane_counts *part)
{
    from->pending -= part->pending;
    from->running -= part->running;
    from->waiting -= part->waiting;
    from->dead -= part->dead;
}

/* The largest are reported singly. One that is called "other" would be taken for the sum of the rest, and is part of it. */
static void pick_largest(struct metrics_destination *destination, const struct destination_total *total)
{
    destination->largest = total->largest;
    destination->rest = total->counts;
    for (size_t i = 0; i < total->largest_count && destination->largest_count < METRICS_LARGEST_MAX; i++) {
        struct lane lane = total->largest[i];
        if (slice_equal(lane.tenant, SLICE("other")))
            continue;
        subtract(&destination->rest, &lane.counts);
        destination->largest[destination->largest_count++] = lane;
    }
}

enum status metrics_gather(struct call *call, struct store_reader *reader, struct metrics_scene *scene,
                           struct error *err)
{
    struct counts counts;
    enum status status = counts_list(call, reader, METRICS_LARGEST_MAX + 1, &counts, err); /* one may be called "other" */
    if (status != STATUS_OK)
        return status;
    scene->items = arena_alloc_array(&call->memory, counts.count + 1, sizeof *scene->items);
    if (!scene->items)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the metrics");
    for (size_t i = 0; i < counts.count; i++) {
        const struct destination_total *total = &counts.items[i];
        struct metrics_destination *destination = &scene->items[scene->count++];
        *destination = (struct metrics_destination){ .name = total->destination, .counts = total->counts,
                                                     .tenants = total->tenants };
        destination->in_use = total->tenants > 0 || total->counts.completed > 0 || total->counts.cancelled > 0;
        pick_largest(destination, total);
    }
    return STATUS_OK;
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
    size_t measured_count = measured ? measured->measures.tenants.count : 0;
    destination->turns =
        arena_alloc_array(&call->memory, destination->largest_count + measured_count + 1, sizeof *destination->turns);
    if (!destination->turns)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < destination->largest_count; i++)
        destination->turns[destination->turn_count++] =
            (struct metrics_turn){ .tenant = destination->largest[i].tenant, .lane = destination->largest[i].id };
    for (size_t i = 0; i < measured_count; i++)
        if (!has_turn(destination, measured->tenants[i].lane))
            destination->turns[destination->turn_count++] =
                (struct metrics_turn){ .tenant = measured->tenants[i].tenant, .lane = measured->tenants[i].lane };
    for (size_t i = 0; i < destination->turn_count; i++)
        destination->turns[i].view = engine_tenant(engine, destination->turns[i].lane);
    return STATUS_OK;
}

/* Without jobs of its own, too: somebody asked for a decision, it is checked, or it is or was away or held. */
static bool was_used(const struct destination_measures *measured)
{
    const struct measures *measures = &measured->measures;
    bool decided = false;
    for (size_t i = 0; i < VERDICT_COUNT; i++)
        decided = decided || measures->verdicts[i] > 0 || measures->untried_dead[i] > 0 || measures->decided[i] > 0;
    return decided || measured->checked || measured->status.held_by || measures->contingency_ms > 0 ||
           measures->available_ms < measures->observed_ms;
}

static enum status attach_policies(struct call *call, struct metrics_scene *scene)
{
    size_t count = scene->engine.policy_count;
    scene->policies = arena_alloc_array(&call->memory, count + 1, sizeof *scene->policies);
    if (!scene->policies)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        scene->policies[scene->policy_count++] = (struct metrics_destination){ .name = scene->engine.policies[i].name,
                                                                               .measured = &scene->engine.policies[i],
                                                                               .in_use = true };
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
        destination->in_use = destination->in_use || (destination->measured && was_used(destination->measured));
        status = attach_turns(call, destination, engine);
    }
    return status == STATUS_OK ? attach_policies(call, scene) : status;
}
