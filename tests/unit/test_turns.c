#include "support/scarce.h"

#include "base/heap.c"
#include "core/fairness/turns.h"
#include "support/check.h"

#include <time.h>

static const instant start = INT64_C(1736678400000);
static const struct turns_settings email = { .round_robin = true, .batch = 3, .base_priority = 5 };

/* Lanes with their queues, and a history that a test can read: one letter or number a dispatch. */
struct lane {
    struct turn turn;
    int64_t jobs;
};

struct field {
    struct turns turns;
    struct lane *lanes;
    size_t count;
    instant now;
};

static void field_begin(struct field *field, struct turns_settings settings, size_t count)
{
    *field = (struct field){ .lanes = test_calloc(count, sizeof(struct lane)), .count = count, .now = start };
    turns_init(&field->turns, &settings);
    assert_int_equal(turns_reserve(&field->turns, count), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        turn_init(&field->lanes[i].turn, 1);
}

static void field_end(struct field *field)
{
    turns_release(&field->turns);
    test_free(field->lanes);
}

static void give(struct field *field, size_t lane, int64_t jobs)
{
    field->lanes[lane].jobs += jobs;
    turns_add(&field->turns, &field->lanes[lane].turn);
}

/* One dispatch; the lane's number, or -1 when nobody may send. */
static int dispatch(struct field *field)
{
    int64_t max;
    struct turn *turn = turns_front(&field->turns, &max);
    if (!turn)
        return -1;
    assert_true(max > 0);
    struct lane *lane = (struct lane *)turn;
    turns_took(&field->turns, 1, field->now);
    if (--lane->jobs == 0)
        turns_remove(&field->turns, turn);
    return (int)(lane - field->lanes);
}

static void check_order(struct field *field, const char *expected, const char *name)
{
    for (size_t i = 0; expected[i]; i++) {
        int lane = dispatch(field);
        check(lane == expected[i] - 'A', "%s: dispatch %zu of %s is %c", name, i, expected, lane < 0 ? '-' : 'A' + lane);
    }
}

/* S2-062..S2-064, S2-067, S2-068, C-44 */
/* All whose time has come; how many. */
static size_t unpark_due(struct turns *turns, instant now)
{
    size_t count = 0;
    while (turns_unpark_due(turns, now))
        count++;
    return count;
}

static void priority_falls_with_the_rounds(void **state)
{
    (void)state;
    static const struct {
        int64_t base, rounds, priority;
    } cases[] = {
        { 5, 0, 5 }, { 5, 1, 4 }, { 5, 3, 2 }, { 5, 4, 1 }, { 5, 5, 1 }, { 5, 9, 1 }, { 5, INT64_MAX, 1 },
        { 1, 0, 1 }, { 1, 7, 1 }, { 100, 98, 2 }, { 100, 99, 1 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check(turns_priority(cases[i].base, cases[i].rounds) == cases[i].priority, "row %zu", i);
}

/* S2-061, S2-066, S2-070: pick, process, note, rotate after three */
static void three_in_a_row_then_the_next(void **state)
{
    (void)state;
    struct field field;
    field_begin(&field, email, 3);
    give(&field, 0, 7);
    give(&field, 1, 4);
    give(&field, 2, 1);
    check_order(&field, "AAABBBCAAABA", "three lanes");
    assert_int_equal(dispatch(&field), -1);
    assert_int_equal(turns_count(&field.turns), 0);
    field_end(&field);
}

/* A-17, S2-059, C-45: dispatches are counted, whatever is still under way */
static void one_job_beside_ten_thousand(void **state)
{
    (void)state;
    for (int64_t before = 0; before < 20; before++) {
        struct field field;
        field_begin(&field, email, 2);
        give(&field, 0, 10000);
        for (int64_t i = 0; i < before; i++)
            assert_int_equal(dispatch(&field), 0);
        give(&field, 1, 1);
        int waited = 0;
        while (dispatch(&field) != 1)
            waited++;
        check(waited <= (before == 0 ? 3 : 2), "after %lld: %d dispatches before it", (long long)before, waited);
        field_end(&field);
    }
}

/* S2-065: whoever was not served lately comes before a whole ring of tenants with a backlog */
static void a_quiet_tenant_comes_first(void **state)
{
    (void)state;
    struct random random = { 65 };
    struct field field;
    field_begin(&field, email, 1010);
    for (size_t i = 0; i < 1000; i++)
        give(&field, i, 1000000);
    for (int i = 0; i < 2 * 3000; i++)
        dispatch(&field);
    for (int quiet = 1000; quiet < 1010; quiet++) {
        for (size_t i = random_below(&random, 4000); i > 0; i--)
            dispatch(&field);
        give(&field, (size_t)quiet, 1);
        int waited = 0;
        while (dispatch(&field) != quiet)
            waited++;
        check(waited < 3, "tenant %d: %d dispatches before it", quiet, waited);
    }
    field_end(&field);
}

static void longer_silence_is_more_urgent(void **state)
{
    (void)state;
    struct field field;
    field_begin(&field, email, 4);
    give(&field, 0, 100);
    give(&field, 1, 3);
    check_order(&field, "AAABBBAAAAAA", "B is silent for a while"); /* three rounds */
    give(&field, 2, 3);
    check_order(&field, "CCCAAAAAA", "C is silent for less");
    give(&field, 3, 3);
    check_order(&field, "D", "D was never served");
    give(&field, 2, 1);
    give(&field, 1, 1);
    assert_int_equal(turn_figures(&field.turns, &field.lanes[1].turn).priority, 2);
    assert_int_equal(turn_figures(&field.turns, &field.lanes[2].turn).priority, 4);
    check_order(&field, "DDBCAAA", "the longer silence first, and D's turn is not cut short");
    field_end(&field);
}

/* S2-069 */
static void figures_of_the_document(void **state)
{
    (void)state;
    static const struct {
        char served;
        struct turn_figures a, b;
    } cases[] = {
        { 'A', { 1000, 0, 5, 1, 1 }, { INSTANT_NONE, 0, 5, 0, 0 } },
        { 'A', { 2000, 0, 5, 2, 2 }, { INSTANT_NONE, 0, 5, 0, 0 } },
        { 'A', { 3000, 0, 5, 3, 3 }, { INSTANT_NONE, 0, 5, 0, 0 } },
        { 'B', { 3000, 0, 5, 3, 0 }, { 4000, 0, 5, 1, 1 } }, /* and has no more */
        { 'A', { 5000, 0, 5, 4, 1 }, { 4000, 0, 5, 1, 0 } },
        { 'A', { 6000, 0, 5, 5, 2 }, { 4000, 0, 5, 1, 0 } },
        { 'A', { 7000, 0, 5, 6, 3 }, { 4000, 0, 5, 1, 0 } },
        { 'A', { 8000, 0, 5, 7, 1 }, { 4000, 1, 4, 1, 0 } },
        { 'A', { 9000, 0, 5, 8, 2 }, { 4000, 1, 4, 1, 0 } },
        { 'A', { 10000, 0, 5, 9, 3 }, { 4000, 1, 4, 1, 0 } },
        { 'A', { 11000, 0, 5, 10, 1 }, { 4000, 2, 3, 1, 0 } },
    };
    struct field field;
    field_begin(&field, email, 2);
    give(&field, 0, 100);
    give(&field, 1, 1);
    field.now = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        field.now += 1000;
        check(dispatch(&field) == cases[i].served - 'A', "row %zu", i);
        struct turn_figures a = turn_figures(&field.turns, &field.lanes[0].turn);
        struct turn_figures b = turn_figures(&field.turns, &field.lanes[1].turn);
        check(memcmp(&a, &cases[i].a, sizeof a) == 0, "row %zu: A", i);
        check(memcmp(&b, &cases[i].b, sizeof b) == 0, "row %zu: B", i);
    }
    field_end(&field);
}

/* ---- Shares ---- */

static double jain(const struct field *field)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < field->count; i++) {
        double total = (double)field->lanes[i].turn.total;
        sum += total;
        squares += total * total;
    }
    return sum * sum / ((double)field->count * squares);
}

