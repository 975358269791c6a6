/*
 * What the engine has claimed: how long, how much at once, what questions tell, and what a process that died leaves.
 */
#include "engine/orders.h"
#include "engine/status.h"
#include "support/configs.h"
#include "support/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TO(more) "destinations: { d: { preset: http, url: 'https://a.example/'" more " } }\n"

/* An answer that never comes while anybody looks. */
static int64_t hangs(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->outcome = OUTCOME_DELIVERED;
    return (int64_t)24 * 3600 * 1000;
}

/* An engine's lease is never over before its send can be: else it would be an orphan with an answer on the way. */
static void a_lease_covers_the_timeout(void **state)
{
    struct stage stage = { .destination = hangs };
    (void)state;
    stage_begin(&stage, TO(", timeout: 10m"), began);
    stage_add(&stage, "d", "t", "one", "x");
    stage_run_for(&stage, 100);
    struct job job = stage_job(&stage, "t", "one");
    assert_int_equal(job.state, STATE_RUNNING);
    assert_true(job.lease_until >= stage.now + 10 * 60 * 1000);
    stage_end(&stage);
}

/* The claim of a job is on its way to the store. */
static void begin_with_a_claim(struct stage *stage)
{
    stage_begin(stage, TO(""), began);
    stage_run_for(stage, 5000); /* what it does at its start is done */
    stage->commit_ms = 1000;
    stage_add(stage, "d", "t", "one", "x");
    stage_run_for(stage, 200);
    assert_true(stage->batches && stage->batches->ops[0].kind == OP_CLAIM);
}

static void check_nothing_is_sent(struct stage *stage)
{
    stage_run_for(stage, 60 * 1000);
    assert_int_equal(stage->send_count, 0);
    assert_int_equal(stage_job(stage, "t", "one").attempts, 0);
}

/* Who is paused while its claim is on its way to the store is not sent, and no attempt counts. */
static void a_tenant_that_is_paused_meanwhile_is_not_sent(void **state)
{
    struct stage stage = { .destination = delivers };
    struct error error;
    (void)state;
    begin_with_a_claim(&stage);
    assert_int_equal(stage_pause_tenant(&stage, SLICE("d"), SLICE("t"), SLICE("audit"), &error), STATUS_OK);
    check_nothing_is_sent(&stage);
    assert_int_equal(stage_resume_tenant(&stage, SLICE("d"), SLICE("t"), &error), STATUS_OK);
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 1);
    stage_end(&stage);
}

/* Nor is what a contingency found on its way to the store: it lost nothing, and goes when that is over. */
static void a_claim_of_before_a_contingency_does_not_go_into_it(void **state)
{
    struct stage stage = { .destination = delivers };
    struct error error;
    (void)state;
    begin_with_a_claim(&stage);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they called"), &error), STATUS_OK);
    check_nothing_is_sent(&stage);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &error), STATUS_OK);
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 1);
    stage_end(&stage);
}

/*
 * What a dead process has claimed is read in pages. Those of a destination that is configured no more stay as they are, more of
 * them than a page has, all with the same end of their lease: the page after them comes all the same.
 */
static void orphans_are_read_page_by_page(void **state)
{
    enum { GONE = 600 };
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, "destinations: { d: { preset: http, url: 'https://a.example/', in_doubt: park }, "
                        "gone: { preset: http, url: 'https://b.example/' } }\n", began);
    for (int i = 0; i < GONE; i++)
        stage_add(&stage, "gone", "t", NULL, "x");
    stage_add(&stage, "d", "t", "one", "x");
    struct store_op claims[] = {
        { .kind = OP_CLAIM, .claim = { .lane = 1, .max = GONE, .lease_until = began + (int64_t)24 * 3600 * 1000 } },
        { .kind = OP_CLAIM, .claim = { .lane = 2, .max = 1, .lease_until = began + (int64_t)25 * 3600 * 1000 } },
    };
    stage_apply(&stage, &claims[0]);
    stage_apply(&stage, &claims[1]);
    config_unref(stage.config);
    stage.config = config_from(SLICE("destinations: { d: { preset: http, url: 'https://a.example/', in_doubt: park } }\n"), "test.yaml");
    stage_crash(&stage);
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage_counts(&stage, "gone").running, GONE);
    assert_int_equal(stage_job(&stage, "t", "one").state, STATE_DEAD);
    stage_end(&stage);
}

/* One claim takes so many bytes of payloads; what it leaves is claimed by the next, without a restart. */
static void large_payloads_are_claimed_in_parts(void **state)
{
    enum { BYTES = 6 << 20, JOBS = 12 };
    struct stage stage = { .destination = delivers };
    char *payload = malloc(BYTES + 1);
    (void)state;
    assert_non_null(payload);
    memset(payload, 'x', BYTES);
    payload[BYTES] = '\0';
    stage_begin(&stage, TO(", concurrency: { max: 12, adaptive: false }"), began);
    for (int i = 0; i < JOBS; i++)
        stage_add(&stage, "d", "t", NULL, payload);
    stage_run_for(&stage, 10 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, JOBS);
    stage_end(&stage);
    free(payload);
}

