#include "store/postgres/link.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what failures mean ---- */

/* One line, without what libpq puts before it. */
static void message_of(const char *text, char *ret_line, size_t size)
{
    assert(size > 0);
    static const char severity[] = "ERROR:";
    const char *from = text ? text : "";
    if (strncmp(from, severity, sizeof severity - 1) == 0)
        from += sizeof severity - 1;
    while (*from == ' ' || *from == '\n')
        from++;
    size_t len = strlen(from);
    while (len > 0 && (from[len - 1] == '\n' || from[len - 1] == ' '))
        len--;
    snprintf(ret_line, size, "%.*s", (int)(len < size ? len : size - 1), from);
    for (char *c = ret_line; *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = ' ';
}

static enum status away(struct postgres_link *link, const char *what, struct error *err)
{
    char line[300];
    message_of(link->conn ? PQerrorMessage(link->conn) : "", line, sizeof line);
    link_close(link);
    return error_set(err, STATUS_AWAY, "PostgreSQL is away: %s", line[0] ? line : what);
}

/* By the first letters of an SQLSTATE, the more exact ones first. */
static enum status status_of(const char *state)
{
    assert(state);
    static const struct {
        const char *prefix;
        enum status status;
    } table[] = {
        { "IN001", STATUS_FENCED },  /* the store's own: another writer has taken the chain */
        { "IN002", STATUS_BUSY },    /* likewise: a lane is gone */
        { "53100", STATUS_FULL },    /* disk_full */
        { "53200", STATUS_FULL },    /* out_of_memory, at the server */
        { "53", STATUS_AWAY },       /* too many connections, and other want of resources */
        { "57014", STATUS_BUSY },    /* query_canceled: by hand, or its time was over */
        { "57", STATUS_AWAY },       /* shutdown, cannot connect now */
        { "08", STATUS_AWAY },       /* connection exceptions */
        /*
         * Invalid transaction states: it is a standby now (25006), has waited too long (25P03, 25P04), or failed before and
         * was not ended (25P02). Whatever it is, a new connection is in none.
         */
        { "25", STATUS_AWAY },
        { "40", STATUS_BUSY },       /* deadlock, serialization failure */
        { "55P03", STATUS_BUSY },    /* lock_not_available */
        { "23505", STATUS_BUSY },    /* unique_violation: somebody else was quicker */
        { "22012", STATUS_BUSY },    /* division_by_zero: ALL_OF found less than all */
        { "XX001", STATUS_CORRUPT }, /* data_corrupted */
        { "XX002", STATUS_CORRUPT }, /* index_corrupted */
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strncmp(state, table[i].prefix, strlen(table[i].prefix)) == 0)
            return table[i].status;
    return STATUS_IO;
}

static enum status refusal(struct postgres_link *link, const PGresult *answer, struct error *err)
{
    const char *state = PQresultErrorField(answer, PG_DIAG_SQLSTATE);
    const char *primary = PQresultErrorField(answer, PG_DIAG_MESSAGE_PRIMARY);
    char line[300];
    if (!state)
        return away(link, "the connection broke", err);
    enum status status = status_of(state);
    link->lane_gone = strcmp(state, "IN002") == 0;
    link->clashed = link->lane_gone || strncmp(state, "40", 2) == 0 || strcmp(state, "23505") == 0 ||
                    strcmp(state, "22012") == 0;
    message_of(primary, line, sizeof line);
    if (status == STATUS_AWAY)
        link_close(link);
    /* Which they are that depend on something. Other details may have what is in rows, and that is told nowhere. */
    const char *detail = strcmp(state, "2BP01") == 0 ? PQresultErrorField(answer, PG_DIAG_MESSAGE_DETAIL) : NULL;
    return error_set(err, status, "PostgreSQL %s: %s (%s)%s%.200s", status == STATUS_AWAY ? "is away" : "refused", line,
                     state, detail ? ": " : "", detail ? detail : "");
}

/* ---- opening ---- */

static void ignore_notice(void *context, const PGresult *notice)
{
    (void)context;
    (void)notice;
}

/*
 * What may be set otherwise for the role, the database or the server, and would change what statements mean, or end them.
 * The schema is the first of the search_path that has a store, else its first: nobody else's table is taken for one of it,
 * and all who find the store, by one path or another, know its locks by one name.
 */
static const char every_session[] =
    "SET statement_timeout = 0; SET lock_timeout = 0; SET standard_conforming_strings = on;"
    /* As the client does: of a machine that died the server hears nothing, and would keep its locks for hours. */
    " SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; SET tcp_user_timeout = 10000;"
    " SELECT set_config(name, '0', false) FROM pg_settings" /* not every version has them */
    " WHERE name IN ('idle_session_timeout', 'transaction_timeout');"
    " SELECT set_config('search_path', coalesce(quote_ident(coalesce((SELECT s FROM unnest(current_schemas(false))"
    " WITH ORDINALITY p(s, place) WHERE to_regclass(quote_ident(s) || '.lane_count') IS NOT NULL ORDER BY place LIMIT 1),"
    " current_schema())), ''), false)";

/* What a person can do about the server's own words. */
static void advise(struct error *err)
{
    static const struct { const char *words, *advice; } table[] = {
        { "password authentication failed", "the password stands in the address, in PGPASSWORD or in ~/.pgpass" },
        { "no password supplied", "the password stands in the address, in PGPASSWORD or in ~/.pgpass" },
        { "no pg_hba.conf entry", "pg_hba.conf of the server says who may connect from where" },
        { "session is read-only", "the server is a standby, or default_transaction_read_only is set for the role or database" },
        { "FATAL:  database \"", "createdb makes one" },
        { "FATAL:  role \"", "createuser makes one" },
    };
    size_t len = strlen(err->text);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strstr(err->text, table[i].words)) {
            snprintf(err->text + len, sizeof err->text - len, "; %s", table[i].advice);
            return;
        }
}

