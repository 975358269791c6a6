/*
 * The tables of a store on PostgreSQL, as one version leaves them to the next: what is brought forward, what waits for older
 * nodes to be stopped, and events in pages.
 */
#include "base/clock.h"
#include "store/inspect.h"
#include "store/postgres/handle.h"
#include "store/postgres/postgres.h"
#include "store/postgres/schema.h"
#include "store/postgres/statement.h"
#include "support/check.h"
#include "support/line_server.h"
#include "support/postgres_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASKED_MAX = 600, ASK_PAUSE_MS = 50 };

static const struct store_settings plain = { .pending_max = 100000 };

/* ---- versions ---- */

/* The tables as that version has them, by a connection to them. */
static void prepare_version(const char *address, int version, struct postgres_link *ret_link)
{
    char whole[POSTGRES_ADDRESS_BYTES + 16];
    struct error err = { 0 };
    int from;
    snprintf(whole, sizeof whole, "postgres:%s", address);
    must(link_open(ret_link, whole, postgres_settings_writer, LINK_ANSWER_MS, &err), &err);
    must(schema_prepare(ret_link, &plain, version, &from, &err), &err);
}

static void test_a_newer_store_is_left_alone(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES];
    struct error err = { 0 };
    postgres_server_schema(address);
    struct store *store = store_at(address, &plain);
    store->ops->close(store);
    postgres_server_run(address, "UPDATE meta SET value = 99 WHERE name LIKE 'schema%'", NULL, 0);
    assert_int_equal(store_postgres_open(slice_from(address), &plain, &store, &err), STATUS_UNSUPPORTED);
    check(strstr(err.text, "newer insist"), "%s", err.text);
    assert_int_equal(store_postgres_backend.probe(slice_from(address), false, &err), STATUS_UNSUPPORTED);
    /* A newer version that only added something can be written by this one. */
    postgres_server_run(address, "UPDATE meta SET value = 1 WHERE name = 'schema_oldest_writer'", NULL, 0);
    store = store_at(address, &plain);
    store->ops->close(store);
}

static int told_from, told_to;

static void told_of_migration(int from, int to)
{
    told_from = from;
    told_to = to;
}

/* Whatever version a store is of, it is brought forward, says so once, and holds the contract afterwards. */
static void test_an_older_store_is_brought_forward(void **state)
{
    (void)state;
    for (int version = 1; version < postgres_schema_version(); version++) {
        char address[POSTGRES_ADDRESS_BYTES];
        struct postgres_link link = { 0 };
        struct store_settings settings = plain;
        postgres_server_schema(address);
        prepare_version(address, version, &link);
        link_close(&link);
        settings.on_migrate = told_of_migration;
        told_from = told_to = 0;
        struct store_fixture f = fixture_on(store_at(address, &settings));
        assert_int_equal(told_from, version);
        assert_int_equal(told_to, postgres_schema_version());
        int64_t lane = put(&f, "a");
        take_and_settle(&f, lane, EVENT_DELIVER);
        fixture_close(&f);
        told_from = 0;
        struct store *again = store_at(address, &settings);
        assert_int_equal(told_from, 0);
        again->ops->close(again);
    }
}

/* So many notes as large as may be, in one batch. */
static void large_notes(struct store_fixture *f, size_t count)
{
    enum { LARGE_BYTES = EVENT_DATA_BYTES_MAX };
    static char large[LARGE_BYTES];
    struct store_op ops[20];
    assert_true(count <= COUNT_OF(ops));
    for (int i = 0; i < LARGE_BYTES; i++)
        large[i] = (char)('a' + (i * i / 7 + i) % 26);
    for (size_t i = 0; i < count; i++)
        ops[i] = (struct store_op){ .kind = OP_NOTE, .data = { large, sizeof large } };
    run_together(f, ops, count);
}

/* How many bytes the data of one page has at most. */
static int64_t largest_page(const char *address)
{
    return number_of(address, "SELECT max((SELECT sum(octet_length(x)) FROM unnest(data) x)) FROM event_page");
}

