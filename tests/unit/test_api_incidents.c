/*
 * Incidents over HTTP: lists and pages, one with its report, what was learned, and who may see what.
 */
#include "base/log.h"
#include "engine/incidents/incident_record.h"
#include "support/api_fixture.h"
#include "support/check.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const char config[] = "destinations:\n"
                             "  web: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true,\n"
                             "         contingency: { ramp: [5], stable: 1m, check: 5m } }\n"
                             "  other: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true,\n"
                             "           contingency: { ramp: [5], stable: 1m, check: 5m } }\n";

static int setup(void **state)
{
    *state = api_fixture_new(&(struct api_fixture_settings){ .config = config });
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
    struct reply reply = http_do(fixture, "POST", path, body);
    check(reply.status == 200, "%s: %d %s", path, reply.status, reply.body);
    reply_release(&reply);
}

/* Waits until the newest incident of the destination is in that state, and gives its id. */
static void await_incident(struct api_fixture *fixture, const char *destination, const char *state, char ret_id[INCIDENT_ID_BYTES])
{
    char path[128];
    snprintf(path, sizeof path, "/v1/incidents?limit=1&destination=%s", destination);
    await_text(fixture, path, "incidents.0.state", state);
    struct reply reply = http_do(fixture, "GET", path, NULL);
    snprintf(ret_id, INCIDENT_ID_BYTES, "%s", reply_text(&reply, "incidents.0.id"));
    reply_release(&reply);
}

static void restore(struct api_fixture *fixture, const char *destination, char ret_id[INCIDENT_ID_BYTES])
{
    hold(fixture, destination, "{\"enter\":false}");
    await_incident(fixture, destination, "recovering", ret_id);
    api_fixture_advance(fixture, 2 * MINUTE_MS);
    await_incident(fixture, destination, "restored", ret_id);
}

/* One that is over. */
static void have_incident(struct api_fixture *fixture, const char *destination, char ret_id[INCIDENT_ID_BYTES])
{
    hold(fixture, destination, "{\"enter\":true,\"reason\":\"a <b>drill</b>\"}");
    await_incident(fixture, destination, "contingency", ret_id);
    restore(fixture, destination, ret_id);
}

static struct reply get(struct api_fixture *fixture, const char *id, const char *rest)
{
    char path[256];
    snprintf(path, sizeof path, "/v1/incidents/%s%s", id, rest);
    return http_do(fixture, "GET", path, NULL);
}

static struct reply patch(struct api_fixture *fixture, const char *id, const char *body, const char *token)
{
    char path[256];
    snprintf(path, sizeof path, "/v1/incidents/%s", id);
    return http_ask(fixture, &(struct request){ .method = "PATCH", .path = path, .body = body, .token = token });
}

