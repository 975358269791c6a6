/*
 * What is PostgreSQL's own in its store: plans, connections that break at any moment, servers that will not do. The contract
 * is tested with all the others'.
 */
#include "store/inspect.h"
#include "store/postgres/handle.h"
#include "store/postgres/postgres.h"
#include "store/postgres/schema.h"
#include "store/postgres/statement.h"
#include "store/trail.h"
#include "support/check.h"
#include "support/postgres_fixture.h"
#include "support/postgres_proxy.h"
#include "support/store_fixture.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct store_settings plain = { .pending_max = 100000 };
static const struct store_settings always = { .pending_max = 100000, .sync_always = true };

/* ---- plans ---- */

static const char *type_name(char letter)
{
    return letter == 'i' ? "bigint" : letter == 'b' ? "bytea" : letter == 'B' ? "bytea[]" : letter == 'T' ? "tid[]" : "bigint[]";
}

/* The plan that a connection of that kind makes for the statement; empty: it has none. */
static void plan_read(PGconn *conn, enum postgres_statement statement, char *ret_plan, size_t size)
{
    const struct postgres_text *text = postgres_text(statement);
    const char *row = postgres_row(statement);
    char sql[8192], arguments[256] = "", types[512] = "";
    ret_plan[0] = '\0';
    if (!strstr("SELECT INSERT UPDATE DELETE WITH", (char[]){ text->sql[0], text->sql[1], text->sql[2], '\0' }))
        return;
    for (int i = 0; i < params_count(text->types); i++) {
        snprintf(types + strlen(types), sizeof types - strlen(types), "%s%s%s", i ? ", " : "(",
                 row ? row : type_name(text->types[i]), row ? "[]" : "");
        snprintf(arguments + strlen(arguments), sizeof arguments - strlen(arguments), "%sNULL", i ? ", " : "(");
    }
    const char *close = text->types[0] ? ")" : "";
    snprintf(sql, sizeof sql, "PREPARE %s%s%s AS %s", text->name, types, close, text->sql);
    PGresult *answer = PQexec(conn, sql);
    check(PQresultStatus(answer) == PGRES_COMMAND_OK, "%s: %s", text->name, PQerrorMessage(conn));
    PQclear(answer);
    snprintf(sql, sizeof sql, "EXPLAIN (COSTS OFF) EXECUTE %s%s%s", text->name, arguments, close);
    answer = PQexec(conn, sql);
    check(PQresultStatus(answer) == PGRES_TUPLES_OK, "%s: %s", text->name, PQerrorMessage(conn));
    for (int i = 0; i < PQntuples(answer); i++)
        snprintf(ret_plan + strlen(ret_plan), size - strlen(ret_plan), "%s\n", PQgetvalue(answer, i, 0));
    PQclear(answer);
}

static PGconn *connect_to(const char *address, const char *settings)
{
    char whole[POSTGRES_ADDRESS_BYTES + 16];
    snprintf(whole, sizeof whole, "postgres:%s", address);
    PGconn *conn = PQconnectdb(whole);
    PGresult *answer = PQexec(conn, settings);
    check(PQresultStatus(answer) == PGRES_COMMAND_OK, "%s", PQerrorMessage(conn));
    PQclear(answer);
    return conn;
}

enum { PLAN_BYTES = 8192 };

static void plans_read(const char *address, char (*ret_plans)[PLAN_BYTES])
{
    static const char read_only_off[] = "SET default_transaction_read_only = off";
    PGconn *writer = connect_to(address, postgres_settings_writer), *reader = connect_to(address, postgres_settings_reader);
    PQclear(PQexec(reader, read_only_off));
    for (enum postgres_statement i = 0; i < POSTGRES_STATEMENTS; i++)
        plan_read(i <= STATEMENTS_WRITER_LAST ? writer : reader, i, ret_plans[i], PLAN_BYTES);
    PQfinish(writer);
    PQfinish(reader);
}

