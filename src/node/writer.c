#include "node/writer.h"

#include "base/log.h"
#include "base/map.h"
#include "store/trail.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYNC_EVERY_MS = 1000, TEND_EVERY_MS = 1000, TEND_SOON_MS = 50, ASK_FIRST_MS = 50, ASK_MAX_MS = 2000 };

/* Results of one transaction, for all its batches; the last one frees it. */
struct batch_group {
    struct arena memory;
    atomic_size_t users;
};

/* What is being made of batches, and while the store is away the one of which nobody knows whether it was. */
struct transaction {
    struct batch *first; /* NULL: it is the writer's own */
    struct store_op *ops; /* of an only batch its own, else writer->ops */
    size_t count;
    instant at;
    struct batch_group *group;
};

struct writer {
    struct writer_settings settings;
    struct mailbox *mailbox;
    pthread_t thread;
    bool stopping; /* set by a message, so only the thread reads and writes it */
    struct batch *pending_first;
    struct batch **pending_last;
    struct store_op *ops; /* of the transaction being made: STORE_BATCH_OPS_MAX */
    struct error failure; /* STATUS_OK until the store has failed for good */
    struct {
        bool stands; /* the store is away, and of this transaction nobody knows whether it was made */
        struct transaction transaction;
        struct error why;
        int64_t since_ns, ask_ns; /* clock_ticks_ns; the second is when it is asked again */
        int64_t ask_wait_ms;
    } doubt;
    instant synced_at;
    bool unsynced;
    int64_t tended_ns; /* clock_ticks_ns */
    instant head_reported_at;
    int64_t ahead_reported_ms;           /* of the process's clock to the system's */
    _Atomic int64_t transactions, operations;
    _Atomic instant progressed_at;
    atomic_bool busy, is_away, waits_no_more;
    pthread_mutex_t measures_lock; /* taken once a transaction, and to copy */
    struct writer_measures measures;
};

const struct histogram_bounds measured_commit = {
    15, { 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 25000000, 50000000, 100000000, 250000000, 500000000,
          1000000000, 2500000000, 5000000000 }
};
const struct histogram_bounds measured_operations = { 13, { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096 } };

struct batch *batch_new(size_t ops_max, size_t memory_bytes_max)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (!batch)
        return NULL;
    batch->ops = calloc(ops_max, sizeof *batch->ops);
    if (!batch->ops) {
        free(batch);
        return NULL;
    }
    arena_init(&batch->memory, memory_bytes_max);
    return batch;
}

static void group_leave(struct batch_group *group)
{
    if (!group || atomic_fetch_sub(&group->users, 1) > 1)
        return;
    arena_release(&group->memory);
    free(group);
}

void batch_save(struct batch *batch, struct slice space, struct slice name, struct slice value)
{
    struct store_op *op = &batch->ops[batch->count++];
    op->kind = OP_SAVE;
    op->save = (struct op_save){ .space = space, .name = name, .value = value };
}

void batch_free(struct batch *batch)
{
    if (!batch)
        return;
    group_leave(batch->group);
    arena_release(&batch->memory);
    free(batch->ops);
    free(batch);
}

void notice_free(struct notice *notice)
{
    if (!notice)
        return;
    arena_release(&notice->memory);
    free(notice);
}

/* The notice's entry of a lane: few lanes change in one transaction, and equal ones come in runs. */
static struct lane_notice *notice_lane(struct notice *notice, struct map *lanes, int64_t lane)
{
    struct slice key = { (const char *)&lane, sizeof lane };
    struct lane_notice *found = map_get(lanes, key);
    if (found)
        return found;
    found = &notice->lanes[notice->count++];
    *found = (struct lane_notice){ .lane = lane, .next_at = INSTANT_NONE };
    key.data = (const char *)&found->lane; /* the map borrows its keys */
    return map_put(lanes, key, found) == STATUS_OK ? found : NULL;
}

