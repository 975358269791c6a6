/*
 * handle.h - the store as it is open, and a batch under way.
 */
#ifndef STORE_SQLITE_HANDLE_H
#define STORE_SQLITE_HANDLE_H

#include "store/lane_table.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/sqlite.h"
#include "store/tally.h"
#include "store/trail.h"

#include <sys/types.h>

enum {
    PAGE_BYTES = 4096,
    BUSY_TIMEOUT_MS = 5000, /* a reader waits so long while the log is being recovered */
    LOG_FRAME_BYTES = PAGE_BYTES + 24, /* a page in the log */
    LOG_RESERVE_PAGES = 512, /* 2 MB: one sync for so many pages to come */
    CHECKPOINT_PAGES = 8192, /* 32 MB: long enough that a page written often is written back once */
};

/* Prepared once by the writer; the SQL stands in statement.c. */
enum statement {
    STATEMENT_BEGIN, STATEMENT_COMMIT, STATEMENT_ROLLBACK,
    STATEMENT_META_SET,
    STATEMENT_LANE_INSERT,
    STATEMENT_LANE_UPDATE,
    STATEMENT_LANE_FIND,
    STATEMENT_LANE_EVENT,
    STATEMENT_LANES_COUNT_GONE,
    STATEMENT_LANES_DELETE_GONE,
    STATEMENT_JOB_BY_KEY,
    STATEMENT_JOB_BY_MADE_ID,
    STATEMENT_JOB_BY_SEQ,
    STATEMENT_CORRELATION,
    STATEMENT_JOB_CLAIM,
    STATEMENT_JOB_CLAIM_FAILED_LAST,
    STATEMENT_JOB_ORPHANS,
    STATEMENT_JOB_INSERT,
    STATEMENT_JOB_SETTLE,
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
    STATEMENT_CHAIN_ADD,
    STATEMENT_CHAIN_REMOVE,
    STATEMENT_CHAIN_AFTER,
    STATEMENT_LEASE_WRITE,
    STATEMENT_LEASE_DELETE,
    STATEMENT_EVENT_INSERT,
    STATEMENT_EVENT_OLDEST,
    STATEMENT_EVENT_DELETE,
    STATEMENT_EVENT_DATA, STATEMENT_EVENT_ERASE,
    STATEMENT_ARCHIVE_INSERT,
    STATEMENT_ARCHIVE_DELETE,
    STATEMENT_TRIMMED_DELETE,
    STATEMENT_TRIMMED_INSERT,
    STATEMENT_HEAD_WRITE,
    STATEMENT_SAVED_WRITE,
    STATEMENT_SAVED_DELETE,
    STATEMENT_TALLY_ADD,
    STATEMENT_COUNT
};

/* What moves with each transaction and goes back with it. */
struct sqlite_progress {
    int64_t seq_last; /* ever given */
    int64_t event_last;
    unsigned char event_hash[EVENT_HASH_BYTES]; /* of event_last */
    int64_t trimmed_last;                       /* all events up to it are gone */
    int64_t token_last;                         /* lease tokens only grow, over restarts too */
    int64_t token_limit;                        /* given in meta as used; beyond it the meta row moves first */
    int64_t lane_last; /* ever given */
};

/* A file beside the database. */
enum watched_file { WATCHED_LOG, WATCHED_INDEX, WATCHED_COUNT };
struct sqlite_watched {
    const char *name; /* the end of it; NULL: not watched */
    dev_t device;
    ino_t inode;
};

/* The folder of all three, and its times when each was last seen in its place. */
struct sqlite_folder {
    int fd; /* -1: it tells nothing */
    struct timespec modified, changed;
};

struct sqlite_held;

/* Rows of running jobs. */
struct sqlite_helds {
    struct sqlite_held *rows; /* HELD_ROWS of them */
    int64_t era;              /* those of an earlier one are forgotten */
};

/* The write-ahead log. */
struct sqlite_log_state {
    int pages;            /* after the last commit */
    int checkpoint_pages; /* with so many the next batch checkpoints first */
    int reserve_pages;    /* it is made longer by so many at once, and when it has fewer than half of that left */
    int64_t bytes;        /* its length, as far as it is known */
    int index_fd;         /* its index; -1: not known */
    int64_t index_frames; /* that the index has room for */
};

/* Pages that are given back. */
struct sqlite_vacuum {
    bool can_shrink; /* the file was made with room to say where its pages are */
    bool uncut;      /* pages were given back, and the file is as long as before */
    bool scrub;      /* something was erased: what is free is to go from the file, and from the log */
    int64_t event;   /* the newest when it was last looked */
};

/* The trail's end, as it was last saved in the file; `number` -1: it was not. */
struct sqlite_head {
    int64_t number;
    instant at;
};

struct sqlite_store {
    struct store base;
    struct store_settings settings;
    char *path;
    int lock_fd, file_fd; /* of the lock's file, and of the database's own lock */
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    struct lane_table lanes; /* those that have jobs */
    struct sqlite_rows rows[ROWS_COUNT];
    struct sqlite_gone gone[GONE_COUNT];
    unsigned char keys_new[KEYS_NEW_BYTES]; /* which keys the rows of new jobs may have */
    unsigned char seqs_new[SEQS_NEW_BYTES]; /* which jobs the rows of ROWS_OF_JOB may be of */
    struct sqlite_helds held;
    struct sqlite_progress progress, saved;
    struct sqlite_log_state log;
    struct trail_seals seals;
    struct sqlite_head head;
    struct sqlite_vacuum vacuum;
    instant newest_at;    /* of the newest event when the store was opened; INSTANT_NONE: none */
    instant spare_at;     /* when the spare file was last looked at */
    struct sqlite_watched watched[WATCHED_COUNT];
    struct sqlite_folder folder;
    struct error failure; /* .status is not STATUS_OK: the store may not be used any more */
};

/* One call of apply. Functions that take it return a failure of the whole transaction; refusals go to op->status. */
struct sqlite_batch {
    struct sqlite_store *store;
    instant now;
    struct arena *memory; /* results */
    struct arena scratch; /* released when the batch ends */
    struct redrive_tally tally;
    bool erases;          /* something goes because of a person */
    bool ready_taken;     /* a claim is under way, which takes its jobs out of `ready` all at once */
    struct error *err;
};

extern const struct store_ops sqlite_store_ops;

/* Opens another connection for reading. */
enum status sqlite_connect_reader(const struct sqlite_store *store, sqlite3 **ret_db, struct error *err) MUST_CHECK;
/* From here on the store refuses everything; the first failure is the one that is reported. */
void sqlite_store_fail(struct sqlite_store *store, const struct error *err);

#endif
