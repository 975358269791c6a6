/* Claims for pull workers that come back with less than was asked for: what is given back, and who still waits. */
#include "base/log.h"
#include "engine/pull.h"
#include "support/check.h"
#include "support/engine_fixture.h"

#include <string.h>

#define PULL "destinations: { d: { transport: pull, concurrency: { max: 4, adaptive: false } } }\n"

struct worker {
    struct stage *stage;
    struct lease_request request;
    bool asking;
    enum status status;
    const struct job *jobs;
    size_t count;
};

static void on_leased(struct lease_request *request, enum status status, const struct job *jobs, size_t count)
{
    struct worker *worker = request->context;
    worker->asking = false;
    worker->status = status;
    worker->jobs = jobs;
    worker->count = count;
}

static void ask(struct worker *worker, size_t max, int64_t wait_ms)
{
    worker->request = (struct lease_request){ .destination = SLICE("d"), .worker = SLICE("w"), .max = max,
                                              .lease_ms = 30 * 1000, .wait_until = worker->stage->now + wait_ms,
                                              .done = on_leased, .context = worker };
    worker->asking = true;
    engine_lease(worker->stage->engine, &worker->request);
}

static void done(struct worker *worker)
{
    for (size_t i = 0; i < worker->count; i++) {
        const struct job *job = &worker->jobs[i];
        const struct store_op op = { .kind = OP_SETTLE,
                                     .settle = { .seq = job->seq, .token = job->lease_token, .event = EVENT_DELIVER,
                                                 .outcome = OUTCOME_DELIVERED, .run_at = INSTANT_NONE,
                                                 .forget_at = INSTANT_NONE } };
        stage_apply(worker->stage, &op);
        engine_acked(worker->stage->engine, job->seq, job->lease_token);
    }
    lease_release(&worker->request);
    worker->count = 0;
    stage_settle(worker->stage);
}

static void refuse(struct worker *worker, int times)
{
    for (int i = 0; i < times; i++) {
        worker->stage->fail_applies = true;
        ask(worker, 4, 0);
        stage_settle(worker->stage);
        assert_false(worker->asking);
        assert_int_not_equal(worker->status, STATUS_OK);
        done(worker);
        worker->stage->fail_applies = false;
        stage_run_for(worker->stage, 5 * SECOND_MS);
    }
}

/* The store was full for a moment: what nobody got is there for who asks next. */
static void what_was_refused_is_there_for_the_next(void **state)
{
    struct stage stage = { .destination = delivers };
    struct worker worker = { .stage = &stage };
    (void)state;
    stage_begin(&stage, PULL, began);
    for (int i = 0; i < 4; i++)
        stage_add(&stage, "d", "A", NULL, "x");
    stage_run_for(&stage, SECOND_MS);
    refuse(&worker, 1);
    ask(&worker, 4, 0);
    stage_settle(&stage);
    assert_int_equal(worker.status, STATUS_OK);
    assert_int_equal(worker.count, 4);
    done(&worker);
    stage_end(&stage);
}

/* Nor does it cost its tenant's share of the slots. */
static void what_was_refused_costs_no_share(void **state)
{
    struct stage stage = { .destination = delivers };
    struct worker worker = { .stage = &stage };
    int of_a = 0, of_b = 0;
    (void)state;
    stage_begin(&stage, PULL, began);
    for (int i = 0; i < 40; i++)
        stage_add(&stage, "d", "A", NULL, "x");
    stage_run_for(&stage, SECOND_MS);
    refuse(&worker, 5);
    for (int i = 0; i < 40; i++)
        stage_add(&stage, "d", "B", NULL, "x");
    stage_run_for(&stage, SECOND_MS);
    for (int round = 0; round < 8; round++) {
        ask(&worker, 4, 0);
        stage_settle(&stage);
        assert_int_equal(worker.count, 4);
        for (size_t i = 0; i < worker.count; i++)
            ++*(slice_equal(worker.jobs[i].tenant, SLICE("A")) ? &of_a : &of_b);
        done(&worker);
    }
    check(of_a >= 12 && of_b >= 12, "%d of A, %d of B", of_a, of_b);
    stage_end(&stage);
}

/* Its claim was on its way when the destination went to another node: it is answered at once, and asks there. */
static void nobody_waits_where_the_destination_is_no_more(void **state)
{
    struct stage stage = { .destination = delivers, .shared = true };
    struct worker worker = { .stage = &stage };
    (void)state;
    stage_begin(&stage, PULL, began);
    assert_int_equal(stage_gain(&stage, "d"), STATUS_OK);
    for (int i = 0; i < 4; i++)
        stage_add(&stage, "d", "A", NULL, "x");
    stage_run_for(&stage, SECOND_MS);
    stage.commit_ms = 100;
    ask(&worker, 4, 10 * MINUTE_MS);
    engine_run(stage.engine);
    assert_non_null(stage.batches);
    instant asked = stage.now;
    assert_int_equal(stage_lose(&stage, "d"), STATUS_OK);
    assert_false(worker.asking);
    assert_true(stage.now < asked + MINUTE_MS);
    assert_int_equal(worker.count, 0);
    done(&worker);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_refused_is_there_for_the_next),
        cmocka_unit_test(what_was_refused_costs_no_share),
        cmocka_unit_test(nobody_waits_where_the_destination_is_no_more),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
