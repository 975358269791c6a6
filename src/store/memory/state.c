#include "store/memory/state.h"

#include "base/array.h"
#include "store/memory/nodes.h"
#include "store/trail.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { UNDOS_HELD_MAX = 64 * 1024 };

struct slice memory_text_put(char **at, struct slice text)
{
    assert(text.len == 0 || text.data);
    char *copy = *at;
    if (text.len > 0)
        memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    *at += text.len + 1;
    return (struct slice){ copy, text.len };
}

/* Texts that are owned singly: an empty one owns nothing. */
static void text_free(struct slice text)
{
    if (text.len > 0)
        free((void *)(uintptr_t)text.data);
}

static enum status text_copy(struct slice value, struct slice *ret_text)
{
    *ret_text = SLICE("");
    if (value.len == 0)
        return STATUS_OK;
    char *copy = malloc(value.len + 1);
    if (!copy)
        return STATUS_NO_MEMORY;
    *ret_text = memory_text_put(&copy, value);
    return STATUS_OK;
}

static void name_release(struct memory_store *store, struct memory_name *name)
{
    assert(name->references > 0);
    if (--name->references > 0)
        return;
    names_remove(&store->names, &name->link);
    free(name);
}

/* The job is in no tree any more. */
static void job_free(struct memory_store *store, struct memory_job *job)
{
    text_free(job->job.payload);
    text_free(job->job.last_code);
    text_free(job->job.last_error);
    text_free(job->job.dead_code);
    text_free(job->job.reference);
    text_free(job->job.redrive);
    text_free(job->job.lease_owner);
    name_release(store, job->name);
    free(job);
}

/* Among its tenant's: the first one stands for the tenant. */
static enum status tenant_link(struct memory_store *store, struct memory_lane *lane)
{
    assert(!lane->next_of_tenant);
    struct slice tenant = lane->link.second;
    struct memory_lane *first = map_get(&store->tenants, tenant);
    if (!first) {
        if (map_put(&store->tenants, tenant, lane) != STATUS_OK)
            return STATUS_NO_MEMORY;
        store->tenant_count += !slice_equal(tenant, slice_from(store->own_tenant));
        return STATUS_OK;
    }
    lane->next_of_tenant = first->next_of_tenant;
    first->next_of_tenant = lane;
    return STATUS_OK;
}

/* The tenant's entry is under the first one's name: another that becomes the first takes its place. */
static void tenant_unlink(struct memory_store *store, const struct memory_lane *lane)
{
    struct slice tenant = lane->link.second;
    struct memory_lane *first = map_get(&store->tenants, tenant), *next = lane->next_of_tenant;
    if (first == lane && next) {
        enum status status = map_put(&store->tenants, next->link.second, next);
        assert(status == STATUS_OK); /* it replaces the other */
        (void)status;
    } else if (first == lane) {
        map_remove(&store->tenants, tenant);
        store->tenant_count -= !slice_equal(tenant, slice_from(store->own_tenant));
    } else {
        while (first->next_of_tenant != lane)
            first = first->next_of_tenant;
        first->next_of_tenant = next;
    }
}

/* It is there for nobody any more. */
static void lane_leave(struct memory_store *store, struct memory_lane *lane)
{
    assert(lane->stored == 0 && !lane->ready.root && !lane->gone);
    tenant_unlink(store, lane);
    lane->next_of_tenant = NULL;
    totals_leave(&store->totals, &lane->shown);
    lane->gone = true;
}

static enum status lane_come(struct memory_store *store, struct memory_lane *lane)
{
    assert(lane->stored == 0);
    enum status status = totals_join(&store->totals, lane->link.first, &lane->shown);
    if (status == STATUS_OK)
        status = tenant_link(store, lane);
    if (status != STATUS_OK)
        totals_leave(&store->totals, &lane->shown);
    else
        lane->gone = false;
    return status;
}

static void lane_free(struct memory_store *store, struct memory_lane *lane)
{
    assert(lane->gone && !lane->queued);
    names_remove(&store->lanes, &lane->link);
    store->lane_list.items[lane->id - 1] = NULL;
    free(lane);
}

