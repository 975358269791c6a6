/*
 * The limit against model receivers, in a small world of its own: time goes by in steps of 10 ms.
 */
#include "core/concurrency.h"
#include "support/check.h"

enum { STEP_MS = 10, FLIGHTS_MAX = 256 };

struct receiver {
    int64_t allows;      /* at once; more are refused */
    int64_t answer_ms;
    int64_t bears;       /* more at once make every answer slower; 0: any number */
    size_t fails_in_100; /* whatever the load */
};

struct flights {
    struct { int64_t left_ms, latency_ms; bool refused; } items[FLIGHTS_MAX];
    int64_t count;
};

struct tally {
    int64_t sent, refused, good;
};

static void depart(struct flights *flights, const struct receiver *receiver, struct random *random, struct tally *tally)
{
    bool refused = flights->count >= receiver->allows || random_below(random, 100) < receiver->fails_in_100;
    int64_t load = receiver->bears > 0 && flights->count > receiver->bears ? flights->count : receiver->bears;
    int64_t latency = receiver->bears > 0 ? receiver->answer_ms * load / receiver->bears : receiver->answer_ms;
    assert_true(flights->count < FLIGHTS_MAX);
    flights->items[flights->count].left_ms = refused ? STEP_MS : latency;
    flights->items[flights->count].latency_ms = latency;
    flights->items[flights->count].refused = refused;
    flights->count++;
    tally->sent++;
    tally->refused += refused;
}

static void arrive(struct flights *flights, struct concurrency *concurrency, struct tally *tally)
{
    for (int64_t i = 0; i < flights->count;) {
        flights->items[i].left_ms -= STEP_MS;
        if (flights->items[i].left_ms > 0) {
            i++;
            continue;
        }
        if (flights->items[i].refused)
            concurrency_bad(concurrency);
        else
            concurrency_good(concurrency, flights->items[i].latency_ms, flights->count);
        tally->good += !flights->items[i].refused;
        flights->items[i] = flights->items[--flights->count];
    }
}

static struct tally run(struct concurrency *concurrency, const struct receiver *receiver, int64_t seconds)
{
    struct flights flights = { .count = 0 };
    struct tally tally = { 0 };
    struct random random = { 7 };
    for (int64_t at = 0; at < seconds * 1000; at += STEP_MS) {
        while (flights.count < concurrency->limit)
            depart(&flights, receiver, &random, &tally);
        arrive(&flights, concurrency, &tally);
        assert_in_range(concurrency->limit, 1, concurrency->max);
    }
    return tally;
}

/* S3-085. Postfix publishes 16.5% for a receiver of five, its feedback at its best. */
static void few_are_refused(void **state)
{
    (void)state;
    static const struct { int64_t allows, max; double refused_max, goodput_min; } cases[] = {
        { 1, 20, 0.165, 0.85 }, { 2, 20, 0.165, 0.85 }, { 5, 20, 0.165, 0.85 }, { 5, 100, 0.165, 0.85 },
        { 10, 20, 0.1, 0.85 },  { 50, 100, 0.1, 0.8 },  { 200, 100, 0, 0.85 },  { 5, 3, 0, 0.95 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct receiver receiver = { .allows = cases[i].allows, .answer_ms = 100 };
        struct concurrency concurrency;
        concurrency_init(&concurrency, cases[i].max);
        struct tally tally = run(&concurrency, &receiver, 60);
        int64_t at_once = cases[i].allows < cases[i].max ? cases[i].allows : cases[i].max;
        double refused = (double)tally.refused / (double)tally.sent, goodput = (double)tally.good / (double)(at_once * 600);
        check(refused <= cases[i].refused_max, "row %zu: %.3f refused of %lld", i, refused, (long long)tally.sent);
        check(goodput >= cases[i].goodput_min, "row %zu: %.3f of what it could take", i, goodput);
    }
}

static void it_recovers_after_trouble(void **state)
{
    (void)state;
    struct receiver well = { .allows = 1000, .answer_ms = 100 }, down = { .allows = 0, .answer_ms = 100 };
    struct concurrency concurrency;
    concurrency_init(&concurrency, 40);
    run(&concurrency, &well, 10);
    assert_int_equal(concurrency.limit, 40);
    run(&concurrency, &down, 60);
    assert_int_equal(concurrency.limit, 1);
    run(&concurrency, &well, 10);
    check(concurrency.limit >= 30, "back at %lld after ten seconds", (long long)concurrency.limit);
    run(&concurrency, &well, 20);
    assert_int_equal(concurrency.limit, 40);
}

static void it_finds_a_receiver_that_has_grown(void **state)
{
    (void)state;
    struct receiver small = { .allows = 5, .answer_ms = 100 }, large = { .allows = 1000, .answer_ms = 100 };
    struct concurrency concurrency;
    concurrency_init(&concurrency, 20);
    run(&concurrency, &small, 600);
    assert_int_equal(concurrency.patience, CONCURRENCY_PATIENCE_MAX);
    assert_in_range(concurrency.limit, 4, 6);
    run(&concurrency, &large, 60);
    assert_int_equal(concurrency.limit, 20);
}

/* Failures that have nothing to do with the load must not starve the destination. */
static void stray_failures(void **state)
{
    (void)state;
    static const struct { size_t fails_in_100; int64_t sent_min; } cases[] = { { 1, 5000 }, { 3, 3000 }, { 10, 1500 } };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct receiver receiver = { .allows = 1000, .answer_ms = 100, .fails_in_100 = cases[i].fails_in_100 };
        struct concurrency concurrency;
        concurrency_init(&concurrency, 25);
        struct tally tally = run(&concurrency, &receiver, 60);
        check(tally.sent >= cases[i].sent_min, "%zu%%: %lld of 15000 sent", cases[i].fails_in_100, (long long)tally.sent);
    }
}

