/*
 * store.h - where jobs live: the contract of every backend.
 *
 * Made for a store across a network too: changes go in batches, one batch is one transaction,
 * and nobody walks rows one call at a time. One thread writes (store_apply); readers have
 * handles of their own and see committed state only.
 *
 * Held here, for every backend:
 *   invariant 1: when store_apply has returned STATUS_OK under DURABILITY_ALWAYS, the batch survives
 *                a crash of the process and of the machine. After STATUS_IO or STATUS_CORRUPT the store
 *                must not be used again: the caller stops and starts anew. STATUS_AWAY is neither: see `outcome`.
 *   invariant 2: a job has one state, changed only along core/job.h's table, and every change has its
 *                event in the same transaction.
 *   invariant 3: a change to a running job carries its lease token; a stale token changes nothing.
 *   invariant 4: a session that has ended writes nothing: its batch fails whole with STATUS_FENCED.
 *
 * Where a job is: PENDING and due WAITING jobs are "ready" in their lane, in order of (rank, seq); jobs
 * whose time has not come wait for store_apply(OP_PROMOTE); RUNNING jobs have a lease. Of the jobs of one lane that have the
 * same key, one is in one of these places; the others are `behind` it, whatever their time and rank. When it ends, the first
 * of them by seq takes its place, in the same transaction, however it ended.
 *
 * Who works on it: a session is one run of a node, a number that only grows. Each handle has one, from when it is opened or
 * `begin` is called. A node without a name has the store for itself, and its session owns every destination. Where nodes
 * share a store, a destination is owned by the session that took it (OP_TAKE), until that gives it up (OP_GIVE) or ends; one
 * of them is the steward, who does what is of no destination. A node that died is found by its beat: who sees it stand still
 * for long enough, by a clock of his own, fences its session. For that no machine's time is compared with another's.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/arena.h"
#include "base/instant.h"
#include "base/slice.h"
#include "base/status.h"
#include "core/decision/job.h"
#include "core/decision/outcome.h"

enum {
    STORE_BATCH_OPS_MAX = 4096,
    STORE_PAGE_MAX = 1000,   /* rows of one read */
    CLAIM_LOOKS_MAX = 1000,  /* ready jobs among which a claim looks for one that has not failed */
    EVENT_HASH_BYTES = 32,   /* SHA-256 */
    EVENT_SALT_BYTES = 16,
    EVENT_DATA_BYTES_MAX = 16 * 1024,
    ERROR_TEXT_STORED_BYTES_MAX = 4096, /* of an attempt's error text; the rest is cut off */
    EVENT_CHAIN_SHIFT = 40, /* an event's number has its chain above these bits; where one writes there is chain 0 alone */
};
/* Rows that are read where `max` are asked for. */
static inline size_t store_rows_max(size_t max)
{
    return max < STORE_PAGE_MAX ? max : STORE_PAGE_MAX;
}

/* What the next claim of a job is for. */
enum job_step {
    STEP_SEND,
    STEP_VERIFY, /* an attempt is in doubt: ask whether it arrived */
    STEP_POLL,   /* accepted: ask how it was judged */
};

/* A job as stored. Slices point into the arena that the call was given. */
struct job {
    int64_t seq; /* the store's own number, in order of arrival */
    int64_t lane;
    struct slice destination, tenant, id;
    enum job_state state;
    enum priority priority;
    enum job_step step;
    int64_t rank;       /* order inside the lane, smaller first: see rank_of */
    int64_t generation; /* 1, and one more each redrive of the dead job */
    int64_t attempts;   /* sends begun in this generation, counted before they are tried */
    int64_t attempts_total;
    int64_t retry_count; /* retries spent in this generation */
    int64_t step_count;  /* questions asked in this verify or poll; of STEP_SEND, how many in a row spent nothing: refusals
                            when last_class is OUTCOME_BLOCKED, else waits */
    int64_t redrives_auto;
    bool doubted; /* an attempt of this generation was in doubt */
    instant created_at;
    instant first_at; /* first claim of this generation, or INSTANT_NONE */
    instant run_at;   /* when it is due; of a waiting job the next try */
    instant deadline; /* INSTANT_NONE: none */
    instant updated_at;
    instant failed_at;      /* first failure of this generation, or INSTANT_NONE */
    instant look_failed_at; /* last failure that was to show how its destination is; INSTANT_NONE: none */
    instant dead_at;       /* INSTANT_NONE unless dead */
    instant expires_at;    /* when the dead letter goes away */
    int64_t lease_token;   /* 0: no lease */
    enum job_state claimed_from; /* of a running job: the state before; RUNNING: a version wrote it that did not keep that */
    instant lease_until;
    struct slice lease_owner; /* empty: the session that claimed it sends it; else the name of a pull worker */
    int64_t lease_session;    /* that claimed it, where nodes share the store; 0: a pull worker has it, or nobody */
    instant lease_fenced_at;  /* OP_ORPHANS: when that session was fenced; INSTANT_NONE: nothing of it is on the wire */
    bool ready;        /* it can be claimed; readers do not tell */
    int64_t chain;     /* of its key: job_chain; 0: it has none */
    bool behind;       /* another of its key has to end before it */
    bool gap;          /* one of its key that was to go before it was not delivered */
    instant forget_at; /* when a completed or cancelled one is deleted; INSTANT_NONE: never */
    enum outcome last_class;         /* OUTCOME_NONE before the first outcome */
    struct slice last_code;          /* "http:503" */
    struct slice last_error;         /* never empty in a dead job */
    struct slice dead_code;          /* MAX_RETRIES_EXCEEDED, PERMANENT_ERROR, EXPIRED, ... */
    struct slice reference;          /* what the destination called it when it accepted: a protocol number */
    struct slice content_type;
    struct slice headers;            /* JSON object, or empty */
    struct slice correlation_id;
    struct slice metadata;           /* JSON, or empty */
    struct slice redrive;            /* the redrive that it waits or runs for, and what it was before; empty: none */
    struct slice key;                /* of those of one key, in its lane, one goes at a time, in order; empty: it has none */
    struct slice callback;           /* JSON: who is told of its end; empty: nobody */
    struct slice payload;            /* only where the call says so */
    bool damaged;                    /* OP_CLAIM of a send: it is not what was written; it must not be sent */
    int64_t last_event;
};

