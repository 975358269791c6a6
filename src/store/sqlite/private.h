/*
 * private.h - what the files of the SQLite store share, and nobody else includes.
 *
 *   store_sqlite.c          open, close, lock, checkpoints, sync, failures
 *   store_sqlite_schema.c   pragmas, migrations, the meta table
 *   store_sqlite_make.c     where a new store may be made, and its files
 *   store_sqlite_watch.c    whether its files stay in their places
 *   store_sqlite_trail.c    the events' chain: sealed, its head kept
 *   store_sqlite_verify.c   and followed from outside
 *   store_sqlite_shift.c    times in it, after the clock went back
 *   store_sqlite_room.c     what it needs of a full disk
 *   store_sqlite_backup.c   a copy of the whole
 *   store_sqlite_file.c     looking at a store from outside
 *   store_sqlite_lane.c     lanes and their counters, in memory and back
 *   store_sqlite_row.c      one job's rows: read, put in their places, written; events
 *   store_sqlite_held.c     the rows of running jobs, in memory
 *   store_sqlite_rows.c     new rows on their way into a table, written together
 *   store_sqlite_apply.c    a batch as one transaction
 *   store_sqlite_log.c      the write-ahead log: made longer ahead of use, written in long pieces
 *   store_sqlite_ops.c      what each operation does to a job
 *   store_sqlite_reader.c   read-only connections
 */
#ifndef STORE_SQLITE_PRIVATE_H
#define STORE_SQLITE_PRIVATE_H

#include "base/buffer.h"
#include "base/map.h"
#include "store/change.h"
#include "store/sqlite/sqlite.h"
#include "store/totals.h"
#include "store/trail.h"

#include <limits.h>
#include <sqlite3.h>
#include <sys/types.h>

enum {
    JOB_DIGEST_BYTES = 16,
    JOB_DIGEST_BYTES_MAX = JOB_DIGEST_BYTES + 8,
    PAGE_BYTES = 4096,
    LOG_FRAME_BYTES = PAGE_BYTES + 24, /* a page in the log */
    LOG_RESERVE_PAGES = 512, /* 2 MB: one sync for so many pages to come */
    KEYS_NEW_BYTES = 4096, /* one bit for each of 32,768 kinds of key */
    SALTS_AT_ONCE = 64, /* drawn by one system call */
    HEAD_EVERY_MS = 1000,
    CHECKPOINT_PAGES = 8192, /* 32 MB: long enough that a page written often is written back once */
};

/* Prepared once by the writer; the SQL stands in store_sqlite_row.c. */
enum statement {
    STATEMENT_BEGIN,
    STATEMENT_COMMIT,
    STATEMENT_ROLLBACK,
    STATEMENT_META_SET,
    STATEMENT_LANE_INSERT,
    STATEMENT_LANE_UPDATE,
    STATEMENT_JOB_BY_KEY,
    STATEMENT_JOB_BY_MADE_ID,
    STATEMENT_JOB_BY_SEQ,
    STATEMENT_CORRELATION,
    STATEMENT_JOB_CLAIM,
    STATEMENT_JOB_CLAIM_FAILED_LAST,
    STATEMENT_JOB_ORPHANS,
    STATEMENT_JOB_INSERT,
    STATEMENT_JOB_UPDATE,
    STATEMENT_JOB_DELETE,
    STATEMENT_PAYLOAD_INSERT,
    STATEMENT_PAYLOAD_UPDATE,
    STATEMENT_PAYLOAD_ABOUT,
    STATEMENT_DIGEST_UPDATE,
    STATEMENT_PAYLOAD_DELETE,
    STATEMENT_READY_INSERT,
    STATEMENT_READY_DELETE,
    STATEMENT_READY_TAKE,
    STATEMENT_TIMER_INSERT,
    STATEMENT_TIMER_DELETE,
    STATEMENT_TIMER_DUE,
    STATEMENT_TIMER_NEXT,
    STATEMENT_LEASE_WRITE,
    STATEMENT_LEASE_DELETE,
    STATEMENT_EVENT_INSERT,
    STATEMENT_EVENT_OLDEST,
    STATEMENT_EVENT_DELETE,
    STATEMENT_ARCHIVE_INSERT,
    STATEMENT_ARCHIVE_DELETE,
    STATEMENT_TRIMMED_DELETE,
    STATEMENT_TRIMMED_INSERT,
    STATEMENT_HEAD_WRITE,
    STATEMENT_SAVED_WRITE,
    STATEMENT_SAVED_DELETE,
    STATEMENT_COUNT
};

