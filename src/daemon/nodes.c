#include "daemon/nodes.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "core/ownership/ownership.h"
#include "daemon/holdings.h"
#include "daemon/neighbours.h"
#include "daemon/pins.h"
#include "engine/pull.h"

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { NODE_PLACE_BYTES = 96, ACTIONS_MAX = 256, RING_EVERY_MS = 20 };

/* What a look at the store showed, for the API. */
struct view_row {
    struct slice destination, node, url;
    int64_t session;
};

struct view_node {
    struct slice name;
    int64_t session, destinations;
};

struct view {
    struct arena memory;
    struct view_row *rows; /* in order of destination */
    size_t count;
    struct view_node *nodes; /* that run */
    size_t node_count;
    struct session_watched watched[NODES_MAX];
    size_t watched_count;
};

struct nodes {
    struct nodes_settings settings;
    struct store_reader *reader;
    struct holdings *holdings;
    struct config *config;      /* the thread's */
    struct config *next_config; /* that it is to take, under the lock; NULL: none */
    pthread_t thread;
    bool running;
    int wake_fd;
    atomic_bool stopping, in_order;
    struct ownership ownership; /* the thread's own, as is what follows */
    int64_t beat_at, rung_at;   /* clock_boot_ms */
    uint64_t lives;             /* a hash of the sessions that do */
    bool recall;                /* lanes may have work of which no bell rang */
    struct { bool on; int64_t to; } recalled; /* the look at them that is under way: the last lane that it has seen */
    bool away, fenced;
    struct neighbours neighbours;
    struct pins pins;
    atomic_bool rings;
    _Atomic int64_t ended_count; /* sessions of others that it took for dead */
    _Atomic int64_t trusted_until;
    pthread_mutex_t lock;
    struct view view;
};

bool nodes_trusted(const struct nodes *nodes)
{
    return clock_boot_ms() < atomic_load(&nodes->trusted_until);
}

static void wake(struct nodes *nodes)
{
    (void)!write(nodes->wake_fd, &(uint64_t){ 1 }, sizeof(uint64_t));
}

void nodes_rung(struct nodes *nodes)
{
    if (!atomic_exchange(&nodes->rings, true))
        wake(nodes);
}

/* ---- the place ---- */

/* Names of the kind that needs no file belong to a network namespace, and go with the process that has them. */
static void place_take(const char *name, const char *store, char ret_place[NODE_PLACE_BYTES], int *ret_fd)
{
    char boot[40] = "";
    struct stat space;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool known = file && fscanf(file, "%39s", boot) == 1 && stat("/proc/self/ns/net", &space) == 0;
    if (file)
        fclose(file);
    uint64_t hash = hash_slice(hash_slice(0, 0, slice_from(name)), 1, slice_from(store));
    int len = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "insist node %016" PRIx64, hash);
    ret_place[0] = '\0';
    *ret_fd = known ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    if (*ret_fd < 0)
        return;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    if (bind(*ret_fd, (const struct sockaddr *)&address, size) == 0) {
        snprintf(ret_place, NODE_PLACE_BYTES, "%s/%ju", boot, (uintmax_t)space.st_ino);
        return;
    }
    close(*ret_fd);
    *ret_fd = -1;
}

/* The place is this process's for as long as it lives, whatever becomes of its sessions. */
void nodes_name(const struct config *config, struct store_settings *settings, char url[NODE_URL_BYTES])
{
    static int place_fd = -1;
    static char place[NODE_PLACE_BYTES];
    assert(config->node.name);
    if (place_fd < 0)
        place_take(config->node.name, config->store, place, &place_fd);
    snprintf(url, NODE_URL_BYTES, "http://%s:%d", config->listen.host, config->listen.port);
    settings->node = slice_from(config->node.name);
    settings->node_url = config->node.url ? slice_from(config->node.url) : slice_from(url);
    settings->node_place = slice_from(place);
}

/* ---- orders for the engine's thread ---- */

struct node_order {
    enum holding_order order;
    struct slice destination;
};

struct orders {
    struct message message; /* first */
    struct nodes *nodes;
    struct arena memory;
    struct node_order *items;
    size_t count, max;
    struct nodes_news news;
};