static bool notice_insert(struct notice *notice, struct lane_notice *lane, const struct op_insert *insert, instant now)
{
    if (!lane->destination.data) {
        lane->destination = arena_copy(&notice->memory, insert->destination);
        lane->tenant = arena_copy(&notice->memory, insert->tenant);
    }
    if (!insert->ret_behind && insert->run_at <= now)
        lane->ready++;
    else if (!insert->ret_behind)
        lane->next_at = instant_earlier(lane->next_at, insert->run_at);
    lane->next_at = instant_earlier(lane->next_at, insert->deadline); /* a time to look at, too */
    return lane->destination.data && lane->tenant.data;
}

/* Dead letters that an operation which was applied made or took away. */
static int dead_more(const struct store_op *op)
{
    if (op->kind == OP_SETTLE)
        return op->settle.event == EVENT_GIVE_UP || op->settle.event == EVENT_EXPIRE;
    if (op->kind == OP_UNDO)
        return 1;
    bool may_take = op->kind == OP_REDRIVE || op->kind == OP_ERASE;
    return op->kind == OP_PURGE || (may_take && op->job.ret_was_dead) ? -1 : 0;
}

/* Whether its own job is to be tried again. */
static bool op_is_back(const struct store_op *op)
{
    if (op->kind == OP_SETTLE)
        return op->settle.event == EVENT_RETRY || op->settle.event == EVENT_RELEASE;
    return op->kind == OP_REDRIVE && !op->job.ret_behind;
}

/* The job that it has added. */
static bool notice_new(struct notice *notice, struct map *lanes, const struct op_insert *insert, instant now)
{
    struct lane_notice *lane = insert->ret_existed ? NULL : notice_lane(notice, lanes, insert->ret_lane);
    return insert->ret_existed || (lane && notice_insert(notice, lane, insert, now));
}

static bool notice_add(struct notice *notice, struct map *lanes, const struct store_op *op, instant now)
{
    const struct op_insert *insert = op_insertion(op);
    if (insert && !notice_new(notice, lanes, insert, now))
        return false;
    if (op->kind == OP_INSERT)
        return true;
    struct lane_notice *lane =
        notice_lane(notice, lanes, op->kind == OP_SETTLE ? op->settle.ret_lane : op->job.ret_lane);
    if (!lane)
        return false;
    lane->dead += dead_more(op);
    lane->ready += op->ret_released.ready;
    if (op->ret_released.at != 0)
        lane->next_at = instant_earlier(lane->next_at, op->ret_released.at);
    if (!op_is_back(op))
        return true;
    if (op->kind == OP_SETTLE && op->settle.run_at > now)
        lane->next_at = instant_earlier(lane->next_at, op->settle.run_at);
    else
        lane->ready++; /* the store has made it ready at once */
    return true;
}

/* Whether it gave the engine something to do, now or at a time. */
static bool op_is_news(const struct store_op *op)
{
    if (op->status != STATUS_OK)
        return false;
    if (op->ret_released.ready || op->ret_released.at != 0 || dead_more(op) != 0 || op_is_back(op))
        return true;
    return op->kind == OP_INSERT && !op->insert.ret_existed;
}

enum status notice_of(const struct store_op *ops, size_t count, instant now, struct notice **ret_notice)
{
    size_t changes = 0;
    for (size_t i = 0; i < count; i++)
        changes += op_is_news(&ops[i]) ? (op_insertion(&ops[i]) ? 2 : 1) : 0;
    *ret_notice = NULL;
    if (changes == 0)
        return STATUS_OK;

    struct notice *notice = calloc(1, sizeof *notice);
    if (!notice)
        return STATUS_NO_MEMORY;
    notice->lanes = arena_alloc_array(&notice->memory, changes, sizeof *notice->lanes);
    struct map lanes;
    map_init(&lanes, 0);
    bool complete = notice->lanes != NULL;
    for (size_t i = 0; i < count && complete; i++)
        complete = !op_is_news(&ops[i]) || notice_add(notice, &lanes, &ops[i], now);
    map_release(&lanes);
    if (!complete) {
        notice_free(notice);
        return STATUS_NO_MEMORY;
    }
    *ret_notice = notice;
    return STATUS_OK;
}

static void deliver_reply(struct message *message)
{
    struct batch *batch = message_of(message, MESSAGE_REPLY);
    batch->done(batch);
}

