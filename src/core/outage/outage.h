/*
 * outage.h - one outage of a destination, and whose failures in it are free.
 *
 * It lasts from the first hold (breaker, contingency, refused credentials) until nothing holds any more, relapses included.
 * What is sent in it is sent to see how the destination is: looks, and the goes of the way back. One failure of such a
 * send is the outage's, for each job; the store keeps when a job failed so. From the second on it is the job's own, unless
 * nobody was there to judge it (criterion_away) and nothing has gone well since: then an outage alone uses up no job, and
 * no job that always fails is sent for ever.
 */
#ifndef CORE_OUTAGE_OUTAGE_H
#define CORE_OUTAGE_OUTAGE_H

#include "base/instant.h"

/*
 * A look that fails although somebody answered says less: the job may be to blame, and the destination back. So another one,
 * that has not failed, looks after a tenth of the interval already; so many times, until nobody answers or one goes well.
 */
enum { LOOKS_SOON_MAX = 20, LOOKS_SOON_PART = 10, LOOKS_SOON_LEAST_MS = 1000 };
/* That part of an interval. */
int64_t looks_soon_ms(int64_t interval_ms);

/* Plain: it is saved over a restart. */
struct outage {
    instant since;    /* INSTANT_NONE: there was none */
    instant good_at;  /* when a send of it last went well; INSTANT_NONE: none did */
    instant ended_at; /* INSTANT_NONE: it lasts */
};

void outage_init(struct outage *outage);
/* Something holds the destination. Within `relapse_ms` after the last outage that is the same one again. */
void outage_holds(struct outage *outage, int64_t relapse_ms, instant now);
/* Nothing does. */
void outage_ends(struct outage *outage, instant now);
bool outage_lasts(const struct outage *outage);
/* How much of the time from `from` until now the last one took, or the one that lasts. */
int64_t outage_lasted_ms(const struct outage *outage, instant from, instant now);
/* A send of it went well. */
void outage_went_well(struct outage *outage, instant now);

/* Whether a job that last failed so at `look_failed_at` has used up its free failure. */
bool outage_used(const struct outage *outage, instant look_failed_at);
/* Whether another failure of it, `away` or not, costs it nothing. */
bool outage_spares(const struct outage *outage, instant look_failed_at, bool away);

#endif
