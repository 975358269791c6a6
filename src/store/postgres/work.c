#include "store/postgres/work.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

enum status batch_no_memory(struct postgres_batch *batch)
{
    return error_set(batch->err, STATUS_NO_MEMORY, "no memory for a batch");
}

/* ---- a round ---- */

enum status round_init(struct postgres_batch *batch, size_t begin, size_t end)
{
    assert(begin < end);
    struct postgres_round *round = &batch->round;
    *round = (struct postgres_round){ .last = &round->first, .begin = begin, .end = end, .next_at = INSTANT_NONE };
    map_init(&round->by_seq, batch->store->base.seed);
    map_init(&round->by_name, batch->store->base.seed);
    map_init(&round->by_chain, batch->store->base.seed);
    round->claims = arena_alloc_array(&round->memory, end - begin, sizeof *round->claims);
    return round->claims ? STATUS_OK : batch_no_memory(batch);
}

void round_release(struct postgres_batch *batch)
{
    struct postgres_round *round = &batch->round;
    map_release(&round->by_seq);
    map_release(&round->by_name);
    map_release(&round->by_chain);
    for (const struct postgres_answer *answer = round->answers; answer; answer = answer->next)
        PQclear(answer->result);
    arena_release(&round->memory);
    *round = (struct postgres_round){ 0 };
}

/* ---- names ---- */

void name_key(struct slice tenant, struct slice id, unsigned char ret_key[KEY_BYTES])
{
    unsigned char whole[SHA256_DIGEST_LENGTH];
    uint64_t len = htole64(id.len);
    SHA256_CTX of_id, of_both;
    SHA256_Init(&of_id);
    SHA256_Update(&of_id, &len, sizeof len);
    SHA256_Update(&of_id, id.data, id.len);
    of_both = of_id;
    SHA256_Update(&of_both, tenant.data, tenant.len);
    SHA256_Final(whole, &of_id);
    memcpy(ret_key, whole, KEY_ID_BYTES);
    SHA256_Final(whole, &of_both);
    memcpy(ret_key + KEY_ID_BYTES, whole, KEY_BYTES - KEY_ID_BYTES);
}

struct postgres_entry *entry_by_seq(const struct postgres_round *round, int64_t seq)
{
    struct postgres_entry *entry = map_get(&round->by_seq, map_key(&seq));
    return entry && entry->is ? entry : NULL;
}

struct postgres_entry *entry_by_name(const struct postgres_round *round, struct slice tenant, struct slice id)
{
    unsigned char key[KEY_BYTES];
    name_key(tenant, id, key);
    struct postgres_entry *entry = map_get(&round->by_name, (struct slice){ (const char *)key, KEY_BYTES });
    return entry && entry->is ? entry : NULL;
}

/* ---- entries ---- */

enum status entry_add(struct postgres_batch *batch, struct postgres_entry *entry)
{
    assert(entry->is && entry->job.seq > 0);
    struct postgres_round *round = &batch->round;
    if (map_put(&round->by_seq, map_key(&entry->job.seq), entry) != STATUS_OK)
        return batch_no_memory(batch);
    *round->last = entry;
    round->last = &entry->next;
    return chain_join(batch, entry);
}

enum status entry_name(struct postgres_batch *batch, struct postgres_entry *entry)
{
    assert(entry->is);
    unsigned char *key = arena_alloc(&batch->round.memory, KEY_BYTES);
    if (!key)
        return batch_no_memory(batch);
    name_key(entry->job.tenant, entry->job.id, key);
    struct slice name = { (const char *)key, KEY_BYTES };
    map_remove(&batch->round.by_name, name); /* the map keeps the key that it was first given */
    return map_put(&batch->round.by_name, name, entry) == STATUS_OK ? STATUS_OK : batch_no_memory(batch);
}

