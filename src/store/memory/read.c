#include "store/memory/read.h"

#include "store/memory/nodes.h"

#include "store/filter.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_LOOKED_AT_MAX = 20 * STORE_PAGE_MAX };

struct memory_store *memory_reader_lock(struct store_reader *base)
{
    assert(base->ops == &memory_store_ops);
    struct memory_store *store = CONTAINER_OF(base, struct memory_reader, reader)->store;
    pthread_mutex_lock(&store->mutex);
    return store;
}

enum status memory_reader_unlock(struct memory_store *store, enum status status, struct error *err)
{
    assert(status != STATUS_IO && status != STATUS_CORRUPT); /* there is no disk */
    pthread_mutex_unlock(&store->mutex);
    if (status == STATUS_NO_MEMORY)
        return error_set(err, status, "memory ran out while reading");
    if (status == STATUS_NOT_FOUND)
        return error_set(err, status, "nothing has that name");
    return status;
}

enum status memory_reader(struct store *base, struct store_reader **ret_reader, struct error *err)
{
    assert(base->ops == &memory_store_ops);
    struct memory_reader *reader = malloc(sizeof *reader);
    if (!reader)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a reader");
    *reader = (struct memory_reader){ .reader = { base->ops }, .store = ((struct memory_node *)base)->memory };
    *ret_reader = &reader->reader;
    return STATUS_OK;
}

void memory_reader_close(struct store_reader *base)
{
    if (base)
        free(CONTAINER_OF(base, struct memory_reader, reader));
}

enum status memory_reader_job(struct store_reader *base, struct slice tenant, struct slice id, bool with_payload,
                              struct arena *memory, struct job *ret_job, struct error *err)
{
    struct memory_store *store = memory_reader_lock(base);
    struct memory_name *name = memory_name_find(store, tenant, id);
    enum status status = STATUS_NOT_FOUND;
    if (name && name->job)
        status = memory_job_copy(name->job, with_payload, memory, ret_job);
    return memory_reader_unlock(store, status, err);
}

enum status memory_reader_job_seq(struct store_reader *base, int64_t seq, bool with_payload, struct arena *memory,
                                  struct job *ret_job, struct error *err)
{
    struct memory_store *store = memory_reader_lock(base);
    const struct memory_job *job = memory_job_find(store, seq);
    return memory_reader_unlock(store, job ? memory_job_copy(job, with_payload, memory, ret_job) : STATUS_NOT_FOUND, err);
}

static bool matches(const struct job *job, const struct job_filter *filter)
{
    assert(job->state != STATE_NONE);
    if (filter->state != STATE_NONE && filter->state != job->state)
        return false;
    if (filter->destination.len > 0 && !slice_equal(filter->destination, job->destination))
        return false;
    if (filter->tenant.len > 0 && !slice_equal(filter->tenant, job->tenant))
        return false;
    if (filter->id.len > 0 && !slice_equal(filter->id, job->id))
        return false;
    if (filter->code.len > 0 && !slice_equal(filter->code, job->last_code) && !slice_equal(filter->code, job->dead_code))
        return false;
    return filter_means(filter, job);
}

enum status memory_reader_jobs(struct store_reader *base, const struct job_filter *filter, size_t max, bool with_payload,
                               struct arena *memory, struct job **ret_jobs, size_t *ret_count, int64_t *ret_next_seq,
                               struct error *err)
{
    struct memory_store *store = memory_reader_lock(base);
    max = store_rows_max(max);
    struct job *jobs = arena_alloc_array(memory, max, sizeof *jobs);
    if (!jobs)
        return memory_reader_unlock(store, STATUS_NO_MEMORY, err);
    size_t count = 0;
    int64_t cursor = filter->before_seq > 0 ? filter->before_seq : INT64_MAX;
    struct tree_node *node = tree_before(&store->jobs, cursor, cursor);
    for (size_t rows = 0; node && count < max && rows < ROWS_LOOKED_AT_MAX; rows++) {
        const struct memory_job *job = CONTAINER_OF(node, struct memory_job, by_seq);
        if (matches(&job->job, filter) && memory_job_copy(job, with_payload, memory, &jobs[count++]) != STATUS_OK)
            return memory_reader_unlock(store, STATUS_NO_MEMORY, err);
        cursor = node->key;
        node = tree_before(&store->jobs, cursor, cursor);
    }
    *ret_jobs = jobs;
    *ret_count = count;
    *ret_next_seq = node ? cursor : 0;
    return memory_reader_unlock(store, STATUS_OK, err);
}

