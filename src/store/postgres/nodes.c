/*
 * The sessions of nodes that share the store, on a connection that only the thread which beats uses: it must not wait for a
 * batch, nor a batch for it.
 */
#include "base/clock.h"
#include "store/postgres/tend.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    SLOTS_MAX = TRAIL_CHAINS_MAX - 1, /* the first chain is that of one that has the store for itself */
    NODE_ANSWER_MS_MAX = 2500,
    SILENCE_MS = 6000, /* of a node of the same name elsewhere, before it is taken for dead */
    SILENCE_LOOK_MS = 250,
    BEGIN_BYTES = 4096,
    BACK_WITHIN_MS = 1000, /* between two beats: of a longer silence no more is made up for at once */
};

void postgres_node_release(struct postgres_node *node)
{
    link_close(&node->link);
    params_release(&node->params);
    buffer_release(&node->bell.text);
    free(node->name);
    free(node->url);
    free(node->place);
}

/* ---- beginning, on the writer's connection ---- */

/* Bytes as a constant of SQL. */
static void literal(struct buffer *sql, const char *text)
{
    buffer_append_text(sql, "'\\x");
    for (const char *c = text; *c; c++)
        buffer_printf(sql, "%02x", (unsigned char)*c);
    buffer_append_text(sql, "'::bytea");
}

static void pause_ms(long ms)
{
    assert(ms >= 0 && ms < 1000);
    struct timespec wait = { .tv_nsec = ms * 1000000L };
    nanosleep(&wait, NULL);
}

/* A node of this name, as its row has it. */
struct namesake {
    int64_t slot, session, beat;
    bool is_gone; /* its process was here, and there is one here now: this one */
};

static enum status namesake_read(struct postgres_store *store, struct namesake *ret_namesake, struct error *err)
{
    const struct postgres_node *node = &store->node;
    struct buffer sql;
    PGresult *answer;
    buffer_init(&sql, BEGIN_BYTES);
    buffer_append_text(&sql, "SELECT slot, session, beat, place <> '' AND place = ");
    literal(&sql, node->place);
    buffer_append_text(&sql, " FROM node WHERE name = ");
    literal(&sql, node->name);
    enum status status = buffer_status(&sql) == STATUS_OK ? link_ask(&store->link, sql.data, &answer, err)
                                                          : error_set(err, STATUS_LIMIT, "the node's name is too long");
    buffer_release(&sql);
    if (status != STATUS_OK)
        return status;
    *ret_namesake = (struct namesake){ 0 };
    if (PQntuples(answer) > 0)
        *ret_namesake = (struct namesake){ .slot = strtoll(PQgetvalue(answer, 0, 0), NULL, 10),
                                           .session = strtoll(PQgetvalue(answer, 0, 1), NULL, 10),
                                           .beat = strtoll(PQgetvalue(answer, 0, 2), NULL, 10),
                                           .is_gone = PQgetvalue(answer, 0, 3)[0] == 't' };
    PQclear(answer);
    return STATUS_OK;
}

static enum status namesake_end(struct postgres_store *store, const struct namesake *namesake, bool in_order, instant now,
                                struct error *err)
{
    assert(namesake->session > 0);
    char sql[128], at[24] = "NULL";
    if (!in_order)
        snprintf(at, sizeof at, "%" PRId64, now);
    snprintf(sql, sizeof sql, "SELECT insist_end(%" PRId64 ", %" PRId64 ", %s)", namesake->session, namesake->beat, at);
    return link_run(&store->link, sql, err);
}

/* Another process has this name: if it lives, this one must not; if it does not, its session is over. */
static enum status namesake_outlast(struct postgres_store *store, struct namesake *namesake, instant now, struct error *err)
{
    assert(namesake->session > 0 && !namesake->is_gone);
    struct namesake later = *namesake;
    enum status status = STATUS_OK;
    int64_t until_ns = clock_ticks_ns() + (int64_t)SILENCE_MS * 1000000;
    while (status == STATUS_OK && later.session == namesake->session && clock_ticks_ns() < until_ns) {
        pause_ms(SILENCE_LOOK_MS);
        status = namesake_read(store, &later, err);
        if (status == STATUS_OK && later.session == namesake->session && later.beat != namesake->beat)
            return error_set(err, STATUS_BUSY,
                             "a node of the name \"%s\" is running; each needs a name of its own (node.name)",
                             store->node.name);
    }
    if (status == STATUS_OK && later.session == namesake->session)
        status = namesake_end(store, namesake, false, now, err);
    return status;
}

