/* Who else has a store's file open when a daemon comes: one that reads for long, and another daemon, by whatever name. */
#include "store/sqlite/sqlite.h"
#include "support/store_fixture.h"

#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

enum { PATH_BYTES = 300 };

static void path_of(const struct store_fixture *f, const char *name, char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%s/%s", f->place.folder, name);
}

static enum status open_second(const char *path, struct store **ret_store, struct error *err)
{
    static const struct store_settings settings = { .sync_always = true };
    return store_sqlite_open(slice_from(path), &settings, ret_store, err);
}

/* A backup of a large store, or somebody's sqlite3 with a transaction open, may take hours. */
static void who_reads_for_long_keeps_no_daemon_from_starting(void **state)
{
    struct store_fixture *f = *state;
    struct error err = { STATUS_OK, "" };
    char path[PATH_BYTES];
    sqlite3 *db = NULL;
    path_of(f, "store.db", path);
    put(f, "before");
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT count(*) FROM job", NULL, NULL, NULL), SQLITE_OK);
    put(f, "while it reads");
    f->reader->ops->reader_close(f->reader);
    f->store->ops->close(f->store);
    f->reader = NULL;
    f->store = NULL;
    if (open_second(path, &f->store, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(f->store->ops->reader(f->store, &f->reader, &err), STATUS_OK);
    assert_true(job_exists(f, "t", "while it reads"));
    put(f, "after");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    put(f, "and on");
}

/* Who finds a daemon that will not start may take the lock's file for a leftover. */
static void a_lock_that_somebody_removed_still_holds(void **state)
{
    struct store_fixture *f = *state;
    struct store *second = NULL;
    struct error err = { STATUS_OK, "" };
    char path[PATH_BYTES], lock[PATH_BYTES];
    path_of(f, "store.db", path);
    path_of(f, "store.db.lock", lock);
    put(f, "a");
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(open_second(path, &second, &err), STATUS_BUSY);
    put(f, "the first is not disturbed");
}

static void a_store_has_one_daemon_by_whatever_name(void **state)
{
    struct store_fixture *f = *state;
    char path[PATH_BYTES], other[PATH_BYTES];
    path_of(f, "store.db", path);
    put(f, "a");
    for (int hard = 0; hard < 2; hard++) {
        struct store *second = NULL;
        struct error err = { STATUS_OK, "" };
        path_of(f, hard ? "hard.db" : "soft.db", other);
        assert_int_equal(hard ? link(path, other) : symlink(path, other), 0);
        assert_int_equal(open_second(other, &second, &err), STATUS_BUSY);
    }
    put(f, "b");
}

int main(void)
{
    static const struct store_under_test *sqlite = NULL;
    for (size_t i = 0; i < stores_under_test_count; i++)
        if (strcmp(stores_under_test[i].name, "sqlite") == 0)
            sqlite = &stores_under_test[i];
    const struct CMUnitTest tests[] = {
        { "who reads for long keeps no daemon from starting", who_reads_for_long_keeps_no_daemon_from_starting, fixture_setup,
          fixture_teardown, (void *)(uintptr_t)sqlite },
        { "a lock that somebody removed still holds", a_lock_that_somebody_removed_still_holds, fixture_setup,
          fixture_teardown, (void *)(uintptr_t)sqlite },
        { "a store has one daemon by whatever name", a_store_has_one_daemon_by_whatever_name, fixture_setup,
          fixture_teardown, (void *)(uintptr_t)sqlite },
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
