#include "store/sqlite/handle.h"

#include "store/sqlite/apply.h"
#include "store/sqlite/disk.h"
#include "store/sqlite/erase.h"
#include "store/sqlite/held.h"
#include "store/sqlite/lane.h"
#include "store/sqlite/make.h"
#include "store/sqlite/move.h"
#include "store/sqlite/outside.h"
#include "store/sqlite/reader.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/seal.h"
#include "store/sqlite/statement.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { READER_CACHE_KB = 8 * 1024 };

/* ---- Failures ---- */

static enum status status_of(int result)
{
    if (result == SQLITE_IOERR_NOMEM)
        return STATUS_NO_MEMORY;
    if (result == SQLITE_IOERR_SHMSIZE) /* only while it is opened: later there is room before it is needed */
        return STATUS_FULL;
    switch (result & 0xff) {
    case SQLITE_FULL:
        return STATUS_FULL;
    case SQLITE_NOMEM:
        return STATUS_NO_MEMORY;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return STATUS_BUSY;
    case SQLITE_TOOBIG:
        return STATUS_LIMIT;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT: /* two rows where the tables can only agree on one */
    case SQLITE_FORMAT:
        return STATUS_CORRUPT;
    default:
        return STATUS_IO;
    }
}

enum status sqlite_failure(sqlite3 *db, int result, const char *doing, struct error *err)
{
    assert(result != SQLITE_OK);
    int system = db ? sqlite3_system_errno(db) : 0;
    enum status status = status_of(result);
    if (status == STATUS_IO && system != 0)
        return error_set(err, status, "cannot %s: %s (%d): %s", doing, sqlite3_errstr(result), result, strerror(system));
    if (status == STATUS_FULL)
        return error_set(err, status, "cannot %s: the disk is full", doing);
    if ((result & 0xff) == SQLITE_CORRUPT)
        return error_set(err, status,
                         "cannot %s: the store is damaged (%s); stop the daemon, keep the file with those beside it that end "
                         "in -wal and -shm, and put a backup in its place",
                         doing, sqlite3_errstr(result));
    return error_set(err, status, "cannot %s: %s (%d)", doing, db ? sqlite3_errmsg(db) : sqlite3_errstr(result), result);
}