static enum status namesakes_end(struct postgres_store *store, instant now, struct error *err)
{
    assert(store->shared);
    struct namesake namesake;
    for (;;) {
        enum status status = namesake_read(store, &namesake, err);
        if (status != STATUS_OK || namesake.session == 0)
            return status;
        if (namesake.is_gone || namesake.session == store->base.session)
            status = namesake_end(store, &namesake, true, now, err);
        else
            status = namesake_outlast(store, &namesake, now, err);
        if (status != STATUS_OK)
            return status;
    }
}

/*
 * A new name takes the row of a node that is long gone, of whose sessions nobody knows any more, and goes on with its chain
 * and its counters: names that come once, as those of containers do, leave no rows. Else it has a slot of its own, while
 * there are any: more chains than these nobody follows. Then it goes on with the one whose node ended longest ago; what that
 * one might still write is refused as ever, since the end of its session took the chain from it.
 */
static void row_take(struct buffer *sql, const char *name)
{
    buffer_append_text(sql, "INSERT INTO node SELECT ");
    literal(sql, name);
    buffer_printf(sql,
                  ", s, 0, 0, 0, '', '', '', '' FROM generate_series(1, %d) s LEFT JOIN node n ON n.slot = s"
                  " LEFT JOIN chain c ON c.id = s LEFT JOIN (SELECT node, max(noted) AS noted FROM ended GROUP BY node) d"
                  " ON d.node = n.name WHERE coalesce(n.session, 0) = 0 AND NOT EXISTS (SELECT 1 FROM node WHERE name = ",
                  SLOTS_MAX);
    literal(sql, name);
    buffer_append_text(sql, ") ORDER BY CASE WHEN n.slot > 0 AND d.noted IS NULL THEN 0 WHEN c.id IS NULL THEN 1 ELSE 2"
                            " END, d.noted NULLS FIRST, s LIMIT 1 ON CONFLICT (slot) DO UPDATE SET name = excluded.name; ");
}

/*
 * One transaction, in which nobody else takes a slot but a node of an earlier version, which knows nothing of that lock:
 * then it fails, and is tried again. Without a free slot it writes nothing.
 */
static enum status session_write(struct postgres_store *store, instant now, struct error *err)
{
    assert(store->shared && store->base.session > 0);
    const struct postgres_node *node = &store->node;
    struct buffer sql;
    buffer_init(&sql, BEGIN_BYTES * 4);
    buffer_append_text(&sql, "BEGIN; SELECT pg_advisory_xact_lock(hashtext('insist slots'), hashtext(current_schema()));"
                             " ");
    row_take(&sql, node->name);
    buffer_append_text(&sql, "UPDATE node SET url = ");
    literal(&sql, node->url);
    buffer_append_text(&sql, ", place = ");
    literal(&sql, node->place);
    buffer_append_text(&sql, ", version = ");
    literal(&sql, INSIST_VERSION);
    buffer_printf(&sql, ", config = '', since = %" PRId64 ", beat = 0, session = %" PRId64 " WHERE session = 0 AND name = ",
                  now, store->base.session);
    literal(&sql, node->name);
    buffer_append_text(&sql, "; INSERT INTO chain (id, term, batch, number, hash, mark) SELECT slot, 0, 0,"
                             " slot::bigint << 40, decode(repeat('00', 32), 'hex'), '' FROM node WHERE name = ");
    literal(&sql, node->name);
    buffer_printf(&sql,
                  " ON CONFLICT (id) DO NOTHING; UPDATE chain SET session = n.session FROM node n"
                  " WHERE n.slot = chain.id AND n.session = %" PRId64 "; COMMIT",
                  store->base.session);
    enum status status = buffer_status(&sql);
    status = status == STATUS_OK ? link_run(&store->link, sql.data, err)
                                 : error_set(err, STATUS_LIMIT, "the node's name or url is too long");
    buffer_release(&sql);
    struct error ignored;
    if (status != STATUS_OK && store->link.conn && link_run(&store->link, "ROLLBACK", &ignored) != STATUS_OK)
        return STATUS_AWAY;
    return status;
}

/* Who has the store for itself has nobody beside it: all others are over. */
static enum status others_end(struct postgres_store *store, struct error *err)
{
    assert(!store->shared);
    return link_run(&store->link, "SELECT insist_end(session, beat, NULL) FROM node WHERE session > 0;"
                                  " UPDATE shard SET session = 0, epoch = epoch + 1 WHERE session > 0", err);
}

/* The row of this node; without one, all slots are taken. */
static enum status slot_take(struct postgres_store *store, instant now, struct namesake *ret_self, struct error *err)
{
    enum { TRIES = 5 };
    enum status status = STATUS_BUSY;
    for (int tries = 0; tries < TRIES && status == STATUS_BUSY; tries++)
        status = session_write(store, now, err);
    return status == STATUS_OK ? namesake_read(store, ret_self, err) : status;
}

