#include "support/vfs_power.h"

#include "base/hash.h"

#include <sqlite3.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECTOR_BYTES = 512, PIECE_BYTES = 4096, FILES_MAX = 8, PATH_BYTES = 512 };

/* A write of part of one sector, or a truncation. */
struct change {
    bool truncates;
    size_t at, len; /* of a truncation: len is the new size */
    int write;      /* number of the call it was part of */
    char bytes[SECTOR_BYTES];
};

struct image {
    char *bytes;
    size_t len;
};

struct disk_file {
    char path[PATH_BYTES];
    struct image durable;
    struct change *changes; /* since the last sync */
    size_t count, capacity;
    int writes;
    bool created;    /* and its folder not synced since: SQLite does that with the first sync of a new log or journal */
    bool maybe_gone; /* deleted, and the deletion not synced */
};

/* What SQLite allocates: ours, then the real one's. */
struct power_file {
    sqlite3_file base;
    struct disk_file *disk; /* NULL: not followed */
    sqlite3_file *real;
};

static struct {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    struct disk_file files[FILES_MAX];
    size_t file_count;
    void (*watch)(enum power_call, void *);
    void *watch_context;
    enum power_call fault;
    int fault_nth, fault_errno, fault_calls;
    bool fault_once, fault_happened;
    bool full; /* no file can be made longer */
    enum power_rest fault_rest;
    bool unsafe;
    int last_errno;
} power;

/* ---- Images ---- */

static void *(*memory_source)(void *, size_t) = realloc;

void power_memory(void *(*source)(void *memory, size_t size))
{
    memory_source = source;
}

static void *resize(void *memory, size_t size)
{
    memory = memory_source(memory, size);
    if (!memory)
        abort();
    return memory;
}

static void image_resize(struct image *image, size_t len)
{
    image->bytes = resize(image->bytes, len + 1);
    if (len > image->len)
        memset(image->bytes + image->len, 0, len - image->len);
    image->len = len;
}

static void image_apply(struct image *image, const struct change *change, size_t len)
{
    if (change->truncates) {
        if (change->len < image->len)
            image_resize(image, change->len);
        return;
    }
    if (change->at + len > image->len)
        image_resize(image, change->at + len);
    memcpy(image->bytes + change->at, change->bytes, len);
}

static struct change *change_add(struct disk_file *disk)
{
    if (disk->count == disk->capacity) {
        disk->capacity = disk->capacity ? disk->capacity * 2 : 64;
        disk->changes = resize(disk->changes, disk->capacity * sizeof *disk->changes);
    }
    struct change *change = &disk->changes[disk->count++];
    *change = (struct change){ .write = disk->writes };
    return change;
}

static void disk_write(struct disk_file *disk, const char *bytes, size_t len, size_t at)
{
    disk->writes++;
    while (len > 0) {
        size_t room = SECTOR_BYTES - at % SECTOR_BYTES;
        struct change *change = change_add(disk);
        change->at = at;
        change->len = len < room ? len : room;
        memcpy(change->bytes, bytes, change->len);
        at += change->len;
        bytes += change->len;
        len -= change->len;
    }
}

static void disk_sync(struct disk_file *disk)
{
    for (size_t i = 0; i < disk->count; i++)
        image_apply(&disk->durable, &disk->changes[i], disk->changes[i].len);
    disk->count = 0;
}

static struct disk_file *disk_find(const char *path)
{
    for (size_t i = 0; i < power.file_count; i++)
        if (strcmp(power.files[i].path, path) == 0)
            return &power.files[i];
    return NULL;
}

static struct disk_file *disk_get(const char *path)
{
    struct disk_file *disk = disk_find(path);
    if (disk)
        return disk;
    if (power.file_count == FILES_MAX || strlen(path) >= PATH_BYTES)
        abort();
    disk = &power.files[power.file_count++];
    *disk = (struct disk_file){ .durable = { 0 } };
    snprintf(disk->path, sizeof disk->path, "%s", path);
    return disk;
}

static void disk_forget(struct disk_file *disk)
{
    free(disk->durable.bytes);
    free(disk->changes);
    char path[PATH_BYTES];
    memcpy(path, disk->path, sizeof path);
    *disk = (struct disk_file){ .durable = { 0 } };
    memcpy(disk->path, path, sizeof path);
}

