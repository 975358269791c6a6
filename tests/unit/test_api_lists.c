/*
 * Every list, page by page: whatever the filter and however short the page, each row is told once and in the same order.
 *
 * The lists are the routes of the table that take a cursor, so one that is added is walked without a word here.
 */
#include "api/serve/routes.h"
#include "support/api_fixture.h"
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names and tenants that begin with each other: a cursor that is a name must not swallow those that are longer. */
static const char config[] =
    "destinations:\n"
    "  a: { transport: pull, contingency: { ramp: [5] }, errors: { permanent: [BROKEN] } }\n"
    "  ab: { transport: pull, contingency: { ramp: [5] }, errors: { permanent: [BROKEN] } }\n"
    "  abc: { transport: pull, contingency: { ramp: [5] }, errors: { permanent: [BROKEN] } }\n"
    "  b: { transport: pull }\n";

static const char *const destinations[] = { "a", "ab", "abc" };
static const char *const tenants[] = { "t", "tt", "u" };

static const char *const filters[] = {
    "tenant=t", "tenant=tt", "destination=a", "destination=ab", "state=dead", "state=pending", "state=all", "code=BROKEN", "id=same",
    "job=a-1&tenant=t", "type=accepted", "type=dead,accepted", "format=documents", "severity=critical", "alert=contingency",
};

static void post(struct api_fixture *fixture, const char *path, const char *body)
{
    struct reply reply = http_do(fixture, "POST", path, body);
    check(reply.status == 200 || reply.status == 202, "%s %s: %d %s", path, body, reply.status, reply.body);
    reply_release(&reply);
}

/* Two jobs for each tenant everywhere; the first of each dies. */
static void fill(struct api_fixture *fixture)
{
    char id[32], body[256];
    for (size_t i = 0; i < COUNT_OF(destinations); i++) {
        for (size_t k = 0; k < COUNT_OF(tenants); k++) {
            snprintf(id, sizeof id, "%s-1", destinations[i]);
            put_job(fixture, destinations[i], tenants[k], id, "x");
            snprintf(body, sizeof body, "{\"destination\":\"%s\",\"max\":1,\"wait_s\":30}", destinations[i]);
            struct reply reply = http_do(fixture, "POST", "/v1/leases", body);
            snprintf(body, sizeof body, "{\"lease\":\"%s\",\"error\":\"BROKEN\",\"code\":\"BROKEN\"}", reply_text(&reply, "leases.0.lease"));
            reply_release(&reply);
            post(fixture, "/v1/leases/nack", body);
            snprintf(id, sizeof id, "%s-2", destinations[i]);
            put_job(fixture, destinations[i], tenants[k], id, "x");
        }
        snprintf(body, sizeof body, "/v1/destinations/%s/contingency", destinations[i]);
        post(fixture, body, "{\"enter\":true}");
    }
    for (size_t k = 0; k < COUNT_OF(tenants); k++) {
        put_job(fixture, "b", tenants[k], "same", "x");
        post(fixture, "/v1/dead/redrives", "{\"filter\":{\"code\":\"NONE_HAS_IT\"}}");
        struct reply reply = http_do(fixture, "DELETE", "/v1/subjects/nobody", NULL);
        check(reply.status == 202, "%d %s", reply.status, reply.body);
        reply_release(&reply);
    }
}

/* What tells a row from all others. */
static void append_key(const json_t *row, struct buffer *out)
{
    static const char *const members[] = { "id", "name", "tenant", "destination", "eventType", "timestamp" };
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        const char *text = json_string_value(json_object_get(row, members[i]));
        buffer_append_text(out, text ? text : "");
        buffer_append_text(out, "|");
    }
    buffer_append_text(out, "\n");
}

/* All rows of the list, in pages of `limit`; how many there are. */
static size_t read_list(struct api_fixture *fixture, const char *path, const char *filter, int limit, struct buffer *out)
{
    char address[512], next[128] = "";
    size_t count = 0;
    for (int pages = 0; pages < 500; pages++) {
        snprintf(address, sizeof address, "%s?limit=%d%s%s%s%s", path, limit, filter[0] ? "&" : "", filter, next[0] ? "&cursor=" : "",
                 next);
        struct reply reply = http_do(fixture, "GET", address, NULL);
        check(reply.status == 200, "%s: %d %s", address, reply.status, reply.body);
        const char *key;
        json_t *value, *rows = NULL;
        json_object_foreach(reply.json, key, value)
            rows = json_is_array(value) ? value : rows;
        check(json_array_size(rows) <= (size_t)limit, "%s has %zu", address, json_array_size(rows));
        for (size_t i = 0; i < json_array_size(rows); i++, count++)
            append_key(json_array_get(rows, i), out);
        snprintf(next, sizeof next, "%s", reply_text(&reply, "next"));
        reply_release(&reply);
        if (!next[0])
            return count;
    }
    check(false, "%s has no end", address);
    return 0;
}

static bool takes(const struct route *route, const char *filter)
{
    for (size_t i = 0; route->query && route->query[i]; i++)
        if (strncmp(route->query[i], filter, strlen(route->query[i])) == 0 && filter[strlen(route->query[i])] == '=')
            return true;
    return false;
}

/* state=dead is a job's, state=all an alert's; what the list does not know is refused, and no list. */
static bool is_list(struct api_fixture *fixture, const char *path, const char *filter)
{
    char address[256];
    snprintf(address, sizeof address, "%s?%s", path, filter);
    struct reply reply = http_do(fixture, "GET", address, NULL);
    bool list = reply.status == 200;
    check(list || reply.status == 422, "%s: %d", address, reply.status);
    reply_release(&reply);
    return list;
}

static size_t walk(struct api_fixture *fixture, const char *path, const char *filter)
{
    struct buffer whole;
    buffer_init(&whole, 1 << 20);
    size_t count = read_list(fixture, path, filter, 1000, &whole);
    for (int limit = 1; limit <= 4; limit++) {
        struct buffer pages;
        buffer_init(&pages, 1 << 20);
        read_list(fixture, path, filter, limit, &pages);
        check(slice_equal(buffer_slice(&whole), buffer_slice(&pages)), "%s?%s by %d:\n%.*s\nnot\n%.*s", path, filter, limit,
              SLICE_ARG(buffer_slice(&pages)), SLICE_ARG(buffer_slice(&whole)));
        buffer_release(&pages);
    }
    buffer_release(&whole);
    return count;
}

static void every_row_is_told_once(void **state)
{
    static const struct api_fixture_settings settings = { .config = config };
    struct api_fixture *fixture = api_fixture_new(&settings);
    size_t lists = 0, filtered = 0;
    (void)state;
    fill(fixture);
    await_text(fixture, "/v1/destinations/abc", "mode", "contingency");
    for (const struct route *route = api_routes; route->method; route++) {
        if (!takes(route, "cursor=") || strcmp(route->method, "GET") != 0)
            continue;
        lists++;
        check(walk(fixture, route->pattern, "") > 2, "%s has too little to be walked", route->pattern);
        for (size_t i = 0; i < COUNT_OF(filters); i++)
            if (takes(route, filters[i]) && is_list(fixture, route->pattern, filters[i]))
                filtered += walk(fixture, route->pattern, filters[i]) > 0;
    }
    check(lists >= 7 && filtered >= 18, "%zu lists, %zu filters that found something", lists, filtered);
    api_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_row_is_told_once) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
