/*
 * cycle.h - what came of each run of a destination that is sent to in cycles.
 *
 * The gate numbers the cycles; whoever sends tells here what a cycle selected and how each of
 * those was answered. A run is reported when its cycle is over and all of it has been answered, at
 * the latest when the cycle after it is over too: what is still under way then stays unanswered
 * in its figures. A cycle that selected nothing is no run and is never reported.
 *
 * Fixed memory: the present run, the one before, and the figures of the last one reported.
 */
#ifndef CORE_OUTAGE_CYCLE_H
#define CORE_OUTAGE_CYCLE_H

#include "base/instant.h"

/* How one of a run's jobs was answered. */
enum cycle_answer {
    CYCLE_SUCCEEDED,   /* done */
    CYCLE_RESCHEDULED, /* it failed, and is tried again */
    CYCLE_HELD,        /* it is tried again, and that is no failure of its own: held, polled, verified */
    CYCLE_FAILED,      /* it failed for good */
};

struct cycle_figures {
    uint32_t number;  /* the gate's; 0: no run */
    instant began_at; /* the first selection */
    instant ended_at; /* the last answer; of a run without any its beginning */
    int64_t selected;
    int64_t succeeded;
    int64_t failed;      /* tries that failed */
    int64_t rescheduled; /* to be tried again */
    int64_t answered;
    int64_t age_ms; /* mean age of what was selected, from its arrival to its selection */
};

struct cycle_run {
    struct cycle_figures figures;
    int64_t age_sum_ms;
    bool over; /* selects no more */
};

struct cycles {
    struct cycle_run present, before;
    struct cycle_figures last; /* reported last; number 0: none yet */
};

/* `count` jobs were selected in cycle `number` (1 or more), with ages that add up to `age_sum_ms`. */
void cycle_selected(struct cycles *cycles, uint32_t number, int64_t count, int64_t age_sum_ms, instant now);
/* One of them was answered. Of a cycle that has been reported already, or more than were selected, it counts nowhere. */
void cycle_answered(struct cycles *cycles, uint32_t number, enum cycle_answer answer, instant now);
/* It was never sent: as if it had not been selected. */
void cycle_returned(struct cycles *cycles, uint32_t number);
/* Cycle `number` is over. */
void cycle_ended(struct cycles *cycles, uint32_t number);
/* The next run to tell, then in cycles->last; false: none. Call until there is none. */
bool cycle_tell(struct cycles *cycles);

/* From its beginning to its last answer. */
int64_t cycle_took_ms(const struct cycle_figures *figures);

#endif
