#include "core/outage/gate.h"
#include "support/check.h"

enum { START = 1000000, ANSWER_MS = 60 * 1000 };

static const int64_t ramp[] = { 5, 10, 25 };
#define BREAKER { true, 60000, 20, 0.5, 30000, 1, 30000, 300000, 5 }
#define CONTINGENCY                                                                                                    \
    { .enabled = true, .ramp = ramp, .ramp_count = 3, .stable_ms = 15 * MINUTE_MS, .check_ms = 5 * MINUTE_MS, .answer_max_ms = ANSWER_MS }

static const struct gate_rules plain = { .concurrency = 5, .contingency.answer_max_ms = ANSWER_MS };
static const struct gate_rules broken = { .concurrency = 5, .breaker = BREAKER, .contingency.answer_max_ms = ANSWER_MS };
static const struct gate_rules both = { .concurrency = 5, .breaker = BREAKER, .contingency = CONTINGENCY };
static const struct gate_rules cycled = { .concurrency = 5, .cycle_every_ms = 60000, .cycle_batch = 8,
                                          .contingency.answer_max_ms = ANSWER_MS };

static struct gate begin(const struct gate_rules *rules)
{
    struct gate gate;
    gate_init(&gate, rules, START, INSTANT_NONE);
    return gate;
}

static struct gate_news answer(struct gate *gate, struct gate_pass pass, enum outcome outcome, const char *code, instant now)
{
    static int64_t jobs;
    struct gate_result result = { true, outcome, slice_from(code), 100, false, ++jobs, 1, INSTANT_NONE }; /* each another job */
    return gate_note(gate, pass, &result, now);
}

static struct gate_news send(struct gate *gate, enum outcome outcome, const char *code, instant now)
{
    return answer(gate, gate_take(gate, 1, now), outcome, code, now);
}

static void without_rules(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t concurrency, under_way;
        bool paused;
        instant closed_until;
        int64_t room;
        enum gate_hold hold;
        instant until;
    } cases[] = {
        { "open", 10, 0, false, INSTANT_NONE, 10, HOLD_NONE, INSTANT_NONE },
        { "some are under way", 10, 7, false, INSTANT_NONE, 3, HOLD_NONE, INSTANT_NONE },
        { "all are under way", 10, 10, false, INSTANT_NONE, 0, HOLD_CONCURRENCY, INSTANT_NONE },
        { "more than allowed, after a reload", 5, 9, false, INSTANT_NONE, 0, HOLD_CONCURRENCY, INSTANT_NONE },
        { "closed", 10, 0, false, START + 1, 0, HOLD_THROTTLE, START + 1 },
        { "closed until now", 10, 0, false, START, 10, HOLD_NONE, INSTANT_NONE },
        { "closed is named before full: it has a time", 1, 1, false, START + 9, 0, HOLD_THROTTLE, START + 9 },
        { "paused before all else", 10, 10, true, START + 1, 0, HOLD_PAUSED, INSTANT_NONE },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gate gate = { .concurrency = cases[i].concurrency, .under_way = cases[i].under_way, .paused = cases[i].paused,
                             .closed_until = cases[i].closed_until };
        struct gate_answer answer = gate_ask(&gate, START);
        check(answer.room == cases[i].room, "%s: room %lld", cases[i].name, (long long)answer.room);
        check(answer.hold == cases[i].hold, "%s: %s", cases[i].name, gate_hold_name(answer.hold));
        check(answer.until == cases[i].until, "%s: until", cases[i].name);
    }
    struct gate gate = { .concurrency = 2, .closed_until = INSTANT_NONE };
    struct gate_pass pass = gate_take(&gate, 2, START);
    assert_int_equal(gate_ask(&gate, START).hold, HOLD_CONCURRENCY);
    gate_give_back(&gate, pass, 1);
    answer(&gate, pass, OUTCOME_TRANSIENT, "http:500", START);
    assert_int_equal(gate.under_way, 0);
    bool keep = true;
    const struct contingency_end end = { .job = 1, .failed_at = START, .away = true };
    gate_exhausted(&gate, &end, START, &keep);
    assert_false(keep);
    assert_false(gate_health_due(&gate, START));
    gate_health(&gate, false, START);
    assert_int_equal(gate_tick(&gate, START).mode.to, MODE_NORMAL);
    assert_int_equal(gate_next(&gate, START), INSTANT_NONE);
}

