/*
 * The log's writes are gathered and given to the file in long pieces. Whoever reads the file beside the writer must not
 * notice, at no moment, whatever fails; and what was never committed must never come to light.
 */
#include "base/hash.h"
#include "store/sqlite/handle.h"
#include "support/folder.h"
#include "support/store_recount.h"
#include "support/store_script.h"
#include "support/vfs_power.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SHARE 7 /* instrumented programs do a part of it */
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHARE 7
#endif
#endif
#ifndef SHARE
#define SHARE 1
#endif

enum { PATH_BYTES = 256, SQL_BYTES = 512, CHECKPOINT_PAGES_SMALL = 30, RESERVE_PAGES_SMALL = 8, RESERVE_PAGES_LARGE = 40 };

static char folder[FOLDER_BYTES], path[PATH_BYTES], plain_path[PATH_BYTES];
static bool powered;

static struct store *store_at(int cache_pages)
{
    struct store_settings settings = { .sync_always = true, .pending_max = 1000 };
    struct store *store = NULL;
    struct error err = { STATUS_OK, "" };
    char sql[64];
    if (store_sqlite_open(slice_from(path), &settings, &store, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    struct sqlite_store *own = (struct sqlite_store *)store;
    own->log.checkpoint_pages = CHECKPOINT_PAGES_SMALL;
    own->log.reserve_pages = RESERVE_PAGES_SMALL;
    snprintf(sql, sizeof sql, "PRAGMA cache_size = %d", cache_pages);
    assert_int_equal(sqlite3_exec(own->db, sql, NULL, NULL, NULL), SQLITE_OK);
    return store;
}

static void files_remove(const char *of)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-journal", ".lock", ".new" };
    char name[PATH_BYTES + 8];
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        snprintf(name, sizeof name, "%s%s", of, endings[i]);
        unlink(name);
    }
}

static void disk_on(void)
{
    power_on();
    powered = true;
}

static void disk_off(void)
{
    power_watch(NULL, NULL);
    power_off();
    powered = false;
}

/* ---- Readers beside the writer ---- */

static struct {
    unsigned char digests[SCRIPT_BATCHES + 1][RECOUNT_DIGEST_BYTES]; /* before batch i */
    bool known;
    int done;
    size_t looks, moments;
} view;

static void look(const char *when)
{
    unsigned char digest[RECOUNT_DIGEST_BYTES];
    char text[RECOUNT_TEXT_BYTES];
    if (!recount_holds(path, text))
        fail_msg("%s batch %d: %s", when, view.done, text);
    assert_true(recount_digest(path, digest));
    if (!view.known)
        memcpy(view.digests[view.done], digest, sizeof digest);
    if (memcmp(digest, view.digests[view.done], sizeof digest) != 0)
        fail_msg("%s batch %d: something else is there", when, view.done);
    view.looks++;
}

/* In the middle of the writer's transaction: the reader sees what was committed before it. */
static void look_during(enum power_call call, void *context)
{
    (void)context;
    if ((call != POWER_WRITE && call != POWER_SYNC) || ++view.moments % (3 * SHARE) != 0)
        return;
    power_watch(NULL, NULL);
    look("during");
    power_watch(look_during, NULL);
}

static void script_looked_at(int cache_pages, bool during)
{
    struct script script = { { 0 } };
    struct error err = { STATUS_OK, "" };
    struct store *store = store_at(cache_pages);
    view.looks = 0;
    for (view.done = 0; view.done <= SCRIPT_BATCHES; view.done++) {
        look("before");
        if (view.done == SCRIPT_BATCHES)
            break;
        power_watch(during ? look_during : NULL, NULL);
        if (script_apply(&script, store, view.done, &err) != STATUS_OK)
            fail_msg("batch %d: %s", view.done, err.text);
        power_watch(NULL, NULL);
    }
    store->ops->close(store);
    files_remove(path);
}