/* A lane in memory. Counters change here first; those of touched lanes are written before the commit. */
struct sqlite_lane {
    struct totals_lane shown; /* its counters as committed */
    struct lane lane;         /* its names point behind this structure */
    bool touched;
    int64_t promoted; /* made ready by the OP_PROMOTE under way, */
    int64_t died;     /* and dead letters more */
    struct sqlite_lane *next_of_tenant; /* at another destination */
    size_t key_len;
    char key[];
};

/* What moves with each transaction and goes back with it. */
struct sqlite_progress {
    int64_t seq_last; /* ever given */
    int64_t event_last;
    unsigned char event_hash[EVENT_HASH_BYTES]; /* of event_last */
    int64_t trimmed_last;                       /* all events up to it are gone */
    int64_t token_last;                         /* lease tokens only grow, over restarts too */
    int64_t token_limit;                        /* given in meta as used; beyond it the meta row moves first */
    size_t lane_count;
    int64_t tenant_count; /* but for the daemon's own */
    int64_t waiting; /* pending and waiting jobs of all lanes */
    int64_t running;
};

/* What stands in a column of a new row. */
struct sqlite_value {
    int type; /* SQLITE_INTEGER, SQLITE_TEXT, SQLITE_BLOB or SQLITE_NULL */
    union {
        int64_t number;
        struct slice text; /* lives until the batch ends */
    };
};

enum rows_table_name { ROWS_JOB, ROWS_PAYLOAD, ROWS_READY, ROWS_TIMER, ROWS_LEASE, ROWS_EVENT, ROWS_COUNT };
enum { ROWS_ALL = (1 << ROWS_COUNT) - 1 };

/* New rows of one table. */
struct sqlite_rows {
    int columns;
    size_t count, capacity;
    struct sqlite_value *values; /* row after row */
};

/* A file beside the database. */
enum watched_file { WATCHED_LOG, WATCHED_INDEX, WATCHED_COUNT };
struct sqlite_watched {
    const char *name; /* the end of it; NULL: not watched */
    dev_t device;
    ino_t inode;
};

struct sqlite_store {
    struct store base;
    struct store_settings settings;
    char *path;
    int lock_fd;
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    struct map lane_map;        /* sqlite_lane_key -> struct sqlite_lane */
    struct map tenant_map;      /* tenant -> its first struct sqlite_lane */
    struct sqlite_lane **lanes; /* by id - 1 */
    size_t lanes_capacity;
    struct sqlite_lane **touched;
    size_t touched_count, touched_capacity;
    struct buffer lane_key;
    struct totals totals;
    struct sqlite_rows rows[ROWS_COUNT];
    unsigned char keys_new[KEYS_NEW_BYTES]; /* which keys the rows of new jobs may have */
    struct sqlite_held *held; /* HELD_ROWS of them */
    int64_t held_era;         /* those of an earlier one are forgotten */
    struct sqlite_progress progress, saved;
    int wal_pages;        /* after the last commit */
    int checkpoint_pages; /* with so many the next batch checkpoints first */
    int reserve_pages;    /* the log is made longer by so many at once, and when it has fewer than half of that left */
    int64_t log_bytes;    /* its length, as far as it is known */
    struct trail_key key; /* if key_set */
    bool key_set;
    unsigned char salts[SALTS_AT_ONCE][EVENT_SALT_BYTES];
    size_t salts_left;
    int64_t head_number; /* of the head that is kept in the file */
    instant head_at;     /* when it was written */
    instant newest_at;   /* of the newest event when the store was opened; INSTANT_NONE: none */
    int index_fd;         /* the log's index; -1: not known */
    int64_t index_frames; /* that it has room for */
    bool can_shrink;      /* the file was made with room to say where its pages are */
    bool vacuum_uncut;    /* pages were given back, and the file is as long as before */
    int64_t vacuum_event; /* the newest when it was last looked */
    instant spare_at;     /* when the spare file was last looked at */
    struct sqlite_watched watched[WATCHED_COUNT];
    struct error failure; /* .status is not STATUS_OK: the store may not be used any more */
};

