#include "support/store_cases.h"

#include <stdio.h>

/* A job whose dead letter goes away `ttl_ms` from now. */
static int64_t put_dead(struct store_fixture *f, const char *id, int64_t ttl_ms)
{
    int64_t lane = put(f, id);
    struct job job = take(f, lane);
    struct store_op op = settle_op(&job, EVENT_GIVE_UP);
    op.settle.dead_ttl_ms = ttl_ms;
    assert_run(f, &op, STATUS_OK);
    return lane;
}

static int64_t put_at(struct store_fixture *f, const char *id, int64_t delay_ms, instant deadline)
{
    struct store_op op = insert_op(f, "d", "t", id);
    op.insert.run_at = f->now + delay_ms;
    op.insert.deadline = deadline;
    assert_run(f, &op, STATUS_OK);
    return op.insert.ret_lane;
}

/* S1-046 S4-004 S4-010 */
static void a_scheduled_job_waits_for_its_time(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put_at(f, "a", 100, INSTANT_NONE);
    assert_state(f, "a", STATE_PENDING);
    assert_int_equal(ready_in(f, lane), 0);
    f->now += 99;
    struct op_promote result = promote(f);
    assert_int_equal(result.ret_promoted, 0);
    assert_int_equal(result.ret_ready_count, 0);
    assert_int_equal(result.ret_next_at, f->now + 1);
    f->now += 1;
    result = promote(f);
    assert_int_equal(result.ret_promoted, 1);
    assert_int_equal(result.ret_ready_count, 1);
    assert_int_equal(result.ret_ready[0].lane, lane);
    assert_int_equal(result.ret_ready[0].count, 1);
    assert_true(result.ret_next_at == INSTANT_NONE);
    assert_int_equal(ready_in(f, lane), 1);
    assert_state(f, "a", STATE_PENDING);
    assert_int_equal(promote(f).ret_promoted, 0);
    assert_text(take(f, lane).id, "a");
}

static void promotion_is_counted_by_lane(void **state)
{
    struct store_fixture *f = *state;
    int64_t lanes[3] = { 0 };
    for (int i = 0; i < 12; i++) {
        char tenant[2] = { (char)('a' + i % 3), '\0' };
        struct store_op op = insert_op(f, "d", tenant, "");
        op.insert.run_at = f->now + (i < 9 ? 10 : 1000);
        assert_run(f, &op, STATUS_OK);
        lanes[i % 3] = op.insert.ret_lane;
    }
    f->now += 10;
    struct op_promote result = promote(f);
    assert_int_equal(result.ret_promoted, 9);
    assert_int_equal(result.ret_ready_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(result.ret_ready[i].count, 3);
        for (size_t j = 0; j < i; j++)
            assert_true(result.ret_ready[i].lane != result.ret_ready[j].lane);
        assert_int_equal(ready_in(f, lanes[i]), 3);
    }
    assert_int_equal(result.ret_next_at, f->now + 990);
}

/* S4-040 */
static void the_longest_overdue_come_first(void **state)
{
    struct store_fixture *f = *state;
    static const int delays[] = { 50, 10, 40, 20, 30 };
    for (size_t i = 0; i < 5; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%d", delays[i]);
        put_at(f, id, delays[i], INSTANT_NONE);
    }
    instant start = f->now;
    f->now += 1000;
    struct store_op op = promote_op();
    op.promote.max = 2;
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(op.promote.ret_promoted, 2);
    assert_int_equal(op.promote.ret_next_at, start + 30); /* overdue, for the next call */
    struct store_op claim = claim_op(f, 1, 10);
    assert_run(f, &claim, STATUS_OK);
    assert_int_equal(claim.claim.ret_count, 2);
    assert_true(slice_equal(claim.claim.ret_jobs[0].id, SLICE("j10")) || slice_equal(claim.claim.ret_jobs[1].id, SLICE("j10")));
    assert_true(slice_equal(claim.claim.ret_jobs[0].id, SLICE("j20")) || slice_equal(claim.claim.ret_jobs[1].id, SLICE("j20")));
    op.promote.max = 0;
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(op.promote.ret_promoted, 0);
    assert_int_equal(op.promote.ret_next_at, start + 30);
    op.promote.max = 10;
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(op.promote.ret_promoted, 3);
    assert_true(op.promote.ret_next_at == INSTANT_NONE);
}

