/*
 * What stands behind ?: each route takes what it names and nothing else.
 */
#include "api/observe/observe.h"
#include "api/serve/routes.h"
#include "support/api_fixture.h"
#include "support/check.h"

#include <stdio.h>
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

static void parameters_that_are_not_known_are_refused(void **state)
{
    static const struct { const char *name, *method, *path, *type, *detail; } cases[] = {
        { "a misspelt filter", "GET", "/v1/jobs?stat=dead", "unknown_parameter", "\"stat\" is not known here; did you mean \"state\"?" },
        { "behind a known one", "GET", "/v1/jobs?limit=1&tennant=a", "unknown_parameter", "did you mean \"tenant\"?" },
        { "near to nothing", "GET", "/v1/tenants?colour=red", "unknown_parameter", "this call takes destination, limit, cursor" },
        { "where nothing is taken", "GET", "/v1/stats?limit=1", "unknown_parameter", "this call takes nothing behind ?" },
        { "known elsewhere", "GET", "/v1/dead?state=dead", "unknown_parameter", "\"state\" is not known here" },
        { "of another case", "GET", "/v1/jobs?State=dead", "unknown_parameter", "did you mean \"state\"?" },
        { "of what changes something", "POST", "/v1/jobs/a/cancel?tennant=x", "unknown_parameter", "did you mean \"tenant\"?" },
        { "of what is deleted", "DELETE", "/v1/errors/0123?dest=x", "unknown_parameter", "this call takes destination" },
        { "twice", "GET", "/v1/jobs?state=dead&limit=2&state=pending", "repeated_parameter", "\"state\" is given twice" },
        { "without a value", "GET", "/v1/jobs?state", "bad_query", "NAME=VALUE" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct reply reply = http_do(*state, cases[i].method, cases[i].path, NULL);
        check(reply.status / 100 == 4, "%s: %d %s", cases[i].name, reply.status, reply.body);
        check(strcmp(reply_text(&reply, "type"), cases[i].type) == 0, "%s: %s", cases[i].name, reply.body);
        check(strstr(reply_text(&reply, "detail"), cases[i].detail) != NULL, "%s: %s", cases[i].name, reply.body);
        reply_release(&reply);
    }
}

/* Whatever else it says to the value: the name is no surprise to it. The stream's answer has no end; it has its own test. */
static void what_a_route_names_it_takes(void **state)
{
    size_t asked = 0;
    for (const struct route *route = api_routes; route->method; route++)
        for (size_t i = 0; route->handle != handle_events_stream && route->query && route->query[i]; i++, asked++) {
            char path[256];
            snprintf(path, sizeof path, "%s?%s=1", route->pattern, route->query[i]);
            for (char *at = path; *at; at++)
                *at = *at == '{' || *at == '}' ? '_' : *at;
            struct reply reply = http_do(*state, route->method, path, NULL);
            check(strcmp(reply_text(&reply, "type"), "unknown_parameter") != 0, "%s: %s", path, reply.body);
            reply_release(&reply);
        }
    assert_true(asked > 30);
}

static void what_needs_no_token_takes_any(void **state)
{
    static const char *const paths[] = { "/livez?verbose=1&verbose=1", "/readyz?t=17", "/?from=mail", "/openapi.json?v=1" };
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        await_status(*state, paths[i], 200); /* not ready before the engine's first turn */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parameters_that_are_not_known_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_route_names_it_takes, setup, teardown),
        cmocka_unit_test_setup_teardown(what_needs_no_token_takes_any, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
