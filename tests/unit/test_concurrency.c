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
    struct { int64_t left_ms, latency_ms, load, level; bool refused; } items[FLIGHTS_MAX];
    int64_t count;
};

/* Goes on from one run to the next. */
static instant clock_ms;

struct tally {
    int64_t sent, refused, good;
    int64_t peak;        /* most at once */
    int64_t tries_above; /* times that it went over what the receiver allows */
};

static void depart(struct concurrency *concurrency, struct flights *flights, const struct receiver *receiver, struct random *random, struct tally *tally)
{
    bool refused = flights->count >= receiver->allows || random_below(random, 100) < receiver->fails_in_100;
    int64_t load = receiver->bears > 0 && flights->count > receiver->bears ? flights->count : receiver->bears;
    int64_t latency = receiver->bears > 0 ? receiver->answer_ms * load / receiver->bears : receiver->answer_ms;
    assert_true(flights->count < FLIGHTS_MAX);
    flights->items[flights->count].left_ms = refused ? STEP_MS : latency;
    flights->items[flights->count].latency_ms = latency;
    flights->items[flights->count].refused = refused;
    flights->items[flights->count].load = flights->count + 1;
    flights->items[flights->count].level = concurrency->limit;
    concurrency_sent(concurrency, flights->count + 1);
    tally->tries_above += flights->count == receiver->allows;
    flights->count++;
    tally->peak = flights->count > tally->peak ? flights->count : tally->peak;
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
        struct concurrency_sample sample = { .load = flights->items[i].load, .level = flights->items[i].level,
                                             .under_way = flights->count, .normal = true,
                                             .latency_ms = flights->items[i].latency_ms, .at = clock_ms };
        if (flights->items[i].refused)
            concurrency_bad(concurrency, &sample);
        else
            concurrency_good(concurrency, &sample);
        tally->good += !flights->items[i].refused;
        flights->items[i] = flights->items[--flights->count];
    }
}

/* One answer with all places taken. */
static void good(struct concurrency *concurrency, int64_t latency_ms, int64_t under_way)
{
    concurrency_sent(concurrency, under_way);
    concurrency_good(concurrency, &(struct concurrency_sample){ .load = under_way, .level = concurrency->limit, .under_way = under_way, .normal = true,
                                                                .latency_ms = latency_ms, .at = clock_ms });
}

