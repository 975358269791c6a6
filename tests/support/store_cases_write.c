#include "support/store_cases.h"

#include <stdio.h>
#include <string.h>

static void insert_keeps_what_it_was_given(void **state)
{
    struct store_fixture *f = *state;
    struct store_op op = insert_op(f, "claims", "hospital", "CLM-1");
    op.insert.priority = PRIORITY_HIGH;
    op.insert.rank = -7;
    op.insert.run_at = f->now - 5;
    op.insert.deadline = f->now + HOUR_MS;
    op.insert.headers = SLICE("{\"A\":\"b\"}");
    op.insert.correlation_id = SLICE("c-1");
    op.insert.metadata = SLICE("{\"m\":1}");
    op.insert.payload = SLICE("<xml/>");
    assert_run(f, &op, STATUS_OK);
    assert_false(op.insert.ret_existed);
    assert_text(op.insert.ret_id, "CLM-1");
    assert_true(op.insert.ret_seq > 0 && op.insert.ret_lane > 0);

    struct job job = read_job(f, "hospital", "CLM-1");
    assert_int_equal(job.seq, op.insert.ret_seq);
    assert_int_equal(job.lane, op.insert.ret_lane);
    assert_text(job.destination, "claims");
    assert_text(job.tenant, "hospital");
    assert_text(job.id, "CLM-1");
    assert_int_equal(job.state, STATE_PENDING);
    assert_int_equal(job.priority, PRIORITY_HIGH);
    assert_int_equal(job.step, STEP_SEND);
    assert_int_equal(job.rank, -7);
    assert_int_equal(job.generation, 1);
    assert_int_equal(job.attempts + job.attempts_total + job.retry_count + job.step_count + job.redrives_auto, 0);
    assert_false(job.doubted);
    assert_int_equal(job.created_at, f->now);
    assert_int_equal(job.updated_at, f->now);
    assert_int_equal(job.run_at, f->now - 5);
    assert_int_equal(job.deadline, f->now + HOUR_MS);
    assert_true(job.first_at == INSTANT_NONE && job.dead_at == INSTANT_NONE && job.expires_at == INSTANT_NONE);
    assert_int_equal(job.lease_token, 0);
    assert_int_equal(job.last_class, OUTCOME_NONE);
    assert_int_equal(job.last_code.len + job.last_error.len + job.dead_code.len + job.reference.len, 0);
    assert_text(job.content_type, "application/json");
    assert_text(job.headers, "{\"A\":\"b\"}");
    assert_text(job.correlation_id, "c-1");
    assert_text(job.metadata, "{\"m\":1}");
    assert_text(job.payload, "<xml/>");

    struct event event = last_event(f, "hospital", "CLM-1", EVENT_TYPE_ACCEPTED);
    assert_int_equal(event.number, job.last_event);
    assert_int_equal(event.at, f->now);
    assert_int_equal(event.state, STATE_PENDING);
    assert_int_equal(event.attempt, 0);
    assert_int_equal(event.previous, 0);
    assert_text(event.destination, "claims");
    assert_text(event.data, "{}");
}

/* S2-082 */
static void insert_again_with_the_same_body_changes_nothing(void **state)
{
    struct store_fixture *f = *state;
    struct store_op first = insert_op(f, "d", "t", "a");
    assert_run(f, &first, STATUS_OK);
    f->now += 10;
    struct store_op again = insert_op(f, "d", "t", "a");
    again.insert.priority = PRIORITY_CRITICAL;
    assert_run(f, &again, STATUS_OK);
    assert_true(again.insert.ret_existed);
    assert_int_equal(again.insert.ret_seq, first.insert.ret_seq);
    assert_int_equal(again.insert.ret_lane, first.insert.ret_lane);
    assert_text(again.insert.ret_id, "a");
    struct job job = read_job(f, "t", "a");
    assert_int_equal(job.updated_at, f->now - 10);
    assert_int_equal(job.priority, PRIORITY_NORMAL);
    size_t count;
    read_history(f, "t", "a", &count);
    assert_int_equal(count, 1);
}

