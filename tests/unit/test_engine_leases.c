/*
 * Leases that end without a word to the engine that gave them: their slots come back when their time is over.
 */
#include "engine/loop.h"
#include "engine/pull.h"
#include "engine/status.h"
#include "support/check.h"
#include "support/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { LEASE_MS = 30 * 1000, SEEN_MS = 10 * 1000, LEASES = 200, READ_MS = 700 };

#define PULL "destinations: { d: { transport: pull, concurrency: 2 } }\n"

struct taken {
    struct stage *stage;
    struct lease_request request;
    const struct job *jobs;
    size_t count;
};

static void on_leased(struct lease_request *request, enum status status, const struct job *jobs, size_t count)
{
    struct taken *taken = request->context;
    assert_int_equal(status, STATUS_OK);
    taken->jobs = jobs;
    taken->count = count;
}

/* Of so many jobs, all. */
static void take(struct stage *stage, size_t count, struct taken *taken)
{
    for (size_t i = 0; i < count; i++) {
        char id[32];
        snprintf(id, sizeof id, "j%zu", i);
        stage_add(stage, "d", "t", id, "x");
    }
    stage_run_for(stage, 1000);
    *taken = (struct taken){ .stage = stage };
    taken->request = (struct lease_request){ .destination = SLICE("d"), .worker = SLICE("w"), .max = count, .lease_ms = LEASE_MS,
                                             .wait_until = stage->now, .done = on_leased, .context = taken };
    engine_lease(stage->engine, &taken->request);
    stage_settle(stage);
    assert_int_equal(taken->count, count);
    assert_int_equal(status_of(stage).under_way, count);
}

/* As at another node: the store has it, and nobody tells the engine. */
static void acknowledge(const struct taken *taken, size_t number)
{
    const struct job *job = &taken->jobs[number];
    stage_apply(taken->stage, &(struct store_op){ .kind = OP_SETTLE,
                                                  .settle = { .seq = job->seq, .token = job->lease_token, .event = EVENT_DELIVER,
                                                              .outcome = OUTCOME_DELIVERED, .run_at = INSTANT_NONE,
                                                              .forget_at = INSTANT_NONE } });
}

static void prolong(const struct taken *taken, size_t number, int64_t ms)
{
    const struct job *job = &taken->jobs[number];
    stage_apply(taken->stage, &(struct store_op){ .kind = OP_EXTEND, .extend = { .seq = job->seq, .token = job->lease_token,
                                                                                 .lease_until = taken->stage->now + ms } });
}

static int64_t takes_a_while(struct stage *stage, enum status *fails)
{
    (void)stage;
    (void)fails;
    return READ_MS;
}

/* The first time that it is asked after the leases' end. */
static int64_t fails_once(struct stage *stage, enum status *fails)
{
    bool *failed = stage->context;
    bool now = !*failed && stage->now >= began + LEASE_MS;
    *fails = now ? STATUS_IO : STATUS_OK;
    *failed = *failed || now;
    return 0;
}

static void an_unheard_acknowledgement_frees_its_slot(void **state)
{
    int64_t (*const readings[])(struct stage *, enum status *) = { NULL, takes_a_while, fails_once };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(readings); i++) {
        bool failed = false;
        struct stage stage = { .reading = readings[i], .context = &failed };
        struct taken taken;
        stage_begin(&stage, PULL, began);
        take(&stage, LEASES, &taken);
        for (size_t k = 0; k < LEASES; k++)
            acknowledge(&taken, k);
        stage_run_for(&stage, LEASE_MS - 1000);
        assert_int_equal(status_of(&stage).under_way, LEASES);
        stage_run_for(&stage, SEEN_MS + 1000);
        check(status_of(&stage).under_way == 0, "%zu: %d under way", i, (int)status_of(&stage).under_way);
        assert_int_equal(failed, readings[i] == fails_once);
        lease_release(&taken.request);
        stage_end(&stage);
    }
}

/* Nor is it lost that a worker has prolonged what it has, and says so at the end. */
static void a_prolonged_lease_is_held(void **state)
{
    struct stage stage = { 0 };
    struct taken taken;
    (void)state;
    stage_begin(&stage, PULL, began);
    take(&stage, 2, &taken);
    prolong(&taken, 0, 10 * LEASE_MS);
    prolong(&taken, 1, 10 * LEASE_MS);
    stage_run_for(&stage, 9 * LEASE_MS);
    assert_int_equal(status_of(&stage).under_way, 2);
    acknowledge(&taken, 0);
    engine_acked(stage.engine, taken.jobs[0].seq, taken.jobs[0].lease_token);
    assert_int_equal(status_of(&stage).under_way, 1);
    stage_run_for(&stage, LEASE_MS + SEEN_MS); /* the other is in doubt, as ever */
    assert_int_equal(status_of(&stage).under_way, 0);
    assert_true(slice_equal(stage_job(&stage, "t", "j1").last_code, SLICE("insist:lease_expired")));
    lease_release(&taken.request);
    stage_end(&stage);
}

/* Whoever ended it in that moment says so a moment later: the gate hears that it went well, and not that nothing is known. */
static void an_acknowledgement_on_its_way_is_heard(void **state)
{
    struct stage stage = { 0 };
    struct taken taken;
    (void)state;
    stage_begin(&stage, PULL, began);
    take(&stage, 1, &taken);
    prolong(&taken, 0, 10 * LEASE_MS);
    stage_run_for(&stage, LEASE_MS - 1000);
    acknowledge(&taken, 0);
    stage_run_for(&stage, 1500);
    assert_int_equal(status_of(&stage).under_way, 1);
    engine_acked(stage.engine, taken.jobs[0].seq, taken.jobs[0].lease_token);
    assert_int_equal(status_of(&stage).under_way, 0);
    lease_release(&taken.request);
    stage_end(&stage);
}

static int64_t slots_of_tenants(const struct stage *stage)
{
    return dest_find(stage->engine, SLICE("d"))->queue.shares.sides[SIDE_FIRST].held;
}

/* One that a process of before gave counts in its tenant's share, until its time is over. */
static void one_of_before_a_crash_frees_its_share(void **state)
{
    struct stage stage = { 0 };
    struct taken taken;
    (void)state;
    stage_begin(&stage, PULL, began);
    take(&stage, 1, &taken);
    const struct job job = taken.jobs[0]; /* its numbers */
    lease_release(&taken.request);
    stage_crash(&stage);
    assert_int_equal(slots_of_tenants(&stage), 1);
    taken.jobs = &job;
    acknowledge(&taken, 0);
    stage_run_for(&stage, LEASE_MS + SEEN_MS);
    assert_int_equal(slots_of_tenants(&stage), 0);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unheard_acknowledgement_frees_its_slot),
        cmocka_unit_test(a_prolonged_lease_is_held),
        cmocka_unit_test(an_acknowledgement_on_its_way_is_heard),
        cmocka_unit_test(one_of_before_a_crash_frees_its_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
