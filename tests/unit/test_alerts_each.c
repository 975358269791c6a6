/*
 * One message a job that died, where notify asks for it: with its id and error, chosen by code.
 */
#include "engine/alerts/notify.h"
#include "engine/orders.h"
#include "support/check.h"
#include "support/engine_fixture.h"

#include <jansson.h>

enum { MESSAGES_MAX = 64 };

struct desk {
    char messages[MESSAGES_MAX][256];
    size_t count;
    bool webhook_fails;
};

/* A claim fails with its payload as code; what comes to a webhook or by mail is noted: whose, which, why. */
static int64_t answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct desk *desk = stage->context;
    const struct job *job = send->job;
    if (!slice_equal(job->tenant, NOTIFY_TENANT)) {
        answer->code = job->payload;
        answer->text = SLICE("refused: card 12345678901 is unknown");
        return 20;
    }
    if (desk->webhook_fails) {
        answer->code = SLICE("http:503");
        answer->text = SLICE("HTTP 503: away");
        return 20;
    }
    json_t *root = json_loadb(job->payload.data, job->payload.len, 0, NULL);
    const json_t *data = json_object_get(root, "data");
    const char *subject = json_string_value(json_object_get(root, "subject"));
    const char *kind = json_string_value(json_object_get(root, "type"));
    char *line = desk->messages[desk->count++];
    assert_true(desk->count < MESSAGES_MAX);
    if (subject)
        snprintf(line, sizeof desk->messages[0], "mail %s", subject);
    else if (strcmp(kind, "job.dead") == 0)
        snprintf(line, sizeof desk->messages[0], "%s %s %s %s", json_string_value(json_object_get(data, "claimId")),
                 json_string_value(json_object_get(data, "dead_code")), json_string_value(json_object_get(data, "code")),
                 json_string_value(json_object_get(data, "errorMessage")));
    else
        snprintf(line, sizeof desk->messages[0], "%s %s", kind, json_string_value(json_object_get(data, "alert")));
    json_decref(root);
    answer->outcome = OUTCOME_DELIVERED;
    return 20;
}

#define ERRORS "errors: { permanent: ['tiss:1001', 'tiss:2001', 'http:400'] }, " RETRY
#define RETRY "retry: { max_retries: 1, base: 1s, floor: 1s, cap: 1s, jitter: 0 }, alerts: { dead: 0 }"
#define DEST "destinations: { d: { url: 'http://127.0.0.1:1/', allow_private: true, " ERRORS " } }\n"
#define HOOK "webhook: 'http://127.0.0.1:2/', allow_private: true"

static bool has(const struct desk *desk, const char *line)
{
    for (size_t i = 0; i < desk->count; i++)
        if (strcmp(desk->messages[i], line) == 0)
            return true;
    return false;
}

/* S0-054, S1-033: nine suspended claims are nine messages, and none of the run of them. */
static void each_job_is_told(void **state)
{
    struct desk desk = { .count = 0 };
    struct stage stage = { .destination = answers, .context = &desk };
    (void)state;
    stage_begin(&stage, "notify: [{ name: desk, " HOOK ", on: [permanent_error], each: true }]\n" DEST, began);
    for (int i = 0; i < 9; i++) {
        char id[16];
        snprintf(id, sizeof id, "CLM-%d", i);
        stage_add(&stage, "d", "t", id, "tiss:1001");
    }
    stage_add(&stage, "d", "t", "gone", "http:503"); /* its retries are used up: not asked for */
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(desk.count, 9);
    for (int i = 0; i < 9; i++) {
        char line[128];
        snprintf(line, sizeof line, "CLM-%d PERMANENT_ERROR tiss:1001 refused: card <number> is unknown", i);
        check(has(&desk, line), "no %s", line);
    }
    stage_end(&stage);
}

static void they_are_chosen_by_code(void **state)
{
    static const struct { const char *where; const char *reported; } rows[] = {
        { "where: { code: ['tiss:*'] }", "ab" },
        { "where: { code: ['tiss:1001'] }", "a" },
        { "where: { code: ['http:4xx', 'tiss:2001'] }", "bc" },
        { "where: { dead_code: [MAX_RETRIES_EXCEEDED] }", "d" },
        { "where: { dead_code: [PERMANENT_ERROR], code: ['http:400'] }", "c" },
        { "destinations: [other]", "" },
        { "tenants: [u]", "" },
        { "tenants: [t]", "abcd" },
    };
    static const char *const codes[] = { "tiss:1001", "tiss:2001", "http:400", "http:503" };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct desk desk = { .count = 0 };
        struct stage stage = { .destination = answers, .context = &desk };
        char yaml[1024];
        snprintf(yaml, sizeof yaml, "notify: [{ name: desk, " HOOK ", on: [all], each: true, %s }]\n" DEST, rows[i].where);
        stage_begin(&stage, yaml, began);
        for (size_t k = 0; k < COUNT_OF(codes); k++) {
            char id[2] = { (char)('a' + k), '\0' };
            stage_add(&stage, "d", "t", id, codes[k]);
        }
        stage_run_for(&stage, HOUR_MS);
        check(desk.count == strlen(rows[i].reported), "%s: %zu messages", rows[i].where, desk.count);
        for (size_t k = 0; k < desk.count; k++)
            check(strchr(rows[i].reported, desk.messages[k][0]), "%s: %s", rows[i].where, desk.messages[k]);
        stage_end(&stage);
    }
}

