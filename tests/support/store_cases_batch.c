#include "support/store_cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void one_refusal_leaves_the_others_alone(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job job = take(f, lane);
    struct store_op ops[8] = {
        insert_op(f, "d", "t", "b"),        settle_op(&job, EVENT_DELIVER), insert_op(f, "d", "t", "a"),
        job_op(OP_CANCEL, "t", "nobody"),   insert_op(f, "d", "t", "c"),    settle_op(&job, EVENT_DELIVER),
        job_op(OP_REDRIVE, "t", "a"),       claim_op(f, lane, 10),
    };
    static const enum status expected[8] = { STATUS_OK,        STATUS_CONFLICT, STATUS_CONFLICT, STATUS_NOT_FOUND,
                                             STATUS_OK,        STATUS_OK,       STATUS_CONFLICT, STATUS_OK };
    ops[1].settle.token++;
    ops[2].insert.payload = SLICE("other");
    fixture_apply(f, ops, 8);
    for (size_t i = 0; i < 8; i++)
        assert_string_equal(status_name(ops[i].status), status_name(expected[i]));
    assert_int_equal(ops[7].claim.ret_count, 2); /* the batch sees its own inserts */
    assert_state(f, "a", STATE_COMPLETED);
    assert_state(f, "b", STATE_RUNNING);
    size_t count;
    read_events(f, 0, &count);
    assert_int_equal(count, 7);
}

