/*
 * return_order.h - which work goes first on the way back from an outage.
 */
#ifndef ENGINE_QUEUES_RETURN_ORDER_H
#define ENGINE_QUEUES_RETURN_ORDER_H

#include "core/decision/job.h"
#include "core/fairness/turns.h"
#include "engine/questions.h"

struct dest;
struct engine;
struct lane_state;

/* Which work goes first on the way back from an outage. */
enum return_class {
    RETURN_UNKNOWN, /* of a lane: not looked at; of a destination: it is not on its way back */
    RETURN_CRITICAL,
    RETURN_HIGH,
    RETURN_HELD, /* it was there before the way back began */
    RETURN_NEW,
};

enum { LOOK_LANES_MAX = 64 }; /* that are looked at together */

/* The question for the classes of lanes. While it is out, those that are to be looked at next gather. */
struct order_look {
    struct question question; /* first */
    struct lane_state *wanted[LOOK_LANES_MAX];
    size_t wanted_count;
    struct looked_lane {
        struct lane_state *lane; /* which is not forgotten meanwhile */
        int64_t id, claiming;    /* as it was asked */
        enum return_class class;
        int64_t count; /* of jobs of that class, with those being claimed */
    } lanes[LOOK_LANES_MAX];
    size_t count;
    int64_t ranks[RETURN_NEW]; /* that work of each class has at least */
};

/* Of a destination. */
struct return_order {
    enum return_class class; /* that goes now, */
    int64_t round;           /* of the turns */
    int64_t looks;           /* left for now */
    instant looked_at;       /* at all, where classes count across tenants, */
    bool returning;          /* and whether it was on its way back then, */
    int64_t aging_ms;        /* and by which aging it was */
    struct order_look look;
};

/* Of a lane. */
struct lane_order {
    enum return_class class;
    int64_t left; /* jobs of that class, as far as they were counted; INT64_MAX: all */
    bool asked;   /* the store is asked for it, or will be; */
    bool stale;   /* what it says will be of before, and does not count; */
    bool more;    /* more has come since, and is asked for next */
};

/* Before the destination's claims of this run. */
void return_order_begin(struct engine *engine, struct dest *dest);
/*
 * As turns_front, but on the way back from an outage what matters more goes first. NULL also while the store is asked whose
 * work that is.
 */
struct turn *dest_front(struct engine *engine, struct dest *dest, int64_t *ret_max);
/* Whether classes count across tenants. */
bool dest_by_class(const struct dest *dest);
/* As turns_front, whatever the class. */
struct turn *dest_front_of_all(struct dest *dest, int64_t *ret_max);
/* `count` jobs of the lane are being claimed. */
void return_order_took(struct lane_state *lane, int64_t count);
/* That claim is back, with jobs or without. */
void return_order_claimed(struct lane_state *lane, int64_t count);
/* The lane has its turns again. */
void return_order_back(struct lane_state *lane);
/* The lane has more jobs. */
void return_order_added(struct engine *engine, struct lane_state *lane);

#endif
