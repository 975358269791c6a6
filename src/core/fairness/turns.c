#include "core/fairness/turns.h"

#include <assert.h>

/* A key is the round, then the priority, then whether the lane stands ahead of its equals or in their ring. */
enum { KEY_AHEAD, KEY_RING, KEY_PRIORITY, KEY_ROUND = 256 }; /* powers of two: every dispatch takes keys apart */
static_assert(KEY_ROUND >= KEY_PRIORITY * (TURNS_BASE_PRIORITY_MAX + 1), "a priority fits into its part of a key");

static void settings_check(const struct turns_settings *settings)
{
    assert(settings->batch > 0 && settings->batch <= TURNS_BATCH_MAX);
    assert(settings->base_priority > 0 && settings->base_priority <= TURNS_BASE_PRIORITY_MAX);
}

void turns_init(struct turns *turns, const struct turns_settings *settings)
{
    settings_check(settings);
    *turns = (struct turns){ .settings = *settings, .round = 1, .visits = 1, .late_max = TURNS_LATE_MIN };
    heap_init(&turns->ready);
    heap_init(&turns->parked);
    heap_init(&turns->aside);
}

void turns_release(struct turns *turns)
{
    heap_release(&turns->ready);
    heap_release(&turns->parked);
    heap_release(&turns->aside);
}

enum status turns_reserve(struct turns *turns, size_t lanes)
{
    struct heap *const heaps[] = { &turns->ready, &turns->parked, &turns->aside };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof heaps / sizeof *heaps && status == STATUS_OK; i++)
        status = heap_reserve(heaps[i], lanes);
    return status;
}

void turn_init(struct turn *turn, int64_t weight)
{
    *turn = (struct turn){ .last_at = INSTANT_NONE };
    turn_weigh(turn, weight);
}

void turn_weigh(struct turn *turn, int64_t weight)
{
    assert(weight > 0 && weight <= TURNS_WEIGHT_MAX);
    turn->weight = weight;
}

int64_t turns_priority(int64_t base_priority, int64_t rounds)
{
    assert(base_priority > 0 && rounds >= 0);
    return rounds < base_priority - 1 ? base_priority - rounds : 1;
}

static int64_t rounds_without(const struct turn *turn, int64_t round)
{
    assert(turn->round >= 0 && round >= 0);
    return turn->round < round ? round - turn->round - 1 : 0;
}

static bool has_share(const struct turns *turns, const struct turn *turn)
{
    assert(turn->round <= turns->round);
    return turn->round < turns->round || turn->credit > 0;
}

int64_t turns_share(const struct turns *turns, const struct turn *turn)
{
    return turn->weight * turns->settings.batch;
}

/*
 * How many jobs the lane may send before the ring in that round. With what it sent in the round before
 * they are no more than one share, and so whoever is overtaken waits no longer than it would in a ring.
 */
static int64_t ahead_in(const struct turns *turns, const struct turn *turn, int64_t round)
{
    assert((turn->credit | turn->ahead) >= 0);
    if (round == turn->round)
        return turn->ahead;
    bool served_before = turn->round > 0 && round == turn->round + 1 && round != turns->afresh;
    return served_before ? turn->credit : turns_share(turns, turn);
}

static int64_t key_in(const struct turns *turns, const struct turn *turn, int64_t round, bool ahead)
{
    assert(round > 0);
    if (!turns->settings.round_robin)
        return 0; /* only the place counts */
    int64_t priority = turns_priority(turns->settings.base_priority, rounds_without(turn, round));
    return round * KEY_ROUND + priority * KEY_PRIORITY + (ahead ? KEY_AHEAD : KEY_RING);
}

static bool stands_ahead(const struct turn *turn)
{
    return (uint64_t)turn->ready.key % KEY_PRIORITY == KEY_AHEAD;
}

static int64_t round_in_key(const struct turn *turn)
{
    return (int64_t)((uint64_t)turn->ready.key / KEY_ROUND);
}

/* In this round if it has something left in it, else in the next. */
static int64_t round_of(const struct turns *turns, const struct turn *turn)
{
    return has_share(turns, turn) ? turns->round : turns->round + 1;
}

/* For a lane that comes, not for one that goes back into the ring. */
static int64_t key_of_comer(const struct turns *turns, const struct turn *turn, int64_t round)
{
    return key_in(turns, turn, round, ahead_in(turns, turn, round) > 0);
}

static void push(struct heap *heap, struct heap_node *node, int64_t key, uint64_t tie)
{
    enum status status = heap_push(heap, node, key, tie);
    assert(status == STATUS_OK); /* turns_reserve saw to it */
    (void)status;
}

void turns_add(struct turns *turns, struct turn *turn)
{
    assert(turn->weight > 0);
    if (turn->ready.position > 0 || turn->parked.position > 0 || turn->aside.position > 0)
        return;
    turn->place = ++turns->places;
    int64_t round = round_of(turns, turn);
    if (turn->round < turns->round && turns->late++ >= turns->late_max)
        round = turns->round + 1; /* this round must end some time */
    push(&turns->ready, &turn->ready, key_of_comer(turns, turn, round), turn->place);
}

