#include "support/api_fixture.h"
#include "support/check.h"

#include "base/log.h"
#include "store/memory/memory.h"

#include <openssl/evp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* --- many jobs ---------------------------------------------------------------------------------------- */

static void many_jobs_are_taken(void **state)
{
    struct api_fixture *fixture = *state;
    static const struct {
        const char *name, *content_type, *body;
        int status;
        int64_t accepted, duplicates, rejected;
        const char *contains;
    } rows[] = {
        { "array", "application/json",
          "[{\"destination\":\"yard\",\"id\":\"a\",\"payload\":1},{\"destination\":\"yard\",\"id\":\"b\",\"payload\":1.0}]",
          200, 2, 0, 0, NULL },
        { "again and one more", "application/json",
          "[{\"destination\":\"yard\",\"id\":\"a\",\"payload\":1},{\"destination\":\"yard\",\"id\":\"c\",\"payload\":1}]",
          200, 1, 1, 0, NULL },
        { "twice in one request", "application/json",
          "[{\"destination\":\"yard\",\"id\":\"d\",\"payload\":1},{\"destination\":\"yard\",\"id\":\"d\",\"payload\":1}]",
          200, 1, 1, 0, NULL },
        { "conflict", "application/json", "[{\"destination\":\"yard\",\"id\":\"a\",\"payload\":2}]", 200, 0, 0, 1,
          "id_conflict" },
        { "a bad one rejects itself", "application/json",
          "[{\"destination\":\"nope\",\"payload\":1},7,{\"destination\":\"yard\",\"payload\":1},{\"payload\":}]", 200, 1, 0,
          3, "\"index\":3" },
        { "lines", "application/x-ndjson",
          "{\"destination\":\"yard\",\"id\":\"l1\",\"payload\":1}\n\n{\"destination\":\"yard\",\"id\":\"l2\",\"payload\":1}"
          "\r\n",
          200, 2, 0, 0, NULL },
        { "lines by their first byte", "application/json",
          "{\"destination\":\"yard\",\"id\":\"l3\",\"payload\":1}\n{bad}\n{\"destination\":\"yard\",\"id\":\"l4\","
          "\"payload\":1}",
          200, 2, 0, 1, "\"index\":1" },
        { "empty array", "application/json", "[]", 200, 0, 0, 0, "\"rejected\":[]" },
        { "nothing", "application/x-ndjson", "", 200, 0, 0, 0, NULL },
        { "broken array", "application/json", "[{\"destination\":\"yard\",\"id\":\"z\",\"payload\":1}", 422, -1, -1, 0,
          "invalid_json" },
        { "no comma", "application/json", "[1 2]", 422, -1, -1, 0, "invalid_json" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct request request = {
            .method = "POST", .path = "/v1/jobs/batch", .body = rows[i].body, .content_type = rows[i].content_type
        };
        struct reply reply = http_ask(fixture, &request);
        check(reply.status == rows[i].status, "%s: %d %s", rows[i].name, reply.status, reply.body);
        check(reply_int(&reply, "accepted") == rows[i].accepted && reply_int(&reply, "duplicates") == rows[i].duplicates,
              "%s: %s", rows[i].name, reply.body);
        check((int64_t)json_array_size(reply_at(&reply, "rejected")) == rows[i].rejected, "%s: %s", rows[i].name,
              reply.body);
        check(!rows[i].contains || strstr(reply.body, rows[i].contains), "%s: %s", rows[i].name, reply.body);
        reply_release(&reply);
    }
    struct reply reply = http_do(fixture, "GET", "/v1/jobs/z", NULL);
    assert_int_equal(reply.status, 404); /* nothing of a broken array was taken */
    reply_release(&reply);
}

/* More than one transaction holds. */
static void very_many_jobs_are_taken(void **state)
{
    struct api_fixture *fixture = *state;
    struct buffer body;
    buffer_init(&body, 16 << 20);
    for (int i = 0; i < 10000; i++)
        buffer_printf(&body,
                      i == 4500 ? "{\"destination\":\"nope\",\"payload\":%d}\n"
                                : "{\"destination\":\"yard\",\"id\":\"%d\",\"payload\":1}\n",
                      i);
    const struct request request = { .method = "POST", .path = "/v1/jobs/batch", .body = body.data, .body_len = body.len };
    struct reply reply = http_ask(fixture, &request);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply_int(&reply, "accepted"), 9999);
    assert_int_equal(reply_int(&reply, "rejected.0.index"), 4500);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/destinations/yard", NULL);
    assert_int_equal(reply_int(&reply, "pending"), 9999);
    reply_release(&reply);
    buffer_release(&body);
}

/* --- lists ------------------------------------------------------------------------------------------------ */

