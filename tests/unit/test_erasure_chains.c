/*
 * What the trails of several nodes say of a person, from the inside: the store in memory, on which the other tests run the
 * engine, has one trail.
 */
#include "engine/erasures/erasures.c"

#include "support/check.h"

enum { PASS_AT = 20 };

#define OF(chain, number) (((int64_t)(chain) << EVENT_CHAIN_SHIFT) + (number))
#define SAYS SLICE("{\"to\":\"ana@x.py\"}")

/* As a store reads them: one trail after the other. */
static const struct event trail[] = {
    { .number = OF(0, 1), .at = 10, .data = SLICE("{}") },
    { .number = OF(0, 2), .at = 11, .data = SAYS },
    { .number = OF(0, 3), .at = 30, .data = SAYS },
    { .number = OF(1, 1), .at = 12, .data = SAYS },
    { .number = OF(1, 2), .at = 40, .data = SAYS },
    { .number = OF(1, 3), .at = 41, .data = SAYS },
    { .number = OF(7, 5), .at = 13, .data = SAYS },
};

static enum status events_after(struct store_reader *reader, int64_t after, size_t max, struct arena *memory,
                                struct event **ret_events, size_t *ret_count, struct error *err)
{
    (void)reader;
    (void)err;
    *ret_count = 0;
    *ret_events = arena_alloc_array(memory, COUNT_OF(trail), sizeof **ret_events);
    assert_non_null(*ret_events);
    for (size_t i = 0; i < COUNT_OF(trail) && *ret_count < max; i++)
        if (trail[i].number > after)
            (*ret_events)[(*ret_count)++] = trail[i];
    return STATUS_OK;
}

/* A trail is left where the pass began, and the next one is read from its beginning. */
static void every_trail_is_read_to_where_the_pass_began(void **state)
{
    static const int64_t expected[] = { OF(0, 2), OF(1, 1), OF(7, 5) };
    const struct store_ops ops = { .reader_events = events_after };
    struct store_reader reader = { .ops = &ops };
    struct erasure erasure = { .record = { .pass_at = PASS_AT, .tenant = SLICE("") } };
    struct error err = { 0 };
    int pieces = 0;
    (void)state;
    assert_int_equal(subject_init(&erasure.subject, SLICE("ana@x.py"), &err), STATUS_OK);
    for (; !erasure.over && pieces < 10; pieces++)
        assert_int_equal(events_read(&erasure, &reader, &err), STATUS_OK);
    assert_true(erasure.over);
    assert_int_equal(erasure.events.count, COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++)
        check(erasure.events.numbers[i] == expected[i], "event %zu is %lld", i, (long long)erasure.events.numbers[i]);
    arena_release(&erasure.question.read.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_trail_is_read_to_where_the_pass_began),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