/* However many of one destination are due, and however long, the first of another does not wait for them. */
static void a_crowd_holds_up_no_other_destination(void **state)
{
    struct store_fixture *f = *state;
    if (!f->backend->turns)
        skip();
    for (int i = 0; i < 20; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        struct store_op crowd = insert_op(f, "crowd", "t", id);
        crowd.insert.run_at = f->now + 10 + i;
        assert_run(f, &crowd, STATUS_OK);
    }
    struct store_op late = insert_op(f, "other", "u", "late");
    late.insert.run_at = f->now + 50;
    assert_run(f, &late, STATUS_OK);
    f->now += 100;
    struct store_op op = promote_op();
    op.promote.max = 5;
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(op.promote.ret_promoted, 5);
    assert_int_equal(ready_in(f, late.insert.ret_lane), 1);
    assert_true(op.promote.ret_next_at != INSTANT_NONE && op.promote.ret_next_at <= f->now);
    assert_run(f, &op, STATUS_OK); /* alone, it has all of the places */
    assert_int_equal(op.promote.ret_promoted, 5);
}

static void the_bound_holds_for_all_kinds_together(void **state)
{
    struct store_fixture *f = *state;
    put_dead(f, "dead", 10);
    put_at(f, "expiring", 0, f->now + 20);
    put_at(f, "scheduled", 30, INSTANT_NONE);
    struct store_op cancel = job_op(OP_CANCEL, "t", "cancelled");
    put(f, "cancelled");
    cancel.job.forget_at = f->now + 40;
    assert_run(f, &cancel, STATUS_OK);
    f->now += 100;
    size_t seen[4] = { 0 };
    for (int i = 0; i < 4; i++) {
        struct store_op op = promote_op();
        op.promote.max = 1;
        assert_run(f, &op, STATUS_OK);
        assert_int_equal(op.promote.ret_dead_deleted, i == 0);
        assert_int_equal(op.promote.ret_expired, i == 1);
        assert_int_equal(op.promote.ret_promoted, i == 2);
        assert_int_equal(op.promote.ret_forgotten, i == 3);
        seen[i] = op.promote.ret_dead_deleted + op.promote.ret_expired + op.promote.ret_promoted + op.promote.ret_forgotten;
        assert_int_equal(seen[i], 1);
    }
}