/* OP_INSERT: a new job; idempotent by (tenant, id). */
struct op_insert {
    struct slice destination, tenant, id; /* id empty: the store makes one, ordered by time */
    enum priority priority;
    int64_t rank;
    instant run_at; /* in the past or now: ready at once; INSTANT_NONE: now */
    instant deadline;
    struct slice content_type, headers, correlation_id, metadata, payload;
    struct slice key, callback;
    bool beyond_limit; /* the daemon's own word, which is taken although pending_max is reached */
    /* Results. */
    int64_t ret_seq, ret_lane;
    struct slice ret_id;
    bool ret_existed; /* the same id with the same body was there; nothing changed */
    bool ret_behind;  /* another of its key goes first */
    bool ret_tenant_full; /* STATUS_FULL: its tenant has its share, others may still add */
};

/*
 * OP_CLAIM: leases up to `max` ready jobs of a lane, and of payloads up to `bytes_max`, but always one job. Counts the
 * attempt of those whose step is STEP_SEND. A lane that never was has none ready. In order of (rank, seq), but with
 * `failed_last` those whose look_failed_at is not before that come after the others, the one that failed longest ago first;
 * of lanes with more than CLAIM_LOOKS_MAX ready jobs, among the first so many. A store on disk tells which
 * jobs to send were changed there: `damaged`, by a hash of destination, content type, headers and payload.
 * STATUS_CONFLICT: its destination is not this session's.
 */
struct op_claim {
    int64_t lane;
    size_t max;
    size_t bytes_max; /* 0: any */
    instant failed_last; /* 0: by rank alone */
    bool unfailed_only;  /* of those that come last, none */
    instant lease_until;
    struct slice owner; /* empty: this session, with which the lease ends; else the name of a pull worker, who outlives it */
    /* Results, with payload. */
    struct job *ret_jobs;
    size_t ret_count;
    size_t ret_left; /* of `max`: ready, but more than bytes_max allowed, or not what is wanted */
};

/*
 * OP_SETTLE: the end of a lease. STATUS_CONFLICT: the token is stale or the job is gone, nothing changed. OUTCOME_NONE
 * says nothing about the last attempt: class, code and, when `error` is empty, error stay as they were.
 */
struct op_settle {
    int64_t seq;
    int64_t token;
    enum job_event event; /* EVENT_DELIVER, EVENT_RETRY, EVENT_RELEASE, EVENT_GIVE_UP or EVENT_EXPIRE */
    enum job_step step;   /* of the next claim, for EVENT_RETRY and EVENT_RELEASE */
    instant run_at;       /* likewise */
    int64_t rank;
    int64_t retry_count, step_count;
    bool doubted;
    instant failed_at;      /* it failed then: recorded when it is the generation's first failure; 0: it did not */
    instant look_failed_at; /* the same of a look at its destination: recorded; 0: it was none, or went well */
    bool attempt_undone; /* the attempt that the claim counted never began: take it back */
    enum outcome outcome;
    struct slice code, error; /* `error` is not empty for EVENT_GIVE_UP and EVENT_EXPIRE (stored in last_error) */
    struct slice dead_code;
    int64_t dead_ttl_ms; /* of the dead letter, from the moment it is one; 0: it stays until purged */
    instant forget_at; /* a completed job is deleted then; INSTANT_NONE: never */
    struct slice reference; /* empty: keep */
    /* The result. */
    int64_t ret_lane;
};

/* OP_EXTEND: a lease is prolonged. */
struct op_extend {
    int64_t seq, token;
    instant lease_until;
};

