/*
 * Shares of the slots through the real engine: nobody's slow jobs hold up the others.
 */
#include "base/log.h"
#include "base/units.h"
#include "engine/orders.h"
#include "engine/pull.h"
#include "engine/status.h"
#include "support/configs.h"
#include "support/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TO(more) "destinations: { d: { preset: http, url: 'https://a.example/'" more " } }\n"

enum { WAITS_MAX = 4096 };

/* What the receiver saw: jobs of tenants whose name begins with `s` take ten seconds, others 20 ms. */
struct seen {
    int64_t waits[WAITS_MAX]; /* of quick jobs that came from `judged` on, from arrival to send */
    size_t count;
    instant judged;
    int64_t sent;
};


static int64_t receives(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct seen *seen = stage->context;
    bool slow = send->job->tenant.data[0] == 's';
    answer->outcome = OUTCOME_DELIVERED;
    seen->sent++;
    if (!slow && send->job->created_at >= seen->judged && seen->count < WAITS_MAX)
        seen->waits[seen->count++] = stage->now - send->job->created_at;
    return slow ? 10 * SECOND_MS : 20;
}

/* How many sends of tenants with that first letter are under way. */
static int64_t under_way(const struct stage *stage, char letter)
{
    int64_t count = 0;
    for (const struct stage_send *send = stage->sends; send; send = send->next)
        count += send->send->job->tenant.data[0] == letter;
    return count;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t percentile(struct seen *seen, size_t percent)
{
    assert_true(seen->count > 100);
    qsort(seen->waits, seen->count, sizeof *seen->waits, compare);
    return seen->waits[(seen->count - 1) * percent / 100];
}

static void add(struct stage *stage, const char *tenant, int count)
{
    for (int i = 0; i < count; i++)
        stage_add(stage, "d", tenant, NULL, "x");
}

/* Twenty quick jobs a second of five tenants, for so long; some come at the same moment. */
static void quick_ones_come(struct stage *stage, int64_t ms)
{
    instant until = stage->now + ms;
    for (int i = 0; stage->now < until; i++) {
        char tenant[8];
        snprintf(tenant, sizeof tenant, "q%d", i % 5);
        add(stage, tenant, 2);
        stage_run_for(stage, 100);
    }
}

static void slow_jobs_hold_up_nobody(void **state)
{
    static const struct {
        const char *settings;
        int64_t slots;
    } rows[] = {
        { TO(", concurrency: { max: 10, adaptive: false }"), 10 },
        { TO(", concurrency: { max: 5, adaptive: false }"), 5 },
        { TO(", concurrency: 10"), 10 }, /* as many as it is found to bear */
        { TO(", concurrency: { max: 10, adaptive: false }, in_doubt: resend"), 10 }, /* with claims ahead */
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct seen *seen = calloc(1, sizeof *seen);
        assert_non_null(seen);
        struct stage stage = { .destination = receives, .context = seen };
        stage_begin(&stage, rows[i].settings, began);
        stage.commit_ms = 2;
        seen->judged = began + 10 * SECOND_MS;
        add(&stage, "slow", 200);
        quick_ones_come(&stage, 60 * SECOND_MS);
        int64_t median = percentile(seen, 50), p99 = percentile(seen, 99);
        print_message("%s: quick jobs wait for %lld ms in the middle, %lld ms at the 99th percentile\n", rows[i].settings,
                      (long long)median, (long long)p99);
        assert_true(median < 100);
        assert_true(p99 < 1000);
        assert_true(under_way(&stage, 's') >= 2); /* and the slow ones go on */
        assert_true(under_way(&stage, 's') <= (rows[i].slots + 1) / 2);
        stage_end(&stage);
        free(seen);
    }
}

static void who_is_alone_has_all(void **state)
{
    struct seen *seen = calloc(1, sizeof *seen);
    struct stage stage = { .destination = receives, .context = seen };
    (void)state;
    assert_non_null(seen);
    stage_begin(&stage, TO(", concurrency: { max: 10, adaptive: false }"), began);
    add(&stage, "slow", 200);
    stage_run_for(&stage, 1);
    assert_int_equal(under_way(&stage, 's'), 10); /* at once when it always was */

    /* Another comes: it gets the next that is free, and what it missed then. */
    add(&stage, "sother", 200);
    stage_run_for(&stage, 10 * SECOND_MS + 10);
    assert_int_equal(under_way(&stage, 's'), 10);
    stage_run_for(&stage, 60 * SECOND_MS);
    int64_t others = 0;
    for (const struct stage_send *send = stage.sends; send; send = send->next)
        others += slice_equal(send->send->job->tenant, SLICE("sother"));
    assert_int_equal(others, 5);
    stage_end(&stage);
    free(seen);
}

/* For ten seconds after its last job a tenant finds its share free; then the other takes all. */
static void a_share_stays_free_for_ten_seconds(void **state)
{
    struct seen *seen = calloc(1, sizeof *seen);
    struct stage stage = { .destination = receives, .context = seen };
    (void)state;
    assert_non_null(seen);
    stage_begin(&stage, TO(", concurrency: { max: 10, adaptive: false }"), began);
    add(&stage, "quick", 1);
    stage_run_for(&stage, 100);
    add(&stage, "slow", 200);
    stage_run_for(&stage, 9 * SECOND_MS);
    assert_int_equal(under_way(&stage, 's'), 5);
    struct queue_place place = engine_place(stage.engine, 2, 0, INSTANT_NONE);
    assert_true(place.share_used && place.share == 5 && place.slots == 10);
    stage_run_for(&stage, 2 * SECOND_MS);
    assert_int_equal(under_way(&stage, 's'), 10);
    assert_false(engine_place(stage.engine, 2, 0, INSTANT_NONE).share_used); /* all of them are its */
    stage_end(&stage);
    free(seen);
}

/* Each has one slot, whoever has more waits for those who have none, and all have their turn. */
static void more_tenants_than_slots(void **state)
{
    struct seen *seen = calloc(1, sizeof *seen);
    struct stage stage = { .destination = receives, .context = seen };
    (void)state;
    assert_non_null(seen);
    stage_begin(&stage, TO(", concurrency: { max: 10, adaptive: false }"), began);
    for (int i = 0; i < 25; i++) {
        char tenant[8];
        snprintf(tenant, sizeof tenant, "s%d", i);
        add(&stage, tenant, 4);
    }
    int64_t served[25] = { 0 };
    for (int round = 0; round < 10; round++) { /* four of each in a hundred seconds */
        int64_t held[25] = { 0 };
        stage_run_for(&stage, 1);
        for (const struct stage_send *send = stage.sends; send; send = send->next) {
            int tenant = atoi(send->send->job->tenant.data + 1);
            held[tenant]++;
            served[tenant]++;
            assert_int_equal(held[tenant], 1);
        }
        assert_int_equal(under_way(&stage, 's'), 10);
        stage_run_for(&stage, 10 * SECOND_MS - 1);
    }
    for (int i = 0; i < 25; i++)
        assert_int_equal(served[i], 4);
    stage_end(&stage);
    free(seen);
}

/* At most half of the slots wait for tenants that have nothing to do: a backlog does not crawl beside many such. */
static void idle_tenants_keep_half_at_most(void **state)
{
    struct seen *seen = calloc(1, sizeof *seen);
    struct stage stage = { .destination = receives, .context = seen };
    (void)state;
    assert_non_null(seen);
    stage_begin(&stage, TO(", concurrency: { max: 10, adaptive: false }"), began);
    for (int i = 0; i < 40; i++) {
        char tenant[8];
        snprintf(tenant, sizeof tenant, "q%d", i);
        add(&stage, tenant, 1);
    }
    stage_run_for(&stage, 500);
    add(&stage, "slow", 200);
    stage_run_for(&stage, 5 * SECOND_MS);
    assert_int_equal(under_way(&stage, 's'), 5);
    stage_end(&stage);
    free(seen);
}

/* The second address has slots of its own, shared out likewise. */
static void the_second_address_is_shared_out(void **state)
{
    struct seen *seen = calloc(1, sizeof *seen);
    struct stage stage = { .destination = receives, .context = seen };
    struct error error;
    (void)state;
    assert_non_null(seen);
    stage_begin(&stage, TO(", concurrency: { max: 10, adaptive: false }, fallback: { url: 'https://b.example/' }, "
                           "contingency: { check: 1h }"), began);
    stage.commit_ms = 2;
    seen->judged = began + 10 * SECOND_MS;
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    add(&stage, "slow", 200);
    quick_ones_come(&stage, 30 * SECOND_MS);
    assert_true(percentile(seen, 50) < 100);
    assert_true(percentile(seen, 99) < 1000);
    assert_true(under_way(&stage, 's') >= 2);
    stage_end(&stage);
    free(seen);
}

/* Sends under way at one of the two addresses; with a letter, only of such tenants. */
static int64_t under_way_at(const struct stage *stage, bool second, char letter)
{
    int64_t count = 0;
    for (const struct stage_send *send = stage->sends; send; send = send->next)
        count += send->send->use_fallback == second && (letter == 0 || send->send->job->tenant.data[0] == letter);
    return count;
}

/* What is held at one address takes nothing of the other's, neither slots nor shares. */
static void each_address_has_slots_of_its_own(void **state)
{
    struct seen *seen = calloc(1, sizeof *seen);
    struct stage stage = { .destination = receives, .context = seen };
    struct error error;
    (void)state;
    assert_non_null(seen);
    stage_begin(&stage, TO(", concurrency: { max: 10, adaptive: false }, fallback: { url: 'https://b.example/' }, "
                           "contingency: { check: 1h, ramp: [10] }"), began);
    add(&stage, "slow", 40);
    add(&stage, "sother", 40);
    stage_run_for(&stage, 100);
    assert_int_equal(under_way_at(&stage, false, 0), 10);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    stage_run_for(&stage, 100);
    assert_int_equal(under_way_at(&stage, true, 0), 10); /* beside the ten that are not answered yet */
    int64_t others = 0;
    for (const struct stage_send *send = stage.sends; send; send = send->next)
        others += send->send->use_fallback && slice_equal(send->send->job->tenant, SLICE("sother"));
    assert_int_equal(others, 5);
    struct queue_place place = engine_place(stage.engine, 1, 0, INSTANT_NONE);
    assert_true(place.share_used && place.share == 5 && place.slots == 10);
    stage_run_for(&stage, 15 * SECOND_MS);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &error), STATUS_OK);
    stage_run_for(&stage, 100);
    assert_int_equal(under_way_at(&stage, false, 0), 10); /* although all of the second's are in use */
    assert_int_equal(under_way_at(&stage, true, 0), 10);
    stage_end(&stage);
    free(seen);
}

