#include "support/store_recount.h"

#include "store/sqlite/row.h"

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <sqlite3.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, LOOKS_KEPT = 512 };

/* Each gives the rows that should not be. States: 1 pending, 2 running, 3 waiting, 4 completed, 5 dead, 6 cancelled. */
static const struct {
    const char *what, *sql;
} rules[] = {
    { "pages are sound", "SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'" },
    { "states are known", "SELECT seq FROM job_now WHERE state NOT BETWEEN 1 AND 6" },
    { "ready rows belong to claimable jobs", "SELECT r.seq FROM ready r LEFT JOIN job_now j ON j.seq = r.seq AND j.lane = "
                                             "r.lane AND j.rank = r.rank AND j.state IN (1, 3)"
                                             " WHERE j.seq IS NULL" },
    { "a job is ready once", "SELECT seq FROM ready GROUP BY seq HAVING count(*) > 1" },
    { "timers are those that states ask for",
      "WITH expected AS (SELECT seq, CASE state"
      " WHEN 4 THEN expires_at WHEN 5 THEN expires_at WHEN 6 THEN expires_at WHEN 2 THEN NULL"
      " ELSE CASE WHEN seq IN (SELECT seq FROM ready) OR seq IN (SELECT seq FROM job WHERE link & 1)"
      " THEN deadline ELSE min(run_at, coalesce(deadline, run_at)) END END AS "
      "at FROM job_now),"
      " wanted AS (SELECT at, seq FROM expected WHERE at IS NOT NULL)"
      " SELECT * FROM (SELECT at, seq FROM wanted EXCEPT SELECT at, seq FROM timer)"
      " UNION ALL SELECT * FROM (SELECT at, seq FROM timer EXCEPT SELECT at, seq FROM wanted)" },
    { "of a key that has jobs one goes and the others are behind it",
      "SELECT lane FROM job WHERE chain <> 0 AND state IN (1, 2, 3) GROUP BY lane, chain HAVING sum(link & 1 = 0) <> 1 UNION ALL"
      " SELECT seq FROM job WHERE link & 1 AND (chain = 0 OR state <> 1)" },
    { "chains have the jobs that have not ended",
      "SELECT * FROM (SELECT lane, chain, seq FROM job WHERE chain <> 0 AND state IN (1, 2, 3) EXCEPT SELECT * FROM chained)"
      " UNION ALL SELECT * FROM (SELECT * FROM chained EXCEPT SELECT lane, chain, seq FROM job"
      " WHERE chain <> 0 AND state IN (1, 2, 3))" },
    { "leases are of jobs that were claimable, and only a leased one runs",
      "SELECT seq FROM lease WHERE seq NOT IN (SELECT seq FROM job WHERE state IN (1, 2, 3)) UNION ALL"
      " SELECT seq FROM job WHERE state = 2 AND seq NOT IN (SELECT seq FROM lease)" },
    { "lease tokens are single", "SELECT token FROM lease GROUP BY token HAVING count(*) > 1 OR token <= 0" },
    { "lease tokens are reserved", "SELECT token FROM lease WHERE token > (SELECT value FROM meta WHERE name = 'token')" },
    { "each job has its payload", "SELECT seq FROM payload WHERE seq NOT IN (SELECT seq FROM job) UNION ALL"
                                  " SELECT seq FROM job WHERE seq NOT IN (SELECT seq FROM payload)" },
    { "each job has its lane", "SELECT seq FROM job WHERE lane NOT IN (SELECT id FROM lane)" },
    { "names are single",
      "SELECT l.tenant, j.id FROM job j JOIN lane l ON l.id = j.lane GROUP BY 1, 2 HAVING count(*) > 1" },
    { "lane counters equal a recount",
      "SELECT l.id FROM lane l LEFT JOIN (SELECT lane, sum(state = 1) AS pending, sum(state = 2) AS running,"
      " sum(state = 3) AS waiting, sum(state = 5) AS dead, sum(seq IN (SELECT seq FROM ready)) AS ready,"
      " sum(state = 4) AS completed, sum(state = 6) AS cancelled FROM job_now GROUP BY lane) c ON c.lane = l.id"
      " WHERE l.pending <> coalesce(c.pending, 0) OR l.running <> coalesce(c.running, 0) OR l.waiting <> "
      "coalesce(c.waiting, 0)"
      " OR l.dead <> coalesce(c.dead, 0) OR l.ready <> coalesce(c.ready, 0) OR l.completed < coalesce(c.completed, 0)"
      " OR l.cancelled < coalesce(c.cancelled, 0)" },
    { "lanes know how many jobs they have, and whether they have any",
      "SELECT l.id FROM lane l LEFT JOIN (SELECT lane, count(*) AS jobs FROM job GROUP BY lane) c ON c.lane = l.id"
      " WHERE l.stored <> coalesce(c.jobs, 0) OR (l.stored = 0) <> (l.event > 0)" },
    { "events have their lanes, and of one without jobs none is newer than it says",
      "SELECT v.number FROM event v LEFT JOIN lane l ON l.id = v.lane WHERE v.lane IS NOT NULL AND"
      " (l.id IS NULL OR (l.event > 0 AND v.number > l.event))" },
    { "counts of ever equal the events, while none are trimmed",
      "SELECT l.id FROM lane l WHERE NOT EXISTS (SELECT 1 FROM trimmed) AND"
      " (l.completed <> (SELECT count(*) FROM event WHERE lane = l.id AND type = 3) OR"
      " l.cancelled <> (SELECT count(*) FROM event WHERE lane = l.id AND type = 8))" },
    { "dead letters say why and since when", "SELECT seq FROM job WHERE state = 5 AND (coalesce(last_error, '') = '' OR "
                                             "coalesce(dead_code, '') = '' OR dead_at IS NULL)"
                                             " UNION ALL SELECT seq FROM job WHERE state <> 5 AND dead_at IS NOT NULL" },
    { "attempts are not negative", "SELECT seq FROM job_now WHERE attempts < 0 OR attempts_total < attempts" },
    { "event numbers have no gap",
      "SELECT 1 FROM (SELECT count(*) AS n, min(number) AS a, max(number) AS z FROM event) WHERE n > 0 AND"
      " (z - a + 1 <> n OR a <> coalesce((SELECT max(number) FROM trimmed), 0) + 1)" },
    { "the last event of a job tells its state",
      "SELECT j.seq FROM job_now j LEFT JOIN event v ON v.number = j.last_event"
      " WHERE j.last_event > coalesce((SELECT max(number) FROM trimmed), 0)"
      " AND (v.number IS NULL OR v.job <> j.id OR v.lane <> j.lane OR v.state <> j.state OR v.attempt > j.attempts_total)" },
    { "no event of a job is newer than its last",
      "SELECT j.seq FROM job_now j JOIN event v ON v.lane = j.lane AND v.job = j.id WHERE v.number > j.last_event" },
    { "previous leads to the same job", "SELECT v.number FROM event v LEFT JOIN event p ON p.number = v.previous WHERE "
                                        "v.previous <> 0 AND (v.previous >= v.number OR"
                                        " (v.previous > coalesce((SELECT max(number) FROM trimmed), 0) AND (p.number IS "
                                        "NULL OR p.job <> v.job OR p.lane <> v.lane)))" },
    { "the archive holds only kept ends",
      "SELECT a.event FROM archive a LEFT JOIN event v ON v.number = a.event WHERE v.number IS NULL OR"
      " a.event IN (SELECT last_event FROM job_now)" },
    { "seq numbers are below the newest", "SELECT value FROM meta WHERE name = 'seq' AND value < 1" },
};