static void gone_append(struct memory_store *store, struct memory_lane *lane)
{
    assert(lane->gone && !lane->queued);
    lane->queued = true;
    lane->next_gone = NULL;
    *store->gone.end = lane;
    store->gone.end = &lane->next_gone;
}

/* Those of which no event tells any more are freed, unless they are back. */
static void gone_trim(struct memory_store *store)
{
    for (struct memory_lane *lane; (lane = store->gone.first) && lane->event < memory_event_first(store);) {
        store->gone.first = lane->next_gone;
        if (!store->gone.first)
            store->gone.end = &store->gone.first;
        lane->queued = false;
        if (lane->gone)
            lane_free(store, lane);
    }
}

int64_t memory_tenant_waiting(const struct memory_store *store, struct slice tenant)
{
    int64_t waiting = 0;
    for (const struct memory_lane *lane = map_get(&store->tenants, tenant); lane; lane = lane->next_of_tenant)
        waiting += lane->counts.pending + lane->counts.waiting;
    return waiting;
}

static void lease_add(struct memory_store *store, struct memory_job *job)
{
    assert(job->job.lease_token > 0); /* invariant 3 */
    struct memory_session *session = memory_session_of(store, &job->job);
    if (session)
        session->leases++;
    tree_add(&store->leases, &job->by_place, job->job.lease_until, job->job.seq);
}

static void lease_remove(struct memory_store *store, struct memory_job *job)
{
    struct memory_session *session = memory_session_of(store, &job->job);
    assert(!session || session->leases > 0);
    if (session)
        session->leases--;
    tree_remove(&store->leases, &job->by_place);
}

/* Into the trees that its state asks for. */
static void job_place(struct memory_store *store, struct memory_job *job)
{
    assert(!job->job.ready || job->job.state == STATE_PENDING || job->job.state == STATE_WAITING);
    if (job->job.ready)
        tree_add(&job->lane->ready, &job->by_place, job->job.rank, job->job.seq);
    else if (job->job.state == STATE_RUNNING)
        lease_add(store, job);
    if (job_is_chained(&job->job))
        tree_add(&job->lane->chained, &job->by_chain, job->job.chain, job->job.seq);
    instant due = job_due(&job->job);
    job->timed = due != INSTANT_NONE;
    if (job->timed)
        tree_add(&store->timers, &job->by_time, due, job->job.seq);
}

static void job_displace(struct memory_store *store, struct memory_job *job)
{
    assert(!job->timed || job->by_time.key == job_due(&job->job));
    if (job->job.ready)
        tree_remove(&job->lane->ready, &job->by_place);
    else if (job->job.state == STATE_RUNNING)
        lease_remove(store, job);
    if (job_is_chained(&job->job))
        tree_remove(&job->lane->chained, &job->by_chain);
    if (job->timed)
        tree_remove(&store->timers, &job->by_time);
}

struct memory_job *memory_chain_next(const struct memory_lane *lane, int64_t chain, int64_t seq)
{
    assert(chain != 0 && seq >= 0);
    struct tree_node *node = tree_after(&lane->chained, chain, seq);
    return node && node->key == chain ? CONTAINER_OF(node, struct memory_job, by_chain) : NULL;
}

static void job_count(struct memory_store *store, struct memory_lane *lane, const struct job *before,
                      const struct job *after)
{
    assert(lane->stored >= 0 && store->numbers.backlog >= 0);
    struct lane_counts *counts = &lane->counts;
    store->numbers.backlog -= counts->pending + counts->waiting;
    lane_counts_change(counts, before, after);
    store->numbers.backlog += counts->pending + counts->waiting;
    lane->stored += !before - !after;
}

/* Room first, so that a change is never made that could not be written down. */
struct undo *memory_undo(struct memory_store *store, enum undo_kind kind)
{
    assert(store->undos.count <= store->undos.capacity);
    struct undo *undos = array_grow(store->undos.items, store->undos.count, &store->undos.capacity, sizeof *undos);
    if (!undos)
        return NULL;
    store->undos.items = undos;
    struct undo *undo = &store->undos.items[store->undos.count++];
    *undo = (struct undo){ .kind = kind };
    return undo;
}

