/* Entries of a stream as jobs: which fields are taken, which are refused, and that no value can become another member. */
#include "guests/source_entry.h"

#include "support/check.h"
#include "support/configs.h"

enum { FIELDS_MAX = 12 };

static struct config *config;

static bool read_entry(const char *const *fields, struct arena *memory, struct op_insert *insert, struct problem *problem)
{
    struct slice texts[FIELDS_MAX];
    struct stream_entry entry = { .id = SLICE("17-0"), .fields = texts };
    const struct source_config *source = &config->sources[fields[0][0] == '@'];
    const struct job_reader reader = { .config = config,
                                       .tenant_bound = source->tenant ? slice_from(source->tenant) : (struct slice){ NULL, 0 },
                                       .priority_max = PRIORITY_CRITICAL, .now = INT64_C(1736678400000), .memory = memory };
    for (size_t i = fields[0][0] == '@'; fields[i]; i++)
        texts[entry.field_count++] = slice_from(fields[i]);
    return source_entry_read(source, &reader, &entry, insert, problem);
}

static void fields_are_members(void **state)
{
    static const struct {
        const char *fields[FIELDS_MAX];
        const char *id, *tenant, *payload, *type;
    } cases[] = {
        { { "payload", "hello" }, "in-17-0", "", "hello", "text/plain; charset=utf-8" },
        { { "payload", " {\"a\": 19.90} ", "id", "x" }, "x", "", "{\"a\": 19.90}", "application/json" },
        { { "payload", "{broken", "tenant", "t" }, "in-17-0", "t", "{broken", "text/plain; charset=utf-8" },
        { { "payload", "\"}, \"tenant\": \"evil" }, "in-17-0", "", "\"}, \"tenant\": \"evil", "text/plain; charset=utf-8" },
        { { "payload", "\xff" }, "in-17-0", "", "\xff", "application/octet-stream" },
        { { "payload", "x", "destination", "elsewhere", "idempotency_key", "t/1", "attempt", "3" }, "in-17-0", "", "x",
          "text/plain; charset=utf-8" },
        { { "payload", "x", "content_type", "text/xml", "priority", "high" }, "in-17-0", "", "x", "text/xml" },
        { { "@", "payload", "x" }, "bound-17-0", "acme", "x", "text/plain; charset=utf-8" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena memory = { 0 };
        struct op_insert insert;
        struct problem problem;
        check(read_entry(cases[i].fields, &memory, &insert, &problem), "%zu: %s", i, problem.detail);
        check(slice_equal(insert.id, slice_from(cases[i].id)), "%zu: id %.*s", i, SLICE_ARG(insert.id));
        check(slice_equal(insert.tenant, slice_from(cases[i].tenant)), "%zu: tenant %.*s", i, SLICE_ARG(insert.tenant));
        check(slice_equal(insert.payload, slice_from(cases[i].payload)), "%zu: payload %.*s", i, SLICE_ARG(insert.payload));
        check(slice_equal(insert.content_type, slice_from(cases[i].type)), "%zu: %.*s", i, SLICE_ARG(insert.content_type));
        check(slice_equal(insert.destination, SLICE("x")), "%zu: goes to %.*s", i, SLICE_ARG(insert.destination));
        arena_release(&memory);
    }
}

static void what_is_no_job_says_why(void **state)
{
    static const struct {
        const char *fields[FIELDS_MAX];
        const char *says;
    } cases[] = {
        { { "id", "x" }, "payload is missing" },
        { { "payload", "x", "run_art", "now" }, "\"run_art\" is not known" },
        { { "payload", "x", "payload", "y" }, "payload is there twice" },
        { { "payload", "x", "metadata", "{}, \"tenant\": \"other\"" }, "metadata is no JSON object" },
        { { "payload", "x", "headers", "[]" }, "headers is no JSON object" },
        { { "payload", "x", "callback", "" }, "callback is no JSON object" },
        { { "payload", "x", "tenant", "\xff" }, "tenant is not UTF-8" },
        { { "payload", "x", "id", "" }, "id" },
        { { "payload", "x", "deadline", "2020-01-01T00:00:00Z" }, "deadline" },
        { { "@", "payload", "x", "tenant", "other" }, "tenant \"acme\" only" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena memory = { 0 };
        struct op_insert insert;
        struct problem problem;
        check(!read_entry(cases[i].fields, &memory, &insert, &problem), "%zu was taken", i);
        check(strstr(problem.detail, cases[i].says) != NULL && problem.status != 503, "%zu: %s", i, problem.detail);
        arena_release(&memory);
    }
}

static void a_wrong_source_is_refused(void **state)
{
    static const struct {
        const char *item, *says;
    } cases[] = {
        { "{ name: a, stream: s, destination: x }", "needs name, redis, stream and destination" },
        { "{ name: a, redis: 'http://h/', stream: s, destination: x }", "must be redis://" },
        { "{ name: a, redis: 'redis://h/', stream: s, destination: nobody }", "a goes to \"nobody\", which is no destination" },
        { "{ name: a, redis: 'redis://h/', stream: s, destination: x, rejected: s }", "another stream" },
        { "{ name: a, redis: 'redis://h/', stream: s, destination: x, tls: { cert: c.pem } }", "belong together" },
        { "{ name: a, redis: 'redis://h/', stream: s, destination: x, strem: t }", "strem" },
        { "{ name: a, redis: 'redis://h/', stream: s, destination: x, batch: 0 }", "batch" },
        { "{ name: a, redis: 'redis://h/', stream: s, destination: x }\n  - { name: a, redis: 'redis://h/', stream: t, destination: x }",
          "two items of sources are called \"a\"" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct config *read = NULL;
        struct buffer text, problems;
        buffer_init(&text, PROBLEMS_BYTES);
        buffer_init(&problems, PROBLEMS_BYTES);
        buffer_printf(&text, D "sources:\n  - %s\n", cases[i].item);
        check(config_parse(buffer_slice(&text), "test", &read, &problems) != STATUS_OK, "%zu is taken", i);
        check(slice_search(buffer_slice(&problems), slice_from(cases[i].says)) < problems.len, "%zu: %.*s", i,
              SLICE_ARG(buffer_slice(&problems)));
        buffer_release(&text);
        buffer_release(&problems);
    }
}

static int read_config(void **state)
{
    (void)state;
    config = config_from(SLICE("sources:\n  - { name: in, redis: 'redis://h/', stream: s, destination: x }\n"
                               "  - { name: bound, redis: 'redis://h/', stream: s, destination: x, tenant: acme }\n" D),
                         "test");
    return 0;
}

static int drop_config(void **state)
{
    (void)state;
    config_unref(config);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_members),
        cmocka_unit_test(what_is_no_job_says_why),
        cmocka_unit_test(a_wrong_source_is_refused),
    };
    return cmocka_run_group_tests(tests, read_config, drop_config);
}
