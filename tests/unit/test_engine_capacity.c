/*
 * How many at once a destination bears, found by the real engine from where it gives way: once that is learnt it is never
 * asked for more, neither under twice its load nor after, nor on the way back from an outage, nor after a restart; and
 * one that has come to bear more is found out (A-22, S3-049).
 */
#include "support/check.h"
#include "support/configs.h"
#include "support/world.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>

enum { STEP_MS = 100, CONCURRENCY = 60, SECONDS_MAX = 12 * 3600 };

static const instant began = (instant)1736678400 * 1000;

/* How a destination fares that has more to do than it bears. */
enum excess {
    EXCESS_REFUSED,  /* what is too much is refused at once */
    EXCESS_SLOW,     /* likewise, but only after a long time */
    EXCESS_COLLAPSE, /* nothing that is under way gets done */
};

struct site {
    struct random random;
    int64_t bears, answer_ms;
    enum excess excess;
    bool down;
    int64_t others; /* requests at once of other clients */
    size_t strays_in_1000;
    bool overdone;  /* everything that is under way fails: see EXCESS_COLLAPSE */
    int64_t requests, refused;
    int64_t above;  /* requests beyond what it bears, since it was last set to 0 */
    int64_t peak;
    int64_t done[SECONDS_MAX];
};

static int64_t at_once(const struct world *world)
{
    int64_t count = 1; /* with the one that begins */
    for (const struct world_send *send = world->sends; send; send = send->next)
        count++;
    return count;
}

static int64_t refuse(struct site *site, struct answer *answer, int64_t takes)
{
    site->refused++;
    answer->outcome = OUTCOME_NONE;
    answer->code = SLICE("http:503");
    answer->text = SLICE("HTTP 503: too much");
    return takes;
}

/* What is under way is not gone when one more comes: a destination that collapses fails all that began since it was empty. */
static int64_t site_answers(struct world *world, const struct send *send, struct answer *answer)
{
    struct site *site = world->context;
    int64_t count = at_once(world), second = (world->now - began) / SECOND_MS;
    (void)send;
    site->requests++;
    if (site->down)
        return refuse(site, answer, 20);
    site->peak = count > site->peak ? count : site->peak;
    site->above += count > site->bears;
    if (count == 1)
        site->overdone = false;
    if (count + site->others > site->bears) {
        site->overdone = site->excess == EXCESS_COLLAPSE;
        return refuse(site, answer, site->excess == EXCESS_REFUSED ? 10 : 10 * site->answer_ms);
    }
    if (site->overdone && count * 2 > site->bears)
        return refuse(site, answer, site->answer_ms);
    site->overdone = false;
    if (random_below(&site->random, 1000) < site->strays_in_1000)
        return refuse(site, answer, site->answer_ms);
    answer->outcome = OUTCOME_DELIVERED;
    int64_t takes = site->answer_ms / 2 + (int64_t)random_below(&site->random, (size_t)site->answer_ms);
    second = (world->now + takes - began) / SECOND_MS;
    if (second < SECONDS_MAX)
        site->done[second]++;
    return takes;
}

/* `jobs` of three tenants, evenly until then. */
static void offer(struct world *world, int64_t seconds, int64_t jobs)
{
    instant from = world->now;
    int64_t steps = seconds * SECOND_MS / STEP_MS;
    static const char *const tenants[] = { "A", "B", "C" };
    for (int64_t step = 0; step < steps; step++) {
        for (int64_t i = jobs * step / steps; i < jobs * (step + 1) / steps; i++)
            world_add(world, "d", tenants[i % 3], NULL, "x");
        world_run_until(world, from + (step + 1) * STEP_MS);
    }
}

static int64_t done_in(const struct site *site, int64_t from, int64_t until)
{
    int64_t total = 0;
    for (int64_t i = from; i < until; i++)
        total += site->done[i];
    return total;
}

static int64_t second_of(const struct world *world)
{
    return (world->now - began) / SECOND_MS;
}

