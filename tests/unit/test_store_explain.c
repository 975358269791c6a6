/*
 * A file that cannot be used as a store: each way to open one says what the file is not, and what to do.
 */
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

enum { NOBODY = 65534 };

static char *path_of(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", test_folder, name);
    return path;
}

static enum status open_store(const char *path, struct error *err)
{
    static const struct store_settings settings = { .sync_always = true };
    struct store *store;
    enum status status = store_sqlite_open(slice_from(path), &settings, &store, err);
    if (status == STATUS_OK)
        store->ops->close(store);
    return status;
}

static enum status read_facts(const char *path, struct error *err)
{
    struct store_facts facts;
    return look_facts(path, &facts, err);
}

static enum status verify(const char *path, struct error *err)
{
    struct trail_check chain;
    return look_verify(path, NULL, &chain, err);
}

static enum status open_reader(const char *path, struct error *err)
{
    struct store_reader *reader;
    enum status status = look_reader(path, &reader, err);
    if (status == STATUS_OK)
        reader->ops->reader_close(reader);
    return status;
}

static enum status back_up(const char *path, struct error *err)
{
    char target[PATH_MAX + 8];
    snprintf(target, sizeof target, "%s.copy", path);
    struct store_facts facts;
    enum status status = look_backup(path, target, &facts, err);
    unlink(target);
    return status;
}

static const struct way {
    const char *name;
    enum status (*open)(const char *path, struct error *err);
} ways[] = {
    { "serve", open_store }, { "doctor", read_facts }, { "audit", verify }, { "simulate", open_reader }, { "backup", back_up },
};

/* ---- files ---- */

static void write_bytes(const char *path, size_t offset, const char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, len, (off_t)offset), (ssize_t)len);
    assert_int_equal(close(fd), 0);
}

static void make_text(const char *path)
{
    char text[4096];
    memset(text, 'x', sizeof text);
    write_bytes(path, 0, text, sizeof text);
}

static void make_store(const char *path)
{
    struct error err;
    assert_int_equal(open_store(path, &err), STATUS_OK);
}

static void make_damaged(const char *path)
{
    static const char garbage[8192] = "garbage";
    make_store(path);
    write_bytes(path, 100, garbage, sizeof garbage); /* SQLite's first page, behind its header */
}

static void make_newer(const char *path)
{
    make_store(path);
    write_bytes(path, 60, "\0\0\0\143", 4); /* the header's user version */
}

static void make_other(const char *path)
{
    make_store(path);
    write_bytes(path, 68, "\0\0\0\1", 4); /* its application id */
}

static void make_folder(const char *path)
{
    assert_int_equal(mkdir(path, 0700), 0);
}

static void make_pipe(const char *path)
{
    assert_int_equal(mkfifo(path, 0600), 0);
}

static void each_way_says_what_the_file_is_not(void **state)
{
    static const struct {
        const char *name;
        void (*make)(const char *path);
        const char *reported, *advice;
        bool copied; /* backup takes it: what is newer can be kept */
    } cases[] = {
        { "text.db", make_text, "the file is no SQLite database", "move it away", false },
        { "damaged.db", make_damaged, "the store is damaged", "put a backup in its place", false },
        { "newer.db", make_newer, "made by a newer insist: it has schema version 99", "use a newer program", true },
        { "other.db", make_other, "a database of another program", "name another", false },
        { "folder.db", make_folder, "it is a folder", "name a file in it", false },
        { "pipe.db", make_pipe, "it is a device, a pipe or a socket", "name a file", false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *path = path_of(cases[i].name);
        cases[i].make(path);
        for (size_t j = 0; j < COUNT_OF(ways); j++) {
            struct error err = { 0 };
            enum status status = ways[j].open(path, &err);
            if (cases[i].copied && (ways[j].open == back_up || ways[j].open == read_facts))
                continue;
            check(status != STATUS_OK, "%s of %s", ways[j].name, cases[i].name);
            check(strstr(err.text, cases[i].reported), "%s of %s: %s", ways[j].name, cases[i].name, err.text);
            check(strstr(err.text, cases[i].advice), "%s of %s: %s", ways[j].name, cases[i].name, err.text);
            check(j > 0 || strstr(err.text, path), "the daemon names the file: %s", err.text);
        }
    }
}

static void what_this_user_may_not_is_told(void **state)
{
    static const struct { const char *name; mode_t mode, folder_mode; const char *reported; } cases[] = {
        { "not-read.db", 0000, 0777, "the file may not be read by this user" },
        { "not-written.db", 0444, 0777, "the file may not be written by this user" },
        { "folder-not-written.db", 0666, 0555, "nothing may be written in the folder" },
        { "none.db", 0, 0555, "nothing may be written in the folder" },
    };
    uid_t self = geteuid();
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *path = path_of(cases[i].name), lock[PATH_MAX + 8];
        struct error err = { 0 };
        if (cases[i].mode != 0 || cases[i].folder_mode == 0777) {
            make_store(path);
            assert_int_equal(chmod(path, cases[i].mode), 0);
        }
        snprintf(lock, sizeof lock, "%s.lock", path);
        unlink(lock);
        assert_int_equal(chmod(test_folder, cases[i].folder_mode), 0);
        if (self == 0)
            assert_int_equal(seteuid(NOBODY), 0); /* to whom modes mean something */
        enum status status = open_store(path, &err);
        if (self == 0)
            assert_int_equal(seteuid(0), 0);
        assert_int_equal(chmod(test_folder, 0777), 0);
        check(status == STATUS_IO, "%s: %d %s", cases[i].name, (int)status, err.text);
        check(strstr(err.text, cases[i].reported) && strstr(err.text, "run as"), "%s: %s", cases[i].name, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_way_says_what_the_file_is_not, test_folder_setup, test_folder_teardown),
        cmocka_unit_test_setup_teardown(what_this_user_may_not_is_told, test_folder_setup, test_folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
