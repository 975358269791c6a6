/*
 * What the documents' figures do: the presets as they are, through the real engine, in time that jumps.
 */
#include "core/decision/job.h"
#include "engine/orders.h"
#include "engine/status.h"
#include "support/check.h"
#include "support/engine_fixture.h"

#include <stdio.h>

#define EMAIL(more) "destinations: { d: { preset: email, url: 'smtp://m.example:587'" more " } }\n"
#define SIFEN(more)                                                                                                         \
    "destinations: { d: { preset: sifen, url: 'http://127.0.0.1:1/', allow_private: true, id_pattern: '.*'"                 \
    ", verify: { url: 'http://127.0.0.1:1/v' }" more " } }\n"
#define PROVISIONING "destinations: { d: { preset: provisioning, url: 'http://127.0.0.1:1/', allow_private: true } }\n"
#define MAIL "{\"from\":\"a@a.example\",\"to\":[\"b@b.example\"],\"subject\":\"x\",\"text\":\"y\"}"

static int64_t refuses(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->code = SLICE("smtp:550");
    answer->text = SLICE("550 5.1.1 Mailbox unavailable");
    return 1;
}

/* --- e-mail -------------------------------------------------------------------------------------------------- */

/* S2-004 S2-017 C-37 C-39: to the millisecond. */
static void a_dead_message_is_kept_for_seven_days(void **state)
{
    struct stage stage = { .destination = refuses };
    (void)state;
    stage_begin(&stage, EMAIL(""), began);
    stage_add(&stage, "d", "t", "one", MAIL);
    stage_run_for(&stage, 10 * SECOND_MS);
    struct job job = stage_job(&stage, "t", "one");
    assert_int_equal(job.state, STATE_DEAD);
    assert_int_equal(job.expires_at, job.dead_at + 604800000);
    instant expires_at = job.expires_at;
    stage_run_until(&stage, expires_at - 1);
    assert_int_equal(stage_counts(&stage, "d").dead, 1);
    stage_run_until(&stage, expires_at + HOUR_MS);
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    stage_end(&stage);
}

/* S2-019: with ten thousand nothing more is tried that could become another one. */
static void ten_thousand_dead_messages_are_the_most(void **state)
{
    enum { MOST = 10000 };
    struct stage stage = { .destination = refuses };
    (void)state;
    stage_begin(&stage, EMAIL(""), began);
    for (int i = 0; i < MOST + 20; i++)
        stage_add(&stage, "d", "t", NULL, MAIL);
    stage_run_for(&stage, 99 * MINUTE_MS);
    int64_t before = stage_counts(&stage, "d").dead;
    check(before >= MOST - 200 && before <= MOST, "%d after 99 minutes", (int)before);
    stage_run_for(&stage, 21 * MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").dead, MOST);
    assert_int_equal(stage.send_count, MOST);
    stage_end(&stage);
}

/* S2-085 */
static void a_message_lives_for_a_day(void **state)
{
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, EMAIL(""), began);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), NULL), STATUS_OK);
    stage_add(&stage, "d", "t", "one", MAIL);
    stage_run_until(&stage, began + DAY_MS - 1);
    assert_int_equal(stage_job(&stage, "t", "one").state, STATE_PENDING);
    stage_run_until(&stage, began + DAY_MS + MINUTE_MS);
    assert_int_equal(stage_job(&stage, "t", "one").state, STATE_DEAD);
    assert_int_equal(stage.send_count, 0);
    stage_end(&stage);
}

struct order {
    char tenants[64];
    char ids[64][8];
    size_t count;
};

static int64_t notes_whose(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct order *order = stage->context;
    assert_true(order->count < COUNT_OF(order->tenants));
    snprintf(order->ids[order->count], sizeof order->ids[0], "%.*s", SLICE_ARG(send->job->id));
    order->tenants[order->count++] = send->job->tenant.data[0];
    answer->outcome = OUTCOME_DELIVERED;
    return SECOND_MS;
}

