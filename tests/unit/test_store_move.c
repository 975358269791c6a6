/*
 * A store that is moved to another kind and back is what it was, wherever the move was interrupted; and it works on.
 */
#include "store/inspect.h"
#include "store/move.h"
#include "store/postgres/postgres.h"
#include "store/sqlite/sqlite.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/postgres_server.h"
#include "support/store_fixture.h"
#include "support/store_script.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE_BYTES = 1 << 20, LARGE_JOBS = 12, ADDRESS_BYTES = 512 };

static const struct store_backend *const backends[] = { &store_sqlite_backend, &store_postgres_backend, NULL };
static int stores_made;

static void must(enum status status, const struct error *err)
{
    if (status != STATUS_OK)
        fail_msg("%s: %s", status_name(status), err->text);
}

/* The address of a store that is not there yet. */
static void new_address(const char *kind, char ret_address[ADDRESS_BYTES])
{
    char schema[POSTGRES_ADDRESS_BYTES];
    if (strcmp(kind, "sqlite") == 0) {
        snprintf(ret_address, ADDRESS_BYTES, "sqlite:%s/%d/store.db", test_folder, stores_made++);
        return;
    }
    postgres_server_schema(schema);
    snprintf(ret_address, ADDRESS_BYTES, "postgres:%s", schema);
}

static struct store *open_for(const char *address, bool for_move)
{
    const struct store_settings settings = { .pending_max = 100000, .sync_always = false, .for_move = for_move,
                                             .own_tenant = SLICE("") };
    struct error err = { 0 };
    struct store *store = NULL;
    must(store_open(backends, slice_from(address), &settings, &store, &err), &err);
    return store;
}

static struct store_fixture fixture_at(const char *address)
{
    static const struct store_under_test any = { "moved", NULL, 0, NULL, false, NULL };
    struct error err = { 0 };
    struct store_fixture f = { .backend = &any, .store = open_for(address, false) };
    f.now = f.store->newest_at == INSTANT_NONE ? (instant)FIXTURE_START * SECOND_MS : f.store->newest_at + SECOND_MS;
    must(f.store->ops->reader(f.store, &f.reader, &err), &err);
    return f;
}

static void fixture_close(struct store_fixture *f)
{
    f->store->ops->reader_close(f->reader);
    f->store->ops->close(f->store);
    arena_release(&f->memory);
}

/* Dead letters; two go back, and one of these fails again and waits. */
static void fill_letters(struct store_fixture *f)
{
    char id[32];
    for (int i = 0; i < 3; i++) {
        snprintf(id, sizeof id, "letter-%d", i);
        struct store_op letter = insert_op(f, id, "t", id);
        letter.insert.deadline = i == 2 ? f->now + 3600000 : INSTANT_NONE;
        assert_run(f, &letter, STATUS_OK);
        take_and_settle(f, letter.insert.ret_lane, EVENT_GIVE_UP);
        struct store_op back = job_op(OP_REDRIVE, "t", id);
        back.job.redrive = SLICE("R1");
        if (i > 0)
            assert_run(f, &back, STATUS_OK);
        if (i == 1)
            take_and_settle(f, letter.insert.ret_lane, EVENT_RETRY);
    }
}

