#include "core/outage/concurrency.h"

#include <assert.h>

enum {
    ROUND_PART = 4,      /* answers of a round, in times of the limit, */
    ROUND_MIN = 20,      /* and at least so many; */
    ROUND_PART_FAST = 2, /* less before the first fall */
    ROUND_MIN_FAST = 10,
    TRIAL_PART = 12,     /* a trial lasts until so many failures would have been seen, were they as many as before */
    SLOW_LASTS_MS = 500, /* slower for less is the machine that is busy: rounds of quick answers are over in a moment */
    BORNE_ROUNDS = 4,    /* how much fails with what is borne is known from so many rounds, about */
};

static const double more_times = 1.7; /* than what is not heeded: that is another sign */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A clock that was put back must not make a wait longer. */
static bool has_passed(instant *since, int64_t ms, instant now)
{
    if (*since != INSTANT_NONE && *since > now)
        *since = now;
    return *since == INSTANT_NONE || now - *since >= ms;
}

/* ---- rounds ---- */

static void begin_round(struct concurrency *concurrency)
{
    assert(concurrency->limit >= 1 && concurrency->limit <= concurrency->max);
    concurrency->number++;
    concurrency->first = concurrency->first_open = 0;
    round_begin(&concurrency->round, concurrency->limit);
}

static bool is_trial(const struct concurrency *concurrency)
{
    assert(concurrency->high.limit >= 0);
    return concurrency->high.limit > 0;
}

static int64_t round_answers_min(const struct concurrency *concurrency)
{
    assert(concurrency->limit >= 1);
    const struct round_figures *high = &concurrency->high;
    if (!is_trial(concurrency) && concurrency->fell_from == 0)
        return most(ROUND_PART_FAST * concurrency->limit, ROUND_MIN_FAST);
    int64_t answers = most(ROUND_PART * concurrency->limit, ROUND_MIN);
    if (is_trial(concurrency) && concurrency->sign == SIGN_FAILURES)
        answers = most(answers, TRIAL_PART * high->answers / most(high->failures, 1));
    return answers;
}

/* More than was borne is being tried. */
static bool is_above_base(const struct concurrency *concurrency)
{
    return !is_trial(concurrency) && concurrency->base.limit > 0 && concurrency->limit > concurrency->base.limit;
}

/* The failures are enough to count, or few enough. */
static bool is_settled(const struct concurrency *concurrency)
{
    const struct round_figures *figures = &concurrency->round.figures;
    if (is_above_base(concurrency))
        return !round_may_fail_less(&concurrency->borne, figures) || round_failed_less(&concurrency->borne, figures);
    return figures->failures >= ROUND_FAILURES_MIN || figures->failures * ROUND_FAILURES_PART <= figures->answers;
}

/* Its first sends are all answered, so that slow answers count too. */
static bool round_is_over(const struct concurrency *concurrency)
{
    assert(concurrency->first_open >= 0 && concurrency->first_open <= concurrency->first);
    return concurrency->round.figures.answers >= round_answers_min(concurrency) &&
           concurrency->first >= concurrency->limit && concurrency->first_open == 0 && is_settled(concurrency);
}

static void set_limit(struct concurrency *concurrency, int64_t limit)
{
    assert(limit >= 1 && limit <= concurrency->max);
    concurrency->limit = limit;
    begin_round(concurrency);
}

/* ---- signs ---- */

static double sign_level(enum concurrency_sign sign, const struct round_figures *round)
{
    assert(sign != SIGN_NONE && round->answers > 0);
    return sign == SIGN_SLOW ? round->time_ms : (double)round->failures / (double)round->answers;
}

static bool is_heeded(struct concurrency *concurrency, enum concurrency_sign sign, const struct round_figures *round,
                      instant now)
{
    assert(sign != SIGN_NONE);
    struct ignored_sign *ignored = &concurrency->ignored[sign];
    return ignored->since == INSTANT_NONE || has_passed(&ignored->since, ignored->ms, now) ||
           sign_level(sign, round) > more_times * ignored->level;
}

static enum concurrency_sign sign_of(struct concurrency *concurrency, const struct round_figures *round, instant now)
{
    if (round_fails(round) && is_heeded(concurrency, SIGN_FAILURES, round, now))
        return SIGN_FAILURES;
    if (round_is_slow(round, concurrency->best_ms) && is_heeded(concurrency, SIGN_SLOW, round, now))
        return SIGN_SLOW;
    return SIGN_NONE;
}

