/*
 * A PostgreSQL that refuses, is full, is set up otherwise than one thinks, or breaks off just then: what the store says, and
 * that it goes on when that is over.
 */
#include "store/inspect.h"
#include "store/postgres/handle.h"
#include "store/postgres/postgres.h"
#include "support/check.h"
#include "support/postgres_fixture.h"
#include "support/postgres_proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASKED_MAX = 600, ASK_PAUSE_MS = 50 };

static const struct store_settings plain = { .pending_max = 100000 };

/* One statement on the writer's own connection, whatever becomes of it. */
static void run_beneath(struct store_fixture *f, const char *sql)
{
    struct postgres_link *link = &((struct postgres_store *)f->store)->link;
    struct error err = { 0 };
    assert_int_equal(PQsendQueryParams(link->conn, sql, 0, NULL, NULL, NULL, NULL, 0), 1);
    link->awaited++;
    must(link_flush(link, true, &err), &err);
    (void)!link_drain(link, &err);
}

/* Until it is known what became of a batch. */
static bool outcome_of(struct store_fixture *f)
{
    struct error err = { 0 };
    bool applied = false;
    enum status status = STATUS_AWAY;
    for (int i = 0; i < ASKED_MAX && (status = f->store->ops->outcome(f->store, &applied, &err)) == STATUS_AWAY; i++)
        sleep_ms(ASK_PAUSE_MS);
    must(status, &err);
    return applied;
}

/* ---- what is left open ---- */

/* A transaction that somebody has left failed is no fault of the store's: the connection is made anew, and all goes on. */
static void test_a_connection_in_a_failed_transaction_is_given_up(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES];
    struct error err = { 0 };
    (void)state;
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    struct store_op op = insert_op(&f, "d", "t", "later");
    run_beneath(&f, "BEGIN");
    run_beneath(&f, "SELECT 1 / 0");
    enum status status = f.store->ops->apply(f.store, f.now, &op, 1, &f.memory, &err);
    check(status == STATUS_AWAY, "%s: %s", status_name(status), err.text);
    assert_false(outcome_of(&f));
    assert_run(&f, &op, STATUS_OK);
    fixture_drop(&f);
}

/* A sync that is refused leaves no transaction behind, and is asked for again. */
static void test_a_sync_that_is_refused_leaves_nothing_open(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES];
    struct error err = { 0 };
    (void)state;
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    put(&f, "before");
    run_beneath(&f, "DEALLOCATE sync_number");
    assert_int_equal(f.store->ops->sync(f.store, &err), STATUS_IO);
    check(strstr(err.text, "sync_number"), "%s", err.text);
    put(&f, "after");
    assert_int_equal(number_of(address, "SELECT count(*) FROM job"), 2); /* as others see it */
    fixture_drop(&f);
}

/*
 * The network was cut: the store knows that its connection is gone, and the server does not, for hours if nobody tells it. What
 * that connection has, the store's lock for one, is not waited for.
 */
static void test_a_connection_that_only_the_server_has_is_ended(void **state)
{
    static const char *const statements[] = { "begin", "commit" };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(statements); i++) {
        char address[POSTGRES_ADDRESS_BYTES], through[POSTGRES_ADDRESS_BYTES];
        struct postgres_proxy proxy;
        struct error err = { 0 };
        postgres_server_schema(address);
        postgres_proxy_open(&proxy);
        postgres_proxy_address(&proxy, address, through);
        struct store_fixture f = fixture_on(store_at(through, &plain));
        put(&f, "first");
        struct store_op op = insert_op(&f, "d", "t", "more");
        proxy.keeps = true;
        postgres_proxy_cut(&proxy, PROXY_CUT_BEFORE, statements[i]);
        assert_int_equal(f.store->ops->apply(f.store, f.now, &op, 1, &f.memory, &err), STATUS_AWAY);
        assert_false(outcome_of(&f));
        assert_run(&f, &op, STATUS_OK);
        assert_true(proxy.kept_count > 0);
        fixture_drop(&f);
        postgres_proxy_close(&proxy);
    }
}

