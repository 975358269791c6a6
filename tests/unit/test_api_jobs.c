#include "support/api_fixture.h"
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>

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

/* What one call answers: a status, a problem's type or "" and members that must be there. */
struct call_case {
    const char *name, *method, *path, *body;
    int status;
    const char *type;    /* of the problem; NULL: it is none */
    const char *contains; /* in the body; NULL: anything */
};

static void run_cases(struct api_fixture *fixture, const struct call_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct reply reply = http_do(fixture, cases[i].method, cases[i].path, cases[i].body);
        check(reply.status == cases[i].status, "%s: %d %s", cases[i].name, reply.status, reply.body);
        if (cases[i].type) {
            char *content_type = reply_header(&reply, "Content-Type");
            check(content_type && strcmp(content_type, "application/problem+json") == 0, "%s: %s", cases[i].name,
                  reply.headers);
            check(strcmp(reply_text(&reply, "type"), cases[i].type) == 0, "%s: %s", cases[i].name, reply.body);
            check(*reply_text(&reply, "detail") && *reply_text(&reply, "title"), "%s: %s", cases[i].name, reply.body);
            check(reply_int(&reply, "status") == cases[i].status, "%s: %s", cases[i].name, reply.body);
            free(content_type);
        }
        check(!cases[i].contains || strstr(reply.body, cases[i].contains), "%s: %s", cases[i].name, reply.body);
        reply_release(&reply);
    }
}

static const char long_id[] =
    "{\"destination\":\"yard\",\"payload\":1,\"id\":"
    "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "xxxxx"
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}";
static const struct call_case enqueue_cases[] = {
    { "plain", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"id\":\"a\",\"payload\":{\"n\":1}}", 201, NULL,
      "\"created\":true" },
    { "again", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"id\":\"a\",\"payload\":{\"n\":1}}", 200, NULL,
      "\"created\":false" },
    { "other body", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"id\":\"a\",\"payload\":{\"n\":2}}", 409,
      "id_conflict", NULL },
    { "other tenant", "POST", "/v1/jobs",
      "{\"destination\":\"yard\",\"id\":\"a\",\"tenant\":\"t\",\"payload\":{\"n\":2}}", 201, NULL, NULL },
    { "an id is made", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":\"x\"}", 201, NULL, "\"id\":\"0" },
    { "null is absent", "POST", "/v1/jobs",
      "{\"destination\":\"yard\",\"payload\":\"x\",\"id\":null,\"tenant\":null,\"headers\":null,\"run_at\":null,"
      "\"deadline\":null,"
      "\"metadata\":null,\"priority\":null,\"correlation_id\":null,\"content_type\":null,\"payload_base64\":null}",
      201, NULL, NULL },
    { "everything", "POST", "/v1/jobs",
      "{\"destination\":\"yard\",\"id\":\"all\",\"tenant\":\"t\",\"priority\":\"high\",\"payload\":\"x\",\"content_"
      "type\":\"a/b\","
      "\"headers\":{\"X-A\":\"b\"},\"run_at\":\"2030-01-01T00:00:00Z\",\"deadline\":\"2030-01-02T00:00:00+01:00\","
      "\"correlation_id\":\"c\",\"metadata\":{\"a\":[1]}}",
      201, NULL, "\"state\":\"pending\"" },
    { "priority by number", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"priority\":1}", 201, NULL,
      NULL },
    { "bytes", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload_base64\":\"AP/+\"}", 201, NULL, NULL },
    { "empty string", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":\"\"}", 201, NULL, NULL },
    { "no body", "POST", "/v1/jobs", "", 422, "invalid_json", NULL },
    { "not JSON", "POST", "/v1/jobs", "{destination:work}", 422, "invalid_json", "column" },
    { "an array", "POST", "/v1/jobs", "[]", 422, "invalid_json", NULL },
    { "twice the same member", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"payload\":2}", 422,
      "invalid_json", NULL },
    { "no destination", "POST", "/v1/jobs", "{\"payload\":1}", 422, "invalid_member", "destination" },
    { "a destination that is no text", "POST", "/v1/jobs", "{\"destination\":3,\"payload\":1}", 422, "invalid_member",
      "destination must be a string" },
    { "unknown destination", "POST", "/v1/jobs", "{\"destination\":\"yrad\",\"payload\":1}", 422, "unknown_destination",
      "\\\"yard\\\"" },
    { "unknown member", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"runat\":\"x\"}", 422,
      "unknown_member", "run_at" },
    { "far from known", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"zzzzzzz\":1}", 422,
      "unknown_member", "metadata" },
    { "no payload", "POST", "/v1/jobs", "{\"destination\":\"yard\"}", 422, "invalid_payload", NULL },
    { "both payloads", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"payload_base64\":\"\"}", 422,
      "invalid_payload", NULL },
    { "broken Base64", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload_base64\":\"A===\"}", 422,
      "invalid_payload", NULL },
    { "Base64 without padding", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload_base64\":\"AAA\"}", 422,
      "invalid_payload", NULL },
    { "id is a number", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"id\":7}", 422, "invalid_id",
      "string" },
    { "id is blank", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"id\":\" \"}", 422, "invalid_id",
      NULL },
    { "id is too long", "POST", "/v1/jobs", long_id, 422, "invalid_id", "255" },
    { "id has a line end", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"id\":\"a\\nb\"}", 422,
      "invalid_id", NULL },
    { "id has a NUL", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"id\":\"a\\u0000b\"}", 422,
      "invalid_id", NULL },
    { "id against the pattern", "POST", "/v1/jobs", "{\"destination\":\"strict\",\"payload\":1,\"id\":\"x\"}", 422,
      "invalid_id", "CLM-" },
    { "id fits the pattern", "POST", "/v1/jobs", "{\"destination\":\"strict\",\"payload\":1,\"id\":\"CLM-7\"}", 201,
      NULL, NULL },
    { "the pattern wants an id", "POST", "/v1/jobs", "{\"destination\":\"strict\",\"payload\":1}", 422, "invalid_id",
      "CLM-" },
    { "tenant is no string", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"tenant\":{}}", 422,
      "invalid_member", "tenant" },
    { "tenant has a control character", "POST", "/v1/jobs",
      "{\"destination\":\"yard\",\"payload\":1,\"tenant\":\"\\u0001\"}", 422, "invalid_member", NULL },
    { "priority", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"priority\":\"urgent\"}", 422,
      "invalid_priority", NULL },
    { "priority zero", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"priority\":0}", 422,
      "invalid_priority", NULL },
    { "time without zone", "POST", "/v1/jobs",
      "{\"destination\":\"yard\",\"payload\":1,\"run_at\":\"2030-01-01T00:00:00\"}", 422, "invalid_time", NULL },
    { "time as number", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"deadline\":5}", 422,
      "invalid_time", "deadline" },
    { "deadline in the past", "POST", "/v1/jobs",
      "{\"destination\":\"yard\",\"payload\":1,\"deadline\":\"2020-01-01T00:00:00Z\"}", 422, "deadline_passed", NULL },
    { "run_at beyond deadline", "POST", "/v1/jobs",
      "{\"destination\":\"yard\",\"payload\":1,\"run_at\":\"2031-01-01T00:00:00Z\",\"deadline\":\"2030-01-01T00:00:"
      "00Z\"}",
      422, "run_at_after_deadline", NULL },
    { "headers are a list", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"headers\":[]}", 422,
      "invalid_header", NULL },
    { "header with line end", "POST", "/v1/jobs",
      "{\"destination\":\"yard\",\"payload\":1,\"headers\":{\"A\":\"b\\r\\nC: d\"}}", 422, "invalid_header", NULL },
    { "header name", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"headers\":{\"A b\":\"c\"}}", 422,
      "invalid_header", NULL },
    { "header is a number", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"headers\":{\"A\":1}}", 422,
      "invalid_header", NULL },
    { "insist's own header", "POST", "/v1/jobs",
      "{\"destination\":\"yard\",\"payload\":1,\"headers\":{\"idempotency-key\":\"c\"}}", 422, "invalid_header", NULL },
    { "content type as header", "POST", "/v1/jobs",
      "{\"destination\":\"yard\",\"payload\":1,\"headers\":{\"Content-Type\":\"c\"}}", 422, "invalid_header",
      "content_type" },
    { "credentials", "POST", "/v1/jobs", "{\"destination\":\"web\",\"payload\":1,\"headers\":{\"authorization\":\"Bearer x\"}}", 422,
      "invalid_header", "allow_headers" },
    { "a cookie", "POST", "/v1/jobs", "{\"destination\":\"web\",\"payload\":1,\"headers\":{\"Cookie\":\"a=b\"}}", 422,
      "invalid_header", "allow_headers" },
    { "for a proxy", "POST", "/v1/jobs", "{\"destination\":\"web\",\"payload\":1,\"headers\":{\"Proxy-Authorization\":\"x\"}}", 422,
      "invalid_header", "allow_headers" },
    { "an upgrade", "POST", "/v1/jobs", "{\"destination\":\"web\",\"payload\":1,\"headers\":{\"HTTP2-Settings\":\"x\"}}", 422,
      "invalid_header", "allow_headers" },
    { "between two hops", "POST", "/v1/jobs", "{\"destination\":\"web\",\"payload\":1,\"headers\":{\"TE\":\"x\"}}", 422,
      "invalid_header", "set by insist" },
    { "metadata is a string", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"metadata\":\"x\"}", 422,
      "invalid_member", "metadata" },
    { "content type with line end", "POST", "/v1/jobs",
      "{\"destination\":\"yard\",\"payload\":1,\"content_type\":\"a\\nb\"}", 422, "invalid_member", NULL },
    { "escaped name of a member", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"pay\\u006coad\":{}}", 422,
      "invalid_member", "escapes" },
};