/* A job may be ready, scheduled or waiting for a retry when its deadline comes. */
static void a_passed_deadline_makes_a_dead_letter(void **state)
{
    struct store_fixture *f = *state;
    instant deadline = f->now + 100;
    int64_t lane = put_at(f, "retried", 0, deadline);
    struct job job = take(f, lane);
    struct store_op settle = settle_op(&job, EVENT_RETRY);
    settle.settle.run_at = f->now + 5000;
    assert_run(f, &settle, STATUS_OK);
    put_at(f, "ready", 0, deadline);
    put_at(f, "scheduled", 5000, deadline);
    put_at(f, "due-too", 50, deadline);
    f->now += 99;
    assert_int_equal(promote(f).ret_expired, 0);
    f->now += 1;
    struct store_op op = promote_op();
    op.promote.dead_ttl_ms = 7000;
    op.promote.max = 100;
    op.promote.name_expired = true;
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(op.promote.ret_expired, 4);
    for (size_t i = 0; i < 4; i++) { /* as who reads it finds it */
        const struct job *named = &op.promote.ret_expired_jobs[i];
        struct job stored = read_job(f, "t", arena_copy_text(&f->memory, named->id));
        assert_int_equal(named->seq, stored.seq);
        assert_int_equal(named->state, STATE_DEAD);
        assert_int_equal(named->attempts, stored.attempts);
        assert_int_equal(named->generation, 1);
        assert_true(slice_equal(named->destination, stored.destination) && slice_equal(named->tenant, stored.tenant));
        assert_true(slice_equal(named->last_error, stored.last_error) && slice_equal(named->last_code, stored.last_code));
        assert_true(slice_equal(named->dead_code, stored.dead_code));
        assert_true(slice_equal(named->correlation_id, stored.correlation_id));
    }
    assert_int_equal(op.promote.ret_promoted, 0);
    assert_int_equal(op.promote.ret_next_at, f->now + 7000);
    static const char *const ids[] = { "ready", "scheduled", "retried", "due-too" };
    for (size_t i = 0; i < 4; i++) {
        struct job dead = read_job(f, "t", ids[i]);
        assert_int_equal(dead.state, STATE_DEAD);
        assert_text(dead.dead_code, "EXPIRED");
        assert_true(dead.last_error.len > 0);
        assert_int_equal(dead.dead_at, f->now);
        assert_int_equal(dead.expires_at, f->now + 7000);
        assert_int_equal(last_event(f, "t", ids[i], EVENT_TYPE_EXPIRED).state, STATE_DEAD);
    }
    assert_int_equal(ready_in(f, lane), 0);
    assert_int_equal(read_lane(f, lane).counts.dead, 4);
}

static void an_expired_job_is_kept_as_long_as_its_destination_says(void **state)
{
    struct store_fixture *f = *state;
    static const struct dead_ttl ttls[] = { { { "short", 5 }, 500 }, { { "kept", 4 }, 0 } };
    static const char *const names[] = { "short", "kept", "other" };
    for (size_t i = 0; i < 3; i++) {
        struct store_op op = insert_op(f, names[i], "t", names[i]);
        op.insert.deadline = f->now + 100;
        assert_run(f, &op, STATUS_OK);
    }
    f->now += 100;
    struct store_op op = promote_op();
    op.promote.dead_ttl_ms = 7000;
    op.promote.dead_ttls = ttls;
    op.promote.dead_ttl_count = 2;
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(op.promote.ret_expired, 3);
    assert_int_equal(read_job(f, "t", "short").expires_at, f->now + 500);
    assert_true(read_job(f, "t", "kept").expires_at == INSTANT_NONE);
    assert_int_equal(read_job(f, "t", "other").expires_at, f->now + 7000);
    f->now += 7000;
    assert_int_equal(promote(f).ret_dead_deleted, 2);
    assert_state(f, "kept", STATE_DEAD);
}

static void a_due_job_past_its_deadline_is_not_sent(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put_at(f, "a", 10, f->now + 20);
    f->now += 30; /* both times have passed at once */
    struct op_promote result = promote(f);
    assert_int_equal(result.ret_promoted, 0);
    assert_int_equal(result.ret_expired, 1);
    assert_int_equal(ready_in(f, lane), 0);
}

static void a_running_job_outlives_its_deadline(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put_at(f, "a", 0, f->now + 100);
    struct job job = take(f, lane);
    f->now += 200;
    assert_int_equal(promote(f).ret_expired, 0);
    assert_state(f, "a", STATE_RUNNING);
    struct store_op op = settle_op(&job, EVENT_RETRY);
    op.settle.run_at = f->now + 1000;
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(promote(f).ret_expired, 1);
    assert_text(read_job(f, "t", "a").dead_code, "EXPIRED");
}

/* */
static void a_dead_letter_lives_exactly_as_long_as_it_may(void **state)
{
    struct store_fixture *f = *state;
    const int64_t ttl_ms = (int64_t)7 * DAY_MS;
    int64_t lane = put_dead(f, "a", ttl_ms);
    put(f, "stays");
    f->now += ttl_ms - 1;
    struct op_promote result = promote(f);
    assert_int_equal(result.ret_dead_deleted, 0);
    assert_int_equal(result.ret_next_at, f->now + 1);
    assert_state(f, "a", STATE_DEAD);
    f->now += 1;
    assert_int_equal(promote(f).ret_dead_deleted, 1);
    assert_false(job_exists(f, "t", "a"));
    last_event(f, "t", "a", EVENT_TYPE_DEAD_EXPIRED);
    assert_int_equal(read_lane(f, lane).counts.dead, 0);
}