static struct destination_status standing(const struct world *world)
{
    return engine_destination(world->engine, SLICE("d"));
}

/* How many it gets done a second when it is always busy. */
static int64_t capacity_of(const struct site *site)
{
    return site->bears * SECOND_MS / site->answer_ms;
}

static void begin(struct world *world, struct site *site)
{
    char yaml[400];
    *world = (struct world){ .destination = site_answers, .context = site };
    snprintf(yaml, sizeof yaml,
             "destinations: { d: { preset: http, url: 'https://a.example/', concurrency: %d"
             ", retry: { base: 5s, floor: 1s, cap: 1m, max_retries: 50 }, breaker: { min_calls: 20 }"
             ", contingency: { ramp: [2, 5, 10, 25, 50], stable: 2m, check: 30s } } }\n", CONCURRENCY);
    world_begin(world, yaml, began);
}

/* Twice what it bears, until it is learnt. */
static void learn(struct world *world, struct site *site, const char *name)
{
    int64_t seconds = 0;
    while (standing(world).ceiling == 0 && seconds < 300) {
        offer(world, 5, 5 * 2 * capacity_of(site));
        seconds += 5;
    }
    check(standing(world).ceiling == site->bears, "%s: learnt %" PRId64 " instead of %" PRId64 " in %" PRId64 " s", name,
          standing(world).ceiling, site->bears, seconds);
    for (seconds = 0; strcmp(standing(world).mode, "normal") != 0 && seconds < 300; seconds += 5)
        offer(world, 5, 5 * capacity_of(site)); /* what collapsed has to come back first */
    check(strcmp(standing(world).mode, "normal") == 0, "%s: %s", name, standing(world).mode);
    site->above = site->peak = 0;
}

static const struct { const char *name; uint64_t seed; int64_t bears, answer_ms; enum excess excess; size_t strays_in_1000; } sites[] = {
    { "10 at once", 1, 10, 200, EXCESS_REFUSED, 0 },
    { "10 at once, another seed", 2, 10, 200, EXCESS_REFUSED, 0 },
    { "3 at once", 3, 3, 200, EXCESS_REFUSED, 0 },
    { "1 at once", 4, 1, 100, EXCESS_REFUSED, 0 },
    { "25 at once", 5, 25, 500, EXCESS_REFUSED, 0 },
    { "40 at once", 6, 40, 1000, EXCESS_REFUSED, 0 },
    { "5 at once, quick", 7, 5, 40, EXCESS_REFUSED, 0 },
    { "10 at once, slow", 8, 10, 2000, EXCESS_REFUSED, 0 },
    { "10 at once, refused late", 9, 10, 200, EXCESS_SLOW, 0 },
    { "25 at once, refused late", 10, 25, 500, EXCESS_SLOW, 0 },
    { "10 at once, collapsing", 11, 10, 200, EXCESS_COLLAPSE, 0 },
    { "5 at once, collapsing", 12, 5, 500, EXCESS_COLLAPSE, 0 },
    { "10 at once, and one in a hundred fails", 13, 10, 200, EXCESS_REFUSED, 10 },
};

static struct site site_of(size_t i)
{
    return (struct site){ .random.state = sites[i].seed, .bears = sites[i].bears, .answer_ms = sites[i].answer_ms,
                          .excess = sites[i].excess, .strays_in_1000 = sites[i].strays_in_1000 };
}

