/*
 * waits.h - who is to hear when what changed is in the store.
 *
 * Changes are counted. Each write says up to which one it brings the store; who waits for one of these is answered when it
 * is back. Pure bookkeeping: whoever writes tells it what goes out and what came of it.
 */
#ifndef ENGINE_SAVED_WAITS_H
#define ENGINE_SAVED_WAITS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* The caller owns it, and must keep it until `done`, which is called once. */
struct saved_wait {
    void (*done)(struct saved_wait *wait);
    void *context;
    struct error error; /* when it is done; STATUS_OK: it is in the store */
    uint64_t change;    /* that is waited for; this and the next belong to saved_waits */
    struct saved_wait *next;
};

struct saved_waits {
    uint64_t changes; /* changes so far */
    uint64_t saved; /* the store has all up to this one */
    size_t out;    /* writes on their way */
    struct saved_wait *first;
};

/* There is one more change. */
void saved_waits_changed(struct saved_waits *waits);
/* Waits for all changes so far. `more`: some of them are not on their way yet. Perhaps done at once. */
void saved_waits_add(struct saved_waits *waits, struct saved_wait *wait, bool more);
/* A write is on its way. */
void saved_waits_out(struct saved_waits *waits);
/*
 * It is back, and `result` is what became of it. `upto`: the store has all changes up to this one by it; 0: it brings none
 * to an end. `more` as above. When nothing is left that could bring a change, nobody goes on waiting for it.
 */
void saved_waits_back(struct saved_waits *waits, uint64_t upto, const struct error *result, bool more);
/* All who wait hear so. */
void saved_waits_fail(struct saved_wait **first, const struct error *error);

#endif