/* A trail with jobs of a batch and others, whose beginning has gone and of which two were erased; where it ends in time. */
static instant trail_write(const char *address)
{
    enum { JOBS = 150, LARGE = 20 };
    struct store_fixture f = fixture_on(store_at(address, &plain));
    struct store_op ops[JOBS], note = { .kind = OP_DESTINATION, .save = { .name = SLICE("d"), .value = SLICE("{}") } };
    const int64_t numbers[] = { 20, 21 };
    char ids[JOBS][16];
    for (int i = 0; i < JOBS; i++) {
        snprintf(ids[i], sizeof ids[i], "job%d", i);
        ops[i] = insert_op(&f, "d", "t", ids[i]);
        ops[i].data = i % 3 ? SLICE("{\"of\":\"somebody\"}") : SLICE("");
    }
    run_together(&f, ops, JOBS);
    assert_run(&f, &note, STATUS_OK);
    f.now++;
    put(&f, "later");
    large_notes(&f, LARGE);
    struct store_op trim = { .kind = OP_TRIM, .trim = { .before = f.now, .max = 7 } };
    struct store_op erase = { .kind = OP_ERASE_EVENTS, .erase = { .numbers = numbers, .count = COUNT_OF(numbers) } };
    assert_run(&f, &trim, STATUS_OK);
    assert_run(&f, &erase, STATUS_OK);
    assert_int_equal(erase.erase.ret_erased, COUNT_OF(numbers));
    instant last = f.now;
    fixture_drop(&f);
    return last;
}

/* All of the store in that schema into one of an older version, in which each event has a row. */
static void copy_into(const char *address, const char *schema)
{
    static const char *const tables[] = { "lane", "lane_count", "job", "queue", "chain", "trimmed" };
    char sql[600];
    postgres_server_run(address, "DELETE FROM chain", NULL, 0);
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        snprintf(sql, sizeof sql, "INSERT INTO %s SELECT * FROM %s.%s", tables[i], schema, tables[i]);
        postgres_server_run(address, sql, NULL, 0);
    }
    snprintf(sql, sizeof sql,
             "INSERT INTO event (chain, number, at, lane, type, state, attempt, previous, form, hash, salt, digest, "
             "destination, job,"
             " data) SELECT chain, number, at, lane, type, state, attempt, previous, form, hash, salt, digest, destination, "
             "job, data"
             " FROM %s.event; INSERT INTO shard (id, destination) SELECT id, destination FROM %s.shard;"
             " SELECT setval('job_block', (SELECT last_value FROM %s.job_block))",
             schema, schema, schema);
    postgres_server_run(address, sql, NULL, 0);
}

/* The trail of a version that had a row an event goes into pages, and is the same: gaps, times and erasures as they were. */
static void test_events_of_an_older_store_go_into_pages(void **state)
{
    (void)state;
    enum { OF_ROWS = 10, PAGE_BYTES = 8000 };
    char now[POSTGRES_ADDRESS_BYTES], old[POSTGRES_ADDRESS_BYTES], schema[64], sql[200];
    struct postgres_link link = { 0 };
    struct error err = { 0 };
    struct trail_check before, after;
    postgres_server_schema(now);
    instant last = trail_write(now);
    must(verify_at(now, NULL, 0, &before, &err), &err);
    postgres_server_run(now, "SELECT current_schema()", schema, sizeof schema);
    postgres_server_schema(old);
    prepare_version(old, OF_ROWS, &link);
    link_close(&link);
    copy_into(old, schema);

    struct store_fixture f = fixture_on(store_at(old, &plain));
    must(verify_at(old, NULL, 0, &after, &err), &err);
    assert_int_equal(after.at.number, before.at.number);
    assert_memory_equal(after.at.hash, before.at.hash, EVENT_HASH_BYTES);
    assert_true(rows_of(old, "event_page") < 15 + 20);
    assert_true(largest_page(old) < EVENT_DATA_BYTES_MAX + PAGE_BYTES); /* one that is read in part is read as a whole */
    snprintf(sql, sizeof sql, "SELECT count(*) FROM (SELECT * FROM event EXCEPT SELECT * FROM %s.event) x", schema);
    assert_int_equal(number_of(old, sql), 0);
    f.now = last;
    put(&f, "and on it goes");
    fixture_close(&f);
}

