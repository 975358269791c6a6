#include "api/call/counts.h"

#include "api/call/shared.h"
#include "base/map.h"
#include "config/problems.h"

#include <stdlib.h>
#include <string.h>

static struct destination_counts *counts_of(struct map *by_name, struct slice name, struct arena *memory)
{
    struct destination_counts *found = map_get(by_name, name);
    if (found)
        return found;
    found = arena_alloc(memory, sizeof *found);
    if (!found)
        return NULL;
    found->name = arena_copy(memory, name);
    if (!found->name.data || map_put(by_name, found->name, found) != STATUS_OK)
        return NULL;
    return found;
}

struct adding {
    struct call *call;
    struct map *by_name; /* -> struct destination_counts */
    struct lane_counts *total;
};

static enum status add_lane(void *context, const struct lane *lane)
{
    struct adding *adding = context;
    struct call *call = adding->call;
    if (call->tenant_bound.data && !slice_equal(call->tenant_bound, lane->tenant))
        return STATUS_OK;
    struct destination_counts *counts = counts_of(adding->by_name, lane->destination, &call->memory);
    if (!counts)
        return STATUS_NO_MEMORY;
    lane_counts_add(&counts->counts, &lane->counts);
    lane_counts_add(adding->total, &lane->counts);
    counts->tenants++;
    return STATUS_OK;
}

static int compare_slices(struct slice a, struct slice b)
{
    int order = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_name_order(const void *a, const void *b)
{
    return compare_slices(((const struct destination_counts *)a)->name, ((const struct destination_counts *)b)->name);
}

static enum status collect(struct call *call, struct map *by_name, struct counts *counts, struct error *err)
{
    const struct config *config = call->api->config;
    for (size_t i = 0; i < config_destination_total(config); i++)
        if (!counts_of(by_name, slice_from(config_destination_at(config, i)->name), &call->memory))
            return error_set(err, STATUS_NO_MEMORY, "no memory for the counts");
    struct adding adding = { call, by_name, &counts->total };
    enum status status = store_each_lane(call->api->reader, add_lane, &adding, err);
    if (status != STATUS_OK)
        return status;
    counts->items = arena_alloc_array(&call->memory, by_name->count + 1, sizeof *counts->items);
    if (!counts->items)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the counts");
    size_t cursor = 0;
    for (struct map_entry *entry; (entry = map_next(by_name, &cursor));)
        counts->items[counts->count++] = *(struct destination_counts *)entry->value;
    qsort(counts->items, counts->count, sizeof *counts->items, by_name_order);
    return STATUS_OK;
}

bool counts_read(struct call *call, struct counts *ret_counts)
{
    struct counts counts = { 0 };
    struct error error = { 0 };
    struct map by_name;
    map_init(&by_name, call->api->settings.seed);
    enum status status = collect(call, &by_name, &counts, &error);
    map_release(&by_name);
    if (status != STATUS_OK) {
        call_store_problem(call, status, &error);
        return false;
    }
    *ret_counts = counts;
    return true;
}

const struct destination_counts *counts_find(const struct counts *counts, struct slice name)
{
    for (size_t i = 0; i < counts->count; i++)
        if (slice_equal(counts->items[i].name, name))
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