/* Whatever one operation wrote, the next one of the same batch finds, changes and takes away. */
static void a_batch_sees_all_its_rows(void **state)
{
    struct store_fixture *f = *state;
    struct job held = take(f, put(f, "held")), other = take(f, put(f, "other"));
    struct store_op ops[] = {
        { .kind = OP_EXTEND, .extend = { held.seq, held.lease_token, f->now + 90000 } },
        { .kind = OP_EXTEND, .extend = { other.seq, other.lease_token, f->now + 90000 } },
        settle_op(&held, EVENT_DELIVER), /* its lease was just written */
        job_op(OP_PRIORITIZE, "t", "other"),
        insert_op(f, "d", "t", "a"),
        insert_op(f, "d", "t", "a"), /* the same again */
        job_op(OP_PRIORITIZE, "t", "a"),
        job_op(OP_CANCEL, "t", "a"),
        insert_op(f, "d", "t", "b"),
        insert_op(f, "d", "t", ""),
        promote_op(),
        claim_op(f, held.lane, 1),
        claim_op(f, held.lane, 10),
        insert_op(f, "d", "t", "b"),
        settle_op(&other, EVENT_DELIVER),
        settle_op(&other, EVENT_DELIVER),
    };
    enum { COUNT = sizeof ops / sizeof ops[0] };
    fixture_apply(f, ops, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(ops[i].status, i == COUNT - 1 ? STATUS_CONFLICT : STATUS_OK);
    assert_true(ops[5].insert.ret_existed && ops[13].insert.ret_existed);
    assert_int_equal(ops[7].job.ret_state, STATE_CANCELLED);
    assert_int_equal(ops[11].claim.ret_count, 1);
    assert_text(ops[11].claim.ret_jobs[0].id, "b");
    assert_int_equal(ops[12].claim.ret_count, 1);
    assert_state(f, "held", STATE_COMPLETED);
    assert_state(f, "other", STATE_COMPLETED);
    assert_state(f, "a", STATE_CANCELLED);
    assert_state(f, "b", STATE_RUNNING);
    struct store_op orphans = { .kind = OP_ORPHANS, .orphans = { .until = INSTANT_MAX, .max = 10 } };
    fixture_apply(f, &orphans, 1);
    assert_int_equal(orphans.orphans.ret_count, 2); /* no lease came back after its job was done */
    fixture_audit(f);
}

/* In one batch leases end in a row and with gaps, and one that ended is followed by another of the same job. */
static void leases_end_and_begin_in_one_batch(void **state)
{
    struct store_fixture *f = *state;
    static const char *const ids[] = { "a", "b", "c", "d", "e" };
    struct job jobs[5];
    for (size_t i = 0; i < 5; i++)
        jobs[i] = take(f, put(f, ids[i]));
    struct store_op ops[] = {
        settle_op(&jobs[0], EVENT_RETRY),
        settle_op(&jobs[1], EVENT_DELIVER),
        settle_op(&jobs[3], EVENT_RETRY),
        job_op(OP_CANCEL, "t", "d"), /* it is read again, and runs no more */
        claim_op(f, jobs[0].lane, 1),
        settle_op(&jobs[4], EVENT_DELIVER),
    };
    enum { COUNT = sizeof ops / sizeof ops[0] };
    ops[0].settle.run_at = ops[0].settle.failed_at = f->now;
    ops[2].settle.run_at = f->now + 1000;
    fixture_apply(f, ops, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(ops[i].status, STATUS_OK);
    assert_int_equal(ops[4].claim.ret_count, 1);
    const struct job *again = &ops[4].claim.ret_jobs[0];
    assert_text(again->id, "a");
    static const enum job_state states[] = { STATE_RUNNING, STATE_COMPLETED, STATE_RUNNING, STATE_CANCELLED,
                                             STATE_COMPLETED };
    for (size_t i = 0; i < 5; i++)
        assert_state(f, ids[i], states[i]);
    assert_int_equal(read_job(f, "t", "a").lease_token, again->lease_token);
    assert_int_equal(read_job(f, "t", "a").failed_at, f->now);
    assert_int_equal(read_job(f, "t", "c").lease_token, jobs[2].lease_token);
    struct store_op late = settle_op(&jobs[0], EVENT_DELIVER), settled = settle_op(again, EVENT_DELIVER);
    assert_run(f, &late, STATUS_CONFLICT);
    assert_run(f, &settled, STATUS_OK);
    fixture_audit(f);
}

static void a_batch_may_be_as_large_as_said(void **state)
{
    struct store_fixture *f = *state;
    struct store_op *ops = calloc(STORE_BATCH_OPS_MAX + 1, sizeof *ops);
    assert_non_null(ops);
    for (size_t i = 0; i <= STORE_BATCH_OPS_MAX; i++)
        ops[i] = insert_op(f, "d", i % 2 ? "t" : "u", "");
    struct error err = { 0 };
    enum status status = f->store->ops->apply(f->store, f->now, ops, STORE_BATCH_OPS_MAX + 1, &f->memory, &err);
    assert_int_equal(status, STATUS_LIMIT);
    size_t count;
    read_events(f, 0, &count);
    assert_int_equal(count, 0);
    fixture_apply(f, ops, STORE_BATCH_OPS_MAX);
    for (size_t i = 0; i < STORE_BATCH_OPS_MAX; i++)
        assert_int_equal(ops[i].status, STATUS_OK);
    assert_int_equal(read_lane(f, 1).counts.ready + read_lane(f, 2).counts.ready, STORE_BATCH_OPS_MAX);
    fixture_apply(f, ops, 0); /* nothing is a batch too */
    free(ops);
}

static void payloads_are_bytes(void **state)
{
    struct store_fixture *f = *state;
    enum { BIG = 1024 * 1024 };
    unsigned char *big = malloc(BIG);
    assert_non_null(big);
    for (size_t i = 0; i < BIG; i++)
        big[i] = (unsigned char)(i * 131 + (i >> 8));
    const struct {
        const char *id;
        struct slice payload;
    } rows[] = {
        { "empty", { "", 0 } },
        { "one NUL", { "\0", 1 } },
        { "NULs inside", { "a\0b\0", 4 } },
        { "not UTF-8", { "\xff\xfe\x80", 3 } },
        { "big", { (const char *)big, BIG } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct store_op op = insert_op(f, "d", "t", rows[i].id);
        op.insert.payload = rows[i].payload;
        assert_run(f, &op, STATUS_OK);
        assert_slice(read_job(f, "t", rows[i].id).payload, rows[i].payload);
        assert_slice(take_and_settle(f, op.insert.ret_lane, EVENT_DELIVER).payload, rows[i].payload);
        assert_run(f, &op, STATUS_OK);
        assert_true(op.insert.ret_existed);
    }
    free(big);
}

static void names_are_taken_as_they_are(void **state)
{
    struct store_fixture *f = *state;
    static char longest[256];
    memset(longest, 'x', 255);
    static const char *const names[] = { "", " ", "a", "A", "Hospital São João", "日本", "a/b?c=%20", "'; --", "\"", longest };
    enum { COUNT = sizeof names / sizeof *names };
    int64_t lanes[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        struct store_op op = insert_op(f, "d", names[i], "same");
        assert_run(f, &op, STATUS_OK);
        assert_false(op.insert.ret_existed);
        lanes[i] = op.insert.ret_lane;
        for (size_t j = 0; j < i; j++)
            assert_true(lanes[j] != lanes[i]);
        if (i > 0) { /* an id is never empty */
            op = insert_op(f, "e", "t", names[i]);
            assert_run(f, &op, STATUS_OK);
            assert_text(read_job(f, "t", names[i]).id, names[i]);
        }
    }
    for (size_t i = 0; i < COUNT; i++) {
        struct job job = read_job(f, names[i], "same");
        assert_text(job.tenant, names[i]);
        assert_int_equal(job.lane, lanes[i]);
        assert_text(read_lane(f, lanes[i]).tenant, names[i]);
        last_event(f, names[i], "same", EVENT_TYPE_ACCEPTED);
        assert_text(take(f, lanes[i]).tenant, names[i]);
    }
}

static void event_data_has_its_limit(void **state)
{
    struct store_fixture *f = *state;
    static char text[EVENT_DATA_BYTES_MAX + 1];
    memset(text, 'd', sizeof text);
    struct store_op ops[2] = { insert_op(f, "d", "t", "a"), insert_op(f, "d", "t", "b") };
    ops[0].data = (struct slice){ text, EVENT_DATA_BYTES_MAX };
    ops[1].data = (struct slice){ text, EVENT_DATA_BYTES_MAX + 1 };
    fixture_apply(f, ops, 2);
    assert_int_equal(ops[0].status, STATUS_OK);
    assert_int_equal(ops[1].status, STATUS_LIMIT);
    assert_int_equal(last_event(f, "t", "a", EVENT_TYPE_ACCEPTED).data.len, EVENT_DATA_BYTES_MAX);
    assert_false(job_exists(f, "t", "b"));
}

/* Everything that a reader can see, as one text. */
static char *snapshot(struct store_fixture *f)
{
    enum { BYTES = 256 * 1024 };
    char *text = arena_alloc(&f->memory, BYTES);
    assert_non_null(text);
    size_t used = 0, count;
    struct job *jobs = read_jobs(f, (struct job_filter){ 0 }, STORE_PAGE_MAX, &count);
    for (size_t i = 0; i < count; i++) {
        const struct job *job = &jobs[i];
        const int64_t numbers[] = {
            job->seq,          job->lane,     (int64_t)job->state, (int64_t)job->priority, (int64_t)job->step, job->rank,
            job->generation,   job->attempts, job->attempts_total, job->retry_count,       job->redrives_auto, job->doubted,
            job->first_at,     job->run_at,   job->updated_at,     job->expires_at,        job->lease_token,   job->lease_until,
            job->last_event,
        };
        for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++)
            used += (size_t)snprintf(text + used, BYTES - used, "%" PRId64 " ", numbers[j]);
        used += (size_t)snprintf(text + used, BYTES - used, "%.*s/%.*s [%.*s|%.*s|%.*s|%.*s]\n", SLICE_ARG(job->tenant),
                                 SLICE_ARG(job->id), SLICE_ARG(job->last_code), SLICE_ARG(job->last_error),
                                 SLICE_ARG(job->dead_code), SLICE_ARG(job->payload));
    }
    struct event *events = read_events(f, 0, &count);
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, BYTES - used, "%" PRId64 " %s %.*s %02x%02x\n", events[i].number,
                                 event_type_name(events[i].type), SLICE_ARG(events[i].job), events[i].hash[0], events[i].hash[1]);
    struct error err = { 0 };
    struct lane *lanes;
    assert_int_equal(f->store->ops->reader_lanes(f->reader, 0, 100, &f->memory, &lanes, &count, &err), STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        const struct lane_counts *counts = &lanes[i].counts;
        const int64_t numbers[] = { lanes[i].id,       counts->pending, counts->running,   counts->waiting,
                                    counts->completed, counts->dead,    counts->cancelled, counts->ready };
        for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++)
            used += (size_t)snprintf(text + used, BYTES - used, "%" PRId64 " ", numbers[j]);
    }
    struct slice saved = SLICE("none");
    enum status status = f->store->ops->reader_saved(f->reader, SPACE_DESTINATION, SLICE("d"), &f->memory, &saved, &err);
    used += (size_t)snprintf(text + used, BYTES - used, "d: %s %.*s\n", status_name(status), SLICE_ARG(saved));
    status = f->store->ops->reader_saved(f->reader, SPACE_DESTINATION, SLICE("new"), &f->memory, &saved, &err);
    used += (size_t)snprintf(text + used, BYTES - used, "new: %s\n", status_name(status));
    assert_true(used < BYTES);
    return text;
}

