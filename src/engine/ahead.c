/*
 * Claims made while every slot is taken: a slot that becomes free need not wait until the store has written the next
 * claim down.
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
#include "engine/engine_private.h"

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
    average_note(&engine->commit_ms, ms);
}

void ahead_note_answer(struct dest *dest, int64_t ms, size_t payload)
{
    average_note(&dest->answer_ms, ms);
    average_note(&dest->payload_bytes, (int64_t)payload);
}

void ahead_note_death(struct engine *engine)
{
    engine->ahead_from = instant_add(engine_now(engine), AHEAD_AFTER_DEATH_MS);
}

/* As many as a destination can be sent while a claim is under way, as far as the memory for them is bearable. */
static int64_t ahead_worth(const struct engine *engine, const struct dest *dest)
{
    int64_t slots = dest->gate.adaptive.limit < dest->gate.concurrency ? dest->gate.adaptive.limit : dest->gate.concurrency;
    double answer_ms = dest->answer_ms > 0.5 ? dest->answer_ms : 0.5; /* whole milliseconds are measured */
    double worth = COMMITS_AHEAD * (double)slots * engine->commit_ms / answer_ms;
    double bearable = AHEAD_BYTES_MAX / (dest->payload_bytes + 1);
    double most = worth < bearable ? worth : bearable;
    return most < AHEAD_MAX ? (int64_t)most : AHEAD_MAX;
}

int64_t ahead_room(const struct engine *engine, const struct dest *dest, instant now)
{
    if (now < engine->ahead_from || dest->config->policy.in_doubt != DOUBT_RESEND || dest->rate.rate.count > 0 ||
        !gate_flows(&dest->gate, now))
        return 0;
    int64_t room = ahead_worth(engine, dest) - dest->ahead_asked - dest->ahead_count;
    return room > 0 ? room : 0;
}

/* The ring is known by its last lane: after it comes the one whose turn it is. */
static void ring_add(struct dest *dest, struct lane_state *lane)
{
    struct lane_state *last = dest->ahead_last;
    lane->ahead_next = last ? last->ahead_next : lane;
    if (last)
        last->ahead_next = lane;
    dest->ahead_last = lane;
}

static void ring_remove_front(struct dest *dest)
{
    struct lane_state *front = dest->ahead_last->ahead_next;
    dest->ahead_last->ahead_next = front->ahead_next;
    if (front == dest->ahead_last)
        dest->ahead_last = NULL;
}

void ahead_add(struct lane_state *lane, struct attempt *attempt, instant now)
{
    attempt->next_ahead = NULL;
    attempt->ahead_until = instant_add(now, AHEAD_WAIT_MS);
    if (!lane->ahead_first) {
        ring_add(lane->dest, lane);
        lane->ahead_in_turn = 0;
    }
    /* A lane that was alone claimed as much as it liked; it may not be alone any more when that is sent. */
    attempt->ends_turn = ++lane->ahead_in_turn >= lane->dest->turns.settings.batch;
    if (attempt->ends_turn)
        lane->ahead_in_turn = 0;
    *(lane->ahead_first ? &lane->ahead_end->next_ahead : &lane->ahead_first) = attempt;
    lane->ahead_end = attempt;
    lane->dest->ahead_count++;
    attempt->engine->ahead_count++;
}

void ahead_end_turn(struct lane_state *lane)
{
    if (lane->ahead_first)
        lane->ahead_end->ends_turn = true;
    lane->ahead_in_turn = 0;
}

static struct attempt *take_front(struct dest *dest)
{
    struct lane_state *lane = dest->ahead_last->ahead_next;
    struct attempt *attempt = lane->ahead_first;
    lane->ahead_first = attempt->next_ahead;
    dest->ahead_count--;
    attempt->engine->ahead_count--;
    if (!lane->ahead_first)
        ring_remove_front(dest);
    else if (attempt->ends_turn)
        dest->ahead_last = lane;
    return attempt;
}

static const char no_slot[] = "no slot became free";

/* Whether the one in front waits on; else *ret_why says why it is not sent at all, or is NULL. */
static bool front_waits(const struct engine *engine, const struct dest *dest, instant now, const char **ret_why)
{
    const struct lane_state *lane = dest->ahead_last->ahead_next;
    const struct attempt *front = lane->ahead_first;
    *ret_why = why_unsendable(engine, lane);
    if (!*ret_why && dest_dead_full(dest))
        *ret_why = "the destination's dead letters are full";
    if (*ret_why)
        return false;
    struct gate_answer answer = gate_ask(&dest->gate, now);
    if (answer.room > 0)
        return false;
    /* A clock that was put back makes it wait for longer than that: it is not worth a thought. */
    if (answer.hold == HOLD_CONCURRENCY && now < front->ahead_until)
        return true;
    *ret_why = answer.hold == HOLD_CONCURRENCY ? no_slot : "the destination is held";
    return false;
}

void ahead_send(struct engine *engine, struct dest *dest)
{
    instant now = engine_now(engine);
    const char *why;
    while (dest->ahead_last && !front_waits(engine, dest, now, &why)) {
        struct attempt *attempt = take_front(dest);
        if (why == no_slot)
            average_note(&dest->answer_ms, AHEAD_WAIT_MS); /* no answer came that could tell how slow it has become */
        if (why) {
            attempt_release(attempt, why);
        } else {
            attempt->gate = &dest->gate;
            attempt->pass = gate_take(&dest->gate, 1, now);
            dest_cycle_selected(dest, attempt->gate, attempt->pass, &attempt->job, 1, now); /* a reload brought cycles */
            attempt_send(attempt);
        }
    }
}
