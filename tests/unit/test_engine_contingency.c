/*
 * What begins a contingency, how often it is looked at meanwhile, and in which order the held jobs go on: the SIFEN preset
 * through the real engine.
 */
#include "core/decision/job.h"
#include "engine/orders.h"
#include "support/check.h"
#include "support/engine_fixture.h"

#include <stdio.h>

#define SIFEN(more)                                                                                                         \
    "destinations: { d: { preset: sifen, url: 'http://127.0.0.1:1/', allow_private: true, id_pattern: '.*'"                 \
    ", verify: { url: 'http://127.0.0.1:1/v' }" more " } }\n"
#define CHECKED ", health: { url: 'http://127.0.0.1:1/health' }"

/* What a send sees while SIFEN is away, and what a health check does. */
struct failure {
    const char *name;
    enum outcome outcome;
    const char *code, *text;
    const char *more;   /* of the configuration */
    bool checked;             /* health checks are made, and fail; nothing happens at the second one */
    int64_t quiet_ms, by_ms;  /* nothing has happened until then; contingency has begun by then */
    const char *expected;     /* of the event that tells it */
};

static int64_t fails_so(struct stage *stage, const struct send *send, struct answer *answer)
{
    const struct failure *failure = stage->context;
    (void)send;
    answer->outcome = failure->outcome;
    answer->code = slice_from(failure->code);
    answer->text = slice_from(failure->text);
    return 20;
}

static int64_t says_nothing(struct stage *stage, const struct probe *probe, struct health_answer *answer)
{
    (void)stage;
    (void)probe;
    answer->connected = false;
    return 20;
}

#define SINGLE ", contingency: { activate_on_single_event: true }"

static const struct failure failures[] = {
    { "no answer within the limit", OUTCOME_IN_DOUBT, "curl:28", "timed out", SINGLE, false, 0, 1000,
      "\"change\":\"contingency\",\"cause\":\"signal\",\"sign\":\"timeout\"" },
    { "network or name service", OUTCOME_TRANSIENT, "curl:6", "could not resolve host", SINGLE, false, 0, 1000,
      "\"change\":\"contingency\",\"cause\":\"signal\",\"sign\":\"connectivity\"" },
    { "a server error", OUTCOME_NONE, "http:500", "HTTP 500", SINGLE, false, 0, 1000,
      "\"change\":\"contingency\",\"cause\":\"signal\",\"sign\":\"service_error\"" },
    { "it says that it is busy", OUTCOME_NONE, "http:429", "HTTP 429: Too Many Requests", SINGLE, false, 0, 1000,
      "\"change\":\"contingency\",\"cause\":\"signal\",\"sign\":\"busy\"" },
    { "a maintenance window", OUTCOME_DELIVERED, "sifen:0260", "", ", contingency: { maintenance: ['Sun 11:00-12:00'] }", false,
      19 * MINUTE_MS, 21 * MINUTE_MS, "\"change\":\"contingency\",\"cause\":\"maintenance\",\"sign\":\"maintenance\"" },
    { "three health checks in a row", OUTCOME_DELIVERED, "sifen:0260", "", CHECKED, true, 0, 91 * SECOND_MS,
      "\"change\":\"contingency\",\"cause\":\"health\"" },
    { "one sign is not enough by itself, a document at its end is", OUTCOME_NONE, "http:503", "HTTP 503", "", false,
      350 * SECOND_MS, 430 * SECOND_MS,
      "\"change\":\"contingency\",\"cause\":\"exhausted\"" },
};

/* S3-008 S3-009 S3-010 S3-011 S3-012 S3-014 A-18: each of the document's triggers, and that the change is told, once. */
static void each_trigger_leads_to_contingency(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(failures); i++) {
        const struct failure *failure = &failures[i];
        struct stage stage = { .destination = fails_so, .health = failure->checked ? says_nothing : NULL,
                               .context = (void *)(uintptr_t)failure };
        char yaml[1024];
        snprintf(yaml, sizeof yaml, SIFEN("%s"), failure->more);
        stage_begin(&stage, yaml, began);
        stage_add(&stage, "d", "t", "one", "x");
        while (failure->checked && stage.probe_count < 2)
            stage_run_for(&stage, SECOND_MS);
        stage_run_until(&stage, began + failure->quiet_ms);
        check(told_text(&stage, "\"change\":") == 0, "%s: too early", failure->name);
        stage_run_until(&stage, began + failure->by_ms);
        check(strcmp(status_of(&stage).mode, "contingency") == 0, "%s: %s", failure->name, status_of(&stage).mode);
        check(told_text(&stage, failure->expected) == 1, "%s: not told", failure->name);
        stage_run_for(&stage, 4 * MINUTE_MS);
        check(told_text(&stage, "\"change\":\"contingency\"") == 1, "%s: told again", failure->name);
        check(stage_counts(&stage, "d").dead == 0, "%s: dead", failure->name);
        stage_end(&stage);
    }
}

