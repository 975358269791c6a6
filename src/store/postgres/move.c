/*
 * All that a database has, read and written as rows of move.h. It has a connection of its own for each page, which costs
 * little beside what a page does, and SQL of its own: a batch's statements are about what a node does.
 */
#include "store/postgres/move.h"

#include "store/postgres/events.h"
#include "store/postgres/work.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { WRITES_MAX = 7, COLUMN_EXTRA = MOVE_COLUMNS_MAX };

/* A statement and the columns of a page that are its parameters, each as an array; COLUMN_EXTRA is what extra_of makes. */
struct write_sql {
    const char *sql;
    signed char columns[POSTGRES_PARAMS_MAX + 1]; /* one more each, so that 0 ends them */
};

/* $1 and $2: the place behind which it goes on, $3: how many, $4: whether it begins. */
struct kind_sql {
    const char *read, *count;
    struct write_sql writes[WRITES_MAX];
};

/* The rows of a page together are no larger than one may be, but for its first. */
#define JOB_PAGE                                                                                                            \
    "(SELECT seq FROM (SELECT seq, sum(octet_length(body)) OVER (ORDER BY seq) - octet_length(body) AS before FROM"         \
    " (SELECT seq, body FROM job WHERE seq > $1 ORDER BY seq LIMIT $3) a) b WHERE before < 8388608)"

#define UNNEST_11 "unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11"