static void reply(struct batch *batch)
{
    mailbox_post(batch->reply_to, &batch->message, MESSAGE_REPLY, deliver_reply);
}

static void fail_for_good(struct writer *writer, const struct error *error)
{
    if (writer->failure.status != STATUS_OK)
        return;
    writer->failure = *error;
    writer->settings.on_failure(writer->settings.context, error);
}

static bool failure_is_final(const struct writer *writer, enum status status)
{
    bool is_asked = writer->settings.store->ops->outcome != NULL;
    return status == STATUS_IO || status == STATUS_CORRUPT || status == STATUS_FENCED ||
           (status == STATUS_AWAY && !is_asked);
}

/* Takes whole batches off the queue, as many as fit one transaction, as a list of their own. */
static void take_group(struct writer *writer, struct transaction *ret_transaction)
{
    struct batch *first = writer->pending_first;
    struct batch *last = NULL;
    size_t count = 0, offset = 0;
    for (struct batch *batch = first; batch && count + batch->count <= STORE_BATCH_OPS_MAX; batch = batch->next_pending) {
        count += batch->count;
        last = batch;
    }
    assert(last); /* a batch never has more operations than a transaction */
    writer->pending_first = last->next_pending;
    if (!writer->pending_first)
        writer->pending_last = &writer->pending_first;
    last->next_pending = NULL;
    for (struct batch *batch = first; first != last && batch; offset += batch->count, batch = batch->next_pending)
        memcpy(writer->ops + offset, batch->ops, batch->count * sizeof *batch->ops);
    ret_transaction->first = first;
    ret_transaction->ops = first == last ? first->ops : writer->ops;
    ret_transaction->count = count;
}

static enum status apply_ops(struct writer *writer, const struct transaction *transaction, struct error *err)
{
    assert(!writer->doubt.stands && transaction->count <= STORE_BATCH_OPS_MAX);
    if (writer->failure.status != STATUS_OK) {
        *err = writer->failure;
        return err->status;
    }
    if (!transaction->group)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a transaction's results");
    struct store *store = writer->settings.store;
    enum status status = store->ops->apply(store, transaction->at, transaction->ops, transaction->count,
                                           &transaction->group->memory, err);
    writer->unsynced = writer->unsynced || status == STATUS_OK;
    return status;
}

static void tell_engine(struct writer *writer, const struct transaction *transaction)
{
    struct notice *notice;
    if (notice_of(transaction->ops, transaction->count, transaction->at, &notice) != STATUS_OK) {
        /* The jobs are durable, but nobody would look at them before the next start. */
        struct error error;
        error_set(&error, STATUS_NO_MEMORY, "no memory to tell the engine of new jobs");
        fail_for_good(writer, &error);
    } else if (notice) {
        writer->settings.on_notice(writer->settings.context, notice);
    }
}

static void note_commit(struct writer *writer, size_t ops, int64_t took_ns)
{
    pthread_mutex_lock(&writer->measures_lock);
    histogram_note(&writer->measures.commit_ns, &measured_commit, took_ns);
    histogram_note(&writer->measures.operations, &measured_operations, (int64_t)ops);
    pthread_mutex_unlock(&writer->measures_lock);
}

/* Answers all batches of a transaction of which it is known what became of it, or never will be. */
static void end_transaction(struct writer *writer, const struct transaction *transaction, enum status status,
                            const struct error *error)
{
    struct batch *first = transaction->first;
    struct batch_group *group = transaction->group;
    if (status == STATUS_OK)
        tell_engine(writer, transaction);
    else if (failure_is_final(writer, status))
        fail_for_good(writer, error);
    atomic_store(&writer->busy, false);
    atomic_fetch_add(&writer->transactions, 1);
    atomic_fetch_add(&writer->operations, (int64_t)transaction->count);

    size_t users = 1; /* this function, until all are linked to it */
    size_t offset = 0;
    for (struct batch *batch = first; batch; batch = batch->next_pending)
        users++;
    if (group)
        atomic_store(&group->users, users);
    for (struct batch *batch = first, *next; batch; batch = next) {
        next = batch->next_pending;
        batch->status = status;
        batch->error = *error;
        batch->group = group;
        if (status == STATUS_OK && transaction->ops != batch->ops)
            memcpy(batch->ops, writer->ops + offset, batch->count * sizeof *batch->ops);
        offset += batch->count;
        reply(batch);
    }
    group_leave(group);
}