static void an_incident_is_listed_and_shown(void **state)
{
    struct api_fixture *fixture = *state;
    char id[INCIDENT_ID_BYTES];
    struct reply reply = http_do(fixture, "GET", "/v1/incidents", NULL);
    assert_int_equal(reply.status, 200);
    assert_int_equal(json_array_size(reply_at(&reply, "incidents")), 0);
    assert_true(json_is_null(reply_at(&reply, "next")));
    reply_release(&reply);

    put_job(fixture, "web", "t", "before", "good");
    await_state(fixture, "/v1/jobs/before?tenant=t", "completed");
    hold(fixture, "web", "{\"enter\":true,\"reason\":\"they called\"}");
    await_incident(fixture, "web", "contingency", id);
    put_job(fixture, "web", "t", "held-1", "good");
    put_job(fixture, "web", "t", "held-2", "good");
    reply = get(fixture, id, "");
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_text(&reply, "id"), id);
    assert_string_equal(reply_text(&reply, "destination"), "web");
    assert_string_equal(reply_text(&reply, "state"), "contingency");
    assert_string_equal(reply_text(&reply, "cause"), "operator");
    assert_string_equal(reply_text(&reply, "reason"), "they called");
    assert_int_equal(reply_int(&reply, "pending_first"), 0);
    assert_int_equal(reply_int(&reply, "pending"), 2); /* as it is now */
    assert_int_equal(reply_int(&reply, "processed"), 0);
    assert_null(reply_at(&reply, "recovery_ms"));
    assert_true(json_is_null(reply_at(&reply, "lessons_learned")));
    assert_non_null(strstr(reply_text(&reply, "summary"), "web has been in contingency since"));
    reply_release(&reply);

    hold(fixture, "web", "{\"enter\":false}");
    await_state(fixture, "/v1/jobs/held-1?tenant=t", "completed");
    await_state(fixture, "/v1/jobs/held-2?tenant=t", "completed");
    api_fixture_advance(fixture, 2 * MINUTE_MS);
    await_incident(fixture, "web", "restored", id);
    reply = get(fixture, id, "");
    assert_int_equal(reply_int(&reply, "processed"), 2);
    assert_int_equal(reply_int(&reply, "pending"), 0);
    assert_int_equal(reply_int(&reply, "held_max"), 2);
    assert_int_equal(reply_int(&reply, "recovery_ms"), reply_int(&reply, "lasted_ms"));
    assert_int_equal(reply_int(&reply, "curve.0.level"), 0);
    assert_string_equal(reply_text(&reply, "changes.0.mode"), "contingency");
    assert_string_equal(reply_text(&reply, "changes.2.mode"), "normal");
    reply_release(&reply);
}

static void lists_go_by_pages_and_by_destination(void **state)
{
    struct api_fixture *fixture = *state;
    char ids[4][INCIDENT_ID_BYTES];
    char path[256];
    for (int i = 0; i < 4; i++)
        have_incident(fixture, i % 2 == 0 ? "web" : "other", ids[i]);
    struct reply reply = http_do(fixture, "GET", "/v1/incidents?limit=3", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "incidents")), 3);
    assert_string_equal(reply_text(&reply, "incidents.0.id"), ids[3]);
    assert_string_equal(reply_text(&reply, "incidents.2.id"), ids[1]);
    assert_null(reply_at(&reply, "incidents.0.curve"));
    snprintf(path, sizeof path, "/v1/incidents?limit=3&cursor=%s", reply_text(&reply, "next"));
    reply_release(&reply);
    reply = http_do(fixture, "GET", path, NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "incidents")), 1);
    assert_string_equal(reply_text(&reply, "incidents.0.id"), ids[0]);
    assert_true(json_is_null(reply_at(&reply, "next")));
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/incidents?destination=web&limit=1", NULL);
    assert_string_equal(reply_text(&reply, "incidents.0.id"), ids[2]);
    snprintf(path, sizeof path, "/v1/incidents?destination=web&limit=1&cursor=%s", reply_text(&reply, "next"));
    reply_release(&reply);
    reply = http_do(fixture, "GET", path, NULL);
    assert_string_equal(reply_text(&reply, "incidents.0.id"), ids[0]);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/incidents?destination=none", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "incidents")), 0);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/incidents?limit=0", NULL);
    assert_int_equal(reply.status, 422);
    reply_release(&reply);
}

static void a_report_is_markdown(void **state)
{
    struct api_fixture *fixture = *state;
    char id[INCIDENT_ID_BYTES], path[256];
    have_incident(fixture, "web", id);
    struct reply reply = get(fixture, id, "/report");
    assert_int_equal(reply.status, 200);
    char *type = reply_header(&reply, "Content-Type");
    assert_string_equal(type, "text/markdown; charset=utf-8");
    free(type);
    assert_int_equal(strncmp(reply.body, "# Incident at web, ", 19), 0);
    assert_non_null(strstr(reply.body, "> a &lt;b&gt;drill&lt;/b&gt;\n"));
    assert_null(strstr(reply.body, "<b>"));
    snprintf(path, sizeof path, "GET /v1/incidents/%s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/markdown\r\nConnection: close\r\n\r\n", id);
    int fd = raw_connect(fixture);
    raw_send(fd, path, strlen(path));
    char *answer = raw_read(fd, NULL);
    assert_non_null(strstr(answer, "\r\n\r\n# Incident at web, "));
    free(answer);
    close(fd);
    reply_release(&reply);
    reply = get(fixture, "20250112T104000.000Z-web", "/report");
    assert_int_equal(reply.status, 404);
    assert_string_equal(reply_text(&reply, "type"), "incident_not_found");
    reply_release(&reply);
}