static const struct kind_sql kinds[MOVE_KINDS] = {
    [MOVE_META] = {
        "SELECT name, value FROM (SELECT 'seed'::text AS name, value FROM meta WHERE name = 'seed'"
        " UNION ALL SELECT 'seq', last_value + 4096 FROM job_block"
        " UNION ALL SELECT 'token', last_value + 1048576 FROM token_block) m"
        " WHERE $4 <> 0 OR name > convert_from($1, 'UTF8') ORDER BY name COLLATE \"C\" LIMIT $3",
        "SELECT 3",
        { { "SELECT CASE name WHEN 'seq' THEN setval('job_block', value + 1) ELSE setval('token_block', value + 1) END"
            " FROM unnest($1, $2) x(name, value) WHERE name <> 'seed'", { 1, 2 } },
          { "UPDATE meta SET value = x.value FROM unnest($1, $2) x(name, value)"
            " WHERE meta.name = 'seed' AND x.name = 'seed'", { 1, 2 } } } },
    [MOVE_LANE] = {
        "SELECT l.id, l.destination, l.tenant, l.live::int, c.* FROM lane l CROSS JOIN LATERAL (SELECT"
        " coalesce(sum(pending), 0)::bigint, coalesce(sum(running), 0)::bigint, coalesce(sum(waiting), 0)::bigint,"
        " coalesce(sum(completed), 0)::bigint, coalesce(sum(dead), 0)::bigint, coalesce(sum(cancelled), 0)::bigint,"
        " coalesce(sum(ready), 0)::bigint, coalesce(sum(stored), 0)::bigint FROM lane_count WHERE lane = l.id) c"
        " WHERE l.id > $1 ORDER BY l.id LIMIT $3",
        "SELECT count(*) FROM lane",
        { { "INSERT INTO shard (destination) SELECT DISTINCT d FROM unnest($1) x(d) ON CONFLICT DO NOTHING", { 2 } },
          { "INSERT INTO lane (id, destination, tenant, live, shard) SELECT i, d, t, l <> 0, h.id"
            " FROM unnest($1, $2, $3, $4) x(i, d, t, l) JOIN shard h ON h.destination = d", { 1, 2, 3, 4 } },
          { "INSERT INTO lane_count (lane, slot, pending, running, waiting, completed, dead, cancelled, ready, stored)"
            " SELECT l, 0, p, r, w, c, d, x, y, s FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)"
            " z(l, p, r, w, c, d, x, y, s)", { 1, 5, 6, 7, 8, 9, 10, 11, 12 } } } },
    [MOVE_GONE] = {
        "SELECT destination, completed, cancelled FROM gone WHERE $4 <> 0 OR destination > $1 ORDER BY destination LIMIT $3",
        "SELECT count(*) FROM gone",
        { { "INSERT INTO gone SELECT * FROM unnest($1, $2, $3)", { 1, 2, 3 } } } },
    [MOVE_JOB] = {
        "SELECT j.seq, j.lane, l.tenant, j.id, (j.key IS NULL)::int, j.digest, coalesce(s.state, 1),"
        " coalesce(s.priority, j.priority), coalesce(s.step, 0), coalesce(s.rank, j.rank), coalesce(s.generation, 1),"
        " coalesce(s.attempts, 0), coalesce(s.attempts_total, 0), coalesce(s.retry_count, 0), coalesce(s.step_count, 0),"
        " coalesce(s.redrives_auto, 0), coalesce(s.doubted, 0), j.created_at, s.first_at,"
        " CASE WHEN s.seq IS NULL THEN j.run_at ELSE s.run_at END, CASE WHEN s.seq IS NULL THEN j.deadline ELSE s.deadline"
        " END, coalesce(s.updated_at, j.created_at), s.failed_at, s.look_failed_at, s.dead_at, s.leaves_at,"
        " coalesce(s.last_class, 0), coalesce(s.event, j.event), s.last_code, s.last_error, s.dead_code, s.reference,"
        " (EXISTS (SELECT 1 FROM queue q WHERE q.lane = j.lane AND q.rank = coalesce(s.rank, j.rank) AND q.seq = j.seq))"
        "::int,"
        " e.token, e.until, e.owner, e.at, e.first_at, e.attempts, e.attempts_total, e.event, j.content_type, j.headers,"
        " j.correlation_id, j.metadata, j.body, j.chain, coalesce(s.link, 0), j.order_key, j.callback,"
        " s.redrive"
        " FROM " JOB_PAGE " y JOIN job j ON j.seq = y.seq JOIN lane l ON l.id = j.lane"
        " LEFT JOIN state s ON s.seq = j.seq LEFT JOIN lease e ON e.seq = j.seq ORDER BY j.seq",
        "SELECT count(*) FROM job",
        { { "INSERT INTO job (seq, created_at, run_at, deadline, rank, event, lane, priority, key, digest, id, content_type,"
            " headers, correlation_id, metadata, body, chain, order_key, callback) SELECT * FROM " UNNEST_11
            ", $12, $13, $14, $15, $16, $17, $18, $19)",
            { 1, 18, 20, 21, 10, 28, 2, 8, 1 + COLUMN_EXTRA, 6, 4, 42, 43, 44, 45, 46, 47, 49, 50 } },
          { "INSERT INTO chained (lane, chain, seq) SELECT l, c, s FROM unnest($1, $2, $3, $4) x(l, c, s, state)"
            " WHERE c <> 0 AND state IN (1, 2, 3)", { 2, 47, 1, 7 } },
          /* Of a job that is as it was inserted there is no such row. */
          { "INSERT INTO state (seq, state, priority, step, rank, generation, attempts, attempts_total, retry_count,"
            " step_count, redrives_auto, doubted, first_at, run_at, deadline, updated_at, failed_at, look_failed_at, dead_at,"
            " leaves_at, last_class, event, last_code, last_error, dead_code, reference, link, redrive)"
            " SELECT q, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, r, s, t, u, v, w, x, y, z, link, redrive"
            " FROM " UNNEST_11 ", $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29)"
            " page(q, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, r, s, t, u, v, w, x, y, z, created, link, redrive)"
            " WHERE NOT (a = 1 AND c = 0 AND e = 1 AND f + g + h + i + j + k + u + link = 0 AND l IS NULL AND o = created"
            " AND p IS NULL AND r IS NULL AND s IS NULL AND t IS NULL AND w || x || y || z || redrive = ''::bytea)",
            { 1,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 18, 48,
              51 } },
          { "INSERT INTO queue (lane, rank, seq) SELECT l, r, s FROM unnest($1, $2, $3, $4) x(l, r, s, ready)"
            " WHERE ready = 1", { 2, 10, 1, 33 } },
          { "INSERT INTO timer (shard, at, seq) SELECT l.shard, at, seq FROM (SELECT CASE WHEN state IN (4, 5, 6) THEN"
            " leaves WHEN token IS NOT NULL THEN NULL WHEN ready = 1 OR link & 1 = 1 THEN deadline ELSE least(run, deadline) END AS at,"
            " seq, lane"
            " FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) x(seq, state, leaves, token, ready, deadline, run, lane, link)) t"
            " JOIN lane l ON l.id = t.lane WHERE at IS NOT NULL", { 1, 7, 26, 34, 33, 21, 20, 2, 48 } },
          { "INSERT INTO lease (seq, token, until, owner, at, first_at, attempts, attempts_total, event)"
            " SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) x(s, t, u, o, a, f, n, m, e) WHERE t IS NOT NULL",
            { 1, 34, 35, 36, 37, 38, 39, 40, 41 } } } },
    [MOVE_EVENT] = {
        "SELECT chain, number, at, lane, type, state, attempt, previous, form, hash, salt, digest, destination, job, data"
        " FROM (" EVENTS_AFTER("$2", "$3") ") v WHERE $1 IS NOT NULL ORDER BY number",
        "SELECT coalesce(sum(last - first + 1), 0)::bigint FROM event_page",
        { { "INSERT INTO event_page (first, last, at, form, destination, types, states, lanes, attempts, previous, hashes,"
            " digests, jobs, data) SELECT min(n), max(n), at, form, destination,"
            " string_agg(set_byte(decode('00', 'hex'), 0, type::int), ''::bytea ORDER BY n),"
            " string_agg(set_byte(decode('00', 'hex'), 0, state::int), ''::bytea ORDER BY n),"
            " array_agg(coalesce(lane, 0) ORDER BY n), array_agg(attempt ORDER BY n), array_agg(previous ORDER BY n),"
            " string_agg(hash, ''::bytea ORDER BY n),"
            " CASE WHEN bool_or(digest IS NOT NULL) THEN array_agg(digest ORDER BY n) END,"
            " array_agg(job ORDER BY n), array_agg(coalesce(salt, ''::bytea) || data ORDER BY n)"
            " FROM (SELECT *, n - row_number() OVER w AS run, sum(octet_length(job) + octet_length(data)"
            " + coalesce(octet_length(digest), 0) + 100) OVER w / 7000 AS part FROM " UNNEST_11 /* as of step 11 */
            ", $12, $13, $14) x(n, at, lane, type, state, attempt, previous, form, hash, salt, digest, destination, job, data)"
            " WINDOW w AS (PARTITION BY at, form, destination ORDER BY n)) v GROUP BY at, form, destination, run, part",
            { 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 } } } },
    [MOVE_ARCHIVE] = {
        "SELECT a.event, l.tenant, v.job FROM (SELECT event FROM archive WHERE event > $1 ORDER BY event LIMIT $3) a"
        EVENT_AT("a.event") " JOIN lane l ON l.id = v.lane ORDER BY a.event",
        "SELECT count(*) FROM archive",
        { { "INSERT INTO archive (event, key) SELECT * FROM unnest($1, $2)", { 1, 1 + COLUMN_EXTRA } } } },
    [MOVE_SAVED] = {
        "SELECT space, name, value FROM kept WHERE ($4 <> 0 OR (space, name) > ($1, $2)) AND space <> 'move'"
        " ORDER BY space, name LIMIT $3",
        "SELECT count(*) FROM kept WHERE space <> 'move'",
        { { "INSERT INTO kept (space, name, value) SELECT * FROM unnest($1, $2, $3)", { 1, 2, 3 } } } },
    [MOVE_CHAIN] = {
        "SELECT c.id, c.number, c.hash, t.number, t.hash FROM chain c LEFT JOIN trimmed t ON t.chain = c.id"
        " WHERE c.id > $1 ORDER BY c.id LIMIT $3",
        "SELECT count(*) FROM chain",
        { { "INSERT INTO chain (id, term, batch, number, hash, mark) SELECT i, 0, 0, n, h, m FROM unnest($1, $2, $3, $4)"
            " x(i, n, h, m) ON CONFLICT (id) DO UPDATE SET number = excluded.number, hash = excluded.hash,"
            " mark = excluded.mark", { 1, 2, 3, 1 + COLUMN_EXTRA } },
          { "INSERT INTO trimmed (chain, number, hash) SELECT * FROM unnest($1, $2, $3) x(c, n, h) WHERE n IS NOT NULL",
            { 1, 4, 5 } },
          /* All counters came to the first slot, and its chain tells how much waits in them. */
          { "UPDATE chain c SET waiting = (SELECT coalesce(sum(n.pending + n.waiting), 0) FROM lane_count n"
            " WHERE n.slot = c.id) FROM unnest($1) x(id) WHERE c.id = x.id", { 1 } },
          { "SELECT setval('lane_block', (SELECT coalesce(max(id), 0) + 1 FROM lane), false) FROM unnest($1)", { 1 } } } },
};