enum { EVERY_KIND = 21 };

/* A batch with every kind of change in it. */
static void every_kind(struct store_fixture *f, const struct job *running, struct store_op ops[EVERY_KIND])
{
    static struct store_op exported;
    struct store_op batch[EVERY_KIND] = {
        insert_op(f, "d", "t", "new"),
        insert_op(f, "new", "new", "new"),
        claim_op(f, running[0].lane, 2),
        settle_op(&running[0], EVENT_DELIVER),
        settle_op(&running[1], EVENT_RETRY),
        settle_op(&running[2], EVENT_GIVE_UP),
        { .kind = OP_EXTEND, .extend = { running[3].seq, running[3].lease_token, f->now + DAY_MS } },
        job_op(OP_CANCEL, "t", "cancel"),
        job_op(OP_PRIORITIZE, "t", "prioritize"),
        job_op(OP_REDRIVE, "t", "redrive"),
        job_op(OP_PURGE, "t", "purge"),
        insert_op(f, "d", "t", "purge"),
        { .kind = OP_DESTINATION, .save = { .name = SLICE("d"), .value = SLICE("changed") } },
        { .kind = OP_DESTINATION, .save = { .name = SLICE("new"), .value = SLICE("new") } },
        { .kind = OP_SAVE, .save = { SPACE_DESTINATION, SLICE("new"), SLICE("newer") } },
        { .kind = OP_SAVE, .save = { SLICE("other"), SLICE("d"), SLICE("") } },
        { .kind = OP_NOTE, .data = SLICE("{}") },
        promote_op(),
        { .kind = OP_TRIM, .trim = { .before = f->now, .max = 100 } },
        { .kind = OP_ORPHANS, .orphans = { .until = INSTANT_MAX, .max = 100 } },
        job_op(OP_PURGE, "t", "export"),
    };
    exported = insert_op(f, "archive", "t", "exported");
    batch[20].job.export = &exported.insert;
    batch[9].job.payload_given = true;
    batch[9].job.payload = SLICE("corrected");
    memcpy(ops, batch, sizeof batch);
}