/* A node that was taken for dead while it was away begins another session; what it was about to do is over. */
static void test_a_fenced_node_in_doubt_begins_anew(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES], through[POSTGRES_ADDRESS_BYTES];
    const struct store_settings one = node_named("one"), two = node_named("two");
    struct postgres_proxy proxy;
    struct error err = { 0 };
    bool applied;
    (void)state;
    postgres_server_schema(address);
    postgres_proxy_open(&proxy);
    postgres_proxy_address(&proxy, address, through);
    struct store_fixture a = fixture_on(store_at(through, &one)), b = fixture_on(store_at(address, &two));
    must(a.store->ops->beat(a.store, 1, &err), &err);
    int64_t session = a.store->session;
    put(&a, "first");
    struct store_op op = insert_op(&a, "d", "t", "late");
    postgres_proxy_cut(&proxy, PROXY_CUT_BEFORE, "commit");
    assert_int_equal(a.store->ops->apply(a.store, a.now, &op, 1, &a.memory, &err), STATUS_AWAY);
    must(b.store->ops->fence(b.store, session, 1, b.now, &err), &err);
    assert_int_equal(a.store->ops->outcome(a.store, &applied, &err), STATUS_FENCED);
    assert_int_equal(a.store->ops->apply(a.store, a.now, &op, 1, &a.memory, &err), STATUS_FENCED);
    must(a.store->ops->begin(a.store, a.now, &err), &err);
    assert_true(a.store->session > session);
    assert_run(&a, &op, STATUS_OK);
    assert_false(op.insert.ret_existed);
    fixture_drop(&a);
    fixture_drop(&b);
    postgres_proxy_close(&proxy);
}

/*
 * A store that was restored to a moment before the session began knows nothing of it. That is no fence: what the node wrote
 * is missing, and it must say so instead of beginning anew as if nothing was.
 */
static void test_a_restore_is_not_taken_for_a_fence(void **state)
{
    static const char *const restores[] = {
        "UPDATE node SET session = 0; UPDATE chain SET session = 0, batch = batch - 1 WHERE id = 1",
        "DELETE FROM node; DELETE FROM chain WHERE id = 1", /* nor of the node */
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(restores); i++) {
        char address[POSTGRES_ADDRESS_BYTES];
        const struct store_settings one = node_named("one");
        struct error err = { 0 }, heard = { 0 };
        bool applied;
        postgres_server_schema(address);
        struct store_fixture a = fixture_on(store_at(address, &one));
        must(a.store->ops->beat(a.store, 1, &err), &err);
        put(&a, "first");
        postgres_server_run(address, restores[i], NULL, 0);
        assert_string_equal(status_name(a.store->ops->beat(a.store, 1, &heard)), status_name(STATUS_CORRUPT));
        check(strstr(heard.text, "gone back in time"), "%s", heard.text);
        link_close(&((struct postgres_store *)a.store)->link);
        struct store_op op = insert_op(&a, "d", "t", "late");
        assert_int_equal(a.store->ops->apply(a.store, a.now, &op, 1, &a.memory, &err), STATUS_AWAY);
        assert_string_equal(status_name(a.store->ops->outcome(a.store, &applied, &err)), status_name(STATUS_CORRUPT));
        check(strstr(err.text, "gone back in time"), "%s", err.text);
        fixture_drop(&a);
    }
}

/* Two stores may lie in one database, and their sessions have the same numbers: who is fenced in one is nobody's in the other. */
static void test_a_fence_is_of_its_own_store(void **state)
{
    char here[POSTGRES_ADDRESS_BYTES], there[POSTGRES_ADDRESS_BYTES], through[POSTGRES_ADDRESS_BYTES];
    const struct store_settings one = node_named("one"), two = node_named("two");
    struct postgres_proxy proxy;
    struct applying applying;
    struct error err = { 0 };
    (void)state;
    postgres_server_schema(here);
    postgres_server_schema(there);
    postgres_proxy_open(&proxy);
    postgres_proxy_address(&proxy, there, through);
    struct store_fixture a = fixture_on(store_at(here, &one)), b = fixture_on(store_at(here, &two));
    struct store_fixture other = fixture_on(store_at(through, &one));
    assert_int_equal(other.store->session, a.store->session);
    must(a.store->ops->beat(a.store, 1, &err), &err);
    struct store_op op = insert_op(&other, "d", "t", "under way");
    postgres_proxy_cut(&proxy, PROXY_HOLD, "commit");
    applying_begin(&applying, &other, &op, 1);
    for (int i = 0; i < ASKED_MAX && number_of(there, "SELECT count(*) FROM (SELECT 1 FROM chain WHERE session > 0"
                                                      " FOR UPDATE SKIP LOCKED) free") > 0; i++)
        sleep_ms(1); /* until it is sealed */
    must(b.store->ops->fence(b.store, a.store->session, 1, b.now, &err), &err);
    postgres_proxy_cut(&proxy, PROXY_CUT_NONE, NULL);
    applying_end(&applying);
    check(applying.status == STATUS_OK, "%s: %s", status_name(applying.status), applying.err.text);
    fixture_drop(&a);
    fixture_drop(&b);
    fixture_drop(&other);
    postgres_proxy_close(&proxy);
}

