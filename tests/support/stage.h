/*
 * stage.h - the real engine on a stage: a clock that jumps, a store in memory, a
 * destination that answers by script. Nothing sleeps and nothing runs in parallel.
 */
#ifndef SUPPORT_STAGE_H
#define SUPPORT_STAGE_H

#include "engine/engine.h"

struct stage_send {
    struct send *send;
    instant at;
    struct stage_send *next;
};

struct stage_probe {
    struct probe *probe;
    struct health_answer answer;
    instant at;
    struct stage_probe *next;
};

struct stage_read {
    struct store_read *read;
    instant at;
    struct stage_read *next;
};

struct stage {
    struct config *config;
    const char *node; /* its name, when it shares its store; each engine takes all configured destinations. NULL: it does not */
    struct store *store;
    struct store_reader *reader;
    struct engine *engine;
    struct source_board *sources; /* for its alerts; NULL: none. Set it before stage_begin */
    instant now;
    instant wake_at;            /* INSTANT_NONE: nothing asked for */
    struct batch *batches;      /* submitted, not applied */
    struct batch **batches_end;
    int64_t commit_ms;          /* how long each takes, one after the other; set it after stage_begin */
    instant commit_at;          /* when the first one is applied */
    struct stage_send *sends;   /* under way */
    struct stage_send **sends_end;
    /* Answers a send; returns how long it takes. Called when the send begins; texts must be static. */
    int64_t (*destination)(struct stage *stage, const struct send *send, struct answer *answer);
    /* Answers a health check, likewise; NULL: health is not checked. */
    int64_t (*health)(struct stage *stage, const struct probe *probe, struct health_answer *answer);
    struct stage_probe *probes; /* under way */
    size_t probe_count;
    /*
     * How long the answer to a read takes, which is of the moment it was asked; *fails is what it fails with. NULL: all are
     * answered at once. Set it before stage_begin.
     */
    int64_t (*reading)(struct stage *stage, enum status *fails);
    struct stage_read *reads; /* under way */
    size_t read_count;
    bool shared; /* the engine has those destinations that it gains: stage_gain. Set it before stage_begin */
    int64_t pending_max; /* of the store; 0: no limit that matters. Set it before stage_begin */
    void *context;
    size_t send_count;
    /* Sees what the engine had written; NULL: nobody. Set it after stage_begin. */
    void (*applied)(struct stage *stage, const struct store_op *ops, size_t count);
    bool fail_applies; /* transactions fail with STATUS_FULL while set */
    bool away;         /* the store is: see stage_leave */
    struct batch *doubted;
    struct notice *doubted_notice; /* what it made ready, if it was applied */
    bool doubt_applied;
    struct answer answers[64]; /* of sends under way, by slot */
};

/* From YAML text; fails the test when it is not valid. The engine has started. */
void stage_begin(struct stage *stage, const char *yaml, instant now);
void stage_end(struct stage *stage);
/* As a crash: the engine is thrown away with all it knows, the store stays, a new engine starts. */
void stage_crash(struct stage *stage);
/* As a restart in order: what is under way ends, the engine stops, a new one starts. */
void stage_restart(struct stage *stage);

/*
 * From now on the store is away, until stage_return. Of the next transaction that is tried nobody knows before that whether
 * it is applied, as `applied` says; those after it are refused.
 */
void stage_leave(struct stage *stage, bool applied);
void stage_return(struct stage *stage);

/* The engine gains or loses a destination; how that went, once it is through. Time passes meanwhile. */
enum status stage_gain(struct stage *stage, const char *destination);
enum status stage_lose(struct stage *stage, const char *destination);

/* Enqueues; the id may be NULL. Fails the test unless the store takes it. */
void stage_add(struct stage *stage, const char *destination, const char *tenant, const char *id, const char *payload);

/* One operation by somebody else than the engine. Fails the test unless the store takes it; its results are gone after. */
void stage_apply(struct stage *stage, const struct store_op *op);

/* Lets one thing happen that is due now; false: nothing is. */
bool stage_step(struct stage *stage);
/* Lets everything happen that is due, without the clock moving. */
void stage_settle(struct stage *stage);
/* Lets time pass until nothing is to do before `until`, or for `ms`. */
void stage_run_until(struct stage *stage, instant until);
void stage_run_for(struct stage *stage, int64_t ms);

/* Holds a tenant's lane, or lets it go: as the API does, after it has found the lane. */
enum status stage_pause_tenant(struct stage *stage, struct slice destination, struct slice tenant, struct slice reason,
                               struct error *err) MUST_CHECK;
enum status stage_resume_tenant(struct stage *stage, struct slice destination, struct slice tenant,
                                struct error *err) MUST_CHECK;

/* The job; lives until the next call. */
struct job stage_job(struct stage *stage, const char *tenant, const char *id);
struct lane_counts stage_counts(struct stage *stage, const char *destination);

#endif
