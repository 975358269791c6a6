/*
 * Persons, through the real engine in virtual time: everything stored of one goes, whatever happens meanwhile, and nobody
 * waits for it.
 */
#include "engine/erasures/erasures.h"
#include "engine/orders.h"
#include "engine/redrives/redrive_record.h"
#include "store/subject.h"
#include "support/configs.h"
#include "support/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TO(more) "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" more " } }\n"
#define ANA "{\"to\":\"ana@x.py\"}"

static struct error begun;

static void on_saved(struct saved_wait *wait)
{
    begun = wait->error;
}

/* Returns the status of the order; the id is the record's. */
static enum status erase(struct stage *stage, const char *subject, const char *tenant, char ret_id[ERASURE_ID_BYTES])
{
    static struct saved_wait wait;
    struct erasure_record record = { .id = "" };
    struct error err;
    record.subject = arena_copy(&record.memory, slice_from(subject));
    record.tenant = arena_copy(&record.memory, slice_from(tenant));
    record.by = arena_copy(&record.memory, SLICE("ops"));
    wait = (struct saved_wait){ .done = on_saved };
    begun.status = STATUS_BUSY;
    enum status status = engine_erasure_begin(stage->engine, &record, &wait, &err);
    if (status == STATUS_OK)
        memcpy(ret_id, record.id, ERASURE_ID_BYTES);
    return status;
}

static struct erasure_record record_of(struct stage *stage, const char *id)
{
    struct arena memory = { 0 };
    struct slice value;
    struct erasure_record record;
    struct error err;
    assert_int_equal(stage->reader->ops->reader_saved(stage->reader, SPACE_ERASURE, slice_from(id), &memory, &value, &err),
                     STATUS_OK);
    assert_int_equal(erasure_record_read(value, &record, &err), STATUS_OK);
    arena_release(&memory);
    return record;
}

/* Whether anything in the store names the subject: jobs, events, what is saved. */
static size_t told(struct stage *stage, const char *subject)
{
    static const char *const spaces[] = { "erasure", "redrive_payload", "errors", "erasure_active" };
    struct store_reader *reader = stage->reader;
    struct arena memory = { 0 };
    struct subject who;
    struct error err;
    struct job *jobs;
    struct event *events;
    struct saved *saved;
    size_t count, found = 0;
    int64_t place = 0;
    assert_int_equal(subject_init(&who, slice_from(subject), &err), STATUS_OK);
    do {
        const struct job_filter filter = { .before_seq = place };
        assert_int_equal(reader->ops->reader_jobs(reader, &filter, 100, true, &memory, &jobs, &count, &place, &err), STATUS_OK);
        for (size_t i = 0; i < count; i++)
            found += subject_in_job(&who, &jobs[i]) != 0;
    } while (place != 0);
    do {
        assert_int_equal(reader->ops->reader_events(reader, place, 1000, &memory, &events, &count, &err), STATUS_OK);
        for (size_t i = 0; i < count; place = events[i++].number)
            found += subject_in(&who, events[i].data);
    } while (count > 0);
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        assert_int_equal(reader->ops->reader_saved_list(reader, slice_from(spaces[i]), SLICE(""), 100, &memory, &saved, &count, &err), STATUS_OK);
        for (size_t j = 0; j < count; j++)
            found += subject_in(&who, saved[j].value);
    }
    arena_release(&memory);
    return found;
}

/* Ids that begin with "slow" take ten seconds, those with "bad" are refused, those with "odd" for a reason no rule knows. */
static int64_t answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    if (slice_has_prefix(send->job->id, SLICE("bad"))) {
        answer->code = SLICE("http:422");
        answer->text = SLICE("HTTP 422: no");
        return 20;
    }
    if (slice_has_prefix(send->job->id, SLICE("odd"))) {
        answer->code = SLICE("");
        answer->text = SLICE("the moon is full for Unica Persona");
        return 20;
    }
    return slice_has_prefix(send->job->id, SLICE("slow")) ? 10 * 1000 : delivers(stage, send, answer);
}

static void fill(struct stage *stage, int jobs)
{
    char id[16];
    for (int i = 0; i < jobs; i++) {
        snprintf(id, sizeof id, "%s%d", i % 3 ? "good" : "bad", i);
        stage_add(stage, "d", i % 2 ? "t" : "u", id, i % 4 ? ANA : "{\"to\":\"bob@x.py\"}");
    }
}