/*
 * OP_CANCEL, OP_PRIORITIZE, OP_REDRIVE: by name. STATUS_NOT_FOUND; STATUS_CONFLICT where the state forbids it.
 * A dead job that is redriven starts a new generation and loses a deadline that has passed. A waiting one is only
 * hurried, and only by a person: what it has spent stays spent, and it keeps its step. A priority can change while
 * pending, waiting and running; the rank that a settlement brings stands. A corrected payload does not change what
 * OP_INSERT compares with.
 *
 * OP_REDRIVE with `redrive`: a dead job as part of that redrive, whose counts (see tally.h) move in the same transaction:
 * when it is sent back and when it has come to an end. OP_UNDO: one that the redrive named here has sent back and that has
 * not been tried since is the dead letter that it was, but for its history.
 */
struct op_job {
    struct slice tenant, id;
    int64_t seq;            /* the store's own number, if it is known: some find it sooner by that; 0: it is not */
    instant dead_at;        /* not 0: only the dead letter that died then; STATUS_CONFLICT otherwise */
    struct slice redrive;   /* OP_REDRIVE, OP_UNDO: the redrive's id; empty: it is of none */
    enum priority priority; /* OP_PRIORITIZE */
    int64_t rank;           /* OP_PRIORITIZE, OP_REDRIVE */
    bool automatic;         /* OP_REDRIVE by the cooldown, not by a person: counted in redrives_auto */
    bool resend;            /* OP_REDRIVE of a completed job, and of no other */
    bool payload_given;     /* OP_REDRIVE with a corrected payload, OP_UNDO with the one before */
    struct slice payload;
    instant forget_at; /* OP_CANCEL */
    struct op_insert *export; /* OP_PURGE: what the dead letter becomes, with its results; NULL: nothing */
    /* Results. */
    int64_t ret_seq, ret_lane;
    enum job_state ret_state;
    bool ret_was_dead;
    bool ret_behind; /* OP_REDRIVE: another of its key goes first */
};

/*
 * OP_PURGE: deletes one dead letter. Its events stay. With `export` it is one whose time is over, which becomes that job:
 * both happen or none, and what refuses the job (STATUS_FULL, ...) is the operation's status. OP_ERASE: the same to any job
 * that nobody has a lease of, because of a person: nothing of what it brought stays on disk. STATUS_CONFLICT: it is running.
 *
 * OP_ERASE_EVENTS: takes the data out of events, whose digests stay, so that the chain holds (trail.h). Those that are of an
 * older form keep theirs; those without data, without the event, or erased before, are neither erased nor left. What OP_SAVE
 * takes away behind it, in the same batch, stays on disk no more than they do; for that it may have no event at all.
 */
struct op_erase {
    const int64_t *numbers; /* committed before */
    size_t count;           /* ERASE_EVENTS_MAX at most; more is STATUS_LIMIT */
    size_t ret_erased, ret_left;
};
enum { ERASE_EVENTS_MAX = 1000 };

/* What time has done in a lane, so that nobody need ask for it. */
struct lane_ready {
    int64_t lane;
    struct slice destination, tenant;
    int64_t count; /* became ready */
    int64_t dead;  /* dead letters more, those that expired, or fewer, whose time is over */
};

/* How long a destination's dead letters are retained; 0: until purged. */
struct dead_ttl {
    struct slice destination;
    int64_t ms;
};

/* A destination whose dead letters become jobs elsewhere before they are deleted. */
struct dead_export {
    struct slice destination;
    size_t room; /* of those whose time is over so many are wanted now */
    size_t ret_count;
};

/* One of those. */
struct due_letter {
    size_t export; /* whose: of op_promote's exports */
    int64_t lane, seq;
    instant dead_at;
};

/*
 * OP_PROMOTE: what time has done up to `now`, at most `max` jobs: waiting and scheduled jobs become ready;
 * jobs past their deadline go DEAD with code EXPIRED; dead letters past expires_at and finished jobs past
 * forget_at are deleted, the former with an event. Dead letters of `exports` are put off instead: those that are wanted,
 * which are in `due`, by wanted_ms, the others by unwanted_ms. So one that could not be exported is there again. A time has
 * come when it is not after `now`. Overdue first come first, by (time, seq); a store that has them apart by destination
 * takes the first of each when there are more than `max`, then the second of each. A running job is left alone, whatever its
 * deadline. Only of the destinations that this session owns and, if it is the steward, of those that nobody does.
 */
struct op_promote {
    size_t max;
    int64_t dead_ttl_ms; /* of those that expire now; 0: they stay until purged */
    const struct dead_ttl *dead_ttls; /* destinations with a time of their own */
    size_t dead_ttl_count;
    bool name_expired; /* those that expire now are wanted one by one */
    struct dead_export *exports;
    size_t export_count;
    struct due_letter *due; /* has room for all that are wanted, or for `max` */
    int64_t wanted_ms, unwanted_ms;
    /* Results. */
    size_t ret_due_count; /* of `due` */
    struct lane_ready *ret_ready;
    size_t ret_ready_count;
    size_t ret_promoted, ret_expired, ret_dead_deleted, ret_forgotten, ret_put_off;
    struct job *ret_expired_jobs; /* with name_expired, as many as ret_expired, as they are now, without payload */
    instant ret_next_at; /* the next time something will be due; INSTANT_NONE: nothing waits */
};

