#include "store/postgres/schema.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* What is updated much is vacuumed early, and gently enough not to be felt. */
#define BUSY_TABLE                                                                                                          \
    "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0"

/*
 * A job's own row is written once. What moves is in small tables: `queue` has what is ready, `lease` what runs, `timer`
 * what time will do, `state` what a job has become since it was inserted. Counters have a row a writer (slot), so that
 * no two write the same one; their sums are true. A row of `chain` is the end of a writer's chain of events, and the
 * seal of its last batch.
 */
static const char step_1[] =
    "CREATE TABLE lane (id int PRIMARY KEY, destination bytea NOT NULL, tenant bytea NOT NULL, live boolean NOT NULL,"
    " UNIQUE (destination, tenant));"
    "CREATE INDEX lane_live ON lane (live, id);"
    "CREATE TABLE lane_count (lane int, slot int, pending bigint NOT NULL, running bigint NOT NULL, waiting bigint NOT NULL,"
    " completed bigint NOT NULL, dead bigint NOT NULL, cancelled bigint NOT NULL, ready bigint NOT NULL,"
    " stored bigint NOT NULL, PRIMARY KEY (lane, slot)) WITH (fillfactor = 50, " BUSY_TABLE ");"
    "CREATE TABLE job (seq bigint PRIMARY KEY, created_at bigint NOT NULL, run_at bigint NOT NULL, deadline bigint,"
    " rank bigint NOT NULL, event bigint NOT NULL, lane int NOT NULL, priority smallint NOT NULL, key bytea,"
    " digest bytea NOT NULL, id bytea NOT NULL, content_type bytea NOT NULL, headers bytea NOT NULL,"
    " correlation_id bytea NOT NULL, metadata bytea NOT NULL, body bytea NOT NULL);"
    "ALTER TABLE job ALTER body SET STORAGE EXTERNAL;"
    "CREATE UNIQUE INDEX job_key ON job (key) WHERE key IS NOT NULL;"
    "CREATE TABLE queue (rank bigint NOT NULL, seq bigint NOT NULL, lane int NOT NULL, PRIMARY KEY (lane, rank, seq))"
    " WITH (" BUSY_TABLE ");"
    "CREATE TABLE lease (seq bigint PRIMARY KEY, token bigint NOT NULL, until bigint NOT NULL, at bigint NOT NULL,"
    " first_at bigint NOT NULL, event bigint NOT NULL, attempts int NOT NULL, attempts_total int NOT NULL,"
    " owner bytea NOT NULL) WITH (" BUSY_TABLE ");"
    "CREATE INDEX lease_until ON lease (until, seq);"
    "CREATE TABLE timer (at bigint NOT NULL, seq bigint NOT NULL, PRIMARY KEY (at, seq)) WITH (" BUSY_TABLE ");"
    "CREATE TABLE state (seq bigint PRIMARY KEY, rank bigint NOT NULL, first_at bigint, run_at bigint NOT NULL,"
    " deadline bigint, updated_at bigint NOT NULL, failed_at bigint, look_failed_at bigint, dead_at bigint, leaves_at bigint,"
    " event bigint NOT NULL, generation int NOT NULL, attempts int NOT NULL, attempts_total int NOT NULL,"
    " retry_count int NOT NULL, step_count int NOT NULL, redrives_auto int NOT NULL, state smallint NOT NULL,"
    " priority smallint NOT NULL, step smallint NOT NULL, doubted smallint NOT NULL, last_class smallint NOT NULL,"
    " last_code bytea NOT NULL, last_error bytea NOT NULL, dead_code bytea NOT NULL, reference bytea NOT NULL)"
    " WITH (fillfactor = 80);"
    "CREATE INDEX state_dead ON state (seq) WHERE state = 5;"
    "CREATE INDEX state_waiting ON state (seq) WHERE state = 3;"
    "CREATE TABLE event (number bigint NOT NULL, at bigint NOT NULL, previous bigint NOT NULL, chain int NOT NULL,"
    " attempt int NOT NULL, lane int, type smallint NOT NULL, state smallint NOT NULL, form smallint NOT NULL,"
    " hash bytea NOT NULL, salt bytea, digest bytea, destination bytea NOT NULL, job bytea NOT NULL, data bytea NOT NULL,"
    " PRIMARY KEY (chain, number));"
    "CREATE TABLE archive (event bigint PRIMARY KEY, key bytea NOT NULL);"
    "CREATE INDEX archive_key ON archive (key, event);"
    "CREATE TABLE trimmed (chain int PRIMARY KEY, number bigint NOT NULL, hash bytea NOT NULL);"
    "CREATE TABLE kept (space bytea, name bytea, value bytea NOT NULL, PRIMARY KEY (space, name));"
    "CREATE TABLE chain (id int PRIMARY KEY, term bigint NOT NULL, batch bigint NOT NULL, number bigint NOT NULL,"
    " hash bytea NOT NULL, mark bytea NOT NULL) WITH (fillfactor = 20);"
    "INSERT INTO chain VALUES (0, 0, 0, 0, decode(repeat('00', 32), 'hex'), '');"
    "CREATE SEQUENCE job_block INCREMENT BY 4096;"
    "CREATE SEQUENCE token_block INCREMENT BY 1048576;"
    "CREATE FUNCTION insist_seal(bigint, bigint, bigint, bigint, bytea, bytea) RETURNS void LANGUAGE plpgsql AS $$ BEGIN"
    " UPDATE chain SET batch = $3, number = $4, hash = $5, mark = $6 WHERE id = $1 AND term = $2 AND batch = $3 - 1;"
    " IF NOT FOUND THEN RAISE 'another program writes to this store' USING ERRCODE = 'IN001'; END IF; END $$;"
    "INSERT INTO meta VALUES ('seed', (('x' || md5(random()::text || clock_timestamp()::text || pg_backend_pid()))::bit(64))"
    "::bigint);";

