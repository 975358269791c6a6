/*
 * guests.h - those who go to others for work, as one: Camundas, the follower of the trail, sources.
 */
#ifndef DAEMON_GUESTS_H
#define DAEMON_GUESTS_H

#include "engine/engine.h"
#include "node/source_board.h"

struct guests_settings {
    struct store *store;
    struct writer *writer;
    struct engine *engine; /* in its own thread, by messages */
    struct mailbox *mailbox; /* the engine's */
    struct source_board *board;
    instant (*now)(void *context); /* from any thread */
    bool (*is_steward)(void *context); /* this node is the one that forwards; likewise. NULL: it has its store for itself */
    void *context;
};

struct guests;

enum status guests_open(const struct guests_settings *settings, struct config *config, struct guests **ret_guests,
                        struct error *err) MUST_CHECK;
/* A new configuration: first everything that may fail, then either guests_take or guests_forget, which cannot. */
struct guests_next;
enum status guests_prepare(struct guests *guests, struct config *config, struct guests_next **ret_next,
                           struct error *err) MUST_CHECK;
void guests_take(struct guests *guests, struct guests_next *next);
void guests_forget(struct guests *guests, struct guests_next *next); /* accepts NULL */

/* They take no more work, and nobody is waited for. */
void guests_cease(struct guests *guests);
/* The writer must still run. Accepts NULL. */
void guests_stop(struct guests *guests);

#endif
