#include "api/call/counts.h"

#include "api/call/shared.h"
#include "config/problems.h"

#include <stdlib.h>

static int by_name(const void *a, const void *b)
{
    const struct destination_total *left = a, *right = b;
    int order = slice_compare(left->destination, right->destination);
    return order != 0 ? order : (left->tenants < right->tenants) - (left->tenants > right->tenants);
}

/* Those that the store knows and those that are configured, each once. */
static enum status list_all(struct call *call, struct store_reader *reader, size_t largest_max, struct counts *counts,
                            struct error *err)
{
    const struct config *config = call->reading.config;
    struct destination_total *totals;
    size_t known, configured = config_destination_total(config);
    enum status status = reader->ops->reader_totals(reader, largest_max, &call->memory, &totals, &known, err);
    if (status != STATUS_OK)
        return status;
    struct destination_total *all = arena_alloc_array(&call->memory, known + configured + 1, sizeof *all);
    if (!all)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the counts");
    for (size_t i = 0; i < known; i++)
        all[i] = totals[i];
    for (size_t i = 0; i < configured; i++)
        all[known + i] = (struct destination_total){
            .destination = arena_copy(&call->memory, slice_from(config_destination_at(config, i)->name))
        };
    qsort(all, known + configured, sizeof *all, by_name);
    counts->items = all;
    for (size_t i = 0; i < known + configured; i++)
        if (!all[i].destination.data)
            return error_set(err, STATUS_NO_MEMORY, "no memory for the counts");
        else if (counts->count == 0 || !slice_equal(all[counts->count - 1].destination, all[i].destination))
            all[counts->count++] = all[i];
    return STATUS_OK;
}

/* Leaves the tenant's own counts; a destination that is neither configured nor has them is left out. */
static enum status leave_tenant(struct call *call, struct store_reader *reader, struct counts *counts, struct error *err)
{
    size_t saved = 0;
    for (size_t i = 0; i < counts->count; i++) {
        struct slice name = counts->items[i].destination;
        struct lane lane;
        enum status status = reader->ops->reader_lane(reader, name, call->tenant_bound, &call->memory, &lane, err);
        if (status != STATUS_OK && status != STATUS_NOT_FOUND)
            return status;
        if (status == STATUS_OK)
            counts->items[saved++] =
                (struct destination_total){ .destination = name, .counts = lane.counts, .tenants = 1 };
        else if (config_destination(call->reading.config, name))
            counts->items[saved++] = (struct destination_total){ .destination = name };
    }
    counts->count = saved;
    return STATUS_OK;
}

enum status counts_list(struct call *call, struct store_reader *reader, size_t largest_max, struct counts *ret_counts,
                        struct error *err)
{
    struct counts counts = { 0 };
    enum status status = list_all(call, reader, largest_max, &counts, err);
    if (status == STATUS_OK && call->tenant_bound.data)
        status = leave_tenant(call, reader, &counts, err);
    for (size_t i = 0; i < counts.count; i++)
        lane_counts_add(&counts.total, &counts.items[i].counts);
    if (status == STATUS_OK)
        *ret_counts = counts;
    return status;
}

const struct destination_total *counts_find(const struct counts *counts, struct slice name)
{
    for (size_t i = 0; i < counts->count; i++)
        if (slice_equal(counts->items[i].destination, name))
            return &counts->items[i];
    return NULL;
}

/* A configured name that `name`, which is not configured, is nearly like; NULL: there is none. */
static const char *nearest_destination(const struct call *call, struct slice name)
{
    const struct config *config = call->api->config;
    struct nearest nearest = { .wanted = name };
    if (name.len == 0 || config_destination(config, name))
        return NULL;
    for (size_t i = 0; i < config->destination_count; i++)
        nearest_offer(&nearest, config->destinations[i].name);
    return nearest.name;
}

static enum status look_for_destination(struct call *call, struct store_reader *reader, struct error *err)
{
    struct counts counts;
    enum status status = counts_list(call, reader, 0, &counts, err);
    if (status != STATUS_OK)
        return status;
    return counts_find(&counts, call_query(call, "destination")) ? STATUS_OK : STATUS_NOT_FOUND;
}

static void destination_looked_for(struct call *call)
{
    struct slice name = call_query(call, "destination");
    if (call->reading.status == STATUS_OK)
        call->asked.then(call);
    else
        call_problem(call, 422, "unknown_destination", "there is no destination \"%s\"; did you mean \"%s\"?",
                     quote(name).text, nearest_destination(call, name));
}

void destination_check(struct call *call, void (*then)(struct call *call))
{
    call->asked.then = then;
    if (nearest_destination(call, call_query(call, "destination")))
        call_read(call, look_for_destination, destination_looked_for);
    else
        then(call);
}

void counts_write(struct json_writer *json, const struct lane_counts *counts)
{
    json_member_int(json, "pending", counts->pending);
    json_member_int(json, "running", counts->running);
    json_member_int(json, "waiting", counts->waiting);
    json_member_int(json, "dead", counts->dead);
    json_member_int(json, "completed", counts->completed);
    json_member_int(json, "cancelled", counts->cancelled);
}