/* S3-096 */
static void lessons_are_written_down(void **state)
{
    struct api_fixture *fixture = *state;
    char id[INCIDENT_ID_BYTES];
    char *long_text = malloc(16 * 1024 + 64);
    hold(fixture, "web", "{\"enter\":true}");
    await_incident(fixture, "web", "contingency", id);
    struct reply reply = patch(fixture, id, "{\"lessons_learned\":\"call *earlier*\\n# and\\u00e9\"}", NULL);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_text(&reply, "lessons_learned"), "call *earlier*\n# and\xc3\xa9");
    reply_release(&reply);
    restore(fixture, "web", id); /* the engine goes on writing, and takes nothing away */
    reply = get(fixture, id, "");
    assert_string_equal(reply_text(&reply, "lessons_learned"), "call *earlier*\n# and\xc3\xa9");
    assert_true(strlen(reply_text(&reply, "lessons_at")) > 0);
    reply_release(&reply);
    reply = get(fixture, id, "/report");
    assert_non_null(strstr(reply.body, "> call \\*earlier\\*  \n> \\# and\xc3\xa9\n"));
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/events?limit=1000", NULL);
    assert_non_null(strstr(reply.body, "\"note\":\"incident_lessons\""));
    reply_release(&reply);
    reply = patch(fixture, id, "{\"lessons_learned\":\"\"}", NULL);
    assert_int_equal(reply.status, 200);
    assert_true(json_is_null(reply_at(&reply, "lessons_learned")));
    reply_release(&reply);

    snprintf(long_text, 64, "{\"lessons_learned\":\"");
    size_t start = strlen(long_text);
    memset(long_text + start, 'x', 16 * 1024);
    memcpy(long_text + start + 16 * 1024, "\"}", 3);
    reply = patch(fixture, id, long_text, NULL);
    assert_int_equal(reply.status, 200);
    assert_int_equal(strlen(reply_text(&reply, "lessons_learned")), 16 * 1024);
    reply_release(&reply);
    memcpy(long_text + start + 16 * 1024, "x\"}", 4);
    const struct { const char *id, *body; int status; const char *type; } refused[] = {
        { id, long_text, 422, "invalid_member" },
        { id, "{}", 422, "invalid_member" },
        { id, "{\"lessons_learned\":null}", 422, "invalid_member" },
        { id, "{\"lessons_learned\":7}", 422, "invalid_member" },
        { id, "{\"lessons_learned\":\"\\u0007\"}", 422, "invalid_member" },
        { id, "{\"lessons\":\"x\"}", 422, "unknown_member" },
        { id, "[", 422, "invalid_json" },
        { "none", "{\"lessons_learned\":\"x\"}", 404, "incident_not_found" },
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        reply = patch(fixture, refused[i].id, refused[i].body, NULL);
        check(reply.status == refused[i].status && strcmp(reply_text(&reply, "type"), refused[i].type) == 0, "%zu: %d %s", i,
              reply.status, reply.body);
        reply_release(&reply);
    }
    free(long_text);
}

/* The secrets are "operator", "looker" and "tenant". */
static const char tokens[] =
    "tokens:\n"
    "  - { name: ops-anna, sha256: 06e55b633481f7bb072957eabcf110c972e86691c3cfedabe088024bffe42f23, scopes: [operate, enqueue] }\n"
    "  - { name: looker, sha256: d133efd9800e396abbeb9de0cc7a6f873d58159121a0fc587f8a2ec1208ad50a, scopes: [read] }\n"
    "  - { name: acme, sha256: e9da86d351cf9a7642d8c50195c3f466220911a15c177809bd1161a51e8c5f24, scopes: [operate], tenant: acme }\n";

