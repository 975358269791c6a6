/*
 * /openapi.json and the server say the same: routes, scopes, types of problems, and members of real answers.
 */
#include "api/serve/routes.h"
#include "support/api_fixture.h"
#include "support/check.h"

#include <glob.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

static json_t *document;

static int setup(void **state)
{
    struct api_fixture *fixture = api_fixture_new(NULL);
    struct reply reply = http_do(fixture, "GET", "/openapi.json", NULL);
    document = json_incref(reply.json);
    reply_release(&reply);
    *state = fixture;
    return document ? 0 : -1;
}

static int teardown(void **state)
{
    json_decref(document);
    api_fixture_free(*state);
    return 0;
}

static json_t *operation_of(const char *method, const char *path)
{
    char lower[8] = "";
    for (size_t i = 0; method[i] && i < sizeof lower - 1; i++)
        lower[i] = ascii_lower(method[i]);
    return json_object_get(json_object_get(json_object_get(document, "paths"), path), lower);
}

static unsigned scope_of(const char *name)
{
    static const struct { const char *name; unsigned scope; } scopes[] = {
        { "enqueue", SCOPE_ENQUEUE }, { "read", SCOPE_READ }, { "operate", SCOPE_OPERATE }, { "admin", SCOPE_ADMIN },
        { "work", SCOPE_WORK },
    };
    for (size_t i = 0; name && i < COUNT_OF(scopes); i++)
        if (strcmp(scopes[i].name, name) == 0)
            return scopes[i].scope;
    return SCOPE_NONE;
}

static void every_route_is_described(void **state)
{
    (void)state;
    size_t routes = 0;
    for (const struct route *route = api_routes; route->method; route++, routes++) {
        json_t *operation = operation_of(route->method, route->pattern);
        check(operation, "%s %s is not described", route->method, route->pattern);
        json_t *security = json_object_get(operation, "security");
        const char *scope = json_string_value(json_array_get(json_object_get(json_array_get(security, 0), "token"), 0));
        check(json_is_array(security) && scope_of(scope) == route->scope, "scope of %s %s", route->method, route->pattern);
        check(json_string_value(json_object_get(operation, "operationId")), "%s %s", route->method, route->pattern);
    }
    assert_true(routes > 20);
}

static bool takes(const struct route *route, const char *name)
{
    for (size_t i = 0; route->query && route->query[i]; i++)
        if (strcmp(route->query[i], name) == 0)
            return true;
    return false;
}

/* What a route takes behind ? is what its description says, no more and no less. */
static void every_parameter_is_described(void **state)
{
    (void)state;
    size_t found = 0;
    for (const struct route *route = api_routes; route->method; route++) {
        json_t *operation = operation_of(route->method, route->pattern), *parameter;
        size_t described = 0, taken = 0, i;
        json_array_foreach(json_object_get(operation, "parameters"), i, parameter) {
            const char *name = json_string_value(json_object_get(parameter, "name"));
            if (strcmp(json_string_value(json_object_get(parameter, "in")), "query") != 0)
                continue;
            check(takes(route, name), "%s %s does not take %s", route->method, route->pattern, name);
            described++;
        }
        while (route->query && route->query[taken])
            taken++;
        check(taken == described, "%s %s takes what is not described", route->method, route->pattern);
        check(route->scope == SCOPE_NONE || json_object_get(json_object_get(operation, "responses"), "422"),
              "%s %s may refuse a parameter", route->method, route->pattern);
        found += described;
    }
    assert_true(found > 30);
}

/* In the source a problem's status stands before its type. */
static size_t check_types_of(const char *path, json_t *types)
{
    static char source[1 << 20];
    size_t found = 0;
    regex_t pattern;
    regmatch_t match[2];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    source[fread(source, 1, sizeof source - 1, file)] = '\0';
    fclose(file);
    assert_int_equal(regcomp(&pattern, "[^0-9][45][0-9][0-9],[ \n]*\"([a-z_]+)\"", REG_EXTENDED), 0);
    for (const char *at = source; regexec(&pattern, at, 2, match, 0) == 0; at += match[0].rm_eo, found++) {
        bool described = false;
        size_t len = (size_t)(match[1].rm_eo - match[1].rm_so);
        for (size_t i = 0; i < json_array_size(types) && !described; i++) {
            const char *type = json_string_value(json_array_get(types, i));
            described = strlen(type) == len && memcmp(type, at + match[1].rm_so, len) == 0;
        }
        check(described, "%s: type %.*s is not described", path, (int)len, at + match[1].rm_so);
    }
    regfree(&pattern);
    return found;
}

