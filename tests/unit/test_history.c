/*
 * What the engine keeps of a destination minute by minute: as it was, in fixed size, over a restart, and nothing of one where
 * nothing happens.
 */
#include "engine/history.h"
#include "engine/orders.h"
#include "support/check.h"
#include "support/stage.h"

#include <stdio.h>

static const instant began = INT64_C(1736676000000); /* 2025-01-12T10:00Z */

/* "ok" is delivered in 20 ms, "slow" in 3 s; any other payload is the code of a failure. */
static int64_t answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    bool slow = slice_equal(send->job->payload, SLICE("slow"));
    (void)stage;
    if (slow || slice_equal(send->job->payload, SLICE("ok"))) {
        answer->outcome = OUTCOME_DELIVERED;
    } else {
        answer->code = send->job->payload;
        answer->text = SLICE("it failed");
    }
    answer->duration_ms = slow ? 3000 : 20;
    return answer->duration_ms;
}

static void begin(struct stage *stage)
{
    stage_begin(stage,
                "destinations:\n"
                "  d: { url: 'http://127.0.0.1:1/', allow_private: true, concurrency: 10, breaker: { min_calls: 100000 },\n"
                "       retry: { max_retries: 5, base: 1h, factor: 1, floor: 1h, cap: 1h, jitter: 0 },\n"
                "       errors: { permanent: ['http:400'], transient: ['http:503'] } }\n"
                "  idle: { url: 'http://127.0.0.1:1/', allow_private: true }\n",
                began);
}

static void add(struct stage *stage, const char *payload)
{
    stage_add(stage, "d", "t", NULL, payload);
}

/* The points that the store has, by minute or hour since the beginning. */
enum { POINTS = 200 };
struct found {
    const struct history_scale *scale;
    struct history_point points[POINTS];
    bool known[POINTS];
    size_t bytes, pages;
};

static void take(void *context, instant at, const struct history_point *point)
{
    struct found *found = context;
    int64_t i = (at - began) / found->scale->step_ms;
    if (i < 0 || i >= POINTS)
        return;
    found->points[i] = *point;
    found->known[i] = true;
}

static enum status take_page(void *context, const struct saved *saved)
{
    struct found *found = context;
    struct slice minutes, hours;
    found->bytes += saved->value.len;
    found->pages++;
    history_split(saved->value, &minutes, &hours);
    history_page_each(found->scale, minutes, take, found);
    history_page_each(found->scale, hours, take, found);
    return STATUS_OK;
}

static struct found find(struct stage *stage, const struct history_scale *scale)
{
    struct found found = { .scale = scale };
    struct error err;
    assert_int_equal(store_each_saved(stage->reader, SPACE_HISTORY, take_page, &found, &err), STATUS_OK);
    assert_int_equal(store_each_saved(stage->reader, SPACE_HISTORY_NOW, take_page, &found, &err), STATUS_OK);
    return found;
}

static void minutes_are_as_they_were(void **state)
{
    struct stage stage = { .destination = answers };
    (void)state;
    begin(&stage);
    for (int i = 0; i < 7; i++)
        add(&stage, "ok");
    add(&stage, "http:503");
    add(&stage, "http:400");
    stage_run_until(&stage, began + MINUTE_MS + 2 * SECOND_MS);
    for (int i = 0; i < 4; i++)
        add(&stage, "slow");
    stage_run_until(&stage, began + 3 * MINUTE_MS + 2 * SECOND_MS);
    struct found found = find(&stage, &history_minutes);
    assert_true(found.known[0] && found.known[1] && found.known[2]);
    assert_int_equal(found.points[0].delivered, 7);
    assert_int_equal(found.points[0].failed[OUTCOME_TRANSIENT], 1);
    assert_int_equal(found.points[0].failed[OUTCOME_PERMANENT], 1);
    assert_in_range(found.points[0].p50_ms, 10, 25); /* as near as the counts are */
    assert_in_range(found.points[0].limit, 1, 10);
    assert_int_equal(found.points[0].mode, HISTORY_NORMAL);
    assert_int_equal(found.points[0].pending, 1); /* that waits for its retry */
    assert_int_equal(found.points[1].delivered, 4);
    assert_in_range(found.points[1].p95_ms, 2100, 5000);
    assert_int_equal(found.points[2].delivered, 0);
    assert_int_equal(found.points[2].p50_ms, -1); /* nothing was sent, one waits */
    assert_int_equal(found.pages, 1);              /* nothing of the idle one */
    found = find(&stage, &history_hours);
    assert_int_equal(found.points[0].delivered, 11);
    assert_int_equal(found.points[0].failed[OUTCOME_PERMANENT], 1);
    stage_end(&stage);
}

/* A queue that stands still has an age, and a held one its mode. */
static void a_held_queue_has_its_age_and_mode(void **state)
{
    struct stage stage = { .destination = answers };
    struct error err;
    (void)state;
    begin(&stage);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &err), STATUS_OK);
    stage_run_for(&stage, 10 * SECOND_MS);
    for (int i = 0; i < 20; i++)
        add(&stage, "ok");
    stage_run_until(&stage, began + 5 * MINUTE_MS + 2 * SECOND_MS);
    struct found found = find(&stage, &history_minutes);
    assert_int_equal(found.points[4].pending, 20);
    assert_in_range(found.points[4].oldest_s, 285, 300);
    assert_int_equal(found.points[4].mode, HISTORY_PAUSED);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &err), STATUS_OK);
    assert_int_equal(engine_resume(stage.engine, SLICE("d"), &err), STATUS_OK);
    stage_run_for(&stage, MINUTE_MS);
    found = find(&stage, &history_minutes);
    assert_int_equal(found.points[5].mode, HISTORY_CONTINGENCY);
    stage_end(&stage);
}

