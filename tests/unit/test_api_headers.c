/* The headers that every answer carries, whoever makes it: handlers, the reader of requests, streams, the page. */
#include "support/api_fixture.h"
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ASK(line, more) line " HTTP/1.1\r\nHost: localhost\r\n" more "\r\n"
#define ASK_WITH(line, length, body) ASK(line, "Content-Type: application/json\r\nContent-Length: " length "\r\n") body

static const struct {
    const char *request;
    int status;
    bool cached; /* a file of the page: asked for again each time, by its tag */
} rows[] = {
    { ASK("GET /livez", ""), 200, false },
    { ASK("HEAD /livez", ""), 200, false },
    { ASK("GET /metrics", ""), 200, false },
    { ASK("GET /v1/stats", ""), 200, false },
    { ASK("GET /v1/jobs", ""), 200, false },
    { ASK("GET /v1/dead/export?destination=web", ""), 200, false },
    { ASK("GET /v1/events/stream", ""), 200, false },
    { ASK("GET /openapi.json", ""), 200, false },
    { ASK("GET /", ""), 200, true },
    { ASK("GET /page/page.js", ""), 200, true },
    { ASK("GET /v1/jobs/none", ""), 404, false },
    { ASK("GET /nothing", ""), 404, false },
    { ASK("PUT /v1/jobs", ""), 405, false },
    { ASK("GET /v1/jobs?limit=x", ""), 422, false },
    { ASK_WITH("POST /v1/jobs", "2", "{}"), 422, false },
    { ASK_WITH("POST /v1/jobs", "47", "{\"destination\":\"yard\",\"id\":\"a\",\"payload\":\"<a>\"}"), 201, false },
    { ASK_WITH("POST /v1/leases/ack", "17", "{\"lease\":\"1-2-0\"}"), 409, false },
    { ASK("POST /v1/jobs", "Content-Length: 900000000\r\n"), 413, false },
    { ASK("POST /v1/jobs", "Content-Encoding: gzip\r\nContent-Length: 2\r\n") "{}", 415, false },
    { ASK("POST /v1/jobs/batch", "Content-Encoding: br\r\nContent-Length: 2\r\n") "[]", 415, false },
    { ASK("POST /v1/jobs/batch", "Content-Encoding: identity\r\nContent-Length: 2\r\n") "[]", 200, false },
    { ASK("GET /livez", "Expect: tea\r\n"), 417, false },
    { "GET /livez HTTP/1.1\r\nHost: other.example\r\n\r\n", 421, false },
    { "GET /livez HTTP/1.1\r\n\r\n", 400, false },
    { "no request\r\n\r\n", 400, false },
};

static void check_answer(const char *answer, const char *request, int status, bool cached)
{
    static const char *const all[] = { "\r\nInsist-Api: 1\r\n", "\r\nX-Content-Type-Options: nosniff\r\n",
                                       "\r\nCross-Origin-Resource-Policy: same-origin\r\n" };
    char first[32];
    const char *saved = cached ? "\r\nCache-Control: no-cache\r\n" : "\r\nCache-Control: no-store\r\n";
    snprintf(first, sizeof first, "HTTP/1.1 %d ", status);
    check(strncmp(answer, first, strlen(first)) == 0, "%s: %.200s", request, answer);
    for (size_t k = 0; k < COUNT_OF(all); k++)
        check(strstr(answer, all[k]), "%s: no %s in %.600s", request, all[k], answer);
    const char *cache = strstr(answer, "\r\nCache-Control:");
    check(cache && strncmp(cache, saved, strlen(saved)) == 0, "%s: may be kept: %.600s", request, answer);
    check(!strstr(cache + 1, "\r\nCache-Control:"), "%s: twice: %.600s", request, answer);
}

static void every_answer_has_them(void **state)
{
    struct api_fixture *fixture = api_fixture_new(NULL);
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int fd = raw_connect(fixture);
        raw_send(fd, rows[i].request, strlen(rows[i].request));
        char *answer = raw_read(fd, "\r\n\r\n");
        check_answer(answer, rows[i].request, rows[i].status, rows[i].cached);
        free(answer);
        close(fd);
    }
    api_fixture_free(fixture);
}

static void who_has_no_token_sees_them_too(void **state)
{
    static const char tokens[] = "tokens:\n  - { name: a, scopes: [read], sha256: "
                                 "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b }\n"; /* of "secret" */
    static const struct { const char *request; int status; } refused[] = {
        { ASK("GET /v1/stats", ""), 401 },
        { ASK("GET /v1/stats", "Authorization: Bearer wrong\r\n"), 401 },
        { ASK("GET /v1/stats", "Authorization: Digest secret\r\n"), 401 }, /* as long as Bearer, and no bearer's */
        { ASK("POST /v1/destinations/web/pause", "Authorization: Bearer secret\r\nContent-Length: 0\r\n"), 403 },
    };
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .tokens = tokens });
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        int fd = raw_connect(fixture);
        raw_send(fd, refused[i].request, strlen(refused[i].request));
        char *answer = raw_read(fd, "\r\n\r\n");
        check_answer(answer, refused[i].request, refused[i].status, false);
        free(answer);
        close(fd);
    }
    api_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_answer_has_them), cmocka_unit_test(who_has_no_token_sees_them_too) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