static void every_type_of_problem_is_described(void **state)
{
    json_t *problem = json_object_get(json_object_get(json_object_get(document, "components"), "schemas"), "Problem");
    json_t *types = json_object_get(json_object_get(json_object_get(problem, "properties"), "type"), "enum");
    glob_t sources;
    size_t found = 0;
    (void)state;
    assert_int_equal(glob("src/api/*/*.c", 0, NULL, &sources), 0);
    for (size_t i = 0; i < sources.gl_pathc; i++)
        found += check_types_of(sources.gl_pathv[i], types);
    globfree(&sources);
    assert_true(found > 80);
}

static void every_description_has_a_route(void **state)
{
    (void)state;
    const char *path, *method;
    json_t *operations, *operation;
    json_object_foreach(json_object_get(document, "paths"), path, operations)
        json_object_foreach(operations, method, operation) {
            bool found = false;
            for (const struct route *route = api_routes; route->method && !found; route++)
                found = strcasecmp(route->method, method) == 0 && strcmp(route->pattern, path) == 0;
            check(found, "%s %s is described but not served", method, path);
        }
}

/* --- answers against their schemas: type, required, properties, items, enum, const, allOf ---------------------------- */

static const json_t *resolve(const json_t *schema)
{
    const char *reference = json_string_value(json_object_get(schema, "$ref"));
    static const char prefix[] = "#/components/schemas/";
    if (!reference)
        return schema;
    check(strncmp(reference, prefix, sizeof prefix - 1) == 0, "%s", reference);
    json_t *found =
        json_object_get(json_object_get(json_object_get(document, "components"), "schemas"), reference + sizeof prefix - 1);
    check(found, "%s leads nowhere", reference);
    return found;
}

static bool is_of_type(const json_t *value, const char *type)
{
    switch (type[0]) {
    case 's':
        return json_is_string(value);
    case 'i':
        return json_is_integer(value);
    case 'n':
        return type[2] == 'l' ? json_is_null(value) : json_is_number(value);
    case 'b':
        return json_is_boolean(value);
    case 'a':
        return json_is_array(value);
    default:
        return json_is_object(value);
    }
}

static bool has_type(const json_t *value, const json_t *types)
{
    if (!types)
        return true;
    if (json_is_string(types))
        return is_of_type(value, json_string_value(types));
    bool found = false;
    for (size_t i = 0; i < json_array_size(types) && !found; i++)
        found = is_of_type(value, json_string_value(json_array_get(types, i)));
    return found;
}

/* `whole`: the schema describes all of the value, not a part of it as under allOf. */
static void conform(const char *where, json_t *value, const json_t *given, bool whole);

static void conform_object(const char *where, json_t *value, const json_t *schema, bool whole)
{
    json_t *properties = json_object_get(schema, "properties"), *member, *name;
    const char *key;
    size_t i;
    json_array_foreach(json_object_get(schema, "required"), i, name)
        check(json_object_get(value, json_string_value(name)), "%s: %s is missing", where, json_string_value(name));
    json_object_foreach(value, key, member) {
        char inner[256];
        snprintf(inner, sizeof inner, "%s.%s", where, key);
        json_t *property = json_object_get(properties, key);
        check(property || !whole, "%s is not described", inner); /* the description must not fall behind */
        if (property)
            conform(inner, member, property, true);
    }
}

