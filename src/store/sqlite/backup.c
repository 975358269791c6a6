#include "store/sqlite/outside.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In one step and so under one read transaction: the copy is a snapshot, and the writer goes on beside it. */
static enum status pages_copy(sqlite3 *from, sqlite3 *to, struct error *err)
{
    assert(from != to);
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    if (!backup)
        return sqlite_failure(to, sqlite3_errcode(to), "begin the backup", err);
    int result = sqlite3_backup_step(backup, -1);
    int finished = sqlite3_backup_finish(backup);
    if (result == SQLITE_DONE && finished == SQLITE_OK)
        return STATUS_OK;
    return sqlite_failure(to, result == SQLITE_DONE ? finished : result, "copy to the backup", err);
}

static enum status copy_to(const struct sqlite_store *store, const char *path, struct error *err)
{
    assert(store->path[0] && path[0]);
    sqlite3 *from = NULL, *to = NULL;
    enum status status = sqlite_connect_reader(store, &from, err);
    if (status != STATUS_OK)
        return status;
    int result = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (result != SQLITE_OK)
        status = sqlite_failure(to, result, "open the backup", err);
    /* No journal: a copy that breaks off is deleted. It is synced once, when it is whole. */
    if (status == STATUS_OK)
        status = sqlite_exec(to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", err);
    if (status == STATUS_OK)
        status = pages_copy(from, to, err);
    result = sqlite3_close(to);
    if (status == STATUS_OK && result != SQLITE_OK)
        status = sqlite_failure(NULL, result, "close the backup", err);
    sqlite3_close(from);
    return status;
}

enum status sqlite_path_sync(const char *path, int flags, struct error *err)
{
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, STATUS_IO, "cannot open %s: %s", path, strerror(errno));
    enum status status = STATUS_OK;
    if (fsync(fd) != 0)
        status = error_set(err, STATUS_IO, "cannot sync %s: %s", path, strerror(errno));
    close(fd);
    return status;
}

enum status sqlite_copy(const struct sqlite_store *store, const char *path, struct error *err)
{
    assert(path[0]);
    char part[PATH_MAX];
    if (snprintf(part, sizeof part, "%s%s.part", path[0] == '/' ? "" : "./", path) >= (int)sizeof part)
        return error_set(err, STATUS_INVALID, "the backup's path is too long");
    if (access(path, F_OK) == 0)
        return error_set(err, STATUS_CONFLICT, "%s exists and is not overwritten", path);
    int fd = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set(err, errno == EEXIST ? STATUS_CONFLICT : STATUS_IO, "cannot make %s: %s", part, strerror(errno));
    close(fd);

    enum status status = copy_to(store, part, err);
    if (status == STATUS_OK)
        status = sqlite_path_sync(part, O_RDWR, err);
    if (status == STATUS_OK && renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_NOREPLACE) != 0)
        status = error_set(err, errno == EEXIST ? STATUS_CONFLICT : STATUS_IO, "cannot name the backup %s: %s", path,
                           strerror(errno));
    if (status != STATUS_OK) {
        unlink(part);
        return status;
    }
    char folder[PATH_MAX];
    sqlite_folder_of(path, folder);
    return sqlite_path_sync(folder, O_RDONLY | O_DIRECTORY, err);
}
