/*
 * The limit against model receivers, in a small world of its own: time goes by in milliseconds, work always waits
 * unless a row says otherwise.
 */
#include "core/outage/concurrency.h"
#include "support/check.h"

enum { SLOTS_MAX = 256, NEVER = 1 << 30 };

struct receiver {
    int64_t refuses_beyond; /* at once; 0: any number */
    int64_t refusal_ms;     /* how long it takes for that */
    int64_t slows_beyond;   /* answers take longer in proportion; 0: never */
    int64_t answer_ms;      /* 0: 20 */
    size_t spread_ms;       /* answers take up to so much longer, whatever the load */
    int64_t busy_ms, busy_every_ms; /* for so long, so often, answers take three times as long; 0: never */
    size_t fails_in_1000;   /* whatever the load */
    bool asks;              /* failures say for how long to wait */
    bool is_down;
};

struct site {
    struct concurrency concurrency;
    struct receiver receiver;
    struct random random;
    int64_t offered; /* at most so many at once; 0: more than ever goes */
    instant now;
    int64_t under_way;
    struct { instant ends; int64_t latency_ms; bool good; struct concurrency_pass pass; } slots[SLOTS_MAX];
    int64_t good, failures, latency_sum, least, most;
};

static void begin(struct site *site, struct receiver receiver, int64_t max, uint64_t seed)
{
    *site = (struct site){ .receiver = receiver, .random.state = seed };
    if (site->receiver.answer_ms == 0)
        site->receiver.answer_ms = 20;
    concurrency_init(&site->concurrency, max, true);
}

static void depart(struct site *site)
{
    const struct receiver *receiver = &site->receiver;
    int64_t count = ++site->under_way, takes = receiver->answer_ms;
    bool refused = receiver->refuses_beyond > 0 && count > receiver->refuses_beyond;
    bool fails = random_below(&site->random, 1000) < receiver->fails_in_1000;
    assert_true(count <= SLOTS_MAX);
    if (receiver->slows_beyond > 0 && count > receiver->slows_beyond)
        takes = takes * count / receiver->slows_beyond;
    if (receiver->spread_ms > 0)
        takes += (int64_t)random_below(&site->random, receiver->spread_ms);
    if (receiver->busy_every_ms > 0 && site->now % receiver->busy_every_ms < receiver->busy_ms)
        takes *= 3;
    if (refused)
        takes = receiver->refusal_ms;
    site->slots[count - 1].ends = site->now + takes;
    site->slots[count - 1].latency_ms = takes;
    site->slots[count - 1].good = !refused && !fails && !receiver->is_down;
    site->slots[count - 1].pass = concurrency_begin(&site->concurrency, 1, count, site->now);
}

static void arrive(struct site *site)
{
    for (int64_t i = 0; i < site->under_way;) {
        if (site->slots[i].ends > site->now) {
            i++;
            continue;
        }
        bool good = site->slots[i].good;
        struct concurrency_answer answer = { .good = good, .asked = !good && site->receiver.asks,
                                             .latency_ms = site->slots[i].latency_ms };
        concurrency_answer(&site->concurrency, site->slots[i].pass, &answer, site->now);
        site->good += good;
        site->failures += !good;
        site->latency_sum += good ? answer.latency_ms : 0;
        site->slots[i] = site->slots[--site->under_way];
    }
}

/* For so long; the figures are of that time. */
static void run(struct site *site, int64_t ms)
{
    site->good = site->failures = site->latency_sum = site->most = 0;
    site->least = NEVER;
    for (instant until = site->now + ms; site->now < until; site->now++) {
        int64_t most = site->offered > 0 ? site->offered : SLOTS_MAX;
        arrive(site);
        while (site->under_way < site->concurrency.limit && site->under_way < most)
            depart(site);
        assert_in_range(site->concurrency.limit, 1, site->concurrency.max);
        site->least = site->concurrency.limit < site->least ? site->concurrency.limit : site->least;
        site->most = site->concurrency.limit > site->most ? site->concurrency.limit : site->most;
    }
}

