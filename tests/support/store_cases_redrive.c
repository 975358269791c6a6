/* Redrives as the store has them: counted with each change, taken back exactly; and what a filter means. */
#include "support/store_cases.h"

#include "core/errors/fingerprint.h"
#include "store/filter.h"
#include "store/tally.h"

#include <stdio.h>
#include <string.h>

static void assert_counts(struct store_fixture *f, const char *redrive, const int64_t expected[REDRIVE_COUNTS])
{
    int64_t counts[REDRIVE_COUNTS];
    struct error err = { 0 };
    assert_int_equal(tally_read(f->reader, slice_from(redrive), counts, &err), STATUS_OK);
    for (int i = 1; i < REDRIVE_COUNTS; i++)
        assert_int_equal(counts[i], expected[i]);
}

static struct store_op redrive_op(const char *id, const char *redrive)
{
    struct store_op op = job_op(OP_REDRIVE, "t", id);
    op.job.redrive = slice_from(redrive);
    return op;
}

static struct store_op undo_op(const char *id, const char *redrive)
{
    struct store_op op = job_op(OP_UNDO, "t", id);
    op.job.redrive = slice_from(redrive);
    return op;
}

static void every_end_is_counted(void **state)
{
    static const char *const ids[] = { "a", "b", "c", "d", "e", "f" };
    struct store_fixture *f = *state;
    int64_t lane = 0;
    for (size_t i = 0; i < 6; i++) {
        lane = put(f, ids[i]);
        take_and_settle(f, lane, EVENT_GIVE_UP);
    }
    for (size_t i = 0; i < 6; i++) {
        struct store_op op = redrive_op(ids[i], "R1");
        op.job.rank = (int64_t)i;
        assert_run(f, &op, STATUS_OK);
    }
    assert_counts(f, "R1", (int64_t[REDRIVE_COUNTS]){ [REDRIVE_SENT_BACK] = 6 });
    take_and_settle(f, lane, EVENT_DELIVER); /* a */
    take_and_settle(f, lane, EVENT_GIVE_UP); /* b */
    struct store_op op = job_op(OP_CANCEL, "t", "c");
    assert_run(f, &op, STATUS_OK);
    op = undo_op("d", "R1");
    assert_run(f, &op, STATUS_OK);
    take_and_settle(f, lane, EVENT_RETRY); /* e goes on being one of it */
    assert_counts(f, "R1", (int64_t[REDRIVE_COUNTS]){ [REDRIVE_SENT_BACK] = 6, [REDRIVE_DELIVERED] = 1,
                                                      [REDRIVE_DEAD_AGAIN] = 1, [REDRIVE_GONE] = 1, [REDRIVE_UNDONE] = 1 });
    op = redrive_op("b", "R10"); /* another, whose id begins like that */
    assert_run(f, &op, STATUS_OK);
    assert_counts(f, "R10", (int64_t[REDRIVE_COUNTS]){ [REDRIVE_SENT_BACK] = 1 });
    assert_int_equal(read_job(f, "t", "a").redrive.len, 0);
}

/* But for its history. */
static void assert_same(const struct job *job, const struct job *before)
{
    assert_int_equal(job->state, before->state);
    assert_int_equal(job->generation, before->generation);
    assert_int_equal(job->attempts, before->attempts);
    assert_int_equal(job->attempts_total, before->attempts_total);
    assert_int_equal(job->retry_count, before->retry_count);
    assert_int_equal(job->step_count, before->step_count);
    assert_int_equal(job->step, before->step);
    assert_int_equal(job->doubted, before->doubted);
    assert_int_equal(job->rank, before->rank);
    const instant times[] = { job->created_at, job->first_at,       job->run_at,  job->deadline,  job->updated_at,
                              job->failed_at,  job->look_failed_at, job->dead_at, job->expires_at };
    const instant were[] = { before->created_at, before->first_at,       before->run_at,  before->deadline,  before->updated_at,
                             before->failed_at,  before->look_failed_at, before->dead_at, before->expires_at };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        assert_int_equal(times[i], were[i]);
    assert_slice(job->last_code, before->last_code);
    assert_slice(job->last_error, before->last_error);
    assert_slice(job->dead_code, before->dead_code);
    assert_slice(job->payload, before->payload);
    assert_int_equal(job->redrive.len, 0);
}

