#include "store/postgres/postgres.h"

#include "base/units.h"
#include "store/postgres/claimed.h"
#include "store/postgres/events.h"
#include "store/postgres/handle.h"
#include "store/postgres/inspect.h"
#include "store/postgres/move.h"
#include "store/postgres/reader.h"
#include "store/postgres/schema.h"
#include "store/postgres/tend.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCK_TRIES = 20 };

/* ---- connecting ---- */

/*
 * The server may not have heard that the connection before this one broke, and keep it, with the lock, for hours: it is
 * ended, with whatever it has under way, which the seal tells of.
 */
static enum status old_connection_end(struct postgres_store *store, struct error *err)
{
    assert(store->term.pid > 0);
    char sql[256];
    snprintf(sql, sizeof sql,
             "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE pid = %" PRId64 " AND locktype = 'advisory'"
             " AND classid = hashtext('insist writer')::oid AND objid = hashtext(current_schema())::oid",
             store->term.pid);
    return link_run(&store->link, sql, err);
}

/*
 * One daemon without a name at a time, or any number of those that have one. The connection of one that has just died may
 * need a moment to end.
 */
static enum status writer_lock(struct postgres_store *store, bool first, struct error *err)
{
    const char *sql = store->shared ? "SELECT pg_try_advisory_lock_shared(" WRITER_LOCK ")"
                                    : "SELECT pg_try_advisory_lock(" WRITER_LOCK ")";
    bool locked = false;
    enum status status = lock_try(&store->link, sql, first ? LOCK_TRIES : 1, &locked, err);
    if (status == STATUS_OK && locked)
        status = postgres_number(&store->link, "SELECT pg_backend_pid()", &store->term.pid, err);
    else if (status == STATUS_OK && !first)
        status = old_connection_end(store, err);
    if (status != STATUS_OK || locked)
        return status;
    return error_set(err, STATUS_BUSY,
                     store->shared ? "a daemon without a name (node.name) works with this store: it has it for itself"
                                   : "another daemon works with this store; several need names (node.name)");
}

static bool hash_parse(const PGresult *answer, int column, unsigned char ret_hash[EVENT_HASH_BYTES])
{
    return trail_hash_parse(slice_from(PQgetvalue(answer, 0, column)), ret_hash);
}

/* The chain is this connection's from here on: an earlier one seals nothing any more. */
static enum status chain_take(struct postgres_store *store, bool first, struct error *err)
{
    assert(store->shared ? store->chain > 0 : store->chain == 0);
    PGresult *answer;
    char sql[200];
    int64_t sealed = 0;
    snprintf(sql, sizeof sql,
             "UPDATE chain SET term = term + 1 WHERE id = %" PRId64 " AND session = %" PRId64
             " RETURNING term, batch, number, encode(hash, 'hex')",
             store->chain, store->shared ? store->base.session : 0);
    enum status status = link_ask(&store->link, sql, &answer, err);
    if (status != STATUS_OK)
        return status;
    struct postgres_progress *progress = &store->progress;
    int64_t term = 0;
    if (PQntuples(answer) == 0 && store->shared) {
        snprintf(sql, sizeof sql, "SELECT coalesce((SELECT batch FROM chain WHERE id = %" PRId64 "), -1)", store->chain);
        status = postgres_number(&store->link, sql, &sealed, err);
        status = status == STATUS_OK ? session_over(store, sealed, err) : status;
    } else if (PQntuples(answer) != 1 || !hash_parse(answer, 3, progress->event_hash)) {
        status = error_set(err, STATUS_CORRUPT, "the store has lost the end of its chain of events");
    } else {
        term = strtoll(PQgetvalue(answer, 0, 0), NULL, 10);
        progress->batch = strtoll(PQgetvalue(answer, 0, 1), NULL, 10);
        progress->event_last = strtoll(PQgetvalue(answer, 0, 2), NULL, 10);
        if (first)
            atomic_store(&store->term.sealed, progress->batch);
    }
    PQclear(answer);
    if (status == STATUS_OK && !first && term <= store->term.number)
        status = error_set(err, STATUS_IO,
                           "the store has gone back in time: it was restored, or a standby took over that"
                           " had not heard of everything");
    store->term.number = term;
    return status;
}

