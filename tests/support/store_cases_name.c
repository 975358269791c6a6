#include "support/store_cases.h"

#include <stdio.h>
#include <string.h>

/* One job in each state, named after it, all in one lane. */
static int64_t one_of_each(struct store_fixture *f)
{
    int64_t lane = put(f, "completed");
    take_and_settle(f, lane, EVENT_DELIVER);
    put(f, "dead");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    put(f, "waiting");
    struct job job = take(f, lane);
    struct store_op op = settle_op(&job, EVENT_RETRY);
    op.settle.run_at = f->now + HOUR_MS;
    op.settle.retry_count = 1;
    assert_run(f, &op, STATUS_OK);
    put(f, "running");
    take(f, lane);
    put(f, "cancelled");
    op = job_op(OP_CANCEL, "t", "cancelled");
    assert_run(f, &op, STATUS_OK);
    put(f, "pending");
    return lane;
}

/* What each operation by name answers in each state, and the state after it. */
static void states_allow_what_the_table_says(void **state)
{
    struct store_fixture *f = *state;
    static const struct {
        enum op_kind kind;
        const char *id;
        enum status status;
        enum job_state after; /* STATE_NONE: it is gone */
    } rows[] = {
        { OP_CANCEL, "running", STATUS_CONFLICT, STATE_RUNNING },
        { OP_CANCEL, "completed", STATUS_CONFLICT, STATE_COMPLETED },
        { OP_CANCEL, "dead", STATUS_CONFLICT, STATE_DEAD },
        { OP_CANCEL, "cancelled", STATUS_CONFLICT, STATE_CANCELLED },
        { OP_CANCEL, "nobody", STATUS_NOT_FOUND, STATE_NONE },
        { OP_REDRIVE, "pending", STATUS_CONFLICT, STATE_PENDING },
        { OP_REDRIVE, "running", STATUS_CONFLICT, STATE_RUNNING },
        { OP_REDRIVE, "completed", STATUS_CONFLICT, STATE_COMPLETED },
        { OP_REDRIVE, "cancelled", STATUS_CONFLICT, STATE_CANCELLED },
        { OP_REDRIVE, "nobody", STATUS_NOT_FOUND, STATE_NONE },
        { OP_PURGE, "pending", STATUS_CONFLICT, STATE_PENDING },
        { OP_PURGE, "running", STATUS_CONFLICT, STATE_RUNNING },
        { OP_PURGE, "waiting", STATUS_CONFLICT, STATE_WAITING },
        { OP_PURGE, "completed", STATUS_CONFLICT, STATE_COMPLETED },
        { OP_PURGE, "cancelled", STATUS_CONFLICT, STATE_CANCELLED },
        { OP_PURGE, "nobody", STATUS_NOT_FOUND, STATE_NONE },
        { OP_PRIORITIZE, "completed", STATUS_CONFLICT, STATE_COMPLETED },
        { OP_PRIORITIZE, "dead", STATUS_CONFLICT, STATE_DEAD },
        { OP_PRIORITIZE, "cancelled", STATUS_CONFLICT, STATE_CANCELLED },
        { OP_PRIORITIZE, "nobody", STATUS_NOT_FOUND, STATE_NONE },
        { OP_PRIORITIZE, "pending", STATUS_OK, STATE_PENDING },
        { OP_PRIORITIZE, "running", STATUS_OK, STATE_RUNNING },
        { OP_PRIORITIZE, "waiting", STATUS_OK, STATE_WAITING },
        { OP_CANCEL, "pending", STATUS_OK, STATE_CANCELLED },
        { OP_REDRIVE, "waiting", STATUS_OK, STATE_PENDING },
        { OP_CANCEL, "waiting", STATUS_OK, STATE_CANCELLED },
        { OP_PURGE, "dead", STATUS_OK, STATE_NONE },
        { OP_PURGE, "dead", STATUS_NOT_FOUND, STATE_NONE },
    };
    int64_t lane = one_of_each(f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool known = job_exists(f, "t", rows[i].id);
        struct job before = known ? read_job(f, "t", rows[i].id) : (struct job){ 0 };
        struct store_op op = job_op(rows[i].kind, "t", rows[i].id);
        op.job.priority = PRIORITY_CRITICAL;
        enum status status = fixture_run(f, &op);
        if (status != rows[i].status)
            fail_msg("row %zu, %s: %s", i, rows[i].id, status_name(status));
        assert_int_equal(job_exists(f, "t", rows[i].id), rows[i].after != STATE_NONE);
        if (rows[i].after == STATE_NONE)
            continue;
        struct job after = read_job(f, "t", rows[i].id);
        assert_string_equal(job_state_name(after.state), job_state_name(rows[i].after));
        assert_int_equal(after.last_event > before.last_event, status == STATUS_OK);
        if (status == STATUS_OK) {
            assert_int_equal(op.job.ret_seq, before.seq);
            assert_int_equal(op.job.ret_lane, lane);
            assert_int_equal(op.job.ret_state, rows[i].after);
        }
    }
}

