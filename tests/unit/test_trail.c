/*
 * The trail when somebody changes it: with a head that was noted, every change of the events shows; without one, what can
 * show does; under a key nothing that was made without it holds.
 *
 *   INSIST_TRAIL_CHANGES=10000 build/tests/test_trail     as many random changes, from seed INSIST_TRAIL_SEED
 */
#include "store/sqlite/sqlite.h"
#include "support/store_look.h"
#include "support/check.h"
#include "support/folder.h"

#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOW_S = 1760000000, EVENTS = 60, CHANGES = 400, KINDS = 9 };

static const instant start = (instant)NOW_S * 1000;

static const char *path_of(const char *name)
{
    static char paths[4][PATH_MAX];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", test_folder, name);
    return path;
}

static struct store *open_store(const char *path, const char *key)
{
    struct store_settings settings = { .sync_always = false, .audit_key = slice_from(key) };
    struct error err = { STATUS_OK, "" };
    struct store *store = NULL;
    if (store_sqlite_open(slice_from(path), &settings, &store, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return store;
}

static void apply(struct store *store, instant now, struct store_op op)
{
    struct arena memory = { 0 };
    struct error err = { STATUS_OK, "" };
    if (store->ops->apply(store, now, &op, 1, &memory, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    arena_release(&memory);
}

/* Jobs of three tenants, and notes; some events with data. */
static void fill(struct store *store, int events)
{
    static int jobs;
    for (int end = jobs + events; jobs < end; jobs++) {
        int i = jobs;
        char id[16], data[64], tenant[8];
        snprintf(id, sizeof id, "job-%d", i);
        snprintf(data, sizeof data, "{\"by\":\"person %d\"}", i);
        snprintf(tenant, sizeof tenant, "t%d", i % 3);
        struct store_op op = { .kind = OP_INSERT, .data = i % 4 ? slice_from(data) : SLICE(""),
                               .insert = { .destination = SLICE("d"), .tenant = slice_from(tenant), .id = slice_from(id),
                                           .run_at = start, .deadline = INSTANT_NONE, .payload = SLICE("{}") } };
        if (i % 5 == 4)
            op = (struct store_op){ .kind = OP_NOTE, .data = slice_from(data) };
        apply(store, start, op);
    }
}

static void trim(struct store *store, int events)
{
    apply(store, start + EVENTS, (struct store_op){ .kind = OP_TRIM, .trim = { .before = INSTANT_MAX, .max = (size_t)events } });
}

static void copy_file(const char *from, const char *to)
{
    static const char *const beside[] = { "-wal", "-shm", ".lock" };
    static char bytes[1 << 20];
    char name[PATH_MAX + 8];
    for (size_t i = 0; i < COUNT_OF(beside); i++) {
        snprintf(name, sizeof name, "%s%s", to, beside[i]);
        unlink(name);
    }
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    size_t got = fread(bytes, 1, sizeof bytes, in);
    assert_true(got > 0 && got < sizeof bytes);
    assert_int_equal(fwrite(bytes, 1, got, out), got);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

static void sql_run(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *said = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &said) != SQLITE_OK)
        fail_msg("%s: %s", sql, said);
    sqlite3_close(db);
}

static enum status verify(const char *path, const char *key, const struct trail_head *expected, size_t count,
                          struct trail_check *ret_check, struct error *err)
{
    struct trail_key made;
    struct trail_reading reading = { .key = *key ? &made : NULL, .expected = expected, .expected_count = count };
    trail_key_init(&made, slice_from(key));
    return look_verify(path, &reading, ret_check, err);
}

static struct trail_head head_of(const char *path, const char *key)
{
    struct trail_check check;
    struct error err = { STATUS_OK, "" };
    if (verify(path, key, NULL, 0, &check, &err) != STATUS_OK)
        fail_msg("%s: %s", path, err.text);
    return check.at;
}

/* ---- random changes ---- */

static uint64_t dice_state;

static int dice(int sides)
{
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice_state >> 33) % (uint64_t)sides);
}

/* One change of the events, as SQL; the events are `first` to `last`. */
static void change_draw(int64_t first, int64_t last, char ret_sql[512])
{
    static const char *const columns[] = { "at = at + 1", "at = 0", "lane = 1 + lane % 3", "lane = NULL", "job = job || 'x'",
                                           "job = 'other'", "type = 1 + (type + 3) % 14", "state = (state + 1) % 6",
                                           "attempt = attempt + 1", "previous = previous + 1", "destination = 'elsewhere'",
                                           "data = '{\"by\":\"nobody\"}'", "data = data || ' '", "hash = randomblob(32)",
                                           "hash = x'00'", "form = (form + 1) % 3", "form = 7", "salt = randomblob(16)",
                                           "salt = x'01'", "digest = randomblob(32)", "data = '', salt = NULL, digest = randomblob(32)" };
    int count = (int)(last - first + 1);
    int64_t one = first + dice(count), other = first + dice(count);
    if (other == one)
        other = one == last ? first : one + 1;
    switch (dice(KINDS)) {
    case 0:
    case 1:
    case 2:
        snprintf(ret_sql, 512, "UPDATE event SET %s WHERE number = %" PRId64, columns[dice((int)COUNT_OF(columns))], one);
        break;
    case 3:
        snprintf(ret_sql, 512, "DELETE FROM event WHERE number = %" PRId64, one);
        break;
    case 4: /* the others move up, or it comes last */
        snprintf(ret_sql, 512,
                 "UPDATE event SET number = -number - 1 WHERE number >= %" PRId64 "; UPDATE event SET number = -number WHERE number < 0;"
                 "INSERT INTO event SELECT %" PRId64 ", at, lane, 'new', type, state, attempt, previous, destination, data, %s, form,"
                 " salt, digest FROM event WHERE number = %" PRId64,
                 one, one, dice(2) ? "hash" : "randomblob(32)", one + 1);
        break;
    case 5:
        snprintf(ret_sql, 512, "DELETE FROM event WHERE number >= %" PRId64 "%s", one,
                 dice(2) ? "" : "; DELETE FROM head; INSERT INTO head SELECT '', number, hash, hash FROM event ORDER BY number DESC LIMIT 1");
        break;
    case 6:
        snprintf(ret_sql, 512, "DELETE FROM event%s", dice(2) ? "; DELETE FROM head; DELETE FROM trimmed" : "");
        break;
    case 7:
        snprintf(ret_sql, 512,
                 "UPDATE event SET number = -1 WHERE number = %" PRId64 "; UPDATE event SET number = %" PRId64 " WHERE number = %" PRId64
                 "; UPDATE event SET number = %" PRId64 " WHERE number = -1",
                 one, one, other, other);
        break;
    default: /* an anchor as of a trim */
        snprintf(ret_sql, 512,
                 "DELETE FROM trimmed; INSERT INTO trimmed SELECT number, hash FROM event WHERE number = %" PRId64
                 "; DELETE FROM event WHERE number <= %" PRId64,
                 one, one);
    }
}

/* Some draws change nothing: a column that has that value already. */
static bool changed(const char *before, const char *after)
{
    char sql[2 * PATH_MAX];
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    static const char tables[] = "SELECT (SELECT count(*) FROM (SELECT * FROM event EXCEPT SELECT * FROM o.event)) +"
                                 " (SELECT count(*) FROM (SELECT * FROM o.event EXCEPT SELECT * FROM event))";
    assert_int_equal(sqlite3_open(after, &db), SQLITE_OK);
    snprintf(sql, sizeof sql, "ATTACH '%s' AS o", before);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, tables, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    bool is = sqlite3_column_int(statement, 0) > 0;
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return is;
}

static int64_t from_environment(const char *name, int64_t usual)
{
    const char *text = getenv(name);
    return text ? strtoll(text, NULL, 10) : usual;
}

static void every_change_shows_with_a_noted_head(void **state)
{
    int64_t changes = from_environment("INSIST_TRAIL_CHANGES", CHANGES), seed = from_environment("INSIST_TRAIL_SEED", 1);
    int64_t done = 0;
    char whole[PATH_MAX], copy[PATH_MAX], sql[512];
    (void)state;
    snprintf(whole, sizeof whole, "%s", path_of("whole.db"));
    snprintf(copy, sizeof copy, "%s", path_of("copy.db"));
    for (int trimmed = 0; trimmed <= 10; trimmed += 10) { /* half of the changes meet a trail that was trimmed */
        struct store *store = open_store(whole, "");
        if (trimmed == 0)
            fill(store, EVENTS);
        else
            trim(store, trimmed);
        store->ops->close(store);
        struct trail_head noted = head_of(whole, "");
        for (; done < (trimmed ? changes : changes / 2); done++) {
            struct trail_check check;
            struct error err = { STATUS_OK, "" };
            dice_state = (uint64_t)(seed + done) * 0x9e3779b97f4a7c15u;
            change_draw(trimmed + 1, noted.number, sql);
            copy_file(whole, copy);
            sql_run(copy, sql);
            enum status status = verify(copy, "", &noted, 1, &check, &err);
            if (status == STATUS_OK)
                check(!changed(whole, copy), "seed %" PRId64 ", not found: %s", seed + done, sql);
            else
                check(status == STATUS_CORRUPT || strstr(sql, "form"), "seed %" PRId64 ": %s: %s", seed + done, sql, err.text);
        }
    }
}

/* ---- what shows without one ---- */

static void what_the_store_itself_keeps_shows(void **state)
{
    static const struct { const char *name, *sql, *reported; } cases[] = {
        { "a cut tail", "DELETE FROM event WHERE number > 20", "the trail was cut: it ends with event 20" },
        { "an emptied trail", "DELETE FROM event", "the trail was cut: it ends with event 0" },
        { "the head, too", "DELETE FROM event; DELETE FROM head", "the kept head is gone" },
        { "another head", "UPDATE head SET hash = randomblob(32)", "is not the one that the store keeps as its head" },
        { "a forged anchor", "INSERT INTO trimmed SELECT number, hash FROM event WHERE number = 9; DELETE FROM event WHERE number < 10",
          "events up to 9 are gone, and the trail tells of none that was trimmed" },
    };
    char whole[PATH_MAX], copy[PATH_MAX];
    (void)state;
    snprintf(whole, sizeof whole, "%s", path_of("kept.db"));
    snprintf(copy, sizeof copy, "%s", path_of("kept-copy.db"));
    struct store *store = open_store(whole, "");
    fill(store, EVENTS);
    store->ops->close(store);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int started = 0; started < 2; started++) { /* a daemon that goes on does not cover it up */
            struct trail_check check;
            struct error err = { STATUS_OK, "" };
            copy_file(whole, copy);
            sql_run(copy, cases[i].sql);
            if (started) {
                store = open_store(copy, "");
                fill(store, 3);
                store->ops->close(store);
            }
            enum status status = verify(copy, "", NULL, 0, &check, &err);
            bool gone = strstr(cases[i].sql, "DELETE FROM head"); /* nothing is left that could tell a later start */
            check(started && gone ? true : status != STATUS_OK, "%s, started %d: %s", cases[i].name, started, err.text);
            check(started || strstr(err.text, cases[i].reported), "%s: %s", cases[i].name, err.text);
        }
}