static void insert_again_with_another_body_is_a_conflict(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct store_op ops[4];
    for (size_t i = 0; i < 4; i++)
        ops[i] = insert_op(f, i == 3 ? "other" : "d", "t", "a");
    ops[0].insert.payload = SLICE("[]");
    ops[1].insert.content_type = SLICE("text/plain");
    ops[2].insert.headers = SLICE("{\"X\":\"y\"}");
    fixture_apply(f, ops, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(ops[i].status, STATUS_CONFLICT);
    assert_text(read_job(f, "t", "a").payload, "{}");
    assert_int_equal(read_lane(f, lane).counts.pending, 1);
}

static void ids_are_of_their_tenant(void **state)
{
    struct store_fixture *f = *state;
    struct store_op a = insert_op(f, "d", "t", "ab");
    struct store_op b = insert_op(f, "d", "ta", "b");
    struct store_op c = insert_op(f, "d", "", "tab");
    b.insert.payload = SLICE("b");
    c.insert.payload = SLICE("c");
    assert_run(f, &a, STATUS_OK);
    assert_run(f, &b, STATUS_OK);
    assert_run(f, &c, STATUS_OK);
    assert_true(a.insert.ret_lane != b.insert.ret_lane && b.insert.ret_lane != c.insert.ret_lane);
    assert_text(read_job(f, "ta", "b").payload, "b");
    assert_text(read_job(f, "", "tab").payload, "c");
    assert_false(job_exists(f, "", "ab"));
}

static void made_ids_are_ordered_and_unique(void **state)
{
    struct store_fixture *f = *state;
    enum { COUNT = 200 };
    struct store_op ops[COUNT];
    char before[JOB_ID_MADE_BYTES + 1] = "";
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT; i++)
            ops[i] = insert_op(f, "d", i % 2 ? "t" : "u", "");
        fixture_apply(f, ops, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            assert_int_equal(ops[i].status, STATUS_OK);
            assert_false(ops[i].insert.ret_existed);
            assert_int_equal(ops[i].insert.ret_id.len, JOB_ID_MADE_BYTES);
            assert_true(memcmp(before, ops[i].insert.ret_id.data, JOB_ID_MADE_BYTES) < 0);
            memcpy(before, ops[i].insert.ret_id.data, JOB_ID_MADE_BYTES);
        }
        f->now += round; /* also twice in the same millisecond */
    }
    assert_true(job_exists(f, "t", before));
}

static void a_made_id_never_takes_one_in_use(void **state)
{
    struct store_fixture *f = *state;
    /* Whatever number the store would use next, somebody has it already. */
    for (uint64_t number = 0; number < 64; number++) {
        char id[JOB_ID_MADE_BYTES + 1];
        job_id_make(f->now, number, id);
        put(f, id);
    }
    struct store_op op = insert_op(f, "d", "t", "");
    op.insert.payload = SLICE("mine");
    assert_run(f, &op, STATUS_OK);
    assert_false(op.insert.ret_existed);
    struct job job;
    struct error err = { 0 };
    assert_int_equal(f->store->ops->reader_job(f->reader, SLICE("t"), op.insert.ret_id, true, &f->memory, &job, &err),
                     STATUS_OK);
    assert_text(job.payload, "mine");
}

/* S2-072 S2-076 A-16 */
static void a_full_store_refuses(void **state)
{
    struct store_fixture *f = *state;
    fixture_reopen(f, &(struct store_settings){ .pending_max = 2 });
    int64_t lane = put(f, "a");
    struct store_op later = insert_op(f, "d", "t", "b");
    later.insert.run_at = f->now + HOUR_MS;
    assert_run(f, &later, STATUS_OK);
    struct store_op third = insert_op(f, "other", "u", "c");
    assert_run(f, &third, STATUS_FULL);
    assert_false(job_exists(f, "u", "c"));
    put(f, "a"); /* the same again is no new job */
    struct store_op own = insert_op(f, "other", "u", "own");
    own.insert.beyond_limit = true;
    assert_run(f, &own, STATUS_OK);
    struct store_op gone = job_op(OP_CANCEL, "u", "own");
    assert_run(f, &gone, STATUS_OK);

    take_and_settle(f, lane, EVENT_DELIVER);
    assert_run(f, &third, STATUS_OK);
    struct store_op fourth = insert_op(f, "d", "t", "e");
    assert_run(f, &fourth, STATUS_FULL);
    struct store_op cancel = job_op(OP_CANCEL, "t", "b");
    assert_run(f, &cancel, STATUS_OK);
    assert_run(f, &fourth, STATUS_OK);
}