/* An event that was damaged before is so afterwards, and none beside it. */
static void test_a_damaged_event_of_an_older_store_stays_alone(void **state)
{
    static const char *const damages[] = { "hash = '\\x00'", "hash = hash || '\\x00'", "type = type + 256",
                                           "salt = '\\x01'" };
    (void)state;
    enum { OF_ROWS = 10 };
    char now[POSTGRES_ADDRESS_BYTES], schema[64], sql[300];
    postgres_server_schema(now);
    trail_write(now);
    postgres_server_run(now, "SELECT current_schema()", schema, sizeof schema);
    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        char old[POSTGRES_ADDRESS_BYTES];
        struct postgres_link link = { 0 };
        struct error err = { 0 };
        struct trail_check check;
        postgres_server_schema(old);
        prepare_version(old, OF_ROWS, &link);
        link_close(&link);
        copy_into(old, schema);
        snprintf(sql, sizeof sql, "UPDATE event SET %s WHERE number = 30", damages[i]);
        postgres_server_run(old, sql, NULL, 0);
        struct store *store = store_at(old, &plain);
        store->ops->close(store);
        enum status status = verify_at(old, NULL, 0, &check, &err);
        check(status == STATUS_CORRUPT && strstr(err.text, "event 30 "), "%s: %s: %s", damages[i], status_name(status),
              err.text);
        snprintf(sql, sizeof sql,
                 "SELECT count(*) FROM event v JOIN %s.event o USING (number) WHERE v.hash IS DISTINCT FROM o.hash"
                 " OR v.type IS DISTINCT FROM o.type OR v.salt IS DISTINCT FROM o.salt",
                 schema);
        assert_int_equal(number_of(old, sql), 1);
    }
}

/* A view of somebody's own keeps its table: it is named, and the store is of the version that it was. */
static void test_what_keeps_a_step_from_being_made_is_named(void **state)
{
    (void)state;
    enum { OF_ROWS = 10 };
    char address[POSTGRES_ADDRESS_BYTES];
    struct postgres_link link = { 0 };
    struct error err = { 0 };
    struct store *store = NULL;
    postgres_server_schema(address);
    prepare_version(address, OF_ROWS, &link);
    link_close(&link);
    postgres_server_run(address, "CREATE VIEW my_events AS SELECT number FROM event", NULL, 0);
    enum status status = store_postgres_open(slice_from(address), &plain, &store, &err);
    check(status == STATUS_IO && strstr(err.text, "view my_events depends on table event"), "%s: %s", status_name(status),
          err.text);
    assert_int_equal(number_of(address, "SELECT value FROM meta WHERE name = 'schema'"), OF_ROWS);
    postgres_server_run(address, "DROP VIEW my_events", NULL, 0);
    store = store_at(address, &plain);
    store->ops->close(store);
}

/* ---- versions of nodes ---- */

/* A connection to a store of that version, held as a node that runs with it holds it. */
static void older_node(const char *address, int version, struct postgres_link *ret_link)
{
    struct error err = { 0 };
    prepare_version(address, version, ret_link);
    must(link_run(ret_link, "SELECT pg_advisory_lock_shared(" WRITER_LOCK ")", &err), &err);
}

/* One that must take away what older nodes need does not do it to those that run. */
static void test_a_newer_node_waits_for_older_ones_to_be_stopped(void **state)
{
    static const int older_ones[] = { 7, 10 }; /* with the next version came what these cannot live with */
    (void)state;
    for (size_t i = 0; i < COUNT_OF(older_ones); i++) {
        char address[POSTGRES_ADDRESS_BYTES];
        struct postgres_link older = { 0 };
        struct error err = { 0 };
        postgres_server_schema(address);
        older_node(address, older_ones[i], &older);
        enum status status = open_named(address, "newer", &err);
        check(status == STATUS_BUSY && strstr(err.text, "stop them all"), "%s: %s", status_name(status), err.text);
        assert_int_equal(number_of(address, "SELECT value FROM meta WHERE name = 'schema'"), older_ones[i]);
        link_close(&older);
        for (int tries = 0; tries < ASKED_MAX && status == STATUS_BUSY; tries++, sleep_ms(ASK_PAUSE_MS))
            status = open_named(address, "newer", &err); /* its connection may need a moment to end */
        must(status, &err);
        assert_int_equal(number_of(address, "SELECT value FROM meta WHERE name = 'schema'"), postgres_schema_version());
    }
}

/* A step that only adds waits for nobody. */
static void test_a_step_that_adds_is_made_while_older_nodes_run(void **state)
{
    enum { OLDER = 8, NEWER = 10 };
    char address[POSTGRES_ADDRESS_BYTES];
    struct postgres_link older = { 0 }, newer = { 0 };
    (void)state;
    postgres_server_schema(address);
    older_node(address, OLDER, &older);
    prepare_version(address, NEWER, &newer);
    assert_int_equal(number_of(address, "SELECT value FROM meta WHERE name = 'schema'"), NEWER);
    link_close(&newer);
    link_close(&older);
}

