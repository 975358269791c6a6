/* A store on PostgreSQL that nodes share: trims of all chains, sessions that ended, and what the bell tells. */
#include "base/clock.h"
#include "store/postgres/handle.h"
#include "store/postgres/postgres.h"
#include "store/postgres/schema.h"
#include "support/check.h"
#include "support/postgres_fixture.h"
#include "support/postgres_proxy.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASKED_MAX = 600, ASK_PAUSE_MS = 50 };

static size_t trim(struct store_fixture *f, instant before, enum status expected)
{
    struct store_op op = { .kind = OP_TRIM, .trim = { .before = before, .max = 100 } };
    assert_run(f, &op, expected);
    return op.trim.ret_deleted;
}

/*
 * The steward trims every chain, also of a node that is gone, and tells of all of them each time: so what is left verifies
 * when the event that told of an earlier trim has gone too. What nobody trimmed is missed.
 */
static void test_all_chains_are_trimmed(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES];
    const struct store_settings one = node_named("one"), two = node_named("two");
    struct error err = { 0 };
    struct trail_check check;
    struct store_op take = { .kind = OP_TAKE, .own = { .destination = SLICE("") } };
    postgres_server_schema(address);
    struct store_fixture a = fixture_on(store_at(address, &one)), b = fixture_on(store_at(address, &two));
    for (int n = 0; n < 5; n++)
        note_in(&a, "{\"note\":\"a\"}");
    assert_run(&b, &take, STATUS_OK);
    note_in(&b, "{\"note\":\"b\"}");
    assert_int_equal(trim(&a, a.now + 1, STATUS_CONFLICT), 0);
    int64_t written = number_of(address, "SELECT count(*) FROM event");
    b.now = a.now += MINUTE_MS;
    for (int n = 0; n < 3; n++)
        note_in(&b, "{\"note\":\"b\"}"); /* these are young */
    postgres_server_run(address, "INSERT INTO archive SELECT (chain::bigint << 40) + 1, 'x' FROM generate_series(0, 3) chain", NULL, 0);
    assert_int_equal(trim(&b, b.now, STATUS_OK), written - 1); /* of chain 2 there was one alone, which stays */
    assert_int_equal(number_of(address, "SELECT count(*) FROM event WHERE chain = 1"), 0);
    assert_int_equal(number_of(address, "SELECT count(*) FROM archive"), 3); /* those of other chains */
    must(verify_at(address, NULL, 0, &check, &err), &err);
    fixture_drop(&a); /* node one never comes back; what told of its chain's trim goes now */
    b.now += MINUTE_MS;
    note_in(&b, "{\"note\":\"b\"}");
    assert_true(trim(&b, b.now, STATUS_OK) >= 4);
    must(verify_at(address, NULL, 0, &check, &err), &err);
    note_in(&b, "{\"note\":\"b\"}");
    fixture_drop(&b);
    must(verify_at(address, NULL, 0, &check, &err), &err);
    postgres_server_run(address, "UPDATE trimmed SET number = number - 1 WHERE chain = 1", NULL, 0);
    assert_int_equal(verify_at(address, NULL, 0, &check, &err), STATUS_CORRUPT);
}

/* Sessions that ended are known while a lease or a person may ask for them, and no longer. */
static void test_ended_sessions_are_forgotten(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES];
    const struct store_settings one = node_named("one"), two = node_named("two");
    struct error err = { 0 };
    struct store_op own = { .kind = OP_TAKE, .own = { .destination = SLICE("") } };
    postgres_server_schema(address);
    struct store_fixture a = fixture_on(store_at(address, &one)), b = fixture_on(store_at(address, &two));
    assert_run(&b, &own, STATUS_OK);
    own.own.destination = SLICE("d");
    assert_run(&a, &own, STATUS_OK);
    int64_t lane = put(&a, "held");
    struct job held = take(&a, lane);
    must(b.store->ops->fence(b.store, a.store->session, 0, b.now, &err), &err);
    static const char count[] = "SELECT count(*) FROM ended";
    must(b.store->ops->tend(b.store, b.now, &err), &err);
    assert_int_equal(number_of(address, count), 1);
    b.now += 2 * DAY_MS;
    must(b.store->ops->tend(b.store, b.now, &err), &err);
    assert_int_equal(number_of(address, count), 1); /* a lease names it */
    struct store_op settle = settle_op(&held, EVENT_DELIVER);
    assert_run(&b, &settle, STATUS_OK);
    b.now += MINUTE_MS;
    must(b.store->ops->tend(b.store, b.now, &err), &err);
    assert_int_equal(number_of(address, count), 0);
    fixture_drop(&a);
    fixture_drop(&b);
}

