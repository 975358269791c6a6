/*
 * tally.h - how sends have gone in a sliding window of time, by whose they were.
 *
 * Each job counts once, by its last answer, so that one that fails time and again weighs no more than any other; and it is
 * known how it went for each tenant, so that one whose jobs all fail does not speak for the others.
 *
 * Memory is fixed whatever the traffic: a ring of buckets; cells for tenants, of which those beyond the last share one;
 * and places for jobs that failed. With more of these than places the rest are counted as they come: so many different
 * ones have failed then that a second failure of some makes no difference.
 */
#ifndef CORE_OUTAGE_TALLY_H
#define CORE_OUTAGE_TALLY_H

#include "base/instant.h"

enum { TALLY_BUCKETS = 10, TALLY_TENANTS = 64, TALLY_JOBS = 256 };

struct tally_bucket {
    uint32_t calls, failed, slow;
};

struct tally_tenant {
    int64_t tenant; /* 0: nobody's */
    struct tally_bucket buckets[TALLY_BUCKETS];
};

/* A job that failed or was slow, and where it is counted. */
struct tally_job {
    int64_t job;
    int64_t bucket; /* number */
    uint8_t tenant; /* its cell */
    bool failed, slow;
};

struct tally {
    int64_t head; /* number of the newest bucket, counted from 1970; INT64_MIN: nothing is counted */
    struct tally_tenant tenants[TALLY_TENANTS];
    struct tally_job jobs[TALLY_JOBS];
    size_t job_count;
};

struct tally_call {
    int64_t job, tenant; /* numbers from 1 */
    bool failed, slow;
};

/* Of the whole window. */
struct tally_sum {
    int64_t calls, failed, slow;
    int64_t tenants;                       /* with calls */
    int64_t tenants_failing, tenants_slow; /* of these: whose own share of such calls is at least the rate */
};

void tally_clear(struct tally *tally);
void tally_add(struct tally *tally, int64_t window_ms, const struct tally_call *call, instant now);
/* After tally_add for `now`. */
struct tally_sum tally_sum(const struct tally *tally, double failure_rate, double slow_rate);
/* Whether `part` of `of` is at least that rate, and not none at all. */
bool tally_reaches(int64_t part, int64_t of, double rate);

#endif
