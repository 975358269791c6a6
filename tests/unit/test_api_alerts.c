/*
 * Alerts over HTTP: lists, pages and filters, who may see what, and that nobody adds to those who are told.
 */
#include "base/log.h"
#include "support/api_fixture.h"
#include "support/check.h"
#include "support/store_faulty.h"

#include <poll.h>
#include <stdio.h>

static const char config[] = "notify: [{ name: ops, webhook: 'http://127.0.0.1:2/', allow_private: true, on: [critical] }]\n"
                             "destinations:\n"
                             "  web: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, alerts: { dead_per_tenant: 1 },\n"
                             "         contingency: { enabled: false, ramp: [5], stable: 1m, check: 5m } }\n"
                             "  other: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true,\n"
                             "           contingency: { enabled: false, ramp: [5], stable: 1m, check: 5m } }\n";

/* The secrets are "operator", "looker" and "tenant". */
static const char tokens[] =
    "tokens:\n"
    "  - { name: ops-anna, sha256: 06e55b633481f7bb072957eabcf110c972e86691c3cfedabe088024bffe42f23, scopes: [operate, enqueue] }\n"
    "  - { name: looker, sha256: d133efd9800e396abbeb9de0cc7a6f873d58159121a0fc587f8a2ec1208ad50a, scopes: [read] }\n"
    "  - { name: acme, sha256: e9da86d351cf9a7642d8c50195c3f466220911a15c177809bd1161a51e8c5f24, scopes: [read, enqueue], tenant: acme }\n";

static int setup(void **state)
{
    *state = api_fixture_new(&(struct api_fixture_settings){ .config = config });
    return 0;
}

static int setup_faulty(void **state)
{
    *state = api_fixture_new(&(struct api_fixture_settings){ .config = config, .faulty = true });
    return 0;
}

static int setup_tokens(void **state)
{
    *state = api_fixture_new(&(struct api_fixture_settings){ .config = config, .tokens = tokens });
    return 0;
}

static int teardown(void **state)
{
    api_fixture_free(*state);
    return 0;
}

static void hold(struct api_fixture *fixture, const char *destination, const char *body)
{
    char path[128];
    snprintf(path, sizeof path, "/v1/destinations/%s/contingency", destination);
    struct reply reply = http_ask(fixture, &(struct request){ .method = "POST", .path = path, .body = body, .token = "operator" });
    check(reply.status == 200, "%s: %d %s", path, reply.status, reply.body);
    reply_release(&reply);
}

static size_t count_of(struct api_fixture *fixture, const char *path)
{
    struct reply reply = http_ask(fixture, &(struct request){ .method = "GET", .path = path, .token = "operator" });
    check(reply.status == 200, "%s: %d %s", path, reply.status, reply.body);
    size_t count = json_array_size(reply_at(&reply, "alerts"));
    reply_release(&reply);
    return count;
}

static int reply_status(struct api_fixture *fixture, const char *path)
{
    struct reply reply = http_do(fixture, "POST", path, NULL);
    int status = reply.status;
    reply_release(&reply);
    return status;
}

static void await_count(struct api_fixture *fixture, const char *path, size_t count)
{
    for (instant end = clock_now() + MINUTE_MS; clock_now() < end && count_of(fixture, path) != count;)
        poll(NULL, 0, 5);
    check(count_of(fixture, path) == count, "%s: %zu", path, count_of(fixture, path));
}