/* S3-028: equal tenants get equal shares, whether their jobs come singly or in heaps */
static void equal_tenants_have_equal_shares(void **state)
{
    (void)state;
    struct random random = { 28 };
    struct field field;
    field_begin(&field, email, 200);
    for (size_t i = 0; i < field.count; i++)
        give(&field, i, i % 2 ? 1 : 100000);
    for (int i = 0; i < 60007; i++) {
        int lane = dispatch(&field);
        if (field.lanes[lane].jobs == 0)
            give(&field, (size_t)lane, 1 + (int64_t)random_below(&random, 2 * ((size_t)lane % 7) + 1));
    }
    check(jain(&field) >= 0.99, "Jain's index is %f", jain(&field));
    field_end(&field);
}

/* S2-125 */
static void weights_are_shares(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t heavy, light;
        int64_t weight;
    } cases[] = {
        { "4 to 1", 1, 1, 4 }, { "one gold among many", 1, 50, 4 }, { "tiers", 10, 30, 4 }, { "the largest weight", 1, 3, 1000 },
    };
    for (size_t row = 0; row < COUNT_OF(cases); row++) {
        struct field field;
        size_t count = cases[row].heavy + cases[row].light;
        field_begin(&field, email, count);
        for (size_t i = 0; i < cases[row].heavy; i++)
            turn_weigh(&field.lanes[i].turn, cases[row].weight);
        for (size_t i = 0; i < count; i++)
            give(&field, i, 10000000);
        for (int i = 0; i < 100000; i++)
            dispatch(&field);
        double weights = (double)(cases[row].heavy * (size_t)cases[row].weight + cases[row].light);
        for (size_t i = 0; i < count; i++) {
            double due = 100000.0 * (i < cases[row].heavy ? (double)cases[row].weight : 1) / weights;
            double got = (double)field.lanes[i].turn.total;
            check(got >= due * 0.99 - 3 && got <= due * 1.01 + 3, "%s: lane %zu has %.0f of %.0f", cases[row].name, i, got, due);
        }
        field_end(&field);
    }
}

