/*
 * Time, and a node from its start to its end: its engine's ports, its writer, its beats, and what it does about the others.
 */
#include "nodes.h"

#include "store/memory/memory.h"
#include "support/store_faulty.h"

#include <stdio.h>
#include <stdlib.h>

enum { ABANDON_STEPS_MAX = 100000, ACTIONS_MAX = 2 * SHARDS + NODES, LEAVE_POLL_MS = 50, LEAVE_MS_MAX = 60 * SECOND_MS };

static const instant began = (instant)1736678400 * 1000;

/* Somebody waits for the store, or for the engine. */
struct shard_wait {
    struct saved_wait wait; /* first */
    struct node *node;
    int shard;
    int life; /* of the node: what an earlier one has asked for is nothing to the next */
};

instant world_now(const struct cluster *cluster)
{
    return began + cluster->mono;
}

instant node_now(const struct node *node)
{
    return world_now(node->cluster) + node->offset;
}

/* ---- timers ---- */

void timer_set(struct cluster *cluster, struct timer *timer, int64_t mono)
{
    uint64_t tie = random_next(&cluster->random);
    if (timer->heap.position > 0)
        heap_move(&cluster->timers, &timer->heap, mono, tie);
    else
        assert_int_equal(heap_push(&cluster->timers, &timer->heap, mono, tie), STATUS_OK);
}

void timer_clear(struct cluster *cluster, struct timer *timer)
{
    heap_remove(&cluster->timers, &timer->heap);
}

void cluster_run_until(struct cluster *cluster, int64_t mono)
{
    struct heap_node *first;
    while ((first = heap_first(&cluster->timers)) && first->key <= mono) {
        struct timer *timer = (struct timer *)first;
        if (first->key > cluster->mono)
            cluster->mono = first->key;
        heap_remove(&cluster->timers, first);
        cluster->figures->steps++;
        if (timer->node && timer->node->stopped_until > cluster->mono)
            timer_set(cluster, timer, timer->node->stopped_until);
        else
            timer->fire(cluster, timer);
    }
    cluster->mono = mono > cluster->mono ? mono : cluster->mono;
}

static bool is_trusted(const struct node *node)
{
    return node->cluster->sabotage == SABOTAGE_NO_TRUST || ownership_trusted(&node->ownership, node->cluster->mono);
}

bool node_may_send(const struct node *node, int shard)
{
    return node->alive && (node->shards[shard] == SHARD_OWNED || node->shards[shard] == SHARD_LOSING) && is_trusted(node);
}

/* ---- the writer ---- */

static int64_t lag(struct cluster *cluster)
{
    return cluster->lag_ms == 0 ? 0 : (int64_t)below(cluster, (size_t)cluster->lag_ms);
}

static void commit_soon(struct node *node)
{
    if (node->batches && node->commit.heap.position == 0)
        timer_set(node->cluster, &node->commit, node->cluster->mono + (node->in_doubt ? 0 : lag(node->cluster)));
}

static void submit(struct node *node, struct batch *batch)
{
    batch->next_pending = NULL;
    *node->batches_end = batch;
    node->batches_end = &batch->next_pending;
    commit_soon(node);
}

static struct batch *take_batch(struct node *node)
{
    struct batch *batch = node->batches;
    node->batches = batch->next_pending;
    if (!node->batches)
        node->batches_end = &node->batches;
    return batch;
}

static void sabotage_ops(const struct cluster *cluster, struct store_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (cluster->sabotage == SABOTAGE_LOST_RATES && ops[i].kind == OP_SAVE && slice_equal(ops[i].save.space, SPACE_RATE))
            ops[i].save.space = SLICE("elsewhere");
        for (size_t k = 0; cluster->sabotage == SABOTAGE_EARLY_ORPHANS && ops[i].kind == OP_ORPHANS && k < ops[i].orphans.ret_count; k++)
            ops[i].orphans.ret_jobs[k].lease_fenced_at = INSTANT_NONE;
    }
}