/* From when it is learnt on: through the overload and after it, without a loss of throughput. */
static void twice_what_it_bears(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sites); i++) {
        static struct site site;
        struct world world;
        const char *name = sites[i].name;
        site = site_of(i);
        int64_t capacity = capacity_of(&site);
        begin(&world, &site);
        offer(&world, 20, 20 * capacity / 2);
        learn(&world, &site, name);
        offer(&world, 120, 120 * 2 * capacity);
        check(site.above == 0, "%s: %" PRId64 " at once in the overload", name, site.peak);
        int64_t removed = second_of(&world);
        offer(&world, 10 * 60, 10 * 60 * capacity / 2);
        check(site.above == 0, "%s: %" PRId64 " at once after it", name, site.peak);
        int64_t goodput = done_in(&site, removed + 110, removed + 120);
        check(goodput * 100 >= 95 * 10 * capacity, "%s: %" PRId64 " of %" PRId64 " in ten seconds", name, goodput, 10 * capacity);
        world_run_for(&world, (int64_t)HOUR_MS);
        check(site.above == 0 && world_counts(&world, "d").dead == 0 && world_counts(&world, "d").waiting == 0, "%s: in the end", name);
        world_end(&world);
    }
}

/* Others take all that it has, so that it looks down: that is no reason to think that it bears less, nor that it bears more. */
static void others_take_it_all(void **state)
{
    (void)state;
    static const size_t chosen[] = { 0, 2, 3, 5, 8, 10, 12 };
    for (size_t i = 0; i < COUNT_OF(chosen); i++) {
        static struct site site;
        struct world world;
        const char *name = sites[chosen[i]].name;
        site = site_of(chosen[i]);
        int64_t capacity = capacity_of(&site);
        begin(&world, &site);
        learn(&world, &site, name);
        site.others = 2 * site.bears;
        offer(&world, 300, 300 * capacity);
        check(strcmp(standing(&world).mode, "normal") != 0, "%s: not noticed", name);
        site.others = 0;
        int64_t removed = second_of(&world);
        offer(&world, 8 * 60, 8 * 60 * capacity * 9 / 10);
        check(site.above == 0, "%s: %" PRId64 " at once", name, site.peak);
        check(standing(&world).ceiling == site.bears, "%s: the ceiling is %" PRId64, name, standing(&world).ceiling);
        int64_t goodput = done_in(&site, removed + 110, removed + 120);
        check(goodput * 100 >= 95 * 10 * capacity * 9 / 10, "%s: %" PRId64 " of %" PRId64 " in ten seconds", name, goodput, 10 * capacity);
        world_end(&world);
    }
}

/* Work waits all the time: one more is tried now and then, ever more rarely, and one at a time. */
static void more_is_tried_rarely(void **state)
{
    (void)state;
    static struct site site;
    struct world world;
    site = site_of(7);
    int64_t capacity = capacity_of(&site);
    begin(&world, &site);
    learn(&world, &site, sites[7].name);
    instant learnt = standing(&world).ceiling_since;
    site.refused = 0;
    offer(&world, CAPACITY_HOLD_MS / SECOND_MS - 60, 2 * capacity * (CAPACITY_HOLD_MS / SECOND_MS - 60));
    assert_int_equal(site.above, 0);
    assert_in_range(standing(&world).more_at, learnt + CAPACITY_HOLD_MS, learnt + CAPACITY_HOLD_MS + MINUTE_MS);
    world_run_for(&world, 5 * (int64_t)HOUR_MS); /* for which there is no work; then again for long */
    for (int hour = 0; hour < 4; hour++)
        offer(&world, 3600, 3600 * (capacity + 1));
    check(site.peak == site.bears + 1, "%" PRId64 " at once", site.peak);
    check(site.above >= 2 && site.above <= 6, "%" PRId64 " too many in hours", site.above);
    assert_int_equal(site.refused, site.above);
    assert_int_equal(standing(&world).ceiling, site.bears);
    world_end(&world);
}

