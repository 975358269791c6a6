/*
 * An outage of three hours and ten thousand jobs against the gate, in a model of the engine: what the
 * destination sees while it is down and when it returns, and that no job is lost to it.
 */
#include "core/outage/gate.h"
#include "support/check.h"

enum {
    STEP_MS = 100,
    DOWN_AT_S = 300,
    UP_AT_S = DOWN_AT_S + 3 * 3600,
    END_S = UP_AT_S + 3000,
    OFFERED_A_SECOND = 20, /* while it is well */
    JOBS_IN_OUTAGE = 10000,
    JOBS_MAX = 100000,
    TRIES_MAX = 10,
    FLIGHTS_MAX = 64,
    ANSWER_MS = 200,
    RESTARTS_MAX = 3,
};

static const int64_t ramp[] = { 5, 10, 25 };
#define RAMP .enabled = true, .ramp = ramp, .ramp_count = 3, .stable_ms = 15 * MINUTE_MS, .answer_max_ms = 90 * SECOND_MS
/* The SIFEN document: a health check every 30 seconds. */
static const struct gate_rules checked = {
    .concurrency = 25,
    .health_every_ms = 30 * SECOND_MS,
    .health_failures = 3,
    .contingency = { RAMP, .check_ms = 5 * MINUTE_MS, .has_health = true },
};
/* Account provisioning: a breaker, and one job a minute to see whether it is back. */
static const struct gate_rules unchecked = {
    .concurrency = 25,
    .breaker = { true, 60000, 20, 0.5, 30000, 1, 30000, 300000, 5 },
    .contingency = { RAMP, .check_ms = MINUTE_MS },
};
/* Only a breaker. */
static const struct gate_rules breaker_only = {
    .concurrency = 25,
    .breaker = { true, 60000, 20, 0.5, 30000, 1, 30000, 300000, 5 },
    .contingency.answer_max_ms = 90 * SECOND_MS,
};

struct world {
    const struct gate_rules *rules;
    struct gate gate;
    instant now;
    bool up;
    int8_t tries[JOBS_MAX];
    int32_t ready[JOBS_MAX * 2], waiting[JOBS_MAX];
    instant due[JOBS_MAX];
    size_t jobs, ready_first, ready_end, waiting_count;
    struct { int32_t job; instant at; struct gate_pass pass; } flights[FLIGHTS_MAX];
    size_t flight_count;
    int64_t completed, exhausted;
    int64_t sent_while_held;         /* after the outage was noticed and before its end */
    int64_t step_exceeded;
    int64_t first_second, under_way_max; /* after the return, until normal */
    instant noticed_at, returned_at, normal_at;
    int64_t completed_in[END_S + 1]; /* by second */
    char modes[16];
    int64_t breaker_openings;
};

static int64_t seconds(const struct world *world)
{
    return world->now / SECOND_MS;
}

static void make_ready(struct world *world, int32_t job)
{
    assert_true(world->ready_end < COUNT_OF(world->ready));
    world->ready[world->ready_end++] = job;
}

static void hear(struct world *world, struct gate_news news)
{
    world->breaker_openings += news.breaker.from != news.breaker.to && news.breaker.to == BREAKER_OPEN;
    if (news.mode.from == news.mode.to)
        return;
    size_t len = strlen(world->modes);
    assert_true(len + 1 < sizeof world->modes);
    world->modes[len] = "NCR"[news.mode.to];
    if (news.mode.to == MODE_CONTINGENCY && world->noticed_at == INSTANT_NONE)
        world->noticed_at = world->now;
    if (news.mode.to == MODE_RECOVERING && world->returned_at == INSTANT_NONE)
        world->returned_at = world->now;
    if (news.mode.to == MODE_NORMAL)
        world->normal_at = world->now;
}

