/*
 * The page's files as they are served, and the figures that are there for it: dead letters by what they have in
 * common, attempts by the minute, what the caller may do. tests/browser has the page itself.
 */
#include "support/api_fixture.h"
#include "support/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

static const char tokens[] = /* the hashes of the tokens below */
    "tokens:\n"
    "  - { name: all, sha256: 01912f65bfa8acb7fcf2ace6f8eb896cd0920a79aa90e3bc15ce327e2c72a5df, scopes: [read, operate] }\n"
    "  - { name: one, sha256: 8e64ccaee5db98e89017f5205061a209be295cc49c184ee7dc8453ff9b593a4d, scopes: [read], tenant: t }\n";

static const struct { const char *path, *type; } files[] = {
    { "/", "text/html; charset=utf-8" },
    { "/page/page.css", "text/css; charset=utf-8" },
    { "/page/page.js", "text/javascript; charset=utf-8" },
    { "/page/dom.js", "text/javascript; charset=utf-8" },
    { "/page/words.js", "text/javascript; charset=utf-8" },
    { "/page/live.js", "text/javascript; charset=utf-8" },
    { "/page/state.js", "text/javascript; charset=utf-8" },
    { "/page/chart.js", "text/javascript; charset=utf-8" },
    { "/page/acts.js", "text/javascript; charset=utf-8" },
    { "/page/now.js", "text/javascript; charset=utf-8" },
    { "/page/destination.js", "text/javascript; charset=utf-8" },
    { "/page/jobs.js", "text/javascript; charset=utf-8" },
    { "/page/dead.js", "text/javascript; charset=utf-8" },
    { "/page/watch.js", "text/javascript; charset=utf-8" },
    { "/page/views.js", "text/javascript; charset=utf-8" },
    { "/page/plan.js", "text/javascript; charset=utf-8" },
    { "/page/en.json", "application/json" },
    { "/page/pt-BR.json", "application/json" },
    { "/page/es-PY.json", "application/json" },
};

static int setup(void **state)
{
    *state = api_fixture_new(NULL);
    return 0;
}

static int teardown(void **state)
{
    api_fixture_free(*state);
    return 0;
}

static void check_header(const struct reply *reply, const char *name, const char *part)
{
    char *value = reply_header(reply, name);
    check(value && strstr(value, part), "%s: %s", name, value ? value : "(none)");
    free(value);
}

static void the_page_is_open_and_strict(void **state)
{
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .tokens = tokens });
    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct reply reply = http_do(fixture, "GET", files[i].path, NULL);
        assert_int_equal(reply.status, 200);
        check_header(&reply, "Content-Type", files[i].type);
        check_header(&reply, "Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'");
        check_header(&reply, "Content-Security-Policy", "frame-ancestors 'none'");
        check_header(&reply, "X-Content-Type-Options", "nosniff");
        check_header(&reply, "Cache-Control", "no-cache");
        char *policy = reply_header(&reply, "Content-Security-Policy");
        check(!strstr(policy, "unsafe"), "%s", policy);
        free(policy);
        reply_release(&reply);
    }
    api_fixture_free(fixture);
}

/* Only the name of SVG's elements looks like an address of others. */
static void nothing_of_others_is_named(void **state)
{
    static const char svg[] = "http://www.w3.org/2000/svg";
    static const char *const forbidden[] = { "https://", "src=\"//", "href=\"//", "@import", "innerHTML", "outerHTML",
                                             "insertAdjacentHTML", "document.write", "eval(", " onclick", " style=\"", "<style" };
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct reply reply = http_do(*state, "GET", files[i].path, NULL);
        for (const char *at = reply.body; (at = strstr(at, "http://")); at++)
            check(strncmp(at, svg, strlen(svg)) == 0, "%s: %.60s", files[i].path, at);
        for (size_t f = 0; f < COUNT_OF(forbidden); f++)
            check(!strstr(reply.body, forbidden[f]), "%s has %s", files[i].path, forbidden[f]);
        reply_release(&reply);
    }
}

