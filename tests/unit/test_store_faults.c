/*
 * Every call to the disk fails once and for good, and every allocation fails, at each place of a script with every
 * kind of operation. The store never crashes, says what happened, and either goes on as if nothing had been asked
 * or, opened anew, holds whole batches only.
 */
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
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

/* A part of the calls fails, fewer in instrumented programs; INSIST_LONG lets each of them. */
#ifdef SANITIZED
#define FAULTS_STEP 7
#else
#define FAULTS_STEP 3
#endif

enum { PATH_BYTES = 256, CHECKPOINT_PAGES_SMALL = 30, RESERVE_PAGES_SMALL = 4, RESERVE_PAGES_LARGE = 40 };

static char folder[FOLDER_BYTES], path[PATH_BYTES];
static int reserve_pages = RESERVE_PAGES_SMALL;
static bool small_cache; /* pages go to the log before their commit, and come back from there */
static unsigned char digests[SCRIPT_BATCHES + 1][RECOUNT_DIGEST_BYTES]; /* before batch i */

/* ---- Memory that fails ---- */

static int memory_nth;   /* 0: none fails */
static int memory_calls; /* since memory_nth was set */
static bool memory_once;
static bool memory_failed;

static bool memory_fails(void)
{
    if (memory_nth == 0)
        return false;
    memory_calls++;
    bool now = memory_once ? memory_calls == memory_nth : memory_calls >= memory_nth;
    memory_failed = memory_failed || now;
    return now;
}

static void memory_fail(int nth, bool once)
{
    memory_nth = nth;
    memory_calls = 0;
    memory_once = once;
    if (nth > 0)
        memory_failed = false;
}

#ifndef SANITIZED
/* The program's own allocations too: these stand before libc's. A sanitizer has its own, there only SQLite's fail. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *memory, size_t size);

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    return memory_fails() ? NULL : __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
    return memory_fails() ? NULL : __libc_calloc(count, size);
}

__attribute__((visibility("default"))) void *realloc(void *memory, size_t size)
{
    return memory_fails() ? NULL : __libc_realloc(memory, size);
}
#else
static sqlite3_mem_methods plain_memory;

static void *sqlite_malloc(int size)
{
    return memory_fails() ? NULL : plain_memory.xMalloc(size);
}

static void *sqlite_realloc(void *memory, int size)
{
    return memory_fails() ? NULL : plain_memory.xRealloc(memory, size);
}
#endif

/* ---- Runs ---- */

static enum status store_try(struct store **ret_store, struct error *err)
{
    struct store_settings settings = { .sync_always = true, .pending_max = 1000 };
    enum status status = store_sqlite_open(slice_from(path), &settings, ret_store, err);
    if (status == STATUS_OK) {
        ((struct sqlite_store *)*ret_store)->log.checkpoint_pages = CHECKPOINT_PAGES_SMALL;
        ((struct sqlite_store *)*ret_store)->log.reserve_pages = reserve_pages;
        if (small_cache)
            sqlite3_exec(((struct sqlite_store *)*ret_store)->db, "PRAGMA cache_size = 1", NULL, NULL, NULL);
    }
    return status;
}

static void faults_stop(void)
{
    memory_fail(0, false);
    power_fail(POWER_WRITE, 0, 0, false);
}

static void files_remove(void)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-journal", ".lock", ".new" };
    char name[PATH_BYTES + 16];
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        unlink(name);
    }
}

/* How many batches the file holds. Checks it in passing. */
static int batches_in_file(const char *where)
{
    unsigned char digest[RECOUNT_DIGEST_BYTES];
    char text[RECOUNT_TEXT_BYTES];
    if (!recount_holds(path, text))
        fail_msg("%s: %s", where, text);
    assert_true(recount_digest(path, digest));
    for (int i = 0; i <= SCRIPT_BATCHES; i++)
        if (memcmp(digest, digests[i], sizeof digest) == 0)
            return i;
    fail_msg("%s: not a number of whole batches", where);
    return -1;
}

static struct store *reopened(struct script *script, const char *where)
{
    struct store *store = NULL;
    struct error err = { STATUS_OK, "" };
    if (store_try(&store, &err) != STATUS_OK || script_learn(script, store, &err) != STATUS_OK)
        fail_msg("%s: cannot open again: %s", where, err.text);
    return store;
}

static bool is_told(enum status status)
{
    return status == STATUS_FULL || status == STATUS_IO || status == STATUS_NO_MEMORY || status == STATUS_CORRUPT;
}

/* A batch has failed: what the status promises must hold. Returns how many batches are there. */
static int batch_failed(struct script *script, struct store **store, int batch, enum status status, const char *where)
{
    struct error err = { STATUS_OK, "" };
    if (!is_told(status))
        fail_msg("%s, batch %d: %s", where, batch, status_name(status));
    faults_stop();
    if (status == STATUS_FULL || status == STATUS_NO_MEMORY) {
        if (batches_in_file(where) != batch)
            fail_msg("%s, batch %d: said %s and changed something", where, batch, status_name(status));
        return batch; /* and the store goes on */
    }
    struct script copy = *script;
    assert_int_equal(script_apply(&copy, *store, batch, &err), status); /* it stays refused */
    (*store)->ops->close(*store);
    *store = reopened(script, where);
    int batches = batches_in_file(where);
    if (batches != batch && batches != batch + 1)
        fail_msg("%s, batch %d: %d batches are there", where, batch, batches);
    return batches;
}