static void a_dead_letter_without_an_end_stays(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    f->now += (int64_t)3650 * DAY_MS;
    struct op_promote result = promote(f);
    assert_int_equal(result.ret_dead_deleted, 0);
    assert_true(result.ret_next_at == INSTANT_NONE);
    assert_state(f, "a", STATE_DEAD);
}

/* S2-084 */
static void finished_jobs_are_forgotten(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "completed");
    struct job job = take(f, lane);
    struct store_op settle = settle_op(&job, EVENT_DELIVER);
    settle.settle.forget_at = f->now + 100;
    assert_run(f, &settle, STATUS_OK);
    put(f, "cancelled");
    struct store_op cancel = job_op(OP_CANCEL, "t", "cancelled");
    cancel.job.forget_at = f->now + 100;
    assert_run(f, &cancel, STATUS_OK);
    put(f, "kept");
    take_and_settle(f, lane, EVENT_DELIVER);
    f->now += 99;
    assert_int_equal(promote(f).ret_forgotten, 0);
    f->now += 1;
    assert_int_equal(promote(f).ret_forgotten, 2);
    assert_false(job_exists(f, "t", "completed"));
    assert_false(job_exists(f, "t", "cancelled"));
    assert_true(job_exists(f, "t", "kept"));
    last_event(f, "t", "completed", EVENT_TYPE_COMPLETED); /* no event of its own */
    struct lane_counts counts = read_lane(f, lane).counts;
    assert_int_equal(counts.completed, 2);
    assert_int_equal(counts.cancelled, 1);
}

static size_t orphans(struct store_fixture *f, instant until, size_t max, struct job **ret_jobs)
{
    struct store_op op = { .kind = OP_ORPHANS, .orphans = { .until = until, .max = max } };
    assert_run(f, &op, STATUS_OK);
    *ret_jobs = op.orphans.ret_jobs;
    return op.orphans.ret_count;
}

static void orphans_are_found_by_time(void **state)
{
    struct store_fixture *f = *state;
    static const char *const owners[] = { "", "w1", "", "w2" };
    int64_t lane = 0;
    struct job *jobs;
    for (int i = 0; i < 4; i++) {
        char id[2] = { (char)('a' + i), '\0' };
        lane = put(f, id);
        struct store_op claim = claim_op(f, lane, 1);
        claim.claim.owner = slice_from(owners[i]);
        claim.claim.lease_until = f->now + 100 * (i + 1);
        assert_run(f, &claim, STATUS_OK);
    }
    assert_int_equal(orphans(f, f->now + 99, 10, &jobs), 0);
    assert_int_equal(orphans(f, f->now + 100, 10, &jobs), 1);
    assert_text(jobs[0].id, "a");
    assert_true(jobs[0].lease_token > 0);
    assert_int_equal(jobs[0].payload.len, 0);
    assert_int_equal(orphans(f, f->now + 350, 10, &jobs), 3);
    assert_int_equal(orphans(f, INSTANT_MAX, 10, &jobs), 4);
    assert_int_equal(orphans(f, INSTANT_MAX, 3, &jobs), 3);

    /* They keep their lease: whoever has it can still use it. */
    assert_int_equal(orphans(f, f->now + 100, 10, &jobs), 1);
    struct store_op settle = settle_op(&jobs[0], EVENT_RELEASE);
    assert_run(f, &settle, STATUS_OK);
    assert_int_equal(orphans(f, INSTANT_MAX, 10, &jobs), 3);
}