/* One tenant has all while it is alone, half as soon as another is known, at all destinations together. */
static void a_tenant_has_its_share_of_the_queue(void **state)
{
    static const struct store_settings halves = { .pending_max = 8, .own_tenant = { "own", 3 } };
    struct store_fixture *f = *state;
    char id[8];
    fixture_reopen(f, &halves);
    struct store_op own = insert_op(f, "d", "own", "n");
    own.insert.beyond_limit = true;
    assert_run(f, &own, STATUS_OK);
    for (int i = 0; i < 5; i++) {
        snprintf(id, sizeof id, "a%d", i);
        struct store_op more = insert_op(f, i % 2 ? "d" : "other", "t", id);
        assert_run(f, &more, STATUS_OK); /* the daemon's own tenant is none */
    }
    struct store_op first = insert_op(f, "d", "u", "b");
    assert_run(f, &first, STATUS_OK);
    struct store_op over = insert_op(f, "third", "t", "over");
    assert_run(f, &over, STATUS_FULL);
    assert_true(over.insert.ret_tenant_full);
    struct store_op second = insert_op(f, "d", "u", "c");
    assert_run(f, &second, STATUS_OK); /* which is the eighth */
    struct store_op third = insert_op(f, "d", "u", "e");
    assert_run(f, &third, STATUS_FULL);
    assert_false(third.insert.ret_tenant_full);
    struct store_op cancel = job_op(OP_CANCEL, "t", "a0");
    assert_run(f, &cancel, STATUS_OK);
    assert_run(f, &over, STATUS_FULL);
    assert_true(over.insert.ret_tenant_full); /* four are half of eight */
    cancel = job_op(OP_CANCEL, "t", "a1");
    assert_run(f, &cancel, STATUS_OK);
    assert_run(f, &over, STATUS_OK);
}

/* Where somebody set it, also of a tenant that is alone. */
static void a_tenant_has_what_it_was_given(void **state)
{
    static const struct store_settings two = { .pending_max = 8, .pending_per_tenant = 2 };
    struct store_fixture *f = *state;
    fixture_reopen(f, &two);
    struct store_op first = insert_op(f, "d", "t", "1"), second = insert_op(f, "e", "t", "2"), third = insert_op(f, "d", "t", "3");
    struct store_op other = insert_op(f, "d", "u", "1");
    assert_run(f, &first, STATUS_OK);
    assert_run(f, &second, STATUS_OK);
    assert_run(f, &third, STATUS_FULL);
    assert_true(third.insert.ret_tenant_full);
    assert_run(f, &other, STATUS_OK);
}

static void what_cannot_be_is_refused(void **state)
{
    struct store_fixture *f = *state;
    struct store_op ops[4] = { insert_op(f, "", "t", "a"), insert_op(f, "d", "t", "a"), job_op(OP_PRIORITIZE, "t", "a"),
                               { .kind = OP_DESTINATION, .save = { .name = SLICE(""), .value = SLICE("{}") } } };
    ops[1].insert.priority = PRIORITY_COUNT;
    ops[2].job.priority = PRIORITY_COUNT;
    fixture_apply(f, ops, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(ops[i].status, STATUS_INVALID);
    size_t count;
    read_events(f, 0, &count);
    assert_int_equal(count, 0);
}

static void an_unknown_lane_has_nothing(void **state)
{
    struct store_fixture *f = *state;
    put(f, "a");
    const int64_t lanes[] = { 0, -1, 2, 1000000, INT64_MAX, INT64_MIN };
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        struct store_op op = claim_op(f, lanes[i], 10);
        assert_run(f, &op, STATUS_OK);
        assert_int_equal(op.claim.ret_count, 0);
    }
    assert_state(f, "a", STATE_PENDING);
}

/* S3-026 */
static void claims_follow_rank_then_arrival(void **state)
{
    struct store_fixture *f = *state;
    static const struct {
        const char *id;
        int64_t rank;
    } jobs[] = { { "e", 50 }, { "b", 10 }, { "c", 10 }, { "f", 50 }, { "a", -3 }, { "d", 20 } };
    int64_t lane = 0;
    for (size_t i = 0; i < 6; i++) {
        struct store_op op = insert_op(f, "d", "t", jobs[i].id);
        op.insert.rank = jobs[i].rank;
        assert_run(f, &op, STATUS_OK);
        lane = op.insert.ret_lane;
    }
    char order[7] = "";
    struct store_op first = claim_op(f, lane, 4);
    struct store_op second = claim_op(f, lane, 4);
    assert_run(f, &first, STATUS_OK);
    assert_run(f, &second, STATUS_OK);
    assert_int_equal(first.claim.ret_count, 4);
    assert_int_equal(second.claim.ret_count, 2);
    for (size_t i = 0; i < 6; i++)
        order[i] = (i < 4 ? first.claim.ret_jobs[i] : second.claim.ret_jobs[i - 4]).id.data[0];
    assert_string_equal(order, "abcdef");
}