struct starting {
    const char *address, *name;
    struct error err;
    enum status status;
    pthread_t thread;
};

static void *start_named(void *context)
{
    struct starting *starting = context;
    starting->status = open_named(starting->address, starting->name, &starting->err);
    return NULL;
}

/* Newer nodes that are started together do not stand in each other's way, nor does an older one that is just leaving. */
static void test_newer_nodes_are_started_together(void **state)
{
    static const char *const names[] = { "one", "two", "three" };
    static const char preparing[] = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
                                    " AND classid = hashtext('insist schema')::oid";
    enum { OLDER = 7, NODES = COUNT_OF(names) };
    char address[POSTGRES_ADDRESS_BYTES];
    struct postgres_link older = { 0 };
    struct starting starting[NODES];
    (void)state;
    postgres_server_schema(address);
    older_node(address, OLDER, &older);
    for (int i = 0; i < NODES; i++) {
        starting[i] = (struct starting){ .address = address, .name = names[i] };
        assert_int_equal(pthread_create(&starting[i].thread, NULL, start_named, &starting[i]), 0);
    }
    for (int i = 0; i < ASKED_MAX && number_of(address, preparing) == 0; i++)
        sleep_ms(1);
    link_close(&older);
    for (int i = 0; i < NODES; i++)
        pthread_join(starting[i].thread, NULL);
    for (int i = 0; i < NODES; i++)
        check(starting[i].status == STATUS_OK, "%s: %s: %s", names[i], status_name(starting[i].status),
              starting[i].err.text);
    assert_int_equal(number_of(address, "SELECT value FROM meta WHERE name = 'schema'"), postgres_schema_version());
}

/* ---- pages of events ---- */

/* Pages lie in the table's own pages, and hold what they can; what is too large for that lies apart, and is read as any. */
static void test_events_are_packed(void **state)
{
    (void)state;
    enum { JOBS = 1000, LARGE_BYTES = EVENT_DATA_BYTES_MAX };
    static struct store_op ops[JOBS];
    static char ids[JOBS][16], large[LARGE_BYTES], text[32];
    char address[POSTGRES_ADDRESS_BYTES];
    size_t count;
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    for (int i = 0; i < JOBS; i++) {
        snprintf(ids[i], sizeof ids[i], "job%d", i);
        ops[i] = insert_op(&f, "d", "t", ids[i]);
    }
    run_together(&f, ops, JOBS);
    assert_true(rows_of(address, "event_page") <= JOBS / 50);
    postgres_server_run(address, "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = 'event_page'::regclass",
                        text, sizeof text);
    assert_string_equal(text, "0");
    for (int i = 0; i < LARGE_BYTES; i++)
        large[i] = (char)('a' + (i * i / 7 + i) % 26);
    for (int i = 0; i < 4; i++) { /* each begins a page, and the one behind it another */
        ops[i] = (struct store_op){ .kind = OP_NOTE, .data = i % 2 ? SLICE("{}") : (struct slice){ large, sizeof large } };
        ops[4 + i] = (struct store_op){ .kind = OP_DESTINATION,
                                        .save = { .name = i % 2 ? SLICE("a") : SLICE("b"), .value = SLICE("v") },
                                        .data = SLICE("{\"note\":\"x\"}") };
    }
    run_together(&f, ops, 8);
    struct event *events = read_events(&f, JOBS, &count);
    assert_int_equal(count, 8);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(events[i].data.len, i % 2 ? 2 : LARGE_BYTES);
        check(slice_equal(events[4 + i].destination, i % 2 ? SLICE("a") : SLICE("b")), "event %d", i);
    }
    fixture_close(&f);
}

