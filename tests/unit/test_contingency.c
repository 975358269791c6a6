/*
 * The mode of a destination, by scripts under a clock of their own.
 */
#include "core/outage/contingency.h"
#include "support/check.h"

#include <stdlib.h>

/* 2025-01-12T01:00:00Z, a Sunday. */
#define START INT64_C(1736643600000)
enum { CHECK_MS = 300 * 1000, STABLE_MS = 900 * 1000, ANSWER_MS = 60 * 1000, CHANGES_MAX = 31 };

static const int64_t ramp[] = { 5, 10, 25 };
static const struct maintenance_window sunday[] = { { 1, 120, 240 } }; /* 02:00-04:00, an hour after the start */

#define RULES .ramp = ramp, .ramp_count = 3, .stable_ms = STABLE_MS, .check_ms = CHECK_MS, .answer_max_ms = ANSWER_MS
static const struct contingency_rules checked = { .enabled = true, RULES, .has_health = true };
static const struct contingency_rules unchecked = { .enabled = true, RULES };
static const struct contingency_rules single = { .enabled = true, RULES, .has_health = true, .single_event = true };
static const struct contingency_rules planned = { .enabled = true, RULES, .has_health = true, .windows = sunday, .window_count = 1 };
static const struct contingency_rules planned_unchecked = { .enabled = true, RULES, .windows = sunday, .window_count = 1 };
static const struct contingency_rules off = { RULES, .has_health = true };
static const struct contingency_rules rampless = { .enabled = true, .stable_ms = STABLE_MS, .check_ms = CHECK_MS,
                                                   .answer_max_ms = ANSWER_MS };

struct model {
    struct contingency contingency;
    const struct contingency_rules *rules;
    instant now;
    bool well, held_back, saved;
    int64_t under_way;
    char changes[CHANGES_MAX + 1]; /* C, R or N for each mode that was told */
    struct mode_change last;
    int64_t jobs; /* so far */
    bool used;    /* those that look have failed before */
};

static struct model begin(const struct contingency_rules *rules)
{
    struct model model = { .rules = rules, .now = START, .well = true };
    contingency_init(&model.contingency, START);
    return model;
}

static void heard(struct model *model, struct mode_change change)
{
    assert_int_equal(change.to, model->contingency.saved.mode);
    if (change.from == change.to)
        return;
    size_t len = strlen(model->changes);
    assert_true(len < CHANGES_MAX);
    model->changes[len] = "NCR"[change.to];
    model->last = change;
    assert_int_equal(change.at, model->now);
    assert_int_equal(change.cause, model->contingency.saved.cause);
}

static void pass(struct model *model, int64_t ms)
{
    model->now += ms;
    heard(model, contingency_tick(&model->contingency, model->rules, model->well, !model->held_back, model->now));
}

static int64_t room(const struct model *model)
{
    return contingency_ask(&model->contingency, model->rules, model->under_way, model->now).room;
}

/* Each is another job. */
static void note(struct model *model, uint32_t epoch, enum criterion criterion, bool away)
{
    const struct contingency_answered answered = { .epoch = epoch, .job = ++model->jobs, .criterion = criterion, .away = away,
                                                   .used = model->used };
    heard(model, contingency_note(&model->contingency, model->rules, &answered, model->now));
}

static void answer(struct model *model, enum criterion criterion, bool away)
{
    assert_true(room(model) > 0);
    contingency_take(&model->contingency, model->rules, 1, model->now);
    note(model, model->contingency.epoch, criterion, away);
}

/* All that may go now, and all answered alike; what is answered after a change is of an earlier go. */
static void answer_all(struct model *model, enum criterion criterion)
{
    int64_t count = room(model);
    assert_in_range(count, 1, 1000);
    contingency_take(&model->contingency, model->rules, count, model->now);
    uint32_t epoch = model->contingency.epoch;
    while (count-- > 0)
        note(model, epoch, criterion, criterion != CRITERION_NONE);
}

/* The last job to be answered, which first failed when the signs began. */
static void exhaust(struct model *model, bool away)
{
    instant sign_at = model->contingency.first_sign_at;
    const struct contingency_end end = { .job = model->jobs, .failed_at = sign_at != INSTANT_NONE ? sign_at : START, .away = away };
    heard(model, contingency_exhausted(&model->contingency, model->rules, !model->well, &end, model->now, &model->saved));
}

