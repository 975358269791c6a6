/*
 * Shares of the slots against a model that sums everything anew, and the rules one by one.
 */
#include "core/fairness/shares.h"
#include "support/check.h"

enum { TENANTS = 12, STEPS = 40000 };

static const instant began = INT64_C(1736678400000);

struct model {
    struct share share;
    bool due;
    enum priority class;
    int64_t held[SIDE_COUNT];
    instant idle_since; /* INSTANT_NONE: it has work, holds something, or never did */
};

static bool holds(const struct model *tenant)
{
    return tenant->held[SIDE_FIRST] + tenant->held[SIDE_FALLBACK] + tenant->held[SIDE_AHEAD] > 0;
}

static bool is_idle(const struct model *tenant, instant now)
{
    return !tenant->due && (holds(tenant) || (tenant->idle_since != INSTANT_NONE && now - tenant->idle_since < SHARES_LINGER_MS));
}

static int64_t part(int64_t slots, int64_t weight, int64_t sum)
{
    int64_t part = slots * weight / (sum > weight ? sum : weight);
    return part > 1 ? part : 1;
}

static int64_t above_zero(int64_t value)
{
    return value > 0 ? value : 0;
}

/* What the header says, word for word. */
static int64_t expected(const struct model *tenants, const struct shares *shares, const struct model *asking,
                        enum shares_side side, instant now)
{
    int urgent = PRIORITY_COUNT;
    int64_t sum = 0, used = 0, due = 0, idle = 0, waiting = 0, slots = shares->sides[side].slots;
    for (int i = 0; i < TENANTS; i++)
        if (tenants[i].due && (int)tenants[i].class < urgent)
            urgent = (int)tenants[i].class;
    for (int i = 0; i < TENANTS; i++)
        if ((tenants[i].due && (int)tenants[i].class == urgent) || is_idle(&tenants[i], now))
            sum += tenants[i].share.weight;
    for (int i = 0; i < TENANTS; i++) {
        int64_t missing = above_zero(part(slots, tenants[i].share.weight, sum) - tenants[i].held[side]);
        used += tenants[i].held[side];
        if (&tenants[i] == asking)
            continue;
        due += tenants[i].due && (int)tenants[i].class == urgent ? missing : 0;
        int64_t ahead = side == SIDE_FIRST && !tenants[i].due ? tenants[i].held[SIDE_AHEAD] : 0;
        int64_t waits = missing < ahead ? missing : ahead;
        waiting += waits;
        idle += is_idle(&tenants[i], now) ? missing - waits : 0;
    }
    int64_t own = part(slots, asking->share.weight, sum);
    if (sum > slots && slots * asking->share.weight > sum)
        own *= 2;
    int64_t below = above_zero(own - asking->held[side]);
    int64_t extra = slots - used - due - waiting - (idle < slots / 2 ? idle : slots / 2);
    int64_t most = below > extra ? below : extra;
    return above_zero(most < slots - used ? most : slots - used);
}

static void change(struct shares *shares, struct model *tenant, struct random *random, instant now)
{
    enum shares_side side = (enum shares_side)random_below(random, SIDE_COUNT);
    switch (random_below(random, 5)) {
    case 0:
        tenant->due = true;
        tenant->class = (enum priority)random_below(random, PRIORITY_COUNT);
        tenant->idle_since = INSTANT_NONE;
        shares_due(shares, &tenant->share, tenant->class);
        tenant->class = shares->by_class ? tenant->class : PRIORITY_NORMAL;
        break;
    case 1:
        if (tenant->due && !holds(tenant))
            tenant->idle_since = now;
        tenant->due = false;
        shares_idle(shares, &tenant->share, now);
        break;
    case 2: {
        int64_t room = shares_ask(shares, side, &tenant->share);
        int64_t count = room > 0 ? 1 + (int64_t)random_below(random, room < 3 ? (size_t)room : 3) : 0;
        tenant->held[side] += count;
        tenant->idle_since = count > 0 ? INSTANT_NONE : tenant->idle_since;
        shares_take(shares, side, &tenant->share, count);
        break;
    }
    default: {
        int64_t count = tenant->held[side] > 0 ? 1 + (int64_t)random_below(random, (size_t)tenant->held[side]) : 0;
        tenant->held[side] -= count;
        if (count > 0 && !tenant->due && !holds(tenant))
            tenant->idle_since = now;
        shares_give_back(shares, side, &tenant->share, count, now);
    }
    }
}