/* In an outage those that have failed in it come last, whatever their rank; those of an earlier one are as all others. */
static void who_failed_in_an_outage_comes_last(void **state)
{
    struct store_fixture *f = *state;
    static const struct {
        const char *id;
        int64_t look_failed_ms; /* after the outage began; 0: not */
    } jobs[] = { { "a", 30 }, { "b", 0 }, { "c", 10 }, { "d", -5 }, { "e", 20 }, { "f", 0 } };
    instant since = f->now + 1000;
    int64_t lane = 0;
    for (size_t i = 0; i < 6; i++) {
        struct store_op op = insert_op(f, "d", "t", jobs[i].id);
        op.insert.rank = (int64_t)i;
        assert_run(f, &op, STATUS_OK);
        lane = op.insert.ret_lane;
    }
    for (size_t i = 0; i < 6; i++) {
        struct job job = take(f, lane);
        struct store_op op = settle_op(&job, EVENT_RETRY);
        op.settle.rank = job.rank;
        op.settle.failed_at = f->now;
        op.settle.look_failed_at = jobs[i].look_failed_ms != 0 ? since + jobs[i].look_failed_ms : 0;
        op.settle.run_at = f->now + 1; /* not ready before all have had their turn */
        assert_run(f, &op, STATUS_OK);
    }
    f->now += 1;
    promote(f);
    char order[7] = "";
    for (size_t i = 0; i < 6; i += 2) {
        struct store_op op = claim_op(f, lane, 2);
        op.claim.failed_last = since;
        assert_run(f, &op, STATUS_OK);
        assert_int_equal(op.claim.ret_count, 2);
        for (size_t k = 0; k < 2; k++)
            order[i + k] = op.claim.ret_jobs[k].id.data[0];
    }
    assert_string_equal(order, "bdfcea");
    assert_int_equal(read_job(f, "t", "d").look_failed_at, since - 5);
    assert_true(read_job(f, "t", "b").look_failed_at == INSTANT_NONE && read_job(f, "t", "b").failed_at != INSTANT_NONE);
}

/* S3-023 S3-025 S3-027 S3-036 */
static void priority_goes_first_until_age_overtakes(void **state)
{
    struct store_fixture *f = *state;
    const int64_t aging_ms = HOUR_MS;
    instant start = f->now;
    static const struct {
        const char *id;
        enum priority priority;
        int64_t at_ms;
    } jobs[] = {
        { "old-normal", PRIORITY_NORMAL, 0 },
        { "high", PRIORITY_HIGH, 30 * MINUTE_MS },
        { "critical", PRIORITY_CRITICAL, HOUR_MS },
        { "late-critical", PRIORITY_CRITICAL, 2 * HOUR_MS + 1 },
    };
    static const char *const expected[] = { "critical", "high", "old-normal", "late-critical" };
    int64_t lane = 0;
    for (size_t i = 0; i < 4; i++) {
        f->now = start + jobs[i].at_ms;
        struct store_op op = insert_op(f, "d", "t", jobs[i].id);
        op.insert.priority = jobs[i].priority;
        op.insert.rank = rank_of(jobs[i].priority, f->now, aging_ms);
        assert_run(f, &op, STATUS_OK);
        lane = op.insert.ret_lane;
    }
    for (size_t i = 0; i < 4; i++)
        assert_text(take(f, lane).id, expected[i]);
}

/* S3-024: what is stored once with its rank is served in time, without being sorted again. */
static void a_deadline_goes_first_when_it_is_near(void **state)
{
    struct store_fixture *f = *state;
    instant start = f->now;
    static const struct {
        const char *id;
        enum priority priority;
        int64_t at_ms, deadline_ms;
    } jobs[] = {
        { "normal", PRIORITY_NORMAL, 0, 0 },
        { "due", PRIORITY_NORMAL, 0, 2 * HOUR_MS },
        { "critical", PRIORITY_CRITICAL, HOUR_MS - 1, 0 },
        { "late-critical", PRIORITY_CRITICAL, HOUR_MS + 1, 0 },
    };
    static const char *const expected[] = { "critical", "due", "late-critical", "normal" };
    int64_t lane = 0;
    for (size_t i = 0; i < 4; i++) {
        f->now = start + jobs[i].at_ms;
        struct store_op op = insert_op(f, "d", "t", jobs[i].id);
        op.insert.priority = jobs[i].priority;
        op.insert.deadline = jobs[i].deadline_ms > 0 ? start + jobs[i].deadline_ms : INSTANT_NONE;
        op.insert.rank = rank_heed_deadline(rank_of(jobs[i].priority, f->now, HOUR_MS), f->now, op.insert.deadline, HOUR_MS);
        assert_run(f, &op, STATUS_OK);
        lane = op.insert.ret_lane;
    }
    for (size_t i = 0; i < 4; i++)
        assert_text(take(f, lane).id, expected[i]);
}

