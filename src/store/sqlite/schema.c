#include "store/sqlite/schema.h"

#include "store/sqlite/row.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    APPLICATION_ID = 0x696e7374, /* "inst" */
    WRITER_CACHE_KB = 16 * 1024,
    WAL_KEEP_BYTES = 64 * 1024 * 1024, /* a longer one, after a long read, is cut when it starts anew */
};

#define SQL_TIME(column) "strftime('%Y-%m-%dT%H:%M:%fZ', " column " / 1000.0, 'unixepoch')"

/*
 * Step i brings version i to i + 1, in one transaction. Steps that were released are never edited: add one.
 *
 * Why so many narrow tables: a job's small row is written at every change and its payload never, so they are
 * apart; `ready` and `timer` hold only what a claim and the clock walk over; `event` has no index, so that each
 * one is an append, and a job's history is walked backwards along `previous`. `archive` keeps the end of
 * that walk for jobs that are gone. `lane` has its counters so that nothing is ever counted. A job that runs has a
 * `lease`, which says all that the claim has changed: the job's own row is written when the lease ends.
 */
static const char *const migrations[] = {
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE lane (id INTEGER PRIMARY KEY, destination TEXT NOT NULL, tenant TEXT NOT NULL, pending INTEGER NOT NULL,"
    " running INTEGER NOT NULL, waiting INTEGER NOT NULL, completed INTEGER NOT NULL, dead INTEGER NOT NULL,"
    " cancelled INTEGER NOT NULL, ready INTEGER NOT NULL, UNIQUE (destination, tenant));"
    "CREATE TABLE job (seq INTEGER PRIMARY KEY, key INTEGER NOT NULL, lane INTEGER NOT NULL, id TEXT NOT NULL,"
    " digest BLOB NOT NULL, state INTEGER NOT NULL, priority INTEGER NOT NULL, step INTEGER NOT NULL, rank INTEGER NOT NULL,"
    " generation INTEGER NOT NULL, attempts INTEGER NOT NULL, attempts_total INTEGER NOT NULL, retry_count INTEGER NOT NULL,"
    " step_count INTEGER NOT NULL, redrives_auto INTEGER NOT NULL, doubted INTEGER NOT NULL, created_at INTEGER NOT NULL,"
    " first_at INTEGER, run_at INTEGER, deadline INTEGER, updated_at INTEGER NOT NULL, dead_at INTEGER, expires_at INTEGER,"
    " last_class INTEGER NOT NULL, last_code TEXT, last_error TEXT, dead_code TEXT, reference TEXT,"
    " last_event INTEGER NOT NULL);"
    "CREATE INDEX job_key ON job (key);"
    "CREATE INDEX job_dead ON job (seq) WHERE state = " SQL_STATE_DEAD ";"
    "CREATE INDEX job_waiting ON job (seq) WHERE state = " SQL_STATE_WAITING ";"
    "CREATE TABLE payload (seq INTEGER PRIMARY KEY, content_type TEXT, headers TEXT, correlation_id TEXT, metadata TEXT,"
    " body BLOB);"
    "CREATE TABLE ready (lane INTEGER NOT NULL, rank INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " PRIMARY KEY (lane, rank, seq)) WITHOUT ROWID;"
    "CREATE TABLE timer (at INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (at, seq)) WITHOUT ROWID;"
    "CREATE TABLE lease (seq INTEGER PRIMARY KEY, token INTEGER NOT NULL, until INTEGER NOT NULL, owner TEXT);"
    "CREATE TABLE event (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, lane INTEGER, job TEXT, type INTEGER NOT NULL,"
    " state INTEGER NOT NULL, attempt INTEGER NOT NULL, previous INTEGER NOT NULL, destination TEXT, data TEXT,"
    " hash BLOB NOT NULL);"
    "CREATE TABLE archive (event INTEGER PRIMARY KEY, key INTEGER NOT NULL);"
    "CREATE INDEX archive_key ON archive (key);"
    "CREATE TABLE destination (name TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE trimmed (number INTEGER PRIMARY KEY, hash BLOB NOT NULL);",
    "CREATE TABLE kept (space TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (space, name)) WITHOUT ROWID;"
    "INSERT INTO kept SELECT 'destination', name, state FROM destination;"
    "DROP TABLE destination;",
    /* An id that the store made holds the job's number and is found by that: its key is 0. */
    "DROP INDEX job_key; CREATE INDEX job_key ON job (key) WHERE key <> 0;",
    /* A claim writes the lease and leaves the job's row as it was; job_now shows both as one. */
    "CREATE TABLE leased (seq INTEGER PRIMARY KEY, token INTEGER NOT NULL, until INTEGER NOT NULL, owner TEXT,"
    " at INTEGER NOT NULL, first_at INTEGER NOT NULL, attempts INTEGER NOT NULL, attempts_total INTEGER NOT NULL,"
    " event INTEGER NOT NULL);"
    "INSERT INTO leased SELECT e.seq, e.token, e.until, e.owner, j.updated_at, j.first_at, j.attempts, j.attempts_total,"
    " j.last_event FROM lease e JOIN job j ON j.seq = e.seq;"
    "DROP TABLE lease; ALTER TABLE leased RENAME TO lease;"
    "CREATE VIEW job_now AS SELECT j.seq, j.key, j.lane, j.id, j.digest,"
    " CASE WHEN e.seq IS NULL THEN j.state ELSE " SQL_STATE_RUNNING " END AS state, j.priority, j.step, j.rank, j.generation,"
    " coalesce(e.attempts, j.attempts) AS attempts, coalesce(e.attempts_total, j.attempts_total) AS attempts_total,"
    " j.retry_count, j.step_count, j.redrives_auto, j.doubted, j.created_at, coalesce(e.first_at, j.first_at) AS first_at,"
    " j.run_at, j.deadline, coalesce(e.at, j.updated_at) AS updated_at, j.dead_at, j.expires_at, j.last_class, j.last_code,"
    " j.last_error, j.dead_code, j.reference, coalesce(e.event, j.last_event) AS last_event"
    " FROM job j LEFT JOIN lease e ON e.seq = j.seq;",
    /* A job's first failure, and whether it has failed in this outage of its destination. */
    "ALTER TABLE job ADD COLUMN failed_at INTEGER; ALTER TABLE job ADD COLUMN look_failed_at INTEGER;"
    "DROP VIEW job_now; CREATE VIEW job_now AS SELECT j.seq, j.key, j.lane, j.id, j.digest,"
    " CASE WHEN e.seq IS NULL THEN j.state ELSE " SQL_STATE_RUNNING " END AS state, j.priority, j.step, j.rank, j.generation,"
    " coalesce(e.attempts, j.attempts) AS attempts, coalesce(e.attempts_total, j.attempts_total) AS attempts_total,"
    " j.retry_count, j.step_count, j.redrives_auto, j.doubted, j.created_at, coalesce(e.first_at, j.first_at) AS first_at,"
    " j.run_at, j.deadline, coalesce(e.at, j.updated_at) AS updated_at, j.dead_at, j.expires_at, j.last_class, j.last_code,"
    " j.last_error, j.dead_code, j.reference, coalesce(e.event, j.last_event) AS last_event, j.failed_at, j.look_failed_at"
    " FROM job j LEFT JOIN lease e ON e.seq = j.seq;",
    /* How an event's hash was made, and what its data was salted with; where the chain ends, apart from the chain. */
    "ALTER TABLE event ADD COLUMN form INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE event ADD COLUMN salt BLOB;"
    "ALTER TABLE event ADD COLUMN digest BLOB;"
    "CREATE TABLE head (chain TEXT PRIMARY KEY, number INTEGER NOT NULL, hash BLOB NOT NULL, mark BLOB NOT NULL)"
    " WITHOUT ROWID;",
    /* A lease of the daemon's own has no owner: its token tells which run of the daemon took it. */
    "UPDATE lease SET owner = '' WHERE owner = 'engine';",
    /* All jobs of one id lie together in the index, whosever they are: see job_key. */
    "DROP INDEX job_key; DROP INDEX archive_key;"
    "UPDATE job SET key = insist_key((SELECT l.tenant FROM lane l WHERE l.id = job.lane), id) WHERE key <> 0;"
    "UPDATE archive SET key = coalesce((SELECT insist_key(l.tenant, v.job) FROM event v JOIN lane l ON l.id = v.lane"
    " WHERE v.number = archive.event), key);"
    "CREATE INDEX job_key ON job (key) WHERE key <> 0; CREATE INDEX archive_key ON archive (key);",
    /*
     * A lane knows how many jobs it has. When that is none, `event` is the newest event of all: once it is trimmed, nothing
     * refers to the lane and it goes; what it completed and cancelled stays in `gone`.
     */
    "ALTER TABLE lane ADD COLUMN stored INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE lane ADD COLUMN event INTEGER NOT NULL DEFAULT 0;"
    "UPDATE lane SET stored = c.jobs FROM (SELECT lane AS id, count(*) AS jobs FROM job GROUP BY lane) c"
    " WHERE c.id = lane.id;"
    "UPDATE lane SET event = max(1, coalesce((SELECT max(number) FROM event), 1)) WHERE stored = 0;"
    "CREATE INDEX lane_used ON lane (id) WHERE event = 0; CREATE INDEX lane_unused ON lane (event) WHERE event > 0;"
    "CREATE TABLE gone (destination TEXT PRIMARY KEY, completed INTEGER NOT NULL, cancelled INTEGER NOT NULL)"
    " WITHOUT ROWID;",
    /* For people and the queries that they have: the e-mail document's dead letters and SIFEN's queue, by their names. */
    "CREATE VIEW dlq AS SELECT j.id AS jobId, l.tenant AS companyId, l.destination AS destination,"
    " coalesce(substr(j.last_code, instr(j.last_code, ':') + 1), '') AS lastFailureCode, j.last_error AS lastFailureReason,"
    " j.dead_code AS deadCode, j.attempts AS failedAttempts, " SQL_TIME("j.created_at") " AS enqueuedAt,"
    " " SQL_TIME("j.dead_at") " AS movedToDLQAt, " SQL_TIME("j.expires_at") " AS expiresAt"
    " FROM job j JOIN lane l ON l.id = j.lane WHERE j.state = " SQL_STATE_DEAD ";"
    "CREATE VIEW DocumentosContingencia AS SELECT j.id AS Id, coalesce(nullif(p.correlation_id, ''), j.id)"
    " AS DocumentoElectronicoId, l.destination AS Destino, " SQL_TIME("j.created_at") " AS FechaCreacion,"
    " j.priority + 1 AS Prioridad, j.retry_count AS NumeroReintentos, CASE j.state WHEN " SQL_STATE_PENDING
    " THEN 'Pendiente' WHEN " SQL_STATE_DEAD " THEN 'Error' ELSE 'Reintentando' END AS Estado,"
    " CASE WHEN j.first_at IS NOT NULL THEN " SQL_TIME("j.updated_at") " END AS UltimoIntento,"
    " CASE WHEN j.state = " SQL_STATE_WAITING " THEN " SQL_TIME("j.run_at") " END AS ProximoIntento,"
    " j.last_error AS MensajeError FROM job_now j JOIN lane l ON l.id = j.lane LEFT JOIN payload p ON p.seq = j.seq"
    " WHERE j.state IN (" SQL_STATE_PENDING ", " SQL_STATE_RUNNING ", " SQL_STATE_WAITING ", " SQL_STATE_DEAD ");",
    /* A job that a redrive has sent back, until its end: which one, and what the dead letter was. */
    "ALTER TABLE job ADD COLUMN redrive TEXT; CREATE INDEX job_redriven ON job (seq) WHERE redrive IS NOT NULL;",
    /*
     * Jobs of one key: `chain` stands for it, `link` says whether one is behind another (1) and has lost one before it (2).
     * `chained` has those that have not ended, so that the next is found without a look at any other.
     */
    "ALTER TABLE job ADD COLUMN chain INTEGER NOT NULL DEFAULT 0; ALTER TABLE job ADD COLUMN link INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE payload ADD COLUMN key TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE payload ADD COLUMN callback TEXT NOT NULL DEFAULT '';"
    "CREATE TABLE chained (lane INTEGER NOT NULL, chain INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " PRIMARY KEY (lane, chain, seq)) WITHOUT ROWID;",
};