static void standing_and_over(void **state)
{
    struct api_fixture *fixture = *state;
    hold(fixture, "web", "{\"enter\":true,\"reason\":\"they called\"}");
    hold(fixture, "other", "{\"enter\":true}");
    await_count(fixture, "/v1/alerts", 2);
    struct reply reply = http_do(fixture, "GET", "/v1/alerts?destination=web", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "alerts")), 1);
    assert_string_equal(reply_text(&reply, "alerts.0.alert"), "contingency");
    assert_string_equal(reply_text(&reply, "alerts.0.severity"), "critical");
    assert_string_equal(reply_text(&reply, "alerts.0.state"), "standing");
    assert_string_equal(reply_text(&reply, "alerts.0.reason"), "they called");
    assert_string_equal(reply_text(&reply, "alerts.0.summary"),
                        "web: contingency began: jobs are held and lose no tries (they called)");
    assert_true(json_is_null(json_object_get(reply.json, "next")));
    reply_release(&reply);
    hold(fixture, "web", "{\"enter\":false}");
    await_text(fixture, "/v1/destinations/web", "mode", "recovering");
    api_fixture_advance(fixture, 2 * MINUTE_MS);
    await_count(fixture, "/v1/alerts?state=cleared", 1);
    static const struct {
        const char *path;
        size_t count;
    } rows[] = {
        { "/v1/alerts", 1 },
        { "/v1/alerts?state=standing", 1 },
        { "/v1/alerts?state=all", 2 },
        { "/v1/alerts?state=all&destination=web", 1 },
        { "/v1/alerts?state=all&destination=none", 0 },
        { "/v1/alerts?state=all&severity=critical", 2 },
        { "/v1/alerts?state=all&severity=warning", 0 },
        { "/v1/alerts?state=all&alert=contingency", 2 },
        { "/v1/alerts?state=all&alert=down", 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check(count_of(fixture, rows[i].path) == rows[i].count, "%s: %zu", rows[i].path, count_of(fixture, rows[i].path));
    reply = http_do(fixture, "GET", "/v1/alerts?state=cleared", NULL);
    assert_string_equal(reply_text(&reply, "alerts.0.state"), "cleared");
    assert_true(*reply_text(&reply, "alerts.0.cleared_at"));
    reply_release(&reply);
    static const struct {
        const char *path, *type, *detail;
    } wrong[] = {
        { "/v1/alerts?state=open", "invalid_state", "state must be standing, cleared or all" },
        { "/v1/alerts?severity=urgent", "invalid_parameter", "severity must be critical, warning or info" },
        { "/v1/alerts?alert=contingence", "invalid_parameter", "there is no alert \"contingence\"; did you mean \"contingency\"?" },
        { "/v1/alerts?alert=x", "invalid_parameter", "there is no alert \"x\"" },
        { "/v1/alerts?destination=wab", "unknown_destination", "there is no destination \"wab\"; did you mean \"web\"?" },
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        reply = http_do(fixture, "GET", wrong[i].path, NULL);
        check(reply.status == 422 && strcmp(reply_text(&reply, "type"), wrong[i].type) == 0 &&
                  strcmp(reply_text(&reply, "detail"), wrong[i].detail) == 0,
              "%s: %d %s", wrong[i].path, reply.status, reply.body);
        reply_release(&reply);
    }
    await_number(fixture, "/v1/destinations/notify.ops", "completed", 3);
}

/* Who it was is in the trail; another acknowledgement only adds to what stands. */
static void somebody_acknowledges(void **state)
{
    struct api_fixture *fixture = *state;
    char path[256];
    put_job(fixture, "web", "t", "1", "bad");
    await_count(fixture, "/v1/alerts?alert=permanent_error", 1);
    struct reply reply = http_do(fixture, "GET", "/v1/alerts", NULL);
    snprintf(path, sizeof path, "/v1/alerts/%s/ack", reply_text(&reply, "alerts.0.id"));
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/stats", NULL);
    assert_int_equal(reply_int(&reply, "alerts.standing"), 1);
    assert_int_equal(reply_int(&reply, "alerts.unacknowledged"), 1);
    reply_release(&reply);
    reply = http_do(fixture, "POST", path, "{\"note\":7}");
    assert_int_equal(reply.status, 422);
    reply_release(&reply);
    reply = http_do(fixture, "POST", path, "{\"note\":\"told billing\"}");
    check(reply.status == 200, "%s", reply.body);
    assert_string_equal(reply_text(&reply, "state"), "cleared");
    assert_string_equal(reply_text(&reply, "acknowledged.note"), "told billing");
    reply_release(&reply);
    reply = http_do(fixture, "POST", path, NULL);
    assert_int_equal(reply.status, 404);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/stats", NULL);
    assert_int_equal(reply_int(&reply, "alerts.standing"), 0);
    assert_int_equal(reply_int(&reply, "totals.dead"), 1);
    reply_release(&reply);
    hold(fixture, "web", "{\"enter\":true}");
    await_count(fixture, "/v1/alerts", 1);
    reply = http_do(fixture, "GET", "/v1/alerts", NULL);
    snprintf(path, sizeof path, "/v1/alerts/%s/ack", reply_text(&reply, "alerts.0.id"));
    reply_release(&reply);
    for (int i = 0; i < 2; i++) {
        reply = http_do(fixture, "POST", path, i == 0 ? "{\"note\":\"one\"}" : "{\"note\":\"two\"}");
        assert_string_equal(reply_text(&reply, "state"), "standing");
        assert_string_equal(reply_text(&reply, "acknowledged.note"), i == 0 ? "one" : "two");
        reply_release(&reply);
    }
    reply = http_do(fixture, "GET", "/v1/stats", NULL);
    assert_int_equal(reply_int(&reply, "alerts.standing"), 1);
    assert_int_equal(reply_int(&reply, "alerts.unacknowledged"), 0);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/events?type=note&limit=1000", NULL);
    assert_non_null(strstr(reply.body, "\"note\":\"alert_acknowledged\""));
    reply_release(&reply);
}

/* One a page, over both kinds: each is there once. */
static void pages_go_on_among_those_that_are_over(void **state)
{
    struct api_fixture *fixture = *state;
    char path[256] = "/v1/alerts?state=all&limit=1", seen[4][128] = { "" };
    size_t count = 0;
    for (int i = 0; i < 2; i++) {
        hold(fixture, "web", "{\"enter\":true}");
        await_count(fixture, "/v1/alerts", 1);
        hold(fixture, "web", "{\"enter\":false}");
        await_text(fixture, "/v1/destinations/web", "mode", "recovering");
        api_fixture_advance(fixture, 2 * MINUTE_MS);
        await_count(fixture, "/v1/alerts", 0);
    }
    hold(fixture, "other", "{\"enter\":true}");
    await_count(fixture, "/v1/alerts", 1);
    for (bool more = true; more && count < COUNT_OF(seen);) {
        struct reply reply = http_do(fixture, "GET", path, NULL);
        assert_true(json_array_size(reply_at(&reply, "alerts")) <= 1);
        if (json_array_size(reply_at(&reply, "alerts")) == 1)
            snprintf(seen[count++], sizeof *seen, "%s", reply_text(&reply, "alerts.0.id"));
        more = *reply_text(&reply, "next") != '\0';
        snprintf(path, sizeof path, "/v1/alerts?state=all&limit=1&cursor=%s", reply_text(&reply, "next"));
        reply_release(&reply);
    }
    assert_int_equal(count, 3);
    assert_non_null(strstr(seen[0], "-other"));
    assert_true(strcmp(seen[1], seen[2]) > 0); /* newest first */
}

/* A token of one tenant sees that tenant's, and nothing of what all have together. */
static void a_tenant_sees_its_own(void **state)
{
    struct api_fixture *fixture = *state;
    static const char *const tenants[] = { "acme", "globex" };
    for (int i = 0; i < 4; i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"destination\":\"web\",\"tenant\":\"%s\",\"payload\":\"bad\"}", tenants[i % 2]);
        struct reply reply = http_ask(fixture, &(struct request){ .method = "POST", .path = "/v1/jobs", .body = body, .token = "operator" });
        assert_int_equal(reply.status, 201);
        reply_release(&reply);
    }
    await_count(fixture, "/v1/alerts?alert=permanent_error", 1);
    for (int i = 0; i < 100 && count_of(fixture, "/v1/alerts?alert=dead_per_tenant") < 2; i++) {
        api_fixture_advance(fixture, 11 * 1000);
        poll(NULL, 0, 20);
    }
    assert_int_equal(count_of(fixture, "/v1/alerts?state=all"), 3);
    struct reply reply = http_ask(fixture, &(struct request){ .method = "GET", .path = "/v1/alerts?state=all", .token = "tenant" });
    assert_int_equal(reply.status, 200);
    assert_int_equal(json_array_size(reply_at(&reply, "alerts")), 1);
    assert_string_equal(reply_text(&reply, "alerts.0.alert"), "dead_per_tenant");
    assert_string_equal(reply_text(&reply, "alerts.0.tenant"), "acme");
    assert_null(strstr(reply.body, "globex"));
    reply_release(&reply);
    reply = http_ask(fixture, &(struct request){ .method = "GET", .path = "/v1/events?limit=1000", .token = "tenant" });
    assert_null(strstr(reply.body, "globex"));
    assert_null(strstr(reply.body, "alert_raised"));
    reply_release(&reply);
    reply = http_ask(fixture, &(struct request){ .method = "GET", .path = "/v1/alerts" });
    assert_int_equal(reply.status, 401);
    reply_release(&reply);
}