/* One call of apply. Functions that take it return a failure of the whole transaction; refusals go to op->status. */
struct sqlite_batch {
    struct sqlite_store *store;
    instant now;
    struct arena *memory; /* results */
    struct arena scratch; /* released when the batch ends */
    bool ready_taken;     /* a claim is under way, which takes its jobs out of `ready` all at once */
    struct error *err;
};

/* A job and what the store alone knows of it. */
struct sqlite_row {
    struct job job;
    int64_t key; /* job_key of its name; 0: the id holds its number */
    unsigned char digest[JOB_DIGEST_BYTES_MAX]; /* see store_sqlite_digest.c */
    size_t digest_len;
};

/*
 * Every SELECT that sqlite_row_read takes gives these columns in this order. The first 31 are the job
 * table's own; JOB_UPDATE binds them as parameters 1 to 31.
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
    COLUMN_PAYLOAD,
    COLUMN_DESTINATION,
    COLUMN_TENANT,
};

#define SQL_JOB_COLUMNS                                                                                                     \
    "j.seq, j.key, j.lane, j.id, j.digest, j.state, j.priority, j.step, j.rank, j.generation, j.attempts, "                 \
    "j.attempts_total, j.retry_count, j.step_count, j.redrives_auto, j.doubted, j.created_at, j.first_at, j.run_at, "       \
    "j.deadline, j.updated_at, j.dead_at, j.expires_at, j.last_class, j.last_code, j.last_error, j.dead_code, "             \
    "j.reference, j.last_event, j.failed_at, j.look_failed_at"

#define SQL_LEASE_COLUMNS "e.token, e.until, e.owner, e.at, e.first_at, e.attempts, e.attempts_total, e.event"

/* The numbers of enum job_state as they stand in the schema and in SQL texts; store_sqlite_row.c holds them to job.h. */
#define SQL_STATE_PENDING "1"
#define SQL_STATE_RUNNING "2"
#define SQL_STATE_WAITING "3"
#define SQL_STATE_DEAD "5"

/* ---- store_sqlite.c ---- */

extern const struct store_ops sqlite_store_ops;

/* The status of an SQLite result code, with a sentence in `err`. */
enum status sqlite_failure(sqlite3 *db, int result, const char *doing, struct error *err);
/* STATUS_INVALID: there is something that is no file. To open a pipe might take for ever. */
enum status sqlite_file_check(const char *path, struct error *err);
/* Of a store that could not be opened: where the file itself shows why, `err` says that and what to do. Gives `status`. */
enum status sqlite_explain(const char *path, enum status status, struct error *err);
/* Opens another connection for reading. */
enum status sqlite_connect_reader(const struct sqlite_store *store, sqlite3 **ret_db, struct error *err) MUST_CHECK;
/* From here on the store refuses everything; the first failure is the one that is told. */
void sqlite_store_fail(struct sqlite_store *store, const struct error *err);

/* ---- store_sqlite_make.c ---- */

/*
 * Whether there is a store, or may be one made: in an empty folder, or wherever the caller says. STATUS_INVALID: an empty
 * file or a log alone, which are what is left of a store, or a place that may be a mistake.
 */
