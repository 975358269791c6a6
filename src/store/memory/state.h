/*
 * state.h - what the memory store holds, and how a batch is undone.
 *
 * A batch changes things in place and writes down how to undo each change before it makes it. Undoing allocates nothing, so
 * it cannot fail: so a batch is atomic when memory runs out in its middle. What it deletes is freed when it is committed.
 */
#ifndef STORE_MEMORY_STATE_H
#define STORE_MEMORY_STATE_H

#include "base/map.h"
#include "store/change.h"
#include "store/memory/names.h"
#include "store/memory/tree.h"
#include "store/store.h"
#include "store/totals.h"

#include <pthread.h>

struct memory_node;
struct memory_session;
struct memory_shard;

struct memory_lane {
    struct totals_lane shown;
    struct names_link link; /* destination, tenant */
    struct memory_shard *shard;
    int64_t id;
    struct tree ready; /* by (rank, seq) */
    struct tree chained; /* jobs of keys that have not ended, by (chain, seq) */
    struct lane_counts counts;
    int64_t stored; /* jobs, whatever their state: with the last one it goes, when that is committed */
    bool gone;      /* nobody sees it; it has its number as long as events tell of it */
    bool queued;    /* among the store's that are gone, or were */
    int64_t event;  /* the newest when it went */
    struct memory_lane *next_gone;
    struct memory_lane *next_of_tenant; /* at another destination */
    uint64_t mark; /* of the promotion that last made something ready here */
    size_t mark_index;
    char text[];
};

/* A job's name. It outlives the job for as long as there is an event of it. */
struct memory_name {
    struct names_link link; /* tenant, id */
    struct memory_job *job; /* NULL: deleted */
    int64_t last_event;
    size_t references; /* jobs not yet freed, and events */
    char text[];
};

struct memory_job {
    struct tree_node by_seq;   /* in memory_store.jobs */
    struct tree_node by_place; /* in its lane's ready, or in memory_store.leases */
    struct tree_node by_time;  /* in memory_store.timers, when timed */
    struct tree_node by_chain; /* in its lane's chained */
    struct memory_lane *lane;
    struct memory_name *name;
    struct job job;
    bool timed;
    unsigned char digest[16];
    char text[];
};

struct memory_event {
    instant at;
    int64_t before; /* of the same name, which may be of an earlier job; 0: none */
    int64_t attempt;
    struct memory_name *name; /* NULL: of no job */
    struct slice destination, tenant;
    enum event_type type;
    enum job_state state;
    bool erased; /* `data` is its digest */
    uint32_t data_len;
    unsigned char hash[EVENT_HASH_BYTES];
    char data[];
};

struct memory_saved {
    struct names_link link; /* space, name */
    struct slice value;     /* empty: taken away */
    char text[];
};

enum undo_kind {
    UNDO_JOB_NEW,
    UNDO_JOB_CHANGED,
    UNDO_JOB_GONE,
    UNDO_TEXT,
    UNDO_LANE_NEW,
    UNDO_SAVED_NEW,
    UNDO_SHARD,
    UNDO_EVENT_ERASED,
};

struct undo {
    enum undo_kind kind;
    union {
        struct {
            struct memory_job *job;
            struct job *before;           /* UNDO_JOB_CHANGED; its texts have undos of their own */
            struct lane_counts counts;    /* of its lane */
        };
        struct { struct slice *text, text_before; };
        struct { struct memory_lane *lane; bool lane_is_new; };
        struct memory_saved *saved;
        struct { struct memory_shard *shard; int64_t session_before, epoch_before; };
        struct { int64_t event; struct memory_event *event_before; };
    };
};

/* All but the trees and tables, which are undone change by change. */
struct memory_numbers {
    int64_t seq, token, event;
    int64_t backlog; /* pending + waiting, all lanes */
    unsigned char hash[EVENT_HASH_BYTES]; /* of the last event */
    size_t trimmed;                       /* events at the front that the commit frees */
};

