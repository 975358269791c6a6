/* All that a file has, read and written as rows of move.h. Parameters of what is written are the columns, by number. */
#include "store/sqlite/move.h"

#include "store/digest.h"
#include "store/sqlite/handle.h"
#include "store/sqlite/statement.h"

#include <assert.h>
#include <string.h>

enum { WRITES_MAX = 7, KEY_PARAMETER = MOVE_COLUMNS_MAX + 1 };

/* ?1 and ?2: the place behind which it goes on, ?3: how many, ?4: whether it begins. */
struct kind_sql {
    const char *read, *count;
    const char *writes[WRITES_MAX];
};

/* When time does something to a job, as job_due says it. */
#define DUE                                                                                                                 \
    "CASE WHEN ?7 IN (4, 5, 6) THEN ?26 WHEN ?34 IS NOT NULL THEN NULL WHEN ?33 = 1 OR ?48 & 1 THEN ?21"                  \
    " ELSE min(coalesce(?20, ?21), coalesce(?21, ?20)) END"

static const struct kind_sql kinds[MOVE_KINDS] = {
    [MOVE_META] = {
        "SELECT name, value FROM (SELECT 'seed' AS name, value FROM meta WHERE name = 'seed'"
        " UNION ALL SELECT 'seq', max(coalesce((SELECT max(seq) FROM job), 0),"
        " coalesce((SELECT value FROM meta WHERE name = 'seq'), 0))"
        " UNION ALL SELECT 'token', max(coalesce((SELECT value FROM meta WHERE name = 'token'), 0),"
        " coalesce((SELECT max(token) FROM lease), 0))) WHERE ?4 OR name > ?1 ORDER BY name LIMIT ?3",
        "SELECT 3",
        { "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value" } },
    [MOVE_LANE] = {
        "SELECT id, destination, tenant, stored > 0, pending, running, waiting, completed, dead, cancelled, ready, stored"
        " FROM lane WHERE id > ?1 ORDER BY id LIMIT ?3",
        "SELECT count(*) FROM lane",
        { "INSERT INTO lane (id, destination, tenant, pending, running, waiting, completed, dead, cancelled, ready, stored,"
          " event) VALUES (?1, ?2, ?3, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12 = 0)" } },
    [MOVE_GONE] = {
        "SELECT destination, completed, cancelled FROM gone WHERE ?4 OR destination > ?1 ORDER BY destination LIMIT ?3",
        "SELECT count(*) FROM gone",
        { "INSERT INTO gone VALUES (?1, ?2, ?3)" } },
    [MOVE_JOB] = {
        "SELECT j.seq, j.lane, l.tenant, j.id, j.key = 0, j.digest, CASE j.state WHEN 2 THEN 1 ELSE j.state END, j.priority,"
        " j.step, j.rank, j.generation, j.attempts, j.attempts_total, j.retry_count, j.step_count, j.redrives_auto,"
        " j.doubted, j.created_at, j.first_at, coalesce(j.run_at, j.created_at), j.deadline, j.updated_at, j.failed_at,"
        " j.look_failed_at, j.dead_at, j.expires_at, j.last_class, j.last_event, j.last_code, j.last_error, j.dead_code,"
        " j.reference, EXISTS (SELECT 1 FROM ready r WHERE r.lane = j.lane AND r.rank = j.rank AND r.seq = j.seq),"
        " e.token, e.until, e.owner, e.at, e.first_at, e.attempts, e.attempts_total, e.event, p.content_type, p.headers,"
        " p.correlation_id, p.metadata, p.body, j.chain, j.link, p.key, p.callback, j.redrive, l.destination FROM job j"
        " CROSS JOIN lane l ON l.id = j.lane"
        " LEFT JOIN lease e ON e.seq = j.seq LEFT JOIN payload p ON p.seq = j.seq WHERE j.seq > ?1 ORDER BY j.seq LIMIT ?3",
        "SELECT count(*) FROM job",
        { "INSERT INTO job (seq, key, lane, id, digest, state, priority, step, rank, generation, attempts, attempts_total,"
          " retry_count, step_count, redrives_auto, doubted, created_at, first_at, run_at, deadline, updated_at, failed_at,"
          " look_failed_at, dead_at, expires_at, last_class, last_event, last_code, last_error, dead_code, reference,"
          " chain, link, redrive) VALUES (?1, ?52, ?2, ?4, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,"
          " ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?47, ?48, nullif(?51, ''))",
          "INSERT INTO payload VALUES (?1, ?42, ?43, ?44, ?45, ?46, ?49, ?50)",
          "INSERT INTO ready SELECT ?2, ?10, ?1 WHERE ?33 = 1",
          "INSERT INTO timer SELECT " DUE ", ?1 WHERE " DUE " IS NOT NULL",
          "INSERT INTO chained SELECT ?2, ?47, ?1 WHERE ?47 <> 0 AND ?7 IN (1, 2, 3)",
          "INSERT INTO lease (seq, token, until, owner, at, first_at, attempts, attempts_total, event)"
          " SELECT ?1, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41 WHERE ?34 IS NOT NULL" } },
    [MOVE_EVENT] = {
        "SELECT 0, number, at, lane, type, state, attempt, previous, form, hash, salt, digest, destination, job, data"
        " FROM event WHERE number > ?2 AND ?1 < 1 ORDER BY number LIMIT ?3",
        "SELECT count(*) FROM event",
        { "INSERT INTO event (number, at, lane, type, state, attempt, previous, form, hash, salt, digest, destination, job,"
          " data) VALUES (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)" } },
    [MOVE_ARCHIVE] = {
        "SELECT a.event, l.tenant, v.job FROM archive a CROSS JOIN event v ON v.number = a.event"
        " CROSS JOIN lane l ON l.id = v.lane WHERE a.event > ?1 ORDER BY a.event LIMIT ?3",
        "SELECT count(*) FROM archive",
        { "INSERT INTO archive VALUES (?1, ?52)" } },
    [MOVE_SAVED] = {
        "SELECT space, name, value FROM kept WHERE (?4 OR (space, name) > (?1, ?2)) AND space <> 'move'"
        " ORDER BY space, name LIMIT ?3",
        "SELECT count(*) FROM kept WHERE space <> 'move'",
        { "INSERT INTO kept VALUES (?1, ?2, ?3)" } },
    [MOVE_CHAIN] = {
        "SELECT 0, coalesce(v.number, t.number, 0), coalesce(v.hash, t.hash, zeroblob(32)), t.number, t.hash FROM (SELECT 1)"
        " LEFT JOIN (SELECT number, hash FROM event ORDER BY number DESC LIMIT 1) v"
        " LEFT JOIN (SELECT number, hash FROM trimmed ORDER BY number DESC LIMIT 1) t WHERE ?1 < 0 LIMIT ?3",
        "SELECT 1",
        { "INSERT INTO head VALUES ('', ?2, ?3, ?52) ON CONFLICT (chain) DO UPDATE SET number = excluded.number,"
          " hash = excluded.hash, mark = excluded.mark",
          "INSERT INTO trimmed SELECT ?4, ?5 WHERE ?4 IS NOT NULL",
          "UPDATE lane SET event = max(?2, 1) WHERE stored = 0" } },
};

