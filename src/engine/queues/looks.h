/*
 * looks.h - whose job is sent to see how a destination is.
 */
#ifndef ENGINE_QUEUES_LOOKS_H
#define ENGINE_QUEUES_LOOKS_H

#include "store/store.h"

struct dest;
struct engine;
struct gate;
struct lane_state;

/* Whose job is sent to see how the destination is, through one of its gates; NULL: there is none that may. */
struct lane_state *look_next(const struct dest *dest, const struct gate *gate, instant now);
/* One of its jobs is being claimed for that: fills in which. */
void look_take(struct lane_state *lane, const struct gate *gate, struct op_claim *claim, instant now);
/* That claim is back. */
void look_claimed(struct lane_state *lane, const struct op_claim *claim);
/* op_claim.failed_last of what goes through that gate of its destination's. */
instant lane_failed_last(const struct lane_state *lane, const struct gate *gate);

#endif