/* S3-071 C-49 S2-039 S2-108 */
static void destinations_and_tenants_are_counted(void **state)
{
    struct api_fixture *fixture = *state;
    put_job(fixture, "yard", "t1", "a", "1");
    put_job(fixture, "yard", "t1", "b", "1");
    put_job(fixture, "yard", "t2", "c", "1");
    put_job(fixture, "web", "t1", "d", "bad");
    await_state(fixture, "/v1/jobs/d?tenant=t1", "dead");
    struct reply reply = http_do(fixture, "GET", "/v1/destinations", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "destinations")), 4);
    assert_string_equal(reply_text(&reply, "destinations.0.name"), "mail");
    assert_string_equal(reply_text(&reply, "destinations.3.name"), "yard");
    assert_int_equal(reply_int(&reply, "destinations.3.pending"), 3);
    assert_int_equal(reply_int(&reply, "destinations.3.tenants"), 2);
    assert_string_equal(reply_text(&reply, "destinations.3.transport"), "pull");
    assert_int_equal(reply_int(&reply, "destinations.2.dead"), 1);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/destinations?limit=3", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "destinations")), 3);
    assert_string_equal(reply_text(&reply, "next"), "web");
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/destinations?cursor=web", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "destinations")), 1);
    assert_true(json_is_null(reply_at(&reply, "next")));
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/destinations/yrad", NULL);
    assert_int_equal(reply.status, 404);
    assert_non_null(strstr(reply.body, "did you mean"));
    reply_release(&reply);
    reply = http_do(fixture, "POST", "/v1/destinations/nope/pause", NULL);
    assert_int_equal(reply.status, 404);
    reply_release(&reply);
    reply = http_do(fixture, "POST", "/v1/destinations/yard/pause", "{\"reson\":\"x\"}");
    assert_int_equal(reply.status, 422);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/tenants?destination=yard&limit=1", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "tenants")), 1);
    assert_string_equal(reply_text(&reply, "tenants.0.tenant"), "t1");
    assert_int_equal(reply_int(&reply, "tenants.0.pending"), 2);
    char path[64];
    snprintf(path, sizeof path, "/v1/tenants?destination=yard&cursor=%s", reply_text(&reply, "next"));
    reply_release(&reply);
    reply = http_do(fixture, "GET", path, NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "tenants")), 1);
    assert_string_equal(reply_text(&reply, "tenants.0.tenant"), "t2");
    reply_release(&reply);
}

static void events_are_followed(void **state)
{
    struct api_fixture *fixture = *state;
    put_job(fixture, "yard", "t1", "a", "1");
    put_job(fixture, "yard", "t2", "b", "1");
    struct reply reply = http_do(fixture, "GET", "/v1/events", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "events")), 2);
    assert_string_equal(reply_text(&reply, "events.0.type"), "accepted");
    assert_string_equal(reply_text(&reply, "events.0.job"), "a");
    assert_int_equal(strlen(reply_text(&reply, "events.0.hash")), 64);
    assert_string_equal(reply_text(&reply, "last"), "2");
    assert_string_equal(reply_text(&reply, "events.0.id"), "1"); /* text: one day it is no number */
    reply_release(&reply);
    static const struct {
        const char *path;
        size_t count;
        int64_t last;
    } rows[] = {
        { "/v1/events?after=1", 1, 2 },   { "/v1/events?after=2", 0, 2 },
        { "/v1/events?limit=1", 1, 1 },   { "/v1/events?cursor=1&limit=1", 1, 2 },
        { "/v1/events?tenant=t2", 1, 2 }, { "/v1/events?job=a&tenant=t1", 1, 1 },
        { "/v1/events?job=a", 0, 0 },     { "/v1/events?job=b&tenant=t2&after=2", 0, 2 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        reply = http_do(fixture, "GET", rows[i].path, NULL);
        check(json_array_size(reply_at(&reply, "events")) == rows[i].count, "%s: %s", rows[i].path, reply.body);
        check(strtoll(reply_text(&reply, "last"), NULL, 10) == rows[i].last, "%s: %s", rows[i].path, reply.body);
        reply_release(&reply);
    }
}

