#include "store/sqlite/reader.h"

#include "store/filter.h"
#include "store/sqlite/outside.h"
#include "store/sqlite/row.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/statement.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_LOOKED_AT_MAX = 500 }; /* by one page of reader_jobs: about a millisecond */

enum query {
    QUERY_BEGIN,
    QUERY_COMMIT,
    QUERY_JOB_FIND,
    QUERY_JOB,
    QUERY_SCAN_ALL, /* the scans: a page of jobs, by what narrows it best */
    QUERY_SCAN_DEAD,
    QUERY_SCAN_WAITING,
    QUERY_SCAN_RUNNING,
    QUERY_SCAN_REDRIVEN,
    QUERY_SCAN_ID,
    QUERY_EVENTS,
    QUERY_EVENTS_OLD, /* prepared in place of the other, by who looks from outside */
    QUERY_EVENT,
    QUERY_ARCHIVE,
    QUERY_LANES,
    QUERY_LANE,
    QUERY_AHEAD,
    QUERY_SAVED,
    QUERY_SAVED_LIST,
    QUERY_COUNT
};

/* A leased job runs, whatever its row says. */
#define SQL_STATE_NOW                                                                                                       \
    "CASE WHEN EXISTS (SELECT 1 FROM lease e WHERE e.seq = j.seq) THEN " SQL_STATE_RUNNING " ELSE j.state END"
#define SQL_SCAN_COLUMNS_OF(state)                                                                                          \
    "SELECT j.seq, " state ", j.last_code, j.dead_code, l.destination, l.tenant, j.id, j.key, j.last_error, j.created_at,"  \
    " j.dead_at, j.redrive FROM "
#define SQL_SCAN_COLUMNS SQL_SCAN_COLUMNS_OF(SQL_STATE_NOW)
#define SQL_FIND                                                                                                            \
    "SELECT j.seq, j.id, l.tenant, coalesce(e.event, j.last_event) FROM job j CROSS JOIN lane l ON l.id = j.lane"           \
    " LEFT JOIN lease e ON e.seq = j.seq WHERE "
#define SQL_EVENT_COLUMNS                                                                                                   \
    "SELECT v.number, v.at, v.type, v.state, v.attempt, coalesce(l.destination, v.destination), l.tenant, v.job, v.data,"   \
    " v.previous, v.hash, v.form, v.salt, v.digest, v.lane IS NOT NULL AND v.destination <> ''"                             \
    " FROM event v LEFT JOIN lane l ON l.id = v.lane "
#define SQL_LANE_COLUMNS                                                                                                    \
    "SELECT id, destination, tenant, pending, running, waiting, completed, dead, cancelled, ready FROM lane "
/* This is for stores before SCHEMA_WITH_HEADS. */
#define SQL_EVENT_COLUMNS_OLD                                                                                               \
    "SELECT v.number, v.at, v.type, v.state, v.attempt, coalesce(l.destination, v.destination), l.tenant, v.job, v.data,"   \
    " v.previous, v.hash, 0, NULL, NULL, v.lane IS NOT NULL AND v.destination <> ''"                                        \
    " FROM event v LEFT JOIN lane l ON l.id = v.lane "