/* Rows as a store has them when it is used, without what they would say: what plans are made by is how many there are. */
static void tables_fill(const char *address)
{
    static const char fill[] =
        "INSERT INTO shard SELECT n, convert_to('d' || n, 'UTF8'), n % 4, 1 FROM generate_series(0, 19) n;"
        "INSERT INTO node SELECT convert_to('n' || n, 'UTF8'), n, n, 1, 1, '', '', '', '' FROM generate_series(1, 3) n;"
        "INSERT INTO ended SELECT n, n, 'n', '' FROM generate_series(10, 30) n;"
        "INSERT INTO lane SELECT n, convert_to('d' || n % 20, 'UTF8'), convert_to('t' || n, 'UTF8'), n % 3 > 0, n % 20"
        " FROM generate_series(1, 2000) n;"
        "INSERT INTO lane_count SELECT n, 0, 1, 1, 1, 1, 1, 1, 1, 1 FROM generate_series(1, 2000) n;"
        "INSERT INTO job SELECT n, n, n, NULL, n, n, n % 2000 + 1, 1, sha256(n::text::bytea), '', 'id', '', '', '', '', ''"
        " FROM generate_series(1, 20000) n;"
        "INSERT INTO chained SELECT n, n, n % 2000 + 1 FROM generate_series(1, 5000) n;"
        "INSERT INTO queue SELECT n, n, n % 2000 + 1 FROM generate_series(1, 5000) n;"
        "INSERT INTO lease SELECT n, n, n, n, n, n, 1, 1, '' FROM generate_series(5001, 6000) n;"
        "INSERT INTO timer SELECT n, n, n % 20 FROM generate_series(6001, 20000) n;"
        "INSERT INTO state SELECT n, n, NULL, n, NULL, n, NULL, NULL, NULL, n, n, 1, 1, 1, 1, 1, 0, n % 6 + 1, 1, 0, 0, 1,"
        " '', '', '', '' FROM generate_series(6001, 20000) n;"
        "INSERT INTO event_page SELECT n, n, n, 1, '', 'a', 'a', ARRAY[n % 2000 + 1], ARRAY[1], ARRAY[0], sha256(n::text::bytea),"
        " ARRAY['id'::bytea], ARRAY[''::bytea] FROM generate_series(1, 20000) n;"
        "INSERT INTO archive SELECT n, sha256(n::text::bytea) FROM generate_series(1, 5000) n;"
        "INSERT INTO kept SELECT 'rate', convert_to('r' || n, 'UTF8'), '1' FROM generate_series(1, 2000) n;"
        "ANALYZE";
    postgres_server_run(address, fill, NULL, 0);
}

/* Every statement is found by its indexes, and by the same ones however large the tables are. */
static void test_plans_are_pinned(void **state)
{
    (void)state;
    static const char *const forbidden[] = { "Seq Scan", "Hash Join", "Merge Join", "Bitmap", "Materialize", "Memoize" };
    static char empty[POSTGRES_STATEMENTS][PLAN_BYTES], full[POSTGRES_STATEMENTS][PLAN_BYTES];
    char address[POSTGRES_ADDRESS_BYTES];
    size_t plans = 0;
    postgres_server_schema(address);
    struct store *store = store_at(address, &plain);
    plans_read(address, empty);
    tables_fill(address);
    plans_read(address, full);
    for (enum postgres_statement i = 0; i < POSTGRES_STATEMENTS; i++) {
        const char *name = postgres_text(i)->name;
        plans += full[i][0] != '\0';
        for (size_t j = 0; j < COUNT_OF(forbidden); j++)
            check(!strstr(full[i], forbidden[j]), "%s has a %s:\n%s", name, forbidden[j], full[i]);
        check(strcmp(empty[i], full[i]) == 0, "%s is planned otherwise on empty tables:\n%s\nthan on full ones:\n%s", name,
              empty[i], full[i]);
    }
    assert_true(plans > 40);
    store->ops->close(store);
}

/* ---- connections that break ---- */

enum { ASKED_MAX = 600, ASK_PAUSE_MS = 50 };

/* Applies a batch whose connection is cut; whether it happened. */
static bool apply_cut(struct store_fixture *f, struct store_op *ops, size_t count)
{
    struct error err = { 0 };
    bool applied = false;
    enum status status = f->store->ops->apply(f->store, f->now, ops, count, &f->memory, &err);
    check(status == STATUS_AWAY, "%s: %s", status_name(status), err.text);
    check(strstr(err.text, "PostgreSQL is away"), "%s", err.text);
    for (int i = 0; i < ASKED_MAX && (status = f->store->ops->outcome(f->store, &applied, &err)) == STATUS_AWAY; i++)
        sleep_ms(ASK_PAUSE_MS); /* the server may take its time to see that the connection is gone */
    must(status, &err);
    return applied;
}