static void act(struct model *model, char action)
{
    struct contingency *contingency = &model->contingency;
    switch (action) {
    case 'g': answer(model, CRITERION_NONE, false); break;
    case 't': answer(model, CRITERION_TIMEOUT, true); break;
    case 'c': answer(model, CRITERION_CONNECTIVITY, true); break;
    case 's': answer(model, CRITERION_SERVICE, true); break;
    case 'b': answer(model, CRITERION_BUSY, true); break;
    case 'j': answer(model, CRITERION_SERVICE, false); break; /* somebody answers */
    case 'G': answer_all(model, CRITERION_NONE); break;
    case 'F': answer_all(model, CRITERION_SERVICE); break;
    case 'T': contingency_take(contingency, model->rules, room(model), model->now); break;
    case 'D': model->well = false; heard(model, contingency_health(contingency, model->rules, false, HEALTH_WENT_DOWN, model->now)); break;
    case 'd': model->well = false; heard(model, contingency_health(contingency, model->rules, false, HEALTH_SAME, model->now)); break;
    case 'U': model->well = true; heard(model, contingency_health(contingency, model->rules, true, HEALTH_CAME_UP, model->now)); break;
    case 'u': model->well = true; heard(model, contingency_health(contingency, model->rules, true, HEALTH_SAME, model->now)); break;
    case 'B': heard(model, contingency_breaker(contingency, model->rules, model->now)); break;
    case 'X': exhaust(model, true); break;
    case 'x': exhaust(model, false); break;
    case 'E': heard(model, contingency_enter(contingency, model->rules, model->now)); break;
    case 'L': heard(model, contingency_leave(contingency, model->rules, model->now)); break;
    case 'P': model->held_back = true; break;
    case 'p': model->held_back = false; break;
    case ' ': break;
    default: fail();
    }
}

/* The letters of act, and numbers: so many seconds pass. */
static void play(struct model *model, const char *script)
{
    while (*script) {
        char *end;
        long seconds = strtol(script, &end, 10);
        if (end != script)
            pass(model, seconds * SECOND_MS);
        else
            act(model, *end++);
        script = end;
    }
}

struct script_case {
    const char *name;
    const struct contingency_rules *rules;
    const char *script, *changes;
    enum cause cause; /* of the last change */
    int64_t room;     /* -1: no limit */
};

static void run_scripts(const struct script_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct model model = begin(cases[i].rules);
        play(&model, cases[i].script);
        check(strcmp(model.changes, cases[i].changes) == 0, "%s: told %s", cases[i].name, model.changes);
        check(model.last.cause == cases[i].cause, "%s: cause %s", cases[i].name, cause_name(model.last.cause));
        check(room(&model) == (cases[i].room < 0 ? INT64_MAX : cases[i].room), "%s: room %lld", cases[i].name, (long long)room(&model));
    }
}

/* C-54 */
static void what_leads_to_contingency(void **state)
{
    (void)state;
    static const struct script_case cases[] = {
        { "nothing", &checked, "0 ggg 30 g", "", CAUSE_NONE, -1 },
        { "health is down", &checked, "D", "C", CAUSE_HEALTH, 0 },
        { "health is down, said again and again", &checked, "D 30 d 30 d 30 d", "C", CAUSE_HEALTH, 0 },
        { "a check that failed", &checked, "d d", "", CAUSE_NONE, -1 },
        { "one timeout alone", &checked, "t", "", CAUSE_NONE, -1 },
        { "single: a timeout", &single, "t", "C", CAUSE_SIGNAL, 0 },
        { "single: connectivity", &single, "c", "C", CAUSE_SIGNAL, 0 },
        { "single: a server error", &single, "s", "C", CAUSE_SIGNAL, 0 },
        { "single: busy", &single, "b", "C", CAUSE_SIGNAL, 0 },
        { "single: a good answer", &single, "g", "", CAUSE_NONE, -1 },
        { "the breaker", &unchecked, "B", "C", CAUSE_BREAKER, 0 },
        { "the breaker again", &unchecked, "B B", "C", CAUSE_BREAKER, 0 },
        { "a job at its end, health failing", &checked, "ttt d X", "C", CAUSE_EXHAUSTED, 0 },
        { "a job at its end, health good", &checked, "tttt X", "", CAUSE_NONE, -1 },
        { "a job at its end, nothing else well", &unchecked, "ttt X", "C", CAUSE_EXHAUSTED, 0 },
        { "a job alone at its end, and nobody answers", &unchecked, "t X", "C", CAUSE_EXHAUSTED, 0 },
        { "a job alone at its end, and somebody answers", &unchecked, "j x", "", CAUSE_NONE, -1 },
        { "not alone, and somebody answers", &unchecked, "jj x", "C", CAUSE_EXHAUSTED, 0 },
        { "unless another one has gone well since", &unchecked, "g t X", "", CAUSE_NONE, -1 },
        { "and not before", &unchecked, "g 1 t X", "C", CAUSE_EXHAUSTED, 0 },
        { "and health, where it is asked, knows better", &checked, "t X", "", CAUSE_NONE, -1 },
        { "a job at its end, others well", &unchecked, "tttg t X", "", CAUSE_NONE, -1 },
        { "a maintenance window begins", &planned, "3599 0 1", "C", CAUSE_MAINTENANCE, 0 },
        { "a window while it is down", &planned, "D 3600", "C", CAUSE_HEALTH, 0 },
        { "the operator", &checked, "E", "C", CAUSE_OPERATOR, 0 },
        { "the operator, where none is configured", &off, "E", "C", CAUSE_OPERATOR, 0 },
        { "none is configured: health", &off, "D", "", CAUSE_NONE, -1 },
        { "none is configured: breaker", &off, "B", "", CAUSE_NONE, -1 },
        { "none is configured: a job at its end", &off, "ttt d X", "", CAUSE_NONE, -1 },
        { "leaving what was not entered", &checked, "L", "", CAUSE_NONE, -1 },
    };
    run_scripts(cases, COUNT_OF(cases));
}

