/*
 * What nodes on one PostgreSQL owe each other beside their jobs: to wait for a key, to know what was not heard, one limit; and
 * how often a batch goes there.
 */
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

/* ---- trips ---- */

static void expect_trips(struct store_fixture *f, struct postgres_proxy *proxy, struct store_op *ops, size_t count,
                         size_t expected, const char *what)
{
    size_t before = line_server_count(&proxy->lines, &proxy->trips);
    fixture_apply(f, ops, count);
    size_t made = line_server_count(&proxy->lines, &proxy->trips) - before;
    check(made == expected, "%s: %zu trips, not %zu", what, made, expected);
    for (size_t i = 0; i < count; i++)
        check(ops[i].status == STATUS_OK, "%s: %s", what, status_name(ops[i].status));
}

/* Inserts, with ids of their own if a name is given. */
static void insert_ops(struct store_fixture *f, const char *name, struct store_op *ret_ops, char (*ret_ids)[16], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        snprintf(ret_ids[i], sizeof ret_ids[i], "%s%zu", name, i);
        ret_ops[i] = insert_op(f, "d", "t", name[0] ? ret_ids[i] : "");
    }
}

/* Lanes and numbers are known by then, as they are to a node that has run for a second. */
static void make_trips(struct store_fixture *f, struct postgres_proxy *proxy)
{
    enum { MANY = 512, SOME = 8 };
    static struct store_op ops[MANY];
    static char ids[MANY][16];
    int64_t lane = put(f, "known"), other = 0;
    struct store_op other_lane = insert_op(f, "d", "other", "known");
    assert_run(f, &other_lane, STATUS_OK);
    other = other_lane.insert.ret_lane;

    insert_ops(f, "", ops, ids, MANY);
    expect_trips(f, proxy, ops, 1, 1, "a job without an id");
    insert_ops(f, "", ops, ids, MANY);
    expect_trips(f, proxy, ops, MANY, 1, "many jobs without ids");
    insert_ops(f, "id", ops, ids, MANY);
    expect_trips(f, proxy, ops, MANY, 2, "many jobs with ids");
    struct store_op claim = claim_op(f, lane, SOME);
    expect_trips(f, proxy, &claim, 1, 2, "a claim");
    for (size_t i = 0; i < SOME; i++)
        ops[i] = settle_op(&claim.claim.ret_jobs[i], EVENT_DELIVER);
    expect_trips(f, proxy, ops, SOME / 2, 1, "settlements of what it has claimed itself");

    struct store_op mixed[] = { ops[SOME - 1],
                                ops[SOME - 2],
                                insert_op(f, "d", "t", "more"),
                                insert_op(f, "d", "t", ""),
                                claim_op(f, other, 1),
                                { .kind = OP_EXTEND, .extend = { .seq = claim.claim.ret_jobs[SOME - 3].seq,
                                                                 .token = claim.claim.ret_jobs[SOME - 3].lease_token,
                                                                 .lease_until = f->now + HOUR_MS } },
                                { .kind = OP_NOTE, .data = SLICE("{}") } };
    expect_trips(f, proxy, mixed, COUNT_OF(mixed), 2, "some of everything");
    struct store_op cancels[] = { job_op(OP_CANCEL, "t", "id7"), job_op(OP_CANCEL, "t", "id8") };
    expect_trips(f, proxy, cancels, COUNT_OF(cancels), 2, "orders by name");
    struct store_op promote = promote_op();
    expect_trips(f, proxy, &promote, 1, 2, "what time does");
}

/* A batch costs the way to the server and back twice at most, and once if it needs to know nothing. */
static void test_a_batch_makes_two_trips_at_most(void **state)
{
    (void)state;
    const struct store_settings settings[] = { { .pending_max = 100000 }, node_named("one") };
    struct postgres_proxy proxy;
    postgres_proxy_open(&proxy);
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        char address[POSTGRES_ADDRESS_BYTES], through[POSTGRES_ADDRESS_BYTES];
        postgres_server_schema(address);
        postgres_proxy_address(&proxy, address, through);
        struct store_fixture f = fixture_on(store_at(through, &settings[i]));
        struct store_op own = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
        assert_run(&f, &own, STATUS_OK);
        make_trips(&f, &proxy);
        fixture_drop(&f);
    }
    postgres_proxy_close(&proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_key_is_one_nodes_at_a_time),
        cmocka_unit_test(test_what_was_not_heard_is_known_to_be_missed),
        cmocka_unit_test(test_a_limit_counts_what_others_added),
        cmocka_unit_test(test_a_batch_makes_two_trips_at_most),
    };
    const char *missing = postgres_server_missing();
    if (missing) {
        printf("1..0 # SKIP %s\n", missing);
        return EXIT_SUCCESS;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