static void a_heavy_lane_hands_over_after_each_batch(void **state)
{
    (void)state;
    struct field field;
    field_begin(&field, email, 3);
    turn_weigh(&field.lanes[0].turn, 2);
    for (size_t i = 0; i < 3; i++)
        give(&field, i, 100);
    check_order(&field, "AAABBBCCCAAA" "BBBCCCAAAAAA" "BBBCCC", "A counts twice");
    turn_weigh(&field.lanes[0].turn, 1);
    check_order(&field, "AAABBBCCCAAABBBCCCAAA", "from its next round on");
    field_end(&field);
}

/* ---- Waiting ---- */

enum { TENANTS = 1000, BIG = 10, SLOTS = 120000, WAIT_MAX = 20000, QUEUE_MAX = 64 };

struct crowd {
    struct field field;
    int arrived[TENANTS][QUEUE_MAX]; /* when each waiting job came */
    size_t waits[WAIT_MAX];
    size_t served;
};

static int percentile_99(const struct crowd *crowd)
{
    size_t seen = 0;
    for (int wait = 0; wait < WAIT_MAX; wait++)
        if ((seen += crowd->waits[wait]) * 100 >= crowd->served * 99)
            return wait;
    return WAIT_MAX;
}

static void crowd_arrive(struct crowd *crowd, size_t tenant, int slot)
{
    int64_t waiting = crowd->field.lanes[tenant].jobs;
    check(waiting < QUEUE_MAX, "tenant %zu cannot keep up", tenant);
    crowd->arrived[tenant][waiting] = slot;
    give(&crowd->field, tenant, 1);
}

static void crowd_serve(struct crowd *crowd, int slot)
{
    int tenant = dispatch(&crowd->field);
    if (tenant < BIG)
        return; /* a big one, or nobody */
    int *arrived = crowd->arrived[tenant];
    int wait = slot - arrived[0] + 1;
    memmove(arrived, arrived + 1, (QUEUE_MAX - 1) * sizeof *arrived);
    check(wait < WAIT_MAX, "tenant %d waited for %d", tenant, wait);
    crowd->waits[wait]++;
    crowd->served++;
}

/* One dispatch a slot. Bursts of five small tenants' jobs come at `load` percent of what can be sent. */
static int p99_of_small_ones(struct crowd *crowd, size_t big, size_t load)
{
    struct random random = { 17 };
    memset(crowd, 0, sizeof *crowd);
    field_begin(&crowd->field, email, TENANTS);
    for (size_t i = 0; i < big; i++)
        give(&crowd->field, i, 10000000);
    for (int slot = 0; slot < SLOTS; slot++) {
        if (random_below(&random, 500) < load)
            for (int i = 0; i < 5; i++)
                crowd_arrive(crowd, BIG + random_below(&random, TENANTS - BIG), slot);
        crowd_serve(crowd, slot);
    }
    check(crowd->served > SLOTS * load / 100 - 3000, "only %zu were served", crowd->served);
    field_end(&crowd->field);
    return percentile_99(crowd);
}