/* Wherever it breaks, the store knows afterwards whether the batch happened, and has all of it or nothing. */
static void test_a_cut_leaves_all_or_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *statement;
        enum proxy_cut cut;
        bool happens;
    } rows[] = {
        { "begin", PROXY_CUT_BEFORE, false },  { "begin", PROXY_CUT_AFTER, false }, { "by_key", PROXY_CUT_BEFORE, false },
        { "events", PROXY_CUT_BEFORE, false }, { "seal", PROXY_CUT_BEFORE, false }, { "commit", PROXY_CUT_BEFORE, false },
        { "commit", PROXY_CUT_AFTER, true },   { "jobs_bare", PROXY_CUT_AFTER, true }, /* it is sent with the commit */
    };
    struct postgres_proxy proxy;
    char address[POSTGRES_ADDRESS_BYTES], through[POSTGRES_ADDRESS_BYTES];
    postgres_server_schema(address);
    postgres_proxy_open(&proxy);
    postgres_proxy_address(&proxy, address, through);
    struct store_fixture f = fixture_on(store_at(through, &plain));
    int64_t lane = put(&f, "first");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char id[16];
        snprintf(id, sizeof id, "job%zu", i);
        put(&f, "more");
        struct job running = take(&f, lane);
        struct store_op ops[] = { insert_op(&f, "d", "t", id), settle_op(&running, EVENT_DELIVER), insert_op(&f, "new", id, id),
                                  { .kind = OP_NOTE, .data = SLICE("{}") } };
        struct lane_counts before = read_lane(&f, lane).counts;
        postgres_proxy_cut(&proxy, rows[i].cut, rows[i].statement);
        bool applied = apply_cut(&f, ops, COUNT_OF(ops));
        check(applied == rows[i].happens, "row %zu, %s", i, rows[i].statement);
        check(job_exists(&f, "t", id) == applied && job_exists(&f, id, id) == applied, "row %zu, %s", i, rows[i].statement);
        check(read_lane(&f, lane).counts.completed == before.completed + applied, "row %zu, %s", i, rows[i].statement);
        if (applied)
            assert_int_equal(ops[0].status + ops[1].status + ops[2].status, STATUS_OK);
        fixture_audit(&f);
        struct store_op again = insert_op(&f, "d", "t", id); /* and it goes on */
        assert_run(&f, &again, STATUS_OK);
        assert_int_equal(again.insert.ret_existed, applied);
        if (!applied) {
            struct store_op settle = settle_op(&running, EVENT_DELIVER);
            assert_run(&f, &settle, STATUS_OK);
        }
        struct store_op cancel = job_op(OP_CANCEL, "t", "more");
        fixture_run(&f, &cancel);
    }
    fixture_close(&f);
    postgres_proxy_close(&proxy);
}

/* While it cannot be reached, both sides say so; then both go on by themselves. */
static void test_away_and_back(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES];
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    struct store_op op = insert_op(&f, "d", "t", "lost");
    struct error err = { 0 };
    struct job job;
    bool applied = true;
    put(&f, "kept");
    postgres_server_stop(SIGINT);
    assert_int_equal(f.store->ops->apply(f.store, f.now, &op, 1, &f.memory, &err), STATUS_AWAY);
    for (int i = 0; i < 3; i++)
        assert_int_equal(f.store->ops->outcome(f.store, &applied, &err), STATUS_AWAY);
    check(strstr(err.text, "PostgreSQL is away"), "%s", err.text);
    assert_int_equal(f.store->ops->reader_job(f.reader, SLICE("t"), SLICE("kept"), false, &f.memory, &job, &err), STATUS_AWAY);
    postgres_server_start();
    must(f.store->ops->outcome(f.store, &applied, &err), &err);
    assert_false(applied);
    assert_true(job_exists(&f, "t", "kept"));
    assert_false(job_exists(&f, "t", "lost"));
    assert_run(&f, &op, STATUS_OK);
    fixture_close(&f);
}

/* What was answered under durability: always is there after the server was killed with all that it had in memory. */
static void test_a_killed_server_loses_nothing(void **state)
{
    (void)state;
    enum { JOBS = 50 };
    char address[POSTGRES_ADDRESS_BYTES], durable[POSTGRES_ADDRESS_BYTES + 64];
    postgres_server_schema(address);
    snprintf(durable, sizeof durable, "%s%%20-csynchronous_commit%%3Don", address);
    struct store_fixture f = fixture_on(store_at(durable, &always));
    char id[16];
    for (int i = 0; i < JOBS; i++) {
        snprintf(id, sizeof id, "job%d", i);
        put(&f, id);
    }
    postgres_server_stop(SIGKILL);
    postgres_server_start();
    fixture_drop(&f);
    f = fixture_on(store_at(durable, &always));
    for (int i = 0; i < JOBS; i++) {
        snprintf(id, sizeof id, "job%d", i);
        check(job_exists(&f, "t", id), "%s", id);
    }
    fixture_close(&f);
}

/* ---- who may write ---- */

static void test_there_is_one_daemon(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES];
    struct store *other;
    struct error err = { 0 };
    postgres_server_schema(address);
    struct store *store = store_at(address, &plain);
    assert_int_equal(store_postgres_open(slice_from(address), &plain, &other, &err), STATUS_BUSY);
    check(strstr(err.text, "another daemon works with this store"), "%s", err.text);
    store->ops->close(store);
    store = store_at(address, &plain);
    store->ops->close(store);
}

