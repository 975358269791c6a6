/*
 * world.h - the real engine in a small world: a clock that jumps, a store in memory, a
 * destination that answers by script. Nothing sleeps and nothing runs in parallel.
 */
#ifndef SUPPORT_WORLD_H
#define SUPPORT_WORLD_H

#include "engine/engine.h"

struct world_send {
    struct send *send;
    instant at;
    struct world_send *next;
};

struct world_probe {
    struct probe *probe;
    struct health_answer answer;
    instant at;
    struct world_probe *next;
};

struct world_read {
    struct store_read *read;
    instant at;
    struct world_read *next;
};

struct world {
    struct config *config;
    const char *node; /* its name, when it shares its store; each engine takes all configured destinations. NULL: it does not */
    struct store *store;
    struct store_reader *reader;
    struct engine *engine;
    instant now;
    instant wake_at;            /* INSTANT_NONE: nothing asked for */
    struct batch *batches;      /* submitted, not applied */
    struct batch **batches_end;
    int64_t commit_ms;          /* how long each takes, one after the other; set it after world_begin */
    instant commit_at;          /* when the first one is applied */
    struct world_send *sends;   /* under way */
    struct world_send **sends_end;
    /* Answers a send; returns how long it takes. Called when the send begins; texts must be static. */
    int64_t (*destination)(struct world *world, const struct send *send, struct answer *answer);
    /* Answers a health check, likewise; NULL: health is not checked. */
    int64_t (*health)(struct world *world, const struct probe *probe, struct health_answer *answer);
    struct world_probe *probes; /* under way */
    size_t probe_count;
    /*
     * How long the answer to a read takes, which is of the moment it was asked; *fails is what it fails with. NULL: all are
     * answered at once. Set it before world_begin.
     */
    int64_t (*reading)(struct world *world, enum status *fails);
    struct world_read *reads; /* under way */
    size_t read_count;
    bool shared; /* the engine has those destinations that it gains: world_gain. Set it before world_begin */
    void *context;
    size_t send_count;
    /* Sees what the engine had written; NULL: nobody. Set it after world_begin. */
    void (*applied)(struct world *world, const struct store_op *ops, size_t count);
    bool fail_applies; /* transactions fail with STATUS_FULL while set */
    bool away;         /* the store is: see world_leave */
    struct batch *doubted;
    struct notice *doubted_notice; /* what it made ready, if it was applied */
    bool doubt_applied;
    struct answer answers[64]; /* of sends under way, by slot */
};

/* From YAML text; fails the test when it is not valid. The engine has started. */
void world_begin(struct world *world, const char *yaml, instant now);
void world_end(struct world *world);
/* As a crash: the engine is thrown away with all it knows, the store stays, a new engine starts. */
void world_crash(struct world *world);
/* As a restart in order: what is under way ends, the engine stops, a new one starts. */
void world_restart(struct world *world);

/*
 * From now on the store is away, until world_return. Of the next transaction that is tried nobody knows before that whether
 * it is applied, as `applied` says; those after it are refused.
 */
void world_leave(struct world *world, bool applied);
void world_return(struct world *world);

/* The engine gains or loses a destination; how that went, once it is through. Time passes meanwhile. */
enum status world_gain(struct world *world, const char *destination);
enum status world_lose(struct world *world, const char *destination);

/* Enqueues; the id may be NULL. Fails the test unless the store takes it. */
void world_add(struct world *world, const char *destination, const char *tenant, const char *id, const char *payload);

/* One operation by somebody else than the engine. Fails the test unless the store takes it; its results are gone after. */
void world_apply(struct world *world, const struct store_op *op);

/* Lets one thing happen that is due now; false: nothing is. */
bool world_step(struct world *world);
/* Lets everything happen that is due, without the clock moving. */
void world_settle(struct world *world);
/* Lets time pass until nothing is to do before `until`, or for `ms`. */
void world_run_until(struct world *world, instant until);
void world_run_for(struct world *world, int64_t ms);

/* Holds a tenant's lane, or lets it go: as the API does, after it has found the lane. */
enum status world_pause_tenant(struct world *world, struct slice destination, struct slice tenant, struct slice reason,
                               struct error *err) MUST_CHECK;
enum status world_resume_tenant(struct world *world, struct slice destination, struct slice tenant,
                                struct error *err) MUST_CHECK;

/* The job; lives until the next call. */
struct job world_job(struct world *world, const char *tenant, const char *id);
struct lane_counts world_counts(struct world *world, const char *destination);

#endif
