/* What only the SQLite store promises: files, locks, crashes, migrations, backups. The rest is in test_store_contract.c. */
#include "store/inspect.h"
#include "store/sqlite/schema.h"
#include "support/folder.h"
#include "support/store_recount.h"
#include "support/store_script.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATH_BYTES = 256, NOW_S = 1760000000 };

static const instant start = (instant)NOW_S * 1000;

struct fixture {
    char folder[FOLDER_BYTES], path[PATH_BYTES];
    struct store *store;
    struct arena memory;
};

/* ---- Helpers ---- */

static enum status open_at(const char *path, const struct store_settings *settings, struct store **ret_store,
                           struct error *err)
{
    static const struct store_settings usual = { .sync_always = true };
    return store_sqlite_open(slice_from(path), settings ? settings : &usual, ret_store, err);
}

static void reopen(struct fixture *f)
{
    struct error err = { STATUS_OK, "" };
    if (f->store)
        f->store->ops->close(f->store);
    f->store = NULL;
    if (open_at(f->path, NULL, &f->store, &err) != STATUS_OK)
        fail_msg("cannot open: %s", err.text);
}

static void apply_at(struct fixture *f, instant now, struct store_op *ops, size_t count)
{
    struct error err = { STATUS_OK, "" };
    if (f->store->ops->apply(f->store, now, ops, count, &f->memory, &err) != STATUS_OK)
        fail_msg("cannot apply: %s", err.text);
}

static struct store_op insert_of(const char *id)
{
    return (struct store_op){ .kind = OP_INSERT,
                              .insert = { .destination = SLICE("d"),
                                          .tenant = SLICE("t"),
                                          .id = slice_from(id),
                                          .priority = PRIORITY_NORMAL,
                                          .run_at = start,
                                          .deadline = INSTANT_NONE,
                                          .payload = SLICE("{}") } };
}

static struct op_insert insert(struct fixture *f, const char *id)
{
    struct store_op op = insert_of(id);
    apply_at(f, start, &op, 1);
    assert_int_equal(op.status, STATUS_OK);
    return op.insert;
}

static struct job claim(struct fixture *f, int64_t lane)
{
    struct store_op op = { .kind = OP_CLAIM,
                           .claim = { .lane = lane, .max = 1, .lease_until = start + 1000, .owner = SLICE("w") } };
    apply_at(f, start, &op, 1);
    assert_int_equal(op.claim.ret_count, 1);
    return op.claim.ret_jobs[0];
}

static void give_up(struct fixture *f, const struct job *job)
{
    struct store_op op = { .kind = OP_SETTLE,
                           .settle = { .seq = job->seq,
                                       .token = job->lease_token,
                                       .event = EVENT_GIVE_UP,
                                       .outcome = OUTCOME_PERMANENT,
                                       .error = SLICE("no"),
                                       .dead_code = SLICE("PERMANENT_ERROR") } };
    apply_at(f, start, &op, 1);
    assert_int_equal(op.status, STATUS_OK);
}

static void purge(struct fixture *f, const char *id)
{
    struct store_op op = { .kind = OP_PURGE, .job = { .tenant = SLICE("t"), .id = slice_from(id) } };
    apply_at(f, start, &op, 1);
    assert_int_equal(op.status, STATUS_OK);
}

static void assert_sound(const char *path)
{
    char text[RECOUNT_TEXT_BYTES];
    if (!recount_holds(path, text))
        fail_msg("%s: %s", path, text);
}

static void script_run(struct store *store, int from, int to)
{
    struct script script = { { 0 } };
    struct error err = { STATUS_OK, "" };
    assert_int_equal(script_learn(&script, store, &err), STATUS_OK);
    for (int i = from; i < to; i++)
        if (script_apply(&script, store, i, &err) != STATUS_OK)
            fail_msg("batch %d: %s", i, err.text);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    if (folder_make(f->folder) != 0)
        return -1;
    snprintf(f->path, sizeof f->path, "%s/data/store.db", f->folder);
    f->memory = (struct arena){ 0 };
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->store)
        f->store->ops->close(f->store);
    arena_release(&f->memory);
    int result = folder_remove(f->folder);
    free(f);
    return result;
}

/* ---- Files ---- */

static int mode_of(const char *path)
{
    struct stat stat_of;
    return stat(path, &stat_of) == 0 ? (int)(stat_of.st_mode & 0777) : -1;
}