static struct turn_figures figures_of(struct stage *stage, char tenant)
{
    char name[] = { tenant, '\0' };
    return engine_tenant(stage->engine, stage_job(stage, name, "first").lane).turns;
}

/* With 12 messages of each of three companies, one second each, after so many sends. */
static void send_for_three(struct stage *stage, size_t sends)
{
    stage_begin(stage, EMAIL(", concurrency: 1"), began);
    assert_int_equal(engine_pause(stage->engine, SLICE("d"), SLICE(""), NULL), STATUS_OK);
    for (int i = 0; i < 36; i++)
        stage_add(stage, "d", i < 12 ? "A" : i < 24 ? "B" : "C", i % 12 == 0 ? "first" : NULL, MAIL);
    stage_run_for(stage, 100);
    assert_int_equal(engine_resume(stage->engine, SLICE("d"), NULL), STATUS_OK);
    while (stage->send_count < sends)
        stage_run_for(stage, 100);
}

/* S2-061: three of one company, then three of the next. */
static void companies_send_three_in_a_row(void **state)
{
    struct order order = { .count = 0 };
    struct stage stage = { .destination = notes_whose, .context = &order };
    (void)state;
    send_for_three(&stage, 36);
    for (size_t i = 0; i < order.count; i++) {
        check(i % 3 == 0 || order.tenants[i] == order.tenants[i - 1], "%zu of a batch: %.36s", i % 3, order.tenants);
        check(i < 3 || i % 3 != 0 || order.tenants[i] != order.tenants[i - 1], "four in a row: %.36s", order.tenants);
        check(i < 9 || order.tenants[i] == order.tenants[i - 9], "not in turn: %.36s", order.tenants);
    }
    stage_end(&stage);
}

static void check_figures(const char *name, struct turn_figures seen, int64_t total, int64_t in_a_row)
{
    check(seen.total == total && seen.in_a_row == in_a_row, "%s: %d in all, %d in a row", name, (int)seen.total, (int)seen.in_a_row);
    check((seen.last_at != INSTANT_NONE) == (total > 0), "%s: when", name);
    check(seen.rounds_without == 0 && seen.priority == 5, "%s: %d rounds, priority %d", name, (int)seen.rounds_without,
          (int)seen.priority);
}

/* S2-062 S2-069 C-82: what is told of a company that had its turn, of one that has it, and of one that waits. */
static void companies_have_their_figures(void **state)
{
    struct order order = { .count = 0 };
    struct stage stage = { .destination = notes_whose, .context = &order };
    (void)state;
    send_for_three(&stage, 5);
    char other = (char)('A' + 'B' + 'C' - order.tenants[0] - order.tenants[3]);
    check_figures("had its turn", figures_of(&stage, order.tenants[0]), 3, 0);
    check_figures("has it", figures_of(&stage, order.tenants[3]), 2, 2);
    check_figures("waits", figures_of(&stage, other), 0, 0);
    assert_true(figures_of(&stage, order.tenants[3]).last_at > figures_of(&stage, order.tenants[0]).last_at);
    stage_end(&stage);
}

/* S2-062 S2-069: from 5 on, one more urgent with each round in which a company had nothing to send. */
static void a_quiet_company_becomes_urgent(void **state)
{
    struct order order = { .count = 0 };
    struct stage stage = { .destination = notes_whose, .context = &order };
    (void)state;
    stage_begin(&stage, EMAIL(", concurrency: 1"), began);
    stage_add(&stage, "d", "C", "first", MAIL);
    stage_run_for(&stage, 2 * SECOND_MS);
    for (int i = 0; i < 50; i++)
        stage_add(&stage, "d", i % 2 ? "A" : "B", NULL, MAIL);
    for (int64_t rounds = 0; rounds < 6; rounds++) {
        while (order.count < 10 + 6 * (size_t)rounds) /* three of each of the two others are a round; the first two are not whole */
            stage_run_for(&stage, 100);
        struct turn_figures seen = figures_of(&stage, 'C');
        check(seen.total == 1 && seen.rounds_without == rounds && seen.priority == (rounds < 4 ? 5 - rounds : 1),
              "%d rounds: %d, priority %d", (int)rounds, (int)seen.rounds_without, (int)seen.priority);
    }
    stage_end(&stage);
}

