/*
 * The engine while a store across a network is away: nothing is claimed, nothing is spent, what was under way is settled when
 * it is back, and nothing is sent twice, whether or not the transaction that was under way has happened.
 */
#include "support/check.h"
#include "support/engine_fixture.h"

#include <stdio.h>

enum { JOBS = 20, AT_ONCE = 4 };

#define CONFIG "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, timeout: 10s, " \
               "concurrency: 4, in_doubt: verify, verify: { url: 'http://127.0.0.1:1/{id}' } } }\n"

static void begin_with_jobs(struct world *world)
{
    *world = (struct world){ .destination = delivers };
    world_begin(world, CONFIG, began);
    for (int i = 0; i < JOBS; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        world_add(world, "d", "t", id, "x");
    }
}

/* All are delivered, by one send each, and nothing else was counted. */
static void end_with_all_sent_once(struct world *world)
{
    world_run_for(world, HOUR_MS);
    assert_int_equal(world_counts(world, "d").completed, JOBS);
    for (int i = 0; i < JOBS; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        struct job job = world_job(world, "t", id);
        check(job.attempts == 1 && job.attempts_total == 1 && job.retry_count == 0 && !job.doubted,
              "job %d: %d attempts, %d retries", i, (int)job.attempts_total, (int)job.retry_count);
    }
    assert_int_equal(world->send_count, JOBS);
    world_end(world);
}

/* The store goes with four sends under way: in doubt is the transaction that settles the first of them. */
static void what_was_under_way_is_settled_when_it_is_back(void **state)
{
    static const int64_t absences[] = { 1, SECOND_MS, MINUTE_MS, 12 * HOUR_MS };
    (void)state;
    for (int applied = 0; applied < 2; applied++)
        for (size_t i = 0; i < COUNT_OF(absences); i++) {
            struct world world;
            begin_with_jobs(&world);
            world_settle(&world);
            assert_int_equal(world.send_count, AT_ONCE);
            world_leave(&world, applied);
            world_run_for(&world, 20);
            assert_non_null(world.doubted);
            world_run_for(&world, absences[i]);
            assert_int_equal(world.send_count, AT_ONCE); /* nothing more was claimed */
            assert_int_equal(sends_under_way(&world), 0);
            assert_int_equal(world_counts(&world, "d").dead, 0);
            world_return(&world);
            end_with_all_sent_once(&world);
        }
}

/*
 * In doubt is a claim. One that was made is sent when it is heard of, unless its lease does not last for that any more: then it
 * is given back, and no attempt counts.
 */
static void a_claim_in_doubt_is_sent_once(void **state)
{
    static const int64_t absences[] = { 1, SECOND_MS, 59 * SECOND_MS, 61 * SECOND_MS, 69 * SECOND_MS, 71 * SECOND_MS, 12 * HOUR_MS };
    (void)state;
    for (int applied = 0; applied < 2; applied++)
        for (size_t i = 0; i < COUNT_OF(absences); i++) {
            struct world world;
            begin_with_jobs(&world);
            while (!world.batches || world.batches->ops[0].kind != OP_CLAIM)
                assert_true(world_step(&world));
            world_leave(&world, applied);
            world_step(&world);
            assert_non_null(world.doubted);
            assert_int_equal(world_counts(&world, "d").running, applied ? AT_ONCE : 0);
            world_run_for(&world, absences[i]);
            assert_int_equal(world.send_count, 0);
            world_return(&world);
            if (applied) /* with its own lease, which still covers a send of its whole timeout */
                assert_int_equal(world.send_count, absences[i] <= 60 * SECOND_MS ? AT_ONCE : 0);
            end_with_all_sent_once(&world);
        }
}

/* Who stops while the store is away does not wait for ever; what nobody could write down is found by the next start. */
static void a_stop_does_not_wait_for_a_store_that_is_away(void **state)
{
    struct world world;
    (void)state;
    begin_with_jobs(&world);
    world_settle(&world);
    world_leave(&world, false);
    world_run_for(&world, 30);
    engine_stop(world.engine);
    assert_non_null(world.doubted);
    for (int i = 0; i < 10 && engine_under_way(world.engine) > 0; i++) {
        struct batch *doubted = world.doubted;
        world.doubted = NULL;
        if (doubted) { /* as the writer does that is told to wait no more */
            doubted->status = error_set(&doubted->error, STATUS_AWAY, "the test's store is away");
            doubted->done(doubted);
        }
        world_run_for(&world, SECOND_MS);
    }
    assert_int_equal(engine_under_way(world.engine), 0);
    world_return(&world);
    assert_int_equal(world_counts(&world, "d").running, AT_ONCE);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_under_way_is_settled_when_it_is_back),
        cmocka_unit_test(a_claim_in_doubt_is_sent_once),
        cmocka_unit_test(a_stop_does_not_wait_for_a_store_that_is_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