/* More than one read takes, some of whose leases end together: each is found once, by the end of its lease and its number. */
static void orphans_come_in_pages(void **state)
{
    enum { JOBS = 7, PAGE = 2 };
    struct store_fixture *f = *state;
    struct store_op page = { .kind = OP_ORPHANS,
                             .orphans = { .until = INSTANT_MAX, .after_until = INSTANT_NONE, .max = PAGE } };
    int found = 0;
    for (int i = 0; i < JOBS; i++) {
        char id[2] = { (char)('a' + i), '\0' };
        struct store_op claim = claim_op(f, put(f, id), 1);
        claim.claim.lease_until = f->now + (i < JOBS - 2 ? 100 : 200);
        assert_run(f, &claim, STATUS_OK);
    }
    do {
        assert_run(f, &page, STATUS_OK);
        for (size_t i = 0; i < page.orphans.ret_count; i++, found++) {
            const struct job *job = &page.orphans.ret_jobs[i];
            assert_true(found < JOBS && job->id.data[0] == 'a' + found);
            page.orphans.after_until = job->lease_until;
            page.orphans.after_seq = job->seq;
        }
    } while (page.orphans.ret_count == PAGE);
    assert_int_equal(found, JOBS);
}

static void a_prolonged_lease_is_no_orphan(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job job = take(f, lane);
    struct job *jobs;
    assert_int_equal(orphans(f, job.lease_until, 10, &jobs), 1);
    struct store_op op = { .kind = OP_EXTEND, .extend = { job.seq, job.lease_token, job.lease_until + 1000 } };
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(orphans(f, job.lease_until, 10, &jobs), 0);
    assert_int_equal(orphans(f, job.lease_until + 1000, 10, &jobs), 1);
}

static size_t trim(struct store_fixture *f, instant before, size_t max)
{
    struct store_op op = { .kind = OP_TRIM, .trim = { .before = before, .max = max } };
    assert_run(f, &op, STATUS_OK);
    return op.trim.ret_deleted;
}

static void trim_takes_the_oldest_and_the_chain_still_holds(void **state)
{
    struct store_fixture *f = *state;
    instant start = f->now;
    for (int i = 0; i < 10; i++) {
        struct store_op op = insert_op(f, "d", "t", "");
        assert_run(f, &op, STATUS_OK);
        f->now += 10;
    }
    size_t count;
    struct event *events = read_events(f, 0, &count);
    assert_int_equal(count, 10);
    int64_t last = events[9].number;
    assert_int_equal(trim(f, start, 100), 0);
    assert_int_equal(trim(f, start + 50, 3), 3);
    assert_int_equal(trim(f, start + 50, 100), 2); /* the sixth happened at that very time */
    events = read_events(f, 0, &count);
    assert_int_equal(count, 5 + 2); /* each trim left one that tells of it */
    assert_int_equal(events[0].number, last - 4);
    assert_true(chain_holds(events, count));
    assert_true(slice_has_prefix(events[5].data, SLICE("{\"note\":\"trimmed\",\"newest\":\"3:")));
    assert_true(slice_has_prefix(events[6].data, SLICE("{\"note\":\"trimmed\",\"newest\":\"5:")));

    assert_int_equal(trim(f, f->now + 1, 100), 7);
    assert_int_equal(trim(f, f->now + 1, 100), 0); /* or it would never end */
    read_events(f, 0, &count);
    assert_int_equal(count, 1);
    put(f, "after");
    put(f, "after2");
    events = read_events(f, 0, &count);
    assert_int_equal(count, 3);
    assert_int_equal(events[0].number, last + 3);
    assert_true(chain_holds(events, count));
}

static void a_trimmed_history_is_its_end(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    put(f, "idle");
    f->now += 10;
    take_and_settle(f, lane, EVENT_GIVE_UP);
    assert_int_equal(trim(f, f->now, 100), 2);
    size_t count;
    struct event *events = read_history(f, "t", "a", &count);
    assert_int_equal(count, 2);
    assert_int_equal(events[0].type, EVENT_TYPE_CLAIMED);
    read_history(f, "t", "idle", &count);
    assert_int_equal(count, 0);
    assert_true(job_exists(f, "t", "idle"));

    struct store_op purge = job_op(OP_PURGE, "t", "a");
    assert_run(f, &purge, STATUS_OK);
    f->now += 10;
    assert_int_equal(trim(f, f->now, 100), 4);
    read_history(f, "t", "a", &count);
    assert_int_equal(count, 0);
}