/* Whoever writes on although its session has ended. */
static enum status write_on(struct node *node, struct store_op *ops, size_t count, struct arena *memory, struct error *err)
{
    struct store *other;
    const struct store_settings ghost = { .sync_always = true, .node = SLICE("ghost") };
    assert_int_equal(store_memory_join(node->cluster->first, &ghost, &other, err), STATUS_OK);
    enum status status = other->ops->apply(other, node_now(node), ops, count, memory, err);
    assert_int_equal(other->ops->end(other, node_now(node), err), STATUS_OK);
    other->ops->close(other);
    return status;
}

static enum status apply(struct node *node, struct store_op *ops, size_t count, struct arena *memory, struct error *err)
{
    struct cluster *cluster = node->cluster;
    int64_t before = check_events_now(cluster);
    sabotage_ops(cluster, ops, count);
    enum status status = node->store->ops->apply(node->store, node_now(node), ops, count, memory, err);
    if (status == STATUS_FENCED && cluster->sabotage == SABOTAGE_FENCE_SKIPPED)
        (void)write_on(node, ops, count, memory, err);
    sabotage_ops(cluster, ops, status == STATUS_OK ? count : 0);
    if (status == STATUS_FENCED) {
        check_refused(cluster, before);
        timer_set(cluster, &node->over, cluster->mono);
    }
    if (status == STATUS_OK || store_faulty_lost_answer(node->store))
        check_applied(cluster);
    return status;
}

static int owner_of(struct cluster *cluster, int shard)
{
    struct arena memory = { 0 };
    struct shard *shards;
    struct error error;
    size_t count;
    int owner = -1;
    assert_int_equal(cluster->eye->ops->reader_shards(cluster->eye, &memory, &shards, &count, &error), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        for (int node = 0; node < NODES && slice_equal(shards[i].destination, slice_from(shard_names[shard])); node++)
            if (cluster->nodes[node].alive && shards[i].session == cluster->nodes[node].ownership.session)
                owner = node;
    arena_release(&memory);
    return owner;
}

static void bell_free(struct bell *bell)
{
    *bell->link = bell->next;
    if (bell->next)
        bell->next->link = bell->link;
    free(bell);
}

/* Who owns it now hears of it; who comes after reads it. */
static void bell_fire(struct cluster *cluster, struct timer *timer)
{
    struct bell *bell = (struct bell *)timer;
    int owner = owner_of(cluster, bell->dest + 1);
    if (owner >= 0 && cluster->nodes[owner].stopped_until > cluster->mono) {
        timer_set(cluster, timer, cluster->nodes[owner].stopped_until);
        return;
    }
    if (owner >= 0 && cluster->nodes[owner].engine)
        engine_notice(cluster->nodes[owner].engine, bell->notice);
    else
        notice_free(bell->notice);
    bell_free(bell);
}

static void ring(struct cluster *cluster, int dest, struct notice *notice)
{
    struct bell *bell = calloc(1, sizeof *bell);
    bool late = !cluster->healthy && once_in(cluster, 4);
    assert_non_null(bell);
    *bell = (struct bell){ .timer.fire = bell_fire, .notice = notice, .dest = dest, .next = cluster->bells, .link = &cluster->bells };
    if (bell->next)
        bell->next->link = &bell->next;
    cluster->bells = bell;
    if (late)
        injected(cluster, FAULT_BELL);
    timer_set(cluster, &bell->timer, cluster->mono + (late ? (int64_t)below(cluster, 2 * SECOND_MS) : lag(cluster)));
}

static void tell(struct node *node, const struct store_op *ops, size_t count)
{
    struct notice *notice;
    assert_int_equal(notice_of(ops, count, node_now(node), &notice), STATUS_OK);
    if (notice)
        engine_notice(node->engine, notice);
}

static void begin_doubt(struct node *node, struct batch *batch, const struct store_op *ops, size_t count)
{
    node->in_doubt = true;
    node->doubted = batch;
    if (batch && store_faulty_lost_answer(node->store))
        assert_int_equal(notice_of(ops, count, node_now(node), &node->doubted_notice), STATUS_OK);
    timer_set(node->cluster, &node->ask, node->cluster->mono + 50);
}

static void ask_fire(struct cluster *cluster, struct timer *timer)
{
    struct node *node = timer->node;
    struct batch *batch = node->doubted;
    struct notice *notice = node->doubted_notice;
    struct error error;
    bool applied;
    if (node->store->ops->outcome(node->store, &applied, &error) != STATUS_OK) {
        timer_set(cluster, timer, cluster->mono + 1 + (int64_t)below(cluster, SECOND_MS));
        return;
    }
    note(cluster, "store is back", node - cluster->nodes, applied);
    node->in_doubt = false;
    node->doubted = NULL;
    node->doubted_notice = NULL;
    if (notice)
        engine_notice(node->engine, notice);
    if (batch) {
        batch->status = applied ? STATUS_OK : error_set(&batch->error, STATUS_AWAY, "the store was away");
        batch->done(batch);
    }
}

static void commit_fire(struct cluster *cluster, struct timer *timer)
{
    struct node *node = timer->node;
    struct batch *batch = take_batch(node);
    bool refused = node->in_doubt;
    batch->status = refused ? error_set(&batch->error, STATUS_AWAY, "the store is away")
                            : apply(node, batch->ops, batch->count, &batch->memory, &batch->error);
    (void)cluster;
    if (batch->status == STATUS_AWAY && !refused) {
        begin_doubt(node, batch, batch->ops, batch->count);
        commit_soon(node);
        return;
    }
    if (batch->status == STATUS_OK)
        tell(node, batch->ops, batch->count);
    batch->done(batch);
    commit_soon(node);
}

bool node_insert(struct node *node, struct store_op *op, struct arena *memory)
{
    struct error error;
    struct notice *notice;
    if (!node->alive || node->stopped_until > node->cluster->mono || node->in_doubt)
        return false;
    enum status status = apply(node, op, 1, memory, &error);
    if (status == STATUS_AWAY)
        begin_doubt(node, NULL, op, 1);
    bool there = status == STATUS_OK || (status == STATUS_AWAY && store_faulty_lost_answer(node->store));
    if (!there)
        return false;
    assert_int_equal(notice_of(op, 1, node_now(node), &notice), STATUS_OK);
    if (notice)
        ring(node->cluster, dest_of(op->insert.destination), notice);
    return status == STATUS_OK;
}

/* ---- the engine's ports ---- */

static instant port_now(void *context)
{
    return node_now(context);
}

static void port_submit(void *context, struct batch *batch)
{
    struct node *node = context;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->ops[i].kind == OP_CLAIM && node->claimed_mono < node->cluster->mono)
            node->claimed_mono = node->cluster->mono;
    submit(node, batch);
}