static void data_can_be_erased(void **state)
{
    struct trail_check check;
    struct error err = { STATUS_OK, "" };
    const char *path = path_of("erased.db");
    (void)state;
    struct store *store = open_store(path, "");
    fill(store, 10);
    store->ops->close(store);
    struct trail_head noted = head_of(path, "");
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT salt, data FROM event WHERE number = 3", -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    SHA256_CTX sha;
    unsigned char digest[EVENT_HASH_BYTES];
    SHA256_Init(&sha);
    SHA256_Update(&sha, sqlite3_column_blob(statement, 0), (size_t)sqlite3_column_bytes(statement, 0));
    SHA256_Update(&sha, sqlite3_column_blob(statement, 1), (size_t)sqlite3_column_bytes(statement, 1));
    SHA256_Final(digest, &sha);
    sqlite3_finalize(statement);
    assert_int_equal(sqlite3_prepare_v2(db, "UPDATE event SET data = '', salt = NULL, digest = ?1 WHERE number = 3", -1, &statement, NULL),
                     SQLITE_OK);
    sqlite3_bind_blob(statement, 1, digest, sizeof digest, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    check(verify(path, "", &noted, 1, &check, &err) == STATUS_OK, "%s", err.text);
    assert_int_equal(check.erased, 1);
    assert_int_equal(check.forms[EVENT_FORM_SALTED], 10);
}

/* ---- keys ---- */

static void what_was_made_without_the_key_does_not_hold(void **state)
{
    struct trail_check check;
    struct error err = { STATUS_OK, "" };
    char path[PATH_MAX], copy[PATH_MAX];
    (void)state;
    snprintf(path, sizeof path, "%s", path_of("keyed.db"));
    snprintf(copy, sizeof copy, "%s", path_of("keyed-copy.db"));
    struct store *store = open_store(path, ""); /* the key comes later */
    fill(store, 5);
    store->ops->close(store);
    check(verify(path, "secret", NULL, 0, &check, &err) == STATUS_CORRUPT, "no event is under the key yet");
    store = open_store(path, "secret");
    fill(store, 5);
    store->ops->close(store);
    check(verify(path, "secret", NULL, 0, &check, &err) == STATUS_OK, "%s", err.text);
    check(check.forms[EVENT_FORM_SALTED] == 5 && check.forms[EVENT_FORM_KEYED] == 5, "five of each");
    check(verify(path, "other", NULL, 0, &check, &err) == STATUS_CORRUPT, "another key");
    check(verify(path, "", NULL, 0, &check, &err) == STATUS_INVALID && strstr(err.text, "audit.key"), "no key: %s", err.text);

    copy_file(path, copy); /* cut, and gone on with by a program without the key */
    sql_run(copy, "DELETE FROM event WHERE number > 7; DELETE FROM head");
    store = open_store(copy, "");
    fill(store, 3);
    store->ops->close(store);
    check(verify(copy, "secret", NULL, 0, &check, &err) == STATUS_CORRUPT, "%s", err.text);
    copy_file(path, copy); /* cut, with a head that fits */
    sql_run(copy, "DELETE FROM event WHERE number > 7; UPDATE head SET number = 7, hash = (SELECT hash FROM event WHERE number = 7)");
    check(verify(copy, "secret", NULL, 0, &check, &err) == STATUS_CORRUPT && strstr(err.text, "under the key"), "%s", err.text);
}

static void heads_are_read_as_they_are_written(void **state)
{
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    static const struct { const char *before; bool good; } cases[] = {
        { "7:", true }, { ".7:", true }, { "a.7:", false }, { "0:", false }, { "7", false }, { "-7:", false }, { "x:", false }, { ":", false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[128], again[TRAIL_HEAD_BYTES];
        struct trail_head head;
        struct error err;
        snprintf(text, sizeof text, "%s%s", cases[i].before, zeros);
        bool good = trail_head_parse(slice_from(text), &head, &err) == STATUS_OK;
        check(good == cases[i].good, "%s", text);
        if (good) {
            trail_head_format(&head, again);
            check(strcmp(again, text + (text[0] == '.')) == 0, "%s", again);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_shows_with_a_noted_head),
        cmocka_unit_test(what_the_store_itself_keeps_shows),
        cmocka_unit_test(data_can_be_erased),
        cmocka_unit_test(what_was_made_without_the_key_does_not_hold),
        cmocka_unit_test(heads_are_read_as_they_are_written),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}