static void what_leads_back(void **state)
{
    (void)state;
    static const struct script_case cases[] = {
        { "health comes back: the test batch at once", &checked, "D 30 U", "CR", CAUSE_CHECKED, 5 },
        { "health comes back, said again", &checked, "D 30 U 30 u", "CR", CAUSE_CHECKED, 5 },
        { "health was good all the time: looked at after five minutes", &checked, "B 299 u", "C", CAUSE_BREAKER, 0 },
        { "and then it is", &checked, "B 300", "CR", CAUSE_CHECKED, 5 },
        { "looked at, still down", &checked, "D 300 300 300", "C", CAUSE_HEALTH, 0 },
        { "looked at, one check went well", &checked, "B d 300 u 299", "C", CAUSE_BREAKER, 0 },
        { "and the next look", &checked, "B d 300 u 300", "CR", CAUSE_CHECKED, 5 },
        { "no health check: nothing before the look", &unchecked, "B 299", "C", CAUSE_BREAKER, 0 },
        { "no health check: one job is the look", &unchecked, "B 300", "C", CAUSE_BREAKER, 1 },
        { "the look is under way", &unchecked, "B 300 T", "C", CAUSE_BREAKER, 0 },
        { "the look goes well", &unchecked, "B 300 g", "CR", CAUSE_CHECKED, 5 },
        { "the look fails", &unchecked, "B 300 t", "C", CAUSE_BREAKER, 0 },
        { "the look fails, the next", &unchecked, "B 300 t 300", "C", CAUSE_BREAKER, 1 },
        { "the look is never answered", &unchecked, "B 300 T 60", "C", CAUSE_BREAKER, 0 },
        { "the look is never answered, the next", &unchecked, "B 300 T 60 300", "C", CAUSE_BREAKER, 1 },
        { "no job for the look", &unchecked, "B 300 86400", "C", CAUSE_BREAKER, 1 },
        { "a window ends, health good", &planned, "3600 3600 3599", "C", CAUSE_MAINTENANCE, 0 },
        { "at its end", &planned, "3600 3600 3600", "CR", CAUSE_CHECKED, 5 },
        { "health comes back in a window", &planned, "D 3600 U 300", "C", CAUSE_HEALTH, 0 },
        { "no look in a window", &planned_unchecked, "3600 600", "C", CAUSE_MAINTENANCE, 0 },
        { "but at its end", &planned_unchecked, "3600 3600 3600", "C", CAUSE_MAINTENANCE, 1 },
        { "nobody is there to look with", &planned_unchecked, "3600 3600 3600 299", "C", CAUSE_MAINTENANCE, 1 },
        { "then it was no outage", &planned_unchecked, "3600 3600 3600 300", "CR", CAUSE_MAINTENANCE, 5 },
        { "and is over", &planned_unchecked, "3600 3600 3600 300 900", "CRN", CAUSE_STABLE, -1 },
        { "but not while something else holds it", &planned_unchecked, "3600 P 3600 3600 86400", "C", CAUSE_MAINTENANCE, 1 },
        { "nor while a look is under way", &planned_unchecked, "3600 3600 3600 290 T 20", "C", CAUSE_MAINTENANCE, 0 },
        { "nor when one has failed", &planned_unchecked, "3600 3600 3600 t 300 86400", "C", CAUSE_MAINTENANCE, 1 },
        { "down when the window ends", &planned, "3600 d 3600 3600 299", "C", CAUSE_MAINTENANCE, 0 },
        { "the operator's wish outlasts good health", &checked, "E 300 U 300", "C", CAUSE_OPERATOR, 0 },
        { "and needs no look", &unchecked, "E 300 300", "C", CAUSE_OPERATOR, 0 },
        { "the operator leaves", &checked, "D E L", "CR", CAUSE_OPERATOR, 5 },
        { "the operator leaves though it is down", &checked, "D L 30 d 30 d", "CR", CAUSE_OPERATOR, 5 },
        { "the operator takes over", &checked, "D E 300 U", "C", CAUSE_HEALTH, 0 },
        { "the operator leaves in a window", &planned, "3600 L 10", "CR", CAUSE_OPERATOR, 5 },
        { "the window after that counts", &planned, "3600 L 10 604789 2", "CRNC", CAUSE_MAINTENANCE, 0 },
    };
    run_scripts(cases, COUNT_OF(cases));
}