/* ---- a full disk, as the server tells of it ---- */

static void refuse_rows(const char *address, const char *table, const char *when)
{
    char sql[400];
    postgres_server_run(address, "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                                 " RAISE 'no space left on device' USING ERRCODE = '53100'; END $$", NULL, 0);
    snprintf(sql, sizeof sql, "CREATE TRIGGER refuse BEFORE %s ON %s EXECUTE FUNCTION refuse()", when, table);
    postgres_server_run(address, sql, NULL, 0);
}

static void take_rows(const char *address, const char *table)
{
    char sql[100];
    snprintf(sql, sizeof sql, "DROP TRIGGER refuse ON %s", table);
    postgres_server_run(address, sql, NULL, 0);
}

/* The first error is what is told, wherever the connection breaks behind it; before it, that it broke. */
static void test_a_full_disk_and_a_connection_that_breaks_behind_it(void **state)
{
    enum { MESSAGES_MAX = 200 };
    char address[POSTGRES_ADDRESS_BYTES], through[POSTGRES_ADDRESS_BYTES];
    struct postgres_proxy proxy;
    int away = 0, full = 0;
    (void)state;
    postgres_server_schema(address);
    postgres_proxy_open(&proxy);
    postgres_proxy_address(&proxy, address, through);
    struct store_fixture f = fixture_on(store_at(through, &plain));
    put(&f, "first");
    refuse_rows(address, "event_page", "INSERT");
    for (int left = 0; left < MESSAGES_MAX && full < 2; left++) {
        struct error err = { 0 };
        struct store_op ops[] = { insert_op(&f, "d", "t", "more"), insert_op(&f, "d", "u", "more") };
        postgres_proxy_pass(&proxy, -1, left);
        enum status status = f.store->ops->apply(f.store, f.now, ops, COUNT_OF(ops), &f.memory, &err);
        check(status == err.status, "after %d messages: %s, and says %s: %s", left, status_name(status),
              status_name(err.status), err.text);
        check(status == STATUS_AWAY || (status == STATUS_FULL && strstr(err.text, "no space left")), "after %d messages: %s: %s",
              left, status_name(status), err.text);
        bool was_cut = postgres_proxy_pass(&proxy, -1, -1);
        away += status == STATUS_AWAY;
        full += status == STATUS_FULL && !was_cut;
        if (status == STATUS_AWAY)
            assert_false(outcome_of(&f));
    }
    assert_true(away > 10 && full == 2);
    take_rows(address, "event_page");
    struct store_op again = insert_op(&f, "d", "t", "more");
    struct error err = { 0 };
    if (f.store->ops->apply(f.store, f.now, &again, 1, &f.memory, &err) == STATUS_AWAY) { /* the last cut was behind the answer */
        assert_false(outcome_of(&f));
        assert_run(&f, &again, STATUS_OK);
    }
    assert_false(again.insert.ret_existed);
    fixture_drop(&f);
    postgres_proxy_close(&proxy);
}

/* Nor is a store lost that came back when there was no space for its first word. */
static void test_a_full_disk_on_the_way_back(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES], through[POSTGRES_ADDRESS_BYTES];
    struct postgres_proxy proxy;
    struct error err = { 0 };
    bool applied;
    (void)state;
    postgres_server_schema(address);
    postgres_proxy_open(&proxy);
    postgres_proxy_address(&proxy, address, through);
    struct store_fixture f = fixture_on(store_at(through, &plain));
    put(&f, "first");
    struct store_op op = insert_op(&f, "d", "t", "more");
    postgres_proxy_cut(&proxy, PROXY_CUT_BEFORE, "begin");
    assert_int_equal(f.store->ops->apply(f.store, f.now, &op, 1, &f.memory, &err), STATUS_AWAY);
    refuse_rows(address, "chain", "UPDATE");
    enum status status = STATUS_AWAY;
    for (int i = 0; i < ASKED_MAX && status == STATUS_AWAY && !strstr(err.text, "no space left"); i++, sleep_ms(ASK_PAUSE_MS))
        status = f.store->ops->outcome(f.store, &applied, &err);
    check(status == STATUS_AWAY && err.status == STATUS_AWAY && strstr(err.text, "no space left"), "%s: %s",
          status_name(status), err.text);
    take_rows(address, "chain");
    assert_false(outcome_of(&f));
    assert_run(&f, &op, STATUS_OK);
    fixture_drop(&f);
    postgres_proxy_close(&proxy);
}