/* ---- Faults ---- */

static bool fails(enum power_call call)
{
    if (power.fault_nth == 0 || call != power.fault)
        return false;
    power.fault_calls++;
    bool now = power.fault_once ? power.fault_calls == power.fault_nth : power.fault_calls >= power.fault_nth;
    if (now) {
        power.fault_happened = true;
        power.last_errno = power.fault_errno;
    }
    return now;
}

static void watched(enum power_call call)
{
    if (power.watch)
        power.watch(call, power.watch_context);
}

/* ---- File methods ---- */

static struct power_file *file_of(sqlite3_file *file)
{
    return (struct power_file *)file;
}

static int file_close(sqlite3_file *file)
{
    sqlite3_file *real = file_of(file)->real;
    return real->pMethods ? real->pMethods->xClose(real) : SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
    sqlite3_file *real = file_of(file)->real;
    if (file_of(file)->disk && fails(POWER_READ))
        return SQLITE_IOERR_READ;
    return real->pMethods->xRead(real, bytes, len, at);
}

static int rest_of(int len)
{
    switch (power.fault_rest) {
    case POWER_REST_NOTHING:
        return 0;
    case POWER_REST_ALMOST_ALL:
        return len - 1;
    default:
        return len / 2;
    }
}

static int file_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    struct power_file *self = file_of(file);
    int done = len;
    if (self->disk) {
        sqlite3_int64 size = 0;
        bool longer = power.full && self->real->pMethods->xFileSize(self->real, &size) == SQLITE_OK && at + len > size;
        if (longer)
            power.fault_errno = ENOSPC;
        if (longer || fails(POWER_WRITE))
            done = rest_of(len); /* a write that fails may have written something */
        for (int i = 0; i == 0 || i < done; i += PIECE_BYTES) { /* the power may go in the middle of a long one */
            watched(POWER_WRITE);
            size_t piece = (size_t)(done - i < PIECE_BYTES ? done - i : PIECE_BYTES);
            disk_write(self->disk, (const char *)bytes + i, piece, (size_t)(at + i));
        }
    }
    int result = done > 0 ? self->real->pMethods->xWrite(self->real, bytes, done, at) : SQLITE_OK;
    if (done == len || result != SQLITE_OK)
        return result;
    return power.fault_errno == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct power_file *self = file_of(file);
    if (self->disk) {
        watched(POWER_TRUNCATE);
        if (fails(POWER_TRUNCATE))
            return SQLITE_IOERR_TRUNCATE;
        self->disk->writes++;
        struct change *change = change_add(self->disk);
        change->truncates = true;
        change->len = (size_t)size;
    }
    return self->real->pMethods->xTruncate(self->real, size);
}

static void folder_sync(void)
{
    for (size_t i = 0; i < power.file_count; i++)
        if (power.files[i].maybe_gone)
            disk_forget(&power.files[i]);
}

static int file_sync(sqlite3_file *file, int flags)
{
    struct power_file *self = file_of(file);
    (void)flags; /* the real disk need not: nobody cuts its power */
    if (!self->disk)
        return SQLITE_OK;
    watched(POWER_SYNC);
    if (fails(POWER_SYNC)) {
        self->disk->count = 0;
        return SQLITE_IOERR_FSYNC;
    }
    disk_sync(self->disk);
    if (self->disk->created)
        folder_sync();
    self->disk->created = false;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    sqlite3_file *real = file_of(file)->real;
    return real->pMethods->xFileSize(real, size);
}

static int file_lock(sqlite3_file *file, int lock)
{
    sqlite3_file *real = file_of(file)->real;
    return real->pMethods->xLock(real, lock);
}

static int file_unlock(sqlite3_file *file, int lock)
{
    sqlite3_file *real = file_of(file)->real;
    return real->pMethods->xUnlock(real, lock);
}

static int file_check_lock(sqlite3_file *file, int *taken)
{
    sqlite3_file *real = file_of(file)->real;
    return real->pMethods->xCheckReservedLock(real, taken);
}

static int file_control(sqlite3_file *file, int op, void *argument)
{
    sqlite3_file *real = file_of(file)->real;
    return real->pMethods->xFileControl(real, op, argument);
}

