/*
 * job.h - the states of a job, and which changes of state are legal.
 *
 * One table holds the transitions; everything else asks it.
 */
#ifndef CORE_DECISION_JOB_H
#define CORE_DECISION_JOB_H

#include "base/instant.h"
#include "base/slice.h"

enum job_state {
    STATE_NONE = 0,
    STATE_PENDING,   /* never tried in this generation, or due again by hand */
    STATE_RUNNING,   /* leased: an attempt is under way */
    STATE_WAITING,   /* tried, and to be tried, verified or polled again at its time */
    STATE_COMPLETED, /* final */
    STATE_DEAD,      /* a dead letter; only a redrive brings it back */
    STATE_CANCELLED, /* final */
    STATE_COUNT
};

enum job_event {
    EVENT_CLAIM,   /* a lease is taken */
    EVENT_DELIVER, /* the destination has it */
    EVENT_RETRY,   /* another try later */
    EVENT_RELEASE, /* given back untried: shutdown, a hold */
    EVENT_GIVE_UP, /* no more tries */
    EVENT_EXPIRE,  /* deadline or time to live passed */
    EVENT_CANCEL,
    EVENT_REDRIVE,
    EVENT_RESEND, /* once more, although it was delivered */
    EVENT_UNDO,   /* a redrive is taken back before it was tried */
    EVENT_COUNT
};

/* The state after `event`, STATE_NONE when it is not legal. */
enum job_state job_state_after(enum job_state state, enum job_event event);

const char *job_state_name(enum job_state state);
/* STATE_NONE for a word that is none of them. */
enum job_state job_state_from_name(struct slice name);

enum priority {
    PRIORITY_CRITICAL, /* the smaller number is the more urgent */
    PRIORITY_HIGH,
    PRIORITY_NORMAL,
    PRIORITY_COUNT
};

const char *priority_name(enum priority priority);
/* Also the numbers 1 to 3. False for a word that is none of them. */
bool priority_from_name(struct slice name, enum priority *ret_priority);

/*
 * ---- Rank: the order of jobs inside one lane, one number, fixed when the job is stored, the smaller first. ----
 *
 * A rank is a time: the job goes before critical work that arrives later than that. Class, age and
 * deadline are all in it, so nothing is sorted anew while a job waits.
 */
/* `since` plus one aging interval a class: old normal work overtakes new critical work in the end. */
int64_t rank_of(enum priority priority, instant since, int64_t aging_ms);

/*
 * The same for a job with a deadline of its own: `lead_ms` before it the job goes before all work that arrives from then
 * on, and one aging interval earlier before all of high priority. The lead is at most half of the job's life, so that a
 * short deadline does not by itself overtake critical work that is there already: `since` <= result <= rank. INSTANT_NONE:
 * as it is.
 */
int64_t rank_heed_deadline(int64_t rank, instant since, instant deadline, int64_t lead_ms);

#endif