/* ---- what waits to be said of other chains ---- */

/* It is said by the next batch that is committed, not by one that was not. */
static void test_heads_are_told_when_they_are_committed(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES], through[POSTGRES_ADDRESS_BYTES];
    const struct store_settings one = node_named("one"), two = node_named("two");
    static const char told[] = "SELECT count(*) FROM event WHERE chain = 1 AND position('heads' in convert_from(data, 'UTF8')) > 0";
    struct postgres_proxy proxy;
    struct error err = { 0 };
    (void)state;
    postgres_server_schema(address);
    postgres_proxy_open(&proxy);
    postgres_proxy_address(&proxy, address, through);
    struct store_fixture a = fixture_on(store_at(through, &one)), b = fixture_on(store_at(address, &two));
    put(&b, "by the other");
    must(a.store->ops->tend(a.store, a.now, &err), &err);
    struct store_op op = insert_op(&a, "d", "t", "more");
    refuse_rows(address, "event_page", "INSERT");
    assert_int_equal(a.store->ops->apply(a.store, a.now, &op, 1, &a.memory, &err), STATUS_FULL);
    take_rows(address, "event_page");
    postgres_proxy_cut(&proxy, PROXY_CUT_BEFORE, "commit");
    assert_int_equal(a.store->ops->apply(a.store, a.now, &op, 1, &a.memory, &err), STATUS_AWAY);
    assert_false(outcome_of(&a));
    postgres_proxy_cut(&proxy, PROXY_CUT_AFTER, "commit");
    assert_int_equal(a.store->ops->apply(a.store, a.now, &op, 1, &a.memory, &err), STATUS_AWAY);
    assert_int_equal(number_of(address, told), 1);
    assert_true(outcome_of(&a));
    put(&a, "another");
    assert_int_equal(number_of(address, told), 1); /* once */
    fixture_drop(&a);
    fixture_drop(&b);
    postgres_proxy_close(&proxy);
}

/* ---- servers that are set up otherwise ---- */