enum status sqlite_make_check(const char *path, bool anywhere, struct error *err) MUST_CHECK;
/* The folder of `path` and those above it, as far as they are missing. Changes `path` and puts it back. */
enum status sqlite_make_folders(char *path, struct error *err) MUST_CHECK;
/* The empty file of a new store, with a mark beside it for as long as the store is not made. */
enum status sqlite_make_begin(char *path, struct error *err) MUST_CHECK;
enum status sqlite_make_end(const char *path, struct error *err) MUST_CHECK;

/* ---- store_sqlite_room.c ---- */

/* From now on this connection is given no piece of the log's index that has no blocks: SQLITE_FULL instead. */
enum status sqlite_room_guard(sqlite3 *db, struct error *err) MUST_CHECK;
/* From now on the index of the log gets its blocks ahead of use. */
void sqlite_room_begin(struct sqlite_store *store);
/* Whether the index has room for so many frames; it is made. False: the disk is full. */
bool sqlite_room_for(struct sqlite_store *store, int64_t frames);
/* Before it is opened: gives up the spare file where there is no room otherwise. */
void sqlite_room_release(const struct sqlite_store *store);
/* Once a minute: makes it again where there is. */
void sqlite_room_spare(struct sqlite_store *store, instant now);
/* SQLite's result: the whole log is synced where it stands. */
int sqlite_room_settle(struct sqlite_store *store) MUST_CHECK;

/* ---- vacuum.c ---- */

/* Once a second: gives back some free pages when little is written. A full disk is no failure. */
enum status sqlite_vacuum(struct sqlite_store *store, struct error *err) MUST_CHECK;

/* ---- store_sqlite_shift.c ---- */

/* When it is opened earlier than its newest time: moves what is left to wait for. */
enum status sqlite_shift(struct sqlite_store *store, struct error *err) MUST_CHECK;

/* ---- store_sqlite_watch.c ---- */

/* From now on the log and its index must stay the files they are. */
void sqlite_watch_begin(struct sqlite_store *store);
/* STATUS_IO: one of the store's files is not in its place, and nothing more may be acknowledged. */
enum status sqlite_watch(struct sqlite_store *store, struct error *err) MUST_CHECK;
enum status sqlite_store_tend(struct store *store, instant now, struct error *err);

/* ---- store_sqlite_trail.c ---- */

/* When a store is opened: notes what went wrong with its trail meanwhile, and what was trimmed by an older program. */
enum status sqlite_trail_begin(struct sqlite_store *store, struct error *err) MUST_CHECK;
/* Form, salt and hash of the event that comes next. */
enum status sqlite_trail_seal(struct sqlite_batch *batch, struct event *event) MUST_CHECK;
/* Within a batch: keeps the head, unless that was done just now. */
enum status sqlite_trail_keep(struct sqlite_batch *batch, bool at_once) MUST_CHECK;
/* The same in a transaction of its own, if the head has moved. A full disk is no failure. */
enum status sqlite_trail_settle(struct sqlite_store *store, instant now, struct error *err) MUST_CHECK;
/* A transaction of its own: an SQL text, NULL: none, then events with these data, ended by NULL, then the head. */
enum status sqlite_trail_note(struct sqlite_store *store, instant now, const char *sql, const char *const *notes,
                              struct error *err) MUST_CHECK;
struct trail_head sqlite_store_head(struct store *store);
enum status sqlite_trim_apply(struct sqlite_batch *batch, struct store_op *op) MUST_CHECK;

/* ---- store_sqlite_log.c ---- */

/* Makes the log longer when there is little left of it; before a batch. */
enum status sqlite_log_reserve(struct sqlite_store *store, struct error *err) MUST_CHECK;
/* From now on a commit writes the log in one piece where it may, and no frame before its place in the index is there. */
enum status sqlite_log_gather(struct sqlite_store *store, struct error *err) MUST_CHECK;

/* ---- store_sqlite_file.c ---- */

