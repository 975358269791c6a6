/*
 * Whose turn it is, against a model that looks at every lane, counts every round up, and is slow.
 * Beside the order and the figures it checks how long each lane waits.
 */
#include "core/fairness/turns.h"
#include "support/check.h"

static const instant start = INT64_C(1736678400000);

enum { LANES = 9 };

struct model_lane {
    bool work, parked, served, later, ahead;
    instant until;
    int64_t weight, waited, total, in_a_row;
    int64_t sent, sent_ahead, sent_before; /* in this round, of these before the ring, in the last round */
    uint64_t place;
    int64_t others_sent; /* since it could have been served */
    bool crossed;        /* a round has begun afresh since */
};

struct model {
    struct turns_settings settings;
    struct model_lane lanes[LANES];
    int holder, latest;
    uint64_t places;
    int64_t late, late_max;
    bool afresh; /* this round began so */
};

static bool eligible(const struct model_lane *lane)
{
    return lane->work && !lane->parked;
}

static int64_t model_share(const struct model *model, const struct model_lane *lane)
{
    return lane->weight * model->settings.batch;
}

static bool in_this_round(const struct model *model, const struct model_lane *lane)
{
    return !lane->later && lane->sent < model_share(model, lane);
}

/* Whether a lane that comes now stands before the ring, in the round that it comes to. */
static bool model_ahead(const struct model *model, const struct model_lane *lane)
{
    if (!in_this_round(model, lane))
        return lane->sent < model_share(model, lane);
    return lane->sent_before + lane->sent_ahead < model_share(model, lane);
}

static int64_t model_urgency(const struct model *model, const struct model_lane *lane, bool this_round)
{
    int64_t waited = lane->waited + (!this_round && !lane->served);
    int64_t priority = model->settings.base_priority - waited;
    return priority < 1 ? 1 : priority;
}

static bool model_before(const struct model *model, const struct model_lane *a, const struct model_lane *b, bool this_round)
{
    if (model->settings.round_robin) {
        int64_t urgency_a = model_urgency(model, a, this_round), urgency_b = model_urgency(model, b, this_round);
        if (urgency_a != urgency_b)
            return urgency_a < urgency_b;
        if (a->ahead != b->ahead)
            return a->ahead;
    }
    return a->place < b->place;
}

static int model_pick(const struct model *model, bool *ret_this_round)
{
    *ret_this_round = true;
    if (model->holder >= 0)
        return model->holder;
    for (int this_round = 1; this_round >= 0; this_round--) {
        int best = -1;
        for (int i = 0; i < LANES; i++) {
            const struct model_lane *lane = &model->lanes[i];
            if (!eligible(lane) || (model->settings.round_robin && this_round && !in_this_round(model, lane)))
                continue;
            if (best < 0 || model_before(model, lane, &model->lanes[best], this_round))
                best = i;
        }
        *ret_this_round = this_round;
        if (best >= 0)
            return best;
    }
    return -1;
}

static void model_next_round(struct model *model)
{
    model->afresh = false;
    model->late = 0;
    model->late_max = TURNS_LATE_MIN;
    for (int i = 0; i < LANES; i++) {
        struct model_lane *lane = &model->lanes[i];
        lane->waited = lane->served ? 0 : lane->waited + 1;
        lane->served = lane->later = false;
        lane->sent_before = lane->sent;
        lane->sent = lane->sent_ahead = 0;
    }
}

static void model_end_turn(struct model *model)
{
    if (model->holder >= 0) {
        model->lanes[model->holder].place = ++model->places;
        model->lanes[model->holder].ahead = false;
    }
    model->holder = -1;
}

static void model_take_in_round(struct model *model, int picked, bool this_round)
{
    struct model_lane *lane = &model->lanes[picked];
    if (!this_round)
        model_next_round(model);
    lane->served = true;
    lane->waited = 0;
    if (model->holder < 0)
        lane->in_a_row = 0;
    model->holder = picked;
    lane->sent++;
    lane->sent_ahead += lane->ahead;
    bool overtaken_enough = lane->ahead && lane->sent_before + lane->sent_ahead == model_share(model, lane);
    if (++lane->in_a_row == model->settings.batch || lane->sent == model_share(model, lane) || overtaken_enough)
        model_end_turn(model);
}