/* S2-011 S2-027 S2-028 S2-029 S2-030 S2-031 S2-032 S2-033 S2-034 S2-035 S2-036 S2-037 */
/* Filters choose among all events: `limit` is how many are found, not how many are looked at. */
static void filters_look_further_than_a_page(void **state)
{
    enum { OTHERS = 7000 };
    struct api_fixture *fixture = *state;
    put_job(fixture, "yard", "t1", "first", "1");
    struct buffer lines;
    buffer_init(&lines, 1 << 20);
    for (int i = 0; i < OTHERS; i++)
        buffer_printf(&lines, "{\"destination\":\"yard\",\"tenant\":\"t2\",\"payload\":1}\n");
    struct request batch = { "POST", "/v1/jobs/batch", buffer_slice(&lines).data, buffer_slice(&lines).len,
                             "application/x-ndjson", NULL };
    struct reply reply = http_ask(fixture, &batch);
    check(reply.status == 200 && reply_int(&reply, "accepted") == OTHERS, "%s", reply.body);
    reply_release(&reply);
    buffer_release(&lines);
    put_job(fixture, "yard", "t1", "last", "1");
    static const struct {
        const char *path;
        size_t count;
        const char *job, *next; /* the first one's; where it goes on, "": it does not */
    } rows[] = {
        { "/v1/events?tenant=t1&limit=1", 1, "first", "1" },
        { "/v1/events?tenant=t1&limit=2", 1, "first", "5000" }, /* so many are looked at for one answer */
        { "/v1/events?tenant=t1&limit=2&cursor=5000", 1, "last", "" },
        { "/v1/events?tenant=t1&limit=1&after=2002", 1, "last", "7002" },
        { "/v1/events?tenant=t1&type=cancelled&after=2001", 0, "", "7001" },
        { "/v1/events?tenant=t1&after=7002", 0, "", "" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        reply = http_do(fixture, "GET", rows[i].path, NULL);
        check(json_array_size(reply_at(&reply, "events")) == rows[i].count, "%s: %s", rows[i].path, reply.body);
        check(strcmp(reply_text(&reply, "events.0.job"), rows[i].job) == 0, "%s: %s", rows[i].path, reply.body);
        check(strcmp(reply_text(&reply, "next"), rows[i].next) == 0, "%s: %s", rows[i].path, reply.body);
        reply_release(&reply);
    }
}

static void dead_letters_are_exported(void **state)
{
    struct api_fixture *fixture = *state;
    char id[16];
    for (int i = 0; i < 40; i++) { /* more than one piece */
        snprintf(id, sizeof id, "d%d", i);
        put_job(fixture, "web", "acme", id, i == 39 ? "bad\\n" : "bad");
    }
    await_number(fixture, "/v1/destinations/web", "dead", 40);
    struct reply reply = http_do(fixture, "GET", "/v1/dead/export", NULL);
    assert_int_equal(reply.status, 200);
    assert_non_null(strcasestr(reply.headers, "application/x-ndjson"));
    size_t lines = 0;
    char *rest = reply.body;
    for (char *line; (line = strsep(&rest, "\n")) && *line; lines++) {
        json_t *entry = json_loads(line, 0, NULL);
        check(entry, "%s", line);
        snprintf(id, sizeof id, "d%zu", 39 - lines);
        assert_string_equal(json_string_value(json_object_get(entry, "jobId")), id);
        assert_string_equal(json_string_value(json_object_get(entry, "outboxId")), id);
        assert_string_equal(json_string_value(json_object_get(entry, "companyId")), "acme");
        assert_string_equal(json_string_value(json_object_get(entry, "originalData")), lines == 0 ? "bad\n" : "bad");
        assert_string_equal(json_string_value(json_object_get(entry, "lastFailureReason")), "HTTP 400: Bad Request");
        assert_string_equal(json_string_value(json_object_get(entry, "lastFailureCode")), "400");
        assert_int_equal(json_integer_value(json_object_get(entry, "failedAttempts")), 1);
        assert_true(json_integer_value(json_object_get(entry, "ttl")) > 0);
        assert_true(json_is_string(json_object_get(entry, "lastFailureTimestamp")));
        assert_true(json_is_string(json_object_get(entry, "enqueuedAt")) &&
                    json_is_string(json_object_get(entry, "movedToDLQAt")));
        json_decref(entry);
    }
    assert_int_equal(lines, 40);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/dead/export?tenant=other", NULL);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.len, 0);
    reply_release(&reply);
    static const char request[] = "GET /v1/dead/export HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int fd = raw_connect(fixture); /* one that goes in the middle */
    raw_send(fd, request, sizeof request - 1);
    char *some = raw_read(fd, "200 OK");
    check(strncmp(some, "HTTP/1.1 200 OK", 15) == 0, "%s", some);
    free(some);
    close(fd);
}

/* --- health ---------------------------------------------------------------------------------------- */

static int status_of(struct api_fixture *fixture, const char *path)
{
    struct reply reply = http_do(fixture, "GET", path, NULL);
    int status = reply.status;
    reply_release(&reply);
    return status;
}

static void health_follows_progress(void **state)
{
    (void)state;
    const struct api_fixture_settings settings = { .engine_held = true };
    struct api_fixture *fixture = api_fixture_new(&settings);
    struct reply reply = http_do(fixture, "GET", "/readyz", NULL);
    assert_int_equal(reply.status, 503);
    assert_string_equal(reply_text(&reply, "type"), "starting");
    reply_release(&reply);
    assert_int_equal(status_of(fixture, "/livez"), 200);
    api_fixture_start_engine(fixture);
    await_status(fixture, "/readyz", 200);
    assert_int_equal(status_of(fixture, "/livez"), 200);
    api_fixture_stall(fixture, true);
    api_fixture_skip(fixture, 5 * MINUTE_MS);
    reply = http_do(fixture, "GET", "/livez", NULL);
    assert_int_equal(reply.status, 503);
    assert_string_equal(reply_text(&reply, "type"), "engine_stuck");
    reply_release(&reply);
    int alive = api_fixture_alive(fixture);
    usleep(2200 * 1000); /* twice it would have been said */
    check(api_fixture_alive(fixture) == alive, "a watchdog was fed although the engine is stuck");
    api_fixture_stall(fixture, false);
    await_status(fixture, "/livez", 200);
    for (int i = 0; i < 600 && api_fixture_alive(fixture) == alive; i++)
        usleep(100 * 1000);
    check(api_fixture_alive(fixture) > alive, "all is well, and nobody is told");
    api_stop_accepting(api_fixture_api(fixture));
    await_status(fixture, "/readyz", 503);
    reply = http_do(fixture, "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1}");
    assert_int_equal(reply.status, 503);
    assert_string_equal(reply_text(&reply, "type"), "stopping");
    reply_release(&reply);
    assert_int_equal(status_of(fixture, "/v1/stats"), 200);
    api_fixture_free(fixture);
}

/* --- who may ------------------------------------------------------------------------------------------------- */

static void hex_of(const char *secret, char text[65])
{
    unsigned char hash[32];
    assert_int_equal(EVP_Digest(secret, strlen(secret), hash, NULL, EVP_sha256(), NULL), 1);
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
}

static char *tokens_text(void)
{
    static const struct { const char *secret, *rest;
    } tokens[] = {
        { "in", "scopes: [enqueue]" },
        { "look", "scopes: [read]" },
        { "act", "scopes: [operate]" },
        { "work", "scopes: [work]" },
        { "calm", "scopes: [enqueue, operate], priority_max: high" },
        { "all", "scopes: [admin]" },
        { "acme", "scopes: [enqueue, read, operate], tenant: acme" },
    };
    struct buffer text;
    buffer_init(&text, 1 << 16);
    buffer_append_text(&text, "tokens:\n");
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        char hash[65];
        hex_of(tokens[i].secret, hash);
        buffer_printf(&text, "  - { name: %s, sha256: %s, %s }\n", tokens[i].secret, hash, tokens[i].rest);
    }
    return buffer_take(&text);
}