/* Takes every send, to be judged later, and never says how. */
static int64_t never_says(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    if (send->job->step == STEP_SEND) {
        answer->outcome = OUTCOME_ACCEPTED;
    } else {
        answer->query = QUERY_UNCLEAR;
        answer->text = SLICE("HTTP 500: what");
        answer->code = SLICE("http:500");
    }
    return 20;
}

/* Questions that nobody answers speak against the destination, as sends would. */
static void unclear_answers_open_the_breaker(void **state)
{
    struct stage stage = { .destination = never_says };
    (void)state;
    stage_begin(&stage, TO(", poll: { url: 'https://a.example/{id}', after: 1s, every: 1s, times: 20 }, "
                                   "breaker: { window: 1h, min_calls: 8, failure_rate: 0.5, open: 1h, open_max: 1h }"), began);
    for (int i = 0; i < 4; i++)
        stage_add(&stage, "d", i % 2 ? "t" : "u", NULL, "x");
    stage_run_for(&stage, 10 * 1000);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).breaker, "open");
    stage_end(&stage);
}

/* Jobs that a process which died had claimed. */
static void leave_orphans(struct stage *stage, const char *destination, int count, instant lease_until)
{
    for (int i = 0; i < count; i++) {
        struct arena memory;
        struct error error;
        arena_init(&memory, 1 << 20);
        struct store_op insert = { .kind = OP_INSERT,
                                   .insert = { .destination = slice_from(destination), .tenant = SLICE("t"), .id = SLICE(""),
                                               .priority = PRIORITY_NORMAL, .rank = stage->now, .run_at = stage->now,
                                               .deadline = INSTANT_NONE, .payload = SLICE("x") } };
        assert_int_equal(stage->store->ops->apply(stage->store, stage->now, &insert, 1, &memory, &error), STATUS_OK);
        struct store_op claim = { .kind = OP_CLAIM,
                                  .claim = { .lane = insert.insert.ret_lane, .max = 1, .lease_until = lease_until } };
        assert_int_equal(stage->store->ops->apply(stage->store, stage->now, &claim, 1, &memory, &error), STATUS_OK);
        assert_int_equal(claim.claim.ret_count, 1);
        arena_release(&memory);
    }
}

/* A page full of attempts that nobody can judge, because their destination is gone, does not end the search. */
static void recovery_goes_through_all(void **state)
{
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, TO(", in_doubt: park"), began);
    leave_orphans(&stage, "gone", 600, began + 60 * 1000);
    leave_orphans(&stage, "d", 5, began + 120 * 1000);
    stage_crash(&stage);
    stage_run_for(&stage, 2000); /* long before a lease ends */
    assert_int_equal(stage_counts(&stage, "d").running, 0);
    assert_int_equal(stage_counts(&stage, "d").dead, 5);
    assert_int_equal(stage_counts(&stage, "gone").running, 600);
    stage_add(&stage, "d", "t", "new", "x");
    stage_run_for(&stage, 2000);
    assert_int_equal(stage_counts(&stage, "d").completed, 1);
    stage_end(&stage);
}

static void count_found(struct stage *stage, const struct store_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ops[i].kind == OP_ORPHANS)
            *(size_t *)stage->context += ops[i].orphans.ret_count;
}

/* What nobody can judge is not read again with every look for lost leases, before all that could be judged. */
static void what_nobody_can_judge_is_seldom_looked_at(void **state)
{
    enum { GONE = 5, MINUTES = 20 };
    size_t found = 0;
    struct stage stage = { .destination = delivers, .context = &found };
    (void)state;
    stage_begin(&stage, TO(", in_doubt: park"), began);
    leave_orphans(&stage, "gone", GONE, began + 60 * 1000);
    stage_crash(&stage);
    stage.applied = count_found;
    stage_run_for(&stage, MINUTES * MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "gone").running, GONE);
    assert_in_range(found, GONE, (MINUTES / 5 + 2) * GONE);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_can_judge_is_seldom_looked_at),
        cmocka_unit_test(a_lease_covers_the_timeout),
        cmocka_unit_test(a_tenant_that_is_paused_meanwhile_is_not_sent),
        cmocka_unit_test(a_claim_of_before_a_contingency_does_not_go_into_it),
        cmocka_unit_test(orphans_are_read_page_by_page),
        cmocka_unit_test(large_payloads_are_claimed_in_parts),
        cmocka_unit_test(unclear_answers_open_the_breaker),
        cmocka_unit_test(recovery_goes_through_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