static sqlite3 *db_of(struct store *base)
{
    assert(base->ops == &sqlite_store_ops);
    return ((struct sqlite_store *)base)->db;
}

static enum status prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_statement, struct error *err)
{
    int result = sqlite3_prepare_v2(db, sql, -1, ret_statement, NULL);
    return result == SQLITE_OK ? STATUS_OK : sqlite_failure(db, result, "move", err);
}

static void bind(sqlite3_stmt *statement, int parameter, char type, const struct move_value *value)
{
    assert(parameter > 0);
    if (parameter > sqlite3_bind_parameter_count(statement))
        return; /* it wants fewer columns than there are */
    if (value->null)
        sqlite3_bind_null(statement, parameter);
    else if (type == 'i' || type == 'I')
        sqlite3_bind_int64(statement, parameter, value->number);
    else if (type == 'x' || type == 'X')
        sqlite3_bind_blob64(statement, parameter, value->bytes.data, value->bytes.len, SQLITE_STATIC);
    else
        sqlite3_bind_text64(statement, parameter, value->bytes.data, value->bytes.len, SQLITE_STATIC, SQLITE_UTF8);
}

/* ---- reading ---- */

/* Some have one half of the digest only: see digest.c. */
static enum status digest_complete(sqlite3_stmt *statement, struct arena *memory, struct move_value *row)
{
    struct slice *digest = &row[MOVE_JOB_DIGEST].bytes;
    struct op_insert job = { .destination = sqlite_column_slice(statement, MOVE_JOB_COLUMNS), .content_type = row[41].bytes,
                             .headers = row[42].bytes, .payload = row[45].bytes, .key = row[48].bytes };
    if (digest->len != JOB_DIGEST_BYTES && digest->len != JOB_CHECK_BYTES)
        return STATUS_OK;
    unsigned char *whole = arena_alloc(memory, JOB_DIGEST_BYTES_MAX);
    if (!whole)
        return STATUS_NO_MEMORY;
    if (digest->len == JOB_CHECK_BYTES) {
        job_digest_complete(&job, (const unsigned char *)digest->data, whole);
    } else {
        job_digest_make(&job, whole);
        memcpy(whole, digest->data, JOB_DIGEST_BYTES);
    }
    *digest = (struct slice){ (const char *)whole, JOB_DIGEST_BYTES_MAX };
    return STATUS_OK;
}