static void a_claim_is_bounded_in_bytes(void **state)
{
    static const struct {
        size_t bytes_max, count, left;
    } rows[] = { { 1, 1, 4 }, { 799, 1, 3 }, { 800, 2, 1 }, { 0, 1, 0 } };
    struct store_fixture *f = *state;
    char payload[400], id[16];
    int64_t lane = 0;
    memset(payload, 'x', sizeof payload);
    for (int i = 0; i < 5; i++) {
        snprintf(id, sizeof id, "b-%d", i);
        struct store_op op = insert_op(f, "claims", "hospital", id);
        op.insert.payload = (struct slice){ payload, sizeof payload };
        assert_run(f, &op, STATUS_OK);
        lane = op.insert.ret_lane;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct store_op op = claim_op(f, lane, 5);
        op.claim.bytes_max = rows[i].bytes_max;
        assert_run(f, &op, STATUS_OK);
        assert_int_equal(op.claim.ret_count, rows[i].count);
        assert_int_equal(op.claim.ret_left, rows[i].left);
    }
}

static void a_claim_counts_sends_only(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    static const struct {
        enum job_step next;
        int64_t attempts; /* after the claim */
    } steps[] = { { STEP_VERIFY, 1 }, { STEP_POLL, 1 }, { STEP_SEND, 1 }, { STEP_SEND, 2 }, { STEP_VERIFY, 3 }, { STEP_SEND, 3 } };
    instant first_at = f->now;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct job job = take(f, lane);
        assert_int_equal(job.attempts, steps[i].attempts);
        assert_int_equal(job.attempts_total, steps[i].attempts);
        assert_int_equal(job.first_at, first_at);
        assert_int_equal(job.step, i > 0 ? steps[i - 1].next : STEP_SEND);
        struct event event = last_event(f, "t", "a", EVENT_TYPE_CLAIMED);
        assert_int_equal(event.attempt, steps[i].attempts);
        struct store_op op = settle_op(&job, EVENT_RETRY);
        op.settle.step = steps[i].next;
        op.settle.step_count = (int64_t)i;
        f->now += 1000;
        assert_run(f, &op, STATUS_OK);
        assert_int_equal(read_job(f, "t", "a").step_count, i);
    }
}

/* C-70 */
static void a_claim_gives_a_lease(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct store_op op = claim_op(f, lane, 5);
    op.data = SLICE("{\"worker\":\"w\"}");
    f->now += 3;
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(op.claim.ret_count, 1);
    struct job *job = &op.claim.ret_jobs[0];
    assert_int_equal(job->state, STATE_RUNNING);
    assert_int_equal(job->lease_until, op.claim.lease_until);
    assert_true(job->lease_token > 0);
    assert_text(job->payload, "{}");
    assert_text(job->destination, "d");
    assert_text(job->tenant, "t");
    struct job saved = read_job(f, "t", "a");
    assert_int_equal(saved.lease_token, job->lease_token);
    assert_int_equal(saved.lease_until, job->lease_until);
    assert_int_equal(saved.updated_at, f->now);
    struct event event = last_event(f, "t", "a", EVENT_TYPE_CLAIMED);
    assert_text(event.data, "{\"worker\":\"w\"}");
    assert_int_equal(event.state, STATE_RUNNING);
    struct lane_counts counts = read_lane(f, lane).counts;
    assert_int_equal(counts.pending, 0);
    assert_int_equal(counts.running, 1);
    assert_int_equal(counts.ready, 0);
}

static void tokens_grow(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    put(f, "b");
    int64_t last = 0;
    for (int i = 0; i < 20; i++) {
        struct job job = take_and_settle(f, lane, EVENT_RETRY);
        assert_true(job.lease_token > last);
        last = job.lease_token;
    }
}

