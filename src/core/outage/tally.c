#include "core/outage/tally.h"

#include <assert.h>
#include <string.h>

enum { SHARED_CELL = TALLY_TENANTS - 1 };

void tally_clear(struct tally *tally)
{
    memset(tally, 0, sizeof *tally);
    tally->head = INT64_MIN;
}

bool tally_reaches(int64_t part, int64_t of, double rate)
{
    assert(part >= 0 && part <= of);
    return part > 0 && (double)part >= rate * (double)of;
}

static size_t place_of(int64_t number)
{
    return (size_t)((number % TALLY_BUCKETS + TALLY_BUCKETS) % TALLY_BUCKETS);
}

static void forget_jobs(struct tally *tally)
{
    size_t saved = 0;
    for (size_t i = 0; i < tally->job_count; i++)
        if (tally->jobs[i].bucket > tally->head - TALLY_BUCKETS)
            tally->jobs[saved++] = tally->jobs[i];
    tally->job_count = saved;
}

/* The bucket of `now` is the newest; those that have left the window are emptied. */
static void advance(struct tally *tally, int64_t window_ms, instant now)
{
    assert(window_ms >= 0);
    int64_t width = window_ms / TALLY_BUCKETS > 0 ? window_ms / TALLY_BUCKETS : 1;
    int64_t number = now / width - (now % width < 0);
    bool stale = tally->head == INT64_MIN || number - tally->head >= TALLY_BUCKETS ||
                 tally->head - number >= TALLY_BUCKETS; /* a clock that was set back a long way too */
    if (stale) {
        tally_clear(tally);
        tally->head = number;
    }
    if (tally->head >= number)
        return;
    while (tally->head < number) {
        tally->head++;
        for (size_t i = 0; i < TALLY_TENANTS; i++)
            tally->tenants[i].buckets[place_of(tally->head)] = (struct tally_bucket){ 0 };
    }
    forget_jobs(tally);
}

static struct tally_bucket total_of(const struct tally_tenant *cell)
{
    struct tally_bucket total = { 0 };
    for (size_t i = 0; i < TALLY_BUCKETS; i++) {
        total.calls += cell->buckets[i].calls;
        total.failed += cell->buckets[i].failed;
        total.slow += cell->buckets[i].slow;
    }
    return total;
}

/* Its own cell, or one that nobody has used in this window; without either the one that is shared. */
static size_t cell_of(struct tally *tally, int64_t tenant)
{
    assert(tenant > 0);
    size_t empty = SHARED_CELL;
    for (size_t i = 0; i < SHARED_CELL; i++) {
        if (tally->tenants[i].tenant == tenant)
            return i;
        if (empty == SHARED_CELL && total_of(&tally->tenants[i]).calls == 0)
            empty = i;
    }
    if (empty != SHARED_CELL)
        tally->tenants[empty].tenant = tenant;
    return empty;
}

/* What it counted for so far is taken back: its last answer is the one that counts. */
static void take_back(struct tally *tally, int64_t job)
{
    assert(job > 0 && tally->job_count <= TALLY_JOBS);
    for (size_t i = 0; i < tally->job_count; i++) {
        const struct tally_job *known = &tally->jobs[i];
        if (known->job != job)
            continue;
        struct tally_bucket *bucket = &tally->tenants[known->tenant].buckets[place_of(known->bucket)];
        bucket->calls--;
        bucket->failed -= known->failed;
        bucket->slow -= known->slow;
        tally->jobs[i] = tally->jobs[--tally->job_count];
        return;
    }
}

void tally_add(struct tally *tally, int64_t window_ms, const struct tally_call *call, instant now)
{
    assert(call->job > 0 && call->tenant > 0);
    advance(tally, window_ms, now);
    take_back(tally, call->job);
    size_t cell = cell_of(tally, call->tenant);
    struct tally_bucket *bucket = &tally->tenants[cell].buckets[place_of(tally->head)];
    bucket->calls++;
    bucket->failed += call->failed;
    bucket->slow += call->slow;
    if ((call->failed || call->slow) && tally->job_count < TALLY_JOBS)
        tally->jobs[tally->job_count++] = (struct tally_job){ .job = call->job, .bucket = tally->head,
                                                              .tenant = (uint8_t)cell, .failed = call->failed,
                                                              .slow = call->slow };
}

struct tally_sum tally_sum(const struct tally *tally, double failure_rate, double slow_rate)
{
    struct tally_sum sum = { 0 };
    for (size_t i = 0; i < TALLY_TENANTS; i++) {
        struct tally_bucket total = total_of(&tally->tenants[i]);
        sum.calls += total.calls;
        sum.failed += total.failed;
        sum.slow += total.slow;
        sum.tenants += total.calls > 0;
        sum.tenants_failing += tally_reaches(total.failed, total.calls, failure_rate);
        sum.tenants_slow += tally_reaches(total.slow, total.calls, slow_rate);
    }
    return sum;
}
