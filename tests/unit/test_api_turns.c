/*
 * Whose turn it is, as the API tells: places in the queue, tenants' figures, warnings about deadlines.
 */
#include "support/api_fixture.h"
#include "support/check.h"
#include "support/store_faulty.h"

#include "base/log.h"
#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>

static const char config[] = "listen: 127.0.0.1:0\n"
                             "store: 'memory:'\n"
                             "tiers: { gold: [acme] }\n"
                             "destinations:\n"
                             "  slow: { url: 'http://127.0.0.1:1/', concurrency: 1, rate: { total: 1/m } }\n"
                             "  shared: { url: 'http://127.0.0.1:1/', concurrency: 1, rate: { per_tenant: 2/h } }\n"
                             "  rounds: { url: 'http://127.0.0.1:1/', cycle: { every: 60s, batch: 2 }, job_ttl: 2m }\n"
                             "  free: { url: 'http://127.0.0.1:1/', job_ttl: 1m,\n"
                             "          fairness: { base_priority: 5, weights: { gold: 4 } } }\n"
                             "  stuck: { url: 'http://127.0.0.1:1/', concurrency: 2 }\n"
                             "  pulled: { transport: pull, priority: { aging: 1h } }\n";

static int setup(void **state)
{
    static const struct api_fixture_settings settings = { .config = config };
    *state = api_fixture_new(&settings);
    return 0;
}

static int teardown(void **state)
{
    api_fixture_free(*state);
    return 0;
}

static void add(struct api_fixture *fixture, const char *destination, const char *tenant, int count, const char *payload)
{
    for (int i = 0; i < count; i++) {
        char id[32];
        snprintf(id, sizeof id, "%s-%d", destination, i);
        put_job(fixture, destination, tenant, id, payload);
    }
}

static void after(int64_t ms, char text[INSTANT_TEXT_BYTES])
{
    instant_format(clock_now() + ms, text);
}

/* Adds one with a deadline, and returns the answer. */
static struct reply add_with_deadline(struct api_fixture *fixture, const char *destination, const char *tenant, const char *id,
                                      const char *priority, int64_t deadline_ms)
{
    char body[512], deadline[INSTANT_TEXT_BYTES];
    after(deadline_ms, deadline);
    snprintf(body, sizeof body,
             "{\"destination\":\"%s\",\"tenant\":\"%s\",\"id\":\"%s\",\"priority\":\"%s\",\"payload\":\"x\",\"deadline\":\"%s\"}",
             destination, tenant, id, priority, deadline);
    struct reply reply = http_do(fixture, "POST", "/v1/jobs", body);
    check(reply.status == 201, "%s", reply.body);
    return reply;
}

/* C-46: told when it is added, and taken all the same. */
static void a_queue_that_drains_too_late_is_told(void **state)
{
    struct api_fixture *fixture = *state;
    add(fixture, "slow", "t", 301, "x");
    struct reply late = add_with_deadline(fixture, "slow", "t", "late", "normal", 4 * HOUR_MS);
    check(strstr(reply_text(&late, "warning"), "at its rate.total of 1/m") != NULL, "%s", late.body);
    check(strstr(reply_text(&late, "warning"), "it will expire") != NULL, "%s", late.body);
    assert_string_equal(reply_text(&late, "state"), "pending");
    reply_release(&late);
    struct reply in_time = add_with_deadline(fixture, "slow", "t", "in-time", "normal", 6 * HOUR_MS);
    check(!reply_at(&in_time, "warning"), "%s", in_time.body);
    reply_release(&in_time);
    struct reply urgent = add_with_deadline(fixture, "slow", "t", "urgent", "critical", 4 * HOUR_MS);
    check(!reply_at(&urgent, "warning"), "before all of its tenant's: %s", urgent.body);
    reply_release(&urgent);
    struct reply hurried = add_with_deadline(fixture, "slow", "t", "hurried", "normal", HOUR_MS);
    check(!reply_at(&hurried, "warning"), "its deadline brings it forward: %s", hurried.body);
    reply_release(&hurried);
    struct reply other = add_with_deadline(fixture, "slow", "u", "other", "normal", 4 * HOUR_MS);
    check(!reply_at(&other, "warning"), "a tenant without a queue is served soon: %s", other.body);
    reply_release(&other);
}

