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

static void begin_with_jobs(struct stage *stage)
{
    *stage = (struct stage){ .destination = delivers };
    stage_begin(stage, CONFIG, began);
    for (int i = 0; i < JOBS; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        stage_add(stage, "d", "t", id, "x");
    }
}

/* All are delivered, by one send each, and nothing else was counted. */
static void end_with_all_sent_once(struct stage *stage)
{
    stage_run_for(stage, HOUR_MS);
    assert_int_equal(stage_counts(stage, "d").completed, JOBS);
    for (int i = 0; i < JOBS; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        struct job job = stage_job(stage, "t", id);
        check(job.attempts == 1 && job.attempts_total == 1 && job.retry_count == 0 && !job.doubted,
              "job %d: %d attempts, %d retries", i, (int)job.attempts_total, (int)job.retry_count);
    }
    assert_int_equal(stage->send_count, JOBS);
    stage_end(stage);
}

/* The store goes with four sends under way: in doubt is the transaction that settles the first of them. */
static void what_was_under_way_is_settled_when_it_is_back(void **state)
{
    static const int64_t absences[] = { 1, SECOND_MS, MINUTE_MS, 12 * HOUR_MS };
    (void)state;
    for (int applied = 0; applied < 2; applied++)
        for (size_t i = 0; i < COUNT_OF(absences); i++) {
            struct stage stage;
            begin_with_jobs(&stage);
            stage_settle(&stage);
            assert_int_equal(stage.send_count, AT_ONCE);
            stage_leave(&stage, applied);
            stage_run_for(&stage, 20);
            assert_non_null(stage.doubted);
            stage_run_for(&stage, absences[i]);
            assert_int_equal(stage.send_count, AT_ONCE); /* nothing more was claimed */
            assert_int_equal(sends_under_way(&stage), 0);
            assert_int_equal(stage_counts(&stage, "d").dead, 0);
            stage_return(&stage);
            end_with_all_sent_once(&stage);
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
            struct stage stage;
            begin_with_jobs(&stage);
            while (!stage.batches || stage.batches->ops[0].kind != OP_CLAIM)
                assert_true(stage_step(&stage));
            stage_leave(&stage, applied);
            stage_step(&stage);
            assert_non_null(stage.doubted);
            assert_int_equal(stage_counts(&stage, "d").running, applied ? AT_ONCE : 0);
            stage_run_for(&stage, absences[i]);
            assert_int_equal(stage.send_count, 0);
            stage_return(&stage);
            if (applied) /* with its own lease, which still covers a send of its whole timeout */
                assert_int_equal(stage.send_count, absences[i] <= 60 * SECOND_MS ? AT_ONCE : 0);
            end_with_all_sent_once(&stage);
        }
}

/* Who stops while the store is away does not wait for ever; what nobody could write down is found by the next start. */
static void a_stop_does_not_wait_for_a_store_that_is_away(void **state)
{
    struct stage stage;
    (void)state;
    begin_with_jobs(&stage);
    stage_settle(&stage);
    stage_leave(&stage, false);
    stage_run_for(&stage, 30);
    engine_stop(stage.engine);
    assert_non_null(stage.doubted);
    for (int i = 0; i < 10 && engine_under_way(stage.engine) > 0; i++) {
        struct batch *doubted = stage.doubted;
        stage.doubted = NULL;
        if (doubted) { /* as the writer does that is told to wait no more */
            doubted->status = error_set(&doubted->error, STATUS_AWAY, "the test's store is away");
            doubted->done(doubted);
        }
        stage_run_for(&stage, SECOND_MS);
    }
    assert_int_equal(engine_under_way(stage.engine), 0);
    stage_return(&stage);
    assert_int_equal(stage_counts(&stage, "d").running, AT_ONCE);
    stage_end(&stage);
}

/* The store goes with the first claim, the clock is set a second later, and so much after that the store is back. */
static size_t sent_after_absence(const char *limits, int64_t clock_ms, int64_t away_ms)
{
    char config[512];
    struct stage stage = { .destination = delivers };
    snprintf(config, sizeof config, "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, "
                                    "timeout: 10s, in_doubt: verify, verify: { url: 'http://127.0.0.1:1/{id}' }, %s } }\n", limits);
    stage_begin(&stage, config, began);
    for (int job = 0; job < JOBS; job++)
        stage_add(&stage, "d", "t", NULL, "x");
    while (!stage.batches || stage.batches->ops[0].kind != OP_CLAIM)
        assert_true(stage_step(&stage));
    stage_leave(&stage, true);
    stage_step(&stage);
    assert_int_equal(stage_counts(&stage, "d").running, AT_ONCE);
    stage_run_for(&stage, SECOND_MS);
    stage.now += clock_ms;
    engine_run(stage.engine); /* as it does each second, by a clock that is never set */
    stage_run_for(&stage, away_ms);
    stage_return(&stage);
    stage_run_for(&stage, SECOND_MS);
    size_t sent = stage.send_count;
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, JOBS);
    stage_end(&stage);
    return sent;
}

