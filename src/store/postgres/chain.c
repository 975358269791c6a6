/* Jobs of one key, in the memory of a round: those it knows, and the next that only the server knows. */
#include "store/postgres/work.h"

#include <assert.h>

/* What the round knows of a chain. */
struct postgres_chain {
    int64_t name[2]; /* lane, chain */
    struct postgres_entry *first;
    bool all;    /* the server has no other that has not ended */
    bool locked; /* against other nodes */
};

static struct slice chain_name(const int64_t name[2])
{
    return (struct slice){ (const char *)name, 2 * sizeof name[0] };
}

static struct postgres_chain *chain_find(const struct postgres_round *round, int64_t lane, int64_t chain)
{
    assert(lane > 0 && chain != 0);
    const int64_t name[2] = { lane, chain };
    return map_get(&round->by_chain, chain_name(name));
}

enum status chain_join(struct postgres_batch *batch, struct postgres_entry *entry)
{
    assert(entry->is && !entry->next_of_chain);
    if (entry->job.chain == 0)
        return STATUS_OK;
    struct postgres_round *round = &batch->round;
    struct postgres_chain *chain = chain_find(round, entry->job.lane, entry->job.chain);
    batch->store->has_chains = true;
    if (!chain) {
        chain = arena_alloc(&round->memory, sizeof *chain);
        if (!chain)
            return batch_no_memory(batch);
        *chain = (struct postgres_chain){ .name = { entry->job.lane, entry->job.chain } };
        if (map_put(&round->by_chain, chain_name(chain->name), chain) != STATUS_OK)
            return batch_no_memory(batch);
    }
    entry->next_of_chain = chain->first;
    chain->first = entry;
    return STATUS_OK;
}

/* Asks for the first behind `seq` of which the round does not know yet. */
static enum status next_ask(struct postgres_batch *batch, const struct postgres_chain *chain, int64_t seq,
                            enum postgres_statement which, PGresult **ret_answer)
{
    struct postgres_params *params = batch_params(batch, which);
    params_begin(params, postgres_text(which)->types);
    for (const struct postgres_entry *entry = chain->first; entry; entry = entry->next_of_chain)
        params_int(params, 0, entry->job.seq);
    params_int(params, 1, chain->name[0]);
    params_int(params, 2, chain->name[1]);
    params_int(params, 3, seq);
    return answer_ask(batch, which, ret_answer);
}

/*
 * Where nodes share the store, another may add to the chain, or take one out of it by name: so the chain is locked, then the
 * job, and only then is it read. Who waits for the other in both is told by the server, and begins anew.
 */
static enum status next_lock(struct postgres_batch *batch, struct postgres_chain *chain, int64_t seq)
{
    enum status status = STATUS_OK;
    PGresult *answer;
    if (!batch->store->shared)
        return STATUS_OK;
    if (!chain->locked) {
        struct postgres_params *params = batch_params(batch, ASK_CHAIN_LOCK);
        params_begin(params, postgres_text(ASK_CHAIN_LOCK)->types);
        params_int(params, 0, chain->name[1]);
        status = answer_ask(batch, ASK_CHAIN_LOCK, &answer);
        chain->locked = status == STATUS_OK;
    }
    return status == STATUS_OK ? next_ask(batch, chain, seq, ASK_CHAIN_NEXT_LOCK, &answer) : status;
}

/* Loads it, if the server has one. */
static enum status chain_load(struct postgres_batch *batch, struct postgres_chain *chain, int64_t seq)
{
    assert(!chain->all);
    struct postgres_entry *entry;
    PGresult *answer;
    enum status status = next_lock(batch, chain, seq);
    if (status == STATUS_OK)
        status = next_ask(batch, chain, seq, ASK_CHAIN_NEXT, &answer);
    if (status != STATUS_OK)
        return status;
    chain->all = PQntuples(answer) == 0 && seq == 0;
    return PQntuples(answer) > 0 ? entry_load(batch, answer, 0, &entry) : STATUS_OK;
}

static bool is_in(const struct postgres_entry *entry)
{
    return entry->is && job_is_chained(&entry->job);
}

/* The first in the round, behind `seq`, that is itself behind another. */
static struct postgres_entry *first_behind(const struct postgres_chain *chain, int64_t seq)
{
    assert(seq >= 0);
    struct postgres_entry *first = NULL;
    for (struct postgres_entry *entry = chain->first; entry; entry = entry->next_of_chain)
        if (is_in(entry) && entry->job.behind && entry->job.seq > seq && (!first || entry->job.seq < first->job.seq))
            first = entry;
    return first;
}

static bool holds_one(const struct postgres_chain *chain)
{
    for (const struct postgres_entry *entry = chain->first; entry; entry = entry->next_of_chain)
        if (is_in(entry))
            return true;
    return false;
}

enum status chain_held(struct postgres_batch *batch, int64_t lane, int64_t chain, bool *ret_held)
{
    struct postgres_chain *known = chain != 0 ? chain_find(&batch->round, lane, chain) : NULL;
    *ret_held = known && holds_one(known);
    if (!known || *ret_held || known->all) /* one that the server has was asked for with the round, if its lane is known */
        return STATUS_OK;
    enum status status = chain_load(batch, known, 0);
    *ret_held = status == STATUS_OK && holds_one(known);
    return status;
}

enum status chain_follow(struct postgres_batch *batch, const struct job *before, const struct job *after,
                         struct released *ret_released)
{
    enum chain_news news = change_chain(before, after);
    if (news == CHAIN_SAME)
        return STATUS_OK;
    struct postgres_chain *chain = chain_find(&batch->round, before->lane, before->chain);
    int64_t seq = news == CHAIN_GAP ? before->seq : 0;
    enum status status = STATUS_OK;
    assert(chain);
    for (int i = 0; i < 2 && status == STATUS_OK && !chain->all; i++) /* the first may be the one under way */
        status = chain_load(batch, chain, seq);
    struct postgres_entry *next = status == STATUS_OK ? first_behind(chain, seq) : NULL;
    if (!next)
        return status;
    struct job released = next->job;
    change_next(news, after->state, batch->now, &released, ret_released);
    next->state_dirty = true;
    return entry_change(batch, next, &released, EVENT_TYPE_NONE, SLICE(""));
}
