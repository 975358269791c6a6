/*
 * The power is cut at every write, truncation, sync and deletion of a script with every kind of operation, and what was
 * not synced is lost in several ways. Each time the store must open, be sound, and hold exactly the batches
 * that were acknowledged, or those and the one under way.
 *
 * INSIST_LONG=1 tries every way at every point.
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

/* Instrumented programs look at a part of the moments; their instruments are no help to the disk. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define MOMENTS_STEP 7
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MOMENTS_STEP 7
#endif
#endif
#ifndef MOMENTS_STEP
#define MOMENTS_STEP 1
#endif

enum {
    PATH_BYTES = 256,
    SEEN_MAX = 1 << 15,
    CHECKPOINT_PAGES_SMALL = 30, /* so that the log starts anew several times in the script */
    RESERVE_PAGES_SMALL = 8,     /* and is made longer ahead of use */
};

static char folder[FOLDER_BYTES];
static unsigned char digests[SCRIPT_BATCHES + 1][RECOUNT_DIGEST_BYTES]; /* before batch i */

/* A run of the script under a disk that is cut. */
struct run {
    char path[PATH_BYTES], cut[PATH_BYTES];
    bool sync_always;
    bool small_cache; /* pages go to the log before their commit, and come back from there */
    int synced, done; /* batches that must be there, and that may be */
    bool under_way;   /* and one more may be */
    uint64_t moment;
    uint64_t seen[SEEN_MAX]; /* cuts that were looked at, by what they leave and what is allowed */
    size_t seen_count;
    size_t checked;
};

static struct run run;

static bool is_long(void)
{
    return getenv("INSIST_LONG") != NULL;
}

static struct store *store_at(const char *path, bool sync_always)
{
    struct store_settings settings = { .sync_always = sync_always, .pending_max = 1000 };
    struct store *store = NULL;
    struct error err = { STATUS_OK, "" };
    if (store_sqlite_open(slice_from(path), &settings, &store, &err) != STATUS_OK)
        fail_msg("cannot open %s: %s", path, err.text);
    ((struct sqlite_store *)store)->log.checkpoint_pages = CHECKPOINT_PAGES_SMALL;
    ((struct sqlite_store *)store)->log.reserve_pages = RESERVE_PAGES_SMALL;
    if (run.small_cache)
        assert_int_equal(sqlite3_exec(((struct sqlite_store *)store)->db, "PRAGMA cache_size = 1", NULL, NULL, NULL), SQLITE_OK);
    return store;
}

/* The process dies: what it holds in memory is gone, and no log is written back. */
static void store_die(struct store *store)
{
    struct error err = { STATUS_IO, "the test lets it die" };
    sqlite_store_fail((struct sqlite_store *)store, &err);
    store->ops->close(store);
}

static void files_remove(const char *path)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-journal", ".lock", ".new" };
    char name[PATH_BYTES + 8];
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        unlink(name);
    }
}

static void batch_run(struct script *script, struct store *store, int number)
{
    struct error err = { STATUS_OK, "" };
    if (script_apply(script, store, number, &err) != STATUS_OK)
        fail_msg("batch %d: %s", number, err.text);
}

/* The digests of a run in which nothing breaks. */
static void digests_make(void)
{
    char path[PATH_BYTES], text[RECOUNT_TEXT_BYTES];
    struct script script = { { 0 } };
    snprintf(path, sizeof path, "%s/whole.db", folder);
    struct store *store = store_at(path, true);
    for (int i = 0; i <= SCRIPT_BATCHES; i++) {
        if (!recount_holds(path, text))
            fail_msg("after %d batches: %s", i, text);
        assert_true(recount_digest(path, digests[i]));
        for (int before = 0; before < i; before++)
            assert_memory_not_equal(digests[i], digests[before], RECOUNT_DIGEST_BYTES);
        if (i < SCRIPT_BATCHES)
            batch_run(&script, store, i);
    }
    store->ops->close(store);
    files_remove(path);
}

/* How many batches a file holds; -1: not a number of whole batches. */
static int batches_in(const char *path)
{
    unsigned char digest[RECOUNT_DIGEST_BYTES];
    assert_true(recount_digest(path, digest));
    for (int i = 0; i <= SCRIPT_BATCHES; i++)
        if (memcmp(digest, digests[i], sizeof digest) == 0)
            return i;
    return -1;
}

