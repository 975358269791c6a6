/*
 * restore.h - what the store has of destinations, from when another process or node had them.
 *
 * It is read somewhere, in pieces, and put into the engine in its loop: the lanes with their counts, the state of the gate
 * and its incident, rates, what pull workers hold, alerts, counts of unknown errors. Of one destination or of all.
 */
#ifndef ENGINE_RESTORE_H
#define ENGINE_RESTORE_H

#include "engine/questions.h"

struct engine;

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
    int phase;         /* of reading, */
    int64_t cursor;    /* and where the next piece of that begins */
    struct restored_state *states;
    size_t state_count, state_capacity;
    struct lane *lanes; /* by id */
    size_t lane_count, lane_capacity;
    struct restored_notes rates, alerts, ages, acked, errors;
    struct slice last_cleared; /* alert, by id; .data NULL: none */
    struct job *running;
    size_t running_count, running_capacity;
};

/* As question_read. */
enum status restore_read(struct store_read *read, struct store_reader *reader, struct error *err) MUST_CHECK;
/* Puts it in. The destinations of it that are known are configured already. */
enum status restore_apply(struct engine *engine, const struct restored *restored, struct error *err) MUST_CHECK;

#endif
