/*
 * The events' chain as the store writes it. Its head is saved in a table of its own, once a second and at the end, so that a
 * trail that was cut or emptied shows. Who opens a store whose trail does not reach its head says so in the trail itself:
 * else the next head would cover it up.
 */
#include "store/sqlite/seal.h"

#include "store/sqlite/lane.h"
#include "store/sqlite/row.h"
#include "store/sqlite/statement.h"

#include <assert.h>
#include <string.h>

struct trail_head sqlite_store_head(struct store *base)
{
    const struct sqlite_progress *progress = &((struct sqlite_store *)base)->progress;
    struct trail_head head = { .number = progress->event_last };
    memcpy(head.hash, progress->event_hash, EVENT_HASH_BYTES);
    return head;
}

static bool head_is_fresh(const struct sqlite_store *store, instant now)
{
    return store->head.at != INSTANT_NONE && now >= store->head.at && now - store->head.at < HEAD_EVERY_MS;
}

enum status sqlite_trail_keep(struct sqlite_batch *batch, bool at_once)
{
    assert(!sqlite3_get_autocommit(batch->store->db));
    struct sqlite_store *store = batch->store;
    struct trail_head head = sqlite_store_head(&store->base);
    unsigned char mark[EVENT_HASH_BYTES];
    sqlite3_stmt *statement = store->statements[STATEMENT_HEAD_WRITE];
    if (!at_once && (head.number == store->head.number || head_is_fresh(store, batch->now)))
        return STATUS_OK;
    trail_head_mark(store->seals.key, &head, mark);
    sqlite3_bind_int64(statement, 1, head.number);
    sqlite3_bind_blob(statement, 2, head.hash, EVENT_HASH_BYTES, SQLITE_TRANSIENT);
    sqlite3_bind_blob(statement, 3, mark, EVENT_HASH_BYTES, SQLITE_TRANSIENT);
    enum status status = sqlite_run(batch, STATEMENT_HEAD_WRITE);
    if (status == STATUS_OK) { /* after a rollback it is older than this says, which costs a second */
        store->head.number = head.number;
        store->head.at = batch->now;
    }
    return status;
}

/* ---- transactions of its own ---- */

static enum status note(struct sqlite_batch *batch, const char *data)
{
    assert(data[0]);
    struct event event = { .type = EVENT_TYPE_NOTE, .destination = SLICE(""), .tenant = SLICE(""), .job = SLICE(""),
                           .data = slice_from(data) };
    return sqlite_event_append(batch, &event, 0);
}

enum status sqlite_trail_note(struct sqlite_store *store, instant now, const char *sql, const char *const *notes,
                              struct error *err)
{
    assert(sqlite3_get_autocommit(store->db));
    struct sqlite_batch batch = { .store = store, .now = now, .err = err };
    struct sqlite_progress saved = store->progress;
    enum status status = sqlite_run(&batch, STATEMENT_BEGIN);
    if (status == STATUS_OK && sql)
        status = sqlite_exec(store->db, sql, err);
    for (; status == STATUS_OK && *notes; notes++)
        status = note(&batch, *notes);
    if (status == STATUS_OK)
        status = sqlite_rows_flush(&batch, ROWS_ALL);
    if (status == STATUS_OK)
        status = sqlite_trail_keep(&batch, true);
    if (status == STATUS_OK)
        status = sqlite_run(&batch, STATEMENT_COMMIT);
    if (status != STATUS_OK) {
        store->head.number = -1;
        store->progress = saved;
        sqlite_rows_clear(store);
        if (!sqlite3_get_autocommit(store->db))
            sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    arena_release(&batch.scratch);
    return status;
}

enum status sqlite_trail_settle(struct sqlite_store *store, instant now, struct error *err)
{
    assert(sqlite3_get_autocommit(store->db));
    static const char *const none[] = { NULL };
    if (store->head.number == store->progress.event_last)
        return STATUS_OK;
    enum status status = sqlite_trail_note(store, now, NULL, none, err);
    return status == STATUS_FULL || status == STATUS_BUSY ? STATUS_OK : status;
}

/* ---- trimming ---- */

/* The number and hash of the newest event to go; 0 when none is old enough. */
static enum status trim_find(struct sqlite_batch *batch, struct op_trim *trim, int64_t *ret_number,
                             unsigned char ret_hash[EVENT_HASH_BYTES])
{
    sqlite3_stmt *statement = batch->store->statements[STATEMENT_EVENT_OLDEST];
    bool more = false;
    enum status status = sqlite_rows_flush(batch, 1 << ROWS_EVENT | 1 << ROWS_ARCHIVE);
    *ret_number = 0;
    if (status != STATUS_OK)
        return status;
    sqlite3_bind_int64(statement, 1, batch->store->progress.trimmed_last);
    sqlite3_bind_int64(statement, 2, trim->max < INT64_MAX ? (int64_t)trim->max : INT64_MAX);
    status = sqlite_next(batch, STATEMENT_EVENT_OLDEST, &more);
    while (status == STATUS_OK && more && sqlite3_column_int64(statement, 1) < trim->before) {
        struct slice hash = sqlite_column_slice(statement, 2);
        if (hash.len != EVENT_HASH_BYTES) {
            status = error_set(batch->err, STATUS_CORRUPT, "an event has no hash");
            break;
        }
        memcpy(ret_hash, hash.data, EVENT_HASH_BYTES);
        *ret_number = sqlite3_column_int64(statement, 0);
        trim->ret_deleted++;
        status = sqlite_next(batch, STATEMENT_EVENT_OLDEST, &more);
    }
    sqlite3_reset(statement);
    return status;
}

/* The chain itself tells what was taken from its beginning: else anybody could take more. */
static enum status trim_tell(struct sqlite_batch *batch, int64_t number, const unsigned char hash[EVENT_HASH_BYTES])
{
    assert(number > 0);
    struct trail_head newest = { .number = number };
    char *data = arena_alloc(&batch->scratch, TRAIL_TRIMMED_BYTES);
    if (!data)
        return error_set(batch->err, STATUS_NO_MEMORY, "no memory for an event");
    memcpy(newest.hash, hash, EVENT_HASH_BYTES);
    trail_trimmed_format(&newest, data);
    return note(batch, data);
}

/* What is left still verifies: the hash of the last one that went is saved. */
enum status sqlite_trim_apply(struct sqlite_batch *batch, struct store_op *op)
{
    struct sqlite_store *store = batch->store;
    unsigned char hash[EVENT_HASH_BYTES];
    int64_t number;
    op->trim.ret_deleted = 0;
    enum status status = trim_find(batch, &op->trim, &number, hash);
    if (status != STATUS_OK)
        return status;
    if (op->trim.ret_deleted < TRIM_LEAST) {
        op->trim.ret_deleted = 0;
        return sqlite_lanes_trim(batch, op->trim.max);
    }
    sqlite3_bind_int64(store->statements[STATEMENT_EVENT_DELETE], 1, number);
    sqlite3_bind_int64(store->statements[STATEMENT_ARCHIVE_DELETE], 1, number);
    sqlite3_bind_int64(store->statements[STATEMENT_TRIMMED_INSERT], 1, number);
    sqlite3_bind_blob(store->statements[STATEMENT_TRIMMED_INSERT], 2, hash, EVENT_HASH_BYTES, SQLITE_STATIC);
    static const enum statement steps[] = { STATEMENT_EVENT_DELETE, STATEMENT_ARCHIVE_DELETE, STATEMENT_TRIMMED_DELETE,
                                            STATEMENT_TRIMMED_INSERT };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && status == STATUS_OK; i++)
        status = sqlite_run(batch, steps[i]);
    store->progress.trimmed_last = number;
    if (status == STATUS_OK)
        status = sqlite_lanes_trim(batch, op->trim.max);
    return status == STATUS_OK ? trim_tell(batch, number, hash) : status;
}

