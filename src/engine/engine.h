/*
 * engine.h - the loop that ties it together: due, turn, gate, claim, send, decide, settle.
 *
 * The engine owns no thread, clock, socket or store. It is given ports, and hears what
 * happened: batches applied, answers received, time to run. The daemon puts the writer,
 * libcurl and the system's clock behind them; the tests and the simulator their own. All
 * calls come from one thread.
 *
 * Its memory is bounded by lanes with work and by the sends under way, not by the backlog
 * (invariant 6).
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/json.h"
#include "core/alerting/pace.h"
#include "core/fairness/rate.h"
#include "core/fairness/turns.h"
#include "core/outage/cycle.h"
#include "core/outage/gate.h"
#include "engine/saved/waits.h"
#include "node/reads.h"
#include "node/writer.h"
#include "transport/http/probe.h"
#include "transport/transport.h"

struct engine_ports {
    void *context;
    instant (*now)(void *context);
    /* Applies a batch and calls batch->done later, never from inside. */
    void (*submit)(void *context, struct batch *batch);
    /* Starts a send; send->done is called later, never from inside. */
    void (*send)(void *context, struct send *send);
    /*
     * Runs read->run with a reader of the store and calls read->done in the engine's thread, perhaps before this returns.
     * NULL: it is run at once, by the reader that the engine was started with.
     */
    void (*read)(void *context, struct store_read *read);
    /* Asks a destination how it is; probe->done is called later, never from inside. NULL: health is not checked. */
    void (*probe)(void *context, struct probe *probe);
    /* Bytes that the store's disk has free; negative: not known. NULL: never known. */
    int64_t (*disk_free)(void *context);
    /* Asks for one call of engine_run at that time; a later wish for an earlier time replaces it. */
    void (*wake_at)(void *context, instant at);
    /* Nanoseconds that only go forward, to measure how long decisions take; NULL: that is not measured. */
    int64_t (*ticks_ns)(void *context);
};

struct engine_settings {
    struct engine_ports ports;
    struct mailbox *mailbox; /* where batches come back to; may be NULL when `submit` needs none */
    struct config *config;   /* the engine takes a reference */
    uint64_t seed;
    bool no_alerts; /* none are raised, nobody hears of any: a simulation */
    bool shared_store; /* other engines use it too: this one has the destinations that it gains, and none by itself */
};

struct engine;

enum status engine_new(const struct engine_settings *settings, struct engine **ret_engine, struct error *err) MUST_CHECK;
/* Nothing is under way: see engine_stop. */
void engine_free(struct engine *engine);

/*
 * Gains every destination, and begins: first every attempt that an earlier process left behind is recorded as in doubt, then
 * work goes on. The reader is used until the engine is freed, unless there is a port for reads.
 */
enum status engine_start(struct engine *engine, struct store_reader *reader, struct error *err) MUST_CHECK;
/* Does what is due now. */
void engine_run(struct engine *engine);
/* Takes the notice. */
void engine_notice(struct engine *engine, struct notice *notice);
/* From now on the new configuration counts; sends under way end by the old one. */
enum status engine_reload(struct engine *engine, struct config *config, struct error *err) MUST_CHECK;

/*
 * With shared_store, and running: a destination that this node has taken. What the store has of it is read, then it is sent
 * to, and `gained` is done; or, with an error, it could not be read and is not gained. The caller owns `gained` until then.
 * The empty name is the steward's office: what is of no destination.
 */
void engine_gain(struct engine *engine, struct slice destination, struct saved_wait *gained);
/*
 * From now on nothing more is claimed there. When its sends have ended, and all that must outlive them is in the store,
 * `lost` is done, the engine knows nothing of it any more, and the node may give it away. STATUS_NOT_FOUND: it was never
 * gained; STATUS_BUSY: it is being gained or lost.
 */
void engine_lose(struct engine *engine, struct slice destination, struct saved_wait *lost);

/* Loses all. Leases wanted by pull workers are answered empty. */
void engine_stop(struct engine *engine);
/* How many sends, health checks and batches are under way: 0 means it may be freed. */
size_t engine_under_way(const struct engine *engine);
/* The sends still under way, for a transport to abort; at most `max`. */
size_t engine_sends(const struct engine *engine, struct send **ret_sends, size_t max);

/* How many are sent at once, and why. */
struct limit_status {
    int64_t now, max;
    enum concurrency_reason reason;
    enum concurrency_sign sign; /* of LIMIT_BORNE and LIMIT_TRIAL */
    int64_t fell_from;          /* with so many it went wrong last; 0: it never did */
    instant rises_at;           /* when more is tried, if work waits for it; INSTANT_NONE: not by time */
};
/* As a sentence for people, without its full stop. At most LIMIT_WORDS_BYTES. */
enum { LIMIT_WORDS_BYTES = 200 };
void limit_words(const struct limit_status *limit, char words[LIMIT_WORDS_BYTES]);