enum { SCHEMA_VERSION = (int)(sizeof migrations / sizeof migrations[0]) };

enum status sqlite_exec(sqlite3 *db, const char *sql, struct error *err)
{
    int result = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return result == SQLITE_OK ? STATUS_OK : sqlite_failure(db, result, "prepare", err);
}

enum status sqlite_query_int64(sqlite3 *db, const char *sql, int64_t missing, int64_t *ret_value, struct error *err)
{
    assert(ret_value);
    sqlite3_stmt *statement = NULL;
    int64_t value = missing;
    int result = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    if (result == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL)
        value = sqlite3_column_int64(statement, 0);
    enum status status = STATUS_OK;
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        status = sqlite_failure(db, result, "read", err);
    else
        *ret_value = value;
    sqlite3_finalize(statement);
    return status;
}

/* PRAGMA journal_mode answers with the mode it could set. */
static enum status wal_switch_on(sqlite3 *db, struct error *err)
{
    assert(sqlite3_get_autocommit(db));
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    enum status status = STATUS_OK;
    if (result != SQLITE_ROW)
        status = sqlite_failure(db, result, "switch to the write-ahead log", err);
    else if (strcmp((const char *)sqlite3_column_text(statement, 0), "wal") != 0)
        status = error_set(err, STATUS_UNSUPPORTED, "the file system has no shared memory that a write-ahead log needs");
    sqlite3_finalize(statement);
    return status;
}