static void conform(const char *where, json_t *value, const json_t *given, bool whole)
{
    const json_t *schema = resolve(given);
    json_t *part, *choices = json_object_get(schema, "enum"), *only = json_object_get(schema, "const");
    size_t i;
    check(has_type(value, json_object_get(schema, "type")), "%s is of another type", where);
    check(!only || json_equal(only, value), "%s has another value", where);
    bool chosen = !choices;
    json_array_foreach(choices, i, part)
        chosen = chosen || json_equal(part, value);
    check(chosen, "%s has a value that is not described: %s", where, json_string_value(value));
    json_array_foreach(json_object_get(schema, "allOf"), i, part)
        conform(where, value, part, false);
    if (json_is_object(value) && json_object_get(schema, "properties"))
        conform_object(where, value, schema, whole);
    json_array_foreach(json_object_get(schema, "items") ? value : NULL, i, part) {
        char inner[256];
        snprintf(inner, sizeof inner, "%s[%zu]", where, i);
        conform(inner, part, json_object_get(schema, "items"), true);
    }
}

static struct reply ask_and_conform(struct api_fixture *fixture, const char *method, const char *pattern, const char *path,
                                    const char *body)
{
    struct reply reply = http_do(fixture, method, path, body);
    char status[8], where[128];
    snprintf(status, sizeof status, "%d", reply.status);
    snprintf(where, sizeof where, "%s %s %s", method, path, status);
    json_t *answer = json_object_get(json_object_get(operation_of(method, pattern), "responses"), status);
    check(answer, "%s is not described: %s", where, reply.body);
    char *content_type = reply_header(&reply, "Content-Type");
    check(content_type, "%s has no Content-Type", where);
    json_t *media = json_object_get(json_object_get(answer, "content"), content_type);
    check(media, "%s: %s is not described", where, content_type);
    check(reply.json, "%s: %s", where, reply.body);
    conform(where, reply.json, json_object_get(media, "schema"), true);
    free(content_type);
    return reply;
}

static void conforms(struct api_fixture *fixture, const char *method, const char *pattern, const char *path,
                     const char *body, int status)
{
    struct reply reply = ask_and_conform(fixture, method, pattern, path, body);
    check(reply.status == status, "%s %s: %d %s", method, path, reply.status, reply.body);
    reply_release(&reply);
}

/* There is one, of the destination that was held just before. */
static void incidents_are_as_described(struct api_fixture *fixture)
{
    char path[256];
    await_text(fixture, "/v1/incidents", "incidents.0.destination", "web");
    struct reply reply = ask_and_conform(fixture, "GET", "/v1/incidents", "/v1/incidents", NULL);
    snprintf(path, sizeof path, "/v1/incidents/%s", reply_text(&reply, "incidents.0.id"));
    reply_release(&reply);
    conforms(fixture, "GET", "/v1/incidents/{id}", path, NULL, 200);
    conforms(fixture, "PATCH", "/v1/incidents/{id}", path, "{\"lessons_learned\":\"x\"}", 200);
    conforms(fixture, "PATCH", "/v1/incidents/{id}", path, "{}", 422);
    conforms(fixture, "GET", "/v1/incidents/{id}", "/v1/incidents/none", NULL, 404);
    conforms(fixture, "GET", "/v1/incidents/{id}/report", "/v1/incidents/none/report", NULL, 404);
}

