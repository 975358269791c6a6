/*
 * Who else waits: one destination that keeps the writer, or a batch, busy costs itself and nobody else.
 */
#include "engine/pull.h"
#include "support/check.h"
#include "support/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { WORKERS = 8, COMMIT_MS = 5 };

struct worker {
    struct lease_request request;
    bool asking;
};

static void on_leased(struct lease_request *request, enum status status, const struct job *jobs, size_t count)
{
    (void)jobs;
    (void)count;
    assert_int_equal(status, STATUS_OK);
    ((struct worker *)request->context)->asking = false;
}

static void ask_again(struct stage *stage, struct worker *worker)
{
    if (worker->asking)
        return;
    lease_release(&worker->request);
    worker->request = (struct lease_request){ .destination = SLICE("d"), .worker = SLICE("w"), .max = 1,
                                              .lease_ms = HOUR_MS, .wait_until = stage->now + MINUTE_MS,
                                              .done = on_leased, .context = worker };
    worker->asking = true;
    engine_lease(stage->engine, &worker->request);
}

/* Workers of a queue that never ends always have claims with the writer: the others' claims and settlements go beside them. */
static void busy_workers_hold_up_nobody(void **state)
{
    struct worker workers[WORKERS] = { 0 };
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage,
                "destinations: { d: { transport: pull }, e: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true } }\n",
                began);
    for (int i = 0; i < 1000; i++)
        stage_add(&stage, "d", "A", NULL, "x");
    stage_run_for(&stage, SECOND_MS);
    stage.commit_ms = COMMIT_MS;
    for (int i = 0; i < 3; i++)
        stage_add(&stage, "e", "E", NULL, "x");
    for (int i = 0; i < 1000; i++) {
        for (int k = 0; k < WORKERS; k++)
            ask_again(&stage, &workers[k]);
        stage_run_for(&stage, 1);
    }
    check(stage_counts(&stage, "e").completed == 3, "%d of 3 were delivered beside them",
          (int)stage_counts(&stage, "e").completed);
    stage_run_for(&stage, 2 * MINUTE_MS);
    for (int k = 0; k < WORKERS; k++)
        lease_release(&workers[k].request);
    stage_end(&stage);
}

static int64_t quick(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->outcome = OUTCOME_DELIVERED;
    answer->code = SLICE("http:200");
    return 1;
}

static void add_for_many_tenants(struct stage *stage, const char *destination)
{
    for (int i = 0; i < 40000; i++) {
        char tenant[16];
        snprintf(tenant, sizeof tenant, "t%d", i % 4000);
        stage_add(stage, destination, tenant, NULL, "x");
    }
}

/* One with thousands of tenants fills every batch with claims; whichever comes first in the engine's list. */
static void many_tenants_hold_up_no_other_destination(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        const char *many = order ? "a" : "b", *few = order ? "b" : "a";
        struct stage stage = { .destination = quick };
        stage_begin(&stage,
                    "destinations:\n"
                    "  a: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, concurrency: { max: 1000, adaptive: false } }\n"
                    "  b: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, concurrency: { max: 1000, adaptive: false } }\n",
                    began);
        add_for_many_tenants(&stage, many);
        stage.commit_ms = COMMIT_MS;
        stage_run_for(&stage, 500);
        stage_add(&stage, few, "E", "e1", "x");
        stage_add(&stage, few, "E", "e2", "x");
        stage_run_for(&stage, 100);
        check(stage_job(&stage, "E", "e1").state == STATE_COMPLETED && stage_job(&stage, "E", "e2").state == STATE_COMPLETED,
              "nothing was delivered at %s meanwhile", few);
        stage_end(&stage);
    }
}

struct caller {
    struct lease_request request;
    int got, empty;
};

static void on_answered(struct lease_request *request, enum status status, const struct job *jobs, size_t count)
{
    struct caller *caller = request->context;
    (void)jobs;
    assert_int_equal(status, STATUS_OK);
    *(count > 0 ? &caller->got : &caller->empty) += 1;
}

/* Nor the workers of another destination: one that does not wait is told of what there is. */
static void many_tenants_hold_up_no_worker(void **state)
{
    struct caller caller = { 0 };
    struct stage stage = { .destination = quick };
    (void)state;
    stage_begin(&stage,
                "destinations:\n"
                "  a: { transport: pull }\n"
                "  b: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, concurrency: { max: 1000, adaptive: false } }\n",
                began);
    add_for_many_tenants(&stage, "b");
    for (int i = 0; i < 1000; i++)
        stage_add(&stage, "a", "E", NULL, "x");
    stage.commit_ms = COMMIT_MS;
    stage_run_for(&stage, 4 * COMMIT_MS); /* it has begun */
    for (int i = 0; i < 100; i++) {
        caller.request = (struct lease_request){ .destination = SLICE("a"), .worker = SLICE("w"), .max = 1,
                                                 .lease_ms = HOUR_MS, .wait_until = stage.now,
                                                 .done = on_answered, .context = &caller };
        engine_lease(stage.engine, &caller.request);
        stage_run_for(&stage, 4 * COMMIT_MS);
        lease_release(&caller.request);
    }
    check(caller.got == 100, "of 100 calls %d got a job, %d got nothing, and 1000 were there", caller.got, caller.empty);
    stage_end(&stage);
}

static void call_for_one(struct stage *stage, struct caller *caller)
{
    caller->request = (struct lease_request){ .destination = SLICE("d"), .worker = SLICE("w"), .max = 1,
                                              .lease_ms = HOUR_MS, .wait_until = stage->now,
                                              .done = on_answered, .context = caller };
    engine_lease(stage->engine, &caller->request);
}

/*
 * A tenant that has more than its share is passed over while others have one job each: when these are gone, who called
 * together with those who got them gets one of it.
 */
static void who_calls_together_with_others_gets_what_is_left(void **state)
{
    enum { HELD = 10, OTHERS = 5, CALLS = HELD + OTHERS + 1 };
    struct caller callers[CALLS] = { 0 };
    struct stage stage = { .destination = quick };
    (void)state;
    stage_begin(&stage, "destinations: { d: { transport: pull, concurrency: { max: 100, adaptive: false } } }\n", began);
    for (int i = 0; i < 2 * HELD; i++)
        stage_add(&stage, "d", "A", NULL, "x");
    stage_run_for(&stage, SECOND_MS);
    for (int i = 0; i < HELD; i++) {
        call_for_one(&stage, &callers[i]);
        stage_run_for(&stage, SECOND_MS);
    }
    for (int i = 0; i < OTHERS; i++) {
        char tenant[16];
        snprintf(tenant, sizeof tenant, "t%d", i);
        stage_add(&stage, "d", tenant, NULL, "x");
    }
    stage_run_for(&stage, SECOND_MS);
    for (int i = HELD; i < CALLS; i++)
        call_for_one(&stage, &callers[i]);
    stage_run_for(&stage, SECOND_MS);
    for (int i = 0; i < CALLS; i++) {
        check(callers[i].got == 1, "call %d of %d got nothing", i + 1, CALLS);
        lease_release(&callers[i].request);
    }
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_workers_hold_up_nobody),
        cmocka_unit_test(many_tenants_hold_up_no_other_destination),
        cmocka_unit_test(many_tenants_hold_up_no_worker),
        cmocka_unit_test(who_calls_together_with_others_gets_what_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
