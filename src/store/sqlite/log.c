#include "store/sqlite/disk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int sqlite_log_cut(sqlite3 *db)
{
    assert(sqlite3_get_autocommit(db));
    sqlite3_busy_timeout(db, 0);
    int result = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
    return result;
}

/* --- made longer ahead of use ------------------------------------------------------------------- */

/* Zeros at the end of the log, and synced. A full disk is left to the batch, which may still have room. */
static int log_lengthen(struct sqlite_store *store, sqlite3_file *log, int64_t needed)
{
    assert(needed > 0);
    static const char zeros[PAGE_BYTES];
    sqlite3_int64 size;
    int result = log->pMethods->xFileSize(log, &size);
    if (result != SQLITE_OK)
        return result;
    store->log.bytes = size; /* it keeps the length of its earlier use */
    if (size >= needed)
        return SQLITE_OK;
    for (int i = 0; i < store->log.reserve_pages && result == SQLITE_OK; i++) {
        result = log->pMethods->xWrite(log, zeros, (int)sizeof zeros, size);
        size += (int64_t)sizeof zeros;
    }
    if (result == SQLITE_OK)
        result = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    if (result == SQLITE_OK) /* a write that was taken may still fail when it is synced */
        store->log.bytes = size;
    return (result & 0xff) == SQLITE_FULL ? SQLITE_OK : result;
}

/*
 * A commit that makes its file longer waits for the file system's journal too, which takes several times as long as
 * writing over what is there. So the log of a busy store is made longer ahead of use. Zeros are no frames: whoever reads
 * the log after a crash stops before them.
 */
enum status sqlite_log_reserve(struct sqlite_store *store, struct error *err)
{
    assert(store->log.reserve_pages >= 0 && store->log.pages >= 0);
    int64_t ahead = (int64_t)store->log.reserve_pages * LOG_FRAME_BYTES / 2;
    int64_t used = (int64_t)store->log.pages * LOG_FRAME_BYTES;
    sqlite3_file *log = NULL;
    if (used < ahead / 2 || used + ahead <= store->log.bytes)
        return STATUS_OK;
    int result = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (result == SQLITE_OK && log && log->pMethods)
        result = log_lengthen(store, log, used + ahead);
    return result == SQLITE_OK ? STATUS_OK : sqlite_failure(store->db, result, "lengthen the log", err);
}

/* --- written in long pieces ---------------------------------------------------------------------- */

enum { GATHERED_BYTES_MAX = 31 * LOG_FRAME_BYTES }; /* SQLite's files take no more than 128 KB at once */

/*
 * SQLite writes each page of the log in two pieces, its header and itself, and syncs when the last one is there. What
 * comes between two syncs lies in a row, so it is gathered and given to the file in one piece: before the sync, and
 * before anything else that looks at the file. Only for a store that syncs each commit: there nobody hears of a frame
 * before it is synced, so nobody misses one that is still here.
 */
struct sqlite_log {
    sqlite3_io_methods methods; /* first: the file's own methods lead here */
    const sqlite3_io_methods *real;
    struct sqlite_store *store;
    bool gathers;
    sqlite3_int64 at; /* where the gathered bytes belong */
    int len;
    char bytes[GATHERED_BYTES_MAX];
};

static struct sqlite_log *log_of(sqlite3_file *file)
{
    return (struct sqlite_log *)(uintptr_t)file->pMethods;
}

/*
 * What could not be written is not tried again: the transaction that it was of fails with it, or, if that was rolled back
 * with its pages still here, the next one.
 */
static int gathered_write(struct sqlite_log *log, sqlite3_file *file)
{
    assert(log->real);
    int len = log->len;
    log->len = 0;
    return len > 0 ? log->real->xWrite(file, log->bytes, len, log->at) : SQLITE_OK;
}

static int log_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    struct sqlite_log *log = log_of(file);
    assert(log->len >= 0 && log->len <= GATHERED_BYTES_MAX);
    if (!sqlite_room_for(log->store, (at + len) / LOG_FRAME_BYTES + 1))
        return SQLITE_FULL;
    if (log->len > 0 && (at != log->at + log->len || len > GATHERED_BYTES_MAX - log->len)) {
        int result = gathered_write(log, file);
        if (result != SQLITE_OK)
            return result;
    }
    if (!log->gathers || len > GATHERED_BYTES_MAX)
        return log->real->xWrite(file, bytes, len, at);
    if (log->len == 0)
        log->at = at;
    memcpy(log->bytes + log->len, bytes, (size_t)len);
    log->len += len;
    return SQLITE_OK;
}

static int log_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
    int result = gathered_write(log_of(file), file);
    return result == SQLITE_OK ? log_of(file)->real->xRead(file, bytes, len, at) : result;
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int result = gathered_write(log_of(file), file);
    return result == SQLITE_OK ? log_of(file)->real->xTruncate(file, size) : result;
}

static int log_sync(sqlite3_file *file, int flags)
{
    int result = gathered_write(log_of(file), file);
    return result == SQLITE_OK ? log_of(file)->real->xSync(file, flags) : result;
}

static int log_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    int result = gathered_write(log_of(file), file);
    return result == SQLITE_OK ? log_of(file)->real->xFileSize(file, ret_size) : result;
}

/* What is still gathered was never committed. */
static int log_close(sqlite3_file *file)
{
    struct sqlite_log *log = log_of(file);
    file->pMethods = log->real;
    free(log);
    return file->pMethods->xClose(file);
}

/*
 * Where a write may damage what is beside it, SQLite fills up the sector behind a commit with more frames, syncs within
 * the last of them and announces it whole: there a part would still be here when readers look for it.
 */
static bool may_gather(struct sqlite_store *store)
{
    assert(store->db);
    sqlite3_file *file = NULL;
    int result = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    return result == SQLITE_OK && file && file->pMethods &&
           (file->pMethods->xDeviceCharacteristics(file) & SQLITE_IOCAP_POWERSAFE_OVERWRITE) != 0;
}

enum status sqlite_log_gather(struct sqlite_store *store, struct error *err)
{
    assert(sqlite3_get_autocommit(store->db));
    sqlite3_file *file = NULL;
    int result = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
    if (result != SQLITE_OK || !file || !file->pMethods)
        return error_set(err, STATUS_IO, "the write-ahead log is not open: %s", sqlite3_errstr(result));
    struct sqlite_log *log = malloc(sizeof *log);
    if (!log)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the store's log");
    log->store = store;
    log->gathers = store->settings.sync_always && may_gather(store);
    log->real = file->pMethods;
    log->methods = (sqlite3_io_methods){
        .iVersion = 1,
        .xClose = log_close,
        .xRead = log_read,
        .xWrite = log_write,
        .xTruncate = log_truncate,
        .xSync = log_sync,
        .xFileSize = log_size,
        .xLock = log->real->xLock,
        .xUnlock = log->real->xUnlock,
        .xCheckReservedLock = log->real->xCheckReservedLock,
        .xFileControl = log->real->xFileControl,
        .xSectorSize = log->real->xSectorSize,
        .xDeviceCharacteristics = log->real->xDeviceCharacteristics,
    };
    log->len = 0;
    file->pMethods = &log->methods;
    return STATUS_OK;
}