/* Every kind of operation; then what is unkind: odd bytes in every text, a megabyte a payload, leases, saved values. */
static void fill(const char *address, int large_jobs)
{
    struct script script = { 0 };
    struct error err = { 0 };
    struct store *store = open_for(address, false);
    for (int i = 0; i < SCRIPT_BATCHES; i++)
        must(script_apply(&script, store, i, &err), &err);
    store->ops->close(store);
    struct store_fixture f = fixture_at(address);
    char *large = malloc(LARGE_BYTES), id[32];
    for (int i = 0; i < LARGE_BYTES; i++)
        large[i] = (char)(i * 7 % 251);
    for (int i = 0; i < large_jobs; i++) {
        snprintf(id, sizeof id, "large-%d", i);
        struct store_op op = insert_op(&f, "far", "t", id);
        op.insert.payload = (struct slice){ large, LARGE_BYTES };
        assert_run(&f, &op, STATUS_OK);
    }
    fill_letters(&f);
    for (int i = 0; i < 3; i++) { /* one goes, two are behind it */
        struct store_op keyed = insert_op(&f, "ordered", "t", "");
        keyed.insert.key = SLICE("k\xff");
        keyed.insert.callback = SLICE("{\"destination\":\"d\"}");
        assert_run(&f, &keyed, STATUS_OK);
        assert_int_equal(keyed.insert.ret_behind, i > 0);
    }
    struct store_op odd = insert_op(&f, "d\xff\x80'", "t\x01\xfe", "ids \"\\\xf0\x28 x");
    odd.insert.headers = SLICE("{\"a\":\"\\u0000\"}");
    odd.insert.metadata = (struct slice){ "{\0\xff}", 4 };
    odd.insert.correlation_id = SLICE("c\xc3");
    odd.insert.payload = (struct slice){ "\0\xff\0", 3 };
    odd.data = SLICE("{\"by\":\"\xff\"}");
    assert_run(&f, &odd, STATUS_OK);
    struct store_op none = insert_op(&f, "far", "t", "");
    assert_run(&f, &none, STATUS_OK);
    assert_true(take(&f, odd.insert.ret_lane).lease_token > 0);
    struct store_op pull = claim_op(&f, none.insert.ret_lane, 2);
    pull.claim.owner = SLICE("worker 7");
    assert_run(&f, &pull, STATUS_OK);
    assert_int_equal(pull.claim.ret_count, 2);
    for (int i = 0; i < 700; i++) {
        snprintf(id, sizeof id, "n%d", i * 7919 % 701);
        struct store_op save = { .kind = OP_SAVE, .save = { i % 2 ? SLICE("rate") : SLICE("gate\xff"), slice_from(id),
                                                          SLICE("{\"until\":1}") } };
        assert_run(&f, &save, STATUS_OK);
    }
    for (int i = 0; i < 3; i++) { /* a job that was and went, whose name leads to its events; and a trim */
        struct store_op gone = insert_op(&f, "near", "u", "gone");
        gone.insert.deadline = f.now + 1;
        assert_run(&f, &gone, STATUS_OK);
        f.now += 10;
        promote(&f);
        struct store_op purge = job_op(OP_PURGE, "u", "gone");
        assert_run(&f, &purge, STATUS_OK);
    }
    struct store_op trim = { .kind = OP_TRIM, .trim = { .before = f.now - 5, .max = 40 } };
    assert_run(&f, &trim, STATUS_OK);
    free(large);
    fixture_audit(&f);
    fixture_close(&f);
}

/* ---- moves ---- */

static int pages_left; /* of the process, which then ends as if it had been killed; negative: all */

static bool ends_before_comparing;

static void end_or_not(void *context, bool compares, enum move_kind kind, int64_t done, int64_t all)
{
    (void)context;
    if (compares && ends_before_comparing)
        _exit(9);
    (void)kind;
    check(done <= all || kind == MOVE_META, "%lld of %lld %s", (long long)done, (long long)all, move_kind_facts(kind)->name);
    if (pages_left-- == 0)
        _exit(9);
}

static enum status move_it(const char *from, const char *to, struct move_result *ret_result, struct error *err)
{
    struct store *source = open_for(from, true), *target = open_for(to, true);
    const struct move move = { .from = source, .to = target, .progress = end_or_not };
    enum status status = store_move(&move, ret_result, err);
    source->ops->close(source);
    target->ops->close(target);
    return status;
}

static void move_whole_store(const char *from, const char *to)
{
    struct move_result result;
    struct error err = { 0 };
    pages_left = -1;
    must(move_it(from, to, &result, &err), &err);
    assert_false(result.broken);
}

/* True: the process ended in the middle. */
static bool move_and_die(const char *from, const char *to, int pages)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct move_result result;
        struct error err = { 0 };
        pages_left = pages;
        _exit(move_it(from, to, &result, &err) == STATUS_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 9));
    return WEXITSTATUS(status) == 9;
}

/* What was moved works on: names, leases by their tokens, histories of what is gone, the trail. */
static void work_on(const char *address)
{
    struct store_fixture f = fixture_at(address);
    struct trail_check check;
    struct error err = { 0 };
    f.now += 60000;
    fixture_audit(&f);
    struct job held = read_job(&f, "t\x01\xfe", "ids \"\\\xf0\x28 x");
    assert_int_equal(held.state, STATE_RUNNING);
    assert_slice(held.payload, (struct slice){ "\0\xff\0", 3 });
    assert_slice(held.metadata, (struct slice){ "{\0\xff}", 4 });
    assert_true(held.lease_token < f.store->session);
    struct store_op orphans = { .kind = OP_ORPHANS, .orphans = { .until = 0, .of_ended = true, .after_until = INSTANT_NONE,
                                                             .max = 100 } };
    assert_run(&f, &orphans, STATUS_OK);
    bool found = false;
    for (size_t i = 0; i < orphans.orphans.ret_count; i++)
        found = found || orphans.orphans.ret_jobs[i].seq == held.seq;
    assert_true(found); /* that process is gone; the worker's lease is not its own */
    struct store_op settle = settle_op(&held, EVENT_DELIVER);
    assert_run(&f, &settle, STATUS_OK);
    struct store_op again = insert_op(&f, "far", "t", "large-3");
    assert_run(&f, &again, STATUS_CONFLICT); /* of that name there is one with another payload */
    size_t count;
    read_history(&f, "u", "gone", &count);
    assert_true(count >= 6);
    struct job large = take(&f, again.insert.ret_lane ? again.insert.ret_lane : read_job(&f, "t", "large-3").lane);
    assert_false(large.damaged);
    struct store_op none = insert_op(&f, "far", "t", "");
    assert_run(&f, &none, STATUS_OK);
    assert_true(none.insert.ret_seq > held.seq);
    fixture_audit(&f);
    const struct trail_reading reading = { 0 };
    must(store_verify(f.store, &reading, &check, &err), &err);
    must(store_check(f.store, &err), &err);
    fixture_close(&f);
}

