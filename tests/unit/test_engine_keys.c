/*
 * Jobs of one key in the real engine, in virtual time: of a tenant's jobs with the same one only one is under way, those that came first go
 * first, all of them end, and whoever has another key, or none, does not wait for them.
 */
#include "engine/loop.h"
#include "support/check.h"
#include "support/stage.h"

#include "core/decision/job.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const instant began = INT64_C(1736678400000);

enum { JOBS = 90, TENANTS = 2, KEYS = 3, NAME_BYTES = 16, TIMES = 40, BUSY_JOBS = 3000, OTHER_JOBS = 60, TAKES_MS = 100 };

/* How often, or how many: more in the trials. */
static int from_environment(const char *name, int usual)
{
    const char *text = getenv(name);
    return text ? atoi(text) : usual;
}

struct keyed {
    char id[NAME_BYTES], key[NAME_BYTES];
    int tenant;
    bool under_way, redriven;
};

struct world {
    struct stage stage;
    struct random random;
    uint64_t seed;
    struct keyed jobs[JOBS];
    int count;
};

static const char *const tenants[TENANTS] = { "a", "b" };

static struct keyed *job_of(struct world *world, struct slice id)
{
    for (int i = 0; i < world->count; i++)
        if (slice_equal(slice_from(world->jobs[i].id), id))
            return &world->jobs[i];
    fail_msg("seed %llu: no such job", (unsigned long long)world->seed);
    return NULL;
}

static bool is_open(struct world *world, const struct keyed *job)
{
    enum job_state state = stage_job(&world->stage, tenants[job->tenant], job->id).state;
    return state == STATE_PENDING || state == STATE_RUNNING || state == STATE_WAITING;
}

static bool same_key(const struct keyed *one, const struct keyed *other)
{
    return one->tenant == other->tenant && one->key[0] && strcmp(one->key, other->key) == 0;
}

static void check_turn(struct world *world, const struct keyed *job)
{
    for (int i = 0; i < world->count; i++) {
        const struct keyed *other = &world->jobs[i];
        if (other == job || !same_key(job, other))
            continue;
        check(!other->under_way, "seed %llu: %s and %s of one key are under way", (unsigned long long)world->seed, job->id, other->id);
        check(other > job || other->redriven || !is_open(world, other), "seed %llu: %s goes before %s, which came first",
              (unsigned long long)world->seed, job->id, other->id);
    }
}

static int64_t answers_as_drawn(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct world *world = stage->context;
    struct keyed *job = job_of(world, send->job->id);
    check(!job->under_way, "seed %llu: %s is sent twice", (unsigned long long)world->seed, job->id);
    check_turn(world, job);
    job->under_way = true;
    size_t drawn = random_below(&world->random, 10);
    if (drawn < 5) {
        answer->outcome = OUTCOME_DELIVERED;
    } else if (drawn < 7) {
        answer->code = SLICE("http:422");
        answer->text = SLICE("HTTP 422: never");
    } else {
        answer->code = SLICE("http:503");
        answer->text = SLICE("HTTP 503: not now");
    }
    return 1 + (int64_t)random_below(&world->random, 3000);
}

/* Whatever was told of the end of an attempt, it is not under way any more. */
static void attempts_end(struct stage *stage, const struct store_op *ops, size_t count)
{
    struct world *world = stage->context;
    for (size_t i = 0; i < count; i++)
        for (int j = 0; ops[i].kind == OP_SETTLE && j < world->count; j++)
            if (stage_job(stage, tenants[world->jobs[j].tenant], world->jobs[j].id).seq == ops[i].settle.seq)
                world->jobs[j].under_way = false;
}

static void add(struct world *world)
{
    struct keyed *job = &world->jobs[world->count++];
    size_t key = random_below(&world->random, KEYS + 1);
    *job = (struct keyed){ .tenant = (int)random_below(&world->random, TENANTS) };
    snprintf(job->id, sizeof job->id, "j%d", world->count);
    if (key < KEYS)
        snprintf(job->key, sizeof job->key, "k%zu", key);
    instant now = world->stage.now;
    bool late = random_below(&world->random, 6) == 0;
    stage_apply(&world->stage, &(struct store_op){
        .kind = OP_INSERT,
        .insert = { .destination = SLICE("d"), .tenant = slice_from(tenants[job->tenant]), .id = slice_from(job->id),
                    .priority = PRIORITY_NORMAL, .rank = now - (int64_t)random_below(&world->random, HOUR_MS), /* whatever its rank */
                    .run_at = late ? now + (int64_t)random_below(&world->random, 10 * SECOND_MS) : now,
                    .deadline = random_below(&world->random, 8) == 0 ? now + MINUTE_MS : INSTANT_NONE, .payload = SLICE("x"),
                    .key = slice_from(job->key) } });
}

/* One that has the state for it. */
static void operate(struct world *world)
{
    struct keyed *job = &world->jobs[random_below(&world->random, (size_t)world->count)];
    enum job_state state = stage_job(&world->stage, tenants[job->tenant], job->id).state;
    bool dead = state == STATE_DEAD;
    if (!dead && state != STATE_PENDING && state != STATE_WAITING)
        return;
    job->redriven = job->redriven || dead;
    stage_apply(&world->stage, &(struct store_op){
        .kind = dead ? OP_REDRIVE : OP_CANCEL, .data = SLICE(""),
        .job = { .tenant = slice_from(tenants[job->tenant]), .id = slice_from(job->id), .payload = SLICE(""),
                 .forget_at = INSTANT_NONE } });
}