static void a_browser_that_has_it_is_told_so(void **state)
{
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char ask[256];
        struct reply reply = http_do(*state, "GET", files[i].path, NULL);
        char *tag = reply_header(&reply, "ETag");
        check(tag && tag[0] == '"', "%s", files[i].path);
        for (int same = 0; same < 2; same++) {
            int len = snprintf(ask, sizeof ask, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nIf-None-Match: %s\r\n\r\n",
                               files[i].path, same ? tag : "\"other\"");
            int fd = raw_connect(*state);
            raw_send(fd, ask, (size_t)len);
            char *answer = raw_read(fd, NULL);
            check(strncmp(answer, same ? "HTTP/1.1 304" : "HTTP/1.1 200", 12) == 0, "%s: %.40s", files[i].path, answer);
            check((strstr(answer, "\r\n\r\n")[4] == '\0') == (same == 1), "%s", files[i].path);
            free(answer);
            close(fd);
        }
        free(tag);
        reply_release(&reply);
    }
}

/* As every browser asks; who does not say so gets it as it is. */
static void files_are_packed_for_those_who_take_that(void **state)
{
    static const char *const wishes[] = { "identity", "gzip, deflate, br" };
    for (size_t i = 0; i < COUNT_OF(wishes); i++) {
        char ask[256];
        int len = snprintf(ask, sizeof ask,
                           "GET /page/page.js HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAccept-Encoding: %s\r\n\r\n", wishes[i]);
        int fd = raw_connect(*state);
        raw_send(fd, ask, (size_t)len);
        char *answer = raw_read(fd, NULL);
        const char *body = strstr(answer, "\r\n\r\n");
        check((strstr(answer, "\r\nContent-Encoding: gzip\r\n") != NULL) == (i == 1), "%s: %.300s", wishes[i], answer);
        check(strstr(answer, "\r\nVary: Accept-Encoding\r\n") != NULL, "%.300s", answer);
        check(body && (strncmp(body + 4, "\x1f\x8b", 2) == 0) == (i == 1), "%s", wishes[i]);
        free(answer);
        close(fd);
    }
    struct reply reply = http_do(*state, "GET", "/page/openapi.js", NULL);
    check(reply.status == 404, "%s", reply.body);
    reply_release(&reply);
    reply = http_do(*state, "GET", "/page/page.html", NULL); /* it has no other address than / */
    check(reply.status == 404, "%s", reply.body);
    reply_release(&reply);
}

/* A preset needs no file. What is asked for is the command's to judge, and nothing becomes an option that is none. */
static void a_simulation_is_refused_where_it_may_not_be(void **state)
{
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .tokens = tokens });
    struct reply reply = http_ask(fixture, &(struct request){ .method = "POST", .path = "/v1/simulate", .body = "{\"policy\":\"tiss\"}",
                                                              .token = "reader-of-one-tenant-0001" });
    check(reply.status == 403, "%s", reply.body);
    reply_release(&reply);
    api_fixture_free(fixture);
    reply = http_do(*state, "POST", "/v1/simulate", "{\"html\":\"/tmp/x\"}");
    check(reply.status == 422, "%s", reply.body);
    check(strstr(reply.body, "unknown_member") != NULL, "%s", reply.body);
    reply_release(&reply);
}

/* A sanitizer wants more memory than a simulation may have. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SIMULATIONS_FAIL = 1 };
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SIMULATIONS_FAIL = 1 };
#else
enum { SIMULATIONS_FAIL = 0 };
#endif
#else
enum { SIMULATIONS_FAIL = 0 };
#endif

/* The program that is run is this one; see main. */
static void a_simulation_is_answered_with_what_it_printed(void **state)
{
    static const struct { const char *body, *wanted; int status; } cases[] = {
        { "{\"policy\":\"tiss\"}", "{\"simulated\":true}", 200 },
        { "{\"policy\":\"tiss\",\"load\":\"wrong\"}", "load is not a rate", 422 },
        { "{\"policy\":\"tiss\",\"load\":\"broken\"}", "not_done", 503 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct reply reply = http_do(*state, "POST", "/v1/simulate", cases[i].body);
        bool failed = SIMULATIONS_FAIL && reply.status == 503;
        check(failed || reply.status == cases[i].status, "%zu: %s", i, reply.body);
        check(failed || strstr(reply.body, cases[i].wanted) != NULL, "%zu: %s", i, reply.body);
        reply_release(&reply);
    }
}

static void rules_are_told_of_one_destination(void **state)
{
    struct reply reply = http_do(*state, "GET", "/v1/destinations/web", NULL);
    check(reply_int(&reply, "policy.retry.max_retries") > 0, "%s", reply.body);
    check(reply_int(&reply, "policy.dead.ttl_ms") > 0, "%s", reply.body);
    reply_release(&reply);
    reply = http_do(*state, "GET", "/v1/destinations", NULL);
    check(!strstr(reply.body, "\"policy\""), "%s", reply.body);
    reply_release(&reply);
}

static void the_caller_is_told_what_it_may_do(void **state)
{
    static const struct { const char *token, *first, *last, *tenant; size_t count; } cases[] = {
        { "reader-of-everything-0001", "read", "operate", "", 3 },
        { "reader-of-one-tenant-0001", "read", "read", "t", 1 },
    };
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .tokens = tokens });
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char last[16];
        struct reply reply = http_ask(fixture, &(struct request){ .method = "GET", .path = "/v1/stats", .token = cases[i].token });
        snprintf(last, sizeof last, "scopes.%zu", cases[i].count - 1);
        check(json_array_size(reply_at(&reply, "scopes")) == cases[i].count, "%s", reply.body);
        assert_string_equal(reply_text(&reply, "scopes.0"), cases[i].first);
        assert_string_equal(reply_text(&reply, last), cases[i].last);
        assert_string_equal(reply_text(&reply, "tenant"), cases[i].tenant);
        reply_release(&reply);
    }
    api_fixture_free(fixture);
    struct reply reply = http_do(*state, "GET", "/v1/stats", NULL);
    check(json_array_size(reply_at(&reply, "scopes")) == 5, "%s", reply.body);
    reply_release(&reply);
}