void batch_fails_and_leaves_nothing(struct store_fixture *f, batch_try try)
{
    struct job running[4];
    int64_t lane = 0;
    for (size_t i = 0; i < 4; i++) {
        struct store_op op = insert_op(f, "d", "t", "");
        assert_run(f, &op, STATUS_OK);
        running[i] = take(f, lane = op.insert.ret_lane);
    }
    put(f, "redrive");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    put(f, "purge");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    put(f, "export");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    struct store_op scheduled = insert_op(f, "d", "t", "scheduled");
    scheduled.insert.run_at = f->now + 10;
    assert_run(f, &scheduled, STATUS_OK);
    struct store_op expiring = insert_op(f, "d", "t", "expiring");
    expiring.insert.deadline = f->now + 10;
    expiring.insert.rank = INT32_MAX + f->now; /* the claim leaves it alone */
    assert_run(f, &expiring, STATUS_OK);
    put(f, "x");
    put(f, "y");
    put(f, "cancel");
    put(f, "prioritize");
    struct store_op keep = { .kind = OP_DESTINATION, .save = { .name = SLICE("d"), .value = SLICE("kept") } };
    assert_run(f, &keep, STATUS_OK);
    f->now += 20;

    char *before = strdup(snapshot(f));
    struct store_op ops[EVERY_KIND];
    enum status status = STATUS_NO_MEMORY;
    size_t failures = 0;
    for (size_t round = 0; status != STATUS_OK; round++) {
        assert_true(round < 10000);
        every_kind(f, running, ops);
        status = try(f, ops, EVERY_KIND, round);
        if (status != STATUS_OK) {
            assert_int_equal(status, STATUS_NO_MEMORY);
            assert_string_equal(snapshot(f), before);
            failures++;
            fixture_forget(f);
        }
    }
    free(before);
    assert_true(failures > 10);
    for (size_t i = 0; i < EVERY_KIND; i++)
        if (ops[i].status != STATUS_OK)
            fail_msg("operation %zu: %s", i, status_name(ops[i].status));
    assert_int_equal(ops[17].promote.ret_promoted, 1);
    assert_int_equal(ops[17].promote.ret_expired, 1);
    assert_state(f, "expiring", STATE_DEAD);
    assert_text(read_job(f, "t", "redrive").payload, "corrected");
}

