/*
 * Paths, methods and values that are nearly right: the answer says what was probably meant.
 */
#include "support/api_fixture.h"
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

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

static void what_was_probably_meant_is_told(void **state)
{
    static const struct { const char *method, *path; int status; const char *type, *detail; } cases[] = {
        { "GET", "/v1/jobs/", 404, "not_found", "take the / at the end of the path away" },
        { "GET", "/v1/jobs/a/why/", 404, "not_found", "take the / at the end of the path away" },
        { "GET", "/v1/nothing/", 404, "not_found", "see /openapi.json" },
        { "GET", "/v1/job", 404, "not_found", "did you mean /v1/jobs?" },
        { "GET", "/V1/Dead", 404, "not_found", "did you mean /v1/dead?" },
        { "GET", "/v1/jobs/a/b", 404, "not_found", "in an id or a name, / is written %2F" },
        { "POST", "/v1/jobs/a/b/cancel", 404, "not_found", "in an id or a name, / is written %2F" },
        { "GET", "/elsewhere", 404, "not_found", "see /openapi.json" },
        { "GET", "/v1/jobs?payload=yes", 422, "invalid_parameter", "payload must be true or false" },
        { "GET", "/v1/jobs/a?payload=yes", 422, "invalid_parameter", "payload must be true or false" },
        { "GET", "/v1/jobs?destination=yrad", 422, "unknown_destination", "did you mean \"yard\"?" },
        { "GET", "/v1/dead?destination=yrad", 422, "unknown_destination", "did you mean \"yard\"?" },
        { "GET", "/v1/dead/export?destination=wbe", 422, "unknown_destination", "did you mean \"web\"?" },
        { "GET", "/v1/tenants?destination=yrad", 422, "unknown_destination", "did you mean \"yard\"?" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct reply reply = http_do(*state, cases[i].method, cases[i].path, NULL);
        check(reply.status == cases[i].status, "%s: %d %s", cases[i].path, reply.status, reply.body);
        check(strcmp(reply_text(&reply, "type"), cases[i].type) == 0, "%s: %s", cases[i].path, reply.body);
        check(strstr(reply_text(&reply, "detail"), cases[i].detail), "%s: %s", cases[i].path, reply.body);
        reply_release(&reply);
    }
}

/* RFC 9110, 15.5.6: a 405 names the methods that the path takes. */
static void other_methods_are_told_which_there_are(void **state)
{
    static const struct { const char *method, *path, *allow; } cases[] = {
        { "PUT", "/v1/jobs", "POST, GET, HEAD" },
        { "OPTIONS", "/v1/jobs", "POST, GET, HEAD" },
        { "DELETE", "/v1/jobs/a", "GET, HEAD, PATCH" },
        { "GET", "/v1/decide", "POST" },
        { "POST", "/livez", "GET, HEAD" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct reply reply = http_do(*state, cases[i].method, cases[i].path, NULL);
        char *allow = reply_header(&reply, "Allow");
        check(reply.status == 405, "%s %s: %d", cases[i].method, cases[i].path, reply.status);
        check(allow && strcmp(allow, cases[i].allow) == 0, "%s %s: %s", cases[i].method, cases[i].path, allow ? allow : "no Allow");
        check(strstr(reply_text(&reply, "detail"), cases[i].allow), "%s: %s", cases[i].path, reply.body);
        free(allow);
        reply_release(&reply);
    }
}

static void what_is_right_stays_so(void **state)
{
    static const char *const paths[] = {
        "/v1/jobs?payload=false", "/v1/jobs?payload=0&destination=yard", "/v1/jobs/a%2Fb", "/v1/jobs/a%2Fb/why",
        "/v1/jobs/%C3%A9?tenant=%E6%97%A5", "/v1/tenants?destination=web", "/v1/dead?destination=web",
        "/v1/dead?destination=elsewhere",
    };
    put_job(*state, "yard", "", "a/b", "x");
    put_job(*state, "yard", "\xe6\x97\xa5", "\xc3\xa9", "x");
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct reply reply = http_do(*state, "GET", paths[i], NULL);
        check(reply.status == 200, "%s: %d %s", paths[i], reply.status, reply.body);
        reply_release(&reply);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_probably_meant_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(other_methods_are_told_which_there_are, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_right_stays_so, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
