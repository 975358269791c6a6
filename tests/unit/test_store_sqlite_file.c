/* Looking at a SQLite store from outside, while it is open and after. */
#include "store/sqlite/sqlite.h"
#include "support/check.h"
#include "support/store_look.h"
#include "support/store_fixture.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct files {
    char store[300], copy[300], third[300];
};

static struct files files_of(const struct store_fixture *f)
{
    struct files files;
    snprintf(files.store, sizeof files.store, "%s/store.db", f->place.folder);
    snprintf(files.copy, sizeof files.copy, "%s/copy 100%%?#.db", f->place.folder);
    snprintf(files.third, sizeof files.third, "%s/third.db", f->place.folder);
    return files;
}

/* Two pending, one waiting, one dead. */
static void fill(struct store_fixture *f)
{
    int64_t lane = put(f, "a");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    put(f, "b");
    take_and_settle(f, lane, EVENT_RETRY);
    put(f, "c");
    put(f, "d");
}

/* As somebody with the file and sqlite3 would. */
static void tamper(const char *path, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int64_t newest_event(struct store_fixture *f)
{
    size_t count;
    struct event *events = read_events(f, 0, &count);
    return events[count - 1].number;
}

static void test_facts_beside_the_writer(void **state)
{
    struct store_fixture *f = *state;
    struct files files = files_of(f);
    struct store_facts facts;
    struct error err = { 0 };
    fill(f);
    assert_int_equal(look_facts(files.store, &facts, &err), STATUS_OK);
    assert_int_equal(facts.schema_version, store_sqlite_schema_version());
    assert_int_equal(facts.pending, 2);
    assert_int_equal(facts.running, 0);
    assert_int_equal(facts.waiting, 1);
    assert_int_equal(facts.dead, 1);
    assert_int_equal(facts.event_first, 1);
    assert_int_equal(facts.event_last, newest_event(f));
    assert_true(facts.bytes > 0);
    assert_int_equal(facts.schema_newest, facts.schema_version);
    assert_null(facts.unwritable);
    assert_int_equal(look_check(files.store, &err), STATUS_OK);
}

/* Asked of the open store, as the daemon does, and of one that is not there yet, as doctor does. */
static void test_space(void **state)
{
    struct store_fixture *f = *state;
    struct files files = files_of(f);
    struct store_space space, other;
    struct stat file;
    struct error err = { 0 };
    fill(f);
    assert_int_equal(store_space(f->store, &space, &err), STATUS_OK);
    assert_int_equal(stat(files.store, &file), 0);
    assert_int_equal(space.bytes, file.st_size);
    assert_true(space.log_bytes > 0 && space.free_bytes > 0 && space.folder_writable);
    assert_string_equal(space.folder, f->place.folder);

    static const struct store_backend *const backends[] = { &store_sqlite_backend, NULL };
    struct store *absent;
    char path[400];
    snprintf(path, sizeof path, "sqlite:%s/not/yet/there.db", f->place.folder);
    assert_int_equal(store_look(backends, slice_from(path), &absent, &err), STATUS_OK);
    assert_int_equal(store_space(absent, &other, &err), STATUS_OK);
    assert_true(other.bytes == -1 && other.log_bytes == -1 && other.free_bytes > 0);
    assert_string_equal(other.folder, f->place.folder);
    assert_string_equal(absent->place, path + strlen("sqlite:"));
    absent->ops->close(absent);
}

static void test_chain_holds(void **state)
{
    struct store_fixture *f = *state;
    struct files files = files_of(f);
    struct trail_check chain;
    struct error err = { 0 };
    size_t count;
    assert_int_equal(look_verify(files.store, NULL, &chain, &err), STATUS_OK);
    assert_true(chain.at.number < chain.first);
    fill(f);
    assert_int_equal(look_verify(files.store, NULL, &chain, &err), STATUS_OK);
    struct event *events = read_events(f, 0, &count);
    assert_int_equal(chain.first, 1);
    assert_int_equal(chain.at.number, (int64_t)count);
    assert_memory_equal(chain.at.hash, events[count - 1].hash, EVENT_HASH_BYTES);
}

static void test_chain_over_pages_and_after_a_trim(void **state)
{
    struct store_fixture *f = *state;
    struct files files = files_of(f);
    struct trail_check chain;
    struct error err = { 0 };
    char id[16];
    for (int i = 0; i < 1100; i++) {
        snprintf(id, sizeof id, "job-%d", i);
        put(f, id);
        fixture_forget(f);
    }
    assert_int_equal(look_verify(files.store, NULL, &chain, &err), STATUS_OK);
    assert_int_equal(chain.at.number, 1100);
    f->now += DAY_MS;
    struct store_op trim = { .kind = OP_TRIM, .trim = { .before = f->now, .max = 70 } };
    assert_run(f, &trim, STATUS_OK);
    assert_int_equal(trim.trim.ret_deleted, 70);
    assert_int_equal(look_verify(files.store, NULL, &chain, &err), STATUS_OK);
    assert_int_equal(chain.first, 71);
    assert_int_equal(chain.at.number, 1101); /* one tells of the trim */
}

/* What is left after a trim builds on the hash of what went. */
static void test_tampering_after_a_trim_shows(void **state)
{
    static const struct {
        const char *name, *sql, *reported;
    } cases[] = {
        { "the first kept", "UPDATE event SET at = at + 1 WHERE number = 4", "event 4 is not what was written" },
        { "the kept hash", "UPDATE trimmed SET hash = randomblob(32)", "event 4 is not what was written" },
        { "the kept hash is gone", "DELETE FROM trimmed", "event 1 is missing" },
        { "more was trimmed than is said", "DELETE FROM event WHERE number = 4", "event 4 is missing" },
        { "a hash that is none", "UPDATE trimmed SET hash = 'x'", "the newest trimmed event has no hash" },
    };
    struct store_fixture *f = *state;
    struct files files = files_of(f);
    struct trail_check chain;
    struct store_facts copied;
    struct error err = { 0 };
    fill(f);
    f->now += DAY_MS;
    struct store_op trim = { .kind = OP_TRIM, .trim = { .before = f->now, .max = 3 } };
    assert_run(f, &trim, STATUS_OK);
    assert_int_equal(look_verify(files.store, NULL, &chain, &err), STATUS_OK);
    assert_int_equal(chain.first, 4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("%s\n", cases[i].name);
        assert_int_equal(look_backup(files.store, files.copy, &copied, &err), STATUS_OK);
        tamper(files.copy, cases[i].sql);
        assert_int_equal(look_verify(files.copy, NULL, &chain, &err), STATUS_CORRUPT);
        assert_string_equal(err.text, cases[i].reported);
        assert_int_equal(unlink(files.copy), 0);
    }
}

/* Before an upgrade, and after one was taken back: the trail of an older store is verified, a newer one's is not judged. */
static void test_stores_of_other_versions(void **state)
{
    struct store_fixture *f = *state;
    struct files files = files_of(f);
    struct trail_check chain;
    struct store_facts facts, copied;
    struct error err = { 0 };
    static char sql[1 << 20];
    FILE *file = fopen("tests/support/store_v1.sql", "rb");
    assert_non_null(file);
    sql[fread(sql, 1, sizeof sql - 1, file)] = '\0';
    fclose(file);
    tamper(files.copy, sql);
    assert_int_equal(look_facts(files.copy, &facts, &err), STATUS_OK);
    assert_int_equal(facts.schema_version, 1);
    assert_int_equal(look_check(files.copy, &err), STATUS_OK);
    assert_int_equal(look_verify(files.copy, NULL, &chain, &err), STATUS_OK);
    assert_int_equal(chain.at.number, facts.event_last);
    assert_int_equal(look_backup(files.copy, files.third, &copied, &err), STATUS_OK);
    assert_int_equal(look_verify(files.third, NULL, &chain, &err), STATUS_OK);
    tamper(files.copy, "PRAGMA user_version = 99");
    assert_int_equal(look_verify(files.copy, NULL, &chain, &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "use a newer program"));
}

/* On copies, because the fixture looks at its own store in the end. */
static void test_tampering_shows(void **state)
{
    static const struct {
        const char *name, *sql, *reported;
    } cases[] = {
        { "a changed fact", "UPDATE event SET attempt = attempt + 1 WHERE number = 3", "event 3 is not what was written" },
        { "a changed time", "UPDATE event SET at = at - 1 WHERE number = 1", "event 1 is not what was written" },
        { "a missing event", "DELETE FROM event WHERE number = 4", "event 4 is missing" },
        { "a missing beginning", "DELETE FROM event WHERE number = 1", "event 1 is missing" },
        { "a hash made to fit", "UPDATE event SET data = '{}', hash = randomblob(32) WHERE number = 2",
          "event 2 is not what was written" },
    };
    struct store_fixture *f = *state;
    struct files files = files_of(f);
    fill(f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trail_check chain;
        struct store_facts copied;
        struct error err = { 0 };
        print_message("%s\n", cases[i].name);
        assert_int_equal(look_backup(files.store, files.copy, &copied, &err), STATUS_OK);
        tamper(files.copy, cases[i].sql);
        assert_int_equal(look_verify(files.copy, NULL, &chain, &err), STATUS_CORRUPT);
        assert_string_equal(err.text, cases[i].reported);
        assert_int_equal(unlink(files.copy), 0);
    }
}

static void test_backup(void **state)
{
    struct store_fixture *f = *state;
    struct files files = files_of(f);
    struct store_facts before, copied;
    struct trail_check chain;
    struct error err = { 0 };
    char beside[320];
    fill(f);
    assert_int_equal(look_backup(files.store, files.copy, &copied, &err), STATUS_OK);
    put(f, "later");
    snprintf(beside, sizeof beside, "%s-wal", files.copy);
    assert_int_not_equal(access(beside, F_OK), 0);
    assert_int_equal(look_facts(files.store, &before, &err), STATUS_OK);
    assert_int_equal(copied.pending, 2);
    assert_int_equal(before.pending, 3);
    assert_int_equal(look_verify(files.copy, NULL, &chain, &err), STATUS_OK);
    assert_int_equal(chain.at.number, copied.event_last);
    assert_int_equal(look_backup(files.store, files.copy, &before, &err), STATUS_CONFLICT);
    assert_int_equal(look_facts(files.copy, &before, &err), STATUS_OK);
    assert_int_equal(before.event_last, copied.event_last);
}

static void correct(struct store_fixture *f)
{
    struct store_op redrive = job_op(OP_REDRIVE, "t", "a");
    redrive.job.payload_given = true;
    redrive.job.payload = SLICE("corrected");
    assert_run(f, &redrive, STATUS_OK);
}

/* A new job, one that failed, one that was corrected while it waited, and one that was when it was dead. */
enum { LIVES = 4 };

static int64_t live(struct store_fixture *f, int life)
{
    int64_t lane = put(f, "a");
    if (life > 0)
        take_and_settle(f, lane, life == 3 ? EVENT_GIVE_UP : EVENT_RETRY);
    if (life > 1)
        correct(f);
    return lane;
}

/* Whatever was done with a job, a change on disk of what would be sent is seen by the claim, and by no other one. */
static const struct { const char *sql; bool damages; } changes[] = {
    { "UPDATE payload SET body = x'7b7d20'", true },
    { "UPDATE payload SET body = ''", true },
    { "UPDATE payload SET headers = '{\"X\":\"y\"}'", true },
    { "UPDATE payload SET content_type = 'text/html'", true },
    { "UPDATE payload SET metadata = '{}'", false }, /* which is not sent */
    { "UPDATE job SET digest = randomblob(length(digest))", true },
};

static void test_a_changed_payload_shows(void **state)
{
    struct store_fixture *f = *state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        for (int life = 0; life < LIVES; life++) {
            int64_t lane = live(f, life);
            tamper(files_of(f).store, changes[i].sql);
            struct job job = take_and_settle(f, lane, EVENT_GIVE_UP);
            if (job.damaged != changes[i].damages)
                fail_msg("%s in life %d: %d", changes[i].sql, life, job.damaged);
            correct(f); /* as a person does who has the right one */
            assert_false(take_and_settle(f, lane, EVENT_GIVE_UP).damaged);
            struct store_op purge = job_op(OP_PURGE, "t", "a");
            assert_run(f, &purge, STATUS_OK);
        }
}

/* The same of one whose id the store has made, which has another form of digest; a correction mends it. */
static void test_a_changed_payload_of_a_made_id_shows(void **state)
{
    struct store_fixture *f = *state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char id[JOB_ID_MADE_BYTES + 1];
        struct store_op made = insert_op(f, "d", "t", "");
        assert_run(f, &made, STATUS_OK);
        snprintf(id, sizeof id, "%.*s", SLICE_ARG(made.insert.ret_id));
        tamper(files_of(f).store, changes[i].sql);
        struct job job = take_and_settle(f, made.insert.ret_lane, EVENT_GIVE_UP);
        check(job.damaged == changes[i].damages, "%s: %d", changes[i].sql, job.damaged);
        struct store_op redrive = job_op(OP_REDRIVE, "t", id);
        redrive.job.payload_given = true;
        redrive.job.payload = SLICE("corrected");
        assert_run(f, &redrive, STATUS_OK);
        assert_false(take_and_settle(f, made.insert.ret_lane, EVENT_GIVE_UP).damaged);
        struct store_op purge = job_op(OP_PURGE, "t", id);
        assert_run(f, &purge, STATUS_OK);
    }
}