/* S4-024 */
static void claimers_never_share_a_job(void **state)
{
    struct store_fixture *f = *state;
    enum { JOBS = 30, CLAIMS = 5, MAX = 7 };
    int64_t lane = 0;
    for (int i = 0; i < JOBS; i++) {
        struct store_op op = insert_op(f, "d", "t", "");
        assert_run(f, &op, STATUS_OK);
        lane = op.insert.ret_lane;
    }
    struct store_op ops[CLAIMS];
    for (size_t i = 0; i < CLAIMS; i++)
        ops[i] = claim_op(f, lane, MAX);
    fixture_apply(f, ops, CLAIMS);
    int64_t seen[JOBS];
    size_t count = 0;
    for (size_t i = 0; i < CLAIMS; i++) {
        assert_int_equal(ops[i].claim.ret_count, i < 4 ? MAX : JOBS - 4 * MAX);
        for (size_t j = 0; j < ops[i].claim.ret_count; j++, count++) {
            for (size_t k = 0; k < count; k++)
                assert_true(seen[k] != ops[i].claim.ret_jobs[j].seq);
            seen[count] = ops[i].claim.ret_jobs[j].seq;
        }
    }
    assert_int_equal(count, JOBS);
}

/* S3-038 */
static void settle_reaches_every_state(void **state)
{
    struct store_fixture *f = *state;
    static const struct {
        const char *id;
        enum job_event event;
        enum job_state state;
        enum event_type type;
    } rows[] = {
        { "deliver", EVENT_DELIVER, STATE_COMPLETED, EVENT_TYPE_COMPLETED },
        { "retry", EVENT_RETRY, STATE_WAITING, EVENT_TYPE_RETRY_SCHEDULED },
        { "release", EVENT_RELEASE, STATE_WAITING, EVENT_TYPE_RELEASED },
        { "give-up", EVENT_GIVE_UP, STATE_DEAD, EVENT_TYPE_DEAD },
        { "expire", EVENT_EXPIRE, STATE_DEAD, EVENT_TYPE_EXPIRED },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t lane = put(f, rows[i].id);
        struct job job = take(f, lane);
        assert_text(job.id, rows[i].id);
        struct store_op op = settle_op(&job, rows[i].event);
        op.data = SLICE("{\"class\":\"x\"}");
        op.settle.step = STEP_VERIFY;
        op.settle.step_count = 4;
        op.settle.retry_count = 3;
        op.settle.rank = 77;
        op.settle.doubted = true;
        op.settle.run_at = f->now + HOUR_MS;
        op.settle.dead_ttl_ms = DAY_MS;
        op.settle.reference = SLICE("protocol-9");
        f->now += 20;
        assert_run(f, &op, STATUS_OK);

        assert_int_equal(op.settle.ret_lane, lane);
        struct job after = read_job(f, "t", rows[i].id);
        bool waits = rows[i].state == STATE_WAITING;
        bool dead = rows[i].state == STATE_DEAD;
        assert_string_equal(job_state_name(after.state), job_state_name(rows[i].state));
        assert_int_equal(after.lease_token, 0);
        assert_int_equal(after.retry_count, 3);
        assert_true(after.doubted);
        assert_int_equal(after.updated_at, f->now);
        assert_int_equal(after.last_class, op.settle.outcome);
        assert_slice(after.last_code, op.settle.code);
        assert_slice(after.last_error, op.settle.error);
        assert_text(after.reference, "protocol-9");
        assert_int_equal(after.step, waits ? STEP_VERIFY : STEP_SEND);
        assert_int_equal(after.rank, waits ? 77 : job.rank);
        assert_int_equal(after.run_at, waits ? op.settle.run_at : job.run_at);
        assert_true(after.dead_at == (dead ? f->now : INSTANT_NONE));
        assert_true(after.expires_at == (dead ? f->now + DAY_MS : INSTANT_NONE));
        assert_text(after.dead_code, !dead ? "" : rows[i].event == EVENT_EXPIRE ? "EXPIRED" : "MAX_RETRIES_EXCEEDED");
        struct event event = last_event(f, "t", rows[i].id, rows[i].type);
        assert_int_equal(event.state, rows[i].state);
        assert_int_equal(event.at, f->now);
        assert_int_equal(event.attempt, 1);
        assert_text(event.data, "{\"class\":\"x\"}");
        assert_int_equal(ready_in(f, lane), 0);
    }
    struct lane_counts counts = read_lane(f, 1).counts;
    assert_int_equal(counts.completed, 1);
    assert_int_equal(counts.waiting, 2);
    assert_int_equal(counts.dead, 2);
}