/* However few may go at once, a page that is cut holds the rest, and says of it what it said. */
static void test_pages_are_cut(void **state)
{
    (void)state;
    enum { JOBS = 70, AT_ONCE = 9 };
    static struct store_op ops[JOBS];
    static char ids[JOBS][16];
    char address[POSTGRES_ADDRESS_BYTES];
    struct error err = { 0 };
    struct trail_check check;
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    for (int i = 0; i < JOBS; i++) {
        snprintf(ids[i], sizeof ids[i], "job%d", i);
        ops[i] = insert_op(&f, "d", "t", ids[i]);
        ops[i].data = SLICE("{\"a\":1}");
    }
    run_together(&f, ops, JOBS);
    f.now++;
    const int64_t numbers[] = { 5, 30, 31, 69 };
    for (int gone = 0; gone < JOBS;) {
        size_t count, erased = 0;
        struct store_op erase = { .kind = OP_ERASE_EVENTS, .erase = { .numbers = numbers, .count = COUNT_OF(numbers) } };
        struct store_op trim = { .kind = OP_TRIM, .trim = { .before = f.now, .max = AT_ONCE } };
        assert_run(&f, &erase, STATUS_OK);
        assert_int_equal(erase.erase.ret_erased, gone == 0 ? COUNT_OF(numbers) : 0);
        assert_run(&f, &trim, STATUS_OK);
        assert_int_equal(trim.trim.ret_deleted, JOBS - gone < AT_ONCE ? JOBS - gone : AT_ONCE);
        gone += (int)trim.trim.ret_deleted;
        struct event *events = read_events(&f, 0, &count);
        assert_int_equal(events[0].number, gone + 1);
        for (size_t i = 0; i < count && events[i].number <= JOBS; i++) {
            check(slice_equal(events[i].job, slice_from(ids[events[i].number - 1])), "event %d", (int)events[i].number);
            erased += events[i].erased;
        }
        assert_int_equal(erased, (gone < 5) + (gone < 30) + (gone < 31) + (gone < 69));
        must(verify_at(address, NULL, 0, &check, &err), &err);
    }
    fixture_close(&f);
}

/* Under a key pages verify likewise, when some of their events were erased and the first have gone. */
static void test_pages_under_a_key(void **state)
{
    (void)state;
    enum { EVENTS = 90 };
    const struct store_settings keyed = { .pending_max = 100000, .audit_key = SLICE("of somebody") };
    const int64_t numbers[] = { 3, 4, 72, 90 };
    char address[POSTGRES_ADDRESS_BYTES];
    struct trail_key key;
    struct trail_check check;
    struct error err = { 0 };
    struct store *outside;
    struct store_op ops[EVENTS];
    struct store_op erase = { .kind = OP_ERASE_EVENTS, .erase = { .numbers = numbers, .count = COUNT_OF(numbers) } };
    trail_key_init(&key, keyed.audit_key);
    const struct trail_reading reading = { .key = &key };
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &keyed));
    for (int i = 0; i < EVENTS; i++)
        ops[i] = (struct store_op){ .kind = OP_NOTE, .data = SLICE("{\"a\":1}") };
    run_together(&f, ops, EVENTS);
    f.now++;
    struct store_op trim = { .kind = OP_TRIM, .trim = { .before = f.now, .max = 3 } };
    assert_run(&f, &erase, STATUS_OK);
    assert_int_equal(erase.erase.ret_erased, COUNT_OF(numbers));
    assert_run(&f, &trim, STATUS_OK);
    fixture_drop(&f);
    must(store_postgres_backend.look(slice_from(address), &outside, &err), &err);
    must(store_verify(outside, &reading, &check, &err), &err);
    assert_int_equal(check.erased, COUNT_OF(numbers) - 1);
    assert_int_equal(check.forms[EVENT_FORM_KEYED], EVENTS - 3 + 1);
    outside->ops->close(outside);
}

/* Events of the first form have no salt in front of their data, and it cannot be erased. */
static void test_plain_events_are_read_as_they_are(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES];
    const int64_t numbers[] = { 1, 2, 3, 9 };
    struct store_op erase = { .kind = OP_ERASE_EVENTS, .erase = { .numbers = numbers, .count = COUNT_OF(numbers) } };
    size_t count;
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    struct store_op ops[] = { { .kind = OP_NOTE, .data = SLICE("{}") }, { .kind = OP_NOTE, .data = SLICE("{}") } };
    run_together(&f, ops, COUNT_OF(ops));
    postgres_server_run(address, "UPDATE event_page SET form = 0, data = ARRAY['longer than a salt is\\000', '']::bytea[]",
                        NULL, 0);
    note_in(&f, "{}");
    assert_run(&f, &erase, STATUS_OK);
    assert_int_equal(erase.erase.ret_left, 1);
    assert_int_equal(erase.erase.ret_erased, 1);
    struct event *events = read_events(&f, 0, &count);
    assert_int_equal(count, 3);
    assert_slice(events[0].data, (struct slice){ "longer than a salt is\0", 22 });
    assert_true(events[0].form == EVENT_FORM_PLAIN && !events[0].erased && events[1].data.len == 0 && events[2].erased);
    assert_int_equal(
        number_of(address, "SELECT count(*) FROM event WHERE number = 1 AND salt IS NULL AND octet_length(data) = 22"), 1);
    fixture_drop(&f);
}

