/*
 * Why a job is where it is, in words: what holds it when several things do, and what is said of it.
 */
#include "api/jobs/why.h"
#include "engine/status.h"
#include "support/check.h"

#include <stdio.h>

#define NOW INT64_C(1736678400000) /* 2025-01-12T10:40:00Z */

static const struct destination_config pushed = { .transport = TRANSPORT_HTTP };
static const struct destination_config pulled = { .transport = TRANSPORT_PULL };
static const struct lane_hold held = { .held = true, .since = NOW - 5000, .reason = "unpaid", .look_at = INSTANT_NONE };
static const struct lane_hold refused = { .held = true, .blocked = true, .since = NOW - 5000, .look_at = NOW + 60000,
                                          .reason = "job k of tenant t was refused: http:401, HTTP 401" };

#define STATUS .known = true, .mode_since = NOW, .held_since = NOW - 1000, .concurrency = 25, \
    .limit = { .now = 10, .max = 25, .reason = LIMIT_BORNE, .sign = SIGN_FAILURES, .fell_from = 11, .rises_at = INSTANT_NONE }
#define FREE { STATUS, .mode = "normal", .held_until = INSTANT_NONE, .look_at = INSTANT_NONE }
#define HELD(by, until) { STATUS, .mode = "normal", .held_by = by, .held_until = until, .look_at = INSTANT_NONE }
#define DOWN(by, why) { STATUS, .mode = "contingency", .held_by = by, .cause = why, .held_until = INSTANT_NONE, .look_at = NOW + 60000 }

static const struct why_case {
    const char *name;
    const struct destination_config *destination;
    struct destination_status status;
    bool lane_held;
    instant tenant_until, expected, run_at;
    const char *held_by; /* NULL: nothing */
    const char *said;    /* somewhere in the answer */
} cases[] = {
    { "its turn", &pushed, FREE, false, INSTANT_NONE, NOW + 500, NOW, NULL, "sent when its turn comes, at about 2025-01-12T10:40:00.500Z" },
    { "a worker's turn", &pulled, FREE, false, INSTANT_NONE, INSTANT_NONE, NOW, NULL, "a worker gets it when its turn comes" },
    { "an outage", &pushed, DOWN("contingency", "breaker"), false, INSTANT_NONE, INSTANT_NONE, NOW, "contingency",
      "destination d is in contingency because too many sends failed and the breaker opened" },
    { "an outage has no known end, but a next look", &pushed, DOWN("contingency", "breaker"), false, INSTANT_NONE, INSTANT_NONE, NOW,
      "contingency", "\"next_look_at\":\"2025-01-12T10:41:00.000Z\",\"next_at\"" },
    { "and it is said so", &pushed, DOWN("contingency", "breaker"), false, INSTANT_NONE, INSTANT_NONE, NOW, "contingency",
      "; the next look is at 2025-01-12T10:41:00.000Z" },
    { "all places are taken", &pushed, HELD("concurrency", INSTANT_NONE), false, INSTANT_NONE, INSTANT_NONE, NOW, "concurrency",
      "all 10 sends that destination d allows now are under way (10 of 25: with 11 at once more failed)" },
    { "an outage, and its tenant is held: that lasts", &pushed, DOWN("contingency", "breaker"), true, INSTANT_NONE, INSTANT_NONE, NOW,
      "tenant_paused", "tenant t is paused at destination d (unpaid)" },
    { "an operator holds both", &pushed, DOWN("contingency", "operator"), true, INSTANT_NONE, INSTANT_NONE, NOW, "contingency",
      "insist dest contingency d --leave" },
    { "both are paused", &pushed, HELD("paused", INSTANT_NONE), true, INSTANT_NONE, INSTANT_NONE, NOW, "paused",
      "insist dest resume d\"" },
    { "its tenant is held: nobody knows until when", &pushed, FREE, true, INSTANT_NONE, NOW + 500, NOW, "tenant_paused",
      "\"expected_at\":null" },
    { "and the sentence does not either", &pushed, FREE, true, INSTANT_NONE, NOW + 500, NOW, "tenant_paused", "--tenant 't'\"" },
    { "its tenant is held, and it is not due", &pushed, FREE, true, INSTANT_NONE, INSTANT_NONE, NOW + 9000, "tenant_paused",
      "tenant t is paused" },
    { "a limit of all", &pushed, HELD("rate", NOW + 2000), false, INSTANT_NONE, NOW + 2000, NOW, "rate",
      "destination d has had as many sends as its rate allows" },
    { "a limit of its own that lasts longer", &pushed, HELD("rate", NOW + 2000), false, NOW + 3000, NOW + 3000, NOW, "rate",
      "its tenant has had as many sends as rate.per_tenant allows" },
    { "a limit of its own that is over sooner", &pushed, HELD("rate", NOW + 2000), false, NOW + 1000, NOW + 2000, NOW, "rate",
      "destination d has had as many sends as its rate allows" },
    { "a limit, and it is not due", &pushed, HELD("rate", NOW + 2000), false, NOW + 1000, NOW + 9000, NOW + 9000, NULL,
      "its run_at has not come" },
    { "the second address has failed too", &pushed,
      { STATUS, .mode = "contingency", .held_by = "breaker", .cause = "health", .fallback = true, .held_until = NOW + 9000 }, false,
      INSTANT_NONE, NOW + 9000, NOW, "breaker",
      "destination d is in contingency, and its second address is left alone because too many sends failed" },
    { "the second address wants a rest", &pushed,
      { STATUS, .mode = "contingency", .held_by = "throttle", .cause = "health", .fallback = true, .held_until = NOW + 9000 }, false,
      INSTANT_NONE, NOW + 9000, NOW, "throttle", "its second address asked for a pause" },
};

