/*
 * api.h - the HTTP API, on a thread of its own.
 *
 * It reads the store by a reader of its own, changes it through the writer, and asks the
 * engine by messages.
 */
#ifndef API_API_H
#define API_API_H

#include "config/config.h"
#include "engine/engine.h"

#include <stdatomic.h>

/* Who owns a destination: its engine alone knows how it stands. */
enum owner { OWNER_HERE, OWNER_ELSEWHERE, OWNER_UNKNOWN };

/* Which node that is, and where it is reached; both are empty where it is not known. */
struct owner_place {
    char node[128], url[512];
    int64_t session; /* of the node, as long as it runs; 0: this one's own, or none */
};

/* The nodes as this one saw them last, and what it did. */
enum { NODES_SHOWN_MAX = 64 };
struct node_figure {
    char name[128];
    int64_t session;
    int64_t silent_ms; /* since it was heard of */
    int64_t destinations;
};
struct node_figures {
    struct node_figure nodes[NODES_SHOWN_MAX]; /* that run */
    size_t count;
    int64_t unowned;      /* destinations that nobody has */
    bool trusted;         /* this one may send */
    int64_t taken_for_dead; /* sessions of others that it ended, since its start, */
    int64_t taken, given;   /* and destinations */
};

struct forwarder;

/* A call on its way to another node, and its answer. The one who made it owns it again when `done` is called. */
struct forward {
    struct message message; /* first: for the way back */
    const char *method;
    char *url;
    char *headers[5]; /* each a whole line; NULL: no more */
    char *copy;       /* what the body points into */
    struct slice body;
    int64_t wait_s; /* for work, as the caller allows; 0: it does not wait */
    bool refused; /* too many are under way: it was not sent */
    atomic_bool abandoned; /* nobody waits for the answer */
    struct owner_place to;
    struct {
        int status; /* 0: it could not be reached, or did not answer */
        bool reached; /* what was asked may have happened */
        char failure[96]; /* what went wrong, if the status is 0 */
        struct buffer body;
        char content_type[128];
        int retry_after_s; /* 0: it did not say */
    } answer;
    struct mailbox *reply_to;
    void (*done)(struct forward *forward);
    void *context;
    void *curl, *sent_headers; /* these belong to who forwards it, as do the following */
    struct forwarder *forwarder;
    int64_t asked_ms, begun_ms; /* when it was sent; when its answer began, later by what it was paused; 0: not yet */
    int64_t paused_ms;          /* since when, for want of memory; 0: it is not */
    bool too_long;
    bool sent, repeated; /* there was a connection for it; there was a second, for which it is none */
    struct forward *next;
};

struct source_board;

struct api_settings {
    struct config *config; /* the API takes a reference */
    struct writer *writer;
    struct store *store;
    struct engine *engine; /* used in its own thread only, by messages */
    struct mailbox *engine_mailbox;
    struct source_board *sources; /* how they stand; NULL: there are none */
    const char *config_path; /* of the file, which a simulation reads anew; NULL: there is none */
    uint64_t seed;
    instant (*now)(void *context); /* from the API's thread; NULL: the system's clock */
    /* Likewise; NULL: this one owns all. */
    enum owner (*owner)(void *context, struct slice destination, struct owner_place *ret_place);
    /* Passes a call on to another node; from the API's thread. NULL: there is none. */
    void (*forward)(void *context, struct forward *forward);
    /* Nobody waits for one that has not come back; likewise. */
    void (*abandon)(void *context, struct forward *forward);
    /* Likewise. */
    void (*node_figures)(void *context, struct node_figures *ret_figures);
    int64_t (*ticks_ms)(void *context); /* as `now`, of a clock that never goes back */
    /* Called about once a second, in the API's thread, while it, the writer and the engine make progress; may be NULL. */
    void (*on_alive)(void *context);
    void *context;
};

struct api;

/* Binds the address; the text of a failure says what to do. */
enum status api_new(const struct api_settings *settings, struct api **ret_api, struct error *err) MUST_CHECK;
/* Starts answering. */
enum status api_start(struct api *api, struct error *err) MUST_CHECK;
/* Refuses new work with 503 from now on; answers what is under way. */
void api_stop_accepting(struct api *api);
/*
 * Takes no more connections; once what is under way is answered, the thread ends and api_stopped is true. The writer
 * must go on meanwhile and the engine's mailbox be drained, and engine_stop must have been called, which ends the
 * waiting of pull workers.
 */
void api_stop(struct api *api);
bool api_stopped(const struct api *api);
/* Waits for the thread to end. Nothing of the API's is with the writer or the engine any more. Accepts NULL. */
void api_free(struct api *api);

/*
 * A new configuration, from any thread: first everything that may fail, then either api_reload or api_forget, which
 * cannot. The address it listens on stays.
 */
struct api_order;
enum status api_prepare(struct api *api, struct config *config, struct api_order **ret_order, struct error *err) MUST_CHECK;
void api_reload(struct api_order *order);
void api_forget(struct api_order *order);

/* The port that was bound, where the configuration says 0. */
int api_port(const struct api *api);

#endif