/* A pull worker that says elsewhere that it is done: who counts what it holds hears of it. At a stop the ends are named. */
static void test_an_ack_elsewhere_is_heard(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES];
    const struct store_settings one = node_named("one"), two = node_named("two");
    struct error err = { 0 };
    struct lane_heard *heard = NULL;
    size_t count = 0;
    struct store_op take = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
    postgres_server_schema(address);
    struct store_fixture a = fixture_on(store_at(address, &one)), b = fixture_on(store_at(address, &two));
    must(a.store->ops->beat(a.store, 1, &err), &err);
    must(b.store->ops->beat(b.store, 1, &err), &err);
    (void)!a.store->ops->hear(a.store, &a.memory, &heard, &count, &err); /* what rang before is not known */
    assert_run(&a, &take, STATUS_OK);
    struct store_op claim = claim_op(&a, put(&a, "pulled"), 1);
    claim.claim.owner = SLICE("worker");
    assert_run(&a, &claim, STATUS_OK);
    const struct job *job = &claim.claim.ret_jobs[0];
    struct store_op late = settle_op(job, EVENT_DELIVER), settle = late;
    late.settle.token++;
    assert_run(&b, &late, STATUS_CONFLICT); /* of this nothing is told */
    assert_run(&b, &settle, STATUS_OK);
    must(b.store->ops->ring(b.store, &err), &err);
    for (int i = 0; i < ASKED_MAX && count == 0; i++) {
        sleep_ms(ASK_PAUSE_MS);
        must(a.store->ops->hear(a.store, &a.memory, &heard, &count, &err), &err);
    }
    assert_int_equal(count, 1);
    assert_true(heard[0].acked == job->seq && heard[0].token == job->lease_token);

    must(b.store->ops->end(b.store, b.now, &err), &err);
    assert_int_equal(number_of(address, "SELECT count(*) FROM event WHERE chain = 2 AND number = (SELECT number FROM chain WHERE"
                                        " id = 2) AND convert_from(data, 'UTF8') LIKE '{\"note\":\"heads\",\"heads\":[\"1.%'"), 1);
    fixture_drop(&a);
    fixture_drop(&b);
}

/*
 * What is remembered of claims has a limit: workers that take a great deal and never say a word make nobody's settlement
 * fail, and what they took is asked for instead.
 */
static void test_more_is_claimed_than_is_remembered(void **state)
{
    (void)state;
    enum { JOBS = 2400, SETTLED = 64, OWNER_BYTES = 4096, REMEMBERED_BYTES_MAX = 8 << 20 };
    char address[POSTGRES_ADDRESS_BYTES], owner[OWNER_BYTES];
    memset(owner, 'w', sizeof owner);
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &(struct store_settings){ 0 }));
    struct store_op *puts = calloc(JOBS, sizeof *puts), settle[SETTLED];
    assert_non_null(puts);
    for (int i = 0; i < JOBS; i++)
        puts[i] = insert_op(&f, "d", "t", "");
    fixture_apply(&f, puts, JOBS);
    struct store_op claim = claim_op(&f, puts[0].insert.ret_lane, JOBS);
    claim.claim.owner = (struct slice){ owner, sizeof owner };
    assert_run(&f, &claim, STATUS_OK);
    assert_int_equal(claim.claim.ret_count, JOBS);
    const struct postgres_store *store = (const struct postgres_store *)f.store;
    check(store->claimed.bytes > 0 && store->claimed.bytes <= REMEMBERED_BYTES_MAX, "%zu bytes", store->claimed.bytes);
    for (int first = 0; first < JOBS; first += JOBS - SETTLED) { /* of those that were forgotten, and of those that are known */
        for (int i = 0; i < SETTLED; i++)
            settle[i] = settle_op(&claim.claim.ret_jobs[first + i], i % 2 ? EVENT_DELIVER : EVENT_RELEASE);
        fixture_apply(&f, settle, SETTLED);
        for (int i = 0; i < SETTLED; i++)
            assert_int_equal(settle[i].status, STATUS_OK);
    }
    assert_int_equal(number_of(address, "SELECT count(*) FROM lease"), JOBS - 2 * SETTLED);
    assert_int_equal(number_of(address, "SELECT count(*) FROM queue"), SETTLED);
    free(puts);
    fixture_drop(&f);
}