static double refused(const struct site *site)
{
    return (double)site->failures / (double)(site->failures + site->good);
}

/* It is predictable: 5, and twice as many after each round of good answers. */
static void it_starts_at_five_and_doubles(void **state)
{
    (void)state;
    struct site site;
    begin(&site, (struct receiver){ 0 }, 64, 1);
    static const int64_t steps[] = { 5, 10, 20, 40, 64 };
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        check(site.concurrency.limit == steps[i], "step %zu: %lld", i, (long long)site.concurrency.limit);
        assert_int_equal(concurrency_reason(&site.concurrency), steps[i] == 64 ? LIMIT_MAX : LIMIT_STARTS);
        while (site.concurrency.limit == steps[i] && site.now < 1000)
            run(&site, 1);
        check(site.now <= 250 || steps[i] == 64, "step %zu took until %lld ms", i, (long long)site.now);
    }
    run(&site, 60000);
    assert_int_equal(site.least, 64);
    begin(&site, (struct receiver){ 0 }, 3, 1);
    run(&site, 1000);
    assert_int_equal(site.least, 3);
}

/* A machine that is busy for a moment, with something else, says nothing about the load. */
static void a_busy_moment_says_nothing(void **state)
{
    (void)state;
    static const struct receiver rows[] = {
        { .answer_ms = 5, .busy_ms = 100, .busy_every_ms = 700 },
        { .answer_ms = 20, .busy_ms = 200, .busy_every_ms = 1100 },
        { .answer_ms = 20, .busy_ms = 400, .busy_every_ms = 3100 },
    };
    struct site site;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        begin(&site, rows[i], 64, 1);
        site.now = rows[i].busy_ms;
        run(&site, 250);
        run(&site, 60000);
        check(site.least == 64, "row %zu: %d at once", i, (int)site.least);
    }
}

/* Failures that have nothing to do with the load cost themselves and nothing else; so do those that ask for a pause. */
static void random_failures_cost_themselves(void **state)
{
    (void)state;
    static const size_t shares[] = { 1, 10, 50, 200 };
    struct site site;
    begin(&site, (struct receiver){ 0 }, 64, 1);
    run(&site, 60000);
    int64_t well = site.good;
    for (size_t i = 0; i < COUNT_OF(shares); i++)
        for (uint64_t seed = 1; seed <= 5; seed++)
            for (int asks = 0; asks < 2; asks++) {
                begin(&site, (struct receiver){ .fails_in_1000 = shares[i], .asks = asks }, 64, seed);
                run(&site, 60000);
                double part = (double)site.good / (double)well, least = 0.9 * (1 - (double)shares[i] / 1000);
                check(part >= least, "%zu in 1000, seed %d: %.3f of without, not %.3f", shares[i], (int)seed, part, least);
                if (seed > 1)
                    continue; /* the long run costs ten times as much */
                run(&site, 600000);
                check(site.least >= 16, "%zu in 1000: %d at once", shares[i], (int)site.least);
            }
}

/* A sign that the load is not to blame for is ignored for longer and longer, and looked at again for all that. */
static void nothing_is_ignored_for_ever(void **state)
{
    (void)state;
    struct site site;
    begin(&site, (struct receiver){ .fails_in_1000 = 200, .answer_ms = 50 }, 8, 1);
    int64_t most = 0;
    for (int i = 0; i < 120 && most < CONCURRENCY_IGNORE_MAX_MS; i++) {
        run(&site, 60000);
        int64_t ms = site.concurrency.ignored[SIGN_FAILURES].ms;
        most = ms > most ? ms : most;
    }
    assert_int_equal(most, CONCURRENCY_IGNORE_MAX_MS);
}