/* Of nodes that died together nobody is left who would take them for dead: all that do not beat meanwhile are over. */
static enum status silent_end(struct postgres_store *store, instant now, struct error *err)
{
    assert(store->shared);
    PGresult *ends;
    struct error ignored;
    char sql[256];
    snprintf(sql, sizeof sql,
             "SELECT string_agg(format('BEGIN; SELECT insist_end(%%s, %%s, %" PRId64 "); COMMIT', session, beat), '; '"
             " ORDER BY session) FROM node WHERE session > 0",
             now);
    enum status status = link_ask(&store->link, sql, &ends, err);
    if (status != STATUS_OK)
        return status;
    for (int ms = 0; ms < SILENCE_MS; ms += SILENCE_LOOK_MS)
        pause_ms(SILENCE_LOOK_MS);
    status = link_run(&store->link, PQgetvalue(ends, 0, 0), err);
    PQclear(ends);
    if (status != STATUS_OK && store->link.conn && link_run(&store->link, "ROLLBACK", &ignored) != STATUS_OK)
        return STATUS_AWAY;
    return status;
}

static enum status session_begin(struct postgres_store *store, instant now, struct error *err)
{
    struct namesake self = { 0 };
    enum status status = slot_take(store, now, &self, err);
    if (status == STATUS_OK && self.slot == 0) {
        status = silent_end(store, now, err);
        status = status == STATUS_OK ? slot_take(store, now, &self, err) : status;
    }
    if (status != STATUS_OK)
        return status;
    if (self.slot == 0)
        return error_set(err, STATUS_BUSY, "%d nodes run with this store, and it has room for no more; stop one first",
                         SLOTS_MAX);
    if (self.session != store->base.session)
        return error_set(err, STATUS_BUSY, "another node of the name \"%s\" has just started", store->node.name);
    store->chain = self.slot;
    return STATUS_OK;
}

/*
 * A session's number is the first token that it may give to a lease: so where one node writes, a lease's token tells whether
 * it is of an earlier session. Each run takes a block of its own.
 */
enum status session_take(struct postgres_store *store, instant now, struct error *err)
{
    int64_t first = 0;
    enum status status = store->shared ? namesakes_end(store, now, err) : others_end(store, err);
    if (status == STATUS_OK)
        status = postgres_number(&store->link, "SELECT nextval('token_block')", &first, err);
    if (status != STATUS_OK)
        return status;
    store->ids.tokens = (struct postgres_block){ .next = first, .left = TOKEN_BLOCK };
    store->base.session = first;
    return store->shared ? session_begin(store, now, err) : STATUS_OK;
}

/* ---- beating ---- */

static enum status node_connect(struct postgres_store *store, struct error *err)
{
    assert(!store->node.link.conn);
    struct postgres_node *node = &store->node;
    enum status status = link_open(&node->link, store->address, postgres_settings_node, NODE_ANSWER_MS_MAX, err);
    if (status == STATUS_OK)
        status = link_prepare(&node->link, STATEMENTS_NODE_FIRST, STATEMENTS_NODE_LAST, err);
    if (status != STATUS_OK)
        link_close(&node->link);
    node->deaf = true;
    return status;
}

/* The answer, to be cleared. A broken connection is made anew the next time. */
enum status node_ask(struct postgres_store *store, enum postgres_statement which, PGresult **ret_answer,
                            struct error *err)
{
    assert(store->shared);
    struct postgres_link *link = &store->node.link;
    enum status status = link_send(link, which, &store->node.params, err);
    if (status == STATUS_OK)
        status = link_flush(link, true, err);
    if (status == STATUS_OK)
        status = link_answer(link, ret_answer, err);
    struct error ignored;
    if (link->conn && link_drain(link, &ignored) == STATUS_AWAY && status == STATUS_OK) {
        PQclear(*ret_answer);
        status = error_set(err, STATUS_AWAY, "%.500s", ignored.text);
    }
    return status;
}

enum status node_ready(struct postgres_store *store, enum postgres_statement which, struct error *err)
{
    assert(store->shared);
    params_begin(&store->node.params, postgres_text(which)->types);
    return store->node.link.conn ? STATUS_OK : node_connect(store, err);
}

/*
 * The server's clock as it was in the middle of the trip. Short trips tell more. One that was put back, or is that of a
 * standby which took over, is not waited for, since nothing would become due: time goes at half its pace until then.
 */
static void clock_heed(struct postgres_node *node, int64_t server_ms, int64_t sent_ns, int64_t now_ns)
{
    assert(now_ns >= sent_ns && now_ns >= node->heeded_ns);
    int64_t offset = server_ms - (sent_ns + now_ns) / 2 / 1000000;
    int64_t trip_ms = (now_ns - sent_ns) / 1000000, before = atomic_load(&node->offset_ms);
    int64_t off = offset > before ? offset - before : before - offset;
    int64_t passed_ms = (now_ns - node->heeded_ns) / 1000000;
    int64_t back_ms_max = (passed_ms < BACK_WITHIN_MS ? passed_ms : BACK_WITHIN_MS) / 2;
    node->heeded_ns = now_ns;
    if (before == 0 || off > trip_ms)
        atomic_store(&node->offset_ms, before == 0 || offset > before - back_ms_max ? offset : before - back_ms_max);
}

