#include "store/postgres/statement.h"

#include <assert.h>

#define PLANS                                                                                                               \
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off;"                        \
    " SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off; SET enable_bitmapscan = off;"        \
    " SET join_collapse_limit = 1; SET from_collapse_limit = 1;" /* joins are made in the order in which they stand */     \
    " SET jit = off; SET max_parallel_workers_per_gather = 0; SET default_transaction_isolation = 'read committed';"        \
    " SET client_min_messages = warning; SET bytea_output = hex;"

const char postgres_settings_writer[] =
    PLANS " SET lock_timeout = '5s'; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = '10s'";
const char postgres_settings_reader[] =
    PLANS " SET statement_timeout = '10s'; SET default_transaction_read_only = on";

#define JOB_KNOWN "j.seq, j.lane, j.key, j.digest, j.id, j.created_at, j.run_at, j.deadline, j.rank, j.event, j.priority, "
#define JOB_ABOUT "j.content_type, j.headers, j.correlation_id, j.metadata, "
#define STATE_COLUMNS                                                                                                       \
    "s.state, s.priority, s.step, s.rank, s.generation, s.attempts, s.attempts_total, s.retry_count, s.step_count, "        \
    "s.redrives_auto, s.doubted, s.first_at, s.run_at, s.deadline, s.updated_at, s.failed_at, s.look_failed_at, "           \
    "s.dead_at, s.leaves_at, s.last_class, s.last_code, s.last_error, s.dead_code, s.reference, s.event, "
#define LEASE_COLUMNS "e.token, e.until, e.at, e.first_at, e.event, e.attempts, e.attempts_total, e.owner, "
#define NO_LEASE                                                                                                            \
    "NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::int, NULL::int, NULL::bytea, "

#define STATE_JOIN " LEFT JOIN state s ON s.seq = j.seq"
#define LEASE_JOIN " LEFT JOIN lease e ON e.seq = j.seq"
/* A query of its own (OFFSET 0): joined plainly, on full tables it would be looked for among all of its lane. */
#define QUEUE_JOIN                                                                                                          \
    " LEFT JOIN LATERAL (SELECT 1 AS there FROM queue y WHERE y.lane = j.lane AND y.rank = coalesce(s.rank, j.rank)"        \
    " AND y.seq = j.seq OFFSET 0) q ON true"

/* A job that may be in any state, without its body. */
#define JOB_ANY "SELECT " JOB_KNOWN JOB_ABOUT STATE_COLUMNS LEASE_COLUMNS "q.there IS NOT NULL, 0, NULL::bytea"

/* A job that is claimed; its body, if it is small. */
#define JOB_CLAIMED                                                                                                         \
    "SELECT " JOB_KNOWN JOB_ABOUT STATE_COLUMNS NO_LEASE "true, octet_length(j.body),"                                      \
    " CASE WHEN octet_length(j.body) <= 16384 THEN j.body END, w.number"

#define JOB_READ "SELECT " JOB_KNOWN JOB_ABOUT STATE_COLUMNS LEASE_COLUMNS "false, octet_length(j.body), "

#define LANES(WHICH)                                                                                                        \
    "SELECT l.id, l.destination, l.tenant, c.* FROM (" WHICH ") l CROSS JOIN LATERAL (SELECT"                               \
    " coalesce(sum(pending), 0)::bigint, coalesce(sum(running), 0)::bigint, coalesce(sum(waiting), 0)::bigint,"             \
    " coalesce(sum(completed), 0)::bigint, coalesce(sum(dead), 0)::bigint, coalesce(sum(cancelled), 0)::bigint,"            \
    " coalesce(sum(ready), 0)::bigint FROM lane_count WHERE lane = l.id) c ORDER BY l.id"

#define EVENT_COLUMNS                                                                                                       \
    "v.number, v.at, v.type, v.state, v.attempt, coalesce(l.destination, v.destination), coalesce(l.tenant, ''::bytea),"    \
    " v.job, v.data, v.previous, v.hash, v.form, v.salt, v.digest"

/* Likewise. */
#define EVENT_AT(NUMBER) " CROSS JOIN LATERAL (SELECT * FROM event WHERE chain = 0 AND number = " NUMBER " OFFSET 0) v"

