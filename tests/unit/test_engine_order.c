/*
 * Answers are recorded in the order in which they came.
 */
#include "support/check.h"
#include "support/engine_fixture.h"

enum { JOBS = 10 };

/* What came in which order. */
struct answered {
    char ids[JOBS][8];
    size_t count;
};

static int64_t notes(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct answered *answered = stage->context;
    assert_true(answered->count < JOBS);
    snprintf(answered->ids[answered->count++], sizeof answered->ids[0], "%.*s", SLICE_ARG(send->job->id));
    answer->outcome = OUTCOME_DELIVERED;
    return 20;
}

static void answers_are_recorded_as_they_came(void **state)
{
    struct answered answered = { .count = 0 };
    struct stage stage = { .destination = notes, .context = &answered };
    struct arena memory = { 0 };
    struct event *events;
    struct error error;
    char id[8];
    size_t count, seen = 0;
    (void)state;
    stage_begin(&stage, "destinations: { d: { url: 'http://127.0.0.1:1/', allow_private: true, concurrency: 10,\n"
                        "  fairness: { batch: 100 } } }\n", began);
    for (int i = 0; i < JOBS; i++) {
        snprintf(id, sizeof id, "j%d", i);
        stage_add(&stage, "d", "t", id, "x");
    }
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(answered.count, JOBS);
    assert_int_equal(stage.reader->ops->reader_events(stage.reader, 0, 500, &memory, &events, &count, &error), STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        if (events[i].state != STATE_COMPLETED)
            continue;
        check(slice_equal(events[i].job, slice_from(answered.ids[seen])), "%zu: %.*s instead of %s", seen,
              SLICE_ARG(events[i].job), answered.ids[seen]);
        seen++;
    }
    assert_int_equal(seen, JOBS);
    arena_release(&memory);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(answers_are_recorded_as_they_came) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