/* Whoever has begun its turn has used up its place: if it had it still, it would be served twice before those behind it. */
static void end_turn(struct turns *turns)
{
    if (turns->holder)
        turns->holder->place = ++turns->places;
    turns->holder = NULL;
}

void turns_remove(struct turns *turns, struct turn *turn)
{
    heap_remove(&turns->ready, &turn->ready);
    heap_remove(&turns->parked, &turn->parked);
    heap_remove(&turns->aside, &turn->aside);
    if (turns->holder == turn)
        end_turn(turns);
}

static struct turn *first(const struct turns *turns)
{
    if (turns->holder)
        return turns->holder;
    struct heap_node *node = heap_first(&turns->ready);
    return node ? (struct turn *)((char *)node - offsetof(struct turn, ready)) : NULL;
}

/* What the front may take in a row before others are asked. */
static int64_t turn_max(const struct turns *turns, const struct turn *turn)
{
    assert(turn->ready.position > 0);
    const struct turns_settings *settings = &turns->settings;
    if (!settings->round_robin)
        return INT64_MAX;
    int64_t batch = turns->holder == turn ? settings->batch - turn->in_a_row : settings->batch;
    int64_t round = round_in_key(turn);
    int64_t credit = turn->round == round ? turn->credit : turns_share(turns, turn);
    int64_t ahead = ahead_in(turns, turn, round);
    if (stands_ahead(turn) && ahead < credit)
        credit = ahead;
    return batch < credit ? batch : credit;
}

struct turn *turns_front(const struct turns *turns, int64_t *ret_max)
{
    struct turn *front = first(turns);
    if (front)
        *ret_max = turns->ready.count == 1 && turns->aside.count == 0 ? INT64_MAX : turn_max(turns, front);
    return front;
}

int64_t turns_front_round(const struct turns *turns)
{
    const struct turn *front = first(turns);
    return front ? round_in_key(front) : 0;
}

static void begin_round(struct turns *turns, int64_t round)
{
    assert(round >= turns->round);
    turns->round = round;
    turns->late = 0;
    turns->late_max = turns->ready.count > TURNS_LATE_MIN ? (int64_t)turns->ready.count : TURNS_LATE_MIN;
}

/* Part of a turn, at most what turn_max says; so much ends it. */
static void take(struct turns *turns, struct turn *turn, int64_t count, int64_t max)
{
    assert(count > 0 && count <= max);
    if (round_in_key(turn) > turns->round) /* its key says in which round it stands: the first service of one begins it */
        begin_round(turns, round_in_key(turn));
    if (turn->round < turns->round) {
        turn->ahead = ahead_in(turns, turn, turns->round);
        turn->credit = turns_share(turns, turn);
        turn->round = turns->round;
    }
    if (turns->holder != turn) {
        turn->visit = ++turns->visits;
        turn->in_a_row = 0;
        turns->holder = turn;
    }
    turn->in_a_row += count;
    turn->credit -= count;
    turn->ahead -= stands_ahead(turn) ? count : 0;
    assert((turn->credit | turn->ahead) >= 0 && turn->in_a_row <= turns->settings.batch);
    if (count == max) {
        end_turn(turns);
        heap_move(&turns->ready, &turn->ready, key_in(turns, turn, round_of(turns, turn), false), turn->place);
    }
}

/* Without rounds a lane is served until it has no work. */
static void take_in_order(struct turns *turns, struct turn *turn, int64_t count)
{
    assert(count > 0 && !turns->settings.round_robin);
    if (turn->visit != turns->visits) {
        turn->visit = ++turns->visits;
        turn->in_a_row = 0;
    }
    turn->in_a_row += count;
}

void turns_took(struct turns *turns, int64_t count, instant now)
{
    struct turn *turn = first(turns);
    assert(turn && count > 0);
    turn->total += count;
    turn->last_at = now;
    if (!turns->settings.round_robin) {
        take_in_order(turns, turn, count);
        return;
    }
    for (;;) { /* more than once only for a lane alone: then the next turn is its own again */
        int64_t max = turn_max(turns, turn);
        int64_t part = count < max ? count : max;
        take(turns, turn, part, max);
        count -= part;
        if (count == 0)
            return;
        assert(first(turns) == turn);
    }
}

void turns_returned(struct turns *turns, struct turn *turn, int64_t count)
{
    assert(count >= 0 && count <= turn->total);
    turn->total -= count;
    /* Only a turn that is still under way can use what it gets back: a later one has a share of its own. */
    if (turns->holder == turn) {
        int64_t back = count < turn->in_a_row ? count : turn->in_a_row;
        turn->in_a_row -= back;
        turn->credit += back;
        turn->ahead += stands_ahead(turn) ? back : 0;
    }
}