static void model_take(struct model *model, int picked, bool this_round)
{
    struct model_lane *lane = &model->lanes[picked];
    if (model->latest != picked)
        lane->in_a_row = 0;
    if (model->settings.round_robin)
        model_take_in_round(model, picked, this_round);
    else
        lane->in_a_row++;
    model->latest = picked;
    lane->total++;
    for (int i = 0; i < LANES; i++)
        model->lanes[i].others_sent += i != picked && eligible(&model->lanes[i]);
    lane->others_sent = 0;
    lane->crossed = false;
}

/* Nobody has sent anything: all stand before the ring. */
static void model_begin_afresh(struct model *model)
{
    bool this_round;
    if (!model->settings.round_robin || (model->afresh && model_pick(model, &this_round) >= 0 && this_round))
        return;
    model_end_turn(model);
    model_next_round(model);
    model->afresh = true;
    for (int i = 0; i < LANES; i++) {
        struct model_lane *lane = &model->lanes[i];
        lane->sent_before = 0;
        lane->crossed = true;
        if (eligible(lane))
            lane->ahead = model_ahead(model, lane);
    }
}

static void model_add(struct model *model, struct model_lane *lane)
{
    if (lane->work)
        return;
    lane->work = true;
    lane->others_sent = 0;
    lane->crossed = false;
    lane->place = ++model->places;
    if (!lane->served)
        lane->later = model->late++ >= model->late_max;
    lane->ahead = model_ahead(model, lane);
}

static void model_leave(struct model *model, int i)
{
    if (model->holder == i)
        model_end_turn(model);
    model->lanes[i].later = false;
}

static void model_return(struct model *model, instant now)
{
    for (int i = 0; i < LANES; i++)
        if (model->lanes[i].parked && model->lanes[i].until <= now) {
            model->lanes[i].parked = false;
            model->lanes[i].ahead = model_ahead(model, &model->lanes[i]);
            model->lanes[i].others_sent = 0;
        }
}

static void check_same(const struct turns *turns, const struct turn *ring, const struct model *model, int step)
{
    for (int i = 0; i < LANES; i++) {
        const struct model_lane *lane = &model->lanes[i];
        struct turn_figures figures = turn_figures(turns, &ring[i]);
        check(figures.total == lane->total, "step %d, lane %d", step, i);
        check(figures.in_a_row == (model->latest == i ? lane->in_a_row : 0), "step %d, lane %d: %lld", step, i, (long long)figures.in_a_row);
        check(figures.rounds_without == lane->waited, "step %d, lane %d", step, i);
        check(figures.priority == model_urgency(model, lane, true), "step %d, lane %d", step, i);
    }
}

/* Invariant 7, with weights: the sum of the others' shares; twice that where a round began afresh meanwhile. */
static void check_waits(const struct model *model, int step)
{
    int64_t weights = 0;
    for (int i = 0; i < LANES; i++)
        weights += model->lanes[i].weight;
    for (int i = 0; i < LANES; i++) {
        const struct model_lane *lane = &model->lanes[i];
        int64_t round = (weights - lane->weight) * model->settings.batch;
        check(!eligible(lane) || lane->others_sent <= (lane->crossed ? 2 : 1) * round, "step %d: lane %d has waited for %lld",
              step, i, (long long)lane->others_sent);
    }
}

struct history {
    struct turns turns;
    struct turn ring[LANES];
    struct model model;
    struct random random;
    instant now;
};

static void history_dispatch(struct history *history, int step)
{
    bool this_round;
    int64_t max = 0;
    int picked = model_pick(&history->model, &this_round);
    struct turn *front = turns_front(&history->turns, &max);
    check(front == (picked < 0 ? NULL : &history->ring[picked]), "step %d: %d, not %d", step,
          front ? (int)(front - history->ring) : -1, picked);
    if (!front)
        return;
    turns_took(&history->turns, 1, history->now);
    model_take(&history->model, picked, this_round);
}