enum status link_open(struct postgres_link *link, const char *address, const char *settings, int answer_ms_max,
                      struct error *err)
{
    /* What stands before the address yields to it, what stands behind it does not. */
    static const char *const keywords[] = {
        "connect_timeout",  "target_session_attrs",      "keepalives_idle", "keepalives_interval", "keepalives_count",
        "tcp_user_timeout", "fallback_application_name", "dbname",          "client_encoding",     NULL
    };
    const char *const values[] = { "3", "read-write", "5", "2", "3", "10000", "insist", address, "UTF8", NULL };
    *link = (struct postgres_link){ .answer_ms_max = answer_ms_max };
    link->conn = PQconnectdbParams(keywords, values, 1);
    if (!link->conn)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a connection");
    if (PQstatus(link->conn) != CONNECTION_OK) {
        enum status status = away(link, "it cannot be reached", err);
        advise(err);
        return status;
    }
    PQsetNoticeReceiver(link->conn, ignore_notice, NULL);
    enum status status = PQsetnonblocking(link->conn, 1) == 0 ? link_run(link, every_session, err)
                                                              : away(link, "it cannot be waited for", err);
    if (status == STATUS_OK)
        status = link_run(link, settings, err);
    if (status != STATUS_OK)
        link_close(link);
    return status;
}

void link_close(struct postgres_link *link)
{
    PQfinish(link->conn); /* takes NULL */
    link->conn = NULL;
    link->awaited = link->syncs = 0;
    link->ended = false;
}

/* ---- waiting ---- */

/* Until the next answer is whole. */
static enum status wait_for_answer(struct postgres_link *link, struct error *err)
{
    assert(link->answer_ms_max > 0);
    int64_t until_ns = clock_ticks_ns() + (int64_t)link->answer_ms_max * 1000000;
    while (PQisBusy(link->conn)) {
        int unsent = PQflush(link->conn);
        int64_t left_ms = (until_ns - clock_ticks_ns()) / 1000000;
        struct pollfd wait = { .fd = PQsocket(link->conn), .events = (short)(POLLIN | (unsent > 0 ? POLLOUT : 0)) };
        if (unsent < 0 || wait.fd < 0)
            return away(link, "the connection broke", err);
        if (left_ms <= 0) {
            link_close(link);
            return error_set(err, STATUS_AWAY,
                             "PostgreSQL is away: it did not answer for %d s, as when a standby for which commits wait"
                             " is gone", link->answer_ms_max / 1000);
        }
        if (poll(&wait, 1, left_ms < 1000 ? (int)left_ms : 1000) < 0 && errno != EINTR)
            return away(link, strerror(errno), err);
        if (wait.revents != 0 && PQconsumeInput(link->conn) != 1)
            return away(link, "the connection broke", err);
    }
    return STATUS_OK;
}

static enum status result_next(struct postgres_link *link, PGresult **ret_result, struct error *err)
{
    assert(link->conn);
    enum status status = wait_for_answer(link, err);
    if (status == STATUS_OK)
        *ret_result = PQgetResult(link->conn);
    return status;
}

/* ---- asking, outside of the pipeline ---- */