static void flight_unlink(struct flight *flight)
{
    *flight->link = flight->next;
    if (flight->next)
        flight->next->link = flight->link;
}

static void flight_fire(struct cluster *cluster, struct timer *timer)
{
    struct flight *flight = (struct flight *)timer;
    struct send *send = flight->send;
    note(cluster, "answer", job_of(send->job->id), flight->answer.outcome);
    flight_unlink(flight);
    send->done(send, &flight->answer);
    free(flight);
}

/* A node that does not trust itself sends nothing: another may be the owner. */
static void port_send(void *context, struct send *send)
{
    struct node *node = context;
    struct cluster *cluster = node->cluster;
    struct flight *flight = calloc(1, sizeof *flight);
    assert_non_null(flight);
    *flight = (struct flight){ .timer = { .fire = flight_fire, .node = node }, .send = send, .dest = dest_of(send->job->destination),
                               .answer = { .text = SLICE("this node may not be the owner any more"), .retry_after_ms = -1 },
                               .next = node->flights, .link = &node->flights };
    if (flight->next)
        flight->next->link = &flight->next;
    node->flights = flight;
    if (!is_trusted(node)) {
        timer_set(cluster, &flight->timer, cluster->mono + 1);
        return;
    }
    flight->answer.attempted = true;
    note(cluster, "send", job_of(send->job->id), node - cluster->nodes);
    check_send(node, flight);
    flight->answer.duration_ms = receive(cluster, flight);
    int64_t ends = cluster->mono + flight->answer.duration_ms;
    flight->wire_until = ends;
    cluster->jobs[job_of(send->job->id)].wire_until = ends;
    timer_set(cluster, &flight->timer, ends);
}

static void reading_end(struct node *node, struct reading *reading)
{
    struct store_read *read = reading->read;
    *reading->link = reading->next;
    if (reading->next)
        reading->next->link = reading->link;
    free(reading);
    store_read_run(read, node->reader);
}