/* ---- opening ---- */

/* Number and hash by an SQL text; *ret_found: whether there is such a row, of a hash's length. */
static enum status head_query(sqlite3 *db, const char *sql, int64_t parameter, struct trail_head *ret_head, bool *ret_found,
                              struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (result == SQLITE_OK && sqlite3_bind_parameter_count(statement) > 0)
        sqlite3_bind_int64(statement, 1, parameter);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    *ret_found = result == SQLITE_ROW && sqlite3_column_bytes(statement, 1) == EVENT_HASH_BYTES;
    if (*ret_found) {
        ret_head->number = sqlite3_column_int64(statement, 0);
        memcpy(ret_head->hash, sqlite3_column_blob(statement, 1), EVENT_HASH_BYTES);
    }
    enum status status = STATUS_OK;
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        status = sqlite_failure(db, result, "read the trail", err);
    sqlite3_finalize(statement);
    return status;
}

/* Whether the event that the head names is there. What was trimmed since cannot be asked. */
static enum status head_holds(struct sqlite_store *store, const struct trail_head *head, bool *ret_holds, struct error *err)
{
    struct trail_head event;
    bool found;
    *ret_holds = true;
    if (head->number <= store->progress.trimmed_last)
        return STATUS_OK;
    enum status status =
        head_query(store->db, "SELECT number, hash FROM event WHERE number = ?1", head->number, &event, &found, err);
    *ret_holds = found && memcmp(event.hash, head->hash, EVENT_HASH_BYTES) == 0;
    return status;
}

enum status sqlite_trail_begin(struct sqlite_store *store, struct error *err)
{
    static const char newest_trimmed[] = "SELECT number, hash FROM trimmed ORDER BY number DESC LIMIT 1";
    char text[TRAIL_TRIMMED_BYTES];
    const char *notes[] = { NULL, NULL };
    struct trail_head head = { 0 }, trimmed;
    bool saved, found = false, holds = true;
    enum status status = head_query(store->db, "SELECT number, hash FROM head WHERE chain = ''", 0, &head, &saved, err);
    if (status == STATUS_OK && saved)
        status = head_holds(store, &head, &holds, err);
    if (status == STATUS_OK && !saved) /* the store was of an older version, which left no event of a trim */
        status = head_query(store->db, newest_trimmed, 0, &trimmed, &found, err);
    if (status != STATUS_OK)
        return status;
    store->head.number = head.number;
    if (found)
        trail_trimmed_format(&trimmed, text);
    else if (!holds)
        trail_broken_format(&head, text);
    notes[0] = found || !holds ? text : NULL;
    if (saved && holds && !store->seals.key)
        return STATUS_OK;
    status = sqlite_trail_note(store, store->newest_at == INSTANT_NONE ? 0 : store->newest_at, NULL, notes, err);
    store->head.at = INSTANT_NONE; /* by the clock of who works with it now, nothing was written yet */
    return status == STATUS_FULL && saved ? STATUS_OK : status;
}
