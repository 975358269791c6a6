/*
 * Claims made while every slot is taken (a prefetch): a slot that becomes free need not wait until the store has written the
 * next claim down.
 *
 * That is worth it only where sends are about as quick as commits, so how many are claimed ahead follows from both:
 * as many as can be sent while a claim is under way. Where a send takes a second it is none, and whose turn it is and
 * which job is urgent are decided as late as possible. Nothing waits here for longer than a second.
 *
 * What is claimed when the process dies counts as sent and in doubt. So it is done only where a job may be sent twice,
 * and not soon after such a death: a job that kills its sender should not take hundreds of others along.
 *
 * The lanes keep taking turns: what one claim brought is sent in a row, up to a batch of the turns, then the next lane has
 * its turn. So a lane that comes later does not wait until everything claimed before is sent.
 */
#include "engine/loop.h"
#include "engine/outage/cycles.h"

#include <assert.h>

enum {
    AHEAD_MAX = 256,
    AHEAD_BYTES_MAX = 8 << 20, /* of payloads */
    AHEAD_WAIT_MS = 1000,
    AHEAD_AFTER_DEATH_MS = MINUTE_MS,
    AVERAGE_OF = 8,
    COMMITS_AHEAD = 4, /* a claim waits for the commit before its own, and they come in bursts */
};

static void average_note(double *average, int64_t value)
{
    *average += ((double)(value > 0 ? value : 0) - *average) / AVERAGE_OF;
}

void ahead_note_commit(struct engine *engine, int64_t ms)
{
    average_note(&engine->out.commit_ms, ms < AHEAD_WAIT_MS ? ms : AHEAD_WAIT_MS); /* a store that was away is not slow */
}

void ahead_note_answer(struct dest *dest, int64_t ms, size_t payload)
{
    average_note(&dest->ahead.answer_ms, ms);
    average_note(&dest->ahead.payload_bytes, (int64_t)payload);
}

void ahead_note_death(struct engine *engine)
{
    engine->ahead.from = instant_add(engine_now(engine), AHEAD_AFTER_DEATH_MS);
}

/* As many as a destination can be sent while a claim is under way, as far as the memory for them is bearable. */
int64_t ahead_worth(const struct engine *engine, const struct dest *dest)
{
    int64_t slots = gate_slots(&dest->gate);
    double answer_ms = dest->ahead.answer_ms > 0.5 ? dest->ahead.answer_ms : 0.5; /* whole milliseconds are measured */
    double worth = COMMITS_AHEAD * (double)slots * engine->out.commit_ms / answer_ms;
    double bearable = AHEAD_BYTES_MAX / (dest->ahead.payload_bytes + 1);
    double most = worth < bearable ? worth : bearable;
    assert(most >= 0);
    return most < AHEAD_MAX ? (int64_t)most : AHEAD_MAX;
}

int64_t ahead_room(const struct engine *engine, const struct dest *dest, instant now)
{
    if (now < engine->ahead.from || dest->config->policy.in_doubt != DOUBT_RESEND || dest->rate.limiter.rate.count > 0 ||
        !gate_flows(&dest->gate, now))
        return 0;
    int64_t room = ahead_worth(engine, dest) - dest->ahead.asked - dest->ahead.count;
    assert(dest->ahead.asked >= 0 && dest->ahead.count >= 0);
    return room > 0 ? room : 0;
}

/* The ring is known by its last lane: after it comes the one whose turn it is. */
static void ring_add(struct dest *dest, struct lane_state *lane)
{
    struct lane_state *last = dest->ahead.last;
    lane->ahead.next = last ? last->ahead.next : lane;
    if (last)
        last->ahead.next = lane;
    dest->ahead.last = lane;
    assert(dest->ahead.last == lane && lane->ahead.next);
}

static void ring_remove_after(struct dest *dest, struct lane_state *before)
{
    struct lane_state *lane = before->ahead.next;
    assert(lane->dest == dest && before->dest == dest);
    before->ahead.next = lane->ahead.next;
    if (lane == dest->ahead.last)
        dest->ahead.last = lane == before ? NULL : before;
}