void memory_begin(struct memory_store *store)
{
    assert(store->undos.count == 0);
    store->numbers.trimmed = 0;
    store->numbers_before = store->numbers;
}

/* Where the pointer to it is; NULL: there is no such event. */
static struct memory_event **event_place(const struct memory_store *store, int64_t number)
{
    assert(store->events.start + store->events.count <= store->events.capacity);
    int64_t first = memory_event_first(store);
    if (number < first || number > store->numbers.event)
        return NULL;
    return &store->events.items[store->events.start + (size_t)(number - first)];
}

static void undo_one(struct memory_store *store, struct undo *undo)
{
    assert(undo->kind <= UNDO_EVENT_ERASED);
    struct memory_job *job = undo->job;
    switch (undo->kind) {
    case UNDO_JOB_NEW:
        job_displace(store, job);
        tree_remove(&store->jobs, &job->by_seq);
        job->lane->counts = undo->counts;
        job->lane->stored--;
        job->name->job = NULL;
        job_free(store, job);
        break;
    case UNDO_JOB_CHANGED:
        job_displace(store, job);
        job->job = *undo->before;
        job->lane->counts = undo->counts;
        job_place(store, job);
        free(undo->before);
        break;
    case UNDO_JOB_GONE:
        tree_add(&store->jobs, &job->by_seq, job->job.seq, job->job.seq);
        job->name->job = job;
        job->job.last_event = job->name->last_event; /* the event of its deletion is undone already */
        job->lane->counts = undo->counts;
        job->lane->stored++;
        job_place(store, job);
        break;
    case UNDO_TEXT:
        text_free(*undo->text);
        *undo->text = undo->text_before;
        break;
    case UNDO_LANE_NEW:
        lane_leave(store, undo->lane);
        if (undo->lane_is_new) {
            lane_free(store, undo->lane);
            store->lane_list.count--;
        }
        break;
    case UNDO_SAVED_NEW:
        names_remove(&store->saved, &undo->saved->link);
        free(undo->saved);
        break;
    case UNDO_SHARD:
        undo->shard->session = undo->session_before;
        undo->shard->epoch = undo->epoch_before;
        break;
    case UNDO_EVENT_ERASED:
        free(*event_place(store, undo->event));
        *event_place(store, undo->event) = undo->event_before;
        break;
    }
}

static void undos_clear(struct memory_store *store)
{
    store->undos.count = 0;
    if (store->undos.capacity > UNDOS_HELD_MAX) {
        free(store->undos.items);
        store->undos.items = NULL;
        store->undos.capacity = 0;
    }
}

void memory_rollback(struct memory_store *store)
{
    assert(store->numbers.event >= store->numbers_before.event);
    /* Events first: the jobs' undos may free the names that they refer to. */
    for (; store->numbers.event > store->numbers_before.event; store->numbers.event--) {
        struct memory_event *event = store->events.items[store->events.start + --store->events.count];
        if (event->name) {
            event->name->last_event = event->before;
            name_release(store, event->name);
        }
        free(event);
    }
    while (store->undos.count > 0)
        undo_one(store, &store->undos.items[--store->undos.count]);
    store->numbers = store->numbers_before;
    undos_clear(store);
}

/* A lane whose counters have moved is that of a job that has. */
static void undo_published(const struct undo *undo)
{
    if (undo->kind == UNDO_JOB_NEW || undo->kind == UNDO_JOB_CHANGED || undo->kind == UNDO_JOB_GONE)
        totals_tell(&undo->job->lane->shown, &undo->job->lane->counts);
}

/* One that has no job left. */
static void lane_end(struct memory_store *store, struct memory_lane *lane)
{
    if (lane->stored > 0 || lane->gone)
        return;
    lane_leave(store, lane);
    lane->event = store->numbers.event;
    if (!lane->queued)
        gone_append(store, lane);
}

