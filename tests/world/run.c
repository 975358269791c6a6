/*
 * Time, the store and the engine's ports.
 */
#include "world.h"

#include "base/log.h"
#include "engine/alerts/alert_record.h"
#include "engine/alerts/notify.h"
#include "engine/loop.h"
#include "store/memory/memory.h"
#include "store/sqlite/sqlite.h"
#include "support/store_faulty.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ABANDON_STEPS_MAX = 100000 };

static const instant began = (instant)1736678400 * 1000;

struct probe_flight {
    struct timer timer; /* first */
    struct probe *probe;
    struct health_answer answer;
    struct probe_flight *next, **link;
};

/* An answer of the store's on its way: of some moment since it was asked. */
struct read_flight {
    struct timer timer; /* first */
    struct store_read *read;
    bool early; /* it was read at once, and is told late */
    struct read_flight *next, **link;
};

instant world_now(const struct world *world)
{
    return began + world->mono + world->offset;
}

/* ---- timers ---- */

/* Those of the same moment fire in an order of their own. */
void timer_set(struct world *world, struct timer *timer, int64_t mono)
{
    uint64_t tie = random_next(&world->random);
    if (timer->node.position > 0)
        heap_move(&world->timers, &timer->node, mono, tie);
    else
        assert_int_equal(heap_push(&world->timers, &timer->node, mono, tie), STATUS_OK);
}

void timer_clear(struct world *world, struct timer *timer)
{
    heap_remove(&world->timers, &timer->node);
}

void world_run_until(struct world *world, int64_t mono)
{
    struct heap_node *first;
    while ((first = heap_first(&world->timers)) && first->key <= mono) {
        struct timer *timer = (struct timer *)first;
        heap_remove(&world->timers, first);
        if (first->key > world->mono)
            world->mono = first->key;
        world->figures->steps++;
        timer->fire(world, timer);
    }
    world->mono = mono > world->mono ? mono : world->mono;
}

/* ---- the store ---- */

static void commit_soon(struct world *world)
{
    bool at_once = world->store_lag_ms == 0 || world->in_doubt; /* then it is not even tried */
    if (world->batches && world->commit.node.position == 0)
        timer_set(world, &world->commit, world->mono + (at_once ? 0 : (int64_t)below(world, (size_t)world->store_lag_ms)));
}

enum { LANE_NEVER = 1000000 };

/* Its claim is answered as if it had been of the lane that was asked for. */
static void sabotage_ends(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->ops[i].kind == OP_CLAIM && batch->ops[i].claim.lane == LANE_NEVER)
            batch->ops[i].claim.lane = 1;
}

static void sabotage_op(struct world *world, struct store_op *op)
{
    struct shadow *shadow = op->kind == OP_SETTLE ? &world->jobs[world->job_of_seq[op->settle.seq]] : NULL;
    bool retry = op->kind == OP_SETTLE && op->settle.event == EVENT_RETRY;
    bool unfair = world->sabotage == SABOTAGE_UNFAIR || world->sabotage == SABOTAGE_LANE_LOST;
    if (unfair && op->kind == OP_CLAIM && op->claim.lane == 1 && op->claim.owner.len == 0)
        op->claim.lane = LANE_NEVER;
    if (world->sabotage == SABOTAGE_FAILED_FIRST && op->kind == OP_CLAIM && !op->claim.unfailed_only)
        op->claim.failed_last = 0;
    if (!shadow || !once_in(world, 3))
        return;
    if (world->sabotage == SABOTAGE_FREE_AGAIN)
        op->settle.look_failed_at = 0;
    if (world->sabotage == SABOTAGE_STALE_SETTLE)
        op->settle.token = shadow->token;
    if (world->sabotage == SABOTAGE_SPEND_HELD && shadow->expected.unspent && op->settle.event == EVENT_RELEASE)
        op->settle.retry_count++;
    if (world->sabotage == SABOTAGE_EARLY_RETRY && retry && op->settle.retry_count > shadow->retry_count)
        op->settle.run_at -= (op->settle.run_at - world_now(world)) / 2;
    if (world->sabotage == SABOTAGE_RETRY_REFUSED && op->settle.event == EVENT_GIVE_UP && op->settle.outcome == OUTCOME_PERMANENT) {
        op->settle.event = EVENT_RETRY;
        op->settle.run_at = world_now(world) + SECOND_MS;
    }
    if (world->sabotage == SABOTAGE_NAMELESS_DEAD && op->settle.event == EVENT_GIVE_UP)
        op->settle.dead_code = SLICE("");
}

