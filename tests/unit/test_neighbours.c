/* What is wrong with the nodes that share a store, and where destinations are pinned to. */
#include "daemon/neighbours.h"
#include "daemon/pins.h"
#include "support/check.h"
#include "support/configs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NOON INT64_C(1736683200000)
#define LIVES(NUMBER, NODE, CONFIG)                                                                                         \
    { .number = (NUMBER), .node = { (NODE), sizeof(NODE) - 1 }, .config = (CONFIG), .fenced_at = INSTANT_NONE }
#define ENDED(NUMBER, NODE, AT)                                                                                             \
    { .number = (NUMBER), .node = { (NODE), sizeof(NODE) - 1 }, .ended = true, .fenced_at = (AT) }

static void who_stays_away_is_named(void **state)
{
    (void)state;
    static const struct {
        struct session sessions[4];
        const char *gone;
    } rows[] = {
        { { LIVES(1, "a", 1), LIVES(2, "b", 1) }, "" },
        { { LIVES(1, "a", 1), ENDED(2, "b", NOON - SECOND_MS) }, "b since 2025-01-12T11:59:59.000Z" },
        { { ENDED(1, "b", NOON), ENDED(2, "c", NOON), LIVES(3, "a", 1) },
          "b since 2025-01-12T12:00:00.000Z, c since 2025-01-12T12:00:00.000Z" },
        { { ENDED(1, "b", NOON), LIVES(2, "a", 1), LIVES(3, "b", 1) }, "" },               /* it is back */
        { { ENDED(1, "b", NOON), LIVES(2, "a", 1), ENDED(3, "b", INSTANT_NONE) }, "" },    /* and was stopped in order */
        { { LIVES(1, "a", 1), ENDED(2, "b", NOON - NEIGHBOURS_GONE_MS - 1) }, "" },        /* somebody took it away */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct neighbours neighbours = { 0 };
        struct nodes_news news;
        size_t count = 0;
        while (count < 4 && rows[i].sessions[count].number > 0)
            count++;
        neighbours_look(&neighbours, rows[i].sessions, count, 5, NOON, &news);
        check(strcmp(news.gone, rows[i].gone) == 0, "row %zu: %s", i, news.gone);
    }
}

static void differences_are_timed(void **state)
{
    (void)state;
    static const struct session same[] = { LIVES(1, "a", 7), LIVES(2, "b", 0), LIVES(3, "c", 7) }, /* b has said nothing yet */
        differ[] = { LIVES(1, "a", 7), LIVES(2, "b", 8), LIVES(3, "c", 7), ENDED(4, "d", NOON) };
    struct neighbours neighbours = { 0 };
    struct nodes_news news;
    neighbours_look(&neighbours, same, 3, 1000, NOON, &news);
    assert_true(news.differ_ms == 0 && news.differ[0] == '\0');
    neighbours_look(&neighbours, differ, 4, 2000, NOON, &news);
    assert_true(news.differ_ms > 0 && news.differ_ms < SECOND_MS);
    neighbours_look(&neighbours, differ, 4, 2000 + MINUTE_MS, NOON, &news);
    assert_true(news.differ_ms > MINUTE_MS);
    assert_string_equal(news.differ, "a, c; b");
    neighbours_look(&neighbours, same, 3, 3000 + MINUTE_MS, NOON, &news);
    assert_int_equal(news.differ_ms, 0);
    neighbours_look(&neighbours, differ, 4, 2 * MINUTE_MS, NOON, &news); /* it begins anew */
    assert_true(news.differ_ms < SECOND_MS);
}