static void crash(struct world *world)
{
    stage_crash(&world->stage);
    for (int i = 0; i < world->count; i++)
        world->jobs[i].under_way = false;
}

static void play(uint64_t seed)
{
    static struct world world;
    world = (struct world){ .seed = seed };
    world.random = (struct random){ seed };
    world.stage.destination = answers_as_drawn;
    world.stage.context = &world;
    stage_begin(&world.stage, "destinations: { d: { preset: http, url: 'https://a.example/', concurrency: 8, "
                              "breaker: { failure_rate: 1 }, retry: { max_retries: 2, base: 1s, floor: 1s, cap: 5s } } }\n", began);
    world.stage.applied = attempts_end;
    while (world.count < JOBS) {
        add(&world);
        size_t drawn = random_below(&world.random, 30);
        if (drawn == 0)
            crash(&world);
        else if (drawn < 5)
            operate(&world);
        else if (drawn < 15)
            stage_run_for(&world.stage, (int64_t)random_below(&world.random, 2000));
    }
    stage_run_for(&world.stage, 2 * HOUR_MS);
    for (int i = 0; i < world.count; i++)
        check(!is_open(&world, &world.jobs[i]), "seed %llu: %s never ends", (unsigned long long)seed, world.jobs[i].id);
    stage_end(&world.stage);
}

static void of_one_key_one_is_under_way_in_order(void **state)
{
    (void)state;
    int times = from_environment("INSIST_KEY_WORLDS", TIMES);
    for (int seed = 1; seed <= times; seed++)
        play((uint64_t)seed);
}

/* ---- who else waits ---- */

struct crowd {
    bool busy_waits; /* the first of the busy key fails, and waits for an hour */
    int left[TENANTS]; /* of the others */
    instant done[TENANTS];
};

static int64_t answers_the_crowd(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct crowd *crowd = stage->context;
    bool busy = slice_equal(send->job->key, SLICE("busy"));
    if (busy && crowd->busy_waits) {
        answer->code = SLICE("http:503");
        answer->text = SLICE("HTTP 503: not now");
        answer->retry_after_ms = HOUR_MS;
        answer->outcome = OUTCOME_NONE;
        return TAKES_MS;
    }
    answer->outcome = OUTCOME_DELIVERED;
    int tenant = slice_equal(send->job->tenant, slice_from(tenants[1]));
    if (!busy && --crowd->left[tenant] == 0)
        crowd->done[tenant] = stage->now + TAKES_MS - began;
    return TAKES_MS;
}

static void add_to_crowd(struct stage *stage, const char *tenant, const char *key, int count)
{
    for (int i = 0; i < count; i++)
        stage_apply(stage, &(struct store_op){
            .kind = OP_INSERT,
            .insert = { .destination = SLICE("d"), .tenant = slice_from(tenant), .id = SLICE(""), .priority = PRIORITY_NORMAL,
                        .rank = rank_of(PRIORITY_NORMAL, stage->now, HOUR_MS), .run_at = stage->now, .deadline = INSTANT_NONE,
                        .payload = SLICE("x"), .key = slice_from(key) } });
}

/* When the last of the others is done: half of them are of the busy key's tenant. */
static struct crowd play_crowd(int busy, bool busy_waits)
{
    struct crowd crowd = { .busy_waits = busy_waits, .left = { OTHER_JOBS / 2, OTHER_JOBS / 2 } };
    struct stage stage = { .destination = answers_the_crowd, .context = &crowd };
    stage_begin(&stage, "destinations: { d: { preset: http, url: 'https://a.example/', concurrency: { max: 6, adaptive: false }, "
                        "retry: { max_retries: 5, base: 1h, floor: 1h, cap: 5h } } }\n", began);
    add_to_crowd(&stage, tenants[0], "busy", busy);
    add_to_crowd(&stage, tenants[0], "", OTHER_JOBS / 2);
    add_to_crowd(&stage, tenants[1], "", OTHER_JOBS / 2);
    stage_run_for(&stage, MINUTE_MS);
    for (int tenant = 0; tenant < TENANTS; tenant++)
        check(crowd.left[tenant] == 0, "%d of tenant %s are left after a minute", crowd.left[tenant], tenants[tenant]);
    stage_end(&stage);
    return crowd;
}

/* They have one slot, of those that are their tenant's share. */
static void many_of_one_key_hold_up_nobody(void **state)
{
    (void)state;
    int busy = from_environment("INSIST_KEYED_JOBS", BUSY_JOBS);
    struct crowd alone = play_crowd(0, false), beside = play_crowd(busy, false);
    struct crowd waiting_one = play_crowd(1, true), waiting = play_crowd(busy, true);
    print_message("# alone %lld and %lld ms, beside %d of one key %lld and %lld ms\n", (long long)alone.done[0], (long long)alone.done[1],
                  busy, (long long)beside.done[0], (long long)beside.done[1]);
    check(beside.done[1] <= alone.done[1], "another tenant waits for them: %lld ms", (long long)beside.done[1]);
    check(beside.done[0] <= alone.done[0] * 3 / 2 + TAKES_MS, "two of their tenant's three slots are for its others: %lld ms",
          (long long)beside.done[0]);
    for (int tenant = 0; tenant < TENANTS; tenant++)
        check(waiting.done[tenant] == waiting_one.done[tenant], "a key that waits holds no slot, however many are behind it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_one_key_one_is_under_way_in_order),
        cmocka_unit_test(many_of_one_key_hold_up_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