static void sabotage_alert(struct world *world, struct store_op *op)
{
    bool tells = op->kind == OP_INSERT && slice_equal(op->insert.tenant, NOTIFY_TENANT);
    if (world->sabotage == SABOTAGE_UNTOLD && tells && once_in(world, 3))
        op->insert.id.len--;
    if (world->sabotage == SABOTAGE_SHORT_LEASE && op->kind == OP_CLAIM && op->claim.owner.len == 0)
        op->claim.lease_until -= (op->claim.lease_until - world_now(world) + MINUTE_MS) / 2; /* half a timeout is left */
    if (world->sabotage == SABOTAGE_ALERT_LOST && op->kind == OP_SAVE && slice_equal(op->save.space, SPACE_ALERT))
        op->save.space = SLICE("elsewhere");
}

/* Whether it is left out, although it will be said to be done. */
static bool sabotage_loses(struct world *world, const struct store_op *ops, size_t count)
{
    bool settles = world->sabotage == SABOTAGE_LOST_SETTLE && ops[0].kind == OP_SETTLE;
    bool inserts = world->sabotage == SABOTAGE_LOST_INSERT && ops[0].kind == OP_INSERT;
    return count == 1 && (settles || inserts) && once_in(world, 5);
}

static enum status apply(struct world *world, struct store_op *ops, size_t count, struct arena *memory, struct error *err)
{
    for (size_t i = 0; i < count && world->sabotage != SABOTAGE_NONE; i++)
        sabotage_op(world, &ops[i]);
    check_before_apply(world, ops, count);
    if (sabotage_loses(world, ops, count)) {
        ops[0].status = STATUS_OK;
        check_applied(world, ops, count);
        return STATUS_OK;
    }
    enum status status = world->store->ops->apply(world->store, world_now(world), ops, count, memory, err);
    if (status == STATUS_OK || store_faulty_lost_answer(world->store))
        check_applied(world, ops, count);
    else if (status == STATUS_IO)
        world->broken = true;
    for (size_t i = 0; i < count && status == STATUS_OK && world->sabotage == SABOTAGE_SHORT_LEASE; i++)
        for (size_t k = 0; ops[i].kind == OP_CLAIM && k < ops[i].claim.ret_count; k++)
            ops[i].claim.ret_jobs[k].lease_until += HOUR_MS;
    return status;
}

static void tell(struct world *world, const struct store_op *ops, size_t count)
{
    struct notice *notice;
    assert_int_equal(notice_of(ops, count, world_now(world), &notice), STATUS_OK);
    if (notice)
        engine_notice(world->engine, notice);
}

static struct batch *take_batch(struct world *world)
{
    struct batch *batch = world->batches;
    world->batches = batch->next_pending;
    if (!world->batches)
        world->batches_end = &world->batches;
    return batch;
}

/* What node/writer.c does when the store is away. */
static void begin_doubt(struct world *world, struct batch *batch, const struct store_op *ops, size_t count)
{
    note(world, "store is away", store_faulty_lost_answer(world->store), (int64_t)count);
    world->in_doubt = true;
    world->doubted = batch;
    if (store_faulty_lost_answer(world->store))
        assert_int_equal(notice_of(ops, count, world_now(world), &world->doubted_notice), STATUS_OK);
    timer_set(world, &world->ask, world->mono + 50);
}

static enum status refused_away(struct batch *batch)
{
    return error_set(&batch->error, STATUS_AWAY, "the store is away");
}

/* What was claimed ahead may be sent then. */
static void batch_done(struct world *world, struct batch *batch)
{
    sabotage_ends(batch);
    shares_before(world);
    batch->done(batch);
    shares_after(world, false);
}

