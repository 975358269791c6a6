#include "store/memory/memory.h"

#include "base/array.h"
#include "store/memory/nodes.h"
#include "store/memory/read.h"
#include "store/memory/state.h"
#include "store/tally.h"
#include "store/trail.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED 0x696e73697374u /* fixed: equal calls give equal results, in every run */

static struct memory_node *node_of(struct store *base)
{
    assert(base->ops == &memory_store_ops);
    return CONTAINER_OF(base, struct memory_node, store);
}

static enum status id_made(struct memory_store *store, instant now, int64_t seq, struct slice tenant, struct arena *memory,
                           struct slice *ret_id)
{
    assert(seq > 0);
    char text[JOB_ID_MADE_BYTES + 1];
    struct memory_name *taken;
    uint64_t number = (uint64_t)seq;
    do {
        job_id_make(now, number++, text);
        taken = memory_name_find(store, tenant, slice_from(text));
    } while (taken && taken->job); /* somebody chose the same text for an id of his own */
    *ret_id = arena_copy(memory, slice_from(text));
    return ret_id->data ? STATUS_OK : STATUS_NO_MEMORY;
}

/* Whether the queue is, or its tenant's share of it. */
static bool is_full(const struct memory_store *store, struct op_insert *insert)
{
    assert(store->numbers.backlog >= 0);
    insert->ret_tenant_full = false;
    if (insert->beyond_limit)
        return false;
    if (store->settings.pending_max > 0 && store->numbers.backlog >= store->settings.pending_max)
        return true;
    int64_t share = pending_share(&store->settings, store->tenant_count);
    insert->ret_tenant_full =
        share > 0 && store->numbers.backlog >= share && memory_tenant_waiting(store, insert->tenant) >= share;
    return insert->ret_tenant_full;
}

static enum status apply_insert(struct memory_store *store, instant now, struct store_op *op, struct arena *memory)
{
    struct op_insert *insert = &op->insert;
    struct memory_lane *lane;
    struct memory_job *job;
    struct slice id;
    if (change_insert_check(insert) != STATUS_OK)
        return STATUS_INVALID;
    struct memory_name *name = insert->id.len > 0 ? memory_name_find(store, insert->tenant, insert->id) : NULL;
    if (name && name->job)
        return change_insert_again(insert, &name->job->job, name->job->digest, memory);
    if (is_full(store, insert))
        return STATUS_FULL;

    int64_t seq = ++store->numbers.seq;
    if (insert->id.len > 0)
        id = arena_copy(memory, insert->id);
    else if (id_made(store, now, seq, insert->tenant, memory, &id) != STATUS_OK)
        return STATUS_NO_MEMORY;
    if (!id.data || memory_lane_get(store, insert->destination, insert->tenant, &lane) != STATUS_OK)
        return STATUS_NO_MEMORY;
    insert->ret_behind = insert->key.len > 0 && memory_chain_next(lane, job_chain(insert->key), 0);
    if (memory_job_add(store, insert, now, id, seq, lane, &job) != STATUS_OK)
        return STATUS_NO_MEMORY;
    insert->ret_id = id;
    insert->ret_seq = seq;
    insert->ret_lane = lane->id;
    insert->ret_existed = false;
    return memory_event_add(store, now, EVENT_TYPE_ACCEPTED, job, SLICE(""), op->data);
}

/* Counts what the change means for the redrive that has the job. */
static enum status redrive_count(struct memory_store *store, const struct job *before, const struct job *after)
{
    struct redrive_tally tally = { .count = 0 };
    struct memory_saved *saved;
    char value[24];
    int64_t count = 0;
    tally_note(&tally, before, after);
    assert(tally.count <= 1); /* a job is of one redrive at most */
    if (tally.count == 0)
        return STATUS_OK;
    enum status status = memory_saved_get(store, SPACE_TALLY, slice_from(tally.rows[0].name), &saved);
    if (status != STATUS_OK)
        return status;
    slice_to_int64(saved->value, &count);
    snprintf(value, sizeof value, "%lld", (long long)(count + tally.rows[0].more));
    return memory_text_set(store, &saved->value, slice_from(value));
}

