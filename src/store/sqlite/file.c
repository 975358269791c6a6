#include "store/sqlite/outside.h"

#include "store/sqlite/schema.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { URI_BYTES_MAX = 3 * PATH_MAX + 64 };

/* Whether there is a file that could be a store. */
static enum status file_look(const struct sqlite_store *store, struct error *err)
{
    assert(store->path[0]);
    struct stat facts;
    if (stat(store->path, &facts) != 0 && errno == ENOENT)
        return error_set(err, STATUS_NOT_FOUND, "cannot open %s: %s", store->base.place, strerror(ENOENT));
    if (stat(store->path, &facts) != 0)
        return error_set(err, STATUS_IO, "the file cannot be looked at by this user (uid %u): %s", (unsigned)geteuid(),
                         strerror(errno));
    return sqlite_file_check(store->path, err);
}

/* Opens it and reads its version: what is no store, or cannot be opened, is reported here. */
static enum status identify(const struct sqlite_store *store, int64_t *ret_version, struct error *err)
{
    sqlite3 *db = NULL;
    enum status status = file_look(store, err);
    if (status != STATUS_OK)
        return status;
    status = sqlite_connect_reader(store, &db, err);
    if (status == STATUS_OK)
        status = sqlite_schema_identify(db, ret_version, err);
    sqlite3_close(db);
    return status == STATUS_OK ? status : sqlite_explain(store->path, status, err);
}

enum status sqlite_version_check(const struct sqlite_store *store, bool older, int64_t *ret_version, struct error *err)
{
    int64_t version = 0;
    int known = store_sqlite_schema_version();
    enum status status = identify(store, &version, err);
    if (status == STATUS_OK && (older ? version > known : version != known))
        status = error_set(err, STATUS_UNSUPPORTED, "the store %shas schema version %lld, this program reads %d: %s",
                           version > known ? "was made by a newer insist: it " : "", (long long)version, known,
                           version > known ? "use a newer program" : "start this program's daemon on it once");
    *ret_version = version;
    return status;
}

/* ---- Space ---- */

/* The folder of `path`, or the nearest above it that is there. */
static void folder_of(const char *path, char ret_folder[STORE_FOLDER_BYTES])
{
    snprintf(ret_folder, STORE_FOLDER_BYTES, "%s", path);
    do {
        char *slash = strrchr(ret_folder, '/');
        if (!slash)
            strcpy(ret_folder, ".");
        else
            slash[slash == ret_folder] = '\0';
    } while (access(ret_folder, F_OK) != 0 && strcmp(ret_folder, "/") != 0 && strcmp(ret_folder, ".") != 0);
}

static int64_t size_of(const char *path, const char *suffix)
{
    char whole[PATH_MAX];
    struct stat facts;
    bool there = snprintf(whole, sizeof whole, "%s%s", path, suffix) < (int)sizeof whole && stat(whole, &facts) == 0;
    return there ? facts.st_size : -1;
}

enum status sqlite_store_space(struct store *base, struct store_space *ret_space, struct error *err)
{
    assert(base->ops == &sqlite_store_ops);
    struct statvfs disk;
    folder_of(base->place, ret_space->folder);
    ret_space->folder_writable = access(ret_space->folder, W_OK) == 0;
    ret_space->bytes = size_of(base->place, "");
    ret_space->log_bytes = size_of(base->place, "-wal");
    if (statvfs(base->place, &disk) != 0 && statvfs(ret_space->folder, &disk) != 0)
        return error_set(err, STATUS_IO, "cannot look at %s: %s", ret_space->folder, strerror(errno));
    ret_space->free_bytes = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
    return STATUS_OK;
}

/* ---- Facts ---- */