/* Names as long as they please, and many of them. */
static void much_is_cut_off(void **state)
{
    (void)state;
    static char name[300];
    struct session sessions[TRAIL_CHAINS_MAX];
    struct neighbours neighbours = { 0 };
    struct nodes_news news;
    memset(name, 'n', sizeof name);
    for (size_t i = 0; i < COUNT_OF(sessions); i++)
        sessions[i] = (struct session){ .number = (int64_t)i + 1, .node = { name, 100 + i }, .ended = i % 2 == 0, .fenced_at = NOON,
                                        .config = i };
    neighbours_look(&neighbours, sessions, COUNT_OF(sessions), 5, NOON, &news);
    assert_true(strlen(news.gone) > 100 && strlen(news.differ) > 100 && news.differ_ms > 0);
}

/* ---- the ends of chains ---- */

static struct event trail[8];
static size_t written;
static struct trail_head ends[2];
static enum status fails_with;

static enum status heads(struct store_reader *reader, struct arena *memory, struct trail_head **ret_heads, size_t *ret_count,
                         struct error *err)
{
    (void)reader;
    *ret_heads = arena_alloc_array(memory, COUNT_OF(ends), sizeof **ret_heads);
    memcpy(*ret_heads, ends, sizeof ends);
    *ret_count = COUNT_OF(ends);
    return fails_with != STATUS_OK ? error_set(err, fails_with, "not now") : STATUS_OK;
}

static enum status events(struct store_reader *reader, int64_t after, size_t max, struct arena *memory, struct event **ret_events,
                          size_t *ret_count, struct error *err)
{
    (void)reader;
    (void)err;
    *ret_count = 0;
    *ret_events = arena_alloc_array(memory, max, sizeof **ret_events);
    for (size_t i = 0; i < written && *ret_count < max; i++)
        if (trail[i].number > after)
            (*ret_events)[(*ret_count)++] = trail[i];
    return STATUS_OK;
}

static const struct store_ops ops = { .reader_heads = heads, .reader_events = events };

/* Two chains with two events each; the second's end is seen, then something becomes of it. */
static void begin(struct neighbours *neighbours, int64_t retention_ms)
{
    struct store_reader reader = { &ops };
    struct nodes_news news;
    struct error err;
    *neighbours = (struct neighbours){ 0 };
    fails_with = STATUS_OK;
    for (written = 0; written < 4; written++) {
        struct event *event = &trail[written];
        *event = (struct event){ .number = (int64_t)(written / 2) << EVENT_CHAIN_SHIFT | (int64_t)(written % 2 + 1), .at = NOON };
        memset(event->hash, (int)written + 1, EVENT_HASH_BYTES);
        ends[written / 2].number = event->number;
        memcpy(ends[written / 2].hash, event->hash, EVENT_HASH_BYTES);
    }
    assert_int_equal(neighbours_heads(neighbours, &reader, retention_ms, 0, NOON, &news, &err), STATUS_OK);
    assert_string_equal(news.missing, "");
    assert_int_equal(neighbours->seen_count, 2);
}

static const char *look_at(struct neighbours *neighbours, int64_t steady, int64_t retention_ms)
{
    static struct nodes_news news;
    struct store_reader reader = { &ops };
    struct error err;
    if (neighbours_heads(neighbours, &reader, retention_ms, steady, NOON + steady, &news, &err) != fails_with)
        fail_msg("%s", err.text);
    return news.missing;
}