/* With one that stays among them, and ids that come again before the batch has ended. */
static void what_goes_is_gone_within_its_batch(void **state)
{
    struct store_fixture *f = *state;
    static const char *const ids[] = { "a", "b", "stays", "c", "d" };
    int64_t lane = 0;
    for (size_t i = 0; i < 5; i++)
        lane = put_at(f, ids[i], 0, strcmp(ids[i], "stays") == 0 ? INSTANT_NONE : f->now + 100);
    f->now += 100;
    struct store_op expire = promote_op();
    expire.promote.dead_ttl_ms = 50;
    assert_run(f, &expire, STATUS_OK);
    assert_int_equal(expire.promote.ret_expired, 4);
    f->now += 50;
    struct store_op ops[] = { promote_op(), job_op(OP_CANCEL, "t", "a"), insert_op(f, "d", "t", "b"), insert_op(f, "d", "t", "b"),
                              job_op(OP_PURGE, "t", "d"), insert_op(f, "d", "t", "d"), job_op(OP_CANCEL, "t", "d") };
    ops[0].promote.max = 100;
    fixture_apply(f, ops, sizeof ops / sizeof ops[0]);
    assert_int_equal(ops[0].promote.ret_dead_deleted, 4);
    assert_int_equal(ops[1].status, STATUS_NOT_FOUND);
    assert_true(ops[2].status == STATUS_OK && !ops[2].insert.ret_existed);
    assert_true(ops[3].status == STATUS_OK && ops[3].insert.ret_existed);
    assert_int_equal(ops[3].insert.ret_seq, ops[2].insert.ret_seq);
    assert_int_equal(ops[4].status, STATUS_NOT_FOUND);
    assert_int_equal(ops[6].status, STATUS_OK);
    assert_false(job_exists(f, "t", "a") || job_exists(f, "t", "c"));
    assert_state(f, "b", STATE_PENDING);
    assert_state(f, "stays", STATE_PENDING);
    assert_state(f, "d", STATE_CANCELLED);
    assert_int_equal(ready_in(f, lane), 2);
}

const struct store_case store_cases_time[] = {
    { "a scheduled job waits for its time", a_scheduled_job_waits_for_its_time },
    { "promotion is counted by lane", promotion_is_counted_by_lane },
    { "a crowd holds up no other destination", a_crowd_holds_up_no_other_destination },
    { "the longest overdue come first", the_longest_overdue_come_first },
    { "the bound holds for all kinds together", the_bound_holds_for_all_kinds_together },
    { "a passed deadline makes a dead letter", a_passed_deadline_makes_a_dead_letter },
    { "an expired job is kept as long as its destination says", an_expired_job_is_kept_as_long_as_its_destination_says },
    { "a due job past its deadline is not sent", a_due_job_past_its_deadline_is_not_sent },
    { "a running job outlives its deadline", a_running_job_outlives_its_deadline },
    { "a dead letter lives exactly as long as it may", a_dead_letter_lives_exactly_as_long_as_it_may },
    { "a dead letter without an end stays", a_dead_letter_without_an_end_stays },
    { "finished jobs are forgotten", finished_jobs_are_forgotten },
    { "what goes is gone within its batch", what_goes_is_gone_within_its_batch },
    { "orphans are found by time", orphans_are_found_by_time },
    { "orphans come in pages", orphans_come_in_pages },
    { "a prolonged lease is no orphan", a_prolonged_lease_is_no_orphan },
    { "trim takes the oldest and the chain still holds", trim_takes_the_oldest_and_the_chain_still_holds },
    { "a trimmed history is its end", a_trimmed_history_is_its_end },
    { 0 },
};