static void a_tenants_own_limit_is_told(void **state)
{
    struct api_fixture *fixture = *state;
    add(fixture, "shared", "t", 12, "x");
    struct reply late = add_with_deadline(fixture, "shared", "t", "late", "normal", 4 * HOUR_MS);
    check(strstr(reply_text(&late, "warning"), "at its rate.per_tenant of 2/h") != NULL, "%s", late.body);
    reply_release(&late);
    struct reply other = add_with_deadline(fixture, "shared", "u", "late", "normal", 4 * HOUR_MS);
    check(!reply_at(&other, "warning"), "%s", other.body);
    reply_release(&other);
}

/* C-75: a cycle bounds what goes. A time to live is a deadline too; a duplicate is not warned about, it was taken before. */
static void a_batch_tells_once(void **state)
{
    struct api_fixture *fixture = *state;
    struct buffer body;
    buffer_init(&body, 1 << 20);
    for (int i = 0; i < 40; i++)
        buffer_printf(&body, "{\"destination\":\"rounds\",\"tenant\":\"t%d\",\"id\":\"%d\",\"payload\":\"hang\"}\n", i % 3, i);
    struct request request = { .method = "POST", .path = "/v1/jobs/batch", .body = body.data,
                               .content_type = "application/x-ndjson" };
    struct reply reply = http_ask(fixture, &request);
    assert_int_equal(reply_int(&reply, "accepted"), 40);
    check(strstr(reply_text(&reply, "warning"), "at its cycle of 2/m") != NULL, "%s", reply.body);
    check(strstr(reply_text(&reply, "warning"), "jobs of 2 more tenants likewise") != NULL, "%s", reply.body);
    reply_release(&reply);
    reply = http_ask(fixture, &request);
    assert_int_equal(reply_int(&reply, "duplicates"), 40);
    check(!reply_at(&reply, "warning"), "%s", reply.body);
    reply_release(&reply);
    buffer_release(&body);
}

static void no_limit_no_warning(void **state)
{
    struct api_fixture *fixture = *state;
    add(fixture, "free", "t", 3, "hang");
    struct reply reply = http_do(fixture, "POST", "/v1/jobs", "{\"destination\":\"free\",\"payload\":\"x\"}");
    check(reply.status == 201 && !reply_at(&reply, "warning"), "%s", reply.body);
    reply_release(&reply);
}

/* ---- why ---- */

static struct reply why(struct api_fixture *fixture, const char *tenant, const char *id)
{
    char path[128];
    snprintf(path, sizeof path, "/v1/jobs/%s/why?tenant=%s", id, tenant);
    struct reply reply = http_do(fixture, "GET", path, NULL);
    check(reply.status == 200, "%s", reply.body);
    return reply;
}

static void why_tells_the_place(void **state)
{
    struct api_fixture *fixture = *state;
    add(fixture, "stuck", "t", 12, "hang");
    add(fixture, "stuck", "u", 2, "hang");
    await_number(fixture, "/v1/destinations/stuck", "under_way", 2);
    struct reply reply = why(fixture, "t", "stuck-11");
    check(reply_int(&reply, "queue.ahead") >= 9 && reply_int(&reply, "queue.ahead") <= 11, "%s", reply.body);
    check(reply_int(&reply, "queue.before") >= reply_int(&reply, "queue.ahead"), "%s", reply.body);
    assert_true(json_is_false(reply_at(&reply, "queue.ahead_or_more")));
    assert_true(json_is_null(reply_at(&reply, "queue.expected_at"))); /* nothing was answered yet, and nothing limits it */
    check(strcmp(reply_text(&reply, "held_by"), "share") == 0, "%s", reply.body); /* of the two slots the other tenant has one */
    check(*reply_text(&reply, "since"), "%s", reply.body);
    check(strstr(reply_text(&reply, "reason"), "of its tenant's jobs are before it") != NULL, "%s", reply.body);
    reply_release(&reply);
}

