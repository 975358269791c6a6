#include "engine/outgoing.h"

#include "base/log.h"
#include "engine/loop.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    OUTGOING_OPS_MAX = 512, /* operations the engine puts into one batch */
    BATCHES_OUT_MAX = 2,    /* one being made durable, one waiting: the writer need not wait for the engine */
    OUTGOING_BYTES_MAX = 64 << 20,
    OUTGOING_OPS_FIRST = 8,
    GATHER_MS = 2,   /* that a batch nobody waits for stays open, */
    GATHER_OPS = 64, /* unless it has so many */
    FULL_MS = 5 * AGAIN_MS, /* what waits is tried each AGAIN_MS, so that it is no older where anything waits */
};

/* Who hears what became of an operation. */
struct asker {
    op_done *done; /* NULL: nobody */
    void *context;
};

struct outgoing {
    struct engine *engine;
    uint64_t number;
    struct outgoing *next; /* in engine->out.flying */
    instant began_at; /* when the first was added */
    bool urgent;      /* something waits for one of them */
    struct batch *batch;
    struct asker askers[OUTGOING_OPS_MAX];
};

struct batch_memory {
    struct batch *batch;
    size_t users;
};

void outgoing_free(struct outgoing *outgoing)
{
    if (!outgoing)
        return;
    batch_free(outgoing->batch);
    free(outgoing);
}

/*
 * Room for one more. Most batches have a few operations, and a claim's batch lives as long as its sends: it must not be
 * as large as the largest. The room is a power of two and doubles when it is used up.
 */
static bool outgoing_reserve(struct batch *batch)
{
    assert(batch->count <= OUTGOING_OPS_MAX);
    size_t count = batch->count;
    if (count < OUTGOING_OPS_FIRST || (count & (count - 1)) != 0)
        return true;
    struct store_op *ops = realloc(batch->ops, 2 * count * sizeof *ops);
    if (!ops)
        return false;
    batch->ops = ops;
    return true;
}

static struct store_op *add(struct engine *engine, op_done *done, void *context, bool urgent)
{
    struct outgoing *outgoing = engine->out.filling;
    if (!outgoing) {
        outgoing = malloc(sizeof *outgoing);
        if (!outgoing)
            return NULL;
        memset(outgoing, 0, offsetof(struct outgoing, askers)); /* those are many, and set one by one */
        outgoing->batch = batch_new(OUTGOING_OPS_FIRST, OUTGOING_BYTES_MAX);
        if (!outgoing->batch) {
            free(outgoing);
            return NULL;
        }
        outgoing->engine = engine;
        outgoing->number = engine->out.number;
        outgoing->began_at = engine_now(engine);
        engine->out.filling = outgoing;
    }
    if (outgoing->batch->count == OUTGOING_OPS_MAX || !outgoing_reserve(outgoing->batch))
        return NULL;
    assert(outgoing->engine == engine && outgoing->number == engine->out.number);
    outgoing->askers[outgoing->batch->count] = (struct asker){ done, context };
    outgoing->urgent = outgoing->urgent || urgent;
    struct store_op *op = &outgoing->batch->ops[outgoing->batch->count++];
    *op = (struct store_op){ 0 };
    return op;
}

struct store_op *outgoing_add(struct engine *engine, op_done *done, void *context)
{
    return add(engine, done, context, true);
}

struct store_op *outgoing_gather(struct engine *engine, op_done *done, void *context)
{
    return add(engine, done, context, false);
}

void *outgoing_set_context(struct engine *engine, const void *context, size_t size)
{
    struct outgoing *outgoing = engine->out.filling;
    assert(outgoing && outgoing->batch->count > 0);
    void *copy = arena_alloc(&outgoing->batch->memory, size);
    if (copy)
        memcpy(copy, context, size);
    outgoing->askers[outgoing->batch->count - 1].context = copy;
    return copy;
}

void outgoing_drop_last(struct engine *engine)
{
    struct batch *batch = engine->out.filling->batch;
    assert(batch->count > 0);
    batch->count--;
}

bool outgoing_save(struct engine *engine, op_done *done, void *context, struct slice space, struct slice name,
                   struct slice value)
{
    assert(space.len > 0 && name.len > 0);
    struct store_op *op = outgoing_add(engine, done, context);
    if (!op)
        return false;
    op->kind = OP_SAVE;
    op->save = (struct op_save){ .space = space, .name = arena_copy(outgoing_memory(engine), name),
                                 .value = arena_copy(outgoing_memory(engine), value) };
    if (op->save.name.data && op->save.value.data)
        return true;
    outgoing_drop_last(engine);
    return false;
}

size_t outgoing_count(const struct engine *engine)
{
    return engine->out.filling ? engine->out.filling->batch->count : 0;
}

bool outgoing_has_room(const struct engine *engine, size_t count)
{
    assert(count <= OUTGOING_OPS_MAX); /* else there never is */
    return outgoing_count(engine) + count <= OUTGOING_OPS_MAX;
}