static void test_files_are_private(void **state)
{
    struct fixture *f = *state;
    char path[PATH_BYTES + 16];
    reopen(f);
    insert(f, "a");
    snprintf(path, sizeof path, "%s/data", f->folder);
    assert_int_equal(mode_of(path), 0700);
    assert_int_equal(mode_of(f->path), 0600);
    snprintf(path, sizeof path, "%s-wal", f->path);
    assert_int_equal(mode_of(path), 0600);
    f->store->ops->close(f->store);
    f->store = NULL;
    assert_int_equal(mode_of(path), -1); /* written back and gone */
}

static void test_second_open_is_busy(void **state)
{
    struct fixture *f = *state;
    struct store *second = NULL;
    struct error err = { STATUS_OK, "" };
    char pid[32];
    reopen(f);
    assert_int_equal(open_at(f->path, NULL, &second, &err), STATUS_BUSY);
    snprintf(pid, sizeof pid, "process %d", (int)getpid());
    assert_non_null(strstr(err.text, pid));
    insert(f, "a"); /* the first is not disturbed */
    reopen(f);
}

static void test_strange_paths(void **state)
{
    static const struct {
        const char *path;
        enum status expected;
    } cases[] = {
        { "", STATUS_INVALID },
        { "file:x?mode=memory", STATUS_OK }, /* a name like any other */
        { "/proc/no/such.db", STATUS_IO },
    };
    struct fixture *f = *state;
    assert_int_equal(chdir(f->folder), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error err = { STATUS_OK, "" };
        struct store *store = NULL;
        assert_int_equal(open_at(cases[i].path, NULL, &store, &err), cases[i].expected);
        if (store)
            store->ops->close(store);
    }
    assert_int_equal(mode_of("file:x?mode=memory"), 0600);
    assert_int_equal(chdir("/"), 0);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void sql_run(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void test_foreign_files_are_refused(void **state)
{
    static const struct {
        const char *name, *sql;
        enum status expected;
        const char *text;
    } cases[] = {
        { "no database", NULL, STATUS_CORRUPT, "no SQLite database" },
        { "of another program", "CREATE TABLE other (x)", STATUS_INVALID, "another program" },
        { "newer", "PRAGMA application_id = 1768846196; PRAGMA user_version = 999; CREATE TABLE job (x)", STATUS_UNSUPPORTED,
          "999" },
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[PATH_BYTES];
        struct error err = { STATUS_OK, "" };
        struct store *store = NULL;
        snprintf(path, sizeof path, "%s/foreign%zu.db", f->folder, i);
        if (cases[i].sql)
            sql_run(path, cases[i].sql);
        else
            write_file(path, "this is a text of somebody else, long enough to be taken for a header of a hundred bytes, "
                             "and then some more of it");
        assert_int_equal(open_at(path, NULL, &store, &err), cases[i].expected);
        if (!strstr(err.text, cases[i].text))
            fail_msg("%s: %s", cases[i].name, err.text);
    }
}

/* ---- Over restarts ---- */

static void test_numbers_are_not_used_again(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    uint64_t seed = f->store->seed;
    assert_true(seed != 0);
    struct op_insert first = insert(f, "a");
    struct job job = claim(f, first.ret_lane);
    give_up(f, &job);
    purge(f, "a"); /* the newest job is gone, its number is not */
    reopen(f);
    assert_true(f->store->seed == seed);
    struct op_insert second = insert(f, "");
    assert_true(second.ret_seq > first.ret_seq);
    struct job later = claim(f, second.ret_lane);
    assert_true(later.lease_token > job.lease_token);
    reopen(f);
    assert_sound(f->path);
}

/* A tenant's part of the queue is that of all its lanes, also of those that an earlier process made. */
static void test_a_tenants_part_is_counted_again(void **state)
{
    static const struct store_settings settings = { .sync_always = true, .pending_max = 8 };
    struct fixture *f = *state;
    struct error err = { STATUS_OK, "" };
    reopen(f);
    for (char id[] = "a"; id[0] < 'g'; id[0]++) {
        struct store_op op = insert_of(id);
        op.insert.destination = id[0] % 2 ? SLICE("d") : SLICE("e");
        op.insert.tenant = id[0] < 'e' ? SLICE("t") : SLICE("u");
        apply_at(f, start, &op, 1);
        assert_int_equal(op.status, STATUS_OK);
    }
    f->store->ops->close(f->store);
    f->store = NULL;
    assert_int_equal(open_at(f->path, &settings, &f->store, &err), STATUS_OK);
    struct store_op over = insert_of("x"), other = insert_of("y");
    other.insert.tenant = SLICE("u");
    apply_at(f, start, &over, 1);
    assert_int_equal(over.status, STATUS_FULL);
    assert_true(over.insert.ret_tenant_full);
    apply_at(f, start, &other, 1);
    assert_int_equal(other.status, STATUS_OK);
}

static void test_chain_goes_on_after_trim(void **state)
{
    struct fixture *f = *state;
    struct store_op trim = { .kind = OP_TRIM, .trim = { .before = INSTANT_MAX, .max = 100 } };
    reopen(f);
    insert(f, "a");
    insert(f, "b");
    apply_at(f, start, &trim, 1);
    assert_int_equal(trim.trim.ret_deleted, 2);
    reopen(f); /* what is left is the event that tells of it */
    insert(f, "c");
    struct sqlite_store *store = (struct sqlite_store *)f->store;
    assert_int_equal(store->progress.event_last, 4);
    assert_sound(f->path);
}

/* Free pages go back to the file system when it is quiet, and not while much is written. */
static void test_file_shrinks(void **state)
{
    enum { JOBS = 1200, PAYLOAD = 20000 };
    struct fixture *f = *state;
    struct error err;
    struct stat full, busy, quiet;
    static char payload[PAYLOAD];
    reopen(f);
    for (int i = 0; i < JOBS; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        struct store_op op = insert_of(id);
        op.insert.deadline = start + 1;
        op.insert.payload = (struct slice){ payload, PAYLOAD };
        apply_at(f, start, &op, 1);
    }
    struct store_op expire = { .kind = OP_PROMOTE, .promote = { .max = JOBS, .dead_ttl_ms = 1 } }, letters_go = expire;
    reopen(f);
    assert_int_equal(stat(f->path, &full), 0);
    apply_at(f, start + 1, &expire, 1);
    apply_at(f, start + 2, &letters_go, 1);
    assert_int_equal(letters_go.promote.ret_dead_deleted, JOBS);
    assert_int_equal(f->store->ops->tend(f->store, start + 1000, &err), STATUS_OK); /* much was written since the last */
    assert_int_equal(stat(f->path, &busy), 0);
    assert_true(busy.st_size >= full.st_size);
    quiet = full; /* a slow machine moves few pages in a look */
    for (int i = 0; i < 500 && (i < 10 || quiet.st_size > full.st_size / 2); i++) {
        char id[16];
        snprintf(id, sizeof id, "again%d", i);
        assert_int_equal(f->store->ops->tend(f->store, start + 2000 + i * 1000, &err), STATUS_OK);
        assert_true(f->store->tend_soon == (i == 0)); /* then nothing was written, and it goes on at once */
        insert(f, id);                                /* a little is written all the time */
        assert_int_equal(stat(f->path, &quiet), 0);
    }
    if (quiet.st_size > full.st_size / 2)
        fail_msg("%lld bytes of %lld", (long long)quiet.st_size, (long long)full.st_size);
    assert_sound(f->path);
}

/* What the writer tells of all destinations, as text. */
static void totals_text(struct fixture *f, char ret_text[4096])
{
    struct store_reader *reader;
    struct destination_total *totals;
    struct error err;
    size_t count, used = 0;
    assert_int_equal(f->store->ops->reader(f->store, &reader, &err), STATUS_OK);
    assert_int_equal(reader->ops->reader_totals(reader, 3, &f->memory, &totals, &count, &err), STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        const struct lane_counts *c = &totals[i].counts;
        used += (size_t)snprintf(ret_text + used, 4096 - used, "%.*s %lld: %lld %lld %lld %lld %lld %lld %lld;",
                                 SLICE_ARG(totals[i].destination), (long long)totals[i].tenants, (long long)c->pending,
                                 (long long)c->running, (long long)c->waiting, (long long)c->completed, (long long)c->dead,
                                 (long long)c->cancelled, (long long)c->ready);
        for (size_t k = 0; k < totals[i].largest_count; k++)
            used += (size_t)snprintf(ret_text + used, 4096 - used, " %.*s", SLICE_ARG(totals[i].largest[k].tenant));
        assert_true(used < 4000);
    }
    reader->ops->reader_close(reader);
}

static void test_script_equals_after_each_reopen(void **state)
{
    struct fixture *f = *state;
    unsigned char before[RECOUNT_DIGEST_BYTES], after[RECOUNT_DIGEST_BYTES];
    for (int i = 0; i < SCRIPT_BATCHES; i++) {
        reopen(f);
        script_run(f->store, i, i + 1);
        assert_true(recount_digest(f->path, before));
        char reported[4096] = "", told_again[4096] = "";
        totals_text(f, reported);
        reopen(f);
        totals_text(f, told_again);
        assert_string_equal(reported, told_again);
        assert_true(recount_digest(f->path, after));
        assert_memory_equal(before, after, sizeof before);
        assert_sound(f->path);
    }
}

/* ---- Killed ---- */

/* Inserts for ever and tells each acknowledged batch by a byte; ends only by being killed. */
static _Noreturn void child_insert(const char *path, int fd)
{
    struct store *store;
    struct store_op ops[16];
    if (open_at(path, NULL, &store, NULL) != STATUS_OK)
        _exit(1);
    for (;;) {
        struct arena memory = { 0 };
        for (size_t i = 0; i < 16; i++)
            ops[i] = insert_of("");
        if (store->ops->apply(store, start, ops, 16, &memory, NULL) != STATUS_OK || write(fd, "x", 1) != 1)
            _exit(1);
        arena_release(&memory);
    }
}

static int64_t jobs_in(struct fixture *f)
{
    int64_t count = 0;
    assert_int_equal(sqlite_query_int64(((struct sqlite_store *)f->store)->db, "SELECT count(*) FROM job", 0, &count, NULL),
                     STATUS_OK);
    return count;
}

/* S4-037 */
static void test_killed_process_loses_nothing(void **state)
{
    struct fixture *f = *state;
    int64_t acknowledged = 0;
    for (int round = 1; round <= 5; round++) {
        int ends[2];
        char byte;
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            child_insert(f->path, ends[1]);
        close(ends[1]);
        for (int i = 0; i < 7 * round; i++)
            assert_int_equal(read(ends[0], &byte, 1), 1);
        assert_int_equal(kill(child, SIGKILL), 0);
        acknowledged += 16 * 7 * round;
        while (read(ends[0], &byte, 1) == 1)
            acknowledged += 16;
        close(ends[0]);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));

        reopen(f);
        int64_t there = jobs_in(f);
        assert_true(there == acknowledged || there == acknowledged + 16); /* the last may have been durable and untold */
        acknowledged = there;
        f->store->ops->close(f->store);
        f->store = NULL;
        assert_sound(f->path);
    }
}