static void a_cancelled_job_is_never_claimed(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    put(f, "b");
    struct store_op op = job_op(OP_CANCEL, "t", "a");
    op.data = SLICE("{\"by\":\"ana\"}");
    assert_run(f, &op, STATUS_OK);
    assert_text(last_event(f, "t", "a", EVENT_TYPE_CANCELLED).data, "{\"by\":\"ana\"}");
    struct store_op claim = claim_op(f, lane, 10);
    assert_run(f, &claim, STATUS_OK);
    assert_int_equal(claim.claim.ret_count, 1);
    assert_text(claim.claim.ret_jobs[0].id, "b");
    struct lane_counts counts = read_lane(f, lane).counts;
    assert_int_equal(counts.cancelled, 1);
    assert_int_equal(counts.pending, 0);
}

static void a_scheduled_job_can_be_cancelled(void **state)
{
    struct store_fixture *f = *state;
    struct store_op op = insert_op(f, "d", "t", "a");
    op.insert.run_at = f->now + 100;
    assert_run(f, &op, STATUS_OK);
    struct store_op cancel = job_op(OP_CANCEL, "t", "a");
    assert_run(f, &cancel, STATUS_OK);
    f->now += 100;
    struct op_promote result = promote(f);
    assert_int_equal(result.ret_promoted, 0);
    assert_true(result.ret_next_at == INSTANT_NONE);
}

static void prioritize_reorders_what_is_queued(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    put(f, "b");
    put(f, "c");
    struct store_op op = job_op(OP_PRIORITIZE, "t", "c");
    op.job.priority = PRIORITY_CRITICAL;
    op.job.rank = f->now - HOUR_MS;
    assert_run(f, &op, STATUS_OK);
    struct job job = read_job(f, "t", "c");
    assert_int_equal(job.priority, PRIORITY_CRITICAL);
    assert_int_equal(job.rank, f->now - HOUR_MS);
    last_event(f, "t", "c", EVENT_TYPE_PRIORITIZED);
    assert_text(take(f, lane).id, "c");
    assert_text(take(f, lane).id, "a");
}

static void prioritize_works_while_waiting(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job job = take(f, lane);
    struct store_op settle = settle_op(&job, EVENT_RETRY);
    settle.settle.run_at = f->now + 50;
    assert_run(f, &settle, STATUS_OK);
    put(f, "b");
    struct store_op op = job_op(OP_PRIORITIZE, "t", "a");
    op.job.priority = PRIORITY_CRITICAL;
    op.job.rank = 1;
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(read_job(f, "t", "a").run_at, f->now + 50);
    assert_int_equal(ready_in(f, lane), 1);
    f->now += 50;
    assert_int_equal(promote(f).ret_promoted, 1);
    assert_text(take(f, lane).id, "a");
}

static void prioritize_while_running_keeps_the_lease(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job job = take(f, lane);
    struct store_op op = job_op(OP_PRIORITIZE, "t", "a");
    op.job.priority = PRIORITY_HIGH;
    op.job.rank = 5;
    assert_run(f, &op, STATUS_OK);
    struct job after = read_job(f, "t", "a");
    assert_int_equal(after.priority, PRIORITY_HIGH);
    assert_int_equal(after.lease_token, job.lease_token);
    assert_int_equal(after.lease_until, job.lease_until);
    assert_int_equal(ready_in(f, lane), 0);
    struct store_op settle = settle_op(&job, EVENT_RETRY);
    assert_run(f, &settle, STATUS_OK);
    assert_int_equal(read_job(f, "t", "a").priority, PRIORITY_HIGH);
}

