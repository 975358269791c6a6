/*
 * turns.h - the fair queue of a destination: its lanes take turns, in rounds (a deficit round robin).
 *
 * In a round every lane with work may send its share, `batch` jobs times its weight, in turns of at
 * most `batch` jobs. A lane that has had its share stands in the next round, which begins when
 * nobody in this one is left. Inside a round the smaller priority goes first, max(1, base - rounds
 * without service); among equals a lane that comes with work anew, for what it left of its last
 * share; then who came first. So tenants with a backlog form a ring at the base priority, and those
 * with a job now and then are served before them, within their share.
 *
 * Invariant 7: no other lane sends more than its share before a lane that has work is served, so it
 * waits at most for the sum of the others' shares. And since a round takes in only so many late
 * comers, endless new tenants cannot keep a round from ending.
 *
 * A lane that may not send for now (a limit of its own) is parked until an instant: it holds up
 * nobody, keeps its place unless its turn had begun, and its rounds without service count. A turn costs logarithmic work and
 * allocates nothing; what a lane has waited is worked out from the round's number, never counted up.
 *
 * A lane may also be set aside for as long as others matter more; who does so brings it back before the next round begins,
 * or invariant 7 does not hold for it.
 */
#ifndef CORE_FAIRNESS_TURNS_H
#define CORE_FAIRNESS_TURNS_H

#include "base/heap.h"
#include "base/instant.h"

enum {
    TURNS_BATCH_MAX = 10000,
    TURNS_BASE_PRIORITY_MAX = 100,
    TURNS_WEIGHT_MAX = 1000,
    TURNS_LATE_MIN = 1000, /* late comers a round takes; more when more lanes had work at its beginning */
};

struct turns_settings {
    bool round_robin;      /* false: lanes in the order they came, each until it has no work */
    int64_t batch;         /* 1 to TURNS_BATCH_MAX */
    int64_t base_priority; /* 1 to TURNS_BASE_PRIORITY_MAX */
};

/* Lives inside the lane it stands for, and remembers while the lane has no work. */
struct turn {
    struct heap_node ready;  /* in turns.ready: may have a turn */
    struct heap_node parked; /* in turns.parked: has work, but not now */
    struct heap_node aside;  /* in turns.aside: has work, but others matter more */
    int64_t weight;
    int64_t round;  /* last served in; 0: never */
    int64_t credit; /* left of its share of that round */
    int64_t ahead;  /* how many of them before the ring, when it comes anew: what it left of the share before */
    uint64_t place; /* order among equals */
    uint64_t visit; /* the last one that was its own; 0: none */
    int64_t in_a_row;
    int64_t total;
    instant last_at;
};

struct turns {
    struct turns_settings settings;
    struct heap ready;  /* by round and priority, then place */
    struct heap parked; /* by the time they come back */
    struct heap aside;  /* by how little they matter */
    struct turn *holder; /* in the middle of its batch; NULL: nobody */
    int64_t round;       /* of the last service, or one that begins afresh */
    int64_t afresh;      /* the last round that did; 0: none */
    int64_t late, late_max; /* those who came after it had begun */
    uint64_t places;
    uint64_t visits;
};

void turns_init(struct turns *turns, const struct turns_settings *settings);
void turns_release(struct turns *turns);
/* Other settings from now on; every lane stays, and keeps what it has waited. */
void turns_configure(struct turns *turns, const struct turns_settings *settings);
/* Makes room for that many lanes in all. Once done, nothing below can fail. */
enum status turns_reserve(struct turns *turns, size_t lanes) MUST_CHECK;

/* A lane without work, never served. `weight` is 1 to TURNS_WEIGHT_MAX. */
void turn_init(struct turn *turn, int64_t weight);
/* Counts from its next round on. */
void turn_weigh(struct turn *turn, int64_t weight);

/* The lane has work now. One that had work before stays where it is, parked, aside or neither. */
void turns_add(struct turns *turns, struct turn *turn);
/* It has none any more; allowed at any moment, and when it had none. */
void turns_remove(struct turns *turns, struct turn *turn);

/* Who is next and how many it may take now: INT64_MAX while nobody else could. NULL when nobody may send. */
struct turn *turns_front(const struct turns *turns, int64_t *ret_max);
/* The round that the front stands in, which may be one that has not begun; 0 without rounds, or without a front. */
int64_t turns_front_round(const struct turns *turns);
/* The front sends `count`, at least 1 and no more than turns_front said. */
void turns_took(struct turns *turns, int64_t count, instant now);
/* `count` of what this lane took was not there to be sent. */
void turns_returned(struct turns *turns, struct turn *turn, int64_t count);

/* The lane has work but must not send before `until`; for one already parked this is the new time. */
void turns_park(struct turns *turns, struct turn *turn, instant until);
/* The same without a time, for one that others miss more than it does: it keeps its place also when its turn had begun. */
void turns_pass_over(struct turns *turns, struct turn *turn);
/* Ends it before its time; one that is not parked is left alone. */
void turns_unpark(struct turns *turns, struct turn *turn);
/* Brings back the next whose time has come, and says which; NULL: none is left. */
struct turn *turns_unpark_due(struct turns *turns, instant now);
/* When the next one comes back; INSTANT_NONE: none is parked. */
instant turns_next_due(const struct turns *turns);

/*
 * Those with work begin a round in which nobody has sent anything yet: in it they may go in any order, each for its share.
 * Who was about to have a turn may be last then, and so waits for up to two rounds over such a beginning. Nothing happens
 * before the last such round is over: however often it is begun, everybody is served in between.
 */
void turns_begin_afresh(struct turns *turns);
/* Whether that lane may go before others of its round, and nobody waits for longer than for one round of theirs. */
bool turns_may_overtake(const struct turns *turns, const struct turn *turn);

/* The lane, which is neither parked nor aside, has no turn until it is brought back. */
void turns_set_aside(struct turns *turns, struct turn *turn, int64_t class);
/* Brings back those of that class and of all below it. */
void turns_bring_back(struct turns *turns, int64_t class);
/* Only that one; one that is not aside is left alone. */
void turns_bring_back_one(struct turns *turns, struct turn *turn);
/* The lowest class of those that are aside; INT64_MAX: none is. */
int64_t turns_aside_class(const struct turns *turns);

/* Lanes with work, those parked or aside too. */
size_t turns_count(const struct turns *turns);

/* Those that may have a turn, in no order: NULL at the end. */
struct turn *turns_at(const struct turns *turns, size_t index);
/* Likewise those that are aside. */
struct turn *turns_aside_at(const struct turns *turns, size_t index);
/* What the lane may send in one round. */
int64_t turns_share(const struct turns *turns, const struct turn *turn);

/* max(1, base - rounds): what a lane's priority is after so many rounds without service. */
int64_t turns_priority(int64_t base_priority, int64_t rounds);

/* The e-mail document's fairness figures of one tenant. */
struct turn_figures {
    instant last_at;        /* lastProcessedAt; INSTANT_NONE: never */
    int64_t rounds_without; /* roundsWithoutProcessing: whole rounds since; of one never served, all rounds */
    int64_t priority;       /* currentPriority */
    int64_t total;          /* totalProcessed */
    int64_t in_a_row;       /* consecutiveBatchCount: 1 to batch, then anew; 0 when another was served since */
};
struct turn_figures turn_figures(const struct turns *turns, const struct turn *turn);

#endif