/* By this name it is ended when the session is fenced, with whatever it holds. */
static enum status name_connection(struct postgres_store *store, struct error *err)
{
    assert(store->shared && store->base.session > 0);
    char sql[80];
    snprintf(sql, sizeof sql, "SET application_name = 'insist %" PRId64 "'", store->base.session);
    enum status status = link_run(&store->link, sql, err);
    return status == STATUS_OK ? link_run(&store->link, "SET idle_in_transaction_session_timeout = '3s'", err) : status;
}

enum status postgres_connect(struct postgres_store *store, bool first, struct error *err)
{
    struct postgres_link *link = &store->link;
    int version;
    claimed_forget(store);
    enum status status = link_open(link, store->address, postgres_settings_writer,
                                   first ? LINK_ANSWER_MS : LINK_ANSWER_MS_BACK, err);
    if (status == STATUS_OK)
        status = server_look(link, store->address, store->settings.sync_always, err);
    if (status == STATUS_OK && first)
        status = schema_lock(link, err);
    if (status == STATUS_OK)
        status = writer_lock(store, first, err);
    if (status == STATUS_OK)
        status = first ? schema_prepare(link, &store->settings, postgres_schema_version(), &version, err)
                       : schema_check(link, &version, err);
    if (status == STATUS_OK && first)
        status = schema_unlock(link, err);
    if (status == STATUS_OK && first)
        status = session_take(store, store->settings.now, err);
    if (status == STATUS_OK && store->shared)
        status = name_connection(store, err);
    if (status == STATUS_OK)
        status = chain_take(store, first, err);
    if (status == STATUS_OK && !store->settings.sync_always)
        status = link_run(link, "SET synchronous_commit = off", err);
    if (status == STATUS_OK && !first)
        status = link_prepare(link, STATEMENTS_WRITER_FIRST, STATEMENTS_WRITER_LAST, err);
    if (status != STATUS_OK)
        link_close(link);
    link->answer_ms_max = LINK_ANSWER_MS;
    return status;
}

/* ---- opening ---- */

static int64_t number(const PGresult *answer, int row, int column)
{
    return strtoll(PQgetvalue(answer, row, column), NULL, 10);
}

static enum status lane_read(struct postgres_store *store, const PGresult *answer, int row, struct error *err)
{
    assert(!store->shared); /* else lanes are read when they are met */
    struct arena memory = { 0 };
    const struct lane lane = {
        .id = number(answer, row, 0),
        .destination = hex_parse(slice_from(PQgetvalue(answer, row, 1)), &memory),
        .tenant = hex_parse(slice_from(PQgetvalue(answer, row, 2)), &memory),
        .counts = { .pending = number(answer, row, 3),
                    .running = number(answer, row, 4),
                    .waiting = number(answer, row, 5),
                    .completed = number(answer, row, 6),
                    .dead = number(answer, row, 7),
                    .cancelled = number(answer, row, 8),
                    .ready = number(answer, row, 9) },
    };
    enum status status = STATUS_NO_MEMORY;
    if (lane.destination.data && lane.tenant.data)
        status = lane_table_load(&store->lanes, &lane, number(answer, row, 10));
    if (status == STATUS_OK)
        lane_table_by_id(&store->lanes, lane.id)->shard = number(answer, row, 11);
    if (status != STATUS_OK)
        error_set(err, status, status == STATUS_CORRUPT ? "lane %lld has impossible counters" : "no memory for lane %lld",
                  (long long)lane.id);
    arena_release(&memory);
    return status;
}

