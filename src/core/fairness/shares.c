#include "core/fairness/shares.h"

#include <assert.h>

void shares_init(struct shares *shares)
{
    *shares = (struct shares){ .weight_max = 1 };
    shares->idle_end = &shares->idle_first;
    for (int side = 0; side < SIDE_COUNT; side++)
        shares->sides[side].slots = 1;
}

void share_init(struct share *share, int64_t weight)
{
    assert(weight > 0 && weight <= TURNS_WEIGHT_MAX);
    *share = (struct share){ .weight = weight, .group = SHARES_NONE, .until = INSTANT_NONE };
}

/* ---- who is active ---- */

/* The most urgent class of work that waits; SHARES_IDLE: none does. */
static int urgent_group(const struct shares *shares)
{
    int group = 0;
    while (group < SHARES_IDLE && shares->weights[group] == 0)
        group++;
    return group;
}

static int64_t active_weight(const struct shares *shares)
{
    int urgent = urgent_group(shares);
    return shares->weights[SHARES_IDLE] + (urgent < SHARES_IDLE ? shares->weights[urgent] : 0);
}

static int64_t part_of(const struct shares *shares, enum shares_side side, int64_t weight)
{
    assert(side < SIDE_COUNT && weight > 0 && shares->sides[side].slots > 0);
    int64_t sum = active_weight(shares);
    int64_t part = shares->sides[side].slots * weight / (sum > weight ? sum : weight);
    return part > 1 ? part : 1;
}

/* What counts as held against the share of a side: a claim ahead is to have a slot. */
static int64_t held_of(const struct share *share, enum shares_side side)
{
    assert(side < SIDE_COUNT);
    return side == SIDE_AHEAD ? share->held[SIDE_AHEAD] + share->held[SIDE_FIRST] : share->held[side];
}

static int64_t missing_of(const struct shares *shares, enum shares_side side, const struct share *share)
{
    int64_t missing = part_of(shares, side, share->weight) - held_of(share, side);
    return missing > 0 ? missing : 0;
}

/* For so much of what it misses it has claimed jobs already. */
static int64_t waiting_of(const struct share *share, enum shares_side side, int64_t missing)
{
    assert(missing >= 0);
    int64_t ahead = side == SIDE_FIRST && share->group == SHARES_IDLE ? share->held[SIDE_AHEAD] : 0;
    return missing < ahead ? missing : ahead;
}

/* Takes what it misses out of the sums, before it changes, or adds that, after. */
static void sum_missing(struct shares *shares, const struct share *share, int sign)
{
    assert(sign == 1 || sign == -1);
    for (int side = 0; side < SIDE_AHEAD && share->group < SHARES_GROUPS; side++) {
        if (shares->sides[side].stale)
            continue;
        int64_t missing = missing_of(shares, (enum shares_side)side, share);
        shares->sides[side].missing[share->group] += sign * missing;
        shares->sides[side].waiting += sign * waiting_of(share, (enum shares_side)side, missing);
    }
}

static void make_stale(struct shares *shares)
{
    for (int side = 0; side < SIDE_COUNT; side++)
        shares->sides[side].stale = true;
}

static void sum_anew(struct shares *shares, enum shares_side side)
{
    assert(shares->weight_max > 0 && shares->weight_max <= TURNS_WEIGHT_MAX);
    int64_t *missing = shares->sides[side].missing;
    for (int group = 0; group < SHARES_GROUPS; group++)
        missing[group] = 0;
    shares->sides[side].waiting = 0;
    for (int64_t weight = 1; weight <= shares->weight_max; weight++) {
        int64_t part = part_of(shares, side, weight);
        for (int group = 0; group < SHARES_GROUPS; group++)
            missing[group] += part * shares->counts[group][weight];
    }
    for (const struct share *share = shares->holders; share; share = share->next_holder) {
        int64_t part = part_of(shares, side, share->weight), held = held_of(share, side);
        if (share->group < SHARES_GROUPS)
            missing[share->group] -= held < part ? held : part;
        shares->sides[side].waiting += waiting_of(share, side, held < part ? part - held : 0);
    }
    shares->sides[side].stale = false;
}

static void idle_unlink(struct shares *shares, struct share *share)
{
    assert(!share->idle_link || share->until != INSTANT_NONE);
    if (!share->idle_link)
        return;
    *share->idle_link = share->next_idle;
    if (share->next_idle)
        share->next_idle->idle_link = share->idle_link;
    else
        shares->idle_end = share->idle_link;
    share->next_idle = NULL;
    share->idle_link = NULL;
    share->until = INSTANT_NONE;
}