static void run_orders(struct message *message)
{
    struct orders *orders = message_of(message, MESSAGE_NODES);
    for (size_t i = 0; i < orders->count; i++)
        holdings_order(orders->nodes->holdings, orders->items[i].destination, orders->items[i].order);
    engine_nodes_news(orders->nodes->settings.engine, &orders->news);
    arena_release(&orders->memory);
    free(orders);
}

static struct orders *orders_new(struct nodes *nodes, size_t max)
{
    struct orders *orders = calloc(1, sizeof *orders);
    if (!orders)
        return NULL;
    orders->nodes = nodes;
    orders->max = max;
    orders->items = arena_alloc_array(&orders->memory, max, sizeof *orders->items);
    if (orders->items)
        return orders;
    free(orders);
    return NULL;
}

static void orders_add(struct orders *orders, enum holding_order order, struct slice destination)
{
    struct slice name = arena_copy(&orders->memory, destination);
    if (name.data && orders->count < orders->max)
        orders->items[orders->count++] = (struct node_order){ order, name };
}

/* ---- lanes that others added to ---- */

static void run_notice(struct message *message)
{
    struct notice *notice = message_of(message, MESSAGE_NOTICE);
    const struct nodes *nodes = notice->context;
    engine_notice(nodes->settings.engine, notice);
}

static struct notice *notice_new(struct nodes *nodes, size_t max)
{
    struct notice *notice = calloc(1, sizeof *notice);
    if (!notice)
        return NULL;
    notice->context = nodes;
    notice->lanes = arena_alloc_array(&notice->memory, max, sizeof *notice->lanes);
    if (notice->lanes)
        return notice;
    notice_free(notice);
    return NULL;
}

static void notice_post(struct nodes *nodes, struct notice *notice)
{
    if (notice && notice->count > 0)
        mailbox_post(nodes->settings.mailbox, &notice->message, MESSAGE_NOTICE, run_notice);
    else
        notice_free(notice);
}

static enum status notice_lane(struct notice *notice, const struct lane_heard *heard)
{
    struct lane_notice *lane = &notice->lanes[notice->count];
    *lane = (struct lane_notice){ .lane = heard->lane, .ready = heard->ready, .dead = heard->dead, .next_at = heard->next_at,
                                  .destination = arena_copy(&notice->memory, heard->destination),
                                  .tenant = arena_copy(&notice->memory, heard->tenant) };
    if (!lane->destination.data || !lane->tenant.data)
        return STATUS_NO_MEMORY;
    notice->count++;
    return STATUS_OK;
}

static bool recalls(const struct nodes *nodes)
{
    return (nodes->recall || nodes->recalled.on) && !nodes->away && !nodes->fenced;
}

static enum status recall_lanes(struct nodes *nodes, const struct lane *lanes, size_t count)
{
    struct notice *notice = notice_new(nodes, count);
    enum status status = notice ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        const struct lane *lane = &lanes[i];
        if (!holdings_have(nodes->holdings, lane->destination))
            continue;
        const struct lane_heard heard = { .lane = lane->id, .destination = lane->destination, .tenant = lane->tenant,
                                          .ready = lane->counts.ready,
                                          .next_at = nodes->settings.now(nodes->settings.context) };
        status = notice_lane(notice, &heard);
    }
    notice_post(nodes, notice);
    return status;
}

/*
 * A page of all lanes: it beats and hears between two, however many there are. More work believed than there is costs an
 * empty claim; less would wait for ever.
 */
static void recall(struct nodes *nodes)
{
    assert(recalls(nodes));
    const struct store *store = nodes->settings.store;
    struct store_reader *reader = nodes->reader;
    struct arena memory = { 0 };
    struct lane *lanes;
    struct error error;
    size_t count = 0;
    if (!nodes->recalled.on) {
        nodes->recall = false; /* what may be missed from here on is looked for after it */
        nodes->recalled.on = true;
        nodes->recalled.to = 0;
        if (store->ops->recall)
            store->ops->recall(nodes->settings.store);
    }
    enum status status =
        reader->ops->reader_lanes(reader, nodes->recalled.to, STORE_PAGE_MAX, &memory, &lanes, &count, &error);
    if (status == STATUS_OK)
        status = recall_lanes(nodes, lanes, count);
    nodes->recall = nodes->recall || status != STATUS_OK;
    nodes->recalled.on = status == STATUS_OK && count == STORE_PAGE_MAX;
    if (nodes->recalled.on)
        nodes->recalled.to = lanes[count - 1].id;
    arena_release(&memory);
}