static void undo_gives_back_what_was(void **state)
{
    struct store_fixture *f = *state;
    struct store_op op = insert_op(f, "d", "t", "a");
    op.insert.deadline = f->now + HOUR_MS;
    assert_run(f, &op, STATUS_OK);
    struct job job = take(f, op.insert.ret_lane);
    op = settle_op(&job, EVENT_GIVE_UP);
    op.settle.retry_count = 3;
    op.settle.doubted = true;
    op.settle.failed_at = f->now - 5;
    op.settle.dead_ttl_ms = 2 * HOUR_MS;
    op.settle.dead_code = SLICE("PERMANENT_ERROR");
    assert_run(f, &op, STATUS_OK);
    struct job before = read_job(f, "t", "a");
    f->now += HOUR_MS + 1; /* its deadline has passed, so that a redrive takes it away */
    op = redrive_op("a", "R1");
    op.job.payload_given = true;
    op.job.payload = SLICE("corrected");
    assert_run(f, &op, STATUS_OK);
    assert_text(read_job(f, "t", "a").payload, "corrected");
    op = undo_op("a", "R1");
    op.job.payload_given = true;
    op.job.payload = before.payload;
    assert_run(f, &op, STATUS_OK);
    struct job after = read_job(f, "t", "a");
    assert_same(&after, &before);
    last_event(f, "t", "a", EVENT_TYPE_UNDONE);
    f->now += HOUR_MS; /* and its time to live goes on as if nothing had been */
    assert_int_equal(promote(f).ret_dead_deleted, 1);
}

static void only_what_was_not_tried_is_undone(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    struct store_op op = undo_op("a", "R1"), redrive = redrive_op("a", "R1");
    assert_run(f, &op, STATUS_CONFLICT); /* it is of none */
    assert_run(f, &redrive, STATUS_OK);
    op = undo_op("a", "R2");
    assert_run(f, &op, STATUS_CONFLICT);
    op = undo_op("a", "");
    assert_run(f, &op, STATUS_CONFLICT);
    struct job job = take(f, lane);
    op = undo_op("a", "R1");
    assert_run(f, &op, STATUS_CONFLICT); /* it is being tried */
    op = settle_op(&job, EVENT_RETRY);
    op.settle.run_at = f->now + HOUR_MS;
    assert_run(f, &op, STATUS_OK);
    op = undo_op("a", "R1");
    assert_run(f, &op, STATUS_CONFLICT); /* it was */
    assert_counts(f, "R1", (int64_t[REDRIVE_COUNTS]){ [REDRIVE_SENT_BACK] = 1 });
}

static void a_letter_that_died_since_is_another(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    struct store_op op = redrive_op("a", "R1");
    op.job.seq = read_job(f, "t", "a").seq;
    op.job.dead_at = read_job(f, "t", "a").dead_at - 1;
    assert_run(f, &op, STATUS_CONFLICT);
    op.job.dead_at++;
    assert_run(f, &op, STATUS_OK);
    assert_run(f, &op, STATUS_CONFLICT);
    op.kind = OP_PURGE;
    assert_run(f, &op, STATUS_CONFLICT);
    assert_counts(f, "R1", (int64_t[REDRIVE_COUNTS]){ [REDRIVE_SENT_BACK] = 1 });
}

