/*
 * latency.h - whether a destination answers later because more is asked of it.
 *
 * Averages are compared, and one answer can add little to them: jobs differ, and a few slow ones among quick ones say
 * nothing about load. Of so many at once, the part of the time that is longer than at its best is waiting: as many of
 * them stand in a queue there.
 */
#ifndef CORE_LATENCY_H
#define CORE_LATENCY_H

#include "base/slice.h"

enum {
    LATENCY_FLOOR_MS = 20,    /* differences below this say nothing */
    LATENCY_MEMORY = 64,      /* answers that an average is made of, about, */
    LATENCY_MEMORY_SHORT = 8, /* and the one that shows what is new */
    LATENCY_SEEN_MIN = 16,    /* answers before anything is said */
    LATENCY_QUEUE_MIN = 3,    /* fewer in the queue are none, */
    LATENCY_QUEUE_SHARE = 5,  /* nor is a smaller part of them than one in so many */
    LATENCY_TIMES_MAX = 8,    /* an answer counts as so many times the best at most */
};

struct latency {
    double best_ms, usual_ms, recent_ms; /* 0: none seen */
    double deviation_ms; /* how far answers are from the usual */
    int64_t seen;        /* up to LATENCY_MEMORY */
    int64_t skip;        /* answers that are not to be counted: asked for under another load */
};

/* `idle`: there is no load of ours that could make it slow; if it is, that is how it is now. */
void latency_note(struct latency *latency, int64_t latency_ms, bool idle);
/* How many times longer than at its best it takes. */
double latency_ratio(const struct latency *latency);
/* Whether, of `at_once`, some wait in a queue there. */
bool latency_queues(const struct latency *latency, int64_t at_once);
/* The same from the last few answers: sooner, and more often wrong. */
bool latency_begins_to_queue(const struct latency *latency, int64_t at_once);
/* Finds out anew what its best is, from answers after the next `skip`. The usual stays until then. */
void latency_measure_anew(struct latency *latency, int64_t skip);

#endif