static void offer(struct world *world)
{
    int64_t at = seconds(world), in_second = world->now % SECOND_MS / STEP_MS;
    bool outage = at >= DOWN_AT_S && at < UP_AT_S;
    int64_t done = outage ? (world->now - DOWN_AT_S * SECOND_MS) / STEP_MS : 0;
    int64_t steps = (UP_AT_S - DOWN_AT_S) * (SECOND_MS / STEP_MS);
    int64_t count = outage ? JOBS_IN_OUTAGE * (done + 1) / steps - JOBS_IN_OUTAGE * done / steps
                           : OFFERED_A_SECOND * (in_second + 1) / 10 - OFFERED_A_SECOND * in_second / 10;
    while (count-- > 0) {
        assert_true(world->jobs < JOBS_MAX);
        make_ready(world, (int32_t)world->jobs++);
    }
}

static void promote(struct world *world)
{
    for (size_t i = 0; i < world->waiting_count;) {
        int32_t job = world->waiting[i];
        if (world->due[job] > world->now) {
            i++;
            continue;
        }
        world->waiting[i] = world->waiting[--world->waiting_count];
        make_ready(world, job);
    }
}

static void wait_again(struct world *world, int32_t job, bool spends)
{
    if (spends && ++world->tries[job] >= TRIES_MAX) {
        world->exhausted++;
        return;
    }
    int64_t delay = 30 * SECOND_MS << (world->tries[job] < 5 ? world->tries[job] : 5);
    world->due[job] = world->now + (delay < 600 * SECOND_MS ? delay : 600 * SECOND_MS);
    world->waiting[world->waiting_count++] = job;
}

static void land(struct world *world)
{
    for (size_t i = 0; i < world->flight_count;) {
        if (world->flights[i].at > world->now) {
            i++;
            continue;
        }
        int32_t job = world->flights[i].job;
        struct gate_pass pass = world->flights[i].pass;
        struct gate_result result = { true, world->up ? OUTCOME_DELIVERED : OUTCOME_TRANSIENT,
                                      world->up ? SLICE("http:200") : SLICE("http:503"), ANSWER_MS, false, job + 1, 1, INSTANT_NONE };
        world->flights[i] = world->flights[--world->flight_count];
        hear(world, gate_note(&world->gate, pass, &result, world->now));
        if (world->up) {
            world->completed++;
            world->completed_in[seconds(world)]++;
        } else {
            wait_again(world, job, !pass.probe);
        }
    }
}

static void watch(struct world *world, int64_t count)
{
    enum mode mode = world->gate.contingency.saved.mode;
    if (!world->up && mode == MODE_CONTINGENCY)
        world->sent_while_held += count;
    if (mode != MODE_RECOVERING)
        return;
    size_t step = world->gate.contingency.saved.step;
    world->step_exceeded += world->gate.under_way > ramp[step < 2 ? step : 2];
    if (world->now < world->returned_at + SECOND_MS)
        world->first_second += count;
    if (world->gate.under_way > world->under_way_max)
        world->under_way_max = world->gate.under_way;
}

static void dispatch(struct world *world)
{
    hear(world, gate_tick(&world->gate, world->now));
    int64_t there = (int64_t)(world->ready_end - world->ready_first);
    struct gate_answer answer = gate_ask(&world->gate, world->now);
    int64_t count = answer.room < there ? answer.room : there;
    if (count == 0)
        return;
    struct gate_pass pass = gate_take(&world->gate, count, world->now);
    watch(world, count);
    for (int64_t i = 0; i < count; i++) {
        assert_true(world->flight_count < FLIGHTS_MAX);
        world->flights[world->flight_count].job = world->ready[world->ready_first++];
        world->flights[world->flight_count].at = world->now + ANSWER_MS;
        world->flights[world->flight_count].pass = pass;
        world->flight_count++;
    }
}

/* The process ends and starts again: what was under way goes back, the rest is as it was kept. */
static void restart(struct world *world)
{
    struct gate_saved saved = gate_save(&world->gate);
    while (world->flight_count > 0)
        make_ready(world, world->flights[--world->flight_count].job);
    gate_init(&world->gate, world->rules, world->now, world->now);
    gate_restore(&world->gate, &saved, world->now);
}

