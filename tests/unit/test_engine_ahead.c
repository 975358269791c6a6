/*
 * Claims ahead of free slots: quick destinations never wait for the store, and nothing else changes.
 */
#include "engine/orders.h"
#include "support/check.h"
#include "support/engine_fixture.h"

#include <stdio.h>

#define YAML                                                                                                               \
    "listen: 127.0.0.1:0\n"                                                                                                \
    "destinations:\n"                                                                                                      \
    "  d: { url: 'http://d.example/', concurrency: 4, breaker: { enabled: false } }\n"                                     \
    "  careful: { url: 'http://c.example/', concurrency: 4, in_doubt: park }\n"

enum { COMMIT_MS = 10, SLOTS = 4, WARM_MS = 300 /* a destination has to prove that it is quick */ };

struct scene {
    int64_t takes_ms;
    int64_t next_ms; /* what the next one takes instead; 0: as all */
    int64_t sends, under_way_max;
    int64_t small_at; /* number of the send that was the small tenant's; 0: not yet */
};

static int64_t destination(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct scene *scene = stage->context;
    int64_t under_way = (int64_t)sends_under_way(stage) + 1;
    scene->sends++;
    if (under_way > scene->under_way_max)
        scene->under_way_max = under_way;
    if (scene->small_at == 0 && slice_equal(send->job->tenant, SLICE("small")))
        scene->small_at = scene->sends;
    answer->outcome = OUTCOME_DELIVERED;
    int64_t takes_ms = scene->next_ms > 0 ? scene->next_ms : scene->takes_ms;
    scene->next_ms = 0;
    return takes_ms;
}

static void begin(struct stage *stage, struct scene *scene, const char *to, size_t jobs)
{
    *stage = (struct stage){ .context = scene, .destination = destination };
    stage_begin(stage, YAML, INT64_C(1760000000000));
    stage->commit_ms = COMMIT_MS;
    for (size_t i = 0; i < jobs; i++) {
        char id[32];
        snprintf(id, sizeof id, "j%zu", i);
        stage_add(stage, to, "t", id, "{}");
    }
}

/* Runs in small steps until all is done; returns how long that took. The most that were claimed at once is told. */
static int64_t run_all(struct stage *stage, const char *to, int64_t jobs, int64_t *ret_running_max)
{
    instant start = stage->now;
    *ret_running_max = 0;
    while (stage_counts(stage, to).completed < jobs && stage->now < start + HOUR_MS) {
        stage_run_for(stage, 1);
        int64_t running = stage_counts(stage, to).running;
        *ret_running_max = running > *ret_running_max ? running : *ret_running_max;
    }
    assert_int_equal(stage_counts(stage, to).completed, jobs);
    return stage->now - start;
}

static void quick_sends_do_not_wait_for_the_store(void **state)
{
    (void)state;
    enum { JOBS = 4000 };
    struct stage stage;
    struct scene scene = { .takes_ms = 1 };
    int64_t running_max;
    begin(&stage, &scene, "d", JOBS);
    int64_t took = run_all(&stage, "d", JOBS, &running_max);
    check(took < 5 * JOBS / SLOTS / 4 + WARM_MS, "took %lld ms", (long long)took);
    assert_int_equal(scene.sends, JOBS);
    assert_int_equal(scene.under_way_max, SLOTS);
    stage_end(&stage);
}