/* All linger for as long, so that who comes last leaves last. */
static void idle_link(struct shares *shares, struct share *share, instant now)
{
    assert(!share->holder_link);
    idle_unlink(shares, share);
    share->until = instant_add(now, SHARES_LINGER_MS);
    share->idle_link = shares->idle_end;
    *shares->idle_end = share;
    shares->idle_end = &share->next_idle;
}

static void count_in(struct shares *shares, const struct share *share, int sign)
{
    if (share->group >= SHARES_GROUPS)
        return;
    shares->weights[share->group] += sign * share->weight;
    shares->counts[share->group][share->weight] += sign;
    assert(shares->counts[share->group][share->weight] >= 0);
    if (share->weight > shares->weight_max)
        shares->weight_max = share->weight;
}

static void move_to(struct shares *shares, struct share *share, int group)
{
    assert(group >= 0 && group <= SHARES_NONE);
    if (share->group == group)
        return;
    int64_t weight = active_weight(shares);
    sum_missing(shares, share, -1);
    count_in(shares, share, -1);
    share->group = group;
    count_in(shares, share, 1);
    if (active_weight(shares) != weight)
        make_stale(shares);
    sum_missing(shares, share, 1);
}

void shares_weigh(struct shares *shares, struct share *share, int64_t weight)
{
    assert(weight > 0 && weight <= TURNS_WEIGHT_MAX);
    count_in(shares, share, -1);
    share->weight = weight;
    count_in(shares, share, 1);
    make_stale(shares);
}

void shares_configure(struct shares *shares, bool by_class)
{
    shares->by_class = by_class;
}

void shares_due(struct shares *shares, struct share *share, enum priority class)
{
    assert(class < PRIORITY_COUNT);
    idle_unlink(shares, share);
    move_to(shares, share, (int)(shares->by_class ? class : PRIORITY_NORMAL));
}

static bool holds(const struct share *share)
{
    return share->holder_link != NULL;
}

void shares_idle(struct shares *shares, struct share *share, instant now)
{
    if (share->group >= SHARES_IDLE)
        return;
    move_to(shares, share, SHARES_IDLE);
    if (!holds(share))
        idle_link(shares, share, now);
}

static void passed_unlink(struct shares *shares, struct share *share)
{
    for (struct share **link = &shares->passed; *link && share->passed; link = &(*link)->next_passed) {
        if (*link != share)
            continue;
        *link = share->next_passed;
        share->passed = false;
        return;
    }
}

void shares_remove(struct shares *shares, struct share *share)
{
    assert(!holds(share));
    idle_unlink(shares, share);
    move_to(shares, share, SHARES_NONE);
    passed_unlink(shares, share);
}

/* One that would stay for longer than it may was given so by a clock that has been put back. */
void shares_tick(struct shares *shares, instant now)
{
    for (struct share *first; (first = shares->idle_first) &&
                              (first->until <= now || first->until > instant_add(now, SHARES_LINGER_MS));) {
        idle_unlink(shares, first);
        move_to(shares, first, SHARES_NONE);
    }
}

instant shares_next(const struct shares *shares)
{
    return shares->idle_first ? shares->idle_first->until : INSTANT_NONE;
}

/* ---- asking and taking ---- */

void shares_set_slots(struct shares *shares, enum shares_side side, int64_t slots)
{
    assert(slots > 0);
    if (shares->sides[side].slots == slots)
        return;
    shares->sides[side].slots = slots;
    shares->sides[side].stale = true;
}

int64_t shares_part(const struct shares *shares, enum shares_side side, const struct share *share)
{
    assert(side < SIDE_COUNT);
    return part_of(shares, side, share->weight);
}

/* What must stay free for others than this one. */
static int64_t reserve_of(const struct shares *shares, enum shares_side side, const struct share *share)
{
    assert(!shares->sides[side].stale);
    int urgent = urgent_group(shares);
    int64_t own = missing_of(shares, side, share);
    int64_t idle = shares->sides[side].missing[SHARES_IDLE] - (share->group == SHARES_IDLE ? own : 0);
    int64_t due = urgent < SHARES_IDLE ? shares->sides[side].missing[urgent] - (share->group == urgent ? own : 0) : 0;
    int64_t waiting = shares->sides[side].waiting - waiting_of(share, side, own);
    int64_t half = shares->sides[side].slots / 2;
    assert(waiting >= 0 && waiting <= idle);
    return due + waiting + (idle - waiting < half ? idle - waiting : half);
}

