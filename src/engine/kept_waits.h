/*
 * kept_waits.h - who is to be told when what changed is in the store.
 *
 * Changes are counted. Each write says up to which one it brings the store; who waits for one of these is answered when it
 * is back. Pure bookkeeping: whoever writes tells it what goes out and what came of it.
 */
#ifndef ENGINE_KEPT_WAITS_H
#define ENGINE_KEPT_WAITS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* The caller owns it, and must keep it until `done`, which is called once. */
struct kept_wait {
    void (*done)(struct kept_wait *wait);
    void *context;
    struct error error; /* when it is done; STATUS_OK: it is in the store */
    uint64_t change;    /* that is waited for; this and the next belong to kept_waits */
    struct kept_wait *next;
};

struct kept_waits {
    uint64_t told; /* changes so far */
    uint64_t kept; /* the store has all up to this one */
    size_t out;    /* writes on their way */
    struct kept_wait *first;
};

/* There is one more change. */
void kept_waits_told(struct kept_waits *waits);
/* Waits for all changes so far. `more`: some of them are not on their way yet. Perhaps done at once. */
void kept_waits_add(struct kept_waits *waits, struct kept_wait *wait, bool more);
/* A write is on its way. */
void kept_waits_out(struct kept_waits *waits);
/*
 * It is back, and `result` is what became of it. `upto`: the store has all changes up to this one by it; 0: it brings none
 * to an end. `more` as above. When nothing is left that could bring a change, nobody goes on waiting for it.
 */
void kept_waits_back(struct kept_waits *waits, uint64_t upto, const struct error *result, bool more);
/* All who wait are told so. */
void kept_waits_fail(struct kept_waits *waits, const struct error *error);

#endif
