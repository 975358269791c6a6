/*
 * restore.h - what the store has of destinations, from when another process or node had them.
 *
 * It is read somewhere, in pieces, and put into the engine in its loop: the lanes with their counts, the state of the gate
 * and its incident, rates, what pull workers hold, alerts, counts of unknown errors. Of one destination or of all. What
 * there is much of where a destination has many tenants is put in bit by bit, since everybody else's sends go through the
 * same loop; the rest counts from the moment on that the destination is sent to, and is put in then.
 */
#ifndef ENGINE_RESTORE_H
#define ENGINE_RESTORE_H

#include "engine/questions.h"

struct engine;

enum { RESTORE_AT_ONCE = 500 }; /* lanes, rates, leases or errors: a millisecond or two */

/* Notes of one space, in the order they were read. */
struct restored_notes {
    struct saved *items;
    size_t count, capacity;
};

/* A destination's state, and what else its restoring needs. */
struct restored_state {
    struct slice name, text;
    struct slice incident; /* the record of the one that is not over; .data NULL: none */
    struct lane *held;     /* lanes of tenants that are held for themselves */
    size_t held_count;
};

struct restored {
    struct question question; /* first */
    struct slice only; /* that destination; empty: what is of no destination; .data NULL: everything */
    /* Of the thread that reads, until it is answered. */
    int phase;         /* of reading, */
    int64_t cursor;    /* and where the next piece of that begins */
    struct restored_state *states;
    size_t state_count, state_capacity;
    struct lane *lanes; /* by id */
    size_t lane_count, lane_capacity;
    struct restored_notes rates, alerts, ages, acked, errors, history, days;
    struct slice last_cleared; /* alert, by id; .data NULL: none */
    struct job *running;
    size_t running_count, running_capacity;
    /* Of the engine's thread. */
    struct arena memory; /* of all that, from when it is read; its owner's to release */
    int part;     /* of what is put in bit by bit, */
    size_t put;   /* and so many of it are */
    bool putting; /* right now */
};

/* As question_read. */
enum status restore_read(struct store_read *read, struct store_reader *reader, struct error *err) MUST_CHECK;
/* Those are known that left an outage behind, although they have neither a configuration nor jobs. STATUS_NO_MEMORY. */
enum status restore_known(struct engine *engine, const struct restored *restored, struct error *err) MUST_CHECK;
/* Puts in `max` at most; STATUS_NO_MEMORY. And whether that was all which is put in bit by bit. */
enum status restore_put(struct engine *engine, struct restored *restored, size_t max, struct error *err) MUST_CHECK;
bool restore_is_put(const struct restored *restored);
/* Puts in the rest. The destinations of it that are known are configured by now. STATUS_NO_MEMORY. */
enum status restore_finish(struct engine *engine, const struct restored *restored, struct error *err) MUST_CHECK;

#endif