static void it_is_as_the_rules_say(void **state)
{
    (void)state;
    for (int by_class = 0; by_class < 2; by_class++) {
        struct shares shares;
        struct model tenants[TENANTS] = { { .due = false } };
        struct random random = { 11 };
        instant now = began;
        shares_init(&shares);
        shares_configure(&shares, by_class);
        for (int i = 0; i < TENANTS; i++) {
            share_init(&tenants[i].share, 1 + (int64_t)random_below(&random, i < 8 ? 1 : 5));
            tenants[i].idle_since = INSTANT_NONE;
        }
        for (int step = 0; step < STEPS; step++) {
            enum shares_side side = (enum shares_side)random_below(&random, SIDE_AHEAD);
            now += (instant)random_below(&random, 1500);
            shares_tick(&shares, now);
            if (random_below(&random, 20) == 0)
                shares_set_slots(&shares, side, 1 + (int64_t)random_below(&random, 24));
            change(&shares, &tenants[random_below(&random, TENANTS)], &random, now);
            const struct model *asking = &tenants[random_below(&random, TENANTS)];
            int64_t room = shares_ask(&shares, side, &asking->share);
            check(room == expected(tenants, &shares, asking, side, now), "step %d: %lld, not %lld", step, (long long)room,
                  (long long)expected(tenants, &shares, asking, side, now));
            for (int i = 0; i < TENANTS; i++) {
                bool active = tenants[i].due || is_idle(&tenants[i], now);
                check((tenants[i].share.group != SHARES_NONE) == active, "step %d: tenant %d", step, i);
            }
        }
    }
}

static void those_passed_over_come_back(void **state)
{
    struct shares shares;
    struct share slow, quick;
    (void)state;
    shares_init(&shares);
    shares_set_slots(&shares, SIDE_FIRST, 10);
    share_init(&slow, 1);
    share_init(&quick, 1);
    shares_due(&shares, &slow, PRIORITY_NORMAL);
    assert_int_equal(shares_ask(&shares, SIDE_FIRST, &slow), 10); /* alone */
    shares_due(&shares, &quick, PRIORITY_NORMAL);
    assert_int_equal(shares_ask(&shares, SIDE_FIRST, &slow), 5);
    shares_take(&shares, SIDE_FIRST, &slow, 5);
    assert_int_equal(shares_ask(&shares, SIDE_FIRST, &slow), 0);
    shares_pass_over(&shares, &slow);
    shares_pass_over(&shares, &slow);
    assert_null(shares_passed(&shares, SIDE_FIRST));
    shares_take(&shares, SIDE_FIRST, &quick, 5);
    assert_null(shares_passed(&shares, SIDE_FIRST)); /* none is free */
    shares_give_back(&shares, SIDE_FIRST, &slow, 1, began);
    assert_ptr_equal(shares_passed(&shares, SIDE_FIRST), &slow);
    assert_null(shares_passed(&shares, SIDE_FIRST));
    shares_take(&shares, SIDE_FIRST, &slow, 1);
    shares_pass_over(&shares, &slow);
    shares_idle(&shares, &quick, began);
    shares_give_back(&shares, SIDE_FIRST, &quick, 5, began);
    assert_null(shares_passed(&shares, SIDE_FIRST));
    assert_int_equal(shares_next(&shares), began + SHARES_LINGER_MS);
    shares_tick(&shares, began + SHARES_LINGER_MS - 1);
    assert_null(shares_passed(&shares, SIDE_FIRST));
    shares_tick(&shares, began + SHARES_LINGER_MS);
    assert_ptr_equal(shares_passed(&shares, SIDE_FIRST), &slow); /* alone again */
    assert_int_equal(shares_ask(&shares, SIDE_FIRST, &slow), 5);
}

/* All that may go on are named together, and the others stay. */
static void those_who_may_go_on_are_named_together(void **state)
{
    struct shares shares;
    struct share each[4];
    (void)state;
    shares_init(&shares);
    shares_set_slots(&shares, SIDE_FIRST, 8);
    for (size_t i = 0; i < 4; i++) {
        share_init(&each[i], 1);
        shares_due(&shares, &each[i], PRIORITY_NORMAL);
        shares_take(&shares, SIDE_FIRST, &each[i], 2);
    }
    for (size_t i = 0; i < 4; i++)
        shares_pass_over(&shares, &each[i]);
    assert_null(shares_passed(&shares, SIDE_FIRST));
    shares_give_back(&shares, SIDE_FIRST, &each[0], 1, began);
    shares_give_back(&shares, SIDE_FIRST, &each[2], 1, began);
    assert_ptr_equal(shares_passed(&shares, SIDE_FIRST), &each[2]);
    assert_ptr_equal(each[2].next_passed, &each[0]);
    assert_null(each[0].next_passed);
    assert_null(shares_passed(&shares, SIDE_FIRST));
    assert_ptr_equal(shares_passed(&shares, SIDE_COUNT), &each[3]);
    assert_ptr_equal(each[3].next_passed, &each[1]);
    assert_null(each[1].next_passed);
    assert_null(shares_passed(&shares, SIDE_COUNT));
}