static void all_that_is_stored_of_one_goes(void **state)
{
    struct stage stage = { .destination = answers };
    char id[ERASURE_ID_BYTES];
    (void)state;
    stage_begin(&stage, TO(", concurrency: 2, dead: { ttl: 0s }, breaker: { enabled: false }"), began);
    fill(&stage, 60);
    stage_run_for(&stage, 60 * 1000);
    stage_apply(&stage, &(struct store_op){ .kind = OP_SAVE, .save = { .space = SPACE_REDRIVE_PAYLOAD, .name = SLICE("R.1"), .value = SLICE(ANA) } });
    stage_apply(&stage, &(struct store_op){ .kind = OP_NOTE, .data = SLICE("{\"note\":\"x\",\"by\":\"ana@x.py\"}") });
    size_t before = told(&stage, "bob@x.py");
    assert_true(told(&stage, "ana@x.py") >= 45);
    assert_int_equal(erase(&stage, "ana@x.py", "", id), STATUS_OK);
    stage_run_for(&stage, 1000);
    assert_int_equal(begun.status, STATUS_OK);
    struct erasure_record record = record_of(&stage, id);
    assert_true(record.done);
    assert_int_equal(record.jobs, 45);
    assert_int_equal(record.copies, 1);
    assert_true(record.events >= 45);
    assert_int_equal(record.subject.len, 0);
    erasure_record_release(&record);
    assert_int_equal(told(&stage, "ana@x.py"), 0);
    assert_int_equal(told(&stage, "bob@x.py"), before);
    stage_end(&stage);
}

static void what_was_learnt_of_an_error_goes_too(void **state)
{
    struct stage stage = { .destination = answers };
    char id[ERASURE_ID_BYTES];
    (void)state;
    stage_begin(&stage, TO(", breaker: { enabled: false }"), began);
    stage_add(&stage, "d", "t", "odd1", "x");
    stage_run_for(&stage, 60 * 1000);
    assert_true(told(&stage, "Unica Persona") >= 2); /* the job's last error, and what was learnt */
    assert_int_equal(erase(&stage, "unica persona", "", id), STATUS_OK);
    stage_run_for(&stage, 60 * 1000);
    struct erasure_record record = record_of(&stage, id);
    assert_int_equal(record.rules, 1);
    erasure_record_release(&record);
    assert_int_equal(told(&stage, "Unica Persona"), 0);
    stage_end(&stage);
}

static void one_tenants_only(void **state)
{
    struct stage stage = { .destination = answers };
    char id[ERASURE_ID_BYTES];
    (void)state;
    stage_begin(&stage, TO(", breaker: { enabled: false }"), began);
    fill(&stage, 40);
    stage_run_for(&stage, 60 * 1000);
    stage_apply(&stage, &(struct store_op){ .kind = OP_NOTE, .data = SLICE("{\"note\":\"x\",\"by\":\"ana@x.py\"}") }); /* nobody's */
    assert_int_equal(erase(&stage, "ana@x.py", "u", id), STATUS_OK);
    stage_run_for(&stage, 1000);
    struct erasure_record record = record_of(&stage, id);
    assert_true(record.done);
    assert_int_equal(record.jobs, 10);
    erasure_record_release(&record);
    assert_int_equal(stage_job(&stage, "t", "good1").state, STATE_COMPLETED);
    assert_int_equal(told(&stage, "ana@x.py"), 20 + 1); /* the other's jobs, and what no tenant's event says */
    stage_end(&stage);
}

/* All that happened to the job goes with it, also what is beyond one page and does not name the person. */
static void a_long_history_goes_whole(void **state)
{
    enum { EVENTS = STORE_PAGE_MAX + 100 };
    struct stage stage = { .destination = answers };
    char id[ERASURE_ID_BYTES];
    (void)state;
    stage_begin(&stage, TO(""), began);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), NULL), STATUS_OK);
    stage_add(&stage, "d", "t", "long", ANA);
    for (int i = 0; i < EVENTS; i++)
        stage_apply(&stage, &(struct store_op){ .kind = OP_PRIORITIZE, .data = SLICE("{\"by\":\"clerk\"}"),
                                                .job = { .tenant = SLICE("t"), .id = SLICE("long"), .rank = i } });
    stage_run_for(&stage, 1000);
    assert_int_equal(erase(&stage, "ana@x.py", "", id), STATUS_OK);
    stage_run_for(&stage, 1000);
    struct erasure_record record = record_of(&stage, id);
    assert_true(record.done);
    assert_int_equal(record.jobs, 1);
    assert_true(record.events >= EVENTS);
    erasure_record_release(&record);
    stage_end(&stage);
}