static void a_later_wish_wins(void **state)
{
    (void)state;
    static const struct { instant before, wish, after; } cases[] = {
        { INSTANT_NONE, 50, 50 }, { 50, 80, 80 }, { 80, 50, 80 }, { 80, 80, 80 }, { 80, INSTANT_NONE, 80 },
        { INSTANT_NONE, INSTANT_NONE, INSTANT_NONE },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gate gate = { .concurrency = 1, .closed_until = cases[i].before };
        gate_close_until(&gate, cases[i].wish);
        check(gate.closed_until == cases[i].after, "case %zu: %lld", i, (long long)gate.closed_until);
        check(gate_next(&gate, 10) == cases[i].after, "case %zu: next", i);
        check(gate_next(&gate, 80) == INSTANT_NONE, "case %zu: no next", i);
    }
}

static void other_limits_narrow(void **state)
{
    (void)state;
    struct gate gate = begin(&plain);
    struct gate_answer answer = gate_ask(&gate, START);
    assert_int_equal(answer.room, 5);
    gate_narrow(&answer, HOLD_RATE, 9, START + 9);
    assert_int_equal(answer.room, 5);
    gate_narrow(&answer, HOLD_RATE, 3, START + 9);
    assert_int_equal(answer.room, 3);
    assert_int_equal(answer.hold, HOLD_NONE);
    gate_narrow(&answer, HOLD_RATE, 0, START + 9);
    assert_int_equal(answer.hold, HOLD_RATE);
    assert_int_equal(answer.until, START + 9);
    gate_narrow(&answer, HOLD_CYCLE, 0, START + 1); /* the first that holds is named */
    assert_int_equal(answer.hold, HOLD_RATE);
}

static void names(void **state)
{
    (void)state;
    static const char *const expected[HOLD_COUNT] = { NULL, "paused", "blocked", "contingency", "maintenance", "breaker",
                                                        "throttle", "rate", "cycle", "concurrency" };
    for (int i = 0; i < HOLD_COUNT; i++) {
        const char *name = gate_hold_name((enum gate_hold)i);
        check(i == HOLD_NONE ? !name : name && strcmp(name, expected[i]) == 0, "%d: %s", i, name);
    }
}

static void cycles(void **state)
{
    (void)state;
    struct gate gate = begin(&cycled);
    struct gate_pass pass = gate_take(&gate, 5, START);
    for (int i = 0; i < 5; i++)
        answer(&gate, pass, OUTCOME_DELIVERED, "http:200", START);
    assert_int_equal(gate_ask(&gate, START).room, 3);
    pass = gate_take(&gate, 3, START + 1000);
    assert_int_equal(gate_ask(&gate, START + 1000).hold, HOLD_CYCLE);
    assert_int_equal(gate_ask(&gate, START + 1000).until, START + 60000);
    assert_int_equal(gate_next(&gate, START + 1000), START + 60000);
    gate_give_back(&gate, pass, 1);
    assert_int_equal(gate_ask(&gate, START + 1000).room, 1);
    assert_int_equal(gate_ask(&gate, START + 59999).room, 1);
    assert_int_equal(gate_ask(&gate, START + 60000).room, 3); /* a new one: two are under way */
    struct gate_pass next = gate_take(&gate, 3, START + 60000);
    gate_give_back(&gate, pass, 1); /* of the cycle before: this one has no more for it */
    assert_int_equal(gate.cycle_taken, 3);
    gate_give_back(&gate, next, 3);
    assert_int_equal(gate.cycle_taken, 0);
    gate_take(&gate, 1, START + 60000);
    gate_give_back(&gate, gate_take(&gate, 3, START + 60000), 3);
    assert_int_equal(gate_ask(&gate, START - 3600000).room, 3); /* the clock was set back: no hour of waiting */
}