/* A receiver that refuses what is too much gets what it bears, and few are refused, with stray failures or not. */
static void few_are_refused(void **state)
{
    (void)state;
    static const int64_t bears[] = { 1, 3, 8, 20, 40, 50 }, times[] = { 1, 5, 20 };
    for (size_t i = 0; i < COUNT_OF(bears); i++)
        for (size_t k = 0; k < COUNT_OF(times); k++)
            for (size_t strays = 0; strays <= 20; strays += 10) {
                struct site site;
                begin(&site, (struct receiver){ .refuses_beyond = bears[i], .refusal_ms = times[k], .fails_in_1000 = strays }, 64, 1);
                run(&site, 10000);
                double good = (double)site.good;
                run(&site, 50000);
                double part = (good + (double)site.good) / (double)(bears[i] * 3000);
                check(part >= (strays > 0 ? 0.75 : 0.85), "%d at once, refused in %d ms: %.3f of what it bears", (int)bears[i], (int)times[k], part);
                check(refused(&site) <= 0.05 + 3 * (double)strays / 1000, "%d at once, refused in %d ms: %.3f are", (int)bears[i],
                      (int)times[k], refused(&site));
                if (strays > 0)
                    continue;
                check(refused(&site) <= (bears[i] < 3 ? 0.02 : 0.006), "%d at once: %.4f are refused", (int)bears[i], refused(&site));
                assert_in_range(site.least, bears[i] * 9 / 10, bears[i]);
                assert_in_range(site.concurrency.wait_ms, 16000, CONCURRENCY_WAIT_MAX_MS);
            }
}

/* One that gets slower is not overrun, whether or not its answers take all the same time. */
static void slow_ones_are_not_overrun(void **state)
{
    (void)state;
    static const int64_t bears[] = { 3, 8, 20, 40 };
    for (size_t i = 0; i < COUNT_OF(bears); i++)
        for (size_t spread = 0; spread < 20; spread += 8) {
            struct site site;
            begin(&site, (struct receiver){ .slows_beyond = bears[i], .spread_ms = spread }, 64, 1);
            run(&site, 60000);
            double best = 20 + (double)spread / 2;
            double part = (double)site.good * best / (double)(bears[i] * 60000);
            double times = (double)site.latency_sum / (double)site.good / best;
            check(part >= 0.9, "%d at once, spread %zu: %.3f of its rate", (int)bears[i], spread, part);
            check(times <= 1.6, "%d at once, spread %zu: %.3f times its best", (int)bears[i], spread, times);
        }
}

/* Twice as slow from now on, whatever is sent: the limit is tried with half, and goes back for good. */
static void slower_for_good_is_borne(void **state)
{
    (void)state;
    struct site site;
    begin(&site, (struct receiver){ 0 }, 64, 1);
    run(&site, 10000);
    site.receiver.answer_ms = 100;
    run(&site, 5000);
    assert_int_equal(site.least, 32);
    assert_int_equal(site.concurrency.limit, 64);
    run(&site, 600000);
    assert_int_equal(site.least, 64);
}

/* What it bears changes: the limit follows, down at once and up by steps that double. */
static void it_follows(void **state)
{
    (void)state;
    struct site site;
    begin(&site, (struct receiver){ .refuses_beyond = 20, .refusal_ms = 5 }, 64, 1);
    run(&site, 60000);
    assert_in_range(site.concurrency.limit, 20, 21);
    site.receiver.refuses_beyond = 6;
    run(&site, 10000);
    run(&site, 10000);
    check(site.concurrency.limit >= 5 && site.concurrency.limit <= 7, "%d at once of 6", (int)site.concurrency.limit);
    check(refused(&site) < 0.05, "%.3f are refused", refused(&site));
    site.receiver.refuses_beyond = 0;
    run(&site, 75000); /* it waits for a minute at most before it tries */
    assert_int_equal(site.concurrency.limit, 64);
}

/* Not one good answer is an outage, whatever the load was: nothing moves, and the way back starts at 5. */
static void an_outage_moves_nothing(void **state)
{
    (void)state;
    struct site site;
    begin(&site, (struct receiver){ 0 }, 64, 1);
    run(&site, 10000);
    site.receiver.is_down = true;
    run(&site, 100);
    run(&site, 60000);
    assert_int_equal(site.least, 64);
    assert_int_equal(site.most, 64);
    assert_int_equal(concurrency_reason(&site.concurrency), LIMIT_OUTAGE);
    site.receiver.is_down = false;
    while (site.good == 0)
        run(&site, 1);
    assert_int_equal(site.concurrency.limit, 5);
    assert_int_equal(concurrency_reason(&site.concurrency), LIMIT_STARTS);
    run(&site, 1000);
    assert_int_equal(site.concurrency.limit, 64);
}

