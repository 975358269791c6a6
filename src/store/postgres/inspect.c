#include "store/postgres/inspect.h"

#include "store/postgres/events.h"
#include "store/postgres/handle.h"
#include "store/postgres/postgres.h"
#include "store/postgres/reader.h"
#include "store/postgres/schema.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SERVER_VERSION_MIN = 140000, VERIFY_TRIES_MAX = 3 };

/* ---- what the server must be ---- */

static enum status server_check(const struct postgres_server *server, bool sync_always, struct error *err)
{
    if (server->version < SERVER_VERSION_MIN)
        return error_set(err, STATUS_UNSUPPORTED, "the server is PostgreSQL %d; insist needs 14 or newer",
                         (int)(server->version / 10000));
    if (strcmp(server->fsync, "on") != 0)
        return error_set(err, STATUS_UNSUPPORTED,
                         "the server runs with fsync = %s: a crash would lose or damage everything; set fsync = on",
                         server->fsync);
    if (strcmp(server->full_page_writes, "on") != 0)
        return error_set(err, STATUS_UNSUPPORTED,
                         "the server runs with full_page_writes = %s: a crash could leave torn pages; set it to on",
                         server->full_page_writes);
    bool lax = strcmp(server->synchronous_commit, "off") == 0 || strcmp(server->synchronous_commit, "local") == 0;
    if (sync_always && lax)
        return error_set(
            err, STATUS_UNSUPPORTED,
            "durability: always, but synchronous_commit = %s for this user and database: a commit could be"
            " lost after it was acknowledged; ALTER ROLE ... SET synchronous_commit = on, or durability: everysec",
            server->synchronous_commit);
    if (!server->schema[0])
        return error_set(err, STATUS_INVALID,
                         "there is no schema for insist's tables in database \"%s\": none of the search_path is there",
                         server->database);
    return STATUS_OK;
}

/*
 * A pooler that gives each transaction another server connection has no session state. While a second connection holds a
 * transaction open, such a pooler must give the first one another server process than before.
 */
static enum status pooler_check(struct postgres_link *link, const char *address, const struct postgres_server *server,
                                struct error *err)
{
    struct postgres_link other = { 0 };
    struct postgres_server again;
    if (PQbackendPID(link->conn) == (int)server->backend_pid)
        return STATUS_OK; /* nobody is between */
    enum status status = link_open(&other, address, "BEGIN; SELECT 1", link->answer_ms_max, err);
    if (status == STATUS_OK)
        status = link_server(link, &again, err);
    link_close(&other);
    if (status != STATUS_OK)
        return status;
    if (again.backend_pid != server->backend_pid)
        return error_set(err, STATUS_UNSUPPORTED,
                         "two statements of one connection were answered by two server processes: a pooler in transaction"
                         " mode is between; connect to PostgreSQL itself, or set the pooler's mode to session");
    return STATUS_OK;
}

enum status server_look(struct postgres_link *link, const char *address, bool sync_always, struct error *err)
{
    struct postgres_server server;
    enum status status = link_server(link, &server, err);
    if (status == STATUS_OK)
        status = server_check(&server, sync_always, err);
    return status == STATUS_OK ? pooler_check(link, address, &server, err) : status;
}

/* ---- from outside ---- */

/* A connection of one's own to a server that will do. */
static enum status connect(const struct postgres_store *store, struct postgres_link *link, struct error *err)
{
    enum status status = link_open(link, store->address, postgres_settings_reader, LINK_ANSWER_MS, err);
    if (status == STATUS_OK)
        status = server_look(link, store->address, store->settings.sync_always, err);
    if (status != STATUS_OK)
        link_close(link);
    return status;
}

/* STATUS_NOT_FOUND: there are no tables of ours. */
static enum status version_check(struct postgres_link *link, int *ret_version, struct error *err)
{
    enum status status = schema_check(link, ret_version, err);
    if (status == STATUS_OK && *ret_version == 0)
        return error_set(err, STATUS_NOT_FOUND, "the database has no tables of insist yet");
    return status;
}

enum status store_postgres_probe(struct slice rest, bool sync_always, struct error *err)
{
    struct store *base;
    struct postgres_link link = { 0 };
    int version;
    enum status status = store_postgres_backend.look(rest, &base, err);
    if (status != STATUS_OK)
        return status;
    ((struct postgres_store *)base)->settings.sync_always = sync_always;
    status = connect((struct postgres_store *)base, &link, err);
    if (status == STATUS_OK)
        status = version_check(&link, &version, err);
    if (status == STATUS_NOT_FOUND)
        status = STATUS_OK; /* the daemon makes them */
    link_close(&link);
    base->ops->close(base);
    return status;
}

