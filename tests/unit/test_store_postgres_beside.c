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

/* A batch in a thread of its own, since it may have to wait. */
struct apart {
    struct store_fixture *f;
    struct store_op ops[2];
    size_t count;
    enum status status;
    atomic_bool over;
};

static void *apply_apart(void *context)
{
    struct apart *apart = context;
    struct error err = { 0 };
    apart->status = apart->f->store->ops->apply(apart->f->store, apart->f->now, apart->ops, apart->count, &apart->f->memory,
                                                &err);
    atomic_store(&apart->over, true);
    return NULL;
}

/* Somebody who has begun something, and not ended it. */
static PGconn *hold(const char *address, const char *sql)
{
    char whole[POSTGRES_ADDRESS_BYTES + 16];
    snprintf(whole, sizeof whole, "postgres:%s", address);
    PGconn *conn = PQconnectdb(whole);
    check(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
    PGresult *answer = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(answer);
    check(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK, "%s", PQerrorMessage(conn));
    PQclear(answer);
    return conn;
}

/* Whether the batch comes to wait for a lock of that kind before it is over. */
static bool waits(const char *address, const char *kind, const struct apart *apart)
{
    char sql[96], count[32] = "0";
    snprintf(sql, sizeof sql, "SELECT count(*) FROM pg_locks WHERE locktype = '%s' AND NOT granted", kind);
    for (int i = 0; i < ASKED_MAX && strtoll(count, NULL, 10) == 0 && !atomic_load(&apart->over); i++) {
        postgres_server_run(address, sql, count, sizeof count);
        sleep_ms(1);
    }
    return strtoll(count, NULL, 10) > 0;
}

/* Of a key's jobs one goes at a time: who looks for the next waits for a node that is just adding one. */
static void test_a_key_is_one_nodes_at_a_time(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES];
    const struct store_settings one = node_named("one");
    struct store_op own = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
    pthread_t thread;
    char sql[96];
    (void)state;
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &one));
    assert_run(&f, &own, STATUS_OK);
    struct store_op first = insert_op(&f, "d", "t", "first");
    first.insert.key = SLICE("key");
    assert_run(&f, &first, STATUS_OK);
    struct job job = take(&f, first.insert.ret_lane);
    snprintf(sql, sizeof sql, "BEGIN; SELECT pg_advisory_xact_lock(%lld)", (long long)job_chain(SLICE("key")));
    PGconn *adding = hold(address, sql);
    struct apart apart = { .f = &f, .ops = { settle_op(&job, EVENT_DELIVER) }, .count = 1 };
    assert_int_equal(pthread_create(&thread, NULL, apply_apart, &apart), 0);
    bool waited = waits(address, "advisory", &apart);
    PQclear(PQexec(adding, "COMMIT"));
    pthread_join(thread, NULL);
    assert_true(waited);
    assert_true(apart.status == STATUS_OK && apart.ops[0].status == STATUS_OK);
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

/* ---- orders by name beside the owner ---- */

/* What is counted is what is there, and what is ready is in the queue once. */
static void rows_agree(const char *address)
{
    char text[256], found[256];
    postgres_server_run(address, "SELECT format('%s %s %s %s %s', sum(pending), sum(running), sum(waiting), sum(dead), sum(stored))"
                                 " FROM lane_count", text, sizeof text);
    postgres_server_run(address, "SELECT format('%s %s %s %s %s', count(*) FILTER (WHERE now = 1), count(*) FILTER (WHERE now = 2),"
                                 " count(*) FILTER (WHERE now = 3), count(*) FILTER (WHERE now = 5), count(*)) FROM (SELECT CASE WHEN"
                                 " e.seq IS NOT NULL THEN 2 ELSE coalesce(s.state, 1) END AS now FROM job j LEFT JOIN state s"
                                 " ON s.seq = j.seq LEFT JOIN lease e ON e.seq = j.seq) x", found, sizeof found);
    assert_string_equal(text, found);
    postgres_server_run(address, "SELECT count(*) FROM job j LEFT JOIN state s ON s.seq = j.seq LEFT JOIN lease e ON e.seq = j.seq"
                                 " LEFT JOIN queue q ON q.seq = j.seq WHERE (q.seq IS NOT NULL AND (e.seq IS NOT NULL OR"
                                 " coalesce(s.state, 1) NOT IN (1, 3) OR q.rank <> coalesce(s.rank, j.rank)))"
                                 " OR (q.seq IS NULL AND e.seq IS NULL AND coalesce(s.state, 1) = 1)", text, sizeof text);
    assert_string_equal(text, "0");
}

