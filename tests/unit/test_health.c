#include "core/outage/health.h"
#include "support/check.h"

enum { LIMIT_MS = 5000 };

#define SIFEN(status, facturation, batch)                                                                              \
    "{\"status\":\"" status "\",\"timestamp\":\"2025-01-12T10:00:00Z\",\"services\":{\"facturation\":\"" facturation             \
    "\",\"batch\":\"" batch "\",\"queries\":\"DOWN\"}}"

#define ACTUATOR(status) "{\"status\":\"UP\",\"components\":{\"facturation\":{\"status\":\"" status "\",\"details\":{}}}}"
#define CHECKS(status, checks) "{\"status\":\"" status "\",\"checks\":{\"facturation\":[" checks "]}}"
#define ONE_SERVICE(value) "{\"status\":\"UP\",\"services\":{\"facturation\":" value "}}"
#define PASS "{\"status\":\"pass\"}"

/* S3-040 */
static void answers(void **state)
{
    (void)state;
    static const char *services[] = { "facturation", "batch" };
    static const struct {
        const char *name;
        enum health_kind kind;
        const char *expected; /* status */
        size_t services;
        bool connected;
        int64_t status, latency_ms;
        const char *body;
        enum health_reason reason;
        const char *service;
    } cases[] = {
        { "the document's example", HEALTH_JSON, "UP", 2, true, 200, 100, SIFEN("UP", "UP", "UP"), HEALTH_WELL, NULL },
        { "down", HEALTH_JSON, "UP", 2, true, 200, 100, SIFEN("DOWN", "UP", "UP"), HEALTH_UNWELL, NULL },
        { "a critical service is down", HEALTH_JSON, "UP", 2, true, 200, 100, SIFEN("UP", "UP", "DOWN"), HEALTH_SERVICE_UNWELL, "batch" },
        { "one that nobody asked for is down", HEALTH_JSON, "UP", 2, true, 200, 100, SIFEN("UP", "UP", "UP"), HEALTH_WELL, NULL },
        { "no service is asked for", HEALTH_JSON, "UP", 0, true, 200, 100, SIFEN("UP", "DOWN", "DOWN"), HEALTH_WELL, NULL },
        { "a critical service is not named", HEALTH_JSON, "UP", 2, true, 200, 100, ONE_SERVICE("\"UP\""), HEALTH_SERVICE_UNWELL, "batch" },
        { "no services at all", HEALTH_JSON, "UP", 1, true, 200, 100, "{\"status\":\"UP\"}", HEALTH_SERVICE_UNWELL, "facturation" },
        { "services is no object", HEALTH_JSON, "UP", 1, true, 200, 100, "{\"status\":\"UP\",\"services\":[1]}", HEALTH_SERVICE_UNWELL, "facturation" },
        { "just in time", HEALTH_JSON, "UP", 0, true, 200, LIMIT_MS - 1, "{\"status\":\"UP\"}", HEALTH_WELL, NULL },
        { "too late", HEALTH_JSON, "UP", 0, true, 200, LIMIT_MS, "{\"status\":\"UP\"}", HEALTH_SLOW, NULL },
        { "no connection", HEALTH_JSON, "UP", 0, false, 0, 0, "", HEALTH_NO_ANSWER, NULL },
        { "503 with a good word", HEALTH_JSON, "UP", 0, true, 503, 10, "{\"status\":\"UP\"}", HEALTH_REFUSED, NULL },
        { "a redirect to a login", HEALTH_JSON, "UP", 0, true, 302, 10, "{\"status\":\"UP\"}", HEALTH_REFUSED, NULL },
        { "actuator", HEALTH_JSON, "UP", 1, true, 200, 10, ACTUATOR("UP"), HEALTH_WELL, NULL },
        { "actuator, a component is out of service", HEALTH_JSON, "UP", 1, true, 200, 10, ACTUATOR("OUT_OF_SERVICE"), HEALTH_SERVICE_UNWELL, "facturation" },
        { "actuator, unknown", HEALTH_JSON, "UP", 0, true, 200, 10, "{\"status\":\"UNKNOWN\"}", HEALTH_UNWELL, NULL },
        { "health+json", HEALTH_JSON, "UP", 1, true, 200, 10, CHECKS("pass", PASS ",{\"status\":\"warn\"}"), HEALTH_WELL, NULL },
        { "one of two checks fails", HEALTH_JSON, "UP", 1, true, 200, 10, CHECKS("warn", PASS ",{\"status\":\"fail\"}"), HEALTH_SERVICE_UNWELL, "facturation" },
        { "no check at all", HEALTH_JSON, "UP", 1, true, 200, 10, CHECKS("pass", ""), HEALTH_SERVICE_UNWELL, "facturation" },
        { "health+json, fail", HEALTH_JSON, "UP", 0, true, 200, 10, "{\"status\":\"fail\"}", HEALTH_UNWELL, NULL },
        { "an alias, in any case", HEALTH_JSON, "pass", 0, true, 200, 10, "{\"status\":\"Ok\"}", HEALTH_WELL, NULL },
        { "nothing in particular is expected", HEALTH_JSON, NULL, 0, true, 200, 10, "{\"status\":\"up\"}", HEALTH_WELL, NULL },
        { "a word of its own", HEALTH_JSON, "GREEN", 0, true, 200, 10, "{\"status\":\"green\"}", HEALTH_WELL, NULL },
        { "a word of its own, not said", HEALTH_JSON, "GREEN", 0, true, 200, 10, "{\"status\":\"UP\"}", HEALTH_UNWELL, NULL },
        { "a number for a status", HEALTH_JSON, "UP", 0, true, 200, 10, "{\"status\":1}", HEALTH_UNREADABLE, NULL },
        { "no status", HEALTH_JSON, "UP", 0, true, 200, 10, "{\"state\":\"UP\"}", HEALTH_UNREADABLE, NULL },
        { "a service that is a number", HEALTH_JSON, "UP", 1, true, 200, 10, ONE_SERVICE("1"), HEALTH_SERVICE_UNWELL, "facturation" },
        { "not an object", HEALTH_JSON, "UP", 0, true, 200, 10, "[\"UP\"]", HEALTH_UNREADABLE, NULL },
        { "a page", HEALTH_JSON, "UP", 0, true, 200, 10, "<html><title>BIG-IP logout page</title>", HEALTH_UNREADABLE, NULL },
        { "nothing", HEALTH_JSON, "UP", 0, true, 200, 10, "", HEALTH_UNREADABLE, NULL },
        { "cut off", HEALTH_JSON, "UP", 0, true, 200, 10, "{\"status\":\"UP\"", HEALTH_UNREADABLE, NULL },
        { "http: any 2xx", HEALTH_HTTP, "UP", 2, true, 204, 10, "", HEALTH_WELL, NULL },
        { "http: 199", HEALTH_HTTP, "UP", 0, true, 199, 10, "", HEALTH_REFUSED, NULL },
        { "http: 300", HEALTH_HTTP, "UP", 0, true, 300, 10, "", HEALTH_REFUSED, NULL },
        { "wsdl", HEALTH_WSDL, "UP", 0, true, 200, 10, "<wsdl:definitions name=\"x\">", HEALTH_WELL, NULL },
        { "wsdl: a login page", HEALTH_WSDL, "UP", 0, true, 200, 10, "<html>BIG-IP logout page</html>", HEALTH_NO_DEFINITIONS, NULL },
        { "wsdl: refused", HEALTH_WSDL, "UP", 0, true, 403, 10, "definitions", HEALTH_REFUSED, NULL },
        { "tcp", HEALTH_TCP, "UP", 0, true, 0, 10, "", HEALTH_WELL, NULL },
        { "tcp: no connection", HEALTH_TCP, "UP", 0, false, 0, 10, "", HEALTH_NO_ANSWER, NULL },
        { "smtp", HEALTH_SMTP, "UP", 0, true, 220, 10, "220 mx", HEALTH_WELL, NULL },
        { "smtp: busy", HEALTH_SMTP, "UP", 0, true, 421, 10, "421 too many", HEALTH_REFUSED, NULL },
        { "none: nothing to complain about", HEALTH_NONE, "UP", 0, true, 0, 10, "", HEALTH_WELL, NULL },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct health_expectation expectation = { cases[i].kind, LIMIT_MS, cases[i].expected, services, cases[i].services };
        struct health_answer answer = { cases[i].connected, cases[i].status, cases[i].latency_ms, slice_from(cases[i].body) };
        struct health_verdict verdict = health_judge(&expectation, &answer);
        check(verdict.reason == cases[i].reason, "%s: %s", cases[i].name, health_reason_name(verdict.reason));
        if (cases[i].service)
            check(verdict.service && strcmp(verdict.service, cases[i].service) == 0, "%s: the service", cases[i].name);
        else
            check(!verdict.service, "%s: names %s", cases[i].name, verdict.service);
    }
}

