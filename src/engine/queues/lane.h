/*
 * lane.h - a tenant at a destination: its work, its turn, its share of the slots.
 */
#ifndef ENGINE_QUEUES_LANE_H
#define ENGINE_QUEUES_LANE_H

#include "core/fairness/shares.h"
#include "core/fairness/turns.h"
#include "core/outage/block.h"
#include "engine/queues/lane_holds.h"
#include "engine/queues/rates.h"
#include "engine/queues/return_order.h"

struct dest;
struct config;
struct tenant_measure;

struct attempt;
struct engine;

/* Of a destination: jobs that are claimed and wait for a free slot. */
struct dest_ahead {
    struct lane_state *last;         /* in the ring of lanes that have some */
    int64_t count, asked;            /* those jobs, and those being claimed */
    double answer_ms, payload_bytes; /* how long answers take of late, and how large payloads are */
};

/* Of a lane. */
struct lane_ahead {
    struct attempt *first, *end;
    struct lane_state *next; /* in the ring */
    int64_t in_turn;         /* of its last turn that is claimed ahead */
};

/* Dead letters of a lane or of a destination. */
struct dead_count {
    int64_t count;        /* as the store has told, */
    int64_t dying;        /* and of jobs that end so when it has written that */
    bool reported;            /* that they are as many as may be */
    int64_t tenants_full; /* of a destination: tenants that have as many as they may and are held for it, as far as known */
};

struct lane_state {
    int64_t id;
    struct dest *dest;
    char *tenant;
    int64_t ready; /* believed to be claimable, less those being claimed */
    int64_t claiming; /* those being claimed */
    struct turn turn;
    struct share share; /* of its destination's slots */
    instant looked_at[2]; /* with a job of it, how the first address is, and the second; INSTANT_NONE: never */
    bool all_failed;   /* what was ready then has failed in this outage */
    struct block block; /* of its refused answers: when that holds, it is held for them and not by an operator */
    struct tenant_measure *measure; /* in its destination's measures; NULL: it is counted with the others */
    uint64_t activity;              /* how much was served of late, as of active_at */
    instant active_at;
    bool reported;          /* an event names it, which may not be written yet */
    instant idle_since; /* as far as it was looked at; INSTANT_NONE: it has work, or something is known of it */
    struct dead_count dead; /* a lane that has some is not forgotten */
    struct lane_order order;
    struct saved_rate rate; /* of the tenant at this destination */
    struct lane_ahead ahead;
    struct lane_held hold;
    struct { instant until, at,
             saved; } asked; /* the destination wants nothing of it before, since when, and what the store has of it */
};

/* All lanes that the engine knows. */
struct lanes {
    struct lane_state **by_id; /* the store numbers them from 1 */
    size_t capacity;
    size_t count;  /* that are there */
    size_t looked; /* the last one that was looked at, */
    instant look_at;
    int64_t last; /* the newest that was ever heard of */
    struct lane_missed {
        int64_t ready, dead;
    } *missed; /* what was told of lanes that could not be recalled, by id; NULL: none */
    size_t missed_capacity;
};

enum status lane_get(struct engine *engine, int64_t id, struct slice destination, struct slice tenant,
                     struct lane_state **ret_lane) MUST_CHECK;
struct lane_state *lane_find(const struct engine *engine, int64_t id);
void lane_free(struct lane_state *lane);
void lane_ready_add(struct engine *engine, struct lane_state *lane, int64_t count);
/* Before claims for that side: `slots` is what there is in all, and who was passed over and may go on now is back. */
void dest_share_out(struct dest *dest, enum shares_side side, int64_t slots, instant now);
/* Whoever was passed over is back: what is left goes by turns alone. */
void dest_leave_over(struct dest *dest);
/* Whether the slots of that side are shared out at all. */
bool dest_shares(const struct dest *dest, enum shares_side side);
/*
 * How many of `wanted` the lane in front may send now; 0: none yet, and it is parked or passed over. SIDE_COUNT: of what was
 * left over, whatever its share.
 */
int64_t lane_room(struct lane_state *lane, enum shares_side side, int64_t wanted, instant now);
/* `count` of its ready jobs are being claimed, in its turn or without one. */
void lane_take(struct lane_state *lane, enum shares_side side, int64_t count, bool in_turn, instant now);
void lanes_configure(struct engine *engine, const struct config *config);
void lanes_release(struct engine *engine);
/* Whether the tenant has as many dead letters there as it may: it is held, and nobody else. */
bool lane_dead_full(const struct lane_state *lane);
/* So many more; negative: fewer. */
void lane_dead_add(struct lane_state *lane, int64_t count);
/* Forgets lanes that have been idle for long, a few at a time, and asks again for those that were missed. */
void lanes_tick(struct engine *engine);
/* As lane_find, of one that was forgotten too; NULL: there is no such lane, or it cannot be read now, which was logged. */
struct lane_state *lane_recall(struct engine *engine, int64_t id);
/* Jobs of it are ready, and it has more dead letters, or fewer. One that cannot be recalled now is asked for again later. */
void lane_changed(struct engine *engine, int64_t id, int64_t ready, int64_t dead);
/* As lane_recall, by its tenant. */
struct lane_state *lane_recall_named(struct engine *engine, const struct dest *dest, struct slice tenant);

#endif
