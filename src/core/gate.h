/*
 * gate.h - may this destination be sent to now, and if not, why and until when.
 *
 * The same answer stops the dispatcher and is printed by `why`.
 */
#ifndef CORE_GATE_H
#define CORE_GATE_H

#include "base/instant.h"

enum gate_hold {
    HOLD_NONE,
    HOLD_PAUSED,      /* by an operator, or blocked by its credentials */
    HOLD_THROTTLE,    /* the destination asked for a pause */
    HOLD_CONCURRENCY, /* as many as allowed are under way */
};

struct gate {
    int64_t concurrency; /* limit */
    int64_t under_way;   /* claimed or being sent */
    bool paused;
    instant closed_until; /* by a throttle; INSTANT_NONE: open */
};

struct gate_answer {
    int64_t room; /* how many may go now; 0 when held */
    enum gate_hold hold;
    instant until; /* when to ask again; INSTANT_NONE: when something changes */
};

struct gate_answer gate_ask(const struct gate *gate, instant now);
/* The destination wants no request before `until`; an earlier wish never shortens a later one. */
void gate_close_until(struct gate *gate, instant until);

/* "paused", "throttle"...: the word of `held_by`; NULL for HOLD_NONE. */
const char *gate_hold_name(enum gate_hold hold);

#endif