static void cut_check(enum power_loss loss, uint64_t chance)
{
    char text[RECOUNT_TEXT_BYTES];
    uint64_t fingerprint = power_cut_fingerprint(run.path, loss, chance) ^ (uint64_t)run.done << 32 ^
                           (uint64_t)run.synced << 40 ^ (uint64_t)run.under_way << 48;
    for (size_t i = 0; i < run.seen_count; i++)
        if (run.seen[i] == fingerprint)
            return;
    if (run.seen_count < SEEN_MAX)
        run.seen[run.seen_count++] = fingerprint;
    run.checked++;
    power_plain(true);
    assert_true(power_cut(run.path, run.cut, loss, chance));
    struct store *store = store_at(run.cut, true);
    store->ops->close(store);
    if (!recount_holds(run.cut, text))
        fail_msg("moment %llu, loss %d, chance %llu: %s", (unsigned long long)run.moment, (int)loss,
                 (unsigned long long)chance, text);
    int batches = batches_in(run.cut);
    if (batches < run.synced || batches > run.done + run.under_way)
        fail_msg("moment %llu, loss %d, chance %llu: %d batches are there, %d to %d were expected",
                 (unsigned long long)run.moment, (int)loss, (unsigned long long)chance, batches, run.synced,
                 run.done + run.under_way);
    power_plain(false);
}

static void at_each_call(enum power_call call, void *context)
{
    (void)call;
    (void)context;
    if (++run.moment % MOMENTS_STEP != 0)
        return;
    cut_check(POWER_LOSE_ALL, 0);
    if (is_long()) {
        cut_check(POWER_LOSE_NONE, 0);
        cut_check(POWER_LOSE_TORN, 0);
        cut_check(POWER_LOSE_FIRST, 0);
        for (uint64_t chance = 0; chance < 6; chance++)
            cut_check(POWER_LOSE_SOME, run.moment * 8 + chance);
    } else {
        static const enum power_loss losses[] = { POWER_LOSE_NONE, POWER_LOSE_TORN, POWER_LOSE_FIRST };
        cut_check(POWER_LOSE_SOME, run.moment);
        cut_check(losses[run.moment % 3], 0);
    }
}

static void run_begin(const char *name, bool sync_always)
{
    run = (struct run){ .sync_always = sync_always };
    snprintf(run.path, sizeof run.path, "%s/%s.db", folder, name);
    snprintf(run.cut, sizeof run.cut, "%s/%s-cut.db", folder, name);
    power_on();
}

static void run_end(void)
{
    power_full(false);
    power_watch(NULL, NULL);
    power_off();
    files_remove(run.path);
    files_remove(run.cut);
    run.path[0] = '\0';
}

static void batch_done(struct store *store)
{
    struct error err = { STATUS_OK, "" };
    run.done++;
    if (run.sync_always) {
        run.synced = run.done;
    } else if (run.done % 4 == 0) {
        assert_int_equal(store->ops->sync(store, &err), STATUS_OK);
        run.synced = run.done;
    }
}

static void script_run_watched(bool sync_always)
{
    struct script script = { { 0 } };
    power_watch(at_each_call, NULL);
    struct store *store = store_at(run.path, sync_always);
    for (int i = 0; i < SCRIPT_BATCHES; i++) {
        run.under_way = true;
        batch_run(&script, store, i);
        run.under_way = false;
        batch_done(store);
        if (script_closes_after(i) || script_dies_after(i)) {
            if (script_dies_after(i))
                store_die(store);
            else
                store->ops->close(store);
            store = store_at(run.path, sync_always);
            run.synced = run.done; /* opening has written everything back and synced it */
        }
    }
    store->ops->close(store);
    assert_int_equal(batches_in(run.path), SCRIPT_BATCHES);
}

static void test_cut_always(void **state)
{
    (void)state;
    run_begin("always", true);
    script_run_watched(true);
    run_end();
    assert_true(run.moment > 300 && run.checked > 600 / MOMENTS_STEP); /* else nothing was cut */
}

static void test_cut_small_cache(void **state)
{
    (void)state;
    run_begin("small", true);
    run.small_cache = true;
    script_run_watched(true);
    run_end();
    assert_true(run.moment > 300 && run.checked > 600 / MOMENTS_STEP);
}

/* S2-075 */
static void test_cut_everysec(void **state)
{
    (void)state;
    run_begin("everysec", false);
    script_run_watched(false);
    run_end();
    assert_true(run.moment > 300 && run.checked > 600 / MOMENTS_STEP);
}