/* S3-045 S3-048 C-67 S3-046 S3-047 S3-049 */
static void the_ramp(void **state)
{
    (void)state;
    static const struct script_case cases[] = {
        { "a batch of five, then wait", &checked, "D U gg", "CR", CAUSE_CHECKED, 3 },
        { "all under way", &checked, "D U T", "CR", CAUSE_CHECKED, 0 },
        { "verified, but one go a second", &checked, "D U G", "CR", CAUSE_CHECKED, 0 },
        { "verified: ten", &checked, "D U G 1", "CR", CAUSE_CHECKED, 10 },
        { "25", &checked, "D U G 1 G 1", "CR", CAUSE_CHECKED, 25 },
        { "a slow first go: the second at once", &checked, "D U 20 G", "CR", CAUSE_CHECKED, 10 },
        { "and kept", &checked, "D U G 1 G 1 G 1", "CR", CAUSE_CHECKED, 25 },
        { "kept while stability is awaited", &checked, "D U G 1 G 1 G 1 G G G 800 G", "CR", CAUSE_CHECKED, 25 },
        { "stable for a quarter of an hour", &checked, "D U G 1 G 1 G 899 g 1", "CRN", CAUSE_STABLE, -1 },
        { "not yet", &checked, "D U G 1 G 1 G 899", "CR", CAUSE_CHECKED, 25 },
        { "two of five fail", &checked, "D U gg tt g 1", "CR", CAUSE_CHECKED, 10 },
        { "three of five fail", &checked, "D U g ttt", "CRC", CAUSE_RELAPSE, 0 },
        { "five of ten fail", &checked, "D U G 1 ggggg ttttt 1", "CR", CAUSE_CHECKED, 25 },
        { "six of ten: a step back", &checked, "D U G 1 g tttttt 1", "CR", CAUSE_CHECKED, 5 },
        { "there are only two, and both fail", &checked, "D U tt", "CR", CAUSE_CHECKED, 3 },
        { "so it is after a second", &checked, "D U tt 1", "CRC", CAUSE_RELAPSE, 0 },
        { "there are only two, and one fails", &checked, "D U gt 1", "CR", CAUSE_CHECKED, 3 },
        { "a whole go fails: one step back, not more", &checked, "D U G 1 G 1 F 1", "CR", CAUSE_CHECKED, 10 },
        { "a step back, verified, on again", &checked, "D U G 1 F 1 G 1", "CR", CAUSE_CHECKED, 10 },
        { "a step back, and again: contingency", &checked, "D U G 1 G 1 F 1 F", "CRC", CAUSE_RELAPSE, 0 },
        { "a step back, verified, then again a step back", &checked, "D U G 1 G 1 F 1 G 1 F 1", "CR", CAUSE_CHECKED, 10 },
        { "failures while stability is awaited", &checked, "D U G 1 G 1 G 300 F 1", "CR", CAUSE_CHECKED, 25 },
        { "the time begins anew", &checked, "D U G 1 G 1 G 300 F 1 G 899", "CR", CAUSE_CHECKED, 25 },
        { "and ends", &checked, "D U G 1 G 1 G 300 F 1 G 900", "CRN", CAUSE_STABLE, -1 },
        { "failures twice while stability is awaited", &checked, "D U G 1 G 1 G 300 F 1 F", "CRC", CAUSE_RELAPSE, 0 },
        { "a stray failure does not", &checked, "D U G 1 G 1 G 300 t 599 g 1", "CRN", CAUSE_STABLE, -1 },
        { "sends that are never answered", &checked, "D U G 1 T 60 0 1", "CR", CAUSE_CHECKED, 5 },
        { "of the first batch", &checked, "D U T 60", "CRC", CAUSE_RELAPSE, 0 },
        { "health goes down", &checked, "D U G 1 D", "CRC", CAUSE_HEALTH, 0 },
        { "a window begins", &planned, "D U G 3600", "CRC", CAUSE_MAINTENANCE, 0 },
        { "nothing to send for so long", &checked, "D U 899", "CR", CAUSE_CHECKED, 5 },
        { "is back too", &checked, "D U 900", "CRN", CAUSE_STABLE, -1 },
        { "three of five, then nothing more", &checked, "D U 10 ggg 900", "CRN", CAUSE_STABLE, -1 },
        { "paused is not quiet", &checked, "D U G P 900 900 p 0 899", "CR", CAUSE_CHECKED, 10 },
        { "paused is not stable", &checked, "D U G 1 G 1 G P 900 900 p 899", "CR", CAUSE_CHECKED, 25 },
        { "without steps five are judged together", &rampless, "B 300 g tt 10 t", "CRC", CAUSE_RELAPSE, 0 },
        { "without steps a failure or two are none", &rampless, "B 300 g tt 10", "CR", CAUSE_CHECKED, -1 },
        { "without steps only time", &rampless, "B 300 g gggg 900", "CRN", CAUSE_STABLE, -1 },
        { "the breaker has no say on the way", &checked, "D U B", "CR", CAUSE_CHECKED, 5 },
        { "the operator holds again", &checked, "D U G E", "CRC", CAUSE_OPERATOR, 0 },
        { "none is configured: three of five fail", &off, "E L gg ttt 0", "CRN", CAUSE_CONFIGURATION, -1 },
        { "none is configured: a step back", &off, "E L G 1 G 1 F 1", "CR", CAUSE_OPERATOR, 10 },
        { "none is configured: twice", &off, "E L G 1 G 1 F 1 F 0", "CRN", CAUSE_CONFIGURATION, -1 },
        { "none is configured: no answer", &off, "E L T 60 0", "CRN", CAUSE_CONFIGURATION, -1 },
        { "a second time round", &checked, "D U G 1 G 1 G 900 D U 1", "CRNCR", CAUSE_CHECKED, 5 },
    };
    run_scripts(cases, COUNT_OF(cases));
}

