/*
 * ahead.h - claims made while every slot is taken, where sends are as quick as commits.
 */
#ifndef ENGINE_ATTEMPT_AHEAD_H
#define ENGINE_ATTEMPT_AHEAD_H

#include "base/instant.h"
#include <stddef.h>

struct attempt;
struct dest;
struct engine;
struct lane_state;

/* Of the engine. */
struct ahead {
    instant from;  /* nothing is claimed ahead before */
    int64_t count; /* jobs that wait for a free slot, of all destinations */
};

void ahead_note_commit(struct engine *engine, int64_t ms);
void ahead_note_answer(struct dest *dest, int64_t ms, size_t payload);
/* An attempt was found that an earlier process did not survive. */
void ahead_note_death(struct engine *engine);
/* How many may be claimed for it at once although no slot is free; and how many more may now. */
int64_t ahead_worth(const struct engine *engine, const struct dest *dest);
int64_t ahead_room(const struct engine *engine, const struct dest *dest, instant now);
void ahead_add(struct lane_state *lane, struct attempt *attempt, instant now);
/* What was added for the lane so far is sent in a row. */
void ahead_end_turn(struct lane_state *lane);
/* Sends those that find a free slot now, and gives them all back when the destination is held. */
void ahead_send(struct engine *engine, struct dest *dest);

#endif