static const char *const query_texts[QUERY_COUNT] = {
    [QUERY_BEGIN] = "BEGIN",
    [QUERY_COMMIT] = "COMMIT",
    [QUERY_JOB_FIND] =
        SQL_FIND "j.seq = ?2 UNION ALL " SQL_FIND "j.key = ?1 AND j.key <> 0",
    [QUERY_JOB] =
        "SELECT " SQL_JOB_COLUMNS ", 0, " SQL_LEASE_COLUMNS ", p.content_type, p.headers, p.correlation_id,"
        " p.metadata, p.key, p.callback, CASE WHEN ?2 THEN p.body END, l.destination, l.tenant FROM job j CROSS JOIN lane l ON l.id = j.lane"
        " CROSS JOIN payload p ON p.seq = j.seq LEFT JOIN lease e ON e.seq = j.seq WHERE j.seq = ?1",
    [QUERY_SCAN_ALL] =
        SQL_SCAN_COLUMNS "job j CROSS JOIN lane l ON l.id = j.lane WHERE j.seq < ?1 ORDER BY j.seq DESC LIMIT ?2",
    [QUERY_SCAN_DEAD] = SQL_SCAN_COLUMNS_OF(SQL_STATE_DEAD) "job j INDEXED BY job_dead CROSS JOIN lane l ON l.id = j.lane"
                                         " WHERE j.state = " SQL_STATE_DEAD " AND j.seq < ?1 ORDER BY j.seq DESC LIMIT ?2",
    [QUERY_SCAN_WAITING] =
        SQL_SCAN_COLUMNS "job j INDEXED BY job_waiting CROSS JOIN lane l ON l.id = j.lane"
                         " WHERE j.state = " SQL_STATE_WAITING " AND j.seq < ?1 ORDER BY j.seq DESC LIMIT ?2",
    [QUERY_SCAN_RUNNING] = SQL_SCAN_COLUMNS "lease e CROSS JOIN job j ON j.seq = e.seq CROSS JOIN lane l ON l.id = j.lane"
                                            " WHERE e.seq < ?1 ORDER BY e.seq DESC LIMIT ?2",
    [QUERY_SCAN_REDRIVEN] =
        SQL_SCAN_COLUMNS "job j INDEXED BY job_redriven CROSS JOIN lane l ON l.id = j.lane"
                         " WHERE j.redrive IS NOT NULL AND j.seq < ?1 ORDER BY j.seq DESC LIMIT ?2",
    [QUERY_SCAN_ID] =
        SQL_SCAN_COLUMNS "job j CROSS JOIN lane l ON l.id = j.lane WHERE j.seq = ?5 AND j.key = 0 UNION ALL "
        SQL_SCAN_COLUMNS "job j INDEXED BY job_key CROSS JOIN lane l ON l.id = j.lane"
                            " WHERE j.key <> 0 AND j.key BETWEEN ?1 AND ?3 AND (j.key, j.seq) > (?1, ?4) LIMIT ?2",
    [QUERY_EVENTS] = SQL_EVENT_COLUMNS "WHERE v.number > ?1 ORDER BY v.number LIMIT ?2",
    [QUERY_EVENTS_OLD] = SQL_EVENT_COLUMNS_OLD "WHERE v.number > ?1 ORDER BY v.number LIMIT ?2",
    [QUERY_EVENT] = SQL_EVENT_COLUMNS "WHERE v.number = ?1",
    [QUERY_ARCHIVE] =
        "SELECT a.event FROM archive a CROSS JOIN event v ON v.number = a.event CROSS JOIN lane l ON l.id = v.lane"
        " WHERE a.key = ?1 AND v.job = ?2 AND l.tenant = ?3 AND a.event < ?4 ORDER BY a.event DESC LIMIT 1",
    [QUERY_LANES] = SQL_LANE_COLUMNS "INDEXED BY lane_used WHERE event = 0 AND id > ?1 ORDER BY id LIMIT ?2",
    [QUERY_LANE] = SQL_LANE_COLUMNS "WHERE destination = ?1 AND tenant = ?2 AND event = 0",
    [QUERY_AHEAD] = "SELECT count(*) FROM (SELECT 1 FROM ready WHERE lane = ?1 AND (rank, seq) < (?2, ?3) LIMIT ?4)",
    [QUERY_SAVED] = "SELECT value FROM kept WHERE space = ?1 AND name = ?2",
    [QUERY_SAVED_LIST] = "SELECT name, value FROM kept WHERE space = ?1 AND (?2 = '' OR name < ?2) ORDER BY name DESC LIMIT ?3",
};

struct sqlite_reader {
    struct store_reader base;
    sqlite3 *db;
    sqlite3_stmt *queries[QUERY_COUNT];
    struct totals *totals; /* of the store it was opened by; NULL: that is another process's */
};

/* One call: who reads, where results go. */
struct reading {
    struct sqlite_reader *reader;
    struct arena *memory;
    struct error *err;
};

/* With the queries from `first` up to `last`. */
static enum status reader_open(struct store *store, enum query first, enum query last, struct store_reader **ret_reader,
                               struct error *err)
{
    assert(store->ops == &sqlite_store_ops && first <= last && last < QUERY_COUNT);
    struct sqlite_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a reader");
    reader->base.ops = store->ops;
    reader->totals = ((struct sqlite_store *)store)->db ? &((struct sqlite_store *)store)->lanes.totals : NULL;
    enum status status = sqlite_connect_reader((struct sqlite_store *)store, &reader->db, err);
    for (enum query i = first; i <= last && status == STATUS_OK; i++) {
        assert(query_texts[i]);
        if (i == QUERY_EVENTS_OLD && first != last)
            continue;
        int result =
            sqlite3_prepare_v3(reader->db, query_texts[i], -1, SQLITE_PREPARE_PERSISTENT, &reader->queries[i], NULL);
        if (result != SQLITE_OK)
            status = sqlite_failure(reader->db, result, "prepare a reader", err);
    }
    if (status != STATUS_OK) {
        sqlite_reader_close(&reader->base);
        return status;
    }
    *ret_reader = &reader->base;
    return STATUS_OK;
}

enum status sqlite_reader_open(struct store *store, struct store_reader **ret_reader, struct error *err)
{
    int64_t version;
    bool own = ((struct sqlite_store *)store)->db != NULL; /* it was opened, and so has this program's version */
    enum status status = own ? STATUS_OK : sqlite_version_check((struct sqlite_store *)store, false, &version, err);
    return status == STATUS_OK ? reader_open(store, 0, QUERY_COUNT - 1, ret_reader, err) : status;
}