/* What somebody may make of the page of events 1 to 6, of which the fifth was erased; 3 and 6 have no data. */
static const char *const damages_of_a_page[] = {
    /* clang-format off */
    "types = set_byte(types, 1, 3)", "types = types || '\\x01'", "types = substring(types FROM 2)",
    "states = set_byte(states, 1, 3)", "states = states || '\\x00'", "states = substring(states FROM 1 FOR 1)",
    "states = ''", "attempts[2] = 1", "attempts[2] = NULL", "attempts = attempts || 0::bigint", "attempts = attempts[1:1]",
    "attempts = '{}'", "attempts = ARRAY[attempts]", "attempts = '[0:5]={0,0,0,0,0,0}'", "attempts = '[2:7]={0,0,0,0,0,0}'",
    "previous[1] = 1", "previous[1] = NULL", "previous = previous || 0::bigint", "previous = previous[2:]", "lanes[1] = 0",
    "lanes[1] = 99", "lanes[4] = NULL", "lanes = lanes || 0::bigint", "lanes = lanes[:4]", "lanes[4] = 1", "jobs[1] = 'x'",
    "jobs[4] = NULL", "jobs = jobs || ''::bytea", "jobs = jobs[:4]", "jobs[1] = ''", "data[1] = ''", "data[1] = 'x'",
    "data[1] = data[1] || ' '", "data[1] = set_byte(data[1], 0, 77)", "data[3] = NULL", "data[3] = 'x'",
    "data = data || ''::bytea", "data = data[:4]", "data[1] = NULL", "data[3] = sha256('x')", "data[5] = 'x'",
    "digests[5] = sha256('x')", "digests[5] = NULL", "digests = NULL", "digests[5] = 'x'", "digests[1] = sha256('x')",
    "digests = digests || NULL::bytea", "digests = digests[5:]", "digests[3] = sha256('')", "digests = ARRAY[digests]",
    "hashes = set_byte(hashes, 0, get_byte(hashes, 0) # 1)", "hashes = hashes || sha256('x')",
    "hashes = substring(hashes FROM 2)", "hashes = substring(hashes FROM 1 FOR 160)", "hashes = ''", "first = first + 1",
    "first = first - 1", "first = -1::bigint << 60", "first = 1::bigint << 60", "last = last + 1", "last = last - 1",
    "last = 1::bigint << 60", "at = at + 1", "form = 0", "form = 2", "form = 7", "form = -1", "destination = 'x'",
    /* clang-format on */
};

/* Each part of a page is one that a verification reads: what somebody changes in the table is told, and never read as if it
 * was not. */
static void test_damaged_pages_are_told(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES], sql[400];
    struct error err = { 0 };
    struct trail_check check;
    size_t count;
    postgres_server_schema(address);
    struct store_fixture f = fixture_on(store_at(address, &plain));
    struct store_op ops[] = {
        insert_op(&f, "d", "t", "a"),
        insert_op(&f, "d", "t", "b"),
        insert_op(&f, "d", "t", "c"),
        { .kind = OP_NOTE, .data = SLICE("{\"a\":1}") },
        { .kind = OP_NOTE, .data = SLICE("{\"b\":1}") },
        { .kind = OP_NOTE, .data = SLICE("") },
    };
    ops[2].data = SLICE("");
    const int64_t fifth = 5;
    struct store_op erase = { .kind = OP_ERASE_EVENTS, .erase = { .numbers = &fifth, .count = 1 } };
    run_together(&f, ops, COUNT_OF(ops));
    assert_run(&f, &erase, STATUS_OK);
    ops[0] = insert_op(&f, "d", "t", "of another page");
    run_together(&f, (struct store_op[]){ ops[0], ops[5] }, 2);
    fixture_close(&f);
    assert_int_equal(rows_of(address, "event_page"), 2);
    must(verify_at(address, NULL, 0, &check, &err), &err);
    assert_int_equal(check.erased, 1);
    postgres_server_run(address, "CREATE TABLE as_it_was AS SELECT * FROM event_page", NULL, 0);
    for (size_t i = 0; i < COUNT_OF(damages_of_a_page); i++) {
        snprintf(sql, sizeof sql, "UPDATE event_page SET %s WHERE last = 6", damages_of_a_page[i]);
        postgres_server_run(address, sql, NULL, 0);
        enum status status = verify_at(address, NULL, 0, &check, &err);
        check(status == STATUS_CORRUPT || status == STATUS_INVALID, "%s: %s: %s", damages_of_a_page[i], status_name(status),
              err.text);
        postgres_server_run(address, "SELECT count(v) FROM event v", NULL, 0); /* who looks at it sees what there is */
        postgres_server_run(address, "TRUNCATE event_page; INSERT INTO event_page SELECT * FROM as_it_was", NULL, 0);
    }
    must(verify_at(address, NULL, 0, &check, &err), &err);
    f = fixture_on(store_at(address, &plain));
    struct event *events = read_events(&f, 0, &count);
    assert_true(count == 8 && events[4].erased);
    fixture_drop(&f);
}

