#include "core/breaker.h"
#include "support/check.h"

#include <stdlib.h>

enum { START = 1000000, PROBE_MS = 30000 };

static const struct breaker_config config = { true, 10000, 4, 0.5, 1000, 0.75, 1000, 4000, 2 };

/* A breaker, its clock, and how often it changed. */
struct model {
    struct breaker breaker;
    instant now;
    int opened, half_opened, closed;
};

static void heard(struct model *model, struct breaker_change change)
{
    if (change.from == change.to)
        return;
    model->opened += change.to == BREAKER_OPEN;
    model->half_opened += change.to == BREAKER_HALF_OPEN;
    model->closed += change.to == BREAKER_CLOSED;
    assert_int_equal(change.at, model->now);
    assert_int_equal(change.to, model->breaker.kept.state);
}

static struct model begin(void)
{
    struct model model = { .now = START };
    breaker_init(&model.breaker, START);
    return model;
}

static void send(struct model *model, bool failed, int64_t latency_ms)
{
    breaker_take(&model->breaker, 1, PROBE_MS, model->now);
    heard(model, breaker_note(&model->breaker, &config, model->breaker.epoch, failed, latency_ms, model->now));
}

/* S: good, F: bad, L: good but slow, B: bad and slow, T: taken and never answered; a number: so many ms pass. */
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
            send(model, *script == 'F' || *script == 'B', *script == 'L' || *script == 'B' ? 1000 : 10);
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
        { "as many as the rate", "SSFF", BREAKER_OPEN, 0, 1000, 1 },
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
        { "one probe was well", "FFFF 1000 S", BREAKER_HALF_OPEN, 1, -1, 2 },
        { "as many as are asked for", "FFFF 1000 SS", BREAKER_CLOSED, INT64_MAX, -1, 3 },
        { "a probe fails: twice as long", "FFFF 1000 F", BREAKER_OPEN, 0, 3000, 3 },
        { "the wait doubles", "FFFF 1000 F 2000 F", BREAKER_OPEN, 0, 7000, 5 },
        { "and has an end", "FFFF 1000 F 2000 F 4000 F 4000 F", BREAKER_OPEN, 0, 15000, 9 },
        { "probes that are slow", "FFFF 1000 LL", BREAKER_OPEN, 0, 3000, 3 },
        { "probes that are never answered", "FFFF 1000 TT 30000", BREAKER_OPEN, 0, 33000, 3 },
        { "not yet", "FFFF 1000 TT 29999", BREAKER_HALF_OPEN, 0, 31000, 2 },
        { "without probes there is no limit", "FFFF 1000 S 90000", BREAKER_HALF_OPEN, 1, -1, 2 },
        { "closed again it counts anew", "FFFF 1000 SS FFF", BREAKER_CLOSED, INT64_MAX, -1, 3 },
        { "and waits as short as at first", "FFFF 1000 F 2000 SS FFFF", BREAKER_OPEN, 0, 4000, 6 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct model model = begin();
        play(&model, cases[i].script);
        struct breaker_answer answer = breaker_ask(&model.breaker, &config);
        check(model.breaker.kept.state == cases[i].expected, "%s: %s", cases[i].name,
              breaker_state_name(model.breaker.kept.state));
        check(answer.room == cases[i].room, "%s: room %lld", cases[i].name, (long long)answer.room);
        check(answer.until == (cases[i].until_ms < 0 ? INSTANT_NONE : START + cases[i].until_ms), "%s: until %lld",
              cases[i].name, (long long)(answer.until - START));
        check(model.opened + model.half_opened + model.closed == cases[i].changes, "%s: told %d opened, %d half, %d closed",
              cases[i].name, model.opened, model.half_opened, model.closed);
    }
}

