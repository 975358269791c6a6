/* A place in a trail of several chains is a text that is given back, and every event behind it comes once, by its time. */
#include "store/trail_place.h"
#include "support/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define AT(CHAIN, NUMBER) ((int64_t)(CHAIN) << EVENT_CHAIN_SHIFT | (int64_t)(NUMBER))

static void texts_come_back(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        const char *again; /* NULL: as it is */
    } rows[] = {
        { "4711", true, NULL },  { "1.4711-2.815", true, NULL }, { "0.3-1.4", true, "3-1.4" }, { "", true, "0" },
        { "0", true, NULL },     { "3-1.4-7.1", true, NULL },    { "1.", false, NULL },        { ".5", true, "5" },
        { "2.1-1.1", false, NULL }, { "1.1-1.2", false, NULL },  { "1.1-", false, NULL },      { "-1", false, NULL },
        { "x", false, NULL },    { "1.2.3", false, NULL },       { "9999999999999999", false, NULL },
        { "99999999.1", false, NULL }, { "1 ", false, NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct trail_place place;
        char text[PLACE_BYTES];
        bool good = trail_place_parse(slice_from(rows[i].text), &place);
        check(good == rows[i].good, "\"%s\"", rows[i].text);
        if (!good)
            continue;
        trail_place_format(&place, text);
        assert_string_equal(text, rows[i].again ? rows[i].again : rows[i].text);
    }
}

static void a_place_moves_in_each_chain(void **state)
{
    (void)state;
    struct trail_place place = { 0 };
    char text[PLACE_BYTES];
    trail_place_advance(&place, AT(2, 5));
    trail_place_advance(&place, AT(0, 9));
    trail_place_advance(&place, AT(1, 1));
    trail_place_advance(&place, AT(2, 6));
    trail_place_format(&place, text);
    assert_string_equal(text, "9-1.1-2.6");
    assert_int_equal(trail_place_last(&place, AT(2, 1)), AT(2, 6));
    assert_int_equal(trail_place_last(&place, AT(3, 1)), AT(3, 0));
    for (int chain = 3; chain < TRAIL_CHAINS_MAX + 5; chain++) /* more than a place can name: those begin anew */
        trail_place_advance(&place, AT(chain, 1));
    assert_int_equal(place.count, TRAIL_CHAINS_MAX);
    trail_place_format(&place, text);
    assert_true(strlen(text) < PLACE_BYTES);
}

/* ---- reading ---- */

enum { CHAINS = 3, EVENTS = 40 };

static struct event trail[CHAINS][EVENTS];
static size_t written[CHAINS];

static enum status heads(struct store_reader *reader, struct arena *memory, struct trail_head **ret_heads, size_t *ret_count,
                         struct error *err)
{
    (void)reader;
    (void)err;
    *ret_heads = arena_alloc_array(memory, CHAINS, sizeof **ret_heads);
    for (int i = 0; i < CHAINS; i++)
        (*ret_heads)[i].number = AT(i, written[i]);
    *ret_count = CHAINS;
    return STATUS_OK;
}

/* As a store does it: behind the last of a chain stand those of the next. */
static enum status events(struct store_reader *reader, int64_t after, size_t max, struct arena *memory,
                          struct event **ret_events, size_t *ret_count, struct error *err)
{
    (void)reader;
    (void)err;
    size_t count = 0;
    *ret_events = arena_alloc_array(memory, max, sizeof **ret_events);
    for (int i = 0; i < CHAINS; i++)
        for (size_t j = 0; j < written[i] && count < max; j++)
            if (trail[i][j].number > after)
                (*ret_events)[count++] = trail[i][j];
    *ret_count = count;
    return STATUS_OK;
}

static void write_event(int chain, instant at)
{
    trail[chain][written[chain]] = (struct event){ .number = AT(chain, written[chain] + 1), .at = at };
    written[chain]++;
}

static void every_event_comes_once(void **state)
{
    (void)state;
    static const struct store_ops ops = { .reader_heads = heads, .reader_events = events };
    struct store_reader reader = { &ops };
    struct trail_place place = { 0 };
    int seen[CHAINS] = { 0 }, all = 0;
    instant last_at = 0;
    for (int i = 0; i < EVENTS; i++)
        write_event(i % 7 == 0 ? 0 : i % 3, 1000 + i);
    for (int turn = 0; turn < 100; turn++) {
        struct arena memory = { 0 };
        struct event *found;
        struct error err;
        size_t count;
        char text[PLACE_BYTES];
        assert_int_equal(trail_place_read(&reader, &place, 3, &memory, &found, &count, &err), STATUS_OK);
        for (size_t i = 0; i < count; i++, all++) {
            int chain = (int)(found[i].number >> EVENT_CHAIN_SHIFT);
            assert_int_equal(found[i].number, AT(chain, ++seen[chain]));
            assert_true(found[i].at >= last_at || turn > 30);
            last_at = found[i].at;
            trail_place_advance(&place, found[i].number);
        }
        arena_release(&memory);
        trail_place_format(&place, text); /* a client that comes again with what it was given */
        assert_true(trail_place_parse(slice_from(text), &place));
        if (turn == 30)
            write_event(1, 500); /* a node whose commit came late: its time is past, and it comes all the same */
    }
    assert_int_equal(all, EVENTS + 1);
    int64_t skipped;
    struct error err;
    place = (struct trail_place){ 0 };
    assert_int_equal(trail_place_skip(&reader, &place, 2, &skipped, &err), STATUS_OK);
    assert_int_equal(skipped, EVENTS + 1 - 2 * CHAINS);
}

/* However many there are, and from wherever it is looked for. */
static void the_newest_is_found(void **state)
{
    (void)state;
    static const struct store_ops ops = { .reader_events = events }; /* a store of one chain */
    struct store_reader reader = { &ops };
    struct error err;
    memset(written, 0, sizeof written);
    for (int64_t count = 0; count < EVENTS; count++) {
        for (int64_t low = 0; low <= count; low++) {
            int64_t newest = -1;
            assert_int_equal(events_newest(&reader, low, &newest, &err), STATUS_OK);
            check(newest == count, "of %d events from %d on: %d", (int)count, (int)low, (int)newest);
        }
        write_event(0, 1000 + count);
    }
}

/* A job that one node took and another sends: its events are in two chains, and the other's clock is behind. */
static void what_a_job_did_comes_in_order(void **state)
{
    (void)state;
    static const struct store_ops ops = { .reader_heads = heads, .reader_events = events };
    struct store_reader reader = { &ops };
    struct trail_place place = { 0 };
    struct arena memory = { 0 };
    struct event *found;
    struct error err;
    size_t count;
    memset(written, 0, sizeof written);
    write_event(2, 1003); /* accepted */
    write_event(1, 1001); /* claimed by another, */
    trail[1][0].previous = AT(2, 1);
    write_event(1, 1002);
    trail[1][1].previous = AT(1, 1);
    write_event(0, 1002); /* and cancelled by a third */
    trail[0][0].previous = AT(1, 2);
    static const int64_t order[] = { AT(2, 1), AT(1, 1), AT(1, 2), AT(0, 1) };
    assert_int_equal(trail_place_read(&reader, &place, 10, &memory, &found, &count, &err), STATUS_OK);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(found[i].number, order[i]);
    arena_release(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(a_place_moves_in_each_chain),
        cmocka_unit_test(every_event_comes_once),
        cmocka_unit_test(the_newest_is_found),
        cmocka_unit_test(what_a_job_did_comes_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