static void tokens_open_what_they_say(void **state)
{
    (void)state;
    char *text = tokens_text();
    const struct api_fixture_settings settings = { .tokens = text };
    struct api_fixture *fixture = api_fixture_new(&settings);
    static const char job[] = "{\"destination\":\"yard\",\"id\":\"a\",\"payload\":1}";
    static const char job_other[] = "{\"destination\":\"yard\",\"tenant\":\"evil\",\"payload\":1}";
    static const struct { const char *token, *method, *path, *body; int status; const char *type; } rows[] = {
        { NULL, "GET", "/v1/jobs", NULL, 401, "unauthorized" },
        { "wrong", "GET", "/v1/jobs", NULL, 401, "unauthorized" },
        { "", "GET", "/v1/jobs", NULL, 401, "unauthorized" },
        { NULL, "GET", "/livez", NULL, 200, NULL },
        { NULL, "GET", "/openapi.json", NULL, 200, NULL },
        { NULL, "GET", "/", NULL, 200, NULL },
        { "in", "POST", "/v1/jobs", job, 201, NULL },
        { "in", "GET", "/v1/jobs", NULL, 403, "forbidden_scope" },
        { "in", "POST", "/v1/jobs/a/cancel", NULL, 403, "forbidden_scope" },
        { "look", "GET", "/v1/jobs/a", NULL, 200, NULL },
        { "look", "POST", "/v1/jobs", job, 403, "forbidden_scope" },
        { "look", "POST", "/v1/leases", "{\"destination\":\"yard\"}", 403, "forbidden_scope" },
        { "in", "POST", "/v1/leases/extend", "{\"lease\":\"1-1-0\"}", 403, "forbidden_scope" },
        { "acme", "POST", "/v1/leases", "{\"destination\":\"yard\"}", 403, "forbidden_tenant" },
        { "acme", "POST", "/v1/leases/ack", "{\"lease\":\"1-1-0\"}", 403, "forbidden_tenant" },
        { "acme", "POST", "/v1/leases/nack", "{\"lease\":\"1-1-0\",\"error\":\"x\"}", 403, "forbidden_tenant" },
        { "acme", "POST", "/v1/leases/extend", "{\"lease\":\"1-1-0\"}", 403, "forbidden_tenant" },
        { "work", "POST", "/v1/leases", "{\"destination\":\"mail\"}", 200, NULL },
        { "work", "POST", "/v1/leases/extend", "{\"lease\":\"fff-1-0\"}", 409, "lease_lost" },
        { "work", "GET", "/v1/jobs", NULL, 403, "forbidden_scope" },
        { "work", "POST", "/v1/jobs", job, 403, "forbidden_scope" },
        { "work", "POST", "/v1/jobs/a/cancel", NULL, 403, "forbidden_scope" },
        { "calm", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"priority\":\"critical\"}", 403, "forbidden_priority" },
        { "calm", "PATCH", "/v1/jobs/a", "{\"priority\":1}", 403, "forbidden_priority" },
        { "calm", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"priority\":\"high\"}", 201, NULL },
        { "look", "POST", "/v1/destinations/yard/pause", NULL, 403, "forbidden_scope" },
        { "act", "GET", "/v1/jobs/a", NULL, 200, NULL },
        { "act", "POST", "/v1/jobs", job, 403, "forbidden_scope" },
        { "act", "PATCH", "/v1/jobs/a", "{\"priority\":1}", 200, NULL },
        { "all", "POST", "/v1/jobs", job, 200, NULL },
        { "all", "POST", "/v1/destinations/yard/pause", NULL, 200, NULL },
        { "all", "POST", "/v1/destinations/yard/resume", NULL, 200, NULL },
        { "acme", "POST", "/v1/jobs", job, 201, NULL },
        { "acme", "POST", "/v1/jobs", job_other, 403, "forbidden_tenant" },
        { "acme", "GET", "/v1/jobs/a", NULL, 200, NULL },
        { "acme", "GET", "/v1/jobs/a?tenant=acme", NULL, 200, NULL },
        { "acme", "GET", "/v1/jobs/a?tenant=evil", NULL, 403, "forbidden_tenant" },
        { "acme", "GET", "/v1/jobs?tenant=evil", NULL, 403, "forbidden_tenant" },
        { "acme", "GET", "/v1/events?tenant=evil", NULL, 403, "forbidden_tenant" },
        { "acme", "POST", "/v1/destinations/yard/pause", NULL, 403, "forbidden_tenant" },
        { "acme", "POST", "/v1/leases", "{\"destination\":\"yard\"}", 403, "forbidden_tenant" },
        { "acme", "POST", "/v1/leases/ack", "{\"leases\":[\"1-1-0\"]}", 403, "forbidden_tenant" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct request request = {
            .method = rows[i].method, .path = rows[i].path, .body = rows[i].body, .token = rows[i].token
        };
        struct reply reply = http_ask(fixture, &request);
        check(reply.status == rows[i].status, "%s %s %s: %d %s", rows[i].token, rows[i].method, rows[i].path, reply.status,
              reply.body);
        check(!rows[i].type || strcmp(reply_text(&reply, "type"), rows[i].type) == 0, "%s %s: %s", rows[i].token,
              rows[i].path, reply.body);
        check(reply.status != 401 || strcasestr(reply.headers, "WWW-Authenticate: Bearer"), "%s", reply.headers);
        reply_release(&reply);
    }
    static const struct { const char *token, *method, *path, *detail; } refusals[] = {
        { NULL, "GET", "/v1/jobs", "send a token: Authorization: Bearer TOKEN" },
        { "wrong", "GET", "/v1/jobs", "the daemon's tokens file has no such token" },
        { "in", "GET", "/v1/jobs", "does not have the scope read, which" },
        { "look", "POST", "/v1/jobs", "does not have the scope enqueue, which" },
        { "look", "POST", "/v1/jobs/a/cancel", "does not have the scope operate, which" },
    };
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        const struct request request = { .method = refusals[i].method, .path = refusals[i].path, .token = refusals[i].token };
        struct reply reply = http_ask(fixture, &request);
        check(strstr(reply_text(&reply, "detail"), refusals[i].detail), "%s: %s", refusals[i].detail, reply.body);
        reply_release(&reply);
    }
    /* A confined token sees its own and nothing else, anywhere. */
    static const char *const paths[] = { "/v1/jobs", "/v1/tenants", "/v1/events" };
    static const char *const lists[] = { "jobs", "tenants", "events" };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        const struct request request = { .method = "GET", .path = paths[i], .token = "acme" };
        struct reply reply = http_ask(fixture, &request);
        json_t *list = reply_at(&reply, lists[i]);
        check(json_array_size(list) == 1, "%s: %s", paths[i], reply.body);
        check(strcmp(json_string_value(json_object_get(json_array_get(list, 0), "tenant")), "acme") == 0, "%s: %s", paths[i],
              reply.body);
        reply_release(&reply);
    }
    const struct request stats = { .method = "GET", .path = "/v1/stats", .token = "acme" };
    struct reply reply = http_ask(fixture, &stats);
    assert_int_equal(reply_int(&reply, "totals.pending"), 1);
    assert_null(reply_at(&reply, "engine"));
    reply_release(&reply);
    api_fixture_free(fixture);
    free(text);
}

