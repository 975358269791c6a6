#include "store/sqlite/rows.h"

#include "store/sqlite/statement.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_FIRST = 64, COLUMNS_MAX = 16 };

/* One statement a table; `columns` is how many values a row brings. */
static const struct {
    const char *module;
    int columns;
    enum statement write;
} tables[ROWS_COUNT] = {
    [ROWS_JOB] = { "rows_job", 13, STATEMENT_JOB_INSERT },
    [ROWS_PAYLOAD] = { "rows_payload", 8, STATEMENT_PAYLOAD_INSERT },
    [ROWS_READY] = { "rows_ready", 3, STATEMENT_READY_INSERT },
    [ROWS_TIMER] = { "rows_timer", 2, STATEMENT_TIMER_INSERT },
    [ROWS_LEASE] = { "rows_lease", 9, STATEMENT_LEASE_WRITE },
    [ROWS_EVENT] = { "rows_event", 13, STATEMENT_EVENT_INSERT },
    [ROWS_ARCHIVE] = { "rows_archive", 2, STATEMENT_ARCHIVE_INSERT },
};

/* ---- The virtual table ---- */

struct rows_table {
    sqlite3_vtab base;
    const struct sqlite_rows *rows;
};

struct rows_cursor {
    sqlite3_vtab_cursor base;
    const struct sqlite_rows *rows;
    size_t row;
};

static int table_connect(sqlite3 *db, void *context, int argc, const char *const *argv, sqlite3_vtab **ret_table, char **err)
{
    const struct sqlite_rows *rows = context;
    assert(rows->columns > 0 && rows->columns <= COLUMNS_MAX);
    char sql[16 + COLUMNS_MAX * 5] = "CREATE TABLE x(c0";
    (void)argc;
    (void)argv;
    (void)err;
    for (int i = 1; i < rows->columns; i++)
        snprintf(sql + strlen(sql), sizeof sql - strlen(sql), ",c%d", i);
    strcat(sql, ")");
    int result = sqlite3_declare_vtab(db, sql);
    struct rows_table *table = result == SQLITE_OK ? sqlite3_malloc(sizeof *table) : NULL;
    if (!table)
        return result == SQLITE_OK ? SQLITE_NOMEM : result;
    *table = (struct rows_table){ .rows = rows };
    *ret_table = &table->base;
    return SQLITE_OK;
}

static int table_disconnect(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

/* There is one way to read it: from the first row to the last. */
static int table_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    info->estimatedCost = 1000;
    return SQLITE_OK;
}

static int cursor_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    struct rows_cursor *cursor = sqlite3_malloc(sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    *cursor = (struct rows_cursor){ .rows = ((struct rows_table *)table)->rows };
    *ret_cursor = &cursor->base;
    return SQLITE_OK;
}