/* The job becomes another, and the event tells of it. */
static enum status job_become(struct memory_store *store, instant now, struct memory_job *job, const struct job *after,
                              enum event_type type, struct slice data)
{
    assert(job->job.seq == after->seq);
    enum status status = redrive_count(store, &job->job, after);
    if (status == STATUS_OK)
        status = memory_job_become(store, job, after);
    if (status != STATUS_OK || type == EVENT_TYPE_NONE)
        return status;
    return memory_event_add(store, now, type, job, SLICE(""), data);
}

static enum status claim_one(struct memory_store *store, instant now, const struct store_op *op, struct memory_job *job,
                             struct arena *memory, struct job *ret_job)
{
    struct job after = job->job;
    enum status status = change_claim(&op->claim, now, ++store->numbers.token, store->acting->store.session, &after);
    assert(status == STATUS_OK); /* only what can be claimed is ready here */
    status = job_become(store, now, job, &after, EVENT_TYPE_CLAIMED, op->data);
    return status == STATUS_OK ? memory_job_copy(job, true, memory, ret_job) : status;
}

/* The one that a claim takes next; NULL: none of those that are wanted. */
static struct memory_job *claim_next(const struct memory_lane *lane, const struct op_claim *claim, size_t looks)
{
    assert(lane->counts.ready > 0);
    instant failed_last = claim->failed_last;
    struct tree_node *node = tree_first(&lane->ready);
    struct memory_job *first = CONTAINER_OF(node, struct memory_job, by_place), *longest_ago = NULL;
    for (size_t i = 0; failed_last != 0 && node && i < looks; i++) {
        struct memory_job *job = CONTAINER_OF(node, struct memory_job, by_place);
        if (job->job.look_failed_at < failed_last)
            return job; /* INSTANT_NONE is before everything */
        if (!longest_ago || job->job.look_failed_at < longest_ago->job.look_failed_at)
            longest_ago = job;
        node = tree_after(&lane->ready, node->key, node->tie);
    }
    if (longest_ago)
        return claim->unfailed_only ? NULL : longest_ago;
    return first;
}

static enum status apply_claim(struct memory_store *store, instant now, struct store_op *op, struct arena *memory)
{
    struct op_claim *claim = &op->claim;
    size_t bytes = 0;
    claim->ret_jobs = NULL;
    claim->ret_count = claim->ret_left = 0;
    if (claim->lane < 1 || (uint64_t)claim->lane > store->lane_list.count)
        return STATUS_OK; /* a lane that never was has nothing ready */
    struct memory_lane *lane = store->lane_list.items[claim->lane - 1];
    if (!lane)
        return STATUS_OK;
    if (!memory_owns(store, lane->shard, false))
        return STATUS_CONFLICT;
    size_t count = (size_t)lane->counts.ready < claim->max ? (size_t)lane->counts.ready : claim->max;
    if (count == 0)
        return STATUS_OK;
    claim->ret_jobs = arena_alloc_array(memory, count, sizeof *claim->ret_jobs);
    if (!claim->ret_jobs)
        return STATUS_NO_MEMORY;
    for (; claim->ret_count < count; claim->ret_count++) {
        size_t looks = count > CLAIM_LOOKS_MAX ? count : CLAIM_LOOKS_MAX;
        struct memory_job *job = claim_next(lane, claim, looks - claim->ret_count);
        if (!job)
            break;
        bytes += job->job.payload.len;
        if (claim->bytes_max > 0 && claim->ret_count > 0 && bytes > claim->bytes_max)
            break;
        if (claim_one(store, now, op, job, memory, &claim->ret_jobs[claim->ret_count]) != STATUS_OK)
            return STATUS_NO_MEMORY;
    }
    claim->ret_left = count - claim->ret_count;
    return STATUS_OK;
}

