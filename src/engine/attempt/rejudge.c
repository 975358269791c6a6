/*
 * Claims that the destination changed under.
 *
 * A job is claimed when the gate lets it, and sent when the store has written that down. In between the configuration may
 * have been loaded anew, the breaker may have opened, an outage may have been noticed or the ramp may have gone a step back:
 * what was allowed then may not be now. So whoever holds a pass of an earlier state gives it back and asks for one of
 * the present state; without one the job is given back untouched, and no attempt counts.
 *
 * Rates are not asked again: they were paid when the job was claimed, and whoever is given back has paid in vain. At most
 * what was claimed when a lower rate was loaded goes beyond that, once.
 */
#include "engine/loop.h"
#include "engine/outage/cycles.h"
#include "engine/outage/modes.h"

bool attempt_may_go(struct attempt *attempt)
{
    struct dest *dest = attempt->dest;
    struct gate *gate = attempt->gate;
    instant now = engine_now(attempt->engine);
    bool diverted = gate == &dest->fallback && !dest_uses_fallback(dest); /* the first address is back, or the second gone */
    if (!diverted && gate_pass_stands(gate, attempt->pass, now))
        return true;
    gate_give_back(gate, attempt->pass, 1);
    dest_cycle_answered(dest, gate, attempt->pass, NULL, now);
    if (diverted || gate_ask(gate, now).room == 0) {
        attempt->gate = NULL;
        return false;
    }
    attempt->pass = gate_take(gate, 1, now);
    dest_cycle_selected(dest, gate, attempt->pass, &attempt->job, 1, now);
    return true;
}