enum status sqlite_schema_configure(sqlite3 *db, bool sync_always, struct error *err)
{
    assert(sqlite3_get_autocommit(db));
    char sql[512];
    snprintf(sql, sizeof sql,
             "PRAGMA page_size = %d; PRAGMA cache_size = -%d; PRAGMA temp_store = MEMORY;"
             "PRAGMA mmap_size = 0; PRAGMA foreign_keys = OFF; PRAGMA secure_delete = FAST; PRAGMA wal_autocheckpoint = 0;"
             "PRAGMA journal_size_limit = %d; PRAGMA synchronous = %s",
             PAGE_BYTES, WRITER_CACHE_KB, WAL_KEEP_BYTES, sync_always ? "FULL" : "NORMAL");
    int64_t pages = 0;
    enum status status = sqlite_exec(db, sql, err);
    if (status == STATUS_OK)
        status = sqlite_query_int64(db, "PRAGMA page_count", 0, &pages, err);
    /* Only a new file can be made to keep account of its pages, and gives them back when it is quiet: see vacuum.c. */
    if (status == STATUS_OK && pages == 0)
        status = sqlite_exec(db, "PRAGMA auto_vacuum = INCREMENTAL", err);
    return status == STATUS_OK ? wal_switch_on(db, err) : status;
}

