/*
 * learn.h - what is counted of errors that no rule knows, over a restart.
 */
#ifndef ENGINE_ERRORS_LEARN_H
#define ENGINE_ERRORS_LEARN_H

#include "engine/errors/errors.h"

struct engine;

/* Of the engine. */
struct learned {
    struct errors *counted;
    struct saved_waits forgets; /* for errors that somebody wants forgotten */
    bool out;                  /* a batch of theirs is with the writer */
    instant at;                /* no other earlier */
};

/* Writes what was learned, not more often than every few seconds. */
void errors_save(struct engine *engine);

#endif