/*
 * Nodes that share the store. A node has a number (slot) for its chain and its counters, and a session while it runs. A
 * destination is a shard, which a session owns, or 0: nobody; the one without a name is the steward's office. Timers lie by
 * shard, so that nobody walks over another's. Chains after the first count from id << 40 on, so that a number of an event
 * tells its chain. What time an ended session was fenced stays until no lease names it; NULL: it ended in order.
 */
static const char step_2[] =
    "CREATE TABLE node (name bytea PRIMARY KEY, slot int NOT NULL UNIQUE, session bigint NOT NULL, beat bigint NOT NULL,"
    " since bigint NOT NULL, url bytea NOT NULL, place bytea NOT NULL, version bytea NOT NULL, config bytea NOT NULL)"
    " WITH (fillfactor = 20);"
    "CREATE INDEX node_session ON node (session);"
    "CREATE TABLE ended (session bigint PRIMARY KEY, at bigint, node bytea NOT NULL, url bytea NOT NULL);"
    "CREATE SEQUENCE shard_number;"
    "CREATE TABLE shard (id int PRIMARY KEY DEFAULT nextval('shard_number'), destination bytea NOT NULL UNIQUE,"
    " session bigint NOT NULL DEFAULT 0, epoch bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);"
    "CREATE INDEX shard_session ON shard (session, id);"
    "INSERT INTO shard (destination) SELECT DISTINCT destination FROM lane;"
    "ALTER TABLE lane ADD shard int;"
    "UPDATE lane l SET shard = h.id FROM shard h WHERE h.destination = l.destination;"
    "ALTER TABLE lane ALTER shard SET NOT NULL;"
    "ALTER TABLE timer ADD shard int;"
    "UPDATE timer t SET shard = l.shard FROM job j JOIN lane l ON l.id = j.lane WHERE j.seq = t.seq;"
    "ALTER TABLE timer ALTER shard SET NOT NULL, DROP CONSTRAINT timer_pkey, ADD PRIMARY KEY (shard, at, seq);"
    "ALTER TABLE lease ADD session bigint NOT NULL DEFAULT 0;"
    "ALTER TABLE chain ADD session bigint NOT NULL DEFAULT 0, ADD waiting bigint NOT NULL DEFAULT 0;"
    "UPDATE chain SET waiting = (SELECT coalesce(sum(pending + waiting), 0) FROM lane_count);"
    "CREATE SEQUENCE lane_block INCREMENT BY 64;"
    "SELECT setval('lane_block', (SELECT coalesce(max(id), 0) + 1 FROM lane), false);"
    "DROP FUNCTION insist_seal(bigint, bigint, bigint, bigint, bytea, bytea);"
    "CREATE FUNCTION insist_seal(bigint, bigint, bigint, bigint, bytea, bytea, bigint) RETURNS void LANGUAGE plpgsql AS $$"
    " BEGIN UPDATE chain SET batch = $3, number = $4, hash = $5, mark = $6, waiting = waiting + $7 WHERE id = $1"
    " AND term = $2 AND batch = $3 - 1;"
    " IF NOT FOUND THEN RAISE 'another program writes to this store' USING ERRCODE = 'IN001'; END IF; END $$;"
    /* A session, unless it has beaten since: whatever it committed is there when this returns, and nothing more follows. */
    "CREATE FUNCTION insist_end(bigint, bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ DECLARE gone node; BEGIN"
    " SELECT * INTO gone FROM node WHERE session = $1 AND beat = coalesce($2, beat) FOR UPDATE;"
    " IF NOT FOUND THEN RETURN false; END IF;"
    " UPDATE chain SET session = 0, term = term + 1 WHERE session = $1;"
    " INSERT INTO ended VALUES ($1, $3, gone.name, gone.url);"
    " UPDATE node SET session = 0 WHERE name = gone.name;"
    " UPDATE shard SET session = 0, epoch = epoch + 1 WHERE session = $1;"
    " PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'insist ' || $1"
    " AND xact_start IS NOT NULL AND pid <> pg_backend_pid(); RETURN true; END $$;";

