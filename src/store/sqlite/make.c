/*
 * A new store is made only where nothing can be meant but a new one. Whoever mistypes a path, forgets to mount a disk or
 * loses the file must not get an empty store in silence, which takes jobs while the old ones lie elsewhere.
 */
#include "store/sqlite/make.h"

#include "store/sqlite/connection.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum status sqlite_make_folders(char *path, struct error *err)
{
    assert(path[0]);
    enum status status = STATUS_OK;
    for (char *slash = strchr(path + 1, '/'); slash && status == STATUS_OK; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            status = error_set(err, STATUS_IO, "cannot make folder %s: %s", path, strerror(errno));
        *slash = '/';
    }
    return status;
}

/* `path` with something behind it; false: no file of a name so long. */
static bool beside(const char *path, const char *end, char ret_name[PATH_MAX])
{
    assert(path[0]);
    return snprintf(ret_name, PATH_MAX, "%s%s", path, end) < PATH_MAX;
}

static int64_t bytes_beside(const char *path, const char *end)
{
    char name[PATH_MAX];
    struct stat facts;
    return beside(path, end, name) && stat(name, &facts) == 0 ? (int64_t)facts.st_size : -1;
}

/* What belongs to a store that was begun here, or to the file system, is nothing. */
static bool entry_counts(const char *name, const char *file)
{
    static const char *const nothing[] = { ".", "..", "lost+found" };
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        if (strcmp(name, nothing[i]) == 0)
            return false;
    return strncmp(name, file, strlen(file)) != 0 || (strcmp(name + strlen(file), ".lock") != 0 &&
                                                      strcmp(name + strlen(file), ".new") != 0 &&
                                                      strcmp(name + strlen(file), ".spare") != 0);
}

static enum status folder_check(const char *path, struct error *err)
{
    char folder[PATH_MAX];
    sqlite_folder_of(path, folder);
    DIR *entries = opendir(folder);
    if (!entries)
        return error_set(err, STATUS_INVALID,
                         "there is no store, and its folder %s cannot be opened (%s); is the path right, is the disk mounted? To "
                         "make a new store there, start with: insist serve --init",
                         folder, strerror(errno));
    bool empty = true;
    for (struct dirent *entry = readdir(entries); entry && empty; entry = readdir(entries))
        empty = !entry_counts(entry->d_name, strrchr(path, '/') + 1);
    closedir(entries);
    if (empty)
        return STATUS_OK;
    return error_set(err, STATUS_INVALID,
                     "there is no store, and its folder %s is not empty; is the path right? To make a new store there, start "
                     "with: insist serve --init",
                     folder);
}

enum status sqlite_make_check(const char *path, bool anywhere, struct error *err)
{
    assert(path[0]);
    struct stat facts;
    if (stat(path, &facts) == 0) {
        if (facts.st_size > 0 || bytes_beside(path, ".new") >= 0)
            return STATUS_OK;
        return error_set(err, STATUS_INVALID,
                         "the file is empty, which a store never is: its content is lost. Put a backup in its place; to begin "
                         "anew without the old jobs, remove it with those beside it that end in -wal and -shm");
    }
    if (errno != ENOENT && errno != ENOTDIR)
        return STATUS_OK; /* opening it will say */
    if (bytes_beside(path, "-wal") > 0)
        return error_set(err, STATUS_INVALID,
                         "the file is not there, but its log %s-wal is: it was moved or deleted. Put it back, or a backup, "
                         "and then remove the log; to begin anew, move the log away",
                         path);
    return anywhere ? STATUS_OK : folder_check(path, err);
}

static enum status file_make(const char *path, bool *ret_made, struct error *err)
{
    assert(ret_made);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600); /* SQLite gives the log the same mode */
    *ret_made = fd >= 0;
    if (fd < 0 && errno != EEXIST)
        return error_set(err, STATUS_IO, "cannot make %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return STATUS_OK;
}

enum status sqlite_make_begin(char *path, struct error *err)
{
    assert(path[0]);
    char mark[PATH_MAX], folder[PATH_MAX];
    bool made;
    if (bytes_beside(path, "") > 0)
        return STATUS_OK;
    if (!beside(path, ".new", mark))
        return error_set(err, STATUS_INVALID, "the store's path is too long");
    sqlite_folder_of(path, folder);
    enum status status = file_make(mark, &made, err);
    if (status == STATUS_OK && made) /* the mark first: an empty file without it is a lost store */
        status = sqlite_path_sync(folder, O_RDONLY | O_DIRECTORY, err);
    if (status == STATUS_OK)
        status = file_make(path, &made, err);
    if (status == STATUS_OK && made)
        status = sqlite_path_sync(folder, O_RDONLY | O_DIRECTORY, err);
    return status;
}

enum status sqlite_make_end(const char *path, struct error *err)
{
    char mark[PATH_MAX];
    if (!beside(path, ".new", mark) || (unlink(mark) != 0 && errno != ENOENT))
        return error_set(err, STATUS_IO, "cannot remove %s.new: %s", path, strerror(errno));
    return STATUS_OK;
}