static enum status row_read(sqlite3_stmt *statement, const char *types, struct arena *memory, struct move_value *row,
                            size_t *bytes)
{
    for (int i = 0; types[i]; i++) {
        row[i] = (struct move_value){ .bytes = SLICE("") };
        bool may_be_null = types[i] == 'I' || types[i] == 'T' || types[i] == 'X';
        row[i].null = may_be_null && sqlite3_column_type(statement, i) == SQLITE_NULL;
        if (types[i] == 'i' || types[i] == 'I')
            row[i].number = sqlite3_column_int64(statement, i);
        else if (sqlite_column_copy(statement, i, memory, &row[i].bytes) != STATUS_OK)
            return STATUS_NO_MEMORY;
        *bytes += row[i].bytes.len;
    }
    return STATUS_OK;
}

static enum status rows_read(sqlite3 *db, sqlite3_stmt *statement, enum move_kind kind, struct arena *memory,
                             struct move_page *page, struct error *err)
{
    assert(page->count == 0 && page->columns <= MOVE_COLUMNS_MAX);
    const char *types = move_kind_facts(kind)->types;
    size_t bytes = 0;
    int result = SQLITE_ROW;
    while (page->count < MOVE_PAGE_ROWS && bytes < MOVE_PAGE_BYTES) {
        struct move_value *row = &page->values[page->count * (size_t)page->columns];
        result = sqlite3_step(statement);
        if (result != SQLITE_ROW)
            break;
        enum status status = row_read(statement, types, memory, row, &bytes);
        if (status == STATUS_OK && kind == MOVE_JOB)
            status = digest_complete(statement, memory, row);
        if (status != STATUS_OK)
            return error_set(err, status, "no memory for a page of %s", move_kind_facts(kind)->name);
        page->count++;
    }
    return result == SQLITE_ROW || result == SQLITE_DONE ? STATUS_OK : sqlite_failure(db, result, "read", err);
}

static enum status move_read(struct store *base, enum move_kind kind, const struct move_value *after, struct arena *memory,
                             struct move_page *ret_page, struct error *err)
{
    assert(kind < MOVE_KINDS);
    static const struct move_value first = { .number = -1, .bytes = { "", 0 } };
    const struct move_kind_facts *facts = move_kind_facts(kind);
    struct move_page page = { .columns = (int)strlen(facts->types) };
    sqlite3_stmt *statement = NULL;
    page.values = arena_alloc_array(memory, MOVE_PAGE_ROWS * (size_t)page.columns, sizeof *page.values);
    if (!page.values)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a page of %s", facts->name);
    enum status status = prepare(db_of(base), kinds[kind].read, &statement, err);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i < facts->keys; i++)
        bind(statement, i + 1, facts->types[i], after ? &after[i] : &first);
    sqlite3_bind_int64(statement, 3, MOVE_PAGE_ROWS);
    sqlite3_bind_int(statement, 4, after == NULL);
    status = rows_read(db_of(base), statement, kind, memory, &page, err);
    sqlite3_finalize(statement);
    if (status == STATUS_OK)
        *ret_page = page;
    return status;
}

static enum status move_count(struct store *base, enum move_kind kind, int64_t *ret_count, struct error *err)
{
    return sqlite_query_int64(db_of(base), kinds[kind].count, 0, ret_count, err);
}