/* --- SIFEN --------------------------------------------------------------------------------------------------- */

struct checks {
    struct health_answer answer;
    int64_t takes_ms;
    instant at[32];
    size_t count;
};

static int64_t answers_checks(struct stage *stage, const struct probe *probe, struct health_answer *answer)
{
    struct checks *checks = stage->context;
    (void)probe;
    assert_true(checks->count < COUNT_OF(checks->at));
    checks->at[checks->count++] = stage->now;
    *answer = checks->answer;
    answer->latency_ms = checks->takes_ms;
    return checks->takes_ms;
}

#define UP(services) "{\"status\":\"UP\",\"services\":{" services "}}"
#define BOTH "\"facturation\":\"UP\",\"batch\":\"UP\""

static const struct {
    const char *name, *body;
    int64_t status, takes_ms;
    bool well;
} checked[] = {
    { "all is well", UP(BOTH), 200, 20, true },
    { "S3-041 C-58 just in time", UP(BOTH), 200, 4999, true },
    { "S3-041 C-58 too late", UP(BOTH), 200, 5001, false },
    { "S3-042 another status", "{\"status\":\"DEGRADED\",\"services\":{" BOTH "}}", 200, 20, false },
    { "S3-042 none", "{}", 200, 20, false },
    { "S3-043 C-65 invoicing is down", UP("\"facturation\":\"DOWN\",\"batch\":\"UP\""), 200, 20, false },
    { "S3-043 C-65 lots are down", UP("\"facturation\":\"UP\",\"batch\":\"DOWN\""), 200, 20, false },
    { "C-65 another service is down", UP(BOTH ",\"reports\":\"DOWN\""), 200, 20, true },
    { "an error", UP(BOTH), 500, 20, false },
};

/* S3-013 S3-041 S3-042 S3-043 S3-075 C-57 C-65: every 30 seconds, and three that are not well in a row are an outage. */
static void sifen_is_looked_at_every_30_seconds(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(checked); i++) {
        struct checks checks = { .answer = { .connected = true, .status = checked[i].status, .body = slice_from(checked[i].body) },
                                 .takes_ms = checked[i].takes_ms };
        struct stage stage = { .destination = delivers, .health = answers_checks, .context = &checks };
        stage_begin(&stage, SIFEN(", health: { url: 'http://127.0.0.1:1/health' }"), began);
        stage_run_for(&stage, 5 * MINUTE_MS);
        const char *expected = checked[i].well ? "normal" : "contingency";
        check(strcmp(status_of(&stage).mode, expected) == 0, "%s: %s", checked[i].name, status_of(&stage).mode);
        check(checks.count >= 9 && checks.count <= 11, "%s: %zu checks in five minutes", checked[i].name, checks.count);
        for (size_t k = 1; k < checks.count; k++) {
            int64_t gap = checks.at[k] - checks.at[k - 1];
            check(gap >= 30 * SECOND_MS && gap <= 36 * SECOND_MS, "%s: after %lld ms", checked[i].name, (long long)gap);
        }
        stage_end(&stage);
    }
}

struct away {
    instant back_at;
    instant looks[64];
    size_t look_count;
    size_t under_way[64]; /* with each of the first sends after the return */
    size_t count, most;
};

static int64_t is_away(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct away *away = stage->context;
    size_t under_way = sends_under_way(stage) + 1;
    (void)send;
    if (stage->now < away->back_at) {
        assert_true(away->look_count < COUNT_OF(away->looks));
        away->looks[away->look_count++] = stage->now;
        answer->outcome = OUTCOME_TRANSIENT;
        answer->code = SLICE("curl:7");
        answer->text = SLICE("connection refused");
        return 20;
    }
    if (away->count < COUNT_OF(away->under_way))
        away->under_way[away->count++] = under_way;
    away->most = under_way > away->most ? under_way : away->most;
    answer->outcome = OUTCOME_DELIVERED;
    return 2 * SECOND_MS;
}