static void what_the_breaker_counts(void **state)
{
    (void)state;
    static const struct { const char *name; enum outcome outcome; const char *code; bool sent, opens; } cases[] = {
        { "delivered", OUTCOME_DELIVERED, "http:200", true, false },
        { "the job's own fault", OUTCOME_PERMANENT, "http:400", true, false },
        { "duplicate", OUTCOME_DUPLICATE, "http:409", true, false },
        { "server errors", OUTCOME_TRANSIENT, "http:503", true, true },
        { "no answer", OUTCOME_IN_DOUBT, "curl:28", true, true },
        { "down", OUTCOME_WAIT, "sifen:0162", true, true },
        { "too fast", OUTCOME_THROTTLED, "http:429", true, true },
        { "a full mailbox", OUTCOME_TRANSIENT, "smtp:452", true, false },
        { "never left", OUTCOME_TRANSIENT, "curl:7", false, false },
        { "credentials", OUTCOME_BLOCKED, "http:401", true, false },
        { "not known yet", OUTCOME_NONE, "", true, false },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gate gate = begin(&broken);
        int reported = 0;
        for (int n = 0; n < 20; n++) {
            struct gate_result result = { cases[i].sent, cases[i].outcome, slice_from(cases[i].code), 100, false, n + 1, 1, INSTANT_NONE };
            struct gate_news news = gate_note(&gate, gate_take(&gate, 1, START), &result, START);
            reported += news.breaker.from != news.breaker.to;
        }
        struct gate_answer answer = gate_ask(&gate, START);
        check((answer.hold == HOLD_BREAKER) == cases[i].opens, "%s: %s", cases[i].name, gate_hold_name(answer.hold));
        check(reported == cases[i].opens, "%s: told %d times", cases[i].name, reported);
        check(gate.under_way == 0, "%s: under way", cases[i].name);
        check(!cases[i].opens || answer.until == START + 30000, "%s: until", cases[i].name);
    }
}

static void break_it(struct gate *gate, instant now)
{
    for (int i = 0; i < 20; i++)
        send(gate, OUTCOME_TRANSIENT, "http:503", now);
}

static void a_breaker_of_its_own(void **state)
{
    (void)state;
    struct gate gate = begin(&broken);
    struct gate_pass first = gate_take(&gate, 1, START);
    assert_false(first.probe);
    gate_give_back(&gate, first, 1);
    break_it(&gate, START);
    assert_int_equal(gate_next(&gate, START), START + 30000);
    assert_int_equal(gate_tick(&gate, START + 29999).breaker.to, BREAKER_OPEN);
    struct gate_news news = gate_tick(&gate, START + 30000);
    assert_int_equal(news.breaker.from, BREAKER_OPEN);
    assert_int_equal(news.breaker.to, BREAKER_HALF_OPEN);
    instant now = START + 30000;
    while (gate_ask(&gate, now).room > 0) { /* the limit of concurrency has fallen too: one after the other */
        struct gate_pass pass = gate_take(&gate, 1, now);
        assert_true(pass.probe);
        news = answer(&gate, pass, OUTCOME_PERMANENT, "http:400", now);
        if (gate.breaker.saved.state == BREAKER_CLOSED)
            break;
    }
    assert_int_equal(news.breaker.to, BREAKER_CLOSED);
    assert_int_equal(gate_tick(&gate, now).breaker.to, BREAKER_CLOSED);
    assert_int_equal(gate_next(&gate, now), INSTANT_NONE);
    break_it(&gate, now);
    gate_tick(&gate, now + 30000);
    struct gate_pass pass = gate_take(&gate, 1, now + 30000);
    assert_int_equal(gate.breaker.taken, 1);
    gate_give_back(&gate, pass, 1);
    assert_int_equal(gate.breaker.taken, 0);
}