enum status sqlite_reader_open_events(struct store *store, bool old, struct store_reader **ret_reader, struct error *err)
{
    enum query query = old ? QUERY_EVENTS_OLD : QUERY_EVENTS;
    return reader_open(store, query, query, ret_reader, err);
}

void sqlite_reader_close(struct store_reader *base)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    if (!reader)
        return;
    for (int i = 0; i < QUERY_COUNT; i++)
        sqlite3_finalize(reader->queries[i]);
    sqlite3_close(reader->db);
    free(reader);
}

/* ---- Helpers ---- */

static enum status no_memory(const struct reading *reading)
{
    return error_set(reading->err, STATUS_NO_MEMORY, "no memory for what was read");
}

/* True while there is a row; the statement is reset at the end. */
static enum status query_next(const struct reading *reading, enum query which, bool *ret_row)
{
    assert(reading->reader->queries[which]);
    sqlite3_stmt *query = reading->reader->queries[which];
    int result = sqlite3_step(query);
    *ret_row = result == SQLITE_ROW;
    if (result == SQLITE_ROW)
        return STATUS_OK;
    enum status status =
        result == SQLITE_DONE ? STATUS_OK : sqlite_failure(reading->reader->db, result, "read", reading->err);
    sqlite3_reset(query);
    return status;
}

/* Several statements that must see the same moment stand between these two. */
static enum status snapshot_begin(const struct reading *reading)
{
    assert(sqlite3_get_autocommit(reading->reader->db));
    bool row;
    return query_next(reading, QUERY_BEGIN, &row);
}

static enum status snapshot_end(const struct reading *reading, enum status status)
{
    struct reading quiet = *reading;
    bool row;
    for (int i = 0; i < QUERY_COUNT; i++)
        sqlite3_reset(reading->reader->queries[i]);
    if (status != STATUS_OK)
        quiet.err = NULL; /* the first failure is the one to tell */
    enum status ended = sqlite3_get_autocommit(reading->reader->db) ? STATUS_OK : query_next(&quiet, QUERY_COMMIT, &row);
    return status != STATUS_OK ? status : ended;
}

typedef enum status row_read(const struct reading *reading, sqlite3_stmt *query, void *ret_row);

/* A page of rows of `size` bytes each; the query is bound, and `rows` NULL where there was no memory. */
static enum status page_fill(const struct reading *reading, enum query which, size_t max, row_read *read, void *rows,
                             size_t size, size_t *ret_count)
{
    sqlite3_stmt *query = reading->reader->queries[which];
    size_t count = 0;
    bool more;
    enum status status = rows ? query_next(reading, which, &more) : no_memory(reading);
    while (status == STATUS_OK && more) {
        assert(count < store_rows_max(max));
        status = read(reading, query, (char *)rows + size * count++);
        if (status == STATUS_OK)
            status = query_next(reading, which, &more);
    }
    sqlite3_reset(query);
    if (status == STATUS_OK)
        *ret_count = count;
    return status;
}

static enum status copy_text(const struct reading *reading, sqlite3_stmt *query, int column, struct slice *ret_text)
{
    assert(reading->memory);
    enum status status = sqlite_column_copy(query, column, reading->memory, ret_text);
    return status == STATUS_OK ? STATUS_OK : no_memory(reading);
}

/* ---- Jobs ---- */

/* Finds by name; *ret_seq is 0 when there is none. */
static enum status job_find(const struct reading *reading, struct slice tenant, struct slice id, int64_t *ret_seq,
                            int64_t *ret_last_event)
{
    sqlite3_stmt *query = reading->reader->queries[QUERY_JOB_FIND];
    bool more;
    *ret_seq = 0;
    *ret_last_event = 0;
    sqlite3_bind_int64(query, 1, (int64_t)job_key(tenant, id));
    sqlite3_bind_int64(query, 2, change_id_seq(id));
    enum status status = query_next(reading, QUERY_JOB_FIND, &more);
    while (status == STATUS_OK && more && *ret_seq == 0) {
        if (slice_equal(sqlite_column_slice(query, 1), id) && slice_equal(sqlite_column_slice(query, 2), tenant)) {
            *ret_seq = sqlite3_column_int64(query, 0);
            *ret_last_event = sqlite3_column_int64(query, 3);
        } else {
            status = query_next(reading, QUERY_JOB_FIND, &more);
        }
    }
    sqlite3_reset(query);
    return status;
}