/* C-40 */
static void redrive_gives_a_dead_job_a_new_generation(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    take_and_settle(f, lane, EVENT_RETRY);
    struct job job = take(f, lane);
    struct store_op settle = settle_op(&job, EVENT_GIVE_UP);
    settle.settle.retry_count = 1;
    settle.settle.step_count = 2;
    settle.settle.doubted = true;
    settle.settle.dead_ttl_ms = DAY_MS;
    assert_run(f, &settle, STATUS_OK);
    f->now += 500;

    struct store_op op = job_op(OP_REDRIVE, "t", "a");
    op.data = SLICE("{\"by\":\"ana\"}");
    op.job.rank = 12;
    op.job.payload_given = true;
    op.job.payload = SLICE("corrected");
    assert_run(f, &op, STATUS_OK);
    struct job after = read_job(f, "t", "a");
    assert_int_equal(after.state, STATE_PENDING);
    assert_int_equal(after.generation, 2);
    assert_int_equal(after.attempts, 0);
    assert_int_equal(after.attempts_total, 2);
    assert_int_equal(after.retry_count, 0);
    assert_int_equal(after.step_count, 0);
    assert_int_equal(after.step, STEP_SEND);
    assert_int_equal(after.redrives_auto, 0);
    assert_false(after.doubted);
    assert_int_equal(after.run_at, f->now);
    assert_int_equal(after.rank, 12);
    assert_int_equal(after.created_at, job.created_at);
    assert_true(after.first_at == INSTANT_NONE && after.dead_at == INSTANT_NONE && after.expires_at == INSTANT_NONE);
    assert_int_equal(after.dead_code.len, 0);
    assert_text(after.payload, "corrected");
    assert_text(last_event(f, "t", "a", EVENT_TYPE_REDRIVEN).data, "{\"by\":\"ana\"}");
    size_t count;
    struct event *events = read_history(f, "t", "a", &count);
    assert_int_equal(count, 6);
    assert_int_equal(events[0].type, EVENT_TYPE_ACCEPTED);
    assert_int_equal(events[4].type, EVENT_TYPE_DEAD);

    job = take(f, lane);
    assert_int_equal(job.attempts, 1);
    assert_int_equal(job.attempts_total, 3);
    assert_int_equal(job.first_at, f->now);
    assert_text(job.payload, "corrected");
    assert_true(promote(f).ret_next_at == INSTANT_NONE); /* the dead letter's end is off */
}

static void resend_gives_a_completed_job_a_new_generation(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct store_op op = job_op(OP_REDRIVE, "t", "a");
    op.job.resend = true;
    assert_run(f, &op, STATUS_CONFLICT); /* it has not been delivered yet */
    struct job job = take(f, lane);
    struct store_op settle = settle_op(&job, EVENT_DELIVER);
    settle.settle.forget_at = f->now + 1000;
    assert_run(f, &settle, STATUS_OK);
    struct store_op retry = job_op(OP_REDRIVE, "t", "a");
    assert_run(f, &retry, STATUS_CONFLICT); /* nobody sends it twice by mistake */
    f->now += 500;
    assert_run(f, &op, STATUS_OK);
    struct job after = read_job(f, "t", "a");
    assert_int_equal(after.state, STATE_PENDING);
    assert_int_equal(after.generation, 2);
    assert_int_equal(after.attempts, 0);
    assert_int_equal(after.attempts_total, 1);
    assert_int_equal(after.run_at, f->now);
    assert_text(after.payload, "{}");
    last_event(f, "t", "a", EVENT_TYPE_REDRIVEN);
    f->now += 1000;
    assert_true(promote(f).ret_next_at == INSTANT_NONE); /* it is not to be forgotten any more */
    take_and_settle(f, lane, EVENT_DELIVER);
    assert_int_equal(read_job(f, "t", "a").state, STATE_COMPLETED);
    assert_int_equal(read_job(f, "t", "a").attempts_total, 2);
}

static void redrive_counts_those_by_the_clock(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    for (int64_t i = 1; i <= 4; i++) {
        take_and_settle(f, lane, EVENT_GIVE_UP);
        struct store_op op = job_op(OP_REDRIVE, "t", "a");
        op.job.automatic = i % 2 == 0;
        assert_run(f, &op, STATUS_OK);
        struct job job = read_job(f, "t", "a");
        assert_int_equal(job.redrives_auto, i / 2);
        assert_int_equal(job.generation, i + 1);
        assert_text(job.payload, "{}");
    }
}

