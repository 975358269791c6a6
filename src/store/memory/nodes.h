/*
 * nodes.h - who uses the memory store, and who owns what in it.
 */
#ifndef STORE_MEMORY_NODES_H
#define STORE_MEMORY_NODES_H

#include "store/memory/state.h"

/* Each node has a handle. */
struct memory_node {
    struct store store; /* first */
    struct memory_store *memory;
    char *name, *url; /* the name is empty: it has the store for itself */
};

/* Who owns a destination, or the steward's office. */
struct memory_shard {
    struct names_link link; /* destination, nothing */
    int64_t session;        /* 0: nobody */
    int64_t epoch;          /* 0: it never had an owner */
    char text[];
};

struct memory_session {
    char *node, *url;
    int64_t beat;
    uint64_t config;
    int64_t leases; /* that it has left */
    bool ended;
    instant fenced_at;
};

/* That a destination has, or will have; STATUS_NO_MEMORY. */
enum status memory_shard_get(struct memory_store *store, struct slice destination,
                             struct memory_shard **ret_shard) MUST_CHECK;
/* Whether it is the acting session's; with `rest` also what is nobody's, if that is the steward. */
bool memory_owns(const struct memory_store *store, const struct memory_shard *shard, bool rest);
/* STATUS_CONFLICT, STATUS_NO_MEMORY. */
enum status memory_take(struct memory_store *store, struct op_own *own) MUST_CHECK;
enum status memory_give(struct memory_store *store, struct op_own *own) MUST_CHECK;
/* NULL: it has none, since a pull worker has it. */
struct memory_session *memory_session_of(const struct memory_store *store, const struct job *leased);
bool memory_sessions_left(const struct memory_store *store);
void memory_sessions_free(struct memory_store *store);

/* These are the nodes' part of the store's table. */
enum status memory_session_begin(struct store *base, instant now, struct error *err);
enum status memory_session_end(struct store *base, instant now, struct error *err);
enum status memory_beat(struct store *base, uint64_t config, struct error *err);
enum status memory_fence(struct store *base, int64_t session, int64_t beat, instant now, struct error *err);
enum status memory_reader_sessions(struct store_reader *base, struct arena *memory, struct session **ret_sessions,
                                   size_t *ret_count, struct error *err);
enum status memory_reader_shards(struct store_reader *base, struct arena *memory, struct shard **ret_shards,
                                 size_t *ret_count, struct error *err);

#endif