static void history_change(struct history *history, int i)
{
    struct model_lane *lane = &history->model.lanes[i];
    switch (random_below(&history->random, 4)) {
    case 0:
        turns_remove(&history->turns, &history->ring[i]);
        model_leave(&history->model, i);
        lane->work = lane->parked = false;
        break;
    case 1:
        if (!lane->work)
            break;
        lane->until = history->now + (int64_t)random_below(&history->random, 60);
        turns_park(&history->turns, &history->ring[i], lane->until);
        if (!lane->parked)
            model_leave(&history->model, i);
        lane->parked = true;
        break;
    case 2:
        turns_unpark(&history->turns, &history->ring[i]);
        if (!lane->parked)
            break;
        lane->parked = false;
        lane->ahead = model_ahead(&history->model, lane);
        lane->others_sent = 0;
        break;
    default:
        turns_add(&history->turns, &history->ring[i]);
        model_add(&history->model, lane);
    }
}

struct pace {
    size_t busy;   /* changes are one in so many steps */
    size_t afresh; /* so are beginnings; 0: none */
};

static void history_run(struct history *history, struct turns_settings settings, int64_t weight_max, uint64_t seed, struct pace pace)
{
    *history = (struct history){ .random = { seed }, .now = start };
    history->model = (struct model){ .settings = settings, .holder = -1, .latest = -1, .late_max = TURNS_LATE_MIN };
    turns_init(&history->turns, &settings);
    assert_int_equal(turns_reserve(&history->turns, LANES), STATUS_OK);
    for (int i = 0; i < LANES; i++) {
        history->model.lanes[i].weight = 1 + (int64_t)random_below(&history->random, (size_t)weight_max);
        turn_init(&history->ring[i], history->model.lanes[i].weight);
    }
    for (int step = 0; step < 6000; step++) {
        history->now += (int64_t)random_below(&history->random, 3);
        while (turns_unpark_due(&history->turns, history->now))
            ;
        model_return(&history->model, history->now);
        if (random_below(&history->random, pace.busy) == 0)
            history_change(history, (int)random_below(&history->random, LANES));
        if (pace.afresh > 0 && random_below(&history->random, pace.afresh) == 0) {
            turns_begin_afresh(&history->turns);
            model_begin_afresh(&history->model);
        }
        history_dispatch(history, step);
        check_same(&history->turns, history->ring, &history->model, step);
        if (settings.round_robin)
            check_waits(&history->model, step);
    }
    turns_release(&history->turns);
}

static void it_agrees_with_a_model_that_looks_at_all(void **state)
{
    (void)state;
    static const struct {
        struct turns_settings settings;
        int64_t weight_max;
        size_t busy; /* changes are one in so many steps */
    } cases[] = {
        { { true, 3, 5 }, 1, 1 },  { { true, 3, 5 }, 1, 8 },   { { true, 3, 5 }, 4, 2 },   { { true, 1, 5 }, 1, 2 },
        { { true, 1, 1 }, 3, 2 },  { { true, 7, 100 }, 2, 4 }, { { true, 2, 3 }, 10, 20 }, { { true, 10, 5 }, 1, 50 },
        { { false, 3, 5 }, 1, 2 }, { { false, 3, 5 }, 4, 30 },
    };
    static struct history history;
    for (size_t row = 0; row < COUNT_OF(cases); row++)
        for (uint64_t seed = 1; seed <= 6; seed++)
            history_run(&history, cases[row].settings, cases[row].weight_max, 100 * row + seed,
                        (struct pace){ cases[row].busy, seed > 3 ? 1 + 20 * (seed - 4) : 0 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_agrees_with_a_model_that_looks_at_all),
    };
    return cmocka_run_group_tests_name("turns_model", tests, NULL, NULL);
}
