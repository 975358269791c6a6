/*
 * decision_reason.h - a decision in a sentence for people: what failed, which retry comes next, or why none does.
 *
 * The answer to a question and the trail of a job say it in the same words.
 */
#ifndef LIB_DECISION_REASON_H
#define LIB_DECISION_REASON_H

#include "core/decision/decide.h"

enum { DECISION_REASON_BYTES_MAX = 160 };

/* Its text lies in `text` or is static. */
struct slice decision_reason(const struct policy *policy, const struct decision *decision,
                             char text[DECISION_REASON_BYTES_MAX]);

#endif