/* S2-104, S2-105. More than are looked at in one turn: 1200 of one kind, 3 of another. */
static void dead_letters_are_counted_by_what_they_share(void **state)
{
    static const struct { const char *query, *key, *first, *second; int64_t count, other; } cases[] = {
        { "", "code", "http:400", "BROKEN", 1200, 3 },
        { "?by=code", "code", "http:400", "BROKEN", 1200, 3 },
        { "?by=tenant", "tenant", "north", "south", 1200, 3 },
        { "?by=destination", "destination", "web", "yard", 1200, 3 },
        { "?by=code&destination=yard", "code", "BROKEN", "", 3, -1 },
        { "?by=destination&tenant=north", "destination", "web", "", 1200, -1 },
        { "?by=fingerprint&destination=yard", "sample", "broken wheel <number>", "", 3, -1 },
    };
    struct api_fixture *fixture = *state;
    struct buffer body;
    buffer_init(&body, 1 << 20);
    for (int i = 0; i < 1200; i++)
        buffer_append_text(&body, "{\"destination\":\"web\",\"tenant\":\"north\",\"payload\":\"bad\"}\n");
    struct reply reply = http_ask(fixture, &(struct request){ .method = "POST", .path = "/v1/jobs/batch", .body = body.data,
                                                              .content_type = "application/x-ndjson" });
    check(reply_int(&reply, "accepted") == 1200, "%s", reply.body);
    reply_release(&reply);
    buffer_release(&body);
    for (int i = 0; i < 3; i++) {
        char nack[256];
        snprintf(nack, sizeof nack, "s%d", i);
        put_job(fixture, "yard", "south", nack, "x");
        reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"wait_s\":30}");
        snprintf(nack, sizeof nack, "{\"lease\":\"%s\",\"code\":\"BROKEN\",\"error\":\"BROKEN wheel %d\"}",
                 reply_text(&reply, "leases.0.lease"), i);
        reply_release(&reply);
        reply = http_do(fixture, "POST", "/v1/leases/nack", nack);
        check(reply.status == 200, "%s", reply.body);
        reply_release(&reply);
    }
    await_number(fixture, "/v1/stats", "totals.dead", 1203);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char path[128], member[32];
        snprintf(path, sizeof path, "/v1/dead/summary%s", cases[i].query);
        reply = http_do(fixture, "GET", path, NULL);
        snprintf(member, sizeof member, "groups.0.%s", cases[i].key);
        check(strcmp(reply_text(&reply, member), cases[i].first) == 0, "%s: %s", path, reply.body);
        snprintf(member, sizeof member, "groups.1.%s", cases[i].key);
        check(strcmp(reply_text(&reply, member), cases[i].second) == 0, "%s: %s", path, reply.body);
        check(reply_int(&reply, "groups.0.count") == cases[i].count, "%s: %s", path, reply.body);
        check(reply_int(&reply, "groups.1.count") == cases[i].other, "%s: %s", path, reply.body);
        check(reply_int(&reply, "others") == 0, "%s: %s", path, reply.body);
        check(reply_int(&reply, "groups.0.tenants") == 1, "%s: %s", path, reply.body);
        check(reply_int(&reply, "groups.0.by_hour.23") == cases[i].count, "%s: %s", path, reply.body);
        check(strcmp(reply_text(&reply, "groups.0.oldest_at"), reply_text(&reply, "groups.0.newest_at")) <= 0, "%s", reply.body);
        reply_release(&reply);
    }
    api_fixture_skip(fixture, 2 * 60 * 60 * 1000);
    reply = http_do(fixture, "GET", "/v1/dead/summary?by=fingerprint&destination=yard", NULL);
    check(strcmp(reply_text(&reply, "groups.0.code"), "broken") == 0, "%s", reply.body);
    check(reply_int(&reply, "groups.0.by_hour.21") == 3 && reply_int(&reply, "groups.0.by_hour.23") == 0, "%s", reply.body);
    reply_release(&reply);
}

