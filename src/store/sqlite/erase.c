#include "store/sqlite/erase.h"

#include "store/sqlite/disk.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/statement.h"

#include <assert.h>
#include <string.h>

enum status sqlite_erase_begin(struct sqlite_batch *batch)
{
    assert(!sqlite3_get_autocommit(batch->store->db));
    if (batch->erases)
        return STATUS_OK;
    batch->erases = true;
    batch->store->vacuum.scrub = true; /* a rollback leaves a scrub that finds little */
    enum status status = sqlite_exec(batch->store->db, "PRAGMA secure_delete = ON", batch->err);
    return status == STATUS_OK ? sqlite_meta_set(batch, "scrub", 1) : status;
}

void sqlite_erase_end(const struct sqlite_batch *batch)
{
    assert(sqlite3_get_autocommit(batch->store->db) || batch->store->failure.status != STATUS_OK);
    if (batch->erases) /* where that fails, more is overwritten than need be */
        sqlite3_exec(batch->store->db, "PRAGMA secure_delete = FAST", NULL, NULL, NULL);
}

/* What is to stay of an event's data; *ret_found: there is something to erase, in a form that allows it. */
static enum status digest_read(struct sqlite_batch *batch, int64_t number, struct op_erase *erase,
                               unsigned char ret_digest[EVENT_HASH_BYTES], bool *ret_found)
{
    assert(number > 0);
    sqlite3_stmt *statement = batch->store->statements[STATEMENT_EVENT_DATA];
    struct event event = { .number = number };
    bool there;
    *ret_found = false;
    sqlite3_bind_int64(statement, 1, number);
    enum status status = sqlite_next(batch, STATEMENT_EVENT_DATA, &there);
    if (status != STATUS_OK || !there)
        return status;
    struct slice salt = sqlite_column_slice(statement, 1);
    event.data = sqlite_column_slice(statement, 0);
    event.form = (enum event_form)sqlite3_column_int(statement, 2);
    if (event.form == EVENT_FORM_PLAIN) {
        erase->ret_left++;
    } else if (salt.len == EVENT_SALT_BYTES) {
        memcpy(event.salt, salt.data, EVENT_SALT_BYTES);
        trail_data_digest(&event, ret_digest);
        *ret_found = true;
    } else {
        status = error_set(batch->err, STATUS_CORRUPT, "event %lld has data without a salt", (long long)number);
    }
    sqlite3_reset(statement);
    return status;
}

enum status sqlite_erase_apply(struct sqlite_batch *batch, struct store_op *op)
{
    struct op_erase *erase = &op->erase;
    sqlite3_stmt *statement = batch->store->statements[STATEMENT_EVENT_ERASE];
    unsigned char digest[EVENT_HASH_BYTES];
    erase->ret_erased = erase->ret_left = 0;
    if (erase->count > ERASE_EVENTS_MAX) {
        op->status = STATUS_LIMIT;
        return STATUS_OK;
    }
    enum status status = sqlite_erase_begin(batch);
    for (size_t i = 0; i < erase->count && status == STATUS_OK; i++) {
        bool found;
        status = digest_read(batch, erase->numbers[i], erase, digest, &found);
        if (status != STATUS_OK || !found)
            continue;
        sqlite3_bind_int64(statement, 1, erase->numbers[i]);
        sqlite3_bind_blob(statement, 2, digest, EVENT_HASH_BYTES, SQLITE_STATIC);
        status = sqlite_run(batch, STATEMENT_EVENT_ERASE);
        erase->ret_erased++;
    }
    return status;
}

/* ---- the file ---- */

enum status sqlite_scrub_load(struct sqlite_store *store, struct error *err)
{
    int64_t scrub = 0;
    enum status status = sqlite_query_int64(store->db, "SELECT value FROM meta WHERE name = 'scrub'", 0, &scrub, err);
    store->vacuum.scrub = scrub != 0;
    return status;
}

/* What the log holds goes to the file, and the log is cut, unless somebody reads what was before: then it is tried again. */
static enum status log_cut(struct sqlite_store *store, bool *ret_cut, struct error *err)
{
    int result = sqlite_log_cut(store->db);
    *ret_cut = result == SQLITE_OK;
    if (*ret_cut)
        store->log.pages = 0, store->log.bytes = 0;
    if (result == SQLITE_OK || (result & 0xff) == SQLITE_FULL || (result & 0xff) == SQLITE_BUSY)
        return STATUS_OK;
    return sqlite_failure(store->db, result, "write back the log", err);
}

enum status sqlite_scrub(struct sqlite_store *store, struct error *err)
{
    int64_t pages = 0;
    bool cut = false;
    store->base.tend_soon = false;
    if (!store->vacuum.scrub)
        return STATUS_OK;
    enum status status = sqlite_query_int64(store->db, "PRAGMA freelist_count", 0, &pages, err);
    if (status == STATUS_OK && pages > 0 && store->vacuum.can_shrink) {
        status = sqlite_vacuum_slices(store, pages, 0, err);
        if (status == STATUS_OK)
            status = sqlite_query_int64(store->db, "PRAGMA freelist_count", 0, &pages, err);
    }
    if (status == STATUS_OK && (pages == 0 || !store->vacuum.can_shrink))
        status = log_cut(store, &cut, err);
    if (status != STATUS_OK || !cut)
        return status;
    store->vacuum.scrub = false;
    status = sqlite_exec(store->db, "DELETE FROM meta WHERE name = 'scrub'", err);
    return status == STATUS_FULL || status == STATUS_BUSY ? STATUS_OK : status; /* then it is done once more */
}