/* What lanes have done whose counters are no more. */
static const char step_3[] =
    "CREATE TABLE gone (destination bytea PRIMARY KEY, completed bigint NOT NULL, cancelled bigint NOT NULL)";

#define SQL_TEXT(column) "convert_from(" column ", 'UTF8')"
#define SQL_TIME(column) "to_timestamp(" column " / 1000.0)"

/* For people and the queries that they have: the e-mail document's dead letters and SIFEN's queue, by their names. */
static const char step_4[] =
    "CREATE VIEW dlq AS SELECT " SQL_TEXT("j.id") " AS jobId, " SQL_TEXT("l.tenant") " AS companyId,"
    " " SQL_TEXT("l.destination") " AS destination, regexp_replace(" SQL_TEXT("s.last_code") ", '^[^:]*:', '')"
    " AS lastFailureCode, " SQL_TEXT("s.last_error") " AS lastFailureReason, " SQL_TEXT("s.dead_code") " AS deadCode,"
    " s.attempts AS failedAttempts, " SQL_TIME("j.created_at") " AS enqueuedAt, " SQL_TIME("s.dead_at") " AS movedToDLQAt,"
    " " SQL_TIME("s.leaves_at") " AS expiresAt FROM state s JOIN job j ON j.seq = s.seq JOIN lane l ON l.id = j.lane"
    " WHERE s.state = 5;"
    "CREATE VIEW DocumentosContingencia AS SELECT " SQL_TEXT("j.id") " AS Id,"
    " coalesce(nullif(" SQL_TEXT("j.correlation_id") ", ''), " SQL_TEXT("j.id") ") AS DocumentoElectronicoId,"
    " " SQL_TEXT("l.destination") " AS Destino, " SQL_TIME("j.created_at") " AS FechaCreacion,"
    " coalesce(s.priority, j.priority) + 1 AS Prioridad, coalesce(s.retry_count, 0) AS NumeroReintentos,"
    " CASE WHEN e.seq IS NOT NULL OR s.state = 3 THEN 'Reintentando' WHEN s.state = 5 THEN 'Error' ELSE 'Pendiente' END"
    " AS Estado, " SQL_TIME("coalesce(e.at, s.updated_at)") " AS UltimoIntento,"
    " CASE WHEN s.state = 3 AND e.seq IS NULL THEN " SQL_TIME("s.run_at") " END AS ProximoIntento,"
    " " SQL_TEXT("s.last_error") " AS MensajeError FROM job j JOIN lane l ON l.id = j.lane"
    " LEFT JOIN state s ON s.seq = j.seq LEFT JOIN lease e ON e.seq = j.seq"
    " WHERE s.seq IS NULL OR s.state IN (1, 2, 3, 5)";

/* A job that a redrive has sent back, until its end. An older program would lose what the dead letter was. */
static const char step_5[] = "ALTER TABLE state ADD COLUMN redrive bytea NOT NULL DEFAULT ''::bytea;"
                                   "CREATE INDEX state_redriven ON state (seq) WHERE redrive <> ''::bytea;";

/* Jobs of one key: `chained` has those that have not ended. `link`: 1, it is behind another; 2, one before it was lost. */
static const char step_6[] =
    "ALTER TABLE job ADD COLUMN chain bigint NOT NULL DEFAULT 0, ADD COLUMN order_key bytea NOT NULL DEFAULT '',"
    " ADD COLUMN callback bytea NOT NULL DEFAULT '';"
    "ALTER TABLE state ADD COLUMN link smallint NOT NULL DEFAULT 0;"
    "CREATE TABLE chained (chain bigint NOT NULL, seq bigint NOT NULL, lane int NOT NULL, PRIMARY KEY (lane, chain, seq))"
    " WITH (" BUSY_TABLE ");";

