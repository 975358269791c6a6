/*
 * Why something is held: kept whole, and as it was said last.
 */
#include "engine/loop.h"
#include "support/check.h"
#include "support/engine_fixture.h"

#include <jansson.h>

static const char yaml[] = "destinations: { d: { url: 'http://127.0.0.1:1/', allow_private: true, contingency: {} } }\n";

/* A text of `bytes` bytes: two-byte characters, after one of one byte where that is needed. */
static char *text_of(size_t bytes)
{
    char *text = calloc(bytes + 1, 1);
    size_t at = bytes % 2;
    memset(text, 'a', at);
    for (; at < bytes; at += 2)
        memcpy(text + at, "\xc3\xa7", 2);
    return text;
}

static const char *tenant_reason(const struct stage *stage)
{
    static struct tenant_hold hold;
    assert_int_equal(engine_tenant_holds(stage->engine, SLICE("d"), &hold, 1), 1);
    return hold.hold.reason;
}

/* As much as the API takes, over a restart too; a longer one ends with a whole character. */
static void a_reason_is_kept_whole(void **state)
{
    static const struct { size_t given, saved; } cases[] = { { 300, 300 }, { 700, 700 }, { 1023, 1023 }, { 1024, 1024 },
                                                            { 1025, 1023 } };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct stage stage = { .destination = delivers };
        struct error error;
        char *given = text_of(cases[i].given);
        struct slice saved = { given, cases[i].saved };
        stage_begin(&stage, yaml, began);
        stage_add(&stage, "d", "t", "1", "x");
        stage_run_for(&stage, 1000);
        assert_int_equal(stage_pause_tenant(&stage, SLICE("d"), SLICE("t"), slice_from(given), &error), STATUS_OK);
        assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), slice_from(given), &error), STATUS_OK);
        check(slice_equal(slice_from(status_of(&stage).pause_reason), saved), "mode, %zu", cases[i].given);
        assert_int_equal(engine_pause(stage.engine, SLICE("d"), slice_from(given), &error), STATUS_OK);
        for (int started = 0; started < 2; started++) {
            check(slice_equal(slice_from(status_of(&stage).pause_reason), saved), "pause, %zu", cases[i].given);
            check(slice_equal(slice_from(tenant_reason(&stage)), saved), "tenant, %zu", cases[i].given);
            stage_run_for(&stage, 1000);
            stage_crash(&stage);
            stage_run_for(&stage, 1000);
        }
        stage_end(&stage);
        free(given);
    }
}

/* How many events tell of that change with that reason. */
static size_t events_of(const struct stage *stage, const char *change, const char *reason)
{
    struct arena memory = { 0 };
    struct event *events;
    struct error error;
    size_t count, found = 0;
    assert_int_equal(stage->reader->ops->reader_events(stage->reader, 0, 500, &memory, &events, &count, &error), STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        json_t *data = json_loadb(events[i].data.data, events[i].data.len, 0, NULL);
        const char *is = json_string_value(json_object_get(data, "change"));
        const char *pause = json_string_value(json_object_get(data, "reason"));
        const char *mode = json_string_value(json_object_get(data, "mode_reason"));
        const char *tenant = json_string_value(json_object_get(data, "tenant_reason"));
        found += is && strcmp(is, change) == 0 && ((pause && strcmp(pause, reason) == 0) ||
                                                   (mode && strcmp(mode, reason) == 0) ||
                                                   (tenant && strcmp(tenant, reason) == 0));
        json_decref(data);
    }
    arena_release(&memory);
    return found;
}

/* Said twice it is the same; without a word the first one stays; since when does not change. */
static void another_reason_takes_its_place(void **state)
{
    struct stage stage = { .destination = delivers };
    struct error error;
    (void)state;
    stage_begin(&stage, yaml, began);
    stage_add(&stage, "d", "t", "1", "x");
    stage_run_for(&stage, 1000);
    static const char *const said[] = { "first", "first", "second", "" };
    for (size_t i = 0; i < COUNT_OF(said); i++) {
        struct slice reason = slice_from(said[i]);
        assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), reason, &error), STATUS_OK);
        check(strcmp(status_of(&stage).pause_reason, i < 2 ? "first" : "second") == 0, "contingency %zu", i);
        stage_run_for(&stage, 1000);
    }
    for (size_t i = 0; i < COUNT_OF(said); i++) {
        struct slice reason = slice_from(said[i]);
        assert_int_equal(stage_pause_tenant(&stage, SLICE("d"), SLICE("t"), reason, &error), STATUS_OK);
        assert_int_equal(engine_pause(stage.engine, SLICE("d"), reason, &error), STATUS_OK);
        check(strcmp(status_of(&stage).pause_reason, i < 2 ? "first" : "second") == 0, "pause %zu", i);
        check(strcmp(tenant_reason(&stage), i < 2 ? "first" : "second") == 0, "tenant %zu", i);
        assert_int_equal(status_of(&stage).held_since, began + 5000);
        stage_run_for(&stage, 1000);
    }
    assert_int_equal(events_of(&stage, "paused", "first"), 1);
    assert_int_equal(events_of(&stage, "pause_reason", "second"), 1);
    assert_int_equal(events_of(&stage, "tenant_paused", "first"), 1);
    assert_int_equal(events_of(&stage, "tenant_pause_reason", "second"), 1);
    assert_int_equal(events_of(&stage, "mode_reason", "second"), 1);
    stage_crash(&stage);
    stage_run_for(&stage, 1000);
    assert_string_equal(status_of(&stage).pause_reason, "second");
    assert_string_equal(tenant_reason(&stage), "second");
    stage_end(&stage);
}

/* No claim can be written: that is what holds it, and nobody knows until when. */
static void a_full_store_is_a_reason(void **state)
{
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, yaml, began);
    stage_add(&stage, "d", "t", "1", "x");
    stage.fail_applies = true;
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_non_null(status_of(&stage).held_by);
    assert_string_equal(status_of(&stage).held_by, "store_full");
    assert_int_equal(engine_place(stage.engine, 1, 0, stage.now).at, INSTANT_NONE);
    stage.fail_applies = false;
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_null(status_of(&stage).held_by);
    assert_int_not_equal(engine_place(stage.engine, 1, 0, stage.now).at, INSTANT_NONE);
    struct pace pace = status_of(&stage).pace;
    assert_int_equal(pace_last_minute(&pace, stage.now).good, 1);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reason_is_kept_whole),
        cmocka_unit_test(another_reason_takes_its_place),
        cmocka_unit_test(a_full_store_is_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