/* As much of a store as its read-only parts look at: the path. */
struct sqlite_outside {
    struct sqlite_store store;
    char path[PATH_MAX];
};
enum status sqlite_outside_init(struct sqlite_outside *outside, const char *path, struct error *err) MUST_CHECK;
/* `older`: stores of older versions will do. */
enum status sqlite_outside_version(const struct sqlite_outside *outside, bool older, int64_t *ret_version,
                                   struct error *err) MUST_CHECK;

/* ---- store_sqlite_digest.c ---- */

bool sqlite_digest_possible(size_t len);
/* Of a new job. */
void sqlite_digest_make(const struct op_insert *insert, struct sqlite_row *row);
/* Whether the row, read with its payload, is not what it was when it was written. */
bool sqlite_digest_differs(const struct sqlite_row *row);
/* The row's payload is another from now on. */
enum status sqlite_digest_correct(struct sqlite_batch *batch, struct sqlite_row *row, struct slice payload) MUST_CHECK;

/* ---- store_sqlite_schema.c ---- */

enum { SCHEMA_WITH_HEADS = 6 }; /* the first version with forms of events and a kept head */

/* A new database gets its page size, every one the settings of its connection. */
enum status sqlite_schema_configure(sqlite3 *db, bool sync_always, struct error *err) MUST_CHECK;
/* Brings the schema to this program's version; refuses a newer one and files of others. */
enum status sqlite_schema_migrate(sqlite3 *db, void (*on_migrate)(int from, int to), struct error *err) MUST_CHECK;
/* The version of a store's schema; STATUS_INVALID: it is no store of this program. */
enum status sqlite_schema_identify(sqlite3 *db, int64_t *ret_version, struct error *err) MUST_CHECK;
/* The same with any table of steps; step i brings version i to i + 1. */
enum status sqlite_schema_migrate_by(sqlite3 *db, const char *const *steps, int count, struct error *err) MUST_CHECK;
/* One number by an SQL text; `missing` when it gives no row or NULL. */
enum status sqlite_query_int64(sqlite3 *db, const char *sql, int64_t missing, int64_t *ret_value,
                               struct error *err) MUST_CHECK;
enum status sqlite_exec(sqlite3 *db, const char *sql, struct error *err) MUST_CHECK;

/* ---- store_sqlite_backup.c ---- */

enum status sqlite_store_backup(struct store *store, const char *path, struct error *err);

/* ---- store_sqlite_lane.c ---- */

enum status sqlite_lanes_load(struct sqlite_store *store, struct error *err) MUST_CHECK;
void sqlite_lanes_release(struct sqlite_store *store);
/* NULL when there is no such lane. */
struct sqlite_lane *sqlite_lane_by_id(const struct sqlite_store *store, int64_t id);
/* Finds or makes it. */
enum status sqlite_lane_get(struct sqlite_batch *batch, struct slice destination, struct slice tenant,
                            struct sqlite_lane **ret_lane) MUST_CHECK;
/* To be called before its counters change. */
/* Pending and waiting jobs of the tenant, at all destinations. */
int64_t sqlite_tenant_waiting(const struct sqlite_store *store, struct slice tenant);
enum status sqlite_lane_touch(struct sqlite_batch *batch, struct sqlite_lane *lane) MUST_CHECK;
/* Writes the counters of the touched lanes. */
enum status sqlite_lanes_write(struct sqlite_batch *batch) MUST_CHECK;
/* The counters stay as they are, or go back to what was committed. */
void sqlite_lanes_commit(struct sqlite_store *store);
void sqlite_lanes_rollback(struct sqlite_store *store);

/* ---- store_sqlite_row.c ---- */

enum status sqlite_statements_prepare(struct sqlite_store *store, struct error *err) MUST_CHECK;

void sqlite_bind_slice(sqlite3_stmt *statement, int parameter, struct slice text);
struct slice sqlite_column_slice(sqlite3_stmt *statement, int column);
instant sqlite_column_instant(sqlite3_stmt *statement, int column);
/* Copies into `memory`; an empty one costs nothing. */
enum status sqlite_column_copy(sqlite3_stmt *statement, int column, struct arena *memory, struct slice *ret_text) MUST_CHECK;