static void an_end_that_goes_is_missed(void **state)
{
    (void)state;
    struct neighbours neighbours;
    begin(&neighbours, 0);
    written = 3; /* cut off */
    assert_string_equal(look_at(&neighbours, MINUTE_MS - 1, 0), ""); /* once a minute */
    assert_string_equal(look_at(&neighbours, MINUTE_MS, 0), "event 1.2 is not there any more");
    assert_string_equal(look_at(&neighbours, 2 * MINUTE_MS, 0), ""); /* it was told */
    begin(&neighbours, 0);
    trail[3].hash[0] ^= 1;
    assert_string_equal(look_at(&neighbours, MINUTE_MS, 0), "event 1.2 was written anew");
    begin(&neighbours, DAY_MS);
    written = 3;
    assert_string_equal(look_at(&neighbours, HOUR_MS, DAY_MS), "event 1.2 is not there any more");
    begin(&neighbours, DAY_MS);
    written = 3; /* it was old enough to be trimmed */
    assert_string_equal(look_at(&neighbours, DAY_MS, DAY_MS), "");
    begin(&neighbours, 0);
    trail[written++] = (struct event){ .number = (int64_t)1 << EVENT_CHAIN_SHIFT | 3 };
    assert_string_equal(look_at(&neighbours, MINUTE_MS, 0), ""); /* it only went on */
    begin(&neighbours, 0);
    fails_with = STATUS_AWAY;
    assert_string_equal(look_at(&neighbours, MINUTE_MS, 0), "");
    fails_with = STATUS_OK;
    written = 3;
    assert_string_equal(look_at(&neighbours, 2 * MINUTE_MS, 0), "event 1.2 is not there any more"); /* it is still remembered */
}

/* ---- pins ---- */

static char stored[400];

static enum status saved(struct store_reader *reader, struct slice space, struct slice name, struct arena *memory,
                         struct slice *ret_value, struct error *err)
{
    (void)reader;
    assert_true(slice_equal(space, SPACE_PINS) && slice_equal(name, PINS_NAME));
    *ret_value = arena_copy(memory, slice_from(stored));
    return stored[0] ? STATUS_OK : error_set(err, STATUS_NOT_FOUND, "nothing");
}

/* What the store has counts, until the steward has put there what its configuration says. */
static void the_store_says_where_they_are_pinned(void **state)
{
    (void)state;
    static const struct store_ops saves = { .reader_saved = saved };
    static const char *const texts[] = {
        "node: { name: a }\ndestinations: { d: { url: 'http://x/', node: b }, e: { url: 'http://x/' }, f: { url: 'http://x/', node: a } }",
        "node: { name: a }\ndestinations: { d: { url: 'http://x/', node: c } }",
        "node: { name: a }\ndestinations: { d: { url: 'http://x/' } }",
    };
    static const char *const values[] = { "{\"d\":\"b\",\"f\":\"a\"}", "{\"d\":\"c\"}", "" };
    struct store_reader reader = { &saves };
    struct pins pins = { 0 };
    struct error err;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct config *config = config_from(slice_from(texts[i]), "f");
        assert_int_equal(pins_read(&pins, &reader, &err), STATUS_OK);
        struct batch *batch = pins_change(&pins, config);
        assert_non_null(batch);
        assert_true(batch->count == 1 && batch->ops[0].kind == OP_SAVE);
        assert_true(slice_equal(batch->ops[0].save.value, slice_from(values[i])));
        snprintf(stored, sizeof stored, "%.*s", SLICE_ARG(batch->ops[0].save.value));
        batch_free(batch);
        assert_int_equal(pins_read(&pins, &reader, &err), STATUS_OK);
        assert_null(pins_change(&pins, config)); /* it is so */
        config_unref(config);
        if (i == 0) {
            assert_true(slice_equal(pins_of(&pins, SLICE("d")), SLICE("b")) && slice_equal(pins_of(&pins, SLICE("f")), SLICE("a")));
            assert_true(pins_of(&pins, SLICE("e")).len == 0 && pins_of(&pins, SLICE("")).len == 0);
        }
    }
    assert_int_equal(pins_of(&pins, SLICE("d")).len, 0);
    snprintf(stored, sizeof stored, "no JSON");
    assert_int_equal(pins_read(&pins, &reader, &err), STATUS_OK);
    assert_int_equal(pins_of(&pins, SLICE("d")).len, 0);
    pins_release(&pins);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_stays_away_is_named),
        cmocka_unit_test(differences_are_timed),
        cmocka_unit_test(much_is_cut_off),
        cmocka_unit_test(an_end_that_goes_is_missed),
        cmocka_unit_test(the_store_says_where_they_are_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