static void ask_fire(struct world *world, struct timer *timer)
{
    struct batch *batch = world->doubted;
    struct notice *notice = world->doubted_notice;
    struct error error;
    bool applied;
    if (world->store->ops->outcome(world->store, &applied, &error) != STATUS_OK) {
        timer_set(world, timer, world->mono + 1 + (int64_t)below(world, 2 * SECOND_MS));
        return;
    }
    note(world, "store is back", applied, 0);
    world->in_doubt = false;
    world->doubted = NULL;
    world->doubted_notice = NULL;
    if (notice)
        engine_notice(world->engine, notice);
    task_doubt_over(world, applied);
    if (!batch)
        return;
    batch->status = applied && world->sabotage != SABOTAGE_DOUBT_FORGOTTEN ? STATUS_OK : refused_away(batch);
    if (!applied)
        check_claims_refused(world, batch);
    batch_done(world, batch);
}

static bool has_claim(const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->ops[i].kind == OP_CLAIM)
            return true;
    return false;
}

static void commit_fire(struct world *world, struct timer *timer)
{
    (void)timer;
    struct batch *batch = take_batch(world);
    bool refused = world->in_doubt;
    if (world->leaves_with_claim && has_claim(batch))
        store_faulty_away(world->store, AWAY_AFTER);
    batch->status = refused ? refused_away(batch) : apply(world, batch->ops, batch->count, &batch->memory, &batch->error);
    if (batch->status == STATUS_AWAY && !refused) {
        begin_doubt(world, batch, batch->ops, batch->count);
        commit_soon(world);
        return;
    }
    if (batch->status == STATUS_OK)
        tell(world, batch->ops, batch->count);
    else
        check_claims_refused(world, batch);
    batch_done(world, batch);
    if (world->broken)
        world_crash(world); /* nothing may be done with the store any more: the process ends */
    commit_soon(world);
}

bool world_apply(struct world *world, struct store_op *op, struct arena *memory)
{
    struct error error;
    if (world->in_doubt)
        return false;
    enum status status = apply(world, op, 1, memory, &error);
    bool applied = status == STATUS_OK;
    if (applied)
        tell(world, op, 1);
    else if (status == STATUS_AWAY)
        begin_doubt(world, NULL, op, 1);
    if (world->broken)
        world_crash(world);
    return applied;
}

void world_break(struct world *world)
{
    injected(world, FAULT_STORE_BROKEN);
    store_faulty_set(world->store, FAULTY_APPLY, 1 + (int64_t)below(world, 10), true, STATUS_IO);
}

void world_lose(struct world *world)
{
    injected(world, FAULT_STORE_AWAY);
    world->leaves_with_claim = once_in(world, 2);
    if (!world->leaves_with_claim)
        store_faulty_away(world->store, once_in(world, 2) ? AWAY_BEFORE : AWAY_AFTER);
}

/* ---- the engine's ports ---- */

static instant port_now(void *context)
{
    return world_now(context);
}

static void port_submit(void *context, struct batch *batch)
{
    struct world *world = context;
    batch->next_pending = NULL;
    *world->batches_end = batch;
    world->batches_end = &batch->next_pending;
    if (world->abandoning)
        return;
    for (size_t i = 0; i < batch->count && world->sabotage != SABOTAGE_NONE; i++)
        sabotage_alert(world, &batch->ops[i]);
    check_claims_submitted(world, batch);
    if (outgoing_count(world->engine) == 0) /* it was that one */
        world->filled_count = 0;
    check_given_back(world, batch);
    alerts_submitted(world, batch);
    commit_soon(world);
}

static void flight_unlink(struct world *world, struct flight *flight)
{
    timer_clear(world, &flight->timer);
    *flight->link = flight->next;
    if (flight->next)
        flight->next->link = flight->link;
    flight->shadow->flight = NULL;
}

static void flight_fire(struct world *world, struct timer *timer)
{
    struct flight *flight = (struct flight *)timer;
    struct send *send = flight->send;
    int dest = flight->shadow->dest;
    if (world->sabotage == SABOTAGE_NO_ANSWER && once_in(world, 20))
        return;
    note(world, "answer", flight->shadow - world->jobs, flight->answer.outcome);
    check_answer(world, flight);
    if (world->sabotage == SABOTAGE_ONE_HOLDS_ALL && flight->answer.outcome == OUTCOME_BLOCKED)
        flight->answer.code = SLICE("curl:60");
    world->receivers[dest].at_once--;
    flight_unlink(world, flight);
    shares_before(world);
    send->done(send, &flight->answer);
    shares_after(world, true);
    check_breakers(world);
    check_refused(world, dest);
    free(flight);
}

