/*
 * learning.h - what was seen of an error that no rule knows, and which rule that speaks for.
 *
 * The chance that a job which failed so is delivered in the end has a Beta posterior: the prior is
 * uniform, Beta(1, 1), each job that recovered or was given up is one observation. A rule is only
 * proposed, to a person, when the evidence is clear. Nothing here, and nobody who calls it, changes
 * how an error is treated.
 */
#ifndef CORE_ERRORS_LEARNING_H
#define CORE_ERRORS_LEARNING_H

#include "base/buffer.h"
#include "core/decision/outcome.h"

enum { LEARNING_OUTCOMES_MIN = 20 }; /* jobs that ended, before anything is proposed */

struct learning {
    int64_t seen;      /* attempts that ended so */
    int64_t recovered; /* jobs that were delivered after it was their last failure */
    int64_t gave_up;   /* jobs that died of it after at least one retry */
};

/* The chance of recovery: its mean, and the interval that holds it with 90 % probability. */
struct odds {
    double mean, low, high;
};

/* The interval is exact (quantiles of the Beta distribution, to six digits) up to some thousand jobs; with more, wider. */
struct odds learning_odds(const struct learning *learning);

/*
 * OUTCOME_TRANSIENT: at least LEARNING_OUTCOMES_MIN jobs ended, and it is all but sure that more than 80 % recover.
 * OUTCOME_PERMANENT: likewise, that fewer than 5 % do. OUTCOME_NONE: neither can be said.
 */
enum outcome learning_class(const struct learning *learning);

/*
 * Appends the rule that matches the error's texts, as core/classify.h reads it: the words that stay the same, or the code
 * where there are too few. False: there is nothing to know it by. `sample` and `spaced` are the fingerprint's.
 */
bool learning_rule(struct slice code, struct slice sample, bool spaced, struct buffer *out);

/* Appends the lines of a configuration that make the error of that class. False: as learning_rule. */
bool learning_propose(struct slice destination, enum outcome outcome, struct slice code, struct slice sample, bool spaced,
                      struct buffer *out);

#endif