void ahead_add(struct lane_state *lane, struct attempt *attempt, instant now)
{
    assert(attempt->lane == lane && attempt->side == SIDE_AHEAD && !attempt->gate && !attempt->sending);
    attempt->next_ahead = NULL;
    attempt->ahead_until = instant_add(now, AHEAD_WAIT_MS);
    if (!lane->ahead.first) {
        ring_add(lane->dest, lane);
        lane->ahead.in_turn = 0;
    }
    /* A lane that was alone claimed as much as it liked; it may not be alone any more when that is sent. */
    attempt->ends_turn = ++lane->ahead.in_turn >= lane->dest->queue.turns.settings.batch;
    if (attempt->ends_turn)
        lane->ahead.in_turn = 0;
    *(lane->ahead.first ? &lane->ahead.end->next_ahead : &lane->ahead.first) = attempt;
    lane->ahead.end = attempt;
    lane->dest->ahead.count++;
    attempt->engine->ahead.count++;
}

void ahead_end_turn(struct lane_state *lane)
{
    if (lane->ahead.first)
        lane->ahead.end->ends_turn = true;
    lane->ahead.in_turn = 0;
}

/* The first job of the lane after `before`. */
static struct attempt *take_after(struct dest *dest, struct lane_state *before)
{
    struct lane_state *lane = before->ahead.next;
    struct attempt *attempt = lane->ahead.first;
    assert(attempt && dest->ahead.count > 0 && attempt->engine->ahead.count >= dest->ahead.count);
    lane->ahead.first = attempt->next_ahead;
    dest->ahead.count--;
    attempt->engine->ahead.count--;
    if (!lane->ahead.first || attempt->ends_turn)
        ring_remove_after(dest, before);
    if (lane->ahead.first && attempt->ends_turn)
        ring_add(dest, lane);
    return attempt;
}

static const char no_slot[] = "no slot became free";

/* Whether the lane waits on; else *ret_why says why its next job is not sent at all, or is NULL. */
static bool lane_waits(const struct engine *engine, struct lane_state *lane, const struct gate_answer *answer, instant now,
                       const char **ret_why)
{
    assert(lane->ahead.first);
    struct dest *dest = lane->dest;
    *ret_why = why_unsendable(engine, lane);
    if (!*ret_why && lane->hold.held)
        *ret_why = "the tenant is held";
    if (!*ret_why && dest_dead_full(dest))
        *ret_why = "the destination's dead letters are full";
    if (!*ret_why && lane_dead_full(lane))
        *ret_why = "the tenant's dead letters are full";
    bool has_share = !dest_shares(dest, SIDE_FIRST) || shares_ask(&dest->queue.shares, SIDE_FIRST, &lane->share) > 0;
    if (*ret_why || (answer->room > 0 && has_share))
        return false;
    bool for_a_slot = answer->room > 0 || answer->hold == HOLD_CONCURRENCY;
    /* A clock that was put back makes it wait for longer than that: it is not worth a thought. */
    if (for_a_slot && now < lane->ahead.first->ahead_until)
        return true;
    *ret_why = for_a_slot ? no_slot : "the destination is held";
    return false;
}

/* The lane before the one that goes next, as lane_waits says of it; NULL: all wait. Without room one stands for all. */
static struct lane_state *before_next(const struct engine *engine, struct dest *dest, instant now, const char **ret_why)
{
    assert(dest->ahead.last);
    struct gate_answer answer = gate_ask(&dest->gate, now);
    struct lane_state *before = dest->ahead.last;
    do {
        if (!lane_waits(engine, before->ahead.next, &answer, now, ret_why))
            return before;
        before = before->ahead.next;
    } while (answer.room > 0 && before != dest->ahead.last);
    return NULL;
}

void ahead_send(struct engine *engine, struct dest *dest)
{
    instant now = engine_now(engine);
    const char *why;
    struct lane_state *before;
    if (dest->ahead.last)
        dest_share_out(dest, SIDE_FIRST, gate_slots(&dest->gate), now);
    while (dest->ahead.last && (before = before_next(engine, dest, now, &why))) {
        struct attempt *attempt = take_after(dest, before);
        if (why == no_slot)
            average_note(&dest->ahead.answer_ms, AHEAD_WAIT_MS); /* no answer came that could tell how slow it has become */
        if (why) {
            attempt_release(attempt, why);
        } else {
            assert(attempt->side == SIDE_AHEAD && !attempt->gate);
            shares_give_back(&dest->queue.shares, SIDE_AHEAD, &attempt->lane->share, 1, now);
            shares_take(&dest->queue.shares, SIDE_FIRST, &attempt->lane->share, 1);
            attempt->side = SIDE_FIRST;
            attempt->gate = &dest->gate;
            attempt->pass = gate_take(&dest->gate, 1, now);
            dest_cycle_selected(dest, attempt->gate, attempt->pass, &attempt->job, 1, now); /* a reload brought cycles */
            attempt_send(attempt);
        }
    }
    assert((dest->ahead.last == NULL) == (dest->ahead.count == 0));
}