void memory_commit(struct memory_store *store)
{
    assert(store->numbers.trimmed <= store->events.count);
    totals_lock(&store->totals);
    for (size_t i = 0; i < store->undos.count; i++)
        undo_published(&store->undos.items[i]);
    totals_unlock(&store->totals);
    for (size_t i = 0; i < store->undos.count; i++) {
        struct undo *undo = &store->undos.items[i];
        if (undo->kind == UNDO_JOB_GONE) {
            lane_end(store, undo->job->lane);
            job_free(store, undo->job);
        }
        else if (undo->kind == UNDO_JOB_CHANGED)
            free(undo->before);
        else if (undo->kind == UNDO_TEXT)
            text_free(undo->text_before);
        else if (undo->kind == UNDO_EVENT_ERASED)
            free(undo->event_before);
    }
    for (; store->numbers.trimmed > 0; store->numbers.trimmed--) {
        struct memory_event *event = store->events.items[store->events.start++];
        store->events.count--;
        if (event->name)
            name_release(store, event->name);
        free(event);
    }
    gone_trim(store);
    undos_clear(store);
}

/* Back, with its number. */
static enum status lane_again(struct memory_store *store, struct memory_lane *lane)
{
    assert(lane->gone);
    struct undo *undo = memory_undo(store, UNDO_LANE_NEW);
    if (!undo)
        return STATUS_NO_MEMORY;
    undo->lane = lane;
    undo->lane_is_new = false;
    if (lane_come(store, lane) == STATUS_OK)
        return STATUS_OK;
    store->undos.count--;
    return STATUS_NO_MEMORY;
}

enum status memory_lane_get(struct memory_store *store, struct slice destination, struct slice tenant,
                            struct memory_lane **ret_lane)
{
    assert(destination.len > 0);
    struct names_link *link = names_find(&store->lanes, destination, tenant);
    struct memory_shard *shard;
    if (link) {
        *ret_lane = CONTAINER_OF(link, struct memory_lane, link);
        return (*ret_lane)->gone ? lane_again(store, *ret_lane) : STATUS_OK;
    }
    if (memory_shard_get(store, destination, &shard) != STATUS_OK)
        return STATUS_NO_MEMORY;
    struct memory_lane **list =
        array_grow(store->lane_list.items, store->lane_list.count, &store->lane_list.capacity, sizeof *list);
    if (!list)
        return STATUS_NO_MEMORY;
    store->lane_list.items = list;
    struct memory_lane *lane = calloc(1, sizeof *lane + destination.len + tenant.len + 2);
    struct undo *undo = lane ? memory_undo(store, UNDO_LANE_NEW) : NULL;
    if (!undo) {
        free(lane);
        return STATUS_NO_MEMORY;
    }
    char *at = lane->text;
    lane->link.first = memory_text_put(&at, destination);
    lane->link.second = memory_text_put(&at, tenant);
    lane->id = lane->shown.id = (int64_t)store->lane_list.count + 1;
    lane->shown.tenant = lane->link.second;
    lane->shard = shard;
    if (lane_come(store, lane) != STATUS_OK) {
        store->undos.count--;
        free(lane);
        return STATUS_NO_MEMORY;
    }
    names_add(&store->lanes, &lane->link);
    store->lane_list.items[store->lane_list.count++] = lane;
    undo->lane = lane;
    undo->lane_is_new = true;
    *ret_lane = lane;
    return STATUS_OK;
}

/* With one reference, for the caller's job. */
static struct memory_name *name_get(struct memory_store *store, struct slice tenant, struct slice id)
{
    assert(id.len > 0);
    struct memory_name *name = memory_name_find(store, tenant, id);
    if (!name) {
        name = calloc(1, sizeof *name + tenant.len + id.len + 2);
        if (!name)
            return NULL;
        char *at = name->text;
        name->link.first = memory_text_put(&at, tenant);
        name->link.second = memory_text_put(&at, id);
        names_add(&store->names, &name->link);
    }
    name->references++;
    return name;
}

