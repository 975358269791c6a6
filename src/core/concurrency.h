/*
 * concurrency.h - how many sends at once a destination bears: found by trying.
 *
 * As in Postfix: good answers raise the limit at the end of a run of them, the first bad one
 * lowers it at once and the next ones more slowly, so that the limit does not swing. Until
 * the first trouble, and far below the level where it came, the limit grows by one an answer;
 * else by one for as many answers as the limit. A rise that brings trouble at once makes the
 * next one rarer.
 *
 * Answers that take much longer than the best ones are a sign too: the limit then rises more
 * slowly, and beyond that it falls. It grows only while it is used.
 */
#ifndef CORE_CONCURRENCY_H
#define CORE_CONCURRENCY_H

#include "base/slice.h"

enum {
    CONCURRENCY_FIRST = 5,               /* where it starts */
    CONCURRENCY_PATIENCE_MAX = 64,       /* a vain try makes the next so many times rarer at most */
    CONCURRENCY_LATENCY_FLOOR_MS = 20,   /* differences below this say nothing */
    CONCURRENCY_LATENCY_SLOW = 2,        /* times the best: rises four times slower */
    CONCURRENCY_LATENCY_FALL = 4,        /* times the best: falls, but not below where it started */
    CONCURRENCY_LATENCY_MEMORY = 64,     /* answers that an average is made of, about */
};

struct concurrency {
    int64_t max;      /* configured */
    int64_t limit;    /* 1 to max */
    int64_t ceiling;  /* where the last run of bad answers began; 0: nowhere yet */
    int64_t patience; /* how many times longer to wait before going over the ceiling */
    double credit;    /* of good answers: at 1 the limit rises */
    double debt;      /* how many more bad ones in this run, in parts of the limit, until it falls again */
    bool troubled;    /* the last answer was bad */
    int64_t since_rise;       /* answers */
    double best_ms, usual_ms; /* latency; 0: none seen */
};

void concurrency_init(struct concurrency *concurrency, int64_t max);
/* Another configured limit; what was learnt stays as far as it fits. */
void concurrency_configure(struct concurrency *concurrency, int64_t max);
/* An answer that does not blame the destination. `under_way` with the one that was answered. */
void concurrency_good(struct concurrency *concurrency, int64_t latency_ms, int64_t under_way);
/* One that does. */
void concurrency_bad(struct concurrency *concurrency);

#endif