/* An order by name has read a job at one node; before it is written, time or a worker changes the job at its owner. */
static void meet(bool promotes)
{
    char address[POSTGRES_ADDRESS_BYTES];
    const struct store_settings one = node_named("one"), two = node_named("two");
    struct store_op own = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
    pthread_t thread;
    postgres_server_schema(address);
    struct store_fixture a = fixture_on(store_at(address, &one)), b = fixture_on(store_at(address, &two));
    assert_run(&a, &own, STATUS_OK);
    struct job job = take(&a, put(&a, "met"));
    struct store_op retry = settle_op(&job, EVENT_RETRY);
    retry.settle.run_at = promotes ? a.now + SECOND_MS : a.now;
    assert_run(&a, &retry, STATUS_OK);
    b.now = a.now += 2 * SECOND_MS;
    PGconn *conn = hold(address, "BEGIN; INSERT INTO kept VALUES ('s', 'n', 'x')");
    struct apart apart = { .f = &b, .count = 2,
                           .ops = { job_op(OP_PRIORITIZE, "t", "met"),
                                    { .kind = OP_SAVE, .save = { SLICE("s"), SLICE("n"), SLICE("v") } } } };
    apart.ops[0].job.priority = PRIORITY_NORMAL;
    apart.ops[0].job.rank = promotes ? job.rank - 500 : job.rank;
    assert_int_equal(pthread_create(&thread, NULL, apply_apart, &apart), 0);
    assert_true(waits(address, "transactionid", &apart)); /* it has read, and would write */
    struct store_op change = promotes ? (struct store_op){ .kind = OP_PROMOTE, .promote = { .max = 10 } } : claim_op(&a, job.lane, 1);
    if (!promotes) {
        assert_run(&a, &change, STATUS_OK);
        change = settle_op(&change.claim.ret_jobs[0], EVENT_DELIVER);
    }
    enum status changed = a.store->ops->apply(a.store, a.now, &change, 1, &a.memory, &(struct error){ 0 });
    PQclear(PQexec(conn, "ROLLBACK"));
    pthread_join(thread, NULL);
    assert_int_equal(changed, STATUS_OK);
    assert_int_equal(apart.status, STATUS_OK);
    assert_int_equal(apart.ops[0].status == STATUS_OK, promotes); /* a job that is done has no priority */
    rows_agree(address);
    a.store->ops->recall(a.store);
    change = (struct store_op){ .kind = OP_PROMOTE, .promote = { .max = 10 } };
    assert_run(&a, &change, STATUS_OK);
    struct store_op claim = claim_op(&a, job.lane, 1);
    assert_run(&a, &claim, STATUS_OK);
    assert_int_equal(claim.claim.ret_count, promotes);
    rows_agree(address);
    PQfinish(conn);
    fixture_drop(&a);
    fixture_drop(&b);
}

static void test_an_order_meets_a_promotion(void **state)
{
    (void)state;
    meet(true);
}

static void test_an_order_meets_a_delivery(void **state)
{
    (void)state;
    meet(false);
}

