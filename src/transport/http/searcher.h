/*
 * searcher.h - a thread for work on answers that would keep an event loop too long.
 *
 * Those who give it work take turns: one that gives much, or work that takes long, waits for itself.
 */
#ifndef TRANSPORT_HTTP_SEARCHER_H
#define TRANSPORT_HTTP_SEARCHER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct searcher;

/* One piece of work. The caller owns it until `done`, or until searcher_take_back. */
struct search {
    const void *owner;                    /* whose turn it takes; only compared */
    void (*run)(struct search *search);   /* in the searcher's thread */
    void (*done)(struct search *search);  /* in the loop's, after `run` */
    bool late;                            /* it waited so long that `run` was left out */
    /* The searcher's. */
    int64_t since_ms;
    bool queued, running;
    struct search *next;  /* of the same owner, or of those that are done */
    struct search *last;  /* of an owner's first: its last */
    struct search *other; /* of an owner's first: that of the next owner */
};

/* `wait_ms_max`: what waited longer is not run any more, so that nobody's answers wait without bound for others'. */
enum status searcher_new(struct event_base *loop, int64_t wait_ms_max, struct searcher **ret_searcher,
                         struct error *err) MUST_CHECK;
/* Without work. Accepts NULL. */
void searcher_free(struct searcher *searcher);

void searcher_give(struct searcher *searcher, struct search *search);
/* Ends it without `done`, before this returns; `late` where it had not run. What runs is waited for. */
void searcher_take_back(struct searcher *searcher, struct search *search);

#endif