/* ---- leases that were acknowledged at others ---- */

struct acks {
    struct message message; /* first */
    struct engine *engine;
    size_t count;
    struct { int64_t seq, token; } items[];
};

static void run_acks(struct message *message)
{
    struct acks *acks = message_of(message, MESSAGE_NODES);
    for (size_t i = 0; i < acks->count; i++)
        engine_acked(acks->engine, acks->items[i].seq, acks->items[i].token);
    free(acks);
}

/* One that is not passed on holds its slot until its time is over. */
static void tell_acks(struct nodes *nodes, const struct lane_heard *heard, size_t count)
{
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++)
        wanted += heard[i].acked != 0;
    struct acks *acks = wanted > 0 ? malloc(sizeof *acks + wanted * sizeof acks->items[0]) : NULL;
    if (!acks)
        return;
    acks->engine = nodes->settings.engine;
    acks->count = 0;
    for (size_t i = 0; i < count; i++)
        if (heard[i].acked != 0) {
            acks->items[acks->count].seq = heard[i].acked;
            acks->items[acks->count++].token = heard[i].token;
        }
    mailbox_post(nodes->settings.mailbox, &acks->message, MESSAGE_NODES, run_acks);
}

static void hear(struct nodes *nodes)
{
    struct store *store = nodes->settings.store;
    struct arena memory = { 0 };
    struct lane_heard *heard;
    struct error error;
    size_t count = 0;
    if (store->ops->hear(store, &memory, &heard, &count, &error) != STATUS_OK) {
        nodes->recall = true;
        nodes->beat_at = 0; /* somebody may have left */
    }
    struct notice *notice = count > 0 ? notice_new(nodes, count) : NULL;
    for (size_t i = 0; i < count; i++)
        if (heard[i].acked == 0 && (!notice || notice_lane(notice, &heard[i]) != STATUS_OK))
            nodes->recall = true;
    notice_post(nodes, notice);
    tell_acks(nodes, heard, count);
    arena_release(&memory);
}

/* ---- looking ---- */

struct look {
    struct nodes *nodes;
    struct arena memory;
    struct session *sessions;
    size_t session_count;
    struct shard *shards;
    size_t shard_count;
    struct saved *wishes;
    size_t wish_count;
    struct node_seen seen_nodes[NODES_MAX];
    struct cluster_seen seen;
    struct orders *orders;
};

static bool is_draining(const struct look *look, const struct session *session)
{
    char wish[48];
    snprintf(wish, sizeof wish, "{\"drain\":%" PRId64 "}", session->number);
    for (size_t i = 0; i < look->wish_count; i++)
        if (slice_equal(look->wishes[i].name, session->node))
            return slice_equal(look->wishes[i].value, slice_from(wish));
    return false;
}

static int by_name(const void *a, const void *b)
{
    return slice_compare(((const struct node_seen *)a)->name, ((const struct node_seen *)b)->name);
}

static uint64_t see_nodes(struct look *look)
{
    uint64_t lives = 0;
    for (size_t i = 0; i < look->session_count && look->seen.node_count < NODES_MAX; i++) {
        const struct session *session = &look->sessions[i];
        if (session->ended)
            continue;
        look->seen_nodes[look->seen.node_count++] =
            (struct node_seen){ session->node, session->number, session->beat, is_draining(look, session) };
        lives = lives * 31 + (uint64_t)session->number;
    }
    qsort(look->seen_nodes, look->seen.node_count, sizeof *look->seen_nodes, by_name);
    look->seen.nodes = look->seen_nodes;
    return lives;
}

static bool is_stored(const struct look *look, struct slice name)
{
    for (size_t i = 0; i < look->shard_count; i++)
        if (slice_equal(look->shards[i].destination, name))
            return true;
    return false;
}

