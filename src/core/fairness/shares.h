/*
 * shares.h - how many of a destination's slots each of its tenants may hold.
 *
 * Turns are fair by starts: a tenant whose jobs take long would come to hold every slot. So each active tenant has a share
 * of the slots by its weight, one at least. Below it a tenant may take a slot whenever it has its turn; above it only while
 * enough stay free for what the others miss of theirs. Who may not is passed over and asked again when that has changed:
 * it holds as many as its share, so never more tenants are passed over than there are slots.
 *
 * A tenant is active while it has work that is due or holds a slot, and for ten seconds after. For those that have nothing
 * to do for now at most half of the slots stay free: a tenant with a backlog is not to crawl beside a hundred that come
 * now and then. Who waits for slots with all of its jobs claimed ahead is none of these.
 *
 * Where classes count across tenants, the active ones are those with work of the most urgent class that waits, and some
 * slots go by turns over all classes: one in five, one of two at least, none of one.
 *
 * What is claimed ahead of a free slot is held, too: no tenant claims ahead beyond its share of slots and claims.
 *
 * Pure, and allocates nothing. A take costs constant work; other slots or another set of active tenants cost as much as
 * tenants hold slots.
 */
#ifndef CORE_FAIRNESS_SHARES_H
#define CORE_FAIRNESS_SHARES_H

#include "base/instant.h"
#include "core/decision/job.h"
#include "core/fairness/turns.h"

enum { SHARES_LINGER_MS = 10 * 1000 };

/* What is held, each with slots of its own. */
enum shares_side {
    SIDE_FIRST,
    SIDE_FALLBACK,
    SIDE_AHEAD, /* claimed, waiting for a slot at the first address */
    SIDE_COUNT
};

enum {
    SHARES_IDLE = PRIORITY_COUNT, /* active, with nothing due; before it, by class, those with work that is */
    SHARES_GROUPS,
    SHARES_NONE = SHARES_GROUPS, /* not active */
};

/* Lives inside the lane it stands for. */
struct share {
    int64_t weight;
    int64_t held[SIDE_COUNT];
    int group;
    bool passed;   /* over */
    instant until; /* idle: active until then; INSTANT_NONE: for as long as it holds something */
    struct share *next_idle, **idle_link;     /* link NULL: it is not there */
    struct share *next_holder, **holder_link; /* likewise */
    struct share *next_passed;
};

struct shares {
    struct {
        int64_t slots;
        int64_t held;
        int64_t by_turn;                /* of these, by turns over all classes */
        int64_t missing[SHARES_GROUPS]; /* of the shares of those in it */
        int64_t waiting;                /* of what idle ones miss: has a job that is claimed ahead */
        bool stale;                     /* that is to be summed anew */
    } sides[SIDE_COUNT];
    bool by_class;
    int64_t weights[SHARES_GROUPS];
    int64_t weight_max; /* seen */
    struct share *idle_first, **idle_end;
    struct share *holders;
    struct share *passed;
    int32_t counts[SHARES_GROUPS][TURNS_WEIGHT_MAX + 1]; /* of tenants, by weight */
};

void shares_init(struct shares *shares);
/* Whether classes count across tenants, from when they are counted. */
void shares_configure(struct shares *shares, bool by_class);

void share_init(struct share *share, int64_t weight);
void shares_weigh(struct shares *shares, struct share *share, int64_t weight);
/* It has work that is due, of that class at best; without `by_class` the class says nothing. */
void shares_due(struct shares *shares, struct share *share, enum priority class);
/* It has none, or may not send for a reason of its own. */
void shares_idle(struct shares *shares, struct share *share, instant now);
/* The lane is forgotten; it holds nothing. */
void shares_remove(struct shares *shares, struct share *share);
/* Time has passed. */
void shares_tick(struct shares *shares, instant now);
/* When one that is idle stops counting; INSTANT_NONE: none is. */
instant shares_next(const struct shares *shares);

/* How many slots there are now, at least 1. */
void shares_set_slots(struct shares *shares, enum shares_side side, int64_t slots);
/* How many more it may take now. Of SIDE_AHEAD: claim ahead, where slots and claims ahead are `slots` together. */
int64_t shares_ask(struct shares *shares, enum shares_side side, const struct share *share);
/* Its share of the slots. */
int64_t shares_part(const struct shares *shares, enum shares_side side, const struct share *share);
void shares_take(struct shares *shares, enum shares_side side, struct share *share, int64_t count);
void shares_give_back(struct shares *shares, enum shares_side side, struct share *share, int64_t count, instant now);

/* Whether the next slot goes by turns over all classes. */
bool shares_by_turn(const struct shares *shares, enum shares_side side);
/* `count` that went so were taken; negative: given back. */
void shares_note_by_turn(struct shares *shares, enum shares_side side, int64_t count);

/* It may not take one for now. */
void shares_pass_over(struct shares *shares, struct share *share);
/* Those passed over that may take one now, or SIDE_COUNT: all, by next_passed; they are so no more. NULL: none. */
struct share *shares_passed(struct shares *shares, enum shares_side side);

#endif
