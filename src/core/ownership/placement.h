/*
 * placement.h - which of the nodes a shard belongs to.
 *
 * Rendezvous hashing with a ceiling: each shard prefers the nodes in an order of its own, which only its name and
 * theirs decide, and goes to the first that has room. Nobody has more than its part, rounded up. So every node
 * computes the same from the same two tables, and one that comes or goes moves about its own part and little more.
 */
#ifndef CORE_OWNERSHIP_PLACEMENT_H
#define CORE_OWNERSHIP_PLACEMENT_H

#include "base/slice.h"

enum { NODES_MAX = 64 };

/* A node as the store tells of it. Its session is one run of it; 0: it does not run. */
struct node_seen {
    struct slice name;
    int64_t session, beat;
    bool drains; /* it is to own nothing, as long as there are others */
};

/* What has one owner: a destination, or the steward's office, which has the empty name. */
struct shard_seen {
    struct slice name;
    int64_t session;     /* its owner's; 0: it is free */
    struct slice pinned; /* to the node of that name, while it runs; empty: to none */
};

/* What one look at the store showed: nodes and shards in order of name. Nodes beyond NODES_MAX do not count. */
struct cluster_seen {
    const struct node_seen *nodes;
    size_t node_count;
    const struct shard_seen *shards;
    size_t shard_count;
};

/* One number for a shard, the same everywhere and for ever. */
uint64_t shard_key(struct slice name);

/* Whose each shard is: `ret_sessions` has one for each. All are 0 when no node runs. */
void placement_of(const struct cluster_seen *seen, int64_t *ret_sessions);

#endif
