/*
 * Who else waits: one destination that keeps the writer, or a batch, busy costs itself and nobody else.
 */
#include "engine/pull.h"
#include "support/check.h"
#include "support/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_workers_hold_up_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