enum status link_ask(struct postgres_link *link, const char *sql, PGresult **ret_answer, struct error *err)
{
    assert(link->conn && link->awaited == 0 && PQpipelineStatus(link->conn) == PQ_PIPELINE_OFF);
    PGresult *answer = NULL, *next;
    enum status status = PQsendQuery(link->conn, sql) == 1 ? STATUS_OK : away(link, "a statement cannot be sent", err);
    while (status == STATUS_OK && (status = result_next(link, &next, err)) == STATUS_OK && next) {
        PQclear(answer); /* of several the last, which is the failure if there is one */
        answer = next;
    }
    if (status != STATUS_OK) {
        PQclear(answer);
        return status;
    }
    ExecStatusType is = PQresultStatus(answer);
    if (is == PGRES_TUPLES_OK || is == PGRES_COMMAND_OK || is == PGRES_EMPTY_QUERY) {
        *ret_answer = answer;
        return STATUS_OK;
    }
    status = answer ? refusal(link, answer, err) : away(link, "the connection broke", err);
    PQclear(answer);
    return status;
}

enum status link_run(struct postgres_link *link, const char *sql, struct error *err)
{
    PGresult *answer;
    enum status status = link_ask(link, sql, &answer, err);
    if (status == STATUS_OK)
        PQclear(answer);
    return status;
}

static void text_copy(const PGresult *answer, int column, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "%s", PQgetvalue(answer, 0, column));
}

enum status link_server(struct postgres_link *link, struct postgres_server *ret_server, struct error *err)
{
    PGresult *answer;
    enum status status =
        link_ask(link,
                 "SELECT current_setting('server_version_num'), pg_backend_pid(), coalesce(current_schema(), ''),"
                 " current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),"
                 " current_database()",
                 &answer, err);
    if (status != STATUS_OK)
        return status;
    ret_server->version = strtoll(PQgetvalue(answer, 0, 0), NULL, 10);
    ret_server->backend_pid = strtoll(PQgetvalue(answer, 0, 1), NULL, 10);
    text_copy(answer, 2, ret_server->schema, sizeof ret_server->schema);
    text_copy(answer, 3, ret_server->synchronous_commit, sizeof ret_server->synchronous_commit);
    text_copy(answer, 4, ret_server->fsync, sizeof ret_server->fsync);
    text_copy(answer, 5, ret_server->full_page_writes, sizeof ret_server->full_page_writes);
    text_copy(answer, 6, ret_server->database, sizeof ret_server->database);
    PQclear(answer);
    return STATUS_OK;
}

/* ---- sending ---- */

static enum status prepare(struct postgres_link *link, enum postgres_statement statement, struct error *err)
{
    const struct postgres_text *text = postgres_text(statement);
    Oid types[POSTGRES_PARAMS_MAX];
    int count = params_count(text->types);
    for (int i = 0; i < count; i++)
        types[i] = params_type(text->types[i]);
    if (PQsendPrepare(link->conn, text->name, text->sql, count, types) != 1)
        return away(link, "a statement cannot be prepared", err);
    link->awaited++;
    return STATUS_OK;
}

/* Types are numbered by each database for itself. */
static enum status row_types_ask(struct postgres_link *link, enum postgres_statement first, enum postgres_statement last,
                                 struct error *err)
{
    enum status status = STATUS_OK;
    for (enum postgres_statement i = first; i <= last && status == STATUS_OK; i++) {
        char sql[100];
        PGresult *answer;
        if (!postgres_row(i))
            continue;
        snprintf(sql, sizeof sql, "SELECT '%s'::regtype::oid", postgres_row(i));
        status = link_ask(link, sql, &answer, err);
        if (status != STATUS_OK)
            break;
        link->row_types[i] = (Oid)strtoul(PQgetvalue(answer, 0, 0), NULL, 10);
        PQclear(answer);
    }
    return status;
}

enum status link_prepare(struct postgres_link *link, enum postgres_statement first, enum postgres_statement last,
                         struct error *err)
{
    assert(link->awaited == 0 && first <= last && last < POSTGRES_STATEMENTS);
    enum status status = row_types_ask(link, first, last, err);
    if (status != STATUS_OK)
        return status;
    if (PQenterPipelineMode(link->conn) != 1)
        return away(link, "the pipeline cannot be entered", err);
    for (enum postgres_statement i = first; i <= last && status == STATUS_OK; i++)
        status = prepare(link, i, err);
    if (status == STATUS_OK)
        status = link_flush(link, true, err);
    return status == STATUS_OK ? link_drain(link, err) : status;
}