static void reading_fire(struct cluster *cluster, struct timer *timer)
{
    (void)cluster;
    reading_end(timer->node, (struct reading *)timer);
}

static void port_read(void *context, struct store_read *read)
{
    struct node *node = context;
    struct reading *reading = calloc(1, sizeof *reading);
    assert_non_null(reading);
    *reading = (struct reading){ .timer = { .fire = reading_fire, .node = node }, .read = read, .next = node->readings,
                                 .link = &node->readings };
    if (reading->next)
        reading->next->link = &reading->next;
    node->readings = reading;
    timer_set(node->cluster, &reading->timer, node->cluster->mono + lag(node->cluster));
}

static void port_wake_at(void *context, instant at)
{
    struct node *node = context;
    int64_t wait = at > node_now(node) ? at - node_now(node) : 0;
    int64_t mono = node->cluster->mono + wait;
    if (!node->abandoning && (node->wake.heap.position == 0 || node->wake.heap.key > mono))
        timer_set(node->cluster, &node->wake, mono);
}

static void wake_fire(struct cluster *cluster, struct timer *timer)
{
    (void)cluster;
    engine_run(timer->node->engine);
}

/* ---- owning ---- */

static void gain(struct node *node, int shard);

static struct shard_wait *wait_new(struct node *node, int shard, void (*done)(struct saved_wait *))
{
    struct shard_wait *wait = calloc(1, sizeof *wait);
    assert_non_null(wait);
    *wait = (struct shard_wait){ .wait.done = done, .node = node, .shard = shard, .life = node->life };
    return wait;
}

static void on_own(struct batch *batch)
{
    struct shard_wait *wait = batch->context;
    struct node *node = wait->node;
    bool good = batch->status == STATUS_OK && batch->ops[0].status == STATUS_OK, taken = batch->ops[0].kind == OP_TAKE;
    int shard = wait->shard;
    bool mine = wait->life == node->life && !node->abandoning;
    free(wait);
    batch_free(batch);
    if (!mine)
        return;
    note(node->cluster, taken ? "took" : "gave", node - node->cluster->nodes, good ? shard : -1 - shard);
    if (taken && good) {
        gain(node, shard);
        return;
    }
    node->shards[shard] = taken || good ? SHARD_NONE : SHARD_LOST; /* what could not be given away is given away again */
}

static void own(struct node *node, int shard, enum op_kind kind)
{
    struct batch *batch = batch_new(1, 1 << 20);
    assert_non_null(batch);
    batch->ops[0].kind = kind;
    batch->ops[0].own.destination = slice_from(shard_names[shard]);
    batch->count = 1;
    batch->context = wait_new(node, shard, NULL);
    batch->done = on_own;
    node->shards[shard] = kind == OP_TAKE ? SHARD_TAKING : SHARD_GIVING;
    submit(node, batch);
}

static void on_gained(struct saved_wait *base)
{
    struct shard_wait *wait = (struct shard_wait *)base;
    struct node *node = wait->node;
    node->waits[wait->shard] = NULL;
    if (wait->life == node->life && !node->abandoning) {
        bool good = wait->wait.error.status == STATUS_OK;
        node->shards[wait->shard] = good ? SHARD_OWNED : SHARD_NONE;
        node->cluster->figures->takeovers += good;
        note(node->cluster, "gained", node - node->cluster->nodes, good ? wait->shard : -1 - wait->shard);
        if (good)
            check_one_owner(node, wait->shard);
    }
    free(wait);
}

static void gain(struct node *node, int shard)
{
    node->shards[shard] = SHARD_GAINING;
    node->waits[shard] = wait_new(node, shard, on_gained);
    engine_gain(node->engine, slice_from(shard_names[shard]), &node->waits[shard]->wait);
}

static void on_lost(struct saved_wait *base)
{
    struct shard_wait *wait = (struct shard_wait *)base;
    struct node *node = wait->node;
    node->waits[wait->shard] = NULL;
    if (wait->life == node->life && !node->abandoning) {
        bool good = wait->wait.error.status == STATUS_OK;
        note(node->cluster, "lost", node - node->cluster->nodes, good ? wait->shard : -1 - wait->shard);
        node->cluster->figures->given += good;
        if (good)
            own(node, wait->shard, OP_GIVE);
        else
            node->shards[wait->shard] = SHARD_OWNED;
    }
    free(wait);
}

