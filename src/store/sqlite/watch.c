/*
 * The store's three files may be moved, deleted, replaced or cut under the daemon. What is written then is gone when the
 * process ends, so it may not be acknowledged: this is looked at before and after each batch, and while there is none.
 */
#include "store/sqlite/disk.h"

#include "store/sqlite/seal.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LOG_HEADER_BYTES = 32 };

static bool beside_stat(const struct sqlite_store *store, const char *end, struct stat *ret_facts)
{
    assert(store->path);
    char name[PATH_MAX];
    return snprintf(name, sizeof name, "%s%s", store->path, end) < (int)sizeof name && stat(name, ret_facts) == 0;
}

/* While the store is being opened, both files are there: the connection has made them. */
void sqlite_watch_begin(struct sqlite_store *store)
{
    assert(store->db);
    static const char *const ends[] = { [WATCHED_LOG] = "-wal", [WATCHED_INDEX] = "-shm" };
    struct stat facts;
    for (size_t i = 0; i < WATCHED_COUNT; i++)
        if (beside_stat(store, ends[i], &facts))
            store->watched[i] = (struct sqlite_watched){ .name = ends[i], .device = facts.st_dev, .inode = facts.st_ino };
}

/*
 * A file that has lost its name is still open here, with all that was committed: it goes to the database while it can.
 * Whether that went well, the message says, since nobody can look it up later.
 */
static enum status rescue(struct sqlite_store *store, const char *name, struct error *err)
{
    assert(name);
    int result = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_FULL, NULL, NULL);
    sqlite3_file *file = NULL;
    if (result == SQLITE_OK)
        result = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (result == SQLITE_OK)
        result = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
    if (result == SQLITE_OK)
        return error_set(err, STATUS_IO,
                         "%s%s was moved, deleted or replaced while in use; all that was acknowledged has been written into the "
                         "database itself. Remove what stands in its place, then start again",
                         store->path, name);
    return error_set(err, STATUS_IO,
                     "%s%s was moved, deleted or replaced while in use, and what it held could not be written into the "
                     "database (%s): jobs acknowledged lately may be lost. Put it back before you start again, or a backup",
                     store->path, name, sqlite3_errstr(result));
}

static enum status watch_beside(struct sqlite_store *store, const struct sqlite_watched *watched, int64_t bytes,
                                struct error *err)
{
    assert(bytes >= 0);
    struct stat facts;
    if (!watched->name)
        return STATUS_OK;
    if (!beside_stat(store, watched->name, &facts) || facts.st_ino != watched->inode || facts.st_dev != watched->device)
        return rescue(store, watched->name, err);
    if (facts.st_size >= bytes)
        return STATUS_OK;
    return error_set(err, STATUS_IO,
                     "%s%s was cut while in use: jobs acknowledged lately may be lost. Keep the files for whoever mends them, and "
                     "put a backup in their place",
                     store->path, watched->name);
}

enum status sqlite_watch(struct sqlite_store *store, struct error *err)
{
    int moved = 0;
    int64_t log_bytes = store->wal_pages > 0 ? LOG_HEADER_BYTES + (int64_t)store->wal_pages * LOG_FRAME_BYTES : 0;
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved)
        return error_set(err, STATUS_IO, "%s was moved, deleted or replaced while in use; put it back and start again",
                         store->path);
    enum status status = watch_beside(store, &store->watched[WATCHED_LOG], log_bytes, err);
    return status == STATUS_OK ? watch_beside(store, &store->watched[WATCHED_INDEX], 0, err) : status;
}

enum status sqlite_store_tend(struct store *base, instant now, struct error *err)
{
    assert(base->ops == &sqlite_store_ops);
    struct sqlite_store *store = (struct sqlite_store *)base;
    if (store->failure.status != STATUS_OK)
        return STATUS_OK; /* that was reported */
    enum status status = sqlite_watch(store, err);
    if (status == STATUS_OK)
        status = sqlite_trail_settle(store, now, err);
    if (status == STATUS_OK)
        status = sqlite_vacuum(store, err);
    sqlite_room_spare(store, now);
    if (status == STATUS_IO || status == STATUS_CORRUPT)
        sqlite_store_fail(store, err);
    return status;
}
