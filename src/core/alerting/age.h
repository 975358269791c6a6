/*
 * age.h - the mean age of the jobs that a destination has not done yet, without looking at them.
 *
 * Pure. Fed from time to time with how many there are and how many came and went. Jobs whose
 * time of arrival is known when they go are taken out exactly, others as if they had the mean age;
 * those that come are as old as half the time since the last feeding.
 */
#ifndef CORE_ALERTING_AGE_H
#define CORE_ALERTING_AGE_H

#include "base/instant.h"

struct backlog_age {
    int64_t count;        /* as of the last feeding */
    double created_mean;  /* an instant; means nothing when there are none */
    instant fed_at;       /* INSTANT_NONE: never */
};

struct backlog_flow {
    int64_t count;       /* now */
    int64_t left;        /* since the last time, all */
    int64_t left_known;  /* of these, */
    double left_created; /* the sum of when they came */
};

struct backlog_age backlog_age_none(void);
void backlog_age_feed(struct backlog_age *age, const struct backlog_flow *flow, instant now);
/* 0 when there are none. */
int64_t backlog_age_ms(const struct backlog_age *age, instant now);

#endif