static enum status job_delete(struct memory_store *store, instant now, struct memory_job *job, enum event_type type,
                              struct slice data)
{
    assert(job->name->job == job);
    enum status status = redrive_count(store, &job->job, NULL);
    if (status == STATUS_OK && type != EVENT_TYPE_NONE)
        status = memory_event_add(store, now, type, job, SLICE(""), data);
    return status == STATUS_OK ? memory_job_delete(store, job) : status;
}

/* The job has become what it is: what that means for the next of its key. */
static enum status chain_follow(struct memory_store *store, instant now, struct memory_job *job, enum chain_news news,
                                struct released *ret_released)
{
    if (news == CHAIN_SAME)
        return STATUS_OK;
    struct memory_job *next = memory_chain_next(job->lane, job->job.chain, news == CHAIN_GAP ? job->job.seq : 0);
    while (next && !next->job.behind) /* of a gap: who is under way has gone before */
        next = memory_chain_next(job->lane, job->job.chain, next->job.seq);
    if (!next)
        return STATUS_OK;
    struct job after = next->job;
    change_next(news, job->job.state, now, &after, ret_released);
    return memory_job_become(store, next, &after);
}

/* What a dead letter becomes is there first. */
static enum status apply_export(struct memory_store *store, instant now, struct op_insert *export, struct arena *memory)
{
    struct store_op insert = { .kind = OP_INSERT, .insert = *export };
    enum status status = apply_insert(store, now, &insert, memory);
    *export = insert.insert;
    return status;
}

/* OP_SETTLE, OP_EXTEND and what is done by name. `job` NULL: there is none. */
static enum status apply_to(struct memory_store *store, instant now, struct store_op *op, struct memory_job *job,
                            struct arena *memory)
{
    assert(!job || job->lane->id == job->job.lane);
    struct job after;
    struct change change;
    if (job)
        after = job->job;
    if (op->kind == OP_REDRIVE)
        op->job.ret_behind = job && job->job.chain != 0 && !job_is_chained(&job->job) &&
                             memory_chain_next(job->lane, job->job.chain, 0);
    enum status status = change_apply(op, now, job ? &after : NULL, &change);
    if (status == STATUS_OK && op->kind == OP_PURGE && op->job.export)
        status = apply_export(store, now, op->job.export, memory);
    if (status != STATUS_OK)
        return status;
    enum chain_news news = change_chain(&job->job, &after);
    if (change.deleted) {
        status = job_delete(store, now, job, change.event, op->data);
        return status == STATUS_OK ? chain_follow(store, now, job, news, &op->ret_released) : status;
    }
    if ((op->kind == OP_REDRIVE || op->kind == OP_UNDO) && op->job.payload_given)
        status = memory_text_set(store, &job->job.payload, op->job.payload);
    if (status == STATUS_OK)
        status = job_become(store, now, job, &after, change.event, op->data);
    return status == STATUS_OK ? chain_follow(store, now, job, news, &op->ret_released) : status;
}

static enum status apply_named(struct memory_store *store, instant now, struct store_op *op, struct arena *memory)
{
    if (op->job.seq != 0)
        return apply_to(store, now, op, memory_job_find(store, op->job.seq), memory);
    struct memory_name *name = memory_name_find(store, op->job.tenant, op->job.id);
    return apply_to(store, now, op, name ? name->job : NULL, memory);
}

/* Where the lanes that get something ready are counted; grows in the caller's memory. */
struct ready_list {
    struct lane_ready *lanes;
    size_t count, capacity;
    uint64_t mark;
    struct arena *memory;
};

