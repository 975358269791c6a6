#include "core/outage/contingency.h"

#include <assert.h>
#include <string.h>

void contingency_init(struct contingency *contingency, instant now)
{
    *contingency = (struct contingency){
        .saved = {
            .mode = MODE_NORMAL,
            .since = now,
            .ignore_until = INSTANT_NONE,
            .check_at = INSTANT_NONE,
            .looked_at = INSTANT_NONE,
            .calm_since = INSTANT_NONE,
            .incident = { .first_sign_at = INSTANT_NONE, .entered_at = INSTANT_NONE, .recovering_at = INSTANT_NONE,
                          .restored_at = INSTANT_NONE },
        },
        .watched_since = now,
        .first_sign_at = INSTANT_NONE,
        .well = { { .at = INSTANT_NONE }, { .at = INSTANT_NONE } },
        .answer_by = INSTANT_NONE,
        .go_at = now,
        .active_at = now,
    };
}

static struct mode_change none(const struct contingency *contingency)
{
    assert(contingency->saved.mode < MODE_COUNT);
    return (struct mode_change){ contingency->saved.mode, contingency->saved.mode, CAUSE_NONE, CRITERION_NONE,
                                 INSTANT_NONE };
}

/* ---- the go, and the steps ---- */

/* How many may be under way at this step; the last level stays while stability is awaited. */
static int64_t level_of(const struct contingency *contingency, const struct contingency_rules *rules)
{
    assert(rules->ramp_count == 0 || contingency->saved.step <= rules->ramp_count);
    size_t step = contingency->saved.step;
    if (rules->ramp_count == 0)
        return INT64_MAX;
    return rules->ramp[step < rules->ramp_count ? step : rules->ramp_count - 1];
}

static void curve_add(struct incident *incident, int64_t level, instant at)
{
    assert(incident->curve_count <= RAMP_CURVE_MAX && level >= 0);
    if (incident->curve_count == RAMP_CURVE_MAX) /* when it began and how it ended is what is asked for later */
        memmove(&incident->curve[1], &incident->curve[2], (--incident->curve_count - 1) * sizeof *incident->curve);
    incident->curve[incident->curve_count].at = at;
    incident->curve[incident->curve_count++].level = level;
}

/* A new go, or a new look: what is still under way of the old one says nothing about it. */
static void go_begin(struct contingency *contingency, instant at)
{
    contingency->epoch++;
    contingency->taken = contingency->good = contingency->bad = contingency->away = 0;
    contingency->answer_by = INSTANT_NONE;
    contingency->go_at = at;
    contingency->active_at = at;
}

static void step_to(struct contingency *contingency, const struct contingency_rules *rules, size_t step, instant now)
{
    assert(step <= rules->ramp_count && contingency->saved.mode == MODE_RECOVERING);
    instant earliest = instant_add(contingency->go_at, RAMP_STEP_MS);
    bool waits = earliest > now && earliest <= instant_add(now, RAMP_STEP_MS);
    contingency->saved.step = step;
    contingency->saved.calm_since = now;
    go_begin(contingency, waits ? earliest : now);
    curve_add(&contingency->saved.incident, level_of(contingency, rules), contingency->go_at);
}

/* ---- changes of mode ---- */

static struct mode_change change_to(struct contingency *contingency, enum mode mode, enum cause cause,
                                    enum criterion criterion, instant now)
{
    assert(mode < MODE_COUNT && cause < CAUSE_COUNT && criterion < CRITERION_COUNT);
    struct mode_change change = { contingency->saved.mode, mode, cause, criterion, now };
    contingency->saved.mode = mode;
    contingency->saved.cause = cause;
    contingency->saved.since = now;
    contingency->setbacks = 0;
    contingency->signs_in_a_row = 0;
    contingency->first_sign_at = INSTANT_NONE;
    contingency->checks_failed = 0;
    memset(contingency->signs, 0, sizeof contingency->signs);
    go_begin(contingency, now);
    return change;
}