/* STATUS_NOT_FOUND leaves the error's text to the caller. */
static enum status job_read_if_there(const struct reading *reading, int64_t seq, bool with_payload, struct job *ret_job)
{
    sqlite3_stmt *query = reading->reader->queries[QUERY_JOB];
    struct sqlite_row row;
    bool found;
    sqlite3_bind_int64(query, 1, seq);
    sqlite3_bind_int(query, 2, with_payload);
    enum status status = query_next(reading, QUERY_JOB, &found);
    if (status == STATUS_OK && !found)
        return STATUS_NOT_FOUND;
    if (status == STATUS_OK)
        status = sqlite_row_read(query, reading->memory, &row, reading->err);
    if (status == STATUS_OK)
        status = copy_text(reading, query, COLUMN_DESTINATION, &row.job.destination);
    if (status == STATUS_OK)
        status = copy_text(reading, query, COLUMN_TENANT, &row.job.tenant);
    sqlite3_reset(query);
    if (status == STATUS_OK)
        *ret_job = row.job;
    return status;
}

static enum status job_read(const struct reading *reading, int64_t seq, bool with_payload, struct job *ret_job)
{
    assert(seq > 0);
    enum status status = job_read_if_there(reading, seq, with_payload, ret_job);
    if (status == STATUS_NOT_FOUND)
        return error_set(reading->err, STATUS_CORRUPT, "job %lld has lost its lane or payload", (long long)seq);
    return status;
}

enum status sqlite_reader_job_seq(struct store_reader *base, int64_t seq, bool with_payload, struct arena *memory,
                                  struct job *ret_job, struct error *err)
{
    struct reading reading = { (struct sqlite_reader *)base, memory, err };
    enum status status = job_read_if_there(&reading, seq, with_payload, ret_job);
    if (status == STATUS_NOT_FOUND)
        return error_set(err, STATUS_NOT_FOUND, "there is no job %lld", (long long)seq);
    return status;
}

enum status sqlite_reader_job(struct store_reader *base, struct slice tenant, struct slice id, bool with_payload,
                              struct arena *memory, struct job *ret_job, struct error *err)
{
    struct reading reading = { (struct sqlite_reader *)base, memory, err };
    int64_t seq = 0, last_event;
    enum status status = snapshot_begin(&reading);
    if (status == STATUS_OK)
        status = job_find(&reading, tenant, id, &seq, &last_event);
    if (status == STATUS_OK && seq == 0)
        status = error_set(err, STATUS_NOT_FOUND, "there is no job \"%.*s\"", SLICE_ARG(id));
    if (status == STATUS_OK)
        status = job_read(&reading, seq, with_payload, ret_job);
    return snapshot_end(&reading, status);
}

static bool matches(struct slice wanted, struct slice value)
{
    return wanted.len == 0 || slice_equal(wanted, value);
}

/* What a scan shows of the job that it stands on; the texts are borrowed from it. */
static struct job scanned_job(sqlite3_stmt *query)
{
    return (struct job){
        .seq = sqlite3_column_int64(query, 0),
        .state = (enum job_state)sqlite3_column_int(query, 1),
        .last_code = sqlite_column_slice(query, 2),
        .dead_code = sqlite_column_slice(query, 3),
        .destination = sqlite_column_slice(query, 4),
        .tenant = sqlite_column_slice(query, 5),
        .id = sqlite_column_slice(query, 6),
        .last_error = sqlite_column_slice(query, 8),
        .created_at = sqlite3_column_int64(query, 9),
        .dead_at = sqlite_column_instant(query, 10),
        .redrive = sqlite_column_slice(query, 11),
    };
}

static bool scan_is_sound(sqlite3_stmt *query)
{
    int state = sqlite3_column_int(query, 1);
    return state > STATE_NONE && state < STATE_COUNT;
}

static bool scan_matches(sqlite3_stmt *query, const struct job_filter *filter)
{
    if (filter->state != STATE_NONE && sqlite3_column_int(query, 1) != (int)filter->state)
        return false;
    if (!scan_is_sound(query))
        return true; /* who reads it tells */
    if (!matches(filter->code, sqlite_column_slice(query, 2)) && !matches(filter->code, sqlite_column_slice(query, 3)))
        return false;
    if (!matches(filter->destination, sqlite_column_slice(query, 4)) ||
        !matches(filter->tenant, sqlite_column_slice(query, 5)))
        return false;
    const struct job job = filter_has_rest(filter) ? scanned_job(query) : (struct job){ .seq = 0 };
    return job.seq == 0 || filter_means(filter, &job);
}

static enum query scan_of(const struct job_filter *filter)
{
    if (filter->redrive.len > 0)
        return QUERY_SCAN_REDRIVEN;
    switch (filter->state) {
    case STATE_DEAD:
        return QUERY_SCAN_DEAD;
    case STATE_WAITING:
        return QUERY_SCAN_WAITING;
    case STATE_RUNNING:
        return QUERY_SCAN_RUNNING;
    default:
        return QUERY_SCAN_ALL;
    }
}