/* A worker that says it twice, in a hurry: the first word counts. */
static void a_lease_is_settled_once_in_a_batch(void **state)
{
    struct store_fixture *f = *state;
    struct job job = take(f, put(f, "twice"));
    struct store_op batch[] = { settle_op(&job, EVENT_DELIVER), settle_op(&job, EVENT_RELEASE), settle_op(&job, EVENT_DELIVER) };
    fixture_apply(f, batch, sizeof batch / sizeof *batch);
    assert_int_equal(batch[0].status, STATUS_OK);
    assert_int_equal(batch[1].status, STATUS_CONFLICT);
    assert_int_equal(batch[2].status, STATUS_CONFLICT);
    assert_state(f, "twice", STATE_COMPLETED);
}

/* Jobs that are done at their first attempt in one batch, with other codes and more to say: each is as it was settled. */
static void what_was_done_is_known(void **state)
{
    static const struct {
        const char *id, *code, *reference, *error;
        int64_t retry_count;
    } rows[] = { { "a", "http:200", "", "", 0 },     { "b", "http:200", "R-1", "", 0 }, { "c", "http:201", "", "", 0 },
                 { "d", "http:201", "", "late", 0 }, { "e", "", "", "", 0 },            { "f", "http:200", "", "", 2 } };
    enum { COUNT = sizeof rows / sizeof *rows };
    struct store_fixture *f = *state;
    struct store_op settle[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        struct job job = take(f, put(f, rows[i].id));
        settle[i] = settle_op(&job, EVENT_DELIVER);
        settle[i].settle.outcome = OUTCOME_DELIVERED;
        settle[i].settle.code = slice_from(rows[i].code);
        settle[i].settle.reference = slice_from(rows[i].reference);
        settle[i].settle.error = slice_from(rows[i].error);
        settle[i].settle.retry_count = rows[i].retry_count;
        settle[i].settle.forget_at = f->now + HOUR_MS + (int64_t)i;
    }
    fixture_apply(f, settle, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        struct job job = read_job(f, "t", rows[i].id);
        assert_int_equal(job.state, STATE_COMPLETED);
        assert_int_equal(job.last_class, OUTCOME_DELIVERED);
        assert_text(job.last_code, rows[i].code);
        assert_text(job.reference, rows[i].reference);
        assert_text(job.last_error, rows[i].error);
        assert_int_equal(job.retry_count, rows[i].retry_count);
        assert_int_equal(job.attempts, 1);
        assert_int_equal(job.first_at, f->now);
        assert_true(job.deadline == INSTANT_NONE && job.failed_at == INSTANT_NONE && job.dead_at == INSTANT_NONE);
    }
}

/* A dead letter is corrected in the batch that made it one: what is sent next is whole. */
static void what_died_is_corrected_at_once(void **state)
{
    struct store_fixture *f = *state;
    struct store_op insert = insert_op(f, "d", "t", "a");
    insert.insert.content_type = SLICE("application/json");
    insert.insert.headers = SLICE("{\"x-one\":\"1\"}");
    assert_run(f, &insert, STATUS_OK);
    struct job job = take(f, insert.insert.ret_lane);
    struct store_op ops[] = { settle_op(&job, EVENT_GIVE_UP), job_op(OP_REDRIVE, "t", "a") };
    ops[1].job.rank = f->now;
    ops[1].job.payload_given = true;
    ops[1].job.payload = SLICE("{\"corrected\":true}");
    fixture_apply(f, ops, 2);
    assert_true(ops[0].status == STATUS_OK && ops[1].status == STATUS_OK);
    job = take(f, job.lane);
    assert_false(job.damaged);
    assert_text(job.payload, "{\"corrected\":true}");
    assert_text(job.content_type, "application/json");
}