/* ---- two nodes ---- */

struct pair {
    char address[POSTGRES_ADDRESS_BYTES];
    struct store_fixture a, b; /* a owns "d", and hears */
};

/* a by way of the proxy, if there is one. */
static void pair_begin_by(struct pair *pair, const struct postgres_proxy *proxy)
{
    char through[POSTGRES_ADDRESS_BYTES];
    const struct store_settings one = node_named("one"), two = node_named("two");
    struct error err = { 0 };
    struct lane_heard *heard = NULL;
    size_t count = 0;
    struct store_op own = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
    postgres_server_schema(pair->address);
    if (proxy)
        postgres_proxy_address(proxy, pair->address, through);
    pair->a = fixture_on(store_at(proxy ? through : pair->address, &one));
    pair->b = fixture_on(store_at(pair->address, &two));
    must(pair->a.store->ops->beat(pair->a.store, 1, &err), &err);
    must(pair->b.store->ops->beat(pair->b.store, 1, &err), &err);
    (void)!pair->a.store->ops->hear(pair->a.store, &pair->a.memory, &heard, &count, &err); /* what rang before is not known */
    assert_run(&pair->a, &own, STATUS_OK);
}

static void pair_begin(struct pair *pair)
{
    pair_begin_by(pair, NULL);
}

static void pair_end(struct pair *pair)
{
    fixture_drop(&pair->a);
    fixture_drop(&pair->b);
}

static PGconn *connection_to(const char *address)
{
    char whole[POSTGRES_ADDRESS_BYTES + 16];
    snprintf(whole, sizeof whole, "postgres:%s", address);
    PGconn *conn = PQconnectdb(whole);
    check(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
    return conn;
}

static void run_in(PGconn *conn, const char *sql)
{
    PGresult *answer = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(answer);
    check(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK, "%s", PQerrorMessage(conn));
    PQclear(answer);
}

/* What was on its way when a node was taken for dead holds nobody up: its connections end, and their locks. */
static void test_a_fence_ends_what_was_left_open(void **state)
{
    struct pair pair;
    struct error err = { 0 };
    char sql[160];
    (void)state;
    pair_begin(&pair);
    int64_t lane = put(&pair.a, "locked"), session = pair.a.store->session;
    snprintf(sql, sizeof sql, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'insist %lld'", (long long)session);
    assert_int_equal(number_of(pair.address, sql), 1); /* the writer's own, which has nothing open, and may stay */
    PGconn *left = connection_to(pair.address);
    snprintf(sql, sizeof sql, "SET application_name = 'insist %lld'; SELECT pg_advisory_lock_shared(" WRITER_LOCK ")", (long long)session);
    run_in(left, sql);
    run_in(left, "BEGIN; SELECT * FROM queue FOR UPDATE"); /* the first trip of a batch, of which the second never comes */
    must(pair.b.store->ops->fence(pair.b.store, session, 1, pair.b.now, &err), &err);
    struct store_op own = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
    assert_run(&pair.b, &own, STATUS_OK);
    struct store_op claim = claim_op(&pair.b, lane, 1); /* or it would wait until the lock's time is over, and fail */
    assert_run(&pair.b, &claim, STATUS_OK);
    assert_int_equal(claim.claim.ret_count, 1);
    PGresult *answer = PQexec(left, "COMMIT");
    assert_true(PQresultStatus(answer) == PGRES_FATAL_ERROR && PQstatus(left) == CONNECTION_BAD);
    PQclear(answer);
    PQfinish(left);
    pair_end(&pair);
}

/* Until somebody else has the row of the session's chain: its batch is sealed, and neither committed nor undone. */
static void await_seal(const char *address, int64_t session)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM (SELECT 1 FROM chain WHERE session = %lld FOR UPDATE SKIP LOCKED) free",
             (long long)session);
    int64_t free = 1;
    for (int i = 0; i < ASKED_MAX && (free = number_of(address, sql)) > 0; i++)
        sleep_ms(ASK_PAUSE_MS);
    assert_int_equal(free, 0);
}