/* A page's jobs by their numbers and, if only the brief ones are wanted, as the scan shows them. */
struct found {
    int64_t seqs[STORE_PAGE_MAX];
    struct job *jobs; /* NULL: only the numbers */
    size_t count;
};

static enum status keep_found(const struct reading *reading, sqlite3_stmt *query, struct found *found)
{
    assert(found->count < STORE_PAGE_MAX);
    found->seqs[found->count++] = sqlite3_column_int64(query, 0);
    if (!found->jobs)
        return STATUS_OK;
    struct job *job = &found->jobs[found->count - 1];
    *job = scanned_job(query);
    if (!scan_is_sound(query))
        return error_set(reading->err, STATUS_CORRUPT, "job %lld has impossible values", (long long)job->seq);
    struct slice *const texts[] = { &job->last_code, &job->dead_code, &job->destination, &job->tenant,
                                    &job->id,        &job->last_error, &job->redrive };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i] = texts[i]->len > 0 ? arena_copy(reading->memory, *texts[i]) : SLICE("");
        if (!texts[i]->data)
            return no_memory(reading);
    }
    return STATUS_OK;
}

/* Looks for one more than fits, to know whether there is a next page. */
static enum status scan(const struct reading *reading, const struct job_filter *filter, size_t max, struct found *found,
                        int64_t *ret_next_seq)
{
    assert(max <= STORE_PAGE_MAX);
    enum query which = scan_of(filter);
    sqlite3_stmt *query = reading->reader->queries[which];
    int looked_at = 0;
    int64_t seq = 0;
    bool more, full = false;
    sqlite3_bind_int64(query, 1, filter->before_seq > 0 ? filter->before_seq : INT64_MAX);
    sqlite3_bind_int(query, 2, ROWS_LOOKED_AT_MAX);
    enum status status = query_next(reading, which, &more);
    while (status == STATUS_OK && more && !full) {
        looked_at++;
        seq = sqlite3_column_int64(query, 0);
        if (scan_matches(query, filter)) {
            full = found->count == max;
            if (!full)
                status = keep_found(reading, query, found);
        }
        if (!full && status == STATUS_OK)
            status = query_next(reading, which, &more);
    }
    sqlite3_reset(query);
    if (full)
        *ret_next_seq = found->count > 0 ? found->seqs[found->count - 1] : seq + 1;
    else
        *ret_next_seq = looked_at == ROWS_LOOKED_AT_MAX ? seq : 0;
    return status;
}

/*
 * The place of a job among those of one id, by key and seq: its tenant's bits of the key, and its number. What was made here
 * has no key, and comes first.
 */
enum { ID_SEQ_BITS = 63 - JOB_KEY_TENANT_BITS };

static int64_t id_place(int64_t key, int64_t seq)
{
    assert(seq > 0 && seq < INT64_C(1) << ID_SEQ_BITS);
    return key == 0 ? 1 : (key & ((1 << JOB_KEY_TENANT_BITS) - 1)) << ID_SEQ_BITS | seq;
}

/* From and to which key those of the filter's id lie; after a page, from the last one's on. */
static void bind_id(sqlite3_stmt *query, const struct job_filter *filter)
{
    assert(filter->id.len > 0);
    uint64_t key = job_key(filter->tenant, filter->id), number;
    uint64_t tenants = (UINT64_C(1) << JOB_KEY_TENANT_BITS) - 1;
    bool one = filter->tenant.len > 0 || job_id_number(filter->id, &number);
    int64_t place = filter->before_seq;
    int64_t from = (int64_t)(one ? key : (key & ~tenants) | (uint64_t)place >> ID_SEQ_BITS);
    sqlite3_bind_int64(query, 1, from);
    sqlite3_bind_int64(query, 3, (int64_t)(one ? key : key | tenants));
    sqlite3_bind_int64(query, 4, place & ((INT64_C(1) << ID_SEQ_BITS) - 1));
    sqlite3_bind_int64(query, 5, place == 0 ? change_id_seq(filter->id) : 0);
}

static enum status scan_id(const struct reading *reading, const struct job_filter *filter, size_t max, struct found *found,
                           int64_t *ret_next)
{
    assert(max <= STORE_PAGE_MAX);
    sqlite3_stmt *query = reading->reader->queries[QUERY_SCAN_ID];
    int looked_at = 0;
    int64_t last = 0; /* that was taken, or is not wanted */
    bool more, full = false;
    bind_id(query, filter);
    sqlite3_bind_int(query, 2, ROWS_LOOKED_AT_MAX);
    enum status status = query_next(reading, QUERY_SCAN_ID, &more);
    while (status == STATUS_OK && more) {
        int64_t seq = sqlite3_column_int64(query, 0);
        bool wanted = slice_equal(sqlite_column_slice(query, 6), filter->id) && scan_matches(query, filter);
        full = wanted && found->count == max;
        if (full)
            break;
        if (wanted)
            status = keep_found(reading, query, found);
        last = id_place(sqlite3_column_int64(query, 7), seq);
        looked_at++;
        if (status == STATUS_OK)
            status = query_next(reading, QUERY_SCAN_ID, &more);
    }
    sqlite3_reset(query);
    *ret_next = full || looked_at == ROWS_LOOKED_AT_MAX ? last : 0;
    return status;
}

