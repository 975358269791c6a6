/*
 * /v1/errors: what pull workers' jobs teach, who may read it, and what is proposed.
 */
#include "support/api_fixture.h"
#include "support/check.h"

#include <stdio.h>

static const char config[] =
    "listen: 127.0.0.1:0\n"
    "store: 'memory:'\n"
    "destinations:\n"
    "  yard: { transport: pull, retry: { max_retries: 1, base: 1h, factor: 2, cap: 5h, floor: 1h, jitter: 0 },\n"
    "          errors: { permanent: [BROKEN], transient: [TIMEOUT] } }\n"
    "  mail: { transport: pull }\n";

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

static void expect(struct reply reply, int status)
{
    check(reply.status == status, "%d %s", reply.status, reply.body);
    reply_release(&reply);
}

/* Leases up to `count` jobs of the yard, one by one, and answers each: with an error, or as done where that is NULL. */
static void work(struct api_fixture *fixture, int count, const char *error)
{
    for (int i = 0; i < count; i++) {
        char body[512], lease[64];
        struct reply reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"wait_s\":30}");
        check(reply.status == 200 && reply_at(&reply, "leases.0"), "%s", reply.body);
        snprintf(lease, sizeof lease, "%s", reply_text(&reply, "leases.0.lease"));
        reply_release(&reply);
        snprintf(body, sizeof body, error ? "{\"lease\":\"%s\",\"error\":\"%s %d\"}" : "{\"lease\":\"%s\"}", lease, error, i);
        expect(http_do(fixture, "POST", error ? "/v1/leases/nack" : "/v1/leases/ack", body), 200);
    }
}

static void add(struct api_fixture *fixture, int count)
{
    for (int i = 0; i < count; i++)
        expect(http_do(fixture, "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1}"), 201);
}

static void check_first(struct api_fixture *fixture, int64_t seen, int64_t recovered, int64_t gave_up)
{
    struct reply reply = http_do(fixture, "GET", "/v1/errors", NULL);
    check(reply.status == 200 && reply_int(&reply, "errors.0.seen") == seen &&
              reply_int(&reply, "errors.0.recovered") == recovered && reply_int(&reply, "errors.0.gave_up") == gave_up,
          "%s", reply.body);
    reply_release(&reply);
}

static void pull_workers_teach_too(void **state)
{
    struct api_fixture *fixture = *state;
    add(fixture, 2);
    work(fixture, 2, "bucket is warming");
    check_first(fixture, 2, 0, 0);
    api_fixture_advance(fixture, 3601 * 1000);
    work(fixture, 1, NULL);
    check_first(fixture, 2, 1, 0);
    work(fixture, 1, "bucket is warming");
    check_first(fixture, 3, 1, 1);
    struct reply reply = http_do(fixture, "GET", "/v1/errors?destination=mail", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "errors")), 0);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/errors?destination=yard&limit=1", NULL);
    assert_string_equal(reply_text(&reply, "errors.0.sample"), "bucket is warming <number>");
    assert_string_equal(reply_text(&reply, "errors.0.destination"), "yard");
    assert_true(json_is_null(reply_at(&reply, "errors.0.proposal")));
    check(json_number_value(reply_at(&reply, "errors.0.odds.mean")) == 0.5, "%s", reply.body);
    check(json_number_value(reply_at(&reply, "errors.0.odds.low")) == 0.1354, "%s", reply.body);
    reply_release(&reply);
}

static void a_known_error_is_not_listed(void **state)
{
    struct api_fixture *fixture = *state;
    add(fixture, 1);
    work(fixture, 1, "TIMEOUT");
    struct reply reply = http_do(fixture, "GET", "/v1/errors", NULL);
    assert_string_equal(reply.body, "{\"errors\":[]}");
    reply_release(&reply);
}

/* S1-090 S2-122 */
static void enough_recoveries_bring_a_proposal(void **state)
{
    struct api_fixture *fixture = *state;
    add(fixture, 20);
    work(fixture, 20, "bucket is warming");
    api_fixture_advance(fixture, 3601 * 1000);
    work(fixture, 20, NULL);
    check_first(fixture, 20, 20, 0);
    struct reply reply = http_do(fixture, "GET", "/v1/errors", NULL);
    assert_string_equal(reply_text(&reply, "errors.0.proposal.class"), "transient");
    assert_string_equal(reply_text(&reply, "errors.0.proposal.yaml"),
                        "destinations:\n  yard:\n    errors:\n      transient+: ['/bucket is warming/']\n");
    reply_release(&reply);
}

static void forgetting_begins_anew(void **state)
{
    struct api_fixture *fixture = *state;
    char path[64];
    add(fixture, 1);
    work(fixture, 1, "bucket is warming");
    struct reply reply = http_do(fixture, "GET", "/v1/errors", NULL);
    snprintf(path, sizeof path, "/v1/errors/%s?destination=mail", reply_text(&reply, "errors.0.fingerprint"));
    reply_release(&reply);
    reply = http_do(fixture, "DELETE", path, NULL);
    assert_int_equal(reply.status, 404);
    assert_string_equal(reply_text(&reply, "type"), "error_not_found");
    reply_release(&reply);
    *strchr(path, '?') = '\0';
    reply = http_do(fixture, "DELETE", path, NULL);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply_int(&reply, "forgotten"), 1);
    reply_release(&reply);
    expect(http_do(fixture, "DELETE", path, NULL), 404);
}

/* Of all tenants: a token for one of them may not. */
static void only_who_may_read_all_reads_it(void **state)
{
    static const char tokens[] = /* the hashes of the tokens below */
        "tokens:\n"
        "  - { name: all, sha256: 01912f65bfa8acb7fcf2ace6f8eb896cd0920a79aa90e3bc15ce327e2c72a5df, scopes: [read] }\n"
        "  - { name: one, sha256: 8e64ccaee5db98e89017f5205061a209be295cc49c184ee7dc8453ff9b593a4d, scopes: [read, operate], tenant: t }\n";
    static const struct { const char *method, *path, *token; int status; } cases[] = {
        { "GET", "/v1/errors", "reader-of-everything-0001", 200 },
        { "GET", "/v1/errors", "reader-of-one-tenant-0001", 403 },
        { "GET", "/v1/errors", NULL, 401 },
        { "DELETE", "/v1/errors/0123456789abcdef", "reader-of-everything-0001", 403 },
        { "DELETE", "/v1/errors/0123456789abcdef", "reader-of-one-tenant-0001", 403 },
    };
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .config = config, .tokens = tokens });
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        expect(http_ask(fixture, &(struct request){ .method = cases[i].method, .path = cases[i].path, .token = cases[i].token }),
               cases[i].status);
    api_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pull_workers_teach_too, setup, teardown),
        cmocka_unit_test_setup_teardown(a_known_error_is_not_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(enough_recoveries_bring_a_proposal, setup, teardown),
        cmocka_unit_test_setup_teardown(forgetting_begins_anew, setup, teardown),
        cmocka_unit_test(only_who_may_read_all_reads_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