/* Rows on their way here, a type a table: numbers are bigint there, whatever the table has. No type is changed; add one. */
static const char step_7[] =
    "CREATE TYPE job_row AS (seq bigint, created_at bigint, run_at bigint, deadline bigint, rank bigint, event"
    " bigint, lane bigint, priority bigint, key bytea, digest bytea, id bytea, content_type bytea, headers bytea,"
    " correlation_id bytea, metadata bytea, body bytea, chain bigint, order_key bytea, callback bytea);"
    "CREATE TYPE state_row AS (seq bigint, state bigint, priority bigint, step bigint, rank bigint, generation"
    " bigint, attempts bigint, attempts_total bigint, retry_count bigint, step_count bigint, redrives_auto bigint,"
    " doubted bigint, first_at bigint, run_at bigint, deadline bigint, updated_at bigint, failed_at bigint,"
    " look_failed_at bigint, dead_at bigint, leaves_at bigint, last_class bigint, event bigint, link bigint, last_code"
    " bytea, last_error bytea, dead_code bytea, reference bytea, redrive bytea);"
    "CREATE TYPE queue_row AS (lane bigint, rank bigint, seq bigint);"
    "CREATE TYPE lease_row AS (seq bigint, token bigint, until bigint, at bigint, first_at bigint, event bigint,"
    " attempts bigint, attempts_total bigint, session bigint, owner bytea);"
    "CREATE TYPE event_row AS (chain bigint, number bigint, at bigint, lane bigint, type bigint, state bigint,"
    " attempt bigint, previous bigint, form bigint, hash bytea, salt bytea, destination bytea, job bytea, data bytea);"
    "CREATE TYPE count_row AS (lane bigint, slot bigint, pending bigint, running bigint, waiting bigint, completed"
    " bigint, dead bigint, cancelled bigint, ready bigint, stored bigint);";

/*
 * A lane without jobs: `emptied` is when its counters went into `gone`, 0 while it has some. Whoever counts in it again lets
 * it be used again, or hears that it is gone and begins anew with another: both take its row first, so that no node counts
 * in a lane that another deletes.
 */
static const char step_8[] =
    "ALTER TABLE lane ADD COLUMN emptied bigint NOT NULL DEFAULT 0;"
    "CREATE INDEX lane_emptied ON lane (emptied, id);"
    "INSERT INTO meta VALUES ('lane_seen', 0);"
    "CREATE FUNCTION insist_lane_used() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " PERFORM 1 FROM lane WHERE id = NEW.lane FOR KEY SHARE;"
    " IF NOT FOUND THEN RAISE 'lane % is gone', NEW.lane USING ERRCODE = 'IN002'; END IF;"
    " UPDATE lane SET emptied = 0, live = true WHERE id = NEW.lane AND emptied > 0; RETURN NULL; END $$;"
    "CREATE TRIGGER lane_used AFTER INSERT ON lane_count FOR EACH ROW EXECUTE FUNCTION insist_lane_used();"
    /* One whose counters somebody has just changed is left for the next time. */
    "CREATE FUNCTION insist_lane_empty(int, bytea, bigint) RETURNS void LANGUAGE plpgsql AS $$ DECLARE rows bigint; BEGIN"
    " PERFORM 1 FROM lane WHERE id = $1 FOR UPDATE SKIP LOCKED; IF NOT FOUND THEN RETURN; END IF;"
    " PERFORM 1 FROM lane_count WHERE lane = $1 FOR UPDATE SKIP LOCKED; GET DIAGNOSTICS rows = ROW_COUNT;"
    " IF (SELECT count(*) <> rows OR coalesce(sum(stored), 0) <> 0 FROM lane_count WHERE lane = $1) THEN RETURN; END IF;"
    " INSERT INTO gone AS g SELECT $2, coalesce(sum(completed), 0), coalesce(sum(cancelled), 0) FROM lane_count"
    " WHERE lane = $1 ON CONFLICT (destination) DO UPDATE SET completed = g.completed + excluded.completed,"
    " cancelled = g.cancelled + excluded.cancelled;"
    " DELETE FROM lane_count WHERE lane = $1; UPDATE lane SET emptied = $3, live = false WHERE id = $1; END $$;"
    /*
     * The next $1 lanes: those that have no jobs are emptied, at $2. Then so many are deleted whose events are all trimmed,
     * their last one being older than when they were emptied, but for the clocks of nodes, $3. Of a chain one may stay.
     */
    "CREATE FUNCTION insist_lanes_tend(bigint, bigint, bigint) RETURNS void LANGUAGE plpgsql AS $$"
    " DECLARE l record; seen bigint; looked_at bigint := 0; horizon bigint; needed int[]; BEGIN"
    " SELECT value INTO seen FROM meta WHERE name = 'lane_seen' FOR UPDATE;"
    " FOR l IN SELECT f.id, f.destination, (SELECT coalesce(sum(stored), 0) FROM lane_count WHERE lane = f.id) AS stored"
    " FROM lane f WHERE f.emptied = 0 AND f.id > seen ORDER BY f.id LIMIT $1 LOOP looked_at := looked_at + 1; seen := l.id;"
    " IF l.stored = 0 THEN PERFORM insist_lane_empty(l.id, l.destination, $2); END IF; END LOOP;"
    " UPDATE meta SET value = CASE WHEN looked_at = $1 THEN seen ELSE 0 END WHERE name = 'lane_seen';"
    " SELECT coalesce(min(v.at) FILTER (WHERE v.place = 2), 9223372036854775807) - $3,"
    " coalesce(array_agg(v.lane) FILTER (WHERE v.place = 1 AND v.lane IS NOT NULL), '{}') INTO horizon, needed"
    " FROM (SELECT id, coalesce((SELECT number FROM trimmed WHERE chain = id), 0) AS trimmed FROM chain OFFSET 0) c"
    " CROSS JOIN LATERAL (SELECT o.at, o.lane, row_number() OVER () AS place FROM (SELECT at, lane FROM event"
    " WHERE chain = c.id AND number > c.trimmed ORDER BY number LIMIT 2) o) v;"
    " DELETE FROM lane WHERE emptied > 0 AND emptied < horizon AND id = ANY (ARRAY(SELECT id FROM lane WHERE emptied > 0"
    " AND emptied < horizon AND id <> ALL (needed) ORDER BY emptied, id LIMIT $1)); END $$;"
    /* A session that ended in order goes with time too: by the server's clock, since nobody says when it did. */
    "ALTER TABLE ended ADD COLUMN noted bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;";