static void what_holds_it_is_said(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct why_case *c = &cases[i];
        const struct job job = { .id = SLICE("j"), .tenant = SLICE("t"), .destination = SLICE("d"), .state = STATE_PENDING,
                                 .run_at = c->run_at, .updated_at = NOW - 9000, .expires_at = INSTANT_NONE };
        const struct why_place place = { .queue = { .known = true, .tenants = 1, .tenant_until = c->tenant_until, .asked_until = INSTANT_NONE,
                                                    .at = c->expected } };
        struct buffer out;
        char word[64] = "";
        buffer_init(&out, 1 << 16);
        why_write(&out, &job, c->destination, &c->status, c->lane_held ? &held : NULL, &place, NOW);
        buffer_append_byte(&out, '\0');
        assert_int_equal(buffer_status(&out), STATUS_OK);
        check(strstr(out.data, c->said) != NULL, "%s: %s", c->name, out.data);
        if (c->held_by)
            snprintf(word, sizeof word, "\"held_by\":\"%s\"", c->held_by);
        check((strstr(out.data, "\"held_by\"") != NULL) == (c->held_by != NULL) && strstr(out.data, word), "%s: %s", c->name,
              out.data);
        buffer_release(&out);
    }
}

/* What is refused: the job alone, its tenant, the destination; when it is looked at, and what to do. */
static void what_is_refused_is_said(void **state)
{
    static const struct {
        struct destination_status status;
        const struct lane_hold *lane;
        const char *held_by;
        const char *said[3];
    } rows[] = {
        { FREE, NULL, "job_blocked",
          { "it was refused, 3 times in a row, the last time at 2025-01-12T10:39:51.000Z: http:403, HTTP 403 no",
            "it is sent again at 2025-01-12T10:44:00.000Z", "insist retry 'j'; if it never will be: insist cancel 'j'" } },
        { HELD("rate", NOW + 2000), NULL, "job_blocked", { "it was refused", "it is sent again at", "insist retry" } },
        { FREE, &refused, "tenant_blocked",
          { "tenant t is held at destination d because its jobs are refused (job k of tenant t was refused: http:401, HTTP 401)",
            "sent to look at 2025-01-12T10:41:00.000Z", "insist dest resume d --tenant 't'\"" } },
        { { STATUS, .mode = "paused", .held_by = "blocked", .held_until = INSTANT_NONE, .look_at = NOW + 60000,
            .pause_reason = "nothing can be sent, as seen with job k of tenant t: curl:60, certificate has expired" }, &refused,
          "blocked",
          { "destination d is held (nothing can be sent, as seen with job k of tenant t: curl:60, certificate has expired)",
            "\"next_look_at\":\"2025-01-12T10:41:00.000Z\"", "insist dest resume d\"" } },
        { { STATUS, .mode = "paused", .held_by = "blocked", .held_until = INSTANT_NONE, .look_at = INSTANT_NONE }, NULL,
          "blocked", { "because it refuses jobs, or nothing can be sent to it", "one job is sent to look, then", "" } },
        { DOWN("contingency", "breaker"), NULL, "contingency", { "is in contingency", "", "" } },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct job job = { .id = SLICE("j"), .tenant = SLICE("t"), .destination = SLICE("d"), .state = STATE_WAITING,
                                 .run_at = NOW + 4 * 60000, .updated_at = NOW - 9000, .expires_at = INSTANT_NONE,
                                 .last_class = OUTCOME_BLOCKED, .step_count = 3, .last_code = SLICE("http:403"),
                                 .last_error = SLICE("HTTP 403 no") };
        struct buffer out;
        char word[64];
        buffer_init(&out, 1 << 16);
        why_write(&out, &job, &pushed, &rows[i].status, rows[i].lane, NULL, NOW);
        buffer_append_byte(&out, '\0');
        snprintf(word, sizeof word, "\"held_by\":\"%s\"", rows[i].held_by);
        check(strstr(out.data, word) && !strstr(out.data, "credential"), "row %zu: %s", i, out.data);
        for (size_t k = 0; k < COUNT_OF(rows[i].said); k++)
            check(strstr(out.data, rows[i].said[k]) != NULL, "row %zu: \"%s\" in %s", i, rows[i].said[k], out.data);
        buffer_release(&out);
    }
}