/* ---- Migrations ---- */

static size_t left_of_earlier_runs(struct fixture *f, struct job **ret_jobs)
{
    struct store_op op = { .kind = OP_ORPHANS, .orphans = { .until = start, .of_ended = true, .after_until = INSTANT_NONE, .max = 10 } };
    apply_at(f, start, &op, 1);
    *ret_jobs = op.orphans.ret_jobs;
    return op.orphans.ret_count;
}

/* What a run of the daemon claimed for itself is left when the store is opened anew; what a worker has is not. */
static void test_leases_of_earlier_runs(void **state)
{
    struct fixture *f = *state;
    struct job *jobs;
    reopen(f);
    int64_t first = f->store->session, lane = insert(f, "worker's").ret_lane;
    claim(f, lane);
    insert(f, "ours");
    struct store_op op = { .kind = OP_CLAIM, .claim = { .lane = lane, .max = 1, .lease_until = start + 1000 } };
    apply_at(f, start, &op, 1);
    assert_int_equal(op.claim.ret_count, 1);
    assert_int_equal(left_of_earlier_runs(f, &jobs), 0);
    reopen(f);
    assert_true(f->store->session > first);
    assert_int_equal(left_of_earlier_runs(f, &jobs), 1);
    assert_true(slice_equal(jobs[0].id, SLICE("ours")));
    insert(f, "later");
    apply_at(f, start, &op, 1);
    assert_int_equal(left_of_earlier_runs(f, &jobs), 1);
    reopen(f);
    assert_int_equal(left_of_earlier_runs(f, &jobs), 2);
}

