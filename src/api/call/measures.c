#include "api/call/measures.h"

#include "api/call/call.h"

#include <stdlib.h>
#include <string.h>

const struct histogram_bounds measured_request = {
    18, { 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 25000000, 50000000, 100000000, 250000000, 500000000,
          1000000000, 2500000000, 5000000000, 10000000000, 30000000000, 60000000000 }
};

static const struct { int status; const char *name; } statuses[] = {
    { -1, "other" }, { 200, "200" }, { 201, "201" }, { 202, "202" }, { 204, "204" }, { 400, "400" }, { 401, "401" },
    { 403, "403" },  { 404, "404" }, { 405, "405" }, { 409, "409" }, { 413, "413" }, { 422, "422" },
    { 429, "429" },  { 500, "500" }, { 503, "503" }, { 0, "gone" },
};
_Static_assert(sizeof statuses / sizeof *statuses == REQUEST_STATUSES_MAX, "one that is missing would be called nothing");

void request_measures_init(struct request_measures *measures, uint64_t seed)
{
    *measures = (struct request_measures){ 0 };
    map_init(&measures->inserts, seed);
}

void request_measures_release(struct request_measures *measures)
{
    size_t cursor = 0;
    for (struct map_entry *entry; (entry = map_next(&measures->inserts, &cursor));) {
        free(entry->value);
        free((char *)(uintptr_t)entry->key.data);
    }
    map_release(&measures->inserts);
}

static enum request_class class_of(const struct route *route)
{
    if (!route)
        return REQUEST_NONE;
    if (slice_has_prefix(slice_from(route->pattern), SLICE("/v1/leases")))
        return REQUEST_LEASE;
    switch (route->scope) {
    case SCOPE_NONE:
        return REQUEST_OPEN;
    case SCOPE_ENQUEUE:
        return REQUEST_ENQUEUE;
    case SCOPE_READ:
        return REQUEST_READ;
    default:
        return REQUEST_OPERATE;
    }
}

void request_measured(struct request_measures *measures, const struct route *route, int status, int64_t took_ns)
{
    enum request_class request_class = class_of(route);
    size_t column = 0;
    for (size_t i = 1; i < REQUEST_STATUSES_MAX; i++)
        if (statuses[i].status == status)
            column = i;
    measures->counts[request_class][column]++;
    histogram_note(&measures->durations[request_class], &measured_request, took_ns);
}

/* NULL: no memory; it is not counted then. */
static struct insert_measure *inserts_to(struct request_measures *measures, struct slice destination)
{
    struct insert_measure *found = map_get(&measures->inserts, destination);
    if (found)
        return found;
    char *name = strndup(destination.data, destination.len);
    found = calloc(1, sizeof *found);
    if (name && found && map_put(&measures->inserts, slice_from(name), found) == STATUS_OK)
        return found;
    free(name);
    free(found);
    return NULL;
}

void insert_measured(struct request_measures *measures, const struct store_op *op)
{
    struct insert_measure *inserts = op->status == STATUS_OK ? inserts_to(measures, op->insert.destination) : NULL;
    if (inserts)
        *(op->insert.ret_existed ? &inserts->duplicates : &inserts->accepted) += 1;
    if (op->status != STATUS_OK)
        measures->refused[op->status == STATUS_FULL       ? REFUSED_QUEUE_FULL
                          : op->status == STATUS_CONFLICT ? REFUSED_ID_CONFLICT
                                                          : REFUSED_OTHER]++;
}

struct insert_measure inserts_of(const struct request_measures *measures, struct slice destination)
{
    const struct insert_measure *found = map_get(&measures->inserts, destination);
    return found ? *found : (struct insert_measure){ 0 };
}

const char *request_class_name(enum request_class request_class)
{
    static const char *const names[REQUEST_CLASS_COUNT] = {
        [REQUEST_ENQUEUE] = "enqueue", [REQUEST_READ] = "read", [REQUEST_OPERATE] = "operate",
        [REQUEST_LEASE] = "lease",     [REQUEST_OPEN] = "open", [REQUEST_NONE] = "none",
    };
    return names[request_class];
}

const char *refusal_name(enum refusal refusal)
{
    static const char *const names[REFUSAL_COUNT] = {
        [REFUSED_QUEUE_FULL] = "queue_full",     [REFUSED_DISK_FULL] = "disk_full", [REFUSED_STORE_FAILED] = "store_failed",
        [REFUSED_ID_CONFLICT] = "id_conflict", [REFUSED_STOPPING] = "stopping",   [REFUSED_OTHER] = "other",
    };
    return names[refusal];
}

const char *request_status_name(size_t index)
{
    return statuses[index].name;
}