static void begin_doubt(struct writer *writer, const struct transaction *transaction, const struct error *error)
{
    assert(!writer->doubt.stands && error->status == STATUS_AWAY);
    writer->doubt.transaction = *transaction;
    writer->doubt.stands = true;
    writer->doubt.why = *error;
    writer->doubt.since_ns = clock_ticks_ns();
    writer->doubt.ask_wait_ms = ASK_FIRST_MS;
    writer->doubt.ask_ns = writer->doubt.since_ns + ASK_FIRST_MS * 1000000L;
    atomic_store(&writer->busy, false);
    atomic_store(&writer->is_away, true);
    log_event(LOG_WARN, "store_away", FIELD_CSTR("error", error->text),
              FIELD_CSTR("advice", "nothing is accepted and nothing claimed until it is back"));
}

static void commit_group(struct writer *writer)
{
    struct transaction transaction = { .at = writer->settings.now(writer->settings.context) };
    struct error error = { .status = STATUS_OK };
    take_group(writer, &transaction);
    transaction.group = calloc(1, sizeof *transaction.group);

    atomic_store(&writer->busy, true);
    atomic_store(&writer->progressed_at, transaction.at);
    int64_t began_ns = clock_ticks_ns();
    enum status status = apply_ops(writer, &transaction, &error);
    note_commit(writer, transaction.count, clock_ticks_ns() - began_ns);
    if (status == STATUS_AWAY && !failure_is_final(writer, status))
        begin_doubt(writer, &transaction, &error);
    else
        end_transaction(writer, &transaction, status, &error);
}

/* The store has said what became of it, or nobody waits for that any more. */
static void answer_doubted(struct writer *writer, enum status status, const struct error *error)
{
    const struct transaction doubted = writer->doubt.transaction;
    writer->doubt.transaction = (struct transaction){ 0 };
    if (doubted.first)
        end_transaction(writer, &doubted, status, error);
}

/* Asks a store that was away what became of the transaction in doubt, less and less often. */
static void ask_if_due(struct writer *writer)
{
    struct store *store = writer->settings.store;
    int64_t now_ns = clock_ticks_ns();
    struct error error = writer->doubt.why;
    bool applied = false;
    if (writer->failure.status != STATUS_OK || (now_ns < writer->doubt.ask_ns && !writer->stopping))
        return;
    enum status status = store->ops->outcome(store, &applied, &error);
    if (status == STATUS_OK) {
        writer->doubt.stands = false;
        atomic_store(&writer->is_away, false);
        writer->unsynced = writer->unsynced || applied;
        log_event(LOG_INFO, "store_back", FIELD_INT("away_ms", (now_ns - writer->doubt.since_ns) / 1000000),
                  FIELD_CSTR("last_transaction", applied ? "was applied" : "was not applied"));
        answer_doubted(writer, applied ? STATUS_OK : STATUS_AWAY, applied ? &(struct error){ 0 } : &writer->doubt.why);
        return;
    }
    if (status != STATUS_AWAY) /* what passes by itself is that */
        fail_for_good(writer, &error);
    writer->doubt.ask_wait_ms = 2 * writer->doubt.ask_wait_ms < ASK_MAX_MS ? 2 * writer->doubt.ask_wait_ms : ASK_MAX_MS;
    writer->doubt.ask_ns = now_ns + writer->doubt.ask_wait_ms * 1000000;
    if (writer->stopping || writer->failure.status != STATUS_OK || atomic_load(&writer->waits_no_more))
        answer_doubted(writer, error.status, &error);
}

/* While one is in doubt nothing else happens. */
static void refuse_pending(struct writer *writer)
{
    const struct error *error = writer->failure.status != STATUS_OK ? &writer->failure : &writer->doubt.why;
    while (writer->pending_first) {
        struct batch *batch = writer->pending_first;
        writer->pending_first = batch->next_pending;
        batch->status = error->status;
        batch->error = *error;
        reply(batch);
    }
    writer->pending_last = &writer->pending_first;
}

