/* Dead letters that become jobs elsewhere before they are deleted: C-37. */
#include "support/store_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TTL_MS = 1000, WANTED_MS = 600, UNWANTED_MS = 60, MANY = 3000, HUGE_BYTES = 8 << 20 };

static int64_t put_dead(struct store_fixture *f, const char *destination, const char *tenant, const char *id)
{
    struct store_op op = insert_op(f, destination, tenant, id);
    assert_run(f, &op, STATUS_OK);
    int64_t lane = op.insert.ret_lane;
    struct job job = take(f, lane);
    op = settle_op(&job, EVENT_GIVE_UP);
    op.settle.dead_ttl_ms = TTL_MS;
    assert_run(f, &op, STATUS_OK);
    return lane;
}

/* What time does while letters of "d" are exported and `room` of them are wanted. */
static struct op_promote promote_exporting(struct store_fixture *f, size_t room, struct due_letter *due)
{
    struct dead_export *exports = arena_alloc(&f->memory, sizeof *exports);
    assert_non_null(exports);
    *exports = (struct dead_export){ .destination = SLICE("d"), .room = room, .ret_count = 99 };
    struct store_op op = promote_op();
    op.promote.exports = exports;
    op.promote.export_count = 1;
    op.promote.due = due;
    op.promote.wanted_ms = WANTED_MS;
    op.promote.unwanted_ms = UNWANTED_MS;
    assert_run(f, &op, STATUS_OK);
    return op.promote;
}

/* The letter `id` of "t" as a job of "archive". */
static struct store_op export_op(const struct store_fixture *f, const char *id, const struct store_op *insert)
{
    struct store_op op = job_op(OP_PURGE, "t", id);
    (void)f;
    op.data = SLICE("{\"exported_to\":\"archive\"}");
    op.job.export = (struct op_insert *)(uintptr_t)&insert->insert;
    return op;
}

static void letters_to_export_are_put_off(void **state)
{
    struct store_fixture *f = *state;
    struct due_letter due[8];
    int64_t lane = put_dead(f, "d", "t", "a");
    put_dead(f, "d", "t", "b");
    put_dead(f, "other", "t", "c");
    struct job a = read_job(f, "t", "a");
    size_t before, after;
    read_events(f, 0, &before);
    f->now += TTL_MS;
    struct op_promote result = promote_exporting(f, 1, due);
    assert_int_equal(result.ret_put_off, 2);
    assert_int_equal(result.ret_dead_deleted, 1); /* of the other */
    assert_int_equal(result.ret_due_count, 1);
    assert_int_equal(result.exports[0].ret_count, 1);
    assert_int_equal(due[0].seq, a.seq);
    assert_int_equal(due[0].lane, lane);
    assert_int_equal(due[0].dead_at, a.dead_at);
    assert_int_equal(result.ret_next_at, f->now + UNWANTED_MS);
    assert_int_equal(read_job(f, "t", "a").expires_at, f->now + WANTED_MS);
    assert_int_equal(read_job(f, "t", "b").expires_at, f->now + UNWANTED_MS);
    assert_int_equal(read_job(f, "t", "a").updated_at, a.updated_at);
    assert_int_equal(read_lane(f, lane).counts.dead, 2);
    read_events(f, 0, &after);
    assert_int_equal(after, before + 1); /* of the other: a letter that is put off has none */
    f->now += UNWANTED_MS;
    result = promote_exporting(f, 8, due);
    assert_int_equal(result.ret_due_count, 1); /* it does not wait for the one that was wanted before it */
    assert_int_equal(due[0].seq, read_job(f, "t", "b").seq);
    f->now += WANTED_MS;
    assert_int_equal(promote_exporting(f, 0, due).ret_put_off, 2);
    f->now += UNWANTED_MS;
    assert_int_equal(promote(f).ret_dead_deleted, 2); /* nobody exports them any more */
}

static void a_letter_becomes_a_job(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put_dead(f, "d", "t", "a");
    instant dead_at = read_job(f, "t", "a").dead_at;
    put(f, "stays");
    struct store_op insert = insert_op(f, "archive", "t", "export-1");
    insert.insert.payload = SLICE("{\"jobId\":\"a\"}\n");
    struct store_op op = export_op(f, "a", &insert);
    op.job.dead_at = dead_at;
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(op.job.ret_lane, lane);
    assert_false(job_exists(f, "t", "a"));
    assert_int_equal(read_lane(f, lane).counts.dead, 0);
    assert_text(last_event(f, "t", "a", EVENT_TYPE_DEAD_EXPIRED).data, "{\"exported_to\":\"archive\"}");
    assert_int_equal(insert.insert.ret_seq, read_job(f, "t", "export-1").seq);
    last_event(f, "t", "export-1", EVENT_TYPE_ACCEPTED);
    struct job job = take(f, insert.insert.ret_lane);
    assert_text(job.payload, "{\"jobId\":\"a\"}\n");
    assert_false(job.damaged);
}

/* All that is there, so that nothing can have changed. */
static void assert_untouched(struct store_fixture *f, size_t events, instant expires_at)
{
    size_t count;
    read_events(f, 0, &count);
    assert_int_equal(count, events);
    assert_state(f, "a", STATE_DEAD);
    assert_int_equal(read_job(f, "t", "a").expires_at, expires_at);
    assert_false(job_exists(f, "t", "export-1"));
}