static void a_retry_that_is_due_is_ready_at_once(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job job = take(f, lane);
    struct store_op op = settle_op(&job, EVENT_RETRY);
    assert_run(f, &op, STATUS_OK);
    assert_state(f, "a", STATE_WAITING);
    assert_int_equal(ready_in(f, lane), 1);
    assert_int_equal(take(f, lane).attempts, 2);
}

static void an_undone_attempt_is_taken_back(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    take_and_settle(f, lane, EVENT_RETRY);
    struct job job = take(f, lane);
    assert_int_equal(job.attempts, 2);
    struct store_op op = settle_op(&job, EVENT_RELEASE);
    op.settle.attempt_undone = true;
    op.settle.step = STEP_VERIFY;
    assert_run(f, &op, STATUS_OK);
    struct job after = read_job(f, "t", "a");
    assert_int_equal(after.attempts, 1);
    assert_int_equal(after.attempts_total, 1);

    job = take(f, lane); /* a verify: the claim counted nothing, so there is nothing to take back */
    op = settle_op(&job, EVENT_RELEASE);
    op.settle.attempt_undone = true;
    assert_run(f, &op, STATUS_OK);
    after = read_job(f, "t", "a");
    assert_int_equal(after.attempts, 1);
    assert_int_equal(after.attempts_total, 1);
}

static void a_release_says_nothing_about_the_last_attempt(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    take_and_settle(f, lane, EVENT_RETRY);
    struct job job = take(f, lane);
    struct store_op op = settle_op(&job, EVENT_RELEASE);
    op.settle.outcome = OUTCOME_NONE;
    op.settle.code = SLICE("");
    op.settle.error = SLICE("");
    op.settle.attempt_undone = true;
    assert_run(f, &op, STATUS_OK);
    struct job after = read_job(f, "t", "a");
    assert_int_equal(after.last_class, OUTCOME_TRANSIENT);
    assert_text(after.last_code, "http:503");
    assert_text(after.last_error, "timeout");
}

static void a_reference_stays(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job job = take(f, lane);
    struct store_op op = settle_op(&job, EVENT_RETRY);
    op.settle.reference = SLICE("p-1");
    assert_run(f, &op, STATUS_OK);
    take_and_settle(f, lane, EVENT_RETRY);
    assert_text(read_job(f, "t", "a").reference, "p-1");
}

static void a_stale_token_changes_nothing(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job old = take_and_settle(f, lane, EVENT_RETRY);
    struct job job = take(f, lane);
    struct job before = read_job(f, "t", "a");
    static const enum job_event events[] = { EVENT_DELIVER, EVENT_RETRY, EVENT_RELEASE, EVENT_GIVE_UP, EVENT_EXPIRE };
    const int64_t tokens[] = { old.lease_token, 0, -1, job.lease_token + 1 };
    f->now += 5;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        for (size_t j = 0; j < sizeof events / sizeof *events; j++) {
            struct store_op op = settle_op(&job, events[j]);
            op.settle.token = tokens[i];
            assert_run(f, &op, STATUS_CONFLICT);
        }
        struct store_op extend = { .kind = OP_EXTEND, .extend = { job.seq, tokens[i], f->now + DAY_MS } };
        assert_run(f, &extend, STATUS_CONFLICT);
    }
    struct store_op gone = settle_op(&job, EVENT_DELIVER);
    gone.settle.seq += 1000;
    assert_run(f, &gone, STATUS_CONFLICT);
    struct job after = read_job(f, "t", "a");
    assert_int_equal(after.state, STATE_RUNNING);
    assert_int_equal(after.lease_token, before.lease_token);
    assert_int_equal(after.lease_until, before.lease_until);
    assert_int_equal(after.updated_at, before.updated_at);
    assert_int_equal(after.last_event, before.last_event);

    struct store_op right = settle_op(&job, EVENT_DELIVER);
    assert_run(f, &right, STATUS_OK);
    assert_run(f, &right, STATUS_CONFLICT); /* the second time it is stale too */
    assert_int_equal(read_lane(f, lane).counts.completed, 1);
}

/* S2-005 A-15 S2-038 */
static void a_dead_job_must_say_why(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job job = take(f, lane);
    static const enum job_event events[] = { EVENT_GIVE_UP, EVENT_EXPIRE };
    for (size_t i = 0; i < 2; i++) {
        struct store_op op = settle_op(&job, events[i]);
        op.settle.error = SLICE("");
        assert_run(f, &op, STATUS_INVALID);
    }
    assert_state(f, "a", STATE_RUNNING);
}