/* What durability: everysec promises: a sync each second. */
static void sync_if_due(struct writer *writer, bool now_at_once)
{
    if (writer->settings.sync_always || !writer->unsynced || writer->failure.status != STATUS_OK || writer->doubt.stands)
        return;
    instant now = writer->settings.now(writer->settings.context);
    if (!now_at_once && now - writer->synced_at < SYNC_EVERY_MS && now >= writer->synced_at)
        return;
    struct error error;
    struct store *store = writer->settings.store;
    enum status status = store->ops->sync(store, &error);
    if (status != STATUS_OK && (status != STATUS_AWAY || failure_is_final(writer, status)))
        fail_for_good(writer, &error);
    writer->synced_at = now;
    writer->unsynced = status == STATUS_AWAY; /* asked again in a second */
}

/* Where the trail ends, for whoever keeps the log elsewhere: `insist audit verify --expect` takes it. */
static void tell_head(struct writer *writer)
{
    struct store *store = writer->settings.store;
    char text[TRAIL_HEAD_BYTES];
    if (!store->ops->head || writer->failure.status != STATUS_OK || writer->doubt.stands)
        return;
    struct trail_head head = store->ops->head(store);
    writer->head_reported_at = writer->settings.now(writer->settings.context);
    if (head.number == 0)
        return;
    trail_head_format(&head, text);
    log_event(LOG_INFO, "trail_head", FIELD_CSTR("expect", text));
}

static void tell_head_daily(struct writer *writer)
{
    instant now = writer->settings.now(writer->settings.context);
    if (now - writer->head_reported_at >= DAY_MS || now < writer->head_reported_at)
        tell_head(writer);
}

/* The process goes on by its own clock; who reads times of other machines beside ours must hear it. */
static void tell_clock(struct writer *writer, instant now)
{
    int64_t ahead_ms = clock_ahead_ms();
    char note[96];
    if (ahead_ms - writer->ahead_reported_ms < SECOND_MS && writer->ahead_reported_ms - ahead_ms < SECOND_MS)
        return;
    writer->ahead_reported_ms = ahead_ms;
    if (ahead_ms == 0)
        return;
    log_event(LOG_WARN, "clock_put_back", FIELD_INT("ms", ahead_ms),
              FIELD_CSTR("advice", "the system's clock went back; the daemon goes on by its own until it is started again"));
    snprintf(note, sizeof note, "{\"note\":\"clock_put_back\",\"ms\":%lld}", (long long)ahead_ms);
    struct store_op op = { .kind = OP_NOTE, .data = slice_from(note) };
    struct arena memory = { 0 };
    struct error error;
    enum status status = writer->settings.store->ops->apply(writer->settings.store, now, &op, 1, &memory, &error);
    arena_release(&memory);
    writer->unsynced = writer->unsynced || status == STATUS_OK;
    if (failure_is_final(writer, status))
        fail_for_good(writer, &error);
    else if (status == STATUS_AWAY)
        begin_doubt(writer, &(struct transaction){ .at = now }, &error);
}

static int tend_after_ms(const struct writer *writer)
{
    return writer->settings.store->tend_soon ? TEND_SOON_MS : TEND_EVERY_MS;
}

/* By the ticks, not by the clock, which may stand in a test and jump in life. */
static void tend_if_due(struct writer *writer)
{
    struct store *store = writer->settings.store;
    struct error error;
    int64_t now_ns = clock_ticks_ns();
    if (!store->ops->tend || writer->failure.status != STATUS_OK || writer->doubt.stands ||
        now_ns - writer->tended_ns < (int64_t)tend_after_ms(writer) * 1000000)
        return;
    writer->tended_ns = now_ns;
    instant now = writer->settings.now(writer->settings.context);
    enum status status = store->ops->tend(store, now, &error);
    if (status == STATUS_OK)
        tell_clock(writer, now);
    else if (failure_is_final(writer, status))
        fail_for_good(writer, &error); /* anything else is left for the next time; that a store is away a batch tells */
}

