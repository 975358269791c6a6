/*
 * link.h - one connection to the server: statements go out in a pipeline, answers come back in their order.
 *
 * libpq never blocks here: what it cannot send yet waits in its memory while answers are read, so that neither side waits
 * for the other. An answer that does not come in time ends the connection, as does whatever breaks it: STATUS_AWAY.
 * Also a commit may never be answered, while a standby for which the server waits is gone.
 */
#ifndef STORE_POSTGRES_LINK_H
#define STORE_POSTGRES_LINK_H

#include "store/postgres/params.h"
#include "store/postgres/statement.h"

#include <limits.h>

/* For how long an answer is waited for. */
enum {
    LINK_ANSWER_MS = 30000,
    LINK_ANSWER_MS_BACK = 10000, /* by who asks again if there is none */
    LINK_ANSWER_MS_ANY = INT_MAX, /* of what takes its time in a large store, at the start or for a person */
};

struct postgres_link {
    PGconn *conn;   /* NULL: it is closed */
    size_t awaited; /* answers to statements, not yet taken */
    size_t syncs;   /* likewise to synchronisations */
    bool ended;     /* nothing is sent before all of these are taken */
    int answer_ms_max;
    Oid row_types[POSTGRES_STATEMENTS]; /* of those that take rows, as this database numbers them */
    bool lane_gone; /* the last failure was a lane that another node has deleted */
    bool clashed; /* the last failure was that somebody else was quicker: the same, once more, may go well */
};

/* What the server is, from the first connection's answers. */
struct postgres_server {
    int64_t version;
    int64_t backend_pid;
    char schema[64]; /* in which the tables are, or will be; empty: none */
    char synchronous_commit[16];
    char fsync[8], full_page_writes[8];
    char database[64];
};

/* `address` is a URL or a connection string as libpq takes them. STATUS_AWAY: it cannot be reached. */
enum status link_open(struct postgres_link *link, const char *address, const char *settings, int answer_ms_max,
                      struct error *err) MUST_CHECK;
void link_close(struct postgres_link *link);
enum status link_server(struct postgres_link *link, struct postgres_server *ret_server, struct error *err) MUST_CHECK;

/* Any number of statements in plain SQL, outside of the pipeline, while nothing is awaited. */
enum status link_run(struct postgres_link *link, const char *sql, struct error *err) MUST_CHECK;
/* The same for one statement with an answer in text, to be cleared. */
enum status link_ask(struct postgres_link *link, const char *sql, PGresult **ret_answer, struct error *err) MUST_CHECK;
/* From here on there is the pipeline, for these statements. */
enum status link_prepare(struct postgres_link *link, enum postgres_statement first, enum postgres_statement last,
                         struct error *err) MUST_CHECK;

/* Sends a statement; its answer is awaited. `params` NULL: it takes none. */
enum status link_send(struct postgres_link *link, enum postgres_statement statement, struct postgres_params *params,
                      struct error *err) MUST_CHECK;
/*
 * The server answers all that was sent so far, and waits for more: in a transaction not for longer than its limit to those
 * that are idle, which counts from a synchronisation alone. With `ends`, nothing more follows before all answers are taken.
 */
enum status link_flush(struct postgres_link *link, bool ends, struct error *err) MUST_CHECK;
/* The next answer. A statement that failed is a failure here: what it means for a store. To be cleared. */
enum status link_answer(struct postgres_link *link, PGresult **ret_answer, struct error *err) MUST_CHECK;
/* All answers up to the last synchronisation, thrown away; the first failure is the result. */
enum status link_drain(struct postgres_link *link, struct error *err) MUST_CHECK;
/* After a failure that is not STATUS_AWAY: the transaction is undone and the pipeline empty again. */
enum status link_rollback(struct postgres_link *link, struct error *err) MUST_CHECK;

#endif