/* S4-015 */
static void a_job_is_taken_or_told_why_not(void **state)
{
    run_cases(*state, enqueue_cases, COUNT_OF(enqueue_cases));
}

static void a_payload_comes_back_as_it_was_written(void **state)
{
    static const struct {
        const char *name, *destination, *member, *expected, *base64, *content_type;
    } rows[] = {
        { "numbers stay", "yard", "\"payload\": {\"price\" : 19.90, \"big\":12345678901234567890 }",
          "{\"price\" : 19.90, \"big\":12345678901234567890 }", NULL, "application/json" },
        { "a string is sent as it is", "yard", "\"payload\":\"a\\\"\\u00e9\\n\"", "a\"\xc3\xa9\n", NULL,
          "text/plain; charset=utf-8" },
        { "the destination's type", "mail", "\"payload\":\"Subject: x\"", "Subject: x", NULL, "message/rfc822" },
        { "JSON is JSON everywhere", "mail", "\"payload\":{}", "{}", NULL, "application/json" },
        { "its own type", "mail", "\"payload\":\"<a/>\",\"content_type\":\"text/xml\"", "<a/>", NULL, "text/xml" },
        { "bytes", "yard", "\"payload_base64\":\"AP/+\"", NULL, "AP/+", "application/octet-stream" },
        { "bytes that are text", "yard", "\"payload_base64\":\"aGk=\"", "hi", NULL, "application/octet-stream" },
        { "a number", "yard", "\"payload\":1.50", "1.50", NULL, "application/json" },
        { "false", "yard", "\"payload\":false", "false", NULL, "application/json" },
        { "a NUL", "yard", "\"payload\":\"a\\u0000b\"", NULL, NULL, "text/plain; charset=utf-8" },
    };
    struct api_fixture *fixture = *state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char body[512], path[64];
        snprintf(body, sizeof body, "{\"destination\":\"%s\",\"id\":\"p%zu\",%s}", rows[i].destination, i, rows[i].member);
        snprintf(path, sizeof path, "/v1/jobs/p%zu?payload=true", i);
        struct reply reply = http_do(fixture, "POST", "/v1/jobs", body);
        check(reply.status == 201, "%s: %s", rows[i].name, reply.body);
        reply_release(&reply);
        reply = http_do(fixture, "GET", path, NULL);
        check(reply.status == 200, "%s: %s", rows[i].name, reply.body);
        if (rows[i].expected)
            check(strcmp(reply_text(&reply, "payload"), rows[i].expected) == 0, "%s: %s", rows[i].name, reply.body);
        if (rows[i].base64)
            check(strcmp(reply_text(&reply, "payload_base64"), rows[i].base64) == 0, "%s: %s", rows[i].name, reply.body);
        if (!rows[i].expected && !rows[i].base64)
            check(strstr(reply.body, "\"a\\u0000b\""), "%s: %s", rows[i].name, reply.body);
        check(strcmp(reply_text(&reply, "content_type"), rows[i].content_type) == 0, "%s: %s", rows[i].name, reply.body);
        reply_release(&reply);
        path[strcspn(path, "?")] = '\0';
        reply = http_do(fixture, "GET", path, NULL);
        check(!reply_at(&reply, "payload"), "%s: payload was not asked for", rows[i].name);
        reply_release(&reply);
    }
}