/* insist_key(tenant, id): what job_key says. */
static void key_of(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    struct slice names[2];
    for (int i = 0; i < 2; i++) {
        const char *text = (const char *)sqlite3_value_text(values[i]);
        names[i] = (struct slice){ text ? text : "", text ? (size_t)sqlite3_value_bytes(values[i]) : 0 };
    }
    sqlite3_result_int64(context, (int64_t)job_key(names[0], names[1]));
}

static enum status migrate_step(sqlite3 *db, const char *sql, int version, struct error *err)
{
    assert(version >= 0 && sqlite3_get_autocommit(db));
    char after[128];
    snprintf(after, sizeof after, "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT", APPLICATION_ID,
             version + 1);
    enum status status = sqlite_exec(db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK)
        status = sqlite_exec(db, sql, err);
    if (status == STATUS_OK)
        status = sqlite_exec(db, after, err);
    if (status == STATUS_OK)
        return STATUS_OK;
    char why[sizeof err->text] = "";
    if (err)
        snprintf(why, sizeof why, "%s", err->text);
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL); /* a failure closes the connection, which rolls back too */
    return error_set(err, status, "the store stays at schema version %d, which this program cannot use: %.400s", version,
                     why);
}

/* An empty database has version 0. */
static enum status version_read(sqlite3 *db, int64_t *ret_version, struct error *err)
{
    int64_t application, tables;
    enum status status = sqlite_query_int64(db, "PRAGMA user_version", 0, ret_version, err);
    if (status == STATUS_OK)
        status = sqlite_query_int64(db, "PRAGMA application_id", 0, &application, err);
    if (status == STATUS_OK)
        status = sqlite_query_int64(db, "SELECT count(*) FROM sqlite_master", 0, &tables, err);
    if (status == STATUS_OK && tables > 0 && application != APPLICATION_ID)
        return error_set(err, STATUS_INVALID, "the file is a database of another program; name another");
    return status;
}

int store_sqlite_schema_version(void)
{
    return SCHEMA_VERSION;
}

enum status sqlite_schema_identify(sqlite3 *db, int64_t *ret_version, struct error *err)
{
    int64_t version;
    enum status status = version_read(db, &version, err);
    if (status == STATUS_OK && version <= 0)
        return error_set(err, STATUS_INVALID, "the file is no store: it is empty");
    if (status == STATUS_OK)
        *ret_version = version;
    return status;
}

enum status sqlite_schema_migrate_by(sqlite3 *db, const char *const *steps, int count, struct error *err)
{
    assert(count > 0);
    int64_t version;
    enum status status = version_read(db, &version, err);
    if (status != STATUS_OK)
        return status;
    if (version < 0 || version > count)
        return error_set(err, STATUS_UNSUPPORTED,
                         "the store was made by a newer insist: it has schema version %lld, this program knows up to %d; use a newer "
                         "program, or a backup from before",
                         (long long)version, count);
    if (version == count)
        return STATUS_OK;
    int result = sqlite3_create_function(db, "insist_key", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, key_of, NULL, NULL);
    if (result != SQLITE_OK)
        return sqlite_failure(db, result, "prepare", err);
    for (int step = (int)version; step < count && status == STATUS_OK; step++)
        status = migrate_step(db, steps[step], step, err);
    return status;
}

enum status sqlite_schema_migrate(sqlite3 *db, void (*on_migrate)(int from, int to), struct error *err)
{
    int64_t version;
    enum status status = version_read(db, &version, err);
    if (status != STATUS_OK)
        return status;
    if (on_migrate && version > 0 && version < SCHEMA_VERSION)
        on_migrate((int)version, SCHEMA_VERSION);
    return sqlite_schema_migrate_by(db, migrations, SCHEMA_VERSION, err);
}
