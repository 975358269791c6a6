/*
 * concurrency_round.h - what a round of answers says about a destination under so many sends at once, and which of two
 * rounds was better.
 *
 * Three figures: the share of failures, the median time of good answers, and how many good ones come in a second. The
 * last is counted by the time that slots were held, so that a pause without work changes nothing.
 */
#ifndef CORE_OUTAGE_CONCURRENCY_ROUND_H
#define CORE_OUTAGE_CONCURRENCY_ROUND_H

#include "base/instant.h"

#include <stdbool.h>

enum {
    ROUND_TIMES = 320,       /* kinds of times that are distinguished: exactly up to 32 ms, then to about a sixteenth */
    ROUND_FAILURES_MIN = 5,  /* fewer say nothing, */
    ROUND_FAILURES_PART = 20, /* nor does a smaller part of the answers than one in so many */
    ROUND_TIME_MS = 5,       /* and times that differ by less */
};

/* What is remembered of a round that is over. */
struct round_figures {
    int64_t limit; /* how many at once; 0: there was none */
    int64_t answers, failures;
    bool asked;       /* the destination asked for less: 429 or 503 with Retry-After */
    double time_ms;   /* the median of good answers; 0: none was good */
    double held_ms;   /* how long slots were held, in all */
};

/* One that goes on. */
struct round {
    struct round_figures figures;
    uint32_t times[ROUND_TIMES];
};

void round_begin(struct round *round, int64_t limit);
/* An answer: how long the destination took for it, and how long it held a slot in all. */
void round_good(struct round *round, int64_t latency_ms, int64_t held_ms);
void round_bad(struct round *round, bool asked, int64_t held_ms);
/* With the median as it is now. */
struct round_figures round_read(const struct round *round);

/* Whether so many failures of so many answers are a sign of trouble. */
bool round_fails(const struct round_figures *round);
/* Whether good answers took that much longer than `best_ms`. */
bool round_is_slow(const struct round_figures *round, double best_ms);

/* With less at once there were less than a third of the failures. */
bool round_may_fail_less(const struct round_figures *low, const struct round_figures *high);
/* There were so many fewer of them that it is hardly chance. */
bool round_failed_less(const struct round_figures *low, const struct round_figures *high);
/* Answers came sooner. */
bool round_came_sooner(const struct round_figures *low, const struct round_figures *high);
/* As much was delivered, while with more at once it failed: the slots above bought nothing. */
bool round_bought_nothing(const struct round_figures *low, const struct round_figures *high);

#endif