static void answers_to_earlier_sends_do_not_count(void **state)
{
    (void)state;
    struct model model = begin();
    uint32_t before = model.breaker.epoch;
    play(&model, "FFFF");
    uint32_t open = model.breaker.epoch;
    heard(&model, breaker_note(&model.breaker, &config, open, false, 10, model.now)); /* nothing can be sent while it is open */
    assert_int_equal(model.breaker.kept.state, BREAKER_OPEN);
    play(&model, "1000 T");
    for (int i = 0; i < 10; i++)
        heard(&model, breaker_note(&model.breaker, &config, i % 2 ? before : open, i < 5, 10, model.now));
    assert_int_equal(model.breaker.kept.state, BREAKER_HALF_OPEN);
    assert_int_equal(breaker_ask(&model.breaker, &config).room, 1);
    uint32_t probing = model.breaker.epoch;
    play(&model, "30000"); /* never answered */
    heard(&model, breaker_note(&model.breaker, &config, probing, false, 10, model.now));
    assert_int_equal(model.breaker.kept.state, BREAKER_OPEN);
}

static void places_are_given_back(void **state)
{
    (void)state;
    struct model model = begin();
    breaker_give_back(&model.breaker, model.breaker.epoch, 3); /* closed: nothing is counted */
    play(&model, "FFFF 1000");
    breaker_take(&model.breaker, 2, PROBE_MS, model.now);
    breaker_give_back(&model.breaker, model.breaker.epoch - 1, 2);
    assert_int_equal(breaker_ask(&model.breaker, &config).room, 0);
    breaker_give_back(&model.breaker, model.breaker.epoch, 2);
    assert_int_equal(breaker_ask(&model.breaker, &config).room, 2);
    play(&model, "3600000"); /* with no work there is nothing to wait for */
    assert_int_equal(model.breaker.kept.state, BREAKER_HALF_OPEN);
}