/* `soon`: the last one failed although somebody answered. */
static instant next_look_at(struct contingency *contingency, const struct contingency_rules *rules, bool soon, instant now)
{
    assert(rules->check_ms >= 0);
    contingency->looks_soon = soon ? contingency->looks_soon + 1 : 0;
    soon = soon && contingency->looks_soon <= LOOKS_SOON_MAX;
    return instant_add(now, soon ? looks_soon_ms(rules->check_ms) : rules->check_ms);
}

static struct mode_change hold(struct contingency *contingency, const struct contingency_rules *rules, enum cause cause,
                               enum criterion criterion, instant now)
{
    struct incident *incident = &contingency->saved.incident;
    assert(contingency->saved.mode != MODE_CONTINGENCY);
    if (contingency->saved.mode == MODE_NORMAL) {
        bool signs = contingency->first_sign_at != INSTANT_NONE;
        *incident = (struct incident){
            .first_sign_at = signs ? contingency->first_sign_at : now,
            .entered_at = now,
            .recovering_at = INSTANT_NONE,
            .restored_at = INSTANT_NONE,
            .cause = cause,
            .criterion = criterion,
            .checks_failed = contingency->checks_failed,
        };
        memcpy(incident->signs, contingency->signs, sizeof incident->signs);
        contingency->was_away = false;
        contingency->used_in_vain = 0;
    } else {
        incident->relapses++;
    }
    curve_add(incident, 0, now);
    bool soon = cause == CAUSE_RELAPSE && 2 * contingency->away <= contingency->bad;
    contingency->saved.check_at = next_look_at(contingency, rules, soon, now);
    contingency->saved.looked_at = INSTANT_NONE;
    contingency->saved.look_ms = 0;
    return change_to(contingency, MODE_CONTINGENCY, cause, criterion, now);
}

static struct mode_change recover(struct contingency *contingency, const struct contingency_rules *rules, enum cause cause,
                                  instant now)
{
    assert(contingency->saved.mode == MODE_CONTINGENCY);
    struct mode_change change = change_to(contingency, MODE_RECOVERING, cause, CRITERION_NONE, now);
    contingency->saved.incident.recovering_at = now;
    contingency->saved.forced = false;
    contingency->saved.step = 0;
    contingency->saved.calm_since = now;
    curve_add(&contingency->saved.incident, level_of(contingency, rules), now);
    return change;
}

static struct mode_change restore(struct contingency *contingency, enum cause cause, instant now)
{
    assert(contingency->saved.mode != MODE_NORMAL);
    contingency->saved.incident.restored_at = now;
    contingency->saved.forced = false;
    return change_to(contingency, MODE_NORMAL, cause, CRITERION_NONE, now);
}

static struct mode_change set_back(struct contingency *contingency, const struct contingency_rules *rules,
                                   enum criterion criterion, instant now)
{
    assert(contingency->saved.mode == MODE_RECOVERING);
    bool relapses = contingency->saved.step == 0 || ++contingency->setbacks >= RAMP_SETBACKS_MAX;
    /* Held again, it would be let go at the next tick, and so on without an end and without spending a try. */
    if (relapses && !rules->enabled)
        return restore(contingency, CAUSE_CONFIGURATION, now);
    if (relapses)
        return hold(contingency, rules, CAUSE_RELAPSE, criterion, now);
    step_to(contingency, rules, contingency->saved.step - 1, now);
    return none(contingency);
}

/* ---- asking ---- */

static instant window_until(const struct contingency *contingency, const struct contingency_rules *rules, instant now)
{
    instant end = rules->enabled ? maintenance_end(rules->windows, rules->window_count, now) : INSTANT_NONE;
    bool ignored = contingency->saved.ignore_until != INSTANT_NONE && end <= contingency->saved.ignore_until;
    return ignored ? INSTANT_NONE : end;
}

