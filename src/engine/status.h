/*
 * status.h - how the engine's destinations, tenants and jobs stand, for who asks.
 *
 * Every call is answered from what the engine knows, in its own thread, and changes nothing.
 */
#ifndef ENGINE_STATUS_H
#define ENGINE_STATUS_H

#include "base/json.h"
#include "core/alerting/pace.h"
#include "core/fairness/rate.h"
#include "core/fairness/turns.h"
#include "core/outage/cycle.h"
#include "core/outage/gate.h"

struct engine;

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
    const char *mode_behind;  /* contingency or recovering, that a pause hides; NULL: none */
    const char *behind_reason; /* what was said when that was ordered; as pause_reason */
    const char *cause;        /* of the mode, of the one behind where there is one; NULL: none */
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

#endif