/* ---- pull workers ---- */

enum { LEASES_MAX = 64 };

struct taken {
    struct lease_request request;
    struct job jobs[LEASES_MAX]; /* its number and its lease */
    size_t count;
    int64_t of[3];               /* tenants a, b, c */
};

static void on_leased(struct lease_request *request, enum status status, const struct job *jobs, size_t count)
{
    struct taken *taken = request->context;
    assert_int_equal(status, STATUS_OK);
    assert_true(count <= LEASES_MAX);
    taken->count = count;
    for (size_t i = 0; i < count; i++) {
        taken->jobs[i] = (struct job){ .seq = jobs[i].seq, .lease_token = jobs[i].lease_token };
        taken->of[jobs[i].tenant.data[0] - 'a']++;
    }
}

static void take(struct stage *stage, struct taken *taken, size_t max)
{
    *taken = (struct taken){ .request = { .destination = SLICE("p"), .worker = SLICE("w"), .max = max, .lease_ms = HOUR_MS,
                                          .wait_until = stage->now, .done = on_leased, .context = taken } };
    engine_lease(stage->engine, &taken->request);
    stage_settle(stage);
    lease_release(&taken->request);
    stage_settle(stage);
}

static void finish(struct stage *stage, const struct taken *taken)
{
    for (size_t i = 0; i < taken->count; i++) {
        stage_apply(stage, &(struct store_op){ .kind = OP_SETTLE,
            .settle = { .seq = taken->jobs[i].seq, .token = taken->jobs[i].lease_token, .event = EVENT_DELIVER,
                        .outcome = OUTCOME_DELIVERED, .run_at = INSTANT_NONE, .forget_at = INSTANT_NONE } });
        engine_acked(stage->engine, taken->jobs[i].seq, taken->jobs[i].lease_token);
    }
    stage_settle(stage);
}