/* A connection whose chain another has taken over writes nothing, whatever it was about to. */
static void test_a_batch_that_is_too_late_leaves_nothing(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES], count[16];
    struct error err = { 0 };
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    struct store_op op = insert_op(&f, "d", "t", "late");
    put(&f, "early");
    postgres_server_run(address, "UPDATE chain SET term = term + 1", NULL, 0);
    assert_int_equal(f.store->ops->apply(f.store, f.now, &op, 1, &f.memory, &err), STATUS_IO);
    check(strstr(err.text, "another program writes to this store"), "%s", err.text);
    assert_int_equal(f.store->ops->apply(f.store, f.now, &op, 1, &f.memory, &err), STATUS_IO); /* it is over */
    postgres_server_run(address, "SELECT count(*) FROM job", count, sizeof count);
    assert_string_equal(count, "1");
    fixture_drop(&f);
}

/* A store that was put back under a daemon's feet: it says so, and does not go on. */
static void test_a_store_that_went_back_is_seen(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES], through[POSTGRES_ADDRESS_BYTES];
    struct postgres_proxy proxy;
    struct error err = { 0 };
    bool applied;
    postgres_server_schema(address);
    postgres_proxy_open(&proxy);
    postgres_proxy_address(&proxy, address, through);
    struct store_fixture f = fixture_on(store_at(through, &plain));
    put(&f, "a");
    put(&f, "b");
    postgres_server_run(address, "UPDATE chain SET batch = batch - 1", NULL, 0);
    struct store_op op = insert_op(&f, "d", "t", "c");
    postgres_proxy_cut(&proxy, PROXY_CUT_BEFORE, "begin");
    assert_int_equal(f.store->ops->apply(f.store, f.now, &op, 1, &f.memory, &err), STATUS_AWAY);
    enum status status = STATUS_AWAY; /* a busy server may keep the lock of the connection that was cut a little longer */
    for (int i = 0; i < 1200 && status == STATUS_AWAY; i++, usleep(50000))
        status = f.store->ops->outcome(f.store, &applied, &err);
    assert_int_equal(status, STATUS_IO);
    check(strstr(err.text, "restored"), "%s", err.text);
    fixture_drop(&f);
    postgres_proxy_close(&proxy);
}

/* Numbers are never given twice, whoever opens the store. */
static void test_numbers_go_on(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES];
    int64_t seq = 0, token = 0, event = 0;
    postgres_server_schema(address);
    for (int i = 0; i < 3; i++) {
        struct store_fixture f = fixture_on(store_at(address, &plain));
        struct store_op op = insert_op(&f, "d", "t", "");
        assert_run(&f, &op, STATUS_OK);
        struct job job = take(&f, op.insert.ret_lane);
        assert_true(job.seq > seq && job.lease_token > token && job.last_event > event);
        assert_int_equal(f.store->ops->head(f.store).number, job.last_event);
        assert_true(f.store->session > token && f.store->session <= job.lease_token);
        seq = job.seq;
        token = job.lease_token;
        event = job.last_event;
        fixture_close(&f);
    }
}

/* ---- servers that will not do ---- */

static void test_refusals(void **state)
{
    (void)state;
    enum { FACTS = 7 }; /* columns of the answer in which the server tells what it is */
    static const struct {
        int column;
        const char *value;
        bool sync_always;
        enum status status;
        const char *said;
    } rows[] = {
        { 0, "130012", false, STATUS_UNSUPPORTED, "PostgreSQL 13; insist needs 14" },
        { 0, "140000", false, STATUS_OK, "" },
        { 2, "", false, STATUS_INVALID, "no schema" },
        { 3, "off", true, STATUS_UNSUPPORTED, "synchronous_commit = off" },
        { 3, "local", true, STATUS_UNSUPPORTED, "synchronous_commit = local" },
        { 3, "remote_apply", true, STATUS_OK, "" },
        { 3, "off", false, STATUS_OK, "" },
        { 4, "off", false, STATUS_UNSUPPORTED, "fsync = off" },
        { 5, "off", false, STATUS_UNSUPPORTED, "full_page_writes = off" },
    };
    struct postgres_proxy proxy;
    char address[POSTGRES_ADDRESS_BYTES], through[POSTGRES_ADDRESS_BYTES];
    postgres_server_schema(address);
    postgres_proxy_open(&proxy);
    postgres_proxy_address(&proxy, address, through);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct store_settings settings = { .sync_always = rows[i].sync_always };
        struct store *store = NULL;
        struct error err = { 0 };
        proxy.columns = FACTS;
        proxy.column = rows[i].column;
        proxy.value = rows[i].value;
        enum status status = store_postgres_backend.probe(slice_from(through), rows[i].sync_always, &err);
        check(status == rows[i].status && strstr(err.text, rows[i].said), "row %zu: %s: %s", i, status_name(status), err.text);
        status = store_postgres_open(slice_from(through), &settings, &store, &err);
        check(status == rows[i].status && strstr(err.text, rows[i].said), "row %zu: %s: %s", i, status_name(status), err.text);
        if (store)
            store->ops->close(store);
    }
    postgres_proxy_close(&proxy);
}