/* Runs a statement that gives no rows. */
enum status sqlite_run(struct sqlite_batch *batch, enum statement which) MUST_CHECK;
/* True while there is a row; resets the statement at the end. */
enum status sqlite_next(struct sqlite_batch *batch, enum statement which, bool *ret_row) MUST_CHECK;
enum status sqlite_meta_set(struct sqlite_batch *batch, const char *name, int64_t value) MUST_CHECK;

/* Reads the row a statement stands on; texts are copied into `memory`. */
enum status sqlite_row_read(sqlite3_stmt *statement, struct arena *memory, struct sqlite_row *ret_row,
                            struct error *err) MUST_CHECK;
/* An id made by the store holds the job's number, and below that bits that a caller cannot know. */
enum { MADE_ID_SECRET_BITS = 24 };
/* The number that an id would hold if it was made here; 0: it was not. */
int64_t sqlite_id_seq(struct slice id);
/* Texts live in the batch's scratch. *ret_found tells whether it is there. */
enum status sqlite_row_by_seq(struct sqlite_batch *batch, int64_t seq, struct sqlite_row *ret_row,
                              bool *ret_found) MUST_CHECK;
enum status sqlite_row_by_name(struct sqlite_batch *batch, struct slice tenant, struct slice id, struct sqlite_row *ret_row,
                               bool *ret_found) MUST_CHECK;

/*
 * Invariant 2. The one way a job changes: `before` NULL is a new job, `after` NULL a deleted one. Moves it between
 * the ready, timer and lease tables, counts, and appends the event (EVENT_TYPE_NONE: there is none) in
 * after->job.last_event.
 */
enum status sqlite_row_change(struct sqlite_batch *batch, const struct sqlite_row *before, struct sqlite_row *after,
                              enum event_type type, struct slice data) MUST_CHECK;
/* The same for a job that only became ready: its own row stays as it is. */
enum status sqlite_row_make_ready(struct sqlite_batch *batch, const struct sqlite_row *before) MUST_CHECK;
/* Takes the jobs of a lane up to that one out of `ready`. */
enum status sqlite_ready_take(struct sqlite_batch *batch, const struct job *last) MUST_CHECK;
/* Appends to the chain; number, time and hash are filled in. */
enum status sqlite_event_append(struct sqlite_batch *batch, struct event *event, int64_t lane) MUST_CHECK;

/* ---- store_sqlite_held.c ---- */

/*
 * The rows of running jobs, as far as there is room: what ends a lease need not read what the claim has just written. Only
 * sqlite_row_change tells it of changes, and every rollback empties it.
 */
enum status sqlite_held_init(struct sqlite_store *store, struct error *err) MUST_CHECK;
void sqlite_held_release(struct sqlite_store *store);
/* `row` is that of a running job; its texts are copied. */
void sqlite_held_put(struct sqlite_store *store, const struct sqlite_row *row);
void sqlite_held_remove(struct sqlite_store *store, int64_t seq);
void sqlite_held_clear(struct sqlite_store *store);
/* NULL: not held, read it. Valid until the next put. */
const struct sqlite_row *sqlite_held_find(const struct sqlite_store *store, int64_t seq);

/* ---- store_sqlite_rows.c ---- */

/*
 * New rows are gathered and written by one statement a table: most of what a small insert costs is the statement itself.
 * Whoever reads a table, or deletes from it, flushes it before. A rollback forgets what was gathered.
 */
enum status sqlite_rows_init(struct sqlite_store *store, struct error *err) MUST_CHECK;
void sqlite_rows_release(struct sqlite_store *store);
/* The columns of one more row, to be filled in all; NULL: no memory, and the batch's error says so. */
struct sqlite_value *sqlite_rows_add(struct sqlite_batch *batch, enum rows_table_name which) MUST_CHECK;
/* `which` are bits 1 << ROWS_...; ROWS_ALL. */
enum status sqlite_rows_flush(struct sqlite_batch *batch, unsigned which) MUST_CHECK;
void sqlite_rows_clear(struct sqlite_store *store);
/* Whether a job with that key may be among the new rows: a false yes costs a flush, a false no there is none. */
void sqlite_keys_note(struct sqlite_store *store, int64_t key);
bool sqlite_keys_may_have(struct sqlite_store *store, int64_t key);