static void redrive_makes_a_waiting_job_due(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job job = take(f, lane);
    struct store_op settle = settle_op(&job, EVENT_RETRY);
    settle.settle.run_at = f->now + DAY_MS;
    settle.settle.retry_count = 1;
    settle.settle.step = STEP_VERIFY;
    settle.settle.step_count = 1;
    settle.settle.doubted = true;
    assert_run(f, &settle, STATUS_OK);
    assert_int_equal(ready_in(f, lane), 0);

    struct store_op op = job_op(OP_REDRIVE, "t", "a");
    op.job.automatic = true; /* somebody was quicker, and it failed again: the clock hurries nobody */
    assert_run(f, &op, STATUS_CONFLICT);
    op.job.automatic = false;
    op.job.rank = 3;
    assert_run(f, &op, STATUS_OK);
    struct job after = read_job(f, "t", "a");
    assert_int_equal(after.state, STATE_PENDING);
    assert_int_equal(after.run_at, f->now);
    assert_int_equal(after.rank, 3);
    assert_int_equal(after.generation, 1); /* only hurried: what it has spent stays spent */
    assert_int_equal(after.attempts, 1);
    assert_int_equal(after.retry_count, 1);
    assert_int_equal(after.step_count, 1);
    assert_int_equal(after.step, STEP_VERIFY); /* nothing in doubt is sent again for being hurried */
    assert_true(after.doubted);
    assert_int_equal(ready_in(f, lane), 1);
    assert_int_equal(take(f, lane).attempts, 1);
    assert_true(promote(f).ret_next_at == INSTANT_NONE);
}

static void redrive_of_an_expired_job_lasts(void **state)
{
    struct store_fixture *f = *state;
    struct store_op op = insert_op(f, "d", "t", "a");
    op.insert.deadline = f->now + 100;
    assert_run(f, &op, STATUS_OK);
    f->now += 100;
    assert_int_equal(promote(f).ret_expired, 1);
    struct store_op redrive = job_op(OP_REDRIVE, "t", "a");
    assert_run(f, &redrive, STATUS_OK);
    assert_int_equal(promote(f).ret_expired, 0);
    assert_state(f, "a", STATE_PENDING);
    assert_true(read_job(f, "t", "a").deadline == INSTANT_NONE);
}

static void redrive_keeps_a_deadline_to_come(void **state)
{
    struct store_fixture *f = *state;
    struct store_op op = insert_op(f, "d", "t", "a");
    op.insert.deadline = f->now + HOUR_MS;
    assert_run(f, &op, STATUS_OK);
    take_and_settle(f, op.insert.ret_lane, EVENT_GIVE_UP);
    struct store_op redrive = job_op(OP_REDRIVE, "t", "a");
    assert_run(f, &redrive, STATUS_OK);
    assert_int_equal(read_job(f, "t", "a").deadline, f->now + HOUR_MS);
    f->now += HOUR_MS;
    assert_int_equal(promote(f).ret_expired, 1);
}

static void a_corrected_payload_leaves_the_id_what_it_was(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    struct store_op redrive = job_op(OP_REDRIVE, "t", "a");
    redrive.job.payload_given = true; /* with nothing in it: a payload may be empty */
    assert_run(f, &redrive, STATUS_OK);
    assert_int_equal(read_job(f, "t", "a").payload.len, 0);
    struct store_op again = insert_op(f, "d", "t", "a"); /* the client repeats its request */
    assert_run(f, &again, STATUS_OK);
    assert_true(again.insert.ret_existed);
}

