/*
 * lane_holds.h - tenants that are held for themselves.
 */
#ifndef ENGINE_QUEUES_LANE_HOLDS_H
#define ENGINE_QUEUES_LANE_HOLDS_H

#include "base/json.h"
#include "base/instant.h"
#include <jansson.h>

struct dest;
struct engine;
struct gate;
struct job;
struct lane_state;
struct restored_state;

/* Of a destination. */
struct lane_holds {
    struct lane_state *first;
    size_t count;
    int64_t asked_lane;  /* the last that was asked to wait, */
    instant asked_until; /* and until when; */
    bool asked_alone;    /* nobody else had work then */
};

/* Of a lane. */
struct lane_held {
    bool held; /* the rest is about that */
    char *reason;
    instant since;
    struct lane_state *next; /* of those of its destination */
};

/* An answer asked for a pause: it is that tenant's, and the destination's too once a second one was asked so. */
void dest_asked(struct engine *engine, struct dest *dest, struct gate *gate, const struct job *job, int64_t asked_ms);
/* An operator knows better. */
void dest_ask_no_more(struct engine *engine, struct dest *dest);
/* That lane has work. */
void dest_not_alone(struct engine *engine, struct lane_state *newcomer);
/* Puts it among the held lanes of its destination, which has room for it, and takes it out. */
void lane_hold_begin(struct lane_state *lane, struct slice reason, instant since);
void lane_hold_end(struct lane_state *lane);
bool lane_held_by_hand(const struct lane_state *lane);
/* What is saved of held tenants: a member of the state, and back. The lanes are known already. */
void lane_holds_write(struct json_writer *json, const struct dest *dest);
void lane_holds_read(struct engine *engine, struct dest *dest, const json_t *root, const struct restored_state *state);

#endif