static inline struct sqlite_value value_int(int64_t number)
{
    return (struct sqlite_value){ .type = SQLITE_INTEGER, .number = number };
}

static inline struct sqlite_value value_instant(instant at)
{
    return (struct sqlite_value){ .type = at == INSTANT_NONE ? SQLITE_NULL : SQLITE_INTEGER, .number = at };
}

static inline struct sqlite_value value_text(struct slice text)
{
    return (struct sqlite_value){ .type = SQLITE_TEXT, .text = { text.len ? text.data : "", text.len } };
}

static inline struct sqlite_value value_blob(const void *data, size_t len)
{
    return (struct sqlite_value){ .type = SQLITE_BLOB, .text = { len ? data : "", len } };
}

/* ---- store_sqlite_apply.c, store_sqlite_ops.c ---- */

enum status sqlite_store_apply(struct store *store, instant now, struct store_op *ops, size_t count, struct arena *memory,
                               struct error *err);
enum status sqlite_op_apply(struct sqlite_batch *batch, struct store_op *op) MUST_CHECK;

/* ---- store_sqlite_reader.c ---- */

enum status sqlite_reader_open(struct store *store, struct store_reader **ret_reader, struct error *err);
/* One for sqlite_reader_events alone, which reads stores of older versions, too. */
enum status sqlite_reader_open_events(struct store *store, bool old, struct store_reader **ret_reader, struct error *err);
void sqlite_reader_close(struct store_reader *reader);
enum status sqlite_reader_job(struct store_reader *reader, struct slice tenant, struct slice id, bool with_payload,
                              struct arena *memory, struct job *ret_job, struct error *err);
enum status sqlite_reader_job_seq(struct store_reader *reader, int64_t seq, bool with_payload, struct arena *memory,
                                  struct job *ret_job, struct error *err);
enum status sqlite_reader_jobs(struct store_reader *reader, const struct job_filter *filter, size_t max, bool with_payload,
                               struct arena *memory, struct job **ret_jobs, size_t *ret_count, int64_t *ret_next_seq,
                               struct error *err);
enum status sqlite_reader_events(struct store_reader *reader, int64_t after, size_t max, struct arena *memory,
                                 struct event **ret_events, size_t *ret_count, struct error *err);
enum status sqlite_reader_history(struct store_reader *reader, struct slice tenant, struct slice id, size_t max,
                                  struct arena *memory, struct event **ret_events, size_t *ret_count, struct error *err);
enum status sqlite_reader_lanes(struct store_reader *reader, int64_t after, size_t max, struct arena *memory,
                                struct lane **ret_lanes, size_t *ret_count, struct error *err);
enum status sqlite_reader_lane(struct store_reader *reader, struct slice destination, struct slice tenant,
                               struct arena *memory, struct lane *ret_lane, struct error *err);
enum status sqlite_reader_totals(struct store_reader *reader, size_t largest_max, struct arena *memory,
                                 struct destination_total **ret_totals, size_t *ret_count, struct error *err);
enum status sqlite_reader_ahead(struct store_reader *reader, int64_t lane, int64_t rank, int64_t seq, size_t max,
                                size_t *ret_count, struct error *err);
enum status sqlite_reader_saved(struct store_reader *reader, struct slice space, struct slice name, struct arena *memory,
                               struct slice *ret_value, struct error *err);
enum status sqlite_reader_saved_list(struct store_reader *reader, struct slice space, struct slice before, size_t max,
                                    struct arena *memory, struct saved **ret_saved, size_t *ret_count, struct error *err);

#endif