/*
 * What a session that ends has open is ended first: a batch that stands still between its seal and its COMMIT has the row of
 * its chain, for which the end would wait as long as that connection lasts.
 */
static const char step_9[] =
    "CREATE OR REPLACE FUNCTION insist_end(bigint, bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$"
    " DECLARE gone node; BEGIN"
    " SELECT * INTO gone FROM node WHERE session = $1 AND beat = coalesce($2, beat) FOR UPDATE;"
    " IF NOT FOUND THEN RETURN false; END IF;"
    " PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'insist ' || $1"
    " AND datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid();"
    " UPDATE chain SET session = 0, term = term + 1 WHERE session = $1;"
    " INSERT INTO ended VALUES ($1, $3, gone.name, gone.url);"
    " UPDATE node SET session = 0 WHERE name = gone.name;"
    " UPDATE shard SET session = 0, epoch = epoch + 1 WHERE session = $1; RETURN true; END $$;";

/*
 * Sessions of stores in other schemas of the database have the same numbers: what is ended is a connection that has this
 * store's lock of writers, too.
 */
static const char step_10[] =
    "CREATE OR REPLACE FUNCTION insist_end(bigint, bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$"
    " DECLARE gone node; BEGIN"
    " SELECT * INTO gone FROM node WHERE session = $1 AND beat = coalesce($2, beat) FOR UPDATE;"
    " IF NOT FOUND THEN RETURN false; END IF;"
    " PERFORM pg_terminate_backend(a.pid) FROM pg_stat_activity a WHERE a.application_name = 'insist ' || $1"
    " AND a.datname = current_database() AND a.xact_start IS NOT NULL AND a.pid <> pg_backend_pid()"
    " AND EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory'"
    " AND l.classid = hashtext('insist writer')::oid AND l.objid = hashtext(current_schema())::oid);"
    " UPDATE chain SET session = 0, term = term + 1 WHERE session = $1;"
    " INSERT INTO ended VALUES ($1, $3, gone.name, gone.url);"
    " UPDATE node SET session = 0 WHERE name = gone.name;"
    " UPDATE shard SET session = 0, epoch = epoch + 1 WHERE session = $1; RETURN true; END $$;";

/*
 * Events lie in pages, a row for up to some seventy that a batch has written one after the other: for each a byte of `types`
 * and of `states`, 32 of `hashes`, and an element of each array, that of `data` with 16 bytes of salt in front (but in
 * form 0). `digests` is there when the data of one was erased. The view shows them one by one, as events.h does. Of an older
 * store a page has no more than some 7,000 bytes but for a large event, and what was damaged stays so, alone.
 */