/* The head that a chain keeps, and what a job names, may be of a page that is gone: the next one is of another chain. */
static void test_what_is_gone_is_not_looked_for_in_another_chain(void **state)
{
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES];
    const struct store_settings one = node_named("one"), two = node_named("two");
    struct store_op take = { .kind = OP_TAKE, .own = { .destination = SLICE("") } };
    size_t count;
    postgres_server_schema(address);
    struct store_fixture a = fixture_on(store_at(address, &one)), b = fixture_on(store_at(address, &two));
    put(&a, "old");
    note_in(&a, "{}");
    note_in(&b, "{}");
    note_in(&b, "{}");
    assert_run(&b, &take, STATUS_OK);
    b.now += MINUTE_MS;
    struct store_op trim = { .kind = OP_TRIM, .trim = { .before = b.now, .max = 100 } };
    assert_run(&b, &trim, STATUS_OK);
    assert_int_equal(number_of(address, "SELECT count(*) FROM event WHERE chain = 1"), 0);
    assert_true(job_exists(&b, "t", "old"));
    read_history(&b, "t", "old", &count);
    assert_int_equal(count, 0);
    const int64_t gone = ((int64_t)1 << EVENT_CHAIN_SHIFT) + 1;
    struct store_op erase = { .kind = OP_ERASE_EVENTS, .erase = { .numbers = &gone, .count = 1 } };
    assert_run(&b, &erase, STATUS_OK);
    assert_int_equal(erase.erase.ret_erased + erase.erase.ret_left, 0);
    note_in(&a, "{\"note\":\"of the end\"}");
    fixture_drop(&a);
    postgres_server_run(address, "DELETE FROM event_page WHERE last >> 40 = 1", NULL, 0);
    a = fixture_on(store_at(address, &one));
    struct event *events = read_events(&a, (int64_t)1 << EVENT_CHAIN_SHIFT, &count);
    assert_true(count > 0 && slice_has_prefix(events[0].data, SLICE("{\"note\":\"trail_broken\"")));
    fixture_drop(&a);
    fixture_drop(&b);
}

/* A trim that may take so many reads no more pages than have them, and none that are young. */
static void test_a_trim_reads_what_it_may_take(void **state)
{
    static const struct {
        int before, max, pages;
    } rows[] = { { 1000, 10, 1 }, { 1000, 21, 3 }, { 1000, 2, 1 }, { 2, 1000, 3 }, { 0, 1000, 0 } };
    (void)state;
    char address[POSTGRES_ADDRESS_BYTES], whole[4000], sql[4600];
    postgres_server_schema(address);
    struct store *store = store_at(address, &plain);
    store->ops->close(store);
    postgres_server_run(
        address,
        "INSERT INTO event_page SELECT n * 10 + 1, n * 10 + 10, n, 1, '', '', '', '{}', '{}', '{}', '', '{}', '{}'"
        " FROM generate_series(0, 99) n; INSERT INTO chain SELECT 1, term, batch, number, hash, mark, 0, 0 FROM chain",
        NULL, 0);
    snprintf(whole, sizeof whole, "%s; PREPARE oldest (bigint, bigint) AS %s", postgres_settings_writer,
             postgres_text(ASK_OLDEST_EVENTS)->sql);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        snprintf(sql, sizeof sql,
                 "BEGIN; %s; EXECUTE oldest(%d, %d); SELECT pg_stat_get_xact_tuples_fetched('event_page_pkey'::regclass)",
                 whole, rows[i].before, rows[i].max);
        int64_t read = number_of(address, sql);
        check(read > 0 && read <= rows[i].pages + 1, "row %zu: %d pages", i,
              (int)read); /* and the one that tells whether two are old */
    }
}