/* What a node does: it takes, adds, rings, is heard by another, claims, settles, reads, and looks after itself. */
static void nodes_work(const char *address)
{
    static const char odd[] = "a\xc3\xa7\xc3\xa3o \xff\\x41'";
    const struct store_settings one = node_named("n\xc3\xb3-\\x41'"), two = node_named("two");
    struct store_op own = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
    struct error err = { 0 };
    struct lane_heard *heard = NULL;
    size_t count = 0;
    struct store_fixture a = fixture_on(store_at(address, &one)), b = fixture_on(store_at(address, &two));
    must(a.store->ops->beat(a.store, 1, &err), &err);
    must(b.store->ops->beat(b.store, 1, &err), &err);
    (void)!a.store->ops->hear(a.store, &a.memory, &heard, &count, &err);
    assert_run(&a, &own, STATUS_OK);
    struct store_op op = insert_op(&b, "d", odd, odd);
    assert_run(&b, &op, STATUS_OK);
    must(b.store->ops->ring(b.store, &err), &err);
    for (int i = 0; i < ASKED_MAX && count == 0; i++, sleep_ms(count == 0 ? ASK_PAUSE_MS : 0))
        must(a.store->ops->hear(a.store, &a.memory, &heard, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_slice(heard[0].tenant, slice_from(odd));
    struct job job = take(&a, heard[0].lane);
    struct store_op settle = settle_op(&job, EVENT_GIVE_UP);
    assert_run(&a, &settle, STATUS_OK);
    assert_slice(read_job(&a, odd, odd).last_error, SLICE("timeout"));
    must(a.store->ops->tend(a.store, a.now, &err), &err);
    must(a.store->ops->sync(a.store, &err), &err);
    struct store *outside;
    must(store_postgres_backend.look(slice_from(address), &outside, &err), &err);
    must(store_check(outside, &err), &err);
    outside->ops->close(outside);
    fixture_drop(&a);
    fixture_drop(&b);
}

/* Whatever an administrator has set for the role or the database, as these options do. */
static void test_what_is_set_for_the_role_changes_nothing(void **state)
{
    static const char *const set[] = {
        "standard_conforming_strings%3Doff", "default_transaction_isolation%3Dserializable", "bytea_output%3Descape",
        "statement_timeout%3D100", "lock_timeout%3D100", "idle_in_transaction_session_timeout%3D50", "enable_indexscan%3Doff",
        "client_encoding%3DLATIN1", "DateStyle%3DGerman", "array_nulls%3Doff", "quote_all_identifiers%3Don",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(set); i++) {
        char address[POSTGRES_ADDRESS_BYTES], with[POSTGRES_ADDRESS_BYTES + 80];
        postgres_server_schema(address);
        snprintf(with, sizeof with, "%s%%20-c%s", address, set[i]);
        nodes_work(with);
    }
}

/* Nor is a connection ended because nobody had anything to do for a while. */
static void test_an_idle_store_keeps_its_connection(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES], with[POSTGRES_ADDRESS_BYTES + 80], whole[POSTGRES_ADDRESS_BYTES + 96];
    (void)state;
    postgres_server_schema(address);
    snprintf(with, sizeof with, "%s%%20-cidle_session_timeout%%3D2000", address);
    snprintf(whole, sizeof whole, "postgres:%s", with);
    struct store_fixture f = fixture_on(store_at(with, &plain));
    put(&f, "before");
    PGconn *other = PQconnectdb(whole); /* it is idle from now on, and the store has been for longer */
    assert_int_equal(PQstatus(other), CONNECTION_OK);
    for (int i = 0; i < ASKED_MAX && PQconsumeInput(other); i++)
        sleep_ms(ASK_PAUSE_MS);
    assert_int_equal(PQstatus(other), CONNECTION_BAD);
    put(&f, "after");
    PQfinish(other);
    fixture_drop(&f);
}

/* Names are bytes, so a database may have any encoding. */
static void test_databases_of_other_encodings(void **state)
{
    static const char *const encodings[] = { "LATIN1", "SQL_ASCII", "EUC_JP" };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(encodings); i++) {
        char address[POSTGRES_ADDRESS_BYTES], sql[160];
        postgres_server_schema(address);
        snprintf(sql, sizeof sql, "CREATE DATABASE other_%zu TEMPLATE template0 ENCODING '%s' LC_COLLATE 'C' LC_CTYPE 'C'", i,
                 encodings[i]);
        postgres_server_run(address, sql, NULL, 0);
        snprintf(address, sizeof address, "///other_%zu?host=%s&user=insist", i, postgres_server_folder());
        nodes_work(address);
    }
}

/* A name of as many bytes as PostgreSQL takes: the bell's channel has no place for all of them. */
static void test_a_schema_of_a_long_name(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES], sql[160], name[64];
    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    postgres_server_schema(address);
    snprintf(sql, sizeof sql, "CREATE SCHEMA %s", name);
    postgres_server_run(address, sql, NULL, 0);
    snprintf(address, sizeof address, "///postgres?host=%s&user=insist&options=-csearch_path%%3D%s", postgres_server_folder(), name);
    nodes_work(address);
}

/* ---- which schema it is ---- */