/*
 * A node stands still between the seal and the COMMIT of a batch, or between that and its answer, and is taken for dead. Who
 * takes over waits for nobody, and does what was not done; whatever the other sends later does nothing.
 */
static void test_a_fence_meets_a_batch_at_its_end(void **state)
{
    (void)state;
    static const struct {
        enum proxy_cut cut;
        bool happens;
    } rows[] = { { PROXY_HOLD, false }, { PROXY_CUT_AFTER, true } };
    struct postgres_proxy proxy;
    postgres_proxy_open(&proxy);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pair pair;
        struct error err = { 0 };
        struct trail_check check;
        bool applied;
        pair_begin_by(&pair, &proxy);
        int64_t lane = put(&pair.a, "taken"), session = pair.a.store->session;
        struct job taken = take(&pair.a, lane);
        struct store_op ops[] = { settle_op(&taken, EVENT_DELIVER), insert_op(&pair.a, "d", "t", "late") };
        struct store_op settle = ops[0], late = ops[1], own = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
        struct applying applying;
        postgres_proxy_cut(&proxy, rows[i].cut, "commit");
        applying_begin(&applying, &pair.a, ops, COUNT_OF(ops));
        if (!rows[i].happens)
            await_seal(pair.address, session);
        else
            applying_end(&applying);
        must(pair.b.store->ops->fence(pair.b.store, session, 1, pair.b.now, &err), &err);
        assert_run(&pair.b, &own, STATUS_OK);
        assert_run(&pair.b, &settle, rows[i].happens ? STATUS_CONFLICT : STATUS_OK);
        assert_run(&pair.b, &late, STATUS_OK);
        assert_int_equal(late.insert.ret_existed, rows[i].happens);
        postgres_proxy_cut(&proxy, PROXY_CUT_NONE, NULL); /* what was held back goes on, to nobody */
        if (!rows[i].happens)
            applying_end(&applying);
        check(applying.status == STATUS_AWAY, "row %zu: %s: %s", i, status_name(applying.status), applying.err.text);
        enum status status = pair.a.store->ops->outcome(pair.a.store, &applied, &err);
        check(status == STATUS_FENCED, "row %zu: %s: %s", i, status_name(status), err.text);
        struct lane_counts counts = read_lane(&pair.b, lane).counts;
        check(counts.completed == 1 && counts.pending == 1 && counts.running == 0, "row %zu", i);
        assert_int_equal(number_of(pair.address, "SELECT count(*) FROM event WHERE job = 'taken' AND state = 4"), 1);
        assert_int_equal(number_of(pair.address, "SELECT count(*) FROM event WHERE job = 'late'"), 1);
        must(verify_at(pair.address, NULL, 0, &check, &err), &err);
        pair_end(&pair);
    }
    postgres_proxy_close(&proxy);
}

