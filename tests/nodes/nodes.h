/*
 * nodes.h - worlds with three nodes on one store: the real engine three times, the real rules of ownership, in virtual time,
 * with pauses, partitions, clocks, deaths and handovers as the seed says.
 *
 * `mono` is the time that passes. Each node has a clock of the day beside it that is a little off. A node that is stopped does
 * nothing at all until it goes on: what was due meanwhile happens then. One that is cut off cannot reach the store.
 */
#ifndef NODES_NODES_H
#define NODES_NODES_H

#include "base/heap.h"
#include "core/ownership/ownership.h"
#include "engine/engine.h"
#include "support/check.h"

#include <string.h>

enum {
    NODES = 3,
    DESTS = 5,
    SHARDS = DESTS + 1, /* the first is the steward's office */
    TENANTS = 3,
    JOBS_MAX = 300,
    EVENTS_PAGE = 200,
    CLAIM_LATE_MS = 5000, /* what comes back later pays its rate again, as the engine has it */
    CLOCK_OFF_MS = 500, /* a node that is off by more neither claims nor promotes */
};

/* What goes wrong, for the figures. */
enum fault {
    FAULT_CRASH,
    FAULT_STOPPED,  /* for a while, as by SIGSTOP or a machine that is moved */
    FAULT_CUT,      /* from the store, for a while; the last answer may be lost */
    FAULT_CLOCK,
    FAULT_HANDOVER, /* a node ends in order, and comes back */
    FAULT_STORE,    /* away for all */
    FAULT_BEAT,     /* lost, or its answer is */
    FAULT_BELL,     /* late: nobody hears of new work for a second */
    FAULT_ANSWER,   /* an error, a lost answer, an answer that takes the whole timeout */
    FAULT_COUNT
};
const char *fault_name(enum fault fault);

/* What must hold. */
enum promise {
    PROMISE_NONE,
    PROMISE_ONE_OWNER,  /* two never both may send for a destination */
    PROMISE_LIMITS,     /* rate and concurrency, whoever sends */
    PROMISE_FENCED,     /* a batch of a session that has ended leaves nothing */
    PROMISE_ONE_SEND,   /* a second send begins when the first has ended, or cannot last any more */
    PROMISE_RECOVERY,   /* soon after the faults everything has an owner */
    PROMISE_ENDS_ONCE,  /* every job that was acknowledged, and along the table of states */
    PROMISE_COUNT
};

/* Broken on purpose, to see that it is found. */
enum sabotage {
    SABOTAGE_NONE,
    SABOTAGE_NO_TRUST,     /* an owner sends for as long as it lives */
    SABOTAGE_FENCE_SKIPPED, /* a session that has ended writes on */
    SABOTAGE_EARLY_ORPHANS, /* what a dead session has claimed is taken at once */
    SABOTAGE_DEAD_EARLY,   /* who was silent for two seconds is dead */
    SABOTAGE_LOST_RATES,   /* what was paid is not saved */
    SABOTAGE_COUNT
};

struct cluster;
struct node;

struct timer {
    struct heap_node heap; /* first; by mono */
    void (*fire)(struct cluster *cluster, struct timer *timer);
    struct node *node; /* whose it is; NULL: nobody's, who is never stopped */
};

/* What is known of a job. */
struct shadow {
    int dest;
    enum job_state state;
    int64_t last_event;
    bool acknowledged;
    int ends;              /* so often it has ended */
    int64_t wire_until;    /* until when a request of it may be on the wire */
};

struct flight {
    struct timer timer; /* first */
    struct send *send;
    struct answer answer;
    int64_t wire_until;
    int dest;
    struct flight *next, **link;
};

/* What the engine asked the store, on its way. */
struct reading {
    struct timer timer; /* first */
    struct store_read *read;
    struct reading *next, **link;
};

/* A notice on its way to whoever owns the destination then. */
struct bell {
    struct timer timer; /* first */
    struct notice *notice;
    int dest;
    struct bell *next, **link;
};

/* How a node stands to a shard. */
enum shard_state {
    SHARD_NONE,
    SHARD_TAKING,  /* the store is asked */
    SHARD_GAINING, /* the engine reads what there is */
    SHARD_OWNED,
    SHARD_LOSING,  /* the engine lets its sends end, and writes what must outlive them */
    SHARD_LOST,    /* and could not give it away yet */
    SHARD_GIVING,
};

