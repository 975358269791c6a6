/*
 * The bell: what was committed here to lanes of others is told to them after the commit, never in it, since a notification
 * holds a lock of the whole server until its transaction is flushed. A text has a line a lane: "r", its number, jobs that
 * became ready, dead letters, the next time, the lowest rank of what became ready, and the names in hexadecimal digits. A
 * line "*" means everything, "a JOB TOKEN" a pull worker's lease that was acknowledged elsewhere than at who counts it.
 *
 * Who owns a lane remembers where it begins, or each claim would walk past all that was ever ready and that a snapshot
 * somebody holds keeps from being cleared away. Who does not own it uses the same place for the lowest rank to tell of.
 */
#include "base/units.h"
#include "store/postgres/handle.h"
#include "store/postgres/timers.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BELL_BYTES_MAX = 7900, WAITING_BYTES_MAX = 256 << 10, NAMES_BYTES_MAX = 1800 };

static void lane_append(struct postgres_node *node, const struct store_lane *lane, int64_t ready, int64_t dead)
{
    struct buffer *text = &node->bell.text;
    bool fits = text->len < WAITING_BYTES_MAX && lane->lane.destination.len + lane->lane.tenant.len < NAMES_BYTES_MAX;
    node->bell.all = node->bell.all || !fits;
    if (!fits)
        return;
    buffer_printf(text, "r %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " ", lane->lane.id, ready, dead,
                  lane->next_at, lane->low_rank);
    buffer_append_hex(text, lane->lane.destination);
    buffer_append_text(text, " ");
    buffer_append_hex(text, lane->lane.tenant);
    buffer_append_text(text, "\n");
    node->bell.all = node->bell.all || buffer_status(text) != STATUS_OK;
}

void bell_gather(struct postgres_store *store)
{
    if (!store->shared || store->lanes.touched_count == 0)
        return;
    pthread_mutex_lock(&store->node.bell.mutex);
    if (store->node.bell.text.len < WAITING_BYTES_MAX)
        buffer_append(&store->node.bell.text, buffer_slice(&store->batch.acked));
    for (size_t i = 0; i < store->lanes.touched_count; i++) {
        struct store_lane *lane = store->lanes.touched[i];
        int64_t ready = lane->lane.counts.ready - lane->shown.committed.ready;
        int64_t dead = lane->lane.counts.dead - lane->shown.committed.dead;
        bool news = ready > 0 || dead != 0 || lane->next_at != INSTANT_NONE || lane->low_rank != INT64_MAX;
        if (!store_owns(store, lane->lane.destination)) {
            if (news)
                lane_append(&store->node, lane, ready > 0 ? ready : 0, dead);
            lane->low_rank = lane->low_seq = INT64_MAX;
        }
        lane->next_at = INSTANT_NONE;
    }
    pthread_mutex_unlock(&store->node.bell.mutex);
}

static enum status ring_one(struct postgres_store *store, struct slice text, struct error *err)
{
    PGresult *answer = NULL;
    enum status status = node_ready(store, NODE_RING, err);
    if (status != STATUS_OK)
        return status;
    params_bytes(&store->node.params, 0, text);
    status = node_ask(store, NODE_RING, &answer, err);
    if (status == STATUS_OK)
        PQclear(answer);
    return status;
}

/* As many whole lines as one notification may have. */
static size_t piece_len(struct slice text)
{
    size_t len = text.len < BELL_BYTES_MAX ? text.len : BELL_BYTES_MAX;
    while (len > 0 && text.data[len - 1] != '\n')
        len--;
    assert(len > 0); /* names are much shorter */
    return len;
}

enum status postgres_ring(struct store *base, struct error *err)
{
    struct postgres_store *store = (struct postgres_store *)base;
    struct postgres_node *node = &store->node;
    struct buffer text;
    enum status status = STATUS_OK;
    pthread_mutex_lock(&node->bell.mutex);
    bool all = node->bell.all;
    text = node->bell.text;
    buffer_init(&node->bell.text, SIZE_MAX / 4);
    node->bell.all = false;
    pthread_mutex_unlock(&node->bell.mutex);
    if (all)
        status = ring_one(store, SLICE("*\n"), err);
    for (struct slice rest = buffer_slice(&text); rest.len > 0 && !all && status == STATUS_OK;) {
        size_t len = piece_len(rest);
        status = ring_one(store, (struct slice){ rest.data, len }, err);
        rest = slice_from_offset(rest, len);
    }
    buffer_release(&text);
    if (status == STATUS_OK)
        return STATUS_OK;
    pthread_mutex_lock(&node->bell.mutex);
    node->bell.all = true; /* some may have been told; all of it is, the next time */
    pthread_mutex_unlock(&node->bell.mutex);
    return status;
}

/* ---- hearing ---- */

