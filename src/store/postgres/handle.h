/*
 * handle.h - the store as it is open, and a batch under way.
 */
#ifndef STORE_POSTGRES_HANDLE_H
#define STORE_POSTGRES_HANDLE_H

#include "store/lane_table.h"
#include "store/postgres/link.h"
#include "store/trail.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    SEQ_BLOCK = 4096, /* numbers that the sequence gives at once: as many as a batch can need */
    TOKEN_BLOCK = 1048576,
    LANE_BLOCK = 64,
    KEY_BYTES = 16,
    KEY_ID_BYTES = 8, /* of these: of the id alone, so that jobs of one id lie together, whosever they are */
};

enum { BELL_ACKED_BYTES_MAX = 64 << 10 }; /* what does not fit is found when its lease's time is over */

/* What moves with each transaction and goes back with it. */
struct postgres_progress {
    int64_t batch; /* the number of the last one that was sealed */
    int64_t event_last;
    unsigned char event_hash[EVENT_HASH_BYTES];
    instant timers_low;      /* none of an earlier time is left, as far as is known; */
    instant timers_whole_at; /* when they are looked for from the first on, whatever is known, */
    uint64_t timers_mark;    /* or when it is not this low_mark any more */
};

/* Numbers taken from a sequence: the next, and how many are left. Those are never given back. */
struct postgres_block {
    int64_t next;
    int64_t left;
};

/* A destination; the one without a name is the steward's office. */
struct postgres_shard {
    int64_t id;
    bool owned, owned_before; /* by this session; and before the batch under way */
    bool is_new;              /* to this process, by the batch under way */
    struct slice destination;
    char text[];
};

enum { LOWS_MAX = 256 };

struct postgres_low {
    int64_t lane, rank; /* something of that rank, and perhaps nothing below it, is ready */
};

/* The node of a store that several share, and its own connection: only the thread that beats uses that. */
struct postgres_node {
    char *name, *url, *place;
    struct postgres_link link;
    struct postgres_params params;
    struct {
        pthread_mutex_t mutex; /* between who writes and who rings */
        struct buffer text;
        bool all; /* there was more than fits: others look at everything */
        struct postgres_low lows[LOWS_MAX]; /* that were heard, and the writer has not heeded */
        size_t low_count;
        instant timer_at; /* likewise the earliest time that was set */
    } bell;
    bool deaf; /* since `hear` was asked last the link was not there */
    /* The server's time less the ticks of this machine, in ms: as estimated, and how much it is shown as. */
    _Atomic int64_t offset_ms, shown_ms;
    int64_t heeded_ns; /* when it was last estimated */
};

struct postgres_store {
    struct store base; /* first */
    struct store_settings settings;
    char *address, *place;
    bool is_writer; /* it was opened, and not only looked at */
    bool shared;    /* with other nodes: it has a name */
    int64_t chain;  /* of its events, and the slot of its counters; 0: of one that has the store for itself */
    struct postgres_node node;
    struct { struct map by_name; bool touched; } shards;
    _Atomic uint64_t low_mark; /* what is known of where lanes begin is of this moment: others add to them too */
    struct {
        int64_t waiting_before; /* of lanes.waiting: before it */
        uint64_t round_mark;    /* of lanes, by the round under way; that of lanes which it only claims from is one more */
        struct buffer acked;    /* lines for the bell: leases of others' destinations that it has settled */
    } batch;
    char *own_tenant;
    /* Of other chains, for the next batch; empty: none. When it was made, and whether the batch under way tells it. */
    struct { struct buffer note; instant at; bool told; } heads;
    struct postgres_link link;
    struct { struct map by_seq; size_t bytes; } claimed; /* that this process has given: claimed.c */
    /* Of the connection: an earlier one seals nothing; which process serves it; the last batch known as committed. */
    struct { int64_t number, pid; _Atomic int64_t sealed; } term;
    struct lane_table lanes;
    struct postgres_progress progress, saved;
    struct { struct postgres_block seqs, tokens, lanes; } ids;
    struct postgres_params params[POSTGRES_STATEMENTS]; /* of the writer's */
    struct trail_seals seals;
    bool has_chains;      /* there are, or were, jobs with a key */
    bool in_doubt;        /* a batch was answered STATUS_AWAY, and nobody has asked yet */
    struct error failure; /* .status is not STATUS_OK: the store may not be used any more */
};

extern const struct store_ops postgres_store_ops;

enum status postgres_apply(struct store *base, instant now, struct store_op *ops, size_t count, struct arena *memory,
                           struct error *err);
enum status postgres_outcome(struct store *base, bool *ret_applied, struct error *err);
/*
 * Connects the writer: the server is looked at, the chain taken over, statements prepared. With `first`, or for a new
 * session, the statements are left to the caller. STATUS_FENCED: the session has ended.
 */
enum status postgres_connect(struct postgres_store *store, bool first, struct error *err) MUST_CHECK;
/* The same status, or STATUS_AWAY for what passes by itself: a lock, a full disk, no memory. It is asked again later. */
enum status postgres_passes(enum status status, struct error *err);
enum status postgres_number(struct postgres_link *link, const char *sql, int64_t *ret_number, struct error *err) MUST_CHECK;

/* nodes.c: STATUS_FENCED of a session that is over; STATUS_CORRUPT if its batches are not there, which end with `sealed`. */
enum status session_over(const struct postgres_store *store, int64_t sealed, struct error *err);
/* The session of the node that this is, on a connection that is not in the pipeline yet. */
enum status session_take(struct postgres_store *store, instant now, struct error *err) MUST_CHECK;
enum status postgres_begin(struct store *base, instant now, struct error *err);
enum status postgres_end(struct store *base, instant now, struct error *err);

enum status postgres_beat(struct store *base, uint64_t config, struct error *err);
enum status postgres_fence(struct store *base, int64_t session, int64_t beat, instant now, struct error *err);
enum status postgres_ring(struct store *base, struct error *err);
void postgres_recall(struct store *base);
enum status postgres_hear(struct store *base, struct arena *memory, struct lane_heard **ret_heard, size_t *ret_count,
                          struct error *err);
int postgres_bell(struct store *base);
/* What the batch that is committed did to lanes of others. */
void bell_gather(struct postgres_store *store);
/* Lanes, and timers, may begin earlier than this process knows, since others have added to them. */
void bell_heed(struct postgres_store *store);
instant postgres_clock(struct store *base);
void postgres_node_release(struct postgres_node *node);
/* Parameters for a statement of the node's own connection are begun, and that is there; then its answer, to be cleared. */
enum status node_ready(struct postgres_store *store, enum postgres_statement which, struct error *err) MUST_CHECK;
enum status node_ask(struct postgres_store *store, enum postgres_statement which, PGresult **ret_answer,
                     struct error *err) MUST_CHECK;

/* shards.c: what this session owns, as the batch under way has it. */
struct postgres_shard *shard_find(const struct postgres_store *store, struct slice destination);
struct postgres_shard *shard_learn(struct postgres_store *store, struct slice destination, int64_t id);
void shards_commit(struct postgres_store *store);
void shards_rollback(struct postgres_store *store);
void shards_release(struct postgres_store *store);
bool store_owns(const struct postgres_store *store, struct slice destination);
bool store_is_steward(const struct postgres_store *store);

#endif
