/*
 * outcome.h - what came of an attempt, in ten classes.
 *
 * The three words of the documents (TRANSIENT, PERMANENT, UNKNOWN) are a summary of these:
 * see outcome_label.
 */
#ifndef CORE_DECISION_OUTCOME_H
#define CORE_DECISION_OUTCOME_H

#include "base/slice.h"

enum outcome {
    OUTCOME_NONE = 0,
    OUTCOME_DELIVERED,
    OUTCOME_ACCEPTED,  /* taken, judged later: poll */
    OUTCOME_TRANSIENT, /* try again after a wait */
    OUTCOME_THROTTLED, /* too fast: try again, and slow the destination */
    OUTCOME_WAIT,      /* the destination is down or busy: wait for it, spend no attempt */
    OUTCOME_IN_DOUBT,  /* sent, the answer is lost */
    OUTCOME_DUPLICATE, /* it has it already */
    OUTCOME_PERMANENT, /* this job will never be taken as it is */
    OUTCOME_BLOCKED,   /* credentials, certificate, account; whose fault it is, others show: see block.h */
    OUTCOME_PARTIAL,   /* some parts were taken, some not */
    OUTCOME_COUNT
};

/* The lower-case word used in configuration, JSON and logs. */
const char *outcome_name(enum outcome outcome);

/* The documents' label: "TRANSIENT", "PERMANENT", or "UNKNOWN" when no rule matched. */
const char *outcome_label(enum outcome outcome, bool known);

#endif
