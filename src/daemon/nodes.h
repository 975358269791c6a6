/*
 * nodes.h - this process as one of several nodes that share a store.
 *
 * A thread of its own says each second that the node lives, looks at the others and rings for what was committed here for
 * them. What core/ownership makes of what it saw is done where it belongs: a dead session is fenced here, destinations are
 * taken and given away by the engine's thread.
 */
#ifndef DAEMON_NODES_H
#define DAEMON_NODES_H

#include "api/api.h"
#include "engine/engine.h"

enum { NODE_URL_BYTES = 300 };

struct nodes_settings {
    struct store *store;
    struct writer *writer;
    struct engine *engine;
    struct mailbox *mailbox; /* the engine's */
    struct config *config;
    instant (*now)(void *context);
    /* From the nodes' thread: the others have taken this node for dead. */
    void (*on_fenced)(void *context, const struct error *error);
    void *context;
};

struct nodes;

/*
 * What the store is to know of this node: its name, where it is reached, and where its process runs, if no other of that
 * name runs there. `url` is room for its address.
 */
void nodes_name(const struct config *config, struct store_settings *settings, char url[NODE_URL_BYTES]);

enum status nodes_new(const struct nodes_settings *settings, struct nodes **ret_nodes, struct error *err) MUST_CHECK;
/* Ends the thread; `in_order`: and the session, which has nothing under way any more. Accepts NULL. */
void nodes_stop(struct nodes *nodes, bool in_order);
/* After the engine, which may have answered until then. Accepts NULL. */
void nodes_free(struct nodes *nodes);

/* Whether a send may begin; from any thread. */
bool nodes_trusted(const struct nodes *nodes);
/* Something was committed that others may have to hear of; from any thread. */
void nodes_rung(struct nodes *nodes);

/* From now on these destinations are made known; in the engine's thread. */
void nodes_reload(struct nodes *nodes, struct config *config);

/* For the API: from its thread. */
enum owner nodes_owner(struct nodes *nodes, struct slice destination, struct owner_place *ret_place);
/* From any thread: whether a session of another goes on, as far as this one knows. */
bool nodes_lives(struct nodes *nodes, int64_t session);
void nodes_figures(struct nodes *nodes, struct node_figures *ret_figures);

#endif
