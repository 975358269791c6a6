/*
 * What is wrong with a body is told with its place, in the body as it was sent.
 */
#include "base/text_place.h"
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

static void places_are_counted(void **state)
{
    static const struct { const char *text; size_t offset, line, column; } cases[] = {
        { "", 0, 1, 1 }, { "abc", 2, 1, 3 }, { "a\nbc", 2, 2, 1 }, { "a\n\nbc", 4, 3, 2 }, { "\xc3\xa9x", 2, 1, 2 },
        { "a\n", 2, 2, 1 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct text_place place = text_place_of(TEXT_PLACE_FIRST, slice_from(cases[i].text), cases[i].offset);
        check(place.line == cases[i].line && place.column == cases[i].column, "case %zu: %zu, %zu", i, place.line,
              place.column);
    }
    struct text_place inner = text_place_within((struct text_place){ 3, 5 }, (struct text_place){ 1, 2 });
    check(inner.line == 3 && inner.column == 6, "%zu, %zu", inner.line, inner.column);
    inner = text_place_within((struct text_place){ 3, 5 }, (struct text_place){ 2, 2 });
    check(inner.line == 4 && inner.column == 2, "%zu, %zu", inner.line, inner.column);
    assert_int_equal(text_place_within((struct text_place){ 3, 5 }, (struct text_place){ 0 }).line, 0);
}

struct place_case {
    const char *name, *method, *path, *body, *type;
    int line, column; /* 0: not told */
};

static const struct place_case cases[] = {
    { "a comma too many", "POST", "/v1/jobs", "{\n \"destination\": \"yard\",\n}", "invalid_json", 3, 1 },
    { "the end is missing", "POST", "/v1/jobs", "{\"payload\":1", "invalid_json", 1, 12 },
    { "behind a payload of many lines", "POST", "/v1/jobs", "{\n \"payload\": {\n \"a\": [1,\n 2]\n },\n \"id\": x\n}",
      "invalid_json", 6, 8 },
    { "behind a long payload", "POST", "/v1/jobs", "{\"payload\":\"0123456789\",\"id\":?}", "invalid_json", 1, 30 },
    { "in the payload", "POST", "/v1/jobs", "{\n\"payload\": {\n  \"a\": tru\n}}", "invalid_json", 3, 10 },
    { "behind letters of two bytes", "POST", "/v1/jobs", "{\"id\":\"\xc3\xa9\xc3\xa9\xc3\xa9\",?", "invalid_json", 1, 13 },
    { "the same twice", "POST", "/v1/jobs", "{\"id\":\"a\",\n\"id\":\"b\"}", "invalid_json", 2, 4 },
    { "no object", "POST", "/v1/jobs", "[1]", "invalid_json", 1, 1 },
    { "an unknown member", "POST", "/v1/jobs", "{\"destination\":\"yard\",\n  \"payload\":1,\n  \"colour\": 1}",
      "unknown_member", 3, 3 },
    { "a bad time", "POST", "/v1/jobs", "{\"destination\":\"yard\",\n\"run_at\":\"noon\",\"payload\":1}", "invalid_time", 2, 1 },
    { "a deadline that has passed", "POST", "/v1/jobs",
      "{\"destination\":\"yard\",\"payload\":1,\n \"deadline\":\"2001-01-01T00:00:00Z\"}", "deadline_passed", 2, 2 },
    { "a bad id", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"id\":7}", "invalid_id", 1, 35 },
    { "a bad tenant", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"tenant\":7}", "invalid_member", 1, 35 },
    { "a bad priority", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"priority\":7}", "invalid_priority", 1, 35 },
    { "bad headers", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"headers\":7}", "invalid_header", 1, 35 },
    { "bad metadata", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"metadata\":7}", "invalid_member", 1, 35 },
    { "a bad type", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1,\"content_type\":7}", "invalid_member", 1, 35 },
    { "bad Base64", "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload_base64\":\"?\"}", "invalid_payload", 1, 23 },
    { "an unknown destination", "POST", "/v1/jobs", "\n{\"destination\":\"yrd\",\"payload\":1}", "unknown_destination", 2, 2 },
    { "nothing to point at", "POST", "/v1/jobs", "{\"payload\":1}", "invalid_member", 0, 0 },
    { "a body of another kind", "POST", "/v1/leases", "{\n\"destinaton\":\"yard\"}", "unknown_member", 2, 1 },
    { "not JSON, of another kind", "POST", "/v1/leases", "{\n\"destination\":}", "invalid_json", 2, 15 },
    { "a broken array", "POST", "/v1/jobs/batch", "[{\"destination\":\"yard\",\"payload\":1}\n {}]", "invalid_json", 2, 2 },
};

static void problems_say_where(void **state)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct reply reply = http_do(*state, cases[i].method, cases[i].path, cases[i].body);
        check(strcmp(reply_text(&reply, "type"), cases[i].type) == 0, "%s: %s", cases[i].name, reply.body);
        check(!reply_at(&reply, "line") == (cases[i].line == 0), "%s: %s", cases[i].name, reply.body);
        if (cases[i].line > 0)
            check(reply_int(&reply, "line") == cases[i].line && reply_int(&reply, "column") == cases[i].column, "%s: %s",
                  cases[i].name, reply.body);
        check((strstr(reply_text(&reply, "detail"), "(line ") != NULL) == (strcmp(cases[i].type, "invalid_json") == 0),
              "%s: %s", cases[i].name, reply.body);
        reply_release(&reply);
    }
}

/* Counted in the whole, not from the element's beginning. */
static void problems_of_many_say_where(void **state)
{
    static const struct { const char *name, *body; int index, line, column; } rows[] = {
        { "lines", "{\"destination\":\"yard\",\"payload\":1}\n\n{\"destination\":\"yard\",\"payload\":2}\n  {\"payload\":}\n", 2, 4, 14 },
        { "an array", "[\n {\"destination\":\"yard\",\"payload\":1},\n {\"destination\":\"yard\",\n \"payload\":1,\"x\":2}]", 1, 4, 14 },
        { "the first", "\n [{\"x\":1}]", 0, 2, 4 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = http_do(*state, "POST", "/v1/jobs/batch", rows[i].body);
        check(reply_int(&reply, "rejected.0.index") == rows[i].index, "%s: %s", rows[i].name, reply.body);
        check(reply_int(&reply, "rejected.0.line") == rows[i].line, "%s: %s", rows[i].name, reply.body);
        check(reply_int(&reply, "rejected.0.column") == rows[i].column, "%s: %s", rows[i].name, reply.body);
        check(!strstr(reply_text(&reply, "rejected.0.detail"), "(line"), "%s: %s", rows[i].name, reply.body);
        reply_release(&reply);
    }
}

/* Each place is found from the one before: the work grows with the body, not with its square. */
static void many_refusals_are_quick(void **state)
{
    enum { LINES = 50000 };
    char *body = malloc(LINES * 4 + 1);
    assert_non_null(body);
    for (size_t i = 0; i < LINES; i++)
        memcpy(body + i * 4, "{x}\n", 5);
    struct reply reply = http_do(*state, "POST", "/v1/jobs/batch", body);
    assert_int_equal(json_array_size(reply_at(&reply, "rejected")), LINES);
    check(reply_int(&reply, "rejected.49999.line") == LINES, "%s", "the last");
    reply_release(&reply);
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_counted),
        cmocka_unit_test_setup_teardown(problems_say_where, setup, teardown),
        cmocka_unit_test_setup_teardown(problems_of_many_say_where, setup, teardown),
        cmocka_unit_test_setup_teardown(many_refusals_are_quick, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