static int64_t rows_of(struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    int64_t value = -1;
    struct error err;
    assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite_query_int64(db, sql, -1, &value, &err), STATUS_OK);
    sqlite3_close(db);
    return value;
}

static struct lane_counts total_of(struct fixture *f, int64_t *ret_tenants)
{
    struct store_reader *reader;
    struct destination_total *totals;
    struct error err;
    size_t count;
    assert_int_equal(f->store->ops->reader(f->store, &reader, &err), STATUS_OK);
    assert_int_equal(f->store->ops->reader_totals(reader, 1, &f->memory, &totals, &count, &err), STATUS_OK);
    f->store->ops->reader_close(reader);
    assert_int_equal(count, 1);
    *ret_tenants = totals[0].tenants;
    return totals[0].counts;
}

static struct op_insert insert_for(struct fixture *f, const char *tenant)
{
    struct store_op op = insert_of("job");
    op.insert.tenant = slice_from(tenant);
    apply_at(f, start, &op, 1);
    assert_int_equal(op.status, STATUS_OK);
    return op.insert;
}

/* Its row stays as long as an event refers to it; then that goes, too, and its number never comes again. */
static void test_lanes_go_with_their_events(void **state)
{
    enum { TENANTS = 30 };
    struct fixture *f = *state;
    int64_t lanes[TENANTS], tenants;
    char tenant[16];
    reopen(f);
    for (int i = 0; i < TENANTS; i++) {
        snprintf(tenant, sizeof tenant, "t%d", i);
        lanes[i] = insert_for(f, tenant).ret_lane;
        struct job job = claim(f, lanes[i]);
        struct store_op settle = { .kind = OP_SETTLE, .settle = { .seq = job.seq, .token = job.lease_token, .event = EVENT_DELIVER,
                                                                  .outcome = OUTCOME_DELIVERED, .forget_at = start + 1 } };
        apply_at(f, start, &settle, 1);
    }
    struct store_op promote = { .kind = OP_PROMOTE, .promote = { .max = 100 } };
    apply_at(f, start + 1, &promote, 1);
    assert_int_equal(promote.promote.ret_forgotten, TENANTS);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM lane WHERE event = 0"), 0);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM lane"), TENANTS);
    assert_sound(f->path);
    reopen(f); /* what they did is still counted, and who comes back is the same as before */
    assert_int_equal(total_of(f, &tenants).completed, TENANTS);
    assert_int_equal(tenants, 0);
    assert_int_equal(insert_for(f, "t4").ret_lane, lanes[4]);
    assert_int_equal(total_of(f, &tenants).completed, TENANTS);
    assert_int_equal(tenants, 1);

    for (int i = 0; i < 2; i++) { /* a slice at a time */
        struct store_op trim = { .kind = OP_TRIM, .trim = { .before = INSTANT_MAX, .max = 1000 } };
        apply_at(f, start + 2, &trim, 1);
        assert_sound(f->path);
    }
    assert_int_equal(rows_of(f, "SELECT count(*) FROM lane"), 2); /* the one that has a job, and the newest number */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(total_of(f, &tenants).completed, TENANTS);
        reopen(f);
    }
    assert_true(insert_for(f, "t5").ret_lane > lanes[TENANTS - 1]);
    assert_int_equal(total_of(f, &tenants).completed, TENANTS);
    assert_int_equal(tenants, 2);
    assert_sound(f->path);
}