#define SECOND .second = { .wanted = true, .held = true, .reason = "job k was refused at the second address: http:401", .look_at = NOW + 60000 }

/* The second address would stand in, and refuses us; a word of another's job is not for everybody. */
static void a_second_address_that_is_held_is_named(void **state)
{
    static const struct {
        const char *name;
        struct destination_status status;
        const char *said, *not_said;
    } rows[] = {
        { "by whom", { STATUS, .mode = "contingency", .held_by = "contingency", .look_at = NOW + 9000, SECOND },
          "; its second address is held (job k was refused at the second address: http:401)", "because it refuses" },
        { "when it is looked at", { STATUS, .mode = "contingency", .held_by = "contingency", .look_at = NOW + 9000, SECOND },
          "the next look is at 2025-01-12T10:40:09.000Z; one job is sent to look at the second address at 2025-01-12T10:41:00.000Z",
          "token" },
        { "what to do", { STATUS, .mode = "contingency", .held_by = "contingency", .look_at = NOW + 9000, SECOND },
          "somebody can open it: insist dest resume d\"", "token" },
        { "behind an open breaker", { STATUS, .mode = "normal", .held_by = "breaker", SECOND }, "second address is held", "token" },
        { "the first refuses us, too", { STATUS, .mode = "paused", .held_by = "blocked", .look_at = NOW + 9000, SECOND },
          "insist dest resume d; one job is sent to look at the second address", "token" },
        { "it does not matter", { STATUS, .mode = "normal", .held_by = "rate", .second = { .held = true, .look_at = NOW + 60000 } },
          "rate allows", "second" },
        { "to somebody else",
          { STATUS, .mode = "contingency", .held_by = "contingency", .look_at = NOW + 9000, .second = { .wanted = true, .held = true, .look_at = NOW + 60000 },
            .confined = true },
          "its second address is held because it refuses jobs, or nothing can be sent to it", "dest resume" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct job job = { .id = SLICE("j"), .tenant = SLICE("t"), .destination = SLICE("d"), .state = STATE_PENDING,
                                 .run_at = NOW, .updated_at = NOW - 9000, .expires_at = INSTANT_NONE };
        struct buffer out;
        buffer_init(&out, 1 << 16);
        why_write(&out, &job, &pushed, &rows[i].status, NULL, NULL, NOW);
        buffer_append_byte(&out, '\0');
        check(strstr(out.data, rows[i].said) && !strstr(out.data, rows[i].not_said), "%s: %s", rows[i].name, out.data);
        buffer_release(&out);
    }
}

/* Whose token acts for one tenant may not hold and resume: it is told what it can do. */
static void a_confined_token_is_told_what_it_may_do(void **state)
{
    static const struct destination_status rows[] = {
        { STATUS, .mode = "paused", .held_by = "paused", .confined = true },
        { STATUS, .mode = "paused", .held_by = "blocked", .look_at = NOW + 60000, .confined = true },
        { STATUS, .mode = "contingency", .held_by = "contingency", .cause = "operator", .confined = true },
        { STATUS, .mode = "normal", .confined = true },
    };
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        const struct job job = { .id = SLICE("j"), .tenant = SLICE("t"), .destination = SLICE("d"), .state = STATE_PENDING,
                                 .run_at = NOW, .updated_at = NOW - 9000, .expires_at = INSTANT_NONE };
        struct destination_status status = rows[i / 2];
        bool tenants = i / 2 + 1 == COUNT_OF(rows);
        struct buffer out;
        buffer_init(&out, 1 << 16);
        why_write(&out, &job, &pushed, &status, tenants ? (i % 2 ? &refused : &held) : NULL, NULL, NOW);
        buffer_append_byte(&out, '\0');
        check(!strstr(out.data, "insist dest") && strstr(out.data, "ask an operator") && strstr(out.data, "insist cancel 'j'"),
              "%zu: %s", i, out.data);
        buffer_release(&out);
    }
}