static void a_restart_in_each_state(void **state)
{
    (void)state;
    static const struct { const char *name, *script; int64_t down_ms; enum breaker_state expected; int64_t until_ms; } cases[] = {
        { "closed", "FFF", 10, BREAKER_CLOSED, -1 },
        { "open", "FFFF 100", 100, BREAKER_OPEN, 1000 },
        { "open and down for longer", "FFFF 100", 5000, BREAKER_HALF_OPEN, -1 },
        { "opened again", "FFFF 1000 F 100", 100, BREAKER_OPEN, 3000 },
        { "half-open with probes out", "FFFF 1000 TT", 100, BREAKER_HALF_OPEN, -1 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct model before = begin();
        play(&before, cases[i].script);
        struct model after = { .now = before.now + cases[i].down_ms };
        breaker_restore(&after.breaker, &config, &before.breaker.kept, after.now);
        heard(&after, breaker_tick(&after.breaker, &config, after.now));
        check(after.breaker.kept.state == cases[i].expected, "%s: %s", cases[i].name, breaker_state_name(after.breaker.kept.state));
        check(after.breaker.kept.until == (cases[i].until_ms < 0 ? INSTANT_NONE : START + cases[i].until_ms), "%s", cases[i].name);
        check(after.breaker.kept.openings == before.breaker.kept.openings, "%s: openings", cases[i].name);
    }
    struct model before = begin(), after = { .now = START };
    struct breaker_config off = config;
    off.enabled = false;
    play(&before, "FFFF");
    breaker_restore(&after.breaker, &off, &before.breaker.kept, START);
    assert_int_equal(after.breaker.kept.state, BREAKER_CLOSED);
    struct breaker_kept odd = { .state = BREAKER_OPEN, .since = START, .until = INSTANT_NONE };
    breaker_restore(&after.breaker, &config, &odd, START);
    assert_int_equal(after.breaker.kept.openings, 1);
    assert_int_equal(breaker_tick(&after.breaker, &config, START).to, BREAKER_HALF_OPEN);
}

static void a_clock_that_jumps(void **state)
{
    (void)state;
    struct model model = begin();
    play(&model, "FFFF -3600000"); /* open, and an hour back: it waits as long as it would have from then */
    assert_int_equal(model.breaker.kept.until, model.now + 1000);
    play(&model, "1000");
    assert_int_equal(model.breaker.kept.state, BREAKER_HALF_OPEN);
    play(&model, "TT -3600000");
    assert_int_equal(model.breaker.kept.until, model.now + PROBE_MS);
    play(&model, "30000");
    assert_int_equal(model.breaker.kept.state, BREAKER_OPEN);
    play(&model, "2000 SS");
    assert_int_equal(model.breaker.kept.state, BREAKER_CLOSED);
    play(&model, "FFF -2000 F"); /* a small step back: they still stand in the window */
    assert_int_equal(model.breaker.kept.state, BREAKER_OPEN);
    model = begin();
    play(&model, "FFF -3600000 F"); /* a large one: counted anew */
    assert_int_equal(model.breaker.kept.state, BREAKER_CLOSED);
    play(&model, "86400000 F");
    assert_int_equal(model.breaker.kept.state, BREAKER_CLOSED);
    model = begin();
    model.now = -5000; /* before 1970 numbers are negative, and nothing else is different */
    play(&model, "FF 9000 FF");
    assert_int_equal(model.breaker.kept.state, BREAKER_OPEN);
}

static void settings(void **state)
{
    (void)state;
    struct breaker_config other = config;
    struct breaker breaker;
    breaker_init(&breaker, START);
    other.enabled = false;
    for (int i = 0; i < 100; i++)
        breaker_note(&breaker, &other, breaker.epoch, true, 10, START);
    assert_int_equal(breaker.kept.state, BREAKER_CLOSED);
    assert_int_equal(breaker_ask(&breaker, &other).room, INT64_MAX);

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
        breaker_note(&breaker, &other, breaker.epoch, false, 100000, START);
    assert_int_equal(breaker.kept.state, BREAKER_CLOSED);
    for (int i = 0; i < 4; i++)
        change = breaker_note(&breaker, &other, breaker.epoch, true, 10, START);
    assert_int_equal(breaker.kept.state, BREAKER_OPEN);
    assert_int_equal(change.until, START + 1000);
}

static void a_large_probe_batch_bears_some_failures(void **state)
{
    (void)state;
    struct breaker_config other = config;
    struct breaker breaker;
    other.probes = 10;
    breaker_init(&breaker, START);
    for (int i = 0; i < 4; i++)
        breaker_note(&breaker, &other, breaker.epoch, true, 10, START);
    breaker_tick(&breaker, &other, START + 1000);
    breaker_take(&breaker, 10, PROBE_MS, START + 1000);
    for (int i = 0; i < 4; i++)
        assert_int_equal(breaker_note(&breaker, &other, breaker.epoch, true, 10, START + 1000).to, BREAKER_HALF_OPEN);
    assert_int_equal(breaker_ask(&breaker, &other).room, 4); /* others take their places */
    breaker_take(&breaker, 4, PROBE_MS, START + 1000);
    for (int i = 0; i < 9; i++)
        assert_int_equal(breaker_note(&breaker, &other, breaker.epoch, false, 10, START + 1000).to, BREAKER_HALF_OPEN);
    assert_int_equal(breaker_note(&breaker, &other, breaker.epoch, false, 10, START + 1000).to, BREAKER_CLOSED);
}

/* Three were asked for and two went well when a reload asks for two: nothing else would ever be let through. */
static void a_reload_that_asks_for_fewer_probes(void **state)
{
    (void)state;
    struct breaker_config more = config;
    struct breaker breaker;
    more.probes = 3;
    breaker_init(&breaker, START);
    for (int i = 0; i < 4; i++)
        breaker_note(&breaker, &more, breaker.epoch, true, 10, START);
    breaker_tick(&breaker, &more, START + 1000);
    breaker_take(&breaker, 2, PROBE_MS, START + 1000);
    for (int i = 0; i < 2; i++)
        assert_int_equal(breaker_note(&breaker, &more, breaker.epoch, false, 10, START + 1000).to, BREAKER_HALF_OPEN);
    assert_int_equal(breaker_tick(&breaker, &more, START + 2000).to, BREAKER_HALF_OPEN);
    assert_int_equal(breaker_ask(&breaker, &config).room, 0);
    struct breaker_change change = breaker_tick(&breaker, &config, START + 3000);
    assert_int_equal(change.from, BREAKER_HALF_OPEN);
    assert_int_equal(change.to, BREAKER_CLOSED);
    assert_int_equal(breaker.kept.openings, 0);
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
        cmocka_unit_test(a_large_probe_batch_bears_some_failures),
        cmocka_unit_test(a_reload_that_asks_for_fewer_probes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