static void job_fill(struct memory_job *job, const struct op_insert *insert, instant now, int64_t seq)
{
    assert(job->lane && job->name);
    struct slice payload = job->job.payload;
    char *at = job->text;
    change_insert(insert, now, &job->job);
    job->job.seq = seq;
    job->job.lane = job->lane->id;
    job->job.destination = job->lane->shard->link.first; /* its events outlive the lane */
    job->job.tenant = job->name->link.first;
    job->job.id = job->name->link.second;
    job->job.payload = payload;
    job->job.content_type = memory_text_put(&at, insert->content_type);
    job->job.headers = memory_text_put(&at, insert->headers);
    job->job.correlation_id = memory_text_put(&at, insert->correlation_id);
    job->job.metadata = memory_text_put(&at, insert->metadata);
    job->job.key = memory_text_put(&at, insert->key);
    job->job.callback = memory_text_put(&at, insert->callback);
    job_digest(insert, job->digest);
}

enum status memory_job_add(struct memory_store *store, const struct op_insert *insert, instant now, struct slice id,
                           int64_t seq, struct memory_lane *lane, struct memory_job **ret_job)
{
    assert(seq > 0 && !lane->gone);
    size_t text_bytes =
        insert->content_type.len + insert->headers.len + insert->correlation_id.len + insert->metadata.len +
        insert->key.len + insert->callback.len + 6;
    struct memory_job *job = calloc(1, sizeof *job + text_bytes);
    if (!job || text_copy(insert->payload, &job->job.payload) != STATUS_OK) {
        free(job);
        return STATUS_NO_MEMORY;
    }
    struct undo *undo = memory_undo(store, UNDO_JOB_NEW);
    job->name = undo ? name_get(store, insert->tenant, id) : NULL;
    if (!job->name) {
        store->undos.count -= undo ? 1 : 0;
        text_free(job->job.payload);
        free(job);
        return STATUS_NO_MEMORY;
    }
    assert(!job->name->job);
    job->name->job = job;
    job->lane = lane;
    job_fill(job, insert, now, seq);
    tree_add(&store->jobs, &job->by_seq, seq, seq);
    undo->job = job;
    undo->counts = lane->counts;
    job_place(store, job);
    job_count(store, lane, NULL, &job->job);
    *ret_job = job;
    return STATUS_OK;
}

enum status memory_text_set(struct memory_store *store, struct slice *text, struct slice value)
{
    struct slice copy;
    if (slice_equal(*text, value))
        return STATUS_OK;
    if (text_copy(value, &copy) != STATUS_OK)
        return STATUS_NO_MEMORY;
    struct undo *undo = memory_undo(store, UNDO_TEXT);
    if (!undo) {
        text_free(copy);
        return STATUS_NO_MEMORY;
    }
    undo->text = text;
    undo->text_before = *text;
    *text = copy;
    return STATUS_OK;
}

/* The texts first: each has an undo of its own, and what fails there has not moved the job. */
static enum status texts_become(struct memory_store *store, struct job *job, const struct job *after)
{
    enum status status = memory_text_set(store, &job->last_code, after->last_code);
    if (status == STATUS_OK)
        status = memory_text_set(store, &job->last_error, after->last_error);
    if (status == STATUS_OK)
        status = memory_text_set(store, &job->dead_code, after->dead_code);
    if (status == STATUS_OK)
        status = memory_text_set(store, &job->reference, after->reference);
    if (status == STATUS_OK)
        status = memory_text_set(store, &job->redrive, after->redrive);
    return status == STATUS_OK ? memory_text_set(store, &job->lease_owner, after->lease_owner) : status;
}

enum status memory_job_become(struct memory_store *store, struct memory_job *job, const struct job *after)
{
    assert(job->name->job == job && job->job.seq == after->seq);
    if (texts_become(store, &job->job, after) != STATUS_OK)
        return STATUS_NO_MEMORY;
    struct job *before = malloc(sizeof *before);
    struct undo *undo = before ? memory_undo(store, UNDO_JOB_CHANGED) : NULL;
    if (!undo) {
        free(before);
        return STATUS_NO_MEMORY;
    }
    *before = job->job;
    undo->job = job;
    undo->before = before;
    undo->counts = job->lane->counts;
    job_displace(store, job);
    job->job = *after;
    job->job.last_code = before->last_code;
    job->job.last_error = before->last_error;
    job->job.dead_code = before->dead_code;
    job->job.reference = before->reference;
    job->job.redrive = before->redrive;
    job->job.lease_owner = before->lease_owner;
    job->job.payload = before->payload;
    job_place(store, job);
    job_count(store, job->lane, before, &job->job);
    return STATUS_OK;
}