/*
 * OP_ORPHANS: running jobs whose lease ended by `until`, and with `of_ended` all that were claimed by sessions that have
 * ended; of the same destinations as OP_PROMOTE. Without payload, by the end of their lease and seq; they keep their lease.
 * A page begins after the last one of the page before. What a session that was fenced had begun to send may be on the wire
 * for as long as a send can last: lease_fenced_at tells.
 */
struct op_orphans {
    instant until;
    bool of_ended;
    instant after_until; /* INSTANT_NONE: from the first */
    int64_t after_seq;
    size_t max;
    struct job *ret_jobs;
    size_t ret_count;
};

/*
 * OP_SAVE: the engine's saved state, a value by name in one of its spaces; an empty value takes it away. STATUS_INVALID
 * without a name. OP_DESTINATION: the same in SPACE_DESTINATION, a destination's mode, with an event.
 */
struct op_save {
    struct slice space, name;
    struct slice value; /* JSON */
};

/* These are the spaces that others share. */
#define SPACE_DESTINATION SLICE("destination")
#define SPACE_ERASURE_ACTIVE SLICE("erasure_active") /* the ids of erasures that somebody must go on with */
#define SPACE_FORWARD SLICE("forward") /* how far the trail is told; and that some job has a callback */
#define SPACE_NODE SLICE("node") /* what people ordered of a node: {"drain":SESSION} */
#define SPACE_PINS SLICE("pins") /* under one name, {"DESTINATION":"NODE"} */
#define PINS_NAME SLICE("all")
#define SPACE_RATE SLICE("rate") /* until when a limiter is paid for */

/* What is saved under one name. */
struct saved {
    struct slice name, value;
};

/*
 * OP_NOTE: an event of no job (started, paused, reloaded...). OP_TRIM: deletes events older than `before`, at most max;
 * fewer than two stay, since a trim leaves an event of its own, which tells what went. STATUS_CONFLICT: this session is not
 * the steward's.
 */
struct op_trim {
    instant before;
    size_t max;
    size_t ret_deleted;
};

/*
 * OP_TAKE: this session takes a destination that nobody owns, or already has it. STATUS_CONFLICT: another does. What was
 * committed there before can be read after it, and no claim comes to it from the session that had it before. OP_GIVE: it
 * gives one up. STATUS_CONFLICT: it does not own it. The empty name is the steward's office.
 */
struct op_own {
    struct slice destination;
    int64_t ret_epoch; /* one more each time it is taken, given up or lost */
};

enum op_kind {
    OP_INSERT,
    OP_CLAIM,
    OP_SETTLE,
    OP_EXTEND,
    OP_CANCEL,
    OP_PRIORITIZE,
    OP_REDRIVE,
    OP_PURGE,
    OP_PROMOTE,
    OP_ORPHANS,
    OP_DESTINATION,
    OP_SAVE,
    OP_NOTE,
    OP_TRIM,
    OP_TAKE,
    OP_GIVE,
    OP_UNDO,
    OP_ERASE,
    OP_ERASE_EVENTS,
};

enum event_type {
    EVENT_TYPE_NONE,
    EVENT_TYPE_ACCEPTED, /* enqueued, durable */
    EVENT_TYPE_CLAIMED,
    EVENT_TYPE_COMPLETED,
    EVENT_TYPE_RETRY_SCHEDULED,
    EVENT_TYPE_RELEASED,
    EVENT_TYPE_DEAD,
    EVENT_TYPE_EXPIRED,
    EVENT_TYPE_CANCELLED,
    EVENT_TYPE_PRIORITIZED,
    EVENT_TYPE_REDRIVEN,
    EVENT_TYPE_LEASE_EXTENDED,
    EVENT_TYPE_DEAD_EXPIRED, /* the dead letter's time to live ended */
    EVENT_TYPE_PURGED,
    EVENT_TYPE_NOTE,        /* of no job; `data` has "note" */
    EVENT_TYPE_DESTINATION, /* a destination's mode changed */
    EVENT_TYPE_UNDONE,      /* a redrive was taken back: it is a dead letter again */
    EVENT_TYPE_ERASED,      /* deleted because of a person */
    EVENT_TYPE_COUNT
};

/* The end of a job lets another of its key take its place, in the same lane. */
struct released {
    bool ready; /* it can be claimed */
    instant at; /* when time has something to do to it; 0: never, or there is no such job */
};