static enum status page_read(const struct reading *reading, const struct job_filter *filter, size_t max, bool with_payload,
                             struct job **ret_jobs, size_t *ret_count, int64_t *ret_next_seq)
{
    struct found found;
    bool brief = filter->brief && !with_payload;
    int64_t next = 0;
    found.count = 0;
    found.jobs = brief ? arena_alloc_array(reading->memory, store_rows_max(max), sizeof *found.jobs) : NULL;
    if (brief && !found.jobs)
        return no_memory(reading);
    enum status status = filter->id.len > 0 ? scan_id(reading, filter, store_rows_max(max), &found, &next)
                                            : scan(reading, filter, store_rows_max(max), &found, &next);
    if (status != STATUS_OK)
        return status;
    struct job *jobs = brief ? found.jobs : arena_alloc_array(reading->memory, found.count, sizeof *jobs);
    if (!jobs)
        return no_memory(reading);
    for (size_t i = 0; !brief && i < found.count && status == STATUS_OK; i++)
        status = job_read(reading, found.seqs[i], with_payload, &jobs[i]);
    if (status != STATUS_OK)
        return status;
    *ret_jobs = jobs;
    *ret_count = found.count;
    *ret_next_seq = next;
    return STATUS_OK;
}

enum status sqlite_reader_jobs(struct store_reader *base, const struct job_filter *filter, size_t max, bool with_payload,
                               struct arena *memory, struct job **ret_jobs, size_t *ret_count, int64_t *ret_next_seq,
                               struct error *err)
{
    struct reading reading = { (struct sqlite_reader *)base, memory, err };
    enum status status = snapshot_begin(&reading);
    if (status == STATUS_OK)
        status = page_read(&reading, filter, max, with_payload, ret_jobs, ret_count, ret_next_seq);
    return snapshot_end(&reading, status);
}

/* ---- Events ---- */

static enum status event_read(const struct reading *reading, sqlite3_stmt *query, void *ret_event)
{
    int64_t type = sqlite3_column_int64(query, 2), state = sqlite3_column_int64(query, 3);
    struct slice hash = sqlite_column_slice(query, 10);
    struct slice salt = sqlite_column_slice(query, 12), digest = sqlite_column_slice(query, 13);
    struct event event = {
        .number = sqlite3_column_int64(query, 0),
        .at = sqlite3_column_int64(query, 1),
        .type = (enum event_type)type,
        .state = (enum job_state)state,
        .attempt = sqlite3_column_int64(query, 4),
        .previous = sqlite3_column_int64(query, 9),
        .form = (enum event_form)sqlite3_column_int(query, 11),
        .erased = digest.len == EVENT_HASH_BYTES,
    };
    bool forms = (salt.len == 0 || salt.len == EVENT_SALT_BYTES) && (digest.len == 0 || event.erased) &&
                 sqlite3_column_int(query, 14) == 0 && (event.form != EVENT_FORM_PLAIN || salt.len + digest.len == 0);
    if (!forms || type <= EVENT_TYPE_NONE || type >= EVENT_TYPE_COUNT || state < STATE_NONE || state >= STATE_COUNT ||
        hash.len != EVENT_HASH_BYTES)
        return error_set(reading->err, STATUS_CORRUPT, "event %lld has impossible values", (long long)event.number);
    memcpy(event.hash, hash.data, EVENT_HASH_BYTES);
    memcpy(event.salt, salt.len ? salt.data : "", salt.len);
    memcpy(event.digest, digest.len ? digest.data : "", digest.len);
    enum status status = copy_text(reading, query, 5, &event.destination);
    if (status == STATUS_OK)
        status = copy_text(reading, query, 6, &event.tenant);
    if (status == STATUS_OK)
        status = copy_text(reading, query, 7, &event.job);
    if (status == STATUS_OK)
        status = copy_text(reading, query, 8, &event.data);
    if (status == STATUS_OK && event.erased && event.data.len + salt.len > 0)
        return error_set(reading->err, STATUS_CORRUPT, "event %lld has data that was erased", (long long)event.number);
    if (status == STATUS_OK)
        *(struct event *)ret_event = event;
    return status;
}