/* S3-030 S3-078 C-57: in contingency one document is tried every five minutes. */
static void a_document_is_tried_every_five_minutes(void **state)
{
    struct away away = { .back_at = began + 2 * HOUR_MS };
    struct stage stage = { .destination = is_away, .context = &away };
    (void)state;
    stage_begin(&stage, SIFEN(", contingency: { activate_on_single_event: true }"), began);
    for (int i = 0; i < 60; i++)
        stage_add(&stage, "d", i % 2 ? "A" : "B", NULL, "x");
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_string_equal(status_of(&stage).mode, "contingency");
    size_t first = away.look_count;
    stage_run_until(&stage, began + HOUR_MS);
    check(away.look_count - first >= 10 && away.look_count - first <= 12, "%zu looks in an hour", away.look_count - first);
    for (size_t i = first + 1; i < away.look_count; i++) {
        int64_t gap = away.looks[i] - away.looks[i - 1];
        check(gap >= 5 * MINUTE_MS && gap <= 6 * MINUTE_MS, "look %zu after %lld ms", i, (long long)gap);
    }
    stage_end(&stage);
}

/* S3-031 S3-077 C-59: five documents, when they are through ten, then 25 at once and never more. */
static void batches_grow_from_five_to_25(void **state)
{
    struct away away = { .back_at = began };
    struct stage stage = { .destination = is_away, .context = &away };
    (void)state;
    stage_begin(&stage, SIFEN(", concurrency: { adaptive: false }"), began);
    assert_int_equal(config_destination(stage.config, SLICE("d"))->concurrency_limit, 50);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), NULL), STATUS_OK);
    for (int i = 0; i < 20000; i++)
        stage_add(&stage, "d", i % 2 ? "A" : "B", NULL, "x");
    stage_run_for(&stage, SECOND_MS);
    assert_int_equal(stage.send_count, 0);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), NULL), STATUS_OK);
    stage_run_for(&stage, 14 * MINUTE_MS);
    assert_string_equal(status_of(&stage).mode, "recovering");
    assert_int_equal(away.count, COUNT_OF(away.under_way));
    for (size_t i = 0; i < away.count; i++) {
        size_t most = i < 5 ? 5 : i < 15 ? 10 : 25;
        check(away.under_way[i] <= most, "send %zu: %zu at once", i + 1, away.under_way[i]);
    }
    check(away.under_way[4] == 5 && away.under_way[14] == 10, "%zu, then %zu", away.under_way[4], away.under_way[14]);
    stage_run_for(&stage, 10 * MINUTE_MS);
    assert_string_equal(status_of(&stage).mode, "normal");
    assert_int_equal(away.most, 25);
    stage_end(&stage);
}

static void add_ranked(struct stage *stage, const char *id, enum priority priority)
{
    const struct destination_config *config = config_destination(stage->config, SLICE("d"));
    const struct store_op op = { .kind = OP_INSERT,
                                 .insert = { .destination = SLICE("d"), .tenant = SLICE("t"), .id = slice_from(id),
                                             .priority = priority, .rank = rank_of(priority, stage->now, config->aging_ms),
                                             .run_at = stage->now, .deadline = INSTANT_NONE, .payload = SLICE("x") } };
    stage_apply(stage, &op);
}

/* S3-079: an hour makes up for a class. */
static void an_hour_makes_up_for_a_class(void **state)
{
    static const struct { int64_t after_ms; const char *first; } cases[] = {
        { 3600 * SECOND_MS - 1, "high" }, { 3600 * SECOND_MS + 1, "normal" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct order order = { .count = 0 };
        struct stage stage = { .destination = notes_whose, .context = &order };
        stage_begin(&stage, SIFEN(", concurrency: 1"), began);
        assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), NULL), STATUS_OK);
        add_ranked(&stage, "normal", PRIORITY_NORMAL);
        stage_run_for(&stage, cases[i].after_ms);
        add_ranked(&stage, "high", PRIORITY_HIGH);
        stage_run_for(&stage, 10);
        assert_int_equal(engine_resume(stage.engine, SLICE("d"), NULL), STATUS_OK);
        stage_run_for(&stage, MINUTE_MS);
        assert_int_equal(order.count, 2);
        check(strcmp(order.ids[0], cases[i].first) == 0, "after %lld ms %s is first", (long long)cases[i].after_ms, order.ids[0]);
        stage_end(&stage);
    }
}