static struct tally run(struct concurrency *concurrency, const struct receiver *receiver, int64_t seconds)
{
    struct flights flights = { .count = 0 };
    struct tally tally = { 0 };
    struct random random = { 7 };
    for (int64_t at = 0; at < seconds * 1000; at += STEP_MS, clock_ms += STEP_MS) {
        capacity_waiting(&concurrency->capacity, true, clock_ms);
        while (flights.count < concurrency->limit)
            depart(concurrency, &flights, receiver, &random, &tally);
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
        { 1, 20, 0.03, 0.95 },  { 2, 20, 0.01, 0.95 },   { 5, 20, 0.005, 0.95 }, { 5, 100, 0.005, 0.95 },
        { 10, 20, 0.005, 0.95 }, { 50, 100, 0.005, 0.95 }, { 200, 100, 0, 0.95 },  { 5, 3, 0, 0.95 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct receiver receiver = { .allows = cases[i].allows, .answer_ms = 100 };
        struct concurrency concurrency;
        concurrency_init(&concurrency, cases[i].max);
        struct tally tally = run(&concurrency, &receiver, 60);
        bool binds = cases[i].allows < cases[i].max;
        assert_int_equal(concurrency.capacity.kept.ceiling, binds ? cases[i].allows : 0);
        check(tally.tries_above <= 12, "row %zu: too much %lld times", i, (long long)tally.tries_above);
        check(run(&concurrency, &receiver, CAPACITY_HOLD_MS / 1000 - 60).tries_above == 0, "row %zu: above what was learnt", i);
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
    assert_int_equal(concurrency.capacity.kept.ceiling, 5);
    assert_int_equal(concurrency.limit, 5);
    run(&concurrency, &large, CAPACITY_HOLD_MS / 1000 + 30);
    assert_int_equal(concurrency.limit, 20);
}

/* Failures that have nothing to do with the load must not starve the destination. */
static void stray_failures(void **state)
{
    (void)state;
    static const struct { size_t fails_in_100; int64_t sent_min; } cases[] = { { 1, 13000 }, { 3, 8000 }, { 10, 2500 } };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct receiver receiver = { .allows = 1000, .answer_ms = 100, .fails_in_100 = cases[i].fails_in_100 };
        struct concurrency concurrency;
        concurrency_init(&concurrency, 25);
        struct tally tally = run(&concurrency, &receiver, 60);
        check(tally.sent >= cases[i].sent_min, "%zu%%: %lld of 15000 sent", cases[i].fails_in_100, (long long)tally.sent);
        tally = run(&concurrency, &receiver, 1200);
        check(tally.sent >= 20 * cases[i].sent_min, "%zu%%: %lld of 300000 sent", cases[i].fails_in_100, (long long)tally.sent);
        assert_int_equal(concurrency.capacity.kept.ceiling, 0);
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
    check(concurrency.limit >= 10 && concurrency.limit <= 20, "%lld at once", (long long)concurrency.limit);
    concurrency_init(&concurrency, 200);
    receiver.bears = 0;
    run(&concurrency, &receiver, 60);
    assert_int_equal(concurrency.limit, 200);
}

/* A queue of so many is borne, and one more brings it down: that is seen coming. */
static void a_queue_is_seen_before_it_fails(void **state)
{
    (void)state;
    static const struct { int64_t answer_ms, bears, allows; } cases[] = { { 50, 10, 20 }, { 200, 10, 20 }, { 100, 30, 60 }, { 100, 6, 15 } };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct receiver receiver = { .allows = cases[i].allows, .answer_ms = cases[i].answer_ms, .bears = cases[i].bears };
        struct concurrency concurrency;
        concurrency_init(&concurrency, 200);
        run(&concurrency, &receiver, 30);
        struct tally tally = run(&concurrency, &receiver, 3600);
        int64_t most = cases[i].bears * 1000 / cases[i].answer_ms * 3600;
        check(tally.refused == 0, "row %zu: %lld refused", i, (long long)tally.refused);
        check(tally.good * 100 >= most * 90, "row %zu: %lld of %lld done", i, (long long)tally.good, (long long)most);
    }
}

/* Half as quick from now on, whatever we do, and work waits: that is no queue, and is found out. */
static void slower_is_no_queue(void **state)
{
    (void)state;
    struct receiver quick = { .allows = 12, .answer_ms = 100 }, slow = { .allows = 1000, .answer_ms = 200 };
    struct concurrency concurrency;
    concurrency_init(&concurrency, 40);
    run(&concurrency, &quick, 5);
    check(concurrency.limit >= 10 && concurrency.limit <= 13, "%lld at once", (long long)concurrency.limit);
    capacity_init(&concurrency.capacity);
    run(&concurrency, &slow, 60);
    check(concurrency.limit < 40, "%lld at once", (long long)concurrency.limit);
    run(&concurrency, &slow, CONCURRENCY_QUEUE_MS / 1000 + 30);
    assert_int_equal(concurrency.limit, 40);
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
            good(&concurrency, slow ? cases[i].slow_ms : cases[i].quick_ms, concurrency.limit);
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
        good(&concurrency, i < 1000 ? 100 : 900, concurrency.limit);
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
    good(&concurrency, 0, concurrency.limit);
    for (int i = 0; i < 5000; i++)
        good(&concurrency, 15, concurrency.limit);
    assert_int_equal(concurrency.limit, 50);
}

static void it_grows_only_while_it_is_used(void **state)
{
    (void)state;
    struct concurrency concurrency;
    concurrency_init(&concurrency, 50);
    for (int i = 0; i < 5000; i++)
        good(&concurrency, 100, 1);
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
        good(&concurrency, 100, concurrency.limit);
    assert_int_equal(concurrency.limit, 53);
    concurrency_bad(&concurrency, &(struct concurrency_sample){ .load = 53, .level = 53, .under_way = 53, .normal = true, .at = clock_ms });
    assert_int_equal(concurrency.capacity.suspect, 52);
    concurrency_configure(&concurrency, 10);
    assert_int_equal(concurrency.limit, 10);
    assert_int_equal(concurrency.capacity.suspect, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_are_refused),
        cmocka_unit_test(it_recovers_after_trouble),
        cmocka_unit_test(it_finds_a_receiver_that_has_grown),
        cmocka_unit_test(stray_failures),
        cmocka_unit_test(latency_is_a_sign),
        cmocka_unit_test(a_queue_is_seen_before_it_fails),
        cmocka_unit_test(slower_is_no_queue),
        cmocka_unit_test(jobs_differ),
        cmocka_unit_test(slower_for_good),
        cmocka_unit_test(differences_of_a_few_milliseconds_say_nothing),
        cmocka_unit_test(it_grows_only_while_it_is_used),
        cmocka_unit_test(a_reload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