static void run(struct world *world, const struct gate_rules *rules, const int64_t restarts_s[RESTARTS_MAX])
{
    memset(world, 0, sizeof *world);
    world->rules = rules;
    world->noticed_at = world->returned_at = world->normal_at = INSTANT_NONE;
    gate_init(&world->gate, rules, 0, 0);
    for (world->now = 0; world->now < END_S * SECOND_MS; world->now += STEP_MS) {
        world->up = seconds(world) < DOWN_AT_S || seconds(world) >= UP_AT_S;
        for (size_t i = 0; i < RESTARTS_MAX; i++)
            if (restarts_s[i] * SECOND_MS == world->now && world->now > 0)
                restart(world);
        if (gate_health_due(&world->gate, world->now)) {
            gate_health_begin(&world->gate, world->now);
            hear(world, gate_health(&world->gate, world->up, world->now));
        }
        offer(world);
        promote(world);
        land(world);
        dispatch(world);
    }
}

static struct world world;

static void an_outage_of_three_hours(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const struct gate_rules *rules;
        int64_t restarts_s[RESTARTS_MAX];
        const char *modes;
        int64_t noticed_ms_max, probes_max, returned_ms_max;
    } cases[] = {
        { "a health check", &checked, { 0 }, "CRN", 90000, 0, 30000 },
        { "a breaker and probes", &unchecked, { 0 }, "CRN", 60000, 180, 61000 },
        { "restarts: before, during, on the way back", &checked, { 100, 5000, UP_AT_S + 2 }, "CRN", 90000, 0, 30000 },
        { "restarts with probes", &unchecked, { 100, 5000, UP_AT_S + 63 }, "CRN", 60000, 181, 61000 },
        { "a restart while stability is awaited", &checked, { DOWN_AT_S + 40, UP_AT_S - 1, UP_AT_S + 400 }, "CRN", 150000, 0, 30000 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        run(&world, cases[i].rules, cases[i].restarts_s);
        const char *name = cases[i].name;
        check(strcmp(world.modes, cases[i].modes) == 0, "%s: told %s", name, world.modes);
        check(world.noticed_at <= DOWN_AT_S * SECOND_MS + cases[i].noticed_ms_max, "%s: noticed", name);
        check(world.sent_while_held <= cases[i].probes_max, "%s: %lld requests", name, (long long)world.sent_while_held);
        check(world.returned_at >= UP_AT_S * SECOND_MS && world.returned_at <= UP_AT_S * SECOND_MS + cases[i].returned_ms_max,
              "%s: return noticed after %lld ms", name, (long long)(world.returned_at - UP_AT_S * SECOND_MS));
        check(world.first_second <= ramp[0], "%s: %lld in the first second", name, (long long)world.first_second);
        check(world.step_exceeded == 0 && world.under_way_max <= ramp[2], "%s: %lld at once", name, (long long)world.under_way_max);
        check(world.exhausted == 0, "%s: %lld lost", name, (long long)world.exhausted);
        check(world.normal_at >= world.returned_at + 15 * MINUTE_MS, "%s: normal too early", name);
        int64_t goodput = 0, from = world.returned_at / SECOND_MS + 110;
        for (int64_t second = from; second < from + 10; second++)
            goodput += world.completed_in[second];
        check(goodput * 100 >= OFFERED_A_SECOND * 10 * 95, "%s: %lld in ten seconds", name, (long long)goodput);
        int64_t left = (int64_t)world.jobs - world.completed;
        check(left <= 2 * OFFERED_A_SECOND, "%s: %lld left", name, (long long)left);
        check(world.gate.under_way == (int64_t)world.flight_count, "%s: places", name);
    }
}

static void a_breaker_alone_spends_no_tries_either(void **state)
{
    (void)state;
    static const int64_t no_restarts[RESTARTS_MAX];
    run(&world, &breaker_only, no_restarts);
    assert_string_equal(world.modes, "");
    assert_int_equal(world.exhausted, 0);
    /* 30 s, 1, 2, 4 minutes, then every five for three hours */
    check(world.breaker_openings <= 4 + 180 / 5 + 1, "opened %lld times", (long long)world.breaker_openings);
    assert_int_equal(world.gate.breaker.saved.state, BREAKER_CLOSED);
    check((int64_t)world.jobs - world.completed <= 2 * OFFERED_A_SECOND, "%lld left", (long long)world.jobs - (long long)world.completed);
}

