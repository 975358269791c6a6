#include "store/sqlite/outside.h"

#include "store/sqlite/reader.h"
#include "store/sqlite/schema.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { URI_BYTES_MAX = 3 * PATH_MAX + 64 };

enum status sqlite_outside_init(struct sqlite_outside *outside, const char *path, struct error *err)
{
    assert(path);
    struct stat facts;
    if (stat(path, &facts) != 0 && errno == ENOENT)
        return error_set(err, STATUS_NOT_FOUND, "cannot open %s: %s", path, strerror(ENOENT));
    if (stat(path, &facts) != 0)
        return error_set(err, STATUS_IO, "the file cannot be looked at by this user (uid %u): %s", (unsigned)geteuid(),
                         strerror(errno));
    if (snprintf(outside->path, sizeof outside->path, "%s%s", path[0] == '/' ? "" : "./", path) >= (int)sizeof outside->path)
        return error_set(err, STATUS_INVALID, "the store's path is too long");
    outside->store = (struct sqlite_store){ .path = outside->path, .lock_fd = -1, .index_fd = -1 };
    return sqlite_file_check(outside->path, err);
}

/* Opens it and reads its version: what is no store, or cannot be opened, is told here. */
static enum status identify(const struct sqlite_outside *outside, int64_t *ret_version, struct error *err)
{
    assert(outside->path[0]);
    sqlite3 *db = NULL;
    enum status status = sqlite_connect_reader(&outside->store, &db, err);
    if (status == STATUS_OK)
        status = sqlite_schema_identify(db, ret_version, err);
    sqlite3_close(db);
    return status == STATUS_OK ? status : sqlite_explain(outside->path, status, err);
}

enum status store_sqlite_backup_file(const char *path, const char *target, struct error *err)
{
    assert(path && target);
    struct sqlite_outside outside;
    int64_t version;
    enum status status = sqlite_outside_init(&outside, path, err);
    if (status == STATUS_OK)
        status = identify(&outside, &version, err);
    return status == STATUS_OK ? sqlite_store_backup(&outside.store.base, target, err) : status;
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

static enum status facts_read(sqlite3 *db, struct store_sqlite_facts *ret_facts, struct error *err)
{
    struct store_sqlite_facts facts = { 0 };
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

enum status store_sqlite_facts(const char *path, bool in_use, struct store_sqlite_facts *ret_facts, struct error *err)
{
    struct sqlite_outside outside;
    sqlite3 *db = NULL;
    enum status status = sqlite_outside_init(&outside, path, err);
    if (status == STATUS_OK)
        status = in_use ? sqlite_connect_reader(&outside.store, &db, err) : connect_quiet(outside.path, &db, err);
    if (status == STATUS_OK)
        status = facts_read(db, ret_facts, err);
    sqlite3_close(db);
    return status == STATUS_OK ? status : sqlite_explain(path, status, err);
}

/* ---- Jobs ---- */

enum status sqlite_outside_version(const struct sqlite_outside *outside, bool older, int64_t *ret_version, struct error *err)
{
    assert(outside->path[0]);
    int64_t version = 0;
    int known = store_sqlite_schema_version();
    enum status status = identify(outside, &version, err);
    if (status == STATUS_OK && (older ? version > known : version != known))
        status = error_set(err, STATUS_UNSUPPORTED, "the store %shas schema version %lld, this program reads %d: %s",
                           version > known ? "was made by a newer insist: it " : "", (long long)version, known,
                           version > known ? "use a newer program" : "start this program's daemon on it once");
    *ret_version = version;
    return status;
}

enum status store_sqlite_reader(const char *path, struct store_reader **ret_reader, struct error *err)
{
    struct sqlite_outside outside;
    int64_t version;
    enum status status = sqlite_outside_init(&outside, path, err);
    if (status == STATUS_OK)
        status = sqlite_outside_version(&outside, false, &version, err);
    outside.store.base.ops = &sqlite_store_ops;
    return status == STATUS_OK ? sqlite_reader_open(&outside.store.base, ret_reader, err) : status;
}

/* ---- Checks ---- */

enum status store_sqlite_quick_check(const char *path, struct error *err)
{
    struct sqlite_outside outside;
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    enum status status = sqlite_outside_init(&outside, path, err);
    if (status == STATUS_OK)
        status = sqlite_connect_reader(&outside.store, &db, err);
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