static void port_send(void *context, struct send *send)
{
    struct world *world = context;
    struct flight *flight = calloc(1, sizeof *flight);
    assert_non_null(flight);
    flight->timer.fire = flight_fire;
    flight->send = send;
    flight->shadow = world_job(world, send->job->id);
    flight->answer = (struct answer){ .attempted = true, .retry_after_ms = -1 };
    world->figures->sends++;
    note(world, "send", flight->shadow - world->jobs, send->job->step);
    if (world->sabotage == SABOTAGE_SECOND_ADDRESS && once_in(world, 20))
        send->use_fallback = true;
    check_send(world, flight);
    flight->next = world->flights;
    flight->link = &world->flights;
    if (flight->next)
        flight->next->link = &flight->next;
    world->flights = flight;
    flight->shadow->flight = flight;
    if (world->sabotage == SABOTAGE_DOUBLE_SEND && once_in(world, 20))
        check_send(world, flight);
    if (world->sabotage == SABOTAGE_TALKATIVE)
        log_event(LOG_INFO, "sending", FIELD_TEXT("body", send->job->payload));
    flight->answer.duration_ms = receive(world, flight);
    timer_set(world, &flight->timer, world->mono + flight->answer.duration_ms);
}

static void read_whole(struct world *world, struct store_read *read)
{
    do {
        read->more = false;
        read->status = read->run(read, world->reader, &read->error);
        read->pieces++;
    } while (read->more);
}

static void read_fire(struct world *world, struct timer *timer)
{
    struct read_flight *flight = (struct read_flight *)timer;
    *flight->link = flight->next;
    if (flight->next)
        flight->next->link = flight->link;
    if (!flight->early)
        read_whole(world, flight->read);
    flight->read->done(flight->read);
    free(flight);
}

static void port_read(void *context, struct store_read *read)
{
    struct world *world = context;
    struct read_flight *flight = calloc(1, sizeof *flight);
    uint64_t random = random_next(&world->read_random);
    assert_non_null(flight);
    *flight = (struct read_flight){ .timer.fire = read_fire, .read = read, .early = random & 1, .next = world->reads,
                                    .link = &world->reads };
    if (flight->next)
        flight->next->link = &flight->next;
    world->reads = flight;
    if (flight->early)
        read_whole(world, read);
    if (world->sabotage != SABOTAGE_READ_LOST || random % 3 == 0)
        timer_set(world, &flight->timer, world->mono + (int64_t)((random >> 8) % (uint64_t)(world->read_lag_ms + 1)));
}

static void probe_fire(struct world *world, struct timer *timer)
{
    struct probe_flight *flight = (struct probe_flight *)timer;
    *flight->link = flight->next;
    if (flight->next)
        flight->next->link = flight->link;
    (void)world;
    flight->probe->done(flight->probe, &flight->answer);
    free(flight);
}

static void port_probe(void *context, struct probe *probe)
{
    struct world *world = context;
    struct probe_flight *flight = calloc(1, sizeof *flight);
    assert_non_null(flight);
    flight->timer.fire = probe_fire;
    flight->probe = probe;
    flight->next = world->probes;
    flight->link = &world->probes;
    if (flight->next)
        flight->next->link = &flight->next;
    world->probes = flight;
    flight->answer.latency_ms = receive_check(world, probe, &flight->answer);
    timer_set(world, &flight->timer, world->mono + flight->answer.latency_ms);
}

/* The daemon's timers run by a clock that is never set; a busy machine wakes late. */
static void port_wake_at(void *context, instant at)
{
    struct world *world = context;
    int64_t wait = at > world_now(world) ? at - world_now(world) : 0;
    if (world->abandoning || (world->sabotage == SABOTAGE_NO_WAKE && !once_in(world, 3)))
        return;
    if (wait > 0 && world->late_ms > 0)
        wait += (int64_t)below(world, (size_t)world->late_ms);
    if (world->wake.node.position == 0 || world->wake.node.key > world->mono + wait)
        timer_set(world, &world->wake, world->mono + wait);
}

static void sabotage_shares(struct world *world)
{
    for (int lane = 1; lane <= world->lane_top; lane++) {
        struct lane_state *known = lane_find(world->engine, lane);
        if (known)
            shares_weigh(&known->dest->queue.shares, &known->share, world->lanes[lane].tenant == 0 ? TURNS_WEIGHT_MAX : 1);
    }
}