/* Those of the store; what is only configured is made known first, so that all nodes see the same. */
static enum status see_shards(struct look *look)
{
    struct shard_seen *seen = arena_alloc_array(&look->memory, look->shard_count + 1, sizeof *seen);
    const struct config *config = look->nodes->config;
    if (!seen)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < look->shard_count; i++) {
        seen[i] = (struct shard_seen){ .name = look->shards[i].destination, .session = look->shards[i].session,
                                       .pinned = pins_of(&look->nodes->pins, look->shards[i].destination) };
        assert(i == 0 || slice_compare(seen[i - 1].name, seen[i].name) < 0); /* or nodes would place them differently */
    }
    look->seen.shards = seen;
    look->seen.shard_count = look->shard_count;
    if (!is_stored(look, SLICE("")))
        orders_add(look->orders, HOLDING_INTRODUCE, SLICE(""));
    for (size_t i = 0; i < config_destination_total(config); i++) {
        struct slice name = slice_from(config_destination_at(config, i)->name);
        if (!is_stored(look, name))
            orders_add(look->orders, HOLDING_INTRODUCE, name);
    }
    return STATUS_OK;
}

static void fenced(struct nodes *nodes, const struct error *error)
{
    atomic_store(&nodes->trusted_until, INT64_MIN);
    if (!nodes->fenced)
        nodes->settings.on_fenced(nodes->settings.context, error);
    nodes->fenced = true;
}

static void fence(struct nodes *nodes, const struct ownership_action *action)
{
    struct store *store = nodes->settings.store;
    struct error error;
    enum status status = store->ops->fence(store, action->session, action->beat,
                                           nodes->settings.now(nodes->settings.context), &error);
    atomic_fetch_add(&nodes->ended_count, status == STATUS_OK);
    if (status == STATUS_OK)
        log_event(LOG_WARN, "node_fenced", FIELD_INT("session", action->session),
                  FIELD_CSTR("reason", "it was silent for six seconds; its destinations are free"));
    nodes->beat_at = status == STATUS_OK ? 0 : nodes->beat_at; /* what is free is taken at once */
}

static void act(struct look *look)
{
    struct nodes *nodes = look->nodes;
    static struct ownership_action actions[ACTIONS_MAX];
    int64_t *placement = arena_alloc_array(&look->memory, look->seen.shard_count + 1, sizeof *placement);
    if (!placement)
        return;
    for (size_t i = 0; i < look->seen.shard_count; i++)
        if (look->seen.shards[i].session == nodes->ownership.session)
            orders_add(look->orders, HOLDING_OURS, look->seen.shards[i].name);
    size_t count = ownership_look(&nodes->ownership, &look->seen, clock_boot_ms(), placement, actions, ACTIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct error error;
        if (actions[i].act == OWNERSHIP_FENCE)
            fence(nodes, &actions[i]);
        else if (actions[i].act == OWNERSHIP_TAKE)
            orders_add(look->orders, HOLDING_TAKE, actions[i].shard);
        else if (actions[i].act == OWNERSHIP_GIVE)
            orders_add(look->orders, HOLDING_GIVE, actions[i].shard);
        else {
            error_set(&error, STATUS_FENCED, "session %" PRId64 " has ended", actions[i].session);
            fenced(nodes, &error);
        }
    }
}

static void publish_nodes(const struct look *look, struct view *view)
{
    view->nodes = arena_alloc_array(&view->memory, look->session_count + 1, sizeof *view->nodes);
    for (size_t i = 0; i < look->session_count && view->nodes; i++) {
        const struct session *session = &look->sessions[i];
        if (session->ended)
            continue;
        struct view_node *node = &view->nodes[view->node_count++];
        *node = (struct view_node){ .name = arena_copy(&view->memory, session->node), .session = session->number };
        for (size_t k = 0; k < look->shard_count; k++)
            node->destinations += look->shards[k].session == session->number && look->shards[k].destination.len > 0;
    }
}

static void publish(struct look *look)
{
    struct view view = { 0 };
    publish_nodes(look, &view);
    view.rows = arena_alloc_array(&view.memory, look->shard_count + 1, sizeof *view.rows);
    for (size_t i = 0; i < look->shard_count && view.rows; i++) {
        struct view_row *row = &view.rows[view.count++];
        *row = (struct view_row){ .destination = arena_copy(&view.memory, look->shards[i].destination),
                                  .session = look->shards[i].session };
        for (size_t k = 0; k < look->session_count; k++)
            if (look->sessions[k].number == row->session) {
                row->node = arena_copy(&view.memory, look->sessions[k].node);
                row->url = arena_copy(&view.memory, look->sessions[k].url);
            }
    }
    view.watched_count = look->nodes->ownership.watched_count;
    memcpy(view.watched, look->nodes->ownership.watched, sizeof view.watched);
    pthread_mutex_lock(&look->nodes->lock);
    struct view old = look->nodes->view;
    look->nodes->view = view;
    pthread_mutex_unlock(&look->nodes->lock);
    arena_release(&old.memory);
}