static bool no_postgres(void)
{
    const char *why = postgres_server_missing();
    if (why)
        print_message("not with PostgreSQL: %s\n", why);
    return why != NULL;
}

static void a_store_moves_there_and_back(void **state)
{
    (void)state;
    char a[ADDRESS_BYTES], b[ADDRESS_BYTES], c[ADDRESS_BYTES], d[ADDRESS_BYTES];
    if (no_postgres())
        return;
    new_address("sqlite", a);
    new_address("postgres", b);
    new_address("sqlite", c);
    new_address("postgres", d);
    fill(a, LARGE_JOBS);
    move_whole_store(a, b);
    move_whole_store(b, c);
    move_whole_store(c, d);
    work_on(d);
    work_on(c);
    work_on(b);
}

/* Every value of every table but for what is made anew: whoever adds a column finds here that it is not moved. */
static int columns_list(sqlite3 *db, const char *table, char *ret_list, size_t size)
{
    sqlite3_stmt *query;
    int count = 0;
    size_t len = 0;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?1)", -1, &query, NULL), SQLITE_OK);
    sqlite3_bind_text(query, 1, table, -1, SQLITE_STATIC);
    while (sqlite3_step(query) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(query, 0);
        if (strcmp(table, "lane") == 0 && strcmp(name, "event") == 0)
            continue; /* when it may go */
        const char *as = strcmp(name, "run_at") == 0 ? "coalesce(run_at, created_at)" : NULL;
        if (strcmp(table, "job") == 0 && strcmp(name, "digest") == 0)
            as = "CASE key WHEN 0 THEN '' ELSE digest END"; /* where the store made the id, it is made whole on the way */
        len += (size_t)snprintf(ret_list + len, size - len, "%s%s%s%s", count++ ? ", " : "", as ? "" : "coalesce(",
                                as ? as : name, as ? "" : ", '')");
        assert_true(len < size);
    }
    sqlite3_finalize(query);
    return count;
}

