#include "store/sqlite/statement.h"

#include "store/sqlite/row.h"

#include <assert.h>

#define SQL_NO_LEASE "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL"
#define SQL_NO_PAYLOAD "NULL, NULL, NULL, NULL, NULL, NULL, NULL"
#define SQL_IS_READY                                                                                                        \
    "j.state IN (" SQL_STATE_PENDING ", " SQL_STATE_WAITING                                                                 \
    ") AND EXISTS (SELECT 1 FROM ready r WHERE r.lane = j.lane AND r.rank = j.rank AND r.seq = j.seq)"

/* What every attempt changes. The rest has an index of its own to be opened, and costs as much again. */
#define SQL_JOB_SETTLE                                                                                                      \
    "UPDATE job SET state = ?6, attempts = ?11, attempts_total = ?12, retry_count = ?13, step_count = ?14, doubted = ?16,"  \
    " first_at = ?18, updated_at = ?21, expires_at = ?23, last_class = ?24, last_code = ?25, last_error = ?26,"             \
    " reference = ?28, last_event = ?29"

/* Twice the same ones: nothing changes between the two. */
#define SQL_LANES_GONE                                                                                                      \
    "FROM lane INDEXED BY lane_unused WHERE event > 0 AND event <= ?1 AND id < ?3 ORDER BY event, id LIMIT ?2"