/*
 * One change. `data` is a JSON object of facts for its event, made by the caller, never with payload
 * or secrets; empty is allowed; over EVENT_DATA_BYTES_MAX the operation is STATUS_LIMIT. The store adds what
 * it alone knows as columns: job, lane, time, state.
 */
struct store_op {
    enum op_kind kind;
    struct slice data;
    union {
        struct op_insert insert;
        struct op_claim claim;
        struct op_settle settle;
        struct op_extend extend;
        struct op_job job;
        struct op_promote promote;
        struct op_orphans orphans;
        struct op_save save;
        struct op_trim trim;
        struct op_erase erase;
        struct op_own own;
    };
    enum status status; /* result: of this operation alone */
    struct released ret_released; /* but of OP_PROMOTE, which counts them with the others */
};

/* The job that an operation adds; NULL: it adds none. */
const struct op_insert *op_insertion(const struct store_op *op);

/* What an event's hash is made of: see trail.h. Numbers are stored. */
enum event_form {
    EVENT_FORM_PLAIN,  /* of older versions: its data as it is, which can never be erased */
    EVENT_FORM_SALTED, /* a salted digest of its data */
    EVENT_FORM_KEYED,  /* likewise, under a key that is not in the store */
    EVENT_FORM_COUNT
};

struct event {
    int64_t number; /* 1, 2, 3...: without gaps at the end that is still there */
    instant at;
    enum event_type type;
    enum job_state state; /* after it; STATE_NONE: of no job */
    int64_t attempt;
    struct slice destination, tenant, job; /* empty: of no job */
    struct slice data;                     /* JSON object or empty */
    int64_t previous;                      /* event of the same job, 0: none; an id used again starts anew */
    unsigned char hash[EVENT_HASH_BYTES];  /* over the one before and all of the above */
    enum event_form form;
    unsigned char salt[EVENT_SALT_BYTES];   /* of its data; zeros: it has none, or it was erased */
    bool erased;                            /* its data: `digest` is what is left */
    unsigned char digest[EVENT_HASH_BYTES];
};

struct lane_counts {
    int64_t pending, running, waiting, completed, dead, cancelled; /* completed and cancelled: ever, the rest: now */
    int64_t ready;                                                 /* of pending and waiting: can be claimed now */
};

struct lane {
    int64_t id; /* of no other lane, ever */
    struct slice destination, tenant;
    struct lane_counts counts;
};

/*
 * A lane is forgotten with its last job. It has its number and counters again if it comes back while events tell of it. What
 * it has completed and cancelled stays in its destination's counts.
 */

/* What a destination's lanes count together: as many as there are destinations, however many tenants they have. */
struct destination_total {
    struct slice destination;
    struct lane_counts counts; /* completed and cancelled: also of lanes that are forgotten */
    int64_t tenants;           /* lanes */
    struct lane *largest;      /* those with the most jobs that are not done, most first; lanes without any are not there */
    size_t largest_count;
};

/* What is done where there is no store yet. */
enum store_make {
    STORE_MAKE, /* with its folders */
    STORE_MAKE_IN_EMPTY_FOLDER, /* that is there; anywhere else a path may be mistaken: STATUS_INVALID */
};

struct store_settings {
    enum store_make make;
    bool sync_always;      /* else the caller calls store_sync each second */
    int64_t pending_max;   /* pending + waiting; OP_INSERT beyond is STATUS_FULL; 0: no limit */
    int64_t pending_per_tenant; /* likewise of one tenant; 0: all of them while only one is known, else half */
    struct slice own_tenant;    /* the daemon's, which is not counted as one */
    struct slice node;          /* its name among those that share the store; empty: it has the store for itself */
    struct slice node_url;      /* where the others reach it */
    struct slice node_place;    /* a process of this name that had this place before is gone; empty: nobody can say so */
    bool for_move; /* half of another store may have been moved there: move.h */
    instant now; /* when it is opened; 0: not known, and nothing is moved */
    struct slice audit_key; /* events are under it; empty: under none */
    /* An older store is about to be brought to a newer schema, which may take minutes; NULL: nobody hears of it. */
    void (*on_migrate)(int from, int to);
};

/* An event of the chain that stands for all before it; trail.h. */
struct trail_head {
    int64_t number;
    unsigned char hash[EVENT_HASH_BYTES];
};

/* A session, as the others see it. */
struct session {
    int64_t number;
    struct slice node, url;
    int64_t beat; /* so many times it has said that it lives */
    bool ended;   /* it is known for as long as a lease names it, and perhaps a little longer */
    instant fenced_at; /* INSTANT_NONE: it was not, or it has ended by itself */
    instant since;     /* when it began; of one that has ended it is not known, nor are these: */
    struct slice version;
    uint64_t config; /* as its last beat said; 0: it has not said so yet */
};

/* A lane that another node has added jobs to; or a job of ours that a pull worker has acknowledged there. */
struct lane_heard {
    int64_t acked, token; /* that job's number and lease; 0: it is about a lane, */
    int64_t lane;
    struct slice destination, tenant;
    int64_t ready, dead; /* more */
    instant next_at;     /* the earliest time of those that wait; INSTANT_NONE: none does */
    int64_t low_rank;    /* nothing that is ready now has a lower one; the backend's own */
};