static struct contingency_answer ask_contingency(const struct contingency *contingency,
                                                 const struct contingency_rules *rules, instant now)
{
    assert(contingency->saved.mode == MODE_CONTINGENCY);
    instant window = window_until(contingency, rules, now);
    if (contingency->saved.forced)
        return (struct contingency_answer){ 0, false, INSTANT_NONE };
    if (window != INSTANT_NONE)
        return (struct contingency_answer){ 0, true, window };
    if (!rules->has_health && contingency->saved.check_at <= now) {
        bool probing = contingency->taken > 0;
        return (struct contingency_answer){ probing ? 0 : 1, false, probing ? contingency->answer_by : INSTANT_NONE };
    }
    return (struct contingency_answer){ 0, false, contingency->saved.check_at };
}

static int64_t used_look_ms(const struct contingency *contingency, const struct contingency_rules *rules)
{
    assert(rules->check_ms >= 0);
    int64_t last = contingency->saved.look_ms > rules->check_ms ? contingency->saved.look_ms : rules->check_ms;
    int64_t most = rules->check_ms * LOOK_INTERVALS_MAX;
    return last < most / 2 ? 2 * last : most;
}

/*
 * The first look is due at the same time whoever looks: there is nothing yet to be twice as long. And where nobody was there
 * and now somebody answers, those that fail are perhaps to blame themselves, and it is worth to ask another soon.
 */
instant contingency_used_look_at(const struct contingency *contingency, const struct contingency_rules *rules)
{
    const struct contingency_saved *saved = &contingency->saved;
    bool soon = contingency->was_away && contingency->looks_soon > 0 && contingency->looks_soon <= LOOKS_SOON_MAX &&
                contingency->used_in_vain < LOOKS_SOON_MAX;
    if (saved->mode != MODE_CONTINGENCY || saved->looked_at == INSTANT_NONE || soon)
        return saved->mode == MODE_CONTINGENCY ? saved->check_at : INSTANT_NONE;
    return instant_add(saved->looked_at, used_look_ms(contingency, rules));
}

struct contingency_answer contingency_ask(const struct contingency *contingency, const struct contingency_rules *rules,
                                          int64_t under_way, instant now)
{
    assert(under_way >= 0);
    if (contingency->saved.mode == MODE_NORMAL)
        return (struct contingency_answer){ INT64_MAX, false, INSTANT_NONE };
    if (contingency->saved.mode == MODE_CONTINGENCY)
        return ask_contingency(contingency, rules, now);
    if (contingency->go_at > now)
        return (struct contingency_answer){ 0, false, contingency->go_at };
    int64_t level = level_of(contingency, rules);
    bool in_goes = contingency->saved.step < rules->ramp_count;
    int64_t used = in_goes && contingency->taken > under_way ? contingency->taken : under_way;
    return (struct contingency_answer){ used < level ? level - used : 0, false, contingency->answer_by };
}

/* When a window that is over has cost nothing: nobody came to look in it or for a while after, so it was no outage. */
static instant window_forgotten_at(const struct contingency *contingency, const struct contingency_rules *rules)
{
    const struct contingency_saved *saved = &contingency->saved;
    bool looked_at = rules->has_health || saved->incident.probes > 0;
    return saved->cause == CAUSE_MAINTENANCE && !looked_at ? instant_add(saved->check_at, rules->check_ms) : INSTANT_NONE;
}

/* What is due already has been seen to by the last tick. */
instant contingency_next(const struct contingency *contingency, const struct contingency_rules *rules, instant now)
{
    instant next = INSTANT_NONE;
    instant_hasten(&next, contingency->answer_by, now);
    if (contingency->saved.mode == MODE_CONTINGENCY && !contingency->saved.forced) {
        instant window = window_until(contingency, rules, now);
        instant_hasten(&next, window != INSTANT_NONE ? window : contingency->saved.check_at, now);
        if (window == INSTANT_NONE && !rules->has_health)
            instant_hasten(&next, contingency_used_look_at(contingency, rules), now);
        instant_hasten(&next, window_forgotten_at(contingency, rules), now);
    }
    if (contingency->saved.mode == MODE_RECOVERING) {
        bool steps_done = contingency->saved.step >= rules->ramp_count;
        instant since = steps_done ? contingency->saved.calm_since : contingency->active_at;
        instant_hasten(&next, instant_add(since, rules->stable_ms), now);
        instant_hasten(&next, contingency->go_at, now);
        if (!steps_done && contingency->bad > 0 && contingency->taken == contingency->good + contingency->bad)
            instant_hasten(&next, instant_add(contingency->active_at, RAMP_STEP_MS), now);
    }
    if (contingency->saved.mode != MODE_CONTINGENCY && rules->enabled)
        instant_hasten(&next, maintenance_next(rules->windows, rules->window_count, now), now);
    return next;
}