static void why_expects_by_the_rate(void **state)
{
    struct api_fixture *fixture = *state;
    char half_an_hour[INSTANT_TEXT_BYTES], an_hour[INSTANT_TEXT_BYTES];
    add(fixture, "slow", "t", 42, "x");
    await_number(fixture, "/v1/destinations/slow", "completed", 1);
    after(35 * MINUTE_MS, half_an_hour);
    after(45 * MINUTE_MS, an_hour);
    struct reply reply = why(fixture, "t", "slow-41");
    assert_int_equal(reply_int(&reply, "queue.ahead"), 40);
    assert_string_equal(reply_text(&reply, "queue.limited_by"), "rate.total");
    const char *expected = reply_text(&reply, "queue.expected_at");
    check(strcmp(expected, half_an_hour) > 0 && strcmp(expected, an_hour) < 0, "%s", reply.body);
    assert_string_equal(reply_text(&reply, "held_by"), "rate");
    check(*reply_text(&reply, "until") && *reply_text(&reply, "since"), "%s", reply.body);
    reply_release(&reply);
    reply = why(fixture, "t", "slow-0"); /* it is done: in no queue */
    check(!reply_at(&reply, "queue"), "%s", reply.body);
    reply_release(&reply);
}

static void why_names_the_tenants_limit(void **state)
{
    struct api_fixture *fixture = *state;
    add(fixture, "shared", "t", 4, "x");
    await_number(fixture, "/v1/destinations/shared", "completed", 1);
    struct reply reply = why(fixture, "t", "shared-3");
    assert_string_equal(reply_text(&reply, "held_by"), "rate");
    check(strstr(reply_text(&reply, "reason"), "rate.per_tenant") != NULL, "%s", reply.body);
    check(*reply_text(&reply, "until"), "%s", reply.body);
    reply_release(&reply);
}

static void a_held_destination_has_no_time(void **state)
{
    struct api_fixture *fixture = *state;
    struct reply paused = http_do(fixture, "POST", "/v1/destinations/free/pause", "{}");
    assert_int_equal(paused.status, 200);
    reply_release(&paused);
    add(fixture, "free", "t", 3, "x");
    struct reply reply = why(fixture, "t", "free-2");
    assert_string_equal(reply_text(&reply, "held_by"), "paused");
    assert_int_equal(reply_int(&reply, "queue.ahead"), 2);
    assert_true(json_is_null(reply_at(&reply, "queue.expected_at")));
    reply_release(&reply);
}

/* ---- tenants ---- */

/* The document's names of the figures; what they are worth is tested through the engine. */
static void tenants_have_the_documents_figures(void **state)
{
    struct api_fixture *fixture = *state;
    add(fixture, "free", "acme", 3, "x");
    await_number(fixture, "/v1/destinations/free", "completed", 3);
    add(fixture, "free", "globex", 2, "x");
    await_number(fixture, "/v1/destinations/free", "completed", 5);
    struct reply reply = http_do(fixture, "GET", "/v1/tenants?destination=free", NULL);
    assert_int_equal(reply.status, 200);
    assert_int_equal(json_array_size(reply_at(&reply, "tenants")), 2);
    static const struct { const char *company; int64_t total, in_a_row, weight; } rows[] = { { "acme", 3, 0, 4 }, { "globex", 2, 1, 1 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        json_t *figures = json_object_get(json_array_get(reply_at(&reply, "tenants"), i), "fairness");
        json_t *expected = json_pack("{s:s, s:i, s:i, s:I, s:I, s:I}", "companyId", rows[i].company, "roundsWithoutProcessing", 0,
                                     "currentPriority", 5, "totalProcessed", (json_int_t)rows[i].total, "consecutiveBatchCount",
                                     (json_int_t)rows[i].in_a_row, "weight", (json_int_t)rows[i].weight);
        check(*json_string_value(json_object_get(figures, "lastProcessedAt")), "%s", reply.body);
        json_object_del(figures, "lastProcessedAt");
        check(json_equal(figures, expected), "%s", reply.body);
        json_decref(expected);
    }
    reply_release(&reply);
}

/* ---- order ---- */

/* S3-024: the one that would expire is leased first, and a change of priority does not forget its deadline. */
static void a_near_deadline_is_first(void **state)
{
    struct api_fixture *fixture = *state;
    static const char *const expected[] = { "critical", "due", "high", "pulled-0" };
    add(fixture, "pulled", "t", 1, "x");
    struct reply high =
        http_do(fixture, "POST", "/v1/jobs",
                "{\"destination\":\"pulled\",\"tenant\":\"t\",\"id\":\"high\",\"priority\":\"high\",\"payload\":\"x\"}");
    assert_int_equal(high.status, 201);
    reply_release(&high);
    struct reply due = add_with_deadline(fixture, "pulled", "t", "due", "normal", 30 * MINUTE_MS);
    reply_release(&due);
    struct reply critical =
        http_do(fixture, "POST", "/v1/jobs",
                "{\"destination\":\"pulled\",\"tenant\":\"t\",\"id\":\"critical\",\"priority\":\"critical\",\"payload\":\"x\"}");
    assert_int_equal(critical.status, 201);
    reply_release(&critical);
    for (int i = 0; i < 2; i++) {
        struct reply patched = http_do(fixture, "PATCH", "/v1/jobs/due?tenant=t",
                                       i == 0 ? "{\"priority\":\"high\"}" : "{\"priority\":\"normal\"}");
        check(patched.status == 200, "%s", patched.body);
        reply_release(&patched);
    }
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        struct reply reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"pulled\",\"wait_s\":5,\"lease_s\":60}");
        check(strcmp(reply_text(&reply, "leases.0.id"), expected[i]) == 0, "%zu: %s", i, reply.body);
        reply_release(&reply);
    }
}