static void the_breaker_leads_to_contingency(void **state)
{
    (void)state;
    struct gate gate = begin(&both);
    struct gate_news news = { 0 };
    for (int i = 0; i < 20; i++)
        news = send(&gate, OUTCOME_TRANSIENT, "http:503", START);
    assert_int_equal(news.breaker.to, BREAKER_OPEN);
    assert_int_equal(news.mode.to, MODE_CONTINGENCY);
    assert_int_equal(news.mode.cause, CAUSE_BREAKER);
    instant now = START + 60000; /* the breaker would probe now, the mode does not yet */
    news = gate_tick(&gate, now);
    assert_int_equal(news.breaker.to, BREAKER_OPEN);
    assert_int_equal(gate_ask(&gate, now).hold, HOLD_CONTINGENCY);
    assert_int_equal(gate_ask(&gate, now).until, START + 5 * MINUTE_MS);
    now = START + 5 * MINUTE_MS;
    gate_tick(&gate, now);
    assert_int_equal(gate_ask(&gate, now).room, 1);
    struct gate_pass pass = gate_take(&gate, 1, now);
    assert_true(pass.probe);
    news = answer(&gate, pass, OUTCOME_TRANSIENT, "http:503", now);
    assert_int_equal(news.mode.to, MODE_CONTINGENCY);
    now += 5 * MINUTE_MS;
    gate_tick(&gate, now);
    news = send(&gate, OUTCOME_DELIVERED, "http:200", now);
    assert_int_equal(news.mode.to, MODE_RECOVERING);
    assert_int_equal(news.breaker.from, BREAKER_OPEN);
    assert_int_equal(news.breaker.to, BREAKER_CLOSED);
    assert_true(gate_ask(&gate, now).room > 0);
}

static void a_job_at_its_end(void **state)
{
    (void)state;
    struct gate gate = begin(&both);
    const struct contingency_end judged = { .job = 1, .failed_at = START, .away = false };
    const struct contingency_end away = { .job = 1, .failed_at = START, .away = true };
    bool keep = true;
    send(&gate, OUTCOME_TRANSIENT, "http:500", START);
    struct gate_news news = gate_exhausted(&gate, &judged, START, &keep);
    assert_false(keep); /* it is alone */
    news = gate_exhausted(&gate, &away, START, &keep);
    assert_true(keep);
    assert_int_equal(news.mode.to, MODE_CONTINGENCY);
    assert_int_equal(news.mode.cause, CAUSE_EXHAUSTED);
    assert_true(outage_lasts(&gate.outage) && gate.outage.since == START);
    news = gate_exhausted(&gate, &away, START, &keep);
    assert_true(keep);
    assert_int_equal(news.mode.from, news.mode.to);
}

static void health_and_the_operator(void **state)
{
    (void)state;
    struct gate_rules rules = both;
    rules.health_every_ms = 30000;
    rules.health_failures = 3;
    rules.contingency.has_health = true;
    struct gate gate = begin(&rules);
    instant now = START;
    char reported[16] = "";
    for (int i = 0; i < 8; i++) { /* three fail, two more, two go well */
        assert_true(gate_health_due(&gate, now));
        gate_health_begin(&gate, now);
        assert_int_equal(gate_next(&gate, now), now + 30000);
        struct gate_news news = gate_health(&gate, i == 0 || i > 5, now);
        reported[i] = news.mode.from == news.mode.to ? '.' : "NCR"[news.mode.to];
        now += 30000;
    }
    assert_string_equal(reported, "...C..R.");
    assert_int_equal(gate_enter_contingency(&gate, now).mode.cause, CAUSE_OPERATOR);
    assert_int_equal(gate_ask(&gate, now).hold, HOLD_CONTINGENCY);
    gate.paused = true;
    assert_int_equal(gate_ask(&gate, now).hold, HOLD_PAUSED);
    assert_int_equal(gate_leave_contingency(&gate, now).mode.to, MODE_RECOVERING);
    assert_int_equal(gate_ask(&gate, now).hold, HOLD_PAUSED);
    gate.paused = false;
    assert_int_equal(gate_ask(&gate, now).room, 5);
    gate_configure(&gate, &plain, now);
    gate_health(&gate, false, now); /* the check was under way when a reload took it away */
    assert_int_equal(gate.health.failures, 0);
}