/* C-55 */
static void a_job_at_its_end(void **state)
{
    (void)state;
    static const struct { const char *name; const struct contingency_rules *rules; const char *script; bool saved; } cases[] = {
        { "an outage: held", &unchecked, "ttt X", true },
        { "only this one: dead", &unchecked, "g tt X", false },
        { "in contingency: held", &checked, "D X", true },
        { "on the way back: held", &checked, "D U X", true },
        { "on the way back, and others go well: dead", &checked, "D U gt X", false },
        { "alone, and judged: dead", &unchecked, "j x", false },
        { "no contingency: dead", &off, "tttt d X", false },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct model model = begin(cases[i].rules);
        play(&model, cases[i].script);
        check(model.saved == cases[i].saved, "%s", cases[i].name);
    }
}

/* Those that have failed look at twice the last interval, up to ten of them; a fresh one at the first again. */
static void how_often_it_is_looked(void **state)
{
    (void)state;
    static const int64_t intervals[] = { 300, 600, 1200, 2400, 3000, 3000 };
    struct model model = begin(&unchecked);
    play(&model, "B");
    for (size_t i = 0; i < COUNT_OF(intervals); i++) {
        instant due = contingency_used_look_at(&model.contingency, &unchecked);
        check(due == model.now + intervals[i] * SECOND_MS, "look %zu: %lld", i, (long long)(due - model.now));
        assert_int_equal(model.contingency.saved.check_at, model.now + 300 * SECOND_MS);
        pass(&model, due - model.now);
        model.used = i > 0;
        play(&model, "t");
    }
    model.used = false;
    play(&model, "300 t");
    assert_int_equal(contingency_used_look_at(&model.contingency, &unchecked), model.now + 600 * SECOND_MS);
}

/* Nobody was there, and now somebody answers: perhaps it is the job. Then others look soon, but not for ever. */
static void a_look_that_is_answered(void **state)
{
    (void)state;
    struct model model = begin(&unchecked);
    play(&model, "B 300 t 300");
    for (int i = 0; i < LOOKS_SOON_MAX; i++) {
        model.used = true;
        play(&model, "j");
        assert_int_equal(model.contingency.saved.check_at, model.now + 30 * SECOND_MS);
        bool any = contingency_used_look_at(&model.contingency, &unchecked) == model.now + 30 * SECOND_MS;
        check(any == (i + 1 < LOOKS_SOON_MAX), "look %d", i); /* each costs the job a try: so many and no more */
        play(&model, "30");
    }
    play(&model, "j");
    assert_int_equal(model.contingency.saved.check_at, model.now + 300 * SECOND_MS);
    struct model answered = begin(&unchecked); /* it was never seen away: it is what the outage looks like */
    play(&answered, "B 300 j");
    assert_int_equal(answered.contingency.saved.check_at, answered.now + 30 * SECOND_MS);
    assert_int_equal(contingency_used_look_at(&answered.contingency, &unchecked), answered.now + 600 * SECOND_MS);
}

/* A go that fails although it is there is followed by the next soon. */
static void a_go_that_is_answered(void **state)
{
    (void)state;
    struct model model = begin(&checked);
    play(&model, "D U g jjj");
    assert_string_equal(model.changes, "CRC");
    assert_int_equal(model.contingency.saved.check_at, model.now + 30 * SECOND_MS);
    play(&model, "30 g ttt");
    assert_string_equal(model.changes, "CRCRC");
    assert_int_equal(model.contingency.saved.check_at, model.now + 300 * SECOND_MS);
}