/* False: it is no such line, or there is no memory. */
static bool line_read(struct slice line, struct arena *memory, struct lane_heard *ret_heard)
{
    int at = 0;
    struct lane_heard heard = { 0 };
    if (sscanf(line.data, "a %" SCNd64 " %" SCNd64, &ret_heard->acked, &ret_heard->token) == 2)
        return true;
    if (sscanf(line.data, "r %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %n", &heard.lane, &heard.ready,
               &heard.dead, &heard.next_at, &heard.low_rank, &at) != 5 || (size_t)at >= line.len)
        return false;
    const char *names = line.data + at, *space = memchr(names, ' ', line.len - (size_t)at);
    if (!space)
        return false;
    heard.destination = hex_parse((struct slice){ names, (size_t)(space - names) }, memory);
    heard.tenant = hex_parse(slice_from_offset(line, (size_t)(space + 1 - line.data)), memory);
    *ret_heard = heard;
    return heard.destination.data && heard.tenant.data;
}

static bool text_read(struct slice text, struct arena *memory, struct lane_heard *heard, size_t max, size_t *count)
{
    assert(*count <= max);
    while (text.len > 0) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end ? (size_t)(end - text.data) : text.len;
        if (*count == max || !line_read((struct slice){ text.data, len }, memory, &heard[*count]))
            return false;
        ++*count;
        text = slice_from_offset(text, end ? len + 1 : len);
    }
    return true;
}

void postgres_recall(struct store *base)
{
    assert(base->ops == &postgres_store_ops);
    atomic_fetch_add(&((struct postgres_store *)base)->low_mark, 1);
}

/* For the thread that writes, before its next batch: the claim that this leads to is in none before. */
static void lows_add(struct postgres_store *store, const struct lane_heard *heard, size_t count)
{
    struct postgres_node *node = &store->node;
    pthread_mutex_lock(&node->bell.mutex);
    for (size_t i = 0; i < count; i++) {
        if (heard[i].acked == 0)
            node->bell.timer_at = instant_earlier(node->bell.timer_at, heard[i].next_at);
        if (heard[i].acked != 0 || heard[i].low_rank == INT64_MAX)
            continue;
        if (node->bell.low_count == LOWS_MAX) {
            node->bell.low_count = 0;
            postgres_recall(&store->base); /* all of them, then */
        }
        node->bell.lows[node->bell.low_count++] = (struct postgres_low){ heard[i].lane, heard[i].low_rank };
    }
    pthread_mutex_unlock(&node->bell.mutex);
}

void bell_heed(struct postgres_store *store)
{
    struct postgres_node *node = &store->node;
    pthread_mutex_lock(&node->bell.mutex);
    for (size_t i = 0; i < node->bell.low_count; i++) {
        struct store_lane *lane = lane_table_by_id(&store->lanes, node->bell.lows[i].lane);
        if (!lane || node->bell.lows[i].rank > lane->low_rank)
            continue;
        lane->low_rank = node->bell.lows[i].rank;
        lane->low_seq = INT64_MIN;
    }
    timers_set(store, node->bell.timer_at);
    node->bell.timer_at = INSTANT_NONE;
    node->bell.low_count = 0;
    pthread_mutex_unlock(&node->bell.mutex);
}

enum status postgres_hear(struct store *base, struct arena *memory, struct lane_heard **ret_heard, size_t *ret_count,
                          struct error *err)
{
    assert(base->ops == &postgres_store_ops);
    enum { HEARD_MAX = 4096 };
    struct postgres_store *store = (struct postgres_store *)base;
    struct postgres_node *node = &store->node;
    *ret_count = 0;
    *ret_heard = arena_alloc_array(memory, HEARD_MAX, sizeof **ret_heard);
    if (!*ret_heard)
        return error_set(err, STATUS_NO_MEMORY, "no memory for what rang");
    if (node->link.conn && PQconsumeInput(node->link.conn) != 1)
        link_close(&node->link);
    bool missed = !node->link.conn || node->deaf;
    node->deaf = !node->link.conn;
    for (PGnotify *notice; node->link.conn && (notice = PQnotifies(node->link.conn)); PQfreemem(notice)) {
        if (notice->be_pid == PQbackendPID(node->link.conn))
            continue;
        missed = !text_read(slice_from(notice->extra), memory, *ret_heard, HEARD_MAX, ret_count) || missed;
    }
    lows_add(store, *ret_heard, *ret_count);
    if (!missed)
        return STATUS_OK;
    postgres_recall(base);
    return error_set(err, STATUS_AWAY, "some of what rang may not have been heard");
}

int postgres_bell(struct store *base)
{
    assert(base->ops == &postgres_store_ops);
    const struct postgres_store *store = (struct postgres_store *)base;
    return store->node.link.conn ? PQsocket(store->node.link.conn) : -1;
}
