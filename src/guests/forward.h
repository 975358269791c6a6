/*
 * forward.h - makes events of the trail to jobs: those that `events` wants, and the callbacks of jobs that have ended.
 *
 * A thread follows the trail from a place that is saved. Each job's id follows from its event's number, so what is read
 * twice after a crash is stored once; and the jobs of one job's events have its id for a key, so they go in order. Of
 * nodes that share a store the steward's does so, over all chains.
 */
#ifndef GUESTS_FORWARD_H
#define GUESTS_FORWARD_H

#include "config/config.h"
#include "node/writer.h"

struct forward_settings {
    struct config *config; /* a reference is taken */
    struct store *store;
    struct writer *writer;
    instant (*now)(void *context); /* from any thread */
    bool (*is_ours)(void *context); /* whether this node is the one that forwards; likewise. NULL: it always is */
    void *context;
};

struct forward;

/* What the configuration asks for is forwarded from now on, or from where an earlier one stopped. */
enum status forward_start(const struct forward_settings *settings, struct forward **ret_forward,
                          struct error *err) MUST_CHECK;
/* From now on another configuration counts. Accepts NULL. */
void forward_reload(struct forward *forward, struct config *config);
/* Reads no more, and waits for nobody. Accepts NULL. */
void forward_cease(struct forward *forward);
/* The writer must still run. Accepts NULL. */
void forward_stop(struct forward *forward);

#endif
