/*
 * What a job was when it was written, so that one that was changed on disk is not sent. Its length tells what it has:
 *
 * - JOB_CHECK_BYTES: only the hash of what is to be sent. Nobody knows an id that the store makes before the job is there,
 *   so hardly anybody inserts it again; who does is held to what the store has of it.
 * - JOB_DIGEST_BYTES_MAX: the digest that OP_INSERT compares with, and that hash.
 * - JOB_DIGEST_BYTES: of older versions, without that hash, and without a word of a correction: they are held to their
 *   digest only while nobody can have corrected them, which needs an attempt.
 */
#include "store/sqlite/digest.h"

#include "store/sqlite/statement.h"

#include <assert.h>
#include <string.h>

bool sqlite_digest_possible(size_t len)
{
    return len == JOB_CHECK_BYTES || len == JOB_DIGEST_BYTES || len == JOB_DIGEST_BYTES_MAX;
}

void sqlite_digest_make(const struct op_insert *insert, struct sqlite_row *row)
{
    assert(row->digest_len == 0);
    const struct job job = job_of_insert(insert);
    if (insert->id.len > 0)
        job_digest_make(insert, row->digest);
    else
        job_check_alone(&job, row->digest);
    row->digest_len = insert->id.len > 0 ? JOB_DIGEST_BYTES_MAX : JOB_CHECK_BYTES;
}

bool sqlite_digest_differs(const struct sqlite_row *row)
{
    assert(sqlite_digest_possible(row->digest_len));
    const struct job *job = &row->job;
    unsigned char digest[JOB_DIGEST_BYTES];
    if (row->digest_len == JOB_CHECK_BYTES) {
        job_check_alone(job, digest);
        return memcmp(digest, row->digest, JOB_CHECK_BYTES) != 0;
    }
    if (row->digest_len == JOB_DIGEST_BYTES_MAX)
        return job_check_differs(job, row->digest + JOB_DIGEST_BYTES);
    if (job->generation > 1 || job->last_class != OUTCOME_NONE)
        return false;
    const struct op_insert insert = { .destination = job->destination, .content_type = job->content_type,
                                      .headers = job->headers, .payload = job->payload };
    job_digest(&insert, digest);
    return memcmp(digest, row->digest, JOB_DIGEST_BYTES) != 0;
}

/* What would make that job anew. Its texts live until the statement is reset. */
static enum status stored_read(struct sqlite_batch *batch, const struct sqlite_row *row, struct op_insert *ret_insert)
{
    sqlite3_stmt *about = batch->store->statements[STATEMENT_PAYLOAD_ABOUT];
    bool found = false;
    enum status status = sqlite_rows_flush(batch, 1 << ROWS_PAYLOAD);
    sqlite3_bind_int64(about, 1, row->job.seq);
    if (status == STATUS_OK)
        status = sqlite_next(batch, STATEMENT_PAYLOAD_ABOUT, &found);
    if (status == STATUS_OK && !found)
        return error_set(batch->err, STATUS_CORRUPT, "job %lld has lost its payload", (long long)row->job.seq);
    if (status == STATUS_OK)
        *ret_insert = (struct op_insert){ .destination = row->job.destination,
                                          .content_type = sqlite_column_slice(about, 0),
                                          .headers = sqlite_column_slice(about, 1),
                                          .payload = sqlite_column_slice(about, 2),
                                          .key = sqlite_column_slice(about, 3) };
    return status;
}

enum status sqlite_digest_complete(struct sqlite_batch *batch, struct sqlite_row *row)
{
    struct op_insert stored;
    assert(sqlite_digest_possible(row->digest_len));
    if (row->digest_len != JOB_CHECK_BYTES)
        return STATUS_OK;
    enum status status = stored_read(batch, row, &stored);
    if (status != STATUS_OK)
        return status;
    unsigned char whole[JOB_DIGEST_BYTES_MAX];
    job_digest_complete(&stored, row->digest, whole);
    memcpy(row->digest, whole, sizeof whole);
    row->digest_len = JOB_DIGEST_BYTES_MAX;
    sqlite3_reset(batch->store->statements[STATEMENT_PAYLOAD_ABOUT]);
    return STATUS_OK;
}

enum status sqlite_digest_correct(struct sqlite_batch *batch, struct sqlite_row *row)
{
    sqlite3_stmt *update = batch->store->statements[STATEMENT_DIGEST_UPDATE];
    struct op_insert corrected;
    assert(row->digest_len >= JOB_DIGEST_BYTES);
    enum status status = stored_read(batch, row, &corrected);
    if (status != STATUS_OK)
        return status;
    const struct job job = job_of_insert(&corrected);
    job_check_make(&job, row->digest + JOB_DIGEST_BYTES);
    sqlite3_reset(batch->store->statements[STATEMENT_PAYLOAD_ABOUT]);
    row->digest_len = JOB_DIGEST_BYTES_MAX;
    sqlite3_bind_int64(update, 1, row->job.seq);
    sqlite3_bind_blob64(update, 2, row->digest, row->digest_len, SQLITE_STATIC);
    return sqlite_run(batch, STATEMENT_DIGEST_UPDATE);
}