static enum status ready_count(struct ready_list *list, struct memory_lane *lane, int ready, int dead)
{
    assert(ready != 0 || dead != 0);
    if (lane->mark == list->mark) {
        list->lanes[lane->mark_index].count += ready;
        list->lanes[lane->mark_index].dead += dead;
        return STATUS_OK;
    }
    struct lane_ready *lanes = array_grow_in(list->memory, list->lanes, list->count, &list->capacity, sizeof *lanes);
    if (!lanes)
        return STATUS_NO_MEMORY;
    list->lanes = lanes;
    lane->mark = list->mark;
    lane->mark_index = list->count;
    struct lane_ready *news = &list->lanes[list->count++];
    *news = (struct lane_ready){ .lane = lane->id, .count = ready, .dead = dead,
                                 .destination = arena_copy(list->memory, lane->link.first),
                                 .tenant = arena_copy(list->memory, lane->link.second) };
    return news->destination.data && news->tenant.data ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status expired_name(struct op_promote *promote, const struct memory_job *expired, struct arena *memory)
{
    assert(promote->ret_expired > 0 && expired->job.state == STATE_DEAD);
    if (!promote->ret_expired_jobs)
        promote->ret_expired_jobs = arena_alloc_array(memory, promote->max, sizeof *promote->ret_expired_jobs);
    return promote->ret_expired_jobs
               ? memory_job_copy(expired, false, memory, &promote->ret_expired_jobs[promote->ret_expired - 1])
               : STATUS_NO_MEMORY;
}

static enum status promote_one(struct memory_store *store, instant now, struct store_op *op, struct memory_job *job,
                               struct ready_list *list)
{
    assert(job->timed);
    struct job after = job->job;
    struct change change;
    change_due(&op->promote, now, &after, &change);
    enum status status = STATUS_OK;
    if (change.ready != 0 || change.dead != 0)
        status = ready_count(list, job->lane, change.ready, change.dead);
    if (status == STATUS_OK && change.deleted)
        return job_delete(store, now, job, change.event, op->data);
    enum chain_news news = change_chain(&job->job, &after);
    struct released released = { 0 };
    if (status == STATUS_OK)
        status = job_become(store, now, job, &after, change.event, op->data);
    if (status == STATUS_OK)
        status = chain_follow(store, now, job, news, &released);
    if (status == STATUS_OK && released.ready)
        status = ready_count(list, job->lane, 1, 0);
    bool wanted = op->promote.name_expired && change.event == EVENT_TYPE_EXPIRED;
    return status == STATUS_OK && wanted ? expired_name(&op->promote, job, list->memory) : status;
}

/* The first from `node` on of what is this session's to look after. */
static struct tree_node *timer_owned(const struct memory_store *store, struct tree_node *node)
{
    while (node && !memory_owns(store, CONTAINER_OF(node, struct memory_job, by_time)->lane->shard, true))
        node = tree_after(&store->timers, node->key, node->tie);
    return node;
}

static enum status apply_promote(struct memory_store *store, instant now, struct store_op *op, struct arena *memory)
{
    struct op_promote *promote = &op->promote;
    struct ready_list list = { .mark = ++store->mark, .memory = memory };
    change_due_begin(promote);
    struct tree_node *first = timer_owned(store, tree_first(&store->timers));
    for (size_t i = 0; i < promote->max && first && first->key <= now; i++) {
        struct memory_job *job = CONTAINER_OF(first, struct memory_job, by_time);
        const struct tree_node at = *first;
        if (promote_one(store, now, op, job, &list) != STATUS_OK)
            return STATUS_NO_MEMORY;
        first = timer_owned(store, tree_after(&store->timers, at.key, at.tie)); /* its own next time is later */
    }
    promote->ret_ready = list.lanes;
    promote->ret_ready_count = list.count;
    first = timer_owned(store, tree_first(&store->timers)); /* one that took another's place may be the next */
    promote->ret_next_at = first ? first->key : INSTANT_NONE;
    return STATUS_OK;
}

/* The next lease, in order of its end, that the caller asks for; NULL at the end. */
static struct memory_job *orphan_next(const struct memory_store *store, const struct op_orphans *orphans,
                                      const struct memory_job *last)
{
    assert(!last || last->job.state == STATE_RUNNING);
    struct tree_node *node = last ? tree_after(&store->leases, last->job.lease_until, last->job.seq)
                             : orphans->after_until != INSTANT_NONE
                                 ? tree_after(&store->leases, orphans->after_until, orphans->after_seq)
                                 : tree_first(&store->leases);
    bool left = orphans->of_ended && memory_sessions_left(store);
    for (; node && (left || node->key <= orphans->until); node = tree_after(&store->leases, node->key, node->tie)) {
        struct memory_job *job = CONTAINER_OF(node, struct memory_job, by_place);
        const struct memory_session *session = memory_session_of(store, &job->job);
        bool orphaned = node->key <= orphans->until || (left && session && session->ended);
        if (orphaned && memory_owns(store, job->lane->shard, true))
            return job;
    }
    return NULL;
}

static enum status apply_orphans(struct memory_store *store, struct store_op *op, struct arena *memory)
{
    assert(op->kind == OP_ORPHANS);
    struct op_orphans *orphans = &op->orphans;
    size_t count = 0;
    for (struct memory_job *job = NULL; count < orphans->max && (job = orphan_next(store, orphans, job));)
        count++;
    orphans->ret_jobs = arena_alloc_array(memory, count, sizeof *orphans->ret_jobs);
    if (!orphans->ret_jobs)
        return STATUS_NO_MEMORY;
    orphans->ret_count = 0;
    for (struct memory_job *job = NULL; orphans->ret_count < count; orphans->ret_count++) {
        job = orphan_next(store, orphans, job);
        struct job *copy = &orphans->ret_jobs[orphans->ret_count];
        const struct memory_session *session = memory_session_of(store, &job->job);
        if (memory_job_copy(job, false, memory, copy) != STATUS_OK)
            return STATUS_NO_MEMORY;
        copy->lease_fenced_at = session ? session->fenced_at : INSTANT_NONE;
    }
    return STATUS_OK;
}

static enum status apply_save(struct memory_store *store, struct slice space, struct slice name, struct slice value)
{
    struct memory_saved *saved;
    if (space.len == 0 || name.len == 0)
        return STATUS_INVALID;
    enum status status = memory_saved_get(store, space, name, &saved);
    return status == STATUS_OK ? memory_text_set(store, &saved->value, value) : status;
}

static enum status apply_destination(struct memory_store *store, instant now, struct store_op *op)
{
    assert(op->kind == OP_DESTINATION);
    enum status status = apply_save(store, SPACE_DESTINATION, op->save.name, op->save.value);
    if (status != STATUS_OK)
        return status;
    struct slice name = names_find(&store->saved, SPACE_DESTINATION, op->save.name)->second;
    return memory_event_add(store, now, EVENT_TYPE_DESTINATION, NULL, name, op->data);
}

/* Only from the oldest on: what is left has no gaps. */
static enum status apply_trim(struct memory_store *store, instant now, struct store_op *op)
{
    assert(store->numbers.trimmed <= store->events.count);
    size_t *trimmed = &store->numbers.trimmed;
    op->trim.ret_deleted = 0;
    if (!memory_owns(store, store->steward, false))
        return STATUS_CONFLICT;
    while (op->trim.ret_deleted < op->trim.max && *trimmed < store->events.count &&
           store->events.items[store->events.start + *trimmed]->at < op->trim.before) {
        ++*trimmed;
        op->trim.ret_deleted++;
    }
    if (op->trim.ret_deleted < TRIM_LEAST) {
        *trimmed -= op->trim.ret_deleted;
        op->trim.ret_deleted = 0;
        return STATUS_OK;
    }
    const struct memory_event *last = store->events.items[store->events.start + *trimmed - 1];
    struct trail_head newest = { .number = memory_event_first(store) + (int64_t)*trimmed - 1 };
    char data[TRAIL_TRIMMED_BYTES];
    memcpy(newest.hash, last->hash, EVENT_HASH_BYTES);
    trail_trimmed_format(&newest, data);
    return memory_event_add(store, now, EVENT_TYPE_NOTE, NULL, SLICE(""), slice_from(data));
}

static enum status apply_erase_events(struct memory_store *store, struct store_op *op)
{
    assert(op->kind == OP_ERASE_EVENTS);
    struct op_erase *erase = &op->erase;
    enum status status = STATUS_OK;
    erase->ret_erased = erase->ret_left = 0;
    if (erase->count > ERASE_EVENTS_MAX)
        return STATUS_LIMIT;
    for (size_t i = 0; i < erase->count && status == STATUS_OK; i++) {
        bool erased;
        status = memory_event_erase(store, erase->numbers[i], &erased);
        erase->ret_erased += erased;
    }
    return status;
}

/* STATUS_NO_MEMORY is the store's failure, anything else the operation's own. */
static enum status apply_one(struct memory_store *store, instant now, struct store_op *op, struct arena *memory)
{
    assert(op->kind <= OP_ERASE_EVENTS);
    if (op->data.len > EVENT_DATA_BYTES_MAX)
        return STATUS_LIMIT;
    switch (op->kind) {
    case OP_INSERT:
        return apply_insert(store, now, op, memory);
    case OP_CLAIM:
        return apply_claim(store, now, op, memory);
    case OP_SETTLE:
        return apply_to(store, now, op, memory_job_find(store, op->settle.seq), memory);
    case OP_EXTEND:
        return apply_to(store, now, op, memory_job_find(store, op->extend.seq), memory);
    case OP_CANCEL:
    case OP_PRIORITIZE:
    case OP_REDRIVE:
    case OP_UNDO:
    case OP_PURGE:
    case OP_ERASE:
        return apply_named(store, now, op, memory);
    case OP_PROMOTE:
        return apply_promote(store, now, op, memory);
    case OP_ORPHANS:
        return apply_orphans(store, op, memory);
    case OP_DESTINATION:
        return apply_destination(store, now, op);
    case OP_SAVE:
        return apply_save(store, op->save.space, op->save.name, op->save.value);
    case OP_NOTE:
        return memory_event_add(store, now, EVENT_TYPE_NOTE, NULL, SLICE(""), op->data);
    case OP_TRIM:
        return apply_trim(store, now, op);
    case OP_ERASE_EVENTS:
        return apply_erase_events(store, op);
    case OP_TAKE:
        return memory_take(store, &op->own);
    case OP_GIVE:
        return memory_give(store, &op->own);
    }
    return STATUS_UNSUPPORTED;
}

static enum status memory_apply(struct store *base, instant now, struct store_op *ops, size_t count, struct arena *memory,
                                struct error *err)
{
    const struct memory_node *node = node_of(base);
    struct memory_store *store = node->memory;
    if (count > STORE_BATCH_OPS_MAX)
        return error_set(err, STATUS_LIMIT, "a batch has %zu operations, the limit is %d", count, STORE_BATCH_OPS_MAX);
    enum status status = STATUS_OK;
    pthread_mutex_lock(&store->mutex);
    assert(base->session > 0 && (uint64_t)base->session <= store->sessions.count);
    if (store->sessions.items[base->session - 1].ended) { /* invariant 4 */
        pthread_mutex_unlock(&store->mutex);
        return error_set(err, STATUS_FENCED, "session %lld has ended", (long long)base->session);
    }
    store->acting = node;
    memory_begin(store);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        ops[i].ret_released = (struct released){ 0 };
        ops[i].status = apply_one(store, now, &ops[i], memory);
        if (ops[i].status == STATUS_NO_MEMORY)
            status = error_set(err, STATUS_NO_MEMORY, "memory ran out in operation %zu of %zu", i + 1, count);
    }
    if (status == STATUS_OK)
        memory_commit(store);
    else
        memory_rollback(store);
    pthread_mutex_unlock(&store->mutex);
    return status;
}

