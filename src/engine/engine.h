/*
 * engine.h - the loop that ties it together: due, turn, gate, claim, send, decide, settle.
 *
 * The engine owns no thread, clock, socket or store. It is given ports, and hears what
 * happened: batches applied, answers received, time to run. The daemon puts the writer,
 * libcurl and the system's clock behind them; the tests and the simulator their own. All
 * calls come from one thread.
 *
 * Its memory is bounded by lanes with work and by the sends under way, not by the backlog
 * (invariant 6).
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "engine/saved/waits.h"
#include "node/reads.h"
#include "node/writer.h"
#include "transport/http/probe.h"
#include "transport/transport.h"

struct engine_ports {
    void *context;
    instant (*now)(void *context);
    /* Applies a batch and calls batch->done later, never from inside. */
    void (*submit)(void *context, struct batch *batch);
    /* Starts a send; send->done is called later, never from inside. */
    void (*send)(void *context, struct send *send);
    /*
     * Runs read->run with a reader of the store and calls read->done in the engine's thread, perhaps before this returns.
     * NULL: it is run at once, by the reader that the engine was started with.
     */
    void (*read)(void *context, struct store_read *read);
    /* Asks a destination how it is; probe->done is called later, never from inside. NULL: health is not checked. */
    void (*probe)(void *context, struct probe *probe);
    /* Bytes that the store's disk has free; negative: not known. NULL: never known. */
    int64_t (*disk_free)(void *context);
    /* Asks for one call of engine_run at that time; a later wish for an earlier time replaces it. */
    void (*wake_at)(void *context, instant at);
    /* Nanoseconds that only go forward, to measure how long decisions take; NULL: that is not measured. */
    int64_t (*ticks_ns)(void *context);
};

struct source_board;

struct engine_settings {
    struct engine_ports ports;
    struct mailbox *mailbox; /* where batches come back to; may be NULL when `submit` needs none */
    struct config *config;   /* the engine takes a reference */
    uint64_t seed;
    struct source_board *sources; /* how sources stand, for alerts; NULL: there are none */
    bool no_alerts; /* none are raised, nobody hears of any: a simulation */
    bool shared_store; /* other engines use it too: this one has the destinations that it gains, and none by itself */
};

struct engine;

enum status engine_new(const struct engine_settings *settings, struct engine **ret_engine, struct error *err) MUST_CHECK;
/* Nothing is under way: see engine_stop. */
void engine_free(struct engine *engine);

/*
 * Gains every destination, and begins: first every attempt that an earlier process left behind is recorded as in doubt, then
 * work goes on. The reader is used until the engine is freed, unless there is a port for reads.
 */
enum status engine_start(struct engine *engine, struct store_reader *reader, struct error *err) MUST_CHECK;
/* Does what is due now. */
void engine_run(struct engine *engine);
/* Takes the notice. */
void engine_notice(struct engine *engine, struct notice *notice);
/* From now on the new configuration counts; sends under way end by the old one. STATUS_CONFLICT: it is stopping. */
enum status engine_reload(struct engine *engine, struct config *config, struct error *err) MUST_CHECK;

/*
 * With shared_store, and running: a destination that this node has taken. What the store has of it is read, then it is sent
 * to, and `gained` is done; or, with an error, it could not be read and is not gained. The caller owns `gained` until then.
 * The empty name is the steward's office: what is of no destination.
 */
void engine_gain(struct engine *engine, struct slice destination, struct saved_wait *gained);
/*
 * From now on nothing more is claimed there. When its sends have ended, and all that must outlive them is in the store,
 * `lost` is done, the engine knows nothing of it any more, and the node may give it away. STATUS_NOT_FOUND: it was never
 * gained; STATUS_BUSY: it is being gained or lost.
 */
void engine_lose(struct engine *engine, struct slice destination, struct saved_wait *lost);

/* Loses all. Leases wanted by pull workers are answered empty. */
void engine_stop(struct engine *engine);
/* How many sends, health checks and batches are under way: 0 means it may be freed. */
size_t engine_under_way(const struct engine *engine);
/* The sends still under way, for a transport to abort; at most `max`. */
size_t engine_sends(const struct engine *engine, struct send **ret_sends, size_t max);

struct engine_figures {
    int64_t claimed, delivered, failed, retried, held, dead, recovered;
    int64_t alerts, alerts_unacked; /* that stand now, and those of them that nobody has acknowledged */
    instant ran_at; /* when engine_run last ended */
};
/* Somebody met a page of the store that cannot be read: people hear of it. */
void engine_store_damaged(struct engine *engine, const struct error *err);
/* What is wrong with the nodes that share the store, for the alerts of who owns the steward's office. Empty: nothing is. */
enum { NODES_NEWS_BYTES = 400 };
struct nodes_news {
    char gone[NODES_NEWS_BYTES];   /* who was taken for dead and has not come back */
    char differ[NODES_NEWS_BYTES]; /* whose configurations differ, */
    int64_t differ_ms;             /* and for how long they have */
    char missing[NODES_NEWS_BYTES]; /* an event that was the end of a chain, and is there no more */
};
void engine_nodes_news(struct engine *engine, const struct nodes_news *news);
struct engine_figures engine_figures(const struct engine *engine);

#endif