static const char *const statement_texts[STATEMENT_COUNT] = {
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_ROLLBACK] = "ROLLBACK",
    [STATEMENT_META_SET] = "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2",
    [STATEMENT_LANE_INSERT] = "INSERT INTO lane VALUES (?1, ?2, ?3, 0, 0, 0, 0, 0, 0, 0, 1, 0)",
    [STATEMENT_LANE_UPDATE] = "UPDATE lane SET pending = ?2, running = ?3, waiting = ?4, completed = ?5, dead = ?6,"
                              " cancelled = ?7, ready = ?8, stored = ?9 WHERE id = ?1",
    [STATEMENT_LANE_FIND] = "SELECT id, completed, cancelled FROM lane WHERE destination = ?1 AND tenant = ?2",
    [STATEMENT_LANE_EVENT] = "UPDATE lane SET event = ?2 WHERE id = ?1",
    [STATEMENT_LANES_COUNT_GONE] =
        "INSERT INTO gone SELECT destination, sum(completed), sum(cancelled) FROM (SELECT destination, completed, cancelled "
        SQL_LANES_GONE ") WHERE true GROUP BY destination ON CONFLICT (destination) DO UPDATE"
        " SET completed = completed + excluded.completed, cancelled = cancelled + excluded.cancelled",
    [STATEMENT_LANES_DELETE_GONE] = "DELETE FROM lane WHERE id IN (SELECT id " SQL_LANES_GONE ")",
    [STATEMENT_JOB_BY_KEY] = "SELECT seq, lane, id FROM job WHERE key = ?1 AND key <> 0",
    [STATEMENT_JOB_BY_MADE_ID] = "SELECT seq, lane, id FROM job WHERE seq = ?2 UNION ALL"
                                 " SELECT seq, lane, id FROM job WHERE key = ?1 AND key <> 0",
    [STATEMENT_JOB_BY_SEQ] = "SELECT " SQL_JOB_COLUMNS ", " SQL_IS_READY ", " SQL_LEASE_COLUMNS ", " SQL_NO_PAYLOAD
                             " FROM job j LEFT JOIN lease e ON e.seq = j.seq WHERE j.seq = ?1",
    [STATEMENT_CORRELATION] = "SELECT correlation_id FROM payload WHERE seq = ?1",
    [STATEMENT_JOB_CLAIM] =
        "SELECT " SQL_JOB_COLUMNS ", 1, " SQL_NO_LEASE ", p.content_type, p.headers, p.correlation_id, p.metadata, p.key, p.callback, p.body"
        " FROM ready r CROSS JOIN job j ON j.seq = r.seq CROSS JOIN payload p ON p.seq = r.seq"
        " WHERE r.lane = ?1 ORDER BY r.rank, r.seq LIMIT ?2",
    /* Whose turn it is is found without the payloads; the join keeps its order. */
    [STATEMENT_JOB_CLAIM_FAILED_LAST] =
        "SELECT " SQL_JOB_COLUMNS ", 1, " SQL_NO_LEASE ", p.content_type, p.headers, p.correlation_id, p.metadata, p.key, p.callback, p.body"
        " FROM (SELECT f.seq FROM (SELECT rank, seq FROM ready WHERE lane = ?1 ORDER BY rank, seq LIMIT ?4) f"
        " CROSS JOIN job n ON n.seq = f.seq WHERE ?5 = 0 OR n.look_failed_at IS NULL OR n.look_failed_at < ?3"
        " ORDER BY CASE WHEN n.look_failed_at >= ?3 THEN n.look_failed_at END, f.rank, f.seq"
        " LIMIT ?2) r CROSS JOIN job j ON j.seq = r.seq CROSS JOIN payload p ON p.seq = r.seq",
    [STATEMENT_JOB_ORPHANS] =
        "SELECT " SQL_JOB_COLUMNS ", 0, " SQL_LEASE_COLUMNS ", p.content_type, p.headers, p.correlation_id, p.metadata, p.key, p.callback, NULL"
        " FROM lease e CROSS JOIN job j ON j.seq = e.seq CROSS JOIN payload p ON p.seq = e.seq"
        " WHERE (e.until <= ?1 OR (e.token < ?2 AND e.owner = '')) AND (e.until, e.seq) > (?4, ?5)"
        " ORDER BY e.until, e.seq LIMIT ?3",
    [STATEMENT_JOB_INSERT] =
        "INSERT OR FAIL INTO job SELECT c0, c1, c2, c3, c4, " SQL_STATE_PENDING ", c5, 0, c6, 1, 0, 0, 0, 0, 0, 0,"
        " c7, NULL, c8, c9, c7, NULL, NULL, 0, NULL, NULL, NULL, NULL, c10, NULL, NULL, NULL, c11, c12 FROM rows_job",
    [STATEMENT_JOB_SETTLE] = SQL_JOB_SETTLE " WHERE seq = ?1",
    [STATEMENT_JOB_UPDATE] =
        SQL_JOB_SETTLE ", priority = ?7, step = ?8, rank = ?9, generation = ?10, redrives_auto = ?15, run_at = ?19,"
        " deadline = ?20, dead_at = ?22, dead_code = ?27, failed_at = ?30, look_failed_at = ?31, redrive = ?32, link = ?34"
        " WHERE seq = ?1",
    [STATEMENT_JOB_DELETE] = "DELETE FROM job WHERE seq BETWEEN ?1 AND ?2",
    [STATEMENT_PAYLOAD_INSERT] = "INSERT OR FAIL INTO payload SELECT c0, c1, c2, c3, c4, c5, c6, c7 FROM rows_payload",
    [STATEMENT_PAYLOAD_UPDATE] = "UPDATE payload SET body = ?2 WHERE seq = ?1",
    [STATEMENT_PAYLOAD_ABOUT] = "SELECT content_type, headers, body, key FROM payload WHERE seq = ?1",
    [STATEMENT_DIGEST_UPDATE] = "UPDATE job SET digest = ?2 WHERE seq = ?1",
    [STATEMENT_PAYLOAD_DELETE] = "DELETE FROM payload WHERE seq BETWEEN ?1 AND ?2",
    [STATEMENT_READY_INSERT] = "INSERT OR FAIL INTO ready SELECT c0, c1, c2 FROM rows_ready",
    [STATEMENT_READY_DELETE] = "DELETE FROM ready WHERE lane = ?1 AND rank = ?2 AND seq = ?3",
    [STATEMENT_READY_TAKE] = "DELETE FROM ready WHERE lane = ?1 AND (rank, seq) <= (?2, ?3)",
    [STATEMENT_TIMER_INSERT] = "INSERT OR FAIL INTO timer SELECT c0, c1 FROM rows_timer",
    [STATEMENT_TIMER_DELETE] = "DELETE FROM timer WHERE at = ?1 AND seq = ?2",
    [STATEMENT_TIMER_DUE] = "SELECT seq FROM timer WHERE at <= ?1 ORDER BY at, seq LIMIT ?2",
    [STATEMENT_TIMER_NEXT] = "SELECT min(at) FROM timer",
    [STATEMENT_CHAIN_ADD] = "INSERT INTO chained VALUES (?1, ?2, ?3)",
    [STATEMENT_CHAIN_REMOVE] = "DELETE FROM chained WHERE lane = ?1 AND chain = ?2 AND seq = ?3",
    [STATEMENT_CHAIN_AFTER] = "SELECT seq FROM chained WHERE lane = ?1 AND chain = ?2 AND seq > ?3 ORDER BY seq LIMIT 1",
    [STATEMENT_LEASE_WRITE] = "INSERT OR REPLACE INTO lease SELECT c0, c1, c2, c3, c4, c5, c6, c7, c8 FROM rows_lease",
    [STATEMENT_LEASE_DELETE] = "DELETE FROM lease WHERE seq BETWEEN ?1 AND ?2",
    [STATEMENT_EVENT_INSERT] = "INSERT OR FAIL INTO event SELECT c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, NULL"
                               " FROM rows_event",
    [STATEMENT_EVENT_OLDEST] = "SELECT number, at, hash FROM event WHERE number > ?1 ORDER BY number LIMIT ?2",
    [STATEMENT_EVENT_DELETE] = "DELETE FROM event WHERE number <= ?1",
    [STATEMENT_EVENT_DATA] = "SELECT data, salt, form FROM event WHERE number = ?1 AND digest IS NULL AND length(data) > 0",
    [STATEMENT_EVENT_ERASE] = "UPDATE event SET data = '', salt = NULL, digest = ?2 WHERE number = ?1",
    [STATEMENT_ARCHIVE_INSERT] = "INSERT OR REPLACE INTO archive SELECT c0, c1 FROM rows_archive",
    [STATEMENT_ARCHIVE_DELETE] = "DELETE FROM archive WHERE event <= ?1",
    [STATEMENT_TRIMMED_DELETE] = "DELETE FROM trimmed",
    [STATEMENT_TRIMMED_INSERT] = "INSERT INTO trimmed VALUES (?1, ?2)",
    [STATEMENT_HEAD_WRITE] = "INSERT OR REPLACE INTO head VALUES ('', ?1, ?2, ?3)",
    [STATEMENT_SAVED_WRITE] = "INSERT OR REPLACE INTO kept VALUES (?1, ?2, ?3)",
    [STATEMENT_TALLY_ADD] = "INSERT INTO kept VALUES (?1, ?2, CAST(?3 AS TEXT)) ON CONFLICT (space, name) DO UPDATE"
                            " SET value = CAST(CAST(value AS INTEGER) + ?3 AS TEXT)",
    [STATEMENT_SAVED_DELETE] = "DELETE FROM kept WHERE space = ?1 AND name = ?2",
};

