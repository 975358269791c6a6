/*
 * What is erased because of a person is not in the file: not in a page that is used or free, and not in the log. The words
 * are looked for in the bytes of the files themselves.
 */
#include "store/sqlite/sqlite.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/store_look.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOW_S = 1760000000, JOBS = 120, LARGE_BYTES = 20000, TENDS_MAX = 200 };

#define WORD "ana.unica@example.py"

static const instant now = (instant)NOW_S * 1000;

static const char *path_of(const char *name, const char *end)
{
    static char paths[4][PATH_MAX];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_MAX, "%s/%s%s", test_folder, name, end);
    return path;
}

static struct store *open_store(const char *name)
{
    struct store_settings settings = { .sync_always = false };
    struct error err = { STATUS_OK, "" };
    struct store *store = NULL;
    if (store_sqlite_open(slice_from(path_of(name, "")), &settings, &store, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return store;
}

static struct store_op apply(struct store *store, struct arena *memory, struct store_op op)
{
    struct error err = { STATUS_OK, "" };
    if (store->ops->apply(store, now, &op, 1, memory, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return op;
}

/* How often the word is in a file; 0 where there is none. */
static size_t words_in(const char *path)
{
    size_t found = 0, len = 0;
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    len = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(len + 1), *at = bytes;
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, len, file), len);
    fclose(file);
    while ((at = memmem(at, len - (size_t)(at - bytes), WORD, strlen(WORD)))) {
        found++;
        at++;
    }
    free(bytes);
    return found;
}

static size_t words(const char *name)
{
    return words_in(path_of(name, "")) + words_in(path_of(name, "-wal"));
}

/* Every second job tells of the person, in its payload, metadata, error and events; every tenth is large. */
static void fill(struct store *store)
{
    static char large[LARGE_BYTES];
    static int64_t first; /* of the lane: whoever came last is claimed */
    struct arena memory = { 0 };
    for (int i = 0; i < JOBS; i++) {
        char id[16];
        const char *who = i % 2 ? WORD : "nobody@example.py";
        snprintf(id, sizeof id, "j%d", i);
        memset(large, ' ', sizeof large);
        int len = snprintf(large, sizeof large, "{\"to\":\"%s\"}", who);
        memcpy(large + sizeof large - 40, who, strlen(who));
        large[len] = ' ';
        struct store_op op = { .kind = OP_INSERT, .insert = { .destination = SLICE("d"), .tenant = SLICE("t"), .id = slice_from(id),
                                                              .rank = --first, .run_at = now, .deadline = INSTANT_NONE, .metadata = slice_from(who),
                                                              .payload = { large, i % 10 < 2 ? sizeof large : (size_t)len } } };
        op = apply(store, &memory, op);
        int64_t lane = op.insert.ret_lane;
        if (i % 3 == 0 || op.insert.ret_existed)
            continue;
        op = (struct store_op){ .kind = OP_CLAIM, .claim = { .lane = lane, .max = 1, .lease_until = now + 1000 } };
        op = apply(store, &memory, op);
        char data[128];
        snprintf(data, sizeof data, "{\"error\":\"no such patient %s\"}", who);
        struct job job = op.claim.ret_jobs[0];
        op = (struct store_op){ .kind = OP_SETTLE, .data = slice_from(data),
                                .settle = { .seq = job.seq, .token = job.lease_token, .event = i % 3 == 1 ? EVENT_GIVE_UP : EVENT_DELIVER,
                                            .error = slice_from(data), .code = SLICE("http:404"), .outcome = OUTCOME_PERMANENT,
                                            .dead_code = SLICE("PERMANENT_ERROR"), .forget_at = INSTANT_NONE } };
        apply(store, &memory, op);
    }
    struct store_op op = { .kind = OP_SAVE, .save = { .space = SLICE("redrive_payload"), .name = SLICE("R.7"), .value = SLICE(WORD) } };
    apply(store, &memory, op);
    arena_release(&memory);
}

/* As an erasure does it: the jobs, then what the trail tells of the person. */
static void erase(struct store *store, int from, int to)
{
    struct arena memory = { 0 };
    struct store_reader *reader;
    struct error err = { STATUS_OK, "" };
    struct event *events;
    size_t count;
    int64_t after = 0;
    for (int i = from; i < to; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        if (i % 2)
            apply(store, &memory, (struct store_op){ .kind = OP_ERASE, .data = SLICE("{\"by\":\"ops\"}"),
                                                     .job = { .tenant = SLICE("t"), .id = slice_from(id) } });
    }
    apply(store, &memory, (struct store_op){ .kind = OP_SAVE, .save = { .space = SLICE("redrive_payload"), .name = SLICE("R.7") } });
    assert_int_equal(store->ops->reader(store, &reader, &err), STATUS_OK);
    do {
        assert_int_equal(reader->ops->reader_events(reader, after, 100, &memory, &events, &count, &err), STATUS_OK);
        for (size_t i = 0; i < count; i++) {
            after = events[i].number;
            if (memmem(events[i].data.data, events[i].data.len, WORD, strlen(WORD)))
                apply(store, &memory, (struct store_op){ .kind = OP_ERASE_EVENTS, .erase = { .numbers = &after, .count = 1 } });
        }
    } while (count > 0);
    reader->ops->reader_close(reader);
    arena_release(&memory);
}

/* As the writer does each second; true: nothing is left to find. */
static bool tend_until_clean(struct store *store, const char *name, int tends)
{
    struct error err = { STATUS_OK, "" };
    for (int i = 0; i < tends && words(name) > 0; i++)
        if (store->ops->tend(store, now + 1000 * (i + 1), &err) != STATUS_OK)
            fail_msg("%s", err.text);
    return words(name) == 0;
}

static void assert_whole(const char *name, int64_t erased_least)
{
    struct trail_check check;
    struct error err = { STATUS_OK, "" };
    if (look_verify(path_of(name, ""), NULL, &check, &err) != STATUS_OK || look_check(path_of(name, ""), &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_true(check.erased >= erased_least);
}

static void nothing_is_left_in_the_file(void **state)
{
    (void)state;
    struct store *store = open_store("a.db");
    fill(store);
    check(words("a.db") > JOBS / 2, "the word is there: %zu", words("a.db"));
    erase(store, 0, JOBS);
    assert_true(tend_until_clean(store, "a.db", TENDS_MAX));
    fill(store); /* it goes on, and the log begins anew */
    erase(store, 0, JOBS);
    assert_true(tend_until_clean(store, "a.db", TENDS_MAX));
    store->ops->close(store);
    assert_int_equal(words("a.db"), 0);
    assert_whole("a.db", JOBS / 3);
}

static void who_stops_in_the_middle_goes_on(void **state)
{
    (void)state;
    struct store *store = open_store("b.db");
    fill(store);
    erase(store, 0, JOBS / 2);
    store->ops->close(store);
    assert_true(words("b.db") > 0);
    store = open_store("b.db");
    erase(store, JOBS / 2, JOBS);
    store->ops->close(store); /* before it was scrubbed */
    store = open_store("b.db");
    assert_true(tend_until_clean(store, "b.db", TENDS_MAX));
    store->ops->close(store);
    assert_whole("b.db", JOBS / 3);
}

static void a_long_read_is_not_waited_for(void **state)
{
    (void)state;
    struct store *store = open_store("c.db");
    struct error err = { STATUS_OK, "" };
    sqlite3 *db = NULL;
    fill(store);
    assert_int_equal(sqlite3_open_v2(path_of("c.db", ""), &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT count(*) FROM job", NULL, NULL, NULL), SQLITE_OK);
    erase(store, 0, JOBS);
    assert_false(tend_until_clean(store, "c.db", 3)); /* who reads still sees it */
    assert_int_equal(store->ops->sync(store, &err), STATUS_OK);
    sqlite3_close(db);
    assert_true(tend_until_clean(store, "c.db", TENDS_MAX));
    store->ops->close(store);
    assert_whole("c.db", JOBS / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_left_in_the_file),
        cmocka_unit_test(who_stops_in_the_middle_goes_on),
        cmocka_unit_test(a_long_read_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}