/* ---- writing ---- */

/* What stands beside the columns: the key of a name, or the mark of a head. */
static struct move_value extra_of(const struct sqlite_store *store, enum move_kind kind, const struct move_value *row,
                                  unsigned char mark[EVENT_HASH_BYTES])
{
    if (kind == MOVE_JOB)
        return (struct move_value){
            .number = row[MOVE_JOB_MADE].number ? 0 : (int64_t)job_key(row[MOVE_JOB_TENANT].bytes, row[MOVE_JOB_ID].bytes)
        };
    if (kind == MOVE_ARCHIVE)
        return (struct move_value){ .number = (int64_t)job_key(row[MOVE_ARCHIVE_TENANT].bytes, row[MOVE_ARCHIVE_ID].bytes) };
    if (kind != MOVE_CHAIN)
        return (struct move_value){ .null = true };
    struct trail_head head = { .number = row[1].number };
    memcpy(head.hash, row[2].bytes.data, row[2].bytes.len < sizeof head.hash ? row[2].bytes.len : sizeof head.hash);
    trail_head_mark(store->seals.key, &head, mark);
    return (struct move_value){ .bytes = { (const char *)mark, EVENT_HASH_BYTES } };
}

static enum status rows_write(const struct sqlite_store *store, const char *sql, enum move_kind kind,
                              const struct move_page *page, struct error *err)
{
    assert(!sqlite3_get_autocommit(store->db)); /* a page and its note are one transaction */
    const char *types = move_kind_facts(kind)->types;
    sqlite3_stmt *statement = NULL;
    enum status status = prepare(store->db, sql, &statement, err);
    for (size_t i = 0; i < page->count && status == STATUS_OK; i++) {
        const struct move_value *row = &page->values[i * (size_t)page->columns];
        unsigned char mark[EVENT_HASH_BYTES];
        struct move_value extra = extra_of(store, kind, row, mark);
        for (int j = 0; j < page->columns; j++)
            bind(statement, j + 1, types[j], &row[j]);
        bind(statement, KEY_PARAMETER, kind == MOVE_CHAIN ? 'x' : 'i', &extra);
        int result = sqlite3_step(statement);
        if (result != SQLITE_DONE)
            status = sqlite_failure(store->db, result, "write what is moved", err);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return status;
}

static enum status note_write(sqlite3 *db, struct slice note, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    enum status status = prepare(db, note.len > 0 ? "INSERT OR REPLACE INTO kept VALUES (?1, ?2, ?3)"
                                                  : "DELETE FROM kept WHERE space = ?1 AND name = ?2", &statement, err);
    if (status != STATUS_OK)
        return status;
    sqlite_bind_slice(statement, 1, SPACE_MOVE);
    sqlite_bind_slice(statement, 2, MOVE_NOTE);
    if (note.len > 0)
        sqlite_bind_slice(statement, 3, note);
    int result = sqlite3_step(statement);
    sqlite3_finalize(statement);
    return result == SQLITE_DONE ? STATUS_OK : sqlite_failure(db, result, "write", err);
}

static enum status move_write(struct store *base, enum move_kind kind, const struct move_page *page, struct slice note,
                              struct error *err)
{
    const struct sqlite_store *store = (const struct sqlite_store *)base;
    assert(sqlite3_get_autocommit(store->db) && note.len > 0);
    enum status status = sqlite_exec(store->db, "BEGIN IMMEDIATE", err);
    for (int i = 0; i < WRITES_MAX && kinds[kind].writes[i] && status == STATUS_OK; i++)
        status = rows_write(store, kinds[kind].writes[i], kind, page, err);
    if (status == STATUS_OK)
        status = note_write(store->db, note, err);
    if (status == STATUS_OK)
        status = sqlite_exec(store->db, "COMMIT", err);
    if (!sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    if (status == STATUS_OK) /* the log is not written back by itself */
        sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return status;
}

static enum status move_end(struct store *base, struct error *err)
{
    assert(sqlite3_get_autocommit(db_of(base)));
    return note_write(db_of(base), (struct slice){ "", 0 }, err);
}

const struct move_ops sqlite_move_ops = {
    .one_chain = true, .read = move_read, .count = move_count, .write = move_write, .end = move_end
};
