/*
 * Who goes first on the way back from an outage, through the real engine.
 */
#include "core/decision/job.h"
#include "engine/orders.h"
#include "support/configs.h"
#include "support/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TO(more) \
    "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, concurrency: 10, in_doubt: resend, " \
    "priority: { aging: 1h }, contingency: { ramp: [5, 10], stable: 1m, check: 5m }" more " } }\n"

enum { SENT_MAX = 1024 };

/* The ids in the order that they were sent. */
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

static void add(struct stage *stage, const char *tenant, enum priority priority, const char *prefix, int count)
{
    for (int i = 0; i < count; i++) {
        char id[16];
        snprintf(id, sizeof id, "%s%d", prefix, i);
        stage_apply(stage, &(struct store_op){
            .kind = OP_INSERT,
            .insert = { .destination = SLICE("d"), .tenant = slice_from(tenant), .id = slice_from(id), .priority = priority,
                        .rank = rank_of(priority, stage->now, 3600 * 1000), .run_at = stage->now, .deadline = INSTANT_NONE,
                        .payload = SLICE("x") },
        });
    }
}

/* Whether those from `from` on, `count` of them, all begin with one of the letters. */
static void sent_are(const struct sent *sent, size_t from, size_t count, const char *letters)
{
    assert_true(from + count <= sent->count);
    for (size_t i = from; i < from + count; i++)
        if (!strchr(letters, sent->ids[i][0]))
            fail_msg("%s was sent as number %zu, not one of %s", sent->ids[i], i, letters);
}

static size_t position(const struct sent *sent, const char *id)
{
    for (size_t i = 0; i < sent->count; i++)
        if (strcmp(sent->ids[i], id) == 0)
            return i;
    fail_msg("%s was not sent", id);
    return 0;
}