static void maintenance_is_named(void **state)
{
    (void)state;
    static const struct maintenance_window daily[] = { { 127, 0, 1440 } };
    struct gate_rules rules = both;
    rules.contingency.windows = daily;
    rules.contingency.window_count = 1;
    struct gate gate = begin(&rules);
    struct gate_news news = gate_tick(&gate, START);
    assert_int_equal(news.mode.cause, CAUSE_MAINTENANCE);
    assert_int_equal(news.mode.criterion, CRITERION_MAINTENANCE);
    assert_int_equal(gate_ask(&gate, START).hold, HOLD_MAINTENANCE);
}

static void a_reload(void **state)
{
    (void)state;
    struct gate gate = { .concurrency = 1, .under_way = 1, .paused = true, .closed_until = START + 5 };
    gate_configure(&gate, &both, START);
    assert_int_equal(gate.under_way, 1);
    assert_true(gate.paused);
    assert_int_equal(gate.closed_until, START + 5);
    assert_int_equal(gate.adaptive.max, 5);
    gate.paused = false;
    gate.contingency.saved.step = 3;
    struct gate_rules other = both;
    other.concurrency = 2;
    other.contingency.ramp_count = 1;
    gate_configure(&gate, &other, START);
    assert_int_equal(gate.adaptive.limit, 2);
    assert_int_equal(gate.contingency.saved.step, 1);
    assert_int_equal(gate_ask(&gate, START + 5).room, 1);
    gate.rules = &broken;
    break_it(&gate, START + 5);
    gate_configure(&gate, &plain, START + 5); /* the breaker is taken away while it is open */
    assert_int_equal(gate_tick(&gate, START + 5).breaker.to, BREAKER_CLOSED);
}

/* A pause on the way back is no time of stability, however the operator ends it. */
static void what_ends_a_pass(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool reload, outage, breaks, closes, stands;
    } cases[] = {
        { "nothing", .stands = true },
        { "a reload, of the same rules even", .reload = true },
        { "an outage", .outage = true },
        { "a breaker that opens", .breaks = true },
        { "a wish for a pause", .closes = true },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gate gate = begin(cases[i].breaks ? &broken : &both);
        struct gate_pass pass = gate_take(&gate, 1, START);
        if (cases[i].reload)
            gate_configure(&gate, &both, START);
        if (cases[i].outage)
            gate_enter_contingency(&gate, START);
        if (cases[i].breaks)
            break_it(&gate, START);
        if (cases[i].closes)
            gate_close_until(&gate, START + 1000);
        check(gate_pass_stands(&gate, pass, START + 1) == cases[i].stands, "%s", cases[i].name);
        gate_give_back(&gate, pass, 1);
        check(gate.under_way == 0, "%s", cases[i].name);
    }
    struct gate gate = { .concurrency = 5, .closed_until = INSTANT_NONE };
    struct gate_pass pass = gate_take(&gate, 1, START);
    assert_true(gate_pass_stands(&gate, pass, START));
    gate_configure(&gate, &plain, START);
    assert_false(gate_pass_stands(&gate, pass, START)); /* it had none before */
    assert_true(gate_pass_stands(&gate, gate_take(&gate, 1, START), START));
}

static void a_pause_on_the_way_back(void **state)
{
    (void)state;
    struct gate gate = begin(&both);
    gate_enter_contingency(&gate, START);
    gate_leave_contingency(&gate, START);
    gate.paused = true;
    instant now = START;
    for (int i = 0; i < 60; i++)
        gate_tick(&gate, now += MINUTE_MS);
    gate.paused = false;
    assert_int_equal(gate_tick(&gate, now).mode.to, MODE_RECOVERING);
    assert_int_equal(gate_tick(&gate, now + 14 * MINUTE_MS).mode.to, MODE_RECOVERING);
    assert_int_equal(gate_tick(&gate, now + 15 * MINUTE_MS).mode.to, MODE_NORMAL);
}