static void assert_claimed(const struct store_op *op, const char *ids, size_t left)
{
    char claimed[64] = "";
    for (size_t i = 0; i < op->claim.ret_count; i++)
        snprintf(claimed + strlen(claimed), sizeof claimed - strlen(claimed), "%.*s ", (int)op->claim.ret_jobs[i].id.len,
                 op->claim.ret_jobs[i].id.data);
    assert_int_equal(op->status, STATUS_OK);
    assert_string_equal(claimed, ids);
    assert_int_equal(op->claim.ret_left, left);
}

/* Each begins where the one before it ended, whether for the number it wanted or for the bytes, and sees what is new. */
static void claims_of_a_lane_follow_each_other(void **state)
{
    struct store_fixture *f = *state;
    static const char *const ids[] = { "a", "b", "c", "d", "e", "f", "g" };
    char payload[400];
    int64_t lane = 0;
    memset(payload, 'x', sizeof payload);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct store_op op = insert_op(f, "d", "t", ids[i]);
        op.insert.payload = (struct slice){ payload, sizeof payload };
        assert_run(f, &op, STATUS_OK);
        lane = op.insert.ret_lane;
    }
    enum { COUNT = 8 };
    struct store_op ops[COUNT] = { claim_op(f, lane, 3),            claim_op(f, lane, 2), claim_op(f, lane, 0),
                                   insert_op(f, "d", "t", "first"), claim_op(f, lane, 2), claim_op(f, lane, 1),
                                   claim_op(f, lane, 9),            claim_op(f, lane, 9) };
    ops[0].claim.bytes_max = 799;
    ops[3].insert.rank = 1;
    ops[5].claim.failed_last = f->now;
    fixture_apply(f, ops, COUNT);
    assert_claimed(&ops[0], "a ", 2);
    assert_claimed(&ops[1], "b c ", 0);
    assert_claimed(&ops[2], "", 0);
    assert_claimed(&ops[4], "first d ", 0);
    assert_claimed(&ops[5], "e ", 0);
    assert_claimed(&ops[6], "f g ", 0);
    assert_claimed(&ops[7], "", 0);
}

/* The caller's memory for the results is too little. */
static enum status try_with_little(struct store_fixture *f, struct store_op *ops, size_t count, size_t round)
{
    struct arena little;
    struct error err = { 0 };
    arena_init(&little, round * 97 + 1);
    enum status status = f->store->ops->apply(f->store, f->now, ops, count, &little, &err);
    assert_int_equal(status != STATUS_OK, err.text[0] != '\0');
    arena_release(&little);
    return status;
}

static void a_batch_that_fails_leaves_nothing(void **state)
{
    batch_fails_and_leaves_nothing(*state, try_with_little);
}

const struct store_case store_cases_batch[] = {
    { "one refusal leaves the others alone", one_refusal_leaves_the_others_alone },
    { "a batch sees all its rows", a_batch_sees_all_its_rows },
    { "leases end and begin in one batch", leases_end_and_begin_in_one_batch },
    { "a lease is settled once in a batch", a_lease_is_settled_once_in_a_batch },
    { "what was done is known", what_was_done_is_known },
    { "what died is corrected at once", what_died_is_corrected_at_once },
    { "claims of a lane follow each other", claims_of_a_lane_follow_each_other },
    { "a batch may be as large as said", a_batch_may_be_as_large_as_said },
    { "payloads are bytes", payloads_are_bytes },
    { "names are taken as they are", names_are_taken_as_they_are },
    { "event data has its limit", event_data_has_its_limit },
    { "a batch that fails leaves nothing", a_batch_that_fails_leaves_nothing },
    { 0 },
};