static enum status event_copy(const struct memory_event *event, int64_t number, struct arena *memory,
                              struct event *ret_event)
{
    assert(number > 0);
    struct slice data = { event->data, event->erased ? 0 : event->data_len };
    struct event copy = {
        .number = number,
        .at = event->at,
        .type = event->type,
        .state = event->state,
        .attempt = event->attempt,
        .destination = arena_copy(memory, event->destination),
        .tenant = arena_copy(memory, event->tenant),
        .job = arena_copy(memory, event->name ? event->name->link.second : SLICE("")),
        .data = arena_copy(memory, data),
        .previous = memory_event_previous(event->type, event->before),
        .form = EVENT_FORM_SALTED,
    };
    if (!copy.destination.data || !copy.tenant.data || !copy.job.data || !copy.data.data)
        return STATUS_NO_MEMORY;
    memory_event_salt(&copy);
    memcpy(copy.hash, event->hash, sizeof copy.hash);
    copy.erased = event->erased;
    if (event->erased)
        memcpy(copy.digest, event->data, EVENT_HASH_BYTES);
    *ret_event = copy;
    return STATUS_OK;
}

static enum status events_after(const struct memory_store *store, int64_t after, size_t max, struct arena *memory,
                                struct event **ret_events, size_t *ret_count)
{
    int64_t number = memory_event_first(store);
    if (after >= number)
        number = after < store->numbers.event ? after + 1 : store->numbers.event + 1;
    assert(number > 0 && number <= store->numbers.event + 1);
    uint64_t left = (uint64_t)(store->numbers.event - number + 1);
    size_t count = store_rows_max(left < max ? (size_t)left : max);
    struct event *events = arena_alloc_array(memory, count, sizeof *events);
    if (!events)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < count; i++, number++)
        if (event_copy(memory_event_find(store, number), number, memory, &events[i]) != STATUS_OK)
            return STATUS_NO_MEMORY;
    *ret_events = events;
    *ret_count = count;
    return STATUS_OK;
}

enum status memory_reader_events(struct store_reader *base, int64_t after, size_t max, struct arena *memory,
                                 struct event **ret_events, size_t *ret_count, struct error *err)
{
    struct memory_store *store = memory_reader_lock(base);
    return memory_reader_unlock(store, events_after(store, after, max, memory, ret_events, ret_count), err);
}

static enum status events_of(const struct memory_store *store, const struct memory_name *name, size_t max,
                             struct arena *memory, struct event **ret_events, size_t *ret_count)
{
    assert(max <= STORE_PAGE_MAX);
    const struct memory_event *event;
    int64_t last = name ? name->last_event : 0;
    size_t count = 0;
    for (int64_t number = last; count < max && (event = memory_event_find(store, number)); number = event->before)
        count++;
    struct event *events = arena_alloc_array(memory, count, sizeof *events);
    if (!events)
        return STATUS_NO_MEMORY;
    int64_t number = last;
    for (size_t i = count; i-- > 0; number = event->before) {
        event = memory_event_find(store, number);
        if (event_copy(event, number, memory, &events[i]) != STATUS_OK)
            return STATUS_NO_MEMORY;
    }
    *ret_events = events;
    *ret_count = count;
    return STATUS_OK;
}

enum status memory_reader_history(struct store_reader *base, struct slice tenant, struct slice id, size_t max,
                                  struct arena *memory, struct event **ret_events, size_t *ret_count, struct error *err)
{
    struct memory_store *store = memory_reader_lock(base);
    const struct memory_name *name = memory_name_find(store, tenant, id);
    return memory_reader_unlock(store, events_of(store, name, store_rows_max(max), memory, ret_events, ret_count), err);
}