static void what_refuses_the_job_leaves_the_letter(void **state)
{
    struct store_fixture *f = *state;
    fixture_reopen(f, &(struct store_settings){ .pending_max = 2, .pending_per_tenant = 1 });
    put_dead(f, "d", "t", "a");
    instant expires_at = read_job(f, "t", "a").expires_at;
    struct store_op insert = insert_op(f, "archive", "t", "export-1"), op;
    put(f, "one");
    size_t events;
    read_events(f, 0, &events);
    op = export_op(f, "a", &insert);
    assert_run(f, &op, STATUS_FULL); /* its tenant has its share */
    assert_true(insert.insert.ret_tenant_full);
    assert_untouched(f, events, expires_at);
    struct store_op other = insert_op(f, "d", "u", "two");
    assert_run(f, &other, STATUS_OK);
    read_events(f, 0, &events);
    op = export_op(f, "a", &insert);
    assert_run(f, &op, STATUS_FULL); /* the store has all that it takes */
    assert_false(insert.insert.ret_tenant_full);
    assert_untouched(f, events, expires_at);
    insert.insert.id = SLICE("one"); /* that is another job */
    op = export_op(f, "a", &insert);
    assert_run(f, &op, STATUS_CONFLICT);
    assert_untouched(f, events, expires_at);
    insert.insert.destination = SLICE("");
    op = export_op(f, "a", &insert);
    assert_run(f, &op, STATUS_INVALID);
    assert_untouched(f, events, expires_at);
}

/* What was redriven, erased or is another letter by now is not brought back by an export that was begun before. */
static void a_letter_that_has_changed_is_not_exported(void **state)
{
    struct store_fixture *f = *state;
    put_dead(f, "d", "t", "a");
    instant dead_at = read_job(f, "t", "a").dead_at;
    struct store_op insert = insert_op(f, "archive", "t", "export-1");
    struct store_op op = export_op(f, "a", &insert), erase = job_op(OP_ERASE, "t", "a");
    op.job.dead_at = dead_at + 1;
    assert_run(f, &op, STATUS_CONFLICT);
    struct store_op redrive = job_op(OP_REDRIVE, "t", "a");
    assert_run(f, &redrive, STATUS_OK);
    op.job.dead_at = dead_at;
    assert_run(f, &op, STATUS_CONFLICT);
    assert_run(f, &erase, STATUS_OK);
    assert_run(f, &op, STATUS_NOT_FOUND);
    struct store_op both[] = { job_op(OP_ERASE, "t", "b"), export_op(f, "b", &insert) }; /* in one transaction */
    put_dead(f, "d", "t", "b");
    fixture_apply(f, both, 2);
    assert_int_equal(both[0].status, STATUS_OK);
    assert_int_equal(both[1].status, STATUS_NOT_FOUND);
    assert_false(job_exists(f, "t", "export-1"));
    size_t count;
    read_jobs(f, (struct job_filter){ .destination = SLICE("archive") }, 100, &count);
    assert_int_equal(count, 0);
}

static void thousands_are_exported_each_once(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = 0;
    size_t count;
    struct store_op *ops = calloc(MANY, sizeof *ops), *inserts = calloc(MANY, sizeof *inserts);
    char (*ids)[16] = calloc(MANY, sizeof *ids);
    assert_true(ops && inserts && ids);
    for (size_t i = 0; i < MANY; i++) {
        snprintf(ids[i], sizeof ids[i], "%zu", i);
        inserts[i] = insert_op(f, "d", "t", ids[i]);
    }
    fixture_apply(f, inserts, MANY);
    lane = inserts[0].insert.ret_lane;
    struct store_op claim = claim_op(f, lane, MANY);
    assert_run(f, &claim, STATUS_OK);
    assert_int_equal(claim.claim.ret_count, MANY);
    for (size_t i = 0; i < MANY; i++)
        ops[i] = settle_op(&claim.claim.ret_jobs[i], EVENT_GIVE_UP);
    fixture_apply(f, ops, MANY);
    for (size_t i = 0; i < MANY; i++) {
        inserts[i] = insert_op(f, "archive", "t", "");
        ops[i] = export_op(f, ids[i], &inserts[i]);
    }
    fixture_apply(f, ops, MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(ops[i].status, STATUS_OK);
    read_jobs(f, (struct job_filter){ .destination = SLICE("archive"), .state = STATE_PENDING }, 1000, &count);
    assert_int_equal(count, MANY);
    read_jobs(f, (struct job_filter){ .destination = SLICE("d") }, 1000, &count);
    assert_int_equal(count, 0);
    free(ids);
    free(inserts);
    free(ops);
}

static void a_huge_letter_is_exported(void **state)
{
    struct store_fixture *f = *state;
    char *payload = malloc(HUGE_BYTES);
    assert_non_null(payload);
    memset(payload, 'x', HUGE_BYTES);
    put_dead(f, "d", "t", "a");
    struct store_op insert = insert_op(f, "archive", "t", "export-1");
    insert.insert.payload = (struct slice){ payload, HUGE_BYTES };
    struct store_op op = export_op(f, "a", &insert);
    assert_run(f, &op, STATUS_OK);
    assert_false(job_exists(f, "t", "a"));
    assert_slice(read_job(f, "t", "export-1").payload, insert.insert.payload);
    free(payload);
}

const struct store_case store_cases_export[] = {
    { "letters to export are put off", letters_to_export_are_put_off },
    { "a letter becomes a job", a_letter_becomes_a_job },
    { "what refuses the job leaves the letter", what_refuses_the_job_leaves_the_letter },
    { "a letter that has changed is not exported", a_letter_that_has_changed_is_not_exported },
    { "thousands are exported each once", thousands_are_exported_each_once },
    { "a huge letter is exported", a_huge_letter_is_exported },
    { 0 },
};