/* ---- time ---- */

/* A clock that was set back must not make anything wait longer than it would have from now. */
static void heed_clock(struct contingency *contingency, const struct contingency_rules *rules, instant now)
{
    struct contingency_saved *saved = &contingency->saved;
    if (saved->check_at > instant_add(now, rules->check_ms))
        saved->check_at = instant_add(now, rules->check_ms);
    if (saved->looked_at > now)
        saved->looked_at = now;
    if (contingency->answer_by > instant_add(now, rules->answer_max_ms))
        contingency->answer_by = instant_add(now, rules->answer_max_ms);
    if (contingency->go_at > instant_add(now, RAMP_STEP_MS))
        contingency->go_at = now;
    if (saved->calm_since > now)
        saved->calm_since = now;
    if (contingency->active_at > now && contingency->active_at != contingency->go_at)
        contingency->active_at = now;
    if (saved->ignore_until != INSTANT_NONE &&
        (saved->ignore_until <= now || maintenance_end(rules->windows, rules->window_count, now) == INSTANT_NONE))
        saved->ignore_until = INSTANT_NONE;
}

static struct mode_change tick_contingency(struct contingency *contingency, const struct contingency_rules *rules, bool well,
                                           bool open, instant now)
{
    assert(contingency->saved.mode == MODE_CONTINGENCY);
    struct contingency_saved *saved = &contingency->saved;
    if (saved->forced)
        return none(contingency);
    instant window = window_until(contingency, rules, now);
    if (window != INSTANT_NONE) {
        saved->check_at = window; /* the first look is when it ends */
        return none(contingency);
    }
    if (!rules->enabled)
        return recover(contingency, rules, CAUSE_CONFIGURATION, now);
    bool lost = contingency->answer_by != INSTANT_NONE && contingency->answer_by <= now;
    if (lost) {
        go_begin(contingency, now);
        saved->check_at = instant_add(now, rules->check_ms);
    }
    instant forgotten_at = window_forgotten_at(contingency, rules);
    if (open && forgotten_at != INSTANT_NONE && forgotten_at <= now)
        return recover(contingency, rules, CAUSE_MAINTENANCE, now);
    if (!rules->has_health || saved->check_at > now)
        return none(contingency);
    if (well)
        return recover(contingency, rules, CAUSE_CHECKED, now);
    saved->check_at = instant_add(now, rules->check_ms);
    return none(contingency);
}

/* Of `bad` among `jobs`, of which no more can be answered. */
static bool go_failed(int64_t bad, int64_t jobs)
{
    assert(bad >= 0 && jobs >= 0);
    int64_t least = jobs < GO_FAILURES_MIN ? jobs : GO_FAILURES_MIN;
    return bad > 0 && 2 * bad > jobs && bad >= least;
}