static struct slice column(sqlite3_stmt *statement, int index)
{
    const char *data = sqlite3_column_blob(statement, index);
    return (struct slice){ data ? data : "", data ? (size_t)sqlite3_column_bytes(statement, index) : 0 };
}

static bool rules_hold(sqlite3 *db, char text[RECOUNT_TEXT_BYTES])
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        sqlite3_stmt *statement = NULL;
        int result = sqlite3_prepare_v2(db, rules[i].sql, -1, &statement, NULL);
        if (result == SQLITE_OK)
            result = sqlite3_step(statement);
        if (result != SQLITE_DONE) {
            const char *first = result == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : sqlite3_errmsg(db);
            snprintf(text, RECOUNT_TEXT_BYTES, "not so: %s (%s)", rules[i].what, first ? first : "NULL");
            sqlite3_finalize(statement);
            return false;
        }
        sqlite3_finalize(statement);
    }
    return true;
}

static bool keys_hold(sqlite3 *db, char text[RECOUNT_TEXT_BYTES])
{
    static const char sql[] = "SELECT j.key, l.tenant, j.id, j.seq FROM job j JOIN lane l ON l.id = j.lane UNION ALL"
                              " SELECT a.key, l.tenant, v.job, -1 FROM archive a JOIN event v ON v.number = a.event"
                              " JOIN lane l ON l.id = v.lane";
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    bool good = result == SQLITE_OK;
    while (good && (result = sqlite3_step(statement)) == SQLITE_ROW)
        good = sqlite3_column_int64(statement, 0) == (int64_t)job_key(column(statement, 1), column(statement, 2)) ||
               (sqlite3_column_int64(statement, 0) == 0 && change_id_seq(column(statement, 2)) == sqlite3_column_int64(statement, 3));
    good = good && result == SQLITE_DONE;
    if (!good)
        snprintf(text, RECOUNT_TEXT_BYTES, "not so: keys are those of the names (%s)", sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    return good;
}

static bool chain_start(sqlite3 *db, unsigned char ret_hash[EVENT_HASH_BYTES])
{
    sqlite3_stmt *statement = NULL;
    memset(ret_hash, 0, EVENT_HASH_BYTES);
    int result = sqlite3_prepare_v2(db, "SELECT hash FROM trimmed", -1, &statement, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    if (result == SQLITE_ROW && sqlite3_column_bytes(statement, 0) == EVENT_HASH_BYTES)
        memcpy(ret_hash, sqlite3_column_blob(statement, 0), EVENT_HASH_BYTES);
    sqlite3_finalize(statement);
    return result == SQLITE_ROW || result == SQLITE_DONE;
}

static bool chain_holds_in(sqlite3 *db, char text[RECOUNT_TEXT_BYTES])
{
    static const char sql[] = "SELECT v.number, v.at, v.type, v.state, v.attempt, v.previous,"
                              " coalesce(l.destination, v.destination), l.tenant, v.job, v.data, v.hash, v.form, v.salt"
                              " FROM event v LEFT JOIN lane l ON l.id = v.lane ORDER BY v.number";
    unsigned char before[EVENT_HASH_BYTES];
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    bool good = chain_start(db, before) && result == SQLITE_OK;
    while (good && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        struct event event = {
            .number = sqlite3_column_int64(statement, 0),
            .at = sqlite3_column_int64(statement, 1),
            .type = (enum event_type)sqlite3_column_int(statement, 2),
            .state = (enum job_state)sqlite3_column_int(statement, 3),
            .attempt = sqlite3_column_int64(statement, 4),
            .previous = sqlite3_column_int64(statement, 5),
            .destination = column(statement, 6),
            .tenant = column(statement, 7),
            .job = column(statement, 8),
            .data = column(statement, 9),
            .form = (enum event_form)sqlite3_column_int(statement, 11),
        };
        struct slice salt = column(statement, 12);
        memcpy(event.salt, salt.data, salt.len < sizeof event.salt ? salt.len : sizeof event.salt);
        event_chain(before, &event);
        struct slice stored = column(statement, 10);
        good = stored.len == EVENT_HASH_BYTES && memcmp(stored.data, event.hash, EVENT_HASH_BYTES) == 0;
        memcpy(before, event.hash, EVENT_HASH_BYTES);
        if (!good)
            snprintf(text, RECOUNT_TEXT_BYTES, "not so: event %lld follows from the one before", (long long)event.number);
    }
    if (good && result != SQLITE_DONE)
        snprintf(text, RECOUNT_TEXT_BYTES, "cannot read the events: %s", sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    return good && result == SQLITE_DONE;
}

static sqlite3 *open_file(const char *path)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout(db, 1000);
        sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        return db;
    }
    sqlite3_close(db);
    return NULL;
}

/*
 * Closed stores that were looked at, by the bytes of their files: cuts at many places leave the same, and what is in it is counted once.
 * Only what was found is kept, never that something could not be read.
 */
struct looked_at {
    unsigned char bytes[SHA256_DIGEST_LENGTH], digest[RECOUNT_DIGEST_BYTES];
    bool holds, has_digest;
};

static bool file_hash(const char *path, unsigned char ret_hash[SHA256_DIGEST_LENGTH])
{
    unsigned char part[1 << 16];
    SHA256_CTX sha;
    FILE *file = fopen(path, "rbe");
    if (!file)
        return false;
    SHA256_Init(&sha);
    for (size_t len; (len = fread(part, 1, sizeof part, file)) > 0;)
        SHA256_Update(&sha, part, len);
    bool good = !ferror(file);
    SHA256_Final(ret_hash, &sha);
    fclose(file);
    return good;
}

static struct looked_at *look_at(const char *path)
{
    static struct looked_at kept[LOOKS_KEPT], once;
    static size_t count;
    unsigned char bytes[SHA256_DIGEST_LENGTH];
    char log[PATH_BYTES];
    snprintf(log, sizeof log, "%s-wal", path);
    once = (struct looked_at){ .holds = false };
    /* With a log it may be open, and this process would lose its locks with the first file of that name that it closes. */
    if (access(log, F_OK) == 0 || !file_hash(path, bytes))
        return &once;
    for (size_t i = 0; i < LOOKS_KEPT; i++)
        if (memcmp(kept[i].bytes, bytes, sizeof bytes) == 0)
            return &kept[i];
    struct looked_at *fresh = &kept[count++ % LOOKS_KEPT];
    *fresh = once;
    memcpy(fresh->bytes, bytes, sizeof bytes);
    return fresh;
}

bool recount_holds(const char *path, char ret_text[RECOUNT_TEXT_BYTES])
{
    struct looked_at *known = look_at(path);
    if (known->holds)
        return true;
    sqlite3 *db = open_file(path);
    snprintf(ret_text, RECOUNT_TEXT_BYTES, "cannot open %s", path);
    known->holds = db && rules_hold(db, ret_text) && keys_hold(db, ret_text) && chain_holds_in(db, ret_text);
    sqlite3_close(db);
    return known->holds;
}

static bool digest_rows(sqlite3 *db, const char *sql, SHA256_CTX *sha)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    while (result == SQLITE_OK || result == SQLITE_ROW) {
        result = sqlite3_step(statement);
        for (int i = 0; result == SQLITE_ROW && i < sqlite3_column_count(statement); i++) {
            struct slice value = column(statement, i);
            int type = sqlite3_column_type(statement, i);
            SHA256_Update(sha, &type, sizeof type);
            if (type == SQLITE_INTEGER) {
                int64_t number = sqlite3_column_int64(statement, i);
                SHA256_Update(sha, &number, sizeof number);
            } else {
                SHA256_Update(sha, &value.len, sizeof value.len);
                SHA256_Update(sha, value.data, value.len);
            }
        }
    }
    sqlite3_finalize(statement);
    return result == SQLITE_DONE;
}

