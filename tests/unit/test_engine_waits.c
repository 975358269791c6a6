/*
 * A job that is told to wait spends nothing while the destination may be meant. Others that are served meanwhile show that
 * it is the job, and its waits count; with nobody else to ask it is sent ever more seldom.
 */
#include "support/check.h"
#include "support/engine_fixture.h"

#include "base/log.h"

#include <inttypes.h>

#define SIFEN                                                                                                                \
    "destinations: { d: { preset: sifen, url: 'https://a.example/', verify: { url: 'https://a.example/v' },"                \
    " poll: { url: 'https://a.example/p' }, health: { url: 'https://a.example/h' }, tls: { cert: c, key: k } } }\n"

enum { SENDS = 4 /* by the policy */, DAYS = 3 /* job_ttl */ };

struct story {
    int64_t sends; /* of the one that is told to wait */
    instant last_at;
    int64_t closest_ms; /* two of them, from the sixth on */
};

static int64_t answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct story *story = stage->context;
    if (!slice_equal(send->job->id, SLICE("waits"))) {
        answer->outcome = OUTCOME_DELIVERED;
        return 50;
    }
    int64_t gap = stage->now - story->last_at;
    if (++story->sends > 6 && gap < story->closest_ms)
        story->closest_ms = gap;
    story->last_at = stage->now;
    answer->code = SLICE("sifen:0162"); /* stopped, without a time of return */
    answer->text = SLICE("Servidor de procesamiento paralizado");
    return 50;
}

static int64_t is_up(struct stage *stage, const struct probe *probe, struct health_answer *answer)
{
    (void)stage;
    (void)probe;
    *answer = (struct health_answer){ .connected = true, .status = 200,
        .body = SLICE("{\"status\":\"UP\",\"services\":{\"facturation\":\"UP\",\"batch\":\"UP\"}}") };
    return 5;
}

static void begin(struct story *story, struct stage *stage, const char *yaml)
{
    *story = (struct story){ .closest_ms = INT64_MAX };
    *stage = (struct stage){ .destination = answers, .health = is_up, .context = story };
    stage_begin(stage, yaml, began);
    stage_add(stage, "d", "A", "waits", "x");
}

/* 30 90 270 810 2430 seconds, then once an hour: as a counted failure would wait, but none is spent. */
static void alone_it_is_sent_ever_more_seldom(void **state)
{
    (void)state;
    struct story story;
    struct stage stage;
    begin(&story, &stage, SIFEN);
    for (int hour = 0; hour < DAYS * 24 - 1; hour++) {
        stage_run_for(&stage, HOUR_MS);
        if (hour == 30)
            stage_crash(&stage); /* how often it waited is in the store */
    }
    struct job job = stage_job(&stage, "A", "waits");
    assert_int_equal(job.state, STATE_WAITING);
    assert_int_equal(job.retry_count, 0);
    assert_in_range(story.sends, 5, 6 + (DAYS * 24 * 10) / 9); /* its jitter is a tenth */
    check(story.closest_ms >= HOUR_MS * 9 / 10, "sent again after %" PRId64 " s", story.closest_ms / 1000);
    stage_run_for(&stage, 2 * HOUR_MS);
    assert_int_equal(stage_job(&stage, "A", "waits").state, STATE_DEAD); /* by its deadline */
    stage_end(&stage);
}

/* The first one is free; then it is the job, and not the destination, that is told to wait. */
static void while_others_are_served_it_counts(void **state)
{
    (void)state;
    struct story story;
    struct stage stage;
    begin(&story, &stage, SIFEN);
    for (int minute = 0; minute < 60; minute++) {
        stage_add(&stage, "d", "B", NULL, "x");
        stage_run_for(&stage, MINUTE_MS / 4);
        if (minute == 0)
            assert_int_equal(stage_job(&stage, "A", "waits").retry_count, 0);
    }
    struct job job = stage_job(&stage, "A", "waits");
    assert_int_equal(job.state, STATE_DEAD);
    assert_true(slice_equal(job.dead_code, SLICE("MAX_RETRIES_EXCEEDED")));
    assert_int_equal(job.last_class, OUTCOME_WAIT);
    assert_int_equal(story.sends, SENDS + 1);
    assert_string_equal(status_of(&stage).mode, "normal");
    stage_end(&stage);
}

/* What others got before it was told to wait says nothing. */
static void what_was_before_does_not_count(void **state)
{
    (void)state;
    struct story story;
    struct stage stage;
    begin(&story, &stage, SIFEN);
    stage_add(&stage, "d", "B", NULL, "x");
    stage_run_for(&stage, 10 * MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 1);
    assert_in_range(stage_job(&stage, "A", "waits").retry_count, 0, 1); /* that one of B's, answered in the same moment */
    int64_t spent = stage_job(&stage, "A", "waits").retry_count;
    stage_run_for(&stage, 10 * HOUR_MS);
    assert_int_equal(stage_job(&stage, "A", "waits").retry_count, spent);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_it_is_sent_ever_more_seldom),
        cmocka_unit_test(while_others_are_served_it_counts),
        cmocka_unit_test(what_was_before_does_not_count),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