/* Two who erase in one page, and one who erases in a page that is being cut: each finds its event. */
static void test_a_page_is_changed_by_one_after_the_other(void **state)
{
    static const char before[] = "BEGIN; %s; SELECT insist_event_erase(20)",
                      cut[] = "PREPARE cut (bigint) AS %s; EXECUTE cut(10)";
    (void)state;
    enum { EVENTS = 40 };
    for (int i = 0; i < 2; i++) {
        char address[POSTGRES_ADDRESS_BYTES], sql[2000], first[1600] = "SELECT insist_event_erase(21)";
        struct store_op ops[EVENTS];
        const int64_t numbers[] = { 5, 20, 21, 30 };
        struct store_op erase = { .kind = OP_ERASE_EVENTS, .erase = { .numbers = numbers, .count = COUNT_OF(numbers) } };
        struct applying applying;
        struct error err = { 0 };
        postgres_server_schema(address);
        struct store_fixture f = fixture_on(store_at(address, &plain));
        for (int n = 0; n < EVENTS; n++)
            ops[n] = (struct store_op){ .kind = OP_NOTE, .data = SLICE("{\"a\":1}") };
        run_together(&f, ops, EVENTS);
        postgres_server_run(address, "CREATE TABLE as_it_was AS SELECT * FROM event", NULL, 0);
        struct postgres_link link = { 0 };
        char whole[POSTGRES_ADDRESS_BYTES + 16];
        snprintf(whole, sizeof whole, "postgres:%s", address);
        must(link_open(&link, whole, postgres_settings_writer, LINK_ANSWER_MS, &err), &err);
        if (i == 1)
            snprintf(first, sizeof first, cut, postgres_text(WRITE_EVENTS_CUT)->sql);
        snprintf(sql, sizeof sql, before, first);
        must(link_run(&link, sql, &err), &err);
        applying_begin(&applying, &f, &erase, 1);
        while (number_of(address, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0)
            sleep_ms(1);
        must(link_run(&link, "COMMIT", &err), &err);
        applying_end(&applying);
        must(applying.status, &applying.err);
        assert_int_equal(erase.erase.ret_erased, 2); /* 5 and 30, or 21 and 30 */
        link_close(&link);
        assert_int_equal(number_of(address, "SELECT count(*) FROM event WHERE digest IS NOT NULL"), i == 0 ? 4 : 3);
        assert_int_equal(number_of(address,
                                   "SELECT count(*) FROM event v JOIN as_it_was o USING (number) WHERE v.hash <> o.hash OR"
                                   " v.digest <> sha256(o.salt || o.data) OR v.digest IS NULL AND v.data <> o.data"
                                   " OR (v.digest IS NULL) = (number IN (5, 20, 21, 30))"),
                         0);
        assert_int_equal(rows_of(address, "event"), i == 0 ? EVENTS : EVENTS - 10);
        fixture_drop(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_newer_store_is_left_alone),
        cmocka_unit_test(test_an_older_store_is_brought_forward),
        cmocka_unit_test(test_events_of_an_older_store_go_into_pages),
        cmocka_unit_test(test_a_damaged_event_of_an_older_store_stays_alone),
        cmocka_unit_test(test_what_keeps_a_step_from_being_made_is_named),
        cmocka_unit_test(test_a_newer_node_waits_for_older_ones_to_be_stopped),
        cmocka_unit_test(test_a_step_that_adds_is_made_while_older_nodes_run),
        cmocka_unit_test(test_newer_nodes_are_started_together),
        cmocka_unit_test(test_events_are_packed),
        cmocka_unit_test(test_pages_are_cut),
        cmocka_unit_test(test_pages_under_a_key),
        cmocka_unit_test(test_plain_events_are_read_as_they_are),
        cmocka_unit_test(test_damaged_pages_are_told),
        cmocka_unit_test(test_what_is_gone_is_not_looked_for_in_another_chain),
        cmocka_unit_test(test_a_trim_reads_what_it_may_take),
        cmocka_unit_test(test_a_page_is_changed_by_one_after_the_other),
    };
    const char *missing = postgres_server_missing();
    if (missing) {
        printf("1..0 # SKIP %s\n", missing);
        return EXIT_SUCCESS;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
