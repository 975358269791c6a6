/*
 * A store of version 1 is brought to the newest, and that is broken off everywhere: at every action of every statement,
 * at every call to the disk, by a power cut at each of these. Each time the file is wholly of one version, its number
 * included, and opening it again goes on to the same end.
 */
#include "store/sqlite/schema.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/store_recount.h"
#include "support/vfs_power.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 256, PLACES_MAX = 100000 };

static char folder[FOLDER_BYTES], path[PATH_BYTES], cut[PATH_BYTES];
static char dump[1 << 20];
static unsigned char whole[RECOUNT_DIGEST_BYTES]; /* of the store when nothing breaks */

static void files_remove(const char *file)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-journal", ".lock", ".new" };
    for (size_t i = 0; i < COUNT_OF(endings); i++) {
        char name[PATH_BYTES + 16];
        snprintf(name, sizeof name, "%s%s", file, endings[i]);
        unlink(name);
    }
}

static void make_version_1(void)
{
    sqlite3 *db = NULL;
    files_remove(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, dump, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int64_t number_of(sqlite3 *db, const char *sql)
{
    int64_t value = -1;
    struct error err = { 0 };
    check(sqlite_query_int64(db, sql, -1, &value, &err) == STATUS_OK, "%s: %s", sql, err.text);
    return value;
}

/* What each step leaves; the version's number must go with it. */
static int check_whole(const char *file, const char *where)
{
    static const char saved[] = "SELECT count(*) FROM sqlite_master WHERE name = 'kept'";
    static const char destination[] = "SELECT count(*) FROM sqlite_master WHERE name = 'destination'";
    static const char partial[] = "SELECT count(*) FROM sqlite_master WHERE name = 'job_key' AND sql LIKE '%WHERE%'";
    static const char failures[] =
        "SELECT count(*) FROM pragma_table_info('job') WHERE name IN ('failed_at', 'look_failed_at')";
    static const char view[] = "SELECT count(*) FROM sqlite_master WHERE name = 'job_now'";
    static const char named[] = "SELECT count(*) FROM lease WHERE owner = 'engine'";
    static const char keys[] = "SELECT count(*) FROM sqlite_master WHERE name = 'archive_key'";
    static const char lanes[] =
        "SELECT (SELECT count(*) FROM pragma_table_info('lane') WHERE name IN ('stored', 'event'))"
        " + (SELECT count(*) FROM sqlite_master WHERE name IN ('gone', 'lane_used', 'lane_unused'))";
    static const char index[] = "SELECT count(*) FROM sqlite_master WHERE name = 'job_key'";
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    int version = (int)number_of(db, "PRAGMA user_version");
    check(version >= 1 && version <= store_sqlite_schema_version(), "%s: version %d", where, version);
    check(number_of(db, saved) == (version >= 2) && number_of(db, destination) == (version < 2), "%s: not all of version %d",
          where, version);
    check(number_of(db, failures) == (version >= 5 ? 2 : 0), "%s: not all of version %d", where, version);
    check(number_of(db, view) == (version >= 4), "%s: not all of version %d", where, version);
    check(number_of(db, named) == (version < 7), "%s: not all of version %d", where, version);
    check(number_of(db, keys) == 1, "%s: not all of version %d", where, version);
    check(number_of(db, lanes) == (version >= 9 ? 5 : 0), "%s: not all of version %d", where, version);
    check(number_of(db, index) == 1 && number_of(db, partial) == (version >= 3), "%s: not all of version %d", where, version);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return version;
}

/* The daemon is started again, and nothing breaks. */
static void check_goes_on(const char *file, const char *where)
{
    static const struct store_settings settings = { .sync_always = true };
    char text[RECOUNT_TEXT_BYTES];
    unsigned char digest[RECOUNT_DIGEST_BYTES];
    struct store *store = NULL;
    struct error err = { 0 };
    check(store_sqlite_open(slice_from(file), &settings, &store, &err) == STATUS_OK, "%s: %s", where, err.text);
    store->ops->close(store);
    check(recount_holds(file, text), "%s: %s", where, text);
    assert_true(recount_digest(file, digest));
    check(memcmp(digest, whole, sizeof digest) == 0, "%s: the content is another", where);
}

static unsigned every_version(void)
{
    return (1u << (store_sqlite_schema_version() + 1)) - 2; /* a bit for each, from 1 on */
}

/* ---- statements ---- */

static int action_nth, action_calls;

static int deny_nth(void *context, int action, const char *a, const char *b, const char *c, const char *d)
{
    (void)context;
    (void)action;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return ++action_calls == action_nth ? SQLITE_DENY : SQLITE_OK;
}

static void each_statement_may_fail(void **state)
{
    unsigned versions = 0; /* a bit for each that a failure left */
    enum status status = STATUS_IO;
    (void)state;
    for (action_nth = 1; status != STATUS_OK && action_nth < PLACES_MAX; action_nth++) {
        sqlite3 *db = NULL;
        struct error err = { 0 };
        char where[32];
        snprintf(where, sizeof where, "action %d", action_nth);
        make_version_1();
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        action_calls = 0;
        sqlite3_set_authorizer(db, deny_nth, NULL);
        status = sqlite_schema_migrate(db, NULL, &err);
        check(sqlite3_get_autocommit(db), "%s: a transaction is left open", where);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        versions |= 1u << check_whole(path, where);
        check_goes_on(path, where);
    }
    assert_int_equal(status, STATUS_OK);
    assert_true(action_nth > 30);
    assert_int_equal(versions, every_version()); /* it went on from the middle, too */
}

/* ---- the disk ---- */

static void each_call_to_the_disk_may_fail(void **state)
{
    static const enum power_call calls[] = { POWER_WRITE, POWER_SYNC, POWER_TRUNCATE, POWER_READ };
    static const struct store_settings settings = { .sync_always = true };
    size_t failures = 0;
    (void)state;
    power_on();
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        bool failed = true;
        for (int nth = 1; failed && nth < PLACES_MAX; nth++) {
            struct store *store = NULL;
            struct error err = { 0 };
            char where[48];
            snprintf(where, sizeof where, "call %d, time %d", (int)calls[i], nth);
            make_version_1();
            power_fail(calls[i], nth, calls[i] == POWER_WRITE ? ENOSPC : EIO, true);
            if (store_sqlite_open(slice_from(path), &settings, &store, &err) == STATUS_OK)
                store->ops->close(store);
            failed = power_failed();
            failures += failed;
            power_fail(POWER_WRITE, 0, 0, false);
            check_whole(path, where);
            check_goes_on(path, where);
        }
    }
    power_off();
    assert_true(failures > 30);
}

/* ---- power ---- */

static size_t moments, cuts;
static unsigned cut_versions;

static void cut_here(enum power_call call, void *context)
{
    static const enum power_loss losses[] = { POWER_LOSE_ALL, POWER_LOSE_NONE, POWER_LOSE_TORN, POWER_LOSE_FIRST, POWER_LOSE_SOME };
    (void)call;
    (void)context;
    moments++;
    power_plain(true);
    for (size_t i = 0; i < COUNT_OF(losses); i++, cuts++) {
        char where[48];
        snprintf(where, sizeof where, "moment %zu, loss %zu", moments, i);
        assert_true(power_cut(path, cut, losses[i], moments));
        cut_versions |= 1u << check_whole(cut, where);
        check_goes_on(cut, where);
        files_remove(cut);
    }
    power_plain(false);
}

static void the_power_may_go(void **state)
{
    static const struct store_settings settings = { .sync_always = true };
    struct store *store = NULL;
    struct error err = { 0 };
    (void)state;
    power_on();
    make_version_1();
    power_watch(cut_here, NULL);
    check(store_sqlite_open(slice_from(path), &settings, &store, &err) == STATUS_OK, "%s", err.text);
    power_watch(NULL, NULL);
    store->ops->close(store);
    power_off();
    assert_true(moments > 20);
    assert_int_equal(cut_versions, every_version());
}

static int group_setup(void **state)
{
    (void)state;
    FILE *file = fopen("tests/support/store_v1.sql", "rb");
    if (!file || folder_make(folder) != 0)
        return -1;
    dump[fread(dump, 1, sizeof dump - 1, file)] = '\0';
    fclose(file);
    snprintf(path, sizeof path, "%s/store.db", folder);
    snprintf(cut, sizeof cut, "%s/cut.db", folder);
    make_version_1();
    static const struct store_settings settings = { .sync_always = true };
    struct store *store = NULL;
    struct error err;
    if (store_sqlite_open(slice_from(path), &settings, &store, &err) != STATUS_OK)
        return -1;
    store->ops->close(store);
    return recount_digest(path, whole) ? 0 : -1;
}

static int group_teardown(void **state)
{
    (void)state;
    files_remove(path);
    files_remove(cut);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_statement_may_fail),
        cmocka_unit_test(each_call_to_the_disk_may_fail),
        cmocka_unit_test(the_power_may_go),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
