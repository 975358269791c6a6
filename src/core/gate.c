#include "core/gate.h"

#include <assert.h>

struct gate_answer gate_ask(const struct gate *gate, instant now)
{
    assert(gate->under_way >= 0 && gate->concurrency > 0);
    if (gate->paused)
        return (struct gate_answer){ .hold = HOLD_PAUSED, .until = INSTANT_NONE };
    if (gate->closed_until != INSTANT_NONE && gate->closed_until > now)
        return (struct gate_answer){ .hold = HOLD_THROTTLE, .until = gate->closed_until };
    if (gate->under_way >= gate->concurrency)
        return (struct gate_answer){ .hold = HOLD_CONCURRENCY, .until = INSTANT_NONE };
    return (struct gate_answer){ .room = gate->concurrency - gate->under_way, .until = INSTANT_NONE };
}

void gate_close_until(struct gate *gate, instant until)
{
    if (gate->closed_until == INSTANT_NONE || until > gate->closed_until)
        gate->closed_until = until;
}

const char *gate_hold_name(enum gate_hold hold)
{
    static const char *const names[] = {
        [HOLD_NONE] = NULL,
        [HOLD_PAUSED] = "paused",
        [HOLD_THROTTLE] = "throttle",
        [HOLD_CONCURRENCY] = "concurrency",
    };
    assert(hold <= HOLD_CONCURRENCY);
    return names[hold];
}
