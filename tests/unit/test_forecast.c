#include "core/fairness/forecast.h"
#include "support/check.h"

static const struct {
    const char *name;
    struct forecast_limit limit;
    int64_t ms;
} limits[] = {
    { "no limit", { { 0, 0 }, 0, 1000 }, 0 },
    { "there is room", { { 100, MINUTE_MS }, 5, 4 }, 0 },
    { "the first without room", { { 60, MINUTE_MS }, 0, 0 }, SECOND_MS },
    { "behind a burst", { { 60, MINUTE_MS }, 5, 5 }, SECOND_MS },
    { "C-46: a full queue at a hundred a minute", { { 100, MINUTE_MS }, 0, 249999 }, 2500 * MINUTE_MS },
    { "fifty an hour", { { 50, HOUR_MS }, 0, 99 }, 2 * HOUR_MS },
};

static void a_limit_takes_its_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(limits); i++)
        check(forecast_limit_ms(&limits[i].limit) == limits[i].ms, "%s: %lld", limits[i].name,
              (long long)forecast_limit_ms(&limits[i].limit));
}

static const struct {
    const char *name;
    int64_t before, room, batch, next_ms, ms;
} cycles[] = {
    { "there is room", 1, 2, 3, 4000, 0 },
    { "this one is full", 0, 0, 3, 4000, 4000 },
    { "the last of the next", 2, 0, 3, 4000, 4000 },
    { "the first of the one after", 3, 0, 3, 4000, 4000 + MINUTE_MS },
    { "with what is left of this one", 4, 1, 3, 4000, 4000 + MINUTE_MS },
    { "beyond all bounds", INT64_MAX - 1, 0, 1, 4000, INT64_MAX / 2 },
};

static void a_cycle_comes_when_it_comes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cycles); i++) {
        int64_t ms = forecast_cycle_ms(cycles[i].before, cycles[i].room, cycles[i].batch, MINUTE_MS, cycles[i].next_ms);
        check(ms == cycles[i].ms, "%s: %lld", cycles[i].name, (long long)ms);
    }
}

static const struct {
    const char *name;
    int64_t before, free, at_once;
    double usual_ms;
    int64_t ms;
} works[] = {
    { "a free place", 0, 1, 5, 0, 0 },
    { "nothing was seen", 1, 1, 5, 0, -1 },
    { "ten at once", 99, 0, 10, 200, 2000 },
    { "one at a time", 3, 1, 1, 1000, 3000 },
    { "beyond all bounds", INT64_MAX - 1, 0, 1, 1e9, INT64_MAX / 2 },
};

static void work_takes_what_it_took(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(works); i++)
        check(forecast_work_ms(works[i].before, works[i].free, works[i].at_once, works[i].usual_ms) == works[i].ms, "%s",
              works[i].name);
}

static const struct {
    const char *name;
    int64_t ahead, share, other_share, other_ready, others;
} shares[] = {
    { "the first of its lane", 0, 3, 3, 1000, 3 },
    { "in the second turn", 3, 3, 3, 1000, 6 },
    { "the other has little", 300, 3, 3, 10, 10 },
    { "the other weighs more", 5, 3, 12, 1000, 24 },
    { "the other has nothing", 5, 3, 3, 0, 0 },
    { "no overflow", INT64_MAX - 1, 1, 10000000, INT64_MAX, INT64_MAX },
};

static void others_have_their_share(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shares); i++)
        check(forecast_others(shares[i].ahead, shares[i].share, shares[i].other_share, shares[i].other_ready) ==
                  shares[i].others,
              "%s", shares[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_takes_its_time),
        cmocka_unit_test(a_cycle_comes_when_it_comes),
        cmocka_unit_test(work_takes_what_it_took),
        cmocka_unit_test(others_have_their_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
