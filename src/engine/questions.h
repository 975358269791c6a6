/*
 * questions.h - what the engine asks the store, answered later: the loop never waits for a read.
 *
 * Whoever asks has a question of its own, as the first member of what the answer needs, so nobody asks twice at once. It
 * goes through the port `read`; the answer may be there when question_ask returns, or come seconds later, when much has
 * changed. A store that is away, or has no time for it, is asked again until it answers. Everything else goes on meanwhile.
 */
#ifndef ENGINE_QUESTIONS_H
#define ENGINE_QUESTIONS_H

#include "base/instant.h"
#include "node/reads.h"

struct engine;
struct question;

typedef enum status question_read(struct store_read *read, struct store_reader *reader, struct error *err);

struct question {
    struct store_read read; /* first */
    struct engine *engine;
    void (*answered)(struct question *question); /* in the engine's loop; read.status says how it went */
    struct arena *memory; /* while it is answered: of the answer; whoever moves it empties it */
    bool out;              /* asked, and not answered */
    struct question *next; /* in questions.again */
};

/* Those of the engine. */
struct questions {
    size_t out;
    const struct question *asking; /* whose question_ask has not returned; it may be answered already, and gone */
    struct question *again; /* that are to be asked again, */
    instant again_at;       /* then */
};

/* `read` as store_read.run; `answered` is called once, and *memory released after it. `question` is not out. */
void question_ask(struct engine *engine, struct question *question, question_read *read,
                  void (*answered)(struct question *question));
/* Asks those again whose store was away, if it is time. */
void questions_again(struct engine *engine);
/* The engine stops: nobody waits for a store that is away. */
void questions_end(struct engine *engine);

#endif