/* A destination as it stands. */
struct destination_status {
    bool known;
    const char *mode; /* normal, contingency, recovering, paused */
    const char *held_by; /* NULL: not held */
    const char *pause_reason; /* or of contingency; valid until the next call of the engine */
    const char *cause;        /* of the mode; NULL: none */
    instant mode_since;
    instant outage_since; /* from the first hold on, relapses included; INSTANT_NONE: nothing holds it */
    instant held_since, held_until; /* INSTANT_NONE: not known */
    instant look_at; /* held by an outage: when it is looked whether that is over; INSTANT_NONE: not by time */
    int64_t under_way, concurrency;
    size_t lanes_with_work;
    bool fallback;       /* jobs go to the second address; what holds is about that */
    struct limit_status limit;  /* of concurrency */
    const char *breaker; /* closed, open, half_open */
    struct cycle_figures cycle; /* of the last run; number 0: none */
    size_t tenants_paused;      /* held for themselves */
    instant next_since;         /* about when the job that is next began to wait, if one is ready; INSTANT_NONE: not known */
    struct pace pace;           /* attempts that succeeded and failed, since the engine started */
    struct {
        bool wanted; /* the first is away, so that jobs go there, */
        bool held;   /* if it does not refuse them: then only looks do */
        const char *reason;
        instant since, look_at;
    } second; /* address */
    bool confined; /* less is shown than is known, to somebody who may not hold it: see api/call/confined.h */
};
struct destination_status engine_destination(const struct engine *engine, struct slice name);

/*
 * A lane that somebody is about to ask of, or to give orders about, as the store names it: it may be forgotten here. Without
 * memory, or where the destination is not this engine's, it stays unknown.
 */
void engine_recall(struct engine *engine, int64_t lane, struct slice destination, struct slice tenant);

/* A tenant at a destination, by its lane. */
struct tenant_status {
    bool known;
    struct turn_figures turns; /* since the engine started, or since it had work again after it had none for long */
    int64_t weight;
    instant asked_until; /* the destination wants nothing of it before; INSTANT_NONE: it never said so */
};
struct tenant_status engine_tenant(const struct engine *engine, int64_t lane);

/* Where a job stands that waits for its turn, and when that comes. */
struct queue_place {
    bool known;
    size_t tenants;     /* that have work at the destination */
    int64_t before;     /* jobs that go first, its own tenant's and others' */
    int64_t allowed_ms; /* it cannot go earlier: the limits forbid it */
    const char *limit;  /* which of them does, as in the configuration; NULL: none */
    struct rate rate;   /* of that limit */
    instant tenant_until; /* the tenant's own limit holds it until then; INSTANT_NONE: it does not */
    instant asked_until;  /* the destination asked for no more of the tenant's before; INSTANT_NONE: it did not */
    bool dead_full;       /* the tenant has as many dead letters as it may */
    bool share_used;      /* the tenant holds its share of the slots, and others need the rest */
    int64_t share, slots; /* that; 0: not known */
    instant at;           /* when it is tried, as things go; INSTANT_NONE: not known */
};
/*
 * `ahead`: the tenant's own jobs that go first; negative: all that are due. `due`: not earlier than that. From the same
 * gate, limits and turns that decide about it. Bounded work, however long the queue is.
 */
struct queue_place engine_place(const struct engine *engine, int64_t lane, int64_t ahead, instant due);

/* Writes a member "cycle". */
void cycle_write(struct json_writer *json, const struct cycle_figures *figures);

enum { HOLD_REASON_BYTES_MAX = 1024 }; /* why something is held: longer ones are cut at a character */

/* STATUS_NOT_FOUND. Saved over restarts. `reason` is a sentence for people; another one takes the place of one before. */
/* Until it is called again with nobody, what changes at the destination is that person's doing; the trail says so. */
void engine_operator(struct engine *engine, struct slice destination, struct slice who);
enum status engine_pause(struct engine *engine, struct slice destination, struct slice reason, struct error *err) MUST_CHECK;
enum status engine_resume(struct engine *engine, struct slice destination, struct error *err) MUST_CHECK;
/* The same for one tenant's lane, after engine_recall: the others go on. STATUS_LIMIT when too many are held already. */
enum status engine_pause_tenant(struct engine *engine, int64_t lane, struct slice reason, struct error *err) MUST_CHECK;
enum status engine_resume_tenant(struct engine *engine, int64_t lane, struct error *err) MUST_CHECK;