/* Nobody writes a backup, so it is read without the files that SQLite puts beside a database in use. */
static enum status connect_quiet(const char *path, sqlite3 **ret_db, struct error *err)
{
    static const char digits[] = "0123456789ABCDEF";
    struct buffer uri;
    sqlite3 *db = NULL;
    buffer_init(&uri, URI_BYTES_MAX);
    buffer_append_text(&uri, "file:");
    for (; *path; path++) {
        if (*path == '?' || *path == '#' || *path == '%') {
            buffer_append_byte(&uri, '%');
            buffer_append_byte(&uri, digits[(unsigned char)*path >> 4]);
            buffer_append_byte(&uri, digits[(unsigned char)*path & 15]);
        } else {
            buffer_append_byte(&uri, *path);
        }
    }
    buffer_append_text(&uri, "?immutable=1");
    enum status status = buffer_status(&uri);
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int result = status == STATUS_OK ? sqlite3_open_v2(uri.data, &db, flags, NULL) : SQLITE_NOMEM;
    buffer_release(&uri);
    if (result == SQLITE_OK) {
        *ret_db = db;
        return STATUS_OK;
    }
    status = sqlite_failure(db, result, "open the store", err);
    sqlite3_close(db);
    return status;
}

static enum status facts_read(sqlite3 *db, struct store_facts *ret_facts, struct error *err)
{
    assert(db);
    struct store_facts facts = { .schema_newest = store_sqlite_schema_version() };
    const struct {
        const char *sql;
        int64_t *value;
    } questions[] = {
        { "PRAGMA page_count", &facts.bytes },
        { "SELECT sum(pending) FROM lane", &facts.pending },
        { "SELECT sum(running) FROM lane", &facts.running },
        { "SELECT sum(waiting) FROM lane", &facts.waiting },
        { "SELECT sum(dead) FROM lane", &facts.dead },
        { "SELECT min(number) FROM event", &facts.event_first },
        { "SELECT max(number) FROM event", &facts.event_last },
        { "SELECT at FROM event ORDER BY number DESC LIMIT 1", &facts.newest_at },
    };
    int64_t page_bytes = 0;
    enum status status = sqlite_schema_identify(db, &facts.schema_version, err);
    for (size_t i = 0; status == STATUS_OK && i < sizeof questions / sizeof *questions; i++)
        status = sqlite_query_int64(db, questions[i].sql, 0, questions[i].value, err);
    if (status == STATUS_OK)
        status = sqlite_query_int64(db, "PRAGMA page_size", 0, &page_bytes, err);
    if (status != STATUS_OK)
        return status;
    facts.bytes *= page_bytes;
    *ret_facts = facts;
    return STATUS_OK;
}

enum status sqlite_store_facts(struct store *base, struct store_facts *ret_facts, struct error *err)
{
    assert(base->ops == &sqlite_store_ops);
    const struct sqlite_store *store = (const struct sqlite_store *)base;
    sqlite3 *db = NULL;
    enum status status = file_look(store, err);
    if (status != STATUS_OK)
        return status;
    status = sqlite_connect_reader(store, &db, err);
    if (status == STATUS_OK)
        status = facts_read(db, ret_facts, err);
    sqlite3_close(db);
    if (status != STATUS_OK)
        return sqlite_explain(store->path, status, err);
    if (access(store->path, W_OK) != 0)
        ret_facts->unwritable = strerror(errno);
    return STATUS_OK;
}

enum status sqlite_store_backup(struct store *base, const char *target, struct store_facts *ret_facts, struct error *err)
{
    assert(base->ops == &sqlite_store_ops);
    const struct sqlite_store *store = (const struct sqlite_store *)base;
    int64_t version;
    sqlite3 *db = NULL;
    struct error said;
    enum status status = identify(store, &version, err);
    if (status == STATUS_OK)
        status = sqlite_copy(store, target, err);
    if (status != STATUS_OK)
        return status;
    status = connect_quiet(target, &db, &said);
    if (status == STATUS_OK)
        status = facts_read(db, ret_facts, &said);
    sqlite3_close(db);
    return status == STATUS_OK ? status
                               : error_set(err, status, "the copy %.200s cannot be read again: %.250s", target, said.text);
}

/* ---- Checks ---- */

enum status sqlite_store_check(struct store *base, struct error *err)
{
    assert(base->ops == &sqlite_store_ops);
    const struct sqlite_store *store = (const struct sqlite_store *)base;
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    enum status status = file_look(store, err);
    if (status == STATUS_OK)
        status = sqlite_connect_reader(store, &db, err);
    if (status != STATUS_OK)
        return status;
    int result = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    if (result != SQLITE_ROW)
        status = sqlite_failure(db, result, "check the store", err);
    else if (strcmp((const char *)sqlite3_column_text(statement, 0), "ok") != 0)
        status = error_set(err, STATUS_CORRUPT, "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return status;
}