static void a_payload_has_a_limit(void **state)
{
    struct api_fixture *fixture = *state;
    static const struct {
        size_t len;
        int status;
    } rows[] = { { 64 * 1024, 201 }, { 64 * 1024 + 1, 413 }, { 800 * 1024, 413 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char *text = malloc(rows[i].len + 64);
        int head = snprintf(text, 64, "{\"destination\":\"yard\",\"payload\":\"");
        memset(text + head, 'x', rows[i].len);
        strcpy(text + head + rows[i].len, "\"}");
        struct reply reply = http_do(fixture, "POST", "/v1/jobs", text);
        check(reply.status == rows[i].status, "%zu bytes: %d", rows[i].len, reply.status);
        check(reply.status == 201 || strcmp(reply_text(&reply, "type"), "payload_too_large") == 0, "%zu bytes: %s",
              rows[i].len, reply.body);
        reply_release(&reply);
        free(text);
    }
}

/* S0-109 S1-009 S1-011 S1-076 S1-095 S3-017 S3-018 S3-019 S3-021 S3-022 S3-091 */
static void a_job_shows_all_of_itself(void **state)
{
    struct api_fixture *fixture = *state;
    struct reply reply = http_do(
        fixture, "POST", "/v1/jobs",
        "{\"destination\":\"web\",\"id\":\"x/y z\xc3\xa9\",\"tenant\":\"acme\",\"priority\":\"high\",\"payload\":\"fail\","
        "\"headers\":{\"X-A\":\"b\"},\"correlation_id\":\"c\",\"metadata\":{\"a\":1.10}}");
    check(reply.status == 201, "%s", reply.body);
    check(strcmp(reply_text(&reply, "id"), "x/y z\xc3\xa9") == 0, "%s", reply.body);
    reply_release(&reply);
    await_state(fixture, "/v1/jobs/x%2Fy%20z%C3%A9?tenant=acme", "waiting");
    reply = http_do(fixture, "GET", "/v1/jobs/x%2Fy%20z%C3%A9?tenant=acme", NULL);
    static const struct {
        const char *path, *text;
    } texts[] = {
        { "id", "x/y z\xc3\xa9" },
        { "tenant", "acme" },
        { "destination", "web" },
        { "state", "waiting" },
        { "status", "PENDING" },
        { "priority", "high" },
        { "last_code", "http:503" },
        { "last_error", "HTTP 503: Service Unavailable" },
        { "last_class", "transient" },
        { "correlation_id", "c" },
        { "headers.X-A", "b" },
        { "attempts.0.class", "transient" },
        { "attempts.0.code", "http:503" },
        { "attempts.0.error", "HTTP 503: Service Unavailable" },
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        check(strcmp(reply_text(&reply, texts[i].path), texts[i].text) == 0, "%s: %s", texts[i].path, reply.body);
    static const struct { const char *path; int64_t value; } numbers[] = {
        { "attempt_count", 1 }, { "attempts_total", 1 }, { "retry_count", 1 }, { "max_retries", 3 }, { "generation", 1 },
        { "attempts.0.attempt", 1 }, { "attempts.0.duration_ms", 5 },
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        check(reply_int(&reply, numbers[i].path) == numbers[i].value, "%s: %s", numbers[i].path, reply.body);
    static const char *const times[] = { "created_at",    "updated_at",        "run_at", "next_at", "deadline",
                                         "attempts.0.at", "attempts.0.next_at" };
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        instant at;
        check(instant_parse(slice_from(reply_text(&reply, times[i])), &at, NULL) == STATUS_OK, "%s: %s", times[i],
              reply.body);
    }
    check(strcmp(reply_text(&reply, "next_at"), reply_text(&reply, "attempts.0.next_at")) == 0, "%s", reply.body);
    check(strstr(reply.body, "\"metadata\":{\"a\":1.10}"), "%s", reply.body);
    check(!reply_at(&reply, "attempts.1"), "%s", reply.body);
    reply_release(&reply);
}

/* S4-043 S1-101 */
static void jobs_are_found_and_listed(void **state)
{
    struct api_fixture *fixture = *state;
    put_job(fixture, "yard", "", "a", "x");
    put_job(fixture, "yard", "t1", "b", "x");
    put_job(fixture, "web", "t1", "c", "bad");
    put_job(fixture, "web", "t2", "d", "fine");
    await_state(fixture, "/v1/jobs/c?tenant=t1", "dead");
    await_state(fixture, "/v1/jobs/d?tenant=t2", "completed");
    static const struct {
        const char *path, *ids;
    } rows[] = {
        { "/v1/jobs", "dcba" },
        { "/v1/jobs?state=pending", "ba" },
        { "/v1/jobs?state=dead", "c" },
        { "/v1/jobs?state=completed", "d" },
        { "/v1/jobs?destination=yard", "ba" },
        { "/v1/jobs?tenant=t1", "cb" },
        { "/v1/jobs?code=http:400", "c" },
        { "/v1/jobs?code=PERMANENT_ERROR", "c" },
        { "/v1/jobs?tenant=t1&destination=web&state=dead&code=http:400", "c" },
        { "/v1/jobs?state=cancelled", "" },
        { "/v1/jobs?destination=nowhere", "" },
        { "/v1/dead", "c" },
        { "/v1/dead?tenant=t2", "" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = http_do(fixture, "GET", rows[i].path, NULL);
        char ids[16] = "";
        json_t *list = reply_at(&reply, strncmp(rows[i].path, "/v1/dead", 8) == 0 ? "dead" : "jobs");
        check(json_is_array(list), "%s: %s", rows[i].path, reply.body);
        for (size_t k = 0; k < json_array_size(list) && k < 15; k++)
            strcat(ids, json_string_value(json_object_get(json_array_get(list, k), "id")));
        check(strcmp(ids, rows[i].ids) == 0, "%s: %s", rows[i].path, ids);
        check(json_is_null(reply_at(&reply, "next")), "%s: %s", rows[i].path, reply.body);
        reply_release(&reply);
    }
    static const struct call_case cases[] = {
        { "no such job", "GET", "/v1/jobs/nope", NULL, 404, "job_not_found", "name its tenant" },
        { "not without its tenant", "GET", "/v1/jobs/b", NULL, 404, "job_not_found", NULL },
        { "not of another tenant", "GET", "/v1/jobs/b?tenant=t2", NULL, 404, "job_not_found", "t2" },
        { "state", "GET", "/v1/jobs?state=lost", NULL, 422, "invalid_state", NULL },
        { "limit", "GET", "/v1/jobs?limit=0", NULL, 422, "invalid_limit", NULL },
        { "limit too large", "GET", "/v1/jobs?limit=1001", NULL, 422, "invalid_limit", NULL },
        { "cursor", "GET", "/v1/jobs?cursor=x", NULL, 422, "invalid_cursor", NULL },
        { "no such path", "GET", "/v2/jobs", NULL, 404, "not_found", NULL },
        { "deeper path", "GET", "/v1/jobs/b/c/d", NULL, 404, "not_found", NULL },
        { "other method", "POST", "/v1/jobs/b", "{}", 405, "method_not_allowed", NULL },
        { "broken query", "GET", "/v1/jobs?a", NULL, 400, "bad_query", NULL },
        { "a dead job's word", "GET", "/v1/jobs/c?tenant=t1", NULL, 200, NULL, "\"status\":\"FAILED\"" },
    };
    run_cases(fixture, cases, COUNT_OF(cases));
}

static void pages_follow_each_other(void **state)
{
    struct api_fixture *fixture = *state;
    char seen[26] = "", path[64] = "/v1/jobs?limit=3";
    for (char id = 'a'; id < 'k'; id++)
        put_job(fixture, "yard", "", (char[]){ id, '\0' }, "x");
    for (int page = 0; page < 5 && *path; page++) {
        struct reply reply = http_do(fixture, "GET", path, NULL);
        json_t *list = reply_at(&reply, "jobs");
        assert_true(json_array_size(list) <= 3);
        for (size_t k = 0; k < json_array_size(list); k++)
            strcat(seen, json_string_value(json_object_get(json_array_get(list, k), "id")));
        const char *next = json_string_value(reply_at(&reply, "next"));
        snprintf(path, sizeof path, "%s%s", next ? "/v1/jobs?limit=3&cursor=" : "", next ? next : "");
        reply_release(&reply);
    }
    assert_string_equal(seen, "jihgfedcba");
    assert_string_equal(path, "");
}

/* S1-066 S1-073 S3-007 S3-088 S2-043 S4-042 */
static void one_job_is_acted_upon(void **state)
{
    struct api_fixture *fixture = *state;
    put_job(fixture, "web", "", "dead", "bad");
    put_job(fixture, "web", "", "dead2", "bad");
    put_job(fixture, "web", "", "wait", "fail");
    put_job(fixture, "web", "", "wait2", "fail");
    put_job(fixture, "web", "", "done", "fine");
    put_job(fixture, "yard", "t", "pend", "x");
    await_state(fixture, "/v1/jobs/dead", "dead");
    await_state(fixture, "/v1/jobs/dead2", "dead");
    await_state(fixture, "/v1/jobs/wait", "waiting");
    await_state(fixture, "/v1/jobs/wait2", "waiting");
    await_state(fixture, "/v1/jobs/done", "completed");
    static const struct call_case cases[] = {
        { "priority", "PATCH", "/v1/jobs/pend?tenant=t", "{\"priority\":\"critical\"}", 200, NULL,
          "\"priority\":\"critical\"" },
        { "priority by number", "PATCH", "/v1/jobs/pend?tenant=t", "{\"priority\":2}", 200, NULL, "\"priority\":\"high\"" },
        { "no priority", "PATCH", "/v1/jobs/pend?tenant=t", "{}", 422, "invalid_priority", NULL },
        { "unknown priority", "PATCH", "/v1/jobs/pend?tenant=t", "{\"priority\":\"low\"}", 422, "invalid_priority", NULL },
        { "unknown member", "PATCH", "/v1/jobs/pend?tenant=t", "{\"prority\":\"high\"}", 422, "unknown_member", "priority" },
        { "priority of nobody", "PATCH", "/v1/jobs/nope", "{\"priority\":1}", 404, "job_not_found", NULL },
        { "priority of a dead one", "PATCH", "/v1/jobs/dead", "{\"priority\":1}", 409, "state_forbids",
          "the job is dead; only pending, waiting and running jobs" },
        { "retry of a pending one", "POST", "/v1/jobs/pend/retry?tenant=t", NULL, 409, "state_forbids", "pending" },
        { "retry of a completed one", "POST", "/v1/jobs/done/retry", "", 409, "state_forbids", "completed" },
        { "retry with a bad body", "POST", "/v1/jobs/dead/retry", "{\"payload\":1,\"payload_base64\":\"\"}", 422,
          "invalid_payload", NULL },
        { "retry a dead one, corrected", "POST", "/v1/jobs/dead/retry", "{\"payload\":\"fine\"}", 200, NULL,
          "\"generation\":2" },
        { "retry a dead one as it is", "POST", "/v1/jobs/dead2/retry", NULL, 200, NULL, "\"generation\":2" },
        { "retry a waiting one, corrected", "POST", "/v1/jobs/wait/retry", "{\"payload\":\"fine\"}", 200, NULL, NULL },
        { "cancel a waiting one", "POST", "/v1/jobs/wait2/cancel", NULL, 200, NULL, "\"state\":\"cancelled\"" },
        { "cancel again", "POST", "/v1/jobs/wait2/cancel", NULL, 409, "state_forbids", "cancelled" },
        { "resend of a cancelled one", "POST", "/v1/jobs/wait2/resend", NULL, 409, "state_forbids", "add it with another id" },
        { "retry of a cancelled one", "POST", "/v1/jobs/wait2/retry", NULL, 409, "state_forbids", "add it with another id" },
        { "cancel a completed one", "POST", "/v1/jobs/done/cancel", NULL, 409, "state_forbids", "completed" },
        { "cancel a pending one", "POST", "/v1/jobs/pend/cancel?tenant=t", NULL, 200, NULL, "\"status\":\"CANCELLED\"" },
        { "cancel nobody", "POST", "/v1/jobs/nope/cancel", NULL, 404, "job_not_found", NULL },
    };
    run_cases(fixture, cases, COUNT_OF(cases));
    await_state(fixture, "/v1/jobs/dead", "completed");
    await_state(fixture, "/v1/jobs/dead2", "dead");
    await_state(fixture, "/v1/jobs/wait", "completed");
    struct reply reply = http_do(fixture, "GET", "/v1/jobs/dead?payload=true", NULL);
    assert_string_equal(reply_text(&reply, "payload"), "fine");
    assert_int_equal(json_array_size(reply_at(&reply, "attempts")), 2);
    assert_string_equal(reply_text(&reply, "attempts.0.class"), "permanent");
    assert_string_equal(reply_text(&reply, "attempts.1.class"), "delivered");
    assert_int_equal(reply_int(&reply, "attempts.0.generation"), 1);
    assert_int_equal(reply_int(&reply, "attempts.1.generation"), 2);
    assert_int_equal(reply_int(&reply, "attempts.1.attempt"), 1);
    reply_release(&reply);
}

static void why_says_what_is_the_matter(void **state)
{
    struct api_fixture *fixture = *state;
    struct reply reply =
        http_do(fixture, "POST", "/v1/jobs",
                "{\"destination\":\"yard\",\"id\":\"later\",\"payload\":1,\"run_at\":\"2035-01-01T00:00:00Z\"}");
    reply_release(&reply);
    put_job(fixture, "yard", "", "ready", "x");
    put_job(fixture, "web", "", "failed", "fail");
    put_job(fixture, "web", "", "dead", "bad");
    put_job(fixture, "web", "", "running", "hang");
    put_job(fixture, "web", "", "done", "fine");
    await_state(fixture, "/v1/jobs/failed", "waiting");
    await_state(fixture, "/v1/jobs/dead", "dead");
    await_state(fixture, "/v1/jobs/running", "running");
    await_state(fixture, "/v1/jobs/done", "completed");
    static const struct call_case cases[] = {
        { "later", "GET", "/v1/jobs/later/why", NULL, 200, NULL, "\"until\":\"2035-01-01T00:00:00.000Z\"" },
        { "ready", "GET", "/v1/jobs/ready/why", NULL, 200, NULL, "waits for its turn" },
        { "failed", "GET", "/v1/jobs/failed/why", NULL, 200, NULL, "attempt 1 failed: http:503, HTTP 503" },
        { "failed, next", "GET", "/v1/jobs/failed/why", NULL, 200, NULL, "1 of 3 retries spent" },
        { "dead", "GET", "/v1/jobs/dead/why", NULL, 200, NULL, "PERMANENT_ERROR: http:400" },
        { "running", "GET", "/v1/jobs/running/why", NULL, 200, NULL, "attempt 1 is under way" },
        { "done", "GET", "/v1/jobs/done/why", NULL, 200, NULL, "the destination has it" },
        { "nobody", "GET", "/v1/jobs/nope/why", NULL, 404, "job_not_found", NULL },
        { "pause", "POST", "/v1/destinations/yard/pause", "{\"reason\":\"moving house\"}", 200, NULL,
          "\"mode\":\"paused\"" },
        { "paused", "GET", "/v1/jobs/ready/why", NULL, 200, NULL, "\"held_by\":\"paused\"" },
        { "paused, why", "GET", "/v1/jobs/ready/why", NULL, 200, NULL, "moving house" },
        { "the job shows it", "GET", "/v1/jobs/ready", NULL, 200, NULL, "\"held_by\":\"paused\"" },
        { "the list shows it", "GET", "/v1/jobs?destination=yard", NULL, 200, NULL, "\"held_by\":\"paused\"" },
        { "resume", "POST", "/v1/destinations/yard/resume", NULL, 200, NULL, "\"mode\":\"normal\"" },
        { "ready again", "GET", "/v1/jobs/ready/why", NULL, 200, NULL, "waits for its turn" },
        { "enter contingency", "POST", "/v1/destinations/yard/contingency", "{\"enter\":true,\"reason\":\"they called\"}", 200, NULL,
          "\"mode\":\"contingency\",\"mode_cause\":\"operator\"" },
        { "contingency", "GET", "/v1/jobs/ready/why", NULL, 200, NULL, "\"held_by\":\"contingency\"" },
        { "contingency, why", "GET", "/v1/jobs/ready/why", NULL, 200, NULL, "is in contingency because an operator held it: they called" },
        { "contingency, next", "GET", "/v1/jobs/ready/why", NULL, 200, NULL, "insist dest contingency yard --leave" },
        { "enter, but what", "POST", "/v1/destinations/yard/contingency", "{\"reason\":\"x\"}", 422, "invalid_member", NULL },
        { "enter, but how", "POST", "/v1/destinations/yard/contingency", "{\"enter\":1}", 422, "invalid_member", NULL },
        { "enter, but where", "POST", "/v1/destinations/nope/contingency", "{\"enter\":true}", 404, "destination_not_found", NULL },
        { "leave", "POST", "/v1/destinations/yard/contingency", "{\"enter\":false}", 200, NULL, "\"mode\":\"recovering\"" },
    };
    run_cases(fixture, cases, COUNT_OF(cases));
}

/* The engine hears of a new tenant a moment after its first job is durable. */
static void await_tenant(struct api_fixture *fixture, const char *body)
{
    int status = 404;
    for (int i = 0; i < 1000 && status == 404; i++) {
        struct reply reply = http_do(fixture, "POST", "/v1/destinations/yard/resume", body);
        status = reply.status;
        reply_release(&reply);
    }
    assert_int_equal(status, 200);
}

static void a_tenant_is_held_for_itself(void **state)
{
    struct api_fixture *fixture = *state;
    put_job(fixture, "yard", "acme", "hers", "x");
    put_job(fixture, "yard", "", "nobodys", "x");
    await_tenant(fixture, "{\"tenant\":\"acme\"}");
    await_tenant(fixture, "{\"tenant\":\"\"}");
    static const struct call_case cases[] = {
        { "pause", "POST", "/v1/destinations/yard/pause", "{\"tenant\":\"acme\",\"reason\":\"unpaid\"}", 200, NULL,
          "\"tenants_paused\":1,\"paused\":[{\"tenant\":\"acme\",\"since\":" },
        { "the destination goes on", "GET", "/v1/destinations/yard", NULL, 200, NULL, "\"mode\":\"normal\"" },
        { "how many at once, in words", "GET", "/v1/destinations/web", NULL, 200, NULL,
          "\"concurrency_why\":\"4 of 4: all that is configured\"" },
        { "with the reason", "GET", "/v1/destinations/yard", NULL, 200, NULL, "\"reason\":\"unpaid\"" },
        { "the job shows it", "GET", "/v1/jobs/hers?tenant=acme", NULL, 200, NULL, "\"held_by\":\"tenant_paused\"" },
        { "the list shows it", "GET", "/v1/jobs?tenant=acme", NULL, 200, NULL, "\"held_by\":\"tenant_paused\"" },
        { "why", "GET", "/v1/jobs/hers/why?tenant=acme", NULL, 200, NULL, "tenant acme is paused at destination yard (unpaid)" },
        { "next", "GET", "/v1/jobs/hers/why?tenant=acme", NULL, 200, NULL, "insist dest resume yard --tenant 'acme'" },
        { "nobody knows when", "GET", "/v1/jobs/hers/why?tenant=acme", NULL, 200, NULL, "\"expected_at\":null" },
        { "others wait for their turn", "GET", "/v1/jobs/nobodys/why", NULL, 200, NULL, "waits for its turn" },
        { "and for a worker", "GET", "/v1/jobs/nobodys/why", NULL, 200, NULL, "a worker gets it when its turn comes" },
        { "pause all of it", "POST", "/v1/destinations/yard/pause", NULL, 200, NULL, "\"mode\":\"paused\"" },
        { "then that comes first", "GET", "/v1/jobs/hers/why?tenant=acme", NULL, 200, NULL, "\"held_by\":\"paused\"" },
        { "go on", "POST", "/v1/destinations/yard/resume", NULL, 200, NULL, "\"mode\":\"normal\"" },
        { "others are leased", "POST", "/v1/leases", "{\"destination\":\"yard\",\"max\":10}", 200, NULL, "\"id\":\"nobodys\"" },
        { "she is not", "POST", "/v1/leases", "{\"destination\":\"yard\",\"max\":10}", 200, NULL, "{\"leases\":[]}" },
        { "whose name is empty", "POST", "/v1/destinations/yard/pause", "{\"tenant\":\"\"}", 200, NULL, "\"tenants_paused\":2" },
        { "and back", "POST", "/v1/destinations/yard/resume", "{\"tenant\":\"\"}", 200, NULL, "\"tenants_paused\":1" },
        { "nobody", "POST", "/v1/destinations/yard/pause", "{\"tenant\":\"nope\"}", 404, "tenant_not_found", NULL },
        { "nobody", "POST", "/v1/destinations/yard/resume", "{\"tenant\":\"nope\"}", 404, "tenant_not_found", NULL },
        { "no text", "POST", "/v1/destinations/yard/pause", "{\"tenant\":1}", 422, "invalid_member", NULL },
        { "no reason to resume", "POST", "/v1/destinations/yard/resume", "{\"reason\":\"x\"}", 422, "unknown_member", NULL },
        { "resume", "POST", "/v1/destinations/yard/resume", "{\"tenant\":\"acme\"}", 200, NULL, "\"mode\":\"normal\"" },
        { "she waits for her turn", "GET", "/v1/jobs/hers/why?tenant=acme", NULL, 200, NULL, "waits for its turn" },
        { "and is leased", "POST", "/v1/leases", "{\"destination\":\"yard\"}", 200, NULL, "\"id\":\"hers\"" },
    };
    run_cases(fixture, cases, COUNT_OF(cases));
}

/* One tenant's part is used up: it alone is refused. */
static void a_tenant_has_its_part_of_the_queue(void **state)
{
    (void)state;
    const struct api_fixture_settings settings = { .pending_max = 6 };
    struct api_fixture *fixture = api_fixture_new(&settings);
    put_job(fixture, "yard", "quiet", "q", "x");
    for (char id[] = "a"; id[0] < 'd'; id[0]++)
        put_job(fixture, "yard", "loud", id, "x");
    struct reply reply = http_do(fixture, "POST", "/v1/jobs", "{\"destination\":\"mail\",\"tenant\":\"loud\",\"payload\":1}");
    char *retry_after = reply_header(&reply, "Retry-After");
    assert_int_equal(reply.status, 429);
    assert_string_equal(reply_text(&reply, "type"), "tenant_queue_full");
    assert_non_null(retry_after);
    free(retry_after);
    reply_release(&reply);
    put_job(fixture, "yard", "quiet", "r", "x");
    api_fixture_free(fixture);
}

static void a_full_queue_says_so(void **state)
{
    (void)state;
    const struct api_fixture_settings settings = { .pending_max = 2 };
    struct api_fixture *fixture = api_fixture_new(&settings);
    put_job(fixture, "yard", "", "a", "x");
    put_job(fixture, "yard", "", "b", "x");
    struct reply reply = http_do(fixture, "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1}");
    char *retry_after = reply_header(&reply, "Retry-After");
    assert_int_equal(reply.status, 429);
    assert_string_equal(reply_text(&reply, "type"), "queue_full");
    assert_non_null(retry_after);
    free(retry_after);
    reply_release(&reply);
    reply = http_do(fixture, "POST", "/v1/jobs/batch",
                    "[{\"destination\":\"yard\",\"payload\":1},{\"destination\":\"yard\",\"id\":\"a\",\"payload\":\"x\"}]");
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply_int(&reply, "duplicates"), 1);
    assert_string_equal(reply_text(&reply, "rejected.0.type"), "queue_full");
    reply_release(&reply);
    api_fixture_free(fixture);
}

/* A message that could never be sent is not taken, neither with a new job nor to correct one. */
static void a_message_is_looked_at_when_it_is_given(void **state)
{
    static const char config[] =
        "listen: 127.0.0.1:0\n"
        "store: 'memory:'\n"
        "destinations:\n"
        "  post: { transport: smtp, url: 'smtp://127.0.0.1:1', allow_private: true, smtp: { from: ops@example.org, starttls: none },\n"
        "          errors: { permanent: ['400'] } }\n";
    static const struct call_case cases[] = {
        { "a new one without a recipient", "POST", "/v1/jobs",
          "{\"destination\":\"post\",\"payload\":{\"text\":\"hello\"}}", 422, "invalid_message", "\"line\":1" },
        { "corrected, without a recipient", "POST", "/v1/jobs/m/retry", "{\n\"payload\":{\"text\":\"hello\"}}", 422,
          "invalid_message", "\"line\":2" },
        { "corrected in bytes, without a recipient", "POST", "/v1/jobs/m/retry", "{\"payload_base64\":\"eyJ0ZXh0IjoiaCJ9\"}",
          422, "invalid_message", "\"column\":2" },
        { "corrected by a message, one line of which is none", "POST", "/v1/jobs/m/retry", "{\"payload\":\"no header\"}",
          422, "invalid_message", NULL },
        { "it is as it was", "GET", "/v1/jobs/m?payload=true", NULL, 200, NULL, "bad: 1" },
        { "and still dead", "GET", "/v1/jobs/m", NULL, 200, NULL, "\"state\":\"dead\"" },
        { "corrected by a message, whose recipient the job's metadata name", "POST", "/v1/jobs/m/retry",
          "{\"payload\":\"Subject: x\\n\\nhello\"}", 200, NULL, "\"generation\":2" },
    };
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .config = config });
    (void)state;
    struct reply reply = http_do(fixture, "POST", "/v1/jobs",
                                 "{\"destination\":\"post\",\"id\":\"m\",\"payload\":\"bad: 1\\n\\nhello\","
                                 "\"metadata\":{\"from\":\"ops@example.org\",\"to\":[\"bob@example.net\"]}}");
    check(reply.status == 201, "%s", reply.body);
    reply_release(&reply);
    await_state(fixture, "/v1/jobs/m", "dead");
    run_cases(fixture, cases, COUNT_OF(cases));
    await_state(fixture, "/v1/jobs/m", "completed");
    api_fixture_free(fixture);
}

