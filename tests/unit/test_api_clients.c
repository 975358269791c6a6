/* Connections: what is read of them without a token, what is answered to what is no request, and their end. */
#include "support/api_fixture.h"
#include "support/check.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
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

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Writes a request and reads until the server closes or `until` is there. */
static void exchange(const struct api_fixture *fixture, const char *bytes, const char *until, const char *wanted,
                     const char *name)
{
    int fd = raw_connect(fixture);
    raw_send(fd, bytes, strlen(bytes));
    char *answer = raw_read(fd, until);
    check(strstr(answer, wanted), "%s: no %s in %s", name, wanted, answer);
    free(answer);
    close(fd);
}

/* --- how many ------------------------------------------------------------------------------------------------ */

static const char ask_live[] = "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/* Without descriptors nobody is let in for a moment, and then all are. */
static void accepting_goes_on_when_descriptors_are_back(void **state)
{
    struct api_fixture *fixture = *state;
    struct rlimit before, none;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)api_fixture_port(fixture)),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    await_status(fixture, "/livez", 200);
    await_number(fixture, "/v1/stats", "calls", 1);
    struct pollfd client = { .fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN };
    assert_true(client.fd >= 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    log_set_level(LOG_ERROR + 1);
    none = before;
    none.rlim_cur = 1; /* no number but 0 is low enough */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(connect(client.fd, (struct sockaddr *)&to, sizeof to), 0);
    raw_send(client.fd, ask_live, sizeof ask_live - 1);
    int answered = poll(&client, 1, 500); /* longer than one pause */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(answered, 0);
    char *answer = raw_read(client.fd, NULL);
    check(strncmp(answer, "HTTP/1.1 200", 12) == 0, "%s", answer);
    free(answer);
    close(client.fd);
}

/* --- who ----------------------------------------------------------------------------------------------------- */

static char *tokens_for(const char *tenant)
{
    unsigned char hash[32];
    struct buffer text;
    buffer_init(&text, 4096);
    assert_int_equal(EVP_Digest("secret", 6, hash, NULL, EVP_sha256(), NULL), 1);
    buffer_append_text(&text, "tokens:\n  - { name: one, sha256: ");
    for (int i = 0; i < 32; i++)
        buffer_printf(&text, "%02x", hash[i]);
    buffer_printf(&text, ", scopes: [enqueue, read]%s%s }\n", tenant ? ", tenant: " : "", tenant ? tenant : "");
    return buffer_take(&text);
}

static const struct {
    const char *name, *bytes, *until, *wanted;
} without_token[] = {
    { "a long body", "POST /v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n[", NULL, "\"unauthorized\"" },
    { "a wrong token", "POST /v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer nope\r\nContent-Length: 9000000\r\n\r\n[",
      NULL, "HTTP/1.1 401 " },
    { "not a bearer's", "POST /v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: secret\r\nContent-Length: 9000000\r\n\r\n[",
      NULL, "WWW-Authenticate: Bearer" },
    { "it asks before", "POST /v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\nExpect: 100-continue\r\n\r\n",
      NULL, "HTTP/1.1 401 " },
    { "with a token it goes on", "POST /v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: bearer secret\r\n"
      "Content-Length: 9000000\r\nExpect: 100-continue\r\n\r\n", "100 Continue", "HTTP/1.1 100 " },
    { "the second on a connection", "GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n"
      "POST /v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n[", NULL, "HTTP/1.1 401 " },
    { "a short body", "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", NULL,
      "\"unauthorized\"" },
};

static void long_bodies_need_a_token(void **state)
{
    char *text = tokens_for(NULL);
    const struct api_fixture_settings settings = { .tokens = text };
    struct api_fixture *fixture = api_fixture_new(&settings);
    (void)state;
    for (size_t i = 0; i < COUNT_OF(without_token); i++)
        exchange(fixture, without_token[i].bytes, without_token[i].until, without_token[i].wanted, without_token[i].name);
    api_fixture_free(fixture);
    free(text);
}