/* What lanes that have no jobs any more have done at a destination. */
static enum status gone_read(struct postgres_store *store, const PGresult *answer, int row, struct error *err)
{
    struct arena memory = { 0 };
    struct slice destination = hex_parse(slice_from(PQgetvalue(answer, row, 0)), &memory);
    const struct lane_counts gone = { .completed = number(answer, row, 1), .cancelled = number(answer, row, 2) };
    enum status status = destination.data ? totals_begin(&store->lanes.totals, destination, &gone) : STATUS_NO_MEMORY;
    if (status != STATUS_OK)
        error_set(err, status, "no memory for a destination's counts");
    arena_release(&memory);
    return status;
}

static enum status shard_read(struct postgres_store *store, const PGresult *answer, int row, struct error *err)
{
    struct arena memory = { 0 };
    struct slice destination = hex_parse(slice_from(PQgetvalue(answer, row, 1)), &memory);
    bool learnt = destination.data && shard_learn(store, destination, number(answer, row, 0));
    arena_release(&memory);
    return learnt ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory for the destinations");
}

/* Lanes are read when they are met, where others write too. */
static enum status lanes_read(struct postgres_store *store, struct error *err)
{
    static const struct {
        const char *sql;
        enum status (*read)(struct postgres_store *, const PGresult *, int, struct error *);
    } steps[] = {
        { "SELECT l.id, encode(l.destination, 'hex'), encode(l.tenant, 'hex'), sum(c.pending), sum(c.running), "
          "sum(c.waiting),"
          " sum(c.completed), sum(c.dead), sum(c.cancelled), sum(c.ready), sum(c.stored), l.shard FROM lane l"
          " JOIN lane_count c ON c.lane = l.id WHERE l.live GROUP BY l.id HAVING sum(c.stored) > 0 ORDER BY 1",
          lane_read },
        { "SELECT encode(destination, 'hex'), sum(completed), sum(cancelled) FROM (SELECT l.destination, c.completed,"
          " c.cancelled FROM lane l JOIN lane_count c ON c.lane = l.id WHERE NOT l.live OR l.id IN (SELECT lane FROM"
          " lane_count GROUP BY lane HAVING sum(stored) = 0)"
          " UNION ALL SELECT destination, completed, cancelled FROM gone) d GROUP BY 1",
          gone_read },
        { "SELECT id, encode(destination, 'hex') FROM shard", shard_read },
    };
    enum status status = STATUS_OK;
    for (size_t i = store->shared ? 2 : 0; i < sizeof steps / sizeof *steps && status == STATUS_OK; i++) {
        PGresult *answer;
        status = link_ask(&store->link, steps[i].sql, &answer, err);
        if (status != STATUS_OK)
            break;
        for (int row = 0; row < PQntuples(answer) && status == STATUS_OK; row++)
            status = steps[i].read(store, answer, row, err);
        PQclear(answer);
    }
    return status;
}

/* Numbers: the seed, the newest event's time or -1, the newest trimmed event; whether the chain's last event is there. */
static enum status facts_read(struct postgres_store *store, bool *ret_whole, struct error *err)
{
    PGresult *answer;
    char sql[2400];
    snprintf(sql, sizeof sql,
             "SELECT (SELECT value FROM meta WHERE name = 'seed'),"
             " (SELECT max(at) FROM (SELECT (SELECT at FROM event_page WHERE last >= h.id::bigint << %d"
             " AND last < (h.id + 1)::bigint << %d ORDER BY last DESC LIMIT 1) AS at"
             " FROM chain h) n), c.number = c.id::bigint << %d OR c.number <= coalesce(t.number, 0)"
             " OR EXISTS (SELECT 1 FROM " EVENT_OF_NUMBER("c.number") " v WHERE v.hash = c.hash),"
             " EXISTS (SELECT 1 FROM chained)"
             " FROM chain c LEFT JOIN trimmed t ON t.chain = c.id WHERE c.id = %" PRId64,
             EVENT_CHAIN_SHIFT, EVENT_CHAIN_SHIFT, EVENT_CHAIN_SHIFT, store->chain);
    enum status status = link_ask(&store->link, sql, &answer, err);
    if (status != STATUS_OK)
        return status;
    store->base.seed = (uint64_t)strtoll(PQgetvalue(answer, 0, 0), NULL, 10);
    store->base.newest_at = PQgetisnull(answer, 0, 1) ? INSTANT_NONE : strtoll(PQgetvalue(answer, 0, 1), NULL, 10);
    *ret_whole = PQgetvalue(answer, 0, 2)[0] == 't';
    store->has_chains = PQgetvalue(answer, 0, 3)[0] == 't';
    PQclear(answer);
    return STATUS_OK;
}