static void the_report(void **state)
{
    (void)state;
    struct model model = begin(&unchecked);
    const struct incident *incident = &model.contingency.saved.incident;
    contingency_held(&model.contingency, 99); /* nothing is held in normal mode */
    contingency_unspent(&model.contingency, 99);
    play(&model, "b g 10 t 10 c 10 t X");
    contingency_held(&model.contingency, 400);
    contingency_held(&model.contingency, 300);
    contingency_unspent(&model.contingency, 7);
    assert_int_equal(incident_recovery_ms(incident), -1);
    play(&model, "300 s 300 g G 1 g tttttt 1 G 1 G 1 G 900");
    assert_string_equal(model.changes, "CRN");
    assert_int_equal(incident->first_sign_at, START + 10 * SECOND_MS);
    assert_int_equal(incident->entered_at, START + 30 * SECOND_MS);
    assert_int_equal(incident->recovering_at, START + 630 * SECOND_MS);
    assert_int_equal(incident->restored_at, model.now);
    assert_int_equal(incident_recovery_ms(incident), model.now - incident->first_sign_at);
    assert_int_equal(incident->cause, CAUSE_EXHAUSTED);
    assert_int_equal(incident->held_max, 400);
    assert_int_equal(incident->unspent, 7);
    assert_int_equal(incident->probes, 2);
    assert_int_equal(incident->relapses, 0);
    static const int64_t signs[CRITERION_COUNT] = { [CRITERION_TIMEOUT] = 8, [CRITERION_CONNECTIVITY] = 1, [CRITERION_SERVICE] = 1 };
    for (int i = 0; i < CRITERION_COUNT; i++)
        check(incident->signs[i] == signs[i], "%d: %lld", i, (long long)incident->signs[i]);
    static const int64_t levels[] = { 0, 5, 10, 5, 10, 25, 25 };
    static const int64_t seconds[] = { 30, 630, 631, 632, 633, 634, 635 };
    assert_int_equal(incident->curve_count, COUNT_OF(levels));
    for (size_t i = 0; i < COUNT_OF(levels); i++) {
        check(incident->curve[i].level == levels[i], "point %zu: %lld", i, (long long)incident->curve[i].level);
        check(incident->curve[i].at == START + seconds[i] * SECOND_MS, "point %zu: %lld", i, (long long)(incident->curve[i].at - START));
    }
    play(&model, "1 tt t X"); /* the next incident begins empty */
    assert_int_equal(incident->signs[CRITERION_TIMEOUT], 3);
    assert_int_equal(incident->curve_count, 1);
    assert_int_equal(incident->restored_at, INSTANT_NONE);
}

static void the_first_sign_of_a_health_check(void **state)
{
    (void)state;
    struct model model = begin(&checked);
    play(&model, "d 30 u 30 d 30 d 30 D");
    assert_int_equal(model.contingency.saved.incident.first_sign_at, START + 60 * SECOND_MS);
    assert_int_equal(model.contingency.saved.incident.entered_at, START + 120 * SECOND_MS);
    assert_int_equal(model.contingency.saved.incident.checks_failed, 3); /* the one before it went well again is no part */
    play(&model, "d d");
    assert_int_equal(model.contingency.saved.incident.checks_failed, 5);
}

static void a_long_incident_keeps_its_first_point_and_the_last_ones(void **state)
{
    (void)state;
    struct model model = begin(&checked);
    play(&model, "D");
    instant entered_at = model.now;
    for (int i = 0; i < 100; i++) {
        model.changes[0] = '\0';
        memset(model.changes, 0, sizeof model.changes);
        play(&model, "U 1 g ttt");
    }
    const struct incident *incident = &model.contingency.saved.incident;
    assert_int_equal(incident->relapses, 100);
    assert_int_equal(incident->curve_count, RAMP_CURVE_MAX);
    assert_int_equal(incident->curve[0].at, entered_at);
    for (size_t i = 0; i < RAMP_CURVE_MAX - 1; i++)
        check(incident->curve[RAMP_CURVE_MAX - 1 - i].level == (i % 2 == 0 ? 0 : 5), "point %zu from the end", i);
    assert_int_equal(incident->curve[RAMP_CURVE_MAX - 1].at, model.now);
    assert_true(incident->curve[1].at > model.now - 20 * SECOND_MS);
}