static enum status look_read(struct look *look, struct error *err)
{
    struct store_reader *reader = look->nodes->reader;
    enum status status =
        reader->ops->reader_sessions(reader, &look->memory, &look->sessions, &look->session_count, err);
    if (status == STATUS_OK)
        status = reader->ops->reader_shards(reader, &look->memory, &look->shards, &look->shard_count, err);
    if (status == STATUS_OK)
        status = reader->ops->reader_saved_list(reader, SPACE_NODE, SLICE(""), NODES_MAX, &look->memory, &look->wishes,
                                                &look->wish_count, err);
    return status == STATUS_OK ? pins_read(&look->nodes->pins, reader, err) : status;
}

static void take_config(struct nodes *nodes)
{
    pthread_mutex_lock(&nodes->lock);
    struct config *next = nodes->next_config;
    nodes->next_config = NULL;
    pthread_mutex_unlock(&nodes->lock);
    if (!next)
        return;
    config_unref(nodes->config);
    nodes->config = next;
}

void nodes_reload(struct nodes *nodes, struct config *config)
{
    pthread_mutex_lock(&nodes->lock);
    struct config *skipped = nodes->next_config;
    nodes->next_config = config_ref(config);
    pthread_mutex_unlock(&nodes->lock);
    config_unref(skipped);
}

/* Only the steward, so that they are not changed to and fro by two nodes with different files. */
static void change_pins(const struct look *look)
{
    const struct nodes *nodes = look->nodes;
    bool steward = false;
    for (size_t i = 0; i < look->shard_count; i++)
        steward = steward || (look->shards[i].destination.len == 0 && look->shards[i].session == nodes->ownership.session);
    struct batch *batch = steward ? pins_change(&nodes->pins, nodes->config) : NULL;
    if (!batch)
        return;
    batch->reply_to = nodes->settings.mailbox;
    batch->done = batch_free; /* what failed is asked for by the next look */
    writer_submit(nodes->settings.writer, batch);
}

static void gather_news(struct look *look)
{
    struct nodes *nodes = look->nodes;
    struct nodes_news *news = &look->orders->news;
    struct error error;
    instant now = nodes->settings.now(nodes->settings.context);
    neighbours_look(&nodes->neighbours, look->sessions, look->session_count, clock_boot_ms(), now, news);
    if (neighbours_heads(&nodes->neighbours, nodes->reader, nodes->config->retention_audit_ms, clock_boot_ms(), now, news,
                         &error) != STATUS_OK)
        log_event(LOG_WARN, "heads_unread", FIELD_CSTR("error", error.text));
    if (news->missing[0])
        log_event(LOG_ERROR, "head_missing", FIELD_CSTR("reason", news->missing),
                  FIELD_CSTR("advice", "insist audit verify says what is missing"));
}

static void look(struct nodes *nodes)
{
    struct look look = { .nodes = nodes };
    struct error error;
    take_config(nodes);
    if (look_read(&look, &error) != STATUS_OK) {
        ownership_away(&nodes->ownership);
    } else if ((look.orders = orders_new(nodes, look.shard_count * 3 + config_destination_total(nodes->config) + 1))) {
        uint64_t lives = see_nodes(&look);
        nodes->recall = nodes->recall || lives != nodes->lives; /* who died may have left a bell that it never rang */
        nodes->lives = lives;
        if (see_shards(&look) == STATUS_OK)
            act(&look);
        publish(&look);
        change_pins(&look);
        gather_news(&look);
        mailbox_post(nodes->settings.mailbox, &look.orders->message, MESSAGE_NODES, run_orders);
    }
    arena_release(&look.memory);
}