/* A destination, or by the empty name the steward's office, as it is owned. */
struct shard {
    struct slice destination;
    int64_t session; /* 0: nobody's */
    int64_t epoch;
};

struct store;
struct store_reader;

/* Filter of reader_jobs: empty or STATE_NONE means any. */
struct job_filter {
    enum job_state state;
    struct slice destination, tenant, code; /* code: equals last_code or dead_code */
    int64_t before_seq; /* the page's cursor: only smaller, of `id` only what comes after it; 0: from the newest */
    struct slice id;    /* found by an index, whatever the number of tenants, in an order of their own */
    /* What follows is told by filter.c, of jobs that the above found. */
    struct slice dead_code, fingerprint;
    struct slice text;    /* part of its id or of its last error, whatever the case of its letters */
    instant since, until; /* when it died, or else came: not before the one, nor after the other; 0: any */
    struct slice redrive; /* sent back by that one, and not at an end since; found by an index */
    /*
     * Only what they are told apart and counted by is wanted: seq, id, destination, tenant, state, created_at, dead_at, the
     * codes, last_error and redrive. A store may leave the rest out, and be several times quicker.
     */
    bool brief;
};

struct move_ops;
struct store_facts;
struct store_space;
struct trail_check;
struct trail_reading;

/* One table a backend. All calls report failures of the store itself; results of single operations are in the ops. */
struct store_ops {
    const char *name;
    int writers_max; /* so many threads may apply batches at once, each by a handle of its own; at least 1 */

    /* Closes and frees; all readers are closed before. */
    void (*close)(struct store *store);
    /*
     * Does all of it in one transaction at time `now`. Results live in `memory`. On failure, but for STATUS_AWAY, nothing
     * happened. STATUS_FENCED: its session has ended, and none of what it asks for will be done before another has begun.
     */
    enum status (*apply)(struct store *store, instant now, struct store_op *ops, size_t count, struct arena *memory,
                         struct error *err);
    /*
     * Says what became of a transaction that was answered STATUS_AWAY, before there is another: it is asked until it is not
     * STATUS_AWAY again. Applied: the operations have the results that `apply` left in them, and count. Not applied: it
     * never will be. NULL: the store is never away.
     */
    enum status (*outcome)(struct store *store, bool *ret_applied, struct error *err);
    /*
     * Begins another session, in the thread that writes: store->session is the new one, which owns nothing unless the node
     * has the store for itself. The session that the node had ends, as when the store is opened: who calls knows that
     * nothing of it is on the wire, because that process is gone, or has nothing under way.
     */
    enum status (*begin)(struct store *store, instant now, struct error *err);
    /*
     * This and the next two are called by one thread, which may be another than the one that writes; NULL: the store is for
     * one node. The session ends in order, with nothing on the wire, and what it owns is free. Nobody writes any more.
     */
    enum status (*end)(struct store *store, instant now, struct error *err);
    /*
     * Says that the session lives, and a digest of what its node is configured with, for others to compare; it need not be
     * durable. STATUS_FENCED: it has ended.
     */
    enum status (*beat)(struct store *store, uint64_t config, struct error *err);
    /*
     * Ends another session that has not beaten since its beat was `beat`; what it owns is free. When this has returned,
     * whatever it committed can be read, and it commits nothing more. STATUS_CONFLICT: it has beaten, or has ended already.
     */
    enum status (*fence)(struct store *store, int64_t session, int64_t beat, instant now, struct error *err);
    /*
     * Tells the others, as far as they listen, of jobs that were committed here to destinations of theirs since the last
     * call, and of pull workers' leases of theirs that were acknowledged here. What could not be told is kept for the next.
     */
    enum status (*ring)(struct store *store, struct error *err);
    /* What others told since the last call. STATUS_AWAY: some may have been missed, so that all lanes must be looked at. */
    enum status (*hear)(struct store *store, struct arena *memory, struct lane_heard **ret_heard, size_t *ret_count,
                        struct error *err);
    /* All lanes are looked at anew: some may have got what nobody told of. NULL: the store has nothing to look at. */
    void (*recall)(struct store *store);
    /* A descriptor that can be read when `hear` may have something; -1: none now. It changes with each STATUS_AWAY. */
    int (*bell)(struct store *store);
    /* Makes everything applied so far durable; for sync_always = false. */
    enum status (*sync)(struct store *store, struct error *err);
    /*
     * Does what the store does by itself, each second, in the thread that writes. NULL: it does nothing. What fails is done
     * the next time, unless the store has failed as in `apply`.
     */
    enum status (*tend)(struct store *store, instant now, struct error *err);
    /* Gives the newest event to who writes. NULL: nothing outlives the process. */
    struct trail_head (*head)(struct store *store);
    /* Says what time it is, the same for all who use the store, in any thread, at once. NULL: the machine's clock. */
    instant (*clock)(struct store *store);
    /* These are for who looks after the store, by the functions of inspect.h. NULL: it cannot do that. */
    enum status (*space)(struct store *store, struct store_space *ret_space, struct error *err);
    enum status (*facts)(struct store *store, struct store_facts *ret_facts, struct error *err);
    enum status (*check)(struct store *store, struct error *err);
    enum status (*verify)(struct store *store, const struct trail_reading *reading, struct trail_check *ret_check,
                          struct error *err);
    enum status (*backup)(struct store *store, const char *target, struct store_facts *ret_facts, struct error *err);
    const struct move_ops *move; /* all of it to and from another store: move.h; NULL: it ends with the process */
    enum status (*reader)(struct store *store, struct store_reader **ret_reader, struct error *err);