/* A real one between: what it does to a session is seen, whatever it says. */
static void test_poolers(void **state)
{
    (void)state;
    static const struct {
        const char *mode;
        enum status status;
        const char *said;
    } rows[] = {
        { "transaction", STATUS_UNSUPPORTED, "a pooler in transaction mode is between" },
        { "session", STATUS_OK, "" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char address[POSTGRES_ADDRESS_BYTES];
        struct store *store = NULL;
        struct error err = { 0 };
        if (!postgres_pooler_start(rows[i].mode, address)) {
            print_message("pgbouncer is not installed (tools/deps test installs it)\n");
            skip();
        }
        enum status status = store_postgres_open(slice_from(address), &plain, &store, &err);
        check(status == rows[i].status && strstr(err.text, rows[i].said), "%s: %s: %s", rows[i].mode, status_name(status),
              err.text);
        if (store) {
            struct store_fixture f = fixture_on(store);
            put(&f, "by way of a pooler");
            fixture_close(&f);
        }
        postgres_pooler_stop();
    }
}

static void test_what_cannot_be_reached(void **state)
{
    (void)state;
    static const struct {
        const char *rest;
        enum status status;
        const char *said;
    } rows[] = {
        { "//127.0.0.1:1/insist?connect_timeout=2", STATUS_AWAY, "PostgreSQL is away" },
        { "///insist?host=/nowhere", STATUS_AWAY, "PostgreSQL is away" },
        { "//host/insist?nonsense=1", STATUS_INVALID, "query parameter: \"nonsense\"" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct store *store = NULL;
        struct error err = { 0 };
        enum status status = store_postgres_open(slice_from(rows[i].rest), &plain, &store, &err);
        check(status == rows[i].status && strstr(err.text, rows[i].said), "row %zu: %s: %s", i, status_name(status), err.text);
    }
}

/* The server's own words, and what to do. */
static void test_what_is_refused_at_the_door(void **state)
{
    (void)state;
    static const struct { const char *changes, *said; } rows[] = {
        { "&dbname=nothere", "createdb makes one" },
        { "&user=stranger", "createuser makes one" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char address[POSTGRES_ADDRESS_BYTES + 64];
        struct store *store = NULL;
        struct error err = { 0 };
        postgres_server_schema(address);
        snprintf(address + strlen(address), 64, "%s", rows[i].changes);
        enum status status = store_postgres_open(slice_from(address), &plain, &store, &err);
        check(status == STATUS_AWAY && strstr(err.text, rows[i].said), "row %zu: %s: %s", i, status_name(status), err.text);
    }
}

/* The documents' own queries, as docs/operations has them. */
static void test_the_documents_queries_run(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES], first[200];
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    int64_t lane = put(&f, "a");
    take_and_settle(&f, lane, EVENT_GIVE_UP);
    put(&f, "b");
    postgres_server_run(address, "SELECT lastFailureCode, COUNT(*) FROM dlq GROUP BY lastFailureCode ORDER BY COUNT(*) DESC", first,
                        sizeof first);
    postgres_server_run(address, "SELECT COUNT(*) FROM dlq WHERE companyId = 't' AND jobId = 'a' AND lastFailureReason <> ''", first,
                        sizeof first);
    assert_string_equal(first, "1");
    postgres_server_run(address, "SELECT string_agg(Id || ' ' || Estado || ' ' || Prioridad, ',' ORDER BY Id) FROM "
                                 "DocumentosContingencia", first, sizeof first);
    assert_string_equal(first, "a Error 3,b Pendiente 3");
    fixture_close(&f);
}

/* How often the writer's connection was given that statement. */
static int64_t times_sent(struct store_fixture *f, enum postgres_statement statement)
{
    struct postgres_link *link = &((struct postgres_store *)f->store)->link;
    struct error err = { 0 };
    char sql[160];
    PGresult *answer;
    snprintf(sql, sizeof sql, "SELECT generic_plans FROM pg_prepared_statements WHERE name = '%s'", postgres_text(statement)->name);
    assert_int_equal(PQsendQueryParams(link->conn, sql, 0, NULL, NULL, NULL, NULL, 0), 1);
    link->awaited++;
    must(link_flush(link, true, &err), &err);
    must(link_answer(link, &answer, &err), &err);
    must(link_drain(link, &err), &err);
    int64_t times = strtoll(PQgetvalue(answer, 0, 0), NULL, 10);
    PQclear(answer);
    return times;
}

/* However large the jobs of a batch are, no statement is much larger than one of them; and of each all is kept. */
static void test_large_jobs_go_one_after_the_other(void **state)
{
    (void)state;
    enum { JOBS = 6, LARGE_BYTES = 300 << 10 };
    static const enum postgres_statement statements[] = { WRITE_JOBS_BARE, WRITE_JOBS };
    static char large[LARGE_BYTES];
    char address[POSTGRES_ADDRESS_BYTES], ids[JOBS][16];
    memset(large, 'x', sizeof large);
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    for (size_t with = 0; with < COUNT_OF(statements); with++) {
        struct store_op ops[JOBS];
        for (int i = 0; i < JOBS; i++) {
            snprintf(ids[i], sizeof ids[i], "job%zu-%d", with, i);
            ops[i] = insert_op(&f, "d", "t", ids[i]);
            ops[i].insert.payload = (struct slice){ large, sizeof large };
            ops[i].insert.correlation_id = with ? SLICE("c") : SLICE("");
        }
        run_together(&f, ops, JOBS);
        assert_int_equal(times_sent(&f, statements[with]), JOBS);
        for (int i = 0; i < JOBS; i++)
            assert_int_equal(read_job(&f, "t", ids[i]).payload.len, LARGE_BYTES);
    }
    fixture_close(&f);
}

/* What a job has besides its payload is kept, also where it has nothing else. */
static void test_one_thing_besides_the_payload_is_kept(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES], id[16];
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    for (int i = 0; i <= 6; i++) {
        snprintf(id, sizeof id, "job%d", i);
        struct store_op op = insert_op(&f, "d", "t", id);
        struct slice *const texts[] = { &op.insert.headers, &op.insert.correlation_id, &op.insert.metadata, &op.insert.key,
                                        &op.insert.callback };
        if (i < 5)
            *texts[i] = SLICE("{\"a\":1}");
        op.insert.deadline = i == 5 ? f.now + HOUR_MS : INSTANT_NONE;
        assert_run(&f, &op, STATUS_OK);
        struct job job = read_job(&f, "t", id);
        const struct slice kept[] = { job.headers, job.correlation_id, job.metadata, job.key, job.callback };
        for (int j = 0; j < 5; j++)
            assert_text(kept[j], i == j ? "{\"a\":1}" : "");
        assert_true(job.deadline == op.insert.deadline && (job.chain != 0) == (i == 3));
    }
    fixture_close(&f);
}

/* ---- what goes ---- */

/* Jobs of so many tenants come, are delivered and forgotten. */
static void tenants_come_and_go(struct store_fixture *f, int round, int count)
{
    for (int i = 0; i < count; i++) {
        char tenant[24];
        snprintf(tenant, sizeof tenant, "once-%d-%d", round, i);
        struct store_op op = insert_op(f, "d", tenant, "job");
        assert_run(f, &op, STATUS_OK);
        struct job job = take(f, op.insert.ret_lane);
        struct store_op settle = settle_op(&job, EVENT_DELIVER);
        settle.settle.forget_at = f->now + 10;
        assert_run(f, &settle, STATUS_OK);
    }
    f->now += 10;
    while (promote(f).ret_forgotten > 0)
        ;
}

static int64_t completed_of_d(struct store_fixture *f)
{
    struct destination_total *totals;
    struct error err = { 0 };
    size_t count;
    must(f->store->ops->reader_totals(f->reader, 1, &f->memory, &totals, &count, &err), &err);
    assert_int_equal(count, 1);
    return totals[0].counts.completed;
}

/* Tenants come and go, alone or where nodes share the store: their lanes go with their trail, what they did stays. */
static void test_tenants_that_came_once_leave_no_rows(void **state)
{
    (void)state;
    enum { TENANTS = 20, ROUNDS = 3 };
    const struct store_settings settings[] = { plain, node_named("one") };
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        char address[POSTGRES_ADDRESS_BYTES];
        postgres_server_schema(address);
        struct store_fixture f = fixture_on(store_at(address, &settings[i]));
        struct store_op take_d = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
        struct store_op take_office = { .kind = OP_TAKE, .own = { .destination = SLICE("") } };
        assert_run(&f, &take_d, STATUS_OK);
        assert_run(&f, &take_office, STATUS_OK);
        for (int round = 0; round < ROUNDS; round++) {
            tenants_come_and_go(&f, round, TENANTS);
            struct store_op trim = { .kind = OP_TRIM, .trim = { .before = f.now - DAY_MS, .max = 100000 } };
            assert_run(&f, &trim, STATUS_OK);
            assert_int_equal(rows_of(address, "lane_count"), 0);
            assert_true(rows_of(address, "lane") >= TENANTS); /* its events name them */
            assert_int_equal(completed_of_d(&f), (round + 1) * TENANTS);
            f.now += 2 * DAY_MS;
            note_in(&f, "{\"note\":\"later\"}");
            trim.trim.before = f.now - DAY_MS;
            assert_run(&f, &trim, STATUS_OK);
            assert_true(rows_of(address, "lane") <= 1); /* of a trail one event is left */
        }
        fixture_drop(&f);
        f = fixture_on(store_at(address, &settings[i]));
        assert_int_equal(completed_of_d(&f), ROUNDS * TENANTS);
        fixture_close(&f);
    }
}