/* The head comes in any pieces; the token's request may have a long body, twice on one connection. */
static void long_bodies_with_a_token_are_read(void **state)
{
    enum { PAYLOADS = 100, PAYLOAD_BYTES = 2000 };
    char *text = tokens_for(NULL);
    const struct api_fixture_settings settings = { .tokens = text };
    struct api_fixture *fixture = api_fixture_new(&settings);
    char head[256];
    struct buffer body;
    (void)state;
    buffer_init(&body, 1 << 20);
    buffer_append_byte(&body, '[');
    for (int i = 0; i < PAYLOADS; i++)
        buffer_printf(&body, "%s{\"destination\":\"yard\",\"payload\":\"%*s\"}", i ? "," : "", PAYLOAD_BYTES, "x");
    buffer_append_byte(&body, ']');
    int len = snprintf(head, sizeof head, "POST /v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n"
                       "Content-Length: %zu\r\n\r\n", body.len);
    int fd = raw_connect(fixture);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < len; i++) {
            raw_send(fd, head + i, 1);
            if (i % 16 == 0)
                poll(NULL, 0, 1);
        }
        raw_send(fd, body.data, body.len);
        char *answer = raw_read(fd, "\"accepted\":100");
        check(strncmp(answer, "HTTP/1.1 200", 12) == 0, "%d: %.300s", turn, answer);
        free(answer);
    }
    close(fd);
    buffer_release(&body);
    api_fixture_free(fixture);
    free(text);
}

static struct config *config_with_tokens(char path[], const char *tenant)
{
    char *text = tokens_for(tenant), yaml[256];
    struct config *config = NULL;
    struct buffer problems;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    free(text);
    snprintf(yaml, sizeof yaml, "listen: 127.0.0.1:0\nstore: 'memory:'\ndestinations: { yard: { transport: pull } }\n"
             "auth: { tokens_file: %s }\n", path);
    buffer_init(&problems, 1 << 16);
    if (config_parse(slice_from(yaml), "test.yaml", &config, &problems) != STATUS_OK)
        check(false, "%s", problems.data);
    buffer_release(&problems);
    return config;
}

/* A call that waits keeps its tenant, whatever becomes of its token; the next one has the new. */
static void a_reload_leaves_calls_under_way_as_they_were(void **state)
{
    static const char job[] = "{\"destination\":\"yard\",\"id\":\"a\",\"payload\":1}";
    static const char ask[] = "GET /v1/jobs/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nConnection: close\r\n\r\n";
    char *text = tokens_for("acme"), path[] = "/tmp/insist-tokens-XXXXXX";
    const struct api_fixture_settings settings = { .tokens = text };
    struct api_fixture *fixture = api_fixture_new(&settings);
    struct api_order *order = NULL;
    struct error error;
    (void)state;
    struct config *config = config_with_tokens(path, "other");
    const struct request put = { .method = "POST", .path = "/v1/jobs", .body = job, .token = "secret" };
    struct reply reply = http_ask(fixture, &put);
    assert_int_equal(reply.status, 201);
    reply_release(&reply);
    api_fixture_stall(fixture, true); /* the call below asks the engine */
    int fd = raw_connect(fixture);
    raw_send(fd, ask, sizeof ask - 1);
    for (int i = 0; i < 3; i++)
        await_status(fixture, "/livez", 200); /* who came later is answered: it is under way */
    assert_int_equal(api_prepare(api_fixture_api(fixture), config, &order, &error), STATUS_OK);
    api_reload(order);
    await_status(fixture, "/v1/jobs", 401); /* an answer without the engine: the reload came before it */
    api_fixture_stall(fixture, false);
    char *answer = raw_read(fd, NULL);
    check(strncmp(answer, "HTTP/1.1 200", 12) == 0 && strstr(answer, "\"acme\""), "%s", answer);
    free(answer);
    close(fd);
    const struct request get = { .method = "GET", .path = "/v1/jobs/a", .token = "secret" };
    reply = http_ask(fixture, &get);
    check(reply.status == 404, "%d %s", reply.status, reply.body); /* of the tenant "other" */
    reply_release(&reply);
    config_unref(config);
    api_fixture_free(fixture);
    unlink(path);
    free(text);
}