static void beat(struct nodes *nodes)
{
    struct store *store = nodes->settings.store;
    struct error error;
    int64_t sent_at = clock_boot_ms();
    nodes->beat_at = sent_at + OWNERSHIP_BEAT_MS;
    enum status status = store->ops->beat(store, nodes->config->digest, &error);
    if (status == STATUS_OK) {
        ownership_beaten(&nodes->ownership, sent_at);
        atomic_store(&nodes->trusted_until, nodes->ownership.trusted_until);
        if (nodes->away)
            log_event(LOG_INFO, "beats_again", FIELD_INT("session", nodes->ownership.session));
        look(nodes);
    } else if (status == STATUS_FENCED || status == STATUS_CORRUPT) { /* begins anew, or ends */
        fenced(nodes, &error);
    } else {
        ownership_away(&nodes->ownership);
        if (!nodes->away)
            log_event(LOG_WARN, "beats_no_more", FIELD_CSTR("error", error.text),
                      FIELD_CSTR("advice", "in four seconds this node sends nothing more; another may take over"));
    }
    nodes->away = status != STATUS_OK;
}

/* ---- the thread ---- */

static void ring(struct nodes *nodes)
{
    struct store *store = nodes->settings.store;
    struct error error;
    if (nodes->away || !atomic_exchange(&nodes->rings, false))
        return;
    nodes->rung_at = clock_boot_ms();
    if (store->ops->ring(store, &error) != STATUS_OK)
        atomic_store(&nodes->rings, true); /* with the next beat */
}

static void wait_for_news(struct nodes *nodes)
{
    struct store *store = nodes->settings.store;
    uint64_t woken;
    int64_t now = clock_boot_ms(), until = nodes->beat_at;
    if (atomic_load(&nodes->rings) && !nodes->away && nodes->rung_at + RING_EVERY_MS < until)
        until = nodes->rung_at + RING_EVERY_MS;
    if (nodes->recalled.on && recalls(nodes))
        until = now;
    struct pollfd fds[] = { { .fd = nodes->wake_fd, .events = POLLIN },
                            { .fd = store->ops->bell(store), .events = POLLIN } };
    if (until > now)
        (void)!poll(fds, 2, (int)(until - now));
    if (fds[0].revents != 0)
        (void)!read(nodes->wake_fd, &woken, sizeof woken);
    if (store->ops->bell(store) >= 0)
        hear(nodes);
}

static void *nodes_main(void *context)
{
    struct nodes *nodes = context;
    struct store *store = nodes->settings.store;
    struct error error;
    while (!atomic_load(&nodes->stopping)) {
        if (!nodes->fenced && clock_boot_ms() >= nodes->beat_at)
            beat(nodes);
        else if (nodes->fenced)
            nodes->beat_at = clock_boot_ms() + OWNERSHIP_BEAT_MS;
        if (recalls(nodes))
            recall(nodes);
        wait_for_news(nodes);
        if (clock_boot_ms() >= nodes->rung_at + RING_EVERY_MS)
            ring(nodes);
    }
    if (!atomic_load(&nodes->in_order) || nodes->fenced)
        return NULL;
    if (store->ops->end(store, nodes->settings.now(nodes->settings.context), &error) != STATUS_OK)
        log_event(LOG_WARN, "session_not_ended", FIELD_CSTR("error", error.text),
                  FIELD_CSTR("advice", "others take over when this node has been silent for six seconds"));
    atomic_store(&nodes->rings, true);
    ring(nodes);
    return NULL;
}

enum status nodes_new(const struct nodes_settings *settings, struct nodes **ret_nodes, struct error *err)
{
    struct nodes *nodes = calloc(1, sizeof *nodes);
    if (!nodes)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the nodes");
    nodes->settings = *settings;
    nodes->config = config_ref(settings->config);
    nodes->settings.config = config_ref(settings->config); /* of the start, which has its name */
    nodes->trusted_until = INT64_MIN;
    pthread_mutex_init(&nodes->lock, NULL);
    ownership_init(&nodes->ownership, settings->store->session);
    nodes->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum status status = nodes->wake_fd >= 0 ? STATUS_OK : error_set(err, STATUS_IO, "no descriptor for the nodes");
    if (status == STATUS_OK)
        status = settings->store->ops->reader(settings->store, &nodes->reader, err);
    if (status == STATUS_OK)
        status = holdings_new(settings->engine, settings->writer, settings->mailbox, &nodes->holdings, err);
    if (status == STATUS_OK && pthread_create(&nodes->thread, NULL, nodes_main, nodes) != 0)
        status = error_set(err, STATUS_IO, "cannot start the nodes' thread");
    nodes->running = status == STATUS_OK;
    if (status != STATUS_OK) {
        nodes_free(nodes);
        return status;
    }
    *ret_nodes = nodes;
    return STATUS_OK;
}