static enum status connect(struct store *base, struct postgres_link *link, struct error *err)
{
    assert(base->ops == &postgres_store_ops);
    return link_open(link, ((struct postgres_store *)base)->address,
                     "SET client_min_messages = warning; SET bytea_output = hex; SET enable_seqscan = off; SET jit = off",
                     LINK_ANSWER_MS_ANY, err);
}

static bool is_number(char type)
{
    return type == 'i' || type == 'I';
}

/* One statement with its parameters; the answer is to be cleared. */
static enum status run(struct postgres_link *link, const char *sql, struct postgres_params *params, PGresult **ret_answer,
                       struct error *err)
{
    assert(params->count <= POSTGRES_PARAMS_MAX);
    const char *values[POSTGRES_PARAMS_MAX];
    int lengths[POSTGRES_PARAMS_MAX], formats[POSTGRES_PARAMS_MAX];
    Oid types[POSTGRES_PARAMS_MAX];
    if (params_finish(params, InvalidOid) != STATUS_OK)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a page");
    for (int i = 0; i < params->count; i++) {
        values[i] = params->values[i].data;
        lengths[i] = (int)params->values[i].len;
        formats[i] = 1;
        types[i] = params_type(params->types[i]);
    }
    PGresult *answer = PQexecParams(link->conn, sql, params->count, types, values, lengths, formats, 1);
    ExecStatusType is = PQresultStatus(answer);
    if (is == PGRES_TUPLES_OK || is == PGRES_COMMAND_OK) {
        *ret_answer = answer;
        return STATUS_OK;
    }
    const char *why = PQresultErrorMessage(answer);
    enum status status = error_set(err, PQstatus(link->conn) == CONNECTION_OK ? STATUS_IO : STATUS_AWAY,
                                   "PostgreSQL: %.400s", why[0] ? why : PQerrorMessage(link->conn));
    PQclear(answer);
    return status;
}