static int64_t number(const PGresult *answer, int column)
{
    return strtoll(PQgetvalue(answer, 0, column), NULL, 10);
}

static enum status facts_read(struct postgres_link *link, struct store_facts *ret_facts, struct error *err)
{
    PGresult *answer;
    enum status status = link_ask(
        link,
        "SELECT coalesce(sum(pending), 0), coalesce(sum(running), 0), coalesce(sum(waiting), 0), coalesce(sum(dead), 0),"
        " coalesce((SELECT first FROM event_page WHERE last < 1::bigint << 40 ORDER BY last LIMIT 1), 0),"
        " coalesce((SELECT last FROM event_page WHERE last < 1::bigint << 40 ORDER BY last DESC LIMIT 1), 0),"
        " coalesce((SELECT at FROM event_page WHERE last < 1::bigint << 40 ORDER BY last DESC LIMIT 1), 0),"
        " (SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace"
        " AND c.relkind = 'r'), has_table_privilege('job', 'INSERT, UPDATE, DELETE'),"
        " current_setting('synchronous_standby_names') = '' FROM lane_count",
        &answer, err);
    if (status != STATUS_OK)
        return status;
    *ret_facts = (struct store_facts){
        .schema_newest = postgres_schema_version(),
        .pending = number(answer, 0),
        .running = number(answer, 1),
        .waiting = number(answer, 2),
        .dead = number(answer, 3),
        .event_first = number(answer, 4),
        .event_last = number(answer, 5),
        .newest_at = number(answer, 6),
        .bytes = number(answer, 7),
        .unwritable = PQgetvalue(answer, 0, 8)[0] == 't' ? NULL : "the database's user may not change its tables",
        .alone = PQgetvalue(answer, 0, 9)[0] == 't',
    };
    PQclear(answer);
    return STATUS_OK;
}

enum status postgres_facts(struct store *base, struct store_facts *ret_facts, struct error *err)
{
    assert(base->ops == &postgres_store_ops);
    struct postgres_link link = { 0 };
    int version;
    enum status status = connect((struct postgres_store *)base, &link, err);
    if (status == STATUS_OK)
        status = version_check(&link, &version, err);
    if (status == STATUS_OK)
        status = facts_read(&link, ret_facts, err);
    if (status == STATUS_OK)
        ret_facts->schema_version = version;
    link_close(&link);
    return status;
}

/* What a store says of its trail apart from the events: of each chain that has any. */
struct frames {
    struct trail_frame frames[TRAIL_CHAINS_MAX];
    unsigned char marks[TRAIL_CHAINS_MAX][EVENT_HASH_BYTES];
    size_t count;
};

static bool frame_parse(const PGresult *answer, int row, struct frames *frames)
{
    struct trail_frame *frame = &frames->frames[frames->count];
    unsigned char *mark = frames->marks[frames->count++];
    frame->saved.number = strtoll(PQgetvalue(answer, row, 0), NULL, 10);
    frame->anchor.number = strtoll(PQgetvalue(answer, row, 3), NULL, 10);
    bool marked = PQgetvalue(answer, row, 5)[0] == 't';
    return trail_hash_parse(slice_from(PQgetvalue(answer, row, 1)), frame->saved.hash) &&
           trail_hash_parse(slice_from(PQgetvalue(answer, row, 4)), frame->anchor.hash) &&
           (!marked || trail_hash_parse(slice_from(PQgetvalue(answer, row, 2)), mark));
}

static enum status frames_read(const struct postgres_store *store, struct frames *ret_frames, struct error *err)
{
    struct postgres_link link = { 0 };
    PGresult *answer;
    int version;
    enum status status = connect(store, &link, err);
    if (status == STATUS_OK)
        status = version_check(&link, &version, err);
    if (status == STATUS_OK)
        status = link_ask(&link,
                          "SELECT c.number, encode(c.hash, 'hex'), encode(c.mark, 'hex'), coalesce(t.number, c.id::bigint << 40),"
                          " coalesce(encode(t.hash, 'hex'), repeat('0', 64)), c.number > c.id::bigint << 40 FROM chain c"
                          " LEFT JOIN trimmed t ON t.chain = c.id ORDER BY c.id",
                          &answer, err);
    link_close(&link);
    if (status != STATUS_OK)
        return status;
    int rows = PQntuples(answer);
    *ret_frames = (struct frames){ 0 };
    bool whole = rows > 0 && strtoll(PQgetvalue(answer, 0, 0), NULL, 10) >> EVENT_CHAIN_SHIFT == 0;
    for (int row = 0; row < rows && row < TRAIL_CHAINS_MAX && whole; row++)
        whole = frame_parse(answer, row, ret_frames);
    PQclear(answer);
    if (rows > TRAIL_CHAINS_MAX)
        return error_set(err, STATUS_UNSUPPORTED, "the store has %d chains, and %d can be verified together", rows,
                         TRAIL_CHAINS_MAX);
    return whole ? STATUS_OK
                 : error_set(err, STATUS_CORRUPT, "the kept head is gone: nothing tells where the trail ends");
}

