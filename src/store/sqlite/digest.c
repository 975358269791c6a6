/*
 * What a job was when it was written, so that one that was changed on disk is not sent.
 *
 * Rows of older versions have no hash of what is to be sent, and no word of a correction: they are held to their digest only
 * while nobody can have corrected them, which needs an attempt.
 */
#include "store/sqlite/digest.h"

#include "store/sqlite/statement.h"

#include <assert.h>
#include <string.h>

bool sqlite_digest_possible(size_t len)
{
    return len == JOB_DIGEST_BYTES || len == JOB_DIGEST_BYTES_MAX;
}

void sqlite_digest_make(const struct op_insert *insert, struct sqlite_row *row)
{
    assert(row->digest_len == 0);
    job_digest_make(insert, row->digest);
    row->digest_len = JOB_DIGEST_BYTES_MAX;
}

bool sqlite_digest_differs(const struct sqlite_row *row)
{
    assert(sqlite_digest_possible(row->digest_len));
    const struct job *job = &row->job;
    unsigned char digest[JOB_DIGEST_BYTES];
    if (row->digest_len == JOB_DIGEST_BYTES_MAX)
        return job_check_differs(job, row->digest);
    if (job->generation > 1 || job->last_class != OUTCOME_NONE)
        return false;
    const struct op_insert insert = { .destination = job->destination, .content_type = job->content_type,
                                      .headers = job->headers, .payload = job->payload };
    job_digest(&insert, digest);
    return memcmp(digest, row->digest, JOB_DIGEST_BYTES) != 0;
}

enum status sqlite_digest_correct(struct sqlite_batch *batch, struct sqlite_row *row, struct slice payload)
{
    assert(sqlite_digest_possible(row->digest_len));
    sqlite3_stmt *about = batch->store->statements[STATEMENT_PAYLOAD_ABOUT];
    sqlite3_stmt *update = batch->store->statements[STATEMENT_DIGEST_UPDATE];
    bool found;
    sqlite3_bind_int64(about, 1, row->job.seq);
    enum status status = sqlite_next(batch, STATEMENT_PAYLOAD_ABOUT, &found);
    if (status != STATUS_OK)
        return status;
    if (!found)
        return error_set(batch->err, STATUS_CORRUPT, "job %lld has lost its payload", (long long)row->job.seq);
    const struct job corrected = { .destination = row->job.destination, .content_type = sqlite_column_slice(about, 0),
                                   .headers = sqlite_column_slice(about, 1), .payload = payload };
    job_check_make(&corrected, row->digest + JOB_DIGEST_BYTES);
    sqlite3_reset(about);
    row->digest_len = JOB_DIGEST_BYTES_MAX;
    sqlite3_bind_int64(update, 1, row->job.seq);
    sqlite3_bind_blob64(update, 2, row->digest, row->digest_len, SQLITE_STATIC);
    return sqlite_run(batch, STATEMENT_DIGEST_UPDATE);
}