/* What it says would be believed, and signed. */
static void nobody_adds_to_those_who_are_told(void **state)
{
    static const struct {
        const char *body, *type;
    } rows[] = {
        { "{\"destination\":\"notify.ops\",\"payload\":\"x\"}", "reserved_destination" },
        { "{\"destination\":\"web\",\"tenant\":\"insist.notify\",\"payload\":\"x\"}", "reserved_tenant" },
    };
    struct api_fixture *fixture = *state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = http_do(fixture, "POST", "/v1/jobs", rows[i].body);
        assert_int_equal(reply.status, 422);
        assert_string_equal(reply_text(&reply, "type"), rows[i].type);
        reply_release(&reply);
    }
}

/* An alert that no disk has room for is listed all the same, in its place, once, and when there is room again. */
static void a_full_store_hides_none(void **state)
{
    struct api_fixture *fixture = *state;
    hold(fixture, "other", "{\"enter\":true}");
    await_count(fixture, "/v1/alerts", 1);
    store_faulty_set(api_fixture_store(fixture), FAULTY_APPLY, 1, true, STATUS_FULL);
    struct reply reply = http_do(fixture, "POST", "/v1/destinations/web/contingency", "{\"enter\":true}");
    check(reply.status == 503, "%d %s", reply.status, reply.body);
    reply_release(&reply);
    reply = http_do(fixture, "POST", "/v1/jobs", "{\"destination\":\"web\",\"payload\":\"x\"}");
    check(reply.status == 503 && strstr(reply.body, "make room") && !strstr(reply.body, "try again"), "%d %s", reply.status,
          reply.body);
    reply_release(&reply);
    await_count(fixture, "/v1/alerts?destination=web", 1);
    await_count(fixture, "/v1/alerts?state=all", 2);
    await_count(fixture, "/v1/alerts?state=cleared", 0);
    reply = http_do(fixture, "GET", "/v1/alerts?limit=1", NULL);
    assert_string_equal(reply_text(&reply, "alerts.0.destination"), "web");
    assert_string_equal(reply_text(&reply, "alerts.0.state"), "standing");
    char path[256];
    snprintf(path, sizeof path, "/v1/alerts?limit=2&cursor=%s", reply_text(&reply, "next"));
    check(count_of(fixture, path) == 1, "%s", path);
    snprintf(path, sizeof path, "/v1/alerts/%s/ack", reply_text(&reply, "alerts.0.id"));
    reply_release(&reply);
    reply = http_do(fixture, "POST", path, NULL);
    check(reply.status == 503 && strstr(reply.body, "make room on its disk first"), "%d %s", reply.status, reply.body);
    reply_release(&reply);
    store_faulty_set(api_fixture_store(fixture), FAULTY_APPLY, 0, false, STATUS_FULL);
    for (instant end = clock_now() + MINUTE_MS; clock_now() < end && reply_status(fixture, path) != 200; poll(NULL, 0, 5))
        api_fixture_advance(fixture, SECOND_MS);
    check(reply_status(fixture, path) == 200, "%s is not written", path);
    check(count_of(fixture, "/v1/alerts") == 2, "%zu", count_of(fixture, "/v1/alerts"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_full_store_hides_none, setup_faulty, teardown),
        cmocka_unit_test_setup_teardown(standing_and_over, setup, teardown),
        cmocka_unit_test_setup_teardown(somebody_acknowledges, setup, teardown),
        cmocka_unit_test_setup_teardown(pages_go_on_among_those_that_are_over, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tenant_sees_its_own, setup_tokens, teardown),
        cmocka_unit_test_setup_teardown(nobody_adds_to_those_who_are_told, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