static enum status follow(struct store *base, const struct frames *frames, const struct trail_reading *reading,
                          struct trail_check *ret_check, struct error *err)
{
    struct store_reader *reader;
    enum status status = postgres_reader_open(base, &reader, err);
    if (status != STATUS_OK)
        return status;
    status = trail_follow_all(reader, reading, frames->frames, frames->count, ret_check, err);
    postgres_reader_close(reader);
    for (size_t i = 0; i < frames->count && status == STATUS_OK; i++) {
        const struct trail_head *saved = &frames->frames[i].saved;
        if (saved->number > saved->number >> EVENT_CHAIN_SHIFT << EVENT_CHAIN_SHIFT)
            status = trail_mark_check(reading->key, saved, frames->marks[i], err);
    }
    return status;
}

static bool anchors_moved(const struct frames *before, const struct frames *now)
{
    for (size_t i = 0; i < before->count && i < now->count; i++)
        if (before->frames[i].anchor.number != now->frames[i].anchor.number)
            return true;
    return before->count != now->count;
}

enum status postgres_verify(struct store *base, const struct trail_reading *reading, struct trail_check *ret_check,
                            struct error *err)
{
    assert(base->ops == &postgres_store_ops);
    struct postgres_store *store = (struct postgres_store *)base;
    struct frames frames, now;
    enum status status = frames_read(store, &frames, err);
    if (status != STATUS_OK)
        return status;
    status = follow(base, &frames, reading, ret_check, err);
    for (int tries = 1; status == STATUS_CORRUPT && !reading->visit && tries < VERIFY_TRIES_MAX; tries++, frames = now) {
        /* A daemon that trims old events meanwhile takes a chain's beginning away: that is no fault. */
        struct error again;
        if (frames_read(store, &now, &again) != STATUS_OK || !anchors_moved(&frames, &now))
            break;
        status = follow(base, &now, reading, ret_check, err);
    }
    return status;
}

/* Each gives rows that should not be; job_now is every job with its state, whether it is ready, and when it is due. */
#define JOB_NOW                                                                                                             \
    "WITH job_now AS (SELECT j.seq, j.lane, CASE WHEN e.seq IS NOT NULL THEN 2 ELSE coalesce(s.state, 1) END AS state,"     \
    " q.seq IS NOT NULL AS ready, CASE WHEN s.seq IS NULL THEN j.rank ELSE s.rank END AS rank,"                             \
    " CASE WHEN s.seq IS NULL THEN j.run_at ELSE s.run_at END AS run_at,"                                                   \
    " CASE WHEN s.seq IS NULL THEN j.deadline ELSE s.deadline END AS deadline, s.leaves_at, j.chain,"                       \
    " coalesce(s.link, 0) & 1 = 1 AS behind,"                                                                               \
    " coalesce(e.event, s.event, j.event) AS event FROM job j LEFT JOIN state s ON s.seq = j.seq"                           \
    " LEFT JOIN lease e ON e.seq = j.seq LEFT JOIN queue q ON q.seq = j.seq AND q.lane = j.lane) "

