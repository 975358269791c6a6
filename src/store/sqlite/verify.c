#include "store/sqlite/outside.h"

#include "store/sqlite/reader.h"
#include "store/sqlite/schema.h"

#include <assert.h>
#include <string.h>

enum { VERIFY_TRIES_MAX = 3 };

/* What a store says of its trail apart from the events. */
struct frame {
    struct trail_head anchor; /* the newest that was trimmed; number 0: none */
    struct trail_head head;   /* as it is saved; number 0: none */
    unsigned char mark[EVENT_HASH_BYTES];
    bool saved;
};

/* Fills the head from a row of number and hash, and the mark where there is one. STATUS_NOT_FOUND: no row. */
static enum status row_read(sqlite3 *db, const char *sql, const char *what, struct trail_head *ret_head,
                            unsigned char *ret_mark, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    enum status status = STATUS_OK;
    int result = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    if (result == SQLITE_DONE) {
        status = STATUS_NOT_FOUND;
    } else if (result != SQLITE_ROW) {
        status = sqlite_failure(db, result, "read the events", err);
    } else if (sqlite3_column_bytes(statement, 1) != EVENT_HASH_BYTES ||
               (ret_mark && sqlite3_column_bytes(statement, 2) != EVENT_HASH_BYTES)) {
        status = error_set(err, STATUS_CORRUPT, "%s has no hash", what);
    } else {
        ret_head->number = sqlite3_column_int64(statement, 0);
        memcpy(ret_head->hash, sqlite3_column_blob(statement, 1), EVENT_HASH_BYTES);
        if (ret_mark)
            memcpy(ret_mark, sqlite3_column_blob(statement, 2), EVENT_HASH_BYTES);
    }
    sqlite3_finalize(statement);
    return status;
}

static enum status frame_read(const struct sqlite_store *store, bool with_head, struct frame *ret_frame, struct error *err)
{
    assert(store->path[0]);
    struct frame frame = { 0 };
    sqlite3 *db = NULL;
    enum status status = sqlite_connect_reader(store, &db, err);
    if (status == STATUS_OK)
        status = row_read(db, "SELECT number, hash FROM trimmed ORDER BY number DESC LIMIT 1", "the newest trimmed event",
                          &frame.anchor, NULL, err);
    if (with_head && (status == STATUS_OK || status == STATUS_NOT_FOUND)) {
        status = row_read(db, "SELECT number, hash, mark FROM head WHERE chain = ''", "the kept head", &frame.head,
                          frame.mark, err);
        frame.saved = status == STATUS_OK;
        if (status == STATUS_NOT_FOUND)
            status = error_set(err, STATUS_CORRUPT, "the kept head is gone: nothing tells where the trail ends");
    }
    sqlite3_close(db);
    if (status == STATUS_NOT_FOUND)
        status = STATUS_OK;
    if (status == STATUS_OK)
        *ret_frame = frame;
    return status;
}

/* The whole chain once, as of what `frame` says. */
static enum status follow(struct sqlite_store *store, bool old, const struct frame *frame,
                          const struct trail_reading *reading, struct trail_check *ret_check, struct error *err)
{
    assert(frame && reading);
    struct store_reader *reader = NULL;
    enum status status = sqlite_reader_open_events(&store->base, old, &reader, err);
    if (status != STATUS_OK)
        return status;
    status = trail_follow(reader, reading, &frame->anchor, &frame->head, ret_check, err);
    sqlite_reader_close(reader);
    bool marked = frame->saved && frame->head.number > 0;
    return status == STATUS_OK && marked ? trail_mark_check(reading->key, &frame->head, frame->mark, err) : status;
}

enum status sqlite_store_verify(struct store *base, const struct trail_reading *reading, struct trail_check *ret_check,
                                struct error *err)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    struct frame frame, now;
    int64_t version = 0;
    enum status status = sqlite_version_check(store, true, &version, err);
    if (status == STATUS_CORRUPT)
        return STATUS_INVALID; /* it is not the events that were looked at */
    bool old = version < SCHEMA_WITH_HEADS;
    if (status == STATUS_OK)
        status = frame_read(store, !old, &frame, err);
    if (status != STATUS_OK)
        return status;
    status = follow(store, old, &frame, reading, ret_check, err);
    for (int tries = 1; status == STATUS_CORRUPT && !reading->visit && tries < VERIFY_TRIES_MAX; tries++, frame = now) {
        /* A daemon that trims old events meanwhile takes the chain's beginning away: that is no fault. */
        struct error again;
        if (frame_read(store, !old, &now, &again) != STATUS_OK || now.anchor.number == frame.anchor.number)
            break;
        status = follow(store, old, &now, reading, ret_check, err);
    }
    return status;
}
