#include "core/outage/breaker.h"
#include "core/outage/outage.h"
#include "support/check.h"

#include <stdlib.h>

enum { START = 1000000, PROBE_MS = 30000 };

static const struct breaker_config config = { true, 10000, 4, 0.5, 1000, 0.75, 1000, 4000, 2 };

/* A breaker, its clock, and how often it changed. */
struct model {
    struct breaker breaker;
    instant now;
    int opened, half_opened, closed;
    int64_t jobs; /* so far, each another one */
};

static void heard(struct model *model, struct breaker_change change)
{
    if (change.from == change.to)
        return;
    model->opened += change.to == BREAKER_OPEN;
    model->half_opened += change.to == BREAKER_HALF_OPEN;
    model->closed += change.to == BREAKER_CLOSED;
    assert_int_equal(change.at, model->now);
    assert_int_equal(change.to, model->breaker.saved.state);
}

static struct model begin(void)
{
    struct model model = { .now = START };
    breaker_init(&model.breaker, START);
    return model;
}

static void send(struct model *model, bool failed, bool away, int64_t latency_ms)
{
    const struct breaker_call call = { .epoch = model->breaker.epoch, .job = ++model->jobs, .tenant = 1, .failed = failed,
                                       .away = away, .latency_ms = latency_ms };
    breaker_take(&model->breaker, 1, PROBE_MS, model->now);
    heard(model, breaker_note(&model->breaker, &config, &call, model->now));
}

/* One of a tenant's calls, by a breaker of other settings. */
static struct breaker_change note(struct breaker *breaker, const struct breaker_config *settings, int64_t job, int64_t tenant,
                                  bool failed, instant now)
{
    const struct breaker_call call = { .epoch = breaker->epoch, .job = job, .tenant = tenant, .failed = failed, .away = true,
                                       .latency_ms = 10 };
    return breaker_note(breaker, settings, &call, now);
}

/*
 * S: good, F: bad, A: nobody answers, L: good but slow, B: bad and slow, T: taken and never answered; a number: so many ms
 * pass. Each is another job of the same tenant.
 */
static void play(struct model *model, const char *script)
{
    while (*script) {
        char *end;
        long ms = strtol(script, &end, 10);
        if (end != script) {
            model->now += ms;
            heard(model, breaker_tick(&model->breaker, &config, model->now));
            script = end;
            continue;
        }
        if (*script == 'T')
            breaker_take(&model->breaker, 1, PROBE_MS, model->now);
        else if (*script != ' ')
            send(model, *script == 'F' || *script == 'A' || *script == 'B', *script == 'A', *script == 'L' || *script == 'B' ? 1000 : 10);
        script++;
    }
}