static void pages_of_other_hosts_may_not_call(void **state)
{
    const struct api_fixture_settings settings = { .config = "listen: 127.0.0.1:0\nstore: 'memory:'\n"
                                                             "hosts: [insist.example]\n" };
    struct api_fixture *fixture = api_fixture_new(&settings);
    (void)state;
    static const struct { const char *headers; int status;
    } rows[] = {
        { "Host: 127.0.0.1:7878\r\n", 200 },
        { "Host: localhost\r\n", 200 },
        { "Host: [::1]:7878\r\n", 200 },
        { "Host: LOCALHOST.:1\r\n", 200 },
        { "Host: insist.example\r\n", 200 }, /* of `hosts` */
        { "Host: Insist.Example:80\r\n", 200 },
        { "Host: box\r\n", 421 },
        { "Host: a.localhost:1\r\n", 421 },
        { "Host: [evil.example]\r\n", 400 },
        { "Host: evil.example\r\n", 421 },
        { "Host: insist.example.evil\r\n", 421 },
        { "Host: evil.example:7878\r\nOrigin: http://evil.example:7878\r\n", 421 },
        { "Host: localhost:7878\r\nOrigin: http://localhost:7878\r\n", 200 },
        { "Host: localhost:7878\r\nOrigin: https://evil.example\r\n", 403 },
        { "Host: localhost:7878\r\nOrigin: null\r\n", 403 },
        { "Host: localhost\r\nSec-Fetch-Site: same-origin\r\n", 200 },
        { "Host: localhost\r\nSec-Fetch-Site: none\r\n", 200 },
        { "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 403 },
        { "Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", 403 },
        { "Host: localhost\r\nSec-Fetch-Site: same-site\r\n", 403 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char request[256], wanted[32];
        int len = snprintf(request, sizeof request, "GET /v1/jobs HTTP/1.1\r\n%sConnection: close\r\n\r\n", rows[i].headers);
        snprintf(wanted, sizeof wanted, "HTTP/1.1 %d ", rows[i].status);
        int fd = raw_connect(fixture);
        raw_send(fd, request, (size_t)len);
        char *answer = raw_read(fd, NULL);
        check(strncmp(answer, wanted, strlen(wanted)) == 0, "%s: %s", rows[i].headers, answer);
        free(answer);
        close(fd);
    }
    api_fixture_free(fixture);
}

static void beyond_loopback_tokens_are_needed(void **state)
{
    (void)state;
    struct config *config;
    struct buffer problems;
    struct store *store;
    struct api *api = NULL;
    struct error error;
    buffer_init(&problems, 1 << 16);
    const struct store_settings settings = { .sync_always = true };
    assert_int_equal(store_memory_open(SLICE(""), &settings, &store, &error), STATUS_OK);
    assert_int_equal(config_default(&config), STATUS_OK);
    config->listen = (struct listen_address){ .host = "0.0.0.0", .port = 0, .loopback = false };
    const struct api_settings api_settings = { .config = config, .store = store };
    assert_int_equal(api_new(&api_settings, &api, &error), STATUS_INVALID);
    assert_non_null(strstr(error.text, "auth.tokens_file"));
    assert_null(api);
    config->tokens_file = "/nonexistent/tokens.yaml";
    assert_int_equal(api_new(&api_settings, &api, &error), STATUS_IO);
    config_unref(config);
    store->ops->close(store);
}

/* --- what clients do --------------------------------------------------------------------------------------------- */

static void connections_are_used_again(void **state)
{
    struct api_fixture *fixture = *state;
    static const char two[] =
        "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n"
        "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 34\r\n\r\n{\"destination\":\"yard\",\"payload\":1}"
        "GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    int fd = raw_connect(fixture);
    raw_send(fd, two, sizeof two - 1);
    char *answers = raw_read(fd, NULL);
    const char *live = strstr(answers, "{\"status\":\"ok\"}");
    const char *jobs = strstr(answers, "{\"jobs\":[]");
    const char *created = strstr(answers, "\"created\":true");
    const char *stats = strstr(answers, "\"version\"");
    check(live && jobs && created && stats && live < jobs && jobs < created && created < stats, "%s", answers);
    free(answers);
    close(fd);
}

static void head_has_no_body(void **state)
{
    static const char *const paths[] = { "/livez", "/v1/jobs", "/v1/dead/export", "/openapi.json", "/v1/jobs/none" };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct reply reply = http_do(*state, "HEAD", paths[i], NULL);
        check(reply.status == (i == 4 ? 404 : 200) && reply.len == 0, "%s: %d %s", paths[i], reply.status, reply.body);
        reply_release(&reply);
    }
}

static void too_much_is_refused(void **state)
{
    struct api_fixture *fixture = *state;
    char *header = malloc(40000);
    int head = snprintf(header, 100, "GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nX-Long: ");
    memset(header + head, 'x', 20000);
    strcpy(header + head + 20000, "\r\n\r\n");
    int fd = raw_connect(fixture);
    raw_send(fd, header, strlen(header));
    char *answer = raw_read(fd, NULL);
    check(strncmp(answer, "HTTP/1.1 4", 10) == 0 || !*answer, "%s", answer);
    free(answer);
    free(header);
    close(fd);

    static const char huge[] = "POST /v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n";
    fd = raw_connect(fixture);
    raw_send(fd, huge, sizeof huge - 1);
    shutdown(fd, SHUT_WR);
    answer = raw_read(fd, NULL);
    check(strncmp(answer, "HTTP/1.1 413", 12) == 0, "%s", answer);
    free(answer);
    close(fd);
    assert_int_equal(status_of(fixture, "/livez"), 200);
}

static void ambiguous_requests_are_refused(void **state)
{
    struct api_fixture *fixture = *state;
    static const char *const rows[] = {
        "POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\n{}",
        "POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int fd = raw_connect(fixture);
        raw_send(fd, rows[i], strlen(rows[i]));
        char *answer = raw_read(fd, NULL); /* until the other side closes: what follows is not read */
        check(strncmp(answer, "HTTP/1.1 400", 12) == 0, "%zu: %s", i, answer);
        free(answer);
        close(fd);
    }
}

static void other_methods_get_a_problem(void **state)
{
    struct api_fixture *fixture = *state;
    static const char *const methods[] = { "PUT", "DELETE", "OPTIONS" };
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        struct reply reply = http_do(fixture, methods[i], "/v1/jobs", NULL);
        check(reply.status == 405, "%s: %d", methods[i], reply.status);
        assert_string_equal(reply_text(&reply, "type"), "method_not_allowed");
        reply_release(&reply);
    }
}