enum status postgres_passes(enum status status, struct error *err)
{
    bool passes = status == STATUS_BUSY || status == STATUS_FULL || status == STATUS_NO_MEMORY;
    if (passes && err)
        err->status = STATUS_AWAY;
    return passes ? STATUS_AWAY : status;
}

enum status postgres_number(struct postgres_link *link, const char *sql, int64_t *ret_number, struct error *err)
{
    PGresult *answer;
    enum status status = link_ask(link, sql, &answer, err);
    if (status != STATUS_OK)
        return status;
    *ret_number = strtoll(PQgetvalue(answer, 0, 0), NULL, 10);
    PQclear(answer);
    return STATUS_OK;
}

/* The events do not reach the head that the store keeps: the trail itself says so from here on. */
static enum status trail_tell_broken(struct postgres_store *store, struct error *err)
{
    assert(store->is_writer);
    struct trail_head head = { .number = store->progress.event_last };
    struct arena memory = { 0 };
    char data[TRAIL_TRIMMED_BYTES];
    memcpy(head.hash, store->progress.event_hash, EVENT_HASH_BYTES);
    trail_broken_format(&head, data);
    struct store_op op = { .kind = OP_NOTE, .data = slice_from(data) };
    instant now = store->base.newest_at == INSTANT_NONE ? 0 : store->base.newest_at;
    enum status status = postgres_apply(&store->base, now, &op, 1, &memory, err);
    arena_release(&memory);
    return status;
}

static enum status store_start(struct postgres_store *store, struct error *err)
{
    assert(!store->is_writer);
    bool whole = true;
    enum status status = postgres_connect(store, true, err);
    store->link.answer_ms_max = LINK_ANSWER_MS_ANY;
    if (status == STATUS_OK)
        status = facts_read(store, &whole, err);
    if (status == STATUS_OK && lane_table_init(&store->lanes, store->base.seed, slice_from(store->own_tenant)) != STATUS_OK)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for the lanes");
    store->is_writer = status == STATUS_OK;
    store->lanes.shared = store->shared;
    if (status == STATUS_OK)
        status = lanes_read(store, err);
    store->link.answer_ms_max = LINK_ANSWER_MS;
    if (status == STATUS_OK)
        status = link_prepare(&store->link, STATEMENTS_WRITER_FIRST, STATEMENTS_WRITER_LAST, err);
    return status == STATUS_OK && !whole ? trail_tell_broken(store, err) : status;
}

static void postgres_close(struct store *base)
{
    struct postgres_store *store = (struct postgres_store *)base;
    if (!store)
        return;
    link_close(&store->link);
    buffer_release(&store->heads.note);
    buffer_release(&store->batch.acked);
    if (store->is_writer)
        lane_table_release(&store->lanes);
    for (int i = 0; i < POSTGRES_STATEMENTS; i++)
        params_release(&store->params[i]);
    claimed_forget(store);
    shards_release(store);
    postgres_node_release(&store->node);
    free(store->address);
    free(store->place);
    free(store->own_tenant);
    free(store);
}