/* It bears more from some time on: that is found in a stated time of waiting work, and used. */
static void it_has_grown(void **state)
{
    (void)state;
    static const struct { size_t site; int64_t bears; } cases[] = { { 0, 20 }, { 0, 1000 }, { 2, 12 }, { 3, 2 }, { 10, 1000 } };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static struct site site;
        struct world world;
        site = site_of(cases[i].site);
        begin(&world, &site);
        learn(&world, &site, sites[cases[i].site].name);
        site.bears = cases[i].bears;
        int64_t most = site.bears < CONCURRENCY ? site.bears : CONCURRENCY, capacity = most * SECOND_MS / site.answer_ms;
        int64_t before = sites[cases[i].site].bears * SECOND_MS / site.answer_ms;
        offer(&world, CAPACITY_HOLD_MS / SECOND_MS + 60, (CAPACITY_HOLD_MS / SECOND_MS + 60) * before * 3 / 2);
        int64_t now = second_of(&world);
        check(standing(&world).limit >= most - 1, "row %zu: %" PRId64 " instead of %" PRId64, i, standing(&world).limit, most);
        check(done_in(&site, now - 15, now - 5) * 100 >= 85 * 10 * capacity, "row %zu: %" PRId64 " in ten seconds", i,
              done_in(&site, now - 15, now - 5));
        world_end(&world);
    }
}

static void it_has_shrunk(void **state)
{
    (void)state;
    static const struct { size_t site; int64_t bears; } cases[] = { { 0, 5 }, { 0, 1 }, { 4, 20 }, { 8, 4 }, { 12, 6 } };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static struct site site;
        struct world world;
        site = site_of(cases[i].site);
        begin(&world, &site);
        learn(&world, &site, sites[cases[i].site].name);
        site.bears = cases[i].bears;
        offer(&world, 120, 120 * capacity_of(&site) * 2);
        check(standing(&world).ceiling == site.bears, "row %zu: learnt %" PRId64 " instead of %" PRId64, i,
              standing(&world).ceiling, site.bears);
        site.above = 0;
        offer(&world, 300, 300 * capacity_of(&site));
        check(site.above == 0, "row %zu: %" PRId64 " too many", i, site.above);
        world_end(&world);
    }
}

/* What was learnt is not lost with the process, nor with an outage before or after. */
static void after_a_restart(void **state)
{
    (void)state;
    for (int crash = 0; crash < 2; crash++) {
        static struct site site;
        struct world world;
        site = site_of(0);
        int64_t capacity = capacity_of(&site);
        begin(&world, &site);
        learn(&world, &site, sites[0].name);
        world_run_for(&world, MINUTE_MS);
        if (crash)
            world_crash(&world);
        else
            world_restart(&world);
        assert_int_equal(standing(&world).ceiling, site.bears);
        world_run_for(&world, 10 * MINUTE_MS); /* what a crash left behind is looked at */
        site.above = 0;
        offer(&world, 120, 120 * 2 * capacity);
        site.down = true;
        offer(&world, 120, 120 * capacity);
        site.down = false;
        offer(&world, 300, 300 * capacity / 2);
        assert_int_equal(site.above, 0);
        assert_int_equal(standing(&world).ceiling, site.bears);
        world_end(&world);
    }
}

/* Somebody who sets another limit may know more: it is tried at once. The same one again changes nothing. */
static void another_limit(void **state)
{
    (void)state;
    static struct site site;
    struct world world;
    struct error err;
    site = site_of(0);
    begin(&world, &site);
    learn(&world, &site, sites[0].name);
    assert_int_equal(engine_reload(world.engine, world.config, &err), STATUS_OK);
    assert_int_equal(standing(&world).ceiling, site.bears);
    site.bears = 20;
    struct config *config = config_from(SLICE("destinations: { d: { preset: http, url: 'https://a.example/', concurrency: 25 } }\n"),
                                        "test.yaml");
    assert_int_equal(engine_reload(world.engine, config, &err), STATUS_OK);
    config_unref(config);
    assert_int_equal(standing(&world).ceiling, 0);
    offer(&world, 60, 60 * 2 * capacity_of(&site));
    assert_int_equal(standing(&world).ceiling, site.bears);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twice_what_it_bears),
        cmocka_unit_test(others_take_it_all),
        cmocka_unit_test(more_is_tried_rarely),
        cmocka_unit_test(it_has_grown),
        cmocka_unit_test(it_has_shrunk),
        cmocka_unit_test(after_a_restart),
        cmocka_unit_test(another_limit),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