/* A file of tokens that cannot be read leaves everything as it was, for everybody. */
static void a_bad_reload_is_refused_before_it_begins(void **state)
{
    struct api_fixture *fixture = *state;
    struct config *config;
    struct api_order *order = NULL;
    struct error error;
    assert_int_equal(config_default(&config), STATUS_OK);
    config->tokens_file = "/nonexistent/tokens.yaml";
    assert_int_equal(api_prepare(api_fixture_api(fixture), config, &order, &error), STATUS_IO);
    assert_null(order);
    config->tokens_file = NULL;
    assert_int_equal(api_prepare(api_fixture_api(fixture), config, &order, &error), STATUS_OK);
    api_forget(order);
    assert_int_equal(status_of(fixture, "/v1/destinations/web"), 200);
    assert_int_equal(api_prepare(api_fixture_api(fixture), config, &order, &error), STATUS_OK);
    api_reload(order);
    await_status(fixture, "/v1/destinations/web", 404);
    config_unref(config);
}

static void too_many_jobs_at_once_are_refused(void **state)
{
    enum { LINES = 100001 };
    struct api_fixture *fixture = *state;
    struct buffer lines;
    buffer_init(&lines, 1 << 20);
    for (int i = 0; i < LINES; i++)
        buffer_append_text(&lines, "1\n");
    const struct request request = { .method = "POST", .path = "/v1/jobs/batch", .body = buffer_slice(&lines).data,
                                     .body_len = lines.len, .content_type = "application/x-ndjson" };
    struct reply reply = http_ask(fixture, &request);
    assert_int_equal(reply.status, 413);
    assert_string_equal(reply_text(&reply, "type"), "too_many_jobs");
    reply_release(&reply);
    buffer_release(&lines);
}