/* What the handles share. */
struct memory_store {
    pthread_mutex_t mutex;
    size_t nodes; /* handles */
    const struct memory_node *acting; /* whose batch it is */
    struct { struct memory_session *items; size_t count; } sessions; /* by number - 1 */
    struct names shards;
    struct memory_shard *steward;
    struct store_settings settings; /* without names */
    char *own_tenant;
    int64_t tenant_count; /* but for the daemon's own */
    struct map tenants;   /* tenant -> its first lane */
    struct memory_numbers numbers, numbers_before;
    struct names names, lanes, saved;
    struct totals totals;
    struct { struct memory_lane **items; size_t capacity, count; } lane_list; /* by id - 1; NULL: it is gone */
    struct { struct memory_lane *first, **end; } gone; /* in the order in which they went; some are back */
    struct tree jobs, leases, timers;
    struct { struct memory_event **items; size_t start, count, capacity; } events; /* from `start` on */
    struct { struct undo *items; size_t count, capacity; } undos;
    uint64_t mark;
};

#define CONTAINER_OF(node, type, member) ((type *)(void *)((char *)(node) - offsetof(type, member)))

/* A batch: begin, changes, then one of the other two. */
void memory_begin(struct memory_store *store);
void memory_commit(struct memory_store *store);
void memory_rollback(struct memory_store *store);
/* Frees everything but the store itself. */
void memory_clear(struct memory_store *store);
/* What must go back if the batch does; NULL: no memory. */
struct undo *memory_undo(struct memory_store *store, enum undo_kind kind);
/* A copy of `text` behind `*at`, terminated. */
struct slice memory_text_put(char **at, struct slice text);

/*
 * The changes. Those that return a status return STATUS_OK or STATUS_NO_MEMORY; after the latter the batch
 * must be rolled back.
 */
/* Pending and waiting jobs of the tenant, at all destinations. */
int64_t memory_tenant_waiting(const struct memory_store *store, struct slice tenant);
enum status memory_lane_get(struct memory_store *store, struct slice destination, struct slice tenant,
                            struct memory_lane **ret_lane) MUST_CHECK;
/* A job in its place, with no event yet. */
enum status memory_job_add(struct memory_store *store, const struct op_insert *insert, instant now, struct slice id,
                           int64_t seq, struct memory_lane *lane, struct memory_job **ret_job) MUST_CHECK;
/* The first of a chain from behind `seq` on; NULL: there is none. */
struct memory_job *memory_chain_next(const struct memory_lane *lane, int64_t chain, int64_t seq);
/* Makes of it what change.h has made of a copy, texts and place and all; but for payload and content. */
enum status memory_job_become(struct memory_store *store, struct memory_job *job, const struct job *after) MUST_CHECK;
/* Changes one of the texts that a job or a note owns. */
enum status memory_text_set(struct memory_store *store, struct slice *text, struct slice value) MUST_CHECK;
enum status memory_job_delete(struct memory_store *store, struct memory_job *job) MUST_CHECK;
enum status memory_saved_get(struct memory_store *store, struct slice space, struct slice name,
                            struct memory_saved **ret_saved) MUST_CHECK;
/* `job` NULL: an event of no job, of `destination` or of nothing. */
enum status memory_event_add(struct memory_store *store, instant now, enum event_type type, struct memory_job *job,
                             struct slice destination, struct slice data) MUST_CHECK;

/* Leaves the digest of its data; *ret_erased: there was some. */
enum status memory_event_erase(struct memory_store *store, int64_t number, bool *ret_erased) MUST_CHECK;

/* Fills in what its data is salted with. */
void memory_event_salt(struct event *event);
/* What an event says is the one before of its job: an id that is used again starts anew. */
int64_t memory_event_previous(enum event_type type, int64_t before);

/* These look up; NULL says that there is none. */
struct memory_name *memory_name_find(const struct memory_store *store, struct slice tenant, struct slice id);
struct memory_job *memory_job_find(const struct memory_store *store, int64_t seq);
struct memory_event *memory_event_find(const struct memory_store *store, int64_t number);
int64_t memory_event_first(const struct memory_store *store);

/* A copy whose texts live in `memory`; STATUS_NO_MEMORY. */
enum status memory_job_copy(const struct memory_job *job, bool with_payload, struct arena *memory,
                            struct job *ret_job) MUST_CHECK;

extern const struct store_ops memory_store_ops;

#endif
