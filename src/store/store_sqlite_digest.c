/*
 * What a job was when it was written, so that one that was changed on disk is not sent.
 *
 * The digest of a job's row begins with the one that OP_INSERT compares with, which stays whatever comes. With a byte more
 * the payload is the one of then; with a second digest behind it the payload was corrected, and that is of what it became.
 * With neither it was written by a version that left no word of a correction: it is held to its digest only while nobody
 * can have corrected it, which needs an attempt.
 */
#include "store/store_sqlite_private.h"

#include <string.h>

enum { DIGEST_UNCORRECTED_BYTES = JOB_DIGEST_BYTES + 1 };

bool sqlite_digest_possible(size_t len)
{
    return len == JOB_DIGEST_BYTES || len == DIGEST_UNCORRECTED_BYTES || len == JOB_DIGESTS_BYTES_MAX;
}

void sqlite_digest_make(const struct op_insert *insert, struct sqlite_row *row)
{
    job_digest(insert, row->digest);
    row->digest[JOB_DIGEST_BYTES] = 0;
    row->digest_len = DIGEST_UNCORRECTED_BYTES;
}

bool sqlite_digest_differs(const struct sqlite_row *row)
{
    const struct job *job = &row->job;
    unsigned char digest[JOB_DIGEST_BYTES];
    if (row->digest_len == JOB_DIGEST_BYTES && (job->generation > 1 || job->last_class != OUTCOME_NONE))
        return false;
    const struct op_insert insert = { .destination = job->destination, .content_type = job->content_type,
                                      .headers = job->headers, .payload = job->payload };
    job_digest(&insert, digest);
    const unsigned char *last = row->digest + (row->digest_len == JOB_DIGESTS_BYTES_MAX ? JOB_DIGEST_BYTES : 0);
    return memcmp(digest, last, JOB_DIGEST_BYTES) != 0;
}

enum status sqlite_digest_correct(struct sqlite_batch *batch, struct sqlite_row *row, struct slice payload)
{
    sqlite3_stmt *about = batch->store->statements[STATEMENT_PAYLOAD_ABOUT];
    sqlite3_stmt *update = batch->store->statements[STATEMENT_DIGEST_UPDATE];
    bool found;
    sqlite3_bind_int64(about, 1, row->job.seq);
    enum status status = sqlite_next(batch, STATEMENT_PAYLOAD_ABOUT, &found);
    if (status != STATUS_OK)
        return status;
    if (!found)
        return error_set(batch->err, STATUS_CORRUPT, "job %lld has lost its payload", (long long)row->job.seq);
    const struct op_insert insert = { .destination = row->job.destination, .content_type = sqlite_column_slice(about, 0),
                                      .headers = sqlite_column_slice(about, 1), .payload = payload };
    job_digest(&insert, row->digest + JOB_DIGEST_BYTES);
    sqlite3_reset(about);
    row->digest_len = JOB_DIGESTS_BYTES_MAX;
    sqlite3_bind_int64(update, 1, row->job.seq);
    sqlite3_bind_blob64(update, 2, row->digest, row->digest_len, SQLITE_STATIC);
    return sqlite_run(batch, STATEMENT_DIGEST_UPDATE);
}
