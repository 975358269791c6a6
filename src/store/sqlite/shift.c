/*
 * A store that is opened earlier than the newest time in it: the system's clock went back since. Every wait, lease, deadline
 * and limit in it is a time of the old clock; they are moved by as much as the clock was, so that what was left of each is
 * still left. Orders between them stay as they were. Times in the trail, and of jobs that are done, are facts and stay.
 */
#include "store/sqlite/schema.h"

#include "store/sqlite/row.h"
#include "store/sqlite/seal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Less is not worth moving millions of rows: the process's own clock begins that much later instead. */
enum { SHIFT_LEAST_MS = MINUTE_MS };

/* Moves the times in what the engine keeps, which stand there as strings of their own: "2025-01-12T10:41:30.000Z". */
static void shift_text(sqlite3_context *context, int count, sqlite3_value **values)
{
    enum { TIME_BYTES = INSTANT_TEXT_BYTES - 1 };
    (void)count;
    size_t len = (size_t)sqlite3_value_bytes(values[0]);
    int64_t by = sqlite3_value_int64(values[1]);
    char *text = sqlite3_malloc64(len + 1);
    if (!text) {
        sqlite3_result_error_nomem(context);
        return;
    }
    memcpy(text, len ? sqlite3_value_text(values[0]) : (const unsigned char *)"", len);
    for (size_t i = 0; i + TIME_BYTES + 2 <= len; i++) {
        char moved[INSTANT_TEXT_BYTES];
        instant at;
        if (text[i] != '"' || text[i + TIME_BYTES + 1] != '"' ||
            instant_parse((struct slice){ text + i + 1, TIME_BYTES }, &at, NULL) != STATUS_OK)
            continue;
        instant_format(at - by, moved);
        memcpy(text + i + 1, moved, TIME_BYTES);
        i += TIME_BYTES + 1;
    }
    sqlite3_result_text64(context, text, len, sqlite3_free, SQLITE_UTF8);
}

/* Twice for the timers: one of a job may stand where another of it is going. */
static const char shift_sql[] =
    "UPDATE job SET expires_at = expires_at - %1$" PRId64 ", dead_at = dead_at - %1$" PRId64 ";"
    "UPDATE job SET created_at = created_at - %1$" PRId64 ", first_at = first_at - %1$" PRId64
    ", run_at = run_at - %1$" PRId64 ", deadline = deadline - %1$" PRId64
    ", updated_at = updated_at - %1$" PRId64 ", rank = rank - %1$" PRId64
    ", failed_at = failed_at - %1$" PRId64 ", look_failed_at = look_failed_at - %1$" PRId64
    " WHERE state IN (" SQL_STATE_PENDING ", " SQL_STATE_RUNNING ", " SQL_STATE_WAITING ");"
    "UPDATE lease SET until = until - %1$" PRId64 ", at = at - %1$" PRId64 ", first_at = first_at - %1$" PRId64 ";"
    "UPDATE ready SET rank = rank - %1$" PRId64 ";"
    "UPDATE timer SET at = -at; UPDATE timer SET at = -at - %1$" PRId64 ";"
    "UPDATE kept SET value = insist_shift(value, %1$" PRId64 ") WHERE space IN ('destination', 'rate', 'alert');";

enum status sqlite_shift(struct sqlite_store *store, struct error *err)
{
    assert(store->lanes.waiting >= 0);
    char sql[sizeof shift_sql + 20 * 24], note[96];
    const char *const notes[] = { note, NULL };
    instant now = store->settings.now;
    if (now <= 0 || store->newest_at == INSTANT_NONE || store->newest_at - now < SHIFT_LEAST_MS)
        return STATUS_OK;
    int64_t by = store->newest_at - now;
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    int result = sqlite3_create_function(store->db, "insist_shift", 2, flags, NULL, shift_text, NULL, NULL);
    if (result != SQLITE_OK)
        return sqlite_failure(store->db, result, "prepare", err);
    snprintf(sql, sizeof sql, shift_sql, by);
    snprintf(note, sizeof note, "{\"note\":\"clock_put_back\",\"ms\":%" PRId64 "}", by);
    /* One transaction: a second start must not move it twice. */
    enum status status = sqlite_trail_note(store, now, sql, notes, err);
    if (status == STATUS_OK)
        store->base.shifted_ms = by;
    return status;
}