static const struct {
    const char *fault, *sql;
} faults[] = {
    { "a queue's row is of no job that can be claimed",
      JOB_NOW "SELECT q.seq FROM queue q LEFT JOIN job_now j ON j.seq = q.seq AND j.lane = q.lane AND j.rank = q.rank"
              " AND j.state IN (1, 3) WHERE j.seq IS NULL" },
    { "a job is in the queue twice", "SELECT seq FROM queue GROUP BY seq HAVING count(*) > 1" },
    { "a timer is not what its job's state asks for",
      JOB_NOW ", wanted AS (SELECT CASE WHEN state IN (4, 5, 6) THEN leaves_at WHEN state = 2 THEN NULL"
              " WHEN ready OR behind THEN deadline ELSE least(run_at, deadline) END AS at, seq FROM job_now)"
              " SELECT coalesce(w.seq, t.seq) FROM (SELECT * FROM wanted WHERE at IS NOT NULL) w"
              " FULL JOIN timer t ON t.at = w.at AND t.seq = w.seq WHERE w.seq IS NULL OR t.seq IS NULL" },
    { "of a key that has jobs not one goes and the others are behind it",
      JOB_NOW "SELECT min(seq) FROM job_now WHERE chain <> 0 AND state IN (1, 2, 3) GROUP BY lane, chain"
              " HAVING count(*) FILTER (WHERE NOT behind) <> 1 UNION ALL"
              " SELECT seq FROM job_now WHERE behind AND (chain = 0 OR state <> 1 OR ready)" },
    { "a chain has not those of its jobs that have not ended",
      JOB_NOW "SELECT coalesce(j.seq, c.seq) FROM (SELECT * FROM job_now WHERE chain <> 0 AND state IN (1, 2, 3)) j"
              " FULL JOIN chained c ON c.seq = j.seq AND c.lane = j.lane AND c.chain = j.chain"
              " WHERE j.seq IS NULL OR c.seq IS NULL" },
    { "a lease or a state is of no job",
      "SELECT seq FROM (SELECT seq FROM lease UNION ALL SELECT seq FROM state) r WHERE NOT EXISTS"
      " (SELECT 1 FROM job j WHERE j.seq = r.seq)" },
    { "a lease is of a job that could not be claimed",
      "SELECT e.seq FROM lease e JOIN state s ON s.seq = e.seq WHERE s.state NOT IN (1, 3)" },
    { "a lane's counters are not those of its jobs",
      JOB_NOW "SELECT l.id FROM lane l LEFT JOIN (SELECT lane, sum(pending) AS pending, sum(running) AS running,"
              " sum(waiting) AS waiting, sum(dead) AS dead, sum(ready) AS ready, sum(stored) AS stored FROM lane_count"
              " GROUP BY lane) c ON c.lane = l.id"
              " LEFT JOIN (SELECT lane, count(*) FILTER (WHERE state = 1) AS pending, count(*) FILTER (WHERE state = 2) AS"
              " running, count(*) FILTER (WHERE state = 3) AS waiting, count(*) FILTER (WHERE state = 5) AS dead,"
              " count(*) FILTER (WHERE ready) AS ready, count(*) AS stored FROM job_now GROUP BY lane) j ON j.lane = l.id"
              " WHERE (NOT l.live AND j.stored IS NOT NULL) OR (coalesce(c.stored, 0), coalesce(c.pending, 0),"
              " coalesce(c.running, 0), coalesce(c.waiting, 0), coalesce(c.dead, 0), coalesce(c.ready, 0))"
              " <> (coalesce(j.stored, 0), coalesce(j.pending, 0), coalesce(j.running, 0), coalesce(j.waiting, 0),"
              " coalesce(j.dead, 0), coalesce(j.ready, 0))" },
    { "a job's last event does not tell its state",
      JOB_NOW "SELECT j.seq FROM job_now j LEFT JOIN LATERAL " EVENT_OF_NUMBER("j.event") " v ON true"
              " WHERE j.event > coalesce((SELECT number FROM trimmed WHERE chain = (j.event >> 40)::int), 0)"
              " AND v.state IS DISTINCT FROM j.state" },
    { "a dead letter does not say why", "SELECT seq FROM state WHERE state = 5 AND (last_error = '' OR dead_at IS NULL)" },
};

/* As of one moment, whoever writes meanwhile. */
enum status postgres_check(struct store *base, struct error *err)
{
    assert(base->ops == &postgres_store_ops);
    struct postgres_link link = { 0 };
    int version;
    enum status status =
        link_open(&link, ((struct postgres_store *)base)->address, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                  LINK_ANSWER_MS_ANY, err);
    if (status == STATUS_OK)
        status = version_check(&link, &version, err);
    for (size_t i = 0; i < sizeof faults / sizeof *faults && status == STATUS_OK; i++) {
        PGresult *answer;
        status = link_ask(&link, faults[i].sql, &answer, err);
        if (status != STATUS_OK)
            break;
        if (PQntuples(answer) > 0)
            status = error_set(err, STATUS_CORRUPT, "%s: %s, and %d others", faults[i].fault, PQgetvalue(answer, 0, 0),
                               PQntuples(answer) - 1);
        PQclear(answer);
    }
    link_close(&link);
    return status;
}

enum status postgres_backup(struct store *base, const char *target, struct store_facts *ret_facts, struct error *err)
{
    assert(base->ops == &postgres_store_ops && ret_facts);
    (void)base;
    (void)ret_facts;
    return error_set(err, STATUS_UNSUPPORTED,
                     "a store on PostgreSQL is not copied to %.100s: use PostgreSQL's own backups (pg_basebackup with an"
                     " archive of the log, or pg_dump); insist audit verify proves a copy that was restored",
                     target);
}