static void add_pulled(struct stage *stage, const char *tenant, int count)
{
    for (int i = 0; i < count; i++)
        stage_add(stage, "p", tenant, NULL, "x");
    stage_settle(stage);
}

#define PULL "destinations: { p: { transport: pull, concurrency: 2, fairness: { batch: 4 } } }\n"

/* The slots are the leases out and those of the call: who holds many gets none while others have work; then all is given. */
static void leases_are_shared_out(void **state)
{
    (void)state;
    for (int between = 0; between < 3; between++) {
        struct stage stage = { 0 };
        struct taken first, second, third;
        stage_begin(&stage, PULL, began);
        add_pulled(&stage, "a", 40);
        take(&stage, &first, 12);
        assert_int_equal(first.of[0], 12); /* it is alone */
        add_pulled(&stage, "b", 6);
        add_pulled(&stage, "c", 40);
        if (between == 1)
            stage_restart(&stage);
        else if (between == 2)
            stage_crash(&stage);
        stage_run_for(&stage, 100);
        take(&stage, &second, 12); /* of 24 eight each: a has more, and b has six; what is left goes by turns */
        assert_int_equal(second.count, 12);
        assert_int_equal(second.of[0], 0);
        assert_int_equal(second.of[1] + second.of[2], 12);
        assert_in_range(second.of[1], 4, 6);
        finish(&stage, &first); /* whoever gave them: its share is free again */
        take(&stage, &third, 12); /* a and c, and b where it has some left */
        assert_int_equal(third.count, 12);
        assert_true(third.of[0] >= 4);
        stage_end(&stage);
    }
}