/* A question is asked although the payload is not what it was: the job may have arrived. */
static void test_a_question_needs_no_payload(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job job = take(f, lane);
    struct store_op settle = settle_op(&job, EVENT_RETRY);
    settle.settle.step = STEP_VERIFY;
    settle.settle.run_at = f->now;
    assert_run(f, &settle, STATUS_OK);
    tamper(files_of(f).store, "UPDATE payload SET body = 'another'");
    job = take(f, lane);
    assert_int_equal(job.step, STEP_VERIFY);
    assert_false(job.damaged);
    settle = settle_op(&job, EVENT_RETRY);
    settle.settle.run_at = f->now;
    assert_run(f, &settle, STATUS_OK);
    assert_true(take(f, lane).damaged);
}

/* Older versions left no word of a correction: what they may have corrected is believed. */
static void test_digests_of_older_versions(void **state)
{
    struct store_fixture *f = *state;
    for (int life = 0; life < LIVES; life++) {
        for (int changed = 0; changed <= 1; changed++) {
            int64_t lane = live(f, life);
            tamper(files_of(f).store, "UPDATE job SET digest = substr(digest, 1, 16)");
            if (changed)
                tamper(files_of(f).store, "UPDATE payload SET body = 'another'");
            assert_int_equal(take_and_settle(f, lane, EVENT_GIVE_UP).damaged, changed && life == 0);
            struct store_op purge = job_op(OP_PURGE, "t", "a");
            assert_run(f, &purge, STATUS_OK);
        }
    }
}