/* Whoever gives an id that the store has made means that job: it is held to what that was, also when it was corrected. */
static void an_id_that_the_store_made_is_held_to_its_job(void **state)
{
    struct store_fixture *f = *state;
    char id[JOB_ID_MADE_BYTES + 1];
    struct store_op made = insert_op(f, "d", "t", "");
    assert_run(f, &made, STATUS_OK);
    assert_int_equal(made.insert.ret_id.len, JOB_ID_MADE_BYTES);
    snprintf(id, sizeof id, "%.*s", SLICE_ARG(made.insert.ret_id));
    for (int corrected = 0; corrected < 2; corrected++) {
        struct store_op again = insert_op(f, "d", "t", id), other = insert_op(f, "d", "t", id);
        other.insert.payload = SLICE("another");
        assert_run(f, &again, STATUS_OK);
        assert_true(again.insert.ret_existed);
        assert_int_equal(again.insert.ret_seq, made.insert.ret_seq);
        assert_run(f, &other, STATUS_CONFLICT);
        struct job job = take(f, made.insert.ret_lane);
        assert_false(job.damaged);
        struct store_op settle = settle_op(&job, EVENT_GIVE_UP);
        assert_run(f, &settle, STATUS_OK);
        struct store_op redrive = job_op(OP_REDRIVE, "t", id);
        redrive.job.payload_given = true;
        redrive.job.payload = SLICE("corrected");
        assert_run(f, &redrive, STATUS_OK);
    }
}

static void correct(struct store_fixture *f, const char *payload)
{
    struct store_op redrive = job_op(OP_REDRIVE, "t", "a");
    redrive.job.payload_given = true;
    redrive.job.payload = slice_from(payload);
    assert_run(f, &redrive, STATUS_OK);
}

static void a_corrected_payload_is_not_damage(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    assert_false(take_and_settle(f, lane, EVENT_RETRY).damaged);
    correct(f, "hurried, in the same generation");
    struct job hurried = take_and_settle(f, lane, EVENT_GIVE_UP);
    assert_int_equal(hurried.generation, 1);
    assert_false(hurried.damaged);
    correct(f, "");
    assert_false(take_and_settle(f, lane, EVENT_GIVE_UP).damaged);
    struct store_op redrive = job_op(OP_REDRIVE, "t", "a");
    assert_run(f, &redrive, STATUS_OK);
    assert_false(take_and_settle(f, lane, EVENT_GIVE_UP).damaged);
    correct(f, "once more");
    struct job last = take(f, lane);
    assert_text(last.payload, "once more");
    assert_false(last.damaged);
}

static void a_purged_job_leaves_its_history(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job job = take(f, lane);
    put(f, "stays");
    struct store_op settle = settle_op(&job, EVENT_GIVE_UP);
    settle.settle.dead_ttl_ms = DAY_MS;
    assert_run(f, &settle, STATUS_OK);
    struct store_op op = job_op(OP_PURGE, "t", "a");
    op.data = SLICE("{\"by\":\"ana\"}");
    assert_run(f, &op, STATUS_OK);
    assert_false(job_exists(f, "t", "a"));
    assert_int_equal(read_lane(f, lane).counts.dead, 0);
    size_t count;
    struct event *events = read_history(f, "t", "a", &count);
    assert_int_equal(count, 4);
    assert_int_equal(events[3].type, EVENT_TYPE_PURGED);
    assert_text(events[3].data, "{\"by\":\"ana\"}");
    for (size_t i = 1; i < count; i++)
        assert_int_equal(events[i].previous, events[i - 1].number);
    assert_true(promote(f).ret_next_at == INSTANT_NONE);
}

static void a_deleted_id_can_be_used_again(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    struct store_op ops[2] = { job_op(OP_PURGE, "t", "a"), insert_op(f, "d2", "t", "a") };
    ops[1].insert.payload = SLICE("another");
    fixture_apply(f, ops, 2);
    assert_int_equal(ops[0].status, STATUS_OK);
    assert_int_equal(ops[1].status, STATUS_OK);
    assert_false(ops[1].insert.ret_existed);
    struct job job = read_job(f, "t", "a");
    assert_int_equal(job.generation, 1);
    assert_text(job.destination, "d2");
    assert_text(job.payload, "another");
    assert_int_equal(last_event(f, "t", "a", EVENT_TYPE_ACCEPTED).previous, 0);
    size_t count;
    struct event *events = read_history(f, "t", "a", &count);
    assert_int_equal(count, 5); /* of both lives */
    assert_int_equal(events[3].type, EVENT_TYPE_PURGED);
    assert_text(events[3].destination, "d");
}