uint64_t outgoing_number(const struct engine *engine)
{
    return engine->out.number;
}

bool outgoing_passed(const struct engine *engine, uint64_t number)
{
    assert(number <= engine->out.number);
    for (const struct outgoing *flying = engine->out.flying; flying; flying = flying->next)
        if (flying->number <= number)
            return false;
    return number < engine->out.number || outgoing_count(engine) == 0;
}

struct arena *outgoing_memory(struct engine *engine)
{
    assert(engine->out.filling);
    return &engine->out.filling->batch->memory;
}

struct batch_memory *batch_memory_hold(const struct op_result *result)
{
    if (!*result->memory) {
        *result->memory = calloc(1, sizeof **result->memory);
        if (*result->memory)
            **result->memory = (struct batch_memory){ .batch = result->batch, .users = 1 }; /* until all have heard */
    }
    if (*result->memory)
        (*result->memory)->users++;
    return *result->memory;
}

void batch_memory_leave(struct batch_memory *memory)
{
    assert(memory->users > 0);
    if (--memory->users > 0)
        return;
    batch_free(memory->batch);
    free(memory);
}

static void on_batch_done(struct batch *batch)
{
    struct outgoing *outgoing = batch->context;
    struct engine *engine = outgoing->engine;
    assert(outgoing->batch == batch && batch->count > 0);
    struct batch_memory *memory = NULL; /* made by the first who holds it; it then owns the batch */
    struct outgoing **link = &engine->out.flying;
    while (*link != outgoing)
        link = &(*link)->next;
    *link = outgoing->next;
    assert(engine->out.batches > 0);
    engine->out.batches--;
    if (batch->status != STATUS_AWAY)
        ahead_note_commit(engine, engine_now(engine) - outgoing->began_at);
    engine->out.not_before = batch->status == STATUS_OK ? INSTANT_NONE : instant_add(engine_now(engine), AGAIN_MS);
    assert((batch->status == STATUS_OK) == (engine->out.not_before == INSTANT_NONE)); /* it is not asked in a loop */
    if (batch->status == STATUS_OK)
        engine->out.full_until = INSTANT_NONE;
    else if (batch->status == STATUS_FULL)
        engine->out.full_until = instant_add(engine_now(engine), FULL_MS);
    if (batch->status != STATUS_OK && batch->status != STATUS_AWAY) /* of that one the writer tells */
        log_event(LOG_ERROR, "batch_failed", FIELD_CSTR("status", status_name(batch->status)),
                  FIELD_CSTR("error", batch->error.text), FIELD_INT("operations", (int64_t)batch->count));
    for (size_t i = 0; i < batch->count; i++) {
        const struct asker *asker = &outgoing->askers[i];
        const struct op_result result = { .engine = engine, .op = &batch->ops[i], .batch = batch, .context = asker->context,
                                          .applied = batch->status == STATUS_OK && batch->ops[i].status == STATUS_OK,
                                          .memory = &memory };
        if (asker->done)
            asker->done(&result);
    }
    if (memory) {
        outgoing->batch = NULL;
        batch_memory_leave(memory);
    }
    outgoing_free(outgoing);
    engine_wake(engine);
}

/*
 * While jobs wait for a slot, nothing waits for these to be written: a few more make one transaction of them, which costs
 * the processor hardly more than one of a few.
 */
static bool may_gather(struct engine *engine, const struct outgoing *outgoing)
{
    instant until = instant_add(outgoing->began_at, GATHER_MS);
    instant now = engine_now(engine);
    if (outgoing->urgent || engine->stopping || engine->ahead.count == 0 || outgoing->batch->count >= GATHER_OPS ||
        now >= until || now < outgoing->began_at)
        return false;
    engine->ports.wake_at(engine->ports.context, until);
    return true;
}

/* Those of others, as a claim for a pull worker, are not counted: there may always be some. */
static size_t count_flying(const struct engine *engine)
{
    size_t count = 0;
    for (const struct outgoing *flying = engine->out.flying; flying; flying = flying->next)
        count++;
    assert(count <= engine->out.batches);
    return count;
}

void outgoing_flush(struct engine *engine)
{
    struct outgoing *outgoing = engine->out.filling;
    if (!outgoing || outgoing->batch->count == 0 || count_flying(engine) >= BATCHES_OUT_MAX || may_gather(engine, outgoing))
        return;
    engine->out.filling = NULL;
    engine->out.number++;
    assert(outgoing->number + 1 == engine->out.number);
    outgoing->next = engine->out.flying;
    engine->out.flying = outgoing;
    engine->out.batches++;
    outgoing->batch->context = outgoing;
    outgoing->batch->done = on_batch_done;
    outgoing->batch->reply_to = engine->mailbox;
    engine->ports.submit(engine->ports.context, outgoing->batch);
}