static struct mode_change tick_recovering(struct contingency *contingency, const struct contingency_rules *rules, bool open,
                                          instant now)
{
    assert(contingency->saved.mode == MODE_RECOVERING);
    struct contingency_saved *saved = &contingency->saved;
    if (contingency->answer_by != INSTANT_NONE && contingency->answer_by <= now)
        return set_back(contingency, rules, CRITERION_TIMEOUT, now);
    if (!open) {
        contingency->active_at = contingency->active_at < now ? now : contingency->active_at;
        saved->calm_since = now;
        return none(contingency); /* that nothing failed says nothing: nothing could go */
    }
    bool idle = contingency->taken == contingency->good + contingency->bad;
    bool steps_done = saved->step >= rules->ramp_count;
    if (!steps_done && idle && instant_add(contingency->active_at, RAMP_STEP_MS) <= now &&
        go_failed(contingency->bad, contingency->taken))
        return set_back(contingency, rules, CRITERION_SERVICE, now); /* there were no more jobs for it */
    bool calm = steps_done && instant_add(saved->calm_since, rules->stable_ms) <= now;
    bool quiet = idle && instant_add(contingency->active_at, rules->stable_ms) <= now;
    return calm || quiet ? restore(contingency, CAUSE_STABLE, now) : none(contingency);
}

struct mode_change contingency_tick(struct contingency *contingency, const struct contingency_rules *rules, bool well,
                                    bool open, instant now)
{
    heed_clock(contingency, rules, now);
    if (contingency->saved.mode == MODE_CONTINGENCY)
        return tick_contingency(contingency, rules, well, open, now);
    if (window_until(contingency, rules, now) != INSTANT_NONE)
        return hold(contingency, rules, CAUSE_MAINTENANCE, CRITERION_MAINTENANCE, now);
    if (contingency->saved.mode == MODE_RECOVERING)
        return tick_recovering(contingency, rules, open, now);
    return none(contingency);
}

/* ---- signs ---- */

struct mode_change contingency_health(struct contingency *contingency, const struct contingency_rules *rules, bool well,
                                      enum health_change change, instant now)
{
    struct contingency_saved *saved = &contingency->saved;
    if (saved->mode == MODE_NORMAL && contingency->signs_in_a_row == 0 &&
        (well || contingency->first_sign_at == INSTANT_NONE))
        contingency->first_sign_at = well ? INSTANT_NONE : now;
    if (saved->mode == MODE_NORMAL)
        contingency->checks_failed = well ? 0 : contingency->checks_failed + 1;
    else if (!well)
        saved->incident.checks_failed++;
    if (change == HEALTH_WENT_DOWN && rules->enabled && saved->mode != MODE_CONTINGENCY)
        return hold(contingency, rules, CAUSE_HEALTH, CRITERION_NONE, now);
    if (change == HEALTH_CAME_UP && saved->mode == MODE_CONTINGENCY && !saved->forced &&
        window_until(contingency, rules, now) == INSTANT_NONE)
        return recover(contingency, rules, CAUSE_CHECKED, now);
    return none(contingency);
}

struct mode_change contingency_breaker(struct contingency *contingency, const struct contingency_rules *rules, instant now)
{
    if (!rules->enabled || contingency->saved.mode != MODE_NORMAL)
        return none(contingency);
    return hold(contingency, rules, CAUSE_BREAKER, CRITERION_NONE, now);
}

static struct mode_change note_normal(struct contingency *contingency, const struct contingency_rules *rules,
                                      const struct contingency_answered *answered, instant now)
{
    assert(contingency->saved.mode == MODE_NORMAL);
    enum criterion criterion = answered->criterion;
    if (criterion == CRITERION_NONE) {
        contingency->signs_in_a_row = 0;
        contingency->first_sign_at = INSTANT_NONE;
        memset(contingency->signs, 0, sizeof contingency->signs);
        return none(contingency);
    }
    if (contingency->signs_in_a_row++ == 0) {
        contingency->first_sign_at = now;
        contingency->sign_job = answered->job;
        contingency->sign_jobs = false;
    }
    contingency->sign_jobs = contingency->sign_jobs || answered->job != contingency->sign_job;
    contingency->signs[criterion]++;
    if (rules->enabled && rules->single_event)
        return hold(contingency, rules, CAUSE_SIGNAL, criterion, now);
    return none(contingency);
}