/* A pause that a destination asked for lasts as long as that, whatever happens to the clock. */
static void a_clock_set_back_prolongs_no_pause(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t asked_ms, most_ms, back_ms;
        bool restarted;
        int64_t lasts_ms; /* from the first tick after it */
    } cases[] = {
        { "an hour back", MINUTE_MS, DAY_MS, HOUR_MS, false, MINUTE_MS },
        { "a moment back", MINUTE_MS, DAY_MS, 5, false, MINUTE_MS },
        { "not at all", MINUTE_MS, DAY_MS, 0, false, MINUTE_MS },
        { "a restart knows only the bound", MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, true, 10 * MINUTE_MS },
        { "a restart, and within the bound", MINUTE_MS, 10 * MINUTE_MS, 0, true, MINUTE_MS },
        { "no bound", MINUTE_MS, 0, HOUR_MS, false, MINUTE_MS },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct gate_rules rules = { .concurrency = 5, .closed_max_ms = cases[i].most_ms,
                                          .contingency.answer_max_ms = ANSWER_MS };
        const instant start = 2 * HOUR_MS;
        struct gate gate;
        gate_init(&gate, &rules, start, INSTANT_NONE);
        gate_tick(&gate, start);
        gate_close_until(&gate, start + cases[i].asked_ms);
        if (cases[i].restarted) {
            struct gate_saved saved = gate_save(&gate);
            gate_init(&gate, &rules, start, INSTANT_NONE);
            gate_restore(&gate, &saved, start);
        }
        instant now = start - cases[i].back_ms;
        gate_tick(&gate, now);
        check(gate_ask(&gate, now + cases[i].lasts_ms - 1).hold == HOLD_THROTTLE, "%s: too short", cases[i].name);
        check(gate_ask(&gate, now + cases[i].lasts_ms).hold == HOLD_NONE, "%s: too long", cases[i].name);
        gate_tick(&gate, now + 1); /* only once */
        check(gate_ask(&gate, now + cases[i].lasts_ms - 1).hold == HOLD_THROTTLE, "%s: shortened again", cases[i].name);
    }
}

static void who_is_well(void **state)
{
    (void)state;
    struct gate gate = begin(&both);
    assert_true(gate_is_well(&gate, START));
    assert_int_equal(gate_signs(&gate), 0);
    gate_take(&gate, 5, START); /* full is not unwell */
    assert_true(gate_is_well(&gate, START));
    gate.paused = true;
    assert_false(gate_is_well(&gate, START));
    gate.paused = false;
    gate_close_until(&gate, START + 10);
    assert_false(gate_is_well(&gate, START + 9));
    assert_true(gate_is_well(&gate, START + 10));

    gate = begin(&broken);
    for (int i = 0; i < 19; i++)
        send(&gate, OUTCOME_TRANSIENT, "http:503", START);
    assert_true(gate_is_well(&gate, START));
    assert_int_equal(gate_signs(&gate), 19);
    send(&gate, OUTCOME_PERMANENT, "http:422", START); /* an answer about the job is a good one */
    assert_int_equal(gate_signs(&gate), 0);
    send(&gate, OUTCOME_TRANSIENT, "http:503", START);
    assert_int_equal(gate.breaker.saved.state, BREAKER_OPEN);
    assert_false(gate_is_well(&gate, START));

    gate = begin(&both);
    gate_enter_contingency(&gate, START);
    assert_false(gate_is_well(&gate, START));
    gate_leave_contingency(&gate, START);
    assert_false(gate_is_well(&gate, START)); /* on the way back others go first */
}