/* ---- reading ---- */

static enum status row_read(const PGresult *answer, int row, const char *types, struct arena *memory,
                            struct move_value *ret_row)
{
    for (int i = 0; types[i]; i++) {
        ret_row[i] = (struct move_value){ .bytes = SLICE("") };
        bool may_be_null = types[i] == 'I' || types[i] == 'T' || types[i] == 'X';
        ret_row[i].null = may_be_null && PQgetisnull(answer, row, i);
        if (is_number(types[i]))
            ret_row[i].number = value_int(answer, row, i);
        else if (value_copy(answer, row, i, memory, &ret_row[i].bytes) != STATUS_OK)
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static enum status rows_read(const PGresult *answer, enum move_kind kind, struct arena *memory, struct move_page *ret_page,
                             struct error *err)
{
    const char *types = move_kind_facts(kind)->types;
    struct move_page page = { .count = (size_t)PQntuples(answer), .columns = (int)strlen(types) };
    assert(PQnfields(answer) == page.columns);
    enum status status = STATUS_OK;
    page.values = arena_alloc_array(memory, page.count * (size_t)page.columns + 1, sizeof *page.values);
    if (!page.values)
        status = STATUS_NO_MEMORY;
    for (size_t i = 0; i < page.count && status == STATUS_OK; i++)
        status = row_read(answer, (int)i, types, memory, &page.values[i * (size_t)page.columns]);
    if (status != STATUS_OK)
        return error_set(err, status, "no memory for a page of %s", move_kind_facts(kind)->name);
    *ret_page = page;
    return STATUS_OK;
}

/* The parameters that a text names: it may leave out the last, and any between. */
static void keys_put(struct postgres_params *params, const struct move_kind_facts *facts, const struct move_value *after)
{
    assert(params->count == 4);
    for (int i = 0; i < 2; i++) {
        const struct move_value *value = after && i < facts->keys ? &after[i] : NULL;
        if (params->types[i] == 'i')
            params_int(params, i, value ? value->number : -1);
        else
            params_bytes(params, i, value ? value->bytes : SLICE(""));
    }
    params_int(params, 2, MOVE_PAGE_ROWS);
    params_int(params, 3, after == NULL);
}

static enum status move_read(struct store *base, enum move_kind kind, const struct move_value *after, struct arena *memory,
                             struct move_page *ret_page, struct error *err)
{
    const struct move_kind_facts *facts = move_kind_facts(kind);
    struct postgres_link link = { 0 };
    struct postgres_params params = { 0 };
    PGresult *answer;
    params_begin(&params, is_number(facts->types[0]) ? "iiii" : "bbii");
    keys_put(&params, facts, after);
    enum status status = connect(base, &link, err);
    if (status == STATUS_OK)
        status = run(&link, kinds[kind].read, &params, &answer, err);
    if (status == STATUS_OK) {
        status = rows_read(answer, kind, memory, ret_page, err);
        PQclear(answer);
    }
    params_release(&params);
    link_close(&link);
    return status;
}

static enum status move_count(struct store *base, enum move_kind kind, int64_t *ret_count, struct error *err)
{
    struct postgres_link link = { 0 };
    PGresult *answer;
    enum status status = connect(base, &link, err);
    if (status == STATUS_OK)
        status = link_ask(&link, kinds[kind].count, &answer, err);
    if (status == STATUS_OK) {
        *ret_count = strtoll(PQgetvalue(answer, 0, 0), NULL, 10);
        PQclear(answer);
    }
    link_close(&link);
    return status;
}

/* ---- writing ---- */

/* What stands beside the columns: the key of a name, or the mark of a head. */
static void extra_put(struct postgres_params *params, int place, const struct postgres_store *store, enum move_kind kind,
                      const struct move_value *row)
{
    unsigned char bytes[EVENT_HASH_BYTES];
    size_t len = KEY_BYTES;
    if (kind == MOVE_JOB && row[MOVE_JOB_MADE].number) {
        params_null(params, place);
        return;
    }
    if (kind == MOVE_JOB) {
        name_key(row[MOVE_JOB_TENANT].bytes, row[MOVE_JOB_ID].bytes, bytes);
    } else if (kind == MOVE_ARCHIVE) {
        name_key(row[MOVE_ARCHIVE_TENANT].bytes, row[MOVE_ARCHIVE_ID].bytes, bytes);
    } else {
        struct trail_head head = { .number = row[1].number };
        memcpy(head.hash, row[2].bytes.data, row[2].bytes.len < sizeof head.hash ? row[2].bytes.len : sizeof head.hash);
        trail_head_mark(store->seals.key, &head, bytes);
        len = EVENT_HASH_BYTES;
    }
    params_bytes(params, place, (struct slice){ (const char *)bytes, len });
}

static enum status rows_write(const struct postgres_store *store, struct postgres_link *link, const struct write_sql *write,
                              enum move_kind kind, const struct move_page *page, struct error *err)
{
    const char *types = move_kind_facts(kind)->types;
    struct postgres_params params = { 0 };
    char letters[POSTGRES_PARAMS_MAX + 1] = "";
    PGresult *answer;
    for (int i = 0; write->columns[i]; i++) {
        assert(i < POSTGRES_PARAMS_MAX);
        int column = write->columns[i] - 1;
        letters[i] = column != COLUMN_EXTRA && is_number(types[column]) ? 'I' : 'B';
    }
    params_begin(&params, letters);
    for (size_t i = 0; i < page->count; i++) {
        const struct move_value *row = &page->values[i * (size_t)page->columns];
        for (int j = 0; write->columns[j]; j++) {
            int column = write->columns[j] - 1;
            if (column == COLUMN_EXTRA)
                extra_put(&params, j, store, kind, row);
            else if (row[column].null)
                params_null(&params, j);
            else if (letters[j] == 'I')
                params_int(&params, j, row[column].number);
            else
                params_bytes(&params, j, row[column].bytes);
        }
    }
    enum status status = run(link, write->sql, &params, &answer, err);
    if (status == STATUS_OK)
        PQclear(answer);
    params_release(&params);
    return status;
}

static enum status note_write(struct postgres_link *link, struct slice note, struct error *err)
{
    static const char write[] = "INSERT INTO kept VALUES ($1, $2, $3) ON CONFLICT (space, name) DO UPDATE SET value = $3";
    struct postgres_params params = { 0 };
    PGresult *answer;
    params_begin(&params, note.len > 0 ? "bbb" : "bb");
    params_bytes(&params, 0, SPACE_MOVE);
    params_bytes(&params, 1, MOVE_NOTE);
    if (note.len > 0)
        params_bytes(&params, 2, note);
    enum status status =
        run(link, note.len > 0 ? write : "DELETE FROM kept WHERE space = $1 AND name = $2", &params, &answer, err);
    if (status == STATUS_OK)
        PQclear(answer);
    params_release(&params);
    return status;
}

/* What is not committed when the connection is closed is undone. */
static enum status move_write(struct store *base, enum move_kind kind, const struct move_page *page, struct slice note,
                              struct error *err)
{
    assert(note.len > 0);
    struct postgres_link link = { 0 };
    enum status status = connect(base, &link, err);
    if (status == STATUS_OK)
        status = link_run(&link, "BEGIN", err);
    for (int i = 0; i < WRITES_MAX && kinds[kind].writes[i].sql && status == STATUS_OK; i++)
        status = rows_write((const struct postgres_store *)base, &link, &kinds[kind].writes[i], kind, page, err);
    if (status == STATUS_OK)
        status = note_write(&link, note, err);
    if (status == STATUS_OK)
        status = link_run(&link, "COMMIT", err);
    link_close(&link);
    return status;
}

static enum status move_end(struct store *base, struct error *err)
{
    struct postgres_link link = { 0 };
    enum status status = connect(base, &link, err);
    if (status == STATUS_OK)
        status = note_write(&link, (struct slice){ "", 0 }, err);
    link_close(&link);
    return status;
}

const struct move_ops postgres_move_ops = { .read = move_read, .count = move_count, .write = move_write, .end = move_end };