static void attempts_are_counted_by_the_minute(void **state)
{
    static const struct { int64_t later_ms, delivered, failed; } cases[] = {
        { 0, 2, 1 }, { 2 * 60 * 1000, 0, 0 },
    };
    struct api_fixture *fixture = *state;
    put_job(fixture, "web", "t", "good", "x");
    put_job(fixture, "web", "t", "fails", "fail");
    await_state(fixture, "/v1/jobs/good?tenant=t", "completed");
    await_state(fixture, "/v1/jobs/fails?tenant=t", "waiting");
    put_job(fixture, "yard", "t", "pulled", "x");
    struct reply reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"wait_s\":30}");
    char ack[128];
    snprintf(ack, sizeof ack, "{\"lease\":\"%s\"}", reply_text(&reply, "leases.0.lease"));
    reply_release(&reply);
    reply = http_do(fixture, "POST", "/v1/leases/ack", ack);
    assert_int_equal(reply.status, 200);
    reply_release(&reply);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t delivered = 0, by_minute = 0;
        api_fixture_skip(fixture, cases[i].later_ms);
        reply = http_do(fixture, "GET", "/v1/destinations", NULL);
        json_t *one;
        size_t index;
        json_array_foreach(reply_at(&reply, "destinations"), index, one) {
            delivered += json_integer_value(json_object_get(one, "delivered_last_minute"));
            for (size_t m = 0; m < json_array_size(json_object_get(one, "delivered_by_minute")); m++)
                by_minute += json_integer_value(json_array_get(json_object_get(one, "delivered_by_minute"), m));
            if (strcmp(json_string_value(json_object_get(one, "name")), "web") == 0)
                check(json_integer_value(json_object_get(one, "failed_last_minute")) == cases[i].failed, "%s", reply.body);
        }
        check(delivered == cases[i].delivered && by_minute == 2, "%zu: %s", i, reply.body);
        reply_release(&reply);
    }
}

static void a_tenants_token_is_not_told_of_others_attempts(void **state)
{
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .tokens = tokens });
    (void)state;
    struct reply reply = http_ask(fixture, &(struct request){ .method = "GET", .path = "/v1/destinations",
                                                              .token = "reader-of-one-tenant-0001" });
    check(reply.status == 200 && !strstr(reply.body, "last_minute") && !strstr(reply.body, "by_minute"), "%s", reply.body);
    reply_release(&reply);
    api_fixture_free(fixture);
}

/* Stands for `insist simulate`. */
static int simulate(int count, char **arguments)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(arguments[i], "--load=wrong") == 0)
            return fprintf(stderr, "insist: load is not a rate\n"), 2;
        if (strcmp(arguments[i], "--load=broken") == 0)
            return 1;
    }
    puts("{\"simulated\":true}");
    return 0;
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "simulate") == 0)
        return simulate(count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_is_open_and_strict),
        cmocka_unit_test_setup_teardown(nothing_of_others_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_browser_that_has_it_is_told_so, setup, teardown),
        cmocka_unit_test_setup_teardown(files_are_packed_for_those_who_take_that, setup, teardown),
        cmocka_unit_test_setup_teardown(a_simulation_is_refused_where_it_may_not_be, setup, teardown),
        cmocka_unit_test_setup_teardown(a_simulation_is_answered_with_what_it_printed, setup, teardown),
        cmocka_unit_test_setup_teardown(rules_are_told_of_one_destination, setup, teardown),
        cmocka_unit_test_setup_teardown(the_caller_is_told_what_it_may_do, setup, teardown),
        cmocka_unit_test_setup_teardown(dead_letters_are_counted_by_what_they_share, setup, teardown),
        cmocka_unit_test_setup_teardown(attempts_are_counted_by_the_minute, setup, teardown),
        cmocka_unit_test(a_tenants_token_is_not_told_of_others_attempts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