static void test_readers(void **state)
{
    static const struct {
        const char *name;
        int cache_pages;
        bool during, unsafe;
    } cases[] = {
        { "after each commit", 2000, false, false },
        { "within transactions", 2000, true, false },
        { "within transactions whose pages go to the log early", 1, true, false },
        { "on a disk that needs whole sectors", 2000, false, true },
        { "on such a disk, within transactions", 1, true, true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        disk_on();
        power_unsafe(cases[i].unsafe);
        script_looked_at(cases[i].cache_pages, cases[i].during);
        disk_off();
        view.known = true;
        if (cases[i].during && view.looks < 100 / SHARE)
            fail_msg("%s: looked only %zu times", cases[i].name, view.looks);
    }
}

/* ---- Side by side with a log that SQLite writes by itself ---- */

static uint64_t chance_state;

static unsigned chance(unsigned below)
{
    chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(chance_state >> 33) % below;
}

struct pair {
    struct store *store;
    sqlite3 *gathered, *plain;
    int committed, rolled_back, failed;
};

static void exec(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static void pair_open(struct pair *pair)
{
    static const char *const settings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = 2";
    static const char *const table = "CREATE TABLE mixed (a INTEGER PRIMARY KEY, b INTEGER, c BLOB); CREATE INDEX mixed_b ON mixed (b)";
    *pair = (struct pair){ .store = store_at(2) };
    pair->gathered = ((struct sqlite_store *)pair->store)->db;
    power_plain(true);
    assert_int_equal(sqlite3_open(plain_path, &pair->plain), SQLITE_OK);
    power_plain(false);
    exec(pair->plain, settings);
    exec(pair->plain, table);
    exec(pair->gathered, table);
}

/* The bytes are by a formula: both sides must write the same. */
static void statement_make(char *sql)
{
    unsigned key = chance(80), value = chance(100000);
    switch (chance(9)) {
    case 0:
    case 1:
    case 2:
    case 3:
        snprintf(sql, SQL_BYTES,
                 "INSERT OR REPLACE INTO mixed VALUES (%u, %u, CAST(printf('%%.*c', %u, 'x') || %u AS BLOB))", key, value,
                 chance(4500), value);
        break;
    case 4:
        snprintf(sql, SQL_BYTES, "DELETE FROM mixed WHERE a %% 7 = %u AND a < %u", value % 7, key);
        break;
    case 5:
        snprintf(sql, SQL_BYTES, "UPDATE mixed SET b = b + 1 WHERE a BETWEEN %u AND %u", key, key + 20);
        break;
    case 6:
        snprintf(sql, SQL_BYTES, "SAVEPOINT s%u", value % 3);
        break;
    case 7:
        snprintf(sql, SQL_BYTES, "ROLLBACK TO s%u", value % 3);
        break;
    default:
        snprintf(sql, SQL_BYTES, "SELECT sum(b), sum(length(c)) FROM mixed");
        break;
    }
}

static uint64_t content_of(const char *file)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    uint64_t sum = 0;
    power_plain(true);
    assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    power_plain(false);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT a, b, c FROM mixed ORDER BY b, a", -1, &statement, NULL), SQLITE_OK);
    int result;
    while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
        uint64_t numbers[2] = { (uint64_t)sqlite3_column_int64(statement, 0), (uint64_t)sqlite3_column_int64(statement, 1) };
        struct slice bytes = { sqlite3_column_blob(statement, 2), (size_t)sqlite3_column_bytes(statement, 2) };
        sum = hash_slice(sum, numbers[0], (struct slice){ (const char *)numbers, sizeof numbers });
        sum = hash_slice(sum, 1, bytes);
    }
    if (result != SQLITE_DONE)
        fail_msg("%s: %s", file, sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return sum;
}

/* One transaction on both. What fails on a full disk is undone on the other side, too. */
static void pair_transact(struct pair *pair, bool full)
{
    char sql[SQL_BYTES];
    int result = SQLITE_OK;
    exec(pair->gathered, "BEGIN IMMEDIATE");
    exec(pair->plain, "BEGIN IMMEDIATE");
    if (full)
        power_fail(POWER_WRITE, 1 + (int)chance(4), ENOSPC, chance(2));
    power_fail_leaves((enum power_rest)chance(3));
    for (unsigned i = 1 + chance(25); i > 0 && result == SQLITE_OK; i--) {
        statement_make(sql);
        int plain = sqlite3_exec(pair->plain, sql, NULL, NULL, NULL);
        result = sqlite3_exec(pair->gathered, sql, NULL, NULL, NULL);
        if (plain == SQLITE_ERROR && result == SQLITE_ERROR)
            result = SQLITE_OK; /* there is no such savepoint */
        else if (result == SQLITE_OK && plain != SQLITE_OK)
            fail_msg("%s: %s", sql, sqlite3_errmsg(pair->plain));
    }
    bool undo = chance(4) == 0;
    if (result == SQLITE_OK && !undo)
        result = sqlite3_exec(pair->gathered, "COMMIT", NULL, NULL, NULL);
    if (result != SQLITE_OK && (result & 0xff) != SQLITE_FULL)
        fail_msg("%s: %s", sql, sqlite3_errmsg(pair->gathered));
    if (!sqlite3_get_autocommit(pair->gathered))
        sqlite3_exec(pair->gathered, "ROLLBACK", NULL, NULL, NULL);
    exec(pair->plain, result == SQLITE_OK && !undo ? "COMMIT" : "ROLLBACK");
    pair->failed += result != SQLITE_OK;
    pair->rolled_back += result == SQLITE_OK && undo;
    pair->committed += result == SQLITE_OK && !undo;
    power_fail(POWER_WRITE, 0, 0, false); /* there is room again */
}

static void test_side_by_side(void **state)
{
    enum { TRANSACTIONS = 300 / SHARE };
    (void)state;
    struct pair pair;
    chance_state = 42;
    disk_on();
    pair_open(&pair);
    for (int i = 0; i < TRANSACTIONS; i++) {
        pair_transact(&pair, chance(3) == 0);
        if (content_of(path) != content_of(plain_path))
            fail_msg("after transaction %d, %d of them committed, the two differ", i, pair.committed);
        if (chance(20) == 0)
            sqlite3_wal_checkpoint_v2(pair.gathered, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    }
    assert_true(pair.committed > TRANSACTIONS / 3 && pair.rolled_back > TRANSACTIONS / 20 && pair.failed > TRANSACTIONS / 20);
    uint64_t before = content_of(path);
    pair.store->ops->close(pair.store);
    assert_true(content_of(path) == before);
    sqlite3_close(pair.plain);
    disk_off();
    files_remove(path);
    files_remove(plain_path);
}

/* ---- A disk that is full at one write ---- */

/* Every write in turn: the batch is refused, nothing of it is there, and it works once there is room. */
static void test_full(void **state)
{
    static const enum power_rest rests[] = { POWER_REST_NOTHING, POWER_REST_HALF, POWER_REST_ALMOST_ALL };
    (void)state;
    for (size_t row = 0; row < 6; row++) {
        int cache_pages = row < 3 ? 2000 : 1, refused = 0;
        bool happened = true;
        for (int nth = 1; happened; nth += row < 3 ? SHARE : 5 * SHARE) {
            struct script script = { { 0 } };
            struct error err = { STATUS_OK, "" };
            disk_on();
            struct store *store = store_at(cache_pages);
            ((struct sqlite_store *)store)->log.reserve_pages = row % 2 ? RESERVE_PAGES_SMALL : RESERVE_PAGES_LARGE;
            power_fail_leaves(rests[row % 3]);
            power_fail(POWER_WRITE, nth, ENOSPC, true);
            for (view.done = 0; view.done < SCRIPT_BATCHES; view.done++) {
                enum status status = script_apply(&script, store, view.done, &err);
                if (status == STATUS_FULL) {
                    look("refused");
                    refused++;
                    status = script_apply(&script, store, view.done, &err);
                }
                if (status != STATUS_OK)
                    fail_msg("write %d, batch %d: %s", nth, view.done, err.text);
                char log[PATH_BYTES + 8];
                struct stat facts;
                snprintf(log, sizeof log, "%s-wal", path);
                if (stat(log, &facts) != 0 || ((struct sqlite_store *)store)->log.bytes > facts.st_size)
                    fail_msg("write %d, batch %d: the log is thought to be longer than it is", nth, view.done);
            }
            look("at the end");
            happened = power_failed();
            store->ops->close(store);
            disk_off();
            files_remove(path);
        }
        assert_true(refused > 0);
    }
}

/* A failed test leaves the disk switched on. */
static int test_teardown(void **state)
{
    (void)state;
    if (powered)
        disk_off();
    files_remove(path);
    files_remove(plain_path);
    return 0;
}

static int group_setup(void **state)
{
    (void)state;
    if (folder_make(folder) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/store.db", folder);
    snprintf(plain_path, sizeof plain_path, "%s/plain.db", folder);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_readers, test_teardown),
        cmocka_unit_test_teardown(test_side_by_side, test_teardown),
        cmocka_unit_test_teardown(test_full, test_teardown),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
