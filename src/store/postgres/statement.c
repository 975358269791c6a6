#include "store/postgres/statement.h"

#include "store/postgres/events.h"

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
/* What a beat says need not outlive the server; and a bell is heard by whoever listens when it rings. */
const char postgres_settings_node[] =
    PLANS " SET lock_timeout = '2s'; SET statement_timeout = '3s'; SET synchronous_commit = off;"
          " DO $$ BEGIN EXECUTE format('LISTEN %I', 'insist ' || current_schema()); END $$";

#define JOB_KNOWN                                                                                                           \
    "j.seq, j.lane, j.key, j.digest, j.id, j.created_at, j.run_at, j.deadline, j.rank, j.event, j.priority, j.chain, "
#define JOB_ABOUT "j.content_type, j.headers, j.correlation_id, j.metadata, j.order_key, j.callback, "
#define STATE_COLUMNS                                                                                                       \
    "s.state, s.priority, s.step, s.rank, s.generation, s.attempts, s.attempts_total, s.retry_count, s.step_count, "        \
    "s.redrives_auto, s.doubted, s.first_at, s.run_at, s.deadline, s.updated_at, s.failed_at, s.look_failed_at, "           \
    "s.dead_at, s.leaves_at, s.last_class, s.last_code, s.last_error, s.dead_code, s.reference, s.redrive, s.event, s.link, "
#define LEASE_COLUMNS "e.token, e.until, e.at, e.first_at, e.event, e.attempts, e.attempts_total, e.owner, e.session, "
#define NO_LEASE                                                                                                            \
    "NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::int, NULL::int, NULL::bytea, NULL::bigint, "

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
    " CASE WHEN octet_length(j.body) <= 16384 THEN j.body END, w.number, y.ctid"

#define JOB_READ "SELECT " JOB_KNOWN JOB_ABOUT STATE_COLUMNS LEASE_COLUMNS "false, octet_length(j.body), "

/* A row that is to go and is not there was changed by another node meanwhile: the division fails, and the batch is anew. */
#define ALL_OF(DELETION, COUNT) "WITH d AS (" DELETION " RETURNING 1) SELECT 1 / (count(*) = " COUNT ")::int FROM d"

/* Rows of so many numbers each, one behind the other in $1: the first number of the row is $1[i + 1]. */
#define ROWS_OF(NUMBERS) "generate_series(0, cardinality($1) - 1, " NUMBERS ") i"
#define NULLABLE(NUMBER) "nullif(" NUMBER ", -9223372036854775808)" /* INSTANT_NONE */

/* The last column is how many jobs it has; one that another node has emptied may still be marked as live. */
#define LANE_SUMS                                                                                                           \
    " CROSS JOIN LATERAL (SELECT coalesce(sum(pending), 0)::bigint AS pending,"                                             \
    " coalesce(sum(running), 0)::bigint AS running,"                                                                        \
    " coalesce(sum(waiting), 0)::bigint AS waiting, coalesce(sum(completed), 0)::bigint AS completed,"                      \
    " coalesce(sum(dead), 0)::bigint AS dead, coalesce(sum(cancelled), 0)::bigint AS cancelled,"                            \
    " coalesce(sum(ready), 0)::bigint AS ready, coalesce(sum(stored), 0)::bigint AS stored,"                                \
    " coalesce(sum(pending + running + waiting + dead), 0)::bigint AS sum_open FROM lane_count WHERE lane = l.id) c"
#define LANES(WHICH)                                                                                                        \
    "SELECT l.id, l.destination, l.tenant, c.*, l.shard, l.live FROM (" WHICH ") l" LANE_SUMS " ORDER BY l.id"

#define EVENT_COLUMNS                                                                                                       \
    "v.number, v.at, v.type, v.state, v.attempt, coalesce(l.destination, v.destination), coalesce(l.tenant, ''::bytea),"    \
    " v.job, v.data, v.previous, v.hash, v.form, v.salt, v.digest"

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

/* The first of a chain behind a place of which the round does not know. */
#define CHAIN_NEXT                                                                                                          \
    " FROM (SELECT c.seq FROM chained c WHERE c.lane = $2 AND c.chain = $3 AND c.seq > $4 AND c.seq <> ALL($1)"             \
    " ORDER BY c.seq LIMIT 1) f JOIN job j ON j.seq = f.seq"

