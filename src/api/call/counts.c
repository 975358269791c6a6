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
static enum status list_all(struct call *call, size_t largest_max, struct counts *counts, struct error *err)
{
    const struct config *config = call->api->config;
    struct store_reader *reader = call->api->reader;
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

/* Leaves the tenant's own counts; a destination that is neither configured nor has them is not told of. */
static enum status leave_tenant(struct call *call, struct counts *counts, struct error *err)
{
    struct store_reader *reader = call->api->reader;
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
        else if (config_destination(call->api->config, name))
            counts->items[saved++] = (struct destination_total){ .destination = name };
    }
    counts->count = saved;
    return STATUS_OK;
}

enum status counts_list(struct call *call, size_t largest_max, struct counts *ret_counts, struct error *err)
{
    struct counts counts = { 0 };
    enum status status = list_all(call, largest_max, &counts, err);
    if (status == STATUS_OK && call->tenant_bound.data)
        status = leave_tenant(call, &counts, err);
    for (size_t i = 0; i < counts.count; i++)
        lane_counts_add(&counts.total, &counts.items[i].counts);
    if (status == STATUS_OK)
        *ret_counts = counts;
    return status;
}

bool counts_read(struct call *call, struct counts *ret_counts)
{
    struct error error = { 0 };
    enum status status = counts_list(call, 0, ret_counts, &error);
    if (status != STATUS_OK)
        call_store_problem(call, status, &error);
    return status == STATUS_OK;
}

const struct destination_total *counts_find(const struct counts *counts, struct slice name)
{
    for (size_t i = 0; i < counts->count; i++)
        if (slice_equal(counts->items[i].destination, name))
            return &counts->items[i];
    return NULL;
}

bool destination_is_not_misspelt(struct call *call, struct slice name)
{
    struct counts counts;
    struct nearest nearest = { .wanted = name };
    if (config_destination(call->api->config, name))
        return true;
    for (size_t i = 0; i < call->api->config->destination_count; i++)
        nearest_offer(&nearest, call->api->config->destinations[i].name);
    if (!nearest.name)
        return true;
    if (!counts_read(call, &counts))
        return false;
    if (counts_find(&counts, name))
        return true;
    call_problem(call, 422, "unknown_destination", "there is no destination \"%s\"; did you mean \"%s\"?",
                 quote(name).text, nearest.name);
    return false;
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
