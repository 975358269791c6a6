/*
 * Ages of dead letters: a page a look, a pass after the other.
 */
#include "api/observe/dead_ages.h"
#include "support/check.h"
#include "support/stage.h"

#include <stdio.h>

static const instant began = INT64_C(1736678400000);

static int64_t refuses(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->outcome = OUTCOME_PERMANENT;
    answer->code = SLICE("http:400");
    answer->text = SLICE("HTTP 400: no");
    return 1;
}

static void die(struct stage *stage, const char *destination, int count)
{
    static int number;
    for (int i = 0; i < count; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", number++);
        stage_add(stage, destination, "t", id, "x");
    }
    stage_run_for(stage, MINUTE_MS);
}

static void look(struct dead_ages *ages, struct stage *stage)
{
    struct error error;
    int looks = 0;
    do
        check(dead_ages_look(ages, stage->reader, stage->now, &error) == STATUS_OK, "%s", error.text);
    while (ages->before_seq != 0 && ++looks < DEAD_AGES_LOOKS);
}

static void a_long_list_takes_several_looks(void **state)
{
    enum { FIRST = 1500, SECOND = 10 };
    struct stage stage = { .destination = refuses };
    struct dead_ages *ages;
    struct error error;
    (void)state;
    stage_begin(&stage, "destinations: { a: { url: 'http://127.0.0.1:1/', allow_private: true },\n"
                        "                b: { url: 'http://127.0.0.1:1/', allow_private: true } }\n", began);
    assert_int_equal(dead_ages_new(1, &ages, &error), STATUS_OK);
    die(&stage, "a", FIRST);
    stage_run_for(&stage, 2 * HOUR_MS);
    die(&stage, "b", SECOND);
    look(ages, &stage);
    assert_null(dead_ages_of(ages, SLICE("a"))); /* the pass is not over */
    look(ages, &stage);
    const struct histogram *a = dead_ages_of(ages, SLICE("a")), *b = dead_ages_of(ages, SLICE("b"));
    assert_true(a && b);
    assert_int_equal(histogram_total(a), FIRST);
    assert_int_equal(a->counts[4], FIRST); /* over an hour, up to six */
    assert_int_equal(b->counts[0], SECOND);
    look(ages, &stage); /* the next has begun: the last whole one stays */
    assert_int_equal(histogram_total(dead_ages_of(ages, SLICE("a"))), FIRST);
    stage_run_for(&stage, 6 * HOUR_MS);
    look(ages, &stage);
    look(ages, &stage);
    look(ages, &stage);
    assert_int_equal(dead_ages_of(ages, SLICE("a"))->counts[5], FIRST);
    dead_ages_none(ages);
    assert_null(dead_ages_of(ages, SLICE("a")));
    dead_ages_free(ages);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_long_list_takes_several_looks) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
