/* Jobs of one key: one at a time, in order of acceptance, and in nobody's way. */
#include "support/store_cases.h"

#include <stdlib.h>

static int64_t put_keyed(struct store_fixture *f, const char *id, const char *key)
{
    struct store_op op = insert_op(f, "d", "t", id);
    op.insert.key = slice_from(key);
    op.insert.callback = SLICE("{\"destination\":\"d\"}");
    assert_run(f, &op, STATUS_OK);
    return op.insert.ret_lane;
}

static struct store_op settle_as(struct store_fixture *f, const struct job *job, enum job_event event)
{
    struct store_op op = settle_op(job, event);
    assert_run(f, &op, STATUS_OK);
    return op;
}

static void one_goes_at_a_time_in_order_of_acceptance(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = 0;
    for (int i = 0; i < 4; i++) {
        struct store_op op = insert_op(f, "d", "t", (const char *const[]){ "a", "b", "c", "d" }[i]);
        op.insert.key = SLICE("order-1");
        op.insert.rank = -i; /* those that came later would be first */
        assert_run(f, &op, STATUS_OK);
        assert_int_equal(op.insert.ret_behind, i > 0);
        lane = op.insert.ret_lane;
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ready_in(f, lane), 1);
        struct job job = take(f, lane);
        assert_int_equal(job.id.data[0], 'a' + i);
        assert_text(job.key, "order-1");
        assert_false(job.gap);
        assert_int_equal(ready_in(f, lane), 0);
        struct store_op op = settle_as(f, &job, EVENT_DELIVER);
        assert_int_equal(op.ret_released.ready, i < 3);
    }
    assert_text(read_job(f, "t", "b").key, "order-1");
}

static void one_that_waits_for_its_next_try_is_waited_for(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put_keyed(f, "a", "k");
    put_keyed(f, "b", "k");
    struct job job = take(f, lane);
    struct store_op op = settle_op(&job, EVENT_RETRY);
    op.settle.run_at = f->now + 100;
    assert_run(f, &op, STATUS_OK);
    assert_false(op.ret_released.ready);
    assert_int_equal(ready_in(f, lane), 0); /* and holds no slot */
    f->now += 100;
    assert_int_equal(promote(f).ret_promoted, 1);
    assert_text(take(f, lane).id, "a");
}

static void a_dead_one_lets_the_next_go_marked(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put_keyed(f, "a", "k");
    put_keyed(f, "b", "k");
    put_keyed(f, "c", "k");
    struct job job = take(f, lane);
    settle_as(f, &job, EVENT_GIVE_UP);
    job = take(f, lane);
    assert_text(job.id, "b");
    assert_true(job.gap);
    settle_as(f, &job, EVENT_DELIVER);
    job = take(f, lane);
    assert_text(job.id, "c");
    assert_false(job.gap);
    assert_true(read_job(f, "t", "b").gap);
    assert_text(job.callback, "{\"destination\":\"d\"}");
    assert_text(read_job(f, "t", "b").callback, "{\"destination\":\"d\"}");
}

static void one_cancelled_on_its_way_leaves_a_gap(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put_keyed(f, "a", "k");
    put_keyed(f, "b", "k");
    put_keyed(f, "c", "k");
    struct store_op op = job_op(OP_CANCEL, "t", "b");
    assert_run(f, &op, STATUS_OK);
    assert_false(op.ret_released.ready); /* it was not its turn */
    op = job_op(OP_CANCEL, "t", "a");
    assert_run(f, &op, STATUS_OK);
    assert_true(op.ret_released.ready);
    struct job job = take(f, lane);
    assert_text(job.id, "c");
    assert_true(job.gap);
}