static int64_t reads_for_figures(struct api_fixture *fixture, int64_t tenants)
{
    static const char *const paths[] = { "/v1/stats", "/v1/destinations", "/metrics", "/v1/destinations/yard" };
    struct reply first = http_do(fixture, "GET", "/metrics", NULL); /* it looks for the newest event, from the last it knew on */
    reply_release(&first);
    int64_t before = store_faulty_count(api_fixture_store(fixture), FAULTY_READ);
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct reply reply = http_do(fixture, "GET", paths[i], NULL);
        assert_int_equal(reply.status, 200);
        if (i == 0)
            assert_int_equal(reply_int(&reply, "totals.pending"), tenants);
        if (i == COUNT_OF(paths) - 1)
            assert_int_equal(reply_int(&reply, "tenants"), tenants);
        reply_release(&reply);
    }
    return store_faulty_count(api_fixture_store(fixture), FAULTY_READ) - before;
}

/* The engine reads, too, when it likes. */
static int64_t fewest_reads(struct api_fixture *fixture, int64_t tenants)
{
    int64_t fewest = INT64_MAX;
    for (int i = 0; i < 5; i++) {
        int64_t reads = reads_for_figures(fixture, tenants);
        fewest = reads < fewest ? reads : fewest;
    }
    return fewest;
}

/* Whoever looks at figures walks no tenants: however many there are, the store is asked as often. */
static void figures_do_not_walk_tenants(void **state)
{
    enum { TENANTS = 2500, A_BATCH = 500 };
    static const struct api_fixture_settings counted = { .faulty = true };
    (void)state;
    struct api_fixture *fixture = api_fixture_new(&counted);
    put_job(fixture, "yard", "t", "1", "x");
    int64_t few = fewest_reads(fixture, 1);
    for (int i = 0; i < TENANTS;) {
        struct buffer body;
        buffer_init(&body, 1 << 20);
        for (int end = i + A_BATCH; i < end; i++) {
            char line[80];
            snprintf(line, sizeof line, "{\"destination\":\"yard\",\"tenant\":\"t%d\",\"payload\":1}\n", i);
            buffer_append_text(&body, line);
        }
        const struct request batch = { "POST", "/v1/jobs/batch", body.data, body.len, "application/x-ndjson", NULL };
        struct reply reply = http_ask(fixture, &batch);
        assert_int_equal(reply_int(&reply, "accepted"), A_BATCH);
        reply_release(&reply);
        buffer_release(&body);
    }
    int64_t many = fewest_reads(fixture, TENANTS + 1);
    check(many == few, "%lld reads, then %lld", (long long)few, (long long)many);
    api_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_do_not_walk_tenants),
        cmocka_unit_test_setup_teardown(a_queue_that_drains_too_late_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tenants_own_limit_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_batch_tells_once, setup, teardown),
        cmocka_unit_test_setup_teardown(no_limit_no_warning, setup, teardown),
        cmocka_unit_test_setup_teardown(why_tells_the_place, setup, teardown),
        cmocka_unit_test_setup_teardown(why_expects_by_the_rate, setup, teardown),
        cmocka_unit_test_setup_teardown(why_names_the_tenants_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(a_held_destination_has_no_time, setup, teardown),
        cmocka_unit_test_setup_teardown(tenants_have_the_documents_figures, setup, teardown),
        cmocka_unit_test_setup_teardown(a_near_deadline_is_first, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
