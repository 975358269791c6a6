/*
 * A job that is not what was accepted any more is set aside, whatever its destination is like, and says nothing about it.
 */
#include "support/check.h"
#include "support/engine_fixture.h"
#include "support/said.h"

#include <string.h>

/* As the store tells of those that were changed on disk. */
static void damage_bad_ones(struct world *world, const struct store_op *ops, size_t count)
{
    (void)world;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; ops[i].kind == OP_CLAIM && k < ops[i].claim.ret_count; k++)
            ops[i].claim.ret_jobs[k].damaged = slice_equal(ops[i].claim.ret_jobs[k].payload, SLICE("bad"));
}

static int64_t takes_the_good(struct world *world, const struct send *send, struct answer *answer)
{
    assert_true(slice_equal(send->job->payload, SLICE("good")));
    return delivers(world, send, answer);
}

static void begin(struct world *world, const char *yaml)
{
    *world = (struct world){ .destination = takes_the_good };
    world_begin(world, yaml, began);
    world->applied = damage_bad_ones;
}

static void it_is_a_dead_letter_and_is_told(void **state)
{
    struct world world;
    (void)state;
    said_begin();
    begin(&world, "destinations: { d: { url: 'https://d.example/', retry: { max_retries: 3 } } }\n");
    world_add(&world, "d", "t", "b", "bad");
    world_add(&world, "d", "t", "g", "good");
    world_run_for(&world, 60 * 60 * 1000);
    const char *said = said_end();
    struct job bad = world_job(&world, "t", "b");
    assert_int_equal(bad.state, STATE_DEAD);
    assert_true(slice_equal(bad.last_code, SLICE("insist:payload_damaged")));
    assert_true(slice_equal(bad.dead_code, SLICE("PERMANENT_ERROR")));
    assert_int_equal(bad.last_class, OUTCOME_PERMANENT);
    assert_int_equal(bad.attempts, 0);
    assert_int_equal(bad.attempts_total, 0);
    assert_true(slice_has_prefix(bad.last_error, SLICE("PAYLOAD_DAMAGED")));
    assert_int_equal(world_job(&world, "t", "g").state, STATE_COMPLETED);
    assert_int_equal(world.send_count, 1);
    assert_int_equal(engine_figures(world.engine).dead, 1);
    const char *line = strstr(said, "\"job_dead\"");
    assert_non_null(line);
    assert_non_null(strstr(line, "insist:payload_damaged"));
    assert_non_null(strstr(said, "\"level\":\"error\""));
    world_end(&world);
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
        struct world world;
        char id[16];
        begin(&world, files[i]);
        for (int n = 0; n < 40; n++) {
            snprintf(id, sizeof id, "%d", n);
            world_add(&world, "d", n % 2 ? "A" : "B", id, n < 20 ? "bad" : "good");
        }
        world_run_for(&world, 60 * 1000);
        check(world_counts(&world, "d").dead == 20, "%zu: %d dead", i, (int)world_counts(&world, "d").dead);
        check(world_counts(&world, "d").completed == 20, "%zu: completed", i);
        assert_int_equal(status_of(&world).under_way, 0);
        assert_string_equal(status_of(&world).breaker, "closed");
        world_end(&world);
    }
}

/* With its payload given anew it goes. */
static void corrected_it_is_sent(void **state)
{
    struct world world;
    struct store_op redrive = { .kind = OP_REDRIVE, .job = { .tenant = SLICE("t"), .id = SLICE("b"), .payload_given = true,
                                                             .payload = SLICE("good") } };
    (void)state;
    begin(&world, "destinations: { d: { url: 'https://d.example/', retry: { max_retries: 3 } } }\n");
    world_add(&world, "d", "t", "b", "bad");
    world_run_for(&world, 1000);
    assert_int_equal(world_job(&world, "t", "b").state, STATE_DEAD);
    assert_int_equal(world.send_count, 0);
    world_apply(&world, &redrive);
    world_crash(&world); /* so that the engine sees what is ready */
    world.applied = damage_bad_ones;
    world_run_for(&world, 1000);
    assert_int_equal(world_job(&world, "t", "b").state, STATE_COMPLETED);
    assert_int_equal(world_job(&world, "t", "b").attempts, 1);
    world_end(&world);
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