/* Who is away hears of each when he is back, also over a crash, and of none twice. */
static void none_is_lost_or_told_twice(void **state)
{
    struct desk desk = { .webhook_fails = true };
    struct stage stage = { .destination = answers, .context = &desk };
    (void)state;
    stage_begin(&stage, "notify: [{ name: desk, " HOOK ", on: [critical], each: true },\n"
                        "  { name: run, email: ops@example.org, through: mail, on: [permanent_error] },\n"
                        "  { name: mails, email: desk@example.org, through: mail, on: [permanent_error], each: true }]\n"
                        "destinations: { d: { url: 'http://127.0.0.1:1/', allow_private: true, " ERRORS " },\n"
                        "  mail: { url: 'smtp://127.0.0.1:25', allow_private: true } }\n", began);
    stage_add(&stage, "d", "t", "CLM-1", "http:400");
    stage_add(&stage, "d", "t", "CLM-2", "tiss:1001");
    stage_run_for(&stage, 5 * SECOND_MS);
    stage_crash(&stage);
    desk.webhook_fails = false;
    stage_run_for(&stage, 2 * HOUR_MS);
    assert_int_equal(desk.count, 5);
    assert_true(has(&desk, "CLM-1 PERMANENT_ERROR http:400 refused: card <number> is unknown"));
    assert_true(has(&desk, "CLM-2 PERMANENT_ERROR tiss:1001 refused: card <number> is unknown"));
    assert_true(has(&desk, "mail [insist] PERMANENT_ERROR: CLM-1 at d"));
    assert_true(has(&desk, "mail [insist] PERMANENT_ERROR: CLM-2 at d"));
    assert_true(has(&desk, "mail [insist] critical: permanent_error at d"));
    stage_end(&stage);
}

/* Sent back and dead again is news again. */
static void each_death_is_told(void **state)
{
    struct desk desk = { .count = 0 };
    struct stage stage = { .destination = answers, .context = &desk };
    const struct store_op again = { .kind = OP_REDRIVE, .job = { .tenant = SLICE("t"), .id = SLICE("CLM-1") } };
    (void)state;
    stage_begin(&stage, "notify: [{ name: desk, " HOOK ", on: [permanent_error], each: true }]\n" DEST, began);
    stage_add(&stage, "d", "t", "CLM-1", "tiss:1001");
    for (size_t deaths = 1; deaths <= 3; deaths++) {
        stage_run_for(&stage, HOUR_MS);
        assert_int_equal(desk.count, deaths);
        stage_apply(&stage, &again);
    }
    stage_end(&stage);
}

/* Those that expire while they wait, too; who asks for the run of them hears of that. */
static void those_that_wait_too_long_are_told(void **state)
{
    struct desk desk = { .count = 0 };
    struct stage stage = { .destination = answers, .context = &desk };
    struct error error;
    (void)state;
    stage_begin(&stage, "notify: [{ name: desk, " HOOK ", on: [expired], each: true, destinations: [d] },\n"
                        "  { name: other, " HOOK ", on: [expired], each: true, where: { code: ['http:503'] } },\n"
                        "  { name: run, " HOOK ", on: [expired] }]\n"
                        "destinations: { d: { url: 'http://127.0.0.1:1/', allow_private: true, job_ttl: 1h, " ERRORS " },\n"
                        "  e: { url: 'http://127.0.0.1:1/', allow_private: true, job_ttl: 1h, " ERRORS " } }\n", began);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    assert_int_equal(engine_pause(stage.engine, SLICE("e"), SLICE(""), &error), STATUS_OK);
    for (int i = 0; i < 9; i++) {
        char id[16];
        snprintf(id, sizeof id, "CLM-%d", i);
        stage_add(&stage, "d", "t", id, "x");
    }
    stage_add(&stage, "e", "t", "elsewhere", "x");
    stage_run_for(&stage, 2 * HOUR_MS);
    assert_int_equal(desk.count, 10);
    assert_true(has(&desk, "alert.raised expired"));
    for (int i = 0; i < 9; i++) {
        char start[32];
        size_t found = 0;
        snprintf(start, sizeof start, "CLM-%d EXPIRED (null) ", i);
        for (size_t k = 0; k < desk.count; k++)
            found += strncmp(desk.messages[k], start, strlen(start)) == 0;
        check(found == 1, "%s: %zu times", start, found);
    }
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_job_is_told),
        cmocka_unit_test(they_are_chosen_by_code),
        cmocka_unit_test(none_is_lost_or_told_twice),
        cmocka_unit_test(each_death_is_told),
        cmocka_unit_test(those_that_wait_too_long_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
