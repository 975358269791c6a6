/*
 * statement.h - all SQL that a batch or a reader sends, each text prepared once a connection.
 *
 * Plans are pinned: generic ones, without joins and scans that only pay on tables of another size. A plan that was made
 * while a table was empty would else be kept when it is not. test_store_postgres reads EXPLAIN of every one of them.
 */
#ifndef STORE_POSTGRES_STATEMENT_H
#define STORE_POSTGRES_STATEMENT_H

enum postgres_statement {
    ASK_TAKE, /* the first phase of a batch: what it needs to know, and locks */
    ASK_GIVE,
    ASK_LOCK_KEY,
    ASK_LOCK_SEQ,
    ASK_BY_LEASE,
    ASK_BY_KEY,
    ASK_BY_SEQ,
    ASK_LANES,
    ASK_SHARDS,
    ASK_CHAIN_LOCK,
    ASK_CHAINED,
    ASK_CHAIN_NEXT_LOCK,
    ASK_CHAIN_NEXT,
    ASK_CLAIM,
    ASK_CLAIM_FAILED_LAST,
    ASK_BODY,
    ASK_DUE,
    ASK_NEXT,
    ASK_ORPHANS,
    ASK_OLDEST_EVENTS,
    ASK_ERASE_EVENTS,
    ASK_TRIMMED,
    ASK_SEQ_BLOCK,
    ASK_TOKEN_BLOCK,
    ASK_LANE_BLOCK,
    ASK_LANES_BY_ID,
    ASK_BACKLOG,
    ASK_HEADS,
    ASK_SESSION,
    WRITE_BEGIN, /* the second: what it writes */
    WRITE_LANES,
    WRITE_LANES_LIVE,
    WRITE_STATE_DELETE,
    WRITE_STATE_TAKEN,
    WRITE_JOB_DELETE,
    WRITE_QUEUE_DELETE,
    WRITE_QUEUE_TAKEN,
    WRITE_LEASE_DELETE,
    WRITE_TIMER_DELETE,
    WRITE_CHAINED_DELETE,
    WRITE_JOBS,
    WRITE_JOBS_BARE,
    WRITE_BODY,
    WRITE_STATE_DONE,
    WRITE_STATE_NEW,
    WRITE_STATE,
    WRITE_QUEUE,
    WRITE_LEASE_NEW,
    WRITE_LEASE,
    WRITE_TIMER,
    WRITE_CHAINED,
    WRITE_EVENTS_DELETE,
    WRITE_EVENTS_CUT,
    WRITE_ARCHIVE_DELETE,
    WRITE_TRIMMED,
    WRITE_ENDED_DELETE,
    WRITE_EVENTS,
    WRITE_ARCHIVE,
    WRITE_SAVED,
    WRITE_SAVED_DELETE,
    WRITE_TALLY,
    WRITE_COUNTS,
    WRITE_LANES_TEND,
    WRITE_SEAL,
    WRITE_SYNC,
    WRITE_SYNC_NUMBER,
    WRITE_COMMIT,
    WRITE_ROLLBACK,
    READ_JOB, /* readers */
    READ_JOB_SEQ,
    READ_PAGE,
    READ_PAGE_DEAD,
    READ_PAGE_WAITING,
    READ_PAGE_RUNNING,
    READ_PAGE_REDRIVEN,
    READ_PAGE_ID,
    READ_EVENTS,
    READ_HISTORY,
    READ_LANES,
    READ_LANE,
    READ_AHEAD,
    READ_SAVED,
    READ_SAVED_LIST,
    READ_TOTALS,
    READ_TOTALS_LARGEST,
    READ_HEADS,
    READ_SESSIONS,
    READ_SHARDS,
    NODE_BEAT, /* who says that a node lives */
    NODE_END,
    NODE_RING,
    NODE_SEALED,
    POSTGRES_STATEMENTS,
    STATEMENTS_WRITER_FIRST = ASK_TAKE,
    STATEMENTS_WRITER_LAST = WRITE_ROLLBACK,
    STATEMENTS_READER_FIRST = READ_JOB,
    STATEMENTS_READER_LAST = READ_SHARDS,
    STATEMENTS_NODE_FIRST = NODE_BEAT,
    STATEMENTS_NODE_LAST = NODE_SEALED,
};

/* Columns of every answer that has a job in it, in this order. */
enum job_column {
    JOB_SEQ,
    JOB_LANE,
    JOB_KEY,
    JOB_DIGEST,
    JOB_ID,
    JOB_CREATED_AT,
    JOB_RUN_AT,
    JOB_DEADLINE,
    JOB_RANK,
    JOB_EVENT,
    JOB_PRIORITY,
    JOB_CHAIN,
    JOB_CONTENT_TYPE,
    JOB_HEADERS,
    JOB_CORRELATION_ID,
    JOB_METADATA,
    JOB_ORDER_KEY,
    JOB_CALLBACK,
    STATE_STATE, /* NULL: it is as it was inserted */
    STATE_PRIORITY,
    STATE_STEP,
    STATE_RANK,
    STATE_GENERATION,
    STATE_ATTEMPTS,
    STATE_ATTEMPTS_TOTAL,
    STATE_RETRY_COUNT,
    STATE_STEP_COUNT,
    STATE_REDRIVES_AUTO,
    STATE_DOUBTED,
    STATE_FIRST_AT,
    STATE_RUN_AT,
    STATE_DEADLINE,
    STATE_UPDATED_AT,
    STATE_FAILED_AT,
    STATE_LOOK_FAILED_AT,
    STATE_DEAD_AT,
    STATE_LEAVES_AT,
    STATE_LAST_CLASS,
    STATE_LAST_CODE,
    STATE_LAST_ERROR,
    STATE_DEAD_CODE,
    STATE_REFERENCE,
    STATE_REDRIVE,
    STATE_EVENT,
    STATE_LINK,
    LEASE_TOKEN, /* NULL: it has none */
    LEASE_UNTIL,
    LEASE_AT,
    LEASE_FIRST_AT,
    LEASE_EVENT,
    LEASE_ATTEMPTS,
    LEASE_ATTEMPTS_TOTAL,
    LEASE_OWNER,
    LEASE_SESSION,
    JOB_READY,
    JOB_BODY_BYTES,
    JOB_BODY,
    JOB_MORE, /* what else the statement gives */
};

/* Of a job that is claimed: by which claim, and where its row of the queue is. */
enum { CLAIM_NUMBER = JOB_MORE, CLAIM_PLACE };

/* Behind a lane's names and counters. */
enum lane_column { LANE_SHARD = 12, LANE_LIVE };
enum { LINK_BEHIND = 1, LINK_GAP = 2 }; /* bits of STATE_LINK */

enum {
    BODY_AT_ONCE_BYTES_MAX = 16384, /* of a claim; larger ones are asked for when it is known which are wanted */
    PAGE_LOOKED_AT_MAX = 500,       /* rows, by one page of reader_jobs */
};

struct postgres_text {
    const char *name;
    const char *types; /* of its parameters: params.h */
    const char *sql;
};

const struct postgres_text *postgres_text(enum postgres_statement statement);
/* The type of rows that it takes; NULL: it takes none. */
const char *postgres_row(enum postgres_statement statement);

/* What every connection sets: how plans are made, and how long is waited. */
extern const char postgres_settings_writer[], postgres_settings_reader[], postgres_settings_node[];

#endif