static void end_in_order(struct store_fixture *f)
{
    struct error err = { 0 };
    must(f->store->ops->end(f->store, f->now, &err), &err);
    fixture_drop(f);
}

/* Names that come once: when nobody knows of their sessions any more, the next has their row, chain and counters. */
static void test_nodes_that_came_once_leave_no_rows(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES];
    struct error err = { 0 };
    struct trail_check check;
    const struct store_settings stays = node_named("stays");
    postgres_server_schema(address);
    struct store_fixture steward = fixture_on(store_at(address, &stays));
    struct store_op office = { .kind = OP_TAKE, .own = { .destination = SLICE("") } };
    assert_run(&steward, &office, STATUS_OK);
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "pod-%d", i);
        const struct store_settings settings = node_named(name);
        struct store_fixture f = fixture_on(store_at(address, &settings));
        put(&f, name);
        end_in_order(&f);
        if (i == 1) /* these two are remembered; then all are forgotten, one by one */
            assert_int_equal(rows_of(address, "node"), 3);
        if (i >= 1)
            postgres_server_run(address, "UPDATE ended SET noted = 0", NULL, 0);
        steward.now += DAY_MS;
        must(steward.store->ops->tend(steward.store, steward.now, &err), &err);
        assert_int_equal(rows_of(address, "ended"), i == 0);
    }
    assert_int_equal(rows_of(address, "node"), 3);
    assert_int_equal(rows_of(address, "chain"), 4); /* that of one alone is always there */
    assert_int_equal(rows_of(address, "lane_count"), 2);
    end_in_order(&steward);
    must(verify_at(address, NULL, 0, &check, &err), &err);
}