/* An order about a job that waits has its timer meanwhile, and a promotion passes over that: its owner looks again. */
static void test_an_order_tells_of_the_timer_that_it_held(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES];
    const struct store_settings one = node_named("one"), two = node_named("two");
    struct store_op own = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
    struct error err = { 0 };
    struct lane_heard *heard = NULL;
    size_t count = 0;
    (void)state;
    postgres_server_schema(address);
    struct store_fixture a = fixture_on(store_at(address, &one)), b = fixture_on(store_at(address, &two));
    must(a.store->ops->beat(a.store, 1, &err), &err);
    must(b.store->ops->beat(b.store, 1, &err), &err);
    (void)!a.store->ops->hear(a.store, &a.memory, &heard, &count, &err); /* what rang before is not known */
    assert_run(&a, &own, STATUS_OK);
    struct job job = take(&a, put(&a, "again"));
    struct store_op retry = settle_op(&job, EVENT_RETRY), sooner = job_op(OP_PRIORITIZE, "t", "again");
    retry.settle.run_at = a.now + SECOND_MS;
    assert_run(&a, &retry, STATUS_OK);
    sooner.job.rank = job.rank - 1;
    sooner.job.priority = job.priority;
    assert_run(&b, &sooner, STATUS_OK);
    must(b.store->ops->ring(b.store, &err), &err);
    for (int i = 0; i < ASKED_MAX && count == 0; i++) {
        must(a.store->ops->hear(a.store, &a.memory, &heard, &count, &err), &err);
        if (count == 0)
            sleep_ms(1);
    }
    assert_int_equal(count, 1);
    assert_true(heard[0].lane == job.lane && heard[0].ready == 0 && heard[0].next_at == retry.settle.run_at);
    fixture_drop(&a);
    fixture_drop(&b);
}

/* It fails, and is ready again at once, in the place where it was. */
static void attempt_in_vain(struct store_fixture *f, int64_t lane)
{
    struct job job = take(f, lane);
    struct store_op retry = settle_op(&job, EVENT_RETRY);
    retry.settle.run_at = f->now;
    retry.settle.retry_count = job.retry_count + 1;
    assert_run(f, &retry, STATUS_OK);
}

/*
 * The owner claims the job and puts it back where it was, before the order is written: whatever the order looks for is there,
 * and is not what it has read. Nothing of the attempt may be lost.
 */
static void test_an_order_meets_an_attempt_in_vain(void **state)
{
    static const enum op_kind kinds[] = { OP_ERASE, OP_PRIORITIZE, OP_CANCEL, OP_REDRIVE };
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(kinds); i++) {
        char address[POSTGRES_ADDRESS_BYTES], forks[32];
        const struct store_settings one = node_named("one"), two = node_named("two");
        struct store_op own = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
        int before = (int)(i / COUNT_OF(kinds)); /* attempts: of the first the job has no row but its own */
        pthread_t thread;
        postgres_server_schema(address);
        struct store_fixture a = fixture_on(store_at(address, &one)), b = fixture_on(store_at(address, &two));
        assert_run(&a, &own, STATUS_OK);
        int64_t lane = put(&a, "met");
        if (before == 1)
            attempt_in_vain(&a, lane);
        struct apart apart = { .f = &b, .count = 2,
                               .ops = { job_op(kinds[i % COUNT_OF(kinds)], "t", "met"),
                                        { .kind = OP_SAVE, .save = { SLICE("s"), SLICE("n"), SLICE("v") } } } };
        apart.ops[0].job.priority = PRIORITY_HIGH;
        apart.ops[0].job.rank = a.now - 500;
        PGconn *conn = hold(address, "BEGIN; INSERT INTO kept VALUES ('s', 'n', 'x')");
        assert_int_equal(pthread_create(&thread, NULL, apply_apart, &apart), 0);
        assert_true(waits(address, "transactionid", &apart)); /* it has read, and would write */
        attempt_in_vain(&a, lane);
        PQclear(PQexec(conn, "ROLLBACK"));
        pthread_join(thread, NULL);
        assert_int_equal(apart.status, STATUS_OK);
        bool refused = apart.ops[0].kind == OP_REDRIVE && before == 0; /* as it was read, there was nothing to hurry */
        assert_int_equal(apart.ops[0].status, refused ? STATUS_CONFLICT : STATUS_OK);
        struct job job = { .attempts_total = before + 1, .retry_count = before + 1 };
        if (apart.ops[0].kind != OP_ERASE)
            job = read_job(&b, "t", "met");
        check(job.attempts_total == before + 1 && job.retry_count == before + 1, "row %zu: %lld attempts, %lld retries", i,
              (long long)job.attempts_total, (long long)job.retry_count);
        postgres_server_run(address, "SELECT count(*) - count(DISTINCT previous) FROM event WHERE job = 'met'", forks, sizeof forks);
        assert_string_equal(forks, "0"); /* its history is one line */
        rows_agree(address);
        PQfinish(conn);
        fixture_drop(&a);
        fixture_drop(&b);
    }
}