/*
 * A page of jobs: of the rows from $1 down that `CANDIDATES` gives, so many at most, those that match. The first two columns
 * say how many were looked at, and which was the last: there is one row with these at least.
 */
#define PAGE(CANDIDATES)                                                                                                    \
    "WITH c AS MATERIALIZED (" CANDIDATES " ORDER BY 1 DESC LIMIT 500)"                                                     \
    " SELECT p.*, t.looked_at, t.last FROM (SELECT count(*) AS looked_at, min(seq) AS last FROM c) t"                       \
    " LEFT JOIN LATERAL (" JOB_READ "CASE WHEN $7 <> 0 THEN j.body END, l.destination, l.tenant FROM c"                     \
    " JOIN job j ON j.seq = c.seq LEFT JOIN lane l ON l.id = j.lane" STATE_JOIN LEASE_JOIN                                  \
    " WHERE ($2 = 0 OR CASE WHEN e.seq IS NOT NULL THEN 2 ELSE coalesce(s.state, 1) END = $2)"                              \
    " AND ($3 = ''::bytea OR l.destination = $3) AND ($4 = ''::bytea OR l.tenant = $4)"                                     \
    " AND ($5 = ''::bytea OR s.last_code = $5 OR s.dead_code = $5) ORDER BY j.seq DESC LIMIT $6) p ON true"