/* Every small tenant has one job, and another as soon as that is sent: the longest ring there can be. */
static int p99_in_a_full_ring(struct crowd *crowd, size_t big)
{
    memset(crowd, 0, sizeof *crowd);
    field_begin(&crowd->field, email, TENANTS);
    for (size_t i = 0; i < big; i++)
        give(&crowd->field, i, 10000000);
    for (size_t i = BIG; i < TENANTS; i++)
        crowd_arrive(crowd, i, 0);
    for (int slot = 0; slot < SLOTS; slot++) {
        crowd_serve(crowd, slot);
        for (size_t i = BIG; i < TENANTS; i++)
            if (crowd->field.lanes[i].jobs == 0)
                crowd_arrive(crowd, i, slot);
    }
    field_end(&crowd->field);
    return percentile_99(crowd);
}

static void small_tenants_wait_at_most_twice_as_long_as_alone(void **state)
{
    (void)state;
    static struct crowd crowd;
    for (size_t load = 30; load <= 90; load += 20) {
        int alone = p99_of_small_ones(&crowd, 0, load);
        int beside = p99_of_small_ones(&crowd, BIG, load);
        check(alone > 3 && beside <= 2 * alone, "load %zu%%: p99 is %d dispatches, alone %d", load, beside, alone);
    }
    int alone = p99_in_a_full_ring(&crowd, 0);
    int beside = p99_in_a_full_ring(&crowd, BIG);
    check(alone >= TENANTS - BIG && beside <= 2 * alone, "ring: p99 is %d dispatches, alone %d", beside, alone);
}

/* New tenants without end, each with one job, more than can be sent: those already there are still served. */
static void endless_new_tenants_starve_nobody(void **state)
{
    (void)state;
    enum { OLD = 5, NEW = 60000 };
    struct field field;
    field_begin(&field, email, OLD + NEW);
    for (size_t i = 0; i < OLD; i++)
        give(&field, i, 100000);
    int64_t last[OLD] = { 0 };
    int64_t longest = 0;
    for (size_t i = 0; i < NEW; i++) {
        give(&field, OLD + i, 1);
        int lane = dispatch(&field);
        if (lane < OLD) {
            longest = (int64_t)i - last[lane] > longest ? (int64_t)i - last[lane] : longest;
            last[lane] = (int64_t)i;
        }
    }
    for (size_t i = 0; i < OLD; i++)
        check(field.lanes[i].turn.total > 3 * NEW / (2 * TURNS_LATE_MIN) - 3, "lane %zu: %lld", i, (long long)field.lanes[i].turn.total);
    check(longest <= 3 * TURNS_LATE_MIN, "one was not served for %lld dispatches", (long long)longest);
    field_end(&field);
}

static void a_hundred_thousand_lanes(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    struct field field;
    field_begin(&field, email, MANY + 1);
    scarce_left = 0; /* room was made: from here on nothing is allocated */
    for (size_t i = 0; i < MANY; i++)
        give(&field, i, 1000);
    for (int i = 0; i < MANY * 3; i++)
        dispatch(&field);
    for (size_t i = 0; i < MANY; i++)
        check(field.lanes[i].turn.total == 3, "lane %zu", i);
    for (int i = 0; i < MANY * 3 / 2; i++)
        dispatch(&field);
    give(&field, MANY, 1);
    int waited = 0;
    while (dispatch(&field) != MANY)
        waited++;
    check(waited < 3, "%d dispatches before it", waited);
    for (size_t i = 0; i < MANY; i += 2)
        turns_park(&field.turns, &field.lanes[i].turn, start + (instant)i);
    assert_int_equal(unpark_due(&field.turns, start + MANY), MANY / 2);
    scarce_left = -1;
    field_end(&field);
}

/* ---- Parking ---- */

