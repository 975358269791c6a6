/*
 * Whose turn it is.
 */
#include "core/turns.h"

#include "support/check.h"

#include <string.h>

enum { LANES = 5 };

struct ring {
    struct turns turns;
    struct turn lanes[LANES];
    int64_t work[LANES];
};

static void ring_begin(struct ring *ring, int64_t batch)
{
    memset(ring, 0, sizeof *ring);
    turns_init(&ring->turns, batch);
}

static void give(struct ring *ring, int lane, int64_t work)
{
    ring->work[lane] += work;
    if (ring->work[lane] > 0)
        turns_add(&ring->turns, &ring->lanes[lane]);
}

/* Takes up to `max` from whoever is in front; -1: nobody has work. */
static int serve(struct ring *ring, int64_t max, int64_t *ret_taken)
{
    int64_t allowed;
    struct turn *front = turns_front(&ring->turns, &allowed);
    if (!front)
        return -1;
    int lane = (int)(front - ring->lanes);
    check(allowed >= 1 && allowed <= ring->turns.batch, "lane %d may take %lld", lane, (long long)allowed);
    int64_t taken = allowed < max ? allowed : max;
    taken = taken < ring->work[lane] ? taken : ring->work[lane];
    turns_took(&ring->turns, taken);
    ring->work[lane] -= taken;
    if (ring->work[lane] == 0)
        turns_remove(&ring->turns, front);
    *ret_taken = taken;
    return lane;
}

/* Serves one job at a time and tells the order as letters. */
static void order_of(struct ring *ring, char *ret_order, size_t size)
{
    int64_t taken;
    size_t len = 0;
    for (int lane; len < size - 1 && (lane = serve(ring, 1, &taken)) >= 0;)
        ret_order[len++] = (char)('A' + lane);
    ret_order[len] = '\0';
}

static void nobody_has_work(void **state)
{
    struct ring ring;
    int64_t max = -7;
    (void)state;
    ring_begin(&ring, 3);
    assert_null(turns_front(&ring.turns, &max));
    assert_int_equal(max, -7);
    turns_remove(&ring.turns, &ring.lanes[0]); /* not in it: nothing happens */
    assert_int_equal(ring.turns.count, 0);
}

static void each_order_is_as_expected(void **state)
{
    static const struct { const char *name; int64_t batch, work[LANES]; const char *order; } cases[] = {
        { "one lane alone", 3, { 5 }, "AAAAA" },
        { "one job a turn", 1, { 3, 3, 3 }, "ABCABCABC" },
        { "A-17 three a turn", 3, { 9, 1 }, "AAABAAAAAA" },
        { "a short lane leaves the ring", 2, { 4, 1, 3 }, "AABCCAAC" },
        { "no turns at all: the first until it is done", INT64_MAX, { 4, 2, 1 }, "AAAABBC" },
        { "a lane that ends exactly with its batch", 2, { 2, 2 }, "AABB" },
        { "five lanes", 1, { 1, 2, 1, 2, 1 }, "ABCDEBD" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ring ring;
        char order[64];
        ring_begin(&ring, cases[i].batch);
        for (int lane = 0; lane < LANES; lane++)
            give(&ring, lane, cases[i].work[lane]);
        order_of(&ring, order, sizeof order);
        check(strcmp(order, cases[i].order) == 0, "%s: %s", cases[i].name, order);
        assert_int_equal(ring.turns.count, 0);
        assert_null(ring.turns.front);
    }
}

static void a_lane_stands_in_the_ring_once(void **state)
{
    struct ring ring;
    int64_t max;
    (void)state;
    ring_begin(&ring, 2);
    give(&ring, 0, 1);
    give(&ring, 1, 1);
    give(&ring, 0, 5); /* stays where it is */
    assert_int_equal(ring.turns.count, 2);
    assert_ptr_equal(turns_front(&ring.turns, &max), &ring.lanes[0]);
    assert_int_equal(max, 2);
    turns_took(&ring.turns, 1);
    turns_front(&ring.turns, &max);
    assert_int_equal(max, 1); /* what is left of its turn */
}

static void who_leaves_and_comes_back_stands_last(void **state)
{
    struct ring ring;
    int64_t max;
    (void)state;
    ring_begin(&ring, 3);
    for (int lane = 0; lane < 3; lane++)
        give(&ring, lane, 9);
    turns_took(&ring.turns, 2);
    turns_remove(&ring.turns, &ring.lanes[0]);
    turns_add(&ring.turns, &ring.lanes[0]);
    assert_ptr_equal(turns_front(&ring.turns, &max), &ring.lanes[1]);
    assert_int_equal(max, 3);
    turns_remove(&ring.turns, &ring.lanes[2]); /* from the middle */
    turns_took(&ring.turns, 3);
    assert_ptr_equal(turns_front(&ring.turns, &max), &ring.lanes[0]);
    assert_int_equal(max, 3); /* what it took before it left is forgotten */
}

/*
 * Invariant 7, whatever comes and goes: between the moment a lane gets work and its first dispatch, nobody else
 * gets more than one batch.
 */
static void nobody_waits_longer_than_a_round(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct random random = { seed };
        struct ring ring;
        int64_t since[LANES] = { 0 }; /* dispatches of others since it has had work and not been served */
        int64_t taken;
        ring_begin(&ring, 1 + (int64_t)random_below(&random, 4));
        for (int step = 0; step < 300; step++) {
            int lane = (int)random_below(&random, LANES);
            if (ring.work[lane] == 0)
                since[lane] = 0;
            give(&ring, lane, (int64_t)random_below(&random, 6));
            lane = serve(&ring, 1 + (int64_t)random_below(&random, 5), &taken);
            for (int other = 0; lane >= 0 && other < LANES; other++) {
                since[other] = other == lane || ring.work[other] == 0 ? 0 : since[other] + taken;
                check(since[other] <= LANES * ring.turns.batch, "seed %llu step %d: lane %d waited for %lld dispatches",
                      (unsigned long long)seed, step, other, (long long)since[other]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_has_work),
        cmocka_unit_test(each_order_is_as_expected),
        cmocka_unit_test(a_lane_stands_in_the_ring_once),
        cmocka_unit_test(who_leaves_and_comes_back_stands_last),
        cmocka_unit_test(nobody_waits_longer_than_a_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