enum status sqlite_reader_events(struct store_reader *base, int64_t after, size_t max, struct arena *memory,
                                 struct event **ret_events, size_t *ret_count, struct error *err)
{
    struct reading reading = { (struct sqlite_reader *)base, memory, err };
    enum query which = reading.reader->queries[QUERY_EVENTS] ? QUERY_EVENTS : QUERY_EVENTS_OLD;
    sqlite3_stmt *query = reading.reader->queries[which];
    struct event *events = arena_alloc_array(memory, store_rows_max(max), sizeof *events);
    sqlite3_bind_int64(query, 1, after);
    sqlite3_bind_int64(query, 2, (int64_t)store_rows_max(max));
    enum status status = page_fill(&reading, which, max, event_read, events, sizeof *events, ret_count);
    if (status == STATUS_OK)
        *ret_events = events;
    return status;
}

/* Walks back from `number`, newest first; stops at what was trimmed. */
static enum status history_walk(const struct reading *reading, int64_t number, size_t max, struct event *events,
                                size_t *count)
{
    assert(*count <= max);
    sqlite3_stmt *query = reading->reader->queries[QUERY_EVENT];
    enum status status = STATUS_OK;
    while (status == STATUS_OK && number > 0 && *count < max) {
        bool found;
        sqlite3_bind_int64(query, 1, number);
        status = query_next(reading, QUERY_EVENT, &found);
        if (status != STATUS_OK || !found)
            break;
        status = event_read(reading, query, &events[*count]);
        sqlite3_reset(query);
        if (status != STATUS_OK)
            break;
        if (events[*count].previous >= number)
            return error_set(reading->err, STATUS_CORRUPT, "event %lld points forward", (long long)number);
        number = events[(*count)++].previous;
    }
    return status;
}

/* An id may have been used again after its job was deleted: those lives come after the present one. */
static enum status history_read(const struct reading *reading, struct slice tenant, struct slice id, size_t max,
                                struct event *events, size_t *count)
{
    assert(max <= STORE_PAGE_MAX);
    sqlite3_stmt *archive = reading->reader->queries[QUERY_ARCHIVE];
    int64_t seq, number;
    enum status status = job_find(reading, tenant, id, &seq, &number);
    if (status == STATUS_OK)
        status = history_walk(reading, number, max, events, count);
    int64_t before = INT64_MAX;
    bool more = true;
    while (status == STATUS_OK && more && *count < max) {
        sqlite3_bind_int64(archive, 1, (int64_t)job_key(tenant, id));
        sqlite_bind_slice(archive, 2, id);
        sqlite_bind_slice(archive, 3, tenant);
        sqlite3_bind_int64(archive, 4, before);
        status = query_next(reading, QUERY_ARCHIVE, &more);
        if (status != STATUS_OK || !more)
            break;
        before = sqlite3_column_int64(archive, 0);
        sqlite3_reset(archive);
        status = history_walk(reading, before, max, events, count);
    }
    return status;
}

enum status sqlite_reader_history(struct store_reader *base, struct slice tenant, struct slice id, size_t max,
                                  struct arena *memory, struct event **ret_events, size_t *ret_count, struct error *err)
{
    struct reading reading = { (struct sqlite_reader *)base, memory, err };
    struct event *events = arena_alloc_array(memory, store_rows_max(max), sizeof *events);
    size_t count = 0;
    if (!events)
        return no_memory(&reading);
    enum status status = snapshot_begin(&reading);
    if (status == STATUS_OK)
        status = history_read(&reading, tenant, id, store_rows_max(max), events, &count);
    status = snapshot_end(&reading, status);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count / 2; i++) {
        struct event swapped = events[i];
        events[i] = events[count - 1 - i];
        events[count - 1 - i] = swapped;
    }
    *ret_events = events;
    *ret_count = count;
    return STATUS_OK;
}

/* ---- Lanes, destinations ---- */

static enum status lane_read(const struct reading *reading, sqlite3_stmt *query, void *ret_lane)
{
    struct lane lane = {
        .id = sqlite3_column_int64(query, 0),
        .counts = {
            .pending = sqlite3_column_int64(query, 3),
            .running = sqlite3_column_int64(query, 4),
            .waiting = sqlite3_column_int64(query, 5),
            .completed = sqlite3_column_int64(query, 6),
            .dead = sqlite3_column_int64(query, 7),
            .cancelled = sqlite3_column_int64(query, 8),
            .ready = sqlite3_column_int64(query, 9),
        },
    };
    enum status status = copy_text(reading, query, 1, &lane.destination);
    if (status == STATUS_OK)
        status = copy_text(reading, query, 2, &lane.tenant);
    if (status == STATUS_OK)
        *(struct lane *)ret_lane = lane;
    return status;
}