/* Slow ones, and those that must not be sent twice, claim no more than there are slots. */
static void others_claim_only_for_free_slots(void **state)
{
    (void)state;
    static const struct { const char *to; int64_t takes_ms; } rows[] = { { "d", 1000 }, { "careful", 1 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct stage stage;
        struct scene scene = { .takes_ms = rows[i].takes_ms };
        int64_t running_max;
        begin(&stage, &scene, rows[i].to, 100);
        run_all(&stage, rows[i].to, 100, &running_max);
        /* Those answered count as running until that is written down. */
        check(running_max <= 2 * SLOTS, "row %zu: %lld claimed at once", i, (long long)running_max);
        stage_end(&stage);
    }
}

/* Refuses everything. */
static int64_t refuses(struct stage *stage, const struct send *send, struct answer *answer)
{
    int64_t takes_ms = destination(stage, send, answer);
    answer->outcome = OUTCOME_PERMANENT;
    answer->code = SLICE("http:422");
    answer->text = SLICE("HTTP 422: no");
    return takes_ms;
}

/* What is claimed ahead is not sent into a dead-letter store that has become full. */
static void a_full_dead_letter_store_gives_them_back(void **state)
{
    enum { DEAD_MAX = 3 };
    struct scene scene = { .takes_ms = 1 };
    struct stage stage = { .context = &scene, .destination = destination };
    (void)state;
    stage_begin(&stage, "destinations: { d: { url: 'http://d.example/', concurrency: 4, breaker: { enabled: false }, "
                        "dead: { max: 3 } } }\n", INT64_C(1760000000000));
    stage.commit_ms = COMMIT_MS;
    for (int i = 0; i < 4000; i++)
        stage_add(&stage, "d", "t", NULL, "{}");
    stage_run_for(&stage, WARM_MS);
    assert_true(stage_counts(&stage, "d").running > SLOTS); /* some are claimed ahead */
    stage.destination = refuses;
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_in_range(stage_counts(&stage, "d").dead, DEAD_MAX, DEAD_MAX + SLOTS);
    assert_int_equal(stage_counts(&stage, "d").running, 0);
    stage_end(&stage);
}

static void after_a_death_nothing_is_claimed_ahead_for_a_while(void **state)
{
    (void)state;
    struct stage stage;
    struct scene scene = { .takes_ms = 1 };
    begin(&stage, &scene, "d", 3000);
    stage_run_for(&stage, WARM_MS);
    assert_true(stage_counts(&stage, "d").running > 2 * SLOTS);
    stage_crash(&stage);
    for (int i = 0; i < 500; i++) {
        stage_run_for(&stage, 1);
        if (i > 5 * COMMIT_MS) /* by then the interrupted ones are settled */
            check(stage_counts(&stage, "d").running <= 2 * SLOTS, "%d ms after", i);
    }
    stage_end(&stage);
}

/* The clock goes back by hours: the minute without claims ahead is not hours because of it. */
static void a_clock_put_back_does_not_make_that_longer(void **state)
{
    (void)state;
    struct stage stage;
    struct scene scene = { .takes_ms = 1 };
    begin(&stage, &scene, "d", 3000);
    stage_run_for(&stage, WARM_MS);
    stage_crash(&stage);
    stage_run_for(&stage, 10 * COMMIT_MS);
    stage.now -= 5 * (instant)HOUR_MS;
    for (struct stage_send *send = stage.sends; send; send = send->next)
        send->at = stage.now + 1; /* these take as long as they take */
    stage.commit_at = stage.now + COMMIT_MS;
    stage.wake_at = stage.now;
    stage_run_for(&stage, 2 * MINUTE_MS);
    for (int i = 0; i < 2000; i++)
        stage_add(&stage, "d", "t", NULL, "{}");
    int64_t most = 0;
    for (int i = 0; i < 2 * WARM_MS; i++) {
        stage_run_for(&stage, 1);
        int64_t running = stage_counts(&stage, "d").running;
        most = running > most ? running : most;
    }
    check(most > 2 * SLOTS, "%d claimed at most", (int)most);
    stage_end(&stage);
}

static void check_untouched(struct stage *stage, int64_t jobs)
{
    int64_t sent = 0;
    for (int64_t i = 0; i < jobs; i++) {
        char id[32];
        snprintf(id, sizeof id, "j%lld", (long long)i);
        struct job job = stage_job(stage, "t", id);
        sent += job.state == STATE_COMPLETED;
        check(job.attempts == (job.state == STATE_COMPLETED), "%s has %lld attempts", id, (long long)job.attempts);
        check(job.state != STATE_RUNNING, "%s is running", id);
    }
    assert_int_equal(sent, ((struct scene *)stage->context)->sends);
}

static void a_pause_gives_them_back(void **state)
{
    (void)state;
    enum { JOBS = 3000 };
    struct stage stage;
    struct scene scene = { .takes_ms = 1 };
    struct error error;
    int64_t running_max;
    begin(&stage, &scene, "d", JOBS);
    stage_run_for(&stage, WARM_MS);
    assert_true(stage_counts(&stage, "d").running > 2 * SLOTS);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    int64_t sends = scene.sends;
    stage_run_for(&stage, 20 * COMMIT_MS);
    assert_int_equal(scene.sends, sends);
    check_untouched(&stage, JOBS);
    assert_int_equal(engine_resume(stage.engine, SLICE("d"), &error), STATUS_OK);
    run_all(&stage, "d", JOBS, &running_max);
    assert_int_equal(scene.sends, JOBS);
    stage_end(&stage);
}

static void a_stop_gives_them_back(void **state)
{
    (void)state;
    enum { JOBS = 3000 };
    struct stage stage;
    struct scene scene = { .takes_ms = 1 };
    begin(&stage, &scene, "d", JOBS);
    stage_run_for(&stage, WARM_MS);
    assert_true(stage_counts(&stage, "d").running > 2 * SLOTS);
    engine_stop(stage.engine);
    stage_run_for(&stage, 20 * COMMIT_MS);
    assert_int_equal(engine_under_way(stage.engine), 0);
    check_untouched(&stage, JOBS);
    stage_end(&stage);
}

/* The destination hangs: what was claimed for it is not kept from an urgent job, or from another daemon. */
static void a_second_is_the_longest_wait(void **state)
{
    (void)state;
    struct stage stage;
    struct scene scene = { .takes_ms = 1 };
    begin(&stage, &scene, "d", 3000);
    stage_run_for(&stage, WARM_MS);
    assert_true(stage_counts(&stage, "d").running > 2 * SLOTS);
    scene.takes_ms = HOUR_MS;
    stage_run_for(&stage, 2500);
    assert_int_equal(stage_counts(&stage, "d").running, SLOTS);
    stage_end(&stage);
}

/* While others wait for a slot an answer is written down with the next ones; when there are none, by itself, soon. */
static void an_answer_is_written_without_another(void **state)
{
    (void)state;
    struct stage stage;
    struct scene scene = { .takes_ms = 1 };
    begin(&stage, &scene, "d", 3000);
    stage_run_for(&stage, WARM_MS);
    scene.takes_ms = HOUR_MS;
    scene.next_ms = 20 * COMMIT_MS;
    stage_run_for(&stage, 19 * COMMIT_MS); /* all else is written */
    int64_t sends = scene.sends, completed = stage_counts(&stage, "d").completed;
    assert_int_equal(completed, sends - SLOTS);
    assert_true(stage_counts(&stage, "d").running > SLOTS);
    stage_run_for(&stage, 3 * COMMIT_MS);
    assert_int_equal(scene.sends, sends + 1);
    assert_int_equal(stage_counts(&stage, "d").completed, completed + 1);
    stage_end(&stage);
}

static void a_tenant_that_comes_later_is_not_last(void **state)
{
    (void)state;
    struct stage stage;
    struct scene scene = { .takes_ms = 1 };
    begin(&stage, &scene, "d", 3000);
    stage_run_for(&stage, WARM_MS);
    stage_add(&stage, "d", "small", "s", "{}");
    int64_t claimed_at = 0;
    while (scene.small_at == 0 && stage_counts(&stage, "d").completed <= 3000) {
        assert_true(stage_step(&stage) || (stage_run_for(&stage, 1), true));
        if (claimed_at == 0 && stage_job(&stage, "small", "s").state == STATE_RUNNING)
            claimed_at = scene.sends;
    }
    check(scene.small_at - claimed_at <= 3 + SLOTS, "%lld sends after it was claimed",
          (long long)(scene.small_at - claimed_at));
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_dead_letter_store_gives_them_back),
        cmocka_unit_test(quick_sends_do_not_wait_for_the_store),
        cmocka_unit_test(others_claim_only_for_free_slots),
        cmocka_unit_test(after_a_death_nothing_is_claimed_ahead_for_a_while),
        cmocka_unit_test(a_clock_put_back_does_not_make_that_longer),
        cmocka_unit_test(a_pause_gives_them_back),
        cmocka_unit_test(a_stop_gives_them_back),
        cmocka_unit_test(a_second_is_the_longest_wait),
        cmocka_unit_test(an_answer_is_written_without_another),
        cmocka_unit_test(a_tenant_that_comes_later_is_not_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