/* A chain's batches only become more, whoever goes on with it. */
enum status session_over(const struct postgres_store *store, int64_t sealed, struct error *err)
{
    assert(store->shared);
    int64_t known = atomic_load(&store->term.sealed);
    if (sealed < known)
        return error_set(err, STATUS_CORRUPT,
                         "the store has gone back in time: it knows nothing of session %" PRId64 ", nor of its batch"
                         " %" PRId64 "; it was restored, or a standby took over that had not heard of everything",
                         store->base.session, known);
    return error_set(err, STATUS_FENCED, "session %" PRId64 " has ended: others took this node for dead",
                     store->base.session);
}

static enum status beat_missed(struct postgres_store *store, struct error *err)
{
    PGresult *answer = NULL;
    enum status status = node_ready(store, NODE_SEALED, err);
    if (status != STATUS_OK)
        return status;
    params_int(&store->node.params, 0, store->chain);
    status = node_ask(store, NODE_SEALED, &answer, err);
    if (status == STATUS_OK)
        status = session_over(store, value_int(answer, 0, 0), err);
    PQclear(answer);
    return status;
}

enum status postgres_beat(struct store *base, uint64_t config, struct error *err)
{
    char text[20];
    struct postgres_store *store = (struct postgres_store *)base;
    PGresult *answer = NULL;
    enum status status = node_ready(store, NODE_BEAT, err);
    if (status != STATUS_OK)
        return status;
    params_bytes(&store->node.params, 0, slice_from(store->node.name));
    params_int(&store->node.params, 1, base->session);
    snprintf(text, sizeof text, "%016" PRIx64, config);
    params_bytes(&store->node.params, 2, slice_from(text));
    int64_t sent_ns = clock_ticks_ns();
    status = node_ask(store, NODE_BEAT, &answer, err);
    if (status != STATUS_OK)
        return status;
    if (PQntuples(answer) == 0)
        status = beat_missed(store, err);
    else
        clock_heed(&store->node, value_int(answer, 0, 0), sent_ns, clock_ticks_ns());
    PQclear(answer);
    return status;
}

static enum status session_end(struct postgres_store *store, int64_t session, const int64_t *beat, instant fenced_at,
                               bool *ret_ended, struct error *err)
{
    PGresult *answer = NULL;
    enum status status = node_ready(store, NODE_END, err);
    if (status != STATUS_OK)
        return status;
    params_int(&store->node.params, 0, session);
    params_int(&store->node.params, 1, beat ? *beat : -1);
    params_int(&store->node.params, 2, fenced_at == INSTANT_NONE ? -1 : fenced_at);
    status = node_ask(store, NODE_END, &answer, err);
    if (status != STATUS_OK)
        return status;
    *ret_ended = value_int(answer, 0, 0) != 0;
    PQclear(answer);
    return STATUS_OK;
}

enum status postgres_fence(struct store *base, int64_t session, int64_t beat, instant now, struct error *err)
{
    bool ended = false;
    enum status status = session_end((struct postgres_store *)base, session, &beat, now, &ended, err);
    if (status == STATUS_OK && !ended)
        return error_set(err, STATUS_CONFLICT, "session %" PRId64 " lives, or has ended already", session);
    return status;
}

enum status postgres_end(struct store *base, instant now, struct error *err)
{
    assert(base->ops == &postgres_store_ops);
    struct postgres_store *store = (struct postgres_store *)base;
    bool ended;
    heads_leave(store, now);
    pthread_mutex_lock(&store->node.bell.mutex);
    store->node.bell.all = true; /* what it had is free: who hears that looks at once */
    pthread_mutex_unlock(&store->node.bell.mutex);
    return session_end(store, base->session, NULL, INSTANT_NONE, &ended, err);
}

/* ---- the clock ---- */

/* The estimate goes back a little with a beat: time stands that long, and never goes back. */
instant postgres_clock(struct store *base)
{
    struct postgres_store *store = (struct postgres_store *)base;
    if (!store->shared)
        return clock_now();
    int64_t offset = atomic_load(&store->node.offset_ms);
    if (offset == 0)
        return clock_now();
    int64_t now = clock_ticks_ns() / 1000000 + offset, shown = atomic_load(&store->node.shown_ms);
    while (now > shown && !atomic_compare_exchange_weak(&store->node.shown_ms, &shown, now))
        ;
    return now > shown ? now : shown;
}