/* A notification takes 8,000 bytes: many lanes go in several, and what is too much for those is told as everything. */
static void test_a_bell_has_any_number_of_lanes(void **state)
{
    enum { FEW = 300, MANY = 8000, AT_A_TIME = 1000 };
    struct pair pair;
    struct error err = { 0 };
    struct lane_heard *heard;
    char tenant[64];
    size_t told = 0, count;
    (void)state;
    pair_begin(&pair);
    for (int i = 0; i < FEW; i++) {
        snprintf(tenant, sizeof tenant, "tenant-%040d", i);
        struct store_op op = insert_op(&pair.b, "d", tenant, "");
        assert_run(&pair.b, &op, STATUS_OK);
    }
    must(pair.b.store->ops->ring(pair.b.store, &err), &err);
    for (int i = 0; i < ASKED_MAX && told < FEW; i++, told += count) {
        must(pair.a.store->ops->hear(pair.a.store, &pair.a.memory, &heard, &count, &err), &err);
        for (size_t k = 0; k < count; k++)
            check(heard[k].ready == 1 && slice_equal(heard[k].destination, SLICE("d")), "line %zu", told + k);
        if (count == 0)
            sleep_ms(1);
    }
    assert_int_equal(told, FEW);
    for (int i = 0; i < MANY; i += AT_A_TIME) {
        static struct store_op ops[AT_A_TIME];
        static char tenants[AT_A_TIME][64];
        for (int k = 0; k < AT_A_TIME; k++) {
            snprintf(tenants[k], sizeof tenants[k], "many-%040d", i + k);
            ops[k] = insert_op(&pair.b, "d", tenants[k], "");
        }
        fixture_apply(&pair.b, ops, AT_A_TIME);
        fixture_forget(&pair.b);
    }
    must(pair.b.store->ops->ring(pair.b.store, &err), &err);
    enum status status = STATUS_OK;
    for (int i = 0; i < ASKED_MAX && status == STATUS_OK; i++) {
        status = pair.a.store->ops->hear(pair.a.store, &pair.a.memory, &heard, &count, &err);
        if (status == STATUS_OK)
            sleep_ms(ASK_PAUSE_MS);
    }
    assert_string_equal(status_name(status), status_name(STATUS_AWAY)); /* who hears that looks at all lanes */
    pair_end(&pair);
}

static void number_put(instant value, char ret_bytes[8])
{
    for (int i = 0; i < 8; i++)
        ret_bytes[i] = (char)(value >> (56 - 8 * i));
}

/* The store's clock is the server's as the beats tell it: followed forward at once, and back by going slower. */
static void test_time_is_the_servers(void **state)
{
    struct postgres_proxy proxy;
    struct error err = { 0 };
    char address[POSTGRES_ADDRESS_BYTES], through[POSTGRES_ADDRESS_BYTES], bytes[8];
    const struct store_settings one = node_named("one");
    (void)state;
    postgres_server_schema(address);
    postgres_proxy_open(&proxy);
    postgres_proxy_address(&proxy, address, through);
    struct store *store = store_at(through, &one);
    must(store->ops->beat(store, 1, &err), &err);
    instant machine = clock_now(), first = store->ops->clock(store);
    check(first > machine - MINUTE_MS && first < machine + MINUTE_MS, "%lld ms off", (long long)(first - machine));

    proxy.column = 0;
    proxy.value = bytes;
    proxy.value_len = sizeof bytes;
    number_put(machine + HOUR_MS, bytes);
    proxy.columns = 1;
    must(store->ops->beat(store, 1, &err), &err);
    instant ahead = store->ops->clock(store);
    check(ahead >= machine + HOUR_MS - MINUTE_MS, "%lld ms ahead", (long long)(ahead - machine));

    number_put(machine, bytes); /* the server's was put back, or a standby with another clock took over */
    must(store->ops->beat(store, 1, &err), &err);
    instant back = store->ops->clock(store);
    check(back >= ahead && back < ahead + MINUTE_MS, "%lld ms after", (long long)(back - ahead));
    for (int i = 0; i < ASKED_MAX && store->ops->clock(store) < back + 200; i++) {
        sleep_ms(ASK_PAUSE_MS);
        must(store->ops->beat(store, 1, &err), &err);
    }
    instant later = store->ops->clock(store); /* nor does it stand for as long as the step was: nothing would become due */
    check(later >= back + 200 && later < ahead + MINUTE_MS, "%lld ms later", (long long)(later - back));
    proxy.columns = 0;
    store->ops->close(store);
    postgres_proxy_close(&proxy);
}