/*
 * What was claimed and paid for before the store went is sent when it is back only as far as the rate allows then: what has
 * become free meanwhile would else go out twice. By a clock that was put back it is not known how long ago that was.
 */
static void a_rate_holds_over_an_absence(void **state)
{
    static const char *const limits[] = {
        "concurrency: 4, rate: { total: 4/m, burst: 4 }",
        "concurrency: 4, rate: { per_tenant: 4/m, burst: 4 }",
        "concurrency: 8, rate: { total: 4/m, burst: 4 }", /* more is claimed in vain meanwhile */
        "concurrency: 8, rate: { per_tenant: 4/m, burst: 4 }",
    };
    static const int64_t clocks[] = { 0, -9 * HOUR_MS, -50 * SECOND_MS }, aways[] = { 44 * SECOND_MS, 58 * SECOND_MS };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(limits); i++)
        for (size_t k = 0; k < COUNT_OF(clocks) * COUNT_OF(aways); k++) {
            int64_t clock = clocks[k / COUNT_OF(aways)], away = aways[k % COUNT_OF(aways)];
            size_t sent = sent_after_absence(limits[i], clock, away);
            check(sent <= AT_ONCE, "%s, %d ms, the clock by %d: %zu sends at once", limits[i], (int)away, (int)clock, sent);
        }
    assert_true(sent_after_absence(limits[0], 0, 58 * SECOND_MS) > 0);
}

static int64_t refuses(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    *answer = (struct answer){ .attempted = true, .outcome = OUTCOME_BLOCKED, .code = SLICE("http:401"), .text = SLICE("unauthorized"),
                               .retry_after_ms = -1 };
    return 20;
}

/* The next look is due before this one is answered. */
static int64_t refuses_late(struct stage *stage, const struct send *send, struct answer *answer)
{
    refuses(stage, send, answer);
    return 9 * SECOND_MS;
}

static bool has_claim(const struct batch *batch)
{
    for (size_t i = 0; batch && i < batch->count; i++)
        if (batch->ops[i].kind == OP_CLAIM)
            return true;
    return false;
}

/* A look is a send like others: its lease covers its whole timeout, however long that is. */
static void a_look_has_its_whole_timeout(void **state)
{
    (void)state;
    struct stage stage = { .destination = refuses };
    stage_begin(&stage, "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, timeout: 5m, concurrency: 4 } }\n",
                began);
    add_jobs(&stage, 8);
    stage_run_for(&stage, 59 * SECOND_MS);
    size_t refused = stage.send_count;
    stage_run_for(&stage, 5 * SECOND_MS);
    assert_int_equal(stage.send_count, refused + 1);
    stage_end(&stage);
}

/* Accounts get locked: a look that was claimed before the absence and one that is due after it are one. */
static void a_look_of_before_the_absence_is_the_only_one(void **state)
{
    (void)state;
    struct stage stage = { .destination = refuses };
    stage_begin(&stage, CONFIG, began);
    add_jobs(&stage, 8);
    stage_run_for(&stage, 59 * SECOND_MS);
    size_t refused = stage.send_count;
    assert_true(refused >= 2);
    for (int i = 0; i < 5000 && !has_claim(stage.batches); i++)
        if (!stage_step(&stage))
            stage.now++;
    assert_true(has_claim(stage.batches));
    stage.destination = refuses_late;
    stage_leave(&stage, true);
    stage_step(&stage);
    stage_run_for(&stage, 58 * SECOND_MS); /* its lease is still good */
    assert_int_equal(stage.send_count, refused);
    stage_return(&stage);
    stage_run_for(&stage, 50 * SECOND_MS);
    assert_int_equal(stage.send_count, refused + 1);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_under_way_is_settled_when_it_is_back),
        cmocka_unit_test(a_claim_in_doubt_is_sent_once),
        cmocka_unit_test(a_rate_holds_over_an_absence),
        cmocka_unit_test(a_look_has_its_whole_timeout),
        cmocka_unit_test(a_look_of_before_the_absence_is_the_only_one),
        cmocka_unit_test(a_stop_does_not_wait_for_a_store_that_is_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