/* Twice as long as the last time, unless the sign had gone away in between. */
static void ignore(struct concurrency *concurrency, enum concurrency_sign sign, const struct round_figures *round,
                   instant now)
{
    assert(sign != SIGN_NONE);
    struct ignored_sign *ignored = &concurrency->ignored[sign];
    double level = sign_level(sign, round);
    bool again = ignored->since != INSTANT_NONE && now - ignored->since <= 3 * ignored->ms;
    ignored->ms = again ? least(2 * ignored->ms, CONCURRENCY_IGNORE_MAX_MS) : CONCURRENCY_IGNORE_MS;
    ignored->level = again && ignored->level > level ? ignored->level : level;
    ignored->since = now;
}

/* ---- rises and falls ---- */

/* `from` was too many. */
static void fall(struct concurrency *concurrency, int64_t from, enum concurrency_sign sign, instant now)
{
    assert(from > 0 && sign != SIGN_NONE);
    concurrency->doubles_to = concurrency->limit;
    concurrency->fell_from = from;
    concurrency->fell_for = sign;
    concurrency->judged_at = now;
    concurrency->step = 0;
}

static void fall_back(struct concurrency *concurrency, enum concurrency_sign sign, instant now)
{
    assert(is_above_base(concurrency));
    int64_t from = concurrency->limit;
    concurrency->seen.limit = 0;
    set_limit(concurrency, concurrency->base.limit);
    fall(concurrency, from, sign, now);
    concurrency->wait_ms = least(2 * concurrency->wait_ms, CONCURRENCY_WAIT_MAX_MS);
}

static void rise(struct concurrency *concurrency, instant now)
{
    assert(concurrency->doubles_to > 0);
    int64_t limit = concurrency->limit, next = least(2 * limit, concurrency->doubles_to);
    if (limit >= concurrency->doubles_to) {
        if (!has_passed(&concurrency->judged_at, concurrency->wait_ms, now))
            return;
        concurrency->step = most(concurrency->step, most(1, limit / CONCURRENCY_STEP));
        next = limit + concurrency->step;
    }
    next = least(next, concurrency->max);
    if (next > limit) {
        concurrency->judged_at = now;
        concurrency->limit = next;
    }
}

/* Rounds add up, so that what is rare is seen; old ones count less and less. */
static void remember(struct round_figures *sum, const struct round_figures *round)
{
    assert(round->failures >= 0 && round->failures <= round->answers);
    if (sum->answers > BORNE_ROUNDS * round->answers) {
        sum->answers /= 2;
        sum->failures /= 2;
        sum->held_ms /= 2;
    }
    sum->answers += round->answers;
    sum->failures += round->failures;
    sum->held_ms += round->held_ms;
}

/* The round was borne, or shows only signs that the load is not to blame for. */
static void bear(struct concurrency *concurrency, const struct round_figures *round, instant now)
{
    assert(round->limit > 0);
    if (is_above_base(concurrency)) {
        concurrency->wait_ms = CONCURRENCY_WAIT_MS;
        concurrency->step *= 2;
    }
    concurrency->base = *round;
    remember(&concurrency->borne, round);
    concurrency->doubles_to = most(concurrency->doubles_to, round->limit);
    rise(concurrency, now);
    begin_round(concurrency);
}

/* What one round shows may be chance: it must come twice, and slow answers must last. */
static bool has_come_again(struct concurrency *concurrency, const struct round_figures *round, enum concurrency_sign sign,
                           instant now)
{
    assert(sign != SIGN_NONE);
    if (concurrency->seen.limit == round->limit)
        return sign != SIGN_SLOW || has_passed(&concurrency->seen_at, SLOW_LASTS_MS, now);
    concurrency->seen = *round;
    concurrency->seen_at = now;
    return false;
}

/* One round with half, to see whether the load is to blame. */
static void begin_trial(struct concurrency *concurrency, const struct round_figures *round, enum concurrency_sign sign,
                        instant now)
{
    assert(!is_trial(concurrency) && sign != SIGN_NONE);
    if (round->limit == 1) {
        ignore(concurrency, sign, round, now);
        bear(concurrency, round, now);
        return;
    }
    concurrency->high = *round;
    remember(&concurrency->high, &concurrency->seen);
    concurrency->seen.limit = 0;
    concurrency->sign = sign;
    set_limit(concurrency, round->limit / 2);
}