/* A receiver that refuses nothing but queues: the limit stays where it answers in reasonable time. */
static void latency_is_a_sign(void **state)
{
    (void)state;
    struct receiver receiver = { .allows = 1000, .answer_ms = 50, .bears = 10 };
    struct concurrency concurrency;
    concurrency_init(&concurrency, 200);
    run(&concurrency, &receiver, 60);
    check(concurrency.limit >= 10 && concurrency.limit <= 60, "%lld at once", (long long)concurrency.limit);
    concurrency_init(&concurrency, 200);
    receiver.bears = 0;
    run(&concurrency, &receiver, 60);
    assert_int_equal(concurrency.limit, 200);
}

/* Quick and slow jobs side by side, and a few that take for ever: no load, and no reason to go slower. */
static void jobs_differ(void **state)
{
    (void)state;
    static const struct { size_t slow_in_100; int64_t quick_ms, slow_ms; } cases[] = {
        { 50, 20, 500 }, { 10, 20, 2000 }, { 1, 20, 30000 }, { 90, 10, 200 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct concurrency concurrency;
        struct random random = { i };
        concurrency_init(&concurrency, 25);
        for (int n = 0; n < 20000; n++) {
            bool slow = random_below(&random, 100) < cases[i].slow_in_100;
            concurrency_good(&concurrency, slow ? cases[i].slow_ms : cases[i].quick_ms, 25);
        }
        check(concurrency.limit >= 20, "row %zu: %lld", i, (long long)concurrency.limit);
    }
}

/* Five times slower from now on, whatever we do: the limit falls for a while and comes back. */
static void slower_for_good(void **state)
{
    (void)state;
    struct concurrency concurrency;
    int64_t lowest = 25;
    concurrency_init(&concurrency, 25);
    for (int i = 0; i < 20000; i++) {
        concurrency_good(&concurrency, i < 1000 ? 100 : 900, 25);
        lowest = i > 1000 && concurrency.limit < lowest ? concurrency.limit : lowest;
    }
    assert_int_equal(lowest, CONCURRENCY_FIRST);
    assert_int_equal(concurrency.limit, 25);
}

static void differences_of_a_few_milliseconds_say_nothing(void **state)
{
    (void)state;
    struct concurrency concurrency;
    concurrency_init(&concurrency, 50);
    concurrency_good(&concurrency, 0, 50);
    for (int i = 0; i < 5000; i++)
        concurrency_good(&concurrency, 15, 50);
    assert_int_equal(concurrency.limit, 50);
}

static void it_grows_only_while_it_is_used(void **state)
{
    (void)state;
    struct concurrency concurrency;
    concurrency_init(&concurrency, 50);
    for (int i = 0; i < 5000; i++)
        concurrency_good(&concurrency, 100, 1);
    assert_int_equal(concurrency.limit, CONCURRENCY_FIRST);
}

static void a_reload(void **state)
{
    (void)state;
    struct concurrency concurrency;
    concurrency_init(&concurrency, 3);
    assert_int_equal(concurrency.limit, 3);
    concurrency_configure(&concurrency, 100);
    assert_int_equal(concurrency.limit, 3);
    for (int i = 0; i < 50; i++)
        concurrency_good(&concurrency, 100, 100);
    assert_int_equal(concurrency.limit, 53);
    concurrency_bad(&concurrency);
    assert_int_equal(concurrency.ceiling, 53);
    concurrency_configure(&concurrency, 10);
    assert_int_equal(concurrency.limit, 10);
    assert_int_equal(concurrency.ceiling, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_are_refused),
        cmocka_unit_test(it_recovers_after_trouble),
        cmocka_unit_test(it_finds_a_receiver_that_has_grown),
        cmocka_unit_test(stray_failures),
        cmocka_unit_test(latency_is_a_sign),
        cmocka_unit_test(jobs_differ),
        cmocka_unit_test(slower_for_good),
        cmocka_unit_test(differences_of_a_few_milliseconds_say_nothing),
        cmocka_unit_test(it_grows_only_while_it_is_used),
        cmocka_unit_test(a_reload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
