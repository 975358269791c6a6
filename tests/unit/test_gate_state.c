/*
 * What a gate keeps survives being written down.
 */
#include "engine/saved/gate_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const instant now = INT64_C(1736678400123);

static struct gate_saved plain(void)
{
    struct gate gate;
    static const struct gate_rules rules = { .concurrency = 1 };
    gate_init(&gate, &rules, now, now);
    return gate_save(&gate);
}

static struct gate_saved full(void)
{
    struct gate_saved saved = {
        .paused = true,
        .closed_until = now + 5,
        .breaker = { .state = BREAKER_HALF_OPEN, .since = now - 1, .until = now + 7, .openings = 4 },
        .contingency = {
            .mode = MODE_RECOVERING,
            .cause = CAUSE_OPERATOR,
            .since = now - 8,
            .forced = true,
            .ignore_until = now + 9,
            .check_at = now + 10,
            .step = 2,
            .calm_since = now - 11,
            .incident = {
                .first_sign_at = now - 100, .entered_at = now - 90, .recovering_at = now - 80, .restored_at = now - 70,
                .cause = CAUSE_BREAKER, .criterion = CRITERION_TIMEOUT, .relapses = 1, .probes = 2, .held_max = 3, .unspent = 4,
                .checks_failed = 5,
                .curve_count = RAMP_CURVE_MAX,
            },
        },
    };
    for (int i = CRITERION_NONE + 1; i < CRITERION_COUNT; i++)
        saved.contingency.incident.signs[i] = i * 10;
    for (size_t i = 0; i < RAMP_CURVE_MAX; i++) {
        saved.contingency.incident.curve[i].at = now + (instant)i;
        saved.contingency.incident.curve[i].level = i == 0 ? INT64_MAX : (int64_t)i;
    }
    return saved;
}

static void write_state(const struct gate_saved *saved, struct buffer *out)
{
    buffer_init(out, 16 * 1024); /* of an event */
    struct json_writer json = json_writer(out);
    json_object_begin(&json);
    gate_state_write(&json, saved);
    json_object_end(&json);
    assert_int_equal(buffer_status(out), STATUS_OK);
}

/* Equal when they are written alike and every field is written; the parts without padding are compared as they are. */
static void round_trip(const struct gate_saved *saved)
{
    struct buffer first, second;
    struct gate_saved back = plain();
    write_state(saved, &first);
    json_t *root = json_loadb(first.data, first.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    gate_state_read(root, &back);
    json_decref(root);
    write_state(&back, &second);
    assert_int_equal(first.len, second.len);
    assert_memory_equal(first.data, second.data, first.len);
    assert_int_equal(back.paused, saved->paused);
    assert_int_equal(back.closed_until, saved->closed_until);
    assert_int_equal(back.breaker.state, saved->breaker.state);
    assert_int_equal(back.breaker.until, saved->breaker.until);
    assert_int_equal(back.breaker.openings, saved->breaker.openings);
    assert_int_equal(back.contingency.mode, saved->contingency.mode);
    assert_int_equal(back.contingency.cause, saved->contingency.cause);
    assert_int_equal(back.contingency.forced, saved->contingency.forced);
    assert_int_equal(back.contingency.ignore_until, saved->contingency.ignore_until);
    assert_int_equal(back.contingency.check_at, saved->contingency.check_at);
    assert_int_equal(back.contingency.step, saved->contingency.step);
    assert_int_equal(back.contingency.calm_since, saved->contingency.calm_since);
    const struct incident *is = &back.contingency.incident, *was = &saved->contingency.incident;
    assert_int_equal(is->curve_count, was->curve_count);
    assert_memory_equal(is->curve, was->curve, was->curve_count * sizeof *was->curve);
    assert_memory_equal(is->signs, was->signs, sizeof was->signs);
    assert_int_equal(is->restored_at, was->restored_at);
    assert_int_equal(is->unspent, was->unspent);
    assert_int_equal(is->checks_failed, was->checks_failed);
    buffer_release(&first);
    buffer_release(&second);
}

static void what_is_written_is_read(void **state)
{
    struct gate_saved saved = plain();
    (void)state;
    round_trip(&saved);
    saved = full();
    round_trip(&saved);
}

static void nonsense_changes_nothing(void **state)
{
    static const char *const texts[] = {
        "{}", "[]", "7", "{\"breaker\":[],\"contingency\":\"x\"}",
        "{\"contingency\":{\"mode\":\"sideways\",\"since\":\"2025-01-12T10:40:00Z\"}}",
        "{\"contingency\":{\"mode\":\"contingency\"}}",
        "{\"capacity\":{\"ceiling\":12,\"since\":\"2025-01-12T10:40:00Z\",\"hold_ms\":7}}", /* once was kept */
        "{\"breaker\":{\"state\":\"ajar\",\"since\":\"2025-01-12T10:40:00Z\"}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct gate_saved saved = plain();
        json_t *root = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        assert_non_null(root);
        gate_state_read(root, &saved);
        json_decref(root);
        assert_int_equal(saved.contingency.mode, MODE_NORMAL);
        assert_int_equal(saved.breaker.state, BREAKER_CLOSED);
        assert_false(saved.paused);
    }
}

/* A hand has been at it: numbers below zero and too many points. */
static void odd_numbers_are_bounded(void **state)
{
    struct gate_saved saved = plain();
    struct buffer text;
    (void)state;
    buffer_init(&text, 1 << 16);
    buffer_append_text(&text, "{\"contingency\":{\"mode\":\"contingency\",\"since\":\"2025-01-12T10:40:00Z\",");
    buffer_append_text(&text, "\"step\":-3,\"incident\":{\"probes\":-1,\"curve\":[");
    for (int i = 0; i < 100; i++)
        buffer_append_text(&text, i == 0 ? "{}" : ",{\"level\":1}");
    buffer_append_text(&text, "]}}}");
    json_t *root = json_loadb(text.data, text.len, 0, NULL);
    assert_non_null(root);
    gate_state_read(root, &saved);
    json_decref(root);
    buffer_release(&text);
    assert_int_equal(saved.contingency.mode, MODE_CONTINGENCY);
    assert_int_equal(saved.contingency.step, 0);
    assert_int_equal(saved.contingency.incident.probes, 0);
    assert_int_equal(saved.contingency.incident.curve_count, RAMP_CURVE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(nonsense_changes_nothing),
        cmocka_unit_test(odd_numbers_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