/* Whether a lane, by the store's number, is held for itself. */
struct lane_hold {
    bool held;
    bool blocked; /* its answers are refused; else an operator holds it */
    instant since;
    instant look_at; /* of a blocked one; else INSTANT_NONE */
    const char *reason; /* NULL: none; valid until the next call of the engine */
};
struct lane_hold engine_lane_hold(const struct engine *engine, int64_t lane);
/* The tenants of a destination that are held for themselves, at most `max`; the texts as above. */
struct tenant_hold {
    const char *tenant;
    struct lane_hold hold;
};
size_t engine_tenant_holds(const struct engine *engine, struct slice destination, struct tenant_hold *ret_holds, size_t max);

/* The same for contingency: it is held until somebody leaves it, and comes back by its ramp. Nothing to do is STATUS_OK. */
enum status engine_enter_contingency(struct engine *engine, struct slice destination, struct slice reason,
                                     struct error *err) MUST_CHECK;
enum status engine_leave_contingency(struct engine *engine, struct slice destination, struct error *err) MUST_CHECK;

/*
 * These orders hold at once, but may be acknowledged only when they are in the store: after one of them, also when there was
 * nothing to do, `wait` is done once everything that was ordered of the destination so far is durable. When that fails,
 * the order holds all the same and is written as soon as the store can; a restart before that undoes it.
 */
void engine_await_saved(struct engine *engine, struct slice destination, struct saved_wait *wait);

/*
 * Pull workers. A request is answered once by `done`, perhaps at once: with jobs when there are some,
 * empty at `wait_until`. The caller owns the request; the jobs live until lease_release.
 */
struct lease_request {
    struct slice destination, worker;
    size_t max;
    int64_t lease_ms;
    instant wait_until;
    void (*done)(struct lease_request *request, enum status status, const struct job *jobs, size_t count);
    void *context;
    struct lease_request *next; /* the engine's, as all below */
    struct engine *engine;
    struct batch *batch; /* holds the jobs */
    struct gate_pass pass; /* of all that is claimed for it */
    int64_t bytes;         /* of its payloads, or as many as they may be: counted until lease_release */
};
void engine_lease(struct engine *engine, struct lease_request *request);
/* From any thread, while the engine is there. */
void lease_release(struct lease_request *request);

/*
 * How leases end. Each is to be reported once, so that the destination's gate learns from it; of a lease that it does not
 * know (from before a restart) nothing is learnt.
 */
/* The store has recorded that it is done. */
void engine_acked(struct engine *engine, int64_t seq, int64_t token);
/* It was given back unused, or will be. */
void engine_lease_returned(struct engine *engine, int64_t seq, int64_t token);
/*
 * It failed. Decides as for a send of its own and fills `op` for the store; how long it took is added to the answer. Nothing
 * has happened yet: when the store has taken it, and only then, engine_nacked heeds what it means for the destination.
 * *ret_policy lives until the next call of the engine. STATUS_NOT_FOUND: the destination is not configured;
 * STATUS_NO_MEMORY.
 */
struct settlement;
struct lease_nack {
    const struct job *job; /* with its lease's token */
    struct answer answer;
    bool exhausted; /* the engine's: its last try failed, and no look */
};
enum status engine_nack(struct engine *engine, struct lease_nack *nack, struct arena *memory, struct store_op *op,
                        struct settlement *ret_settlement, const struct policy **ret_policy) MUST_CHECK;
void engine_nacked(struct engine *engine, const struct lease_nack *nack, const struct store_op *op,
                   const struct settlement *settlement);

/* An operator knows of an alert. */
struct alert_ack {
    struct slice id, by, note; /* the last two may be empty */
    struct slice tenant;       /* only of this one's alerts; .data NULL: of all */
};
/*
 * STATUS_NOT_FOUND: none of that id stands. Else `wait` is done when it is in the store. One about dead letters ends by it,
 * another is marked and stands while it is true.
 */
enum status engine_ack_alert(struct engine *engine, const struct alert_ack *ack, struct saved_wait *wait,
                             struct error *err) MUST_CHECK;

struct engine_figures {
    int64_t claimed, delivered, failed, retried, held, dead, recovered;
    int64_t alerts, alerts_unacked; /* that stand now, and those of them that nobody has acknowledged */
    instant ran_at; /* when engine_run last ended */
};
/* Somebody met a page of the store that cannot be read: people hear of it. */
void engine_store_damaged(struct engine *engine, const struct error *err);
struct engine_figures engine_figures(const struct engine *engine);

#endif
