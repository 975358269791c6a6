/*
 * Where a job stands on the way back from an outage: what is said is what comes.
 */
#include "core/decision/job.h"
#include "engine/loop.h"
#include "support/check.h"
#include "support/stage.h"

#include "base/log.h"

#include <stdio.h>

static const instant began = INT64_C(1736678400000);

enum { SENT_MAX = 256 };

struct sent {
    char ids[SENT_MAX][16];
    size_t count;
};

static int64_t takes_all(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct sent *sent = stage->context;
    assert_true(sent->count < SENT_MAX);
    snprintf(sent->ids[sent->count++], sizeof sent->ids[0], "%.*s", SLICE_ARG(send->job->id));
    answer->outcome = OUTCOME_DELIVERED;
    return 300;
}

static void add(struct stage *stage, const char *tenant, enum priority priority, int count)
{
    for (int i = 0; i < count; i++) {
        char id[16];
        snprintf(id, sizeof id, "%s%d", tenant, i);
        stage_apply(stage, &(struct store_op){
            .kind = OP_INSERT,
            .insert = { .destination = SLICE("d"), .tenant = slice_from(tenant), .id = slice_from(id), .priority = priority,
                        .rank = rank_of(priority, stage->now, 3600 * 1000), .run_at = stage->now, .deadline = INSTANT_NONE,
                        .payload = SLICE("x") },
        });
    }
}

/* The jobs that were sent after the first `from` and before this one. */
static int64_t sent_before(const struct sent *sent, size_t from, const char *id)
{
    for (size_t i = from; i < sent->count; i++)
        if (strcmp(sent->ids[i], id) == 0)
            return (int64_t)(i - from);
    fail_msg("%s was not sent", id);
    return 0;
}

static int64_t lane_of(const struct stage *stage, const char *tenant)
{
    for (int64_t id = 1; lane_find(stage->engine, id); id++)
        if (strcmp(lane_find(stage->engine, id)->tenant, tenant) == 0)
            return id;
    fail_msg("no lane of %s", tenant);
    return 0;
}

/* Critical work goes next, whatever waits; what is new goes after all that was held, those set aside too. */
static void the_place_heeds_the_order_of_the_way_back(void **state)
{
    (void)state;
    static const char *const held[] = { "a", "b", "c", "e", "f", "g", "h", "i" };
    struct sent sent = { .count = 0 };
    struct stage stage = { .destination = takes_all, .context = &sent };
    struct error error;
    stage_begin(&stage, "destinations: { d: { preset: http, url: 'https://a.example/', concurrency: 5, priority: { aging: 1h }"
                ", fairness: { batch: 3 }, contingency: { ramp: [5], stable: 30m, check: 5m } } }\n", began);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(held); i++)
        add(&stage, held[i], PRIORITY_NORMAL, 10);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &error), STATUS_OK);
    stage_run_for(&stage, 100);
    size_t from = sent.count;
    assert_int_equal(from, 5);
    add(&stage, "new", PRIORITY_NORMAL, 3);
    add(&stage, "critical", PRIORITY_CRITICAL, 3);
    struct queue_place critical = engine_place(stage.engine, lane_of(&stage, "critical"), 0, INSTANT_NONE);
    struct queue_place new = engine_place(stage.engine, lane_of(&stage, "new"), 0, INSTANT_NONE);
    struct queue_place old = engine_place(stage.engine, lane_of(&stage, "i"), 0, INSTANT_NONE);
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(sent.count, 10 * COUNT_OF(held) + 6);

    assert_int_equal(sent_before(&sent, from, "critical0"), 0);
    assert_int_equal(critical.before, 0);
    int64_t actual = sent_before(&sent, from, "new0");
    check(new.before >= actual && new.before <= actual + 9, "%d said, %d went before the new one", (int)new.before, (int)actual);
    actual = sent_before(&sent, from, "i0");
    check(old.before >= actual && old.before <= actual + 24, "%d said, %d went before a held one", (int)old.before, (int)actual);
    check(old.before < new.before, "%d and %d", (int)old.before, (int)new.before);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_place_heeds_the_order_of_the_way_back),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