static void what_a_redrive_has_is_found(void **state)
{
    struct store_fixture *f = *state;
    size_t count;
    int64_t lane = 0;
    char id[8];
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof id, "j%d", i);
        lane = put(f, id);
        take_and_settle(f, lane, EVENT_GIVE_UP);
    }
    for (int i = 0; i < 16; i++) {
        snprintf(id, sizeof id, "j%d", i);
        struct store_op op = redrive_op(id, i % 2 ? "R1" : "R2");
        op.job.rank = i;
        assert_run(f, &op, STATUS_OK);
    }
    read_jobs(f, (struct job_filter){ .redrive = SLICE("R1") }, 3, &count);
    assert_int_equal(count, 8);
    take_and_settle(f, lane, EVENT_DELIVER); /* j0, of R2 */
    take_and_settle(f, lane, EVENT_DELIVER);
    read_jobs(f, (struct job_filter){ .redrive = SLICE("R1") }, 3, &count);
    assert_int_equal(count, 7);
}

static size_t found(struct store_fixture *f, struct job_filter filter)
{
    size_t count;
    filter.state = STATE_DEAD;
    read_jobs(f, filter, 2, &count);
    return count;
}

static void a_filter_means_all_of_what_it_says(void **state)
{
    struct store_fixture *f = *state;
    instant began = f->now;
    struct fingerprint print;
    char id[8];
    for (int i = 0; i < 6; i++) {
        snprintf(id, sizeof id, "j%d", i);
        struct job job = take(f, put(f, id));
        struct store_op op = settle_op(&job, EVENT_GIVE_UP);
        op.settle.dead_code = i % 2 ? SLICE("PERMANENT_ERROR") : SLICE("MAX_RETRIES_EXCEEDED");
        op.settle.error = i < 3 ? SLICE("Patient 4711 is unknown") : SLICE("timeout");
        op.settle.code = SLICE("http:422");
        assert_run(f, &op, STATUS_OK);
        f->now += 1000;
    }
    fingerprint_make(SLICE(""), SLICE("http:422"), SLICE("Patient 9 is unknown"), &print);
    assert_int_equal(found(f, (struct job_filter){ .dead_code = SLICE("PERMANENT_ERROR") }), 3);
    assert_int_equal(found(f, (struct job_filter){ .text = SLICE("patient") }), 3);
    assert_int_equal(found(f, (struct job_filter){ .text = SLICE("J4") }), 1);
    assert_int_equal(found(f, (struct job_filter){ .text = SLICE("nothing") }), 0);
    assert_int_equal(found(f, (struct job_filter){ .fingerprint = slice_from(print.text) }), 3);
    assert_int_equal(found(f, (struct job_filter){ .since = began + 1000, .until = began + 3000 }), 3);
    assert_int_equal(found(f, (struct job_filter){ .until = began - 1 }), 0);
    assert_int_equal(found(f, (struct job_filter){ .text = SLICE("patient"), .dead_code = SLICE("PERMANENT_ERROR") }), 1);
}

/* Whatever else a store leaves out, what jobs are told apart and counted by is there. */
static void what_is_brief_is_enough_to_count(void **state)
{
    struct store_fixture *f = *state;
    struct error err = { 0 };
    struct job *jobs;
    size_t count;
    int64_t next;
    char id[8];
    for (int i = 0; i < 3; i++) {
        snprintf(id, sizeof id, "j%d", i);
        struct job job = take(f, put(f, id));
        struct store_op op = settle_op(&job, EVENT_GIVE_UP);
        op.settle.dead_code = SLICE("PERMANENT_ERROR");
        op.settle.error = i ? SLICE("Patient 4711 is unknown") : SLICE("timeout");
        op.settle.code = SLICE("http:422");
        assert_run(f, &op, STATUS_OK);
        f->now += 1000;
    }
    struct store_op op = redrive_op("j2", "R1");
    assert_run(f, &op, STATUS_OK);
    const struct job_filter filters[] = { { .brief = true }, { .state = STATE_DEAD, .text = SLICE("patient"), .brief = true },
                                          { .id = SLICE("j1"), .brief = true }, { .redrive = SLICE("R1"), .brief = true } };
    const size_t counts[] = { 3, 1, 1, 1 };
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        assert_int_equal(f->store->ops->reader_jobs(f->reader, &filters[i], 10, false, &f->memory, &jobs, &count, &next, &err),
                         STATUS_OK);
        assert_int_equal(count, counts[i]);
        for (size_t j = 0; j < count; j++) {
            struct job whole;
            assert_int_equal(f->store->ops->reader_job_seq(f->reader, jobs[j].seq, false, &f->memory, &whole, &err), STATUS_OK);
            assert_true(slice_equal(jobs[j].id, whole.id) && slice_equal(jobs[j].tenant, whole.tenant));
            assert_true(slice_equal(jobs[j].destination, whole.destination) && jobs[j].state == whole.state);
            assert_true(slice_equal(jobs[j].last_code, whole.last_code) && slice_equal(jobs[j].dead_code, whole.dead_code));
            assert_true(slice_equal(jobs[j].last_error, whole.last_error) && slice_equal(jobs[j].redrive, whole.redrive));
            assert_true(jobs[j].dead_at == whole.dead_at && jobs[j].created_at == whole.created_at);
        }
    }
}

