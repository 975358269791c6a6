#include "core/ownership/placement.h"

#include "base/hash.h"

#include <assert.h>

struct plan {
    const struct cluster_seen *seen;
    size_t nodes; /* that are looked at */
    size_t most;  /* shards that one may have */
    size_t has[NODES_MAX];
    bool all_drain; /* somebody must have them */
};

uint64_t shard_key(struct slice name)
{
    return hash_slice(0, 0, name);
}

static bool takes(const struct plan *plan, size_t node)
{
    const struct node_seen *seen = &plan->seen->nodes[node];
    return seen->session != 0 && (!seen->drains || plan->all_drain);
}

static size_t running(struct plan *plan)
{
    size_t count = 0, left = 0;
    for (size_t i = 0; i < plan->nodes; i++) {
        count += plan->seen->nodes[i].session != 0;
        left += plan->seen->nodes[i].session != 0 && !plan->seen->nodes[i].drains;
    }
    plan->all_drain = left == 0;
    return left > 0 ? left : count;
}

/* NODES_MAX: it is pinned to none that runs. */
static size_t pinned_to(const struct plan *plan, const struct shard_seen *shard)
{
    for (size_t i = 0; i < plan->nodes && shard->pinned.len > 0; i++)
        if (takes(plan, i) && slice_equal(plan->seen->nodes[i].name, shard->pinned))
            return i;
    return NODES_MAX;
}

/* Of those with room the one that it prefers. Equal hashes are distinguished by the order of names. */
static size_t preferred(const struct plan *plan, const struct shard_seen *shard)
{
    size_t best = NODES_MAX;
    uint64_t best_hash = 0, key = shard_key(shard->name);
    for (size_t i = 0; i < plan->nodes; i++) {
        uint64_t hash = hash_slice(key, 0, plan->seen->nodes[i].name);
        if (!takes(plan, i) || plan->has[i] >= plan->most)
            continue;
        if (best == NODES_MAX || hash > best_hash) {
            best = i;
            best_hash = hash;
        }
    }
    return best;
}

void placement_of(const struct cluster_seen *seen, int64_t *ret_sessions)
{
    struct plan plan = { .seen = seen, .nodes = seen->node_count < NODES_MAX ? seen->node_count : NODES_MAX };
    size_t nodes = running(&plan);
    plan.most = nodes > 0 ? (seen->shard_count + nodes - 1) / nodes : 0;
    for (size_t i = 0; i < seen->shard_count; i++) {
        size_t node = pinned_to(&plan, &seen->shards[i]);
        ret_sessions[i] = node < NODES_MAX ? seen->nodes[node].session : 0;
        if (node < NODES_MAX)
            plan.has[node]++; /* what is pinned comes first, even if that is more than its part */
    }
    for (size_t i = 0; i < seen->shard_count && nodes > 0; i++) {
        if (ret_sessions[i] != 0)
            continue;
        size_t node = preferred(&plan, &seen->shards[i]);
        assert(node < NODES_MAX); /* all parts together are at least as many as there are shards */
        plan.has[node]++;
        ret_sessions[i] = seen->nodes[node].session;
    }
}