static void *writer_main(void *context)
{
    struct writer *writer = context;
    tell_head(writer); /* as it was found */
    while (!writer->stopping || writer->pending_first) {
        if (!writer->pending_first) {
            mailbox_wait(writer->mailbox, writer->doubt.stands ? (int)writer->doubt.ask_wait_ms : tend_after_ms(writer));
            atomic_store(&writer->progressed_at, writer->settings.now(writer->settings.context));
        }
        mailbox_drain(writer->mailbox);
        if (writer->doubt.stands)
            ask_if_due(writer);
        if (writer->doubt.stands)
            refuse_pending(writer);
        else if (writer->pending_first)
            commit_group(writer);
        sync_if_due(writer, false);
        tend_if_due(writer);
        tell_head_daily(writer);
    }
    if (writer->doubt.stands)
        ask_if_due(writer);
    sync_if_due(writer, true);
    tell_head(writer);
    return NULL;
}

enum status writer_new(const struct writer_settings *settings, struct writer **ret_writer, struct error *err)
{
    struct writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the writer");
    assert(settings->store->ops->writers_max >= 1);
    writer->settings = *settings;
    pthread_mutex_init(&writer->measures_lock, NULL);
    writer->pending_last = &writer->pending_first;
    writer->synced_at = settings->now(settings->context);
    writer->ops = calloc(STORE_BATCH_OPS_MAX, sizeof *writer->ops);
    enum status status = writer->ops ? mailbox_new(&writer->mailbox, err)
                                     : error_set(err, STATUS_NO_MEMORY, "no memory for the writer");
    if (status == STATUS_OK && pthread_create(&writer->thread, NULL, writer_main, writer) != 0)
        status = error_set(err, STATUS_NO_MEMORY, "cannot start the writer's thread");
    if (status != STATUS_OK) {
        mailbox_free(writer->mailbox);
        pthread_mutex_destroy(&writer->measures_lock);
        free(writer->ops);
        free(writer);
        return status;
    }
    *ret_writer = writer;
    return STATUS_OK;
}

struct stop_message {
    struct message message;
    struct writer *writer;
};

static void on_stop(struct message *message)
{
    struct stop_message *stop = message_of(message, MESSAGE_STOP);
    stop->writer->stopping = true;
}

void writer_free(struct writer *writer)
{
    if (!writer)
        return;
    struct stop_message stop = { .writer = writer };
    mailbox_post(writer->mailbox, &stop.message, MESSAGE_STOP, on_stop);
    pthread_join(writer->thread, NULL);
    mailbox_free(writer->mailbox);
    pthread_mutex_destroy(&writer->measures_lock);
    free(writer->ops);
    free(writer);
}

static void on_batch(struct message *message)
{
    struct batch *batch = message_of(message, MESSAGE_BATCH);
    struct writer *writer = batch->writer;
    *writer->pending_last = batch;
    writer->pending_last = &batch->next_pending;
}

void writer_submit(struct writer *writer, struct batch *batch)
{
    assert(batch->count > 0 && batch->count <= STORE_BATCH_OPS_MAX && batch->reply_to && batch->done);
    group_leave(batch->group); /* the results of the last time, if it is given again */
    batch->group = NULL;
    batch->writer = writer;
    batch->next_pending = NULL;
    mailbox_post(writer->mailbox, &batch->message, MESSAGE_BATCH, on_batch);
}

void writer_wait_no_more(struct writer *writer)
{
    atomic_store(&writer->waits_no_more, true); /* seen when the store is asked the next time, which is soon */
}

struct writer_figures writer_figures(const struct writer *writer)
{
    return (struct writer_figures){
        .transactions = atomic_load(&writer->transactions),
        .operations = atomic_load(&writer->operations),
        .busy = atomic_load(&writer->busy),
        .away = atomic_load(&writer->is_away),
        .progressed_at = atomic_load(&writer->progressed_at),
    };
}

struct writer_measures writer_measures(struct writer *writer)
{
    pthread_mutex_lock(&writer->measures_lock);
    struct writer_measures copy = writer->measures;
    pthread_mutex_unlock(&writer->measures_lock);
    return copy;
}
