/* What the store does by itself, on the writer's connection, between batches. */
#include "store/postgres/tend.h"

#include <assert.h>
#include <string.h>

enum { EVERY_MS = MINUTE_MS, ENDED_KEPT_MS = DAY_MS };

/* The answer, to be cleared. */
static enum status tend_ask(struct postgres_store *store, enum postgres_statement which, const int64_t *number,
                            PGresult **ret_answer, struct error *err)
{
    assert(!store->in_doubt);
    struct postgres_params *params = &store->params[which];
    params_begin(params, postgres_text(which)->types);
    if (number)
        params_int(params, 0, *number);
    enum status status = link_send(&store->link, which, params, err);
    params->types = NULL;
    if (status == STATUS_OK)
        status = link_flush(&store->link, true, err);
    if (status == STATUS_OK)
        status = link_answer(&store->link, ret_answer, err);
    struct error ignored;
    if (store->link.conn && link_drain(&store->link, &ignored) == STATUS_AWAY && status == STATUS_OK) {
        PQclear(*ret_answer);
        status = error_set(err, STATUS_AWAY, "%.500s", ignored.text);
    }
    return status;
}

/* The next batch names where the other chains end: who cuts one must rewrite all. */
static enum status heads_note(struct postgres_store *store, struct error *err)
{
    struct trail_head heads[TRAIL_CHAINS_MAX];
    PGresult *answer = NULL;
    size_t count = 0;
    enum status status = tend_ask(store, ASK_HEADS, &store->chain, &answer, err);
    for (int row = 0; status == STATUS_OK && row < PQntuples(answer) && count < TRAIL_CHAINS_MAX; row++) {
        struct slice hash = value_bytes(answer, row, 1);
        heads[count].number = value_int(answer, row, 0);
        memcpy(heads[count].hash, hash.data, hash.len == EVENT_HASH_BYTES ? hash.len : 0);
        count += hash.len == EVENT_HASH_BYTES;
    }
    PQclear(answer);
    buffer_clear(&store->heads.note);
    if (status == STATUS_OK && count > 0)
        trail_heads_format(heads, count, &store->heads.note);
    return status;
}

/* Sessions that ended long ago, or whose node has another since, and that no lease names. */
static enum status ended_forget(struct postgres_store *store, instant now, struct error *err)
{
    assert(store_is_steward(store));
    PGresult *answer = NULL;
    int64_t before = now - ENDED_KEPT_MS;
    enum status status = tend_ask(store, WRITE_ENDED_DELETE, &before, &answer, err);
    PQclear(answer);
    return status;
}

static enum status tend_rarely(struct postgres_store *store, instant now, struct error *err)
{
    if (now - store->heads.at < EVERY_MS && now >= store->heads.at)
        return STATUS_OK;
    store->ids.seqs.left = 0; /* so that the order of numbers is that of arrival, to a minute, whoever gave them */
    enum status status = heads_note(store, err);
    if (status == STATUS_OK && store_is_steward(store))
        status = ended_forget(store, now, err);
    store->heads.at = status == STATUS_OK ? now : store->heads.at;
    return status;
}

/* How much waits in the store with what others added, for the limits. */
enum status postgres_tend(struct store *base, instant now, struct error *err)
{
    struct postgres_store *store = (struct postgres_store *)base;
    PGresult *answer = NULL;
    if (!store->shared || store->in_doubt || !store->link.conn)
        return STATUS_OK;
    enum status status = tend_ask(store, ASK_BACKLOG, NULL, &answer, err);
    if (status == STATUS_OK) {
        store->lanes.waiting = value_int(answer, 0, 0);
        PQclear(answer);
        status = tend_rarely(store, now, err);
    }
    return status;
}

enum status session_ask(struct postgres_store *store, enum status status, struct error *err)
{
    assert(store->shared && status != STATUS_OK);
    PGresult *answer = NULL;
    struct error ignored;
    if (tend_ask(store, ASK_SESSION, &store->chain, &answer, &ignored) != STATUS_OK)
        return status;
    if (PQntuples(answer) == 0 || value_int(answer, 0, 0) != store->base.session)
        status = session_over(store, PQntuples(answer) > 0 ? value_int(answer, 0, 1) : -1, err);
    PQclear(answer);
    return status;
}

void heads_leave(struct postgres_store *store, instant now)
{
    struct arena memory = { 0 };
    struct error ignored;
    if (store->in_doubt || !store->link.conn || store->failure.status != STATUS_OK ||
        heads_note(store, &ignored) != STATUS_OK || store->heads.note.len == 0)
        return;
    struct store_op op = { .kind = OP_NOTE, .data = arena_copy(&memory, buffer_slice(&store->heads.note)) };
    buffer_clear(&store->heads.note);
    if (op.data.data)
        (void)!postgres_apply(&store->base, now, &op, 1, &memory, &ignored);
    arena_release(&memory);
}
