#include "daemon/holdings.h"

#include "base/log.h"
#include "base/map.h"
#include "engine/engine.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum holding_state {
    HOLDING_NONE,
    HOLDING_TAKING,  /* the store is asked for it */
    HOLDING_GAINING, /* the engine reads it */
    HOLDING_OWNED,
    HOLDING_LOSING, /* the engine lets it end */
    HOLDING_LOST,   /* the engine knows nothing of it any more, the store still has it as ours */
    HOLDING_GIVING,
};

struct holding {
    struct holdings *holdings;
    enum holding_state state; /* changed under the lock, by the engine's thread alone */
    struct saved_wait wait;
    struct slice name;
    char text[];
};

struct holdings {
    struct engine *engine;
    struct writer *writer;
    struct mailbox *mailbox;
    pthread_mutex_t lock; /* of the map and of states */
    struct map by_name;
    _Atomic int64_t taken, given;
};

enum status holdings_new(struct engine *engine, struct writer *writer, struct mailbox *mailbox,
                         struct holdings **ret_holdings, struct error *err)
{
    struct holdings *holdings = calloc(1, sizeof *holdings);
    if (!holdings)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the destinations of this node");
    *holdings = (struct holdings){ .engine = engine, .writer = writer, .mailbox = mailbox };
    pthread_mutex_init(&holdings->lock, NULL);
    map_init(&holdings->by_name, 0);
    *ret_holdings = holdings;
    return STATUS_OK;
}

void holdings_free(struct holdings *holdings)
{
    size_t cursor = 0;
    if (!holdings)
        return;
    for (struct map_entry *entry; (entry = map_next(&holdings->by_name, &cursor));)
        free(entry->value);
    map_release(&holdings->by_name);
    pthread_mutex_destroy(&holdings->lock);
    free(holdings);
}

static void enter(struct holding *holding, enum holding_state state)
{
    pthread_mutex_lock(&holding->holdings->lock);
    holding->state = state;
    pthread_mutex_unlock(&holding->holdings->lock);
}

/* NULL: there is no memory, and the next look asks again. */
static struct holding *holding_of(struct holdings *holdings, struct slice destination)
{
    struct holding *holding = map_get(&holdings->by_name, destination);
    if (holding)
        return holding;
    holding = calloc(1, sizeof *holding + destination.len + 1);
    if (!holding)
        return NULL;
    memcpy(holding->text, destination.data, destination.len);
    holding->holdings = holdings;
    holding->name = (struct slice){ holding->text, destination.len };
    pthread_mutex_lock(&holdings->lock);
    enum status status = map_put(&holdings->by_name, holding->name, holding);
    pthread_mutex_unlock(&holdings->lock);
    if (status == STATUS_OK)
        return holding;
    free(holding);
    return NULL;
}

/* ---- orders to the store ---- */

static bool submit(struct holding *holding, const enum op_kind *kinds, size_t count, void (*done)(struct batch *batch))
{
    struct batch *batch = batch_new(count, 1 << 16);
    if (!batch)
        return false;
    for (size_t i = 0; i < count; i++)
        batch->ops[batch->count++] = (struct store_op){ .kind = kinds[i], .own = { .destination = holding->name } };
    batch->reply_to = holding->holdings->mailbox;
    batch->done = done;
    batch->context = holding;
    writer_submit(holding->holdings->writer, batch);
    return true;
}

static bool is_done(const struct batch *batch)
{
    return batch->status == STATUS_OK && batch->ops[0].status == STATUS_OK;
}

static void on_gained(struct saved_wait *wait)
{
    struct holding *holding = wait->context;
    bool good = wait->error.status == STATUS_OK;
    atomic_fetch_add(&holding->holdings->taken, good);
    if (good)
        log_event(LOG_INFO, "destination_taken", FIELD_TEXT("destination", holding->name));
    else
        log_event(LOG_WARN, "destination_not_taken", FIELD_TEXT("destination", holding->name),
                  FIELD_CSTR("error", wait->error.text));
    enter(holding, good ? HOLDING_OWNED : HOLDING_NONE);
}

static void gain(struct holding *holding)
{
    holding->wait = (struct saved_wait){ .done = on_gained, .context = holding };
    enter(holding, HOLDING_GAINING);
    engine_gain(holding->holdings->engine, holding->name, &holding->wait);
}

static void on_taken(struct batch *batch)
{
    struct holding *holding = batch->context;
    assert(holding->state == HOLDING_TAKING);
    bool good = is_done(batch);
    batch_free(batch);
    if (good)
        gain(holding);
    else
        enter(holding, HOLDING_NONE);
}

static void on_given(struct batch *batch)
{
    struct holding *holding = batch->context;
    assert(holding->state == HOLDING_GIVING);
    bool good = is_done(batch);
    atomic_fetch_add(&holding->holdings->given, good);
    if (good)
        log_event(LOG_INFO, "destination_given", FIELD_TEXT("destination", holding->name));
    batch_free(batch);
    enter(holding, good ? HOLDING_NONE : HOLDING_LOST);
}

static void give(struct holding *holding)
{
    static const enum op_kind kinds[] = { OP_GIVE };
    enter(holding, submit(holding, kinds, 1, on_given) ? HOLDING_GIVING : HOLDING_LOST);
}

static void on_lost(struct saved_wait *wait)
{
    struct holding *holding = wait->context;
    if (wait->error.status == STATUS_OK)
        give(holding);
    else
        enter(holding, HOLDING_OWNED);
}

static void lose(struct holding *holding)
{
    holding->wait = (struct saved_wait){ .done = on_lost, .context = holding };
    enter(holding, HOLDING_LOSING);
    engine_lose(holding->holdings->engine, holding->name, &holding->wait);
}

void holdings_order(struct holdings *holdings, struct slice destination, enum holding_order order)
{
    static const enum op_kind taking[] = { OP_TAKE }, introducing[] = { OP_TAKE, OP_GIVE };
    struct holding *holding = holding_of(holdings, destination);
    if (!holding)
        return;
    enum holding_state state = holding->state;
    if (order == HOLDING_TAKE && state == HOLDING_NONE && submit(holding, taking, 1, on_taken))
        enter(holding, HOLDING_TAKING);
    else if (order == HOLDING_INTRODUCE && state == HOLDING_NONE)
        (void)!submit(holding, introducing, 2, batch_free);
    else if (order == HOLDING_OURS && state == HOLDING_NONE)
        gain(holding); /* the answer was lost, or it could not be read */
    else if (order == HOLDING_OURS && state == HOLDING_LOST)
        give(holding);
    else if (order == HOLDING_GIVE && state == HOLDING_OWNED)
        lose(holding);
}

bool holdings_have(struct holdings *holdings, struct slice destination)
{
    pthread_mutex_lock(&holdings->lock);
    const struct holding *holding = map_get(&holdings->by_name, destination);
    bool have = holding && (holding->state == HOLDING_OWNED || holding->state == HOLDING_LOSING);
    pthread_mutex_unlock(&holdings->lock);
    return have;
}

void holdings_moved(const struct holdings *holdings, int64_t *ret_taken, int64_t *ret_given)
{
    *ret_taken = atomic_load(&holdings->taken);
    *ret_given = atomic_load(&holdings->given);
}