/* No claim ahead goes beyond the share of slots and claims together, but of who is alone. */
static void claims_ahead_are_held(void **state)
{
    struct shares shares;
    struct share one, other;
    (void)state;
    shares_init(&shares);
    shares_set_slots(&shares, SIDE_FIRST, 10);
    shares_set_slots(&shares, SIDE_AHEAD, 30);
    share_init(&one, 2);
    share_init(&other, 1);
    shares_due(&shares, &one, PRIORITY_NORMAL);
    assert_true(shares_ask(&shares, SIDE_AHEAD, &one) == INT64_MAX);
    shares_due(&shares, &other, PRIORITY_NORMAL);
    shares_take(&shares, SIDE_FIRST, &one, 6);
    assert_int_equal(shares_ask(&shares, SIDE_AHEAD, &one), 14);
    shares_take(&shares, SIDE_AHEAD, &one, 14);
    assert_int_equal(shares_ask(&shares, SIDE_AHEAD, &one), 0);
    assert_int_equal(shares_ask(&shares, SIDE_AHEAD, &other), 10);
}

/* Whose jobs are all claimed ahead is not one of those with nothing to do, for whom half of the slots are enough. */
static void claims_ahead_find_their_slots(void **state)
{
    struct shares shares;
    struct share one, large, away;
    (void)state;
    shares_init(&shares);
    shares_set_slots(&shares, SIDE_FIRST, 10);
    share_init(&one, 1);
    share_init(&large, 7);
    share_init(&away, 2);
    shares_take(&shares, SIDE_AHEAD, &one, 5);
    shares_take(&shares, SIDE_AHEAD, &large, 7);
    shares_due(&shares, &away, PRIORITY_NORMAL);
    shares_idle(&shares, &away, began);
    assert_int_equal(shares_ask(&shares, SIDE_FIRST, &one), 1); /* seven are claimed for, two are for who is away */
    shares_take(&shares, SIDE_FIRST, &one, 1);
    assert_int_equal(shares_ask(&shares, SIDE_FIRST, &one), 0);
    assert_int_equal(shares_ask(&shares, SIDE_FIRST, &large), 7);
    for (int i = 0; i < 7; i++) {
        shares_give_back(&shares, SIDE_AHEAD, &large, 1, began);
        shares_take(&shares, SIDE_FIRST, &large, 1);
        assert_int_equal(shares_ask(&shares, SIDE_FIRST, &one), 0); /* what is taken was kept for it */
    }
    assert_int_equal(shares_ask(&shares, SIDE_FIRST, &away), 2);
}

static void a_clock_put_back_keeps_nobody_active(void **state)
{
    struct shares shares;
    struct share share;
    (void)state;
    shares_init(&shares);
    share_init(&share, 1);
    shares_due(&shares, &share, PRIORITY_NORMAL);
    shares_idle(&shares, &share, began);
    shares_tick(&shares, began - 3600 * 1000);
    assert_int_equal(share.group, SHARES_NONE);
}

static void one_in_five_goes_by_turns(void **state)
{
    static const struct {
        int64_t slots, by_turn;
    } rows[] = { { 1, 0 }, { 2, 1 }, { 4, 1 }, { 5, 1 }, { 9, 1 }, { 10, 2 }, { 64, 12 } };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct shares shares;
        int64_t count = 0;
        shares_init(&shares);
        shares_set_slots(&shares, SIDE_FIRST, rows[i].slots);
        for (; shares_by_turn(&shares, SIDE_FIRST); count++)
            shares_note_by_turn(&shares, SIDE_FIRST, 1);
        assert_int_equal(count, rows[i].by_turn);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_as_the_rules_say),
        cmocka_unit_test(those_passed_over_come_back),
        cmocka_unit_test(those_who_may_go_on_are_named_together),
        cmocka_unit_test(claims_ahead_are_held),
        cmocka_unit_test(claims_ahead_find_their_slots),
        cmocka_unit_test(a_clock_put_back_keeps_nobody_active),
        cmocka_unit_test(one_in_five_goes_by_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