static void answers_are_as_described(void **state)
{
    struct api_fixture *fixture = *state;
    static const char job[] =
        "{\"destination\":\"yard\",\"id\":\"a\",\"payload\":{\"x\":1},\"metadata\":{\"m\":1},\"headers\":{\"X\":\"y\"}}";
    conforms(fixture, "POST", "/v1/jobs", "/v1/jobs", job, 201);
    conforms(fixture, "POST", "/v1/jobs", "/v1/jobs", job, 200);
    conforms(fixture, "POST", "/v1/jobs", "/v1/jobs", "{\"destination\":\"yard\",\"id\":\"a\",\"payload\":2}", 409);
    conforms(fixture, "POST", "/v1/jobs", "/v1/jobs", "{", 422);
    conforms(fixture, "POST", "/v1/jobs", "/v1/jobs", "{\"destination\":\"web\",\"id\":\"f\",\"payload\":\"fail\"}", 201);
    conforms(fixture, "POST", "/v1/jobs", "/v1/jobs", "{\"destination\":\"web\",\"id\":\"d\",\"payload\":\"bad\"}", 201);
    conforms(fixture, "POST", "/v1/jobs/batch", "/v1/jobs/batch", "[{\"destination\":\"yard\",\"payload\":1},{}]", 200);
    await_state(fixture, "/v1/jobs/f", "waiting");
    await_state(fixture, "/v1/jobs/d", "dead");
    conforms(fixture, "GET", "/v1/jobs", "/v1/jobs?payload=true&limit=2", NULL, 200);
    conforms(fixture, "GET", "/v1/jobs", "/v1/jobs?limit=x", NULL, 422);
    conforms(fixture, "GET", "/v1/jobs/{id}", "/v1/jobs/f?payload=true", NULL, 200);
    conforms(fixture, "GET", "/v1/jobs/{id}", "/v1/jobs/d", NULL, 200);
    conforms(fixture, "GET", "/v1/jobs/{id}", "/v1/jobs/none", NULL, 404);
    conforms(fixture, "GET", "/v1/jobs/{id}/why", "/v1/jobs/f/why", NULL, 200);
    conforms(fixture, "GET", "/v1/jobs/{id}/why", "/v1/jobs/d/why", NULL, 200);
    conforms(fixture, "PATCH", "/v1/jobs/{id}", "/v1/jobs/f", "{\"priority\":1}", 200);
    conforms(fixture, "GET", "/v1/dead", "/v1/dead", NULL, 200);
    conforms(fixture, "GET", "/v1/dead/export", "/v1/dead/export", NULL, 200); /* one line */
    conforms(fixture, "GET", "/v1/dead/summary", "/v1/dead/summary?by=fingerprint", NULL, 200);
    conforms(fixture, "GET", "/v1/dead/summary", "/v1/dead/summary?by=colour", NULL, 422);
    conforms(fixture, "GET", "/v1/destinations", "/v1/destinations", NULL, 200);
    conforms(fixture, "POST", "/v1/destinations/{name}/pause", "/v1/destinations/web/pause", "{\"reason\":\"r\"}", 200);
    conforms(fixture, "GET", "/v1/destinations/{name}", "/v1/destinations/web", NULL, 200);
    conforms(fixture, "GET", "/v1/destinations/{name}", "/v1/destinations/none", NULL, 404);
    conforms(fixture, "POST", "/v1/jobs/{id}/retry", "/v1/jobs/d/retry", NULL, 200);
    conforms(fixture, "POST", "/v1/jobs/{id}/cancel", "/v1/jobs/d/cancel", NULL, 200);
    conforms(fixture, "POST", "/v1/jobs/{id}/cancel", "/v1/jobs/d/cancel", NULL, 409);
    conforms(fixture, "POST", "/v1/destinations/{name}/resume", "/v1/destinations/web/resume", NULL, 200);
    conforms(fixture, "POST", "/v1/destinations/{name}/contingency", "/v1/destinations/web/contingency", "{\"enter\":true}", 200);
    conforms(fixture, "POST", "/v1/destinations/{name}/contingency", "/v1/destinations/web/contingency", "{\"enter\":false}", 200);
    incidents_are_as_described(fixture);
    conforms(fixture, "GET", "/v1/alerts", "/v1/alerts?state=all", NULL, 200);
    conforms(fixture, "GET", "/v1/alerts", "/v1/alerts?state=gone", NULL, 422);
    conforms(fixture, "GET", "/v1/tenants", "/v1/tenants", NULL, 200);
    conforms(fixture, "GET", "/v1/events", "/v1/events", NULL, 200);
    conforms(fixture, "GET", "/v1/events", "/v1/events?type=none", NULL, 422);
    conforms(fixture, "GET", "/v1/stats", "/v1/stats", NULL, 200);
    conforms(fixture, "POST", "/v1/decide", "/v1/decide",
             "{\"id\":\"x\",\"submissionError\":\"TIMEOUT\",\"policy\":\"web\"}", 200);
    conforms(fixture, "POST", "/v1/decide", "/v1/decide", "{\"id\":\"x\",\"submissionError\":\"BROKEN\",\"policy\":\"web\"}",
             200);
    conforms(fixture, "POST", "/v1/decide", "/v1/decide", "{}", 422);
    conforms(fixture, "POST", "/v1/decide", "/v1/decide?policy=web", "{}", 422);
    conforms(fixture, "GET", "/v1/stats", "/v1/stats?by=day", NULL, 422);
    conforms(fixture, "GET", "/livez", "/livez", NULL, 200);
    conforms(fixture, "GET", "/openapi.json", "/openapi.json", NULL, 200);
    struct reply reply = http_do(fixture, "GET", "/", NULL);
    assert_non_null(strstr(reply.body, "openapi.json"));
    reply_release(&reply);
}