static int setup_tokens(void **state)
{
    *state = api_fixture_new(&(struct api_fixture_settings){ .config = config, .tokens = tokens });
    return 0;
}

static struct reply ask(struct api_fixture *fixture, const char *method, const char *path, const char *body, const char *token)
{
    return http_ask(fixture, &(struct request){ .method = method, .path = path, .body = body, .token = token });
}

static void who_may(void **state)
{
    struct api_fixture *fixture = *state;
    char id[INCIDENT_ID_BYTES] = "", path[256];
    struct reply reply =
        ask(fixture, "POST", "/v1/destinations/web/contingency", "{\"enter\":true,\"reason\":\"r\"}", "operator");
    assert_int_equal(reply.status, 200);
    reply_release(&reply);
    for (instant end = clock_now() + MINUTE_MS; !*id && clock_now() < end; poll(NULL, 0, 2)) {
        reply = ask(fixture, "GET", "/v1/incidents", NULL, "looker");
        snprintf(id, sizeof id, "%s", reply_text(&reply, "incidents.0.id"));
        reply_release(&reply);
    }
    snprintf(path, sizeof path, "/v1/incidents/%s", id);
    reply = ask(fixture, "PATCH", path, "{\"lessons_learned\":\"secret of all tenants\"}", "operator");
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_text(&reply, "lessons_by"), "ops-anna");
    reply_release(&reply);
    const struct { const char *method, *body, *token; int status; } cases[] = {
        { "GET", NULL, NULL, 401 },
        { "GET", NULL, "looker", 200 },
        { "PATCH", "{\"lessons_learned\":\"x\"}", "looker", 403 },
        { "PATCH", "{\"lessons_learned\":\"x\"}", "tenant", 403 },
        { "GET", NULL, "tenant", 200 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        reply = ask(fixture, cases[i].method, path, cases[i].body, cases[i].token);
        check(reply.status == cases[i].status, "%zu: %d %s", i, reply.status, reply.body);
        reply_release(&reply);
    }
    /* A tenant sees that and why its jobs wait, but nothing of the others'. */
    reply = ask(fixture, "GET", path, NULL, "tenant");
    assert_string_equal(reply_text(&reply, "state"), "contingency");
    static const char *const hidden[] = { "held", "held_max", "pending", "processed", "dead", "unspent", "signs", "lessons_learned" };
    for (size_t i = 0; i < COUNT_OF(hidden); i++)
        check(!reply_at(&reply, hidden[i]), "%s", hidden[i]);
    reply_release(&reply);
    snprintf(path, sizeof path, "/v1/incidents/%s/report", id);
    reply = ask(fixture, "GET", path, NULL, "tenant");
    assert_int_equal(reply.status, 200);
    assert_null(strstr(reply.body, "secret"));
    assert_null(strstr(reply.body, "Effect on jobs"));
    reply_release(&reply);
    reply = ask(fixture, "GET", "/v1/events", NULL, "operator");
    assert_non_null(strstr(reply.body, "\"by\":\"ops-anna\""));
    assert_null(strstr(reply.body, "secret of all"));
    reply_release(&reply);
}

/* All the tests here have a configuration that says nothing of where to listen. */
static void a_daemon_on_the_usual_port_is_in_nobodys_way(void **state)
{
    (void)state;
    const struct sockaddr_in usual = { .sin_family = AF_INET, .sin_port = htons(7878), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (const struct sockaddr *)&usual, sizeof usual) == 0) /* else there is one already */
        assert_int_equal(listen(fd, 1), 0);
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .config = config });
    assert_int_not_equal(api_fixture_port(fixture), 7878);
    api_fixture_free(fixture);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_incident_is_listed_and_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_go_by_pages_and_by_destination, setup, teardown),
        cmocka_unit_test_setup_teardown(a_report_is_markdown, setup, teardown),
        cmocka_unit_test_setup_teardown(lessons_are_written_down, setup, teardown),
        cmocka_unit_test_setup_teardown(who_may, setup_tokens, teardown),
        cmocka_unit_test(a_daemon_on_the_usual_port_is_in_nobodys_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