static void act(struct node *node, const struct ownership_action *action)
{
    struct error error;
    int shard = 0;
    while (shard < SHARDS - 1 && !slice_equal(action->shard, slice_from(shard_names[shard])))
        shard++;
    switch (action->act) {
    case OWNERSHIP_FENCE:
        note(node->cluster, "fences", node - node->cluster->nodes, action->session);
        (void)!node->store->ops->fence(node->store, action->session, action->beat, node_now(node), &error);
        break;
    case OWNERSHIP_TAKE:
        if (node->shards[shard] == SHARD_NONE && !node->leaving)
            own(node, shard, OP_TAKE);
        break;
    case OWNERSHIP_GIVE:
        if (node->shards[shard] == SHARD_OWNED) {
            node->shards[shard] = SHARD_LOSING;
            node->waits[shard] = wait_new(node, shard, on_lost);
            engine_lose(node->engine, slice_from(shard_names[shard]), &node->waits[shard]->wait);
        }
        break;
    case OWNERSHIP_ENDED:
        timer_set(node->cluster, &node->over, node->cluster->mono);
        break;
    }
}

static int by_node(const void *a, const void *b)
{
    return slice_compare(((const struct node_seen *)a)->name, ((const struct node_seen *)b)->name);
}

static void heed(struct node *node, const struct session *sessions, size_t session_count, const struct shard *shards, size_t shard_count)
{
    struct node_seen nodes[NODES_MAX];
    struct shard_seen seen[SHARDS];
    struct ownership_action actions[ACTIONS_MAX];
    int64_t placement[SHARDS];
    size_t count = 0;
    for (size_t i = 0; i < session_count; i++)
        if (!sessions[i].ended)
            nodes[count++] = (struct node_seen){ .name = sessions[i].node, .session = sessions[i].number, .beat = sessions[i].beat };
    qsort(nodes, count, sizeof *nodes, by_node);
    for (int i = 0; i < SHARDS; i++) {
        seen[i] = (struct shard_seen){ .name = slice_from(shard_names[i]) };
        for (size_t k = 0; k < shard_count; k++)
            if (slice_equal(shards[k].destination, seen[i].name))
                seen[i].session = shards[k].session;
        if (seen[i].session == node->ownership.session && node->shards[i] == SHARD_NONE)
            gain(node, i); /* it is ours already: the answer was lost, or it could not be read */
        if (seen[i].session == node->ownership.session && node->shards[i] == SHARD_LOST)
            own(node, i, OP_GIVE);
    }
    struct cluster_seen all = { .nodes = nodes, .node_count = count, .shards = seen, .shard_count = SHARDS };
    if (node->cluster->sabotage == SABOTAGE_DEAD_EARLY)
        for (size_t i = 0; i < node->ownership.watched_count; i++)
            node->ownership.watched[i].since -= OWNERSHIP_DEAD_MS / 2;
    size_t acts = ownership_look(&node->ownership, &all, node->cluster->mono, placement, actions, ACTIONS_MAX);
    for (size_t i = 0; i < acts; i++)
        act(node, &actions[i]);
}

static void look(struct node *node)
{
    struct arena memory = { 0 };
    struct session *sessions;
    struct shard *shards;
    struct error error;
    size_t session_count, shard_count;
    if (node->reader->ops->reader_sessions(node->reader, &memory, &sessions, &session_count, &error) == STATUS_OK &&
        node->reader->ops->reader_shards(node->reader, &memory, &shards, &shard_count, &error) == STATUS_OK)
        heed(node, sessions, session_count, shards, shard_count);
    else
        ownership_away(&node->ownership);
    arena_release(&memory);
}

/* The answer to a beat has come. */
static void answer_fire(struct cluster *cluster, struct timer *timer)
{
    struct node *node = timer->node;
    (void)cluster;
    ownership_beaten(&node->ownership, node->beat_sent);
    look(node);
}

