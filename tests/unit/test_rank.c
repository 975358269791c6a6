#include "base/units.h"
#include "core/decision/job.h"
#include "support/check.h"

static const instant start = INT64_C(1736678400000);

/* One job with a deadline against one without, of any class, that comes later. S3-024 */
static const struct {
    const char *name;
    enum priority class;
    int64_t deadline_ms; /* after `start`; 0: none */
    int64_t lead_ms;
    enum priority other;
    int64_t other_later_ms;
    bool first; /* the one with the deadline goes first */
} rows[] = {
    { "far away it changes nothing", PRIORITY_NORMAL, 24 * HOUR_MS, HOUR_MS, PRIORITY_HIGH, 30 * MINUTE_MS, false },
    { "two hours before it, before new high work", PRIORITY_NORMAL, 2 * HOUR_MS, HOUR_MS, PRIORITY_HIGH, MINUTE_MS, true },
    { "and still behind critical work", PRIORITY_NORMAL, 2 * HOUR_MS, HOUR_MS, PRIORITY_CRITICAL, MINUTE_MS, false },
    { "within the lead before all new work", PRIORITY_NORMAL, 2 * HOUR_MS, HOUR_MS, PRIORITY_CRITICAL, HOUR_MS + 1, true },
    { "not before the lead", PRIORITY_NORMAL, 2 * HOUR_MS, HOUR_MS, PRIORITY_CRITICAL, HOUR_MS - 1, false },
    { "a short life hurries in its second half", PRIORITY_NORMAL, 10 * MINUTE_MS, HOUR_MS, PRIORITY_CRITICAL,
      5 * MINUTE_MS + 1, true },
    { "and not in the first", PRIORITY_NORMAL, 10 * MINUTE_MS, HOUR_MS, PRIORITY_CRITICAL, 5 * MINUTE_MS - 1, false },
    { "age counts where it is earlier", PRIORITY_HIGH, 48 * HOUR_MS, HOUR_MS, PRIORITY_CRITICAL, HOUR_MS + 1, true },
    { "without one by age alone", PRIORITY_NORMAL, 0, HOUR_MS, PRIORITY_CRITICAL, HOUR_MS + 1, false },
    { "no lead: at the deadline itself", PRIORITY_NORMAL, HOUR_MS, 0, PRIORITY_CRITICAL, HOUR_MS + 1, true },
};

static void a_near_deadline_goes_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        instant deadline = rows[i].deadline_ms > 0 ? start + rows[i].deadline_ms : INSTANT_NONE;
        int64_t rank =
            rank_heed_deadline(rank_of(rows[i].class, start, HOUR_MS), start, deadline, rows[i].lead_ms);
        int64_t other = rank_of(rows[i].other, start + rows[i].other_later_ms, HOUR_MS);
        check((rank < other) == rows[i].first, "%s", rows[i].name);
    }
}

/* A deadline never makes a job later, nor more urgent than a critical one of the same moment. */
static void a_deadline_stays_in_bounds(void **state)
{
    struct random random = { 1 };
    (void)state;
    for (int i = 0; i < 100000; i++) {
        enum priority class = (enum priority)random_below(&random, PRIORITY_COUNT);
        int64_t aging = (int64_t)random_below(&random, (size_t)DAY_MS), lead = (int64_t)random_below(&random, (size_t)DAY_MS);
        instant deadline = start - HOUR_MS + (int64_t)random_below(&random, (size_t)(3 * DAY_MS));
        int64_t rank = rank_of(class, start, aging), heeded = rank_heed_deadline(rank, start, deadline, lead);
        check(heeded <= rank && heeded >= start, "row %d: %lld", i, (long long)(heeded - start));
        check(deadline > start || heeded == rank, "row %d: a passed deadline hurries nobody", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_near_deadline_goes_first),
        cmocka_unit_test(a_deadline_stays_in_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
