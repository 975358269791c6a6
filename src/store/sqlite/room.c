/*
 * What a store needs of the disk before it can do without more: a full one must neither end the daemon nor keep it from
 * starting.
 *
 * The log's index (-shm) is written through memory: where its file has holes and the disk is full, that is SIGBUS, and where
 * SQLite cannot make it longer, a commit fails after it was written to the log. So its blocks are there before a frame is
 * written that needs them, and no connection is given a piece of it that has holes. A spare file lies beside the store, to
 * be given up when a start finds no room for the index.
 */
#include "store/sqlite/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    INDEX_REGION_BYTES = 32 * 1024,
    INDEX_REGION_FRAMES = 4096,
    INDEX_HEADER_FRAMES = 34, /* that the first region has no room for */
    SPARE_BYTES = 1 << 20,
    FREED_TRIES = 8,
    FREED_WAIT_US = 10 * 1000,
};
static const int64_t SPARE_WANTS_FREE_BYTES = 16 * SPARE_BYTES; /* less is left to the jobs */

/* ---- the index, as it is mapped ---- */

struct sqlite_guard {
    sqlite3_io_methods methods; /* first: the file's own methods lead here */
    const sqlite3_io_methods *real;
};

static struct sqlite_guard *guard_of(sqlite3_file *file)
{
    return (struct sqlite_guard *)(uintptr_t)file->pMethods;
}

/*
 * SQLite writes one byte for each 4 KB of the index: with smaller blocks that leaves holes. Here the kernel is asked to
 * write what stands there already, and tells of a full disk by an error where our own write would by SIGBUS. It does so in
 * one step, so that nobody who writes there meanwhile loses anything: that is why it is a futex which nobody waits for. No
 * second handle on the file is needed: to close one would drop the locks that this process has on it.
 */
static int touch(char *memory, size_t size)
{
    long page = sysconf(_SC_PAGESIZE), result = 0;
    for (size_t at = 0; at < size && result >= 0; at += (size_t)page)
        result = syscall(SYS_futex, memory + at, FUTEX_WAKE_OP_PRIVATE, 0, 0, memory + at,
                         FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0));
    return result < 0 ? -1 : 0;
}

static int populate(void *memory, size_t size)
{
    assert(size > 0);
    int result = touch(memory, size);
    for (int i = 1; result != 0 && errno == EFAULT && i < FREED_TRIES; i++) {
        (void)!msync(memory, size, MS_SYNC); /* what was just cut off is free when the file system's journal is written */
        usleep(FREED_WAIT_US);
        result = touch(memory, size);
    }
    return result;
}

static int guard_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **ret_memory)
{
    int result = guard_of(file)->real->xShmMap(file, region, size, extend, ret_memory);
    void *memory = result == SQLITE_OK ? (void *)(uintptr_t)*ret_memory : NULL;
    if (!memory || populate(memory, (size_t)size) == 0)
        return result;
    if (errno != EFAULT)
        return SQLITE_OK; /* a system that cannot be asked so */
    *ret_memory = NULL; /* SQLite keeps it mapped and gives it to the next who asks */
    return SQLITE_FULL;
}

static int guard_close(sqlite3_file *file)
{
    struct sqlite_guard *guard = guard_of(file);
    file->pMethods = guard->real;
    free(guard);
    return file->pMethods->xClose(file);
}

enum status sqlite_room_guard(sqlite3 *db, struct error *err)
{
    assert(db);
    sqlite3_file *file = NULL;
    int result = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (result != SQLITE_OK)
        return sqlite_failure(db, result, "open the store", err);
    if (!file || !file->pMethods || file->pMethods->iVersion < 2 || !file->pMethods->xShmMap)
        return STATUS_OK;
    struct sqlite_guard *guard = malloc(sizeof *guard);
    if (!guard)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the store");
    guard->real = file->pMethods;
    guard->methods = *guard->real;
    guard->methods.xClose = guard_close;
    guard->methods.xShmMap = guard_shm_map;
    file->pMethods = &guard->methods;
    return STATUS_OK;
}

/* ---- the index, as it grows ---- */

/* Closed after SQLite's own: its locks on the file would go with it. A new store has the file from its first write on. */
static bool index_open(struct sqlite_store *store)
{
    assert(store->path);
    char name[PATH_MAX];
    if (store->log.index_fd < 0 && snprintf(name, sizeof name, "%s-shm", store->path) < (int)sizeof name)
        store->log.index_fd = open(name, O_RDWR | O_CLOEXEC);
    return store->log.index_fd >= 0;
}

bool sqlite_room_for(struct sqlite_store *store, int64_t frames)
{
    assert(frames >= 0);
    if (frames <= store->log.index_frames || !index_open(store))
        return true;
    int64_t regions = 1 + (frames + INDEX_HEADER_FRAMES) / INDEX_REGION_FRAMES;
    int64_t bytes = (regions + 1) * INDEX_REGION_BYTES; /* and one ahead, so that it is asked for seldom */
    int result = fallocate(store->log.index_fd, 0, 0, (off_t)bytes);
    if (result != 0 && (errno == ENOSPC || errno == EDQUOT)) {
        bytes = regions * INDEX_REGION_BYTES;
        result = fallocate(store->log.index_fd, 0, 0, (off_t)bytes);
    }
    if (result != 0 && (errno == ENOSPC || errno == EDQUOT))
        return false;
    /* A file system without that call: SQLite makes the file longer itself. */
    store->log.index_frames = bytes / INDEX_REGION_BYTES * INDEX_REGION_FRAMES - INDEX_HEADER_FRAMES;
    return true;
}

/*
 * SQLite cuts the file to nothing when a store is opened after a crash, and makes it again. So one piece more than it needs
 * is taken before the log is written back, which may use up the disk: the next start then finds more room than it needs.
 */
void sqlite_room_begin(struct sqlite_store *store)
{
    assert(store->db);
    if (!index_open(store))
        return;
    for (int i = 0; i < FREED_TRIES; i++) {
        if (fallocate(store->log.index_fd, 0, 0, 2 * INDEX_REGION_BYTES) == 0 || errno != ENOSPC)
            return;
        (void)!fsync(store->log.index_fd); /* as above; a disk that stays full is met by whoever writes */
        usleep(FREED_WAIT_US);
    }
}

/* ---- the spare ---- */

static bool spare_name(const struct sqlite_store *store, char ret_name[PATH_MAX])
{
    assert(store->path);
    return snprintf(ret_name, PATH_MAX, "%s.spare", store->path) < PATH_MAX;
}

static int64_t free_bytes(const struct sqlite_store *store)
{
    assert(store->path);
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
 * Where the log cannot be written back, for want of room or because somebody reads, it is written over itself and synced:
 * that needs neither, and then all of it is on the disk, whatever an earlier sync has lost.
 */
int sqlite_room_settle(struct sqlite_store *store)
{
    assert(store->db);
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