/* S3-029: a taxpayer at its own limit neither loses its place nor holds up the others */
static void a_parked_lane_keeps_its_place(void **state)
{
    (void)state;
    struct field field;
    field_begin(&field, email, 4);
    for (size_t i = 0; i < 4; i++)
        give(&field, i, 100);
    assert_true(turns_next_due(&field.turns) == INSTANT_NONE);
    turns_park(&field.turns, &field.lanes[0].turn, start + 50);
    turns_park(&field.turns, &field.lanes[1].turn, start + 40);
    give(&field, 0, 1); /* more work does not bring it back */
    assert_int_equal(turns_count(&field.turns), 4);
    assert_int_equal(turns_next_due(&field.turns), start + 40);
    check_order(&field, "CCC", "the others go on");
    assert_int_equal(unpark_due(&field.turns, start + 39), 0);
    assert_int_equal(unpark_due(&field.turns, start + 50), 2);
    check_order(&field, "AAABBBDDDCCCAAA", "as if nothing had been");
    check_order(&field, "BB", "half a turn");
    turns_park(&field.turns, &field.lanes[1].turn, start + 60);
    turns_park(&field.turns, &field.lanes[1].turn, start + 90); /* longer */
    check_order(&field, "DDDCCCAAADDD", "without B");
    assert_int_equal(unpark_due(&field.turns, start + 60), 0);
    assert_int_equal(turn_figures(&field.turns, &field.lanes[1].turn).rounds_without, 0);
    check_order(&field, "CCCAAADDD", "still without");
    assert_int_equal(turn_figures(&field.turns, &field.lanes[1].turn).rounds_without, 1);
    turns_unpark(&field.turns, &field.lanes[1].turn);
    turns_unpark(&field.turns, &field.lanes[1].turn);
    check_order(&field, "BBBCCC", "a round without service makes it more urgent");
    field_end(&field);
}

static void all_parked_is_nobody(void **state)
{
    (void)state;
    struct field field;
    field_begin(&field, email, 2);
    give(&field, 0, 1);
    give(&field, 1, 1);
    turns_park(&field.turns, &field.lanes[0].turn, start + 10);
    turns_park(&field.turns, &field.lanes[1].turn, start + 10);
    assert_int_equal(dispatch(&field), -1);
    turns_remove(&field.turns, &field.lanes[0].turn); /* cancelled while it waits */
    assert_int_equal(unpark_due(&field.turns, start + 10), 1);
    assert_int_equal(dispatch(&field), 1);
    assert_int_equal(turns_count(&field.turns), 0);
    field_end(&field);
}

/* ---- Afresh ---- */

static void a_round_that_begins_afresh_has_any_order(void **state)
{
    (void)state;
    struct field field;
    field_begin(&field, email, 3);
    for (size_t i = 0; i < 3; i++)
        give(&field, i, 100);
    check_order(&field, "AAABB", "C has not had its turn");
    assert_true(turns_may_overtake(&field.turns, &field.lanes[2].turn)); /* it came anew */
    assert_false(turns_may_overtake(&field.turns, &field.lanes[0].turn));
    turns_begin_afresh(&field.turns);
    for (size_t i = 0; i < 3; i++)
        assert_true(turns_may_overtake(&field.turns, &field.lanes[i].turn));
    turns_set_aside(&field.turns, &field.lanes[2].turn, 1);
    turns_set_aside(&field.turns, &field.lanes[1].turn, 1);
    assert_false(turns_may_overtake(&field.turns, &field.lanes[2].turn)); /* it stands nowhere */
    check_order(&field, "AAA", "somebody says that A matters most");
    turns_begin_afresh(&field.turns); /* some are aside: no */
    turns_bring_back(&field.turns, 1);
    check_order(&field, "C", "who has waited for longest");
    turns_begin_afresh(&field.turns); /* not everybody has had its turn: no */
    check_order(&field, "CCBBBAAACCCBBB", "later rounds keep that order");
    assert_false(turns_may_overtake(&field.turns, &field.lanes[0].turn));
    turns_begin_afresh(&field.turns);
    assert_true(turns_may_overtake(&field.turns, &field.lanes[0].turn));
    check_order(&field, "AAACCCBBBAAA", "and once more");
    field_end(&field);
}

/* ---- Aside ---- */