enum { RACED = 200, OWNER_BATCHES = 400, ORDER_BATCHES_MAX = 100000, HELD_MAX = 8 };

struct orders {
    struct store_fixture *f;
    char (*ids)[16];
    enum status status;
    atomic_bool over;
};

/* Somebody at another node who gives orders all the time, about any of the jobs. */
static void *orders_give(void *context)
{
    static const enum op_kind kinds[] = { OP_CANCEL, OP_PRIORITIZE, OP_PRIORITIZE, OP_REDRIVE, OP_INSERT };
    struct orders *orders = context;
    struct store_fixture *f = orders->f;
    unsigned random = 7;
    for (int i = 0; i < ORDER_BATCHES_MAX && !atomic_load(&orders->over); i++) {
        struct error err = { 0 };
        const char *id = orders->ids[(unsigned)rand_r(&random) % RACED];
        enum op_kind kind = kinds[(unsigned)rand_r(&random) % COUNT_OF(kinds)];
        struct store_op op = kind == OP_INSERT ? insert_op(f, "d", "t", id) : job_op(kind, "t", id);
        f->now++;
        if (kind != OP_INSERT)
            op.job.rank = (int64_t)FIXTURE_START * SECOND_MS + rand_r(&random) % 5;
        if (kind == OP_PRIORITIZE)
            op.job.priority = PRIORITY_NORMAL;
        enum status status = f->store->ops->apply(f->store, f->now, &op, 1, &f->memory, &err);
        fixture_forget(f);
        if (status != STATUS_OK && status != STATUS_BUSY) {
            orders->status = status;
            break;
        }
    }
    return NULL;
}

struct held {
    struct job jobs[HELD_MAX];
    size_t count;
};

/* What it holds is settled in any way, some is claimed, and what is due is promoted. */
static enum status owner_batch(struct store_fixture *f, int64_t lane, struct held *held, unsigned *random)
{
    static const enum job_event events[] = { EVENT_DELIVER, EVENT_RETRY, EVENT_RELEASE, EVENT_GIVE_UP };
    struct store_op ops[HELD_MAX + 2];
    struct error err = { 0 };
    size_t count = held->count;
    f->now++;
    for (size_t i = 0; i < count; i++) {
        ops[i] = settle_op(&held->jobs[i], events[(unsigned)rand_r(random) % COUNT_OF(events)]);
        ops[i].settle.run_at = f->now + rand_r(random) % 5;
    }
    ops[count] = claim_op(f, lane, HELD_MAX);
    ops[count + 1] = (struct store_op){ .kind = OP_PROMOTE, .promote = { .max = RACED } };
    f->store->ops->recall(f->store); /* as if each order had been told */
    enum status status = f->store->ops->apply(f->store, f->now, ops, count + 2, &f->memory, &err);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        check(ops[i].status == STATUS_OK, "a lease that nobody else ends: %s", status_name(ops[i].status));
    held->count = ops[count].claim.ret_count;
    for (size_t i = 0; i < held->count; i++)
        held->jobs[i] = ops[count].claim.ret_jobs[i];
    return STATUS_OK;
}