static struct mode_change note_look(struct contingency *contingency, const struct contingency_rules *rules,
                                    const struct contingency_answered *answered, instant now)
{
    assert(contingency->saved.mode == MODE_CONTINGENCY);
    struct contingency_saved *saved = &contingency->saved;
    bool looking = contingency->taken > 0 && !saved->forced;
    go_begin(contingency, now);
    bool well = answered->criterion == CRITERION_NONE;
    saved->look_ms = answered->used && saved->looked_at != INSTANT_NONE ? used_look_ms(contingency, rules) : rules->check_ms;
    saved->looked_at = now;
    contingency->looks_soon = well ? 0 : contingency->looks_soon;
    saved->check_at = well ? instant_add(now, rules->check_ms) : next_look_at(contingency, rules, !answered->away, now);
    if (looking && well && window_until(contingency, rules, now) == INSTANT_NONE)
        return recover(contingency, rules, CAUSE_CHECKED, now);
    return none(contingency);
}

static struct mode_change note_go(struct contingency *contingency, const struct contingency_rules *rules,
                                  const struct contingency_answered *answered, instant now)
{
    assert(contingency->saved.mode == MODE_RECOVERING && contingency->good + contingency->bad < contingency->taken);
    struct contingency_saved *saved = &contingency->saved;
    enum criterion criterion = answered->criterion;
    int64_t level = rules->ramp_count > 0 ? level_of(contingency, rules) : GO_JUDGED;
    contingency->active_at = now;
    *(criterion == CRITERION_NONE ? &contingency->good : &contingency->bad) += 1;
    contingency->away += criterion != CRITERION_NONE && answered->away;
    if (contingency->good + contingency->bad == contingency->taken)
        contingency->answer_by = INSTANT_NONE;
    if (go_failed(contingency->bad, level))
        return set_back(contingency, rules, criterion, now);
    if (contingency->good + contingency->bad < level)
        return none(contingency);
    if (saved->step < rules->ramp_count) {
        contingency->setbacks = 0;
        contingency->looks_soon = 0;
        step_to(contingency, rules, saved->step + 1, now);
    } else { /* the last level goes on: judged go by go, without a pause between */
        contingency->taken -= contingency->good + contingency->bad;
        contingency->good = contingency->bad = contingency->away = 0;
    }
    return none(contingency);
}

static void note_well(struct contingency *contingency, int64_t job, instant now)
{
    if (contingency->well[0].job != job)
        contingency->well[1] = contingency->well[0];
    contingency->well[0].job = job;
    contingency->well[0].at = now;
}

struct mode_change contingency_note(struct contingency *contingency, const struct contingency_rules *rules,
                                    const struct contingency_answered *answered, instant now)
{
    enum criterion criterion = answered->criterion;
    assert(criterion < CRITERION_COUNT);
    if (criterion == CRITERION_NONE)
        note_well(contingency, answered->job, now);
    if (contingency->saved.mode == MODE_NORMAL)
        return note_normal(contingency, rules, answered, now);
    if (criterion != CRITERION_NONE)
        contingency->saved.incident.signs[criterion]++;
    contingency->was_away = contingency->was_away || answered->away || criterion == CRITERION_NONE;
    contingency->used_in_vain += answered->used && !answered->away;
    if (criterion == CRITERION_NONE)
        contingency->used_in_vain = 0;
    if (answered->epoch != contingency->epoch)
        return none(contingency);
    if (contingency->saved.mode == MODE_CONTINGENCY)
        return note_look(contingency, rules, answered, now);
    return note_go(contingency, rules, answered, now);
}

bool contingency_served(const struct contingency *contingency, int64_t job, instant since)
{
    for (size_t i = 0; i < 2; i++)
        if (contingency->well[i].at != INSTANT_NONE && contingency->well[i].job != job && contingency->well[i].at >= since)
            return true;
    return false;
}