static enum status memory_sync(struct store *base, struct error *err)
{
    (void)base;
    (void)err;
    return STATUS_OK; /* nothing here survives the process, and nobody was promised otherwise */
}

static void store_free(struct memory_store *store)
{
    if (!store)
        return;
    assert(store->nodes == 0);
    memory_clear(store);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}

/* The last one takes all with it. Its session stays as it is: who only goes away has not ended it. */
static void node_free(struct memory_node *node)
{
    struct memory_store *store = node->memory;
    if (store) {
        pthread_mutex_lock(&store->mutex);
        assert(store->nodes > 0);
        size_t left = --store->nodes;
        pthread_mutex_unlock(&store->mutex);
        if (left == 0)
            store_free(store);
    }
    free(node->name);
    free(node->url);
    free(node);
}

static void memory_close(struct store *base)
{
    if (base)
        node_free(node_of(base));
}

const struct store_ops memory_store_ops = {
    .name = "memory",
    .writers_max = 1,
    .close = memory_close,
    .apply = memory_apply,
    .begin = memory_session_begin,
    .end = memory_session_end,
    .beat = memory_beat,
    .fence = memory_fence,
    .sync = memory_sync,
    .reader = memory_reader,
    .reader_close = memory_reader_close,
    .reader_job = memory_reader_job,
    .reader_job_seq = memory_reader_job_seq,
    .reader_jobs = memory_reader_jobs,
    .reader_events = memory_reader_events,
    .reader_history = memory_reader_history,
    .reader_lanes = memory_reader_lanes,
    .reader_lane = memory_reader_lane,
    .reader_totals = memory_reader_totals,
    .reader_ahead = memory_reader_ahead,
    .reader_saved = memory_reader_saved,
    .reader_saved_list = memory_reader_saved_list,
    .reader_sessions = memory_reader_sessions,
    .reader_shards = memory_reader_shards,
};

