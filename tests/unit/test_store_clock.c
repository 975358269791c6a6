/* A store that is opened earlier than it was used: what was left to wait for is still left, and is moved once. */
#include "store/sqlite/sqlite.h"
#include "support/store_look.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/store_recount.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[FOLDER_BYTES + 16];

static const instant start = 1760000000000;

static struct store *open_at(instant now)
{
    struct store_settings settings = { .sync_always = false, .now = now };
    struct error err = { STATUS_OK, "" };
    struct store *store = NULL;
    if (store_sqlite_open(slice_from(path), &settings, &store, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return store;
}

static struct store_op apply(struct store *store, instant now, struct store_op op)
{
    static struct arena memory;
    struct error err = { STATUS_OK, "" };
    arena_release(&memory);
    if (store->ops->apply(store, now, &op, 1, &memory, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(op.status, STATUS_OK);
    return op;
}

static struct store_op insert(struct store *store, const char *id, instant run_at, instant deadline)
{
    return apply(store, start, (struct store_op){ .kind = OP_INSERT,
                                                  .insert = { .destination = SLICE("d"), .tenant = SLICE("t"), .id = slice_from(id),
                                                              .rank = start, .run_at = run_at, .deadline = deadline,
                                                              .payload = SLICE("{}") } });
}

static instant saved_at(struct store *store, const char *space, const char *name)
{
    struct store_reader *reader;
    struct arena memory = { 0 };
    struct error err;
    struct slice value;
    instant at = INSTANT_NONE;
    assert_int_equal(store->ops->reader(store, &reader, &err), STATUS_OK);
    assert_int_equal(reader->ops->reader_saved(reader, slice_from(space), slice_from(name), &memory, &value, &err), STATUS_OK);
    size_t quote = slice_find(value, '2');
    assert_int_equal(instant_parse((struct slice){ value.data + quote, 24 }, &at, &err), STATUS_OK);
    reader->ops->reader_close(reader);
    arena_release(&memory);
    return at;
}

static void keep(struct store *store, const char *space, const char *name, instant at)
{
    char value[64], text[INSTANT_TEXT_BYTES];
    instant_format(at, text);
    snprintf(value, sizeof value, "{\"until\":\"%s\"}", text);
    apply(store, start, (struct store_op){ .kind = OP_SAVE,
                                           .save = { .space = slice_from(space), .name = slice_from(name), .value = slice_from(value) } });
}

static struct op_promote promote(struct store *store, instant now)
{
    return apply(store, now, (struct store_op){ .kind = OP_PROMOTE, .promote = { .max = 100 } }).promote;
}

static void fill(struct store *store)
{
    insert(store, "soon", start + 4000, INSTANT_NONE);
    insert(store, "ends", start + HOUR_MS, start + 9000);
    struct store_op first = insert(store, "leased", start, INSTANT_NONE);
    apply(store, start, (struct store_op){ .kind = OP_CLAIM, .claim = { .lane = first.insert.ret_lane, .max = 1,
                                                                        .lease_until = start + 30000, .owner = SLICE("w") } });
    insert(store, "ready", start, INSTANT_NONE);
    keep(store, "destination", "d", start + 5000);
    keep(store, "rate", "d", start + 6000);
    keep(store, "incident", "i", start - 7000);
}

static size_t orphans(struct store *store, instant now)
{
    return apply(store, now, (struct store_op){ .kind = OP_ORPHANS, .orphans = { .until = now, .max = 10 } }).orphans.ret_count;
}

static void what_was_left_is_still_left(void **state)
{
    static const int64_t backs[] = { HOUR_MS, 2 * 365 * (int64_t)DAY_MS };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(backs); i++) {
        instant now = start - backs[i];
        char text[RECOUNT_TEXT_BYTES];
        snprintf(path, sizeof path, "%s/%zu.db", test_folder, i);
        struct store *store = open_at(start);
        assert_int_equal(store->shifted_ms, 0);
        fill(store);
        store->ops->close(store);
        store = open_at(now);
        assert_int_equal(store->shifted_ms, backs[i]);
        assert_int_equal(store->newest_at, now);
        store->ops->close(store);
        check(recount_holds(path, text), "%s", text);
        store = open_at(now + 1); /* once is enough */
        assert_int_equal(store->shifted_ms, 0);
        assert_int_equal(promote(store, now + 3999).ret_promoted, 0);
        assert_int_equal(promote(store, now + 4000).ret_promoted, 1);
        assert_int_equal(promote(store, now + 8999).ret_expired, 0);
        assert_int_equal(promote(store, now + 9000).ret_expired, 1);
        assert_int_equal(orphans(store, now + 29999), 0);
        assert_int_equal(orphans(store, now + 30000), 1);
        assert_int_equal(saved_at(store, "destination", "d"), now + 5000);
        assert_int_equal(saved_at(store, "rate", "d"), now + 6000);
        assert_int_equal(saved_at(store, "incident", "i"), start - 7000); /* a fact */
        store->ops->close(store);
        struct trail_check chain;
        struct error err = { STATUS_OK, "" };
        check(look_verify(path, NULL, &chain, &err) == STATUS_OK, "%s", err.text);
    }
}

/* Work from before the jump keeps its place before newer work. */
static void older_work_stays_first(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/order.db", test_folder);
    struct store *store = open_at(start);
    int64_t lane = insert(store, "old", start, INSTANT_NONE).insert.ret_lane;
    store->ops->close(store);
    instant now = start - HOUR_MS;
    store = open_at(now);
    struct store_op young = { .kind = OP_INSERT, .insert = { .destination = SLICE("d"), .tenant = SLICE("t"), .id = SLICE("young"),
                                                             .rank = now + 1, .run_at = now, .deadline = INSTANT_NONE,
                                                             .payload = SLICE("{}") } };
    apply(store, now + 1, young);
    struct store_op claim = apply(store, now + 2, (struct store_op){ .kind = OP_CLAIM, .claim = { .lane = lane, .max = 1,
                                                                                              .lease_until = now + 9, .owner = SLICE("w") } });
    assert_true(claim.claim.ret_count == 1 && slice_equal(claim.claim.ret_jobs[0].id, SLICE("old")));
    store->ops->close(store);
}

/* Seconds are left to the process's clock, which begins later. */
static void little_is_not_moved(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/little.db", test_folder);
    struct store *store = open_at(start);
    fill(store);
    store->ops->close(store);
    store = open_at(start - 10000);
    assert_int_equal(store->shifted_ms, 0);
    assert_int_equal(store->newest_at, start);
    store->ops->close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_left_is_still_left),
        cmocka_unit_test(older_work_stays_first),
        cmocka_unit_test(little_is_not_moved),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}