/* ---- several chains ---- */

/* Each node has a chain, and names where the others' end: an end that is cut off is missed, whichever it is. */
static void test_chains_name_each_other(void **state)
{
    (void)state;
    static const struct {
        const char *cut, *said;
    } rows[] = {
        { "DELETE FROM event_page WHERE last >> 40 = 1 AND first > (SELECT min(number) FROM event WHERE chain = 1); UPDATE chain SET"
          " number = v.number, hash = v.hash, mark = sha256('x') FROM event v WHERE v.chain = 1 AND id = 1", "chain 2 names event 1.2" },
        { "UPDATE event_page SET attempts[1] = 7 WHERE last >> 40 = 2 AND first & 255 = 2", "event 2.2 is not what was written" },
        { "DELETE FROM event_page WHERE last >> 40 = 2 AND last & 255 = 1", "event 2.1 is missing" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char address[POSTGRES_ADDRESS_BYTES], text[TRAIL_HEAD_BYTES];
        const struct store_settings one = node_named("one"), two = node_named("two");
        struct error err = { 0 };
        struct trail_check check;
        struct trail_head noted[2];
        postgres_server_schema(address);
        struct store_fixture a = fixture_on(store_at(address, &one)), b = fixture_on(store_at(address, &two));
        for (int n = 0; n < 2; n++) {
            note_in(&a, "{\"note\":\"a\"}");
            note_in(&b, "{\"note\":\"b\"}");
        }
        must(a.store->ops->tend(a.store, a.now, &err), &err);
        must(b.store->ops->tend(b.store, b.now, &err), &err);
        note_in(&b, "{\"note\":\"b\"}"); /* with it goes what chain 1 ends with */
        fixture_drop(&a);
        fixture_drop(&b);
        must(verify_at(address, NULL, 0, &check, &err), &err);
        assert_int_equal(check.head_count, 3);
        trail_head_format(&check.heads[2], text);
        assert_true(strncmp(text, "2.4:", 4) == 0);
        must(trail_head_parse(slice_from(text), &noted[0], &err), &err);
        noted[1] = check.heads[1];
        must(verify_at(address, noted, 2, &check, &err), &err);
        noted[1].hash[0] ^= 1;
        assert_int_equal(verify_at(address, noted, 2, &check, &err), STATUS_CORRUPT);
        noted[1].number = (int64_t)9 << EVENT_CHAIN_SHIFT | 1;
        assert_int_equal(verify_at(address, noted, 2, &check, &err), STATUS_CORRUPT);
        check(strstr(err.text, "event 9.1 was noted"), "%s", err.text);
        postgres_server_run(address, rows[i].cut, NULL, 0);
        enum status status = verify_at(address, NULL, 0, &check, &err);
        check(status == STATUS_CORRUPT && strstr(err.text, rows[i].said), "row %zu: %s: %s", i, status_name(status), err.text);
    }
}

/* ---- from outside ---- */

static void test_a_store_is_looked_at(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES];
    struct store *outside;
    struct store_facts facts;
    struct trail_check chain;
    struct trail_reading reading = { 0 };
    struct error err = { 0 };
    postgres_server_schema(address);
    must(store_postgres_backend.look(slice_from(address), &outside, &err), &err);
    assert_int_equal(store_facts(outside, &facts, &err), STATUS_NOT_FOUND);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    put(&f, "a");
    put(&f, "b");
    must(store_facts(outside, &facts, &err), &err);
    assert_int_equal(facts.pending, 2);
    assert_int_equal(facts.event_last, 2);
    assert_true(facts.bytes > 0 && !facts.unwritable && facts.newest_at == f.now);
    must(store_check(outside, &err), &err);
    must(store_verify(outside, &reading, &chain, &err), &err);
    assert_int_equal(chain.at.number, 2);
    assert_int_equal(store_backup(outside, "copy", &facts, &err), STATUS_UNSUPPORTED);
    check(strstr(err.text, "pg_basebackup"), "%s", err.text);
    /* What somebody changes is found. */
    postgres_server_run(address, "UPDATE lane_count SET pending = 7", NULL, 0);
    assert_int_equal(store_check(outside, &err), STATUS_CORRUPT);
    check(strstr(err.text, "counters"), "%s", err.text);
    postgres_server_run(address, "UPDATE lane_count SET pending = 2", NULL, 0);
    postgres_server_run(address, "UPDATE event_page SET at = at + 1 WHERE last = 2", NULL, 0);
    assert_int_equal(store_verify(outside, &reading, &chain, &err), STATUS_CORRUPT);
    postgres_server_run(address, "DELETE FROM event_page WHERE last = 2", NULL, 0);
    assert_int_equal(store_verify(outside, &reading, &chain, &err), STATUS_CORRUPT);
    outside->ops->close(outside);
    fixture_drop(&f);
    /* Who opens it then says so in the trail itself. */
    f = fixture_on(store_at(address, &plain));
    size_t count;
    struct event *events = read_events(&f, 0, &count);
    assert_int_equal(count, 2);
    assert_true(slice_has_prefix(events[1].data, SLICE("{\"note\":\"trail_broken\"")));
    fixture_drop(&f);
}