static void test_migrations(void **state)
{
    static const char *const steps[] = {
        "CREATE TABLE one (x); INSERT INTO one VALUES (1)",
        "ALTER TABLE one ADD COLUMN y DEFAULT 7; UPDATE one SET x = x + 1",
        "CREATE TABLE three (x); INSERT INTO nowhere VALUES (1)", /* fails half way */
    };
    struct fixture *f = *state;
    struct error err = { STATUS_OK, "" };
    char path[PATH_BYTES];
    sqlite3 *db = NULL;
    int64_t value = 0;
    snprintf(path, sizeof path, "%s/steps.db", f->folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite_schema_migrate_by(db, steps, 1, &err), STATUS_OK);
    assert_int_equal(sqlite_query_int64(db, "PRAGMA user_version", 0, &value, &err), STATUS_OK);
    assert_int_equal(value, 1);
    assert_int_equal(sqlite_schema_migrate_by(db, steps, 2, &err), STATUS_OK);
    assert_int_equal(sqlite_schema_migrate_by(db, steps, 2, &err), STATUS_OK); /* nothing to do */
    assert_int_equal(sqlite_query_int64(db, "SELECT 10 * x + y FROM one", 0, &value, &err), STATUS_OK);
    assert_int_equal(value, 27);
    assert_int_not_equal(sqlite_schema_migrate_by(db, steps, 3, &err), STATUS_OK);
    assert_int_equal(sqlite_query_int64(db, "PRAGMA user_version", 0, &value, &err), STATUS_OK);
    assert_int_equal(value, 2);
    assert_int_equal(sqlite_query_int64(db, "SELECT count(*) FROM sqlite_master WHERE name = 'three'", 0, &value, &err),
                     STATUS_OK);
    assert_int_equal(value, 0);
    assert_int_equal(sqlite_schema_migrate_by(db, steps, 1, &err), STATUS_UNSUPPORTED); /* an older program */
    sqlite3_close(db);
}

