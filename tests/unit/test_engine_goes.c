/*
 * A go of the way back is to find out as much as it can: it takes jobs of as many tenants as there are, and those that have
 * failed in this outage last.
 */
#include "support/check.h"
#include "support/engine_fixture.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TENANTS = 5, JOBS = 8, SENT_MAX = 512 };

#define TO(more) \
    "destinations: { d: { preset: http, url: 'https://a.example/', concurrency: 10, " \
    "retry: { base: 1s, floor: 1s, cap: 1s, max_retries: 20 }, " \
    "contingency: { ramp: [5, 10], stable: 1m, check: 60s, activate_on_single_event: true }" more " } }\n"

struct story {
    instant back_at;
    bool looked[TENANTS][JOBS]; /* failed in the outage */
    struct { int tenant, job; instant at; } sent[SENT_MAX]; /* since it is back */
    size_t count;
    int looks;
};

static int64_t answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct story *story = stage->context;
    int tenant = send->job->tenant.data[0] - 'a', job = atoi(send->job->id.data + 1);
    if (stage->now >= story->back_at) {
        assert_true(story->count < SENT_MAX);
        story->sent[story->count].tenant = tenant;
        story->sent[story->count].job = job;
        story->sent[story->count++].at = stage->now;
        answer->outcome = OUTCOME_DELIVERED;
        return 300;
    }
    story->looked[tenant][job] = true;
    story->looks++;
    answer->code = SLICE("http:503");
    answer->text = SLICE("HTTP 503: away");
    return 20;
}

static void begin(struct story *story, struct stage *stage, const char *yaml, int tenants, int jobs)
{
    *story = (struct story){ .back_at = INSTANT_MAX };
    *stage = (struct stage){ .destination = answers, .context = story };
    stage_begin(stage, yaml, began);
    for (int i = 0; i < tenants * jobs; i++) {
        char tenant[2] = { (char)('a' + i % tenants), '\0' }, id[8];
        snprintf(id, sizeof id, "%s%d", tenant, i / tenants);
        stage_add(stage, "d", tenant, id, "x");
        stage_run_for(stage, 1);
    }
}

/* Away until one look has gone well, which is the first that was sent since. */
static void come_back(struct story *story, struct stage *stage)
{
    assert_string_equal(status_of(stage).mode, "contingency");
    story->back_at = stage->now;
    for (int i = 0; i < 6000 && story->count == 0; i++)
        stage_run_for(stage, 100);
    assert_int_equal(story->count, 1);
}

/* Five at once, five tenants: one of each, whatever a turn is; and none that has failed while others are there. */
static void a_go_asks_all_tenants(void **state)
{
    static const char *const rows[] = { TO(""), TO(", fairness: { batch: 5 }"), TO(", priority: { scope: destination }") };
    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct story story;
        struct stage stage;
        begin(&story, &stage, rows[row], TENANTS, JOBS);
        stage_run_for(&stage, 6 * MINUTE_MS);
        assert_in_range(story.looks, TENANTS, 2 * TENANTS + JOBS);
        come_back(&story, &stage);
        stage_run_for(&stage, 30 * MINUTE_MS);
        int taken[TENANTS] = { 0 };
        for (size_t i = 1; i <= TENANTS; i++) {
            check(story.sent[i].at == story.sent[1].at, "%zu: number %zu is not of the first go", row, i);
            check(!story.looked[story.sent[i].tenant][story.sent[i].job], "%zu: job %d of %c has failed in it", row,
                  story.sent[i].job, 'a' + story.sent[i].tenant);
            taken[story.sent[i].tenant]++;
        }
        for (int tenant = 0; tenant < TENANTS; tenant++)
            check(taken[tenant] == 1, "%zu: %d of %c", row, taken[tenant], 'a' + tenant);
        /* In each lane those that failed come after all the others. */
        bool failed[TENANTS] = { false };
        for (size_t i = 0; i < story.count; i++) {
            int tenant = story.sent[i].tenant;
            bool one = story.looked[tenant][story.sent[i].job];
            bool on_its_way = story.sent[i].at < story.sent[1].at + 2 * SECOND_MS;
            check(one || !failed[tenant] || !on_its_way, "%zu: job %d of %c came after one that has failed", row,
                  story.sent[i].job, 'a' + tenant);
            failed[tenant] = failed[tenant] || one;
        }
        assert_int_equal(stage_counts(&stage, "d").completed, TENANTS * JOBS);
        stage_end(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_go_asks_all_tenants),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