static void sabotage_breakers(struct world *world)
{
    for (int i = 0; i < DESTS; i++) {
        struct dest *dest = dest_find(world->engine, slice_from(dest_names[i]));
        if (dest)
            dest->rules.first.breaker.failure_rate = 0.01;
    }
}

/* A claim is decided when the engine runs, and leaves when the batches before it are back. */
static void note_filled(struct world *world)
{
    size_t count = outgoing_count(world->engine), known = world->filled_count;
    if (count == 0 || (known > 0 && world->filled[known - 1].count >= count))
        return;
    assert_true(known < FILLED_MAX);
    struct filled *filled = &world->filled[world->filled_count++];
    filled->count = count;
    for (int dest = 0; dest < DESTS; dest++)
        filled->by[dest] = decided_now(world, dest);
}

static void wake_fire(struct world *world, struct timer *timer)
{
    (void)timer;
    if (world->sabotage == SABOTAGE_NO_SHARES)
        sabotage_shares(world);
    if (world->sabotage == SABOTAGE_EAGER_BREAKER)
        sabotage_breakers(world);
    shares_before(world);
    engine_run(world->engine);
    shares_after(world, false);
    note_filled(world);
    check_breakers(world);
}

/* ---- beginning and end of a process ---- */

static void start_engine(struct world *world)
{
    struct error error;
    struct engine_settings settings = {
        .ports = { .context = world, .now = port_now, .submit = port_submit, .send = port_send, .probe = port_probe,
                   .wake_at = port_wake_at, .read = world->read_lag_ms > 0 ? port_read : NULL },
        .config = world->configs[world->config],
        .seed = world->seed,
    };
    world->batches = NULL;
    world->batches_end = &world->batches;
    world->filled_count = 0;
    assert_int_equal(engine_new(&settings, &world->engine, &error), STATUS_OK);
    while (engine_start(world->engine, world->reader, &error) != STATUS_OK) {
        engine_free(world->engine); /* the store could not be read: whoever watches over it starts it again */
        world->mono += SECOND_MS;
        store_faulty_set(world->store, FAULTY_READ, 0, false, STATUS_IO);
        world->unread_until_mono = world->mono;
        assert_int_equal(engine_new(&settings, &world->engine, &error), STATUS_OK);
    }
    check_forget(world, CHANGE_START, 0);
}

/* Whatever is on its way is answered, so that its memory can be freed; none of it reaches the store. */
static void abandon_once(struct world *world)
{
    while (world->flights) {
        struct flight *flight = world->flights;
        struct answer answer = { .attempted = true, .outcome = OUTCOME_IN_DOUBT, .text = SLICE("x"), .retry_after_ms = -1 };
        flight_unlink(world, flight);
        flight->send->done(flight->send, &answer);
        free(flight);
    }
    while (world->reads) {
        struct timer *timer = &world->reads->timer;
        timer_clear(world, timer);
        timer->fire(world, timer);
    }
    while (world->probes) {
        struct timer *timer = &world->probes->timer;
        timer_clear(world, timer);
        timer->fire(world, timer);
    }
    while (world->batches || world->doubted) {
        struct batch *batch = world->doubted ? world->doubted : take_batch(world);
        world->doubted = NULL;
        batch->status = error_set(&batch->error, STATUS_FULL, "the process is gone");
        sabotage_ends(batch);
        batch->done(batch);
    }
}

static void abandon(struct world *world)
{
    int64_t mono = world->mono;
    world->abandoning = true;
    timer_clear(world, &world->wake);
    timer_clear(world, &world->commit);
    engine_stop(world->engine);
    for (int i = 0; i < ABANDON_STEPS_MAX; i++) {
        abandon_once(world);
        if (engine_under_way(world->engine) == 0)
            break;
        world->mono += SECOND_MS;
        engine_run(world->engine);
    }
    world->mono = mono;
    size_t before = mallinfo2().uordblks;
    if (world->sabotage == SABOTAGE_HOARD)
        free(world->hoard);
    world->hoard = NULL;
    engine_free(world->engine);
    size_t after = mallinfo2().uordblks;
    check_engine_memory(world, before > after ? before - after : 0);
    world->engine = NULL;
    world->abandoning = false;
    for (int dest = 0; dest < DESTS; dest++)
        world->receivers[dest].at_once = 0;
}