static int64_t number_of(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *query;
    if (sqlite3_prepare_v2(db, sql, -1, &query, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(query), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(query, 0);
    sqlite3_finalize(query);
    return number;
}

static void assert_same_files(const char *a, const char *b)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *tables;
    char sql[8192], list[2048];
    int count = 0;
    assert_int_equal(sqlite3_open(a + strlen("sqlite:"), &db), SQLITE_OK);
    snprintf(sql, sizeof sql, "ATTACH '%s' AS moved", b + strlen("sqlite:"));
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    static const char all[] = "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT IN ('meta', 'head')";
    assert_int_equal(sqlite3_prepare_v2(db, all, -1, &tables, NULL), SQLITE_OK);
    for (; sqlite3_step(tables) == SQLITE_ROW; count++) {
        const char *table = (const char *)sqlite3_column_text(tables, 0);
        assert_true(columns_list(db, table, list, sizeof list) > 0);
        for (int turn = 0; turn < 2; turn++) {
            snprintf(sql, sizeof sql, "SELECT count(*) FROM (SELECT %s FROM %s.%s EXCEPT SELECT %s FROM %s.%s)", list,
                     turn ? "moved" : "main", table, list, turn ? "main" : "moved", table);
            int64_t differ = number_of(db, sql);
            check(differ == 0, "%s: %lld rows are not what they were", table, (long long)differ);
        }
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", table);
        check(number_of(db, sql) > 0, "%s: the store that is moved has none", table);
    }
    assert_true(count >= 10);
    sqlite3_finalize(tables);
    sqlite3_close(db);
}

/* What says nothing in any row could be forgotten unseen: a dead letter gets it. */
static void columns_say_something(const char *address, const char *table)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *names;
    char sql[512];
    assert_int_equal(sqlite3_open(address + strlen("sqlite:"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?1)", -1, &names, NULL), SQLITE_OK);
    sqlite3_bind_text(names, 1, table, -1, SQLITE_STATIC);
    while (sqlite3_step(names) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(names, 0);
        snprintf(sql, sizeof sql, "SELECT count(DISTINCT coalesce(%s, '')) FROM %s", name, table);
        if (number_of(db, sql) > 1)
            continue;
        snprintf(sql, sizeof sql, "UPDATE %s SET %s = 1 WHERE seq = (SELECT min(seq) FROM job WHERE state = 5)", table, name);
        check(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK && sqlite3_changes(db) == 1, "%s: %s", sql,
              sqlite3_errmsg(db));
    }
    sqlite3_finalize(names);
    sqlite3_close(db);
}

static void every_column_is_moved(void **state)
{
    (void)state;
    char a[ADDRESS_BYTES], b[ADDRESS_BYTES], c[ADDRESS_BYTES];
    new_address("sqlite", a);
    fill(a, 2);
    columns_say_something(a, "job");
    columns_say_something(a, "payload");
    new_address("sqlite", c);
    move_whole_store(a, c);
    assert_same_files(a, c);
    if (no_postgres())
        return;
    new_address("postgres", b);
    new_address("sqlite", c);
    move_whole_store(a, b);
    move_whole_store(b, c);
    assert_same_files(a, c);
}

static void a_store_of_postgres_moves(void **state)
{
    (void)state;
    char a[ADDRESS_BYTES], b[ADDRESS_BYTES], c[ADDRESS_BYTES];
    if (no_postgres())
        return;
    new_address("postgres", a);
    new_address("sqlite", b);
    new_address("postgres", c);
    fill(a, LARGE_JOBS);
    move_whole_store(a, b);
    move_whole_store(a, c);
    work_on(b);
    work_on(c);
}

static void moves_go_on_wherever_they_ended(void **state)
{
    (void)state;
    static const char *const targets[] = { "sqlite", "postgres" };
    char from[ADDRESS_BYTES], to[ADDRESS_BYTES];
    new_address("sqlite", from);
    fill(from, LARGE_JOBS);
    for (size_t kind = 0; kind < 2; kind++) {
        if (kind == 1 && no_postgres())
            return;
        struct move_result result;
        struct error err = { 0 };
        struct store *half = NULL;
        const struct store_settings plain = { .pending_max = 1 };
        new_address(targets[kind], to);
        bool died = true;
        int deaths = 0;
        for (int pages = 1; died && pages < 40; pages += 3, deaths += died) {
            died = move_and_die(from, to, pages);
            if (died && deaths == 0) {
                assert_int_equal(store_open(backends, slice_from(to), &plain, &half, &err), STATUS_CONFLICT);
                assert_non_null(strstr(err.text, "insist migrate"));
            }
        }
        assert_true(deaths >= 3 && !died);
        pages_left = -1;
        must(move_it(from, to, &result, &err), &err); /* nobody may have heard that it had ended */
        assert_true(result.complete && !result.resumed && !result.broken && result.counts[MOVE_JOB] > 0);
        must(move_it(from, to, &result, &err), &err);
        work_on(to);
        assert_int_equal(move_it(from, to, &result, &err), STATUS_CONFLICT);
        assert_non_null(strstr(err.text, "not empty"));
    }
}

/* What says in no event that it has changed: a store that was moved and is used is no end of that move. */
static void a_store_that_is_used_is_not_empty(void **state)
{
    (void)state;
    char from[ADDRESS_BYTES], to[ADDRESS_BYTES];
    struct move_result result;
    struct error err = { 0 };
    new_address("sqlite", from);
    new_address("sqlite", to);
    fill(from, 2);
    move_whole_store(from, to);
    struct store_fixture f = fixture_at(to);
    struct store_op save = { .kind = OP_SAVE, .save = { SLICE("rate"), SLICE("n5"), SLICE("{\"until\":2}") } };
    assert_run(&f, &save, STATUS_OK);
    fixture_close(&f);
    assert_int_equal(move_it(from, to, &result, &err), STATUS_CONFLICT);
    assert_non_null(strstr(err.text, "not empty"));
    struct store_fixture again = fixture_at(to); /* as it was */
    put(&again, "x");
    fixture_close(&again);
}

/* A file has one chain of events, and nodes have one each: that is said before anything is moved. */
static void what_nodes_wrote_has_no_place_in_a_file(void **state)
{
    (void)state;
    char from[ADDRESS_BYTES], to[ADDRESS_BYTES], other[ADDRESS_BYTES];
    struct move_result result;
    struct error err = { 0 };
    struct store *store = NULL;
    const struct store_settings node = { .node = SLICE("a"), .node_url = SLICE("http://a"), .pending_max = 100 };
    if (no_postgres())
        return;
    new_address("postgres", from);
    new_address("sqlite", to);
    new_address("postgres", other);
    fill(from, 4);
    assert_int_equal(store_open(backends, slice_from(from), &node, &store, &err), STATUS_OK);
    struct store_op note = { .kind = OP_NOTE, .data = SLICE("{}") };
    struct arena memory = { 0 };
    assert_int_equal(store->ops->apply(store, (instant)FIXTURE_START * SECOND_MS, &note, 1, &memory, &err), STATUS_OK);
    arena_release(&memory);
    store->ops->close(store);
    pages_left = -1;
    assert_int_equal(move_it(from, to, &result, &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "move it to another database"));
    struct store_fixture f = fixture_at(to); /* no half of a move is there: it is a new store as any */
    put(&f, "x");
    fixture_close(&f);
    assert_int_equal(move_it(from, other, &result, &err), STATUS_OK);
}

static void half_of_another_store_is_refused(void **state)
{
    (void)state;
    char from[ADDRESS_BYTES], other[ADDRESS_BYTES], to[ADDRESS_BYTES];
    struct move_result result;
    struct error err = { 0 };
    new_address("sqlite", from);
    new_address("sqlite", other);
    new_address("sqlite", to);
    fill(from, 4);
    fill(other, 4);
    assert_true(move_and_die(from, to, 4));
    pages_left = -1;
    assert_int_equal(move_it(other, to, &result, &err), STATUS_CONFLICT);
    assert_non_null(strstr(err.text, "half of another"));
    char third[ADDRESS_BYTES];
    new_address("sqlite", third);
    assert_int_equal(move_it(to, third, &result, &err), STATUS_CONFLICT); /* nor is it a store to move from */
    assert_non_null(strstr(err.text, "half of another"));
    struct store_fixture f = fixture_at(from); /* it goes on: what was moved is not what is there now */
    put(&f, "later");
    fixture_close(&f);
    assert_int_equal(move_it(from, to, &result, &err), STATUS_CONFLICT);
}

static void what_was_changed_on_the_way_is_found(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "UPDATE payload SET body = x'00' WHERE seq = (SELECT max(seq) FROM job)",
        "UPDATE event SET data = '{\"x\":1}' WHERE number = (SELECT max(number) FROM event) - 3",
        "UPDATE kept SET value = '2' WHERE name = 'n5'",
        "DELETE FROM job WHERE seq = (SELECT max(seq) FROM job)",
        "UPDATE lane SET completed = completed + 1 WHERE id = 1",
    };
    char from[ADDRESS_BYTES], to[ADDRESS_BYTES];
    new_address("sqlite", from);
    fill(from, 4);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct move_result result;
        struct error err = { 0 };
        sqlite3 *db = NULL;
        new_address("sqlite", to);
        ends_before_comparing = true;
        assert_true(move_and_die(from, to, -1));
        ends_before_comparing = false;
        assert_int_equal(sqlite3_open(to + strlen("sqlite:"), &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, changes[i], NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        pages_left = -1;
        enum status status = move_it(from, to, &result, &err);
        check(status == STATUS_CORRUPT, "%s: %s %s", changes[i], status_name(status), err.text);
    }
}

static void a_running_daemon_is_in_the_way(void **state)
{
    (void)state;
    char from[ADDRESS_BYTES];
    struct error err = { 0 };
    struct store *second = NULL;
    const struct store_settings settings = { .for_move = true };
    new_address("sqlite", from);
    struct store *daemon = open_for(from, false);
    assert_int_equal(store_open(backends, slice_from(from), &settings, &second, &err), STATUS_BUSY);
    daemon->ops->close(daemon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_moves_there_and_back),
        cmocka_unit_test(every_column_is_moved),
        cmocka_unit_test(a_store_of_postgres_moves),
        cmocka_unit_test(moves_go_on_wherever_they_ended),
        cmocka_unit_test(a_store_that_is_used_is_not_empty),
        cmocka_unit_test(what_nodes_wrote_has_no_place_in_a_file),
        cmocka_unit_test(half_of_another_store_is_refused),
        cmocka_unit_test(what_was_changed_on_the_way_is_found),
        cmocka_unit_test(a_running_daemon_is_in_the_way),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}