/* More than was borne brings more failures, however few: no other sign is needed. */
static bool fails_more(const struct concurrency *concurrency, const struct round_figures *round)
{
    return is_above_base(concurrency) && round_failed_less(&concurrency->borne, round);
}

static void judge_round(struct concurrency *concurrency, const struct round_figures *round, instant now)
{
    assert(!is_trial(concurrency));
    enum concurrency_sign sign = sign_of(concurrency, round, now);
    if (sign == SIGN_NONE)
        concurrency->seen.limit = 0;
    if (fails_more(concurrency, round))
        fall_back(concurrency, SIGN_FAILURES, now);
    else if (sign == SIGN_NONE)
        bear(concurrency, round, now);
    else if (!has_come_again(concurrency, round, sign, now))
        begin_round(concurrency);
    else if (is_above_base(concurrency) && round_came_sooner(&concurrency->base, round))
        fall_back(concurrency, sign, now);
    else
        begin_trial(concurrency, round, sign, now);
}

/* What is known of what it bears is not so any more. */
static void forget(struct concurrency *concurrency)
{
    concurrency->base.limit = concurrency->seen.limit = concurrency->high.limit = 0;
    concurrency->borne = (struct round_figures){ .limit = 0 };
}

/*
 * With less it is better, and it stays so. Else what was seen with more is how the destination is, and failures that it fell
 * for before may have been of the same kind.
 */
static void judge_trial(struct concurrency *concurrency, const struct round_figures *round, instant now)
{
    assert(is_trial(concurrency));
    struct round_figures high = concurrency->high;
    enum concurrency_sign sign = concurrency->sign;
    concurrency->high.limit = 0;
    if (round_failed_less(round, &high) || round_came_sooner(round, &high) || round_bought_nothing(round, &high)) {
        fall(concurrency, high.limit, sign, now);
        forget(concurrency);
        concurrency->ignored[sign].since = INSTANT_NONE;
        judge_round(concurrency, round, now);
        return;
    }
    if (sign == SIGN_SLOW)
        concurrency->best_ms = high.time_ms;
    else
        concurrency->doubles_to = most(concurrency->doubles_to, least(concurrency->fell_from, concurrency->max));
    ignore(concurrency, sign, &high, now);
    concurrency->limit = high.limit;
    bear(concurrency, &high, now);
}

/* Not one good answer. What was above what it bore may have been too much for it. */
void concurrency_outage(struct concurrency *concurrency)
{
    if (is_above_base(concurrency))
        concurrency->doubles_to = concurrency->base.limit;
    if (is_trial(concurrency))
        concurrency->limit = least(concurrency->high.limit, concurrency->max);
    concurrency->high.limit = 0;
    concurrency->outage = true;
    begin_round(concurrency);
}

static void end_round(struct concurrency *concurrency, instant now)
{
    assert(concurrency->round.figures.answers > 0);
    struct round_figures round = round_read(&concurrency->round);
    if (round.failures == round.answers) {
        concurrency_outage(concurrency);
        return;
    }
    if (concurrency->best_ms <= 0 || round.time_ms < concurrency->best_ms)
        concurrency->best_ms = round.time_ms;
    if (is_trial(concurrency))
        judge_trial(concurrency, &round, now);
    else
        judge_round(concurrency, &round, now);
}

static void come_back(struct concurrency *concurrency)
{
    assert(concurrency->outage);
    concurrency->outage = false;
    forget(concurrency);
    concurrency->wait_ms = CONCURRENCY_WAIT_MS;
    concurrency->step = 0;
    set_limit(concurrency, least(CONCURRENCY_FIRST, concurrency->max));
}

/*
 * Failures that come with more than was borne are heeded at once: as soon as they would be too many even if the rest of the
 * round went well.
 */
static bool suffices(const struct concurrency *concurrency)
{
    struct round_figures round = concurrency->round.figures;
    if (round.failures == round.answers)
        return false; /* that may be an outage */
    round.answers = most(round.answers, round_answers_min(concurrency));
    return fails_more(concurrency, &round);
}