/* Lists are by number, the newest first: a node that adds little has no numbers of an hour ago. */
static void test_numbers_follow_arrival(void **state)
{
    struct pair pair;
    struct error err = { 0 };
    int64_t last = 0;
    (void)state;
    pair_begin(&pair);
    for (int i = 0; i < 6; i++) {
        struct store_fixture *f = i % 2 ? &pair.b : &pair.a;
        char id[8];
        snprintf(id, sizeof id, "j%d", i);
        put(f, id);
        int64_t seq = read_job(f, "t", id).seq;
        check(seq > last, "job %d has number %lld, the one before %lld", i, (long long)seq, (long long)last);
        last = seq;
        pair.b.now = pair.a.now += MINUTE_MS;
        must(pair.a.store->ops->tend(pair.a.store, pair.a.now, &err), &err);
        must(pair.b.store->ops->tend(pair.b.store, pair.b.now, &err), &err);
    }
    pair_end(&pair);
}

/* ---- dead rows ---- */

enum { WORKED = 600, AT_ONCE = 10 };

/* Somebody who reads for hours, as pg_dump does: nothing that was there when it began may be cleared away. */
static PGconn *snapshot_hold(const char *address)
{
    PGconn *conn = connection_to(address);
    run_in(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM queue");
    return conn;
}

/* Entries of a table's indexes that were looked at, of connections that have ended: dead ones count. */
static int64_t entries_read(const char *address, const char *table)
{
    char sql[200];
    static const char open_ones[] = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'insist%'";
    for (int i = 0; i < ASKED_MAX && number_of(address, open_ones) > 0; i++)
        sleep_ms(ASK_PAUSE_MS); /* each adds what it has read when it ends, which takes the server a moment */
    snprintf(sql, sizeof sql, "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = '%s'"
                              " AND schemaname = current_schema()", table);
    return number_of(address, sql);
}

static void work_off(struct store_fixture *f, int64_t lane)
{
    struct store_op claim = claim_op(f, lane, AT_ONCE), settle[AT_ONCE];
    assert_run(f, &claim, STATUS_OK);
    assert_int_equal(claim.claim.ret_count, AT_ONCE);
    for (size_t i = 0; i < AT_ONCE; i++)
        settle[i] = settle_op(&claim.claim.ret_jobs[i], EVENT_DELIVER);
    fixture_apply(f, settle, AT_ONCE);
    fixture_forget(f);
}

/* Jobs come and go while somebody holds a snapshot: a claim looks at what is ready, not at all that ever was. */
static void test_claims_do_not_walk_what_a_snapshot_keeps(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES];
    int64_t lane = 0;
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &(struct store_settings){ .pending_max = 100000 }));
    PGconn *snapshot = snapshot_hold(address);
    for (int i = 0; i < WORKED; i += AT_ONCE) {
        for (int j = 0; j < AT_ONCE; j++)
            lane = put(&f, "");
        work_off(&f, lane);
    }
    fixture_drop(&f);
    int64_t read = entries_read(address, "queue");
    check(read >= WORKED && read <= 4 * WORKED, "%lld entries for %d jobs", (long long)read, WORKED);
    PQfinish(snapshot);
}

/* The bell of what another node has added is heard: so is all that it told before. */
static void ring_and_hear(struct store_fixture *from, struct store_fixture *to)
{
    struct error err = { 0 };
    struct lane_heard *heard;
    size_t count = 0;
    must(from->store->ops->ring(from->store, &err), &err);
    for (int i = 0; i < ASKED_MAX && count == 0; i++) {
        must(to->store->ops->hear(to->store, &to->memory, &heard, &count, &err), &err);
        if (count == 0)
            sleep_ms(1);
    }
    assert_true(count > 0);
}