enum status sqlite_reader_lanes(struct store_reader *base, int64_t after, size_t max, struct arena *memory,
                                struct lane **ret_lanes, size_t *ret_count, struct error *err)
{
    struct reading reading = { (struct sqlite_reader *)base, memory, err };
    sqlite3_stmt *query = reading.reader->queries[QUERY_LANES];
    struct lane *lanes = arena_alloc_array(memory, store_rows_max(max), sizeof *lanes);
    sqlite3_bind_int64(query, 1, after);
    sqlite3_bind_int64(query, 2, (int64_t)store_rows_max(max));
    enum status status = page_fill(&reading, QUERY_LANES, max, lane_read, lanes, sizeof *lanes, ret_count);
    if (status == STATUS_OK)
        *ret_lanes = lanes;
    return status;
}

enum status sqlite_reader_lane(struct store_reader *base, struct slice destination, struct slice tenant,
                               struct arena *memory, struct lane *ret_lane, struct error *err)
{
    struct reading reading = { (struct sqlite_reader *)base, memory, err };
    sqlite3_stmt *query = reading.reader->queries[QUERY_LANE];
    bool found;
    sqlite_bind_slice(query, 1, destination);
    sqlite_bind_slice(query, 2, tenant);
    enum status status = query_next(&reading, QUERY_LANE, &found);
    if (status == STATUS_OK && !found)
        status = error_set(err, STATUS_NOT_FOUND, "\"%.*s\" has no tenant \"%.*s\"", SLICE_ARG(destination),
                           SLICE_ARG(tenant));
    if (status == STATUS_OK)
        status = lane_read(&reading, query, ret_lane);
    sqlite3_reset(query);
    return status;
}

enum status sqlite_reader_totals(struct store_reader *base, size_t largest_max, struct arena *memory,
                                 struct destination_total **ret_totals, size_t *ret_count, struct error *err)
{
    struct reading reading = { (struct sqlite_reader *)base, memory, err };
    if (!reading.reader->totals)
        return error_set(err, STATUS_UNSUPPORTED, "only the process that writes a store has its totals");
    enum status status = totals_read(reading.reader->totals, largest_max, memory, ret_totals, ret_count);
    return status == STATUS_OK ? status : no_memory(&reading);
}

enum status sqlite_reader_ahead(struct store_reader *base, int64_t lane, int64_t rank, int64_t seq, size_t max,
                                size_t *ret_count, struct error *err)
{
    struct reading reading = { .reader = (struct sqlite_reader *)base, .err = err };
    sqlite3_stmt *query = reading.reader->queries[QUERY_AHEAD];
    bool found;
    sqlite3_bind_int64(query, 1, lane);
    sqlite3_bind_int64(query, 2, rank);
    sqlite3_bind_int64(query, 3, seq);
    sqlite3_bind_int64(query, 4, (int64_t)store_rows_max(max));
    enum status status = query_next(&reading, QUERY_AHEAD, &found);
    if (status == STATUS_OK)
        *ret_count = (size_t)sqlite3_column_int64(query, 0); /* a count is always one row */
    sqlite3_reset(query);
    return status;
}

enum status sqlite_reader_saved(struct store_reader *base, struct slice space, struct slice name, struct arena *memory,
                               struct slice *ret_value, struct error *err)
{
    struct reading reading = { (struct sqlite_reader *)base, memory, err };
    sqlite3_stmt *query = reading.reader->queries[QUERY_SAVED];
    struct slice value;
    bool found;
    sqlite_bind_slice(query, 1, space);
    sqlite_bind_slice(query, 2, name);
    enum status status = query_next(&reading, QUERY_SAVED, &found);
    if (status == STATUS_OK && !found)
        status = error_set(err, STATUS_NOT_FOUND, "nothing is kept of %.*s \"%.*s\"", SLICE_ARG(space), SLICE_ARG(name));
    if (status == STATUS_OK)
        status = copy_text(&reading, query, 0, &value);
    sqlite3_reset(query);
    if (status == STATUS_OK)
        *ret_value = value;
    return status;
}

static enum status saved_read(const struct reading *reading, sqlite3_stmt *query, void *ret_saved)
{
    struct saved *saved = ret_saved;
    enum status status = copy_text(reading, query, 0, &saved->name);
    return status == STATUS_OK ? copy_text(reading, query, 1, &saved->value) : status;
}

enum status sqlite_reader_saved_list(struct store_reader *base, struct slice space, struct slice before, size_t max,
                                    struct arena *memory, struct saved **ret_saved, size_t *ret_count, struct error *err)
{
    struct reading reading = { (struct sqlite_reader *)base, memory, err };
    sqlite3_stmt *query = reading.reader->queries[QUERY_SAVED_LIST];
    struct saved *saved = arena_alloc_array(memory, store_rows_max(max), sizeof *saved);
    sqlite_bind_slice(query, 1, space);
    sqlite_bind_slice(query, 2, before);
    sqlite3_bind_int64(query, 3, (int64_t)store_rows_max(max));
    enum status status = page_fill(&reading, QUERY_SAVED_LIST, max, saved_read, saved, sizeof *saved, ret_count);
    if (status == STATUS_OK)
        *ret_saved = saved;
    return status;
}