/* No worker goes away empty while there is work, whoever has it. */
static void what_is_left_is_given(void **state)
{
    struct stage stage = { 0 };
    struct taken first, second;
    (void)state;
    stage_begin(&stage, PULL, began);
    add_pulled(&stage, "a", 40);
    add_pulled(&stage, "b", 1);
    take(&stage, &first, 10);
    assert_int_equal(first.count, 10);
    assert_true(first.of[0] == 9 && first.of[1] == 1);
    take(&stage, &second, 10); /* a holds nine, and b was here a moment ago */
    assert_int_equal(second.of[0], 10);
    stage_end(&stage);
}

/* What a cycle takes is shared out, and none of it is lost while there is work. */
static void a_cycle_is_shared_out(void **state)
{
    struct seen *seen = calloc(1, sizeof *seen);
    struct stage stage = { .destination = receives, .context = seen };
    (void)state;
    assert_non_null(seen);
    stage_begin(&stage, TO(", concurrency: { max: 20, adaptive: false }, cycle: { every: 60s, batch: 10 }"), began);
    for (int i = 0; i < 5; i++) {
        char tenant[8];
        snprintf(tenant, sizeof tenant, "s%d", i);
        add(&stage, tenant, i == 0 ? 100 : 3);
    }
    stage_run_for(&stage, 1);
    int64_t held[5] = { 0 };
    for (const struct stage_send *send = stage.sends; send; send = send->next)
        held[atoi(send->send->job->tenant.data + 1)]++;
    for (int i = 0; i < 5; i++)
        assert_int_equal(held[i], 2);
    stage_run_for(&stage, 120 * SECOND_MS); /* two more cycles: five of the others', the rest is the first one's */
    assert_int_equal(seen->sent, 30);
    stage_end(&stage);
    free(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_jobs_hold_up_nobody),
        cmocka_unit_test(who_is_alone_has_all),
        cmocka_unit_test(a_share_stays_free_for_ten_seconds),
        cmocka_unit_test(more_tenants_than_slots),
        cmocka_unit_test(idle_tenants_keep_half_at_most),
        cmocka_unit_test(the_second_address_is_shared_out),
        cmocka_unit_test(each_address_has_slots_of_its_own),
        cmocka_unit_test(leases_are_shared_out),
        cmocka_unit_test(what_is_left_is_given),
        cmocka_unit_test(a_cycle_is_shared_out),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