static void pages_with_payloads_are_short(void **state)
{
    struct api_fixture *fixture = *state;
    char id[16];
    for (int i = 0; i < 60; i++) {
        snprintf(id, sizeof id, "p%d", i);
        put_job(fixture, "yard", "acme", id, "1");
    }
    struct reply plain = http_do(fixture, "GET", "/v1/jobs?tenant=acme&limit=1000", NULL);
    struct reply full = http_do(fixture, "GET", "/v1/jobs?tenant=acme&limit=1000&payload=true", NULL);
    assert_int_equal(json_array_size(reply_at(&plain, "jobs")), 60);
    assert_int_equal(json_array_size(reply_at(&full, "jobs")), 50);
    assert_false(json_is_null(reply_at(&full, "next")));
    reply_release(&plain);
    reply_release(&full);
}

static void odd_clients_do_no_harm(void **state)
{
    struct api_fixture *fixture = *state;
    static const struct { const char *name, *bytes;
    } rows[] = {
        { "nothing", "" },
        { "half a line", "GET /v1/jo" },
        { "half a body", "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"dest" },
        { "gone before the answer",
          "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 34\r\n\r\n{\"destination\":\"yard\",\"payload\":1}" },
        { "gone before a reading", "GET /v1/stats HTTP/1.1\r\nHost: localhost\r\n\r\n" },
        { "gone before an export", "GET /v1/dead/export HTTP/1.1\r\nHost: localhost\r\n\r\n" },
        { "not HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n" },
        { "negative length", "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n" },
        { "bad method", "BREW /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n" },
        { "odd path", "GET /v1/jobs/%zz%00%ff HTTP/1.1\r\nHost: localhost\r\n\r\n" },
        { "path upwards", "GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n" },
    };
    const struct linger at_once = { 1, 0 };
    for (int reset = 0; reset < 2; reset++)
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            int fd = raw_connect(fixture);
            raw_send(fd, rows[i].bytes, strlen(rows[i].bytes));
            if (reset)
                setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
            close(fd);
            check(status_of(fixture, "/livez") == 200, "%s", rows[i].name);
        }
    await_number(fixture, "/v1/stats", "calls", 1); /* this one: none of them is left behind */
}