static int migrated_from, migrated_to;

static void note_migration(int from, int to)
{
    migrated_from = from;
    migrated_to = to;
}

/* A store as version 1 wrote it, in the middle of the script: it must open with every later version and go on. */
static void test_version_1_opens(void **state)
{
    struct fixture *f = *state;
    char path[PATH_BYTES];
    FILE *file = fopen("tests/support/store_v1.sql", "rb");
    assert_non_null(file);
    static char sql[1 << 20];
    size_t len = fread(sql, 1, sizeof sql - 1, file);
    fclose(file);
    assert_true(len > 1000 && len < sizeof sql - 1);
    sql[len] = '\0';
    snprintf(path, sizeof path, "%s/v1.db", f->folder);
    sql_run(path, sql);
    struct store *store = NULL;
    struct error err;
    const struct store_settings settings = { .sync_always = true, .on_migrate = note_migration };
    migrated_from = migrated_to = 0;
    assert_int_equal(store_sqlite_open(slice_from(path), &settings, &store, &err), STATUS_OK);
    store->ops->close(store);
    assert_int_equal(migrated_from, 1);
    assert_int_equal(migrated_to, store_sqlite_schema_version());
    migrated_from = migrated_to = 0;
    assert_int_equal(store_sqlite_open(slice_from(path), &settings, &store, &err), STATUS_OK);
    store->ops->close(store);
    assert_int_equal(migrated_from, 0); /* nothing is said of a store that is up to date */
    snprintf(f->path, sizeof f->path, "%s", path);
    reopen(f);
    assert_sound(f->path);
    struct job *jobs;
    assert_int_equal(left_of_earlier_runs(f, &jobs), 1);
    script_run(f->store, 7, SCRIPT_BATCHES);
    assert_sound(f->path);
}

/* ---- Backups ---- */

static void test_backup(void **state)
{
    struct fixture *f = *state;
    struct error err = { STATUS_OK, "" };
    char path[PATH_BYTES];
    unsigned char mine[RECOUNT_DIGEST_BYTES], copied[RECOUNT_DIGEST_BYTES];
    struct store_facts facts;
    reopen(f);
    script_run(f->store, 0, 9);
    snprintf(path, sizeof path, "%s/copy.db", f->folder);
    assert_int_equal(store_backup(f->store, path, &facts, &err), STATUS_OK);
    assert_int_equal(mode_of(path), 0600);
    assert_true(recount_digest(f->path, mine));
    assert_int_equal(store_backup(f->store, path, &facts, &err), STATUS_CONFLICT); /* never over another */
    script_run(f->store, 9, 10);

    struct store *copy = NULL;
    assert_int_equal(open_at(path, NULL, &copy, &err), STATUS_OK); /* beside the original */
    assert_true(recount_digest(path, copied));
    assert_memory_equal(mine, copied, sizeof mine);
    assert_sound(path);
    assert_true(copy->seed == f->store->seed);
    script_run(copy, 9, SCRIPT_BATCHES);
    copy->ops->close(copy);
    assert_int_equal(store_backup(f->store, "/proc/nowhere/copy.db", &facts, &err), STATUS_IO);
}

/* ---- Many ---- */

