/* What nodes on one PostgreSQL owe each other beside their jobs: to wait for a key, to know what was not heard, one limit. */
#include "store/postgres/postgres.h"
#include "support/check.h"
#include "support/postgres_fixture.h"
#include "support/postgres_proxy.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { ASKED_MAX = 600, ASK_PAUSE_MS = 50 };

/* A settlement in a thread of its own, since it may have to wait. */
struct apart {
    struct store_fixture *f;
    struct store_op op;
    enum status status;
    atomic_bool over;
};

static void *apply_apart(void *context)
{
    struct apart *apart = context;
    struct error err = { 0 };
    apart->status = apart->f->store->ops->apply(apart->f->store, apart->f->now, &apart->op, 1, &apart->f->memory, &err);
    atomic_store(&apart->over, true);
    return NULL;
}

/* Of a key's jobs one goes at a time: who looks for the next waits for a node that is just adding one. */
static void test_a_key_is_one_nodes_at_a_time(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES];
    const struct store_settings one = node_named("one");
    struct store_op own = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
    pthread_t thread;
    char sql[96];
    int64_t waiting = 0;
    (void)state;
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &one));
    assert_run(&f, &own, STATUS_OK);
    struct store_op first = insert_op(&f, "d", "t", "first");
    first.insert.key = SLICE("key");
    assert_run(&f, &first, STATUS_OK);
    struct job job = take(&f, first.insert.ret_lane);
    char whole[POSTGRES_ADDRESS_BYTES + 16];
    snprintf(whole, sizeof whole, "postgres:%s", address);
    PGconn *adding = PQconnectdb(whole);
    check(PQstatus(adding) == CONNECTION_OK, "%s", PQerrorMessage(adding));
    snprintf(sql, sizeof sql, "BEGIN; SELECT pg_advisory_xact_lock(%lld)", (long long)job_chain(SLICE("key")));
    PGresult *answer = PQexec(adding, sql);
    check(PQresultStatus(answer) == PGRES_TUPLES_OK, "%s", PQerrorMessage(adding));
    PQclear(answer);
    struct apart apart = { .f = &f, .op = settle_op(&job, EVENT_DELIVER) };
    assert_int_equal(pthread_create(&thread, NULL, apply_apart, &apart), 0);
    for (int i = 0; i < ASKED_MAX && waiting == 0 && !atomic_load(&apart.over); i++) {
        char count[32];
        postgres_server_run(address, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", count, sizeof count);
        waiting = strtoll(count, NULL, 10);
        sleep_ms(1);
    }
    PQclear(PQexec(adding, "COMMIT"));
    pthread_join(thread, NULL);
    assert_int_equal(waiting, 1);
    assert_true(apart.status == STATUS_OK && apart.op.status == STATUS_OK);
    PQfinish(adding);
    fixture_drop(&f);
}

/* Until the store says that some of what rang may not have been heard: who hears that looks at all lanes. */
static void hear_that_some_was_missed(struct store_fixture *f)
{
    struct error err = { 0 };
    struct lane_heard *heard;
    size_t count;
    enum status status = STATUS_OK;
    for (int i = 0; i < ASKED_MAX && status == STATUS_OK; i++) {
        status = f->store->ops->hear(f->store, &f->memory, &heard, &count, &err);
        if (status == STATUS_OK)
            sleep_ms(ASK_PAUSE_MS);
    }
    assert_string_equal(status_name(status), status_name(STATUS_AWAY));
    must(f->store->ops->hear(f->store, &f->memory, &heard, &count, &err), &err); /* once */
}

/* A bell that could not be rung rings for everything the next time; who was cut off asks for what rang meanwhile. */
static void test_what_was_not_heard_is_known_to_be_missed(void **state)
{
    struct postgres_proxy proxy;
    struct error err = { 0 };
    char address[POSTGRES_ADDRESS_BYTES], through[POSTGRES_ADDRESS_BYTES];
    const struct store_settings one = node_named("one"), two = node_named("two");
    struct store_op own = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
    (void)state;
    postgres_server_schema(address);
    postgres_proxy_open(&proxy);
    postgres_proxy_address(&proxy, address, through);
    struct store_fixture a = fixture_on(store_at(through, &one)), b = fixture_on(store_at(through, &two));
    must(a.store->ops->beat(a.store, 1, &err), &err);
    must(b.store->ops->beat(b.store, 1, &err), &err);
    hear_that_some_was_missed(&a); /* what rang before it listened */
    assert_run(&a, &own, STATUS_OK);

    put(&b, "untold");
    postgres_proxy_cut(&proxy, PROXY_CUT_BEFORE, "node_ring");
    assert_int_equal(b.store->ops->ring(b.store, &err), STATUS_AWAY);
    must(b.store->ops->ring(b.store, &err), &err);
    hear_that_some_was_missed(&a);

    postgres_proxy_cut(&proxy, PROXY_CUT_BEFORE, "node_beat");
    assert_int_equal(a.store->ops->beat(a.store, 1, &err), STATUS_AWAY);
    must(a.store->ops->beat(a.store, 1, &err), &err);
    hear_that_some_was_missed(&a);
    fixture_drop(&a);
    fixture_drop(&b);
    postgres_proxy_close(&proxy);
}

/* Of the store, not of the node: what others have added is learnt each second. */
static void test_a_limit_counts_what_others_added(void **state)
{
    enum { PENDING_MAX = 4 };
    char address[POSTGRES_ADDRESS_BYTES];
    struct store_settings one = node_named("one"), two = node_named("two");
    struct error err = { 0 };
    (void)state;
    one.pending_max = two.pending_max = PENDING_MAX;
    postgres_server_schema(address);
    struct store_fixture a = fixture_on(store_at(address, &one)), b = fixture_on(store_at(address, &two));
    for (int i = 0; i < PENDING_MAX; i++)
        put(&a, i == 0 ? "first" : "");
    must(b.store->ops->tend(b.store, b.now, &err), &err);
    struct store_op more = insert_op(&b, "d", "t", "more"), cancel = job_op(OP_CANCEL, "t", "first");
    assert_run(&b, &more, STATUS_FULL);
    assert_run(&a, &cancel, STATUS_OK);
    must(b.store->ops->tend(b.store, b.now, &err), &err);
    assert_run(&b, &more, STATUS_OK);
    fixture_drop(&a);
    fixture_drop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_key_is_one_nodes_at_a_time),
        cmocka_unit_test(test_what_was_not_heard_is_known_to_be_missed),
        cmocka_unit_test(test_a_limit_counts_what_others_added),
    };
    const char *missing = postgres_server_missing();
    if (missing) {
        printf("1..0 # SKIP %s\n", missing);
        return EXIT_SUCCESS;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