enum status sqlite_statements_prepare(struct sqlite_store *store, struct error *err)
{
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        assert(statement_texts[i]);
        int result =
            sqlite3_prepare_v3(store->db, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT, &store->statements[i], NULL);
        if (result != SQLITE_OK)
            return sqlite_failure(store->db, result, "prepare", err);
    }
    return STATUS_OK;
}

/* ---- Values ---- */

/* Static: whatever is bound lives until the statement has run, and everything is bound anew each time. */
void sqlite_bind_slice(sqlite3_stmt *statement, int parameter, struct slice text)
{
    assert(parameter > 0);
    sqlite3_bind_text64(statement, parameter, text.len ? text.data : "", text.len, SQLITE_STATIC, SQLITE_UTF8);
}

void sqlite_bind_instant(sqlite3_stmt *statement, int parameter, instant at)
{
    assert(parameter > 0);
    if (at == INSTANT_NONE)
        sqlite3_bind_null(statement, parameter);
    else
        sqlite3_bind_int64(statement, parameter, at);
}

struct slice sqlite_column_slice(sqlite3_stmt *statement, int column)
{
    const char *data = sqlite3_column_blob(statement, column); /* as blob: no conversion, and the length counts */
    return (struct slice){ data ? data : "", data ? (size_t)sqlite3_column_bytes(statement, column) : 0 };
}

instant sqlite_column_instant(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL ? INSTANT_NONE : sqlite3_column_int64(statement, column);
}

enum status sqlite_column_copy(sqlite3_stmt *statement, int column, struct arena *memory, struct slice *ret_text)
{
    int len = sqlite3_column_bytes(statement, column);
    if (len <= 0) {
        *ret_text = SLICE("");
        return STATUS_OK;
    }
    const char *data = sqlite3_column_blob(statement, column);
    if (!data) /* SQLite had no memory to show it */
        return STATUS_NO_MEMORY;
    *ret_text = arena_copy(memory, (struct slice){ data, (size_t)len });
    return ret_text->data ? STATUS_OK : STATUS_NO_MEMORY;
}

/* ---- Statements ---- */

enum status sqlite_run(struct sqlite_batch *batch, enum statement which)
{
    assert(batch->store->failure.status == STATUS_OK); /* invariant 1: a failed store writes nothing */
    sqlite3_stmt *statement = batch->store->statements[which];
    int result = sqlite3_step(statement);
    enum status status = result == SQLITE_DONE ? STATUS_OK : sqlite_failure(batch->store->db, result, "write", batch->err);
    sqlite3_reset(statement); /* says again what step said */
    return status;
}

enum status sqlite_next(struct sqlite_batch *batch, enum statement which, bool *ret_row)
{
    assert(which < STATEMENT_COUNT);
    sqlite3_stmt *statement = batch->store->statements[which];
    int result = sqlite3_step(statement);
    *ret_row = result == SQLITE_ROW;
    if (result == SQLITE_ROW)
        return STATUS_OK;
    enum status status = result == SQLITE_DONE ? STATUS_OK : sqlite_failure(batch->store->db, result, "read", batch->err);
    sqlite3_reset(statement);
    return status;
}

enum status sqlite_meta_set(struct sqlite_batch *batch, const char *name, int64_t value)
{
    assert(name[0]);
    sqlite3_stmt *statement = batch->store->statements[STATEMENT_META_SET];
    sqlite_bind_slice(statement, 1, slice_from(name));
    sqlite3_bind_int64(statement, 2, value);
    return sqlite_run(batch, STATEMENT_META_SET);
}
