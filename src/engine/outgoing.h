/*
 * outgoing.h - the engine's own operations on their way to the writer.
 *
 * They are collected while a batch is at the writer and sent when it is back: large transactions under load, and no
 * delay without. Who adds an operation says what is to be called when it is back, applied or not.
 */
#ifndef ENGINE_OUTGOING_H
#define ENGINE_OUTGOING_H

#include "node/writer.h"

enum {
    AGAIN_MS = 1000,               /* after a batch that failed */
    HELD_LANES_MAX = 256,          /* tenants of one destination that are held for themselves */
};

struct engine;
struct outgoing;

/* What became of one operation. */
struct op_result {
    struct engine *engine;
    struct store_op *op; /* as the store left it */
    struct batch *batch; /* that it went with; its memory is gone afterwards, unless it is held */
    void *context;       /* whose it is: see outgoing_add */
    bool applied;        /* it is in the store */
    struct batch_memory **memory;
};
typedef void op_done(const struct op_result *result);

/*
 * The next free operation, or NULL when the batch is full or there is no memory: try again after it is back. It moves when
 * another is added. `done` may be NULL.
 */
struct store_op *outgoing_add(struct engine *engine, op_done *done, void *context);
/* The same for one that nothing waits for: a few more may be gathered first. */
struct store_op *outgoing_gather(struct engine *engine, op_done *done, void *context);
/* A copy of these bytes, as long as the batch lives, is the context of what was added last. NULL: no memory. */
void *outgoing_set_context(struct engine *engine, const void *context, size_t size);
/* Adds one that saves a note; its name and value are copied. False: no room or no memory, and nothing was added. */
bool outgoing_save(struct engine *engine, op_done *done, void *context, struct slice space, struct slice name,
                   struct slice value);
/* Takes back what was added last. */
void outgoing_drop_last(struct engine *engine);
/* How many are in the batch being filled, and whether so many more fit. */
size_t outgoing_count(const struct engine *engine);
bool outgoing_has_room(const struct engine *engine, size_t count);
/* The batch being filled, as a number that grows; and whether all up to such a one are back. */
uint64_t outgoing_number(const struct engine *engine);
bool outgoing_passed(const struct engine *engine, uint64_t number);
struct arena *outgoing_memory(struct engine *engine);
/* Submits what was added, unless enough batches are out. */
void outgoing_flush(struct engine *engine);
void outgoing_free(struct outgoing *outgoing);

/* What an operation brought lies in its batch, which lives until everybody has left who holds it. NULL: no memory. */
struct batch_memory *batch_memory_hold(const struct op_result *result);
void batch_memory_leave(struct batch_memory *memory);

#endif