static int cursor_close(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int cursor_begin(sqlite3_vtab_cursor *cursor, int plan, const char *plan_text, int argc, sqlite3_value **argv)
{
    (void)plan;
    (void)plan_text;
    (void)argc;
    (void)argv;
    ((struct rows_cursor *)cursor)->row = 0;
    return SQLITE_OK;
}

static int cursor_next(sqlite3_vtab_cursor *cursor)
{
    ((struct rows_cursor *)cursor)->row++;
    return SQLITE_OK;
}

static int cursor_is_at_end(sqlite3_vtab_cursor *base)
{
    const struct rows_cursor *cursor = (struct rows_cursor *)base;
    return cursor->row >= cursor->rows->count;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct rows_cursor *cursor = (struct rows_cursor *)base;
    const struct sqlite_value *value = &cursor->rows->values[cursor->row * (size_t)cursor->rows->columns + (size_t)column];
    switch (value->type) {
    case SQLITE_INTEGER:
        sqlite3_result_int64(context, value->number);
        break;
    case SQLITE_TEXT:
        sqlite3_result_text64(context, value->text.data, value->text.len, SQLITE_STATIC, SQLITE_UTF8);
        break;
    case SQLITE_BLOB:
        sqlite3_result_blob64(context, value->text.data, value->text.len, SQLITE_STATIC);
        break;
    default:
        sqlite3_result_null(context);
    }
    return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret_rowid)
{
    assert(((struct rows_cursor *)cursor)->row < ((struct rows_cursor *)cursor)->rows->count);
    *ret_rowid = (sqlite3_int64)((struct rows_cursor *)cursor)->row;
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .xConnect = table_connect,
    .xBestIndex = table_plan,
    .xDisconnect = table_disconnect,
    .xOpen = cursor_open,
    .xClose = cursor_close,
    .xFilter = cursor_begin,
    .xNext = cursor_next,
    .xEof = cursor_is_at_end,
    .xColumn = cursor_column,
    .xRowid = cursor_rowid,
};

/* ---- Rows ---- */

enum status sqlite_rows_init(struct sqlite_store *store, struct error *err)
{
    for (int i = 0; i < ROWS_COUNT; i++) {
        assert(tables[i].columns <= COLUMNS_MAX);
        store->rows[i].columns = tables[i].columns;
        int result = sqlite3_create_module(store->db, tables[i].module, &module, &store->rows[i]);
        if (result != SQLITE_OK)
            return sqlite_failure(store->db, result, "prepare", err);
    }
    return STATUS_OK;
}

void sqlite_rows_release(struct sqlite_store *store)
{
    for (int i = 0; i < ROWS_COUNT; i++)
        free(store->rows[i].values);
}

void sqlite_rows_clear(struct sqlite_store *store)
{
    for (int i = 0; i < ROWS_COUNT; i++)
        store->rows[i].count = 0;
    memset(store->gone, 0, sizeof store->gone);
    memset(store->keys_new, 0, sizeof store->keys_new);
    memset(store->seqs_new, 0, sizeof store->seqs_new);
}

struct sqlite_value *sqlite_rows_add(struct sqlite_batch *batch, enum rows_table_name which)
{
    assert(which < ROWS_COUNT);
    struct sqlite_rows *rows = &batch->store->rows[which];
    size_t columns = (size_t)rows->columns;
    if (rows->count == rows->capacity) {
        size_t capacity = rows->capacity ? rows->capacity * 2 : ROWS_FIRST;
        struct sqlite_value *grown = realloc(rows->values, capacity * columns * sizeof *grown);
        if (!grown) {
            error_set(batch->err, STATUS_NO_MEMORY, "no memory for the rows of a batch");
            return NULL;
        }
        rows->values = grown;
        rows->capacity = capacity;
    }
    return &rows->values[rows->count++ * columns];
}

/* ---- Rows that go ---- */

static enum status range_delete(struct sqlite_batch *batch, enum statement which, struct sqlite_gone range)
{
    assert(range.first > 0 && range.first <= range.last);
    sqlite3_bind_int64(batch->store->statements[which], 1, range.first);
    sqlite3_bind_int64(batch->store->statements[which], 2, range.last);
    return sqlite_run(batch, which);
}

static enum status gone_write(struct sqlite_batch *batch, enum gone_name which)
{
    struct sqlite_gone gone = batch->store->gone[which];
    batch->store->gone[which] = (struct sqlite_gone){ 0 };
    if (gone.last == 0)
        return STATUS_OK;
    if (which == GONE_LEASE)
        return range_delete(batch, STATEMENT_LEASE_DELETE, gone);
    enum status status = range_delete(batch, STATEMENT_JOB_DELETE, gone);
    return status == STATUS_OK ? range_delete(batch, STATEMENT_PAYLOAD_DELETE, gone) : status;
}

enum status sqlite_gone_add(struct sqlite_batch *batch, enum gone_name which, int64_t seq)
{
    assert(seq > 0 && !sqlite_gone_has(batch->store, which, seq));
    struct sqlite_gone *gone = &batch->store->gone[which];
    enum status status = gone->last + 1 == seq ? STATUS_OK : gone_write(batch, which);
    if (status == STATUS_OK)
        *gone = (struct sqlite_gone){ gone->last > 0 ? gone->first : seq, seq };
    return status;
}

bool sqlite_gone_has(const struct sqlite_store *store, enum gone_name which, int64_t seq)
{
    return seq >= store->gone[which].first && seq <= store->gone[which].last;
}

enum status sqlite_rows_flush(struct sqlite_batch *batch, unsigned which)
{
    assert((which & ~(unsigned)ROWS_ALL) == 0);
    struct sqlite_store *store = batch->store;
    enum status status = which & ROWS_GONE ? gone_write(batch, GONE_JOB) : STATUS_OK;
    if (status == STATUS_OK && which & 1 << ROWS_LEASE) /* they ended before the new ones began */
        status = gone_write(batch, GONE_LEASE);
    for (int i = 0; i < ROWS_COUNT && status == STATUS_OK; i++) {
        if (!(which & 1u << i) || store->rows[i].count == 0)
            continue;
        status = sqlite_run(batch, tables[i].write);
        store->rows[i].count = 0;
        if (i == ROWS_JOB)
            memset(store->keys_new, 0, sizeof store->keys_new);
    }
    if ((which & ROWS_OF_JOB) == ROWS_OF_JOB)
        memset(store->seqs_new, 0, sizeof store->seqs_new);
    return status;
}

/* ---- Keys of new jobs ---- */

static unsigned char *key_byte(struct sqlite_store *store, int64_t key)
{
    return &store->keys_new[((uint64_t)key >> 3) % sizeof store->keys_new];
}

void sqlite_keys_note(struct sqlite_store *store, int64_t key)
{
    assert(key != 0);
    *key_byte(store, key) |= (unsigned char)(1u << (key & 7));
}

bool sqlite_keys_may_have(struct sqlite_store *store, int64_t key)
{
    return *key_byte(store, key) & 1u << (key & 7);
}

/* ---- Numbers of jobs ---- */

static unsigned char *seq_byte(struct sqlite_store *store, int64_t seq)
{
    return &store->seqs_new[((uint64_t)seq >> 3) % sizeof store->seqs_new];
}

void sqlite_seqs_note(struct sqlite_store *store, int64_t seq)
{
    assert(seq > 0);
    *seq_byte(store, seq) |= (unsigned char)(1u << (seq & 7));
}

bool sqlite_seqs_may_have(struct sqlite_store *store, int64_t seq)
{
    return *seq_byte(store, seq) & 1u << (seq & 7);
}