/* The words of an address that say where it is, for people; NULL: it is none. */
static char *place_of(const char *address, struct error *err)
{
    static const char *const wanted[] = { "host", "port", "dbname", "user" };
    char *why = NULL;
    PQconninfoOption *options = PQconninfoParse(address, &why);
    struct buffer place;
    buffer_init(&place, 1 << 16);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        for (const PQconninfoOption *option = options; option && option->keyword; option++)
            if (option->val && option->val[0] && strcmp(option->keyword, wanted[i]) == 0)
                buffer_printf(&place, "%s%s=%s", place.len > 0 ? " " : "", wanted[i], option->val);
    if (place.len == 0)
        buffer_append_text(&place, "as the environment says");
    for (char *end = why ? why + strlen(why) : NULL; end && end > why && end[-1] == '\n'; end--)
        end[-1] = '\0';
    if (!options)
        error_set(err, STATUS_INVALID, "the store's address cannot be read: %.200s", why ? why : "no memory");
    PQfreemem(why);
    PQconninfoFree(options);
    char *text = options ? buffer_take(&place) : NULL;
    buffer_release(&place);
    return text;
}

static enum status handle_new(struct slice rest, struct postgres_store **ret_store, struct error *err)
{
    static const char scheme[] = "postgres:";
    struct postgres_store *store = calloc(1, sizeof *store);
    size_t size = sizeof scheme + rest.len;
    if (!store || !(store->address = malloc(size))) {
        free(store);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a store");
    }
    snprintf(store->address, size, "%s%.*s", scheme, SLICE_ARG(rest));
    buffer_init(&store->heads.note, EVENT_DATA_BYTES_MAX);
    buffer_init(&store->batch.acked, BELL_ACKED_BYTES_MAX);
    store->base = (struct store){ .ops = &postgres_store_ops, .newest_at = INSTANT_NONE };
    map_init(&store->shards.by_name, 0);
    pthread_mutex_init(&store->node.bell.mutex, NULL);
    buffer_init(&store->node.bell.text, SIZE_MAX / 4);
    store->place = place_of(store->address, err);
    if (!store->place) {
        postgres_close(&store->base);
        return STATUS_INVALID;
    }
    store->base.place = store->place;
    *ret_store = store;
    return STATUS_OK;
}

/* From outside; nothing is asked of the server before something is asked of the store. */
static enum status look(struct slice rest, struct store **ret_store, struct error *err)
{
    struct postgres_store *store;
    enum status status = handle_new(rest, &store, err);
    if (status == STATUS_OK)
        *ret_store = &store->base;
    return status;
}

static char *text_of(struct slice text)
{
    return strndup(text.len > 0 ? text.data : "", text.len);
}

static bool node_name(struct postgres_store *store, const struct store_settings *settings)
{
    assert(!store->node.name);
    struct postgres_node *node = &store->node;
    node->name = text_of(settings->node);
    node->url = text_of(settings->node_url);
    node->place = text_of(settings->node_place);
    store->shared = settings->node.len > 0;
    atomic_init(&store->low_mark, store->shared ? 1 : 0); /* where a lane begins is not known when it is met */
    return node->name && node->url && node->place;
}

enum status store_postgres_open(struct slice rest, const struct store_settings *settings, struct store **ret_store,
                                struct error *err)
{
    assert(settings && ret_store);
    struct postgres_store *store;
    enum status status = handle_new(rest, &store, err);
    if (status != STATUS_OK)
        return status;
    store->settings = *settings;
    store->own_tenant = strndup(settings->own_tenant.len > 0 ? settings->own_tenant.data : "", settings->own_tenant.len);
    trail_seals_begin(&store->seals, settings->audit_key);
    status = store->own_tenant && node_name(store, settings)
                 ? store_start(store, err)
                 : error_set(err, STATUS_NO_MEMORY, "no memory for a store");
    if (status != STATUS_OK) {
        postgres_close(&store->base);
        return status;
    }
    store->settings.own_tenant = slice_from(store->own_tenant);
    store->settings.audit_key = store->settings.node = SLICE("");
    *ret_store = &store->base;
    return STATUS_OK;
}

/* ---- the rest of the table ---- */