/* What was on its way to the store has arrived there, but nobody lives to hear of it. */
static void commit_unheard(struct world *world)
{
    for (struct batch *batch = world->batches; batch && !world->broken; batch = batch->next_pending) {
        struct error error;
        enum status status = apply(world, batch->ops, batch->count, &batch->memory, &error);
        world->in_doubt = status == STATUS_AWAY;
        if (status != STATUS_OK)
            return;
    }
}

/* Whoever opens the store anew sees what became of it. */
static void forget_doubt(struct world *world)
{
    struct error error;
    bool applied;
    store_faulty_away(world->store, AWAY_NOT);
    world->leaves_with_claim = false;
    timer_clear(world, &world->ask);
    notice_free(world->doubted_notice);
    world->doubted_notice = NULL;
    task_doubt_over(world, false);
    if (world->in_doubt)
        assert_int_equal(world->store->ops->outcome(world->store, &applied, &error), STATUS_OK);
    world->in_doubt = false;
}

void world_remove_folder(const struct world *world)
{
    if (world->on_disk)
        assert_int_equal(folder_remove(world->folder), 0);
}

static void open_store(struct world *world)
{
    struct error error;
    struct store_settings settings = { .sync_always = !world->on_disk, .pending_max = world->pending_max };
    char path[FOLDER_BYTES + 16];
    snprintf(path, sizeof path, "%s/store.db", world->folder);
    enum status status = world->on_disk ? store_sqlite_open(slice_from(path), &settings, &world->inner, &error)
                                  : store_memory_open(SLICE(""), &settings, &world->inner, &error);
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(world->inner->ops->reader(world->inner, &world->eye, &error), STATUS_OK);
    assert_int_equal(store_faulty_wrap(world->inner, &world->store, &error), STATUS_OK);
    assert_int_equal(world->store->ops->reader(world->store, &world->reader, &error), STATUS_OK);
}

static void close_store(struct world *world)
{
    world->reader->ops->reader_close(world->reader);
    world->eye->ops->reader_close(world->eye);
    world->store->ops->close(world->store);
}

/* A store on disk is opened anew by the next process: what it knew only in memory is gone. */
static void reopen_store(struct world *world)
{
    if (!world->on_disk)
        return;
    close_store(world);
    open_store(world);
    if (world->unread_until_mono > world->mono)
        world->unread_until_mono = world->mono;
}

void world_crash(struct world *world)
{
    injected(world, FAULT_CRASH);
    note(world, "crash", world->epoch, world->broken);
    if (!world->broken && !world->in_doubt && once_in(world, 2))
        commit_unheard(world);
    abandon(world);
    forget_doubt(world);
    store_faulty_set(world->store, FAULTY_APPLY, 0, false, STATUS_IO);
    world->broken = false;
    world->epoch++;
    reopen_store(world);
    check_jobs(world);
    check_alerts_kept(world);
    if (world->sabotage == SABOTAGE_HOARD)
        world->hoard = malloc(4 << 20);
    struct error error;
    assert_int_equal(world->store->ops->begin(world->store, world_now(world), &error), STATUS_OK);
    start_engine(world);
}

void world_start(struct world *world)
{
    heap_init(&world->timers);
    map_init(&world->notes, world->seed);
    world->wake.fire = wake_fire;
    world->commit.fire = commit_fire;
    world->ask.fire = ask_fire;
    world->arrival.fire = arrival_fire;
    world->disturbance.fire = disturbance_fire;
    world->heal.fire = heal_fire;
    if (world->on_disk)
        assert_int_equal(folder_make(world->folder), 0);
    open_store(world);
    start_engine(world);
}

void world_stop(struct world *world)
{
    abandon(world);
    forget_doubt(world);
    while (world->tasks) {
        struct task *next = world->tasks->next;
        arena_release(&world->tasks->memory);
        free(world->tasks);
        world->tasks = next;
    }
    close_store(world);
    world_remove_folder(world);
    heap_release(&world->timers);
    map_release(&world->notes);
    alerts_release(world);
    for (int i = 0; i < CONFIGS; i++)
        config_unref(world->configs[i]);
}