static const char step_11[] =
    "CREATE TABLE event_page (first bigint NOT NULL, last bigint PRIMARY KEY, at bigint NOT NULL, form smallint NOT NULL,"
    " destination bytea NOT NULL, types bytea NOT NULL, states bytea NOT NULL, lanes bigint[] NOT NULL,"
    " attempts bigint[] NOT NULL, previous bigint[] NOT NULL, hashes bytea NOT NULL,"
    " jobs bytea[] NOT NULL, data bytea[] NOT NULL, digests bytea[])"
    " WITH (toast_tuple_target = 8160);"
    "INSERT INTO event_page SELECT min(number), max(number), at, form, destination,"
    " string_agg(set_byte(decode('00', 'hex'), 0, least(type & 32767, 255)), ''::bytea ORDER BY number),"
    " string_agg(set_byte(decode('00', 'hex'), 0, least(state & 32767, 255)), ''::bytea ORDER BY number),"
    " array_agg(coalesce(lane, 0)::bigint ORDER BY number),"
    " array_agg(attempt::bigint ORDER BY number), array_agg(previous ORDER BY number),"
    " string_agg(CASE WHEN octet_length(hash) = 32 THEN hash ELSE decode(repeat('00', 32), 'hex') END, ''::bytea ORDER BY number),"
    " array_agg(job ORDER BY number), array_agg(coalesce(salt, ''::bytea) || data ORDER BY number),"
    " CASE WHEN bool_or(digest IS NOT NULL) THEN array_agg(digest ORDER BY number) END"
    " FROM (SELECT *, number - row_number() OVER w AS run,"
    " sum(octet_length(job) + octet_length(data) + coalesce(octet_length(digest), 0) + 100) OVER w / 7000 AS part"
    " FROM event WINDOW w AS (PARTITION BY at, form, destination ORDER BY number)) v GROUP BY at, form, destination, run, part;"
    "DROP TABLE event; DROP TYPE event_row, queue_row, lease_row, count_row;"
    "CREATE VIEW event AS SELECT (p.last >> 40)::int AS chain, p.first + i - 1 AS number, p.at, nullif(p.lanes[i], 0) AS lane,"
    " CASE WHEN p.whole AND num_nulls(p.lanes[i], p.attempts[i], p.previous[i], p.jobs[i], p.data[i]) = 0"
    " THEN get_byte(p.types, i - 1) END AS type,"
    " CASE WHEN p.whole THEN get_byte(p.states, i - 1) END AS state, p.attempts[i] AS attempt,"
    " p.previous[i] AS previous, p.form, substring(p.hashes FROM i * 32 - 31 FOR 32) AS hash,"
    " CASE WHEN p.form > 0 THEN nullif(substring(p.data[i] FROM 1 FOR 16), '') END AS salt, p.digests[i] AS digest,"
    " p.destination, p.jobs[i] AS job, CASE WHEN p.form > 0 THEN substring(p.data[i] FROM 17) ELSE p.data[i] END AS data"
    " FROM (SELECT *, last - first + 1 = ALL (ARRAY[octet_length(types), octet_length(states), cardinality(lanes),"
    " cardinality(attempts), cardinality(previous), cardinality(jobs), cardinality(data),"
    " coalesce(cardinality(digests), cardinality(jobs))]) AND octet_length(hashes) = (last - first + 1) * 32 AS whole"
    " FROM event_page OFFSET 0) p CROSS JOIN LATERAL generate_series(1, least(greatest(p.last - p.first + 1, 0), 1 << 20)::int) i;"
    /* NULL: there is nothing to erase. What the hash of a plain one covers stays (form 0). */
    "CREATE FUNCTION insist_event_erase(bigint) RETURNS smallint LANGUAGE plpgsql AS $$ DECLARE page bigint; i int; f smallint;"
    " BEGIN SELECT p.last, p.place, p.form INTO page, i, f FROM (SELECT *, least(greatest($1 - first + 1, 0), 1 << 20)::int AS place"
    " FROM event_page WHERE last >= $1 ORDER BY last LIMIT 1 FOR UPDATE) p WHERE p.place > 0 AND p.data[p.place] <> '' AND p.digests[p.place] IS NULL;"
    " IF f > 0 THEN UPDATE event_page SET digests = array_fill(NULL::bytea, ARRAY[cardinality(data)])"
    " WHERE last = page AND digests IS NULL;"
    " UPDATE event_page SET digests[i] = sha256(data[i]), data[i] = '' WHERE last = page; END IF;"
    " RETURN f; END $$;"
    "CREATE OR REPLACE FUNCTION insist_lanes_tend(bigint, bigint, bigint) RETURNS void LANGUAGE plpgsql AS $$"
    " DECLARE l record; seen bigint; looked_at bigint := 0; horizon bigint; needed bigint[]; BEGIN"
    " SELECT value INTO seen FROM meta WHERE name = 'lane_seen' FOR UPDATE;"
    " FOR l IN SELECT f.id, f.destination, (SELECT coalesce(sum(stored), 0) FROM lane_count WHERE lane = f.id) AS stored"
    " FROM lane f WHERE f.emptied = 0 AND f.id > seen ORDER BY f.id LIMIT $1 LOOP looked_at := looked_at + 1; seen := l.id;"
    " IF l.stored = 0 THEN PERFORM insist_lane_empty(l.id, l.destination, $2); END IF; END LOOP;"
    " UPDATE meta SET value = CASE WHEN looked_at = $1 THEN seen ELSE 0 END WHERE name = 'lane_seen';"
    " SELECT coalesce(min(v.at) FILTER (WHERE v.place = 2), 9223372036854775807) - $3,"
    " coalesce(array_agg(v.lane) FILTER (WHERE v.place = 1 AND v.lane > 0), '{}') INTO horizon, needed"
    " FROM (SELECT id, coalesce((SELECT number FROM trimmed WHERE chain = id), id::bigint << 40) AS trimmed FROM chain OFFSET 0) c"
    " CROSS JOIN LATERAL (SELECT p.at, p.lanes[i] AS lane, row_number() OVER (ORDER BY p.last, i) AS place FROM"
    " (SELECT * FROM event_page WHERE last > c.trimmed AND last < (c.id + 1)::bigint << 40 ORDER BY last LIMIT 2) p"
    " CROSS JOIN LATERAL generate_series(1, least(2, cardinality(p.lanes))) i) v;"
    " DELETE FROM lane WHERE emptied > 0 AND emptied < horizon AND id = ANY (ARRAY(SELECT id FROM lane WHERE emptied > 0"
    " AND emptied < horizon AND id <> ALL (needed) ORDER BY emptied, id LIMIT $1)); END $$;";