static void those_aside_wait_for_the_others(void **state)
{
    (void)state;
    struct field field;
    field_begin(&field, email, 4);
    for (size_t i = 0; i < 4; i++)
        give(&field, i, 100);
    check_order(&field, "A", "a turn begins");
    turns_set_aside(&field.turns, &field.lanes[0].turn, 3);
    turns_set_aside(&field.turns, &field.lanes[1].turn, 2);
    turns_set_aside(&field.turns, &field.lanes[2].turn, 3);
    give(&field, 1, 1); /* more work does not bring it back */
    assert_int_equal(turns_count(&field.turns), 4);
    assert_int_equal(turns_aside_class(&field.turns), 2);
    int64_t max;
    assert_true(turns_front(&field.turns, &max) == &field.lanes[3].turn);
    assert_int_equal(max, 3); /* it is not alone */
    assert_int_equal(turns_front_round(&field.turns), 1);
    check_order(&field, "DDD", "nobody else is there");
    assert_int_equal(turns_front_round(&field.turns), 2);
    check_order(&field, "DDD", "and the next round too");
    unpark_due(&field.turns, INSTANT_MAX);
    turns_bring_back(&field.turns, 1);
    check_order(&field, "DDD", "time does not bring them back");
    turns_bring_back(&field.turns, 2);
    assert_int_equal(turns_aside_class(&field.turns), 3);
    check_order(&field, "BBBDDDBBBDDD", "one of them");
    turns_bring_back_one(&field.turns, &field.lanes[2].turn);
    turns_bring_back_one(&field.turns, &field.lanes[2].turn);
    check_order(&field, "CCC", "another, and it has waited");
    turns_remove(&field.turns, &field.lanes[0].turn); /* cancelled while it waits */
    assert_int_equal(turns_aside_class(&field.turns), INT64_MAX);
    assert_int_equal(turns_count(&field.turns), 3);
    turns_bring_back(&field.turns, INT64_MAX);
    assert_int_equal(turns_count(&field.turns), 3);
    field_end(&field);
}

/* ---- The rest ---- */

static void alone_it_takes_what_it_likes(void **state)
{
    (void)state;
    struct field once, singly;
    int64_t max;
    field_begin(&once, email, 2);
    field_begin(&singly, email, 2);
    give(&once, 0, 1000);
    give(&singly, 0, 1000);
    for (int64_t count = 1; count < 12; count++) {
        assert_ptr_equal(turns_front(&once.turns, &max), &once.lanes[0].turn);
        assert_true(max == INT64_MAX);
        turns_took(&once.turns, count, start);
        for (int64_t i = 0; i < count; i++)
            dispatch(&singly);
        for (size_t i = 0; i < 2; i++) {
            struct turn_figures a = turn_figures(&once.turns, &once.lanes[i].turn);
            struct turn_figures b = turn_figures(&singly.turns, &singly.lanes[i].turn);
            check(memcmp(&a, &b, sizeof a) == 0, "lane %zu after %lld", i, (long long)count);
        }
    }
    give(&once, 1, 1);
    turns_front(&once.turns, &max);
    assert_true(max <= 3); /* somebody waits now */
    field_end(&once);
    field_end(&singly);
}

static void what_was_not_there_is_given_back(void **state)
{
    (void)state;
    struct field field;
    int64_t max;
    field_begin(&field, email, 2);
    give(&field, 0, 100);
    give(&field, 1, 100);
    turns_took(&field.turns, 2, start);
    turns_returned(&field.turns, &field.lanes[0].turn, 2); /* its turn goes on */
    assert_ptr_equal(turns_front(&field.turns, &max), &field.lanes[0].turn);
    assert_int_equal(max, 3);
    assert_int_equal(field.lanes[0].turn.total, 0);
    turns_took(&field.turns, 3, start);
    turns_returned(&field.turns, &field.lanes[0].turn, 3); /* its turn is over */
    assert_int_equal(field.lanes[0].turn.total, 0);
    check_order(&field, "BBBAAABBB", "given back");
    turns_took(&field.turns, 1, start);
    turns_returned(&field.turns, &field.lanes[0].turn, 4); /* more than this turn took */
    check_order(&field, "AAABBB", "not more than a turn");
    field_end(&field);
}