static void beat_fire(struct cluster *cluster, struct timer *timer)
{
    struct node *node = timer->node;
    struct error error;
    bool lost = !cluster->healthy && once_in(cluster, 30);
    timer_set(cluster, timer, cluster->mono + OWNERSHIP_BEAT_MS);
    if (node->cut_until > cluster->mono) {
        ownership_away(&node->ownership);
        return;
    }
    if (lost)
        injected(cluster, FAULT_BEAT);
    if (lost && once_in(cluster, 2))
        return;
    enum status status = node->store->ops->beat(node->store, 1, &error);
    if (status == STATUS_FENCED)
        timer_set(cluster, &node->over, cluster->mono);
    if (lost || status != STATUS_OK || node->answer.heap.position > 0)
        return;
    node->beat_sent = cluster->mono;
    timer_set(cluster, &node->answer, cluster->mono + lag(cluster));
}

/* ---- beginning and end ---- */

void node_heal(struct node *node)
{
    node->cut_until = 0;
    if (node->alive)
        store_faulty_away(node->store, AWAY_NOT);
}

static void heal_fire(struct cluster *cluster, struct timer *timer)
{
    note(cluster, "is reached again", timer->node - cluster->nodes, 0);
    node_heal(timer->node);
}

static void open_store(struct node *node)
{
    struct error error;
    struct store *inner;
    struct store_settings settings = { .sync_always = true, .pending_max = 1000000, .node = slice_from(node->name),
                                       .node_url = SLICE("http://x.example") };
    assert_int_equal(store_memory_join(node->cluster->first, &settings, &inner, &error), STATUS_OK);
    assert_int_equal(store_faulty_wrap(inner, &node->store, &error), STATUS_OK);
    assert_int_equal(node->store->ops->reader(node->store, &node->reader, &error), STATUS_OK);
}

void node_start(struct node *node)
{
    struct cluster *cluster = node->cluster;
    struct error error;
    struct engine_settings settings = {
        .ports = { .context = node, .now = port_now, .submit = port_submit, .send = port_send, .read = port_read,
                   .wake_at = port_wake_at },
        .config = cluster->config,
        .seed = cluster->seed,
        .no_alerts = true,
        .shared_store = true,
    };
    if (node->alive)
        return;
    node->alive = true;
    node->life++;
    node->leaving = node->in_doubt = node->abandoning = false;
    node->batches = NULL;
    node->batches_end = &node->batches;
    memset(node->shards, 0, sizeof node->shards);
    open_store(node);
    if (node->cut_until > cluster->mono)
        store_faulty_away(node->store, AWAY_BEFORE);
    ownership_init(&node->ownership, node->store->session);
    note(cluster, "node starts, session", node - cluster->nodes, node->store->session);
    assert_int_equal(engine_new(&settings, &node->engine, &error), STATUS_OK);
    assert_int_equal(engine_start(node->engine, node->reader, &error), STATUS_OK);
    timer_set(cluster, &node->beat, cluster->mono);
}

/* Whatever is on its way is answered, so that its memory can be freed; none of it reaches the store. */
static void abandon_once(struct node *node)
{
    while (node->flights) {
        struct flight *flight = node->flights;
        struct answer answer = { .attempted = true, .outcome = OUTCOME_IN_DOUBT, .text = SLICE("x"), .retry_after_ms = -1 };
        struct shadow *shadow = &node->cluster->jobs[job_of(flight->send->job->id)];
        if (shadow->wire_until > node->cluster->mono)
            shadow->wire_until = node->cluster->mono; /* the connection is closed */
        timer_clear(node->cluster, &flight->timer);
        flight_unlink(flight);
        flight->send->done(flight->send, &answer);
        free(flight);
    }
    while (node->readings) {
        timer_clear(node->cluster, &node->readings->timer);
        reading_end(node, node->readings);
    }
    while (node->batches || node->doubted) {
        struct batch *batch = node->doubted ? node->doubted : take_batch(node);
        node->doubted = NULL;
        batch->status = error_set(&batch->error, STATUS_FULL, "the process is gone");
        batch->done(batch);
    }
}