/* Runs the script with whatever fault is set. The fault ends with the first failure that it causes. */
/* What is thought to be there of the log is there: else the next commits would not make it longer ahead of use. */
static void log_length_is_known(const struct store *store, const char *where)
{
    char log[PATH_BYTES + 8];
    struct stat facts;
    int64_t known = ((const struct sqlite_store *)store)->log.bytes;
    snprintf(log, sizeof log, "%s-wal", path);
    if (stat(log, &facts) == 0 && known > facts.st_size)
        fail_msg("%s: the log has %lld bytes, not %lld", where, (long long)facts.st_size, (long long)known);
}

static void script_survives(const char *where)
{
    struct script script = { { 0 } };
    struct error err = { STATUS_OK, "" };
    struct store *store = NULL;
    enum status status = store_try(&store, &err);
    if (status != STATUS_OK) {
        if (!is_told(status))
            fail_msg("%s: opening said %s: %s", where, status_name(status), err.text);
        faults_stop();
        store = reopened(&script, where);
    }
    for (int batch = 0; batch < SCRIPT_BATCHES;) {
        status = script_apply(&script, store, batch, &err);
        log_length_is_known(store, where);
        batch = status == STATUS_OK ? batch + 1 : batch_failed(&script, &store, batch, status, where);
        if (script_closes_after(batch - 1) && status == STATUS_OK) {
            store->ops->close(store); /* may fail to write the log back; it is there then */
            faults_stop();
            store = reopened(&script, where);
        }
    }
    faults_stop();
    store->ops->close(store);
    if (batches_in_file(where) != SCRIPT_BATCHES)
        fail_msg("%s: batches are missing at the end", where);
}

static void test_disk(void **state)
{
    static const struct {
        const char *name;
        enum power_call call;
        int errno_value;
        int step; /* every so many */
        bool small_cache;
    } faults[] = {
        { "write, no space", POWER_WRITE, ENOSPC, 3, false },
        { "write, error", POWER_WRITE, EIO, 3, false },
        { "sync, error", POWER_SYNC, EIO, 1, false },
        { "truncate, error", POWER_TRUNCATE, EIO, 1, false },
        { "read, error", POWER_READ, EIO, 1, false },
        { "open, error", POWER_OPEN, EMFILE, 1, false },
        { "shared memory, error", POWER_SHM_MAP, ENOMEM, 1, false },
        { "delete, error", POWER_DELETE, EACCES, 1, false },
        { "small cache, write, no space", POWER_WRITE, ENOSPC, 11, true },
        { "small cache, write, error", POWER_WRITE, EIO, 11, true },
        { "small cache, read, error", POWER_READ, EIO, 41, true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        for (int once = 0; once < 2; once++) {
            bool happened = true;
            int count = 0;
            int step = getenv("INSIST_LONG") ? 1 : faults[i].step * (faults[i].step > 1 ? FAULTS_STEP : 1);
            for (int nth = 1; happened; nth += step, count++) {
                char where[96];
                snprintf(where, sizeof where, "%s, call %d%s", faults[i].name, nth, once ? ", once" : "");
                small_cache = faults[i].small_cache;
                power_on();
                power_fail(faults[i].call, nth, faults[i].errno_value, once);
                script_survives(where);
                happened = power_failed();
                power_off();
                files_remove();
            }
            small_cache = false;
            assert_true(count > 1); /* else this call is never made and nothing was tested */
        }
    }
}

/* The disk is full while the log is made longer, by more than the batch behind it needs. */
static void test_disk_full_ahead_of_use(void **state)
{
    bool happened = true;
    (void)state;
    reserve_pages = RESERVE_PAGES_LARGE;
    for (int nth = 1; happened; nth += 2) { /* few: a commit is one write */
        char where[48];
        snprintf(where, sizeof where, "write, no space, call %d, long reserve", nth);
        power_on();
        power_fail(POWER_WRITE, nth, ENOSPC, true);
        script_survives(where);
        happened = power_failed();
        power_off();
        files_remove();
    }
    reserve_pages = RESERVE_PAGES_SMALL;
}

static void test_memory(void **state)
{
    (void)state;
    for (int once = 0; once < 2; once++) {
        int total = 0;
        for (int nth = 1;; nth += getenv("INSIST_LONG") || nth < 40 ? 1 : 17 * FAULTS_STEP) {
            char where[64];
            snprintf(where, sizeof where, "allocation %d%s", nth, once ? ", once" : "");
            power_on();
            memory_fail(nth, once);
            script_survives(where);
            power_off();
            files_remove();
            total++;
            if (!memory_failed)
                break;
        }
        assert_true(total > 40);
    }
}

static int group_setup(void **state)
{
    struct script script = { { 0 } };
    struct error err = { STATUS_OK, "" };
    struct store *store;
    (void)state;
#ifndef SANITIZED
    power_memory(__libc_realloc);
#endif
    if (folder_make(folder) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/store.db", folder);
#ifdef SANITIZED
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain_memory);
    sqlite3_mem_methods failing = plain_memory;
    failing.xMalloc = sqlite_malloc;
    failing.xRealloc = sqlite_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &failing);
#endif
    assert_int_equal(store_try(&store, &err), STATUS_OK);
    for (int i = 0; i < SCRIPT_BATCHES; i++) {
        assert_true(recount_digest(path, digests[i]));
        assert_int_equal(script_apply(&script, store, i, &err), STATUS_OK);
    }
    assert_true(recount_digest(path, digests[SCRIPT_BATCHES]));
    store->ops->close(store);
    files_remove();
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
        cmocka_unit_test(test_disk),
        cmocka_unit_test(test_disk_full_ahead_of_use),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