/* A job whose payload somebody has changed in the table is not sent. */
static void test_a_damaged_job_is_told(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES];
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    int64_t lane = put(&f, "a");
    put(&f, "b");
    postgres_server_run(address, "UPDATE job SET body = 'other' WHERE id = 'b'", NULL, 0);
    assert_false(take(&f, lane).damaged);
    assert_true(take(&f, lane).damaged);
    fixture_close(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_are_pinned),
        cmocka_unit_test(test_a_cut_leaves_all_or_nothing),
        cmocka_unit_test(test_away_and_back),
        cmocka_unit_test(test_a_killed_server_loses_nothing),
        cmocka_unit_test(test_there_is_one_daemon),
        cmocka_unit_test(test_a_batch_that_is_too_late_leaves_nothing),
        cmocka_unit_test(test_a_store_that_went_back_is_seen),
        cmocka_unit_test(test_numbers_go_on),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_poolers),
        cmocka_unit_test(test_what_cannot_be_reached),
        cmocka_unit_test(test_what_is_refused_at_the_door),
        cmocka_unit_test(test_the_documents_queries_run),
        cmocka_unit_test(test_large_jobs_go_one_after_the_other),
        cmocka_unit_test(test_one_thing_besides_the_payload_is_kept),
        cmocka_unit_test(test_tenants_that_came_once_leave_no_rows),
        cmocka_unit_test(test_nodes_that_came_once_leave_no_rows),
        cmocka_unit_test(test_chains_name_each_other),
        cmocka_unit_test(test_a_store_is_looked_at),
        cmocka_unit_test(test_a_damaged_job_is_told),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const char *missing = postgres_server_missing();
    if (missing) {
        printf("1..0 # SKIP %s\n", missing);
        return EXIT_SUCCESS;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
