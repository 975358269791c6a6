/*
 * concurrency.h - how many sends at once a destination bears: found by trying.
 *
 * As in Postfix: good answers raise the limit at the end of a run of them, the first bad one lowers it at once and the
 * next ones more slowly, so that the limit does not swing. Until the first sign of trouble, and far below the level
 * where it came, the limit grows by one an answer; else by one for as many answers as the limit, and from the level
 * where trouble came one level at a time, each to be borne for a while. Where it gives way again and again is learnt,
 * and is a ceiling for a long time: see capacity.h.
 *
 * Answers that take longer than the best ones are a sign too, and come before failures: while some of what was sent
 * stands in a queue there (latency.h) the limit does not rise, and when they take several times as long it falls. It
 * grows only while it is used.
 */
#ifndef CORE_CONCURRENCY_H
#define CORE_CONCURRENCY_H

#include "core/capacity.h"
#include "core/latency.h"

enum {
    CONCURRENCY_FIRST = 5,        /* where it starts */
    CONCURRENCY_LATENCY_FALL = 4, /* times the best: falls, but not below where it started */
    CONCURRENCY_QUEUE_MS = 10 * 60 * 1000, /* a queue that keeps work waiting for so long may be none: it is measured anew */
};

struct concurrency {
    int64_t max;   /* configured */
    int64_t limit; /* 1 to max */
    double credit; /* of good answers: at 1 the limit rises */
    double debt;   /* how many more bad ones in this run, in parts of the limit, until it falls again */
    bool troubled; /* the last answer was bad */
    int64_t peak, peak_before; /* most under way in this round of answers and in the one before */
    int64_t round;             /* answers left in it */
    instant queue_since; /* the limit does not rise because of a queue; INSTANT_NONE: no */
    struct capacity capacity;
    struct latency latency;
};

/* One answer. */
struct concurrency_sample {
    int64_t level;     /* the limit when it was asked for */
    int64_t load;      /* how many were under way then, it among them */
    int64_t under_way; /* now, likewise; 0: how many are sent is limited elsewhere */
    int64_t latency_ms;
    bool normal; /* it was no look whether the destination is there */
    instant at;
};

void concurrency_init(struct concurrency *concurrency, int64_t max);
/* After that, what was kept of the capacity. */
void concurrency_restore(struct concurrency *concurrency, const struct capacity_kept *kept);
/* What is configured, after a reload. Another limit than before lets more be tried than was learnt. */
void concurrency_configure(struct concurrency *concurrency, int64_t max);
/* Something is sent, so many are under way now. */
void concurrency_sent(struct concurrency *concurrency, int64_t under_way);
/* An answer that does not blame the destination. */
void concurrency_good(struct concurrency *concurrency, const struct concurrency_sample *sample);
/* One that does. */
void concurrency_bad(struct concurrency *concurrency, const struct concurrency_sample *sample);

#endif