/* oldest_writer: programs of an earlier version may not write after it; 1: all may, the step only adds. */
static const struct {
    const char *sql;
    int oldest_writer;
} steps[] = {
    { step_1, 1 },
    { step_2, 2 },
    { step_3, 2 },
    { step_4, 2 },
    { step_5, 5 },
    { step_6, 6 },
    { step_7, 6 },
    { step_8, 8 },
    { step_9, 8 },
    { step_10, 8 },
    { step_11, 11 },
};

enum { STEPS = sizeof steps / sizeof *steps, LOCK_PAUSE_MS = 100, CONTRACT_TRIES = 30 };

#define SCHEMA_LOCK "hashtext('insist schema'), hashtext(current_schema())"

int postgres_schema_version(void)
{
    return STEPS;
}

static enum status meta_read(struct postgres_link *link, const char *name, int *ret_value, struct error *err)
{
    char sql[128];
    PGresult *answer;
    snprintf(sql, sizeof sql, "SELECT value FROM meta WHERE name = '%s'", name);
    enum status status = link_ask(link, sql, &answer, err);
    if (status != STATUS_OK)
        return status;
    *ret_value = PQntuples(answer) > 0 ? atoi(PQgetvalue(answer, 0, 0)) : 0;
    PQclear(answer);
    return STATUS_OK;
}

static enum status schema_read(struct postgres_link *link, int *ret_version, int *ret_oldest_writer, struct error *err)
{
    PGresult *answer;
    *ret_version = *ret_oldest_writer = 0;
    enum status status = link_ask(link, "SELECT to_regclass('meta') IS NOT NULL", &answer, err);
    if (status != STATUS_OK)
        return status;
    bool there = PQgetvalue(answer, 0, 0)[0] == 't';
    PQclear(answer);
    if (!there)
        return STATUS_OK;
    status = meta_read(link, "schema", ret_version, err);
    return status == STATUS_OK ? meta_read(link, "schema_oldest_writer", ret_oldest_writer, err) : status;
}

