/*
 * criterion.h - which of the signs of an outage an answer shows.
 *
 * One reading of an answer for all: what counts as a failure of the destination in the breaker,
 * in the limit of concurrency and on the way back from contingency. An answer that is about
 * one job only shows nothing.
 */
#ifndef CORE_OUTAGE_CRITERION_H
#define CORE_OUTAGE_CRITERION_H

#include "core/decision/outcome.h"

enum criterion {
    CRITERION_NONE = 0,
    CRITERION_TIMEOUT,      /* no answer within the limit */
    CRITERION_CONNECTIVITY, /* network, name service, TLS */
    CRITERION_SERVICE,      /* a server error */
    CRITERION_MAINTENANCE,  /* a planned absence */
    CRITERION_BUSY,         /* overloaded, or it says that we are too fast */
    CRITERION_COUNT
};

/* `code` as transports give it, "http:503"; it may be empty. */
enum criterion criterion_of(enum outcome outcome, struct slice code);

/*
 * Whether nobody was there to judge the job: no answer, or one that says to come again later (429, 502 to 504, `wait`). Any
 * other answer is about the job as much as about the destination.
 */
bool criterion_away(enum outcome outcome, struct slice code);

const char *criterion_name(enum criterion criterion); /* "timeout"...; NULL for CRITERION_NONE */
enum criterion criterion_from_name(struct slice name);

#endif