/* An id that ends at a NUL would be another job's. */
static void control_characters_in_addresses_are_refused(void **state)
{
    static const char *const paths[] = { "/v1/jobs/a%00b", "/v1/jobs/a%0Ab", "/v1/jobs/a%7f", "/v1/destinations/web%00",
                                         "/v1/jobs?tenant=acme%00evil" };
    struct api_fixture *fixture = *state;
    put_job(fixture, "yard", "", "a", "1");
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct reply reply = http_do(fixture, "GET", paths[i], NULL);
        check(reply.status == 422 && strcmp(reply_text(&reply, "type"), "invalid_address") == 0, "%s: %s", paths[i], reply.body);
        reply_release(&reply);
    }
    struct reply reply = http_do(fixture, "POST", "/v1/jobs", " ");
    check(reply.status == 422 && strstr(reply.body, "the body is empty"), "%s", reply.body);
    reply_release(&reply);
}

/* Byte by byte. */
static void a_slow_client_is_served(void **state)
{
    struct api_fixture *fixture = *state;
    static const char request[] = "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
                                  "34\r\n\r\n{\"destination\":\"yard\",\"payload\":1}";
    int fd = raw_connect(fixture);
    for (size_t i = 0; i < sizeof request - 1; i++) {
        raw_send(fd, request + i, 1);
        if (i % 16 == 0)
            poll(NULL, 0, 1);
    }
    char *answer = raw_read(fd, NULL);
    check(strncmp(answer, "HTTP/1.1 201", 12) == 0, "%s", answer);
    free(answer);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_jobs_are_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(very_many_jobs_are_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(destinations_and_tenants_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(events_are_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(filters_look_further_than_a_page, setup, teardown),
        cmocka_unit_test_setup_teardown(dead_letters_are_exported, setup, teardown),
        cmocka_unit_test(health_follows_progress),
        cmocka_unit_test(tokens_open_what_they_say),
        cmocka_unit_test(pages_of_other_hosts_may_not_call),
        cmocka_unit_test(beyond_loopback_tokens_are_needed),
        cmocka_unit_test_setup_teardown(connections_are_used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(head_has_no_body, setup, teardown),
        cmocka_unit_test_setup_teardown(too_much_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(ambiguous_requests_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(other_methods_get_a_problem, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bad_reload_is_refused_before_it_begins, setup, teardown),
        cmocka_unit_test_setup_teardown(too_many_jobs_at_once_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(pages_with_payloads_are_short, setup, teardown),
        cmocka_unit_test_setup_teardown(odd_clients_do_no_harm, setup, teardown),
        cmocka_unit_test_setup_teardown(control_characters_in_addresses_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slow_client_is_served, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