static void leases_are_as_described(void **state)
{
    struct api_fixture *fixture = *state;
    char body[256];
    conforms(fixture, "POST", "/v1/jobs/batch", "/v1/jobs/batch",
             "[{\"destination\":\"yard\",\"payload\":1},{\"destination\":\"yard\",\"payload\":2}]", 200);
    struct reply reply =
        ask_and_conform(fixture, "POST", "/v1/leases", "/v1/leases", "{\"destination\":\"yard\",\"max\":2,\"wait_s\":5}");
    assert_int_equal(json_array_size(reply_at(&reply, "leases")), 2);
    snprintf(body, sizeof body, "{\"lease\":\"%s\"}", reply_text(&reply, "leases.0.lease"));
    conforms(fixture, "POST", "/v1/leases/extend", "/v1/leases/extend", body, 200);
    conforms(fixture, "POST", "/v1/leases/ack", "/v1/leases/ack", body, 200);
    conforms(fixture, "POST", "/v1/leases/ack", "/v1/leases/ack", body, 409);
    snprintf(body, sizeof body, "{\"lease\":\"%s\",\"error\":\"TIMEOUT\"}", reply_text(&reply, "leases.1.lease"));
    conforms(fixture, "POST", "/v1/leases/nack", "/v1/leases/nack", body, 200);
    conforms(fixture, "POST", "/v1/leases/nack", "/v1/leases/nack", body, 409);
    conforms(fixture, "POST", "/v1/leases", "/v1/leases", "{}", 422);
    reply_release(&reply);
}

static void unknown_errors_are_as_described(void **state)
{
    struct api_fixture *fixture = *state;
    char text[256];
    conforms(fixture, "POST", "/v1/jobs", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1}", 201);
    struct reply reply =
        ask_and_conform(fixture, "POST", "/v1/leases", "/v1/leases", "{\"destination\":\"yard\",\"wait_s\":5}");
    snprintf(text, sizeof text, "{\"lease\":\"%s\",\"error\":\"odd 7\",\"code\":\"app:7\"}", reply_text(&reply, "leases.0.lease"));
    conforms(fixture, "POST", "/v1/leases/nack", "/v1/leases/nack", text, 200);
    reply_release(&reply);
    reply = ask_and_conform(fixture, "GET", "/v1/errors", "/v1/errors?destination=yard&limit=5", NULL);
    snprintf(text, sizeof text, "/v1/errors/%s", reply_text(&reply, "errors.0.fingerprint"));
    conforms(fixture, "DELETE", "/v1/errors/{fingerprint}", text, NULL, 200);
    conforms(fixture, "DELETE", "/v1/errors/{fingerprint}", text, NULL, 404);
    conforms(fixture, "GET", "/v1/errors", "/v1/errors?limit=0", NULL, 422);
    reply_release(&reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_route_is_described, setup, teardown),
        cmocka_unit_test_setup_teardown(every_description_has_a_route, setup, teardown),
        cmocka_unit_test_setup_teardown(every_parameter_is_described, setup, teardown),
        cmocka_unit_test_setup_teardown(every_type_of_problem_is_described, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_are_as_described, setup, teardown),
        cmocka_unit_test_setup_teardown(leases_are_as_described, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_errors_are_as_described, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
