/*
 * A PostgreSQL that refuses, is full, is set up otherwise than one thinks, or breaks off just then: what the store says, and
 * that it goes on when that is over.
 */
#include "store/postgres/handle.h"
#include "store/postgres/postgres.h"
#include "support/check.h"
#include "support/postgres_fixture.h"
#include "support/postgres_proxy.h"

#include <stdio.h>
#include <stdlib.h>

enum { ASKED_MAX = 600, ASK_PAUSE_MS = 50 };

static const struct store_settings plain = { .pending_max = 100000 };

static int64_t number_of(const char *address, const char *sql)
{
    char text[32];
    postgres_server_run(address, sql, text, sizeof text);
    return strtoll(text, NULL, 10);
}

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

/* The first error is what is told; and if the connection breaks behind it, that it did, wherever that was. */
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
    refuse_rows(address, "event", "INSERT");
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
    take_rows(address, "event");
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
    refuse_rows(address, "event", "INSERT");
    assert_int_equal(a.store->ops->apply(a.store, a.now, &op, 1, &a.memory, &err), STATUS_FULL);
    take_rows(address, "event");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_connection_in_a_failed_transaction_is_given_up),
        cmocka_unit_test(test_a_sync_that_is_refused_leaves_nothing_open),
        cmocka_unit_test(test_a_fenced_node_in_doubt_begins_anew),
        cmocka_unit_test(test_a_fence_is_of_its_own_store),
        cmocka_unit_test(test_a_full_disk_and_a_connection_that_breaks_behind_it),
        cmocka_unit_test(test_a_full_disk_on_the_way_back),
        cmocka_unit_test(test_heads_are_told_when_they_are_committed),
    };
    const char *missing = postgres_server_missing();
    if (missing) {
        printf("1..0 # SKIP %s\n", missing);
        return EXIT_SUCCESS;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