struct mode_change contingency_exhausted(struct contingency *contingency, const struct contingency_rules *rules,
                                         bool failing, const struct contingency_end *end, instant now, bool *ret_keep)
{
    bool normal = contingency->saved.mode == MODE_NORMAL;
    bool alone = normal && !contingency->sign_jobs && end->failed_at >= contingency->watched_since;
    bool served = contingency_served(contingency, end->job, end->failed_at);
    bool outage = rules->has_health && normal ? failing : !served && (!alone || end->away);
    *ret_keep = (rules->enabled || !normal) && outage;
    if (!normal || !*ret_keep)
        return none(contingency);
    return hold(contingency, rules, CAUSE_EXHAUSTED, CRITERION_NONE, now);
}

/* ---- the operator ---- */

struct mode_change contingency_enter(struct contingency *contingency, const struct contingency_rules *rules, instant now)
{
    contingency->saved.forced = true;
    contingency->saved.ignore_until = INSTANT_NONE;
    if (contingency->saved.mode == MODE_CONTINGENCY) {
        contingency->saved.cause = CAUSE_OPERATOR; /* from now on it is the operator who holds it */
        return none(contingency);
    }
    return hold(contingency, rules, CAUSE_OPERATOR, CRITERION_NONE, now);
}

struct mode_change contingency_remove(struct contingency *contingency, instant now)
{
    return contingency->saved.mode == MODE_NORMAL ? none(contingency) : restore(contingency, CAUSE_REMOVED, now);
}

struct mode_change contingency_leave(struct contingency *contingency, const struct contingency_rules *rules, instant now)
{
    if (contingency->saved.mode != MODE_CONTINGENCY)
        return none(contingency);
    contingency->saved.ignore_until = window_until(contingency, rules, now);
    return recover(contingency, rules, CAUSE_OPERATOR, now);
}

/* ---- places ---- */

void contingency_take(struct contingency *contingency, const struct contingency_rules *rules, int64_t count, instant now)
{
    assert(count > 0);
    if (contingency->saved.mode == MODE_NORMAL)
        return;
    contingency->taken += count;
    contingency->active_at = now;
    contingency->answer_by = instant_add(now, rules->answer_max_ms);
    if (contingency->saved.mode == MODE_CONTINGENCY)
        contingency->saved.incident.probes += count;
}

void contingency_give_back(struct contingency *contingency, uint32_t epoch, int64_t count)
{
    assert(count >= 0);
    if (contingency->saved.mode == MODE_NORMAL || epoch != contingency->epoch)
        return;
    contingency->taken -= count;
    assert(contingency->taken >= contingency->good + contingency->bad);
    if (contingency->taken == contingency->good + contingency->bad)
        contingency->answer_by = INSTANT_NONE;
    if (contingency->saved.mode == MODE_CONTINGENCY)
        contingency->saved.incident.probes -= count;
}

/* ---- the report, the restart, the names ---- */

void contingency_held(struct contingency *contingency, int64_t jobs)
{
    assert(jobs >= 0);
    struct incident *incident = &contingency->saved.incident;
    if (contingency->saved.mode != MODE_NORMAL && jobs > incident->held_max)
        incident->held_max = jobs;
}

void contingency_unspent(struct contingency *contingency, int64_t tries)
{
    assert(tries >= 0);
    if (contingency->saved.mode != MODE_NORMAL)
        contingency->saved.incident.unspent += tries;
}

void contingency_restore(struct contingency *contingency, const struct contingency_rules *rules,
                         const struct contingency_saved *saved, instant now)
{
    contingency_init(contingency, now);
    contingency->saved = *saved;
    if (saved->step > rules->ramp_count)
        contingency->saved.step = rules->ramp_count; /* the ramp has become shorter */
    if (saved->incident.curve_count > RAMP_CURVE_MAX)
        contingency->saved.incident.curve_count = RAMP_CURVE_MAX;
    if (saved->mode == MODE_CONTINGENCY && saved->check_at == INSTANT_NONE)
        contingency->saved.check_at = now;
    if (saved->mode == MODE_RECOVERING && saved->calm_since == INSTANT_NONE)
        contingency->saved.calm_since = now;
    heed_clock(contingency, rules, now);
}