/* What is being sent goes when that has ended; what waits goes at once, and is not sent. */
static void who_is_being_sent_goes_later(void **state)
{
    struct stage stage = { .destination = answers };
    char id[ERASURE_ID_BYTES];
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1, timeout: 30s"), began);
    stage_add(&stage, "d", "t", "slow", ANA);
    stage_add(&stage, "d", "t", "slow2", ANA);
    stage_run_for(&stage, 100);
    assert_int_equal(erase(&stage, "ana@x.py", "", id), STATUS_OK);
    stage_run_for(&stage, 5000);
    assert_int_equal(stage.send_count, 1);
    assert_int_equal(told(&stage, "ana@x.py"), 2); /* the job, and the record of what is to be done */
    struct erasure_record record = record_of(&stage, id);
    assert_false(record.done);
    erasure_record_release(&record);
    stage_run_for(&stage, 10 * 1000);
    assert_int_equal(told(&stage, "ana@x.py"), 0);
    assert_int_equal(stage.send_count, 1);
    record = record_of(&stage, id);
    assert_true(record.done);
    assert_int_equal(record.jobs, 2);
    erasure_record_release(&record);
    stage_end(&stage);
}

/* Also who comes behind one that waits for an answer, or for a scan without end, is heard and done. */
static void one_that_waits_holds_up_no_other(void **state)
{
    struct stage stage = { .destination = answers };
    char slow[ERASURE_ID_BYTES], quick[ERASURE_ID_BYTES];
    (void)state;
    stage_begin(&stage, TO(", concurrency: 2, timeout: 30s"), began);
    stage_add(&stage, "d", "t", "slow", ANA);
    stage_add(&stage, "d", "t", "good", "{\"to\":\"bob@x.py\"}");
    stage_run_for(&stage, 1000);
    assert_int_equal(erase(&stage, "ana@x.py", "", slow), STATUS_OK);
    stage_run_for(&stage, 500);
    assert_int_equal(begun.status, STATUS_OK);
    assert_int_equal(erase(&stage, "bob@x.py", "", quick), STATUS_OK);
    stage_run_for(&stage, 2000);
    assert_int_equal(begun.status, STATUS_OK);
    struct erasure_record record = record_of(&stage, quick);
    assert_true(record.done);
    assert_int_equal(record.jobs, 1);
    erasure_record_release(&record);
    record = record_of(&stage, slow);
    assert_false(record.done);
    erasure_record_release(&record);
    stage_run_for(&stage, 20 * 1000);
    record = record_of(&stage, slow);
    assert_true(record.done);
    erasure_record_release(&record);
    stage_end(&stage);
}

static void what_comes_later_is_not_meant(void **state)
{
    struct stage stage = { .destination = answers };
    char id[ERASURE_ID_BYTES];
    (void)state;
    stage_begin(&stage, TO(", concurrency: 1, timeout: 30s"), began);
    stage_add(&stage, "d", "t", "slow", ANA);
    stage_run_for(&stage, 100);
    assert_int_equal(erase(&stage, "ana@x.py", "", id), STATUS_OK);
    stage_run_for(&stage, 1000);
    stage_add(&stage, "d", "t", "new", ANA);
    stage_run_for(&stage, 20 * 1000);
    assert_int_equal(stage_job(&stage, "t", "new").state, STATE_COMPLETED);
    assert_int_equal(told(&stage, "ana@x.py"), 1);
    stage_end(&stage);
}

static int64_t reads_slowly(struct stage *stage, enum status *fails)
{
    (void)stage;
    (void)fails;
    return 40;
}