/* The newest event of that kind says so, and the payload is nowhere in it. */
static void check_event(struct api_fixture *fixture, const char *token, const char *query, const char *data)
{
    char path[128];
    snprintf(path, sizeof path, "/v1/events?%s", query);
    struct reply reply = http_ask(fixture, &(struct request){ .method = "GET", .path = path, .token = token });
    check(reply.status == 200 && strstr(reply.body, data), "%s: %s", query, reply.body);
    check(!strstr(reply.body, "\"fine\""), "%s: the payload: %s", query, reply.body);
    reply_release(&reply);
}

static void a_correction_is_in_the_trail(void **state)
{
    struct api_fixture *fixture = *state;
    put_job(fixture, "web", "", "j", "bad");
    put_job(fixture, "yard", "", "p", "x");
    await_state(fixture, "/v1/jobs/j", "dead");
    static const struct call_case cases[] = {
        { "as it is", "POST", "/v1/jobs/j/retry", NULL, 200, NULL, "\"generation\":2" },
        { "priority", "PATCH", "/v1/jobs/p", "{\"priority\":\"high\"}", 200, NULL, NULL },
    };
    run_cases(fixture, cases, COUNT_OF(cases));
    check_event(fixture, NULL, "job=j&type=redriven", "\"destination\":\"web\",\"data\":{\"by\":\"loopback\"},\"previous\"");
    check_event(fixture, NULL, "job=p&type=prioritized", "\"data\":{\"by\":\"loopback\",\"priority\":\"high\"}");
    await_state(fixture, "/v1/jobs/j", "dead");
    static const struct call_case corrected[] = {
        { "corrected", "POST", "/v1/jobs/j/retry", "{\"payload\":\"fine\"}", 200, NULL, "\"generation\":3" },
    };
    run_cases(fixture, corrected, COUNT_OF(corrected));
    check_event(fixture, NULL, "job=j&type=redriven",
                "\"data\":{\"by\":\"loopback\",\"payload_bytes\":4,"
                "\"payload_sha256\":\"d14a58bae804a2b80b5b76a010239c88ffca1fc7951a90f8e9131beda1e23c1b\"}");
}