static enum status lane_copy(const struct memory_lane *lane, struct arena *memory, struct lane *ret_lane)
{
    assert(lane->id > 0);
    *ret_lane = (struct lane){ .id = lane->id,
                               .destination = arena_copy(memory, lane->link.first),
                               .tenant = arena_copy(memory, lane->link.second),
                               .counts = lane->counts };
    return ret_lane->destination.data && ret_lane->tenant.data ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status lanes_after(const struct memory_store *store, size_t first, size_t max, struct arena *memory,
                               struct lane **ret_lanes, size_t *ret_count)
{
    assert(max <= STORE_PAGE_MAX);
    size_t count = 0;
    struct lane *lanes = arena_alloc_array(memory, store->lanes.count < max ? store->lanes.count : max, sizeof *lanes);
    if (!lanes)
        return STATUS_NO_MEMORY;
    for (size_t i = first; i < store->lane_list.count && count < max; i++) {
        const struct memory_lane *lane = store->lane_list.items[i];
        if (lane && !lane->gone && lane_copy(lane, memory, &lanes[count++]) != STATUS_OK)
            return STATUS_NO_MEMORY;
    }
    *ret_lanes = lanes;
    *ret_count = count;
    return STATUS_OK;
}

enum status memory_reader_lanes(struct store_reader *base, int64_t after, size_t max, struct arena *memory,
                                struct lane **ret_lanes, size_t *ret_count, struct error *err)
{
    struct memory_store *store = memory_reader_lock(base);
    size_t first = after > 0 ? (size_t)after : 0; /* ids are 1, 2, 3... */
    return memory_reader_unlock(store, lanes_after(store, first, store_rows_max(max), memory, ret_lanes, ret_count), err);
}

enum status memory_reader_lane(struct store_reader *base, struct slice destination, struct slice tenant,
                               struct arena *memory, struct lane *ret_lane, struct error *err)
{
    struct memory_store *store = memory_reader_lock(base);
    struct names_link *link = names_find(&store->lanes, destination, tenant);
    const struct memory_lane *lane = link ? CONTAINER_OF(link, struct memory_lane, link) : NULL;
    enum status status = lane && !lane->gone ? lane_copy(lane, memory, ret_lane) : STATUS_NOT_FOUND;
    return memory_reader_unlock(store, status, err);
}

enum status memory_reader_totals(struct store_reader *base, size_t largest_max, struct arena *memory,
                                 struct destination_total **ret_totals, size_t *ret_count, struct error *err)
{
    struct memory_store *store = memory_reader_lock(base);
    return memory_reader_unlock(store, totals_read(&store->totals, largest_max, memory, ret_totals, ret_count), err);
}

enum status memory_reader_ahead(struct store_reader *base, int64_t lane, int64_t rank, int64_t seq, size_t max,
                                size_t *ret_count, struct error *err)
{
    struct memory_store *store = memory_reader_lock(base);
    size_t count = 0;
    if (lane > 0 && (uint64_t)lane <= store->lane_list.count && store->lane_list.items[lane - 1]) {
        const struct tree *ready = &store->lane_list.items[lane - 1]->ready;
        const struct tree_node *node = tree_first(ready);
        while (node && count < store_rows_max(max) && (node->key < rank || (node->key == rank && node->tie < seq))) {
            count++;
            node = tree_after(ready, node->key, node->tie);
        }
    }
    *ret_count = count;
    return memory_reader_unlock(store, STATUS_OK, err);
}

enum status memory_reader_saved(struct store_reader *base, struct slice space, struct slice name, struct arena *memory,
                               struct slice *ret_value, struct error *err)
{
    struct memory_store *store = memory_reader_lock(base);
    struct names_link *link = names_find(&store->saved, space, name);
    const struct memory_saved *saved = link ? CONTAINER_OF(link, struct memory_saved, link) : NULL;
    enum status status = STATUS_NOT_FOUND;
    if (saved && saved->value.len > 0) {
        struct slice value = arena_copy(memory, saved->value);
        status = value.data ? STATUS_OK : STATUS_NO_MEMORY;
        if (value.data)
            *ret_value = value;
    }
    return memory_reader_unlock(store, status, err);
}

static int last_name_first(const void *a, const void *b)
{
    return slice_compare(((const struct saved *)b)->name, ((const struct saved *)a)->name);
}

static enum status saved_before(const struct memory_store *store, struct slice space, struct slice before, size_t max,
                               struct arena *memory, struct saved **ret_saved, size_t *ret_count)
{
    assert(max <= STORE_PAGE_MAX);
    struct saved *saved = arena_alloc_array(memory, store->saved.count, sizeof *saved);
    size_t count = 0, cursor = 0;
    if (!saved)
        return STATUS_NO_MEMORY;
    for (struct names_link *link = NULL; (link = names_next(&store->saved, &cursor, link));) {
        struct slice value = CONTAINER_OF(link, struct memory_saved, link)->value;
        if (slice_equal(link->first, space) && value.len > 0 && (before.len == 0 || slice_compare(link->second, before) < 0))
            saved[count++] = (struct saved){ link->second, value };
    }
    qsort(saved, count, sizeof *saved, last_name_first);
    count = count < max ? count : max;
    for (size_t i = 0; i < count; i++) {
        saved[i] = (struct saved){ arena_copy(memory, saved[i].name), arena_copy(memory, saved[i].value) };
        if (!saved[i].name.data || !saved[i].value.data)
            return STATUS_NO_MEMORY;
    }
    *ret_saved = saved;
    *ret_count = count;
    return STATUS_OK;
}

enum status memory_reader_saved_list(struct store_reader *base, struct slice space, struct slice before, size_t max,
                                    struct arena *memory, struct saved **ret_saved, size_t *ret_count, struct error *err)
{
    struct memory_store *store = memory_reader_lock(base);
    return memory_reader_unlock(store, saved_before(store, space, before, store_rows_max(max), memory, ret_saved, ret_count),
                                err);
}