enum status link_send(struct postgres_link *link, enum postgres_statement statement, struct postgres_params *params,
                      struct error *err)
{
    const struct postgres_text *text = postgres_text(statement);
    const char *values[POSTGRES_PARAMS_MAX];
    int lengths[POSTGRES_PARAMS_MAX], formats[POSTGRES_PARAMS_MAX];
    int count = params ? params->count : 0;
    assert(count == params_count(text->types));
    assert(!link->ended);
    if (!link->conn)
        return error_set(err, STATUS_AWAY, "PostgreSQL is away: there is no connection");
    if (params && params_finish(params, link->row_types[statement]) != STATUS_OK)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a statement");
    for (int i = 0; i < count; i++) {
        values[i] = params->values[i].data;
        lengths[i] = (int)params->values[i].len;
        formats[i] = 1;
    }
    if (PQsendQueryPrepared(link->conn, text->name, count, values, lengths, formats, 1) != 1)
        return away(link, "a statement cannot be sent", err);
    link->awaited++;
    return STATUS_OK;
}

enum status link_flush(struct postgres_link *link, bool ends, struct error *err)
{
    if (!link->conn)
        return error_set(err, STATUS_AWAY, "PostgreSQL is away: there is no connection");
    if (PQpipelineSync(link->conn) != 1 || PQflush(link->conn) < 0)
        return away(link, "the connection broke", err);
    link->syncs++;
    link->ended = ends;
    return STATUS_OK;
}

/* ---- answers ---- */

/* The next answer that is not the end of what was sent before a synchronisation. */
static enum status answer_next(struct postgres_link *link, PGresult **ret_answer, struct error *err)
{
    enum status status = result_next(link, ret_answer, err);
    while (status == STATUS_OK && *ret_answer && PQresultStatus(*ret_answer) == PGRES_PIPELINE_SYNC) {
        assert(link->syncs > 0);
        link->syncs--;
        PQclear(*ret_answer);
        status = result_next(link, ret_answer, err);
    }
    return status;
}

enum status link_answer(struct postgres_link *link, PGresult **ret_answer, struct error *err)
{
    if (!link->conn)
        return error_set(err, STATUS_AWAY, "PostgreSQL is away: there is no connection");
    assert(link->awaited > 0);
    PGresult *answer = NULL, *end = NULL;
    enum status status = answer_next(link, &answer, err);
    if (status != STATUS_OK)
        return status;
    if (!answer)
        return away(link, "an answer is missing", err);
    link->awaited--;
    ExecStatusType is = PQresultStatus(answer);
    status = result_next(link, &end, err); /* each answer is followed by a NULL */
    PQclear(end);
    if (status == STATUS_OK && is != PGRES_TUPLES_OK && is != PGRES_COMMAND_OK)
        status = is == PGRES_PIPELINE_ABORTED
                     ? error_set(err, STATUS_BUSY, "PostgreSQL skipped a statement after one that failed")
                     : refusal(link, answer, err);
    if (status == STATUS_OK)
        *ret_answer = answer;
    else
        PQclear(answer);
    return status;
}

enum status link_drain(struct postgres_link *link, struct error *err)
{
    struct error failed = { .status = STATUS_OK }, next;
    while (link->conn && link->awaited > 0) {
        PGresult *answer = NULL;
        if (link_answer(link, &answer, &next) == STATUS_OK)
            PQclear(answer);
        else if (failed.status == STATUS_OK) /* a connection that breaks behind it has undone the rest */
            failed = next;
    }
    while (link->conn && link->syncs > 0) {
        PGresult *sync = NULL;
        enum status status = result_next(link, &sync, &next);
        if (status != STATUS_OK && failed.status == STATUS_OK)
            failed = next;
        if (status == STATUS_OK && PQresultStatus(sync) == PGRES_PIPELINE_SYNC)
            link->syncs--;
        PQclear(sync);
    }
    link->ended = false;
    if (!link->conn && failed.status == STATUS_OK)
        error_set(&failed, STATUS_AWAY, "PostgreSQL is away: there is no connection");
    if (failed.status != STATUS_OK && err)
        *err = failed;
    return failed.status;
}

enum status link_rollback(struct postgres_link *link, struct error *err)
{
    struct error ignored;
    enum status status = link_flush(link, true, err);
    if (status == STATUS_OK && link_drain(link, &ignored) == STATUS_AWAY)
        return error_set(err, STATUS_AWAY, "%.500s", ignored.text);
    if (status == STATUS_OK)
        status = link_send(link, WRITE_ROLLBACK, NULL, err);
    if (status == STATUS_OK)
        status = link_flush(link, true, err);
    return status == STATUS_OK ? link_drain(link, err) : status;
}