static void test_what_is_no_store(void **state)
{
    struct store_fixture *f = *state;
    struct files files = files_of(f);
    struct store_facts facts, copied;
    struct trail_check chain;
    struct error err = { 0 };
    assert_int_equal(look_facts(files.copy, &facts, &err), STATUS_NOT_FOUND);
    assert_int_equal(look_verify(files.copy, NULL, &chain, &err), STATUS_NOT_FOUND);
    assert_int_equal(look_check(files.copy, &err), STATUS_NOT_FOUND);
    assert_int_equal(look_backup(files.copy, files.store, &copied, &err), STATUS_NOT_FOUND);
    tamper(files.copy, "CREATE TABLE other (x)");
    assert_int_equal(look_facts(files.copy, &facts, &err), STATUS_INVALID);
    assert_int_equal(unlink(files.copy), 0);
    FILE *file = fopen(files.copy, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(look_facts(files.copy, &facts, &err), STATUS_INVALID);
    file = fopen(files.copy, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++)
        fputs("this is not a database ", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(look_facts(files.copy, &facts, &err), STATUS_CORRUPT);
}

/* What the database takes, whether it is in the file already or still in the log. */
static int64_t bytes_of(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *query;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", -1, &query, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(query), SQLITE_ROW);
    int64_t bytes = sqlite3_column_int64(query, 0);
    sqlite3_finalize(query);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return bytes;
}

/* Tries it three times. */
static void let_die(struct store_fixture *f, int64_t lane, const char *error)
{
    for (int attempt = 1; attempt <= 3; attempt++) {
        struct job job = take(f, lane);
        struct store_op op = settle_op(&job, attempt < 3 ? EVENT_RETRY : EVENT_GIVE_UP);
        op.settle.error = slice_from(error);
        op.settle.failed_at = f->now;
        assert_run(f, &op, STATUS_OK);
        assert_int_equal(promote(f).ret_expired, 0);
    }
}

/* S2-117: the document's own letter, an e-mail of a kilobyte whose three attempts failed, with all that is known of it. */
static void test_a_dead_letter_takes_three_kilobytes(void **state)
{
    enum { LETTERS = 300, BYTES_MAX = 3 * 1024, PAYLOAD_BYTES = 1000 };
    struct store_fixture *f = *state;
    struct files files = files_of(f);
    static char payload[PAYLOAD_BYTES];
    char id[32];
    memset(payload, 'x', sizeof payload);
    int64_t before = bytes_of(files.store);
    for (int i = 0; i < LETTERS; i++) {
        snprintf(id, sizeof id, "mail-2025-01-%06d", i);
        struct store_op op = insert_op(f, "email:send", "company-0001", id);
        op.insert.payload = (struct slice){ payload, sizeof payload };
        op.insert.metadata = SLICE("{\"from\":\"billing@example.org\",\"to\":\"customer@example.org\"}");
        op.insert.correlation_id = SLICE("3b0c6b52-6a1f-4c52-9f0e-0f5a1f3d9f11");
        assert_run(f, &op, STATUS_OK);
        let_die(f, op.insert.ret_lane, "450 4.2.1 The user you are trying to contact is receiving mail too quickly");
        fixture_forget(f);
    }
    int64_t each = (bytes_of(files.store) - before) / LETTERS;
    print_message("# a dead letter takes %lld bytes\n", (long long)each);
    assert_in_range(each, PAYLOAD_BYTES, BYTES_MAX);
}

int main(void)
{
    static struct store_under_test sqlite;
    for (size_t i = 0; i < stores_under_test_count; i++)
        if (strcmp(stores_under_test[i].name, "sqlite") == 0)
            sqlite = stores_under_test[i];
#define TEST(name)                                                                                                          \
    {                                                                                                                       \
#name, name, fixture_setup, fixture_teardown, &sqlite                                                               \
    }
    const struct CMUnitTest tests[] = {
        TEST(test_facts_beside_the_writer), TEST(test_space), TEST(test_chain_holds), TEST(test_chain_over_pages_and_after_a_trim),
        TEST(test_tampering_after_a_trim_shows), TEST(test_stores_of_other_versions),
        TEST(test_tampering_shows),         TEST(test_backup),      TEST(test_what_is_no_store),
        TEST(test_a_changed_payload_shows), TEST(test_a_question_needs_no_payload), TEST(test_digests_of_older_versions),
        TEST(test_a_dead_letter_takes_three_kilobytes),
        TEST(test_a_changed_payload_of_a_made_id_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