/* When sends began, while the destination was away. */
struct looks {
    instant back_at;
    instant at[64];
    size_t count;
};

static int64_t is_away_until(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct looks *looks = stage->context;
    (void)send;
    if (stage->now >= looks->back_at) {
        answer->outcome = OUTCOME_DELIVERED;
        return 20;
    }
    assert_true(looks->count < COUNT_OF(looks->at));
    looks->at[looks->count++] = stage->now;
    answer->code = SLICE("http:503");
    answer->text = SLICE("HTTP 503: away");
    return 20;
}

/* S3-086: the longer a destination is away, the more rarely it is asked, down to the longest pause; back, it gets all. */
static void looks_are_rarer_the_longer_it_is_away(void **state)
{
    struct looks looks = { .back_at = began + 2 * HOUR_MS };
    struct stage stage = { .destination = is_away_until, .context = &looks };
    (void)state;
    stage_begin(&stage, "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, concurrency: 10"
                        ", breaker: { min_calls: 10, open: 30s, open_max: 5m, probes: 1 } } }\n", began);
    for (int i = 0; i < 100; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage_run_until(&stage, looks.back_at - 1);
    assert_in_range(looks.count, 10 + 20, 10 + 30); /* 30 s, 1, 2, 4 minutes, then every five */
    for (size_t i = 11; i < looks.count; i++) {
        int64_t gap = looks.at[i] - looks.at[i - 1], before = looks.at[i - 1] - looks.at[i - 2];
        int64_t doubled = before * 2 < 5 * MINUTE_MS ? before * 2 : 5 * MINUTE_MS;
        check(gap >= doubled * 8 / 10 && gap <= 6 * MINUTE_MS, "look %zu after %lld ms", i, (long long)gap);
    }
    stage_run_for(&stage, 6 * MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 100);
    stage_end(&stage);
}

/* Ids of jobs in the order in which they were sent. */
struct sent {
    char ids[64][16];
    char tenants[64];
    size_t count;
};

static int64_t notes_order(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct sent *sent = stage->context;
    assert_true(sent->count < COUNT_OF(sent->ids));
    snprintf(sent->ids[sent->count], sizeof sent->ids[0], "%.*s", SLICE_ARG(send->job->id));
    sent->tenants[sent->count++] = send->job->tenant.data[0];
    answer->outcome = OUTCOME_DELIVERED;
    return 20;
}

static void add(struct stage *stage, const char *tenant, const char *id, enum priority priority)
{
    const struct destination_config *config = config_destination(stage->config, SLICE("d"));
    struct store_op op = { .kind = OP_INSERT };
    op.insert = (struct op_insert){
        .destination = SLICE("d"),
        .tenant = slice_from(tenant),
        .id = slice_from(id),
        .priority = priority,
        .rank = rank_of(priority, stage->now, config->aging_ms),
        .run_at = stage->now,
        .deadline = INSTANT_NONE,
        .payload = SLICE("x"),
    };
    stage_apply(stage, &op);
}

/* S3-050: urgent ones first, then the oldest, taxpayers in turn; what comes after the outage is last. */
static void the_way_back_has_an_order(void **state)
{
    static const struct { const char *id; enum priority priority; } jobs[] = {
        { "older", PRIORITY_NORMAL }, { "old", PRIORITY_NORMAL }, { "high", PRIORITY_HIGH }, { "critical", PRIORITY_CRITICAL },
    };
    struct sent sent = { .count = 0 };
    struct stage stage = { .destination = notes_order, .context = &sent };
    (void)state;
    stage_begin(&stage, SIFEN(", concurrency: 1"), began);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), NULL), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        add(&stage, "A", jobs[i].id, jobs[i].priority);
        add(&stage, "B", jobs[i].id, jobs[i].priority);
        stage_run_for(&stage, 10 * MINUTE_MS);
    }
    assert_int_equal(sent.count, 0);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), NULL), STATUS_OK);
    add(&stage, "A", "new", PRIORITY_NORMAL);
    add(&stage, "B", "new", PRIORITY_NORMAL);
    stage_run_for(&stage, MINUTE_MS);
    static const char *const order[] = { "critical", "high", "older", "old", "new" };
    assert_int_equal(sent.count, 2 * COUNT_OF(order));
    for (size_t i = 0; i < sent.count; i++) {
        check(strcmp(sent.ids[i], order[i / 2]) == 0, "number %zu is %s", i, sent.ids[i]);
        check(i % 2 == 0 || sent.tenants[i] != sent.tenants[i - 1], "number %zu is of %c", i, sent.tenants[i]);
    }
    stage_end(&stage);
}

static void sent_in_order(const struct sent *sent, const char *const *order, size_t count)
{
    assert_int_equal(sent->count, count);
    for (size_t i = 0; i < count; i++)
        check(strcmp(sent->ids[i], order[i]) == 0, "number %zu is %s, not %s", i, sent->ids[i], order[i]);
}