/* ---- what happens ---- */

void concurrency_init(struct concurrency *concurrency, int64_t max, bool adaptive)
{
    assert(max > 0);
    *concurrency = (struct concurrency){
        .max = max,
        .adaptive = adaptive,
        .limit = adaptive ? least(CONCURRENCY_FIRST, max) : max,
        .doubles_to = max,
        .judged_at = INSTANT_NONE,
        .wait_ms = CONCURRENCY_WAIT_MS,
        .ignored = { [SIGN_FAILURES] = { .since = INSTANT_NONE }, [SIGN_SLOW] = { .since = INSTANT_NONE } },
    };
    begin_round(concurrency);
}

/* What is under way is of another round. */
void concurrency_restart(struct concurrency *concurrency, int64_t max, bool adaptive)
{
    assert(max > 0);
    uint32_t number = concurrency->number, full = concurrency->full;
    concurrency_init(concurrency, max, adaptive);
    concurrency->number = number + 1;
    concurrency->full = full;
}

void concurrency_configure(struct concurrency *concurrency, int64_t max, bool adaptive)
{
    assert(max > 0);
    if (adaptive != concurrency->adaptive || !adaptive) {
        concurrency_restart(concurrency, max, adaptive);
        return;
    }
    if (max == concurrency->max)
        return;
    if (concurrency->fell_from == 0)
        concurrency->doubles_to = max;
    concurrency->doubles_to = least(concurrency->doubles_to, max);
    concurrency->max = max;
    concurrency->wait_ms = CONCURRENCY_WAIT_MS;
    forget(concurrency);
    set_limit(concurrency, least(concurrency->limit, max));
}

struct concurrency_pass concurrency_begin(struct concurrency *concurrency, int64_t count, int64_t under_way, instant now)
{
    struct concurrency_pass pass = { .number = concurrency->number, .full = concurrency->full,
                                     .first = concurrency->first < concurrency->limit, .at = now };
    assert(count > 0 && under_way >= count);
    if (under_way >= concurrency->limit)
        concurrency->full++;
    if (pass.first) {
        concurrency->first += count;
        concurrency->first_open += count;
    }
    return pass;
}

void concurrency_give_back(struct concurrency *concurrency, struct concurrency_pass pass, int64_t count)
{
    if (!pass.first || pass.number != concurrency->number)
        return;
    concurrency->first -= count;
    concurrency->first_open -= count;
    assert(concurrency->first_open >= 0);
}

void concurrency_answer(struct concurrency *concurrency, struct concurrency_pass pass,
                        const struct concurrency_answer *answer, instant now)
{
    if (!concurrency->adaptive || pass.number != concurrency->number)
        return; /* sent under another limit */
    if (concurrency->outage && answer->good) {
        come_back(concurrency);
        return;
    }
    if (pass.first)
        concurrency->first_open--;
    if (pass.full == concurrency->full)
        return; /* not all slots were in use meanwhile: it says nothing about the limit */
    if (answer->good)
        round_good(&concurrency->round, answer->latency_ms, now - pass.at);
    else
        round_bad(&concurrency->round, answer->asked, now - pass.at);
    if (!answer->good && suffices(concurrency))
        fall_back(concurrency, SIGN_FAILURES, now);
    else if (round_is_over(concurrency))
        end_round(concurrency, now);
}

enum concurrency_reason concurrency_reason(const struct concurrency *concurrency)
{
    if (!concurrency->adaptive)
        return LIMIT_CONFIGURED;
    if (concurrency->outage)
        return LIMIT_OUTAGE;
    if (is_trial(concurrency))
        return LIMIT_TRIAL;
    if (concurrency->limit >= concurrency->max)
        return LIMIT_MAX;
    if (concurrency->limit < concurrency->doubles_to)
        return LIMIT_STARTS;
    return concurrency->limit < concurrency->fell_from ? LIMIT_BORNE : LIMIT_RISES;
}

instant concurrency_rises_at(const struct concurrency *concurrency)
{
    enum concurrency_reason reason = concurrency_reason(concurrency);
    if ((reason != LIMIT_BORNE && reason != LIMIT_RISES) || concurrency->judged_at == INSTANT_NONE)
        return INSTANT_NONE;
    return instant_add(concurrency->judged_at, concurrency->wait_ms);
}