void nodes_stop(struct nodes *nodes, bool in_order)
{
    if (!nodes || !nodes->running)
        return;
    atomic_store(&nodes->in_order, in_order);
    atomic_store(&nodes->stopping, true);
    wake(nodes);
    pthread_join(nodes->thread, NULL);
    nodes->running = false;
}

void nodes_free(struct nodes *nodes)
{
    if (!nodes)
        return;
    assert(!nodes->running);
    if (nodes->reader)
        nodes->reader->ops->reader_close(nodes->reader);
    holdings_free(nodes->holdings);
    pins_release(&nodes->pins);
    arena_release(&nodes->view.memory);
    pthread_mutex_destroy(&nodes->lock);
    if (nodes->wake_fd >= 0)
        close(nodes->wake_fd);
    config_unref(nodes->config);
    config_unref(nodes->next_config);
    config_unref(nodes->settings.config);
    free(nodes);
}

enum owner nodes_owner(struct nodes *nodes, struct slice destination, struct owner_place *ret_place)
{
    enum owner owner = OWNER_HERE; /* nobody has heard of it: it is unknown here too */
    *ret_place = (struct owner_place){ 0 };
    if (holdings_have(nodes->holdings, destination)) {
        snprintf(ret_place->node, sizeof ret_place->node, "%s", nodes->settings.config->node.name);
        return OWNER_HERE;
    }
    pthread_mutex_lock(&nodes->lock);
    for (size_t i = 0; i < nodes->view.count; i++) {
        const struct view_row *row = &nodes->view.rows[i];
        if (!slice_equal(row->destination, destination))
            continue;
        bool elsewhere = row->url.len > 0 && row->url.len < sizeof ret_place->url &&
                         row->session != nodes->settings.store->session;
        owner = elsewhere ? OWNER_ELSEWHERE : OWNER_UNKNOWN;
        if (elsewhere) {
            snprintf(ret_place->url, sizeof ret_place->url, "%.*s", SLICE_ARG(row->url));
            snprintf(ret_place->node, sizeof ret_place->node, "%.*s", SLICE_ARG(row->node));
            ret_place->session = row->session;
        }
    }
    pthread_mutex_unlock(&nodes->lock);
    return owner;
}

bool nodes_lives(struct nodes *nodes, int64_t session)
{
    pthread_mutex_lock(&nodes->lock);
    bool lives = nodes->view.node_count == 0; /* nothing is known */
    for (size_t i = 0; i < nodes->view.node_count && !lives; i++)
        lives = nodes->view.nodes[i].session == session;
    pthread_mutex_unlock(&nodes->lock);
    return lives;
}

/* For how long nothing was heard of a session. */
static int64_t silent_ms_of(const struct view *view, int64_t session)
{
    int64_t silent_ms = 0; /* of this one, which speaks */
    for (size_t i = 0; i < view->watched_count; i++)
        if (view->watched[i].session == session)
            silent_ms = clock_boot_ms() - view->watched[i].since;
    return silent_ms;
}

void nodes_figures(struct nodes *nodes, struct node_figures *ret_figures)
{
    struct node_figures *figures = ret_figures;
    *figures = (struct node_figures){ .trusted = nodes_trusted(nodes), .taken_for_dead = atomic_load(&nodes->ended_count) };
    holdings_moved(nodes->holdings, &figures->taken, &figures->given);
    pthread_mutex_lock(&nodes->lock);
    const struct view *view = &nodes->view;
    for (size_t i = 0; i < view->node_count && i < NODES_SHOWN_MAX; i++) {
        struct node_figure *figure = &figures->nodes[figures->count++];
        snprintf(figure->name, sizeof figure->name, "%.*s", SLICE_ARG(view->nodes[i].name));
        figure->session = view->nodes[i].session;
        figure->destinations = view->nodes[i].destinations;
        figure->silent_ms = silent_ms_of(view, view->nodes[i].session);
    }
    for (size_t i = 0; i < view->count; i++)
        figures->unowned += view->rows[i].session == 0 && view->rows[i].destination.len > 0;
    pthread_mutex_unlock(&nodes->lock);
}