#define STATE_ROW "(IIIIIIIIIIIIIIIIIIIIIIIBBBBB"
#define STATE_INSERT                                                                                                        \
    "INSERT INTO state (seq, state, priority, step, rank, generation, attempts, attempts_total, retry_count, step_count,"   \
    " redrives_auto, doubted, first_at, run_at, deadline, updated_at, failed_at, look_failed_at, dead_at, leaves_at,"       \
    " last_class, event, link, last_code, last_error, dead_code, reference, redrive)"                                       \
    " SELECT * FROM unnest($1::state_row[])"

static const struct postgres_text texts[POSTGRES_STATEMENTS] = {
    [ASK_TAKE] = { "take", "bi",
        "INSERT INTO shard AS h (destination, session, epoch) VALUES ($1, $2, 1) ON CONFLICT (destination) DO UPDATE"
        " SET session = $2, epoch = h.epoch + (h.session = 0)::int WHERE h.session IN (0, $2) RETURNING id, epoch" },
    [ASK_GIVE] = { "give", "bi",
        "UPDATE shard SET session = 0, epoch = epoch + 1 WHERE destination = $1 AND session = $2 RETURNING id, epoch" },
    [ASK_LOCK_KEY] = { "lock_key", "B",
        "SELECT 1 FROM unnest($1) x(key) JOIN job j ON j.key = x.key AND j.key IS NOT NULL"
        " LEFT JOIN LATERAL (SELECT 1 FROM lease WHERE seq = j.seq FOR UPDATE) e ON true FOR UPDATE OF j" },
    [ASK_LOCK_SEQ] = { "lock_seq", "I",
        "SELECT 1 FROM unnest($1) x(seq) JOIN job j ON j.seq = x.seq"
        " LEFT JOIN LATERAL (SELECT 1 FROM lease WHERE seq = j.seq FOR UPDATE) e ON true FOR UPDATE OF j" },
    [ASK_BY_LEASE] = { "by_lease", "I",
        "SELECT " JOB_KNOWN "NULL::bytea, NULL::bytea, NULL::bytea, NULL::bytea, NULL::bytea, NULL::bytea, " STATE_COLUMNS
        LEASE_COLUMNS
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
    [ASK_SHARDS] = { "ask_shards", "B",
        "WITH n AS (INSERT INTO shard (destination) SELECT destination FROM unnest($1) x(destination)"
        " ON CONFLICT (destination) DO NOTHING RETURNING id, destination) SELECT id, destination FROM n UNION ALL"
        " SELECT h.id, h.destination FROM unnest($1) x(destination) JOIN shard h ON h.destination = x.destination" },
    /* Of the database: stores in two of its schemas may wait for each other here, as two keys of one number may, no more. */
    [ASK_CHAIN_LOCK] = { "chain_lock", "I",
        "SELECT pg_advisory_xact_lock(o.chain) FROM (SELECT DISTINCT chain FROM unnest($1) x(chain) ORDER BY 1) o" },
    [ASK_CHAINED] = { "chained", "BBI",
        JOB_ANY " FROM unnest($1, $2, $3) x(destination, tenant, chain) JOIN lane l ON l.destination = x.destination"
        " AND l.tenant = x.tenant CROSS JOIN LATERAL (SELECT c.seq FROM chained c WHERE c.lane = l.id"
        " AND c.chain = x.chain ORDER BY c.seq LIMIT 1) f JOIN job j ON j.seq = f.seq" STATE_JOIN LEASE_JOIN QUEUE_JOIN },
    [ASK_CHAIN_NEXT_LOCK] = { "chain_next_lock", "Iiii", "SELECT 1" CHAIN_NEXT " FOR UPDATE OF j" },
    [ASK_CHAIN_NEXT] = { "chain_next", "Iiii", JOB_ANY CHAIN_NEXT STATE_JOIN LEASE_JOIN QUEUE_JOIN },
    [ASK_CLAIM] = { "claim", "IIII",
        JOB_CLAIMED " FROM unnest($1, $2, $3, $4) WITH ORDINALITY w(lane, max, rank, seq, number)"
        " CROSS JOIN LATERAL (SELECT q.ctid, q.seq FROM queue q WHERE q.lane = w.lane AND (q.rank, q.seq) > (w.rank, w.seq)"
        " ORDER BY q.rank, q.seq LIMIT w.max) y JOIN job j ON j.seq = y.seq" STATE_JOIN },
    [ASK_CLAIM_FAILED_LAST] = { "claim_failed_last", "IIII",
        JOB_CLAIMED " FROM unnest($1, $2, $3, $4) WITH ORDINALITY w(lane, max, failed, looks, number)"
        " CROSS JOIN LATERAL (SELECT c.ctid, c.seq FROM (SELECT q.ctid, q.rank, q.seq,"
        " (SELECT f.look_failed_at FROM state f WHERE f.seq = q.seq) AS failed FROM queue q WHERE q.lane = w.lane"
        " ORDER BY q.rank, q.seq LIMIT w.looks) c"
        " ORDER BY coalesce(c.failed >= w.failed, false), CASE WHEN c.failed >= w.failed THEN c.failed END, c.rank, c.seq"
        " LIMIT w.max) y JOIN job j ON j.seq = y.seq" STATE_JOIN },
    [ASK_BODY] = { "body", "I", "SELECT j.seq, j.body FROM unnest($1) x(seq) JOIN job j ON j.seq = x.seq" },
    [ASK_DUE] = { "due", "Iiii",
        JOB_ANY ", t.at, t.seq FROM (SELECT d.at, d.seq, row_number() OVER (ORDER BY d.turn, d.at, d.seq) AS place"
        " FROM unnest($1) o(session) JOIN shard h ON h.session = o.session CROSS JOIN LATERAL"
        " (SELECT r.at, r.seq, row_number() OVER (ORDER BY r.at, r.seq) AS turn FROM"
        " (SELECT at, seq FROM timer WHERE shard = h.id AND at >= $4 AND at <= $2 ORDER BY at, seq"
        " LIMIT $3 FOR UPDATE SKIP LOCKED) r) d" /* what somebody changes by its name just now may be put back as it was */
        " ORDER BY d.turn, d.at, d.seq LIMIT $3) t" /* the last of so many only says that there are more: it comes last */
        " LEFT JOIN job j ON j.seq = t.seq" STATE_JOIN LEASE_JOIN QUEUE_JOIN " ORDER BY t.place = $3, t.at, t.seq" },
    [ASK_NEXT] = { "next_due", "Ii",
        "SELECT min(d.at) FROM unnest($1) o(session) JOIN shard h ON h.session = o.session CROSS JOIN LATERAL"
        " (SELECT at FROM timer WHERE shard = h.id AND at > $2 ORDER BY at, seq LIMIT 1) d" },
    [ASK_ORPHANS] = { "orphans", "Iiiiii",
        "SELECT " JOB_KNOWN JOB_ABOUT STATE_COLUMNS LEASE_COLUMNS "false, 0, NULL::bytea,"
        " (SELECT d.at FROM ended d WHERE d.session = e.session) FROM"
        " (SELECT * FROM lease WHERE (until, seq) > ($2, $3) ORDER BY until, seq OFFSET 0) e" /* as of QUEUE_JOIN */
        " JOIN job j ON j.seq = e.seq" STATE_JOIN " JOIN lane l ON l.id = j.lane JOIN shard h ON h.id = l.shard"
        " WHERE h.session = ANY ($1)"
        " AND (e.until <= $4 OR (e.owner = ''::bytea AND $5 > 0 AND CASE WHEN e.session = 0 THEN e.token < $5 ELSE"
        " NOT EXISTS (SELECT 1 FROM node n WHERE n.session = e.session) END)) ORDER BY e.until, e.seq LIMIT $6" },
    /*
     * Of each chain that has two that are old: of one that has less none goes. Page by page, until there are enough or they
     * are young; in their order, as the loops give them.
     */
    [ASK_OLDEST_EVENTS] = { "oldest_events", "ii",
        "SELECT v.first, v.last, v.at, v.hashes FROM (SELECT id, coalesce((SELECT number FROM trimmed WHERE chain = id),"
        " id::bigint << 40) AS gone FROM chain WHERE id >= 0 OFFSET 0) c CROSS JOIN LATERAL (SELECT at FROM event_page"
        " WHERE last > c.gone + 1 AND last < (c.id + 1)::bigint << 40 ORDER BY last LIMIT 1) o CROSS JOIN LATERAL"
        " (WITH RECURSIVE w AS ((SELECT first, last, at, hashes, last - first + 1 AS events FROM event_page"
        " WHERE last > c.gone AND last < (c.id + 1)::bigint << 40 ORDER BY last LIMIT 1)"
        " UNION ALL SELECT n.first, n.last, n.at, n.hashes, w.events + n.last - n.first + 1 FROM w CROSS JOIN LATERAL"
        " (SELECT first, last, at, hashes FROM event_page WHERE last > w.last AND last < (c.id + 1)::bigint << 40"
        " ORDER BY last LIMIT 1) n WHERE w.events < $2 AND w.at < $1) SELECT * FROM w) v WHERE o.at < $1" },
    [ASK_TRIMMED] = { "ask_trimmed", "",
        "SELECT number, hash FROM trimmed WHERE chain >= 0 ORDER BY chain LIMIT 64" },
    [ASK_ERASE_EVENTS] = { "erase_events", "I",
        "SELECT form FROM (SELECT insist_event_erase(x.number) AS form FROM unnest($1) x(number) OFFSET 0) e"
        " WHERE form IS NOT NULL" },
    [ASK_SEQ_BLOCK] = { "seq_block", "", "SELECT nextval('job_block')" },
    [ASK_TOKEN_BLOCK] = { "token_block", "", "SELECT nextval('token_block')" },
    [ASK_LANE_BLOCK] = { "lane_block", "", "SELECT nextval('lane_block')" },
    [ASK_LANES_BY_ID] = { "ask_lanes_by_id", "I",
        LANES("SELECT l.* FROM unnest($1) x(id) JOIN lane l ON l.id = x.id") },
    [ASK_HEADS] = { "heads", "i",
        "SELECT number, hash FROM chain WHERE id >= 0 AND id <> $1 AND number > id::bigint << 40 ORDER BY id LIMIT 63" },
    [ASK_SESSION] = { "session", "i", "SELECT session, batch FROM chain WHERE id = $1" },
    [ASK_BACKLOG] = { "backlog", "", "SELECT coalesce(sum(waiting), 0)::bigint FROM chain WHERE id >= 0" },

    [WRITE_BEGIN] = { "begin", "", "BEGIN" },
    [WRITE_LANES] = { "lanes", "IBBI",
        "INSERT INTO lane (id, destination, tenant, shard, live) SELECT *, true FROM unnest($1, $2, $3, $4)" },
    [WRITE_LANES_LIVE] = { "lanes_live", "II",
        "UPDATE lane t SET live = x.live <> 0 FROM unnest($1, $2) x(id, live) WHERE t.id = x.id" },
    [WRITE_STATE_DELETE] = { "state_delete", "I", "DELETE FROM state t USING unnest($1) x(seq) WHERE t.seq = x.seq" },
    /* By their last events, 0: of a job that had no state. What an attempt has changed meanwhile begins anew, as ALL_OF. */
    [WRITE_STATE_TAKEN] = { "state_taken", "N",
        "WITH d AS (DELETE FROM state t USING " ROWS_OF("2") " WHERE t.seq = $1[i + 1] RETURNING t.event - $1[i + 2] AS off)"
        " SELECT 1 / (count(*) FILTER (WHERE off = 0) = (SELECT count(*) FROM " ROWS_OF("2") " WHERE $1[i + 2] > 0)"
        " AND count(*) FILTER (WHERE off <> 0) = 0)::int FROM d" },
    [WRITE_JOB_DELETE] = { "job_delete", "I", "DELETE FROM job t USING unnest($1) x(seq) WHERE t.seq = x.seq" },
    [WRITE_QUEUE_DELETE] = { "queue_delete", "N",
        ALL_OF("DELETE FROM queue t USING " ROWS_OF("3") " WHERE t.lane = $1[i + 1] AND t.rank = $1[i + 2]"
               " AND t.seq = $1[i + 3]", "cardinality($1) / 3") },
    /* By their places, as the claim has seen them: nobody moves a row while this transaction reads the table. */
    [WRITE_QUEUE_TAKEN] = { "queue_taken", "TII",
        ALL_OF("DELETE FROM queue t USING unnest($1, $2, $3) x(place, rank, seq)"
               " WHERE t.ctid = x.place AND t.rank = x.rank AND t.seq = x.seq", "cardinality($1)") },
    [WRITE_LEASE_DELETE] = { "lease_delete", "N",
        ALL_OF("DELETE FROM lease t USING " ROWS_OF("2") " WHERE t.seq = $1[i + 1] AND t.event = $1[i + 2]",
               "cardinality($1) / 2") },
    [WRITE_TIMER_DELETE] = { "timer_delete", "N",
        ALL_OF("DELETE FROM timer t USING " ROWS_OF("3") " WHERE t.shard = $1[i + 1] AND t.at = $1[i + 2]"
               " AND t.seq = $1[i + 3]", "cardinality($1) / 3") },
    [WRITE_CHAINED_DELETE] = { "chained_delete", "N",
        ALL_OF("DELETE FROM chained t USING " ROWS_OF("3") " WHERE t.lane = $1[i + 1] AND t.chain = $1[i + 2]"
               " AND t.seq = $1[i + 3]", "cardinality($1) / 3") },
    [WRITE_JOBS] = { "jobs", "(IIIIIIIIBBBBBBBBIBB",
        "INSERT INTO job (seq, created_at, run_at, deadline, rank, event, lane, priority, key, digest, id, content_type,"
        " headers, correlation_id, metadata, body, chain, order_key, callback)"
        " SELECT * FROM unnest($1::job_row[])" },
    /* Of most jobs no more is to be said; a column of a row type costs more than three numbers do here. */
    [WRITE_JOBS_BARE] = { "jobs_bare", "NBBBBB",
        "INSERT INTO job (seq, created_at, run_at, rank, event, lane, priority, key, digest, id, content_type, body, deadline,"
        " headers, correlation_id, metadata, chain, order_key, callback) SELECT $1[i + 1], $1[i + 2], $1[i + 3], $1[i + 4],"
        " $1[i + 5], $1[i + 6], $1[i + 7], x.key, x.digest, x.id, x.content_type, x.body, NULL, '', '', '', 0, '', ''"
        " FROM ROWS FROM (unnest($2), unnest($3), unnest($4), unnest($5), unnest($6),"
        " generate_series(0, cardinality($1) - 1, 7)) x(key, digest, id, content_type, body, i)" },
    [WRITE_BODY] = { "job_body", "IBB",
        "UPDATE job t SET body = x.body, digest = x.digest FROM unnest($1, $2, $3) x(seq, body, digest)"
        " WHERE t.seq = x.seq" },
    [WRITE_STATE_DONE] = { "state_done", "NB",
        "INSERT INTO state (seq, priority, rank, attempts, attempts_total, first_at, run_at, deadline, updated_at, leaves_at,"
        " event, last_code, last_class, state, step, generation, retry_count, step_count, redrives_auto, doubted, link,"
        " last_error, dead_code, reference, redrive) SELECT $1[i + 1], $1[i + 2], $1[i + 3], $1[i + 4], $1[i + 5], $1[i + 6],"
        " $1[i + 7], " NULLABLE("$1[i + 8]") ", $1[i + 9], " NULLABLE("$1[i + 10]") ", $1[i + 11], $2[$1[i + 12]], 1, 4, 0, 1, 0, 0,"
        " 0, 0, 0, '', '', '', '' FROM " ROWS_OF("12") },
    [WRITE_STATE_NEW] = { "state_new", STATE_ROW, STATE_INSERT },
    [WRITE_STATE] = { "state", STATE_ROW,
        STATE_INSERT
        " ON CONFLICT (seq) DO UPDATE SET state = excluded.state, priority = excluded.priority, step = excluded.step,"
        " rank = excluded.rank, generation = excluded.generation, attempts = excluded.attempts,"
        " attempts_total = excluded.attempts_total, retry_count = excluded.retry_count, step_count = excluded.step_count,"
        " redrives_auto = excluded.redrives_auto, doubted = excluded.doubted, first_at = excluded.first_at,"
        " run_at = excluded.run_at, deadline = excluded.deadline, updated_at = excluded.updated_at,"
        " failed_at = excluded.failed_at, look_failed_at = excluded.look_failed_at, dead_at = excluded.dead_at,"
        " leaves_at = excluded.leaves_at, last_class = excluded.last_class, event = excluded.event,"
        " last_code = excluded.last_code, last_error = excluded.last_error, dead_code = excluded.dead_code,"
        " reference = excluded.reference, redrive = excluded.redrive, link = excluded.link" },
    [WRITE_QUEUE] = { "queue", "N",
        "INSERT INTO queue (lane, rank, seq) SELECT $1[i + 1], $1[i + 2], $1[i + 3] FROM " ROWS_OF("3") },
    [WRITE_LEASE_NEW] = { "lease_new", "NB",
        "INSERT INTO lease (seq, token, until, at, first_at, event, attempts, attempts_total, session, owner) SELECT $1[i + 1],"
        " $1[i + 2], $1[i + 3], $1[i + 4], $1[i + 5], $1[i + 6], $1[i + 7], $1[i + 8], $1[i + 9], $2[$1[i + 10]]"
        " FROM " ROWS_OF("10") },
    [WRITE_LEASE] = { "lease", "N",
        ALL_OF("UPDATE lease t SET until = $1[i + 3], at = $1[i + 4], event = $1[i + 5] FROM " ROWS_OF("6")
               " WHERE t.seq = $1[i + 1] AND t.token = $1[i + 2] AND t.event = $1[i + 6]", "cardinality($1) / 6") },
    [WRITE_TIMER] = { "timer", "N",
        "INSERT INTO timer (shard, at, seq) SELECT $1[i + 1], $1[i + 2], $1[i + 3] FROM " ROWS_OF("3") },
    [WRITE_CHAINED] = { "chained_add", "N",
        "INSERT INTO chained (lane, chain, seq) SELECT $1[i + 1], $1[i + 2], $1[i + 3] FROM " ROWS_OF("3") },
    [WRITE_EVENTS_DELETE] = { "events_delete", "i", "DELETE FROM event_page WHERE last > $1 >> 40 << 40 AND last <= $1" },
    /* The page of which some go and some stay. */
    [WRITE_EVENTS_CUT] = { "events_cut", "i",
        "UPDATE event_page SET first = $1 + 1, types = substring(types FROM ($1 - first + 2)::int),"
        " states = substring(states FROM ($1 - first + 2)::int), hashes = substring(hashes FROM (($1 - first) * 32 + 33)::int),"
        " lanes = lanes[($1 - first + 2)::int:],"
        " attempts = attempts[($1 - first + 2)::int:], previous = previous[($1 - first + 2)::int:],"
        " jobs = jobs[($1 - first + 2)::int:], data = data[($1 - first + 2)::int:], digests = digests[($1 - first + 2)::int:]"
        " WHERE last = (SELECT last FROM event_page WHERE last > $1 ORDER BY last LIMIT 1) AND first <= $1" },
    [WRITE_ARCHIVE_DELETE] = { "archive_delete", "i", "DELETE FROM archive WHERE event > $1 >> 40 << 40 AND event <= $1" },
    [WRITE_TRIMMED] = { "trimmed", "iib",
        "INSERT INTO trimmed (chain, number, hash) VALUES ($1, $2, $3)"
        " ON CONFLICT (chain) DO UPDATE SET number = excluded.number, hash = excluded.hash" },
    [WRITE_ENDED_DELETE] = { "ended_delete", "i",
        "DELETE FROM ended d WHERE d.session > 0 AND NOT EXISTS (SELECT 1 FROM lease e WHERE e.seq > 0 AND e.session ="
        " d.session) AND (coalesce(d.at, d.noted) < $1 OR EXISTS (SELECT 1 FROM ended n WHERE n.session > d.session AND n.node = d.node)"
        " OR EXISTS (SELECT 1 FROM node n WHERE n.name = d.node AND n.session > 0))" },
    [WRITE_EVENTS] = { "events", "IIIBBiiibbbb",
        "INSERT INTO event_page (first, last, lanes, attempts, previous, jobs, data, at, form, destination, types, states,"
        " hashes) VALUES ($6, $6 + cardinality($1) - 1, $1, $2, $3, $4, $5, $7, $8, $9, $10, $11, $12)" },
    [WRITE_ARCHIVE] = { "archive", "IB", "INSERT INTO archive (event, key) SELECT * FROM unnest($1, $2)" },
    [WRITE_SAVED] = { "saved", "bbb",
        "INSERT INTO kept (space, name, value) VALUES ($1, $2, $3)"
        " ON CONFLICT (space, name) DO UPDATE SET value = excluded.value" },
    [WRITE_SAVED_DELETE] = { "saved_delete", "bb", "DELETE FROM kept WHERE space = $1 AND name = $2" },
    [WRITE_TALLY] = { "tally", "BBI",
        "INSERT INTO kept AS k (space, name, value) SELECT space, name, convert_to(more::text, 'UTF8')"
        " FROM unnest($1, $2, $3) x(space, name, more) ORDER BY name ON CONFLICT (space, name) DO UPDATE SET value ="
        " convert_to((convert_from(k.value, 'UTF8')::bigint + convert_from(excluded.value, 'UTF8')::bigint)::text,"
        " 'UTF8')" },
    [WRITE_COUNTS] = { "counts", "N",
        "INSERT INTO lane_count AS c (lane, slot, pending, running, waiting, completed, dead, cancelled, ready, stored)"
        " SELECT $1[i + 1], $1[i + 2], $1[i + 3], $1[i + 4], $1[i + 5], $1[i + 6], $1[i + 7], $1[i + 8], $1[i + 9],"
        " $1[i + 10] FROM " ROWS_OF("10") " ON CONFLICT (lane, slot) DO UPDATE SET"
        " pending = c.pending + excluded.pending, running = c.running + excluded.running,"
        " waiting = c.waiting + excluded.waiting, completed = c.completed + excluded.completed, dead = c.dead + excluded.dead,"
        " cancelled = c.cancelled + excluded.cancelled, ready = c.ready + excluded.ready,"
        " stored = c.stored + excluded.stored" },
    [WRITE_LANES_TEND] = { "lanes_tend", "iii", "SELECT insist_lanes_tend($1, $2, $3)" },
    [WRITE_SEAL] = { "seal", "iiiibbi", "SELECT insist_seal($1, $2, $3, $4, $5, $6, $7)" },
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
    [READ_PAGE_REDRIVEN] = { "read_page_redriven", "iibbbii",
        PAGE("SELECT seq FROM state WHERE redrive <> ''::bytea AND seq < $1") },
    [READ_PAGE_ID] = { "read_page_id", "iibbbiibbib",
        PAGE("SELECT seq FROM (SELECT seq FROM job WHERE key >= $8 AND key <= $9 AND key IS NOT NULL AND id = $11 UNION ALL"
             " SELECT seq FROM job WHERE seq = $10 AND key IS NULL AND id = $11) i WHERE seq + 0 < $1") }, /* not by seq */
    [READ_EVENTS] = { "read_events", "ii",
        "SELECT " EVENT_COLUMNS " FROM (" EVENTS_AFTER("$1", "$2") ") v LEFT JOIN lane l ON l.id = v.lane"
        " ORDER BY v.number" },
    [READ_HISTORY] = { "read_history", "bibbi",
        "WITH RECURSIVE roots AS (SELECT coalesce(e.event, s.event, j.event) AS number, 0::bigint AS place FROM"
        " (SELECT seq FROM job WHERE key = $1 AND key IS NOT NULL UNION ALL"
        " SELECT seq FROM job WHERE seq = $2 AND key IS NULL AND id = $3) f JOIN job j ON j.seq = f.seq"
        " JOIN lane l ON l.id = j.lane AND l.tenant = $4" STATE_JOIN LEASE_JOIN
        " UNION ALL (SELECT a.event, row_number() OVER (ORDER BY v.at DESC, a.event DESC) FROM"
        " (SELECT event FROM archive WHERE key = $1 ORDER BY event DESC LIMIT $5) a" EVENT_AT("a.event") ")),"
        " walk AS (SELECT v.number, v.previous, r.place, 1 AS depth FROM roots r" EVENT_AT("r.number")
        " UNION ALL SELECT v.number, v.previous, w.place, w.depth + 1 FROM walk w" EVENT_AT("w.previous")
        " WHERE w.previous > 0 AND w.depth < $5)"
        " SELECT " EVENT_COLUMNS " FROM walk w" EVENT_AT("w.number")
        " LEFT JOIN lane l ON l.id = v.lane ORDER BY w.place, w.depth LIMIT $5" },
    [READ_LANES] = { "read_lanes", "ii",
        "SELECT l.id, l.destination, l.tenant, c.* FROM lane l" LANE_SUMS
        " WHERE l.live AND l.id > $1 AND c.stored > 0 ORDER BY l.live, l.id LIMIT $2" },
    [READ_LANE] = { "read_lane", "bb",
        "SELECT l.id, l.destination, l.tenant, c.* FROM lane l" LANE_SUMS
        " WHERE l.destination = $1 AND l.tenant = $2 AND l.live AND c.stored > 0" },
    [READ_AHEAD] = { "read_ahead", "iiii",
        "SELECT count(*) FROM (SELECT 1 FROM queue WHERE lane = $1 AND (rank, seq) < ($2, $3) LIMIT $4) a" },
    [READ_SAVED] = { "read_saved", "bb", "SELECT value FROM kept WHERE space = $1 AND name = $2" },
    [READ_SAVED_LIST] = { "read_saved_list", "bbi",
        "SELECT name, value FROM kept WHERE space = $1 AND ($2 = ''::bytea OR name < $2) ORDER BY name DESC LIMIT $3" },
    [READ_TOTALS] = { "read_totals", "",
        "SELECT h.destination, t.* FROM shard h LEFT JOIN gone g ON g.destination = h.destination"
        " CROSS JOIN LATERAL (SELECT coalesce(sum(c.pending), 0)::bigint, coalesce(sum(c.running), 0)::bigint,"
        " coalesce(sum(c.waiting), 0)::bigint, (coalesce(sum(c.completed), 0) + coalesce(g.completed, 0))::bigint,"
        " coalesce(sum(c.dead), 0)::bigint, (coalesce(sum(c.cancelled), 0) + coalesce(g.cancelled, 0))::bigint,"
        " coalesce(sum(c.ready), 0)::bigint, count(*) FILTER (WHERE c.stored > 0), count(*) AS lanes"
        " FROM (SELECT id FROM lane WHERE destination = h.destination OFFSET 0) l" LANE_SUMS ") t"
        " WHERE h.destination > ''::bytea AND (t.lanes > 0 OR g.destination IS NOT NULL) ORDER BY h.destination" },
    [READ_TOTALS_LARGEST] = { "read_totals_largest", "i",
        "SELECT m.* FROM shard h CROSS JOIN LATERAL (SELECT l.id, l.destination, l.tenant, c.*"
        " FROM (SELECT * FROM lane WHERE destination = h.destination OFFSET 0) l" LANE_SUMS
        " WHERE c.sum_open > 0 ORDER BY c.sum_open DESC, l.id LIMIT $1) m WHERE h.destination > ''::bytea"
        " ORDER BY m.destination, m.sum_open DESC, m.id" },
    [READ_HEADS] = { "read_heads", "", "SELECT number, hash FROM chain WHERE id >= 0 ORDER BY id LIMIT 64" },
    [READ_SESSIONS] = { "read_sessions", "",
        "SELECT session, name, url, beat, 0, NULL::bigint, since, version, config FROM node WHERE session > 0 UNION ALL"
        " SELECT session, node, url, 0, 1, at, 0, ''::bytea, ''::bytea FROM ended WHERE session > 0 ORDER BY 1" },
    [READ_SHARDS] = { "read_shards", "",
        "SELECT destination, session, epoch FROM shard WHERE destination >= ''::bytea ORDER BY destination" },

    [NODE_BEAT] = { "node_beat", "bib",
        "UPDATE node SET beat = beat + 1, config = $3 WHERE name = $1 AND session + 0 = $2"
        " RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::bigint" },
    [NODE_END] = { "node_end", "iii", "SELECT insist_end($1, nullif($2, -1), nullif($3, -1))" },
    [NODE_RING] = { "node_ring", "b", "SELECT pg_notify(('insist ' || current_schema())::name::text, convert_from($1, 'UTF8'))" }, /* cut off as LISTEN does */
    [NODE_SEALED] = { "node_sealed", "i", "SELECT coalesce((SELECT batch FROM chain WHERE id = $1), -1)" },
};

static const char *const rows[POSTGRES_STATEMENTS] = {
    [WRITE_JOBS] = "job_row",
    [WRITE_STATE_NEW] = "state_row",
    [WRITE_STATE] = "state_row",
};

const struct postgres_text *postgres_text(enum postgres_statement statement)
{
    assert(statement >= 0 && statement < POSTGRES_STATEMENTS && texts[statement].name);
    return &texts[statement];
}

const char *postgres_row(enum postgres_statement statement)
{
    assert(statement >= 0 && statement < POSTGRES_STATEMENTS);
    return rows[statement];
}