static void places_are_given_back(void **state)
{
    (void)state;
    struct model model = begin(&unchecked);
    contingency_give_back(&model.contingency, model.contingency.epoch, 3); /* normal: nothing is counted */
    play(&model, "B 300 T");
    assert_int_equal(room(&model), 0);
    contingency_give_back(&model.contingency, model.contingency.epoch, 1);
    assert_int_equal(room(&model), 1);
    assert_int_equal(model.contingency.saved.incident.probes, 0);
    play(&model, "60 0"); /* nobody to wait for */
    assert_int_equal(room(&model), 1);
    play(&model, "g ggT");
    uint32_t epoch = model.contingency.epoch;
    contingency_give_back(&model.contingency, epoch - 1, 1);
    assert_int_equal(room(&model), 0);
    contingency_give_back(&model.contingency, epoch, 2);
    assert_int_equal(room(&model), 2);
    contingency_give_back(&model.contingency, epoch, 1);
    assert_int_equal(model.contingency.answer_by, INSTANT_NONE);
}

/* What was sent before still takes a place: the destination has to bear it. */
static void sends_of_before_count(void **state)
{
    (void)state;
    struct model model = begin(&checked);
    play(&model, "D U");
    model.under_way = 3;
    assert_int_equal(room(&model), 2);
    model.under_way = 8;
    assert_int_equal(room(&model), 0);
    uint32_t epoch = model.contingency.epoch;
    note(&model, epoch - 1, CRITERION_TIMEOUT, true);
    assert_string_equal(model.changes, "CR"); /* and says nothing about how it is now */
    assert_int_equal(model.contingency.saved.incident.signs[CRITERION_TIMEOUT], 1);
}

static void a_restart_in_each_state(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const struct contingency_rules *rules;
        const char *before;
        int64_t down_s;
        const char *after, *changes;
        int64_t room;
    } cases[] = {
        { "normal", &checked, "tt", 10, "0 g", "", -1 },
        { "contingency, still down", &checked, "D 30", 10, "0 d 30 d", "", 0 },
        { "contingency, back meanwhile", &checked, "D 30", 10, "0 U", "R", 5 },
        { "contingency, no check: the look is when it was", &unchecked, "B 200", 50, "0", "", 0 },
        { "due meanwhile", &unchecked, "B 200", 5000, "0", "", 1 },
        { "the look was under way", &unchecked, "B 300 T", 10, "0", "", 1 },
        { "by the operator", &checked, "E", 10, "300 U", "", 0 },
        { "by a window that is over", &planned, "3600", 7200, "0", "R", 5 },
        { "recovering: the go begins anew", &checked, "D U G 1 ggg T", 10, "0", "", 10 },
        { "awaiting stability: the time goes on", &checked, "D U G 1 G 1 G 300", 598, "0 1", "", 25 },
        { "and ends", &checked, "D U G 1 G 1 G 300", 599, "0 1", "N", -1 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct model before = begin(cases[i].rules);
        play(&before, cases[i].before);
        struct model after = { .rules = cases[i].rules, .now = before.now + cases[i].down_s * SECOND_MS, .well = before.well };
        contingency_restore(&after.contingency, after.rules, &before.contingency.saved, after.now);
        play(&after, cases[i].after);
        check(strcmp(after.changes, cases[i].changes) == 0, "%s: told %s", cases[i].name, after.changes);
        check(room(&after) == (cases[i].room < 0 ? INT64_MAX : cases[i].room), "%s: room %lld", cases[i].name, (long long)room(&after));
    }
}

static void odd_values_from_the_store(void **state)
{
    (void)state;
    struct contingency contingency;
    struct contingency_saved saved = { .mode = MODE_RECOVERING, .step = 99, .calm_since = INSTANT_NONE, .ignore_until = INSTANT_NONE };
    saved.incident.curve_count = 1000;
    contingency_restore(&contingency, &checked, &saved, START);
    assert_int_equal(contingency.saved.step, 3);
    assert_int_equal(contingency.saved.calm_since, START);
    assert_int_equal(contingency.saved.incident.curve_count, RAMP_CURVE_MAX);
    saved.mode = MODE_CONTINGENCY;
    saved.check_at = INSTANT_NONE;
    contingency_restore(&contingency, &unchecked, &saved, START);
    assert_int_equal(contingency_ask(&contingency, &unchecked, 0, START).room, 1);
    struct incident incident = { .first_sign_at = START, .restored_at = START - 5 };
    assert_int_equal(incident_recovery_ms(&incident), 0);
}