/* --- no requests --------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *bytes, *status, *type;
} no_requests[] = {
    { "not HTTP", "hello\r\n\r\n", "HTTP/1.1 400 ", "\"bad_request\"" },
    { "a header without a colon", "GET / HTTP/1.1\r\nHost x\r\n\r\n", "HTTP/1.1 400 ", "\"bad_request\"" },
    { "a negative length", "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", "HTTP/1.1 400 ",
      "\"bad_request\"" },
    { "a body of 99 MB", "POST /v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n", "HTTP/1.1 413 ",
      "\"body_too_large\"" },
    { "bad chunks", "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "HTTP/1.1 400 ",
      "\"bad_request\"" },
    { "another expectation", "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: more\r\n\r\n{}",
      "HTTP/1.1 417 ", "\"expectation_failed\"" },
    { "another method", "TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 501 ", "\"method_not_implemented\"" },
    { "behind a good one", "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nhello\r\n\r\n", "HTTP/1.1 400 ", "\"bad_request\"" },
};

static void what_is_no_request_gets_a_problem(void **state)
{
    struct api_fixture *fixture = *state;
    for (size_t i = 0; i < COUNT_OF(no_requests); i++) {
        int fd = raw_connect(fixture);
        raw_send(fd, no_requests[i].bytes, strlen(no_requests[i].bytes));
        char *answer = raw_read(fd, NULL);
        check(strstr(answer, no_requests[i].status) && strstr(answer, no_requests[i].type), "%s: %s", no_requests[i].name, answer);
        check(strstr(answer, "application/problem+json") && !strstr(answer, "HTML"), "%s: %s", no_requests[i].name, answer);
        free(answer);
        close(fd);
    }
}

/* --- the end ------------------------------------------------------------------------------------------------- */

static void put(const struct api_fixture *fixture, const char *id, const char *payload)
{
    struct buffer body;
    buffer_init(&body, 1 << 20);
    buffer_printf(&body, "{\"destination\":\"web\",\"tenant\":\"acme\",\"id\":\"%s\",\"payload\":\"%s\"}", id, payload);
    struct reply reply = http_do(fixture, "POST", "/v1/jobs", body.data);
    check(reply.status == 201, "%s: %s", id, reply.body);
    reply_release(&reply);
    buffer_release(&body);
}

/* Who asks for an export and does not read it must not hold up the end. */
static void a_reader_that_stalls_does_not_hold_up_the_end(void **state)
{
    enum { JOBS = 300, PAYLOAD_BYTES = 60000, SOON_MS = 20000 };
    static const char ask[] = "GET /v1/dead/export HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct api_fixture *fixture = api_fixture_new(NULL);
    char id[16], *payload = malloc(PAYLOAD_BYTES + 1);
    (void)state;
    assert_non_null(payload);
    memset(payload, 'x', PAYLOAD_BYTES);
    memcpy(payload, "bad", 3);
    payload[PAYLOAD_BYTES] = '\0';
    for (int i = 0; i < JOBS; i++) {
        snprintf(id, sizeof id, "d%d", i);
        put(fixture, id, payload);
    }
    await_number(fixture, "/v1/destinations/web", "dead", JOBS);
    int fd = raw_connect(fixture);
    raw_send(fd, ask, sizeof ask - 1);
    free(raw_read(fd, "\r\n\r\n")); /* it has begun */
    poll(NULL, 0, 200);
    struct reply reply = http_do(fixture, "GET", "/v1/stats", NULL);
    check(reply_int(&reply, "calls") == 2, "the export did not stall: %s", reply.body);
    reply_release(&reply);
    int64_t began = now_ms();
    api_fixture_free(fixture);
    check(now_ms() - began < SOON_MS, "the end took %lld ms", (long long)(now_ms() - began));
    close(fd);
    free(payload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(accepting_goes_on_when_descriptors_are_back, setup, teardown),
        cmocka_unit_test(long_bodies_need_a_token),
        cmocka_unit_test(long_bodies_with_a_token_are_read),
        cmocka_unit_test(a_reload_leaves_calls_under_way_as_they_were),
        cmocka_unit_test_setup_teardown(what_is_no_request_gets_a_problem, setup, teardown),
        cmocka_unit_test(a_reader_that_stalls_does_not_hold_up_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