/* A page looks at 500 rows, whatever it finds, and the next goes on just behind: each job is told once. */
static void test_pages_are_bounded(void **state)
{
    enum { JOBS = 2000, BATCH = 1000, ROWS = 500 };
    struct fixture *f = *state;
    struct error err = { STATUS_OK, "" };
    struct store_op *ops = calloc(BATCH, sizeof *ops);
    assert_non_null(ops);
    reopen(f);
    insert(f, "oldest");
    for (int done = 0; done < JOBS; done += BATCH) {
        for (int i = 0; i < BATCH; i++) {
            ops[i] = insert_of("");
            ops[i].insert.tenant = (done + i) % 3 == 0 ? SLICE("third") : SLICE("other"); /* one falls on each end of a page */
        }
        apply_at(f, start, ops, BATCH);
    }
    free(ops);

    static const struct { const char *tenant; size_t found; } rows[] = { { "t", 1 }, { "third", (JOBS + 2) / 3 } };
    struct store_reader *reader = NULL;
    assert_int_equal(f->store->ops->reader(f->store, &reader, &err), STATUS_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job_filter filter = { .tenant = slice_from(rows[i].tenant) };
        struct job *jobs;
        size_t count, pages = 0, found = 0;
        do {
            assert_int_equal(
                reader->ops->reader_jobs(reader, &filter, 1000, false, &f->memory, &jobs, &count, &filter.before_seq, &err),
                STATUS_OK);
            pages++;
            found += count;
        } while (filter.before_seq > 0);
        assert_int_equal(found, rows[i].found);
        assert_int_equal(pages, JOBS / ROWS + 1);
    }
    reader->ops->reader_close(reader);
}

static void test_many_lanes(void **state)
{
    enum { BATCH = 1000 };
    struct fixture *f = *state;
    int lanes = getenv("INSIST_LONG") ? 100000 : 5000;
    static struct store_op ops[BATCH];
    static char names[BATCH][16];
    reopen(f);
    for (int done = 0; done < lanes; done += BATCH) {
        for (int i = 0; i < BATCH; i++) {
            snprintf(names[i], sizeof names[i], "t%d", done + i);
            ops[i] = insert_of("same id for all");
            ops[i].insert.tenant = slice_from(names[i]);
        }
        apply_at(f, start, ops, BATCH);
    }
    reopen(f);
    ops[0] = insert_of("another");
    ops[0].insert.tenant = SLICE("t17");
    apply_at(f, start, ops, 1);
    assert_int_equal(ops[0].insert.ret_lane, 18);
    ops[0] = insert_of("same id for all");
    ops[0].insert.tenant = SLICE("t17");
    apply_at(f, start, ops, 1);
    assert_true(ops[0].insert.ret_existed);
}

static void test_refused_after_corruption(void **state)
{
    struct fixture *f = *state;
    struct error err = { STATUS_OK, "" };
    reopen(f);
    struct op_insert one = insert(f, "a");
    sql_run(f->path, "DELETE FROM ready"); /* the lane counts one that is not there */
    struct store_op op = { .kind = OP_CLAIM, .claim = { .lane = one.ret_lane, .max = 1, .lease_until = start } };
    assert_int_equal(f->store->ops->apply(f->store, start, &op, 1, &f->memory, &err), STATUS_CORRUPT);
    struct store_op note = { .kind = OP_NOTE };
    assert_int_equal(f->store->ops->apply(f->store, start, &note, 1, &f->memory, &err), STATUS_CORRUPT);
    assert_int_equal(f->store->ops->sync(f->store, &err), STATUS_CORRUPT);
}

/* What went into a file without a name would be gone with the process. */
static void test_refused_after_its_file_is_gone(void **state)
{
    struct fixture *f = *state;
    struct error err = { STATUS_OK, "" };
    struct store_op op = insert_of("b");
    reopen(f);
    insert(f, "a");
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(f->store->ops->apply(f->store, start, &op, 1, &f->memory, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "deleted"));
    assert_int_equal(f->store->ops->apply(f->store, start, &op, 1, &f->memory, &err), STATUS_IO);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_files_are_private),
        TEST(test_second_open_is_busy),
        TEST(test_foreign_files_are_refused),
        TEST(test_numbers_are_not_used_again),
        TEST(test_a_tenants_part_is_counted_again),
        TEST(test_chain_goes_on_after_trim),
        TEST(test_file_shrinks),
        TEST(test_script_equals_after_each_reopen),
        TEST(test_killed_process_loses_nothing),
        TEST(test_migrations),
        TEST(test_version_1_opens),
        TEST(test_lanes_go_with_their_events),
        TEST(test_leases_of_earlier_runs),
        TEST(test_backup),
        TEST(test_pages_are_bounded),
        TEST(test_many_lanes),
        TEST(test_refused_after_corruption),
        TEST(test_refused_after_its_file_is_gone),
        TEST(test_strange_paths), /* last: it moves to another folder */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