/* One failure an outage is free; after that those that nobody judged, until something goes well. */
static void what_a_failure_costs(void **state)
{
    (void)state;
    enum { BEGAN = 1000, NEVER = -1 };
    static const struct { const char *name; int64_t failed_at, good_at; bool away, used, spared; } cases[] = {
        { "its first", NEVER, NEVER, false, false, true },
        { "its first, and others go well", NEVER, 1500, false, false, true },
        { "it failed in an outage before", 999, NEVER, false, false, true },
        { "its second", 1000, NEVER, false, true, false },
        { "its second, and nobody is there", 1000, NEVER, true, true, true },
        { "but something went well before it", 1600, 1500, true, true, true },
        { "something went well since", 1500, 1600, true, true, false },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct outage outage;
        instant failed_at = cases[i].failed_at == NEVER ? INSTANT_NONE : cases[i].failed_at;
        outage_init(&outage);
        outage_holds(&outage, 0, BEGAN);
        if (cases[i].good_at != NEVER)
            outage_went_well(&outage, cases[i].good_at);
        check(outage_used(&outage, failed_at) == cases[i].used, "%s", cases[i].name);
        check(outage_spares(&outage, failed_at, cases[i].away) == cases[i].spared, "%s", cases[i].name);
    }
}

/* What comes back soon is the same outage, with what is used up in it. */
static void a_relapse_is_no_new_outage(void **state)
{
    (void)state;
    struct outage outage;
    outage_init(&outage);
    assert_false(outage_lasts(&outage) || outage_used(&outage, 5));
    outage_ends(&outage, 900);
    outage_holds(&outage, 100, 1000);
    outage_holds(&outage, 100, 1100);
    assert_int_equal(outage.since, 1000);
    outage_ends(&outage, 2000);
    assert_false(outage_lasts(&outage) || outage_used(&outage, 1500));
    outage_went_well(&outage, 2050); /* of none */
    outage_holds(&outage, 100, 2099);
    assert_true(outage.since == 1000 && outage.good_at == INSTANT_NONE && outage_used(&outage, 1500));
    outage_ends(&outage, 3000);
    outage_holds(&outage, 100, 3100);
    assert_true(outage.since == 3100 && !outage_used(&outage, 1500));
    assert_int_equal(looks_soon_ms(MINUTE_MS), 6000);
    assert_int_equal(looks_soon_ms(2000), 1000);
    assert_int_equal(looks_soon_ms(500), 500);
}

/* So much of a job's time was not its own. */
static void how_long_it_lasted(void **state)
{
    (void)state;
    static const struct { const char *name; instant since, ended, from, now; int64_t ms; } cases[] = {
        { "there was none", INSTANT_NONE, INSTANT_NONE, 500, 2000, 0 },
        { "the job was never sent", 1000, 1500, INSTANT_NONE, 2000, 0 },
        { "all of it is since then", 1000, 1500, 500, 2000, 500 },
        { "a part is", 1000, 1500, 1200, 2000, 300 },
        { "it was over by then", 1000, 1500, 1600, 2000, 0 },
        { "it lasts", 1000, INSTANT_NONE, 500, 2000, 1000 },
        { "it lasts longer than the job", 1000, INSTANT_NONE, 1700, 2000, 300 },
        { "the clock went back", 1000, 3000, 500, 2000, 1000 },
        { "the clock went back before it", 1000, INSTANT_NONE, 500, 900, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct outage outage;
        outage_init(&outage);
        if (cases[i].since != INSTANT_NONE)
            outage_holds(&outage, 0, cases[i].since);
        if (cases[i].ended != INSTANT_NONE)
            outage_ends(&outage, cases[i].ended);
        int64_t ms = outage_lasted_ms(&outage, cases[i].from, cases[i].now);
        check(ms == cases[i].ms, "%s: %lld", cases[i].name, (long long)ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_failure_costs),
        cmocka_unit_test(a_relapse_is_no_new_outage),
        cmocka_unit_test(how_long_it_lasted),
        cmocka_unit_test(an_outage_of_three_hours),
        cmocka_unit_test(a_breaker_alone_spends_no_tries_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
