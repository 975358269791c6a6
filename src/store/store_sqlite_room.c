/*
 * What a store needs of the disk before it can do without more: a full one must neither end the daemon nor keep it from
 * starting.
 *
 * The log's index (-shm) is written through memory: where its file has holes and the disk is full, that is SIGBUS, and where
 * SQLite cannot make it longer, a commit fails after it was written to the log. So its blocks are there before a frame is
 * written that needs them. A spare file lies beside the store, to be given up when a start finds no room for the index.
 */
#include "store/store_sqlite_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    INDEX_REGION_BYTES = 32 * 1024,
    INDEX_REGION_FRAMES = 4096,
    INDEX_HEADER_FRAMES = 34, /* that the first region has no room for */
    SPARE_BYTES = 1 << 20,
};
static const int64_t SPARE_WANTS_FREE_BYTES = 16 * SPARE_BYTES; /* less is left to the jobs */

/* ---- the index ---- */

void sqlite_room_begin(struct sqlite_store *store)
{
    char name[PATH_MAX];
    if (snprintf(name, sizeof name, "%s-shm", store->path) < (int)sizeof name)
        store->index_fd = open(name, O_RDWR | O_CLOEXEC); /* closed after SQLite's: its locks on the file would go with it */
}

bool sqlite_room_for(struct sqlite_store *store, int64_t frames)
{
    if (frames <= store->index_frames || store->index_fd < 0)
        return true;
    int64_t regions = 1 + (frames + INDEX_HEADER_FRAMES) / INDEX_REGION_FRAMES;
    int64_t bytes = (regions + 1) * INDEX_REGION_BYTES; /* and one ahead, so that it is asked for seldom */
    int result = fallocate(store->index_fd, 0, 0, (off_t)bytes);
    if (result != 0 && (errno == ENOSPC || errno == EDQUOT)) {
        bytes = regions * INDEX_REGION_BYTES;
        result = fallocate(store->index_fd, 0, 0, (off_t)bytes);
    }
    if (result != 0 && (errno == ENOSPC || errno == EDQUOT))
        return false;
    /* A file system without that call: SQLite makes the file longer itself. */
    store->index_frames = bytes / INDEX_REGION_BYTES * INDEX_REGION_FRAMES - INDEX_HEADER_FRAMES;
    return true;
}

/* ---- the spare ---- */

static bool spare_name(const struct sqlite_store *store, char ret_name[PATH_MAX])
{
    return snprintf(ret_name, PATH_MAX, "%s.spare", store->path) < PATH_MAX;
}

static int64_t free_bytes(const struct sqlite_store *store)
{
    struct statvfs facts;
    return statvfs(store->path, &facts) == 0 ? (int64_t)(facts.f_bavail * facts.f_frsize) : INT64_MAX;
}

void sqlite_room_release(const struct sqlite_store *store)
{
    char name[PATH_MAX];
    if (free_bytes(store) < SPARE_BYTES && spare_name(store, name))
        unlink(name);
}

void sqlite_room_spare(struct sqlite_store *store, instant now)
{
    char name[PATH_MAX];
    struct stat facts;
    if (store->spare_at != INSTANT_NONE && now >= store->spare_at && now - store->spare_at < MINUTE_MS)
        return;
    store->spare_at = now;
    if (!spare_name(store, name) || stat(name, &facts) == 0 || free_bytes(store) < SPARE_WANTS_FREE_BYTES)
        return;
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return; /* it is a help, and no more */
    if (fallocate(fd, 0, 0, SPARE_BYTES) != 0)
        unlink(name);
    close(fd);
}

/* ---- the log ---- */

/*
 * Where the log cannot be written back for want of room, it is written over itself and synced: that needs none, and then
 * all of it is on the disk, whatever an earlier sync has lost.
 */
int sqlite_room_settle(struct sqlite_store *store)
{
    sqlite3_file *log = NULL;
    sqlite3_int64 size = 0;
    int result = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    char *bytes = result == SQLITE_OK && log && log->pMethods ? sqlite3_malloc(PAGE_BYTES) : NULL;
    if (!bytes)
        return result == SQLITE_OK ? SQLITE_NOMEM : result;
    result = log->pMethods->xFileSize(log, &size);
    for (sqlite3_int64 at = 0; at < size && result == SQLITE_OK; at += PAGE_BYTES) {
        int len = (int)(size - at < PAGE_BYTES ? size - at : PAGE_BYTES);
        result = log->pMethods->xRead(log, bytes, len, at);
        if (result == SQLITE_OK)
            result = log->pMethods->xWrite(log, bytes, len, at);
    }
    sqlite3_free(bytes);
    return result == SQLITE_OK ? log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) : result;
}