/* The same where another node adds the jobs, and its bell is heard between claims; a second passes with each. */
static void test_nor_where_another_node_adds(void **state)
{
    struct pair pair;
    struct store_fixture *a = &pair.a, *b = &pair.b;
    struct error err = { 0 };
    int64_t lane = 0;
    (void)state;
    pair_begin(&pair);
    PGconn *snapshot = snapshot_hold(pair.address);
    for (int i = 0; i < WORKED; i += AT_ONCE) {
        b->now = a->now += SECOND_MS;
        for (int j = 0; j < AT_ONCE; j++)
            lane = put(b, "");
        ring_and_hear(b, a);
        must(a->store->ops->tend(a->store, a->now, &err), &err);
        work_off(a, lane);
        fixture_forget(b);
    }
    pair_end(&pair);
    int64_t read = entries_read(pair.address, "queue");
    check(read >= WORKED && read <= 4 * WORKED, "%lld entries for %d jobs", (long long)read, WORKED);
    PQfinish(snapshot);
}

static size_t promoted(struct store_fixture *f)
{
    struct store_op op = { .kind = OP_PROMOTE, .promote = { .max = 100 } };
    assert_run(f, &op, STATUS_OK);
    return op.promote.ret_promoted;
}

/*
 * Neither does who looks for what is due walk over all that was, but for once a minute. What another node sets for an earlier
 * time than was looked at last is found at once if it says so, and within that minute if it does not.
 */
static void test_nor_do_promotions(void **state)
{
    enum { STEPS = 300, STEP_MS = 2 * SECOND_MS, WAIT_MS = SECOND_MS };
    struct pair pair;
    struct store_fixture *a = &pair.a, *b = &pair.b;
    (void)state;
    pair_begin(&pair);
    struct job job = take(a, put(a, "again"));
    PGconn *snapshot = snapshot_hold(pair.address);
    for (int i = 0; i < STEPS; i++) {
        struct store_op retry = settle_op(&job, EVENT_RETRY);
        retry.settle.run_at = a->now + WAIT_MS;
        assert_run(a, &retry, STATUS_OK);
        b->now = a->now += STEP_MS;
        assert_int_equal(promoted(a), 1);
        job = take(a, job.lane);
        fixture_forget(a);
    }
    struct store_op late = insert_op(b, "d", "t", "heard");
    b->now -= 10 * SECOND_MS;
    late.insert.run_at = b->now + 1;
    assert_run(b, &late, STATUS_OK);
    ring_and_hear(b, a);
    assert_int_equal(promoted(a), 1);
    late = insert_op(b, "d", "t", "unheard");
    late.insert.run_at = b->now + 1;
    assert_run(b, &late, STATUS_OK);
    a->now += MINUTE_MS;
    assert_int_equal(promoted(a), 1);
    pair_end(&pair);
    int64_t read = entries_read(pair.address, "timer");
    check(read >= STEPS && read <= 20 * STEPS, "%lld entries for %d promotions", (long long)read, STEPS);
    PQfinish(snapshot);
}

/* Of the next claim, without what follows. */
static void expect_next(struct store_fixture *f, int64_t lane, const char *id)
{
    struct job job = take(f, lane);
    assert_text(job.id, id);
}

/* What comes before all that was claimed is found, whoever brought it there and however its owner hears of it. */
static void test_what_another_puts_in_front_is_found(void **state)
{
    struct pair pair;
    struct store_fixture *a = &pair.a, *b = &pair.b;
    struct store_op own = { .kind = OP_GIVE, .own = { .destination = SLICE("d") } };
    (void)state;
    pair_begin(&pair);
    b->now = a->now += HOUR_MS;
    int64_t lane = put(a, "first");
    put(b, "second");
    put(b, "last");
    ring_and_hear(b, a);
    expect_next(a, lane, "first");
    expect_next(a, lane, "second"); /* here it begins now */

    b->now -= HOUR_MS / 2;
    put(b, "older"); /* its clock is behind, or its class is higher */
    ring_and_hear(b, a);
    expect_next(a, lane, "older");

    b->now -= MINUTE_MS;
    put(b, "untold");
    a->store->ops->recall(a->store); /* who added it died before it could ring */
    expect_next(a, lane, "untold");

    struct store_op sooner = job_op(OP_PRIORITIZE, "t", "last");
    sooner.job.rank = b->now -= MINUTE_MS;
    assert_run(b, &sooner, STATUS_OK);
    ring_and_hear(b, a);
    expect_next(a, lane, "last");

    assert_run(a, &own, STATUS_OK);
    own.kind = OP_TAKE;
    assert_run(b, &own, STATUS_OK);
    b->now -= MINUTE_MS;
    put(b, "meanwhile"); /* no bell rings for what one owns */
    own.kind = OP_GIVE;
    assert_run(b, &own, STATUS_OK);
    own.kind = OP_TAKE;
    assert_run(a, &own, STATUS_OK);
    expect_next(a, lane, "meanwhile");
    pair_end(&pair);
}

