/*
 * What SQLite says of a file that it cannot use helps nobody who has to mend it. Here the file itself is looked at.
 */
#include "store/sqlite/connection.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char header[] = "SQLite format 3"; /* with its end, the first 16 bytes of every database */

static bool has_header(const char *path)
{
    char first[sizeof header] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? pread(fd, first, sizeof first, 0) : -1;
    if (fd >= 0)
        close(fd);
    return got < 0 || (got == (ssize_t)sizeof first && memcmp(first, header, sizeof first) == 0);
}

void sqlite_folder_of(const char *path, char ret_folder[PATH_MAX])
{
    assert(path[0]);
    snprintf(ret_folder, PATH_MAX, "%s", path);
    char *slash = strrchr(ret_folder, '/');
    if (slash)
        slash[slash == ret_folder] = '\0';
    else
        snprintf(ret_folder, PATH_MAX, ".");
}

static void explain_folder(const char *path, enum status status, struct error *err)
{
    assert(status != STATUS_OK);
    char folder[PATH_MAX];
    sqlite_folder_of(path, folder);
    if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
        error_set(err, status,
                  "nothing may be written in the folder %s by this user (uid %u): the store's lock and log belong there; run "
                  "as its owner, or change its owner or its mode",
                  folder, (unsigned)geteuid());
}

/* What this process may not do with the file or with its folder, if there is anything. */
static void explain_access(const char *path, const struct stat *facts, enum status status, struct error *err)
{
    assert(status == STATUS_IO);
    static const struct { int mode; const char *word; } modes[] = { { R_OK, "read" }, { W_OK, "written" } };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (faccessat(AT_FDCWD, path, modes[i].mode, AT_EACCESS) == 0)
            continue;
        if (errno == EROFS)
            error_set(err, status, "the file system is read-only; mount it for writing, or name a file elsewhere");
        else
            error_set(err, status,
                      "the file may not be %s by this user (uid %u), it belongs to uid %u; run as that user, or change its "
                      "owner or its mode",
                      modes[i].word, (unsigned)geteuid(), (unsigned)facts->st_uid);
        return;
    }
    explain_folder(path, status, err);
}

enum status sqlite_file_check(const char *path, struct error *err)
{
    struct stat facts;
    if (stat(path, &facts) != 0 || S_ISREG(facts.st_mode))
        return STATUS_OK;
    return error_set(err, STATUS_INVALID,
                     S_ISDIR(facts.st_mode) ? "it is a folder; name a file in it"
                                            : "it is a device, a pipe or a socket; name a file");
}

enum status sqlite_explain(const char *path, enum status status, struct error *err)
{
    assert(status != STATUS_OK);
    struct stat facts;
    if (!err)
        return status;
    if (stat(path, &facts) != 0) {
        if (errno == ENOENT && status == STATUS_IO)
            explain_folder(path, status, err);
        return status;
    }
    if (status == STATUS_CORRUPT && !has_header(path))
        return error_set(err, status, "the file is no SQLite database, and so no store; name another, or move it away: the "
                                      "daemon then makes a new one");
    if (status == STATUS_IO)
        explain_access(path, &facts, status, err);
    return status;
}