struct shard_wait;

struct node {
    struct cluster *cluster;
    char name[4];
    bool alive;
    bool leaving; /* it ends in order */
    bool abandoning;
    int life; /* so often it has started */
    int64_t stopped_until, cut_until, leave_until, offset;
    int64_t claimed_mono; /* its last claims */
    struct store *store;
    struct store_reader *reader;
    struct engine *engine;
    struct ownership ownership;
    enum shard_state shards[SHARDS];
    struct shard_wait *waits[SHARDS]; /* for the engine to gain or lose it */
    struct batch *batches, **batches_end, *doubted;
    struct notice *doubted_notice;
    bool in_doubt;
    struct timer wake, commit, ask, beat, answer, over, leave, restart, heal;
    int64_t beat_sent;
    struct flight *flights;
    struct reading *readings;
};

/* How a receiver is. */
struct receiver {
    int64_t down_until;
    size_t badness; /* of 100 answers */
    double paid_mono; /* of the rate: until when what came is paid for */
    int64_t late_ms;
};

struct figures {
    int64_t worlds, jobs, sends, events, takeovers, given, steps;
    int64_t faults[FAULT_COUNT];
};

struct cluster {
    uint64_t seed;
    struct random random;
    enum sabotage sabotage;
    bool verbose;
    int jobs_max;
    int64_t mono, lasts_ms, disturb_ms;
    int64_t lag_ms; /* of the store */
    bool healthy;
    struct heap timers;
    struct timer arrival, disturbance;
    struct node nodes[NODES];
    struct bell *bells;
    struct config *config;
    struct store *first;      /* keeps the store while all nodes are down */
    struct store_reader *eye; /* the checks' own */
    struct receiver receivers[DESTS];
    struct shadow jobs[JOBS_MAX];
    int job_count, open;
    int64_t event_number;
    unsigned char event_hash[EVENT_HASH_BYTES];
    struct figures *figures;
};

static inline size_t below(struct cluster *cluster, size_t bound)
{
    return random_below(&cluster->random, bound);
}
static inline bool once_in(struct cluster *cluster, size_t of)
{
    return random_below(&cluster->random, of) == 0;
}

extern const char *const shard_names[SHARDS];
int dest_of(struct slice name);
int job_of(struct slice id);
instant world_now(const struct cluster *cluster);
instant node_now(const struct node *node);

void note(struct cluster *cluster, const char *what, int64_t a, int64_t b);
void injected(struct cluster *cluster, enum fault fault);
__attribute__((format(printf, 3, 4), noreturn)) void violated(const struct cluster *cluster, enum promise promise, const char *format, ...);

/* run.c: time, and a node from its start to its end. */
void timer_set(struct cluster *cluster, struct timer *timer, int64_t mono);
void timer_clear(struct cluster *cluster, struct timer *timer);
void cluster_run_until(struct cluster *cluster, int64_t mono);
void cluster_start(struct cluster *cluster);
void cluster_stop(struct cluster *cluster);
void node_start(struct node *node);
void node_crash(struct node *node);
void node_leave(struct node *node);
void node_heal(struct node *node);
bool node_may_send(const struct node *node, int shard);
/* One transaction of a client's, through this node. False: it was refused, or nobody knows. */
bool node_insert(struct node *node, struct store_op *op, struct arena *memory);

/* people.c: clients, receivers, and what goes wrong. */
void cluster_draw(struct cluster *cluster);
void arrival_fire(struct cluster *cluster, struct timer *timer);
void disturbance_fire(struct cluster *cluster, struct timer *timer);
/* How long it takes. */
int64_t receive(struct cluster *cluster, struct flight *flight);

/* checks.c */
void check_applied(struct cluster *cluster);
void check_refused(struct cluster *cluster, int64_t events_before);
int64_t check_events_now(struct cluster *cluster);
void check_send(struct node *node, const struct flight *flight);
void check_one_owner(struct node *node, int shard);
/* Notes who may send now. */
void check_owned(struct cluster *cluster, bool seen[SHARDS]);
void check_all_owned(struct cluster *cluster, const bool seen[SHARDS], const char *when);
/* Nobody has more than its part. */
void check_shared_out(struct cluster *cluster);
void check_ended(struct cluster *cluster);

#endif