/* ---- two versions ---- */

/* Whatever a step may do of which older programs need not know: every table has a column more, and there is another table. */
static const char expand[] =
    "DO $$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP"
    " EXECUTE format('ALTER TABLE %I ADD COLUMN later bigint NOT NULL DEFAULT 7', t); END LOOP; END $$;"
    "CREATE TABLE later (id bigint PRIMARY KEY); UPDATE meta SET value = value + 1 WHERE name = 'schema'";

static void works(struct store_fixture *f, const char *id)
{
    struct store_op cancel = job_op(OP_CANCEL, "t", id), note = { .kind = OP_NOTE, .data = SLICE("{}") };
    int64_t lane = put(f, id);
    take_and_settle(f, lane, EVENT_RETRY);
    assert_run(f, &cancel, STATUS_OK);
    assert_run(f, &note, STATUS_OK);
    put(f, "");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    promote(f);
    assert_state(f, id, STATE_CANCELLED);
}

/* A newer node comes, whose step only adds: those that run go on, and others are started. One that takes away ends that. */
static void test_an_older_node_works_beside_a_newer_one(void **state)
{
    struct pair pair;
    struct error err = { 0 };
    bool applied;
    (void)state;
    pair_begin(&pair);
    works(&pair.a, "before");
    postgres_server_run(pair.address, expand, NULL, 0);
    works(&pair.a, "after");
    must(pair.a.store->ops->beat(pair.a.store, 1, &err), &err);
    must(pair.a.store->ops->tend(pair.a.store, pair.a.now + MINUTE_MS, &err), &err);
    put(&pair.b, "by the other");
    must(open_named(pair.address, "three", &err), &err);
    must(pair.b.store->ops->fence(pair.b.store, pair.a.store->session, 2, pair.b.now, &err), &err);
    fixture_drop(&pair.a);
    struct trail_check trail;
    must(verify_at(pair.address, NULL, 0, &trail, &err), &err);

    postgres_server_run(pair.address, "UPDATE meta SET value = 99 WHERE name LIKE 'schema%'", NULL, 0);
    assert_int_equal(open_named(pair.address, "three", &err), STATUS_UNSUPPORTED);
    check(strstr(err.text, "newer insist"), "%s", err.text);
    enum status status = pair.b.store->ops->outcome(pair.b.store, &applied, &err); /* nor does one that was away come back */
    check(status == STATUS_UNSUPPORTED && strstr(err.text, "newer insist"), "%s: %s", status_name(status), err.text);
    fixture_drop(&pair.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_chains_are_trimmed),
        cmocka_unit_test(test_more_is_claimed_than_is_remembered),
        cmocka_unit_test(test_claims_do_not_walk_what_a_snapshot_keeps),
        cmocka_unit_test(test_nor_where_another_node_adds),
        cmocka_unit_test(test_nor_do_promotions),
        cmocka_unit_test(test_a_fence_ends_what_was_left_open),
        cmocka_unit_test(test_a_fence_meets_a_batch_at_its_end),
        cmocka_unit_test(test_a_bell_has_any_number_of_lanes),
        cmocka_unit_test(test_time_is_the_servers),
        cmocka_unit_test(test_numbers_follow_arrival),
        cmocka_unit_test(test_what_another_puts_in_front_is_found),
        cmocka_unit_test(test_ended_sessions_are_forgotten),
        cmocka_unit_test(test_an_ack_elsewhere_is_heard),
        cmocka_unit_test(test_an_older_node_works_beside_a_newer_one),
    };
    const char *missing = postgres_server_missing();
    if (missing) {
        printf("1..0 # SKIP %s\n", missing);
        return EXIT_SUCCESS;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