static void scripts(void **state)
{
    (void)state;
    static const struct {
        const char *name, *script;
        enum breaker_state expected;
        int64_t room;
        int64_t until_ms; /* after the start; -1: no such time */
        int changes;
    } cases[] = {
        { "nothing was sent", "", BREAKER_CLOSED, INT64_MAX, -1, 0 },
        { "too few to judge", "FFF", BREAKER_CLOSED, INT64_MAX, -1, 0 },
        { "as few as may be judged", "FFFF", BREAKER_OPEN, 0, 1000, 1 },
        { "fewer failures than the rate", "SSSF", BREAKER_CLOSED, INT64_MAX, -1, 0 },
        { "as many as the rate, but of two jobs", "SSFF", BREAKER_CLOSED, INT64_MAX, -1, 0 },
        { "as many as the rate", "SSSFFF", BREAKER_OPEN, 0, 1000, 1 },
        { "a success alone never opens it", "FFFS", BREAKER_CLOSED, INT64_MAX, -1, 0 },
        { "slow answers, fewer than their rate", "LLSS", BREAKER_CLOSED, INT64_MAX, -1, 0 },
        { "slow answers", "LLSL", BREAKER_OPEN, 0, 1000, 1 },
        { "a failure that is slow is both", "BSSS", BREAKER_CLOSED, INT64_MAX, -1, 0 },
        { "failures leave the window", "FFF 11000 FSSS", BREAKER_CLOSED, INT64_MAX, -1, 0 },
        { "failures still in the window", "FFF 8000 F", BREAKER_OPEN, 0, 9000, 1 },
        { "part of the window has gone", "FFFSSS 5000 SSS 6000 FFF", BREAKER_OPEN, 0, 12000, 1 },
        { "open, and not long enough", "FFFF 999", BREAKER_OPEN, 0, 1000, 1 },
        { "open for long enough", "FFFF 1000", BREAKER_HALF_OPEN, 2, -1, 2 },
        { "one probe under way", "FFFF 1000 T", BREAKER_HALF_OPEN, 1, 31000, 2 },
        { "all probes under way", "FFFF 1000 TT", BREAKER_HALF_OPEN, 0, 31000, 2 },
        { "one look was well", "FFFF 1000 S", BREAKER_CLOSED, INT64_MAX, -1, 3 },
        { "one of two was well", "FFFF 1000 TS", BREAKER_CLOSED, INT64_MAX, -1, 3 },
        { "nobody answers: twice as long", "FFFF 1000 A", BREAKER_OPEN, 0, 3000, 3 },
        { "another one is awaited", "FFFF 1000 TA", BREAKER_HALF_OPEN, 0, 31000, 2 },
        { "the wait doubles", "FFFF 1000 A 2000 A", BREAKER_OPEN, 0, 7000, 5 },
        { "and has an end", "FFFF 1000 A 2000 A 4000 A 4000 A", BREAKER_OPEN, 0, 15000, 9 },
        { "somebody answers: another looks soon", "FFFF 1000 F", BREAKER_HALF_OPEN, 0, 2000, 2 },
        { "then", "FFFF 1000 F 1000", BREAKER_HALF_OPEN, 2, -1, 2 },
        { "looks that are slow", "FFFF 1000 L", BREAKER_HALF_OPEN, 0, 2000, 2 },
        { "probes that are never answered", "FFFF 1000 TT 30000", BREAKER_OPEN, 0, 33000, 3 },
        { "not yet", "FFFF 1000 TT 29999", BREAKER_HALF_OPEN, 0, 31000, 2 },
        { "without looks there is no limit", "FFFF 1000 90000", BREAKER_HALF_OPEN, 2, -1, 2 },
        { "closed again it counts anew", "FFFF 1000 S FFF", BREAKER_CLOSED, INT64_MAX, -1, 3 },
        { "and waits as short as at first", "FFFF 1000 A 2000 S FFFF", BREAKER_OPEN, 0, 4000, 6 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct model model = begin();
        play(&model, cases[i].script);
        struct breaker_answer answer = breaker_ask(&model.breaker, &config, model.now);
        check(model.breaker.saved.state == cases[i].expected, "%s: %s", cases[i].name,
              breaker_state_name(model.breaker.saved.state));
        check(answer.room == cases[i].room, "%s: room %lld", cases[i].name, (long long)answer.room);
        check(answer.until == (cases[i].until_ms < 0 ? INSTANT_NONE : START + cases[i].until_ms), "%s: until %lld",
              cases[i].name, (long long)(answer.until - START));
        check(model.opened + model.half_opened + model.closed == cases[i].changes, "%s: told %d opened, %d half, %d closed",
              cases[i].name, model.opened, model.half_opened, model.closed);
    }
}

static struct breaker_change note_of(struct model *model, uint32_t epoch, bool failed)
{
    const struct breaker_call call = { .epoch = epoch, .job = ++model->jobs, .tenant = 1, .failed = failed, .latency_ms = 10 };
    return breaker_note(&model->breaker, &config, &call, model->now);
}

static void answers_to_earlier_sends_do_not_count(void **state)
{
    (void)state;
    struct model model = begin();
    uint32_t before = model.breaker.epoch;
    play(&model, "FFFF");
    uint32_t open = model.breaker.epoch;
    heard(&model, note_of(&model, open, false)); /* nothing can be sent while it is open */
    assert_int_equal(model.breaker.saved.state, BREAKER_OPEN);
    play(&model, "1000 T");
    for (int i = 0; i < 10; i++)
        heard(&model, note_of(&model, i % 2 ? before : open, i < 5));
    assert_int_equal(model.breaker.saved.state, BREAKER_HALF_OPEN);
    assert_int_equal(breaker_ask(&model.breaker, &config, model.now).room, 1);
    uint32_t probing = model.breaker.epoch;
    play(&model, "30000"); /* never answered */
    heard(&model, note_of(&model, probing, false));
    assert_int_equal(model.breaker.saved.state, BREAKER_OPEN);
}

static void places_are_given_back(void **state)
{
    (void)state;
    struct model model = begin();
    breaker_give_back(&model.breaker, model.breaker.epoch, 3); /* closed: nothing is counted */
    play(&model, "FFFF 1000");
    breaker_take(&model.breaker, 2, PROBE_MS, model.now);
    breaker_give_back(&model.breaker, model.breaker.epoch - 1, 2);
    assert_int_equal(breaker_ask(&model.breaker, &config, model.now).room, 0);
    breaker_give_back(&model.breaker, model.breaker.epoch, 2);
    assert_int_equal(breaker_ask(&model.breaker, &config, model.now).room, 2);
    play(&model, "3600000"); /* with no work there is nothing to wait for */
    assert_int_equal(model.breaker.saved.state, BREAKER_HALF_OPEN);
}

static void a_restart_in_each_state(void **state)
{
    (void)state;
    static const struct { const char *name, *script; int64_t down_ms; enum breaker_state expected; int64_t until_ms; } cases[] = {
        { "closed", "FFF", 10, BREAKER_CLOSED, -1 },
        { "open", "FFFF 100", 100, BREAKER_OPEN, 1000 },
        { "open and down for longer", "FFFF 100", 5000, BREAKER_HALF_OPEN, -1 },
        { "opened again", "FFFF 1000 A 100", 100, BREAKER_OPEN, 3000 },
        { "half-open with probes out", "FFFF 1000 TT", 100, BREAKER_HALF_OPEN, -1 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct model before = begin();
        play(&before, cases[i].script);
        struct model after = { .now = before.now + cases[i].down_ms };
        breaker_restore(&after.breaker, &config, &before.breaker.saved, after.now);
        heard(&after, breaker_tick(&after.breaker, &config, after.now));
        check(after.breaker.saved.state == cases[i].expected, "%s: %s", cases[i].name, breaker_state_name(after.breaker.saved.state));
        check(after.breaker.saved.until == (cases[i].until_ms < 0 ? INSTANT_NONE : START + cases[i].until_ms), "%s", cases[i].name);
        check(after.breaker.saved.openings == before.breaker.saved.openings, "%s: openings", cases[i].name);
    }
    struct model before = begin(), after = { .now = START };
    struct breaker_config off = config;
    off.enabled = false;
    play(&before, "FFFF");
    breaker_restore(&after.breaker, &off, &before.breaker.saved, START);
    assert_int_equal(after.breaker.saved.state, BREAKER_CLOSED);
    struct breaker_saved odd = { .state = BREAKER_OPEN, .since = START, .until = INSTANT_NONE };
    breaker_restore(&after.breaker, &config, &odd, START);
    assert_int_equal(after.breaker.saved.openings, 1);
    assert_int_equal(breaker_tick(&after.breaker, &config, START).to, BREAKER_HALF_OPEN);
}

static void a_clock_that_jumps(void **state)
{
    (void)state;
    struct model model = begin();
    play(&model, "FFFF -3600000"); /* open, and an hour back: it waits as long as it would have from then */
    assert_int_equal(model.breaker.saved.until, model.now + 1000);
    play(&model, "1000");
    assert_int_equal(model.breaker.saved.state, BREAKER_HALF_OPEN);
    play(&model, "TT -3600000");
    assert_int_equal(model.breaker.saved.until, model.now + PROBE_MS);
    play(&model, "30000");
    assert_int_equal(model.breaker.saved.state, BREAKER_OPEN);
    play(&model, "2000 S");
    assert_int_equal(model.breaker.saved.state, BREAKER_CLOSED);
    play(&model, "FFF -2000 F"); /* a small step back: they still stand in the window */
    assert_int_equal(model.breaker.saved.state, BREAKER_OPEN);
    model = begin();
    play(&model, "FFF -3600000 F"); /* a large one: counted anew */
    assert_int_equal(model.breaker.saved.state, BREAKER_CLOSED);
    play(&model, "86400000 F");
    assert_int_equal(model.breaker.saved.state, BREAKER_CLOSED);
    model = begin();
    model.now = -5000; /* before 1970 numbers are negative, and nothing else is different */
    play(&model, "FF 9000 FF");
    assert_int_equal(model.breaker.saved.state, BREAKER_OPEN);
}

static void settings(void **state)
{
    (void)state;
    struct breaker_config other = config;
    struct breaker breaker;
    breaker_init(&breaker, START);
    other.enabled = false;
    for (int i = 0; i < 100; i++)
        note(&breaker, &other, i + 1, 1, true, START);
    assert_int_equal(breaker.saved.state, BREAKER_CLOSED);
    assert_int_equal(breaker_ask(&breaker, &other, START).room, INT64_MAX);

    struct model model = begin();
    play(&model, "FFFF");
    struct breaker_change change = breaker_tick(&model.breaker, &other, model.now); /* a reload took it away */
    assert_int_equal(change.from, BREAKER_OPEN);
    assert_int_equal(change.to, BREAKER_CLOSED);

    other = config;
    other.slow_ms = 0; /* nothing is slow */
    other.window_ms = 5; /* shorter than there are buckets */
    other.open_max_ms = 10; /* shorter than open */
    breaker_init(&breaker, START);
    for (int i = 0; i < 4; i++)
        breaker_note(&breaker, &other, &(struct breaker_call){ breaker.epoch, i + 1, 1, false, false, 100000 }, START);
    assert_int_equal(breaker.saved.state, BREAKER_CLOSED);
    for (int i = 0; i < 4; i++)
        change = note(&breaker, &other, i + 10, 1, true, START);
    assert_int_equal(breaker.saved.state, BREAKER_OPEN);
    assert_int_equal(change.until, START + 1000);
}

/* However often, one that fails is one. */
static void a_job_counts_once_by_its_last_answer(void **state)
{
    (void)state;
    struct breaker breaker;
    breaker_init(&breaker, START);
    for (int i = 0; i < 300; i++)
        assert_int_equal(note(&breaker, &config, 1 + i % 2, 1, true, START + i).to, BREAKER_CLOSED);
    note(&breaker, &config, 3, 1, true, START + 300);
    note(&breaker, &config, 3, 1, false, START + 301); /* it went well in the end */
    assert_int_equal(note(&breaker, &config, 4, 1, false, START + 302).to, BREAKER_CLOSED);
    assert_int_equal(note(&breaker, &config, 1, 1, true, START + 303).to, BREAKER_CLOSED);
    assert_int_equal(note(&breaker, &config, 5, 1, true, START + 304).to, BREAKER_OPEN);
}

static void a_tenant_does_not_speak_for_the_others(void **state)
{
    (void)state;
    static const struct { const char *name; int tenants, failing; bool opens; } cases[] = {
        { "one of one", 1, 1, true },      { "one of two", 2, 1, false },      { "two of two", 2, 2, true },
        { "two of four", 4, 2, false },    { "three of four", 4, 3, true },    { "most of very many", 500, 490, true },
        { "one of very many", 500, 1, false },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct breaker breaker;
        int64_t job = 0;
        breaker_init(&breaker, START);
        for (int tenant = cases[i].failing; tenant < cases[i].tenants; tenant++)
            note(&breaker, &config, ++job, tenant + 1, false, START);
        for (int round = 0; round < 4; round++) /* those that fail have by far the most calls */
            for (int tenant = 0; tenant < cases[i].failing; tenant++)
                note(&breaker, &config, ++job, tenant + 1, true, START);
        for (int more = 0; more < 2000 && cases[i].failing == 1; more++)
            note(&breaker, &config, ++job, 1, true, START);
        check((breaker.saved.state == BREAKER_OPEN) == cases[i].opens, "%s: %s", cases[i].name, breaker_state_name(breaker.saved.state));
    }
}

/* A look that is answered badly may be the job's fault: others look soon, so many, and only such that have not failed. */
static void looks_that_are_answered_come_soon(void **state)
{
    (void)state;
    struct model model = begin();
    play(&model, "FFFF 1000");
    for (int i = 0; i < LOOKS_SOON_MAX; i++) {
        assert_int_equal(model.breaker.saved.state, BREAKER_HALF_OPEN);
        assert_true(i == 0 || model.breaker.used_look_at == START + 1000 + 2 * 1000);
        play(&model, "F");
        assert_int_equal(breaker_ask(&model.breaker, &config, model.now).room, 0);
        assert_int_equal(breaker_next(&model.breaker, model.now), model.now + 1000);
        play(&model, "1000");
    }
    play(&model, "F");
    assert_int_equal(model.breaker.saved.state, BREAKER_OPEN);
    assert_int_equal(model.breaker.saved.until, model.now + 2000);
    play(&model, "2000 A 4000 F"); /* nobody was there in between: it begins anew */
    assert_int_equal(model.breaker.saved.state, BREAKER_HALF_OPEN);
}

/* One failed and the other did not leave after all: nothing more is to be awaited. */
static void a_look_that_did_not_leave(void **state)
{
    (void)state;
    struct model model = begin();
    play(&model, "FFFF 1000 TA");
    breaker_give_back(&model.breaker, model.breaker.epoch, 1);
    heard(&model, breaker_tick(&model.breaker, &config, model.now));
    assert_int_equal(model.breaker.saved.state, BREAKER_OPEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scripts),
        cmocka_unit_test(answers_to_earlier_sends_do_not_count),
        cmocka_unit_test(places_are_given_back),
        cmocka_unit_test(a_restart_in_each_state),
        cmocka_unit_test(a_clock_that_jumps),
        cmocka_unit_test(settings),
        cmocka_unit_test(a_job_counts_once_by_its_last_answer),
        cmocka_unit_test(a_tenant_does_not_speak_for_the_others),
        cmocka_unit_test(looks_that_are_answered_come_soon),
        cmocka_unit_test(a_look_that_did_not_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