/*
 * What it may take although others miss some of theirs. Where tenants are more than slots, so that one slot each is more
 * than there are, who has a larger weight may take more by its turns: it could not use those if it held its share at most.
 */
static int64_t room_below(const struct shares *shares, enum shares_side side, const struct share *share)
{
    assert(share->held[side] >= 0);
    int64_t sum = active_weight(shares), slots = shares->sides[side].slots;
    int64_t part = part_of(shares, side, share->weight);
    if (sum > slots && slots * share->weight > sum)
        part = 2 * part;
    int64_t room = part - held_of(share, side);
    return room > 0 ? room : 0;
}

/* Nobody else is active, whatever its class. */
static bool is_alone(const struct shares *shares, const struct share *share)
{
    int64_t sum = 0;
    for (int group = 0; group < SHARES_GROUPS; group++)
        sum += shares->weights[group];
    return sum == (share->group < SHARES_GROUPS ? share->weight : 0);
}

int64_t shares_ask(struct shares *shares, enum shares_side side, const struct share *share)
{
    assert(shares->sides[side].held >= share->held[side]);
    int64_t below = room_below(shares, side, share);
    if (side == SIDE_AHEAD)
        return is_alone(shares, share) ? INT64_MAX : below;
    int64_t free = shares->sides[side].slots - shares->sides[side].held;
    if (free <= 0)
        return 0;
    if (shares->sides[side].stale)
        sum_anew(shares, side);
    int64_t extra = free - reserve_of(shares, side, share);
    int64_t most = below > extra ? below : extra;
    return most < free ? most : free;
}

static void holder_link(struct shares *shares, struct share *share)
{
    assert(!holds(share));
    share->next_holder = shares->holders;
    share->holder_link = &shares->holders;
    if (share->next_holder)
        share->next_holder->holder_link = &share->next_holder;
    shares->holders = share;
}

static void holder_unlink(struct share *share)
{
    assert(holds(share) && *share->holder_link == share);
    *share->holder_link = share->next_holder;
    if (share->next_holder)
        share->next_holder->holder_link = share->holder_link;
    share->next_holder = NULL;
    share->holder_link = NULL;
}

void shares_take(struct shares *shares, enum shares_side side, struct share *share, int64_t count)
{
    assert(count >= 0);
    if (count == 0)
        return;
    idle_unlink(shares, share);
    if (share->group == SHARES_NONE)
        move_to(shares, share, SHARES_IDLE);
    sum_missing(shares, share, -1);
    if (!holds(share))
        holder_link(shares, share);
    share->held[side] += count;
    shares->sides[side].held += count;
    sum_missing(shares, share, 1);
}

void shares_give_back(struct shares *shares, enum shares_side side, struct share *share, int64_t count, instant now)
{
    assert(count >= 0 && count <= share->held[side]);
    if (count == 0)
        return;
    sum_missing(shares, share, -1);
    share->held[side] -= count;
    shares->sides[side].held -= count;
    sum_missing(shares, share, 1);
    if (share->held[SIDE_FIRST] + share->held[SIDE_FALLBACK] + share->held[SIDE_AHEAD] > 0)
        return;
    holder_unlink(share);
    if (share->group == SHARES_IDLE)
        idle_link(shares, share, now);
}

bool shares_by_turn(const struct shares *shares, enum shares_side side)
{
    assert(side < SIDE_COUNT);
    enum { ONE_IN = 5 };
    int64_t slots = shares->sides[side].slots;
    int64_t some = slots / ONE_IN > 1 ? slots / ONE_IN : 1;
    return slots > 1 && shares->sides[side].by_turn < some;
}

void shares_note_by_turn(struct shares *shares, enum shares_side side, int64_t count)
{
    shares->sides[side].by_turn += count;
    assert(shares->sides[side].by_turn >= 0);
}

/* ---- passed over ---- */

void shares_pass_over(struct shares *shares, struct share *share)
{
    if (share->passed)
        return;
    share->passed = true;
    share->next_passed = shares->passed;
    shares->passed = share;
}

struct share *shares_passed(struct shares *shares, enum shares_side side)
{
    struct share *first = NULL, **end = &first, **link = &shares->passed;
    while (*link) {
        struct share *share = *link;
        assert(share->passed);
        if (side < SIDE_COUNT && shares_ask(shares, side, share) == 0) {
            link = &share->next_passed;
            continue;
        }
        *link = share->next_passed;
        share->passed = false;
        share->next_passed = NULL;
        *end = share;
        end = &share->next_passed;
    }
    return first;
}
