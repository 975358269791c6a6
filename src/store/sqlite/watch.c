/*
 * The store's three files may be moved, deleted, replaced or cut under the daemon. What is written then is gone when the
 * process ends, so it may not be acknowledged: this is looked at before and after each batch, and while there is none.
 *
 * To look for a file by its name takes longer than to ask an open one, and a job that comes alone waits for several commits.
 * A name that comes, goes or changes hands changes the times of its folder: while those are what they were, the files are
 * where they were, and nothing but the log's length is left to be asked for. The folder's own times are its alone: to ask
 * for them costs no file's sync.
 */
#include "store/sqlite/disk.h"

#include "store/sqlite/erase.h"
#include "store/sqlite/seal.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

enum {
    LOG_HEADER_BYTES = 32,
    GRAIN_NS = 20 * 1000 * 1000, /* the clock of a file system may stand for so long, */
    COARSE_GRAIN_S = 3,          /* or for so long where it knows no parts of a second */
};

/*
 * Inode and length, never the times: a file system that was asked for them gives the next write a time of its own, and
 * writes that down at the next sync, which takes a fifth longer then.
 */
static bool beside_stat(const struct sqlite_store *store, const char *end, struct statx *ret_facts)
{
    assert(store->path);
    char name[PATH_MAX];
    return snprintf(name, sizeof name, "%s%s", store->path, end) < (int)sizeof name &&
           statx(AT_FDCWD, name, 0, STATX_INO | STATX_SIZE, ret_facts) == 0;
}

static bool is_same(const struct sqlite_watched *watched, const struct statx *facts)
{
    return facts->stx_ino == watched->inode && makedev(facts->stx_dev_major, facts->stx_dev_minor) == watched->device;
}

/* While the store is being opened, both files are there: the connection has made them. A link's folder tells nothing. */
void sqlite_watch_begin(struct sqlite_store *store)
{
    assert(store->db && store->folder.fd < 0);
    static const char *const ends[] = { [WATCHED_LOG] = "-wal", [WATCHED_INDEX] = "-shm" };
    struct statx beside;
    struct stat facts;
    for (size_t i = 0; i < WATCHED_COUNT; i++)
        if (beside_stat(store, ends[i], &beside))
            store->watched[i] = (struct sqlite_watched){ .name = ends[i],
                                                         .device = makedev(beside.stx_dev_major, beside.stx_dev_minor),
                                                         .inode = beside.stx_ino };
    char folder[PATH_MAX];
    const char *slash = strrchr(store->path, '/');
    int len = slash ? (int)(slash - store->path) + 1 : 0;
    if (len > 0 && len < PATH_MAX && lstat(store->path, &facts) == 0 && S_ISREG(facts.st_mode)) {
        snprintf(folder, sizeof folder, "%.*s", len, store->path);
        store->folder.fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
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

static bool times_equal(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Whether the next change gets another time: its clock may stand for a while, and it may be set back. */
static bool has_settled(struct timespec at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t grain_ns = at.tv_nsec % 1000000 != 0 ? GRAIN_NS : COARSE_GRAIN_S * INT64_C(1000000000);
    return (now.tv_sec - at.tv_sec) * INT64_C(1000000000) + now.tv_nsec - at.tv_nsec > grain_ns;
}

static enum status look_at_names(struct sqlite_store *store, struct error *err)
{
    int moved = 0;
    struct statx facts;
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved)
        return error_set(err, STATUS_IO, "%s was moved, deleted or replaced while in use; put it back and start again",
                         store->path);
    for (size_t i = 0; i < WATCHED_COUNT; i++) {
        const struct sqlite_watched *watched = &store->watched[i];
        if (watched->name && (!beside_stat(store, watched->name, &facts) || !is_same(watched, &facts)))
            return rescue(store, watched->name, err);
    }
    return STATUS_OK;
}

enum status sqlite_watch_names(struct sqlite_store *store, struct error *err)
{
    struct sqlite_folder *folder = &store->folder;
    struct stat facts = { 0 };
    bool asked = folder->fd >= 0 && fstat(folder->fd, &facts) == 0;
    if (!asked || !times_equal(facts.st_mtim, folder->modified) || !times_equal(facts.st_ctim, folder->changed)) {
        enum status status = look_at_names(store, err);
        if (status != STATUS_OK)
            return status;
        if (asked && has_settled(facts.st_mtim) && has_settled(facts.st_ctim)) {
            folder->modified = facts.st_mtim;
            folder->changed = facts.st_ctim;
        }
    }
    return STATUS_OK;
}

enum status sqlite_watch(struct sqlite_store *store, struct error *err)
{
    assert(store->log.pages >= 0);
    enum status status = sqlite_watch_names(store, err);
    if (status != STATUS_OK)
        return status;
    const struct sqlite_watched *log = &store->watched[WATCHED_LOG];
    struct statx facts;
    if (store->log.pages == 0 || !log->name)
        return STATUS_OK;
    if (!beside_stat(store, log->name, &facts) || !is_same(log, &facts))
        return rescue(store, log->name, err);
    if (facts.stx_size >= LOG_HEADER_BYTES + (uint64_t)store->log.pages * LOG_FRAME_BYTES)
        return STATUS_OK;
    return error_set(err, STATUS_IO,
                     "%s%s was cut while in use: jobs acknowledged lately may be lost. Keep the files for whoever mends them, and "
                     "put a backup in their place",
                     store->path, log->name);
}

enum status sqlite_store_tend(struct store *base, instant now, struct error *err)
{
    assert(base->ops == &sqlite_store_ops);
    struct sqlite_store *store = (struct sqlite_store *)base;
    if (store->failure.status != STATUS_OK)
        return STATUS_OK; /* that was reported */
    store->folder.modified = store->folder.changed = (struct timespec){ 0 }; /* and by their names, whatever the times say */
    enum status status = sqlite_watch(store, err);
    if (status == STATUS_OK)
        status = sqlite_trail_settle(store, now, err);
    if (status == STATUS_OK)
        status = store->vacuum.scrub ? sqlite_scrub(store, err) : sqlite_vacuum(store, err);
    sqlite_room_spare(store, now);
    if (status == STATUS_IO || status == STATUS_CORRUPT)
        sqlite_store_fail(store, err);
    return status;
}