static void a_huge_answer_is_not_read(void **state)
{
    (void)state;
    static char body[HEALTH_BODY_BYTES_MAX + 1];
    struct health_expectation expectation = { .kind = HEALTH_JSON };
    struct health_answer answer = { true, 200, 100000, { body, HEALTH_BODY_BYTES_MAX } }; /* without a limit nothing is slow */
    memset(body, ' ', sizeof body);
    memcpy(body, "{\"status\":\"UP\"}", 15);
    assert_int_equal(health_judge(&expectation, &answer).reason, HEALTH_WELL);
    answer.body.len++;
    assert_int_equal(health_judge(&expectation, &answer).reason, HEALTH_UNREADABLE);
}

/* + well, - not: three in a row are down, one that is well ends it. */
static void three_in_a_row(void **state)
{
    (void)state;
    static const struct { const char *checks, *changes; bool down; } cases[] = {
        { "+", "U", false },         { "-", ".", false },           { "--", "..", false },
        { "---", "..D", true },      { "+--+--", "U.....", false }, { "+---", "U..D", true },
        { "+-----", "U..D..", true }, { "+---+", "U..DU", false },  { "+---+--", "U..DU..", false },
        { "+---+---", "U..DU..D", true }, { "--+", "..U", false },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct health health;
        health_init(&health, INSTANT_NONE);
        for (size_t at = 0; cases[i].checks[at]; at++) {
            enum health_change change = health_note(&health, 3, cases[i].checks[at] == '+');
            check(".DU"[change] == cases[i].changes[at], "%s, check %zu: %d", cases[i].checks, at, change);
        }
        check(health.down == cases[i].down, "%s", cases[i].checks);
        check(health.failures <= 3, "%s", cases[i].checks);
    }
}

static void when_to_check(void **state)
{
    (void)state;
    struct health health;
    health_init(&health, INSTANT_NONE);
    assert_true(health_due(&health, 30000, 1000));
    assert_int_equal(health_next(&health, 30000, 1000), 1000);
    health_init(&health, 5000);
    assert_false(health_due(&health, 30000, 4999));
    assert_int_equal(health_next(&health, 30000, 1000), 5000);
    assert_true(health_due(&health, 30000, 5000));
    health_begin(&health, 30000, 5000);
    assert_false(health_due(&health, 30000, 34999));
    assert_true(health_due(&health, 30000, 35000));
    assert_true(health_due(&health, 30000, 4999)); /* the clock was set back */
    assert_int_equal(health_next(&health, 30000, 0), 30000);
    assert_string_equal(health_reason_name(HEALTH_SERVICE_UNWELL), "service_unwell");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(a_huge_answer_is_not_read),
        cmocka_unit_test(three_in_a_row),
        cmocka_unit_test(when_to_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