static void path_address(const char *path, char ret_address[POSTGRES_ADDRESS_BYTES])
{
    snprintf(ret_address, POSTGRES_ADDRESS_BYTES, "///postgres?host=%s&user=insist&options=-csearch_path%%3D%s",
             postgres_server_folder(), path);
}

/* The store of a search_path is the first one along it, whoever has put something else in front; and there is one lock of it. */
static void test_the_store_of_a_path_is_one(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES], longer[POSTGRES_ADDRESS_BYTES];
    struct store *second = NULL;
    struct error err = { 0 };
    (void)state;
    postgres_server_schema(address);
    postgres_server_run(address, "CREATE SCHEMA kept_here; CREATE SCHEMA in_front; CREATE TABLE in_front.job (theirs int);"
                                 " CREATE TABLE in_front.meta (theirs int)", NULL, 0);
    path_address("kept_here", address);
    path_address("in_front,kept_here", longer);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    put(&f, "first");
    assert_int_equal(store_postgres_open(slice_from(longer), &plain, &second, &err), STATUS_BUSY);
    check(strstr(err.text, "another daemon works with this store"), "%s", err.text);
    put(&f, "second");
    fixture_drop(&f);
    f = fixture_on(store_at(longer, &plain));
    assert_true(job_exists(&f, "t", "second"));
    put(&f, "third");
    fixture_drop(&f);
    assert_int_equal(number_of(address, "SELECT count(*) FROM kept_here.job"), 3);
}

/* And a new one is made in the first schema of it, whatever others have behind. */
static void test_a_new_store_beside_others_tables(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES];
    (void)state;
    postgres_server_schema(address);
    postgres_server_run(address, "CREATE SCHEMA fresh; CREATE SCHEMA theirs; CREATE TABLE theirs.meta (theirs int)", NULL, 0);
    path_address("fresh,theirs", address);
    nodes_work(address);
    assert_int_equal(number_of(address, "SELECT count(*) FROM fresh.job"), 1);
}

/* ---- texts that rows share ---- */

/* A text that some of the last rows have is sent once, whatever comes between. */
static void test_texts_that_come_again_are_sent_once(void **state)
{
    enum { ROWS = 512 };
    static const struct {
        int texts, sent;
    } rows[] = { { 1, 1 }, { 2, 2 }, { SHARED_KEPT, SHARED_KEPT }, { SHARED_KEPT + 1, ROWS } };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct postgres_params params = { 0 };
        char text[16] = "";
        params_begin(&params, "NB");
        for (int row = 0; row < ROWS; row++) {
            snprintf(text, sizeof text, "%.*s", row % rows[i].texts, "aaaaaaaaaaaaaaa"); /* the first is empty */
            int64_t place = params_shared(&params, 1, slice_from(text));
            assert_int_equal(place, rows[i].sent == ROWS ? row + 1 : row % rows[i].texts + 1);
        }
        assert_int_equal(params.rows[1], rows[i].sent);
        params_release(&params);
    }
}

/* More workers at once than one statement names, and as many codes. */
static void test_each_lease_has_its_worker(void **state)
{
    enum { WORKERS = 700 };
    char address[POSTGRES_ADDRESS_BYTES], sql[200];
    static char owners[WORKERS][16], codes[WORKERS][16];
    struct store_op *ops = calloc(WORKERS, sizeof *ops);
    struct error err = { 0 };
    int64_t lane = 0;
    (void)state;
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    for (int i = 0; i < WORKERS; i++)
        ops[i] = insert_op(&f, "d", "t", "");
    must(f.store->ops->apply(f.store, f.now, ops, WORKERS, &f.memory, &err), &err);
    lane = ops[0].insert.ret_lane;
    for (int i = 0; i < WORKERS; i++) {
        snprintf(owners[i], sizeof owners[i], "worker-%d", i);
        ops[i] = claim_op(&f, lane, 1);
        ops[i].claim.owner = slice_from(owners[i]);
    }
    must(f.store->ops->apply(f.store, f.now, ops, WORKERS, &f.memory, &err), &err);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(ops[i].claim.ret_count, 1);
        struct job job = ops[i].claim.ret_jobs[0];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM lease WHERE token = %lld AND owner = '%s'", (long long)job.lease_token, owners[i]);
        if (i % 100 == 99)
            assert_int_equal(number_of(address, sql), 1);
        snprintf(codes[i], sizeof codes[i], "code:%d", i);
        ops[i] = settle_op(&job, EVENT_DELIVER);
        ops[i].settle.code = slice_from(codes[i]);
    }
    assert_int_equal(number_of(address, "SELECT count(DISTINCT owner) FROM lease"), WORKERS);
    must(f.store->ops->apply(f.store, f.now, ops, WORKERS, &f.memory, &err), &err);
    assert_int_equal(number_of(address, "SELECT count(*) FROM state s JOIN job j ON j.seq = s.seq WHERE s.state = 4 AND s.last_code ="
                                        " convert_to('code:' || (j.seq - (SELECT min(seq) FROM job)), 'UTF8')"), WORKERS);
    free(ops);
    fixture_drop(&f);
}