static void a_settle_takes_no_other_event(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job job = take(f, lane);
    static const enum job_event events[] = { EVENT_CLAIM, EVENT_CANCEL, EVENT_REDRIVE, EVENT_RESEND };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        struct store_op op = settle_op(&job, events[i]);
        assert_run(f, &op, STATUS_INVALID);
    }
    assert_state(f, "a", STATE_RUNNING);
}

static void a_long_error_is_cut(void **state)
{
    struct store_fixture *f = *state;
    static char text[ERROR_TEXT_STORED_BYTES_MAX + 500];
    memset(text, 'e', sizeof text);
    int64_t lane = put(f, "a");
    put(f, "b");
    for (size_t i = 0; i < 2; i++) {
        struct job job = take(f, lane);
        struct store_op op = settle_op(&job, EVENT_GIVE_UP);
        op.settle.error = (struct slice){ text, sizeof text };
        assert_run(f, &op, STATUS_OK);
        assert_slice(read_job(f, "t", i == 0 ? "a" : "b").last_error,
                     (struct slice){ text, ERROR_TEXT_STORED_BYTES_MAX - i });
        memcpy(text + ERROR_TEXT_STORED_BYTES_MAX - 1, "\xc3\xa7", 2); /* the limit is inside a character now */
    }
}

static void a_lease_is_prolonged(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job job = take(f, lane);
    struct store_op op = { .kind = OP_EXTEND, .extend = { job.seq, job.lease_token, f->now + DAY_MS } };
    assert_run(f, &op, STATUS_OK);
    struct job after = read_job(f, "t", "a");
    assert_int_equal(after.lease_until, f->now + DAY_MS);
    assert_int_equal(after.lease_token, job.lease_token);
    assert_int_equal(last_event(f, "t", "a", EVENT_TYPE_LEASE_EXTENDED).state, STATE_RUNNING);
    struct store_op settle = settle_op(&job, EVENT_DELIVER);
    assert_run(f, &settle, STATUS_OK);
    assert_run(f, &op, STATUS_CONFLICT);
}

const struct store_case store_cases_write[] = {
    { "insert keeps what it was given", insert_keeps_what_it_was_given },
    { "insert again with the same body changes nothing", insert_again_with_the_same_body_changes_nothing },
    { "insert again with another body is a conflict", insert_again_with_another_body_is_a_conflict },
    { "ids are of their tenant", ids_are_of_their_tenant },
    { "made ids are ordered and unique", made_ids_are_ordered_and_unique },
    { "a made id never takes one in use", a_made_id_never_takes_one_in_use },
    { "a full store refuses", a_full_store_refuses },
    { "a tenant has its share of the queue", a_tenant_has_its_share_of_the_queue },
    { "a tenant has what it was given", a_tenant_has_what_it_was_given },
    { "what cannot be is refused", what_cannot_be_is_refused },
    { "an unknown lane has nothing", an_unknown_lane_has_nothing },
    { "claims follow rank, then arrival", claims_follow_rank_then_arrival },
    { "who failed in an outage comes last", who_failed_in_an_outage_comes_last },
    { "priority goes first until age overtakes", priority_goes_first_until_age_overtakes },
    { "a deadline goes first when it is near", a_deadline_goes_first_when_it_is_near },
    { "a claim is bounded in bytes", a_claim_is_bounded_in_bytes },
    { "a claim counts sends only", a_claim_counts_sends_only },
    { "a claim gives a lease", a_claim_gives_a_lease },
    { "tokens grow", tokens_grow },
    { "claimers never share a job", claimers_never_share_a_job },
    { "settle reaches every state", settle_reaches_every_state },
    { "a retry that is due is ready at once", a_retry_that_is_due_is_ready_at_once },
    { "an undone attempt is taken back", an_undone_attempt_is_taken_back },
    { "a release says nothing about the last attempt", a_release_says_nothing_about_the_last_attempt },
    { "a reference stays", a_reference_stays },
    { "a stale token changes nothing", a_stale_token_changes_nothing },
    { "a dead job must say why", a_dead_job_must_say_why },
    { "a settle takes no other event", a_settle_takes_no_other_event },
    { "a long error is cut", a_long_error_is_cut },
    { "a lease is prolonged", a_lease_is_prolonged },
    { 0 },
};
