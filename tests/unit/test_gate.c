/*
 * Whether a destination may be sent to.
 */
#include "core/gate.h"

#include "support/check.h"

#include <string.h>

enum { NOW = 1000 };

static void each_gate_answers(void **state)
{
    static const struct { const char *name; struct gate gate; struct gate_answer answer; const char *held_by; } cases[] = {
        { "open", { 5, 0, false, INSTANT_NONE }, { 5, HOLD_NONE, INSTANT_NONE }, NULL },
        { "some under way", { 5, 3, false, INSTANT_NONE }, { 2, HOLD_NONE, INSTANT_NONE }, NULL },
        { "as many as allowed", { 5, 5, false, INSTANT_NONE }, { 0, HOLD_CONCURRENCY, INSTANT_NONE }, "concurrency" },
        { "more than allowed, after a reload", { 2, 5, false, INSTANT_NONE }, { 0, HOLD_CONCURRENCY, INSTANT_NONE },
          "concurrency" },
        { "paused", { 5, 0, true, INSTANT_NONE }, { 0, HOLD_PAUSED, INSTANT_NONE }, "paused" },
        { "throttled", { 5, 0, false, NOW + 1 }, { 0, HOLD_THROTTLE, NOW + 1 }, "throttle" },
        { "the throttle ends now", { 5, 0, false, NOW }, { 5, HOLD_NONE, INSTANT_NONE }, NULL },
        { "the throttle ended", { 5, 1, false, NOW - 1 }, { 4, HOLD_NONE, INSTANT_NONE }, NULL },
        { "a pause stands above a throttle: no time ends it", { 5, 0, true, NOW + 1 }, { 0, HOLD_PAUSED, INSTANT_NONE },
          "paused" },
        { "a throttle stands above concurrency: it has a time", { 1, 1, false, NOW + 9 }, { 0, HOLD_THROTTLE, NOW + 9 },
          "throttle" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gate_answer answer = gate_ask(&cases[i].gate, NOW);
        const char *held_by = gate_hold_name(answer.hold);
        check(answer.room == cases[i].answer.room, "%s: room %lld", cases[i].name, (long long)answer.room);
        check(answer.hold == cases[i].answer.hold, "%s: hold %d", cases[i].name, answer.hold);
        check(answer.until == cases[i].answer.until, "%s: until %lld", cases[i].name, (long long)answer.until);
        check(!held_by == !cases[i].held_by && (!held_by || strcmp(held_by, cases[i].held_by) == 0), "%s: %s", cases[i].name,
              held_by ? held_by : "(none)");
    }
}

static void a_shorter_wish_never_shortens(void **state)
{
    static const struct { instant before, wish, after; } cases[] = {
        { INSTANT_NONE, 50, 50 }, { 50, 80, 80 }, { 80, 50, 80 }, { 80, 80, 80 }, { 80, INSTANT_NONE, 80 },
        { INSTANT_NONE, INSTANT_NONE, INSTANT_NONE },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gate gate = { .concurrency = 1, .closed_until = cases[i].before };
        gate_close_until(&gate, cases[i].wish);
        check(gate.closed_until == cases[i].after, "case %zu: %lld", i, (long long)gate.closed_until);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gate_answers),
        cmocka_unit_test(a_shorter_wish_never_shortens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