bool recount_digest(const char *path, unsigned char ret_digest[RECOUNT_DIGEST_BYTES])
{
    static const char *const queries[] = {
        "SELECT * FROM lane ORDER BY id",
        "SELECT * FROM job_now ORDER BY seq",
        "SELECT * FROM payload ORDER BY seq",
        "SELECT * FROM ready ORDER BY lane, rank, seq",
        "SELECT * FROM timer ORDER BY at, seq",
        "SELECT seq, until, owner FROM lease ORDER BY seq",
        ("SELECT number, at, lane, job, type, state, attempt, previous, destination, form,"
         " CASE WHEN data LIKE '{\"note\":\"trimmed\"%' THEN '' ELSE data END FROM event ORDER BY number"),
        "SELECT * FROM archive ORDER BY event",
        "SELECT * FROM gone ORDER BY destination",
        "SELECT * FROM kept ORDER BY space, name",
        "SELECT number FROM trimmed",
        "SELECT * FROM meta WHERE name NOT IN ('seed', 'token') ORDER BY name",
    };
    struct looked_at *known = look_at(path);
    SHA256_CTX sha;
    sqlite3 *db = known->has_digest ? NULL : open_file(path);
    SHA256_Init(&sha);
    bool good = db != NULL;
    for (size_t i = 0; good && i < sizeof queries / sizeof queries[0]; i++)
        good = digest_rows(db, queries[i], &sha);
    if (good)
        SHA256_Final(known->digest, &sha);
    known->has_digest = known->has_digest || good;
    memcpy(ret_digest, known->digest, RECOUNT_DIGEST_BYTES);
    sqlite3_close(db);
    return known->has_digest;
}