enum status postgres_begin(struct store *base, instant now, struct error *err)
{
    struct postgres_store *store = (struct postgres_store *)base;
    assert(base->ops == &postgres_store_ops && !store->in_doubt);
    if (!store->shared) {
        base->session = store->ids.tokens.next;
        return STATUS_OK;
    }
    link_close(&store->link);
    shards_release(store);
    store->settings.now = now;
    store->failure.status = STATUS_OK;
    enum status status = postgres_connect(store, true, err);
    return status == STATUS_OK ? link_prepare(&store->link, STATEMENTS_WRITER_FIRST, STATEMENTS_WRITER_LAST, err) : status;
}

/* A commit that waits for the log makes all of the log before it durable. */
static enum status postgres_sync(struct store *base, struct error *err)
{
    struct postgres_store *store = (struct postgres_store *)base;
    static const enum postgres_statement steps[] = { WRITE_BEGIN, WRITE_SYNC, WRITE_SYNC_NUMBER, WRITE_COMMIT };
    if (store->settings.sync_always)
        return STATUS_OK;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == STATUS_OK; i++)
        status = link_send(&store->link, steps[i], NULL, err);
    if (status == STATUS_OK)
        status = link_flush(&store->link, true, err);
    if (status == STATUS_OK)
        status = link_drain(&store->link, err);
    struct error ignored;
    if (status != STATUS_OK && store->link.conn && link_rollback(&store->link, &ignored) != STATUS_OK)
        link_close(&store->link); /* with the transaction that is open there */
    return postgres_passes(status, err);
}

static struct trail_head postgres_head(struct store *base)
{
    const struct postgres_progress *progress = &((struct postgres_store *)base)->progress;
    const int64_t first = ((struct postgres_store *)base)->chain << EVENT_CHAIN_SHIFT;
    struct trail_head head = { .number = progress->event_last > first ? progress->event_last : 0 };
    memcpy(head.hash, progress->event_hash, EVENT_HASH_BYTES);
    return head;
}

const struct store_ops postgres_store_ops = {
    .name = "postgres",
    .writers_max = 1,
    .close = postgres_close,
    .apply = postgres_apply,
    .outcome = postgres_outcome,
    .begin = postgres_begin,
    .end = postgres_end,
    .beat = postgres_beat,
    .fence = postgres_fence,
    .ring = postgres_ring,
    .hear = postgres_hear,
    .recall = postgres_recall,
    .bell = postgres_bell,
    .sync = postgres_sync,
    .tend = postgres_tend,
    .clock = postgres_clock,
    .head = postgres_head,
    .facts = postgres_facts,
    .check = postgres_check,
    .verify = postgres_verify,
    .backup = postgres_backup,
    .move = &postgres_move_ops,
    .reader = postgres_reader_open,
    .reader_close = postgres_reader_close,
    .reader_job = postgres_reader_job,
    .reader_job_seq = postgres_reader_job_seq,
    .reader_jobs = postgres_reader_jobs,
    .reader_events = postgres_reader_events,
    .reader_history = postgres_reader_history,
    .reader_lanes = postgres_reader_lanes,
    .reader_lane = postgres_reader_lane,
    .reader_totals = postgres_reader_totals,
    .reader_ahead = postgres_reader_ahead,
    .reader_saved = postgres_reader_saved,
    .reader_saved_list = postgres_reader_saved_list,
    .reader_heads = postgres_reader_heads,
    .reader_sessions = postgres_reader_sessions,
    .reader_shards = postgres_reader_shards,
};

static const char *library_version(void)
{
    static char text[32];
    int version = PQlibVersion();
    snprintf(text, sizeof text, "%d.%d", version / 10000, version % 10000);
    return text;
}

/* Both words are known to libpq. */
const struct store_backend store_postgres_backend = {
    .scheme = "postgres:",
    .open = store_postgres_open,
    .look = look,
    .probe = store_postgres_probe,
    .library = "libpq",
    .library_version = library_version,
};
const struct store_backend store_postgresql_backend = {
    .scheme = "postgresql:",
    .open = store_postgres_open,
    .look = look,
    .probe = store_postgres_probe,
};
