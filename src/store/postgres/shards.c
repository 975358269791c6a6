/* Which destinations there are, and which of them this session owns. */
#include "store/postgres/handle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct postgres_shard *shard_find(const struct postgres_store *store, struct slice destination)
{
    return map_get(&store->shards.by_name, destination);
}

struct postgres_shard *shard_learn(struct postgres_store *store, struct slice destination, int64_t id)
{
    struct postgres_shard *shard = shard_find(store, destination);
    if (shard) {
        shard->id = id;
        return shard;
    }
    shard = calloc(1, sizeof *shard + destination.len + 1);
    if (!shard)
        return NULL;
    memcpy(shard->text, destination.data, destination.len);
    shard->destination = (struct slice){ shard->text, destination.len };
    shard->id = id;
    shard->is_new = true;
    if (map_put(&store->shards.by_name, shard->destination, shard) != STATUS_OK) {
        free(shard);
        return NULL;
    }
    store->shards.touched = true;
    return shard;
}

void shards_commit(struct postgres_store *store)
{
    size_t cursor = 0;
    for (struct map_entry *entry; store->shards.touched && (entry = map_next(&store->shards.by_name, &cursor));) {
        struct postgres_shard *shard = entry->value;
        if (shard->owned && !shard->owned_before)
            postgres_recall(&store->base); /* where its lanes begin was somebody else's to know */
        shard->owned_before = shard->owned;
        shard->is_new = false;
    }
    store->shards.touched = false;
}

/* One that the batch made known may not be there: the map is made anew without it. */
void shards_rollback(struct postgres_store *store)
{
    size_t cursor = 0;
    struct map kept;
    if (!store->shards.touched)
        return;
    map_init(&kept, store->base.seed);
    for (struct map_entry *entry; (entry = map_next(&store->shards.by_name, &cursor));) {
        struct postgres_shard *shard = entry->value;
        shard->owned = shard->owned_before;
        if (shard->is_new || map_put(&kept, shard->destination, shard) != STATUS_OK) {
            assert(!shard->owned || !shard->is_new);
            free(shard);
        }
    }
    map_release(&store->shards.by_name);
    store->shards.by_name = kept;
    store->shards.touched = false;
}

void shards_release(struct postgres_store *store)
{
    size_t cursor = 0;
    for (struct map_entry *entry; (entry = map_next(&store->shards.by_name, &cursor));)
        free(entry->value);
    map_release(&store->shards.by_name);
}

bool store_owns(const struct postgres_store *store, struct slice destination)
{
    const struct postgres_shard *shard = store->shared ? shard_find(store, destination) : NULL;
    return !store->shared || (shard && shard->owned);
}

bool store_is_steward(const struct postgres_store *store)
{
    return store_owns(store, SLICE(""));
}