enum status memory_job_delete(struct memory_store *store, struct memory_job *job)
{
    assert(job->name->job == job);
    struct undo *undo = memory_undo(store, UNDO_JOB_GONE);
    if (!undo)
        return STATUS_NO_MEMORY;
    undo->job = job;
    undo->counts = job->lane->counts;
    job_displace(store, job);
    job_count(store, job->lane, &job->job, NULL);
    tree_remove(&store->jobs, &job->by_seq);
    job->name->job = NULL;
    return STATUS_OK;
}

enum status memory_saved_get(struct memory_store *store, struct slice space, struct slice name,
                            struct memory_saved **ret_saved)
{
    assert(space.len > 0 && name.len > 0);
    struct names_link *link = names_find(&store->saved, space, name);
    if (link) {
        *ret_saved = CONTAINER_OF(link, struct memory_saved, link);
        return STATUS_OK;
    }
    struct memory_saved *saved = calloc(1, sizeof *saved + space.len + name.len + 2);
    struct undo *undo = saved ? memory_undo(store, UNDO_SAVED_NEW) : NULL;
    if (!undo) {
        free(saved);
        return STATUS_NO_MEMORY;
    }
    char *at = saved->text;
    saved->link.first = memory_text_put(&at, space);
    saved->link.second = memory_text_put(&at, name);
    saved->value = SLICE("");
    names_add(&store->saved, &saved->link);
    undo->saved = saved;
    *ret_saved = saved;
    return STATUS_OK;
}

static enum status events_reserve(struct memory_store *store)
{
    assert(store->events.start + store->events.count <= store->events.capacity);
    if (store->events.start + store->events.count < store->events.capacity)
        return STATUS_OK;
    if (store->events.start > store->events.count) {
        memmove(store->events.items, store->events.items + store->events.start,
                store->events.count * sizeof *store->events.items);
        store->events.start = 0;
        return STATUS_OK;
    }
    struct memory_event **events = array_grow(store->events.items, store->events.start + store->events.count,
                                              &store->events.capacity, sizeof *events);
    if (!events)
        return STATUS_NO_MEMORY;
    store->events.items = events;
    return STATUS_OK;
}

/* By its number: what is forgotten with the process needs no secret, and a run can be repeated. */
void memory_event_salt(struct event *event)
{
    uint64_t salt = event->data.len > 0 ? (uint64_t)event->number : 0;
    memcpy(event->salt, &salt, sizeof salt);
}

int64_t memory_event_previous(enum event_type type, int64_t before)
{
    assert(before >= 0);
    return type == EVENT_TYPE_ACCEPTED ? 0 : before;
}

enum status memory_event_add(struct memory_store *store, instant now, enum event_type type, struct memory_job *job,
                             struct slice destination, struct slice data)
{
    assert(data.len <= EVENT_DATA_BYTES_MAX);
    struct memory_event *entry = events_reserve(store) == STATUS_OK ? malloc(sizeof *entry + data.len + 1) : NULL;
    if (!entry)
        return STATUS_NO_MEMORY;
    struct memory_name *name = job ? job->name : NULL;
    struct event event = { .type = type, .destination = destination, .tenant = SLICE(""), .job = SLICE(""), .data = data };
    if (job)
        event = change_event(type, &job->job, data);
    event.number = store->numbers.event + 1;
    event.at = now;
    event.previous = memory_event_previous(type, name ? name->last_event : 0);
    event.form = EVENT_FORM_SALTED;
    memory_event_salt(&event);
    event_chain(store->numbers.hash, &event);
    *entry = (struct memory_event){ .at = now,
                                   .before = name ? name->last_event : 0,
                                   .attempt = event.attempt,
                                   .name = name,
                                   .destination = event.destination,
                                   .tenant = event.tenant,
                                   .type = type,
                                   .state = event.state,
                                   .data_len = (uint32_t)data.len };
    char *at = entry->data;
    memory_text_put(&at, data);
    memcpy(entry->hash, event.hash, sizeof entry->hash);
    memcpy(store->numbers.hash, event.hash, sizeof event.hash);
    store->events.items[store->events.start + store->events.count++] = entry;
    store->numbers.event = event.number;
    if (job) {
        name->last_event = event.number;
        name->references++;
        job->job.last_event = event.number;
    }
    return STATUS_OK;
}