/* S2-060 */
static void without_turns_who_came_first_is_first(void **state)
{
    (void)state;
    struct field field;
    int64_t max;
    field_begin(&field, (struct turns_settings){ .round_robin = false, .batch = 3, .base_priority = 5 }, 3);
    give(&field, 1, 5);
    give(&field, 0, 4);
    turns_front(&field.turns, &max);
    assert_true(max == INT64_MAX);
    check_order(&field, "BBBBBA", "by arrival");
    give(&field, 2, 2);
    turns_park(&field.turns, &field.lanes[0].turn, start + 1);
    check_order(&field, "C", "A may not for now");
    unpark_due(&field.turns, start + 1);
    check_order(&field, "AAAC", "A was there before");
    field_end(&field);
}

static void settings_change_under_way(void **state)
{
    (void)state;
    struct field field;
    field_begin(&field, (struct turns_settings){ .round_robin = true, .batch = 10, .base_priority = 5 }, 4);
    for (size_t i = 0; i < 3; i++)
        give(&field, i, 1000);
    check_order(&field, "AAAAAAA", "ten in a row");
    turns_configure(&field.turns, &(struct turns_settings){ .round_robin = true, .batch = 2, .base_priority = 3 });
    check_order(&field, "BBCCAABBCCAA", "two in a row; A is in the middle of a turn that is over");
    turns_configure(&field.turns, &(struct turns_settings){ .round_robin = false, .batch = 2, .base_priority = 3 });
    check_order(&field, "BBBBBBBBB", "no turns");
    turns_configure(&field.turns, &email);
    give(&field, 3, 1);
    assert_int_equal(turns_count(&field.turns), 4);
    for (int i = 0; i < 12; i++)
        dispatch(&field);
    assert_int_equal(field.lanes[3].jobs, 0);
    field_end(&field);
}

static void no_memory_is_said_when_room_is_made(void **state)
{
    (void)state;
    struct turns turns;
    turns_init(&turns, &email);
    for (long allowed = 0; allowed < 3; allowed++) {
        scarce_left = allowed;
        assert_int_equal(turns_reserve(&turns, 100), STATUS_NO_MEMORY);
        turns_release(&turns);
    }
    scarce_left = 3;
    assert_int_equal(turns_reserve(&turns, 100), STATUS_OK);
    scarce_left = -1;
    assert_true(turns.ready.capacity >= 100 && turns.parked.capacity >= 100 && turns.aside.capacity >= 100);
    turns_release(&turns);
}

/* S2-115: whose turn it is takes far less than 5 ms of a job, also with ten thousand companies. */
static void turns_are_quick(void **state)
{
    (void)state;
    enum { MANY = 10000, DISPATCHES = 100000 };
    struct field field;
    struct timespec before, after;
    field_begin(&field, email, MANY);
    for (size_t i = 0; i < MANY; i++)
        give(&field, i, 100);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    for (int i = 0; i < DISPATCHES; i++)
        assert_true(dispatch(&field) >= 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    double seconds = (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
    check(seconds / DISPATCHES < 0.0005, "%f s a job", seconds / DISPATCHES); /* a tenth: the rest is the store's */
    field_end(&field);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(priority_falls_with_the_rounds),
        cmocka_unit_test(three_in_a_row_then_the_next),
        cmocka_unit_test(one_job_beside_ten_thousand),
        cmocka_unit_test(a_quiet_tenant_comes_first),
        cmocka_unit_test(longer_silence_is_more_urgent),
        cmocka_unit_test(figures_of_the_document),
        cmocka_unit_test(equal_tenants_have_equal_shares),
        cmocka_unit_test(weights_are_shares),
        cmocka_unit_test(a_heavy_lane_hands_over_after_each_batch),
        cmocka_unit_test(small_tenants_wait_at_most_twice_as_long_as_alone),
        cmocka_unit_test(endless_new_tenants_starve_nobody),
        cmocka_unit_test(a_hundred_thousand_lanes),
        cmocka_unit_test(a_parked_lane_keeps_its_place),
        cmocka_unit_test(all_parked_is_nobody),
        cmocka_unit_test(a_round_that_begins_afresh_has_any_order),
        cmocka_unit_test(those_aside_wait_for_the_others),
        cmocka_unit_test(alone_it_takes_what_it_likes),
        cmocka_unit_test(what_was_not_there_is_given_back),
        cmocka_unit_test(without_turns_who_came_first_is_first),
        cmocka_unit_test(settings_change_under_way),
        cmocka_unit_test(no_memory_is_said_when_room_is_made),
        cmocka_unit_test(turns_are_quick),
    };
    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