/* The gate says so: what was under way then is no way back, and one that had been found to bear 20 gets no more at once. */
static void the_way_back_doubles_up_to_what_was_borne(void **state)
{
    (void)state;
    struct site site;
    begin(&site, (struct receiver){ .refuses_beyond = 20, .refusal_ms = 5 }, 64, 1);
    run(&site, 60000);
    site.receiver.is_down = true;
    concurrency_outage(&site.concurrency);
    run(&site, 1000);
    site.receiver.is_down = false;
    run(&site, 900);
    check(site.least == 5 || site.least == 20, "%d at once", (int)site.least);
    assert_int_equal(site.concurrency.limit, 20);
    assert_int_equal(site.failures, 20); /* the outage's last */
}

/* A try of more that ends in an outage may have been the reason for it. */
static void a_collapse_is_remembered(void **state)
{
    (void)state;
    struct site site;
    begin(&site, (struct receiver){ 0 }, 64, 1);
    while (site.concurrency.limit < 20)
        run(&site, 1);
    site.receiver.is_down = true;
    run(&site, 200);
    assert_int_equal(concurrency_reason(&site.concurrency), LIMIT_OUTAGE);
    site.receiver.is_down = false;
    run(&site, 500);
    assert_int_equal(site.concurrency.limit, 10);
}

/* An outage in a trial: it is no answer to what was asked. */
static void an_outage_ends_a_trial(void **state)
{
    (void)state;
    struct site site;
    begin(&site, (struct receiver){ 0 }, 40, 1);
    run(&site, 5000);
    site.receiver.answer_ms = 100;
    while (concurrency_reason(&site.concurrency) != LIMIT_TRIAL)
        run(&site, 1);
    assert_int_equal(site.concurrency.limit, 20);
    concurrency_outage(&site.concurrency);
    assert_int_equal(site.concurrency.limit, 40);
    assert_int_equal(concurrency_reason(&site.concurrency), LIMIT_OUTAGE);
}

/* As long as not all slots are in use, nothing is learnt about the limit, in either direction. */
static void only_full_slots_count(void **state)
{
    (void)state;
    struct site site;
    begin(&site, (struct receiver){ .fails_in_1000 = 300 }, 64, 1);
    site.offered = 4;
    run(&site, 60000);
    assert_int_equal(site.least, 5);
    assert_int_equal(site.most, 5);
    site.offered = 5;
    site.receiver.fails_in_1000 = 0;
    run(&site, 1000);
    assert_int_equal(site.most, 10);
}

/* One of its first sends takes long: the round waits for it, since quick answers alone say too little. */
static void a_round_waits_for_its_first(void **state)
{
    (void)state;
    struct concurrency concurrency;
    struct concurrency_answer good = { .good = true, .latency_ms = 20 };
    concurrency_init(&concurrency, 64, true);
    struct concurrency_pass slow = concurrency_begin(&concurrency, 1, 5, 0);
    struct concurrency_pass given_back = concurrency_begin(&concurrency, 3, 5, 0);
    for (int i = 0; i < 100; i++)
        concurrency_answer(&concurrency, concurrency_begin(&concurrency, 1, 5, i), &good, i + 20);
    assert_int_equal(concurrency.limit, 5);
    concurrency_give_back(&concurrency, given_back, 3);
    concurrency_answer(&concurrency, slow, &good, 500);
    assert_int_equal(concurrency.limit, 5); /* two more have to begin: three of its first never did */
    for (int i = 0; i < 4; i++)
        concurrency_answer(&concurrency, concurrency_begin(&concurrency, 1, 5, 500), &good, 520);
    assert_int_equal(concurrency.limit, 10);
    int64_t first = concurrency.first;
    concurrency_give_back(&concurrency, given_back, 3); /* of another round: it changes nothing */
    assert_int_equal(concurrency.first, first);
}