static void count_saves(struct stage *stage, const struct store_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *(int *)stage->context += ops[i].kind == OP_SAVE && (slice_equal(ops[i].save.space, SPACE_HISTORY) ||
                                                             slice_equal(ops[i].save.space, SPACE_HISTORY_NOW));
}

static void an_idle_one_is_not_written(void **state)
{
    struct stage stage = { .destination = answers };
    int saves = 0;
    (void)state;
    begin(&stage);
    stage.context = &saves;
    stage.applied = count_saves;
    add(&stage, "ok");
    stage_run_for(&stage, 3 * MINUTE_MS);
    assert_int_equal(saves, 1);
    stage_run_for(&stage, 6 * HOUR_MS);
    assert_int_equal(saves, 1);
    stage_end(&stage);
}

/* In order nothing is lost, of the minute either; after a crash that minute is. */
static void a_restart_goes_on(void **state)
{
    struct stage stage = { .destination = answers };
    (void)state;
    begin(&stage);
    add(&stage, "ok");
    stage_run_for(&stage, 10 * SECOND_MS);
    stage_restart(&stage);
    add(&stage, "ok");
    stage_run_until(&stage, began + MINUTE_MS + 2 * SECOND_MS);
    struct found found = find(&stage, &history_minutes);
    assert_int_equal(found.points[0].delivered, 2);
    stage_crash(&stage);
    add(&stage, "ok");
    stage_run_until(&stage, began + 2 * MINUTE_MS + 2 * SECOND_MS);
    found = find(&stage, &history_minutes);
    assert_int_equal(found.points[0].delivered, 2);
    assert_int_equal(found.points[1].delivered, 1);
    assert_int_equal(find(&stage, &history_hours).points[0].delivered, 3);
    stage_run_until(&stage, began + 3 * HOUR_MS);
    stage_restart(&stage);
    add(&stage, "ok");
    stage_run_until(&stage, began + 3 * HOUR_MS + 2 * MINUTE_MS);
    found = find(&stage, &history_hours);
    assert_int_equal(found.points[0].delivered, 3); /* the hours before it are there still */
    assert_int_equal(found.points[3].delivered, 1);
    stage_end(&stage);
}

/* What is older than two days is only there by hours, and the store does not grow. */
static void old_minutes_give_way(void **state)
{
    struct stage stage = { .destination = answers };
    (void)state;
    begin(&stage);
    for (int h = 0; h < 60; h++) {
        stage_run_until(&stage, began + h * HOUR_MS + SECOND_MS);
        add(&stage, "ok");
        add(&stage, "http:400");
    }
    stage_run_for(&stage, 2 * MINUTE_MS);
    struct found minutes = find(&stage, &history_minutes), hours = find(&stage, &history_hours);
    assert_int_equal(minutes.pages, 48 + 2 + 1); /* hours, days, and those being written */
    for (int h = 0; h < 60; h++) {
        assert_true(hours.known[h]);
        assert_int_equal(hours.points[h].delivered, 1);
        assert_int_equal(hours.points[h].failed[OUTCOME_PERMANENT], 1);
    }
    assert_false(minutes.known[0]);
    assert_false(minutes.known[60]);
    stage_end(&stage);
}

/* A store that fails for a while brings it with the next minute. */
static void a_failed_write_is_made_good(void **state)
{
    struct stage stage = { .destination = answers };
    (void)state;
    begin(&stage);
    add(&stage, "ok");
    stage_run_until(&stage, began + 59 * SECOND_MS);
    stage.fail_applies = true;
    stage_run_until(&stage, began + 90 * SECOND_MS);
    stage.fail_applies = false;
    assert_int_equal(find(&stage, &history_minutes).pages, 0);
    stage_run_until(&stage, began + 3 * MINUTE_MS);
    assert_int_equal(find(&stage, &history_minutes).points[0].delivered, 1);
    stage_end(&stage);
}

/* After the clock was put back by a day it is written again, and what was stays readable. */
static void a_clock_put_back_does_not_stop_it(void **state)
{
    struct stage stage = { .destination = answers };
    (void)state;
    begin(&stage);
    stage.now += DAY_MS;
    add(&stage, "ok");
    stage_run_for(&stage, 2 * MINUTE_MS);
    stage.now = began + 10 * MINUTE_MS;
    add(&stage, "ok");
    add(&stage, "ok");
    stage.wake_at = stage.now;
    stage_run_for(&stage, 3 * MINUTE_MS);
    int64_t delivered = 0;
    struct found found = find(&stage, &history_minutes);
    for (int i = 0; i < POINTS; i++)
        delivered += found.points[i].delivered;
    assert_true(delivered >= 1);
    add(&stage, "ok");
    stage_run_for(&stage, 3 * MINUTE_MS);
    assert_true(find(&stage, &history_minutes).known[13] || find(&stage, &history_minutes).known[14]);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(minutes_are_as_they_were),
        cmocka_unit_test(a_held_queue_has_its_age_and_mode),
        cmocka_unit_test(an_idle_one_is_not_written),
        cmocka_unit_test(a_restart_goes_on),
        cmocka_unit_test(old_minutes_give_way),
        cmocka_unit_test(a_failed_write_is_made_good),
        cmocka_unit_test(a_clock_put_back_does_not_stop_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