    void (*reader_close)(struct store_reader *reader);
    /* Reads a job by its name. STATUS_NOT_FOUND: there is none. */
    enum status (*reader_job)(struct store_reader *reader, struct slice tenant, struct slice id, bool with_payload,
                              struct arena *memory, struct job *ret_job, struct error *err);
    /* Does the same by the store's own number, which a lease names. */
    enum status (*reader_job_seq)(struct store_reader *reader, int64_t seq, bool with_payload, struct arena *memory,
                                  struct job *ret_job, struct error *err);
    /*
     * Reads jobs, newest first, without payload unless asked. *ret_next_seq is the next page's cursor, 0 at the end. A page
     * may hold fewer than `max` although more follow: the rows looked at are bounded too.
     */
    enum status (*reader_jobs)(struct store_reader *reader, const struct job_filter *filter, size_t max, bool with_payload,
                               struct arena *memory, struct job **ret_jobs, size_t *ret_count, int64_t *ret_next_seq,
                               struct error *err);
    /* Reads events after `after`, oldest first; behind the last of its chain those of the next chain. */
    enum status (*reader_events)(struct store_reader *reader, int64_t after, size_t max, struct arena *memory,
                                 struct event **ret_events, size_t *ret_count, struct error *err);
    /* Reads the newest `max` events of one name, oldest first; also of jobs that are deleted. */
    enum status (*reader_history)(struct store_reader *reader, struct slice tenant, struct slice id, size_t max,
                                  struct arena *memory, struct event **ret_events, size_t *ret_count, struct error *err);
    /* Reads all lanes that have jobs, whatever their state, in order of id, from `after` on. */
    enum status (*reader_lanes)(struct store_reader *reader, int64_t after, size_t max, struct arena *memory,
                                struct lane **ret_lanes, size_t *ret_count, struct error *err);
    /* Finds one lane by its names, by an index, whatever the number of lanes. STATUS_NOT_FOUND: there is none. */
    enum status (*reader_lane)(struct store_reader *reader, struct slice destination, struct slice tenant,
                               struct arena *memory, struct lane *ret_lane, struct error *err);
    /*
     * Reads every destination that has or had jobs, in order of name, each with up to `largest_max` of its lanes. The
     * writer keeps these, so no lane is walked. They count committed batches, perhaps later ones than a page of lanes shows.
     */
    enum status (*reader_totals)(struct store_reader *reader, size_t largest_max, struct arena *memory,
                                 struct destination_total **ret_totals, size_t *ret_count, struct error *err);
    /*
     * Says how many ready jobs of the lane are claimed before one of that place: it counts up to `max`,
     * STORE_PAGE_MAX at most, and reads no more, so that it costs the same in any lane. The job itself need not be ready,
     * nor be there.
     */
    enum status (*reader_ahead)(struct store_reader *reader, int64_t lane, int64_t rank, int64_t seq, size_t max,
                                size_t *ret_count, struct error *err);
    /* Reads what OP_SAVE and OP_DESTINATION save. STATUS_NOT_FOUND: nothing was saved by that name. */
    enum status (*reader_saved)(struct store_reader *reader, struct slice space, struct slice name, struct arena *memory,
                               struct slice *ret_value, struct error *err);
    /* Reads a page of a space, from the last name to the first; only names before `before`, where that is not empty. */
    enum status (*reader_saved_list)(struct store_reader *reader, struct slice space, struct slice before, size_t max,
                                    struct arena *memory, struct saved **ret_saved, size_t *ret_count, struct error *err);
    /* Reads the newest event of every chain, in their order; one with none has number 0. NULL: there is one chain. */
    enum status (*reader_heads)(struct store_reader *reader, struct arena *memory, struct trail_head **ret_heads,
                                size_t *ret_count, struct error *err);
    /* Reads all sessions that live, and those that ended and have leases left, by number. NULL: it is for one node. */
    enum status (*reader_sessions)(struct store_reader *reader, struct arena *memory, struct session **ret_sessions,
                                   size_t *ret_count, struct error *err);
    /* Reads every destination that has or had an owner or jobs, in order of name. NULL likewise. */
    enum status (*reader_shards)(struct store_reader *reader, struct arena *memory, struct shard **ret_shards,
                                 size_t *ret_count, struct error *err);
};