enum status entry_load(struct postgres_batch *batch, const PGresult *answer, int row, struct postgres_entry **ret_entry)
{
    int64_t seq = value_int(answer, row, JOB_SEQ);
    struct postgres_entry *entry = map_get(&batch->round.by_seq, map_key(&seq));
    *ret_entry = entry;
    if (entry)
        return STATUS_OK;
    entry = arena_alloc(&batch->round.memory, sizeof *entry);
    if (!entry)
        return batch_no_memory(batch);
    enum status status = job_decode(answer, row, &entry->job, batch->err);
    if (status != STATUS_OK)
        return status;
    const struct store_lane *lane = lane_table_by_id(&batch->store->lanes, entry->job.lane);
    struct slice digest = value_bytes(answer, row, JOB_DIGEST);
    if (!lane || digest.len != JOB_DIGEST_BYTES_MAX)
        return error_set(batch->err, STATUS_CORRUPT, "job %lld has no lane or no digest", (long long)seq);
    memcpy(entry->digest, digest.data, digest.len);
    entry->job.destination = lane->lane.destination;
    entry->job.tenant = lane->lane.tenant;
    entry->made = PQgetisnull(answer, row, JOB_KEY);
    entry->body_bytes = (size_t)value_int(answer, row, JOB_BODY_BYTES);
    entry->body_here = !PQgetisnull(answer, row, JOB_BODY);
    entry->inserted = PQgetisnull(answer, row, STATE_STATE);
    entry->was = entry->is = true;
    entry->before = entry->job;
    *ret_entry = entry;
    return entry_add(batch, entry);
}

enum status entry_new(struct postgres_batch *batch, const struct job *job, bool made, struct postgres_entry **ret_entry)
{
    assert(job->seq > 0 && job->lane > 0);
    struct postgres_entry *entry = arena_alloc(&batch->round.memory, sizeof *entry);
    if (!entry)
        return batch_no_memory(batch);
    entry->job = *job;
    entry->is = entry->body_here = entry->inserted = true;
    entry->made = made;
    *ret_entry = entry;
    enum status status = entry_add(batch, entry);
    return status == STATUS_OK && !made ? entry_name(batch, entry) : status;
}

/* Where the lane begins, as far as is known, is not behind a job that is ready. */
static void low_heed(struct store_lane *lane, const struct job *job)
{
    if (!job->ready || job->rank > lane->low_rank || (job->rank == lane->low_rank && job->seq > lane->low_seq))
        return;
    lane->low_rank = job->rank;
    lane->low_seq = job->seq - 1;
}

/* The archive leads from a name to the events of a job that is gone. */
static void archive_add(struct postgres_batch *batch, const struct postgres_entry *entry, int64_t event)
{
    assert(event > 0);
    unsigned char key[KEY_BYTES];
    struct postgres_params *params = batch_params(batch, WRITE_ARCHIVE);
    name_key(entry->job.tenant, entry->job.id, key);
    params_int(params, 0, event);
    params_bytes(params, 1, (struct slice){ (const char *)key, KEY_BYTES });
}

enum status entry_change(struct postgres_batch *batch, struct postgres_entry *entry, const struct job *after,
                         enum event_type type, struct slice data)
{
    assert(entry->is);
    struct store_lane *lane = lane_table_by_id(&batch->store->lanes, entry->job.lane);
    bool is_new = !entry->was && entry->job.last_event == 0;
    int64_t last_event = entry->job.last_event;
    assert(lane);
    if (type != EVENT_TYPE_NONE) {
        struct event event = change_event(type, after ? after : &entry->job, data);
        enum status status = event_append(batch, &event, lane->lane.id);
        if (status != STATUS_OK)
            return status;
        last_event = event.number;
    }
    enum status tallied = tally_has_room(&batch->tally) ? STATUS_OK : batch_tally(batch);
    if (tallied != STATUS_OK)
        return tallied;
    tally_note(&batch->tally, is_new ? NULL : &entry->job, after);
    if (lane_table_count(&batch->store->lanes, lane, is_new ? NULL : &entry->job, after) != STATUS_OK)
        return batch_no_memory(batch);
    if (after) {
        entry->job = *after;
        entry->job.last_event = last_event;
        entry->lease_dirty = entry->lease_dirty || after->state == STATE_RUNNING;
        low_heed(lane, after);
    } else {
        archive_add(batch, entry, last_event);
        entry->is = false;
    }
    batch->wrote = true;
    return STATUS_OK;
}
