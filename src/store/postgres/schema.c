#include "store/postgres/schema.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

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

/* oldest_writer: programs of an earlier version may not write after it; 1: all may, the step only adds. */
static const struct {
    const char *sql;
    int oldest_writer;
} steps[] = {
    { step_1, 1 },
};

enum { STEPS = sizeof steps / sizeof *steps };

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

enum status schema_read(struct postgres_link *link, int *ret_version, int *ret_oldest_writer, struct error *err)
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
    enum status status = link_run(link, "BEGIN", err);
    if (status == STATUS_OK && step == 1)
        status = link_run(link, "CREATE TABLE meta (name text PRIMARY KEY, value bigint NOT NULL)", err);
    if (status == STATUS_OK)
        status = link_run(link, steps[step - 1].sql, err);
    if (status == STATUS_OK)
        status = link_run(link, after, err);
    struct error ignored;
    if (status != STATUS_OK && status != STATUS_AWAY && link_run(link, "ROLLBACK", &ignored) != STATUS_OK)
        return STATUS_AWAY;
    return status;
}

static enum status steps_run(struct postgres_link *link, const struct store_settings *settings, int *ret_from,
                             struct error *err)
{
    int oldest_writer;
    enum status status = schema_read(link, ret_from, &oldest_writer, err);
    if (status != STATUS_OK)
        return status;
    if (oldest_writer > STEPS)
        return error_set(err, STATUS_UNSUPPORTED,
                         "the store is of version %d, written by a newer insist; this one knows up to %d", *ret_from, STEPS);
    if (*ret_from > 0 && *ret_from < STEPS && settings->on_migrate)
        settings->on_migrate(*ret_from, STEPS);
    for (int step = *ret_from + 1; step <= STEPS && status == STATUS_OK; step++)
        status = step_run(link, step, err);
    return status;
}

enum status schema_prepare(struct postgres_link *link, const struct store_settings *settings, int *ret_from,
                           struct error *err)
{
    static const char lock[] = "SET lock_timeout = '2s';"
                               " SELECT pg_advisory_lock(hashtext('insist schema'), hashtext(current_schema()))";
    static const char unlock[] = "SELECT pg_advisory_unlock(hashtext('insist schema'), hashtext(current_schema()));"
                                 " SET lock_timeout = '5s'";
    enum status status = link_run(link, lock, err);
    if (status != STATUS_OK)
        return status;
    status = steps_run(link, settings, ret_from, err);
    if (status != STATUS_OK)
        return status; /* the connection is closed, and the lock with it */
    return link_run(link, unlock, err);
}
