#include "core/decision/job.h"

#include <assert.h>

/* Row: state. Column: event. An empty cell is STATE_NONE: refuse it. */
static const enum job_state transition[STATE_COUNT][EVENT_COUNT] = {
    [STATE_PENDING] = { [EVENT_CLAIM] = STATE_RUNNING, [EVENT_CANCEL] = STATE_CANCELLED, [EVENT_EXPIRE] = STATE_DEAD,
                        [EVENT_UNDO] = STATE_DEAD },
    [STATE_RUNNING] = { [EVENT_DELIVER] = STATE_COMPLETED, [EVENT_RETRY] = STATE_WAITING, [EVENT_RELEASE] = STATE_WAITING,
                        [EVENT_GIVE_UP] = STATE_DEAD, [EVENT_EXPIRE] = STATE_DEAD },
    [STATE_WAITING] = { [EVENT_CLAIM] = STATE_RUNNING, [EVENT_CANCEL] = STATE_CANCELLED, [EVENT_EXPIRE] = STATE_DEAD,
                        [EVENT_REDRIVE] = STATE_PENDING, [EVENT_UNDO] = STATE_DEAD },
    [STATE_DEAD] = { [EVENT_REDRIVE] = STATE_PENDING },
    [STATE_COMPLETED] = { [EVENT_RESEND] = STATE_PENDING },
};

static const char *const state_names[STATE_COUNT] = {
    [STATE_NONE] = "none",       [STATE_PENDING] = "pending",     [STATE_RUNNING] = "running",
    [STATE_WAITING] = "waiting", [STATE_COMPLETED] = "completed", [STATE_DEAD] = "dead",
    [STATE_CANCELLED] = "cancelled",
};

static const char *const priority_names[PRIORITY_COUNT] = {
    [PRIORITY_CRITICAL] = "critical",
    [PRIORITY_HIGH] = "high",
    [PRIORITY_NORMAL] = "normal",
};

enum job_state job_state_after(enum job_state state, enum job_event event)
{
    assert(state > STATE_NONE && state < STATE_COUNT);
    assert(event >= EVENT_CLAIM && event < EVENT_COUNT);
    return transition[state][event];
}

const char *job_state_name(enum job_state state)
{
    assert(state >= STATE_NONE && state < STATE_COUNT);
    return state_names[state];
}

enum job_state job_state_from_name(struct slice name)
{
    size_t i = slice_index(name, state_names, STATE_COUNT);
    return i < STATE_COUNT ? (enum job_state)i : STATE_NONE;
}

const char *priority_name(enum priority priority)
{
    assert(priority < PRIORITY_COUNT);
    return priority_names[priority];
}

bool priority_from_name(struct slice name, enum priority *ret_priority)
{
    for (int i = 0; i < PRIORITY_COUNT; i++) {
        bool number = name.len == 1 && name.data[0] == '1' + i;
        if (number || slice_equal_nocase(name, slice_from(priority_names[i]))) {
            *ret_priority = (enum priority)i;
            return true;
        }
    }
    return false;
}

/* ---- rank ---- */

int64_t rank_of(enum priority priority, instant since, int64_t aging_ms)
{
    assert(aging_ms >= 0);
    return since + (int64_t)priority * aging_ms;
}

int64_t rank_heed_deadline(int64_t rank, instant since, instant deadline, int64_t lead_ms)
{
    assert(lead_ms >= 0 && rank >= since);
    if (deadline == INSTANT_NONE || deadline <= since)
        return rank; /* passed: it expires, and is not to hurry before that */
    int64_t half = (deadline - since) / 2;
    int64_t urgent_at = deadline - (lead_ms < half ? lead_ms : half);
    return urgent_at < rank ? urgent_at : rank;
}