void sqlite_store_fail(struct sqlite_store *store, const struct error *err)
{
    assert(err->status != STATUS_OK);
    if (store->failure.status != STATUS_OK)
        return;
    store->failure = *err;
    /* What the last sync was asked for may not be on the disk: leave the log alone for whoever opens it next. */
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

/* ---- Files ---- */

static enum status lock_busy(int fd, const char *path, struct error *err)
{
    char pid[24] = "";
    ssize_t got = pread(fd, pid, sizeof pid - 1, 0);
    if (got <= 0)
        return error_set(err, STATUS_BUSY, "%s is held by another process: a store is for one daemon", path);
    return error_set(err, STATUS_BUSY,
                     "%s is held by process %.*s: a store is for one daemon; stop that one, or name another store", path,
                     (int)strcspn(pid, "\n"), pid);
}

static enum status lock_take(struct sqlite_store *store, struct error *err)
{
    assert(store->lock_fd < 0);
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s.lock", store->path) >= (int)sizeof path)
        return error_set(err, STATUS_INVALID, "the store's path is too long");
    store->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (store->lock_fd < 0)
        return error_set(err, STATUS_IO, "cannot open %s: %s", path, strerror(errno));
    if (flock(store->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return STATUS_OK;
    if (errno == EWOULDBLOCK)
        return lock_busy(store->lock_fd, store->path, err);
    return error_set(err, STATUS_IO, "cannot lock %s: %s", path, strerror(errno));
}

/*
 * The database has a lock too: that file beside it may be removed by who takes it for a leftover, and is another one where
 * the store goes by a second name. Not where the file system makes one of this lock and of SQLite's, which are others.
 */
static enum status lock_file(struct sqlite_store *store, struct error *err)
{
    assert(store->lock_fd >= 0 && store->file_fd < 0);
    struct statfs facts;
    store->file_fd = open(store->path, O_RDONLY | O_CLOEXEC);
    bool apart = store->file_fd >= 0 && fstatfs(store->file_fd, &facts) == 0 && facts.f_type != NFS_SUPER_MAGIC &&
                 facts.f_type != SMB2_SUPER_MAGIC && facts.f_type != CIFS_SUPER_MAGIC;
    if (apart && flock(store->file_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return lock_busy(store->lock_fd, store->path, err);
    /* The pid is for people; the lock is what counts, so a disk without room for a number is no reason to refuse. */
    if (ftruncate(store->lock_fd, 0) == 0)
        (void)!dprintf(store->lock_fd, "%d\n", (int)getpid());
    return STATUS_OK;
}

/* ---- Opening ---- */

/* Counting its own memory costs SQLite a lock that writer and readers would share. Refused once it runs, without harm. */
static void sqlite_prepare(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static enum status connect_to(const char *path, int flags, sqlite3 **ret_db, struct error *err)
{
    sqlite3 *db = NULL;
    int result = sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    enum status status =
        result == SQLITE_OK ? sqlite_room_guard(db, err) : sqlite_failure(db, result, "open the store", err);
    if (status != STATUS_OK) {
        sqlite3_close(db);
        return status;
    }
    sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
    *ret_db = db;
    return STATUS_OK;
}

enum status sqlite_connect_reader(const struct sqlite_store *store, sqlite3 **ret_db, struct error *err)
{
    char sql[96];
    sqlite3 *db;
    enum status status = connect_to(store->path, SQLITE_OPEN_READONLY, &db, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL); /* the writer alone checkpoints */
    snprintf(sql, sizeof sql, "PRAGMA cache_size = -%d; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0", READER_CACHE_KB);
    status = sqlite_exec(db, sql, err);
    if (status != STATUS_OK) {
        sqlite3_close(db);
        return status;
    }
    *ret_db = db;
    return STATUS_OK;
}

static int wal_grown(void *context, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    ((struct sqlite_store *)context)->log.pages = pages;
    return SQLITE_OK;
}

/*
 * Everything found in the log goes to the database and is synced before the first new commit. A sync that failed in an
 * earlier life may have left frames that can be read now but are not on the disk; commits after them would be
 * lost with them at a power cut.
 */
static enum status log_settle(struct sqlite_store *store, struct error *err)
{
    int result = sqlite_log_cut(store->db);
    if ((result & 0xff) == SQLITE_FULL || (result & 0xff) == SQLITE_BUSY) /* busy: somebody reads what was before */
        result = sqlite_room_settle(store);
    return result == SQLITE_OK ? STATUS_OK : sqlite_failure(store->db, result, "write back the log", err);
}

static enum status seed_load(struct sqlite_store *store, struct error *err)
{
    assert(store->db);
    int64_t seed = 0;
    char sql[96];
    enum status status = sqlite_query_int64(store->db, "SELECT value FROM meta WHERE name = 'seed'", 0, &seed, err);
    if (status != STATUS_OK)
        return status;
    while (seed == 0) { /* 0 stands for none */
        if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
            return error_set(err, STATUS_IO, "cannot get a random number: %s", strerror(errno));
        if (seed == 0)
            continue;
        snprintf(sql, sizeof sql, "INSERT INTO meta VALUES ('seed', %lld)", (long long)seed);
        status = sqlite_exec(store->db, sql, err);
        if (status != STATUS_OK)
            return status;
    }
    store->base.seed = (uint64_t)seed;
    return STATUS_OK;
}

/* The end of the chain: the newest event, or the newest that was trimmed. */
static enum status chain_load(struct sqlite_store *store, struct error *err)
{
    assert(store->db);
    static const char sql[] = "SELECT number, hash, at FROM"
                              " (SELECT number, hash, at FROM event ORDER BY number DESC LIMIT 1)"
                              " UNION ALL SELECT number, hash, NULL FROM trimmed";
    sqlite3_stmt *statement = NULL;
    enum status status = STATUS_OK;
    int result = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    if (result == SQLITE_ROW && sqlite3_column_bytes(statement, 1) != EVENT_HASH_BYTES) {
        status = error_set(err, STATUS_CORRUPT, "the newest event has no hash");
    } else if (result == SQLITE_ROW) {
        store->progress.event_last = sqlite3_column_int64(statement, 0);
        memcpy(store->progress.event_hash, sqlite3_column_blob(statement, 1), EVENT_HASH_BYTES);
        store->newest_at = sqlite_column_instant(statement, 2);
    } else if (result != SQLITE_DONE) {
        status = sqlite_failure(store->db, result, "read the events", err);
    }
    sqlite3_finalize(statement);
    return status;
}

/* None of these looks at more than a few rows, however many jobs there are; the lanes are read in full. */
static enum status progress_load(struct sqlite_store *store, struct error *err)
{
    assert(store->progress.event_last == 0);
    struct sqlite_progress *progress = &store->progress;
    static const char seq_sql[] = "SELECT max(coalesce((SELECT max(seq) FROM job), 0),"
                                  " coalesce((SELECT value FROM meta WHERE name = 'seq'), 0))";
    enum status status = sqlite_query_int64(store->db, seq_sql, 0, &progress->seq_last, err);
    if (status == STATUS_OK)
        status = sqlite_query_int64(store->db, "SELECT value FROM meta WHERE name = 'token'", 0, &progress->token_last, err);
    if (status == STATUS_OK)
        status = sqlite_query_int64(store->db, "SELECT max(number) FROM trimmed", 0, &progress->trimmed_last, err);
    if (status == STATUS_OK)
        status = chain_load(store, err);
    progress->token_limit = progress->token_last;
    store->base.session = progress->token_last + 1;
    store->vacuum.event = progress->event_last;
    int64_t vacuum = 0;
    if (status == STATUS_OK)
        status = sqlite_query_int64(store->db, "PRAGMA auto_vacuum", 0, &vacuum, err);
    store->vacuum.can_shrink = vacuum == 2; /* INCREMENTAL */
    if (status == STATUS_OK)
        status = sqlite_scrub_load(store, err);
    return status == STATUS_OK ? sqlite_lanes_load(store, err) : status;
}

static enum status database_open(struct sqlite_store *store, struct error *err)
{
    assert(!store->db);
    sqlite_room_release(store);
    enum status status = connect_to(store->path, SQLITE_OPEN_READWRITE, &store->db, err);
    if (status == STATUS_OK && sqlite3_db_readonly(store->db, "main") == 1) /* SQLite then makes do with reading */
        status = error_set(err, STATUS_IO, "the file is read-only");
    if (status == STATUS_OK)
        status = sqlite_schema_configure(store->db, store->settings.sync_always, err);
    if (status == STATUS_OK)
        sqlite_room_begin(store);
    if (status == STATUS_OK)
        status = log_settle(store, err);
    if (status == STATUS_OK)
        status = sqlite_schema_migrate(store->db, store->settings.on_migrate, err);
    if (status == STATUS_OK)
        status = seed_load(store, err);
    if (status == STATUS_OK)
        status = sqlite_rows_init(store, err);
    if (status == STATUS_OK)
        status = sqlite_statements_prepare(store, err);
    if (status == STATUS_OK)
        status = sqlite_held_init(store, err);
    if (status == STATUS_OK)
        status = progress_load(store, err);
    if (status == STATUS_OK)
        status = sqlite_trail_begin(store, err);
    if (status == STATUS_OK)
        status = sqlite_shift(store, err);
    store->base.newest_at = store->base.shifted_ms ? store->settings.now : store->newest_at;
    if (status == STATUS_OK)
        status = sqlite_log_gather(store, err);
    if (status == STATUS_OK) {
        sqlite3_wal_hook(store->db, wal_grown, store);
        sqlite_watch_begin(store);
    }
    return status;
}

static void store_free(struct sqlite_store *store)
{
    for (int i = 0; i < STATEMENT_COUNT; i++)
        sqlite3_finalize(store->statements[i]);
    sqlite3_close(store->db);
    lane_table_release(&store->lanes);
    sqlite_held_release(store);
    sqlite_rows_release(store);
    if (store->log.index_fd >= 0)
        close(store->log.index_fd);
    if (store->folder.fd >= 0)
        close(store->folder.fd);
    if (store->file_fd >= 0) /* after SQLite's own: its locks on the file would go with it */
        close(store->file_fd);
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    free(store->path);
    free(store);
}

/*
 * A handle without a connection. Its path is absolute or has a folder before it: SQLite takes a name that starts with
 * "file:" for something else.
 */
static enum status handle_new(struct slice place, struct sqlite_store **ret_store, struct error *err)
{
    if (place.len == 0 || place.len >= PATH_MAX || slice_find(place, '\0') != place.len)
        return error_set(err, STATUS_INVALID, "the store needs a path: sqlite:PATH");
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, sqlite_prepare);
    struct sqlite_store *store = calloc(1, sizeof *store);
    const char *folder = place.data[0] == '/' ? "" : "./";
    if (!store || lane_table_init(&store->lanes, 0, SLICE("")) != STATUS_OK) {
        free(store);
        return error_set(err, STATUS_NO_MEMORY, "no memory for the store");
    }
    store->lock_fd = store->file_fd = store->log.index_fd = store->folder.fd = -1;
    store->spare_at = INSTANT_NONE;
    store->newest_at = store->head.at = INSTANT_NONE;
    if (asprintf(&store->path, "%s%.*s", folder, SLICE_ARG(place)) < 0) {
        store->path = NULL;
        store_free(store);
        return error_set(err, STATUS_NO_MEMORY, "no memory for the store");
    }
    store->base = (struct store){ .ops = &sqlite_store_ops, .place = store->path + strlen(folder) };
    *ret_store = store;
    return STATUS_OK;
}

/* Puts the path before a message that does not have it. */
static void name_in(const char *path, enum status status, struct error *err)
{
    struct error said;
    if (!err || strstr(err->text, path))
        return;
    said = *err;
    error_set(err, status, "%.200s: %.280s", path, said.text);
}

enum status store_sqlite_open(struct slice path, const struct store_settings *settings, struct store **ret_store,
                              struct error *err)
{
    assert(settings && ret_store);
    struct sqlite_store *store;
    enum status status = handle_new(path, &store, err);
    if (status != STATUS_OK)
        return status;
    store->settings = *settings;
    store->lanes.own_tenant = settings->own_tenant;
    trail_seals_begin(&store->seals, settings->audit_key);
    store->log.checkpoint_pages = CHECKPOINT_PAGES;
    store->log.reserve_pages = LOG_RESERVE_PAGES;
    status = sqlite_file_check(store->path, err);
    if (status == STATUS_OK)
        status = sqlite_make_check(store->path, settings->make != STORE_MAKE_IN_EMPTY_FOLDER, err);
    if (status == STATUS_OK)
        status = sqlite_make_folders(store->path, err);
    if (status == STATUS_OK)
        status = lock_take(store, err);
    if (status == STATUS_OK)
        status = sqlite_make_begin(store->path, err);
    if (status == STATUS_OK)
        status = lock_file(store, err);
    if (status == STATUS_OK)
        status = database_open(store, err);
    if (status == STATUS_OK)
        status = sqlite_make_end(store->path, err);
    if (status != STATUS_OK) {
        name_in(store->path, sqlite_explain(store->path, status, err), err);
        store_free(store);
        return status;
    }
    *ret_store = &store->base;
    return STATUS_OK;
}

static enum status sqlite_look(struct slice place, struct store **ret_store, struct error *err)
{
    struct sqlite_store *store;
    enum status status = handle_new(place, &store, err);
    if (status == STATUS_OK)
        *ret_store = &store->base;
    return status;
}

/* ---- Closing, syncing ---- */

static void sqlite_close(struct store *base)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    struct error err;
    if (!store)
        return;
    if (store->failure.status == STATUS_OK && store->head.at != INSTANT_NONE &&
        sqlite_trail_settle(store, store->head.at, &err) != STATUS_OK)
        sqlite_store_fail(store, &err);
    store_free(store); /* closing the last connection writes the log back, unless the store has failed */
}

/*
 * A session's number is the first token that it may give to a lease: so a lease's token tells whether it is of an earlier
 * one, and nothing need be written. A session that claimed nothing leaves its number to the next.
 */
static enum status sqlite_begin(struct store *base, instant now, struct error *err)
{
    assert(base->ops == &sqlite_store_ops);
    (void)now;
    (void)err;
    struct sqlite_store *store = (struct sqlite_store *)base;
    base->session = store->progress.token_last + 1;
    return STATUS_OK;
}

/* Through SQLite's own file, which also syncs the folder when the log is new. */
static enum status sqlite_sync(struct store *base, struct error *err)
{
    assert(base->ops == &sqlite_store_ops);
    struct sqlite_store *store = (struct sqlite_store *)base;
    sqlite3_file *log = NULL;
    struct error ignored;
    err = err ? err : &ignored;
    if (store->failure.status != STATUS_OK)
        return error_set(err, store->failure.status, "the store failed before and must be opened anew: %.400s",
                         store->failure.text);
    int result = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (result == SQLITE_OK && log && log->pMethods)
        result = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    if (result == SQLITE_OK)
        return STATUS_OK;
    error_set(err, STATUS_IO, "cannot sync the log: %s", sqlite3_errstr(result));
    sqlite_store_fail(store, err);
    return STATUS_IO;
}

const struct store_ops sqlite_store_ops = {
    .name = "sqlite",
    .writers_max = 1,
    .close = sqlite_close,
    .apply = sqlite_store_apply,
    .begin = sqlite_begin,
    .sync = sqlite_sync,
    .tend = sqlite_store_tend,
    .head = sqlite_store_head,
    .space = sqlite_store_space,
    .facts = sqlite_store_facts,
    .check = sqlite_store_check,
    .verify = sqlite_store_verify,
    .backup = sqlite_store_backup,
    .move = &sqlite_move_ops,
    .reader = sqlite_reader_open,
    .reader_close = sqlite_reader_close,
    .reader_job = sqlite_reader_job,
    .reader_job_seq = sqlite_reader_job_seq,
    .reader_jobs = sqlite_reader_jobs,
    .reader_events = sqlite_reader_events,
    .reader_history = sqlite_reader_history,
    .reader_lanes = sqlite_reader_lanes,
    .reader_lane = sqlite_reader_lane,
    .reader_totals = sqlite_reader_totals,
    .reader_ahead = sqlite_reader_ahead,
    .reader_saved = sqlite_reader_saved,
    .reader_saved_list = sqlite_reader_saved_list,
};

const struct store_backend store_sqlite_backend = {
    .scheme = "sqlite:",
    .open = store_sqlite_open,
    .look = sqlite_look,
    .library = "sqlite",
    .library_version = sqlite3_libversion,
};