static char *string_copy(struct slice text)
{
    return strndup(text.len > 0 ? text.data : "", text.len);
}

/* Half-built it can be freed as a whole one. */
static struct memory_store *store_new(const struct store_settings *settings)
{
    struct memory_store *store = calloc(1, sizeof *store);
    if (!store || totals_init(&store->totals) != STATUS_OK) {
        free(store);
        return NULL;
    }
    if (pthread_mutex_init(&store->mutex, NULL) != 0) {
        totals_release(&store->totals);
        free(store);
        return NULL;
    }
    store->settings = *settings;
    map_init(&store->tenants, SEED);
    names_init(&store->names);
    names_init(&store->lanes);
    names_init(&store->saved);
    names_init(&store->shards);
    store->gone.end = &store->gone.first;
    store->own_tenant = string_copy(settings->own_tenant);
    if (store->own_tenant && memory_shard_get(store, SLICE(""), &store->steward) == STATUS_OK)
        return store;
    store_free(store);
    return NULL;
}

/* A handle, and its session. The store is its own from here on, with or without success. */
static enum status node_open(struct memory_store *store, const struct store_settings *settings, struct store **ret_store,
                             struct error *err)
{
    struct memory_node *node = store ? calloc(1, sizeof *node) : NULL;
    if (!node) {
        if (store && store->nodes == 0)
            store_free(store);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a store");
    }
    node->store = (struct store){ .ops = &memory_store_ops, .place = "memory", .seed = SEED, .newest_at = INSTANT_NONE };
    node->memory = store;
    pthread_mutex_lock(&store->mutex);
    store->nodes++;
    pthread_mutex_unlock(&store->mutex);
    node->name = string_copy(settings->node);
    node->url = string_copy(settings->node_url);
    enum status status = node->name && node->url ? memory_session_begin(&node->store, settings->now, err)
                                                 : error_set(err, STATUS_NO_MEMORY, "no memory for a store");
    if (status != STATUS_OK) {
        node_free(node);
        return status;
    }
    *ret_store = &node->store;
    return STATUS_OK;
}

enum status store_memory_open(struct slice ignored, const struct store_settings *settings, struct store **ret_store,
                              struct error *err)
{
    assert(settings && ret_store);
    (void)ignored;
    return node_open(store_new(settings), settings, ret_store, err);
}

enum status store_memory_join(struct store *other, const struct store_settings *settings, struct store **ret_store,
                              struct error *err)
{
    assert((settings->node.len > 0) == (node_of(other)->name[0] != '\0')); /* who has it for itself shares with nobody */
    return node_open(node_of(other)->memory, settings, ret_store, err);
}

const struct store_backend store_memory_backend = { .scheme = "memory:", .open = store_memory_open };
