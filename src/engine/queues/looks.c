/*
 * Who is sent to see whether a destination is back.
 *
 * Looks are no turns: there is one now and then, and it is to find out as much as it can. So it is a job of the tenant that
 * looked longest ago, and in its lane one that has not failed in this outage, by rank, or else the one that did longest
 * ago (op_claim). Where all that are due have failed already, looks come less often: a lane is asked for one that has
 * not, and when it has none it is left alone until it gets more work, or until it is time for the others.
 *
 * All lanes are gone through for a look. There is one an interval at most, and intervals are seconds at least.
 */
#include "engine/loop.h"
#include "engine/queues/looks.h"

#include <assert.h>

/* Whether it has a job that may go now, for all that is known. */
static bool may_look(struct lane_state *lane, bool takes_used, instant now)
{
    return lane->ready > 0 && !lane->hold.held && !lane_dead_full(lane) && !lane_asked(lane, now) &&
           (takes_used || !lane->all_failed) && rate_ask(&lane->rate.limiter, now, 1).room > 0;
}

/* Of a destination that refuses us, one that it has not refused knows more; of its second address that is not known. */
static bool looks_before(const struct lane_state *lane, const struct lane_state *other, bool second)
{
    assert(lane->dest == other->dest);
    bool refused = lane->block.in_a_row > 0, other_refused = other->block.in_a_row > 0;
    if (!second && block_holds(&lane->dest->gate.block) && refused != other_refused)
        return other_refused;
    return lane->looked_at[second] < other->looked_at[second];
}

/* A job that failed in the first address's outage may well go to the second. */
static bool takes_used_ones(const struct dest *dest, const struct gate *gate, instant now)
{
    return gate == &dest->fallback || gate_takes_used(gate, now);
}

struct lane_state *look_next(const struct dest *dest, const struct gate *gate, instant now)
{
    struct lane_state *next = NULL;
    bool second = gate == &dest->fallback, takes_used = takes_used_ones(dest, gate, now);
    for (struct lane_state *lane = dest->queue.first; lane; lane = lane->next)
        if (may_look(lane, takes_used, now) && (!next || looks_before(lane, next, second)))
            next = lane;
    return next;
}

void look_take(struct lane_state *lane, const struct gate *gate, struct op_claim *claim, instant now)
{
    bool second = gate == &lane->dest->fallback;
    assert(lane->ready > 0 && (second || gate == &lane->dest->gate));
    claim->max = 1;
    claim->failed_last = lane_failed_last(lane, gate);
    claim->unfailed_only = !takes_used_ones(lane->dest, gate, now);
    lane->looked_at[second] = now;
    lane_take(lane, second ? SIDE_FALLBACK : SIDE_FIRST, 1, false, now);
}

void look_claimed(struct lane_state *lane, const struct op_claim *claim)
{
    assert(claim->ret_count <= claim->max);
    if (claim->unfailed_only && claim->ret_count == 0)
        lane->all_failed = true;
}

instant lane_failed_last(const struct lane_state *lane, const struct gate *gate)
{
    assert(gate == &lane->dest->gate || gate == &lane->dest->fallback);
    if (block_holds(&gate->block) || block_holds(&lane->block))
        return 1; /* a job that was refused, whenever that was, knows nothing new */
    return gate == &lane->dest->gate && outage_lasts(&gate->outage) ? gate->outage.since : 0;
}