/* What the ramp did not let through has not been tried: normal begins no more than one step above what was. */
static void the_limit_on_the_way_back(void **state)
{
    (void)state;
    static const struct gate_rules wide = { .concurrency = 100, .breaker = BREAKER, .contingency = CONTINGENCY };
    struct gate gate = begin(&wide);
    instant now = START;
    gate_enter_contingency(&gate, now);
    gate_leave_contingency(&gate, now);
    for (int round = 0; round < 300; round++, now += 2 * SECOND_MS) {
        gate_tick(&gate, now);
        int64_t room = gate_ask(&gate, now).room;
        assert_true(room > 0);
        struct gate_pass pass = gate_take(&gate, room, now);
        for (int64_t i = 0; i < room; i++)
            answer(&gate, pass, OUTCOME_DELIVERED, "http:200", now);
    }
    assert_int_equal(gate.contingency.saved.mode, MODE_RECOVERING);
    assert_int_equal(gate.adaptive.limit, 40); /* 20 were borne: what comes next waits for its try */
    assert_int_equal(gate_slots(&gate), 25);
}

/* What the engine asks before it claims: whether it may claim ahead, for how many slots, and whether it only looks. */
static void what_it_is_open_for(void **state)
{
    (void)state;
    static const struct gate_rules batch = { .concurrency = 50, .cycle_every_ms = 60000, .cycle_batch = 3,
                                             .contingency.answer_max_ms = ANSWER_MS };
    static const int64_t none[] = { 0 };
    static const struct gate_rules shut = { .concurrency = 50, .contingency = { .enabled = true, .ramp = none, .ramp_count = 1,
                                            .stable_ms = MINUTE_MS, .check_ms = MINUTE_MS, .answer_max_ms = ANSWER_MS } };
    enum change { UNCHANGED, PAUSE, CLOSE, BREAK, BREAK_AND_WAIT, ENTER, RETURN };
    static const struct {
        const char *name;
        const struct gate_rules *rules;
        enum change change;
        bool flows, looks;
        int64_t slots;
    } rows[] = {
        { "without rules", NULL, UNCHANGED, true, false, 7 },
        { "without rules, paused", NULL, PAUSE, false, false, 7 },
        { "normal", &both, UNCHANGED, true, false, 5 },
        { "paused", &both, PAUSE, false, false, 5 },
        { "closed for a while", &both, CLOSE, false, false, 5 },
        { "a cycle of more than its slots", &cycled, UNCHANGED, false, false, 5 },
        { "a cycle of fewer", &batch, UNCHANGED, false, false, 3 },
        { "broken", &broken, BREAK, false, false, 5 },
        { "half open", &broken, BREAK_AND_WAIT, false, true, 5 },
        { "contingency", &both, ENTER, false, true, 5 },
        { "on the way back", &both, RETURN, false, false, 5 },
        { "on a way back that begins with none", &shut, RETURN, false, false, 1 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gate gate = { .concurrency = 7, .closed_until = INSTANT_NONE };
        if (rows[i].rules)
            gate_init(&gate, rows[i].rules, START, INSTANT_NONE);
        gate.paused = rows[i].change == PAUSE;
        if (rows[i].change == CLOSE)
            gate_close_until(&gate, START + 1);
        if (rows[i].change == BREAK || rows[i].change == BREAK_AND_WAIT)
            break_it(&gate, START);
        if (rows[i].change == BREAK_AND_WAIT)
            gate_tick(&gate, START + 30000);
        if (rows[i].change == ENTER || rows[i].change == RETURN)
            gate_enter_contingency(&gate, START);
        if (rows[i].change == RETURN)
            gate_leave_contingency(&gate, START);
        check(gate_flows(&gate, START) == rows[i].flows, "%s: flows", rows[i].name);
        check(gate_looks(&gate) == rows[i].looks, "%s: looks", rows[i].name);
        check(gate_slots(&gate) == rows[i].slots, "%s: %d slots", rows[i].name, (int)gate_slots(&gate));
    }
}

/* A job that has failed in this outage already: at once on the way back, later than others in a look. */
static void when_a_used_job_looks(void **state)
{
    (void)state;
    struct gate gate = begin(&both);
    assert_true(gate_takes_used(&gate, START));
    gate_enter_contingency(&gate, START);
    assert_false(gate_takes_used(&gate, START));
    assert_true(gate_takes_used(&gate, START + 10 * 5 * MINUTE_MS));
    gate_leave_contingency(&gate, START);
    assert_true(gate_takes_used(&gate, START));
}

/* One job at a time looks, whatever else would be allowed; what was let through before is given back. */
static void refused_answers_hold_it(void **state)
{
    struct gate gate;
    (void)state;
    gate_init(&gate, &plain, START, START);
    struct gate_pass before = gate_take(&gate, 1, START);
    assert_true(gate_is_well(&gate, START) && gate_flows(&gate, START));
    block_restore(&gate.block, &(struct block_saved){ .held = true, .since = START, .look_at = START + BLOCK_LOOK_MS,
                                                      .needed = BLOCK_NEEDED });
    gate_tick(&gate, START);
    assert_true(outage_lasts(&gate.outage));
    assert_false(gate_is_well(&gate, START) || gate_flows(&gate, START) || gate_pass_stands(&gate, before, START));
    assert_int_equal(gate_ask(&gate, START).hold, HOLD_BLOCKED);
    assert_int_equal(gate_ask(&gate, START).until, START + 60000);
    assert_int_equal(gate_next(&gate, START), START + 60000);
    assert_true(gate_looks(&gate) && gate_takes_used(&gate, START));

    instant now = START + 60000;
    assert_int_equal(gate_ask(&gate, now).room, 1);
    struct gate_pass look = gate_take(&gate, 1, now);
    assert_true(look.look && look.probe && gate_pass_stands(&gate, look, now));
    assert_int_equal(gate_ask(&gate, now).hold, HOLD_BLOCKED);
    const struct gate_result refused = { .sent = true, .outcome = OUTCOME_BLOCKED, .code = SLICE("http:401"), .job = 1,
                                         .tenant = 1, .look_failed_at = INSTANT_NONE };
    gate_note(&gate, look, &refused, now);
    assert_int_equal(gate.under_way, 1);

    struct gate_saved saved = gate_save(&gate);
    struct gate again;
    gate_init(&again, &plain, now, now);
    gate_restore(&again, &saved, now);
    assert_int_equal(gate_ask(&again, now).hold, HOLD_BLOCKED);
    assert_int_equal(again.outage.since, START); /* it is the same one: nobody has another free failure */
    gate.paused = true;
    assert_int_equal(gate_ask(&gate, now).hold, HOLD_PAUSED);
    gate.paused = false;
    assert_true(block_went_well(&gate.block));
    gate_tick(&gate, now);
    assert_true(gate_is_well(&gate, now) && !outage_lasts(&gate.outage));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_rules),
        cmocka_unit_test(a_later_wish_wins),
        cmocka_unit_test(other_limits_narrow),
        cmocka_unit_test(names),
        cmocka_unit_test(cycles),
        cmocka_unit_test(what_the_breaker_counts),
        cmocka_unit_test(a_breaker_of_its_own),
        cmocka_unit_test(the_breaker_leads_to_contingency),
        cmocka_unit_test(a_job_at_its_end),
        cmocka_unit_test(health_and_the_operator),
        cmocka_unit_test(maintenance_is_named),
        cmocka_unit_test(a_reload),
        cmocka_unit_test(what_ends_a_pass),
        cmocka_unit_test(a_pause_on_the_way_back),
        cmocka_unit_test(a_clock_set_back_prolongs_no_pause),
        cmocka_unit_test(who_is_well),
        cmocka_unit_test(the_limit_on_the_way_back),
        cmocka_unit_test(what_it_is_open_for),
        cmocka_unit_test(when_a_used_job_looks),
        cmocka_unit_test(refused_answers_hold_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