static void test_orders_beside_the_owner(void **state)
{
    static char ids[RACED][16];
    char address[POSTGRES_ADDRESS_BYTES];
    const struct store_settings one = node_named("one"), two = node_named("two");
    struct store_op own = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
    struct held held = { .count = 0 };
    unsigned random = 3;
    pthread_t thread;
    int64_t lane = 0;
    int busy = 0;
    (void)state;
    postgres_server_schema(address);
    struct store_fixture a = fixture_on(store_at(address, &one)), b = fixture_on(store_at(address, &two));
    assert_run(&a, &own, STATUS_OK);
    for (int i = 0; i < RACED; i++) {
        snprintf(ids[i], sizeof ids[i], "r%d", i);
        lane = put(&a, ids[i]);
    }
    struct orders orders = { .f = &b, .ids = ids };
    assert_int_equal(pthread_create(&thread, NULL, orders_give, &orders), 0);
    enum status status = STATUS_OK;
    for (int i = 0; i < OWNER_BATCHES && (status == STATUS_OK || status == STATUS_BUSY); i++) {
        status = owner_batch(&a, lane, &held, &random);
        busy += status == STATUS_BUSY;
        fixture_forget(&a);
    }
    atomic_store(&orders.over, true);
    pthread_join(thread, NULL);
    check(status == STATUS_OK || status == STATUS_BUSY, "the owner: %s", status_name(status));
    check(orders.status == STATUS_OK, "who gives orders: %s", status_name(orders.status));
    check(busy < OWNER_BATCHES / 2, "%d of %d batches were in vain", busy, OWNER_BATCHES);
    rows_agree(address);
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

/* ---- slots ---- */

enum { SLOTS = TRAIL_CHAINS_MAX - 1 };

static int64_t number_at(const char *address, const char *sql)
{
    char text[64];
    postgres_server_run(address, sql, text, sizeof text);
    return strtoll(text, NULL, 10);
}

struct opening {
    const char *address;
    char name[16];
    struct store *store;
    enum status status;
    struct error err;
    pthread_t thread;
};

static void *open_apart(void *context)
{
    struct opening *opening = context;
    const struct store_settings settings = node_named(opening->name);
    opening->status = store_postgres_open(slice_from(opening->address), &settings, &opening->store, &opening->err);
    return NULL;
}

/* Many new nodes at once, of which one after the other may go on, and takes a moment: each has a slot of its own. */
static void test_many_new_nodes_start_together(void **state)
{
    enum { NODES = 12 };
    char address[POSTGRES_ADDRESS_BYTES];
    struct opening openings[NODES] = { 0 };
    const struct store_settings one = node_named("one");
    (void)state;
    postgres_server_schema(address);
    struct store *first = store_at(address, &one);
    postgres_server_run(address,
                        "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.1);"
                        " RETURN NULL; END $$; CREATE TRIGGER linger AFTER INSERT ON node EXECUTE FUNCTION linger()",
                        NULL, 0);
    PGconn *holding = hold(address, "BEGIN; LOCK TABLE node IN SHARE MODE");
    for (int i = 0; i < NODES; i++) {
        openings[i].address = address;
        snprintf(openings[i].name, sizeof openings[i].name, "many%d", i);
        assert_int_equal(pthread_create(&openings[i].thread, NULL, open_apart, &openings[i]), 0);
    }
    for (int i = 0; i < ASKED_MAX && number_at(address, "SELECT count(*) FROM pg_locks WHERE NOT granted") < NODES; i++)
        sleep_ms(5);
    PQfinish(holding);
    for (int i = 0; i < NODES; i++)
        pthread_join(openings[i].thread, NULL);
    for (int i = 0; i < NODES; i++)
        check(openings[i].status == STATUS_OK, "%s: %s", openings[i].name, openings[i].err.text);
    assert_int_equal(number_at(address, "SELECT max(slot) FROM node WHERE session > 0"), NODES + 1);
    for (int i = 0; i < NODES; i++)
        openings[i].store->ops->close(openings[i].store);
    first->ops->close(first);
}

/* Nodes in all slots but those that there are, which have ended one after the other, from the last slot on. */
static void slots_fill(const char *address)
{
    char sql[640];
    snprintf(sql, sizeof sql,
             "INSERT INTO node SELECT convert_to('name' || s, 'UTF8'), s, 0, 0, 0, '', '', '', '' FROM generate_series(1, %d) s"
             " WHERE s NOT IN (SELECT slot FROM node);"
             " INSERT INTO chain (id, term, batch, number, hash, mark) SELECT slot, 0, 0, slot::bigint << 40,"
             " decode(repeat('00', 32), 'hex'), '' FROM node ON CONFLICT (id) DO NOTHING;"
             " INSERT INTO ended (session, at, node, url, noted) SELECT 1000000000 + slot, 1, name, '',"
             " 9000000000000 - slot FROM node WHERE name NOT IN (SELECT node FROM ended)",
             SLOTS);
    postgres_server_run(address, sql, NULL, 0);
}

/* Each beats before anybody ends it for its silence, however long that takes; until it does not. */
static const char all_beat[] =
    "ALTER FUNCTION insist_end(bigint, bigint, bigint) RENAME TO end_silent;"
    "CREATE FUNCTION insist_end(bigint, bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN"
    " UPDATE node SET beat = beat + 1 WHERE session = $1; RETURN end_silent($1, $2, $3); END $$";
static const char none_beats[] = "DROP FUNCTION insist_end(bigint, bigint, bigint);"
                                 "ALTER FUNCTION end_silent(bigint, bigint, bigint) RENAME TO insist_end";

/*
 * There are as many chains as are followed, trimmed and verified. One more node goes on with that of the node which ended
 * longest ago, and what that one still sends is refused; while all run it does not start, and of those that do not beat it
 * takes one's place, since nobody else might be there to take them for dead.
 */
static void test_a_new_node_goes_on_with_a_chain_that_ended(void **state)
{
    char address[POSTGRES_ADDRESS_BYTES];
    const struct store_settings gone = node_named("gone"), next = node_named("next"), more = node_named("more");
    struct store_op note = { .kind = OP_NOTE, .data = SLICE("{\"note\":\"late\"}") };
    struct store *refused = NULL;
    struct error err = { 0 };
    struct trail_check check;
    (void)state;
    postgres_server_schema(address);
    struct store_fixture a = fixture_on(store_at(address, &gone));
    note_in(&a, "{\"note\":\"a\"}");
    postgres_server_run(address, "SELECT insist_end(session, NULL, 1) FROM node", NULL, 0);
    slots_fill(address);
    struct store_fixture b = fixture_on(store_at(address, &next));
    assert_int_equal(number_at(address, "SELECT slot FROM node WHERE name = 'next'"), 1);
    note_in(&b, "{\"note\":\"b\"}");
    enum status status = a.store->ops->apply(a.store, a.now, &note, 1, &a.memory, &err);
    check(status == STATUS_FENCED, "%s: %s", status_name(status), err.text);
    assert_int_equal(number_at(address, "SELECT count(*) FROM event WHERE data LIKE '%late%'"), 0);
    assert_int_equal(a.store->ops->beat(a.store, 1, &err), STATUS_FENCED);
    must(verify_at(address, NULL, 0, &check, &err), &err);
    assert_int_equal(number_at(address, "SELECT count(*) FROM chain"), TRAIL_CHAINS_MAX);
    assert_int_equal(number_at(address, "SELECT count(*) FROM event WHERE chain = 1"), trail_check_events(&check));
    fixture_drop(&a);

    postgres_server_run(address, "UPDATE node SET session = 2000000000 + slot WHERE session = 0", NULL, 0);
    postgres_server_run(address, all_beat, NULL, 0);
    assert_int_equal(store_postgres_open(slice_from(address), &more, &refused, &err), STATUS_BUSY);
    assert_string_equal(err.text, "63 nodes run with this store, and it has room for no more; stop one first");
    postgres_server_run(address, none_beats, NULL, 0);
    struct store *started = store_at(address, &more);
    assert_int_equal(number_at(address, "SELECT count(*) FROM chain"), TRAIL_CHAINS_MAX);
    assert_int_equal(number_at(address, "SELECT count(*) FROM node WHERE session > 0"), 1);
    fixture_drop(&b);
    started->ops->close(started);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_key_is_one_nodes_at_a_time),
        cmocka_unit_test(test_what_was_not_heard_is_known_to_be_missed),
        cmocka_unit_test(test_a_limit_counts_what_others_added),
        cmocka_unit_test(test_an_order_meets_a_promotion),
        cmocka_unit_test(test_an_order_meets_a_delivery),
        cmocka_unit_test(test_an_order_tells_of_the_timer_that_it_held),
        cmocka_unit_test(test_an_order_meets_an_attempt_in_vain),
        cmocka_unit_test(test_orders_beside_the_owner),
        cmocka_unit_test(test_a_batch_makes_two_trips_at_most),
        cmocka_unit_test(test_many_new_nodes_start_together),
        cmocka_unit_test(test_a_new_node_goes_on_with_a_chain_that_ended),
    };
    const char *missing = postgres_server_missing();
    if (missing) {
        printf("1..0 # SKIP %s\n", missing);
        return EXIT_SUCCESS;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