void turns_park(struct turns *turns, struct turn *turn, instant until)
{
    assert(turn->ready.position > 0 || turn->parked.position > 0);
    if (turn->parked.position > 0) {
        heap_move(&turns->parked, &turn->parked, until, turn->place);
        return;
    }
    heap_remove(&turns->ready, &turn->ready);
    if (turns->holder == turn)
        end_turn(turns);
    push(&turns->parked, &turn->parked, until, turn->place);
}

/* What is left of its credit bounds what it sends in this round, so that nobody is served twice as much before others. */
void turns_pass_over(struct turns *turns, struct turn *turn)
{
    if (turns->holder == turn)
        turns->holder = NULL;
    turns_park(turns, turn, INSTANT_MAX);
}

/* From a heap that it may be in. */
static void come_back(struct turns *turns, struct turn *turn, struct heap *heap, struct heap_node *node)
{
    assert(node->position == 0 || turn->ready.position == 0);
    if (node->position == 0)
        return;
    heap_remove(heap, node);
    push(&turns->ready, &turn->ready, key_of_comer(turns, turn, round_of(turns, turn)), turn->place);
}

void turns_unpark(struct turns *turns, struct turn *turn)
{
    come_back(turns, turn, &turns->parked, &turn->parked);
}

struct turn *turns_unpark_due(struct turns *turns, instant now)
{
    struct heap_node *node = heap_first(&turns->parked);
    struct turn *turn = node && node->key <= now ? (struct turn *)((char *)node - offsetof(struct turn, parked)) : NULL;
    if (turn)
        turns_unpark(turns, turn);
    return turn;
}

instant turns_next_due(const struct turns *turns)
{
    const struct heap_node *node = heap_first(&turns->parked);
    return node ? node->key : INSTANT_NONE;
}

void turns_set_aside(struct turns *turns, struct turn *turn, int64_t class)
{
    assert(turn->ready.position > 0);
    heap_remove(&turns->ready, &turn->ready);
    if (turns->holder == turn)
        end_turn(turns);
    push(&turns->aside, &turn->aside, class, turn->place);
}

void turns_bring_back_one(struct turns *turns, struct turn *turn)
{
    come_back(turns, turn, &turns->aside, &turn->aside);
}

void turns_bring_back(struct turns *turns, int64_t class)
{
    for (struct heap_node *node; (node = heap_first(&turns->aside)) && node->key <= class;)
        turns_bring_back_one(turns, (struct turn *)((char *)node - offsetof(struct turn, aside)));
}

int64_t turns_aside_class(const struct turns *turns)
{
    const struct heap_node *node = heap_first(&turns->aside);
    return node ? node->key : INT64_MAX;
}

struct turn *turns_at(const struct turns *turns, size_t index)
{
    if (index >= turns->ready.count)
        return NULL;
    return (struct turn *)((char *)turns->ready.nodes[index] - offsetof(struct turn, ready));
}

struct turn *turns_aside_at(const struct turns *turns, size_t index)
{
    if (index >= turns->aside.count)
        return NULL;
    return (struct turn *)((char *)turns->aside.nodes[index] - offsetof(struct turn, aside));
}

size_t turns_count(const struct turns *turns)
{
    return turns->ready.count + turns->parked.count + turns->aside.count;
}

/* As if all had come now, each at its place. */
static void stand_anew(struct turns *turns)
{
    assert(!turns->holder);
    size_t count = turns->ready.count;
    turns->ready.count = 0;
    for (size_t i = 0; i < count; i++) { /* in place: those pushed again never reach the ones still to come */
        struct heap_node *node = turns->ready.nodes[i];
        struct turn *turn = (struct turn *)((char *)node - offsetof(struct turn, ready));
        int64_t share = turns_share(turns, turn);
        turn->credit = turn->credit < share ? turn->credit : share;
        node->position = 0;
        push(&turns->ready, node, key_of_comer(turns, turn, round_of(turns, turn)), turn->place);
    }
}

void turns_configure(struct turns *turns, const struct turns_settings *settings)
{
    settings_check(settings);
    end_turn(turns);
    turns->settings = *settings;
    stand_anew(turns);
}

void turns_begin_afresh(struct turns *turns)
{
    bool over = turns->aside.count == 0 && (!first(turns) || turns_front_round(turns) > turns->afresh);
    if (!turns->settings.round_robin || !over)
        return;
    end_turn(turns);
    begin_round(turns, turns->round + 1);
    turns->afresh = turns->round;
    stand_anew(turns);
}

bool turns_may_overtake(const struct turns *turns, const struct turn *turn)
{
    return turn->ready.position > 0 && (stands_ahead(turn) || round_in_key(turn) == turns->afresh);
}

struct turn_figures turn_figures(const struct turns *turns, const struct turn *turn)
{
    assert(turn->total >= 0);
    int64_t rounds = rounds_without(turn, turns->round);
    return (struct turn_figures){
        .last_at = turn->last_at,
        .rounds_without = rounds,
        .priority = turns_priority(turns->settings.base_priority, rounds),
        .total = turn->total,
        .in_a_row = turn->visit == turns->visits ? turn->in_a_row : 0,
    };
}
