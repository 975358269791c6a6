#include "store/memory/nodes.h"

#include "store/memory/read.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct memory_node *node_lock(struct store *base)
{
    assert(base->ops == &memory_store_ops);
    struct memory_node *node = CONTAINER_OF(base, struct memory_node, store);
    pthread_mutex_lock(&node->memory->mutex);
    return node;
}

static enum status node_unlock(const struct memory_node *node, enum status status)
{
    assert(node->memory->nodes > 0);
    pthread_mutex_unlock(&node->memory->mutex);
    return status;
}

static struct memory_session *session_at(const struct memory_store *store, int64_t number)
{
    return number > 0 && (uint64_t)number <= store->sessions.count ? &store->sessions.items[number - 1] : NULL;
}

struct memory_session *memory_session_of(const struct memory_store *store, const struct job *leased)
{
    assert(leased->state == STATE_RUNNING);
    return session_at(store, leased->lease_session);
}

bool memory_sessions_left(const struct memory_store *store)
{
    for (size_t i = 0; i < store->sessions.count; i++)
        if (store->sessions.items[i].ended && store->sessions.items[i].leases > 0)
            return true;
    return false;
}

void memory_sessions_free(struct memory_store *store)
{
    size_t cursor = 0;
    for (struct names_link *link; (link = names_pop(&store->shards, &cursor));)
        free(CONTAINER_OF(link, struct memory_shard, link));
    names_release(&store->shards);
    for (size_t i = 0; i < store->sessions.count; i++) {
        free(store->sessions.items[i].node);
        free(store->sessions.items[i].url);
    }
    free(store->sessions.items);
}

/* ---- Who owns what ---- */

enum status memory_shard_get(struct memory_store *store, struct slice destination, struct memory_shard **ret_shard)
{
    struct names_link *link = names_find(&store->shards, destination, SLICE(""));
    if (!link) {
        struct memory_shard *shard = calloc(1, sizeof *shard + destination.len + 1);
        if (!shard)
            return STATUS_NO_MEMORY;
        char *at = shard->text;
        shard->link.first = memory_text_put(&at, destination);
        shard->link.second = SLICE("");
        names_add(&store->shards, &shard->link);
        link = &shard->link;
    }
    *ret_shard = CONTAINER_OF(link, struct memory_shard, link);
    return STATUS_OK;
}

static bool is_alone(const struct memory_node *node)
{
    return node->name[0] == '\0';
}

bool memory_owns(const struct memory_store *store, const struct memory_shard *shard, bool rest)
{
    const struct memory_node *node = store->acting;
    assert(node->memory == store);
    return is_alone(node) || shard->session == node->store.session ||
           (rest && shard->session == 0 && store->steward->session == node->store.session);
}

static enum status shard_pass(struct memory_store *store, struct memory_shard *shard, int64_t session, struct op_own *own)
{
    assert(shard->session != session);
    struct undo *undo = memory_undo(store, UNDO_SHARD);
    if (!undo)
        return STATUS_NO_MEMORY;
    undo->shard = shard;
    undo->session_before = shard->session;
    undo->epoch_before = shard->epoch;
    shard->session = session;
    own->ret_epoch = ++shard->epoch;
    return STATUS_OK;
}

enum status memory_take(struct memory_store *store, struct op_own *own)
{
    assert(store->acting && store->acting->memory == store);
    struct memory_shard *shard;
    if (memory_shard_get(store, own->destination, &shard) != STATUS_OK)
        return STATUS_NO_MEMORY;
    own->ret_epoch = shard->epoch;
    if (memory_owns(store, shard, false))
        return STATUS_OK;
    return shard->session == 0 ? shard_pass(store, shard, store->acting->store.session, own) : STATUS_CONFLICT;
}

enum status memory_give(struct memory_store *store, struct op_own *own)
{
    assert(store->acting && store->acting->memory == store);
    struct memory_shard *shard;
    if (memory_shard_get(store, own->destination, &shard) != STATUS_OK)
        return STATUS_NO_MEMORY;
    own->ret_epoch = shard->epoch;
    if (is_alone(store->acting))
        return STATUS_OK;
    return memory_owns(store, shard, false) ? shard_pass(store, shard, 0, own) : STATUS_CONFLICT;
}

/* ---- Sessions ---- */

static void session_end(struct memory_store *store, int64_t number, instant fenced_at)
{
    struct memory_session *session = session_at(store, number);
    assert(session && !session->ended);
    session->ended = true;
    session->fenced_at = fenced_at;
    size_t cursor = 0;
    for (struct names_link *link = NULL; (link = names_next(&store->shards, &cursor, link));) {
        struct memory_shard *shard = CONTAINER_OF(link, struct memory_shard, link);
        if (shard->session != number)
            continue;
        shard->session = 0;
        shard->epoch++;
    }
}