static void abandon(struct node *node)
{
    struct cluster *cluster = node->cluster;
    struct timer *const timers[] = { &node->wake, &node->commit, &node->ask, &node->beat, &node->answer, &node->over, &node->leave };
    int64_t mono = cluster->mono;
    node->abandoning = true;
    for (size_t i = 0; i < COUNT_OF(timers); i++)
        timer_clear(cluster, timers[i]);
    engine_stop(node->engine);
    for (int i = 0; i < ABANDON_STEPS_MAX; i++) {
        abandon_once(node);
        if (engine_under_way(node->engine) == 0)
            break;
        cluster->mono += SECOND_MS;
        engine_run(node->engine);
    }
    cluster->mono = mono;
    timer_clear(cluster, &node->commit);
    engine_free(node->engine);
    node->engine = NULL;
    for (int shard = 0; shard < SHARDS; shard++) { /* that are never answered */
        free(node->waits[shard]);
        node->waits[shard] = NULL;
    }
    notice_free(node->doubted_notice);
    node->doubted_notice = NULL;
    node->reader->ops->reader_close(node->reader);
    node->store->ops->close(node->store);
    node->alive = false;
    node->stopped_until = 0;
}

void node_crash(struct node *node)
{
    if (!node->alive)
        return;
    note(node->cluster, "node dies", node - node->cluster->nodes, node->ownership.session);
    abandon(node);
}

static void restart_fire(struct cluster *cluster, struct timer *timer)
{
    (void)cluster;
    node_start(timer->node);
}

/* It was taken for dead: what it knows may be wrong, and it begins anew. */
static void over_fire(struct cluster *cluster, struct timer *timer)
{
    node_crash(timer->node);
    timer_set(cluster, &timer->node->restart, cluster->mono + 100);
}

/* In order: all is written, nothing is on the wire, and what it owned is free. */
static void leave_fire(struct cluster *cluster, struct timer *timer)
{
    struct node *node = timer->node;
    struct error error;
    bool ended = engine_under_way(node->engine) == 0;
    if (!ended && cluster->mono < node->leave_until) {
        engine_run(node->engine);
        timer_set(cluster, timer, cluster->mono + LEAVE_POLL_MS);
        return;
    }
    if (ended && node->cut_until <= cluster->mono)
        assert_int_equal(node->store->ops->end(node->store, node_now(node), &error), STATUS_OK);
    node_crash(node);
}

void node_leave(struct node *node)
{
    note(node->cluster, "node leaves", node - node->cluster->nodes, 0);
    node->leaving = true;
    node->leave_until = node->cluster->mono + LEAVE_MS_MAX;
    engine_stop(node->engine);
    timer_set(node->cluster, &node->leave, node->cluster->mono);
}

void cluster_start(struct cluster *cluster)
{
    struct error error;
    const struct store_settings settings = { .sync_always = true, .node = SLICE("nobody") };
    heap_init(&cluster->timers);
    assert_int_equal(store_memory_open(SLICE(""), &settings, &cluster->first, &error), STATUS_OK);
    assert_int_equal(cluster->first->ops->end(cluster->first, world_now(cluster), &error), STATUS_OK);
    assert_int_equal(cluster->first->ops->reader(cluster->first, &cluster->eye, &error), STATUS_OK);
    for (int i = 0; i < NODES; i++) {
        struct node *node = &cluster->nodes[i];
        *node = (struct node){ .cluster = cluster, .name = { (char)('a' + i) } };
        struct { struct timer *timer; void (*fire)(struct cluster *, struct timer *); } timers[] = {
            { &node->wake, wake_fire }, { &node->commit, commit_fire }, { &node->ask, ask_fire }, { &node->beat, beat_fire },
            { &node->answer, answer_fire }, { &node->over, over_fire }, { &node->leave, leave_fire },
        };
        for (size_t k = 0; k < COUNT_OF(timers); k++)
            *timers[k].timer = (struct timer){ .fire = timers[k].fire, .node = node };
        node->restart = (struct timer){ .fire = restart_fire, .node = node };
        node->heal = (struct timer){ .fire = heal_fire, .node = node };
    }
}

void cluster_stop(struct cluster *cluster)
{
    for (int i = 0; i < NODES; i++)
        node_crash(&cluster->nodes[i]);
    while (cluster->bells) {
        notice_free(cluster->bells->notice);
        timer_clear(cluster, &cluster->bells->timer);
        bell_free(cluster->bells);
    }
    cluster->eye->ops->reader_close(cluster->eye);
    cluster->first->ops->close(cluster->first);
    heap_release(&cluster->timers);
    config_unref(cluster->config);
}
