#include "engine/questions.h"

#include "engine/loop.h"

#include <assert.h>

static void finish(struct question *question)
{
    struct engine *engine = question->engine;
    bool later = engine->questions.asking != question;
    struct arena memory = question->read.memory;
    assert(question->out && engine->questions.out > 0);
    engine->questions.out--;
    question->out = false;
    question->memory = &memory;
    question->answered(question); /* perhaps it is gone now, or asked anew */
    arena_release(&memory);
    if (later)
        engine_wake(engine);
}

/* A store across a network may be away, or too slow, or out of space to sort in. What it has is there. */
static bool may_pass(enum status status)
{
    assert(status < STATUS_COUNT);
    return status == STATUS_AWAY || status == STATUS_BUSY || status == STATUS_FULL;
}

static void on_read(struct store_read *read)
{
    struct question *question = (struct question *)read;
    struct engine *engine = question->engine;
    assert(question->out && engine->questions.out > 0);
    if (!may_pass(read->status) || engine->stopping) {
        finish(question);
        return;
    }
    question->next = engine->questions.again;
    engine->questions.again = question;
    engine->questions.again_at = instant_add(engine_now(engine), AGAIN_MS);
    engine->ports.wake_at(engine->ports.context, engine->questions.again_at);
}

static void ask(struct engine *engine, struct question *question)
{
    arena_release(&question->read.memory);
    question->read.error = (struct error){ .status = STATUS_OK };
    question->read.pieces = 0;
    const struct question *outer = engine->questions.asking;
    engine->questions.asking = question;
    if (engine->ports.read)
        engine->ports.read(engine->ports.context, &question->read);
    else
        store_read_run(&question->read, engine->reader);
    engine->questions.asking = outer;
}

void question_ask(struct engine *engine, struct question *question, question_read *read,
                  void (*answered)(struct question *question))
{
    assert(!question->out && engine->reader);
    question->read = (struct store_read){ .run = read, .done = on_read, .reply_to = engine->mailbox,
                                          .cheap = question->read.cheap };
    question->engine = engine;
    question->answered = answered;
    question->out = true;
    engine->questions.out++;
    ask(engine, question);
}

static struct question *take_all(struct engine *engine)
{
    struct question *all = engine->questions.again;
    engine->questions.again = NULL;
    return all;
}

void questions_again(struct engine *engine)
{
    bool put_back = engine->questions.again_at > instant_add(engine_now(engine), AGAIN_MS); /* the clock was */
    if (!engine->questions.again || (engine_now(engine) < engine->questions.again_at && !put_back))
        return;
    for (struct question *question = take_all(engine), *next; question; question = next) {
        next = question->next;
        ask(engine, question);
    }
}

void questions_end(struct engine *engine)
{
    assert(engine->stopping);
    for (struct question *question = take_all(engine), *next; question; question = next) {
        next = question->next;
        finish(question);
    }
}