static const struct postgres_text texts[POSTGRES_STATEMENTS] = {
    [ASK_BY_LEASE] = { "by_lease", "I",
        "SELECT " JOB_KNOWN "NULL::bytea, NULL::bytea, NULL::bytea, NULL::bytea, " STATE_COLUMNS LEASE_COLUMNS
        "false, 0, NULL::bytea FROM unnest($1) x(seq) JOIN lease e ON e.seq = x.seq JOIN job j ON j.seq = e.seq" STATE_JOIN
        " FOR UPDATE OF e" },
    [ASK_BY_KEY] = { "by_key", "B",
        JOB_ANY " FROM unnest($1) x(key) JOIN job j ON j.key = x.key AND j.key IS NOT NULL"
        STATE_JOIN LEASE_JOIN QUEUE_JOIN },
    [ASK_BY_SEQ] = { "by_seq", "I",
        JOB_ANY " FROM unnest($1) x(seq) JOIN job j ON j.seq = x.seq" STATE_JOIN LEASE_JOIN QUEUE_JOIN },
    [ASK_LANES] = { "ask_lanes", "BB",
        LANES("SELECT l.* FROM unnest($1, $2) x(destination, tenant) JOIN lane l ON l.destination = x.destination"
              " AND l.tenant = x.tenant") },
    [ASK_CLAIM] = { "claim", "IIII",
        JOB_CLAIMED " FROM unnest($1, $2, $3, $4) WITH ORDINALITY w(lane, max, rank, seq, number)"
        " CROSS JOIN LATERAL (SELECT q.rank, q.seq FROM queue q WHERE q.lane = w.lane AND (q.rank, q.seq) > (w.rank, w.seq)"
        " ORDER BY q.rank, q.seq LIMIT w.max FOR UPDATE) y JOIN job j ON j.seq = y.seq" STATE_JOIN },
    [ASK_CLAIM_FAILED_LAST] = { "claim_failed_last", "IIII",
        JOB_CLAIMED " FROM unnest($1, $2, $3, $4) WITH ORDINALITY w(lane, max, failed, looks, number)"
        " CROSS JOIN LATERAL (SELECT c.seq FROM (SELECT q.rank, q.seq,"
        " (SELECT f.look_failed_at FROM state f WHERE f.seq = q.seq) AS failed FROM queue q WHERE q.lane = w.lane"
        " ORDER BY q.rank, q.seq LIMIT w.looks) c"
        " ORDER BY coalesce(c.failed >= w.failed, false), CASE WHEN c.failed >= w.failed THEN c.failed END, c.rank, c.seq"
        " LIMIT w.max) y JOIN job j ON j.seq = y.seq" STATE_JOIN },
    [ASK_BODY] = { "body", "I", "SELECT j.seq, j.body FROM unnest($1) x(seq) JOIN job j ON j.seq = x.seq" },
    [ASK_DUE] = { "due", "ii",
        JOB_ANY ", t.at, t.seq FROM (SELECT at, seq FROM timer WHERE at <= $1 ORDER BY at, seq LIMIT $2) t"
        " LEFT JOIN job j ON j.seq = t.seq" STATE_JOIN LEASE_JOIN QUEUE_JOIN " ORDER BY t.at, t.seq" },
    [ASK_NEXT] = { "next", "i", "SELECT at FROM timer WHERE at > $1 ORDER BY at, seq LIMIT 1" },
    [ASK_ORPHANS] = { "orphans", "iiiii",
        "SELECT " JOB_KNOWN JOB_ABOUT STATE_COLUMNS LEASE_COLUMNS "false, 0, NULL::bytea FROM lease e"
        " JOIN job j ON j.seq = e.seq" STATE_JOIN " WHERE (e.until, e.seq) > ($1, $2)"
        " AND (e.until <= $3 OR (e.token < $4 AND e.owner = ''::bytea)) ORDER BY e.until, e.seq LIMIT $5" },
    [ASK_OLDEST_EVENTS] = { "oldest_events", "iii",
        "SELECT number, at, hash FROM event WHERE chain = $1 AND number > $2 ORDER BY number LIMIT $3" },
    [ASK_SEQ_BLOCK] = { "seq_block", "", "SELECT nextval('job_block')" },
    [ASK_TOKEN_BLOCK] = { "token_block", "", "SELECT nextval('token_block')" },

    [WRITE_BEGIN] = { "begin", "", "BEGIN" },
    [WRITE_LANES] = { "lanes", "IBB",
        "INSERT INTO lane (id, destination, tenant, live) SELECT *, true FROM unnest($1, $2, $3)" },
    [WRITE_LANES_LIVE] = { "lanes_live", "II",
        "UPDATE lane t SET live = x.live <> 0 FROM unnest($1, $2) x(id, live) WHERE t.id = x.id" },
    [WRITE_STATE_DELETE] = { "state_delete", "I", "DELETE FROM state t USING unnest($1) x(seq) WHERE t.seq = x.seq" },
    [WRITE_JOB_DELETE] = { "job_delete", "I", "DELETE FROM job t USING unnest($1) x(seq) WHERE t.seq = x.seq" },
    [WRITE_QUEUE_DELETE] = { "queue_delete", "III",
        "DELETE FROM queue t USING unnest($1, $2, $3) x(lane, rank, seq)"
        " WHERE t.lane = x.lane AND t.rank = x.rank AND t.seq = x.seq" },
    [WRITE_LEASE_DELETE] = { "lease_delete", "I", "DELETE FROM lease t USING unnest($1) x(seq) WHERE t.seq = x.seq" },
    [WRITE_TIMER_DELETE] = { "timer_delete", "II",
        "DELETE FROM timer t USING unnest($1, $2) x(at, seq) WHERE t.at = x.at AND t.seq = x.seq" },
    [WRITE_JOBS] = { "jobs", "IIIIIIIIBBBBBBBB",
        "INSERT INTO job (seq, created_at, run_at, deadline, rank, event, lane, priority, key, digest, id, content_type,"
        " headers, correlation_id, metadata, body)"
        " SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)" },
    [WRITE_BODY] = { "job_body", "IBB",
        "UPDATE job t SET body = x.body, digest = x.digest FROM unnest($1, $2, $3) x(seq, body, digest)"
        " WHERE t.seq = x.seq" },
    [WRITE_STATE] = { "state", "IIIIIIIIIIIIIIIIIIIIIIBBBB",
        "INSERT INTO state (seq, state, priority, step, rank, generation, attempts, attempts_total, retry_count, step_count,"
        " redrives_auto, doubted, first_at, run_at, deadline, updated_at, failed_at, look_failed_at, dead_at, leaves_at,"
        " last_class, event, last_code, last_error, dead_code, reference) SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8,"
        " $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)"
        " ON CONFLICT (seq) DO UPDATE SET state = excluded.state, priority = excluded.priority, step = excluded.step,"
        " rank = excluded.rank, generation = excluded.generation, attempts = excluded.attempts,"
        " attempts_total = excluded.attempts_total, retry_count = excluded.retry_count, step_count = excluded.step_count,"
        " redrives_auto = excluded.redrives_auto, doubted = excluded.doubted, first_at = excluded.first_at,"
        " run_at = excluded.run_at, deadline = excluded.deadline, updated_at = excluded.updated_at,"
        " failed_at = excluded.failed_at, look_failed_at = excluded.look_failed_at, dead_at = excluded.dead_at,"
        " leaves_at = excluded.leaves_at, last_class = excluded.last_class, event = excluded.event,"
        " last_code = excluded.last_code, last_error = excluded.last_error, dead_code = excluded.dead_code,"
        " reference = excluded.reference" },
    [WRITE_QUEUE] = { "queue", "III", "INSERT INTO queue (lane, rank, seq) SELECT * FROM unnest($1, $2, $3)" },
    [WRITE_LEASE] = { "lease", "IIIIIIIIB",
        "INSERT INTO lease (seq, token, until, at, first_at, event, attempts, attempts_total, owner)"
        " SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)"
        " ON CONFLICT (seq) DO UPDATE SET until = excluded.until, at = excluded.at, event = excluded.event" },
    [WRITE_TIMER] = { "timer", "II", "INSERT INTO timer (at, seq) SELECT * FROM unnest($1, $2)" },
    [WRITE_EVENTS_DELETE] = { "events_delete", "ii", "DELETE FROM event WHERE chain = $1 AND number <= $2" },
    [WRITE_ARCHIVE_DELETE] = { "archive_delete", "i", "DELETE FROM archive WHERE event <= $1" },
    [WRITE_TRIMMED] = { "trimmed", "iib",
        "INSERT INTO trimmed (chain, number, hash) VALUES ($1, $2, $3)"
        " ON CONFLICT (chain) DO UPDATE SET number = excluded.number, hash = excluded.hash" },
    [WRITE_EVENTS] = { "events", "IIIIIIIIIBBBBB",
        "INSERT INTO event (chain, number, at, lane, type, state, attempt, previous, form, hash, salt, destination, job, data)"
        " SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)" },
    [WRITE_ARCHIVE] = { "archive", "IB", "INSERT INTO archive (event, key) SELECT * FROM unnest($1, $2)" },
    [WRITE_SAVED] = { "saved", "bbb",
        "INSERT INTO kept (space, name, value) VALUES ($1, $2, $3)"
        " ON CONFLICT (space, name) DO UPDATE SET value = excluded.value" },
    [WRITE_SAVED_DELETE] = { "saved_delete", "bb", "DELETE FROM kept WHERE space = $1 AND name = $2" },
    [WRITE_COUNTS] = { "counts", "IIIIIIIIII",
        "INSERT INTO lane_count AS c (lane, slot, pending, running, waiting, completed, dead, cancelled, ready, stored)"
        " SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (lane, slot) DO UPDATE SET"
        " pending = c.pending + excluded.pending, running = c.running + excluded.running,"
        " waiting = c.waiting + excluded.waiting, completed = c.completed + excluded.completed, dead = c.dead + excluded.dead,"
        " cancelled = c.cancelled + excluded.cancelled, ready = c.ready + excluded.ready,"
        " stored = c.stored + excluded.stored" },
    [WRITE_SEAL] = { "seal", "iiiibb", "SELECT insist_seal($1, $2, $3, $4, $5, $6)" },
    [WRITE_SYNC] = { "sync", "", "SET LOCAL synchronous_commit = on" },
    [WRITE_SYNC_NUMBER] = { "sync_number", "", "SELECT pg_current_xact_id()" },
    [WRITE_COMMIT] = { "commit", "", "COMMIT" },
    [WRITE_ROLLBACK] = { "rollback", "", "ROLLBACK" },

    [READ_JOB] = { "read_job", "bibbi",
        JOB_READ "CASE WHEN $5 <> 0 THEN j.body END, l.destination, l.tenant FROM"
        " (SELECT seq FROM job WHERE key = $1 AND key IS NOT NULL UNION ALL"
        " SELECT seq FROM job WHERE seq = $2 AND key IS NULL AND id = $3) f"
        " JOIN job j ON j.seq = f.seq JOIN lane l ON l.id = j.lane AND l.tenant = $4" STATE_JOIN LEASE_JOIN },
    [READ_JOB_SEQ] = { "read_job_seq", "ii",
        JOB_READ "CASE WHEN $2 <> 0 THEN j.body END, l.destination, l.tenant FROM job j JOIN lane l ON l.id = j.lane"
        STATE_JOIN LEASE_JOIN " WHERE j.seq = $1" },
    [READ_PAGE] = { "read_page", "iibbbii", PAGE("SELECT seq FROM job WHERE seq < $1") },
    [READ_PAGE_DEAD] = { "read_page_dead", "iibbbii", PAGE("SELECT seq FROM state WHERE state = 5 AND seq < $1") },
    [READ_PAGE_WAITING] = { "read_page_waiting", "iibbbii", PAGE("SELECT seq FROM state WHERE state = 3 AND seq < $1") },
    [READ_PAGE_RUNNING] = { "read_page_running", "iibbbii", PAGE("SELECT seq FROM lease WHERE seq < $1") },
    [READ_PAGE_ID] = { "read_page_id", "iibbbiibbib",
        PAGE("SELECT seq FROM (SELECT seq FROM job WHERE key >= $8 AND key <= $9 AND key IS NOT NULL AND id = $11 UNION ALL"
             " SELECT seq FROM job WHERE seq = $10 AND key IS NULL AND id = $11) i WHERE seq + 0 < $1") }, /* not by seq */
    [READ_EVENTS] = { "read_events", "iii",
        "SELECT " EVENT_COLUMNS " FROM event v LEFT JOIN lane l ON l.id = v.lane WHERE v.chain = $1 AND v.number > $2"
        " ORDER BY v.number LIMIT $3" },
    [READ_HISTORY] = { "read_history", "bibbi",
        "WITH RECURSIVE roots AS (SELECT coalesce(e.event, s.event, j.event) AS number FROM"
        " (SELECT seq FROM job WHERE key = $1 AND key IS NOT NULL UNION ALL"
        " SELECT seq FROM job WHERE seq = $2 AND key IS NULL AND id = $3) f JOIN job j ON j.seq = f.seq"
        " JOIN lane l ON l.id = j.lane AND l.tenant = $4" STATE_JOIN LEASE_JOIN
        " UNION ALL (SELECT event FROM archive WHERE key = $1 ORDER BY event DESC LIMIT $5)),"
        " walk AS (SELECT v.number, v.previous, 1 AS depth FROM roots r" EVENT_AT("r.number")
        " UNION ALL SELECT v.number, v.previous, w.depth + 1 FROM walk w" EVENT_AT("w.previous")
        " WHERE w.previous > 0 AND w.previous < w.number AND w.depth < $5)"
        " SELECT " EVENT_COLUMNS " FROM walk w" EVENT_AT("w.number")
        " LEFT JOIN lane l ON l.id = v.lane ORDER BY w.number DESC LIMIT $5" },
    [READ_LANES] = { "read_lanes", "ii", LANES("SELECT * FROM lane WHERE live AND id > $1 ORDER BY live, id LIMIT $2") },
    [READ_LANE] = { "read_lane", "bb", LANES("SELECT * FROM lane WHERE destination = $1 AND tenant = $2 AND live") },
    [READ_AHEAD] = { "read_ahead", "iiii",
        "SELECT count(*) FROM (SELECT 1 FROM queue WHERE lane = $1 AND (rank, seq) < ($2, $3) LIMIT $4) a" },
    [READ_SAVED] = { "read_saved", "bb", "SELECT value FROM kept WHERE space = $1 AND name = $2" },
    [READ_SAVED_LIST] = { "read_saved_list", "bbi",
        "SELECT name, value FROM kept WHERE space = $1 AND ($2 = ''::bytea OR name < $2) ORDER BY name DESC LIMIT $3" },
};

const struct postgres_text *postgres_text(enum postgres_statement statement)
{
    assert(statement >= 0 && statement < POSTGRES_STATEMENTS && texts[statement].name);
    return &texts[statement];
}
