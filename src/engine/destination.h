/*
 * destination.h - a destination: what is configured, and how it stands.
 */
#ifndef ENGINE_DESTINATION_H
#define ENGINE_DESTINATION_H

#include "core/alerting/pace.h"
#include "core/decision/backoff.h"
#include "core/outage/cycle.h"
#include "core/outage/gate.h"
#include "engine/alerts/alerts.h"
#include "engine/days.h"
#include "engine/dead/dead_exports.h"
#include "engine/history.h"
#include "engine/incidents/incidents.h"
#include "engine/measures.h"
#include "engine/outage/auto_redrive.h"
#include "engine/outage/probes.h"
#include "engine/handover.h"
#include "engine/pull.h"
#include "engine/queues/blocks.h"
#include "engine/queues/lane.h"
#include "engine/saved/waits.h"

struct engine;

enum {
    LEASE_MARGIN_MS = 60 * 1000,   /* an engine's lease outlives the destination's timeout by this */
    LEASES_OUT_MAX = 100 * 1000,   /* of a destination with pull workers, at once */
    LEASE_ANSWER_MAX_MS = 13 * 3600 * 1000, /* longer than the longest lease: a lost one is noticed by its own end */
    DEST_CHANGES_MAX = 8,          /* of one destination that are not on their way to the store yet */

    OPERATOR_BYTES = 128,
};

struct config;
struct lease_request;

/* One event of a destination's. The texts are constants. */
struct dest_change {
    const char *change;       /* paused, resumed, a mode's name, breaker_open... */
    const char *cause, *sign; /* NULL: none */
    uint32_t cycle;           /* whose figures it tells; 0: of none */
    const struct lane_state *lane; /* that it is about; NULL: the whole destination */
    instant at;
    char by[OPERATOR_BYTES]; /* whose order it was; empty: nobody's */
};

/* What the store has of it, and is to have. */
struct dest_saved {
    struct dest_change changes[DEST_CHANGES_MAX]; /* that are not on their way to the store yet */
    size_t change_count;
    struct slice operator_name; /* whose order is being carried out; empty: nobody's */
    bool looked; /* it was looked at, which is written down without an event: a crash is not to hasten the next look */
    struct saved_waits waits; /* for these, and for those on their way */
};

/* Who has work, and whose turn it is. */
struct dest_queue {
    struct turns turns;
    struct shares shares; /* of its slots */
    struct return_order order;
    struct lane_state *first, **end; /* of those that are known, */
    size_t lanes;             /* with work or without */
    int64_t ready;   /* of all its lanes */
    int64_t tenants; /* that had a job there, but for the daemon's own: none, one, or two of them and more */
    int64_t alone;   /* the lane of the first of these */
    struct { enum gate_hold hold; instant since; } met; /* what the dispatcher met last that holds it, and since when */
};

/* What an operator has ordered, and said. */
struct dest_orders {
    char *pause_reason;
    instant paused_since;
    char *mode_reason; /* of who entered contingency; NULL: nothing */
};

/* How it has fared of late. */
struct dest_trend {
    struct adaptive adaptive; /* its retries */
    struct cycles cycles;     /* what came of its runs, where it has some */
    struct pace pace;         /* what came of its attempts, minute by minute */
};

struct dest {
    char *name;
    const struct destination_config *config; /* NULL: jobs are there, but no configuration for them */
    struct gate gate;
    struct gate fallback; /* of the second address, where there is one: it has a breaker of its own and no mode */
    struct dest_trend trend;
    struct { struct auto_redrive redrive; struct dead_exports exports; }; /* of its dead letters */
    struct {
        char *reason; /* why it is held; NULL: it is not, or nobody knows */
        int64_t lane; /* as dest_block's */
    } second; /* address, whose block is its gate's */
    struct incident_state incident;
    struct dest_alerts alerts;
    struct measures measures;
    struct dest_history history;
    struct dest_days days;
    struct dest *next;
    struct handover own;
    struct { struct gate_rules first, second; } rules; /* of the gates; borrows from the configuration */
    struct saved_rate rate; /* of the whole destination */
    struct health_check check;
    struct dest_queue queue;
    struct dest_orders orders;
    struct dest_block block;
    struct dest_saved saved;
    struct lane_holds holds;
    struct dead_count dead;
    struct dest_ahead ahead;
    struct {
        struct lease_request *first, **last; /* that wait for jobs, */
        bool crowded;                        /* and not for work, but for memory for the answer */
        size_t out;                          /* batches that claim jobs for them */
        double bytes; /* how large payloads of leased jobs are of late; 0: nobody knows */
    } workers;
};

struct dest *dest_find(const struct engine *engine, struct slice name);
/* Makes it known. Where others use the store too: STATUS_NOT_FOUND, it was not gained. STATUS_NO_MEMORY. */
enum status dest_get(struct engine *engine, struct slice name, struct dest **ret_dest) MUST_CHECK;
/* The same of any. */
enum status dest_add(struct engine *engine, struct slice name, struct dest **ret_dest) MUST_CHECK;
/* What is configured of it. Of one that is not loaded yet nothing is, so nothing happens to it. */
void dest_configure(struct engine *engine, struct dest *dest, const struct config *config);
/* With its lanes. Nothing of it is under way. */
void dest_free(struct engine *engine, struct dest *dest);
bool dest_dead_full(const struct dest *dest);

/* ---- its state over a restart ---- */

struct restored_state;
/* As the store has it. */
void dest_restore(struct engine *engine, struct dest *dest, const struct restored_state *state);
/* Whether all of it is on its way to the store, or there. */
bool dest_is_saved(const struct dest *dest);
/* Why it is held: as much of it as is saved. False: it is as before. The second keeps the one before where none is given. */
bool hold_reason_set(char **held, struct slice reason);
bool hold_reason_change(char **held, struct slice reason);
/* Writes it down with the state, so that a restart does not send to a destination that was held. */
void dest_changed(struct dest *dest, struct dest_change change);
void dests_save(struct engine *engine);

#endif