/* Made ids are found by the number in them, which another's may have too. */
static void an_id_that_looks_made_is_one_like_any_other(void **state)
{
    struct store_fixture *f = *state;
    struct store_op made = insert_op(f, "d", "t", "");
    assert_run(f, &made, STATUS_OK);
    char first[JOB_ID_MADE_BYTES + 1], other[JOB_ID_MADE_BYTES + 1];
    snprintf(first, sizeof first, "%.*s", SLICE_ARG(made.insert.ret_id));
    memcpy(other, first, sizeof other);
    other[JOB_ID_MADE_BYTES - 1] = other[JOB_ID_MADE_BYTES - 1] == '0' ? '1' : '0';

    struct store_op given = insert_op(f, "d", "t", other);
    given.insert.payload = SLICE("another body");
    assert_run(f, &given, STATUS_OK);
    assert_false(given.insert.ret_existed);
    struct store_op tenants = insert_op(f, "d", "u", first);
    assert_run(f, &tenants, STATUS_OK);
    assert_false(tenants.insert.ret_existed);
    struct store_op again = insert_op(f, "d", "t", first);
    assert_run(f, &again, STATUS_OK);
    assert_true(again.insert.ret_existed);
    assert_int_equal(again.insert.ret_seq, made.insert.ret_seq);

    assert_int_equal(read_job(f, "t", first).seq, made.insert.ret_seq);
    assert_int_equal(read_job(f, "t", other).seq, given.insert.ret_seq);
    assert_int_equal(read_job(f, "u", first).seq, tenants.insert.ret_seq);
    struct store_op cancel = job_op(OP_CANCEL, "t", first);
    assert_run(f, &cancel, STATUS_OK);
    assert_int_equal(cancel.job.ret_seq, made.insert.ret_seq);
    assert_state(f, other, STATE_PENDING);
}

/* The least and the greatest that can be written so, and those between whose time or number is nothing. */
static void an_id_at_the_limits_of_a_made_one_is_found_again(void **state)
{
    struct store_fixture *f = *state;
    static const char *const ids[] = { "00000000000000000000000000", "00000000000000000000002000",
                                       "0000000000ZZZ0000000000000", "ZZZZZZZZZZZZZZZZZZZZZZZZZZ",
                                       "ZZZZZZZZZZ0000000000000000", "0000000000ZZZZZZZZZZZZZZZZ" };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct store_op given = insert_op(f, "d", "t", ids[i]), again = given;
        assert_run(f, &given, STATUS_OK);
        assert_false(given.insert.ret_existed);
        assert_run(f, &again, STATUS_OK);
        assert_true(again.insert.ret_existed);
        assert_int_equal(again.insert.ret_seq, given.insert.ret_seq);
        assert_int_equal(read_job(f, "t", ids[i]).seq, given.insert.ret_seq);
        struct store_op cancel = job_op(OP_CANCEL, "t", ids[i]);
        assert_run(f, &cancel, STATUS_OK);
        assert_int_equal(cancel.job.ret_seq, given.insert.ret_seq);
    }
}

const struct store_case store_cases_name[] = {
    { "states allow what the table says", states_allow_what_the_table_says },
    { "a cancelled job is never claimed", a_cancelled_job_is_never_claimed },
    { "a scheduled job can be cancelled", a_scheduled_job_can_be_cancelled },
    { "prioritize reorders what is queued", prioritize_reorders_what_is_queued },
    { "prioritize works while waiting", prioritize_works_while_waiting },
    { "prioritize while running keeps the lease", prioritize_while_running_keeps_the_lease },
    { "redrive gives a dead job a new generation", redrive_gives_a_dead_job_a_new_generation },
    { "resend gives a completed job a new generation", resend_gives_a_completed_job_a_new_generation },
    { "redrive counts those by the clock", redrive_counts_those_by_the_clock },
    { "redrive makes a waiting job due", redrive_makes_a_waiting_job_due },
    { "redrive of an expired job lasts", redrive_of_an_expired_job_lasts },
    { "redrive keeps a deadline to come", redrive_keeps_a_deadline_to_come },
    { "a corrected payload leaves the id what it was", a_corrected_payload_leaves_the_id_what_it_was },
    { "an id that the store made is held to its job", an_id_that_the_store_made_is_held_to_its_job },
    { "a corrected payload is not damage", a_corrected_payload_is_not_damage },
    { "a purged job leaves its history", a_purged_job_leaves_its_history },
    { "a deleted id can be used again", a_deleted_id_can_be_used_again },
    { "an id that looks made is one like any other", an_id_that_looks_made_is_one_like_any_other },
    { "an id at the limits of a made one is found again", an_id_at_the_limits_of_a_made_one_is_found_again },
    { 0 },
};
