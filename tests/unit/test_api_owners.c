/*
 * A destination whose owner nobody knows: what only its engine can answer is 503 and changes nothing; everything else goes on.
 */
#include "support/api_fixture.h"
#include "support/check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char config[] =
    "listen: 127.0.0.1:0\n"
    "store: 'memory:'\n"
    "destinations:\n"
    "  web: { transport: http, url: 'http://127.0.0.1:1/', allow_private: true }\n"
    "  other: { transport: http, url: 'http://127.0.0.1:1/', allow_private: true }\n"
    "  yard: { transport: pull }\n";

/* The table of owners: one row can be missing. */
static atomic_bool lost;

static enum owner owner_of(void *ignored, struct slice destination, struct owner_place *ret_place)
{
    (void)ignored;
    *ret_place = (struct owner_place){ 0 };
    return lost && !slice_equal(destination, SLICE("other")) ? OWNER_UNKNOWN : OWNER_HERE;
}

static void expect(struct reply reply, int status, const char *type, const char *about)
{
    check(reply.status == status, "%s: %d %s", about, reply.status, reply.body);
    check(strstr(reply_text(&reply, "type"), type), "%s: %s", about, reply.body);
    char *retry = reply_header(&reply, "Retry-After");
    check(status != 503 || (retry && strcmp(retry, "2") == 0), "%s: Retry-After %s", about, retry ? retry : "-");
    free(retry);
    reply_release(&reply);
}

static void lease_one(struct api_fixture *fixture, char ret_body[160], const char *members)
{
    struct reply reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"wait_s\":60}");
    check(reply.status == 200, "%s", reply.body);
    snprintf(ret_body, 160, "{\"lease\":\"%s\"%s}", reply_text(&reply, "leases.0.lease"), members);
    reply_release(&reply);
}

static const struct { const char *method, *path, *body; int lost, here; } calls[] = {
    { "GET", "/v1/destinations/web", NULL, 503, 200 },
    { "GET", "/v1/jobs/done/why?tenant=t", NULL, 503, 200 },
    { "GET", "/v1/errors?destination=web", NULL, 503, 200 },
    { "POST", "/v1/leases", "{\"destination\":\"yard\"}", 503, 200 },
    { "POST", "/v1/destinations/web/pause", "{}", 503, 200 },
    { "POST", "/v1/destinations/web/resume", "{}", 503, 200 },
    { "POST", "/v1/destinations/web/pause", "{\"tenant\":\"t\"}", 503, 200 },
    { "POST", "/v1/destinations/web/resume", "{\"tenant\":\"t\"}", 503, 200 },
    { "POST", "/v1/destinations/web/contingency", "{\"enter\":true}", 503, 200 },
    { "POST", "/v1/destinations/web/contingency", "{\"enter\":false}", 503, 200 },
    { "GET", "/v1/destinations", NULL, 200, 200 },
    { "GET", "/v1/destinations/other", NULL, 200, 200 },
    { "POST", "/v1/destinations/other/pause", "{}", 200, 200 },
    { "GET", "/v1/jobs/done?tenant=t", NULL, 200, 200 },
    { "GET", "/v1/jobs", NULL, 200, 200 },
    { "GET", "/v1/tenants", NULL, 200, 200 },
    { "GET", "/v1/stats", NULL, 200, 200 },
    { "GET", "/v1/errors", NULL, 200, 200 },
    { "GET", "/metrics", NULL, 200, 200 },
    { "GET", "/livez", NULL, 200, 200 },
    { "POST", "/v1/jobs", "{\"destination\":\"web\",\"payload\":\"well\"}", 201, 201 },
};

static void what_only_the_owner_knows_waits_for_one(void **state)
{
    char acked[160], nacked[160];
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .config = config, .owner = owner_of });
    (void)state;
    put_job(fixture, "web", "t", "done", "well");
    await_state(fixture, "/v1/jobs/done?tenant=t", "completed");
    put_job(fixture, "yard", "t", "first", "one");
    put_job(fixture, "yard", "t", "second", "two");
    lease_one(fixture, acked, "");
    lease_one(fixture, nacked, ",\"error\":\"rain\"");

    lost = true;
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        expect(http_do(fixture, calls[i].method, calls[i].path, calls[i].body), calls[i].lost,
               calls[i].lost == 503 ? "owner_unknown" : "", calls[i].path);
    expect(http_do(fixture, "POST", "/v1/leases/nack", nacked), 503, "owner_unknown", "nack");
    expect(http_do(fixture, "POST", "/v1/leases/extend", nacked), 422, "", "extend takes no error");
    expect(http_do(fixture, "POST", "/v1/leases/ack", acked), 200, "", "an ack settles where it arrives");
    struct reply list = http_do(fixture, "GET", "/v1/destinations", NULL);
    for (size_t i = 0; i < json_array_size(reply_at(&list, "destinations")); i++) {
        const json_t *row = json_array_get(reply_at(&list, "destinations"), i);
        bool other = strcmp(json_string_value(json_object_get(row, "name")), "other") == 0;
        check(!json_object_get(row, "breaker") == !other, "told of what is here alone: %s", list.body);
    }
    reply_release(&list);

    lost = false;
    await_text(fixture, "/v1/destinations/web", "mode", "normal"); /* no order was taken */
    expect(http_do(fixture, "POST", "/v1/leases/nack", nacked), 200, "", "nack, once there is an owner");
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        expect(http_do(fixture, calls[i].method, calls[i].path, calls[i].body), calls[i].here, "", calls[i].path);
    api_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_only_the_owner_knows_waits_for_one) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