static void who_acted_is_in_the_trail(void **state)
{
    (void)state;
    static const char tokens[] = "tokens:\n  - { name: ops, scopes: [admin],\n"
                                 "      sha256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b }\n";
    static const struct request acts[] = {
        { "POST", "/v1/jobs", "{\"destination\":\"yard\",\"id\":\"p\",\"payload\":\"x\"}", .token = "secret" },
        { "PATCH", "/v1/jobs/p", "{\"priority\":\"critical\"}", .token = "secret" },
        { "POST", "/v1/jobs/p/cancel", NULL, .token = "secret" },
    };
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .tokens = tokens });
    for (size_t i = 0; i < COUNT_OF(acts); i++) {
        struct reply reply = http_ask(fixture, &acts[i]);
        check(reply.status == 200 || reply.status == 201, "%s: %d %s", acts[i].path, reply.status, reply.body);
        reply_release(&reply);
    }
    check_event(fixture, "secret", "job=p&type=prioritized", "\"data\":{\"by\":\"ops\",\"priority\":\"critical\"}");
    check_event(fixture, "secret", "job=p&type=cancelled", "\"data\":{\"by\":\"ops\"}");
    api_fixture_free(fixture);
}

static void a_job_is_found_by_its_id_in_every_tenant(void **state)
{
    static const char *const tenants[] = { "t1", "t2", "t3" };
    struct api_fixture *fixture = *state;
    char path[64] = "/v1/jobs?id=same&limit=1";
    put_job(fixture, "yard", "t1", "other", "x");
    for (size_t i = 0; i < COUNT_OF(tenants); i++) {
        put_job(fixture, "yard", tenants[i], "same", "x");
        put_job(fixture, "strict", tenants[i], "CLM-1", "x");
    }
    char seen[16] = "";
    for (size_t i = 0; i < COUNT_OF(tenants); i++) {
        struct reply reply = http_do(fixture, "GET", path, NULL);
        check(json_array_size(reply_at(&reply, "jobs")) == 1, "%s: %s", path, reply.body);
        assert_null(strstr(seen, reply_text(&reply, "jobs.0.tenant")));
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s ", reply_text(&reply, "jobs.0.tenant"));
        assert_string_equal(reply_text(&reply, "jobs.0.id"), "same");
        if (i + 1 < COUNT_OF(tenants))
            snprintf(path, sizeof path, "/v1/jobs?id=same&limit=1&cursor=%s", reply_text(&reply, "next"));
        reply_release(&reply);
    }
    struct reply reply = http_do(fixture, "GET", "/v1/jobs?id=same", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "jobs")), 3);
    assert_true(json_is_null(json_object_get(reply.json, "next")));
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/jobs?id=same&tenant=t2", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "jobs")), 1);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/jobs?id=nobody", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "jobs")), 0);
    reply_release(&reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_is_taken_or_told_why_not, setup, teardown),
        cmocka_unit_test_setup_teardown(a_job_is_found_by_its_id_in_every_tenant, setup, teardown),
        cmocka_unit_test_setup_teardown(a_payload_comes_back_as_it_was_written, setup, teardown),
        cmocka_unit_test_setup_teardown(a_payload_has_a_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(a_job_shows_all_of_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(jobs_are_found_and_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(pages_follow_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(one_job_is_acted_upon, setup, teardown),
        cmocka_unit_test_setup_teardown(why_says_what_is_the_matter, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tenant_is_held_for_itself, setup, teardown),
        cmocka_unit_test(a_tenant_has_its_part_of_the_queue),
        cmocka_unit_test(a_full_queue_says_so),
        cmocka_unit_test(a_message_is_looked_at_when_it_is_given),
        cmocka_unit_test_setup_teardown(a_correction_is_in_the_trail, setup, teardown),
        cmocka_unit_test(who_acted_is_in_the_trail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
