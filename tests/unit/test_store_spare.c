/* The spare file beside a store: there while the disk has room, given up when a start finds that it has none. */
#include <sys/statvfs.h>

static int disk_of_the_test(const char *path, struct statvfs *ret_facts);
#define statvfs(path, facts) disk_of_the_test(path, facts)
#include "store/sqlite/room.c"
#undef statvfs

#include "support/check.h"
#include "support/folder.h"

static int64_t disk_free;

static int disk_of_the_test(const char *path, struct statvfs *ret_facts)
{
    (void)path;
    *ret_facts = (struct statvfs){ .f_bavail = (fsblkcnt_t)disk_free, .f_frsize = 1 };
    return 0;
}

static bool is_there(const struct sqlite_store *store)
{
    char name[PATH_MAX];
    struct stat facts;
    assert_true(spare_name(store, name));
    return stat(name, &facts) == 0 && facts.st_size == SPARE_BYTES;
}

static void a_full_disk_takes_the_spare(void **state)
{
    char path[FOLDER_BYTES + 16];
    struct sqlite_store store = { .path = path, .spare_at = INSTANT_NONE };
    instant now = 1000000;
    (void)state;
    snprintf(path, sizeof path, "%s/insist.db", test_folder);
    disk_free = SPARE_WANTS_FREE_BYTES - 1;
    sqlite_room_spare(&store, now);
    assert_false(is_there(&store)); /* what is left is the jobs' */
    disk_free = SPARE_WANTS_FREE_BYTES;
    sqlite_room_spare(&store, now + MINUTE_MS - 1);
    assert_false(is_there(&store)); /* it is looked at once a minute */
    sqlite_room_spare(&store, now + MINUTE_MS);
    assert_true(is_there(&store));
    disk_free = SPARE_BYTES;
    sqlite_room_release(&store);
    assert_true(is_there(&store)); /* there is room enough */
    disk_free = SPARE_BYTES - 1;
    sqlite_room_release(&store);
    assert_false(is_there(&store));
    disk_free = SPARE_WANTS_FREE_BYTES;
    sqlite_room_spare(&store, now); /* by a clock that was put back */
    assert_true(is_there(&store));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_full_disk_takes_the_spare, test_folder_setup, test_folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