static void a_redriven_one_waits_for_the_one_under_way(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put_keyed(f, "a", "k");
    put_keyed(f, "b", "k");
    put_keyed(f, "c", "k");
    struct job a = take(f, lane);
    settle_as(f, &a, EVENT_GIVE_UP);
    struct job b = take(f, lane);
    struct store_op op = job_op(OP_REDRIVE, "t", "a");
    assert_run(f, &op, STATUS_OK);
    assert_true(op.job.ret_behind);
    assert_int_equal(ready_in(f, lane), 0);
    settle_as(f, &b, EVENT_DELIVER);
    a = take(f, lane);
    assert_text(a.id, "a"); /* it came before c */
    settle_as(f, &a, EVENT_DELIVER);
    assert_text(take(f, lane).id, "c");
}

static void a_redriven_one_goes_at_once_when_none_is_under_way(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put_keyed(f, "a", "k");
    struct job a = take(f, lane);
    settle_as(f, &a, EVENT_GIVE_UP);
    struct store_op op = job_op(OP_REDRIVE, "t", "a");
    assert_run(f, &op, STATUS_OK);
    assert_false(op.job.ret_behind);
    assert_text(take(f, lane).id, "a");
}

static void one_that_expires_lets_the_next_go(void **state)
{
    struct store_fixture *f = *state;
    struct store_op op = insert_op(f, "d", "t", "a");
    op.insert.key = SLICE("k");
    op.insert.deadline = f->now + 10;
    assert_run(f, &op, STATUS_OK);
    int64_t lane = op.insert.ret_lane;
    op = insert_op(f, "d", "t", "b");
    op.insert.key = SLICE("k");
    op.insert.deadline = f->now + 10; /* behind, it expires all the same */
    assert_run(f, &op, STATUS_OK);
    op = insert_op(f, "d", "t", "c");
    op.insert.key = SLICE("k");
    op.insert.run_at = f->now + 50;
    assert_run(f, &op, STATUS_OK);
    put_keyed(f, "d", "k");
    f->now += 10;
    struct op_promote result = promote(f);
    assert_int_equal(result.ret_expired, 2);
    assert_int_equal(ready_in(f, lane), 0);
    assert_int_equal(result.ret_next_at, f->now + 40); /* of c, whose turn it is */
    f->now += 40;
    result = promote(f);
    assert_int_equal(result.ret_promoted, 1);
    struct job job = take(f, lane);
    assert_text(job.id, "c");
    assert_true(job.gap);
    settle_as(f, &job, EVENT_DELIVER);
    assert_text(take(f, lane).id, "d");
}

static void a_promotion_counts_those_that_took_anothers_place(void **state)
{
    struct store_fixture *f = *state;
    struct store_op op = insert_op(f, "d", "t", "a");
    op.insert.key = SLICE("k");
    op.insert.deadline = f->now + 10;
    assert_run(f, &op, STATUS_OK);
    int64_t lane = put_keyed(f, "b", "k");
    f->now += 10;
    struct op_promote result = promote(f);
    assert_int_equal(result.ret_ready_count, 1);
    assert_int_equal(result.ret_ready[0].lane, lane);
    assert_int_equal(result.ret_ready[0].count, 1);
    assert_int_equal(result.ret_ready[0].dead, 1);
    assert_int_equal(ready_in(f, lane), 1);
}

static void keys_are_a_tenants_at_a_destination(void **state)
{
    struct store_fixture *f = *state;
    static const char *const others[][2] = { { "d", "u" }, { "e", "t" } };
    put_keyed(f, "a", "k");
    for (int i = 0; i < 2; i++) {
        struct store_op op = insert_op(f, others[i][0], others[i][1], i == 0 ? "b" : "c");
        op.insert.key = SLICE("k");
        assert_run(f, &op, STATUS_OK);
        assert_false(op.insert.ret_behind);
    }
    assert_int_equal(ready_in(f, put_keyed(f, "e", "another")), 2);
}