static enum status session_add(struct memory_node *node)
{
    struct memory_store *store = node->memory;
    struct memory_session *sessions = realloc(store->sessions.items, (store->sessions.count + 1) * sizeof *sessions);
    if (!sessions)
        return STATUS_NO_MEMORY;
    store->sessions.items = sessions;
    struct memory_session *session = &sessions[store->sessions.count];
    *session = (struct memory_session){ .node = strdup(node->name), .url = strdup(node->url), .fenced_at = INSTANT_NONE };
    if (!session->node || !session->url) {
        free(session->node);
        free(session->url);
        return STATUS_NO_MEMORY;
    }
    node->store.session = (int64_t)++store->sessions.count;
    return STATUS_OK;
}

enum status memory_session_begin(struct store *base, instant now, struct error *err)
{
    (void)now;
    struct memory_node *node = node_lock(base);
    struct memory_store *store = node->memory;
    if (session_add(node) != STATUS_OK)
        return node_unlock(node, error_set(err, STATUS_NO_MEMORY, "no memory for a session"));
    for (int64_t number = 1; number < base->session; number++)
        if (!store->sessions.items[number - 1].ended && strcmp(store->sessions.items[number - 1].node, node->name) == 0)
            session_end(store, number, INSTANT_NONE);
    return node_unlock(node, STATUS_OK);
}

enum status memory_session_end(struct store *base, instant now, struct error *err)
{
    (void)now;
    (void)err;
    const struct memory_node *node = node_lock(base);
    assert(session_at(node->memory, base->session));
    if (!session_at(node->memory, base->session)->ended)
        session_end(node->memory, base->session, INSTANT_NONE);
    return node_unlock(node, STATUS_OK);
}

enum status memory_beat(struct store *base, uint64_t config, struct error *err)
{
    const struct memory_node *node = node_lock(base);
    struct memory_session *session = session_at(node->memory, base->session);
    assert(session);
    if (session->ended)
        return node_unlock(node, error_set(err, STATUS_FENCED, "session %lld has ended", (long long)base->session));
    session->beat++;
    session->config = config;
    return node_unlock(node, STATUS_OK);
}

enum status memory_fence(struct store *base, int64_t number, int64_t beat, instant now, struct error *err)
{
    const struct memory_node *node = node_lock(base);
    const struct memory_session *session = session_at(node->memory, number);
    if (!session || session->ended || session->beat != beat)
        return node_unlock(node, error_set(err, STATUS_CONFLICT, "session %lld lives, or has ended already",
                                           (long long)number));
    session_end(node->memory, number, now);
    return node_unlock(node, STATUS_OK);
}

/* ---- Reading ---- */

enum status memory_reader_sessions(struct store_reader *base, struct arena *memory, struct session **ret_sessions,
                                   size_t *ret_count, struct error *err)
{
    struct memory_store *store = memory_reader_lock(base);
    struct session *list = arena_alloc_array(memory, store->sessions.count, sizeof *list);
    bool complete = list != NULL;
    size_t count = 0;
    for (size_t i = 0; i < store->sessions.count && complete; i++) {
        const struct memory_session *session = &store->sessions.items[i];
        if (session->ended && session->leases == 0)
            continue;
        list[count] = (struct session){ .number = (int64_t)i + 1,
                                        .node = arena_copy(memory, slice_from(session->node)),
                                        .url = arena_copy(memory, slice_from(session->url)),
                                        .beat = session->beat,
                                        .ended = session->ended,
                                        .config = session->config,
                                        .fenced_at = session->fenced_at };
        complete = list[count].node.data && list[count].url.data;
        count++;
    }
    if (complete) {
        *ret_sessions = list;
        *ret_count = count;
    }
    return memory_reader_unlock(store, complete ? STATUS_OK : STATUS_NO_MEMORY, err);
}

static int by_name(const void *a, const void *b)
{
    return slice_compare(((const struct shard *)a)->destination, ((const struct shard *)b)->destination);
}

enum status memory_reader_shards(struct store_reader *base, struct arena *memory, struct shard **ret_shards,
                                 size_t *ret_count, struct error *err)
{
    struct memory_store *store = memory_reader_lock(base);
    struct shard *list = arena_alloc_array(memory, store->shards.count, sizeof *list);
    bool complete = list != NULL;
    size_t count = 0, cursor = 0;
    for (struct names_link *link = NULL; complete && (link = names_next(&store->shards, &cursor, link));) {
        const struct memory_shard *shard = CONTAINER_OF(link, struct memory_shard, link);
        if (shard->epoch == 0)
            continue;
        assert(count < store->shards.count);
        list[count] = (struct shard){ arena_copy(memory, link->first), shard->session, shard->epoch };
        complete = list[count++].destination.data != NULL;
    }
    if (complete && count > 1)
        qsort(list, count, sizeof *list, by_name);
    if (complete) {
        *ret_shards = list;
        *ret_count = count;
    }
    return memory_reader_unlock(store, complete ? STATUS_OK : STATUS_NO_MEMORY, err);
}