static void hold(struct stage *stage)
{
    struct error error;
    assert_int_equal(engine_enter_contingency(stage->engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    stage_settle(stage);
}

static void let_go(struct stage *stage)
{
    struct error error;
    assert_int_equal(engine_leave_contingency(stage->engine, SLICE("d"), &error), STATUS_OK);
    stage_settle(stage);
}

/* S3-050 */
static void critical_then_high_then_what_was_held_then_the_new(void **state)
{
    struct sent sent = { 0 };
    struct stage stage = { .destination = takes_all, .context = &sent };
    (void)state;
    stage_begin(&stage, TO(""), began);
    stage.commit_ms = 5;
    hold(&stage);
    add(&stage, "one", PRIORITY_NORMAL, "a", 20);
    add(&stage, "two", PRIORITY_NORMAL, "b", 20);
    add(&stage, "three", PRIORITY_HIGH, "h", 2);
    add(&stage, "three", PRIORITY_NORMAL, "c", 20);
    add(&stage, "four", PRIORITY_NORMAL, "d", 20);
    add(&stage, "four", PRIORITY_CRITICAL, "K", 1);
    add(&stage, "five", PRIORITY_CRITICAL, "L", 4);
    stage_run_for(&stage, 60 * 1000);
    let_go(&stage);
    stage_run_for(&stage, 1);
    add(&stage, "new", PRIORITY_NORMAL, "n", 5);
    stage_run_for(&stage, 30 * 60 * 1000);
    assert_int_equal(sent.count, 92);
    static const struct { size_t count; const char *letters; } rounds[] = {
        { 1 + 3, "KL" }, { 2, "h" }, { 3 + 3 + 1 + 2, "abcd" }, { 3, "n" }, /* each three at most */
        { 1, "L" }, { 3 + 3 + 3 + 3 + 2, "abcdn" }, /* as their shares of the slots let them */
        { 3 + 3 + 3 + 3, "abcd" },
    };
    size_t from = 0;
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; from += rounds[i++].count)
        sent_are(&sent, from, rounds[i].count, rounds[i].letters);
    stage_end(&stage);
}

static void critical_work_that_comes_on_the_way_goes_next(void **state)
{
    struct sent sent = { 0 };
    struct stage stage = { .destination = takes_all, .context = &sent };
    (void)state;
    stage_begin(&stage, TO(""), began);
    stage.commit_ms = 5;
    hold(&stage);
    add(&stage, "one", PRIORITY_NORMAL, "a", 60);
    add(&stage, "two", PRIORITY_NORMAL, "b", 60);
    stage_run_for(&stage, 1000);
    let_go(&stage);
    stage_run_for(&stage, 400);
    size_t before = sent.count;
    assert_int_equal(before, 5); /* the test batch */
    add(&stage, "late", PRIORITY_CRITICAL, "K", 2);
    stage_run_for(&stage, 10 * 60 * 1000);
    assert_int_equal(position(&sent, "K0"), before);
    assert_int_equal(position(&sent, "K1"), before + 1);
    assert_int_equal(sent.count, 122);
    stage_end(&stage);
}

/*
 * Later rounds keep the order of the first. Were those with new critical work first in each, "one" would be the first of
 * the first round and the last of the second, and wait for two rounds (invariant 7).
 */
static void who_was_first_is_not_last_in_the_next_round(void **state)
{
    struct sent sent = { 0 };
    struct stage stage = { .destination = takes_all, .context = &sent };
    (void)state;
    stage_begin(&stage, TO(", fairness: { batch: 1 }"), began);
    stage.commit_ms = 5;
    hold(&stage);
    add(&stage, "one", PRIORITY_NORMAL, "a", 10);
    add(&stage, "one", PRIORITY_CRITICAL, "K", 1);
    add(&stage, "two", PRIORITY_NORMAL, "b", 10);
    add(&stage, "three", PRIORITY_NORMAL, "c", 10);
    stage_run_for(&stage, 1000);
    let_go(&stage);
    stage_run_for(&stage, 10);
    assert_int_equal(sent.count, 5); /* the test batch: K b c, then a and one more */
    sent_are(&sent, 0, 1, "K");
    sent_are(&sent, 1, 2, "bc");
    sent_are(&sent, 3, 1, "a");
    add(&stage, "two", PRIORITY_CRITICAL, "L", 3);
    add(&stage, "three", PRIORITY_CRITICAL, "M", 3);
    stage_run_for(&stage, 30 * 60 * 1000);
    assert_int_equal(sent.count, 37);
    size_t last = 3;
    for (size_t i = 4; i < sent.count && last < 30; i++) {
        if (sent.ids[i][0] != 'a')
            continue;
        assert_true(i - last <= 3);
        last = i;
    }
    assert_true(position(&sent, "L0") < 9 && position(&sent, "M0") < 9); /* a turn of each other tenant at most */
    stage_end(&stage);
}

/* However often the way back begins anew, those whose work is not urgent have their turn in between. */
static void a_way_back_that_fails_again_and_again_starves_nobody(void **state)
{
    struct sent sent = { 0 };
    struct stage stage = { .destination = takes_all, .context = &sent };
    (void)state;
    stage_begin(&stage, TO(", fairness: { batch: 2 }"), began);
    add(&stage, "one", PRIORITY_CRITICAL, "K", 60);
    add(&stage, "two", PRIORITY_CRITICAL, "L", 60);
    add(&stage, "three", PRIORITY_CRITICAL, "M", 60);
    add(&stage, "four", PRIORITY_NORMAL, "d", 60);
    hold(&stage);
    size_t before = sent.count;
    for (int i = 0; i < 6; i++) {
        let_go(&stage); /* the test batch, of five */
        hold(&stage);
        stage_run_for(&stage, 1000);
    }
    assert_true(sent.count >= before + 30);
    size_t waited = 0;
    for (size_t i = before; i < sent.count; i++) {
        waited = sent.ids[i][0] == 'd' ? 0 : waited + 1;
        assert_true(waited <= 2 * 6);
    }
    stage_end(&stage);
}

/* Rank is what counts: it heeds age. */
static void old_work_is_as_good_as_critical(void **state)
{
    struct sent sent = { 0 };
    struct stage stage = { .destination = takes_all, .context = &sent };
    (void)state;
    stage_begin(&stage, TO(""), began);
    hold(&stage);
    add(&stage, "old", PRIORITY_NORMAL, "o", 2);
    stage_run_for(&stage, (int64_t)2 * 3600 * 1000);
    add(&stage, "one", PRIORITY_NORMAL, "a", 20);
    add(&stage, "two", PRIORITY_CRITICAL, "K", 2);
    let_go(&stage);
    stage_run_for(&stage, 10 * 60 * 1000);
    sent_are(&sent, 0, 4, "oK");
    assert_int_equal(sent.count, 24);
    stage_end(&stage);
}

/* Afterwards the turns are as ever, and nobody is left aside. */
static void the_order_ends_with_the_way_back(void **state)
{
    static const char *const ends[] = { "restored", "held again", "crash", "limits" };
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sent sent = { 0 };
        struct stage stage = { .destination = takes_all, .context = &sent };
        print_message("  %s\n", ends[i]);
        stage_begin(&stage, i == 3 ? TO(", rate: { per_tenant: 60/m }") : TO(""), began);
        hold(&stage);
        add(&stage, "one", PRIORITY_CRITICAL, "K", 60);
        add(&stage, "two", PRIORITY_NORMAL, "b", 3);
        let_go(&stage);
        stage_run_for(&stage, 1500);
        sent_are(&sent, 0, 3, "K");
        if (i == 1) {
            hold(&stage);
            stage_run_for(&stage, 60 * 1000);
            let_go(&stage);
        } else if (i == 2) {
            stage_crash(&stage);
        }
        stage_run_for(&stage, 20 * 60 * 1000);
        assert_string_equal(status_of(&stage).mode, "normal");
        assert_int_equal(stage_counts(&stage, "d").completed, 63);
        add(&stage, "two", PRIORITY_NORMAL, "z", 1);
        stage_run_for(&stage, 2000);
        assert_int_equal(stage_counts(&stage, "d").completed, 64);
        stage_end(&stage);
    }
}

/* The looks at lanes are bounded a run, and yet nobody is forgotten. */
static void many_tenants(void **state)
{
    struct sent sent = { 0 };
    struct stage stage = { .destination = takes_all, .context = &sent };
    (void)state;
    stage_begin(&stage, TO(""), began);
    hold(&stage);
    for (int i = 0; i < 700; i++) {
        char tenant[16], id[16];
        snprintf(tenant, sizeof tenant, "t%d", i);
        snprintf(id, sizeof id, "a%d-", i);
        add(&stage, tenant, PRIORITY_NORMAL, id, 1);
    }
    add(&stage, "last", PRIORITY_CRITICAL, "K", 1);
    let_go(&stage);
    stage_run_for(&stage, 20 * 60 * 1000);
    assert_int_equal(sent.count, 701);
    assert_int_equal(position(&sent, "K0"), 0);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(critical_then_high_then_what_was_held_then_the_new),
        cmocka_unit_test(critical_work_that_comes_on_the_way_goes_next),
        cmocka_unit_test(who_was_first_is_not_last_in_the_next_round),
        cmocka_unit_test(a_way_back_that_fails_again_and_again_starves_nobody),
        cmocka_unit_test(old_work_is_as_good_as_critical),
        cmocka_unit_test(the_order_ends_with_the_way_back),
        cmocka_unit_test(many_tenants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