struct memory_name *memory_name_find(const struct memory_store *store, struct slice tenant, struct slice id)
{
    struct names_link *link = names_find(&store->names, tenant, id);
    return link ? CONTAINER_OF(link, struct memory_name, link) : NULL;
}

struct memory_job *memory_job_find(const struct memory_store *store, int64_t seq)
{
    struct tree_node *node = tree_find(&store->jobs, seq, seq);
    return node ? CONTAINER_OF(node, struct memory_job, by_seq) : NULL;
}

int64_t memory_event_first(const struct memory_store *store)
{
    assert(store->numbers.event >= (int64_t)store->events.count);
    return store->numbers.event - (int64_t)store->events.count + 1;
}

struct memory_event *memory_event_find(const struct memory_store *store, int64_t number)
{
    struct memory_event **place = event_place(store, number);
    return place ? *place : NULL;
}

enum status memory_event_erase(struct memory_store *store, int64_t number, bool *ret_erased)
{
    struct memory_event **place = event_place(store, number);
    *ret_erased = false;
    if (!place || (*place)->erased || (*place)->data_len == 0)
        return STATUS_OK;
    struct memory_event *erased = malloc(sizeof *erased + EVENT_HASH_BYTES);
    struct undo *undo = erased ? memory_undo(store, UNDO_EVENT_ERASED) : NULL;
    if (!undo) {
        free(erased);
        return STATUS_NO_MEMORY;
    }
    struct event event = { .number = number, .form = EVENT_FORM_SALTED, .data = { (*place)->data, (*place)->data_len } };
    memory_event_salt(&event);
    *erased = **place;
    erased->erased = *ret_erased = true;
    erased->data_len = EVENT_HASH_BYTES;
    trail_data_digest(&event, (unsigned char *)erased->data);
    undo->event = number;
    undo->event_before = *place;
    *place = erased;
    return STATUS_OK;
}

enum status memory_job_copy(const struct memory_job *job, bool with_payload, struct arena *memory, struct job *ret_job)
{
    assert(job->job.state != STATE_NONE);
    struct job copy = job->job;
    if (!with_payload)
        copy.payload = SLICE("");
    struct slice *texts[] = { &copy.destination, &copy.tenant,       &copy.id,      &copy.last_code,      &copy.last_error,
                              &copy.dead_code,   &copy.reference,    &copy.headers, &copy.correlation_id, &copy.metadata,
                              &copy.payload,     &copy.content_type, &copy.lease_owner, &copy.key,
                              &copy.callback,    &copy.redrive };
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        bytes += texts[i]->len + 1;
    char *at = arena_alloc(memory, bytes);
    if (!at)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = memory_text_put(&at, *texts[i]);
    *ret_job = copy;
    return STATUS_OK;
}

void memory_clear(struct memory_store *store)
{
    for (size_t i = 0; i < store->events.count; i++)
        free(store->events.items[store->events.start + i]);
    size_t cursor = 0;
    for (struct names_link *link; (link = names_pop(&store->names, &cursor));) {
        struct memory_name *name = CONTAINER_OF(link, struct memory_name, link);
        struct memory_job *job = name->job;
        name->references = 2; /* the events are gone and the table does not have it any more */
        if (job)
            job_free(store, job);
        free(name);
    }
    cursor = 0;
    for (struct names_link *link; (link = names_pop(&store->saved, &cursor));) {
        struct memory_saved *saved = CONTAINER_OF(link, struct memory_saved, link);
        text_free(saved->value);
        free(saved);
    }
    for (size_t i = 0; i < store->lane_list.count; i++)
        free(store->lane_list.items[i]);
    totals_release(&store->totals);
    map_release(&store->tenants);
    free(store->own_tenant);
    names_release(&store->names);
    names_release(&store->lanes);
    names_release(&store->saved);
    memory_sessions_free(store);
    free(store->lane_list.items);
    free(store->events.items);
    free(store->undos.items);
}
