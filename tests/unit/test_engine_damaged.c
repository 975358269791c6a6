/*
 * A job that is not what was accepted any more is set aside, whatever its destination is like, and says nothing about it.
 */
#include "support/check.h"
#include "support/engine_fixture.h"
#include "support/said.h"

#include <string.h>

/* As the store tells of those that were changed on disk. */
static void damage_bad_ones(struct stage *stage, const struct store_op *ops, size_t count)
{
    (void)stage;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; ops[i].kind == OP_CLAIM && k < ops[i].claim.ret_count; k++)
            ops[i].claim.ret_jobs[k].damaged = slice_equal(ops[i].claim.ret_jobs[k].payload, SLICE("bad"));
}

static int64_t takes_the_good(struct stage *stage, const struct send *send, struct answer *answer)
{
    assert_true(slice_equal(send->job->payload, SLICE("good")));
    return delivers(stage, send, answer);
}

static void begin(struct stage *stage, const char *yaml)
{
    *stage = (struct stage){ .destination = takes_the_good };
    stage_begin(stage, yaml, began);
    stage->applied = damage_bad_ones;
}

static void it_is_a_dead_letter_and_is_told(void **state)
{
    struct stage stage;
    (void)state;
    said_begin();
    begin(&stage, "destinations: { d: { url: 'https://d.example/', retry: { max_retries: 3 } } }\n");
    stage_add(&stage, "d", "t", "b", "bad");
    stage_add(&stage, "d", "t", "g", "good");
    stage_run_for(&stage, 60 * 60 * 1000);
    const char *said = said_end();
    struct job bad = stage_job(&stage, "t", "b");
    assert_int_equal(bad.state, STATE_DEAD);
    assert_true(slice_equal(bad.last_code, SLICE("insist:payload_damaged")));
    assert_true(slice_equal(bad.dead_code, SLICE("PERMANENT_ERROR")));
    assert_int_equal(bad.last_class, OUTCOME_PERMANENT);
    assert_int_equal(bad.attempts, 0);
    assert_int_equal(bad.attempts_total, 0);
    assert_true(slice_has_prefix(bad.last_error, SLICE("PAYLOAD_DAMAGED")));
    assert_int_equal(stage_job(&stage, "t", "g").state, STATE_COMPLETED);
    assert_int_equal(stage.send_count, 1);
    assert_int_equal(engine_figures(stage.engine).dead, 1);
    const char *line = strstr(said, "\"job_dead\"");
    assert_non_null(line);
    assert_non_null(strstr(line, "insist:payload_damaged"));
    assert_non_null(strstr(said, "\"level\":\"error\""));
    stage_end(&stage);
}

/* More of them than slots, before the good ones: no slot, share or place in a cycle is lost to them. */
static void they_take_nobodys_place(void **state)
{
    static const char *const files[] = {
        "destinations: { d: { url: 'https://d.example/', concurrency: 2, retry: { max_retries: 3 } } }\n",
        "destinations: { d: { url: 'https://d.example/', concurrency: 2, cycle: { every: 1s, batch: 2 } } }\n",
        ("destinations: { d: { url: 'https://d.example/', concurrency: 2, breaker: { window: 1m, min_calls: 2, "
         "failure_rate: 0.5, open: 1m } } }\n"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct stage stage;
        char id[16];
        begin(&stage, files[i]);
        for (int n = 0; n < 40; n++) {
            snprintf(id, sizeof id, "%d", n);
            stage_add(&stage, "d", n % 2 ? "A" : "B", id, n < 20 ? "bad" : "good");
        }
        stage_run_for(&stage, 60 * 1000);
        check(stage_counts(&stage, "d").dead == 20, "%zu: %d dead", i, (int)stage_counts(&stage, "d").dead);
        check(stage_counts(&stage, "d").completed == 20, "%zu: completed", i);
        assert_int_equal(status_of(&stage).under_way, 0);
        assert_string_equal(status_of(&stage).breaker, "closed");
        stage_end(&stage);
    }
}

/* With its payload given anew it goes. */
static void corrected_it_is_sent(void **state)
{
    struct stage stage;
    struct store_op redrive = { .kind = OP_REDRIVE, .job = { .tenant = SLICE("t"), .id = SLICE("b"), .payload_given = true,
                                                             .payload = SLICE("good") } };
    (void)state;
    begin(&stage, "destinations: { d: { url: 'https://d.example/', retry: { max_retries: 3 } } }\n");
    stage_add(&stage, "d", "t", "b", "bad");
    stage_run_for(&stage, 1000);
    assert_int_equal(stage_job(&stage, "t", "b").state, STATE_DEAD);
    assert_int_equal(stage.send_count, 0);
    stage_apply(&stage, &redrive);
    stage_crash(&stage); /* so that the engine sees what is ready */
    stage.applied = damage_bad_ones;
    stage_run_for(&stage, 1000);
    assert_int_equal(stage_job(&stage, "t", "b").state, STATE_COMPLETED);
    assert_int_equal(stage_job(&stage, "t", "b").attempts, 1);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_a_dead_letter_and_is_told),
        cmocka_unit_test(they_take_nobodys_place),
        cmocka_unit_test(corrected_it_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