/* How many batches a cut at this moment leaves, if everything is lost that was not synced. */
static int batches_after_cut(void)
{
    power_plain(true);
    assert_true(power_cut(run.path, run.cut, POWER_LOSE_ALL, 0));
    struct store *store = store_at(run.cut, true);
    store->ops->close(store);
    int batches = batches_in(run.cut);
    power_plain(false);
    return batches;
}

/* S2-006 S2-071: what was written last goes with the power unless it was synced. */
static void test_everysec_syncs(void **state)
{
    struct script script = { { 0 } };
    struct error err = { STATUS_OK, "" };
    (void)state;
    run_begin("lazy", false);
    struct store *store = store_at(run.path, false);
    assert_int_equal(store->ops->sync(store, &err), STATUS_OK);
    for (int i = 0; i < 6; i += 2) {
        batch_run(&script, store, i);
        batch_run(&script, store, i + 1);
        assert_in_range(batches_after_cut(), i, i + 1); /* a log that begins or grows syncs, too */
        assert_int_equal(store->ops->sync(store, &err), STATUS_OK);
        assert_int_equal(batches_after_cut(), i + 2);
    }
    store->ops->close(store);
    run_end();
}

/*
 * A sync that fails leaves frames that can be read but are not on the disk. Whoever opens the store next must
 * not build on them: here every later batch is acknowledged, then the power is cut.
 */
static void test_cut_after_failed_sync(void **state)
{
    (void)state;
    for (int nth = 1;; nth++) {
        struct script script = { { 0 } };
        struct error err = { STATUS_OK, "" };
        run_begin("failed", true);
        struct store *store = store_at(run.path, true);
        power_fail(POWER_SYNC, nth, EIO, true);
        enum status status = STATUS_OK;
        int batch = 0;
        for (; batch < 6 && status == STATUS_OK; batch++)
            status = script_apply(&script, store, batch, &err);
        if (status == STATUS_OK) {
            store->ops->close(store);
            run_end();
            assert_true(nth > 6); /* a sync for each batch was failed once */
            return;
        }
        assert_int_equal(status, STATUS_IO);
        assert_int_equal(script_apply(&script, store, batch, &err), STATUS_IO); /* it stays refused */
        store->ops->close(store);
        power_fail(POWER_SYNC, 0, 0, false);

        store = store_at(run.path, true);
        assert_int_equal(script_learn(&script, store, &err), STATUS_OK);
        run.done = batches_in(run.path);
        assert_true(run.done == batch || run.done == batch - 1);
        while (run.done < 8) {
            batch_run(&script, store, run.done);
            run.synced = ++run.done;
            cut_check(POWER_LOSE_ALL, 0);
            cut_check(POWER_LOSE_SOME, (uint64_t)nth);
        }
        store->ops->close(store);
        run_end();
    }
}

/*
 * The disk is full and the process dies: the next one opens the store all the same, has all that was acknowledged, and
 * loses none of it in a power cut. With room it goes on.
 */
static void test_opens_on_a_full_disk(void **state)
{
    (void)state;
    for (int batches = 1; batches < SCRIPT_BATCHES; batches += 3) {
        struct script script = { { 0 } };
        struct error err = { STATUS_OK, "" };
        run_begin("full", true);
        struct store *store = store_at(run.path, true);
        for (int i = 0; i < batches; i++)
            batch_run(&script, store, i);
        store_die(store);
        for (int start = 0; start < 2; start++) {
            power_full(true);
            store = store_at(run.path, true);
            power_full(false);
            assert_int_equal(batches_in(run.path), batches);
            assert_int_equal(batches_after_cut(), batches);
            store_die(store);
        }
        store = store_at(run.path, true);
        assert_int_equal(script_learn(&script, store, &err), STATUS_OK);
        batch_run(&script, store, batches);
        store->ops->close(store);
        assert_int_equal(batches_in(run.path), batches + 1);
        run_end();
    }
}

/* A failed test leaves the disk switched on. */
static int test_teardown(void **state)
{
    (void)state;
    if (run.path[0])
        run_end();
    return 0;
}

static int group_setup(void **state)
{
    (void)state;
    if (folder_make(folder) != 0)
        return -1;
    digests_make();
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
        cmocka_unit_test_teardown(test_cut_always, test_teardown),
        cmocka_unit_test_teardown(test_cut_small_cache, test_teardown),
        cmocka_unit_test_teardown(test_cut_everysec, test_teardown),
        cmocka_unit_test_teardown(test_everysec_syncs, test_teardown),
        cmocka_unit_test_teardown(test_cut_after_failed_sync, test_teardown),
        cmocka_unit_test_teardown(test_opens_on_a_full_disk, test_teardown),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