static void see_raised(void *context, const struct event *event)
{
    *(int *)context += memmem(event->data.data, event->data.len, "\"note\":\"alert_raised\"", 21) != NULL &&
                       memmem(event->data.data, event->data.len, "\"alert\":\"pending\"", 17) != NULL;
}

static int raised(struct stage *stage)
{
    int count = 0;
    events_each(stage, see_raised, &count);
    return count;
}

/* S3-080: a hundred may wait, one more is told. */
static void a_hundred_and_one_documents_are_told(void **state)
{
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, SIFEN(""), began);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), NULL), STATUS_OK);
    for (int i = 0; i < 100; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 2 * MINUTE_MS);
    assert_int_equal(raised(&stage), 0);
    stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 2 * MINUTE_MS);
    assert_int_equal(raised(&stage), 1);
    stage_end(&stage);
}

/* --- provisioning -------------------------------------------------------------------------------------------- */

/* S4-008 S4-012: 100 items in each minute. */
static void a_hundred_items_a_minute(void **state)
{
    static const size_t sent[] = { 100, 200, 250, 250 };
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, PROVISIONING, began);
    add_jobs(&stage, 250);
    stage_run_for(&stage, 30 * SECOND_MS);
    for (size_t i = 0; i < COUNT_OF(sent); i++) {
        check(stage.send_count == sent[i], "in minute %zu: %zu", i + 1, stage.send_count);
        stage_run_for(&stage, 60 * SECOND_MS);
    }
    stage_end(&stage);
}

static int64_t fails_once(struct stage *stage, const struct send *send, struct answer *answer)
{
    if (send->job->attempts > 1)
        *(instant *)stage->context = stage->now;
    if (send->job->attempts > 1)
        return delivers(stage, send, answer);
    answer->code = SLICE("http:503");
    answer->text = SLICE("HTTP 503");
    return 20;
}

/* C-71: when it is due, not at the next full minute. */
static void an_item_goes_when_it_is_due(void **state)
{
    instant again_at = INSTANT_NONE;
    struct stage stage = { .destination = fails_once, .context = &again_at };
    (void)state;
    stage_begin(&stage, PROVISIONING, began);
    stage_add(&stage, "d", "t", "one", "x");
    stage_run_for(&stage, SECOND_MS);
    struct job job = stage_job(&stage, "t", "one");
    assert_int_equal(job.state, STATE_WAITING);
    instant due = job.run_at;
    check(due >= began + 24 * SECOND_MS && due <= began + 37 * SECOND_MS, "due after %lld ms", (long long)(due - began));
    stage_run_for(&stage, MINUTE_MS);
    check(again_at >= due && again_at <= due + SECOND_MS, "%lld ms late", (long long)(again_at - due));
    assert_int_equal(stage_job(&stage, "t", "one").state, STATE_COMPLETED);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_message_is_kept_for_seven_days),
        cmocka_unit_test(ten_thousand_dead_messages_are_the_most),
        cmocka_unit_test(a_message_lives_for_a_day),
        cmocka_unit_test(companies_send_three_in_a_row),
        cmocka_unit_test(companies_have_their_figures),
        cmocka_unit_test(a_quiet_company_becomes_urgent),
        cmocka_unit_test(sifen_is_looked_at_every_30_seconds),
        cmocka_unit_test(a_document_is_tried_every_five_minutes),
        cmocka_unit_test(batches_grow_from_five_to_25),
        cmocka_unit_test(an_hour_makes_up_for_a_class),
        cmocka_unit_test(a_hundred_and_one_documents_are_told),
        cmocka_unit_test(a_hundred_items_a_minute),
        cmocka_unit_test(an_item_goes_when_it_is_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