/* The common beginnings of every backend's handles. */
struct store {
    const struct store_ops *ops;
    const char *place; /* as the address names it, for people: the file; never with a password */
    uint64_t seed; /* this installation's own for ever: the seed of its jitter */
    int64_t session; /* of this handle, greater than those of all leases that are there; changed by `begin` alone */
    instant newest_at;  /* of the events that were there when it was opened; INSTANT_NONE: none, or it is not known */
    int64_t shifted_ms; /* by so much waits and leases were moved, since the clock went back; 0: they were not */
    bool tend_soon;     /* nothing is written, and `tend` has more to do: it is called again after a moment */
};

struct store_reader {
    const struct store_ops *ops;
};

/* A kind of store, by the start of its address. Only src/main.c names them, in a list that ends with NULL. */
struct store_backend {
    const char *scheme; /* "sqlite:" */
    enum status (*open)(struct slice place, const struct store_settings *settings, struct store **ret_store,
                        struct error *err);
    /* As store_look; NULL: such a store lives in the process that opened it, and ends with it. */
    enum status (*look)(struct slice place, struct store **ret_store, struct error *err);
    /* Whether a daemon could work there, without a change; NULL: who opens it will see. */
    enum status (*probe)(struct slice place, bool sync_always, struct error *err);
    const char *library; /* what it is made with, and which version is there; NULL: nothing of others */
    const char *(*library_version)(void);
};

/* Whether there is a backend for an address; STATUS_UNSUPPORTED: none. */
enum status store_address_check(const struct store_backend *const *backends, struct slice address,
                                struct error *err) MUST_CHECK;
/* The same, and what can be said by asking it: a server may be away, or not be what it should be. Changes nothing. */
enum status store_probe(const struct store_backend *const *backends, struct slice address, bool sync_always,
                        struct error *err) MUST_CHECK;
/* `address` as in the configuration. STATUS_BUSY: another daemon has it open. */
enum status store_open(const struct store_backend *const *backends, struct slice address,
                       const struct store_settings *settings, struct store **ret_store, struct error *err) MUST_CHECK;
/*
 * From outside: a handle that locks nobody out and changes nothing, also while a daemon has the store open. It can be read,
 * copied and looked at with inspect.h, and be closed; whether the store is there is said by these. An address of no known
 * kind is the place of a store of the first kind. STATUS_UNSUPPORTED: such a store ends with the process that opened it.
 */
enum status store_look(const struct store_backend *const *backends, struct slice address, struct store **ret_store,
                       struct error *err) MUST_CHECK;

/* What time it is for the store. */
instant store_now(struct store *store);

/*
 * Calls `visit` for every lane, or for everything saved in a space, page by page. What it is given lives until it returns;
 * anything but STATUS_OK ends the walk with that status.
 */
enum status store_each_lane(struct store_reader *reader, enum status (*visit)(void *context, const struct lane *lane),
                            void *context, struct error *err) MUST_CHECK;
enum status store_each_saved(struct store_reader *reader, struct slice space,
                            enum status (*visit)(void *context, const struct saved *saved), void *context,
                            struct error *err) MUST_CHECK;

/* How many jobs one of so many tenants may have waiting; 0: there is no such limit. */
int64_t pending_share(const struct store_settings *settings, int64_t tenants);

void lane_counts_add(struct lane_counts *sum, const struct lane_counts *more);

const char *event_type_name(enum event_type type);
/* It is EVENT_TYPE_NONE where none has that name. */
enum event_type event_type_from_name(struct slice name);

/* Chains an event without a key to the one before: fills event->hash. */
void event_chain(const unsigned char before[EVENT_HASH_BYTES], struct event *event);

/*
 * Shared by the backends: the key of a name, and a digest that tells whether two bodies are the same. The lowest bits of a
 * key are its tenant's, so that the keys of one id, whosever it is, lie together; an id of the form below has one key.
 */
enum { JOB_KEY_TENANT_BITS = 24 };
uint64_t job_key(struct slice tenant, struct slice id);
/* What stands for a key in its lane; 0 for none. Two keys that have the same go one after the other, which harms nobody. */
int64_t job_chain(struct slice key);
void job_digest(const struct op_insert *insert, unsigned char ret_digest[16]);
enum { TRIM_LEAST = 2 }; /* events; fewer are left where they are */
/* An id for a job that came without: 26 characters, ordered by time, then by `number`. */
enum { JOB_ID_MADE_BYTES = 26 };
void job_id_make(instant now, uint64_t number, char ret_id[JOB_ID_MADE_BYTES + 1]);
/* That number; false for an id that has another form. Who gave the id does not show in its form. */
bool job_id_number(struct slice id, uint64_t *ret_number);

#endif