/* C-60: the effective priority first, then taxpayers in turn, then age: on the way back and without an outage. */
static void urgent_documents_go_first_whoever_has_them(void **state)
{
    enum { DOCUMENTS = 9 };
    (void)state;
    for (int outage = 0; outage < 2; outage++) {
        struct sent sent = { .count = 0 };
        struct stage stage = { .destination = notes_order, .context = &sent };
        stage_begin(&stage, SIFEN(", concurrency: 1"), began);
        if (outage)
            assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), NULL), STATUS_OK);
        else
            assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), NULL), STATUS_OK);
        add(&stage, "B", "old", PRIORITY_NORMAL);
        add(&stage, "A", "n0", PRIORITY_NORMAL);
        add(&stage, "A", "n1", PRIORITY_NORMAL);
        add(&stage, "B", "new", PRIORITY_NORMAL);
        add(&stage, "A", "c0", PRIORITY_CRITICAL);
        add(&stage, "A", "c1", PRIORITY_CRITICAL);
        add(&stage, "A", "c2", PRIORITY_CRITICAL);
        add(&stage, "B", "h", PRIORITY_HIGH);
        add(&stage, "C", "k", PRIORITY_CRITICAL);
        stage_run_for(&stage, 10 * MINUTE_MS);
        if (outage)
            assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), NULL), STATUS_OK);
        else
            assert_int_equal(engine_resume(stage.engine, SLICE("d"), NULL), STATUS_OK);
        stage_run_for(&stage, MINUTE_MS);
        check(sent.count == DOCUMENTS, "%zu were sent", sent.count);
        for (size_t i = 0; i < sent.count; i++) /* among equals it may be either's turn */
            check((strchr("ck", sent.ids[i][0]) != NULL) == (i < 4) && (strcmp(sent.ids[i], "h") == 0) == (i == 4),
                  "number %zu is %s", i, sent.ids[i]);
        check(strcmp(sent.ids[0], "k") == 0 || strcmp(sent.ids[1], "k") == 0, "C had no turn");
        stage_end(&stage);
    }
}

/* Who calls all of its work critical stops nobody where there is more than one slot; where there is one, aging ends it. */
static void one_slot_in_five_is_for_all(void **state)
{
    struct sent sent = { .count = 0 };
    struct stage stage = { .destination = notes_order, .context = &sent };
    (void)state;
    stage_begin(&stage, SIFEN(", concurrency: 5"), began);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), NULL), STATUS_OK);
    for (int i = 0; i < 40; i++) {
        char id[8];
        snprintf(id, sizeof id, "c%d", i);
        add(&stage, "A", id, PRIORITY_CRITICAL);
    }
    for (int i = 0; i < 4; i++) {
        char id[8];
        snprintf(id, sizeof id, "n%d", i);
        add(&stage, "B", id, PRIORITY_NORMAL);
    }
    stage_run_for(&stage, 1000);
    assert_int_equal(engine_resume(stage.engine, SLICE("d"), NULL), STATUS_OK);
    stage_run_for(&stage, MINUTE_MS);
    size_t normal = 0;
    for (size_t i = 0; i < 25; i++)
        normal += sent.ids[i][0] == 'n';
    check(normal >= 2 && normal <= 4, "%zu of the first 25 are normal", normal);
    assert_int_equal(sent.count, 44);
    stage_end(&stage);
}

/* The default: a class counts among a tenant's own jobs, and who calls all of them critical does not hold up the others. */
static void a_class_counts_among_its_tenants_jobs(void **state)
{
    static const char *const order[] = { "c0", "old", "c1", "new", "c2", "c3", "c4", "c5" };
    struct sent sent = { .count = 0 };
    struct stage stage = { .destination = notes_order, .context = &sent };
    (void)state;
    stage_begin(&stage, SIFEN(", concurrency: 1, priority: { scope: tenant }"), began);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), NULL), STATUS_OK);
    for (int i = 0; i < 6; i++) {
        char id[] = "c0";
        id[1] = (char)('0' + i);
        add(&stage, "A", id, PRIORITY_CRITICAL);
    }
    add(&stage, "B", "old", PRIORITY_NORMAL);
    stage_run_for(&stage, 10 * MINUTE_MS);
    add(&stage, "B", "new", PRIORITY_NORMAL);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), NULL), STATUS_OK);
    stage_run_for(&stage, MINUTE_MS);
    sent_in_order(&sent, order, COUNT_OF(order));
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_trigger_leads_to_contingency),
        cmocka_unit_test(looks_are_rarer_the_longer_it_is_away),
        cmocka_unit_test(the_way_back_has_an_order),
        cmocka_unit_test(urgent_documents_go_first_whoever_has_them),
        cmocka_unit_test(one_slot_in_five_is_for_all),
        cmocka_unit_test(a_class_counts_among_its_tenants_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
