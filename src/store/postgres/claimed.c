#include "store/postgres/claimed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CLAIMED_BYTES_MAX = 8 << 20, TEXTS = 7 };

struct postgres_claimed {
    struct job job;
    unsigned char digest[JOB_DIGEST_BYTES_MAX];
    bool made, inserted; /* as of its entry */
    size_t bytes;
    char text[];
};

static void forget(struct postgres_store *store, int64_t seq)
{
    struct postgres_claimed *lease = map_remove(&store->claimed.by_seq, map_key(&seq));
    if (!lease)
        return;
    assert(store->claimed.bytes >= lease->bytes);
    store->claimed.bytes -= lease->bytes;
    free(lease);
}

void claimed_forget(struct postgres_store *store)
{
    size_t cursor = 0;
    for (const struct map_entry *entry; (entry = map_next(&store->claimed.by_seq, &cursor));)
        free(entry->value);
    map_release(&store->claimed.by_seq);
    map_init(&store->claimed.by_seq, store->base.seed);
    store->claimed.bytes = 0;
}

/* The texts that a settlement may leave as they are; those of what is sent it never touches. */
static void texts_of(struct job *job, struct slice *ret_texts[TEXTS])
{
    struct slice *const texts[TEXTS] = { &job->id,        &job->lease_owner, &job->last_code, &job->last_error,
                                         &job->dead_code, &job->reference,   &job->redrive };
    memcpy(ret_texts, texts, sizeof texts);
}

static struct postgres_claimed *claimed_copy(const struct postgres_entry *entry)
{
    struct job job = entry->job;
    struct slice *texts[TEXTS];
    size_t bytes = 0;
    job.payload = job.content_type = job.headers = job.correlation_id = job.metadata = job.key = job.callback = SLICE("");
    texts_of(&job, texts);
    for (int i = 0; i < TEXTS; i++)
        bytes += texts[i]->len;
    struct postgres_claimed *lease = malloc(sizeof *lease + bytes);
    if (!lease)
        return NULL;
    char *end = lease->text;
    for (int i = 0; i < TEXTS; i++) {
        if (texts[i]->len > 0) /* one that was never set has no place either */
            memcpy(end, texts[i]->data, texts[i]->len);
        texts[i]->data = end;
        end += texts[i]->len;
    }
    lease->job = job;
    lease->made = entry->made;
    lease->inserted = entry->inserted && !entry->state_dirty;
    lease->bytes = sizeof *lease + bytes;
    memcpy(lease->digest, entry->digest, sizeof lease->digest);
    return lease;
}

/* What cannot be remembered is asked for. */
static void learn(struct postgres_store *store, const struct postgres_entry *entry)
{
    struct postgres_claimed *lease = claimed_copy(entry);
    if (!lease)
        return;
    if (store->claimed.bytes + lease->bytes > CLAIMED_BYTES_MAX)
        claimed_forget(store); /* most are of workers that never came back */
    if (map_put(&store->claimed.by_seq, map_key(&lease->job.seq), lease) != STATUS_OK) {
        free(lease);
        return;
    }
    store->claimed.bytes += lease->bytes;
}

void claimed_follow(struct postgres_batch *batch)
{
    for (const struct postgres_entry *entry = batch->round.first; entry; entry = entry->next) {
        if (entry->was)
            forget(batch->store, entry->job.seq);
        if (entry->is && entry->job.lease_token != 0 && entry->job.chain == 0 && !entry->job.damaged)
            learn(batch->store, entry);
    }
}

bool claimed_recall(struct postgres_batch *batch, int64_t seq, int64_t token)
{
    const struct postgres_claimed *lease = map_get(&batch->store->claimed.by_seq, map_key(&seq));
    const struct store_lane *lane = lease ? lane_table_by_id(&batch->store->lanes, lease->job.lane) : NULL;
    if (!lane || lease->job.lease_token != token)
        return false;
    if (entry_by_seq(&batch->round, seq))
        return true; /* two settle it in one batch: the second sees what the first did */
    struct postgres_entry *entry = arena_alloc(&batch->round.memory, sizeof *entry);
    struct slice *texts[TEXTS];
    if (!entry)
        return false;
    entry->job = lease->job;
    texts_of(&entry->job, texts);
    for (int i = 0; i < TEXTS; i++) { /* the lease may be forgotten before the round ends */
        *texts[i] = arena_copy(&batch->round.memory, *texts[i]);
        if (!texts[i]->data)
            return false;
    }
    entry->job.destination = lane->lane.destination;
    entry->job.tenant = lane->lane.tenant;
    entry->before = entry->job;
    entry->made = lease->made;
    entry->inserted = lease->inserted;
    entry->was = entry->is = true;
    memcpy(entry->digest, lease->digest, sizeof entry->digest);
    return entry_add(batch, entry) == STATUS_OK;
}
