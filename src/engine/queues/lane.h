/*
 * lane.h - a tenant at a destination: its work, its turn, its share of the slots.
 */
#ifndef ENGINE_QUEUES_LANE_H
#define ENGINE_QUEUES_LANE_H

#include "base/map.h"
#include "core/fairness/shares.h"
#include "core/fairness/turns.h"
#include "core/outage/block.h"
#include "engine/questions.h"
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
    int64_t count;        /* as the store has reported, */
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
    struct lane_state *next, **link; /* in its destination's queue.first */
};

enum { RECALL_MAX = 64 }; /* lanes that are asked for together */

/* The question for lanes that are missed. */
struct lanes_recall {
    struct question question; /* first */
    int64_t ids[RECALL_MAX];
    size_t count;
    struct lane *lanes; /* the answer, in the question's memory; id 0: there is none of that number */
};

/* All lanes that the engine knows: those of its own destinations. */
struct lanes {
    struct map by_id; /* the store numbers them from 1 */
    struct map unplaced; /* limits of those without jobs, which are not known, for their return: struct unplaced_rate */
    size_t looked;    /* where the last look at them ended, */
    instant look_at;
    struct map missed; /* what was reported of lanes that are not known, until they are read: struct lane_missed */
    struct lanes_recall recall;
};

/* Makes it known. STATUS_NO_MEMORY; STATUS_NOT_FOUND: its destination is not this engine's; STATUS_BUSY: not yet. */
enum status lane_get(struct engine *engine, int64_t id, struct slice destination, struct slice tenant,
                     struct lane_state **ret_lane) MUST_CHECK;
struct lane_state *lane_find(const struct engine *engine, int64_t id);
/* Nothing of it is known any more. */
void lane_forget(struct engine *engine, struct lane_state *lane);
/* Its destination goes too, with its turns and shares. */
void lane_drop(struct engine *engine, struct lane_state *lane);
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
/* What held it is over, or may be: it has its turns again, and its share of the slots stays free. */
void lane_unpark(struct lane_state *lane);
/* Likewise all of a destination whose time has come. */
void lanes_unpark_due(struct dest *dest, instant now);
/* What is configured of its destination. */
void lane_configure(struct lane_state *lane, const struct config *whole);
void lanes_release(struct engine *engine);
/* Whether the tenant has as many dead letters there as it may: it is held, and nobody else. */
bool lane_dead_full(const struct lane_state *lane);
/* So many more; negative: fewer. */
void lane_dead_add(struct lane_state *lane, int64_t count);
/* Forgets lanes that have been idle for long, a few at a time, and asks again for those that were missed. */
void lanes_tick(struct engine *engine);
/* The lane of a job that this engine has; NULL: no memory, or the destination is not its own. */
struct lane_state *lane_of_job(struct engine *engine, const struct job *job);
/* Jobs of it are ready, and it has more dead letters, or fewer. One that is not known is asked for, until it is. */
void lane_changed(struct engine *engine, int64_t id, int64_t ready, int64_t dead);
/* Asks for those that are missed. */
void lanes_ask_missed(struct engine *engine);
/* A destination was gained: of those that were asked for in vain, nobody knows which are its. */
void lanes_ask_all_missed(struct engine *engine);

#endif