/* Killed at every step of the way, it ends with nothing left. */
static void it_goes_on_after_crashes(void **state)
{
    struct stage stage = { .destination = answers, .reading = reads_slowly };
    char id[ERASURE_ID_BYTES];
    (void)state;
    stage_begin(&stage, TO(", breaker: { enabled: false }"), began);
    fill(&stage, 90);
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(erase(&stage, "ana@x.py", "", id), STATUS_OK);
    stage_run_for(&stage, 50);
    int crashes = 0;
    for (bool done = false; !done && crashes < 500; crashes++) {
        stage_run_for(&stage, 120 + crashes % 7 * 13);
        struct erasure_record record = record_of(&stage, id);
        done = record.done;
        erasure_record_release(&record);
        if (!done)
            stage_crash(&stage);
    }
    assert_true(crashes > 3 && crashes < 500);
    stage_run_for(&stage, 1000);
    assert_int_equal(told(&stage, "ana@x.py"), 0);
    stage_end(&stage);
}

static void a_full_disk_is_waited_for(void **state)
{
    struct stage stage = { .destination = answers };
    char id[ERASURE_ID_BYTES];
    (void)state;
    stage_begin(&stage, TO(", breaker: { enabled: false }"), began);
    fill(&stage, 30);
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(erase(&stage, "ana@x.py", "", id), STATUS_OK);
    stage_step(&stage);
    stage.fail_applies = true;
    stage_run_for(&stage, 30 * 1000);
    assert_true(told(&stage, "ana@x.py") > 0);
    stage.fail_applies = false;
    stage_run_for(&stage, 30 * 1000);
    assert_int_equal(told(&stage, "ana@x.py"), 0);
    stage_end(&stage);
}

/* A job that comes meanwhile is sent as if nothing went on. */
static void nobody_waits_for_it(void **state)
{
    struct stage stage = { .destination = answers, .reading = reads_slowly };
    char id[ERASURE_ID_BYTES], new[16];
    (void)state;
    stage_begin(&stage, TO(", breaker: { enabled: false }"), began);
    fill(&stage, 400);
    stage_run_for(&stage, 10 * 60 * 1000);
    assert_int_equal(erase(&stage, "ana@x.py", "", id), STATUS_OK);
    stage_run_for(&stage, 100);
    for (int i = 0; i < 20; i++) {
        snprintf(new, sizeof new, "new%d", i);
        stage_add(&stage, "d", "v", new, "x");
        stage_run_for(&stage, 50);
        assert_int_equal(stage_job(&stage, "v", new).state, STATE_COMPLETED);
    }
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(told(&stage, "ana@x.py"), 0);
    stage_end(&stage);
}

static void too_many_and_nobody_are_refused(void **state)
{
    struct stage stage = { .destination = answers };
    char id[ERASURE_ID_BYTES];
    (void)state;
    stage_begin(&stage, TO(""), began);
    assert_int_equal(erase(&stage, "ana@x.py", "", id), STATUS_CONFLICT); /* what there is to go on with is not known yet */
    stage_run_for(&stage, 100);
    assert_int_equal(erase(&stage, "a", "", id), STATUS_INVALID);
    for (int i = 0; i < ERASURES_TENANT_MAX; i++)
        assert_int_equal(erase(&stage, "ana@x.py", "v", id), STATUS_OK);
    assert_int_equal(erase(&stage, "ana@x.py", "v", id), STATUS_LIMIT); /* one tenant leaves room for the others */
    for (int i = ERASURES_TENANT_MAX; i < ERASURES_MAX; i++)
        assert_int_equal(erase(&stage, "ana@x.py", "", id), STATUS_OK);
    assert_int_equal(erase(&stage, "ana@x.py", "", id), STATUS_LIMIT);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_is_stored_of_one_goes),
        cmocka_unit_test(what_was_learnt_of_an_error_goes_too),
        cmocka_unit_test(one_tenants_only),
        cmocka_unit_test(a_long_history_goes_whole),
        cmocka_unit_test(who_is_being_sent_goes_later),
        cmocka_unit_test(one_that_waits_holds_up_no_other),
        cmocka_unit_test(what_comes_later_is_not_meant),
        cmocka_unit_test(it_goes_on_after_crashes),
        cmocka_unit_test(a_full_disk_is_waited_for),
        cmocka_unit_test(nobody_waits_for_it),
        cmocka_unit_test(too_many_and_nobody_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