static void a_walk_goes_over_all_once(void **state)
{
    struct store_fixture *f = *state;
    const struct slice ids[] = { SLICE("j3"), SLICE("nobody"), SLICE("j1") };
    struct error err = { 0 };
    char id[8], seen[64] = "";
    for (int i = 0; i < 5; i++) {
        snprintf(id, sizeof id, "j%d", i);
        take_and_settle(f, put(f, id), EVENT_GIVE_UP);
    }
    struct job_walk walks[] = { { .filter.state = STATE_DEAD },
                                { .filter.state = STATE_DEAD, .ids = ids, .id_count = 3 },
                                { .filter = { .state = STATE_DEAD, .tenant = SLICE("other") }, .ids = ids, .id_count = 3 } };
    for (size_t i = 0; i < 3; i++) {
        while (!walks[i].over) {
            struct job *jobs;
            size_t count;
            assert_int_equal(walk_page(f->reader, &walks[i], 2, false, &f->memory, &jobs, &count, &err), STATUS_OK);
            for (size_t j = 0; j < count; j++)
                snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%.*s ", SLICE_ARG(jobs[j].id));
        }
        strcat(seen, "/ ");
    }
    assert_string_equal(seen, "j4 j3 j2 j1 j0 / j3 j1 / / ");
}

/* They are notes like others, under whatever names a store of many writers gives them. */
static void counts_can_be_taken_away(void **state)
{
    struct store_fixture *f = *state;
    static const int64_t none[REDRIVE_COUNTS] = { 0 };
    struct saved *saved;
    struct error err;
    size_t count;
    take_and_settle(f, put(f, "a"), EVENT_GIVE_UP);
    struct store_op op = redrive_op("a", "20250112T104000.000Z");
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(f->reader->ops->reader_saved_list(f->reader, SPACE_TALLY, SLICE("20250112T104001.000Z"), 10, &f->memory, &saved,
                                                       &count, &err), STATUS_OK);
    assert_int_equal(count, 1);
    struct store_op away = { .kind = OP_SAVE, .save = { .space = SPACE_TALLY, .name = saved[0].name, .value = SLICE("") } };
    assert_run(f, &away, STATUS_OK);
    assert_counts(f, "20250112T104000.000Z", none);
}

const struct store_case store_cases_redrive[] = {
    { "counts can be taken away", counts_can_be_taken_away },
    { "every end of what a redrive sent back is counted", every_end_is_counted },
    { "undo gives back what was", undo_gives_back_what_was },
    { "only what was not tried is undone", only_what_was_not_tried_is_undone },
    { "a letter that died since is another", a_letter_that_died_since_is_another },
    { "what a redrive has is found", what_a_redrive_has_is_found },
    { "a filter means all of what it says", a_filter_means_all_of_what_it_says },
    { "a walk goes over all once", a_walk_goes_over_all_once },
    { "what is brief is enough to count", what_is_brief_is_enough_to_count },
    { 0 },
};