static void the_same_job_has_the_same_key(void **state)
{
    struct store_fixture *f = *state;
    put_keyed(f, "a", "k");
    struct store_op op = insert_op(f, "d", "t", "a");
    op.insert.key = SLICE("k");
    assert_run(f, &op, STATUS_OK);
    assert_true(op.insert.ret_existed);
    op = insert_op(f, "d", "t", "a");
    op.insert.key = SLICE("other");
    assert_run(f, &op, STATUS_CONFLICT);
    op = insert_op(f, "d", "t", "a");
    assert_run(f, &op, STATUS_CONFLICT);
}

/* A claim looks at none of them: it finds what is ready, and of one key that is one. */
static void many_of_one_key_stop_nobody(void **state)
{
    struct store_fixture *f = *state;
    enum { USUAL = 5000, EACH = 1000 };
    static struct store_op ops[EACH];
    const char *wanted = getenv("INSIST_KEYED_JOBS"); /* more in the trials */
    int batches = (wanted ? atoi(wanted) : USUAL) / EACH;
    int64_t lane = 0;
    for (int batch = 0; batch < batches; batch++) {
        for (int i = 0; i < EACH; i++) {
            ops[i] = insert_op(f, "d", "t", "");
            ops[i].insert.key = SLICE("busy");
            ops[i].insert.rank = -1; /* before all others */
        }
        fixture_apply(f, ops, EACH);
        lane = ops[0].insert.ret_lane;
        fixture_forget(f);
    }
    put_keyed(f, "quiet", "quiet");
    put(f, "none");
    assert_int_equal(ready_in(f, lane), 3);
    struct store_op op = claim_op(f, lane, 10);
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(op.claim.ret_count, 3);
    assert_text(op.claim.ret_jobs[0].key, "busy");
    assert_text(op.claim.ret_jobs[1].id, "quiet");
    assert_text(op.claim.ret_jobs[2].id, "none");
    assert_int_equal(read_lane(f, lane).counts.pending, batches * EACH - 1);
}

/* A batch sees what its operations before have done. */
static void a_batch_goes_along_a_key(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put_keyed(f, "a", "k");
    put_keyed(f, "b", "k");
    struct job a = take(f, lane);
    struct store_op ops[] = { insert_op(f, "d", "t", "c"), settle_op(&a, EVENT_DELIVER), job_op(OP_CANCEL, "t", "b"),
                              claim_op(f, lane, 4),       insert_op(f, "d", "t", "d") };
    ops[0].insert.key = ops[4].insert.key = SLICE("k");
    fixture_apply(f, ops, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(ops[i].status, STATUS_OK);
    assert_true(ops[1].ret_released.ready && ops[2].ret_released.ready);
    assert_int_equal(ops[3].claim.ret_count, 1);
    assert_text(ops[3].claim.ret_jobs[0].id, "c");
    assert_true(ops[3].claim.ret_jobs[0].gap);
    assert_true(ops[4].insert.ret_behind);
}

const struct store_case store_cases_key[] = {
    { "of one key one goes at a time, in order of acceptance", one_goes_at_a_time_in_order_of_acceptance },
    { "one that waits for its next try is waited for", one_that_waits_for_its_next_try_is_waited_for },
    { "a dead one lets the next of its key go, marked", a_dead_one_lets_the_next_go_marked },
    { "one cancelled on its way leaves a gap", one_cancelled_on_its_way_leaves_a_gap },
    { "a redriven one waits for the one of its key that is under way", a_redriven_one_waits_for_the_one_under_way },
    { "a redriven one goes at once when none of its key is", a_redriven_one_goes_at_once_when_none_is_under_way },
    { "one that expires lets the next of its key go", one_that_expires_lets_the_next_go },
    { "a promotion counts those that took another's place", a_promotion_counts_those_that_took_anothers_place },
    { "keys are a tenant's at a destination", keys_are_a_tenants_at_a_destination },
    { "the same job has the same key", the_same_job_has_the_same_key },
    { "many jobs of one key stop nobody", many_of_one_key_stop_nobody },
    { "a batch goes along a key", a_batch_goes_along_a_key },
    { 0 },
};