/* Whatever the clock does, everything comes to its end in its usual time from then on. */
static void a_clock_that_jumps(void **state)
{
    (void)state;
    static const struct script_case cases[] = {
        { "back while down", &unchecked, "B -86400 299", "C", CAUSE_BREAKER, 0 },
        { "and the look", &unchecked, "B -86400 300", "C", CAUSE_BREAKER, 1 },
        { "forth and back", &unchecked, "B 86400 -86400", "C", CAUSE_BREAKER, 0 },
        { "back while the look is out", &unchecked, "B 300 T -86400 60 300", "C", CAUSE_BREAKER, 1 },
        { "back while the go waits", &checked, "D U G -86400", "CR", CAUSE_CHECKED, 10 },
        { "back while stability is awaited", &checked, "D U G 1 G 1 G -86400 899", "CR", CAUSE_CHECKED, 25 },
        { "and ends", &checked, "D U G 1 G 1 G -86400 900", "CRN", CAUSE_STABLE, -1 },
        { "back while it is quiet", &checked, "D U 10 -86400 900", "CRN", CAUSE_STABLE, -1 },
        { "back out of the window", &planned, "3600 -600 300", "CR", CAUSE_CHECKED, 5 },
    };
    run_scripts(cases, COUNT_OF(cases));
}

/* Whoever sleeps until contingency_next misses nothing, and never spins. */
static void when_something_is_due(void **state)
{
    (void)state;
    static const struct { const char *name; const struct contingency_rules *rules; const char *script; int64_t next_s; } cases[] = {
        { "normal", &checked, "0", -1 },
        { "the next window", &planned, "0", 3600 },
        { "the end of the window", &planned, "3600", 7200 },
        { "windows that are turned off", &off, "0", -1 },
        { "the look", &checked, "D", 300 },
        { "the look is due and nobody there", &unchecked, "B 300", -1 },
        { "the look is out", &unchecked, "B 300 T", 60 },
        { "by the operator", &checked, "E", -1 },
        { "quiet", &checked, "D U", 900 },
        { "the next go", &checked, "D U G", 1 },
        { "a go is out", &checked, "D U T", 60 },
        { "stability", &checked, "D U G 1 G 1 G 100 g", 800 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct model model = begin(cases[i].rules);
        play(&model, cases[i].script);
        instant next = contingency_next(&model.contingency, model.rules, model.now);
        instant expected = cases[i].next_s < 0 ? INSTANT_NONE : model.now + cases[i].next_s * SECOND_MS;
        check(next == expected, "%s: %lld", cases[i].name, (long long)(next - model.now));
    }
}

/* Who asks why it is held must hear that it is the operator, or it is waited for in vain. */
static void an_operator_takes_over(void **state)
{
    (void)state;
    struct model model = begin(&checked);
    play(&model, "D E U 3600");
    assert_string_equal(model.changes, "C");
    assert_int_equal(model.contingency.saved.mode, MODE_CONTINGENCY);
    assert_int_equal(model.contingency.saved.cause, CAUSE_OPERATOR);
    assert_int_equal(model.contingency.saved.incident.cause, CAUSE_HEALTH); /* of the whole it is what began it */
}

static void a_reload(void **state)
{
    (void)state;
    struct model model = begin(&checked);
    play(&model, "D 30");
    model.rules = &off; /* taken out of the configuration: what is held goes by the ramp */
    play(&model, "1");
    assert_string_equal(model.changes, "CR");
    assert_int_equal(model.last.cause, CAUSE_CONFIGURATION);
    model = begin(&checked);
    play(&model, "E");
    model.rules = &off;
    play(&model, "300");
    assert_string_equal(model.changes, "C"); /* the operator's wish stays */
}

static void names_go_round(void **state)
{
    (void)state;
    for (int i = 0; i < MODE_COUNT; i++)
        check(mode_from_name(slice_from(mode_name((enum mode)i))) == (enum mode)i, "mode %d", i);
    assert_int_equal(mode_from_name(SLICE("paused")), MODE_COUNT);
    assert_null(cause_name(CAUSE_NONE));
    for (int i = CAUSE_NONE + 1; i < CAUSE_COUNT; i++)
        check(cause_from_name(slice_from(cause_name((enum cause)i))) == (enum cause)i, "cause %d", i);
    assert_int_equal(cause_from_name(SLICE("rain")), CAUSE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_leads_to_contingency),
        cmocka_unit_test(what_leads_back),
        cmocka_unit_test(the_ramp),
        cmocka_unit_test(a_job_at_its_end),
        cmocka_unit_test(how_often_it_is_looked),
        cmocka_unit_test(a_look_that_is_answered),
        cmocka_unit_test(a_go_that_is_answered),
        cmocka_unit_test(the_report),
        cmocka_unit_test(the_first_sign_of_a_health_check),
        cmocka_unit_test(a_long_incident_keeps_its_first_point_and_the_last_ones),
        cmocka_unit_test(places_are_given_back),
        cmocka_unit_test(sends_of_before_count),
        cmocka_unit_test(a_restart_in_each_state),
        cmocka_unit_test(odd_values_from_the_store),
        cmocka_unit_test(a_clock_that_jumps),
        cmocka_unit_test(when_something_is_due),
        cmocka_unit_test(an_operator_takes_over),
        cmocka_unit_test(a_reload),
        cmocka_unit_test(names_go_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