/* ---- servers that take nothing, or nobody ---- */

/* It has become a standby, or is being moved: one waits until it takes changes again. */
static void test_a_server_that_only_reads_is_away(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES], with[POSTGRES_ADDRESS_BYTES + 80];
    struct store *store = NULL;
    struct error err = { 0 };
    (void)state;
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    struct store_op op = insert_op(&f, "d", "t", "later");
    run_beneath(&f, "SET default_transaction_read_only = on");
    assert_int_equal(f.store->ops->apply(f.store, f.now, &op, 1, &f.memory, &err), STATUS_AWAY);
    check(strstr(err.text, "25006"), "%s", err.text);
    assert_false(outcome_of(&f));
    assert_run(&f, &op, STATUS_OK);
    fixture_drop(&f);
    snprintf(with, sizeof with, "%s%%20-cdefault_transaction_read_only%%3Don", address);
    assert_int_equal(store_postgres_open(slice_from(with), &plain, &store, &err), STATUS_AWAY);
    check(strstr(err.text, "default_transaction_read_only"), "%s", err.text);
}

static void test_a_server_with_no_place_is_away(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES];
    struct store_reader *reader = NULL;
    struct error err = { 0 };
    (void)state;
    postgres_server_schema(address);
    postgres_server_run(address, "CREATE ROLE limited LOGIN CONNECTION LIMIT 1; CREATE SCHEMA limited AUTHORIZATION limited", NULL, 0);
    snprintf(address, sizeof address, "///postgres?host=%s&user=limited", postgres_server_folder());
    struct store *store = store_at(address, &plain);
    assert_int_equal(store->ops->reader(store, &reader, &err), STATUS_AWAY);
    check(strstr(err.text, "too many connections"), "%s", err.text);
    store->ops->close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_connection_in_a_failed_transaction_is_given_up),
        cmocka_unit_test(test_a_sync_that_is_refused_leaves_nothing_open),
        cmocka_unit_test(test_a_connection_that_only_the_server_has_is_ended),
        cmocka_unit_test(test_a_fenced_node_in_doubt_begins_anew),
        cmocka_unit_test(test_a_restore_is_not_taken_for_a_fence),
        cmocka_unit_test(test_a_fence_is_of_its_own_store),
        cmocka_unit_test(test_a_full_disk_and_a_connection_that_breaks_behind_it),
        cmocka_unit_test(test_a_full_disk_on_the_way_back),
        cmocka_unit_test(test_heads_are_told_when_they_are_committed),
        cmocka_unit_test(test_what_is_set_for_the_role_changes_nothing),
        cmocka_unit_test(test_an_idle_store_keeps_its_connection),
        cmocka_unit_test(test_databases_of_other_encodings),
        cmocka_unit_test(test_a_schema_of_a_long_name),
        cmocka_unit_test(test_the_store_of_a_path_is_one),
        cmocka_unit_test(test_a_new_store_beside_others_tables),
        cmocka_unit_test(test_texts_that_come_again_are_sent_once),
        cmocka_unit_test(test_each_lease_has_its_worker),
        cmocka_unit_test(test_a_server_that_only_reads_is_away),
        cmocka_unit_test(test_a_server_with_no_place_is_away),
    };
    const char *missing = postgres_server_missing();
    if (missing) {
        printf("1..0 # SKIP %s\n", missing);
        return EXIT_SUCCESS;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