/* Whose wish the wait is: an hour of Retry-After is no wait of the policy's. */
static void a_pause_that_was_asked_for_is_said(void **state)
{
    static const char said[] = "attempt 1 failed: http:429, HTTP 429; destination d asked for a pause until 2025-01-12T10:40:02.000Z\"";
    static const struct { enum outcome outcome; struct destination_status status; bool asked; } rows[] = {
        { OUTCOME_THROTTLED, HELD("throttle", NOW + 2000), true },
        { OUTCOME_THROTTLED, FREE, false },
        { OUTCOME_TRANSIENT, HELD("throttle", NOW + 2000), false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct job job = { .id = SLICE("j"), .tenant = SLICE("t"), .destination = SLICE("d"), .state = STATE_WAITING,
                                 .run_at = NOW + 2000, .updated_at = NOW, .expires_at = INSTANT_NONE, .attempts = 1,
                                 .last_class = rows[i].outcome, .last_code = SLICE("http:429"), .last_error = SLICE("HTTP 429") };
        struct buffer out;
        buffer_init(&out, 1 << 16);
        why_write(&out, &job, &pushed, &rows[i].status, NULL, NULL, NOW);
        buffer_append_byte(&out, '\0');
        check((strstr(out.data, said) != NULL) == rows[i].asked, "%zu: %s", i, out.data);
        buffer_release(&out);
    }
}

/* Its tenant holds its share; unless something else holds it for longer, that is what is said. */
static void a_share_in_use_is_said(void **state)
{
    static const struct {
        struct destination_status status;
        int64_t slots;
        const char *said;
    } rows[] = {
        { FREE, 10, "\"its share of the slots (2 of 10) is in use" },
        { HELD("concurrency", INSTANT_NONE), 10, "\"its share of the slots (2 of 10) is in use" },
        { FREE, 0, "\"its share of the slots is in use" },
        { HELD("throttle", NOW + 2000), 10, "asked for a pause" },
        { HELD("throttle", NOW + 2000), -1, "\"its tenant has as many dead letters at destination d as dead.max_per_tenant allows" },
        { HELD("store_full", INSTANT_NONE), -1, "\"nothing can be written to the store, whose disk is full" },
        { HELD("dead_full", INSTANT_NONE), -1, "destination d has as many dead letters as dead.max allows" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct job job = { .id = SLICE("j"), .tenant = SLICE("t"), .destination = SLICE("d"), .state = STATE_PENDING,
                                 .run_at = NOW, .updated_at = NOW - 9000, .expires_at = INSTANT_NONE };
        const struct why_place place = { .queue = { .known = true, .tenants = 1, .tenant_until = INSTANT_NONE, .asked_until = INSTANT_NONE, .share = 2,
                                                    .slots = rows[i].slots, .share_used = true,
                                                    .dead_full = rows[i].slots < 0, .at = INSTANT_NONE } };
        struct buffer out;
        buffer_init(&out, 1 << 16);
        why_write(&out, &job, &pushed, &rows[i].status, NULL, &place, NOW);
        buffer_append_byte(&out, '\0');
        check(strstr(out.data, rows[i].said) != NULL, "%zu: %s", i, out.data);
        buffer_release(&out);
    }
}

/* Its own tenant was asked to wait: that, with the time, unless something else holds it for longer. */
static void a_wish_is_said(void **state)
{
    static const struct {
        struct destination_status status;
        instant run_at;
        const char *said;
    } rows[] = {
        { FREE, NOW, "\"destination d asked for a pause of tenant t until 2025-01-12T10:40:30.000Z" },
        { HELD("throttle", NOW + 2000), NOW, "\"destination d asked for a pause of tenant t until 2025-01-12T10:40:30.000Z" },
        { HELD("throttle", NOW + 60000), NOW, "\"destination d asked for a pause until 2025-01-12T10:41:00.000Z" },
        { DOWN("contingency", "breaker"), NOW, "is in contingency" },
        { FREE, NOW + 9000, "its run_at has not come" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct job job = { .id = SLICE("j"), .tenant = SLICE("t"), .destination = SLICE("d"), .state = STATE_PENDING,
                                 .run_at = rows[i].run_at, .updated_at = NOW - 9000, .expires_at = INSTANT_NONE };
        const struct why_place place = { .queue = { .known = true, .tenants = 1, .tenant_until = INSTANT_NONE,
                                                    .asked_until = NOW + 30000, .at = INSTANT_NONE } };
        struct buffer out;
        buffer_init(&out, 1 << 16);
        why_write(&out, &job, &pushed, &rows[i].status, NULL, &place, NOW);
        buffer_append_byte(&out, '\0');
        check(strstr(out.data, rows[i].said) != NULL, "%zu: %s", i, out.data);
        buffer_release(&out);
    }
}

/* What is said is copied into a shell. */
static void a_tenants_name_is_one_word(void **state)
{
    (void)state;
    const struct job job = { .id = SLICE("j"), .tenant = SLICE("o'x; reboot"), .destination = SLICE("d"), .state = STATE_PENDING,
                             .run_at = NOW, .updated_at = NOW, .expires_at = INSTANT_NONE };
    const struct destination_status status = FREE;
    struct buffer out;
    buffer_init(&out, 1 << 16);
    why_write(&out, &job, &pushed, &status, &held, NULL, NOW);
    buffer_append_byte(&out, '\0');
    check(strstr(out.data, "--tenant 'o'\\\\''x; reboot'\"") != NULL, "%s", out.data);
    buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_address_that_is_held_is_named),
        cmocka_unit_test(a_confined_token_is_told_what_it_may_do),
        cmocka_unit_test(what_holds_it_is_said),
        cmocka_unit_test(what_is_refused_is_said),
        cmocka_unit_test(a_pause_that_was_asked_for_is_said),
        cmocka_unit_test(a_share_in_use_is_said),
        cmocka_unit_test(a_wish_is_said),
        cmocka_unit_test(a_tenants_name_is_one_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