static int file_sector_size(sqlite3_file *file)
{
    (void)file;
    return SECTOR_BYTES;
}

static int file_characteristics(sqlite3_file *file)
{
    (void)file;
    return power.unsafe ? 0 : SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int file_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **memory)
{
    sqlite3_file *real = file_of(file)->real;
    if (fails(POWER_SHM_MAP))
        return SQLITE_IOERR_SHMMAP;
    return real->pMethods->xShmMap(real, page, size, extend, memory);
}

static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    sqlite3_file *real = file_of(file)->real;
    return real->pMethods->xShmLock(real, offset, count, flags);
}

static void file_shm_barrier(sqlite3_file *file)
{
    sqlite3_file *real = file_of(file)->real;
    real->pMethods->xShmBarrier(real);
}

static int file_shm_unmap(sqlite3_file *file, int delete)
{
    sqlite3_file *real = file_of(file)->real;
    return real->pMethods->xShmUnmap(real, delete);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

/* ---- VFS methods ---- */

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *ret_flags)
{
    struct power_file *self = file_of(file);
    bool followed = (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;
    (void)vfs;
    *self = (struct power_file){ .real = (sqlite3_file *)(self + 1) };
    if (followed && fails(POWER_OPEN))
        return SQLITE_CANTOPEN;
    int existed = 1;
    if (followed)
        power.real->xAccess(power.real, path, SQLITE_ACCESS_EXISTS, &existed);
    int result = power.real->xOpen(power.real, path, self->real, flags, ret_flags);
    if (result != SQLITE_OK)
        return result;
    self->base.pMethods = &methods;
    if (followed) {
        self->disk = disk_get(path);
        if (self->disk->maybe_gone)
            disk_forget(self->disk); /* a new file of that name */
        if (!existed && !(flags & SQLITE_OPEN_MAIN_DB))
            self->disk->created = true;
    }
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    struct disk_file *disk = disk_find(path);
    (void)vfs;
    if (disk) {
        watched(POWER_DELETE);
        if (fails(POWER_DELETE))
            return SQLITE_IOERR_DELETE;
        if (sync)
            disk_forget(disk);
        else
            disk->maybe_gone = true;
    }
    return power.real->xDelete(power.real, path, sync);
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *result)
{
    (void)vfs;
    return power.real->xAccess(power.real, path, flags, result);
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *path, int len, char *ret_path)
{
    (void)vfs;
    return power.real->xFullPathname(power.real, path, len, ret_path);
}

static int vfs_last_error(sqlite3_vfs *vfs, int len, char *text)
{
    (void)vfs;
    (void)len;
    (void)text;
    return power.last_errno;
}

void power_on(void)
{
    memset(&power, 0, sizeof power);
    power.real = sqlite3_vfs_find(NULL);
    power.vfs = *power.real;
    power.vfs.pNext = NULL;
    power.vfs.zName = "power";
    power.vfs.szOsFile = (int)sizeof(struct power_file) + power.real->szOsFile;
    power.vfs.xOpen = vfs_open;
    power.vfs.xDelete = vfs_delete;
    power.vfs.xAccess = vfs_access;
    power.vfs.xFullPathname = vfs_full_path;
    power.vfs.xGetLastError = vfs_last_error;
    sqlite3_vfs_register(&power.vfs, 1);
}

void power_off(void)
{
    for (size_t i = 0; i < power.file_count; i++)
        disk_forget(&power.files[i]);
    power.file_count = 0;
    sqlite3_vfs_unregister(&power.vfs);
    sqlite3_vfs_register(power.real, 1);
}

void power_plain(bool plain)
{
    sqlite3_vfs_register(plain ? power.real : &power.vfs, 1);
}

void power_watch(void (*watch)(enum power_call call, void *context), void *context)
{
    power.watch = watch;
    power.watch_context = context;
}

/* ---- Cuts ---- */

/* The part of a change that is left, in bytes; SIZE_MAX: none of it, nor of a truncation. */
static size_t change_left(const struct disk_file *disk, size_t index, enum power_loss loss, uint64_t chance)
{
    const struct change *change = &disk->changes[index];
    const struct change *last = &disk->changes[disk->count - 1];
    uint64_t key[2] = { chance, index };
    switch (loss) {
    case POWER_LOSE_ALL:
        return SIZE_MAX;
    case POWER_LOSE_NONE:
        return change->len;
    case POWER_LOSE_TORN: {
        size_t first = disk->count; /* of the last write's changes, the earlier half stays */
        while (first > 0 && disk->changes[first - 1].write == last->write)
            first--;
        return index < first + (disk->count - first) / 2 ? change->len : SIZE_MAX;
    }
    case POWER_LOSE_FIRST:
        return change->write == disk->changes[0].write ? SIZE_MAX : change->len;
    default:
        return hash_slice(1, 2, (struct slice){ (const char *)key, sizeof key }) & 1 ? change->len : SIZE_MAX;
    }
}

static struct image cut_image(const struct disk_file *disk, enum power_loss loss, uint64_t chance)
{
    struct image image = { 0 };
    image_resize(&image, disk->durable.len);
    if (disk->durable.len > 0)
        memcpy(image.bytes, disk->durable.bytes, disk->durable.len);
    for (size_t i = 0; i < disk->count; i++) {
        size_t left = change_left(disk, i, loss, chance);
        if (left != SIZE_MAX)
            image_apply(&image, &disk->changes[i], disk->changes[i].truncates ? 0 : left);
    }
    return image;
}

static bool cut_is_gone(const struct disk_file *disk, enum power_loss loss, uint64_t chance)
{
    return disk->maybe_gone && (loss == POWER_LOSE_NONE || (loss == POWER_LOSE_SOME && (chance & 1)));
}

static bool image_store(const struct image *image, const char *path)
{
    FILE *file = fopen(path, "wb");
    bool good = file && fwrite(image->bytes, 1, image->len, file) == image->len;
    if (file && fclose(file) != 0)
        good = false;
    return good;
}

/* The mark of a store that is being made is not SQLite's: it is there or not, and synced before anything else is. */
static bool cut_mark(const char *from, const char *to)
{
    char path[PATH_BYTES + 8];
    snprintf(path, sizeof path, "%s.new", from);
    bool marked = access(path, F_OK) == 0;
    snprintf(path, sizeof path, "%s.new", to);
    remove(path);
    FILE *mark = marked ? fopen(path, "w") : NULL;
    return !marked || (mark && fclose(mark) == 0);
}

bool power_cut(const char *from, const char *to, enum power_loss loss, uint64_t chance)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-journal" };
    char path[PATH_BYTES + 8];
    bool good = cut_mark(from, to);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        snprintf(path, sizeof path, "%s%s", to, endings[i]);
        remove(path);
    }
    for (size_t i = 0; i < power.file_count; i++) {
        const struct disk_file *disk = &power.files[i];
        if (strncmp(disk->path, from, strlen(from)) != 0 || cut_is_gone(disk, loss, chance))
            continue;
        snprintf(path, sizeof path, "%s%s", to, disk->path + strlen(from));
        struct image image = cut_image(disk, loss, chance);
        good = image_store(&image, path) && good;
        free(image.bytes);
    }
    return good;
}

uint64_t power_cut_fingerprint(const char *from, enum power_loss loss, uint64_t chance)
{
    uint64_t fingerprint = 0;
    for (size_t i = 0; i < power.file_count; i++) {
        const struct disk_file *disk = &power.files[i];
        if (strncmp(disk->path, from, strlen(from)) != 0 || cut_is_gone(disk, loss, chance))
            continue;
        struct image image = cut_image(disk, loss, chance);
        fingerprint = hash_slice(fingerprint, i, (struct slice){ image.bytes, image.len });
        free(image.bytes);
    }
    return fingerprint;
}

void power_full(bool full)
{
    power.full = full;
}

void power_fail(enum power_call call, int nth, int errno_value, bool once)
{
    power.fault = call;
    power.fault_nth = nth;
    power.fault_errno = errno_value;
    power.fault_once = once;
    power.fault_calls = 0;
    if (nth > 0)
        power.fault_happened = false;
}

void power_fail_leaves(enum power_rest rest)
{
    power.fault_rest = rest;
}

void power_unsafe(bool unsafe)
{
    power.unsafe = unsafe;
}

bool power_failed(void)
{
    return power.fault_happened;
}
