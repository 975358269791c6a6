/*
 * row.h - one job's rows: read, put in their places, written; events.
 */
#ifndef STORE_SQLITE_ROW_H
#define STORE_SQLITE_ROW_H

#include "store/digest.h"
#include "store/sqlite/handle.h"

/* A job and what the store alone knows of it. */
struct sqlite_row {
    struct job job;
    int64_t key; /* job_key of its name; 0: the id holds its number */
    unsigned char digest[JOB_DIGEST_BYTES_MAX]; /* see digest.c */
    size_t digest_len;
};

/*
 * Every SELECT that sqlite_row_read takes gives these columns in this order. The first 34 are the job
 * table's own; JOB_UPDATE binds them as parameters 1 to 34.
 */
enum row_column {
    COLUMN_SEQ,
    COLUMN_KEY,
    COLUMN_LANE,
    COLUMN_ID,
    COLUMN_DIGEST,
    COLUMN_STATE,
    COLUMN_PRIORITY,
    COLUMN_STEP,
    COLUMN_RANK,
    COLUMN_GENERATION,
    COLUMN_ATTEMPTS,
    COLUMN_ATTEMPTS_TOTAL,
    COLUMN_RETRY_COUNT,
    COLUMN_STEP_COUNT,
    COLUMN_REDRIVES_AUTO,
    COLUMN_DOUBTED,
    COLUMN_CREATED_AT,
    COLUMN_FIRST_AT,
    COLUMN_RUN_AT,
    COLUMN_DEADLINE,
    COLUMN_UPDATED_AT,
    COLUMN_DEAD_AT,
    COLUMN_EXPIRES_AT,
    COLUMN_LAST_CLASS,
    COLUMN_LAST_CODE,
    COLUMN_LAST_ERROR,
    COLUMN_DEAD_CODE,
    COLUMN_REFERENCE,
    COLUMN_LAST_EVENT,
    COLUMN_FAILED_AT,
    COLUMN_LOOK_FAILED_AT,
    COLUMN_REDRIVE,
    COLUMN_CHAIN,
    COLUMN_LINK,
    COLUMN_READY,
    COLUMN_LEASE_TOKEN,
    COLUMN_LEASE_UNTIL,
    COLUMN_LEASE_OWNER,
    COLUMN_LEASE_AT,
    COLUMN_LEASE_FIRST_AT,
    COLUMN_LEASE_ATTEMPTS,
    COLUMN_LEASE_ATTEMPTS_TOTAL,
    COLUMN_LEASE_EVENT,
    COLUMN_CONTENT_TYPE,
    COLUMN_HEADERS,
    COLUMN_CORRELATION_ID,
    COLUMN_METADATA,
    COLUMN_ORDER_KEY,
    COLUMN_CALLBACK,
    COLUMN_PAYLOAD,
    COLUMN_DESTINATION,
    COLUMN_TENANT,
};

#define SQL_JOB_COLUMNS                                                                                                     \
    "j.seq, j.key, j.lane, j.id, j.digest, j.state, j.priority, j.step, j.rank, j.generation, j.attempts, "                 \
    "j.attempts_total, j.retry_count, j.step_count, j.redrives_auto, j.doubted, j.created_at, j.first_at, j.run_at, "       \
    "j.deadline, j.updated_at, j.dead_at, j.expires_at, j.last_class, j.last_code, j.last_error, j.dead_code, "             \
    "j.reference, j.last_event, j.failed_at, j.look_failed_at, j.redrive, j.chain, j.link"

#define SQL_LEASE_COLUMNS "e.token, e.until, e.owner, e.at, e.first_at, e.attempts, e.attempts_total, e.event"

/* The numbers of enum job_state as they stand in the schema and in SQL texts; row.c holds them to job.h. */
#define SQL_STATE_PENDING "1"
#define SQL_STATE_RUNNING "2"
#define SQL_STATE_WAITING "3"
#define SQL_STATE_DEAD "5"

/* Reads the row a statement stands on; texts are copied into `memory`. */
enum status sqlite_row_read(sqlite3_stmt *statement, struct arena *memory, struct sqlite_row *ret_row,
                            struct error *err) MUST_CHECK;
/* Texts live in the batch's scratch. *ret_found tells whether it is there. */
enum status sqlite_row_by_seq(struct sqlite_batch *batch, int64_t seq, struct sqlite_row *ret_row,
                              bool *ret_found) MUST_CHECK;
enum status sqlite_row_by_name(struct sqlite_batch *batch, struct slice tenant, struct slice id, struct sqlite_row *ret_row,
                               bool *ret_found) MUST_CHECK;

/* The first of a chain behind `seq`; 0: there is none. */
enum status sqlite_chain_after(struct sqlite_batch *batch, const struct job *job, int64_t seq, int64_t *ret_seq) MUST_CHECK;
/* What became of a job was written: what that means for the next of its key. */
enum status sqlite_chain_follow(struct sqlite_batch *batch, const struct job *before, const struct job *after,
                                struct released *ret_released) MUST_CHECK;

/*
 * Invariant 2. The one way a job changes: `before` NULL is a new job, `after` NULL a deleted one. Moves it between
 * the ready, timer and lease tables, counts, and appends the event (EVENT_TYPE_NONE: there is none) in
 * after->job.last_event.
 */
enum status sqlite_row_change(struct sqlite_batch *batch, const struct sqlite_row *before, struct sqlite_row *after,
                              enum event_type type, struct slice data) MUST_CHECK;
/* Writes what the batch has counted for redrives. */
enum status sqlite_tally_write(struct sqlite_batch *batch) MUST_CHECK;
/* Likewise for a job that only became ready: its own row stays as it is. */
enum status sqlite_row_make_ready(struct sqlite_batch *batch, const struct sqlite_row *before) MUST_CHECK;
/* Takes the jobs of a lane up to that one out of `ready`. */
enum status sqlite_ready_take(struct sqlite_batch *batch, const struct job *last) MUST_CHECK;
/* Appends to the chain; number, time and hash are filled in. */
enum status sqlite_event_append(struct sqlite_batch *batch, struct event *event, int64_t lane) MUST_CHECK;

#endif
