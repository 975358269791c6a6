/* Where a new store may be made, and what is left of one whose files were moved, deleted, replaced or cut under it. */
#include "base/clock.h"
#include "store/sqlite/sqlite.h"
#include "support/store_look.h"
#include "support/check.h"
#include "support/folder.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOW_S = 1760000000, JOBS = 40, SETTLED_NS = 60 * 1000 * 1000 };

static const instant start = (instant)NOW_S * 1000;

static const char *path_of(const char *name)
{
    static char paths[4][PATH_MAX];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", test_folder, name);
    return path;
}

static enum status open_at(const char *path, enum store_make make, struct store **ret_store, struct error *err)
{
    struct store_settings settings = { .sync_always = true, .make = make };
    return store_sqlite_open(slice_from(path), &settings, ret_store, err);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void make_folder(const char *name)
{
    assert_int_equal(mkdir(path_of(name), 0700), 0);
}

/* ---- making ---- */

static void prepare_missing(void)
{
}

static void prepare_empty(void)
{
    make_folder("d");
    make_folder("d/lost+found");
}

static void prepare_other(void)
{
    make_folder("d");
    write_file(path_of("d/notes"), "x");
}

static void prepare_zero(void)
{
    make_folder("d");
    write_file(path_of("d/insist.db"), "");
}

static void prepare_log_alone(void)
{
    make_folder("d");
    write_file(path_of("d/insist.db-wal"), "frames");
}

/* A power cut while the store was being made. */
static void prepare_begun(void)
{
    prepare_zero();
    write_file(path_of("d/insist.db.new"), "");
    write_file(path_of("d/insist.db.lock"), "1\n");
}

static void prepare_store(void)
{
    struct store *store;
    struct error err;
    assert_int_equal(open_at(path_of("d/insist.db"), STORE_MAKE, &store, &err), STATUS_OK);
    store->ops->close(store);
    write_file(path_of("d/notes"), "x");
}

static void a_store_is_made_only_where_one_is_meant(void **state)
{
    static const struct {
        const char *name;
        void (*prepare)(void);
        const char *refused, *refused_with_init; /* NULL: it opens */
    } cases[] = {
        { "no folder", prepare_missing, "insist serve --init", NULL },
        { "an empty folder", prepare_empty, NULL, NULL },
        { "a folder with other files", prepare_other, "is not empty", NULL },
        { "a file of no bytes", prepare_zero, "Put a backup in its place", "Put a backup in its place" },
        { "a log without its database", prepare_log_alone, "moved or deleted", "moved or deleted" },
        { "a store that was begun", prepare_begun, NULL, NULL },
        { "a store among other files", prepare_store, NULL, NULL },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int init = 0; init < 2; init++) {
            const char *refused = init ? cases[i].refused_with_init : cases[i].refused;
            struct error err = { STATUS_OK, "" };
            struct store *store = NULL;
            char command[128];
            snprintf(command, sizeof command, "rm -rf '%s/d'", test_folder);
            assert_int_equal(system(command), 0);
            cases[i].prepare();
            enum status status =
                open_at(path_of("d/insist.db"), init ? STORE_MAKE : STORE_MAKE_IN_EMPTY_FOLDER, &store, &err);
            check(status == (refused ? STATUS_INVALID : STATUS_OK), "%s, init %d: %s", cases[i].name, init, err.text);
            check(!refused || strstr(err.text, refused), "%s, init %d: %s", cases[i].name, init, err.text);
            check(access(path_of("d/insist.db.new"), F_OK) != 0, "%s: the mark is gone", cases[i].name);
            if (status == STATUS_OK)
                store->ops->close(store);
        }
}

/* ---- under the daemon ---- */

static enum status add(struct store *store, int number, struct error *err)
{
    char id[16];
    struct arena memory = { 0 };
    snprintf(id, sizeof id, "job-%d", number);
    struct store_op op = { .kind = OP_INSERT,
                           .insert = { .destination = SLICE("d"), .tenant = SLICE("t"), .id = slice_from(id),
                                       .run_at = start, .deadline = INSTANT_NONE, .payload = SLICE("{}") } };
    enum status status = store->ops->apply(store, start, &op, 1, &memory, err);
    arena_release(&memory);
    return status;
}

static int64_t jobs_in(const char *path)
{
    struct store_facts facts;
    struct error err = { STATUS_OK, "" };
    struct store *store;
    if (open_at(path, STORE_MAKE_IN_EMPTY_FOLDER, &store, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    store->ops->close(store);
    assert_int_equal(look_facts(path, &facts, &err), STATUS_OK);
    return facts.pending;
}

static void take_away(const char *name)
{
    assert_int_equal(unlink(name), 0);
}

static void move_away(const char *name)
{
    char other[PATH_MAX + 8];
    snprintf(other, sizeof other, "%s.old", name);
    assert_int_equal(rename(name, other), 0);
}

static void replace(const char *name)
{
    move_away(name);
    write_file(name, "");
}

static void cut(const char *name)
{
    assert_int_equal(truncate(name, 0), 0);
}

struct place_case {
    const char *name, *file;
    void (*happens)(const char *name);
    bool idle;   /* nobody writes: it is found all the same */
    bool rescued; /* all that was acknowledged is there afterwards */
};

/* At once, and when the folder has been as it is for so long that its times are trusted. */
static void notice(const struct place_case *one, size_t number, bool settled)
{
    char path[PATH_MAX], name[PATH_MAX + 8];
    struct error err = { STATUS_OK, "" };
    struct store *store;
    int jobs = 0;
    snprintf(path, sizeof path, "%s/%zu/insist.db", test_folder, number);
    snprintf(name, sizeof name, "%s%s", path, one->file);
    assert_int_equal(open_at(path, STORE_MAKE, &store, &err), STATUS_OK);
    for (int64_t until = clock_ticks_ns() + (settled ? SETTLED_NS : 0); jobs < JOBS || clock_ticks_ns() < until; jobs++)
        assert_int_equal(add(store, jobs, &err), STATUS_OK);
    assert_int_equal(store->ops->tend(store, start, &err), STATUS_OK);
    assert_int_equal(add(store, jobs++, &err), STATUS_OK);
    one->happens(name);
    enum status status = one->idle ? store->ops->tend(store, start, &err) : add(store, jobs, &err);
    check(status == STATUS_IO, "%s, settled %d: %d %s", one->name, settled, (int)status, err.text);
    check(strstr(err.text, name), "%s: %s", one->name, err.text);
    check(add(store, jobs + 1, &err) == STATUS_IO, "%s: and it stays refused", one->name);
    store->ops->close(store);
    if (!one->rescued)
        return;
    if (one->happens == replace)
        take_away(name);
    check(jobs_in(path) == jobs, "%s: all that was acknowledged is there", one->name);
}

static void what_happens_to_its_files_is_noticed(void **state)
{
    static const struct place_case cases[] = {
        { "log deleted", "-wal", take_away, false, true },   { "log deleted, idle", "-wal", take_away, true, true },
        { "log moved", "-wal", move_away, false, true },     { "log replaced", "-wal", replace, true, true },
        { "log cut", "-wal", cut, false, false },            { "log cut, idle", "-wal", cut, true, false },
        { "index deleted", "-shm", take_away, false, true }, { "index deleted, idle", "-shm", take_away, true, true },
        { "index replaced", "-shm", replace, false, true },  { "database deleted, idle", "", take_away, true, false },
    };
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++)
        notice(&cases[i / 2], i, i % 2 == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_store_is_made_only_where_one_is_meant, test_folder_setup, test_folder_teardown),
        cmocka_unit_test_setup_teardown(what_happens_to_its_files_is_noticed, test_folder_setup, test_folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