/* The step and its number are one transaction: whatever breaks off leaves a schema that is wholly of one version. */
static enum status step_run(struct postgres_link *link, int step, struct error *err)
{
    assert(step >= 1 && step <= STEPS);
    char after[320];
    snprintf(after, sizeof after,
             "INSERT INTO meta VALUES ('schema', %d), ('schema_oldest_writer', %d) ON CONFLICT (name) DO UPDATE SET value ="
             " excluded.value; COMMIT",
             step, steps[step - 1].oldest_writer);
    link->answer_ms_max = LINK_ANSWER_MS_ANY;
    enum status status = link_run(link, "BEGIN", err);
    if (status == STATUS_OK && step == 1)
        status = link_run(link, "CREATE TABLE meta (name text PRIMARY KEY, value bigint NOT NULL)", err);
    if (status == STATUS_OK)
        status = link_run(link, steps[step - 1].sql, err);
    if (status == STATUS_OK)
        status = link_run(link, after, err);
    link->answer_ms_max = LINK_ANSWER_MS;
    struct error ignored;
    if (status != STATUS_OK && status != STATUS_AWAY && link_run(link, "ROLLBACK", &ignored) != STATUS_OK)
        return STATUS_AWAY;
    return status;
}

enum status schema_check(struct postgres_link *link, int *ret_version, struct error *err)
{
    int oldest_writer;
    enum status status = schema_read(link, ret_version, &oldest_writer, err);
    if (status == STATUS_OK && oldest_writer > STEPS)
        return error_set(err, STATUS_UNSUPPORTED,
                         "the store is of version %d, written by a newer insist; this one knows up to %d", *ret_version,
                         STEPS);
    return status;
}

enum status lock_try(struct postgres_link *link, const char *sql, int tries, bool *ret_locked, struct error *err)
{
    assert(tries > 0);
    const struct timespec wait = { .tv_nsec = LOCK_PAUSE_MS * 1000000L };
    for (int i = 0; i < tries; i++) {
        PGresult *answer;
        enum status status = link_ask(link, sql, &answer, err);
        if (status != STATUS_OK)
            return status;
        *ret_locked = PQgetvalue(answer, 0, 0)[0] == 't';
        PQclear(answer);
        if (*ret_locked)
            break;
        if (i + 1 < tries)
            nanosleep(&wait, NULL);
    }
    return STATUS_OK;
}

/* Whoever has it may be waiting for an older node to leave, and then for the steps. */
enum status schema_lock(struct postgres_link *link, struct error *err)
{
    assert(link->conn);
    enum status status = link_run(link, "SET lock_timeout = '10s'; SELECT pg_advisory_lock(" SCHEMA_LOCK ");"
                                        " SET lock_timeout = '2s'", err);
    return status == STATUS_BUSY ? error_set(err, STATUS_BUSY, "another program is preparing the tables of this store; start"
                                                               " this one again when that has ended")
                                 : status;
}

enum status schema_unlock(struct postgres_link *link, struct error *err)
{
    assert(link->conn);
    return link_run(link, "SELECT pg_advisory_unlock(" SCHEMA_LOCK "); SET lock_timeout = '5s'", err);
}

/*
 * Programs that write hold a lock while they run (writer_lock). One that is older would break on a step that it cannot live
 * with: that waits until they are stopped, for a moment, and keeps them from being started meanwhile.
 */
static enum status contract_begin(struct postgres_link *link, int from, int newest, struct error *err)
{
    bool alone = false;
    enum status status = lock_try(link, "SELECT pg_try_advisory_lock(" WRITER_LOCK ")", CONTRACT_TRIES, &alone, err);
    if (status != STATUS_OK)
        return status;
    return alone ? STATUS_OK
                 : error_set(err, STATUS_BUSY,
                             "the store is of version %d and becomes %d, and other nodes run with it, which cannot live with that"
                             " if they are older: stop them all, start this one, then the others",
                             from, newest);
}

enum status schema_prepare(struct postgres_link *link, const struct store_settings *settings, int newest, int *ret_from,
                           struct error *err)
{
    enum status status = schema_check(link, ret_from, err);
    bool contracts = false;
    if (status != STATUS_OK)
        return status;
    for (int step = *ret_from + 1; step <= newest && *ret_from > 0; step++)
        contracts = contracts || steps[step - 1].oldest_writer > *ret_from;
    if (contracts)
        status = contract_begin(link, *ret_from, newest, err);
    if (status == STATUS_OK && *ret_from > 0 && *ret_from < newest && settings->on_migrate)
        settings->on_migrate(*ret_from, newest);
    for (int step = *ret_from + 1; step <= newest && status == STATUS_OK; step++)
        status = step_run(link, step, err);
    return status == STATUS_OK && contracts ? link_run(link, "SELECT pg_advisory_unlock(" WRITER_LOCK ")", err) : status;
}