/* A limit of one, and one that nothing is said about. */
static void small_limits(void **state)
{
    (void)state;
    struct site site;
    begin(&site, (struct receiver){ .fails_in_1000 = 500 }, 1, 1);
    run(&site, 60000);
    assert_int_equal(site.concurrency.limit, 1);
    assert_int_equal(concurrency_reason(&site.concurrency), LIMIT_MAX);
    concurrency_init(&site.concurrency, 64, false);
    site.under_way = 0;
    run(&site, 10000);
    assert_int_equal(site.least, 64);
    assert_int_equal(concurrency_reason(&site.concurrency), LIMIT_CONFIGURED);
    assert_int_equal(concurrency_rises_at(&site.concurrency), INSTANT_NONE);
}

/* A reload: less counts at once, more is tried soon, the same again changes nothing. */
static void a_reload(void **state)
{
    (void)state;
    struct site site;
    begin(&site, (struct receiver){ .refuses_beyond = 20, .refusal_ms = 5 }, 64, 1);
    run(&site, 60000);
    assert_int_equal(site.concurrency.limit, 20);
    assert_int_equal(concurrency_reason(&site.concurrency), LIMIT_BORNE);
    assert_in_range(concurrency_rises_at(&site.concurrency), site.now - 1000, site.now + CONCURRENCY_WAIT_MAX_MS);
    uint32_t number = site.concurrency.number;
    concurrency_configure(&site.concurrency, 64, true);
    assert_int_equal(site.concurrency.number, number);
    site.receiver.refuses_beyond = 0;
    concurrency_configure(&site.concurrency, 65, true);
    run(&site, 10000);
    assert_int_equal(site.concurrency.limit, 65);
    concurrency_configure(&site.concurrency, 7, true);
    assert_int_equal(site.concurrency.limit, 7);
    concurrency_configure(&site.concurrency, 30, false);
    assert_int_equal(site.concurrency.limit, 30);
    concurrency_configure(&site.concurrency, 31, false);
    assert_int_equal(site.concurrency.limit, 31);
    concurrency_configure(&site.concurrency, 31, true);
    assert_int_equal(site.concurrency.limit, 5);
    concurrency_configure(&site.concurrency, 3, true);
    assert_int_equal(site.concurrency.limit, 3);
    concurrency_configure(&site.concurrency, 100, true);
    run(&site, 1000);
    assert_int_equal(site.concurrency.limit, 100);
}

/* A clock that is put back makes no wait longer. */
static void the_clock_goes_back(void **state)
{
    (void)state;
    struct site site;
    begin(&site, (struct receiver){ .refuses_beyond = 20, .refusal_ms = 5 }, 64, 1);
    site.now = (instant)1000 * 3600 * 1000;
    run(&site, 60000);
    for (int64_t i = 0; i < site.under_way; i++)
        site.slots[i].ends -= 3600 * 1000;
    site.now -= 3600 * 1000;
    site.receiver.refuses_beyond = 0;
    run(&site, 75000);
    assert_int_equal(site.concurrency.limit, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_starts_at_five_and_doubles),
        cmocka_unit_test(a_busy_moment_says_nothing),
        cmocka_unit_test(random_failures_cost_themselves),
        cmocka_unit_test(nothing_is_ignored_for_ever),
        cmocka_unit_test(few_are_refused),
        cmocka_unit_test(slow_ones_are_not_overrun),
        cmocka_unit_test(slower_for_good_is_borne),
        cmocka_unit_test(it_follows),
        cmocka_unit_test(an_outage_moves_nothing),
        cmocka_unit_test(the_way_back_doubles_up_to_what_was_borne),
        cmocka_unit_test(a_collapse_is_remembered),
        cmocka_unit_test(an_outage_ends_a_trial),
        cmocka_unit_test(only_full_slots_count),
        cmocka_unit_test(a_round_waits_for_its_first),
        cmocka_unit_test(small_limits),
        cmocka_unit_test(a_reload),
        cmocka_unit_test(the_clock_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
